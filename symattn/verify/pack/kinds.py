"""The kinds of input of the default pack, as rows of data: sizes, numbers, what each is for and which faults it shows.

Sizes differ where a fault could hide in their equality: fewer queries than keys and more, by at least two; several heads on
several key-value heads (neither one nor all); a width that is no power of two and not the number of heads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from symattn.arithmetic import Arithmetic
from symattn.definition import Definition
from symattn.errors import UnknownNameError, nearest
from symattn.formats import get as format_of
from symattn.verify.kernels.call import Call
from symattn.verify.pack import laws
from symattn.verify.pack.shapes import Shape

__all__ = ["KINDS", "NAMES", "SHAPE", "Kind", "left_out", "named"]


@dataclass(frozen=True)
class Kind:
    """One kind of input.

    Parameters
    ----------
    name
        As reports and ``--only`` call it.
    shape
        The sizes that it wants.
    about, shows
        What it is, and which faults show on it, for readers.
    draw, change
        How numbers are drawn, and what is changed in them; see :mod:`symattn.verify.pack.laws`.
    applies
        On which calls it makes sense.
    ties
        Whether numbers in it are equal on purpose, so that a choice by their order is open.
    anywhere
        Whether it is meant for forms too that do not start from query, key and value.
    height
        The size of its scores, where that is beyond what some arithmetic promises anything for; 0 elsewhere.
    square
        The length of queries and keys where few of them would see many keys: under a mask that starts at the top left.
    need
        What a kernel may ask of sizes and its own do not fulfil: a kernel that raises on it, and not on the others, is excused.
        Empty where every kernel has to take it.
    """

    name: str
    shape: Shape
    about: str
    shows: str
    draw: laws.Draw = laws.normal
    change: laws.Change = laws.nothing
    applies: Callable[[Call], bool] = laws.always
    ties: bool = False
    anywhere: bool = False
    height: float = 0.0
    square: int = 0
    need: str = ""

    def promised(self, arithmetic: Arithmetic) -> bool:
        """Whether the exponentials of its scores mean anything where the scores are kept as an arithmetic says.

        >>> from symattn.arithmetic import get
        >>> abyss = next(k for k in KINDS if k.name == "abyss")
        >>> abyss.promised(get("flash-bf16")), abyss.promised(get("eager-bf16"))
        (True, False)
        """
        kept = (arithmetic.store, arithmetic.compute, arithmetic.accumulate)
        return all(float(format_of(f).unit_roundoff) * self.height <= 1 / 16 for f in kept)

    def beside(self, other: Kind) -> bool:
        """Whether both draw the same numbers at the same sizes."""
        return (self.draw, self.change, self.applies) == (other.draw, other.change, other.applies)


def _normalised(call: Call) -> bool:
    return laws.has_norm(call.definition)


WIDE, TALL = Shape(2, 4, 2, 5, 7, 6, 6), Shape(2, 6, 2, 7, 5, 10, 10)
ONE, FEW = replace(WIDE, b=1), Shape(1, 2, 1, 2, 512, 6, 6)

KINDS: tuple[Kind, ...] = (
    Kind("normal", WIDE, "N(0,1), fewer queries than keys", "scale, mask, grouping, every gradient", anywhere=True),
    Kind(
        "tall",
        TALL,
        "N(0,1), more queries than keys: bottom-right causal rows without keys",
        "alignment of the diagonal, rows without keys, groups of three",
        anywhere=True,
    ),
    Kind(
        "large",
        replace(WIDE, h=3, hkv=3),
        "queries times 8, three heads: one key takes a row",
        "softcap and its derivative, ALiBi slopes of head counts that are no power of two",
        change=laws.large,
    ),
    Kind(
        "integers",
        replace(TALL, h=4, d=6, dv=6),
        "integers from -2 to 2: ties and exact results",
        "anything that is wrong where rounding does not blur it",
        draw=laws.integers,
        anywhere=True,
        ties=True,
    ),
    Kind(
        "one-hot",
        replace(ONE, n=4, m=6),
        "V is the unit matrix: the output is the weights",
        "a wrong weight, wherever it is",
        change=laws.one_hot,
    ),
    Kind("decode", replace(WIDE, n=1, m=9), "one query and nine keys", "paths of their own for a single query"),
    Kind(
        "paired",
        replace(WIDE, m=8),
        "equal keys with opposite large values: the output is a small difference",
        "low precision that a tolerance relative to the result would hide",
        change=laws.paired,
        ties=True,
    ),
    Kind(
        "deep",
        replace(WIDE, m=9),
        "all scores near -200",
        "padded or missing keys of score 0, a maximum with 0, a sink outside the maximum, scores kept in 16 bits",
        change=laws.near(-40, 12),
        height=200,
    ),
    Kind(
        "abyss",
        ONE,
        "all scores near -60000",
        "finite numbers that stand in for -infinity",
        change=laws.near(-300, 500),
        applies=laws.decided_at_60000,
        height=6e4,
    ),
    Kind(
        "peak",
        ONE,
        "all scores near 60000, raw scores beyond 65504",
        "exponentials without the maximum, products of 16 bits that overflow",
        change=laws.near(300, 500),
        applies=laws.decided_at_60000,
        height=6e4,
    ),
    Kind(
        "long",
        replace(WIDE, b=1, n=4, m=133),
        "133 keys with rising scores: several tiles, the last one partial",
        "rescaling between tiles, the last tile",
        change=laws.rising,
    ),
    Kind(
        "square",
        replace(ONE, n=33, m=33),
        "33 queries and keys with rising scores: a key more than a tile of 16 or 32",
        "tiles under masks that start at the top left",
        change=laws.rising,
    ),
    Kind(
        "under",
        replace(ONE, h=2, n=3, m=127),
        "127 keys, a tile less one, all scores near -120",
        "a padded key in the last tile, tiles that are all masked",
        change=laws.near(-24, 12),
        height=120,
    ),
    Kind(
        "over",
        replace(ONE, h=2, n=3, m=129),
        "129 keys, a tile and one, all scores near -120",
        "a tail that is filled with zeros, in the forward and the backward",
        change=laws.near(-24, 12),
        height=120,
    ),
    Kind(
        "flat-512",
        FEW,
        "512 keys, queries 0, values 1: the output is 1",
        "partial sums of 16 bits (bfloat16)",
        change=laws.flat,
        square=272,
        applies=laws.defined_at_zero,
        ties=True,
    ),
    Kind(
        "flat-4096",
        replace(FEW, h=1, n=1, m=4096, d=4, dv=4),
        "the same over 4096 keys",
        "partial sums of 16 bits (float16)",
        change=laws.flat,
        applies=laws.defined_at_zero,
        ties=True,
    ),
    Kind(
        "capped",
        replace(WIDE, n=6, m=8),
        "raw scores of a few caps, every other row near -3 caps; where there is a softcap",
        "softcap dropped, after the mask, or without its derivative, whatever the cap",
        change=laws.capped,
        applies=laws.has_softcap,
    ),
    Kind(
        "sinks",
        replace(TALL, d=6, dv=6, m=9),
        "sinks from -5 to 20 beside rows near -200, -5, 0, 5 and 20; where there is a sink",
        "sink dropped or outside the maximum, its gradient",
        change=laws.sunk,
        applies=laws.has_sink,
    ),
    Kind(
        "small",
        WIDE,
        "N(0,1)/128, so that rows are nearly constant; where there is a norm",
        "what is added under the root of a norm",
        draw=laws.small,
        applies=_normalised,
        anywhere=True,
    ),
    Kind(
        "uneven",
        replace(WIDE, dv=10),
        "N(0,1), values wider than keys; a kernel may refuse it",
        "one width taken for the other: 1/sqrt(d_v), gradients over too few channels",
        need="dv == d",
    ),
    Kind(
        "poison",
        WIDE,
        "NaN in keys and values that nothing may read; where there are such",
        "masked entries that are multiplied by 0 and not left out",
        applies=laws.any_unread,
    ),
)
"""The default pack."""
SHAPE = Kind("shape", WIDE, "N(0,1) in the sizes of --shape", "what shows at these sizes only", anywhere=True)
"""The kind of sizes that a user asks for."""
NAMES = (*(k.name for k in KINDS), SHAPE.name)


def named(text: str | Sequence[str] | None, option: str) -> tuple[str, ...] | None:
    """The kinds that a user names, as text joined by commas or as a list; None stays None.

    Raises
    ------
    UnknownNameError
        Naming the option, and the nearest kinds there are.

    >>> named("tall, deep", "only")
    ('tall', 'deep')
    """
    if text is None:
        return None
    names = tuple(x.strip() for x in text.split(",")) if isinstance(text, str) else tuple(text)
    for name in names:
        if name not in NAMES:
            raise UnknownNameError(f"{option}: there is no kind of input {name!r}. {nearest(name, NAMES)}")
    return names


def left_out(definition: Definition, kind: Kind, *, elsewhere: bool) -> bool:
    """Whether a kind says nothing of a form that starts from other tensors, or of one that chooses by the sign of a value."""
    return elsewhere and (not kind.anywhere or (kind.ties and laws.chooses(definition)))
