"""From the layout in which arrays are given to the axes that a program has, and back.

A field has roles: ``b`` batch, ``H`` query heads, ``K`` key/value heads, ``i j c e a u f`` as in the program. A program may lack
the batch and head axes, and has two for grouped heads; the grouping convention says which head is which member of which group.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from symattn.errors import ShapeError

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Axes:
    """The numbers of heads of a bound program, and whether it has a batch axis.

    >>> import numpy as np
    >>> axes = Axes(heads=4, kv_heads=2, batch=True, tiled=False)
    >>> x = np.arange(4).reshape(1, 4, 1, 1)
    >>> axes.into(x, "bHic").shape, axes.back(axes.into(x, "bHic"), "bHic").ravel().tolist()
    ((1, 2, 2, 1, 1), [0, 1, 2, 3])
    """

    heads: int
    kv_heads: int
    batch: bool
    tiled: bool

    @property
    def grouped(self) -> bool:
        """Whether query heads have two axes, (k, g)."""
        return self.heads > 1 and self.kv_heads not in (1, self.heads)

    def into(self, x: Array, roles: str) -> Array:
        """An array with the axes ``roles`` in the axes of the program."""
        at = 0
        for role in roles:
            if role == "H" and self.grouped:
                x = self._split(x, at)
                at += 2
            elif self._lacks(role):
                x = np.squeeze(x, axis=at)
            else:
                at += 1
        return x

    def back(self, x: Array, roles: str) -> Array:
        """The inverse of :meth:`into`: an array of a program with the axes ``roles`` again, size 1 where the program has none."""
        for at, role in enumerate(roles):
            if role == "H" and self.grouped:
                x = self._merge(x, at)
            elif self._lacks(role):
                x = np.expand_dims(x, at)
        return x

    def _lacks(self, role: str) -> bool:
        """Whether the program has no axis for a role."""
        return {"b": not self.batch, "H": self.heads == 1, "K": self.kv_heads == 1}.get(role, False)

    def _split(self, x: Array, axis: int) -> Array:
        groups = self.heads // self.kv_heads
        if self.tiled:
            return np.swapaxes(x.reshape(*x.shape[:axis], groups, self.kv_heads, *x.shape[axis + 1 :]), axis, axis + 1)
        return x.reshape(*x.shape[:axis], self.kv_heads, groups, *x.shape[axis + 1 :])

    def _merge(self, x: Array, axis: int) -> Array:
        if self.tiled:
            x = np.swapaxes(x, axis, axis + 1)
        return x.reshape(*x.shape[:axis], self.heads, *x.shape[axis + 2 :])


def carried(
    field: str, shape: tuple[int, ...], full: tuple[int, int, int, int], declared: str | None
) -> tuple[str, tuple[int, ...]]:
    """Which of b, h, i, j a given mask or bias carries, and its shape spread over all four (1 where it does not carry one).

    Shapes are aligned on the right as in NumPy; an array may also have just the axes that the definition declares.

    Raises
    ------
    ShapeError
        When the shape fits neither.

    >>> carried("attn_mask", (2, 1, 1, 5), (2, 3, 4, 5), None)
    ('bj', (2, 1, 1, 5))
    >>> carried("bias", (3, 5), (2, 3, 4, 5), "hj")
    ('hj', (1, 3, 1, 5))
    """
    sizes = dict(zip("bhij", full, strict=True))
    if declared is not None and len(shape) == len(declared) and all(
        n == sizes[a] for a, n in zip(declared, shape, strict=True)
    ):  # fmt: skip
        of = dict(zip(declared, shape, strict=True))
        return declared, tuple(of.get(a, 1) for a in "bhij")
    spread = (1,) * (4 - len(shape)) + shape
    if len(shape) > 4 or any(n not in (1, m) for n, m in zip(spread, full, strict=True)):
        raise ShapeError(f"{field} has shape {shape}; it must broadcast to (B, H, n, m) = {full}, aligned on the right")
    found = "".join(a for a, n in zip("bhij", spread, strict=True) if n == sizes[a] and n > 1)
    if declared is None:
        return found or "j", spread
    if not set(found) <= set(declared):
        raise ShapeError(f"{field} has shape {shape}, which carries the axes {found!r}; the definition says {declared!r}")
    return declared, spread
