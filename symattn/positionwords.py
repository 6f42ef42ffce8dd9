"""Conventions of rotations, norms, distances and similarities in words, for :func:`symattn.conventions.record`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from symattn.grammarprint import write

if TYPE_CHECKING:
    from symattn.definition import Definition

__all__ = ["words"]


def words(d: Definition) -> dict[str, str]:
    """Every convention of this kind that a definition has not at its default, by field.

    >>> from symattn.definition import Definition
    >>> words(Definition(rope="half", rope_offset="bottom-right"))["rope"]
    'channels c and c + d/2 turn together, by position times 10000**(-2*p/d) for pair p; queries start at position m - n'
    """
    found: dict[str, str] = {}
    if d.key_smoothing:
        found["key_smoothing"] = "the mean of all keys that exist is taken off the keys as given, before norm and rotation"
    if d.qk_norm is not None:
        found["qk_norm"] = _norm(d)
    if d.rope is not None:
        found["rope"] = _rope(d)
    if d.similarity != "dot":
        found["similarity"] = {
            "general": "q W k",
            "additive": "w . tanh(W q + U k)",
            "concat": "w . tanh(W [q; k])",
        }[d.similarity]
    if d.relative is not None:
        found["relative"] = _relative(d)
    if d.buckets:
        found["buckets"] = "the bias of the given bucket of (i, j) is added to the score, after scale and softcap"
    return found


def _norm(d: Definition) -> str:
    by = {"rms": "root mean square", "l2": "length"}[d.qk_norm or "rms"]
    under = "" if d.qk_norm_eps is None else f", {d.qk_norm_eps} added under the root"
    weighted = ", times a weight per channel that all heads share" if d.qk_norm_weight else ""
    order = "" if d.rope is None else f", {d.qk_norm_order.replace('-rope', '')} the rotation"
    return f"queries and keys are divided by their {by}{under}{weighted}{order}"


def _rope(d: Definition) -> str:
    r = "d" if d.rope_dim is None else str(d.rope_dim)
    half = "d/2" if d.rope_dim is None else str(d.rope_dim // 2)
    paired = f"c and c + {half}" if d.rope == "half" else "2p and 2p + 1"
    of = "" if d.rope_dim is None else f" of the first {r}"
    frequency = f"10000**(-2*p/{r})" if d.rope_frequencies is None else write(d.rope_frequencies)
    size = "" if d.rope_amplitude is None else f", times {write(d.rope_amplitude)}"
    starts = "m - n" if d.rope_offset == "bottom-right" else d.rope_offset if isinstance(d.rope_offset, int) else 0
    return (
        f"channels {paired}{of} turn together, by position times {frequency} for pair p{size}; queries start at position {starts}"
    )


def _relative(d: Definition) -> str:
    k = d.relative_clip
    row = (
        "row i - j + m - 1 of n + m - 1"
        if k is None
        else f"row {k} + i - j (i measured as windows are), from 0 to {2 * k} at the ends"
    )
    score = {"keys": "q.(k + a)", "recurrent": "(q + u).k + (q + v).r"}[d.relative or "keys"]
    return f"{score}, {row}"
