"""What a page shows of a terminal: commands, what they print, and the files that they read."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PYTHON = [sys.executable, "-W", "error"]
PROGRAMS = {
    "symattn": [*PYTHON, "-m", "symattn_cli"],
    "python": PYTHON,
    "pytest": [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:xdist"],
    "cc": ["cc"],
    "pdflatex": ["pdflatex"],
    "sed": ["sed"],
    "mkdir": ["mkdir"],
}
"""Programs that pages call, and how each is run here."""


@dataclass(frozen=True)
class Command:
    """A command of a ``console`` block and what the page says it prints."""

    line: str
    shown: str

    @property
    def file(self) -> str | None:
        """The file whose text the page shows by ``$ cat NAME``."""
        words = shlex.split(self.line)
        return words[1] if words[0] == "cat" and len(words) == 2 else None


def commands(text: str) -> list[Command]:
    """Every ``$ `` line of every console block of a page, with the output below it."""
    found = []
    for block in re.findall(r"^```console\n(.*?)^```", text, re.M | re.S):
        for part in re.split(r"^\$ ", block, flags=re.M)[1:]:
            line, _, shown = part.partition("\n")
            found.append(Command(line, shown))
    return found


def matches(expected: str, got: str) -> bool:
    """Whether an output is what the page shows, trailing blanks and ``...`` aside."""
    lines = [re.escape(line.rstrip()) for line in expected.strip("\n").splitlines()]
    pattern = "\n".join(r"(?:.*\n)*?.*" if line == re.escape("...") else line.replace(re.escape("..."), ".*") for line in lines)
    return re.fullmatch(pattern, "\n".join(line.rstrip() for line in got.strip("\n").splitlines())) is not None


def run(line: str, folder: Path) -> str:
    """What a command prints, in a folder; the exit code too, where the line ends in ``; echo $?``."""
    line, asks, _ = line.partition("; echo $?")
    words = shlex.split(line)
    if words[0] in ("cc", "pdflatex") and not shutil.which(words[0]):
        pytest.skip(f"{words[0]} is not installed")
    program = [str(folder / words[0])] if words[0].startswith("./") else PROGRAMS[words[0]]
    path = os.pathsep.join([str(ROOT), str(ROOT / "cli"), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [*program, *words[1:]],
        capture_output=True,
        text=True,
        cwd=folder,
        timeout=300,
        env=os.environ | {"PYTHONPATH": path, "COLUMNS": "80"},
    )
    return done.stdout + done.stderr + (f"{done.returncode}\n" if asks else "")


def follow(text: str, folder: Path) -> list[str]:
    """A page done from top to bottom in one folder: every command in turn; a line for each that prints something else.

    A page may show parts of one output one after another: a command that was run on the same files is not run again.
    """
    wrong = []
    printed: dict[str, str] = {}
    for c in commands(text):
        if c.file is not None:
            target = folder / c.file
            if target.exists():  # made by a command before
                got = target.read_text(encoding="utf-8")
                wrong += [] if matches(c.shown, got) else [f"$ {c.line}\n{got}"]
            else:
                target.write_text(c.shown, encoding="utf-8")
                printed.clear()
            continue
        if not c.line.startswith("symattn "):
            printed.clear()
        got = printed[c.line] = printed[c.line] if c.line in printed else run(c.line, folder)
        wrong += [] if matches(c.shown, got) else [f"$ {c.line}\n{got}"]
    return wrong
