"""Programs with scans, each with rational inputs and the same recurrence as a plain loop over numbers of any type.

A loop takes the inputs as nested object arrays and a table of functions (``exp``, ``tanh``, ``max``); it shares nothing with the
package. ``EXAMPLES`` is by name; ``n``, ``d`` and ``e`` are 5, 2 and 3 in the inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import sympy as sp

from symattn.program import Program, Scan, Statement, indices, size, tensor

t, a, b, c, r = indices("t a b c r")
n, d, e = size("n"), size("d"), size("e")
DIMS = {t: n, a: d, b: e, c: d, r: n}
N, D, E = 5, 2, 3
UP, DOWN = Scan(t), Scan(t, -1)
T = tensor

Loop = Callable[[Mapping[str, Any], Any], dict[str, Any]]


@dataclass(frozen=True)
class Example:
    """A program, the shapes of its inputs in small sizes, and the loop that says what it means."""

    program: Program
    shapes: Mapping[str, tuple[int, ...]]
    loop: Loop
    rational: bool = True

    def inputs(self, seed: int = 0) -> dict[str, Any]:
        """Fractions with small denominators that are powers of two, so that floats hold them."""
        rng = np.random.default_rng(seed)
        out = {}
        for name, shape in self.shapes.items():
            flat = [Fraction(int(k), 8) for k in rng.integers(-7, 8, int(np.prod(shape)))]
            flat = [v or Fraction(3, 8) for v in flat]
            if name == "keep":
                flat = [Fraction(int(k)) for k in rng.integers(0, 2, int(np.prod(shape)))]
            array = np.empty(len(flat), dtype=object)
            array[:] = flat
            out[name] = array.reshape(shape)
        return out


def zeros(*shape):
    array = np.empty(int(np.prod(shape)), dtype=object)
    array[:] = [0] * array.size
    return array.reshape(shape)


def W(at):
    return T("W", at, a, b)


READ_OUT = Statement(T("o", t, b), W(t) * T("q", t, a), (a,))
KVQ = {"k": (N, D), "v": (N, E), "q": (N, D)}


def _states(x, step):
    """The output of a matrix-valued state: ``step(k, W)`` gives the next state."""
    state, out, every = zeros(D, E), zeros(N, E), zeros(N, D, E)
    for k in range(N):
        every[k] = state = step(k, state)
        out[k] = [sum(state[i, j] * x["q"][k, i] for i in range(D)) for j in range(E)]
    return {"o": out, "W": every}


def linear(x, f):
    return _states(x, lambda k, w: w + np.multiply.outer(x["k"][k], x["v"][k]))


def gated(x, f):
    return _states(x, lambda k, w: x["alpha"][k] * w + np.multiply.outer(x["k"][k], x["v"][k]))


def delta(x, f):
    return _states(x, lambda k, w: w + x["beta"][k] * np.multiply.outer(x["k"][k], x["v"][k] - x["k"][k] @ w))


def gated_delta(x, f):
    def step(k, w):
        w = x["alpha"][k] * w
        return w + x["beta"][k] * np.multiply.outer(x["k"][k], x["v"][k] - x["k"][k] @ w)

    return _states(x, step)


def rnn(x, f):
    h, out, every = zeros(D), zeros(N, E), zeros(N, D)
    for k in range(N):
        g = x["R"] @ h + x["x"][k]
        h = np.array([f.tanh(v) for v in g], dtype=object)
        every[k], out[k] = h, h @ x["Y"]
    return {"h": every, "o": out}


def suffix(x, f):
    h, every = zeros(D), zeros(N, D)
    for k in reversed(range(N)):
        h = x["g"][k] * h + x["x"][k]
        every[k] = h
    return {"h": every, "o": every * every}


def neighbours(x, f):
    h, y = zeros(N + 2), zeros(N)
    for k in range(N):
        h[k + 1] = x["g"][k] * h[k] + x["x"][k]
    before = 0
    for k in range(N):
        before = x["r"][k] * before + h[k] * h[k + 2] + h[k + 1]
        y[k] = before
    return {"h": h[1:-1], "y": y}


def initial(x, f):
    h, every = x["h0"], zeros(N, D)
    for k in range(N):
        h = x["g"][k] * h + x["x"][k]
        every[k] = h
    return {"h": every}


def two_steps(x, f):
    h = zeros(N + 2)
    for k in range(N):
        h[k + 2] = x["g"][k] * h[k + 1] * h[k + 1] - h[k] + x["x"][k]
    return {"h": h[2:]}


def product(x, f):
    h, every = zeros(D), zeros(N, D)
    for k in range(N):
        z = np.prod([x["x"][k, i] + h[i] for i in range(D)])
        h = np.array([z * v for v in x["w"][k]], dtype=object)
        every[k] = h
    return {"h": every}


def resets(x, f):
    h, every = zeros(D), zeros(N, D)
    for k in range(N):
        h = x["g"][k] * h + x["x"][k] if x["keep"][k] else zeros(D)
        every[k] = h
    return {"h": every}


def substitution(x, f):
    """Forward substitution: ``(1 - A) h = x`` with A strictly lower triangular."""
    h = zeros(N)
    for k in range(N):
        h[k] = x["x"][k] + sum(x["A"][k, r] * h[r] for r in range(k))
    return {"h": h}


def online_softmax(x, f):
    """Softmax attention of one query, directly."""
    w = [f.exp(v) for v in x["s"]]
    total = sum(w)
    return {"o": np.array([sum(p * v for p, v in zip(w, x["v"][:, j], strict=True)) / total for j in range(E)], dtype=object)}


def _program(*statements, outputs=("o",), **shapes):
    return Program(statements, DIMS, outputs, shapes)


def _write(rate=1, keep=1, read=None):
    return Statement(W(t), keep * W(t - 1) + rate * T("k", t, a) * (T("v", t, b) - (0 if read is None else read)), scan=UP)


def _recalled(keep=1):
    return Statement(T("u", t, b), keep * W(t - 1) * T("k", t, a), (a,), scan=UP)


def h(at, *more):
    return T("h", at, *more)


g, x = T("g", t), T("x", t)

EXAMPLES: dict[str, Example] = {
    "linear attention": Example(_program(_write(), READ_OUT), KVQ, linear),
    "gated linear attention": Example(
        _program(_write(keep=T("alpha", t)), READ_OUT, outputs=("o", "W")), {**KVQ, "alpha": (N,)}, gated
    ),
    "delta rule": Example(_program(_recalled(), _write(T("beta", t), read=T("u", t, b)), READ_OUT), {**KVQ, "beta": (N,)}, delta),
    "gated delta rule": Example(
        _program(_recalled(T("alpha", t)), _write(T("beta", t), T("alpha", t), T("u", t, b)), READ_OUT),
        {**KVQ, "beta": (N,), "alpha": (N,)},
        gated_delta,
    ),
    "tanh RNN": Example(
        _program(
            Statement(T("pre", t, a), T("R", a, c) * h(t - 1, c), (c,), scan=UP),
            Statement(h(t, a), sp.tanh(T("pre", t, a) + T("x", t, a)), scan=UP),
            Statement(T("o", t, b), h(t, a) * T("Y", a, b), (a,)),
            outputs=("h", "o"),
        ),
        {"R": (D, D), "x": (N, D), "Y": (D, E)},
        rnn,
        rational=False,
    ),
    "reversed": Example(
        _program(
            Statement(h(t, a), g * h(t + 1, a) + T("x", t, a), scan=DOWN),
            Statement(T("o", t, a), h(t, a) ** 2),
            outputs=("h", "o"),
        ),
        {"g": (N,), "x": (N, D)},
        suffix,
    ),
    "two in a row": Example(
        _program(
            Statement(h(t), g * h(t - 1) + x, scan=UP),
            Statement(T("y", t), T("r", t) * T("y", t - 1) + h(t - 1) * h(t + 1) + h(t), scan=Scan(t, number=1)),
            outputs=("y",),
        ),
        {"g": (N,), "x": (N,), "r": (N,)},
        neighbours,
    ),
    "initial state": Example(
        _program(
            Statement(T("first", t, a), g * T("h0", a), where=sp.Eq(t, 0)),
            Statement(h(t, a), g * h(t - 1, a) + T("first", t, a) + T("x", t, a), scan=UP),
            outputs=("h",),
        ),
        {"g": (N,), "x": (N, D), "h0": (D,)},
        initial,
    ),
    "two steps back": Example(
        _program(Statement(h(t), g * h(t - 1) ** 2 - h(t - 2) + x, scan=UP), outputs=("h",)),
        {"g": (N,), "x": (N,)},
        two_steps,
    ),
    "product": Example(
        _program(
            Statement(T("z", t), T("x", t, a) + h(t - 1, a), (a,), "prod", scan=UP),
            Statement(h(t, a), T("z", t) * T("w", t, a), scan=UP),
            outputs=("h",),
        ),
        {"x": (N, D), "w": (N, D)},
        product,
    ),
    "resets": Example(
        _program(
            Statement(h(t, a), g * h(t - 1, a) + T("x", t, a), where=sp.Ne(T("keep", t), 0), scan=UP),
            outputs=("h",),
        ),
        {"g": (N,), "x": (N, D), "keep": (N,)},
        resets,
    ),
    "substitution": Example(
        _program(
            Statement(T("past", t), T("A", t, r) * h(r), (r,), where=sp.Lt(r, t), scan=UP),
            Statement(h(t), T("past", t) + x, scan=UP),
            outputs=("h",),
        ),
        {"x": (N,), "A": (N, N)},
        substitution,
    ),
    "online softmax": Example(
        _program(
            Statement(T("m", t), sp.Max(T("m", t - 1), T("s", t)), range_only=True, aux=True, scan=UP),
            Statement(T("l", t), sp.exp(T("m", t - 1) - T("m", t)) * T("l", t - 1) + sp.exp(T("s", t) - T("m", t)), scan=UP),
            Statement(
                T("acc", t, b),
                sp.exp(T("m", t - 1) - T("m", t)) * T("acc", t - 1, b) + sp.exp(T("s", t) - T("m", t)) * T("v", t, b),
                scan=UP,
            ),
            Statement(T("o", b), T("acc", n - 1, b) / T("l", n - 1)),
        ),
        {"s": (N,), "v": (N, E)},
        online_softmax,
        rational=False,
    ),
}
