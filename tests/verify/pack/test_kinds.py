"""The pack: what it contains, what follows from a definition, and that the documentation has a row for every kind."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from symattn.definition import Definition
from symattn.errors import DefinitionError, ShapeError, UnknownNameError
from symattn.verify.inputs import KINDS, Choice, cases_for
from symattn.verify.kernels.call import Call
from symattn.verify.pack.kinds import SHAPE

CAUSAL = Definition(causal="top-left")


def names(definition=CAUSAL, dtype="float32", **choice):
    return list(cases_for(definition, dtype, 0, Choice.of(**choice)))


def scores(fields, scale=None):
    q, k = (fields[n].astype(np.float64) for n in ("query", "key"))
    k = np.repeat(k, q.shape[1] // k.shape[1], axis=1)
    return q @ k.swapaxes(2, 3) * (scale or q.shape[3] ** -0.5)


def test_what_only_some_definitions_have():
    plain = set(names(Definition()))
    assert not plain & {"poison", "capped", "sinks", "small", "shape"}
    assert set(names(CAUSAL)) - plain == {"poison"}
    assert set(names(Definition(softcap=50))) - plain == {"capped"}
    assert set(names(Definition(sink=True))) - plain == {"sinks"}
    assert set(names(Definition(qk_norm="rms", qk_norm_eps="1/100000"))) - plain == {"small"}


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_scores_lie_where_the_kinds_say(dtype):
    found = {n: scores(f) for n, f in cases_for(Definition(), dtype, 0).items()}
    assert found["deep"].max() < -104 and found["under"].max() < -89 and found["over"].max() < -89
    assert found["abyss"].max() < -5e4 and found["peak"].min() > 5e4
    assert np.abs(found["flat-512"]).max() == 0 and found["flat-512"].shape[3] == 512 and found["flat-4096"].shape[3] == 4096
    peak = cases_for(Definition(), dtype, 0)["peak"]
    assert scores(peak, scale=1.0).max() > 65504


@pytest.mark.parametrize("cap", [2, 50])
def test_a_cap_is_reached_from_both_sides(cap):
    fields = cases_for(Definition(softcap=cap), "float32", 0)["capped"]
    reached = cap * np.tanh(scores(fields) / cap)
    assert reached.max() > 0.9 * cap and (reached.max(axis=3) < -0.9 * cap).any()


def test_sinks_lie_below_near_and_above_the_scores():
    fields = cases_for(Definition(sink=True), "float64", 0)["sinks"]
    level = np.log(np.exp(scores(fields)).sum(-1))
    gap = fields["sinks"][None, :, None] - level
    assert (gap < -3).any() and (np.abs(gap) < 3).any() and (gap > 100).any()


def test_one_hot_values_give_the_weights_themselves():
    fields = cases_for(Definition(), "float64", 0)["one-hot"]
    e = np.exp(scores(fields))
    from symattn.verify.kernels.ours import Naive

    out = Naive().forward(Call(Definition(), fields))["out"]
    assert np.allclose(out, e / e.sum(-1, keepdims=True), atol=1e-12)


def test_choices():
    assert names(only="tall,decode") == ["tall", "decode"]
    assert "tall" not in names(skip=["tall"])
    assert names(only="shape", shape="1,2,1,3,5,4") == ["shape"]
    assert names(shape="1,2,1,3,5,4")[-1] == "shape" and len(names(shape="1,2,1,3,5,4")) == len(names()) + 1
    sizes = [Call(CAUSAL, f).shape for f in cases_for(CAUSAL, "float32", 0, Choice.of(max_len=16)).values()]
    assert all(max(s["N"], s["M"]) <= 16 for s in sizes)
    assert names(only="shape", shape="1,2,1,3,5,4", require="d == 4") == ["shape"]
    square = cases_for(CAUSAL, "float32", 0, Choice.of(require="n == m, d % 8 == 0")).values()
    assert all(f["query"].shape[2] == f["key"].shape[2] and f["query"].shape[3] % 8 == 0 for f in square)


@pytest.mark.parametrize(
    "choice, error, text",
    [
        ({"only": "tll"}, UnknownNameError, "only: there is no kind of input 'tll'. Did you mean 'tall'"),
        ({"skip": "nothing"}, UnknownNameError, "skip"),
        ({"only": "shape"}, DefinitionError, "--shape"),
        ({"only": "tall", "skip": "tall"}, DefinitionError, "no input is left"),
        ({"only": "sinks"}, DefinitionError, "no input is left"),
        ({"max_len": 0}, DefinitionError, "from 1 on"),
        ({"shape": "1,2"}, ShapeError, "six or seven"),
        (
            {"shape": "1,1,1,3,3,1", "require": "d == 2 and d == 3", "only": "shape"},
            ShapeError,
            "1,1,1,3,3,1 does not fulfil .*'d == 2 a",
        ),
        ({"shape": "1,4,2,3,3,8", "require": "d % 8 == 0, h == hkv"}, ShapeError, "1,4,2,3,3,8 does not fulfil"),
    ],
)
def test_choices_that_make_no_sense(choice, error, text):
    with pytest.raises(error, match=text):
        names(**choice)


def test_heads_of_the_definition_stay():
    with pytest.raises(ShapeError, match="heads=4"):
        names(Definition(heads=4, kv_heads=2), require="h == 3")


def test_every_kind_is_documented():
    page = Path(__file__).parents[3].joinpath("docs", "verify.md").read_text(encoding="utf-8")
    for kind in (*KINDS, SHAPE):
        assert f"| `{kind.name}` | {kind.about} | {kind.shows} |" in page
