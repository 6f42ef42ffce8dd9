"""From context vectors to the next word: the embedding table once more, and a softmax over the vocabulary."""

from __future__ import annotations

import sympy as sp

from symattn.building import Builder
from symattn.indexed import Tensor, size, subscripts_of, tensor


def next_word(b: Builder, context: Tensor) -> tuple[str, ...]:
    """``logits = context Emb^T`` and their softmax ``Pw``, where the definition asks for them; the names of these outputs.

    The table is the one that the words were looked up in (tied), so that its gradient has both contributions.
    """
    if not b.d.next_word:
        return ()
    at, w = b.at, b.at.sized("w", size("vocab"))
    i, width = at["i"], subscripts_of(context)[-1]

    def rows(name: str, *last: sp.Symbol) -> Tensor:
        return tensor(name, *at.batch_axes, i, *last)

    logits = b.add(rows("logits", w), context * tensor("Emb", w, width), width)
    highest = b.add(rows("mw"), logits, w, reduce="max", range_only=True, aux=True)
    each = b.add(rows("Ew", w), sp.exp(logits - highest), aux=True)
    total = b.add(rows("lw"), each, w, aux=True)
    b.add(rows("Pw", w), each / total)
    return ("logits", "Pw")


def context_width(b: Builder) -> None:
    """Context vectors have the width of the embedding, so that they can be compared with its rows."""
    if b.d.next_word:
        b.at.sized("f" if b.d.output_projection else "e", size("dmodel"))
