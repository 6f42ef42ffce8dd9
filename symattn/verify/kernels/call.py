"""One call of a kernel: the definition, its arrays by field name, and what adapters derive from both.

The visible pairs are computed here from the meaning of the fields alone, independently of the definition's program, so that a
kernel that is judged by the program does not take its mask from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from symattn import forms
from symattn.definition import Definition
from symattn.errors import UnknownNameError
from symattn.fields import BY_LETTER, DECLARED, ROWS
from symattn.intake import Array

SIZE_LETTERS = {"b": "B", "H": "H", "K": "HKV", "i": "N", "j": "M", "c": "D", "e": "DV"}
"""Axis -> letter of the command line, in the order in which sizes are shown."""
PROJECTED = ("tok", "Emb", "X", "C", "WQ", "WK", "WV", "WO")
"""What a definition may start from that makes query, key and value itself."""
BY_FIELD = {row.field: row for row in reversed(ROWS)}
DECLARED_FIELDS = frozenset(row.field for row in DECLARED)


@dataclass(frozen=True)
class Call:
    """What a kernel is called with.

    Parameters
    ----------
    definition
        The attention of given query, key and value that it should compute.
    fields
        Arrays by field name in the layout ``bhsd``: ``query key value`` and those that the definition reads.
    """

    definition: Definition
    fields: Mapping[str, Array]

    @property
    def query(self) -> Array:
        """(B, H, n, d)."""
        return self.fields["query"]

    @property
    def key(self) -> Array:
        """(B, H_kv, m, d)."""
        return self.fields["key"]

    @property
    def value(self) -> Array:
        """(B, H_kv, m, dv)."""
        return self.fields["value"]

    @property
    def sources(self) -> tuple[str, ...]:
        """The fields that the definition starts from: ``query key value``, or those of its form."""
        d = self.definition
        if own := forms.sources_of(d):
            return tuple(BY_LETTER[letter].field for letter in own)
        if d.start == "qkv":
            return ("query", "key", "value")
        read = d.program(batch=True).inputs
        return tuple(BY_LETTER[letter].field for letter in PROJECTED if letter in read)

    @property
    def dtype(self) -> np.dtype[Any]:
        """That of the first source that holds real numbers, and so of the output."""
        return next(a.dtype for a in (self.fields[n] for n in self.sources) if a.dtype.kind not in "biu")

    @property
    def shape(self) -> dict[str, int]:
        """The sizes by the letters of the command line: B H HKV N M D DV, as far as the sources show them."""
        found: dict[str, int] = {}
        for row in (BY_FIELD[n] for n in self.sources):
            if len(row.axes) == self.fields[row.field].ndim:
                found |= {
                    SIZE_LETTERS[a]: n for a, n in zip(row.axes, self.fields[row.field].shape, strict=True) if a in SIZE_LETTERS
                }
        return {letter: found[letter] for letter in SIZE_LETTERS.values() if letter in found}

    @property
    def others(self) -> dict[str, Array]:
        """What the definition reads beside its sources and the named options, by field name."""
        return {n: a for n, a in self.fields.items() if n in DECLARED_FIELDS and n not in self.sources}

    @property
    def score_shape(self) -> tuple[int, int, int, int]:
        """(B, H, n, m)."""
        return (*self.query.shape[:3], self.key.shape[2])

    @property
    def kv_head(self) -> Array:
        """The key-value head of every query head."""
        kv = self.key.shape[1]
        return np.arange(self.query.shape[1]) % kv if self.definition.grouping == "tiled" else self.kv_head_interleaved

    @property
    def kv_head_interleaved(self) -> Array:
        """The same under the more common grouping, ``h // (H / H_kv)``."""
        heads, kv = self.query.shape[1], self.key.shape[1]
        return np.arange(heads) // (heads // kv)

    @cached_property
    def scale(self) -> float:
        """The factor of the scores, rounded to the nearest float64."""
        text = self.definition.scale
        if text is None:
            return float(1 / np.sqrt(np.float64(self.query.shape[3])))
        import sympy as sp

        s = self.shape
        sizes = {"n": s["N"], "m": s["M"], "d": s["D"], "dv": s["DV"]}
        values = {x: sp.Integer(sizes[x.name]) if x.name in sizes else self._parameter(x.name) for x in text.free_symbols}
        return float(text.xreplace(values).evalf(40))

    def number(self, value: Any) -> float:
        """A field that is a number or the name of a parameter."""
        return float(self._parameter(value) if isinstance(value, str) else value)

    def _parameter(self, name: str) -> Any:
        import sympy as sp

        bound = self.definition.params.get(name)
        if bound is not None and not isinstance(bound, (str, tuple)):
            return sp.Rational(bound.numerator, bound.denominator)
        if name not in self.fields:
            raise UnknownNameError(f"the parameter {name!r} has no value")
        return sp.Rational(*float(self.fields[name]).as_integer_ratio())

    def spread(self, name: str, axes: str | None) -> Array:
        """A given mask or bias with its axes spread to (B, H, n, m) where they are missing (size 1)."""
        a = self.fields[name]
        if axes is None or a.ndim == 4:
            return a.reshape((1,) * (4 - a.ndim) + a.shape)
        return a.reshape([a.shape[axes.index(x)] if x in axes else 1 for x in "bhij"])

    @cached_property
    def additive(self) -> Array | None:
        """The additive mask plus bias, spread, -inf where a mask drops; None without."""
        d, parts = self.definition, []
        if d.attn_mask == "additive":
            parts.append(self.spread("attn_mask", d.mask_axes))
        if d.bias:
            parts.append(self.spread("bias", d.bias_axes))
        if len(parts) == 2 and parts[0].dtype != np.float64:
            parts = [p.astype(np.float32) for p in parts]
        return sum(parts[1:], parts[0]) if parts else None

    @cached_property
    def keep(self) -> Array:
        """The pairs that may attend, Boolean (B, H, n, m)."""
        d, (b, _, n, m) = self.definition, self.score_shape
        i, j, lengths = np.arange(n)[:, None], np.arange(m)[None, :], self._lengths
        keep = np.broadcast_to(j < lengths, (b, 1, n, m)).copy()
        if d.causal is not None:
            visible = j <= i + _offset(d.causal, lengths, n)
            if d.prefix is not None:
                prefix: Any = self.prefix
                visible = visible | (j < (prefix.reshape(-1, 1, 1, 1) if isinstance(prefix, np.ndarray) else prefix))
            keep = keep & visible
        if d.window is not None:
            distance = self.distance
            left, right = d.window
            if left is not None:
                keep = keep & (distance < left if d.window_counts == "keys" else distance <= left)
            if right is not None:
                keep = keep & (-distance <= right)
        if d.document:
            q, k = self.documents
            keep = keep & (q.reshape(-1, 1, n, 1) == k.reshape(-1, 1, 1, m))
        if d.attn_mask == "boolean":
            given = self.spread("attn_mask", d.mask_axes).astype(bool)
            keep = keep & (given if d.mask_polarity == "attend" else ~given)
        elif d.attn_mask == "additive":
            keep = keep & (self.spread("attn_mask", d.mask_axes).astype(np.float64) != -np.inf)
        return np.broadcast_to(keep, self.score_shape)

    @property
    def prefix(self) -> Array | float | None:
        """How many keys every query sees: a number, or an array (B,); None without."""
        given = self.definition.prefix
        if isinstance(given, str):
            if given in self.fields:
                return self.fields[given]
            found = self.number(given)
            return int(found) if found == int(found) else found
        return given

    @property
    def documents(self) -> tuple[Array, Array]:
        """The document numbers of queries and keys."""
        q = self.fields.get("doc_q", self.fields.get("doc"))
        k = self.fields.get("doc_k", self.fields.get("doc"))
        if q is None or k is None:
            raise UnknownNameError("document=True needs doc_q and doc_k, or doc for both")
        return q, k

    @property
    def _lengths(self) -> Array:
        b, m = self.query.shape[0], self.key.shape[2]
        return self.fields["key_lengths"].reshape(b, 1, 1, 1) if self.definition.key_lengths else np.full((1, 1, 1, 1), m)

    @cached_property
    def distance(self) -> Array:
        """How far key j lies before query i, ``i + offset - j``, integers (B or 1, 1, n, m): what windows and ALiBi measure."""
        d, (_, _, n, m) = self.definition, self.score_shape
        start = d.window_alignment if d.window_alignment is not None else d.causal if d.causal is not None else "bottom-right"
        return np.asarray(np.arange(n)[:, None] + _offset(start, self._lengths, n) - np.arange(m)[None, :]).reshape(-1, 1, n, m)

    @cached_property
    def has_empty_row(self) -> bool:
        """Whether some query may attend to no key at all."""
        return bool((~self.keep.any(-1)).any())

    @cached_property
    def slopes(self) -> Array | None:
        """ALiBi slopes per query head, or None."""
        d, heads = self.definition, self.query.shape[1]
        if not d.alibi:
            return None
        if d.alibi_slopes == "given":
            return self.fields["alibi_slopes"]
        return np.array(published_slopes(heads, interleaved=d.alibi_slopes == "interleaved"))


def _offset(alignment: Any, lengths: Array, n: int) -> Any:
    if alignment == "top-left":
        return 0
    return lengths - n if alignment == "bottom-right" else int(alignment)


def published_slopes(heads: int, *, interleaved: bool) -> list[float]:
    """ALiBi's slopes: ``2^(-8(h+1)/H)``, or for head counts that are no power of two those of the next lower one and every other
    one of the double, as its authors' code has it.

    >>> published_slopes(2, interleaved=False), published_slopes(3, interleaved=True)
    ([0.0625, 0.00390625], [0.0625, 0.00390625, 0.25])
    """

    def geometric(k: int) -> list[float]:
        return [2.0 ** (-8 * (h + 1) / k) for h in range(k)]

    lower = 1 << (heads.bit_length() - 1)
    if not interleaved or lower == heads:
        return geometric(heads)
    return geometric(lower) + geometric(2 * lower)[0::2][: heads - lower]
