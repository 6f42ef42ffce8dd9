"""The forms of attention: lists of statements, one file a family; a new form is one row, and no engine code.

>>> names()[0]
'softmax'
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

from symattn.errors import UnknownNameError, nearest
from symattn.forms.form import Form

if TYPE_CHECKING:
    from symattn.definition import Definition

__all__ = ["Form", "get", "names", "sources_of"]

MODULES = ("softmax", "layers", "linear", "latent")
"""The files of this package that hold rows."""


PAGED = ("Q", "Kc", "Vc", "page")
"""What attention over a paged cache starts from."""


@cache
def _forms() -> Mapping[str, Form]:
    return {row.name: row for m in MODULES for row in import_module(f"symattn.forms.{m}").ROWS}


def names() -> tuple[str, ...]:
    """The names of all forms."""
    return tuple(_forms())


def sources_of(d: Definition) -> tuple[str, ...]:
    """Letters of the tensors that a definition starts from in place of Q, K, V (or X): those of its form, or of a paged cache.

    >>> from symattn.definition import Definition
    >>> sources_of(Definition(algorithm="paged")), sources_of(Definition())
    (('Q', 'Kc', 'Vc', 'page'), ())
    """
    form = get(d.form)
    return PAGED if d.algorithm == "paged" else form.from_x if d.start == "x" and form.from_x else form.sources


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
