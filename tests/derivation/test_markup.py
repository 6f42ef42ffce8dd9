"""Markdown as GitHub shows it, and MyST as Sphinx builds it: every block, every variant, hostile words."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from symattn.derivation import Derivation, derive, examples, myst
from symattn.derivation.blocks import Algorithm, Box, CodeLine, Display, Picture, Prose, Section, Table
from symattn.derivation.document import Formula
from symattn.derivation.myst import Myst
from tests.derivation.cases import HOSTILE, TWO_HEADS, hostile, variant, wide
from tests.derivation.github import PARSER, faults
from tests.support import require, rows

SVG = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 10 10" width="10" height="10"><rect id="r" width="9" height="9"/></svg>'
)


def formula(latex: str) -> Formula:
    return Formula(latex, latex)


P, D = formula(r"P_{ij}"), formula(r"\mathcal{E}_{ij} = \max_{j} \mathcal{E}_{ij}")


@cache
def sections() -> tuple[Section, ...]:
    """A section with every kind of block, hostile words in each."""
    word = HOSTILE[1] + HOSTILE[2]
    display = Display((D, formula(r"= 2 P_{ij}"), formula(r"x \le 1")), ("by step 1", "", word))
    table = Table(("word", P), ((word, P), ("a | b", formula(r"\lvert x \rvert"))), caption=word)
    code = Algorithm(word, (P, " and ", word), (D,), (CodeLine(0, ("for each tile ", P)), CodeLine(2, (D, word))))
    picture = Picture(SVG, word)
    box = Box("Summary " + word, (Prose((word, P)), display, Box("inner", (Display((D,)),)), picture))
    blocks = (Prose(("Let ", P, " and ", D, f" be {word}.")), display, Display((P,)), table, code, picture, box)
    return (Section(word, blocks, "proved for all sizes.", before=2), Section("Last", (Prose(("end",)),)))


def with_sections() -> Derivation:
    return replace(derive(example="two-words"), sections=sections())


# --- GitHub


@pytest.mark.parametrize("name", examples.shipped())
def test_shipped_examples(name: str) -> None:
    assert faults(derive(example=name, gradient=True).to_markdown()) == []


def test_hostile_words_wide_numbers_heads_and_tangents() -> None:
    two_heads = derive(example=examples.parse(TWO_HEADS, "two heads"), gradient=True)
    for d in (hostile(), wide(), two_heads, derive(hvp=True), with_sections()):
        assert faults(d.to_markdown()) == []


@pytest.mark.parametrize("name", rows())
def test_every_variant(name: str) -> None:
    assert faults(variant(name).to_markdown()) == []


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ("$$ x $$", "not alone"),
        ("text\n$$\nx\n$$\n", "no blank line"),
        ("$$\nx\n\ny\n$$\n", "a block of 3 lines"),
        ("$$\nx\n", "not closed"),
        ("- a\n\n  $$\n  x\n  $$\n", "not alone"),
        ("$$\n\\operatorname{softmax}(x)\n$$\n", r"\operatorname"),
        ("$$\n\\newcommand{\\x}{y}\n$$\n", r"\newcommand"),
        ("$$\na \\\\ b\n$$\n", "in a"),
        ("$$\n\\mathcal{E}_{ij} + \\mathcal{E}_{ij}\n$$\n", "em_open"),
        ("$$\n[a](b)\n$$\n", "link_open"),
        ("$$\na <b> c\n$$\n", "html_inline"),
        ("$$\n\\left( x\n$$\n", "left and right"),
        ("$$\n\\begin{align} x \\end{align}\n$$\n", "environment align"),
        ("$$\n{x\n$$\n", "braces"),
        ("costs $3 and $4", "a dollar"),
        ("a <script>x</script>", "a tag"),
    ],
)
def test_what_github_would_spoil_is_noticed(wrong: str, says: str) -> None:
    assert any(says in x for x in faults(wrong))


def test_brief_and_side_by_side_pages() -> None:
    for page in ({"detail": "brief"}, {"detail": "full", "show": "side-by-side", "shapes": True}):
        d = derive(example="two-words-causal", gradient=True, **page)
        assert faults(d.to_markdown()) == []
    assert r"\operatorname" not in d.to_markdown() and "Shapes: $`" in d.to_markdown()


def test_blocks_in_markdown() -> None:
    page = with_sections().to_markdown()
    assert page.index("## 1. ") < page.index("How known: proved for all sizes.") < page.index("## 2. ") < page.index("## Last")
    assert "Let $`P_{ij}`$ and $`" in page and "| 2 | &emsp;&emsp;$`" in page
    assert "\\begin{aligned} \\mathcal{E}_ {ij} & = \\max_{j}" in page and r"& \quad & \text{by step 1}" in page
    tables = [t for t in PARSER.parse(page) if t.type == "table_open"]
    assert len(tables) == 3  # a table, pseudo-code, the conventions
    assert "*Picture: &#60;script" in page and page.count("**inner**") == 1


def test_references_lead_to_headings() -> None:
    page = derive(example="two-words-causal", gradient=True).to_markdown()
    places = {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in re.findall(r"^## (.*)$", page, re.M)}
    links = re.findall(r"\]\(#([^)]*)\)", page)
    assert len(links) > 10 and set(links) <= places


# --- MyST

CONF = 'extensions = ["myst_parser"]\nproject = "x"\nnitpicky = True\nhtml_theme = "basic"\nexclude_patterns = []\n'
INDEX = "# Index\n\n```{toctree}\n%s\n```\n\nBy {eq}`%s-7`.\n"


def built(pages: dict[str, str], folder: Path, prefix: str) -> dict[str, str]:
    """The pages of HTML that Sphinx makes; a warning is an error."""
    require("sphinx")
    require("myst_parser")
    (folder / "in").mkdir()
    (folder / "in" / "conf.py").write_text(CONF)
    (folder / "in" / "index.md").write_text(INDEX % ("\n".join(pages), prefix))
    for name, text in pages.items():
        (folder / "in" / f"{name}.md").write_text(text, encoding="utf-8")
    command = [sys.executable, "-m", "sphinx", "-q", "-n", "-W", "--keep-going", "-b", "html", "in", "out"]
    done = subprocess.run(command, cwd=folder, capture_output=True, timeout=300)
    assert done.returncode == 0, done.stderr.decode("utf-8")[-3000:]
    return {name: (folder / "out" / f"{name}.html").read_text(encoding="utf-8") for name in pages}


@pytest.mark.slow
def test_sphinx_builds_the_pages(tmp_path: Path) -> None:
    found = {name: derive(example=name, gradient=True) for name in examples.shipped()}
    found |= {"hostile": hostile(), "wide": wide(), "sections": with_sections(), "hvp": derive(hvp=True)}
    pages = {name: d.to_myst() for name, d in found.items()} | {"named": myst.document(derive(), "mine")}
    pages["symbols"] = derive(gradient=True).to_myst()
    out = built(pages, tmp_path, Myst(found["the-cat-sat"]).prefix)
    assert 'class="admonition' in out["sections"] and out["sections"].count("<svg") == 2
    assert re.search(r'<a class="reference internal" href="#equation-[\w-]+-1">\(1\)</a>', out["the-cat-sat"])
    assert "<script>alert" not in out["hostile"]


@pytest.mark.slow
@pytest.mark.parametrize(("right", "wrong"), [(":label: ", ":lable: "), ("{eq}`", "{eq}`no-"), ("```{math}", "```{maths}")])
def test_sphinx_notices_what_is_wrong(right: str, wrong: str, tmp_path: Path) -> None:
    d = derive(example="two-words")
    with pytest.raises(AssertionError):
        built({"page": d.to_myst().replace(right, wrong, 1)}, tmp_path, Myst(d).prefix)


def test_myst_has_labels_references_and_boxes() -> None:
    d = derive(example="two-words")
    page, prefix = d.to_myst(), Myst(d).prefix
    labels = re.findall(r"^:label: (.*)$", page, re.M)
    assert labels == [f"{prefix}-{s.number}" for s in d.steps if s.formulas] and len(labels) > 5
    assert set(re.findall(r"\{eq\}`([^`]*)`", page)) <= set(labels)
    assert "$" not in re.sub(r"&#36;", "", page) and myst.document(d, "mine").count(":label: mine-") == len(labels)
    boxes = with_sections().to_myst()
    assert re.search(r"^`{5}\{admonition\} Summary ", boxes, re.M) and re.search(r"^`{4}\{admonition\} inner$", boxes, re.M)


def test_pages_of_one_title_have_labels_of_their_own() -> None:
    one, two = (re.findall(r"^:label: (.*)$", derive(gradient=g).to_myst(), re.M) for g in (False, True))
    assert one and two and not set(one) & set(two)
