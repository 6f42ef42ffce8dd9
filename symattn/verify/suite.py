"""The default set: every kernel that can run here, on definitions and inputs that conventions and arithmetic show on."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from symattn.arithmetic import declaration
from symattn.definition import Definition
from symattn.verify.case import tried_case
from symattn.verify.inputs import KINDS, Choice, Shape, fields_for
from symattn.verify.judge import require_values
from symattn.verify.kernels.base import Kernel
from symattn.verify.kernels.registry import BUILT_IN
from symattn.verify.pack.kinds import SHAPE
from symattn.verify.raising import excused
from symattn.verify.reference import Reference
from symattn.verify.report import CaseReport, Report


@dataclass(frozen=True)
class Row:
    """One row of the default set: a definition, the kind of numbers, and the dtypes that it is run in.

    With ``equal_heads`` there are as many key-value heads as query heads, and the kernels without grouped heads run it.
    """

    name: str
    definition: Definition
    kind: str
    dtypes: tuple[str, ...]
    equal_heads: bool = False


ROWS: tuple[Row, ...] = (
    Row("plain", Definition(), "normal", ("float64", "float32", "float16", "bfloat16")),
    Row("causal", Definition(causal="top-left"), "normal", ("float32", "bfloat16")),
    Row("causal, bottom-right", Definition(causal="bottom-right"), "tall", ("float32", "bfloat16")),
    Row("causal, ties", Definition(causal="top-left"), "integers", ("float32", "float16")),
    Row("window", Definition(causal="bottom-right", window=(3, 0)), "normal", ("float32",)),
    Row("boolean mask", Definition(attn_mask="boolean"), "normal", ("float32", "bfloat16")),
    Row("additive mask", Definition(attn_mask="additive"), "normal", ("float32",)),
    Row("softcap", Definition(causal="top-left", softcap=Fraction(2)), "large", ("float32", "bfloat16")),
    Row("sink", Definition(causal="bottom-right", sink=True), "tall", ("float32", "bfloat16")),
    Row("ALiBi", Definition(causal="bottom-right", alibi=True), "normal", ("float32", "bfloat16")),
    Row("scale", Definition(scale="1/4"), "large", ("float64", "float32")),
    Row("scores at -200", Definition(), "deep", ("float32", "float16")),
    Row("equal heads", Definition(), "normal", ("float64", "float32", "float16", "bfloat16"), True),
    Row("equal heads, causal", Definition(causal="top-left"), "normal", ("float32", "bfloat16"), True),
    Row("equal heads, window", Definition(window=(3, 1)), "normal", ("float32", "float16"), True),
)
"""The default set."""

PARTIAL: dict[str, frozenset[str]] = {
    "jax:dot_product_attention": frozenset({"plain", "causal"}),
    "torch:sdpa": frozenset({"plain", "causal", "boolean mask", "scale"}),
    "torch:mha": frozenset({"equal heads", "equal heads, causal"}),
    "onnxruntime:attention-23": frozenset({"plain", "softcap"}),
    "onnxruntime:attention-25": frozenset({"plain", "window"}),
}
"""Kernels that run some rows only: compiled for every shape and dtype, which takes seconds, or near to another kernel."""


def verify_all(
    definition: Definition | None = None,
    *,
    dtype: str | None = None,
    shape: str | Shape | None = None,
    only: str | Sequence[str] | None = None,
    skip: str | Sequence[str] | None = None,
    max_len: int | None = None,
    require: str | None = None,
    seed: int = 0,
    arithmetic: str | None = None,
    backward: bool = True,
    kernels: Iterable[Kernel] | None = None,
    progress: Callable[[str], None] | None = None,
    keep: bool = False,
) -> Report:
    """Judge all kernels that can run here, forward and backward.

    Parameters
    ----------
    definition
        Judge them on this definition, on the whole pack of inputs; by default on the default set.
    dtype, shape, only, skip, max_len, require, seed, arithmetic
        As for :func:`symattn.verify.judge.verify`; by default each row has its own dtypes. In the default set a shape is that of
        further rows, one for each definition.
    backward
        Judge gradients of those kernels that have them.
    kernels
        By default the built-in ones.
    progress
        Called with a line of text before each case.
    keep
        As for :func:`symattn.verify.judge.verify`.
    """
    started = time.perf_counter()
    if definition is not None:
        require_values(definition)
    subjects = tuple(BUILT_IN.values() if kernels is None else kernels)
    choice = Choice.of(shape, only, skip, max_len, require)
    declared = declaration(arithmetic)
    kinds = {k.name: k for k in (*KINDS, SHAPE)}
    rows = _rows(definition, choice)
    skipped = [f"{k.name}: {reason}" for k in subjects if (reason := k.missing())]
    able = [k for k in subjects if not k.missing()]
    refused: dict[str, list[str]] = {}
    idle: list[str] = []
    cases: list[CaseReport] = []
    for row in rows:
        kind = kinds[row.kind]
        for name in (dtype,) if dtype else row.dtypes:
            sizes = choice.sized(row.definition, kind)
            sizes = replace(sizes, hkv=sizes.h) if row.equal_heads else sizes
            fields = fields_for(row.definition, sizes, name, seed, kind)
            ref = Reference(row.definition, fields, keep=keep)
            if not kind.applies(ref.call):
                continue
            for kernel in able:
                if definition is None and not runs(kernel, row):
                    continue
                if choice.only is None and not kind.promised(declared or kernel.arithmetic(ref.call)):
                    idle.append(f"{kernel.name} {name} {row.name}: its arithmetic promises nothing there")
                    continue
                if kernel.unsupported(ref.call) is not None:
                    refused.setdefault(kernel.name, []).append(row.name if kernel.takes_dtype(name) else name)
                    continue
                if progress is not None:
                    progress(f"{kernel.name} {name} {row.name}")
                wanted = backward and kernel.has_backward(ref.call)
                cases.append(tried_case(kernel, ref, row.name, backward=wanted, arithmetic=declared))
    skipped += [f"{k} does not compute {', '.join(dict.fromkeys(names))}" for k, names in refused.items()]
    skipped += idle
    replay = f"symattn.verify.suite.verify_all(seed={seed})"
    return Report(None, {}, {}, tuple(excused(cases)), replay, skipped=tuple(skipped), seconds=time.perf_counter() - started)


def runs(kernel: Kernel, row: Row) -> bool:
    """Whether a kernel runs a row of the default set."""
    return kernel.grouped != row.equal_heads and row.name in PARTIAL.get(kernel.name, {row.name})


def _rows(definition: Definition | None, choice: Choice) -> tuple[Row, ...]:
    """The rows of a run: the kinds that a definition is judged on, or those of the default set that are chosen."""
    if definition is not None:
        return tuple(Row(k.name, definition.core, k.name, ("float32",)) for k, _ in choice.kinds(definition.core))
    rows = [row for row in ROWS if row.kind in {k.name for k in KINDS if choice.takes(k)}]
    if choice.shape is not None and choice.takes(SHAPE):
        seen = {(row.definition, row.equal_heads): row for row in reversed(ROWS)}
        rows += [replace(row, name=f"{row.name}, shape", kind=SHAPE.name) for row in reversed(seen.values())]
    return tuple(rows)
