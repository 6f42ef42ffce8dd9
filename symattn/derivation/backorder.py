"""The order in which the steps of a gradient are read: intermediate ones first, then dQ, dK, dV and the other inputs."""

from __future__ import annotations

from symattn.fields import ROWS
from symattn.program import Program, Statement
from symattn.scans import kept_apart

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
    waiting = [group for group in program.groups() if group[0].name not in forward]
    done = [group for group in program.groups() if group[0].name in forward]
    known = {s.name for group in done for s in group} | set(program.inputs)
    at = {group[-1].name: k for k, group in enumerate(waiting)}
    last = len(PLACES)

    def rank(group: tuple[Statement, ...]) -> tuple[int, int, int]:
        s = group[-1]
        letter, _, through = s.name[1:].rstrip("'").partition("_")
        own = PLACES.get(letter.rstrip("'"), last if s.name in program.outputs else -1)
        return own, PLACES.get(through, last), at[s.name]

    while waiting:
        ready = [g for g in waiting if {n for s in g for n in s.needs} - {s.name for s in g} <= known]
        group = min(ready, key=rank)
        waiting.remove(group)
        done.append(group)
        known |= {s.name for s in group}
    return program.with_statements(kept_apart(done))
