"""Scans in every reading: values against plain loops, gradients and tangents against differences of the loops and SymPy."""

from dataclasses import replace
from fractions import Fraction
from functools import cache
from types import SimpleNamespace

import mpmath
import numpy as np
import pytest
import sympy as sp

from symattn.adjoint import adjoint, tangent
from symattn.derivative import tangent_name
from symattn.errors import InputValueError
from symattn.program import Program, Scan, Statement, indices, size, tensor
from symattn.readings import balls, exact
from symattn.readings import mpmath as many
from symattn.readings import numpy as floats
from tests.scans import DIMS, EXAMPLES, Example

CTX = mpmath.MPContext()
CTX.dps = 90
MP = SimpleNamespace(exp=CTX.exp, tanh=CTX.tanh)
SYMPY = SimpleNamespace(exp=sp.exp, tanh=sp.tanh)
STEP = Fraction(1, 10**24)
CLOSE = CTX.mpf(10) ** -35
RATIONAL = [n for n, e in EXAMPLES.items() if e.rational]


def each(f, x):
    return np.vectorize(f, otypes=[object])(x)


def mp(x):
    return {n: each(lambda v: CTX.mpf(v.numerator) / v.denominator, v) for n, v in x.items()}


def random_like(shapes, seed):
    """Fractions of any size in the given shapes."""
    rng = np.random.default_rng(seed)
    return {n: each(lambda k: Fraction(int(k), 16), rng.integers(-20, 20, s)) for n, s in shapes.items()}


def moved(x, direction, by):
    return {n: v + by * direction[n] if n in direction else v for n, v in x.items()}


def weighted(seeds, values):
    return sum(sum((s * v).ravel()) for s, v in ((mp({"_": seeds[o]})["_"], values[o]) for o in seeds))


@cache
def derived(name):
    return adjoint(EXAMPLES[name].program), tangent(EXAMPLES[name].program)


def moving(example):
    return [n for n in example.shapes if n not in example.program.discrete]


def seeds_of(example, values, seed=7):
    return random_like({o: np.shape(values[o]) for o in example.program.outputs}, seed)


def difference(example, x, direction, ops=MP):
    """The derivative of every output along a direction, by loops at two points."""
    up, down = (example.loop(mp(moved(x, direction, by)), ops) for by in (STEP, -STEP))
    h = 2 * CTX.mpf(STEP.numerator) / STEP.denominator
    return {o: (up[o] - down[o]) / h for o in example.program.outputs}


def gradient_error(example: Example, program, x):
    """How far the gradients of a program are from differences, input by input."""
    values = example.loop(mp(x), MP)
    seeds = seeds_of(example, values)
    given = {"d" + o: s for o, s in seeds.items()}
    found = many.evaluate(program, {**x, **{n: v for n, v in given.items() if n in program.inputs}}, digits=80)
    worst = CTX.mpf(0)
    for k, (n, g) in enumerate(zip(moving(example), program.outputs, strict=True)):
        direction = random_like({n: np.shape(x[n])}, k)
        want = weighted(seeds, difference(example, x, direction))
        got = weighted({n: direction[n]}, {n: found[g]})
        worst = max(worst, abs(want - got))
    return worst


def tangent_error(example: Example, program, x):
    direction = random_like({n: np.shape(x[n]) for n in moving(example)}, 3)
    want = difference(example, x, direction)
    given = {**x, **{tangent_name(n): v for n, v in direction.items()}}
    found = many.evaluate(program, {n: v for n, v in given.items() if n in program.inputs}, digits=80)
    return max(
        abs(p - q)
        for o, o_t in zip(example.program.outputs, program.outputs, strict=True)
        for p, q in zip(want[o].ravel(), found[o_t].ravel(), strict=True)
    )


def by_input(program, example):
    """The gradients in the order of ``moving``."""
    order = dict(zip(_real(program, example), program.outputs, strict=True))
    return program.with_statements(program.statements, [order[n] for n in moving(example)])


def _real(program, example):
    return [n for n in example.program.inputs if n not in example.program.discrete]


@pytest.mark.parametrize("name", RATIONAL)
@pytest.mark.parametrize("seed", [0, 1])
def test_exact_values_are_those_of_a_plain_loop_in_fractions(name, seed):
    example = EXAMPLES[name]
    x = example.inputs(seed)
    want = example.loop(x, None)
    found = exact.evaluate(example.program, x)
    for o in example.program.outputs:
        assert (found[o] == each(lambda v: sp.Rational(v), want[o])).all(), o


