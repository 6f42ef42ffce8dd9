"""The forms of ``symattn derive``: which there are, which options belong to which, and where a document goes."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from symattn.derivation import Derivation

FORMATS = ("text", "latex", "markdown", "myst", "html", "ipynb", "json")
PAGES = ("a4", "letter", "a5", "narrow")
FRAGMENTS = ("latex", "html")
OTHER = (".tex", ".txt", ".md", ".html", ".htm", ".ipynb", ".json")
"""Suffixes that say that something else than a PDF is meant."""


@dataclass(frozen=True)
class FormFlags:
    """How a derivation is written: the options as they were given."""

    format: str = "text"
    page: str = "a4"
    fragment: bool = False
    prefix: str | None = None
    pdf: bool = False
    output: Path | None = None

    def refuse(self) -> None:
        """Refuse options that do not belong together.

        Raises
        ------
        DefinitionError
            When the form or the page does not exist.
        typer.BadParameter
            When an option has no meaning for the form.
        """
        from symattn.errors import DefinitionError, nearest

        for flag, value, allowed in (("--format", self.format, FORMATS), ("--page", self.page, PAGES)):
            if value not in allowed:
                raise DefinitionError(f"{flag} is one of {', '.join(allowed)}, got {value!r}. {nearest(value, allowed)}")
        if self.pdf and self.format not in ("text", "latex"):
            raise typer.BadParameter(f"a PDF is made of LaTeX, and --format is {self.format}", param_hint="--pdf")
        if self.pdf and self.fragment:
            raise typer.BadParameter("a fragment is no whole document; leave --pdf out, or --fragment", param_hint="--pdf")
        if self.pdf and self.output is None:
            raise typer.BadParameter("a PDF is written to a file: give -o FILE.pdf", param_hint="--pdf")
        if self.pdf and self.output is not None and self.output.suffix.lower() in OTHER:
            raise typer.BadParameter(f"{self.output}: a PDF is written to a file that ends in .pdf", param_hint="--output")
        if not self.pdf and self.output is not None and self.output.suffix == ".pdf":
            raise typer.BadParameter(f"{self.output}: a PDF is asked for by --pdf", param_hint="--output")
        if self.fragment and self.format not in FRAGMENTS:
            raise typer.BadParameter(f"is for --format {' and '.join(FRAGMENTS)}, got {self.format}", param_hint="--fragment")
        if self.prefix is not None:
            self._refuse_prefix(self.prefix)
        if self.page != "a4" and not (self.pdf or self.format == "latex"):
            raise typer.BadParameter("is for LaTeX: --format latex, or --pdf", param_hint="--page")

    def _refuse_prefix(self, prefix: str) -> None:
        if not self.fragment:
            said = "labels have a prefix in a fragment: --fragment with --format latex or html"
            raise typer.BadParameter(said, param_hint="--prefix")
        from symattn.derivation.fragment import checked
        from symattn.errors import InputValueError

        try:
            checked(prefix)
        except InputValueError as why:
            raise typer.BadParameter(str(why), param_hint="--prefix") from why

    def document(self, d: Derivation) -> str | bytes:
        """The document: text, or the bytes of a PDF."""
        if self.pdf:
            return d.to_pdf(self.page)
        if self.fragment:
            return d.to_latex_fragment(self.page, self.prefix) if self.format == "latex" else d.to_html_fragment(self.prefix)
        if self.format == "latex":
            return d.to_latex(self.page)
        text: str = getattr(d, f"to_{self.format}")()
        return text

    def write(self, document: str | bytes) -> None:
        """Write to the file or to standard output, in UTF-8 whatever the terminal says."""
        data = document.encode("utf-8") if isinstance(document, str) else document
        if self.output is None:
            sys.stdout.flush()
            stream = getattr(sys.stdout, "buffer", None)
            if stream is None:
                sys.stdout.write(data.decode("utf-8"))
            else:
                stream.write(data)
                stream.flush()
            return
        try:
            self.output.write_bytes(data)
        except OSError as why:
            raise typer.BadParameter(f"{self.output}: cannot be written: {why.strerror or why}", param_hint="--output") from why
        typer.echo(f"written: {self.output}", err=True)
