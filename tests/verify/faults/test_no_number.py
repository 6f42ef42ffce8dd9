"""Rows that are NaN: without keys, or where every score overflows to -infinity before the maximum is taken off."""

from __future__ import annotations

import numpy as np
import pytest

from symattn.definition import Definition
from symattn.verify.diagnosis.search import Search
from symattn.verify.faults.catalogue import CATALOGUE
from symattn.verify.judge import verify
from tests.verify.faults.running import diagnosis, seen

MASK = {"attn_mask": "boolean"}


def attended(scores, value, *, guarded):
    """Softmax of scores that may be -infinity in a whole row; NaN there unless it is ``guarded``."""
    with np.errstate(all="ignore"):
        top = scores.max(3, keepdims=True)
        top = np.where(np.isneginf(top), np.float32(0), top) if guarded else top
        e = np.exp(scores - top)
        total = e.sum(3, keepdims=True)
        out = e @ value / (np.where(total == 0, np.float32(1), total) if guarded else total)
        return out, (np.log(total) + top)[..., 0]


def expanded(query, *others):
    return [query.astype(np.float32)] + [np.repeat(x.astype(np.float32), query.shape[1] // x.shape[1], axis=1) for x in others]


def masked(*, guarded, skips=True):
    def kernel(query, key, value, *, attn_mask, enable_gqa=False):
        q, k, v = expanded(query, key, value)
        if skips:  # keys that no query sees are never loaded
            gone = ~attn_mask.any((1, 2))[:, None, :, None]
            k, v = np.where(gone, np.float32(0), k), np.where(gone, np.float32(0), v)
        s = np.where(attn_mask, q @ k.swapaxes(2, 3) * np.float32(q.shape[3] ** -0.5), np.float32(-np.inf))
        return attended(s, v, guarded=guarded)

    return kernel


def test_output_and_lse_of_an_emptied_row_are_nan():
    (found,) = diagnosis(masked(guarded=False), MASK, ("normal",))
    assert found.fault == ("F32",) and "the LSE too" in found.title


def test_the_output_alone_is_nan():
    def kernel(query, key, value, *, attn_mask, enable_gqa=False):
        out, lse = masked(guarded=True)(query, key, value, attn_mask=attn_mask)
        return np.where(np.isneginf(lse)[..., None], np.float32(np.nan), out), lse

    found = diagnosis(kernel, MASK, ("normal",))
    assert found[0].fault == ("F32",) and "(NaN)" in found[0].title


def test_an_emptied_row_of_zeros_is_right():
    assert diagnosis(masked(guarded=True), MASK, ("normal",)) == ()


def test_nan_in_rows_without_keys_is_no_leak():
    report = verify(masked(guarded=False), Definition.of(**MASK), only="poison", guard=False)
    assert report.verdict == "fail" and [f.fault for f in report.diagnosis] == [("F32",)]


def test_beside_a_leak_the_lse_of_rows_without_keys_fails():
    report = verify(masked(guarded=False, skips=False), Definition.of(**MASK), only="poison", guard=False)
    tensors = {t.name: t for c in report.cases for t in c.tensors}
    assert tensors["out"].suspect and not tensors["lse"].suspect
    assert report.verdict == "fail" and [f.fault for f in report.diagnosis] == [("F112",)]


def test_a_leak_into_rows_with_keys_stays_suspect():
    report = verify(masked(guarded=True, skips=False), Definition.of(**MASK), only="poison", guard=False)
    assert report.verdict == "suspect" and [f.fault for f in report.diagnosis] == [("F31",)]


def unscaled_first(guarded):
    def kernel(query, key, value, *, enable_gqa=False):
        q, k, v = expanded(query, key, value)
        with np.errstate(all="ignore"):
            raw = (q @ k.swapaxes(2, 3)).astype(np.float16).astype(np.float32)
        out, lse = attended(raw * np.float32(q.shape[3] ** -0.5), v, guarded=guarded)
        with np.errstate(all="ignore"):
            return out.astype(np.float16), lse

    return kernel


@pytest.mark.parametrize("guarded", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_products_that_overflow_in_a_whole_row(guarded):
    """On ``abyss`` every product is beyond float16; a guarded row gives 0, and is not what F47 says."""
    cases = seen(unscaled_first(guarded), {}, ("normal", "abyss"), "float16")
    assert all(o.failing for o in cases)
    found = Search(cases, [CATALOGUE["F47"]]).run()
    assert [e.faults[0].id for e in found] == ([] if guarded else ["F47"])


def test_a_product_in_float32_does_not_fail():
    def kernel(query, key, value, *, enable_gqa=False):
        q, k, v = expanded(query, key, value)
        out, lse = attended(q @ k.swapaxes(2, 3) * np.float32(q.shape[3] ** -0.5), v, guarded=False)
        return out.astype(np.float16), lse

    assert not any(o.failing for o in seen(kernel, {}, ("normal", "abyss"), "float16"))


@pytest.mark.parametrize("number", [-1e4, -np.inf])
def test_a_number_in_place_of_infinity_beyond_the_window_alone(number):
    def kernel(query, key, value, *, is_causal, causal_alignment, window, enable_gqa=False):
        q, k, v = expanded(query, key, value)
        n, m = q.shape[2], k.shape[2]
        back = np.arange(n)[:, None] + m - n - np.arange(m)
        s = q @ k.swapaxes(2, 3) * np.float32(q.shape[3] ** -0.5)
        s = np.where(back < window[0], s, np.float32(number))
        return attended(np.where(back >= 0, s, np.float32(-np.inf)), v, guarded=True)

    cases = seen(kernel, {"causal": "bottom-right", "window": (4, 0)}, ("normal", "abyss"))
    found = [e.forward[0] for e in Search(cases, [CATALOGUE["F27"]]).run()]
    assert [h.label for h in found] == ([] if number == -np.inf else ["-10000 beyond the window alone"])
    assert any(o.failing for o in cases) == (number != -np.inf)
