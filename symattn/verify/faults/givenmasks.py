"""Faults of masks that are given: documents, lengths, Boolean and additive masks, conditions of one's own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

import numpy as np
import sympy as sp

from symattn.indexed import all_reads, conjuncts, name_of
from symattn.intake import Array
from symattn.verify.faults.fault import Alternative, Fault, Situation
from symattn.verify.faults.structure import I, as_bound, pairs_condition, with_conjunct, without

Rewrite = Callable[[Situation], Iterator[Alternative]]


def _without(field: str) -> Rewrite:
    """A part of the mask that is a Boolean field of the definition, left out."""

    def rewrite(s: Situation) -> Iterator[Alternative]:
        if getattr(s.definition, field):
            fields: dict[str, Any] = {field: False}
            yield from s.changed("", **fields)

    return rewrite


def _borders(s: Situation) -> Iterator[Alternative]:
    """Borders of documents one place off: what stands at a border belongs to the document before, or after, it."""
    given = [n for n in ("doc_k", "doc_q") if n in s.fields]
    if not s.definition.document or not given:
        return
    words = {"doc_k": "of the keys", "doc_q": "of the queries"}
    for names in dict.fromkeys(((given[0],), tuple(given), (given[-1],))):
        for side, by in (("later", 1), ("earlier", -1)):
            moved = {n: _moved(s.fields[n], by) for n in names}
            yield Alternative(f"{side}, {' and '.join(words[n] for n in names)}", fields=moved)


def _moved(documents: Array, by: int) -> Array:
    """Numbers of documents along the last axis, each place having that of its neighbour; the one at the end stays."""
    n = documents.shape[-1]
    return np.asarray(documents[..., np.clip(np.arange(n) - by, 0, n - 1)])


def _one_sided(s: Situation) -> Iterator[Alternative]:
    """Documents compared by order in place of equality."""
    if s.definition.document:
        for label, relation in (("earlier ones", sp.Ge), ("later ones", sp.Le)):
            yield Alternative(label, edit=with_conjunct(partial(_compared, relation)))


def _compared(relation: Callable[[sp.Expr, sp.Expr], sp.Basic], c: sp.Basic) -> sp.Basic:
    """The equality of the documents of a query and a key as another relation of the two, the query's first."""
    if not isinstance(c, sp.Equality) or not any(name_of(x).startswith("doc") for x in all_reads(c)):
        return c
    first, second = c.args
    return relation(first, second) if I in first.free_symbols else relation(second, first)


def _lengths(by: int) -> Rewrite:
    def rewrite(s: Situation) -> Iterator[Alternative]:
        if s.definition.key_lengths:
            moved = s.fields["key_lengths"] + by
            yield Alternative(fields={"key_lengths": np.clip(moved, 1, s.sizes["M"]).astype(moved.dtype)})

    return rewrite


def _entries(s: Situation) -> Iterator[Alternative]:
    """Lengths, prefixes or documents of other batch entries."""
    d = s.definition
    given = (["key_lengths"] if d.key_lengths else []) + ([d.prefix] if isinstance(d.prefix, str) else [])
    for name in given:
        a = s.fields.get(name)
        if a is not None and a.ndim == 1:
            yield from _of_other_entries(s, (name,), "", more=(("the largest for all", np.full(len(a), np.argmax(a))),))
    documents = tuple(n for n in ("doc", "doc_q", "doc_k") if n in s.fields and s.fields[n].ndim > 1) if d.document else ()
    yield from _of_other_entries(s, documents, "")
    for name, side in (("doc_q", "of the queries"), ("doc_k", "of the keys")):
        if name in documents:
            yield from _of_other_entries(s, (name,), f", {side} alone")


