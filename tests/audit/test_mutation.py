"""A right page with one digit changed: found at that number and nowhere else.

The page states everything twice, which is what a reader needs too to say which of two numbers is the misprint: vectors are
defined and written out, products are expanded, results are copied into the next formula.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from symattn.audit.language_nodes import Number
from symattn.audit.provenance import signed
from symattn.audit.reading import ReadArticle, audit_article

DATA = Path(__file__).parent / "data"


def _numbers(found: ReadArticle) -> list[Number]:
    """All numbers of the equations, in order."""
    found_at = {x.node.start: x.node for c in found.chains for s in c.sides if s.node is not None for x in signed(s.node)}
    return [found_at[k] for k in sorted(found_at)]


def _changed(page: str, n: Number, k: int, step: int) -> str:
    """The page with one digit of a number raised by a step; a number keeps its length."""
    digit = (int(n.text[k]) + step) % 10
    if k == 0 and digit == 0 and len(n.text) > 1 and n.text[1].isdigit():
        digit = 5
    return page[: n.start + k] + str(digit) + page[n.start + k + 1 :]


def _missed(page: str, numbers: list[Number], steps: tuple[int, ...]) -> list[tuple[str, int, str, list[int]]]:
    """The changes that were not found at their number, or somewhere else too."""
    out = []
    for n in numbers:
        for k, c in enumerate(n.text):
            for step in steps if c.isdigit() else ():
                changed = _changed(page, n, k, step)
                bad = [m.start for m in audit_article(changed, digits=12).marks if not m.finding.verdict.correct]
                if bad != [n.start]:
                    out.append((n.text, n.start, changed[n.start : n.end], bad))
    return out


def _page(name: str) -> tuple[str, list[Number]]:
    text = (DATA / name).read_text(encoding="utf-8")
    found = audit_article(text)
    assert all(f.verdict.correct for f in found.audit.findings)
    return text, _numbers(found)


def test_every_ninth_number() -> None:
    page, numbers = _page("article-right.txt")
    assert len(numbers) == 141
    assert _missed(page, numbers[4::9], (1,)) == []


@pytest.mark.slow
@pytest.mark.parametrize("steps", [(1, 5), (3, 7)])
def test_each_digit_of_each_number(steps: tuple[int, ...]) -> None:
    page, numbers = _page("article-right.txt")
    assert _missed(page, numbers, steps) == []


@pytest.mark.parametrize("name", ["matrices.md", "plain.txt", "printed-arrays.txt"])
def test_results_of_other_pages(name: str) -> None:
    """What a page computes can always be told; which of two inputs is wrong it may leave open."""
    page, numbers = _page(name)
    marks = {m.start for m in audit_article(page).marks}
    results = [n for n in numbers if n.start in marks and page[n.start : n.end] == n.text]
    assert len(results) > 10
    assert _missed(page, results[1::4], (1,)) == []


def test_a_misprint_among_inputs_is_one_error() -> None:
    page, numbers = _page("matrices.md")
    first = numbers[3]  # of X, which K, Q and V read
    assert _missed(page, [first], (1,)) == []
    changed = audit_article(_changed(page, first, 0, 1)).audit
    assert [f.note for f in changed.findings if f.note] == ["with 0 here what follows from it is right"]


NOTATIONS = ("notes.tex", "tables.md", "session.txt")
"""LaTeX notes, tables with sentences of arithmetic, a session of Python."""


def _results(name: str) -> tuple[str, list[Number]]:
    """A page, and the numbers that it computes."""
    page, numbers = _page(name)
    marks = {m.start for m in audit_article(page).marks}
    return page, [n for n in numbers if n.start in marks and page[n.start : n.end] == n.text]


@pytest.mark.parametrize("name", NOTATIONS)
def test_results_in_other_notations(name: str) -> None:
    page, results = _results(name)
    assert len(results) > 8
    assert _missed(page, results[::3], (1,)) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", NOTATIONS)
def test_each_digit_of_each_result_in_other_notations(name: str) -> None:
    page, results = _results(name)
    assert _missed(page, results, (1, 3, 5)) == []
