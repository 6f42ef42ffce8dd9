"""The table of contents, added to ``index.md`` while Sphinx reads it: on GitHub a directive would show as code."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sphinx.application import Sphinx

CHAPTERS = {
    "Learn": ["tutorials/index", "howto/index", "gallery"],
    "Use": ["verify", "reports", "golden", "derive", "cost", "pictures", "audit", "claims", "python"],
    "Say what is meant": ["definition", "arithmetic"],
    "Look up": ["variants/index", "theorems", "faults", "truth", "workers", "reference/index"],
    "Trust": ["guarantees", "tolerance_table", "findings", "performance"],
    "Build": ["architecture"],
}
"""Caption -> pages. A page that stands nowhere fails the build."""


def toctree(caption: str, pages: list[str], depth: int = 1) -> str:
    """The directive, hidden on the page: the sidebar shows it."""
    heading = [f":caption: {caption}"] if caption else []
    return "\n".join(["", "```{toctree}", *heading, ":hidden:", f":maxdepth: {depth}", "", *pages, "```", ""])


def add(app: Sphinx, docname: str, source: list[str]) -> None:
    """Append what lies below a page; to that of the gallery the way to what is built, where it is."""
    if docname == "index":
        source[0] += "".join(toctree(caption, pages) for caption, pages in CHAPTERS.items())
    folder = Path(app.srcdir, docname).parent
    below = sorted(p.stem for p in folder.glob("*.md") if p.stem != "index")
    if docname == "variants/index":
        source[0] += toctree("Families", [f"{name} <{name}>" for name in below])
    elif docname in ("tutorials/index", "howto/index"):
        links = re.findall(r"\]\((\w[\w-]*)\.md\)", source[0])
        source[0] += toctree("", list(dict.fromkeys(links)))
    elif docname == "gallery" and app.config.html_extra_path:
        source[0] += '\n<p><a href="gallery/index.html">The whole gallery, built with this site: HTML and PDF</a></p>\n'


def setup(app: Sphinx) -> dict[str, Any]:
    """Take part in the reading of pages."""
    app.connect("source-read", add)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
