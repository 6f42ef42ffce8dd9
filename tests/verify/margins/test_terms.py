"""The bound of a failing element is split into sources that a reader knows, and the greatest is the right one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from symattn.arithmetic import get
from symattn.definition import Definition
from symattn.verify.margins.asked import asked
from symattn.verify.margins.terms import source, terms
from symattn.verify.programs import followed
from tests.verify.margins.kernels import kernel, seen_of

WORK = 10**6
D = Definition()


def split(dtype, tensor, **wrong):
    seen = seen_of(kernel(**wrong), D, dtype, ("normal",), backward=tensor.startswith("grad_"))
    found = {t.tensor: t for t in terms(seen, WORK)}
    return seen[0], found[tensor]


def test_nothing_is_said_of_a_kernel_that_passes():
    assert terms(seen_of(kernel(), D, "bfloat16", ("normal",)), WORK) == ()


@pytest.mark.parametrize("dtype, there, absent", [("bfloat16", "cast of P", ""), ("float32", "exp", "cast of P")])
def test_what_an_output_may_owe_to_each_source(dtype, there, absent):
    _, t = split(dtype, "out", unscaled=True)
    assert there in list(t.shares)[:4] and absent not in t.shares and {"QK sum", "PV sum"} <= set(t.shares)
    assert sum(t.shares.values()) == pytest.approx(1) and list(t.shares.values()) == sorted(t.shares.values(), reverse=True)
    assert t.line.startswith("bound ") and f"{there} " in t.line


def test_it_is_the_worst_element_and_its_bound():
    o, t = split("bfloat16", "out", gain=1.1)
    worst = next(r for r in o.reports if r.name == "out").comparison.worst
    assert t.index == worst.index and t.bound == pytest.approx(float(worst.bound), rel=1e-3)


def test_a_cast_that_is_declared_away_takes_its_share_along():
    wide = replace(get("flash-bf16"), name="wide", probability=None)
    seen = seen_of(kernel(unscaled=True), D, "bfloat16", ("normal",), arithmetic=wide)
    shares = {t.tensor: t.shares for t in terms(seen, WORK)}["out"]
    assert "cast of P" not in shares and next(iter(shares)) == "rounding of the output"


def test_gradients_are_split_too():
    _, t = split("bfloat16", "grad_query", dq_gain=1.1)
    assert {"cast of dS", "rounding of the output"} <= set(list(t.shares)[:3])


def test_every_part_of_every_list_has_words():
    for name in ("flash-bf16", "eager-fp16", "flash-tf32"):
        for d in (D, Definition(softcap=2, sink=True, causal="bottom-right")):
            program = followed(d.program(), get(name), gradient=True)
            for s in program:
                for kind in ("sum", "cast", "storage", "buffer", "exp", "log", "scale", "underflow", "operation", "cut"):
                    words = source(f"{s.name}: {kind}", program, "O")
                    assert words and "_b" not in words and not words.startswith(" ")


def test_parts_add_up_to_the_bound_from_slopes():
    o = seen_of(kernel(), D, "bfloat16", ("normal",))[0]
    (question,) = asked(o)
    found = question.bounded(o.situation.arithmetic, parts=True)["out"]
    total = sum(found.parts.values())
    assert np.all(found.bound <= total * (1 + 1e-12)) and np.allclose(found.bound, total, rtol=1e-2)
