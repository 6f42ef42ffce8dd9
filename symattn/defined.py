"""Scores without a value: ``1/(i - j)`` on the diagonal, ``log(s)`` of a negative score. Refused before a truth is made of them.

A program goes on with NaN there, and a truth would be NaN with every digit guaranteed. What can be undefined shows in the
expressions alone, so that a score of ``s/10 + tanh(s)`` costs nothing; only what can be is evaluated, in balls.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import sympy as sp

from symattn.errors import InputValueError, UndecidedError
from symattn.indexed import all_reads, integer_symbols, name_of, reads, tensor
from symattn.program import Program, Statement
from symattn.readings import balls
from symattn.readings.specials import NEGATIVE, POSITIVE, Special

BITS = (128, 512, 2048)
"""Precisions at which a divisor that may be 0 is told from 0; what stays open at the last is left to the truth."""


@dataclass(frozen=True)
class _Check:
    """A part of a statement that may have no value, as a statement of its own."""

    of: Statement
    part: sp.Expr
    statement: Statement


def refuse_undefined(program: Program, inputs: Mapping[str, Any], sizes: Mapping[str, int]) -> None:
    """Refuse scores that have no value at a key that is kept, though everything that they are made of is finite.

    Parameters
    ----------
    program
        An attention program, with its gradient or without. What its row maximum is over are the scores.
    inputs, sizes
        As for an evaluation; incoming gradients are not needed. What is read of the inputs is finite.

    Raises
    ------
    InputValueError
        With the tensor, the expression and the point: a part of a score or of its derivative without a value, a score of +oo, and
        a query all of whose keys have the score -oo. A single score of -oo (``log(0)``) is a weight of 0.

    >>> from symattn.definition import Definition
    >>> program = Definition(score="s/(j - 1)", scale=1).program()
    >>> refuse_undefined(program, {"Q": [[1]], "K": [[1], [2]], "V": [[1], [1]]}, {"n": 1, "m": 2})
    Traceback (most recent call last):
    symattn.errors.InputValueError: Z: `1/(j - 1)` has no value at i=0, j=1; the mask can keep such points out
    """
    checks = list(_checks(program))
    if not checks:
        return
    wanted = [c.statement.name for c in checks]
    scores = _row_maximum(program) if any(c.part.has(sp.log) for c in checks) else ()
    whole = program.with_statements([*program.statements, *(c.statement for c in checks)], [*wanted, *scores])
    lean = whole.live()
    given = {n: inputs[n] for n in lean.inputs}
    shown = {k: v for k, v in sizes.items() if k in {str(a) for a in lean.sizes}}
    for bits in BITS:
        try:
            found = balls.evaluate(lean, given, sizes=shown, bits=bits)
        except UndecidedError:
            continue
        for c in checks:
            _refuse_nan(c, found[c.statement.name])
        if scores:
            _refuse_infinite(program, scores, found)
        if all(balls.is_known(x) for n in wanted for x in found[n].ravel().tolist()):
            return


def partial_parts(e: sp.Basic) -> tuple[sp.Expr, ...]:
    """The largest parts of an expression that do not have a value everywhere: quotients, roots, logarithms.

    Tensors are real numbers there, and indices count from 0.

    >>> from symattn.indexed import indices, tensor
    >>> i, j = indices("i j")
    >>> s = tensor("S", i, j)
    >>> partial_parts(sp.tanh(s) / (i + 1) + 1 / (1 + sp.exp(-s))), partial_parts(s / (i - j) + sp.log(s))
    ((), (1/(i - j), log(S[i, j])))
    """
    rd = {x: sp.Dummy(real=True) for x in reads(e)}
    bare = e.xreplace(rd)
    rd |= {a: sp.Dummy(integer=True, nonnegative=True) for a in integer_symbols(bare) if not a.is_positive}
    back = {short: x for x, short in rd.items()}
    return tuple(sorted((p.xreplace(back) for p in set(_partial(bare.xreplace(rd)))), key=str))


def _partial(e: sp.Basic) -> Iterator[sp.Expr]:
    if isinstance(e, sp.Pow) and not e.base.is_positive:
        whole = e.exp.is_integer and e.exp.is_nonnegative
        root = e.base.is_nonnegative and e.exp.is_positive
        if not (whole or root):
            yield e
            return
    if isinstance(e, sp.log) and not e.args[0].is_positive:
        yield e
        return
    for a in e.args:
        yield from _partial(a)


def _row_maximum(program: Program) -> tuple[str, ...]:
    """The scores, and the last of the statements that make the row maximum of them."""
    over = next((s for s in program if s.reduce == "max"), None)
    last = [s.name for s in program if s.range_only]
    return (name_of(over.reads[0]), last[-1]) if over is not None and last else ()


def _checks(program: Program) -> Iterator[_Check]:
    """What may be undefined in the scores, in what they are made of, and in the gradients and tangents of all of these."""
    over = next((s for s in program if s.reduce == "max"), None)
    if over is None:  # no softmax: nothing stands for an empty row, so everything has to have a value
        made, kept = {s.name for s in program}, set()
    else:
        made, kept = set(over.needs), set(over.conditions)
        for s in reversed(program.statements):
            if s.name in made:
                made |= s.needs
        made |= {"d" + n for n in made}
        made |= {n + "_t" for n in made}
    number = 0
    for s in program:
        if s.name not in made or (over is None and all_reads(s.where)):
            continue  # a condition on values is there to keep out what has no value
        chosen = sp.And(*[c for c in s.conditions if c not in kept])  # which of the arguments of a min or max is taken
        for part, where in [
            *((p, s.where) for p in partial_parts(s.expr)),
            *((p, sp.And(*[c for c in s.conditions if c in kept])) for p in partial_parts(chosen)),
        ]:
            number += 1
            target = tensor(f"part {number}", *s.domain)
            yield _Check(s, part, Statement(target, part, where=where))


def _refuse_nan(c: _Check, values: Any) -> None:
    bad = np.argwhere(
        np.asarray(np.frompyfunc(lambda x: isinstance(x, Special) and x.value != x.value, 1, 1)(values), dtype=bool)
    )
    if len(bad):
        derived = "tangent" if c.of.name.endswith("_t") else "gradient" if c.of.name.startswith("d") else ""
        what = f"is part of the {derived} and has no value" if derived else "has no value"
        raise InputValueError(f"{c.of.name}: `{c.part}` {what}{_at(c.of, bad[0])}; the mask can keep such points out")


def _refuse_infinite(program: Program, scores: tuple[str, ...], found: Mapping[str, Any]) -> None:
    name, top = scores
    s, values = program[name], found[name]
    above = np.argwhere(values == POSITIVE)
    if len(above):
        raise InputValueError(f"{name}: `{s.expr}` is +oo{_at(s, above[0])}; a score is finite, or -oo for a weight of 0")
    below = np.asarray(values == NEGATIVE, dtype=bool)
    row = np.argwhere(below.any(axis=-1) & np.asarray(found[top] == NEGATIVE, dtype=bool))
    if len(row):
        key = int(np.flatnonzero(below[tuple(row[0])])[0])
        raise InputValueError(
            f"{name}: all scores of a query are -oo, `{s.expr}`{_at(s, [*row[0], key])} among them, and have no softmax; "
            "the mask says that a query has no keys"
        )


def _at(s: Statement, point: Any) -> str:
    shown = ", ".join(f"{a}={int(k)}" for a, k in zip(s.domain, point, strict=True))
    return f" at {shown}" if shown else ""
