"""Bands are read off the visible pairs, whatever made them; FlexAttention's mask_mod makes the same pairs from the fields."""

from __future__ import annotations

import numpy as np
import pytest

from symattn.definition import Definition
from symattn.verify.inputs import Shape, fields_for
from symattn.verify.kernels.bands import Band, band
from symattn.verify.kernels.call import Call
from symattn.verify.kernels.flex_mods import mask_mod, score_mod

FIELDS = (
    {},
    {"causal": "top-left"},
    {"causal": "bottom-right"},
    {"causal": 1},
    {"causal": "bottom-right", "window": (3, 0)},
    {"window": (2, 1)},
    {"window": (2, 1), "window_counts": "distance", "window_alignment": "top-left"},
    {"causal": "top-left", "prefix": 2},
    {"document": True},
    {"key_lengths": True},
    {"key_lengths": True, "causal": "bottom-right", "window": (2, 0)},
    {"attn_mask": "boolean"},
    {"attn_mask": "boolean", "mask_polarity": "drop", "mask_axes": "hij"},
    {"attn_mask": "additive", "mask_axes": "bij"},
    {"attn_mask": "boolean", "mask_axes": "ij", "causal": "bottom-right"},
)


def calls(fields):
    d = Definition(**fields)
    for shape in ("2,4,2,5,7,3", "2,4,2,7,5,3"):
        yield Call(d, fields_for(d, Shape.parse(shape), "float32", 3))


@pytest.mark.parametrize("fields", FIELDS, ids=str)
def test_a_band_makes_the_visible_pairs(fields):
    for call in calls(fields):
        n, m = call.score_shape[2:]
        for offset in (0, m - n):
            found = band(call, offset)
            distance = np.arange(n)[:, None] + offset - np.arange(m)
            limits = [(a, b) for a in range(-m, n + m) for b in range(-n, n + m)]
            bands = [(a, b) for a, b in limits if (call.keep == ((distance <= a) & (-distance <= b))).all()]
            assert (found is None) == (not bands)
            if found is not None:
                left = found.left if found.left is not None else n + m - 1
                right = found.right if found.right is not None else n + m - 1
                assert (call.keep == ((distance <= left) & (-distance <= right))).all()


def test_limits_beyond_the_last_diagonal_are_none():
    call = next(calls({"causal": "bottom-right"}))
    assert band(call, 2) == Band(None, 0) and band(call) == Band(None, 2)
    assert band(next(calls({}))) == Band(None, None)


@pytest.mark.parametrize("fields", FIELDS, ids=str)
def test_mask_mod_makes_the_visible_pairs(require, fields):
    torch = require("torch")
    for call in calls(fields):
        b, h, i, j = torch.meshgrid(*(torch.arange(x) for x in call.score_shape), indexing="ij")
        assert (mask_mod(call)(b, h, i, j).numpy() == call.keep).all()


@pytest.mark.parametrize("distance", ["signed", "absolute"])
def test_score_mod_adds_what_the_definition_says(require, distance):
    torch = require("torch")
    fields = {"softcap": 2, "alibi": True, "alibi_distance": distance, "bias": True, "attn_mask": "additive"}
    for call in calls(fields | {"causal": "bottom-right"}):
        score = score_mod(call)
        s = np.random.default_rng(0).normal(size=call.score_shape)
        at = torch.meshgrid(*(torch.arange(x) for x in call.score_shape), indexing="ij")
        found = score.function(torch.from_numpy(s), *at, *score.arrays.values()).numpy()
        away = np.arange(s.shape[2])[:, None] + s.shape[3] - s.shape[2] - np.arange(s.shape[3])
        away = abs(away) if distance == "absolute" else away
        add = np.where(np.isneginf(call.fields["attn_mask"]), 0, call.fields["attn_mask"])
        slopes = call.fields["alibi_slopes"][:, None, None]
        np.testing.assert_allclose(found, 2 * np.tanh(s / 2) - slopes * away + call.fields["bias"] + add, rtol=1e-6, atol=1e-6)
