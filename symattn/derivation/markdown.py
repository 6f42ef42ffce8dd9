r"""A derivation as Markdown with formulas in double dollars, in the part of LaTeX that GitHub's renderer takes.

Inside formulas there is no ``\\``, ``\,`` or ``\operatorname``: Markdown takes the first two apart, GitHub refuses the third.
Every formula is a block of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from symattn.derivation.document import Derivation, Grid, Step, conventions
from symattn.derivation.escaping import arrow, markdown_label, markdown_text, shortened
from symattn.derivation.latex import grid_name, listed_parts, matrix, skipped
from symattn.derivation.layout import RELATIONS, Part, line_parts
from symattn.derivation.nodeprint import Style
from symattn.readings.latex import MARKDOWN


def document(d: Derivation) -> str:
    """The whole document."""
    style = replace(d.style, typesetting=MARKDOWN)
    out = [f"# {markdown_text(shortened(d.title, 200))}", ""]
    out += [markdown_text(d.about), ""] if d.about else []
    out += _words(d)
    out += [f"Definition: {markdown_text(d.definition)}", ""] if d.definition else []
    if d.inputs:
        out += ["## Given", "", *_grids(d.inputs, style)]
    for s in d.steps:
        out += _step(s, style)
    for title, rows in (("Notes", d.notes), (d.rewritten, d.rewritings)):
        if rows:
            out += [f"## {title}", "", *(f"- {markdown_text(r)}" for r in rows), ""]
    out += ["## Conventions", "", "| convention | reading |", "|---|---|"]
    out += [f"| {markdown_text(name)} | {markdown_text(value)} |" for name, value in conventions(d)]
    return "\n".join(out) + "\n"


def _words(d: Derivation) -> list[str]:
    out = []
    same = d.words.get("i") == d.words.get("j")
    for key, label in (("i", "Words" if same else "Queries"), ("j", "Keys")):
        if key in d.words and not (key == "j" and same):
            said = ", ".join(f"{k} {markdown_text(shortened(w))}" for k, w in enumerate(d.words[key], d.style.origin))
            out += [f"{label}: {said}.", ""]
    if d.follow is not None:
        word = d.words.get("i", ())
        said = f", {markdown_text(shortened(word[d.follow]))}." if word else "."
        out += [f"Followed: query {d.style.counted([d.follow])}{said}", ""]
    return out


def _step(s: Step, style: Style) -> list[str]:
    out = [f"## {s.number}. {s.name}", "", markdown_text(s.reason), ""]
    for f in s.formulas:
        out += _block(f.markdown)
    if s.derived:
        out += [f"How known: {markdown_text(s.known)}.", ""]
    if s.remark:
        out += [markdown_text(s.remark), ""]
    for x in s.lines:
        if x.note:
            out += [f"{markdown_text(arrow(x.note))}:", ""]
        out += _block(_flat(line_parts(x, style)))
        out += [f"⋮ {s.cut(x)}", ""] if x.row else []
    return out + _grids(s.grids, style)


def _block(latex: str) -> list[str]:
    return ["$$", latex, "$$", ""]


def _flat(parts: Sequence[Part]) -> str:
    out = ""
    for p in parts:
        body = " ".join(q.latex for q in p.pieces)
        out += f" {RELATIONS[p.relation][0]} {body}" if p.relation else body
    return out


def _grids(found: Sequence[Grid], style: Style) -> list[str]:
    out = []
    for g in found:
        name = grid_name(g, style)
        if skipped(g, found, matrix(g, style, exact=False) is not None):
            continue
        body = name
        for sign, exact in g.displays:
            m = matrix(g, style, exact, newline=r"\cr", escape=markdown_label)
            if m is None and (sign, exact) == g.displays[-1]:
                body = ""
                for parts in listed_parts(g, style):
                    out += _block(_flat(parts))
            elif m is not None:
                body += f" {RELATIONS[sign][0]} {m}"
        out += _block(body) if body else []
    return out
