"""Normalizers in the place of the softmax: values from loops, the packages that others wrote, ties, and wrong versions caught."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import sympy as sp

from symattn import Attention
from symattn.adjoint import adjoint
from symattn.definition import Definition
from symattn.errors import DefinitionError
from symattn.functions import sigmoid
from symattn.presentation import present
from symattn.theorems.duality import prove_duality
from tests.support import require
from tests.variants import weights_oracle as oracle

OTHERS = ("off-by-one", "sigmoid", "sparsemax", "entmax15", "stick-breaking", "none")
OFFSETS: dict[Any, int | None] = {None: None, "top-left": 0, "bottom-right": 3, -1: -1}


def arrays(n: int = 3, m: int = 6, seed: int = 0, size: float = 1.5) -> dict[str, Any]:
    r = np.random.default_rng(seed)
    shapes = {"query": (2, 4, n, 5), "key": (2, 2, m, 5), "value": (2, 2, m, 3), "grad_out": (2, 4, n, 3)}
    return {name: size * r.normal(size=shape) for name, shape in shapes.items()}


def forward(given: dict[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in given.items() if k != "grad_out"}


def expected(normalizer: str, given: dict[str, Any], offset: int | None) -> np.ndarray:
    s = oracle.scores(given["query"], given["key"], 2)
    p = oracle.weights(s, oracle.visible(*s.shape[2:], offset), normalizer)
    return oracle.summed(p, given["value"], 2)


@pytest.mark.parametrize("causal", OFFSETS, ids=str)
@pytest.mark.parametrize("normalizer", OTHERS)
def test_values_are_those_of_loops(normalizer, causal):
    given = arrays()
    out = Attention(normalizer=normalizer, causal=causal).lambdify("numpy")(**forward(given))
    np.testing.assert_allclose(out, expected(normalizer, given, OFFSETS[causal]), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("normalizer", OTHERS)
def test_another_normalizer_does_not_pass_that_comparison(normalizer):
    given = arrays()
    out = Attention(normalizer=normalizer, causal=True).lambdify("numpy")(**forward(given))
    for other in {"softmax", *OTHERS} - {normalizer}:
        assert np.abs(out - expected(other, given, 0)).max() > 1e-3, other


def test_sticks_broken_from_the_other_end_are_caught():
    given = arrays()
    s = oracle.scores(given["query"], given["key"], 2)[..., ::-1]
    turned = oracle.summed(oracle.weights(s, oracle.visible(3, 6, None), "stick-breaking")[..., ::-1], given["value"], 2)
    out = Attention(normalizer="stick-breaking").lambdify("numpy")(**forward(given))
    assert np.abs(out - turned).max() > 1e-2


@pytest.mark.parametrize("size", [0.3, 1.5, 6])
@pytest.mark.parametrize("normalizer", ["sparsemax", "entmax15"])
def test_values_and_gradients_are_those_of_the_entmax_package(normalizer, size):
    torch, entmax = require("torch"), require("entmax")
    given = arrays(4, 9, seed=int(10 * size), size=size)
    x = {k: torch.tensor(v, requires_grad=k != "grad_out") for k, v in given.items()}
    s = torch.einsum("bhic,bhjc->bhij", x["query"], x["key"].repeat_interleave(2, 1)) / 5**0.5
    s = s.masked_fill(~torch.tensor(oracle.visible(4, 9, 5)), -1e9)
    out = getattr(entmax, normalizer)(s, dim=-1) @ x["value"].repeat_interleave(2, 1)
    out.backward(x["grad_out"])
    names = ("out", "grad_query", "grad_key", "grad_value")
    found = Attention(normalizer=normalizer, causal="bottom-right").lambdify("numpy", names)(**given)
    wanted = (out.detach(), x["query"].grad, x["key"].grad, x["value"].grad)
    for name, got, want in zip(names, found, wanted, strict=True):
        np.testing.assert_allclose(got, want.numpy(), rtol=1e-9, atol=1e-10, err_msg=name)


def test_values_and_gradients_of_sigmoid_attention_are_those_of_torch():
    torch = require("torch")
    given = arrays()
    x = {k: torch.tensor(v, requires_grad=k != "grad_out") for k, v in given.items()}
    s = torch.einsum("bhic,bhjc->bhij", x["query"], x["key"].repeat_interleave(2, 1)) / 5**0.5
    out = torch.sigmoid(s - np.log(6)) @ x["value"].repeat_interleave(2, 1)
    out.backward(x["grad_out"])
    names = ("out", "grad_query", "grad_key", "grad_value")
    found = Attention(normalizer="sigmoid", score="s - log(m)").lambdify("numpy", names)(**given)
    for got, want in zip(found, (out.detach(), x["query"].grad, x["key"].grad, x["value"].grad), strict=True):
        np.testing.assert_allclose(got, want.numpy(), rtol=1e-11, atol=1e-12)


def test_off_by_one_is_a_sink_of_logit_zero_in_values_gradients_and_log_sum_exp():
    given = {**arrays(), "grad_lse": np.ones((2, 4, 3))}
    names = ("out", "lse", "grad_query", "grad_key", "grad_value")
    one = Attention(normalizer="off-by-one", causal=-1).lambdify("numpy", names)(**given)
    sink = Attention(sink=True, causal=-1).lambdify("numpy", names)(**given, sinks=np.zeros(4))
    for a, b in zip(one, sink, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-13, atol=1e-14)
    assert one[1][0, 0, 0] == 0  # a query without keys


@pytest.mark.parametrize("scale", ["1", "t"])
@pytest.mark.parametrize("normalizer", ["sparsemax", "entmax15"])
def test_equal_scores_share_alike(normalizer, scale):
    """Keys that tie: every comparison in the support is between equals, which balls of irrational numbers never decide."""
    key, value = [[1], [1], [-5], [1]], [[3], [0], [9], [0]]
    att = Attention(normalizer=normalizer, scale="1", score="s" if scale == "1" else "exp(s)")
    found = att.truth([[2.0]], key, value, grad_out=[[1.0]], digits=30)
    assert found["out"].decimal(20).tolist() == [["1.0000000000000000000"]]
    # among equals the gradient is that of their mean: dS = w (dP - mean of dP)
    weight = {"sparsemax": 1.0, "entmax15": 3**-0.5}[normalizer] * (1 if scale == "1" else np.exp(2))
    slopes = [weight * (v - 1) * 2 for v in (3, 0)]
    got = np.asarray(found["grad_key"].mid, dtype=float)[:, 0]
    np.testing.assert_allclose(got, [slopes[0], slopes[1], 0, slopes[1]], atol=1e-12)


def test_a_row_without_keys_has_output_zero_and_gradient_zero():
    for normalizer in OTHERS:
        exact = Attention(normalizer=normalizer, causal=-1).truth(
            [[1], [2]], [[1], [2]], [[1], [3]], grad_out=[[1], [1]], digits=9
        )
        assert exact["out"].mid[0, 0] == 0 and exact["grad_query"].mid[0, 0] == 0
        given = arrays(3, 3)
        given["key"] = given["key"][:, :, :3]
        names = ("out", "grad_query")
        out, slope = Attention(normalizer=normalizer, causal=-1).lambdify("numpy", names)(**given)
        assert not out[:, :, 0].any() and not slope[:, :, 0].any()
        assert out[:, :, 1].any()


PRESENTED = {
    "sigmoid": {"dS[i, j] = (1 - P[i, j])*P[i, j]*dP[i, j]   where j <= i"},
    "off-by-one": {
        "D[i] = sum over j of P[i, j]*dP[i, j]   where j <= i",
        "dS[i, j] = (-D[i] + dP[i, j])*P[i, j]   where j <= i",
    },
    "sparsemax": {
        "D[i] = sum over j of dP[i, j]/kappa[i]   where j <= i and xi[i, j] < 1",
        "dS[i, j] = -D[i] + dP[i, j]   where j <= i and xi[i, j] < 1",
    },
    "entmax15": {
        "drho[i] = sum over j of 2*dP[i, j]*root[i, j]   where j <= i and xi[i, j] < 1",
        "dS[i, j] = -D[i] + dP[i, j]*root[i, j] + dev[i, j]*dnu[i]   where j <= i and xi[i, j] < 1",
    },
    "stick-breaking": {
        "D[i, j] = sum over j'' of P[i, j'']*dP[i, j'']   where j <= i and j > j'' and j'' <= i",
        "dS[i, j] = -D[i, j]*beta[i, j] - P[i, j]*beta[i, j]*dP[i, j] + P[i, j]*dP[i, j]   where j <= i",
    },
    "none": {
        "dS[i, j] = sum over e of V[j, e]*dO[i, e]   where j <= i",
        "dV[j, e] = sum over i of S[i, j]*dO[i, e]   where j <= i",
    },
}


@pytest.mark.parametrize("normalizer", OTHERS)
def test_gradient_is_the_transpose_of_the_tangent_and_every_rewriting_is_proved(normalizer):
    program = Definition(normalizer=normalizer, causal=True, lse=False).program()
    assert prove_duality(program)
    shown = present(program, adjoint(program))
    assert {s.status for s in shown.steps} <= {"proved for all sizes"}
    assert PRESENTED.get(normalizer, set()) <= set(map(str, shown.derived))


def test_there_is_no_log_sum_exp_where_there_is_no_sum_of_exponentials():
    for normalizer in OTHERS[1:]:
        d = Definition(normalizer=normalizer)
        assert not d.lse and "L" not in d.program().outputs
        assert d.conventions()["lse"] == "there is none"
    assert Definition(normalizer="off-by-one").lse


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"normalizer": "sigmoid", "sink": True}, "no such denominator"),
        ({"normalizer": "off-by-one", "sink": True}, "the logit 0"),
        ({"normalizer": "off-by-one", "empty_row": "nan"}, "its output is 0"),
        ({"normalizer": "sparsemax", "lse_base": 2}, "has none"),
        ({"normalizer": "entmax15", "algorithm": "online"}, "normalizer"),
        ({"normalizer": "sofmax"}, "softmax"),
    ],
)
def test_what_contradicts_a_normalizer_is_refused(fields, message):
    with pytest.raises(DefinitionError, match=message):
        Definition(**fields)


def test_the_sigmoid_has_a_value_and_a_slope_everywhere():
    """Scores of +-6000 in float32, where the quotient of exponentials would be infinity over infinity."""
    f = Attention(normalizer="sigmoid", scale=1).lambdify("numpy", ("out", "grad_query"))
    q, k, v = (np.array(x, dtype=np.float32) for x in ([[6000.0]], [[-1.0], [1.0]], [[2.0], [3.0]]))
    out, slope = f(q, k, v, grad_out=np.ones((1, 1), dtype=np.float32))
    assert out.tolist() == [[3.0]] and slope.tolist() == [[0.0]]
    x = sp.Symbol("x", real=True)
    assert sp.simplify((sigmoid(x).diff(x) - (1 / (1 + sp.exp(-x))).diff(x)).subs(sigmoid(x), 1 / (1 + sp.exp(-x)))) == 0


@pytest.mark.parametrize("normalizer", ["sparsemax", "sigmoid", "stick-breaking"])
def test_a_right_kernel_passes_and_a_wrong_one_fails(normalizer):
    """Among the inputs are integers, whose scores tie: rounding could turn a comparison, and the bound knows by how much."""
    att = Attention(normalizer=normalizer)

    def right(query: Any, key: Any, value: Any, **_: Any) -> Any:
        return att.lambdify("numpy")(query, key, value)

    def wrong(query: Any, key: Any, value: Any, **_: Any) -> Any:
        return Attention(normalizer=normalizer, score="s + 1/1000").lambdify("numpy")(query, key, value)

    some = "normal,integers,deep"
    verdicts = {c.case: t.verdict for c in att.verify(right, only=some).cases for t in c.tensors}
    assert set(verdicts.values()) == {"pass"} and "integers" in verdicts
    expected = "pass" if normalizer == "sparsemax" else "fail"  # a shift of the row leaves sparsemax as it is
    shifted = {t.verdict for c in att.verify(wrong, only="normal").cases for t in c.tensors}
    assert shifted == {expected}
