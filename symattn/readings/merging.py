"""Rows whose keys are taken in parts, each with a softmax of its own, put together through their log-sum-exps L_s.

A part's output ``O_s = N_s / l_s`` is weighted by ``exp(L_s - L)``, or by ``exp(L_s - M)`` over the sum of these, where L is the
log-sum-exp of the L_s and M their maximum. In ``O_s exp(L_s)`` the part's own sum cancels, so a key's weight is that of the list
but for the errors of L_s and L. Both lie between the key's score z and ``m + log K`` for K keys: each is at most
``|m| + |z - m| + log K``, and errs by two roundings of that (computed, stored) and by the error of a logarithm of at most K.
Their difference is at most ``|z - m| + log K``, with one rounding.

All of this is an error of the exponent ``z - m``, which numerator and sum of the weights share; but that of L in the first way,
which only the numerator has, is one of the average N / l.
"""

from __future__ import annotations

import math

import numpy as np

from symattn.arithmetic import Arithmetic
from symattn.readings.boxes import Array
from symattn.readings.units import Unit

__all__ = ["AGAIN", "of_average", "of_exponent"]

AGAIN = 3
"""Rescalings that it comes to: an exponential, a product and a division for each term."""


def of_exponent(a: Arithmetic, exponent: Array, shift: Array, keys: int) -> Array:
    """What an exponent z - m may be off by, from the sizes of z - m and of m.

    >>> from symattn.arithmetic import get
    >>> float(of_exponent(get("split-fp32"), np.array(0.0), np.array(200.0), 1)) < 2**-14
    True
    """
    span, log = exponent + math.log(max(keys, 1)), math.log(max(keys, 1))
    return np.asarray(2 * of_lse(a, span + shift, log) + Unit.of(a.compute).u * span)


def of_average(a: Arithmetic, shift: Array, keys: int) -> Array:
    """What N / l may be off by relative to itself, from the size of m."""
    log = math.log(max(keys, 1))
    return of_lse(a, shift + log, log)


def of_lse(a: Arithmetic, size: Array, log: float) -> Array:
    """What a log-sum-exp of at most a size may be off by, its logarithm being at most ``log``."""
    error = (Unit.of(a.lse).u + Unit.of(a.compute).u) * size + a.function_errors("log") * log
    return np.where(np.isfinite(size), error, 0.0)
