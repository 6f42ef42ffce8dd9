"""Algorithms of kernels: other lists of statements for the same attention, equal by proof (``symattn prove``)."""

from __future__ import annotations

from symattn.variants.variant import Reduction, Variant

ROWS = (
    Variant(
        "online-softmax",
        "one pass over the keys: a running maximum, and sums that are rescaled when it grows",
        {"algorithm": "online"},
        "arXiv 1805.02867, algorithm 3",
        (Reduction("self-attention", "always: the maximum cancels"),),
    ),
    Variant(
        "flash",
        "tiles of keys: nothing of the size n times m is kept, the gradient recomputes the weights from the log-sum-exp",
        {"causal": True, "algorithm": "flash", "block": 2},
        "arXiv 2205.14135, algorithms 1 and 4; arXiv 2307.08691, algorithms 1 and 2 (divided once, L saved)",
        (Reduction("causal", "always, for any size of tiles"),),
    ),
    Variant(
        "split-keys",
        "parts of the keys by themselves, for one query at a time, merged by their log-sum-exp",
        {"algorithm": "split", "block": 2},
        "Flash-Decoding, pytorch.org/blog/flash-decoding, 2023; arXiv 2407.08608 for the kernels that followed",
        (Reduction("self-attention", "always, for any size of parts"),),
    ),
    Variant(
        "ring",
        "keys are spread over devices in shards that go round; the gradient uses the log-sum-exp of the whole row",
        {"causal": True, "algorithm": "ring", "block": 2},
        "arXiv 2310.01889, section 3, algorithm 1",
        (Reduction("causal", "always, in whatever order the shards arrive"),),
    ),
    Variant(
        "paged",
        "keys and values lie in pages of a cache, which a table lists for every sequence",
        {"causal": "bottom-right", "key_lengths": True, "algorithm": "paged"},
        "arXiv 2309.06180, section 4.1",
    ),
)
