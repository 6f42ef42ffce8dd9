"""The rows of the table: what is compared with what, and what is asked of the ratio."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from benchmarks.truth import others, rivals
from benchmarks.truth.timing import peak_memory, printed, side_by_side
from symattn import Attention
from symattn.definition import Definition
from symattn.truth import double, limbs
from symattn.truth.fields import prepared

__all__ = ["ROWS", "Row"]

D = 128
DIGITS = 50
BITS = math.ceil(DIGITS * math.log2(10))
"""Bits of so many digits: each element is within ``2^-BITS`` of the scale of its tensor."""
SMALL = 128
"""Queries and keys of the rivals that are slow: their cost per score does not depend on the number."""

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Row:
    """One comparison: what it is of, what is asked (``at least``, ``at most``), the aim, and how to measure it.

    ``measure(n, rounds)`` gives the name and the ratio of each line of the table.
    """

    what: str
    asked: str
    aim: str
    measure: Callable[[int, int], Iterator[tuple[str, float]]]


def arrays(n: int, dtype: str = "float32", heads: int = 1) -> dict[str, Array]:
    """Standard normal numbers by field name, (1, heads, n, d)."""
    rng = np.random.default_rng(0)
    return {x: rng.standard_normal((1, heads, n, D)).astype(dtype) for x in ("query", "key", "value", "grad_out")}


def truth_of(fields: dict[str, Array], *, gradient: bool, **options: Any) -> Callable[[], object]:
    """The public call."""
    given = fields if gradient else {n: x for n, x in fields.items() if n != "grad_out"}
    return lambda: Attention().truth(**given, **options)


def per_score(seconds: float, n: int) -> float:
    """Seconds for one pair of a query and a key."""
    return seconds / n**2


def digits_against(gradient: bool) -> Callable[[int, int], Iterator[tuple[str, float]]]:
    """50 guaranteed digits, of the scale and of each element, against mpmath and python-flint."""

    def measure(n: int, rounds: int) -> Iterator[tuple[str, float]]:
        big, small = arrays(n), [x[0, 0] for x in arrays(SMALL).values()]
        args = small if gradient else small[:3]
        straight = [x[0, 0] for x in big.values()][: 4 if gradient else 3]
        times = side_by_side(
            {
                "of the scale": truth_of(big, gradient=gradient, bits=BITS),
                "of each element": truth_of(big, gradient=gradient, digits=DIGITS),
                "mpmath fdot": lambda: rivals.mpmath_dots(*args),
                "mpmath matrix": lambda: rivals.mpmath_matrices(*args),
                "python-flint": lambda: rivals.flint_balls(*straight),
            },
            rounds,
        )
        for ours in ("of the scale", "of each element"):
            for name, size in (("mpmath fdot", SMALL), ("mpmath matrix", SMALL), ("python-flint", n)):
                yield f"{name}, {ours}", per_score(times[name], size) / per_score(times[ours], n)

    return measure


def public_call(n: int, rounds: int) -> Iterator[tuple[str, float]]:
    """The public call over the bare engine."""
    fields = arrays(n)
    for gradient in (False, True):
        given = fields if gradient else {x: a for x, a in fields.items() if x != "grad_out"}
        bound, program, inputs = prepared(Definition(), given, layout="bhsd", gradient=gradient, tangent=False)
        bare = partial(limbs.evaluate, program, inputs, sizes=dict(bound.sizes), bits=BITS)
        times = side_by_side({"public": truth_of(fields, gradient=gradient, bits=BITS), "bare": bare}, rounds)
        yield ("forward + backward" if gradient else "forward"), times["public"] / times["bare"]


SHORT = 7
"""How many times as many rounds of what takes a tenth of a second: single ones vary by a fifth."""


def float64_with_bound(n: int, rounds: int) -> Iterator[tuple[str, float]]:
    """Float64 with its bound over plain blocked float64."""
    fields = arrays(n)
    plain = [x[0, 0] for x in fields.values()]
    for gradient in (False, True):
        given = fields if gradient else {x: a for x, a in fields.items() if x != "grad_out"}
        bound, program, inputs = prepared(Definition(), given, layout="bhsd", gradient=gradient, tangent=False)

        bounded = partial(double.evaluate, program, inputs, sizes=dict(bound.sizes))
        proven = partial(bounded, owned_exp=True)
        rival = partial(rivals.numpy_blocks, *(plain if gradient else plain[:3]))
        times = side_by_side({"bounded": bounded, "proven": proven, "plain": rival}, SHORT * rounds)
        word = "forward + backward" if gradient else "forward"
        yield word, times["bounded"] / times["plain"]
        yield f"{word}, exponential with a proof", times["proven"] / times["plain"]


def causal(n: int, rounds: int) -> Iterator[tuple[str, float]]:
    """A causal mask over none, at twice the length."""
    fields = {x: a for x, a in arrays(2 * n).items() if x != "grad_out"}
    times = side_by_side(
        {
            "causal": lambda: Attention(causal="top-left").truth(**fields, digits=DIGITS),
            "full": lambda: Attention().truth(**fields, digits=DIGITS),
        },
        max(1, rounds - 1),
    )
    yield "forward", times["causal"] / times["full"]


MEMORY = """import numpy as np; from symattn import Attention; from symattn.truth import truth
rng = np.random.default_rng(0)
fields = {{x: rng.standard_normal((1, 1, {n}, 128)).astype(np.float32) for x in {names}}}
Attention().truth(**fields, {options})"""


def memory(n: int, _: int) -> Iterator[tuple[str, float]]:
    """Peak memory in GB over import, at four times the length."""
    code = MEMORY.format(n=4 * n, names=("query", "key", "value", "grad_out"), options=f"digits={DIGITS}")
    yield "forward + backward, GB", peak_memory(code) / 1e9


def growth(n: int, _: int) -> Iterator[tuple[str, float]]:
    """Growth of the peak memory of float64 with its bound when the length grows fourfold."""
    both = [
        MEMORY.format(n=m, names=("query", "key", "value"), options="tier='double', assume=True, bits=40")
        for m in (4 * n, 16 * n)
    ]
    small, large = (peak_memory(code) for code in both)
    yield "forward", large / small


TWO = """import time; import numpy as np; from symattn import Attention; from symattn.truth.work import Work
rng = np.random.default_rng(0)
names = ("query", "key", "value", "grad_out")
fields = {{x: rng.standard_normal((1, 2, {n}, 128)).astype(np.float32) for x in names}}
start = time.perf_counter()
Attention().truth(**fields, bits={bits}, work=Work(workers={workers}))
print(time.perf_counter() - start)"""


def two_processes(n: int, rounds: int) -> Iterator[tuple[str, float]]:
    """One worker over two, on the clock, at twice the length; each run in a process of its own, so that workers start anew."""
    times = [[float(printed(TWO.format(n=2 * n, bits=BITS, workers=k))) for k in (1, 2)] for _ in range(rounds)]
    yield "forward + backward, two heads", statistics.median(one / two for one, two in times)


FORWARD, WHOLE = "250 fdot, 350 matrix, 4 python-flint", "250 fdot, 380 matrix, 3.5 python-flint"
ROWS: tuple[Row, ...] = (
    Row("50 digits, forward: times faster than", FORWARD, "350, 500, 6", digits_against(False)),
    Row("50 digits, forward + backward: times faster than", WHOLE, "400, 600, 6", digits_against(True)),
    Row("the public call over the bare engine", "at most 1.15", "", public_call),
    Row("float64 with its bound over plain blocked NumPy", "at most 1.25; with a proof 2.75", "1.1", float64_with_bound),
    Row("causal over full, at twice the length", "at most 0.6", "0.52", causal),
    Row("peak memory over import, at four times the length", "at most 0.5 GB", "0.25 GB", memory),
    Row("growth of memory from 4 to 16 times the length, float64 with its bound", "at most 4", "", growth),
    Row("two processes against one, at twice the length: times faster", "1.7", "1.9", two_processes),
    Row("verify over eager float64: a bfloat16 kernel, 8 heads on 2, twice the length", "", "", others.judged),
    Row("import, seconds", "", "", others.imports),
    Row("derive with the gradient, seconds", "at most 1 a step", "", others.deriving),
    Row("prove, seconds", "", "", others.proving),
)
"""In the order of the page."""
