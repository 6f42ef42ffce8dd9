"""A kernel run on one call: on copies, with what it returns checked, and its gradients."""

from __future__ import annotations

from typing import Any

import numpy as np

from symattn import formats
from symattn.arithmetic import Arithmetic
from symattn.errors import KernelError
from symattn.intake import Array
from symattn.verify.kernels.base import Kernel, Tensors, checked, guarded
from symattn.verify.kernels.call import Call

__all__ = ["gradients_of", "outputs_of"]


def outputs_of(kernel: Kernel, call: Call, shapes: dict[str, tuple[int, ...]], declared: Arithmetic) -> Tensors:
    """What a kernel returns.

    Parameters
    ----------
    kernel, call
        What is run, on copies of the arrays.
    shapes
        Of the outputs that the definition has, by field name; a kernel may give the log-sum-exp where the definition does not.
    declared
        How it computes: the format of its output.

    Raises
    ------
    KernelError
        When it raises, or returns something else than the convention asks for.
    """
    out = guarded(kernel.name, lambda: kernel.forward(_copied(call)))
    shapes = dict(shapes)
    if {"query", "key", "value"} <= set(call.sources):
        shapes.setdefault("lse", call.query.shape[:3])
    return checked(kernel.name, out, shapes, {"out": _output_dtype(declared, call)})


def gradients_of(
    kernel: Kernel, call: Call, outputs: Tensors, declared: Arithmetic, *, partial: bool = False
) -> tuple[Tensors, Tensors | None, bool]:
    """A kernel's gradients, what they started from where that was saved, and whether they use the gradient of the LSE.

    Parameters
    ----------
    kernel, call, declared
        As for :func:`outputs_of`; the call has incoming gradients.
    outputs
        What its forward gave.
    partial
        Whether some gradients may be missing.
    """
    given = {"grad_out": call.fields["grad_out"]}
    takes = kernel.takes(call, outputs)
    pool = {**outputs, **{k: call.fields[k] for k in ("grad_lse",) if k in call.fields}}
    given |= {k: pool[k] for k in takes if k in pool}
    raw = guarded(kernel.name, lambda: kernel.backward(_copied(call), {k: a.copy() for k, a in given.items()}))
    inputs = {f"grad_{k}": a for k, a in call.fields.items() if not k.startswith("grad_")}
    raw = {k: _reshaped(a, inputs[k].shape) if k in inputs else a for k, a in raw.items()}
    dtype = _output_dtype(declared, call)
    wanted = [f"grad_{n}" for n in call.sources if call.fields[n].dtype.kind not in "biu"]
    grads = checked(kernel.name, raw, {k: a.shape for k, a in inputs.items()}, dict.fromkeys(wanted, dtype))
    absent = [k for k in wanted if k not in grads]
    if absent and not partial:
        raise KernelError(f"{kernel.name}: its backward gave no {', '.join(absent)}")
    return grads, outputs if {"out", "lse"} <= takes else None, "grad_lse" in takes


def _output_dtype(declared: Arithmetic, call: Call) -> np.dtype[Any]:
    """What the output has to be; where inputs are copies in another dtype than the declared one, so is the output."""
    copied = formats.get(declared.input).storage != str(call.dtype)
    return call.dtype if copied else formats.get(declared.output).dtype


def _reshaped(a: Array, shape: tuple[int, ...]) -> Array:
    """A gradient of something that was handed over with axes of size 1 added."""
    return (
        a.reshape(shape)
        if a.size == int(np.prod(shape)) and tuple(x for x in a.shape if x > 1) == tuple(x for x in shape if x > 1)
        else a
    )


def _copied(call: Call) -> Call:
    """The same call on copies, so that a kernel that writes into its inputs changes nothing here."""
    return Call(call.definition, {k: np.array(a, copy=True) for k, a in call.fields.items()})
