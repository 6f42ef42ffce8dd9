"""What scales or shifts is seen to cancel, in scans and out of them; what stays in any place is not."""

import pytest
import sympy as sp

from symattn.cancelling import shifts, shifts_cancel
from symattn.indexed import indices, size, tensor
from symattn.program import Program, Scan, Statement

i, j, t = indices("i j t")
n, m, T = size("n"), size("m"), size("T")
Z, M, L = tensor("z", i, j), tensor("m", i), tensor("l", i)
DIMS = {i: n, j: m, t: T}


def softmax(*after, outputs=("o",), total=None):
    listed = (
        Statement(tensor("E", i, j), sp.exp(Z - M)),
        total or Statement(L, tensor("E", i, j), (j,)),
        *after,
    )
    return Program(listed, DIMS, outputs)


def out(expr, name="o"):
    return Statement(tensor(name, i), expr)


RIGHT = {
    "log-sum-exp": softmax(out(M + sp.log(L))),
    "base 2": softmax(out((M + sp.log(L)) / sp.log(2))),
    "weights": softmax(Statement(tensor("o", i, j), tensor("E", i, j) / L)),
    "a power of weights": softmax(Statement(tensor("o", i, j), (tensor("E", i, j) / L) ** sp.Rational(3, 2))),
    "a sink": softmax(
        out(tensor("r", i) / L),
        total=Statement(tensor("r", i), tensor("E", i, j), (j,)),
    ).with_statements(
        (
            Statement(tensor("E", i, j), sp.exp(Z - M)),
            Statement(tensor("r", i), tensor("E", i, j), (j,)),
            Statement(L, tensor("r", i) + sp.exp(tensor("sink") - M)),
            out(tensor("r", i) / L),
        )
    ),
    "through a function of what is left": softmax(out(sp.tanh(tensor("w", i))), outputs=("o",)).with_statements(
        (
            Statement(tensor("E", i, j), sp.exp(Z - M)),
            Statement(L, tensor("E", i, j), (j,)),
            Statement(tensor("p", i, j), tensor("E", i, j) / L),
            Statement(tensor("o", i), sp.tanh(tensor("p", i, j)), (j,)),
        )
    ),
}
WRONG = {
    "log-sum-exp without the shift": softmax(out(sp.log(L))),
    "the shift twice": softmax(out(2 * M + sp.log(L))),
    "base 2 in one place": softmax(out(M + sp.log(L) / sp.log(2))),
    "divided twice": softmax(Statement(tensor("o", i, j), tensor("E", i, j) / L**2)),
    "one more in the sum": softmax(Statement(tensor("o", i, j), tensor("E", i, j) / (L + 1))),
    "a sink without the shift": softmax(out(L / (L + sp.exp(tensor("sink"))))),
    "another row's": softmax(out(tensor("m", 0) + sp.log(L))),
    "in a function": softmax(out(sp.tanh(L))),
    "rounded": softmax(out(sp.floor(M))),
    "in a condition": softmax(Statement(tensor("o", i), sp.S.One, where=sp.Gt(L, 1))),
    "summed over its own index": softmax(Statement(tensor("o"), L, (i,))),
    "a shift multiplied by what is left": softmax(out(M * sp.log(L) + sp.log(L) ** 2)),
}


@pytest.mark.parametrize("name", RIGHT)
def test_what_cancels(name):
    assert shifts_cancel(RIGHT[name], {"m"})


@pytest.mark.parametrize("name", WRONG)
def test_what_stays(name):
    assert not shifts_cancel(WRONG[name], {"m"})


def recurrence(gain, add, start=0):
    """``l[t] = gain*l[t-1] + add``, and its value at the last step with the shift there."""
    state = tensor("l", t)
    step = Statement(state, gain * state.xreplace({t: t - 1}) + add + start, scan=Scan(t))
    last = Statement(tensor("o"), (tensor("m", T - 1) + sp.log(tensor("l", T - 1))))
    return Program((step, last), {t: T}, ("o",), {"m": (T,), "z": (T,)})


now, before = tensor("m", t), tensor("m", t - 1)


def test_scans():
    add = sp.exp(tensor("z", t) - now)
    assert shifts_cancel(recurrence(sp.exp(before - now), add), {"m"})
    assert shifts(recurrence(sp.exp(before - now), add), {"m"})["l"].by == -now
    assert not shifts_cancel(recurrence(sp.exp(now - before), add), {"m"})
    assert not shifts_cancel(recurrence(sp.S.One, add), {"m"})
    assert not shifts_cancel(recurrence(sp.exp(before - now), add, start=1), {"m"})
    assert not shifts_cancel(recurrence(sp.exp(2 * (before - now)), add), {"m"})


def test_a_shifted_tensor_is_read_only_where_it_is_defined():
    """Outside its domain a statement is 0 and not shifted."""
    some = sp.Ge(tensor("c", i), 1)
    lse = Statement(tensor("Lt", i), M + sp.log(L), where=some)
    assert shifts_cancel(softmax(lse, Statement(tensor("o", i), sp.exp(tensor("Lt", i)), where=some)), {"m"})
    bare = Statement(tensor("Lt", i), M, where=some)
    shifted = Statement(tensor("o", i), tensor("Lt", i) - M, where=some)
    assert shifts_cancel(softmax(bare, shifted), {"m"})
    assert not shifts_cancel(softmax(bare, Statement(tensor("o", i), tensor("Lt", i) - M)), {"m"})
