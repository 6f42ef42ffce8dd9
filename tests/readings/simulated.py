"""Attention kernels with every rounding explicit, inputs that are hard on them, and the exact result in long doubles.

Arrays: Q (H, n, d), K (H, m, d), V (H, m, dv), keep (n, m). Nothing here reads symattn.
"""

from __future__ import annotations

from dataclasses import dataclass

import ml_dtypes
import numpy as np

F32 = np.float32
DTYPES = {"float64": np.float64, "float32": np.float32, "float16": np.float16, "bfloat16": ml_dtypes.bfloat16}
LOG2E = F32(1.4426950408889634)


def cast(x, fmt):
    """Round to a format (once, to nearest), kept in float32; float64 passes through."""
    if fmt == "float64":
        return np.asarray(x, np.float64)
    with np.errstate(over="ignore"):
        return np.asarray(x, F32) if fmt in (None, "float32") else np.asarray(x, F32).astype(DTYPES[fmt]).astype(F32)


def matmul(a, b, order="blas", seed=0):
    """A product summed by BLAS, or one key after the other in an order, each step rounded."""
    if order == "blas":
        return np.matmul(a, b)
    k = a.shape[-1]
    index = {"forward": np.arange(k), "reversed": np.arange(k)[::-1], "permuted": np.random.default_rng(seed).permutation(k)}[
        order
    ]
    out = np.zeros((*a.shape[:-1], b.shape[-1]), a.dtype)
    for t in index:
        out = out + a[..., t : t + 1] * b[..., t : t + 1, :]
    return out


@dataclass(frozen=True)
class How:
    """How a simulated kernel computes; what is not set is the plain way."""

    io: str = "bfloat16"
    p: str | None = "bfloat16"
    tile: int | None = 16
    order: str = "blas"
    fold: bool = False
    prescale: bool = False
    scale_error: float = 0.0
    dropped_key: int | None = None
    softcap: float = 0.0
    no_d: bool = False
    noise: float = 0.0

    @property
    def wide(self):
        return np.float64 if self.io == "float64" else F32


def _scores(q, k, scale, how):
    a = how.wide(scale * (1 + how.scale_error))
    if how.prescale:
        s = matmul(cast(q * a, how.io), k.swapaxes(-1, -2), how.order)
    else:
        s = matmul(q, k.swapaxes(-1, -2), how.order)
        s = s if how.fold else s * a
    return how.wide(how.softcap) * np.tanh(s / how.wide(how.softcap)) if how.softcap else s


