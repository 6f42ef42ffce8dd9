"""A theorem about the normalizers that leave keys without weight: the weights of sparsemax and of entmax sum to one.

The weights of entmax are squares ``(dev + rho)^2`` over the support. Their sum is taken in three steps: it is
``nu + 2 rho sum dev + kappa rho^2``; the deviations from a mean sum to zero; and rho is such that ``kappa rho^2 = 1 - nu``.
"""

from __future__ import annotations

import sympy as sp

from symattn.errors import NotStatedError
from symattn.indexed import Tensor, name_of, reads, tensor
from symattn.program import Statement
from symattn.theorems.claim import Claim
from symattn.theorems.conditions import compared
from symattn.theorems.scalar import Scalar
from symattn.theorems.signs import AtLeastZero
from symattn.theorems.subject import Subject
from symattn.theorems.theorem import Theorem

__all__ = ["ROWS"]


def _sum_to_one(s: Subject) -> tuple[Claim, ...]:
    if not s.has("kappa"):
        raise NotStatedError("no key is left without weight by this normalizer")
    p, row = s.weights, s.row
    total = Statement(tensor("rowsum(P)", *row), p, (s.key_index,))
    if not s.has("rho"):
        return (compared(s.plain, total, Statement(tensor("one", *row), sp.S.One), "sum_j P_ij = 1", forward=s.plain),)
    kappa, nu, rho = (tensor(n, *row) for n in ("kappa", "nu", "rho"))
    deviations = Statement(
        tensor("sum dev", *row), s.statement("dev").target, (s.key_index,), where=s.statement(name_of(p)).where
    )
    program = s.plain.with_statements((*s.plain, deviations))
    parts = Statement(tensor("nu + 2 rho sum dev + kappa rho^2", *row), nu + 2 * rho * deviations.target + kappa * rho**2)
    zero = Statement(tensor("zero", *row), sp.S.Zero)
    return (
        compared(program, total, parts, "sum_j P_ij = nu + 2 rho sum_j dev_j + kappa rho^2", opaque=(frozenset({"dev", "rho"}),)),
        compared(program, program["sum dev"], zero, "the deviations from the mean of the support sum to zero"),
        _square(s, kappa, nu, rho),
        AtLeastZero(s.plain, name_of(p), "P_ij >= 0"),
    )


def _square(s: Subject, kappa: Tensor, nu: Tensor, rho: Tensor) -> Scalar:
    """``kappa rho^2`` as the statements of rho and of what it reads give it, where there is a key."""
    e = kappa * s.statement(name_of(rho)).expr ** 2
    for x in reads(e):
        if x not in (kappa, nu) and name_of(x) in s.plain:
            e = e.xreplace({x: s.plain[name_of(x)].expr})
    table = {kappa: sp.Symbol("kappa", positive=True), nu: sp.Symbol("nu", real=True)}
    return Scalar(e.xreplace(table), 1 - table[nu], "kappa rho^2 = 1 - nu for a row with a key")


ROWS: tuple[Theorem, ...] = (
    Theorem(
        "sparse-sum",
        "The weights of sparsemax and entmax sum to one",
        "sum_j P_ij = 1 for every query that has a key, whatever keys are in the support; those of entmax are squares.",
        r"\sum_j P_{ij} = 1,\qquad P_{ij} = [j\in\text{support}]\,(\mathrm{dev}_{ij} + \rho_i)^2",
        "arXiv 1602.02068, section 2; arXiv 1905.05702, section 3",
        _sum_to_one,
        (),
        {"normalizer": "entmax15", "heads": 4, "kv_heads": 2, "attn_mask": "boolean"},
    ),
)
"""The rows of this family."""
