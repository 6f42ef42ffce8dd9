"""A kernel that is probed: asked one head at a time, in one dtype; and what one probe finds, a line of the table."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from symattn import formats
from symattn.definition import Definition
from symattn.intake import Array
from symattn.verify.kernels.base import Kernel, guarded
from symattn.verify.kernels.call import Call

__all__ = ["WIDTH", "Line", "Probe", "filled", "first_channel"]

WIDTH = 16
"""Channels of queries, keys and values: a scale of 1/4, which rounds nothing, and a multiple of 8, which some kernels ask for."""


@dataclass(frozen=True)
class Line:
    """One entry of the table: a field, its value, and what is known of it."""

    field: str
    value: str | float | int | None
    remark: str

    def toml(self) -> str:
        """The line; a comment where there is no value."""
        if self.value is None:
            return f"# {self.field}: {self.remark}"
        shown = f'"{self.value}"' if isinstance(self.value, str) else f"{self.value!r}"
        return f"{self.field} = {shown}  # {self.remark}"


@dataclass(frozen=True)
class Probe:
    """A kernel in one dtype, asked one head at a time."""

    kernel: Kernel
    dtype: str

    def __call__(self, query: Array, key: Array, value: Array, scale: str | None = None) -> tuple[Array, Array | None]:
        """Output (n, dv) and LSE (n,), None in 16 bits, as float64, for queries (n, d), keys (m, d), values (m, dv)."""
        call = self._call(query, key, value, scale)
        found = guarded(self.kernel.name, lambda: self.kernel.forward(call))
        lse = found.get("lse")
        fine = lse is not None and lse.dtype.itemsize >= 4
        return found["out"][0, 0].astype(np.float64), lse[0, 0].astype(np.float64) if lse is not None and fine else None

    def gradients(self, query: Array, key: Array, value: Array, grad_out: Array) -> dict[str, Array]:
        """The gradients in float64, by field name."""
        call = self._call(query, key, value, None, grad_out)
        forward = guarded(self.kernel.name, lambda: self.kernel.forward(call))
        given = {"grad_out": call.fields["grad_out"]}
        given |= {k: forward[k] for k in self.kernel.takes(call, forward) if k in forward}
        if "grad_lse" in self.kernel.takes(call, forward):
            given["grad_lse"] = np.zeros(call.query.shape[:3], call.dtype)
        found = guarded(self.kernel.name, lambda: self.kernel.backward(call, given))
        return {k: a[0, 0].astype(np.float64) for k, a in found.items()}

    def can(self, *, scale: bool = False, backward: bool = False) -> bool:
        """Whether the kernel takes the plain definition in this dtype, with a scale, and has gradients."""
        x = np.zeros((2, WIDTH))
        call = self._call(x, x, x, "3/4" if scale else None)
        return self.kernel.unsupported(call) is None and (not backward or self.kernel.has_backward(call))

    def _call(self, query: Array, key: Array, value: Array, scale: str | None, grad_out: Array | None = None) -> Call:
        kind = formats.get(self.dtype).dtype
        given = {"query": query, "key": key, "value": value} | ({} if grad_out is None else {"grad_out": grad_out})
        fields = {k: np.ascontiguousarray(a, dtype=np.float64).astype(kind)[None, None] for k, a in given.items()}
        return Call(Definition(scale=scale), fields)

    def rounded(self, x: Array | float) -> Array:
        """Numbers rounded to the dtype, in float64."""
        return np.asarray(x, dtype=np.float64).astype(formats.get(self.dtype).dtype).astype(np.float64)

    @property
    def unit(self) -> float:
        """The unit roundoff of the dtype."""
        return float(formats.get(self.dtype).unit_roundoff)


def first_channel(x: Array, width: int = WIDTH) -> Array:
    """A column as the first channel."""
    return np.pad(np.asarray(x, dtype=np.float64).reshape(-1, 1), [(0, 0), (0, width - 1)])


def filled(scores: Array, key: Array) -> tuple[Array, Array]:
    """Queries with a given first channel, and at least as many keys: those added have a score of -1000, and weight 0."""
    query, more = first_channel(scores), max(len(scores) - len(key), 0)
    query[:, 1] = 1
    far = np.zeros((more, WIDTH))
    far[:, 1] = -4000
    return query, np.concatenate([key, far])
