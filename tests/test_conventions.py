"""What frameworks mean by their names: their own options give the definition that their own code computes."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sp

from symattn import conventions
from symattn.binding import bind, unbind
from symattn.definition import Definition
from symattn.errors import UnknownNameError
from symattn.readings import numpy as reading

RNG = np.random.default_rng(11)
Q, K, V = RNG.standard_normal((2, 4, 3, 5)), RNG.standard_normal((2, 2, 6, 5)), RNG.standard_normal((2, 2, 6, 5))
MASK = RNG.random((2, 1, 3, 6)) < 0.5
MASK[0, 0, 1] = False


def computed(definition: Definition, layout: str, **more: np.ndarray) -> np.ndarray:
    """The output in the layout ``bhsd``, from arrays given in the framework's layout."""
    turn = (lambda x: np.swapaxes(x, 1, 2)) if layout == "bshd" else (lambda x: x)
    bound = bind(definition, {"query": turn(Q), "key": turn(K), "value": turn(V), **more}, layout=layout)
    values = reading.evaluate(bound.program, bound.inputs, sizes=bound.sizes)
    return turn(unbind(bound, "O", values["O"])[1])


@pytest.mark.parametrize("options", [{}, {"is_causal": True}, {"scale": 0.25}, {"attn_mask": "boolean"}], ids=str)
def test_torch(options, require):
    torch = require("torch")
    convention = conventions.get("torch")
    d = convention.definition(**options, enable_gqa=True)
    given = {"attn_mask": MASK} if "attn_mask" in options else {}
    own = {**options, **{k: torch.from_numpy(x) for k, x in given.items()}}
    q, k, v = map(torch.from_numpy, (Q, K, V))
    expected = torch.nn.functional.scaled_dot_product_attention(q, k, v, enable_gqa=True, **own).numpy()
    np.testing.assert_allclose(computed(d, convention.layout, **given), expected, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"is_causal": True},
        {"scale": 0.25},
        {"mask": "boolean"},
        {"local_window_size": (1, 2)},
        {"local_window_size": 1},
        {"key_value_seq_lengths": True},
        {"is_causal": True, "local_window_size": (1, 0)},
    ],
    ids=str,
)
def test_jax(options):
    jax = pytest.importorskip("jax")
    convention = conventions.get("jax")
    d = convention.definition(**options)
    given, own = {}, dict(options)
    if "mask" in options:
        given["attn_mask"] = own["mask"] = MASK
    if "key_value_seq_lengths" in options:
        given["key_lengths"] = own["key_value_seq_lengths"] = np.array([2, 6], dtype=np.int32)
    q, k, v = (np.swapaxes(x, 1, 2).astype(np.float32) for x in (Q, K, V))
    expected = np.swapaxes(np.asarray(jax.nn.dot_product_attention(q, k, v, **own)), 1, 2)
    np.testing.assert_allclose(computed(d, convention.layout, **given), expected, rtol=2e-5, atol=2e-6)


def test_mlx_is_bottom_right_and_uniform():
    d = conventions.get("mlx").definition(mask="causal", scale=0.5)
    assert (d.causal, d.empty_row, d.scale) == ("bottom-right", "uniform", sp.Rational(1, 2))
    assert conventions.get("mlx").definition(sinks=True).empty_row == "zero"


@pytest.mark.parametrize(
    ("options", "fields"),
    [
        ({"is_causal": 1}, {"causal": "top-left", "window_alignment": "top-left"}),
        ({"is_causal": 1, "past_key": 5}, {"causal": 5, "window_alignment": 5}),
        (
            {"is_causal": 1, "nonpad_kv_seqlen": True},
            {"causal": "bottom-right", "key_lengths": True, "window_alignment": "bottom-right"},
        ),
        ({"softcap": 0.0}, {"window_alignment": "top-left"}),
        ({"left_window_size": 2}, {"window": (2, None), "window_alignment": "top-left"}),
        ({"left_window_size": -1, "right_window_size": -1}, {"window_alignment": "top-left"}),
    ],
)
def test_onnx(options, fields):
    assert conventions.get("onnx").definition(**options) == Definition(lse=False, window_counts="distance", **fields)


def test_unknown_names_give_the_nearest():
    with pytest.raises(UnknownNameError, match="'torch'"):
        conventions.get("pytorch")
    with pytest.raises(UnknownNameError, match="'is_causal'"):
        conventions.get("torch").definition(causal=True)


@pytest.mark.parametrize("name", conventions.CONVENTIONS)
def test_every_value_has_a_source(name):
    row = conventions.get(name)
    stated = set(row.fields) - {"lse_base", "lse", "window_alignment"} | {"causal", "layout"}
    assert stated <= set(row.sources)
    row.definition()


def test_the_record_names_every_convention():
    words = Definition(window=(4, 0), causal="top-left", softcap="1/3", heads=4, kv_heads=2, sink=True, prefix=2).conventions()
    assert words["causal"] == "top-left: j <= i or j < 2"
    assert words["window"].startswith("left 4 (keys")
    assert words["softcap"] == "1/3, before the mask"
    assert words["empty_row"] == "output 0, LSE is the sink"
    assert set(Definition().conventions()) == set(words)


@pytest.mark.parametrize(
    "change",
    [
        {"causal": "top-left"},
        {"window": (2, 2)},
        {"empty_row": "nan"},
        {"grouping": "tiled"},
        {"lse_base": 2},
        {"attn_mask": "boolean"},
        {"scale": "1/d"},
        {"score": "2*s"},
        {"mask": "i < j"},
        {"document": True},
        {"sink": True},
        {"dropout": True},
        {"bias": True},
        {"key_lengths": True},
        {"alibi": True},
        {"start": "x"},
        {"softcap": 2},
        {"heads": 2},
    ],
    ids=str,
)
def test_no_two_definitions_have_one_record(change):
    assert Definition(**change).conventions() != Definition().conventions()
