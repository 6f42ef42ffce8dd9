"""Where a report goes: a form of it to stdout or into a file, and for GitHub into the summary of the step."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from symattn.verify.report import Report

FORMATS = ("text", "json", "junit", "github", "html")
"""As in :mod:`symattn.verify.writers`, which is not imported before it is needed."""


def check_format(format: str, output: str | None) -> None:
    """Refuse an unknown format, and a page of HTML on a terminal."""
    if format not in FORMATS:
        raise typer.BadParameter(f"{', '.join(FORMATS[:-1])} or {FORMATS[-1]}, got {format!r}", param_hint="--format")
    if format == "html" and output is None and sys.stdout.isatty():
        raise typer.BadParameter("a page is written to a file: give -o FILE.html", param_hint="--format")


def check_target(path: str | None) -> None:
    """Refuse a file that cannot be written before anything is run.

    Raises
    ------
    FileFormatError
        When its folder does not exist, or it is a folder itself.
    """
    if path is None:
        return
    from symattn.errors import FileFormatError

    target = Path(path)
    if target.is_dir():
        raise FileFormatError(f"{path}: is a folder, and a file is to be written")
    if not target.parent.is_dir():
        raise FileFormatError(f"{path}: cannot be written, there is no folder {target.parent}")


def write_file(path: str, text: str, *, append: bool = False) -> None:
    """Write text to a file.

    Raises
    ------
    FileFormatError
        When it cannot be written.
    """
    from symattn.errors import FileFormatError

    try:
        with Path(path).open("a" if append else "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text)
    except OSError as error:
        raise FileFormatError(f"{path}: cannot be written ({error.strerror})") from error


def deliver(report: Report, format: str, output: str | None, *, strict: bool, color: bool = False, verbose: bool = False) -> None:
    """Write a report.

    Without ``output`` the form goes to stdout. With it the form goes into the file, and stdout gets the text, or in the form
    ``github`` the workflow commands, which are nothing in a file. Where ``GITHUB_STEP_SUMMARY`` names a file, the form ``github``
    adds its Markdown to it.
    """
    from symattn.verify.writers import document

    if format == "github":
        from symattn.verify.writers.github import commands, markdown

        summary = markdown(report, strict=strict)
        step = os.environ.get("GITHUB_STEP_SUMMARY")
        if step:
            write_file(step, summary, append=True)
        if output is not None:
            write_file(output, summary)
        typer.echo(commands(report, strict=strict) + ("" if output is not None else summary), nl=False)
        return
    if output is not None:
        write_file(output, document(report, format, strict=strict))
    elif format != "text":
        typer.echo(document(report, format, strict=strict), nl=False)
        return
    if report.error is None:  # the text of an error is a message on stderr
        typer.echo(report.to_text(color=color, strict=strict, verbose=verbose))


def progress(line: str) -> None:
    """A line on stderr, overwritten by the next one; nothing where stderr is no terminal."""
    if sys.stderr.isatty():
        typer.echo(f"\r{line:<79.79}" + ("" if line else "\r"), err=True, nl=False)
