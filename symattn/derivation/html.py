"""A derivation as one HTML file with MathML: it loads nothing, reads well on a telephone, on paper, in light and in dark.

Formulas are made of pieces that may stand on lines of their own, so a narrow window breaks them where paper would. The content
security policy of the page names its own style sheet and script by their hashes and allows nothing else.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Sequence
from functools import cache
from hashlib import sha256
from importlib import resources

from symattn.derivation.document import Cell, Derivation, Grid, Step, conventions
from symattn.derivation.escaping import arrow, html_text, shortened
from symattn.derivation.fragment import checked, prefix_of
from symattn.derivation.htmlblocks import Blocks
from symattn.derivation.htmlmaps import DATA, LEVELS, data, script, weight_map
from symattn.derivation.latex import grid_name
from symattn.derivation.layout import Piece, cell_piece, formula_parts, line_parts
from symattn.derivation.mathml import math, pieces
from symattn.derivation.nodeprint import Style

PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<style>{css}</style>
</head>
<body>
{body}
</body>
</html>
"""
SHEET = (
    "html{background:#fff}body{margin:0}@media(prefers-color-scheme:dark){html{background:#0d1117}}"
    "@media print{html{background:#fff}}"
)
"""What is said of the page around the derivation."""
TELEPHONE = 28
"""About how many characters of a condition fit on a line of a telephone; words in formulas do not break by themselves."""


@cache
def css() -> str:
    """The style sheet that is written into every page."""
    sheet = (resources.files("symattn.derivation") / "derivation.css").read_text(encoding="utf-8")
    return sheet + "".join(f".symattn .q{k}{{--a:{k / LEVELS:g}}}" for k in range(LEVELS + 1))


def document(d: Derivation) -> str:
    """The whole file."""
    style, body = f"{SHEET}{css()}", _body(d, live=True)
    policy = f"default-src 'none'; base-uri 'none'; form-action 'none'; style-src {_hash(style)}"
    if any(m.live for m in d.maps):
        body += f'\n<script type="application/json" id="{DATA}">{data(d)}</script>\n<script>{script()}</script>'
        policy += f"; script-src {_hash(script())}"
    return PAGE.format(title=html_text(d.title), policy=policy, css=style, body=body)


def _hash(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


def fragment(d: Derivation, prefix: str | None = None) -> str:
    """What a notebook shows: the same without the page around it and without a script.

    ``prefix`` is put before the name of every place in it. Where none is given it is made of the title and of what is said, so
    that two fragments stand in one page and links lead to the steps of their own.

    Raises
    ------
    InputValueError
        As :func:`symattn.derivation.fragment.checked`.
    """
    own = checked(prefix) if prefix is not None else prefix_of(d.title, _body(d, live=False))
    return f"<style>{css()}</style>{_body(d, live=False, prefix=f'{own}-')}"


def _body(d: Derivation, live: bool, prefix: str = "") -> str:
    blocks = Blocks((s.number for s in d.steps), prefix)
    out = ['<article class="symattn">', f"<h1>{html_text(d.title)}</h1>"]
    out += [f"<p>{html_text(d.about)}</p>"] if d.about else []
    out += _words(d)
    out += [f'<p class="say">Definition: <code>{html_text(d.definition)}</code></p>'] if d.definition else []
    if d.inputs:
        out += ["<h2>Given</h2>", *(_grid(g, d) for g in d.inputs)]
    parts = {k: blocks.section(part, f"{prefix}part-{k}") for k, part in enumerate(d.sections, 1)}
    for s in d.steps:
        out += [line for k, part in enumerate(d.sections, 1) if part.before == s.number for line in parts[k]]
        out += _step(s, d, blocks, live)
    numbers = {s.number for s in d.steps}
    out += [line for k, part in enumerate(d.sections, 1) if part.before not in numbers for line in parts[k]]
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


def _step(s: Step, d: Derivation, blocks: Blocks, live: bool) -> list[str]:
    anchor, name = blocks.anchor(s.number), html_text(s.name)
    brief = d.detail == "brief"
    out = [
        f'<section id="{anchor}">',
        f"<p><b>{name}</b></p>" if brief else f'<h2><a href="#{anchor}">{s.number}.</a> {name}</h2>',
    ]
    out += [f"<p>{blocks.words(s.reason)}</p>"] if s.reason else []
    for k, f in enumerate(s.formulas):
        tag = "" if k else f'<span class="tag">({s.number})</span>'
        out.append(f'<div class="f">{tag}{pieces(formula_parts(f.latex, condition_room=TELEPHONE))}</div>')
    if s.shapes and not any(r"\underset" in f.latex for f in s.formulas):
        said = ", ".join(f"{math(letter)}: {math(shape)}" for letter, shape in s.shapes)
        out.append(f'<p class="say">Shapes: {said}.</p>')
    out += [f'<p class="say">{s.how_known(blocks.reference, html_text)}</p>'] if s.known else []
    out += [f"<p>{blocks.words(s.remark)}</p>"] if s.remark else []
    for x in s.lines:
        head, *rest = line_parts(x, d.style)
        note = f'<span class="n">{html_text(arrow(x.note))}</span>' if x.note else ""
        out.append(f'<div class="w"><span class="l">{pieces([head])}</span><span class="r">{pieces(rest)}</span>{note}</div>')
        out += [f'<p class="say">⋮ {s.cut(x)}</p>'] if x.row else []
    out += [_grid(g, d) for g in s.grids]
    for k, m in enumerate(d.maps):
        if m.weights == s.tensors[-1]:
            out += weight_map(m, k, d, live)
    return [*out, "</section>"]


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
