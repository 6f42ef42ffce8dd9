"""Recurrences: the scan that a statement may carry, the groups that scans make of a list, and which step a read looks at.

Consecutive statements with the same scan are one group. For each value of the scan's index, in walking order, all of them are
evaluated; a tensor of the group is read at the step itself where it is defined before, and at any earlier step: one at a fixed
distance (``t - 1``), or all for which the condition of the statement says so (a sum over ``r`` where ``r < t``).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import sympy as sp

from symattn.conditions import normal_condition
from symattn.errors import ProgramError
from symattn.indexed import Tensor, conjuncts, integer_symbols, name_of, subscripts_of

if TYPE_CHECKING:
    from symattn.program import Statement

__all__ = ["Scan", "check_group", "grouped", "kept_apart", "scan_axis", "steps_back"]


@dataclass(frozen=True)
class Scan:
    """A walk along one index: ``t = 0, 1, ..`` or ``t = n - 1, .., 0``.

    Parameters
    ----------
    index
        The index t; it is among the free indices of every statement of the scan.
    step
        +1 walks up, -1 walks down.
    number
        Tells two groups apart that would be one, because they follow each other with the same index and direction.

    Raises
    ------
    ProgramError
        When the index is no index symbol or the step is neither +1 nor -1.

    >>> t = sp.Symbol("t", integer=True)
    >>> print(Scan(t), "|", Scan(t, -1))
    scan t | scan t down
    """

    index: sp.Symbol
    step: int = 1
    number: int = 0

    def __post_init__(self) -> None:
        if not (isinstance(self.index, sp.Symbol) and self.index.is_integer):
            raise ProgramError(f"a scan walks along an index symbol, got {self.index!r}")
        if self.step not in (1, -1):
            raise ProgramError(f"the step of a scan along {self.index} is +1 or -1, got {self.step!r}")

    def reversed(self) -> Scan:
        """The scan that walks the other way."""
        return replace(self, step=-self.step)

    def renamed(self, table: Mapping[sp.Symbol, sp.Symbol]) -> Scan:
        """The scan along another index."""
        return replace(self, index=table.get(self.index, self.index))

    def __str__(self) -> str:
        return f"scan {self.index}" + (" down" if self.step < 0 else "")


def grouped(statements: Iterable[Statement]) -> tuple[tuple[Statement, ...], ...]:
    """The list cut into what is evaluated together: each scan group whole, every other statement by itself."""
    out: list[tuple[Statement, ...]] = []
    for scan, run in itertools.groupby(statements, key=lambda s: s.scan):
        group = tuple(run)
        out += [group] if scan is not None else [(s,) for s in group]
    return tuple(out)


def kept_apart(groups: Iterable[Iterable[Statement]]) -> tuple[Statement, ...]:
    """The statements of some groups in a row, scans numbered where two groups would become one."""
    out: list[Statement] = []
    for group in groups:
        listed = tuple(group)
        before = out[-1].scan if out else None
        if before is not None and listed and listed[0].scan == before:
            scan = replace(before, number=before.number + 1)
            listed = tuple(replace(s, scan=scan) for s in listed)
        out += listed
    return tuple(out)


def scan_axis(s: Statement) -> int | None:
    """Which axis of its target a statement's scan walks along; None without a scan."""
    return None if s.scan is None else s.indices.index(s.scan.index)


def steps_back(s: Statement, x: Tensor) -> sp.Expr:
    """How many steps before the current one the read ``x`` looks for the tensor that the scan statement ``s`` defines.

    >>> from symattn.program import Statement, indices, tensor
    >>> t, a = indices("t a")
    >>> state = Statement(tensor("h", t, a), tensor("h", t - 1, a) + tensor("x", t, a), scan=Scan(t))
    >>> steps_back(state, tensor("h", t - 1, a)), steps_back(state, tensor("h", t + 2, a))
    (1, -2)
    """
    axis = scan_axis(s)
    assert axis is not None and s.scan is not None
    return sp.expand((s.scan.index - subscripts_of(x)[axis]) * s.scan.step)


def check_group(s: Statement, x: Tensor, of: Statement, done: bool) -> None:
    """Raise unless the read ``x`` in ``s`` of the tensor that ``of``, in the same group, defines is a read of an earlier step.

    ``done`` says whether ``of`` stands before ``s``, so that it may be read at the step itself.
    """
    assert s.scan is not None
    t, n = s.scan.index, name_of(x)
    axis = scan_axis(of)
    assert axis is not None
    if len(subscripts_of(x)) <= axis:
        return  # the number of subscripts is checked with all others
    at, back = subscripts_of(x)[axis], steps_back(of, x)
    earlier = f"{n} at an earlier step is `{t - s.scan.step}` in that place"
    if back == 0:
        if not done:
            raise ProgramError(f"{s.name}: reads {n} at {t} before it is defined in the step, in `{s}`; {earlier}")
        return
    if back.is_positive:
        return
    if integer_symbols(at) & set(s.over):
        if _earlier(back, s):
            return
        raise ProgramError(
            f"{s.name}: `{x}` ranges over the scan's axis of {n}, which is defined in the same scan, in `{s}`; "
            f"sum over earlier steps only (`where` says `{sp.Ge(back, 1)}`), or in a statement after the scan"
        )
    if back.is_negative:
        raise ProgramError(f"{s.name}: `{x}` is a later step of the scan than {t}, in `{s}`; {earlier}")
    raise ProgramError(f"{s.name}: `{x}` is not seen to be an earlier step of the scan along {t}, in `{s}`; {earlier}")


def _earlier(back: sp.Expr, s: Statement) -> bool:
    """Whether the condition of a statement says that ``back`` is at least 1."""
    for c in conjuncts(s.where):
        known = normal_condition(c, {})
        if isinstance(known, sp.Ge) and known.rhs == 0 and sp.expand(back - 1 - known.lhs).is_nonnegative:
            return True
    return False
