"""Escalation: what is open goes on and nothing else, from programs cut down to its rows; results say who found what."""

from __future__ import annotations

import sys
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from symattn.definition import Definition
from symattn.errors import LimitError, UndecidedError, UnknownNameError
from symattn.formats import get, round_exact
from symattn.indexed import index
from symattn.readings import balls
from symattn.readings import numpy as float_reading
from symattn.truth import escalation, restricted, tiers, truth
from symattn.truth.derived import with_gradient
from symattn.truth.parts import parts_of
from symattn.truth.restricted import at_positions, cut, indices_of
from symattn.truth.tiers import Found, Job, Tier, take
from symattn.truth.values import Floats

SIZES = {"B": 2, "n": 5, "m": 6, "d": 3, "dv": 2}


def inputs(program: Any, seed: int = 0, **changed: Any) -> dict[str, Any]:
    """Arrays of the shapes of a program, float32 in float64."""
    r = np.random.default_rng(seed)
    sizes = {s: SIZES[str(s)] for s in program.sizes}
    made = {}
    for name in program.inputs:
        shape = tuple(int(x.xreplace(sizes)) for x in program.shapes[name])
        made[name] = r.normal(size=shape).astype(np.float32).astype(np.float64)
    return made | {k: v for k, v in changed.items() if k in made}


def program_of(**fields: Any) -> Any:
    return with_gradient(Definition(**fields).program(batch=True))


VARIANTS = {
    "full": {},
    "causal": {"causal": "bottom-right"},
    "window": {"window": (2, 1)},
    "capped": {"softcap": 2},
    "positions": {"score": "s - (i - j)/7", "mask": "j <= 2*i"},
    "uniform": {"causal": "top-left", "mask": "j < i", "empty_row": "uniform"},
    "sparsemax": {"normalizer": "sparsemax"},
}


def differences(program: Any, given: dict[str, Any], outputs: tuple[str, ...], positions: dict[Any, list[int]]) -> float:
    """How far a program at some positions is from those positions of the whole program."""
    lean = program.with_statements(program.statements, outputs).live()
    whole = float_reading.evaluate(lean, {n: given[n] for n in lean.inputs}, sizes={str(s): SIZES[str(s)] for s in lean.sizes})
    made = at_positions(lean, given, SIZES, positions)
    assert made is not None
    small, small_inputs, sizes = made
    found = float_reading.evaluate(small, small_inputs, sizes=sizes)
    worst = 0.0
    for name in outputs:
        want = whole[name]
        for a, at in positions.items():
            want = np.take(want, at, axis=lean[name].indices.index(a))
        assert found[name].shape == want.shape
        both = (found[name] == want) | (np.isnan(found[name]) & np.isnan(want))
        worst = max(worst, float(np.max(np.abs(np.subtract(found[name], want, where=~both, out=np.zeros(want.shape))))))
    return worst


@pytest.mark.parametrize("name", VARIANTS)
def test_a_program_at_some_positions_is_the_program_there(name):
    program = program_of(**VARIANTS[name])
    i, b = index("i"), index("b")
    given = inputs(program)
    assert set(indices_of(program, "O")) == {b, i} and indices_of(program, "dK") == (b,)
    assert differences(program, given, ("O", "L", "dQ") if "L" in program else ("O", "dQ"), {b: [1], i: [3, 0, 4]}) < 1e-14
    assert differences(program, given, ("dK", "dV"), {b: [1]}) < 1e-14
    assert cut(program.with_statements(program.statements, ("dK",)), i) is None


def test_what_is_read_at_other_positions_stays_whole():
    """Queries and keys of one X: the keys need all of its rows, and the queries look theirs up."""
    program = with_gradient(Definition(start="x").program(batch=True))
    sizes = SIZES | {"dmodel": 4, "m": 5}
    names = [str(s) for s in program.sizes]
    for extra in names:
        sizes.setdefault(extra, 2)
    r = np.random.default_rng(0)
    by_size = {s: sizes[str(s)] for s in program.sizes}
    given = {n: r.normal(size=tuple(int(x.xreplace(by_size)) for x in program.shapes[n])) for n in program.inputs}
    lean = program.with_statements(program.statements, ("O",)).live()
    found = cut(lean, index("i"))
    assert found is not None and "X" not in found.axes and found.positions is not None
    used = {n: given[n] for n in lean.inputs}
    whole = float_reading.evaluate(lean, used, sizes={k: v for k, v in sizes.items() if k in map(str, lean.sizes)})["O"]
    small, small_inputs, small_sizes = at_positions(lean, used, sizes, {index("i"): [4, 2]})  # type: ignore[misc]
    part = float_reading.evaluate(small, small_inputs, sizes=small_sizes)["O"]
    assert np.abs(part - whole[:, [4, 2]]).max() < 1e-13


