"""Arithmetic in words: what is meant is unambiguous, and each phrase with a planted error is found."""

from __future__ import annotations

import pytest

from symattn.audit.phrases import with_phrases
from symattn.audit.reading import audit_article

PHRASES = (
    ("The dot product of [1, 0, 3] and [2, 5, 1] is 5.", "5.", "6."),
    ("Since the square root of 64 is 8, we divide.", "8", "9"),
    ("Dividing 10 by the square root of 3 gives 5.77 here.", "5.77", "5.87"),
    ("Multiplying 0.5 by 4 yields 2.", "2.", "3."),
    ("The exponential of 1 is 2.718 and e raised to the power of 2 is 7.389.", "7.389", "7.489"),
    ("The mean of 2, 4 and 9 is 5.", "5.", "6."),
    ("The sum of 0.665, 0.245 and 0.090 is 1.000, as it has to be.", "1.000", "1.100"),
    ("So 3 times 4 is 12 and 12 divided by 5 equals 2.4.", "2.4", "2.5"),
    ("The softmax of [2, 1, 0] is about [0.665, 0.245, 0.090].", "0.245", "0.255"),
    ("The natural logarithm of 2 is approximately 0.693.", "0.693", "0.683"),
    ("3 squared is 9.", "9", "8"),
    ("The norm of [3, 4] is 5.", "5.", "6."),
)


def _wrong(text: str) -> list[str]:
    return [str(f.verdict.printed).removeprefix("≈ ") for f in audit_article(text).audit.findings if not f.verdict.correct]


@pytest.mark.parametrize(("text", "right", "wrong"), PHRASES, ids=[t[:30] for t, _, _ in PHRASES])
def test_phrases(text: str, right: str, wrong: str) -> None:
    found = audit_article(text).audit
    assert (_wrong(text), found.unread) == ([], ()) and found.findings
    assert text.count(right) == 1 and _wrong(text.replace(right, wrong)) == [wrong.rstrip(".")]


@pytest.mark.parametrize(
    "text",
    ["The 3 times we looked, 2 were wrong", "a sum of 5 and more", "The mean of the scores is 5", "3 times 4 words is a lot"],
)
def test_other_words_stay_words(text: str) -> None:
    assert with_phrases(text) == text and not audit_article(text).audit.findings


@pytest.mark.parametrize(("text", "right", "wrong"), PHRASES)
def test_every_place_is_kept(text: str, right: str, wrong: str) -> None:
    changed = with_phrases(text)
    assert len(changed) == len(text) and changed.index(right) == text.index(right)
