"""Blocks of a program: an index is cut into ranges, and what each range needs and gives is a program again.

Cut the indices ``A`` of a program. Each tensor falls into one of five groups, by what its statement reads:

``first``
    no cut index and no tensor of a block is in it, but blocks read it (projected keys): evaluated once, before the blocks.
``local``
    the last index of ``A`` is in its domain, or it reads a local tensor; and it reads local tensors at the values of its own
    block only. Evaluated in each block, for the values of the block. A ``first`` statement that has no index beside cut ones
    (``scale``, a slope for each head) is evaluated in each block too.
``partial``
    local, but a cut index is bound: each block gives the part of the sum (maximum, product) that ranges over its values.
``rest``
    reads a partial tensor, or a local one at other values than those of its block: evaluated when all blocks are done.
    A recurrence along a cut index cannot be cut and is in ``rest`` as well.

``first`` and ``rest`` are programs, which may be cut in their turn, by other indices.

**Proof** that the pieces put together are the whole. Let a block be a range ``[s_a, s_a + c_a)`` for each cut index ``a``;
for each a the ranges partition the values of a. The local program is the program with ``a`` renamed ``a + s_a`` wherever it
is not a plain subscript on an axis of which only the range is given. Its statements are taken in order; assume that those
before have, for the values of the block, the values of the whole. A statement at a free point ``F`` of the block ranges over
the points ``(F, R)`` of its domain. A tensor that it reads is (i) an input or a ``first`` tensor with every axis whole: the
subscripts have the same values, because ``a + s_a`` ranges over the block; (ii) one with an axis of which the range is
given, read by the plain subscript a: element ``a`` of the range is element ``a + s_a`` of the whole; (iii) local, read by
plain subscripts on its cut axes: as in (ii), and these elements are right by assumption. So the condition and the expression
have the values of the whole. Where no bound index is cut, R is the same and the value is that of the whole. Where one is,
the R of all blocks are a partition of that of the whole, since the ranges are one, and sums, maxima and products do not
depend on order and grouping; over nothing they are 0, -oo and 1, which change nothing: the values of the blocks, reduced,
are the value of the whole. A cut index that is neither free nor bound in a statement leaves its value alone: blocks that
differ there only give the same value, and that of the first counts. □

**Reach.** A condition such as ``j <= i`` leaves a block only some values of an index that is not cut. Then the block takes
the range of j outside which no condition can hold (:mod:`symattn.readings.reach`), in the same way: renamed ``j + s_j``,
inputs sliced. Let every local statement with j in its domain either carry a condition, which is false outside the range, or
have j free and not be given back. Outside the range the first kind is not evaluated: its sums lose no point, and as a target
it holds there what reducing nothing gives. The second kind is read, by the plain subscript j, from statements with j in
their domain: at the values of the range from there on, by the same argument, and at no other that matters. So nothing that
is given back changes. □

In exact arithmetic "the value" is one number. In a reading that rounds or encloses, each piece is a valid reading of the
same statements, and only partial sums are added in another order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import sympy as sp

from symattn.errors import ProgramError, nearest
from symattn.indexed import all_reads, index, integer_symbols, name_of, reads, subscripts_of
from symattn.program import Program, Reduce, Statement, Table, needed

__all__ = ["Cut", "Groups", "Partition", "groups_of", "partition", "torn", "uncut"]


@dataclass(frozen=True)
class Cut:
    """An index of which a block has the values from ``start`` on, ``count`` of them; both are sizes of the local program."""

    index: sp.Symbol
    start: sp.Symbol
    count: sp.Symbol


@dataclass(frozen=True)
class Groups:
    """The names of the tensors of a program by what cutting some indices makes of them; see the module."""

    first: frozenset[str]
    again: frozenset[str]
    local: frozenset[str]
    partial: frozenset[str]
    rest: frozenset[str]


@dataclass(frozen=True)
class Partition:
    """A program cut along some indices.

    Parameters
    ----------
    program
        The program that was cut, without what no output needs.
    cuts
        The cut indices, outermost first.
    reached
        Indices of which a block takes what conditions leave.
    first
        The program that is evaluated before the blocks; None where there is nothing to do.
    local
        The program of one block. Inputs and ``first`` tensors are given sliced, by ``axes``; its size symbols are those of
        the program, and ``start`` and ``count`` of each cut and reached index.
    whole
        Tensors of ``local`` whose blocks are slices of the whole.
    partial
        Tensors of ``local`` that are reduced over blocks, and how.
    rest
        The program that is evaluated after the blocks, which reads what they gave; None where there is nothing to do.
    axes
        For every tensor that ``local`` is given or gives: the cut or reached index of each axis, None where the axis is whole.
    conditions
        For each reached index the conditions that say which values can matter.

    >>> from symattn.program import indices, size, tensor
    >>> i, j = indices("i j")
    >>> n = size("n")
    >>> weights = Statement(tensor("P", i, j), sp.exp(tensor("q", i) * tensor("k", j)), where=sp.Le(j, i))
    >>> back = Statement(tensor("dk", j), tensor("P", i, j), (i,), where=sp.Le(j, i))
    >>> p = partition(Program((weights, back), {i: n, j: n}, ("P", "dk")), (i,))
    >>> print(p.local)
    P[i, j] = exp(k[j]*q[i])   where j + j_start <= i + i_start
    dk[j] = sum over i of P[i, j]   where j + j_start <= i + i_start
    >>> p.whole, p.partial, p.rest, p.axes["k"]
    (('P',), {dk: sum}, None, (j,))
    """

    program: Program
    cuts: tuple[Cut, ...]
    reached: tuple[Cut, ...]
    first: Program | None
    local: Program
    whole: tuple[str, ...]
    partial: Mapping[str, Reduce]
    rest: Program | None
    axes: Mapping[str, tuple[sp.Symbol | None, ...]]
    conditions: Mapping[sp.Symbol, tuple[sp.Basic, ...]]

    @property
    def given_back(self) -> tuple[str, ...]:
        """What a block gives: slices and parts."""
        return (*self.whole, *self.partial)

    def bound(self, name: str) -> tuple[sp.Symbol, ...]:
        """The cut indices that a partial tensor is reduced over."""
        return tuple(c.index for c in self.cuts if c.index in self.program[name].over)

    def absent(self, name: str) -> tuple[sp.Symbol, ...]:
        """The cut indices that a tensor's statement does not have: blocks that differ in them only give the same."""
        return tuple(c.index for c in self.cuts if c.index not in self.program[name].domain)


