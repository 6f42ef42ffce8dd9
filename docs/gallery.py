"""The gallery: derivations as HTML and PDF, with a page of pictures. ``python docs/gallery.py`` builds it.

A row is the arguments of a ``symattn derive`` command and nothing more, so that what is built is what a reader of the page gets.

    python docs/gallery.py                  # all rows into build/site/gallery; the site takes them from there
    python docs/gallery.py two-words        # some of them
    python docs/gallery.py --page           # writes docs/gallery.md
    python docs/gallery.py --thumbnails     # draws the pictures of docs/gallery.md
"""

from __future__ import annotations

import argparse
import html
import shlex
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
BUILT = HERE.parent / "build" / "site" / "gallery"
TIMEOUT = 600


@dataclass(frozen=True)
class Row:
    """A derivation of the gallery: a name, what is to be seen, the arguments of ``symattn derive``; whether it has a picture."""

    name: str
    text: str
    arguments: str
    picture: bool = False


ROWS = (
    Row("the-cat-sat", "Which word comes next? One query against five words, from embeddings to the context vector.",
        "--example the-cat-sat", picture=True),
    Row("two-words", "Two words in three dimensions: every matrix, then the gradient with its numbers.",
        "--example two-words --gradient", picture=True),
    Row("translation", "Cross attention: two words of one sentence ask three of another.", "--example translation --gradient"),
    Row("gradient", "The gradient of attention for all sizes, each rewriting proved.", "--gradient --detail full", picture=True),
    Row("hessian", "The Hessian-vector product, which fused kernels lack.", "--hvp --form matrix"),
    Row("sliding-window", "A causal window with its gradient.", "sliding-window --gradient"),
    Row("sink", "A learned logit in the denominator, and its gradient.", "sink --gradient"),
    Row("gated-delta-rule", "A recurrence: a state that is corrected, key after key.", "gated-delta-rule"),
    Row("flash-forward", "From the definition to a tiled kernel, with the proof that they are equal.",
        "--kernel flash-forward", picture=True),
    Row("flash-backward", "The backward of a tiled kernel, which stores no weights.", "--kernel flash-backward"),
    Row("split-k", "Keys in parts, merged by their log-sum-exps.", "--kernel split-k"),
    Row("ring", "Keys that go round between devices.", "--kernel ring"),
    Row("next-word", "A sentence with numbers drawn from a seed, up to the probabilities of the next word.",
        'next-word --tokens "the cat sat" --seed 1 --dmodel 4'),
)  # fmt: skip


def derive(row: Row, *more: str) -> None:
    """Run the command of a row."""
    command = [sys.executable, "-m", "symattn_cli", "derive", *shlex.split(row.arguments), *more]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT)  # noqa: S603 - the rows above
    if done.returncode:
        raise SystemExit(f"{row.name}: {done.stderr}")


def build(row: Row, folder: Path) -> list[str]:
    """The files of a row: HTML always, PDF where TeX is installed, a picture of its first page where pdftoppm is."""
    derive(row, "--format", "html", "-o", str(folder / f"{row.name}.html"))
    made = [f"{row.name}.html"]
    if shutil.which("pdflatex"):
        derive(row, "--pdf", "-o", str(folder / f"{row.name}.pdf"))
        made.append(f"{row.name}.pdf")
        if shutil.which("pdftoppm"):
            picture(folder / f"{row.name}.pdf", folder / row.name, 60)
            made.append(f"{row.name}.png")
    return made


def picture(pdf: Path, to: Path, dots: int) -> None:
    """The first page of a PDF as ``to.png``."""
    command = ["pdftoppm", "-png", "-gray", "-r", str(dots), "-f", "1", "-l", "1", "-singlefile", str(pdf), str(to)]
    subprocess.run(command, check=True, capture_output=True, timeout=TIMEOUT)  # noqa: S603


