"""Implied constants: the least change of one declared constant under which a failing kernel conforms.

A bound grows with every constant of a declaration, so that the least value under which all elements of all tensors are within is
found by bisection; each value is tried by evaluating the bounds anew. It is information: a kernel that fails its declaration
fails. A value is named only while it says something: its own bound stays, on average over the tensor, below half of what is
trivially true (of the output: the distance to the farthest value; elsewhere: the size of the tensor).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from symattn.arithmetic import Arithmetic
from symattn.errors import SymattnError
from symattn.intake import Array
from symattn.verify.guard import trivial
from symattn.verify.margins.asked import Found, asked
from symattn.verify.margins.constants import Change, Range, Row, constants
from symattn.verify.observed import Observed
from symattn.verify.report import DISPLAY

__all__ = ["Implied", "conforms", "implied"]

CASES = 3
"""As many failing inputs, the smallest, have to conform."""


@dataclass(frozen=True)
class Implied:
    """A declaration under which the kernel conforms.

    Parameters
    ----------
    constant, value
        What is declared otherwise; a buffer is declared with its tiles.
    tensors
        Those that fail as declared.
    cases
        The inputs on which that was tried.
    words
        ``from exp error 1.1e-4 on``.
    """

    constant: str
    value: str
    tensors: tuple[str, ...]
    cases: tuple[str, ...]
    words: str

    @property
    def line(self) -> str:
        """``O, LSE conform from exp error 1.1e-4 on``."""
        names = ", ".join(DISPLAY.get(t, t) for t in self.tensors)
        return f"{names} conform{'s' * (len(self.tensors) == 1)} {self.words}"

    def to_dict(self) -> dict[str, Any]:
        """The entry of the JSON document."""
        return {"constant": self.constant, "value": self.value, "tensors": list(self.tensors), "cases": list(self.cases),
                "text": self.line}  # fmt: skip


def implied(seen: Sequence[Observed], work: int) -> tuple[Implied, ...]:
    """Every constant that alone would do, in the order of the declaration.

    Parameters
    ----------
    seen
        What was judged.
    work
        The largest input that is looked at, in pairs of queries and keys times width.
    """
    outside = [o for o in seen if any(t.name in o.failing and t.comparison.failing for t in o.reports)]  # not by the replay alone
    failing = sorted((o for o in outside if o.work <= work), key=lambda o: o.work)[:CASES]
    if not failing or any(_odd(o) for o in failing):
        return ()
    failing.sort(key=_share, reverse=True)
    s = failing[0].situation
    keys, queries = (max(o.situation.sizes.get(n, 1) for o in failing) for n in ("M", "N"))
    gradient = any(n.startswith("grad_") for o in failing for n in o.judged)
    tensors = tuple(dict.fromkeys(n for o in failing for n in o.failing))
    found = []
    for row in constants(s.arithmetic, keys=keys, queries=queries, gradient=gradient):
        change = _within_range(row, failing) if isinstance(row, Range) else _in_row(row, failing)
        if change is not None:
            value = ", ".join(f"{k}={v}" for k, v in change.values.items())
            found.append(Implied(row.constant.split()[0], value, tensors, tuple(o.case for o in failing), change.words))
    return tuple(found)


def _odd(o: Observed) -> bool:
    """Whether a number is infinite or NaN where the exact one is not: no constant explains that."""
    return any(t.comparison.max_error == math.inf for t in o.reports if t.name in o.failing)


def _share(o: Observed) -> float:
    """The greatest share of a bound: what asks for most is tried first."""
    return max(float(t.comparison.max_share) for t in o.reports if t.name in o.failing)


def _in_row(row: Row, failing: Sequence[Observed]) -> Change | None:
    """The first change that does; bounds grow along the row."""
    low, high = -1, len(row.changes) - 1
    if high < 0 or not _all(row.changes[high], failing):
        return _first(row, failing)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _all(row.changes[middle], failing) else (middle, high)
    return row.changes[high]


def _first(row: Row, failing: Sequence[Observed]) -> Change | None:
    """The first change that does, where the last says too little to be named."""
    if not all(conforms(o, _with(o, row.changes[-1]), named=False) for o in failing) if row.changes else True:
        return None
    return next((c for c in row.changes[:-1] if _all(c, failing)), None)


def _within_range(row: Range, failing: Sequence[Observed]) -> Change | None:
    """The least number that does, to two digits."""
    if row.greatest <= row.least or not _reaches(row, failing, row.greatest):
        return None
    low, high = max(row.least, 2.0**-60), row.greatest
    for _ in range(60):
        if high <= 1.02 * low:
            break
        middle = math.sqrt(low * high) if high > 4 * low else (low + high) / 2
        low, high = (low, middle) if _reaches(row, failing, middle) else (middle, high)
    change = row.change(_two_digits_up(high))
    return change if _all(change, failing) else None


def _reaches(row: Range, failing: Sequence[Observed], value: float) -> bool:
    return all(conforms(o, _with(o, row.change(value)), named=False) for o in failing)


def _two_digits_up(x: float) -> float:
    step = 10.0 ** (math.floor(math.log10(x)) - 1)
    return float(f"{math.ceil(x / step - 1e-9) * step:.1e}")


def _all(change: Change, failing: Sequence[Observed]) -> bool:
    return all(conforms(o, _with(o, change)) for o in failing)


def _with(o: Observed, change: Change) -> Arithmetic:
    return replace(o.situation.arithmetic, name="implied", **{"order": None, "shift": None, **change.values})


def conforms(o: Observed, a: Arithmetic, *, named: bool = True) -> bool:
    """Whether all elements of all tensors of a case are within the bounds of another declaration.

    Parameters
    ----------
    o, a
        The case, and the declaration.
    named
        Whether the bounds have to say something, too: to be below half the trivial ones.
    """
    try:
        situation = replace(o.situation, arithmetic=a, kept={})
        for q in asked(o, situation):
            rough = q.plain(a)
            if not all(_within(o.tensors[f], x, -x.own) for f, x in rough.items()):
                return False
            found = q.bounded(a)
            if not all(_within(o.tensors[f], x, x.own) for f, x in found.items()):
                return False
            if named and not all(_says(o, f, x) for f, x in found.items()):
                return False
    except SymattnError:  # a declaration that contradicts itself, or a list that has no bounds
        return False
    return True


def _within(kernel: Array, x: Found, own: Array) -> bool:
    """Whether all elements are in bounds, where the float64 value has the error ``own``: below 0 in their favour."""
    k = kernel.astype(np.float64)
    with np.errstate(all="ignore"):
        near = np.abs(k - x.value) + own <= x.bound
        return bool((near | (k == x.value) | (np.isnan(k) & np.isnan(x.value)) | np.isinf(x.bound)).all())


def _says(o: Observed, field: str, x: Found) -> bool:
    """Whether the bounds of a tensor are on average below half of what is trivially true."""
    most = trivial(o) if field == "out" else None
    most = np.abs(x.value) if most is None else most
    there = np.isfinite(x.value) & np.isfinite(most)
    return not there.any() or bool(np.mean(x.bound[there]) < np.mean(most[there]) / 2)
