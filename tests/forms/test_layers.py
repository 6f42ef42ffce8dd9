"""Layers, positions and the next word: values against loops, gradients, and their transposed derivative block by block."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import sympy as sp

from symattn import Attention
from symattn.adjoint import adjoint
from symattn.definition import Definition
from symattn.errors import DefinitionError, InputValueError, ShapeError
from symattn.presentation import present
from symattn.readings import exact
from symattn.theorems.duality import prove_duality
from tests import tiny, unroll
from tests.variants.entries import numbers_for

A, F = 4, 3
MLP = {"w_ff1": (A, F), "b_ff1": (F,), "w_ff2": (F, A), "b_ff2": (A,)}


def norms(count: int) -> dict[str, tuple[int, ...]]:
    return {f"norm{k}_{what}": (A,) for k in range(1, count + 1) for what in ("weight", "bias")}


def weights(prefix: str = "", heads: int = 2, bias: bool = True) -> dict[str, tuple[int, ...]]:
    d = A // heads
    found = {f"{prefix}w_{x}": (heads, A, d) for x in "qkv"} | {f"{prefix}w_o": (heads, d, A)}
    return found | ({f"{prefix}b_{x}": (heads, d) for x in "qkv"} | {f"{prefix}b_o": (A,)} if bias else {})


def drawn(shapes: dict[str, tuple[int, ...]], seed: int = 0) -> dict[str, Any]:
    r = np.random.default_rng(seed)
    return {name: r.integers(-16, 17, size=shape) / 16 for name, shape in shapes.items()}


def softmax(z: list[float]) -> list[float]:
    top = [math.exp(x - max(z)) for x in z]
    return [x / sum(top) for x in top]


def attention(a: dict[str, Any], x: np.ndarray, y: np.ndarray, causal: bool, prefix: str = "") -> np.ndarray:
    """Queries of x, keys and values of y: head by head, row by row."""
    out = np.tile(a[prefix + "b_o"], (len(x), 1))
    for h in range(2):
        q, k, v = (
            s @ a[f"{prefix}w_{n}"][h] + a[f"{prefix}b_{n}"][h] for s, n in ((x, "q"), (y, "k"), (y, "v"))
        )  # fmt: skip
        for i in range(len(x)):
            seen = i + 1 if causal else len(y)
            p = softmax([q[i] @ k[j] / math.sqrt(k.shape[1]) for j in range(seen)])
            out[i] += sum(p[j] * v[j] for j in range(seen)) @ a[prefix + "w_o"][h]
    return out


def norm(a: dict[str, Any], x: np.ndarray, k: int) -> np.ndarray:
    rows = []
    for row in x:
        mean = sum(row) / len(row)
        variance = sum((t - mean) ** 2 for t in row) / len(row)
        rows.append([(t - mean) / math.sqrt(variance + 1e-5) for t in row])
    return np.array(rows) * a[f"norm{k}_weight"] + a[f"norm{k}_bias"]


def mlp(a: dict[str, Any], x: np.ndarray, act: str) -> np.ndarray:
    bend = {"relu": lambda t: max(t, 0.0), "gelu": lambda t: t * (1 + math.erf(t / math.sqrt(2))) / 2}[act]
    return np.vectorize(bend)(x @ a["w_ff1"] + a["b_ff1"]) @ a["w_ff2"] + a["b_ff2"]


def by_loops(a: dict[str, Any], order: str, act: str, decoder: bool, causal: bool) -> np.ndarray:
    blocks = [lambda x: attention(a, x, x, causal)]
    blocks += [lambda x: attention(a, x, a["memory"], False, "cross_")] if decoder else []
    x = a["x"]
    for k, block in enumerate([*blocks, lambda x: mlp(a, x, act)], 1):
        x = norm(a, x + block(x), k) if order == "post" else x + block(norm(a, x, k))
    return x


CASES = [("post", "relu", False), ("pre", "gelu", False), ("post", "gelu", True), ("pre", "relu", True)]


def case(order: str, act: str, decoder: bool, seed: int = 0) -> tuple[dict[str, Any], dict[str, Any]]:
    """Fields of the definition, and arrays."""
    shapes = {"x": (3, A), **weights(), **MLP, **norms(3 if decoder else 2)}
    shapes |= {"memory": (2, A), **weights("cross_")} if decoder else {}
    fields = {"form": "decoder-layer" if decoder else "encoder-layer", "layer_norm": order, "activation": act}
    return {**fields, "projection_bias": True, "causal": decoder}, drawn(shapes, seed)


@pytest.mark.parametrize(("order", "act", "decoder"), CASES)
def test_values(order, act, decoder):
    fields, a = case(order, act, decoder)
    out = Attention.of(**fields).lambdify("numpy")(**a)
    np.testing.assert_allclose(out, by_loops(a, order, act, decoder, decoder), atol=1e-12)


@pytest.mark.parametrize(("order", "act", "decoder"), [CASES[0], pytest.param(*CASES[2], marks=pytest.mark.slow)])
def test_gradients_are_those_of_central_differences(order, act, decoder):
    fields, a = case(order, act, decoder, seed=1)
    g = np.random.default_rng(2).integers(-4, 5, size=(3, A)) / 4
    att = Attention.of(**fields)
    found = att.lambdify("mpmath", tuple("grad_" + n for n in a), digits=80)(**a, grad_out=g)
    f, h = att.lambdify("mpmath", digits=80), tiny.MP.mpf(10) ** -20
    exact = {n: np.vectorize(tiny.MP.mpf, otypes=[object])(x) for n, x in a.items()}
    for name, gradient in zip(a, found, strict=True):
        direction = np.random.default_rng(len(name)).integers(1, 9, size=a[name].shape)
        sides = [(f(**{**exact, name: exact[name] + sign * h * direction}) * g).sum() for sign in (1, -1)]
        assert abs((gradient * direction).sum() - (sides[0] - sides[1]) / (2 * h)) < 1e-35, name


def cut(program: Any, outputs: tuple[str, ...], given: tuple[str, ...]) -> Any:
    """The statements that lead from some tensors, which are inputs now, to others."""
    return program.with_statements((s for s in program if s.name not in given), outputs).live()


@pytest.mark.parametrize("act", ["relu", "gelu"])
def test_transposed_derivative_block_by_block(act):
    program = Definition(form="decoder-layer", heads=2, projection_bias=True, causal=True, activation=act).program(batch=True)
    for first, last in itertools.pairwise(("", "T1", "N1", "T2", "N2", "T3", "Y")):
        assert prove_duality(cut(program, (last,), (first,))), last


@pytest.mark.parametrize(("last", "first"), [("T1", ""), ("N1", "T1"), ("FF", "N1")])
@pytest.mark.parametrize("act", ["relu", "gelu"])
def test_gradient_is_sympys_derivative_block_by_block(last, first, act):
    program = cut(Definition(form="encoder-layer", projection_bias=True, activation=act).program(), (last,), (first,))
    whole = adjoint(program)
    sizes = {"n": 2, "d": 1, "dv": 1, "dmodel": 2, "dff": 1}
    sizes = {k: v for k, v in sizes.items() if k in {str(s) for s in whole.sizes}}
    a = numbers_for(whole, sizes, 5)
    t = sp.Symbol("t", real=True)
    found = exact.evaluate(whole, a, sizes=sizes)
    for name in program.inputs:
        direction = np.arange(1, np.size(a[name]) + 1).reshape(np.shape(a[name]))
        moved = unroll.run(program, {**a, name: a[name] + t * direction}, {t: sp.S.Zero}, sizes)
        slope = (moved[last] * a["d" + last]).sum().diff(t).xreplace({t: sp.S.Zero})
        assert unroll.is_zero((found["d" + name] * direction).sum() - slope), name


def test_a_wrong_gradient_of_the_norm_is_not_proved():
    program = cut(Definition(form="encoder-layer").program(), ("N1",), ("T1",))
    good = adjoint(program)
    assert prove_duality(program, gradient=good)
    held = good.with_statements(replace(s, expr=2 * s.expr) if s.name == "dmu1" else s for s in good)
    assert not prove_duality(program, gradient=held)


def test_presented_gradient_of_a_layer_is_proved():
    program = Definition(form="encoder-layer").program()
    presented = present(program, adjoint(program))
    assert presented.proved
    sd = presented.program["dDev1"]
    assert "sqrt" not in str(sd.expr)  # the spread is read by its name


def test_sinusoidal_positions():
    n, width = 5, 6
    a = drawn({"x": (n, width), "w_q": (width, 3), "w_k": (width, 3), "w_v": (width, 2)})
    table = np.zeros((n, width))
    for p in range(n):
        for k in range(width // 2):
            table[p, 2 * k], table[p, 2 * k + 1] = math.sin(p / 10000 ** (2 * k / width)), math.cos(p / 10000 ** (2 * k / width))
    f = Attention(start="x").lambdify("numpy")
    want = f(**{**a, "x": a["x"] + table})
    np.testing.assert_allclose(Attention(start="x", positions="sinusoidal").lambdify("numpy")(**a), want, atol=1e-13)
    np.testing.assert_allclose(
        Attention(start="x", positions="learned").lambdify("numpy")(**a, position_table=table), want, atol=1e-13
    )
    swapped = table.reshape(n, -1, 2)[..., ::-1].reshape(n, width)
    assert np.abs(f(**{**a, "x": a["x"] + swapped}) - want).max() > 1e-3


def test_the_table_has_a_gradient_from_both_of_its_uses():
    a = {**drawn({"embedding": (5, A), "w_q": (A, A), "w_k": (A, A), "w_v": (A, A)}), "tokens": np.array([1, 1, 3])}
    g = drawn({"g": (3, 5)}, 4)["g"]
    att = Attention(start="tokens", next_word=True, positions="sinusoidal")
    f = att.lambdify("mpmath", "next_word", digits=80)
    gradient = att.lambdify("mpmath", "grad_embedding", digits=80)(**a, grad_next_word=g)
    exact = np.vectorize(tiny.MP.mpf, otypes=[object])(a["embedding"])
    h = tiny.MP.mpf(10) ** -20
    for at in [(1, 0), (3, 2), (0, 1), (4, 3)]:
        unit = np.zeros(exact.shape, dtype=int)
        unit[at] = 1
        sides = [(f(**{**a, "embedding": exact + sign * h * unit}) * g).sum() for sign in (1, -1)]
        assert abs(gradient[at] - (sides[0] - sides[1]) / (2 * h)) < 1e-35
    assert all(gradient[4]), "a word that is not in the sentence has a share through the logits"


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"positions": "learned"}, "start='x' or 'tokens'"),
        ({"next_word": True, "start": "x"}, "start='tokens'"),
        ({"next_word": True, "start": "tokens", "heads": 2}, "output_projection=True"),
        ({"activation": "gelu"}, "form='encoder-layer'"),
        ({"layer_norm_eps": "1/10"}, "form='encoder-layer'"),
        ({"projection_bias": True}, "start='x'"),
        ({"form": "decoder-layer", "softcap": 20}, "does not read"),
        ({"form": "encoder-layer", "qk_norm": "rms"}, "does not read"),
    ],
    ids=str,
)
def test_contradictions(fields, says):
    with pytest.raises(DefinitionError, match=says):
        Definition.of(**fields)


def test_errors_of_binding():
    fields, a = case("post", "relu", True)
    att = Attention.of(**fields)
    with pytest.raises(InputValueError, match="missing: norm1_weight"):
        att.truth(**{k: v for k, v in a.items() if k != "norm1_weight"})
    with pytest.raises(InputValueError, match="missing: memory"):
        att.truth(**{k: v for k, v in a.items() if k != "memory"})
    with pytest.raises(ShapeError, match="w_ff2"):
        att.truth(**{**a, "w_ff2": a["w_ff2"][:, 1:]})
    with pytest.raises(ShapeError, match="dmodel = 4"):
        att.truth(**{**a, "w_o": a["w_o"][..., 1:]})
    with pytest.raises(DefinitionError, match="norm3_weight is given, but"):
        encoder = {k: v for k, v in a.items() if not k.startswith(("cross", "memory"))}
        Attention(form="encoder-layer", projection_bias=True).truth(**encoder)
    with pytest.raises(ShapeError, match="next_word=True compares"):
        tokens = {"tokens": [0, 1], "embedding": a["x"], "w_q": np.eye(A), "w_k": np.eye(A), "w_v": np.eye(A)[:, 1:]}
        Attention(start="tokens", next_word=True).truth(**tokens)


def test_truth_encloses_a_layer():
    fields, a = case("post", "relu", False)
    found = Attention.of(**fields).truth(**a, grad_out=np.ones((3, A)), digits=15)
    np.testing.assert_allclose(np.array(found["out"].mid, dtype=float), by_loops(a, "post", "relu", False, False), atol=1e-12)
    assert {"grad_x", "grad_w_ff1", "grad_norm2_bias", "grad_b_q"} <= set(found)
    assert found["grad_w_q"].mid.shape == a["w_q"].shape
