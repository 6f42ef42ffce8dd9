"""A large job is asked only what decides, in pieces: the verdicts are those of a small one, and a kernel that is off is found."""

from __future__ import annotations

import gc
from dataclasses import replace
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest

from symattn import formats
from symattn.definition import Definition
from symattn.readings import slopes
from symattn.readings.rounding import Evaluation
from symattn.readings.slopes import bounded
from symattn.verify import deciding, programs
from symattn.verify.compare import as_known, compare_values
from symattn.verify.inputs import Shape, fields_for
from symattn.verify.kernels.registry import resolve
from symattn.verify.reference import Reference, judge_backward, judge_forward
from symattn.verify.replay import pieces
from symattn.verify.replay.bounds import Replay
from symattn.verify.running import gradients_of, outputs_of

SHAPE = Shape(1, 4, 2, 24, 20, 8, 8)


def asked(causal, dtype="bfloat16", kernel="numpy:flash"):
    """A kernel, its arithmetic, the input, and all that it returns."""
    fields = fields_for(Definition(causal=causal), SHAPE, dtype, 3)
    ref = Reference(Definition(causal=causal), fields)
    subject = resolve(kernel)
    declared = subject.arithmetic(ref.call)
    out = outputs_of(subject, ref.call, ref.shapes(), declared)
    gradients, saved, with_lse = gradients_of(subject, ref.call, out, declared)
    return ref, declared, {k: v for k, v in out.items() if k in ref.shapes()}, gradients, saved, with_lse


def judged(ref, declared, out, gradients, saved, with_lse):
    ref = Reference(ref.definition, ref.fields)  # nothing kept
    return [*judge_forward(ref, out, declared), *judge_backward(ref, gradients, declared, saved=saved, with_lse=with_lse)]


def told(reports):
    """What the verdicts say, but for digits of exact values that float64 does not give."""
    found = []
    for t in reports:
        c = t.comparison
        found.append((t.name, t.verdict, c.failing, c.undecided, c.unbounded, c.total, c.worst.index, c.worst.state))
    return found


def large(monkeypatch):
    """Every job counts as large, and is cut into pieces."""
    monkeypatch.setattr(deciding, "LARGE", 0)
    monkeypatch.setattr(pieces, "POINTS", 700)
    monkeypatch.setattr(bounded, "BLOCK", 700)


@pytest.mark.parametrize("causal", [None, "bottom-right"])
@pytest.mark.parametrize("kernel, dtype", [("numpy:flash", "bfloat16"), ("numpy:naive", "float32")])
def test_the_verdicts_are_those_of_a_small_job(monkeypatch, causal, kernel, dtype):
    run = asked(causal, dtype, kernel)
    small = judged(*run)
    large(monkeypatch)
    found = judged(*run)
    assert told(found) == told(small)
    for a, b in zip(found, small, strict=True):
        assert float(a.comparison.max_error) == pytest.approx(float(b.comparison.max_error), rel=1e-6)
        assert (a.replayed is None) == (b.replayed is None)
        if a.replayed is not None:
            assert (a.replayed.failing, a.replayed.equal) == (b.replayed.failing, b.replayed.equal)


@pytest.mark.parametrize("name", ["out", "grad_query", "grad_key", "grad_value"])
def test_a_wrong_element_is_found_and_no_other(monkeypatch, name):
    ref, declared, out, gradients, saved, with_lse = asked("top-left")
    large(monkeypatch)
    own = out if name == "out" else gradients
    own[name] = own[name].copy()
    own[name].ravel()[77] = own[name].ravel()[77] * 1.5 + ml_dtypes.bfloat16(0.25)
    kept = None if name == "out" else saved
    found = {t.name: t for t in judged(ref, declared, out, gradients, kept, with_lse)}
    c = found[name].comparison
    assert c.failing == 1 and c.worst.index == tuple(np.unravel_index(77, own[name].shape))
    assert all(t.comparison.failing == 0 for n, t in found.items() if n != name)


