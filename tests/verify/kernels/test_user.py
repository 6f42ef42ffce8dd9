"""Functions of users: what they are called with, how they are named, and gradients by autograd."""

from __future__ import annotations

import functools

import numpy as np
import pytest

from symattn.definition import Definition
from symattn.errors import KernelError, MissingDependencyError, UnknownNameError
from symattn.verify.inputs import Shape, fields_for
from symattn.verify.judge import run_case, verify
from symattn.verify.kernels.call import Call
from symattn.verify.kernels.options import NAMES, options
from symattn.verify.kernels.registry import BUILT_IN, resolve
from symattn.verify.kernels.user import arrays_of
from symattn.verify.reference import Reference

SHAPE = Shape.parse("2,4,2,3,5,6")


def call_of(**fields):
    d = Definition(**fields)
    return Call(d, fields_for(d, SHAPE, "float32", 0))


@pytest.mark.parametrize(
    "fields, want",
    [
        ({}, {"enable_gqa": True}),
        ({"causal": "top-left"}, {"enable_gqa": True, "is_causal": True}),
        ({"causal": "bottom-right"}, {"enable_gqa": True, "is_causal": True, "causal_alignment": "bottom-right"}),
        ({"scale": "1/4"}, {"enable_gqa": True, "scale": 0.25}),
        ({"scale": "2/d"}, {"enable_gqa": True, "scale": 1 / 3}),
        ({"softcap": 20}, {"enable_gqa": True, "softcap": 20.0}),
        ({"window": (4, None)}, {"enable_gqa": True, "window": (4, -1)}),
        ({"lse_base": 2, "empty_row": "nan"}, {"enable_gqa": True, "lse_base": 2, "empty_row": "nan"}),
        ({"heads": 4, "score": "t*s", "params": {"t": "1/2"}}, {"enable_gqa": True}),
    ],
)
def test_options_are_those_that_are_not_at_their_default(fields, want):
    assert options(call_of(**fields)) == want


@pytest.mark.parametrize(
    "fields, names",
    [
        ({"attn_mask": "boolean"}, {"attn_mask"}),
        ({"attn_mask": "additive"}, {"attn_mask"}),
        ({"alibi": True}, {"alibi_slopes"}),
        ({"alibi": True, "alibi_slopes": "power"}, {"alibi_slopes"}),
        ({"sink": True}, {"sinks"}),
        ({"dropout": True}, {"dropout_mask", "dropout_p"}),
        ({"bias": True}, {"bias"}),
        ({"document": True}, {"doc_q", "doc_k"}),
        ({"key_lengths": True}, {"key_lengths"}),
        ({"score": "s*t"}, {"t"}),
        ({"causal": "top-left", "prefix": 2}, {"is_causal", "prefix"}),
    ],
)
def test_options_that_are_arrays(fields, names):
    found = options(call_of(**fields))
    assert set(found) == names | {"enable_gqa"}
    assert found.get("attn_mask", np.zeros((1, 1, 1, 1))).ndim == 4
    assert names - set(NAMES) <= {"bias", "doc_q", "doc_k", "key_lengths", "t", "prefix"}


FILE = """
import numpy as np
import torch
from helper import scale

def numpy_kernel(query, key, value, enable_gqa=False):
    key, value = (x.repeat(query.shape[1] // x.shape[1], 1) for x in (key, value))
    s = query @ key.swapaxes(-1, -2) * scale(query)
    p = np.exp(s - s.max(-1, keepdims=True))
    return p / p.sum(-1, keepdims=True) @ value
numpy_kernel.arrays = "numpy"

def torch_kernel(query, key, value, enable_gqa=False, is_causal=False, sinks=None):
    s = torch.einsum("bkgic,bkjc->bkgij", query.unflatten(1, (key.shape[1], -1)), key) * scale(query)
    if is_causal:
        s = s.masked_fill(~torch.ones(s.shape[-2:], dtype=torch.bool).tril(), -torch.inf)
    z = s
    if sinks is not None:
        z = torch.cat([s, sinks.unflatten(0, (key.shape[1], -1))[None, :, :, None, None].expand(*s.shape[:4], 1)], -1)
    lse = torch.logsumexp(z, -1)
    return torch.einsum("bkgij,bkje->bkgie", torch.exp(s - lse[..., None]), value).flatten(1, 2), lse.flatten(1, 2)

def detached(query, key, value, **options):
    out, lse = torch_kernel(query, key, value, **options)
    return out, lse.detach()

class Holder:
    kernel = staticmethod(torch_kernel)

class Module(torch.nn.Module):
    def forward(self, query, key, value, **options):
        return torch_kernel(query, key, value, **options)

module = Module()
number = 3
"""


