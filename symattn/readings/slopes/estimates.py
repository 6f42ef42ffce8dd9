r"""Estimates beside the bounds: how large an error is by chance, if roundings are independent and of mean 0.

The identity of :mod:`symattn.readings.slopes` reads ``k_out - t_out = sum of slope * err``. Each err is a sum of *atoms*:
roundings that are at most ``a`` in size. Where atoms are independent and of mean 0,

    |k_out - t_out| <= fixed + sqrt(2 ln(2 N/delta)) * root,    root^2 = sum of slope^2 a^2,

in all N elements with probability 1 - delta (W. Hoeffding, J. Am. Stat. Assoc. 58 (1963)), and its root mean square is near
``sqrt(0.18) root``: 0.18 u^2 is the mean square of a relative rounding error of a number whose mantissa is log-uniform. ``fixed``
are the errors that no independence can be asked of: a rounded scale, and operands that are not followed.

Nothing of this is proved of a kernel, and inputs exist that break it (values of the signs of the errors of the weights): what it
says is *estimated*.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import sympy as sp

from symattn.arithmetic import Arithmetic
from symattn.program import Statement
from symattn.readings import numpy as values
from symattn.readings.boxes import Array
from symattn.readings.rounding import Evaluation
from symattn.readings.slopes.enclosures import Enclosures
from symattn.readings.slopes.kinds import without
from symattn.readings.slopes.sweep import Local, Sweeps

__all__ = ["MEAN_SQUARE", "Estimate", "estimates"]

MEAN_SQUARE = 0.18
"""Of a relative rounding error, in units of the square of the unit roundoff."""
FIXED = frozenset({"scale", "underflow"})
"""Kinds of errors that are shared, or not zero on average; so are those of operands that are not followed."""


@dataclass(frozen=True)
class Estimate:
    """What chance makes of the errors of one output; see the module.

    Parameters
    ----------
    fixed, root
        Float64 arrays of the shape of the tensor.
    """

    fixed: Array
    root: Array

    @property
    def rms(self) -> Array:
        """The root mean square that is expected of each element's error, what is fixed at half its size."""
        return np.sqrt(MEAN_SQUARE * self.root**2 + (self.fixed / 2) ** 2)

    def chance(self, failing: float = 1e-6) -> Array:
        """What no element exceeds but with a probability of ``failing`` for the whole tensor."""
        return self.fixed + math.sqrt(2 * math.log(2 * max(self.root.size, 1) / failing)) * self.root


def estimates(
    evaluation: Evaluation, outputs: Iterable[str], sizes: Mapping[sp.Symbol | str, int] | None = None
) -> dict[str, Estimate]:
    """The estimates of some outputs of an evaluated list.

    Parameters
    ----------
    evaluation
        The boxes.
    outputs
        Names of tensors that the list defines.
    sizes
        Sizes that no input shows.

    >>> from symattn import arithmetic
    >>> from symattn.definition import Definition
    >>> q, k, v = (np.linspace(-1, 1, 12).reshape(3, 4) * s for s in (1, 1, 1))
    >>> a, p = arithmetic.get("flash-bf16"), Definition(lse=False).program()
    >>> found = estimates(Evaluation(p, {"Q": q, "K": k, "V": v}, a), ["O"])["O"]
    >>> bool((found.rms > 0).all()), bool((found.rms < found.chance()).all())
    (True, True)
    """
    sweeps, atoms = Sweeps(evaluation), _Atoms(evaluation, sizes)
    return {name: _estimate(sweeps, atoms, name) for name in outputs}


def _estimate(sweeps: Sweeps, atoms: _Atoms, out: str) -> Estimate:
    local = sweeps.local(out, fold=False)
    enclosures = Enclosures(local.plan, sweeps.evaluation.known, _whole(sweeps), sweeps.own, {}, sweeps.each)
    shape = sweeps.evaluation.boxes[out].value.shape
    fixed, squares = np.zeros(shape), np.zeros(shape)
    with np.errstate(all="ignore"):
        for term in local.plan.terms:
            own, free = atoms.of(local, term.name)
            if np.any(own):
                fixed = fixed + enclosures.weighed(term.monomials, own, term.at)
            if np.any(free):
                squares = squares + enclosures.squares(term.monomials, [(free, term.at)], local.plan.free)
    lost = np.isnan(fixed) | np.isnan(squares)
    return Estimate(np.where(lost, np.inf, fixed), np.where(lost, np.inf, np.sqrt(np.maximum(squares, 0.0))))


