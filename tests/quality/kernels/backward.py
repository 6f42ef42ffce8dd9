"""Backward passes: from the saved output and LSE, tile by tile over keys or over queries; and of the stored steps."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.quality.kernels.forward import dropped, finite, power, slices, softmax
from tests.quality.kernels.points import LN2
from tests.quality.kernels.scene import Array, Scene


def grown(total: Array, part: Array, dtype: Any) -> Array:
    """A buffer with a part added, kept in ``dtype`` (None: as wide as the parts are)."""
    return total + part if dtype is None else (total + part).astype(dtype).astype(total.dtype)


def recomputing(s: Scene, plan: Any, grad_out: Array, out: Array, lse: Array, grad_lse: Array | None) -> dict[str, Array]:
    """P = exp(Z - L) and D = rowsum(dO o O) from what the forward saved."""
    at, w = s.at, s.wide
    base = w(LN2) if s.options.get("lse_base") == 2 else w(1)
    do, lse = grad_out.astype(w), at.saved_lse(lse.astype(w) * base)
    empty = np.isneginf(lse)
    with np.errstate(all="ignore"):
        delta = np.where(empty, w(0), at.delta(do, out.astype(w))).astype(w)
        inner = at.minus_delta(delta, w(s.rate))
        if grad_lse is not None:
            inner = inner + np.where(empty, w(0), at.grad_lse(grad_lse.astype(w) / base))
    dq, dk, dv = np.zeros_like(s.q), np.zeros_like(s.k), np.zeros_like(s.v)
    dz = np.zeros((*s.q.shape[:3], s.m), w)
    whole = slice(0, s.n)
    blocks = [(whole, keys) for keys in slices(s.m, plan.tile)]
    if plan.query_tile:
        blocks = [(rows, slice(0, s.m)) for rows in slices(s.n, plan.query_tile)]
    for t, (rows, keys) in enumerate(blocks):
        if at.skip_tile(t, len(blocks)):
            continue
        part = block(s, plan, do, lse, inner, rows, keys)
        k = s.k[:, :, at.key_of_tile(keys) if keys.start else keys]
        with np.errstate(all="ignore"):
            dq_part = multiplied(part["ds"], k, s.wide) * w(at.scale_query(s.scale))
            dk_part = multiplied(part["ds"].swapaxes(-1, -2), s.q[:, :, rows], s.wide) * w(at.scale_key(s.scale))
            dv_part = multiplied(part["p"].swapaxes(-1, -2), do[:, :, rows], s.wide)
        dq[:, :, rows] = grown(dq[:, :, rows], dq_part + part["tail"], at.query_buffer or plan.dq_format)
        dk[:, :, keys] = grown(dk[:, :, keys], dk_part, at.key_buffer or plan.dkv_format)
        dv[:, :, keys] = grown(dv[:, :, keys], dv_part, at.key_buffer or plan.dkv_format)
        dz[:, :, rows, keys] = part["dz"]
    with np.errstate(all="ignore"):
        sink_terms = None if s.sinks is None else power(s.sinks - lse, False) * inner
    return leaving(s, dq, dk, dv, dz, sink_terms, do, empty)


def multiplied(weights: Array, x: Array, wide: Any) -> Array:
    """A product of what was rounded for it."""
    return np.asarray(weights.astype(wide) @ x)


def block(s: Scene, plan: Any, do: Array, lse: Array, inner: Array, rows: slice, keys: slice) -> dict[str, Array]:
    """P, dZ and dS of some rows and keys, P and dS rounded as products read them."""
    at, w = s.at, s.wide
    z, keep, slope = s.part(keys)
    slope = np.broadcast_to(slope, z.shape)[:, :, rows]
    z, keep, row_lse = z[:, :, rows], np.broadcast_to(keep, z.shape)[:, :, rows], lse[:, :, rows, None]
    seen = keep & ~np.isneginf(row_lse)
    with np.errstate(all="ignore"):
        p = np.where(seen, power(at.recomputed(np.where(seen, z, w(0))) - finite(row_lse), plan.base2), w(0))
        if at.empty_back != 0:
            p = np.where(np.isneginf(row_lse), w(at.empty_back), p)
        p = at.probability_back(p).astype(w)
        dp = at.grad_weight(do[:, :, rows] @ s.v[:, :, keys].swapaxes(-1, -2))
        kept = None if s.kept is None else s.kept[:, :, rows, keys]
        through = p if kept is None else at.dropout(p, kept, w(s.rate)).astype(w)
        dp = dp if kept is None else at.dropped_gradient(dp, kept, w(s.rate)).astype(w)
        dz = np.where(seen | (at.empty_back != 0), p * (dp + inner[:, :, rows, None]), w(0))
        ds = at.grad_score(np.where(seen | (at.empty_back != 0), dz * slope, w(0)))
        tail = np.zeros((*p.shape[:3], 1), w)
        if at.tail_back and keys.stop == s.m:
            extra = at.tail_back * power(-row_lse, plan.base2) * inner[:, :, rows, None]
            tail = extra * w(0)
    low = plan.low_dtype(s.query.dtype)
    return {"p": through.astype(low), "ds": ds.astype(low), "dz": dz, "tail": tail}


def stored(s: Scene, plan: Any, grad_out: Array, out: Any, lse: Any, grad_lse: Array | None) -> dict[str, Array]:
    """The gradient of the stored steps: dS = P o (dP - rowsum(P o dP)) from the stored P, every result stored."""
    at, w = s.at, s.wide
    do, every = grad_out.astype(w), slice(0, s.m)
    p, _, _, lse = softmax(s, plan)
    _, keep, slope = s.part(every)
    with np.errstate(all="ignore"):
        pd = s.stored(dropped(s, p, every))
        dp = s.stored(at.grad_weight(do @ s.v.swapaxes(-1, -2)))
        if s.kept is not None:
            dp = s.stored(at.dropped_gradient(dp, s.kept, w(s.rate)).astype(w))
        inner = at.minus_delta((p * dp).sum(-1), w(s.rate))
        if grad_lse is not None:
            base = w(LN2) if s.options.get("lse_base") == 2 else w(1)
            inner = inner + at.grad_lse(np.where(np.isneginf(lse), w(0), grad_lse.astype(w) / base))
        dz = s.stored(np.where(keep, p * (dp + inner[..., None]), w(0)))
        ds = s.stored(at.grad_score(dz * slope))
        dq = s.stored(ds @ s.k * w(at.scale_query(s.scale)))
        dk = s.stored(ds.swapaxes(-1, -2) @ s.q * w(at.scale_key(s.scale)))
        dv = s.stored(pd.swapaxes(-1, -2) @ do)
        terms = None if s.sinks is None else power(s.sinks - lse, False) * inner
    return leaving(s, dq, dk, dv, dz, terms, do, np.isneginf(lse))


def leaving(
    s: Scene, dq: Array, dk: Array, dv: Array, dz: Array, terms: Array | None, do: Array, empty: Array
) -> dict[str, Array]:
    """Gradients of what came in: heads of a group summed, what is repeated along an axis summed along it."""
    at, dtype, heads, kv = s.at, s.query.dtype, s.q.shape[1], s.key.shape[1]
    if s.options.get("empty_row") == "uniform":
        dv = dv + np.where(empty[..., None], do, s.wide(0)).sum(2, keepdims=True) / s.wide(s.m)
    groups = [[h for h in range(heads) if at.group(h, heads, kv) == c] for c in range(kv)]
    with np.errstate(all="ignore"):
        dk, dv = (np.stack([at.grouped(x[:, g]) for g in groups], 1) for x in (dk, dv))
        found = {"dq": dq.astype(dtype), "dk": dk.astype(dtype), "dv": dv.astype(dtype)}
        if terms is not None:
            found["grad_sinks"] = at.grad_sink(terms).astype(dtype)
        if "alibi_slopes" in s.options:
            i, j = np.arange(s.n)[:, None], np.arange(s.m)[None, :]
            distance = np.asarray(at.distance(i, j, s._offsets()[1])).astype(s.wide)
            found["grad_alibi_slopes"] = -(dz * distance).sum((0, 2, 3)).astype(dtype)
        for name in ("attn_mask", "bias"):
            x = s.options.get(name)
            if x is not None and x.dtype != bool:
                axes = tuple(a for a in range(4) if x.shape[a] == 1)
                found[f"grad_{name}"] = at.reduced(dz, axes).astype(dtype)
    return at.grads(found)
