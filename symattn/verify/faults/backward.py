"""Faults of the backward pass: its factors, D, recomputed weights, sums over groups and broadcast axes."""

from __future__ import annotations

import numpy as np
import sympy as sp

from symattn.indexed import tensor
from symattn.verify.faults.fault import Fault
from symattn.verify.faults.gradients import (
    K,
    Q,
    V,
    bias_factors,
    constant_factors,
    first_one,
    groups,
    incoming,
    last_one,
    logarithms,
    lse_gradient,
    of_some,
    only,
    row_term,
    scaled_twice,
    some_keys,
    swapped,
    tail,
    to_key,
    to_query,
    to_value,
    unscaled,
    whole,
    wrong_group,
)
from symattn.verify.faults.recomputing import (
    alignment,
    dropout,
    dropped_weights_in_scores,
    is_dropped_gradient,
    is_dropped_weight,
    local_lse,
    mask_ignored,
    no_derivative,
    other_derivative,
    rate,
    rotated_back,
    some_channels,
    undropped_row_term,
    unnormalised_values,
    window,
)
from symattn.verify.faults.results import labelled, times, zero
from symattn.verify.faults.structure import I, J
from symattn.verify.faults.supports import shared_in_backward

_D = "D = rowsum(dO o O), and where it is used"
_C = "the factor of dQ and dK"
_SUM = "over which axes a gradient is summed"
_REDUCED = ("attn_mask", "bias", "sinks", "alibi_slopes", "bucket_bias")
ROWS = (
    Fault("B01", "dK without the scale", "mathematics", "dS^T Q", "c dS^T Q", unscaled(K), look=_C, blind="scale = 1"),
    Fault("B02", "dQ without the scale", "mathematics", "dS K", "c dS K", unscaled(Q), look=_C, blind="scale = 1"),
    Fault(
        "B40", "dQ and dK without the scale", "mathematics", "dS K, dS^T Q", "c dS K, c dS^T Q", unscaled(Q + K), look=_C,
        blind="scale = 1",
    ),
    Fault(
        "B54", "dK with the scale twice", "mathematics", "c**2 dS^T Q", "c dS^T Q", scaled_twice(K), look=_C, blind="scale = 1"
    ),
    Fault("B55", "dQ with the scale twice", "mathematics", "c**2 dS K", "c dS K", scaled_twice(Q), look=_C, blind="scale = 1"),
    Fault(
        "B56", "dQ and dK with the scale twice", "mathematics", "c**2 dS K, c**2 dS^T Q", "c dS K, c dS^T Q",
        scaled_twice(Q + K), look=_C, blind="scale = 1",
    ),
    Fault(
        "B03", "a factor ln 2 or log2(e) too many in dQ or dK", "mathematics", "dQ*log2(e)", "dQ", logarithms,
        look="the scale of a kernel that works in base 2", shows="kernels with exp2",
    ),
    Fault(
        "B04", "dK and dV of one query head of the group instead of the sum", "mathematics", "x[g - 1]", "sum over g of x",
        groups,
        threads=("levanter#449",), look=_SUM, shows="H_kv < H", blind="H_kv = H",
        labelled={"the first one": "x[0]", "the mean": "(sum over g of x)/g"},
    ),
    Fault(
        "B06", "dK and dV added to the key/value head of the other grouping", "mathematics", "kv = h mod H_kv",
        "kv = h // (H/H_kv)",
        wrong_group, threads=("native-sparse-attention-triton#27",), look="the index of the key/value head in the backward",
        shows="1 < H_kv < H", blind="H_kv = 1",
    ),
    Fault(
        "B07", "D is omitted", "mathematics", "dS = P o dP", "dS = P o (dP - D)", row_term(lambda s: sp.Integer(0)),
        threads=("FlagAttention#1",), look=_D, blind="D = 0",
    ),
    Fault(
        "B08", "D with another factor", "mathematics", "P o (dP - f D)", "P o (dP - D)",
        labelled(
            ("-1", row_term(lambda s: sp.Integer(-1))), ("2", row_term(lambda s: sp.Integer(2))),
            ("the scale", row_term(lambda s: tensor("scale") if "scale" in s.backward else None)),
        ), look=_D, blind="D = 0",
    ),
    Fault(
        "B09", "the mask is ignored in the backward", "mathematics", "P = exp(s - L) for all keys",
        "P = exp(s - L) where keep", mask_ignored,
        threads=("triton#4541", "triton#5660"), look="the mask of the recomputed weights", shows="a mask", blind="no mask",
    ),
    Fault(
        "B10", "the causal mask of the backward is aligned otherwise than that of the forward", "mathematics", "j <= i",
        "j <= i + m - n",
        alignment, threads=("ffpa-attn#300",), look="the mask of the recomputed weights", shows="n != m", blind="n = m",
    ),
    Fault(
        "B11", "window of another width in the backward", "mathematics", "i - j <= W", "i - j < W", window,
        look="the window of the recomputed weights", shows="m > W", blind="W >= m",
    ),
    Fault(
        "B12", "the derivative of the softcap is missing", "mathematics", "dS", "dS (1 - tanh(s/cap)**2)", no_derivative,
        threads=("flash-attention#1033",), look="the chain rule through tanh", shows="scores comparable with the cap",
        blind="cap much larger than |s|",
    ),
    Fault(
        "B13", "dSink is 0", "mathematics", "0", "-sum P_sink D", only("grad_sinks", zero),
        threads=("flash-attention#1973",),
        look="whether the sink has a gradient", shows="a sink",
    ),
    Fault(
        "B14", "dSink with the wrong sign", "mathematics", "+sum P_sink D", "-sum P_sink D", only("grad_sinks",
        lambda p: times(p, -1)),
        look="the sign of dSink", shows="a sink",
    ),
    Fault(
        "B16", "the gradient of the LSE is ignored", "mathematics", "P o (dP - D)", "P o (dP - D + dL)", lse_gradient(0.0),
        threads=("flash-attention#1817", "flash-attention#889"), look="whether grad_lse enters D", blind="dL = 0",
    ),
    Fault(
        "B41", "the gradient of the LSE with the wrong sign or base", "mathematics", "P o (dP - D - dL)", "P o (dP - D + dL)",
        labelled(("-1", lse_gradient(-1.0)), ("ln 2", lse_gradient(float(np.log(2)))), ("log2(e)",
        lse_gradient(float(1 / np.log(2)))), ("2", lse_gradient(2.0))),
        look="whether grad_lse enters D with its sign", blind="dL = 0",
    ),
    Fault(
        "B17", "a gradient that belongs to several batch entries, heads or rows is not summed over them", "mathematics",
        "the last b", "sum over b",
        labelled(
            ("the last batch entry", of_some(_REDUCED, 0, last_one)), ("the first batch entry", of_some(_REDUCED, 0, first_one)),
            ("the mean over the batch", of_some(_REDUCED, 0, whole, divide=True)),
            ("the last head", of_some(_REDUCED, 1, last_one)), ("the first head", of_some(_REDUCED, 1, first_one)),
            ("the last row", of_some(("sinks", "alibi_slopes", "bucket_bias"), 2, last_one)), ("the first row", of_some(("sinks",
            "alibi_slopes", "bucket_bias"), 2, first_one)),
        ), threads=("flash-sparse-attention#193", "jax#36702"), look=_SUM, shows="a mask, bias or sink that is shared",
        blind="B = 1",
    ),
    Fault(
        "B18", "the gradient of the bias with a wrong factor", "mathematics", "c dS", "dS", bias_factors,
        threads=("flash-sparse-attention#194",), look=_SUM, shows="a bias",
    ),
    Fault(
        "B19", "D multiplied by 1 - p", "mathematics", "P o (dP - (1 - p) D)", "P o (dP - D)", row_term(rate),
        threads=("torch-xpu-ops#3766",),
        look=_D, shows="dropout", blind="p = 0",
    ),
    Fault(
        "B20", "dP is not dropped", "mathematics", "P o (dP - D)", "P o (dP o Z/(1 - p) - D)",
        labelled(
            ("", dropout(is_dropped_gradient, keep_mask=False, keep_scale=False)), ("masked and not scaled",
            dropout(is_dropped_gradient, keep_mask=True, keep_scale=False)),
            ("scaled and not masked", dropout(is_dropped_gradient, keep_mask=False, keep_scale=True)),
        ), look="dropout in the backward", shows="dropout", blind="p = 0",
    ),
    Fault(
        "B42", "the weights of dV are not dropped", "mathematics", "dV = P^T dO", "dV = (P o Z/(1 - p))^T dO",
        labelled(
            ("", dropout(lambda x: is_dropped_weight(x) or to_value(x), keep_mask=False, keep_scale=False)),
            ("masked and not scaled", dropout(is_dropped_weight, keep_mask=True, keep_scale=False)),
        ), look="dropout in the backward", shows="dropout", blind="p = 0",
    ),
    Fault(
        "B21", "weights recomputed with a local LSE: of a part of the keys, or without the sink", "mathematics",
        "P = exp(s - L_local)", "P = exp(s - L)", local_lse,
        threads=("tt-metal#53205", "tt-metal#53216"), look="whether the merged LSE reaches the backward",
        shows="keys in several parts; a sink",
    ),
    Fault(
        "B57", "dV from weights that are not normalised", "mathematics", "dV = exp(s - m)^T dO", "dV = P^T dO",
        unnormalised_values, look="whether the weights are divided by their sum before they meet dO", blind="a sum of 1: one key",
    ),
    Fault(
        "B58", "dS is made of the weights after dropout", "mathematics", "(P o Z/(1 - p)) o (dP - D)", "P o (dP - D)",
        dropped_weights_in_scores, look="which weights are multiplied with dP - D", shows="dropout", blind="p = 0",
    ),
    Fault(
        "B59", "D from dP before dropout", "mathematics", "D = rowsum(P o dO V^T)", "D = rowsum(dO o O)", undropped_row_term,
        look=_D, shows="dropout", blind="p = 0",
    ),
    Fault(
        "B60", "dP is summed over the first channels of V and dO alone", "mathematics", "sum over e < d of dO V", "dO V^T",
        some_channels, threads=("native-sparse-attention-triton#27",), look="the width of the tile of V and dO",
        shows="values wider than queries, or no multiple of the tile", blind="dv = d, a multiple of the tile",
    ),
    Fault(
        "B61", "the derivative of the softcap is taken at another score", "mathematics", "dS (1 - (s/cap)**2)",
        "dS (1 - tanh(s/cap)**2)", other_derivative, look="what is squared in the derivative of tanh",
        shows="scores comparable with the cap", blind="cap much larger than |s|",
    ),
    Fault(
        "B27", "size of the support shared by several rows", "mathematics", "sum dP/k", "sum dP/k_i", shared_in_backward,
        threads=("SparseMax.torch#3",),
        look="the axis of the count of the support", shows="sparsemax", blind="equal supports",
    ),
    Fault(
        "B43", "dK and dV exchanged", "mathematics", "dK = dV", "dK", swapped("key", "value"),
        look="the order of what is returned", shows="d = dv",
    ),
    Fault(
        "B44", "dQ and dK exchanged", "mathematics", "dQ = dK", "dQ", swapped("query", "key"),
        look="the order of what is returned", shows="n = m, H = H_kv",
    ),
    Fault(
        "B45", "the incoming gradient is read at the wrong place", "mathematics", "dO[b', h', i']", "dO[b, h, i]",
        labelled(
            ("the first batch entry for all", incoming(lambda p: np.broadcast_to(p[:1], p.shape))), ("the next batch entry",
            incoming(lambda p: np.roll(p, -1, 0))),
            ("the first head for all", incoming(lambda p: np.broadcast_to(p[:, :1], p.shape))), ("the next head",
            incoming(lambda p: np.roll(p, -1, 1))),
            ("the next row", incoming(lambda p: np.roll(p, -1, 2))), ("memory of (n, H, d) as (H, n, d)",
            incoming(lambda p: p.swapaxes(1, 2).reshape(p.shape))),
        ), threads=("aiter#2808",), look="the strides of dO", shows="B > 1, H > 1",
    ),
    Fault(
        "B46", "a gradient with a constant factor", "mathematics", "f dX", "dX",
        constant_factors, look="factors and accumulation of the gradient",
    ),
    Fault(
        "B47", "the last rows of a gradient are not written", "mathematics", "0", "dX[i]",
        labelled(("dQ", tail(Q, 2)), ("dK", tail(K, 2)), ("dV", tail(V, 2)), ("dK and dV", tail(K + V, 2))),
        look="the bounds of the store",
        shows="lengths no multiple of the tile",
    ),
    Fault(
        "B48", "the last keys or queries are missing in a sum of the backward", "mathematics", "sum over j < m - 1",
        "sum over j",
        labelled(
            ("dQ", some_keys(to_query, J, lambda s: s.sizes.get("M", 0))), ("dK", some_keys(to_key, I,
            lambda s: s.sizes.get("N", 0))),
            ("dV", some_keys(to_value, I, lambda s: s.sizes.get("N", 0))),
            ("dK and dV", some_keys(lambda x: to_key(x) or to_value(x), I, lambda s: s.sizes.get("N", 0))),
        ), look="the loops of the backward", shows="lengths no multiple of the tile",
    ),
    Fault(
        "B49", "gradients are not rotated back", "mathematics", "dQ of the rotated queries", "R(i)^T dQ", rotated_back,
        look="the transpose of the rotation", shows="a rotation", blind="position 0",
    ),
)  # fmt: skip
