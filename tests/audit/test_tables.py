"""Tables of Markdown, HTML and LaTeX: what their cells, heads and sums state, with a planted error in each kind."""

from __future__ import annotations

import pytest

from symattn.audit.reading import audit_article
from symattn.audit.tables import tables

SCORES = """\
| Token | Score | exp(score) | Weight |
|-------|------:|-----------:|-------:|
| The   | 2.0   | 7.3891     | 0.6285 |
| cat   | 1.0   | 2.7183     | 0.2312 |
| sat   | 0.5   | 1.6487     | 0.1402 |
| Sum   |       | 11.7561    | 1.0000 |
"""
CELLS = """\
| Token | Dot product | Scaled |
|---|---|---|
| The | 1×2 + 0×1 + 1×1 = 3 | $3/\\sqrt{3} = 1.73$ |
| cat | 1×0 + 0×1 + 1×4 = 4 | 4/√3 = 2.31 |
"""
VECTORS = """\
| | q | k | q·k | Scaled (q·k/√2) |
|---|---|---|---|---|
| a | [1, 0] | [2, 3] | 2 | 1.41 |
| b | [1, 1] | [2, 3] | 5 | 3.54 |
"""
QUANTITIES = """\
Quantity | Value
---|---
$d_k$ | 64
$\\sqrt{d_k}$ | 8
1/√d_k | 0.125
"""
HTML = """\
<p>The weights:</p>
<table class="t">
<thead><tr><th>word</th><th>score</th><th>weight</th></tr></thead>
<tr><td>the</td><td>2.0</td>
<td>62.85%</td></tr>
<tr><td><b>cat</b></td><td>1.0</td><td>23.12%</td></tr>
<tr><td>sat</td><td>0.5</td><td>14.02%</td></tr>
</table>
"""
LATEX = r"""\begin{tabular}{lcc}
\toprule
word & score $s$ & softmax($s$) \\ \midrule
the & 2.0 & 0.6285 \\
cat & 1.0 & 0.2312 \\
sat & 0.5 & 0.1402 \\ \bottomrule
\end{tabular}
"""
PAGES = {"scores": SCORES, "cells": CELLS, "vectors": VECTORS, "quantities": QUANTITIES, "html": HTML, "latex": LATEX}
COUNTS = {"scores": 8, "cells": 4, "vectors": 4, "quantities": 2, "html": 3, "latex": 3}


def _wrong(page: str) -> list[str]:
    return [str(f.verdict.printed) for f in audit_article(page).audit.findings if not f.verdict.correct]


@pytest.mark.parametrize("name", PAGES)
def test_right_tables(name: str) -> None:
    found = audit_article(PAGES[name])
    assert _wrong(PAGES[name]) == [] and len(found.audit.findings) == COUNTS[name]


CHANGES = (
    ("scores", "0.2312", "0.2512"), ("scores", "2.7183", "2.7283"),
    ("scores", "11.7561", "11.8561"), ("scores", "1.0000", "1.1000"),
    ("cells", "= 4", "= 5"), ("cells", "2.31", "2.41"), ("cells", "1.73", "1.74"),
    ("vectors", "| 5 |", "| 6 |"), ("vectors", "3.54", "3.64"), ("quantities", "| 8", "| 9"), ("quantities", "0.125", "0.135"),
    ("html", "23.12", "24.12"), ("latex", "0.1402", "0.1502"),
)  # fmt: skip


@pytest.mark.parametrize(("name", "right", "wrong"), CHANGES)
def test_planted_errors(name: str, right: str, wrong: str) -> None:
    assert PAGES[name].count(right) == 1
    page = PAGES[name].replace(right, wrong)
    found = audit_article(page)
    bad = [m for m in found.marks if not m.finding.verdict.correct]
    place = PAGES[name].index(right)
    assert [page[m.start : m.end] for m in bad if place <= m.start < place + len(wrong)]
    assert len(bad) == 1, _wrong(page)


def test_numbers_that_nothing_gives_are_listed() -> None:
    page = "| word | length | share |\n|---|---|---|\n| a | 1 | 0.31 |\n| bb | 2 | 0.44 |\n"
    found = audit_article(page).audit
    assert not found.findings and found.unread[0].place == "3" and "taken as given" in found.unread[0].reason


def test_rows_of_an_attention_table_sum_to_one() -> None:
    head = "| | the | cat | sat |\n|---|---|---|---|\n| the | 0.6 | 0.3 | 0.1 |\n| cat | 0.2 | 0.5 | 0.3 |\n"
    assert audit_article(head + "| sat | 0.1 | 0.2 | 0.7 |\n").audit.remarks == ()
    wrong = audit_article(head + "| sat | 0.1 | 0.2 | 0.9 |\n").audit
    assert [r.text for r in wrong.remarks] == ["line 5: the weights of sat sum to 1.2, beyond their rounding"]


def test_a_table_that_repeats_a_result_with_a_slip() -> None:
    page = "softmax([[2, 1, 0], [0, 1, 2]]) = [[0.665, 0.245, 0.090], [0.090, 0.245, 0.665]]\n\n"
    rows = "| | a | b | c |\n|---|---|---|---|\n| x | 0.665 | 0.245 | 0.090 |\n| y | 0.090 | 0.245 | 0.665 |\n"
    assert _wrong(page + rows) == [] and _wrong(page + rows.replace("| y | 0.090 | 0.245", "| y | 0.090 | 0.255")) == ["0.255"]


def test_bars_that_are_no_table() -> None:
    assert tables("|q| = 3 and |k| = 4\n---\n| a\n") == ()
