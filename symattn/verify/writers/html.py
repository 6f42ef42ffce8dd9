"""One page of HTML: verdicts, tables, heat maps, the diagnosis and the replay line, in one file that asks nothing of a network.

A content security policy in the page forbids everything but its own style sheet and ``data:`` pictures, so that text from
outside can load and run nothing even if it were not escaped; it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape
from importlib import resources
from typing import Any

from symattn.htmlpage import html_page
from symattn.verify.axiswords import axes_of
from symattn.verify.properties.finding import NOT_APPLICABLE
from symattn.verify.report import CaseReport, Report, TensorReport, short
from symattn.verify.writers import picture, words

HEADS = 24
"""Panels of a tensor that are drawn at most."""
FEW = 24
"""Cases up to which pictures of tensors that pass are drawn too."""
MEANING = {
    "pass": "Every element is within the bound of the declared arithmetic.",
    "known": "Out of bounds for a known reason.",
    "suspect": "What is out of bounds proves no fault.",
    "inconclusive": "Some elements show nothing: no bound, or not decided.",
    "fail": "No correct kernel of the declared arithmetic gives this.",
    "error": "symattn itself failed.",
}
STRICT = "Nothing is out of its bound without an excuse, and --strict takes none: "

POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


def page(report: Report, *, strict: bool = False) -> str:
    """The page of a report.

    Parameters
    ----------
    report
        What to write. Heat maps are drawn of the tensors whose elements the run kept.
    strict
        Whether suspect results and known deviations are shown as failures.

    >>> text = page(Report("<b>k</b>", {}, {}, (), "symattn verify k"))
    >>> "&lt;b&gt;k" in text, "<b>k" in text
    (True, False)
    """
    verdict = words.whole_counted(report, strict=strict)
    name = report.kernel or "all kernels that run here"
    parts = [
        f"<header><p class=tool>symattn verify</p><h1>{_text(name)}</h1>{_badge(verdict)}",
        f"<p>{_text(_meaning(report, verdict, strict))}</p></header>",
        _facts(report),
        _diagnosis(report),
        _list("Warnings", map(str, report.warnings), "warnings"),
        _strength(report, strict),
        *(_section(key, value) for key, value in words.sections(report).items() if key != "properties"),
        _summary(report, strict),
        _legend() if any(t.evidence is not None for c in report.cases for t in c.tensors) else "",
        *(_case(k, c, report, strict) for k, c in enumerate(report.cases)),
        _properties(report),
        _list("Not run", report.skipped, "skipped"),
    ]
    return html_page(f"{_text(verdict)}: {_text(name)}", style(), parts, POLICY)


def style() -> str:
    """The style sheet."""
    return (resources.files("symattn.verify.writers") / "report.css").read_text(encoding="utf-8")


def _text(text: object) -> str:
    return escape(words.printable(str(text)), quote=True)


def _badge(verdict: str) -> str:
    return f'<span class="badge {verdict}">{verdict}</span>'


def _facts(report: Report) -> str:
    declared = dict.fromkeys(words.arithmetic_words(c.arithmetic) for c in report.cases if c.arithmetic)
    rows = [("Definition", words.definition_words(report.definition))]
    rows += [("Arithmetic", a) for a in declared] if report.kernel else []
    rows += [("Error", report.error or ""), ("Time", f"{report.elapsed:.1f} s" if report.seconds else "")]
    body = "".join(f"<dt>{k}</dt><dd>{_text(v)}</dd>" for k, v in rows if v)
    again = f"<dt>Again</dt><dd><pre><code>{_text(report.replay)}</code></pre></dd>"
    return f"<dl class=facts>{body}{again}</dl>"


def _list(title: str, lines: Iterable[str], kind: str) -> str:
    items = "".join(f"<li>{_text(line)}</li>" for line in lines)
    return f'<section class="{kind}"><h2>{title}</h2><ul>{items}</ul></section>' if items else ""


def _diagnosis(report: Report) -> str:
    found = words.findings(report)
    items = "".join(
        f"<h3>{_text(first)}</h3><ul>{''.join(f'<li>{_text(line)}</li>' for line in rest)}</ul>" for first, *rest in found
    )
    return f'<section class="diagnosis"><h2>Diagnosis</h2>{items}</section>' if found else ""


def _meaning(report: Report, verdict: str, strict: bool) -> str:
    """The verdict in a sentence, with the reason where strict counts it as a failure."""
    said = words.objection(report, strict=strict)
    if verdict != report.verdict:
        return f"{STRICT}{said.removeprefix('--strict: ')}."
    return MEANING[verdict] + (f" {said}." if said else "")


def _strength(report: Report, strict: bool) -> str:
    """What the run tells apart; the faults that it could not have shown are folded away."""
    line, _ = words.strength(report, strict=strict)
    hidden = report.guard.warnings if report.guard is not None else ()
    items = "".join(f"<li>{_text(w)}</li>" for w in hidden)
    folded = f"<details><summary>{len(hidden)} that could not show</summary><ul>{items}</ul></details>" if hidden else ""
    return f"<section><h2>What this run could show</h2><p>{_text(line)}</p>{folded}</section>" if line else ""


def _section(key: str, value: Any) -> str:
    return f"<section><h2>{_text(key.replace('_', ' ').capitalize())}</h2>{_nested(value)}</section>"


def _properties(report: Report) -> str:
    """A line for each property that could be tried, and how many could not."""
    tried = [p for p in report.properties if p.verdict != NOT_APPLICABLE]
    left_out = len(report.properties) - len(tried)
    if not report.properties:
        return ""
    names = ("property", "verdict", "case", "what was found", "of bound")
    rows = [
        (
            _text(p.name),
            _badge(p.verdict) + ("" if p.counts or p.verdict == "pass" else " not counted"),
            _text(p.case),
            _text(f"{p.title}: {p.reason}" if p.reason else p.title),
            "" if p.share is None else f"{p.share:.3g}",
        )
        for p in tried
    ]
    said = f"<p>{left_out} more do not apply to this kernel or definition.</p>" if left_out else ""
    return f"<section><h2>Properties</h2>{_table(names, rows, 'properties') if rows else ''}{said}</section>"


def _nested(value: Any) -> str:
    """Plain data as lists and tables."""
    if isinstance(value, Mapping):
        return "<dl class=facts>" + "".join(f"<dt>{_text(k)}</dt><dd>{_nested(v)}</dd>" for k, v in value.items()) + "</dl>"
    if isinstance(value, (list, tuple)):
        rows = [v for v in value if isinstance(v, Mapping)]
        if rows and len(rows) == len(value) and not any(isinstance(x, (Mapping, list, tuple)) for r in rows for x in r.values()):
            names = list(dict.fromkeys(k for r in rows for k in r))
            return _table(names, [[_nested(r.get(k, "")) for k in names] for r in rows])
        return "<ul>" + "".join(f"<li>{_nested(v)}</li>" for v in value) + "</ul>"
    return _text("\n".join(words.flat(value)))


def _table(names: Iterable[str], rows: Iterable[Iterable[str]], kind: str = "") -> str:
    """A table of cells that are HTML already; each cell knows the name of its column, for narrow screens."""
    names = list(names)
    head = "".join(f"<th scope=col>{_text(n)}</th>" for n in names)
    body = "".join(
        "<tr>" + "".join(f'<td data-name="{_text(n)}">{c}</td>' for n, c in zip(names, r, strict=True)) + "</tr>" for r in rows
    )
    return f'<table class="{kind}"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'


def _summary(report: Report, strict: bool) -> str:
    """A line per case, which leads to it."""
    if not report.cases:
        return ""
    many = report.kernel is None
    rows = []
    for k, c in enumerate(report.cases):
        share = short(max((t.comparison.max_share for t in c.tensors), default=0))
        link = f'<a href="#case-{k}">{_text(c.case)}</a>'
        sizes = _text(" ".join(f"{a}={b}" for a, b in c.shape.items()))
        listed = _text(" ".join(words.label(t) for t in c.tensors))
        verdict = _badge(words.case_counted(c, strict=strict))
        rows.append([*([_text(c.kernel)] if many else []), link, _text(c.dtype), sizes, listed, verdict, share])
    names = [*(["kernel"] if many else []), "case", "dtype", "sizes", "tensors", "verdict", "of bound"]
    return f"<section><h2>Cases</h2>{_table(names, rows, 'numbers')}</section>"


def _legend() -> str:
    items = "".join(
        f'<li><span class=swatch style="background:{color}"></span>{_text(text)}</li>' for color, text in picture.CLASSES
    )
    said = "<h2>Colours of the pictures</h2><p>A cell is an element's error against its bound.</p>"
    return f"<section class=legend>{said}<ul>{items}</ul></section>"


def _case(number: int, c: CaseReport, report: Report, strict: bool) -> str:
    verdict = words.case_counted(c, strict=strict)
    name = f"{c.kernel}: {words.title(c)}" if report.kernel is None else words.title(c)
    is_open = " open" if verdict not in ("pass", "known") else ""
    parts = [f'<details class=case id="case-{number}"{is_open}><summary><h2>{_text(name)}</h2>{_badge(verdict)}</summary>']
    if report.kernel is None:
        parts.append(f"<p>{_text(words.definition_words(c.definition))}</p><p>{_text(words.arithmetic_words(c.arithmetic))}</p>")
    if c.error is not None:
        parts.append(f"<p>{_text(c.error)}</p>" + (f"<p>known: {_text(c.known)}</p>" if c.known else ""))
    if c.tensors:
        names = ("tensor", "verdict", "max error", "ulps", "of bound", "failing")
        parts.append(_table(names, [_row(t, strict) for t in c.tensors], "numbers"))
        parts.append("<ul class=worst>" + "".join(f"<li>{_text(x)}</li>" for t in c.tensors for x in words.remarks(t)) + "</ul>")
    few = len(report.cases) <= FEW
    parts += [_pictures(t, c) for t in c.tensors if few or words.counted(t, strict=strict) != "pass"]
    return "".join(parts) + "</details>"


def _row(t: TensorReport, strict: bool) -> list[str]:
    c = t.comparison
    open_ones = f"+{c.undecided + c.unbounded}?" if c.undecided + c.unbounded else ""
    figures = [short(x) for x in (c.max_error, c.max_ulp, c.max_share)]
    return [_text(words.label(t)), _badge(words.counted(t, strict=strict)), *figures, f"{c.failing}{open_ones}/{c.total}"]


def _pictures(t: TensorReport, c: CaseReport) -> str:
    """The heat maps of a tensor: head x block of rows first, then a panel per head."""
    e = t.evidence
    if e is None or e.kernel.size == 0:
        return ""
    found = picture.panels(t.name, e)
    chosen = picture.shown(found, HEADS)
    rows = axes_of(t.name, e.kernel.ndim)[-2:-1]
    tile = c.arithmetic.get("tile" if "key" in rows else "query_tile")
    whole = picture.overview(t.name, e, tile if isinstance(tile, int) else None)
    figures = [_figure(whole, f"{whole.rows} x {whole.columns}")] if whole is not None else []
    figures += [_figure(p, p.name or f"{p.rows} x {p.columns}", p.failing) for p in chosen]
    cut = f" {len(chosen)} of {len(found)} shown, those with the worst elements." if len(chosen) < len(found) else ""
    note = f"{words.label(t)}: {found[0].rows} (down) x {found[0].columns} (across).{cut}"
    return f"<h3>{_text(note)}</h3><div class=maps>{''.join(figures)}</div>"


def _figure(p: picture.Panel, caption: str, failing: int = 0) -> str:
    cells = picture.pooled(p.cells)
    size = max(3, min(14, 320 // max(cells.shape)))
    width, height = cells.shape[1] * size, cells.shape[0] * size
    mark = f" <b>{failing} out</b>" if failing else ""
    image = (
        f'<img src="{picture.data_address(cells)}" width={width} height={height} alt="{_text(p.words)}" title="{_text(p.words)}">'
    )
    return f"<figure>{image}<figcaption style=max-width:{max(width, 128)}px>{_text(caption)}{mark}</figcaption></figure>"
