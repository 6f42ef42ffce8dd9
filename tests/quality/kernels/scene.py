"""What a kernel of the tests is called with: tensors spread over heads, who sees whom, scores of a part of the keys."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np

from tests.quality.kernels.points import points

Array = np.ndarray[Any, Any]


@dataclass
class Scene:
    """One call. ``wide`` is the dtype of the arithmetic inside, ``store`` the dtype that every result is rounded to (or None)."""

    query: Array
    key: Array
    value: Array
    options: dict[str, Any]
    at: SimpleNamespace
    store: Any = None
    back: bool = False
    wide: Any = field(init=False)

    def __post_init__(self) -> None:
        self.wide = np.float64 if self.query.dtype == np.float64 else np.float32
        if self.back and self.at.only_back:
            self.at = points({**vars(self.at), **self.at.only_back})
        q, k, v = self.at.tensors(*(x.astype(self.wide) for x in (self.query, self.key, self.value)))
        heads, kv = q.shape[1], k.shape[1]
        own = np.array([self.at.kv_head(h, heads, kv) for h in range(heads)])
        self.q, self.k, self.v = q, k[:, own], v[:, own]
        self.n, self.m, self.d = q.shape[2], k.shape[2], q.shape[3]
        self.scale = self.wide(self.at.scale(self.options.get("scale") or self.d**-0.5, self.d, heads))
        self.keep = np.broadcast_to(self.at.visible(self._keep()), (q.shape[0], heads, self.n, self.m))
        if not self.at.poisoned:  # keys that nobody reads are not loaded
            read = self.keep.any(2)[..., None]
            self.k, self.v = (np.where(read, x, self.wide(0)) for x in (self.k, self.v))
        self._turn()

    @property
    def sinks(self) -> Array | None:
        """(1, H, 1), as the kernel takes them; None without."""
        if "sinks" not in self.options:
            return None
        b = self.at.sink(self.options["sinks"].astype(self.wide)[None, :, None])
        return None if b is None else b

    @property
    def kept(self) -> Array | None:
        """The keep-mask of dropout."""
        mask = self.options.get("dropout_mask")
        return None if mask is None else mask.astype(bool)

    @property
    def rate(self) -> float:
        """The rate of dropout."""
        return float(self.options.get("dropout_p", 0))

    def stored(self, x: Array) -> Array:
        """Rounded to what results are kept in."""
        return x if self.store is None else x.astype(self.store).astype(self.wide)

    def _offsets(self) -> tuple[Any, Any]:
        """The offsets of the causal mask and of window and ALiBi, (B or 1, 1, 1, 1)."""
        lengths = self.options.get("key_lengths")
        length = np.array([self.m]) if lengths is None else self.at.length(np.asarray(lengths))
        bottom = (length - self.n).reshape(-1, 1, 1, 1)
        causal = self.options.get("is_causal")
        alignment = self.options.get("causal_alignment", "top-left")
        own = {"top-left": 0, "bottom-right": bottom}.get(alignment, alignment)
        return self.at.offset(own) if causal else 0, (self.at.offset(own) if causal else bottom)

    def _keep(self) -> Array:
        o, at = self.options, self.at
        i, j = np.arange(self.n)[:, None], np.arange(self.m)[None, :]
        causal, other = self._offsets()
        keep = np.ones((1, 1, self.n, self.m), bool)
        if o.get("is_causal"):
            keep = keep & at.causal(i, j, causal)
            if "prefix" in o:
                keep = keep | at.prefix(j, np.asarray(o["prefix"]).reshape(-1, 1, 1, 1))
        if "window" in o:
            left, right = o["window"]
            distance = i + other - j
            keep = keep & (at.left(distance, left) if left >= 0 else True) & (at.right(distance, right) if right >= 0 else True)
        if "doc_q" in o:
            keep = keep & at.document(o["doc_q"][:, None, :, None], o["doc_k"][:, None, None, :])
        if "key_lengths" in o:
            keep = keep & (j < at.length(np.asarray(o["key_lengths"])).reshape(-1, 1, 1, 1))
        mask = o.get("attn_mask")
        if mask is not None:
            keep = keep & at.mask(mask.astype(bool) if mask.dtype == bool else ~np.isneginf(mask.astype(np.float64)))
        return keep

    def _turn(self) -> None:
        """Norms and rotations of queries and keys."""
        steps = [self._normed] if self.at.norm else []
        if self.at.rope:
            steps.insert(0 if self.at.norm_after_rope else len(steps), self._rotated)
        for step in steps:
            self.q, self.k = step(self.q, "q"), step(self.k, "k")

    def _normed(self, x: Array, name: str) -> Array:
        x = x / np.sqrt((x * x).mean(-1, keepdims=True))
        weight = self.options.get(f"{name}_norm_weight")
        return x if weight is None else x * self.at.norm_weight(weight.astype(self.wide))

    def _rotated(self, x: Array, name: str) -> Array:
        half = x.shape[-1] // 2
        at = self.at.positions(x.shape[2])[:, None] * 10000.0 ** (-2 * np.arange(half) / x.shape[-1])
        cos, sin = np.cos(at).astype(self.wide), np.sin(at).astype(self.wide)
        half_split = self.at.rope_pairs(self.at.rope) == "half"
        first, second = (slice(0, half), slice(half, None)) if half_split else (slice(0, None, 2), slice(1, None, 2))
        out = np.empty_like(x)
        out[..., first] = x[..., first] * cos - x[..., second] * sin
        out[..., second] = x[..., second] * cos + x[..., first] * sin
        return out

    def part(self, keys: slice) -> tuple[Array, Array, Array]:
        """Scores of some keys before masking, who sees them, and the derivative of the softcap."""
        o, at, w = self.options, self.at, self.wide
        with np.errstate(all="ignore"):
            q, k, c = self.q, self.k[:, :, keys], self.scale
            if self.store is not None and at.scale_first:  # as frameworks do where a product could overflow
                q, k, c = self.stored(q * np.sqrt(c)), self.stored(k * np.sqrt(c)), w(1)
            s = self.stored(at.raw(q @ k.swapaxes(-1, -2)))
            s = self.stored(at.score(s * c))
        keep, slope = self.keep[..., keys], np.ones((), w)
        i, j = np.arange(self.n)[:, None], np.arange(self.m)[None, keys]
        if "softcap" in o and not at.cap_after_mask:
            cap = w(o["softcap"])
            s, slope = self.stored(at.cap(s, cap)), at.cap_slope(np.tanh(s / cap))
        with np.errstate(all="ignore"):
            if "alibi_slopes" in o:
                slopes = at.slopes(np.asarray(o["alibi_slopes"])).astype(w)[None, :, None, None]
                s = self.stored(s - slopes * np.asarray(at.distance(i, j, self._offsets()[1])).astype(w))
            for name in ("attn_mask", "bias"):
                x = o.get(name)
                if x is not None and x.dtype != bool:
                    x = np.where(np.isneginf(x.astype(w)), w(0), x.astype(w))
                    s = self.stored(s + at.add(x[..., keys] if x.shape[-1] > 1 else x))
            if "softcap" in o and at.cap_after_mask:
                s, keep = at.cap(np.where(keep, s, w(-np.inf)), w(o["softcap"])), np.ones_like(keep)
        return s, keep, slope

    def masked(self, keys: slice) -> Array:
        """Scores of some keys, -infinity where nothing is seen."""
        s, keep, _ = self.part(keys)
        return self.at.drop(s, keep).astype(self.wide)
