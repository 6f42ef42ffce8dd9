"""The search for faults asks no question twice, whatever coincides."""

from __future__ import annotations

from collections import Counter
from itertools import combinations

import numpy as np
import pytest

from symattn.definition import Definition
from symattn.verify.diagnosis import search
from symattn.verify.diagnosis.explaining import hypotheses, predicted
from symattn.verify.faults.catalogue import CATALOGUE
from symattn.verify.inputs import Shape, fields_for
from symattn.verify.judge import run_case
from symattn.verify.kernels.registry import resolve
from symattn.verify.observed import Observed
from symattn.verify.reference import Reference

ROWS = [CATALOGUE[x] for x in ("F06", "F08", "F61", "B01", "B02", "B40", "B07")]


def by_d(query, key, value):
    scores = query @ key.swapaxes(2, 3) / np.float32(query.shape[3])
    weights = np.exp(scores - scores.max(3, keepdims=True))
    return weights @ value / weights.sum(3, keepdims=True)


def test_no_hypothesis_is_tried_twice_where_several_explain_the_outputs(monkeypatch):
    by_d.backward = lambda query, key, value, grad_out: (key + 1, query - 1, 0 * value)
    asked = Counter()

    def counted(parts, o, plain=search.together):
        asked[parts] += 1
        return plain(parts, o)

    monkeypatch.setattr(search, "together", counted)
    seen = []
    ref = Reference(Definition(), fields_for(Definition(), Shape.parse("1,1,1,3,3,4"), "float32", 0))
    run_case(resolve(by_d), ref, "shape", backward=True, seen=seen)
    found = search.Search(seen, ROWS, budget=0).run()
    assert {e.faults[0].id for e in found} == {"F06", "F08", "F61"} and all("grad_query" in e.open for e in found)
    alone = [parts for parts in asked if len(parts) == 1 and parts[0].fault.backward_only]
    assert alone and all(asked[parts] == 1 for parts in alone)


def test_long_lists_are_tried_in_fewer_pairs(monkeypatch):
    tried = Counter()
    for name, d in {"short": Definition(), "long": Definition(qk_norm="rms", rope="half", differential=True)}.items():
        seen = []
        ref = Reference(d, fields_for(d, Shape.parse("1,1,1,3,3,4"), "float32", 0))
        run_case(resolve(lambda query, key, value, **more: query[..., ::-1] ** 3), ref, "shape", backward=False, seen=seen)
        found = search.Search(seen, ROWS, budget=6)
        found.run()
        tried[name] = sum(len(parts) == 2 for parts, _ in found._held)
    assert 0 < tried["long"] < tried["short"] == 6


WITH_MUCH = (
    {"attn_mask": "boolean"},
    {"attn_mask": "additive", "causal": "bottom-right"},
    {"document": True, "causal": "top-left", "heads": 2, "kv_heads": 1},
    {"key_lengths": True, "window": (2, 0)},
    {"sink": True, "softcap": 5, "alibi": True, "heads": 2},
    {"bias": True, "dropout": True},
    {"rope": "half", "qk_norm": "rms"},
)


@pytest.mark.parametrize("gradient", [False, True])
@pytest.mark.parametrize("step", [307, pytest.param(31, marks=pytest.mark.slow)])
@pytest.mark.parametrize("fields", WITH_MUCH, ids=str)
def test_of_any_two_faults_there_is_a_prediction_or_none(fields, step, gradient):
    d = Definition.of(**fields)
    ref = Reference(d, fields_for(d, Shape.parse("2,2,1,4,6,4" if d.kv_heads == 1 else "1,2,2,3,3,4"), "float32", 0))
    seen: list[Observed] = []
    kernel = resolve(lambda query, key, value, **given: np.zeros_like(query))
    run_case(kernel, ref, "shape", backward=False, seen=seen)
    exact = [f for f in CATALOGUE.values() if f.kind in search.EXACT and f.backward_only <= gradient]
    singles = [h for h in hypotheses(exact, seen[0].situation) if search.composable(h.on(seen[0].situation))]
    pairs = list(combinations(singles, 2))[::step]
    found = [predicted(seen[0], a, gradient) for p in pairs if (a := search.together(p, seen[0])) is not None]
    assert len(found) > 3 and any(x is not None for x in found)


def test_a_fault_that_reads_what_the_other_one_drops_is_no_pair_with_it():
    d = Definition.of(sink=True, softcap=5, heads=2)
    ref = Reference(d, fields_for(d, Shape.parse("1,2,2,3,3,4"), "float32", 0))
    seen: list[Observed] = []
    run_case(resolve(lambda query, key, value, **given: np.zeros_like(query)), ref, "shape", backward=False, seen=seen)
    both = hypotheses([CATALOGUE["F110"], CATALOGUE["F23"]], seen[0].situation)
    pairs = [p for p in combinations(both, 2) if p[0].fault is not p[1].fault]
    assert pairs and any(search.together(p, seen[0]) is not None for p in pairs)
    found = [predicted(seen[0], a, False) for p in pairs if (a := search.together(p, seen[0])) is not None]
    assert None in found
