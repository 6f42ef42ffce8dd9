"""TeX as a judge of documents: whether one compiles, what its log complains about, and how wide the page became."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from tests.support import require_program

OVERFULL = 1.0
"""Points that a line may stick out."""


def compiled(tex: str, folder: Path, engine: str = "pdflatex", **beside: str) -> str:
    """The log of the last run, when references stand; ``beside`` are other files in the folder, NAME.tex."""
    program = require_program(engine)
    (folder / "d.tex").write_text(tex, encoding="ascii")
    for name, text in beside.items():
        (folder / f"{name}.tex").write_text(text, encoding="ascii")
    command = [program, "-interaction=nonstopmode", "-halt-on-error", "-no-shell-escape", "d.tex"]
    log = ""
    for _ in range(4):
        done = subprocess.run(command, cwd=folder, capture_output=True, timeout=300)
        log = (folder / "d.log").read_bytes().decode("latin-1")
        assert done.returncode == 0 and (folder / "d.pdf").stat().st_size > 1000, log[-2000:]
        if not re.search(r"Rerun to get|No file d\.aux", log) or r"\label" not in tex + "".join(beside.values()):
            break
    return log


def complaints(log: str) -> list[str]:
    """What the log says about missing characters, undefined or repeated things, and boxes that stick out."""
    found = re.findall(r"Missing character.*|LaTeX Warning.*|Undefined.*|Package amsmath Warning.*", log)
    return found + [m[0] for m in re.finditer(r"Overfull \\[hv]box \((\d+\.\d+)pt.*", log) if float(m[1]) > OVERFULL]


def sizes(folder: Path) -> set[tuple[int, int]]:
    """Width and height in millimetres of the pages of the PDF, as pdfinfo gives them."""
    program = require_program("pdfinfo")
    said = subprocess.run([program, "-l", "999", "d.pdf"], cwd=folder, capture_output=True, timeout=60).stdout.decode()
    found = re.findall(r"Page +\d+ size: +([\d.]+) x ([\d.]+) pts", said)
    return {(round(float(w) * 25.4 / 72), round(float(h) * 25.4 / 72)) for w, h in found}
