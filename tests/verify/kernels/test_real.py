"""Real kernels pass under their declared arithmetic, and fail when the definition says something else than they compute."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from symattn.definition import Definition
from symattn.errors import DefinitionError
from symattn.verify.inputs import KINDS, Shape, fields_for
from symattn.verify.judge import run_case, verify
from symattn.verify.kernels.call import Call
from symattn.verify.kernels.registry import BUILT_IN, resolve
from symattn.verify.reference import Reference
from symattn.verify.report import Report
from symattn.verify.suite import ROWS, runs, verify_all

NEEDS = {k.name: k.packages[-1] for k in BUILT_IN.values() if k.packages}
KERNELS = ("numpy:naive", "numpy:flash", *NEEDS)
BY_NAME = {k.name: k for k in KINDS}
JAX = "jax:dot_product_attention"


def judged(require, name, d, kind="normal", dtype="float32", **changes):
    if name in NEEDS:
        require(NEEDS[name])
    kernel = resolve(name)
    shape = BY_NAME[kind].shape
    shape = shape if kernel.grouped else replace(shape, hkv=shape.h)
    ref = Reference(d, fields_for(d, shape, dtype, 0, BY_NAME[kind]) | changes)
    return kernel.unsupported(ref.call) or run_case(kernel, ref, kind, backward=kernel.has_backward(ref.call))


# a kernel that is compiled for every shape, seconds each, runs one row here; the slow test below runs the others
PAIRS = [(name, row) for name in KERNELS for row in ROWS if runs(BUILT_IN[name], row) and (name != JAX or row.name == "causal")]


@pytest.mark.parametrize("name, row", PAIRS, ids=lambda x: x if isinstance(x, str) else x.name)
def test_the_default_set(require, name, row):
    """Each row in its first dtype; the whole set is the slow test below."""
    case = judged(require, name, row.definition, row.kind, row.dtypes[0])
    if isinstance(case, str):
        assert name not in ("numpy:naive", "numpy:flash")
        return
    assert case.verdict == "pass", [(t.name, t.comparison.worst) for t in case.tensors if t.verdict != "pass"]
    assert any(t.name.startswith("grad_") for t in case.tensors) or name.startswith("onnx")


@pytest.mark.parametrize("name", NEEDS)
def test_a_kernel_that_computes_something_else_fails(require, name):
    """The kernel is run on another definition than the one that it is judged by: scale (or window), and no mask."""
    if name in NEEDS:
        require(NEEDS[name])
    kernel = resolve(name)
    d = Definition(causal="top-left")
    fields = fields_for(d, Shape.parse("2,4,2,3,5,6" if kernel.grouped else "2,4,4,5,5,6"), "float32", 0)

    class Other(type(kernel)):
        def forward(self, call):
            return super().forward(Call(wrong, call.fields))

    scaled = Definition(causal="top-left", **({"window": (2, 0)} if "mha" in name else {"scale": "1/2"}))
    for wrong in (Definition(), scaled):
        other = object.__new__(Other)
        other.__dict__.update(kernel.__dict__)
        ref = Reference(d, fields)
        assert run_case(other, ref, "normal", backward=False).verdict == "fail"
        assert run_case(kernel, ref, "normal", backward=False).verdict == "pass"


def test_torch_flash_gives_lse_0_for_a_row_without_keys(require):
    case = judged(require, "torch:sdpa-flash", Definition(causal="bottom-right"), "tall")
    lse = next(t for t in case.tensors if t.name == "lse")
    assert case.verdict == "pass" and case.deviates and lse.verdict == "fail" and "-inf" in (lse.known or "")
    report = Report("torch:sdpa-flash", {}, {}, (case,), "")
    assert (report.exit_code(), report.exit_code(strict=True)) == (0, 1)


def test_torch_leaks_a_masked_nan_which_is_known(require):
    require("torch")
    report = verify("torch:sdpa", Definition(causal="top-left"), only="poison")
    (case,) = (c for c in report.cases if c.case == "poison")
    assert report.verdict == "pass" and case.deviates and report.exit_code(strict=True) == 1


@pytest.mark.parametrize("name", ["torch:sdpa", "torch:sdpa-math", "torch:sdpa-flash", "onnx:reference", "onnxruntime:attention"])
@pytest.mark.parametrize("fields", [{"causal": "top-left"}, {"attn_mask": "boolean"}, {"window": (1, 0), "causal": "top-left"}])
def test_what_the_ledger_says_of_leaks_covers_nan_and_nothing_else(require, name, fields):
    d = Definition(**fields)
    case = judged(require, name, d, "poison")
    assert case.verdict == "pass" and case.deviates

    class Wrong(type(BUILT_IN[name])):
        def forward(self, call):
            found = super().forward(call)
            found["out"][0, 0, 0, 0] = 1e3
            return found

    other = object.__new__(Wrong)
    other.__dict__.update(BUILT_IN[name].__dict__)
    ref = Reference(d, fields_for(d, BY_NAME["poison"].shape, "float32", 0, BY_NAME["poison"]))
    assert run_case(other, ref, "poison", backward=False).verdict == "fail"


def test_jax_averages_all_values_for_a_row_without_keys(require):
    mask = np.ones((2, 1, 5, 7), bool)
    mask[:, :, 1] = False
    small = {"attn_mask": mask}
    d = Definition(attn_mask="boolean", empty_row="uniform", lse=False)
    assert judged(require, "jax:dot_product_attention", d, **small).verdict == "pass"
    assert "empty_row" in judged(require, "jax:dot_product_attention", Definition(attn_mask="boolean"), **small)


@pytest.mark.parametrize("name", ["torch:sdpa", "torch:sdpa-flash", "onnx:reference", "onnxruntime:attention"])
@pytest.mark.parametrize("fields", [{"sink": True}, {"alibi": True}, {"score": "s + 1"}, {"grouping": "tiled"}])
def test_what_a_kernel_does_not_compute_is_a_usage_error(require, name, fields):
    require(NEEDS[name])
    with pytest.raises(DefinitionError, match="does not compute this definition"):
        verify(name, Definition(**fields), shape="2,4,2,3,5,6", only="shape")


def test_inputs_survive_every_kernel(require):
    d = Definition(attn_mask="additive")
    for name in KERNELS:
        if name in NEEDS:
            require(NEEDS[name])
        fields = fields_for(d, Shape.parse("1,2,2,2,3,4"), "float32", 0)
        kept = {k: a.tobytes() for k, a in fields.items()}
        call = Call(d, fields)
        if BUILT_IN[name].unsupported(call) is None:
            BUILT_IN[name].forward(call)
        assert kept == {k: a.tobytes() for k, a in fields.items()}


def test_the_default_set_of_one_kernel():
    lines = []
    report = verify_all(kernels=[BUILT_IN["numpy:flash"]], progress=lines.append)
    assert report.verdict == "pass" and report.exit_code(strict=True) == 0
    assert len(lines) == len(report.cases) == sum(len(r.dtypes) for r in ROWS if not r.equal_heads)
    assert "numpy:flash" in report.to_text() and report.kernel is None


def test_one_definition_on_all_kernels():
    lines = []
    report = verify_all(Definition(softcap=2, sink=True), dtype="bfloat16", shape="1,2,1,2,3,4", only="shape",
                        progress=lines.append, kernels=[BUILT_IN["numpy:flash"], BUILT_IN["onnx:reference"]])  # fmt: skip
    assert {c.kernel for c in report.cases} == {"numpy:flash"} and {c.dtype for c in report.cases} == {"bfloat16"}
    assert any("onnx:reference" in s for s in report.skipped)


@pytest.mark.slow
def test_the_whole_default_set(require):
    for package in NEEDS.values():
        require(package)
    report = verify_all()
    assert report.verdict == "pass" and report.exit_code() == 0
    assert {c.kernel for c in report.cases} == set(KERNELS)
