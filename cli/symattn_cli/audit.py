"""`symattn audit`: the numbers that a published worked example prints, checked exactly."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

FORMATS = ("text", "json", "markdown", "html")


def command(
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE", help="An article (LaTeX, Markdown, text), - for standard input, or a claims file NAME.toml."
        ),
    ],
    format: Annotated[str, typer.Option("--format", metavar="text|json|markdown|html", help="The form of the report.")] = "text",
    output: Annotated[
        str | None, typer.Option("-o", "--output", metavar="OUT", help="Write the report to OUT; stdout then gets the text.")
    ] = None,
    digits: Annotated[
        int,
        typer.Option("--digits", metavar="N", min=1, max=1000, help="Significant digits of exact values; default 10, JSON 40."),
    ] = 10,
    all_: Annotated[bool, typer.Option("--all", help="List the numbers that are right too.")] = False,
    extract: Annotated[
        bool, typer.Option("--extract", help="Write a draft of a claims file from the article, to be completed by hand.")
    ] = False,
) -> None:
    """Check the printed numbers of a worked example: which are right, which are not, and where it first went wrong.

    Every chain of equalities of an article is checked link by link, in exact arithmetic; what cannot be read is listed with its
    line. A claims file says what a page gives and prints, and is checked against the definition.

    Exit codes: 0 nothing wrong, 1 something is wrong, 2 usage, 3 something is undecided, 4 a file that cannot be read.
    """
    if format not in FORMATS:
        raise typer.BadParameter(f"{', '.join(FORMATS[:-1])} or {FORMATS[-1]}, got {format!r}", param_hint="--format")
    if format == "html" and output is None and sys.stdout.isatty():
        raise typer.BadParameter("a page is written to a file: give -o FILE.html", param_hint="--format")
    from symattn_cli.documents import check_target, write_file

    check_target(output)
    if extract:
        _extract(file, output)
        return
    from symattn.audit.files import audit_file
    from symattn.audit.reading import ReadArticle
    from symattn.audit.writers import document

    found = audit_file(file, digits=max(digits, 40))
    audit = found.audit if isinstance(found, ReadArticle) else found
    form = document(found, format, digits=digits, everything=all_)
    if output is not None:
        write_file(output, form)
    if output is None or format != "text":
        shown = form if output is None else document(found, "text", digits=digits, everything=all_)
        typer.echo(shown, nl=False)
    if audit.exit_code:
        raise typer.Exit(audit.exit_code)


def _extract(file: str, output: str | None) -> None:
    """Write the draft of a claims file."""
    if file.lower().endswith(".toml"):
        raise typer.BadParameter("makes a claims file of an article, and this is one already", param_hint="--extract")
    from symattn.audit.extract import draft
    from symattn.audit.files import audit_file
    from symattn.audit.reading import ReadArticle
    from symattn_cli.documents import write_file

    found = audit_file(file)
    assert isinstance(found, ReadArticle)
    text = draft(found)
    if output is None:
        typer.echo(text, nl=False)
    else:
        write_file(output, text)
