"""What a run could not have shown, in every form; strict makes it a failure in each."""

from __future__ import annotations

import pytest

from symattn.verify.writers import document
from tests.verify.writers.reports import case, report, tensor, weak

BRIEF = "tells apart 1 of 2 known faults"
LINE = f"{BRIEF}; not: F2"
OBJECTION = "--strict: 1 known fault could not show on these inputs"
WARNING = "this run could not show F2 a fault; nearest on normal, 0.5 of what would show"


@pytest.mark.parametrize("format", ["junit", "github", "html", "text", "json"])
def test_it_is_said(format):
    text = document(weak(), format).replace("\\", "")
    assert BRIEF in text or format == "json"
    assert ("F2" in text) is (format in ("junit", "html", "json"))


@pytest.mark.parametrize("format", ["github", "html", "text", "json"])
def test_strict_lists_what_could_not_show_and_says_why_it_fails(format):
    text = " ".join(document(weak(), format, strict=True).replace("\\", "").split())
    assert (LINE in text and WARNING in text) or format == "json"
    assert (
        OBJECTION in text
        or '"exit_code": 1, "reason": "1 known fault could not show on these inputs"' in text
        or (format == "html" and "takes none: 1 known fault could not show" in text)
    )


def test_the_verdict_line_has_the_reason_under_strict_alone():
    assert "verdict: pass\n" in document(weak(), "text")
    assert f"verdict: pass, but {OBJECTION}\n" in document(weak(), "text", strict=True)


@pytest.mark.parametrize("strict", [False, True])
def test_a_run_that_fails_has_the_count_alone(strict):
    failed = report(case(tensor("fail")), strength=weak().strength)
    text = document(failed, "text", strict=strict)
    assert f"{BRIEF}; the JSON document lists the others" in text and "F2" not in text and "--strict" not in text
    assert failed.to_dict()["guard"]["hidden"][0]["fault"] == "F2"


def test_left_out_and_strict_says_so():
    left_out = report(case(tensor()), unguarded=True)
    assert left_out.exit_code(strict=True) == 0
    assert "verdict: pass; --strict: which known faults could show was not asked" in left_out.to_text(strict=True)
    assert "not asked" not in left_out.to_text()


def test_the_time_of_the_guard_counts(monkeypatch):
    ticks = iter([1.0, 5.0])
    monkeypatch.setattr("symattn.verify.report.time.perf_counter", lambda: next(ticks))
    assert "verdict: pass  (6.0 s)" in report(case(tensor()), strength=weak().strength, seconds=2.0).to_text()


@pytest.mark.parametrize(
    "format, fails", [("junit", '<failure type="hidden"'), ("github", "\u274c fail"), ("html", "--strict takes none")]
)
def test_strict_fails_on_it(format, fails):
    assert weak().exit_code(strict=True) == 1
    assert fails in document(weak(), format, strict=True) and fails not in document(weak(), format)
