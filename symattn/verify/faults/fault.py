"""A fault as data: what a wrong kernel computes, as a rewriting of the definition, of its lists, of what it reads or writes.

A :class:`Fault` is a row of the catalogue. On a :class:`Situation` (one input, a definition, a declared arithmetic) its
``rewrite`` yields the :class:`Alternative` computations that it can mean there, none where it means nothing;
:func:`symattn.verify.faults.predict.predictions` says what a kernel with this fault would return, and how far it may be off.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np
import sympy as sp

from symattn.arithmetic import Arithmetic
from symattn.binding import Bound
from symattn.definition import Definition
from symattn.errors import DefinitionError
from symattn.intake import Array
from symattn.program import Program
from symattn.verify import programs
from symattn.verify.reference import Reference

Kind = Literal["convention", "mathematics", "arithmetic", "range"]
KINDS: tuple[Kind, ...] = ("convention", "mathematics", "arithmetic", "range")
"""From what is named first to what is named last, where several explain a kernel."""

Edit = Callable[[Program], Program]
"""A rewriting of a list of statements; a list in which it finds nothing comes back as it is."""


SIZES = {"B": "B", "H": "H", "Hkv": "HKV", "n": "N", "m": "M", "d": "D", "dv": "DV"}
"""Letters of sizes, by their symbols in programs."""


@dataclass(frozen=True)
class Prediction:
    """One tensor as a faulty kernel computes it: float64 ``value``, and ``reach``: how far such a kernel may be from it.

    The reach is the rounding bound of the declared arithmetic plus the error of the float64 value; infinite where the
    arithmetic promises nothing.
    """

    value: Array
    reach: Array


Predictions = dict[str, Prediction]
"""By field name."""

After = Callable[["Situation", Predictions], Predictions]
"""What is done to predictions."""


@dataclass(frozen=True)
class Alternative:
    """One computation that a fault may mean. What is None is as the definition says.

    Parameters
    ----------
    label
        Which one, where a fault has several: ``tile 64``.
    definition
        Another definition on the same arrays (those that it does not read are left out).
    program
        Another forward program; its gradient follows from it.
    edit
        A rewriting of the lists that kernels run: of the forward and, alike, of the gradient's.
    gradient
        A rewriting of the gradient's list alone.
    reads
        What is read in place of a field: integers,
        positions in the flat array; -1 reads 0. Gradients of the field are added up
        where it was read.
    scatters
        Where gradients are added up instead, by field of the input.
    writes
        The same for what is written: position in the flat result, for each place of an output field.
    fields
        Arrays that are read in place of the given ones, where no look-up describes them (a cast, a constant).
    arithmetic
        Another arithmetic, for the bounds.
    after
        What happens to the results: a function of the situation and the predictions by field name.
    values
        What an emulation gave, in place of all of the above.
    compute
        The same, computed when it is asked for: a function of (forward, backward), which outputs are wanted.
    """

    label: str = ""
    definition: Definition | None = None
    program: Program | None = None
    edit: Edit | None = None
    gradient: Edit | None = None
    reads: Mapping[str, Array] | None = None
    scatters: Mapping[str, Array] | None = None
    writes: Mapping[str, Array] | None = None
    fields: Mapping[str, Array] | None = None
    arithmetic: Arithmetic | None = None
    after: After | None = None
    values: Mapping[str, Prediction] | None = None
    compute: Callable[[bool, bool], Predictions] | None = None


SAME = Alternative()
"""What the definition says."""


@dataclass(frozen=True)
class Fault:
    """A row of the catalogue.

    Parameters
    ----------
    id
        ``F`` and a number for faults that show in the forward pass, ``B`` for those of the backward alone,
        ``C`` for shifts that
        exact algebra allows.
    title
        What the kernel does, as a clause.
    kind
        A ``convention`` that another library means, ``mathematics``, ``arithmetic`` (what is rounded, and when) or ``range``.
    wrong, right
        Formulas as text.
    threads
        Where it shipped, ``project#number``.
    look
        What to look at in the code.
    shows
        In which dtypes, algorithms and on which inputs it shows.
    blind
        Inputs on which it cannot show.
    convention
        The key of :meth:`symattn.definition.Definition.conventions` that it is another choice of; "" where it is of none.
    rewrite
        What it means on a situation.
    spelled
        ``wrong`` and ``right`` of another definition, where the formulas depend on it; None where they do not.
    labelled
        ``wrong`` of single alternatives, by label, where it is not that of the row.
    """

    id: str
    title: str
    kind: Kind
    wrong: str
    right: str
    rewrite: Callable[[Situation], Iterable[Alternative]]
    threads: tuple[str, ...] = ()
    look: str = ""
    shows: str = "any dtype and algorithm"
    blind: str = ""
    convention: str = ""
    spelled: Callable[[Situation], tuple[str, str] | None] | None = None
    labelled: Mapping[str, str] = field(default_factory=dict, compare=False)

    def formulas(self, situation: Situation, label: str = "") -> tuple[str, str]:
        """What is wrong and what is right, as formulas of the definition of a situation, of the alternative of a label."""
        own = None if self.spelled is None else self.spelled(situation)
        wrong, right = own or (self.wrong, self.right)
        return self.labelled.get(label, wrong), right

    @property
    def backward_only(self) -> bool:
        """Whether the forward pass is right."""
        return self.id.startswith("B")

    def alternatives(self, situation: Situation) -> Iterator[Alternative]:
        """What it means on a situation; nothing where it makes no sense there."""
        yield from self.rewrite(situation)

    @property
    def line(self) -> str:
        """The fault in a line: ``F13 causal mask aligned top-left``."""
        return f"{self.id} {self.title}"


@dataclass(frozen=True)
class Situation:
    """One input of a definition, and how the kernel on it is judged.

    Parameters
    ----------
    reference
        The definition with its arrays.
    arithmetic
        What the kernel declares.
    saved
        The kernel's own ``out`` and ``lse`` where its backward is judged from them; None: end to end.
    with_lse
        Whether the kernel takes the gradient of the log-sum-exp; it is 0 otherwise.
    """

    reference: Reference
    arithmetic: Arithmetic
    saved: Mapping[str, Array] | None = None
    with_lse: bool = False
    kept: dict[Any, Any] = field(default_factory=dict, repr=False, compare=False)
    """What was derived on the way, for the next hypothesis."""

    @property
    def definition(self) -> Definition:
        """The definition, with heads and axes as the arrays show them."""
        return self.reference.definition

    @property
    def fields(self) -> Mapping[str, Array]:
        """Arrays by field name, layout ``bhsd``."""
        return self.reference.fields

    @property
    def bound(self) -> Bound:
        """The definition's program with its inputs."""
        return self.reference.bound

    @property
    def program(self) -> Program:
        """The forward program of the definition."""
        return self.bound.program

    @cached_property
    def forward(self) -> Program:
        """The list that the kernel's forward follows."""
        return programs.followed(self.program, self.arithmetic, gradient=False)

    @cached_property
    def backward(self) -> Program:
        """The list that gives the gradients: from the saved output and LSE where the backward is staged, else from the inputs."""
        return self.gradient_of(self.program)

    def gradient_of(self, program: Program) -> Program:
        """The list of the gradients of a forward program; its outputs are gradients alone."""
        whole = programs.followed(program, self.arithmetic, gradient=True)
        if self.saved is not None:
            return programs.staged(whole, program.outputs)
        return whole.with_statements(whole.statements, [o for o in whole.outputs if o not in program.outputs]).live()

    @property
    def sizes(self) -> dict[str, int]:
        """B, H, HKV, N, M, D, DV: from the arrays, else from the program, else those of the size that each follows."""
        bound = self.reference.bound.sizes
        found = {letter: int(bound[s]) for s, letter in SIZES.items() if s in bound} | self.reference.call.shape
        for letter, other in (("B", ""), ("H", ""), ("HKV", "H"), ("N", ""), ("M", "N"), ("D", ""), ("DV", "D")):
            found.setdefault(letter, found.get(other, 1))
        return found

    def size(self, name: str) -> sp.Expr:
        """A size as the list writes it: its letter, that of the size which it follows (m of self-attention), or a number."""
        known = {x.name: x for x in self.program.sizes}
        found = known.get(name) or known.get({"m": "n", "Hkv": "H", "dv": "d"}.get(name, name))
        return found if found is not None else sp.Integer(self.sizes[SIZES[name]])

    def changed(self, label: str, *, after: After | None = None, **fields: Any) -> Iterator[Alternative]:
        """The definition with other fields, parameters that these leave unread gone; nothing where they contradict the others."""
        own = self.definition
        try:
            bare = own.replace(**fields, params={})
            other = bare.replace(params={n: x for n, x in own.params.items() if n in bare.parameters})
        except DefinitionError:
            return
        if other != own:
            yield Alternative(label, definition=other, after=after)

    @property
    def has_gradient(self) -> bool:
        """Whether incoming gradients are given."""
        return "grad_out" in self.fields

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of the inputs."""
        return self.reference.call.dtype
