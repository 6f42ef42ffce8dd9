"""Correct attention kernels with every rounding explicit: a tiled one with its many ways to compute, and an eager one.

Arrays are float32 and hold numbers of the formats: Q (H, r, d), K (H, n, d), V (H, n, dv) for each query head, keep (r, n).
Every place where a kernel can be wrong is a field of :class:`Points`; :mod:`.planted` fills them in.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.rounding.laws import F32, cast

LOG2E = F32(1.4426950408889634)


@dataclass(frozen=True)
class How:
    """How a kernel computes; every way of it is correct.

    Parameters
    ----------
    io, p
        Formats of inputs and output, and of the weights that meet V.
    tile, tiles
        Keys a tile and in which order tiles come: ``forward``, ``reverse``, ``permuted``.
    order
        Of the sums in products: ``blas``, ``sequential``, ``permuted``, or ``blocks``: 16 products added exactly to a float32
        sum, cut off.
    fold
        Exponents are ``s c - m c`` in base 2, c = scale log2(e), one rounding.
    stale
        How far (in nats) the maximum may lag before everything is rescaled.
    splits, combine
        Spans of keys that are computed apart, and combined by ``sums`` (unnormalised output, sum, maximum) or ``lse``.
    row_first
        A first pass finds the maximum of the row.
    cast_sum, p_scale, prescale, reciprocal
        The row sum adds rounded weights; weights are multiplied by a constant before they are rounded; the scale is multiplied
        into Q, which is rounded again; the output is multiplied by ``1/l``.
    """

    io: str
    p: str
    tile: int = 64
    tiles: str = "forward"
    order: str = "blas"
    fold: bool = False
    stale: float = 0.0
    splits: int = 1
    combine: str = "sums"
    row_first: bool = False
    cast_sum: bool = False
    p_scale: float = 1.0
    prescale: bool = False
    reciprocal: bool = False


def same(x: Any, *_: Any) -> Any:
    """Nothing changed."""
    return x


def add_tile(out: Any, shrink: Any, p: Any, v: Any, how: How) -> Any:
    """The accumulated output, rescaled, and a tile's P V."""
    return out * shrink + matmul(p, v, how.order) / F32(how.p_scale)


@dataclass(frozen=True)
class Points:
    """Where a fault can sit; each does nothing by default.

    ``inputs`` takes (k, v, keep); ``scale`` the scale; ``cap`` the softcap; ``scores`` the scaled scores; ``hidden`` scores and
    keep of a tile; ``weights`` P and scores; ``shrink_out`` and ``shrink_sum`` a rescaling factor, where there was a maximum
    before, and the number of the tile; ``sum_tile`` the weights of a tile; ``total`` the running sum; ``add_tile`` as its name;
    ``combine`` the weights of splits; ``out`` the output; ``lse`` the LSE and the maximum.
    """

    inputs: Callable[..., Any] = lambda k, v, keep: (k, v, keep)
    scale: Callable[..., Any] = same
    cap: Callable[..., Any] = same
    scores: Callable[..., Any] = same
    hidden: Callable[..., Any] = lambda s, keep: np.where(keep, s, F32(-np.inf))
    weights: Callable[..., Any] = same
    shrink_out: Callable[..., Any] = same
    shrink_sum: Callable[..., Any] = same
    sum_tile: Callable[..., Any] = lambda p: p.sum(-1, keepdims=True, dtype=F32)
    total: Callable[..., Any] = same
    add_tile: Callable[..., Any] = add_tile
    combine: Callable[..., Any] = same
    out: Callable[..., Any] = same
    lse: Callable[..., Any] = same


RIGHT = Points()


def cut(x):
    """float64 to float32, toward zero."""
    near = x.astype(F32)
    return np.where(np.abs(near.astype(np.float64)) > np.abs(x), np.nextafter(near, F32(0)), near)


def matmul(a, b, order="blas"):
    """A product in float32 in an order of summation."""
    if order == "blas":
        return np.matmul(a, b)
    length = a.shape[-1]
    out = np.zeros((*a.shape[:-1], b.shape[-1]), F32)
    if order == "blocks":
        for t in range(0, length, 16):
            exact = np.matmul(a[..., t : t + 16].astype(np.float64), b[..., t : t + 16, :].astype(np.float64))
            out = cut(out.astype(np.float64) + exact)
        return out
    for t in np.random.default_rng(length).permutation(length) if order == "permuted" else range(length):
        out = out + a[..., t : t + 1] * b[..., t : t + 1, :]
    return out


def finite(x):
    """A maximum to subtract: 0 where there is none."""
    return np.where(np.isfinite(x), x, F32(0))


def _scores(q, k, scale, softcap, how, at):
    """Scores that exponents are formed from; unscaled where the scale is folded."""
    s = matmul(q, k.swapaxes(-1, -2), how.order)
    s = s if how.prescale or (how.fold and not softcap) else s * scale
    s = at.scores(s)
    cap = F32(at.cap(softcap))
    return cap * np.tanh(s / cap) if cap else s


def _power(s, top, c, how, capped):
    """exp(s - top), by an exponential of base 2 with one rounding of the exponent where folded."""
    if not how.fold:
        return np.exp(s - top)
    c = LOG2E if capped else c
    with np.errstate(invalid="ignore"):
        return np.exp2((s.astype(np.float64) * np.float64(c) - (top * c).astype(np.float64)).astype(F32))


