"""Pages in a browser: wide blocks scroll in boxes of their own and the page never does; what the sliders compute is right."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from pathlib import Path

import mpmath
import pytest

from symattn import variants
from symattn.derivation import Derivation, derive, examples
from symattn.derivation.drawn import example_of
from tests.derivation.cases import TWO_HEADS
from tests.derivation.test_html import with_blocks
from tests.support import IN_CI

CHROMIUM = next((p for p in map(shutil.which, ("chromium", "chromium-browser", "google-chrome")) if p), None)
PHONE, DESK = 390, 1100
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
    frames = [
        f'<iframe width="{w}" height="800" style="border:0" srcdoc="{html.escape(p, quote=True)}"></iframe>' for p, w in pages
    ]
    said = answered(FRAMES.format(frames="".join(frames)), folder)
    return [(int(a), int(b), int(c)) for a, b, c in (x.split("/") for x in said.split())]


def answered(page: str, folder: Path) -> str:
    """What the script of a page says in the element ``said``."""
    if CHROMIUM is None:
        if IN_CI:
            pytest.fail("Chromium must be installed in CI")
        pytest.skip("no Chromium is installed")
    (folder / "frames.html").write_text(page, encoding="utf-8")
    command = [CHROMIUM, *FLAGS, f"--user-data-dir={folder / 'profile'}", (folder / "frames.html").as_uri()]
    dom = subprocess.run(command, capture_output=True, timeout=120).stdout.decode("utf-8")
    said = re.search(r'<p id="said">([^<]+)</p>', dom)
    assert said, dom[-500:]
    return html.unescape(said[1])


def overflowing(derivations: list[Derivation], folder: Path, widths: tuple[int, ...] = (PHONE,)) -> list[str]:
    """The titles of the pages that are wider than their window."""
    found = measured([(d.to_html(), w) for d in derivations for w in widths], folder)
    titles = [d.title for d in derivations for _ in widths]
    assert len(found) == len(titles)
    return [f"{t}: {content - window}" for t, (content, window, _) in zip(titles, found, strict=True) if content != window]


def test_no_page_scrolls_sideways(tmp_path: Path) -> None:
    sources = [examples.load(name) for name in examples.shipped()]
    sources += [examples.parse(TWO_HEADS, "two heads"), examples.parse(LONG, "long")]
    pages = [derive(example=e, gradient=True) for e in sources]
    assert all(d.steps[4].lines for d in pages)
    assert overflowing([*pages, with_blocks()], tmp_path, (PHONE, DESK)) == []


def of_variant(name: str) -> list[Derivation]:
    """A row of the catalogue in symbols with its gradient, and in drawn numbers in full detail."""
    row = variants.get(name)
    found = [derive(row.definition, gradient=True, title=name)]
    if row.definition.algorithm is None:
        numbers = example_of(row.definition, 1, tokens=["the", "cat", "sat", "on"] if row.definition.start == "tokens" else ())
        found.append(derive(row.definition, numbers, title=name, detail="full"))
    return found


def test_pages_of_two_variants_fit_a_telephone(tmp_path: Path) -> None:
    assert overflowing([d for n in ("grouped-query", "differential") for d in of_variant(n)], tmp_path) == []


@pytest.mark.slow
@pytest.mark.parametrize("family", variants.families())
def test_pages_of_every_variant_fit_a_telephone(family: str, tmp_path: Path) -> None:
    names = [n for n in variants.names() if variants.family_of(n) == family]
    wide = []
    for k in range(0, len(names), 8):
        (folder := tmp_path / str(k)).mkdir()
        wide += overflowing([d for n in names[k : k + 8] for d in of_variant(n)], folder)
    assert wide == []


def test_a_page_that_scrolls_sideways_is_noticed(tmp_path: Path) -> None:
    page = derive(example=examples.parse(TWO_HEADS, "two heads"), gradient=True).to_html()
    style = page.replace("overflow-x:auto;overflow-y:hidden;", "")
    policy = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", style)  # which would refuse the changed style
    ((content, window, _),) = measured([(policy, 390)], tmp_path)
    assert content > window + 5


# --- the sliders

ACT = """<!DOCTYPE html><meta charset="utf-8"><body><iframe srcdoc="{page}"></iframe><p id="said"></p><script>
onload = () => {{
  const page = document.querySelector('iframe').contentDocument;
  const form = page.querySelector('.knobs');
  const said = [];
  const inner = rows => [...rows].slice(1);
  const look = () => said.push({{
    cells: [...page.querySelectorAll('.heat')].map(t => inner(t.rows).map(r => inner(r.cells).map(c => c.textContent))),
    mode: page.querySelector('.mode').textContent,
    arrows: [...page.querySelectorAll('[data-head="0"] [data-key] path:first-child')].map(p => p.getAttribute('stroke-width')),
    now: [...page.querySelectorAll('.now')].map(c => c.textContent),
    hidden: form.hidden,
  }});
  const set = (temperature, mask, offset) => {{
    page.querySelector('.temperature').value = Math.log2(temperature);
    if (mask) page.querySelector('[value=' + mask + ']').checked = true;
    if (offset !== undefined) page.querySelector('.offset').value = offset;
    form.dispatchEvent(new Event('input'));
    look();
  }};
  setTimeout(() => {{
    look();
    {acts}
    document.getElementById('said').textContent = JSON.stringify(said);
  }}, 50);
}}</script>"""
"""Numbers are shown with four decimals; what the page says is told to the frame around it, which its policy does not bind."""


def moved(d: Derivation, acts: list[tuple[float, str, int]], folder: Path) -> list[dict[str, object]]:
    """What a page shows at first, and after each setting of temperature, mask and offset."""
    calls = "".join(f"set({t}, '{mask}', {offset});" for t, mask, offset in acts)
    return json.loads(answered(ACT.format(page=html.escape(d.to_html(), quote=True), acts=calls), folder))


def softmax(row: list[object], temperature: float, seen: list[bool]) -> list[object]:
    e = [mpmath.exp(mpmath.mpf(x) / temperature) if ok else None for x, ok in zip(row, seen, strict=True)]  # type: ignore[arg-type]
    total = mpmath.fsum(x for x in e if x is not None)
    return [x / total if x is not None else None for x in e]


def test_the_sliders_compute_the_softmax_of_the_scores(tmp_path: Path) -> None:
    d = derive(example=examples.parse(TWO_HEADS, "two heads"))  # causal, two heads
    acts = [(2.0, "own", 0), (0.5, "none", 0), (1.0, "causal", 2), (1.0, "own", 0)]
    still, *after = moved(d, acts, tmp_path)
    assert not still["hidden"] and str(still["mode"]).startswith("Enclosed numbers")
    assert after[-1] == {**still, "now": after[-1]["now"]}, "back where it was, digit for digit"
    for shown, (temperature, mask, offset) in zip(after[:-1], acts, strict=False):
        assert str(shown["mode"]).startswith("Estimated (float64 in the browser) at temperature")
        for cells, head in zip(shown["cells"], d.maps[0].heads, strict=True):  # type: ignore[call-overload]
            for i, (row, scores) in enumerate(zip(cells, head.scores, strict=True)):
                seen = [mask == "none" or j <= i + (offset if mask == "causal" else 0) for j in range(5)]
                for text, x in zip(row, softmax(list(scores), temperature, seen), strict=True):
                    close(text, x)
    widths = [float(w) for w in after[0]["arrows"]]  # type: ignore[attr-defined]
    assert len(set(widths)) > 2 and widths != [float(w) for w in still["arrows"]]  # type: ignore[attr-defined]
    within = re.search(r"within (\S+) of the enclosed", str(after[0]["mode"]))
    assert within and float(within[1]) < 1e-15


def close(text: str, x: object) -> None:
    if x is None:
        assert text == "·"
    else:
        value = float(text.replace("−", "-"))
        assert abs(value - x) <= (5.1e-5 if "e" not in text else 5.1e-4 * x), (text, x)  # type: ignore[operator]


def test_without_scripts_the_enclosed_numbers_stay(tmp_path: Path) -> None:
    page = re.sub(r"<script>.*?</script>", "", derive(example="two-words").to_html(), flags=re.DOTALL)
    (shown,) = json.loads(answered(ACT.format(page=html.escape(page, quote=True), acts=""), tmp_path))
    assert shown["hidden"] and shown["cells"][0][0] == ["0.0903", "0.9097"]


def test_a_script_that_is_not_that_of_the_page_does_not_run(tmp_path: Path) -> None:
    page = derive(example="two-words").to_html().replace("</article>", "</article><script>document.title = 'ran'</script>")
    frame = f'<iframe srcdoc="{html.escape(page, quote=True)}"></iframe><p id="said"></p><script>onload = () => '
    tell = "document.getElementById('said').textContent = document.querySelector('iframe').contentDocument.title</script>"
    assert answered("<!DOCTYPE html><body>" + frame + tell, tmp_path) == "two words"
