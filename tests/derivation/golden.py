"""The shipped derivations as files, one for each example and form: what a change of a writer changes is seen in its diff.

``python -m tests.derivation.golden`` writes them again; read the diff before you commit it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from symattn.derivation import derive, load, shipped

FOLDER = Path(__file__).parent / "golden"
FORMS = {"text": "txt", "latex": "tex", "markdown": "md", "myst": "myst.md", "html": "html", "ipynb": "ipynb", "json": "json"}
"""Method ``to_NAME`` -> ending of the file."""
WITH_GRADIENT = ("two-words", "translation")
"""Examples that are written with their gradient too, as text and LaTeX."""


def cases() -> Iterator[tuple[str, str, bool]]:
    """Example, form, and whether with the gradient."""
    for name in shipped():
        yield from ((name, form, False) for form in FORMS)
        yield from ((name, form, True) for form in ("text", "latex") if name in WITH_GRADIENT)


def path(name: str, form: str, gradient: bool) -> Path:
    """The file of a case."""
    return FOLDER / f"{name}{'-gradient' if gradient else ''}.{FORMS[form]}"


def written(name: str, form: str, gradient: bool) -> str:
    """What is written today. The style sheet and the script of a page, which are no derivation, are left out."""
    text: str = getattr(derive(example=load(name), gradient=gradient), f"to_{form}")()
    if form == "html":
        text = re.sub(r"(<(style|script)\b[^>]*>).*?(</\2>)", r"\1\3", text, flags=re.S)
        text = re.sub(r"sha256-[A-Za-z0-9+/=]+", "sha256-", text)
    return text


def update() -> None:
    """Write all files; those of no case are removed."""
    FOLDER.mkdir(exist_ok=True)
    wanted = set()
    for case in cases():
        path(*case).write_text(written(*case), encoding="utf-8")
        wanted.add(path(*case))
    for old in set(FOLDER.iterdir()) - wanted:
        old.unlink()


if __name__ == "__main__":
    update()
