"""How wide the pages are in a browser: wide blocks scroll in boxes of their own, and the page never does."""

from __future__ import annotations

import html
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from symattn.derivation import derive, examples
from tests.derivation.cases import TWO_HEADS

CHROMIUM = next((p for p in map(shutil.which, ("chromium", "chromium-browser", "google-chrome")) if p), None)
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync", "--virtual-time-budget=3000", "--dump-dom"),
)
FRAMES = """<!DOCTYPE html><meta charset="utf-8"><body>{frames}<p id="said"></p><script>
onload = () => {{
  const widths = [...document.querySelectorAll('iframe')].map(f => {{
    const page = f.contentDocument.scrollingElement;
    return page.scrollWidth + '/' + page.clientWidth + '/' + f.contentDocument.querySelectorAll('.w').length;
  }});
  document.getElementById('said').textContent = widths.join(' ');
}}</script>"""
LONG = b"X = [[1, 2], [3, 4]]\ndigits = 120\ntitle = '" + b"w" * 150 + b"'\n[definition]\nsoftcap = 3\nscore = 's + tanh(s)/3'"


def measured(pages: list[tuple[str, int]], folder: Path) -> list[tuple[int, int, int]]:
    """Width of the content, width of the window and number of lines of each page, in windows of the widths given."""
    if CHROMIUM is None:
        pytest.skip("no Chromium is installed")
    frames = [
        f'<iframe width="{w}" height="800" style="border:0" srcdoc="{html.escape(p, quote=True)}"></iframe>' for p, w in pages
    ]
    (folder / "frames.html").write_text(FRAMES.format(frames="".join(frames)), encoding="utf-8")
    command = [CHROMIUM, *FLAGS, f"--user-data-dir={folder / 'profile'}", (folder / "frames.html").as_uri()]
    dom = subprocess.run(command, capture_output=True, timeout=120).stdout.decode("utf-8")
    said = re.search(r'<p id="said">([\d/ ]+)</p>', dom)
    assert said, dom[-500:]
    return [(int(a), int(b), int(c)) for a, b, c in (x.split("/") for x in said[1].split())]


def test_no_page_scrolls_sideways(tmp_path: Path) -> None:
    sources = [examples.load(name) for name in examples.shipped()]
    sources += [examples.parse(TWO_HEADS, "two heads"), examples.parse(LONG, "long")]
    pages = [(derive(example=e, gradient=True).to_html(), w) for e in sources for w in (390, 1100)]
    found = measured(pages, tmp_path)
    assert len(found) == len(pages) and all(lines > 5 for _, _, lines in found)
    assert [content - window for content, window, _ in found] == [0] * len(pages)


def test_a_page_that_scrolls_sideways_is_noticed(tmp_path: Path) -> None:
    page = derive(example=examples.parse(TWO_HEADS, "two heads"), gradient=True).to_html()
    ((content, window, _),) = measured([(page.replace("overflow-x:auto;overflow-y:hidden;", ""), 390)], tmp_path)
    assert content > window + 5
