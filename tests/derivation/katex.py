"""KaTeX as a judge of formulas: one process of node for as many as there are."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.derivation.formulas import Formula
from tests.support import IN_CI, require_program

ROOT = Path(__file__).parents[2]
SCRIPT = Path(__file__).with_name("katex.cjs")


def require_katex() -> tuple[str, str]:
    """node and the folder of KaTeX: what ``SYMATTN_KATEX`` says, or ``node_modules`` in the checkout (``npm install katex``)."""
    node = require_program("node")
    places = [Path(os.environ["SYMATTN_KATEX"])] if "SYMATTN_KATEX" in os.environ else []
    for place in (*places, ROOT / "node_modules"):
        for folder in (place, place / "katex", place / "node_modules" / "katex"):
            if (folder / "package.json").is_file() and (folder / "dist" / "katex.js").is_file():
                return node, str(folder.resolve())
    if IN_CI:
        pytest.fail("KaTeX must be installed in CI: npm install katex, in the root of the checkout")
    pytest.skip("KaTeX is not installed: npm install katex in the root of the checkout, or name its folder in SYMATTN_KATEX")


def complaints(formulas: Iterable[Formula]) -> list[str]:
    """What KaTeX says against formulas, with ``throwOnError`` and ``strict: 'error'``; each with the formula."""
    node, katex = require_katex()
    given = list(dict.fromkeys(formulas))
    sent = json.dumps([{"tex": tex, "display": display} for tex, display in given])
    done = subprocess.run([node, str(SCRIPT), katex], input=sent.encode(), capture_output=True, timeout=600)
    assert done.returncode == 0, done.stderr.decode("utf-8", "replace")[-2000:]
    said = json.loads(done.stdout)
    assert len(said) == len(given)
    return [f"{why}: {tex}" for why, (tex, _) in zip(said, given, strict=True) if why is not None]
