"""Arrays of every framework come in with their values and their dtype."""

from __future__ import annotations

import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest

from symattn.errors import InputValueError
from symattn.formats import get
from symattn.intake import framework, to_numpy
from symattn.verify.kernels.arrays import to_framework

FLOATS = ("float64", "float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2")


def bits(a: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(a).view(np.uint8)


@pytest.fixture
def values() -> np.ndarray:
    return np.array([[0.5, -1.5, 0.0, 240.0], [2.0**-6, 1.25, -0.0, 3.0]])


@pytest.mark.parametrize("name", FLOATS)
@pytest.mark.parametrize("kind", ["numpy", "torch", "jax"])
def test_there_and_back(require, kind, name, values):
    a = values.astype(get(name).dtype)
    if kind == "jax":
        jax = require("jax")
        with jax.enable_x64(True):
            x = to_framework(a, kind)
            back = to_numpy(x)
    else:
        if kind != "numpy":
            require(kind)
        x = to_framework(a, kind)
        back = to_numpy(x)
    assert framework(x) == kind
    assert back.dtype == a.dtype
    assert np.array_equal(bits(back), bits(a))


@pytest.mark.parametrize("kind", ["numpy", "torch"])
def test_a_framework_array_never_shares_memory(require, kind, values):
    if kind == "torch":
        require("torch")
    kept = values.copy()
    x = to_framework(values, kind)
    x[...] = 7
    assert np.array_equal(values, kept)


@pytest.mark.parametrize("name", ["bfloat16", "float32", "float8_e5m2"])
def test_torch_with_gradient_strides_and_parameter(require, name):
    torch = require("torch")
    t = torch.arange(24.0).reshape(2, 3, 4).to(getattr(torch, name)).transpose(0, 2)
    want = np.arange(24.0).reshape(2, 3, 4).transpose(2, 1, 0)
    if name != "float8_e5m2":
        t = t.requires_grad_(True)
        assert (
            to_numpy(torch.nn.Parameter(t.detach())).astype(float).tolist() == want.astype(get(name).dtype).astype(float).tolist()
        )
    a = to_numpy(t)
    assert a.dtype == get(name).dtype
    assert a.astype(float).tolist() == want.astype(get(name).dtype).astype(float).tolist()


def test_torch_negated_view_is_resolved(require):
    torch = require("torch")
    t = torch.tensor([1 + 2j]).conj().imag
    assert to_numpy(t).tolist() == [-2.0]


def test_torch_that_has_no_elements_is_refused(require):
    torch = require("torch")
    with pytest.raises(InputValueError, match="to_dense"):
        to_numpy(torch.eye(2).to_sparse(), "query")
    with pytest.raises(InputValueError, match=r"query: a torch\.Tensor"):
        to_numpy(torch.ones(2, device="meta"), "query")


def test_dlpack_only():
    class Opaque:
        def __init__(self, a):
            self.a = a

        def __dlpack__(self, **kw):
            return self.a.__dlpack__(**kw)

        def __dlpack_device__(self):
            return self.a.__dlpack_device__()

    assert to_numpy(Opaque(np.arange(3.0))).tolist() == [0, 1, 2]


def test_raw_two_bytes_are_bfloat16_and_other_raw_bytes_are_refused():
    a = np.array([1.5], ml_dtypes.bfloat16)
    assert to_numpy(a.view("V2")).dtype == ml_dtypes.bfloat16
    with pytest.raises(InputValueError, match="V1"):
        to_numpy(a.view("V1"))


@pytest.mark.parametrize("bad", [["a"], [1 + 2j], [None], object()])
def test_what_is_no_number_is_refused(bad):
    with pytest.raises(InputValueError, match="key"):
        to_numpy(bad, "key")


def test_integers_and_booleans_stay():
    assert to_numpy([[True, False]]).dtype == bool
    assert to_numpy(np.arange(3, dtype=np.int16)).dtype == np.int16


def test_another_byte_order_becomes_the_native_one():
    a = to_numpy(np.array([1.5, -2], dtype=np.dtype("f4").newbyteorder()))
    assert a.dtype.isnative and a.dtype == np.float32 and a.tolist() == [1.5, -2]


def test_what_a_mask_hides_is_no_number():
    a = np.ma.masked_array([1.0, 2.0], mask=[False, True])
    with pytest.raises(InputValueError, match=r"masked.*filled"):
        to_numpy(a)
    assert to_numpy(a[:1]).tolist() == [1] and type(to_numpy(a[:1])) is np.ndarray


def test_no_framework_is_imported():
    heavy = {"torch", "jax", "onnx", "sympy", "flint"}
    code = "import sys, symattn.intake, symattn.verify.files; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "symattn.verify.files" in loaded
    assert not heavy & set(loaded)
