"""No fault is named where a kernel returns noise; what returns zeros has the faults that give zeros."""

from __future__ import annotations

import numpy as np
import pytest

from symattn.arithmetic import get
from symattn.definition import Definition
from symattn.verify.diagnosis.explaining import Told, left
from symattn.verify.diagnosis.search import Search
from symattn.verify.faults.catalogue import CATALOGUE
from symattn.verify.faults.fault import Prediction, Situation
from symattn.verify.faults.predict import predictions
from symattn.verify.inputs import Shape, fields_for
from symattn.verify.judge import run_case
from symattn.verify.kernels.registry import resolve
from symattn.verify.reference import Reference

DEFINITIONS = (
    {},
    {"causal": "bottom-right", "window": (2, 0)},
    {"attn_mask": "additive", "softcap": 5},
    {"sink": True, "alibi": True, "heads": 2},
)


def noise(shape):
    return np.random.default_rng(1).normal(size=shape).astype(np.float32) * 3


def somewhere(*at):
    def made(shape):
        found = np.zeros(shape, np.float32)
        found[at] = noise(shape)[at]
        return found

    return made


OUTPUTS = {
    "everywhere": noise,
    "in four channels": somewhere(..., slice(4)),
    "in two rows": somewhere(..., slice(2), slice(None)),
    "in all rows but the last": somewhere(..., slice(-1), slice(None)),
    "the same number": lambda shape: np.full(shape, 0.7, np.float32),
    "the same row": lambda shape: np.broadcast_to(noise(shape[-1:]), shape).copy(),
}


def search(made, fields, faults=CATALOGUE, shape="1,2,2,3,5,6", budget=8):
    """The ids that explain a kernel whose output is made up while its LSE is right."""
    d = Definition.of(**fields)
    ref = Reference(d, fields_for(d, Shape.parse(shape), "float32", 0))
    lse = predictions(Situation(ref, get("flash-fp32")))["lse"].value.astype(np.float32)

    def kernel(query, key, value, **given):
        return made((*query.shape[:3], value.shape[3])), lse.copy()

    kernel.arithmetic = "flash-fp32"
    seen = []
    run_case(resolve(kernel), ref, "shape", backward=False, seen=seen)
    assert seen[0].failing == ("out",)
    found = Search(seen, [CATALOGUE[x] for x in faults], budget=budget).run()
    return {tuple(f.id for f in e.faults) for e in found}


EVERY = [(made, fields) for made in OUTPUTS for fields in DEFINITIONS]
FAST = {("in four channels", 0), ("everywhere", 1), ("in two rows", 2), ("the same number", 3)}
SLOW = [pytest.param(m, f, marks=() if (m, DEFINITIONS.index(f)) in FAST else pytest.mark.slow) for m, f in EVERY]


@pytest.mark.parametrize(("made", "fields"), SLOW, ids=str)
def test_no_fault_explains_noise(made, fields):
    assert search(OUTPUTS[made], fields) == set()


@pytest.mark.parametrize("made", OUTPUTS)
@pytest.mark.parametrize("shape", ["1,1,1,3,7,6", "1,1,1,3,5,10"])
def test_no_pair_with_what_is_not_written_explains_noise(made, shape):
    """Splits or factors on one part, 0 on the other: every pair of them."""
    assert search(OUTPUTS[made], {}, ("F161", "F103", "F105"), shape, budget=150) == set()


@pytest.mark.parametrize("fields", DEFINITIONS[:2], ids=str)
def test_zeros_are_a_factor_of_0(fields):
    found = search(lambda shape: np.zeros(shape, np.float32), fields)
    assert ("F105",) in found and all(set(x) <= {"F105"} for x in found)


@pytest.mark.parametrize("keys", [2, 3, 5, 7, 8, 9])
@pytest.mark.parametrize("causal", [None, "top-left"])
def test_averaged_splits_are_numbers_for_every_number_of_keys(keys, causal):
    d = Definition(causal=causal)
    ref = Reference(d, fields_for(d, Shape(1, 1, 1, 3, keys, 4, 4), "float32", 0))
    here = Situation(ref, get("flash-fp32"))
    for a in CATALOGUE["F161"].alternatives(here):
        found = predictions(here, a)["out"]
        assert np.isfinite(found.value).all() and np.isfinite(found.reach).all()


@pytest.mark.parametrize("splits", [2, 4, 8])
def test_averaged_splits_are_named(splits):
    def kernel(query, key, value):
        s = query @ key.swapaxes(2, 3) / np.float32(query.shape[3] ** 0.5)
        e = np.exp(s)
        part = -(-key.shape[2] // splits)
        outs = [
            e[..., t : t + part] @ value[:, :, t : t + part] / e[..., t : t + part].sum(3, keepdims=True)
            for t in range(0, key.shape[2], part)
        ]
        return np.mean(outs, 0, dtype=np.float32), np.log(e.sum(3))

    kernel.arithmetic = "flash-fp32"
    seen = []
    ref = Reference(Definition(), fields_for(Definition(), Shape.parse("1,1,1,3,7,6"), "float32", 0))
    run_case(resolve(kernel), ref, "shape", backward=False, seen=seen)
    found = Search(seen, [CATALOGUE["F161"]]).run()
    assert [e.forward[0].label for e in found] == [f"{splits} splits"]


def test_what_is_no_number_leaves_the_whole_deviation():
    """Half of the wrong elements met, the others 'explained' by NaN or infinity: no better than chance."""
    kernel, base = np.array([0.0, 0.0, 3.0, 4.0, np.nan], np.float32), Prediction(np.ones(5), np.full(5, 0.1))
    value, reach = np.array([0.0, 0.0, np.nan, 1.0, np.nan]), np.array([0.0, 0.0, 0.1, np.inf, np.inf])
    told = left(kernel, base, Prediction(value, reach))
    assert told == Told(5, 5, 2.0) and told.convincing
    assert not (told + Told(3, 3, 3.0)).convincing


def test_what_is_no_number_where_the_kernel_is_right_counts_against_it():
    """One wrong element met by a prediction that says nothing of the other four."""
    kernel, base = np.array([np.nan, 1, 1, 1, 1], np.float32), Prediction(np.ones(5), np.full(5, 0.1))
    nothing = Prediction(np.full(5, np.nan), np.full(5, np.inf))
    there = Prediction(np.array([np.nan, 1, 1, 1, 1]), np.array([np.inf, 0.1, 0.1, 0.1, 0.1]))
    assert not left(kernel, base, nothing).convincing and left(kernel, base, there).convincing


def test_enough_elements_have_to_tell_something():
    """A reach wider than what it should explain tells nothing, and one element is not enough for a hundred."""
    kernel, base = np.full(100, 2, np.float32), Prediction(np.ones(100), np.full(100, 0.01))
    reach = np.full(100, 5.0)
    reach[0] = 0.1
    told = left(kernel, base, Prediction(np.full(100, 2.5), reach))
    assert told.asked == 100 and told.count == 1 and not told.convincing
    near = left(kernel, Prediction(np.ones(100), np.full(100, 0.5)), Prediction(np.full(100, 2.1), np.where(reach < 1, 0.1, 1.2)))
    assert near.asked == near.count == 1 and near.convincing  # deviations of the size of bounds
    assert not Told(4, 0, 0.0).convincing
