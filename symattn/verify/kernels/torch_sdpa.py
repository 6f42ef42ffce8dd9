"""PyTorch's scaled_dot_product_attention on the CPU: as dispatched, and each of its backends by name."""

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


def _arguments(call: Call, *, additive: bool) -> dict[str, Any]:
    """Causal flag or mask, and scale, as PyTorch takes them; a Boolean mask only where nothing is added."""
    found: dict[str, Any] = {}
    if masks.is_plain_causal(call):
        found["is_causal"] = True
    else:
        mask = masks.additive_mask(call) if additive else masks.combined(call)
        if mask is not None:
            found["attn_mask"] = to_framework(mask, "torch")
    if call.definition.scale is not None:
        found["scale"] = call.scale
    return found


class TorchSDPA(Kernel):
    """``torch.nn.functional.scaled_dot_product_attention`` with the backend that PyTorch chooses, or a forced one."""

    packages = ("torch",)
    known = (leaks("PyTorch 2.13"),)

    def __init__(self, name: str = "torch:sdpa", backend: str | None = None) -> None:
        self.name, self.backend = name, backend
        chosen = f"its {backend} backend" if backend else "the backend that it chooses"
        self.about = f"torch.nn.functional.scaled_dot_product_attention on the CPU, {chosen}"

    def unsupported(self, call: Call) -> str | None:
        """It knows scale, masks and grouped heads, and gives 0 for a row without keys."""
        return _eight_bits(call) or masks.beyond(call, empty_row="zero", knows=(*masks.PLAIN, "base"))

    def arithmetic(self, call: Call) -> Arithmetic:
        """That of the backend in use: the tiled one where it takes the call, else one operation after the other."""
        return (
            measured.torch_flash(str(call.dtype), staged=False) if self._is_flash(call) else measured.torch_math(str(call.dtype))
        )

    def _is_flash(self, call: Call) -> bool:
        return self.backend != "math" and call.query.shape[3] == call.value.shape[3]

    def forward(self, call: Call) -> Tensors:
        """Output only."""
        import torch

        q, k, v = (to_framework(call.fields[x], "torch") for x in ("query", "key", "value"))
        with torch.no_grad():
            return {"out": to_numpy(self._run(call, q, k, v), "out")}

    def has_backward(self, call: Call) -> bool:
        """By autograd."""
        return True

    def backward(self, call: Call, given: Mapping[str, Array]) -> Tensors:
        """By autograd."""
        import torch

        leaves = [to_framework(call.fields[x], "torch").requires_grad_(True) for x in ("query", "key", "value")]
        out = self._run(call, *leaves)
        grads = torch.autograd.grad(out, leaves, to_framework(given["grad_out"], "torch"))
        return {f"grad_{x}": to_numpy(g) for x, g in zip(("query", "key", "value"), grads, strict=True)}

    def _run(self, call: Call, q: Any, k: Any, v: Any) -> Any:
        from torch.nn.attention import SDPBackend, sdpa_kernel
        from torch.nn.functional import scaled_dot_product_attention

        args = _arguments(call, additive=False)
        gqa = q.shape[1] != k.shape[1]
        if self.backend is None:
            return scaled_dot_product_attention(q, k, v, enable_gqa=gqa, **args)
        with sdpa_kernel(getattr(SDPBackend, self.backend.upper())):
            return scaled_dot_product_attention(q, k, v, enable_gqa=gqa, **args)


class TorchFlash(Kernel):
    """``torch:sdpa-flash``: the tiled CPU kernel itself, which also gives the LSE that its backward starts from."""

    name = "torch:sdpa-flash"
    about = "PyTorch's tiled CPU kernel (aten::_scaled_dot_product_flash_attention_for_cpu), with LSE"
    packages = ("torch",)
    known = (
        Deviation(
            ("lse",),
            lambda call: call.has_empty_row,
            "PyTorch's CPU flash kernel gives LSE 0 instead of -inf for a row without keys (seen on 2.13)",
        ),
        leaks("PyTorch 2.13"),
    )

    def unsupported(self, call: Call) -> str | None:
        """It also needs values as wide as keys."""
        return _eight_bits(call) or masks.beyond(call, empty_row="zero", knows=("groups",))

    def arithmetic(self, call: Call) -> Arithmetic:
        """Its exp, its 512-key tiles and its gradient buffers in the inputs' dtype, as measured."""
        return measured.torch_flash(str(call.dtype))

    def forward(self, call: Call) -> Tensors:
        """Output, and LSE in float32 (float64 for float64)."""
        import torch

        q, k, v = (to_framework(call.fields[x], "torch") for x in ("query", "key", "value"))
        out, lse = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(q, k, v, **_arguments(call, additive=True))
        found = {"out": to_numpy(out, "out"), "lse": to_numpy(lse, "lse")}
        return found if call.definition.lse else {"out": found["out"]}

    def has_backward(self, call: Call) -> bool:
        """The kernel's own."""
        return True

    def takes(self, call: Call, outputs: Mapping[str, Array]) -> frozenset[str]:
        """Its own output and LSE; it has no gradient of the LSE."""
        return frozenset({"out", "lse"} & set(outputs))

    def backward(self, call: Call, given: Mapping[str, Array]) -> Tensors:
        """The kernel's own backward, from its own output and LSE."""
        import torch

        q, k, v, g = (to_framework(x, "torch") for x in (call.query, call.key, call.value, given["grad_out"]))
        args = _arguments(call, additive=True)
        if {"out", "lse"} <= set(given):
            out, lse = to_framework(given["out"], "torch"), to_framework(given["lse"], "torch")
        else:
            out, lse = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(q, k, v, **args)
        causal = args.pop("is_causal", False)
        run = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward
        grads = run(g, q, k, v, out, lse, 0.0, causal, **args)
        return {f"grad_{x}": to_numpy(t) for x, t in zip(("query", "key", "value"), grads, strict=True)}


def _eight_bits(call: Call) -> str | None:
    return f"it does not take {call.dtype}" if call.dtype.itemsize == 1 else None


KERNELS: tuple[Kernel, ...] = (TorchSDPA(), TorchSDPA("torch:sdpa-math", "math"), TorchFlash())
