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
from symattn.verify.lists import kernel_program, staged
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