def _of_other_entries(
    s: Situation, names: tuple[str, ...], ending: str, more: Iterable[tuple[str, Array]] = ()
) -> Iterator[Alternative]:
    """Fields by batch entry, each entry having that of another one."""
    if not names:
        return
    order = np.arange(len(s.fields[names[0]]))
    taken = (
        ("the next one", np.roll(order, -1)),
        ("the one before", np.roll(order, 1)),
        ("the first one for all", 0 * order),
        ("the last one for all", np.full_like(order, order[-1])),
    )
    for label, at in (*taken, *more):
        fields = {n: s.fields[n][at] for n in names}
        if any((fields[n] != s.fields[n]).any() for n in names):
            yield Alternative(label + ending, fields=fields)


def _polarity(s: Situation) -> Iterator[Alternative]:
    if s.definition.attn_mask == "boolean":
        other = "drop" if s.definition.mask_polarity == "attend" else "attend"
        yield from s.changed("", mask_polarity=other)


def _no_mask(s: Situation) -> Iterator[Alternative]:
    if s.definition.attn_mask is not None:
        yield from s.changed("", attn_mask=None, mask_axes=None)


def mask_only(s: Situation) -> Iterator[Alternative]:
    """Of an additive mask the places of -inf alone."""
    if s.definition.attn_mask == "additive":
        a = s.fields["attn_mask"]
        yield Alternative(fields={"attn_mask": np.where(np.isneginf(a), a, np.zeros_like(a))})


def _added_twice(s: Situation) -> Iterator[Alternative]:
    if s.definition.attn_mask == "additive":
        yield Alternative(fields={"attn_mask": s.fields["attn_mask"] * 2})


def looked_at(name: str, axis: int, at: Callable[[int], Array]) -> Rewrite:
    """A field read at other places of an axis, counted from the last of (B, H, i, j) where the field has fewer axes."""

    def rewrite(s: Situation) -> Iterator[Alternative]:
        a = s.fields.get(name)
        if a is None or a.ndim < 2 or a.ndim + axis < 0 or a.shape[axis] < 2 or name + "_axes" in _renamed(s, name):
            return
        order = at(a.shape[axis])
        places = np.take(np.arange(a.size).reshape(a.shape), order, axis=axis)
        yield Alternative(reads={name: places})

    return rewrite


def _renamed(s: Situation, name: str) -> tuple[str, ...]:
    """Where a mask does not carry its axes in the order of (B, H, i, j) from the right."""
    axes = {"attn_mask": s.definition.mask_axes, "bias": s.definition.bias_axes}.get(name)
    return () if axes is None or "bhij".endswith(axes) else (name + "_axes",)


def transposed(name: str) -> Rewrite:
    """A field with queries and keys exchanged, where there are as many of both."""

    def rewrite(s: Situation) -> Iterator[Alternative]:
        a = s.fields.get(name)
        if a is not None and a.ndim >= 2 and a.shape[-1] == a.shape[-2] > 1:
            yield Alternative(reads={name: np.swapaxes(np.arange(a.size).reshape(a.shape), -1, -2)})

    return rewrite


def _only_part(s: Situation) -> Iterator[Alternative]:
    """One of several conditions of the mask left out that no other row is about."""
    parts = conjuncts(pairs_condition(s.program))
    for k, c in enumerate(parts):
        b = as_bound(c)
        if b is None and not any(name_of(r) in ("B", "M", "doc_q", "doc_k", "doc", "len") for r in all_reads(c)):
            yield Alternative(f"condition {k + 1}", edit=without(c))


