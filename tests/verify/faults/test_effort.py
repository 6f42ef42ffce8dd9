"""A search that costs too much stops, after the likeliest faults, and says so; `all` goes on."""

from __future__ import annotations

import math

import numpy as np
import pytest

from symattn.errors import UnknownNameError
from symattn.verify.diagnosis import diagnose as module
from symattn.verify.diagnosis.effort import STATEMENT, Effort, evaluation
from symattn.verify.diagnosis.search import Search
from symattn.verify.faults.catalogue import CATALOGUE
from tests.verify.faults.running import seen
from tests.verify.planted import kernel

FEW = {k: CATALOGUE[k] for k in ("F05", "F06", "F08", "F61", "F166")}


def odd(query, key, value, **options):
    """Nothing in the catalogue."""
    return np.sin(query[..., ::-1]).astype(query.dtype)


def test_effort_once_over_stays_over():
    e = Effort(10)
    assert [e.take(x) for x in (4, 6, 1, 0)] == [True, True, False, False]
    assert Effort.of("all", 5).take(1e30) and not Effort.of("bounded", 5).take(6)
    with pytest.raises(UnknownNameError, match=r"bounded, or tries all; got 'al'"):
        Effort.of("al", 5)


def test_an_evaluation_costs_by_its_statements_and_elements():
    short, long = (seen(odd, d, ("normal",))[0] for d in ({"lse": False}, {"lse": False, "qk_norm": "rms", "rope": "half"}))
    (large,) = seen(odd, {"lse": False}, ("square",))
    count = len(short.situation.forward.statements)
    assert evaluation(short, False) == count * (STATEMENT + short.work) < evaluation(long, False)
    assert evaluation(large, False) == count * (STATEMENT + large.work)


def test_a_search_that_stops_says_after_how_many_faults(monkeypatch):
    cases = seen(odd, {}, ("normal",))
    (whole,) = module.diagnose(cases, None, FEW)
    assert not any("stopped" in line for line in whole.text)
    one = evaluation(cases[0], False)
    monkeypatch.setattr(module, "SEARCH", 1.5 * one)
    (found,) = module.diagnose(cases, None, FEW)
    (line,) = (x for x in found.text if "stopped" in x)
    known = Search(cases, list(FEW.values()))
    known.run()
    assert line.strip() == f"the search stopped after 1 of {len(known.tried)} faults; --diagnose all goes on"
    assert line in found.to_dict()["text"]
    (whole,) = module.diagnose(cases, None, FEW, "all")
    assert not any("stopped" in line for line in whole.text)


def test_the_same_search_stops_at_the_same_place():
    cases = seen(odd, {}, ("normal",))
    runs = []
    for _ in range(2):
        search = Search(cases, list(FEW.values()), effort=Effort(2.5 * evaluation(cases[0], False)))
        search.run()
        runs.append((search.tried, search.untried, search.effort.left))
    assert runs[0] == runs[1] and runs[0][1]


def test_conventions_are_asked_before_mathematics_and_what_is_found_in_time_is_named(monkeypatch):
    cases = seen(kernel("strict causal"), {"causal": "top-left"}, ("normal", "tall"))
    asked = Search(cases, [*reversed(CATALOGUE.values())])
    kinds = [f.kind for f in asked.rounds(False)[0]]
    assert kinds == sorted(kinds) and set(kinds) == {"convention", "mathematics"}
    monkeypatch.setattr(module, "SEARCH", 60 * evaluation(cases[0], False))
    first = module.diagnose(cases)[0]
    assert "strict" in first.title and "stopped after" in first.text[-1]


def test_the_smallest_shape_is_sought_within_a_budget_too(monkeypatch):
    cases = seen(odd, {}, ("normal",))
    runs = []

    def fails(kind, shape):
        runs.append(shape)
        return False

    module.diagnose(cases, fails, FEW)
    assert runs
    runs.clear()
    monkeypatch.setattr(module, "SHRINK", 0.0)
    (found,) = module.diagnose(cases, fails, FEW)
    assert not runs and not any("smallest" in line for line in found.text)
    module.diagnose(cases, fails, FEW, "all")
    assert runs and math.isinf(Effort.of("all", 1).left)
