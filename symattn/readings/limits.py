"""How precise an answer may be asked for: one check of ``digits`` and ``bits`` for every reading."""

from __future__ import annotations

import numpy as np

from symattn.errors import DefinitionError, LimitError

MAX_DIGITS = 100_000
"""Decimal digits up to which anything is computed."""
MAX_BITS = 32 * MAX_DIGITS
"""Bits up to which anything is computed: what that many digits need, doubled three times as :mod:`symattn.truth` does."""


def checked_digits(value: object, name: str = "digits") -> int:
    """A number of decimal digits: an integer from 1 to 100000.

    Raises
    ------
    DefinitionError
        When it is no integer.
    LimitError
        When it is out of range.

    >>> checked_digits(50)
    50
    """
    return _within(value, name, 1, MAX_DIGITS)


def checked_bits(value: object, name: str = "bits") -> int:
    """A number of bits: an integer from 2 to 3200000. Raises as :func:`checked_digits` does.

    >>> checked_bits(10**9)
    Traceback (most recent call last):
    symattn.errors.LimitError: bits is an integer from 2 to 3200000, got 1000000000
    """
    return _within(value, name, 2, MAX_BITS)


def _within(value: object, name: str, least: int, most: int) -> int:
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)):
        raise DefinitionError(f"{name} is an integer from {least} to {most}, got {value!r}")
    if not least <= value <= most:
        shown = str(value) if abs(int(value)) < 10**20 else "one far outside"
        raise LimitError(f"{name} is an integer from {least} to {most}, got {shown}")
    return int(value)