@lru_cache(maxsize=256)
def partition(
    program: Program, cut: tuple[sp.Symbol, ...], outputs: tuple[str, ...] | None = None, repeat: bool = False
) -> Partition:
    """A program cut along some indices into blocks.

    Parameters
    ----------
    program
        Any program.
    cut
        The indices, outermost first; the last one says what is local. :func:`symattn.readings.cutting.cut_indices` finds them.
    outputs
        Names of tensors; by default the outputs of the program.
    repeat
        Whether blocks evaluate for themselves what would be evaluated once before them; there is no ``first`` then.

    Raises
    ------
    ProgramError
        When nothing is local, or a recurrence would be read in another program at earlier steps.
    """
    wanted = program.outputs if outputs is None else outputs
    lean = program.with_statements(program.statements, wanted).live()
    for a in cut:
        if a not in lean.dims:
            raise ProgramError(f"there is no index {a} to cut. {nearest(str(a), map(str, lean.dims))}")
    groups = groups_of(lean, cut, repeat)
    inside = groups.local | groups.partial
    if not inside:
        raise ProgramError(f"cutting {', '.join(map(str, cut))} leaves nothing to do in a block; cut other indices")
    broken = torn(lean, groups)
    if broken is not None:
        raise ProgramError(f"{broken} reads at other steps what a scan defines; cut indices that leave both in one part")
    after = _names(lean, groups.rest, {n for n in wanted if n not in inside | groups.first}, groups.again)
    outside = {name_of(x) for s in lean if s.name in after for x in _all(s)}
    give = [s.name for s in lean if s.name in inside and (s.name in wanted or s.name in outside)]
    first = tuple(s for s in lean if s.name in groups.first | groups.again)
    kept = needed([g for g in lean.groups() if g[0].name in inside | groups.again], give)
    conditions = _reached(lean, kept, frozenset(cut), frozenset(give))
    cuts, reached = (tuple(_cut(lean, a) for a in found) for found in (cut, conditions))
    axes = _axes(lean, kept, frozenset((*cut, *conditions)))
    return Partition(
        lean,
        cuts,
        reached,
        _part(lean, first, [s.name for s in first if s.name in groups.first & (_read_by(kept) | outside | set(wanted))]),
        _local(lean, kept, give, (*cuts, *reached), axes),
        tuple(n for n in give if n in groups.local),
        Table({n: lean[n].reduce for n in give if n in groups.partial}),
        _part(lean, tuple(s for s in lean if s.name in after), [n for n in wanted if n in after]),
        Table(axes),
        Table(conditions),
    )


