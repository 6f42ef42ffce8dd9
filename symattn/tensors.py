"""What given tensors say by themselves: which fields a definition has, and how a layout turns them.

Shared by recorded files, `truth` and `assert_attention`, so that the same tensors mean the same everywhere.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from typing import TypeVar

from symattn.axes import Array
from symattn.definition import Definition
from symattn.errors import UnknownNameError, nearest

LAYOUTS = ("bhsd", "bshd")
TURNED = frozenset({"query", "key", "value", "out", "grad_query", "grad_key", "grad_value", "grad_out"})
"""The fields with a head and a sequence axis, which the layout orders. Masks, biases and the LSE are the same in both layouts."""

IMPLIED: Mapping[str, str] = {
    "sinks": "sink",
    "alibi_slopes": "alibi",
    "bias": "bias",
    "dropout_mask": "dropout",
    "key_lengths": "key_lengths",
    **dict.fromkeys(("doc", "doc_q", "doc_k"), "document"),
}
"""Tensors whose presence says that the definition has a field."""

ORDER = (
    *("out", "lse", "grad_query", "grad_key", "grad_value"),
    *("tangent_out", "tangent_lse", "hvp_query", "hvp_key", "hvp_value"),
)
"""The order of results in reports; others follow."""

D = TypeVar("D", bound=Definition)


def implied(definition: D, tensors: Mapping[str, Array], *, said: Container[str] = ()) -> D:
    """The definition with the fields that the tensors say it has; what it says itself stays, and so do the fields ``said``.

    A given ``attn_mask`` is boolean or additive by its dtype.

    >>> import numpy as np
    >>> implied(Definition(causal="top-left"), {"attn_mask": np.ones((2, 2), bool), "sinks": np.zeros(1)})
    Definition(causal='top-left', attn_mask='boolean', sink=True)
    """
    given = [name for name in tensors if name not in definition.unbound]
    found: dict[str, object] = {IMPLIED[name]: True for name in given if name in IMPLIED}
    if "attn_mask" in given:
        found["attn_mask"] = "boolean" if tensors["attn_mask"].dtype.kind in "biu" else "additive"
    changes = {field: value for field, value in found.items() if not getattr(definition, field) and field not in said}
    return definition.replace(**changes) if changes else definition


def turned(name: str, a: Array, layout: str) -> Array:
    """An array of the layout ``bhsd`` in another one, or back.

    >>> import numpy as np
    >>> turned("query", np.ones((1, 2, 3, 4)), "bshd").shape, turned("bias", np.ones((1, 2, 3, 4)), "bshd").shape
    ((1, 3, 2, 4), (1, 2, 3, 4))
    """
    return a.swapaxes(1, 2) if layout == "bshd" and name in TURNED and a.ndim == 4 else a


def laid_out(tensors: Mapping[str, Array], layout: str) -> dict[str, Array]:
    """Tensors in the layout ``bhsd``; a single head without batch, (n, d), gets both axes.

    Raises
    ------
    UnknownNameError
        When there is no such layout.
    """
    check_layout(layout)
    found = {}
    for name, a in tensors.items():
        alone = (name in TURNED and a.ndim == 2) or (name in ("lse", "grad_lse") and a.ndim == 1)
        found[name] = a[None, None] if alone else turned(name, a, layout)
    return found


def check_layout(layout: str) -> None:
    """Refuse what is no layout."""
    if layout not in LAYOUTS:
        raise UnknownNameError(f"layout is one of {', '.join(map(repr, LAYOUTS))}, got {layout!r}. {nearest(layout, LAYOUTS)}")


def in_order(names: Iterable[str]) -> tuple[str, ...]:
    """The names of results as reports order them.

    >>> in_order(["grad_sinks", "grad_key", "grad_query", "out"])
    ('out', 'grad_query', 'grad_key', 'grad_sinks')
    """
    return tuple(sorted(names, key=lambda name: ORDER.index(name) if name in ORDER else len(ORDER)))
