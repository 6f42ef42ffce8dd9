"""A kernel of the tests: an algorithm with its sizes and casts, the faults planted in it, and the arithmetic that it declares."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tests.quality.kernels import backward
from tests.quality.kernels.forward import ALGORITHMS
from tests.quality.kernels.points import points
from tests.quality.kernels.scene import Array, Scene

NARROW = ("float16", "bfloat16")


@dataclass(frozen=True)
class Plan:
    """How a kernel computes.

    ``stale`` is how far in nats the maximum may lag; ``probability`` the dtype of P (None: that of the query where a product
    reads it in a tiled kernel); ``dq_format`` and ``dkv_format`` the dtypes in which gradients grow from tile to tile;
    ``declares`` gives the arithmetic of an input dtype.
    """

    name: str
    algorithm: str
    declares: Callable[[str], Any]
    tile: int = 32
    backwards: bool = False
    splits: int = 3
    base2: bool = False
    stale: float = 0.0
    probability: str | None = None
    query_tile: int | None = None
    dq_format: Any = None
    dkv_format: Any = None
    dtypes: tuple[str, ...] = ("float64", "float32", *NARROW)

    def low_dtype(self, dtype: Any) -> Any:
        """What P and dS are rounded to when a product reads them."""
        return getattr(np, self.probability, _bfloat16()) if self.probability else dtype

    def filled(self, dtype: Any) -> Plan:
        """The same with ``"input"`` as the dtype that it is."""
        own = {f: dtype for f in ("dq_format", "dkv_format") if getattr(self, f) == "input"}
        return replace(self, **own)

    def kernel(self, dtype: str, wrong: Mapping[str, Any] | None = None) -> Callable[..., Any]:
        """The kernel with faults planted, following the calling convention, with its backward and what it declares."""
        return Planted(self, dtype, dict(wrong or {}))


class Planted:
    """A function of the calling convention."""

    arrays = "numpy"

    def __init__(self, plan: Plan, dtype: str, wrong: dict[str, Any]) -> None:
        self.plan, self.arithmetic = plan, plan.declares(dtype)
        stored_steps = plan.algorithm in ("eager", "three-pass", "log")
        if not stored_steps and "probability" not in wrong:
            low = plan.low_dtype(np.dtype(dtype) if dtype != "bfloat16" else _bfloat16())
            wrong = wrong | {"probability": lambda p: p.astype(low).astype(p.dtype)}
        self.at = points(wrong)
        self.backward = self._stored if stored_steps else self._recomputing

    def __call__(self, query: Array, key: Array, value: Array, **options: Any) -> tuple[Array, Array]:
        """Output and LSE."""
        return ALGORITHMS[self.plan.algorithm](self._scene(query, key, value, options), self.plan)

    def _scene(self, query: Array, key: Array, value: Array, options: dict[str, Any], back: bool = False) -> Scene:
        low = str(query.dtype) in NARROW and self.plan.algorithm == "eager"
        return Scene(query, key, value, options, self.at, query.dtype if low else None, back)

    def _recomputing(
        self,
        query: Array,
        key: Array,
        value: Array,
        grad_out: Array,
        out: Array,
        lse: Array,
        grad_lse: Array | None = None,
        **options: Any,
    ) -> dict[str, Array]:
        scene = self._scene(query, key, value, options, back=True)
        plan = self.plan.filled(query.dtype)
        return backward.recomputing(scene, plan, grad_out, out, lse, grad_lse)

    def _stored(
        self, query: Array, key: Array, value: Array, grad_out: Array, grad_lse: Array | None = None, **options: Any
    ) -> dict[str, Array]:
        scene = self._scene(query, key, value, options, back=True)
        return backward.stored(scene, self.plan, grad_out, None, None, grad_lse)


def _bfloat16() -> Any:
    import ml_dtypes

    return np.dtype(ml_dtypes.bfloat16)
