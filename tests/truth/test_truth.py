"""Truth: guaranteed digits, exact values, correct rounding, and honesty about what is undecided."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import flint
import numpy as np
import pytest
import sympy as sp

from symattn.adjoint import adjoint
from symattn.errors import LimitError, ProgramError, UndecidedError
from symattn.formats import round_exact
from symattn.program import Program, Statement, indices, size
from symattn.program import tensor as T
from symattn.readings import balls
from symattn.readings.specials import POSITIVE
from symattn.truth import Enclosure, truth
from symattn.truth.enclosure import decimal, of_balls
from symattn.truth.questions import Digits, guaranteed
from symattn.truth.values import Balls
from tests.programs import attention

i, j = indices("i j")
n, m = size("n"), size("m")
EXP = Program((Statement(T("x", i), sp.exp(T("u", i))),), {i: n}, ("x",))


def _inputs(rows: int = 4, seed: int = 0) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    return {"Q": rng.normal(size=(rows, 3)), "K": rng.normal(size=(rows, 3)), "V": rng.normal(size=(rows, 2)), "scale": "1/3"}


@pytest.mark.parametrize("digits", [5, 50, 300])
def test_the_digits_asked_for_are_right(digits: int) -> None:
    given = _inputs()
    found = truth(attention(lse="e"), given, digits=digits)
    more = truth(attention(lse="e"), given, digits=2 * digits + 20)
    for name in ("O", "L"):
        assert found[name].decided and found[name].shape == more[name].shape
        for a, r, b in zip(found[name].mid.ravel(), found[name].rad.ravel(), more[name].mid.ravel(), strict=True):
            assert abs(a - b) <= r * (1 + Fraction(1, 10**10))
            assert 2 * r * 10**digits <= abs(a)
    text, longer = found["O"].decimal(digits), more["O"].decimal(digits)
    assert (text == longer).all()


def test_precision_is_raised_for_cancellation() -> None:
    u = T("u", i)
    program = Program((Statement(T("x", i), sp.exp(u) - 1 - u - u**2 / 2),), {i: n}, ("x",))
    found = truth(program, {"u": ["1e-40", 1]}, digits=20, max_bits=2000)["x"]
    assert found.decided
    assert found.decimal(10).tolist() == ["1.666666667e-121", "0.2182818285"]


def test_a_value_that_is_zero_for_no_digits_reason_is_undecided() -> None:
    hidden = Program(
        (Statement(T("r", i), sp.sqrt(T("u", i))), Statement(T("x", i), T("r", i) ** 2 - T("u", i), where=sp.Ge(i, 1))),
        {i: n},
        ("x",),
    )
    found = truth(hidden, {"u": [3, 3, 4]}, digits=20)["x"]
    assert found.status.tolist() == ["exact", "undecided", "exact"]
    assert found.lower()[1] <= 0 <= found.upper()[1] and found.rad[1] < Fraction(1, 10**60)
    assert found.round("float32").tolist() == [0, 0, 0]  # all of the enclosure rounds to 0


def test_rational_programs_are_exact() -> None:
    program = Program(
        (
            Statement(T("l", i), T("u", i, j), (j,)),
            Statement(T("p", i, j), T("u", i, j) / T("l", i)),
            Statement(T("top", i), T("p", i, j), (j,), "max"),
        ),
        {i: n, j: m},
        ("p", "top"),
    )
    found = truth(program, {"u": [[1, 2], ["0.1", "1/3"]]})
    assert found["p"].mid.tolist() == [[Fraction(1, 3), Fraction(2, 3)], [Fraction(3, 13), Fraction(10, 13)]]
    assert (found["p"].status == "exact").all() and (found["p"].rad == 0).all()
    assert found["top"].mid.tolist() == [Fraction(2, 3), Fraction(10, 13)]


def test_special_values_are_values() -> None:
    program = adjoint(attention(sp.Lt(j, i), lse="e"))
    given = _inputs() | {"dO": np.ones((4, 2)), "dL": np.zeros(4)}
    given["V"] = given["V"].copy()
    given["V"][2, 0] = math.nan
    found = truth(program, given, digits=20, outputs=("O", "L", "dQ"))
    assert found["L"].mid[0] == -math.inf and found["L"].status[0] == "exact"
    assert found["O"].mid[0].tolist() == [0, 0] and (found["O"].status[0] == "exact").all()
    assert math.isnan(found["O"].mid[3, 0]) and found["O"].status[3, 0] == "exact" and found["O"].status[3, 1] == "enclosed"
    rounded = found["O"].round("float16")
    assert rounded.dtype == np.float16 and np.isnan(rounded[3, 0]) and np.isfinite(rounded[3, 1])


def test_rounding_is_correct_and_refuses_what_it_cannot_know() -> None:
    found = truth(EXP, {"u": ["0.1", "-3", 7]}, digits=40)["x"]
    for name in ("bfloat16", "float16", "float32", "float64"):
        want = [round_exact(q, name) for q in found.mid]
        assert [Fraction(float(x)) for x in found.round(name)] == want
    wide = truth(EXP, {"u": ["0.1", "-3", 7]}, bits=8)["x"]
    with pytest.raises(UndecidedError, match="float64"):
        wide.round("float64")


def test_a_near_tie_is_decided_by_more_bits() -> None:
    tie = 1 + Fraction(1, 2**8)  # between 1 and the next bfloat16
    near = Program((Statement(T("x", i), T("u", i) + sp.exp(T("t", i))),), {i: n}, ("x",))
    given = {"u": [tie, tie], "t": [-200, -500]}
    few = truth(near, given, bits=100)["x"]
    with pytest.raises(UndecidedError):
        few.round("bfloat16")
    enough = truth(near, given, digits=5, decide="bfloat16", max_bits=4096)["x"]
    assert [float(x) for x in enough.round("bfloat16")] == [1.0078125, 1.0078125]


def test_bits_are_one_evaluation() -> None:
    found = truth(EXP, {"u": ["0.1", 0]}, bits=100)["x"]
    assert found.status.tolist() == ["enclosed", "exact"]
    assert Fraction(1, 2**110) < found.rad[0] < Fraction(1, 2**90)


def test_conditions_on_reals_get_more_bits_up_to_the_cap() -> None:
    kept = Statement(T("x", i), T("u", i), where=sp.Gt(T("y", i), T("v", i)))
    pick = Program((Statement(T("y", i), sp.exp(T("u", i))), kept), {i: n}, ("x",))
    cut = Fraction("1.3956124250860895286281253196025868375979065151994")  # exp(1/3) cut after 49 digits
    found = truth(pick, {"u": ["1/3"], "v": [cut]}, digits=10)["x"]
    assert abs(found.mid[0] - Fraction(1, 3)) <= found.rad[0]
    with pytest.raises(UndecidedError):
        truth(pick, {"u": ["1/3"], "v": [cut]}, digits=10, max_bits=128)


def test_masks_of_minus_1e9_do_not_explode() -> None:
    program = attention(score=lambda s, q: s + T("B", i, j))
    given = _inputs() | {"B": np.triu(np.full((4, 4), -1e9), 1)}
    found = truth(program, given, digits=20, outputs=("O", "P"))
    assert found["O"].decided
    assert found["P"].mid[0, 1] == 0 and found["P"].rad[0, 1] < Fraction(1, 2**39_000)


@pytest.mark.parametrize("bad", [{"digits": 0}, {"digits": 10**7}, {"bits": 0}, {"digits": 5, "bits": 5}])
def test_limits(bad: dict[str, int]) -> None:
    with pytest.raises(LimitError):
        truth(EXP, {"u": [1]}, **bad)


def test_an_output_that_is_not_defined() -> None:
    with pytest.raises(ProgramError, match="'x'"):
        truth(EXP, {"u": [1]}, outputs=("X",))


def test_parts_of_an_enclosure() -> None:
    with balls.precision(60):
        e = of_balls(np.array([[balls.ball(Fraction(1, 3)), balls.ball(2)]], dtype=object), digits=10)
    assert isinstance(e[0, 1], Enclosure) and e[0, 1].mid[()] == 2 and e[0].shape == (2,)
    assert e.lower()[0, 0] < Fraction(1, 3) < e.upper()[0, 0]
    assert e.float().tolist() == [[1 / 3, 2.0]]


@pytest.fixture
def rounds(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The precisions of the evaluations that a test asks for."""
    seen: list[int] = []
    evaluate = balls.evaluate

    def counted(*args: Any, bits: int, **options: Any) -> Any:
        seen.append(bits)
        return evaluate(*args, bits=bits, **options)

    monkeypatch.setattr(balls, "evaluate", counted)
    return seen


