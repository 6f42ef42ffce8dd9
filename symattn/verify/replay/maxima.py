"""The maxima that a tiled kernel subtracts: those of the tiles so far, and how far they lie below that of the row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import sympy as sp

from symattn.arithmetic import Arithmetic, uniform
from symattn.intake import Array
from symattn.program import Program, Statement, index, name_of, reads, size, tensor
from symattn.readings import numpy as values
from symattn.readings import rounding
from symattn.readings.products import align

if TYPE_CHECKING:
    from symattn.verify.replay.bounds import Replay


@dataclass(frozen=True)
class Shifts:
    """On the indices of a cast tensor: how far the maximum in use lies below that of the row.

    Parameters
    ----------
    drop
        ``m - m_a``, at least 0; 0 where there is nothing to round.
    height
        ``|m_a| - |m|``.
    error
        How far ``drop`` may be from the exact difference.
    rescalings
        How often a weight may be multiplied by a correction.
    """

    drop: Array
    height: Array
    error: Array
    rescalings: int


def running(scores: Array, tile: int | None, order: str) -> Array:
    """The maxima of the tiles so far, one per tile, in the places of the tiles; ``scores`` has the keys last.

    >>> running(np.array([[1.0, 0.0, 3.0, 2.0]]), 2, "forward"), running(np.array([[1.0, 0.0, 3.0, 2.0]]), 2, "reverse")
    (array([[1., 3.]]), array([[3., 3.]]))
    """
    keys = scores.shape[-1]
    starts = np.arange(0, keys, tile or keys)
    tops = np.maximum.reduceat(scores, starts, axis=-1)
    if order == "reverse":
        return np.maximum.accumulate(tops[..., ::-1], axis=-1)[..., ::-1]
    return np.maximum.accumulate(tops, axis=-1)


def shifts_of(replay: Replay, chain: tuple[Statement, ...], cast: Statement, a: Arithmetic, start: str) -> Shifts:
    """The shifts of a cast tensor relative to the row maximum that a chain of statements makes.

    Parameters
    ----------
    replay
        Whose values are used.
    chain
        The maximum over the keys first, then what is made of it.
    cast
        The statement of the cast tensor.
    a
        Tile, order and shift.
    start
        ``row``: the whole chain is applied to the maxima of the tiles; ``keys``: only its first statement.
    """
    own = replay.exact()
    root, last = chain[0], chain[-1]
    [keys] = root.over
    row = own[last.name]
    scores = scores_of(replay, root)
    tile = a.tile if a.shift == "running" else None
    tops = running(scores, tile, a.order or "forward")
    if len(chain) > 1 and start == "row":
        tops = _through(replay, chain, tops)
    lengths = np.arange(scores.shape[-1]) // (tile or scores.shape[-1])
    used = tops[..., lengths]
    axes = (*root.indices, keys)
    sizes = dict(zip(axes, used.shape, strict=True))
    top = align(row.value, last.indices, axes, sizes)
    with np.errstate(invalid="ignore"):
        drop = np.where(np.isfinite(used) & np.isfinite(top), top - used, 0.0)
        height = np.where(np.isfinite(used) & np.isfinite(top), np.abs(used) - np.abs(top), 0.0)
        error = np.where(np.isfinite(row.value), 2 * (row.own + row.bound) + 2.0**-50 * np.abs(row.value), 0.0)
        error = align(error, last.indices, axes, sizes) + 2.0**-48 * (drop + np.abs(height))
    drop, height, error = (align(np.broadcast_to(x, used.shape), axes, cast.indices, sizes) for x in (drop, height, error))
    return Shifts(drop, height, error, tops.shape[-1] - 1 + (len(chain) - 1))


def scores_of(replay: Replay, root: Statement) -> Array:
    """What the maximum over the keys is taken of, -inf where it is not, the keys last."""
    kept = replay.kept
    if ("scores", root.name) not in kept:
        target, mark = f"{root.name}_of", f"{root.name}_at"
        axes = (*root.indices, *root.over)
        more = (
            Statement(tensor(target, *axes), root.expr, where=root.where),
            Statement(tensor(mark, *axes), sp.Integer(1), where=root.where),
        )
        program = replay.program.with_statements((*replay.program.statements, *more), (target, mark)).live()
        given = {n: replay.inputs[n] for n in program.inputs}
        found = rounding.evaluate(program, given, uniform("own", "float64"), sizes=replay.sizes)
        shape = np.broadcast_shapes(found[target].value.shape, found[mark].value.shape)
        kept["scores", root.name] = np.where(np.broadcast_to(found[mark].value, shape) == 1, found[target].value, -np.inf)
    return kept["scores", root.name]


def _through(replay: Replay, chain: tuple[Statement, ...], tops: Array) -> Array:
    """The statements after the maximum over the keys, applied to the maxima of the tiles."""
    t, count = index("tile_"), size("tiles_")
    names = {s.name for s in chain}
    lifted = []
    for s in chain[1:]:
        changes = {
            x: tensor(name_of(x), *x.indices, t) for x in reads(s.expr) if name_of(x) in names and isinstance(x, sp.Indexed)
        }
        lifted.append(Statement(tensor(s.name, *s.indices, t), s.expr.xreplace(changes), where=s.where))
    shapes = {n: x for n, x in replay.program.shapes.items() if n not in names}
    program = Program(tuple(lifted), {**replay.program.dims, t: count}, (chain[-1].name,), shapes)
    own = replay.exact()
    given = {n: tops if n == chain[0].name else replay.inputs.get(n, own[n].value) for n in program.inputs}
    sizes = {**replay.sizes, "tiles_": tops.shape[-1]}
    return np.asarray(values.evaluate(program, given, sizes=sizes, dtype="float64")[chain[-1].name])
