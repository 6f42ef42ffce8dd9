"""Random programs: expressions, sums, products of matrices, conditions and look-ups that nobody thought of together."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import sympy as sp
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from symattn.errors import SymattnError
from symattn.indexed import index
from symattn.program import Program, Statement, indices, size, tensor
from tests.truth.double.enclosing import violations

i, j, c = indices("i j c")
N, M, D = size("n"), size("m"), size("d")
DIMS = {i: N, j: M, c: D}
BOUNDED = (sp.exp, sp.tanh, sp.sin, sp.cos, sp.erf)


@st.composite
def scalars(draw: Any, reads: list[sp.Expr], depth: int = 3) -> sp.Expr:
    """An expression in some reads."""
    kind = draw(st.sampled_from(["read", "number", "add", "mul", "function", "square", "root", "ratio", "extreme", "case"]))
    if depth == 0 or kind == "read":
        return draw(st.sampled_from(reads))
    if kind == "number":
        return sp.Rational(draw(st.integers(-9, 9)), draw(st.sampled_from([1, 2, 3, 7])))
    sub = scalars(reads, depth - 1)
    a = draw(sub)
    if kind == "function":
        f = draw(st.sampled_from([*BOUNDED, sp.Abs, sp.log]))
        return f(1 + a**2) if f is sp.log else f(a)
    if kind == "square":
        return a ** draw(st.integers(2, 3))
    if kind == "root":
        return sp.sqrt(a**2 + sp.Rational(1, 3))
    b = draw(sub)
    if kind == "add":
        return a - b
    if kind == "mul":
        return a * b
    if kind == "ratio":
        return a / (1 + b**2)
    if kind == "extreme":
        return draw(st.sampled_from([sp.Max, sp.Min]))(a, b)
    return sp.Piecewise((a, sp.Lt(draw(st.sampled_from(reads)), b)), (b, True))


@st.composite
def programs(draw: Any) -> Program:
    """Inputs x[i], y[j], A[i, c], B[j, c]; a matrix product, an expression on (i, j), sums over both, something of the sums."""
    x, y, q, k = tensor("x", i), tensor("y", j), tensor("A", i, c), tensor("B", j, c)
    where = draw(st.sampled_from([sp.true, sp.Le(j, i), sp.Lt(j, i), sp.Ne(j, i) & sp.Le(j - i, 1), sp.Lt(y, sp.Rational(1, 2))]))
    S, E, m = tensor("S", i, j), tensor("E", i, j), tensor("r", i)
    statements = [
        Statement(S, q * k, (c,), where=where),
        Statement(E, draw(scalars([S, x, y], 3)), where=where),
        Statement(m, draw(st.sampled_from([E, S * E, E + y, E * y])), (j,), draw(st.sampled_from(["sum", "max"])), where=where),
        Statement(tensor("P", i, j), draw(scalars([E, S, m], 2)), where=where),
        Statement(tensor("O", i, c), tensor("P", i, j) * k, (j,), where=where),
        Statement(tensor("G", j, c), tensor("P", i, j) * tensor("O", i, c), (i,), where=where),
        Statement(tensor("s"), draw(st.sampled_from([tensor("P", i, j) ** 2, tensor("P", i, j) * E])), (i, j), where=where),
        Statement(tensor("t", j), draw(scalars([tensor("s"), y], 2))),
    ]
    return Program(tuple(statements), DIMS, ("r", "O", "G", "t"))


@st.composite
def arrays(draw: Any, shape: tuple[int, ...]) -> np.ndarray:
    r = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    scale = draw(st.sampled_from([1.0, 1.0, 2.0**-3, 8.0, 2.0**-70, 2.0**40]))
    form = draw(st.sampled_from([np.float32, np.float64, np.float16]))
    values = r.standard_normal(shape) * (scale if form is not np.float16 else min(max(scale, 2.0**-3), 8.0))
    if draw(st.booleans()):
        values = np.rint(values * 4) / 4
    return values.astype(form)


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_random_programs(data: Any) -> None:
    check(data)


@pytest.mark.slow
@settings(max_examples=1000, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_many_random_programs(data: Any) -> None:
    check(data)


def check(data: Any) -> None:
    """A program at random inputs."""
    program = data.draw(programs())
    n, m, d = (data.draw(st.integers(1, 4)) for _ in range(3))
    shapes = {"x": (n,), "y": (m,), "A": (n, d), "B": (m, d)}
    inputs = {k: data.draw(arrays(s)) for k, s in shapes.items() if k in program.inputs}
    try:
        wrong, _ = violations(program, inputs, sizes={"n": n, "m": m, "d": d}, points=data.draw(st.sampled_from([1, 5, 1 << 20])))
    except SymattnError:  # balls cannot decide a condition, or what is read has no value
        assume(False)
    assert not wrong


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_random_sums_of_products(data: Any) -> None:
    a, b = indices("a b")
    t = index("t")
    n, m = data.draw(st.integers(2, 5)), data.draw(st.integers(2, 5))
    X, W, p = tensor("X", a, b), tensor("W", b), tensor("p", a)
    statements = (
        Statement(tensor("u", a), X * W * tensor("W", b), (b,)),
        Statement(
            tensor("v", a, b), data.draw(st.sampled_from([X * tensor("u", a), tensor("X", a - 1, b) * W])), where=sp.Ge(a, 1)
        ),
        Statement(tensor("g", t, b), tensor("v", a, b) * p, (a,), where=sp.Eq(t, tensor("tok", a))),
        Statement(tensor("h"), tensor("g", t, b) * W, (t, b)),
        Statement(tensor("z", b), X, (a,), "prod"),
    )
    program = Program(statements, {a: size("n"), b: size("m"), t: size("k")}, ("u", "v", "g", "h", "z"))
    r = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    inputs = {
        "X": r.standard_normal((n, m)).astype(np.float32),
        "W": r.standard_normal(m),
        "p": r.standard_normal(n).astype(np.float16),
        "tok": r.integers(0, 3, n),
    }
    wrong, known = violations(program, inputs, sizes={"n": n, "m": m, "k": 3}, points=data.draw(st.sampled_from([1, 1 << 20])))
    assert not wrong
    assert known == 1
