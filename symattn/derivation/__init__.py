"""Derivations: the steps of an attention program in symbols and numbers, as LaTeX, Markdown, HTML, text and JSON.

:func:`derive` makes one; :mod:`.examples` reads numbers from TOML files. Nothing is imported until it is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from symattn.derivation.document import Derivation, Step
    from symattn.derivation.engine import derive
    from symattn.derivation.examples import Example, load, shipped

__all__ = ["Derivation", "Example", "Step", "derive", "load", "shipped"]
_HOMES = {
    "Derivation": "document",
    "Step": "document",
    "derive": "engine",
    "Example": "examples",
    "load": "examples",
    "shipped": "examples",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
