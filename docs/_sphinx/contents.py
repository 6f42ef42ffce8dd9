"""The table of contents, added to ``index.md`` while Sphinx reads it: on GitHub a directive would show as code."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sphinx.application import Sphinx

CHAPTERS = {
    "Use": ["verify", "reports", "golden", "derive", "pictures", "audit", "claims", "python"],
    "Say what is meant": ["definition", "arithmetic"],
    "Look up": ["variants/index", "theorems", "faults", "truth", "workers", "reference/index"],
    "Trust": ["guarantees", "tolerance_table", "findings", "performance"],
    "Build": ["architecture"],
}
"""Caption -> pages. A page that stands nowhere fails the build."""


def toctree(caption: str, pages: list[str], depth: int = 1) -> str:
    """The directive, hidden on the page: the sidebar shows it."""
    return "\n".join(["", "```{toctree}", f":caption: {caption}", ":hidden:", f":maxdepth: {depth}", "", *pages, "```", ""])


def add(app: Sphinx, docname: str, source: list[str]) -> None:
    """Append the chapters to the first page, and the families to that of the catalogue."""
    if docname == "index":
        source[0] += "".join(toctree(caption, pages) for caption, pages in CHAPTERS.items())
    if docname == "variants/index":
        folder = Path(app.srcdir, "variants")
        source[0] += toctree("Families", sorted(f"{p.stem} <{p.stem}>" for p in folder.glob("*.md") if p.stem != "index"))


def setup(app: Sphinx) -> dict[str, Any]:
    """Take part in the reading of pages."""
    app.connect("source-read", add)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
