"""What is shown of a long run: a bar on the stream that it is given, and nothing where that is no terminal."""

from __future__ import annotations

import io
import sys
from typing import Any

import pytest

from symattn.truth.work import Work
from symattn.truth.work.progress import shown
from tests.truth.work.jobs import run


def test_a_bar_counts_blocks_on_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    with shown("truth", sys.stderr, force=True) as progress:
        run(Work(workers=1, blocks=1, progress=progress))
        assert progress is not None
        progress("O, L", 3, 7)
    out = capsys.readouterr()
    assert out.out == "" and "truth: O, L" in out.err and "blocks" in out.err


@pytest.mark.parametrize("stream", [io.StringIO(), None])
def test_no_terminal_no_bar(stream: Any, capsys: pytest.CaptureFixture[str]) -> None:
    with shown("truth", stream) as progress:
        assert progress is None
    assert capsys.readouterr() == ("", "")
