r"""A derivation as Markdown, in what GitHub shows: tables, formulas in dollars, and the part of LaTeX that its renderer takes.

A formula of its own is a block between ``$$``; one in a line stands in ``$`...`$``, where Markdown cannot reach into it.
"""

from __future__ import annotations

from symattn.derivation.document import Derivation
from symattn.derivation.markup import Markup


def document(d: Derivation) -> str:
    """The whole document."""
    return Markup(d).document()
