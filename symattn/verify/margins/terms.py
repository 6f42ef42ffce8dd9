"""The bound of the worst element split by the sources of errors, in words: what a kernel's error was measured against."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sympy as sp

from symattn.errors import SymattnError
from symattn.indexed import name_of, reads
from symattn.program import Program, Statement
from symattn.verify.compare import INFINITE
from symattn.verify.margins.asked import asked
from symattn.verify.observed import Observed
from symattn.verify.report import DISPLAY, short

__all__ = ["Terms", "source", "terms"]

SHOWN = 5
"""How many sources are named; the rest is put together."""
LEAST = 0.005
"""A smaller share is not named."""
WEIGHTS = {"E": "P"}
"""Exponentials are weights that are not divided by their sum yet; people call both P."""
PLAIN = {
    "exp": "exp",
    "log": "log",
    "tanh": "tanh",
    "function": "functions",
    "scale": "scale and maximum",
    "underflow": "underflow",
    "given": "errors of inputs",
    "operation": "elementwise operations",
}
"""Kinds that are called the same wherever they occur."""


@dataclass(frozen=True)
class Terms:
    """The bound of one element by its sources.

    Parameters
    ----------
    case, tensor, index
        Which element: that of the greatest share of its bound in a tensor that fails.
    bound
        What it may differ by.
    shares
        By source, in words, its share of the bound; the greatest first. They add up to 1.
    """

    case: str
    tensor: str
    index: tuple[int, ...]
    bound: float
    shares: Mapping[str, float]

    @property
    def line(self) -> str:
        """``bound of O[0,1,2,3] (normal): cast of P 62 %, output 37 %, other 1 %``."""
        at = ",".join(map(str, self.index))
        named = [(k, x) for k, x in self.shares.items() if x >= LEAST][:SHOWN]
        rest = 1 - sum(x for _, x in named)
        said = [f"{k} {100 * x:.0f} %" for k, x in named] + ([f"other {100 * rest:.0f} %"] if rest >= LEAST else [])
        return f"bound {short(self.bound)} of {DISPLAY.get(self.tensor, self.tensor)}[{at}] in {self.case}: {', '.join(said)}"

    def to_dict(self) -> dict[str, Any]:
        """The entry of the JSON document; numbers are text."""
        shares = {k: f"{x:.3g}" for k, x in self.shares.items()}
        return {
            "case": self.case,
            "tensor": self.tensor,
            "index": list(self.index),
            "bound": f"{self.bound:.5g}",
            "shares": shares,
        }


def terms(seen: Sequence[Observed], work: int) -> tuple[Terms, ...]:
    """For each tensor that fails somewhere, its worst element on the inputs up to a size.

    Parameters
    ----------
    seen
        What was judged.
    work
        The largest input that is looked at, in pairs of queries and keys times width.
    """
    worst: dict[str, tuple[Any, Observed]] = {}
    for o in (o for o in seen if o.work <= work):
        for t in o.reports:
            w = t.comparison.worst
            if t.name not in o.failing or w is None or isinstance(w.bound, float) or not w.bound:
                continue
            if t.name not in worst or (w.share != INFINITE and w.share > worst[t.name][0].share):
                worst[t.name] = (w, o)
    found = (_split(o, name, w.index) for name, (w, o) in worst.items())
    return tuple(t for t in found if t is not None)


def _split(o: Observed, name: str, index: tuple[int, ...]) -> Terms | None:
    for question in asked(o):
        if name not in question.names:
            continue
        try:
            found = question.bounded(o.situation.arithmetic, only=(name,), parts=True, own=False)[name]
        except SymattnError:  # a list that slopes are not known for
            return None
        parts: dict[str, float] = {}
        for key, part in (found.parts or {}).items():
            words = source(key, question.program, question.names[name])
            parts[words] = parts.get(words, 0.0) + float(part[index])
        total, bound = sum(parts.values()), float(found.bound[index])
        if not parts or not 0 < total < math.inf:
            return None
        ordered = sorted(parts.items(), key=lambda p: -p[1])
        return Terms(o.case, name, index, bound, {k: x / total for k, x in ordered if x})
    return None


def source(key: str, program: Program, output: str) -> str:
    """A source of errors in words: a statement and a kind of rounding, ``"N: cast"``.

    >>> from symattn.definition import Definition
    >>> p = Definition(lse=False).program()
    >>> [source(k, p, "O") for k in ("R: sum", "l: sum", "O: sum", "O: cast", "E: exp", "O: storage", "S: storage")]
    ['QK sum', 'sum of P', 'PV sum', 'cast of P', 'exp', 'rounding of the output', 'storage of S']
    """
    name, _, kind = key.partition(": ")
    if kind in PLAIN or name not in program:
        return PLAIN.get(kind, kind)
    s = program[name]
    if kind == "storage":
        return "rounding of the output" if name == output else f"storage of {_called(name)}"
    if kind == "sum":
        read = sorted(_operands(s), key=_rank)
        joined = ("" if all(len(x) == 1 for x in read) else " ").join(read)
        return f"sum of {read[0]}" if len(read) == 1 else f"{joined or name} sum"
    if kind == "cast":
        made = [x for x in _operands(s) if x not in program.inputs] or _operands(s)
        return f"cast of {' and '.join(made)}"
    if kind == "buffer":
        return f"buffer of {_called(name)}"
    return f"errors that enter {_called(name)} whole"


def _called(name: str) -> str:
    name = name.removesuffix("_b")
    return WEIGHTS.get(name, name)


def _operands(s: Statement) -> list[str]:
    """What a statement reads element by element, as people call it."""
    found: dict[str, None] = {}
    for r in sorted(reads(s.expr), key=str):
        if isinstance(r, sp.Indexed):
            found[_called(name_of(r))] = None
    return list(found)


def _rank(name: str) -> tuple[bool, bool, str]:
    """Queries before keys, weights before values."""
    return name not in ("Q", "P", "dS", "dO"), name == "V", name
