"""The bound from slopes: as sharp as the one derived by hand, sound for computed values, plain where nothing is shared."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import sympy as sp

from symattn import arithmetic, variants
from symattn.definition import Definition
from symattn.errors import UnknownNameError
from symattn.program import Program, Statement, indices, size, tensor
from symattn.readings import floats as formats
from symattn.readings import numpy as floats
from symattn.readings import rounding, slopes
from symattn.readings.rounding import Evaluation
from symattn.readings.slopes.sweep import Sweeps
from symattn.verify import programs
from tests.readings import handbound
from tests.readings import simulated as sim
from tests.support import rows
from tests.variants.entries import SPECIAL, numbers_for

T = tensor
i, j, c = indices("i j c")
n, m, d = size("n"), size("m"), size("d")
LAWS = sim.LAWS[:7]


def listed(how, gradient=False, **fields):
    return programs.followed(Definition(heads=2, **fields).program(), how, gradient=gradient)


@pytest.mark.parametrize("io", ["bfloat16", "float16", "float32"])
@pytest.mark.parametrize("law", LAWS)
def test_it_is_the_bound_derived_by_hand(law, io):
    columns = 16 if law == "hugelogit" else 64
    scale = columns**-0.5
    q, k, v, _ = sim.inputs(law, io, seed=1, n=8, m=192, d=columns)
    how = arithmetic.flash(io, tile=64)
    program = listed(how)
    of_o, of_l = handbound.forward(q, k, v, scale, io, 64)
    exact = slopes.bounds(program, {"Q": q, "K": k, "V": v}, how)
    for name, by_hand in (("O", of_o), ("L", of_l)):
        share = exact[name].bound / by_hand
        most = 1.07 if (law, name) == ("hugelogit", "O") else 1.05
        assert 0.85 < np.median(share) <= share.max() < most, (name, np.median(share), share.max())
    weighted = slopes.bounds(program, {"Q": q, "K": k, "V": v}, how, each=0)
    share = weighted["O"].bound / of_o
    assert np.median(share) < 1.25 and share.max() < 4.2


@pytest.mark.parametrize("io", ["bfloat16", "float16", "float32"])
@pytest.mark.parametrize("laws", [("large", "hugelogit"), pytest.param(sim.LAWS, marks=pytest.mark.slow)], ids=["some", "all"])
def test_correct_kernels_stay_within_it_and_wrong_ones_leave_it(io, laws):
    everything = np.ones((24, 40), bool)
    how = arithmetic.flash(io, tile=16)
    program = listed(how, gradient=True)
    for law in laws:
        q, k, v, do = sim.inputs(law, io, seed=4)
        kernel = sim.How(io=io, p=io)
        out, lse = sim.flash(q, k, v, everything, 0.25, kernel)
        grads = sim.flash_backward(q, k, v, do, everything, 0.25, out, lse, kernel)
        true = sim.exact(q, k, v, everything, 0.25, do)
        given = {"Q": q, "K": k, "V": v, "dO": do, "dL": np.zeros(q.shape[:2], np.float32)}
        for each in (0, 2**21):
            found = slopes.bounds(program, given, how, each=each)
            for name, x in zip(("O", "L", "dQ", "dK", "dV"), (out, lse, *grads), strict=True):
                assert (np.abs(x - true[name]) <= found[name].bound).all(), (law, name)
                assert (np.abs(found[name].value - true[name]) <= found[name].own + 1e-18 * np.abs(true[name])).all(), (law, name)
    q, k, v, do = sim.inputs("normal", io, seed=7, d=64)
    lse = sim.flash(q, k, v, everything, 0.125, sim.How(io=io, p=io, scale_error=0.01))[1]
    bound = slopes.bounds(program, {**given, "Q": q, "K": k, "V": v, "dO": do}, how, ["L"])["L"].bound
    assert (np.abs(lse - sim.exact(q, k, v, everything, 0.125)["L"]) > bound).any()


def test_end_to_end_it_is_far_below_plain_propagation():
    q, k, v, do = sim.inputs("meanV", "float32", seed=2)
    how = arithmetic.flash("float32", tile=16)
    given = {"Q": q, "K": k, "V": v, "dO": do, "dL": np.zeros(q.shape[:2], np.float32)}
    program = listed(how, gradient=True)
    plain, found = rounding.evaluate(program, given, how), slopes.bounds(program, given, how)
    for name, least in (("O", 2), ("dQ", 5), ("dK", 2), ("dV", 0.99)):
        ratio = plain[name].bound / found[name].bound
        assert np.median(ratio) > least and (ratio >= 1).all(), (name, np.median(ratio))


def test_where_errors_take_one_path_plain_propagation_is_kept():
    q, k, v, do = sim.inputs("large", "bfloat16", seed=3)
    how = arithmetic.get("flash-bf16")
    part = programs.staged(listed(how, gradient=True), ("O", "L"))
    given = {"Q": q, "K": k, "V": v, "dO": do, "dL": np.zeros(q.shape[:2], np.float32)}
    given |= {"O": v[:, :24], "L": np.zeros(q.shape[:2], np.float32) + 30}
    plain, found = rounding.evaluate(part, given, how), slopes.bounds(part, given, how)
    for name in part.outputs:
        assert np.array_equal(plain[name].bound, found[name].bound), name
    product = Program((Statement(T("y", i, j), T("A", i, c) * T("B", j, c), (c,)),), {i: n, j: m, c: d}, ("y",))
    sweeps = Sweeps(Evaluation(product, {"A": q[0], "B": k[0]}, how))
    assert not sweeps.worthwhile("y")
    assert np.allclose(sweeps.bound("y"), sweeps.evaluation.boxes["y"].bound, rtol=1e-9)


def test_dividing_first_and_last_give_the_same():
    """What both lists declare they are charged alike; they differ in one rounding: of each P, or of O once more."""
    q, k, v, _ = sim.inputs("large", "float32", seed=5)
    first, last = (replace(arithmetic.get("eager-fp32"), algorithm=a, depth=None) for a in ("naive", "flash"))
    a, b = (slopes.bounds(listed(how), {"Q": q, "K": k, "V": v}, how, ["O"], parts=True)["O"] for how in (first, last))
    assert np.abs(np.median(a.bound / b.bound) - 1) < 0.01 and not any("cut" in source for source in a.parts)
    shared = {source for source in (*a.parts, *b.parts) if source.split(":")[0] not in ("P", "N", "O")}
    assert {s.split(":")[0] for s in shared} == {"R", "S", "E", "l"}
    for source in shared:
        assert np.allclose(a.parts[source], b.parts[source], rtol=1e-9), source


def test_the_parts_add_up_and_name_what_the_kernel_does():
    q, k, v, _ = sim.inputs("normal", "bfloat16", seed=6)
    how = arithmetic.flash("bfloat16", tile=16, exp_error=1e-3)
    found = slopes.bounds(listed(how), {"Q": q, "K": k, "V": v}, how, parts=True)
    for b in found.values():
        total = sum(b.parts.values())
        assert (total >= b.bound * (1 - 1e-6)).all() and np.median(total / b.bound) < 1.02
        assert all((part >= 0).all() for part in b.parts.values())
    assert max(found["O"].parts, key=lambda s: found["O"].parts[s].sum()) in ("N: cast", "O: storage")
    assert max(found["L"].parts, key=lambda s: found["L"].parts[s].sum()) == "E: exp"
    subnormal = slopes.bounds(listed(how), {"Q": q, "K": k, "V": v * 2.0**-120}, how, ["O"], parts=True)["O"].parts
    assert "N: underflow" in subnormal


def test_what_a_mask_hides_never_leaks():
    q, k, v, _ = sim.inputs("large", "float32", seed=8)
    how = arithmetic.get("flash-fp32")
    program = listed(how, causal="bottom-right")
    clean = slopes.bounds(program, {"Q": q, "K": k, "V": v}, how)
    k[:, 39], v[:, 39] = np.nan, np.inf
    found = slopes.bounds(program, {"Q": q, "K": k, "V": v}, how)
    assert np.isfinite(found["O"].bound[:, :-1]).all() and np.isinf(found["O"].bound[:, -1]).all()
    assert (found["L"].bound[:, :-1] <= clean["L"].bound[:, :-1] * (1 + 1e-9)).all()


def test_a_condition_that_rounding_could_turn_is_charged_as_a_whole():
    y = T("y", i)
    statements = (
        Statement(y, T("x", i) * T("x", i)),
        Statement(T("z", i), y - y**2, where=sp.Gt(y, 2)),
        Statement(T("w", i), T("z", i) + y),
    )
    p = Program(statements, {i: n}, ("w",))
    how = arithmetic.get("eager-fp32")
    near = slopes.bounds(p, {"x": np.float32([1, np.sqrt(2)])}, how)["w"].bound
    assert near[0] < 1e-6 and 2 <= near[1] < 2.0001


@pytest.mark.parametrize("name", rows())
def test_float_values_of_every_variant_and_its_gradient_stay_within_it(name):
    """Slopes alone, without plain propagation to fall back on, in both ways of summing them."""
    program = programs.presented(variants.get(name).definition.program()).program
    sizes = {str(s): {"n": 3, "m": 4, "d": 4, "dv": 3, "dmodel": 4}.get(str(s), 2) for s in program.sizes}
    sizes |= {k: v for k, v in SPECIAL.get(name, {}).items() if k not in ("n", "m", "d", "dv")}
    given = numbers_for(program, sizes, 3)
    for format, each in (("float32", 2**21), ("bfloat16", 0)):
        kind = formats.dtype_of(format)
        arrays = {x: np.vectorize(float, otypes=[float])(np.asarray(a)).astype(kind) for x, a in given.items()}
        arrays |= {x: np.asarray(given[x]).astype(np.int64) for x in program.discrete}
        with np.errstate(all="ignore"):
            low = floats.evaluate(program, arrays, sizes=sizes, dtype=kind)
        evaluation = Evaluation(program, arrays, arithmetic.rounded_throughout(format), sizes=sizes)
        sweeps = Sweeps(evaluation, each)
        for out in program.outputs:
            box, bound = evaluation.boxes[out], sweeps.bound(out)
            with np.errstate(invalid="ignore"):
                error = np.abs(low[out].astype(float) - box.value)
                assert ((error <= bound + box.own) | ~np.isfinite(box.value)).all(), (format, out)


def test_what_is_refused():
    p = Program((Statement(T("y", i), T("x", i) ** 2),), {i: n}, ("y",))
    with pytest.raises(UnknownNameError, match="no tensor 'z'"):
        slopes.bounds(p, {"x": np.ones(2)}, arithmetic.get("eager-fp32"), ["z"])