def _whole(sweeps: Sweeps) -> Mapping[str, Any]:
    return {**sweeps.evaluation.known.boxes, **sweeps.evaluation.refined}


class _Atoms:
    """The local errors of statements as independent atoms: what a sum of roundings is in the Euclidean norm."""

    def __init__(self, evaluation: Evaluation, sizes: Mapping[sp.Symbol | str, int] | None) -> None:
        self.evaluation, self.sizes = evaluation, sizes
        self._ratios: dict[str, Array] = {}
        self._split: dict[tuple[str, frozenset[tuple[str, str]]], tuple[Array, Array]] = {}

    def of(self, local: Local, name: str) -> tuple[Array, Array]:
        """What is fixed of a statement's error, and the square of the norm of the rest."""
        key = name, local.plan.cut
        if key not in self._split:
            self._split[key] = self._of(local, name)
        return self._split[key]

    def _of(self, local: Local, name: str) -> tuple[Array, Array]:
        program, whole = self.evaluation.program, local.error(name)
        if name not in program or name in local.sweeps.opaque():
            return whole, np.zeros(())
        s, given = program[name], local.operands(program[name], cut=False)
        declared = self.evaluation.known.arithmetic
        left, found = whole, []
        for kinds in (FIXED, {"cast"}, {"sum"}) if s.over else (FIXED,):
            declared = without(declared, kinds)
            rest = np.fmin(self.evaluation.local(s, given, declared).bound, left)
            found.append(np.where(left > rest, left - rest, 0.0))
            left = rest
        squares = left**2
        if s.over:
            squares = squares + (found[1] * self._ratio(s)) ** 2 + found[2] ** 2 / max(1, self._additions(s))
        return found[0], squares

    def _additions(self, s: Statement) -> int:
        points = math.prod(self.evaluation.known.sizes.get(a, 1) for a in s.over)
        arithmetic: Arithmetic = self.evaluation.known.arithmetic
        return arithmetic.additions(points, points)

    def _ratio(self, s: Statement) -> Array:
        """``sqrt(sum of x^2) / sum |x|`` over the terms x of a sum of products; 1 for other sums."""
        if s.name not in self._ratios:
            self._ratios[s.name] = self._made(s)
        return self._ratios[s.name]

    def _made(self, s: Statement) -> Array:
        factor, rest = s.expr.as_coeff_Mul()
        if not all(isinstance(f, sp.Indexed) or f.is_Symbol for f in sp.Mul.make_args(rest)):
            return np.ones(())
        size = self._with(s, np.abs) * abs(float(factor))
        squares = self._with(s, np.square) * float(factor) ** 2
        return np.where(size > 0, np.sqrt(squares) / np.where(size > 0, size, 1.0), 0.0)

    def _with(self, s: Statement, change: Any) -> Array:
        """The sum with all its operands changed, a constant factor left out."""
        rest = s.expr.as_coeff_Mul()[1]
        program = self.evaluation.program.with_statements([replace(s, expr=rest)], (s.name,))
        boxes, given = self.evaluation.boxes, self.evaluation.inputs
        inputs = {n: change(boxes[n].value) for n in program.inputs if n not in program.discrete}
        inputs |= {n: given[n] if n in given else np.rint(boxes[n].value).astype(np.int64) for n in program.discrete}
        known = (self.evaluation.sizes or {}, self.sizes or {})
        sizes = {str(k): int(v) for each in known for k, v in each.items()}
        with np.errstate(all="ignore"):
            return values.evaluate(program, inputs, sizes=sizes, dtype="float64")[s.name]
