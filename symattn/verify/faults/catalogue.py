"""The catalogue of faults: every family of rows, by id."""

from __future__ import annotations

from collections.abc import Mapping

from symattn.errors import UnknownNameError, nearest
from symattn.verify.faults import backward, heads, leaking, masking, normalizing, positions, reading, scaling
from symattn.verify.faults.fault import Fault

FAMILIES: Mapping[str, tuple[Fault, ...]] = {
    "heads and layouts": heads.ROWS,
    "scale and softcap": scaling.ROWS,
    "masks": masking.ROWS,
    "leaks and tails": leaking.ROWS,
    "softmax, LSE, sinks, dropout": normalizing.ROWS,
    "positions, biases, norms": positions.ROWS,
    "backward": backward.ROWS,
    "reading and writing": reading.ROWS,
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
    if id.upper() not in CATALOGUE:
        raise UnknownNameError(f"there is no fault {id!r}. {nearest(id.upper(), CATALOGUE)}")
    return CATALOGUE[id.upper()]
