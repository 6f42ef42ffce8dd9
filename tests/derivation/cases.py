"""What several tests derive: every variant with its gradient; two heads; words that are hostile; numbers that are wide."""

from __future__ import annotations

import json
from functools import cache

from symattn.derivation import Derivation, derive, examples
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
HOSTILE = [
    r"\input{x}",
    "<script>alert(1)</script>",
    "$x$ & 5% #1",
    "a\u202eb\u0007",
    "猫é",
    "]]>--></math>",
    "| `c` | **b** ~",
    "w" * 150,
]
"""Words that mean something in one form or the other."""


@cache
def variant(name: str) -> Derivation:
    """The derivation of a row, the row maximum and the log-sum-exp included."""
    return derive(CATALOGUE[name].definition, gradient=True, lse=True, show_max=True)


def quoted(word: str) -> str:
    return json.dumps(word)


@cache
def hostile() -> Derivation:
    words = ", ".join(map(quoted, HOSTILE))
    rows = "\n".join(f"{quoted(w)} = [{k}, 0.5, '{k + 1}/7']" for k, w in enumerate(HOSTILE))
    text = f"title = {quoted(HOSTILE[0])}\nabout = {quoted(HOSTILE[1] + HOSTILE[2])}\ntokens = [{words}]\n[embedding]\n{rows}"
    return derive(example=examples.parse(text.encode(), "hostile.toml"))


def wide() -> Derivation:
    rows = ", ".join(f"[{k}.25, 1, '{k + 1}/3', -{k}]" for k in range(11))
    text = f"X = [{rows}]\ndigits = 50\ngrad_out = [{rows}]\n[definition]\nsoftcap = 3\nwindow = [4, 1]"
    return derive(example=examples.parse(text.encode(), "wide.toml"), gradient=True, show_max=True, lse=True)
