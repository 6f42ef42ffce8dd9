"""How what was written to a state fades: the factor of one step, and products of it over the stretches that evaluations need.

With ``a[t]`` the factor of step t (before anything is added to the state in that step), what step j wrote is worth
``Gamma[i, j] = a[j+1] ... a[i]`` at step i. The factor is one number per head, or one per step, or one per step and key channel;
given itself or as its logarithm.
"""

from __future__ import annotations

import sympy as sp

from symattn.building import Builder
from symattn.indexed import Tensor, size, tensor

GIVEN = {
    ("head", "linear"): "gam",
    ("head", "log"): "lgam",
    ("retention", "linear"): "gam",
    ("step", "linear"): "Al",
    ("step", "log"): "Lal",
    ("channel", "linear"): "Ac",
    ("channel", "log"): "Lac",
}
"""The letter of the factors (or their logarithms), by the fields ``decay`` and ``decay_space``."""


def of_keys(b: Builder, name: str, *last: sp.Symbol) -> Tensor:
    """A tensor over batch and key heads, with the indices ``last``."""
    return tensor(name, *b.at.batch_axes, *b.at.key_heads, *last)


def chunk_length(b: Builder) -> sp.Expr:
    """The length of a chunk: ``block``, or a size of any value."""
    return sp.Integer(b.d.block) if b.d.block else size("chunk")


def chunk_of(b: Builder, i: sp.Expr) -> sp.Expr:
    """The number of the chunk in which position ``i`` lies."""
    return sp.floor(i / chunk_length(b))


class Decays:
    """The decay of a definition; each method adds the statements of a product of factors and gives the product.

    Parameters
    ----------
    b
        The builder; ``b.where`` is the condition of the pairs (i, j) that the form looks at.
    chunked
        Whether stretches end at the borders of chunks.
    """

    def __init__(self, b: Builder, chunked: bool = False) -> None:
        self.b, self.chunked = b, chunked
        self._made: dict[str, Tensor] = {}
        b.at.sized("t", size("n"))
        self.kind = b.d.decay
        self.log = b.d.decay_space == "log"
        self.channels = (b.at["c"],) if self.kind == "channel" else ()
        if self.kind == "retention":
            h = b.at.key_heads[0] if b.at.key_heads else sp.Integer(0)
            b.add(tensor("gam", *b.at.key_heads), 1 - sp.Integer(2) ** (-5 - h))

    @property
    def constant(self) -> bool:
        """Whether the factor is the same at every step."""
        return self.kind in ("head", "retention")

    def _given(self, *at: sp.Symbol) -> Tensor:
        name = GIVEN[self.kind or "", self.b.d.decay_space if self.kind != "retention" else "linear"]
        return tensor(name, *self.b.at.key_heads) if self.constant else of_keys(self.b, name, *at, *self.channels)

    def step(self, i: sp.Symbol) -> sp.Expr:
        """The factor of step ``i``."""
        if self.kind is None:
            return sp.S.One
        return sp.exp(self._given(i)) if self.log else self._given(i)

    def _product(
        self, name: str, at: tuple[sp.Symbol, ...], count: sp.Expr, exponent: sp.Expr | None, *stretch: sp.Basic, where: sp.Basic
    ) -> sp.Expr:
        """The product of the factors of ``count`` steps t, those in ``stretch``; ``exponent`` is the sum of their logarithms."""
        b = self.b
        if self.kind is None:
            return sp.S.One
        if name in self._made:
            return self._made[name]
        if self.constant:
            g, target = self._given(), tensor(name, *b.at.key_heads, *at)
            made = b.add(target, sp.exp(count * g) if self.log else g**count, where=where)
        elif self.log:
            made = b.add(of_keys(b, name, *at, *self.channels), sp.exp(exponent), where=where)
        else:
            t = b.at["t"]
            target = of_keys(b, name, *at, *self.channels)
            made = b.add(target, self._given(t), t, reduce="prod", where=sp.And(where, *stretch))
        self._made[name] = made
        return made

    def _summed(self, i: sp.Symbol) -> Tensor | None:
        """The sum of the logarithms from the start (of the chunk) up to a step."""
        if self.kind is None or self.constant or not self.log:
            return None
        b, t, first = self.b, self.b.at["t"], self.b.at["i"]
        name = of_keys(b, "Lsum", first, *self.channels)
        if not any(s.name == "Lsum" for s in b.statements):
            b.add(name, self._given(t), t, where=sp.And(sp.Le(t, first), *self._same(t, first)), aux=True)
        return name.xreplace({first: i})

    def _same(self, t: sp.Symbol, i: sp.Symbol) -> tuple[sp.Basic, ...]:
        return (sp.Eq(chunk_of(self.b, t), chunk_of(self.b, i)),) if self.chunked else ()

    def between(self) -> sp.Expr:
        """``Gamma[i, j]``: what step j wrote, at step i >= j (of the same chunk)."""
        i, j, t = (self.b.at[a] for a in "ijt")
        upper, lower = self._summed(i), self._summed(j)
        exponent = None if upper is None or lower is None else upper - lower
        return self._product("Gamma", (i, j), i - j, exponent, sp.Lt(j, t), sp.Le(t, i), where=self.b.where)

    def from_start(self) -> sp.Expr:
        """``Lambda[i]``: what was there before the first step (of the chunk), at step i."""
        i, t = self.b.at["i"], self.b.at["t"]
        first = chunk_length(self.b) * chunk_of(self.b, i) if self.chunked else sp.S.Zero
        return self._product("Lambda", (i,), i - first + 1, self._summed(i), sp.Le(t, i), *self._same(t, i), where=sp.true)

    def to_end(self) -> sp.Expr:
        """``Omega[j]``: what step j wrote, at the last step of its chunk."""
        j, t = self.b.at["j"], self.b.at["t"]
        chunk = chunk_of(self.b, j)
        count = sp.Min(chunk_length(self.b) * (chunk + 1), size("n"), evaluate=False) - 1 - j
        whole, lower = self._whole(chunk), self._summed(j)
        exponent = None if whole is None or lower is None else whole - lower
        return self._product("Omega", (j,), count, exponent, sp.Lt(j, t), *self._same(t, j), where=sp.true)

    def _whole(self, x: sp.Expr) -> Tensor | None:
        """The sum of the logarithms of a chunk."""
        if self.kind is None or self.constant or not self.log:
            return None
        b, t, first = self.b, self.b.at["t"], self.b.at["x"]
        name = of_keys(b, "Lall", first, *self.channels)
        if not any(s.name == "Lall" for s in b.statements):
            b.add(name, self._given(t), t, where=sp.Eq(chunk_of(b, t), first), aux=True)
        return name.xreplace({first: x})

    def of_chunk(self) -> sp.Expr:
        """``Delta[x]``: what was there before chunk x, after it."""
        x, t = self.b.at["x"], self.b.at["t"]
        length = chunk_length(self.b)
        count = sp.Min(length, size("n") - length * x, evaluate=False)
        return self._product("Delta", (x,), count, self._whole(x), sp.Eq(chunk_of(self.b, t), x), where=sp.true)
