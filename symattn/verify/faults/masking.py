"""Faults of masks by position: alignment of causal masks, width and alignment of windows, prefixes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction

import sympy as sp

from symattn.indexed import conjuncts
from symattn.verify.faults.fault import Alternative, Edit, Fault, Situation
from symattn.verify.faults.structure import I, J, as_bound, bounds_of, pairs_condition, with_conjunct, without

Rewrite = Callable[[Situation], Iterator[Alternative]]


def causal_bounds(s: Situation) -> Iterator[tuple[sp.Basic, sp.Expr]]:
    """The conditions ``j <= i + offset`` but for the right side of a window, each with its offset; those beside a prefix too."""
    d = s.definition
    if d.causal is None and d.window is not None and d.window[1] is not None:
        return
    for c in conjuncts(pairs_condition(s.program)):
        for part in c.args if isinstance(c, sp.Or) else (c,):
            b = as_bound(part)
            if b is not None and b.upper:
                yield part, b.offset


def with_part(old: sp.Basic, new: sp.Basic) -> Edit:
    """The rewriting that replaces a condition, or one of several of which one has to hold."""
    return with_conjunct(lambda c: new if c == old else c.xreplace({old: new}) if isinstance(c, sp.Or) else c)


def _aligned(word: str) -> Rewrite:
    """The causal bound with another offset: of the mask alone, and of all that is measured from it (windows, ALiBi)."""

    def rewrite(s: Situation) -> Iterator[Alternative]:
        d = s.definition
        measured = d.window is not None or d.alibi or d.relative is not None
        if d.causal not in (None, word) and measured:
            yield from s.changed("windows and distances too", causal=word)
        offset = sp.Integer(0) if word == "top-left" else s.size("m") - s.size("n")
        labels = ["by all keys and not by the given length"] if d.causal == word else []
        labels += ["the mask alone"] if measured else []
        for c, own in causal_bounds(s):
            if sp.expand(own - offset) != 0:
                yield Alternative(", ".join(labels), edit=with_part(c, sp.Le(J, I + offset)))

    return rewrite


def _bound(wrong: str) -> Callable[[Situation], tuple[str, str] | None]:
    """The formulas of an alignment, what is right as the definition has it."""
    return lambda s: (wrong, own) if (own := s.definition.conventions().get("causal", "").partition(": ")[2]) else None


def _last_key(last: Callable[[sp.Expr], sp.Expr]) -> Rewrite:
    """The causal bound with another last key: a function of the right one."""

    def rewrite(s: Situation) -> Iterator[Alternative]:
        for c, offset in causal_bounds(s):
            yield Alternative(edit=with_part(c, sp.Le(J, last(I + offset))))

    return rewrite


def _blocks(s: Situation) -> Iterator[Alternative]:
    for size_ in (4, 2, 8, 16, 32, 64, 128):
        for c, offset in causal_bounds(s):
            if s.sizes.get("N", 0) > 1:
                last = size_ * sp.floor(I / sp.Integer(size_)) + size_ - 1 + offset
                yield Alternative(f"{size_} rows", edit=with_part(c, sp.Le(J, last)))


def _no_causal(s: Situation) -> Iterator[Alternative]:
    for c, _ in causal_bounds(s):
        yield Alternative(edit=without(c))


def _windows(by: int) -> Rewrite:
    """The left side of the window moved."""

    def rewrite(s: Situation) -> Iterator[Alternative]:
        for c, b in bounds_of(s.program):
            if not b.upper:
                yield Alternative(edit=with_part(c, sp.Le(I - J, b.offset + by)))

    return rewrite


def _distance(wrong: str) -> Callable[[Situation], tuple[str, str] | None]:
    """The formulas where a window counts distances: ``i - j <= W``."""
    return lambda s: (wrong, "i - j <= W") if s.definition.window_counts == "distance" else None


def _right_of_window(s: Situation) -> Iterator[Alternative]:
    d = s.definition
    if d.window is None or d.window[1] is None:
        return
    left, right = d.window
    assert right is not None
    if d.causal is None:
        yield from s.changed("one key more", window=(left, right + 1))
        if right > 0:
            yield from s.changed("one key less", window=(left, right - 1))
        yield from s.changed("unlimited", window=(left, None))
        if left is not None:
            own = 1 if d.window_counts == "keys" else 0
            yield from s.changed("both sides exchanged", window=(right + own, left - own))
            yield from s.changed("both numbers exchanged", window=(right, left))


def _no_window(s: Situation) -> Iterator[Alternative]:
    for c, b in bounds_of(s.program):
        if not b.upper:
            yield Alternative("", edit=with_part(c, sp.true))


def _window_from(s: Situation) -> Iterator[Alternative]:
    """The window measured from another diagonal than the causal mask is."""
    d = s.definition
    if d.window is None:
        return
    own = d.window_alignment or d.causal or "bottom-right"
    for word in ("top-left", "bottom-right"):
        if own != word:
            yield from s.changed(word, window_alignment=word)


def _prefix(s: Situation) -> Iterator[Alternative]:
    if s.definition.prefix is not None:
        yield from s.changed("", prefix=None)


def _prefix_off(s: Situation) -> Iterator[Alternative]:
    p = s.definition.prefix
    p = s.definition.params.get(p, p) if isinstance(p, str) else p
    if isinstance(p, (int, Fraction)):
        yield from s.changed("one more", prefix=int(p) + 1)
        if p > 1:
            yield from s.changed("one less", prefix=int(p) - 1)
    elif p is not None:
        for label, by in (("one more", 1), ("one less", -1)):
            yield Alternative(label, fields={p: s.fields[p] + by})


def _triangle(s: Situation) -> Iterator[Alternative]:
    """The causal bound with queries and keys exchanged: the future only."""
    for c, offset in causal_bounds(s):
        yield Alternative(edit=with_part(c, sp.Ge(J, I + offset)))


_DIAGONAL = "the offset of the diagonal of the mask: tril(ones(n, m)) is aligned top-left"
_CAUSAL = "a causal mask; rows near the diagonal"
ROWS = (
    Fault(
        "F13", "causal mask aligned top-left", "convention", "j <= i", "j <= i + m - n", _aligned("top-left"),
        threads=("flash-attention#436", "onnxruntime#28904", "onnx#8054"), look=_DIAGONAL, shows="n != m", blind="n = m",
        convention="causal", spelled=_bound("j <= i"),
    ),
    Fault(
        "F17", "causal mask aligned bottom-right", "convention", "j <= i + m - n", "j <= i", _aligned("bottom-right"),
        threads=("flash-attention#282", "mlx#2835"), look=_DIAGONAL, shows="n != m", blind="n = m", convention="causal",
        spelled=_bound("j <= i + m - n"),
    ),
    Fault(
        "F14", "strict causal mask: a query does not see its own position", "convention", "j < i + offset", "j <= i + offset",
        _last_key(lambda last: last - 1), look="< for <=; diagonal=0 for 1 in triu", shows=_CAUSAL,
        blind="coincides with top-left at m = n + 1", convention="causal",
    ),
    Fault(
        "F15", "causal mask that lets each query see one future key", "convention", "j <= i + offset + 1", "j <= i + offset",
        _last_key(lambda last: last + 1), threads=("GPT-SoVITS#965",), look="diagonal=2 for 1 in triu", shows=_CAUSAL,
        blind="a decode step (the last row alone)", convention="causal",
    ),
    Fault(
        "F16", "causal mask per block of rows", "mathematics", "j <= 4*floor(i/4) + 3 + offset", "j <= i + offset", _blocks,
        threads=("pytorch#195910",), look="a mask that is computed for a tile and not for each row", shows=_CAUSAL,
        blind="n = 1",
        convention="causal",
    ),
    Fault(
        "F69", "the causal mask is not applied", "convention", "all keys", "j <= i + offset", _no_causal,
        threads=("triton#4174",), look="whether is_causal reaches the kernel", shows="a causal mask", convention="causal",
    ),
    Fault(
        "F70", "causal mask transposed: the future is seen, the past is not", "mathematics", "j >= i + offset",
        "j <= i + offset",
        _triangle, look="triu for tril, or exchanged indices", shows="a causal mask", convention="causal",
    ),
    Fault(
        "F18", "window one key too wide", "convention", "i - j <= W", "i - j < W", _windows(1),
        threads=("transformers#39408", "zml#763", "sglang#26147"), look="whether W counts the query's own position",
        shows="m > W", blind="W >= m", convention="window",
        spelled=_distance("i - j <= W + 1"),
    ),
    Fault(
        "F167", "window two keys too wide", "convention", "i - j < W + 2", "i - j < W", _windows(2),
        look="whether W counts the query's own position, at both ends of a loop", shows="m > W + 1", blind="W >= m",
        convention="window", spelled=_distance("i - j <= W + 2"),
    ),
    Fault(
        "F19", "window one key too narrow", "convention", "i - j < W - 1", "i - j < W", _windows(-1),
        threads=("tokenspeed#578",),
        look="whether W counts the query's own position", shows="m > W", blind="W > m", convention="window",
        spelled=_distance("i - j <= W - 1"),
    ),
    Fault(
        "F168", "window two keys too narrow", "convention", "i - j < W - 2", "i - j < W", _windows(-2),
        look="whether W counts the query's own position, at both ends of a loop", shows="m > W", blind="W > m",
        convention="window", spelled=_distance("i - j <= W - 2"),
    ),
    Fault(
        "F71", "the window is not applied", "convention", "all keys of the past", "i - j < W", _no_window,
        spelled=_distance("all keys of the past"),
        threads=("transformers#29623",), look="whether the window reaches the kernel", shows="m > W", convention="window",
    ),
    Fault(
        "F72", "the window is measured from another diagonal than the definition says", "convention", "i - j < W",
        "i + m - n - j < W", _window_from, look="the offset of the positions of the queries", shows="n != m", blind="n = m",
        convention="window",
    ),
    Fault(
        "F73", "right side of the window wrong", "convention", "j - i <= W_right + 1", "j - i <= W_right", _right_of_window,
        look="the right bound, and -1 or None for unlimited", shows="a window that is not causal", convention="window",
    ),
    Fault(
        "F54", "the prefix is made causal", "mathematics", "j <= i", "j <= i or j < prefix", _prefix,
        threads=("transformers#30918",), look="whether the prefix reaches the mask", shows="a prefix of 2 or more",
        blind="prefix <= 1", convention="causal",
    ),
    Fault(
        "F74", "length of the prefix off by one", "mathematics", "j <= prefix", "j < prefix", _prefix_off,
        look="< and <= at the end of the prefix", convention="causal",
    ),
)  # fmt: skip
