"""The algorithm that a definition names and its blocks of keys: what goes together, and the same in words."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from symattn.errors import DefinitionError

if TYPE_CHECKING:
    from symattn.definition import Definition

HELPERS = {
    **dict.fromkeys(("ms0", "ms", "ls", "lt", "rs", "seen", "nt", "mt", "Lt", "wt"), "bHit"),
    **dict.fromkeys(("Ot", "Os"), "bHite"),
    "shard": "it",
}
"""The tensors that algorithms add, and their axes."""
NAMES = frozenset({*HELPERS, "Kc", "Vc", "page"})
"""All names of tensors that only a definition with an algorithm has."""


def refuse_algorithms(d: Definition, refuse: Callable[[object, str], None]) -> None:
    """What ``algorithm`` and ``block`` cannot stand with; ``refuse(when, why)`` raises."""
    if d.algorithm is None:
        refuse(
            d.block is not None and d.form == "softmax",
            "block is the number of keys of a tile: set algorithm to online, flash, split, ring or paged",
        )
        return
    refuse(
        d.form != "softmax",
        f"algorithm={d.algorithm!r} is a way to evaluate softmax attention; form={d.form!r} has its own: leave algorithm out",
    )
    if d.algorithm == "paged":
        refuse(
            d.start != "qkv" or d.cross,
            "algorithm='paged' looks keys and values up in a given cache (key_cache, value_cache, block_table): set start='qkv'",
        )
        refuse(d.output_projection, "algorithm='paged' is about the attention itself; leave output_projection out")
        refuse(d.differential, "a paged cache has one set of keys; leave differential or algorithm out")


def refuse_open_block(d: Definition) -> None:
    """Numbers need a number of keys of a tile, where no array shows it.

    Raises
    ------
    DefinitionError
        When the definition leaves it open.
    """
    if d.evaluation == "chunked" and d.block is None:
        raise DefinitionError(
            "evaluation='chunked' is a formula for any length of chunks; numbers need one: set block, for example block=64"
        )
    if d.algorithm in ("flash", "split", "ring") and d.block is None:
        raise DefinitionError(
            f"algorithm={d.algorithm!r} is a formula for any size of tiles; numbers need one: set block, for example block=64"
        )


def record_algorithms(d: Definition) -> dict[str, str]:
    """The algorithm in words, where there is one."""
    if d.algorithm is None:
        return {}
    width = "any number of" if d.block is None else str(d.block)
    words = {
        "online": "the running softmax of one key after the other"
        if d.block is None
        else f"the running softmax of {width} keys at a time",
        "flash": f"tiles of {width} keys, a running maximum, denominator and output; the gradient recomputes the weights",
        "split": f"parts of {width} keys by themselves, merged by their log-sum-exp",
        "ring": f"shards of {width} keys, which go round: shard h of the queries meets those of h, h - 1, ..",
        "paged": f"keys and values in pages of {width} places: key j at place j mod block of page block_table[floor(j/block)]",
    }
    return {"algorithm": words[d.algorithm]}
