"""The value of a formula: exact scalars, vectors and matrices, from what a page says its numbers and names are.

What a number or a name stands for is asked of a :class:`Source`, so the same formula is evaluated from the start of a page, from
its printed numbers as they are, or from the intervals that they were rounded from. Where pages leave open which product of two
vectors they mean, the evaluator takes the scalar product and can be told to take the others.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol, TypeAlias

from symattn.audit import arrays, functions
from symattn.audit.arrays import Value, shape
from symattn.audit.language_nodes import Apply, Array, Gap, Name, Node, Number
from symattn.audit.reals import constant, divide, multiply, negative, power, root, total
from symattn.audit.trees import Real
from symattn.errors import GrammarError, LimitError, ShapeError, UnknownNameError

MODES = ("dot", "elementwise", "outer")
"""What a product of two vectors may be."""
MOST_STEPS = 60_000
_NAMED = frozenset({"juxtaposed", "index", "transpose", "matmul", "divide", "times", "dot"})


class Source(Protocol):
    """What numbers and names stand for."""

    def number(self, node: Number, negated: bool) -> Real:
        """The value of a printed number."""

    def name(self, text: str, index: tuple[int, ...]) -> Value | None:
        """The value of a name with the whole numbers of its subscript; None where it has none."""

    def formula(self, node: Node) -> Value | None:
        """The value of a whole formula that the page gave one: a vector printed before, `score(q, k)`; None for others."""


class Budget:
    """The operations that a page may still take."""

    def __init__(self, steps: int = MOST_STEPS) -> None:
        self.left = steps

    def take(self, steps: int) -> None:
        """Count operations.

        Raises
        ------
        LimitError
            When there have been too many.
        """
        self.left -= steps
        if self.left < 0:
            raise LimitError("the page asks for more operations than are done for one page")


Binding: TypeAlias = dict[str, int]


@dataclass
class Evaluator:
    """Evaluates formulas.

    Parameters
    ----------
    source
        What numbers and names stand for.
    budget
        The operations that may be done.
    mode
        One of :data:`MODES`.
    """

    source: Source
    budget: Budget
    mode: str = "dot"
    ambiguous: bool = False
    """Whether a product came up of which ``mode`` decided the meaning."""

    def value(self, node: Node) -> Value:
        """The value of a formula.

        Raises
        ------
        UnknownNameError
            When a name in it has no value.
        ShapeError, InputValueError, GrammarError, LimitError
            When it has no value, or none that is computed here.
        """
        return self._value(node, {})

    def _value(self, node: Node, bound: Binding) -> Value:
        self.budget.take(1)
        if isinstance(node, Number):
            return self.source.number(node, False)
        if isinstance(node, Name):
            return self._name(node, bound)
        if isinstance(node, Gap):
            raise GrammarError("an ellipsis leaves out what would have to be computed")
        if isinstance(node, Array) or node.op in _NAMED or node.op.partition(":")[1]:
            found = self.source.formula(node)
            if found is not None:
                return found
        if isinstance(node, Array):
            return arrays.stacked([self._value(x, bound) for x in node.items], node.items)
        return self._apply(node, bound)

    def _name(self, node: Name, bound: Binding) -> Value:
        text, _, script = node.text.rpartition("_")
        parts = [p for p in script.replace("(", "").replace(")", "").split(",") if p] if text else []
        if parts and any(p in bound for p in parts) and all(p in bound or p.isdigit() for p in parts):
            found = self.source.name(text, tuple(bound[p] if p in bound else int(p) for p in parts))
        elif node.text in bound:
            found = Fraction(bound[node.text])
        else:
            found = self.source.name(node.text, node.index)
        if found is None and node.text in ("e", "pi") and not node.index:
            return constant(node.text)
        if found is None:
            shown = node.text if not node.index else f"{node.text}_{','.join(map(str, node.index))}"
            raise UnknownNameError(f"`{shown}` has no value on this page")
        return found

    def _apply(self, node: Apply, bound: Binding) -> Value:
        op = node.op
        if op == "neg" and isinstance(node.args[0], Number):
            return self.source.number(node.args[0], True)
        if op in ("bigsum", "bigprod"):
            return self._bigsum(node, bound)
        if op == "braced":
            return self._value(node.args[0], bound)
        if op == "named:sigma" and len(node.args) == 1:
            return self._sigma(node, bound)
        if op.startswith("named:"):
            raise UnknownNameError(f"`{op[6:].lstrip('_')}` is a function that the page does not define")
        if op == "power" and isinstance(node.args[0], Name) and node.args[0].text == "e":
            exponent = self._value(node.args[1], bound)
            return self._each(functions.ELEMENTWISE["exp"], exponent)
        args = [self._value(a, bound) for a in node.args]
        if op.startswith("call:"):
            return self._call(op[5:], args, node)
        if op == "sum":
            return self._sum(args)
        if op in _ACTIONS:
            return _ACTIONS[op](self, *args)
        raise GrammarError(f"`{op}` is not computed here")

    def _bigsum(self, node: Apply, bound: Binding) -> Value:
        options = dict(node.options)
        if not options and node.op == "bigprod":
            raise GrammarError("a product without bounds is not computed here")
        if not options:
            return self._call("sum", [self._value(node.args[0], bound)], node)
        index, first, last = options["index"], options["first"], options["last"]
        assert isinstance(index, Name) and isinstance(first, Number) and isinstance(last, Number)
        low, high = int(first.text), int(last.text)
        if high - low > 500:
            raise LimitError("a sum of more than 500 terms is not computed here")
        terms = [self._value(node.args[0], {**bound, index.text: k}) for k in range(low, high + 1)]
        if node.op == "bigsum":
            return self._sum(terms)
        out: Value = Fraction(1)
        for term in terms:
            out = self.hadamard(out, term)
        return out

    def _sigma(self, node: Apply, bound: Binding) -> Value:
        """`σ(x)` of a number is the sigmoid; of a vector pages mean the softmax as well."""
        x = self._value(node.args[0], bound)
        if shape(x):
            raise UnknownNameError("`sigma` of a vector may be the softmax or the sigmoid: the page does not say which")
        return functions.ELEMENTWISE["sigmoid"](x)

    def _call(self, name: str, args: list[Value], node: Apply) -> Value:
        if not args:
            raise GrammarError(f"`{name}` is called without an argument")
        self.budget.take(sum(arrays.size(a) for a in args))
        if name in functions.ELEMENTWISE:
            if len(args) != 1:
                raise GrammarError(f"`{name}` takes one argument, got {len(args)}")
            return self._each(functions.ELEMENTWISE[name], args[0])
        if name in ("dot", "matmul", "outer") and len(args) == 2:
            return arrays.outer(*args) if name == "outer" else self._product(args[0], args[1])
        if name == "argmax" and len(shape(args[0])) == 1:
            self.ambiguous = True  # pages count from 1, programs from 0
            return functions.position_of_largest(args[0]) - (self.mode == "elementwise")
        return functions.of_arrays(name, args, axis(node, len(shape(args[0]))))

    def _each(self, f: Callable[[Real], Real], a: Value) -> Value:
        self.budget.take(arrays.size(a))
        return arrays.mapped(f, a)

    def _sum(self, args: list[Value]) -> Value:
        self.budget.take(sum(map(arrays.size, args)))
        shapes = {shape(a) for a in args}
        if len(shapes) == 1:
            return arrays.combined(lambda *xs: total(list(xs)), *args)
        out = args[0]
        for a in args[1:]:
            out = arrays.broadcast(lambda x, y: total([x, y]), out, a)
        return out

    def _product(self, a: Value, b: Value) -> Value:
        self.budget.take(arrays.product_steps(shape(a), shape(b)))
        return arrays.product(a, b)

    def times(self, a: Value, b: Value) -> Value:
        """A product however it is written: with a scalar, of vectors as ``mode`` says, of matrices."""
        if not shape(a) or not shape(b):
            self.budget.take(max(arrays.size(a), arrays.size(b)))
            return arrays.broadcast(multiply, a, b)
        if len(shape(a)) == len(shape(b)) == 1 or shape(a) == shape(b):
            self.ambiguous = True
            if self.mode == "elementwise":
                return arrays.broadcast(multiply, a, b)
            if self.mode == "outer" and len(shape(a)) == 1:
                self.budget.take(arrays.size(a) * arrays.size(b))
                return arrays.outer(a, b)
        return self._product(a, b)

    def hadamard(self, a: Value, b: Value) -> Value:
        """The product element by element."""
        self.budget.take(max(arrays.size(a), arrays.size(b)))
        return arrays.broadcast(multiply, a, b)

    def divided(self, a: Value, b: Value) -> Value:
        """The quotient by a scalar, or element by element."""
        self.budget.take(max(arrays.size(a), arrays.size(b)))
        return arrays.broadcast(divide, a, b)

    def raised(self, a: Value, b: Value) -> Value:
        """A power, of the elements where there are some."""
        if shape(b):
            raise ShapeError("an array as an exponent has no meaning here")
        self.budget.take(arrays.size(a))
        return arrays.broadcast(power, a, b)


_ACTIONS: dict[str, Callable[..., Value]] = {
    "neg": lambda e, a: arrays.mapped(negative, a),
    "group": lambda e, a: a,
    "degrees": lambda e, a: arrays.broadcast(multiply, a, divide(constant("pi"), Fraction(180))),
    "times": Evaluator.times,
    "dot": Evaluator.times,
    "star": Evaluator.times,
    "juxtaposed": Evaluator.times,
    "matmul": Evaluator.times,
    "hadamard": Evaluator.hadamard,
    "divide": Evaluator.divided,
    "power": Evaluator.raised,
    "transpose": lambda e, a: arrays.transposed(a),
    "root": lambda e, a, n: arrays.broadcast(root, a, n),
    "index": lambda e, a, *at: arrays.element(a, tuple(int(x) for x in at if isinstance(x, Fraction))),
}


def axis(node: Apply, rank: int) -> int:
    """The axis that a call names, `dim=0`, counted from the front; -1 where it names none."""
    for name, given in node.options:
        if name in ("dim", "axis"):
            number = given.args[0] if isinstance(given, Apply) and given.op == "neg" else given
            if isinstance(number, Number) and number.text in ("0", "1", "2"):
                return rank - int(number.text) if number is not given else int(number.text)
    return -1
