"""Theorems about the normaliser: rows that sum to one, shifts, the sink, the gradient of the log-sum-exp."""

from __future__ import annotations

import sympy as sp

from symattn.indexed import tensor
from symattn.program import Statement
from symattn.theorems.claim import Claim, Equal
from symattn.theorems.conditions import SHIFT_INVARIANT, WEIGHTS_SUM_TO_ONE, shifted
from symattn.theorems.subject import Subject
from symattn.theorems.theorem import Theorem

ANY_MASK = {"heads": 4, "kv_heads": 2, "attn_mask": "boolean"}
"""Grouped heads and a given mask: what is proved of it holds for every mask and every number of heads."""


def _rows_sum_to_one(s: Subject) -> tuple[Claim, ...]:
    p = s.weights
    both = (
        Statement(tensor("rowsum_P", *s.row), p, (s.key_index,)),
        Statement(tensor("one", *s.row), sp.S.One),
    )
    return (Equal(s.program.with_statements((*s.program, *both)), "rowsum_P", "one", "sum_j P_ij = 1", s.program),)


def _shift(s: Subject) -> tuple[Claim, ...]:
    both, steps, r = shifted(s)
    out: list[Claim] = [Equal(both.program, "O*", "O", "O(Z + r 1^T) = O(Z)", steps=steps, pairs=both.pairs)]
    if "L" in s.program:
        unit = 1 if s.definition.lse_base == "e" else 1 / sp.log(2)
        moved = Statement(tensor("L+r", *s.row), tensor("L", *s.row) + unit * r)
        program = both.program.with_statements((*both.program, moved))
        pairs = tuple((a, b) for a, b in both.pairs if a != "L*")
        out.append(Equal(program, "L*", "L+r", "L(Z + r 1^T) = L(Z) + r", both.program, steps=steps, pairs=pairs))
    return tuple(out)


ROWS = (
    Theorem(
        "rows-sum-to-one",
        "The rows of P sum to one",
        "sum_j P_ij = 1 for every query i that has a key.",
        r"\sum_j P_{ij} = 1",
        "textbook; Bridle 1990",
        _rows_sum_to_one,
        (WEIGHTS_SUM_TO_ONE,),
        ANY_MASK,
        {"sink": True},
    ),
    Theorem(
        "shift-invariance",
        "A constant added to a row leaves O and shifts L",
        "O(Z + r 1^T) = O(Z) and L(Z + r 1^T) = L(Z) + r for any vector r with an entry per row.",
        r"O(Z + r\mathbf 1^\top) = O(Z),\qquad L(Z + r\mathbf 1^\top) = L(Z) + r",
        "arXiv 2108.12409, section 3, uses it",
        _shift,
        (SHIFT_INVARIANT,),
        ANY_MASK,
        {"sink": True},
    ),
)
