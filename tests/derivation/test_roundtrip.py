"""A second program reads the LaTeX of derivations and computes every number again; a planted digit is found."""

from __future__ import annotations

import random
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from symattn import variants
from symattn.definition import Definition
from symattn.derivation import derive, load, shipped
from symattn.derivation.drawn import example_of
from tests.derivation.roundtrip import check

SEEDED: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "sliding-window": ({}, {"seed": 1}),
    "sink": ({}, {"seed": 2}),
    "softcap": ({}, {"seed": 3}),
    "alibi": ({}, {"seed": 1}),
    "grouped-query": ({}, {"seed": 4}),
    "cooling": ({"score": "s/(1 + tau*(i - j))", "mask": "j <= i", "params": {"tau": "1/2"}}, {"seed": 1}),
    "next-word": ({}, {"seed": 1, "tokens": ["the", "cat", "sat"]}),
}
"""Variant, or fields -> what is drawn."""
CASES = [
    (name, gradient) for name in [*shipped(), *SEEDED] for gradient in (False, True) if (name, gradient) != ("next-word", True)
]


@cache
def document(name: str, gradient: bool) -> str:
    """A derivation in LaTeX."""
    if name in shipped():
        return derive(example=load(name), gradient=gradient).to_latex()
    fields, drawn = SEEDED[name]
    definition = Definition(**fields) if fields else variants.get(name).definition
    empty: dict[str, Any] = {"tokens": [], "memory": [], "vocabulary": [], "sizes": {}}
    return derive(definition, example_of(definition, **(empty | drawn)), gradient=gradient).to_latex()


@pytest.mark.parametrize(("name", "gradient"), CASES)
def test_every_number_is_computed_again(name: str, gradient: bool) -> None:
    found = check(document(name, gradient))
    assert not found.wrong
    assert found.lines >= 10 and found.cells >= 30 and found.formulas >= 4
    assert not found.missed


def planted(tex: str, at: int) -> str:
    """The document with another digit at a place."""
    return tex[:at] + str((int(tex[at]) + 1) % 10) + tex[at + 1 :]


def digits(tex: str) -> list[int]:
    """The places of all digits of numbers: in lines and matrices, after the relation, and in no subscript, tag or length."""
    out = []
    for block in re.finditer(r"\\begin\{align\*\}(.*?)\\end\{align\*\}", tex, re.S):
        hidden = r"\\tag\*?\{(?:[^{}]|\{[^{}]*\})*\}|\\label\{[^{}]*\}|\\rule\{[^{}]*\}\{[^{}]*\}|\[\w+\]"
        hidden += r"|< \d|_\{[^{}]*\}|_\d|\^\{\([\d,]+\)\}|\\text\{[^{}]*\}|\\mathbf\{1\}|\\begin\{array\}\{[^{}]*\}"
        shown = re.sub(hidden, lambda m: " " * len(m[0]), block[1])
        out += [block.start(1) + m.start() for m in re.finditer(r"\d", shown)]
    return out


@pytest.mark.parametrize("name", ["two-words", "sliding-window"])
def test_a_planted_digit_is_found(name: str) -> None:
    tex = document(name, False)
    places = [at for at in digits(tex) if at > tex.index(r"\subsection*{1. ")]
    for at in random.Random(5).sample(places, 10):
        assert check(planted(tex, at)).wrong, tex[at - 60 : at + 20]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["two-words", "sliding-window", "the-cat-sat"])
def test_every_planted_digit_is_found(name: str) -> None:
    tex = document(name, False)
    places = [at for at in digits(tex) if at > tex.index(r"\subsection*{1. ")]
    missed = [tex[at - 60 : at + 20] for at in places if not check(planted(tex, at)).wrong]
    assert len(places) > 100 and not missed


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        (r"R_{1,2} &= 2 \cdot 2 + 0 \cdot 1 + 1 \cdot 1", r"R_{1,2} &= 2 \cdot 2 + 7 \cdot 0 + 1 \cdot 1"),
        (r"\approx 0.0903", r"\approx 0.0904"),
        (r"\sum_c Q_{ic} K_{jc}", r"\sum_c Q_{ic} K_{ic}"),
        (r"\frac{R_{ij}}{\sqrt{d_k}}", r"\frac{R_{ij}}{d_k}"),
        (r"P_{1,1} \cdot 2 + P_{1,2} \cdot 1", r"P_{1,2} \cdot 2 + P_{1,1} \cdot 1"),
        (r"\frac{1.781312}{19.716263}", r"\frac{1.781312}{19.716262}"),
    ],
)
def test_a_planted_fault_is_found(right: str, wrong: str) -> None:
    tex = document("two-words", False)
    clean, found = check(tex), check(tex.replace(right, wrong, 1))
    assert right in tex and not clean.wrong
    assert found.wrong or found.unread != clean.unread


def test_the_second_program_imports_nothing_of_the_first() -> None:
    from tests.derivation import roundtrip, texnumbers

    for module in (roundtrip, texnumbers):
        assert module.__file__
        assert not re.search(r"^\s*(?:import|from) symattn", Path(module.__file__).read_text(encoding="utf-8"), re.M)
