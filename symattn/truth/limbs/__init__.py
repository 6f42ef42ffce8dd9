"""The limb engine: 72 to about 900 bits at the speed of matrix products in float64, with a radius that is proved beforehand.

It is a reading of a program: :mod:`~symattn.truth.limbs.plan` reads the statements as sums over keys and rows of exponentials of
exact scores, :mod:`~symattn.truth.limbs.engine` evaluates them block by block. What it cannot take it says: :func:`unfit`.
"""

from symattn.truth.limbs.evaluate import evaluate, pairs, unfit
from symattn.truth.limbs.fixed import Fixed

__all__ = ["Fixed", "evaluate", "pairs", "unfit"]
