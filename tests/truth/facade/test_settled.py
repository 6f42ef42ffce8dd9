"""Ties and zeros: settled exactly where sums and products show them, and never where they do not."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
import sympy as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from symattn.definition import Definition
from symattn.program import Program, Statement, indices, size
from symattn.program import tensor as T
from symattn.readings import balls
from symattn.readings.code import Namespace
from symattn.truth import nametable, settled, truth
from symattn.truth.derived import with_gradient
from symattn.truth.names import UNKNOWN, Known, Name, total
from symattn.truth.values import Balls, Floats

i, j = indices("i j")
n, m = size("n"), size("m")
SIZES = {"n": 2, "m": 3, "d": 3, "dv": 2}


def inputs(**changed: Any) -> dict[str, Any]:
    r = np.random.default_rng(5)
    shapes = {"Q": (2, 3), "K": (3, 3), "V": (3, 2), "dO": (2, 2), "dL": (2,)}
    return {k: r.integers(-20, 20, s) / 16 for k, s in shapes.items()} | changed


def exact(definition: Definition, given: dict[str, Any], *outputs: str) -> dict[str, Any]:
    program = with_gradient(definition.program())
    lean = program.with_statements(program.statements, outputs).live()
    return settled.settle(lean, {k: given[k] for k in lean.inputs}, SIZES, outputs)


def test_a_constant_column_of_v_comes_out():
    v = inputs()["V"]
    v[:, 1] = 0.375
    found = exact(Definition(), inputs(V=v), "O", "dQ")
    assert found["O"].tolist() == [[None, Fraction(3, 8)]] * 2
    assert all(x is None for x in found["dQ"].ravel())


def test_equal_scores_give_means():
    """The keys of query 0 have one score, which is irrational; those of query 1 do not."""
    q, k = np.array([[0.0, 0.0, 1.0], [1.0, 2.0, 1.0]]), inputs()["K"]
    k[:, 2] = 0.25
    v = inputs()["V"]
    found = exact(Definition(), inputs(Q=q, K=k), "O", "L")
    mean = [sum(map(Fraction, column)) / 3 for column in v.T.tolist()]
    assert found["O"].tolist() == [mean, [None, None]] and found["L"].tolist() == [None, None]


def test_a_constant_row_of_dp_gives_no_gradient():
    """dO is orthogonal to what distinguishes the values: dP is constant along the row, so dS is 0 there, and only there."""
    v = np.array([[1.0, 5.0], [2.0, 5.0], [4.0, 5.0]])
    g = np.array([[0.0, 3.0], [1.0, 1.0]])
    given = inputs(Q=np.array([[0.25, -1.0, 2.0], [1.0, 3.0, -0.5]]), V=v, dO=g, dL=np.zeros(2))
    found = exact(Definition(), given, "dS", "dQ", "dK")
    assert found["dS"].tolist() == [[0, 0, 0], [None] * 3] and found["dQ"].tolist() == [[0, 0, 0], [None] * 3]
    assert all(x is None for x in found["dK"].ravel())
    assert exact(Definition(), given | {"dL": np.array([1.0, 0.0])}, "dS")["dS"][0].tolist() == [None] * 3


@pytest.mark.parametrize(
    "definition",
    [
        Definition(causal="bottom-right"),
        Definition(softcap=3),
        Definition(alibi=True, alibi_slopes="given"),
        Definition(window=(1, 0)),
        Definition(lse_base="2"),
    ],
    ids=str,
)
def test_other_variants_need_no_rule_of_their_own(definition):
    v = np.full((3, 2), 0.75)
    program = definition.program()
    given = inputs(V=v) | {"slope": 0.1}
    found = settled.settle(program, {k: given[k] for k in program.inputs}, SIZES, ("O",))["O"]
    assert found.tolist() == [[Fraction(3, 4)] * 2] * 2


def test_a_sink_takes_its_part_so_nothing_is_settled():
    program = Definition(sink=True).program()
    given = inputs(V=np.full((3, 2), 0.75)) | {"sink": np.array(0.5)}
    found = settled.settle(program, {k: given[k] for k in program.inputs}, SIZES, ("O",))["O"]
    assert found.tolist() == [[None, None]] * 2


def test_a_tie_of_the_format_is_rounded_by_its_exact_value():
    """The mean of 1 and its neighbour in bfloat16 under equal irrational scores: a tie, which goes to the even one."""
    program = Definition(lse=False, score="exp(s)").program()
    one = np.float32(1 + 2.0**-7)
    given = {"Q": [[1.0]], "K": [[1.0], [1.0]], "V": np.array([[1.0, one], [one, 1 + 2.0**-6]], dtype=np.float32)}
    found = truth(program, given, decide="bfloat16")["O"]
    assert found.status.tolist() == [["exact", "exact"]] and found.tier.tolist() == [["settled"] * 2]
    assert found.round("bfloat16").astype(float).tolist() == [[1.0, 1 + 2.0**-6]]


def test_what_is_not_shown_stays_undecided_with_both_neighbours():
    program = Definition(lse=False, score="s*tanh(s)").program()
    given = {"Q": [[1.0]], "K": [[1.0], [-1.0]], "V": [[1.0], [1 + 2.0**-7]]}
    found = truth(program, given, decide="bfloat16")
    assert found["O"].status.tolist() == [["undecided"]] and not found.decided
    assert [x.astype(float).tolist() for x in found["O"].neighbours("bfloat16")] == [[[1.0]], [[1 + 2.0**-7]]]
    bits = [s.bits for s in found.steps]
    first = next(b for b in bits if b > 64)
    assert max(bits) == 4 * first  # the cap


def test_a_hidden_zero_is_followed_below_the_smallest_subnormal():
    x, r = T("x", i), T("r", i)
    hidden = Program((Statement(r, sp.sqrt(T("u", i))), Statement(x, r**2 - T("u", i) + T("v", i))), {i: n}, ("x",))
    for name in ("float16", "bfloat16", "float32", "float64"):
        found = truth(hidden, {"u": [3, 3, 3], "v": [0, 1, "1e-30"]}, decide=name)["x"]
        assert found.decided and found.round(name).astype(float).tolist()[:2] == [0.0, 1.0]


# the numbers themselves


def value(x: Known, mp: Any) -> Any:
    """What a number stands for, by mpmath: names are unfolded."""

    def of(name: Name) -> Any:
        if name.kind == "sum":
            return mp.fsum(mp.mpf(c.numerator) / c.denominator * product(f) for f, c in name.of)
        argument = value(name.of, mp)
        return {"exp": mp.exp, "tanh": mp.tanh, "sqrt": mp.sqrt, "log": mp.log}[name.kind](argument)

    def product(factors: Any) -> Any:
        out = mp.mpf(1)
        for name, k in factors:
            out *= of(name) ** k
        return out

    return mp.mpf(x.coefficient.numerator) / x.coefficient.denominator * product(x.factors)


leaves = st.fractions(min_value=-3, max_value=3, max_denominator=5)
trees = st.recursive(
    leaves,
    lambda t: st.one_of(st.tuples(st.sampled_from("+-*/"), t, t), st.tuples(st.sampled_from(["exp", "tanh", "sqrt", "log"]), t)),
    max_leaves=12,
)


def both(tree: Any, mp: Any) -> tuple[Any, Any]:
    """An expression in numbers known up to names, and by mpmath."""
    if isinstance(tree, Fraction):
        return Known(tree), mp.mpf(tree.numerator) / tree.denominator
    head, *rest = tree
    found = [both(t, mp) for t in rest]
    f = nametable.NAMESPACE.functions
    a = [k for k, _ in found]
    known = {"+": lambda: a[0] + a[1], "-": lambda: a[0] - a[1], "*": lambda: a[0] * a[1], "/": lambda: f["div"](*a)}.get(
        head, lambda: f[head](*a)
    )()
    x = [v for _, v in found]
    if known is UNKNOWN:
        return known, mp.nan
    number = {"+": lambda: x[0] + x[1], "-": lambda: x[0] - x[1], "*": lambda: x[0] * x[1], "/": lambda: x[0] / x[1]}.get(
        head, lambda: getattr(mp, head)(*x)
    )()
    return known, number


@settings(max_examples=300, deadline=None)
@given(trees)
def test_numbers_up_to_names_are_numbers(tree):
    mp = mpmath.mp.clone()
    mp.dps = 60
    known, number = both(tree, mp)
    if known is UNKNOWN or abs(number) > 1e200:
        return
    scale = max(abs(number), 1)
    assert abs(value(known, mp) - number) <= mp.mpf(10) ** -35 * scale
    if known.positive:
        assert number > 0
    if known.rational is not None:
        assert abs(mp.mpf(known.rational.numerator) / known.rational.denominator - number) <= mp.mpf(10) ** -35 * scale


def test_the_order_of_a_sum_does_not_matter():
    a, b, c = (nametable.NAMESPACE.functions["exp"](Known(k)) for k in (1, 2, 3))
    assert total([a, b, c]) == total([c, a, b]) == total([b * 2, c, a, -b])
    assert total([a * 3 / b, c * 3 / b]) == total([a, c]) * 3 / b and total([a, -a]) == Known(0)


def test_nothing_is_divided_by_what_may_be_zero():
    t = nametable.NAMESPACE.functions["tanh"](Known(1))
    zero = total([t, Known(-1)])
    assert zero / zero is UNKNOWN and Known(1) / t is UNKNOWN and Known(0) / Known(0) is UNKNOWN
    assert UNKNOWN * Known(0) is UNKNOWN and (Known(0) * UNKNOWN) is UNKNOWN


# planted slips


def test_a_settled_value_outside_of_its_enclosure_is_an_error():
    with pytest.raises(AssertionError, match="outside"):
        settled.check("x", Floats(np.array([0.5]), np.array([1e-9])), [(0, Fraction(1, 3))])


@pytest.mark.parametrize("slip", ["equal terms count once", "exp of anything is one name"])
def test_planted_slips_show(slip, monkeypatch):
    """A wrong rule settles what is not so, and the enclosure contradicts it."""
    if slip == "equal terms count once":
        monkeypatch.setattr(settled, "TABLE", _with(add=lambda values: total(dict.fromkeys(values))))
    else:
        one = nametable.NAMESPACE.functions["exp"](Known(1))
        monkeypatch.setattr(settled, "TABLE", _with(exp=lambda x: one))
    v = np.array([[1.0, 2.0], [-1.0, 2.0], [3.0, 2.0]])
    program = Definition(lse=False).program()
    given = {k: x for k, x in inputs(V=v, Q=np.array([[0.0] * 3, [1.0, 0.5, 2.0]])).items() if k in program.inputs}
    found = settled.settle(program, given, SIZES, ("O",))["O"]
    wrong = [(k, x) for k, x in enumerate(found.ravel().tolist()) if x is not None]
    with pytest.raises(AssertionError, match="outside"):
        settled.check("O", Balls(balls.evaluate(program, given, bits=200)["O"]), wrong)


def _with(**changed: Any) -> Any:
    fields = {k: changed.pop(k) for k in ("add",) if k in changed}
    return replace(nametable.TABLE, namespace=Namespace({**nametable.NAMESPACE.functions, **changed}), **fields)
