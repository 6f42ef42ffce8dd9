"""The sizes of an input, and how they are made to fit a definition."""

from __future__ import annotations

from dataclasses import astuple, dataclass, fields, replace

from symattn import forms
from symattn.definition import Definition
from symattn.errors import ShapeError

SHAPE_LETTERS = ("B", "H", "HKV", "N", "M", "D", "DV")
FEW = 33
"""The greatest length that a definition with as many keys as queries is judged at."""


@dataclass(frozen=True)
class Shape:
    """The sizes of one input: batch, heads, key-value heads, queries, keys, width of queries and keys, width of values."""

    b: int
    h: int
    hkv: int
    n: int
    m: int
    d: int
    dv: int

    @classmethod
    def parse(cls, text: str) -> Shape:
        """``B,H,HKV,N,M,D[,DV]`` as on the command line.

        Raises
        ------
        ShapeError
            When it is not six or seven positive integers, or HKV does not divide H.

        >>> Shape.parse("2,6,3,5,7,6").dv
        6
        """
        try:
            sizes = [int(x) for x in text.split(",")]
        except ValueError:
            sizes = []
        if len(sizes) not in (6, 7) or min(sizes) < 1:
            raise ShapeError(f"a shape is B,H,HKV,N,M,D[,DV], six or seven integers from 1 on, got {text!r}")
        b, h, hkv, n, m, d = sizes[:6]
        shape = cls(b, h, hkv, n, m, d, sizes[6] if len(sizes) == 7 else d)
        if shape.h % shape.hkv:
            raise ShapeError(f"HKV must divide H, got H={shape.h}, HKV={shape.hkv}")
        return shape

    def __str__(self) -> str:
        return ",".join(map(str, astuple(self)[: 7 if self.dv != self.d else 6]))

    @property
    def sizes(self) -> dict[str, int]:
        """The sizes by their names in lower case.

        >>> Shape.parse("2,4,2,5,7,6").sizes["hkv"]
        2
        """
        return {f.name: getattr(self, f.name) for f in fields(self)}


def starts_elsewhere(d: Definition) -> bool:
    """Whether a definition starts from other tensors than query, key and value."""
    return bool(forms.sources_of(d)) or d.start != "qkv"


def fitted(definition: Definition, shape: Shape) -> Shape:
    """A shape with the numbers of heads that the definition fixes: by its fields, or by a parameter with a value per head.

    >>> str(fitted(Definition(score="t*s", params={"t": "1,2,3,4"}), Shape.parse("2,6,3,5,7,6")))
    '2,4,2,5,7,6'
    """
    if not starts_elsewhere(definition) and "m" not in {str(a) for a in definition.program().sizes}:
        length = min(max(shape.n, shape.m), FEW)  # as many keys as queries
        shape = replace(shape, n=length, m=length)
    if definition.heads is not None:
        return replace(shape, h=definition.heads, hkv=definition.kv_heads or definition.heads)
    if any(isinstance(value, tuple) for value in definition.params.values()):
        heads = definition.head_counts[0]
        return replace(shape, h=heads, hkv=heads // 2 if heads % 2 == 0 else 1)
    return shape


def refuse_other_heads(d: Definition, s: Shape) -> None:
    """Refuse a shape whose heads are not those of the definition.

    Raises
    ------
    ShapeError
        Naming both.
    """
    if d.heads is not None and (d.heads, d.kv_heads) != (s.h, s.hkv):
        raise ShapeError(f"the definition has heads={d.heads}, kv_heads={d.kv_heads}; the shape says H={s.h}, HKV={s.hkv}")
