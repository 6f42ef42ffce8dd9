"""Faults of the log-sum-exp that is put together: from a maximum and a sum, or from several splits of the keys."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import sympy as sp

from symattn.indexed import tensor
from symattn.program import Program, Statement
from symattn.verify.faults.fault import Alternative, Fault, Situation
from symattn.verify.faults.leaking import tiles_of
from symattn.verify.faults.structure import J, Softmax, fresh, softmax_of

COUNTS = (2, 3, 4, 5, 6, 7, 8)
"""Into how many equal splits kernels are tried to cut the keys, before the splits of the size of a tile."""
MOST = 32
"""Splits beyond which none are tried."""


def _stored(s: Situation) -> tuple[Softmax, Statement, sp.Indexed] | None:
    """The softmax, the statement of its log-sum-exp and the row maximum in it."""
    found = softmax_of(s.program)
    if found is None or found.lse is None or not isinstance(found.shift, sp.Indexed):
        return None
    return found, found.lse, found.shift


def _maximum(s: Situation) -> Iterator[Alternative]:
    """The maximum of the row with another factor than the scores that were exponentiated."""
    if (known := _stored(s)) is None:
        return
    _, lse, top = known
    factors = {"ln 2": sp.log(2), "log2(e)": 1 / sp.log(2)}
    if "scale" in s.program:
        factors |= {"1/scale": 1 / tensor("scale"), "the scale": tensor("scale")}
    for label, f in factors.items():
        new = replace(lse, expr=lse.expr.xreplace({top: f * top}))
        yield Alternative(f"the maximum times {label}", edit=partial(_with_lse, (), new))


def _with_lse(before: tuple[Statement, ...], new: Statement, p: Program) -> Program:
    return p.with_statements([y for x in p for y in ((*before, new) if x.name == new.name else (x,))]).live()


def _splits(s: Situation) -> Iterator[tuple[str, int]]:
    """Splits of the keys: what they are called, and how many keys there are in each."""
    m = s.sizes.get("M", 0)
    for label, size in (*((f"{k} splits", -(-m // k)) for k in COUNTS), *((f"splits of {t} keys", t) for t in tiles_of(s))):
        if 0 < size < m <= MOST * size:
            yield label, size


def _one_of_splits(s: Situation) -> Iterator[Alternative]:
    """The log-sum-exp of one split of the keys, the greatest or the last, for that of all; the output is merged rightly."""
    known = _stored(s)
    if known is None or known[0].normalisation.total.name != known[0].divisor:
        return
    found, lse, _ = known
    total = found.normalisation.total
    for label, size in _splits(s):
        parts = []
        for start in range(0, s.sizes["M"], size):
            part = tensor(fresh(s.program, f"l{start}of"), *total.indices)
            within = sp.And(total.where, sp.Ge(J, start), sp.Lt(J, start + size))
            parts.append(replace(total, target=part, where=within))
        for word, kept in (("the greatest", parts), ("the last", parts[-1:])):
            one = sp.Max(*(x.target for x in kept))
            new = replace(lse, expr=lse.expr.xreplace({total.target: one}))
            yield Alternative(f"{word} of {label}", edit=partial(_with_lse, tuple(kept), new))


_LSE = "what is stored beside the output, and who reads it: a merge, a backward"
ROWS = (
    Fault(
        "F178", "the LSE adds the row maximum with another factor than that of the scores", "mathematics", "m/scale + ln(l)",
        "m + ln(l)", _maximum, look="whether the maximum that is kept is scaled, and in which base",
        shows="the LSE; the output is right", blind="m = 0",
    ),
    Fault(
        "F179", "the LSE of one split of the keys for that of all", "mathematics", "max over splits of L", "ln(sum of exp(L))",
        _one_of_splits, look=_LSE, shows="keys in several splits; the output is right", blind="one split",
    ),
)  # fmt: skip
