"""Arithmetic in words, put into signs where all of it is there: `the square root of 64 is 8`, `12 divided by 5 equals 2.4`.

Only phrases whose operands and result are printed numbers or vectors are taken. Every change keeps the length of the text, so
that a place in it is a place in the article.
"""

from __future__ import annotations

import re
from collections.abc import Callable

_NUMBER = r"[-−]?\d+(?:\.\d+)?(?:\s?%)?"
_VECTOR = r"\[[^\[\]\n]{1,300}\]"
_ANY = rf"(?:{_NUMBER}|{_VECTOR})"
_LIST = rf"{_NUMBER}(?:,\s+{_NUMBER})*"
_IS = (
    r"\s+(?:is|equals|gives|yields|makes|comes to|we get|results in)"
    r"(?P<about>\s+(?:about|approximately|roughly|around))?(?:\s+equal to)?\s+"
)
_END = rf"(?={_ANY}(?!\s*[-+×*/·^]|\s+(?:[a-z]+\s+)?(?:is|are)\b))"


def _phrase(pattern: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![\w.=+×*/·-]){pattern}{_IS}{_END}", re.IGNORECASE)


_OF = r"(?:the\s+)?{}\s+(?:of|between)\s+"
_CALLS = {
    "dot": (r"(?:dot|scalar|inner)\s+product", 2), "sqrt": (r"square\s+root", 1), "exp": ("exponential", 1),
    "norm": ("(?:norm|length|magnitude)", 1),
    "log": (r"(?:natural\s+)?log(?:arithm)?", 1), "softmax": ("softmax", 1),
}  # fmt: skip
_MANY = {"mean": "(?:mean|average)", "sum": "sum"}
_BETWEEN = {"times": "×", "plus": "+", "minus": "-", r"divided\s+by": "/", r"multiplied\s+by": "×"}

Rewriting = Callable[[re.Match[str]], str]


def _gaps(*signs: str) -> Rewriting:
    """Puts signs in place of the words before, between and after the operands ``a``, ``b``."""

    def rewritten(m: re.Match[str]) -> str:
        out, at = [], m.start()
        operands = [m.span(name) for name in ("a", "b") if name in m.re.groupindex]
        closing = signs[-1] + ("≈" if m["about"] else "=")
        for sign, (start, end) in zip(signs, operands, strict=False):
            out += [sign.ljust(start - at) if sign else " " * (start - at), m.string[start:end]]
            at = end
        return "".join([*out, closing.ljust(m.end() - at)])

    return rewritten


_RULES: list[tuple[re.Pattern[str], Rewriting]] = [
    (_phrase(rf"dividing\s+(?P<a>{_ANY})\s+by\s+the\s+square\s+root\s+of\s+(?P<b>{_NUMBER})"), _gaps("(", ")/sqrt(", ")")),
    *((_phrase(_OF.format(words) + rf"(?P<a>{_ANY})"), _gaps(f"{name}(", ")")) for name, (words, n) in _CALLS.items() if n == 1),
    *(
        (_phrase(_OF.format(words) + rf"(?P<a>{_VECTOR})\s+and\s+(?P<b>{_VECTOR})"), _gaps(f"{name}(", ",", ")"))
        for name, (words, n) in _CALLS.items()
        if n == 2
    ),
    *(
        (_phrase(_OF.format(words) + rf"(?P<a>{_LIST}),?\s+and\s+(?P<b>{_NUMBER})"), _gaps(f"{name}(", ",", ")"))
        for name, words in _MANY.items()
    ),
    (_phrase(rf"e\s+(?:raised\s+)?to(?:\s+the)?(?:\s+power(?:\s+of)?)?\s+(?P<a>{_NUMBER})"), _gaps("exp(", ")")),
    (_phrase(rf"dividing\s+(?P<a>{_ANY})\s+by\s+(?P<b>{_NUMBER})"), _gaps("(", ")/(", ")")),
    (_phrase(rf"multiplying\s+(?P<a>{_ANY})\s+(?:by|with)\s+(?P<b>{_NUMBER})"), _gaps("(", ")*(", ")")),
    *((_phrase(rf"(?P<a>{_NUMBER})\s+{words}\s+(?P<b>{_NUMBER})"), _gaps("", sign, "")) for words, sign in _BETWEEN.items()),
    (_phrase(rf"(?P<a>{_NUMBER})\s+squared"), _gaps("", "^2")),
]


def with_phrases(text: str) -> str:
    """The text with phrases of arithmetic as formulas.

    >>> with_phrases("The square root of 64 is 8."), with_phrases("so 3 times 4 is 12")
    ('sqrt(              64)=  8.', 'so 3×      4=   12')
    """
    for pattern, rewritten in _RULES:
        text = pattern.sub(rewritten, text)
    return text
