"""Rows beside those of the engines: what a verdict on a kernel costs, and what importing, deriving and proving take."""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any
from unittest.mock import patch

import ml_dtypes
import numpy as np

from symattn.definition import Definition
from symattn.derivation.engine import derive
from symattn.derivation.examples import shipped
from symattn.derivation.values import Numbers
from symattn.theorems.catalogue import get, names
from symattn.theorems.proving import prove_theorem
from symattn.verify.kernels.registry import resolve
from symattn.verify.reference import Reference, judge_backward, judge_forward
from symattn.verify.running import gradients_of, outputs_of

__all__ = ["deriving", "imports", "judged", "proving"]

HEADS, SHARED, D = 8, 2, 128
"""Heads of queries, heads of keys and values, columns."""

Array = np.ndarray[Any, Any]
Lines = Iterator[tuple[str, float]]


def seconds(call: Callable[[], object]) -> float:
    """The processor time of one call."""
    start = time.process_time()
    call()
    return time.process_time() - start


def judged(n: int, _: int) -> Lines:
    """A bfloat16 kernel at twice the length, its output and gradients judged, over one eager float64 pass of the same."""
    rng = np.random.default_rng(0)
    counts = {"query": HEADS, "key": SHARED, "value": SHARED, "grad_out": HEADS}
    fields = {x: rng.standard_normal((1, h, 2 * n, D)).astype(ml_dtypes.bfloat16) for x, h in counts.items()}
    ref, kernel = Reference(Definition(), fields), resolve("numpy:flash")
    declared = kernel.arithmetic(ref.call)
    out = outputs_of(kernel, ref.call, ref.shapes(), declared)
    gradients, saved, with_lse = gradients_of(kernel, ref.call, out, declared)
    plain = [x[0].astype(np.float64) for x in fields.values()]
    eager_pass(*plain)
    forward, whole = seconds(lambda: eager_pass(*plain[:3])), seconds(lambda: eager_pass(*plain))
    first = seconds(lambda: judge_forward(ref, {x: out[x] for x in ref.shapes()}, declared))
    then = seconds(lambda: judge_backward(ref, gradients, declared, saved=saved, with_lse=with_lse))
    yield "forward, with the replay of its tiles", first / forward
    yield "forward + backward", (first + then) / whole
    yield "forward + backward, seconds", first + then
    yield "one eager float64 pass of it, seconds", whole


def eager_pass(q: Array, k: Array, v: Array, g: Array | None = None) -> None:
    """Attention and its gradients as one writes them in float64, a head of queries at a time, whole matrices of scores."""
    scale, share = 1 / np.sqrt(q.shape[-1]), len(q) // len(k)
    dk, dv = np.zeros_like(k), np.zeros_like(v)
    for h in range(len(q)):
        of = h // share
        s = q[h] @ k[of].T * scale
        e = np.exp(s - s.max(axis=1, keepdims=True))
        p = e / e.sum(axis=1, keepdims=True)
        out = p @ v[of]
        if g is not None:
            ds = p * (g[h] @ v[of].T - (g[h] * out).sum(axis=1, keepdims=True)) * scale
            _ = ds @ k[of]
            dk[of] += ds.T @ q[h]
            dv[of] += p.T @ g[h]


def imports(_: int, rounds: int) -> Lines:
    """Seconds of processor time of a process of its own."""
    commands = {"python -c pass": ["-c", "pass"], "import symattn": ["-c", "import symattn"]}
    commands |= {"from symattn import Attention": ["-c", "from symattn import Attention"]}
    commands |= {"symattn --help": ["-m", "symattn_cli", "--help"]}
    for name, arguments in commands.items():
        yield name, min(_process([sys.executable, *arguments]) for _ in range(max(2, rounds)))


def _process(command: list[str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def deriving(_: int, __: int) -> Lines:
    """Seconds of every shipped derivation with its gradient, and the slowest of all steps that have numbers."""
    found: list[float] = []
    step = Numbers.step

    def timed(self: Numbers, *group: Any) -> Any:
        start = time.process_time()
        made = step(self, *group)
        found.append(time.process_time() - start)
        return made

    with patch.object(Numbers, "step", timed):
        for example in shipped():
            yield f"{example}, all steps", seconds(lambda example=example: derive(example=example, gradient=True))  # type: ignore[misc]
    yield "the slowest step", max(found)


def proving(_: int, __: int) -> Lines:
    """Seconds of all theorems, and of the slowest."""
    found = {name: seconds(lambda name=name: prove_theorem(get(name), None)) for name in names()}  # type: ignore[misc]
    slowest = max(found, key=lambda name: found[name])
    yield f"all {len(found)}", sum(found.values())
    yield f"the slowest: {slowest}", found[slowest]
