"""The weights of a softmax as pictures in a page: a heat map for each head, arrows from the followed query, and sliders.

The heat map is a table: its numbers are text, its words are headings, and a bar says in each cell what its colour says. Without a
script the page shows the enclosed numbers. The script of the page, ``weights.js``, computes the weights again from the scores,
which are in the page as data, for another temperature or causal mask, and labels what it shows as estimated.
"""

from __future__ import annotations

import json
from functools import cache
from importlib import resources

from symattn.derivation.document import Derivation
from symattn.derivation.escaping import html_text, shortened
from symattn.derivation.mathml import math
from symattn.derivation.weightmaps import HeadMap, WeightMap

LEVELS = 20
"""Steps of the colour of a cell that is drawn without a script."""
WORD, LINE, LEFT, RIGHT, TOP = 12, 26, 112, 228, 18
"""Letters of a word, and where things stand in the picture of arrows, in its own units."""
THICKEST = 14
DATA = "symattn-weights"
"""The id of the block of data that the script reads."""


@cache
def script() -> str:
    """The script that is written into a page with sliders."""
    return (resources.files("symattn.derivation") / "weights.js").read_text(encoding="utf-8")


def data(d: Derivation) -> str:
    """What the script computes with, as JSON that ends no script element: numbers as text, and no words.

    >>> from symattn.derivation import derive
    >>> data(derive(example="two-words"))[:60]
    '[{"digits":4,"mark":".","followed":0,"heads":[{"scores":[["0'
    """
    found = [
        {
            "digits": m.digits,
            "mark": getattr(d.style, "mark", "."),
            "followed": m.followed,
            "heads": [{"scores": h.scores, "weights": h.weights, "extras": h.extras} for h in m.heads] if m.live else [],
        }
        for m in d.maps
    ]
    return json.dumps(found, separators=(",", ":"), ensure_ascii=True).replace("<", "\\u003c")


def weight_map(m: WeightMap, number: int, d: Derivation, live: bool) -> list[str]:
    """The pictures of one softmax; ``number`` is its place in the data, ``live`` whether the page has the script."""
    name = math(d.style.name(m.weights))
    if not m.heads:
        size = " × ".join(map(str, m.shape[-2:]))
        return [f'<p class="say">{name} has no picture here: {size} is too large for a page.</p>']
    out = [f'<div class="map" data-map="{number}">', f"<h3>{name} as a picture</h3>"]
    if live and m.live:
        out += _controls(m, number)
    for k, h in enumerate(m.heads):
        out += _head(m, h, k, d, live and m.live)
    total = 1
    for n in m.shape[:-2]:
        total *= n
    if total > len(m.heads):
        out.append(f'<p class="say">{len(m.heads)} of {total} heads are drawn.</p>')
    return [*out, "</div>"]


def _controls(m: WeightMap, number: int) -> list[str]:
    """Sliders, hidden until the script runs."""
    masked = any(h.masked for h in m.heads)
    n, keys = m.shape[-2:]
    out = ['<form class="knobs" hidden>', "<fieldset><legend>Try other values</legend>"]
    out.append(
        f'<p><label for="t{number}">Temperature (what the exponential is taken of is divided by it)</label> '
        f'<input id="t{number}" class="temperature" type="range" min="-4" max="4" step="0.125" value="0"> '
        f'<output for="t{number}" class="said">1</output></p>'
    )
    if m.positions:
        out.append('<p role="radiogroup" aria-label="Mask">')
        choices = [("own", "mask of the definition" if masked else "no mask"), *([("none", "no mask")] if masked else [])]
        for value, said in [*choices, ("causal", "causal mask")]:
            checked = " checked" if value == "own" else ""
            out.append(f'<label><input type="radio" name="mask{number}" value="{value}"{checked}> {said}</label> ')
        out.append(
            f'</p><p><label for="o{number}">Query i sees key j where j ≤ i + offset</label> '
            f'<input id="o{number}" class="offset" type="range" min="{min(0, keys - n)}" max="{keys - 1}" step="1" value="0"> '
            f'<output for="o{number}" class="said">0</output></p>'
        )
    out.append('<p><button type="reset">Back to the numbers of the page</button></p></fieldset>')
    out.append('<p class="mode" role="status">Enclosed numbers, right in every digit that is shown.</p></form>')
    return out


