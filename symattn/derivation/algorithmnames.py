"""The names of the steps of kernel algorithms: rows for the tables of :mod:`symattn.derivation.naming`."""

from __future__ import annotations

from collections.abc import Mapping

TABLE: Mapping[str, tuple[str, str, str]] = {
    "shard": ("Shard at hand", "Shards at hand", "Shards of keys go round: at every step a query meets those of another one."),
    "seen": ("Keys seen so far", "Keys seen so far", "As long as there is none, there is nothing to rescale and no output."),
    "ms0": (
        "Running maximum of the keys",
        "Running maxima of the keys",
        "The largest score of the tiles so far, without the sink.",
    ),
    "ms": ("Running maximum", "Running maxima", "The largest score of the tiles so far; any other shift gives the same output."),
    "rs": ("Rescaling", "Rescaling", "What was summed with an older maximum is brought to the new one."),
    "lt": ("Normaliser of a tile", "Normalisers of the tiles", "The exponentials of one tile, added up."),
    "Ot": ("Values of a tile", "Values of the tiles", "The value rows of one tile, each multiplied by its weight so far."),
    "ls": ("Running normaliser", "Running normalisers", "The normaliser before, rescaled, and what the tile adds."),
    "Os": ("Running output", "Running outputs", "The output before, rescaled, and what the tile adds; divided at the very end."),
    "nt": ("Keys of a part", "Keys of the parts", "A part without visible keys takes no part in the merge."),
    "mt": ("Maximum of a part", "Maxima of the parts", "Each part of the keys takes off a maximum of its own."),
    "Lt": ("Log-sum-exp of a part", "Log-sum-exp of the parts", "All that the merge has to know of the scores of a part."),
    "wt": ("Share of a part", "Shares of the parts", "The exponential of its log-sum-exp says how much a part counts."),
}
SUFFIXES: Mapping[str, str] = {"_b": ", once more", "t": ": what a tile gives", "s": ": the tiles so far"}
"""What a letter behind the name of a known tensor says."""
INPUTS: Mapping[str, str] = {"Kc": "pages of keys", "Vc": "pages of values", "page": "table of pages"}
LEGEND: Mapping[str, str] = {
    "Kc": "the cache of keys (page, place, channel)",
    "Vc": "the cache of values",
    "page": "the table of pages of a sequence",
}
