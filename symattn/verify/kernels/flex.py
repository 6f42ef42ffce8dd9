"""PyTorch's FlexAttention on the CPU, not compiled: the reference that its compiled kernels are tested against."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from symattn import measured
from symattn.arithmetic import Arithmetic
from symattn.intake import Array, to_numpy
from symattn.verify.kernels import masks
from symattn.verify.kernels.arrays import to_framework
from symattn.verify.kernels.base import Kernel, Tensors, leaks
from symattn.verify.kernels.call import Call
from symattn.verify.kernels.flex_mods import mask_mod, score_mod


class Flex(Kernel):
    """``torch:flex``: flex_attention with a score_mod and a mask_mod made from the fields of the definition.

    The public function refuses gradients on the CPU; they come from the operator behind it, which has them, those of ALiBi
    slopes, bias and additive mask and of the log-sum-exp among them.
    """

    name = "torch:flex"
    about = "torch.nn.attention.flex_attention on the CPU, not compiled, with LSE; gradients from the operator behind it"
    packages = ("torch",)
    known = (leaks("PyTorch 2.13"),)

    def unsupported(self, call: Call) -> str | None:
        """It knows whatever a function of (score, b, h, i, j) can say, and gives 0 for a row without keys; no sink."""
        if call.dtype.itemsize == 1:
            return f"it does not take {call.dtype}"
        knows = (*masks.PLAIN, "softcap", "alibi", "both")
        return masks.beyond(call, empty_row="zero", knows=knows)

    def arithmetic(self, call: Call) -> Arithmetic:
        """Scores and softmax in float32 (float64), P and dS rounded to the dtype of the inputs where a product reads them."""
        a = measured.torch_flex(str(call.dtype))
        return a if a.gradient is None else replace(a, gradient_scale=min(abs(call.scale), 1.0) or 1.0)

    def forward(self, call: Call) -> Tensors:
        """Output, and LSE in float32 (float64 for float64)."""
        from torch.nn.attention.flex_attention import AuxRequest, create_block_mask, flex_attention

        q, k, v = (to_framework(call.fields[x], "torch") for x in ("query", "key", "value"))
        score = score_mod(call)
        arrays = tuple(score.arrays.values())
        b, h, n, m = call.score_shape
        with _uncompiled():
            out, aux = flex_attention(
                q,
                k,
                v,
                score_mod=(lambda s, *at: score.function(s, *at, *arrays)) if _scored(call) else None,
                block_mask=None if call.keep.all() else create_block_mask(mask_mod(call), b, h, n, m, device="cpu"),
                scale=call.scale if call.definition.scale is not None else None,
                enable_gqa=q.shape[1] != k.shape[1],
                return_aux=AuxRequest(lse=True),
            )
        found = {"out": to_numpy(out, "out"), "lse": to_numpy(aux.lse, "lse")}
        return found if call.definition.lse else {"out": found["out"]}

    def has_backward(self, call: Call) -> bool:
        """Of the operator behind the function."""
        return True

    def takes(self, call: Call, outputs: Mapping[str, Array]) -> frozenset[str]:
        """Its own output and LSE, and the gradient of the LSE."""
        return frozenset({"out", "lse", "grad_lse"} if "lse" in outputs else ())

    def backward(self, call: Call, given: Mapping[str, Array]) -> Tensors:
        """By autograd through the operator; its LSE is one in base 2."""
        import torch
        from torch._higher_order_ops.flex_attention import flex_attention as operator
        from torch.nn.attention.flex_attention import create_block_mask

        leaves = [to_framework(call.fields[x], "torch").requires_grad_(True) for x in ("query", "key", "value")]
        score = score_mod(call)
        given_names = [name for name in score.arrays if name in call.fields]
        arrays = tuple(x.requires_grad_(name in given_names) for name, x in score.arrays.items())
        block = create_block_mask(mask_mod(call), *call.score_shape, device="cpu").as_tuple()
        with _uncompiled():
            out, lse, _ = operator(*leaves, score.function, block, call.scale, {}, arrays, ())
            results, seeds = [out], [to_framework(given["grad_out"], "torch")]
            if "grad_lse" in given:
                results.append(lse * float(np.log(2)))
                seeds.append(to_framework(given["grad_lse"].astype(np.float64), "torch").to(lse.dtype))
            wanted = [*leaves, *(score.arrays[name] for name in given_names)]
            grads = torch.autograd.grad(results, wanted, seeds)
        names = ["query", "key", "value", *given_names]
        return {f"grad_{x}": to_numpy(g).reshape(call.fields[x].shape) for x, g in zip(names, grads, strict=True)}


def _scored(call: Call) -> bool:
    d = call.definition
    return d.softcap is not None or d.bias or d.attn_mask == "additive" or d.alibi


@contextlib.contextmanager
def _uncompiled() -> Iterator[None]:
    """FlexAttention's own switch for debugging, on while one call runs: without it even the eager form is traced first."""
    from torch.nn.attention import flex_attention as module

    kept = module._FLEX_ATTENTION_DISABLE_COMPILE_DEBUG
    module._FLEX_ATTENTION_DISABLE_COMPILE_DEBUG = True
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        module._FLEX_ATTENTION_DISABLE_COMPILE_DEBUG = kept


KERNELS: tuple[Kernel, ...] = (Flex(),)