def test_what_float64_does_not_decide_is_decided_by_more_bits(monkeypatch):
    """A kernel whose error is the bound but for a 2^-90th part of it, on either side."""
    ref, _, out, *_ = asked(None, "float32")
    monkeypatch.setattr(deciding, "LARGE", 0)
    exact = ref.enclosed(ref.bound.program, ref.bound.inputs, ("O",), 300, "forward")["O"].mid.ravel()[0]
    k = Fraction(float(out["out"].ravel()[0]))
    for nudge, state in ((1 + Fraction(1, 2**44), 0), (1 - Fraction(1, 2**44), 1)):
        bound = np.full(out["out"].shape, np.inf)
        bound.ravel()[0] = float(abs(k - exact) * nudge)
        names = {"out": "O"}
        question = deciding.question_of(ref.bound, ref.bound.program, names, out, {"out": bound})
        values = ref.decided(ref.bound.program, ref.bound.inputs, ("O",), question, 512)
        assert len(values.steps) > 1 and values.steps[0].left == 1 and values.steps[-1].left == 0
        exactly = values["O"].values.each(lambda a: a.reshape(out["out"].shape))
        found = compare_values(out["out"], exactly, bound, formats.get("float32"))
        assert (found.failing, found.undecided) == (state, 0)


def test_a_replay_in_pieces_is_the_replay(monkeypatch):
    ref, declared, *_ = asked("bottom-right")
    program = programs.followed(ref.bound.program, declared, gradient=False)
    given = {n: ref.bound.inputs[n] for n in program.inputs}
    whole = Replay(program, given, declared, dict(ref.bound.sizes))
    assert type(pieces.in_pieces(program, given, declared, dict(ref.bound.sizes))) is Replay
    monkeypatch.setattr(pieces, "POINTS", 700)
    parts = pieces.in_pieces(program, given, declared, dict(ref.bound.sizes))
    assert isinstance(parts, pieces.InPieces)
    a, b = whole.intervals()["O"], parts.intervals()["O"]
    assert all(np.array_equal(getattr(a, x), getattr(b, x)) for x in ("low", "high"))
    assert np.array_equal(whole.values(declared)["O"], parts.values(declared)["O"])
    other = replace(declared, tile=16, order="reverse")
    assert np.array_equal(whole.values(other)["O"], parts.values(other)["O"])
    assert whole.keys() == parts.keys()


def test_gradients_of_queries_and_of_keys_are_taken_apart(monkeypatch):
    ref, declared, _, _, saved, _ = asked("top-left")
    whole = programs.followed(ref.bound.program, declared, gradient=True)
    part = programs.staged(whole, ref.bound.program.outputs)
    given = {**ref.seeds(with_lse=False), **ref.saved(saved)}
    given = {n: given[n] for n in part.inputs}
    at_once = slopes.bounds(part, given, declared, sizes=dict(ref.bound.sizes), own=False)
    monkeypatch.setattr(bounded, "BLOCK", 700)
    ask = bounded._Question(part, given, declared, part.outputs, dict(ref.bound.sizes), None, False, False, bounded.EACH)
    assert sorted(sorted(q.outputs) for q in bounded._together(ask)) == [["dK", "dV"], ["dQ"]]
    in_pieces = slopes.bounds(part, given, declared, sizes=dict(ref.bound.sizes), own=False)
    for n in part.outputs:
        assert in_pieces[n].bound.shape == at_once[n].bound.shape
        assert np.all(in_pieces[n].bound <= at_once[n].bound * 1.05) and np.all(in_pieces[n].bound >= at_once[n].bound * 0.95)


def test_a_piece_of_a_bound_is_freed_when_it_is_done(monkeypatch):
    """By counting references: nothing of it waits for the collector of cycles."""
    ref, declared, *_ = asked("top-left")
    program = programs.followed(ref.bound.program, declared, gradient=False)
    given = {n: ref.bound.inputs[n] for n in program.inputs}
    monkeypatch.setattr(bounded, "BLOCK", 700)
    slopes.bounds(program, given, declared, sizes=dict(ref.bound.sizes), own=False)
    gc.collect()
    before = {id(x) for x in gc.get_objects() if type(x) is Evaluation}  # what other tests keep
    gc.disable()
    try:
        slopes.bounds(program, given, declared, sizes=dict(ref.bound.sizes), own=False)
        assert not any(type(x) is Evaluation and id(x) not in before for x in gc.get_objects())
        gc.set_debug(gc.DEBUG_SAVEALL)
        gc.collect()
        kept = [x for x in gc.garbage if type(x).__name__ == "Box"]
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()
    assert not kept


def test_an_exact_value_is_shown_as_far_as_it_is_known():
    third = Fraction(1, 3)
    for k in (3, 8, 15):
        shown = as_known(third, Fraction(1, 10**k))
        assert abs(shown - third) <= Fraction(5, 10**k) * 10 and (shown * 10**k).denominator == 1
    assert as_known(third, Fraction(1, 10**30)) == third and as_known(third, Fraction(1)) == third
    assert as_known(float("nan"), Fraction(0)) != as_known(0.0, Fraction(0))
