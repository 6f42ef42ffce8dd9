"""Multi-head latent attention: values against loops, both forms proved equal, gradients, planted faults, errors."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from symattn import Attention
from symattn.adjoint import adjoint
from symattn.definition import Definition
from symattn.errors import DefinitionError, InputValueError, ShapeError
from symattn.presentation import present
from symattn.theorems.absorption import prove_absorption, prove_same
from symattn.theorems.duality import prove_duality
from tests import tiny

B, H, N, M, D, R, C, DV = 2, 3, 2, 4, 3, 4, 5, 2
SHAPES = {
    "query": (B, H, N, D), "query_rope": (B, H, N, R), "latent": (B, M, C), "key_rope": (B, M, R),
    "w_uk": (H, C, D), "w_uv": (H, C, DV),
}  # fmt: skip


def arrays(seed: int = 0) -> dict[str, Any]:
    r = np.random.default_rng(seed)
    return {name: r.normal(size=shape) for name, shape in SHAPES.items()}


def turned(x: np.ndarray, position: int) -> np.ndarray:
    """The halves of a vector turned in pairs (c, c + R/2) by position * 10000^(-2c/R), with complex numbers."""
    half = len(x) // 2
    z = (x[:half] + 1j * x[half:]) * np.exp(1j * position * 10000.0 ** (-2 * np.arange(half) / len(x)))
    return np.concatenate([z.real, z.imag])


def by_loops(a: dict[str, Any], causal: bool, rope: bool) -> np.ndarray:
    """Section 2.1.2 and 2.1.3 of arXiv 2405.04434, token by token and head by head."""
    turn = turned if rope else lambda x, t: x
    out = np.zeros((B, H, N, DV))
    for b in range(B):
        for h in range(H):
            for i in range(N):
                q = np.concatenate([a["query"][b, h, i], turn(a["query_rope"][b, h, i], i)])
                seen = range(min(i + 1, M)) if causal else range(M)
                scores, values = [], []
                for j in seen:
                    k = np.concatenate([a["latent"][b, j] @ a["w_uk"][h], turn(a["key_rope"][b, j], j)])
                    scores.append(q @ k / np.sqrt(D + R))
                    values.append(a["latent"][b, j] @ a["w_uv"][h])
                w = np.exp(np.array(scores) - max(scores))
                out[b, h, i] = (w / w.sum()) @ np.array(values)
    return out


@pytest.mark.parametrize("form", ["mla", "mla-absorbed"])
@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("rope", ["half", None])
def test_values(form, causal, rope):
    a = arrays()
    out = Attention(form=form, causal=causal, rope=rope).lambdify("numpy")(**a)
    np.testing.assert_allclose(out, by_loops(a, causal, rope is not None), atol=1e-13)


@pytest.mark.parametrize("wrong", [{"scale": "1/sqrt(d)"}, {"rope": "interleaved"}, {"causal": True}, {"rope": None}], ids=str)
def test_another_convention_is_caught(wrong):
    a = arrays()
    out = Attention.of(**{"form": "mla", "rope": "half", **wrong}).lambdify("numpy")(**a)
    assert np.abs(out - by_loops(a, False, True)).max() > 1e-3


@pytest.mark.parametrize(
    "fields", [{}, {"causal": True, "rope": "half"}, {"key_lengths": True, "sink": True, "softcap": 20}], ids=str
)
def test_absorbed_and_expanded_are_the_same_for_all_sizes(fields):
    d = Definition.of(form="mla", heads=2, **fields)
    assert prove_absorption(d)
    assert prove_absorption(d, gradient=True)


def test_of_the_whole_block_too():
    d = Definition(form="mla", heads=2, start="x", output_projection=True, causal=True)
    found = prove_absorption(d, gradient=True)
    assert found and {"O", "dLat", "dWUK", "dWUV"} <= set(found.proved)


@pytest.mark.parametrize("name", ["Qa", "Olat", "O", "Rlat", "Rrope"])
def test_a_wrong_absorption_is_not_proved(name):
    d = Definition(form="mla", heads=2)
    good = d.replace(form="mla-absorbed").program()
    bad = good.with_statements(replace(s, expr=2 * s.expr) if s.name == name else s for s in good)
    assert prove_same(d.program(), good)
    assert not prove_same(d.program(), bad)


@pytest.mark.parametrize("form", ["mla", "mla-absorbed"])
def test_gradient(form):
    program = Definition(form=form, heads=2, causal=True).program(batch=True)
    assert prove_duality(program)
    presented = present(program, adjoint(program))
    assert presented.proved and "D" in presented.program


def test_both_gradients_are_those_of_central_differences():
    a = {k: v[:1] if v.ndim == 4 or k in ("latent", "key_rope") else v for k, v in arrays(1).items()}
    g = np.random.default_rng(2).normal(size=(1, H, N, DV))
    names = tuple(SHAPES)
    found = {
        form: Attention(form=form, rope="half").lambdify("mpmath", tuple("grad_" + n for n in names), digits=80)(**a, grad_out=g)
        for form in ("mla", "mla-absorbed")
    }
    f = Attention(form="mla", rope="half").lambdify("mpmath", digits=80)
    h = tiny.MP.mpf(10) ** -20
    for k, name in enumerate(names):
        at = tuple(s - 1 for s in a[name].shape)
        sides = []
        for sign in (1, -1):
            moved = np.array([[tiny.MP.mpf(x) for x in np.ravel(a[name])]], dtype=object).reshape(a[name].shape)
            moved[at] += sign * h
            sides.append((f(**{**a, name: moved}) * g).sum())
        slope = (sides[0] - sides[1]) / (2 * h)
        for form in found:
            assert abs(found[form][k][at] - slope) < 1e-35, (form, name)


def test_heads_side_by_side_and_the_block_from_x():
    r = np.random.default_rng(3)
    shapes = {"x": (B, N, 6), "w_dkv": (6, C), "w_kr": (6, R), "w_dq": (6, 4), "w_uq": (H, 4, D), "w_qr": (H, 4, R)}
    a = {name: r.normal(size=s) for name, s in shapes.items()} | {k: arrays()[k] for k in ("w_uk", "w_uv")}
    a["w_o"] = r.normal(size=(H * DV, 6))
    att = Attention(form="mla", start="x", heads=H, causal=True, output_projection=True)
    out = att.lambdify("numpy")(**a)
    low = a["x"] @ a["w_dq"]
    inner = {"query": np.einsum("bix,hxc->bhic", low, a["w_uq"]), "query_rope": np.einsum("bix,hxr->bhir", low, a["w_qr"])}
    inner |= {"latent": a["x"] @ a["w_dkv"], "key_rope": a["x"] @ a["w_kr"], "w_uk": a["w_uk"], "w_uv": a["w_uv"]}
    heads = Attention(form="mla", causal=True).lambdify("numpy")(**inner)
    np.testing.assert_allclose(out, heads.transpose(0, 2, 1, 3).reshape(B, N, -1) @ a["w_o"], atol=1e-12)
    flat = {**a, "w_uk": a["w_uk"].transpose(1, 0, 2).reshape(C, -1), "w_uv": a["w_uv"].transpose(1, 0, 2).reshape(C, -1)}
    g = r.normal(size=out.shape)
    one, other = (att.lambdify("numpy", ("out", "grad_w_uk"))(**x, grad_out=g) for x in (a, flat))
    np.testing.assert_array_equal(one[0], other[0])
    np.testing.assert_array_equal(one[1].transpose(1, 0, 2).reshape(C, -1), other[1])


def test_errors():
    a = arrays()
    with pytest.raises(InputValueError, match="missing: latent"):
        Attention(form="mla").truth(**{k: v for k, v in a.items() if k != "latent"})
    with pytest.raises(ShapeError, match="key_rope"):
        Attention(form="mla").truth(**{**a, "key_rope": a["key_rope"][..., :-1]})
    with pytest.raises(ShapeError, match="even"):
        Attention(form="mla", rope="half").truth(
            **{**a, "query_rope": a["query_rope"][..., :-1], "key_rope": a["key_rope"][..., :-1]}
        )
    with pytest.raises(DefinitionError, match="does not read"):
        Attention(form="mla", qk_norm="rms")
    with pytest.raises(DefinitionError, match="does not use it"):
        Attention(form="mla").truth(**a, key=a["latent"])
