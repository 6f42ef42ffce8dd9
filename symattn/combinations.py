"""Which normalizers, maps, gates and mixings can stand together in a definition, and where there is a log-sum-exp."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from symattn.definition import Definition

WITH_LSE = ("softmax", "off-by-one")
"""The normalizers that divide by a sum of exponentials, whose logarithm can be an output."""


def has_lse(d: Definition) -> bool:
    """Whether there is one log-sum-exp for every query: not for other normalizers, and not for a difference of two maps.

    >>> from symattn.definition import Definition
    >>> has_lse(Definition()), has_lse(Definition(normalizer="sigmoid")), has_lse(Definition(differential=True))
    (True, False, False)
    """
    return d.normalizer in WITH_LSE and not d.differential


def refuse_combinations(d: Definition, refuse: Callable[[object, str], None]) -> None:
    """What normalizers, maps, gates and mixings cannot stand with; ``refuse(when, why)`` raises."""
    refuse(
        d.sink and d.normalizer != "softmax",
        f"a sink is a logit in the denominator of the softmax; normalizer={d.normalizer!r} has "
        + ("one already, the logit 0: leave sink out" if d.normalizer == "off-by-one" else "no such denominator: leave it out"),
    )
    refuse(d.sink and d.differential, "the two maps of differential attention have no sink; leave sink or differential out")
    refuse(
        d.differential and d.normalizer == "off-by-one",
        "the two maps of differential attention are softmaxes of their own; normalizer='off-by-one' is not defined for them",
    )
    refuse(
        d.relative == "keys" and d.algorithm not in (None, "paged"),
        f"algorithm={d.algorithm!r} keeps no table of distances: relative='keys' goes with no algorithm by tiles",
    )
    refuse(
        d.normalizer == "off-by-one" and d.empty_row in ("nan", "uniform"),
        f"empty_row={d.empty_row!r} contradicts normalizer='off-by-one': the denominator of an empty row is 1, its output is 0",
    )
    refuse(
        d.lse_base != "e" and not has_lse(d),
        f"lse_base={d.lse_base!r} is about a log-sum-exp, and "
        + ("a difference of two maps" if d.differential else f"normalizer={d.normalizer!r}")
        + " has none",
    )
    refuse(d.forgetting and d.causal is None, "forgetting decays a key on the way to a later query: set causal")
    refuse(
        d.forgetting and d.prefix is not None,
        "forgetting decays a key on the way to a later query, and the keys of a prefix may come after it: leave one of them out",
    )
    refuse(
        d.head_norm_eps != type(d).__dataclass_fields__["head_norm_eps"].default and not d.head_norm,
        "head_norm_eps belongs to a norm: set head_norm",
    )
    asked = {
        "normalizer": d.normalizer not in ("softmax",),
        "differential": d.differential,
        "head_mixing": d.head_mixing is not None,
        "multi_token": d.multi_token is not None,
    }
    for name, here in asked.items():
        refuse(
            here and d.algorithm not in (None, "paged"),
            f"algorithm={d.algorithm!r} goes over the keys in blocks by the rule of the softmax of one map; it cannot be had "
            f"with {name}",
        )


def weights_in_words(d: Definition) -> dict[str, str]:
    """The conventions of normalizer, maps, gates and mixings that are not at their default, in words.

    >>> from symattn.definition import Definition
    >>> weights_in_words(Definition(normalizer="off-by-one"))
    {'normalizer': 'exp(s) / (1 + sum of exp(s)); the 1 is included in LSE'}
    """
    normalizers = {
        "off-by-one": "exp(s) / (1 + sum of exp(s)); the 1 is included in LSE",
        "sigmoid": "sigmoid of each score, no sum over the keys",
        "sparsemax": "sparsemax: s - tau where that is positive",
        "entmax15": "1.5-entmax: (s/2 - tau)^2 where s/2 is above tau",
        "stick-breaking": "b_ij times the product of (1 - b_ik) over the visible keys k after j, b = sigmoid(s)",
        "none": "none: the scores are the weights",
    }
    words: dict[str, str] = {}
    if d.normalizer in normalizers:
        words["normalizer"] = normalizers[d.normalizer]
    if d.forgetting:
        words["forgetting"] = (
            "the logarithms of the forget gates after key j, up to the position of query i, are added to the score"
        )
    if d.differential:
        words["differential"] = "P1 - lambda P2, lambda = exp(lambda_q1.lambda_k1) - exp(lambda_q2.lambda_k2) + lambda_init"
    if d.multi_token is not None:
        queries, keys = d.multi_token
        words["multi_token"] = (
            f"final scores convolved over {queries} queries (back) and {keys} keys ({keys // 2} after, {keys - 1 - keys // 2} "
            "before); masked ones count 0, and the mask holds again afterwards"
        )
    if d.head_mixing is not None:
        what = {"scores": "final scores", "weights": "weights", "both": "final scores and weights"}[d.head_mixing]
        words["head_mixing"] = f"{what} mixed from head (row) to head (column); the mask holds after the scores are mixed"
    if d.head_norm:
        words["head_norm"] = (
            f"every head's output over its root mean square (eps {d.head_norm_eps} under the root), times a weight per channel"
            + (" and 1 - lambda_init" if d.differential else "")
        )
    if d.output_gate:
        gate = "a given gate" if d.start == "qkv" else "X W_g"
        words["output_gate"] = f"the output is multiplied by the sigmoid of {gate}, before W_O"
    return words
