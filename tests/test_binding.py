"""Binding: arrays to inputs and back, heads and mask axes as the arrays show them, and every bad input refused with a reason."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from symattn.binding import bind, unbind
from symattn.definition import Definition
from symattn.errors import DefinitionError, EmptyRowError, InputValueError, ShapeError, UnknownNameError

B, H, HKV, N, M, D, DV = 2, 6, 3, 4, 5, 7, 8


def arrays(**changes: Any) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    fields = {
        name: rng.standard_normal(shape)
        for name, shape in [("query", (B, H, N, D)), ("key", (B, HKV, M, D)), ("value", (B, HKV, M, DV))]
    }
    return {**fields, **changes}


def test_heads_and_sizes_are_those_of_the_arrays():
    bound = bind(Definition(), arrays())
    assert (bound.definition.heads, bound.definition.kv_heads) == (H, HKV)
    assert bound.sizes == {"B": B, "Hkv": HKV, "G": H // HKV, "n": N, "m": M, "d": D, "dv": DV}
    assert {k: x.shape for k, x in bound.inputs.items()} == {"Q": (B, 3, 2, N, D), "K": (B, 3, M, D), "V": (B, 3, M, DV)}
    assert bound.program == bound.definition.program(batch=True)


@pytest.mark.parametrize("grouping", ["interleaved", "tiled"])
def test_which_query_head_is_in_which_group(grouping):
    heads = np.arange(H, dtype=float).reshape(1, H, 1, 1)
    fields = {"query": heads, "key": np.ones((1, HKV, 1, 1)), "value": np.ones((1, HKV, 1, 1))}
    q = bind(Definition(grouping=grouping), fields).inputs["Q"][0, :, :, 0, 0]
    for k in range(HKV):
        expected = {h for h in range(H) if (h // 2 if grouping == "interleaved" else h % HKV) == k}
        assert set(q[k]) == expected


@pytest.mark.parametrize("grouping", ["interleaved", "tiled"])
@pytest.mark.parametrize("layout", ["bhsd", "bshd"])
@pytest.mark.parametrize(("heads", "kv_heads"), [(6, 3), (6, 6), (6, 1), (1, 1)])
def test_unbind_is_the_inverse_of_bind(grouping, layout, heads, kv_heads):
    rng = np.random.default_rng(1)
    turn = (lambda x: np.swapaxes(x, 1, 2)) if layout == "bshd" else (lambda x: x)
    fields = {"query": (B, heads, N, D), "key": (B, kv_heads, M, D), "value": (B, kv_heads, M, DV), "grad_out": (B, heads, N, DV)}
    fields = {k: turn(rng.standard_normal(s)) for k, s in fields.items()}
    fields |= {"grad_lse": rng.standard_normal((B, heads, N)), "sinks": rng.standard_normal(heads)}
    fields |= {"attn_mask": rng.standard_normal((B, heads, N, M)), "bias": rng.standard_normal((1, heads, 1, M))}
    bound = bind(Definition(grouping=grouping, sink=True, attn_mask="additive", bias=True), fields, layout=layout)
    letters = {
        "Q": "query",
        "K": "key",
        "V": "value",
        "sink": "sinks",
        "B": "attn_mask",
        "bias": "bias",
        "dO": "grad_out",
        "dL": "grad_lse",
    }
    for letter, field in letters.items():
        name, back = unbind(bound, letter, bound.inputs[letter])
        assert name == field
        np.testing.assert_array_equal(back, fields[field])
        if not letter.startswith("d"):
            assert unbind(bound, "d" + letter, bound.inputs[letter])[0] == "grad_" + field


@pytest.mark.parametrize(
    ("shape", "axes"),
    [
        ((N, M), "ij"),
        ((M,), "j"),
        ((B, 1, 1, M), "bj"),
        ((H, N, M), "hij"),
        ((1, H, N, M), "hij"),
        ((B, 1, N, M), "bij"),
        ((N, 1), "i"),
        ((B, H, N, M), "bhij"),
        ((1, 1, 1, 1), "j"),
        ((1, M), "j"),
    ],
)
@pytest.mark.parametrize("declared", [False, True])
def test_a_mask_carries_the_axes_that_its_shape_shows(shape, axes, declared):
    mask = np.random.default_rng(2).standard_normal(shape)
    d = Definition(attn_mask="additive", mask_axes="bhij" if declared else None)
    bound = bind(d, arrays(attn_mask=mask))
    assert bound.definition.mask_axes == ("bhij" if declared else axes)
    given = np.broadcast_to(mask, (B, H, N, M))
    inside = np.broadcast_to(unbind(bound, "Z", np.zeros((B, 3, 2, N, M)) + _spread(bound))[1], (B, H, N, M))
    np.testing.assert_array_equal(inside, given)
    # the gradient of the mask has its shape, and is the sum over what was broadcast
    gradient = np.ones(bound.inputs["B"].shape)
    name, back = unbind(bound, "dB", gradient)
    assert name == "grad_attn_mask"
    assert back.shape == shape
    assert back.sum() == gradient.size


def _spread(bound: Any) -> np.ndarray:
    """The bound mask over (b, k, g, i, j)."""
    x, at = bound.inputs["B"], []
    for a in bound.definition.mask_axes:
        at += {"b": [0], "h": [1, 2], "i": [3], "j": [4]}[a]
    return x.reshape([x.shape[at.index(k)] if k in at else 1 for k in range(5)])


def test_a_mask_in_its_declared_axes_alone():
    bound = bind(Definition(attn_mask="boolean", mask_axes="bj"), arrays(attn_mask=np.ones((B, M), dtype=bool)))
    assert bound.inputs["M"].shape == (B, M)
    assert unbind(bound, "M", bound.inputs["M"])[1].shape == (B, M)


def test_keep_is_the_mask_of_all_conditions():
    mask = np.random.default_rng(3).random((H, 1, M)) < 0.5
    keep = bind(
        Definition(attn_mask="boolean", causal="bottom-right", mask="h != 2 and i*j % 3 < 2"), arrays(attn_mask=mask)
    ).keep()
    h, i, j = np.ogrid[:H, :N, :M]
    expected = mask & (j <= i + M - N) & (h != 2) & (i * j % 3 < 2)
    np.testing.assert_array_equal(keep, np.broadcast_to(expected, (B, H, N, M)))


def test_parameters_become_exact_inputs():
    d = Definition(score="t*s + u", params={"t": ["1/3"] * H})
    bound = bind(d, arrays(u=np.float64(2)))
    assert bound.inputs["t"].shape == (3, 2)
    assert bound.inputs["t"][0, 0] == Fraction(1, 3)
    assert bound.inputs["u"].shape == ()
    per_head = bind(Definition(score="s + u"), arrays(u=np.arange(6.0)))
    assert per_head.inputs["u"].shape == (3, 2)
    assert unbind(per_head, "du", per_head.inputs["u"])[1].tolist() == list(range(6))


def test_every_tensor_of_a_program_comes_back_with_its_heads_merged():
    from symattn.readings import numpy as reading

    says = {"sink": True, "score": "max(s, 0) - slope*(i - j)", "dropout": True, "dropout_p": 0.5, "causal": -1, "bias": True}
    given = {
        "sinks": np.arange(6.0),
        "slope": np.arange(6.0),
        "dropout_mask": np.ones((B, H, N, M), bool),
        "bias": np.ones((N, M)),
    }
    bound = bind(Definition(**says), arrays(**given))
    values = reading.evaluate(bound.program, bound.inputs, sizes=bound.sizes)
    shapes = {name: unbind(bound, name, x)[1].shape for name, x in values.items()}
    rows, pairs = (B, H, N), (B, H, N, M)
    expected = {"Q": (B, H, N, D), "K": (B, HKV, M, D), "V": (B, HKV, M, DV), "O": (B, H, N, DV), "sink": (H,), "slope": (H,)}
    expected |= dict.fromkeys(("m", "m0", "l", "lk", "E0", "P0", "L"), rows) | {"scale": (), "bias": (N, M)}
    expected |= dict.fromkeys(("R", "S", "W0", "W1", "Z", "E", "P", "Pd", "drop"), pairs)
    assert shapes == expected
    assert unbind(bound, "dslope", values["slope"])[0] == "grad_slope"
    uniform = bind(Definition(causal=-1, empty_row="uniform"), arrays())
    values = reading.evaluate(uniform.program, uniform.inputs, sizes=uniform.sizes)
    assert unbind(uniform, "cnt", values["cnt"])[1].shape == rows
    assert unbind(uniform, "U", values["U"])[1].shape == (B, H, N, DV)


def test_exact_numbers_stay_exact():
    q = [["0.1", "1/3"]]
    bound = bind(Definition(), {"query": q, "key": q, "value": q})
    assert bound.inputs["Q"].tolist() == [[Fraction(1, 10), Fraction(1, 3)]]


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, ml_dtypes.bfloat16])
def test_the_dtype_is_kept(dtype):
    bound = bind(Definition(), {k: x.astype(dtype) for k, x in arrays().items()})
    assert {x.dtype for x in bound.inputs.values()} == {np.dtype(dtype)}


A = arrays()
WRONG = [
    ("negative length", {"key_lengths": True}, arrays(key_lengths=np.array([5, -1])), InputValueError, "from 0 to 5"),
    ("long length", {"key_lengths": True}, arrays(key_lengths=np.array([6, 1])), InputValueError, "got 6 at [0]"),
    ("broken length", {"key_lengths": True}, arrays(key_lengths=np.array([1.5, 1])), InputValueError, "integers are needed"),
    ("mask of twos", {"attn_mask": "boolean"}, arrays(attn_mask=np.full((N, M), 2)), InputValueError, "got 2 at [0, 0]"),
    ("all dropped", {"dropout": True}, arrays(dropout_p=1.0), InputValueError, "below 1, got 1.0"),
    ("negative rate", {"dropout": True, "dropout_p": "r"}, arrays(r=-0.5), InputValueError, "r is at least 0"),
    ("rate NaN", {"dropout": True}, arrays(dropout_p=math.nan), InputValueError, "below 1, got nan"),
    (
        "keep-mask of halves",
        {"dropout": True, "dropout_p": 0.5},
        arrays(dropout_mask=np.full((B, H, N, M), 0.5)),
        InputValueError,
        "dropout_mask is True or False (1 or 0) everywhere, got 0.5",
    ),
    ("softcap of 0", {"softcap": "cap"}, arrays(cap=0), InputValueError, "cap is positive"),
    ("three axes", {}, {k: x[0] for k, x in A.items()}, ShapeError, "single head without batch"),
    ("batch sizes", {}, arrays(key=A["key"][:1]), ShapeError, "batch sizes"),
    ("key and value heads", {}, arrays(value=A["value"][:, :2]), ShapeError, "key and value heads"),
    ("keys and values", {}, arrays(value=A["value"][:, :, :4]), ShapeError, "keys and values"),
    ("head dimensions", {}, arrays(key=A["key"][..., :5]), ShapeError, "head dimensions"),
    ("heads that do not divide", {}, arrays(query=A["query"][:, :4]), ShapeError, "does not divide"),
    ("heads that the definition fixes", {"heads": 4, "kv_heads": 2}, A, ShapeError, "heads=4"),
    ("an empty axis", {}, arrays(key=A["key"][:, :, :0], value=A["value"][:, :, :0]), ShapeError, "empty axis"),
    ("dtypes", {}, arrays(key=A["key"].astype(np.float32)), InputValueError, "float32"),
    ("complex", {}, arrays(key=A["key"] + 1j), InputValueError, "complex"),
    ("text", {}, arrays(key="x"), InputValueError, "no number"),
    ("missing", {}, {k: A[k] for k in ("query", "key")}, InputValueError, "missing: value"),
    ("missing mask", {"attn_mask": "boolean"}, A, InputValueError, "missing: attn_mask"),
    ("missing sinks", {"sink": True}, A, InputValueError, "missing: sinks"),
    ("no such field", {}, arrays(quary=1), UnknownNameError, "'query'"),
    ("unused field", {}, arrays(sinks=np.zeros(H)), DefinitionError, "sink=True"),
    ("unused mask", {}, arrays(attn_mask=np.ones((N, M), dtype=bool)), DefinitionError, "attn_mask="),
    ("unbound parameter", {"score": "t*s"}, A, DefinitionError, "parameter t"),
    ("bound parameter given again", {"score": "t*s", "params": {"t": 1}}, arrays(t=1.0), DefinitionError, "given as an array"),
    ("parameter of a wrong shape", {"score": "t*s"}, arrays(t=np.zeros(4)), ShapeError, "t has shape"),
    ("mask of a wrong shape", {"attn_mask": "boolean"}, arrays(attn_mask=np.ones((M, N), dtype=bool)), ShapeError, "broadcast"),
    (
        "mask of undeclared axes",
        {"attn_mask": "boolean", "mask_axes": "ij"},
        arrays(attn_mask=np.ones((H, N, M), bool)),
        ShapeError,
        "'hij'",
    ),
    ("float as boolean", {"attn_mask": "boolean"}, arrays(attn_mask=np.ones((N, M))), InputValueError, "additive"),
    ("boolean as additive", {"attn_mask": "additive"}, arrays(attn_mask=np.ones((N, M), bool)), InputValueError, "boolean"),
    ("sinks of a wrong shape", {"sink": True}, arrays(sinks=np.zeros(HKV)), ShapeError, "sinks has shape"),
    ("documents that are no integers", {"document": True}, arrays(doc=np.zeros((B, N))), InputValueError, "integers"),
    ("gradient of a wrong shape", {}, arrays(grad_out=np.zeros((B, H, N, D))), ShapeError, "grad_out"),
    ("gradient that is not finite", {}, arrays(grad_out=np.full((B, H, N, DV), np.nan)), InputValueError, "grad_out is nan"),
    ("gradient of no output", {"lse": False}, arrays(grad_lse=np.zeros((B, H, N))), DefinitionError, "lse=True"),
    ("sink that is not finite", {"sink": True}, arrays(sinks=np.full(H, np.inf)), InputValueError, "sinks is inf"),
    ("infinite bias", {"bias": True}, arrays(bias=np.full((N, M), -np.inf)), InputValueError, "bias is -inf"),
    (
        "NaN in an additive mask",
        {"attn_mask": "additive"},
        arrays(attn_mask=np.full((N, M), np.nan)),
        InputValueError,
        "attn_mask is nan",
    ),
    (
        "+inf in an additive mask",
        {"attn_mask": "additive"},
        arrays(attn_mask=np.full((N, M), np.inf)),
        InputValueError,
        "attn_mask is inf",
    ),
    ("empty row", {"causal": -1, "empty_row": "error"}, A, EmptyRowError, "query (0, 0, 0)"),
    (
        "weights",
        {"start": "x"},
        {"x": np.ones((2, 3)), "w_q": np.ones((4, 2)), "w_k": np.ones((3, 2)), "w_v": np.ones((3, 2))},
        ShapeError,
        "w_q",
    ),
    (
        "widths",
        {"start": "x"},
        {"x": np.ones((2, 3)), "w_q": np.ones((3, 2)), "w_k": np.ones((3, 4)), "w_v": np.ones((3, 2))},
        ShapeError,
        "w_k",
    ),
    (
        "token out of range",
        {"start": "tokens"},
        {"tokens": np.array([0, 4]), "embedding": np.ones((4, 3)), **dict.fromkeys(("w_q", "w_k", "w_v"), np.ones((3, 2)))},
        InputValueError,
        "from 0 to 3",
    ),
]


@pytest.mark.parametrize(("says", "fields", "error", "why"), [x[1:] for x in WRONG], ids=[x[0] for x in WRONG])
def test_a_wrong_input_is_refused_with_its_reason(says, fields, error, why):
    with pytest.raises(error) as found:
        bind(Definition(**says), fields)
    assert why in str(found.value)


def test_a_wrong_layout():
    with pytest.raises(DefinitionError, match="'bshd'"):
        bind(Definition(), A, layout="bsdh")
    with pytest.raises(ShapeError, match=r"\(B, n, H, d\)"):
        bind(Definition(), {k: x[0] for k, x in A.items()}, layout="bshd")


def poisoned(field: str, at: tuple[int, ...], value: float = math.nan) -> dict[str, Any]:
    x = A[field].copy()
    x[at] = value
    return arrays(**{field: x})


@pytest.mark.parametrize(
    ("says", "field", "at", "allowed"),
    [
        ({}, "key", (0, 0, 4, 0), False),
        ({"causal": "top-left"}, "key", (0, 0, 4, 0), True),
        ({"causal": "top-left"}, "value", (1, 2, 4, 3), True),
        ({"causal": "top-left"}, "key", (0, 0, 3, 0), False),
        ({"causal": "bottom-right"}, "key", (0, 0, 4, 0), False),
        ({"causal": -1}, "query", (0, 0, 0, 0), True),
        ({"causal": -1}, "query", (0, 0, 1, 0), False),
        ({"mask": "h < 2 or j < 4"}, "key", (0, 1, 4, 0), True),
        ({"mask": "h < 2 or j < 4"}, "key", (0, 0, 4, 0), False),
        ({"mask": "h < 2 or j < 4", "grouping": "tiled"}, "key", (0, 0, 4, 0), False),
        ({"mask": "h < 2 or j < 4", "grouping": "tiled"}, "key", (0, 2, 4, 0), True),
        ({"causal": -1, "empty_row": "uniform"}, "value", (0, 0, 4, 0), False),
        ({"causal": -1, "empty_row": "uniform"}, "key", (0, 0, 4, 0), True),
        ({"causal": "top-left", "empty_row": "uniform"}, "value", (0, 0, 4, 0), True),
    ],
)
@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_nan_is_allowed_exactly_where_nothing_reads_it(says, field, at, allowed, value):
    if allowed:
        bind(Definition(**says), poisoned(field, at, value))
    else:
        with pytest.raises(InputValueError, match=f"{field} is {value}"):
            bind(Definition(**says), poisoned(field, at, value))


def test_an_additive_mask_that_drops_a_key_hides_it():
    mask = np.zeros((N, M))
    mask[:, 2] = -np.inf
    bind(Definition(attn_mask="additive"), {**poisoned("value", (0, 0, 2, 0)), "attn_mask": mask})
    with pytest.raises(InputValueError):
        bind(Definition(attn_mask="additive"), {**poisoned("value", (0, 0, 1, 0)), "attn_mask": mask})


def test_outputs_among_the_fields_are_left_alone():
    bound = bind(Definition(), arrays(out=np.zeros(3), lse=None, grad_query=np.zeros(2)))
    assert set(bound.inputs) == {"Q", "K", "V"}


def test_projected_weights_come_back_in_their_shape():
    rng = np.random.default_rng(4)
    fields = {"x": rng.standard_normal((3, 5)), "w_q": rng.standard_normal((5, 8)), "w_k": rng.standard_normal((2, 5, 2))}
    fields |= {"w_v": rng.standard_normal((5, 6)), "w_o": rng.standard_normal((12, 7)), "grad_out": rng.standard_normal((3, 7))}
    bound = bind(Definition(start="x", heads=4, kv_heads=2, output_projection=True), fields)
    for letter, field in {"WQ": "w_q", "WK": "w_k", "WV": "w_v", "WO": "w_o", "X": "x", "dY": "grad_out"}.items():
        name, back = unbind(bound, letter, bound.inputs[letter])
        assert name == field
        np.testing.assert_array_equal(back, fields[field])


@pytest.mark.parametrize(
    ("fields", "given"),
    [
        ({"key_lengths": True}, {"key_lengths": [1]}),
        ({"attn_mask": "boolean"}, {"attn_mask": [[True, False]]}),
        ({"attn_mask": "boolean"}, {"attn_mask": [[1, 0]]}),
        ({"document": True}, {"doc_q": [1], "doc_k": [1, 2]}),
    ],
)
def test_lists_of_integers_are_integers(fields, given):
    bound = bind(Definition(**fields), {"query": [[1]], "key": [[1], [2]], "value": [[10**30], [2]], **given})
    assert bound.keep().tolist() == [[True, False]]
    assert bound.inputs["V"].tolist() == [[10**30], [2]]


@pytest.mark.parametrize("mask", [np.eye(M)[:N] > 0, np.eye(M)[:N], np.eye(M, dtype=np.uint8)[:N], np.eye(M)[:N].tolist()])
def test_a_keep_mask_holds_zeros_and_ones(mask):
    fields = arrays(dropout_mask=np.broadcast_to(np.asarray(mask), (B, H, N, M)))
    assert bind(Definition(dropout=True, dropout_p=0), fields).inputs["drop"].shape == (B, 3, 2, N, M)


@pytest.mark.parametrize(("given", "shape"), [(np.ones(1), (1,)), (np.ones(()), ())])
def test_the_gradient_of_a_parameter_has_its_shape_with_one_head_too(given, shape):
    fields = {name: np.ones((1, 1, 2, 2)) for name in ("query", "key", "value")}
    for definition in (Definition(score="s - a*(i - j)", params={"a": "head"}), Definition(score="s - a*(i - j)")):
        bound = bind(definition, {**fields, "a": given})
        assert unbind(bound, "da", np.array(2.0))[1].shape == shape
