"""What the site adds to the pages: every page has its place, references name things that exist, docstrings read well."""

from __future__ import annotations

import importlib.util
import re
from types import ModuleType

import pytest

from tests.docs.transcript import ROOT

DOCS = ROOT / "docs"


def extension(name: str) -> ModuleType:
    """A module of docs/_sphinx; none of them needs Sphinx to be imported."""
    spec = importlib.util.spec_from_file_location(f"site_{name}", DOCS / "_sphinx" / f"{name}.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_page_has_a_place_in_the_sidebar() -> None:
    listed = {page for pages in extension("contents").CHAPTERS.values() for page in pages}
    assert {p.stem for p in DOCS.glob("*.md")} - {"index"} == {p for p in listed if "/" not in p}
    assert {f"{p.parent.name}/index" for p in DOCS.glob("*/index.*") if not p.parent.name.startswith("_")} <= listed


@pytest.mark.parametrize("folder", ["tutorials", "howto"])
def test_every_tutorial_and_how_to_is_listed(folder: str) -> None:
    shown = re.findall(r"\]\((\w[\w-]*)\.md\)", (DOCS / folder / "index.md").read_text(encoding="utf-8"))
    assert set(shown) == {p.stem for p in (DOCS / folder).glob("*.md")} - {"index"}


@pytest.mark.parametrize(
    ("name", "there"),
    [("symattn.program.Program", True), ("numpy.ndarray", True), ("symattn.program.Programme", False), ("nowhere.at.all", False)],
)
def test_a_reference_names_something_or_fails_the_build(name: str, there: bool) -> None:
    assert extension("existing").exists(name) is there


def test_examples_stand_in_a_section_of_their_own_and_bars_are_bars() -> None:
    lines = ["The value |x|, and ``|y|``.", "", "Raises", "------", "Error", "    Why.", "", ">>> 1 | 2", "3"]
    extension("docstrings").tidy(None, "function", "f", None, None, lines)
    assert lines[0] == r"The value \|x\|, and ``|y|``."
    assert lines[7:] == ["Examples", "--------", ">>> 1 | 2", "3"]


def test_formulas_are_mathml_and_text_beside_them_is_not_lost() -> None:
    class Node:
        def astext(self) -> str:
            return r"S = \frac{R}{\sqrt{d_k}}"

    docutils = pytest.importorskip("docutils.nodes", reason="the extra docs is not installed")
    writer = type("Writer", (), {"body": []})()
    with pytest.raises(docutils.SkipNode):
        extension("mathml").display(writer, Node())
    assert writer.body[0].startswith('<div class="math"><math display="block"') and "<msqrt>" in writer.body[0]
