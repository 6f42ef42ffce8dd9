"""The chunked evaluation of the linear family: weights of pairs inside a chunk, and a state that goes from chunk to chunk.

The delta rule solves for the values that it writes inside each chunk, once for the values and once for what the entering state
says of them (the WY form): ``v' = v_w - k_w state``, both by substitution.
"""

from __future__ import annotations

import sympy as sp

from symattn.building import Builder
from symattn.forms.states import initial, read_out, solved, weights
from symattn.indexed import Tensor, size
from symattn.program import Scan
from symattn.stages.decays import Decays, chunk_length, chunk_of, of_keys


def chunked(b: Builder) -> None:
    """Inside the chunk by pairs, from earlier chunks by the state."""
    at = b.at
    i, j, c, e = at["i"], at["j"], at["c"], at["e"]
    x = at.sized("x", sp.ceiling(size("n") / chunk_length(b)))
    same = sp.Eq(chunk_of(b, j), chunk_of(b, i))
    b.where = sp.And(b.where, same)
    decays = Decays(b, chunked=True)
    gamma, start = decays.between(), decays.from_start()
    value = of_keys(b, b.value, j, e)
    written, known = value, None
    if b.d.delta:
        written = solved(b, gamma, decays, same, "Vw", of_keys(b, b.value, i, e)).xreplace({i: j})
        key = of_keys(b, b.key, i, c) if start == 1 else b.add(of_keys(b, "Kd", i, c), of_keys(b, b.key, i, c) * start)
        known = solved(b, gamma, decays, same, "Kw", key).xreplace({i: j})
    entering = states(b, decays, written, known).xreplace({x: chunk_of(b, i)})
    if known is not None:
        said = b.add(of_keys(b, "Vp", i, e), known.xreplace({j: i}) * entering, c)
        value = b.add(of_keys(b, "Vn", i, e), written.xreplace({j: i}) - said).xreplace({i: j})
    total = None
    if b.d.normalized:
        before = sums(b, decays).xreplace({x: chunk_of(b, i)})
        total = b.add(at.query("lr0"), at.query(b.query, c) * start * before, c)
    p = weights(b, gamma, decays, total)
    inside = b.masked(at.query("Oin", e), p * value, j)
    outside = read_out(b, "Oout", at.query(b.query, c) * start * entering, c)
    b.add(at.query("O", e), inside + (outside if total is None else outside / at.query("lr")))


def states(b: Builder, decays: Decays, written: Tensor, known: Tensor | None) -> Tensor:
    """The state that enters each chunk, from what its steps write, ``written - known * state``."""
    at = b.at
    j, c, e, x = at["j"], at["c"], at["e"], at["x"]
    here = sp.Eq(chunk_of(b, j), x)
    key, end, whole = of_keys(b, b.key, j, c), decays.to_end(), decays.of_chunk()
    added = b.add(of_keys(b, "Sa", x, c, e), key * end * written, j, where=here)
    if known is not None:
        other = at.sized("w", size("d"))
        # what the entering state says of the chunk's values is taken off again
        off = b.add(of_keys(b, "Sk", x, c, other), key * end * known.xreplace({c: other}), j, where=here)
    scan = Scan(x)
    before: Tensor = of_keys(b, "St", x - 1, c, e)
    if b.d.initial_state:
        first = initial(b, x)
        before = b.add(of_keys(b, "Sb", x, c, e), before + first, scan=scan, aux=True)
    new = whole * before + added
    if known is not None:
        new -= b.add(of_keys(b, "Sp", x, c, e), off * before.xreplace({c: other}), other, scan=scan)
    b.add(of_keys(b, "St", x, c, e), new, scan=scan)
    return before


def sums(b: Builder, decays: Decays) -> Tensor:
    """The decayed sum of the keys that enters each chunk, for the normaliser."""
    j, c, x = b.at["j"], b.at["c"], b.at["x"]
    added = b.add(of_keys(b, "za", x, c), of_keys(b, b.key, j, c) * decays.to_end(), j, where=sp.Eq(chunk_of(b, j), x))
    before = of_keys(b, "z", x - 1, c)
    b.add(of_keys(b, "z", x, c), decays.of_chunk() * before + added, scan=Scan(x, number=1))
    return before
