"""A formula as MathML: latex2mathml does the work, and what it leaves wrong is put right here.

Limits go below sums and extrema, a sign that has nothing before it is set without space, a function's name is spaced as TeX does
it, brackets grow where they must, a prime stays readable.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from xml.etree import ElementTree

from latex2mathml.converter import convert

from symattn.derivation.layout import RELATIONS, Part, formula_parts

_SIGNS = frozenset("−-+±")
_CLOSING = frozenset(")]⌋⌉⟩′")
_OPENING = frozenset("([⌊⌈⟨|")
_FUNCTIONS = frozenset(
    {"arctan", "cos", "cosh", "coth", "erf", "exp", "ln", "log", "max", "min", "sech", "sin", "sinh", "tan", "tanh"}
)
_THIN = "0.1667em"
_TALL = frozenset({"mfrac", "munder", "munderover", "msqrt", "mtable"})
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
        _names(row)
        _brackets(row)
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


def _names(row: ElementTree.Element) -> None:
    """A function's name stands off from what it is multiplied by, and not from its bracket; a stroke of division from nothing."""
    inside = list(row) if row.tag in ("mrow", "math", "msqrt") else []
    for k, e in enumerate(inside):
        core = _core(e)
        if core.text == "/":
            core.attrib.update(lspace="0", rspace="0")
        if core.text in _FUNCTIONS or (core.tag == "mo" and len(core.text or "") > 1 and core.text != "mod"):
            factor = k > 0 and _is_factor(inside[k - 1])
            bracket = k + 1 == len(inside) or _core(inside[k + 1]).text in _OPENING
            core.tag = "mo"
            core.attrib.update(lspace=_THIN if factor else "0", rspace="0" if bracket else _THIN)


def _is_factor(e: ElementTree.Element) -> bool:
    """Whether a name that follows is multiplied by this: it is no sign, word or space, or it is a closing bracket."""
    core = _core(e)
    return e.tag == "mrow" or core.tag not in ("mo", "mspace", "mtext") or core.text in _CLOSING


def _core(e: ElementTree.Element) -> ElementTree.Element:
    """What stands first in an element: the base of a script, the bracket of a group, else the element."""
    return _core(e[0]) if len(e) and e.tag in ("msub", "msup", "msubsup", "munder", "mrow") else e


def _brackets(row: ElementTree.Element) -> None:
    """Brackets grow with what is tall only: browsers set wide spaces around those that may grow."""
    if not any(e.tag in _TALL for e in row.iter()):
        for e in row:
            if e.tag == "mo" and e.get("stretchy"):
                e.set("stretchy", "false")


def _primes(script: ElementTree.Element) -> None:
    """A prime inside of a script is as large as the script: one more level down it cannot be read."""
    for below in list(script)[1:]:
        for e in below.iter("msup"):
            if e[1].text == "′":
                e[1].tag = "mo"
                e[1].set("scriptlevel", "1")


def pieces(parts: Iterable[Part], display: bool = True) -> str:
    """Pieces as formulas of their own, between which a line may break; the relation stays with what follows it.

    Words stand off by a space; a space before a sign would add to that of the sign.
    """
    out = ""
    for part in parts:
        sign = RELATIONS[part.relation][0] + " " if part.relation else ""
        for k, piece in enumerate(part.pieces):
            gap = r"\quad " if piece.latex.startswith(r"\text{where }") else ""
            lead = sign if not k else "{} " if piece.latex[:2] in ("+ ", "- ") else gap
            may_break = "" if not out else " " if piece.latex.startswith(r"\text{") else "<wbr>"
            out += may_break + math(lead + piece.latex, display)
    return out


def in_line(latex: str) -> str:
    """A formula among words: one piece where it is short, else broken where paper would break it."""
    return math(latex, display=False) if len(latex) <= LONG else pieces(formula_parts(latex), display=False)
