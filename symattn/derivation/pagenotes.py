"""The notes at the end of a page: what letters, dots and decimals mean on it, where counting starts, why numbers are missing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from symattn.definition import Definition
from symattn.derivation.derived import Derived
from symattn.derivation.document import Step
from symattn.derivation.naming import LEGEND
from symattn.derivation.nodeprint import Style
from symattn.derivation.unicodemath import unicode_math
from symattn.derivation.values import HEADS, Numbers
from symattn.program import Program


@dataclass(frozen=True)
class Notes:
    """What the notes of a page are about: its definition, what was derived, the program and steps that are shown, the numbers."""

    definition: Definition
    made: Derived
    program: Program
    steps: Sequence[Step]
    numbers: Numbers | None
    style: Style
    places: int
    columns: bool = False

    def found(self) -> tuple[str, ...]:
        """All of them, in the order of the page."""
        steps, numbers, style = self.steps, self.numbers, self.style
        found = []
        worked = any(s.lines for s in steps)
        legend = [f"{letter} is {what}" for letter, what in self.legend()] if worked or any(s.formulas for s in steps) else []
        if legend:
            found.append(f"{', '.join(legend)}.")
        if self.columns:
            found.append("A position is a column of every matrix here, and a softmax runs down each column.")
        if not style.origin:
            found.append("Positions, heads and components are counted from 0, as in the formulas.")
        elif numbers is not None:
            found.append("Positions, heads and components are counted from 1.")
        if numbers is not None:
            heads = numbers.heads
            if heads > 1:
                shown = (
                    f" Matrices are shown for the first {HEADS} of {heads} heads."
                    if heads > HEADS and not numbers.page.values
                    else ""
                )
                found.append(("Of several heads, the first one is worked out." if worked else "") + shown)
            if any(c.masked for s in steps for g in s.grids for row in g.cells for c in row):
                found.append("A dot in a matrix marks a place outside the mask: nothing is computed there.")
            carried = " In a line that computes with decimals they carry two more places." if worked else ""
            found.append(f"Decimals are rounded once from the exact value, to {self.places} places.{carried}")
            if any(s.numbers == "enclosed" for s in steps):
                found.append("Numbers are enclosed where an interval around the exact value decides every digit that is printed.")
        if any(s.backward for s in steps):
            found.append(
                "A gradient dT has the shape of T; the loss is the sum of all products of an output and its incoming gradient."
            )
            if numbers is not None and not any(s.backward for s in steps if s.grids):
                found.append("The gradient has no numbers because the example gives no grad_out.")
        if self.made.tangent:
            found += self.on_tangents()
        return tuple(n.strip() for n in found if n)

    def on_tangents(self) -> list[str]:
        """What a dot means, what moves, and what a Hessian-vector product is of."""
        steps, numbers = self.steps, self.numbers
        forward = {s.name for s in self.made.program.statements[: self.made.forward]}
        moves = [n for n in self.made.program.inputs if n.endswith("_t") and n not in self.definition.parameters]
        *most, last = [unicode_math(self.style.name(n[:-2]), labels=True) for n in moves] or ["nothing"]
        moving = f"{', '.join(most)} and {last} move" if most else f"{last} moves"
        found = [f"A dot marks the tangent of a tensor: how fast it moves when {moving} along the dotted directions."]
        if any(n + "_t" in self.made.tangent for n in self.made.gradient):
            fixed = not any(n[:-2][:1] == "d" and n[:-2][1:] in forward for n in moves)
            found.append(
                "The tangent of a gradient is a product of the Hessian of the loss with the direction"
                + ("; the incoming gradient is held fixed." if fixed else ".")
            )
        if numbers is not None and not any(s.tangent for s in steps if s.grids):
            found.append("The tangent has no numbers because the example gives no direction, such as tangent_query.")
        elif numbers is not None:
            found.append("What the example gives no direction for does not move.")
        return found

    def legend(self) -> list[tuple[str, str]]:
        """The letters of inputs that do not speak for themselves, each with what it stands for."""
        own = self.definition.parameters
        return [
            (unicode_math(self.style.name(n), labels=True), what)
            for n, what in LEGEND.items()
            if n in self.program.inputs and n not in own
        ]
