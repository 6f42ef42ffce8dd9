"""Seeded inputs for a definition, exactly representable in a dtype: the arrays of a kind, and the cases of a run.

The kinds of the default pack are in :mod:`symattn.verify.pack.kinds`, their sizes in ``pack.shapes``, their numbers in
``pack.laws``. An input depends on the seed, the shape, the kind and the dtype, and on nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from symattn import formats
from symattn.definition import Definition
from symattn.errors import DefinitionError, ShapeError
from symattn.grammar import arrays_of
from symattn.intake import Array
from symattn.verify import drawn
from symattn.verify.kernels.call import Call
from symattn.verify.pack.kinds import KINDS, SHAPE, Kind, left_out, named
from symattn.verify.pack.laws import unread
from symattn.verify.pack.requirement import Requirement
from symattn.verify.pack.shapes import SHAPE_LETTERS, Shape, fitted, refuse_other_heads, starts_elsewhere

__all__ = ["KINDS", "SHAPE_LETTERS", "Choice", "Kind", "Shape", "cases_for", "fields_for", "fitted", "starts_elsewhere"]

Applies = Callable[[Kind, Call], bool]
SOME = 16
"""Keys from which on a given mask hides half a row, so that whole tiles are masked."""


@dataclass(frozen=True)
class Choice:
    """Which inputs of the pack a run takes, and in which sizes.

    Parameters
    ----------
    shape
        A further input of these sizes, of the kind ``shape``.
    only, skip
        Names of kinds: those that are taken, those that are not.
    max_len
        The greatest number of queries and of keys.
    require
        What sizes have to fulfil; each kind takes the nearest that do.
    """

    shape: Shape | None = None
    only: tuple[str, ...] | None = None
    skip: tuple[str, ...] = ()
    max_len: int | None = None
    require: Requirement | None = None

    @classmethod
    def of(
        cls,
        shape: str | Shape | None = None,
        only: str | Sequence[str] | None = None,
        skip: str | Sequence[str] | None = None,
        max_len: int | None = None,
        require: str | None = None,
    ) -> Choice:
        """A choice from what users write.

        Raises
        ------
        UnknownNameError, ShapeError, GrammarError, DefinitionError
            For a kind that does not exist, a bad shape, a text that cannot be read, a length below 1, and for a choice of no
            input at all.

        >>> Choice.of(only="tall,shape", shape="1,2,1,3,5,4").only
        ('tall', 'shape')
        """
        sizes = Shape.parse(shape) if isinstance(shape, str) else shape
        wanted, unwanted = named(only, "only"), named(skip, "skip") or ()
        if max_len is not None and max_len < 1:
            raise DefinitionError(f"max_len is the greatest number of queries and keys, from 1 on, got {max_len}")
        if wanted is not None and SHAPE.name in wanted and sizes is None:
            raise DefinitionError("the input 'shape' is of the sizes that --shape says, and it says none")
        if wanted is not None and not set(wanted) - set(unwanted):
            raise DefinitionError("every input that only names is skipped: no input is left")
        return cls(sizes, wanted, unwanted, max_len, Requirement.parse(require) if require is not None else None)

    def takes(self, kind: Kind) -> bool:
        """Whether inputs of a kind are wanted."""
        return (self.only is None or kind.name in self.only) and kind.name not in self.skip

    def sized(self, definition: Definition, kind: Kind) -> Shape:
        """The sizes of a kind: those that it wants, made to fit the definition, the requirement and the greatest length.

        Raises
        ------
        ShapeError
            When a shape that was given has other heads than the definition or does not fulfil what is required, and when no
            sizes fulfil it.
        """
        if kind is SHAPE and self.shape is not None:
            refuse_other_heads(definition, self.shape)
            if self.require is not None and not self.require.holds(self.shape):
                raise ShapeError(
                    f"the shape {self.shape} does not fulfil {self.require.text!r}, which is required; give one that does"
                )
            return self.shape
        s = fitted(definition, kind.shape)
        if kind.square and definition.causal not in (None, "bottom-right"):
            s = replace(s, h=s.h // s.hkv, hkv=1, n=kind.square, m=kind.square) if definition.heads is None else s
        if self.max_len is not None:
            s = replace(s, n=min(s.n, self.max_len), m=min(s.m, self.max_len))
        if self.require is not None:
            s = self.require.fit(s)
            refuse_other_heads(definition, s)
        return s

    def kinds(self, definition: Definition) -> Iterator[tuple[Kind, Shape]]:
        """The kinds that are wanted for a definition, with their sizes; of those that have come to be the same, the first."""
        seen: list[tuple[Kind, Shape]] = []
        for kind in (*KINDS, *([SHAPE] if self.shape is not None else [])):
            if not self.takes(kind) or left_out(definition, kind, elsewhere=starts_elsewhere(definition)):
                continue
            shape = self.sized(definition, kind)
            if kind is SHAPE or not any(s == shape and kind.beside(k) for k, s in seen):
                seen.append((kind, shape))
                yield kind, shape


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
        kind.change(real, definition)
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
        nobody = unread(Call(definition, fields))
        for name in ("key", "value"):
            fields[name][nobody] = np.nan
    return fields


def _given(d: Definition, s: Shape, r: np.random.Generator, real: dict[str, Array]) -> dict[str, Array]:
    """What the definition reads: real arrays are added to ``real``, the others returned."""
    found: dict[str, Array] = {}
    full = {"b": s.b, "h": s.h, "i": s.n, "j": s.m}

    def shaped(axes: str | None) -> tuple[int, ...]:
        return (s.b, 1, s.n, s.m) if axes is None else tuple(full[a] for a in axes)

    if d.attn_mask == "boolean":
        hidden = _hidden(d, s, r, shaped(d.mask_axes), 0.3)
        found["attn_mask"] = ~hidden if d.mask_polarity == "attend" else hidden
    elif d.attn_mask == "additive":
        add = np.round(r.normal(size=shaped(d.mask_axes)) * 4) / 4
        real["attn_mask"] = np.where(_hidden(d, s, r, add.shape, 0.25), -np.inf, add)
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
        found["key_lengths"] = _lengths(s)
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


def _hidden(d: Definition, s: Shape, r: np.random.Generator, shape: tuple[int, ...], share: float) -> Array:
    """Which pairs a given mask hides, a share of all; a mask of pairs hides a row, a key, and half of a long row besides."""
    hidden = r.random(shape) >= 1 - share
    if hidden.ndim > 1 and (d.mask_axes or "ij").endswith("ij"):
        hidden[..., 1:2, :] = True  # a row without keys
        hidden[..., -2:-1] = True  # a key that nothing reads
        if s.m > SOME and s.n > 2:
            hidden[..., 2, : s.m // 2] = True  # a row whose first keys, by the tile, are masked
    return hidden


def _lengths(s: Shape) -> Array:
    """Numbers of keys by batch entry, of which neighbours differ by two or more where there is room.

    They are a third of the keys apart. In some sizes the first entry has all keys; in others the second has all but one, the
    most: so the length of an entry that is read for all is told from the largest, and from none at all.
    """
    later = s.m // 2 % 2
    top = s.m - later * (s.m > 3)
    step = max(1, min(top - 1, max(2, s.m // 3)))
    several = (top - 1) // step + 1
    return np.array([top - step * ((later - k) % several) for k in range(s.b)])


def cases_for(
    definition: Definition, dtype: str, seed: int, choice: Choice | None = None, *, judged: Applies | None = None
) -> dict[str, dict[str, Array]]:
    """The inputs of a run for a definition, by the name of their kind.

    Inputs with a row without keys are left out under ``empty_row="error"``, unless there are no others.

    Parameters
    ----------
    definition, dtype, seed
        As for :func:`fields_for`.
    choice
        Which of the pack; by default all that applies.
    judged
        Whether anything is promised for a kind on a call; by default it is.

    Raises
    ------
    ShapeError
        When the definition's heads contradict the shape, or no sizes fit what is required.
    DefinitionError
        When no input is left.
    """
    choice = choice or Choice()
    found, refused = {}, {}
    for kind, shape in choice.kinds(definition):
        fields = fields_for(definition, shape, dtype, seed, kind)
        call = Call(definition, fields)
        error = definition.empty_row == "error" and kind is not SHAPE and not starts_elsewhere(definition)
        if error and call.has_empty_row:
            refused[kind.name] = fields
        elif kind.applies(call) and (judged is None or judged(kind, call)):
            found[kind.name] = fields
    if not found and not refused:
        raise DefinitionError("no input is left: none of those that are wanted says anything of this definition")
    return found or refused
