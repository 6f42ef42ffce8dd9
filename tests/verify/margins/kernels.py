"""A correct tiled kernel in float32 inside, with one property of its arithmetic that can be made worse."""

from __future__ import annotations

from itertools import pairwise

import ml_dtypes
import numpy as np

from symattn.verify.inputs import KINDS, fields_for, fitted
from symattn.verify.judge import run_case
from symattn.verify.kernels.registry import resolve
from symattn.verify.reference import Reference

F32 = np.float32


def kernel(*, scale=1.0, gain=1.0, exp=0.0, bias=0.0, lost=None, tiles=None, buffer=None, unscaled=False, dq_gain=1.0):
    """The kernel.

    ``scale`` and ``gain`` are factors of scores and output; ``exp`` the relative error of the exponential, of changing signs,
    and ``bias`` one that grows with the distance from the maximum; ``lost`` a pair (query, key) that is not seen; ``tiles`` so
    many tiles of keys whose sum grows in the input's dtype; ``buffer`` the dtype in which dQ grows over two tiles,
    ``dq_gain`` a factor of it.
    """

    def weights(query, key):
        group = query.shape[1] // key.shape[1]
        s = query.astype(F32) @ key.astype(F32).repeat(group, 1).swapaxes(2, 3)
        s = s * F32(scale * (1 if unscaled else query.shape[3] ** -0.5))
        if lost is not None:
            s[:, :, lost[0], lost[1]] = -np.inf
        top = s.max(3, keepdims=True)
        e = np.exp(s - top)
        e = e * (1 + F32(exp) * np.sign(np.sin(40 * np.where(np.isfinite(s), s, 0))).astype(F32))
        e = e * (1 - F32(bias) * (top - np.where(np.isfinite(s), s, top)).astype(F32))
        return e.astype(F32), top

    def forward(query, key, value, enable_gqa=False):
        v = value.astype(F32).repeat(query.shape[1] // key.shape[1], 1)
        e, top = weights(query, key)
        total, low = e.sum(3, keepdims=True), e.astype(query.dtype).astype(F32)
        if tiles is None:
            number = low @ v
        else:
            edges = np.linspace(0, key.shape[2], tiles + 1).astype(int)
            number = np.zeros((*low.shape[:3], v.shape[3]), query.dtype)
            for a, b in pairwise(edges):
                number = (number.astype(F32) + low[..., a:b] @ v[:, :, a:b]).astype(query.dtype)
            number = number.astype(F32)
        return (F32(gain) * number / total).astype(query.dtype), (np.log(total) + top)[..., 0]

    def backward(query, key, value, grad_out, *, out, lse, grad_lse=None, enable_gqa=False):
        group = query.shape[1] // key.shape[1]
        q, k, v, do = (x.astype(F32) for x in (query, key, value, grad_out))
        k, v = k.repeat(group, 1), v.repeat(group, 1)
        c = F32(query.shape[3] ** -0.5)
        p = np.exp(q @ k.swapaxes(2, 3) * c - lse[..., None])
        d = (do * out.astype(F32)).sum(3, keepdims=True)
        extra = 0 if grad_lse is None else grad_lse.astype(F32)[..., None]
        ds = (p * (do @ v.swapaxes(2, 3) - d + extra)).astype(query.dtype).astype(F32)
        if buffer is None:
            dq = ds @ k * c
        else:
            half, dq = key.shape[2] // 2, np.zeros(q.shape, buffer)
            for part in (slice(None, half), slice(half, None)):
                dq = (dq.astype(F32) + ds[..., part] @ k[:, :, part] * c).astype(buffer)
        dk, dv = (ds.swapaxes(2, 3) @ q * c), p.astype(query.dtype).astype(F32).swapaxes(2, 3) @ do
        add = lambda x: x.reshape(x.shape[0], key.shape[1], group, *x.shape[2:]).sum(2).astype(query.dtype)
        return (F32(dq_gain) * dq).astype(query.dtype), add(dk), add(dv)

    forward.backward = backward
    forward.arrays = "numpy"
    return forward


def log_probabilities(gain=1.0, **attributes):
    """A kernel whose weights are exponentials of scores less the rounded log-sum-exp; correct with a gain of 1."""

    def run(query, key, value, enable_gqa=False):
        key, value = (x.repeat(query.shape[1] // key.shape[1], 1) for x in (key, value))
        s = query @ key.swapaxes(2, 3) * F32(query.shape[3] ** -0.5)
        lse = np.logaddexp.reduce(s, 3, keepdims=True)
        return F32(gain) * (np.exp(s - lse) @ value), lse[..., 0]

    run.arrays = "numpy"
    for name, x in attributes.items():
        setattr(run, name, x)
    return run


def seen_of(function, definition, dtype, kinds, *, shape=None, backward=False, arithmetic=None, seed=0):
    """What is observed of a kernel on some kinds of input."""
    seen = []
    for kind in (k for k in KINDS if k.name in kinds):
        fields = fields_for(definition, fitted(definition, shape or kind.shape), dtype, seed, kind)
        run_case(resolve(function), Reference(definition, fields), kind.name, backward=backward, arithmetic=arithmetic, seen=seen)
    return seen


BF16 = ml_dtypes.bfloat16
