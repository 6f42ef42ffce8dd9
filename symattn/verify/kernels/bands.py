"""Visible pairs that are a band of diagonals: what kernels with a causal flag or a window of their own compute without a mask."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from symattn.verify.kernels.call import Call


@dataclass(frozen=True)
class Band:
    """The pairs ``-right <= i + offset - j <= left``; None for a side without a limit.

    >>> Band(None, 0).causal, Band(3, 0).causal, Band(3, 1).causal
    (True, True, False)
    """

    left: int | None
    right: int | None

    @property
    def causal(self) -> bool:
        """Whether the right limit is the diagonal itself."""
        return self.right == 0

    @property
    def holds_diagonal(self) -> bool:
        """Whether the diagonal itself is in it: kernels take limits from 0 on."""
        return all(side is None or side >= 0 for side in (self.left, self.right))


def band(call: Call, offset: int = 0) -> Band | None:
    """The visible pairs as a band measured from ``j = i + offset``, or None where they are not one.

    A limit beyond the last diagonal that exists is none. Read off the pairs alone, so that it does not matter which fields of the
    definition made them.

    >>> from symattn.definition import Definition
    >>> fields = {"query": np.zeros((1, 1, 4, 2)), "key": np.zeros((1, 1, 4, 2)), "value": np.zeros((1, 1, 4, 2))}
    >>> band(Call(Definition(causal="top-left", window=(2, 0)), fields))
    Band(left=1, right=0)
    >>> band(Call(Definition(document=True), fields | {"doc": np.array([[0, 0, 1, 1]])})) is None
    True
    """
    n, m = call.score_shape[2:]
    keep = call.keep
    if not keep.any():
        return None
    distance = np.arange(n)[:, None] + offset - np.arange(m)[None, :]
    seen = np.broadcast_to(distance, keep.shape)[keep]
    left, right = int(seen.max()), int(-seen.min())
    if not (keep == ((distance <= left) & (-distance <= right))).all():
        return None
    top, bottom = int(distance.max()), int(-distance.min())
    return Band(None if left >= top else left, None if right >= bottom else right)
