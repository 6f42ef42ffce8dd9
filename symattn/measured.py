"""Declared arithmetics of real kernels, as measured on the version named in each; ``arithmetic.get`` finds them by name.

Measured means: forward and backward (own, or by autograd) on normal, large, cancelling, one-hot, uniform, shifted, huge and
subnormal inputs, with and without a causal mask, no element beyond the bound of the declaration, and the narrower declarations
named in the remark exceeded.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from symattn import formats
from symattn.arithmetic import SHORT, Arithmetic, eager, flash, inside_float32, rounded_throughout


def torch_flash(format: str, **changes: Any) -> Arithmetic:
    """PyTorch's tiled CPU kernel: 512 keys a tile, blocks of at least 32 queries in the backward."""
    f = formats.get(format).name
    low = f in ("float16", "bfloat16")
    measured: dict[str, Any] = {
        "name": f"torch-flash-cpu-{SHORT[f]}",
        "exp_error": 1.2e-4 if low else 40 * 2.0**-24 if f == "float32" else None,
        "tile": 512,
        "query_tile": 32,
        "dq_accumulate": f if low else None,
        "dkv_accumulate": f if low else None,
        "source": "torch 2.13.0 CPU, aten::_scaled_dot_product_flash_attention_for_cpu and its backward",
        "remark": "measured with AVX-512: exp within 1.15e-4 for 16-bit inputs (two-value probe of the LSE), 1.2e-6 for float32; "
        "dQ, dK and dV grow in the input's dtype, 512 keys and 32 queries (64 from 192, 256 from 768) at a time: declared "
        "in float32, dK and dV are over by up to 1.9 from 64 queries on",
    }
    return flash(f, **(measured | changes))


def torch_math(format: str, **changes: Any) -> Arithmetic:
    """PyTorch's math backend on the CPU, gradients by autograd: 16-bit inputs are computed in float32 throughout."""
    f = formats.get(format).name
    common: dict[str, Any] = {
        "name": f"torch-math-cpu-{SHORT[f]}",
        "source": "torch 2.13.0 CPU, scaled_dot_product_attention with SDPBackend.MATH, autograd",
        "remark": "measured: within the bound of float32 intermediates for 16-bit inputs (greatest share 0.99, output rounding)",
    }
    base = inside_float32(f, flush_to_zero=True, expand_heads=True) if f in ("float16", "bfloat16") else eager(f)
    wide = "float64" if f == "float64" else "float32"
    return replace(base, **(common | {"scale_before": 2, "scale_format": wide} | changes))


def onnxruntime(format: str, **changes: Any) -> Arithmetic:
    """ONNX Runtime's Attention on the CPU: stored in the input's format; the root of the scale, in float32, on Q and on K."""
    f = formats.get(format).name
    common: dict[str, Any] = {
        "name": f"onnxruntime-cpu-{SHORT[f]}",
        "scale_before": 2,
        "scalar_roundings": 2,
        "scalar_format": "float32",
        "source": "onnxruntime 1.32.0, CPUExecutionProvider, Attention of opset 24",
        "remark": "measured: float16 needs float16 intermediates (float32 ones are exceeded by 1.6 under a causal mask); "
        "float64 has a scale of float32 (errors of 8e-8); bfloat16 is not implemented",
    }
    return replace(eager(f), **(common | changes))


def onnxruntime_mha(format: str, **changes: Any) -> Arithmetic:
    """ONNX Runtime's MultiHeadAttention on the CPU: scores, softmax and sums in float32; float16 is converted in and out."""
    return _contributed(format, "mha", "com.microsoft.MultiHeadAttention", changes)


def onnxruntime_gqa(format: str, **changes: Any) -> Arithmetic:
    """ONNX Runtime's GroupQueryAttention on the CPU: the same."""
    return _contributed(format, "gqa", "com.microsoft.GroupQueryAttention", changes)


