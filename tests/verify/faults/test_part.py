"""A fault of one path of a kernel is named for the cases that take it, and not for the run."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from symattn.verify.diagnosis import diagnose as module
from symattn.verify.diagnosis.diagnose import diagnose
from symattn.verify.diagnosis.part import shared
from symattn.verify.diagnosis.undeclared import with_preset
from symattn.verify.faults.catalogue import CATALOGUE
from symattn.verify.writers import FORMATS, document
from tests.verify.faults.running import seen
from tests.verify.planted import kernel
from tests.verify.writers.reports import each

RIGHT = kernel()
BOTTOM, WINDOW = {"causal": "bottom-right"}, {"causal": "bottom-right", "window": (3, 0)}
FEW = {k: CATALOGUE[k] for k in ("F05", "F06", "F13", "F14", "F18", "F19", "F38", "F166", "B01", "B02")}


def dispatching(wrong, taken, *, changes=None):
    """A kernel that takes another path on some sizes."""

    def forward(query, key, value, **options):
        if not taken(query.shape[2], key.shape[2]):
            return RIGHT(query, key, value, **options)
        return wrong(query, key, value, **{**options, **(changes or {})})

    forward.arrays = "numpy"
    return forward


def decode(n, m):
    return n == 1


def tall(n, m):
    return n > m


PLANTED = [
    (kernel("window + 1"), decode, None, WINDOW, "F18", "in decode alone (n = 1): "),
    (kernel("no scale"), decode, None, BOTTOM, "F05", "in decode alone (n = 1): "),
    (RIGHT, decode, {"causal_alignment": "top-left"}, BOTTOM, "F13", "in decode alone (n = 1): "),
    (kernel("no scale"), tall, None, {}, "F05", "in tall and integers alone (n > m): "),
]


@pytest.mark.parametrize(("wrong", "taken", "changes", "fields", "fault", "head"), PLANTED)
def test_a_fault_of_one_path_is_named_for_it_alone(wrong, taken, changes, fields, fault, head):
    kinds = ("normal", "tall", "integers", "decode")
    pattern, *parts = diagnose(seen(dispatching(wrong, taken, changes=changes), fields, kinds), None, FEW)
    assert pattern.fault == () and pattern.kind == "pattern" and "no fault of the catalogue" in pattern.text[0]
    assert (fault,) in [p.fault for p in parts]
    for p in parts:
        failing = head.count(" and ") + 1
        assert p.kind == "part" and not p.named and p.title.startswith(head) and p.text[0].startswith(f"{head}{p.fault[0]} ")
        assert p.text[0].endswith(f"; the other {4 - failing} that were judged do not fail without it")
        assert p.text[1].startswith("  no explanation of the whole run: case ") and f"of {len(kinds)}" in p.explains
        assert set(p.to_dict()) == {"fault", "title", "kind", "explains", "where", "text"}


def test_a_fault_of_the_backward_in_one_path():
    def backward(query, key, value, grad_out, out, lse, grad_lse, **options):
        path = kernel("dQ without scale") if query.shape[2] == 1 else RIGHT
        return path.backward(query, key, value, grad_out, out, lse, grad_lse, **options)

    def forward(query, key, value, **options):
        return RIGHT(query, key, value, **options)

    forward.arrays, forward.backward = "numpy", backward
    _, part = diagnose(seen(forward, {}, ("normal", "decode"), backward=True), None, FEW)
    assert part.fault == ("B02",) and part.text[0].endswith("; the other one that was judged does not fail without it")


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("faults", [FEW, pytest.param(CATALOGUE, marks=pytest.mark.slow)], ids=["few", "all"])
def test_noise_in_one_case_gets_no_name(dtype, faults, monkeypatch):
    monkeypatch.setattr(module, "EVALUATIONS", 0)  # no pairs: none is asked of a part

    def noisy(query, key, value, **options):
        out, lse = RIGHT(query, key, value, **options)
        noise = np.random.default_rng(0).normal(size=out.shape).astype(np.float32)
        return (out.astype(np.float32) + noise).astype(out.dtype), lse

    cases = seen(dispatching(noisy, decode), {}, ("normal", "tall", "decode"), dtype)
    (found,) = diagnose(cases, None, faults)
    assert found.kind == "pattern" and cases[-1].failing


def test_one_wrong_number_is_too_little_for_a_name():
    def shifted(query, key, value, **options):
        (out, right), (_, wrong) = (k(query, key, value, **options) for k in (RIGHT, kernel("no scale")))
        right[0, 0] = wrong[0, 0]
        return out, right

    cases = seen(dispatching(shifted, decode), {}, ("normal", "decode"))
    assert cases[-1].failing == ("lse",) and [f.kind for f in diagnose(cases, None, FEW)] == ["pattern"]


def test_a_fault_of_every_path_stays_one_of_the_run_and_a_right_kernel_has_none():
    (found, *others) = diagnose(seen(kernel("window + 1"), WINDOW, ("normal", "decode")), None, FEW)
    assert found.fault == ("F18",) and found.named and all(f.kind != "part" for f in others)
    assert diagnose(seen(dispatching(RIGHT, decode), WINDOW, ("normal", "decode")), None, FEW) == ()


def test_two_paths_with_two_faults_get_no_name():
    def both(query, key, value, **options):
        n, m = query.shape[2], key.shape[2]
        return (kernel("no scale") if n == 1 else kernel("softmax over queries") if n > m else RIGHT)(
            query, key, value, **options
        )

    both.arrays = "numpy"
    (found,) = diagnose(seen(both, {}, ("normal", "tall", "decode")), None, FEW)
    assert found.kind == "pattern"


def test_it_stops_at_a_bound(monkeypatch):
    cases = seen(dispatching(kernel("no scale"), decode), {}, ("normal", "decode"))
    assert len(diagnose(cases, None, FEW)) == 2
    monkeypatch.setattr("symattn.verify.diagnosis.part.PART", 1.0)
    assert len(diagnose(cases, None, FEW)) == 1


def test_a_preset_is_asked_for_beside_what_explains_a_part(monkeypatch):
    asked = []
    monkeypatch.setattr("symattn.verify.diagnosis.undeclared._fitting", asked.append)
    cases = seen(dispatching(kernel("no scale"), decode), {}, ("normal", "decode"))
    found = diagnose(cases, None, FEW)
    assert with_preset(cases, found) == found and asked == [cases]


def test_relations_of_sizes():
    cases = {o.case: o for o in seen(RIGHT, {}, ("normal", "tall", "decode", "square", "long"))}
    told = lambda *failing: shared([cases[k] for k in failing], [o for k, o in cases.items() if k not in failing])
    assert told("decode") == "n = 1" and told("tall") == "n > m" and told("square") == "n = m"
    assert told("long") == "m >= 133" and told("long", "square") == "m >= 33" and told("normal", "square") == ""
    assert told("normal", "decode", "long") == "n < m"


@pytest.mark.parametrize("format", FORMATS)
def test_all_writers_have_the_line(format):
    found = diagnose(seen(dispatching(kernel("no scale"), decode), {}, ("normal", "decode")), None, FEW)
    text = document(replace(each(), diagnosis=found), format)
    assert "no fault of the catalogue" in text and "in decode alone (n = 1): F05" in text
    if format == "json":
        pattern, part = json.loads(text)["diagnosis"]
        assert (pattern["fault"], pattern["kind"], part["fault"], part["kind"]) == (None, "pattern", "F05", "part")
