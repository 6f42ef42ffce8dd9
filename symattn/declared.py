"""Inputs that need nothing but their axes: arrays matched with the shapes of the program, sizes learnt on the way.

The rows are :data:`symattn.fields.DECLARED`. A new tensor of a variant is one row there and nothing here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import sympy as sp

from symattn import forms
from symattn.axes import Array, Axes
from symattn.definition import Definition
from symattn.errors import InputValueError, ShapeError
from symattn.fields import BY_LETTER, DECLARED, Field
from symattn.program import Program

LETTERS = frozenset(row.letter for row in DECLARED)
TURNED = ("bHic", "bKjc", "bKje", "bHie")
"""Axes of arrays that a layout is about: those of query, key, value and output."""
SIZE_NAMES = {"i": "n", "p": "n", "j": "m", "c": "d", "e": "dv", "a": "dmodel", "u": "dmemory", "f": "dmodel", "z": "dff"}
"""How the sizes of axes are called in messages."""


def shown(row: Field, axes: Axes) -> str:
    """The axes of a field as a user gives them."""
    roles = row.axes if axes.batch else "".join(a for a in row.axes if a not in "bHK")
    return f"({', '.join({'H': 'H', 'K': 'H_kv', 'b': 'B', **SIZE_NAMES}.get(a, a) for a in roles)})"


def place(row: Field, x: Array, axes: Axes, layout: str = "bhsd") -> Array:
    """An array of a field in the axes of the program; heads stand behind positions in the layout ``bshd``.

    Raises
    ------
    ShapeError
        When it has another number of axes or of heads.
    """
    roles = row.axes
    lost = [a for a in roles if a in "bHK"]
    x = apart(row, x, axes)
    if x.ndim == len(roles) - len(lost) and lost and not (axes.batch and "b" in lost):
        x = x.reshape((1,) * len(lost) + x.shape)  # b, H and K come first
    if x.ndim != len(roles):
        raise ShapeError(f"{row.field} has shape {x.shape}, needed is {shown(row, axes)}")
    if layout == "bshd" and row.axes in TURNED and axes.batch:
        x = np.swapaxes(x, 1, 2)
    for role, want in (("H", axes.heads), ("K", axes.kv_heads)):
        if role in roles and x.shape[roles.index(role)] != want:
            raise ShapeError(f"{row.field} has {x.shape[roles.index(role)]} heads on axis {roles.index(role)}, needed are {want}")
    return axes.into(x, roles)


def merged(row: Field, axes: Axes) -> int | None:
    """The axis of an array with the heads side by side, ``(dmodel, H*d)`` for ``(H, dmodel, d)``; None where there is no such.

    >>> rows = [BY_LETTER[letter] for letter in ("WQx", "WOx", "bQ", "bO")]
    >>> [merged(row, Axes(heads=2, kv_heads=2, batch=False, tiled=False)) for row in rows]
    [1, 0, 0, None]
    """
    own = {"H": axes.heads, "K": axes.kv_heads}.get(row.axes[:1], 1)
    channels = [k for k, role in enumerate(row.axes[1:]) if role in "ce"]
    return channels[-1] if own > 1 and channels and not set(row.axes) & set("bij") else None


def apart(row: Field, x: Array, axes: Axes) -> Array:
    """An array with its heads on an axis of their own, in front, where they are given side by side.

    Raises
    ------
    ShapeError
        When the number of heads does not divide the axis on which they are.
    """
    at = merged(row, axes)
    if at is None or x.ndim != len(row.axes) - 1:
        return x
    heads = axes.heads if row.axes[0] == "H" else axes.kv_heads
    if x.shape[at] % heads:
        raise ShapeError(f"{row.field} has shape {x.shape}: {heads} heads cannot share axis {at}; needed is {shown(row, axes)}")
    return np.moveaxis(x.reshape(*x.shape[:at], heads, -1, *x.shape[at + 1 :]), at, 0)


def together(row: Field, x: Array, axes: Axes) -> Array:
    """The inverse of :func:`apart`: heads side by side again."""
    at = merged(row, axes)
    if at is None:
        return x
    x = np.moveaxis(x, 0, at)
    return x.reshape(*x.shape[:at], -1, *x.shape[at + 2 :])


def take(
    program: Program,
    letters: Iterable[str],
    arrays: Mapping[str, Array],
    axes: Axes,
    sizes: dict[str, int],
    layout: str = "bhsd",
) -> dict[str, Array]:
    """The inputs ``letters`` of a program from arrays under field names; sizes that they show are added to ``sizes``.

    Raises
    ------
    ShapeError
        When two arrays, or an array and a fixed size, disagree.
    InputValueError
        When an array holds numbers that its kind does not allow.
    """
    found: dict[str, Array] = {}
    waiting: list[tuple[Field, Array]] = []
    for letter in letters:
        row = BY_LETTER[letter]
        if row.field in arrays:
            _check_kind(row, arrays[row.field])
            found[letter] = place(row, arrays[row.field], axes, layout)
            waiting.append((row, found[letter]))
    for row, x in sorted(waiting, key=lambda w: sum(not n.is_Symbol for n in program.shapes[w[0].letter])):
        for axis, (n, got) in enumerate(zip(program.shapes[row.letter], x.shape, strict=True)):
            if n.is_Symbol and str(n) not in sizes:
                sizes[str(n)] = got
            want = n.xreplace({s: sp.Integer(sizes[str(s)]) for s in n.free_symbols if str(s) in sizes})
            if want != got:
                raise ShapeError(
                    f"{row.field} has shape {arrays[row.field].shape}, needed is {shown(row, axes)}: "
                    f"axis {axis} of {row.letter} is {n}{f' = {want}' if n != want else ''}, got {got}"
                )
    return found


def _check_kind(row: Field, x: Array) -> None:
    if row.kind in ("integer", "boolean"):
        if x.dtype.kind not in "biu":
            raise InputValueError(
                f"{row.field} has dtype {x.dtype}; {'integers are' if row.kind == 'integer' else 'True and False'} needed"
            )
        if row.kind == "boolean" and not np.isin(x, (0, 1)).all():
            raise InputValueError(f"{row.field} is True or False everywhere")
        if row.kind == "integer" and (x < 0).any():
            raise InputValueError(f"{row.field} holds numbers from 0 on, got {x.min()}")
        return
    if x.dtype.kind == "b":
        raise InputValueError(f"{row.field} has dtype bool; real numbers are needed")
    if row.kind == "positive" and not (x > 0).all():
        raise InputValueError(f"{row.field} is positive everywhere")
    if row.kind == "factor" and not ((x > 0) & (x <= 1)).all():
        raise InputValueError(f"{row.field} is above 0 and at most 1 everywhere: its powers fade with the distance")
    if row.kind == "unit" and not ((x >= 0) & (x <= 1)).all():
        raise InputValueError(f"{row.field} is from 0 to 1 everywhere")


def heads_of(d: Definition, arrays: Mapping[str, Array]) -> tuple[int, int, bool]:
    """Query heads, key/value heads, and whether there is a batch, as the sources of a form with its own ones show them.

    Raises
    ------
    InputValueError
        When a source is missing.
    """
    rows = [BY_LETTER[letter] for letter in forms.sources_of(d)]
    missing = [row.field for row in rows if row.field not in arrays]
    start = f"the form {d.form}" if forms.get(d.form).sources else f"algorithm={d.algorithm!r}"
    if missing:
        raise InputValueError(f"missing: {', '.join(missing)}; {start} starts from {', '.join(r.field for r in rows)}")
    batch = any("b" in row.axes and arrays[row.field].ndim == len(row.axes) for row in rows)
    heads, kv_heads = d.heads, d.kv_heads
    for row in rows:
        x = arrays[row.field]
        if x.ndim == len(row.axes):
            heads = x.shape[row.axes.index("H")] if "H" in row.axes else heads
            kv_heads = x.shape[row.axes.index("K")] if "K" in row.axes else kv_heads
    heads = heads or 1
    return heads, kv_heads or heads, batch
