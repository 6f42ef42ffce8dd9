"""Masks that are measured from given lengths: an offset with a length in it is a bound of the key like any other."""

from __future__ import annotations

import numpy as np
import pytest

from symattn.arithmetic import get
from symattn.definition import Definition
from symattn.verify.diagnosis.search import Search
from symattn.verify.faults.catalogue import CATALOGUE
from symattn.verify.faults.fault import Situation
from symattn.verify.inputs import Shape, fields_for
from symattn.verify.judge import run_case
from symattn.verify.kernels.registry import resolve
from symattn.verify.reference import Reference

CAUSAL = {"causal": "bottom-right", "key_lengths": True}
WINDOW = {"window": (2, 0), "key_lengths": True, "empty_row": "uniform"}
# what a kernel sees of row i, key j, with the offset o of the definition and that without lengths, w
PLANTED = {
    "F13": (CAUSAL, lambda i, j, o, w: j <= i),
    "F14": (CAUSAL, lambda i, j, o, w: j < i + o),
    "F15": (CAUSAL, lambda i, j, o, w: j <= i + o + 1),
    "F17": (CAUSAL, lambda i, j, o, w: j <= i + w),
    "F69": (CAUSAL, lambda i, j, o, w: j >= 0),
    "F18": (WINDOW, lambda i, j, o, w: (i + o - j <= 2) & (j <= i + o)),
    "F71": (WINDOW, lambda i, j, o, w: j <= i + o),
}


def kernel(sees):
    def attention(query, key, value, *, key_lengths, **options):
        i, j = np.arange(query.shape[2])[:, None], np.arange(key.shape[2])
        length = key_lengths[:, None, None, None]
        keep = (j < length) & sees(i, j, length - query.shape[2], key.shape[2] - query.shape[2])
        scores = np.where(keep, query @ key.swapaxes(2, 3) / np.sqrt(query.shape[3], dtype=query.dtype), -np.inf)
        top = np.maximum(scores.max(3, keepdims=True), np.finfo(query.dtype).min)
        weights = np.exp(scores - top)
        total = weights.sum(3, keepdims=True)
        other = value.mean(2, keepdims=True) if options.get("empty_row") == "uniform" else 0
        return np.where(total == 0, other, weights @ value / np.where(total == 0, 1, total))

    return attention


@pytest.mark.parametrize("id", PLANTED)
def test_faults_of_masks_are_named_where_lengths_are_given(id):
    fields, sees = PLANTED[id]
    d, seen = Definition(**fields), []
    ref = Reference(d, fields_for(d, Shape.parse("2,2,2,4,7,3"), "float32", 0))
    case = run_case(resolve(kernel(sees)), ref, "shape", backward=False, seen=seen)
    rows = [CATALOGUE[x] for x in (*PLANTED, "F16", "F19", "F70", "F72", "F75", "F76")]
    found = Search(seen, rows, budget=0).run()
    assert case.verdict == "fail" and id in {e.faults[0].id for e in found}


@pytest.mark.parametrize("fields", [CAUSAL, WINDOW])
def test_a_correct_kernel_passes(fields):
    d = Definition(**fields)
    right = {"causal": lambda i, j, o, w: j <= i + o, "window": lambda i, j, o, w: (i + o - j < 2) & (j <= i + o)}
    ref = Reference(d, fields_for(d, Shape.parse("2,2,2,4,7,3"), "float32", 0))
    assert run_case(resolve(kernel(right[next(iter(fields))])), ref, "shape", backward=False).verdict == "pass"


def test_an_alignment_says_its_formula_and_that_it_ignores_the_length():
    d = Definition(**CAUSAL)
    s = Situation(Reference(d, fields_for(d, Shape.parse("2,2,2,4,7,3"), "float32", 0)), get("flash-fp32"))
    assert [a.label for a in CATALOGUE["F17"].alternatives(s)] == ["by all keys and not by the given length"]
    assert [a.label for a in CATALOGUE["F13"].alternatives(s)] == [""]
    assert CATALOGUE["F17"].formulas(s) == ("j <= i + m - n", "j <= i + len - n")
    assert CATALOGUE["F13"].formulas(s) == ("j <= i", "j <= i + len - n")
