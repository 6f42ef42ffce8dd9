"""The forms of a report: text, JSON, JUnit XML, GitHub's workflow commands and Markdown, one page of HTML.

Each module writes one form of the one :class:`symattn.verify.report.Report`. A form decides nothing: verdicts, and what
counts as a failure under ``strict``, are the report's.
"""

from __future__ import annotations

from symattn.errors import UnknownNameError, nearest
from symattn.verify.report import Report

FORMATS = ("text", "json", "junit", "github", "html")
"""The names of the forms."""


def document(report: Report, format: str, *, strict: bool = False) -> str:
    """A report in one of the forms, a line end at its end.

    Parameters
    ----------
    report
        What to write; pictures are in the HTML where the run kept its elements.
    format
        One of :data:`FORMATS`.
    strict
        Whether suspect results and known deviations are shown as failures.

    Raises
    ------
    UnknownNameError
        For another format.

    >>> document(Report("k", {}, {}, (), "symattn verify k"), "github").splitlines()[0]
    '### symattn verify: k: ✅ pass'
    """
    if format == "text":
        return report.to_text(strict=strict) + "\n"
    if format == "json":
        return report.to_json(strict=strict) + "\n"
    if format == "junit":
        from symattn.verify.writers.junit import junit

        return junit(report, strict=strict)
    if format == "github":
        from symattn.verify.writers.github import commands, markdown

        return commands(report, strict=strict) + markdown(report, strict=strict)
    if format == "html":
        from symattn.verify.writers.html import page

        return page(report, strict=strict)
    raise UnknownNameError(f"a format is one of {', '.join(FORMATS)}, got {format!r}. {nearest(format, FORMATS)}")
