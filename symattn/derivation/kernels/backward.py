"""The sections of a backward kernel: weights from the log-sum-exp, the row sum from the output, sums tile by tile."""

from __future__ import annotations

from collections.abc import Iterator

from symattn.algorithms import flash_list, gradient_by_tiles
from symattn.definition import Definition
from symattn.derivation.blocks import Block, Display, Prose, Section, Table
from symattn.derivation.script import Script
from symattn.presentation.presented import CHECKED, PROVED
from symattn.program import Program, Statement

__all__ = ["backward_sections", "saved_sections"]


def saved_sections(definition: Definition, script: Script) -> Iterator[Section]:
    """How the gradient of a definition becomes one that reads no weights: rewritings, each with how it is known."""
    program, steps = flash_list(definition)
    own = Script(program, script.letters, script.lifted)
    blocks: list[Block] = [
        Prose(
            (
                "The gradient above reads the weights. They are not kept: with the log-sum-exp of its row, which the "
                "forward pass saves, a weight is one exponential of a recomputed score.",
            )
        ),
        Display(tuple(own.statement(program[n], where=False) for n in ("L", "P_b", "P0_b") if n in program)),
    ]
    if "D" in program:
        blocks += [
            Prose(("What all weights of a row share is a sum over the components of the output, not over the keys:",)),
            Display((own.statement(program["D"], where=False),)),
        ]
    rows = tuple(dict.fromkeys((s.rule, s.reason, s.status) for s in steps if s.status in (PROVED, CHECKED)))
    blocks.append(Table(("rewriting", "what was done", "how it is known"), rows))
    weakest = "proved for all sizes" if all(s.status != CHECKED for s in steps) else "some rewritings are checked at 400 bits"
    yield Section("Weights that are found again", tuple(blocks), weakest)


def backward_sections(definition: Definition, script: Script) -> Iterator[Section]:
    """The sums of the gradient as sums over tiles."""
    program = gradient_by_tiles(definition).program
    whole = flash_list(definition)[0]
    own = Script(program, script.letters, script.lifted)
    changed = [s for s in program if _by_tiles(s, program, whole)]
    lead = Prose(
        (
            "Every key is in one tile at one place, so a sum over keys is a sum over tiles of sums over places. A gradient of "
            "queries is added up along the tiles; a gradient of keys is made where the keys are.",
        )
    )
    yield Section("Sums tile by tile", (lead, Display(tuple(own.statement(s) for s in changed))), "proved for all sizes")


def _by_tiles(s: Statement, program: Program, whole: Program) -> bool:
    """Whether a statement of the gradient sums, or looks up, otherwise than over whole rows."""
    first = {x.name for x in program.statements} - {x.name for x in whole.statements}
    gradient = s.name.startswith("d")
    return gradient and (s.name in first or (s.name in whole and bool(s.needs & first)) or s.over != whole[s.name].over)