def test_a_planted_slip_in_the_positions_shows(monkeypatch):
    """The number of a row is taken for its position."""
    moved = restricted._moved
    monkeypatch.setattr(restricted, "_moved", lambda s, a, row, place, axes: moved(s, a, row, row, axes))
    cut.cache_clear()
    program = program_of(causal="bottom-right")
    try:
        assert differences(program, inputs(program), ("O",), {index("i"): [3, 0]}) > 1e-3
    finally:
        cut.cache_clear()


def test_open_elements_are_all_in_parts_and_share_evaluations():
    program = program_of()
    opened = {n: np.zeros(s, dtype=bool) for n, s in {"O": (2, 5, 2), "L": (2, 5), "dQ": (2, 5, 3), "dK": (2, 6, 3)}.items()}
    opened["O"][0, [1, 3], 0] = opened["L"][0, 4] = opened["dQ"][1, 2] = opened["dK"][1, 0, 2] = True
    parts = list(parts_of(program, SIZES, opened))
    b, i = index("b"), index("i")
    found = {tuple(sorted(p.outputs)): {str(a): k for a, k in p.positions.items()} for p in parts}
    assert found == {("L", "O"): {"b": (0,), "i": (1, 3, 4)}, ("dQ",): {"b": (1,), "i": (2,)}, ("dK",): {"b": (1,)}}
    assert all(set(p.positions) <= {b, i} for p in parts)
    for name, mask in opened.items():
        at = np.concatenate([p.at[name] for p in parts if name in p.at])
        assert sorted(at.tolist()) == np.flatnonzero(mask).tolist()


@pytest.fixture
def evaluated(monkeypatch):
    """What balls are asked for: the outputs, and how many numbers the program makes."""
    seen: list[tuple[int, int]] = []
    evaluate = balls.evaluate

    def counted(program, given, *, bits, **options):
        found = evaluate(program, given, bits=bits, **options)
        seen.append((bits, sum(found[s.name].size for s in program)))
        return found

    monkeypatch.setattr(balls, "evaluate", counted)
    return seen


def near_tie(program: Any) -> dict[str, Any]:
    """Inputs whose output (1, 2, 0) lies 2^-55 above a tie of float32: V is moved so that it does."""
    given = inputs(program, 3)
    with balls.precision(300):
        weights = balls.evaluate(program, given, bits=300)
        p = [Fraction(*map(int, _ratio(x))) for x in weights["P"][1, 2]]
    v = given["V"].copy()
    v[1, :, 0] = np.round(v[1, :, 0] * 2**10) / 2**10
    out = sum(w * Fraction(x) for w, x in zip(p, v[1, :, 0].tolist(), strict=True))
    f = get("float32")
    low = round_exact(out, f, towards=-1)
    tie = low + (round_exact(out, f, towards=1) - low) / 2
    k = int(np.argmax([float(w) for w in p]))
    moved = Fraction(v[1, k, 0]) + (tie + Fraction(1, 2**55) - out) / p[k]
    exact = np.empty(v.shape, dtype=object)
    exact.ravel()[:] = [Fraction(x) for x in v.ravel().tolist()]
    exact[1, k, 0] = moved
    return given | {"V": exact}


def _ratio(x: Any) -> tuple[int, int]:
    m, e = map(int, x.mid().man_exp())
    return (m << e, 1) if e >= 0 else (m, 1 << -e)


