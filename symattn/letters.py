"""The indices and reads of the attention programs: which axes each tensor has for a number of heads, with and without a batch."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import sympy as sp

from symattn.errors import DefinitionError
from symattn.indexed import Tensor, index, size, tensor

SIZES = {
    "b": "B", "k": "Hkv", "g": "G", "h": "H", "i": "n", "j": "m", "c": "d", "e": "dv",
    "a": "dmodel", "u": "dmemory", "f": "dout", "p": "n",
}  # fmt: skip
"""The size of each index. In self-attention from X the keys are the queries' tokens, and ``j`` has the size ``n`` too."""


@dataclass(frozen=True)
class Letters:
    """The indices of one program.

    Heads: none for a single head; ``h`` where every query head has its own key/value head, or all of them share one;
    otherwise ``k`` (key/value head) and ``g`` (member of its group).

    >>> letters = Letters(heads=4, kv_heads=2, batch=True)
    >>> letters.query("Q", letters["c"]), letters.key("K", letters["c"]), letters.head
    (Q[b, k, g, i, c], K[b, k, j, c], G*k + g)
    """

    heads: int = 1
    kv_heads: int = 1
    batch: bool = False
    one_source: bool = False
    tiled: bool = False
    taken: frozenset[str] = frozenset()
    """Names of parameters, which the channel indices must not have."""
    suffix: str = ""
    """What is added to the names of tensors over queries, keys and scores: those of a second map, for example."""
    indices: dict[str, sp.Symbol] = field(init=False, hash=False, compare=False, default_factory=dict)
    lengths: dict[str, sp.Expr] = field(init=False, hash=False, compare=False, default_factory=dict)
    """Sizes of indices that are not in :data:`SIZES`, by letter."""

    def __getitem__(self, letter: str) -> sp.Symbol:
        """The index symbol that plays the part of ``letter``; it has another name where a parameter has that one."""
        if letter not in self.indices:
            name = letter
            while name in self.taken:
                name += "1"
            self.indices[letter] = index(name)
        return self.indices[letter]

    def sized(self, letter: str, length: sp.Expr | int) -> sp.Symbol:
        """An index of a size of its own, for example the pairs of channels of a rotation.

        >>> at = Letters()
        >>> at.sized("x", size("d") / 2), at.dims
        (x, {x: d/2})

        Where another size has this letter already, the next free one: ``x1``.
        """
        found = sp.sympify(length)
        while self.lengths.setdefault(letter, found) != found:
            letter += "1"
        return self[letter]

    def twin(self, letter: str) -> sp.Symbol:
        """A second index of the same size.

        >>> Letters().twin("j")
        j'
        """
        return self.sized(letter + "'", self.size_of(letter))

    def twins(self, axes: tuple[sp.Symbol, ...]) -> dict[sp.Symbol, sp.Symbol]:
        """A second index for each of some indices."""
        letters = {a: letter for letter, a in self.indices.items()}
        return {a: self.twin(letters[a]) for a in axes}

    def suffixed(self, suffix: str) -> Letters:
        """The same indices, for tensors whose names end in ``suffix``.

        >>> at = Letters()
        >>> at.suffixed("2").score("R")
        R2[i, j]
        """
        other = replace(self, suffix=suffix)
        object.__setattr__(other, "indices", self.indices)
        object.__setattr__(other, "lengths", self.lengths)
        return other

    @property
    def dims(self) -> dict[sp.Symbol, sp.Expr]:
        """The sizes of all indices in use."""
        return {a: self.size_of(letter) for letter, a in self.indices.items()}

    def size_of(self, letter: str) -> sp.Expr:
        """The size of an index."""
        if letter in self.lengths:
            return self.lengths[letter]
        return size("n" if letter == "j" and self.one_source else SIZES[letter])

    @property
    def batch_axes(self) -> tuple[sp.Symbol, ...]:
        """The batch index, where there is one."""
        return (self["b"],) if self.batch else ()

    @property
    def query_heads(self) -> tuple[sp.Symbol, ...]:
        """The head indices of queries, scores and outputs."""
        if self.heads == 1:
            return ()
        return (self["h"],) if self.kv_heads in (1, self.heads) else (self["k"], self["g"])

    @property
    def key_heads(self) -> tuple[sp.Symbol, ...]:
        """The head indices of keys and values."""
        if self.kv_heads == 1:
            return ()
        return (self["h"],) if self.kv_heads == self.heads else (self["k"],)

    @property
    def head(self) -> sp.Expr:
        """The number of the query head, 0 for a single one."""
        q = self.query_heads
        if len(q) == 2:
            k, g = q
            return g * size("Hkv") + k if self.tiled else k * size("G") + g
        return q[0] if q else sp.Integer(0)

    @property
    def head_count(self) -> sp.Expr:
        """The number of query heads."""
        return {0: sp.Integer(1), 1: size("H"), 2: size("Hkv") * size("G")}[len(self.query_heads)]

    def query(self, name: str, *last: sp.Symbol) -> Tensor:
        """A tensor over batch, query heads, queries and ``last``."""
        return tensor(name + self.suffix, *self.batch_axes, *self.query_heads, self["i"], *last)

    def key(self, name: str, *last: sp.Symbol) -> Tensor:
        """A tensor over batch, key heads, keys and ``last``."""
        return tensor(name + self.suffix, *self.batch_axes, *self.key_heads, self["j"], *last)

    def score(self, name: str) -> Tensor:
        """A tensor over batch, query heads, queries and keys."""
        return self.query(name, self["j"])

    def per_head(self, name: str) -> Tensor:
        """A tensor with one value per query head."""
        return tensor(name, *self.query_heads)

    def per_batch(self, name: str) -> Tensor:
        """A tensor with one value per batch entry."""
        return tensor(name, *self.batch_axes)

    def given(self, name: str, axes: str) -> Tensor:
        """A given array that carries ``axes`` (of b, h, i, j), without those that this program has not."""
        sub: list[sp.Symbol] = []
        for a in axes:
            sub += self.batch_axes if a == "b" else self.query_heads if a == "h" else (self[a],)
        return tensor(name, *sub)

    def table(self) -> dict[sp.Basic, sp.Basic]:
        """What ``h``, ``b`` and ``m`` of a score or mask stand for here."""
        names: dict[sp.Basic, sp.Basic] = {index("h"): self.head, size("m"): self.size_of("j")}
        if self.batch:
            names[index("b")] = self["b"]
        return names

    def read(self, expr: sp.Basic) -> sp.Basic:
        """A parsed score, mask or scale in the indices of this program."""
        if index("b") in expr.free_symbols and not self.batch:
            raise DefinitionError(
                "the score or mask depends on the batch index b, so it needs numbers with a batch: arrays of shape (B, H, n, d)"
            )
        return expr.xreplace(self.table())
