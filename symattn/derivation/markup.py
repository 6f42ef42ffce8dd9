r"""What all forms with Markdown in them share: GitHub's Markdown, MyST, and the text of notebooks.

A :class:`Markup` turns a derivation into parts (what comes first, the steps, what comes last) and says how each thing looks; the
forms differ in how formulas, boxes, pictures and references are marked, and override that. Inside formulas there is no ``\\``,
``\,`` or ``\operatorname``: Markdown takes the first two apart, GitHub refuses the third.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from symattn.derivation import blocks
from symattn.derivation.document import Derivation, Formula, Grid, Step, conventions
from symattn.derivation.escaping import arrow, markdown_label, markdown_text, shortened
from symattn.derivation.latex import grid_name, listed_parts, matrix, skipped
from symattn.derivation.layout import RELATIONS, line_parts, split_relation
from symattn.derivation.layout import Part as Relation
from symattn.readings.latex import MARKDOWN

INDENT = "&emsp;"


@dataclass(frozen=True)
class Part:
    """Lines of a page, and the step that they are of; None for what stands before, between and after steps."""

    lines: tuple[str, ...]
    step: Step | None = None


class Markup:
    """How one derivation is written."""

    def __init__(self, d: Derivation) -> None:
        self.d = d
        self.style = replace(d.style, typesetting=MARKDOWN)
        self.numbered = {s.number for s in d.steps if s.formulas}

    # --- what the forms override

    def inline(self, latex: str) -> str:
        """A formula in a line; the backticks keep Markdown out of it."""
        return f"$`{latex}`$"

    def display(self, latex: str, number: int | None = None) -> list[str]:
        """A formula of its own, with the number of its step where it has one.

        GitHub lets Markdown into it: a subscript behind a bracket would begin emphasis; a blank behind its sign prevents that.
        """
        tag = rf" \tag{{{number}}}" if number is not None else ""
        return ["$$", re.sub(r"(?<![A-Za-z0-9])_(?=\S)", "_ ", latex) + tag, "$$", ""]

    def reference(self, number: int) -> str:
        """A reference to a step: the place that GitHub makes of its heading."""
        step = next((s for s in self.d.steps if s.number == number), None)
        if step is None or self.brief:
            return f"({number})"
        name = "".join(c for c in f"{number} {step.name}".lower() if c.isalnum() or c in " -_").replace(" ", "-")
        return f"[({number})](#{name})"

    def box(self, title: str, inside: Sequence[str], depth: int) -> list[str]:
        """Blocks between rules; GitHub shows no display inside of a quotation."""
        return ["---", "", *([f"**{title}**", ""] if title else []), *inside, "---", ""]

    def picture(self, p: blocks.Picture) -> list[str]:
        """A picture in words: GitHub shows none that stands in the text."""
        return [f"*Picture: {markdown_text(p.says)}*", ""]

    # --- the page

    @property
    def brief(self) -> bool:
        """Whether steps are lines and have no headings."""
        return self.d.detail == "brief"

    def document(self) -> str:
        """The whole page."""
        return "\n".join(line for p in self.parts() for line in p.lines).rstrip() + "\n"

    def parts(self) -> Iterator[Part]:
        """The parts of the page, as they follow each other."""
        d = self.d
        yield Part((*self.opening(), *(["## Given", "", *self.grids(d.inputs)] if d.inputs else [])))
        for s in d.steps:
            yield from self.sections(s.number)
            yield Part(tuple(self.step(s)), s)
        yield from self.sections(None)
        yield Part(tuple(self.closing()))

    def opening(self) -> list[str]:
        """Title, first sentence, words, definition."""
        d = self.d
        out = [f"# {markdown_text(shortened(d.title, 200))}", ""]
        out += [markdown_text(d.about), ""] if d.about else []
        same = d.words.get("i") == d.words.get("j")
        for key, label in (("i", "Words" if same else "Queries"), ("j", "Keys")):
            if key in d.words and not (key == "j" and same):
                said = ", ".join(f"{k} {markdown_text(shortened(w))}" for k, w in enumerate(d.words[key], d.style.origin))
                out += [f"{label}: {said}.", ""]
        if d.follow is not None:
            word = d.words.get("i", ())
            said = f", {markdown_text(shortened(word[d.follow]))}." if word else "."
            out += [f"Followed: query {d.style.counted([d.follow])}{said}", ""]
        return [*out, *([f"Definition: {markdown_text(d.definition)}", ""] if d.definition else [])]

    def closing(self) -> list[str]:
        """Notes, rewritings, conventions."""
        out: list[str] = []
        for title, rows in (("Notes", self.d.notes), (self.d.rewritten, self.d.rewritings)):
            if rows:
                out += [f"## {title}", "", *(f"- {markdown_text(r)}" for r in rows), ""]
        out += ["## Conventions", "", "| convention | reading |", "|---|---|"]
        return [*out, *(f"| {markdown_text(name)} | {markdown_text(value)} |" for name, value in conventions(self.d))]

    def step(self, s: Step) -> list[str]:
        """One step: heading, reason, formulas, how it is known, work, values."""
        name = markdown_text(s.name)
        out = [f"**{name}**", ""] if self.brief else [f"## {s.number}. {name}", ""]
        out += [markdown_text(s.reason), ""] if s.reason else []
        for k, f in enumerate(s.formulas):
            out += self.display(f.markdown, s.number if not k else None)
        if s.shapes:
            said = ", ".join(f"{self.inline(letter)} is {self.inline(shape)}" for letter, shape in s.shapes)
            out += [f"Shapes: {said}.", ""]
        out += [s.how_known(self.reference, markdown_text), ""] if s.known else []
        out += [markdown_text(s.remark), ""] if s.remark else []
        for x in s.lines:
            out += [f"{markdown_text(arrow(x.note))}:", ""] if x.note else []
            out += self.display(_flat(line_parts(x, self.style)))
            out += [f"⋮ {s.cut(x)}", ""] if x.row else []
        return out + self.grids(s.grids)

    def grids(self, found: Sequence[Grid]) -> list[str]:
        """Matrices, exact where that is short, and in decimals."""
        out = []
        for g in found:
            body = grid_name(g, self.style)
            if skipped(g, found, matrix(g, self.style, exact=False) is not None):
                continue
            for sign, exact in g.displays:
                m = matrix(g, self.style, exact, newline=r"\cr", escape=markdown_label)
                if m is None and (sign, exact) == g.displays[-1]:
                    body = ""
                    out += [line for parts in listed_parts(g, self.style) for line in self.display(_flat(parts))]
                elif m is not None:
                    body += f" {RELATIONS[sign][0]} {m}"
            out += self.display(body) if body else []
        return out

    # --- sections

    def sections(self, before: int | None) -> Iterator[Part]:
        """The sections that stand above a step; those below the last one for None."""
        for s in self.d.sections:
            if s.before == before:
                out = [f"## {markdown_text(s.title)}", "", *self.stacked(s.blocks, 0)]
                yield Part((*out, *([f"How known: {markdown_text(s.known.rstrip('.'))}.", ""] if s.known else [])))

    def stacked(self, found: Iterable[blocks.Block], depth: int) -> list[str]:
        """Blocks, one below the other; ``depth`` is how many boxes stand around them."""
        return [line for b in found for line in _WRITERS[type(b)](self, b, depth)]

    def said(self, parts: Iterable[blocks.Part], cell: bool = False) -> str:
        """Words and formulas in a line, or in a cell of a table."""
        return "".join(self._part(p, cell) for p in parts)

    def _part(self, p: blocks.Part, cell: bool) -> str:
        if isinstance(p, Formula):
            return self.inline(p.markdown.replace("|", r"\vert ") if cell else p.markdown)
        return markdown_text(p)

    def prose(self, b: blocks.Prose, _: int) -> list[str]:
        """A paragraph."""
        return [self.said(b.parts), ""]

    def formulas(self, b: blocks.Display, _: int) -> list[str]:
        """Formulas aligned at their relations, with the reasons at the right."""
        beside = b.beside or ("",) * len(b.formulas)
        if len(b.formulas) == 1 and not beside[0]:
            return self.display(b.formulas[0].markdown)
        rows = []
        for f, reason in zip(b.formulas, beside, strict=True):
            left, relation, right = split_relation(f.markdown)
            note = rf" & \quad & \text{{{markdown_label(reason)}}}" if reason else ""
            rows.append(f"{left} & {relation} {right}{note}")
        body = r" \cr ".join(rows)
        return self.display(rf"\begin{{aligned}} {body} \end{{aligned}}")

    def table(self, b: blocks.Table, _: int) -> list[str]:
        """A table with its caption above."""
        out = [f"*{markdown_text(b.caption)}*", ""] if b.caption else []
        rows = [b.head, *b.rows]
        lines = ["| " + " | ".join(self.said([c], cell=True) for c in row) + " |" for row in rows]
        return [*out, lines[0], "|" + "---|" * len(b.head), *lines[1:], ""]

    def algorithm(self, b: blocks.Algorithm, _: int) -> list[str]:
        """Pseudo-code as a table with a row for each line: formulas are not shown inside of code."""
        out = [f"**Algorithm: {markdown_text(b.title)}**", ""]
        for word, parts in (("Takes", b.takes), ("Gives", b.gives)):
            out += [f"{word}: {self.said(parts)}", ""] if parts else []
        lines = [f"| {k} | {INDENT * x.depth}{self.said(x.parts, cell=True)} |" for k, x in enumerate(b.lines, 1)]
        return [*out, "| | |", "|---:|---|", *lines, ""]

    def boxed(self, b: blocks.Box, depth: int) -> list[str]:
        """Blocks in a frame."""
        return self.box(markdown_text(b.title), self.stacked(b.blocks, depth + 1), depth)

    def pictured(self, b: blocks.Picture, _: int) -> list[str]:
        """A picture."""
        return self.picture(b)


_WRITERS: Mapping[type, Callable[[Markup, Any, int], list[str]]] = {
    blocks.Prose: Markup.prose,
    blocks.Display: Markup.formulas,
    blocks.Table: Markup.table,
    blocks.Algorithm: Markup.algorithm,
    blocks.Box: Markup.boxed,
    blocks.Picture: Markup.pictured,
}


def _flat(parts: Sequence[Relation]) -> str:
    out = ""
    for p in parts:
        body = " ".join(q.latex for q in p.pieces)
        out += f" {RELATIONS[p.relation][0]} {body}" if p.relation else body
    return out
