"""The written forms: what they say, that they escape, and that they can be read back."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest

from symattn.audit.claimsfile import parse
from symattn.audit.extract import draft
from symattn.audit.page import audit
from symattn.audit.reading import ReadArticle, audit_article
from symattn.audit.writers import document
from symattn.audit.writers.words import right_digits
from symattn.derivation.escaping import display_width

DATA = Path(__file__).parent / "data"


@pytest.fixture(scope="module")
def first() -> ReadArticle:
    return audit_article((DATA / "article-one.txt").read_text(encoding="utf-8"), "article-one.txt")


def test_text(first: ReadArticle) -> None:
    lines = document(first, "text").splitlines()
    said = " ".join(" ".join(lines).split())
    assert said.startswith("article-one.txt: 68 printed numbers checked, 6 wrong (3 of them carried from an earlier step)")
    assert "first failing step: line 25, softmax([5.77, 2.89, 1.73, 6.93, 5.77]): 0.1908 printed, right: 0.1906" in said
    assert said.count("carried from 0.1908 in line 25") == 3
    assert "5.77 " not in "".join(lines[5:10]) and "5.77" in document(first, "text", everything=True)


@pytest.mark.parametrize("name", sorted(p.name for p in DATA.iterdir() if p.suffix in (".txt", ".md", ".tex")))
@pytest.mark.parametrize("everything", [False, True])
def test_text_has_80_columns(name: str, everything: bool) -> None:
    found = audit_article((DATA / name).read_text(encoding="utf-8"), name)
    text = document(found, "text", everything=everything)
    assert max(map(display_width, text.splitlines())) <= 80
    assert not any(line != line.rstrip() for line in text.splitlines())


def test_a_number_is_never_broken_and_a_formula_without_blanks_is(first: ReadArticle) -> None:
    long = audit_article((DATA / "article-one.txt").read_text(encoding="utf-8"), "article-one.txt", digits=90)
    lines = document(long, "text", digits=90).splitlines()
    assert any(re.search(r"exact 0\.19060\d{80,}$", line) for line in lines)
    title = replace(first.audit, title="x" * 200)
    assert max(map(len, document(title, "text").splitlines())) <= 80


def test_json_has_places_and_numbers_as_text(first: ReadArticle) -> None:
    found = json.loads(document(first, "json"))
    assert found["verdict"] == "wrong" and len(found["findings"]) == 68
    for row in found["findings"]:
        assert isinstance(row["exact"], str)
        assert first.article.source[row["start"] : row["end"]] == row["printed"].lstrip("-≈ ")
    wrong = [r for r in found["findings"] if r["status"] == "wrong"]
    assert len(wrong[0]["exact"]) == 42 and wrong[0]["exact"].startswith("0.19060681760")
    assert {u["place"] for u in found["unread"]} == {"9", "11", "21"}


def test_markdown(first: ReadArticle) -> None:
    text = document(first, "markdown")
    rows = [line for line in text.splitlines() if line.startswith("| line")]
    assert len(rows) == 6 and all(row.count("|") == 7 for row in rows)
    assert "| 0.1908 | 0.1906 |" in text


class _Tags(HTMLParser):
    """Checks that tags are closed in order, and collects the formulas."""

    VOID = frozenset({"meta", "br"})

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: set[str] = set()

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.seen.add(tag)
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: object) -> None:
        self.seen.add(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.mark.parametrize("name", ["article-one.txt", "matrices.md", "plain.txt", "printed-arrays.txt"])
def test_html_is_well_formed_and_asks_for_nothing(name: str) -> None:
    page = document(audit_article((DATA / name).read_text(encoding="utf-8"), name), "html")
    tags = _Tags()
    tags.feed(page)
    assert tags.open == [] and {"math", "mn", "main"} <= tags.seen
    assert not tags.seen & {"script", "img", "link", "iframe", "a"} and "http" not in page.replace("http-equiv", "")
    for part in page.split("<math>")[1:]:
        ElementTree.fromstring("<math>" + part.partition("</math>")[0].replace("&#x2061;", "") + "</math>")


def test_html_marks_numbers_and_shows_the_right_ones(first: ReadArticle) -> None:
    page = document(first, "html")
    assert page.count('<munder class="wrong">') == 3 and page.count('<munder class="carried">') == 3
    for right in ("0.1906", "0.6048", "0.4125", "1.2762", "3.5735"):
        assert f'<mn class="instead">{right}</mn>' in page
    assert '<mn class="right">5.77</mn>' in page


def test_right_digits_are_as_many_as_were_printed(first: ReadArticle) -> None:
    found = {str(f.verdict.printed): right_digits(f.verdict) for f in first.audit.findings if not f.verdict.correct}
    assert found == {"0.1908": "0.1906", "0.6044": "0.6048", "0.4127": "0.4125", "1.2750": "1.2762", "3.5730": "3.5735"}


def test_a_draft_is_a_claims_file_with_the_same_verdicts(first: ReadArticle) -> None:
    found = audit(parse(draft(first).encode(), "draft.toml"))
    assert not found.unread
    wrong = [str(f.verdict.printed) for f in found.findings if f.verdict.wrong]
    assert wrong == [str(f.verdict.printed) for f in first.audit.findings if f.verdict.wrong]
    assert sum(bool(f.carried) for f in found.findings) == 3


@pytest.mark.parametrize("name", ["matrices.md", "plain.txt", "printed-arrays.txt", "article-right.txt"])
def test_drafts_of_right_pages_are_right(name: str) -> None:
    text = draft(audit_article((DATA / name).read_text(encoding="utf-8"), name))
    found = audit(parse(text.encode(), name))
    assert not found.unread and found.findings and not any(f.verdict.wrong for f in found.findings)


def test_hostile_words_stay_words() -> None:
    page = '$\\text{"""<u>]} = 2 \\times 3 = 7$ and `a"b\n[claims]` = 1 + 1 = 3'
    found = audit_article(page, 'x"\n[inputs]\nQ = 1')
    parse(draft(found).encode(), "draft.toml")
    assert "<u>" not in document(found, "html") and "<u>" not in document(found, "markdown")
