"""Spaces in MathML are those of TeX: names of functions, brackets, strokes, and the places where a line may break."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

from symattn.definition import Definition
from symattn.derivation import derive
from symattn.derivation.layout import formula_parts
from symattn.derivation.mathml import math, pieces


def spaces(latex: str) -> dict[str, tuple[str, str]]:
    """Each sign whose spaces are set -> those before and after it."""
    signs = ElementTree.fromstring(math(latex)).iter("mo")
    return {e.text or "": (e.attrib["lspace"], e.attrib["rspace"]) for e in signs if "lspace" in e.attrib}


@pytest.mark.parametrize(
    ("latex", "name", "before", "after"),
    [
        (r"20 \tanh(x)", "tanh", True, False),
        (r"\exp(x)", "exp", False, False),
        (r"y + \exp(x)", "exp", False, False),
        (r"(a + b) \log x", "log", True, True),
        (r"\left(\frac{a}{b}\right) \exp\left(\frac{a}{b}\right)", "exp", True, False),
        (r"a \, \exp(x)", "exp", False, False),
        (r"1 - \tanh^2(x)", "tanh", False, False),
        (r"2 \max_j x_j", "max", True, True),
        (r"P = \operatorname{softmax}(Z)", "softmax", False, False),
        (r"\min(\max(i, 0), 1)", "max", False, False),
        (r"\frac{1}{2 \cosh x}", "cosh", True, True),
    ],
)
def test_a_name_stands_off_from_factors_and_not_from_brackets(latex: str, name: str, before: bool, after: bool) -> None:
    thin = {True: "0.1667em", False: "0"}
    assert spaces(latex)[name] == (thin[before], thin[after])


def test_what_is_no_name_keeps_its_spaces() -> None:
    assert spaces("a = b + c") == {} and spaces(r"i \bmod 2") == {} and spaces(r"\mathrm{slope} (i - j)") == {}
    assert spaces("i/4") == {"/": ("0", "0")}


@pytest.mark.parametrize(("latex", "grow"), [(r"\left(i - 1\right)", False), (r"\left\lfloor \frac{i}{4} \right\rfloor", True)])
def test_brackets_grow_with_what_is_tall_only(latex: str, grow: bool) -> None:
    signs = ElementTree.fromstring(math(latex)).iter("mo")
    assert {e.get("stretchy") for e in signs if e.get("fence")} == {"true" if grow else "false"}


def test_no_space_but_that_of_words_stands_between_pieces() -> None:
    sums = pieces(formula_parts("x = a + b"))
    assert sums.count("<wbr>") == 2 and not re.search(r"\s<math", sums)
    words = pieces(formula_parts(r"x = a \quad\text{where } j \le i \text{ and } i - j < 4", condition_room=12))
    assert len(re.findall(r" <math[^>]*><mrow>(?:<mspace[^>]*>)?<mtext>", words)) == 2


def test_a_mark_stays_on_the_line_of_the_formula_before_it() -> None:
    page = derive(Definition(), gradient=True).to_html()
    kept = r'<span class="k">.*?</span>'
    assert re.search(kept, page) and not re.search(r"</math>[.,;:)?!]", re.sub(kept, "", page))