@pytest.mark.parametrize("name", EXAMPLES)
def test_many_digits_floats_and_balls_agree_with_the_loop(name):
    example = EXAMPLES[name]
    x = example.inputs(2)
    want = example.loop(mp(x), MP)
    digits, small, round_ones = (
        many.evaluate(example.program, x, digits=60),
        floats.evaluate(example.program, {n: v.astype(float) for n, v in x.items()}),
        balls.evaluate(example.program, x, bits=150),
    )
    for o in example.program.outputs:
        for p, w, f, r in zip(digits[o].ravel(), want[o].ravel(), small[o].ravel(), round_ones[o].ravel(), strict=True):
            assert abs(p - w) < CTX.mpf(10) ** -55 * (1 + abs(w))
            assert abs(f - w) < 1e-12 * (1 + abs(w))
            mid, rad = balls.parts(r)
            assert abs(CTX.mpf(mid.numerator) / mid.denominator - w) <= CTX.mpf(rad.numerator) / rad.denominator
            assert rad < Fraction(1, 10**30)


@pytest.mark.parametrize("name", EXAMPLES)
def test_gradient_and_tangent_against_differences_of_the_loop(name):
    example = EXAMPLES[name]
    gradient, ahead = derived(name)
    assert gradient_error(example, by_input(gradient, example), example.inputs(4)) < CLOSE
    assert tangent_error(example, ahead, example.inputs(4)) < CLOSE


@pytest.mark.parametrize("name", EXAMPLES)
def test_floats_and_balls_read_the_gradient_as_many_digits_do(name):
    example = EXAMPLES[name]
    gradient, _ = derived(name)
    x = example.inputs(5)
    seeds = seeds_of(example, example.loop(mp(x), MP))
    given = {n: v for n, v in {**x, **{"d" + o: s for o, s in seeds.items()}}.items() if n in gradient.inputs}
    want = many.evaluate(gradient, given, digits=50)
    small = floats.evaluate(gradient, {n: v.astype(float) for n, v in given.items()})
    round_ones = balls.evaluate(gradient, given, bits=120)
    for g in gradient.outputs:
        for w, f, r in zip(want[g].ravel(), small[g].ravel(), round_ones[g].ravel(), strict=True):
            assert abs(f - w) < 1e-11 * (1 + abs(w))
            mid, rad = balls.parts(r)
            assert abs(w - CTX.mpf(mid.numerator) / mid.denominator) <= CTX.mpf(rad.numerator) / rad.denominator + 1e-45


@pytest.mark.parametrize("name", RATIONAL)
def test_exact_gradient_is_the_derivative_of_the_unrolled_loop(name):
    example = EXAMPLES[name]
    gradient = by_input(derived(name)[0], example)
    x = example.inputs(6)
    letters = {n: each(lambda k: sp.Symbol(f"{n}_{k}"), np.arange(v.size).reshape(v.shape)) for n, v in x.items()}
    at = {s: sp.Rational(v) for n in x for s, v in zip(letters[n].ravel(), x[n].ravel(), strict=True)}
    letters |= {n: x[n] for n in example.program.discrete}
    values = example.loop(letters, SYMPY)
    seeds = seeds_of(example, values)
    total = sum(sp.Rational(s) * v for o in seeds for s, v in zip(seeds[o].ravel(), values[o].ravel(), strict=True))
    given = {n: v for n, v in {**x, **{"d" + o: s for o, s in seeds.items()}}.items() if n in gradient.inputs}
    found = exact.evaluate(gradient, given)
    for n, g in zip(moving(example), gradient.outputs, strict=True):
        for s, got in zip(letters[n].ravel(), found[g].ravel(), strict=True):
            assert sp.diff(total, s).xreplace(at) == got, (n, s)


# planted faults: the tests above must see them


def faulty(name, change):
    gradient = by_input(derived(name)[0], EXAMPLES[name])
    size = len(EXAMPLES[name].program)
    return gradient.with_statements([*gradient.statements[:size], *map(change, gradient.statements[size:])])


def shifted(s: Statement) -> Statement:
    """One step too far in what is read of later steps."""
    t = next(iter(DIMS))
    table = {r: tensor(str(r.base.label), *(i + 1 if i == t + 1 else i for i in r.indices)) for r in s.reads if r.args[1:]}
    return s.xreplace(table) if s.scan is not None else s


@pytest.mark.parametrize("name", ["linear attention", "gated linear attention", "delta rule", "tanh RNN"])
def test_a_shift_that_is_off_by_one_is_caught(name):
    example = EXAMPLES[name]
    off = faulty(name, lambda s: replace(shifted(s), where=sp.And(s.where, sp.Lt(next(iter(DIMS)), 3))))
    assert gradient_error(example, off, example.inputs(4)) > CTX.mpf("1e-3")


