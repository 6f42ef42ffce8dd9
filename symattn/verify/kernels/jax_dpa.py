"""JAX's ``jax.nn.dot_product_attention`` on the CPU."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from symattn import measured
from symattn.arithmetic import Arithmetic
from symattn.intake import Array, to_numpy
from symattn.verify.kernels import masks
from symattn.verify.kernels.arrays import to_framework
from symattn.verify.kernels.bands import band
from symattn.verify.kernels.base import Deviation, Kernel, Tensors, leaks
from symattn.verify.kernels.call import Call


class JaxAttention(Kernel):
    """``jax:dot_product_attention``: one operation after the other under XLA; gives the LSE, gradients by ``jax.vjp``.

    Its LSE is behind a ``stop_gradient`` (seen on 0.10.2), so the gradient of the LSE is not part of what is judged.
    """

    name = "jax:dot_product_attention"
    about = "jax.nn.dot_product_attention on the CPU, with LSE, gradients by jax.vjp"
    packages = ("jax",)
    known = (
        Deviation(
            ("lse",),
            lambda call: call.has_empty_row,
            "JAX gives a large negative number (about -2.4e38) instead of -inf as LSE of a row without keys (seen on 0.10.2)",
        ),
        leaks("JAX 0.10.2"),
    )

    def unsupported(self, call: Call) -> str | None:
        """It knows scale, masks, bias and grouped heads, and averages all values for a row without keys."""
        if call.dtype.itemsize == 1:
            return f"it does not compute in {call.dtype}"
        return masks.beyond(call, empty_row="uniform", knows=("groups",))

    def arithmetic(self, call: Call) -> Arithmetic:
        """The softmax is in float32 whatever the inputs are, P and the LSE are rounded to their dtype."""
        return measured.jax_xla(str(call.dtype))

    def forward(self, call: Call) -> Tensors:
        """Output, and LSE where the definition has one."""
        import jax

        with jax.enable_x64(True):
            out = self._run(call, *self._tensors(call))
            names = ("out", "lse") if call.definition.lse else ("out",)
            return {n: to_numpy(a, n).swapaxes(1, 2) for n, a in zip(names, out, strict=True)}

    def has_backward(self, call: Call) -> bool:
        """By jax.vjp."""
        return True

    def backward(self, call: Call, given: Mapping[str, Array]) -> Tensors:
        """By jax.vjp."""
        import jax
        import jax.numpy as jnp

        with jax.enable_x64(True):
            out, pull = jax.vjp(lambda *t: self._run(call, *t), *self._tensors(call))
            seeds = [to_framework(given["grad_out"].swapaxes(1, 2), "jax")]
            if len(out) == 2:
                seeds.append(jnp.zeros_like(out[1]))
            grads = pull(tuple(seeds))
            return {f"grad_{x}": to_numpy(g).swapaxes(1, 2) for x, g in zip(("query", "key", "value"), grads, strict=True)}

    def _tensors(self, call: Call) -> list[Any]:
        return [to_framework(call.fields[x].swapaxes(1, 2), "jax") for x in ("query", "key", "value")]

    def _run(self, call: Call, q: Any, k: Any, v: Any) -> tuple[Any, ...]:
        import jax

        args: dict[str, Any] = {}
        seen = band(call)
        if seen is not None and seen.holds_diagonal:
            if seen.causal:
                args["is_causal"] = True
            if seen.left is not None or seen.right not in (0, None):
                n, m = call.score_shape[2:]
                args["local_window_size"] = (n if seen.left is None else seen.left, m if seen.right is None else seen.right)
        elif call.definition.key_lengths and (call.keep == (np.arange(call.score_shape[3]) < _lengths(call))).all():
            args["key_value_seq_lengths"] = to_framework(_lengths(call).ravel().astype(np.int32), "jax")
        else:
            args["mask"] = to_framework(call.keep, "jax")
        if call.additive is not None:
            args["bias"] = to_framework(masks.finite(call.additive), "jax")
        if call.definition.scale is not None:
            args["scale"] = call.scale
        result = jax.nn.dot_product_attention(q, k, v, implementation="xla", return_residual=call.definition.lse, **args)
        return tuple(result) if call.definition.lse else (result,)


def _lengths(call: Call) -> Array:
    return call.fields["key_lengths"].reshape(-1, 1, 1, 1)


KERNELS: tuple[Kernel, ...] = (JaxAttention(),)
