"""The search for faults asks no question twice, whatever coincides."""

from __future__ import annotations

from collections import Counter

import numpy as np

from symattn.definition import Definition
from symattn.verify.diagnosis import search
from symattn.verify.faults.catalogue import CATALOGUE
from symattn.verify.inputs import Shape, fields_for
from symattn.verify.judge import run_case
from symattn.verify.kernels.registry import resolve
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
