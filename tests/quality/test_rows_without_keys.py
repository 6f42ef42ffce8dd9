"""Rows without keys whose output is NaN by the definition: they depend on nothing, and no gradient is NaN because of them."""

from __future__ import annotations

import numpy as np
import pytest

from symattn.definition import Definition
from symattn.verify.diagnosis.search import Search
from symattn.verify.faults.catalogue import CATALOGUE
from symattn.verify.inputs import Shape, fields_for
from symattn.verify.judge import run_case
from symattn.verify.kernels.registry import resolve
from symattn.verify.reference import Reference
from tests.verify.planted import kernel as planted

torch = pytest.importorskip("torch")

DEFINITION = Definition(causal="bottom-right", empty_row="nan")
HIDDEN = {
    "filled": lambda s, keep: s.masked_fill(~keep, -torch.inf),
    "added": lambda s, keep: s + torch.where(keep, 0.0, -torch.inf).to(s.dtype),
}
# how the mask is applied -> what the gradients are, by the label of the fault
NAMED = {"filled": "in the weights of dV alone", "added": ""}


def judged(kernel):
    """The verdicts on a small input with such rows, and the labels under which the fault explains it."""
    ref = Reference(DEFINITION, fields_for(DEFINITION, Shape.parse("2,2,1,4,2,3"), "float32", 0))
    seen = []
    case = run_case(resolve(kernel), ref, "shape", backward=True, seen=seen)
    found = Search(seen, [CATALOGUE["B25"]], budget=0).run()
    return {t.name: t.verdict for t in case.tensors}, [h.label for e in found for h in e.backward]


def eager(hide):
    def attention(query, key, value, *, is_causal, causal_alignment, empty_row, enable_gqa):
        key, value = (x.repeat_interleave(query.shape[1] // x.shape[1], 1) for x in (key, value))
        n, m = query.shape[2], key.shape[2]
        keep = torch.arange(m) <= torch.arange(n)[:, None] + m - n
        return torch.softmax(hide(query @ key.mT * query.shape[3] ** -0.5, keep), -1) @ value

    attention.arithmetic = "eager-fp32"
    return attention


@pytest.mark.parametrize("way", HIDDEN)
def test_a_softmax_over_nothing_is_named_in_the_gradients(way):
    verdicts, named = judged(eager(HIDDEN[way]))
    assert verdicts["out"] == "pass" and verdicts["grad_value"] == "fail"
    assert named == [NAMED[way]]


def marked(*, guarded):
    """A tiled kernel that marks such rows with NaN; its D reads the marked output, or is guarded against it."""
    right = planted()

    def attention(query, key, value, *, empty_row, **options):
        out, lse = right(query, key, value, **options)
        return np.where(np.isneginf(lse)[..., None], out.dtype.type(np.nan), out), lse

    def backward(query, key, value, grad_out, *, out, lse, grad_lse, empty_row, **options):
        clean = np.nan_to_num(out, nan=0.0)
        grads = dict(right.backward(query, key, value, grad_out, clean, lse, grad_lse, **options))
        if not guarded:
            lost = np.isnan(out).any(-1)
            grads["dq"] = np.where(lost[..., None], np.float32(np.nan), grads["dq"])
            groups = lost.any(-1).reshape(key.shape[0], key.shape[1], -1).any(-1)
            grads["dk"] = np.where(groups[..., None, None], np.float32(np.nan), grads["dk"])
        return grads

    attention.backward, attention.arrays = backward, "numpy"
    return attention


@pytest.mark.parametrize("guarded", [True, False])
def test_d_of_an_output_that_is_nan(guarded):
    verdicts, named = judged(marked(guarded=guarded))
    wrong = {"grad_query", "grad_key"} if not guarded else set()
    assert {n for n, v in verdicts.items() if v != "pass"} == wrong
    assert named == ([] if guarded else ["in dS alone"])
