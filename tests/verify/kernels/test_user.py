"""Functions of users: what they are called with, how they are named, and gradients by autograd."""

from __future__ import annotations

import functools

import numpy as np
import pytest

from symattn.definition import Definition
from symattn.errors import DefinitionError, KernelError, MissingDependencyError, UnknownNameError
from symattn.verify.inputs import Shape, fields_for
from symattn.verify.judge import run_case, verify
from symattn.verify.kernels.call import Call
from symattn.verify.kernels.options import NAMES, OTHERS, options, parameters
from symattn.verify.kernels.ours import Flash
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
        ({"score": "s*t"}, set()),
        ({"causal": "top-left", "prefix": 2}, {"is_causal", "prefix"}),
    ],
)
def test_options_that_are_arrays(fields, names):
    found = options(call_of(**fields))
    assert set(found) == names | {"enable_gqa"}
    assert found.get("attn_mask", np.zeros((1, 1, 1, 1))).ndim == 4
    assert names <= {*NAMES, *OTHERS}


TEXT = {"heads": 4, "kv_heads": 2, "score": "s*t + u + v", "params": {"t": "1/4", "u": ["1", "2", "3", "4"]}}


def test_parameters_are_numbers_and_arrays_per_head():
    found = parameters(call_of(**TEXT))
    assert type(found["t"]) is float and type(found["v"]) is float  # one bound, one from the inputs
    assert found["u"].tolist() == [1, 2, 3, 4]