def _span(q, k, v, keep, scale, softcap, how, at, tiles):
    """The online softmax over some tiles: unnormalised output, sum and maximum (unscaled where folded)."""
    top = np.full((*q.shape[:2], 1), -np.inf, F32)
    total, out = np.zeros_like(top), np.zeros((*q.shape[:2], v.shape[-1]), F32)
    c, capped = F32(scale * LOG2E), bool(softcap)
    masked = lambda t: at.hidden(_scores(q, k[:, t], scale, softcap, how, at), keep[:, t])
    if how.row_first:
        top = np.max([masked(t).max(-1, keepdims=True) for t in tiles], axis=0)
    for number, t in enumerate(tiles):
        s = masked(t)
        new = np.maximum(top, s.max(-1, keepdims=True))
        if how.stale:
            new = np.where(np.isfinite(top) & (new - finite(top) < F32(how.stale)), top, new)
        used, before = finite(new), np.isfinite(top)
        with np.errstate(invalid="ignore", under="ignore", over="ignore"):
            p = at.weights(_power(s, used, c, how, capped), s)
            shrink = np.where(before, _power(finite(top), used, c, how, capped), F32(0))
            low = cast(p * F32(how.p_scale), how.p)
            summed = low / F32(how.p_scale) if how.cast_sum else p
            total = at.total(total * at.shrink_sum(shrink, before, number) + at.sum_tile(summed))
            out = at.add_tile(out, at.shrink_out(shrink, before, number), low, v[:, t], how)
        top = new
    return out, total, top


def forward(q, k, v, keep, scale, how, at=RIGHT, softcap=0.0):
    """Output and LSE of a tiled kernel."""
    k, v, keep = at.inputs(k, v, keep)
    a = F32(at.scale(scale))
    if how.prescale:
        q = cast(q * a, how.io)
    n = k.shape[1]
    tiles = [slice(t, min(t + how.tile, n)) for t in range(0, n, how.tile)]
    if how.tiles != "forward":
        order = np.random.default_rng(n).permutation(len(tiles)) if how.tiles == "permuted" else range(len(tiles))[::-1]
        tiles = [tiles[t] for t in order]
    each = -(-len(tiles) // how.splits)
    parts = [tiles[t : t + each] for t in range(0, len(tiles), each)]
    found = [_span(q, k, v, keep, a, softcap, how, at, part) for part in parts]
    lse_of = lambda top, total: finite(top) * (a if how.fold and not softcap else F32(1)) + np.log(total)
    with np.errstate(divide="ignore", invalid="ignore", under="ignore"):
        if len(found) > 1 and how.combine == "lse":
            out, lse, some = _by_lse(found, lse_of, at)
            return cast(at.out(np.where(some, out, F32(0))), how.io), at.lse(lse, found[-1][2])[..., 0]
        out, total, top = found[0] if len(found) == 1 else _by_sums(found, a, how, softcap, at)
        out = np.where(total > 0, out * (F32(1) / total) if how.reciprocal else out / total, F32(0))
        lse = np.where(total > 0, lse_of(top, total), F32(-np.inf))
    return cast(at.out(out), how.io), at.lse(lse, top)[..., 0]


def _by_sums(found, a, how, softcap, at):
    """Splits combined at their greatest maximum."""
    top = np.max([t for _, _, t in found], axis=0)
    c, shrink = F32(a * LOG2E), []
    for _, _, t in found:
        shrink.append(np.where(np.isfinite(t), _power(finite(t), finite(top), c, how, bool(softcap)), F32(0)))
    shrink = at.combine(shrink)
    out = sum(w * o for w, (o, _, _) in zip(shrink, found, strict=True))
    return out, sum(w * t for w, (_, t, _) in zip(shrink, found, strict=True)), top


def _by_lse(found, lse_of, at):
    """Normalised splits combined by their LSEs: weights exp(L_s - max), divided by their sum at the end."""
    lses = [np.where(total > 0, lse_of(top, total), F32(-np.inf)) for _, total, top in found]
    top = np.max(lses, axis=0)
    weights = [np.exp(x - finite(top)) for x in lses]
    total, used = sum(weights), at.combine(weights)
    shares = [np.where(t > 0, o / t, F32(0)) for o, t, _ in found]
    out = sum(w * o for w, o in zip(used, shares, strict=True)) / sum(used)
    return out, np.where(np.isfinite(top), finite(top) + np.log(total), F32(-np.inf)), np.isfinite(top)


def naive(q, k, v, keep, scale, io, p, at=RIGHT, softcap=0.0):
    """Float32 inside; P = E/l rounded to ``p``, then P V."""
    how = How(io, p)
    s = at.hidden(_scores(q, k, F32(scale), softcap, how, at), keep)
    e, total, top = _softmax(s)
    with np.errstate(divide="ignore", invalid="ignore"):
        low = cast(np.where(total > 0, e / total, F32(0)), p)
        lse = np.where(total > 0, finite(top) + np.log(total), F32(-np.inf))
    return cast(matmul(low, v), io), lse[..., 0]


def eager(q, k, v, keep, scale, io, softcap=0.0):
    """One operation after the other, each stored in the input format; the root of the scale on Q and on K."""
    root = F32(np.sqrt(scale))
    s = cast(matmul(cast(q * root, io), cast(k * root, io).swapaxes(-1, -2)), io)
    if softcap:
        cap = F32(softcap)
        s = cast(cap * np.tanh(s / cap), io)
    e, total, top = _softmax(np.where(keep, s, F32(-np.inf)))
    with np.errstate(divide="ignore", invalid="ignore"):
        p = cast(np.where(total > 0, e / total, F32(0)), io)
        lse = np.where(total > 0, finite(top) + np.log(total), F32(-np.inf))
    return cast(matmul(p, v), io), lse[..., 0]


def _softmax(s):
    top = s.max(-1, keepdims=True)
    with np.errstate(under="ignore"):
        e = np.exp(s - finite(top))
    return e, e.sum(-1, keepdims=True), top


def expanded(x, heads):
    """Keys or values for every query head: head h reads h // (heads / given)."""
    return np.repeat(x, heads // len(x), axis=0)
