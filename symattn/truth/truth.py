"""The exact values of a program, enclosed: balls whose precision is raised until the question asked is decided."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import sympy as sp
from sympy.core.relational import Relational
from sympy.functions.elementary.piecewise import ExprCondPair

from symattn import formats
from symattn.errors import LimitError, ProgramError, UndecidedError, nearest
from symattn.program import Program
from symattn.readings import balls, exact
from symattn.readings.tables import Objects
from symattn.truth.enclosure import Enclosure, of_balls, of_exact, only_tiny, open_balls, straddling, with_tiny

DIGITS = 50
"""Significant digits that are guaranteed when nothing else is asked."""
MAX_DIGITS = 100_000
ROUNDS = 3
"""How often the precision is doubled beyond what the digits need, before what is left is called undecided."""
EXACT_POINTS = 4000
"""Numbers in the inputs of a rational program up to which it is evaluated in fractions."""

_RATIONAL = (sp.Add, sp.Mul, sp.Abs, sp.Max, sp.Min, sp.sign, sp.floor, sp.Mod, sp.Piecewise, ExprCondPair)
_LOGICAL = (Relational, sp.And, sp.Or, sp.Not)


def truth(
    program: Program,
    inputs: Mapping[str, object],
    *,
    digits: int | None = None,
    bits: int | None = None,
    outputs: Iterable[str] | None = None,
    decide: str | formats.Format | None = None,
    max_bits: int | None = None,
    sizes: Mapping[sp.Symbol | str, int] | None = None,
) -> dict[str, Enclosure]:
    """The exact values of some tensors of a program, enclosed.

    Parameters
    ----------
    program
        Any program.
    inputs
        Arrays; floats are the dyadic rationals that they are, text is read exactly.
    digits
        Significant digits to guarantee on every element (50): the precision is raised until each radius is at most half a
        unit of the last of them, or ``max_bits`` is reached.
    bits
        Instead of digits: one evaluation at this precision, nothing guaranteed but the enclosure.
    outputs
        Names of tensors; by default the outputs of the program.
    decide
        A float format: the precision is raised until every element rounds to one number of it.
    max_bits
        Cap of the precision, and the wish that it be reached if need be; by default eight times what the digits need.
    sizes
        Sizes that no input shows.

    Returns
    -------
    dict
        An :class:`Enclosure` for each name. A value may be 0 for a reason that no number of digits shows. An element whose
        digits are not guaranteed is ``tiny`` where it is certainly below ``10^(-2 digits)`` of the largest value of all outputs,
        and ``undecided`` otherwise; its enclosure holds all the same.

        The precision is doubled for all elements at once, so an element that is 0 would cost the others dear. Therefore, when at
        twice the precision that the digits need or more the only elements left are tiny and still contain 0, that is the answer.
        A number that small which is not 0 gets its digits when ``max_bits`` is given: then the precision goes up to it.

    Raises
    ------
    UndecidedError
        When a condition of the program is not decided at the cap.
    ProgramError
        For an output that the program does not define.
    LimitError
        For digits or bits beyond 100000 digits.

    >>> from symattn.program import Statement, indices, size, tensor
    >>> i, = indices("i")
    >>> p = Program((Statement(tensor("y", i), sp.exp(tensor("x", i))),), {i: size("n")}, ("y",))
    >>> y = truth(p, {"x": ["0.1", 0]}, digits=30)["y"]
    >>> y.decimal(30).tolist(), y.status.tolist()
    (['1.10517091807564762481170782649', '1.00000000000000000000000000000'], ['enclosed', 'exact'])
    """
    if digits is not None and bits is not None:
        raise LimitError("give digits or bits, not both")
    wanted = program.outputs if outputs is None else tuple(outputs)
    for name in wanted:
        if name not in program:
            raise ProgramError(f"the program defines no tensor {name!r}. {nearest(name, [s.name for s in program])}")
    asked = digits if digits is not None else DIGITS if bits is None else None
    start = math.ceil((asked or 0) * math.log2(10)) + 64 if bits is None else bits
    if not 1 <= start <= MAX_DIGITS * 4 or (digits is not None and digits < 1):
        raise LimitError(f"{digits if digits is not None else bits} is beyond what is answered: 1 to {MAX_DIGITS} digits")
    lean = program.with_statements(program.statements, wanted).live()
    given = {n: v for n, v in inputs.items() if n in lean.inputs or n not in program.inputs}
    if bits is None and is_rational(lean):
        found = _fractions(lean, given, wanted, sizes)
        if found is not None:
            return found
    cap = max_bits or (start << ROUNDS)
    precision = start
    while True:
        last = bits is not None or 2 * precision > cap
        try:
            values = {n: v for n, v in balls.evaluate(lean, given, sizes=sizes, bits=precision).items() if n in wanted}
        except UndecidedError:
            if last:
                raise
        else:
            hopeless = precision > start and max_bits is None
            if last or asked is None or _settled(values, asked, hopeless):
                found = {n: of_balls(values[n], asked) for n in wanted}
                if last or decide is None or all(straddling(e, decide) is None for e in found.values()):
                    return found if asked is None else with_tiny(found, asked)
        precision *= 2


def _settled(values: Mapping[str, Objects], digits: int, hopeless: bool) -> bool:
    """Whether all digits are guaranteed, or where ``hopeless``, whether what lacks them is 0 as far as can be told."""
    undecided = [x for v in values.values() for x in open_balls(v, digits)]
    return not undecided or (hopeless and only_tiny(undecided, values.values(), digits))


def is_rational(program: Program) -> bool:
    """Whether every statement is made of rational operations, so that rational inputs give rational values.

    >>> from symattn.program import Statement, tensor
    >>> x, y = tensor("x"), tensor("y")
    >>> is_rational(Program((Statement(y, x**2 / 3),), {}, ("y",))), is_rational(Program((Statement(y, sp.exp(x)),), {}, ("y",)))
    (True, False)
    """
    return all(_rational(e) for s in program for e in (s.expr, *s.conditions))


def _rational(e: sp.Basic) -> bool:
    if isinstance(e, (sp.Indexed, sp.Symbol, sp.Rational)) or e in (sp.true, sp.false, sp.oo, -sp.oo):
        return True
    if isinstance(e, sp.Pow):
        return bool(e.exp.is_Integer) and _rational(e.base)
    if isinstance(e, (*_RATIONAL, *_LOGICAL)):
        return all(_rational(a) for a in e.args)
    return False


def _fractions(
    program: Program, inputs: Mapping[str, object], wanted: Iterable[str], sizes: Mapping[sp.Symbol | str, int] | None
) -> dict[str, Enclosure] | None:
    """The values in fractions; None where the arrays are large or an input is not rational."""
    if sum(np.asarray(v, dtype=object).size for v in inputs.values()) > EXACT_POINTS:
        return None
    values = exact.evaluate(program, inputs, sizes=sizes)
    if not all(_plain(x) for n in wanted for x in values[n].ravel().tolist()):
        return None
    return {n: of_exact(_fraction_array(values[n])) for n in wanted}


def _plain(x: Any) -> bool:
    return bool(x.is_Rational) or x is sp.nan or x is sp.oo or x is -sp.oo


def _fraction_array(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    out = np.empty(values.size, dtype=object)
    out[:] = [Fraction(int(x.p), int(x.q)) if x.is_Rational else float(x) for x in values.ravel().tolist()]
    return out.reshape(values.shape)
