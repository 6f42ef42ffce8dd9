r"""The printer of scalar expressions: SymPy expressions in indexed tensors, written as a reader would.

SymPy's own printer orders factors by name, writes 10/sqrt(3) as ``\frac{10 \sqrt{3}}{3}`` and has no subscripts of its own
for ``Indexed`` reads that are expressions; nothing of it is used here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import sympy as sp

from symattn.program import Program, Statement, name_of, subscripts_of
from symattn.readings.typesetting.letters import LATEX, Letters, Style, script
from symattn.readings.typesetting.ordering import Order, gathered, is_negative

SUM, PRODUCT, POWER, ATOM = range(4)
MACROS: Mapping[str, str] = {k: rf"\{k}" for k in ("exp", "log", "tanh", "sinh", "cosh", "sin", "cos", "tan")} | {
    "sigmoid": r"\sigma"
}
TALL = (r"\frac", r"\sum", r"\prod", r"\max_", r"\left", r"\begin", r"\sqrt", r"\lfloor", r"\lceil")


class Piece(NamedTuple):
    """A piece of LaTeX, how strongly it holds together, and whether it must be set apart from its neighbours."""

    tex: str
    level: int
    apart: bool = False


def bracket(tex: str) -> str:
    r"""Round brackets, as high as what they hold.

    >>> bracket("i - j"), bracket(r"\frac{a}{b}")
    ('(i - j)', '\\left(\\frac{a}{b}\\right)')
    """
    return rf"\left({tex}\right)" if any(t in tex for t in TALL) else f"({tex})"


def at(piece: Piece, level: int) -> str:
    """The LaTeX of a piece, bracketed where it holds together less than ``level``."""
    return piece.tex if piece.level >= level else bracket(piece.tex)


@dataclass(frozen=True)
class Printer:
    r"""Writes scalar expressions for one statement.

    Parameters
    ----------
    letters, style
        How names and operators look.
    order
        The order of factors and terms.
    batch
        Indices that are written in a superscript, as in ``S^{(h)}_{ij}``; ``hidden`` ones are not written at all.
    flags
        Names of boolean inputs: ``M_{ij} = 1`` stands for ``M_{ij} \ne 0``.

    >>> i, j = sp.symbols("i j", integer=True)
    >>> Printer().tex(10 / sp.sqrt(3)), Printer(order=Order((i, j))).tex(sp.IndexedBase("K")[j] * sp.IndexedBase("Q")[i])
    ('\\frac{10}{\\sqrt{3}}', 'Q_i K_j')
    """

    letters: Letters = field(default_factory=Letters)
    style: Style = LATEX
    order: Order = field(default_factory=Order)
    batch: frozenset[sp.Symbol] = frozenset()
    hidden: frozenset[sp.Symbol] = frozenset()
    flags: frozenset[str] = frozenset()

    def tex(self, e: sp.Expr) -> str:
        """The LaTeX of an expression."""
        return self.piece(e).tex

    def piece(self, e: sp.Expr) -> Piece:
        """The LaTeX of an expression and its level."""
        if isinstance(e, sp.Add):
            return self.sum(e)
        if isinstance(e, (sp.Mul, sp.Pow)) or (e.is_Rational and not e.is_Integer):
            return self.product(e)
        if isinstance(e, sp.Indexed) or (isinstance(e, sp.Symbol) and not e.is_integer):
            return self.tensor(e)
        if isinstance(e, sp.Symbol):
            return Piece(self.letters.symbol(e.name), ATOM)
        if e.is_Integer:
            return Piece(str(e), ATOM if e >= 0 else SUM)
        if e in CONSTANTS:
            return Piece(CONSTANTS[e], ATOM if e != -sp.oo else SUM)
        if isinstance(e, sp.Piecewise):
            return self.cases(e)
        if isinstance(e, (sp.Function, sp.Max, sp.Min)):
            return self.function(e)
        return Piece(str(e), ATOM)

    # --- tensors

    def tensor(self, x: sp.Expr) -> Piece:
        """A read: batch indices above, the others below."""
        above, below = self.subscripts(x)
        letter = self.letters.tensor(name_of(x))
        return Piece(letter.tex(above, below), ATOM, letter.gradient)

    def subscripts(self, x: sp.Expr) -> tuple[str, str]:
        """The batch indices and the other subscripts of a read; without others, the batch indices stand below."""
        shown = [s for s in subscripts_of(x) if not (s.free_symbols and s.free_symbols <= self.hidden)]
        lifted = [s for s in shown if self.batch and s.free_symbols and s.free_symbols & self.batch]
        below = [s for s in shown if s not in lifted]
        if lifted and not below:
            lifted, below = [], lifted
        return ",".join(self.tex(s) for s in lifted), self.juxtapose(below)

    def shape(self, labels: Sequence[sp.Symbol]) -> tuple[str, ...]:
        """What stands under a matrix or a column with these axes; nothing where the letters have no shapes."""
        found = tuple(self.letters.extents[a.name] for a in labels if a.name in self.letters.extents)
        return (*found, "1")[:2] if found else ()

    def juxtapose(self, subscripts: list[sp.Expr]) -> str:
        """Subscripts side by side where each is one letter, with commas otherwise."""
        pieces = [self.tex(s) for s in subscripts]
        single = all(isinstance(s, sp.Symbol) and re.fullmatch("[^0-9]'*", p) for s, p in zip(subscripts, pieces, strict=True))
        return ("" if single else ",").join(pieces)

    # --- sums

    def sum(self, e: sp.Add) -> Piece:
        """A sum; a number that all terms share stands before it, as typed: ``2*(a + b)``."""
        content, rest = e.primitive()
        if content != 1 and isinstance(rest, sp.Add) and all(abs(t.as_coeff_Mul()[0]) == 1 for t in rest.args):
            if all(map(is_negative, rest.args)):
                return Piece("-" + self.join([self.piece(content), self.sum(-rest)]).tex, SUM)
            return self.join([self.piece(content), self.sum(rest)])
        return self.signed(self.order.terms(gathered(e.args)))

    def signed(self, terms: list[sp.Expr]) -> Piece:
        """Terms in the order given, each with its sign."""
        tex, apart = "", False
        for t in terms:
            negative = is_negative(t)
            p = self.piece(-t if negative else t)
            body = at(p, PRODUCT)
            tex = tex + (" - " if negative else " + ") + body if tex else ("-" if negative else "") + body
            apart = apart or p.apart
        return Piece(tex, SUM, apart)

    # --- products, fractions, powers

    def product(self, e: sp.Expr) -> Piece:
        """A product or a power: one fraction, or a numerical fraction before a long numerator."""
        coefficient, factors = _positive(*_numeral(e))
        p = self.fraction(abs(coefficient), factors)
        return Piece("-" + at(p, PRODUCT), SUM, p.apart) if coefficient.is_negative else p

    def fraction(self, coefficient: sp.Rational, factors: Sequence[sp.Expr]) -> Piece:
        """A positive number times factors."""
        above, below = [], []
        for f in factors:
            power = f.exp if isinstance(f, sp.Pow) else None
            if power is not None and power.is_Rational and power.is_negative:
                below.append(sp.Pow(f.base, -power))
            else:
                above.append(f)
        above, below = self.order.factors(above), self.order.factors(below)
        top, bottom = coefficient.p, coefficient.q
        numerator = [self.power(f) for f in above]
        denominator = [self.power(f) for f in below]
        if bottom != 1:
            denominator.insert(0, Piece(str(bottom), ATOM))
        if top != 1 or not numerator:
            numerator.insert(0, Piece(str(top), ATOM))
        if not denominator:
            return self.join(numerator)
        den = self.join(denominator).tex
        plain = not any(f.atoms(sp.Indexed) or self.order.positions(f) for f in below)
        if plain and any(isinstance(f, (sp.Add, sp.Function)) for f in above):
            count = sum(not f.atoms(sp.Indexed) and not self.order.positions(f) for f in above) + (top != 1)
            head = self.join(numerator[:count]).tex if count else "1"
            return self.join([Piece(rf"\frac{{{head}}}{{{den}}}", ATOM), *numerator[count:]])
        num = self.join(numerator)
        return Piece(rf"\frac{{{num.tex}}}{{{den}}}", PRODUCT if num.level < ATOM or below else ATOM)

    def join(self, pieces: list[Piece]) -> Piece:
        """Pieces as factors side by side; digits are kept apart by a dot, gradients by a thin space."""
        if len(pieces) == 1:
            return pieces[0]
        tex, last = "", Piece("", ATOM)
        for p in pieces:
            body = at(p, PRODUCT)
            if tex and body[0].isdigit():
                tex += r" \cdot "
            elif tex:
                tight = (p.apart and p.level == ATOM) or (last.apart and last.level == ATOM and p.level > SUM)
                tex += self.style.thin if tight else " "
            tex, last = tex + body, p
        return Piece(tex, PRODUCT)

    def power(self, f: sp.Expr) -> Piece:
        """A factor that is not a reciprocal."""
        if not isinstance(f, sp.Pow):
            return self.piece(f)
        base, exponent = f.base, f.exp
        if exponent == sp.Rational(1, 2):
            return Piece(rf"\sqrt{{{self.tex(base)}}}", ATOM)
        if exponent == 1:
            return self.piece(base)
        top = self.inline(exponent)
        if base.func.__name__ in ("tanh", "sinh", "cosh", "sin", "cos", "tan") and exponent.is_Integer:
            return Piece(MACROS[base.func.__name__] + script("^", top) + bracket(self.tex(base.args[0])), POWER)
        p = self.piece(base)
        held = p.level == ATOM and not (p.apart or "^" in p.tex or "(" in p.tex[:1] or isinstance(base, sp.Function))
        return Piece((p.tex if held else bracket(p.tex)) + script("^", top), POWER)

    def inline(self, e: sp.Expr) -> str:
        """An expression on one line, fractions with a slash: for exponents."""
        num, den = sp.fraction(e)
        if den == 1 or (e.is_number and not e.is_Rational):
            return self.tex(e)
        coefficient, factors = _positive(*num.as_coeff_mul())
        top = at(self.fraction(abs(coefficient), factors), PRODUCT)
        return f"{'-' if coefficient.is_negative else ''}{top}/{at(self.piece(den), POWER)}"

    # --- functions

    def function(self, e: sp.Expr) -> Piece:
        """A function of its arguments."""
        name = e.func.__name__
        if name in SPECIAL:
            return SPECIAL[name](self, e)
        arguments = ", ".join(self.tex(a) for a in e.args)
        macro = MACROS.get(name) or self.style.function(name)
        if name == "log" and e.args[0].is_Integer:
            return Piece(rf"\log {arguments}", PRODUCT)
        return Piece(macro + bracket(arguments), ATOM)

    def cases(self, e: sp.Piecewise) -> Piece:
        """A Piecewise expression."""
        from symattn.readings.typesetting.conditions import condition

        rows = [
            rf"{self.tex(value)} & \text{{{'otherwise' if when == sp.true else 'if '}}}"
            + ("" if when == sp.true else " " + condition(when, self))
            for value, when in e.args
        ]
        return Piece(r"\begin{cases} " + r" \\ ".join(rows) + r" \end{cases}", ATOM)


def _numeral(e: sp.Expr) -> tuple[sp.Rational, tuple[sp.Expr, ...]]:
    """A product as coefficient and factors, with roots back under the fraction line: 10*sqrt(3)/3 is 10/sqrt(3)."""
    coefficient, factors = e.as_coeff_mul()
    out = []
    for f in factors:
        if isinstance(f, sp.Pow) and f.exp == sp.Rational(1, 2) and f.base.is_Integer and coefficient.q % f.base == 0:
            coefficient *= f.base
            out.append(sp.Pow(f.base, sp.Rational(-1, 2), evaluate=False))
        else:
            out.append(f)
    return coefficient, tuple(out)


def _positive(coefficient: sp.Rational, factors: Sequence[sp.Expr]) -> tuple[sp.Rational, tuple[sp.Expr, ...]]:
    """The same product with sums of negative terms turned into sums of positive ones: 8*(-h - 1) is -8*(h + 1)."""
    out = []
    for f in factors:
        if isinstance(f, sp.Add) and all(is_negative(t) for t in f.args):
            coefficient, f = -coefficient, sp.Add(*[-t for t in f.args])
        out.append(f)
    return coefficient, tuple(out)


def _bracketed(left: str, right: str) -> Callable[[Printer, sp.Expr], Piece]:
    return lambda printer, e: Piece(rf"\left{left} {printer.inline(e.args[0])} \right{right}", ATOM)


def _max(macro: str) -> Callable[[Printer, sp.Expr], Piece]:
    return lambda printer, e: Piece(macro + bracket(", ".join(printer.tex(a) for a in printer.order.terms(e.args))), ATOM)


SPECIAL: Mapping[str, Callable[[Printer, sp.Expr], Piece]] = {
    "Abs": _bracketed(r"\lvert", r"\rvert"),
    "floor": _bracketed(r"\lfloor", r"\rfloor"),
    "ceiling": _bracketed(r"\lceil", r"\rceil"),
    "Max": _max(r"\max"),
    "Min": _max(r"\min"),
    "Mod": lambda p, e: Piece(rf"{at(p.piece(e.args[0]), POWER)} \bmod {at(p.piece(e.args[1]), POWER)}", SUM),
}
CONSTANTS: Mapping[sp.Expr, str] = {sp.pi: r"\pi", sp.E: "e", sp.oo: r"\infty", -sp.oo: r"-\infty", sp.nan: r"\mathrm{NaN}"}


def printer_for(
    program: Program | None,
    statement: Statement,
    letters: Letters | Mapping[str, str] | None = None,
    style: Style = LATEX,
    batch: frozenset[sp.Symbol] = frozenset(),
    hidden: frozenset[sp.Symbol] = frozenset(),
) -> Printer:
    """The printer for one statement of a program."""
    from symattn.readings.typesetting.conditions import flags

    known = (frozenset(program.inputs) | {s.name for s in program}) if program is not None else frozenset()
    indices = {a.name for s in program or () for a in s.domain if a not in hidden}
    return Printer(
        Letters.of(letters, known, indices),
        style,
        Order.of(statement, program),
        batch,
        hidden,
        flags(program) if program is not None else frozenset(),
    )
