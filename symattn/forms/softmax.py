"""Attention as weights of a normalizer over the keys: the form that all fields of a definition speak of."""

from __future__ import annotations

from symattn.building import Builder
from symattn.forms import algorithms
from symattn.forms.form import Form
from symattn.indexed import name_of
from symattn.stages.normalizers import log_sum_exp, weights
from symattn.stages.scores import scores
from symattn.stages.sources import sources
from symattn.stages.values import dropped, projected, weighted_sum


def build(b: Builder) -> tuple[str, ...]:
    """Sources, scores, weights, values: the outputs ``O`` (``Y`` after W_O) and, where asked, ``L``."""
    sources(b)
    if b.d.algorithm in (None, "paged"):
        out = weighted_sum(b, dropped(b, weights(b, scores(b))))
    else:
        out = algorithms.attended(b)
    log_sum_exp(b)
    out = projected(b, out)
    if b.d.algorithm == "paged":
        b.statements[:] = algorithms.paged(b, b.statements)
    return (name_of(out), "L") if b.d.lse else (name_of(out),)


ROWS = (Form("softmax", build),)
