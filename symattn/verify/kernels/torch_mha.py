"""PyTorch's MultiheadAttention with identity projections: the module, and the function that also gives the weights."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from symattn import measured
from symattn.arithmetic import Arithmetic
from symattn.intake import Array, to_numpy
from symattn.verify.kernels import masks
from symattn.verify.kernels.arrays import to_framework
from symattn.verify.kernels.base import Deviation, Kernel, Tensors, leaks
from symattn.verify.kernels.call import Call

_EMPTY = Deviation(
    ("grad_query", "grad_key", "grad_value"),
    lambda call: call.has_empty_row,
    "the NaN of a query without keys goes into the gradients of all keys and values (seen on PyTorch 2.13)",
    nan=True,
)


class MultiheadAttention(Kernel):
    """``torch:mha``: the module, which runs SDPA; ``torch:mha-weights``: the function asked for weights.

    Query, key and value go through projections by identity matrices, which change nothing. A Boolean mask is turned around:
    True means drop there. A causal mask goes with the hint ``is_causal``.
    """

    packages = ("torch",)
    grouped = False

    def __init__(self, name: str, *, weights: bool) -> None:
        self.name, self.weights = name, weights
        code = "functional.multi_head_attention_forward with need_weights=True" if weights else "MultiheadAttention, no weights"
        self.about = f"torch.nn.{code}, on the CPU, identity projections"
        self.known = (_EMPTY, leaks("PyTorch 2.13")) if weights else (leaks("PyTorch 2.13"),)

    def unsupported(self, call: Call) -> str | None:
        """It knows masks; no scale, no grouped heads; a row without keys gives 0, or NaN where weights are asked for."""
        if call.dtype.itemsize == 1:
            return f"it does not take {call.dtype}"
        if call.definition.scale is not None:
            return "it has no scale"
        return masks.beyond(call, empty_row="nan" if self.weights else "zero", knows=("base",))

    def arithmetic(self, call: Call) -> Arithmetic:
        """That of the tiled SDPA kernel; with weights one operation after the other, the root of the scale on the queries."""
        if self.weights:
            return measured.torch_mha_weights(str(call.dtype))
        return measured.torch_flash(str(call.dtype), staged=False)

    def forward(self, call: Call) -> Tensors:
        """Output only."""
        import torch

        with torch.no_grad():
            return {"out": to_numpy(self._run(call, *self._tensors(call)), "out")}

    def has_backward(self, call: Call) -> bool:
        """By autograd."""
        return True

    def backward(self, call: Call, given: Mapping[str, Array]) -> Tensors:
        """By autograd."""
        import torch

        leaves = [t.requires_grad_(True) for t in self._tensors(call)]
        grads = torch.autograd.grad(self._run(call, *leaves), leaves, to_framework(given["grad_out"], "torch"))
        return {f"grad_{x}": to_numpy(g) for x, g in zip(("query", "key", "value"), grads, strict=True)}

    def _tensors(self, call: Call) -> list[Any]:
        return [to_framework(call.fields[x], "torch") for x in ("query", "key", "value")]

    def _run(self, call: Call, *tensors: Any) -> Any:
        """The heads side by side, (n, B, H d), through the module or the function, and apart again."""
        import torch

        b, heads, n, d = tensors[0].shape
        width = heads * d
        q, k, v = (t.permute(2, 0, 1, 3).reshape(t.shape[2], b, width) for t in tensors)
        one = torch.eye(width, dtype=q.dtype)
        args = _mask(call)
        if self.weights:
            run = torch.nn.functional.multi_head_attention_forward
            fixed = (width, heads, one.repeat(3, 1), None, None, None, False, 0.0, one, None)
            out, _ = run(q, k, v, *fixed, need_weights=True, average_attn_weights=False, **args)
        else:
            module = torch.nn.MultiheadAttention(width, heads, bias=False, dtype=q.dtype)
            module.in_proj_weight = torch.nn.Parameter(one.repeat(3, 1))
            module.out_proj.weight = torch.nn.Parameter(one)
            out, _ = module(q, k, v, need_weights=False, **args)
        return out.reshape(n, b, heads, d).permute(1, 2, 0, 3)


def _mask(call: Call) -> dict[str, Any]:
    mask = masks.combined(call)
    if mask is None:
        return {}
    b, h, n, m = call.score_shape
    if masks.is_plain_causal(call):
        return {"attn_mask": to_framework(~mask[0, 0], "torch"), "is_causal": True}
    whole = mask if call.additive is not None else ~mask
    full = to_framework(whole, "torch").expand(b, h, n, m)
    return {"attn_mask": full.reshape(b * h, n, m)}


KERNELS: tuple[Kernel, ...] = (
    MultiheadAttention("torch:mha", weights=False),
    MultiheadAttention("torch:mha-weights", weights=True),
)
