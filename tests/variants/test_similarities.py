"""Norms of queries and keys, keys without their mean, and other similarities than the dot product; and who else computes them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from symattn import Attention
from symattn.definition import Definition
from symattn.errors import ShapeError
from symattn.readings.numpy import evaluate
from symattn.theorems.duality import prove_duality
from tests.support import onnx_cases, require
from tests.variants import positions_oracle as oracle
from tests.variants.test_positions import arrays, close, standard, values

R = np.random.default_rng(3)
WEIGHTS = {"q_norm_weight": R.integers(1, 9, size=6) / 4, "k_norm_weight": R.integers(-8, 9, size=6) / 4}


# ---------------------------------------------------------------- norms
@pytest.mark.parametrize("norm", ["rms", "l2"])
@pytest.mark.parametrize("eps", [None, "1/8"])
def test_norms_are_those_of_loops(norm, eps):
    given, divided = arrays(), {"rms": oracle.rms, "l2": oracle.unit}[norm]
    given["query"][0, 0, 0] = 1  # no row is 0
    other = {"rms": oracle.unit, "l2": oracle.rms}[norm]
    found = values({"qk_norm": norm, "qk_norm_eps": eps, "qk_norm_weight": True, "scale": 3}, {**given, **WEIGHTS})

    def meant(f: Any, e: float) -> Any:
        return oracle.attention(
            **given,
            of_query=lambda x, i: f(x, e) * WEIGHTS["q_norm_weight"],
            of_key=lambda x, j: f(x, e) * WEIGHTS["k_norm_weight"],
            scale=3.0,
        )

    e = 0.125 if eps else 0.0
    assert close(found, meant(divided, e))
    assert not close(found, meant(other, e))
    assert not close(found, meant(divided, 0.125 - e))


def both(given: dict[str, Any], weights: dict[str, Any], norm_first: bool) -> Any:
    f = standard(6)

    def prepared(x: Any, at: int, w: Any) -> Any:
        if norm_first:
            return oracle.rotate(oracle.rms(x) * w, at, f, "half")
        return oracle.rms(oracle.rotate(x, at, f, "half")) * w

    q, k = weights["q_norm_weight"], weights["k_norm_weight"]
    return oracle.attention(**given, of_query=lambda x, i: prepared(x, i, q), of_key=lambda x, j: prepared(x, j, k))


@pytest.mark.parametrize("order", ["before-rope", "after-rope"])
def test_weighted_norm_and_rotation_do_not_commute(order):
    given = arrays()
    fields = {"qk_norm": "rms", "qk_norm_weight": True, "rope": "half", "qk_norm_order": order}
    found = values(fields, {**given, **WEIGHTS})
    assert close(found, both(given, WEIGHTS, order == "before-rope"))
    assert not close(found, both(given, WEIGHTS, order == "after-rope"))
    ones = {name: np.ones(6) for name in WEIGHTS}
    assert close(values(fields, {**given, **ones}), both(given, ones, order == "after-rope"))


def test_cosine_attention_is_bounded_by_its_scale():
    given = arrays()
    scores = Attention(qk_norm="l2", scale="g").lambdify("numpy", "scaled_scores")(**given, g=2.5)
    assert abs(scores).max() <= 2.5 * (1 + 1e-12)
    q, k = given["query"][1, 3, 2], given["key"][1, 1, 4]
    assert scores[1, 3, 2, 4] == pytest.approx(2.5 * (q @ k) / np.linalg.norm(q) / np.linalg.norm(k))


def test_smoothed_keys_have_no_mean_over_those_that_exist():
    given = arrays()
    given["key"] = given["key"] + 3
    lengths = np.array([5, 3])
    found = values({"key_smoothing": True, "key_lengths": True, "softcap": 2}, {**given, "key_lengths": lengths})

    def meant(counted: Any) -> Any:
        parts = []
        for b in range(2):
            one = {k: x[b : b + 1] for k, x in given.items()}
            key = one["key"] - one["key"][:, :, : counted[b]].mean(axis=2, keepdims=True)
            parts.append(oracle.attention(**{**one, "key": key}, keep=lambda _, i, j, m=lengths[b]: j < m, softcap=2.0))
        return [np.concatenate(x) for x in zip(*parts, strict=True)]

    assert close(found, meant(lengths))
    assert not close(found, meant((5, 5)))


def test_smoothing_is_of_the_keys_as_given():
    given = arrays()
    found = values({"key_smoothing": True, "rope": "half", "qk_norm": "rms"}, given)
    mean = given["key"].mean(axis=2, keepdims=True)
    assert close(found, both({**given, "key": given["key"] - mean}, {n: np.ones(6) for n in WEIGHTS}, True))


# ---------------------------------------------------------------- other similarities
def parameters(hidden: int = 5, heads: int = 4, d: int = 6) -> dict[str, Any]:
    draw = lambda *shape: R.integers(-8, 9, size=shape) / 8
    return {"w": draw(heads, hidden, d), "u": draw(heads, hidden, d), "v": draw(heads, hidden), "g": draw(heads, d, d)}


def test_other_similarities_are_those_of_loops():
    given, x = arrays(), parameters()
    general = oracle.attention(**given, scale=1.0, similarity=lambda q, k, i, j, h: float(q @ x["g"][h] @ k))
    found = values({"similarity": "general", "scale": 1}, {**given, "w_general": x["g"]})
    assert close(found, general)
    assert not close(values({"similarity": "general", "scale": 1}, {**given, "w_general": x["g"].swapaxes(1, 2)}), general)

    mlp = lambda q, k, i, j, h: float(x["v"][h] @ np.tanh(x["w"][h] @ q + x["u"][h] @ k))
    additive = oracle.attention(**given, scale=1.0, similarity=mlp)
    more = {"w_additive": x["w"], "u_additive": x["u"], "v_additive": x["v"]}
    assert close(values({"similarity": "additive", "scale": 1}, {**given, **more}), additive)
    swapped = {**more, "w_additive": x["u"], "u_additive": x["w"]}
    assert not close(values({"similarity": "additive", "scale": 1}, {**given, **swapped}), additive)

    side_by_side = np.stack([x["w"], x["u"]], axis=2)
    found = values({"similarity": "concat", "scale": 1}, {**given, "w_concat": side_by_side, "v_additive": x["v"]})
    assert close(found, additive)


def test_a_similarity_goes_with_norms_rotations_masks_and_a_source():
    given, x = arrays(n=3, m=3), parameters()
    more = {"w_additive": x["w"], "u_additive": x["u"], "v_additive": x["v"], "sinks": [1, 0, -1, 2]}
    fields = {"similarity": "additive", "rope": "interleaved", "qk_norm": "l2", "causal": True, "sink": True, "softcap": 3}
    f = standard(6)
    turned = lambda v, at: oracle.rotate(oracle.unit(v), at, f, "interleaved")
    expected = oracle.attention(
        **given,
        of_query=turned,
        of_key=turned,
        similarity=lambda q, k, i, j, h: float(x["v"][h] @ np.tanh(x["w"][h] @ q + x["u"][h] @ k)),
        keep=lambda b, i, j: j <= i,
        softcap=3.0,
        sinks=more["sinks"],
    )
    assert close(values(fields, {**given, **more}), expected)
    eye = np.eye(6)
    one = {k: v[:, :1] for k, v in given.items()}
    single = {"w_additive": x["w"][0], "u_additive": x["u"][0], "v_additive": x["v"][0]}
    direct = values({"similarity": "additive", "rope": "half"}, {**one, **single})
    projected = Attention(similarity="additive", rope="half", start="x", cross=True)
    f = projected.lambdify("numpy", ("out", "lse"))
    again = f(x=one["query"][:, 0], memory=one["key"][:, 0], w_q=eye, w_k=eye, w_v=eye, **single)
    assert close(
        [again[0][..., :2]], [f(x=one["query"][:, 0], memory=one["key"][:, 0], w_q=eye, w_k=eye, w_v=eye[:, :2], **single)[0]]
    )
    assert close([again[1]], [direct[1]])


def test_shapes_are_refused_by_the_field():
    with pytest.raises(ShapeError, match=r"q_norm_weight has shape \(5,\), needed is \(d\)"):
        values({"qk_norm": "rms", "qk_norm_weight": True}, {**arrays(), **WEIGHTS, "q_norm_weight": np.ones(5)})
    x = parameters()
    with pytest.raises(ShapeError, match="u_additive has shape"):
        more = {"w_additive": x["w"], "u_additive": x["u"][:, :4], "v_additive": x["v"]}
        values({"similarity": "additive"}, {**arrays(), **more})


PROVED: dict[str, dict[str, Any]] = {
    "rope": {"rope": "half", "heads": 4, "kv_heads": 2, "causal": True},
    "norm": {"qk_norm": "rms", "qk_norm_weight": True, "qk_norm_eps": "eps"},
    "smoothing": {"key_smoothing": True, "key_lengths": True, "sink": True},
    "relative": {"relative": "recurrent", "relative_clip": 2, "heads": 2, "softcap": "cap"},
    "concat": {"similarity": "concat", "heads": 2, "causal": "bottom-right"},
    "buckets": {"buckets": True, "heads": 2, "scale": 1, "bias": True},
}


@pytest.mark.parametrize("name", PROVED)
def test_gradient_is_the_transpose_of_the_tangent(name):
    assert prove_duality(Definition(**PROVED[name]).program(batch=True))


@pytest.mark.slow
@pytest.mark.parametrize("pairing", ["half", "interleaved"])
def test_gradient_of_every_part_of_a_rotation_is_proved(pairing):
    fields = {"rope_dim": 4, "rope_frequencies": "base**(-2*p/r)", "rope_amplitude": "amp", "rope_offset": "bottom-right"}
    assert prove_duality(Definition(rope=pairing, qk_norm="l2", **fields).program())


# ---------------------------------------------------------------- who else computes it
def torch_gradients(torch: Any, given: dict[str, Any], prepare: Any, **options: Any) -> dict[str, Any]:
    """Output and gradients of torch's attention of prepared queries and keys, in float64."""
    t = {k: torch.tensor(np.asarray(v, dtype=np.float64), requires_grad=True) for k, v in given.items()}
    q, k = prepare(t)
    out = torch.nn.functional.scaled_dot_product_attention(q, k, t["value"], enable_gqa=True, **options)
    out.backward(torch.ones_like(out))
    return {"out": out.detach().numpy(), **{f"grad_{n}": x.grad.numpy() for n, x in t.items()}}


