"""The value of a formula given as text, from names that have values: what claims files and tests ask for."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from symattn.audit import arrays
from symattn.audit.arrays import Value
from symattn.audit.evaluate import MODES, Budget, Evaluator
from symattn.audit.exactness import Value as Number
from symattn.audit.language import parse
from symattn.audit.language_nodes import Node
from symattn.audit.language_nodes import Number as PrintedNumber
from symattn.audit.printed import Printed
from symattn.audit.trees import Real, from_value, to_sympy


def formula_value(text: str, names: Mapping[str, Any], *, mode: str = "dot") -> Number:
    r"""The exact value of a formula.

    Parameters
    ----------
    text
        A formula in LaTeX, Unicode or plain text; see :func:`symattn.audit.language.parse`.
    names
        The value of each name: an ``int``, ``Fraction`` or SymPy number, or nested sequences of them. A subscript of whole
        numbers is part of a name where there is such a name (``q_1``), an element counted from 1 otherwise.
    mode
        What a product of two vectors is: ``dot``, ``elementwise`` or ``outer``.

    Returns
    -------
    Fraction, SymPy number, or nested tuples of them

    Raises
    ------
    GrammarError, UnknownNameError, ShapeError, InputValueError, LimitError
        When the text is no formula, or has no value.

    >>> formula_value(r"\frac{q \cdot k}{\sqrt{d}}", {"q": [1, 0, 3], "k": [2, 5, 1], "d": 3})
    5*sqrt(3)/3
    >>> formula_value("0.25 * [4, 8]", {})
    (Fraction(1, 1), Fraction(2, 1))
    """
    if mode not in MODES:
        raise ValueError(f"{', '.join(MODES)}, got {mode!r}")
    source = _Given({name: _taken(v) for name, v in names.items()})
    found = Evaluator(source, Budget(), mode).value(parse(text))
    return arrays.mapped(_handed, found)


def _taken(x: Any) -> Value:
    if isinstance(x, (list, tuple)):
        return arrays.stacked([_taken(y) for y in x])
    return from_value(x)


def _handed(x: Real) -> Any:
    return x if isinstance(x, Fraction) else to_sympy(x)


class _Given:
    """Numbers are what their digits say; names are what is given."""

    def __init__(self, names: Mapping[str, Value]) -> None:
        self._names = {name_key(n): v for n, v in names.items()}

    def number(self, node: PrintedNumber, negated: bool) -> Real:
        value = Printed(node.text + "%" * node.percent).value
        return -value if negated else value

    def name(self, text: str, index: tuple[int, ...]) -> Value | None:
        return look_up(self._names, text, index)

    def formula(self, node: Node) -> Value | None:
        del node
        return None


def name_key(text: str) -> str:
    """What a name is known by: `W_Q`, `W^Q` and `Wq` are one, and so are `Raw scores` and `raw scores`.

    >>> name_key("W_Q") == name_key("Wq") == name_key("W^Q"), name_key("Q") == name_key("q")
    (True, False)
    """
    bare = text.replace("_", "").replace("^", "").replace("{", "").replace("}", "").replace("(", "").replace(")", "")
    bare = " ".join(bare.split())
    return bare[:1] + bare[1:].lower() if len(bare) <= 3 else bare.lower()


def look_up(names: Mapping[str, Value], text: str, index: tuple[int, ...]) -> Value | None:
    """The value of a name: of the whole name with its subscript, else that element of the name without it."""
    whole = name_key(f"{text}_{','.join(map(str, index))}") if index else name_key(text)
    if whole in names:
        return names[whole]
    if index and name_key(text) in names:
        return arrays.element(names[name_key(text)], index)
    return None