def naive(q, k, v, keep, scale, how):
    """P = E/l rounded, then P V; the LSE in float32 (float64)."""
    s = np.where(keep, _scores(q, k, scale, how), -np.inf)
    m = s.max(-1, keepdims=True)
    e = np.where(keep, np.exp(s - np.where(np.isfinite(m), m, 0)), how.wide(0))
    total = e.sum(-1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        p = np.where(total > 0, e / total, how.wide(0))
        lse = np.where(total > 0, m + np.log(total), -np.inf)[..., 0]
    return cast(matmul(cast(p, how.p), v, how.order), how.io) * how.wide(1 + how.noise), lse


def flash(q, k, v, keep, scale, how):
    """Tiles over the keys, running maximum and sum, P rounded before P V, divided last."""
    heads, n, m = len(q), q.shape[1], k.shape[1]
    if how.dropped_key is not None:
        keep = keep & (np.arange(m) != how.dropped_key)
    top = np.full((heads, n, 1), -np.inf, how.wide)
    total, out = np.zeros((heads, n, 1), how.wide), np.zeros((heads, n, v.shape[-1]), how.wide)
    c = how.wide(how.wide(scale) * LOG2E)
    for start in range(0, m, how.tile):
        t = slice(start, start + how.tile)
        s = np.where(keep[:, t], _scores(q, k[:, t], scale, how), how.wide(-np.inf))
        new = np.maximum(top, s.max(-1, keepdims=True))
        safe = np.where(np.isfinite(new), new, how.wide(0))
        if how.fold:
            mc = safe * c
            p = np.exp2((s.astype(np.float64) * np.float64(c) - mc.astype(np.float64)).astype(F32))  # one fma
            shrink = np.where(np.isfinite(top), np.exp2((top - safe) * c), F32(0))
        else:
            p, shrink = np.exp(s - safe), np.where(np.isfinite(top), np.exp(top - safe), how.wide(0))
        total = total * shrink + p.sum(-1, keepdims=True)
        out = out * shrink + matmul(cast(p, how.p), v[:, t], how.order)
        top = new
    with np.errstate(divide="ignore", invalid="ignore"):
        inverse = np.where(total > 0, how.wide(1) / total, how.wide(0))
        base = np.where(np.isfinite(top), top, how.wide(0))
        lse = np.where(total > 0, (base * how.wide(scale) if how.fold else base) + np.log(total), -np.inf)[..., 0]
    return cast(out * inverse, how.io), lse


def flash_backward(q, k, v, do, keep, scale, out, lse, how):
    """From saved O and LSE: P = exp(S - L), D = rowsum(dO O); P and dS rounded before their products."""
    d = (do * out).sum(-1, keepdims=True) * how.wide(not how.no_d)
    dq, dk, dv = np.zeros_like(q), np.zeros_like(k), np.zeros_like(v)
    saved = np.where(np.isfinite(lse), lse, how.wide(0))[..., None]
    a = how.wide(scale * (1 + how.scale_error))
    for start in range(0, k.shape[1], how.tile):
        t = slice(start, start + how.tile)
        s = _scores(q, k[:, t], scale, how)
        with np.errstate(over="ignore"):
            p = np.where(keep[:, t], np.exp(s - saved), how.wide(0))
        ds = p * (matmul(do, v[:, t].swapaxes(-1, -2), how.order) - d)
        if how.softcap:
            ds = ds * (1 - (s / how.wide(how.softcap)) ** 2)
        low_p, low = cast(p, how.p), cast(ds, how.p)
        dq += matmul(low, k[:, t], how.order)
        dk[:, t] = matmul(low.swapaxes(-1, -2), q, how.order) * a
        dv[:, t] = matmul(low_p.swapaxes(-1, -2), do, how.order)
    return [cast(x, how.io) for x in (dq * a, dk, dv)]


def eager(q, k, v, do, keep, scale, io):
    """One operation after the other, forward and backward, each stored in the input format; roots of the scale on Q and K."""
    c = lambda x: cast(x, io)
    root = F32(np.sqrt(scale))
    qs, ks = c(q * root), c(k * root)
    s = np.where(keep, c(matmul(qs, ks.swapaxes(-1, -2))), F32(-np.inf))
    m = s.max(-1, keepdims=True)
    e = np.where(keep, np.exp(s - np.where(np.isfinite(m), m, F32(0))), F32(0))
    total = e.sum(-1, keepdims=True)
    with np.errstate(invalid="ignore"):
        p = c(np.where(total > 0, e / np.where(total > 0, total, F32(1)), F32(0)))
    out, dv, dp = c(matmul(p, v)), c(matmul(p.swapaxes(-1, -2), do)), c(matmul(do, v.swapaxes(-1, -2)))
    ds = c(p * (dp - (p * dp).sum(-1, keepdims=True)))
    return out, c(c(matmul(ds, ks)) * root), c(c(matmul(ds.swapaxes(-1, -2), qs)) * root), dv


def exact(q, k, v, keep, scale, do=None, softcap=0.0):
    """O, LSE and, with dO, the gradients in long doubles (64 bits of significand); ``scale`` in full precision."""
    wide = np.longdouble
    q, k, v = (np.asarray(x, wide) for x in (q, k, v))
    z = wide(scale) * np.matmul(q, k.swapaxes(-1, -2))
    t = np.tanh(z / wide(softcap)) if softcap else wide(0)
    z = wide(softcap) * t if softcap else z
    m = np.where(keep, z, -np.inf).max(-1, keepdims=True)
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        e = np.where(keep, np.exp(z - np.where(np.isfinite(m), m, wide(0))), wide(0))
        total = e.sum(-1, keepdims=True)
        p = np.where(total > 0, e / np.where(total > 0, total, wide(1)), wide(0))
        found = {"O": np.matmul(p, v), "L": np.where(total > 0, m + np.log(total), -np.inf)[..., 0]}
    if do is not None:
        do = np.asarray(do, wide)
        ds = p * (np.matmul(do, v.swapaxes(-1, -2)) - (do * found["O"]).sum(-1, keepdims=True)) * (1 - t * t)
        found["dQ"], found["dK"] = wide(scale) * np.matmul(ds, k), wide(scale) * np.matmul(ds.swapaxes(-1, -2), q)
        found["dV"] = np.matmul(p.swapaxes(-1, -2), do)
    return found


LAWS = ("normal", "large", "cancelV", "onehot", "uniform", "meanV", "hugelogit", "subnormal")


def inputs(law, io, seed=0, heads=2, n=24, m=40, d=16):
    """Q, K, V, dO of a law, numbers of the format ``io``."""
    rng = np.random.default_rng(seed)
    q, k = rng.standard_normal((heads, n, d)), rng.standard_normal((heads, m, d))
    v, do = rng.standard_normal((heads, m, d)), rng.standard_normal((heads, n, d))
    if law == "large":
        q = q * 12
    elif law == "cancelV":
        v = 64 * np.where(np.arange(m) % 2, -1, 1)[None, :, None] + 0.05 * v
        k[:, 1::2] = k[:, 0 : 2 * len(k[0, 1::2]) : 2] + 0.02 * k[:, 1::2]
    elif law == "onehot":
        q = 0.2 * q + 32 / np.sqrt(d) * k[:, rng.integers(0, m, n)]
    elif law == "uniform":
        q = 0.02 * q
    elif law == "meanV":
        v = 0.5 * v + 2
    elif law == "hugelogit":
        q, k = 4 * q + 40, k + 5
    elif law == "subnormal":
        v, do = v * 2.0**-16, do * 2.0**-13
    return [cast(x, io) for x in (q, k, v, do)]
