"""Examples whose masks or scores hold functions, jumps or points without a value: a number or a clear error, never a crash."""

from __future__ import annotations

from fractions import Fraction

import pytest
import sympy as sp

from symattn.definition import Definition
from symattn.derivation import derive, examples
from symattn.derivation import exactvalue as ev
from symattn.derivation.document import Derivation
from symattn.derivation.enclose import Encloser, bounds
from symattn.derivation.work import Worksheet
from symattn.errors import FileFormatError, InputValueError, UndecidedError
from symattn.indexed import indices, size, tensor
from symattn.program import Program, Statement
from symattn.readings.specials import NAN

BASE = "Q = [[1, 0.5], [0.25, 2], [1, 1]]\nK = [[1, 0], [0.5, 1], ['1/3', 2]]\nV = [[1, 2], [3, 4], [5, -1]]\n"
SEED = "grad_out = [[1, 0], [0.5, 1], [2, -1]]\n"
WAYS = [(False, ""), (True, ""), (True, SEED)]


def derived(fields: str, gradient: bool = False, seed: str = "") -> Derivation:
    example = examples.parse(f"{BASE}{seed}[definition]\n{fields}".encode(), "x.toml")
    return derive(example=example, gradient=gradient)


def cells(d: Derivation, name: str) -> list[list[str]]:
    return [["." if c.masked else c.decimal for c in row] for row in d[name].grids[-1].cells]


@pytest.mark.parametrize(("gradient", "seed"), WAYS)
@pytest.mark.parametrize(
    "fields",
    [
        "mask = 'exp(i) < j + 3'",
        "mask = 'i == j or 1/(i - j) < 2'",
        "mask = 'floor(sqrt(i)) <= j'",
        "score = 'floor(s)'",
        "score = 's - floor(exp(s))'",
        "score = 's*exp(1) + s % 2'",
        "score = 'abs(exp(s) - 3)'",
        "score = 'max(exp(s), 2*s)'",
        "score = 'min(s, 1, i)'",
        "score = 'floor(s*sqrt(2)/sqrt(d))'",
        "scale = '1/sqrt(d)'\nscore = 'floor(s*sqrt(2))'",
    ],
)
def test_functions_and_jumps_are_written(fields: str, gradient: bool, seed: str) -> None:
    d = derived(fields, gradient, seed)
    for page in (d.to_text(), d.to_latex()):
        assert page and "NaN" not in page


def test_a_mask_with_a_function_keeps_what_it_says() -> None:
    kept = [[c != "." for c in row] for row in cells(derived("mask = 'exp(i) < j + 3'"), "P")]
    assert kept == [[True, True, True], [True, True, True], [False, False, False]]
    kept = [[c != "." for c in row] for row in cells(derived("mask = 'i == j or 1/(i - j) < 1'"), "P")]
    assert kept == [[True, True, True], [False, True, True], [True, False, True]]


def test_floors_are_whole_numbers() -> None:
    assert cells(derived("scale = 1\nscore = 'floor(exp(s))'"), "Z") == [["2", "2", "3"], ["1", "8", "59"], ["2", "4", "10"]]


@pytest.mark.parametrize(("gradient", "seed"), WAYS)
@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ("score = 'log(s - 5)'", "x.toml: Z: `log(S[i, j] - 5)` has no value at i=0, j=0"),
        ("score = 's/(j - 1)'", "x.toml: Z: `1/(j - 1)` has no value at i=0, j=1"),
        ("mask = '1/(i - j) < 2'", "x.toml: the condition `1/(i - j) < 2` has no value at i=2, j=2"),
        ("mask = '1/(i - j) < 2'\nempty_row = 'error'", "x.toml: the condition `1/(i - j) < 2` has no value at i=0, j=0"),
    ],
)
def test_what_has_no_value_is_refused(fields: str, says: str, gradient: bool, seed: str) -> None:
    with pytest.raises(FileFormatError) as caught:
        derived(fields, gradient, seed)
    assert str(caught.value).startswith(says) and "counted from 0" in str(caught.value)