def same_as_torch(fields: dict[str, Any], given: dict[str, Any], expected: dict[str, Any]) -> bool:
    names = tuple(expected)
    found = Attention(lse=False, **fields).lambdify("numpy", names)(**given, grad_out=np.ones(expected["out"].shape))
    return close(found, expected.values())


def test_rms_norm_and_its_gradients_are_those_of_torch():
    torch = require("torch")
    given = {**arrays(), **WEIGHTS}
    norm = torch.nn.functional.rms_norm
    prepare = lambda t: (norm(t["query"], (6,), t["q_norm_weight"], 0.125), norm(t["key"], (6,), t["k_norm_weight"], 0.125))
    fields = {"qk_norm": "rms", "qk_norm_weight": True, "qk_norm_eps": "1/8"}
    assert same_as_torch(fields, given, torch_gradients(torch, given, prepare))
    assert not same_as_torch({**fields, "qk_norm_eps": "1/9"}, given, torch_gradients(torch, given, prepare))


def test_cosine_attention_and_its_gradients_are_those_of_torch():
    torch = require("torch")
    given = arrays()
    normalize = torch.nn.functional.normalize
    expected = torch_gradients(torch, given, lambda t: (normalize(t["query"], dim=-1), normalize(t["key"], dim=-1)), scale=3.0)
    assert same_as_torch({"qk_norm": "l2", "scale": 3}, given, expected)