r = T("r", i)
HIDDEN = Program((Statement(r, sp.sqrt(T("u", i))), Statement(T("x", i), r**2 - T("u", i) + T("v", i))), {i: n}, ("x",))
"""Its values are v, which neither digits nor the rules of sums and products show where u is no square."""


def test_zeros_in_disguise_do_not_drive_the_precision_of_all_to_the_cap(rounds: list[int]) -> None:
    given = {"u": [3, 3, 3], "v": [0, 1, "1/3"]}
    assert truth(HIDDEN, given, digits=40)["x"].status.tolist() == ["tiny", "enclosed", "enclosed"] and rounds == [197, 394]
    rounds.clear()
    assert truth(HIDDEN, given, digits=40, max_bits=1600)["x"].status.tolist()[0] == "tiny" and rounds == [197, 394, 788, 1576]


def test_zeros_that_the_program_shows_cost_one_evaluation(rounds: list[int]) -> None:
    from symattn import Attention

    rng = np.random.default_rng(3)
    q, k, v, g = (rng.normal(size=(3, 6)) for _ in range(4))
    found = Attention(causal="top-left").truth(q, k, v, grad_out=g, digits=40)
    assert set(found["grad_query"].status[0]) == {"exact"} and rounds == [197]
    assert (found["grad_query"].mid[0] == 0).all() and set(found["grad_query"].tier[0]) == {"settled"}


