"""Kinds of faults that no row of the public table plants: small and odd tiles, borders of documents, sinks, windows, slopes."""

from __future__ import annotations

import numpy as np
import pytest

from symattn.verify.diagnosis.diagnose import diagnose
from symattn.verify.kernels.registry import resolve
from tests.quality.casts import FORMATS, to
from tests.quality.kernels.correct import CORRECT
from tests.quality.row import Row
from tests.quality.running import observed, reference, run_case

LN2 = 0.6931471805599453
BOTTOM = {"causal": "bottom-right"}
SLOPES = {**BOTTOM, "alibi": True, "alibi_slopes": "interleaved"}


def neighbours(q, k):
    """A key at the border of a document is taken for one of the document before."""
    return q == np.concatenate([k[..., :1], k[..., :-1]], -1)


def next_power(slopes):
    """The geometric slopes of the next power of two."""
    return 2.0 ** (-8 * (np.arange(len(slopes)) + 1) / (1 << (len(slopes) - 1).bit_length()))


ROWS = (
    (Row("F170", "documents off by one", {"document": True}, {"document": neighbours}), "off"),
    (Row("F171", "earlier documents are seen", {"document": True}, {"document": np.greater_equal}), "earlier"),
    (Row("F172", "sink in another base", {"sink": True}, {"sink": lambda b: b * b.dtype.type(LN2)}), "ln 2"),
    (
        Row("F73", "sides exchanged", {"window": (3, 1)}, {"left": lambda x, w: x <= 1, "right": lambda x, w: -x < 3}),
        "both sides",
    ),
    (
        Row("F22b", "slopes", SLOPES, {"slopes": next_power}, ("large", "tall")),
        "next power of two",
    ),
    (Row("F58", "sum not rescaled", {}, {"rescale_sum": lambda o, n: 1 + 0 * o}, ("long",), ("online-4",)), "tile 4"),
    (Row("F142", "sums in bfloat16", {}, {"total": to("bfloat16")}, ("square", "long"), ("three-pass",)), "known before"),
)


def label(x):
    return f"{x.id} {x.title}" if isinstance(x, Row) else ""


@pytest.mark.parametrize(("row", "said"), ROWS, ids=label)
def test_it_is_named(row, said):
    plan = "online-16" if "online-16" in row.plans else row.plans[0]
    dtype = "bfloat16" if "bfloat16" in CORRECT[plan].dtypes else "float32"
    found = diagnose(observed(row, plan, dtype, dict.fromkeys((*row.kinds, "normal", "tall"))))
    assert found[0].fault == (row.id,) and said in found[0].title


@pytest.mark.slow
def test_an_output_in_16_bits_is_named_with_its_small_tile():
    row = Row("F49", "partial", {}, {"partial": FORMATS["bfloat16"]}, ("flat-4096",), ("online-4",), ("bfloat16",))
    found = diagnose(observed(row, "online-4", "bfloat16", ("flat-4096", "normal")))
    assert found[0].fault == ("F49",) and "tile 4," in found[0].title


def scores(query, key):
    """q.k/sqrt(d), the key heads spread over the query heads."""
    return query @ key.repeat(query.shape[1] // key.shape[1], 1).swapaxes(2, 3) / np.float32(np.sqrt(query.shape[3]))


def of_backward(change, definition, options=()):
    """The gradients of the correct tiled kernel, changed or from a changed log-sum-exp, on two inputs."""
    right = CORRECT["online-16"].kernel("float32")

    def run(query, key, value, **given):
        return right(query, key, value, **given)

    run.backward = lambda query, key, value, grad_out, out, lse, grad_lse, **given: change(
        right.backward, query, key, value, grad_out, out, lse, grad_lse, **given
    )
    seen = []
    for kind in ("normal", "tall"):
        run_case(resolve(run), reference(definition, kind, "float32"), kind, backward=True, seen=seen)
    return diagnose(seen)


def test_weights_recomputed_without_the_sink():
    def change(backward, query, key, value, grad_out, out, lse, grad_lse, **given):
        s = scores(query, key).astype(np.float64)
        own = np.log(np.exp(s).sum(-1)).astype(lse.dtype)
        return backward(query, key, value, grad_out, out, own, grad_lse, **given)

    found = of_backward(change, {"sink": True})
    assert found[0].fault == ("B21",) and "without the sink" in found[0].title


def test_values_from_weights_that_are_not_normalised():
    def change(backward, query, key, value, grad_out, out, lse, grad_lse, **given):
        s = scores(query, key)
        dv = np.exp(s - s.max(-1, keepdims=True)).swapaxes(2, 3) @ grad_out
        dv = dv.reshape(value.shape[0], value.shape[1], -1, *value.shape[2:]).sum(2)
        found = backward(query, key, value, grad_out, out, lse, grad_lse, **given)
        return {**found, "grad_value": dv.astype(value.dtype)}

    assert of_backward(change, {})[0].fault == ("B57",)
