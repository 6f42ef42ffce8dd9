"""A derivation as one HTML file with MathML: it loads nothing, reads well on a telephone, and follows light and dark.

Formulas are made of pieces that may stand on lines of their own, so a narrow window breaks them where paper would.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache
from importlib import resources
from xml.etree import ElementTree

from latex2mathml.converter import convert

from symattn.derivation.document import Cell, Derivation, Grid, Step, conventions
from symattn.derivation.escaping import arrow, html_text, shortened
from symattn.derivation.latex import grid_name
from symattn.derivation.layout import RELATIONS, Part, Piece, cell_piece, formula_parts, line_parts
from symattn.derivation.nodeprint import Style

PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<style>html{{background:Canvas}}body{{margin:0}}{css}</style>
</head>
<body>
{body}
</body>
</html>
"""
_SIGNS = frozenset("−-+±")
_CLOSING = frozenset(")]⌋⌉⟩′")
_LARGE = frozenset("∑∏") | {"max", "min"}


@cache
def css() -> str:
    """The style sheet that is written into every page."""
    return (resources.files("symattn.derivation") / "derivation.css").read_text(encoding="utf-8")


def document(d: Derivation) -> str:
    """The whole file."""
    return PAGE.format(title=html_text(d.title), css=css(), body=_body(d))


def fragment(d: Derivation) -> str:
    """What a notebook shows: the same without the page around it."""
    return f"<style>{css()}</style>{_body(d)}"


def math(latex: str) -> str:
    """A formula as inline MathML in display style.

    >>> math("x")
    '<math displaystyle="true"><mrow><mi>x</mi></mrow></math>'
    """
    root = ElementTree.fromstring(convert(latex))  # noqa: S314 - made here, from formulas only
    for e in root.iter():
        e.tag = e.tag.rpartition("}")[2]
        if e.tag == "msub" and (e[0].text or "").strip() in _LARGE:
            e.tag = "munder"
        if e.tag == "mn" and e.attrib.pop("mathvariant", "") == "bold":
            e.text = (e.text or "").replace("1", "\U0001d7cf")
    for row in root.iter():
        _signs(row)
    for script in ("msub", "msup", "msubsup", "munder"):
        for e in root.iter(script):
            _primes(e)
    root.attrib = {"displaystyle": "true"}
    return ElementTree.tostring(root, encoding="unicode")


def _signs(row: ElementTree.Element) -> None:
    """A sign with nothing before it that it could add to or subtract from belongs to what follows, without space."""
    nothing, bars = True, 0
    for e in row:
        if nothing and e.tag == "mo" and e.text in _SIGNS:
            e.set("form", "prefix")
        bars += e.text == "|"
        opens = bars % 2 == 1 if e.text == "|" else e.text not in _CLOSING
        nothing = e.tag in ("mspace", "mtext") or (e.tag == "mo" and opens)


def _primes(script: ElementTree.Element) -> None:
    """A prime inside of a script is as large as the script: one more level down it cannot be read."""
    for below in list(script)[1:]:
        for e in below.iter("msup"):
            if e[1].text == "′":
                e[1].tag = "mo"
                e[1].set("scriptlevel", "1")


def _body(d: Derivation) -> str:
    out = ['<article class="symattn">', f"<h1>{html_text(d.title)}</h1>"]
    out += [f"<p>{html_text(d.about)}</p>"] if d.about else []
    out += _words(d)
    out += [f'<p class="say">Definition: <code>{html_text(d.definition)}</code></p>'] if d.definition else []
    if d.inputs:
        out += ["<h2>Given</h2>", *(_grid(g, d) for g in d.inputs)]
    for s in d.steps:
        out += _step(s, d)
    for title, rows in (("Notes", d.notes), (d.rewritten, d.rewritings)):
        if rows:
            out += [f"<h2>{title}</h2>", "<ul>", *(f"<li>{html_text(r)}</li>" for r in rows), "</ul>"]
    out += ["<h2>Conventions</h2>", '<table class="c">']
    out += [f"<tr><td>{html_text(name)}</td><td>{html_text(value)}</td></tr>" for name, value in conventions(d)]
    return "\n".join([*out, "</table>", "</article>"])


