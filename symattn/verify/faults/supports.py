"""Faults of the size of a support (sparsemax): one number for several rows in the place of a number for each of them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import sympy as sp

from symattn.indexed import name_of, tensor
from symattn.program import Program, Statement
from symattn.verify.faults.fault import Alternative, Edit, Fault, Situation
from symattn.verify.faults.gradients import row_terms
from symattn.verify.faults.structure import fresh

__all__ = ["ROWS", "shared_in_backward", "shared_in_forward"]

SIZE = "kappa"
"""The statement that counts the support of a row."""
ROLES = {"b": "the batch", "k": "the heads", "g": "the heads", "i": "the rows"}
"""What the indices of a count run over."""


@dataclass(frozen=True)
class _Way:
    """One way to share a count over some of its indices: statements that make it, and what is read then."""

    label: str
    made: tuple[Statement, ...]
    read: sp.Expr


def _ways(p: Program, s: Situation) -> Iterator[_Way]:
    """Every way: the greatest, the least, the sum, the mean and the first, over all indices and over those of one role."""
    count = p[SIZE]
    own = [x for x in count.indices if str(x) in ROLES]
    roles = list(dict.fromkeys(ROLES[str(x)] for x in own))
    chosen = [("everything", own), *((r, [x for x in own if ROLES[str(x)] == r]) for r in roles if len(roles) > 1)]
    for role, over in chosen:
        yield from _shared(p, count, role, over, _sizes(over, s))


def _sizes(over: Sequence[sp.Symbol], s: Situation) -> int:
    """Of how many counts one is made."""
    sizes = {"b": s.sizes["B"], "k": s.sizes["HKV"], "g": s.sizes["H"] // s.sizes["HKV"], "i": s.sizes["N"]}
    return math.prod(sizes[str(x)] for x in over)


def _shared(p: Program, count: Statement, role: str, over: Sequence[sp.Symbol], number: int) -> Iterator[_Way]:
    if number < 2:
        return
    kept = tuple(x for x in count.indices if x not in over)
    top, least, total = (tensor(fresh(p, SIZE + x), *kept) for x in ("max", "min", "sum"))
    bound = tuple(over)
    yield _Way(f"summed over {role}", (Statement(total, count.target, bound),), total)
    yield _Way(f"the greatest over {role}", (Statement(top, count.target, bound, "max"),), top)
    yield _Way(f"the least over {role}", (Statement(least, -count.target, bound, "max"),), -least)
    yield _Way(f"the mean over {role}", (Statement(total, count.target, bound),), total / number)
    yield _Way(f"the first over {role}", (), count.target.xreplace(dict.fromkeys(over, sp.Integer(0))))


def _edit(way: _Way, readers: Sequence[str] | None, *, clipped: bool = False) -> Edit:
    """The count read so by some statements (None: by those of a row's term); ``clipped``: where what they give is positive."""

    def edit(p: Program) -> Program:
        if SIZE not in p:
            return p
        at = set(row_terms(p)) if readers is None else set(readers)

        def change(x: Statement) -> Statement:
            if x.name not in at:
                return x
            new = x.expr.xreplace({r: way.read for r in x.expr.atoms(sp.Indexed) if name_of(r) == SIZE})
            where = sp.And(*[c for c in x.conditions if not _of_support(c)], sp.Gt(new, 0)) if clipped else x.where
            return replace(x, expr=new, where=where)

        return p.with_statements([y for x in p for y in ((x, *way.made) if x.name == SIZE else (change(x),))])

    return edit


def _of_support(c: sp.Basic) -> bool:
    """Whether a condition says that a key is in the support."""
    return any(name_of(r) == "xi" for r in c.atoms(sp.Indexed))


def _counts(s: Situation, p: Program) -> bool:
    return s.definition.normalizer in ("sparsemax", "entmax15") and SIZE in p


def shared_in_backward(s: Situation) -> Iterator[Alternative]:
    """What is taken off the gradient of the weights in every row divided by a count that is not the row's."""
    if s.has_gradient and _counts(s, s.backward):
        for way in _ways(s.backward, s):
            yield Alternative(way.label, gradient=_edit(way, None))


def shared_in_forward(s: Situation) -> Iterator[Alternative]:
    """The threshold of every row from a count that is not the row's."""
    if _counts(s, s.program):
        readers = [x.name for x in s.program if x.name != SIZE and SIZE in x.needs]
        for way in _ways(s.program, s):
            yield Alternative(way.label, edit=_edit(way, readers, clipped=True))
            yield Alternative(f"{way.label}, on the right support", edit=_edit(way, readers))


ROWS = (
    Fault(
        "F173", "size of the support shared by several rows in the threshold", "mathematics", "tau_i = (sum - 1)/k",
        "tau_i = (sum - 1)/k_i", shared_in_forward, threads=("SparseMax.torch#3",),
        look="the axis of the count of the support", shows="sparsemax", blind="equal supports", convention="normalizer",
    ),
)  # fmt: skip
