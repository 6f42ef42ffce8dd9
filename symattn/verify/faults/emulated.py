"""Faults of range and tile in the forward pass: numbers that stand in for -infinity, maxima, overflow, rescaling.

Exact algebra does not tell them from a correct kernel: they are run in the range of the kernel's format.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from symattn import formats
from symattn.intake import Array
from symattn.verify.faults.emulating import in_forward, tiled, untiled
from symattn.verify.faults.fault import Fault, Situation
from symattn.verify.kernels.call import Call

Changes = list[tuple[str, dict[str, object]]]
LN2 = 0.6931471805599453
LAGS = (8 * LN2, 4 * LN2)
"""By how much the maximum may lag where it is rescaled on a threshold: 8 and 4 in base 2."""
FINITE = (-1e4, -5e4, -1e9, -1e5, -30000.0, -65504.0)
"""Numbers that stand in for -infinity."""


def _masks(s: Situation) -> bool:
    return not bool(s.reference.call.keep.all())


def _lowest(s: Situation) -> float:
    return -float(formats.get(s.arithmetic.compute).max)


def _finite_mask(s: Situation) -> Changes:
    if not _masks(s):
        return []
    found: Changes = [(f"{x:g} instead of the score", {"masked": x}) for x in (*FINITE, _lowest(s))]
    found += [(f"{x:g} added to the score", {"masked": x, "adds": True}) for x in (*FINITE, _lowest(s))]
    keep, numbers = s.reference.call.keep, (*FINITE, _lowest(s))
    alone = [(word, pairs) for word, pairs in _without_one(s) if (pairs & ~keep).any() and not pairs.all()]
    return found + [(f"{x:g} beyond {word} alone", {"masked": x, "soft": pairs}) for word, pairs in alone for x in numbers]


def _without_one(s: Situation) -> Iterator[tuple[str, Array]]:
    """The pairs that may attend but for one of several conditions; where one is left out, the others measure as before."""
    d = s.definition
    diagonal = d.window_alignment or d.causal if d.window is not None else None
    ways: dict[str, dict[str, Any]] = {
        "the window": {"window": None, "window_alignment": None},
        "the causal mask": {"causal": None, "prefix": None, "window_alignment": diagonal},
        "the given mask": {"attn_mask": None},
        "the document": {"document": False},
    }
    for word, fields in ways.items():
        for a in s.changed(word, **fields):
            if a.definition is not None:
                yield word, Call(a.definition, s.fields).keep


def _sentinel(s: Situation) -> Changes:
    return [way for x in FINITE for way in _ways(f"{x:g}", masked=x, start=x)]


def _empty(s: Situation) -> Changes:
    if not s.reference.call.has_empty_row or s.definition.sink:
        return []
    ways: Changes = [
        ("NaN", {"empty": "nan"}),
        ("mean", {"empty": "uniform"}),
        ("NaN, the LSE too", {"empty": "nan", "bare": True}),
    ]
    return [(label, change) for label, change in ways if change["empty"] != s.definition.empty_row]


def _multiplies(s: Situation) -> Changes:
    finite = all(np.isfinite(x.astype(np.float64)).all() for x in (s.reference.call.key, s.reference.call.value))
    return [] if finite and not _masks(s) else [("", {"multiplies": True})]


def _ways(label: str, **changes: object) -> Changes:
    """With 0/0 where all weights underflow, and with the sum guarded."""
    guarded = f"{label}, a sum of 0 guarded".removeprefix(", ")
    return [(label, changes), (guarded, {**changes, "guarded": True})]


def _in_format_of(s: Situation) -> Changes:
    """A row in which all products overflow to -infinity has the sum 0, or is NaN as of ``-inf + inf``."""
    raw: dict[str, object] = {"rounded": {"raw": "float16"}}
    return [("", raw), ("a row of -infinity is NaN", {**raw, "bare": True})]


RANGE = (
    Fault(
        "F27",
        "finite number in place of -infinity in the mask",
        "range",
        wrong="s + mask or mask, mask = -1e4, -1e9 ...",
        right="-infinity: a row without keys gives 0 and LSE -infinity",
        threads=("transformers#17306",),
        look="what a masked score is filled with, and what becomes of a row in which all are",
        shows="rows without keys; scores below the number",
        blind="no row without keys (then exactly 0)",
        rewrite=in_forward(untiled(_finite_mask)),
    ),
    Fault(
        "F32",
        "row without keys is NaN, or the mean of the values",
        "range",
        wrong="0/0, or sum V/m",
        right="0",
        threads=("iree#24175", "mlx#2395"),
        look="the division by a sum that is 0",
        shows="rows without keys",
        blind="no row without keys",
        rewrite=in_forward(untiled(_empty)),
    ),
    Fault(
        "F31",
        "masked keys or values are multiplied by 0 instead of left out",
        "range",
        wrong="0*NaN = NaN",
        right="0",
        threads=("pytorch#101967",),
        look="whether masked keys and values are loaded",
        shows="NaN or infinity in masked keys or values: suspect alone, since most kernels do it",
        blind="finite values",
        rewrite=in_forward(untiled(_multiplies)),
    ),
    Fault(
        "F25",
        "sink outside the maximum",
        "range",
        wrong="m = max s; exp(sink - m) overflows",
        right="m = max(s, sink)",
        threads=("flash-attention#2752",),
        look="what the sink's exponential is measured from",
        shows="sink - m > 88.7 where sums are in float32",
        blind="sink <= m; float64",
        rewrite=in_forward(untiled(lambda s: [("", {"sink_outside": True})] if s.definition.sink else [])),
    ),
    Fault(
        "F34",
        "padded keys of score 0 enter the row maximum",
        "range",
        wrong="m = max(s, 0)",
        right="m = max s",
        threads=("pytorch#193893", "cudnn-frontend#743"),
        look="whether the maximum is taken before the tail is masked",
        shows="all scores below -104 in float32: every weight underflows",
        blind="a score >= 0; exact arithmetic",
        rewrite=in_forward(untiled(lambda s: _ways("", shift="not below 0"))),
    ),
    Fault(
        "F46",
        "no maximum is taken off",
        "range",
        wrong="exp(s)/sum exp(s)",
        right="exp(s - m)/sum exp(s - m)",
        threads=("executorch#18407",),
        look="the argument of exp",
        shows="s > 88.7 in float32, 11.1 in float16; all s < -104",
        blind="small scores",
        rewrite=in_forward(untiled(lambda s: _ways("", shift="nothing"))),
    ),
    Fault(
        "F45",
        "finite number in place of -infinity where the maximum starts",
        "range",
        wrong="m starts from -5e4",
        right="m starts from -infinity",
        threads=("flashinfer#4267", "flashinfer#4452"),
        look="the initial value of the running maximum",
        shows="scores below the number: output 0",
        blind="|s| small",
        rewrite=in_forward(untiled(_sentinel)),
    ),
    Fault(
        "F47",
        "q.k in float16 before it is scaled",
        "range",
        wrong="float16(q.k)*scale",
        right="(scale*q).k, or a product in float32",
        threads=("ultralytics#24990",),
        look="the format of the product, and where the scale is applied",
        shows="|q.k| > 65504: d = 64, q = k = 32",
        blind="small q and k",
        rewrite=in_forward(untiled(_in_format_of)),
    ),
)
TILE = (
    Fault(
        "F42",
        "inverse factor of rescaling",
        "mathematics",
        wrong="O*exp(m_new - m_old)",
        right="O*exp(m_old - m_new)",
        threads=("flash-attention#991",),
        look="the sign of the exponent when the maximum rises",
        shows="a maximum that rises after the first tile",
        blind="maximum in the first tile",
        rewrite=in_forward(
            tiled(
                lambda s: [("of the output", {"grown_output": -1}), ("of output and sum", {"grown_output": -1, "grown_sum": -1})]
            )
        ),
    ),
    Fault(
        "F57",
        "output is not rescaled when the maximum rises",
        "mathematics",
        wrong="O + P V",
        right="O*exp(m_old - m_new) + P V",
        look="the accumulator between two tiles",
        shows="a maximum that rises after the first tile",
        blind="maximum in the first tile",
        rewrite=in_forward(tiled(lambda s: [("", {"grown_output": 0})])),
    ),
    Fault(
        "F58",
        "sum is not rescaled when the maximum rises",
        "mathematics",
        wrong="l + sum P",
        right="l*exp(m_old - m_new) + sum P",
        look="the running sum between two tiles",
        shows="a maximum that rises after the first tile",
        blind="maximum in the first tile",
        rewrite=in_forward(
            tiled(lambda s: [("of the sum", {"grown_sum": 0}), ("of output and sum", {"grown_output": 0, "grown_sum": 0})])
        ),
    ),
    Fault(
        "F43",
        "maximum is 0 after a tile without keys",
        "range",
        wrong="m = 0 stays where later s < 0",
        right="m = max s",
        threads=("flash-attention#2082",),
        look="what replaces a maximum of -infinity, and whether that is kept",
        shows="a first tile without keys, then s < -104",
        blind="later s > 0; exact arithmetic",
        rewrite=in_forward(tiled(lambda s: _ways("", stuck=True))),
    ),
    Fault(
        "F55",
        "weights measured from a maximum that was given up",
        "mathematics",
        wrong="exp(s - m_new) where m_old is kept",
        right="exp(s - m_old)",
        threads=("rocm-libraries#6498", "MSLK#242"),
        look="the branch that skips the rescaling",
        shows="a conditional rescale, and a maximum that rises by less than its threshold",
        blind="maximum in the first tile; all scores equal",
        rewrite=in_forward(tiled(lambda s: [(f"threshold {x:.3g}", {"lag": x, "ahead": True}) for x in LAGS])),
    ),
    Fault(
        "F56",
        "weights of 8 bits saturate, their sum does not",
        "range",
        wrong="min(2^8 P, 448)/sum P",
        right="threshold of the conditional rescale at most log2(448) - 8 = 0.807",
        threads=("flash-attention#2577", "flash-attention#2713"),
        look="the scale of P against the threshold of the conditional rescale",
        shows="float8 P under a lagging maximum: LSE right, output wrong",
        blind="flat rows",
        rewrite=in_forward(tiled(lambda s: [(f"threshold {x:.3g}", {"lag": x, "clip": 448 / 256}) for x in LAGS])),
    ),
)
ROWS = (*RANGE, *TILE)
