"""The page of theorems is what its rows generate, and every formula on it is there."""

from __future__ import annotations

from pathlib import Path

from symattn.theorems.catalogue import THEOREMS
from symattn.theorems.page import COMMAND, page

PAGE = Path(__file__).resolve().parents[2] / "docs" / "theorems.md"


def test_the_page_is_what_the_rows_generate():
    assert PAGE.read_text(encoding="utf-8") == page(), f"run `{COMMAND}`"


def test_every_theorem_is_on_it():
    text = page()
    for row in THEOREMS.values():
        assert f"### {row.name}\n" in text and row.latex in text and row.source in text
