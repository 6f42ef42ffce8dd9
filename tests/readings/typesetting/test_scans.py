"""Recurrences in LaTeX: one step in matrices, the walk said once, and formulas that give the values of the statements."""

import numpy as np
import pytest
import sympy as sp

from symattn.derivative import backward
from symattn.readings import numpy as floats
from symattn.readings.latex import index_form, letter, matrix_form, scan_form
from tests.scans import EXAMPLES


def lines(name):
    program = backward(EXAMPLES[name].program).program
    found = {s.name: matrix_form(program, s) for s in program}
    return {n: m.latex if m is not None else None for n, m in found.items()}


def test_the_delta_rule_and_its_gradient_in_matrices():
    found = lines("delta rule")
    assert found["u"] == r"u^{(t)} = W^{(t - 1)\top} k^{(t)}"
    assert found["W"] == r"W^{(t)} = W^{(t - 1)} + \beta_t k^{(t)} (v^{(t)} - u^{(t)})^{\top}"
    assert found["du"] == r"du^{(t)} = -\beta_t\,dW^{(t)\top} k^{(t)}"
    assert found["dq"] == r"dq^{(t)} = W^{(t)}\,do^{(t)}"


def test_the_index_of_a_scan_is_above_also_where_its_tensors_are_vectors():
    found = lines("tanh RNN")
    assert found["pre"] == r"\mathrm{pre}^{(t)} = R h^{(t - 1)}"
    assert found["dR"] == r"dR = \sum_t d\mathrm{pre}^{(t)} h^{(t - 1)\top}"


def test_the_walk_is_said_once_for_a_group():
    program = EXAMPLES["delta rule"].program
    assert index_form(program, "u", walk=True) == r"u_{tb} = \sum_a W_{t - 1,a,b} k_{ta} \quad\text{for } t = 0, 1, \dots, n - 1"
    assert "for" not in index_form(program, "u") + index_form(program, "W", walk=True)
    assert scan_form(program, "W") == r"t = 0, 1, \dots, n - 1"
    assert scan_form(program, "o") == ""
    assert scan_form(EXAMPLES["reversed"].program, "h") == r"t = n - 1, \dots, 1, 0"


def test_letters_of_parts_of_whole_gradients():
    assert letter("dW'_W") == "dW'_W"
    assert letter("dh'_pre", known=["h"]) == r"dh'_{\mathrm{pre}}"
    assert letter("dk_W", known=["k"]) == "dk_W"


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_printed_matrices_give_the_values_of_the_statements(name):
    example = EXAMPLES[name]
    back = backward(example.program)
    rng = np.random.default_rng(0)
    shapes = {n: np.shape(v) for n, v in floats.evaluate(example.program, example.inputs()).items()}
    given = {n: v.astype(float) for n, v in example.inputs().items()}
    given |= {back.seeds[o]: rng.normal(size=shapes[o]) for o in example.program.outputs}
    values = floats.evaluate(back.program, {n: v for n, v in given.items() if n in back.program.inputs})
    forms = [(s, matrix_form(back.program, s)) for s in back.program]
    assert sum(m is not None for _, m in forms) > len(forms) / 2
    sizes = {str(a): k for a, k in zip(sp.symbols("n d e"), (5, 2, 3), strict=True)}
    for s, m in forms:
        if m is not None:
            np.testing.assert_allclose(m.value(values, sizes), values[s.name], rtol=1e-12, atol=1e-13, err_msg=m.latex)
