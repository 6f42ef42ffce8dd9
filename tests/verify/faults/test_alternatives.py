"""Other forms of known faults, planted in tiled kernels written anew: each is explained by its row, a correct one by none."""

from __future__ import annotations

import numpy as np
import pytest

from symattn.verify.diagnosis.diagnose import diagnose
from symattn.verify.diagnosis.search import Search
from symattn.verify.faults.catalogue import CATALOGUE
from symattn.verify.faults.fault import SAME
from symattn.verify.faults.predict import predictions
from tests.verify.faults.running import seen

F = np.float32


def tiled(fault="", tile=16):
    """A forward pass in float32, softmax in base 2 over tiles of keys."""

    def run(query, key, value, is_causal=False, causal_alignment="top-left", enable_gqa=False, window=None, sinks=None):
        g = query.shape[1] // key.shape[1]
        q, k, v = query.astype(F), key.astype(F).repeat(g, 1), value.astype(F).repeat(g, 1)
        n, m = q.shape[2], k.shape[2]
        i, j = np.arange(n)[:, None] + (m - n if causal_alignment == "bottom-right" else 0), np.arange(m)[None]
        keep = (j <= i) | (not is_causal)
        if window is not None:
            keep = keep & (i - j <= window[0] + {"wide": 2, "narrow": -2}.get(fault, 0))
        z = accumulated(q, k) if fault == "float16" else q @ k.swapaxes(2, 3)
        z = np.where(keep, z * F(q.shape[3] ** -0.5), F(-np.inf))
        if fault == "padded":
            pad = -m % tile
            z = np.concatenate([z, np.zeros((*z.shape[:3], pad), F)], 3)
            v = np.concatenate([v, np.zeros((*v.shape[:2], pad, v.shape[3]), F)], 2)
        to_base = F(1) if fault == "base 2" else F(1 / np.log(2))
        top, total, out = np.full(z.shape[:3], -np.inf, F), np.zeros(z.shape[:3], F), np.zeros((*z.shape[:3], v.shape[3]), F)
        if sinks is not None and fault != "sink":
            top, total = np.broadcast_to(sinks[:, None], top.shape).astype(F), total + 1
        for t in range(0, z.shape[3], tile):
            part = z[..., t : t + tile]
            new = np.maximum(top, part.max(3))
            safe = np.where(np.isinf(new), F(0), new)
            grown = np.exp2((top - safe) * to_base)
            p = np.exp2((part - safe[..., None]) * to_base)
            total, out = total * grown + p.sum(3), out * grown[..., None] + p @ v[:, :, t : t + tile]
            top = new
        safe = np.where(np.isinf(top), F(0), top)
        if fault == "sink":
            total = total + np.exp(sinks.astype(F))[:, None]
        with np.errstate(divide="ignore"):
            lse = np.where(total == 0, F(-np.inf), safe + np.log(total))
        return (out / np.where(total == 0, F(1), total)[..., None]).astype(query.dtype), lse.astype(F)

    run.arrays = "numpy"
    return run


def accumulated(q, k):
    z = np.zeros((*q.shape[:3], k.shape[2]), np.float16)
    for c in range(q.shape[3]):
        z = z + (q[..., c, None] * k[..., None, :, c]).astype(np.float16)
    return z.astype(F)


ROWS = [
    ("base 2", {"causal": "bottom-right"}, "F63", "as they are"),
    ("sink", {"causal": "bottom-right", "sink": True}, "F113", "of the keys alone"),
    ("padded", {"causal": "bottom-right"}, "F33", "behind the mask"),
    ("padded", {}, "F33", "tile 16"),
    ("wide", {"causal": "bottom-right", "window": (2, 0), "window_counts": "distance"}, "F167", "two keys too wide"),
    ("narrow", {"causal": "bottom-right", "window": (3, 0), "window_counts": "distance"}, "F168", "two keys too narrow"),
    ("float16", {}, "F169", "float16, products too"),
]


@pytest.mark.parametrize(("fault", "fields", "id", "title"), ROWS)
def test_it_is_explained_by_its_row(fault, fields, id, title):
    cases = seen(tiled(fault), fields, ("normal", "tall"))
    assert any(o.failing for o in cases)
    found = Search(cases, [CATALOGUE[id], CATALOGUE["F05"]]).run()
    assert [f.id for e in found for f in e.faults[:1]][:1] == [id]
    assert any(title in str(f) for f in diagnose(cases, None, {id: CATALOGUE[id]}))


@pytest.mark.parametrize("fields", [{}, {"causal": "bottom-right", "sink": True}, {"causal": "bottom-right", "window": (2, 0)}])
def test_the_correct_kernel_fails_nowhere(fields):
    fields = fields | ({"window_counts": "distance"} if "window" in fields else {})
    assert not any(o.failing for o in seen(tiled(), fields, ("normal", "tall")))


def test_formulas_follow_how_a_window_counts():
    window = {"causal": "bottom-right", "window": (3, 0)}
    texts = []
    for counts in ("distance", "keys"):
        (o,) = seen(tiled(), window | {"window_counts": counts}, ("normal",))
        texts.append(CATALOGUE["F18"].formulas(o.situation))
    assert texts == [("i - j <= W + 1", "i - j <= W"), ("i - j <= W", "i - j < W")]


def test_padded_keys_change_rows_without_keys_too():
    (o,) = seen(tiled(), {"causal": "bottom-right"}, ("tall",))
    a = next(a for a in CATALOGUE["F33"].alternatives(o.situation) if a.label.startswith("tile 16"))
    right, wrong = predictions(o.situation, SAME), predictions(o.situation, a)
    empty = np.isneginf(right["lse"].value)
    assert empty.any() and np.allclose(wrong["lse"].value[empty], np.log(11))
