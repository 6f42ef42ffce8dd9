"""Two maps, mixed heads, convolved scores and gates: values from loops, gradients from torch, and wrong versions caught."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from symattn import Attention, variants
from symattn.adjoint import adjoint
from symattn.definition import Definition
from symattn.errors import DefinitionError, InputValueError, ShapeError
from symattn.presentation import present
from symattn.theorems.duality import prove_duality
from tests.support import require
from tests.variants import weights_oracle as oracle

B, H, HKV, N, M, D, DV = 2, 4, 2, 4, 6, 5, 3
SHAPES = {
    "query": (B, H, N, D), "key": (B, HKV, M, D), "value": (B, HKV, M, DV), "query2": (B, H, N, D), "key2": (B, HKV, M, D),
    "lambda_q1": (D,), "lambda_k1": (D,), "lambda_q2": (D,), "lambda_k2": (D,), "lambda_init": (),
    "mix_scores": (H, H), "mix_weights": (H, H), "score_kernel": (H, 2, 3), "forget_gates": (B, H, M), "gate": (B, H, N, DV),
    "head_norm_weight": (DV,),
}  # fmt: skip
CASES: dict[str, dict[str, Any]] = {
    "differential": {"differential": True},
    "talking scores": {"head_mixing": "scores"},
    "talking weights": {"head_mixing": "weights"},
    "talking both": {"head_mixing": "both"},
    "multi-token": {"multi_token": (2, 3)},
    "forgetting": {"forgetting": True},
    "output gate": {"output_gate": True},
    "head norm": {"head_norm": True},
    "differential with its norm": {"differential": True, "head_norm": True},
    "all of them": {
        "differential": True, "head_mixing": "both", "multi_token": (2, 3), "forgetting": True, "output_gate": True,
        "head_norm": True,
    },
    "sigmoid of mixed and convolved scores": {"normalizer": "sigmoid", "head_mixing": "both", "multi_token": (2, 3)},
    "sparse maps": {"normalizer": "sparsemax", "differential": True, "forgetting": True},
}  # fmt: skip
FIELDS = {
    "differential": ("query2", "key2", "lambda_q1", "lambda_k1", "lambda_q2", "lambda_k2", "lambda_init"),
    "multi_token": ("score_kernel",),
    "forgetting": ("forget_gates",),
    "output_gate": ("gate",),
    "head_norm": ("head_norm_weight",),
}


def arrays(fields: dict[str, Any], seed: int = 0) -> dict[str, Any]:
    r = np.random.default_rng(seed)
    wanted = ["query", "key", "value", *(x for f, names in FIELDS.items() if fields.get(f) for x in names)]
    mixing = fields.get("head_mixing")
    wanted += [x for x, when in (("mix_scores", "scores"), ("mix_weights", "weights")) if mixing in (when, "both")]
    return {name: r.normal(size=SHAPES[name]) for name in wanted}


def expected(fields: dict[str, Any], x: dict[str, Any], offset: int, wrong: str = "") -> np.ndarray:
    """The papers' formulas; ``wrong`` names a mistake that the tests must see."""
    seen = oracle.visible(N, M, offset)
    mixing = fields.get("head_mixing")

    def one(q: Any, k: Any) -> np.ndarray:
        s = oracle.scores(q, k, H // HKV)
        if fields.get("forgetting"):
            s = s + oracle.decay(x["forget_gates"], N, offset - (wrong == "gate of the query left out"))
        if fields.get("multi_token"):
            kernel = x["score_kernel"]
            kernel = kernel[:, ::-1] if wrong == "queries turned" else kernel[:, :, ::-1] if wrong == "keys turned" else kernel
            s = oracle.convolved(s, kernel, np.ones_like(seen) if wrong == "masked scores convolved" else seen)
        if mixing in ("scores", "both"):
            s = oracle.mixed(s, x["mix_scores"].T if wrong == "scores mixed the other way" else x["mix_scores"])
        return oracle.weights(s, seen, fields.get("normalizer", "softmax"))

    p = one(x["query"], x["key"])
    start = 0.0
    if fields.get("differential"):
        pairs = [float(x[f"lambda_q{k}"] @ x[f"lambda_k{k}"]) for k in (1, 2)]
        start = float(x["lambda_init"])
        weight = np.exp(pairs[0]) - np.exp(pairs[1]) + start
        p = p - (np.exp(pairs[0]) if wrong == "lambda without its second part" else weight) * one(x["query2"], x["key2"])
    if mixing in ("weights", "both"):
        p = oracle.mixed(p, x["mix_weights"].T if wrong == "weights mixed the other way" else x["mix_weights"])
    out = oracle.summed(p, x["value"], H // HKV)
    if fields.get("head_norm"):
        out = out / np.sqrt((out**2).mean(-1, keepdims=True) + 1e-5) * x["head_norm_weight"]
        out = out if wrong == "norm without 1 - lambda_init" else (1 - start) * out
    if fields.get("output_gate"):
        out = out * (x["gate"] if wrong == "gate without sigmoid" else 1 / (1 + np.exp(-x["gate"])))
    return out


@pytest.mark.parametrize("causal", ["top-left", "bottom-right"])
@pytest.mark.parametrize("case", CASES)
def test_values_are_those_of_loops(case, causal):
    fields, offset = CASES[case], {"top-left": 0, "bottom-right": M - N}[causal]
    x = arrays(fields)
    out = Attention(**fields, causal=causal).lambdify("numpy")(**x)
    np.testing.assert_allclose(out, expected(fields, x, offset), rtol=1e-11, atol=1e-12)


WRONG = {
    "gate of the query left out": "forgetting",
    "queries turned": "multi-token",
    "keys turned": "multi-token",
    "masked scores convolved": "multi-token",
    "scores mixed the other way": "talking both",
    "weights mixed the other way": "talking both",
    "lambda without its second part": "differential",
    "norm without 1 - lambda_init": "differential with its norm",
    "gate without sigmoid": "output gate",
}


@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_version_does_not_pass_that_comparison(wrong):
    fields = CASES[WRONG[wrong]]
    x = arrays(fields)
    out = Attention(**fields, causal=True).lambdify("numpy")(**x)
    assert np.abs(out - expected(fields, x, 0, wrong)).max() > 1e-3


def torch_loss(torch: Any, fields: dict[str, Any], x: dict[str, Any], seen: Any) -> Any:
    """The same in torch, in which autograd finds the gradients."""
    groups = H // HKV

    def one(q: Any, k: Any) -> Any:
        s = torch.einsum("bhic,bhjc->bhij", q, k.repeat_interleave(groups, 1)) / D**0.5
        if fields.get("forgetting"):
            total = torch.nn.functional.logsigmoid(x["forget_gates"]).cumsum(-1)
            s = s + total[:, :, M - N :, None] - total[:, :, None, :]
        if fields.get("multi_token"):
            padded = torch.nn.functional.pad(s.masked_fill(~seen, 0.0), (1, 1, 1, 0))
            s = torch.nn.functional.conv2d(padded, x["score_kernel"].flip(1, 2)[:, None], groups=H)
        if fields.get("head_mixing"):
            s = torch.einsum("bgij,gh->bhij", s, x["mix_scores"])
        return torch.softmax(s.masked_fill(~seen, float("-inf")), -1)

    p = one(x["query"], x["key"])
    if fields.get("differential"):
        weight = torch.exp(x["lambda_q1"] @ x["lambda_k1"]) - torch.exp(x["lambda_q2"] @ x["lambda_k2"]) + x["lambda_init"]
        p = p - weight * one(x["query2"], x["key2"])
    if fields.get("head_mixing"):
        p = torch.einsum("bgij,gh->bhij", p, x["mix_weights"])
    out = p @ x["value"].repeat_interleave(groups, 1)
    if fields.get("head_norm"):
        out = torch.nn.functional.rms_norm(out, (DV,), x["head_norm_weight"], 1e-5)
        out = out * (1 - x["lambda_init"]) if fields.get("differential") else out
    return out * torch.sigmoid(x["gate"]) if fields.get("output_gate") else out


@pytest.mark.parametrize(
    "case", [c for c in CASES if "normalizer" not in CASES[c] and CASES[c].get("head_mixing", "both") == "both"]
)
def test_gradients_by_every_input_are_those_of_torch(case):
    torch = require("torch")
    fields = CASES[case]
    x = {k: torch.tensor(v, requires_grad=True) for k, v in arrays(fields).items()}
    out = torch_loss(torch, fields, x, torch.tensor(oracle.visible(N, M, M - N)))
    seed = np.random.default_rng(1).normal(size=(B, H, N, DV))
    (out * torch.tensor(seed)).sum().backward()
    names = tuple("grad_" + k for k in x)
    f = Attention(**fields, causal="bottom-right").lambdify("numpy", names)
    for name, got in zip(names, f(**arrays(fields), grad_out=seed), strict=True):
        want = x[name.removeprefix("grad_")].grad.numpy()
        np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-10, err_msg=name)


QUICK = ("talking both", "multi-token", "forgetting", "output gate", "differential with its norm")


@pytest.mark.parametrize("case", [c if c in QUICK else pytest.param(c, marks=pytest.mark.slow) for c in CASES])
def test_gradient_is_the_transpose_of_the_tangent_and_every_rewriting_is_proved(case):
    heads = {"heads": 2} if "head_mixing" in CASES[case] else {}
    program = Definition(**CASES[case], **heads, causal=True, lse=False).program()
    assert prove_duality(program)
    shown = present(program, adjoint(program))
    assert {s.status for s in shown.steps} <= {"proved for all sizes"}


def test_differential_has_two_row_sums():
    program = Definition(differential=True).program()
    shown = set(map(str, present(program, adjoint(program)).derived))
    assert {
        "dP2[i, j] = -lam*dPm[i, j]",
        "D[i] = sum over j of P2[i, j]*dP2[i, j]",
        "dS2[i, j] = (-D[i] + dP2[i, j])*P2[i, j]",
        "dS[i, j] = (-D2[i] + dP[i, j])*P[i, j]",
    } <= shown


def test_both_layouts_hold_the_queries_of_both_maps():
    fields = CASES["differential"]
    x = {**arrays(fields), "grad_out": np.random.default_rng(3).normal(size=(B, H, N, DV))}
    names = ("out", "grad_query2", "grad_key2")
    one = Attention(**fields).lambdify("numpy", names)(**x)
    four = {"query", "key", "value", "query2", "key2", "grad_out"}
    turned = {k: np.swapaxes(v, 1, 2) if k in four else v for k, v in x.items()}
    two = Attention(**fields).lambdify("numpy", names, layout="bshd")(**turned)
    for a, b in zip(one, two, strict=True):
        np.testing.assert_allclose(a, np.swapaxes(b, 1, 2), rtol=1e-13, atol=1e-13)


def test_projections_make_both_maps_and_the_gate():
    r = np.random.default_rng(0)
    x = {"x": r.normal(size=(1, 3, 4)), "w_q": r.normal(size=(4, 4)), "w_k": r.normal(size=(4, 4)), "w_v": r.normal(size=(4, 4))}
    x |= {"w_q2": r.normal(size=(2, 4, 2)), "w_k2": r.normal(size=(2, 4, 2)), "w_g": r.normal(size=(2, 4, 2))}
    x |= {f"lambda_{k}": r.normal(size=2) for k in ("q1", "k1", "q2", "k2")} | {"lambda_init": np.array(0.5)}
    att = Attention(start="x", heads=2, differential=True, output_gate=True)
    out = att.lambdify("numpy")(**x)

    def of(w: np.ndarray) -> np.ndarray:
        return np.einsum("bia,hac->bhic", x["x"], w if w.ndim == 3 else w.reshape(4, 2, 2).transpose(1, 0, 2))

    given = Attention(heads=2, differential=True, output_gate=True)
    names = {"query": "w_q", "key": "w_k", "value": "w_v", "query2": "w_q2", "key2": "w_k2", "gate": "w_g"}
    same = {k: of(x[w]) for k, w in names.items()} | {k: v for k, v in x.items() if k.startswith("lambda")}
    np.testing.assert_allclose(out, given.lambdify("numpy")(**same), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"forgetting": True}, "set causal"),
        ({"forgetting": True, "prefix": 2}, "prefix"),
        ({"differential": True, "sink": True}, "sink"),
        ({"differential": True, "algorithm": "flash"}, "differential"),
        ({"multi_token": (2,)}, "QUERIES,KEYS"),
        ({"multi_token": (0, 3)}, "at least 1"),
        ({"head_mixing": "values"}, "weights"),
        ({"head_norm_eps": "1/10"}, "set head_norm"),
    ],
)
def test_what_contradicts_is_refused(fields, message):
    with pytest.raises(DefinitionError, match=message):
        Definition(**fields)


def test_wrong_and_missing_arrays_are_refused_by_name():
    fields = CASES["multi-token"]
    f, x = Attention(**fields, causal=True).lambdify("numpy"), arrays(fields)
    with pytest.raises(ShapeError, match="score_kernel"):
        f(**{**x, "score_kernel": np.ones((H, 3, 3))})
    with pytest.raises(InputValueError, match="score_kernel"):
        f(**{k: v for k, v in x.items() if k != "score_kernel"})
    with pytest.raises(InputValueError, match="score_kernel"):
        f(**{**x, "score_kernel": np.full((H, 2, 3), np.nan)})
    with pytest.raises(DefinitionError, match="gate"):
        f(**x, gate=np.ones((B, H, N, DV)))


ROWS = ("off-by-one", "sigmoid-attention", "sparsemax", "entmax-1.5", "stick-breaking", "unnormalized", "differential")
ROWS += ("differential-heads", "talking-heads", "multi-token", "forgetting", "output-gate")


def test_the_rows_are_in_the_catalogue():
    assert set(ROWS) <= set(variants.names())
