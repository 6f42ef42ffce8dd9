"""A program made ready to be shown: constants put in place, row maxima that cancel left out, helpers grouped into steps.

None of this changes what the outputs are; :func:`without_maxima` relies on the claim ``range_only``, which says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import sympy as sp

from symattn.indexed import name_of, reads
from symattn.program import Program, Statement
from symattn.readings.typesetting.indexform import constants


def without_maxima(program: Program) -> Program:
    """The program with every ``range_only`` tensor taken as 0: its value cancels, so no output changes.

    >>> from symattn.definition import Definition
    >>> [s.name for s in without_maxima(Definition(lse=False).program())]
    ['R', 'scale', 'S', 'E', 'l', 'P', 'O']
    """
    gone = {s.name for s in program if s.range_only}
    kept = []
    for s in program:
        if s.name not in gone:
            table = {x: sp.Integer(0) for x in reads(s.expr) if name_of(x) in gone}
            kept.append(s.xreplace(table) if table else s)
    return program.with_statements(kept)


def with_constants_in_place(program: Program) -> Program:
    """The program with scalars such as ``scale = 1/sqrt(d)`` written where they are read, and without their statements.

    >>> from symattn.definition import Definition
    >>> print(with_constants_in_place(Definition(lse=False).program())["S"])
    S[i, j] = R[i, j]/sqrt(d)
    """
    table = constants(program)
    names = {name_of(x) for x in table} - set(program.outputs)
    return program.with_statements(s.xreplace(table) for s in program if s.name not in names)


def grouped(program: Program, helpers: bool) -> list[tuple[Statement, ...]]:
    """The statements of each step, the one that names it last: helpers (``aux``) join the first statement that needs them.

    With ``helpers`` every statement is a step of its own.

    >>> from symattn.definition import Definition
    >>> program = with_constants_in_place(without_maxima(Definition(lse=False).program()))
    >>> [[s.name for s in step] for step in grouped(program, helpers=False)]
    [['R'], ['S'], ['E', 'l', 'P'], ['O']]
    """
    if helpers:
        return [(s,) for s in program]
    steps: list[tuple[Statement, ...]] = []
    waiting: list[Statement] = []
    for s in program:
        if s.aux:
            waiting.append(s)
            continue
        used = _needed(s, waiting)
        waiting = [w for w in waiting if w not in used]
        steps.append((*used, s))
    return steps + [(w,) for w in waiting]


def used(steps: Sequence[Sequence[Statement]]) -> list[tuple[int, ...]]:
    """For each step, the numbers (from 1) of the earlier steps whose tensors its statements read, in conditions too.

    >>> from symattn.definition import Definition
    >>> program = with_constants_in_place(without_maxima(Definition(lse=False).program()))
    >>> used(grouped(program, helpers=False))
    [(), (1,), (2,), (3,)]
    """
    number = {s.name: k for k, group in enumerate(steps, 1) for s in group}
    needed = [{number[n] for s in group for n in s.needs if n in number} for group in steps]
    return [tuple(sorted(x for x in found if x < k)) for k, found in enumerate(needed, 1)]


def _needed(s: Statement, waiting: Sequence[Statement]) -> list[Statement]:
    wanted, found = set(s.needs), []
    for w in reversed(waiting):
        if w.name in wanted:
            found.append(w)
            wanted |= w.needs
    return found[::-1]


def computable(program: Program, given: set[str]) -> Program:
    """The statements whose inputs all have numbers, as a program of their own."""
    known = set(given)
    kept: list[Statement] = []
    for group in program.groups():  # a scan reads itself at earlier steps
        own = {s.name for s in group}
        if {n for s in group for n in s.needs} - own <= known:
            kept += group
            known |= own
    names = {s.name for s in kept}
    return program.with_statements([replace(s) for s in kept], outputs=[o for o in program.outputs if o in names])
