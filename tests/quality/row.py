"""A fault as a row of the tests: where it is planted, on which definition, in which kernels and dtypes it shows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.quality.kernels.correct import CORRECT

DTYPES = ("float64", "float32", "float16", "bfloat16")
NARROW = ("float16", "bfloat16")
UP_TO_32 = ("float32", "float16", "bfloat16")
"""Inputs whose arithmetic inside is float32 at most: what needs the range of float32 does not show in float64."""
EVERY = ("eager", "three-pass", "online-16", "split", "exp2")
TILED = ("online-16", "online-16-backwards", "exp2", "split-tiles")
WIDE = ("three-pass", "online-16", "split", "exp2")
"""Kernels that keep scores in float32: 16-bit stored scores promise nothing at -200 and beyond."""

Wrong = Mapping[str, Any]


@dataclass(frozen=True)
class Row:
    """A planted fault.

    Parameters
    ----------
    id
        That of the table of faults, or X and a number for one that is in no table.
    title
        What the kernel does.
    definition
        Fields of the definition that it is judged by.
    wrong
        What the kernel has in place of what is right, see :mod:`tests.quality.kernels.points`; or a function of the dtype.
    kinds
        Inputs of the default pack, any of which has to show it.
    plans
        The kernels that it can be planted in, and shows in.
    dtypes
        The dtypes in which it shows.
    blind
        Exceptions: (kernel, dtype) in which it does not show, or "kernel" alone; each with its reason beside the row.
    extra
        What belongs to the kernel, not to the fault: a rotation, a norm.
    expected
        The verdict.
    """

    id: str
    title: str
    definition: Mapping[str, Any]
    wrong: Wrong | Callable[[str], Wrong]
    kinds: tuple[str, ...] = ("normal",)
    plans: tuple[str, ...] = EVERY
    dtypes: tuple[str, ...] = DTYPES
    blind: tuple[Any, ...] = ()
    extra: Wrong = field(default_factory=dict)
    expected: str = "fail"

    @property
    def backward(self) -> bool:
        """Whether it is one of the backward alone."""
        return self.id[0] in "BY"

    def planted(self, dtype: str) -> dict[str, Any]:
        """The places that are wrong in a dtype."""
        wrong = self.wrong(dtype) if callable(self.wrong) else self.wrong
        return {**self.extra, **wrong}

    def runs(self) -> list[tuple[str, str]]:
        """The kernels and dtypes in which it shows."""
        return [
            (plan, dtype)
            for plan in self.plans
            for dtype in self.dtypes
            if dtype in CORRECT[plan].dtypes and (plan, dtype) not in self.blind and plan not in self.blind
        ]
