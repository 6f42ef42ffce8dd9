"""`symattn verify` as a user types it: documents, exit codes, replay, bad input."""

from __future__ import annotations

import json
import shlex

import numpy as np
import pytest
from typer.testing import CliRunner

from symattn.verify.guard import Guard, Hidden
from symattn_cli.app import app

SHAPE = ["--shape", "1,4,2,3,5,6"]

KERNELS = """
import numpy as np

def correct(query, key, value, is_causal=False, causal_alignment="top-left", enable_gqa=False):
    key, value = (np.repeat(x, query.shape[1] // x.shape[1], axis=1) for x in (key, value))
    s = query @ key.swapaxes(-1, -2) * query.dtype.type(query.shape[-1] ** -0.5)
    n, m = s.shape[-2:]
    if is_causal:
        s = np.where(np.tri(n, m, m - n if causal_alignment == "bottom-right" else 0, dtype=bool), s, -np.inf)
    top = s.max(-1, keepdims=True)
    e = np.exp(s - np.where(np.isinf(top), 0, top))
    total = e.sum(-1, keepdims=True)
    return (e / np.where(total == 0, 1, total)) @ value

def top_left(query, key, value, causal_alignment=None, **options):
    return correct(query, key, value, **options)

def backward(query, key, value, grad_out, **options):
    return query, key, value

def raises(query, key, value, **options):
    raise RuntimeError("no such device")

def wrong_shape(query, key, value, **options):
    return query.swapaxes(1, 2)

def wrong_dtype(query, key, value, **options):
    return query.astype(np.float64)

def leaves(query, key, value, **options):
    raise SystemExit(0)

def vanishes(query, key, value, **options):
    raise GeneratorExit

def takes_slope(query, key, value, slope, **options):
    return value
"""


