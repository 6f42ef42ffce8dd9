"""Computed values never leave the bound, wrong ones do, and the bound is no larger than it has to be."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import sympy as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from symattn import arithmetic
from symattn.adjoint import adjoint
from symattn.definition import Definition
from symattn.errors import InputValueError, ProgramError, ShapeError
from symattn.presentation import present
from symattn.program import Program, Statement, indices, size, tensor
from symattn.readings import rounding
from symattn.verify.lists import kernel_program, staged
from tests.programs import CASES, SIZES
from tests.readings import simulated as sim

i, j, c = indices("i j c")
n, m, d = size("n"), size("m"), size("d")
T = tensor
GRADIENTS = ("dQ", "dK", "dV")
CAUSAL = np.arange(40) <= np.arange(24)[:, None] + 16
MASKS = {"none": np.ones((24, 40), bool), "causal": CAUSAL, "empty rows": np.arange(40) <= np.arange(24)[:, None] - 5}
FIELDS = {"none": {}, "causal": {"causal": "bottom-right"}, "empty rows": {"mask": "j <= i - 5"}}


@cache
def lists(mask="none", softcap=None):
    p = Definition(heads=2, softcap=softcap, **FIELDS[mask]).program()
    g = present(p, adjoint(p))
    return {a: kernel_program(p, g, arithmetic.get(f"{'flash' if a == 'flash' else 'eager'}-bf16")) for a in ("flash", "naive")}


def bounds(program, how, q, k, v, do):
    given = {"Q": q, "K": k, "V": v, "dO": do, "dL": np.zeros(q.shape[:2], q.dtype)}
    return rounding.evaluate(program, given, how)


def share(computed, true, box):
    """The greatest error as a share of the bound; -inf must be met exactly."""
    infinite = np.isinf(true)
    assert (np.asarray(computed)[infinite] == true[infinite]).all() and not box.bound[infinite].any()
    error = np.abs(np.where(infinite, 0, computed - np.where(infinite, 0, true)))
    with np.errstate(divide="ignore", invalid="ignore"):
        return float(np.nanmax(np.where(error == 0, 0, error / box.bound)))


KERNELS = {
    "naive": (sim.naive, {}, {"algorithm": "naive", "staged": False, "tile": None}),
    "naive reversed": (sim.naive, {"order": "reversed"}, {"algorithm": "naive", "staged": False, "tile": None}),
    "flash 16": (sim.flash, {}, {"tile": 16}),
    "flash 7": (sim.flash, {"tile": 7}, {"tile": 7}),
    "flash 1": (sim.flash, {"tile": 1}, {"tile": 1}),
    "flash permuted": (sim.flash, {"order": "permuted"}, {"tile": 16}),
    "flash folded": (sim.flash, {"fold": True}, {"tile": 16}),
    "flash float32 P": (sim.flash, {"p": None}, {"tile": 16}),
    "flash prescaled": (sim.flash, {"prescale": True}, {"tile": 16, "scale_before": 1}),
}


@pytest.mark.parametrize("io", ["bfloat16", "float16", "float32"])
@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("kernel", KERNELS)
def test_correct_forward_kernels_stay_within_the_bound(kernel, mask, io):
    run, options, declared = KERNELS[kernel]
    how = sim.How(**({"io": io, "p": io} | options))
    ar = arithmetic.flash(io, **declared)
    for law in sim.LAWS if mask == "none" else ("large", "subnormal"):
        q, k, v, do = sim.inputs(law, io, seed=3)
        out, lse = run(q, k, v, MASKS[mask], 0.25, how)
        true = sim.exact(q, k, v, MASKS[mask], 0.25)
        box = bounds(lists(mask)["flash" if ar.algorithm == "flash" else "naive"], ar, q, k, v, do)
        assert share(out, true["O"], box["O"]) <= 1, law
        assert share(lse, true["L"], box["L"]) <= 1, law


@pytest.mark.parametrize("io", ["bfloat16", "float16", "float32"])
@pytest.mark.parametrize("mask", MASKS)
def test_correct_flash_gradients_stay_within_the_bound_staged_and_end_to_end(mask, io):
    for options in ({}, {"tile": 5, "order": "reversed"}, {"p": None}):
        how = sim.How(**({"io": io, "p": io} | options))
        ar = arithmetic.flash(io, tile=how.tile)
        for law in sim.LAWS if mask == "none" else ("large", "cancelV", "subnormal"):
            q, k, v, do = sim.inputs(law, io, seed=4)
            out, lse = sim.flash(q, k, v, MASKS[mask], 0.25, how)
            grads = sim.flash_backward(q, k, v, do, MASKS[mask], 0.25, out, lse, how)
            true = sim.exact(q, k, v, MASKS[mask], 0.25, do)
            whole = lists(mask)["flash"]
            box = bounds(whole, ar, q, k, v, do)
            given = {"Q": q, "K": k, "V": v, "dO": do, "dL": np.zeros(q.shape[:2]), "O": out, "L": lse}
            part = rounding.evaluate(staged(whole, ("O", "L")), given, ar)
            for name, x in zip(GRADIENTS, grads, strict=True):
                assert share(x, true[name], box[name]) <= 1, (law, name)
                assert share(x, part[name].value, part[name]) <= 1, (law, name)


@pytest.mark.parametrize("io", ["bfloat16", "float16"])
@pytest.mark.parametrize("mask", MASKS)
def test_correct_eager_kernels_stay_within_the_bound(mask, io):
    for law in sim.LAWS:
        q, k, v, do = sim.inputs(law, io, seed=5)
        true = sim.exact(q, k, v, MASKS[mask], 0.25, do)
        box = bounds(lists(mask)["naive"], arithmetic.eager(io), q, k, v, do)
        for name, x in zip(("O", *GRADIENTS), sim.eager(q, k, v, do, MASKS[mask], 0.25, io), strict=True):
            assert share(x, true[name], box[name]) <= 1, (law, name)


def test_softcap_kernels_stay_within_the_bound_and_one_without_leaves_it():
    for io in ("bfloat16", "float32"):
        q, k, v, do = sim.inputs("large", io, seed=6)
        how = sim.How(io=io, p=io, softcap=20.0)
        true = sim.exact(q, k, v, MASKS["none"], 0.25, do, softcap=20.0)
        box = bounds(lists(softcap=20)["flash"], arithmetic.flash(io, tile=16), q, k, v, do)
        out, lse = sim.flash(q, k, v, MASKS["none"], 0.25, how)
        grads = sim.flash_backward(q, k, v, do, MASKS["none"], 0.25, out, lse, how)
        for name, x in zip(("O", "L", *GRADIENTS), (out, lse, *grads), strict=True):
            assert share(x, true[name], box[name]) <= 1, (io, name)
        wrong, lse = sim.flash(q, k, v, MASKS["none"], 0.25, replace(how, softcap=0.0))
        assert share(wrong, true["O"], box["O"]) > 1 and share(lse, true["L"], box["L"]) > 1


@pytest.mark.parametrize(
    "fault", [{"scale_error": 0.01}, {"dropped_key": 39}, {"dropped_key": 0}], ids=["scale 1% off", "last key", "first key"]
)
@pytest.mark.parametrize("io", ["bfloat16", "float16", "float32"])
def test_wrong_kernels_leave_the_bound(fault, io):
    q, k, v, do = sim.inputs("normal", io, seed=7, d=64)
    out, lse = sim.flash(q, k, v, MASKS["none"], 0.125, sim.How(**({"io": io, "p": io} | fault)))
    box = bounds(lists()["flash"], arithmetic.flash(io, tile=16), q, k, v, do)
    true = sim.exact(q, k, v, MASKS["none"], 0.125)
    assert share(lse, true["L"], box["L"]) > 1
    if "dropped_key" in fault or io == "float32":
        assert share(out, true["O"], box["O"]) > 1


def test_a_window_one_key_wider_leaves_the_bound():
    q, k, v, _ = sim.inputs("normal", "bfloat16", seed=8)
    distance = np.arange(24)[:, None] + 16 - np.arange(40)
    program = kernel_program(
        Definition(heads=2, causal="bottom-right", window=(8, 0)).program(), None, arithmetic.get("flash-bf16")
    )
    box = rounding.evaluate(program, {"Q": q, "K": k, "V": v}, arithmetic.flash("bfloat16", tile=16))
    how = sim.How()
    right, wrong = ((distance >= 0) & (distance < w) for w in (8, 9))
    true = sim.exact(q, k, v, right, 0.25)["O"]
    assert (
        share(sim.flash(q, k, v, right, 0.25, how)[0], true, box["O"])
        <= 1
        < share(sim.flash(q, k, v, wrong, 0.25, how)[0], true, box["O"])
    )


def test_a_backward_without_the_row_sums_leaves_the_bound():
    q, k, v, do = sim.inputs("normal", "bfloat16", seed=9)
    how = sim.How(no_d=True)
    out, lse = sim.flash(q, k, v, MASKS["none"], 0.25, how)
    grads = sim.flash_backward(q, k, v, do, MASKS["none"], 0.25, out, lse, how)
    true, box = (
        sim.exact(q, k, v, MASKS["none"], 0.25, do),
        bounds(lists()["flash"], arithmetic.flash("bfloat16", tile=16), q, k, v, do),
    )
    assert share(grads[0], true["dQ"], box["dQ"]) > 1 and share(grads[1], true["dK"], box["dK"]) > 1


@pytest.mark.parametrize(
    ("io", "factors"),
    [("bfloat16", (8, 300, 40, 40, 10)), ("float16", (8, 300, 40, 40, 10)), ("float32", (400, 300, 2500, 2500, 600))],
)
def test_the_bound_is_not_vacuous(io, factors):
    q, k, v, do = sim.inputs("normal", io, seed=10, n=64, m=128, d=64)
    keep, how = np.ones((64, 128), bool), sim.How(io=io, p=io)
    out, lse = sim.flash(q, k, v, keep, 0.125, how)
    grads = sim.flash_backward(q, k, v, do, keep, 0.125, out, lse, how)
    true, box = sim.exact(q, k, v, keep, 0.125, do), bounds(lists()["flash"], arithmetic.flash(io, tile=16), q, k, v, do)
    for name, x, factor in zip(("O", "L", *GRADIENTS), (out, lse, *grads), factors, strict=True):
        assert box[name].bound.max() < factor * np.abs(x - true[name]).max(), name


def test_float64_kernels_are_judged_too():
    q, k, v, do = sim.inputs("normal", "float64", seed=11)
    how = sim.How(io="float64", p="float64")
    true = sim.exact(q, k, v, MASKS["causal"], 0.25, do)
    box = bounds(lists("causal")["flash"], arithmetic.flash("float64", tile=16), q, k, v, do)
    out, lse = sim.flash(q, k, v, MASKS["causal"], 0.25, how)
    grads = sim.flash_backward(q, k, v, do, MASKS["causal"], 0.25, out, lse, how)
    for name, x in zip(("O", "L", *GRADIENTS), (out, lse, *grads), strict=True):
        assert share(x, true[name], box[name]) <= 1, name
        assert box[name].bound.max() < 1e-11, name
    assert 1e-15 < box["O"].bound.max() < 1e-12
    assert share(sim.naive(q, k, v, MASKS["causal"], 0.25, replace(how, noise=1e-10))[0], true["O"], box["O"]) > 1


def test_the_own_value_of_the_evaluation_is_within_its_own_bound():
    """The float64 values are those of a kernel in float64 arithmetic, so the bound of that arithmetic encloses the truth."""
    q, k, v, do = sim.inputs("large", "float32", seed=12)
    box = bounds(lists()["flash"], arithmetic.uniform("own", "float64", algorithm="flash"), q, k, v, do)
    true = sim.exact(q, k, v, MASKS["none"], 0.25, do)
    for name in ("O", "L", *GRADIENTS):
        assert share(box[name].value, true[name], box[name]) <= 1, name
        assert np.abs(box[name].value - true[name]).max() > 0


def test_an_empty_row_is_exact():
    q, k, v, do = sim.inputs("normal", "bfloat16")
    box = bounds(lists("empty rows")["flash"], arithmetic.get("flash-bf16"), q, k, v, do)
    assert (box["L"].value[:, :5] == -np.inf).all() and not box["L"].bound[:, :5].any()
    for name in ("O", "dQ"):
        assert not box[name].value[:, :5].any() and not box[name].bound[:, :5].any()
    assert np.isfinite(box["dK"].bound).all() and np.isfinite(box["L"].bound).all()


def test_what_a_mask_hides_never_leaks():
    q, k, v, do = sim.inputs("normal", "bfloat16")
    clean = bounds(lists("causal")["flash"], arithmetic.get("flash-bf16"), q, k, v, do)
    k[:, 39], v[:, 39] = np.nan, np.inf
    box = bounds(lists("causal")["flash"], arithmetic.get("flash-bf16"), q, k, v, do)
    for name in ("O", "dQ"):
        assert np.array_equal(box[name].value[:, :-1], clean[name].value[:, :-1]) or np.allclose(
            box[name].value[:, :-1], clean[name].value[:, :-1], rtol=1e-12, atol=1e-14
        )
        assert np.isfinite(box[name].bound[:, :-1]).all()


def test_overflow_in_the_declared_format_has_no_bound():
    q, k, v, do = sim.inputs("normal", "float16")
    box = bounds(lists()["naive"], arithmetic.eager("float16"), 300 * q, 300 * k, v, do)
    assert np.isinf(box["R"].bound).any() and np.isinf(box["O"].bound).any()
    assert np.isfinite(bounds(lists()["flash"], arithmetic.flash("float16"), 300 * q, 300 * k, v, do)["L"].bound).all()


def test_a_declared_depth_and_more_tiles_move_the_bound_the_right_way():
    q, k, v, do = sim.inputs("normal", "float32", m=400)
    base = arithmetic.flash("float32", tile=400)
    any_order, depth, tiles = (
        bounds(lists()["flash"], a, q, k, v, do)["O"].bound for a in (base, replace(base, depth=12), replace(base, tile=20))
    )
    assert (depth < 0.5 * any_order).all() and (tiles > any_order).all()


# -------------------------------------------------------------------------------- any program


def numbers(program, discrete, rng):
    sizes = {s: SIZES[str(s)] for s in program.sizes}
    shape = lambda x: [int(sp.sympify(v).xreplace({k: sp.Integer(q) for k, q in sizes.items()})) for v in program.shapes[x]]
    return {
        x: np.array(discrete[x]) if x in discrete else rng.standard_normal(shape(x)).astype(np.float32) for x in program.inputs
    }, sizes


@pytest.mark.parametrize("preset", ["flash-bf16", "eager-fp16", "numpy-fp32", "numpy-fp64"])
@pytest.mark.parametrize("name", CASES)
def test_every_program_has_finite_bounds_around_its_values_in_float64(name, preset):
    case = CASES[name]
    given, sizes = numbers(case.program, case.discrete, np.random.default_rng(1))
    found = rounding.evaluate(case.program, given, arithmetic.get(preset), sizes=sizes)
    for o in case.program.outputs:
        box = found[o]
        assert {box.value.shape} == {x.shape for x in (box.bound, box.low, box.own)}
        assert np.isfinite(box.bound).all() and (box.bound >= 0).all()
        assert (box.low <= np.abs(box.value) + box.own).all()


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("name", CASES)
def test_the_numpy_reading_stays_within_the_bound(name, dtype):
    from symattn.readings import numpy as reading

    case, kind = CASES[name], sim.DTYPES[dtype]
    for seed in range(3):
        given, sizes = numbers(case.program, case.discrete, np.random.default_rng(seed))
        given = {x: a if x in case.discrete else a.astype(kind) for x, a in given.items()}
        with np.errstate(all="ignore"):
            low = reading.evaluate(case.program, given, sizes=sizes, dtype=kind)
        found = rounding.evaluate(case.program, given, arithmetic.rounded_throughout(dtype), sizes=sizes)
        for s in case.program:
            if not s.range_only and not (found[s.name].rescalings or s.aux):
                assert share(low[s.name].astype(np.float64), found[s.name].value, found[s.name]) <= 1, s.name


OPERATIONS = (
    lambda x, y: x + y,
    lambda x, y: x - y,
    lambda x, y: x * y,
    lambda x, y: x / (2 + y * y),
    lambda x, y: sp.exp(x) * y,
    lambda x, y: sp.tanh(x) - y,
    lambda x, y: sp.Max(x, y),
    lambda x, y: sp.sqrt(1 + x**2) + sp.Rational(1, 3) * y,
    lambda x, y: sp.log(1 + x**2) * y,
    lambda x, y: sp.sin(x) + sp.cos(y),
    lambda x, y: sp.Abs(x) ** 3 - y / sp.sqrt(3),
)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(st.data())
def test_float32_values_of_random_programs_stay_within_the_bound(data):
    from symattn.readings import numpy as reading

    pool, statements = [T("A", i, c), T("B", j, c), T("u", i), T("w", j)], []
    for k in range(data.draw(st.integers(1, 4))):
        x, y = (data.draw(st.sampled_from(pool)) for _ in range(2))
        e = data.draw(st.sampled_from(OPERATIONS))(x, y)
        used = [a for a in (i, j, c) if any(a in t.indices for t in e.atoms(sp.Indexed))]
        over = tuple(a for a in used if data.draw(st.booleans()))
        kind = data.draw(st.sampled_from(("sum", "sum", "max")))
        where = data.draw(st.sampled_from((sp.true, sp.Le(i, j)))) if {i, j} <= set(used) else sp.true
        if kind == "max" or set(over) == set(used):
            where = sp.true
        free = tuple(a for a in used if a not in over)
        target = T(f"t{k}", *free) if free else T(f"t{k}")
        statements.append(Statement(target, e, over, kind if over else "sum", where))
        if free:
            pool.append(target)
    program = Program(tuple(statements), {i: n, j: m, c: d}, (statements[-1].name,))
    rng = np.random.default_rng(data.draw(st.integers(0, 10**6)))
    shapes = {"A": (3, 5), "B": (4, 5), "u": (3,), "w": (4,)}
    scale = data.draw(st.sampled_from((0.1, 1.0, 4.0)))
    given = {x: (scale * rng.standard_normal(shapes[x])).astype(np.float32) for x in program.inputs}
    with np.errstate(all="ignore"):
        low = reading.evaluate(program, given, sizes={"n": 3, "m": 4, "d": 5})
    found = rounding.evaluate(program, given, arithmetic.get("numpy-fp32"), sizes={"n": 3, "m": 4, "d": 5})
    for s in statements:
        with np.errstate(invalid="ignore"):
            inside = np.abs(low[s.name].astype(np.float64) - found[s.name].value) <= found[s.name].bound + found[s.name].own
        assert (inside | ~np.isfinite(low[s.name])).all(), s
        finite = np.isfinite(low[s.name])
        assert (found[s.name].low[finite] <= np.abs(low[s.name][finite])).all(), s


def test_where_a_kernel_may_cross_an_edge_it_is_off_by_the_term_at_most():
    y = T("y", i)
    p = Program(
        (
            Statement(y, T("x", i) * T("x", i)),
            Statement(T("z", i), y, where=sp.Gt(y, 2)),
            Statement(T("s"), y, (i,), where=sp.Gt(y, 2)),
        ),
        {i: n},
        ("z", "s"),
    )
    safe = rounding.evaluate(p, {"x": np.float32([1, 2])}, arithmetic.get("eager-fp32"))
    assert safe["z"].value.tolist() == [0, 4] and safe["z"].bound[0] == 0 and safe["s"].bound < 1e-6
    near = rounding.evaluate(p, {"x": np.float32([1, np.sqrt(2)])}, arithmetic.get("eager-fp32"))
    assert near["z"].bound[0] == 0 and 2 <= near["z"].bound[1] < 2.00001 and 2 <= near["s"].bound < 2.00001


def test_exact_arithmetic_costs_nothing():
    p = Program((Statement(T("scale"), 1 / sp.sqrt(d)), Statement(T("y", c), T("scale") * T("x", c))), {c: d}, ("y",))
    even, odd = (rounding.evaluate(p, {"x": np.ones(k, np.float32)}, arithmetic.get("eager-fp32")) for k in (16, 10))
    assert (even["y"].bound <= 2.0**-125).all() and (even["y"].own <= 2.0**-1021).all()  # what could underflow
    assert 2**-25 < odd["scale"].bound / odd["scale"].value < 2.1 * 2**-24


def test_what_is_refused():
    p = Program((Statement(T("y", i), sp.gamma(T("x", i))),), {i: n}, ("y",))
    with pytest.raises(ProgramError, match="no rule for the function gamma"):
        rounding.evaluate(p, {"x": np.ones(2)}, arithmetic.get("eager-fp32"))
    q = Program((Statement(T("y", i), T("x", i)),), {i: n}, ("y",))
    with pytest.raises(InputValueError, match="missing: x"):
        rounding.evaluate(q, {}, arithmetic.get("eager-fp32"))
    with pytest.raises(ShapeError):
        rounding.evaluate(q, {"x": np.ones((2, 2))}, arithmetic.get("eager-fp32"))
