"""The claim that a list of statements, an algorithm's, gives what a definition says: its proof, and exact numbers against it."""

from __future__ import annotations

from dataclasses import dataclass

from symattn.adjoint import adjoint
from symattn.algorithms import gradient_by_tiles, plain
from symattn.definition import Definition
from symattn.program import Program
from symattn.theorems.algorithms import prove_backward, prove_forward
from symattn.theorems.claim import ALL, OPEN, PROVED, REFUTED, Counterexample, Decision, Equal
from symattn.theorems.duality import called
from symattn.theorems.examples import find_counterexample
from symattn.theorems.pages import looked_up

__all__ = ["Runs"]

BLOCK = 2
"""The size of tiles in a search for a counterexample: small enough for several, the last one partial."""


@dataclass(frozen=True)
class Runs:
    """An algorithm has the outputs of its definition, or its gradients.

    Parameters
    ----------
    definition
        With an algorithm.
    gradient
        Whether the gradients are meant.
    program
        A list to be judged in place of the algorithm's own.
    text
        The claim in one line.

    >>> Runs(Definition(algorithm="online")).decide().verdict
    'proved'
    """

    definition: Definition
    gradient: bool = False
    program: Program | None = None
    text: str = ""

    def decide(self) -> Decision:
        """Prove it, or find exact numbers for which it fails."""
        found = (prove_backward if self.gradient else prove_forward)(self.definition, self.program)
        if found.proved:
            return Decision(PROVED, found.method, ALL, found.side)
        shown = self.counterexample()
        if shown is not None:
            return Decision(REFUTED, "exact values", counterexample=shown)
        return Decision(OPEN, "not proved: " + "; ".join(p.text for p in found.failed))

    def counterexample(self) -> Counterexample | None:
        """Exact numbers for which an output differs, or a gradient."""
        own, reference = self._lists()
        names = {s.name: s.name + "*" for s in reference}
        starred = [called(s, names) for s in reference]
        shapes = {n: v for n, v in (own.shapes | reference.shapes).items() if n not in own and n not in reference}
        both = Program((*own, *starred), {**reference.dims, **own.dims}, (), shapes)
        for o in reference.outputs:
            if o in own:
                shown = find_counterexample(Equal(both, o, names[o], self.text), full_rows=False)
                if shown is not None:
                    return shown
        return None

    def _lists(self) -> tuple[Program, Program]:
        """The list that is judged and that of the definition, for tiles of a number of keys."""
        open_ = self.definition.algorithm not in ("online", "paged") and self.definition.block is None
        d = self.definition.replace(lse=True, **({"block": BLOCK} if open_ else {}))
        if d.algorithm == "paged":
            return (d.program() if self.program is None else self.program), looked_up(d)
        program = plain(d).program()
        if self.gradient:
            return (gradient_by_tiles(d).program if self.program is None else self.program), adjoint(program)
        return (d.program() if self.program is None else self.program), program