def test_a_derivative_without_a_value_is_refused_where_it_has_numbers() -> None:
    text = "Q = [[0]]\nK = [[1]]\nV = [[1]]\n{}[definition]\nscore = 'sqrt(s)'"
    for seed in ("", "grad_out = [[1]]\n"):
        example = examples.parse(text.format(seed).encode(), "x.toml")
        if seed:
            with pytest.raises(FileFormatError, match="part of the gradient and has no value"):
                derive(example=example, gradient=True)
        else:
            assert derive(example=example, gradient=True).to_text()


A, B = indices("i j")


def sheet(expr: sp.Expr, where: sp.Basic = sp.true, **inputs: object) -> Worksheet:
    n, m = size("n"), size("m")
    shapes = dict.fromkeys(inputs, (m,))
    program = Program((Statement(tensor("Y", A, B), expr, where=where),), {A: n, B: m}, ("Y",), shapes=shapes)
    return Worksheet(program, inputs, {n: 2, m: 3}, origin=0)


@pytest.mark.parametrize(
    ("expr", "value"),
    [
        (sp.Heaviside(A - B, sp.Rational(1, 2)), Fraction(0)),
        (sp.Heaviside(A - 1, sp.Rational(1, 2)), Fraction(1, 2)),
        (sp.Mod(sp.sqrt(2) * B, 1) - sp.sqrt(2) * B, Fraction(-2)),
        (sp.ceiling(sp.exp(B)), Fraction(8)),
        (sp.floor(-sp.exp(B)), Fraction(-8)),
        (sp.sign(sp.exp(B) - 8), Fraction(-1)),
        (sp.Piecewise((B, B < A), (5 * B, True)), Fraction(10)),
        (sp.floor(sp.sqrt(B + 1) * sp.sqrt(2 * B - 1)), Fraction(3)),
    ],
)
def test_jumps(expr: sp.Expr, value: Fraction) -> None:
    assert sheet(expr).full("Y", (1, 2)).rational == value


def test_conditions_on_inputs_guard_look_ups() -> None:
    x = tensor("x", B + 1)
    s = sheet(B + 0 * A, sp.And(sp.Lt(B, 2), sp.Lt(x, 1)), x=[0, "1/2", 3])
    assert [s.defined("Y", (0, j)) for j in range(3)] == [True, False, False]
    with pytest.raises(InputValueError, match="out of range at j=2"):
        sheet(B + 0 * A, sp.Lt(x, 1), x=[0, "1/2", 3]).defined("Y", (0, 2))


def test_a_floor_that_is_not_decided_says_so() -> None:
    log2, log4 = (ev.call("log", ev.rational(k)) for k in (2, 4))
    with pytest.raises(UndecidedError, match="the floor of"):
        Encloser(lambda name, index: ev.ZERO).floor(ev.divide(log4, log2))
    with pytest.raises(UndecidedError, match="not finite"):
        bounds(NAN)


def test_the_definition_may_come_from_python() -> None:
    s, i, j = sp.Symbol("s", real=True), *(sp.Symbol(a, integer=True) for a in "ij")
    example = examples.parse(f"{BASE}{SEED}".encode(), "x.toml")
    definition = Definition(score=s + sp.Mod(i, 2) * sp.ceiling(sp.Rational(1, 2) * j), scale=1)
    assert "NaN" not in derive(definition, example, gradient=True).to_text()


def test_a_power_of_an_enclosure_around_zero_is_an_enclosure_around_zero() -> None:
    """A gradient that vanishes without its terms saying so: flint's power is NaN where a midpoint is 0 and its radius is not."""
    e = ev.call("exp", ev.ONE)
    ref = ev.Ref("dS", ())
    values = {"E": e, "dS": ev.add(e, ev.negate(ev.generator(ev.Ref("E", ()))))}
    vanishing = Encloser(lambda name, index: values[name])
    for power in (1, 2, 3):
        mid, rad = bounds(vanishing.ball(ev.generator(ref, power), 256))
        assert abs(mid) <= rad < Fraction(1, 2**200)
    mid, rad = bounds(vanishing.ball(ev.generator(ev.Ref("E", ()), -2), 256))
    assert abs(mid - Fraction(0.1353352832366127)) < Fraction(1, 2**50) and rad < Fraction(1, 2**200)
