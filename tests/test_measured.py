"""The measured declarations hold on the installed kernels, and the narrower ones that their remarks name do not."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from symattn import arithmetic, measured
from symattn.adjoint import adjoint
from symattn.definition import Definition
from symattn.presentation import present
from symattn.readings import rounding
from symattn.verify.inputs import KINDS, fields_for
from symattn.verify.judge import run_case
from symattn.verify.kernels.registry import BUILT_IN
from symattn.verify.lists import kernel_program, staged
from symattn.verify.reference import Reference
from tests.readings import simulated as sim

SAVED = ("O", "L")


@cache
def parts():
    p = Definition(heads=2).program()
    return p, present(p, adjoint(p))


def torch_flash_run(torch, law, io, n, m):
    q, k, v, do = sim.inputs(law, io, seed=n, n=n, m=m, d=32)
    kind = getattr(torch, io)
    tensors = [torch.tensor(x.astype(np.float64))[None].to(kind) for x in (q, k, v, do)]
    out, lse = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(*tensors[:3], 0.0, False)[:2]
    run = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward
    grads = run(tensors[3], *tensors[:3], out, lse, 0.0, False)
    found = {name: x[0].double().numpy() for name, x in zip(("O", "L", "dQ", "dK", "dV"), (out, lse, *grads), strict=True)}
    return {"Q": q, "K": k, "V": v, "dO": do, "dL": np.zeros(q.shape[:2])}, found


def shares(given, found, declared):
    """The greatest share of the bound of each tensor, the gradients staged."""
    whole = kernel_program(*parts(), declared)
    box = rounding.evaluate(whole, given, declared)
    rest = rounding.evaluate(staged(whole, SAVED), {**given, **{x: found[x] for x in SAVED}}, declared)
    used = {x: box[x] if x in SAVED else rest[x] for x in found}
    with np.errstate(invalid="ignore", divide="ignore"):
        return {x: float(np.nanmax(np.abs(found[x] - b.value) / b.bound)) for x, b in used.items()}


@pytest.mark.parametrize("io", ["bfloat16", "float16", "float32", "float64"])
def test_torch_flash_on_the_cpu(require, io):
    torch = require("torch")
    for law in ("normal", "large", "onehot", "uniform"):
        given, found = torch_flash_run(torch, law, io, 70, 600)
        assert max(shares(given, found, measured.torch_flash(io)).values()) <= 1, law


def test_torch_flash_needs_its_exp_error_and_its_buffers(require):
    torch = require("torch")
    given, found = torch_flash_run(torch, "uniform", "bfloat16", 70, 600)
    assert shares(given, found, measured.torch_flash("bfloat16", exp_error=2.0**-20))["L"] > 1
    given, found = torch_flash_run(torch, "onehot", "bfloat16", 130, 600)
    assert shares(given, found, measured.torch_flash("bfloat16", dkv_accumulate=None))["dV"] > 1


def test_jax_has_a_softmax_in_float32_for_float64_inputs(require):
    jax = require("jax")
    q, k, v, _ = sim.inputs("normal", "float64", d=32)
    with jax.enable_x64(True):
        axes = [jax.numpy.asarray(x.swapaxes(0, 1)[None]) for x in (q, k, v)]
        out = np.asarray(jax.nn.dot_product_attention(*axes, implementation="xla"))[0].swapaxes(0, 1)
    true = sim.exact(q, k, v, np.ones((24, 40), bool), 1 / np.sqrt(np.longdouble(32)))["O"]
    given = {"Q": q, "K": k, "V": v}
    program = parts()[0]
    used = lambda a: np.abs(out - true) / rounding.evaluate(program, given, a)["O"].bound
    assert used(measured.jax_xla("float64")).max() <= 1 < used(arithmetic.eager("float64")).max()


def test_onnxruntime_rounds_the_scale_to_float32(require):
    onnx, runtime = require("onnx"), require("onnxruntime")
    q, k, v, _ = sim.inputs("normal", "float64", d=32)
    info = [onnx.helper.make_tensor_value_info(x, onnx.TensorProto.DOUBLE, None) for x in ("Q", "K", "V", "Y")]
    graph = onnx.helper.make_graph([onnx.helper.make_node("Attention", ["Q", "K", "V"], ["Y"])], "a", info[:3], info[3:])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 24)], ir_version=11)
    options = runtime.SessionOptions()
    options.log_severity_level, options.intra_op_num_threads = 4, 1
    session = runtime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    out = session.run(None, {"Q": q[None], "K": k[None], "V": v[None]})[0][0]
    true = sim.exact(q, k, v, np.ones((24, 40), bool), 1 / np.sqrt(np.longdouble(32)))["O"]
    used = lambda a: np.abs(out - true) / rounding.evaluate(parts()[0], {"Q": q, "K": k, "V": v}, a)["O"].bound
    declared = measured.onnxruntime("float64")
    assert used(declared).max() <= 1 < used(replace(declared, scalar_format=None)).max()


@pytest.mark.slow
@pytest.mark.parametrize("io", ["float16", "bfloat16"])
def test_flex_rounds_dS_times_the_scale(require, io):
    """With large scores most of dS is small: rounded as it is, float16 would keep more of it than the kernel does."""
    require("torch")
    kernel, d = BUILT_IN["torch:flex"], Definition()
    kind = next(k for k in KINDS if k.name == "large")
    ref = Reference(d, fields_for(d, kind.shape, io, 0, kind))
    declared = kernel.arithmetic(ref.call)
    shares = {a.gradient_scale: share(run_case(kernel, ref, "large", backward=True, arithmetic=a), "grad_key")
              for a in (declared, replace(declared, gradient_scale=1.0))}  # fmt: skip
    assert shares[declared.gradient_scale] <= 1 and declared.gradient_scale < 1
    assert (shares[1.0] > 1) == (io == "float16")


@pytest.mark.parametrize("name", ["onnxruntime:mha", "onnxruntime:gqa"])
def test_contributed_operators_compute_float16_in_float32(require, name):
    """Float16 intermediates would promise nothing on scores near -200; float32 ones hold, and leave little."""
    require("onnxruntime")
    kernel, d = BUILT_IN[name], Definition()
    kind = next(k for k in KINDS if k.name == "deep")
    shape = kind.shape if kernel.grouped else replace(kind.shape, hkv=kind.shape.h)
    ref = Reference(d, fields_for(d, shape, "float16", 0, kind))
    assert 0.2 < share(run_case(kernel, ref, "deep", backward=False), "out") <= 1


def share(case, name):
    return next(float(t.comparison.max_share) for t in case.tensors if t.name == name)
