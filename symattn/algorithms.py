"""The algorithm that a definition names: its forward and its gradient as kernels run them, tile of keys by tile.

The gradient recomputes the weights of a tile from the log-sum-exp of the whole row, whatever shards the row came in.
"""

from __future__ import annotations

from functools import lru_cache

from symattn.adjoint import adjoint
from symattn.definition import Definition
from symattn.errors import DefinitionError
from symattn.forms.algorithms import tiles_for
from symattn.indexed import index
from symattn.presentation import Presented, Step, present, recompute
from symattn.presentation.bytiles import by_tiles
from symattn.presentation.presented import PROVED
from symattn.program import Program

__all__ = ["BY_TILES", "EQUAL", "flash_list", "gradient_by_tiles", "plain"]

EQUAL = ("O", "O0", "Og", "L")
"""The tensors that an algorithm gives and a definition has, besides those that both make in the same words."""
BY_TILES = ("online", "flash", "split", "ring")
"""The algorithms that have a gradient by tiles."""


def plain(d: Definition) -> Definition:
    """The definition without its algorithm, the log-sum-exp among its outputs: what the algorithm computes.

    >>> plain(Definition(causal="top-left", algorithm="flash", block=2))
    Definition(causal='top-left')
    """
    return d.replace(algorithm=None, block=None, lse=True)


@lru_cache(maxsize=64)
def gradient_by_tiles(d: Definition, batch: bool = False) -> Presented:
    """Forward and gradient of a definition as its algorithm runs them.

    Parameters
    ----------
    d
        A definition with an algorithm that goes by tiles of keys.
    batch
        Whether tensors have a batch axis.

    Returns
    -------
    Presented
        The outputs of its program are those of the definition, then the gradients: ``P_b = exp(Z_b - L)`` of a tile,
        ``D = sum_e dO O``, ``dS``, the share of the tile in ``dQ``, and ``dK``, ``dV`` of its keys. The steps say how each
        rewriting is known to be right.

    Raises
    ------
    DefinitionError
        When the definition has no such algorithm.

    Notes
    -----
    Source: Dao et al., *FlashAttention*, 2022, algorithm 4; Dao, *FlashAttention-2*, 2023, algorithm 2; for shards Liu et al.,
    *Ring Attention*, 2023.

    >>> [s.name for s in gradient_by_tiles(Definition(algorithm="flash", lse=False)).derived][:5]
    ['R_b', 'S_b', 'P_b', 'dP', 'D']
    """
    if d.algorithm not in BY_TILES:
        raise DefinitionError(f"algorithm is one of {', '.join(BY_TILES)} for a gradient by tiles, got {d.algorithm!r}")
    forward = d.replace(lse=True).program(batch)
    whole, steps = flash_list(d, batch)
    tiles = tiles_for(d, batch)
    outputs = d.program(batch).outputs
    made = by_tiles(forward, whole, outputs, index("i"), tiles, walk=d.algorithm != "split", kept=EQUAL)
    own = tuple(s.name for s in made if s.name not in forward)
    last = Step("tiles", PROVED, own, "the places of all tiles hit every key once, and a running sum is the sum of its terms")
    return Presented(made, (*steps, last), sum(s.name in forward for s in made))


@lru_cache(maxsize=64)
def flash_list(d: Definition, batch: bool = False) -> tuple[Program, tuple[Step, ...]]:
    """Forward and gradient of a definition over whole rows of keys, weights recomputed from the log-sum-exp; and the steps.

    The algorithm is left aside: tiles are another matter.
    """
    reference = d.replace(algorithm=None, block=None).program(batch)
    presented = present(reference, adjoint(reference))
    steps: list[Step] = list(presented.steps)
    return recompute(reference, presented, steps=steps), tuple(steps)