def test_rotations_and_their_gradients_are_those_of_torchs_complex_numbers():
    torch = require("torch")
    given = arrays()
    f = torch.tensor(standard(6), dtype=torch.float64)

    def turned(x: Any) -> Any:
        angles = torch.outer(torch.arange(x.shape[2], dtype=torch.float64), f)
        pairs = torch.view_as_complex(x.reshape(*x.shape[:-1], 3, 2))
        return torch.view_as_real(pairs * torch.polar(torch.ones_like(angles), angles)).flatten(-2)

    expected = torch_gradients(torch, given, lambda t: (turned(t["query"]), turned(t["key"])))
    assert same_as_torch({"rope": "interleaved"}, given, expected)
    assert not same_as_torch({"rope": "half"}, given, expected)


@pytest.mark.filterwarnings("ignore:flex_attention called without")
def test_biases_of_buckets_are_those_of_flex_attention():
    torch = require("torch")
    from torch.nn.attention.flex_attention import flex_attention

    from symattn.positions import relative_buckets

    given = arrays(heads=2, kv=2)
    numbers = relative_buckets(3, 5, buckets=8, max_distance=6, offset=2)
    table = R.integers(-8, 9, size=(2, 8)) / 4
    bias, bucket = torch.tensor(table), torch.tensor(numbers)
    tensors = [torch.tensor(given[n]) for n in ("query", "key", "value")]
    out = flex_attention(*tensors, score_mod=lambda s, b, h, i, j: s + bias[h, bucket[i, j]], scale=1.0)
    found = values({"buckets": True, "scale": 1}, {**given, "bucket_numbers": numbers, "bucket_bias": table})
    assert close([found[0]], [out.numpy()])


