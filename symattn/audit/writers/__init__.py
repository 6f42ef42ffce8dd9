"""The forms of an audit: text, JSON, Markdown and one page of HTML."""

from __future__ import annotations

import json

from symattn.audit.findings import Audit
from symattn.audit.reading import ReadArticle

FORMATS = ("text", "json", "markdown", "html")


def document(found: ReadArticle | Audit, format: str, *, digits: int = 10, everything: bool = False) -> str:
    """An audit in one form.

    Parameters
    ----------
    found
        Of an article, or of a claims file.
    format
        One of :data:`FORMATS`.
    digits
        Significant digits of exact values that are shown; JSON holds all that were computed.
    everything
        Whether the numbers that are right are listed too, in text and Markdown.

    Raises
    ------
    ValueError
        For another form.

    >>> print(document(Audit("a page"), "text"))
    a page: no printed number is the result of a formula: nothing to check
    <BLANKLINE>
    """
    audit = found.audit if isinstance(found, ReadArticle) else found
    if format == "json":
        return json.dumps(with_places(found), indent=2, ensure_ascii=False) + "\n"
    if format == "html":
        from symattn.audit.writers.html import page

        return page(found, digits=digits)
    if format == "markdown":
        from symattn.audit.writers.markdown import markdown

        return markdown(audit, digits=digits, everything=everything)
    if format != "text":
        raise ValueError(f"{', '.join(FORMATS)}, got {format!r}")
    from symattn.audit.writers.text import text

    return text(audit, digits=digits, everything=everything)


def with_places(found: ReadArticle | Audit) -> dict[str, object]:
    """The audit as JSON holds it; of an article each number with its offsets, line and column."""
    if isinstance(found, Audit):
        return found.to_dict()
    out: dict[str, object] = found.audit.to_dict()
    rows = out["findings"]
    assert isinstance(rows, list)
    for row, mark in zip(rows, found.marks, strict=True):
        row["line"], row["column"] = found.article.line(mark.start), found.article.column(mark.start)
        row["start"], row["end"] = mark.start, mark.end
    out["formulas_that_hold"] = len(found.holds)
    return out
