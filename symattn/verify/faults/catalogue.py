"""The catalogue of faults: every family of rows, by id."""

from __future__ import annotations

from collections.abc import Mapping

from symattn.errors import UnknownNameError, nearest
from symattn.verify.faults import (
    backward,
    emulated,
    emulated_backward,
    emulated_rounding,
    givenmasks,
    heads,
    leaking,
    masking,
    merging,
    normalizing,
    positions,
    reading,
    rotations,
    scaling,
    supports,
)
from symattn.verify.faults.fault import Fault

FAMILIES: Mapping[str, tuple[Fault, ...]] = {
    "heads and layouts": heads.ROWS,
    "scale and softcap": scaling.ROWS,
    "masks": (*masking.ROWS, *givenmasks.ROWS),
    "leaks and tails": leaking.ROWS,
    "softmax, LSE, sinks, dropout": (*normalizing.ROWS, *merging.ROWS, *supports.ROWS),
    "ALiBi and biases": positions.ROWS,
    "rotations and norms": rotations.ROWS,
    "backward": backward.ROWS,
    "reading and writing": reading.ROWS,
    "ranges and tiles": emulated.ROWS,
    "ranges and tiles of the backward": emulated_backward.ROWS,
    "roundings": emulated_rounding.ROWS,
}
"""By family, in the order of the documentation."""

CATALOGUE: Mapping[str, Fault] = {f.id: f for rows in FAMILIES.values() for f in rows}
"""Every fault by its id."""


def find(id: str) -> Fault:
    """The fault of an id, case ignored.

    Raises
    ------
    UnknownNameError
        Naming the nearest ids.

    >>> find("f13").title
    'causal mask aligned top-left'
    """
    known = {name.lower(): f for name, f in CATALOGUE.items()}
    if id.lower() not in known:
        raise UnknownNameError(f"there is no fault {id!r}. {nearest(id.upper(), CATALOGUE)}")
    return known[id.lower()]
