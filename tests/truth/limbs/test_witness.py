"""mpmath, which shares no code with the engine, and identities that need no reference."""

from fractions import Fraction

import flint
import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from symattn.definition import Definition
from symattn.errors import ProgramError, UnfitError
from symattn.program import Program, Statement, indices, size, tensor
from symattn.readings import balls
from symattn.truth.derived import with_gradient
from symattn.truth.limbs import evaluate, unfit
from tests.truth.limbs import enclosing


def by_mpmath(q, k, v, g, bits):
    """Attention and its gradient, written out."""
    with mpmath.workprec(bits):
        mp = [mpmath.matrix(x.tolist()) for x in (q, k, v, g)]
        q, k, v, g = mp
        scale = 1 / mpmath.sqrt(q.cols)
        s = q * k.T * scale
        e = s.apply(mpmath.exp)
        total = [mpmath.fsum(e[i, j] for j in range(e.cols)) for i in range(e.rows)]
        p = mpmath.matrix(e.rows, e.cols)
        for i in range(e.rows):
            for j in range(e.cols):
                p[i, j] = e[i, j] / total[i]
        o, dp = p * v, g * v.T
        ds = mpmath.matrix(e.rows, e.cols)
        for i in range(e.rows):
            d = mpmath.fsum(g[i, c] * o[i, c] for c in range(g.cols))
            for j in range(e.cols):
                ds[i, j] = p[i, j] * (dp[i, j] - d) * scale
        return {"O": o, "dQ": ds * k, "dK": ds.T * q, "dV": p.T * g}, [mpmath.log(x) for x in total]


def test_mpmath_agrees_to_the_digits_that_are_claimed():
    program = with_gradient(Definition().program())
    inputs = enclosing.draw(program, 5, sizes={"n": 9, "m": 11, "d": 6, "dv": 5})
    inputs["dL"] = np.zeros(9, dtype=np.float32)
    found = evaluate(program, inputs, bits=170)
    matrices, lse = by_mpmath(*(inputs[n].astype(float) for n in ("Q", "K", "V", "dO")), bits=400)
    with mpmath.workprec(400):
        for name, exact in matrices.items():
            radius = mpmath.mpf(found[name].radius.numerator) / found[name].radius.denominator
            for at, x in np.ndenumerate(found[name].midpoints()):
                assert abs(mpmath.mpf(x.numerator) / x.denominator - exact[at]) <= radius
        for x, exact in zip(found["L"].midpoints().tolist(), lse, strict=True):
            assert abs(mpmath.mpf(x.numerator) / x.denominator - exact) <= mpmath.mpf(2) ** -165


def test_identities_at_a_larger_size():
    """Sums over all elements: ``sum_j dV = sum_i dO`` and ``<dQ, Q> = <dK, K>``, within the radii."""
    n = 300
    program = with_gradient(Definition(causal="top-left").program())
    inputs = enclosing.draw(program, 6, sizes={"n": n, "m": n, "d": 16, "dv": 8})
    found = evaluate(program, inputs, bits=170, outputs=("dQ", "dK", "dV"))
    mid = {k: v.midpoints() for k, v in found.items()}
    exact = {k: np.vectorize(Fraction, otypes=[object])(inputs[k].astype(float)) for k in ("Q", "K", "dO")}
    assert max(abs(mid["dV"].sum(axis=0) - exact["dO"].sum(axis=0))) <= n * found["dV"].radius
    spread = sum(float(np.abs(inputs[k]).sum()) * float(found["d" + k].radius) for k in "QK")
    assert abs((mid["dQ"] * exact["Q"]).sum() - (mid["dK"] * exact["K"]).sum()) <= spread


def test_the_row_that_is_asked_is_the_row_of_the_whole():
    program = Definition().program()
    inputs = enclosing.draw(program, 7, sizes={"n": 40, "m": 33, "d": 5, "dv": 4})
    whole = evaluate(program, inputs, bits=150)["O"]
    part = evaluate(program, {**inputs, "Q": inputs["Q"][17:18]}, bits=150)["O"]
    assert (np.abs(whole.midpoints()[17] - part.midpoints()[0]) <= whole.radius + part.radius).all()


@given(
    st.integers(1, 5), st.integers(1, 5), st.integers(1, 3), st.integers(0, 2**32 - 1), st.integers(0, 30), st.integers(60, 260)
)
@settings(max_examples=25, deadline=None)
def test_random_inputs(n, m, d, seed, spread, bits):
    program = with_gradient(Definition(causal="bottom-right").program())
    inputs = enclosing.draw(program, seed, sizes={"n": n, "m": m, "d": d, "dv": d}, spread=spread)
    enclosing.check(program, inputs, bits=bits)


def test_any_program_of_that_kind_is_taken():
    """Nothing is recognised by name: other letters, another order of indices, no quotient, a sum of two matrices."""
    a, b, x, y = indices("a b x y")
    u, w, e, t, z = (tensor(*v) for v in (("U", x, a), ("W", x, b), ("E", a, b), ("top", a), ("Z", y, a)))
    product = Statement(tensor("T", a, b), u * w, (x,))
    program = Program(
        (
            product,
            Statement(t, tensor("T", a, b) / 3, (b,), "max", range_only=True),
            Statement(e, __import__("sympy").exp(tensor("T", a, b) / 3 - t)),
            Statement(tensor("l", a), e, (b,)),
            Statement(z, 5 * e * tensor("A", b, y) / tensor("l", a), (b,)),
        ),
        {a: size("na"), b: size("nb"), x: size("nx"), y: size("ny")},
        ("Z",),
    )
    inputs = enclosing.draw(program, 8, sizes={"na": 4, "nb": 5, "nx": 3, "ny": 2})
    assert unfit(program, inputs) is None
    enclosing.check(program, inputs)


