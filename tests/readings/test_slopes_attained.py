"""Errors with the worst signs reach the bound from slopes and never pass it.

Each statement is given an error of its own as a further input, as large as the bound counts it, with the sign in which the
derivative of one output element by it points; the perturbed list is evaluated in float64. That shares no slope and no sum with
what is tested: signs come from the gradient of the perturbed program.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from symattn import arithmetic, variants
from symattn.derivative import backward
from symattn.program import Program, Statement, name_of, subscripts_of, tensor
from symattn.readings import numpy as floats
from symattn.readings.rounding import Evaluation
from symattn.readings.slopes.planning import plan_for
from symattn.readings.slopes.sweep import Sweeps
from symattn.verify import programs
from tests.variants.entries import numbers_for

SIZES = {"B": 1, "H": 2, "Hkv": 2, "G": 2, "n": 3, "m": 7, "d": 4, "dv": 4, "dmodel": 4, "dout": 4}
FORWARD = {
    "softmax": ("multi-head", "naive-O"),
    "softmax, divided last": ("multi-head", "flash-O"),
    "log-sum-exp": ("multi-head", "flash-L"),
    "softcap": ("softcap", "flash-O"),
    "alibi": ("alibi", "flash-O"),
    "sink": ("sink", "flash-O"),
    "grouped heads": ("grouped-query", "flash-O"),
    "sigmoid": ("sigmoid-attention", "naive-O"),
    "linear": ("linear-attention", "naive-O"),
    "differential": ("differential", "naive-O"),
    "projection": ("multi-head-projections", "naive-Y"),
    "causal": ("causal", "flash-O"),
    "query and key norm": ("qk-norm", "flash-O"),
    "rope": ("rope", "flash-O"),
    "dV": ("multi-head", "flash-dV"),
    "softcap dQ": ("softcap", "flash-dQ"),
    "sink dK": ("sink", "flash-dK"),
}
COARSE = arithmetic.uniform("coarse", "bfloat16", exp_error=2.0**-6, log_error=2.0**-6, tanh_error=2.0**-6)
LESS_COARSE = arithmetic.uniform("less coarse", "float16", exp_error=2.0**-10, log_error=2.0**-10, tanh_error=2.0**-10)
LONG = {"projection", "rope"}
"""Lists so long that nothing is promised of them in bfloat16 throughout."""


def case(name):
    """The list, its numbers, and the output."""
    row, kind = FORWARD[name]
    algorithm, out = kind.split("-")
    definition = variants.get(row).definition
    how = arithmetic.get("flash-fp32" if algorithm == "flash" else "eager-fp32")
    program = programs.followed(definition.program(), how, gradient=out.startswith("d"))
    program = program.with_statements(program.statements, (out,)).live()
    sizes = {str(s): SIZES.get(str(s), 2) for s in program.sizes}
    given = numbers_for(program, sizes, 4)
    arrays = {n: np.vectorize(float, otypes=[float])(np.asarray(x)).astype(np.float32) for n, x in given.items()}
    rng = np.random.default_rng(1)
    for n in set(arrays) - program.discrete:
        arrays[n] = arrays[n] + rng.standard_normal(arrays[n].shape).astype(np.float32) / 2
    return program, arrays, sizes, out


def with_errors(program, names, cut):
    """The list in which each named tensor, inputs apart, has an error added: a new input.

    What is cut enters a statement with its true value, another input: the error of the statement covers what it is off by.
    """
    statements, shapes = [], {}
    for s in program:
        true = {x: tensor("true_" + name_of(x), *subscripts_of(x)) for x in s.reads if (name_of(x), s.name) in cut}
        shapes |= {name_of(true[x]): program.shape_of(program[name_of(x)]) for x in true}
        s = replace(s, expr=s.expr.xreplace(true))
        if s.name not in names:
            statements.append(s)
            continue
        exact = tensor(s.name + "_exact", *s.indices)
        error = tensor("err_" + s.name, *s.indices)
        statements += [replace(s, target=exact), Statement(s.target, exact + error)]
    shapes |= {"err_" + n: program.shape_of(program[n]) for n in names}
    return Program(tuple(statements), program.dims, program.outputs, {**program.shapes, **shapes})


def attained(name, how):
    """The greatest share of the bound that worst-sign errors reach, over some elements."""
    program, arrays, sizes, out = case(name)
    evaluation = Evaluation(program, arrays, how, sizes=sizes)
    sweeps = Sweeps(evaluation)
    local = sweeps.local(out)
    plan = plan_for(sweeps.situation(), out)
    bound, names = sweeps.bound(out), [t.name for t in plan.terms if t.name in program]
    perturbed = with_errors(program, set(names), plan.cut)
    gradient = backward(perturbed, ["err_" + n for n in dict.fromkeys(names)])
    none = {"err_" + n: np.zeros_like(evaluation.boxes[n].value) for n in names}
    base = {k: v.astype(float) if v.dtype.kind == "f" else v for k, v in arrays.items()}
    whole = floats.evaluate(program, base, sizes=sizes, dtype="float64")
    base |= {n: whole[n.removeprefix("true_")] for n in perturbed.inputs if n.startswith("true_")}
    true = floats.evaluate(perturbed, {**base, **none}, sizes=sizes, dtype="float64")[out]
    assert np.isfinite(bound).all()
    rng, most = np.random.default_rng(2), 0.0
    for _ in range(3):
        at = tuple(rng.integers(0, k) for k in bound.shape)
        seed = np.zeros(bound.shape)
        seed[at] = 1.0
        found = floats.evaluate(gradient.program, {**base, **none, gradient.seeds[out]: seed}, sizes=sizes, dtype="float64")
        signs = {n: np.sign(found[gradient.gradients["err_" + n]]) for n in names}
        for flip in (1, -1):
            errors = {"err_" + n: flip * signs[n] * local.error(n) for n in names}
            moved = floats.evaluate(perturbed, {**base, **errors}, sizes=sizes, dtype="float64")[out]
            most = max(most, float(np.abs(moved - true)[at] / bound[at]))
            assert (np.abs(moved - true) <= bound * (1 + 1e-9) + 1e-15).all()
    return most


@pytest.mark.parametrize("name", FORWARD)
def test_worst_sign_errors_reach_the_bound_and_coarse_ones_never_pass_it(name):
    assert attained(name, arithmetic.uniform("fine", "float32")) > 0.99
    assert 0.05 < attained(name, LESS_COARSE if name in LONG else COARSE) <= 1