def test_a_number_in_disguise_that_is_not_tiny_gets_its_digits(rounds: list[int]) -> None:
    u = T("u", i)
    rest = Program((Statement(T("x", i), sp.exp(u) - 1 - u - u**2 / 2),), {i: n}, ("x",))
    assert truth(rest, {"u": ["1e-40", 1]}, digits=20)["x"].status.tolist() == ["tiny", "enclosed"]
    assert rounds == [131, 262]
    rounds.clear()
    assert truth(rest, {"u": ["1e-40"]}, digits=20)["x"].status.tolist() == ["enclosed"]  # nothing else to measure it by
    rounds.clear()
    found = truth(rest, {"u": ["1e-13", 1]}, digits=20)["x"]  # 1.67e-40, above the floor of 2e-41
    assert found.decimal(10).tolist() == ["1.666666667e-40", "0.2182818285"] and rounds == [131, 262]


def test_weights_behind_a_minus_infinity_that_is_a_number_cost_one_evaluation(rounds: list[int]) -> None:
    given = _inputs() | {"B": np.triu(np.full((4, 4), -1e9), 1)}
    found = truth(attention(score=lambda s, q: s + T("B", i, j)), given, digits=20, outputs=("O", "P"))
    assert found["P"].status[0].tolist() == ["enclosed", "tiny", "tiny", "tiny"] and rounds == [131]


def test_as_many_digits_as_the_limit_says() -> None:
    found = truth(EXP, {"u": ["0.1", "-2"]}, digits=40_000)["x"]
    assert found.status.tolist() == ["enclosed", "enclosed"]
    assert (found.rad < Fraction(1, 10**40_000)).all()


@pytest.mark.parametrize("digits", [1, 12, 15])
def test_open_balls_are_those_without_their_digits(digits: int) -> None:
    with balls.precision(53):
        values = [
            flint.arb(x) / 3 * flint.arb(2) ** e + flint.arb(0, 2.0**-k)
            for x in (1, -7)
            for e in (-90, 0, 70)
            for k in (3, 30, 60)
        ]
    some = Balls(np.array([*values, flint.arb(0), flint.arb(2), flint.arb.nan(), POSITIVE], dtype=object))
    undecided = Digits(digits).open("x", some)
    assert undecided.tolist() == [not guaranteed(m, r, digits) for m, r in zip(*some.exact(), strict=True)]
    assert undecided.any() and not undecided.all()


def test_a_printed_enclosure_is_short() -> None:
    mid = np.full((40, 40), Fraction(1, 7**400), dtype=object)
    status = np.full((40, 40), "enclosed", dtype="<U9")
    status[0, :3] = ["exact", "tiny", "undecided"]
    mid[0, 1] = -math.inf
    text = repr(Enclosure(mid, mid, status))
    assert text.startswith("<Enclosure of shape (40, 40): 1597 enclosed, 1 exact, 1 tiny, 1 undecided; ")
    assert "-inf" in text and len(text) < 200
    assert repr(Enclosure(mid, mid, status)[1, 1]).startswith("<Enclosure of shape (): 1 enclosed; ")
    assert repr(Enclosure(mid[:0], mid[:0], status[:0])) == "<Enclosure of shape (0, 40): empty>"
    assert "Fraction(" not in repr({"out": Enclosure(mid, mid, status)})


@pytest.mark.parametrize(
    ("x", "digits", "text"),
    [
        (Fraction(2, 3), 4, "0.6667"),
        (Fraction(99999, 10), 4, "1.000e+04"),
        (Fraction(9999, 10), 4, "999.9"),
        (Fraction(1, 10**7), 3, "1.00e-07"),
        (Fraction(123), 3, "123"),
        (Fraction(-1, 3), 1, "-0.3"),
        (Fraction(1, 7) * Fraction(10) ** -5000, 5, "1.4286e-5001"),
        (Fraction(10) ** 5000, 2, "1.0e+5000"),
        (math.nan, 3, "nan"),
        (-math.inf, 3, "-inf"),
    ],
)
def test_decimals(x: Any, digits: int, text: str) -> None:
    assert decimal(x, digits) == text


def test_the_one_key_of_a_row_gives_a_gradient_of_zero_and_nothing_else_is_exact() -> None:
    """The first query of a causal row: its dS is 0, which no number of digits shows, and the program does."""
    from symattn.definition import Definition
    from symattn.truth.fields import truth_of

    rng = np.random.default_rng(3)
    q, k, v, g = (rng.normal(size=(3, 6)) for _ in range(4))
    found = truth_of(Definition(causal="top-left"), {"query": q, "key": k, "value": v, "grad_out": g}, digits=30)
    status = found["grad_query"].status
    assert set(status[0]) == {"exact"} and set(status[1:].ravel()) == {"enclosed"}
