r"""The index form of a statement: ``S_{ij} = \frac{1}{\sqrt{d_k}} \sum_c Q_{ic} K_{jc} \quad\text{where } j \le i``."""

from __future__ import annotations

from collections.abc import Mapping

import sympy as sp

from symattn.program import Program, Statement
from symattn.readings.typesetting.conditions import where_clause
from symattn.readings.typesetting.letters import script
from symattn.readings.typesetting.ordering import absorb_sign, is_negative, split_product
from symattn.readings.typesetting.scalars import PRODUCT, Piece, Printer, at

BIG: Mapping[str, str] = {"sum": r"\sum", "max": r"\max", "prod": r"\prod"}


def constants(program: Program) -> dict[sp.Basic, sp.Expr]:
    """Scalars that a statement defines without reading anything, such as ``scale = 1/sqrt(d)``; formulas show them in place."""
    return {s.target: s.expr for s in program if isinstance(s.target, sp.Symbol) and not s.needs and not s.over}


def with_constants(program: Program, statement: Statement) -> Statement:
    """A statement with the constants of its program put in."""
    table = {k: v for k, v in constants(program).items() if k != statement.target}
    return statement.xreplace(table) if table else statement


def right_hand_side(s: Statement, printer: Printer) -> str:
    """What stands behind the equals sign."""
    e = absorb_sign(s.expr)
    if not s.over:
        return printer.tex(e)
    big = BIG[s.reduce] + script("_", ",".join(printer.tex(a) for a in s.over))
    if s.reduce != "sum":
        return f"{big} {at(printer.piece(e), PRODUCT)}"
    outer, inner = split_product(e, s.over)
    negative = is_negative(outer)
    reduced = Piece(f"{big} {at(printer.piece(inner), PRODUCT)}", PRODUCT)
    if outer in (1, -1):
        return ("-" if negative else "") + reduced.tex
    front = printer.piece(-outer if negative else outer)
    return ("-" if negative else "") + printer.join([front, reduced]).tex


def index_form(s: Statement, printer: Printer, *, where: bool = True) -> str:
    """A whole statement in indices."""
    return f"{printer.tex(s.target)} = {right_hand_side(s, printer)}" + (where_clause(s.where, printer) if where else "")


def walk(s: Statement, program: Program, printer: Printer) -> str:
    """The values of a scan's index in walking order; empty without a scan."""
    if s.scan is None:
        return ""
    last = printer.tex(program.dims[s.scan.index] - 1)
    steps = rf"0, 1, \dots, {last}" if s.scan.step > 0 else rf"{last}, \dots, 1, 0"
    return f"{printer.tex(s.scan.index)} = {steps}"
