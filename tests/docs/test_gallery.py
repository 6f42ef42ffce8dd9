"""The gallery: its page is what its rows say, and rows are built."""

from __future__ import annotations

import importlib.util
import shutil
import sys

import pytest

from tests.docs.transcript import ROOT

DOCS = ROOT / "docs"


@pytest.fixture(scope="module")
def gallery():
    spec = importlib.util.spec_from_file_location("gallery", DOCS / "gallery.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["gallery"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    yield module
    del sys.modules["gallery"]


def test_the_page_is_up_to_date(gallery) -> None:
    assert (DOCS / "gallery.md").read_text(encoding="utf-8") == gallery.page(), "run python docs/gallery.py --page"


def test_every_picture_is_there_and_small(gallery) -> None:
    shown = {row.name for row in gallery.ROWS if row.picture}
    assert {p.stem for p in (DOCS / "gallery").glob("*.png")} == shown
    assert all(p.stat().st_size < 60_000 for p in (DOCS / "gallery").glob("*.png"))


def test_the_page_of_pictures_links_what_was_made(gallery) -> None:
    made = gallery.index({"sink": ["sink.html", "sink.pdf", "sink.png"]})
    assert 'href="sink.pdf"' in made and 'src="sink.png"' in made and "ring" not in made


def test_a_row_is_built(gallery, tmp_path) -> None:
    gallery.build_all(["sliding-window"], tmp_path)
    assert "<math" in (tmp_path / "sliding-window.html").read_text(encoding="utf-8")
    assert 'href="sliding-window.html"' in (tmp_path / "index.html").read_text(encoding="utf-8")
    if shutil.which("pdflatex"):
        assert (tmp_path / "sliding-window.pdf").read_bytes().startswith(b"%PDF")


def test_a_name_that_is_no_row_is_refused(gallery, tmp_path) -> None:
    with pytest.raises(SystemExit, match="no such row: slinky"):
        gallery.build_all(["slinky"], tmp_path)


@pytest.mark.slow
def test_all_of_it_is_built(gallery, tmp_path) -> None:
    gallery.build_all([], tmp_path)
    assert {p.stem for p in tmp_path.glob("*.html")} == {row.name for row in gallery.ROWS} | {"index"}
