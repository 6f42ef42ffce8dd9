"""The page of each family in docs/variants is what the catalogue makes of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from symattn import catalogue, variants

PAGES = Path(__file__).parents[2] / "docs" / "variants"


@pytest.mark.parametrize("family", variants.families())
def test_the_page_of_a_family_is_up_to_date(family: str) -> None:
    assert (PAGES / f"{family}.md").read_text(encoding="utf-8") == catalogue.page(family), "run python -m symattn.catalogue"


def test_the_page_of_all_families_is_up_to_date() -> None:
    assert (PAGES / "index.md").read_text(encoding="utf-8") == catalogue.index(), "run python -m symattn.catalogue"


def test_there_are_no_other_pages() -> None:
    assert {p.stem for p in PAGES.glob("*.md")} == {*variants.families(), "index"}
