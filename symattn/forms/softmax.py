"""Attention as weights of a normalizer over the keys: the form that all fields of a definition speak of."""

from __future__ import annotations

from symattn.building import Builder
from symattn.forms import algorithms
from symattn.forms.form import Form
from symattn.indexed import name_of
from symattn.stages.gates import gated, normed
from symattn.stages.maps import attention_map
from symattn.stages.normalizers import log_sum_exp
from symattn.stages.sources import sources
from symattn.stages.values import dropped, projected, weighted_sum
from symattn.stages.vocabulary import context_width, next_word


def build(b: Builder) -> tuple[str, ...]:
    """Sources, scores, weights, values: the outputs ``O`` (``Y`` after W_O) and, where asked, ``L`` and the next word."""
    context_width(b)
    sources(b)
    plain = b.d.algorithm in (None, "paged")
    out = weighted_sum(b, dropped(b, attention_map(b))) if plain else algorithms.attended(b)
    out = gated(b, normed(b, out))
    log_sum_exp(b)
    out = projected(b, out)
    further = next_word(b, out)
    if b.d.algorithm == "paged":
        b.statements[:] = algorithms.paged(b, b.statements)
    return (name_of(out), "L", *further) if b.d.lse else (name_of(out), *further)


ROWS = (Form("softmax", build),)
"""The row of this family."""