ROWS = (
    Fault(
        "F35", "packing leak: documents see each other", "mathematics", "all keys", "doc_q[i] == doc_k[j]",
        _without("document"),
        threads=("axolotl#3796", "nanoVLM#204"), look="whether the borders of documents (cu_seqlens) reach the kernel",
        shows="several documents", blind="one document", convention="document",
    ),
    Fault(
        "F170", "borders of documents one place off", "mathematics", "doc_q[i] == doc_k[j - 1]", "doc_q[i] == doc_k[j]", _borders,
        look="< and <= where cumulated lengths are searched", shows="several documents", blind="one document",
        convention="document",
    ),
    Fault(
        "F171", "documents see others that come before, or after", "mathematics", "doc_q[i] >= doc_k[j]", "doc_q[i] == doc_k[j]",
        _one_sided, look="the comparison of document numbers", shows="several documents", blind="one document",
        convention="document",
    ),
    Fault(
        "F75", "padded keys are attended to: given lengths are ignored", "mathematics", "all keys", "j < length",
        _without("key_lengths"), threads=("HunyuanVideo#310",), look="whether lengths reach the kernel",
        convention="key_lengths",
    ),
    Fault(
        "F76", "one key beyond the given length is attended to", "mathematics", "j <= length", "j < length", _lengths(1),
        look="< and <= at the end of the keys", convention="key_lengths",
    ),
    Fault(
        "F77", "the last key of the given length is left out", "mathematics", "j < length - 1", "j < length", _lengths(-1),
        look="< and <= at the end of the keys", convention="key_lengths",
    ),
    Fault(
        "F175", "lengths or documents of the wrong batch entry", "mathematics", "length[b'], doc[b']", "length[b], doc[b]",
        _entries, look="the batch index of lengths, prefixes and document numbers", shows="entries that differ",
        blind="B = 1",
    ),
    Fault(
        "F30", "mask polarity reversed", "convention", "True drops", "True attends", _polarity,
        threads=("pytorch#170400", "TransformerEngine#614"), look="what True means", shows="a Boolean mask",
        convention="attn_mask",
    ),
    Fault(
        "F78", "the given mask is ignored", "mathematics", "s", "s + mask", _no_mask,
        look="whether attn_mask reaches the kernel",
        shows="a given mask", convention="attn_mask",
    ),
    Fault(
        "F79", "of an additive mask only the places of -inf are used", "mathematics", "s where mask > -inf", "s + mask",
        mask_only,
        look="a cast of the mask to Boolean", shows="an additive mask with finite entries", convention="attn_mask",
    ),
    Fault(
        "F80", "an additive mask is added twice", "mathematics", "s + 2*mask", "s + mask", _added_twice,
        look="a mask that is part of the score and added again", shows="an additive mask with finite entries",
        convention="attn_mask",
    ),
    Fault(
        "F81", "given mask transposed", "mathematics", "mask[j, i]", "mask[i, j]", transposed("attn_mask"),
        look="the strides of the mask", shows="n = m", convention="attn_mask",
    ),
    Fault(
        "F82", "the mask of the first batch entry is used for all", "mathematics", "mask[0]", "mask[b]",
        looked_at("attn_mask", -4, lambda n: np.zeros(n, int)), look="the batch stride of the mask",
        shows="a mask per batch entry",
        convention="attn_mask",
    ),
    Fault(
        "F83", "the mask of the first head is used for all", "mathematics", "mask[b, 0]", "mask[b, h]",
        looked_at("attn_mask", -3, lambda n: np.zeros(n, int)), look="the head stride of the mask", shows="a mask per head",
        convention="attn_mask",
    ),
    Fault(
        "F84", "the mask of the first query is used for all", "mathematics", "mask[0, j]", "mask[i, j]",
        looked_at("attn_mask", -2, lambda n: np.zeros(n, int)), look="the row stride of the mask", shows="a mask per query",
        convention="attn_mask",
    ),
    Fault(
        "F85", "mask shifted by one key", "mathematics", "mask[i, j - 1]", "mask[i, j]",
        looked_at("attn_mask", -1, lambda n: np.maximum(np.arange(n) - 1, 0)), threads=("tt-metal#38004",),
        look="the column offset of the mask in a tile", shows="a given mask", convention="attn_mask",
    ),
    Fault(
        "F160", "mask with its keys in reverse order", "mathematics", "mask[i, m - 1 - j]", "mask[i, j]",
        looked_at("attn_mask", -1, lambda n: np.arange(n)[::-1]), look="the column stride of the mask", shows="a given mask",
        convention="attn_mask",
    ),
    Fault(
        "F86", "a condition of the mask is ignored", "mathematics", "keep without it", "keep", _only_part,
        look="the parts of the mask", shows="a mask of several conditions", convention="mask",
    ),
)  # fmt: skip