def uncut(program: Program) -> Partition:
    """A program as the one block of itself."""
    axes: dict[str, tuple[sp.Symbol | None, ...]] = {n: (None,) * len(shape) for n, shape in program.shapes.items()}
    return Partition(program, (), (), None, program, program.outputs, Table(), None, Table(axes), Table())


def groups_of(program: Program, cut: Sequence[sp.Symbol], repeat: bool = False) -> Groups:
    """What cutting some indices makes of the tensors of a program.

    >>> from symattn.definition import Definition
    >>> p = Definition(start="x", lse=False).program()
    >>> found = groups_of(p, [a for a in p.dims if a.name == "i"])
    >>> sorted(found.first), sorted(found.again), sorted(found.partial | found.rest)
    (['K', 'V'], ['scale'], [])
    """
    cuts = frozenset(cut)
    before: dict[str, None] = {}
    local, partial, rest = set[str](), set[str](), set[str]()
    for group in program.groups():
        names = {s.name for s in group}
        needs = {n for s in group for n in s.needs} - names
        touches = any(cut[-1] in s.domain for s in group) or not needs.isdisjoint(local)
        if not needs.isdisjoint(rest | partial):
            rest |= names
        elif not touches:
            before |= dict.fromkeys(names)
        elif not all(_stays(program, s, local | names, cuts) for s in group):
            rest |= names
        elif any(not cuts.isdisjoint(s.over) for s in group):
            (partial if group[0].scan is None else rest).update(names)
        else:
            local |= names
    sought = needed([g for g in program.groups() if g[0].name not in rest], sorted(local | partial))
    first = {s.name for s in sought} & before.keys()
    again = set[str]()
    for n in before:
        s = program[n]
        cheap = s.scan is None and not s.over and cuts.issuperset(s.indices) and s.needs & first <= again
        if n in first and (cheap or repeat):
            again.add(n)
    return Groups(
        frozenset(first - again), frozenset(again), frozenset(local), frozenset(partial), frozenset(rest | before.keys() - first)
    )


def _all(s: Statement) -> Iterable[sp.Basic]:
    """Everything that a statement reads."""
    return (x for e in (s.expr, s.where) for x in all_reads(e))


def _read_by(statements: Iterable[Statement]) -> set[str]:
    return {n for s in statements for n in s.needs}


def _stays(program: Program, s: Statement, local: set[str], cuts: frozenset[sp.Symbol]) -> bool:
    """Whether a statement reads tensors of a block at the values of its own block, and walks along no cut index."""
    if s.scan is not None and s.scan.index in cuts:
        return False
    for x in _all(s):
        if name_of(x) in local:
            own = program[name_of(x)].indices
            if any(a in cuts and sub != a for a, sub in zip(own, subscripts_of(x), strict=True)):
                return False
    return True


def _names(program: Program, rest: frozenset[str], outputs: set[str], again: frozenset[str]) -> set[str]:
    """The statements of the program that waits: those that wait and are needed, with what is cheap enough to do again."""
    groups = [g for g in program.groups() if g[0].name in rest | again]
    return {s.name for s in needed(groups, outputs)}


def torn(program: Program, groups: Groups) -> str | None:
    """The name of a statement that reads a scan's tensor of another part at other steps than its own, or None.

    A tensor of a scan is 0 beyond the ends of its axis; a program that is only given the tensor does not know that.
    """
    for part in (groups.first, groups.local | groups.partial, groups.rest):
        for name in part & program.scan_axes.keys():
            for s in program.users(name):
                at = [subscripts_of(x)[program.scan_axes[name]] for x in _all(s) if name_of(x) == name]
                if s.name not in part and not all(isinstance(a, sp.Symbol) for a in at):
                    return s.name
    return None


