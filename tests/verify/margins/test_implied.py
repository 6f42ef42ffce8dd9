"""A kernel that fails by one constant of its declaration is told which, and from which value on it conforms."""

from __future__ import annotations

from dataclasses import replace

import pytest

from symattn.arithmetic import get
from symattn.definition import Definition
from symattn.verify.inputs import Shape
from symattn.verify.margins.asked import asked
from symattn.verify.margins.constants import Range, Row, constants
from symattn.verify.margins.implied import conforms, implied
from tests.verify.margins.kernels import BF16, kernel, log_probabilities, seen_of

WORK = 10**6
D = Definition()


def found(function, dtype, **options):
    seen = seen_of(function, D, dtype, ("normal",), **options)
    return seen, {i.constant: i for i in implied(seen, WORK)}


def test_nothing_is_implied_by_a_kernel_that_passes():
    assert found(kernel(), "bfloat16")[1] == {}


def test_the_error_of_exp_is_named_within_a_factor_of_its_size():
    seen, rows = found(kernel(exp=3e-4), "bfloat16")
    assert seen[0].failing == ("lse",)
    value = float(rows["exp_error"].value.partition("=")[2])
    assert 5e-5 < value <= 3.1e-4
    assert rows["exp_error"].line.startswith("LSE conforms from exp error ")


def test_what_is_named_conforms_and_a_little_less_does_not():
    seen, rows = found(kernel(exp=3e-4), "bfloat16")
    value = float(rows["exp_error"].value.partition("=")[2])
    declared = seen[0].situation.arithmetic
    assert conforms(seen[0], replace(declared, exp_error=value))
    assert not conforms(seen[0], replace(declared, exp_error=0.9 * value))


@pytest.mark.slow
def test_a_buffer_of_dq_is_named_with_its_tiles():
    options = {"shape": Shape(1, 2, 2, 16, 64, 8, 8), "backward": True}
    seen, rows = found(kernel(buffer=BF16), "float32", **options)
    assert seen[0].failing == ("grad_query",)
    assert "dQ is accumulated in" in rows["dq_accumulate"].words and "tile" in rows["dq_accumulate"].words


def test_weights_through_the_rounded_lse_are_named_as_the_algorithm():
    seen = seen_of(log_probabilities(), D, "float32", ("normal", "large"), arithmetic=get("flash-fp32"))
    assert [o.failing for o in seen] == [(), ("out",)], "an error of the LSE grows with it"
    rows = {i.constant: i for i in implied(seen, WORK)}
    assert rows["algorithm"].line.endswith("(algorithm 'log')") and "algorithm=log" in rows["algorithm"].value
    declared = seen_of(log_probabilities(), D, "float32", ("normal", "large"), arithmetic=get("log-fp32"))
    assert [o.failing for o in declared] == [(), ()]


def test_a_wrong_convention_is_no_constant():
    assert found(kernel(unscaled=True), "bfloat16")[1] == {}
    assert found(kernel(gain=1.5), "float32")[1] == {}


def test_a_nan_is_no_constant():
    assert found(kernel(gain=float("nan")), "float32")[1] == {}


@pytest.mark.parametrize("name", ["flash-bf16", "eager-fp32", "numpy-fp64"])
def test_every_change_is_a_valid_declaration(name):
    a = get(name)
    for row in constants(a, keys=64, queries=16, gradient=True):
        changes = [row.change(row.least), row.change(row.greatest)] if isinstance(row, Range) else row.changes
        for c in changes:
            assert replace(a, **dict(c.values)).describe() and c.words
        assert isinstance(row, (Row, Range))


@pytest.mark.slow
def test_bounds_grow_along_every_row():
    (o,) = seen_of(kernel(), D, "float32", ("normal",), backward=True, shape=Shape(1, 2, 1, 5, 9, 4, 4))
    a = o.situation.arithmetic
    for row in constants(a, keys=9, queries=5, gradient=True):
        if not isinstance(row, Row):
            continue
        before = {}
        for c in row.changes:
            for question in asked(o, replace(o.situation, arithmetic=replace(a, **dict(c.values)), kept={})):
                for name, x in question.bounded(replace(a, **dict(c.values)), own=False).items():
                    if name in before:
                        assert (x.bound >= before[name] * (1 - 1e-9)).all(), (row.constant, c.words, name)
                    before[name] = x.bound
