"""The pages of costs: one variant statement by statement, or several side by side with a recurrent layer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import sympy as sp

from symattn.adjoint import adjoint
from symattn.cost.baseline import recurrent_layer
from symattn.cost.counted import Cost, bytes_of, count, sequential
from symattn.cost.operations import KINDS, Operations
from symattn.cost.paths import Path, longest_path
from symattn.cost.traffic import tiled_bytes
from symattn.definition import Definition
from symattn.derivation.blocks import Block, Part, Prose, Section, Table
from symattn.derivation.document import Derivation, Formula
from symattn.derivation.shaping import with_constants_in_place
from symattn.errors import DefinitionError, SymattnError
from symattn.indexed import index, size
from symattn.presentation import present
from symattn.program import Program
from symattn.readings.latex import LATEX, MARKDOWN, Letters, Style
from symattn.readings.typesetting.conditions import condition
from symattn.readings.typesetting.scalars import Printer

__all__ = ["RECURRENT", "Row", "compared", "cost_of", "order"]

N, M, D, DV = size("n"), size("m"), size("d"), size("dv")
SELF: Mapping[sp.Symbol, sp.Expr] = {M: N}
WIDTH = size("b")
RECURRENT = "recurrent layer"
SHORT = {
    "multiplications": "×",
    "additions": "+",
    "divisions": "÷",
    "exponentials": "exp",
    "functions": "other",
    "comparisons": "max",
}
LETTERS = Letters(
    symbols={
        **Letters().symbols,
        "Br": r"B_{\mathrm{r}}",
        "b": "w",
        **{f"kept{k}": rf"\kappa_{{{k}}}" if k else r"\kappa" for k in ("", *range(2, 30))},
        **{f"rows{k}": rf"\rho_{{{k}}}" if k else r"\rho" for k in ("", *range(2, 30))},
    },
)


@dataclass(frozen=True)
class Row:
    """What is known of the cost of a layer."""

    name: str
    cost: Cost
    steps: sp.Expr
    path: Path

    @property
    def total(self) -> Operations:
        """All operations."""
        return self.cost.total


def _row(name: str, program: Program) -> Row:
    return Row(name, count(program, SELF), sequential(program, SELF), longest_path(program, index("i"), index("j"), N))


def program_of(d: Definition, gradient: bool = False) -> Program:
    """What is counted: the statements of a definition, with those of its gradient where it is asked for."""
    program = d.replace(lse=False).program()
    return present(program, adjoint(program)).program if gradient else program


def cost_of(d: Definition, gradient: bool = False, title: str = "") -> Derivation:
    """The cost of a definition, statement by statement.

    Parameters
    ----------
    d
        Any definition.
    gradient
        Count the statements of the gradient too.
    title
        The heading.

    Returns
    -------
    Derivation
        A page without steps: tables of operations, of bytes, of steps and paths. Numbers of keys and queries are taken to be
        equal (m = n).

    >>> cost_of(Definition()).sections[0].blocks[1].rows[-1][0]
    'in all'
    """
    program = program_of(d, gradient)
    row = _row(title or "attention", program)
    sections = [_operations(row, program), _bytes(d, program, gradient), _steps(row)]
    about = "What one sequence of n positions costs, as functions of sizes."
    return _page(f"Cost: {title or 'attention'}", about, sections, _conventions(row))


def compared(definitions: Mapping[str, Definition], gradient: bool = False, baseline: bool = True) -> Derivation:
    """Several definitions side by side.

    Parameters
    ----------
    definitions
        Name -> definition.
    gradient
        Count the statements of the gradient too; the recurrent layer has one as well.
    baseline
        Put a simple recurrent layer below.

    Raises
    ------
    DefinitionError
        When there is nothing to compare.

    >>> table = compared({"self-attention": Definition()}).sections[0].blocks[1]
    >>> [row[0] for row in table.rows]
    ['self-attention', 'recurrent layer']
    """
    if not definitions:
        raise DefinitionError("there is nothing to compare: name a variant")
    programs = {name: program_of(d, gradient) for name, d in definitions.items()}
    if baseline:
        plain = recurrent_layer()
        programs[RECURRENT] = adjoint(plain) if gradient else plain
    rows = [_row(name, p) for name, p in programs.items()]
    orders = tuple((r.name, _big_o(r), formula(r.steps), formula(r.path.length)) for r in rows)
    lead = "Of one layer over n positions. The order is that of the multiplications, with d for the width of values too."
    first = Section(
        "Orders", (Prose((lead,)), Table(("", "operations", "steps that wait", "longest path"), orders)), "counted, see below"
    )
    products = tuple((r.name, _cell(r.total.multiplications), _cell(r.total.additions)) for r in rows)
    others = tuple((r.name, *(_cell(getattr(r.total, k)) for k in ("divisions", "exponentials", "functions"))) for r in rows)
    second = Section(
        "Operations",
        (
            Table(("", "multiplications", "additions"), products),
            Table(("", "divisions", "exponentials", "other functions"), others),
        ),
        "counted for the statements as they are written",
    )
    sections = [first, second, *(_names(r) for r in rows if _used(r))]
    return _page("Costs compared", "What layers cost over one sequence of n positions.", sections, _conventions(*rows))


# ---------------------------------------------------------------- sections
def _operations(row: Row, program: Program) -> Section:
    used = [k for k in KINDS if getattr(row.total, k) != 0]
    head: tuple[Part, ...] = ("", *(SHORT[k] for k in used))
    letters = Letters.of(LETTERS, {*program.inputs, *(s.name for s in program)})
    lines: list[tuple[Part, ...]] = []
    for s in program:
        o = row.cost.each[s.name].expanded()
        if o.total != 0:
            name = letters.tensor(s.name).tex()
            lines.append((Formula(name, name), *(_cell(getattr(o, k)) for k in used)))
    lines.append(("in all", *(formula(getattr(row.total, k)) for k in used)))
    words = "; ".join(f"{SHORT[k]} counts {k}" for k in used if SHORT[k] in ("×", "+", "÷", "other", "max"))
    lead = Prose((f"Operations on numbers, statement by statement ({words}).",))
    blocks: list[Block] = [lead, Table(head, tuple(lines))]
    leading: tuple[Part, ...] = ("The multiplications are ", _big_o(row), ".")
    return Section("Operations", (*blocks, Prose(leading), *_names(row).blocks), "counted for the statements as they are written")


def _cell(e: sp.Expr) -> Part:
    """A count; nothing for 0."""
    return formula(e) if e != 0 else ""


def _big_o(row: Row) -> Formula:
    """The order of the multiplications, positions first: O(n^2 d)."""
    terms = []
    for t in sp.Add.make_args(order(row.total.multiplications)):
        powers = sorted(t.as_powers_dict().items(), key=lambda p: (p[0] != N, str(p[0])))
        letters = [("d" if a == D else LETTERS.symbol(a.name)) if a.is_Symbol else "" for a, _ in powers]
        terms.append(" ".join(x + (f"^{k}" if k != 1 else "") for x, (_, k) in zip(letters, powers, strict=True) if x) or "1")
    text = f"O({' + '.join(sorted(terms))})"
    return Formula(text, text)


def _bytes(d: Definition, program: Program, gradient: bool) -> Section:
    lines: list[tuple[Part, ...]] = [("whole matrices", formula(bytes_of(with_constants_in_place(program), WIDTH, SELF)))]
    try:
        lines.append(("flash, forward", formula(tiled_bytes(d, WIDTH, equal=SELF))))
        if gradient:
            lines.append(("flash, backward", formula(tiled_bytes(d, WIDTH, True, SELF))))
    except SymattnError:
        lines.append(("by tiles", "there is no such kernel for this definition"))
    lead: tuple[Part, ...] = (
        "Bytes between memory and the chip, ",
        formula(WIDTH),
        " for a number. Whole matrices: every statement reads each of its tensors once and writes its own once. By tiles of ",
        formula(size("Br")),
        " queries and ",
        formula(size("Bc")),
        " keys: each row is read or written once for every tile that needs it, and nothing of the size of the weights is moved.",
    )
    return Section(
        "Bytes moved", (Prose(lead), Table(("", "bytes"), tuple(lines))), "counted off the statements, and off the loops"
    )


def _steps(row: Row) -> Section:
    lines: list[tuple[Part, ...]] = [("steps that wait for each other", formula(row.steps))]
    lines.append(
        ("longest path between two positions" + (f" ({row.path.says})" if row.path.says else ""), formula(row.path.length))
    )
    lead = "A statement is one step, whatever its size; a recurrence has as many as there are positions. "
    lead += "A path counts layers of attention, or steps of a recurrence."
    return Section("Steps and paths", (Prose((lead,)), Table(("", "number"), tuple(lines))))


def _used(row: Row) -> bool:
    return any(a in row.cost.names for k in KINDS for a in getattr(row.total, k).free_symbols)


def _names(row: Row) -> Section:
    """What counts with a name are counts of."""
    lines: list[tuple[Part, ...]] = []
    shown = {a for k in KINDS for a in getattr(row.total, k).free_symbols}
    for symbol, c in row.cost.names.items():
        if symbol in shown:
            where = both(lambda style, c=c: condition(c.where, Printer(letters=LETTERS, style=style)))  # type: ignore[misc]
            of = ", ".join(a.name for a in c.of)
            words = f"values of {of} for which" if len(c.of) < len(c.over) or len(c.of) == 1 else f"pairs ({of}) with"
            lines.append((formula(symbol), f"how many {words}", where))
    blocks: tuple[Block, ...] = (Table(("", "counts", ""), tuple(lines)),) if lines else ()
    return Section(f"Counts of {row.name}", blocks)


def _conventions(*rows: Row) -> dict[str, str]:
    """How it is counted, in words."""
    said = {
        "sizes": "m = n: as many keys as queries; B sequences cost B times as much",
        "sums": "k - 1 additions for k terms; a difference is an addition, a change of sign nothing",
        "constants": "a product with 1/sqrt(d) is one multiplication; its value is not counted",
        "positions": "what is computed of positions and sizes, conditions among it, is not counted",
    }
    least = max(r.cost.least for r in rows)
    return {**said, "masks": f"closed forms hold from n = {least} on"} if least > 1 else said


def _page(title: str, about: str, sections: Sequence[Section], conventions: Mapping[str, str]) -> Derivation:
    return Derivation(title=title, about=about, definition="", conventions=conventions, steps=(), sections=tuple(sections))


# ---------------------------------------------------------------- formulas
def both(write: Callable[[Style], str]) -> Formula:
    """A formula in both kinds of LaTeX."""
    return Formula(write(LATEX), write(MARKDOWN))


def formula(e: sp.Expr) -> Formula:
    """A count as a formula: multiplied out or in factors, whatever is shorter."""
    forms = [sp.expand(e), sp.factor(e), *(sp.collect(sp.expand(e), a) for a in (N, D))]
    printed = [both(lambda style, f=f: Printer(letters=LETTERS, style=style).tex(f)) for f in forms]  # type: ignore[misc]
    return min(printed, key=lambda f: len(f.latex))


def order(e: sp.Expr) -> sp.Expr:
    """The terms of a count that no other one outgrows, without their factors.

    >>> order(3 * N**2 * D + N * D + N**2), order(N**2 * D / 2 + N * D**2)
    (d*n**2, d**2*n + d*n**2)
    """
    plain = sp.expand(e.replace(sp.ceiling, lambda x: x).xreplace({DV: D}))
    variables = sorted(plain.free_symbols, key=str)
    if not variables:
        return sp.S.One
    found = [tuple(sp.degree(t, a) if t.has(a) else 0 for a in variables) for t in sp.Add.make_args(plain)]
    top = {p for p in found if not any(p != q and all(x <= y for x, y in zip(p, q, strict=True)) for q in found)}
    return sp.Add(*[sp.Mul(*[a**k for a, k in zip(variables, p, strict=True)]) for p in top])
