"""Weights through the log-sum-exp: proved, in the program's own base, and left alone where there is no softmax."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sp

from symattn.adjoint import adjoint
from symattn.definition import Definition
from symattn.presentation import present, through_lse
from symattn.presentation.presented import NOT_APPLICABLE, PROVED
from symattn.program import Program, Statement, indices, size, tensor
from symattn.readings import numpy as reading

SIZES = {"B": 1, "H": 2, "Hkv": 2, "G": 2, "n": 3, "m": 4, "d": 2, "dv": 3}
DEFINITIONS = [
    {},
    {"causal": "top-left", "softcap": 5},
    {"sink": True, "heads": 4, "kv_heads": 2},
    {"lse_base": 2},
    {"lse": False, "alibi": True},
    {"causal": "bottom-right", "empty_row": "uniform"},
    {"differential": True},
]


def given(program, seed):
    rng, sizes = np.random.default_rng(seed), {s: SIZES[str(s)] for s in program.sizes}
    shapes = {x: [int(sp.sympify(n).xreplace(sizes)) for n in program.shapes[x]] for x in program.inputs}
    return {x: rng.standard_normal(shape) for x, shape in shapes.items()}, sizes


@pytest.mark.parametrize("fields", DEFINITIONS, ids=str)
def test_it_is_proved_and_gives_the_same_numbers(fields):
    program = Definition(**fields).program()
    steps = []
    new = through_lse(program, steps=steps)
    assert [s.status for s in steps] == [PROVED] and new.outputs == program.outputs
    assert new.statements != program.statements
    inputs, sizes = given(program, 1)
    a, b = (reading.evaluate(p, inputs, sizes=sizes) for p in (program, new))
    for o in program.outputs:
        np.testing.assert_allclose(a[o], b[o], rtol=1e-12, atol=1e-13)


def test_a_gradient_reads_the_same_weights():
    program = Definition(causal="top-left").program()
    whole = present(program, adjoint(program)).program
    new = through_lse(whole)
    assert new["dS"] == whole["dS"] and "L" in new["P"].needs and "E" not in new["P"].needs


def test_what_has_no_softmax_is_left_alone():
    for fields in ({"normalizer": "sparsemax"}, {"form": "linear"}):
        program, steps = Definition(**fields).program(), []
        assert through_lse(program, steps=steps) is program
        assert [s.status for s in steps] == [NOT_APPLICABLE]


def test_an_average_that_is_no_softmax_is_left_alone():
    (j,) = indices("j")
    rows = (
        Statement(tensor("l"), tensor("E", j), (j,)),
        Statement(tensor("P", j), tensor("E", j) / tensor("l")),
    )
    program = Program(rows, {j: size("m")}, ("P",))
    assert through_lse(program) is program
