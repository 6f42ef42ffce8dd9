"""Claims about one value: a tensor of a program at given exact inputs, infinities among them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import sympy as sp

from symattn.indexed import Table
from symattn.program import Program
from symattn.readings import exact
from symattn.theorems.claim import ALL, PROVED, REFUTED, Counterexample, Decision

__all__ = ["Valued"]


@dataclass(frozen=True)
class Valued:
    """``name`` has the value ``value`` in every entry, at these inputs.

    Parameters
    ----------
    program, name
        The statements, and the tensor that is evaluated exactly.
    value
        An exact number, ``oo``, ``-oo`` or ``nan``.
    inputs, sizes
        As for :func:`symattn.readings.exact.evaluate`.
    text
        The claim as people write it.

    >>> from symattn.indexed import indices, size, tensor
    >>> from symattn.program import Statement
    >>> j, = indices("j")
    >>> total = Program((Statement(tensor("L"), tensor("x", j), (j,), "max"),), {j: size("m")}, ("L",))
    >>> Valued(total, "L", sp.Integer(2), {"x": [1, 2]}).decide().verdict
    'proved'
    """

    program: Program
    name: str
    value: sp.Expr
    inputs: Mapping[str, Any] = field(default_factory=Table)
    sizes: Mapping[str, int] = field(default_factory=Table)
    text: str = ""

    def decide(self) -> Decision:
        """Evaluate it."""
        found = self.counterexample()
        return Decision(PROVED, "exact values", ALL) if found is None else Decision(REFUTED, "exact values", counterexample=found)

    def counterexample(self) -> Counterexample | None:
        """The entry that has another value."""
        values = np.asarray(exact.evaluate(self.program, self.inputs, sizes=self.sizes)[self.name], dtype=object)
        for at in np.ndindex(*values.shape):
            x = sp.sympify(values[at])
            same = x == self.value or (x.is_finite and self.value.is_finite and exact.compare(x, self.value) == 0)
            if not same:
                what = self.name + (f"[{', '.join(map(str, at))}]" if at else "")
                return Counterexample(dict(self.inputs), dict(self.sizes), what, x, self.value, self.text)
        return None
