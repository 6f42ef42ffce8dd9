"""The lists that one run was judged by, with their inputs: what bounds are evaluated on once more, in other declarations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from symattn.arithmetic import Arithmetic
from symattn.binding import unbind
from symattn.fields import field_of
from symattn.intake import Array
from symattn.program import Program
from symattn.readings import rounding, slopes
from symattn.verify.faults.fault import Situation
from symattn.verify.observed import Observed

__all__ = ["Asked", "Found", "asked"]


@dataclass(frozen=True)
class Found:
    """One tensor in the layout of its field.

    ``value`` is the float64 value, ``own`` at most how far it is from the exact one, ``bound`` the greatest error of a conforming
    kernel; ``parts`` splits the bound, where asked for.
    """

    value: Array
    own: Array
    bound: Array
    parts: Mapping[str, Array] | None = None


@dataclass(frozen=True)
class Asked:
    """A list with its inputs, and the tensors of it that were judged.

    Parameters
    ----------
    situation
        Where the list is run.
    program, inputs
        The list and its arrays.
    names
        Name in the list by field.
    """

    situation: Situation
    program: Program
    inputs: Mapping[str, Any]
    names: Mapping[str, str]

    def bounded(
        self, arithmetic: Arithmetic, *, only: Iterable[str] | None = None, parts: bool = False, own: bool = True
    ) -> dict[str, Found]:
        """Values and bounds by field, in a declaration that runs the same list."""
        names = {f: n for f, n in self.names.items() if only is None or f in only}
        found = slopes.bounds(
            self.program, self.inputs, arithmetic, tuple(names.values()), sizes=self.sizes, parts=parts, own=own
        )
        return {f: self._shown(n, found[n]) for f, n in names.items()}

    def plain(self, arithmetic: Arithmetic) -> dict[str, Found]:
        """The same by plain propagation: faster, and never a smaller bound."""
        boxes = rounding.evaluate(self.program, self.inputs, arithmetic, sizes=self.sizes)
        return {f: self._shown(n, boxes[n]) for f, n in self.names.items()}

    @property
    def sizes(self) -> dict[str, int]:
        """The sizes of the bound program, by name."""
        return {str(k): v for k, v in self.situation.bound.sizes.items()}

    def back(self, name: str, x: Array) -> Array:
        """An array of the list in the layout of its field."""
        return unbind(self.situation.bound, name, x)[1]

    def _shown(self, name: str, found: Any) -> Found:
        parts = getattr(found, "parts", None)
        shown = None if parts is None else {k: self.back(name, x) for k, x in parts.items()}
        value, own, bound = (self.back(name, x) for x in (found.value, found.own, found.bound))
        return Found(value, own, bound, shown)


def asked(o: Observed, situation: Situation | None = None) -> list[Asked]:
    """The lists of the outputs and of the gradients that were judged on one input, where there are any.

    Parameters
    ----------
    o
        What was judged.
    situation
        Another declaration of the same input.
    """
    s = situation or o.situation
    found = []
    for gradient in (False, True):
        tensors = o.part(gradient)
        program = s.backward if gradient else s.forward if tensors else None
        if not tensors or program is None:
            continue
        inputs = s.reference.seeds(with_lse=s.with_lse) if gradient else dict(s.bound.inputs)
        if gradient and s.saved is not None:
            inputs |= s.reference.saved(s.saved)
        own = s.definition.parameters
        names = {f: n for n in program.outputs if (f := field_of(n, own)) in tensors}
        found.append(Asked(s, program, {n: inputs[n] for n in program.inputs}, names))
    return found
