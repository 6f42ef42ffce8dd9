"""What is given per batch entry and per head misread, or left in another base: planted in a plain kernel, named by its row."""

from __future__ import annotations

import numpy as np
import pytest

from symattn.definition import Definition
from symattn.verify.diagnosis.search import Search
from symattn.verify.faults.catalogue import CATALOGUE
from symattn.verify.inputs import Shape, fields_for
from tests.verify.faults.running import seen

F = np.float32
LOG2E = F(1.4426950408889634)


def rotated(x, positions):
    half = x.shape[3] // 2
    angle = positions[:, None] * 10000.0 ** (-np.arange(half) / half)
    c, s = np.cos(angle).astype(F), np.sin(angle).astype(F)
    a, b = x[..., :half], x[..., half:]
    return np.concatenate([a * c - b * s, a * s + b * c], 3)


def of_heads(x, fault, h, kv):
    """Numbers per query head, as a kernel with a fault reads them."""
    at = list(range(h))
    if fault == "by key head":
        at = [k // (h // kv) for k in at]
    elif fault == "(kv, g).T":
        at = [a * (h // kv) + b for b in range(h // kv) for a in range(kv)]
    elif fault == "(g, kv).T":
        at = [b * kv + a for a in range(kv) for b in range(h // kv)]
    elif fault == "exchanged":
        at[0], at[1] = 1, 0
    elif fault == "pairs":
        at = [k ^ 1 if k ^ 1 < h else k for k in at]
    return x[at].astype(F)[:, None, None]


def entries(x, fault):
    x = np.asarray(x)
    other = {"next": np.roll(x, -1, 0), "before": np.roll(x, 1, 0), "first": x[[0] * len(x)], "last": x[[-1] * len(x)]}
    return np.full_like(x, x.max()) if fault == "largest" else other.get(fault, x)


def plain(fault="", rotates=False):
    """Attention over all keys at once, with what is in its options."""

    def run(query, key, value, is_causal=False, causal_alignment="top-left", enable_gqa=False, **o):
        h, kv, n, m = query.shape[1], key.shape[1], query.shape[2], key.shape[2]
        if rotates:
            query, key = rotated(query, np.arange(n)), rotated(key, np.arange(m) + (fault == "keys from 1"))
        z = query @ key.repeat(h // kv, 1).swapaxes(2, 3) * F(query.shape[3] ** -0.5)
        i, j = np.arange(n)[:, None] + (m - n if causal_alignment == "bottom-right" else 0), np.arange(m)
        keep = (j <= i) | (not is_causal)
        if "key_lengths" in o:
            keep = keep & (j < entries(o["key_lengths"], fault)[:, None, None, None])
        if "doc_q" in o:
            q, k = entries(o["doc_q"], fault.removesuffix(" of keys")), entries(o["doc_k"], fault.removesuffix(" of keys"))
            q = o["doc_q"] if fault.endswith("of keys") else q
            keep = keep & (q[:, :, None] == k[:, None, :])[:, None]
        if "softcap" in o:
            cap = F(o["softcap"])
            z = cap * np.tanh(z * (LOG2E if "folded" in fault else F(1)) / cap)
            z = z / LOG2E if fault == "folded, base 2" else z
        added = F(0)
        for name in ("bias", "attn_mask"):
            if name in o:
                added = added + o[name].astype(F)
        if "alibi_slopes" in o:
            added = added - of_heads(o["alibi_slopes"], fault, h, kv) * (np.arange(n)[:, None] + m - n - j).astype(F)
        z = np.where(keep, z + (added / LOG2E if fault == "base" else added), F(-np.inf))
        if "sinks" in o:
            sinks = np.broadcast_to(of_heads(o["sinks"], fault, h, kv), (*z.shape[:3], 1))
            z = np.concatenate([z, sinks], 3)
        top = z.max(3, keepdims=True)
        top = np.where(np.isinf(top), F(0), top)
        e = np.exp(z - top)
        total = e.sum(3, keepdims=True)
        none = total == 0
        lse = np.where(none, F(-np.inf), top + np.log(np.where(none, F(1), total)))[..., 0]
        return e[..., :m] @ value.repeat(h // kv, 1) / np.where(none, F(1), total), lse

    run.arrays = "numpy"
    return run


DOWN = {"causal": "bottom-right"}
LENGTHS, DOCUMENTS, SINKS, SLOPES = {"key_lengths": True}, {"document": True}, {"sink": True}, {**DOWN, "alibi": True}
NAMED = [
    ("first", LENGTHS, "F175", "the first one for all"),
    ("last", LENGTHS, "F175", "the last one for all"),
    ("largest", LENGTHS, "F175", "the largest for all"),
    ("next", LENGTHS, "F175", "the next one"),
    ("before", LENGTHS, "F175", "the one before"),
    ("first", DOCUMENTS, "F175", "the first one for all"),
    ("next", DOCUMENTS, "F175", "the next one"),
    ("next of keys", DOCUMENTS, "F175", "the next one, of the keys alone"),
    ("(kv, g).T", SINKS, "F115", "heads in the other grouping"),
    ("(g, kv).T", SINKS, "F115", "heads in the other grouping, the other way round"),
    ("exchanged", SINKS, "F115", "heads 0 and 1 exchanged"),
    ("pairs", SINKS, "F115", "neighbours exchanged"),
    ("by key head", SINKS, "F115", "that of the key/value head"),
    ("by key head", SLOPES, "F123", "that of the key/value head"),
    ("(g, kv).T", SLOPES, "F123", "heads in the other grouping, the other way round"),
    ("by key head", {**SLOPES, "alibi_slopes": "given"}, "F123", "that of the key/value head"),
    ("keys from 1", {"rope": "half"}, "F51", "queries start one earlier, or keys one later"),
    ("base", {"bias": True}, "F176", "bias times ln 2"),
    ("base", {"attn_mask": "additive"}, "F176", "mask times ln 2"),
    ("base", SLOPES, "F176", "ALiBi times ln 2"),
    ("base", {**SLOPES, "bias": True}, "F176", "all times ln 2"),
    ("folded, base 2", {"softcap": 5}, "F177", "exponentials to base 2"),
    ("folded, base e", {"softcap": 5}, "F177", "exponentials to base e"),
]


@pytest.mark.parametrize(("fault", "fields", "id", "label"), NAMED)
def test_it_is_explained_by_its_row(fault, fields, id, label):
    cases = seen(plain(fault, "rope" in fields), fields, ("normal", "tall", *(["large"] if "softcap" in fields else [])))
    assert any(o.failing for o in cases)
    rows = [CATALOGUE[x] for x in (id, "F05", "F28", "F63", "F64", "F75", "F76", "F77", "F87", "F170")]
    found = [e.forward for e in Search(cases, rows, budget=0).run()]
    assert {h.fault.id for f in found for h in f} == {id}
    assert label in {h.label for f in found for h in f}


@pytest.mark.parametrize("fields", list({str(x[1]): x[1] for x in NAMED}.values()), ids=str)
def test_the_right_kernel_fails_nowhere(fields):
    assert not any(o.failing for o in seen(plain("", "rope" in fields), fields, ("normal", "tall")))


@pytest.mark.parametrize("keys", [4, 5, 6, 7, 9, 64, 512])
def test_lengths_of_neighbouring_entries_differ_by_more_than_one_key(keys):
    for batch in (2, 3):
        a = fields_for(Definition(key_lengths=True), Shape(batch, 1, 1, 2, keys, 2, 2), "float32", 0)["key_lengths"]
        assert a.min() >= 1 and a.max() <= keys and (np.abs(np.diff(a)) >= 2).all() and (a < keys).any()
    alone = [fields_for(Definition(key_lengths=True), Shape(1, 1, 1, 2, m, 2, 2), "float32", 0)["key_lengths"] for m in (1, 2, 3)]
    assert [a.tolist() for a in alone] == [[1], [1], [1]]


def test_both_a_full_length_and_a_first_entry_that_is_not_the_largest_are_drawn():
    found = [fields_for(Definition(key_lengths=True), Shape(2, 1, 1, 2, m, 2, 2), "float32", 0)["key_lengths"] for m in (5, 7, 9)]
    assert any(a.max() == m for a, m in zip(found, (5, 7, 9), strict=True)) and any(a[0] < a.max() for a in found)
