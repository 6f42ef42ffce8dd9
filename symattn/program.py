"""What a computation is: statements over indexed tensors, and programs of them. There is no attention in this module.

A statement is::

    target[F] = reduce over R of expr(X1[I1], X2[I2], ...)    where condition

Its iteration domain is all values of the free indices ``F`` and the bound indices ``R`` at which the condition holds.
*Outside the domain nothing is evaluated*: a sum skips the point, an unreduced statement has the value 0, a maximum over
nothing is -oo (a sum over nothing 0, a product 1). Subscripts may be expressions (``tok[p]``, ``t - 1``, ``A[i, i]``).

A recurrence is a *scan*: consecutive statements with the same scan are evaluated together, step by step along its index, and
read their own tensors at earlier steps. A tensor that a scan defines is 0 outside the range of the scan's axis, wherever it is
read; any other look-up out of range is an error.

Everything that symattn gives - gradients, LaTeX, values in any number type, rounding bounds - is a reading of such a list.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

import sympy as sp

from symattn.errors import ProgramError
from symattn.indexed import (
    Table,
    Tensor,
    all_reads,
    condition_text,
    conjuncts,
    expression,
    index,
    indices,
    integer_symbols,
    name_of,
    reads,
    size,
    subscripts_of,
    tensor,
)
from symattn.scans import Scan, grouped, kept_apart, scan_axis
from symattn.validation import checked_shapes

__all__ = [
    "Program",
    "Reduce",
    "Scan",
    "Statement",
    "Table",
    "Tensor",
    "all_reads",
    "conjuncts",
    "index",
    "indices",
    "integer_symbols",
    "name_of",
    "reads",
    "size",
    "subscripts_of",
    "tensor",
]

Reduce = Literal["sum", "max", "prod"]


@dataclass(frozen=True)
class Statement:
    """``target[F] = reduce over R of expr where condition``.

    Parameters
    ----------
    target
        ``Indexed`` with distinct plain indices (the free indices F), or a real symbol for a scalar.
    expr
        A scalar SymPy expression in ``Indexed`` tensors, index and size symbols and scalar parameters.
    over
        The bound indices R.
    reduce
        ``"sum"``, ``"max"`` or ``"prod"``; without meaning where ``over`` is empty.
    where
        A SymPy condition in index symbols and tensors. It is part of the domain and is never differentiated.
    range_only
        A claim: no output depends on the value of the target (a row maximum). The adjoint holds it constant once proved.
    aux
        A helper that a presentation may eliminate.
    scan
        The walk along one of the free indices in whose steps the statement is evaluated; see :class:`symattn.scans.Scan`.

    Raises
    ------
    ProgramError
        When an index is repeated, bound twice, or in the expression without being free or bound; when the index of the scan is
        not free.

    >>> i, j = indices("i j")
    >>> print(Statement(tensor("l", i), tensor("E", i, j), (j,), where=sp.Le(j, i)))
    l[i] = sum over j of E[i, j]   where j <= i
    >>> print(Statement(tensor("h", i), tensor("a", i) * tensor("h", i - 1) + tensor("x", i), scan=Scan(i)))
    h[i] = a[i]*h[i - 1] + x[i]   scan i
    """

    target: Tensor
    expr: sp.Expr
    over: tuple[sp.Symbol, ...] = ()
    reduce: Reduce = "sum"
    where: sp.Basic = sp.true
    range_only: bool = False
    aux: bool = False
    scan: Scan | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "expr", expression(self.expr) if isinstance(self.expr, (int, float)) else self.expr)
        object.__setattr__(self, "over", tuple(self.over))
        if isinstance(self.where, bool):
            object.__setattr__(self, "where", sp.true if self.where else sp.false)
        if not isinstance(self.target, (sp.Indexed, sp.Symbol)):
            raise ProgramError(f"the target of a statement is a tensor, got {self.target!r} ({type(self.target).__name__})")
        if not isinstance(self.expr, sp.Expr):
            raise ProgramError(f"{self.name}: the expression must be a SymPy expression, got {self.expr!r}")
        if self.reduce not in ("sum", "max", "prod"):
            raise ProgramError(f"{self.name}: reduce is 'sum', 'max' or 'prod', got {self.reduce!r}")
        for a in (*self.indices, *self.over):
            if not (isinstance(a, sp.Symbol) and a.is_integer):
                raise ProgramError(f"{self.name}: {a} is no plain index; a target and `over` take index symbols only")
        if len(set(self.domain)) != len(self.domain):
            raise ProgramError(f"{self.name}: the indices {self.domain} are not distinct")
        if self.scan is not None and not isinstance(self.scan, Scan):
            raise ProgramError(f"{self.name}: scan is a Scan or None, got {self.scan!r}")
        if self.scan is not None and self.scan.index not in self.indices:
            raise ProgramError(
                f"{self.name}: the index {self.scan.index} of the scan must be among the free indices, in `{self.target}`"
            )
        if self.scan is None and self.name in self.needs:
            raise ProgramError(f"{self.name}: a statement cannot read the tensor that it defines, unless in a scan")

    @property
    def name(self) -> str:
        """The name of the tensor that this statement defines."""
        return name_of(self.target)

    @property
    def indices(self) -> tuple[sp.Symbol, ...]:
        """The free indices F, in the order of the target's axes."""
        return subscripts_of(self.target)

    @property
    def domain(self) -> tuple[sp.Symbol, ...]:
        """Free and bound indices."""
        return self.indices + self.over

    @cached_property
    def reads(self) -> tuple[Tensor, ...]:
        """What ``expr`` reads, outermost."""
        return reads(self.expr)

    @property
    def conditions(self) -> tuple[sp.Basic, ...]:
        """The conjuncts of ``where``."""
        return conjuncts(self.where)

    @cached_property
    def needs(self) -> frozenset[str]:
        """Names of all tensors that must be known before this statement, those in ``where`` and subscripts included."""
        return frozenset(name_of(x) for e in (self.expr, self.where) for x in all_reads(e))

    def xreplace(self, table: Mapping[sp.Basic, sp.Basic]) -> Statement:
        """The statement with ``table`` substituted in expression and condition; target and ``over`` stay."""
        return replace(self, expr=self.expr.xreplace(table), where=self.where.xreplace(table))

    def renamed(self, table: Mapping[sp.Symbol, sp.Symbol]) -> Statement:
        """The statement with indices renamed everywhere."""
        return replace(
            self,
            target=self.target.xreplace(table),
            expr=self.expr.xreplace(table),
            where=self.where.xreplace(table),
            over=tuple(table.get(a, a) for a in self.over),
            scan=None if self.scan is None else self.scan.renamed(table),
        )

    def __str__(self) -> str:
        head = f"{self.reduce} over {', '.join(map(str, self.over))} of " if self.over else ""
        tail = "" if self.where == sp.true else f"   where {' and '.join(condition_text(c) for c in self.conditions)}"
        return f"{self.target} = {head}{self.expr}{tail}" + ("" if self.scan is None else f"   {self.scan}")


