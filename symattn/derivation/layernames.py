"""Names and reasons of the steps of layers, positions added to X, and the next word; see :mod:`symattn.derivation.naming`."""

from __future__ import annotations

from collections.abc import Mapping

_NTH = {"1": "first", "2": "second", "3": "third"}
_NORM: Mapping[str, tuple[str, str]] = {
    "mu": ("Means", "The mean of each row over its channels."),
    "Dev": ("Deviations from the mean", "Every row is moved so that its mean is 0."),
    "var": ("Variances", "The mean of the squares of a row's deviations."),
    "sd": ("Standard deviations", "The root of the variance; a small number under it keeps it from being 0."),
    "Unit": ("Normalised rows", "Every row is scaled so that its variance is 1: layers see numbers of one size."),
    "N": ("Layer norm", "A learned gain and shift give each channel back a size and a place of its own."),
    "T": ("Residual sum", "What went into the block is added to what came out: the block says only what changes."),
}

TABLE: Mapping[str, tuple[str, str, str]] = {
    "PEsin": ("Even channels", "Even channels", "Sines of the position, slower from channel to channel."),
    "PEcos": ("Odd channels", "Odd channels", "Cosines of the same angles."),
    "PE": (
        "Positional encoding",
        "Positional encoding",
        "Attention does not see the order of the words, so each position gets a vector: waves that are slower from pair to pair.",
    ),
    "Xp": ("Words with their positions", "Words with their positions", "The vector of the word and that of its place, added up."),
    "Attn": ("Output of the attention", "Output of the attention", "The results of all heads, combined by a weight matrix."),
    "Attnx": (
        "Output of the cross attention",
        "Output of the cross attention",
        "The results of all heads, combined by one more weight matrix.",
    ),
    "H1": ("Hidden units", "Hidden units", "The first linear map of the feed-forward block: each position by itself."),
    "H2": ("Active units", "Active units", "The activation lets each unit be there or not, so that the block is not linear."),
    "FF": ("Output of the feed-forward block", "Output of the feed-forward block", "Another linear map, back to the width of X."),
    "logits": (
        "Logits of the next word",
        "Logits of the next word",
        "The context vector is compared with the vector of every word: the embedding table is used a second time.",
    ),
    "Pw": (
        "Next-word probabilities",
        "Next-word probabilities",
        "The softmax turns the logits into a probability for every word of the vocabulary.",
    ),
    **{
        kind + k: (f"{name}, {nth} norm", f"{name}, {nth} norm", reason)
        for kind, (name, reason) in _NORM.items()
        if kind != "T"
        for k, nth in _NTH.items()
    },
    **{
        "T" + k: (f"{_NORM['T'][0]} after the {nth} block", f"{_NORM['T'][0]} after the {nth} block", _NORM["T"][1])
        for k, nth in _NTH.items()
    },
    **{
        name + "lin": (f"{what} before the bias", f"{what} before the bias", "The product with the weights alone.")
        for name, what in (("Q", "Queries"), ("K", "Keys"), ("V", "Values"), ("Y", "Output"), ("Attn", "Output of the attention"))
    },
    "H1lin": ("Hidden units before the bias", "Hidden units before the bias", "The product with the weights alone."),
    "FFlin": ("Feed-forward before the bias", "Feed-forward before the bias", "The product with the weights alone."),
}
INPUTS: Mapping[str, str] = {
    "PE": "position table",
    "Wff1": "first feed-forward weights",
    "bff1": "first feed-forward bias",
    "Wff2": "second feed-forward weights",
    "bff2": "second feed-forward bias",
    **{f"gain{k}": f"gain of the {nth} norm" for k, nth in _NTH.items()},
    **{f"shift{k}": f"shift of the {nth} norm" for k, nth in _NTH.items()},
    **{
        kind + name + cross: f"{what} {word}{' of the cross attention' if cross else ''}"
        for cross in ("", "x")
        for kind, word in (("W", "weights"), ("b", "bias"))
        for name, what in (("Q", "query"), ("K", "key"), ("V", "value"), ("O", "output"))
    },
}
LEGEND: Mapping[str, str] = {
    "PE": "the table of a vector for each position",
    "Wff1": "the first matrix of the feed-forward block",
    "Wff2": "the second matrix of the feed-forward block",
    "gain1": "the gain of the first layer norm, and so on",
    "shift1": "the shift of the first layer norm, and so on",
}
LAST = ("Output of the layer", "The result of the last block: what the next layer starts from.")
"""Name and reason of the output of a layer."""
