"""Theorems about the size of the scores: their variance, how a gap saturates the softmax, and the limits of the temperature.

They are about formulas and not about a definition: the programs are written here. Inequalities hold for all sizes, because what
is left of a bound is written as a sum of terms none of which is negative. A number that is at least 0 is a square, a number that
is at least 1 is one plus a square, so that every row of scores is among those that the programs describe.
"""

from __future__ import annotations

import sympy as sp

from symattn.indexed import Tensor, indices, size, tensor
from symattn.program import Program, Statement
from symattn.theorems.claim import Claim
from symattn.theorems.conditions import compared
from symattn.theorems.limits import Limit
from symattn.theorems.scalar import Scalar
from symattn.theorems.signs import AtLeastZero
from symattn.theorems.subject import Subject
from symattn.theorems.theorem import Theorem

__all__ = ["ROWS"]

J, K, C, D, T = indices("j k c c2 t")
DIMS = {J: size("m"), K: size("m"), C: size("d"), D: size("d"), T: size("ties")}
"""Other keys, channels, and the keys that share the greatest score."""


def _bound(program: Program, left: sp.Expr, right: sp.Expr, rest: sp.Expr, at: tuple[sp.Symbol, ...], text: str) -> list[Claim]:
    """``left <= right``: what is left of the bound is ``rest``, and that is nowhere negative by its signs."""
    gap = Statement(tensor(f"slack of {text}", *at), right - left)
    sure = Statement(tensor(f"terms of {text}", *at), rest)
    both = compared(program, gap, sure, f"the slack of {text} is a sum of such terms", forward=program)
    return [both, AtLeastZero(both.program, sure.name, text)]


# ---------------------------------------------------------------- the variance of a score
def _second_moment(x: str) -> tuple[Statement, ...]:
    """``E[x_c x_c2]`` of independent entries: the product of their means, and the variance on the diagonal."""
    diagonal = Statement(tensor(f"var {x}", C, D), tensor(f"v{x}", C), where=sp.Eq(C, D))
    return diagonal, Statement(tensor(f"E {x}{x}", C, D), tensor(f"a{x}", C) * tensor(f"a{x}", D) + diagonal.target)


def _moments(**entries: sp.Expr) -> Program:
    """``E[q.k]`` and ``E[(q.k)^2]`` for independent entries with means ``a`` and variances ``v``, of which some are given."""
    given = [Statement(tensor(name, C), value) for name, value in entries.items()]
    mean = Statement(tensor("E q.k"), tensor("aq", C) * tensor("ak", C), (C,))
    square = Statement(tensor("E (q.k)^2"), tensor("E qq", C, D) * tensor("E kk", C, D), (C, D))
    variance = Statement(tensor("Var q.k"), square.target - mean.target**2)
    shapes = {n: (size("d"),) for n in ("aq", "ak", "vq", "vk") if n not in entries}
    statements = (*given, *_second_moment("q"), *_second_moment("k"), mean, square, variance)
    return Program(statements, DIMS, ("Var q.k",), shapes)


def _variance(_: Subject) -> tuple[Claim, ...]:
    """By moments: exact, and for every number of channels."""
    mu, sigma, one = tensor("mu"), tensor("sigma"), sp.S.One
    aq, ak, vq, vk = (tensor(n, C) for n in ("aq", "ak", "vq", "vk"))

    def claim(program: Program, right: sp.Expr, over: tuple[sp.Symbol, ...], text: str) -> Claim:
        return compared(program, program["Var q.k"], Statement(tensor("formula"), right, over), text)

    same = _moments(aq=mu, ak=mu, vq=sigma**2, vk=sigma**2)
    unit = _moments(aq=sp.S.Zero, ak=sp.S.Zero, vq=one, vk=one)
    return (
        claim(_moments(), vq * vk + vq * ak**2 + aq**2 * vk, (C,), "Var(q.k) = sum_c (v_c w_c + v_c b_c^2 + a_c^2 w_c)"),
        claim(same, size("d") * (sigma**4 + 2 * sigma**2 * mu**2), (), "Var(q.k) = d (sigma^4 + 2 sigma^2 mu^2)"),
        claim(unit, size("d"), (), "Var(q.k) = d for means 0 and variances 1"),
    )


# ---------------------------------------------------------------- saturation
def _gap() -> tuple[Program, Tensor, Tensor]:
    """A row whose greatest score is 0, by a shift; the others are ``gap + log(1 + u_j^2)`` below it, so at least the gap."""
    gap, u = tensor("gap"), tensor("u", J)
    below, others, top, p = tensor("E", J), tensor("r"), tensor("p top"), tensor("p", J)
    statements = (
        Statement(below, sp.exp(-gap) / (1 + u**2)),
        Statement(others, below, (J,)),
        Statement(tensor("l"), 1 + others),
        Statement(top, 1 / tensor("l")),
        Statement(p, below / tensor("l")),
        Statement(tensor("sum p"), p, (J,)),
    )
    return Program(statements, DIMS, ("p top", "p")), top, p


