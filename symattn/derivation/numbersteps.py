"""Display trees: what a step of a derivation looks like, each node with the exact value that it has.

Nothing is evaluated, reordered or rationalised on the way to the page: ``10/sqrt(3)`` is a fraction with a root in its
denominator, ``1*1 + 0*0 + 3*3`` keeps its terms and their order. Nodes are immutable; :attr:`Node.value` is the exact value
(:class:`symattn.derivation.exactvalue.Exact`), found by the same operations carried out. :mod:`.nodeprint` writes them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import lcm
from typing import TypeAlias

from symattn.derivation import exactvalue as ev
from symattn.derivation.exactvalue import Exact


@dataclass(frozen=True)
class Num:
    """An integer, a fraction or a decimal, as typed; also NaN and the infinities."""

    number: Exact

    @property
    def value(self) -> Exact:
        """The number itself."""
        return self.number


@dataclass(frozen=True)
class Item:
    """An element of a tensor by its name, ``P_{5,1}``; indices count from 0 here and from 1 on the page."""

    tensor: str
    index: tuple[int, ...]
    content: Exact

    @property
    def value(self) -> Exact:
        """The value of the element: what it is known to be, or the element itself where that is too long to carry along."""
        return self.content


@dataclass(frozen=True)
class Rounded:
    """A decimal in place of an exact value: it prints as rounded and keeps what it was."""

    decimal: str
    content: Exact

    @property
    def value(self) -> Exact:
        """The exact value behind the decimal."""
        return self.content


@dataclass(frozen=True)
class Sum:
    """A sum of signed terms, in the order given."""

    terms: tuple[tuple[int, Node], ...]

    @cached_property
    def value(self) -> Exact:
        """The terms added up."""
        return ev.add(*(t.value if s > 0 else ev.negate(t.value) for s, t in self.terms))


@dataclass(frozen=True)
class Product:
    """A product of factors, in the order given; ``dot`` asks for a dot between all of them."""

    factors: tuple[Node, ...]
    dot: bool = True

    @cached_property
    def value(self) -> Exact:
        """The factors multiplied."""
        return ev.multiply(*(f.value for f in self.factors))


@dataclass(frozen=True)
class Quotient:
    """A fraction; the value is the exact quotient."""

    over: Node
    under: Node

    @cached_property
    def value(self) -> Exact:
        """The quotient."""
        return ev.divide(self.over.value, self.under.value)


@dataclass(frozen=True)
class Power:
    """A base with an exponent."""

    base: Node
    exponent: Node

    @cached_property
    def value(self) -> Exact:
        """The power."""
        return ev.power(self.base.value, self.exponent.value)


@dataclass(frozen=True)
class Apply:
    """A function applied: ``exp`` (shown as a power of e), ``sqrt`` (as a root), ``log``, ``max``, ... Its value is given when
    it needs a comparison (``max``), otherwise found.
    """

    name: str
    args: tuple[Node, ...]
    known: Exact | None = None

    @cached_property
    def value(self) -> Exact:
        """The function value."""
        if self.known is not None:
            return self.known
        values = [a.value for a in self.args]
        return ev.sqrt(values[0]) if self.name == "sqrt" else ev.call(self.name, *values)


Node: TypeAlias = Num | Item | Rounded | Sum | Product | Quotient | Power | Apply


def children(node: Node) -> tuple[Node, ...]:
    """The nodes directly below a node."""
    if isinstance(node, Sum):
        return tuple(t for _, t in node.terms)
    if isinstance(node, Product):
        return node.factors
    if isinstance(node, Quotient):
        return (node.over, node.under)
    if isinstance(node, Power):
        return (node.base, node.exponent)
    return node.args if isinstance(node, Apply) else ()


def closed(node: Node) -> Node:
    """The tree with every element carried along by name, where one of them is; values and names are not mixed in a line.

    >>> short, long = ev.call("exp", ev.ONE), ev.generator(ev.Ref("P", (1,)))
    >>> mixed = Sum(((1, Item("P", (0,), short)), (1, Item("P", (1,), long))))
    >>> [item.content == short for _, item in mixed.terms], [item.content == short for _, item in closed(mixed).terms]
    ([True, False], [False, False])
    """
    found = list(_items(node))
    names = [_by_name(x) for x in found]
    return _closed(node) if any(x.content == name for x, name in zip(found, names, strict=True)) else node


def _by_name(x: Item) -> Exact:
    return ev.generator(ev.Ref(x.tensor, x.index))


def _items(node: Node) -> Iterator[Item]:
    if isinstance(node, Item):
        yield node
    for child in children(node):
        yield from _items(child)


def _closed(node: Node) -> Node:
    if isinstance(node, Item):
        return Item(node.tensor, node.index, _by_name(node))
    if isinstance(node, Sum):
        return Sum(tuple((s, _closed(t)) for s, t in node.terms))
    if isinstance(node, Product):
        return Product(tuple(map(_closed, node.factors)), node.dot)
    if isinstance(node, Quotient):
        return Quotient(_closed(node.over), _closed(node.under))
    if isinstance(node, Power):
        return Power(_closed(node.base), _closed(node.exponent))
    if isinstance(node, Apply) and node.known is None:
        return Apply(node.name, tuple(map(_closed, node.args)))
    return node


def number(x: int | Fraction) -> Num:
    """A rational number as a node."""
    return Num(ev.rational(x))


def product(factors: Iterable[Node], dot: bool = True) -> Node:
    """A product, or its single factor, or 1."""
    f = tuple(factors)
    return f[0] if len(f) == 1 else Product(f, dot) if f else number(1)


def quotient(over: Node, under: Iterable[Node], dot: bool = True) -> Node:
    """``over`` divided by the product of ``under``, or ``over`` where there is nothing to divide by."""
    u = tuple(under)
    return Quotient(over, product(u, dot)) if u else over


def divided(over: Node, under: list[Node], decimals: bool = False) -> Node:
    """``over`` divided by the product of ``under``; a fraction above gives its denominator to what is below, and a sign
    stands before the whole.

    >>> divided(number(Fraction(-79, 6)), [Apply("sqrt", (number(2),))]) == tree(
    ...     ev.divide(ev.rational(Fraction(-79, 6)), ev.sqrt(ev.rational(2)))
    ... )
    True
    """
    x = over.value.rational if isinstance(over, Num) and under else None
    if x is None:
        return quotient(over, under)
    if x < 0:
        return Sum(((-1, divided(number(-x), under, decimals)),))
    if x.denominator == 1 or (decimals and terminating(x)):
        return quotient(over, under)
    return Quotient(number(x.numerator), product([number(x.denominator), *under], dot=False))


def tree(value: Exact, decimals: bool = False) -> Node:
    """The display of an exact value: terms in their order, over a common denominator where all terms have the same one.

    With ``decimals`` a coefficient whose decimal expansion ends stays one number (``4.1/sqrt(2)``), otherwise it is a fraction.

    >>> tree(ev.divide(ev.rational(10), ev.sqrt(ev.rational(3)))) == Quotient(number(10), Apply("sqrt", (number(3),)))
    True
    """
    if value.special or value.rational is not None:
        return Num(value)
    shared = _shared_denominator(value)
    if shared and len(value.terms) > 1:
        below = 1 if decimals else lcm(*(c.denominator for c, _ in value.terms))
        top = Exact(tuple((c * below, tuple((g, p) for g, p in m if p > 0)) for c, m in value.terms))
        return quotient(tree(top, decimals), [*([number(below)] if below > 1 else []), *_factors(shared, decimals)], dot=False)
    terms = tuple((-1 if c < 0 else 1, _term(abs(c), m, decimals)) for c, m in value.terms)
    return terms[0][1] if len(terms) == 1 and terms[0][0] > 0 else Sum(terms)


def _shared_denominator(value: Exact) -> tuple[tuple[ev.Generator, int], ...]:
    """The generators that divide every term with the same powers; empty where the terms differ."""
    below = [frozenset((g, p) for g, p in m if p < 0) for _, m in value.terms]
    if any(b != below[0] for b in below):
        return ()
    return tuple((g, -p) for g, p in value.terms[0][1] if p < 0)


def _term(c: Fraction, m: ev.Monomial, decimals: bool) -> Node:
    above = _factors([(g, p) for g, p in m if p > 0], decimals)
    below = _factors([(g, -p) for g, p in m if p < 0], decimals)
    whole = decimals and terminating(c) is not None
    over, under = (c, 1) if whole else (Fraction(c.numerator), c.denominator)
    if over != 1 or not above:
        above = [number(over), *above]
    if under != 1:
        below = [number(under), *below]
    return quotient(product(above, dot=False), below, dot=False)


def terminating(x: Fraction) -> str | None:
    """The decimal expansion of ``x`` where it ends within 12 places, otherwise None.

    >>> terminating(Fraction(-1, 8)), terminating(Fraction(1, 3))
    ('-0.125', None)
    """
    if x.denominator == 1:
        return str(x.numerator)
    for k in range(1, 13):
        if 10**k % x.denominator == 0:
            n = abs(x.numerator) * (10**k // x.denominator)
            return f"{'-' if x < 0 else ''}{n // 10**k}.{n % 10**k:0{k}d}"
    return None


def _factors(powers: Iterable[tuple[ev.Generator, int]], decimals: bool) -> list[Node]:
    """Generators with positive powers as nodes, roots first."""
    found: list[Node] = []
    for g, p in sorted(powers, key=lambda gp: 0 if isinstance(gp[0], ev.Root) else 1):
        base: Node
        if isinstance(g, ev.Root):
            base = Apply("sqrt", (number(g.radicand),))
        elif isinstance(g, ev.Call) and g.name == "pow":
            base = Power(tree(g.args[0], decimals), tree(g.args[1], decimals))
        elif isinstance(g, ev.Call):
            base = Apply(g.name, tuple(tree(a, decimals) for a in g.args), ev.generator(g))
        elif isinstance(g, ev.Group):
            base = tree(g.body, decimals)
        else:
            base = Item(g.tensor, g.index, ev.generator(g))
        found.append(base if p == 1 else Power(base, number(p)))
    return found
