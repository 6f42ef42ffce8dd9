"""Linear attention and its kin: a state of key channels by value channels, that is written to at every step and read by queries.

With ``a`` the decay, ``k, v, q`` a key, value and query (after the feature map)::

    state[t] = a[t] * state[t-1] + k[t] v[t]^T        o[t] = q[t] state[t]

The delta rule writes ``beta[t] * (v[t] - k[t] (a[t] * state[t-1]))`` in place of ``v[t]``: what the state does not yet say.
Decay comes before both, and a query reads after the step has been written. Three evaluations of the same outputs:
``"parallel"`` (weights of all pairs), ``"recurrent"`` (the state, step by step), ``"chunked"`` (:mod:`symattn.forms.chunked`).
"""

from __future__ import annotations

import sympy as sp

from symattn.building import Builder
from symattn.forms.chunked import chunked
from symattn.forms.form import Form
from symattn.forms.states import initial, read_out, solved, weights
from symattn.indexed import name_of, size
from symattn.program import Scan
from symattn.stages.decays import Decays, of_keys
from symattn.stages.features import featured
from symattn.stages.sources import sources
from symattn.stages.values import projected


def build(b: Builder) -> tuple[str, ...]:
    """Sources, features, and one of the evaluations: the output ``O`` (``Y`` after W_O)."""
    if b.d.causal is not None:
        b.at.sized("j", size("n"))
    sources(b)
    featured(b)
    evaluation = {"parallel": parallel, "recurrent": recurrent if b.d.causal else summed, "chunked": chunked}
    evaluation[b.d.evaluation](b)
    out = projected(b, b.at.query("O", b.at["e"]))
    return (name_of(out),)


def parallel(b: Builder) -> None:
    """Weights of all pairs (i, j), and the sum of the values by them."""
    at, decays = b.at, Decays(b)
    i, j, c, e = at["i"], at["j"], at["c"], at["e"]
    gamma = decays.between()
    value = of_keys(b, b.value, j, e)
    start = decays.from_start() if b.d.initial_state else sp.S.One
    if b.d.delta:
        before = None
        if b.d.initial_state:
            before = b.add(of_keys(b, "V0", i, e), start * of_keys(b, b.key, i, c) * of_keys(b, "St0", c, e), c)
        value = solved(b, gamma, decays, sp.true, "Vn", of_keys(b, b.value, i, e), before).xreplace({i: j})
    p = weights(b, gamma, decays)
    parts = [b.masked(at.query("Oin" if b.d.initial_state else "O", e), p * value, j)]
    if b.d.initial_state:
        read = at.query(b.query, c) * start * of_keys(b, "St0", c, e)
        parts.append(read_out(b, "Oout", read, c))
        b.add(at.query("O", e), sp.Add(*parts))


def summed(b: Builder) -> None:
    """Without a causal mask: the state that all keys write, read by every query."""
    at = b.at
    j, c, e = at["j"], at["c"], at["e"]
    state = b.add(of_keys(b, "St", c, e), of_keys(b, b.key, j, c) * of_keys(b, b.value, j, e), j)
    if b.d.normalized:
        b.add(of_keys(b, "z", c), of_keys(b, b.key, j, c), j)
    read_out(b, "O", at.query(b.query, c) * state, c, normaliser=of_keys(b, "z", c))


def recurrent(b: Builder) -> None:
    """The state at every step: decayed, then written to, then read."""
    d, at, decays = b.d, b.at, Decays(b)
    i, c, e = at["i"], at["c"], at["e"]
    scan = Scan(i)
    key, value = of_keys(b, b.key, i, c), of_keys(b, b.value, i, e)
    before = of_keys(b, "St", i - 1, c, e)
    if d.initial_state:
        first = initial(b, i)
        before = b.add(of_keys(b, "Sb", i, c, e), before + first, scan=scan, aux=True)
    faded = decays.step(i) * before
    if d.delta:
        said = b.add(of_keys(b, "Vp", i, e), key * faded, c, scan=scan)
        value = b.add(of_keys(b, "Vn", i, e), of_keys(b, "Bt", i) * (value - said), scan=scan)
    state = b.add(of_keys(b, "St", i, c, e), faded + key * value, scan=scan)
    if d.normalized:
        b.add(of_keys(b, "z", i, c), decays.step(i) * of_keys(b, "z", i - 1, c) + key, scan=Scan(i, number=1))
    read_out(b, "O", at.query(b.query, c) * state, c, normaliser=of_keys(b, "z", i, c))


ROWS = (
    Form(
        "linear",
        build,
        uses=frozenset(
            {"feature", "normalized", "decay", "decay_space", "delta", "evaluation", "block", "initial_state", "causal", "scale"}
            | {"start", "output_projection", "projection_bias", "grouping", "lse"}
        ),
        implies={"lse": False},
    ),
)
"""The row of this family."""
