"""Balls: special values beside them, three-valued comparisons, what is undecided, the guarded precision."""

from __future__ import annotations

import itertools
import math
import operator
import threading
from fractions import Fraction
from typing import Any

import flint
import pytest
import sympy as sp

from symattn.errors import InputValueError, UndecidedError
from symattn.program import Program, Statement, indices, size
from symattn.program import tensor as T
from symattn.readings import balls
from symattn.readings.specials import NAN, NEGATIVE, POSITIVE, Special

i, j = indices("i j")
n, m = size("n"), size("m")
VALUES = [math.nan, math.inf, -math.inf, 0.0, 1.5, -2.0]


def _of(x: float) -> Any:
    return balls.ball(x if not math.isfinite(x) else Fraction(x))


def _float(x: Any) -> float:
    return x.value if isinstance(x, Special) else float(x)


@pytest.mark.parametrize("op", [operator.add, operator.sub, operator.mul])
def test_special_values_follow_the_floats(op: Any) -> None:
    for a, b in itertools.product(VALUES, repeat=2):
        got, want = _float(op(_of(a), _of(b))), op(a, b)
        assert got == want or (math.isnan(got) and math.isnan(want)), (a, b, got, want)


def test_division_follows_the_floats_except_that_by_zero_it_is_nan() -> None:
    div = balls.NAMESPACE.functions["div"]
    for a, b in itertools.product(VALUES, repeat=2):
        got, want = _float(div(_of(a), _of(b))), a / b if b else math.nan
        assert got == want or (math.isnan(got) and math.isnan(want)), (a, b, got, want)


@pytest.mark.parametrize(("name", "op"), [("less", operator.lt), ("less_equal", operator.le), ("equal", operator.eq)])
def test_comparisons_follow_the_floats(name: str, op: Any) -> None:
    for a, b in itertools.product(VALUES, repeat=2):
        assert balls.NAMESPACE.functions[name](_of(a), _of(b)) is op(a, b), (a, b)


def test_comparisons_of_overlapping_balls_are_undecided() -> None:
    x, far = flint.arb(0, 1), flint.arb(5)
    f = balls.NAMESPACE.functions
    assert f["less"](x, 0) is None and f["less_equal"](x, x) is None and f["equal"](x, 0) is None
    assert f["less"](x, far) is True and f["less"](far, x) is False and f["equal"](x, far) is False
    assert f["less"](flint.arb.nan(), POSITIVE) is None  # nothing is known of it
    assert f["less"](far, POSITIVE) is True


@pytest.mark.parametrize(
    ("name", "at_minus", "at_plus"),
    [
        ("exp", 0, math.inf),
        ("tanh", -1, 1),
        ("erf", -1, 1),
        ("log", math.nan, math.inf),
        ("sqrt", math.nan, math.inf),
        ("sin", math.nan, math.nan),
    ],
)
def test_limits_of_functions(name: str, at_minus: float, at_plus: float) -> None:
    f = balls.NAMESPACE.functions[name]
    for x, want in ((NEGATIVE, at_minus), (POSITIVE, at_plus), (NAN, math.nan)):
        got = _float(f(x))
        assert got == want or (math.isnan(got) and math.isnan(want))


def test_log_of_zero_and_of_less() -> None:
    f = balls.NAMESPACE.functions
    assert f["log"](flint.arb(0)) is NEGATIVE
    assert f["log"](flint.arb(-1)) is NAN and f["sqrt"](flint.arb(-1)) is NAN
    assert not f["log"](flint.arb(0, 1)).is_finite()  # may be anything: not NaN, but unknown


def _program(where: Any, expr: Any = None) -> Program:
    return Program((Statement(T("x", i), expr if expr is not None else T("u", i), where=where),), {i: n}, ("x",))


def test_a_condition_that_balls_do_not_decide_is_an_error_and_more_bits_decide_it() -> None:
    kept = Statement(T("x", i), T("u", i), where=sp.Gt(T("y", i), T("v", i)))
    near = Program((Statement(T("y", i), sp.exp(T("u", i))), kept), {i: n}, ("x",))
    third = Fraction("1.3956124250860895286281253196025868375979065151994")  # exp(1/3) cut after 49 digits
    given = {"u": ["1/3"], "v": [third]}
    with pytest.raises(UndecidedError, match="i=0"):
        balls.evaluate(near, given, bits=100)
    assert balls.evaluate(near, given, bits=300)["x"][0] != 0


def test_an_undecided_condition_is_harmless_where_another_one_is_false() -> None:
    u, r = T("u", i), T("r", i)
    kept = Statement(T("x", i), u, where=sp.And(sp.Gt(r**2, u), sp.Ge(i, 1)))
    program = Program((Statement(r, sp.sqrt(u)), kept), {i: n}, ("x",))
    assert balls.evaluate(program, {"u": [3, 4]})["x"][0] == 0  # sqrt(4)^2 > 4 is decided, sqrt(3)^2 > 3 is not asked
    with pytest.raises(UndecidedError):
        balls.evaluate(program, {"u": [4, 3]})


def test_an_undecided_branch_is_an_error() -> None:
    u = T("u", i)
    program = _program(
        sp.true, sp.Piecewise((u, sp.Gt(sp.sqrt(u) ** 2 - u + sp.sqrt(u) * sp.sqrt(u + 1) - sp.sqrt(u * (u + 1)), 0)), (-u, True))
    )
    with pytest.raises(UndecidedError, match="Piecewise"):
        balls.evaluate(program, {"u": [3]})


