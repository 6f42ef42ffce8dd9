"""The benchmark of the rounding bounds on a tiny setting: its kernels are right, its faults are wrong, its page follows."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from benchmarks.rounding import __main__ as door
from benchmarks.rounding import alarms, caught, declared, gradients, kernels, page, planted, rules, tightness, work
from benchmarks.rounding.judging import Judge, misses, share
from benchmarks.rounding.laws import FORMATS, LAWS, MASKS, Problem, cast
from benchmarks.rounding.work import Task
from tests.readings import simulated

SMALL = {"keys": 160, "d": 24, "rows": 6}
SHAPES = {"full": {}, "window": {}, "causal": {"keys": 5, "rows": 8}, "softcap": {"keys": 80}}


def small(law="normal", fmt="bfloat16", mask="full", **changes):
    return Problem(law, fmt, mask=mask, **{**SMALL, **SHAPES[mask], **changes})


def exact(problem, gradient=False):
    a = problem.arrays
    k, v = (np.repeat(a[n], 2, axis=0) for n in "KV")
    do = a["dO"] if gradient else None
    return simulated.exact(a["Q"], k, v, problem.keep(), problem.scale, do, problem.softcap)


@pytest.mark.parametrize("mask", MASKS)
def test_kernels_compute_attention(mask):
    problem = small(fmt="float32", mask=mask)
    true = exact(problem)
    for kernel in declared.correct("float32"):
        if kernel.takes(problem):
            out, lse = kernel.run(problem)
            assert np.allclose(out.astype(float), true["O"].astype(float), atol=5e-6), kernel.name
            with np.errstate(invalid="ignore"):
                assert np.allclose(lse.astype(float), true["L"].astype(float), atol=5e-6), kernel.name


@pytest.mark.parametrize("mask", MASKS)
def test_the_backward_computes_gradients(mask):
    problem = small(fmt="float32", mask=mask)
    true = exact(problem, gradient=True)
    out, lse = declared.REFERENCE.run(problem)
    found = gradients.gradients(problem, out, lse, gradients.Backward("float32", "float32"))
    pairs = [true["dQ"], *(true[n].reshape(2, 2, *true[n].shape[1:]).sum(1) for n in ("dK", "dV"))]
    for x, t in zip(found, pairs, strict=True):
        assert np.allclose(x.astype(float), t.astype(float), atol=2e-5)


@pytest.mark.parametrize("fmt", FORMATS)
@pytest.mark.parametrize(
    "law, mask", [("normal", "full"), ("large", "window"), ("meanV", "causal"), ("hugelogit", "full"), ("onehot", "softcap")]
)
@pytest.mark.parametrize("part", [alarms.measure, alarms.measure_backward], ids=["forward", "backward"])
def test_no_correct_kernel_is_rejected(part, law, mask, fmt):
    for r in part(small(law, fmt, mask)):
        assert not r["outside"] and not r["missed"], r
        assert r["total"] and all(s <= 1 for s in r["shares"])


def test_kernels_are_as_many_as_they_say():
    problem = small("meanV", "float16")
    runs = {k.name: k.run(problem) for k in declared.correct("float16")}
    assert len(runs) == len(declared.correct("float16")) > 15
    different = {out.tobytes() + lse.tobytes() for out, lse in runs.values()}
    assert len(different) > 12


@pytest.mark.parametrize("fault", planted.FAULTS, ids=lambda f: f.name)
def test_a_planted_fault_changes_the_result(fault):
    how = kernels.How("bfloat16", "bfloat16")
    changed = []
    for law in ("normal", "large", "hugelogit"):
        for mask in fault.masks:
            problem = small(law, mask=mask)
            wrong, right = fault.run(problem, how), planted.run(problem, how)
            changed.append(any(not np.array_equal(x, y) for x, y in zip(wrong, right, strict=True)))
    assert any(changed)


@pytest.mark.parametrize("fault", gradients.FAULTS, ids=lambda f: f.name)
def test_a_planted_fault_changes_gradients(fault):
    changed = []
    for law in ("normal", "large"):
        for mask in fault.masks:
            problem = small(law, mask=mask, **({"keys": 12} if mask == "causal" else {}))
            out, lse = declared.REFERENCE.run(problem)
            how = gradients.Backward("bfloat16", "bfloat16")
            right = gradients.gradients(problem, out, lse, how)
            wrong = gradients.gradients(problem, out, lse, replace(how, faulty=fault.faulty(problem)))
            changed.append(any(not np.array_equal(x, y) for x, y in zip(wrong, right, strict=True)))
    assert any(changed)


def test_there_are_28_and_23_kinds():
    assert len({f.name for f in planted.FAULTS}) == 28 and len({f.name for f in gradients.FAULTS}) == 23


def test_each_way_of_judging_catches_more_than_the_one_before():
    found = {r["fault"]: r for r in caught.measure(small(d=32))}
    assert not set(found["correct"]["rejected"]) & set(page.OWN)
    bad = [set(r["rejected"]) for r in found.values() if r["fault"] != "correct" and not r["same"]]
    counts = [sum(way in r for r in bad) for way in (caught.BOUND_O, caught.BOUND, caught.DEPTH, caught.REPLAY)]
    assert counts == sorted(counts) and 0 < counts[0] < counts[1] < counts[3] and counts[3] >= 0.8 * len(bad)
    assert caught.BOUND_O not in found["scale 0.01 % off"]["rejected"] and caught.BOUND in found["scale 0.01 % off"]["rejected"]


def test_gradients_from_saved_tensors_show_more():
    found = {r["fault"]: r for r in caught.measure_backward(small(keys=64, d=32))}
    assert found["correct"]["rejected"] == [] or not set(found["correct"]["rejected"]) & {caught.STAGED, caught.WHOLE}
    bad = [set(r["rejected"]) for r in found.values() if r["fault"] != "correct" and not r["same"]]
    staged, whole = (sum(way in r for r in bad) for way in (caught.STAGED, caught.WHOLE))
    assert staged >= whole > 0 and staged > len(bad) / 2


def test_an_element_beyond_its_bound_is_outside():
    problem = small(keys=16)
    judge, how = Judge(problem), declared.replayed(problem)
    bounded = judge.bounds(how)["O"]
    for factor, outside in ((0.99, 0), (1.01, 1)):
        k = bounded.value.copy()
        k[0, 1, 2, 3] += factor * (bounded.bound + bounded.own)[0, 1, 2, 3]
        assert share(k, bounded).outside == outside
    k[0, 0, 0, 0] = np.nan
    assert share(k, bounded).outside == 2
    interval = judge.interval(how)
    assert misses(interval.high, interval) == 0 and misses(cast(2 * interval.high + 1, "bfloat16"), interval) > 0


def test_public_rules_are_those_of_the_suites():
    rng = np.random.default_rng(0)
    ref = rng.standard_normal((4, 6, 8))
    low = cast(ref + 4e-3 * rng.standard_normal(ref.shape), "bfloat16").astype(float)
    compared = rules.Compared(ref, low, "bfloat16")
    assert all(rules.accepted(compared.rounded, compared, 0.1).values())
    nothing = rules.accepted(np.zeros_like(ref), compared, 0.1)
    assert [name for name, yes in nothing.items() if yes] == ["PyTorch SDPA"]  # its rtol is the largest relative deviation
    off = np.abs(low - compared.rounded).max()
    one = compared.rounded.copy()
    one[0, 0, 0] += 2.2 * off
    said = rules.accepted(one, compared, 0.1)
    assert not said["2 x eager"] and said["mean 1.1 x eager"] and said["cosine 0.999"]
    assert rules.accepted(np.full_like(ref, np.nan), compared)["2e-2"] is False


def test_laws_give_numbers_of_the_format():
    for law in LAWS:
        for fmt in FORMATS:
            problem = small(law, fmt)
            assert all(np.array_equal(x, cast(x, fmt)) and np.isfinite(x).all() for x in problem.arrays.values())
            assert all(np.array_equal(x, small(law, fmt).arrays[n]) for n, x in problem.arrays.items())
    assert not np.array_equal(small().arrays["Q"], small(seed=1).arrays["Q"])
    assert not small(mask="causal").keep()[0].any() and small(mask="causal").keep()[-1].all()


TINY = (
    Task("tight", tightness.measure, small(keys=16)),
    Task("alarms", alarms.measure, small(keys=16)),
    Task("alarms-backward", alarms.measure_backward, small(keys=16)),
    Task("caught", caught.measure, small()),
    Task("caught-backward", caught.measure_backward, small(keys=16)),
)


def test_an_interrupted_run_is_taken_up_and_the_page_says_how_much_it_is_from(tmp_path, monkeypatch):
    file, target = tmp_path / "records.jsonl", tmp_path / "page.md"
    assert list(work.carry_out(TINY[:2], file, workers=1)) == [(1, 2), (2, 2)]
    with file.open("a") as f:
        f.write('{"task": "cut o')
    done, records = work.read(file)
    assert len(done) == 2 and len(records) > 10
    file.write_text("\n".join(file.read_text().splitlines()[:-1]) + "\n")
    monkeypatch.setattr(door, "tasks", lambda setting: list(TINY))
    door.main(["--file", str(file), "--page", str(target), "--quick", "--page-only"])
    assert "2 of 5; the rest was not run" in target.read_text()
    door.main(["--file", str(file), "--page", str(target), "--quick", "--workers", "1"])
    assert len(file.read_text().splitlines()) == 5 and all(json.loads(x) for x in file.read_text().splitlines())
    text = target.read_text()
    assert "| tasks | 5 of 5 |" in text and "**0 of 23 runs are rejected.**" in text
    for row in (*(k.name for k in declared.correct("bfloat16")), *page.OWN, *page.PUBLIC, "LSE, depth", "dQ, staged"):
        assert row in text, row
    widths = [line.count("|") for line in text.splitlines() if line.startswith("|---")]
    assert len(widths) >= 8 and min(widths) > 2


def test_the_settings_ask_for_enough():
    full = door.tasks(door.FULL)
    assert len({t.key for t in full}) == len(full)
    per = {f: len(declared.correct(f)) - 1 for f in FORMATS}
    assert sum(per[t.problem.fmt] for t in full if t.part == "alarms") > 5000
    assert {t.problem.keys for t in full if t.part == "tight"} == {16, 64, 256, 1024, 4096}
    assert {t.problem.law for t in full if t.part == "tight"} == set(LAWS)
    assert 0 < len(door.tasks(door.QUICK)) < 150
