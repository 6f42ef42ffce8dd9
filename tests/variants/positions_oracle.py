"""Rotations, norms, distances and similarities written a second time: loops over vectors in float64, with no code of symattn."""

from __future__ import annotations

import cmath
import math
from collections.abc import Callable
from typing import Any

import numpy as np

Vector = Any


def rotate(x: Vector, position: float, frequencies: list[float], pairing: str, amplitude: float = 1.0) -> Vector:
    """The pairs of the first ``2 len(frequencies)`` channels as complex numbers, each times ``amplitude exp(i position f)``."""
    y = np.array(x, dtype=np.float64)
    pairs = len(frequencies)
    for p, f in enumerate(frequencies):
        a, b = (p, p + pairs) if pairing == "half" else (2 * p, 2 * p + 1)
        z = complex(x[a], x[b]) * amplitude * cmath.exp(1j * position * f)
        y[a], y[b] = z.real, z.imag
    return y


def rms(x: Vector, eps: float = 0.0) -> Vector:
    return x / math.sqrt(sum(v * v for v in x) / len(x) + eps)


def unit(x: Vector, eps: float = 0.0) -> Vector:
    return x / math.sqrt(sum(v * v for v in x) + eps)


def attention(
    query: Any,
    key: Any,
    value: Any,
    *,
    of_query: Callable[[Vector, int], Vector] = lambda x, i: x,
    of_key: Callable[[Vector, int], Vector] = lambda x, j: x,
    similarity: Callable[[Vector, Vector, int, int, int], float] = lambda q, k, i, j, h: float(q @ k),
    keep: Callable[[int, int, int], bool] = lambda b, i, j: True,
    scale: float | None = None,
    softcap: float | None = None,
    bias: Callable[[int, int, int], float] = lambda i, j, h: 0.0,
    sinks: Any = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Output and log-sum-exp; ``similarity`` takes prepared query and key, i, j and the head."""
    (batch, heads, n, d), (_, kv, m, dv) = query.shape, value.shape
    out, lse = np.zeros((batch, heads, n, dv)), np.zeros((batch, heads, n))
    for b in range(batch):
        for h in range(heads):
            g = h // (heads // kv)
            for i in range(n):
                q, scores = of_query(query[b, h, i], i), {}
                for j in (j for j in range(m) if keep(b, i, j)):
                    s = similarity(q, of_key(key[b, g, j], j), i, j, h) * (1 / math.sqrt(d) if scale is None else scale)
                    scores[j] = (s if softcap is None else softcap * math.tanh(s / softcap)) + bias(i, j, h)
                everything = [*scores.values(), *([] if sinks is None else [float(sinks[h])])]
                lse[b, h, i] = math.log(math.fsum(map(math.exp, everything)))
                for j, s in scores.items():
                    out[b, h, i] += math.exp(s - lse[b, h, i]) * value[b, g, j]
    return out, lse


def bucket(distance: int, bidirectional: bool, buckets: int, longest: int) -> int:
    """T5's bucket of ``key - query`` by logarithms of many digits, pushed over an exact power."""
    import mpmath

    with mpmath.workdps(60):
        start = 0
        if bidirectional:
            buckets //= 2
            start = buckets if distance > 0 else 0
        x = abs(distance) if bidirectional else max(0, -distance)
        exact = buckets // 2
        if x < exact:
            return start + x
        grown = mpmath.log(mpmath.mpf(x) / exact) / mpmath.log(mpmath.mpf(longest) / exact) * (buckets - exact)
        return start + min(buckets - 1, exact + int(mpmath.floor(grown + mpmath.mpf(10) ** -40)))
