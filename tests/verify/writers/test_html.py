"""The page: one file that loads nothing, escapes everything, draws what failed and says it in words."""

from __future__ import annotations

import base64
import re
from html.parser import HTMLParser

import pytest

from symattn.verify.properties.finding import NOT_APPLICABLE, PropertyReport
from symattn.verify.writers import document, picture
from symattn.verify.writers.html import FEW, POLICY
from tests.verify.writers.reports import HOSTILE, case, each, evidence, hostile, report, tensor

VOID = {"meta", "img"}


class Page(HTMLParser):
    """A page read strictly: every element that is opened is closed in its order."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.open, self.elements, self.words = [], [], []
        self.feed(text)
        self.close()
        assert not self.open, self.open

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "style" not in self.open:
            self.words.append(data)

    @property
    def text(self):
        return "\n".join(self.words)

    def all(self, tag):
        return [a for t, a in self.elements if t == tag]


@pytest.mark.parametrize("r", [each(), hostile(), report(error=HOSTILE, ended="error"), report(case(tensor()), kernel=None)])
def test_one_file_that_loads_and_runs_nothing(r):
    page = Page(document(r, "html"))
    assert {t for t, _ in page.elements} <= {
        *("html", "head", "meta", "title", "style", "body", "main", "header", "section", "p", "h1", "h2", "h3", "span", "b"),
        *("dl", "dt", "dd", "pre", "code", "ul", "li", "a", "table", "thead", "tbody", "tr", "th", "td"),
        *("details", "summary", "div", "figure", "img", "figcaption"),
    }
    assert {"http-equiv": "Content-Security-Policy", "content": POLICY} in page.all("meta")
    for _, attributes in page.elements:
        assert not any(name.startswith("on") for name in attributes)
        assert all(v.startswith(("#", "data:image/png")) for k, v in attributes.items() if k in ("href", "src"))
    css = document(r, "html").partition("<style>")[2].partition("</style>")[0]
    assert "url(" not in css and "@import" not in css and "prefers-color-scheme: dark" in css


def test_hostile_text_is_shown_as_text():
    assert "<img src=x onerror=1>" in Page(document(hostile(), "html")).text


def test_verdicts_diagnosis_arithmetic_and_replay_line():
    text = Page(document(each(), "html")).text
    for words in ("F1 a fault", "where it shows", "little power", "flash-bf16: flash", "symattn verify k", "no such device"):
        assert words in text
    assert "LSE[0,1,2,3]: kernel 0.33333333333333333333" in text and "known: an old fault" in text and "suspect: a leak" in text
    assert "no such device" in Page(document(report(error="no such device"), "html")).text


def test_a_section_that_a_report_will_have_is_shown():
    class Richer(type(each())):
        def to_dict(self):
            return super().to_dict() | {"power": [{"fault": "<F1>", "seen": True}], "checks": {"note": ["a", "b"]}}

    r = each()
    page = Page(document(Richer(**{f: getattr(r, f) for f in r.__dataclass_fields__}), "html"))
    assert "Power" in page.text and "<F1>" in page.text and "yes" in page.text and "Checks" in page.text


def test_heat_maps_with_their_text():
    wrong = [(0, 1, 2, 3), (0, 1, 2, 4), (1, 2, 0, 0)]
    page = Page(document(report(case(tensor("fail", evidence=evidence(wrong=wrong)))), "html"))
    texts = [a["alt"] for a in page.all("img")]
    assert len(texts) == 7  # head x query, and a panel per batch entry and head
    assert texts[0].startswith("6 (batch and head) x 4 (query); 2 of 24 out of bounds, in batch and head 1, 5, query 0, 2")
    said = "batch 0, head 1: 4 (query) x 5 (channel); 2 of 20 out of bounds, in query 2, channel 3-4; "
    assert said + "the worst is 100 times its bound" in texts
    assert all(a["src"].startswith("data:image/png;base64,") for a in page.all("img"))
    assert "O: query (down) x channel (across)." in page.text and "out: beyond" in page.text


def test_without_kept_elements_there_are_no_pictures():
    page = Page(document(each(), "html"))
    assert not page.all("img") and "Colours" not in page.text


def test_of_many_cases_only_what_does_not_pass_is_drawn():
    cases = [case(tensor(evidence=evidence()), name=f"c{k}") for k in range(FEW)]
    failing = case(tensor("fail", evidence=evidence(wrong=[(0, 0, 0, 0)])), name="bad")
    assert len(Page(document(report(*cases), "html")).all("img")) == 7 * FEW
    assert len(Page(document(report(*cases, failing), "html")).all("img")) == 7


def test_of_many_heads_the_worst_are_drawn():
    shape = (2, 30, 2, 2)
    page = Page(document(report(case(tensor("fail", evidence=evidence(shape, [(1, 29, 1, 1)])))), "html"))
    assert len(page.all("img")) == 1 + 24 and "24 of 60 shown, those with the worst elements" in page.text
    assert any(a["alt"].startswith("batch 1, head 29") for a in page.all("img"))


def test_pictures_are_png_files_of_the_cells():
    import struct
    import zlib

    page = document(report(case(tensor("fail", evidence=evidence((3, 4), [(1, 2)])))), "html")
    data = base64.b64decode(re.search(r"base64,([^\"]+)", page)[1])
    width, height, depth, kind = struct.unpack(">IIBB", data[16:26])
    assert (width, height, depth, kind) == (4, 3, 8, 3)
    at, chunks = 8, {}
    while at < len(data):
        (size,) = struct.unpack(">I", data[at : at + 4])
        name, body = data[at + 4 : at + 8], data[at + 8 : at + 8 + size]
        assert struct.unpack(">I", data[at + 8 + size : at + 12 + size])[0] == zlib.crc32(name + body)
        chunks[name] = body
        at += 12 + size
    lines = zlib.decompress(chunks[b"IDAT"])
    pixels = [list(lines[5 * k + 1 : 5 * k + 5]) for k in range(3)]
    assert pixels == [[0, 0, 0, 0], [0, 0, 8, 0], [0, 0, 0, 0]] and len(chunks[b"PLTE"]) == 3 * len(picture.CLASSES)


def test_properties_come_after_the_cases_and_those_that_do_not_apply_are_counted():
    found = (
        PropertyReport("hull", "O lies in the hull of V", "fail", "O[0,0,0,0] is above it", "normal", 2.5),
        PropertyReport("twice", "the same twice", "suspect", counts=False),
        PropertyReport("buffer", "the buffer out=", NOT_APPLICABLE, "takes none"),
        PropertyReport("split", "keys in two halves", NOT_APPLICABLE, "gives no lse"),
    )
    text = document(report(case(tensor()), properties=found), "html")
    assert 0 < text.index('id="case-0"') < text.index("<h2>Properties</h2>") and text.count("<h2>Properties</h2>") == 1
    words = Page(text).text
    assert "O lies in the hull of V: O[0,0,0,0] is above it" in words and "2 more do not apply" in words
    assert "buffer out=" not in words and "gives no lse" not in words and "not counted" in words
    assert "<h2>Properties</h2>" not in document(report(case(tensor())), "html")