def _head(m: WeightMap, h: HeadMap, number: int, d: Derivation, live: bool) -> list[str]:
    names = getattr(d.style, "heads", {}).get(m.weights, ()) if len(h.leading) == 1 else ()
    which = f" of head {html_text(names[h.leading[0]]) if names else d.style.counted(h.leading)}" if h.leading else ""
    said = f"Weights{which}: a row for each query, a column for each {'key' if m.positions else 'word'}"
    out = [
        f'<figure data-head="{number}"><div class="scroll" tabindex="0" role="region" aria-label="{said}">{_table(m, h, d)}</div>'
    ]
    out.append(
        f"<figcaption>{said}. A fuller bar is a larger weight{', a dot a masked key' if h.masked or live else ''}.</figcaption>"
    )
    if m.followed is not None:
        out.append(f'<div class="scroll">{_arrows(m, h, d, which)}</div>')
        if live:
            out.append(_comparison(m, h, d))
    return [*out, "</figure>"]


def _word(words: tuple[str, ...], k: int, d: Derivation, longest: int = WORD) -> str:
    return html_text(shortened(words[k], longest)) if words else str(k + d.style.origin)


def _printed(x: str | None, d: Derivation) -> str:
    """A number as it stands on the page; a dot where it is masked."""
    return "·" if x is None else html_text(x.replace("-", "−").replace(".", getattr(d.style, "mark", ".")))


def _table(m: WeightMap, h: HeadMap, d: Derivation) -> str:
    width = len(h.printed[0])
    head = "".join(f'<th scope="col">{_word(m.column_words, c, d)}</th>' for c in range(width))
    rows = [f"<tr><td></td>{head}</tr>"]
    for r, row in enumerate(h.printed):
        cells = "".join(_cell(x, exact, d) for x, exact in zip(row, h.weights[r], strict=True))
        followed = r == m.followed
        mark = ' <span class="sr">followed</span>' if followed else ""
        kind = ' class="follow"' if followed else ""
        rows.append(f'<tr{kind}><th scope="row">{_word(m.row_words, r, d)}{mark}</th>{cells}</tr>')
    return f'<table class="heat">{"".join(rows)}</table>'


def _cell(printed: str | None, exact: str | None, d: Derivation) -> str:
    if printed is None or exact is None:
        return '<td class="no">·<span class="sr"> masked</span></td>'
    level = round(min(max(float(exact), 0.0), 1.0) * LEVELS)
    return f'<td class="q{level}">{_printed(printed, d)}</td>'


def _arrows(m: WeightMap, h: HeadMap, d: Derivation, which: str) -> str:
    """Arrows from the followed query to the keys, as wide as the weights."""
    assert m.followed is not None
    printed, exact = h.printed[m.followed], h.weights[m.followed]
    height = 2 * TOP + LINE * (len(printed) - 1)
    middle = height / 2
    query = _word(m.row_words, m.followed, d)
    told = ", ".join(
        f"{_word(m.column_words, c, d)} {_printed(x, d) if x is not None else 'masked'}" for c, x in enumerate(printed)
    )
    out = [
        f'<svg class="arrows" viewBox="0 0 390 {height}" role="img" aria-label="From query {query}{which} to the keys: {told}">'
    ]
    out.append(f'<text x="{LEFT - 8}" y="{middle + 5:g}" text-anchor="end" class="q">{query}</text>')
    for c, (short, x) in enumerate(zip(printed, exact, strict=True)):
        y = TOP + LINE * c
        bend = (RIGHT - LEFT) / 2
        curve = f"M{LEFT} {middle:g}C{LEFT + bend:g} {middle:g} {RIGHT - bend:g} {y} {RIGHT - 7} {y}"
        wide = 0.4 + THICKEST * max(float(x), 0.0) if x is not None else 0.0
        out.append(f'<g data-key="{c}" class="{"no" if x is None else "key"}">')
        out.append(f'<path d="{curve}" stroke-width="{wide:.2f}"/>')
        out.append(f'<path class="tip" d="M{RIGHT - 8} {y - 5}l8 5l-8 5z"/>')
        out.append(f'<text x="{RIGHT + 6}" y="{y + 5}">{_word(m.column_words, c, d, 9)}</text>')
        out.append(f'<text x="386" y="{y + 5}" text-anchor="end" class="v">{_printed(short, d)}</text></g>')
    return "".join([*out, "</svg>"])


def _comparison(m: WeightMap, h: HeadMap, d: Derivation) -> str:
    """The followed row twice: the enclosed numbers, and what the script computes; hidden until it does."""
    assert m.followed is not None
    rows = "".join(
        f'<tr><th scope="row">{_word(m.column_words, c, d)}</th><td>{_printed(x, d)}</td><td class="now"></td></tr>'
        for c, x in enumerate(h.printed[m.followed])
    )
    return (
        '<div class="scroll" hidden><table class="t two"><caption>The followed query</caption><thead><tr><th scope="col">key</th>'
        '<th scope="col">enclosed, temperature 1</th><th scope="col">estimated (float64 in the browser)</th></tr></thead>'
        f"<tbody>{rows}</tbody></table></div>"
    )
