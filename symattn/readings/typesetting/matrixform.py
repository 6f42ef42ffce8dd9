r"""The matrix form of a statement: ``S = \frac{Q K^{\top}}{\sqrt{d_k}}``, with the values that the formula stands for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import sympy as sp

from symattn.errors import ShapeError
from symattn.program import Program, Statement, integer_symbols, reads
from symattn.readings.typesetting.indexform import with_constants
from symattn.readings.typesetting.matrices import Array, Env, Form
from symattn.readings.typesetting.reduction import NoMatrixForm, Reduction
from symattn.readings.typesetting.scalars import Printer


@dataclass(frozen=True)
class MatrixForm:
    """A statement as a matrix formula.

    Parameters
    ----------
    program, statement
        What it is the form of.
    lhs, rhs
        The two sides in LaTeX.
    batch
        Indices that are no axes of the matrices.
    form
        The right-hand side with its evaluator.
    """

    program: Program
    statement: Statement
    lhs: str
    rhs: str
    batch: frozenset[sp.Symbol]
    form: Form

    @property
    def latex(self) -> str:
        """The formula. It says nothing of the condition: entries outside it are 0, and a row maximum passes over them."""
        return f"{self.lhs} = {self.rhs}"

    def value(self, arrays: Mapping[str, npt.NDArray[np.generic]], sizes: Mapping[sp.Symbol | str, int] | None = None) -> Array:
        """What the printed formula gives for arrays, in float64; entries where the condition fails are 0.

        Parameters
        ----------
        arrays
            The tensors that the formula reads, by name, with all their axes.
        sizes
            Numbers for size symbols that the shapes do not reveal.

        Raises
        ------
        ShapeError
            When a size is neither given nor visible, or two arrays disagree about it.
        """
        numbers = self._sizes(arrays, sizes or {})
        s = self.statement
        lifted = [a for a in s.indices if a in self.batch]
        out = np.zeros([numbers[a] for a in s.indices])
        labels = [a for a in s.indices if a not in self.batch]
        outside = [c for c in s.conditions if not integer_symbols(c) & set(s.over)]
        outside.sort(key=lambda c: bool(reads(c)))  # what keeps a look-up in range comes first
        with np.errstate(all="ignore"):
            for at in np.ndindex(*[numbers[a] for a in lifted]):
                env = Env(arrays, numbers, dict(zip(lifted, map(int, at), strict=True)), self.program.scan_axes)
                keep = np.ones([numbers[a] for a in labels], bool)
                for c in outside:
                    keep = keep & env.pointwise(c, labels) if keep.any() else keep
                if not keep.any():
                    continue
                where = tuple(env.point[a] if a in env.point else slice(None) for a in s.indices)
                out[where] = np.where(keep, self.form.value(env), 0.0)
        return out

    def _sizes(self, arrays: Mapping[str, npt.NDArray[np.generic]], sizes: Mapping[sp.Symbol | str, int]) -> dict[sp.Symbol, int]:
        known = {str(k): int(v) for k, v in sizes.items()}
        for name, x in arrays.items():
            shape = self.program.shapes.get(name)
            if shape is not None and len(shape) != np.ndim(x):
                raise ShapeError(f"{name} has {len(shape)} axes, an array with {np.ndim(x)} was given")
            for axis, length in zip(shape or (), np.shape(x), strict=False):
                if isinstance(axis, sp.Symbol) and known.setdefault(axis.name, length) != length:
                    raise ShapeError(f"{name} has length {length} along {axis}, which is {known[axis.name]} elsewhere")
        symbols = {a: known[a.name] for a in self.program.sizes if a.name in known}
        table = {a: sp.Integer(v) for a, v in symbols.items()}
        numbers = dict(symbols)
        for a in self.statement.domain:
            extent = self.program.dims[a].xreplace(table)
            if not extent.is_Integer:
                raise ShapeError(f"the size {extent} of the index {a} is not visible in the arrays; give it in `sizes`")
            numbers[a] = int(extent)
        return numbers


def matrix_form(program: Program, s: Statement, printer: Printer, *, constants: bool = True) -> MatrixForm | None:
    """The matrix form of a statement, or None where it does not reduce to matrices."""
    batch = printer.batch | printer.hidden
    shown = with_constants(program, s) if constants else s
    try:
        form = Reduction(program, printer, batch).statement(shown)
    except NoMatrixForm:
        return None
    return MatrixForm(program, s, left_hand_side(s, printer), form.tex, batch, form)


def left_hand_side(s: Statement, printer: Printer) -> str:
    """The target of a statement as a matrix, with its batch indices above."""
    labels = [a for a in s.indices if a not in printer.batch | printer.hidden]
    if not labels:
        return printer.tex(s.target)
    return printer.letters.tensor(s.name).tex(printer.subscripts(s.target)[0], shape=printer.shape(labels))