def _contributed(format: str, short: str, operator: str, changes: dict[str, Any]) -> Arithmetic:
    f = formats.get(format).name
    common: dict[str, Any] = {
        "name": f"onnxruntime-{short}-cpu-{SHORT[f]}",
        "scalar_roundings": 2,
        "scalar_format": "float32",
        "source": f"onnxruntime 1.32.0, CPUExecutionProvider, {operator}",
        "remark": "measured: float16 within the bound of float32 intermediates (greatest share 0.98, output rounding)",
    }
    base = inside_float32(f, flush_to_zero=True) if f == "float16" else eager(f)
    return replace(base, **(common | changes))


def torch_flex(format: str, **changes: Any) -> Arithmetic:
    """PyTorch's FlexAttention on the CPU, not compiled: float32 inside, whole rows, backward from the saved output and LSE."""
    f = formats.get(format).name
    common: dict[str, Any] = {
        "name": f"torch-flex-cpu-{SHORT[f]}",
        "tile": None,
        "expand_heads": True,
        "source": "torch 2.13.0 CPU, torch.nn.attention.flex_attention without torch.compile",
        "remark": "measured: LSE within 0.22 of its bound (its factors ln 2 and 1/ln 2 included); dS is rounded times the scale "
        "(gradient_scale; without it dK of float16 is over by up to 2)",
    }
    return flash(f, **(common | changes))


def torch_mha_weights(format: str, **changes: Any) -> Arithmetic:
    """PyTorch's multi_head_attention_forward with need_weights: one operation after the other, each stored."""
    f = formats.get(format).name
    common: dict[str, Any] = {
        "name": f"torch-mha-weights-cpu-{SHORT[f]}",
        "scale_before": 1,
        "source": "torch 2.13.0 CPU, torch.nn.functional.multi_head_attention_forward(need_weights=True), autograd",
        "remark": "measured: greatest share of the bound 0.23 (bfloat16), 0.62 (float16), 0.11 (float32)",
    }
    return replace(eager(f), **(common | changes))


def onnx_reference(format: str, **changes: Any) -> Arithmetic:
    """ONNX's reference evaluator: NumPy, each result in the input's dtype, the root of the scale on Q and on K."""
    f = formats.get(format).name
    common: dict[str, Any] = {
        "name": f"onnx-reference-{SHORT[f]}",
        "scale_before": 2,
        "source": "onnx 1.23.2, onnx.reference.ReferenceEvaluator",
        "remark": "measured: greatest share of the bound 0.49 (float16), 0.09 (float32, float64)",
    }
    return replace(rounded_throughout(f), **(common | changes))


def jax_xla(format: str, **changes: Any) -> Arithmetic:
    """``jax.nn.dot_product_attention`` on the CPU: softmax in float32 whatever the inputs, the rest stored in their dtype."""
    f = formats.get(format).name
    common: dict[str, Any] = {
        "name": f"jax-xla-cpu-{SHORT[f]}",
        "lse": f,
        "source": "jax 0.10.2 CPU, jax.nn.dot_product_attention(implementation='xla'), jax.vjp",
        "remark": "measured: the softmax is in float32 also for float64 inputs (errors of 1e-7); the LSE comes back in the "
        "input's dtype; dP is stored in it (float32 is exceeded by 27 in dK for bfloat16); subnormals are flushed",
    }
    base = inside_float32(f, flush_to_zero=True, expand_heads=True) if f == "float64" else eager(f)
    return replace(base, **(common | {"scale_before": 0} | changes))


def _all() -> dict[str, Arithmetic]:
    makers = (torch_flash, torch_math, torch_flex, torch_mha_weights, jax_xla)
    rows = [make(f) for make in makers for f in SHORT]
    rows += [make(f) for make in (onnxruntime, onnx_reference) for f in SHORT if f != "bfloat16"]
    rows += [make(f) for make in (onnxruntime_mha, onnxruntime_gqa) for f in ("float32", "float16")]
    return {a.name: a for a in rows}


MEASURED: Mapping[str, Arithmetic] = MappingProxyType(_all())
"""The declarations by name."""
