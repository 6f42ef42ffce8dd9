"""Large arrays that are used again: memory that is asked for anew takes as long to come as a matrix product to fill it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from symattn.truth.double import approx
from symattn.truth.double.approx import Array

__all__ = ["Arrays", "base_of"]


class Arrays:
    """The arrays that one evaluation takes from a pool and gives back.

    Parameters
    ----------
    pool
        Flat arrays that nobody holds, by their size; those of other evaluations too.

    >>> arrays = Arrays({})
    >>> first = arrays.take((200, 100))
    >>> arrays.give(first.T)
    >>> base_of(arrays.take((100, 200))) is base_of(first), arrays.room((2, 2))
    (True, None)
    """

    def __init__(self, pool: dict[int, list[Array]]) -> None:
        self.pool = pool
        self._taken: dict[int, Array] = {}

    def room(self, shape: tuple[int, ...]) -> Array | None:
        """An array for a large result; None leaves a small one to NumPy."""
        return self.take(shape) if math.prod(shape) > approx.FULL else None

    def take(self, shape: tuple[int, ...]) -> Array:
        """An array of any numbers, which an earlier tensor has done with where it is large."""
        count = math.prod(shape)
        if count <= approx.FULL:  # weights of results may be in small ones
            return np.empty(shape)
        try:  # another thread may take the last one between a look and a pop
            found = self.pool[count].pop()
        except (KeyError, IndexError):
            found = np.empty(count)
        self._taken[id(found)] = found
        return found.reshape(shape)

    def give(self, value: Array) -> None:
        """An array to be used again, if it is one of those that were taken; nobody may hold it any more."""
        base = base_of(value)
        if self.keep(value):
            self.pool.setdefault(base.size, []).append(base)

    def keep(self, value: Array) -> bool:
        """An array is not to be used again; whether it is one of those that were taken."""
        return self._taken.pop(id(base_of(value)), None) is not None


def base_of(value: Array) -> Any:
    """The array that owns the memory of another: two share it where they have the same."""
    return value if value.base is None else value.base
