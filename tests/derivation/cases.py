"""What several tests derive: every variant of the catalogue with its gradient, and an example with two heads."""

from __future__ import annotations

from functools import cache

from symattn.derivation import Derivation, derive
from symattn.variants import CATALOGUE

TWO_HEADS = b"""
tokens = ["the", "cat", "sat", "on", "mat"]
W_Q = [[1, 0.5, 0.25, 1], [0, 1, 1, 0], [2, 1, 0, 1]]
W_K = [[1, 0, 0.1, 1], [0.5, 1, 1, 0.3], [1, 1, 0, 1]]
W_V = [[1, 0, 0, 1], [0, 1, 1, 0.5], [1, 2, 0, 1]]
W_O = [[1, 0], [0, 1], [1, 2], [3, 1]]
grad_out = [[1, 0], [0, 1], [0.5, 1], [0, 0.75], [1, 1]]
[embedding]
the = [1, 0, 3]
cat = [2, 0.5, 1]
sat = [0.3, 4, 0]
on = [0, 2, 4]
mat = [1, 0.1, 0.2]
[definition]
heads = 2
causal = "top-left"
"""


@cache
def variant(name: str) -> Derivation:
    """The derivation of a row, the row maximum and the log-sum-exp included."""
    return derive(CATALOGUE[name].definition, gradient=True, lse=True, show_max=True)
