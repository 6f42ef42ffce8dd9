"""One suite for every reading that gives values: each program through exact, mpmath, balls and numpy, against evaluators that
share no code with them (``tests/tiny.py``, and attention in plain loops below). A reading made wrong on purpose must fail it."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

import flint
import mpmath
import numpy as np
import pytest
import sympy as sp

from symattn.adjoint import adjoint, tangent
from symattn.program import Program, Statement, indices, size
from symattn.program import tensor as T
from symattn.readings import balls, exact, floats
from symattn.readings import mpmath as by_mpmath
from symattn.readings import numpy as by_numpy
from symattn.readings.code import Namespace, constant
from tests import tiny
from tests.programs import CASES, SIZES, attention

MP = tiny.MP
b, i, j, c, e, p, t, w = indices("b i j c e p t w")
n, m, d, vocab = (size(x) for x in ("n", "m", "d", "vocab"))


def _p(statements: list[Statement], dims: dict, outputs: tuple[str, ...], shapes: dict | None = None) -> Program:
    return Program(statements, dims, outputs, shapes or {})


EXTRA: dict[str, tuple[Program, dict[str, Any]]] = {
    "top-k": (
        _p(
            [
                Statement(T("z", i, j), T("u", i, j) * 3),
                Statement(T("zw", i, w), T("u", i, w) * 3),
                Statement(T("rank", i, j), sp.S.One, (w,), where=sp.Gt(T("zw", i, w), T("z", i, j))),
                Statement(T("x", i), sp.exp(T("z", i, j)), (j,), where=sp.Lt(T("rank", i, j), 2)),
            ],
            {i: n, j: m, w: m},
            ("x",),
        ),
        {},
    ),
    "scatter": (
        _p([Statement(T("x", w, c), T("u", p, c) ** 3, (p,), where=sp.Eq(w, T("tok", p)))], {w: vocab, p: n, c: d}, ("x",)),
        {"tok": [2, 0, 2]},
    ),
    "scatter with another condition": (
        _p(
            [Statement(T("x", w), T("u", p) * T("v", w), (p,), where=sp.And(sp.Eq(w, T("tok", p) + 1), sp.Ge(w, p)))],
            {w: vocab, p: n},
            ("x",),
        ),
        {"tok": [2, -1, 0]},
    ),
    "scatter of a half": (_p([Statement(T("x", w), T("u", p), (p,), where=sp.Eq(w, p / 2))], {w: vocab, p: n}, ("x",)), {}),
    "greatest where equal": (
        _p([Statement(T("x", w), T("u", p), (p,), "max", sp.Eq(w, T("tok", p)))], {w: vocab, p: n}, ("x",)),
        {"tok": [2, 0, 2]},
    ),
    "two groups of three": (
        _p([Statement(T("x", i, j), T("u", i, c) * T("v", j, c) * T("g", c) * T("f", i) * 3, (c,))], {i: n, j: m, c: d}, ("x",)),
        {},
    ),
    "sum of contractions": (
        _p(
            [
                Statement(
                    T("x", i, j), T("u", i, c) * T("v", j, c) - 2 * T("v", j, c) * T("a", i) + T("g", c), (c,), where=sp.Lt(j, i)
                )
            ],
            {i: n, j: m, c: d},
            ("x",),
        ),
        {},
    ),
    "mask across a contraction": (
        _p([Statement(T("x", i, j), T("u", i, c) * T("v", j, c), (c,), where=sp.Ge(i + j, 2 * c))], {i: n, j: m, c: d}, ("x",)),
        {},
    ),
    "masked by the second factor": (
        _p([Statement(T("x", i, j), T("u", i, c) * T("v", j, c), (c,), where=sp.Ge(j, c + 1))], {i: n, j: m, c: d}, ("x",)),
        {},
    ),
    "count": (_p([Statement(T("x", i), sp.S.One, (j,), where=sp.Le(j, i))], {i: n, j: m}, ("x",), {}), {}),
    "positions": (
        _p([Statement(T("x", i, j), T("u", i) / (i + j + 1) + sp.sqrt(m) * sp.Rational(1, 3) + 2**-i)], {i: n, j: m}, ("x",)),
        {},
    ),
    "functions": (
        _p(
            [
                Statement(T("r", i), sp.sqrt(T("u", i) ** 2 + 1) ** 3 + (1 + T("u", i) ** 2) ** sp.Rational(-1, 3)),
                Statement(T("x", i), sp.sin(T("r", i)) * sp.cos(T("u", i)) + sp.log(T("r", i)) / sp.pi + sp.Max(T("u", i), 0)),
                Statement(T("y", i), sp.Min(T("u", i), T("x", i), 1) + sp.floor(4 * T("u", i)) + sp.Mod(T("u", i), 3)),
            ],
            {i: n},
            ("x", "y"),
        ),
        {},
    ),
    "or, not": (
        _p(
            [Statement(T("x", i), T("u", j), (j,), where=sp.Or(sp.Not(sp.Eq(i, j)), sp.Gt(T("u", j), 0)))],
            {i: n, j: m},
            ("x",),
        ),
        {},
    ),
    "maximum of nothing": (
        _p(
            [
                Statement(T("x", i), T("u", i, j), (j,), "max", sp.Lt(j, i)),
                Statement(T("y", i), T("u", i, j), (j,), "prod", sp.Lt(j, i)),
                Statement(T("z", i), T("u", i, j), (j,), "sum", sp.Lt(j, i)),
            ],
            {i: n, j: m},
            ("x", "y", "z"),
        ),
        {},
    ),
}
ALL: dict[str, tuple[Program, dict[str, Any]]] = {k: (v.program, v.discrete) for k, v in CASES.items()} | EXTRA
EMPTY_ROW = attention(sp.Lt(j, i), lse="e")


def inputs_of(program: Program, discrete: Mapping[str, Any], seed: int = 0) -> dict[str, Any]:
    """Multiples of 1/64, and the discrete inputs as given."""
    rng = np.random.default_rng(seed)
    table = {s: sp.Integer(SIZES[str(s)]) for s in program.sizes}
    out: dict[str, Any] = {}
    for name in program.inputs:
        shape = [int(x.xreplace(table)) for x in program.shapes[name]]
        value = np.vectorize(lambda k: Fraction(int(k), 64), otypes=[object])(rng.integers(-127, 128, size=shape))
        out[name] = np.array(discrete[name]) if name in discrete else value
    return out


def reference(program: Program, inputs: Mapping[str, Any]) -> dict[str, Any]:
    number = np.vectorize(
        lambda v: MP.mpf(v.numerator) / v.denominator if isinstance(v, Fraction) else MP.mpf(v), otypes=[object]
    )
    point = {k: number(v) if np.ndim(v) else number(v)[()] for k, v in inputs.items()}
    return tiny.run(program, point, {str(s): SIZES[str(s)] for s in program.sizes})


def _mp(q: Any) -> Any:
    return MP.mpf(q.numerator) / q.denominator if isinstance(q, Fraction) else MP.mpf(q)


def _ball(x: Any) -> tuple[Any, Any]:
    mid, rad = balls.parts(x)
    return _mp(mid), _mp(rad)


def _of_exact(x: Any) -> tuple[Any, Any]:
    with balls.precision(400):
        return _ball(constant(x, balls.NAMESPACE))


READINGS: dict[str, tuple[Callable[..., Any], Callable[[Any], tuple[Any, Any]], Any]] = {
    # the evaluator; an element as midpoint and radius; how far it may be from the truth beyond that, relative to 1 + |truth|
    "exact": (exact.evaluate, _of_exact, "1e-75"),
    "mpmath": (by_mpmath.evaluate, lambda x: (MP.mpf(x), MP.mpf(0)), "1e-52"),
    "balls": (balls.evaluate, _ball, "1e-75"),
    "numpy": (by_numpy.evaluate, lambda x: (MP.mpf(float(x)), MP.mpf(0)), "1e-12"),
}
WIDE = {"exact": "1e-100", "mpmath": "0", "balls": "1e-50", "numpy": "0"}
"""How wide an answer may be: a reading that knows nothing must not pass."""


def disagreements(
    reading: str, program: Program, inputs: Mapping[str, Any], wanted: Mapping[str, Any], **options: Any
) -> list[str]:
    """Where a reading differs from the reference."""
    evaluate, element, tolerance = READINGS[reading]
    sizes = {s: SIZES[str(s)] for s in program.sizes}
    found = evaluate(program, inputs, sizes=sizes, **options)
    wrong = []
    for s in program:
        want, got = np.asarray(wanted[s.name], dtype=object), found[s.name]
        assert isinstance(got, np.ndarray)
        assert got.shape == want.shape, (s.name, got.shape, want.shape)
        for at in np.ndindex(want.shape):
            x, y = got[at], MP.mpf(want[at])
            mid, rad = element(x)
            if not MP.isfinite(y):
                good = (MP.isnan(y) and MP.isnan(mid)) or mid == y
            else:
                good = abs(mid - y) <= rad + MP.mpf(tolerance) * (1 + abs(y)) and rad <= MP.mpf(WIDE[reading]) * (1 + abs(y))
            if not good:
                wrong.append(f"{s.name}{list(at)} = {x}, not {MP.nstr(y, 20)}")
    return wrong


@pytest.mark.parametrize("reading", READINGS)
@pytest.mark.parametrize("name", ALL)
def test_every_program_through_every_reading(name: str, reading: str) -> None:
    program, discrete = ALL[name]
    inputs = inputs_of(program, discrete)
    assert disagreements(reading, program, inputs, reference(program, inputs)) == []


@pytest.mark.parametrize("reading", ["mpmath", "balls", "numpy"])
@pytest.mark.parametrize("name", CASES)
def test_gradients_and_tangents_through_the_readings(name: str, reading: str) -> None:
    for made in (adjoint, tangent):
        program = made(CASES[name].program)
        inputs = inputs_of(program, CASES[name].discrete, seed=1)
        assert disagreements(reading, program, inputs, reference(program, inputs)) == []


@pytest.mark.parametrize("name", ["causal", "softcap", "embedding look-up", "linear with normaliser", "product"])
def test_gradients_in_exact_numbers(name: str) -> None:
    program = adjoint(CASES[name].program)
    inputs = inputs_of(program, CASES[name].discrete, seed=2)
    assert disagreements("exact", program, inputs, reference(program, inputs)) == []


# attention in plain loops


def loops(q: Any, k: Any, v: Any, keep: Callable[[int, int], bool], cap: float | None, sink: Any) -> tuple[Any, Any]:
    """O and log-sum-exp of grouped-query attention: (kv head, member, query) loops on Python floats."""
    heads, members, rows, width = q.shape
    out, lse = np.zeros((heads, members, rows, v.shape[-1])), np.zeros((heads, members, rows))
    for h in range(heads):
        for g in range(members):
            for r in range(rows):
                scores = {}
                for s in range(k.shape[1]):
                    if keep(r, s):
                        z = math.fsum(float(q[h, g, r, x]) * float(k[h, s, x]) for x in range(width)) / math.sqrt(width)
                        scores[s] = cap * math.tanh(z / cap) if cap else z
                total = math.fsum(math.exp(z) for z in scores.values()) + (
                    math.exp(float(sink[h, g])) if sink is not None else 0.0
                )
                lse[h, g, r] = math.log(total) if total else -math.inf
                for x in range(v.shape[-1]):
                    top = math.fsum(math.exp(z) * float(v[h, s, x]) for s, z in scores.items())
                    out[h, g, r, x] = top / total if total else 0.0
    return out, lse


VARIANTS: dict[str, tuple[Any, Callable[[int, int], bool], float | None, bool]] = {
    "plain": (sp.true, lambda r, s: True, None, False),
    "causal": (sp.Le(j, i), lambda r, s: s <= r, None, False),
    "strictly causal, first row empty": (sp.Lt(j, i), lambda r, s: s < r, None, False),
    "window, softcap, sink": (sp.And(sp.Le(j, i), sp.Lt(i - j, 2)), lambda r, s: 0 <= r - s < 2, 2.0, True),
    "even keys": (sp.Eq(sp.Mod(j, 2), 0), lambda r, s: s % 2 == 0, None, True),
}


@pytest.mark.parametrize("reading", READINGS)
@pytest.mark.parametrize("name", VARIANTS)
def test_attention_in_plain_loops(name: str, reading: str) -> None:
    where, keep, cap, sink = VARIANTS[name]
    score = None if cap is None else (lambda s, q: sp.Integer(int(cap)) * sp.tanh(s / int(cap)))
    scale = Statement(T("scale"), 1 / sp.sqrt(d))
    program = attention(where, score, sink=sink, grouped=True, lse="e", before=(scale,))
    inputs = inputs_of(program, {}, seed=3)
    o, lse = loops(inputs["Q"], inputs["K"], inputs["V"], keep, cap, inputs.get("sink"))
    found = READINGS[reading][0](program, inputs, sizes={})
    for want, got in ((o, found["O"]), (lse, found["L"])):
        for at in np.ndindex(want.shape):
            mid = float(READINGS[reading][1](got[at])[0])
            assert mid == want[at] or abs(mid - want[at]) < 1e-13 * (1 + abs(want[at])), (at, mid, want[at])


# NaN and infinities


@pytest.mark.parametrize("reading", ["exact", "mpmath", "balls", "numpy"])
def test_masked_nan_and_infinity_never_leak(reading: str) -> None:
    program = adjoint(EMPTY_ROW) if reading != "exact" else EMPTY_ROW
    evaluate, element, _ = READINGS[reading]
    clean = inputs_of(program, {}, 5)
    bad = clean | {"K": clean["K"].copy(), "V": clean["V"].copy()}
    bad["K"][2], bad["V"][2] = [math.nan, math.inf], [-math.inf, math.nan]  # under j < i no query of three keeps key 2
    a, z = evaluate(program, clean), evaluate(program, bad)
    names = ["O", "L", "P"] + (["dQ", "dK", "dV"] if reading != "exact" else [])
    for name in names:
        for at in np.ndindex(a[name].shape):
            x, y = element(a[name][at])[0], element(z[name][at])[0]
            assert x == y, (name, at, x, y)


@pytest.mark.parametrize("reading", ["exact", "mpmath", "balls", "numpy"])
def test_a_kept_nan_is_seen(reading: str) -> None:
    """The check above is not blind: a key that some queries keep spoils these queries, and only these."""
    evaluate, element, _ = READINGS[reading]
    clean = inputs_of(EMPTY_ROW, {}, 5)
    bad = clean | {"V": clean["V"].copy()}
    bad["V"][1, 0] = math.nan
    a, z = evaluate(EMPTY_ROW, clean)["O"], evaluate(EMPTY_ROW, bad)["O"]
    same = [[element(a[r, x])[0] == element(z[r, x])[0] for x in range(2)] for r in range(3)]
    assert same == [[True, True], [True, True], [False, True]]
    assert MP.isnan(element(z[2, 0])[0])


@pytest.mark.parametrize("reading", READINGS)
def test_an_infinite_value_that_is_kept_counts(reading: str) -> None:
    evaluate, element, _ = READINGS[reading]
    given = inputs_of(EMPTY_ROW, {}, 5)
    given["V"][0, 1] = math.inf
    o = evaluate(EMPTY_ROW, given)["O"]
    assert [float(element(o[r, 1])[0]) for r in range(3)] == [0.0, math.inf, math.inf]
    assert all(math.isfinite(float(element(o[r, 0])[0])) for r in range(3))


@pytest.mark.parametrize("reading", READINGS)
def test_an_empty_row_is_zero_and_its_lse_minus_infinity(reading: str) -> None:
    evaluate, element, _ = READINGS[reading]
    found = evaluate(EMPTY_ROW, inputs_of(EMPTY_ROW, {}, 1))
    assert [float(element(x)[0]) for x in found["O"][0]] == [0.0, 0.0]
    assert float(element(found["L"][0])[0]) == -math.inf
    assert math.isfinite(float(element(found["L"][1])[0]))


@pytest.mark.parametrize("reading", READINGS)
def test_a_division_by_zero_is_nan_and_harmless_until_read(reading: str) -> None:
    u, v, x = T("u", i), T("v", i), T("x", i)
    program = _p([Statement(v, (u - u**2) / u), Statement(x, v, where=sp.Ne(u, 0))], {i: n}, ("x",))
    found = READINGS[reading][0](program, {"u": [0, 3, "1/2"]})
    element = READINGS[reading][1]
    assert math.isnan(float(element(found["v"][0])[0]))
    assert [float(element(q)[0]) for q in found["x"]] == [0.0, -2.0, 0.5]


@pytest.mark.parametrize("reading", READINGS)
def test_a_branch_that_is_not_taken_is_harmless(reading: str) -> None:
    u = T("u", i)
    program = _p([Statement(T("x", i), sp.Piecewise((1 / u, sp.Gt(u, 0)), (-u, True)))], {i: n}, ("x",))
    found = READINGS[reading][0](program, {"u": [0, 4, -3]})["x"]
    assert [float(READINGS[reading][1](q)[0]) for q in found] == [0.0, 0.25, 3.0]


# the suite must be able to fail


WRONG: dict[str, dict[str, str]] = {
    "tanh": {"softcap": "tanh"},
    "exp": {"causal": "exp"},
    "log": {"lse": "log"},
    "div": {"causal": "div"},
    "maximum": {"functions": "maximum"},
    "less": {"top-k": "less"},
}


def _spoil(function: str, f: Callable[..., Any]) -> Callable[..., Any]:
    return (lambda x, y: f(y, x)) if function == "less" else (lambda *x: f(*x) * 2)


@pytest.mark.parametrize("reading", READINGS)
@pytest.mark.parametrize("function", WRONG)
def test_a_mistaken_reading_is_caught(function: str, reading: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (name,) = WRONG[function]

    def spoilt(space: Namespace) -> Namespace:
        return Namespace(space.functions | {function: _spoil(function, space.functions[function])})

    if reading == "numpy":
        wrong_space = spoilt(floats.table(np.dtype(np.float64)))
        monkeypatch.setattr(floats, "table", lambda dtype: wrong_space)
    elif reading == "mpmath":
        right = by_mpmath.table(50)
        wrong = dataclasses.replace(right, namespace=spoilt(right.namespace))
        monkeypatch.setattr(by_mpmath, "table", lambda digits: wrong)
    else:
        module = exact if reading == "exact" else balls
        monkeypatch.setattr(module, "TABLE", dataclasses.replace(module.TABLE, namespace=spoilt(module.TABLE.namespace)))
    program, discrete = ALL[name]
    inputs = inputs_of(program, discrete)
    assert disagreements(reading, program, inputs, reference(program, inputs))


@pytest.mark.parametrize("reading", ["exact", "mpmath", "balls"])
def test_a_mistaken_matrix_product_is_caught(reading: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def transposed(table: Any) -> Any:
        return dataclasses.replace(table, matmul=lambda x, y: table.matmul(x, y) * table.number(-1))

    if reading == "mpmath":
        wrong = transposed(by_mpmath.table(50))
        monkeypatch.setattr(by_mpmath, "table", lambda digits: wrong)
    else:
        module = exact if reading == "exact" else balls
        monkeypatch.setattr(module, "TABLE", transposed(module.TABLE))
    program, discrete = ALL["causal"]
    inputs = inputs_of(program, discrete)
    assert disagreements(reading, program, inputs, reference(program, inputs))


# precision and global state


def test_global_contexts_are_untouched() -> None:
    program, discrete = ALL["grouped causal softcap alibi sink lse"]
    before = (mpmath.mp.dps, mpmath.mp.prec, flint.ctx.prec)
    for reading, option in (("mpmath", {"digits": 77}), ("balls", {"bits": 777}), ("exact", {}), ("numpy", {})):
        READINGS[reading][0](program, inputs_of(program, discrete), **option)
    assert (mpmath.mp.dps, mpmath.mp.prec, flint.ctx.prec) == before


@pytest.mark.parametrize("digits", [15, 50, 200])
def test_as_many_digits_are_right_as_were_asked(digits: int) -> None:
    program, discrete = ALL["softcap"]
    inputs = inputs_of(program, discrete)
    low = by_mpmath.evaluate(program, inputs, digits=digits)["O"]
    high = balls.evaluate(program, inputs, bits=4 * digits + 200)["O"]
    context = mpmath.MPContext()
    context.dps = digits + 60
    for x, y in zip(low.ravel(), high.ravel(), strict=True):
        mid, _ = balls.parts(y)
        want = context.mpf(mid.numerator) / mid.denominator
        assert abs(context.mpf(x) - want) <= abs(want) * context.mpf(10) ** -digits


@pytest.mark.parametrize("bits", [60, 200, 1000])
def test_balls_contain_what_more_bits_give(bits: int) -> None:
    for name in ("softcap", "sink", "RMS norm", "sigmoid weights", "functions"):
        program, discrete = ALL[name]
        inputs = inputs_of(program, discrete, seed=7)
        low, high = balls.evaluate(program, inputs, bits=bits), balls.evaluate(program, inputs, bits=2 * bits + 100)
        for s in program:
            if not s.range_only:
                assert all(
                    x.overlaps(y) and x.rad() >= y.rad() for x, y in zip(low[s.name].ravel(), high[s.name].ravel(), strict=True)
                )
