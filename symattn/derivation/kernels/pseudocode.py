"""Loops as pseudo-code: the one printer from :mod:`.loops` to the block that writers set. The lines are read off the kernel."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping

import sympy as sp

from symattn.derivation.blocks import Algorithm, CodeLine, Part
from symattn.derivation.document import Formula
from symattn.derivation.kernels.loops import Assign, For, Kernel, Load, Node, Start, walked
from symattn.indexed import Tensor, all_reads, conjuncts, integer_symbols, name_of, reads, subscripts_of, tensor
from symattn.program import Program, Statement
from symattn.readings.latex import LATEX, MARKDOWN, Letters, Style
from symattn.readings.typesetting.conditions import conditions_of
from symattn.readings.typesetting.indexform import BIG, right_hand_side
from symattn.readings.typesetting.letters import script
from symattn.readings.typesetting.ordering import absorb_sign
from symattn.readings.typesetting.scalars import PRODUCT, Printer, at, printer_for

__all__ = ["Words", "pseudocode", "written_with"]

BECOMES = r"\gets"
Words = Mapping[str, str]
"""What an index runs over, in words: ``{"i": "query", "t": "tile"}``."""


def pseudocode(
    title: str, kernel: Kernel, program: Program, letters: Letters, lifted: frozenset[sp.Symbol], words: Words
) -> Algorithm:
    """A kernel as numbered lines.

    Parameters
    ----------
    title
        What stands above.
    kernel, program
        The loops, and the statements they were made of: they say how formulas are ordered.
    letters
        How tensors are written.
    lifted
        The indices that stand above: heads.
    words
        What loops run over.
    """
    return _Pseudocode(kernel, program, letters, lifted, words).block(title)


def written_with(write: Callable[[Style], str]) -> Formula:
    """A formula in both kinds of LaTeX."""
    return Formula(write(LATEX), write(MARKDOWN))


FIRST = ("Q", "K", "V", "O", "L", "dO", "dL", "D", "dQ", "dK", "dV")
"""The order in which tensors are named; others follow."""


class _Pseudocode:
    def __init__(self, kernel: Kernel, program: Program, letters: Letters, lifted: frozenset[sp.Symbol], words: Words) -> None:
        self.kernel, self.program, self.letters, self.lifted, self.words = kernel, program, letters, lifted, words
        self.inside: tuple[sp.Symbol, ...] = ()
        self.said: frozenset[sp.Basic] = frozenset()
        self.kept = _kept(kernel)

    def block(self, title: str) -> Algorithm:
        """Title, what is read and given, and the lines."""
        lines: list[CodeLine] = []
        self._lines(self.kernel.body, 0, lines)
        return Algorithm(title, self._names(self.kernel.reads), self._names(self.kernel.gives), tuple(lines))

    def _names(self, names: tuple[str, ...]) -> tuple[Part, ...]:
        parts: list[Part] = []
        for n in sorted(names, key=lambda n: FIRST.index(n) if n in FIRST else len(FIRST)):
            parts += [", ", written_with(lambda style, n=n: self.letters.tensor(n).tex())]  # type: ignore[misc]
        return tuple(parts[1:])

    def _lines(self, body: tuple[Node, ...], depth: int, lines: list[CodeLine]) -> None:
        starts: list[Start] = []
        places = _places(body)
        for n in body:
            if isinstance(n, Start):
                starts.append(n)
                continue
            if starts:
                lines.append(CodeLine(depth, self._starts(starts)))
                starts = []
            if places and isinstance(n, Assign) and _within(places, n):
                lines.append(CodeLine(depth, self._let(places, n)))
                self.said, places = self.said | places, frozenset()
            if isinstance(n, For):
                lines.append(CodeLine(depth, self._for(n)))
                outer, said = self.inside, self.said
                self.inside = (*outer, n.index)
                self._lines(n.body, depth + 1, lines)
                self.inside, self.said = outer, said
            elif isinstance(n, Load):
                lines.append(CodeLine(depth, self._load(n, body)))
            else:
                lines.append(CodeLine(depth, self._assign(n)))

    # ---------------------------------------------------------------- lines
    def _for(self, n: For) -> tuple[Part, ...]:
        def write(style: Style) -> str:
            p = self._printer((), style)
            return rf"{p.tex(n.index)} = 0, \dots, {p.tex(n.count - 1)}"

        word = self.words.get(n.index.name)
        each = "for " if n.carried else "in parallel for "
        return (each + (f"each {word} " if word else ""), written_with(write), ":")

    def _let(self, places: frozenset[sp.Basic], n: Assign) -> tuple[Part, ...]:
        """The places of a tile that are meant in what follows, said once."""
        found = tuple(a for a in (*n.free, *n.over) if any(a in integer_symbols(c) for c in places))

        def write(style: Style) -> str:
            return r" \text{ and } ".join(conditions_of(sp.And(*places), self._printer(found, style)))

        index = written_with(lambda style: self._printer(found, style).tex(found[0]))
        return ("let ", index, " run over the places where ", written_with(write))

    def _starts(self, starts: list[Start]) -> tuple[Part, ...]:
        parts: list[Part] = []
        for s in starts:
            parts += [", store " if name_of(s.target) in self.kernel.gives else ", "]
            parts += [written_with(lambda style, s=s: self._start(s, style))]  # type: ignore[misc]
        return tuple(["store "] if parts[0] == ", store " else []) + tuple(parts[1:])

    def _start(self, s: Start, style: Style) -> str:
        p = self._printer((), style)
        return f"{p.tex(s.target)} {BECOMES} {p.tex(s.value)}"

    def _load(self, n: Load, body: tuple[Node, ...]) -> tuple[Part, ...]:
        parts: list[Part] = ["load "]
        found = {*n.reads, *self._left_by_other_loops(body)}
        order = sorted(sorted(found, key=str), key=lambda x: FIRST.index(name_of(x)) if name_of(x) in FIRST else len(FIRST))
        for k, x in enumerate(order):
            parts += [", "] if k else []
            parts.append(written_with(lambda style, x=x: self._printer(self._vectors(x), style).tex(x)))  # type: ignore[misc]
        return tuple(parts)

    def _left_by_other_loops(self, body: tuple[Node, ...]) -> set[Tensor]:
        """What was stored before these loops and is read in this one, at its own turn."""
        found = {x for n in body if isinstance(n, Assign) for x in all_reads(n.expr) if name_of(x) in self.kept}
        return {x for x in found if self.inside[-1:] and self.inside[-1] in subscripts_of(x)}

    def _vectors(self, x: Tensor) -> tuple[sp.Symbol, ...]:
        """The indices of a read that no loop runs over."""
        found = {a for at in subscripts_of(x) for a in integer_symbols(at) if a in self.kernel.dims and a not in self.inside}
        return tuple(sorted(found, key=str, reverse=True))

    def _assign(self, n: Assign) -> tuple[Part, ...]:
        stored = (name_of(n.target) in self.kernel.gives and not n.onto) or name_of(n.target) in self.kept
        parts: list[Part] = ["store "] if stored else []
        return (*parts, written_with(lambda style: self._formula(n, style)))

    def _formula(self, n: Assign, style: Style) -> str:
        p = self._printer((*n.free, *n.over), style)
        # a statement may not read what it defines: it is written with another name on its left
        right = right_hand_side(Statement(tensor("symattn", *n.free), n.expr, n.over, n.reduce), p)  # type: ignore[arg-type]
        if n.over and n.reduce == "sum" and _divides(n.expr):
            # a quotient stays in the sum: one over nothing is 0, and 0 divided by a normaliser of 0 is not
            below = ",".join(p.tex(a) for a in n.over)
            right = f"{BIG[n.reduce]}{script('_', below)} {at(p.piece(absorb_sign(n.expr)), PRODUCT)}"
        target = p.tex(n.target)
        if n.onto and n.reduce == "max":
            right = rf"\max({target}, {right})"
        elif n.onto:
            right = f"{target} + {right}" if not right.startswith("-") else f"{target} - {right[1:]}"
        left = [c for c in conjuncts(n.where) if c not in self.said]
        if not left:
            return f"{target} {BECOMES} {right}"
        said = r" \text{ and } ".join(conditions_of(sp.And(*left), p))
        return rf"{target} {BECOMES} {right} \quad\text{{where }} {said}"

    def _printer(self, domain: tuple[sp.Symbol, ...], style: Style) -> Printer:
        """The printer of a line: loop indices are written before those of vectors, as in the statement."""
        own = (*(a for a in self.inside if a not in domain), *domain)
        return printer_for(self.program, Statement(tensor("symattn", *own), sp.S.Zero), self.letters, style, self.lifted)


def _kept(kernel: Kernel) -> frozenset[str]:
    """What is made for all turns of a loop that comes later: it lies in memory until it is read there."""
    assigned = [(n, inside) for n, inside in walked(kernel.body) if isinstance(n, Assign)]
    made = {name_of(n.target): set(subscripts_of(n.target)) - set(inside) for n, inside in assigned}
    read = {name_of(x) for n, inside in assigned for x in all_reads(n.expr) if made.get(name_of(x), set()) & set(inside)}
    return frozenset(read - set(kernel.gives))


def _divides(e: sp.Expr) -> bool:
    """Whether a factor is one over a number of the data."""
    return any(isinstance(f, sp.Pow) and f.exp.is_negative and reads(f) for f in sp.Mul.make_args(e))


def _places(body: tuple[Node, ...]) -> frozenset[sp.Basic]:
    """The conditions on places that most lines of a body share, where there are several such lines."""
    found = Counter(frozenset(conjuncts(n.where)) for n in body if isinstance(n, Assign) and n.where != sp.true)
    shared = {c: k for c, k in found.items() if k > 1 and all(_bound(q, body) for q in c)}
    return max(shared, key=lambda c: (shared[c], len(c)), default=frozenset())


def _bound(c: sp.Basic, body: tuple[Node, ...]) -> bool:
    """Whether a condition is about places of vectors, and not about the turn of the loop alone."""
    inner = {a for n in body if isinstance(n, Assign) for a in (*n.free, *n.over)}
    return bool(integer_symbols(c) & inner)


def _within(places: frozenset[sp.Basic], n: Assign) -> bool:
    """Whether an assignment is made at these places, and has an index for them."""
    own = {*n.free, *n.over}
    return places <= set(conjuncts(n.where)) and all(integer_symbols(c) & own for c in places)
