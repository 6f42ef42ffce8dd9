"""The emulated forward pass: an online softmax over tiles of keys, every named step as the machine holds it."""

from __future__ import annotations

import numpy as np

from symattn import formats
from symattn.intake import Array
from symattn.verify.emulators.machine import Machine, round_to
from symattn.verify.kernels.flash import LN2, Setting


def spread(x: Array, s: Setting) -> Array:
    """Keys or values (B, H_kv, m, .) in float64, for every query head."""
    return np.asarray(x.astype(np.float64)[:, s.kv_head])


def part(x: Array, keys: slice, rows: tuple[int, ...]) -> Array:
    """The columns of something broadcastable to (B, H, n, m)."""
    cut = x[..., keys] if x.shape[-1] > 1 else x
    return np.broadcast_to(cut, (*rows, keys.stop - keys.start))


def scores(q: Array, k: Array, s: Setting, machine: Machine, keys: slice) -> tuple[Array, Array]:
    """Scores of a tile before masking, and the derivative of the softcap."""
    rows = q.shape[:3]
    with np.errstate(all="ignore"):
        z = machine("score", machine("raw", _products(q, k[:, :, keys], machine)) * s.scale)
        slope = np.ones((), np.float64)
        if s.softcap is not None:
            t = np.tanh(z / s.softcap)
            z, slope = s.softcap * t, 1 - t * t
        if s.slopes is not None and s.distance is not None:
            z = z - s.slopes.astype(np.float64)[None, :, None, None] * part(s.distance.astype(np.float64), keys, rows)
        if s.add is not None:
            add, keep = part(s.add.astype(np.float64), keys, rows), part(s.keep, keys, rows)
            z = z + np.where(np.isneginf(add) & ~keep, 0.0, add)  # what drops a key is the mask, and not a score
    return z, slope


def _products(q: Array, k: Array, machine: Machine) -> Array:
    """``q @ k^T``, after every channel as the machine holds it."""
    if "dot" not in machine.rounded:
        return np.asarray(q @ k.swapaxes(-1, -2))
    total = np.zeros((*q.shape[:3], k.shape[2]))
    for c in range(q.shape[3]):
        term = q[..., c, None] * k[..., None, :, c]
        total = machine("dot", total + (machine("dot_term", term) if "dot_term" in machine.rounded else term))
    return total


def product(weights: Array, x: Array, *, multiplies: bool) -> Array:
    """``weights @ x``; a weight of 0 leaves its value out unless it ``multiplies``."""
    if multiplies or np.isfinite(x).all():
        return np.asarray(weights @ x)
    terms = np.where(weights[..., None] == 0, 0.0, weights[..., None] * x[..., None, :, :])
    return np.asarray(terms.sum(-2))


def forward(query: Array, key: Array, value: Array, s: Setting, machine: Machine) -> tuple[Array, Array]:
    """Output (B, H, n, dv) and LSE (B, H, n) in float64.

    >>> q, k, v = np.zeros((1, 1, 1, 2)), np.zeros((1, 1, 2, 2)), np.array([[[[1.0], [3.0]]]])
    >>> out, lse = forward(q, k, v, Setting(np.ones((1, 1, 1, 2), bool), np.array([0]), 1.0), Machine())
    >>> out.item(), round(lse.item(), 6)
    (2.0, 0.693147)
    """
    q, k, v = query.astype(np.float64), spread(key, s), spread(value, s)
    rows, sinks = q.shape[:3], None if s.sinks is None else s.sinks.astype(np.float64)[None, :, None]
    top, total = np.full(rows, machine.start), np.zeros(rows)
    out = np.zeros((*rows, v.shape[3]))
    if machine.known_maximum:
        every = slice(0, k.shape[2])
        top = np.maximum(top, _masked(scores(q, k, s, machine, every)[0], s, machine, every).max(-1))
    if sinks is not None and not machine.sink_outside:
        top = np.maximum(top, sinks)
        total = np.exp(sinks - top)
    with np.errstate(all="ignore"):
        for keys in machine.tiles(k.shape[2]):
            z = _masked(scores(q, k, s, machine, keys)[0], s, machine, keys)
            new, frame = _shifted(top, z, machine)
            step = np.where(np.isneginf(top), 0.0, top - _finite(new))
            e = machine("exp", np.exp(z - frame[..., None]))
            total = machine("sum", total * machine("rescale", np.exp(step * machine.grown_sum)) + e.sum(-1))
            if machine.normalised:
                e = e / np.where(total == 0, 1.0, total)[..., None]
            weights = machine("weight", np.minimum(_dropped(e, s, keys, rows), machine.clip))
            grown = out * machine("rescale", np.exp(step * machine.grown_output))[..., None]
            out = machine("partial", _added(grown, weights, v[:, :, keys], machine))
            top = new
        if sinks is not None and machine.sink_outside:
            total = machine("sum", total + machine("exp", np.exp(sinks - _finite(top))))
        return _finished(out, total, top, v, s, machine)


