"""Where things are in a list of statements, found by structure, and small rewritings of it.

In a list that a kernel runs, ``S_b`` is the copy of ``S`` that the backward recomputes; a rewriting of a statement applies to
its copies too.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace

import sympy as sp

from symattn.indexed import all_reads, conjuncts, index, name_of, reads, subscripts_of
from symattn.presentation.listing import in_order
from symattn.presentation.softmax import Normalisation, exponent, log_sum_exp, normalisations
from symattn.program import Program, Statement, tensor
from symattn.verify.faults.fault import Edit

I, J = index("i"), index("j")  # noqa: E741


@dataclass(frozen=True)
class Softmax:
    """The softmax of a forward program: the one whose weights are summed with the values.

    ``score`` is the tensor that is exponentiated, ``shift`` the row maximum that is taken off.
    """

    normalisation: Normalisation
    score: sp.Expr
    shift: sp.Expr
    lse: Statement | None

    @property
    def weight(self) -> Statement:
        """``P = E/l``."""
        return self.normalisation.weight

    @property
    def numerator(self) -> str:
        """The name of ``E``."""
        return name_of(self.normalisation.numerator)

    @property
    def divisor(self) -> str:
        """The name of ``l``."""
        return name_of(self.normalisation.divisor)


def softmax_of(program: Program) -> Softmax | None:
    """The softmax over the keys in a forward program, where it has exactly one.

    >>> from symattn.definition import Definition
    >>> str(softmax_of(Definition(softcap=2).program()).score)
    'A[i, j]'
    """
    found = [n for n in normalisations(program) if exponent(n.numerator, program) is not None and J in n.over]
    if len(found) != 1:
        return None
    own = exponent(found[0].numerator, program)
    assert own is not None
    lowered = [t for t in sp.Add.make_args(own) if any(program[name_of(x)].range_only for x in reads(t) if name_of(x) in program)]
    known = log_sum_exp(found[0], program)
    return Softmax(found[0], own - sp.Add(*lowered), -sp.Add(*lowered), None if known is None else known[0])


def base_name(name: str) -> str:
    """The forward tensor that a recomputed one is a copy of."""
    return name.removesuffix("_b")


def rewritten(program: Program, change: Callable[[Statement], Statement | Iterable[Statement]]) -> Program:
    """The program with every statement replaced by one or several."""
    out: list[Statement] = []
    for s in program:
        new = change(s)
        out += [new] if isinstance(new, Statement) else list(new)
    return program.with_statements(in_order(out), program.outputs).live() if tuple(out) != program.statements else program


def with_expr(names: Collection[str], change: Callable[[Statement], sp.Expr]) -> Edit:
    """The rewriting that gives the statements of some names, and their copies, another expression."""

    def edit(program: Program) -> Program:
        return rewritten(program, lambda s: replace(s, expr=change(s)) if base_name(s.name) in names else s)

    return edit


def with_conditions(change: Callable[[tuple[sp.Basic, ...]], Iterable[sp.Basic]], *, over_pairs: bool = True) -> Edit:
    """The rewriting that gives every statement over queries and keys other conditions; those of other statements stay."""

    def statement(s: Statement) -> Statement:
        if over_pairs and not {I, J} <= set(s.domain):
            return s
        return replace(s, where=sp.And(*change(s.conditions)))

    return lambda program: rewritten(program, statement)


def with_conjunct(change: Callable[[sp.Basic], sp.Basic]) -> Edit:
    """The rewriting that replaces conditions over queries and keys one by one."""
    return with_conditions(lambda conditions: [change(c) for c in conditions])


def pairs_condition(program: Program) -> sp.Basic:
    """The condition on (i, j) under which the weights are computed; true where there is none or no softmax."""
    found = softmax_of(program)
    return sp.true if found is None else found.weight.where


@dataclass(frozen=True)
class Bound:
    """A condition read as a bound on the key: ``j <= i + offset`` (upper) or ``j >= i - offset`` (lower)."""

    upper: bool
    offset: sp.Expr

    @property
    def condition(self) -> sp.Basic:
        """As a condition."""
        return sp.Le(J, I + self.offset) if self.upper else sp.Le(I - J, self.offset)


def also(*more: sp.Basic) -> Edit:
    """The rewriting that adds conditions to every statement over queries and keys."""
    return with_conditions(lambda conditions: [*conditions, *more])


def without(gone: sp.Basic) -> Edit:
    """The rewriting that drops a condition, or what has it as one of several of which one has to hold."""
    return with_conjunct(lambda c: sp.true if gone == c or (isinstance(c, sp.Or) and gone in c.args) else c)


def as_bound(c: sp.Basic) -> Bound | None:
    """A condition that compares query and key index, up to an offset that depends on neither; None for any other.

    The offset may hold a given length.

    >>> n, m = sp.symbols("n m", integer=True)
    >>> as_bound(sp.Le(J, I + m - n)), as_bound(sp.Lt(I - J, 3))
    (Bound(upper=True, offset=m - n), Bound(upper=False, offset=2))
    """
    if not isinstance(c, (sp.Le, sp.Lt, sp.Ge, sp.Gt)):
        return None
    low, high = (c.lhs, c.rhs) if isinstance(c, (sp.Le, sp.Lt)) else (c.rhs, c.lhs)
    room = sp.expand(high - low - (1 if isinstance(c, (sp.Lt, sp.Gt)) else 0))  # room >= 0
    if room.coeff(I) == 1 and room.coeff(J) == -1:
        rest = sp.expand(room - I + J)
        return None if rest.has(I, J) else Bound(True, rest)
    if room.coeff(I) == -1 and room.coeff(J) == 1:
        rest = sp.expand(room + I - J)
        return None if rest.has(I, J) else Bound(False, rest)
    return None


def causal_like(c: sp.Basic) -> bool:
    """Whether a condition bounds the key from above by the query."""
    found = as_bound(c)
    return (found is not None and found.upper) or any(causal_like(x) for x in (c.args if isinstance(c, sp.Or) else ()))


def bounds_of(program: Program) -> tuple[tuple[sp.Basic, Bound], ...]:
    """The conditions of a forward program's weights that bound the key by the query, each with its reading."""
    found = [(c, as_bound(c)) for c in conjuncts(pairs_condition(program))]
    return tuple((c, b) for c, b in found if b is not None)


def substituted(old: sp.Basic, new: sp.Basic) -> Edit:
    """The rewriting that replaces one condition by another wherever it stands."""
    return with_conjunct(lambda c: new if c == old else c)


def outer(s: Statement) -> sp.Basic:
    """The conditions of a statement that read no index which it sums over: where its target is read."""
    return sp.And(*(c for c in s.conditions if not c.free_symbols & set(s.over)))


def fresh(program: Program, wish: str) -> str:
    """A name that no tensor of a program has."""
    taken = {*program.inputs, *(s.name for s in program)}
    k, name = 2, wish
    while name in taken:
        name, k = f"{wish}{k}", k + 1
    return name


def reading(program: Program, old: str, new: str, made: Iterable[Statement]) -> tuple[Statement, ...]:
    """The statements with every read of one tensor, but in those that are added, a read of another one with the same indices."""

    def through(e: sp.Basic) -> sp.Basic:
        return e.xreplace({r: tensor(new, *subscripts_of(r)) for r in all_reads(e) if name_of(r) == old})

    changed = [replace(s, expr=through(s.expr), where=through(s.where)) for s in program]
    return in_order((*changed, *made))
