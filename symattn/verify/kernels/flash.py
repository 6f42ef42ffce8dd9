"""A tiled attention kernel in NumPy with an online softmax, forward and backward.

It is written by hand from the algorithm and shares no code with the programs and readings that judge it. Scores are computed in
float32 (float64 for float64 inputs), tile by tile over the keys, with a running maximum and a running sum; the weights P, and dS
in the backward, are rounded to the input's dtype before they meet V, Q and K. The backward recomputes P from the saved LSE.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from symattn.intake import Array

LN2 = 0.6931471805599453


@dataclass(frozen=True)
class Setting:
    """What a call of the kernel is about, beside the three tensors.

    Parameters
    ----------
    keep
        Boolean, broadcastable to (B, H, n, m): the pairs that may attend.
    add
        Added to the scores after the softcap, broadcastable to (B, H, n, m); None for nothing.
    slopes, distance
        ALiBi: ``-slopes[h] * distance[.., i, j]`` is added to the scores; distances broadcastable to (B, H, n, m).
    sinks
        One number per query head, or None.
    kv_head
        The key-value head of every query head.
    scale, softcap
        Numbers; no softcap: None.
    dropout, dropout_p
        Boolean keep-mask (B, H, n, m) and the rate; kept weights are multiplied by 1/(1-p).
    base2
        The LSE is in base 2.
    empty_row
        Output of a row that may attend to nothing: ``"zero"``, ``"nan"`` or ``"uniform"``.
    tile
        Keys per tile.
    """

    keep: Array
    kv_head: Array
    scale: float
    add: Array | None = None
    slopes: Array | None = None
    distance: Array | None = None
    sinks: Array | None = None
    softcap: float | None = None
    dropout: Array | None = None
    dropout_p: float = 0.0
    base2: bool = False
    empty_row: str = "zero"
    tile: int = 32


def forward(query: Array, key: Array, value: Array, s: Setting) -> tuple[Array, Array]:
    """Output (B, H, n, dv) in the dtype of the query and LSE (B, H, n) in float32 (float64 for float64).

    With one query and two equal keys the output is the mean of the values, the LSE ``log 2`` above the score:

    >>> q, k, v = np.zeros((1, 1, 1, 2)), np.zeros((1, 1, 2, 2)), np.array([[[[1.0], [3.0]]]])
    >>> out, lse = forward(q, k, v, Setting(np.ones((1, 1, 1, 2), bool), np.array([0]), 1.0))
    >>> out.item(), round(lse.item(), 6)
    (2.0, 0.693147)
    """
    wide = _wide(query)
    q, m = query.astype(wide), key.shape[2]
    rows = q.shape[:3]
    if s.sinks is None:
        top, total = np.full(rows, -np.inf, wide), np.zeros(rows, wide)
    else:
        top = np.broadcast_to(s.sinks.astype(wide)[None, :, None], rows).copy()
        total = np.ones(rows, wide)
    acc = np.zeros((*rows, value.shape[3]), wide)
    for tile in _tiles(m, s.tile):
        k, v = _heads(key[:, :, tile], s, wide), _heads(value[:, :, tile], s, wide)
        score, keep = _scores(q, k, s, tile)[0], _cut(s.keep, tile, rows)
        new = np.maximum(top, np.where(keep, score, -np.inf).max(-1))
        with np.errstate(invalid="ignore"):
            shrink = np.where(new == -np.inf, wide.type(1), np.exp(top - new))
            p = np.where(keep, np.exp(np.where(keep, score, -np.inf) - new[..., None]), wide.type(0))
        total = total * shrink + p.sum(-1)
        if s.dropout is not None:
            p = np.where(_cut(s.dropout, tile, rows), p * wide.type(1 / (1 - s.dropout_p)), wide.type(0))
        acc = acc * shrink[..., None] + _product(p.astype(query.dtype).astype(wide), v, keep)
        top = new
    empty = total == 0
    with np.errstate(divide="ignore"):
        out = acc / np.where(empty, wide.type(1), total)[..., None]
        lse = np.where(empty, -np.inf, top + np.log(total)).astype(wide)
    if s.empty_row != "zero" and empty.any():
        filler = np.nan if s.empty_row == "nan" else _heads(value, s, wide).mean(2, keepdims=True)
        out = np.where(empty[..., None], filler, out)
    return out.astype(query.dtype), lse / wide.type(LN2) if s.base2 else lse


def backward(
    query: Array, key: Array, value: Array, grad_out: Array, out: Array, lse: Array, grad_lse: Array | None, s: Setting
) -> dict[str, Array]:
    """Gradients: ``grad_query grad_key grad_value`` in the input's dtype, and in the wide one ``score`` (the gradient of what is
    added to the scores, B H n m), ``slopes`` and ``sinks``.
    """
    wide = _wide(query)
    q, do, m = query.astype(wide), grad_out.astype(wide), key.shape[2]
    rows = q.shape[:3]
    base = wide.type(LN2) if s.base2 else wide.type(1)
    lse = lse.astype(wide) * base
    empty = lse == -np.inf
    with np.errstate(invalid="ignore"):
        delta = np.where(empty, wide.type(0), (do * out.astype(wide)).sum(-1))
    if grad_lse is not None:
        delta = delta - np.where(empty, wide.type(0), grad_lse.astype(wide) / base)
    dq, dk, dv = np.zeros_like(q), np.zeros(key.shape, wide), np.zeros(value.shape, wide)
    dz = np.zeros((*rows, m), wide)
    for tile in _tiles(m, s.tile):
        k, v = _heads(key[:, :, tile], s, wide), _heads(value[:, :, tile], s, wide)
        keep = _cut(s.keep, tile, rows) & ~empty[..., None]
        score, slope = _scores(q, k, s, tile)
        with np.errstate(invalid="ignore"):
            p = np.where(keep, np.exp(np.where(keep, score, -np.inf) - lse[..., None]), wide.type(0))
            dp = do @ v.swapaxes(-1, -2)
        dropped = p
        if s.dropout is not None:
            factor = np.where(_cut(s.dropout, tile, rows), wide.type(1 / (1 - s.dropout_p)), wide.type(0))
            dropped, dp = p * factor, np.where(factor == 0, wide.type(0), dp * factor)
        with np.errstate(invalid="ignore"):
            d = np.where(keep, p * (dp - delta[..., None]), wide.type(0))
            ds = np.where(keep, d * slope, wide.type(0))
        dz[..., tile] = d
        low, low_p = ds.astype(query.dtype).astype(wide), dropped.astype(query.dtype).astype(wide)
        dq += _product(low, k, keep) * wide.type(s.scale)
        down = keep.swapaxes(-1, -2)
        _add_heads(dk[:, :, tile], _product(low.swapaxes(-1, -2), q, down) * wide.type(s.scale), s)
        _add_heads(dv[:, :, tile], _product(low_p.swapaxes(-1, -2), do, down), s)
    if s.empty_row == "uniform" and empty.any():
        share = np.where(empty[..., None], do, wide.type(0)).sum(2, keepdims=True) / wide.type(m)
        _add_heads(dv, np.broadcast_to(share, (*share.shape[:2], m, share.shape[3])), s)
    narrow = {"grad_query": dq, "grad_key": dk, "grad_value": dv}
    result = {name: a.astype(query.dtype) for name, a in narrow.items()}
    result["score"] = dz
    if s.slopes is not None and s.distance is not None:
        result["slopes"] = -(dz * s.distance.astype(wide)).sum((0, 2, 3))
    if s.sinks is not None:
        result["sinks"] = -(np.exp(s.sinks.astype(wide)[None, :, None] - lse) * delta).sum((0, 2))
    return result


def _wide(query: Array) -> np.dtype[Any]:
    return np.dtype("float64" if query.dtype == np.float64 else "float32")


def _tiles(m: int, tile: int) -> Iterator[slice]:
    return (slice(a, min(a + tile, m)) for a in range(0, m, tile))


def _heads(x: Array, s: Setting, wide: np.dtype[Any]) -> Array:
    return np.asarray(x.astype(wide)[:, s.kv_head])


def _cut(x: Array, tile: slice, rows: tuple[int, ...]) -> Array:
    part = x[..., tile] if x.shape[-1] > 1 or tile.stop == 1 else x
    return np.broadcast_to(part, (*rows, tile.stop - tile.start))


def _scores(q: Array, k: Array, s: Setting, tile: slice) -> tuple[Array, Array]:
    """The scores of a tile before masking, and the derivative of the softcap (1 without)."""
    wide = q.dtype
    with np.errstate(invalid="ignore", over="ignore"):
        score = (q @ k.swapaxes(-1, -2)) * wide.type(s.scale)
        slope = np.ones((), wide)
        if s.softcap is not None:
            t = np.tanh(score / wide.type(s.softcap))
            score, slope = wide.type(s.softcap) * t, 1 - t * t
        if s.slopes is not None and s.distance is not None:
            score = score - s.slopes.astype(wide)[None, :, None, None] * _cut(s.distance.astype(wide), tile, score.shape[:3])
        if s.add is not None:
            score = score + _cut(s.add.astype(wide), tile, score.shape[:3])
    return score, slope


def _product(weights: Array, x: Array, keep: Array) -> Array:
    """``weights @ x`` in which a pair that is not kept contributes nothing, even where x is NaN or infinite."""
    if np.isfinite(x).all():
        return np.asarray(weights @ x)
    with np.errstate(invalid="ignore"):
        terms = np.where(keep[..., None], weights[..., None] * x[..., None, :, :], weights.dtype.type(0))
    return np.asarray(terms.sum(-2))


def _add_heads(target: Array, x: Array, s: Setting) -> None:
    """Add the gradient of every query head to that of its key-value head."""
    for h, kv in enumerate(s.kv_head):
        target[:, kv] += x[:, h]
