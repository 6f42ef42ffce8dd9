"""Small exact inputs of any program, and the search for one at which two of its tensors differ.

The first pack makes every exponential rational: what reaches an exponent is 0, or a logarithm of a small integer, so that a
counterexample can be checked by hand with fractions.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

import flint
import numpy as np
import sympy as sp

from symattn.claims import prove_range_only
from symattn.errors import SymattnError
from symattn.indexed import integer_symbols, name_of, reads, size, tensor
from symattn.program import Program, Statement
from symattn.readings import balls, exact
from symattn.readings.balls import NAMESPACE as BALLS
from symattn.readings.balls import precision
from symattn.readings.code import constant
from symattn.theorems.claim import Counterexample, Equal

__all__ = ["Example", "differ", "examples", "find_counterexample", "kept_counts"]

SIZES = (
    {"n": 1, "m": 2},
    {"n": 2, "m": 3},
    {"n": 1, "m": 2, "d": 2},
    {"n": 2, "m": 2, "d": 2, "dv": 2},
    {"n": 3, "m": 2, "d": 2, "dv": 2},
    {"n": 3, "m": 3, "d": 2},
    {"n": 5, "m": 5},
)
"""Sizes that are tried; channels are 1 where nothing is said, everything else is 2."""
CHANNELS = ("d", "dv", "B")
KINDS = ("flat", "logarithms", "integers", "nothing")
Example = tuple[dict[str, Any], dict[str, int]]


def examples(program: Program, bijections: Collection[str] = ()) -> Iterator[Example]:
    """Inputs and sizes, the simplest first; each of ``bijections`` is the permutation that turns the range by one.

    >>> from symattn.definition import Definition
    >>> inputs, sizes = next(examples(Definition(scale=1).program()))
    >>> inputs["Q"].tolist(), inputs["V"].tolist()
    ([[0]], [[2], [0]])
    """
    raised = _exponents(program)
    for sizes, kind in itertools.product(SIZES, KINDS):
        if kind == "nothing" and not program.discrete:
            continue
        at = {str(a): sizes.get(str(a), 1 if str(a) in CHANNELS else 2) for a in program.sizes}
        roles = {n: "turn" if n in bijections else _role(program, n, kind, raised) for n in program.inputs}
        yield {n: _values(program, n, roles[n], at, k) for k, n in enumerate(program.inputs)}, at


def _exponents(program: Program) -> set[str]:
    """The inputs whose values reach an exponential."""
    live: set[str] = set()
    for s in reversed(program.statements):
        inside = [s.expr] if s.name in live else s.expr.atoms(sp.exp, sp.tanh, sp.sin, sp.cos)
        live |= {name_of(x) for e in inside for x in reads(e)}
    return live & set(program.inputs)


def _role(program: Program, name: str, kind: str, raised: set[str]) -> str:
    """Which numbers an input gets: what reaches an exponent is 0, or a logarithm, where it is not divided by."""
    if name in program.discrete:
        return "no choice" if kind == "nothing" else "choice"
    shape = {str(v) for v in program.shapes[name]}
    if name not in raised or kind in ("integers", "nothing"):
        return "integers" if shape else "third"
    if any(
        x.args[1].could_extract_minus_sign() and tensor(name) in x.free_symbols for s in program for x in s.expr.atoms(sp.Pow)
    ):
        return "two"
    if kind == "flat":
        return "zero"
    return "logarithms" if "m" in shape or not shape & {"d", "dmodel"} else "one or two"


_CYCLE = (1, -1, 2, 0, 3, -2, 1, 2, -1)
_VALUES: Mapping[str, Callable[[int, int], sp.Expr]] = {
    "choice": lambda k, at: sp.Integer(0 if at % 3 == 2 else 1),
    "no choice": lambda k, at: sp.S.Zero,
    "integers": lambda k, at: sp.Integer(_CYCLE[k % len(_CYCLE)]),
    "third": lambda k, at: sp.Rational(1, 3),
    "two": lambda k, at: sp.Integer(2),
    "zero": lambda k, at: sp.S.Zero,
    "logarithms": lambda k, at: sp.log(1 + at % 3),
    "one or two": lambda k, at: sp.Integer(1 + at % 2),
}


def _values(program: Program, name: str, role: str, sizes: Mapping[str, int], salt: int) -> Any:
    """The array of an input: numbers of its role, other ones for every input."""
    shape = tuple(int(v.xreplace({size(k): sp.Integer(n) for k, n in sizes.items()})) for v in program.shapes[name])
    out = np.empty(shape, dtype=object)
    for k, at in enumerate(np.ndindex(*shape)):
        out[at] = sp.Integer((k + 1) % shape[0]) if role == "turn" else _VALUES[role](k + salt, sum(at) + salt)
    return out


def kept_counts(program: Program) -> Program:
    """The program with one more tensor for each reduction under a condition: how many points it keeps; names end in ``#``."""
    counts = [
        Statement(tensor(s.name + "#", *s.indices), sp.S.One, s.over, where=s.where)
        for s in program
        if any(integer_symbols(c) & set(s.over) for c in s.conditions)
    ]
    return program.with_statements((*program.statements, *counts))


