"""Theorems about latent attention: the up-projections of keys and values may be taken to the queries and to the outputs."""

from __future__ import annotations

from dataclasses import dataclass, replace

from symattn.adjoint import adjoint
from symattn.errors import NotStatedError
from symattn.program import Program
from symattn.theorems.absorption import prove_same
from symattn.theorems.claim import ALL, OPEN, PROVED, REFUTED, Claim, Counterexample, Decision
from symattn.theorems.subject import Subject
from symattn.theorems.theorem import Theorem
from symattn.theorems.trials import first_difference

__all__ = ["ROWS", "Absorbed"]


@dataclass(frozen=True)
class Absorbed:
    """Two programs with the same inputs have the same outputs, or the same gradients.

    Parameters
    ----------
    program, other
        Their statements.
    text
        The claim as people write it.
    gradient
        Whether the gradients with respect to all inputs are meant.

    >>> from symattn.definition import Definition
    >>> a, b = (Definition(form=x, heads=2).program() for x in ("mla", "mla-absorbed"))
    >>> Absorbed(a, b).decide().verdict
    'proved'
    """

    program: Program
    other: Program
    text: str = ""
    gradient: bool = False

    def decide(self) -> Decision:
        """From tensor to tensor; else a counterexample."""
        one, other, outputs = self._lists()
        if prove_same(one, other, outputs):
            return Decision(PROVED, "normal form, tensor by tensor", ALL)
        found = self.counterexample()
        if found is not None:
            return Decision(REFUTED, "exact values", counterexample=found)
        return Decision(OPEN, "not proved from tensor to tensor")

    def _lists(self) -> tuple[Program, Program, tuple[str, ...]]:
        if not self.gradient:
            return self.program, self.other, self.program.outputs
        one, other = adjoint(self.program), adjoint(self.other)
        return one, other, (*self.program.outputs, *one.outputs)

    def counterexample(self) -> Counterexample | None:
        """Exact numbers for which an output differs."""
        one, other, outputs = self._lists()
        left, right = (p.with_statements(p.statements, outputs).live() for p in (one, other))
        return first_difference(left, right)

    def planted(self) -> Absorbed:
        """The claim with the weights of the other program applied to half the values."""
        name = self.other.outputs[0]
        statements = [replace(s, expr=s.expr / 2) if s.name == name else s for s in self.other]
        return replace(self, other=self.other.with_statements(statements))


def _absorbed(s: Subject) -> tuple[Claim, ...]:
    d = s.definition
    if d.form not in ("mla", "mla-absorbed"):
        raise NotStatedError("this definition is not latent attention")
    expanded, absorbed = (d.replace(form=form).program() for form in ("mla", "mla-absorbed"))
    return (
        Absorbed(expanded, absorbed, "the outputs of the absorbed form are those of the expanded one"),
        Absorbed(expanded, absorbed, "and so are its gradients with respect to all inputs", gradient=True),
    )


ROWS: tuple[Theorem, ...] = (
    Theorem(
        "latent-absorption",
        "Latent attention: absorbed = expanded",
        "Keys W_uk c_j and values W_uv c_j made of a latent c_j give what the queries W_uk^T q_i give on the latents themselves, "
        "W_uv applied to what they sum up to; the same holds of all gradients.",
        r"q_i^\top (W_{uk}\,c_j) = (W_{uk}^\top q_i)^\top c_j,\qquad \sum_j P_{ij}\,W_{uv}\,c_j = W_{uv}\sum_j P_{ij}\,c_j",
        "arXiv 2405.04434, section 2.1.2",
        _absorbed,
        (),
        {"form": "mla", "heads": 4, "causal": "top-left", "rope": "half"},
    ),
)
"""The rows of this family."""
