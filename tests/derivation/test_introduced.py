"""Every element that a line of numbers names was introduced before: worked out, in a matrix, or of a tensor with a formula."""

from __future__ import annotations

import re

import pytest

from symattn.derivation import derive, engine, examples, shipped
from symattn.derivation.drawn import example_of
from symattn.variants import CATALOGUE
from tests.derivation.cases import TWO_HEADS

NINE = b"X = [" + b", ".join(b"[%d, 1, %d]" % (k % 3, k % 2) for k in range(9)) + b"]\ngrad_out = ["
NINE += b", ".join(b"[1, %d, 2]" % (k % 4) for k in range(9)) + b"]\n[definition]\nscale = 1\n"
LETTER = r"[^\W\d_][^\W_]*(?:_[^\W_]+)?[\u0307\u0302\u0304']*"
ELEMENT = re.compile(rf"(?<![\w^])({LETTER})(\^\([^()]*\))?\[(\d+(?:,\d+)*)\]")
LEFT = re.compile(rf"\s+({LETTER})(\^\([^()]*\))?(?:\[([^\]]*)\])?(?:\s+[=≈])")
GRID = re.compile(rf"\s({LETTER})(\^\([^()]*\))?(?:\[[^\]]*\])? [=≈] ")


def unknown(page: str) -> list[str]:
    """The elements in a page of text that are read before anything has introduced them.

    It reads the page as a reader does, and knows nothing of how it was made.
    """
    worked: set[str] = set()
    letters: set[str] = set()
    found = []
    for line in page.splitlines():
        if not line.startswith("  "):
            continue
        left = LEFT.match(line)
        elements = [m[0] for m in ELEMENT.finditer(line)]
        letter_of = {m[0]: m[1] for m in ELEMENT.finditer(line)}
        itself = [elements.pop(0)] if left and elements and re.fullmatch(r"\d+(?:,\d+)*", left[3] or "") else []
        found += [x for x in elements if x not in worked and letter_of[x] not in letters]
        worked |= {*itself}
        if left and not itself:
            letters.add(left[1])  # a formula, or the numbers of a matrix, in which every element is
        letters |= {x[0] for x in GRID.findall(line)} if not itself else set()
    return found


def test_an_element_that_nothing_introduces_is_found() -> None:
    page = derive(example="two-words").to_text()
    assert unknown(page) == []
    assert {*unknown(page.replace("    ℓ[1] = ", "    "))} == {"ℓ[1]"}
    assert unknown(page.replace("/ℓ[1]", "/ℓ[2]")) != []
    assert unknown("    P = softmax(S)\n    O[1,1] = P[1,1]·2\n    O[1,2] = Z[1,1]·2\n") == ["Z[1,1]"]


def test_without_a_line_of_its_own_an_element_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "introduced", lambda steps, numbers, helpers: list(steps))
    page = derive(example=examples.parse(TWO_HEADS, "two heads"), gradient=True).to_text()
    assert {*unknown(page)} == {"ℓ^(2)[5]"}


LEVELS = [
    ("steps", None),
    *(pytest.param(*x, marks=pytest.mark.slow) for x in (("steps", "all"), ("full", None), ("full", "all"))),
]


@pytest.mark.parametrize(("detail", "follow"), LEVELS)
@pytest.mark.parametrize("name", [*shipped(), "two heads", "nine"])
def test_every_element_was_introduced_before(name: str, detail: str, follow: str | None) -> None:
    own = {"two heads": TWO_HEADS, "nine": NINE}
    example = examples.parse(own[name], name) if name in own else examples.load(name)
    page = derive(example=example, gradient=True, detail=detail, follow=follow).to_text()
    assert ELEMENT.search(page) and unknown(page) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", CATALOGUE)
def test_every_element_was_introduced_before_in_every_variant(name: str) -> None:
    row = CATALOGUE[name]
    if row.definition.algorithm is not None:
        pytest.skip("an algorithm has no numbers")
    numbers = example_of(row.definition, 1, tokens=["the", "cat", "sat"] if row.definition.start == "tokens" else ())
    assert unknown(derive(row.definition, numbers).to_text()) == []


def test_a_row_that_is_completed_is_not_said_to_be_cut() -> None:
    page = derive(example=examples.parse(NINE, "nine"), follow="all")
    sums = [x for x in page["P"].lines if x.item.tensor == "l"]
    assert [x.item.index for x in sums] == [(k,) for k in range(9)] and not any(x.row for x in sums)
    assert [x.shown for x in page["P"].lines if x.row] == [8] * 9