def _part(program: Program, statements: tuple[Statement, ...], outputs: Sequence[str]) -> Program | None:
    """Some statements of a program as a program of their own; None where it has nothing to give."""
    if not outputs:
        return None
    made = {s.name for s in statements}
    read = {n: program.shapes[n] for n in _read_by(statements) - made}
    return Program(statements, program.dims, tuple(outputs), read).live()


def _cut(program: Program, a: sp.Symbol) -> Cut:
    taken = {x.name for x in (*program.sizes, *program.dims)}

    def fresh(name: str) -> str:
        return fresh(name + "_") if name in taken else name

    start, count = fresh(f"{a}_start"), fresh(f"{a}_count")
    return Cut(a, sp.Symbol(start, integer=True, nonnegative=True), sp.Symbol(count, integer=True, positive=True))


def _reached(
    program: Program, statements: tuple[Statement, ...], cuts: frozenset[sp.Symbol], give: frozenset[str]
) -> dict[sp.Symbol, tuple[sp.Basic, ...]]:
    """The indices of which conditions leave a block a part, with these conditions."""
    found: dict[sp.Symbol, tuple[sp.Basic, ...]] = {}
    candidates = dict.fromkeys(a for s in statements for a in s.domain if a not in cuts and a in integer_symbols(s.where))
    for a in candidates:
        with_it = [s for s in statements if a in s.domain]
        bounded = [s for s in with_it if a in integer_symbols(s.where)]
        free = [s for s in with_it if s not in bounded]
        if any(a in s.over or s.name in give for s in free) or any(s.scan is not None for s in with_it):
            continue
        if not all(any(a in integer_symbols(q) and not reads(q) for q in s.conditions) for s in bounded):
            continue
        made = {s.name: s.indices for s in with_it if a in s.indices}
        if all(
            sub == a
            for s in statements
            for x in _all(s)
            for own, sub in zip(made.get(name_of(x), ()), subscripts_of(x), strict=False)
            if own == a
        ):
            found[a] = tuple(dict.fromkeys(s.where for s in bounded))
    return found


def _axes(
    program: Program, statements: tuple[Statement, ...], moved: frozenset[sp.Symbol]
) -> dict[str, tuple[sp.Symbol | None, ...]]:
    """Which axes of each tensor are given or made by block: for an input, those that every read has the same plain index on."""
    made = {s.name: tuple(a if a in moved else None for a in s.indices) for s in statements}
    found: dict[str, tuple[sp.Symbol | None, ...]] = {}
    for s in statements:
        for x in _all(s):
            if name_of(x) not in made:
                axes = tuple(a if a in moved else None for a in subscripts_of(x))
                known = found.setdefault(name_of(x), axes)
                found[name_of(x)] = tuple(a if a == b else None for a, b in zip(known, axes, strict=True))
    return {**found, **made}


def _local(
    program: Program,
    statements: tuple[Statement, ...],
    outputs: Sequence[str],
    cuts: tuple[Cut, ...],
    axes: Mapping[str, tuple[sp.Symbol | None, ...]],
) -> Program:
    """The program of a block: moved indices are shifted wherever they are not a plain subscript of an axis given by block."""
    shift = {c.index: c.index + c.start for c in cuts}

    def moved(e: sp.Basic) -> sp.Basic:
        if isinstance(e, sp.Indexed):
            kept = axes[name_of(e)]
            return e.base[tuple(a if k is not None else moved(a) for a, k in zip(subscripts_of(e), kept, strict=True))]
        if isinstance(e, sp.Symbol):
            return shift.get(e, e)
        if not e.args or integer_symbols(e).isdisjoint(shift):
            return e
        return e.func(*map(moved, e.args))

    listed = [replace(s, expr=moved(s.expr), where=moved(s.where)) for s in statements]
    counts = {c.index: c.count for c in cuts}
    seen = {a for s in listed for e in (s.expr, s.where) for a in integer_symbols(e)}
    named = {c.start for c in cuts} | set(program.sizes)
    loose = {index(f"_{a}"): a for a in sorted(seen & named, key=str)}  # a size is one that `dims` names, on an axis or not
    shapes = {
        n: tuple(size if a is None else counts[a] for a, size in zip(axes[n], program.shapes[n], strict=True))
        for n in _read_by(statements) - {s.name for s in statements}
    }
    dims = {**program.dims, **counts, **loose}
    return Program(tuple(listed), dims, tuple(outputs), shapes)
