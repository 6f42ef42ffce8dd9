"""From a definition to its derivation: one step per statement of the program, with the numbers of an example put in.

The engine reads programs and knows no variant: a new definition needs nothing here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import sympy as sp

from symattn.algorithms import BY_TILES, gradient_by_tiles
from symattn.defined import refuse_undefined
from symattn.definition import Definition
from symattn.derivation.binding import changed_title, definition_of, inputs_of, moved_by, refuse_empty_rows
from symattn.derivation.blocks import Section
from symattn.derivation.columns import by_columns, matrices, turned
from symattn.derivation.derived import Derived, derived
from symattn.derivation.differentials.page import gradient_sections
from symattn.derivation.document import Derivation, Formula, Line, Step
from symattn.derivation.examples import MAX_DIGITS, Example, load
from symattn.derivation.introduced import introduced
from symattn.derivation.naming import naming, words_for
from symattn.derivation.nodeprint import Style
from symattn.derivation.notation import Notation, signed
from symattn.derivation.notationfile import load as load_notation
from symattn.derivation.origin import origin
from symattn.derivation.page import Page, how_exact, trimmed
from symattn.derivation.pagenotes import Notes
from symattn.derivation.pycode import Source
from symattn.derivation.shaping import computable, grouped, used, with_constants_in_place, without_maxima
from symattn.derivation.symbols import element_formula, extents, shapes_of, step_formulas
from symattn.derivation.tangentnames import dotted_for, naming_of_tangent
from symattn.derivation.values import VOCABULARY, Numbers
from symattn.derivation.weightmaps import weight_maps
from symattn.derivation.work import Worksheet
from symattn.errors import DefinitionError, FileFormatError, InputValueError, LimitError
from symattn.grammarprint import write_value
from symattn.program import Program, Statement
from symattn.readings.latex import Letters, batch_indices

FORMS = ("index", "matrix", "both")
BY_DEFINITION = "by definition"
BY_RULE = "derivative rule"
QUERY = sp.Symbol("i", integer=True)


def derive(
    definition: Definition | None = None,
    example: Example | str | Path | None = None,
    gradient: bool = False,
    form: str = "both",
    digits: int | None = None,
    *,
    jvp: bool = False,
    hvp: bool = False,
    show_max: bool = False,
    lse: bool = False,
    title: str = "",
    about: str = "",
    detail: str = "steps",
    show: str = "both",
    follow: int | str | None = None,
    values: bool = False,
    shapes: bool | None = None,
    notation: Notation | str | Path | None = None,
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
    jvp
        Add the steps of the tangent of the outputs (forward mode, the Jacobian-vector product): along the directions that the
        example gives (``tangent_query`` ...), with numbers then, or along a direction of every input.
    hvp
        Add the steps of the gradient, and of its tangent along these directions: the Hessian-vector product. The incoming
        gradient is held fixed unless the example gives ``tangent_grad_out``.
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
    detail, show, follow, values, shapes
        How much the page says: see :class:`~symattn.derivation.page.Page`.
    notation
        Letters, signs and conventions of the page: a :class:`~symattn.derivation.notation.Notation`, the name of a shipped one,
        or the path of a TOML file.

    Returns
    -------
    Derivation
        Its ``to_latex``, ``to_markdown``, ``to_html``, ``to_text`` and ``to_json`` give the document.

    Raises
    ------
    DefinitionError
        When ``form``, ``detail`` or ``show`` has no such value, when numbers are asked for that no example gives, or the
        definition contradicts itself, the example or the notation.
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
    page = Page(detail, show, follow, values, shapes)
    if isinstance(example, (str, Path)):
        example = load(example)
    if isinstance(notation, (str, Path)):
        notation = load_notation(notation)
    if example is None:
        page.refuse_without_numbers()
    definition = definition_of(example, definition) if example is not None else definition or Definition()
    definition = definition.replace(lse=lse)
    program = definition.program()
    known = gradient_by_tiles(definition) if definition.algorithm in BY_TILES and (gradient or hvp) else None
    if known is not None:
        program = known.program.with_statements(known.program.statements[: known.forward], program.outputs)
    try:
        moved = moved_by(example, program, definition) if example is not None and (jvp or hvp) else ()
        made = derived(program, gradient=gradient, jvp=jvp, hvp=hvp, moved=moved, known=known)
        helpers = show_max or page.full
        written = (notation or Notation()).resolved({*made.program.inputs, *(s.name for s in made.program)})
        return _Engine(definition, program, made, example, form, digits, helpers, title, about, page, written).derivation()
    except InputValueError as why:
        if example is None or str(why).startswith(f"{example.name}: "):
            raise
        raise FileFormatError(f"{example.name}: {why} (positions are counted from 0 here)") from why


@dataclass(frozen=True)
class _Sheet:
    """The program that is shown, with its numbers and letters; ``hidden`` are the helpers that are no steps."""

    program: Program
    numbers: Numbers | None
    hidden: frozenset[str]
    letters: Letters
    style: Style

    def formula(self, group: Sequence[Statement], line: Line) -> Formula | None:
        """The formula that the numbers of a line are put into."""
        return element_formula(self.program, group, line.item, self.style.origin, self.hidden, self.style.letters)


@dataclass(frozen=True)
class _Engine:
    definition: Definition
    forward: Program
    made: Derived
    example: Example | None
    form: str
    digits: int | None
    show_max: bool
    title: str
    about: str
    page: Page
    notation: Notation

    def derivation(self) -> Derivation:
        helpers = self.show_max or self.definition.algorithm in BY_TILES  # a running maximum is what an algorithm is about
        whole = self.made.program if helpers else without_maxima(self.made.program)
        rows = with_constants_in_place(whole)
        program = self.oriented(rows)
        style = self.style(program)
        steps = grouped(program, helpers)
        hidden = frozenset(s.name for step in steps for s in step[:-1])
        inline = frozenset(n for n in hidden if not program[n].over)
        numbers = self.numbers(rows, style, inline) if self.page.show != "symbolic" else None
        letters = replace(style.letters, extents=extents(program, style.letters)) if self.page.shaped else style.letters
        sheet = _Sheet(program, numbers, hidden, letters, style)
        found = [self.step(k + 1, group, sheet) for k, group in enumerate(steps)]
        found = introduced(found, numbers, hidden) if numbers is not None else found
        if self.page.show == "side-by-side":
            pairs = zip(found, steps, strict=True)
            found = [replace(s, lines=tuple(replace(x, formula=sheet.formula(g, x)) for x in s.lines)) for s, g in pairs]
        found = [replace(s, uses=uses) for s, uses in zip(found, used(steps), strict=True)]
        outputs = (*self.forward.outputs, *program.outputs)
        made = tuple(self.notation.written(s) for s in (trimmed(s, self.page, outputs) for s in found) if self.page.holds(s))
        example = self.example
        title, about = self.heading()
        return Derivation(
            title=title,
            about=about,
            definition=", ".join(self.fields()),
            conventions=self.definition.conventions(),
            steps=made,
            inputs=numbers.inputs() if numbers and not self.page.brief else (),
            words=self.words() if example else {},
            follow=numbers.follow if numbers and not self.page.brief else None,
            digits=self.places,
            notes=Notes(self.definition, self.made, program, made, numbers, style, self.places, self.notation.columns).found(),
            rewritings=() if self.page.brief else tuple(map(str, self.made.rewritings)),
            style=style,
            detail=self.page.detail,
            maps=weight_maps(numbers) if numbers else (),
            source=Source(numbers.program, numbers.arrays, numbers.sizes) if numbers else None,
            sections=self.sections(made, style.letters),
        )

    @property
    def flat(self) -> frozenset[str]:
        """The tensors that are transposed on the page."""
        return matrices(self.made.program) if self.notation.columns else frozenset()

    def oriented(self, program: Program) -> Program:
        """The program with positions as rows or as columns, as the notation says."""
        if not self.notation.columns:
            return program
        if self.definition.algorithm in BY_TILES:
            why = "algorithms by tiles are written for one row at a time"
            raise DefinitionError(f"{self.notation.name}: convention: got 'column'; {why}; allowed: 'row'")
        return by_columns(program, self.flat)

    def sections(self, steps: Sequence[Step], letters: Letters) -> tuple[Section, ...]:
        """The gradient as a derivation by differentials, around its steps."""
        if not self.page.told or self.made.tangent or not self.made.gradient:
            return ()
        found = gradient_sections(self.definition, steps, self.form, letters, self.made.program, self.notation.columns)
        return signed(found, self.notation.signed, self.notation.worded)

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
        letters = Letters.of(words_for(self.definition.parameters) | dotted_for(names, self.definition.parameters), names)
        return Style(
            letters=self.notation.table(letters, names, [a.name for a in program.dims], map(str, program.sizes)),
            leading={k: v for k, v in leading.items() if v},
            decimals=decimals,
            origin=self.notation.first(origin(program)),
            heads=self.notation.named(leading, self.definition.heads, self.definition.kv_heads),
            mark=self.notation.decimal,
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
        derived = any(s.name not in self.forward for s in reachable)
        checked = computable(self.made.raw, set(arrays)) if derived else self.forward
        refuse_undefined(checked, arrays, {str(size): length for size, length in sizes.items()})
        if self.definition.empty_row == "error":
            refuse_empty_rows(self.example, Worksheet(reachable, arrays, sizes))
        queries = next((length for size, length in sizes.items() if size == self.forward.dims.get(QUERY)), 1)
        follow = self.page.followed(self.example, queries, style.origin)
        shown = self.oriented(reachable)
        arrays = turned(arrays, self.flat)
        return Numbers(shown, arrays, sizes, style, self.places, follow, labels, inline, self.page, self.flat)

    def step(self, number: int, group: Sequence[Statement], on: _Sheet) -> Step:
        last = group[-1]
        own = self.definition.parameters
        if last.name in self.made.tangent:
            name, reason = naming_of_tangent(last, own, self.made.program.outputs)
        else:
            name, reason = naming(last, followed=on.numbers is not None and not self.page.every, parameters=own)
        index, matrix = step_formulas(on.program, group, self.form, on.hidden, on.letters)
        step = Step(
            number=number,
            tensors=tuple(s.name for s in group),
            name=name,
            reason=reason,
            index=index,
            matrix=matrix,
            known=self.known(last),
            backward=last.name in self.made.gradient,
            tangent=last.name in self.made.tangent,
            shapes=shapes_of(on.program, group, on.hidden, on.letters),
        )
        if on.numbers is None or last.name not in on.numbers.program:
            return step
        lines, grids, remark = on.numbers.step(group)
        return replace(step, lines=lines, grids=grids, remark=remark, numbers=how_exact(lines, grids))

    def known(self, s: Statement) -> str:
        """How the statement is known to be right: the weakest status of all rewritings that made it."""
        if s.name in self.forward:
            return BY_DEFINITION
        statuses = {
            r.status for r in self.made.rewritings if s.name in r.names and r.status in ("checked", "proved for all sizes")
        }
        if "checked" in statuses:
            return "derivative rule; its rewriting is checked at 400 bits"
        return f"derivative rule; its rewriting is {statuses.pop()}" if statuses else BY_RULE
