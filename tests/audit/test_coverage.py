"""Nothing is skipped in silence: numbers that no equation reads are listed with their lines, and a page of them is undecided."""

from __future__ import annotations

import pytest

from symattn.audit.reading import audit_article
from symattn.audit.writers import document

SILENT = (
    ("The weight of the first word is about 0.19 here.", ["1"]),
    ("Then\n\nThe result vector [1, 2, 3] is large.", ["3"]),
    ("so $0.25$ of it", ["1"]),
    ("```\nprint(x)\n[0.1 0.2]\n```\n", ["3"]),
    ("Softmax: the first gets 66.5% of it.", ["1"]),
    ("# 3.2 Scores\n\nSee Section 4.1 and Figure 2.3, arXiv:1706.03762, with Python 3.11.", []),
    ("The scores $[5, 12]$ give $[5, 12] / 2 = [2.5, 6]$", []),
    ("The scores $[5, 13]$ give $[5, 12] / 2 = [2.5, 6]$", ["1"]),
    ("The 3 words of 2017 in 8 heads", []),
    ("e^2 = 7.389, and this 7.389 is used again, 7.389 it is", []),
    ("| a | b |\n|---|---|\n| 0.1 | 0.2 |\n| 0.3 | 0.4 |\n", ["3"]),
)


@pytest.mark.parametrize(("text", "lines"), SILENT, ids=[t[:30] for t, _ in SILENT])
def test_lines_with_numbers_that_nothing_reads(text: str, lines: list[str]) -> None:
    assert [u.place for u in audit_article(text).audit.unread] == lines


def test_a_page_whose_numbers_cannot_be_checked_is_undecided() -> None:
    found = audit_article("The weight of the first word is 0.19, of the second 0.81.")
    assert found.audit.exit_code == 3
    assert "none of the printed numbers could be checked" in document(found, "text")


def test_a_page_of_symbols_claims_nothing() -> None:
    found = audit_article(r"$$A = \text{softmax}(Q K^T / \sqrt{d_k}) V$$")
    assert found.audit.exit_code == 0 and "no printed number" in document(found, "text")


def test_a_page_of_formulas_that_hold_is_right() -> None:
    assert audit_article("$2 + 3 + 4 = 4 + 3 + 2$ and $1 < 2$").audit.exit_code == 0


def test_what_is_not_checked_is_counted_in_the_first_line() -> None:
    found = audit_article("1 + 1 = 2\n\nThe weight is about 0.19.\n")
    first = " ".join(document(found, "text").split("\n\n")[0].split())
    assert found.audit.exit_code == 0 and "1 place with numbers not checked" in first
