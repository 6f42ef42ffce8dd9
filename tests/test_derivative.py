"""The derivative rule, against central differences at 80 digits in an evaluator that shares no code with it."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sp

from symattn.derivative import backward, derivative, forward, real_inputs
from symattn.errors import NotDifferentiableError, UnknownNameError
from symattn.program import Program, Statement, indices
from symattn.program import tensor as T
from tests.programs import CASES, DIMS, SIZES, Case, d, h, i, j, m, n, t
from tests.tiny import MP, numbers, run


def shape(program: Program, name: str) -> tuple[int, ...]:
    table = {sp.Symbol(k, integer=True, positive=True): sp.Integer(v) for k, v in SIZES.items()}
    return tuple(int(sp.sympify(v).xreplace(table)) for v in program.shapes[name])


def values(case: Case, seed: int = 0) -> dict:
    rng = np.random.default_rng(seed)
    out = {name: numbers(rng, *shape(case.program, name)) for name in real_inputs(case.program)}
    out |= {name: np.array(v, dtype=object) for name, v in case.discrete.items()}
    for name in {"cap", "scale"} & set(out):
        out[name] = MP.mpf(3) / 2
    if "M" in out and "M" not in case.discrete:
        out["M"][0, 1] = out["M"][2, 3] = MP.mpf("-inf")
    return out


def directions(program: Program, env: dict, seed: int = 1) -> dict:
    rng = np.random.default_rng(seed)
    out = {name: numbers(rng, *shape(program, name)) for name in real_inputs(program)}
    if "M" in out:
        out["M"] = np.where(env["M"] == MP.mpf("-inf"), MP.mpf(0), out["M"])
    return out


def tolerance(x):
    """35 digits: relative where numbers are large, the third derivative being so too."""
    return MP.mpf("1e-35") * max(1, np.max(np.abs(x)))


def dot(x, y):
    return np.sum(x * y)


@pytest.mark.parametrize("name", CASES)
def test_gradient_and_tangent_equal_central_differences(name):
    case = CASES[name]
    program, env = case.program, values(case)
    move, step = directions(program, env), MP.mpf("1e-20")
    back, ahead = backward(program), forward(program)
    seeds = {back.seeds[o]: numbers(np.random.default_rng(2), *shape(program, o)) for o in program.outputs}
    got = run(back.program, env | seeds, SIZES)
    jvp = run(ahead, env | {q + "_t": v for q, v in move.items()}, SIZES)
    up = run(program, env | {q: env[q] + step * v for q, v in move.items()}, SIZES)
    down = run(program, env | {q: env[q] - step * v for q, v in move.items()}, SIZES)
    slope = {o: (up[o] - down[o]) / (2 * step) for o in program.outputs}
    for o, o_t in zip(program.outputs, ahead.outputs, strict=True):
        assert np.max(np.abs(jvp[o_t] - slope[o])) < tolerance(slope[o])
    total = sum(dot(seeds[back.seeds[o]], slope[o]) for o in program.outputs)
    assert abs(sum(dot(got[back.gradients[q]], move[q]) for q in move) - total) < tolerance(total)
    for q in move:  # each gradient alone: a wrong one cannot hide behind another
        one = env | {q: env[q] + step * move[q]}, env | {q: env[q] - step * move[q]}
        ends = [run(program, v, SIZES) for v in one]
        want = sum(dot(seeds[back.seeds[o]], (ends[0][o] - ends[1][o]) / (2 * step)) for o in program.outputs)
        assert abs(dot(got[back.gradients[q]], move[q]) - want) < tolerance(want), q
        assert np.shape(got[back.gradients[q]]) == shape(program, q)


def lines(program: Program, start: int) -> list[str]:
    return [str(s) for s in program.statements[start:]]


def small(*statements: Statement, outputs=None, shapes=None) -> Program:
    return Program(statements, DIMS | {t: n}, outputs or (statements[-1].name,), shapes or {})


def test_a_read_at_a_shifted_index_is_solved_and_at_a_number_scattered():
    prog = small(Statement(T("x", t), T("u", t - 1) * T("v", 0), where=sp.Ge(t, 1)), shapes={"v": (m,), "u": (n,)})
    back = backward(prog).program
    assert lines(back, 1) == [
        "du[i] = dx[i + 1]*v[0]   where i < n - 1",
        "dv[j] = sum over t of dx[t]*u[t - 1]   where j == 0 and t >= 1",
    ]
    assert back.shapes["du"] == (n,) and back.shapes["dv"] == (m,)


def test_contributions_with_one_domain_share_a_statement_and_others_are_named_by_their_source():
    prog = small(
        Statement(T("l", i), T("E", i, j), (j,)),
        Statement(T("P", i, j), T("E", i, j) / T("l", i)),
    )
    assert lines(backward(prog).program, 2) == [
        "dl[i] = sum over j of -E[i, j]*dP[i, j]/l[i]**2",
        "dE[i, j] = dP[i, j]/l[i] + dl[i]",
    ]
    prog = small(Statement(T("l", i), T("E", i, j), (j,)), Statement(T("y", j), T("E", i, j) * T("l", i), (i,)))
    assert lines(backward(prog).program, 2) == ["dl[i] = sum over j of E[i, j]*dy[j]", "dE[i, j] = dl[i] + dy[j]*l[i]"]
    prog = small(Statement(T("y", i), T("E", i, j) * T("E", 0, j), (j,)), shapes={"E": (n, m)})
    assert lines(backward(prog).program, 1) == [
        "dE_y[i, j] = sum over i' of E[i', j]*dy[i']   where i == 0",
        "dE[i, j] = E[0, j]*dy[i] + dE_y[i, j]",
    ]


def test_a_bound_index_that_collides_is_primed_and_keeps_its_size():
    prog = Program((Statement(T("G", i, j), T("u", i) * T("u", j)),), {i: n, j: n}, ("G",))
    back = backward(prog).program
    assert "sum over i' of" in str(back) or "sum over j of" in str(back)
    prime = indices("i'")[0]
    assert back.dims.get(prime, n) == n


def test_an_output_that_is_read_downstream_has_a_seed_and_a_total_of_another_name():
    prog = small(Statement(T("O", i), T("u", i) ** 2), Statement(T("Y", i), T("O", i) ** 2), outputs=("O", "Y"))
    back = backward(prog)
    assert back.seeds == {"O": "dO", "Y": "dY"}
    assert lines(back.program, 2) == ["dO'[i] = 2*O[i]*dY[i] + dO[i]", "du[i] = 2*dO'[i]*u[i]"]


def test_the_gradient_by_an_input_that_no_output_depends_on_is_zero():
    prog = small(Statement(T("y", i), T("u", i) ** 2), Statement(T("side", i, j), T("v", i, j) * T("u", i)), outputs=("y",))
    assert lines(backward(prog, ["v"]).program, 2) == ["dv[i, j] = 0"]
    assert lines(forward(prog, ["v"]), 2) == ["side_t[i, j] = u[i]*v_t[i, j]", "y_t[i] = 0"]


def test_wrt_selects_and_orders_and_what_does_not_depend_on_it_is_left_out():
    prog = CASES["causal"].program
    back = backward(prog, ["V"]).program
    assert back.outputs == ("dV",) and lines(back, len(prog)) == ["dV[j, e] = sum over i of P[i, j]*dO[i, e]   where j <= i"]
    assert backward(prog, ["K", "Q"]).program.outputs == ("dK", "dQ")
    assert [s.name for s in backward(prog, ["P"]).program.statements[len(prog) :]] == ["dP"]


def test_a_gradient_of_a_gradient_gets_names_that_are_free():
    prog = small(Statement(T("y", i), T("u", i) ** 3))
    twice = backward(backward(prog).program)
    assert twice.seeds == {"du": "ddu"} and twice.gradients == {"u": "du'", "dy": "ddy"}
    assert lines(twice.program, 2) == ["du'[i] = 6*ddu[i]*dy[i]*u[i]", "ddy[i] = 3*ddu[i]*u[i]**2"]


def test_a_maximum_that_is_not_range_only_has_no_adjoint_and_is_named():
    prog = small(Statement(T("top", i), T("u", i, j), (j,), "max"), Statement(T("y", i, j), T("u", i, j) - T("top", i)))
    for rule in (backward, forward):
        with pytest.raises(NotDifferentiableError, match=r"top: a maximum that is not range_only"):
            rule(prog)
    prog = small(Statement(T("y", i), sp.Max(T("u", i), T("v", i))))
    for rule in (backward, forward):
        with pytest.raises(NotDifferentiableError, match=r"y: Max has no derivative"):
            rule(prog)
    assert backward(small(Statement(T("y", i), sp.Max(T("u", i), 0) * T("v", i))), ["v"]).program.outputs == ("dv",)


def test_wrt_must_exist_and_be_real():
    prog = CASES["embedding look-up"].program
    with pytest.raises(NotDifferentiableError, match="tok is read only in conditions and subscripts"):
        backward(prog, ["tok"])
    with pytest.raises(UnknownNameError, match="Did you mean 'Emb'"):
        forward(prog, ["Enb"])


def test_derivatives_of_rough_functions():
    u = T("u", i)
    assert derivative(sp.sign(u) * u, u) == sp.sign(u)
    assert derivative(sp.floor(u) + sp.Abs(u), u) == sp.sign(u)
    assert derivative(sp.Max(T("v", i), 0) * u, u) == sp.Max(T("v", i), 0)
    assert derivative(u * T("w", i), T("z", i)) == 0
    with pytest.raises(NotDifferentiableError, match="is not known"):
        derivative(sp.Function("g")(u), u)


def test_a_fresh_index_is_one_that_is_free_and_its_size_is_the_axis():
    prog = Program((Statement(T("x", h), T("u", 2 * h)),), {h: d}, ("x",), {"u": (2 * d,)})
    back = backward(prog).program
    assert lines(back, 1) == ["du[v] = sum over h of dx[h]   where v == 2*h"]
    assert back.shapes["du"] == (2 * d,)
