"""The HTML page: one file that loads nothing, user words that do nothing, sections and blocks, and the weights as pictures."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from dataclasses import replace
from functools import cache
from hashlib import sha256
from html.parser import HTMLParser
from itertools import pairwise

import mpmath
import pytest

from symattn.derivation import Derivation, derive, examples
from symattn.derivation.blocks import Algorithm, Box, CodeLine, Display, Picture, Prose, Section, Table
from symattn.derivation.document import Formula
from symattn.derivation.html import css, math
from symattn.derivation.htmlmaps import data, script
from symattn.derivation.svgparts import inline_svg
from symattn.errors import FileFormatError
from tests.derivation.cases import TWO_HEADS, hostile

CASES = [(name, gradient) for name in examples.shipped() for gradient in (False, True)]
HOSTILE = "</script><script>alert(1)</script><!--"
SVG = '<?xml version="1.0"?><svg xmlns="http://www.w3.org/2000/svg" width="40pt" height="20pt">{}</svg>'


@cache
def made(name: str, gradient: bool = False) -> Derivation:
    return derive(example=name, gradient=gradient)


@cache
def heads() -> Derivation:
    return derive(example=examples.parse(TWO_HEADS, "two heads"))


class Checker(HTMLParser):
    """Refuses every tag and attribute that a page has no use for, and collects what the page says."""

    ALLOWED = frozenset(
        re.findall(
            r"\w+",
            "html head meta title style body article h1 h2 h3 p b wbr code a table caption thead tbody tr td th ul ol li section "
            "div span figure figcaption form fieldset legend label input output button script math mrow mi mn mo mfrac msqrt "
            "msub msup msubsup munder munderover mtext mspace mover mtable mtr mtd mstyle svg g path text "
            "defs use clippath rect pattern",
        )
    )
    VOID = frozenset({"meta", "input", "wbr"})

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text = ""
        self.ids: list[str] = []
        self.targets: list[str] = []
        self.scripts: list[tuple[dict[str, str | None], str]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in self.ALLOWED, tag
        for name, value in attrs:
            assert not name.startswith("on") and name not in ("src", "style", "action", "srcset"), (tag, name, value)
            if name == "href":
                assert tag in ("a", "use") and value and value.startswith("#"), (tag, value)
                self.targets.append(value[1:])
            if name in ("id", "for") and value:
                (self.ids if name == "id" else self.targets).append(value)
        if tag == "script":
            self.scripts.append((dict(attrs), ""))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in self.VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag, tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "script":
            self.scripts[-1] = (self.scripts[-1][0], self.scripts[-1][1] + data)
        else:
            self.text += data


def read(page: str) -> Checker:
    checker = Checker()
    checker.feed(page)
    checker.close()
    assert checker.open == []
    assert len(set(checker.ids)) == len(checker.ids), "an id stands twice"
    assert set(checker.targets) <= set(checker.ids), "a link leads nowhere"
    runs = [code for attrs, code in checker.scripts if not attrs]
    assert runs in ([], [script()]), "a script that is not that of the page"
    return checker


def hashed(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


# --- the page


@pytest.mark.parametrize(("name", "gradient"), CASES)
def test_a_page_stands_alone(name: str, gradient: bool) -> None:
    page = made(name, gradient).to_html()
    found = read(page)
    assert "http" not in page.replace("http-equiv", "") and "url(" not in page and "@import" not in page
    assert "width=device-width" in page and "prefers-color-scheme:dark" in page and "@media print" in page
    assert "Attention weights" in found.text and "\\" not in found.text.replace("W_Q", "")


@pytest.mark.parametrize("scripted", [True, False])
def test_the_policy_names_the_style_and_the_script_of_the_page_and_nothing_else(scripted: bool) -> None:
    page = (made("the-cat-sat") if scripted else derive()).to_html()
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)
    style = re.search(r"<style>(.*?)</style>", page, re.DOTALL)
    assert policy and style
    wanted = ["default-src 'none'", "base-uri 'none'", "form-action 'none'", f"style-src {hashed(style[1])}"]
    assert policy[1].split("; ") == [*wanted, *([f"script-src {hashed(script())}"] if scripted else [])]
    assert bool(read(page).scripts) is scripted


def test_hostile_words_are_shown_and_not_obeyed() -> None:
    found = read(hostile().to_html())
    assert "<script>alert(1)</script>"[:8] in found.text and "[U+202E]" in found.text
    assert "[U+202E]" in read(hostile()._repr_html_()).text and not read(hostile()._repr_html_()).scripts
    assert not re.search("alert|input|猫", data(hostile())), "no word is in what the script reads"


@pytest.mark.parametrize(
    "planted",
    ["<script>x</script>", '<p style="color:red">x</p>', '<a href="https://x">x</a>', '<p onclick="x">x</p>', "<p>",
     "<iframe></iframe>",
     '<a href="#nowhere">x</a>'],
)  # fmt: skip
def test_what_must_not_stand_in_a_page_is_noticed(planted: str) -> None:
    with pytest.raises(AssertionError):
        read(made("the-cat-sat").to_html().replace("</article>", planted + "</article>"))


def test_steps_have_anchors() -> None:
    d = made("the-cat-sat")
    assert {f"step-{s.number}" for s in d.steps} <= set(read(d.to_html()).ids)


def test_matrices_are_bracketed_and_sums_have_their_index_below() -> None:
    page = made("the-cat-sat").to_html()
    assert page.count("end follow") == 7 and "<munder><mo>∑</mo>" in page
    assert '<tr class="top">' in page and '<tr class="end follow">' in page


@pytest.mark.parametrize(
    ("latex", "signs"),
    [
        (r"= -\frac{1}{2} \cdot (-3) - x", [True, True, False]),
        (r"-x + \frac{-1}{2}", [True, False, True]),
        (r"{} - 3", [False]),
        (r"e^{-S_{ij}} - (a) - b", [True, False, False]),
        (r"j \le -3 \quad\text{where } -x \le i", [True, True]),
        (r"\lvert -x \rvert - dQ'' - 1", [True, False, False]),
    ],
)
def test_a_sign_of_a_number_is_not_spaced_as_a_difference(latex: str, signs: list[bool]) -> None:
    found = re.findall(r"<mo([^>]*)>[−+]</mo>", math(latex))
    assert [' form="prefix"' in attributes for attributes in found] == signs


def test_primes_in_subscripts_are_as_large_as_the_subscript() -> None:
    assert '<mo scriptlevel="1">′</mo>' in math(r"\sum_{j' \le i} S") and '<mo scriptlevel="1">′</mo>' in math("S_{ij'}")
    assert "scriptlevel" not in math("j' + S_{ij}")


# --- sections and blocks


def formula(latex: str) -> Formula:
    return Formula(latex, latex)


def with_blocks() -> Derivation:
    x = formula("x_{i}")
    blocks = (
        Prose(("By step 1 & step 99, ", x, f" is {HOSTILE}.")),
        Display((formula(r"a = b + c"), formula(r"= d"), formula(r"\sum_i x_i")), ("by steps 1, 2 and 3", HOSTILE, "")),
        Table(("size", x), (("<b>", x), ("n", formula(r"\frac{1}{2}"))), HOSTILE),
        Algorithm(f"Loop {HOSTILE}", (x,), ("O",), (CodeLine(0, ("for ", x)), CodeLine(1, (HOSTILE,)))),
        Picture(SVG.format('<path id="a" style="fill: red" d="M0 0"/><script>x</script>'), f"red {HOSTILE}"),
        Box(f"Summary {HOSTILE}", (Prose(("in the box",)),)),
    )
    first = Section(f"First {HOSTILE}", blocks, known="proved for all sizes", before=2)
    last = Section("Last", (Prose(("the end",)), *[b for b in blocks if isinstance(b, Picture)]))
    return replace(made("the-cat-sat"), sections=(first, last))


def test_sections_stand_where_they_belong_with_everything_in_them() -> None:
    page = with_blocks().to_html()
    found = read(page)
    text = found.text
    order = ["1. Embedded words", "First </script>", "How known: proved for all sizes.", "2. Queries", "Last", "Notes"]
    assert all(text.index(a) < text.index(b) for a, b in pairwise(order))
    assert text.count("alert(1)") >= 7 and "in the box" in text
    assert 'By <a href="#step-1">step 1</a> &amp; step 99' in page
    assert 'steps <a href="#step-1">1</a>, <a href="#step-2">2</a> and <a href="#step-3">3</a>' in page
    assert page.count("<li>") >= 2 and 'class="e1"' in page
    assert 'id="p1-a"' in page and 'id="p2-a"' in page and 'fill="red"' in page


@pytest.mark.parametrize(
    "evil",
    ["<script>x</script>", '<path onload="x" d="M0 0"/>', '<a href="javascript:x"><path d="M0"/></a>', '<image href="http://x"/>',
     '<use href="http://x#a"/>', '<path fill="url(http://x)"/>',
     "<style>@import 'x'</style>", "<foreignObject><p>x</p></foreignObject>"],
)  # fmt: skip
def test_a_picture_loads_and_runs_nothing(evil: str) -> None:
    found = inline_svg(SVG.format(evil), "a picture")
    assert not re.search("script|onload|javascript|http|image|foreign|style|import", found), found
    assert found.startswith('<svg viewBox="0 0 40 20" role="img" aria-label="a picture"')


@pytest.mark.parametrize(
    "wrong", ['<!DOCTYPE svg [<!ENTITY a "b">]><svg>&a;</svg>', "<p>x</p>", "<svg>", "", "<svg><![CDATA[x]]></svg>"]
)
def test_what_is_no_picture_is_refused(wrong: str) -> None:
    with pytest.raises(FileFormatError, match="a picture is"):
        inline_svg(wrong, "x")


# --- the weights


def test_a_heat_map_says_the_enclosed_weights_with_words_at_its_sides() -> None:
    d = made("the-cat-sat")
    table = re.search(r'<table class="heat">(.*?)</table>', d.to_html())
    assert table
    rows = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", r) for r in table[1].split("<tr")[1:]]
    assert rows[0] == ["", *d.words["j"]]
    printed = [[c.decimal for c in row] for row in d["P"].grids[-1].cells]
    assert [r[1:] for r in rows[1:]] == [[x.replace("-", "−") for x in row] for row in printed]
    assert rows[5][0].startswith("the") and "followed" in rows[5][0]


def test_a_masked_weight_is_a_dot_and_has_no_arrow() -> None:
    page = derive(example=replace(examples.load("two-words-causal"), follow=0)).to_html()
    assert page.count('<td class="no">·<span class="sr"> masked</span></td>') == 1
    assert page.count('<g data-key="1" class="no">') == 1 and "machines masked" in page


@pytest.mark.parametrize(
    "make", [lambda: made("the-cat-sat"), lambda: made("two-words-causal"), heads], ids=["plain", "causal", "heads"]
)
def test_the_scores_in_a_page_are_those_whose_softmax_the_weights_are(make: object) -> None:
    d = make()  # type: ignore[operator]
    found = json.loads(data(d))
    assert [len(m["heads"]) for m in found] == [len(m.heads) for m in d.maps] and found[0]["heads"]
    with mpmath.workdps(30):
        for head, m in ((h, x) for m in found for h, x in zip(m["heads"], d.maps[0].heads, strict=True)):
            for scores, weights, printed in zip(head["scores"], head["weights"], m.printed, strict=True):
                kept = [k for k, w in enumerate(weights) if w is not None]
                total = mpmath.fsum(mpmath.exp(mpmath.mpf(scores[k])) for k in kept)
                for k in kept:
                    value = mpmath.exp(mpmath.mpf(scores[k])) / total
                    assert abs(value - mpmath.mpf(weights[k])) < mpmath.mpf(10) ** -17 * value
                    assert abs(value - mpmath.mpf(printed[k])) <= mpmath.mpf("0.00005")


def test_scores_outside_of_a_mask_of_positions_are_there_for_the_switch() -> None:
    (head,) = made("two-words-causal").maps[0].heads
    assert head.weights[0][1] is None and head.scores[0][1] is not None and head.masked


def test_scores_outside_of_a_mask_that_tensors_decide_are_not_there() -> None:
    keys = "[[1, 0], [0, 1]]"
    text = f"Q = {keys}\nK = {keys}\nV = {keys}\nattn_mask = [[1, 0], [1, 1]]\n[definition]\nattn_mask = 'boolean'"
    (head,) = derive(example=examples.parse(text.encode(), "mask")).maps[0].heads
    assert head.scores[0][1] is None and head.scores[0][0] is not None


def test_a_sink_takes_part() -> None:
    text = b"Q = [[1, 0], [0, 1]]\nK = [[1, 0], [0, 1]]\nV = [[1, 0], [0, 1]]\nsinks = 0.5\n[definition]\nsink = true"
    (found,) = derive(example=examples.parse(text, "sink")).maps
    head = found.heads[0]
    assert head.extras == (("0.5",), ("0.5",))
    with mpmath.workdps(30):
        parts = [mpmath.exp(mpmath.mpf(x)) for x in (*head.scores[0], *head.extras[0])]  # type: ignore[arg-type]
        assert abs(parts[0] / sum(parts) - mpmath.mpf(head.weights[0][0])) < mpmath.mpf(10) ** -18


def test_a_constant_beside_the_keys_takes_part() -> None:
    text = b"Q = [[1, 0], [0, 1]]\nK = [[1, 0], [0, 1]]\nV = [[1, 0], [0, 1]]\n[definition]\nnormalizer = 'off-by-one'"
    d = derive(example=examples.parse(text, "off by one"), show_max=True)
    assert d.maps[0].heads[0].extras == (("0",), ("0",)) and d.maps[0].live


def test_without_a_softmax_or_numbers_there_is_no_picture() -> None:
    text = b"Q = [[1, 0]]\nK = [[1, 0]]\nV = [[1, 0]]\n[definition]\nnormalizer = 'sigmoid'"
    for d in (derive(), derive(example=examples.parse(text, "sigmoid"))):
        assert d.maps == () and 'class="map"' not in d.to_html() and not read(d.to_html()).scripts


def test_weights_too_large_for_a_page_are_said_to_be() -> None:
    rows = ", ".join(f"[{k}]" for k in range(33))
    text = f"Q = [[1]]\nK = [{rows}]\nV = [{rows}]\ndigits = 2"
    page = derive(example=examples.parse(text.encode(), "wide"), form="matrix").to_html()
    assert "1 × 33 is too large for a page" in page and not read(page).scripts


# --- colours


def luminance(colour: tuple[int, ...]) -> float:
    linear = [c / 255 / 12.92 if c <= 10 else ((c / 255 + 0.055) / 1.055) ** 2.4 for c in colour]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(a: tuple[int, ...], b: tuple[int, ...]) -> float:
    high, low = sorted((luminance(a), luminance(b)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def parsed(colour: str) -> tuple[int, ...]:
    return tuple(int(colour[k : k + 2], 16) for k in (1, 3, 5))


def test_text_on_a_cell_is_readable_at_every_weight_in_both_schemes() -> None:
    heat = [tuple(map(int, x.split())) for x in re.findall(r"--heat:([\d ]+)", css())]
    bars = [parsed(x) for x in re.findall(r"--bar:(#\w{6})", css())]
    inks = [parsed(x) for x in re.findall(r"(?:\.symattn\{|wrap;)?[{;]color:(#\w{6});background:#(?:fff|0d1117)", css())][:2]
    pages = [(255, 255, 255), (13, 17, 23)]
    assert len(heat) == len(bars) == len(inks) == 2
    for ink, page, hot, bar in zip(inks, pages, heat, bars, strict=True):
        for k in range(21):
            cell = tuple(round(p + (h - p) * k / 20) for p, h in zip(page, hot, strict=True))
            assert contrast(ink, cell) >= 4.5, (ink, cell)
            assert contrast(bar, cell) >= 3, (bar, cell)
