"""The forms of attention: lists of statements, one file a family; a new form is one row, and no engine code.

>>> names()[0]
'softmax'
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module

from symattn.errors import UnknownNameError, nearest
from symattn.forms.form import Form

__all__ = ["Form", "get", "names"]

MODULES = ("softmax", "layers", "linear")
"""The files of this package that hold rows."""


@cache
def _forms() -> Mapping[str, Form]:
    return {row.name: row for m in MODULES for row in import_module(f"symattn.forms.{m}").ROWS}


def names() -> tuple[str, ...]:
    """The names of all forms."""
    return tuple(_forms())


def get(name: str) -> Form:
    """The form of this name.

    Raises
    ------
    UnknownNameError
        With the nearest names.
    """
    if name not in _forms():
        raise UnknownNameError(f"no form is called {name!r}. {nearest(name, _forms())}")
    return _forms()[name]
