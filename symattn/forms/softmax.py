"""Attention as weights of a normalizer over the keys: the form that all fields of a definition speak of."""

from __future__ import annotations

from symattn.building import Builder
from symattn.forms.form import Form
from symattn.indexed import name_of
from symattn.stages.normalizers import log_sum_exp, weights
from symattn.stages.scores import scores
from symattn.stages.sources import sources
from symattn.stages.values import dropped, projected, weighted_sum


def build(b: Builder) -> tuple[str, ...]:
    """Sources, scores, weights, values: the outputs ``O`` (``Y`` after W_O) and, where asked, ``L``."""
    sources(b)
    p = dropped(b, weights(b, scores(b)))
    out = weighted_sum(b, p)
    log_sum_exp(b)
    out = projected(b, out)
    return (name_of(out), "L") if b.d.lse else (name_of(out),)


ROWS = (Form("softmax", build),)
