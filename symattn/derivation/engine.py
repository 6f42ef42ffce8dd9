"""From a definition to its derivation: one step per statement of the program, with the numbers of an example put in.

The engine reads programs and knows no variant: a new definition needs nothing here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from symattn.adjoint import adjoint
from symattn.defined import refuse_undefined
from symattn.definition import Definition
from symattn.derivation.backorder import in_field_order
from symattn.derivation.binding import changed_title, definition_of, inputs_of, refuse_empty_rows
from symattn.derivation.document import Derivation, Step
from symattn.derivation.examples import MAX_DIGITS, Example, load
from symattn.derivation.naming import LEGEND, naming, words_for
from symattn.derivation.nodeprint import Style
from symattn.derivation.origin import origin
from symattn.derivation.shaping import computable, grouped, with_constants_in_place, without_maxima
from symattn.derivation.symbols import step_formulas
from symattn.derivation.unicodemath import unicode_math
from symattn.derivation.values import HEADS, VOCABULARY, Numbers
from symattn.derivation.work import Worksheet
from symattn.errors import DefinitionError, FileFormatError, InputValueError, LimitError
from symattn.grammarprint import write_value
from symattn.presentation import Presented, present
from symattn.program import Program, Statement
from symattn.readings.latex import Letters, batch_indices

FORMS = ("index", "matrix", "both")
BY_DEFINITION = "by definition"
BY_RULE = "derivative rule"


def derive(
    definition: Definition | None = None,
    example: Example | str | Path | None = None,
    gradient: bool = False,
    form: str = "both",
    digits: int | None = None,
    *,
    show_max: bool = False,
    lse: bool = False,
    title: str = "",
    about: str = "",
) -> Derivation:
    """The derivation of a definition.

    Parameters
    ----------
    definition
        Any definition; None is plain attention, or what the example asks for. With an example its changed fields go over the
        example's.
    example
        Numbers: an :class:`~symattn.derivation.examples.Example`, the name of a shipped one, or the path of a TOML file.
    gradient
        Add the steps of the gradient, each with how it is known. They have numbers where the example gives ``grad_out``.
    form
        ``"index"``, ``"matrix"`` or ``"both"``.
    digits
        Decimals to print, correctly rounded; None: what the example says, or 4.
    show_max
        Show the row maximum that is taken off before the exponential, and every helper, as steps of their own.
    lse
        Derive the log-sum-exp too, whatever the definition says.
    title, about
        Heading and first sentence; those of the example where they are empty. Where an example asks for fields of its own
        and the definition is another, its heading says "changed", and its sentence is left out.

    Returns
    -------
    Derivation
        Its ``to_latex``, ``to_markdown``, ``to_html``, ``to_text`` and ``to_json`` give the document.

    Raises
    ------
    DefinitionError
        When ``form`` is none of the three, or the definition contradicts itself or the example.
    FileFormatError, InputValueError, UnknownNameError
        When the example cannot be read or does not fit: shapes, a query that sees no key where the definition says that this is
        an error, or a score, a derivative of one or a condition that has no value.
    UndecidedError
        When a comparison of two irrational numbers that are equal would be needed.

    >>> derivation = derive(example="the-cat-sat")
    >>> [cell.decimal for cell in derivation["P"].grids[0].cells[0]]
    ['0.1906', '0.0106', '0.0033', '0.6048', '0.1906']
    """
    if form not in FORMS:
        raise DefinitionError(f"form is one of {', '.join(map(repr, FORMS))}, got {form!r}")
    if digits is not None and not 0 < digits <= MAX_DIGITS:
        raise LimitError(f"digits is from 1 to {MAX_DIGITS}, got {digits}")
    if isinstance(example, (str, Path)):
        example = load(example)
    definition = definition_of(example, definition) if example is not None else definition or Definition()
    definition = definition.replace(lse=lse)
    program = definition.program()
    whole = adjoint(program) if gradient else program
    presented = present(program, whole) if gradient else None
    try:
        return _Engine(definition, program, whole, presented, example, form, digits, show_max, title, about).derivation()
    except InputValueError as why:
        if example is None or str(why).startswith(f"{example.name}: "):
            raise
        raise FileFormatError(f"{example.name}: {why} (positions are counted from 0 here)") from why


@dataclass(frozen=True)
class _Engine:
    definition: Definition
    forward: Program
    whole: Program
    presented: Presented | None
    example: Example | None
    form: str
    digits: int | None
    show_max: bool
    title: str
    about: str

    def derivation(self) -> Derivation:
        whole = in_field_order(self.presented.program, self.forward) if self.presented else self.forward
        if not self.show_max:
            whole = without_maxima(whole)
        program = with_constants_in_place(whole)
        style = self.style(program)
        steps = grouped(program, self.show_max)
        hidden = frozenset(s.name for step in steps for s in step[:-1])
        inline = frozenset(n for n in hidden if not program[n].over)
        numbers = self.numbers(program, style, inline)
        made = tuple(self.step(k + 1, group, program, numbers, hidden, style.letters) for k, group in enumerate(steps))
        example = self.example
        title, about = self.heading()
        return Derivation(
            title=title,
            about=about,
            definition=", ".join(self.fields()),
            conventions=self.definition.conventions(),
            steps=made,
            inputs=numbers.inputs() if numbers else (),
            words=self.words() if example else {},
            follow=example.follow if example else None,
            digits=self.places,
            notes=self.notes(program, made, numbers, style),
            rewritings=tuple(str(s) for s in self.presented.steps) if self.presented else (),
            style=style,
        )

    @property
    def places(self) -> int:
        return self.digits if self.digits is not None else self.example.digits if self.example else 4

    def heading(self) -> tuple[str, str]:
        """Title and first sentence: as given, or those of the example where it is of this definition."""
        example = self.example
        if example is None or self.title:
            return self.title or "Attention", self.about
        if example.definition and definition_of(example).replace(lse=self.definition.lse) != self.definition:
            return changed_title(example), self.about
        return example.title or example.name, self.about or example.about

    def fields(self) -> list[str]:
        """The fields that are not at their default, as they are typed; parameters one by one."""
        found = []
        for name, value in self.definition.changed.items():
            if name == "params":
                found += [f"param {p}={write_value(v)}" for p, v in value.items()]
            elif name != "lse":
                found.append(f"{name}={write_value(value)}")
        return found

    def style(self, program: Program) -> Style:
        batch = batch_indices(program)
        names = {*program.inputs, *(s.name for s in program)}
        leading = {s.name: sum(a in batch for a in s.indices) for s in program}
        sizes = {program.dims[a] for a in batch}
        for n in program.inputs:
            leading[n] = sum(d in sizes for d in program.shapes[n][:-2])
        decimals = self.example.decimals if self.example else False
        return Style(
            letters=Letters.of(words_for(self.definition.parameters), names),
            leading={k: v for k, v in leading.items() if v},
            decimals=decimals,
            origin=origin(program),
        )

    def words(self) -> dict[str, tuple[str, ...]]:
        """Index name -> the words at its positions."""
        assert self.example is not None
        return {a: w for a, w in (("i", self.example.tokens), ("p", self.example.tokens), ("j", self.example.memory)) if w}

    def numbers(self, program: Program, style: Style, inline: frozenset[str]) -> Numbers | None:
        if self.example is None:
            return None
        arrays, sizes = inputs_of(self.example, program, self.definition)
        reachable = computable(program, set(arrays))
        arrays = {n: a for n, a in arrays.items() if n in reachable.inputs}
        labels = {**self.words(), VOCABULARY: self.example.vocabulary}
        backward = any(s.name not in self.forward for s in reachable)
        checked = computable(self.whole, set(arrays)) if backward else self.forward
        refuse_undefined(checked, arrays, {str(size): length for size, length in sizes.items()})
        if self.definition.empty_row == "error":
            refuse_empty_rows(self.example, Worksheet(reachable, arrays, sizes))
        return Numbers(reachable, arrays, sizes, style, self.places, self.example.follow, labels, inline)

    def step(
        self,
        number: int,
        group: Sequence[Statement],
        program: Program,
        numbers: Numbers | None,
        hidden: frozenset[str],
        letters: Letters,
    ) -> Step:
        last = group[-1]
        backward = self.backward(last)
        name, reason = naming(last, followed=numbers is not None, parameters=self.definition.parameters)
        index, matrix = step_formulas(program, group, self.form, hidden, letters)
        step = Step(
            number=number,
            tensors=tuple(s.name for s in group),
            name=name,
            reason=reason,
            index=index,
            matrix=matrix,
            known=self.known(last, backward),
            backward=backward,
        )
        if numbers is None or last.name not in numbers.program:
            return step
        lines, grids, remark = numbers.step(group)
        return replace(step, lines=lines, grids=grids, remark=remark)

    def backward(self, s: Statement) -> bool:
        return s.name not in self.forward

    def known(self, s: Statement, backward: bool) -> str:
        """How the statement is known to be right: the weakest status of all rewritings that made it."""
        if not backward or self.presented is None:
            return BY_DEFINITION
        statuses = {
            r.status for r in self.presented.steps if s.name in r.names and r.status in ("checked", "proved for all sizes")
        }
        if "checked" in statuses:
            return "derivative rule; its rewriting is checked at 400 bits"
        return f"derivative rule; its rewriting is {statuses.pop()}" if statuses else BY_RULE

    def notes(self, program: Program, steps: Sequence[Step], numbers: Numbers | None, style: Style) -> tuple[str, ...]:
        found = []
        legend = [f"{letter} is {what}" for letter, what in self.legend(program, style)]
        if legend:
            found.append(f"{', '.join(legend)}.")
        if not style.origin:
            found.append("Positions, heads and components are counted from 0, as in the formulas.")
        elif numbers is not None:
            found.append("Positions, heads and components are counted from 1.")
        if numbers is not None:
            heads = numbers.heads
            if heads > 1:
                shown = f" Matrices are shown for the first {HEADS} of {heads} heads." if heads > HEADS else ""
                found.append(f"Of several heads, the first one is worked out.{shown}")
            if any(c.masked for s in steps for g in s.grids for row in g.cells for c in row):
                found.append("A dot in a matrix marks a place outside the mask: nothing is computed there.")
            found.append(
                f"Decimals are rounded once from the exact value, to {self.places} places. "
                "In a line that computes with decimals they carry two more places."
            )
        if self.presented is not None:
            found.append(
                "A gradient dT has the shape of T; the loss is the sum of all products of an output and its incoming gradient."
            )
            if numbers is not None and not any(s.backward for s in steps if s.grids):
                found.append("The gradient has no numbers because the example gives no grad_out.")
        return tuple(found)

    def legend(self, program: Program, style: Style) -> list[tuple[str, str]]:
        """The letters of inputs that do not speak for themselves, each with what it stands for."""
        own = self.definition.parameters
        return [
            (unicode_math(style.name(n), labels=True), what) for n, what in LEGEND.items() if n in program.inputs and n not in own
        ]
