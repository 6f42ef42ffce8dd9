"""An entry of the catalogue as readers see it: idea, formulas, conventions, what it reads and gives, source, what it becomes.

Formulas are those of the derivation, so that they cannot differ from what is computed.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from symattn import variants
from symattn.definition import Definition
from symattn.derivation import derive
from symattn.derivation.document import Formula
from symattn.fields import BY_LETTER, field_of

WIDTH = 79
SHAPES = {"b": "B", "H": "H", "K": "H_kv", "i": "n", "j": "m", "c": "d", "e": "dv", "a": "dmodel", "u": "dmemory", "f": "dout"}


@dataclass(frozen=True)
class Entry:
    """A variant with everything that a reader wants to know before using it.

    Parameters
    ----------
    name, family, idea, source
        Of its row.
    definition
        The fields that are not at their default, as they are typed.
    formulas
        Name of the step and a formula of it, in indices.
    conventions
        In words, without those that the variant does not have.
    reads, gives
        Field name -> axes, of inputs and outputs.
    becomes
        What it is at special values of its parameters, a sentence each.
    """

    name: str
    family: str
    idea: str
    source: str
    definition: str
    formulas: tuple[tuple[str, Formula], ...]
    conventions: Mapping[str, str]
    reads: Mapping[str, str]
    gives: Mapping[str, str]
    becomes: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """The entry as data for JSON."""
        return {
            "name": self.name,
            "family": self.family,
            "idea": self.idea,
            "source": self.source,
            "definition": self.definition,
            "formulas": [{"step": step, "latex": f.latex} for step, f in self.formulas],
            "conventions": dict(self.conventions),
            "reads": dict(self.reads),
            "gives": dict(self.gives),
            "becomes": list(self.becomes),
        }


def entry(name: str) -> Entry:
    """The entry of a variant.

    Raises
    ------
    UnknownNameError
        With the nearest names.

    >>> alibi = entry("alibi")
    >>> alibi.becomes, alibi.reads["alibi_slopes"]
    (('causal where all slopes 0',), '(H)')
    """
    row = variants.get(name)
    definition = row.definition
    derivation = derive(definition, form="index")
    program = definition.program(batch=True)
    formulas = tuple((s.name, f) for s in derivation.steps for f in s.index)
    return Entry(
        name=name,
        family=variants.family_of(name),
        idea=row.idea,
        source=row.source,
        definition=derivation.definition or "all fields at their default",
        formulas=formulas,
        conventions={k: v for k, v in definition.conventions().items() if v not in ("none", "")},
        reads={field_of(n, definition.parameters): _axes(n, definition) for n in sorted(program.inputs, key=_place)},
        gives={field_of(n, definition.parameters): _axes(n, definition) for n in program.outputs},
        becomes=tuple(f"{r.to} where {r.at}" if not r.at.startswith("always") else f"{r.to} {r.at}" for r in row.reduces),
    )


def _place(letter: str) -> int:
    """Where a tensor stands in a list: query, key and value first, parameters last."""
    known = list(BY_LETTER)
    return known.index(letter) if letter in known else len(known)


def _axes(letter: str, d: Definition) -> str:
    """The axes of a tensor as it is given."""
    if letter in d.parameters:
        return "a number, or one per head"
    roles = BY_LETTER[letter].axes if letter in BY_LETTER else ""
    if roles == "*" or not roles:
        program = d.program(batch=True)
        shape = ", ".join(map(str, program.shapes[letter]))
        return f"({shape})" if shape else "a number"
    return f"({', '.join(SHAPES.get(a, a) for a in roles)})"


def to_text(e: Entry) -> str:
    """An entry for the terminal, at most 79 columns wide but for formulas.

    >>> print(to_text(entry("softcap")).splitlines()[0])
    softcap - scores are bounded: 20 tanh(s/20), before the mask
    """
    lines = textwrap.wrap(f"{e.name} - {e.idea}", WIDTH, subsequent_indent="  ", break_long_words=False)
    lines.append("")
    rows = [("family", e.family), ("definition", e.definition), ("source", e.source)]
    rows += [("becomes", text) for text in e.becomes]
    rows += [("reads", ", ".join(f"{n} {shape}" for n, shape in e.reads.items()))]
    rows += [("gives", ", ".join(f"{n} {shape}" for n, shape in e.gives.items()))]
    lines += _rows(rows)
    lines += ["", "Formula (LaTeX)"]
    for _, f in e.formulas:
        lines += [f"  {line}" for line in f.latex.splitlines()]
    lines += ["", "Conventions", *_rows(list(e.conventions.items()))]
    lines += ["", f"symattn derive {e.name} --gradient", f"symattn verify KERNEL --variant {e.name}"]
    return "\n".join(lines) + "\n"


def _rows(rows: list[tuple[str, str]]) -> list[str]:
    out = []
    for key, text in rows:
        out += textwrap.wrap(text, WIDTH, initial_indent=f"  {key:<12} ", subsequent_indent=" " * 15, break_long_words=False)
    return out


def listing() -> str:
    """All variants, family by family, a line each.

    >>> print(listing().splitlines()[0])
    heads: Where Q, K and V come from, and how the heads share them
    """
    lines = []
    for family, title in variants.families().items():
        lines += textwrap.wrap(f"{family}: {title}", WIDTH, subsequent_indent="  ")
        for name in variants.names():
            if variants.family_of(name) == family:
                lines += textwrap.wrap(
                    variants.get(name).idea,
                    WIDTH,
                    initial_indent=f"  {name:<26} ",
                    subsequent_indent=" " * 29,
                    break_long_words=False,
                )
        lines.append("")
    lines.append("symattn catalog NAME says more.")
    return "\n".join(lines) + "\n"


def page(family: str) -> str:
    """The page of a family in Markdown, with formulas in double dollars.

    >>> page("scores").splitlines()[0]
    '# What happens to the score before the softmax, and what else stands in its denominator'
    """
    title = variants.families()[family]
    out = [f"# {title}", ""]
    out += ["Made from the catalogue by `python -m symattn.catalogue`; every identity under *Becomes* is tested.", ""]
    for name in variants.names():
        if variants.family_of(name) == family:
            out += _section(entry(name))
    return "\n".join(out).rstrip() + "\n"


def _section(e: Entry) -> list[str]:
    out = [f"## {e.name}", "", f"{e.idea[0].upper()}{e.idea[1:]}.".replace("*", r"\*"), ""]
    for k, (step, f) in enumerate(e.formulas):
        first = k == 0 or e.formulas[k - 1][0] != step
        out += [*([f"{step}:", ""] if first else []), "$$", f.markdown, "$$", ""]
    plain = Definition().conventions()
    own = {k: v for k, v in e.conventions.items() if plain.get(k) != v}
    out += [f"- Definition: `{e.definition}`"]
    out += [f"- Conventions: {'; '.join(f'{k}: {v}' for k, v in own.items())}".replace("*", r"\*")] if own else []
    out += [f"- Reads: {', '.join(f'`{n}` {shape}' for n, shape in e.reads.items())}"]
    out += [f"- Gives: {', '.join(f'`{n}` {shape}' for n, shape in e.gives.items())}"]
    out += [f"- Becomes: {'; '.join(e.becomes)}"] if e.becomes else []
    out += [f"- Source: {e.source}", f"- More: `symattn derive {e.name} --gradient`, `symattn catalog {e.name}`", ""]
    return out


def index() -> str:
    """The page of all families in Markdown: a table of the variants of each.

    >>> index().splitlines()[0]
    '# The catalogue'
    """
    families = variants.families()
    out = ["# The catalogue", "", "Made from the catalogue by `python -m symattn.catalogue`.", ""]
    out += [f"{len(variants.names())} variants in {len(families)} families. Each works in every command: `symattn derive NAME`,"]
    out += ["`symattn verify KERNEL --variant NAME`, `symattn prove --all --variant NAME`.", ""]
    for family, title in families.items():
        out += [f"## [{title}]({family}.md)", "", "| variant | idea |", "|---|---|"]
        for name in variants.names():
            if variants.family_of(name) == family:
                idea = variants.get(name).idea.replace("|", r"\|").replace("*", r"\*")
                anchor = name.replace(".", "")
                out.append(f"| [{name}]({family}.md#{anchor}) | {idea} |")
        out.append("")
    return "\n".join(out).rstrip() + "\n"


def write_pages(folder: str) -> None:
    """Write the page of every family, and that of all families, into a folder."""
    from pathlib import Path

    (Path(folder) / "index.md").write_text(index(), encoding="utf-8")
    for family in variants.families():
        (Path(folder) / f"{family}.md").write_text(page(family), encoding="utf-8")


if __name__ == "__main__":
    write_pages("docs/variants")
