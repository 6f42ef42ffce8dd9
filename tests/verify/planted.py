"""A correct attention kernel in NumPy, and the faults that real kernels shipped, planted in it one at a time."""

from __future__ import annotations

import functools

import numpy as np

LN2 = np.log(2.0)

FORWARD = {
    # fault: (definition fields, kind of input)
    "heads tiled": ({}, "normal"),
    "no scale": ({}, "normal"),
    "scale 1/d": ({}, "normal"),
    "model width": ({}, "normal"),
    "top-left": ({"causal": "bottom-right"}, "normal"),
    "strict causal": ({"causal": "bottom-right"}, "normal"),
    "one future key": ({"causal": "top-left"}, "normal"),
    "causal per 4 rows": ({"causal": "top-left"}, "tall"),
    "window + 1": ({"causal": "bottom-right", "window": (3, 0)}, "normal"),
    "window - 1": ({"causal": "bottom-right", "window": (3, 0)}, "normal"),
    "softcap dropped": ({"softcap": 2}, "large"),
    "softcap after mask": ({"softcap": 2, "causal": "top-left"}, "large"),
    "alibi sign": ({"alibi": True, "causal": "bottom-right"}, "normal"),
    "alibi exponent": ({"alibi": True, "causal": "bottom-right"}, "normal"),
    "sink dropped": ({"sink": True}, "normal"),
    "sink not in the maximum": ({"sink": True}, "deep"),
    "mask after softmax": ({"causal": "top-left"}, "normal"),
    "mask -1e4": ({"causal": "bottom-right"}, "tall"),
    "mask -1e-9": ({"causal": "top-left"}, "normal"),
    "polarity": ({"attn_mask": "boolean"}, "normal"),
    "empty row nan": ({"causal": "bottom-right"}, "tall"),
    "empty row mean": ({"causal": "bottom-right"}, "tall"),
    "padded key": ({}, "normal"),
    "maximum with 0": ({}, "deep"),
    "no maximum": ({}, "deep"),
    "softmax over queries": ({}, "normal"),
    "lse base 2": ({}, "normal"),
    "lse without maximum": ({}, "normal"),
    "additive mask dropped": ({"attn_mask": "additive"}, "normal"),
    "a row wrong": ({}, "normal"),
    "accumulator of 16 bits": ({}, "normal"),
}  # fmt: skip

BACKWARD = {
    "dK without scale": ({}, "normal"),
    "dQ without scale": ({}, "normal"),
    "dQ times log2e": ({}, "normal"),
    "last head of the group": ({}, "normal"),
    "group by remainder": ({}, "normal"),
    "D omitted": ({}, "normal"),
    "mask ignored": ({"causal": "top-left"}, "normal"),
    "window + 1 backward": ({"causal": "bottom-right", "window": (3, 0)}, "normal"),
    "softcap derivative": ({"softcap": 2}, "large"),
    "dSink 0": ({"sink": True}, "normal"),
    "dSink of the last batch": ({"sink": True}, "normal"),
    "dLSE ignored": ({}, "normal"),
    "dMask of the last batch": ({"attn_mask": "additive", "mask_axes": "ij"}, "normal"),
    "empty row nan backward": ({"causal": "bottom-right"}, "tall"),
    "swapped dK dV": ({}, "normal"),
}


def kernel(fault: str | None = None):
    """The kernel with a fault, following the calling convention, with its backward."""
    f = functools.partial(forward, fault)
    f.backward = functools.partial(backward, fault)
    f.arrays = "numpy"
    return f


def _wide(x):
    return np.float64 if x.dtype == np.float64 else np.float32


def _heads(fault, query, x):
    heads, kv = query.shape[1], x.shape[1]
    h = np.arange(heads)
    return h % kv if fault == "heads tiled" else h // (heads // kv)


