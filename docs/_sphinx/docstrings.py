"""Docstrings as numpydoc reads them: their examples stand in a section of their own, and a bar is a bar."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sphinx.application import Sphinx

LITERAL = re.compile(r"(``.+?``|:\w+:`.+?`)")


def tidy(app: Sphinx, what: str, name: str, obj: object, options: object, lines: list[str]) -> None:
    """Put a heading above the first example after a section, where none stands, and take bars for what they are.

    Napoleon takes a sentence with a colon about an attribute for a type and a description, unless the line ends there.
    """
    underlined = [k for k, line in enumerate(lines) if re.fullmatch(r"-{4,}", line)]
    first = next((k for k, line in enumerate(lines) if line.startswith(">>> ")), None)
    if first is not None and underlined and underlined[0] < first and not any(lines[k - 1] == "Examples" for k in underlined):
        lines[first:first] = ["Examples", "--------"]
    example = False
    for k, line in enumerate(lines):
        example = line.lstrip().startswith(">>>") or (example and bool(line.strip()))
        if not example:
            lines[k] = "".join(part if n % 2 else part.replace("|", r"\|") for n, part in enumerate(LITERAL.split(line)))
    if what in ("property", "attribute", "data") and ":" in lines[0]:
        lines[:1] = [part for part in re.split(r"(?<=:)\s*", lines[0], maxsplit=1) if part]


def setup(app: Sphinx) -> dict[str, Any]:
    """Go before napoleon, which reads the sections."""
    app.connect("autodoc-process-docstring", tidy, priority=100)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
