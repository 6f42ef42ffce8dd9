"""A kernel in which nothing is wrong but that masked NaN or infinity reaches it is suspect, and named F31 with its way."""

from __future__ import annotations

import json

import numpy as np
import pytest

from symattn.definition import Definition
from symattn.verify.diagnosis.diagnose import diagnose
from symattn.verify.judge import verify
from symattn.verify.writers import document
from tests.verify.faults.running import seen
from tests.verify.planted import kernel

TOP = Definition(causal="top-left")


def reads(source, *, special=np.isnan, into=("out",)):
    """A right kernel that what is special in keys or values reaches, and nothing else does."""
    right = kernel()

    def trace(key, value):
        return np.float32(np.nan if special({"key": key, "value": value}[source].astype(np.float64)).any() else 0)

    def clean(*tensors):
        return (np.where(np.isfinite(x), x, 0).astype(x.dtype) for x in tensors)

    def run(query, key, value, **options):
        out, lse = right(query, *clean(key, value), **options)
        return tuple(x + trace(key, value) if n in into else x for n, x in (("out", out), ("lse", lse)))

    def backward(query, key, value, grad_out, out, lse, grad_lse, **options):
        grads = right.backward(query, *clean(key, value), grad_out, out, lse, grad_lse, **options)
        return {n: g + trace(key, value) if n in into else g for n, g in grads.items()}

    run.backward = backward
    return run


def judged(subject, only="poison", **options):
    return verify(subject, TOP, only=only, guard=False, **options)


CASES = {
    "values": (reads("value"), "values alone; into O"),
    "keys": (reads("key", into=("out", "lse")), "keys alone; into O, LSE"),
    "the LSE alone": (reads("key", into=("lse",)), "keys alone; into LSE"),
}


@pytest.mark.parametrize("name", CASES)
def test_what_lets_it_through_is_named(name):
    subject, said = CASES[name]
    report = judged(subject)
    (found,) = report.diagnosis
    assert found.fault == ("F31",) and said in found.title and "poison" in found.where
    assert (report.verdict, report.exit_code(), report.exit_code(strict=True)) == ("suspect", 0, 1)


@pytest.mark.parametrize("into, said", [(("dq",), "values alone; into dQ)"), (("dk", "dv"), "values alone; into dK, dV)")])
def test_a_leak_into_gradients_alone(into, said):
    (found,) = judged(reads("value", into=into), backward=True).diagnosis
    assert found.fault == ("F31",) and said in found.title and "O " not in found.where


def weights_of_zero(query, key, value, *, is_causal=True, causal_alignment="top-left", **options):
    """Attention as it is written first: masked values are multiplied by a weight of 0."""
    group = query.shape[1] // key.shape[1]
    key, value = np.repeat(key, group, axis=1), np.repeat(value, group, axis=1)
    scores = query @ key.swapaxes(-1, -2) * np.float32(query.shape[-1] ** -0.5)
    scores = np.where(np.tri(query.shape[2], key.shape[2], dtype=bool), scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights @ value / weights.sum(-1, keepdims=True)


@pytest.mark.filterwarnings("error")
def test_infinity_is_tried_where_warnings_are_errors():
    (found,) = judged(weights_of_zero).diagnosis
    assert "(values alone; into O" in found.title
    assert any("in masked values alone: NaN reaches O, infinity reaches O" in line for line in found.text)


def test_infinity_alone():
    report = judged(reads("value", special=np.isinf), only="normal,poison")
    assert {c.case: c.verdict for c in report.cases} == {"normal": "pass", "poison": "pass"} and report.verdict == "suspect"
    (found,) = report.diagnosis
    assert found.fault == ("F31",) and "infinity in values alone; into O" in found.title and "normal" in found.where


def test_every_form_of_the_report_has_it():
    report = judged(reads("value"))
    (entry,) = json.loads(report.to_json())["diagnosis"]
    assert entry["fault"] == "F31" and entry["title"] and "O" in entry["explains"] and "O" in entry["where"]
    for strict in (False, True):
        for form in ("text", "json", "junit", "github", "html"):
            assert "F31 masked keys or values are multiplied" in document(report, form, strict=strict), form


def test_without_a_leak_there_is_none():
    assert judged(kernel(), only="normal,poison").diagnosis == ()


def test_beside_a_failure_the_failure_is_diagnosed():
    wrong = reads("value")
    report = judged(lambda *args, **options: (wrong(*args, **options)[0] * 2, wrong(*args, **options)[1]), only="normal,poison")
    assert report.verdict == "fail" and ("F31",) not in [f.fault for f in report.diagnosis]


def test_it_is_named_without_running_the_kernel_again():
    (found,) = diagnose(seen(reads("value"), {"causal": "top-left"}, ("poison",)))
    assert found.fault == ("F31",) and found.title.endswith("(into O)")