STYLE = """
html { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }
body { max-width: 64rem; margin: 2rem auto; padding: 0 1rem; }
ul { display: grid; grid-template-columns: repeat(auto-fill, minmax(15rem, 1fr)); gap: 1.5rem; padding: 0; list-style: none; }
img { width: 100%; background: #fff; border: 1px solid #8884; }
code { font-size: 0.85em; overflow-wrap: anywhere; }
p { margin: 0.3rem 0; }
"""


def index(made: dict[str, list[str]]) -> str:
    """The page of pictures, with links to every file."""
    items = []
    for row in ROWS:
        files = made.get(row.name, [])
        if not files:
            continue
        page = f"{row.name}.html"
        seen = (
            f'<img src="{row.name}.png" alt="The first page of {row.name}" loading="lazy">' if f"{row.name}.png" in files else ""
        )
        links = ", ".join(f'<a href="{f}">{f.rpartition(".")[2].upper()}</a>' for f in files if not f.endswith(".png"))
        said = html.escape(row.text)
        items.append(
            f'<li><a href="{page}">{seen}</a><p><b>{row.name}</b>: {links}</p><p>{said}</p>'
            f"<p><code>symattn derive {html.escape(row.arguments)}</code></p></li>"
        )
    head = f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>Gallery</title><style>{STYLE}</style>'
    head += '<meta name="viewport" content="width=device-width, initial-scale=1"></head>\n'
    return head + "<body><h1>Gallery</h1>\n<ul>\n" + "\n".join(items) + "\n</ul></body></html>\n"


def build_all(names: list[str], folder: Path) -> None:
    """Some rows, or all, and the page of pictures."""
    unknown = set(names) - {row.name for row in ROWS}
    if unknown:
        raise SystemExit(f"no such row: {', '.join(sorted(unknown))}; there are {', '.join(row.name for row in ROWS)}")
    folder.mkdir(parents=True, exist_ok=True)
    made = {}
    for row in ROWS:
        if not names or row.name in names:
            made[row.name] = build(row, folder)
            sys.stdout.write(f"{row.name}: {' '.join(made[row.name])}\n")
    (folder / "index.html").write_text(index(made), encoding="utf-8")


def page() -> str:
    """The Markdown of docs/gallery.md."""
    out = ["<!-- Made by `python docs/gallery.py --page`; do not edit. -->", "", "# Gallery", ""]
    out += ["Derivations to look at, each with the command that makes it. `--format html -o FILE.html` gives one file that loads"]
    out += [
        "nothing, `--pdf -o FILE.pdf` a document by the TeX that is installed; other forms are in [derive.md](derive.md#formats)."
    ]
    out += ["`python docs/gallery.py` builds all of them.", ""]
    out += ["| | what is to be seen | `symattn derive` |", "|---|---|---|"]
    for row in ROWS:
        seen = f"![the first page](gallery/{row.name}.png)" if row.picture else ""
        out.append(f"| **{row.name}** {seen} | {row.text} | `{row.arguments}` |")
    return "\n".join(out) + "\n"


def thumbnails() -> None:
    """The small pictures of docs/gallery.md."""
    (HERE / "gallery").mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        for row in ROWS:
            if row.picture:
                derive(row, "--pdf", "-o", f"{folder}/{row.name}.pdf")
                picture(Path(folder, f"{row.name}.pdf"), HERE / "gallery" / row.name, 36)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description="Build the gallery of derivations.")
    parser.add_argument("names", nargs="*", help="rows; all where none is named")
    parser.add_argument("-o", "--output", type=Path, default=BUILT)
    parser.add_argument("--page", action="store_true", help="write docs/gallery.md")
    parser.add_argument("--thumbnails", action="store_true", help="draw the pictures of docs/gallery.md")
    asked = parser.parse_args()
    if asked.page:
        (HERE / "gallery.md").write_text(page(), encoding="utf-8")
    if asked.thumbnails:
        thumbnails()
    if not asked.page and not asked.thumbnails:
        build_all(asked.names, asked.output)


if __name__ == "__main__":
    main()
