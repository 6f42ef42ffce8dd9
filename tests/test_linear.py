"""The linear family: every evaluation against loops over the recurrence, gradients that agree, and what is refused."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest

from symattn import Attention
from symattn.adjoint import adjoint
from symattn.binding import bind, unbind
from symattn.definition import Definition
from symattn.errors import DefinitionError, GrammarError, InputValueError, ShapeError
from symattn.readings import exact
from symattn.readings import mpmath as high
from symattn.readings import numpy as fast
from tests import linear_oracle

FIELDS: dict[str, dict[str, Any]] = {
    "linear": {},
    "relu": {"feature": "relu"},
    "normalised": {"normalized": True, "feature": "elu"},
    "normalised-decayed": {"normalized": True, "feature": "exp", "decay": "head"},
    "text": {"normalized": True, "feature": "log(1 + exp(s))", "decay": "step"},
    "retention": {"decay": "retention"},
    "head": {"decay": "head", "initial_state": True},
    "head-log": {"decay": "head", "decay_space": "log"},
    "step": {"decay": "step"},
    "step-log": {"decay": "step", "decay_space": "log", "initial_state": True},
    "channel": {"decay": "channel"},
    "channel-log": {"decay": "channel", "decay_space": "log"},
    "delta": {"delta": True},
    "delta-started": {"delta": True, "initial_state": True},
    "gated-delta": {"delta": True, "decay": "step"},
    "channel-delta": {"delta": True, "decay": "channel", "decay_space": "log", "initial_state": True},
}
EVALUATIONS = [("parallel", None), ("recurrent", None), ("chunked", 3), ("chunked", 1), ("chunked", 9)]
MAPS = {"relu": lambda x: np.maximum(x, 0), "exp": np.exp, "elu": linear_oracle.elu_plus_one, "identity": lambda x: x}


def given(
    fields: dict[str, Any], heads: int = 4, kv: int = 2, n: int = 7, d: int = 3, e: int = 2, seed: int = 0
) -> dict[str, Any]:
    """Arrays in float64 for a definition."""
    r = np.random.default_rng(seed)
    shape = {"head": (kv,), "step": (2, kv, n), "channel": (2, kv, n, d)}.get(fields.get("decay", ""))
    found = {"query": r.normal(size=(2, heads, n, d)), "key": r.normal(size=(2, kv, n, d)), "value": r.normal(size=(2, kv, n, e))}
    if shape is not None:
        decay = r.uniform(0.3, 1, size=shape)
        found["decay"] = np.log(decay) if fields.get("decay_space") == "log" else decay
    if fields.get("delta"):
        found["beta"] = r.uniform(size=(2, kv, n))
    if fields.get("initial_state"):
        found["initial_state"] = r.normal(size=(2, kv, d, e))
    return found


def factors(fields: dict[str, Any], arrays: dict[str, Any]) -> Any:
    """The decay as (B, H_kv, n, d)."""
    b, kv, n, d = arrays["key"].shape
    kind = fields.get("decay")
    if kind is None:
        return None
    a = 1 - 2.0 ** (-5 - np.arange(kv)) if kind == "retention" else arrays["decay"]
    a = np.exp(a) if fields.get("decay_space") == "log" else a
    lost = {"head": (None, slice(None), None, None), "retention": (None, slice(None), None, None), "step": (..., None)}
    return np.broadcast_to(a[lost[kind]] if kind in lost else a, (b, kv, n, d))


def expected(fields: dict[str, Any], arrays: dict[str, Any], **options: Any) -> Any:
    feature = MAPS.get(fields.get("feature", "identity"), lambda x: np.log(1 + np.exp(x)))
    mapped = {**arrays, "query": feature(arrays["query"]), "key": feature(arrays["key"])}
    scale = arrays["query"].shape[-1] ** -0.5
    return linear_oracle.batched(mapped, factors(fields, arrays), scale, fields.get("normalized", False), **options)


def results(d: Definition, arrays: dict[str, Any], grad_out: Any = None) -> dict[str, Any]:
    bound = bind(d, arrays if grad_out is None else {**arrays, "grad_out": grad_out})
    program = bound.program if grad_out is None else adjoint(bound.program)
    found = fast.evaluate(program, bound.inputs, sizes=dict(bound.sizes))
    return dict(unbind(bound, name, found[name]) for name in {"O", *program.outputs})


@pytest.mark.parametrize("name", FIELDS)
def test_every_evaluation_is_the_recurrence_and_gradients_agree(name):
    fields = FIELDS[name]
    arrays = given(fields)
    grad_out = np.random.default_rng(1).normal(size=(2, 4, 7, 2))
    want, first = expected(fields, arrays), None
    for evaluation, block in EVALUATIONS:
        d = Definition(form="linear", causal=True, evaluation=evaluation, block=block, **fields)
        found = results(d, arrays, grad_out if block in (None, 3) else None)
        assert np.allclose(found["out"], want, rtol=1e-12, atol=1e-12), evaluation
        if block not in (None, 3):  # one step a chunk, and a chunk longer than the sequence: outputs only
            continue
        first = found if first is None else first
        assert set(found) == {"out", *("grad_" + x for x in arrays)}
        for x, value in found.items():
            assert np.allclose(value, first[x], rtol=1e-9, atol=1e-10), (evaluation, x)


@pytest.mark.parametrize("name", ["linear", "head", "gated-delta"])
def test_a_wrong_convention_would_be_seen(name):
    """Decay after writing, the factor forgotten, beta outside: none of them is close."""
    fields = FIELDS[name]
    arrays = given(fields)
    found = results(Definition(form="linear", causal=True, **fields), arrays)["out"]
    wrong = [expected(fields, {**arrays, "key": np.roll(arrays["key"], 1, axis=2)})]
    if "decay" in arrays:
        wrong.append(expected({k: v for k, v in fields.items() if k != "decay"}, arrays))
        wrong.append(expected(fields, {**arrays, "decay": np.roll(arrays["decay"], 1, axis=-1)}))
    if "beta" in arrays:
        wrong.append(
            expected(
                fields, {**{k: v for k, v in arrays.items() if k != "beta"}, "value": arrays["value"] * arrays["beta"][..., None]}
            )
        )
    assert np.allclose(found, expected(fields, arrays), rtol=1e-12, atol=1e-12)
    assert all(np.abs(found - w).max() > 1e-3 for w in wrong)


def test_heads_may_be_tiled():
    arrays = given({}, heads=4, kv=2)
    found = results(Definition(form="linear", causal=True, grouping="tiled"), arrays)["out"]
    assert np.allclose(found, expected({}, arrays, tiled=True), rtol=1e-12)
    assert not np.allclose(found, expected({}, arrays))


@pytest.mark.parametrize("evaluation", ["parallel", "recurrent"])
@pytest.mark.parametrize("normalized", [True, False])
def test_without_a_causal_mask_queries_read_all_keys(evaluation, normalized):
    r = np.random.default_rng(0)
    q, k, v = r.normal(size=(1, 2, 4, 3)), r.normal(size=(1, 2, 6, 3)), r.normal(size=(1, 2, 6, 2))
    d = Definition(form="linear", feature="elu", normalized=normalized, evaluation=evaluation)
    a = linear_oracle.elu_plus_one(q) @ np.swapaxes(linear_oracle.elu_plus_one(k), -1, -2)
    want = a @ v / (a.sum(-1, keepdims=True) if normalized else np.sqrt(3))
    assert np.allclose(results(d, {"query": q, "key": k, "value": v})["out"], want, rtol=1e-12)


@pytest.mark.parametrize("evaluation", [("parallel", None), ("recurrent", None), ("chunked", 2)], ids=str)
def test_factors_of_0_are_exact(evaluation):
    """A gate that is shut forgets everything; no evaluation divides by it."""
    q = k = v = np.array([[Fraction(2)], [Fraction(3)], [Fraction(5)]], dtype=object)
    d = Definition(form="linear", causal=True, decay="step", scale=1, evaluation=evaluation[0], block=evaluation[1])
    gates = np.array([1, 0, Fraction(1, 2)], dtype=object)
    found = exact.evaluate(d.program(), {"Q": q, "K": k, "V": v, "Al": gates})["O"]
    want = linear_oracle.recurrence(q, k, v, gates[:, None])
    assert found.ravel().tolist() == want.ravel().tolist() == [8, 27, 5 * (Fraction(9, 2) + 25)]


@pytest.mark.parametrize(("name", "evaluation"), [("channel-delta", "chunked"), ("text", "recurrent"), ("head", "chunked")])
def test_gradients_are_central_differences_at_80_digits(name, evaluation):
    fields = FIELDS[name]
    arrays = {n: x[:1] if x.ndim > 1 else x for n, x in given(fields, heads=1, kv=1, n=4, d=2, e=1).items()}
    d = Definition(form="linear", causal=True, evaluation=evaluation, block=2 if evaluation == "chunked" else None, **fields)
    bound = bind(d, {**arrays, "grad_out": np.random.default_rng(2).normal(size=(1, 1, 4, 1))})
    digits = 80
    mp = mpmath.MPContext()
    mp.dps = digits
    inputs = {n: np.vectorize(lambda x: mp.mpf(float(x)), otypes=[object])(x) for n, x in bound.inputs.items()}
    whole = adjoint(bound.program)
    sizes = dict(bound.sizes)
    found = high.evaluate(whole, inputs, sizes=sizes, digits=digits)

    def loss(moved: dict[str, Any]) -> Any:
        out = high.evaluate(bound.program, moved, sizes=sizes, digits=digits)["O"]
        return sum((mp.mpf(x) * g for x, g in zip(out.ravel(), inputs["dO"].ravel(), strict=True)), mp.mpf(0))

    forward = {n: x for n, x in inputs.items() if n != "dO"}
    h = mp.mpf(10) ** -20
    for n, x in forward.items():
        at = tuple(s - 1 for s in x.shape)
        up, down = x.copy(), x.copy()
        up[at], down[at] = x[at] + h, x[at] - h
        slope = (loss({**forward, n: up}) - loss({**forward, n: down})) / (2 * h)
        assert abs(slope - mp.mpf(found["d" + n][at])) < mp.mpf(10) ** -35, n


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"decay": "head"}, "causal"),
        ({"delta": True}, "causal"),
        ({"evaluation": "chunked"}, "causal"),
        ({"causal": "bottom-right"}, "top-left"),
        ({"causal": True, "decay_space": "log"}, "set decay"),
        ({"causal": True, "decay": "retention", "decay_space": "log"}, "fixed set"),
        ({"causal": True, "normalized": True, "delta": True}, "delta"),
        ({"causal": True, "normalized": True, "initial_state": True}, "initial state"),
        ({"causal": True, "normalized": True, "scale": 2}, "cancels"),
        ({"causal": True, "block": 2}, "chunked"),
        ({"causal": True, "softcap": 2}, "softcap"),
        ({"feature": "1"}, "entry s"),
        ({"decay": "all"}, "'channel'"),
    ],
)
def test_fields_that_cannot_hold_together_are_refused(fields, words):
    with pytest.raises(DefinitionError, match=words):
        Definition.of(form="linear", **fields)


def test_fields_of_the_family_stand_at_no_other_form():
    with pytest.raises(DefinitionError, match="set form='linear'"):
        Definition(decay="step")
    with pytest.raises(GrammarError, match="elu"):
        Definition(form="linear", feature="elu +")


def test_inputs_that_do_not_fit_are_refused():
    arrays = given(FIELDS["gated-delta"])
    att = Attention(form="linear", causal=True, **FIELDS["gated-delta"])
    with pytest.raises(InputValueError, match="from 0 to 1"):
        bind(att, {**arrays, "decay": 2 * arrays["decay"] + 1})
    with pytest.raises(ShapeError, match="beta"):
        bind(att, {**arrays, "beta": arrays["beta"][..., :-1]})
    with pytest.raises(InputValueError, match="missing: beta"):
        bind(att, {n: x for n, x in arrays.items() if n != "beta"})
    with pytest.raises(ShapeError, match="as many keys as queries"):
        bind(Attention(form="linear", causal=True), {**given({}), "query": np.ones((2, 4, 3, 3))})
    with pytest.raises(DefinitionError, match="set block"):
        bind(Attention(form="linear", causal=True, evaluation="chunked"), given({}))


def test_a_row_whose_weights_sum_to_0_has_no_value():
    arrays = given({})
    att = Attention(form="linear", causal=True, feature="relu", normalized=True)
    with pytest.raises(InputValueError, match="has no value"):
        att.truth(-np.abs(arrays["query"]), arrays["key"], arrays["value"])


def test_conventions_are_recorded():
    words = Definition(form="linear", causal=True, decay="step", decay_space="log", delta=True).conventions()
    assert "given as its logarithm" in words["decay"]
    assert "before a step is written" in words["decay"]
    assert words["read"].startswith("after the step has been written")
    assert words["delta"].startswith("beta times")
    assert (
        Definition(form="linear", causal=True, evaluation="chunked", block=4).conventions()["evaluation"]
        == "chunked, 4 steps a chunk"
    )
