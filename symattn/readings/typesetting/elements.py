r"""One element of a statement in symbols, numbers in the place of its indices: ``\sum_c Q_{5,c} K_{1,c}`` for ``R_{5,1}``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import sympy as sp

from symattn.program import Program, Statement
from symattn.readings.typesetting.indexform import right_hand_side, with_constants
from symattn.readings.typesetting.letters import LATEX, Letters, Style
from symattn.readings.typesetting.scalars import Printer, printer_for
from symattn.readings.typesetting.softmax import Softmax, softmax_element


def element_form(
    program: Program,
    s: Statement,
    at: Mapping[sp.Symbol, int],
    letters: Letters | Mapping[str, str] | None = None,
    *,
    style: Style = LATEX,
    batch: frozenset[sp.Symbol] = frozenset(),
    softmax: Softmax | None = None,
) -> str:
    r"""The right hand side of a statement at one element; the condition of the statement is left out.

    Parameters
    ----------
    at
        Free index -> the number that is written in its place.
    softmax
        Where the statement is the weights of a softmax that is one formula: the softmax.

    >>> from symattn.program import indices, size, tensor
    >>> i, j, c = indices("i j c")
    >>> s = Statement(tensor("R", i, j), tensor("Q", i, c) * tensor("K", j, c), (c,))
    >>> p = Program((s,), {i: size("n"), j: size("m"), c: size("d")}, ("R",))
    >>> element_form(p, s, {i: 5, j: 1})
    '\\sum_c Q_{5,c} K_{1,c}'
    """
    table = {a: sp.Symbol(f"at{k}", integer=True) for k, a in enumerate(at)}
    printer = printer_for(program, s, letters, style, batch)
    order = replace(printer.order, domain=tuple(table.get(a, a) for a in printer.order.domain))
    symbols = {**printer.letters.symbols, **{table[a].name: str(number) for a, number in at.items()}}
    numbered: Printer = replace(
        printer,
        letters=replace(printer.letters, symbols=symbols),
        order=order,
        batch=batch | {table[a] for a in table if a in batch},
    )
    if softmax is not None:
        return softmax_element(softmax, program, numbered, table)
    return right_hand_side(with_constants(program, s).renamed(table), numbered)
