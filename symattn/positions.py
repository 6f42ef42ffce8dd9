"""What positions need: which of their fields hold together, which widths can be rotated, and T5's numbers of buckets."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from symattn.errors import DefinitionError, ShapeError
from symattn.grammar import parameters_of

if TYPE_CHECKING:
    from symattn.definition import Definition

__all__ = ["refuse_positions", "refuse_widths", "relative_buckets"]


def refuse_positions(d: Definition, refuse: Callable[[object, str], None]) -> None:
    """Fields of rotations, norms and distances that need each other."""
    for name in ("rope_dim", "rope_frequencies", "rope_amplitude", "rope_offset"):
        refuse(getattr(d, name) is not None and d.rope is None, f"{name} belongs to a rotation: set rope to half or interleaved")
    refuse(d.qk_norm_weight and d.qk_norm is None, "qk_norm_weight belongs to a norm: set qk_norm to 'rms' or 'l2'")
    refuse(d.qk_norm_eps is not None and d.qk_norm is None, "qk_norm_eps belongs to a norm: set qk_norm to 'rms' or 'l2'")
    if isinstance(d.qk_norm_eps, Fraction):
        refuse(d.qk_norm_eps < 0, f"qk_norm_eps is at least 0, got {d.qk_norm_eps}")
    for name, value in d.params.items():
        formulas = [e for e in (d.rope_frequencies, d.rope_amplitude) if e is not None]
        one = name == d.qk_norm_eps or any(name in parameters_of(e) for e in formulas)
        refuse(one and not isinstance(value, Fraction), f"parameter {name} is one number, not one per head")
    after = d.qk_norm_order == "after-rope"
    refuse(after and (d.qk_norm is None or d.rope is None), "qk_norm_order='after-rope' needs both qk_norm and rope")
    clipped = d.relative_clip is not None
    refuse(clipped and d.relative is None, "relative_clip is about distances: set relative to keys or recurrent")
    refuse(
        d.relative is not None and d.similarity != "dot",
        f"relative={d.relative!r} is a sum of dot products and cannot stand with similarity={d.similarity!r}",
    )


def refuse_widths(d: Definition, width: int) -> None:
    """Refuse queries and keys of a width that a definition cannot rotate.

    Raises
    ------
    ShapeError
        When ``rope`` has an odd number of channels to put in pairs, or ``rope_dim`` is more than there are.
    """
    if d.rope is None:
        return
    if d.rope_dim is None and width % 2:
        raise ShapeError(
            f"rope turns channels in pairs, and query and key have {width}: give an even width, or rope_dim={width - 1} "
            "to leave the last one as it is"
        )
    if d.rope_dim is not None and d.rope_dim > width:
        raise ShapeError(f"rope_dim is {d.rope_dim}, and query and key have {width} channels")


def relative_buckets(
    queries: int,
    keys: int,
    *,
    buckets: int = 32,
    max_distance: int = 128,
    bidirectional: bool = True,
    offset: int = 0,
) -> npt.NDArray[np.int64]:
    """T5's number of the bucket of every query i and key j, in integers alone.

    With ``t = j - i - offset``, half of the buckets belong to ``t > 0`` where ``bidirectional``; else all belong to ``t <= 0``,
    and keys after the query count as distance 0. Of the N buckets of one side the first N//2 hold one distance each, the others
    grow by a constant factor up to ``max_distance``, and what lies beyond is in the last one: with e = N//2, distance x >= e is
    in ``e + floor((N - e) log(x/e) / log(max_distance/e))``.

    Parameters
    ----------
    queries, keys
        n and m.
    buckets, max_distance, bidirectional
        As in the publication: 32 and 128; an encoder is bidirectional, a decoder is not.
    offset
        The position of query 0, ``m - n`` in a decode step.

    Returns
    -------
    numpy.ndarray
        ``(n, m)``, int64, from 0 to ``buckets - 1``: the field ``bucket_numbers``.

    Raises
    ------
    DefinitionError
        When there are too few buckets, or the exact ones reach ``max_distance``.

    Notes
    -----
    Exact: ``floor`` of the logarithm is found by comparing integer powers. The published code takes it of a float32, which may
    come out one bucket lower where x/e is a power of the factor; with its own numbers of buckets it does not.

    References
    ----------
    Raffel et al., arXiv 1910.10683, section 2.1; the formula is that of the published code, ``_relative_position_bucket``.

    >>> relative_buckets(1, 12, buckets=8, max_distance=16)[0].tolist()
    [0, 5, 6, 6, 6, 6, 7, 7, 7, 7, 7, 7]
    """
    side = buckets // 2 if bidirectional else buckets
    exact = side // 2
    if exact < 1 or max_distance <= exact:
        raise DefinitionError(
            f"{buckets} buckets{' for two sides' if bidirectional else ''} hold {exact} distances one by one: "
            f"that must be at least 1 and below max_distance, got {max_distance}"
        )
    found = np.empty((queries, keys), dtype=np.int64)
    at: dict[int, int] = {}
    for i in range(queries):
        for j in range(keys):
            t = j - i - offset
            x = abs(t) if bidirectional else max(-t, 0)
            if x not in at:
                at[x] = _of_distance(x, side, exact, max_distance)
            found[i, j] = at[x] + (side if bidirectional and t > 0 else 0)
    return found


def _of_distance(x: int, side: int, exact: int, max_distance: int) -> int:
    """The bucket of a distance among those of one side."""
    if x < exact:
        return x
    rest = side - exact
    step = 0
    while step < rest - 1 and x**rest * exact ** (step + 1) >= max_distance ** (step + 1) * exact**rest:
        step += 1
    return exact + step
