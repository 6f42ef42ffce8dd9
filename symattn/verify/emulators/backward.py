"""The emulated backward pass from a saved output and LSE, every named step as the machine holds it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from symattn.intake import Array
from symattn.verify.emulators.forward import part, product, scores, spread
from symattn.verify.emulators.machine import Machine
from symattn.verify.kernels.flash import LN2, Setting


def backward(
    query: Array,
    key: Array,
    value: Array,
    grad_out: Array,
    out: Array,
    lse: Array,
    grad_lse: Array | None,
    s: Setting,
    machine: Machine,
) -> dict[str, Array]:
    """Gradients in float64: ``grad_query grad_key grad_value``, ``score`` (B, H, n, m), and if there are any ``slopes``
    and ``sinks``.

    With one key nothing depends on the score:

    >>> x = np.ones((1, 1, 1, 2))
    >>> s = Setting(np.ones((1, 1, 1, 1), bool), np.array([0]), 1.0)
    >>> g = backward(x, x, x, x, x, np.full((1, 1, 1), 2.0), None, s, Machine())
    >>> g["grad_query"].tolist(), g["grad_value"].tolist()
    ([[[[0.0, 0.0]]]], [[[[1.0, 1.0]]]])
    """
    q, k, v, do = query.astype(np.float64), spread(key, s), spread(value, s), grad_out.astype(np.float64)
    base = LN2 if s.base2 else 1.0
    rows, m = q.shape[:3], k.shape[2]
    with np.errstate(all="ignore"):
        lse = machine("saved_lse", lse.astype(np.float64) * base)
        empty = np.isneginf(lse)
        inner = -machine("delta", np.where(empty, 0.0, (do * out.astype(np.float64)).sum(-1)))
        if grad_lse is not None:
            inner = inner + np.where(empty, 0.0, grad_lse.astype(np.float64) / base)
        dq, dk, dv = np.zeros_like(q), np.zeros_like(k), np.zeros_like(v)
        dz = np.zeros((*rows, m))
        for keys, at in _blocks(machine, q.shape[2], m):
            d, ds, p = _block(q, k, v, do, lse, inner, s, machine, keys)
            d, ds, p = d[:, :, at], ds[:, :, at], p[:, :, at]
            near = _before(keys) if machine.stale_keys and keys.start else keys
            dq_part = product(ds, k[:, :, near], multiplies=False) * s.scale
            if machine.tail and keys.stop == m:
                dq_part = dq_part + (machine("exp", np.exp(-lse)) * inner * 0.0)[:, :, at, None]
            dq[:, :, at] = machine("grad_query", dq[:, :, at] + dq_part)
            down = ds.swapaxes(-1, -2)
            dk[:, :, keys] = machine("grad_key", dk[:, :, keys] + product(down, q[:, :, at], multiplies=False) * s.scale)
            dv[:, :, keys] = machine("grad_key", dv[:, :, keys] + product(p.swapaxes(-1, -2), do[:, :, at], multiplies=False))
            dz[:, :, at, keys] = d
        found = {"grad_query": dq, "grad_key": _grouped(dk, key, s), "grad_value": _grouped(dv, value, s), "score": dz}
        if s.empty_row == "uniform":
            share = np.where(empty[..., None], do, 0.0).sum(2, keepdims=True) / m
            found["grad_value"] = _grouped(dv + share, value, s)
        if s.slopes is not None and s.distance is not None:
            found["slopes"] = -(dz * s.distance.astype(np.float64)).sum((0, 2, 3))
        if s.sinks is not None:
            terms = np.exp(s.sinks.astype(np.float64)[None, :, None] - lse) * inner
            found["sinks"] = _summed(terms, machine)
    return found


def _blocks(machine: Machine, n: int, m: int) -> Iterator[tuple[slice, slice]]:
    """Tiles of keys, within each the tiles of queries."""
    return ((keys, rows) for keys in machine.tiles(m) for rows in machine.query_tiles(n))


def _before(keys: slice) -> slice:
    return slice(keys.start - (keys.stop - keys.start), keys.start)


def _block(
    q: Array, k: Array, v: Array, do: Array, lse: Array, inner: Array, s: Setting, machine: Machine, keys: slice
) -> tuple[Array, Array, Array]:
    """dZ, dS and the weights of dV for a tile of keys, all rows."""
    rows = q.shape[:3]
    z, slope = scores(q, k, s, machine, keys)
    seen = part(s.keep, keys, rows) & ~np.isneginf(lse)[..., None]
    recomputed = machine("recomputed", np.where(seen, z, 0.0))
    p = np.where(seen, machine("exp", np.exp(recomputed - np.where(np.isneginf(lse), 0.0, lse)[..., None])), 0.0)
    dp = machine("grad_weight", do @ v[:, :, keys].swapaxes(-1, -2))
    through = p
    if s.dropout is not None:
        kept = part(s.dropout, keys, rows)
        through, dp = (np.where(kept, x / (1 - s.dropout_p), 0.0) for x in (p, dp))
    dz = np.where(p == 0, 0.0, p * (dp + inner[..., None]))
    ds = np.where(p == 0, 0.0, dz * slope)
    if machine.empty_gradient != 0:
        empty = np.isneginf(lse)[..., None]
        if machine.empty_in != "scores":
            through = np.where(empty, machine.empty_gradient, through)
        if machine.empty_in != "values":
            dz, ds = (np.where(empty, machine.empty_gradient, x) for x in (dz, ds))
    return dz, ds, through


def _grouped(x: Array, like: Array, s: Setting) -> Array:
    """The gradients of query heads added to that of their key/value head."""
    found = np.zeros(like.shape)
    for h, kv in enumerate(s.kv_head):
        found[:, kv] += x[:, h]
    return found


def _summed(terms: Array, machine: Machine) -> Array:
    """Summed over batch and queries; where the terms are rounded, so is every partial sum."""
    if "sink_terms" not in machine.rounded:
        return np.asarray(terms.sum((0, 2)))
    total = np.zeros(terms.shape[1])
    for row in np.moveaxis(terms, 1, -1).reshape(-1, terms.shape[1]):
        total = machine("sink_terms", total + machine("sink_terms", row))
    return total
