"""The linear family from its recurrence, in plain loops over any numbers; nothing of symattn is in it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


def elu_plus_one(x: Any, exp: Callable[[Any], Any] = np.exp) -> Any:
    return np.vectorize(lambda v: v + 1 if v > 0 else exp(v), otypes=[getattr(x, "dtype", object)])(x)


def recurrence(
    q: Any, k: Any, v: Any, decay: Any = None, beta: Any = None, state: Any = None, scale: Any = 1, normalized: bool = False
) -> Any:
    """One head: ``state = decay[t] * state``, then ``state += k (v or beta (v - k state))``, then ``q state``.

    ``decay`` is (n, d): the factor of each step and key channel.
    """
    n, d = q.shape
    zero = q.flat[0] * 0
    s = np.full((d, v.shape[1]), zero, dtype=q.dtype) if state is None else np.array(state)
    total = np.full(d, zero, dtype=q.dtype)
    out = np.empty((n, v.shape[1]), dtype=q.dtype)
    for t in range(n):
        if decay is not None:
            s, total = s * decay[t][:, None], total * decay[t]
        new = v[t] if beta is None else beta[t] * (v[t] - k[t] @ s)
        s, total = s + k[t][:, None] * new[None, :], total + k[t]
        out[t] = (q[t] @ s) / (q[t] @ total) if normalized else scale * (q[t] @ s)
    return out


def batched(fields: dict[str, Any], factors: Any = None, scale: Any = 1, normalized: bool = False, tiled: bool = False) -> Any:
    """All heads of a batch; ``factors`` is the decay as (B, H_kv, n, d)."""
    q, k, v = fields["query"], fields["key"], fields["value"]
    heads, kv = q.shape[1], k.shape[1]
    out = np.empty((*q.shape[:3], v.shape[3]), dtype=q.dtype)
    for b in range(q.shape[0]):
        for h in range(heads):
            g = h % kv if tiled else h // (heads // kv)
            own = {n: x[b, g] for n, x in (("beta", fields.get("beta")), ("state", fields.get("initial_state"))) if x is not None}
            decay = None if factors is None else factors[b, g]
            out[b, h] = recurrence(q[b, h], k[b, g], v[b, g], decay, scale=scale, normalized=normalized, **own)
    return out
