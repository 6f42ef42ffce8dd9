"""The order in which the steps of a gradient are read: intermediate ones first, then dQ, dK, dV and the other inputs."""

from __future__ import annotations

from symattn.fields import ROWS
from symattn.program import Program, Statement

PLACES = {row.letter: place for place, row in enumerate(ROWS) if row.letter not in ("R", "S", "A", "Z", "P", "L", "O", "Y")}


def in_field_order(program: Program, forward: Program) -> Program:
    """The program with its backward statements sorted, each behind those that it reads.

    A gradient of an input comes when no intermediate statement can, in the order of the fields; so do dQ, dK and dV where they
    are intermediate themselves, and the shares that are added up to one of them.

    >>> from symattn.adjoint import adjoint
    >>> from symattn.definition import Definition
    >>> program = Definition(lse=False).program()
    >>> [s.name for s in in_field_order(adjoint(program), program)][-3:]
    ['dQ', 'dK', 'dV']
    """
    waiting = [s for s in program if s.name not in forward]
    done = [s for s in program if s.name in forward]
    known = {s.name for s in done} | set(program.inputs)
    at = {s.name: k for k, s in enumerate(waiting)}
    last = len(PLACES)

    def rank(s: Statement) -> tuple[int, int, int]:
        letter, _, through = s.name[1:].rstrip("'").partition("_")
        own = PLACES.get(letter.rstrip("'"), last if s.name in program.outputs else -1)
        return own, PLACES.get(through, last), at[s.name]

    while waiting:
        s = min((w for w in waiting if w.needs <= known), key=rank)
        waiting.remove(s)
        done.append(s)
        known.add(s.name)
    return program.with_statements(done)
