"""Inputs that are hard on fixed-point numbers: far scores, subnormals, one-hot rows, cancellation, one of everything."""

import ml_dtypes
import numpy as np
import pytest

from symattn.definition import Definition
from symattn.truth.derived import with_gradient
from symattn.truth.limbs import unfit
from tests.truth.limbs import enclosing

PROGRAM = with_gradient(Definition().program())
CAUSAL = with_gradient(Definition(causal="bottom-right").program())


def sizes(n, m, d, dv):
    return {"n": n, "m": m, "d": d, "dv": dv}


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32, np.float64], ids=str)
@pytest.mark.parametrize("bits", [60, 170, 330])
def test_dtypes_and_bits(dtype, bits):
    inputs = enclosing.draw(PROGRAM, 1, dtype, sizes(4, 5, 3, 2))
    enclosing.check(PROGRAM, inputs, bits=bits)


def test_five_hundred_bits():
    enclosing.check(PROGRAM, enclosing.draw(PROGRAM, 1, np.float32, sizes(3, 3, 2, 2)), bits=500)


@pytest.mark.parametrize("n,m,d,dv", [(1, 1, 1, 1), (1, 7, 1, 2), (7, 1, 3, 1), (3, 2, 1, 1)])
def test_one_of_everything(n, m, d, dv):
    enclosing.check(PROGRAM, enclosing.draw(PROGRAM, 2, sizes=sizes(n, m, d, dv)))


@pytest.mark.parametrize("far", [6e4, 490.0, 1e-6, 2.0**60, 2.0**-60])
def test_scores_far_from_0(far):
    inputs = enclosing.draw(PROGRAM, 3, sizes=sizes(5, 6, 4, 3))
    inputs["Q"] = (inputs["Q"] * np.float32(far)).astype(np.float32)
    enclosing.check(PROGRAM, inputs)
    inputs["K"][:, :] = inputs["K"][:1, :]
    enclosing.check(PROGRAM, inputs)


def test_rows_that_are_one_hot():
    inputs = enclosing.draw(PROGRAM, 4, sizes=sizes(4, 4, 4, 3))
    inputs["Q"], inputs["K"] = np.eye(4) * 3e4, np.eye(4) * 3e4
    enclosing.check(PROGRAM, inputs)


def test_subnormals_beside_ordinary_numbers():
    inputs = enclosing.draw(PROGRAM, 5, sizes=sizes(4, 5, 3, 2))
    for name in ("Q", "K", "V", "dO"):
        inputs[name][0, 0] = np.float32(1.4e-45)
        inputs[name][1, :] = np.float32(3e-40)
    enclosing.check(PROGRAM, inputs)


def test_numbers_sixty_exponents_apart():
    enclosing.check(PROGRAM, enclosing.draw(PROGRAM, 6, np.float32, sizes(5, 6, 4, 3), spread=60))
    enclosing.check(PROGRAM, enclosing.draw(PROGRAM, 7, np.float64, sizes(4, 3, 4, 3), spread=20))


@pytest.mark.parametrize("name", ["Q", "K", "V", "dO"])
@pytest.mark.parametrize("scale", [2.0**60, 2.0**-60, 0.0])
def test_one_input_of_another_scale(name, scale):
    inputs = enclosing.draw(PROGRAM, 8, sizes=sizes(4, 5, 3, 2))
    inputs[name] = inputs[name] * np.float32(scale)
    enclosing.check(PROGRAM, inputs)


def test_values_that_cancel():
    inputs = enclosing.draw(PROGRAM, 9, sizes=sizes(4, 6, 3, 2))
    inputs["K"][3:] = inputs["K"][:3]
    inputs["V"][:3] += np.float32(2.0**20)
    inputs["V"][3:] = -inputs["V"][:3]
    enclosing.check(PROGRAM, inputs)


def test_rows_without_keys():
    inputs = enclosing.draw(CAUSAL, 10, sizes=sizes(7, 4, 3, 2))
    enclosing.check(CAUSAL, inputs)
    assert enclosing.evaluate(CAUSAL, inputs, bits=80)["L"].floats()[:3].tolist() == [-np.inf] * 3


def test_a_bias_that_is_large_beside_the_scores():
    program = with_gradient(Definition(bias=True).program())
    for size in (-1e9, 1e4, 2.0**-50):
        bias = lambda s, r, k=size: np.where(r.random(s) < 0.5, np.float32(k), np.float32(0))
        inputs = enclosing.draw(program, 11, sizes=sizes(4, 5, 3, 2), bias=bias)
        enclosing.check(program, inputs, bits=120)
        inputs["Q"] = inputs["Q"] * np.float32(2.0**-30)
        enclosing.check(program, inputs, bits=120)


def test_many_blocks_give_the_same_as_one(monkeypatch):
    from symattn.truth.limbs import block, engine

    inputs = enclosing.draw(CAUSAL, 12, sizes=sizes(50, 41, 5, 3))
    inputs["dO"][:20] *= np.float32(2.0**-30)
    whole = enclosing.evaluate(CAUSAL, inputs, bits=170)
    monkeypatch.setattr(engine, "ROWS", 7)
    monkeypatch.setattr(engine, "BLOCK_BYTES", 1)
    monkeypatch.setattr(block, "TILE", 9)
    parts = enclosing.evaluate(CAUSAL, inputs, bits=170)
    for name, one in whole.items():
        other = parts[name]
        for a, b in zip(one.midpoints().ravel(), other.midpoints().ravel(), strict=True):
            assert a == b or abs(a - b) <= one.radius + other.radius


@pytest.mark.parametrize("name", ["Q", "V", "dO"])
@pytest.mark.parametrize("size", [1e300, 1e-300, 1e-310, 3e38, 1e-45])
def test_numbers_at_the_ends_of_the_formats(name, size):
    """They are enclosed, or refused with a reason: no radius is lost below the smallest float64 number."""
    inputs = enclosing.draw(PROGRAM, 13, np.float64, sizes(3, 4, 2, 2))
    inputs[name] = np.full(inputs[name].shape, size)
    inputs[name][0, 0] *= 0.5
    why = unfit(PROGRAM, inputs)
    if 1e-60 < size < 1e60:
        assert why is None
    if why is None:
        enclosing.check(PROGRAM, inputs)
    else:
        assert name in why


def test_a_sink_that_takes_everything():
    program = with_gradient(Definition(sink=True, heads=1).program())
    inputs = enclosing.draw(program, 14, sizes={**sizes(3, 4, 2, 2), "H": 1})
    for sink in (5e3, 1e5, -1e5):
        inputs["sink"] = np.full(inputs["sink"].shape, sink)
        enclosing.check(program, inputs)
