"""An audit as Markdown: a table of the numbers that are not right, and lists of what else there is to say."""

from __future__ import annotations

from symattn.audit.findings import Audit, Finding
from symattn.audit.writers import words

_ESCAPED = frozenset("\\`*_{}[]<>()#+|~$&@^!")


def safe(text: str) -> str:
    """Text of a page as Markdown shows it: signs with a meaning become character references.

    >>> safe("a|b <script>")
    'a&#124;b &#60;script&#62;'
    """
    out = "".join(f"&#{ord(c)};" if c in _ESCAPED else c for c in words.plain(text))
    return out.replace("://", "&#58;//").replace("www.", "www&#46;")


def markdown(audit: Audit, *, digits: int = 10, everything: bool = False) -> str:
    """The audit as Markdown; parameters as of :func:`symattn.audit.writers.text.text`."""
    out = [f"# {safe(audit.title)}", "", safe(words.headline(audit).partition(": ")[2].capitalize()) + "."]
    if step := words.first_step(audit):
        out += ["", f"**First failing step:** {safe(step)}."]
    rows = [f for f in audit.findings if everything or not f.verdict.correct]
    if rows:
        out += ["", "| place | of | printed | right | exact | verdict |", "|---|---|---:|---:|---|---|"]
        out += [_row(audit, f, digits) for f in rows]
    if audit.findings:
        out += ["", f"All numbers: {words.counted(audit)}."]
    for title, lines in (
        ("Conventions", [str(a) for a in audit.alternatives]),
        ("Remarks", [r.text for r in audit.remarks]),
        ("Notes", list(audit.notes)),
        ("Not checked", [f"{_where(u.place)}{u.name}: {u.reason}" for u in audit.unread]),
    ):
        if lines:
            out += ["", f"## {title}", "", *(f"- {safe(line)}" for line in lines)]
    return "\n".join(out) + "\n"


def _where(place: str) -> str:
    return f"line {place}: " if place.isdigit() else ""


def _row(audit: Audit, f: Finding, digits: int) -> str:
    said = f.label + (f", carried from {words.name_of(audit, f.carried)}" if f.carried else "")
    said += f"; {f.note}" if f.note else ""
    place = f"line {f.place}" if f.place.isdigit() else f.name
    right = "" if f.verdict.correct else words.right_digits(f.verdict)
    cells = (place, f.claim, str(f.verdict.printed), right, words.short(f.verdict.exact, digits), said)
    return "| " + " | ".join(safe(c) for c in cells) + " |"
