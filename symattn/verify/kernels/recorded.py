"""Recorded tensors as a kernel: it computes nothing and returns what was computed elsewhere."""

from __future__ import annotations

from collections.abc import Mapping

from symattn import arithmetic as arithmetics
from symattn.arithmetic import Arithmetic
from symattn.intake import Array
from symattn.verify.kernels.base import Kernel, Tensors
from symattn.verify.kernels.call import Call
from symattn.verify.kernels.user import OUTPUTS


class Recorded(Kernel):
    """Tensors that were computed elsewhere, as a kernel that returns them."""

    assumed = True

    def __init__(self, name: str, outputs: Mapping[str, Array]) -> None:
        self.name, self.outputs = name, outputs

    def arithmetic(self, call: Call) -> Arithmetic:
        """A tiled kernel of the inputs' dtype."""
        return arithmetics.default_for(call.dtype)

    def forward(self, call: Call) -> Tensors:
        """What was recorded."""
        return {k: a for k, a in self.outputs.items() if k in OUTPUTS}

    def takes(self, call: Call, outputs: Mapping[str, Array]) -> frozenset[str]:
        """Whatever there is."""
        return frozenset({k for k in ("out", "lse") if k in outputs} | ({"grad_lse"} & set(call.fields)))

    def backward(self, call: Call, given: Mapping[str, Array]) -> Tensors:
        """What was recorded."""
        return {k: a for k, a in self.outputs.items() if k.startswith("grad_")}