def test_a_walk_in_the_wrong_direction_is_caught():
    example = EXAMPLES["two in a row"]
    t = next(iter(DIMS))
    first, second = example.program.statements
    wrong = replace(first, expr=first.expr.xreplace({tensor("h", t - 1): tensor("h", t + 1)}), scan=Scan(t, -1))
    program = example.program.with_statements([wrong, second])
    assert gradient_error(example, by_input(adjoint(program), example), example.inputs(4)) > CTX.mpf("1e-3")
    x = example.inputs(0)
    assert (exact.evaluate(program, x)["y"] != each(lambda v: sp.Rational(v), example.loop(x, None)["y"])).any()


def test_a_missing_condition_on_the_range_is_caught():
    """Without ``t < n - 1`` a gradient looks at an input beyond its end, which is an error and no zero."""
    example = EXAMPLES["gated linear attention"]
    bare = faulty("gated linear attention", lambda s: replace(s, where=sp.true))
    with pytest.raises(InputValueError, match="looks outside alpha"):
        gradient_error(example, bare, example.inputs(4))


def test_the_value_beyond_the_ends_matters():
    """A first step that repeats the state instead of starting from 0 is another recurrence, and the loop says so."""
    example = EXAMPLES["two in a row"]
    t = next(iter(DIMS))
    first, second = example.program.statements
    clamped = second.xreplace({tensor("h", t + 1): tensor("h", sp.Min(t + 1, DIMS[t] - 1))})
    x = example.inputs(0)
    found = exact.evaluate(example.program.with_statements([first, clamped]), x)["y"]
    assert (found != each(lambda v: sp.Rational(v), example.loop(x, None)["y"])).any()


# gradients by tensors inside a scan, and shifts outside one


def test_a_direction_of_the_state_moves_all_later_steps_as_its_gradient_says():
    """What is added to h[t] moves h[t+1], ..: the tangent and the gradient by the state are transposes of each other."""
    for name in ("two steps back", "initial state", "reversed", "resets"):
        example = EXAMPLES[name]
        x = example.inputs(8)
        gradient, ahead = adjoint(example.program, ["h"]), tangent(example.program, ["h"])
        values = exact.evaluate(example.program, x)
        seeds = seeds_of(example, values)
        direction = random_like({"h": values["h"].shape}, 9)["h"]
        back = {**x, **{"d" + o: v for o, v in seeds.items()}}
        got = exact.evaluate(gradient, {n: v for n, v in back.items() if n in gradient.inputs})[gradient.outputs[0]]
        moved_by = exact.evaluate(ahead, {n: v for n, v in {**x, "h_t": direction}.items() if n in ahead.inputs})
        left = sum((seeds[o] * moved_by[o_t]).sum() for o, o_t in zip(example.program.outputs, ahead.outputs, strict=True))
        assert left == (got * direction).sum() != 0, name


def test_shifted_flipped_and_halved_subscripts_are_solved_with_their_ranges():
    i, c = indices("i c")
    n, d = size("n"), size("d")
    x = tensor("x", n - 1 - i, c + d / 2)
    y = Statement(tensor("y", i, c), x**2 * tensor("w", i) + tensor("z", i + 1, c), where=sp.Lt(i, n - 1))
    program = Program((y,), {i: n, c: d / 2}, ("y",), {"x": (n, d), "z": (n, d / 2)})
    gradient = adjoint(program)
    assert not any(s.over for s in gradient.statements[1:] if s.name in ("dx", "dz"))
    assert str(gradient["dz"]).endswith("where i >= 1")
    assert sp.Ge(gradient["dx"].indices[1], d / 2) in gradient["dx"].conditions
    rng = np.random.default_rng(0)
    given = {"x": rng.normal(size=(4, 6)), "w": rng.normal(size=4), "z": rng.normal(size=(4, 3)), "dy": rng.normal(size=(4, 3))}
    found = floats.evaluate(gradient, {k: v for k, v in given.items() if k in gradient.inputs}, sizes={"n": 4, "d": 6})
    dx, dz = np.zeros((4, 6)), np.zeros((4, 3))
    for row in range(3):
        for k in range(3):
            dx[3 - row, k + 3] += given["dy"][row, k] * 2 * given["x"][3 - row, k + 3] * given["w"][row]
            dz[row + 1, k] += given["dy"][row, k]
    np.testing.assert_allclose(found["dx"], dx, atol=1e-14)
    np.testing.assert_allclose(found["dz"], dz, atol=1e-14)
