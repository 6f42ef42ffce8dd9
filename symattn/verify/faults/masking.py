"""Faults of masks: alignment, windows, prefixes, documents, polarity, and masks that do not hold or come too late."""

from __future__ import annotations

from collections.abc import Iterator

import sympy as sp

from symattn.indexed import size
from symattn.verify.faults.fault import Alternative, Fault, Situation
from symattn.verify.faults.structure import I, J, as_bound, bounds_of, with_conjunct

_OFFSET = size("m") - size("n")
"""Of the bottom-right alignment."""


def _causal(s: Situation) -> Iterator[tuple[sp.Basic, sp.Expr]]:
    """The conditions ``j <= i + offset`` of the definition, each with its offset; of a mask with a prefix too."""
    for c, b in bounds_of(s.program):
        if b.upper:
            yield c, b.offset
    for c in sp.And.make_args(_where(s)):
        for part in c.args if isinstance(c, sp.Or) else ():
            if (b := as_bound(part)) is not None and b.upper:
                yield part, b.offset


def _where(s: Situation) -> sp.Basic:
    from symattn.verify.faults.structure import pairs_condition

    return pairs_condition(s.program)


def _shifted(s: Situation, *alignments: tuple[str, sp.Expr]) -> Iterator[Alternative]:
    """The causal bound with other offsets, those that differ; distances (ALiBi) as they are."""
    for c, offset in _causal(s):
        for label, new in alignments:
            if sp.expand(new - offset) != 0:
                yield Alternative(label, edit=with_part(c, sp.Le(J, I + new)))


def with_part(old: sp.Basic, new: sp.Basic):
    """The rewriting that replaces a condition, or a part of one that is an alternative of others."""
    return with_conjunct(lambda c: new if c == old else c.xreplace({old: new}) if isinstance(c, sp.Or) else c)


def _top_left(s: Situation) -> Iterator[Alternative]:
    d = s.definition
    if d.causal not in (None, "top-left") and d.window is None and not d.alibi:
        yield from _shifted(s, ("", sp.Integer(0)))
    elif d.causal not in (None, "top-left"):
        yield Alternative("everything that is measured from it too", definition=d.replace(causal="top-left"))
        yield from _shifted(s, ("the mask alone", sp.Integer(0)))
    elif d.causal is None:
        yield from _shifted(s, ("", sp.Integer(0)))


def _bottom_right(s: Situation) -> Iterator[Alternative]:
    if s.definition.causal != "bottom-right":
        yield from _shifted(s, ("", _OFFSET))


def _moved(by: int):
    def rewrite(s: Situation) -> Iterator[Alternative]:
        for c, offset in _causal(s):
            yield Alternative(edit=with_part(c, sp.Le(J, I + offset + by)))

    return rewrite


CAUSAL = (
    Fault(
        "F13",
        "causal mask aligned top-left",
        "convention",
        wrong="j <= i",
        right="j <= i + m - n",
        threads=("flash-attention#436", "onnxruntime#28904", "onnx#8054"),
        look="the offset of the diagonal: tril(ones(n, m)) is aligned top-left",
        blind="n = m",
        rewrite=_top_left,
    ),
    Fault(
        "F17",
        "causal mask aligned bottom-right",
        "convention",
        wrong="j <= i + m - n",
        right="j <= i",
        threads=("flash-attention#282",),
        look="the offset of the diagonal: flash-attention from 2.1 on adds m - n",
        blind="n = m",
        rewrite=_bottom_right,
    ),
    Fault(
        "F14",
        "strict causal mask: a query does not see its own position",
        "convention",
        wrong="j < i + offset",
        right="j <= i + offset",
        look="< for <= in the mask, or diagonal=0 for 1 in triu",
        rewrite=_moved(-1),
    ),
    Fault(
        "F15",
        "causal mask that lets each query see one future key",
        "convention",
        wrong="j <= i + offset + 1",
        right="j <= i + offset",
        threads=("GPT-SoVITS#965",),
        look="diagonal=2 for 1 in triu, or an end index that is counted twice",
        blind="a decode step (the last row alone)",
        rewrite=_moved(1),
    ),
)
ROWS = CAUSAL
