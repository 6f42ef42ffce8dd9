r"""Slopes: the rounding bound of a program that knows which errors are shared, for every element of its outputs.

Plain propagation (:mod:`symattn.readings.rounding`) adds the errors of a tensor once for each path on which they reach an output:
numerator and denominator of a softmax are charged separately for the scores that they have in common. Here errors are followed
from the output back to each statement, and the paths are added *before* the absolute value is taken.

**Setting.** A statement s computes ``k_s = f_s(k_x, k_y, ...) + err_s`` from what the kernel has computed before; without errors
it is ``t_s = f_s(t_x, t_y, ...)``. The rounding reading bounds ``|err_s| <= e_s`` wherever in their boxes the operands lie: it
is the bound of the same statement when its computed operands count as exact. ``slope[out, s]`` is defined backwards:
1 for the output in itself, and

    slope[out, x] = sum over statements s that read x, and over the points at which they do, of  slope[out, s] * d(s, x)

with *divided differences* d of f_s in place of the derivatives of the adjoint rule: when the operands of s are moved from true
to computed values one at a time, ``d(s, x)`` is the quotient of what f_s and x move by. It is ``b^`` and ``a`` for a product
``a b``, ``-(c/l)/l^`` for ``c/l`` (:mod:`~symattn.readings.slopes.rules`; ``^`` marks computed values), and a derivative at some
point between the two values elsewhere.

**Theorem.** ``k_out - t_out = sum over s of sum over F of slope[out, s[F]] * err_s[F]``, exactly. Hence

    |k_out - t_out| <= sum over s, F of  max |slope[out, s[F]]| * e_s[F]

with the maximum over the boxes of all values that occur in the slope. Nothing is linearised and there is no remainder.

*Proof.* For one statement ``f_s(k) - f_s(t)`` is the telescoping sum, over its operands, of what f_s moves by with each; by
definition this is ``sum over x of d(s, x)(k_x - t_x)``. So ``k_s - t_s = err_s + sum over x of d(s, x)(k_x - t_x)``, and
the claim follows by induction along the list from ``k_out - t_out``: the terms ``slope * (k_x - t_x)`` of all readers of x have
been collected when x is reached, and are replaced by those of x's own operands, until none is left. Inputs end with what is
given as their error. ∎

*Operands that are not followed.* Where there is no divided difference (a look-up ``E[tok[p]]``, a step function, a maximum
that is not ``range_only``, a product, a scan, a condition that rounding could turn) or where it would be too dear, the operand
is *cut*: it enters f_s with its true value, and what k_x differs from that by, at most ``bound_x``, becomes part of err_s. The
identity holds as before with another err_s. In the same way an operand x that is read once, element by element, is *folded*:
its own err_x becomes part of err_s, and slopes go through ``f_s(f_x(...))``. Both only move errors from one term to another;
neither can make the bound wrong.

*Row maxima.* t belongs to the maximum that the kernel used, as in the rounding reading: ``k_m - t_m`` is 0, and nothing is
followed through m. Outputs do not depend on it (proved by :mod:`symattn.claims`). A tensor that is proved not to depend on it
enters slopes with the error of its float64 value alone.

For the softmax this gives ``slope[O[i, e], E[i, j]] = (V[j, e] - O[i, e])/l^``: the bound is centred on the output, as one would
derive it by hand, and no statement, tensor or pattern of attention is named anywhere in this package. To first order no smaller
bound exists for the same local errors: errors of the worst signs attain it.

Slopes are balls: a float64 value and a radius that covers true values, computed values and the evaluation of the slope itself.
Their absolute values are summed by matrix products (:mod:`~symattn.readings.slopes.enclosures`), rounded outward. Where plain
propagation is smaller, or where errors are so large that a slope has no bound, plain propagation is the answer.

Sources: the slope arithmetic of R. Krawczyk and A. Neumaier, SIAM J. Numer. Anal. 22 (1985), and S. M. Rump, Math. Comp. 65
(1996); reverse accumulation of rounding errors: S. Linnainmaa, BIT 16 (1976).
"""

from symattn.readings.slopes.bounded import Bounded, bounds

__all__ = ["Bounded", "bounds"]
