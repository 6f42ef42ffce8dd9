"""An audit as text for a terminal: what is wrong, with the right digits; what is carried; what could not be read."""

from __future__ import annotations

from symattn.audit.findings import Audit, Finding
from symattn.audit.writers import words

MOST_UNREAD = 40


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
    out = [words.headline(audit)]
    if step := words.first_step(audit):
        out.append(f"first failing step: {step}")
    for group in words.groups(audit.findings):
        rows = [f for f in group.findings if everything or not f.verdict.correct]
        if rows:
            where = f"line {group.place}: " if group.place.isdigit() else ""
            out += ["", f"{where}{words.plain(group.claim)}", *_table(audit, rows, digits)]
    if audit.findings:
        out += ["", f"all numbers: {words.counted(audit)}"]
    for a in audit.alternatives:
        out.append(f"convention: {words.plain(str(a))}")
    for r in audit.remarks:
        out.append(f"remark: {words.plain(r.text)}")
    out += [f"note: {words.plain(n)}" for n in audit.notes]
    if audit.unread:
        shown, left = audit.unread[:MOST_UNREAD], len(audit.unread) - MOST_UNREAD
        out += ["", "not checked:"]
        for u in shown:
            where = f"line {u.place}: " if u.place.isdigit() else ""
            out.append(f"  {where}{words.plain(u.name)}\n      {words.plain(u.reason)}")
        out += [f"  and {left} more; --format json lists all"] if left > 0 else []
    return "\n".join(out) + "\n"


def _table(audit: Audit, rows: list[Finding], digits: int) -> list[str]:
    """Lines of numbers in columns."""
    cells = [
        (words.plain(str(f.verdict.printed)), words.short(f.verdict.exact, digits), _said(audit, f), _place(f)) for f in rows
    ]
    wide = [max(len(c[k]) for c in cells) for k in (0, 1)]
    named = max(len(c[3]) for c in cells)
    return [f"  {n:<{named}}  {p:>{wide[0]}}  exact {e:<{wide[1]}}  {s}".rstrip() for p, e, s, n in cells]


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
