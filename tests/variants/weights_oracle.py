"""Normalizers, maps, gates and mixings written a second time from their papers, as loops in float64; no code of symattn.

A normalizer takes the scores of the visible keys of one query, by key, and gives their weights. Those of the entmax family are
found by bisection, which shares no step with the sums over a support.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

Scores = Mapping[int, float]


def sigma(x: float) -> float:
    return 1 / (1 + math.exp(-x))


def softmax(s: Scores, extra: float = 0.0) -> dict[int, float]:
    total = math.fsum(map(math.exp, s.values())) + extra
    return {j: math.exp(x) / total for j, x in s.items()}


def entmax(s: Scores, alpha: float) -> dict[int, float]:
    """``[(alpha - 1) s - tau]_+ ^ (1/(alpha - 1))``, tau by bisection."""
    if not s:
        return {}
    x = {j: (alpha - 1) * v for j, v in s.items()}
    low, high = max(x.values()) - 1, max(x.values())
    weights: Callable[[float], dict[int, float]] = lambda tau: {j: max(v - tau, 0.0) ** (1 / (alpha - 1)) for j, v in x.items()}
    for _ in range(200):
        mid = (low + high) / 2
        low, high = (mid, high) if math.fsum(weights(mid).values()) >= 1 else (low, mid)
    return weights(low)


def stick_breaking(s: Scores) -> dict[int, float]:
    """From the last visible key to the first: each takes its fraction of what is left."""
    left, out = 1.0, {}
    for j in sorted(s, reverse=True):
        out[j] = sigma(s[j]) * left
        left *= 1 - sigma(s[j])
    return out


NORMALIZERS: dict[str, Callable[[Scores], dict[int, float]]] = {
    "softmax": softmax,
    "off-by-one": lambda s: softmax(s, 1.0),
    "sigmoid": lambda s: {j: sigma(x) for j, x in s.items()},
    "sparsemax": lambda s: entmax(s, 2.0),
    "entmax15": lambda s: entmax(s, 1.5),
    "stick-breaking": stick_breaking,
    "none": dict,
}


def scores(q: Any, k: Any, groups: int) -> np.ndarray:
    """(B, H, n, m): scaled dot products; query head h reads key head h // groups."""
    return np.einsum("bhic,bhjc->bhij", q, np.repeat(k, groups, axis=1)) / math.sqrt(q.shape[-1])


def convolved(s: np.ndarray, kernel: np.ndarray, seen: np.ndarray) -> np.ndarray:
    """Multi-token attention, equation 3: sum over i', j' of theta[i', j'] * s[i - i', j - j'], masked scores counting 0."""
    out = np.zeros_like(s)
    batch, heads, n, m = s.shape
    queries, keys = kernel.shape[1:]
    for b, h, i, j in np.ndindex(batch, heads, n, m):
        for x in range(queries):
            for y in range(keys):
                ii, jj = i - x, j - (y - keys // 2)
                if ii >= 0 and 0 <= jj < m and seen[ii, jj]:
                    out[b, h, i, j] += kernel[h, x, y] * s[b, h, ii, jj]
    return out


def decay(logits: np.ndarray, n: int, offset: int) -> np.ndarray:
    """(B, H, n, m): the sum of log sigmoid over the positions after key j, up to that of query i."""
    batch, heads, m = logits.shape
    out = np.zeros((batch, heads, n, m))
    for b, h, i, j in np.ndindex(batch, heads, n, m):
        out[b, h, i, j] = math.fsum(math.log(sigma(float(logits[b, h, t]))) for t in range(j + 1, min(i + offset + 1, m)))
    return out


def weights(s: np.ndarray, seen: np.ndarray, normalizer: str = "softmax") -> np.ndarray:
    """(B, H, n, m): the weights of the visible keys, 0 elsewhere."""
    out = np.zeros_like(s)
    for b, h, i in np.ndindex(*s.shape[:3]):
        for j, w in NORMALIZERS[normalizer]({j: float(s[b, h, i, j]) for j in range(s.shape[3]) if seen[i, j]}).items():
            out[b, h, i, j] = w
    return out


def mixed(x: np.ndarray, matrix: np.ndarray) -> np.ndarray:
    """Talking heads: head (column) = sum over heads (row)."""
    return np.einsum("bgij,gh->bhij", x, matrix)


def summed(p: np.ndarray, v: np.ndarray, groups: int) -> np.ndarray:
    return np.einsum("bhij,bhje->bhie", p, np.repeat(v, groups, axis=1))


def visible(n: int, m: int, offset: int | None) -> np.ndarray:
    return np.array([[offset is None or j <= i + offset for j in range(m)] for i in range(n)])