@pytest.fixture
def folder(tmp_path, monkeypatch, require):
    require("torch")
    (tmp_path / "kernels_of_mine.py").write_text(FILE)
    (tmp_path / "helper.py").write_text("def scale(q):\n    return q.shape[-1] ** -0.5\n")
    (tmp_path / "broken.py").write_text("raise RuntimeError('at import')\n")
    (tmp_path / "exits.py").write_text("raise SystemExit(0)\n")
    (tmp_path / "needs.py").write_text("import a_package_that_is_not_there\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("name", ["numpy_kernel", "torch_kernel", "Holder.kernel", "module"])
@pytest.mark.parametrize("where", ["kernels_of_mine.py", "kernels_of_mine"])
def test_the_ways_to_name_a_function(folder, where, name):
    report = verify(f"{where}:{name}", Definition(), shape=str(SHAPE))
    assert report.verdict == "pass" and report.kernel == f"{where}:{name}"


@pytest.mark.parametrize(
    "name, error, text",
    [
        ("nosuch", UnknownNameError, "Known: 'jax:dot"),
        ("numpy:naiv", UnknownNameError, "did you mean|no module|no function"),
        ("torch:sdpa_math", UnknownNameError, "torch"),
        ("nosuch.py:f", UnknownNameError, "does not exist"),
        ("nosuch:f", UnknownNameError, "no module nosuch"),
        ("kernels_of_mine.py:torch_kernle", UnknownNameError, "Did you mean 'torch_kernel'"),
        ("kernels_of_mine:number", UnknownNameError, "int"),
        ("broken.py:f", KernelError, "at import"),
        ("exits:f", KernelError, "SystemExit"),
        ("needs.py:f", MissingDependencyError, "a_package_that_is_not_there"),
    ],
)
def test_names_that_are_wrong(folder, name, error, text):
    with pytest.raises(error, match=f"(?i){text}"):
        resolve(name)


def test_a_missing_framework_is_named(monkeypatch):
    monkeypatch.setattr(type(BUILT_IN["onnx:reference"]), "packages", ("onnx_that_is_not_there",))
    with pytest.raises(MissingDependencyError, match="pip install"):
        resolve("onnx:reference")


@pytest.mark.parametrize("name", ["torch_kernel", "module"])
@pytest.mark.parametrize("fields", [{"causal": "top-left"}, {"sink": True}])
def test_torch_autograd(folder, name, fields):
    d = Definition(**fields)
    kernel = resolve(f"kernels_of_mine.py:{name}")
    for dtype in ("float64", "float32"):
        ref = Reference(d, fields_for(d, SHAPE, dtype, 0))
        outputs = kernel.forward(ref.call)
        assert kernel.takes(ref.call, outputs) == {"grad_lse"}
        case = run_case(kernel, ref, "normal", backward=True)
        assert case.verdict == "pass"
        assert {t.name for t in case.tensors} >= {"grad_query", "grad_key", "grad_value", *({"grad_sinks"} if d.sink else ())}


def test_an_lse_outside_the_graph_gets_no_gradient(folder):
    kernel = resolve("kernels_of_mine.py:detached")
    ref = Reference(Definition(), fields_for(Definition(), SHAPE, "float32", 0))
    assert kernel.takes(ref.call, kernel.forward(ref.call)) == frozenset()
    assert run_case(kernel, ref, "normal", backward=True).verdict == "pass"


def test_jax_autograd(require):
    jax = require("jax")
    jnp = jax.numpy

    def kernel(query, key, value, enable_gqa=False):
        key, value = (jnp.repeat(x, query.shape[1] // x.shape[1], axis=1) for x in (key, value))
        s = jnp.einsum("bhic,bhjc->bhij", query, key, precision="highest") * query.shape[-1] ** -0.5
        lse = jax.nn.logsumexp(s, axis=-1)
        return {"out": jnp.einsum("bhij,bhje->bhie", jnp.exp(s - lse[..., None]), value, precision="highest"), "lse": lse}

    kernel.arrays = "jax"
    ref = Reference(Definition(), fields_for(Definition(), Shape.parse("1,2,1,2,3,4"), "float64", 0))
    case = run_case(resolve(kernel), ref, "normal", backward=True)
    assert case.verdict == "pass" and case.dtype == "float64"  # float64 survives without a global switch
    assert not jax.config.jax_enable_x64


def test_what_a_function_is_called_with(require):
    torch = require("torch")
    assert arrays_of(torch.nn.functional.scaled_dot_product_attention) == "torch"
    assert arrays_of(torch.nn.Linear(2, 2)) == "torch"
    assert arrays_of(functools.partial(torch.add)) == "torch"
    assert arrays_of(call_of) == "numpy"
    assert arrays_of(np.add) == "numpy"
    jax = require("jax")
    assert arrays_of(jax.nn.dot_product_attention) == "jax"


def test_layout_bshd(require):
    require("torch")
    import torch

    def kernel(query, key, value, enable_gqa=False):
        q, k, v = (x.transpose(1, 2) for x in (query, key, value))
        return torch.nn.functional.scaled_dot_product_attention(q, k, v, enable_gqa=enable_gqa).transpose(1, 2)

    kernel.arrays = "torch"
    assert verify(kernel, Definition(), shape=str(SHAPE), layout="bshd", backward=True).verdict == "pass"
    with pytest.raises(KernelError):
        verify(kernel, Definition(), shape=str(SHAPE), layout="bhsd")
