"""The probe finds what was planted: casts, accumulators, buffers, tiles, scales, exponentials; and makes a table of it."""

from __future__ import annotations

import tomllib

import numpy as np
import pytest

from symattn.arithmetic import declaration
from symattn.verify.kernels import probe
from symattn.verify.kernels.registry import BUILT_IN
from symattn.verify.kernels.user import FunctionKernel

HALF = np.float16


def kernel(**plant):
    """A kernel of float16 in float64 inside, with one property planted."""

    def attention(query, key, value, *, scale=None):
        q, k, v = (x.astype(np.float64) for x in (query, key, value))
        s = 1 / np.sqrt(q.shape[3]) if scale is None else scale
        if plant.get("scaled") == 1:
            q, s = (q * s).astype(HALF).astype(np.float64), 1
        elif plant.get("scaled") == 2:
            q, k, s = *((x * np.sqrt(s)).astype(HALF).astype(np.float64) for x in (q, k)), 1
        scores = np.zeros((*q.shape[:3], k.shape[2]), plant.get("sum", np.float64))
        for c in range(q.shape[3]):
            scores = (scores + (q[..., c][..., None] * k[..., c][:, :, None, :]).astype(scores.dtype)).astype(scores.dtype)
        scores = scores.astype(np.float64) * s
        if plant.get("store"):
            scores = scores.astype(HALF).astype(np.float64)
        tile, top = plant.get("tile", scores.shape[3]), np.full(scores.shape[:3], -np.inf)
        total, out = np.zeros(scores.shape[:3]), np.zeros((*scores.shape[:3], v.shape[3]))
        for at in range(0, scores.shape[3], tile):
            part = scores[..., at : at + tile]
            new = np.maximum(top, part.max(-1))
            e = np.exp(part - new[..., None]) * (1 + plant.get("exp", 0))
            old = np.exp(top - new)
            total, top = total * old + e.sum(-1), new
            cast = e.astype(HALF).astype(np.float64) if plant.get("cast") == "before" else e
            out = out * old[..., None] + cast @ v[:, :, at : at + tile]
        out = out / total[..., None]
        if plant.get("cast") == "after":
            p = (np.exp(scores - top[..., None]) / total[..., None]).astype(HALF).astype(np.float64)
            out = p @ v
        return out.astype(query.dtype), (np.log(total) + top).astype(np.float32)

    return FunctionKernel(attention, "planted")


def found(**plant):
    return {line.field: line for line in probe.lines(kernel(**plant), "float16")}


def test_a_kernel_without_roundings():
    by = found()
    assert by["exp_error"].value is None and by["probability"].value == "float32" and by["store"].value == "float32"
    assert by["tile"].value is None and by["scale_before"].value == 0 and "no backward" in by["dq_accumulate"].remark


@pytest.mark.parametrize("tile", [48, 512])
def test_a_cast_before_the_division_and_its_tile(tile):
    by = found(cast="before", tile=tile)
    assert (by["probability"].value, by["tile"].value) == ("float16", tile)
    assert "before they are divided" in by["probability"].remark


@pytest.mark.parametrize(("plant", "field", "value"), [
    ({"cast": "after"}, "probability", "float16"),
    ({"store": True}, "store", "float16"),
    ({"scaled": 1}, "scale_before", 1),
    ({"scaled": 2}, "scale_before", 2),
    ({"sum": np.float32}, "accumulate", "float32"),
    ({"sum": np.float16}, "accumulate", "float16"),
    ({"exp": 1e-4}, "exp_error", 1.1e-4),
])  # fmt: skip
def test_what_is_planted_is_found(plant, field, value):
    line = found(**plant)[field]
    assert line.value == pytest.approx(value, rel=0.05) if isinstance(value, float) else line.value == value, line


def test_the_table_is_one_that_an_arithmetic_is_read_from():
    text = probe.table(kernel(cast="before", tile=64, exp=2e-5), "float16")
    a = declaration(tomllib.loads(text))
    assert (a.tile, a.probability, a.algorithm) == (64, "float16", "flash") and 2e-5 < a.exp_error < 2.5e-5


def test_the_command_line(capsys):
    assert probe.main(["numpy:flash", "--dtype", "float64"]) == 0
    assert tomllib.loads(capsys.readouterr().out)["preset"] == "flash-fp64"
    assert probe.main(["numpy:flush"]) == 2 and "numpy:flash" in capsys.readouterr().err
    assert probe.main(["numpy:flash", "--dtype", "float8_e4m3fn"]) == 2


@pytest.mark.slow
def test_torch_flash_is_as_declared(require):
    require("torch")
    by = {line.field: line.value for line in probe.lines(BUILT_IN["torch:sdpa-flash"], "bfloat16")}
    assert by["tile"] == 512 and by["dq_accumulate"] == by["dkv_accumulate"] == by["probability"] == "bfloat16"
    assert by["scale_before"] == 0 and by["accumulate"] == "float32" and 5e-5 < by["exp_error"] < 1.3e-4
