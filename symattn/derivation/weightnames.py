"""The names of the steps of normalizers, maps, gates and mixings: rows for the tables of :mod:`symattn.derivation.naming`."""

from __future__ import annotations

from collections.abc import Collection, Mapping

TABLE: Mapping[str, tuple[str, str, str]] = {
    "xi": ("Excess", "Excesses", "What the scores above this one would take; a key to which this leaves nothing has no weight."),
    "kappa": ("Size of the support", "Sizes of the supports", "How many keys have a weight that is not 0."),
    "tot": ("Sum over the support", "Sums over the supports", "The scores of the keys that have a weight, added up."),
    "tau": ("Threshold", "Thresholds", "Taken off every score, so that the weights of a row sum to one."),
    "mean": ("Mean over the support", "Means over the supports", "The mean score of the keys that have a weight."),
    "dev": ("Deviations", "Deviations", "How far a score is from the mean of the support."),
    "nu": ("Sum of squared deviations", "Sums of squared deviations", "How much of the row the deviations take."),
    "rest": ("Square of the share of every key", "Squares of the shares of every key", "What is left of the row, for each key."),
    "rho": ("Share of every key", "Shares of every key", "What is left of the row, the same for every key of the support."),
    "root": ("Roots of the weights", "Roots of the weights", "A weight is the square of what stands above the threshold."),
    "beta": ("Broken-off fractions", "Broken-off fractions", "Which part of what is left a key would break off the stick."),
    "left": ("What later keys leave", "What later keys leave", "Every key between leaves one minus its fraction of the stick."),
    "Zc": ("Convolved scores", "Convolved scores", "Scores of neighbouring queries and keys speak for each other."),
    "Zh": ("Mixed scores", "Mixed scores", "The heads talk before the normalizer: each score is a sum over all heads."),
    "Ph": ("Mixed weights", "Mixed weights", "The heads talk after the normalizer: each weight is a sum over all heads."),
    "Pm": ("Difference of the maps", "Difference of the maps", "What both maps attend to is noise and cancels."),
    "ll1": ("First exponent", "First exponent", "One product of two learned vectors."),
    "ll2": ("Second exponent", "Second exponent", "Another product of two learned vectors."),
    "lam": (
        "Weight of the second map",
        "Weight of the second map",
        "Learned as a difference of exponentials around its first value.",
    ),
    "logf": ("Logarithms of the forget gates", "Logarithms of the forget gates", "A gate is a sigmoid: 0 forgets, 1 keeps."),
    "decay": ("Decay", "Decay", "What the gates between key and query leave of the key, as a logarithm."),
    "Oh": (
        "Context vector before the norm",
        "Context vectors before the norm",
        "The sum of the value rows, each multiplied by its weight.",
    ),
    "Osq": ("Squared length of the output", "Squared lengths of the outputs", "The sum of the squares of its channels."),
    "rms": (
        "Root mean square",
        "Root mean squares",
        "What the output of a head is divided by, so that all heads speak equally loud.",
    ),
    "og": ("Gates", "Gates", "Which channels of its output a position lets through."),
    "Og": (
        "Context vector before the gate",
        "Context vectors before the gate",
        "The sum of the value rows, each multiplied by its weight.",
    ),
}
"""Tensor -> singular and plural name, reason."""

INPUTS: Mapping[str, str] = {
    "Q2": "queries of the second map",
    "K2": "keys of the second map",
    "WQ2": "query weights of the second map",
    "WK2": "key weights of the second map",
    "lq1": "first vector of lambda's first exponent",
    "lk1": "second vector of lambda's first exponent",
    "lq2": "first vector of lambda's second exponent",
    "lk2": "second vector of lambda's second exponent",
    "lam0": "first value of lambda",
    "mixS": "matrix that mixes the scores",
    "mixP": "matrix that mixes the weights",
    "kern": "kernel of the scores",
    "fg": "forget gates' logits",
    "gO": "weights of the outputs' norm",
    "og": "gate's logits",
    "WG": "gate weights",
}
"""Inputs, as the object of a sentence without article."""

LEGEND: Mapping[str, str] = {name: f"the {about}" for name, about in INPUTS.items() if name != "WG"} | {
    "lq1": "a learned vector", "lk1": "a learned vector", "lq2": "a learned vector", "lk2": "a learned vector",
    "WG": "the weights of the gate",
}  # fmt: skip


REASONS: Mapping[frozenset[str], str] = {
    frozenset(
        {"kappa"}
    ): "What a score has above the threshold is its weight; keys below it get nothing, and the weights sum to one.",
    frozenset(
        {"root"}
    ): "The square of what a score has above the threshold; keys below it get nothing, and the weights sum to one.",
    frozenset({"og"}): "Every channel of the output passes as far as its gate is open.",
    frozenset({"rms"}): "The output of every head over its root mean square: all heads speak equally loud.",
    frozenset({"left"}): "From the last key to the first, each takes its fraction of what is left of the stick.",
}
SIGMOID = "The sigmoid turns each score by itself into a weight between 0 and 1; the weights of a row need not sum to one."


def reason_of_weights(sources: Collection[str], function: str) -> str | None:
    """Why the weights are what they are, by what they are made of; None for those of a softmax.

    >>> reason_of_weights({"beta", "left"}, "Mul")
    'From the last key to the first, each takes its fraction of what is left of the stick.'
    """
    if function == "sigmoid":
        return SIGMOID
    bare = {x.rstrip("2") for x in sources}
    return next((reason for marks, reason in REASONS.items() if marks <= bare), None)
