"""A kernel at hand for properties: run it on changed inputs, with what may differ between two correct results."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from symattn.definition import Definition
from symattn.errors import NotStatedError
from symattn.intake import Array
from symattn.theorems.subject import Subject
from symattn.verify.faults.fault import SAME, Predictions, Situation
from symattn.verify.faults.predict import predictions
from symattn.verify.kernels.base import Kernel, Tensors
from symattn.verify.observed import Observed

__all__ = ["Tried", "subject_of"]

Run = Callable[[Mapping[str, Array], bool], Tensors]


@dataclass(frozen=True)
class Tried:
    """A kernel on one input of the run.

    Parameters
    ----------
    kernel
        What is judged.
    observed
        The input, and what the kernel returned on it.
    run
        The kernel on other arrays by field name: outputs, and with True gradients too.
    """

    kernel: Kernel
    observed: Observed
    run: Run
    kept: dict[str, Tensors] = field(default_factory=dict, repr=False)

    @property
    def fields(self) -> Mapping[str, Array]:
        """The arrays of the input, by field name."""
        return self.observed.situation.fields

    @property
    def definition(self) -> Definition:
        """The definition, with heads as the arrays show them."""
        return self.observed.situation.definition

    @property
    def has_gradients(self) -> bool:
        """Whether the run judges gradients."""
        return bool(self.observed.part(True))

    @cached_property
    def keep(self) -> Array:
        """Where query i attends to key j, Boolean (B, H, n, m), by the program."""
        found = self.observed.situation.bound.keep()
        return found.reshape((1,) * (4 - found.ndim) + found.shape)

    @cached_property
    def plain(self) -> Situation:
        """The same input with no gradient of the log-sum-exp, end to end."""
        s = self.observed.situation
        return Situation(s.reference, s.arithmetic)

    @cached_property
    def room(self) -> Predictions:
        """How far a correct kernel may be from what is right, for each tensor."""
        return predictions(self.plain, SAME, backward=self.has_gradients)

    @cached_property
    def tensors(self) -> Tensors:
        """What the kernel returns where the log-sum-exp has no gradient."""
        fields = dict(self.fields)
        if "grad_lse" in fields:
            fields["grad_lse"] = np.zeros_like(fields["grad_lse"])
        return {n: a.astype(np.float64) for n, a in self.run(fields, self.has_gradients).items()}

    @cached_property
    def first(self) -> Tensors:
        """What the kernel returns on the input as it is, in its own dtypes."""
        return self.run(self.fields, self.has_gradients)

    def reach(self, name: str) -> Array:
        """How far each element of a tensor may be off."""
        return self.room[name].reach

    def several(self, name: str) -> Array:
        """Keys, values or their gradients spread to the query heads; :class:`NotStatedError` where the definition has none."""
        if name not in self.fields:
            raise NotStatedError(f"there is no {name} among the inputs")
        return self.fields[name].astype(np.float64)[:, self.observed.situation.reference.call.kv_head]


def subject_of(definition: Definition) -> Subject:
    """The definition as theorems see it, its numbers of heads as they are."""
    return Subject(definition)
