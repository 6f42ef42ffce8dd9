"""Tutorials and how-tos are followed from top to bottom, as a reader does: files are written, commands run, outputs compared."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs import transcript

DOCS = transcript.ROOT / "docs"
PAGES = sorted(p for folder in ("tutorials", "howto") for p in (DOCS / folder).glob("*.md") if p.stem != "index")
SLOW = {"kernel", "which-convention"}
"""Pages that take more than some seconds."""


@pytest.mark.parametrize(
    "page", [pytest.param(p, id=f"{p.parent.name}/{p.stem}", marks=[pytest.mark.slow] * (p.stem in SLOW)) for p in PAGES]
)
def test_a_page_can_be_followed(page: Path, tmp_path: Path) -> None:
    text = page.read_text(encoding="utf-8")
    wrong = transcript.follow(text, tmp_path)
    assert not wrong, f"{page.name}:\n" + "\n".join(wrong)
    written = "\n".join(p.read_text(encoding="utf-8") for p in sorted(tmp_path.glob("*.md")))
    for formula in re.findall(r"^\$\$\n(.*?)\n\$\$$", re.sub(r"^```.*?^```", "", text, flags=re.M | re.S), re.M | re.S):
        assert formula in written, f"{page.name}: no command of the page writes {formula}"


@pytest.mark.parametrize("page", PAGES, ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_nothing_is_shown_that_is_not_run(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert set(re.findall(r"^```(\S+)$", text, re.M)) <= {"console", "python", "yaml"}
    assert not re.search(r"^ {4,}(\$|symattn|python|pytest) ", re.sub(r"^```.*?^```", "", text, flags=re.M | re.S), re.M)


def test_a_page_whose_output_is_wrong_is_found(tmp_path: Path) -> None:
    page = "```console\n$ cat three.py\nprint(3)\n$ python three.py\n{}\n```\n"
    assert not transcript.follow(page.format(3), tmp_path)
    assert transcript.follow(page.format(4), tmp_path) == ["$ python three.py\n3\n"]


def test_an_exit_code_is_compared(tmp_path: Path) -> None:
    page = '```console\n$ python -c "raise SystemExit({})"; echo $?\n1\n```\n'
    assert not transcript.follow(page.format(1), tmp_path)
    assert transcript.follow(page.format(0), tmp_path)
