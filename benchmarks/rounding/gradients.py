"""The backward of tiled kernels with every rounding explicit, from saved O and LSE, and the faults planted in it.

Query heads of a group lie one behind the other in the rows: Q, O, dO (2, 2 r, d), LSE (2, 2 r), K and V (2, n, d).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from benchmarks.rounding.kernels import finite, matmul
from benchmarks.rounding.laws import F32, GROUPS, Problem, cast


@dataclass(frozen=True)
class Backward:
    """How a backward computes; ``faulty`` changes values by the name of the place, see :func:`gradients`.

    Places: ``scale``, ``keep``, ``k`` (the keys that scores are formed from), ``lse``, ``D`` (from dO and O), ``scores``, ``dP``,
    ``dS`` (from dS, rounded P and dP - D), ``dQ`` (from the sum, dQ so far, a tile's part, and if it is the last of several),
    ``rows`` (that dK and dV are summed over), ``cap`` (the derivative of the softcap), ``ends`` (from dQ, dK, dV and the scale).
    """

    io: str
    low: str
    tile: int = 64
    order: str = "blas"
    faulty: dict[str, Callable[..., Any]] = field(default_factory=dict)


def packed(x):
    """(4, r, ...) as (2, 2 r, ...)."""
    return x.reshape(GROUPS, -1, *x.shape[2:])


def row_sum(do, o):
    """D = rowsum(dO O) in float32."""
    return (do * o).sum(-1, keepdims=True, dtype=F32)


def gradients(problem: Problem, out, lse, how: Backward):
    """dQ in the axes of Q, dK and dV in those of K."""
    at = lambda place, x, *more: how.faulty[place](x, *more) if place in how.faulty else x
    a = F32(at("scale", problem.scale))
    q, do, o = (packed(x) for x in (problem.arrays["Q"], problem.arrays["dO"], out))
    k, v = problem.arrays["K"], problem.arrays["V"]
    keep = np.tile(at("keep", problem.keep()), (q.shape[1] // problem.rows, 1))
    saved = at("lse", finite(packed(lse)))[..., None]
    d = how.faulty["D"](do, o) if "D" in how.faulty else row_sum(do, o)
    dq, dk, dv = np.zeros_like(q), np.zeros_like(k), np.zeros_like(v)
    rows, cap, seen = at("rows", slice(None)), F32(problem.softcap), at("k", k)
    for start in range(0, k.shape[1], how.tile):
        t = slice(start, start + how.tile)
        s = at("scores", matmul(q, seen[:, t].swapaxes(-1, -2), how.order) * (F32(1) if "k" in how.faulty else a))
        s = cap * np.tanh(s / cap) if cap else s
        with np.errstate(over="ignore", under="ignore"):
            p = np.where(keep[:, t], np.exp(s - saved), F32(0))
        dp = at("dP", matmul(do, v[:, t].swapaxes(-1, -2), how.order))
        low_p = cast(p, how.low)
        ds = at("dS", p * (dp - d), low_p, dp - d)
        ds = ds * at("cap", F32(1) - (s / cap) ** 2) if cap else ds
        low = cast(ds, how.low)
        part = matmul(low, k[:, t], how.order)
        dq = at("dQ", dq + part, dq, part, start + how.tile >= k.shape[1] and start > 0)
        dk[:, t] = matmul(low[:, rows].swapaxes(-1, -2), q[:, rows], how.order)
        dv[:, t] = matmul(low_p[:, rows].swapaxes(-1, -2), do[:, rows], how.order)
    found = at("ends", (dq * a, dk * a, dv), a)
    return [cast(found[0], how.io).reshape(problem.arrays["Q"].shape), cast(found[1], how.io), cast(found[2], how.io)]


def low_row_sum(do, o):
    """D summed column by column in bfloat16."""
    total = np.zeros((*do.shape[:-1], 1), F32)
    for c in range(do.shape[-1]):
        total = cast(total + cast(do[..., c : c + 1] * o[..., c : c + 1], "bfloat16"), "bfloat16")
    return total


def stored(place, fmt):
    return lambda problem: {place: lambda x, *_: cast(x, fmt)}


def lost_key(problem):
    return {"keep": lambda keep: keep & (np.arange(problem.keys) != problem.keys - 1)}


def one_more_key(problem):
    """Each row sees the key behind its last."""
    i = np.arange(problem.rows)[:, None] + problem.keys - problem.rows
    return {"keep": lambda keep: keep | (np.arange(problem.keys) == i + 1)}


@dataclass(frozen=True)
class Fault:
    """A kind of the backward: what it changes for a problem, and on which masks it is tried."""

    name: str
    faulty: Callable[[Problem], dict[str, Callable[..., Any]]]
    masks: tuple[str, ...] = ("full", "causal")


FAULTS: tuple[Fault, ...] = (
    Fault("D summed in bfloat16", lambda problem: {"D": low_row_sum}),
    Fault("D stored in bfloat16", lambda problem: {"D": lambda do, o: cast(row_sum(do, o), "bfloat16")}),
    Fault("D left out", lambda problem: {"D": lambda do, o: 0 * row_sum(do, o)}),
    Fault("D without its last column", lambda problem: {"D": lambda do, o: row_sum(do[..., :-1], o[..., :-1])}),
    Fault("scale 1 % off", lambda problem: {"scale": lambda a: a * 1.01}),
    Fault("scale 0.1 % off", lambda problem: {"scale": lambda a: a * 1.001}),
    Fault("scores in bfloat16", stored("scores", "bfloat16")),
    Fault("scores in float16", stored("scores", "float16")),
    Fault("dP in bfloat16", stored("dP", "bfloat16")),
    Fault("dS from rounded P", lambda problem: {"dS": lambda ds, low_p, rest: low_p * rest}),
    Fault(
        "dQ in bfloat16 between tiles",
        lambda problem: {"dQ": lambda x, dq, part, last: cast(dq + cast(part, "bfloat16"), "bfloat16")},
    ),
    Fault("last tile not in dQ", lambda problem: {"dQ": lambda x, dq, part, last: dq if last else x}),
    Fault("last key lost", lost_key),
    Fault("mask one key further", one_more_key, ("causal",)),
    Fault("no mask", lambda problem: {"keep": lambda keep: np.ones_like(keep)}, ("causal",)),
    Fault("dQ without the scale", lambda problem: {"ends": lambda g, a: (g[0] / a, g[1], g[2])}),
    Fault("dK scaled twice", lambda problem: {"ends": lambda g, a: (g[0], g[1] * a, g[2])}),
    Fault("a head of the group not in dK and dV", lambda problem: {"rows": lambda _: slice(0, problem.rows)}),
    Fault("dV 1 % off", lambda problem: {"ends": lambda g, a: (g[0], g[1], g[2] * F32(1.01))}),
    Fault("LSE in bfloat16", stored("lse", "bfloat16")),
    Fault("LSE in float16", stored("lse", "float16")),
    Fault("K scaled and rounded before", lambda problem: {"k": lambda k: cast(k * F32(problem.scale), problem.fmt)}),
    Fault("softcap's derivative left out", lambda problem: {"cap": lambda x: np.ones_like(x)}, ("softcap",)),
)
"""The 23 kinds."""
