"""What all forms of a report say in the same words: how a verdict counts, the worst element, the diagnosis, the arithmetic."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from symattn.arithmetic import Arithmetic
from symattn.verify import table
from symattn.verify.compare import significant
from symattn.verify.report import DISPLAY, CaseReport, Report, TensorReport, short, worst_of
from symattn.verify.table import conventions_text

SHOWN = frozenset(
    {"verdict", "error", "kernel", "definition", "arithmetic", "cases", "diagnosis", "warnings", "guard", "skipped", "replay"}
)
"""The entries of a report that every form has a place for; others are written as sections of their own."""


def label(t: TensorReport) -> str:
    """What a tensor is called in tables."""
    return DISPLAY.get(t.name, t.name)


def counted(t: TensorReport, *, strict: bool) -> str:
    """How a tensor counts: ``pass``, ``known``, ``suspect``, ``inconclusive`` or ``fail``; strict knows no excuse."""
    if t.verdict == "suspect":
        return "fail" if strict else "suspect"
    if t.counted != t.verdict:
        return "fail" if strict else "known"
    return t.verdict


def case_counted(c: CaseReport, *, strict: bool) -> str:
    """How a case counts, as :func:`counted` says it of a tensor."""
    found = [counted(t, strict=strict) for t in c.tensors]
    if c.error is not None:
        found.append("known" if c.known and not strict else "fail")
    worst = worst_of(x for x in found if x != "known")
    return "known" if worst == "pass" and "known" in found else worst


def whole_counted(r: Report, *, strict: bool) -> str:
    """How the whole run counts."""
    return "fail" if strict and r.exit_code(strict=True) == 1 else r.verdict


def title(c: CaseReport) -> str:
    """A case with its dtype and sizes."""
    return " ".join([c.case, c.dtype, *(f"{k}={v}" for k, v in c.shape.items())])


def raised(c: CaseReport) -> str:
    """What the kernel raised on a case, with the case before it; empty where it raised nothing."""
    return "" if c.error is None else f"{title(c)}: {c.error}"


def worst_element(t: TensorReport) -> str:
    """The element with the greatest share of its bound, in a line; empty where there is none."""
    w = t.comparison.worst
    if w is None:
        return ""
    at = ",".join(map(str, w.index))
    exact = f"exact {significant(w.exact, 20)}"
    return f"{label(t)}[{at}]: kernel {significant(w.kernel, 20)}, {exact}, bound {short(w.bound)}"


def counts(t: TensorReport) -> str:
    """How many elements of a tensor are out, undecided or without a bound, in words."""
    c = t.comparison
    parts = [f"{c.failing} of {c.total} elements out of bounds"]
    parts += [f"{c.undecided} undecided"] if c.undecided else []
    parts += [f"{c.unbounded} without a bound"] if c.unbounded else []
    return ", ".join(parts)


def numbers(t: TensorReport) -> str:
    """The greatest error, in ulps and as a share of its bound, in words."""
    c = t.comparison
    return f"greatest error {short(c.max_error)}, {short(c.max_ulp)} ulps, {short(c.max_share)} of the bound"


def excuse(t: TensorReport) -> str:
    """Why a tensor that is out of bounds is no failure; empty where there is no such reason."""
    if t.counted != t.verdict:
        return f"known: {t.known}"
    return f"suspect: {t.suspect}" if t.verdict == "suspect" else ""


def remarks(t: TensorReport) -> list[str]:
    """What a report says of a tensor beside its figures: the worst element, what a replay shows, why it is no failure."""
    replayed = t.replayed.lines(label(t)) if t.replayed else []
    found = [worst_element(t), *replayed, f"{label(t)} {excuse(t)}" if excuse(t) else ""]
    if t.replayed and t.replayed.failing and not t.comparison.failing:
        found = [*replayed, *(x for x in found if x not in replayed)]  # what fails comes first
    return [line for line in found if line]


def strength(r: Report, *, strict: bool) -> tuple[str, tuple[str, ...]]:
    """What the run tells apart, and the warnings that go with it; see :func:`symattn.verify.table.strength`."""
    return table.strength(r, strict=strict)


def objection(r: Report, *, strict: bool) -> str:
    """What strict says beside the verdict, as a sentence's beginning: ``--strict: ...``; empty where it says nothing."""
    return r.said_by_strict().lstrip(",; ").removeprefix("but ") if strict else ""


def definition_words(conventions: Mapping[str, str]) -> str:
    """A definition's conventions in a line."""
    return conventions_text(conventions)


def arithmetic_words(declared: Mapping[str, Any]) -> str:
    """A declared arithmetic in words; empty where a report has none."""
    return Arithmetic.from_dict(declared).describe() if declared else ""


def findings(r: Report) -> list[list[str]]:
    """The diagnosis: the lines of each finding, what it is first."""
    found = [[line.strip() for line in str(d).splitlines() if line.strip()] for d in r.diagnosis]
    return [lines for lines in found if lines]


def sections(r: Report) -> dict[str, Any]:
    """Whatever else the report's document holds, as plain data by its key."""
    return {k: v for k, v in r.to_dict().items() if k not in SHOWN and v not in (None, "", [], {}, ())}


def flat(value: Any, indent: str = "") -> Iterator[str]:
    """Plain data as indented lines.

    >>> list(flat({"a": 1, "b": ["x", {"c": "y"}]}))
    ['a: 1', 'b:', '  - x', '  - c: y']
    """
    if isinstance(value, Mapping):
        for k, v in value.items():
            if isinstance(v, (Mapping, list, tuple)) and v:
                yield f"{indent}{k}:"
                yield from flat(v, indent + "  ")
            else:
                yield f"{indent}{k}: {_plain(v)}"
    elif isinstance(value, (list, tuple)):
        for v in value:
            lines = list(flat(v))
            yield from (f"{indent}{'  ' if n else '- '}{line}" for n, line in enumerate(lines))
    else:
        yield f"{indent}{_plain(value)}"


def _plain(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "none" if value is None or value in ([], {}, ()) else str(value)


def printable(text: str) -> str:
    r"""Text without characters that a terminal or XML 1.0 would choke on: each is written as an escape.

    >>> printable("a\x1b[31m\x00b\n\tc\ud800")
    'a\\x1b[31m\\x00b\n\tc\\ud800'
    """
    return "".join(ch if _allowed(ord(ch)) else ch.encode("unicode_escape").decode("ascii") for ch in text)


def _allowed(code: int) -> bool:
    if code < 0x20:
        return code in (0x09, 0x0A, 0x0D)
    return not (0x7F <= code <= 0x9F or 0xD800 <= code <= 0xDFFF or code & 0xFFFE == 0xFFFE)
