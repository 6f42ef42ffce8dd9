"""An audit as text for a terminal: what is wrong, with the right digits; what is carried; what could not be read."""

from __future__ import annotations

import textwrap

from symattn.audit.findings import Audit, Finding
from symattn.audit.writers import words

MOST_UNREAD = 40
WIDTH = 80
"""Columns of a terminal. A number is never broken, so one that is longer stands on a longer line."""


def text(audit: Audit, *, digits: int = 10, everything: bool = False) -> str:
    """The audit, lines of text.

    Parameters
    ----------
    audit
        What was found.
    digits
        Significant digits of the exact values.
    everything
        Whether the numbers that are right are listed too.
    """
    out = _wrapped(words.headline(audit))
    if step := words.first_step(audit):
        out += _wrapped(f"first failing step: {step}")
    for group in words.groups(audit.findings):
        rows = [f for f in group.findings if everything or not f.verdict.correct]
        if rows:
            where = f"line {group.place}: " if group.place.isdigit() else ""
            out += ["", *_wrapped(f"{where}{words.plain(group.claim)}"), *_table(audit, rows, digits)]
    if audit.findings:
        out += ["", *_wrapped(f"all numbers: {words.counted(audit)}")]
    said = [f"convention: {words.plain(str(a))}" for a in audit.alternatives]
    said += [f"remark: {words.plain(r.text)}" for r in audit.remarks]
    said += [f"note: {words.plain(n)}" for n in audit.notes]
    out += [line for text in said for line in _wrapped(text)]
    if audit.unread:
        shown, left = audit.unread[:MOST_UNREAD], len(audit.unread) - MOST_UNREAD
        out += ["", "not checked:"]
        for u in shown:
            where = f"line {u.place}: " if u.place.isdigit() else ""
            out += _wrapped(f"{where}{words.plain(u.name)}", "  ", "    ") + _wrapped(words.plain(u.reason), " " * 6, " " * 6)
        out += [f"  and {left} more; --format json lists all"] if left > 0 else []
    return "\n".join(out) + "\n"


def _table(audit: Audit, rows: list[Finding], digits: int) -> list[str]:
    """Lines of numbers in columns; what is said of them stands beside all of them, or below each where it has no room."""
    cells = [
        (words.plain(str(f.verdict.printed)), words.short(f.verdict.exact, digits), _said(audit, f), _place(f)) for f in rows
    ]
    wide = [max(len(c[k]) for c in cells) for k in (0, 1)]
    named = max(len(c[3]) for c in cells)
    found = [(f"  {n:<{named}}  {p:>{wide[0]}}  exact {e:<{wide[1]}}", s) for p, e, s, n in cells]
    if all(len(numbers) + 2 + len(said) <= WIDTH for numbers, said in found):
        return [f"{numbers}  {said}".rstrip() for numbers, said in found]
    return [line for numbers, said in found for line in (numbers.rstrip(), *_wrapped(said, " " * 6, " " * 6))]


def _wrapped(text: str, first: str = "", rest: str = "  ") -> list[str]:
    """A sentence on lines of the page. A word longer than a line is broken: formulas of a page may have no blanks."""
    return textwrap.wrap(text, WIDTH, initial_indent=first, subsequent_indent=rest, break_on_hyphens=False) or [first.rstrip()]


def _place(f: Finding) -> str:
    """Where in its group a number is: the column of a line, or the name of the element."""
    _, colon, column = f.name.partition(":")
    return f"column {column}" if colon and f.place.isdigit() else words.plain(f.name)


def _said(audit: Audit, f: Finding) -> str:
    parts = [f.label]
    if error := words.units(f):
        parts.append(f"off by {error}")
    if f.carried:
        parts.append(f"carried from {words.name_of(audit, f.carried)}")
    if f.note:
        parts.append(words.plain(f.note))
    return ", ".join(parts)