def _words(d: Derivation) -> list[str]:
    out = []
    same = d.words.get("i") == d.words.get("j")
    for key, label in (("i", "Words" if same else "Queries"), ("j", "Keys")):
        if key in d.words and not (key == "j" and same):
            said = " ".join(f"<b>{k}</b>&nbsp;{html_text(shortened(w))}" for k, w in enumerate(d.words[key], d.style.origin))
            out.append(f"<p>{label}: {said}</p>")
    if d.follow is not None:
        word = d.words.get("i", ())
        said = f", {html_text(shortened(word[d.follow]))}" if word else ""
        out.append(f"<p>Followed: query {d.style.counted([d.follow])}{said}</p>")
    return out


def _step(s: Step, d: Derivation) -> list[str]:
    out = ["<section>", f"<h2>{s.number}. {html_text(s.name)}</h2>", f"<p>{html_text(s.reason)}</p>"]
    out += [f'<div class="f">{_parts(formula_parts(f.latex))}</div>' for f in s.formulas]
    out += [f'<p class="say">How known: {html_text(s.known)}.</p>'] if s.derived else []
    out += [f"<p>{html_text(s.remark)}</p>"] if s.remark else []
    for x in s.lines:
        head, *rest = line_parts(x, d.style)
        note = f'<span class="n">{html_text(arrow(x.note))}</span>' if x.note else ""
        out.append(f'<div class="w"><span class="l">{_parts([head])}</span><span class="r">{_parts(rest)}</span>{note}</div>')
        out += [f'<p class="say">⋮ {s.cut(x)}</p>'] if x.row else []
    return [*out, *(_grid(g, d) for g in s.grids), "</section>"]


def _parts(parts: Iterable[Part]) -> str:
    """Pieces as formulas of their own, between which a line may break; the relation stays with what follows it."""
    out = []
    for part in parts:
        sign = RELATIONS[part.relation][0] + " " if part.relation else ""
        for k, piece in enumerate(part.pieces):
            gap = r"\quad " if piece.latex.startswith(r"\text{where }") else ""
            lead = sign if not k else "{} " if piece.latex[:2] in ("+ ", "- ") else gap
            out.append(math(lead + piece.latex))
    return " ".join(out)


def _grid(g: Grid, d: Derivation) -> str:
    """A matrix as a table: exact values where they are short, then decimals."""
    out = f'<div class="m">{math(grid_name(g, d.style))} '
    for sign, exact in g.displays:
        out += f'<span class="g">{sign} {_table(g, d.style, exact)}</span> '
    return out + "</div>"


def _table(g: Grid, style: Style, exact: bool) -> str:
    side = g.row_words if len(g.cells) > 1 else ()
    rows: list[str] = []
    if g.column_words:
        names = [f"<th>{html_text(shortened(w, 12))}</th>" for w in g.column_words]
        rows.append("".join([*(["<th></th>"] if side else []), *_skip(names, g.skipped_columns, "<th></th>")]))
    made = []
    for k, row in enumerate(g.cells):
        cells = _skip([_cell(c, style, exact) for c in row], g.skipped_columns, "<td>⋯</td>")
        name = f"<th>{html_text(shortened(side[k], 12))}</th>" if side else ""
        made.append(name + "".join(cells))
    width = len(g.cells[0]) + (g.skipped_columns is not None)
    made = _skip(made, g.skipped_rows, ("<th></th>" if side else "") + "<td>⋮</td>" * width)
    marked = g.followed + (g.skipped_rows is not None and g.followed >= g.skipped_rows) if g.followed is not None else None
    for k, r in enumerate(made):
        kinds = [word for word, holds in (("top", not k), ("end", k == len(made) - 1), ("follow", k == marked)) if holds]
        rows.append(f'<tr class="{" ".join(kinds)}">{r}</tr>' if kinds else f"<tr>{r}</tr>")
    if g.column_words:
        rows[0] = f"<tr>{rows[0]}</tr>"
    return f"<table>{''.join(rows)}</table>"


def _skip(items: Sequence[str], at: int | None, mark: str) -> list[str]:
    return [*items[:at], mark, *items[at:]] if at is not None else list(items)


def _cell(c: Cell, style: Style, exact: bool) -> str:
    piece: Piece = cell_piece(c, style, exact)
    plain = not re.search(r"[\\_^{]", piece.latex)
    return f"<td>{html_text(piece.text.replace('-', '−')) if plain else math(piece.latex)}</td>"
