"""The bytes that a kernel by tiles moves: what its loops load and store, off the same loops as its pseudo-code.

The model: a block of rows runs through the loops together, so what does not depend on the row is loaded once for the block;
what is loaded stays on the chip for the turn of the loop that loads it; what is stored is written once, and read before where
it is added to. Tiles that a mask leaves empty are loaded like the others.
"""

from __future__ import annotations

from collections.abc import Mapping

import sympy as sp

from symattn.definition import Definition
from symattn.derivation.kernels.loops import Assign, For, Kernel, Load, walked
from symattn.derivation.kernels.page import ROW, kernel_of
from symattn.forms.algorithms import tiles_for
from symattn.indexed import Tensor, all_reads, integer_symbols, name_of, size, subscripts_of
from symattn.tiling import Tiles

__all__ = ["ROWS", "tiled_bytes"]

ROWS = size("Br")
"""The number of queries that a kernel takes at once."""


def tiled_bytes(
    d: Definition, width: sp.Expr, gradient: bool = False, equal: Mapping[sp.Symbol, sp.Expr] | None = None
) -> sp.Expr:
    """The bytes that the flash kernel of a definition moves.

    Parameters
    ----------
    d
        A definition that has such a kernel; tiles have Bc keys and Br queries.
    width
        The bytes of a number.
    gradient
        The backward kernel and not the forward one.
    equal
        Sizes that are taken to be equal.

    Raises
    ------
    DefinitionError
        When the definition has no algorithm by tiles.

    >>> tiled_bytes(Definition(), sp.Integer(1), equal={size("m"): size("n")})
    d*n*ceiling(n/Br) + d*n + dv*n*ceiling(n/Br) + dv*n + n
    """
    flash = d.replace(algorithm=None, block=None).replace(algorithm="flash", lse=not gradient)
    kernel, _ = kernel_of(flash, gradient)
    total = _moved(kernel, tiles_for(flash))
    return sp.expand(total.xreplace(dict(equal or {})) * width)


def _moved(kernel: Kernel, tiles: Tiles) -> sp.Expr:
    """All numbers that go between memory and the chip."""
    total = sp.S.Zero
    loaded = set(kernel.reads)
    kept = _in_memory(kernel)
    once: set[tuple[Tensor, tuple[sp.Symbol, ...]]] = set()
    for node, loops in walked(kernel.body):
        if isinstance(node, Load):
            total += sum((_entries(x, loops, kernel, tiles) for x in node.reads), sp.S.Zero)
        elif isinstance(node, Assign):
            name = name_of(node.target)
            if name in kept:
                own = node.onto or any(name_of(x) == name for x in all_reads(node.expr))
                total += _entries(node.target, loops, kernel, tiles) * (2 if own else 1)
            read = {x for x in all_reads(node.expr) if name_of(x) != name and name_of(x) in (kept if loops else kept | loaded)}
            total += sum((_entries(x, loops, kernel, tiles) for x in read if (x, loops) not in once), sp.S.Zero)
            once |= {(x, loops) for x in read}
    return total


def _in_memory(kernel: Kernel) -> set[str]:
    """What is given, and what is kept for all turns of a loop."""
    looped = {n.index for n, _ in walked(kernel.body) if isinstance(n, For)}
    found = {name_of(a.target) for a in kernel.assigned() if looped & set(subscripts_of(a.target))}
    return found | set(kernel.gives)


def _entries(x: Tensor, loops: tuple[sp.Symbol, ...], kernel: Kernel, tiles: Tiles) -> sp.Expr:
    """How many numbers are moved: those of the vector, in every turn; one turn for a block where the row does not matter."""
    found = {a for at in subscripts_of(x) for a in integer_symbols(at) if a in kernel.dims}
    turns = sp.S.One
    for a in loops:
        n = kernel.dims[a]
        turns *= sp.ceiling(n / ROWS) if a == ROW and a not in found else n
    vector = sp.Mul(*[kernel.dims[a] for a in found if a not in loops])
    if tiles.places and set(tiles.axes) <= found | set(loops) and set(tiles.places) <= found:
        count, width = kernel.dims[tiles.tile], kernel.dims[tiles.places[0]]
        return turns * vector * _length(tiles) / (count * width)  # the last tile is as long as what is left
    return turns * vector


def _length(tiles: Tiles) -> sp.Expr:
    """The number of keys: the right hand side of the condition that a place is one."""
    return tiles.inside.rhs
