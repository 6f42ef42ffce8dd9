"""A program beside a copy of itself in which something is changed: what invariances are statements about.

The tensors of the copy have a star: ``O*`` is what ``O`` becomes when ``Q`` is replaced by ``Q*``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import sympy as sp

from symattn.program import Program, Statement
from symattn.theorems.duality import called

__all__ = ["MARK", "Beside", "beside"]

MARK = "*"


@dataclass(frozen=True)
class Beside:
    """Two programs in one list.

    Parameters
    ----------
    program
        The statements of the first, then those of the copy; the outputs of both.
    pairs
        (tensor of the copy, tensor of the first), in order.
    """

    program: Program
    pairs: tuple[tuple[str, str], ...]


def beside(
    program: Program,
    changed: Iterable[Statement],
    extra: Iterable[Statement] = (),
    dims: Mapping[sp.Symbol, sp.Expr] | None = None,
    shapes: Mapping[str, tuple[sp.Expr, ...]] | None = None,
) -> Beside:
    """The program beside the copy in which every statement of ``changed`` defines the starred tensor.

    Parameters
    ----------
    program
        Any program.
    changed
        Statements whose targets are starred names (``"Q*"``, ``"Z*"``). What reads the tensor without the star reads the
        starred one in the copy, and so does all that follows from it; what does not is shared.
    extra
        Statements that ``changed`` needs, put before them.
    dims, shapes
        Sizes of further indices and tensors.

    >>> from symattn.indexed import indices, size, tensor
    >>> i, j = indices("i j")
    >>> y = Statement(tensor("y", i), tensor("A", i, j) * tensor("x", j), (j,))
    >>> row = Program((y,), {i: size("n"), j: size("m")}, ("y",))
    >>> print(beside(row, [Statement(tensor("x*", j), -tensor("x", j))]).program)
    y[i] = sum over j of A[i, j]*x[j]
    x*[j] = -x[j]
    y*[i] = sum over j of A[i, j]*x*[j]
    """
    new = {s.name.removesuffix(MARK): s for s in changed}
    names = {n: n + MARK for n in new}
    out = [*program, *extra]
    inputs = [s for n, s in new.items() if n not in program]
    out += inputs
    pairs = [(s.name, s.name.removesuffix(MARK)) for s in inputs]
    for s in program:
        if s.name in new:
            out.append(new[s.name])
        elif s.needs & names.keys():
            names[s.name] = s.name + MARK
            out.append(called(s, names))
        else:
            continue
        pairs.append((s.name + MARK, s.name))
    outputs = (*program.outputs, *(names[o] for o in program.outputs if o in names))
    return Beside(program.with_statements(out, outputs, dims, shapes), tuple(pairs))