def rotation_from_tables(x: Any, cosines: Any, sines: Any, interleaved: bool, width: int) -> Any:
    """The statements of a rotation, evaluated for one head from tables with a column per pair."""
    d = Definition(rope="interleaved" if interleaved else "half", rope_dim=width or None)
    program = d.program()
    names = [n for n in ("Qneg", "Qpos", "Qturn", "Qrest", "Qrot") if n in program]
    lean = program.with_statements([program[n] for n in names], ["Qrot"])

    def per_channel(t: Any) -> Any:
        both = np.repeat(t, 2, axis=-1) if interleaved else np.concatenate([t, t], axis=-1)
        return np.pad(both, ((0, 0), (0, x.shape[-1] - both.shape[-1])))

    return evaluate(lean, {"Q": x, "CQ": per_channel(cosines), "SQ": per_channel(sines)})["Qrot"]


def test_rotations_are_those_of_the_onnx_operator():
    """The operator takes its tables as they are, so the statements that read the tables are what is compared."""
    every = onnx_cases()
    cases = [c for c in every if c.model and [n.op_type for n in c.model.graph.node] == ["RotaryEmbedding"]]
    assert len(cases) == 8
    for case in cases:
        options = {a.name: a.i for a in case.model.graph.node[0].attribute}
        (inputs, outputs), *_ = case.data_sets
        x, cosines, sines, *positions = (np.asarray(a, dtype=np.float64) for a in inputs)
        if positions:
            cosines, sines = (t[positions[0].astype(int)] for t in (cosines, sines))
        four = x if x.ndim == 4 else x.reshape(*x.shape[:2], options["num_heads"], -1).swapaxes(1, 2)
        how = (bool(options.get("interleaved")), options.get("rotary_embedding_dim", 0))
        found = np.empty_like(four)
        for b, h in np.ndindex(*four.shape[:2]):
            found[b, h] = rotation_from_tables(four[b, h], cosines[b], sines[b], *how)
        flat = found if x.ndim == 4 else found.swapaxes(1, 2).reshape(x.shape)
        assert np.allclose(flat, outputs[0], rtol=1e-5, atol=1e-5), case.name
