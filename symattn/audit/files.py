"""A file to be audited: a claims file (TOML) or an article, read as what its name says."""

from __future__ import annotations

import sys
from pathlib import Path

from symattn.audit.article import LARGEST
from symattn.audit.findings import Audit
from symattn.audit.reading import ReadArticle, audit_article
from symattn.errors import FileFormatError

STANDARD_INPUT = "-"


def audit_file(path: str, *, digits: int = 40) -> ReadArticle | Audit:
    """Audit a file.

    Parameters
    ----------
    path
        ``NAME.toml`` is a claims file; anything else an article in LaTeX, Markdown or plain text; ``-`` one on standard input.
    digits
        Significant digits of the exact values.

    Raises
    ------
    FileFormatError
        When the file cannot be read, is no text, or is too long; when a claims file is none.
    """
    if path.lower().endswith(".toml"):
        from symattn.audit.claimsfile import load
        from symattn.audit.page import audit

        return audit(load(path), digits=digits)
    return audit_article(article_text(path), "standard input" if path == STANDARD_INPUT else Path(path).name, digits=digits)


def article_text(path: str) -> str:
    """The text of an article.

    Raises
    ------
    FileFormatError
        When it cannot be read, is no text in UTF-8, or is too long.
    """
    try:
        data = sys.stdin.buffer.read(4 * LARGEST + 1) if path == STANDARD_INPUT else _read(Path(path))
    except OSError as why:
        raise FileFormatError(f"{path}: cannot be read: {why.strerror or why}") from why
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as why:
        raise FileFormatError(f"{path}: is no text in UTF-8 (byte {why.start}); save it as UTF-8") from why
    if "\0" in text:
        raise FileFormatError(f"{path}: holds zero bytes and is no text")
    if len(text) > LARGEST:
        raise FileFormatError(f"{path}: is longer than {LARGEST} characters; give a part of it")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _read(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(4 * LARGEST + 1)
