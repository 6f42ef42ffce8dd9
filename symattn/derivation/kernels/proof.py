"""What a page says of the proof: its steps as the machine took them, and a wrong kernel that it refuses."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import sympy as sp

from symattn.algorithms import gradient_by_tiles
from symattn.definition import Definition
from symattn.derivation.blocks import Block, Display, Part, Prose, Section, Table
from symattn.derivation.kernels.table import Fault, Row
from symattn.derivation.script import Script
from symattn.program import Program
from symattn.theorems.algorithms import prove_backward, prove_forward
from symattn.theorems.claim import REFUTED
from symattn.theorems.proofs import Part as ProofStep
from symattn.theorems.proofs import Proof
from symattn.theorems.runs import BLOCK, SIZES, Runs
from symattn.theorems.walks import Walk

__all__ = ["Known", "known_of", "proof_sections"]

PROVED = "proved for all sizes"


@dataclass(frozen=True)
class Known:
    """What is known of a list of an algorithm: the proof, and how to say it."""

    proof: Proof
    says: str
    gradient: bool


def known_of(definition: Definition, gradient: bool) -> Known:
    """Run the proof of an algorithm; where it does not go through, look for numbers against it.

    >>> known_of(Definition(algorithm="online"), gradient=False).says
    'proved for all sizes'
    """
    proof = (prove_backward if gradient else prove_forward)(definition)
    if proof.proved:
        return Known(proof, PROVED, gradient)
    small = definition.replace(block=BLOCK) if definition.algorithm != "online" else definition
    found = Runs(small, gradient).counterexample()
    if found is not None:
        return Known(proof, f"refuted at {found.what}", gradient)
    sizes = ", ".join(f"{n} = {SIZES[n]}" for n in ("n", "m"))
    return Known(proof, f"not proved; checked with exact numbers at {sizes}", gradient)


def proof_sections(row: Row, definition: Definition, known: tuple[Known, ...], script: Script) -> Iterator[Section]:
    """The proof of each list, and the faults that it refuses."""
    for k in known:
        what = "the gradient" if k.gradient else "the outputs"
        title = f"Proof that {what} are equal" if not k.gradient else "Proof that the gradients are equal"
        lead = Prose(
            (
                f"Theorem {row.theorem}: what follows are the steps that the machine took for this definition, "
                f"with the size of a tile left open. Status: {k.says}.",
            )
        )
        rows = tuple((str(n + 1), said, p.method if p.proved else "not proved") for n, (said, p) in enumerate(_said(k, script)))
        blocks: list[Block] = [lead, Table(("", "what is shown", "how"), rows)]
        if k.proof.side:
            blocks.append(Prose((f"Settled apart: {k.proof.side.replace('-oo', '-∞')}.",)))
        yield Section(title, tuple(blocks), k.says)
        fault = _refused(row, definition, k.gradient, script)
        if fault is not None:
            yield fault


def _said(known: Known, script: Script) -> Iterator[tuple[Part, ProofStep]]:
    """The steps of a proof; a step that is about a closed form says which."""
    make = Walk.gradient if known.gradient else Walk.forward
    closed = make(known.proof.definition).closed if known.proof.definition.algorithm != "paged" else {}
    texts = {f"{c} satisfies the step of": name for name, c in closed.items()}
    for p in known.proof.parts:
        name = next((n for start, n in texts.items() if p.text.startswith(start)), None)
        yield (f"the closed form of {_word(name)} satisfies its step" if name else p.text), p


WORDS = {"ls": "the running normaliser", "Os": "the running output"}


def _word(name: str) -> str:
    return WORDS.get(name, f"the running sum of {name.removesuffix('s')}")


def _refused(row: Row, definition: Definition, gradient: bool, script: Script) -> Section | None:
    """A wrong kernel: which steps of the proof fail, and numbers for which it is wrong."""
    d = definition if definition.algorithm == "online" else definition.replace(block=BLOCK)
    right = gradient_by_tiles(d).program if gradient else d.program()
    for fault in row.faults:
        if (fault.name in ("rs", "wt")) == gradient:
            continue
        wrong = fault.planted(right)
        if wrong is not None:
            return _section(fault, d, wrong, gradient, script)
    return None


def _section(fault: Fault, d: Definition, wrong: Program, gradient: bool, script: Script) -> Section | None:
    proof = (prove_backward if gradient else prove_forward)(d, wrong)
    decision = Runs(d, gradient, wrong).decide()
    if proof.proved or decision.verdict != REFUTED or decision.counterexample is None:
        return None
    shown = decision.counterexample
    failed = "; ".join(p.text for p in proof.failed)
    own = Script(wrong, script.letters, script.lifted)
    sizes = ", ".join(f"{n} = {v}" for n, v in sorted(shown.sizes.items()) if v > 1)
    return Section(
        "A wrong kernel is refused" if not gradient else "A wrong gradient is refused",
        (
            Prose((f"{fault.says}:",)),
            Display((own.statement(wrong[fault.name], where=False),)),
            Prose((f"These steps of the proof do not go through: {failed}.",)),
            Table(
                ("exact numbers", "the wrong kernel", "the definition"),
                ((f"{shown.what} at {sizes}", _number(shown.left), _number(shown.right)),),
            ),
        ),
        "refuted by exact numbers",
    )


def _number(x: sp.Expr) -> str:
    """A number as text, to six digits."""
    return f"{float(x.evalf(20)):.6g}"
