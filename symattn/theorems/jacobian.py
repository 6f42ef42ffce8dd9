"""Theorems about the Jacobian of the softmax: diag(p) - p p^T, its null vector, its sign and its norm.

``J[i, j, k]`` is how the weight of key j answers to the score of key k. Signs and bounds are shown by writing a quadratic form,
or what it leaves of its bound, as a sum of terms none of which is negative: an identity for all sizes, proved by the normal form.
"""

from __future__ import annotations

import sympy as sp

from symattn.derivative import forward
from symattn.indexed import Tensor, conjuncts, index, indices, name_of, size, subscripts_of, tensor
from symattn.program import Program, Statement
from symattn.theorems.claim import Claim, Equal
from symattn.theorems.conditions import SHIFT_INVARIANT, compared
from symattn.theorems.deciding import proved_for_all_sizes
from symattn.theorems.signs import AtLeastZero
from symattn.theorems.subject import ANY_MASK, Subject
from symattn.theorems.theorem import Condition, Theorem

__all__ = ["ROWS"]


# ---------------------------------------------------------------- what is differentiated
def _normaliser(s: Subject) -> Program:
    """The statements from the scores to the weights; the scores are an input."""
    z, p = s.score, s.weights
    names = [t.name for t in s.plain]
    after = s.plain.statements[names.index(name_of(z)) + 1 :]
    outputs = [name_of(p), *(["P0"] if s.has("P0") else [])]
    shapes = {name_of(z): tuple(s.plain.dims[a] for a in z.indices)}
    return s.plain.with_statements(after, outputs, shapes=shapes).live()


def _other(s: Subject) -> sp.Symbol:
    return index(s.key_index.name + "2")


def _formula(s: Subject) -> tuple[Tensor, tuple[Statement, ...]]:
    """``J = diag(p) - p p^T`` and its statements."""
    p, k = s.weights, _other(s)
    diagonal = Statement(tensor("diag(p)", *p.indices, k), p, where=sp.Eq(s.key_index, k))
    j = tensor("J", *p.indices, k)
    return j, (diagonal, Statement(j, diagonal.target - p * p.xreplace({s.key_index: k})))


def _rest(s: Subject) -> sp.Expr:
    """The weight that no key has: that of the sink."""
    return tensor("P0", *s.row) if s.has("P0") else sp.S.Zero


# ---------------------------------------------------------------- the formula
def _is_jacobian(s: Subject) -> Equal:
    """The derived tangent of the weights is the formula times the direction."""
    cut, z, k = _normaliser(s), s.score, _other(s)
    ahead = forward(cut, [name_of(z)])
    j, made = _formula(s)
    direction = tensor(name_of(z) + "_t", *z.indices).xreplace({s.key_index: k})
    program = ahead.with_statements((*ahead, *made), dims={k: s.plain.dims[s.key_index]})
    left = ahead[name_of(s.weights) + "_t"]
    right = Statement(tensor("J Z_t", *subscripts_of(s.weights)), j * direction, (k,))
    return compared(program, left, right, "dP_j = sum_k J_jk dZ_k, J = diag(p) - p p^T", forward=cut)


def _jacobian(s: Subject) -> tuple[Claim, ...]:
    claim = _is_jacobian(s)
    j, k, formula = s.key_index, _other(s), tensor("J", *s.weights.indices, _other(s))
    x, y = tensor("x", j), tensor("y", j)
    left, right = (
        Statement(tensor(name, *s.row), a * formula * b.xreplace({j: k}), (j, k))
        for name, a, b in (("x^T J y", x, y), ("y^T J x", y, x))
    )
    shapes = dict.fromkeys(("x", "y"), (s.plain.dims[j],))
    program = claim.program.with_statements(claim.program.statements, shapes=shapes)
    return (claim, compared(program, left, right, "x^T J y = y^T J x for all x and y", forward=claim.forward))