def find_counterexample(claim: Equal, full_rows: bool = True) -> Counterexample | None:
    """The first example at which the sides of a claim differ; rows without keys are passed over where ``full_rows``.

    The sides are exact numbers; of sines and cosines, whose exact sums fill pages, 30 digits: enclosures show that they differ.
    """
    forward = claim.forward or claim.program
    counted = {s.name for s in kept_counts(forward)} - {s.name for s in forward}
    extra = [s for s in kept_counts(forward) if s.name in counted]
    lean = _without_maxima(claim.program, forward)
    whole = lean.with_statements((*lean, *extra), [claim.left, claim.right, *counted]).live()
    waves = any(s.expr.has(sp.sin, sp.cos) for s in whole)
    for inputs, sizes in examples(whole, claim.bijections):
        at = {k: v for k, v in sizes.items() if k in map(str, whole.sizes)}
        try:
            found = balls.evaluate(whole, inputs, sizes=at)
            differing = _apart(found[claim.left], found[claim.right])
            if differing is None and _known(found[claim.left], found[claim.right]):
                continue
            if differing is None or not waves:
                found = exact.evaluate(whole, inputs, sizes=at)
                differing = difference(found[claim.left], found[claim.right])
        except SymattnError:
            continue
        if full_rows and any(v == 0 for n in counted for v in np.asarray(found[n]).ravel()):
            continue
        if differing is not None:
            where, left, right = differing
            what = claim.left + (f"[{', '.join(map(str, where))}]" if where else "")
            return Counterexample({n: np.asarray(v).tolist() for n, v in inputs.items()}, sizes, what, left, right, claim.text)
    return None


def _known(left: Any, right: Any) -> bool:
    """Whether all entries are balls: no infinity and no NaN among them."""
    return all(isinstance(x, flint.arb) for side in (left, right) for x in np.asarray(side).flat)


def _digits(x: Any) -> sp.Expr:
    return sp.Float(x.str(30, radius=False), 30)


def _apart(left: Any, right: Any) -> tuple[tuple[int, ...], sp.Expr, sp.Expr] | None:
    """The first entry at which two arrays of balls do not overlap, with 30 digits of both."""
    a, b = np.asarray(left, dtype=object), np.asarray(right, dtype=object)
    for at in np.ndindex(*a.shape):
        if isinstance(a[at], flint.arb) and isinstance(b[at], flint.arb) and not (a[at] - b[at]).contains(0):
            return at, _digits(a[at]), _digits(b[at])
    return None


def _without_maxima(program: Program, forward: Program) -> Program:
    """The program with 0 for row maxima, where it is proved that nothing depends on their values: exact values stay short."""
    try:
        prove_range_only(forward)
    except SymattnError:
        return program
    return program.with_statements(Statement(s.target, sp.S.Zero) if s.range_only else s for s in program)


def differ(x: sp.Expr, y: sp.Expr) -> bool:
    """Whether two exact numbers are shown to be different: by arithmetic, or by enclosures of up to 256 bits.

    >>> differ(sp.sqrt(2), sp.Rational(7, 5)), differ(sp.sqrt(2) * sp.sqrt(3), sp.sqrt(6)), differ(sp.oo, sp.S.Zero)
    (True, False, True)
    """
    if x == y:
        return False
    if x is sp.nan or y is sp.nan or x.is_infinite or y.is_infinite:
        return True
    difference = x - y
    if difference.is_Rational:
        return bool(difference != 0)
    for bits in (64, 256):
        with precision(bits):
            d = constant(difference, BALLS)
            if d > 0 or d < 0:
                return True
    return False


def difference(left: Any, right: Any) -> tuple[tuple[int, ...], sp.Expr, sp.Expr] | None:
    a, b = np.asarray(left, dtype=object), np.asarray(right, dtype=object)
    for at in np.ndindex(*a.shape):
        x, y = sp.sympify(a[at]), sp.sympify(b[at])
        if differ(x, y):
            return at, x, y
    return None
