"""A formula as MathML: latex2mathml does the work, and what it leaves wrong is put right here.

Limits go below sums and extrema, a sign that has nothing before it is set without space, a prime stays readable.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from xml.etree import ElementTree

from latex2mathml.converter import convert

from symattn.derivation.layout import RELATIONS, Part, formula_parts

_SIGNS = frozenset("−-+±")
_CLOSING = frozenset(")]⌋⌉⟩′")
_LARGE = frozenset("∑∏") | {"max", "min"}
LONG = 40
"""A formula in a line of words that is longer than this, in LaTeX, may be broken."""


@lru_cache(maxsize=4096)
def math(latex: str, display: bool = True) -> str:
    """A formula as inline MathML, in display style or as small as a line of words.

    >>> math("x")
    '<math displaystyle="true"><mrow><mi>x</mi></mrow></math>'
    """
    comma = "{,}" in latex  # the decimal mark, and not a sign between two numbers
    root = ElementTree.fromstring(convert(latex.replace("{,}", ".")))  # noqa: S314 - made here, from formulas only
    for e in root.iter():
        e.tag = e.tag.rpartition("}")[2]
        if comma and e.tag == "mn":
            e.text = (e.text or "").replace(".", ",")
        if e.tag == "msub" and (e[0].text or "").strip() in _LARGE:
            e.tag = "munder"
        if e.tag == "mn" and e.attrib.pop("mathvariant", "") == "bold":
            e.text = (e.text or "").replace("1", "\U0001d7cf")
    for row in root.iter():
        _signs(row)
    for script in ("msub", "msup", "msubsup", "munder"):
        for e in root.iter(script):
            _primes(e)
    root.attrib = {"displaystyle": "true"} if display else {}
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


def pieces(parts: Iterable[Part], display: bool = True) -> str:
    """Pieces as formulas of their own, between which a line may break; the relation stays with what follows it."""
    out = []
    for part in parts:
        sign = RELATIONS[part.relation][0] + " " if part.relation else ""
        for k, piece in enumerate(part.pieces):
            gap = r"\quad " if piece.latex.startswith(r"\text{where }") else ""
            lead = sign if not k else "{} " if piece.latex[:2] in ("+ ", "- ") else gap
            out.append(math(lead + piece.latex, display))
    return " ".join(out)


def in_line(latex: str) -> str:
    """A formula among words: one piece where it is short, else broken where paper would break it."""
    return math(latex, display=False) if len(latex) <= LONG else pieces(formula_parts(latex), display=False)