@dataclass(frozen=True)
class Program:
    """A list of statements, the size of every index, and the names of the outputs.

    Parameters
    ----------
    statements
        In an order in which every tensor is defined before it is read, a scan's own at earlier steps excepted. A tensor that no
        statement defines is an input.
    dims
        Index symbol -> size symbol (or expression in size symbols, or integer) of every index in the list.
    outputs
        Names of defined tensors.
    shapes
        Sizes of inputs that no read with plain indices reveals: the embedding table in ``Emb[tok[p], c]``, or ``x`` where
        only ``x[t - 1]`` is read.

    Raises
    ------
    ProgramError
        On an index without size, a tensor read before its definition or defined twice, a rank or size that differs
        between two reads of one tensor, a read of a scan's own tensor at a later step, or an output that does not exist.

    >>> i, j = indices("i j")
    >>> n, m = size("n"), size("m")
    >>> row = Program((Statement(tensor("l", i), tensor("E", i, j), (j,)),), {i: n, j: m}, ("l",))
    >>> row.inputs, row.shapes["E"]
    (('E',), (n, m))
    """

    statements: tuple[Statement, ...]
    dims: Mapping[sp.Symbol, sp.Expr]
    outputs: tuple[str, ...]
    shapes: Mapping[str, tuple[sp.Expr, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "statements", tuple(self.statements))
        object.__setattr__(self, "outputs", tuple(self.outputs))
        object.__setattr__(self, "dims", Table({k: sp.Integer(v) if isinstance(v, int) else v for k, v in self.dims.items()}))
        object.__setattr__(self, "shapes", Table(checked_shapes(self)))

    def __hash__(self) -> int:
        return hash((self.statements, self.dims, self.outputs, self.shapes))

    def __iter__(self) -> Iterator[Statement]:
        return iter(self.statements)

    def __len__(self) -> int:
        return len(self.statements)

    def __getitem__(self, name: str) -> Statement:
        """The statement that defines the tensor ``name``."""
        return self._by_name[name]

    def __contains__(self, name: object) -> bool:
        return name in self._by_name

    @cached_property
    def _by_name(self) -> dict[str, Statement]:
        return {s.name: s for s in self.statements}

    @cached_property
    def _groups(self) -> tuple[tuple[Statement, ...], ...]:
        return grouped(self.statements)

    def groups(self) -> tuple[tuple[Statement, ...], ...]:
        """What is evaluated together, in order: each scan group whole, every other statement by itself.

        >>> t = index("t")
        >>> h = Statement(tensor("h", t), tensor("h", t - 1) + tensor("x", t), scan=Scan(t))
        >>> y = Statement(tensor("y", t), tensor("h", t) ** 2)
        >>> [[s.name for s in group] for group in Program((h, y), {t: size("n")}, ("y",)).groups()]
        [['h'], ['y']]
        """
        return self._groups

    @cached_property
    def scan_axes(self) -> Mapping[str, int]:
        """Which axis of a tensor defined in a scan is the scan's, by name: the tensor is 0 outside the range of that axis."""
        axes = {s.name: scan_axis(s) for s in self.statements}
        return {n: k for n, k in axes.items() if k is not None}

    @cached_property
    def inputs(self) -> tuple[str, ...]:
        """Names of the tensors and scalar parameters that are read and not defined, in order of first use."""
        seen: dict[str, None] = {}
        for s in self.statements:
            for e in (s.expr, s.where):
                for x in all_reads(e):
                    if name_of(x) not in self._by_name:
                        seen.setdefault(name_of(x))
        return tuple(seen)

    @cached_property
    def discrete(self) -> frozenset[str]:
        """Inputs that only conditions and subscripts read (masks, token numbers): they have no gradient."""
        values = {name_of(x) for s in self.statements for x in s.reads}
        return frozenset(n for n in self.inputs if n not in values)

    @property
    def sizes(self) -> tuple[sp.Symbol, ...]:
        """The size symbols, sorted by name."""
        found = {a for v in self.dims.values() for a in v.free_symbols}
        found |= {a for shape in self.shapes.values() for v in shape for a in v.free_symbols}
        return tuple(sorted(found, key=str))

    def shape_of(self, s: Statement) -> tuple[sp.Expr, ...]:
        """The sizes of a statement's target."""
        return tuple(self.dims[a] for a in s.indices)

    def users(self, name: str) -> tuple[Statement, ...]:
        """The statements that read ``name``, in order."""
        return tuple(s for s in self.statements if name in s.needs)

    def with_statements(
        self,
        statements: Iterable[Statement],
        outputs: Iterable[str] | None = None,
        dims: Mapping[sp.Symbol, sp.Expr] | None = None,
        shapes: Mapping[str, tuple[sp.Expr, ...]] | None = None,
    ) -> Program:
        """The same program with other statements, and with ``outputs``, more ``dims`` and more ``shapes`` where given."""
        return Program(
            tuple(statements),
            {**self.dims, **(dims or {})},
            self.outputs if outputs is None else tuple(outputs),
            {**self.shapes, **(shapes or {})},
        )

    def live(self) -> Program:
        """The program without statements that no output depends on."""
        return self.with_statements(needed(self.groups(), self.outputs))

    def __str__(self) -> str:
        return "\n".join(map(str, self.statements))


def needed(groups: Iterable[tuple[Statement, ...]], outputs: Iterable[str]) -> tuple[Statement, ...]:
    """The statements that some outputs depend on, given and returned in order; groups stay apart."""
    wanted, kept = set(outputs), []
    for group in reversed(tuple(groups)):
        found: set[str] = set()
        while more := {s.name for s in group if s.name in wanted} - found:
            found |= more
            wanted |= {n for s in group if s.name in more for n in s.needs}
        kept.append(tuple(s for s in group if s.name in found))
    return kept_apart(group for group in reversed(kept) if group)
