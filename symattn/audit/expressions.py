"""Expressions of claims files: the language of formulas over the names of an example, rows and elements included."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from symattn.audit.arrays import Value, element, flat, shape
from symattn.audit.evaluate import Budget, Evaluator
from symattn.audit.language import parse
from symattn.audit.language_nodes import Apply, Name, Node, Number
from symattn.audit.language_nodes import Array as Listed
from symattn.audit.language_symbols import FUNCTIONS
from symattn.audit.printed import Printed
from symattn.audit.trees import Real, bounds, from_value, interval, to_sympy
from symattn.errors import GrammarError, UnknownNameError

Array = npt.NDArray[Any]

_IDENTIFIER = re.compile(r"(?<![\\\w])(?P<name>[^\W\d](?:(?!ᵀ)\w)*)(?P<index>(?:\[\s*(?:-?\d+|:)(?:\s*,\s*(?:-?\d+|:))*\s*\])*)")
_STAND_IN = "quantity"


@dataclass(frozen=True)
class Formula:
    """A parsed expression, and the names that its stand-ins are for."""

    tree: Node
    stands_for: dict[str, str]


def parsed(text: str, known: Callable[[str], bool]) -> Formula:
    """The tree of an expression.

    Parameters
    ----------
    text
        In the language of formulas; a known name may have indices, ``weights[0,1]``, counted from 0.
    known
        Whether a name is one: it is then read whole, however a page would typeset its letters.

    Raises
    ------
    GrammarError, LimitError
        When it is no formula.

    >>> names(parsed("softmax(WK1[0]) + exp(2)", lambda name: name == "WK1"))
    ('WK1[0]',)
    """
    table: dict[str, str] = {}

    def stand_in(m: re.Match[str]) -> str:
        called = text[m.end() :].lstrip()[:1] == "("
        if not known(m["name"]) or (called and m["name"].lower() in FUNCTIONS):
            return m[0]
        full = m["name"] + re.sub(r"\s", "", m["index"])
        token = next((t for t, n in table.items() if n == full), None)
        if token is None:
            k = len(table)
            token = _STAND_IN + chr(97 + k // 26 % 26) + chr(97 + k % 26)
            table[token] = full
        return f"({token})"

    try:
        return Formula(parse(_IDENTIFIER.sub(stand_in, text)), table)
    except GrammarError as why:
        message = re.sub(rf"{_STAND_IN}[a-z][a-z]", lambda m: table.get(m[0], m[0]), str(why))
        raise GrammarError(f"{text!r} is no expression: {message}") from why


def names(formula: Formula) -> tuple[str, ...]:
    """The names that an expression reads, with their indices, in order."""
    found: dict[str, None] = {}

    def walk(node: Node) -> None:
        if isinstance(node, Name):
            found.setdefault(formula.stands_for.get(node.text, node.text))
        for part in node.items if isinstance(node, Listed) else node.args if isinstance(node, Apply) else ():
            walk(part)

    walk(formula.tree)
    return tuple(found)


def value(formula: Formula, lookup: Callable[[str], Array]) -> Array:
    """The exact value of an expression, as SymPy numbers.

    Parameters
    ----------
    formula
        As :func:`parsed` gives it.
    lookup
        The value of a name with its indices: an array of SymPy numbers.

    Raises
    ------
    SymattnError
        When it has none.

    >>> import numpy as np
    >>> import sympy as sp
    >>> x = np.array([sp.Integer(0), sp.log(3)], dtype=object)
    >>> value(parsed("softmax(x)", lambda name: False), lambda name: x).tolist()
    [1/4, 3/4]
    """
    found = Evaluator(_Names(formula, lookup), Budget()).value(formula.tree)
    known: dict[int, Any] = {}
    out = np.empty(shape(found), dtype=object)
    out.ravel()[:] = [to_sympy(x, known) for x in flat(found)]
    return out


def ends(formula: Formula, lookup: Callable[[str], Array]) -> Array:
    """Intervals of an expression of intervals: pairs of fractions, None where nothing is known.

    Parameters
    ----------
    formula, lookup
        As for :func:`value`; the arrays hold pairs of fractions, the ends of intervals.
    """
    found = Evaluator(_Names(formula, lookup), Budget()).value(formula.tree)
    out = np.empty(shape(found), dtype=object)
    for place, x in zip(np.ndindex(out.shape), flat(found), strict=True):
        out[place] = bounds(x)
    return out


class _Names:
    """What names stand for in an expression of a claims file; numbers are themselves."""

    def __init__(self, formula: Formula, lookup: Callable[[str], Array]) -> None:
        self.formula_, self.lookup = formula, lookup
        self.values: dict[str, Value] = {}

    def number(self, node: Number, negated: bool) -> Real:
        x = Printed(node.text + "%" * node.percent).value
        return -x if negated else x

    def name(self, text: str, index: tuple[int, ...]) -> Value | None:
        full = self.formula_.stands_for.get(text, text)
        if full not in self.values:
            try:
                self.values[full] = self._nested(self.lookup(full))
            except UnknownNameError:
                if full in ("e", "pi"):
                    return None
                raise
        return element(self.values[full], index) if index else self.values[full]

    def formula(self, node: Node) -> Value | None:
        return None

    def _nested(self, x: Array) -> Value:
        """An array as nested tuples."""
        if x.ndim > 1:
            return tuple(self._nested(part) for part in x)
        return tuple(_real(v) for v in x.tolist()) if x.ndim else _real(x.item())


def _real(v: Any) -> Real:
    return interval(*v) if isinstance(v, tuple) else from_value(v)
