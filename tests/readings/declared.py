"""Tiled attention kernels that do exactly what a declaration may say, with casts, truncations and accumulators spelled out.

Arrays: q (H, n, d), k (H, m, d), v (H, m, dv) in float64, numbers of the input format. Everything is float64 whose values are
rounded where the kernel rounds. Nothing here reads symattn; formats are given by precision, least exponent and largest number.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

FORMATS = {
    "float32": (24, -126, 3.4028234663852886e38),
    "tf32": (11, -126, 3.4e38),
    "bfloat16": (8, -126, 3.3895313892515355e38),
    "float16": (11, -14, 65504.0),
    "e4m3": (4, -6, 448.0),
}


def rounded(x, fmt, cut=False):
    """To nearest with ties to even, or cut off; what is beyond the largest number becomes it."""
    p, least, top = FORMATS[fmt]
    x = np.asarray(x, np.float64)
    _, e = np.frexp(x)
    step = np.ldexp(1.0, np.maximum(e - 1, least) - p + 1)
    with np.errstate(invalid="ignore"):
        q = np.trunc(x / step) if cut else np.rint(x / step)
        return np.where(np.isfinite(x), np.clip(q * step, -top, top), x)


@dataclass(frozen=True)
class How:
    """What the kernel does."""

    p: str | None = "bfloat16"
    p_scale: float = 1.0
    p_cut: bool = False
    sum_cast: bool = False
    tile: int = 16
    reverse: bool = False
    prescale: str | None = None
    stale: float = 0.0
    operand: str | None = None
    operand_cut: bool = False
    cut: bool = False
    block: int | None = None
    bits: int = 24
    exp_error: float = 0.0
    out: str = "bfloat16"
    scale_error: float = 0.0


def total(terms, how, start=0.0):
    """The sum of the last axis onto ``start``, term by term, or block by block as a truncating accumulator does."""
    acc = np.broadcast_to(start, terms.shape[:-1]).astype(np.float64)
    step = how.block or 1
    for a in range(0, terms.shape[-1], step):
        part = terms[..., a : a + step]
        if how.block is None:
            acc = rounded(acc + rounded(part[..., 0], "float32"), "float32", how.cut)
            continue
        all_ = np.concatenate([acc[..., None], part], -1)
        _, e = np.frexp(np.abs(all_).max(-1, keepdims=True))
        grid = np.ldexp(1.0, e - 1 - how.bits)
        acc = rounded((np.trunc(all_ / grid) * grid).sum(-1), "float32", how.cut)
    return acc


def product(a, b, how, start=0.0):
    """a (.., n, k) times b (.., k, c)."""
    return total(a[..., :, None, :] * np.swapaxes(b, -1, -2)[..., None, :, :], how, start)


def flash(q, k, v, scale, how):
    """Output and LSE of a tiled kernel."""
    r = lambda x: rounded(x, "float32")
    if how.operand:
        q, k, v = (rounded(x, how.operand, how.operand_cut) for x in (q, k, v))
    c = r(scale * (1 + how.scale_error))
    if how.prescale:
        q = rounded(r(q * c), how.prescale)
    h, n, m = len(q), q.shape[1], k.shape[1]
    top, used = np.full((h, n, 1), -np.inf), np.full((h, n, 1), -np.inf)
    row, acc = np.zeros((h, n)), np.zeros((h, n, v.shape[-1]))
    starts = list(range(0, m, how.tile))
    for start in starts[::-1] if how.reverse else starts:
        t = slice(start, start + how.tile)
        s = product(q, np.swapaxes(k[:, t], -1, -2), how)
        s = s if how.prescale else r(s * c)
        top = np.maximum(top, s.max(-1, keepdims=True))
        new = np.where(top > used + how.stale, top, used)
        p = r(np.exp(r(s - new)) * (1 + how.exp_error))
        shrink = r(np.exp(r(used - new)) * (1 + how.exp_error))
        low = p if how.p is None else rounded(p * how.p_scale, how.p, how.p_cut)
        unit = 1.0 if how.p is None else how.p_scale
        row = total((low / unit if how.sum_cast else p), how, r(row * shrink[..., 0]))
        acc = product(low, v[:, t], how, r(acc * shrink))
        used = new
    out = r(r(acc / row[..., None]) / (1.0 if how.p is None else how.p_scale))
    return rounded(out, how.out), r(r(used[..., 0]) + r(np.log(row)))
