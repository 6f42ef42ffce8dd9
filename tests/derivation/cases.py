"""The derivation of every variant of the catalogue with its gradient, made once for all tests."""

from __future__ import annotations

from functools import cache

from symattn.derivation import Derivation, derive
from symattn.variants import CATALOGUE


@cache
def variants() -> dict[str, Derivation]:
    """Name -> derivation, the row maximum and the log-sum-exp included."""
    return {name: derive(v.definition, gradient=True, lse=True, show_max=True) for name, v in CATALOGUE.items()}