def _null(s: Subject) -> tuple[Claim, ...]:
    """The direction of the scores is a constant of the row."""
    cut, z = _normaliser(s), s.score
    ahead = forward(cut, [name_of(z)])
    moved = tensor(name_of(z) + "_t", *z.indices)
    given = Statement(moved, tensor("r", *z.indices[:-1]))
    program = ahead.with_statements((given, *ahead), shapes={"r": ahead.shapes[name_of(moved)][:-1]})
    left = program[name_of(s.weights) + "_t"]
    zero = Statement(tensor("zero", *left.indices), sp.S.Zero)
    return (compared(program, left, zero, "the weights do not move with a constant of the row", forward=cut),)


# ---------------------------------------------------------------- its sign
def _total(s: Subject, cut: Program) -> tuple[Claim, ...]:
    """No weight is negative, and they sum to one with that of the sink."""
    p, rest = s.weights, _rest(s)
    rows = Statement(tensor("rowsum(P)", *s.row), p, (s.key_index,))
    total = Statement(tensor("rowsum(P) + P0", *s.row), rows.target + rest)
    whole = cut.with_statements((*cut, rows))
    one = Statement(tensor("one", *s.row), sp.S.One)
    claims: tuple[Claim, ...] = (
        AtLeastZero(cut, name_of(p), "P_ij >= 0"),
        compared(whole, total, one, "sum_j P_ij + P0_i = 1, P0 the weight of a sink", forward=cut),
    )
    return (*claims, AtLeastZero(cut, "P0", "P0_i >= 0")) if rest != 0 else claims


def _psd(s: Subject) -> tuple[Claim, ...]:
    """``x^T J x`` is half the sum of p_j p_k (x_j - x_k)^2, and p_0 p_j x_j^2 with a sink."""
    claim = _is_jacobian(s)
    cut, p, j, k = _normaliser(s), s.weights, s.key_index, _other(s)
    formula, made = _formula(s)
    x, there = tensor("x", j), {j: k}
    quadratic = Statement(tensor("x^T J x", *s.row), x * formula * x.xreplace(there), (j, k))
    pairs = Statement(tensor("pairs", *s.row), p * p.xreplace(there) * (x - x.xreplace(there)) ** 2 / 2, (j, k))
    sink = Statement(tensor("with sink", *s.row), p * _rest(s) * x**2, (j,))
    squares = Statement(tensor("squares", *s.row), pairs.target + sink.target)
    dims, shapes = {k: s.plain.dims[j]}, {"x": (s.plain.dims[j],)}
    program = cut.with_statements((*cut, *made, pairs, sink), dims=dims, shapes=shapes)
    both = compared(program, quadratic, squares, "x^T J x = 1/2 sum_jk p_j p_k (x_j - x_k)^2 + p_0 sum_j p_j x_j^2", forward=cut)
    return (claim, both, AtLeastZero(both.program, "squares", "x^T J x >= 0"))


# ---------------------------------------------------------------- its norm
J, K = indices("j j2")


def _weights() -> tuple[Program, Tensor, Tensor]:
    """Any weights that are not negative and sum to one with a rest: squares over their total."""
    u, rest, total, p = tensor("u", J), tensor("u0"), tensor("l"), tensor("p", J)
    sums = Statement(tensor("r"), u**2, (J,))
    statements = (
        sums,
        Statement(total, sums.target + rest**2),
        Statement(p, u**2 / total),
        Statement(tensor("p0"), rest**2 / total),
    )
    return Program(statements, {J: size("m"), K: size("m")}, ("p", "p0")), p, tensor("p0")


def _norm(s: Subject) -> tuple[Claim, ...]:
    """``|x|^2/2 - x^T J x`` as a sum of squares, for weights as they are shown to be."""
    claim = _is_jacobian(s)
    program, p, p0 = _weights()
    x, there = tensor("x", J), {J: K}
    q, y = p.xreplace(there), x.xreplace(there)
    diagonal = Statement(tensor("diag(p)", J, K), p, where=sp.Eq(J, K))
    jacobian = Statement(tensor("J", J, K), diagonal.target - p * q)
    parts = (
        Statement(tensor("x^T J x"), x * jacobian.target * y, (J, K)),
        Statement(tensor("|x|^2"), x**2, (J,)),
        Statement(tensor("sums"), p * q * (x + y) ** 2 / 2, (J, K), where=sp.Ne(J, K)),
        Statement(tensor("halves"), x**2 * (1 - 2 * p) ** 2 / 2, (J,)),
        Statement(tensor("with rest"), p0 * p * x**2, (J,)),
    )
    left = Statement(tensor("|x|^2/2 - x^T J x"), tensor("|x|^2") / 2 - tensor("x^T J x"))
    right = Statement(tensor("squares"), tensor("sums") + tensor("halves") + tensor("with rest"))
    whole = program.with_statements((*program, diagonal, jacobian, *parts), shapes={"x": (size("m"),)})
    text = "|x|^2/2 - x^T J x = sum_{j<k} p_j p_k (x_j + x_k)^2 + 1/2 sum_j (1 - 2 p_j)^2 x_j^2 + p_0 sum_j p_j x_j^2"
    both = compared(whole, left, right, text, forward=program)
    return (claim, *_total(s, _normaliser(s)), both, AtLeastZero(both.program, "squares", "x^T J x <= |x|^2/2"))