def plain(query, key, value, *, enable_gqa=False):
    key, value = (x.repeat(query.shape[1] // x.shape[1], 1) for x in (key, value))
    s = query @ key.swapaxes(-1, -2) / np.float32(np.sqrt(query.shape[3]))
    p = np.exp(s - s.max(-1, keepdims=True))
    return p / p.sum(-1, keepdims=True) @ value


PARTS = {
    "bias": {"bias": True}, "prefix": {"prefix": 2}, "doc_q": {"document": True}, "key_lengths": {"key_lengths": True},
    "sinks": {"sink": True}, "alibi_slopes": {"alibi": True}, "softcap": {"softcap": 2}, "window": {"window": (2, 0)},
    "attn_mask": {"attn_mask": "boolean"}, "is_causal": {"causal": "bottom-right"}, "scale": {"scale": "1/4"},
    "dropout_mask": {"dropout": True}, "lse_base": {"lse_base": 2}, "empty_row": {"empty_row": "nan"},
}  # fmt: skip


@pytest.mark.parametrize("name", PARTS)
def test_no_part_of_a_definition_is_dropped_in_silence(name):
    d = Definition(**PARTS[name])
    missing = "is_causal" if name == "prefix" else name
    with pytest.raises(KernelError, match=rf"the definition .*, and \S*plain takes no keyword {missing}\b"):
        verify(plain, d, shape=str(SHAPE), only="shape")

    def forward(query, key, value, **options):
        return Flash().forward(Call(d, fields_for(d, SHAPE, "float32", 0)))["out"]

    with pytest.raises(KernelError, match=rf"its backward \(.*plain\) takes no keyword {missing}\b"):
        run_case(resolve(forward, backward=plain), Reference(d, fields_for(d, SHAPE, "float32", 0)), "normal", backward=True)


def test_grouped_heads_are_a_part_too(require):
    torch = require("torch")

    class Module(torch.nn.Module):
        def forward(self, query, key, value):
            return torch.nn.functional.scaled_dot_product_attention(query, key, value)

    for kernel in (lambda query, key, value: value, Module(), functools.partial(plain, enable_gqa=True)):
        if isinstance(kernel, functools.partial):
            assert verify(kernel, Definition(), shape=str(SHAPE), only="shape").verdict == "pass"
            continue
        with pytest.raises(KernelError, match=r"4 query heads and 2 key/value heads, .* takes no keyword enable_gqa"):
            verify(kernel, Definition(), shape=str(SHAPE), only="shape")
    assert verify(Module(), Definition(), shape="1,2,2,3,5,6", only="shape").verdict == "pass"


def test_a_text_is_the_business_of_the_kernel():
    """It gets those of its parameters that its signature names, and no others."""
    seen = {}

    def kernel(query, key, value, t, enable_gqa=False, **options):
        seen.update(options, t=t)
        return plain(query, key * np.float32(t), value, enable_gqa=enable_gqa)

    d = Definition(score="s*t + u - u", mask="j <= i + m", params={"t": "1/4"})
    assert verify(kernel, d, shape=str(SHAPE), only="shape").verdict == "pass"
    assert seen == {"t": 0.25}


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
    report = verify(f"{where}:{name}", Definition(), shape=str(SHAPE), only="shape")
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
        ("exits:f", UnknownNameError, "importing it ended with SystemExit: 0"),
        ("exits.py:f", UnknownNameError, "importing it ended with SystemExit: 0"),
        ("numpy:flsh", UnknownNameError, "Did you mean 'numpy:flash'"),
        ("torch:spda", UnknownNameError, "Did you mean 'torch:sdpa'"),
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
    assert verify(kernel, Definition(), shape=str(SHAPE), only="shape", layout="bshd", backward=True).verdict == "pass"
    with pytest.raises(KernelError):
        verify(kernel, Definition(), shape=str(SHAPE), only="shape", layout="bhsd")


@pytest.mark.parametrize("fields", [{}, {"bias": True}, {"attn_mask": "boolean", "mask_axes": "bhij"}, {"dropout": True}])
def test_layout_bshd_turns_tensors_with_a_channel_axis_and_nothing_else(fields):
    """LSE, masks, biases, their gradients and the gradient of the LSE are (B, H, n) and (B, H, n, m) in both layouts."""
    d, flash = Definition(**fields), Flash()
    f = fields_for(d, SHAPE, "float32", 0)
    (b, heads, n, _), (_, _, m, _) = f["query"].shape, f["key"].shape
    turn = {"query", "key", "value", "out", "grad_query", "grad_key", "grad_value"}

    def there(**tensors):
        return {k: a.swapaxes(1, 2) if k in turn else a for k, a in tensors.items()}

    def checked(query, key, value, options):
        call = Call(d, f)
        assert all(np.array_equal(x.swapaxes(1, 2), f[k]) for k, x in (("query", query), ("key", key), ("value", value)))
        for name in ("bias", "attn_mask", "dropout_mask"):
            if name in options:
                assert np.array_equal(
                    np.broadcast_to(options[name], (b, heads, n, m)), np.broadcast_to(f[name], (b, heads, n, m))
                )
        return call

    def kernel(query, key, value, **options):
        return there(**flash.forward(checked(query, key, value, options)))

    def backward(query, key, value, grad_out, out, lse, grad_lse, **options):
        assert lse.shape == grad_lse.shape == (b, heads, n)
        given = {"grad_out": grad_out.swapaxes(1, 2), "out": out.swapaxes(1, 2), "lse": lse, "grad_lse": grad_lse}
        return there(**flash.backward(checked(query, key, value, options), given))

    case = run_case(resolve(kernel, backward=backward, layout="bshd"), Reference(d, f), "normal", backward=True)
    assert case.verdict == "pass" and {t.name for t in case.tensors} >= {
        "out",
        "lse",
        "grad_query",
        *(["grad_bias"] if d.bias else []),
    }


def test_autograd_of_an_lse_in_the_layout_bshd(require):
    torch = require("torch")
    jax = require("jax")

    def with_torch(query, key, value):
        s = torch.einsum("bihc,bjhc->bhij", query, key) * query.shape[-1] ** -0.5
        lse = torch.logsumexp(s, -1)
        return torch.einsum("bhij,bjhe->bihe", torch.exp(s - lse[..., None]), value), lse

    def with_jax(query, key, value):
        s = jax.numpy.einsum("bihc,bjhc->bhij", query, key, precision="highest") * query.shape[-1] ** -0.5
        lse = jax.nn.logsumexp(s, axis=-1)
        return jax.numpy.einsum("bhij,bjhe->bihe", jax.numpy.exp(s - lse[..., None]), value, precision="highest"), lse

    for function, kind in ((with_torch, "torch"), (with_jax, "jax")):
        function.arrays = kind
        ref = Reference(Definition(), fields_for(Definition(), Shape.parse("1,2,2,3,4,5"), "float64", 0))
        case = run_case(resolve(function, layout="bshd"), ref, "normal", backward=True)
        assert case.verdict == "pass" and {"lse", "grad_query"} <= {t.name for t in case.tensors}


@pytest.mark.parametrize("how", [SystemExit, GeneratorExit, type("Interrupted", (KeyboardInterrupt,), {})])
def test_a_kernel_cannot_end_the_run(how):
    def kernel(query, key, value, **options):
        raise how(0)

    with pytest.raises(KernelError, match=how.__name__):
        verify(kernel, Definition(), shape="1,1,1,2,2,2", only="shape")
    with pytest.raises(KernelError, match=how.__name__):
        back = lambda *a, **k: kernel(*a[:3])
        verify(plain, Definition(), shape="1,1,1,2,2,2", only="shape", backward=True, backward_kernel=back)


@pytest.mark.parametrize(
    "attribute, value, text",
    [
        ("arithmetic", 7, "arithmetic is an Arithmetic, a preset's name, .* got 7"),
        ("arrays", "cupy", "arrays is one of 'numpy', 'torch', 'jax', got 'cupy'"),
        ("arrays", 7, "'jax', got 7"),
    ],
)
def test_declarations_that_mean_nothing_are_refused(attribute, value, text):
    def kernel(query, key, value, **options):
        return value

    setattr(kernel, attribute, value)
    with pytest.raises(DefinitionError, match=text):
        verify(kernel, Definition(), shape="1,1,1,2,2,2", only="shape")


def test_hidden_elements_are_no_output():
    def kernel(query, key, value, **options):
        return np.ma.masked_array(plain(query, key, value, **options), mask=True)

    with pytest.raises(KernelError, match="a masked array with masked elements"):
        verify(kernel, Definition(), shape="1,1,1,2,2,2", only="shape")


def test_ctrl_c_is_ctrl_c():
    def kernel(query, key, value, **options):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        verify(kernel, Definition(), shape="1,1,1,2,2,2", only="shape")


CONSTANTS = {
    "alibi_slopes": {"causal": "top-left", "alibi": True, "alibi_slopes": "power"},
    "t": {"heads": 2, "kv_heads": 2, "score": "s*t", "params": {"t": "1/2,1/4"}},
}


@pytest.mark.parametrize("name", CONSTANTS)
def test_an_option_that_is_a_constant_of_the_definition_has_no_gradient(require, name):
    torch = require("torch")
    d = Definition(**CONSTANTS[name])

    def kernel(query, key, value, *, is_causal=False, alibi_slopes=None, t=None):
        s = query @ key.mT * query.shape[-1] ** -0.5
        if t is not None:
            s = s * t[:, None, None]
        if is_causal:
            i, j = torch.arange(s.shape[2])[:, None], torch.arange(s.shape[3])
            s = (s - alibi_slopes[:, None, None] * (i - j)).masked_fill(j > i, -torch.inf)
        return torch.softmax(s, -1) @ value

    kernel.arrays = "torch"
    ref = Reference(d, fields_for(d, Shape.parse("1,2,2,2,3,4"), "float64", 0))
    case = run_case(resolve(kernel), ref, "normal", backward=True)
    assert [t.name for t in case.tensors] == ["out", "grad_query", "grad_key", "grad_value"]
    assert case.verdict == "pass"
