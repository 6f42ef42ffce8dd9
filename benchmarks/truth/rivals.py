"""Attention as one would write it with the libraries at hand: mpmath by dot products and by matrices, python-flint, NumPy.

All compute O and the log-sum-exp of one head, unmasked, from float32 arrays (n, d), and with ``g`` also dQ, dK and dV.
Precision is that of 50 digits, without a claim about the error, but for the balls of python-flint.
"""

from __future__ import annotations

from typing import Any

import flint
import mpmath
import numpy as np

from symattn.readings.balls import precision

BITS = 170
"""Working precision of the rivals: 50 digits and four bits."""

Array = np.ndarray[Any, Any]


def mpmath_dots(q: Array, k: Array, v: Array, g: Array | None = None) -> None:
    """Lists of numbers, sums by ``fdot``."""
    mp = mpmath.mp.clone()
    mp.prec = BITS
    rows_q, rows_k, rows_v = ([[mp.mpf(float(x)) for x in row] for row in a] for a in (q, k, v))
    scale = 1 / mp.sqrt(q.shape[1])
    columns_v = list(zip(*rows_v, strict=True))
    weights, outs = [], []
    for row in rows_q:
        scores = [mp.fdot(row, key) * scale for key in rows_k]
        top = max(scores)
        e = [mp.exp(s - top) for s in scores]
        total = mp.fsum(e)
        weights.append([x / total for x in e])
        outs.append([mp.fdot(weights[-1], c) for c in columns_v])
        _ = top + mp.log(total)
    if g is not None:
        _mpmath_gradients(mp, (rows_q, rows_k, rows_v), [[mp.mpf(float(x)) for x in row] for row in g], weights, outs, scale)


def _mpmath_gradients(mp: Any, rows: Any, rows_g: Any, weights: Any, outs: Any, scale: Any) -> None:
    rows_q, rows_k, rows_v = rows
    grad_scores = []
    for p, o, go in zip(weights, outs, rows_g, strict=True):
        d = mp.fdot(go, o)
        grad_scores.append([x * (mp.fdot(go, value) - d) * scale for x, value in zip(p, rows_v, strict=True)])
    columns = [list(zip(*a, strict=True)) for a in (rows_q, rows_k, rows_g)]
    turned_p, turned_s = (list(zip(*a, strict=True)) for a in (weights, grad_scores))
    for row in grad_scores:
        _ = [mp.fdot(row, c) for c in columns[1]]
    for row in turned_s:
        _ = [mp.fdot(row, c) for c in columns[0]]
    for row in turned_p:
        _ = [mp.fdot(row, c) for c in columns[2]]


def mpmath_matrices(q: Array, k: Array, v: Array, g: Array | None = None) -> None:
    """``mp.matrix`` throughout."""
    mp = mpmath.mp.clone()
    mp.prec = BITS
    mq, mk, mv = (mp.matrix([[mp.mpf(float(x)) for x in row] for row in a]) for a in (q, k, v))
    scale = 1 / mp.sqrt(q.shape[1])
    scores = mq * mk.T * scale
    n, m = scores.rows, scores.cols
    p = mp.matrix(n, m)
    for i in range(n):
        top = max(scores[i, j] for j in range(m))
        e = [mp.exp(scores[i, j] - top) for j in range(m)]
        total = mp.fsum(e)
        for j in range(m):
            p[i, j] = e[j] / total
        _ = top + mp.log(total)
    out = p * mv
    if g is None:
        return
    mg = mp.matrix([[mp.mpf(float(x)) for x in row] for row in g])
    dp, ds = mg * mv.T, mp.matrix(n, m)
    for i in range(n):
        d = mp.fsum(mg[i, c] * out[i, c] for c in range(out.cols))
        for j in range(m):
            ds[i, j] = p[i, j] * (dp[i, j] - d) * scale
    _ = ds * mk, ds.T * mq, p.T * mg


def flint_balls(q: Array, k: Array, v: Array, g: Array | None = None) -> None:
    """``arb_mat`` throughout, elementwise work in lists."""
    with precision(BITS):
        fq, fk, fv = (flint.arb_mat(a.astype(float).tolist()) for a in (q, k, v))
        scale = 1 / flint.arb(q.shape[1]).sqrt()
        scores = (fq * fk.transpose()) * scale
        weights = []
        for i, row in enumerate(scores.tolist()):
            top = flint.arb(max(float(x) for x in row))
            e = [(x - top).exp() for x in row]
            total = sum(e, flint.arb(0))
            weights.append([x / total for x in e])
            _ = top + total.log(), i
        p = flint.arb_mat(weights)
        out = p * fv
        if g is None:
            return
        fg = flint.arb_mat(g.astype(float).tolist())
        dp = (fg * fv.transpose()).tolist()
        pairs = zip(fg.tolist(), out.tolist(), strict=True)
        d = [sum((a * b for a, b in zip(x, y, strict=True)), flint.arb(0)) for x, y in pairs]
        ds = flint.arb_mat(
            [[x * (y - c) * scale for x, y in zip(a, b, strict=True)] for a, b, c in zip(weights, dp, d, strict=True)]
        )
        _ = ds * fk, ds.transpose() * fq, p.transpose() * fg


def numpy_blocks(q: Array, k: Array, v: Array, g: Array | None = None, block: int = 128) -> None:
    """Float64, blocks of query rows, nothing known of the error."""
    q, k, v = (a.astype(np.float64) for a in (q, k, v))
    scale = 1 / np.sqrt(q.shape[1])
    dk, dv = np.zeros_like(k), np.zeros_like(v)
    for i in range(0, len(q), block):
        e = q[i : i + block] @ k.T
        e *= scale
        top = e.max(axis=1, keepdims=True)
        e -= top
        np.exp(e, out=e)
        total = e.sum(axis=1, keepdims=True)
        out = e @ v / total
        _ = top + np.log(total)
        if g is not None:
            go = g[i : i + block].astype(np.float64)
            e /= total
            ds = go @ v.T
            ds -= (go * out).sum(axis=1, keepdims=True)
            ds *= e
            ds *= scale
            _ = ds @ k
            dk += ds.T @ q[i : i + block]
            dv += e.T @ go
