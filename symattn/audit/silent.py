"""Numbers of an article that no equation, table or code reads: they are listed, so that nothing is skipped in silence.

Whole numbers in sentences count things; numbers with decimals, percentages and lists in brackets are results. Those that repeat
what the page printed elsewhere say nothing new.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from symattn.audit.article import Article
from symattn.audit.findings import Unread
from symattn.audit.outcome import cut

_NUMBERS = re.compile(r"\d+(?:\.\d*)?(?:e[-+]?\d+)?")
MOST_LINES = 300
REASON = "numbers that no equation reads: nothing to check them by"
_RESULT = re.compile(
    r"\[\s*[-+−]?\d[^\[\]=\n]{0,400}?\d[.\s]*\]|(?<![\w.,/-])\d+\.\d+(?:e[-+]?\d+)?(?!\w|\.\d|-\d)(?:\s?\\?%)?|(?<![\w.])\d+\s?\\?%"
)
_LABELLED = re.compile(
    r"(?:\b(?:section|sections|sec|chapter|figure|figures|fig|table|tables|tab|eq|equation|version|python|cuda|torch|pytorch|numpy|step|part"
    r"|exercise|example|listing|lecture|gpt|llama|arxiv)\b[.:]?\s*(?:\(|v)?|^[\s#>*]*|\barXiv:)\Z",
    re.IGNORECASE,
)
_LENGTH = re.compile(r"\s*(?:\\(?:textwidth|linewidth|columnwidth|hsize)|em\b|ex\b|cm\b|mm\b|pt\b|px\b|in\b)")
_ARXIV = re.compile(r"\d{4}\.\d{4,5}\Z")


def silent(article: Article, read: Iterable[tuple[int, int]], printed: Iterable[str]) -> list[Unread]:
    """Lines with numbers that nothing read.

    Parameters
    ----------
    article
        The article.
    read
        Where its formulas and tables are.
    printed
        Numbers that equations print.
    """
    covered = bytearray(len(article.text) + 1)
    for start, end in read:
        covered[start:end] = b"\1" * (end - start)
    known = set(printed)
    lines: dict[int, None] = {}
    for m in _RESULT.finditer(article.text):
        if (
            article.line(m.start()) in lines
            or len(lines) > MOST_LINES
            or any(covered[m.start() : m.end()])
            or _is_label(article, m)
            or known.issuperset(_NUMBERS.findall(m[0]))
        ):
            continue
        lines[article.line(m.start())] = None
    return [Unread(_text(article, n), REASON, str(n)) for n in list(lines)[:MOST_LINES]]


def _is_label(article: Article, m: re.Match[str]) -> bool:
    """Whether a number names a section, a version or a length."""
    if "[" in m[0] or "%" in m[0]:
        return False
    begin = article.starts[article.line(m.start()) - 1]
    before = article.source[max(begin, m.start() - 40) : m.start()]
    heading = not before.strip(" \t#>*") and re.match(r"\s+[A-Z]|\.?\d", article.source[m.end() : m.end() + 2] or "")
    labelled = _LABELLED.search(before) and before.strip(" \t#>*") != ""
    return bool(heading or labelled or _LENGTH.match(article.source, m.end()) or _ARXIV.match(m[0].strip()))


def _text(article: Article, line: int) -> str:
    begin = article.starts[line - 1]
    end = article.source.find("\n", begin)
    return cut(" ".join(article.source[begin : min(end if end >= 0 else begin + 400, begin + 400)].split()))
