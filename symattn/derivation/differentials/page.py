r"""The sections of a gradient: the loss, differentials, the rule, pairings read backwards, a summary, and the kernel's form.

A movement is written with a dot, as tangents are everywhere, so that ``dT`` can stay the gradient of the loss by T.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import sympy as sp

from symattn.algorithms import flash_list, plain
from symattn.definition import Definition
from symattn.derivation.blocks import Block, Box, Display, Prose, Section, Table
from symattn.derivation.columns import by_columns
from symattn.derivation.differentials.linear import Differentials, Pairing, differentials
from symattn.derivation.document import Formula, Step
from symattn.derivation.script import Script
from symattn.derivation.symbols import step_formulas
from symattn.indexed import integer_symbols, name_of, reads, tensor
from symattn.presentation.presented import CHECKED, PROVED
from symattn.program import Program, Statement
from symattn.readings.latex import LATEX, MARKDOWN, Letters, Style, batch_indices, condition_form, index_form, matrix_form
from symattn.sums import SumOver

__all__ = ["gradient_sections"]

LONGEST_PAIR = 120
"""Characters of LaTeX between brackets that grow: no line breaks between them."""
MOVES = r"\langle dT, \dot{T} \rangle = \sum_F dT_F \sum_R \frac{\partial f}{\partial X_I} \dot{X}_I"
SHARE = r"dX_u = \sum_{F,R : I(F,R) = u} dT_F \frac{\partial f}{\partial X_I}"
RULE = (Formula(MOVES, MOVES), Formula(SHARE, SHARE))
"""The rule of :mod:`symattn.derivative`, forwards inside a pairing, and what is read off."""
EQUAL = {PROVED: PROVED, CHECKED: "checked at 400 bits"}


def gradient_sections(
    definition: Definition,
    steps: Sequence[Step],
    form: str,
    letters: Letters,
    presented: Program | None = None,
    columns: bool = False,
) -> tuple[Section, ...]:
    """The sections around the steps of a gradient.

    Parameters
    ----------
    definition
        What is derived; where it has an algorithm, the differentials are those of the definition that it computes.
    steps
        The steps of the page, those of the gradient among them.
    form
        ``"index"``, ``"matrix"`` or ``"both"``; a formula that has no matrix form is in indices.
    letters
        How tensors are written.
    presented
        The program and its gradient, a row for each position.
    columns
        Whether positions are columns on the page.

    Returns
    -------
    tuple
        Sections before the first step of the gradient, and behind the last step: the summary, and where the definition has a
        softmax, the form that kernels use.

    >>> from symattn.derivation import derive
    >>> [s.title for s in derive(gradient=True).sections][:3]
    ['The loss', 'Differentials', 'The rule']
    """
    backward = [s for s in steps if s.backward]
    if not backward:
        return ()
    first = backward[0].number
    d = plain(definition).replace(lse=definition.lse)
    found = differentials(d.program(), presented if definition.algorithm is None else None)
    page = _Page(found.by_columns() if columns else found, form, letters)
    before = [Section(s.title, s.blocks, s.known, first) for s in page.before(definition.algorithm is not None)]
    after = [_summary(backward)]
    if definition.algorithm is None:
        after += list(_kernel(d, form, letters, columns))
    return (*before, *after)


def _pair(a: str, b: str) -> str:
    r"""A pairing; its brackets are as tall as a fraction in them, unless it is so long that a line has to break inside.

    >>> print(_pair("dP", "A"), _pair("dS", r"\frac{R}{2}"))
    \langle dP, A \rangle \left\langle dS, \frac{R}{2} \right\rangle
    """
    grows = r"\frac" in a + b and len(a + b) <= LONGEST_PAIR
    left, right = (r"\left\langle", r"\right\rangle") if grows else (r"\langle", r"\rangle")
    return f"{left} {a}, {b} {right}"


def _both(write: object) -> Formula:
    return Formula(write(LATEX), write(MARKDOWN))  # type: ignore[operator]


def _prose(text: str) -> Prose:
    """A paragraph of our own words, with formulas between dollars."""
    parts = text.split("$")
    return Prose(tuple(Formula(part, part) if k % 2 else part for k, part in enumerate(parts) if part))


class _Page:
    def __init__(self, found: Differentials, form: str, letters: Letters) -> None:
        self.found, self.form, self.program = found, form, found.program
        names = {*self.program.inputs, *(s.name for s in self.program)}
        self.letters = Letters.of(letters, names)
        self.batch = batch_indices(self.program)
        self.script = Script(self.program, self.letters, self.batch)

    def before(self, by_algorithm: bool) -> Iterator[Section]:
        """What stands above the steps of the gradient."""
        yield self.loss(by_algorithm)
        yield Section(
            "Differentials", (self._about_differentials(), Display(self._formulas(self.found.moving))), self._forwards()
        )
        yield Section(
            "The rule",
            (
                _prose(
                    r"A movement is linear in what it comes from, so a pairing with it is a sum of pairings with those "
                    r"movements; what stands with $\dot{X}$ is a share of $dX$. For a statement $T = f(X, \dots)$ with free "
                    r"indices $F$ and bound indices $R$, in which $X$ is read at the place $I$:"
                ),
                Display(RULE, ("", "the share of dX that T gives")),
                Prose(("Where a condition does not hold nothing is computed, and nothing is passed back.",)),
            ),
        )
        lines = [f for p in self.found.pairings if (f := self.pairing(p)) is not None]
        left = [p.name for p in self.found.pairings if not p.shares]
        blocks: list[Block] = []
        if lines:
            blocks += [Prose(("From the last movement to the first:",)), Display(tuple(lines))]
        if left:
            names = ", ".join(dict.fromkeys(left))
            blocks.append(Prose((f"What {names} passes back has no single line: it is among the statements below.",)))
        yield Section("Read backwards", tuple(blocks), "derivative rule")
        yield Section("What stands with each movement", self._collected(), EQUAL.get(self.found.status, "not proved"))

    def loss(self, by_algorithm: bool) -> Section:
        """The loss, and what its differential is."""
        pairs = [(f"d{o}", o) for o in self.found.outputs]
        moved = [(f"d{o}", f"{o}_t") for o in self.found.outputs]
        loss = _both(lambda style: r"\mathcal{J} = " + " + ".join(self._inner(a, b, style) for a, b in pairs))
        change = _both(lambda style: r"\dot{\mathcal{J}} = " + " + ".join(self._inner(a, b, style) for a, b in moved))
        lead = _prose(
            r"Let the loss $\mathcal{J}$ be any function of what comes out. All that its gradient needs of it is the incoming "
            r"gradient: it may be taken to be the sum of all products of an output and its incoming gradient, which is held "
            r"fixed. $\langle A, B \rangle$ is the sum of $A$ times $B$ over all entries, over heads too."
        )
        tail = _prose(
            r"A dot is a movement: how much a tensor changes when the inputs change a little. $dT$ is the gradient of the loss "
            r"by $T$, and has its shape: the tensor for which the loss moves by the sum of all products of $dT$ and the movement "
            r"of $T$."
        )
        more: tuple[Block, ...] = ()
        if by_algorithm:
            text = (
                "The algorithm computes the tensors of its definition, so their gradients are the same; they are derived from it."
            )
            more = (Prose((text,)),)
        return Section("The loss", (lead, Display((loss, change)), tail, *more))

    def _inner(self, a: str, b: str, style: Style) -> str:
        return rf"\langle {self._letter(a)}, {self._letter(b)} \rangle"

    def _letter(self, name: str) -> str:
        return self.letters.tensor(name).tex()

    def _about_differentials(self) -> Prose:
        return Prose(
            (
                "Every statement moves as its parts do: products by the product rule, functions by their slope. "
                "Conditions do not move.",
            )
        )

    def _forwards(self) -> str:
        """How the movements are known."""
        weak = [s for s in self.found.steps if s.status == CHECKED]
        return (
            "derivative rule; some rewritings are checked at 400 bits"
            if weak
            else "derivative rule; rewritings proved for all sizes"
        )

    def _formulas(self, statements: Sequence[Statement]) -> tuple[Formula, ...]:
        """A formula for each statement: in matrices where it has that form, and it is asked for."""
        kind = "index" if self.form == "index" else "matrix"
        out: list[Formula] = []
        for s in statements:
            index, matrix = step_formulas(self.program, (s,), kind, frozenset(), self.letters)
            out += (matrix or index)[:1]
        return tuple(out)

    def _collected(self) -> tuple[Block, ...]:
        lead = Prose(
            (
                "What a movement is paired with in all, for every movement. The steps below are these statements, brought to the "
                "form that people know.",
            )
        )
        return lead, Display(self._formulas(self.found.collected))

    # ---------------------------------------------------------------- pairings
    def pairing(self, p: Pairing) -> Formula | None:
        """``<dT, T_t> = <dT, ..> = <.., X_t> + ..`` in matrices, or in sums over indices."""
        if not p.shares:
            return None
        if self.form != "index" and self._in_matrices(p, LATEX) is not None:
            return _both(lambda style: self._in_matrices(p, style))
        return _both(lambda style: self._in_indices(p, style))

    def _in_matrices(self, p: Pairing, style: Style) -> str | None:
        right = self._rhs(p.moving, style)
        shares = [(n, self._rhs(s, style)) for n, s in p.shares]
        if right is None or any(x is None for _, x in shares):
            return None
        at = {n: s.indices for n, s in p.shares}
        d_t, moving = self._matrix("d" + p.name, p.moving.indices), self._matrix(p.moving.name, p.moving.indices)
        lines = " + ".join(_pair(x or "", self._matrix(n, at[n])) for n, x in shares)
        middle = _pair(d_t, right)
        spelled = lines if lines == middle else f"{middle} = {lines}"
        return rf"\langle {d_t}, {moving} \rangle = {spelled}{self._where(p.moving, style)}"

    def _matrix(self, name: str, indices: Sequence[sp.Symbol]) -> str:
        """A tensor as a matrix: heads above, or below where it has no other axes."""
        heads = [self.letters.symbol(str(a)) for a in indices if a in self.batch]
        whole = len(heads) == len(indices)
        letter = self.letters.tensor(name)
        return letter.tex("", "".join(heads)) if whole else letter.tex(",".join(heads), "")

    def _where(self, s: Statement, style: Style) -> str:
        """The condition of a movement where it is one on its own entries; other entries are 0 in what is read."""
        if any(integer_symbols(c) & set(s.over) for c in s.conditions):
            return ""
        text = condition_form(self.program, s, self.letters, style=style, batch=self.batch)
        return rf" \quad\text{{where }} {text}" if text else ""

    def _rhs(self, s: Statement, style: Style) -> str | None:
        """The right hand side in matrices; None where it has none or would show conditions of their own."""
        m = matrix_form(self.program, s, letters=self.letters, style=style)
        return None if m is None or "[" in m.latex or (not s.reads and len(s.indices) > 1) else m.rhs

    def _in_indices(self, p: Pairing, style: Style) -> str:
        d_t, moving = self._letter("d" + p.name), self._letter(p.moving.name)
        parts = []
        for n, s in p.shares:
            made = self._index_rhs(s, style)
            at = tensor(n, *s.indices)
            below = ",".join(self.letters.symbol(str(a)) for a in s.indices)
            read = self.script.tex(at, style, s)
            parts.append((rf"\sum_{{{below}}} " if below else "") + rf"{read} \left( {made} \right)")
        return rf"\langle {d_t}, {moving} \rangle = " + " + ".join(parts) + self._where(p.moving, style)

    def _index_rhs(self, s: Statement, style: Style) -> str:
        text = index_form(self.program, s, self.letters, style=style, batch=self.batch, where=False)
        return text.split(" = ", 1)[1]


def _summary(backward: Sequence[Step]) -> Section:
    """All statements of the gradient in a frame."""
    formulas = tuple((s.matrix or s.index)[0] for s in backward if s.matrix or s.index)
    return Section("Summary", (Box("The gradient", (Display(formulas),)),))


def _kernel(d: Definition, form: str, letters: Letters, columns: bool) -> Iterator[Section]:
    """The gradient without weights, where the definition has a softmax to find them again."""
    program, steps = flash_list(d)
    if "P_b" not in program or not any(s.rule == "recompute" and s.status in (PROVED, CHECKED) for s in steps):
        return
    program = by_columns(program) if columns else program
    names = {*program.inputs, *(s.name for s in program)}
    own = Letters.of(letters, names)
    start = next(k for k, s in enumerate(program) if s.name.endswith("_b") or s.name.startswith("dP") or s.name == "D")
    blocks: list[Block] = [
        Prose(
            (
                "A kernel does not keep the weights: it saves the log-sum-exp of each row and finds a weight again as one "
                "exponential. The row sum is taken over the components of the output, since both are the same double sum:",
            )
        )
    ]
    chain = _row_sum(program, own)
    blocks += [Display(chain)] if chain else []
    whole = [s for s in program.statements[start:] if s.name not in ("L",)]
    lse = [program["L"]] if "L" in program else []
    blocks += [Prose(("So the backward pass is",)), Display(_lines(program, [*lse, *whole], form, own))]
    rows = tuple(
        dict.fromkeys((s.rule, s.reason, EQUAL[s.status]) for s in steps if s.status in EQUAL and s.rule in KERNEL_RULES)
    )
    blocks.append(Table(("rewriting", "what was done", "how it is known"), rows))
    weakest = CHECKED if any(s.status == CHECKED for s in steps if s.rule in KERNEL_RULES) else PROVED
    yield Section("The gradient as a kernel computes it", tuple(blocks), EQUAL[weakest])


KERNEL_RULES = ("refold", "recompute", "normalise last")


def _lines(program: Program, statements: Sequence[Statement], form: str, letters: Letters) -> tuple[Formula, ...]:
    out: list[Formula] = []
    for s in statements:
        index, matrix = step_formulas(program, (s,), "index" if form == "index" else "matrix", frozenset(), letters)
        out += (matrix or index)[:1]
    return tuple(out)


def _row_sum(program: Program, letters: Letters) -> tuple[Formula, ...]:
    """``D = rowsum(dO o O)``, where the list has it."""
    if not {"D", "dP", "O", "P_b"} <= {s.name for s in program} or not program["D"].over:
        return ()
    script = Script(program, letters, batch_indices(program))
    d, d_p, p = program["D"], program["dP"], program["P_b"].target
    over_keys = SumOver(p * d_p.target, *(a for a in d_p.indices if a not in d.indices), where=program["P_b"].where)
    if d.where != sp.true or not d_p.over or set(d_p.over) != set(d.over):
        return (script.chain((d.target, over_keys, SumOver(d.expr, *d.over)), d),)
    inner = SumOver(d_p.expr, *d_p.over)
    weighted = d_p.expr / next((x for x in reads(d_p.expr) if name_of(x) == "dO"), sp.S.One)
    outer = SumOver(p * weighted, *over_keys.over, where=over_keys.where)
    d_o = d_p.expr / weighted
    chain = (d.target, over_keys, SumOver(p * inner, *over_keys.over, where=over_keys.where), SumOver(d_o * outer, *d.over))
    return (script.chain((*chain, SumOver(d.expr, *d.over)), d),)
