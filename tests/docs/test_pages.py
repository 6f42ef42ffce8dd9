"""README.md and docs/: every command in a ``console`` block prints what the page shows, and every link leads somewhere.

In a shown output ``...`` stands for anything, also on a line of its own for any lines.
"""

from __future__ import annotations

import re
import shlex

import pytest

from tests.docs.transcript import ROOT, Command, commands, matches, run

PAGES = [ROOT / "README.md", *sorted(p for p in (ROOT / "docs").rglob("*.md") if "_build" not in p.parts)]
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)#\s]+)(#[^)]*)?\)")
SLOW = {"docs/findings.md"}
"""Pages whose commands run real kernels."""
SHOWN = {str(p.relative_to(ROOT)): commands(p.read_text(encoding="utf-8")) for p in PAGES}
ALONE = [
    pytest.param(page, c, marks=pytest.mark.slow if page in SLOW else (), id=f"{page}:{c.line}")
    for page, found in SHOWN.items()
    for c in found
    if c.file is None and not page.startswith(("docs/tutorials/", "docs/howto/"))  # those are followed from top to bottom
]


@pytest.mark.parametrize(("page", "command"), ALONE)
def test_a_command_prints_what_the_page_shows(page: str, command: Command, tmp_path):
    assert shlex.split(command.line)[0] == "symattn", f"{page}: only symattn is run here, got {command.line!r}"
    for c in SHOWN[page]:
        if c.file is not None:
            (tmp_path / c.file).write_text(c.shown, encoding="utf-8")
    got = run(command.line, tmp_path)
    assert matches(command.shown, got), f"{page}: $ {command.line}\n{got}"


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    for target, _ in LINK.findall(page.read_text(encoding="utf-8")):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{page.name}: {target} does not exist"


def test_the_matcher_can_fail():
    assert matches("a\n...\nb 1...\n", "a\nx\ny\nb 123\n")
    assert not matches("a\n...\nb\n", "a\nx\nc\n")
    assert not matches("b 2", "b 1")
