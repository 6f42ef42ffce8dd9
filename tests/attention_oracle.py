"""Attention written a second time, as loops over rows in float64: what a definition's fields mean, with no code of symattn."""

from __future__ import annotations

import math
from typing import Any

import numpy as np


def slopes(heads: int, which: str) -> list[float]:
    """The two published sets of ALiBi slopes."""
    if which == "power" or math.log2(heads).is_integer():
        return [2.0 ** (-8 * (h + 1) / heads) for h in range(heads)]
    below = 2 ** math.floor(math.log2(heads))
    return slopes(below, which) + slopes(2 * below, which)[0::2][: heads - below]


def attention(query: Any, key: Any, value: Any, **o: Any) -> tuple[np.ndarray, np.ndarray]:
    """Output (B, H, n, dv) and log-sum-exp (B, H, n) of given arrays, under options named like the fields of a definition.

    Arrays: ``attn_mask`` (spread over B, H, n, m), ``bias`` (the same), ``alibi_slopes``, ``sinks``, ``doc_q``, ``doc_k``,
    ``key_lengths``, ``dropout_mask``. ``score`` and ``mask`` are Python functions.
    """
    q, k, v = (np.asarray(x, dtype=np.float64) for x in (query, key, value))
    (batch, heads, n, d), kv_heads, m = q.shape, k.shape[1], k.shape[2]
    out, lse = np.zeros((batch, heads, n, v.shape[3])), np.zeros((batch, heads, n))
    scale = o.get("scale", 1 / math.sqrt(d))
    for b in range(batch):
        valid = int(o["key_lengths"][b]) if "key_lengths" in o else m
        offsets = {"top-left": 0, "bottom-right": valid - n}
        causal = o.get("causal")
        offset = offsets.get(causal, causal)
        measured = o.get("window_alignment", causal if causal is not None else "bottom-right")
        measured = offsets.get(measured, measured)
        for h in range(heads):
            g = h % kv_heads if o.get("grouping") == "tiled" else h // (heads // kv_heads)
            for i in range(n):
                scores: dict[int, float] = {}
                for j in range(m):
                    at = i + measured
                    left, right = o.get("window", (None, None))
                    seen = j < valid
                    seen &= causal is None or j <= i + offset or j < o.get("prefix", 0)
                    seen &= left is None or (at - j < left if o.get("window_counts", "keys") == "keys" else at - j <= left)
                    seen &= right is None or j - at <= right
                    seen &= "doc_q" not in o or bool(o["doc_q"][b, i] == o["doc_k"][b, j])
                    seen &= "mask" not in o or bool(o["mask"](i=i, j=j, h=h, b=b, n=n, m=m))
                    added = 0.0
                    if "attn_mask" in o:
                        given = o["attn_mask"][b, h, i, j]
                        if o["attn_mask"].dtype == bool:
                            seen &= bool(given) != (o.get("mask_polarity") == "drop")
                        else:
                            seen, added = seen and given != -math.inf, float(given)
                    if not seen:
                        continue
                    s = math.fsum(q[b, h, i, c] * k[b, g, j, c] for c in range(d)) * scale
                    s = s if "softcap" not in o else o["softcap"] * math.tanh(s / o["softcap"])
                    s = s if "score" not in o else o["score"](s=s, i=i, j=j, h=h, b=b, n=n, m=m, d=d)
                    if "alibi_slopes" in o:
                        distance = at - j
                        s -= o["alibi_slopes"][h] * (abs(distance) if o.get("alibi_distance") == "absolute" else distance)
                    scores[j] = s + added + (float(o["bias"][b, h, i, j]) if "bias" in o else 0.0)
                sink = [float(o["sinks"][h])] if "sinks" in o else []
                everything = [*scores.values(), *sink]
                if not everything:
                    lse[b, h, i] = -math.inf
                    policy = o.get("empty_row", "zero")
                    out[b, h, i] = math.nan if policy == "nan" else v[b, g].mean(axis=0) if policy == "uniform" else 0.0
                    continue
                top = max(everything)
                total = math.fsum(math.exp(s - top) for s in everything)
                lse[b, h, i] = (top + math.log(total)) / (math.log(2) if o.get("lse_base") == "2" else 1)
                for j, s in scores.items():
                    weight = math.exp(s - top) / total
                    if "dropout_mask" in o:
                        weight = weight / (1 - o["dropout_p"]) if o["dropout_mask"][b, h, i, j] else 0.0
                    out[b, h, i] += weight * v[b, g, j]
    return out, lse