def test_only_the_row_of_a_near_tie_goes_on(evaluated):
    program = Definition(lse=False).program(batch=True)
    given = near_tie(program)
    evaluated.clear()
    first = truth(program, given, decide="float32", tier="double", sizes=SIZES)["O"]
    found = truth(program, given, decide="float32")
    out = found["O"]
    assert [s.tier for s in found.steps] == ["double", "balls"] and found.steps[1].rows >= 1
    assert out.tier[1, 2, 0] == "balls" and (out.tier == "balls").sum() < out.tier.size / 4
    stays = out.tier == "double"
    assert (out.mid[stays] == first.mid[stays]).all() and (out.rad[stays] == first.rad[stays]).all()
    rows = len({at[:2] for at in map(tuple, np.argwhere(~stays))})
    assert sum(size for _, size in evaluated) <= rows * 60  # a row makes some fifty numbers, all of it ten times as many
    strong = truth(program, given, bits=400)["O"]
    assert (out.round("float32") == strong.round("float32")).all()


@pytest.mark.parametrize("fields", [{}, {"causal": "top-left"}, {"softcap": 3}, {"normalizer": "sparsemax"}], ids=str)
@pytest.mark.parametrize("format", ["bfloat16", "float32", "float64"])
def test_every_element_is_what_balls_of_many_bits_round_to(fields, format):
    program = program_of(**fields)
    given = inputs(program, 1)
    found, strong = (truth(program, given, sizes={"n": 5}, **q) for q in ({"decide": format}, {"bits": 600, "tier": "balls"}))
    for name in program.outputs:
        here = ~found[name].undecided
        assert here.mean() > 0.9
        ends = [strong[name].neighbours(format)[k].astype(np.float64)[here] for k in (0, 1)]
        got = found[name].neighbours(format)[0].astype(np.float64)[here]
        settled = ends[0] == ends[1]
        assert (got[settled] == ends[0][settled]).all() and settled.mean() > 0.6
        for k in (0, 1):  # enclosures of both hold the exact value
            assert all(
                a - r <= b + s and b - s <= a + r
                for a, r, b, s in zip(
                    *(x.ravel() for x in (found[name].mid, found[name].rad, strong[name].mid, strong[name].rad)), strict=True
                )
                if not any(isinstance(v, float) for v in (a, r, b, s))
            )


def test_digits_and_the_tiers_agree():
    program = program_of(causal="top-left")
    given = inputs(program, 2)
    found = {t: truth(program, given, digits=30, tier=t) for t in ("limbs", "balls")}
    for name in program.outputs:
        a, b = (found[t][name] for t in found)
        assert set(np.unique(a.tier)) <= {"limbs", "settled"} and set(np.unique(b.tier)) <= {"balls", "settled"}
        assert ((a.status == "exact") == (b.status == "exact")).all()
        assert (abs(a.mid - b.mid) <= a.rad + b.rad).all()


def test_results_say_who_took_what_and_why_others_did_not():
    program = program_of(softcap=3)
    given = inputs(program)
    text = truth(program, given, digits=25).report()
    assert "balls at 148 bits, the whole program" in text
    assert "not by fractions: the program holds more than rational operations" in text
    assert "not by double: gives at most 53 bits" in text and "not by limbs: " in text
    assert "O: 20 enclosed by balls" in text
    found = truth(program, given, decide="bfloat16", assume=True)
    assert any(h.status == "bounded" and "ulp" in (h.assumption or "") for h in found["O"].counts())
    proved = truth(program, given, decide="bfloat16")
    assert {h.status for e in proved.values() for h in e.counts()} <= {"enclosed", "exact"}


def test_a_tier_is_one_row(monkeypatch):
    """A new engine: what it declines goes to the next, with its reason in the result."""
    program = Definition(lse=False).program(batch=True)
    given = inputs(program)

    def guess(job: Job) -> dict[str, Found]:
        shape = (2, 5, 2)
        return {n: Found(Floats(np.ones(shape), np.full(shape, np.inf))) for n in job.outputs}

    monkeypatch.setattr(
        sys.modules["symattn.truth.truth"], "TIERS", (Tier("guess", guess, reach=53, quick=True), *tiers.TIERS[-1:])
    )
    found = truth(program, given, decide="float16")
    assert [s.tier for s in found.steps][:2] == ["guess", "balls"] and set(found["O"].tier.ravel()) == {"balls"}
    monkeypatch.setattr(
        sys.modules["symattn.truth.truth"], "TIERS", (Tier("no", guess, lambda job: "it rains"), *tiers.TIERS[-1:])
    )
    assert truth(program, given, digits=20).steps[0].declined == {"no": "it rains"}


