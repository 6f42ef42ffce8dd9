"""Multi-head latent attention: what is kept of a token is one latent for all heads and one key with its position.

    k = [W_UK c ; k_rope],  q = [q ; q_rope],  v = W_UV c,  scale 1/sqrt(d + d_rope)

``mla`` makes keys and values of every head (expanded); ``mla-absorbed`` takes the queries to the latent instead and the weighted
latent to the values, so that the cache is all that is ever read. That both are the same for all sizes is proved in
:mod:`symattn.theorems.absorption`.
"""

from __future__ import annotations

import sympy as sp

from symattn.building import Builder, Parameters
from symattn.forms.form import Form
from symattn.forms.layers import HOW_MUCH, WHICH_KEYS
from symattn.forms.renaming import called
from symattn.indexed import Tensor, name_of, size, tensor
from symattn.letters import Letters
from symattn.stages.normalizers import log_sum_exp, weights
from symattn.stages.rotation import rotated
from symattn.stages.scores import scores
from symattn.stages.values import dropped, projected, weighted_sum

ROTATION = ("rope", "rope_frequencies", "rope_amplitude", "rope_offset", "params")


def expanded(b: Builder) -> tuple[str, ...]:
    """Keys and values of every head are made of the latent."""
    at, c, e = b.at, b.at["c"], b.at["e"]
    y = _start(b)
    b.add(at.key("K", c), latent(b, y) * tensor("WUK", *at.key_heads, y, c), y)
    b.add(at.key("V", e), latent(b, y) * tensor("WUV", *at.key_heads, y, e), y)
    _similarity(b, at.query("Q", c) * at.key("K", c), c)
    return _finished(b, weighted_sum(b, dropped(b, weights(b, scores(b)))))


def absorbed(b: Builder) -> tuple[str, ...]:
    """The up-projections are taken to the queries and to the outputs: every head reads the latent itself."""
    at, c, e = b.at, b.at["c"], b.at["e"]
    y = _start(b)
    through = b.add(at.query("Qa", y), at.query("Q", c) * tensor("WUK", *at.query_heads, y, c), c)
    _similarity(b, through * latent(b, y), y)
    p = dropped(b, weights(b, scores(b)))
    mixed = b.masked(at.query("Olat", y), p * latent(b, y), at["j"])
    return _finished(b, b.add(at.query("O", e), mixed * tensor("WUV", *at.query_heads, y, e), y))


def latent(b: Builder, y: sp.Symbol) -> Tensor:
    """What is kept of key j."""
    return tensor("Lat", *b.at.batch_axes, b.at["j"], y)


def _start(b: Builder) -> sp.Symbol:
    """From X, where it starts there, to latents, queries and the key with its position; the index of the latent's channels."""
    at = b.at
    y, r = at.sized("y", size("dc")), at.sized("r", size("dr"))
    if b.d.start != "qkv":
        i, j, a, x = at["i"], at["j"], at["a"], at.sized("x", size("dcq"))
        of_key, of_query = tensor("X", *at.batch_axes, j, a), tensor("X", *at.batch_axes, i, a)
        b.add(latent(b, y), of_key * tensor("WDKV", a, y), a)
        b.add(tensor("Kr", *at.batch_axes, j, r), of_key * tensor("WKR", a, r), a)
        low = b.add(tensor("LatQ", *at.batch_axes, i, x), of_query * tensor("WDQ", a, x), a)
        b.add(at.query("Q", at["c"]), low * tensor("WUQ", *at.query_heads, x, at["c"]), x)
        b.add(at.query("Qr", r), low * tensor("WQR", *at.query_heads, x, r), x)
    return y


def _similarity(b: Builder, product: sp.Expr, over: sp.Symbol) -> None:
    """The raw scores: the part through the latent and the part with the positions."""
    at, r = b.at, b.at["r"]
    query, key = _rotated(b)
    first = b.masked(at.score("Rlat"), product, over, aux=True)
    second = b.masked(at.score("Rrope"), at.query(query, r) * tensor(key, *at.batch_axes, at["j"], r), r, aux=True)
    b.raw = b.masked(at.score("R"), first + second)
    b.width = size("d") + size("dr")


def _rotated(b: Builder) -> tuple[str, str]:
    """The names of the parts with positions, rotated where the definition says how, else as they are given."""
    if b.d.rope is None:
        return "Qr", "Kr"
    from symattn.definition import Definition

    d = Definition.of(heads=b.d.head_counts[0], kv_heads=1, **{name: getattr(b.d, name) for name in ROTATION})
    at = Letters(*d.head_counts, b.at.batch, b.at.one_source, False, b.at.taken)
    inner = Builder(d, at, Parameters(d, at), sp.true)
    rotated(inner, ("Q", "K"))
    turned = {"Q", "K"} | {s.name for s in inner.statements if s.name[0] in "QK"}
    symbols = {at["c"]: b.at["r"], size("d"): size("dr")}
    b.statements += [called(s, {n: n + "r" for n in turned}, symbols) for s in inner.statements]
    return inner.query + "r", inner.key + "r"


def _finished(b: Builder, out: Tensor) -> tuple[str, ...]:
    log_sum_exp(b)
    out = projected(b, out)
    return (name_of(out), "L") if b.d.lse else (name_of(out),)


SOURCES = ("Q", "Qr", "Lat", "Kr", "WUK", "WUV")
FROM_X = ("X", "WDQ", "WUQ", "WQR", "WDKV", "WKR", "WUK", "WUV")
USES = (WHICH_KEYS | HOW_MUCH | {*ROTATION, "start", "output_projection", "lse_base"}) - {"grouping"}

ROWS = (
    Form("mla", expanded, SOURCES, FROM_X, uses=USES),
    Form("mla-absorbed", absorbed, SOURCES, FROM_X, uses=USES - {"empty_row"}),
)
"""The rows of this family."""