def _masked(z: Array, s: Setting, machine: Machine, keys: slice) -> Array:
    keep = part(s.keep, keys, z.shape[:3])
    if machine.soft is not None:
        return np.where(keep, z, np.where(part(machine.soft, keys, z.shape[:3]), machine.masked, -np.inf))
    if machine.adds:
        return np.where(keep, z, round_to(z + machine.masked, formats.get(machine.range)))
    return np.where(keep, z, machine.masked)


def _finite(top: Array) -> Array:
    return np.where(np.isneginf(top), 0.0, top)


def _shifted(top: Array, z: Array, machine: Machine) -> tuple[Array, Array]:
    """The maximum after a tile, and what its scores are measured from."""
    if machine.shift == "nothing":
        return np.zeros_like(top), np.zeros_like(top)
    seen = np.maximum(top, z.max(-1))
    if machine.shift == "not below 0":
        seen = np.maximum(seen, 0.0)
    if machine.stuck:
        seen = np.where(np.isneginf(seen), 0.0, seen)
    kept = (seen - top <= machine.lag) & ~np.isneginf(top)
    new = np.where(kept, top, seen) if machine.lag else seen
    frame = seen if machine.ahead else new
    return new, frame if machine.bare else _finite(frame)


def _dropped(p: Array, s: Setting, keys: slice, rows: tuple[int, ...]) -> Array:
    if s.dropout is None:
        return p
    return np.where(part(s.dropout, keys, rows), p / (1 - s.dropout_p), 0.0)


def _added(out: Array, weights: Array, v: Array, machine: Machine) -> Array:
    """The output with a tile added, after every key as the machine holds it."""
    if "term" not in machine.rounded:
        return out + product(weights, v, multiplies=machine.multiplies)
    for j in range(v.shape[2]):
        out = machine("term", out + weights[..., j, None] * v[..., j, None, :])
    return out


def _finished(out: Array, total: Array, top: Array, v: Array, s: Setting, machine: Machine) -> tuple[Array, Array]:
    """Divided by the sum; rows without keys as the definition or the fault has it."""
    empty = (total == 0) & ~part(s.keep, slice(0, v.shape[2]), top.shape).any(-1)
    nothing = empty & (machine.shift == "maximum")
    lse = np.where(nothing, -np.inf, _finite(top) + np.log(total))
    whole = nothing | machine.normalised | ((total == 0) & machine.guarded)
    out = out / np.where(whole, 1.0, total)[..., None]
    kind = machine.empty or s.empty_row
    filler = {"nan": np.full_like(out, np.nan), "uniform": np.broadcast_to(v.mean(2, keepdims=True), out.shape)}
    out = np.where(empty[..., None], filler.get(kind, out), out)
    return machine("out", out), machine("lse", lse / LN2 if s.base2 else lse)