def test_a_result_with_an_assumption_is_taken_only_where_that_is_allowed():
    program = Definition(lse=False).program(batch=True)
    given = inputs(program)
    lucky = Tier("lucky", lambda job: {n: Found(Floats(np.ones(1), np.zeros(1)), "luck") for n in job.outputs})
    job = Job(program, given, SIZES, ("O",), 80)
    assert take(job, (lucky, tiers.tier("balls"))).declined == {"lucky": "its result assumes luck"}
    assert take(Job(program, given, SIZES, ("O",), 80, proven=False), (lucky, tiers.tier("balls"))).tier == "lucky"


def test_a_question_of_the_caller():
    """Whether each element is above a threshold that it is given: decided where the enclosure does not hold it."""
    program = Definition(lse=False).program(batch=True)
    given = inputs(program, 4)
    strong = truth(program, given, bits=300)["O"]
    threshold = np.array([m + Fraction(1, 2**70) for m in strong.mid.ravel()], dtype=object)

    def rule(name, values, at):
        mids, rads = values.exact()
        return [isinstance(r, float) or abs(m - t) <= r for m, r, t in zip(mids, rads, threshold[at], strict=True)]

    found = truth(program, given, decide=rule)
    assert found.decided and [s.tier for s in found.steps] == ["double", "balls"]
    assert (found["O"].rad < Fraction(1, 2**70)).all()


def test_until_decided_is_the_format_of_the_inputs():
    program = Definition(lse=False).program(batch=True)
    given = {k: v.astype(np.float32) for k, v in inputs(program).items()}
    found = truth(program, given, until="decided")
    assert found.decided and (found["O"].round("float32") == truth(program, given, decide="float32")["O"].round("float32")).all()
    with pytest.raises(UnknownNameError, match="decided"):
        truth(program, given, until="tired")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"tier": "bals"}, UnknownNameError, "balls"),
        ({"bits": 100, "decide": "bf16"}, LimitError, "decides nothing"),
        ({"decide": "bf61"}, UnknownNameError, "bf16"),
        ({"tier": "fractions"}, UndecidedError, "rational"),
        ({"tier": "limbs", "digits": 400}, UndecidedError, "at most 900 bits"),
    ],
    ids=str,
)
def test_bad_questions(options, error, text):
    program = Definition(lse=False).program(batch=True)
    with pytest.raises(error, match=text):
        truth(program, inputs(program), **options)


def test_a_planted_lost_part_shows(monkeypatch):
    """A part that is left out stays undecided: nothing is said of it that is not known."""
    program = Definition(lse=False).program(batch=True)
    given = near_tie(program)
    parts = escalation.parts_of
    monkeypatch.setattr(
        escalation,
        "parts_of",
        lambda *a: (p for p in parts(*a) if index("b") not in p.positions or p.positions[index("b")] != (1,)),
    )
    found = truth(program, given, decide="float32")
    assert not found.decided and found["O"].status[1, 2, 0] == "undecided"


def test_a_gradient_of_more_elements_than_a_coefficient_each():
    """Bounds of float64 that are kept by rows and columns: every element lies within, and few rows go on."""
    program = with_gradient(Definition().program())
    r = np.random.default_rng(0)
    shapes = {"Q": (100, 8), "K": (100, 8), "V": (100, 4), "dO": (100, 4), "dL": (100,)}
    given = {k: r.normal(size=s).astype(np.float32) for k, s in shapes.items()}
    found, strong = truth(program, given, decide="float32"), truth(program, given, bits=160, tier="balls")
    assert found.decided and found.steps[0].tier == "double" and found.steps[0].left < 0.05 * found.steps[0].asked
    for name in program.outputs:
        mids, rads = found[name].values.approx()
        exact = strong[name].float()
        assert (np.abs(mids - exact) <= rads + np.abs(exact) * 2.0**-52).all()