def _saturation(_: Subject) -> tuple[Claim, ...]:
    program, top, p = _gap()
    gap, u, r, l, rest = tensor("gap"), tensor("u", J), tensor("r"), tensor("l"), tensor("sum p")  # noqa: E741
    farther = Statement(tensor("farther"), sp.exp(-gap) * u**2 / (1 + u**2), (J,))
    crossed = Statement(tensor("others", J), p.xreplace({J: K}), (K,), where=sp.Ne(J, K))
    row = Statement(tensor("sum |J|", J), p * top + p * crossed.target + p * (1 - p))
    program = program.with_statements((*program, farther, crossed, row))
    g, v = sp.Symbol("gap", real=True), sp.Symbol("u", real=True)
    bound, first = size("m") * sp.exp(-gap), top * (1 - top) + top * rest
    return (
        Scalar(sp.exp(-(g + sp.log(1 + v**2))), sp.exp(-g) / (1 + v**2), "the others are exp(-gap)/(1 + u^2) for a square u^2"),
        *_bound(program, 1 - top, bound, farther.target + r**2 / l, (), "1 - p_max <= (n-1) exp(-gap)"),
        *_bound(program, first, 2 * (1 - top), 2 * rest**2, (), "the row of the greatest score has sum |J| <= 2 (1 - p_max)"),
        *_bound(program, tensor("sum |J|", J), 2 * (1 - top), 2 * p**2 + 2 * crossed.target, (J,), "the others have it too"),
    )


# ---------------------------------------------------------------- limits of the temperature
def _ties() -> Program:
    """``ties`` keys share the greatest score, the others are ``g_j = gap + u_j^2`` below; ``r`` is what the others add."""
    beta, gap, u = tensor("beta"), tensor("gap"), tensor("u", J)
    k = size("ties")
    statements = (
        Statement(tensor("g", J), gap + u**2),
        Statement(tensor("E", J), sp.exp(-beta * tensor("g", J))),
        Statement(tensor("r"), tensor("E", J), (J,)),
        Statement(tensor("l"), k + tensor("r")),
        Statement(tensor("p top"), 1 / tensor("l")),
        Statement(tensor("p", J), tensor("E", J) / tensor("l")),
    )
    return Program(statements, DIMS, ("p top", "p"))


def _limits(_: Subject) -> tuple[Claim, ...]:
    beta, gap, x = sp.Symbol("beta", positive=True), sp.Symbol("gap", positive=True), sp.Symbol("x", real=True)
    program, k, r, l, m = _ties(), size("ties"), tensor("r"), tensor("l"), size("m")  # noqa: E741
    s, at_zero, below = tensor("z", J), sp.S.Zero, tensor("E", J)
    flat = Program(
        (
            Statement(tensor("l"), sp.exp(at_zero * s), (J,)),
            Statement(tensor("p", J), sp.exp(at_zero * s) / tensor("l")),
        ),
        DIMS,
        ("p",),
    )
    uniform = Statement(tensor("uniform", J), 1 / m)
    even = (Statement(tensor("l"), m),)
    return (
        *_bound(program, tensor("p top"), 1 / k, r / (k * l), (), "the weight of a greatest score is at most 1/k"),
        *_bound(program, 1 / k - tensor("p top"), r / k**2, r**2 / (k**2 * l), (), "1/k less that weight is at most r/k^2"),
        *_bound(program, tensor("p", J), below / k, below * r / (k * l), (J,), "the others have at most exp(-beta g)/k"),
        Limit(sp.exp(-beta * gap), beta, sp.oo, sp.S.Zero, "exp(-beta g) -> 0 for g > 0, and so does r, a sum of such"),
        compared(flat, flat["p"], uniform, "at beta = 0 the weights are 1/m", steps=even),
        Limit(sp.exp(beta * x), beta, sp.S.Zero, sp.S.One, "exp(beta s) -> 1 as beta -> 0"),
    )


ROWS = (
    Theorem(
        "score-variance",
        "The variance of q.k is d, and its general formula",
        "For independent entries Var(q.k) = d (sigma^4 + 2 sigma^2 mu^2) with equal means mu and variances sigma^2, so d for "
        "means 0 and variances 1; with a mean and a variance per channel it is the sum of v w + v b^2 + a^2 w.",
        r"\operatorname{Var}(q\cdot k) = d\,(\sigma^4 + 2\sigma^2\mu^2)",
        "arXiv 1706.03762, section 3.2.1; the general formula by moments",
        _variance,
        general=True,
    ),
    Theorem(
        "saturation",
        "A gap between the top two scores saturates softmax",
        "If the greatest score is at least the gap above all others, 1 - p_max <= (n-1) exp(-gap), and every row of "
        "the Jacobian, so its norm too, has sum |J| <= 2 (1 - p_max).",
        r"1 - p_{\max} \le (n-1)\,e^{-\Delta},\qquad \|J\|_2 \le \|J\|_\infty \le 2\,(n-1)\,e^{-\Delta}",
        "arXiv 1706.03762, section 3.2.1, gives the reason; the bound is derived here",
        _saturation,
        general=True,
    ),
    Theorem(
        "temperature-limits",
        "Cold: uniform over the greatest scores; hot: uniform",
        "With k keys that share the greatest score and r the sum of exp(-beta g_j) of the others, g_j > 0 below: "
        "1/k - r/k^2 <= p <= 1/k for those, p_j <= exp(-beta g_j)/k for the others, and r -> 0 as beta -> oo; as beta -> 0 all "
        "weights tend to 1/n.",
        r"\lim_{\beta\to\infty}\operatorname{softmax}(\beta s)_j = \frac{[s_j = \max s]}{|\{i : s_i = \max s\}|},\qquad "
        r"\lim_{\beta\to 0}\operatorname{softmax}(\beta s)_j = \frac1n",
        "textbook; the bounds are derived here",
        _limits,
        general=True,
    ),
)
