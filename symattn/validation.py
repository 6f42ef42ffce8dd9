"""Validation of a program: every index has a size, every tensor is defined once and before it is read, ranks and sizes agree.

In a scan, a tensor of the group is read where it is defined before, or at an earlier step.

The shape of an input is inferred from the reads that have a plain index on its axes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import sympy as sp

from symattn.errors import ProgramError
from symattn.indexed import Tensor, all_reads, expression, integer_symbols, name_of, reads, subscripts_of
from symattn.scans import check_group, grouped

if TYPE_CHECKING:
    from symattn.program import Program, Statement


def checked_shapes(p: Program) -> dict[str, tuple[sp.Expr, ...]]:
    """The shape of every tensor of a program, which is validated.

    Raises
    ------
    ProgramError
        On what :class:`symattn.program.Program` refuses.

    >>> from symattn.program import Program, Statement, indices, size, tensor
    >>> t, c = indices("t c")
    >>> step = Statement(tensor("y", t), tensor("x", 0, c) * tensor("x", t, 0), (c,))
    >>> Program((step,), {t: size("n"), c: size("d")}, ("y",)).shapes["x"]  # each axis by the read that reveals it
    (n, d)
    """
    sizes = {a for v in p.dims.values() for a in v.free_symbols} | {
        a for shape in p.shapes.values() for v in shape for a in expression(v).free_symbols
    }
    shapes = {k: tuple(sp.Integer(v) if isinstance(v, int) else v for v in shape) for k, shape in p.shapes.items()}
    will_define = {s.name: s for s in p.statements}
    if len(will_define) != len(p.statements):
        names = [s.name for s in p.statements]
        raise ProgramError(f"defined twice: {', '.join(sorted({n for n in names if names.count(n) > 1}))}")
    for s in p.statements:
        for a in s.domain:
            if a not in p.dims:
                raise ProgramError(f"{s.name}: index {a} has no size; give it in `dims`")
    group_of = {s.name: {x.name: x for x in group} for group in grouped(p.statements) for s in group if s.scan is not None}
    done: set[str] = set()
    for s in p.statements:
        group = group_of.get(s.name, {})
        loose = (integer_symbols(s.expr) | integer_symbols(s.where)) - set(s.domain) - sizes
        if loose:
            raise ProgramError(
                f"{s.name}: {', '.join(sorted(map(str, loose)))} is neither a free nor a bound index nor a size, in `{s}`"
            )
        used = integer_symbols(s.expr) | integer_symbols(s.where)
        for a in s.over:
            if a not in used and reads(s.expr):
                raise ProgramError(f"{s.name}: the bound index {a} is in neither the expression nor the condition, in `{s}`")
        for e in (s.expr, s.where):
            for x in all_reads(e):
                if name_of(x) in group:
                    check_group(s, x, group[name_of(x)], name_of(x) in done)
                    shapes.setdefault(name_of(x), p.shape_of(group[name_of(x)]))
                elif name_of(x) in will_define and name_of(x) not in done:
                    raise ProgramError(f"{s.name}: reads {name_of(x)} before it is defined, in `{s}`")
                _check_read(p, s, x, shapes)
        shapes[s.name] = p.shape_of(s)
        done.add(s.name)
    for o in p.outputs:
        if o not in will_define:
            raise ProgramError(f"the output {o} is not defined; defined are {', '.join(will_define)}")
    return shapes


def _check_read(
    p: Program,
    s: Statement,
    x: Tensor,
    shapes: dict[str, tuple[sp.Expr, ...]],
) -> None:
    n, sub = name_of(x), subscripts_of(x)
    inferred = tuple(p.dims.get(a) for a in sub)
    if n not in shapes:
        shapes[n] = _revealed(p, s, x)
    known = shapes[n]
    if len(known) != len(sub):
        raise ProgramError(f"{s.name}: {n} has {len(known)} axes, `{x}` gives {len(sub)} subscripts")
    for k, (want, got) in enumerate(zip(known, inferred, strict=True)):
        if got is not None and got != want:
            raise ProgramError(f"{s.name}: axis {k} of {n} has size {want}, but `{x}` reads it with {sub[k]} of size {got}")


def _revealed(p: Program, s: Statement, x: Tensor) -> tuple[sp.Expr, ...]:
    """The shape of an input, each axis by any read of it in the program that has a plain index there."""
    name, axes = name_of(x), [p.dims.get(a) for a in subscripts_of(x)]
    for e in (e for other in p.statements for e in (other.expr, other.where)):
        for y in (y for y in all_reads(e) if name_of(y) == name and len(subscripts_of(y)) == len(axes)):
            axes = [p.dims.get(a) if axis is None else axis for axis, a in zip(axes, subscripts_of(y), strict=True)]
    found = tuple(axis for axis in axes if axis is not None)
    if len(found) < len(axes):
        raise ProgramError(f"{s.name}: the shape of {name} cannot be seen from `{x}` or another read; give it in `shapes`")
    return found
