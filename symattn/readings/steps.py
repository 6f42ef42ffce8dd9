"""A scan group step by step: what its statements are at one step, and the order of the steps.

At a step the index of the scan is a number and no axis: evaluators keep it in ``Subscripts.steps`` and evaluate the statements
without it, so that expressions are compiled once for all steps.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import sympy as sp

from symattn.program import Program, Statement, tensor
from symattn.readings.sizes import Extents
from symattn.readings.subscripts import Subscripts
from symattn.scans import scan_axis

__all__ = ["AtStep", "Stepwise", "at_step", "place_of", "walk"]


@dataclass(frozen=True)
class AtStep(Statement):
    """A statement of a scan at one step: its target lacks the index of the scan."""

    def __post_init__(self) -> None:
        """Nothing to check: the statement that it is made of has been."""


def at_step(s: Statement) -> AtStep:
    """The statement at whatever step is set.

    >>> from symattn.program import Scan, indices
    >>> t, a = indices("t a")
    >>> print(at_step(Statement(tensor("h", t, a), tensor("h", t - 1, a) + tensor("x", t), scan=Scan(t))))
    h[a] = h[t - 1, a] + x[t]
    """
    assert s.scan is not None
    target = tensor(s.name, *(a for a in s.indices if a != s.scan.index))
    return AtStep(target, s.expr, s.over, s.reduce, s.where, s.range_only, s.aux)


def walk(group: tuple[Statement, ...], length: int) -> Iterator[int]:
    """The values of the scan's index in walking order."""
    assert group[0].scan is not None
    return iter(range(length) if group[0].scan.step > 0 else range(length - 1, -1, -1))


def place_of(s: Statement, k: int) -> tuple[Any, ...]:
    """Where the values of step ``k`` go in the array of the whole tensor: a basic index that gives a view."""
    return (*(slice(None),) * (scan_axis(s) or 0), np.int64(k), ...)


class Stepwise(Extents):
    """What the evaluators share: tensors as integers where they hold integers, and the walk along a scan."""

    def __init__(self, program: Program, sizes: Mapping[sp.Symbol, int], given: Mapping[str, Any]) -> None:
        super().__init__(program, sizes)
        self.subscripts = Subscripts(self.integers, sizes, given.get, program.scan_axes)
        self._integers: dict[str, npt.NDArray[np.int64] | None] = {}

    def integers(self, name: str) -> npt.NDArray[np.int64] | None:
        """A tensor as int64 array where all its numbers are integers, else None."""
        if name not in self._integers:
            self._integers[name] = self.whole_numbers(self.value_of(name))
        return self._integers[name]

    def value_of(self, name: str) -> Any:
        """A tensor as far as it is known."""
        raise NotImplementedError

    def whole_numbers(self, array: Any) -> npt.NDArray[np.int64] | None:
        """An array as int64 where all its numbers are integers, else None."""
        raise NotImplementedError

    def begin(self, s: Statement) -> None:
        """Fill what a statement of a scan defines with zeros."""
        raise NotImplementedError

    def advance(self, s: Statement, part: Statement, place: tuple[Any, ...]) -> Any:
        """Evaluate ``part``, the statement ``s`` at the step that is set, and keep its values at ``place``."""
        raise NotImplementedError

    def scanned(self, group: tuple[Statement, ...]) -> None:
        """A scan group, step by step."""
        scan = group[0].scan
        assert scan is not None
        for s in group:
            self.begin(s)
            self._integers[s.name] = np.zeros(self.shape(s.indices), dtype=np.int64)
        parts = [at_step(s) for s in group]
        for k in walk(group, self.size(scan.index)):
            self.subscripts.steps[scan.index] = k
            for s, part in zip(group, parts, strict=True):
                place = place_of(s, k)
                value = self.advance(s, part, place)
                whole = self._integers[s.name]
                if whole is not None:
                    found = self.whole_numbers(value)
                    if found is None:
                        self._integers[s.name] = None
                    else:
                        whole[place] = found
        del self.subscripts.steps[scan.index]
