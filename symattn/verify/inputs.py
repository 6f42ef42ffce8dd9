"""Seeded inputs for a definition, exactly representable in a dtype, small, and shaped so that conventions show.

Sizes differ where a fault could hide in their equality: fewer queries than keys and more, several heads on several key-value
heads (neither one nor all), a width that is no power of two. The kinds of numbers are those on which kernels have failed:
scores far from 0 in both directions, ties, rows without keys, NaN in keys that nothing may read.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from symattn import formats, forms
from symattn.definition import Definition
from symattn.errors import ShapeError
from symattn.grammar import arrays_of
from symattn.indexed import index, name_of, reads
from symattn.intake import Array
from symattn.readcheck import affine_in
from symattn.verify import drawn
from symattn.verify.kernels.call import Call

SHAPE_LETTERS = ("B", "H", "HKV", "N", "M", "D", "DV")


@dataclass(frozen=True)
class Shape:
    """The sizes of one input: batch, heads, key-value heads, queries, keys, width of queries and keys, width of values."""

    b: int
    h: int
    hkv: int
    n: int
    m: int
    d: int
    dv: int

    @classmethod
    def parse(cls, text: str) -> Shape:
        """``B,H,HKV,N,M,D[,DV]`` as on the command line.

        Raises
        ------
        ShapeError
            When it is not six or seven positive integers, or HKV does not divide H.

        >>> Shape.parse("2,6,3,5,7,6").dv
        6
        """
        try:
            sizes = [int(x) for x in text.split(",")]
        except ValueError:
            sizes = []
        if len(sizes) not in (6, 7) or min(sizes) < 1:
            raise ShapeError(f"a shape is B,H,HKV,N,M,D[,DV], six or seven integers from 1 on, got {text!r}")
        b, h, hkv, n, m, d = sizes[:6]
        shape = cls(b, h, hkv, n, m, d, sizes[6] if len(sizes) == 7 else d)
        if shape.h % shape.hkv:
            raise ShapeError(f"HKV must divide H, got H={shape.h}, HKV={shape.hkv}")
        return shape

    def __str__(self) -> str:
        sizes = [self.b, self.h, self.hkv, self.n, self.m, self.d] + ([self.dv] if self.dv != self.d else [])
        return ",".join(map(str, sizes))


def _normal(r: np.random.Generator, shape: tuple[int, ...]) -> Array:
    return r.normal(size=shape)


def _integers(r: np.random.Generator, shape: tuple[int, ...]) -> Array:
    return r.integers(-2, 3, size=shape).astype(np.float64)


@dataclass(frozen=True)
class Kind:
    """One kind of input: how the numbers are drawn, the shape it wants, and what is changed in the three tensors.

    ``applies`` says on which calls it makes sense; ``about`` is a line for readers.
    """

    name: str
    shape: Shape
    about: str
    draw: Callable[[np.random.Generator, tuple[int, ...]], Array] = _normal
    change: Callable[[dict[str, Array]], None] = lambda fields: None
    applies: Callable[[Call], bool] = lambda call: True
    ties: bool = False
    """Whether numbers in it are equal on purpose, so that a choice by their order is open."""
    anywhere: bool = False
    """Whether it is meant for forms too that do not start from query, key and value."""


def _large(fields: dict[str, Array]) -> None:
    fields["query"] *= 8


def _deep(fields: dict[str, Array]) -> None:
    """Every score near -200: one channel of the queries is -40, of the keys 12."""
    fields["query"][..., 0], fields["key"][..., 0] = -40, 12


def _abyss(fields: dict[str, Array]) -> None:
    """Every score near -60000: below the finite numbers that stand in for -infinity in some kernels."""
    fields["query"][..., 0], fields["key"][..., 0] = -300, 500


def _decided_at_60000(call: Call) -> bool:
    """Whether scores of this size promise anything: their exponentials do beyond 16 bits, a threshold among them beyond 32."""
    return call.dtype.itemsize >= (8 if call.definition.normalizer in ("sparsemax", "entmax15") else 4)


def _rising(fields: dict[str, Array]) -> None:
    """Scores that rise along the keys, so that the running maximum of a tiled kernel rises in every tile."""
    fields["query"][..., 0] = 2
    fields["key"][..., 0] = np.linspace(-4, 4, fields["key"].shape[2])


def _unread(call: Call) -> Array:
    """The keys that no query of any head of their group may attend to, Boolean (B, H_kv, m)."""
    kv = call.key.shape[1]
    read = np.any(call.keep, axis=2)
    return np.stack([~np.any(read[:, call.kv_head == k], axis=1) for k in range(kv)], axis=1)


def _any_unread(call: Call) -> bool:
    return bool(_unread(call).any()) and reads_visible_keys_only(call.definition)


def reads_visible_keys_only(d: Definition) -> bool:
    """Whether every statement that reads a key or a value does so where some query attends to it, or takes it along as it is.

    None takes a mean of all keys or divides each by its norm; a rotation takes them along.

    >>> reads_visible_keys_only(Definition()), reads_visible_keys_only(Definition(causal="top-left", empty_row="uniform"))
    (True, False)
    >>> [reads_visible_keys_only(Definition(causal="top-left", **f)) for f in ({"rope": "half"}, {"qk_norm": "rms"})]
    [True, False]
    """
    program = d.program()
    pairs = set(program["R"].conditions) if "R" in program else set()
    found: set[str] = set()  # what is made of keys or values one by one
    for s in program:
        if not s.needs & ({"K", "V"} | found):
            continue
        if pairs <= set(s.conditions):
            continue
        found.add(s.name)
        if index("j") in s.over or not affine_in(s, {"K", "V"} | found):
            return False
    return "R" in program


def has_norm(d: Definition) -> bool:
    """Whether a definition divides by a norm with something added under its root.

    >>> has_norm(Definition()), has_norm(Definition(form="encoder-layer"))
    (False, True)
    """
    return d.qk_norm_eps is not None or d.head_norm or "layer" in d.form


def chooses(d: Definition) -> bool:
    """Whether a value is kept or not by the sign of a computed one, as a ReLU does.

    >>> chooses(Definition()), chooses(Definition(form="encoder-layer"))
    (False, True)
    """
    program = d.program()
    made = {s.name for s in program}
    return any(name_of(x) in made for s in program if not s.over for c in s.conditions for x in reads(c))


def starts_elsewhere(d: Definition) -> bool:
    """Whether a definition starts from other tensors than query, key and value."""
    return bool(forms.sources_of(d)) or d.start != "qkv"


_WIDE, _TALL = Shape(2, 6, 3, 5, 7, 6, 6), Shape(2, 6, 3, 7, 5, 6, 6)
_LONG, _SQUARE = replace(_WIDE, n=4, m=133), replace(_WIDE, n=21, m=21)
"""Keys beyond one tile of any usual size, never a multiple of one; the square one for masks that start at the top left."""

KINDS: tuple[Kind, ...] = (
    Kind("normal", _WIDE, "N(0,1), fewer queries than keys", anywhere=True),
    Kind("tall", _TALL, "N(0,1), more queries than keys: bottom-right causal rows without keys", anywhere=True),
    Kind("large", _WIDE, "queries times 8: a softcap saturates, one key takes a row", change=_large),
    Kind("integers", _TALL, "integers from -2 to 2: ties and exact results", draw=_integers, anywhere=True, ties=True),
    Kind("deep", replace(_WIDE, m=9), "all scores near -200: a padded or missing key would take the row", change=_deep),
    Kind(
        "abyss",
        _WIDE,
        "all scores near -60000: below a finite number that stands in for -infinity",
        change=_abyss,
        applies=_decided_at_60000,
    ),
    Kind("long", _LONG, "133 keys with rising scores: several tiles, the last one partial", change=_rising),
    Kind("square", _SQUARE, "21 queries and keys with rising scores: more than one small tile under any mask", change=_rising),
    Kind(
        "small",
        _WIDE,
        "N(0,1)/128: what is added under the root of a norm shows",
        draw=lambda r, shape: r.normal(size=shape) / 128,
        applies=lambda call: has_norm(call.definition),
        anywhere=True,
    ),
    Kind("poison", _WIDE, "NaN in keys and values that nothing may read", applies=_any_unread),
)
"""The default pack."""


def fields_for(definition: Definition, shape: Shape, dtype: str, seed: int, kind: Kind = KINDS[0]) -> dict[str, Array]:
    """Arrays by field name for a definition: the three tensors, what the definition reads, and incoming gradients.

    Parameters
    ----------
    definition
        The attention of given query, key and value.
    shape
        Sizes.
    dtype
        Format of every real array.
    seed
        The same seed, shape, kind and dtype give the same numbers.
    kind
        Which numbers.

    >>> a = fields_for(Definition(sink=True), Shape.parse("1,2,1,3,4,5"), "bfloat16", 0)
    >>> sorted(a)
    ['grad_lse', 'grad_out', 'key', 'query', 'sinks', 'value']
    """
    r = np.random.default_rng([seed, *(ord(c) for c in kind.name)])
    f, s = formats.get(dtype), shape
    real: dict[str, Array] = {
        "query": kind.draw(r, (s.b, s.h, s.n, s.d)),
        "key": kind.draw(r, (s.b, s.hkv, s.m, s.d)),
        "value": kind.draw(r, (s.b, s.hkv, s.m, s.dv)),
        "grad_out": kind.draw(r, (s.b, s.h, s.n, s.dv)),
        "grad_lse": kind.draw(r, (s.b, s.h, s.n)),
    }
    if starts_elsewhere(definition):
        real = drawn.from_scratch(definition, s, r, kind.draw)
    else:
        if "L" not in definition.program().outputs:
            del real["grad_lse"]
        kind.change(real)
    other = _given(definition, s, r, real)
    more = drawn.drawn(definition, s, drawn.further(definition), r, kind.draw) if not starts_elsewhere(definition) else {}
    for name, a in (*more.items(), *real.copy().items()):
        (other if a.dtype.kind in "biu" else real)[name] = a
    real = {name: a for name, a in real.items() if name not in other}
    top = float(f.max)
    with np.errstate(all="ignore"):
        fields = {k: np.where(np.isfinite(a), np.clip(a, -top, top), a).astype(f.dtype) for k, a in real.items()}
    fields |= other
    if kind.name == "poison":
        call = Call(definition, fields)
        unread = _unread(call)
        for name in ("key", "value"):
            fields[name][unread] = np.nan
    return fields


def _given(d: Definition, s: Shape, r: np.random.Generator, real: dict[str, Array]) -> dict[str, Array]:
    """What the definition reads: real arrays are added to ``real``, the others returned."""
    found: dict[str, Array] = {}
    full = {"b": s.b, "h": s.h, "i": s.n, "j": s.m}

    def shaped(axes: str | None) -> tuple[int, ...]:
        return (s.b, 1, s.n, s.m) if axes is None else tuple(full[a] for a in axes)

    if d.attn_mask == "boolean":
        keep = r.random(shaped(d.mask_axes)) < 0.7
        if keep.ndim > 1 and (d.mask_axes or "ij").endswith("ij"):
            keep[..., 1, :] = False  # a row without keys
            keep[..., -1] = False  # a key that nothing reads
        found["attn_mask"] = keep if d.mask_polarity == "attend" else ~keep
    elif d.attn_mask == "additive":
        add = np.round(r.normal(size=shaped(d.mask_axes)) * 4) / 4
        add[r.random(add.shape) < 0.25] = -np.inf
        real["attn_mask"] = add
    if d.bias:
        real["bias"] = np.round(r.normal(size=(1, s.h, s.n, s.m) if d.bias_axes is None else shaped(d.bias_axes)) * 4) / 4
    if d.alibi and d.alibi_slopes == "given":
        real["alibi_slopes"] = np.array([2.0 ** -(h % 5 + 1) * (1 + h // 5) for h in range(s.h)])
    if d.sink:
        real["sinks"] = np.resize(np.array([0.5, -5.0, 2.0, 0.0, 5.0, 20.0]), s.h)
    if d.document:
        found["doc_q"] = np.sort(r.integers(0, 3, size=(s.b, s.n)), axis=1)
        found["doc_k"] = np.sort(r.integers(0, 3, size=(s.b, s.m)), axis=1)
    if d.key_lengths:
        found["key_lengths"] = np.array([max(1, s.m - 1 - k % 2) for k in range(s.b)])
    if d.dropout:
        found["dropout_mask"] = r.random((s.b, s.h, s.n, s.m)) < 0.75
        if d.dropout_p is None:
            real["dropout_p"] = np.array(0.25)
    for name in d.unbound:
        if name == d.prefix:
            found[name] = np.array([1 + k % max(1, s.m - 1) for k in range(s.b)])
        elif name == d.dropout_p:
            real[name] = np.array(0.25)
        elif name in d.arrays and (d.score is None or name not in arrays_of(d.score)):
            found[name] = np.sort(r.integers(0, 4, size=shaped(d.arrays[name])), axis=-1)
        elif name in d.arrays:
            real[name] = np.round(r.normal(size=shaped(d.arrays[name])) * 4) / 4
        else:
            size = (s.h,) if d.params.get(name) == "head" else ()
            real[name] = r.integers(4, 13, size=size) / 8
    return found


def cases_for(definition: Definition, dtype: str, seed: int, shape: Shape | None = None) -> dict[str, dict[str, Array]]:
    """The default pack for a definition, by the name of its kind; all in one shape where that is given.

    Inputs with a row without keys are left out under ``empty_row="error"``, unless there are no others.

    Raises
    ------
    ShapeError
        When the definition's heads contradict the shape.
    """
    found, refused = {}, {}
    for kind in (k for k in KINDS if not starts_elsewhere(definition) or (k.anywhere and not (k.ties and chooses(definition)))):
        s = shape or fitted(definition, kind.shape)
        _check(definition, s)
        fields = fields_for(definition, s, dtype, seed, kind)
        call = Call(definition, fields)
        if definition.empty_row == "error" and not starts_elsewhere(definition) and call.has_empty_row:
            refused[kind.name] = fields
        elif kind.applies(call):
            found[kind.name] = fields
    return found or refused


def fitted(definition: Definition, shape: Shape) -> Shape:
    """A shape with the numbers of heads that the definition fixes: by its fields, or by a parameter with a value per head.

    >>> str(fitted(Definition(score="t*s", params={"t": "1,2,3,4"}), Shape.parse("2,6,3,5,7,6")))
    '2,4,2,5,7,6'
    """
    if not starts_elsewhere(definition) and "m" not in {str(a) for a in definition.program().sizes}:
        length = max(shape.n, shape.m) if max(shape.n, shape.m) <= 21 else 21  # as many keys as queries
        shape = replace(shape, n=length, m=length)
    if definition.heads is not None:
        return replace(shape, h=definition.heads, hkv=definition.kv_heads or definition.heads)
    if any(isinstance(value, tuple) for value in definition.params.values()):
        heads = definition.head_counts[0]
        return replace(shape, h=heads, hkv=heads // 2 if heads % 2 == 0 else 1)
    return shape


def _check(d: Definition, s: Shape) -> None:
    if d.heads is not None and (d.heads, d.kv_heads) != (s.h, s.hkv):
        raise ShapeError(f"the definition has heads={d.heads}, kv_heads={d.kv_heads}; the shape says H={s.h}, HKV={s.hkv}")
