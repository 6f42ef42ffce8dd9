"""README.md and docs/: every command in a ``console`` block prints what the page shows, and every link leads somewhere.

In a shown output ``...`` stands for anything, also on a line of its own for any lines.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted(p for p in (ROOT / "docs").rglob("*.md") if "_build" not in p.parts)]
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)#\s]+)(#[^)]*)?\)")


def console_blocks() -> list[tuple[str, str, str]]:
    """(page, command, expected output) for every `$ ` line of every console block."""
    found = []
    for page in PAGES:
        for block in re.findall(r"^```console\n(.*?)^```", page.read_text(encoding="utf-8"), re.M | re.S):
            for part in re.split(r"^\$ ", block, flags=re.M)[1:]:
                command, _, output = part.partition("\n")
                found.append((str(page.relative_to(ROOT)), command, output))
    return found


def matches(expected: str, got: str) -> bool:
    """Whether an output is what the page shows, trailing blanks and `...` aside."""
    lines = [re.escape(line.rstrip()) for line in expected.strip("\n").splitlines()]
    pattern = "\n".join(r"(?:.*\n)*?.*" if line == re.escape("...") else line.replace(re.escape("..."), ".*") for line in lines)
    return re.fullmatch(pattern, "\n".join(line.rstrip() for line in got.strip("\n").splitlines())) is not None


SLOW = {"docs/findings.md"}
"""Pages whose commands run real kernels."""
COMMANDS = [
    pytest.param(*b, marks=pytest.mark.slow if b[0] in SLOW else ()) for b in console_blocks() if not b[1].startswith("cat ")
]


@pytest.mark.parametrize(("page", "command", "expected"), COMMANDS)
def test_a_command_prints_what_the_page_shows(page, command, expected, tmp_path):
    words = shlex.split(command)
    assert words[0] == "symattn", f"{page}: only symattn is run here, got {command!r}"
    for name, text in files_of(page):
        (tmp_path / name).write_text(text, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "symattn_cli", *words[1:]], capture_output=True, text=True, cwd=tmp_path, timeout=300
    )
    assert matches(expected, done.stdout + done.stderr), f"{page}: $ {command}\n{done.stdout}{done.stderr}"


def files_of(page: str) -> list[tuple[str, str]]:
    """Files that a page shows by `$ cat NAME`, so that later commands can read them."""
    return [(shlex.split(c)[1], out) for p, c, out in console_blocks() if p == page and c.startswith("cat ")]


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    for target, _ in LINK.findall(page.read_text(encoding="utf-8")):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{page.name}: {target} does not exist"


def test_the_matcher_can_fail():
    assert matches("a\n...\nb 1...\n", "a\nx\ny\nb 123\n")
    assert not matches("a\n...\nb\n", "a\nx\nc\n")
    assert not matches("b 2", "b 1")
