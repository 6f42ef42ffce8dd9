"""The catalogue of theorems: rows of data, one file a family.

>>> get("rows-sum-to-one").title
'The rows of P sum to one'
"""

from __future__ import annotations

from collections.abc import Mapping

from symattn.errors import UnknownNameError, nearest
from symattn.theorems import (
    algorithms,
    gradients,
    gradientsums,
    jacobian,
    latent,
    linear,
    merging,
    positions,
    scaling,
    softmax,
    sparse,
    symmetry,
)
from symattn.theorems.theorem import Theorem

__all__ = ["FAMILIES", "THEOREMS", "get", "names"]

FAMILIES: Mapping[str, tuple[Theorem, ...]] = {
    "Softmax": (*softmax.ROWS, *jacobian.ROWS, *sparse.ROWS),
    "Scores and temperature": scaling.ROWS,
    "Gradients": (*gradients.ROWS, *gradientsums.ROWS),
    "Symmetry": symmetry.ROWS,
    "Positions": positions.ROWS,
    "Algorithms and formulas": merging.ROWS,
    "Programs of kernels": algorithms.ROWS,
    "Linear attention": linear.ROWS,
    "Latent attention": latent.ROWS,
}
"""Family -> its theorems, in the order in which they are shown."""

THEOREMS: Mapping[str, Theorem] = {row.name: row for rows in FAMILIES.values() for row in rows}


def names() -> tuple[str, ...]:
    """The names of all theorems, in the order of the catalogue."""
    return tuple(THEOREMS)


def get(name: str) -> Theorem:
    """The theorem of this name.

    Raises
    ------
    UnknownNameError
        With the nearest names.
    """
    if name not in THEOREMS:
        raise UnknownNameError(f"no theorem is called {name!r}. {nearest(name, THEOREMS)}")
    return THEOREMS[name]