def scores(fault, query, key, o, *, back=False):
    """Scores after softcap, bias and ALiBi, where they may be seen, and the derivative of the softcap."""
    w = _wide(query)
    n, m, d = query.shape[2], key.shape[2], query.shape[3]
    scale = o.get("scale") or d**-0.5
    scale = {"no scale": 1.0, "scale 1/d": 1 / d, "model width": (d * query.shape[1]) ** -0.5}.get(fault, scale)
    q, k = query.astype(w), key.astype(w)[:, _heads(fault, query, key)]
    s = (q @ k.swapaxes(-1, -2)) * w(scale)
    i, j = np.arange(n)[:, None], np.arange(m)[None, :]
    bottom = m - n
    offset = bottom if o.get("causal_alignment") == "bottom-right" and fault != "top-left" else 0
    keep = np.ones(s.shape, bool)
    if o.get("is_causal") and not (back and fault == "mask ignored"):
        last = i + offset
        last = {"strict causal": last - 1, "one future key": last + 1, "causal per 4 rows": 4 * (i // 4) + 3}.get(fault, last)
        keep &= j <= last
    if "window" in o:
        left, right = o["window"]
        left += {"window + 1": 1, "window - 1": -1}.get(fault, 0) + (back and fault == "window + 1 backward")
        distance = i + offset - j
        keep &= (distance < left) & ((-distance <= right) | (right < 0))
    mask = o.get("attn_mask")
    if mask is not None and mask.dtype == bool:
        keep &= ~mask if fault == "polarity" else mask
    slope = np.ones((), w)
    if "softcap" in o and fault != "softcap dropped":
        cap = w(o["softcap"])
        if fault == "softcap after mask":
            s = np.where(keep, s, w(-np.inf))
            keep = np.ones(s.shape, bool)
        t = np.tanh(s / cap)
        s, slope = cap * t, 1 - t * t
        if fault == "softcap derivative":
            slope = np.ones((), w)
    if "alibi_slopes" in o:
        slopes = o["alibi_slopes"].astype(w)
        slopes = {"alibi sign": -slopes, "alibi exponent": 2 * slopes}.get(fault, slopes)
        s = s - slopes[None, :, None, None] * (i + bottom - j).astype(w)
    if mask is not None and mask.dtype != bool:
        add = mask.astype(w)
        keep = keep & (add != -np.inf)
        if fault != "additive mask dropped":
            s = s + np.where(add == -np.inf, w(0), add)
    return s, keep, slope, w(scale)


def forward(fault, query, key, value, **o):
    w = _wide(query)
    s, keep, _, _ = scores(fault, query, key, o)
    v = value.astype(w)[:, _heads(fault, query, value)]
    low = {"mask -1e4": -1e4, "mask -1e-9": -1e-9}.get(fault, -np.inf)
    z = np.where(keep, s, w(low)) if fault != "mask after softmax" else s
    axis = 2 if fault == "softmax over queries" else 3
    m = z.max(axis, keepdims=True)
    sink = o["sinks"].astype(w)[None, :, None, None] if "sinks" in o and fault != "sink dropped" else None
    if sink is not None and fault != "sink not in the maximum":
        m = np.maximum(m, sink)
    m = {"maximum with 0": np.maximum(m, w(0)), "no maximum": np.zeros_like(m)}.get(fault, m)
    safe = np.where(np.isneginf(m), w(0), m)
    with np.errstate(all="ignore"):
        e = np.exp(z - safe)
        total = e.sum(axis, keepdims=True)
        if sink is not None:
            total = total + np.exp(sink - safe)
        if fault == "padded key":
            total = total + np.exp(w(0) - safe)
        p = e / np.where((total == 0) & (fault != "maximum with 0") & (fault != "no maximum"), w(1), total)
        if fault == "mask after softmax":
            p = np.where(keep, p, w(0))
        if fault == "accumulator of 16 bits":
            out = np.zeros((*p.shape[:3], v.shape[-1]), np.float16)
            for j in range(p.shape[-1]):
                out = (out + (p[..., j, None] * v[..., j, None, :])).astype(np.float16)
        else:
            out = p @ np.where(np.isfinite(v), v, w(0))
        lse = (safe + np.log(total))[..., 0] if axis == 3 else np.log(np.exp(z).sum(3))
    empty = ~keep.any(-1) & (sink is None) & (fault not in ("mask -1e4", "mask -1e-9", "softcap after mask"))
    lse = np.where(empty, w(-np.inf), lse)
    if fault == "lse base 2":
        lse = lse / w(LN2)
    if fault == "lse without maximum":
        lse = lse - safe[..., 0]
    if fault == "empty row nan":
        out = np.where(empty[..., None], w(np.nan), out)
    if fault == "empty row mean":
        out = np.where(empty[..., None], v.mean(2, keepdims=True), out)
    if fault == "a row wrong":
        out[0, 0, 1] = out[0, 0, 2]
    return out.astype(query.dtype), lse.astype(w)


def backward(fault, query, key, value, grad_out, out, lse, grad_lse, **o):
    w = _wide(query)
    s, keep, slope, scale = scores(fault, query, key, o, back=True)
    kv = _heads(fault, query, key)
    q, k, v, do = query.astype(w), key.astype(w)[:, kv], value.astype(w)[:, kv], grad_out.astype(w)
    empty = np.isneginf(lse)[..., None]
    with np.errstate(all="ignore"):
        p = np.where(keep & ((~empty) | (fault == "empty row nan backward")), np.exp(s - lse[..., None]), w(0))
        if fault == "empty row nan backward":
            p = np.where(empty, w(np.nan), p)
        delta = (do * out.astype(w)).sum(-1, keepdims=True)
        dl = grad_lse.astype(w)[..., None]
        inner = -np.where(fault == "D omitted", w(0), delta) + np.where(fault == "dLSE ignored", w(0), dl)
        dz = p * (do @ v.swapaxes(-1, -2) + inner)
        dz = dz if fault == "empty row nan backward" else np.where(p == 0, w(0), dz)
        ds = dz * slope
        dq = ds @ k * (w(1) if fault == "dQ without scale" else scale * w(1 / LN2) if fault == "dQ times log2e" else scale)
        dk = ds.swapaxes(-1, -2) @ q * (w(1) if fault == "dK without scale" else scale)
        dv = p.swapaxes(-1, -2) @ do
    g = query.shape[1] // key.shape[1]
    groups = [[h for h in range(query.shape[1]) if h // g == c] for c in range(key.shape[1])]
    if fault == "last head of the group":
        groups = [group[-1:] for group in groups]
    if fault == "group by remainder":
        groups = [[h for h in range(query.shape[1]) if h % key.shape[1] == c] for c in range(key.shape[1])]
    dk, dv = (np.stack([x[:, group].sum(1) for group in groups], 1) for x in (dk, dv))
    if fault == "swapped dK dV":
        dk, dv = dv, dk
    found = {"dq": dq.astype(query.dtype), "dk": dk.astype(query.dtype), "dv": dv.astype(query.dtype)}
    if "sinks" in o:
        terms = np.exp(o["sinks"].astype(w)[None, :, None] - lse) * (dl - delta)[..., 0]
        dsink = terms[-1].sum(-1) if fault == "dSink of the last batch" else terms.sum((0, 2))
        found["grad_sinks"] = (np.zeros_like(dsink) if fault == "dSink 0" else dsink).astype(query.dtype)
    mask = o.get("attn_mask")
    if mask is not None and mask.dtype != bool:
        spread = dz[-1:] if fault == "dMask of the last batch" else dz
        axes = tuple(a for a in range(4) if mask.shape[a] == 1)
        found["grad_attn_mask"] = spread.sum(axes, keepdims=True).astype(query.dtype)
    return found