@pytest.mark.parametrize(
    "definition,word",
    [
        (Definition(softcap=20), "tanh"),
        (Definition(rope="half"), "dot product"),
        (Definition(normalizer="sigmoid"), ""),
        (Definition(normalizer="sparsemax"), ""),
        (Definition(form="linear"), ""),
        (Definition(qk_norm="rms"), ""),
    ],
    ids=str,
)
def test_what_it_does_not_take_it_says(definition, word):
    program = definition.program()
    inputs = enclosing.draw(program, 9)
    why = unfit(program, inputs)
    assert why and word in why
    with pytest.raises(UnfitError):
        evaluate(program, inputs)


def test_numbers_that_it_does_not_take():
    program = Definition().program()
    inputs = enclosing.draw(program, 10)
    assert "exactly" in unfit(program, {**inputs, "V": [["1/3"] * 3] * 6})
    with pytest.raises(UnfitError):
        evaluate(program, {**inputs, "V": np.full((6, 3), np.inf)})
    with pytest.raises(UnfitError):
        evaluate(program, {**inputs, "Q": np.where(np.arange(4) < 1, 1e300, 1e-300) * np.ones((5, 4))})
    with pytest.raises(ProgramError):
        evaluate(program, inputs, outputs=("X",))


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=str)
def test_sampled_elements_of_a_large_problem(dtype):
    """Rows of the output, the log-sum-exp and dQ from balls on these rows alone; identities for what sums over all rows."""
    n, d = 4096, 16
    program = with_gradient(Definition(causal="top-left").program())
    inputs = enclosing.draw(program, 20, dtype, {"n": n, "m": n, "d": d, "dv": d})
    found = evaluate(program, inputs, bits=170)
    for row in (0, 1, 1717, n - 1):
        keys = {k: inputs[k][: row + 1] for k in ("K", "V")}
        here = {k: inputs[k][row : row + 1] for k in ("Q", "dO", "dL")}
        plain = with_gradient(Definition().program())
        exact = balls.evaluate(plain, {**keys, **here}, bits=360)
        for name in ("O", "L", "dQ"):
            places = found[name].laid(np.arange(np.prod(found[name].sizes)))[row]
            for value, ball in zip(found[name].some(np.ravel(places)), np.ravel(exact[name][0]), strict=True):
                mid, rad = balls.parts(ball)
                assert abs(value * Fraction(2) ** found[name].exponent - mid) + rad <= found[name].radius
    total = found["dV"].midpoints().sum(axis=0)
    exact_total = np.vectorize(Fraction, otypes=[object])(inputs["dO"].astype(float)).sum(axis=0)
    assert max(abs(total - exact_total)) <= n * found["dV"].radius


def columns_by_flint(inputs, columns, bits):
    """The rows of dK and dV of some keys of causal attention, by the formulas, from balls of python-flint alone."""
    q, k, v, g, h = (inputs[n].astype(float).tolist() for n in ("Q", "K", "V", "dO", "dL"))
    with balls.precision(bits):
        scale = 1 / flint.arb(len(q[0])).sqrt()
        keys, values = flint.arb_mat(k).transpose(), flint.arb_mat(v).transpose()
        found = {j: (flint.arb_mat(1, len(k[0])), flint.arb_mat(1, len(v[0]))) for j in columns}
        for start in range(0, len(q), 64):
            rows = range(start, min(start + 64, len(q)))
            scores = (flint.arb_mat([q[i] for i in rows]) * keys * scale).tolist()
            products = (flint.arb_mat([g[i] for i in rows]) * values).tolist()
            for i, s, dp in zip(rows, scores, products, strict=True):
                e = [x.exp() for x in s[: i + 1]]
                total = sum(e, flint.arb(0))
                mean = sum((a * b for a, b in zip(e, dp, strict=False)), flint.arb(0)) / total
                for j in (j for j in columns if j <= i):
                    p = e[j] / total
                    ds = p * (dp[j] - mean + flint.arb(h[i])) * scale
                    dk, dv = found[j]
                    found[j] = dk + flint.arb_mat([q[i]]) * ds, dv + flint.arb_mat([g[i]]) * p
    return {j: {"dK": dk.tolist()[0], "dV": dv.tolist()[0]} for j, (dk, dv) in found.items()}


def check_columns(inputs, columns, bits):
    """Some rows of dK and dV of a causal problem are within their radii of what the formulas give."""
    found = evaluate(with_gradient(Definition(causal="top-left").program()), inputs, bits=bits, outputs=("dK", "dV"))
    for j, exact in columns_by_flint(inputs, columns, bits + 190).items():
        for name, row in exact.items():
            places = found[name].laid(np.arange(np.prod(found[name].sizes)))[j]
            for value, ball in zip(found[name].some(np.ravel(places)), row, strict=True):
                mid, rad = balls.parts(ball)
                assert abs(value * Fraction(2) ** found[name].exponent - mid) + rad <= found[name].radius, (name, j)
                assert mid != 0 and abs(mid) > found[name].radius * 2**40


def long(n, d):
    return enclosing.draw(with_gradient(Definition().program()), 21, np.float32, {"n": n, "m": n, "d": d, "dv": d})


def test_rows_of_the_gradients_of_keys_and_values():
    check_columns(long(70, 4), (0, 33, 69), 170)


@pytest.mark.slow
def test_sampled_rows_of_the_gradients_of_keys_and_values_of_a_large_problem():
    """Each sums over all queries after its key: all weights are formed once more, in balls."""
    check_columns(long(4096, 16), (0, 1, 1717, 4000), 170)
