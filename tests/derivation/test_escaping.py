from __future__ import annotations

import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from symattn.derivation.escaping import display_width, html_text, latex_text, markdown_text, shortened, visible

HOSTILE = [
    r"\input{x}",
    "<script>alert(1)</script>",
    "$",
    "$$x$$",
    "%",
    "&amp;",
    "a_b^c",
    "~#{}",
    "\u202eabc",
    "\x00\x1b[31m",
    "`x`",
    "[a](b)",
    "|",
    '"',
    "猫",
    "é",
    "ß",
]


@given(st.text() | st.sampled_from(HOSTILE))
def test_latex_has_no_active_letter_left(text: str) -> None:
    out = latex_text(text)
    assert out.isascii()
    bare = out
    for macro in (
        "textbackslash",
        "textasciicircum",
        "textasciitilde",
        "textasciigrave",
        "textless",
        "textgreater",
        "textbar",
        "dots",
    ):
        bare = bare.replace(f"\\{macro}{{}}", "")
    assert r"\input" not in bare and r"\write" not in bare
    depth = 0
    for k, c in enumerate(bare):
        if c in "{}" and (k == 0 or bare[k - 1] != "\\"):
            depth += 1 if c == "{" else -1
            assert depth >= 0
    assert depth == 0


@given(st.text() | st.sampled_from(HOSTILE))
def test_html_and_markdown_have_no_tag_left(text: str) -> None:
    assert not set(html_text(text)) & set("<>\"'\x00\u202e")
    assert not set(markdown_text(text)) & set("<>$`*_[]\\|~")


@given(st.text())
def test_everything_is_visible_and_short(text: str) -> None:
    assert all(unicodedata.category(c)[0] != "C" for c in visible(text))
    assert display_width(shortened(visible(text))) <= 24


def test_ordinary_words_are_left_alone() -> None:
    for word in ("cat", "the", "Wort"):
        assert latex_text(word) == markdown_text(word) == html_text(word) == visible(word) == word
    assert latex_text("é über") == "\\'{e} \\\"{u}ber"
