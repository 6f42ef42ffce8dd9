"""The numbers of an example put into the statements of a program: for every element a display tree and its exact value.

Elements are worked out when they are asked for and kept. An element whose exact value is short (a number, ten over a root, one
exponential over a normaliser) is carried along by value; a longer one is carried along by name, so no expression ever grows.
Where a line needs one element by name, it has all by name.
Where a comparison needs an irrational number (a maximum), enclosures decide, with more and more bits.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import product as cartesian
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt
import sympy as sp

from symattn.derivation import exactvalue as ev
from symattn.derivation.enclose import Encloser, compare
from symattn.derivation.exactvalue import Exact
from symattn.derivation.numbersteps import (
    Apply,
    Item,
    Node,
    Num,
    Power,
    Product,
    Quotient,
    Sum,
    closed,
    divided,
    number,
    product,
    tree,
)
from symattn.derivation.settle import equals, guess
from symattn.errors import InputValueError, LimitError, UndecidedError
from symattn.indexed import Tensor, condition_text, integer_symbols, name_of, subscripts_of
from symattn.numbers import exact_array
from symattn.program import Program, Statement
from symattn.readings.decisions import NO, OPEN, OUTSIDE, UNDEFINED, YES
from symattn.readings.sizes import size_value
from symattn.readings.subscripts import Subscripts
from symattn.readings.typesetting.ordering import Order, absorb_sign, gathered, is_negative, split_product

Env = Mapping[sp.Symbol, int]

SHORT_TERMS = 2
LONGEST_SUM = 2048
SETTLING_BITS = 256
JUMPING = ("Abs", "sign", "floor", "ceiling", "Mod", "Heaviside")


class Worksheet:
    """A program with numbers in it.

    Parameters
    ----------
    program
        Any program; the worksheet knows no variant.
    inputs
        Name -> array (nested indexing ``a[i, j]``) or scalar of exact numbers: integers, fractions, infinities.
    sizes
        Size symbol -> integer.
    inline
        Tensors whose elements are written out where they are read, not named.
    decimals
        Whether coefficients whose decimal expansion ends are written as decimals.
    origin
        What an index of 0 is written as where a formula computes with indices; see :mod:`symattn.derivation.origin`.
    """

    def __init__(
        self,
        program: Program,
        inputs: Mapping[str, Any],
        sizes: Mapping[sp.Symbol, int],
        inline: Iterable[str] = (),
        decimals: bool = False,
        origin: int = 1,
    ) -> None:
        self.program = program
        self.inputs = inputs
        self.sizes = dict(sizes)
        self.inline = frozenset(inline)
        self.decimals = decimals
        self.origin = origin
        self._order = {s.name: Order.of(s, program) for s in program}
        self._written: dict[tuple[str, sp.Expr], list[sp.Expr]] = {}
        self._split: dict[str, tuple[sp.Expr, sp.Expr]] = {}
        self.enclose = Encloser(self.full)
        self._full: dict[tuple[str, tuple[int, ...]], Exact] = {}
        self._tree: dict[tuple[str, tuple[int, ...]], Node] = {}
        self._given = {n: exact_array(v) for n, v in inputs.items()}
        self._whole: dict[str, npt.NDArray[np.int64] | None] = {}
        self._subscripts = Subscripts(self._integers, self.sizes, self._given.get, program.scan_axes)

    def extent(self, a: sp.Symbol) -> int:
        """How many values the index ``a`` takes here."""
        return size_value(self.program.dims[a], self.sizes)

    def shape(self, name: str) -> tuple[int, ...]:
        """The sizes of a tensor here."""
        return tuple(size_value(d, self.sizes) for d in self.program.shapes[name])

    def full(self, name: str, index: tuple[int, ...]) -> Exact:
        """The exact value of an element in terms of the elements that its statement reads; 0 beyond the ends of a scan."""
        scan = self.program.scan_axes.get(name)
        if scan is not None and not 0 <= index[scan] < self.shape(name)[scan]:
            return ev.rational(Fraction(0))
        key = (name, index)
        if key not in self._full:
            if name not in self.program:
                self._full[key] = ev.exact(self._input(name, index))
            else:
                self._full[key] = self.settled(self.work(name, index).value)
        return self._full[key]

    def settled(self, value: Exact) -> Exact:
        """The value, as a rational number where it is proved to be one: terms that cancel do not show it."""
        if value.special or value.numeric:
            return value
        try:
            mid, rad = self.enclose.bounds(value, SETTLING_BITS)
        except (LimitError, UndecidedError):
            return value
        found = guess(mid, rad)
        return ev.rational(found) if found is not None and equals(value, found, self.full) else value

    def short(self, name: str, index: tuple[int, ...]) -> Exact:
        """What is carried along for an element: its exact value where that is short, otherwise the element by name."""
        value = self.full(name, index)
        if value.special or (value.numeric and len(value.terms) <= SHORT_TERMS):
            return value
        if len(value.terms) == 1 and value.size <= 8 and not any(isinstance(g, ev.Group) for g, _ in value.terms[0][1]):
            return value
        return ev.generator(ev.Ref(name, index))

    def named(self, name: str, index: tuple[int, ...]) -> bool:
        """Whether an element is carried along by its own name, because its value is long."""
        value = self.short(name, index)
        return any(isinstance(g, ev.Ref) and g.tensor == name for _, m in value.terms for g, _ in m)

    def defined(self, name: str, index: tuple[int, ...]) -> bool:
        """Whether the element lies inside the mask of its statement (an element of an input always does)."""
        if name not in self.program:
            return True
        s = self.program[name]
        env = dict(zip(s.indices, index, strict=True))
        return all(self.holds(c, env) for c in s.conditions if not integer_symbols(c) & set(s.over))

    def work(self, name: str, index: tuple[int, ...]) -> Node:
        """The right hand side of the statement of ``name`` with the numbers of this element put in, in order."""
        key = (name, index)
        if key not in self._tree:
            s = self.program[name]
            self._tree[key] = closed(self._statement(s, dict(zip(s.indices, index, strict=True))))
        return self._tree[key]

    def points(self, s: Statement, env: Env) -> Iterator[dict[sp.Symbol, int]]:
        """The values of all indices at which a statement reads something, for given free indices."""
        if len(s.over) and prod(self.extent(a) for a in s.over) > LONGEST_SUM:
            raise LimitError(f"{s.name}: a sum of more than {LONGEST_SUM} terms is not written out")
        for values in cartesian(*(range(self.extent(a)) for a in s.over)):
            here = {**env, **dict(zip(s.over, values, strict=True))}
            if self.holds(s.where, here):
                yield here

    def _statement(self, s: Statement, env: Env) -> Node:
        if s.name not in self._split:
            e = absorb_sign(s.expr)
            self._split[s.name] = split_product(e, s.over) if s.over and s.reduce == "sum" else (sp.Integer(1), e)
        outer, inner = self._split[s.name]
        parts = [self._node(s, inner, here) for here in self.points(s, env)]
        if not parts:
            return Num(ev.MINUS_INFINITY) if s.over and s.reduce == "max" else number(int(s.over != () and s.reduce == "prod"))
        if s.over and s.reduce == "max":
            return self._extreme("Max", parts)
        if s.over and s.reduce == "prod":
            return product(parts)
        flat = tuple(t for p in parts for t in (p.terms if isinstance(p, Sum) else ((1, p),)))
        reduced = Sum(flat) if len(flat) > 1 else parts[0]
        return reduced if outer == 1 else self._scaled(s, outer, reduced, env)

    def _scaled(self, s: Statement, outer: sp.Expr, reduced: Node, env: Env) -> Node:
        """A factor before a sum: ``1/sqrt(3) * (...)``, and the sign alone where it is -1."""
        if is_negative(outer):
            inner = reduced if outer == -1 else self._scaled(s, -outer, reduced, env)
            return Sum(((-1, inner),))
        return Product((self._node(s, outer, env), reduced))

    def _extreme(self, name: str, parts: Sequence[Node]) -> Node:
        sign = 1 if name == "Max" else -1
        best = parts[0].value
        for p in parts[1:]:
            if self.enclose.sign(ev.add(p.value, ev.negate(best))) * sign > 0:
                best = p.value
        return Apply(name, tuple(parts), best) if len(parts) > 1 else parts[0]

    def _item(self, x: Tensor, env: Env) -> Node:
        index = tuple(env[a] if a in env else self._integer(a, env) for a in subscripts_of(x))
        name = name_of(x)
        value = self.short(name, index)
        if name not in self.program or value.special or (value.numeric and len(value.terms) <= 1):
            return tree(value, self.decimals)
        if name in self.inline and not self.named(name, index):
            return tree(value, self.decimals)
        return Item(name, index, value)

    def _node(self, s: Statement, e: sp.Expr, env: Env) -> Node:
        """One expression as a display tree."""
        if isinstance(e, sp.Indexed) or (isinstance(e, sp.Symbol) and not e.is_integer):
            return self._item(e, env)
        if isinstance(e, sp.Symbol):
            return number(env[e] + self.origin if e in env else self.sizes[e])
        if e.is_Rational:
            return number(Fraction(int(e.p), int(e.q)))
        if e is sp.E:
            return Apply("exp", (number(1),))
        if e in (sp.oo, -sp.oo, sp.nan, sp.zoo):
            return Num({sp.oo: ev.INFINITY, -sp.oo: ev.MINUS_INFINITY}.get(e, ev.NAN))
        if isinstance(e, sp.Add):
            content, rest = e.primitive()
            if content != 1 and isinstance(rest, sp.Add) and all(abs(t.as_coeff_Mul()[0]) == 1 for t in rest.args):
                if all(map(is_negative, rest.args)):
                    return Sum(((-1, self._product(s, sp.Mul(content, -rest, evaluate=False), env)),))
                return self._product(s, sp.Mul(content, rest, evaluate=False), env)
            return Sum(tuple(self._signed(s, t, env) for t in self._ordered(s, e)))
        if isinstance(e, sp.Mul):
            return self._product(s, e, env)
        if isinstance(e, sp.Pow):
            return self._power(s, e.base, e.exp, env)
        if isinstance(e, sp.exp):
            return Apply("exp", (self._node(s, e.args[0], env),))
        if isinstance(e, sp.Piecewise):
            taken = (v for v, condition in e.args if self.holds(condition, env))
            return self._node(s, next(taken, sp.nan), env)
        args = [self._node(s, a, env) for a in e.args]
        if isinstance(e, (sp.Max, sp.Min)):
            return self._extreme(e.func.__name__, args)
        name = e.func.__name__
        return Apply(name, tuple(args), self._jumping(name, [a.value for a in args]))

    def _jumping(self, name: str, args: Sequence[Exact]) -> Exact | None:
        """The value of a function that has a jump or a corner, decided by enclosures; None for every other function."""
        if name not in JUMPING or any(a.special for a in args):
            return None
        x = args[0]
        if name in ("floor", "ceiling", "Mod"):
            if name == "Mod" and self.enclose.sign(args[1]) == 0:
                return ev.NAN
            y = self.settled(ev.divide(x, args[1]) if name == "Mod" else ev.negate(x) if name == "ceiling" else x)
            down = ev.rational(self.enclose.floor(y))
            return down if name == "floor" else ev.negate(down) if name == "ceiling" else ev.add(x, self._minus(args[1], down))
        way = self.enclose.sign(self.settled(x))
        if name == "Heaviside":
            return args[1] if way == 0 else ev.rational(int(way > 0))
        return ev.rational(way) if name == "sign" else x if way >= 0 else ev.negate(x)

    def _minus(self, a: Exact, b: Exact) -> Exact:
        return ev.negate(ev.multiply(a, b))

    def _signed(self, s: Statement, e: sp.Expr, env: Env) -> tuple[int, Node]:
        return (-1, self._node(s, -e, env)) if is_negative(e) else (1, self._node(s, e, env))

    def _ordered(self, s: Statement, e: sp.Expr) -> list[sp.Expr]:
        """The terms of a sum or the factors of a product as they are written: the same for every element, so found once."""
        key = (s.name, e)
        if key not in self._written:
            order = self._order[s.name]
            self._written[key] = order.factors(e.args) if isinstance(e, sp.Mul) else order.terms(gathered(e.args))
        return self._written[key]

    def _product(self, s: Statement, e: sp.Mul, env: Env) -> Node:
        if is_negative(e):
            return Sum(((-1, self._node(s, -e, env)),))
        above: list[Node] = []
        below: list[Node] = []
        for f in self._ordered(s, e):
            if isinstance(f, sp.Pow) and f.exp.is_number and f.exp.is_negative:
                below.append(self._power(s, f.base, -f.exp, env))
            elif f.is_Rational and f.q != 1:
                below.append(number(int(f.q)))
                above += [number(int(f.p))] if f.p != 1 else []
            else:
                above.append(self._node(s, f, env))
        return divided(product(above), below, self.decimals)

    def _power(self, s: Statement, base: sp.Expr, exponent: sp.Expr, env: Env) -> Node:
        if exponent.is_number and exponent.is_negative:
            return Quotient(number(1), self._power(s, base, -exponent, env))
        inner = self._node(s, base, env)
        if exponent == 1:
            return inner
        return Apply("sqrt", (inner,)) if exponent == sp.Rational(1, 2) else Power(inner, self._node(s, exponent, env))

    def _input(self, name: str, index: tuple[int, ...]) -> object:
        a = self.inputs[name]
        return a[index] if index else (a[()] if hasattr(a, "shape") else a)

    def _integer(self, e: sp.Expr, env: Env) -> int:
        value = self._node_value(e, env).rational
        assert value is not None and value.denominator == 1, f"the subscript {e} is not an integer"
        return int(value)

    def _node_value(self, e: sp.Expr, env: Env) -> Exact:
        """The value of a subscript or of a side of a condition, where indices count from 0 as in the program."""
        numbers = {a: sp.Integer(k) for a, k in env.items()}
        return self._node(self.program.statements[0], e.xreplace(numbers), {}).value

    def _integers(self, name: str) -> npt.NDArray[np.int64] | None:
        """An input as an array of integers where all its numbers are, else None."""
        if name not in self._whole:
            array = self._given.get(name)
            values = [] if array is None else array.ravel().tolist()
            whole = all(not isinstance(v, float) and v.denominator == 1 and abs(v) < 2**62 for v in values)
            self._whole[name] = None if array is None or not whole else array.astype(np.int64)
        return self._whole[name]

    def holds(self, condition: sp.Basic, env: Env) -> bool:
        """Whether a condition holds at given indices; on given numbers it is decided as in every reading.

        Raises
        ------
        InputValueError
            When it has no value (``1/(i - j) < 2`` where ``i = j``), or looks up a number out of range.
        UndecidedError
            When two irrational numbers are equal as far as enclosures can see.
        """
        state = self._state(condition, env)
        if state in (YES, NO):
            return state == YES
        at = ", ".join(f"{a}={env[a]}" for a in sorted(env, key=str) if a in integer_symbols(condition)) or "any point"
        if state == UNDEFINED:
            raise InputValueError(f"the condition `{condition_text(condition)}` has no value at {at}")
        if state == OUTSIDE:
            raise InputValueError(f"a look-up in the condition `{condition_text(condition)}` is out of range at {at}")
        raise UndecidedError(f"the condition `{condition_text(condition)}` is not decided at {at}")

    def _state(self, condition: sp.Basic, env: Env) -> int:
        """The state of a condition: what it reads of the inputs is exact, what was computed is compared by enclosures."""
        if condition in (sp.true, sp.false):
            return YES if condition else NO
        if isinstance(condition, sp.Not):
            state = self._state(condition.args[0], env)
            return {YES: NO, NO: YES}.get(state, state)
        if isinstance(condition, (sp.And, sp.Or)):
            decisive = NO if isinstance(condition, sp.And) else YES
            states = []
            for c in sorted(condition.args, key=lambda c: not self._subscripts.decidable(c)):
                states.append(self._state(c, env))
                if states[-1] == decisive:
                    return decisive
            return OPEN if OPEN in states else max(states) if max(states) > YES else YES - decisive
        if self._subscripts.decidable(condition):
            axes = tuple(sorted((a for a in integer_symbols(condition) if a in env), key=str))
            states_of = self._subscripts.states(condition, axes, tuple(map(self.extent, axes)))
            return int(states_of[tuple(env[a] for a in axes)])
        a, b = (self._node_value(e, env) for e in condition.args)
        return YES if compare(condition, a, b, self.enclose) else NO
