"""Tangents and Hessian-vector products under field names: against PyTorch and JAX, exact identities, and what is refused."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import sympy as sp

from symattn import Attention
from symattn.binding import bind
from symattn.directions import bind_directions
from symattn.errors import InputValueError, ShapeError, UnknownNameError
from tests.support import require

RNG = np.random.default_rng(11)
Q, K, V, G = (RNG.normal(size=(2, h, n, d)) for h, n, d in ((4, 3, 5), (2, 6, 5), (2, 6, 4), (4, 3, 4)))
DQ, DK, DV, DG = (RNG.normal(size=x.shape) for x in (Q, K, V, G))
MOVES = {"tangent_query": DQ, "tangent_key": DK, "tangent_value": DV}


# ---------------------------------------------------------------- other implementations
def torch_attention(**options: Any) -> Any:
    torch = require("torch")
    from torch.nn.attention import SDPBackend, sdpa_kernel

    def f(q: Any, k: Any, v: Any) -> Any:
        with sdpa_kernel(SDPBackend.MATH):
            return torch.nn.functional.scaled_dot_product_attention(q, k, v, enable_gqa=True, **options)

    return f


@pytest.mark.filterwarnings("ignore:`torch.jit.script:DeprecationWarning")
@pytest.mark.parametrize("causal", [False, True])
def test_the_tangent_is_that_of_torch(causal: bool) -> None:
    torch = require("torch")
    q, k, v, dq, dk, dv = (torch.tensor(x) for x in (Q, K, V, DQ, DK, DV))
    out, moved = torch.func.jvp(torch_attention(is_causal=causal), (q, k, v), (dq, dk, dv))
    att = Attention(causal="top-left" if causal else None)
    ours = att.lambdify("numpy", ("out", "tangent_out"))(Q, K, V, **MOVES)
    assert np.allclose(ours[0], out.numpy(), atol=1e-13) and np.allclose(ours[1], moved.numpy(), atol=1e-13)
    assert np.allclose(att.truth(Q, K, V, **MOVES, digits=20)["tangent_out"].float(), moved.numpy(), atol=1e-13)


@pytest.mark.parametrize("causal", [False, True])
def test_the_hessian_vector_product_is_that_of_torch_double_backward(causal: bool) -> None:
    """Backward over backward: the derivative of ``<gradient, direction>``. The incoming gradient may move too."""
    torch = require("torch")
    leaves = [torch.tensor(x, requires_grad=True) for x in (Q, K, V, G)]
    out = torch_attention(is_causal=causal)(*leaves[:3])
    first = torch.autograd.grad((out * leaves[3]).sum(), leaves, create_graph=True)
    inner = sum((g * torch.tensor(d)).sum() for g, d in zip(first, (DQ, DK, DV, DG), strict=True))
    want = [x.numpy() for x in torch.autograd.grad(inner, leaves)]
    att = Attention(causal="top-left" if causal else None, lse=False)
    names = ("hvp_query", "hvp_key", "hvp_value", "tangent_out")
    found = att.lambdify("numpy", names)(Q, K, V, grad_out=G, tangent_grad_out=DG, **MOVES)
    for name, a, b in zip(names, found, want, strict=True):
        assert np.allclose(a, b, atol=1e-12), name
    still = att.lambdify("numpy", "hvp_query")(Q, K, V, grad_out=G, **MOVES)
    assert not np.allclose(still, want[0], atol=1e-3)


def test_the_tangent_and_its_log_sum_exp_are_those_of_jax() -> None:
    jax = require("jax")
    x64 = pytest.importorskip("jax.experimental").enable_x64 if not hasattr(jax, "enable_x64") else jax.enable_x64

    def f(q: Any, k: Any, v: Any, cap: Any) -> Any:
        s = jax.numpy.einsum("bhic,bhjc->bhij", q, k.repeat(2, axis=1)) / np.sqrt(5)
        s = cap * jax.numpy.tanh(s / cap)
        out = jax.numpy.einsum("bhij,bhje->bhie", jax.nn.softmax(s, axis=-1), v.repeat(2, axis=1))
        return out, jax.scipy.special.logsumexp(s, axis=-1)

    with x64(True):
        arrays = [jax.numpy.asarray(x) for x in (Q, K, V, 2.5)]
        moves = [jax.numpy.asarray(x) for x in (DQ, DK, DV, 0.75)]
        _, want = jax.jvp(f, arrays, moves)
        want = [np.asarray(x) for x in want]
    att = Attention(softcap="cap")
    found = att.lambdify("numpy", ("tangent_out", "tangent_lse"))(Q, K, V, cap=2.5, tangent_cap=0.75, **MOVES)
    assert all(a.dtype == np.float64 and np.allclose(a, b, atol=1e-13) for a, b in zip(found, want, strict=True))


# ---------------------------------------------------------------- exact identities
def exact(*shape: int, seed: int) -> Any:
    r = np.random.default_rng(seed)
    out = np.empty(shape, dtype=object)
    for at in np.ndindex(*shape):
        out[at] = Fraction(int(r.integers(1, 4)) * int(r.choice([-1, 1])))
    return out


def is_zero(x: Any) -> bool:
    """Whether a rational function of exponentials of integers is 0: the number e is one symbol."""
    e = sp.Symbol("e", positive=True)
    powers = {f: e ** f.args[0] for f in sp.sympify(x).atoms(sp.exp)}
    return sp.cancel(sp.sympify(x).xreplace(powers).xreplace({sp.E: e})) == 0


SINK = {"scale": 1, "sink": True, "lse": False}


@pytest.mark.parametrize("fields", [{"scale": 1}, pytest.param(SINK, marks=pytest.mark.slow)])
def test_the_hessian_is_symmetric_exactly(fields: dict[str, Any]) -> None:
    """``<u, H v> = <v, H u>`` in exact numbers; with a factor in one product the comparison fails."""
    att = Attention(**fields)
    names = ("query", "key", "value", *(("sinks",) if att.sink else ()))
    shapes = {"query": (1, 1), "key": (2, 1), "value": (2, 1), "sinks": (1,)}
    given = {n: exact(*shapes[n], seed=k) for k, n in enumerate(names)}
    given |= {"grad_out": exact(1, 1, seed=9), **({} if att.sink else {"grad_lse": exact(1, seed=8)})}
    u, v = ({n: exact(*given[n].shape, seed=10 * s + k) for k, n in enumerate(names)} for s in (2, 3))
    product = att.lambdify("exact", tuple("hvp_" + n for n in names))

    def bilinear(a: dict[str, Any], b: dict[str, Any], tweak: int = 1) -> Any:
        found = product(**given, **{"tangent_" + n: x for n, x in b.items()})
        return sum(
            sp.Rational(p) * q * (tweak if k == 0 else 1)
            for k, n in enumerate(names)
            for p, q in zip(a[n].flat, found[k].flat, strict=True)
        )

    left, right = bilinear(u, v), bilinear(v, u)
    assert is_zero(left - right) and not is_zero(left)
    assert not is_zero(bilinear(u, v, tweak=2) - right)


def test_a_tangent_is_linear_in_the_direction_and_transposed_to_the_gradient() -> None:
    att = Attention(scale=1, softcap=None)
    q, k, v, g, dq, dv = (exact(*shape, seed=s) for s, shape in enumerate([(1, 1), (2, 1), (2, 1), (1, 1), (1, 1), (2, 1)]))
    f = att.lambdify("exact", "tangent_out")
    both = f(q, k, v, tangent_query=dq, tangent_value=dv)
    alone = f(q, k, v, tangent_query=dq) + f(q, k, v, tangent_value=dv)
    assert all(is_zero(x) for x in (both - alone).flat)
    gq, gv = att.lambdify("exact", ("grad_query", "grad_value"))(q, k, v, grad_out=g)
    assert is_zero((g * both).sum() - (gq * dq).sum() - (gv * dv).sum())


# ---------------------------------------------------------------- conventions
def test_a_direction_that_is_left_out_is_0_and_so_is_what_does_not_move() -> None:
    att = Attention()
    some = att.truth(Q, K, V, tangent_value=DV, digits=20)
    full = att.truth(Q, K, V, tangent_value=DV, tangent_query=0 * Q, tangent_key=0 * K, digits=20)
    assert (some["tangent_out"].float() == full["tangent_out"].float()).all()
    assert set(some["tangent_lse"].status.ravel()) == {"exact"} and not some["tangent_lse"].mid.any()
    weights, raw = att.lambdify("numpy", ("tangent_weights", "tangent_raw_scores"))(Q, K, V, tangent_value=DV)
    assert weights.shape == raw.shape == (2, 4, 3, 6) and not weights.any() and not raw.any()


def test_enclosures_hold_what_many_digits_give() -> None:
    att = Attention(heads=4, kv_heads=2, causal="bottom-right", softcap=2)
    truth = att.truth(Q, K, V, grad_out=G, **MOVES, digits=40)
    names = tuple(n for n in truth if n.startswith(("tangent_", "hvp_")))
    assert names == ("tangent_out", "tangent_lse", "hvp_key", "hvp_query", "hvp_value")
    found = att.lambdify("mpmath", names, digits=60)(Q, K, V, grad_out=G, **MOVES)
    for name, witness in zip(names, found, strict=True):
        assert truth[name].decided
        for mid, rad, w in zip(truth[name].mid.flat, truth[name].rad.flat, witness.flat, strict=True):
            mp = w.context
            assert (
                abs(mp.mpf(mid.numerator) / mid.denominator - w)
                <= mp.mpf(rad.numerator) / rad.denominator + abs(w) * mp.mpf(10) ** -50
            )


def test_the_log_sum_exp_of_a_row_without_keys_does_not_move() -> None:
    rows = np.arange(12.0).reshape(4, 3) / 7
    att = Attention(causal="bottom-right")
    found = att.truth(rows, rows[:2], rows[:2], tangent_key=rows[2:], grad_out=rows, grad_lse=rows[:, 0], digits=20)
    assert found["lse"].mid.tolist()[:2] == [-np.inf, -np.inf]
    assert found["tangent_lse"].mid.tolist()[:2] == [0, 0] and found["tangent_lse"].mid[3] != 0
    assert all(np.isfinite(e.float()).all() for n, e in found.items() if n.startswith(("tangent_", "hvp_", "grad_")))


def test_what_is_masked_out_may_be_nan_in_a_direction_and_nothing_else() -> None:
    att = Attention(causal="top-left")
    hidden, open_ = DK.copy(), DK.copy()
    hidden[:, :, 3:] = np.nan
    open_[0, 0, 2, 1] = np.nan
    clean = np.where(np.isnan(hidden), 0, hidden)
    f = att.lambdify("numpy", "tangent_out")
    assert np.array_equal(f(Q, K, V, tangent_key=hidden), f(Q, K, V, tangent_key=clean))
    with pytest.raises(InputValueError, match=r"tangent_key is nan at .*, and something reads it"):
        f(Q, K, V, tangent_key=open_)


@pytest.mark.parametrize("shape", [(3, 6), (1, 6), (4, 1, 1), (2, 1, 3, 6), (1, 1, 1, 1)])
def test_directions_of_masks_lie_as_the_masks_do(shape: tuple[int, ...]) -> None:
    r = np.random.default_rng(2)
    mask, move = r.normal(size=shape), r.normal(size=shape)
    step = 1e-6
    for field, att in {"attn_mask": Attention(attn_mask="additive"), "bias": Attention(bias=True, bias_axes="hij")}.items():
        if field == "bias" and len(shape) == 4 and shape[0] == 2:
            continue
        found = att.lambdify("numpy", "tangent_out")(Q, K, V, **{field: mask, "tangent_" + field: move})
        f = att.lambdify("numpy")
        slope = (f(Q, K, V, **{field: mask + step * move}) - f(Q, K, V, **{field: mask - step * move})) / (2 * step)
        assert np.allclose(found, slope, atol=1e-8)


def test_the_layout_and_projections_are_those_of_what_moves() -> None:
    att = Attention(grouping="tiled")
    turn = lambda x: np.swapaxes(x, 1, 2)
    f, g = att.lambdify("numpy", "tangent_out"), att.lambdify("numpy", "tangent_out", layout="bshd")
    turned = g(*map(turn, (Q, K, V)), **{n: turn(x) for n, x in MOVES.items()})
    assert np.allclose(turn(turned), f(Q, K, V, **MOVES), atol=1e-15)
    r = np.random.default_rng(4)
    given = {
        "x": r.normal(size=(2, 3, 6)),
        "w_q": r.normal(size=(6, 8)),
        "w_k": r.normal(size=(6, 4)),
        "w_v": r.normal(size=(2, 6, 2)),
    }
    given["w_o"] = r.normal(size=(8, 5))
    moves = {"tangent_" + n: r.normal(size=x.shape) for n, x in given.items()}
    own = Attention(start="x", heads=4, kv_heads=2, output_projection=True, lse=False)
    names = ("tangent_out", "tangent_query", "hvp_w_q", "hvp_w_o", "hvp_x")
    seed = r.normal(size=(2, 3, 5))
    found = own.lambdify("numpy", names)(**given, **moves, grad_out=seed)
    step = 1e-5
    base = own.lambdify("numpy", ("out", "query", "grad_w_q", "grad_w_o", "grad_x"))
    ends = [base(**{n: x + s * step * moves["tangent_" + n] for n, x in given.items()}, grad_out=seed) for s in (1, -1)]
    for name, a, up, down in zip(names, found, *ends, strict=True):
        assert np.allclose(a, (up - down) / (2 * step), atol=1e-5 * np.abs(a).max()), name


def test_places_of_a_direction_are_those_of_the_array_itself() -> None:
    """The direction is put where binding puts the array: for the array itself as its direction the two are equal."""
    att = Attention(attn_mask="additive", sink=True, alibi=True, alibi_slopes="given")
    r = np.random.default_rng(5)
    fields = {
        "query": Q,
        "key": K,
        "value": V,
        "attn_mask": r.normal(size=(4, 1, 6)),
        "sinks": r.normal(size=4),
        "alibi_slopes": r.normal(size=4),
    }
    bound = bind(att, {**fields, "grad_out": G})
    placed = bind_directions(bound, {"tangent_" + n: x for n, x in fields.items()} | {"tangent_grad_out": G})
    assert set(placed) == {"Q", "K", "V", "B", "sink", "slope", "dO"}
    assert all(np.array_equal(x, bound.inputs[n]) for n, x in placed.items())


# ---------------------------------------------------------------- what is refused
@pytest.mark.parametrize(
    "fields, output, error, says",
    [
        (
            {"tangent_query": DQ[:1]},
            "tangent_out",
            ShapeError,
            r"tangent_query has shape \(1, 4, 3, 5\), needed is \(2, 4, 3, 5\)",
        ),
        (
            {"tangent_qery": DQ},
            "tangent_out",
            UnknownNameError,
            "no direction is called 'tangent_qery'. Did you mean 'tangent_query'",
        ),
        ({"tangent_sinks": DQ}, "tangent_out", InputValueError, "does not read sinks"),
        ({}, "tangent_out", InputValueError, "missing: tangent_key or tangent_query or tangent_value"),
        ({"tangent_grad_out": G}, "hvp_query", InputValueError, None),
        ({"tangent_query": DQ}, "hvp_query", InputValueError, "missing: grad_out or grad_lse"),
        ({"grad_out": G}, "hvp_query", InputValueError, "missing: tangent_key or"),
        ({"tangent_query": DQ}, "tangent_ou", UnknownNameError, "Did you mean 'tangent_out'"),
        ({"tangent_query": DQ}, "hvp_sinks", UnknownNameError, "there is no output 'hvp_sinks'"),
        ({"tangent_query": DQ}, "tangent_key", UnknownNameError, "there is no output 'tangent_key'"),
    ],
)
def test_mistakes_are_named(fields: dict[str, Any], output: str, error: type[Exception], says: str | None) -> None:
    call = lambda: Attention().lambdify("numpy", output)(Q, K, V, **fields)
    if says is None:  # a gradient that moves from 0 is one that comes in
        assert np.allclose(call(), Attention().lambdify("numpy", "grad_query")(Q, K, V, grad_out=G))
        return
    with pytest.raises(error, match=says):
        call()


def test_a_mask_and_a_bound_parameter_have_no_direction() -> None:
    with pytest.raises(InputValueError, match="tangent_attn_mask: only conditions and subscripts read attn_mask"):
        Attention(attn_mask="boolean").truth(Q, K, V, attn_mask=np.ones((3, 6), bool), tangent_attn_mask=np.ones((3, 6)))
    bound = Attention(score="t*s", params={"t": 2})
    with pytest.raises(InputValueError, match="the parameter t is bound to a number"):
        bound.truth(Q, K, V, tangent_t=1)
    assert Attention(score="t*s").truth(Q, K, V, t=2, tangent_t=1, digits=15)["tangent_out"].decided


def test_recorded_results_are_no_directions() -> None:
    found = Attention().truth(Q, K, V, tangent_out=G, hvp_query=Q, digits=15)
    assert set(found) == {"out", "lse"}


def test_a_score_whose_slope_has_no_value_is_refused() -> None:
    with pytest.raises(InputValueError, match="no value"):
        Attention(score="sqrt(abs(s))", scale=1).truth([[0.0]], [[1.0]], [[1.0]], tangent_query=[[1.0]], digits=15)
