"""A LaTeX document as PDF by the TeX that is installed: pdflatex, xelatex or lualatex, driven by latexmk where that is there.

TeX runs in a folder of its own that is deleted afterwards, never asks, may run no other program, and is stopped with everything
that it started when it takes too long.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from symattn.errors import MissingDependencyError, TypesettingError

ENGINES = ("pdflatex", "xelatex", "lualatex")
SECONDS = 120.0
RUNS = 4
"""At most so many runs, until cross-references stand."""
FLAGS = ("-no-shell-escape", "-interaction=nonstopmode", "-halt-on-error", "-file-line-error")
LATEXMK: Mapping[str, str] = {"pdflatex": "-pdf", "xelatex": "-pdfxe", "lualatex": "-pdflua"}
NONE_INSTALLED = (
    "a PDF needs TeX, and none of pdflatex, xelatex and lualatex was found. Install one: TeX Live (Debian and Ubuntu: "
    "apt-get install texlive-latex-recommended), MacTeX or MiKTeX; or write LaTeX with --format latex and compile it elsewhere"
)


def installed() -> tuple[str, ...]:
    """The engines that are there, the preferred one first."""
    return tuple(e for e in ENGINES if shutil.which(e))


def pdf(tex: str, engine: str | None = None, seconds: float = SECONDS) -> bytes:
    """The PDF of a document.

    Parameters
    ----------
    tex
        A whole document.
    engine
        One of ``pdflatex``, ``xelatex`` and ``lualatex``; None: the first that is installed.
    seconds
        How long all runs together may take.

    Raises
    ------
    MissingDependencyError
        When no engine, or not the one that is asked for, is installed; the message names what to install.
    TypesettingError
        When TeX stops at an error, with the lines of its log that say why, or takes too long.
    """
    found = installed()
    if not found or (engine is not None and engine not in found):
        raise MissingDependencyError(NONE_INSTALLED if not found else f"{engine} is not installed; there are {', '.join(found)}")
    engine = engine or found[0]
    with tempfile.TemporaryDirectory(prefix="symattn-") as name:
        folder = Path(name)
        (folder / "derivation.tex").write_text(tex, encoding="utf-8")
        if shutil.which("latexmk"):
            command = ["latexmk", "-norc", LATEXMK[engine], *FLAGS, "derivation.tex"]
            _run(command, folder, seconds)
        else:
            for _ in range(RUNS):
                log = _run([engine, *FLAGS, "derivation.tex"], folder, seconds)
                if not re.search(r"Rerun to get|Label\(s\) may have changed", log):
                    break
        return (folder / "derivation.pdf").read_bytes()


def _run(command: Sequence[str], folder: Path, seconds: float) -> str:
    """The log of one run."""
    own = {**os.environ, "openin_any": "p", "openout_any": "p", "max_print_line": "1000"}
    process = subprocess.Popen(  # noqa: S603 - a fixed command, found on the path
        command,
        cwd=folder,
        env=own,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=os.name == "posix",
    )
    try:
        printed, _ = process.communicate(timeout=seconds)
    except BaseException as why:
        _stop(process)
        if isinstance(why, subprocess.TimeoutExpired):
            raise TypesettingError(f"{command[0]} took more than {seconds:g} s and was stopped") from why
        raise
    file = folder / "derivation.log"
    log = file.read_bytes().decode("utf-8", "replace") if file.is_file() else printed.decode("utf-8", "replace")
    if process.returncode or not (folder / "derivation.pdf").is_file():
        raise TypesettingError(f"{command[0]} did not make a PDF:\n" + "\n".join(f"  {x}" for x in why_not(log)))
    return log


def _stop(process: subprocess.Popen[bytes]) -> None:
    """End a process and what it started."""
    if os.name == "posix":
        os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()
    process.communicate()


def why_not(log: str) -> list[str]:
    r"""The lines of a log that say what is wrong, each with where TeX stood; the end of the log where none does.

    >>> why_not("This is TeX\nd.tex:7: Undefined control sequence.\nl.7 a \nope\nOutput")
    ['d.tex:7: Undefined control sequence.', 'l.7 a']
    """
    lines = [x.rstrip() for x in log.splitlines()]
    said = [x for x in lines if re.match(r"! |l\.\d+ |[^\s:]+:\d+: |Runaway argument", x)]
    return said[:8] or [x for x in lines if x][-8:]
