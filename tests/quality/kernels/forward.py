"""Forward passes in several algorithms: step by step, by log-probabilities, three passes, tiles, splits that are combined."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.quality.kernels.points import LN2
from tests.quality.kernels.scene import Array, Scene


def slices(length: int, tile: int, *, backwards: bool = False) -> list[slice]:
    """Parts of at most ``tile``."""
    found = [slice(a, min(a + tile, length)) for a in range(0, length, tile)]
    return found[::-1] if backwards else found


def power(x: Array, base2: bool) -> Array:
    """e^x, or 2^(x log2 e) as kernels compute it on hardware that has only exp2."""
    with np.errstate(all="ignore"):
        return np.exp2(x * x.dtype.type(1 / LN2)) if base2 else np.exp(x)


def finite(top: Array) -> Array:
    """A maximum to subtract: 0 where there is none."""
    return np.where(np.isneginf(top), top.dtype.type(0), top)


def weighted(s: Scene, p: Array, v: Array, before: Array | None = None) -> Array:
    """P V added to what there is, P rounded as declared."""
    at = s.at
    with np.errstate(all="ignore"):
        p = at.probability(p).astype(s.wide)
        v = at.values(v, p)
        if at.accumulator is None:
            return p @ v if before is None else before + p @ v
        total = np.zeros((*p.shape[:3], v.shape[-1]), at.accumulator) if before is None else before.astype(at.accumulator)
        for j in range(p.shape[-1]):
            total = (total.astype(s.wide) + p[..., j, None] * v[..., j, None, :]).astype(at.accumulator)
        return total.astype(s.wide)


def dropped(s: Scene, p: Array, keys: slice) -> Array:
    """Weights after dropout; zero keys behind the last one are kept."""
    if s.kept is None:
        return p
    kept = s.kept[..., keys]
    kept = np.concatenate([kept, np.ones((*kept.shape[:3], p.shape[-1] - kept.shape[-1]), bool)], -1)
    return s.at.dropout(p, kept, s.wide(s.rate)).astype(s.wide)


def read(s: Scene, keys: slice) -> tuple[Array, Array]:
    """Masked scores and values of some keys, with the zero keys that a wrong kernel takes along at the end."""
    z, v = s.masked(keys), s.v[:, :, keys]
    if s.at.pad and keys.stop == s.m:
        z = np.concatenate([z, np.zeros((*z.shape[:3], s.at.pad), s.wide)], -1)
        v = np.concatenate([v, np.zeros((*v.shape[:2], s.at.pad, v.shape[3]), s.wide)], 2)
    return z, v


def finish(s: Scene, out: Array, total: Array, lse: Array) -> tuple[Array, Array]:
    """Output and LSE in the dtypes that leave, rows without keys as asked for."""
    at, o = s.at, s.options
    empty = (total == 0) & np.isneginf(lse)
    filler = {"nan": lambda out, v: out * np.nan, "uniform": lambda out, v: v.mean(2, keepdims=True) + 0 * out}
    with np.errstate(all="ignore"):
        out = np.where(empty[..., None], filler.get(o.get("empty_row", "zero"), at.empty)(out, s.v), out)
        lse = np.where(empty, s.wide(at.empty_lse), lse)
        if at.sink_gate:
            b = o["sinks"].astype(s.wide)[None, :, None]
            out, lse = out / (1 + np.exp(b - lse))[..., None], np.logaddexp(lse, b)
        lse = at.lse_out(lse / s.wide(LN2) if o.get("lse_base") == 2 else lse)
        return at.out(out).astype(s.query.dtype), lse.astype(s.wide)


def eager(s: Scene, plan: Any) -> tuple[Array, Array]:
    """One operation after the other, P divided before it meets V."""
    p, _, total, lse = softmax(s, plan)
    out = weighted(s, s.stored(dropped(s, p, slice(0, s.m))), read(s, slice(0, s.m))[1])
    return finish(s, s.stored(out), total, lse)


def softmax(s: Scene, plan: Any) -> tuple[Array, Array, Array, Array]:
    """Weights, maximum, sum and LSE over all keys at once."""
    at = s.at
    z, _ = read(s, slice(0, s.m))
    with np.errstate(all="ignore"):
        top = at.maximum(np.maximum(z.max(at.axis), s.wide(at.start)) if at.axis == -1 else z.max(at.axis, keepdims=True))
        if s.sinks is not None and at.sink_in_maximum:
            top = np.maximum(top, s.sinks)
        safe = finite(top)
        e = at.exp(power(z - (safe[..., None] if at.axis == -1 else safe), plan.base2))
        total = e.sum(at.axis, keepdims=True)[..., 0] if at.axis == -1 else e.sum(at.axis, keepdims=True)
        if s.sinks is not None:
            total = total + power(s.sinks - safe, plan.base2)
        total = at.total(total)
        p = e / np.where(no_key(total, z, s), s.wide(1), total)[..., None] if at.axis == -1 else e / total
        keep = s.part(slice(0, s.m))[1]
        if plan.algorithm == "log":
            p = power(z - finite(at.lse(safe, total))[..., None], plan.base2)
        p = s.stored(at.weights_after(p, keep) if keep.shape == p.shape else p)
        if at.axis != -1:
            top, total = z.max(-1), np.exp(z - finite(z.max(-1))[..., None]).sum(-1)
        lse = np.where(no_key(total, z, s), s.wide(-np.inf), at.lse(finite(top), total))
    return p, top, total, lse


def no_key(total: Array, z: Array, s: Scene) -> Array:
    """Rows that see no key and have no sink: the only ones whose sum may be 0 in a correct kernel."""
    return (total == 0) & (z == -np.inf).all(-1) & (s.sinks is None)


def three_pass(s: Scene, plan: Any) -> tuple[Array, Array]:
    """The maximum of all tiles, then the sum, then normalised weights times V."""
    at, tiles = s.at, slices(s.m, plan.tile)
    top = np.full(s.q.shape[:3], at.start, s.wide)
    for keys in tiles:
        top = np.maximum(top, at.maximum(read(s, keys)[0].max(-1)))
    if s.sinks is not None and at.sink_in_maximum:
        top = np.maximum(top, s.sinks)
    safe = finite(top)
    with np.errstate(all="ignore"):
        total = np.zeros_like(top) if s.sinks is None else power(s.sinks - safe, plan.base2) + np.zeros_like(top)
        for keys in tiles:
            total = at.total(total + at.exp(power(read(s, keys)[0] - safe[..., None], plan.base2)).sum(-1))
        out = np.zeros((*top.shape, s.v.shape[-1]), s.wide)
        whole = np.where((total == 0) & np.isneginf(top), s.wide(1), total)
        for keys in tiles:
            z, v = read(s, keys)
            p = at.exp(power(z - safe[..., None], plan.base2)) / whole[..., None]
            out = weighted(s, dropped(s, p, keys), v, out)
        lse = np.where((total == 0) & np.isneginf(top), s.wide(-np.inf), at.lse(safe, total))
    return finish(s, out, total, lse)


def online(s: Scene, plan: Any) -> tuple[Array, Array]:
    """Tile after tile with a running maximum; it may lag by ``plan.stale`` before everything is rescaled."""
    out, total, lse = run(s, plan, slice(0, s.m), s.sinks)
    return finish(s, out, total, lse)


def run(s: Scene, plan: Any, span: slice, sinks: Array | None) -> tuple[Array, Array, Array]:
    """The online softmax over a span of keys: normalised output, sum and LSE, all wide."""
    at, w, rows = s.at, s.wide, s.q.shape[:3]
    top, total = np.full(rows, at.start, w), np.zeros(rows, w)
    out = np.zeros((*rows, s.v.shape[-1]), w)
    if sinks is not None and at.sink_in_maximum:
        top, total = np.maximum(top, sinks), np.ones(rows, w)
    tiles = slices(span.stop - span.start, plan.tile, backwards=plan.backwards)
    with np.errstate(all="ignore"):
        for t, part in enumerate(tiles):
            keys = slice(part.start + span.start, part.stop + span.start)
            if at.skip_tile(t, len(tiles)):
                continue
            z, v = read(s, keys)
            new = np.maximum(top, at.maximum(z.max(-1)))
            if plan.stale:
                new = np.where((new - top <= w(plan.stale)) & ~np.isneginf(top), top, new)
            seen = np.maximum(top, z.max(-1))
            if at.zeroed_maximum:
                new = np.where(np.isneginf(new), w(0), new)
            used = finite(new)
            e = at.exp(power(z - at.frame(used, finite(seen))[..., None], plan.base2))
            shrink = np.where(np.isneginf(top), w(0), at.rescale(finite(top), used))
            shrink_sum = np.where(np.isneginf(top), w(0), at.rescale_sum(finite(top), used))
            total = at.total(total * shrink_sum + e.sum(-1))
            out = weighted(s, dropped(s, e, keys), v, out * shrink[..., None])
            out = out if at.partial is None else out.astype(at.partial).astype(w)
            top = new
        if sinks is not None and not at.sink_in_maximum:
            total = total + power(sinks - finite(top), plan.base2)
        none = (total == 0) & (np.isneginf(top) | ((z == -np.inf).all(-1) & at.zeroed_maximum))
        out = out / np.where(none, w(1), total)[..., None]
        lse = np.where(none, w(-np.inf), at.lse(finite(top), total))
    return out, total, lse


def split(s: Scene, plan: Any) -> tuple[Array, Array]:
    """Every span of keys by itself; the outputs are combined by their LSE. The sink joins at the end."""
    at, w = s.at, s.wide
    parts = [run(s, plan, span, None) for span in slices(s.m, max(1, -(-s.m // plan.splits)))]
    lses = np.stack([lse for _, _, lse in parts])
    if s.sinks is not None:
        lses = np.concatenate([lses, np.broadcast_to(s.sinks, lses[:1].shape)])
    with np.errstate(all="ignore"):
        top = finite(lses.max(0))
        whole = at.lse(top, np.exp(lses - top).sum(0))
        none = np.isneginf(lses).all(0)
        weights = at.combine(lses, np.where(none, w(0), whole))
        out = sum(weights[k][..., None] * o for k, (o, _, _) in enumerate(parts))
        total = np.where(none, w(0), w(1))
    return finish(s, np.asarray(out), total, np.where(none, w(-np.inf), whole))


ALGORITHMS = {"eager": eager, "log": eager, "three-pass": three_pass, "online": online, "split": split}