@pytest.fixture
def run(tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text(KERNELS)
    (tmp_path / "leaves.py").write_text("import sys\nsys.exit(0)\n")
    monkeypatch.chdir(tmp_path)

    def invoke(*words):
        return CliRunner().invoke(app, ["verify", *words])

    return invoke


@pytest.fixture
def undiagnosed(monkeypatch):
    """Recorded tensors that fail are not diagnosed: what is asked of them is the verdict and the exit code."""
    monkeypatch.setattr("symattn.verify.recorded.diagnose", lambda *args, **options: ())
    monkeypatch.setattr("symattn.verify.recorded.with_preset", lambda seen, found: found)


def test_pass_and_fail(run):
    few = ("--causal", "bottom-right", "--only", "normal,tall", "--no-guard")
    good = run("mine.py:correct", *few)
    assert (good.exit_code, "verdict: pass" in good.stdout) == (0, True), good.output
    bad = run("mine.py:top_left", *few)
    assert (bad.exit_code, "verdict: fail" in bad.stdout) == (1, True)
    assert "O[" in bad.stdout and "exact" in bad.stdout


def test_the_document_and_its_replay_line(run):
    words = (
        "mine.py:top_left",
        "--causal",
        "bottom-right",
        "--seed",
        "3",
        "--format",
        "json",
        *SHAPE,
        "--only",
        "shape",
        "--no-guard",
    )
    first = run(*words, "--softcap", "2")
    assert first.exit_code == 1 and first.exception is not None  # softcap is no option of that kernel
    first = run(*words, "--dtype", "float64")
    doc = json.loads(first.stdout)
    assert (first.exit_code, doc["verdict"], doc["kernel"]) == (1, "fail", "mine.py:top_left")
    words = shlex.split(doc["replay"])
    assert words[:2] == ["symattn", "verify"]
    again = run(*words[2:], "--format", "json")
    assert json.loads(again.stdout) == doc and again.exit_code == first.exit_code


@pytest.mark.parametrize(
    "words",
    [
        [
            "numpy:naive",
            "--score",
            "t*s - slope*(i - j)",
            "--mask",
            "j <= i + m - n",
            "--param",
            "slope=2^-3",
            "--param",
            "t=3",
            "--backward",
        ],
        ["numpy:flash", "--variant", "sliding-window", "--dtype", "bfloat16", "--backward", "--layout", "bhsd"],
        ["numpy:flash", "--alibi", "--sink", "--causal", "bottom-right", "--window", "3,0", "--window-counts", "distance"],
        ["numpy:flash", "--convention", "jax", "--causal", "true", "--lse-base", "2", "--scale", "1/d"],
        ["numpy:flash", "--set", "attn_mask=boolean", "--set", "mask_polarity=drop", "--empty-row", "nan", "--grouping", "tiled"],
        ["numpy:naive", "--dtype", "f16", "--arithmetic", "numpy-fp16"],
        ["numpy:flash", "--dtype", "e4m3"],
    ],
    ids=lambda w: " ".join(w)[:40],
)
def test_flags_and_the_replay_of_each(run, words):
    first = run(*words, "--format", "json", *SHAPE, "--only", "shape,decode", "--no-guard")
    doc = json.loads(first.stdout)
    assert (first.exit_code, doc["verdict"]) == (0, "pass"), first.output
    assert json.loads(run(*shlex.split(doc["replay"])[2:], "--format", "json").stdout) == doc


def test_list(run):
    result = run("--list")
    assert result.exit_code == 0
    for name in (
        "numpy:naive",
        "numpy:flash",
        "torch:sdpa",
        "onnxruntime:attention",
        "onnx:reference",
        "jax:dot_product_attention",
    ):
        assert name in result.stdout
    assert "runs here" in result.stdout


def test_no_kernel_judges_all_on_the_definition_that_the_flags_say(run, require):
    require("onnx")
    result = run("--softcap", "2", "--dtype", "float32", "--format", "json", "--only", "shape", "--shape", "1,2,1,2,3,4")
    doc = json.loads(result.stdout)
    assert (result.exit_code, doc["verdict"], doc["kernel"]) == (0, "pass", None), result.output
    assert {c["kernel"] for c in doc["cases"]} >= {"numpy:naive", "numpy:flash", "onnx:reference"}
    assert all("softcap" in c["definition"] and c["definition"]["softcap"].startswith("2") for c in doc["cases"])


def test_strict_counts_a_leak_of_masked_nan(run):
    few = ("mine.py:correct", "--causal", "top-left", "--only", "normal,poison", "--no-guard")
    loose, strict = run(*few), run(*few, "--strict")
    assert (loose.exit_code, strict.exit_code) == (0, 1)
    assert "suspect" in loose.stdout and "--strict" in shlex.split(strict.stdout.splitlines()[-1])


FEW = ["--only", "normal,decode"]

USAGE = {
    "unknown kernel": (["numpy:flahs"], 2, "no module|Did you mean"),
    "unknown bare kernel": (["flash"], 2, "numpy:flash"),
    "no such file": (["nosuch.py:f"], 2, "does not exist"),
    "no such function": (["mine.py:corect"], 2, "Did you mean 'correct'"),
    "unknown variant": (["numpy:flash", "--variant", "casual"], 2, "Did you mean 'causal'"),
    "unknown field": (["numpy:flash", "--set", "sotfcap=2"], 2, "Did you mean 'softcap'"),
    "unknown value": (["numpy:flash", "--causal", "left"], 2, "top-left"),
    "unknown dtype": (["numpy:flash", "--dtype", "bf61"], 2, "bf16"),
    "unknown format": (["numpy:flash", "--format", "xml"], 2, "json"),
    "unknown layout": (["numpy:flash", "--layout", "hbsd"], 2, "bshd"),
    "unknown arithmetic": (["numpy:flash", "--arithmetic", "falsh-bf16"], 2, "flash-bf16"),
    "unknown option": (["numpy:flash", "--causl", "top-left"], 2, "causal"),
    "code as a score": (["numpy:naive", "--score", "__import__('os').system('touch owned')"], 2, "score"),
    "code as a mask": (["numpy:naive", "--mask", "().__class__"], 2, "mask"),
    "code as a scale": (["numpy:naive", "--scale", "exec('1')"], 2, "scale|column"),
    "bad shape": (["numpy:flash", "--shape", "1,2,3"], 2, "six or seven"),
    "heads that do not divide": (["numpy:flash", "--shape", "1,4,3,2,2,2"], 2, "divide"),
    "an empty axis": (["numpy:flash", "--shape", "1,2,2,0,2,2"], 2, "from 1 on"),
    "heads against the definition": (["numpy:flash", "--set", "heads=3", "--shape", "1,4,2,2,2,2"], 2, "heads=3"),
    "nearest of numpy": (["numpy:flsh"], 2, "Did you mean 'numpy:flash'?"),
    "nearest of torch": (["torch:spda"], 2, "Did you mean 'torch:sdpa'"),
    "ends at import": (["leaves.py:f"], 2, "SystemExit: 0"),
    "module ends at import": (["leaves:f"], 2, "SystemExit: 0"),
    "parameter without a value": (["numpy:naive", "--score", "slope*s"], 2, "--param slope="),
    "parameter by keyword": (["mine.py:takes_slope", "--score", "slope*s", *SHAPE], 2, "--param slope="),
    "parameter, all kernels": (["--softcap", "cap"], 2, "--param cap="),
    "arithmetic of other inputs": (["numpy:flash", "--dtype", "bfloat16", "--arithmetic", "flash-fp32"], 2, "float32 inputs"),
    "arithmetic of other inputs, all kernels": (["--dtype", "bfloat16", "--arithmetic", "flash-fp32"], 2, "float32 inputs"),
    "a number too large": (["numpy:naive", "--score", "1e200*s"], 2, "too large"),
    "layout of a built-in kernel": (["numpy:flash", "--layout", "bshd"], 2, "layout"),
    "layout of all kernels": (["--layout", "bshd"], 2, "KERNEL of your own"),
    "negative seed": (["numpy:flash", "--seed", "-1"], 2, "seed"),
    "recorded and a kernel": (["numpy:flash", "--recorded", "x.npz"], 2, "instead of a kernel"),
    "backward of nothing": (["--backward-kernel", "mine.py:backward"], 2, "KERNEL"),
    "no backward": (["mine.py:correct", "--backward"], 2, "no backward"),
    "not computed": (["numpy:flash", "--score", "s + 1"], 2, "does not compute"),
    "empty row": (
        ["numpy:flash", "--causal", "bottom-right", "--empty-row", "error", "--only", "shape", "--shape", "1,2,2,5,2,3"],
        2,
        "no key",
    ),
    "raises": (["mine.py:raises", *FEW], 1, "no such device"),
    "wrong shape": (["mine.py:wrong_shape", *FEW], 1, "shape"),
    "wrong dtype": (["mine.py:wrong_dtype", *FEW], 1, "float64"),
    "an option it does not take": (
        ["mine.py:correct", "--softcap", "3", *FEW],
        1,
        "the definition uses softcap, and mine.py:correct takes no keyword softcap"
    ),
    "calls sys.exit": (["mine.py:leaves", *FEW], 1, "mine.py:leaves raised SystemExit: 0"),
    "raises what is no Exception": (["mine.py:vanishes", *FEW], 1, "mine.py:vanishes raised GeneratorExit"),
    "no such recorded file": (["--recorded", "nosuch.npz"], 4, "no such file"),
    "recorded of no kind": (["--recorded", "mine.py"], 4, "safetensors"),
}  # fmt: skip


@pytest.mark.parametrize("name", USAGE)
def test_bad_input(run, name, tmp_path):
    words, code, text = USAGE[name]
    result = run(*words)
    said = result.stderr.replace("\n", " ").replace("│", "")
    assert result.exit_code == code, result.output
    assert any(part in " ".join(said.split()) for part in text.split("|")), said
    assert "Traceback" not in result.output and "internal" not in result.output and not result.stdout
    assert result.stderr.rstrip("\n") == result.stderr.rstrip()
    assert not (tmp_path / "owned").exists()


@pytest.mark.parametrize("name", [name for name, (_, code, _) in USAGE.items() if code == 1])
def test_a_run_that_ends_in_an_error_is_one_json_document_too(run, name):
    words, code, text = USAGE[name]
    result = run(*words, "--causal", "top-left", "--format", "json")
    doc = json.loads(result.stdout)
    assert (result.exit_code, doc["verdict"], doc["kernel"]) == (code, "fail", words[0])
    assert text in doc["error"] or name == "an option it does not take"
    assert result.stderr == f"error: {doc['error']}\n" and doc["definition"]["causal"].startswith("top-left")
    assert set(doc) >= {"definition", "arithmetic", "cases", "diagnosis", "warnings", "replay"}
    again = run(*shlex.split(doc["replay"])[2:], "--format", "json")
    assert json.loads(again.stdout) == doc


def test_an_internal_error_is_a_json_document_too(run, monkeypatch):
    monkeypatch.setattr("symattn.verify.judge.verify", lambda *a, **k: 1 / 0)
    result = run("numpy:flash", "--format", "json")
    assert (result.exit_code, json.loads(result.stdout)["verdict"]) == (70, "error")
    assert not run("numpy:flash").stdout


def tensors(**changes):
    r = np.random.default_rng(0)
    q, k, v = r.normal(size=(1, 2, 3, 4)), r.normal(size=(1, 2, 5, 4)), r.normal(size=(1, 2, 5, 4))
    s = q @ k.swapaxes(-1, -2) / 2
    p = np.exp(s - s.max(-1, keepdims=True))
    found = {"query": q, "key": k, "value": v, "out": p / p.sum(-1, keepdims=True) @ v, **changes}
    return {n: a for n, a in found.items() if a is not None}


def test_recorded_files(run, undiagnosed):
    np.savez("good.npz", **tensors())
    np.savez("bad.npz", **tensors(out=tensors()["out"] * (1 + 1e-12)))
    for name, code in (("good.npz", 0), ("bad.npz", 1)):
        result = run("--recorded", name, "--format", "json", "--no-guard")
        doc = json.loads(result.stdout)
        assert (result.exit_code, doc["cases"][0]["shape"]["M"]) == (code, 5)
        assert json.loads(run(*shlex.split(doc["replay"])[2:], "--format", "json", "--no-guard").stdout) == doc


def test_what_a_file_holds_is_part_of_the_definition(run, undiagnosed):
    """A sink and a mask in the file, and no flag: the judgement is that of the definition that has them."""
    r = np.random.default_rng(1)
    keep, sinks = r.random((3, 5)) < 0.6, r.normal(size=2)
    f = tensors()
    s = np.where(keep, f["query"] @ f["key"].swapaxes(-1, -2) / 2, -np.inf)
    e = np.exp(s)
    out = e / (e.sum(-1, keepdims=True) + np.exp(sinks)[:, None, None]) @ f["value"]
    np.savez("file.npz", **{**f, "out": out, "sinks": sinks, "attn_mask": keep})
    result = run("--recorded", "file.npz", "--format", "json", "--no-guard")
    doc = json.loads(result.stdout)
    assert (result.exit_code, doc["verdict"]) == (0, "pass") and doc["definition"]["attn_mask"].startswith("boolean")
    np.savez("file.npz", **{**f, "sinks": sinks, "attn_mask": keep})
    assert run("--recorded", "file.npz", "--no-guard").exit_code == 1


def nan(x):
    x = x.copy()
    x[0, 0, 1, 2] = np.nan
    return x


RECORDED = {
    "nan that is read": (lambda: tensors(key=nan(tensors()["key"])), [], 4, "only what is masked"),
    "infinity that is read": (lambda: tensors(query=tensors()["query"] * np.inf), [], 4, "infinite"),
    "no output": (lambda: tensors(out=None), [], 4, "lacks out"),
    "heads": (lambda: tensors(key=np.ones((1, 3, 5, 4)), value=np.ones((1, 3, 5, 4))), [], 4, "heads"),
    "widths": (lambda: tensors(key=np.ones((1, 2, 5, 3))), [], 4, "dimensions"),
    "an empty axis": (lambda: tensors(query=np.ones((1, 2, 0, 4)), out=np.ones((1, 2, 0, 4))), [], 4, "empty"),
    "dtypes": (lambda: tensors(key=tensors()["key"].astype(np.float32)), [], 4, "dtypes differ"),
    "complex": (lambda: tensors(key=tensors()["key"] * 1j), [], 4, "complex"),
    "a mask that is not there": (lambda: tensors(), ["--set", "attn_mask=boolean"], 4, "missing: attn_mask"),
    "a mask against the definition": (
        lambda: tensors(attn_mask=np.ones((3, 5), bool)),
        ["--set", "attn_mask=additive"],
        4,
        "attn_mask has dtype bool",
    ),
    "made inputs: shape": (lambda: tensors(), ["--shape", "1,2,2,3,5,4"], 2, "a recorded file has its own"),
    "made inputs: dtype": (lambda: tensors(), ["--dtype", "float64"], 2, "a recorded file has its own"),
    "made inputs: seed": (lambda: tensors(), ["--seed", "0"], 2, "a recorded file has its own"),
    "a parameter that is not there": (lambda: tensors(), ["--score", "slope*s"], 2, "parameter slope"),
    "objects": (lambda: tensors(extra=np.array([None])), [], 4, "pickled"),
}


@pytest.mark.parametrize("name", RECORDED)
def test_bad_recorded_files(run, name):
    make, words, code, text = RECORDED[name]
    np.savez("file.npz", **make())
    result = run("--recorded", "file.npz", *words)
    assert result.exit_code == code, result.output
    assert text in " ".join(result.stderr.replace("│", "").split()) and not result.stdout


def test_a_truncated_file(run, tmp_path):
    np.savez("file.npz", **tensors())
    (tmp_path / "file.npz").write_bytes((tmp_path / "file.npz").read_bytes()[:500])
    result = run("--recorded", "file.npz")
    assert result.exit_code == 4 and "truncated" in result.stderr


def test_masked_nan_in_a_file_is_allowed_and_must_not_leak(run, undiagnosed):
    mask = np.array([[True, True, True, True, False]] * 3)
    key, value = tensors()["key"], tensors()["value"]
    s = tensors()["query"] @ key[:, :, :4].swapaxes(-1, -2) / 2
    p = np.exp(s - s.max(-1, keepdims=True))
    out = p / p.sum(-1, keepdims=True) @ value[:, :, :4]
    key[:, :, 4], value[:, :, 4] = np.nan, np.inf
    for given, code in ((out, 0), (out * np.nan, 1)):
        np.savez("file.npz", **tensors(key=key, value=value, out=given, attn_mask=mask))
        assert run("--recorded", "file.npz", "--set", "attn_mask=boolean", "--no-guard").exit_code == code


def test_strict_says_why_it_fails_and_no_guard_leaves_that_out(run, monkeypatch):
    blind = Guard(("F1", "F2"), (Hidden("F2", "a fault", "", 0.0),))
    monkeypatch.setattr("symattn.verify.judge.strength", lambda *args, **options: lambda: blind)
    small = ["numpy:flash", "--only", "shape", "--shape", "1,1,1,2,2,2", "--strict"]
    found = run(*small)
    assert found.exit_code == 1 and "pass, but --strict: 1 known fault could not show on these inputs" in found.stdout
    left_out = run(*small, "--no-guard")
    assert left_out.exit_code == 0 and "was not asked (--no-guard)" in left_out.stdout and "tells apart" not in left_out.stdout


def test_what_was_saved_is_no_report_to_replay(run, tmp_path):
    np.savez(tmp_path / "s1.npz", query=np.zeros(1))
    found = run("--replay", "s1.npz")
    assert found.exit_code != 0
    said = str(found.exception) + found.output
    assert "holds tensors, as --save writes them" in said and "--inputs" in said


def test_verbose_shows_every_input_that_passes_and_goes_with_a_replay(run):
    words = ("numpy:flash", "--only", "normal,decode", "--no-guard")
    brief, whole = run(*words), run(*words, "--verbose")
    assert "normal  pass" in brief.stdout and "  tensor  verdict" not in brief.stdout
    assert whole.stdout.count("  tensor  verdict") == 2 and "--verbose" not in whole.stdout.splitlines()[-1]
    run(*words, "--format", "json", "-o", "brief.json")
    assert run("--replay", "brief.json", "--verbose").stdout.count("  tensor  verdict") == 2
