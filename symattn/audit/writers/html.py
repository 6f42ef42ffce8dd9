"""One page of HTML: the equations with each number marked and the right digits beside it, and what else there is to say.

The file asks nothing of a network; a content security policy forbids everything but its own style sheet, so that text of the page
that was audited could load and run nothing even if it were not escaped. It is.
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from importlib import resources

from symattn.audit.exactness import decimal
from symattn.audit.findings import Audit, Finding
from symattn.audit.language_nodes import numbers
from symattn.audit.reading import ReadArticle
from symattn.audit.statements import Chain
from symattn.audit.writers import mathml, words
from symattn.htmlpage import html_page

_BADGES = {0: ("right", "nothing wrong"), 1: ("wrong", "something is wrong"), 3: ("open", "not decided")}

_HEADS = ("place", "of", "printed", "right", "exact", "off by (units)", "verdict")

POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def page(found: ReadArticle | Audit, *, digits: int = 10) -> str:
    """The page of an audit.

    >>> text = page(Audit("<b>x</b>"))
    >>> "&lt;b&gt;x" in text, "<b>x" in text
    (True, False)
    """
    audit = found.audit if isinstance(found, ReadArticle) else found
    kind, said = _BADGES[audit.exit_code]
    body = [
        f"<header><p class=tool>symattn audit</p><h1>{_text(audit.title)}</h1><span class='badge {kind}'>{said}</span>",
        f"<p>{_text(words.headline(audit).partition(': ')[2])}.</p>",
        f"<p><b>First failing step:</b> {_text(words.first_step(audit))}</p>" if audit.first else "",
        f"<p class=soft>{_text(words.counted(audit))}</p>" if audit.findings else "",
        "</header>",
        _legend(),
        _list("Conventions", (str(a) for a in audit.alternatives)),
        _list("Remarks", (r.text for r in audit.remarks)),
        _equations(found) if isinstance(found, ReadArticle) else _claims(audit, digits),
        _wrong_table(audit, digits),
        _list("Notes", audit.notes),
        _unread(audit),
    ]
    return html_page(f"{_text(audit.title)}: {said}", style(), body, POLICY)


def style() -> str:
    """The style sheet."""
    return (resources.files("symattn.audit.writers") / "audit.css").read_text(encoding="utf-8")


def _text(text: object) -> str:
    return escape(words.plain(str(text)), quote=True)


def _legend() -> str:
    rows = (
        ("right", "right"),
        ("open", "off in the last digits, or not decidable"),
        ("carried", "follows from printed numbers, not from the start"),
        ("wrong", "wrong"),
    )
    items = "".join(f"<li><span class='{k}'>0.5</span> {t}</li>" for k, t in rows)
    return f"<ul class=legend>{items}<li><span class=instead>0.6</span> the right digits</li></ul>"


def _list(title: str, lines: Iterable[str]) -> str:
    items = "".join(f"<li>{_text(line)}</li>" for line in lines)
    return f"<section><h2>{title}</h2><ul>{items}</ul></section>" if items else ""


def _equations(found: ReadArticle) -> str:
    """The equations in order, each with its line."""
    marks = {m.start: m for m in found.marks}
    rows = [_equation(found, c, marks) for c in found.chains]
    return f"<section><h2>Equations</h2>{''.join(rows)}</section>" if rows else ""


def _equation(found: ReadArticle, c: Chain, marks: mathml.Marks) -> str:
    line = found.article.line(c.start)
    own = {n.start for s in c.sides if s.node is not None for n in numbers(s.node)} | {s.start for s in c.sides}
    inside = [m.finding for m in found.marks if m.start in own]
    state = _worst(inside)
    sides = " ".join(f"<span class=side>{m}</span>" for m in mathml.chain(c, marks, found.article.source))
    return f"<div class='equation {state}'><span class=line>{line}</span><div class=math>{sides}</div></div>"


def _worst(findings: list[Finding]) -> str:
    order = (words.BAD, words.CARRIED, words.OPEN, words.GOOD)
    kinds = {words.kind(f) for f in findings}
    return next((k for k in order if k in kinds), "none")


def _claims(audit: Audit, digits: int) -> str:
    """The claims of a claims file: the printed numbers, the right ones below those that are not."""
    rows = []
    for group in words.groups(audit.findings):
        cells = " ".join(_row_break(f, k) + _cell(f, digits) for k, f in enumerate(group.findings))
        rows.append(
            f"<div class='equation {_worst(list(group.findings))}'><div class=claim>{_text(group.claim)}</div>{cells}</div>"
        )
    return f"<section><h2>Claims</h2>{''.join(rows)}</section>" if rows else ""


def _row_break(f: Finding, k: int) -> str:
    """What begins a new line before the first number of a row."""
    return "<span class=break></span>" if k and f.name.endswith(",0]") else ""


def _cell(f: Finding, digits: int) -> str:
    title = _text(f"{f.name}: {f.label}; exact {words.short(f.verdict.exact, max(digits, 12))}")
    right = "" if f.verdict.correct else f"<span class=instead>{_text(words.right_digits(f.verdict))}</span>"
    return f"<span class=cell title='{title}'><span class='{words.kind(f)}'>{_text(f.verdict.printed)}</span>{right}</span>"


def _wrong_table(audit: Audit, digits: int) -> str:
    rows = [f for f in audit.findings if not f.verdict.correct]
    if not rows:
        return ""
    body = "".join(_row(audit, f, digits) for f in rows)
    heads = "".join(f"<th>{h}</th>" for h in _HEADS)
    table = f"<table class=numbers><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>"
    return f"<section><h2>Numbers that are not right</h2>{table}</section>"


def _row(audit: Audit, f: Finding, digits: int) -> str:
    place = f"line {f.place}" if f.place.isdigit() else f.name
    error = "" if f.verdict.error is None else decimal(f.verdict.error, 3)
    said = f.label + (f", carried from {words.name_of(audit, f.carried)}" if f.carried else "")
    said += f"; {f.note}" if f.note else ""
    cells = (place, f.claim, f.verdict.printed, words.right_digits(f.verdict), words.short(f.verdict.exact, digits), error, said)
    return (
        f"<tr class='{words.kind(f)}'>"
        + "".join(f"<td data-of='{h}'>{_text(c)}</td>" for h, c in zip(_HEADS, cells, strict=True))
        + "</tr>"
    )


def _unread(audit: Audit) -> str:
    if not audit.unread:
        return ""
    rows = "".join(
        f"<tr><td>{_text(f'line {u.place}' if u.place.isdigit() else u.place)}</td><td><code>{_text(u.name)}</code></td>"
        f"<td>{_text(u.reason)}</td></tr>"
        for u in audit.unread
    )
    return (
        "<section><h2>Not checked</h2><table><thead><tr><th>place</th><th>text</th><th>why</th></tr></thead>"
        f"<tbody>{rows}</tbody></table></section>"
    )
