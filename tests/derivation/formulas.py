r"""The formulas that stand in a document, found by the marks of its form and by nothing that the writers know.

Each is ``(tex, display)``. In LaTeX they are the environments of amsmath, ``\[ \]`` and single dollars; ``\label`` is no part of
a formula and only a document may have one. Comments and the preamble are no formulas.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable, Iterator, Mapping

Formula = tuple[str, bool]
ENVIRONMENT = re.compile(r"\\begin\{(align\*?|equation\*?|gather\*?|alignat\*?|multline\*?)\}.*?\\end\{\1\}|\\\[.*?\\\]", re.S)
DOLLARS = re.compile(r"(?<!\\)\$((?:[^$\\]|\\.)+)\$", re.S)


def of_latex(document: str) -> Iterator[Formula]:
    body = document.partition(r"\begin{document}")[2] or document
    body = re.sub(r"(?m)(?<!\\)%.*$", "", body)
    for m in ENVIRONMENT.finditer(body):
        tex = re.sub(r"\\label\{[^}]*\}", "", m[0])
        yield (tex[2:-2] if tex.startswith(r"\[") else tex), True
    for m in DOLLARS.finditer(ENVIRONMENT.sub("", body)):
        yield m[1], False


def fences(document: str) -> tuple[list[tuple[str, str]], str]:
    """(what stands behind the opening mark, content) of every fence, and the text outside of them."""
    found: list[tuple[str, str]] = []
    outside: list[str] = []
    mark, info, content = "", "", list[str]()
    for line in document.splitlines():
        m = re.match(r"(`{3,}|~{3,}|:{3,})(.*)", line)
        if mark and line.strip() == mark:
            found.append((info, "\n".join(content)))
            mark = ""
        elif mark:
            content.append(line)
        elif m and m[1][0] == ":":
            outside.append("")  # what is inside of such a fence is Markdown
        elif m:
            mark, info, content = m[1], m[2].strip(), []
        else:
            outside.append(line)
    assert not mark, f"a fence {mark}{info} is not closed"
    return found, "\n".join(outside)


def of_markdown(document: str) -> Iterator[Formula]:
    blocks, text = fences(document)
    yield from ((content, True) for info, content in blocks if info == "math")
    yield from _in_text(text)


def _in_text(text: str) -> Iterator[Formula]:
    for pattern, display in ((r"\$`(.+?)`\$", False), (r"\$\$(.+?)\$\$", True), (DOLLARS, False)):
        for m in re.finditer(pattern, text, re.S) if isinstance(pattern, str) else pattern.finditer(text):
            yield m[1], display
        text = re.sub(pattern, "", text, flags=re.S) if isinstance(pattern, str) else text


def of_myst(document: str) -> Iterator[Formula]:
    blocks, text = fences(document)
    for info, content in blocks:
        if info == "{math}":
            yield "\n".join(x for x in content.splitlines() if not re.match(r":\w+:", x)), True
        elif info.startswith("{"):
            yield from of_myst(content)
    for m in re.finditer(r"\{math\}`([^`]+)`", text):
        yield m[1], False
    yield from _in_text(re.sub(r"\{math\}`[^`]+`", "", text))


def of_html(page: str) -> Iterator[Formula]:
    for m in re.finditer(r'<annotation encoding="application/x-tex">(.*?)</annotation>', page, re.S):
        yield html.unescape(m[1]), False


def of_ipynb(document: str) -> Iterator[Formula]:
    for cell in json.loads(document)["cells"]:
        if cell["cell_type"] == "markdown":
            yield from of_markdown("".join(cell["source"]))


def of_json(document: str) -> Iterator[Formula]:
    def walk(node: object) -> Iterator[Formula]:
        if isinstance(node, dict):
            for key, value in node.items():
                values = value if isinstance(value, list) else [value]
                if key in ("index", "matrix", "latex") or key.endswith("_latex"):
                    yield from ((v, True) for v in values if isinstance(v, str))
                yield from walk(value)
        elif isinstance(node, list):
            for value in node:
                yield from walk(value)

    yield from walk(json.loads(document))


FORMULAS: Mapping[str, Callable[[str], Iterator[Formula]]] = {
    "latex": of_latex,
    "markdown": of_markdown,
    "myst": of_myst,
    "html": of_html,
    "ipynb": of_ipynb,
    "json": of_json,
}
