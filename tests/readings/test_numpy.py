"""The numpy reading: dtypes, 16-bit rules, cuts of large grids, NaN under a mask."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import sympy as sp

from symattn import formats
from symattn.adjoint import adjoint
from symattn.errors import InputValueError
from symattn.formats import round_exact
from symattn.program import Program, Statement, indices, size
from symattn.program import tensor as T
from symattn.readings import floats
from symattn.readings import numpy as by_numpy
from tests.programs import attention

i, j, c = indices("i j c")
n, m, d = size("n"), size("m"), size("d")
DTYPES = ["float16", "bfloat16", "float32", "float64", "longdouble"]


def _inputs(dtype: Any, rows: int = 5, seed: int = 0) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    kind = floats.dtype_of(dtype)
    draw = lambda *s: rng.normal(size=s).astype(np.float32).astype(kind)
    return {
        "Q": draw(rows, 4),
        "K": draw(rows, 4),
        "V": draw(rows, 3),
        "scale": kind.type(0.5),
        "cap": kind.type(3),
        "slope": kind.type(0.25),
    }


def _variant() -> Program:
    return attention(sp.Le(j, i), lambda s, q: T("cap") * sp.tanh(s / T("cap")) - T("slope") * (i - j) / 3 + sp.sqrt(3), lse="e")


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_dtype_is_kept_in_every_tensor(dtype: str) -> None:
    program = adjoint(_variant())
    kind = floats.dtype_of(dtype)
    given = _inputs(dtype)
    given |= {"dO": given["V"], "dL": given["V"][:, 0]}
    found = by_numpy.evaluate(program, given)
    assert {k: v.dtype for k, v in found.items() if v.dtype != kind} == {}
    exact = by_numpy.evaluate(program, given, dtype="longdouble")
    u = float(ml_dtypes.finfo(kind).eps) if dtype != "longdouble" else 1e-19
    for name in ("O", "L", "dQ", "dK", "dV"):
        error = np.abs(found[name].astype(np.longdouble) - exact[name])
        assert error.max() <= 60 * u * (1 + np.abs(exact[name]).max()), name
    if dtype not in ("float64", "longdouble"):
        assert any((found[k].astype(np.longdouble) != exact[k]).any() for k in ("O", "dQ"))  # it was not computed wider


def test_sums_of_16_bit_floats_are_formed_in_float32() -> None:
    total = Program((Statement(T("x"), T("u", i), (i,)), Statement(T("y"), T("u", i) * T("v", i), (i,))), {i: n}, ("x", "y"))
    for dtype in ("float16", "bfloat16"):
        kind = floats.dtype_of(dtype)
        found = by_numpy.evaluate(total, {"u": np.ones(3000).astype(kind), "v": np.ones(3000).astype(kind)})
        assert found["x"] == found["y"] == np.float32(3000).astype(kind)  # in bfloat16 a running sum would stop at 256


def test_positions_and_sizes_are_rounded_once() -> None:
    where = Program((Statement(T("x", i, j), T("s") * (i - j)),), {i: n, j: m}, ("x",))
    found = by_numpy.evaluate(where, {"s": np.ones((), dtype=ml_dtypes.bfloat16)}, sizes={"n": 1000, "m": 1000})["x"]
    assert found.dtype == ml_dtypes.bfloat16
    assert found[999, 998] == 1  # 999 and 998 alone are the same number in bfloat16
    scaled = Program((Statement(T("x", i), T("s") * sp.sqrt(n) / 3 + 1 / (i + 1)),), {i: n}, ("x",))
    x = by_numpy.evaluate(scaled, {"s": np.float32(0)}, sizes={"n": 7})["x"]
    assert (x == np.array([1 / np.float32(k) for k in range(1, 8)], dtype=np.float32)).all()


def test_constants_are_made_by_the_dtype() -> None:
    program = Program((Statement(T("x"), T("u") * sp.sqrt(3) / 3),), {}, ("x",))
    for kind in (np.float32, np.longdouble):
        got = by_numpy.evaluate(program, {"u": kind(1)})["x"]
        assert got.dtype == kind
        assert abs(got * got * 3 - 1) <= 2 * np.finfo(kind).eps


def test_dtype_of_mixed_and_exact_inputs() -> None:
    program = attention()
    given = _inputs("float32")
    base = {k: given[k] for k in ("Q", "K", "V")}
    assert by_numpy.evaluate(program, base | {"scale": 0.5})["O"].dtype == np.float32  # a scalar is weak
    assert by_numpy.evaluate(program, base | {"scale": "1/2"})["O"].dtype == np.float32
    assert by_numpy.evaluate(program, base | {"scale": 1, "Q": given["Q"].astype(np.float64)})["O"].dtype == np.float64
    text = {"Q": [["0.1", 1]], "K": [[1, "1/3"]], "V": [[1]], "scale": 1}
    assert by_numpy.evaluate(program, text)["O"].dtype == np.float64
    assert by_numpy.evaluate(program, text, dtype="bf16")["O"].dtype == ml_dtypes.bfloat16


@pytest.mark.parametrize("bad", ["int32", "complex64", "float8_e4m3fn", "nothing"])
def test_a_dtype_that_is_no_float_of_this_reading(bad: str) -> None:
    with pytest.raises(InputValueError):
        floats.dtype_of(bad)


def test_boolean_masks_and_tokens_stay_as_they_are() -> None:
    program = Program(
        (Statement(T("x", i, c), T("Emb", T("tok", i), c), where=sp.Ne(T("M", i), 0)),), {i: n, c: d}, ("x",), {"Emb": (m, d)}
    )
    table = np.arange(6, dtype=np.float32).reshape(3, 2)
    found = by_numpy.evaluate(program, {"Emb": table, "tok": np.array([2, 7], dtype=np.int8), "M": np.array([True, False])})
    assert found["x"].tolist() == [[4, 5], [0, 0]] and found["x"].dtype == np.float32
    assert found["tok"].dtype == np.int8 and found["M"].dtype == bool
    with pytest.raises(InputValueError, match="outside"):
        by_numpy.evaluate(program, {"Emb": table, "tok": np.array([2, 7]), "M": np.array([True, True])})


def test_a_large_grid_in_cuts_gives_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    program = adjoint(_variant())
    given = _inputs("float64", rows=12)
    given |= {"dO": given["V"], "dL": given["V"][:, 0]}
    whole = by_numpy.evaluate(program, given)
    given_nan = given | {"V": given["V"].copy()}
    given_nan["V"][3] = math.nan  # sends the contractions to the grid
    whole_nan = by_numpy.evaluate(program, given_nan)
    monkeypatch.setattr(by_numpy, "BLOCK", 50)
    for a, b in ((whole, by_numpy.evaluate(program, given)), (whole_nan, by_numpy.evaluate(program, given_nan))):
        for name in ("O", "L", "dQ", "dK", "dV"):
            np.testing.assert_allclose(a[name], b[name], rtol=1e-13, atol=1e-14)
    assert np.isnan(whole_nan["O"][3:]).all() and np.isfinite(whole_nan["O"][:3]).all()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_masked_poison_does_not_change_a_bit(dtype: str) -> None:
    program = adjoint(attention(sp.Lt(j, i), lse="e"))
    given = _inputs(dtype)
    given = {k: given[k] for k in ("Q", "K", "V", "scale")} | {"dO": given["V"], "dL": given["V"][:, 0]}
    bad = given | {"K": given["K"].copy(), "V": given["V"].copy()}
    bad["K"][4], bad["V"][4] = math.nan, math.inf
    a, z = by_numpy.evaluate(program, given), by_numpy.evaluate(program, bad)
    for name in ("O", "L", "dQ", "dK", "dV"):
        assert (a[name] == z[name]).all(), name


def test_erf_in_every_dtype() -> None:
    program = Program((Statement(T("x", i), T("u", i) * (1 + sp.erf(T("u", i) / sp.sqrt(2))) / 2),), {i: n}, ("x",))
    wide = by_numpy.evaluate(program, {"u": np.array([-1.5, 0, 0.7], dtype=np.longdouble)})["x"]
    want = [x * (1 + math.erf(x / math.sqrt(2))) / 2 for x in (-1.5, 0, 0.7)]
    np.testing.assert_allclose(wide.astype(float), want, rtol=1e-14)
    assert wide.dtype == np.longdouble
    assert by_numpy.evaluate(program, {"u": np.array([0.5], dtype=np.float16)})["x"].dtype == np.float16


def test_rounding_to_bfloat16_is_rounding_once() -> None:
    """float64 by way of float32 would round twice: 1 + 2^-8 + 2^-40 is above the tie, in float32 it is the tie."""
    rng = np.random.default_rng(0)
    ties = 1 + np.arange(64) * 2.0**-8
    a = np.concatenate(
        [ties, ties + 2.0**-40, ties - 2.0**-40, -ties - 2.0**-50, rng.normal(size=200), 2.0 ** rng.uniform(-140, 127, 200)]
    )
    a = np.concatenate([a, [0.0, -0.0, 1e39, -1e300, 3.4e38, math.inf, 1e-45, 5e-324]])
    kind = floats.dtype_of("bfloat16")
    with np.errstate(all="ignore"):
        got = floats.rounded(a, kind)
        want = formats.to_array(a, "bfloat16")
        twice = a.astype(np.float32).astype(kind)
    assert (got == want).all()
    assert (twice != want).any()  # the fault that this test is about is in the data
    whole = np.array([2**8 + 1, 2**24 + 2**16 + 1, 2**60 + 2**52 + 1, -3])
    assert [int(x) for x in floats.rounded(whole, kind)] == [int(round_exact(Fraction(int(v)), "bfloat16")) for v in whole]
    assert np.isnan(floats.rounded(np.array([math.nan]), kind)).all()
