"""What a run could not have shown, in every form; strict makes it a failure in each."""

from __future__ import annotations

import pytest

from symattn.verify.writers import document
from tests.verify.writers.reports import weak

LINE = "tells apart 1 of 2 known faults; not: F2"
WARNING = "this run could not show F2 a fault; nearest on normal, 0.5 of what would show"


@pytest.mark.parametrize("format", ["junit", "github", "html", "text", "json"])
def test_it_is_said(format):
    text = document(weak(), format)
    assert (LINE in text or format == "json") and ("F2" in text)
    assert WARNING in text or format in ("json", "text")


@pytest.mark.parametrize(
    "format, fails", [("junit", '<failure type="hidden"'), ("github", "\u274c fail"), ("html", "--strict takes none")]
)
def test_strict_fails_on_it(format, fails):
    assert weak().exit_code(strict=True) == 1
    assert fails in document(weak(), format, strict=True) and fails not in document(weak(), format)