# ---------------------------------------------------------------- the condition
def _gibbs(s: Subject) -> bool | None:
    if not s.has("L"):
        return False
    z, p = s.score, s.weights
    log_sum = s.statement("L").expr if s.definition.lse_base == "e" else sp.expand(s.statement("L").expr * sp.log(2))
    left = Statement(tensor("exp(L) P", *p.indices), sp.exp(log_sum) * p, where=s.where)
    right = Statement(tensor("exp(Z)", *p.indices), sp.exp(z), where=s.where)
    masked = set(conjuncts(s.where)) <= set(s.statement(name_of(p)).conditions)
    return masked and proved_for_all_sizes(compared(s.plain, left, right, "", forward=s.plain)) is not None


GIBBS = Condition("the weights are exp(Z - L), L the log-sum-exp, and 0 outside the mask", _gibbs)

ROWS = (
    Theorem(
        "softmax-jacobian",
        "The Jacobian of the softmax is diag(p) - p p^T",
        "dP_ij/dZ_ik = P_ij (delta_jk - P_ik), a symmetric matrix for every row; with a sink too. It is the Hessian of the LSE.",
        r"J = \frac{\partial P}{\partial Z} = \operatorname{diag}(p) - pp^\top = J^\top",
        "arXiv 1704.00805, proposition 2",
        _jacobian,
        (GIBBS,),
        {**ANY_MASK, "sink": True},
        {"normalizer": "sigmoid"},
    ),
    Theorem(
        "jacobian-null",
        "The weights do not move with a constant of the row",
        "J 1 = 0: the Jacobian of the weights has the null vector 1 where the normaliser does not change under a shift.",
        r"J\,\mathbf 1 = 0",
        "arXiv 1704.00805, section 2",
        _null,
        (SHIFT_INVARIANT,),
        ANY_MASK,
        {"sink": True},
    ),
    Theorem(
        "jacobian-psd",
        "The Jacobian of the softmax is positive semidefinite",
        "x^T J x = 1/2 sum_jk p_j p_k (x_j - x_k)^2, the variance of x under p, and p_0 sum_j p_j x_j^2 besides with a sink of "
        "weight p_0: no term is negative.",
        r"x^\top J x = \sum_{j<k} p_j p_k (x_j - x_k)^2 + p_0\sum_j p_j x_j^2 \ge 0",
        "arXiv 1704.00805, proposition 2; the identity is derived here",
        _psd,
        (GIBBS,),
        {**ANY_MASK, "sink": True},
        {"normalizer": "sigmoid"},
    ),
    Theorem(
        "jacobian-norm",
        "The norm of the Jacobian of the softmax is at most 1/2",
        "|x|^2/2 - x^T J x is a sum of terms none of which is negative, so no eigenvalue of the symmetric, positive semidefinite "
        "J is above 1/2, for any number of keys.",
        r"\tfrac12|x|^2 - x^\top J x = \sum_{j<k} p_j p_k (x_j+x_k)^2 + \tfrac12\sum_j (1-2p_j)^2 x_j^2 + p_0\sum_j p_j x_j^2",
        "arXiv 2510.23012; the identity is derived here",
        _norm,
        (GIBBS,),
        {**ANY_MASK, "sink": True},
        {"normalizer": "sigmoid"},
    ),
)
