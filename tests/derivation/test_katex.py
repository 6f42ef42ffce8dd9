"""Every formula that a writer puts on a page is one that KaTeX takes, without a warning."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import pytest

from symattn import variants
from symattn.derivation import Derivation, derive, examples
from symattn.derivation.escaping import latex_text, markdown_label
from tests.derivation import katex
from tests.derivation.cases import TWO_HEADS, hostile, variant, wide
from tests.derivation.formulas import FORMULAS, Formula

FORMS = ("latex", "markdown", "myst", "html", "ipynb", "json")
FEW = ("multi-head", "sliding-window", "rope", "additive", "sparsemax", "flash")


def formulas(documents: Iterable[Derivation]) -> dict[str, list[Formula]]:
    """Form -> all formulas in the documents of that form."""
    found = list(documents)
    return {form: [x for d in found for x in FORMULAS[form](getattr(d, f"to_{form}")())] for form in FORMS}


def refused(found: dict[str, list[Formula]]) -> list[str]:
    """What KaTeX says against any of them; there must be many, and some of each form that keeps LaTeX."""
    assert all(len(set(found[form])) > 50 for form in found if form != "html")
    return katex.complaints(x for form in found for x in found[form])


def test_formulas_of_the_shipped_examples() -> None:
    assert refused(formulas(derive(example=name, gradient=True) for name in examples.shipped())) == []


def test_formulas_with_hostile_words_wide_numbers_and_heads() -> None:
    two_heads = derive(example=examples.parse(TWO_HEADS, "two heads"), gradient=True)
    assert refused(formulas([hostile(), wide(), two_heads])) == []


def test_formulas_of_tangents_and_of_a_few_variants() -> None:
    assert refused(formulas([derive(jvp=True), derive(hvp=True), *map(variant, FEW)])) == []


@pytest.mark.slow
def test_formulas_of_every_variant_with_its_gradient() -> None:
    assert refused(formulas(map(variant, variants.names()))) == []


def test_words_stand_in_formulas() -> None:
    letters = [chr(k) for k in range(32, 0x3000)]
    said = katex.complaints((rf"\text{{a{latex_text(c)}b}}", True) for c in letters)
    assert sorted(x.rpartition(": ")[2] for x in said) == [r"\text{a\L{}b}", r"\text{a\l{}b}"]  # letters that KaTeX lacks
    words = ["über", "naïve", "señor", "мир", "猫", "ねこ", "a_b^c$%", "x{y}\\z", "1 < 2 & 3"]
    assert katex.complaints((rf"\text{{{markdown_label(w)}}}", True) for w in words) == []


@pytest.mark.parametrize(
    ("right", "wrong", "says"),
    [
        (r"\frac", r"\fraction", "Undefined control sequence"),
        (r"\end{align*}", r"\\ \text{x \end{align*}", "expected '}'"),
        (r"\cdot", "·é", "LaTeX-incompatible"),
        (r"\begin{align*}", r"\begin{align*} \unknown", r"\unknown"),
    ],
)
def test_a_formula_that_is_wrong_is_noticed(right: str, wrong: str, says: str) -> None:
    tex = derive(example="the-cat-sat").to_latex()
    spoiled = list(FORMULAS["latex"](tex))
    at = next(k for k, (x, _) in enumerate(spoiled) if right in x)
    spoiled[at] = (spoiled[at][0].replace(right, wrong, 1), True)
    said = katex.complaints(spoiled)
    assert len(said) == 1 and says in said[0]


def test_all_formulas_of_a_document_are_found() -> None:
    document = r"""\documentclass{x} % $a$
\begin{document}
Costs \$3 and $b_1$, % $no$
\begin{align*} c &= d \tag{1}\label{eq:1} \end{align*} \[ e \] then $f$.
\end{document}"""
    assert list(FORMULAS["latex"](document)) == [
        (r"\begin{align*} c &= d \tag{1} \end{align*}", True), (" e ", True), ("b_1", False), ("f", False),
    ]  # fmt: skip
    markdown = "a $b$\n\n$$\nc\n$$\n\n```math\nd\n```\n\n```python\n$no$\n```\nand $`e`$"
    assert sorted(tex.strip() for tex, _ in FORMULAS["markdown"](markdown)) == ["b", "c", "d", "e"]
    myst = "```{math}\n:label: eq-1\n\nx = y\n```\n\nby {math}`z` and $w$"
    assert [tex.strip() for tex, _ in FORMULAS["myst"](myst)] == ["x = y", "z", "w"]
    cells = [{"cell_type": "markdown", "source": ["$$x$$\n"]}, {"cell_type": "code", "source": ["'$y$'"]}]
    assert list(FORMULAS["ipynb"](json.dumps({"cells": cells}))) == [("x", True)]
    assert list(FORMULAS["json"]('{"steps": [{"index": ["a"], "lines": [{"work_latex": "b", "work": "c"}]}]}')) == [
        ("a", True), ("b", True),
    ]  # fmt: skip


def test_without_katex_the_test_is_skipped_and_in_ci_it_fails(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("SYMATTN_KATEX", raising=False)
    monkeypatch.setattr(katex, "ROOT", tmp_path)
    monkeypatch.setattr(katex, "require_program", lambda name: name)
    monkeypatch.setattr(katex, "IN_CI", False)
    with pytest.raises(pytest.skip.Exception, match="KaTeX is not installed"):
        katex.require_katex()
    monkeypatch.setattr(katex, "IN_CI", True)
    with pytest.raises(pytest.fail.Exception, match="must be installed in CI"):
        katex.require_katex()
