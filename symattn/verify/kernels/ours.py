"""The kernels that symattn brings along: the definition's own NumPy reading, and the tiled one of :mod:`.flash`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from symattn import arithmetic, formats
from symattn.arithmetic import Arithmetic
from symattn.intake import Array
from symattn.verify.kernels import flash, masks
from symattn.verify.kernels.base import Kernel, Tensors
from symattn.verify.kernels.call import Call


class Naive(Kernel):
    """``numpy:naive``: the statements of the definition and its presented gradient, evaluated by NumPy in the inputs' dtype."""

    name = "numpy:naive"
    about = "the definition's own NumPy reading in the chosen dtype, gradient by the presented list"

    def unsupported(self, call: Call) -> str | None:
        """8-bit floats cannot carry the intermediate results."""
        return f"no arithmetic of {call.dtype} is meant for every operation" if call.dtype.itemsize == 1 else None

    def arithmetic(self, call: Call) -> Arithmetic:
        """Elementwise operations in the dtype, sums of 16-bit dtypes in float32."""
        return arithmetic.rounded_throughout(str(call.dtype))

    def forward(self, call: Call) -> Tensors:
        """Output and LSE."""
        return self._evaluate(call, {})

    def has_backward(self, call: Call) -> bool:
        """Always: the gradient is derived."""
        return True

    def takes(self, call: Call, outputs: Mapping[str, Array]) -> frozenset[str]:
        """The gradient of the LSE."""
        return frozenset({"grad_lse"})

    def backward(self, call: Call, given: Mapping[str, Array]) -> Tensors:
        """All gradients of the definition."""
        return self._evaluate(call, {name: given[name].astype(call.dtype) for name in ("grad_out", "grad_lse") if name in given})

    def _evaluate(self, call: Call, seeds: Mapping[str, Array]) -> Tensors:
        from symattn.binding import bind, unbind
        from symattn.readings.numpy import evaluate
        from symattn.truth.fields import with_seeds
        from symattn.verify.programs import followed

        fields = {k: v for k, v in call.fields.items() if not k.startswith("grad_")}
        bound = bind(call.definition, {**fields, **seeds})
        program = followed(bound.program, self.arithmetic(call), gradient=bool(seeds))
        with np.errstate(all="ignore"):
            values = evaluate(program, with_seeds(bound) if seeds else bound.inputs, sizes=bound.sizes, dtype=call.dtype)
        wanted = [n for n in program.outputs if n not in bound.program.outputs] if seeds else program.outputs
        numbers = {"d" + name for name, value in bound.definition.params.items() if value != "head"}  # they have no gradient
        return dict(unbind(bound, name, values[name]) for name in wanted if name not in numbers)


class Flash(Kernel):
    """``numpy:flash``: tiled, online softmax, written by hand."""

    name = "numpy:flash"
    about = "tiled with an online softmax, written by hand, forward and backward"
    tile = 4

    def unsupported(self, call: Call) -> str | None:
        """Score and mask texts are programs of their own."""
        if unknown := masks.beyond_names(call):
            return f"it has no {unknown}"
        d = call.definition
        texts = [f for f in ("score", "mask") if getattr(d, f) is not None]
        return f"a {texts[0]} text is a program, and this kernel is written for the named fields" if texts else None

    def arithmetic(self, call: Call) -> Arithmetic:
        """float32 inside (float64 for float64); P and dS rounded to the dtype when read; NumPy's exp is within 2 ulp."""
        f = formats.get(call.dtype).name
        wide = "float64" if f == "float64" else "float32"
        narrow: dict[str, Any] = {} if f == wide else {"input": f, "output": f, "probability": f, "gradient": f}
        exp_error = 8 * float(formats.get(wide).unit_roundoff)
        base = arithmetic.flash(wide, name=self.name, tile=self.tile, flush_to_zero=False, exp_error=exp_error, folded=False)
        return replace(base, order="forward", shift="running", **narrow)

    def forward(self, call: Call) -> Tensors:
        """Output in the dtype, LSE in float32 or wider."""
        out, lse = flash.forward(call.query, call.key, call.value, self.setting(call))
        return {"out": out, "lse": lse} if call.definition.lse else {"out": out}

    def has_backward(self, call: Call) -> bool:
        """Always."""
        return True

    def takes(self, call: Call, outputs: Mapping[str, Array]) -> frozenset[str]:
        """Its own output and LSE, and the gradient of the LSE."""
        return frozenset({"out", "lse", "grad_lse"} if call.definition.lse else ())

    def backward(self, call: Call, given: Mapping[str, Array]) -> Tensors:
        """All gradients of the named fields."""
        s, d = self.setting(call), call.definition
        out, lse = given.get("out"), given.get("lse")
        if out is None or lse is None:
            out, lse = flash.forward(call.query, call.key, call.value, s)
        g = flash.backward(call.query, call.key, call.value, given["grad_out"], out, lse, given.get("grad_lse"), s)
        found = {name: g[name] for name in ("grad_query", "grad_key", "grad_value")}
        if d.sink:
            found["grad_sinks"] = g["sinks"].astype(call.fields["sinks"].dtype)
        if d.alibi and d.alibi_slopes == "given":
            found["grad_alibi_slopes"] = g["slopes"].astype(call.fields["alibi_slopes"].dtype)
        for field, axes, given_mask in (
            ("attn_mask", d.mask_axes, d.attn_mask == "additive"),
            ("bias", d.bias_axes, d.bias),
        ):
            if given_mask:
                found[f"grad_{field}"] = _reduced(g["score"], call.spread(field, axes), call.fields[field])
        return found

    def setting(self, call: Call) -> flash.Setting:
        """What the named fields of a call say, for kernels that take them apart."""
        d = call.definition
        return flash.Setting(
            keep=call.keep,
            kv_head=call.kv_head,
            scale=call.scale,
            add=call.additive,
            slopes=call.slopes,
            distance=abs(call.distance) if d.alibi_distance == "absolute" else call.distance,
            sinks=call.fields["sinks"] if d.sink else None,
            softcap=None if d.softcap is None else call.number(d.softcap),
            dropout=call.fields["dropout_mask"].astype(bool) if d.dropout else None,
            dropout_p=(call.number(d.dropout_p) if d.dropout_p is not None else float(call.fields["dropout_p"]))
            if d.dropout
            else 0.0,
            base2=d.lse_base == "2",
            empty_row=d.empty_row,
            tile=self.tile,
        )


def _reduced(dz: Array, spread: Array, given: Array) -> Array:
    """A gradient over (B, H, n, m) summed over the axes that an added array is repeated along."""
    axes = tuple(k for k in range(4) if spread.shape[k] == 1 and dz.shape[k] != 1)
    return np.asarray(dz.sum(axes, keepdims=True).reshape(given.shape).astype(given.dtype))
