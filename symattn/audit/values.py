"""The quantities of an example by name: tensors of its program, its inputs, named expressions; exact, or from printed numbers."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import sympy as sp

from symattn.audit import expressions
from symattn.audit.claimsfile import Example, Given
from symattn.audit.printed import Printed
from symattn.audit.quantities import Place, field_named, letter_named, place_of, size_named
from symattn.audit.ranges import Box, Interval
from symattn.audit.sheet import BEFORE_MASK, Sheet
from symattn.errors import InputValueError, SymattnError, UnknownNameError
from symattn.readings.exact import number

Array = npt.NDArray[Any]

EXPRESSION = "="
"""Before the text of an expression that is a quantity by itself."""


class Values:
    """What the names of an example stand for.

    A quantity is known by its *base*: the letter of a tensor of the program, the name of an input or of an expression under
    ``[let]``, or an expression with ``=`` before it.

    Parameters
    ----------
    example
        With inputs, fields of the definition and named expressions.
    sheet
        The program with its numbers; by default as the example says.
    """

    def __init__(self, example: Example, sheet: Sheet | None = None) -> None:
        self.example = example
        self.let = {**example.let, **_named_claims(example)}
        self._sheet = sheet
        self._exact: dict[str, Array] = {}
        self._ends: dict[str, Array] = {}
        self._parsed: dict[str, expressions.Formula] = {}
        self._inside: list[str] = []

    @cached_property
    def sheet(self) -> Sheet:
        """The program with its numbers.

        Raises
        ------
        SymattnError
            When the inputs make none.
        """
        return self._sheet or Sheet(self.example)

    def resolve(self, text: str, name: str = "") -> tuple[str, tuple[int | None, ...]]:
        """The base and the indices that a text names; what is no name is an expression, known by ``name`` where that is free.

        Raises
        ------
        UnknownNameError, GrammarError
            When it is neither.
        """
        place = place_of(text)
        if place is not None:
            try:
                return self.base(place), place.index
            except SymattnError:
                if " " not in text.strip():
                    raise
        base = name if self.let.get(name) == text else EXPRESSION + text
        self.formula(base)
        return base, ()

    def base(self, place: Place) -> str:
        """The base of a name.

        Raises
        ------
        UnknownNameError
            When nothing has the name.
        """
        name = place.base
        if name in self.let:
            return name
        if name in self.example.inputs and letter_named(name) is None:
            return name
        try:
            return self.sheet.letter(name)
        except UnknownNameError:
            raise
        except SymattnError:
            if name in self.example.inputs:
                return name
            raise

    def formula(self, base: str) -> expressions.Formula:
        """The parsed expression of a base."""
        if base not in self._parsed:
            text = base[1:] if base.startswith(EXPRESSION) else self.let[base]
            self._parsed[base] = expressions.parsed(text, self.is_name)
        return self._parsed[base]

    def is_name(self, name: str) -> bool:
        """Whether a word in an expression is a name of the example or of a quantity."""
        return name in self.let or name in self.example.inputs or letter_named(name) is not None or name == "heads"

    def is_expression(self, base: str) -> bool:
        """Whether a base is an expression."""
        return base.startswith(EXPRESSION) or base in self.let

    def is_tensor(self, base: str) -> bool:
        """Whether a base is a tensor of the program."""
        return not self.is_expression(base) and not (base in self.example.inputs and letter_named(base) is None)

    def part(self, base: str, index: tuple[int | None, ...], printed: Mapping[str, Array] | None = None) -> Array:
        """The exact values of a quantity or a part of it, as SymPy numbers; with ``printed``, what follows from printed numbers.

        Raises
        ------
        SymattnError
            When it has no value, or no such part.
        """
        whole = self.whole(base, printed or {})
        if len(index) > whole.ndim:
            raise InputValueError(f"{len(index)} indices, and the quantity has the shape {whole.shape}")
        for k, (at, n) in enumerate(zip(index, whole.shape, strict=False)):
            if at is not None and not -n <= at < n:
                raise InputValueError(f"index {at} on axis {k} of a quantity of shape {whole.shape}; indices count from 0")
        return _indexed(whole, index)

    def whole(self, base: str, printed: Mapping[str, Array]) -> Array:
        """All of a quantity."""
        if not printed and base in self._exact:
            return self._exact[base]
        found = self._whole(base, printed)
        if not printed:
            self._exact[base] = found
        return found

    def _whole(self, base: str, printed: Mapping[str, Array]) -> Array:
        if self.is_expression(base):
            if base in self._inside:
                raise InputValueError(f"{base} is defined by itself: {' -> '.join([*self._inside, base])}")
            self._inside.append(base)
            try:
                return expressions.value(self.formula(base), lambda name: self.named(name, printed))
            finally:
                self._inside.pop()
        if not self.is_tensor(base):
            return numbers_of(self.example.inputs[base].values)
        return self.sheet.tensor(base, {k: v for k, v in printed.items() if not self.is_expression(k)})

    def named(self, name: str, printed: Mapping[str, Array]) -> Array:
        """The value of a name in an expression: printed where the page prints it."""
        place = place_of(name) or Place(name)
        if place.base in self.example.inputs and place.base not in self.let:
            whole = numbers_of(self.example.inputs[place.base].values)
            return _indexed(whole, place.index)
        base = self.base(place)
        whole = self.whole(base, printed)
        if base in printed:
            flat = zip(printed[base].ravel().tolist(), whole.ravel().tolist(), strict=True)
            patched = np.empty(whole.shape, dtype=object)
            patched.ravel()[:] = [w if p is None else number(p) for p, w in flat]
            whole = patched
        return _indexed(whole, place.index)

    # what leads to a quantity

    def direct(self, base: str) -> frozenset[str]:
        """The quantities that a quantity is computed from."""
        if self.is_expression(base):
            found = set()
            for name in expressions.names(self.formula(base)):
                place = place_of(name) or Place(name)
                if place.base in self.example.inputs and place.base not in self.let:
                    continue
                found.add(self.base(place))
            return frozenset(found)
        if not self.is_tensor(base):
            return frozenset()
        return self.sheet.direct(base)

    def nearest(self, base: str, claimed: set[str]) -> set[str]:
        """The claimed quantities that a quantity is computed from, those behind others left out."""
        found: set[str] = set()
        seen: set[str] = set()
        todo = list(self.direct(base))
        while todo:
            b = todo.pop()
            if b in seen:
                continue
            seen.add(b)
            same = {c for c in claimed if c == b or (self.is_tensor(b) and self.is_tensor(c) and self._is_same(b, c))}
            found |= same
            todo += () if same else self.direct(b)
        return found

    def _is_same(self, a: str, b: str) -> bool:
        """Whether two quantities are one tensor: scaled scores, and what the softmax takes where nothing is between."""
        return self.sheet.statement(a) == self.sheet.statement(b)

    # masks and rounded inputs

    def hidden(self, base: str) -> Array | None:
        """Where a mask hides scores; None where there is none, or the quantity is no score."""
        if self.is_expression(base) or base not in (*BEFORE_MASK, "Z"):
            return None
        hidden = self.sheet.hidden()
        return hidden if hidden.any() else None

    def shows_mask(self, base: str, p: Printed) -> bool:
        """Whether a printed number of a hidden score is judged as minus infinity."""
        return base == "Z" or p.kind == "infinity"

    @cached_property
    def rounded(self) -> bool:
        """Whether the page rounded some input."""
        return any(w != 0 for g in self.example.inputs.values() for w in g.half_widths.ravel().tolist())

    @cached_property
    def box(self) -> Box:
        """The inputs as intervals."""
        return Box(self.sheet)

    def ends(self, base: str) -> Array:
        """Intervals of all of a quantity, for all inputs that round to the printed ones: pairs of fractions, or None."""
        if base not in self._ends:
            self._ends[base] = self._enclosed(base)
        return self._ends[base]

    def _enclosed(self, base: str) -> Array:
        if self.is_expression(base):
            return expressions.ends(self.formula(base), self._named_ends)
        if not self.is_tensor(base):
            return _pairs(self.example.inputs[base])
        whole = self.whole(base, {})
        out = np.empty(whole.shape, dtype=object)
        for place in np.ndindex(whole.shape):
            out[place] = self.box.interval(base, place)
        return out

    def _named_ends(self, name: str) -> Array:
        place = place_of(name) or Place(name)
        if place.base in self.example.inputs and place.base not in self.let:
            found = _pairs(self.example.inputs[place.base])
        else:
            found = self.ends(self.base(place))
        if any(x is None for x in found.ravel().tolist()):
            raise InputValueError(f"nothing is known of {name} for all inputs that round to the printed ones")
        return _indexed(found, place.index)

    def spread(self, base: str, place: tuple[int, ...], p: Printed) -> Interval | None:
        """An interval of the exact value for all inputs that round to the printed ones, narrow where that decides on a number.

        Parameters
        ----------
        base
            A quantity.
        place
            Of the element, in all of the quantity.
        p
            What is printed of it.
        """
        try:
            found: Interval | None = self.ends(base)[place]
        except SymattnError:  # nothing bounds it
            return None
        low, high = p.interval()
        if found is None or found[0] > high or found[1] < low or not self.is_tensor(base):
            return found
        return self.box.sharpened(base, place)


def _pairs(g: Given) -> Array:
    out = np.empty(g.values.shape, dtype=object)
    for place in np.ndindex(out.shape):
        x, w = g.values[place], g.half_widths[place]
        out[place] = None if isinstance(x, float) or isinstance(w, float) else (x - w, x + w)
    return out


def _indexed(whole: Array, index: tuple[int | None, ...]) -> Array:
    """A part of an array, as an array."""
    out = np.empty(np.zeros(whole.shape)[target(index)].shape, dtype=object)
    out[...] = whole[target(index)]
    return out


def target(index: tuple[int | None, ...]) -> tuple[int | slice, ...]:
    """Indices as NumPy takes them."""
    return tuple(slice(None) if k is None else k for k in index)


def unused(example: Example) -> list[str]:
    """The inputs that no program takes by their name, and no expression reads: misspelt, most likely."""
    values = Values(example)
    read: set[str] = set()
    for text in (*example.let.values(), *(c.of for c in example.claims)):
        place = place_of(text)
        if place is not None:
            read.add(place.base)
        try:
            read |= {(place_of(n) or Place(n)).base for n in expressions.names(expressions.parsed(text, values.is_name))}
        except SymattnError:
            continue
    known = (field_named, letter_named, size_named)
    return [name for name in example.inputs if name not in read and all(f(name) is None for f in known)]


def _named_claims(example: Example) -> dict[str, str]:
    """The expressions of claims whose names mean nothing else: later expressions may use them."""
    return {
        c.name: c.of
        for c in example.claims
        if c.of != c.name and c.name not in example.inputs and c.name not in example.let and letter_named(c.name) is None
    }


def numbers_of(x: Array) -> Array:
    """Exact numbers as SymPy numbers."""
    out = np.empty(x.shape, dtype=object)
    flat = [number(v) if not isinstance(v, sp.Basic) else v for v in x.ravel().tolist()]
    out.ravel()[:] = flat
    return out