def test_a_look_up_out_of_range_is_an_error_only_where_it_is_read() -> None:
    read = T("u", T("tok", i))
    shapes = {"u": (m,)}
    everywhere = Program((Statement(T("x", i), read),), {i: n}, ("x",), shapes)
    where = Program((Statement(T("x", i), read, where=sp.Ne(i, 1)),), {i: n}, ("x",), shapes)
    given = {"u": [5, 6], "tok": [1, 9, 0]}
    with pytest.raises(InputValueError, match=r"i=1"):
        balls.evaluate(everywhere, given)
    assert [float(x) for x in balls.evaluate(where, given)["x"]] == [6.0, 0.0, 5.0]
    with pytest.raises(InputValueError):
        balls.evaluate(everywhere, given | {"tok": [0, -1, 0]})  # no counting from the end
    with pytest.raises(InputValueError, match="integers"):
        balls.evaluate(everywhere, given | {"tok": [0, "1/2", 0]})


def test_a_look_up_in_a_contraction_out_of_range() -> None:
    e = T("u", T("tok", i) + j) * T("v", j)
    shapes = {"u": (m,)}
    given = {"u": [1, 2, 3], "tok": [0, 1], "v": [1, 1, 1]}
    unmasked = Program((Statement(T("x", i), e, (j,)),), {i: n, j: m}, ("x",), shapes)
    masked = Program((Statement(T("x", i), e, (j,), where=sp.Le(T("tok", i) + j, 2)),), {i: n, j: m}, ("x",), shapes)
    with pytest.raises(InputValueError, match="outside"):
        balls.evaluate(unmasked, given)
    assert [float(x) for x in balls.evaluate(masked, given)["x"]] == [6.0, 5.0]


def test_a_settled_maximum_does_not_widen_and_is_given_back_whole() -> None:
    z, top = T("z", i), T("top")
    statements = (
        Statement(T("z", i), sp.sqrt(T("u", i))),
        Statement(top, z, (i,), "max", range_only=True),
        Statement(T("l"), sp.exp(z - top), (i,)),
        Statement(T("L"), top + sp.log(T("l"))),
    )
    found = balls.evaluate(Program(statements, {i: n}, ("L",)), {"u": [2, 3]}, bits=100)
    with balls.precision(300):
        assert (flint.arb(3).sqrt() - found["top"][()]).contains(0)
        assert found["top"][()].rad() > 0


def test_precision_is_restored_after_an_error_and_between_threads() -> None:
    before = flint.ctx.prec
    with pytest.raises(RuntimeError), balls.precision(500):
        raise RuntimeError
    assert flint.ctx.prec == before
    program = _program(sp.true, sp.exp(T("u", i)))
    wide: list[int] = []

    def work(bits: int) -> None:
        for _ in range(10):
            x = balls.evaluate(program, {"u": ["0.1"] * 50}, bits=bits)["x"]
            wide.append(bits - min(v.rel_accuracy_bits() for v in x))

    threads = [threading.Thread(target=work, args=(b,)) for b in (80, 300, 900)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(wide) == 30 and max(wide) < 8
    assert flint.ctx.prec == before


def test_parts_enclose_and_stay_small() -> None:
    x = (flint.arb(2).sqrt()).exp()
    mid, rad = balls.parts(x)
    assert isinstance(mid, Fraction) and isinstance(rad, Fraction)
    assert flint.arb(flint.fmpq(mid.numerator, mid.denominator)).overlaps(x)
    assert balls.parts(flint.arb.nan()) == (0, math.inf)
    tiny_mid, tiny_rad = balls.parts(flint.arb(-3 * 10**38).exp())
    assert (tiny_mid, tiny_rad <= Fraction(1, 2**39_000)) == (0, True)
    assert balls.parts(flint.arb(10**9).exp())[1] == math.inf


def test_a_term_of_a_sum_that_is_not_decided_is_taken_as_both() -> None:
    """Equal irrational numbers: whether one exceeds the other stays open, and by how much is next to nothing."""
    y, z = T("y", i), T("y", j)
    above = Statement(T("x", i), z - y, (j,), where=sp.Gt(z, y))
    program = Program((Statement(y, sp.exp(T("u", i))), above), {i: n, j: n}, ("x",))
    found = balls.evaluate(program, {"u": [1, 1, 2]}, bits=100)["x"]
    assert found[2].contains(0) and found[2].rad() < 1e-25
    assert found[0].overlaps(flint.arb(2).exp() - flint.arb(1).exp()) and found[0].rad() < 1e-25
    count = Program(
        (Statement(y, sp.exp(T("u", i))), Statement(T("x", i), sp.S.One, (j,), where=sp.Gt(z, y))), {i: n, j: n}, ("x",)
    )
    either = balls.evaluate(count, {"u": [1, 1, 2]}, bits=100)["x"][0]
    assert either.contains(1) and either.contains(3) and not either.contains(0)


def test_powers_of_a_ball_around_zero() -> None:
    whole = balls.NAMESPACE.functions["whole"]
    x = flint.arb(0, 0.5)
    square, cube = whole(x, 2), whole(x, 3)
    assert square.contains(flint.arb(0.25)) and square.contains(0) and square < 0.26
    assert cube.contains(flint.arb(-0.125)) and cube.contains(flint.arb(0.125)) and cube < 0.13
    assert whole(flint.arb(-3), 2) == 9
