r"""What GitHub's Markdown does to a page, checked by rules that share nothing with the writer.

GitHub lets a Markdown parser read the page first and looks for formulas in what that leaves. So in a ``$$`` block nothing may be
left that CommonMark takes apart: emphasis, links, tags, escapes. Macros are those that its MathJax is known to take.
"""

from __future__ import annotations

import re

from markdown_it import MarkdownIt

PARSER = MarkdownIt("commonmark").enable(["table", "strikethrough"])
MACROS = frozenset(
    re.findall(
        r"\w+",
        "frac sqrt cdot exp log tanh sin cos top circ odot mathbf mathrm mathcal mathbb sum prod max min ell approx quad qquad "
        "text le ge ne lt gt infty left right begin end hline cr thinspace cdots vdots dots lvert rvert vert langle rangle "
        "lfloor rfloor lceil rceil tag dot ddot gets in equiv implies iff propto times to pm mid colon bar hat tilde underset "
        "overset partial alpha beta gamma delta epsilon eta theta kappa lambda mu nu xi pi rho sigma tau phi chi psi omega "
        "Gamma Delta Theta Lambda Xi Pi Sigma Phi Psi Omega bmod enspace",
    )
)
ENVIRONMENTS = frozenset({"array", "aligned"})


def faults(page: str) -> list[str]:
    """What is wrong with a page; nothing where GitHub shows it as it is meant."""
    return [*_blocks(page), *_formulas(page), *_parsed(page)]


def _blocks(page: str) -> list[str]:
    """``$$`` stands alone on its line, blank lines are around a block, and it is in no list and no quotation."""
    lines = page.split("\n")
    marks = [k for k, x in enumerate(lines) if "$$" in x]
    found = [f"$$ is not alone: {lines[k]}" for k in marks if lines[k] != "$$"]
    found += ["a $$ is not closed"] if len(marks) % 2 else []
    for start, end in zip(marks[::2], marks[1::2], strict=False):
        inside = lines[start + 1 : end]
        if len(inside) != 1 or not inside[0].strip():
            found.append(f"a block of {len(inside)} lines: {inside}")
        if (start and lines[start - 1]) or (end + 1 < len(lines) and lines[end + 1]):
            found.append(f"no blank line around {inside}")
    return found


def _formulas(page: str) -> list[str]:
    found = []
    formulas = [(m[1], True) for m in re.finditer(r"^\$\$\n(.*)\n\$\$$", page, re.M)]
    formulas += [(m[1], False) for m in re.finditer(r"\$`([^`]*)`\$", page)]
    for tex, display in formulas:
        macros = set(re.findall(r"\\([A-Za-z]+)", tex))
        found += [f"\\{m} in {tex}" for m in macros - MACROS]
        found += [f"\\{m} in {tex}" for m in macros & {"newcommand", "def", "require", "operatorname"}]
        found += [f"the environment {e} in {tex}" for e in re.findall(r"\\begin\{(\w+)", tex) if e not in ENVIRONMENTS]
        found += [f"{m} in {tex}" for m in re.findall(r"\\[^A-Za-z]", tex)]
        depth = 0
        for c in tex:
            depth += (c == "{") - (c == "}")
            if depth < 0:
                break
        found += [f"braces of {tex}"] if depth else []
        found += [f"begin and end of {tex}"] if tex.count(r"\begin{") != tex.count(r"\end{") else []
        found += [f"left and right of {tex}"] if len(re.findall(r"\\left\b", tex)) != len(re.findall(r"\\right\b", tex)) else []
        found += [f"a dollar in {tex}"] if "$" in tex else []
        found += [f"\\tag in a line: {tex}"] if r"\tag" in tex and not display else []
    return found


def _parsed(page: str) -> list[str]:
    """Nothing of a block is taken for Markdown, and no dollar stands outside of formulas."""
    found, level = [], 0
    for token in PARSER.parse(page):
        level += token.nesting if token.type.startswith(("blockquote", "list_item", "bullet_list", "ordered_list")) else 0
        if token.type == "html_block":
            found.append(f"a tag: {token.content}")
        if token.type != "inline":
            continue
        if token.content.startswith("$$"):
            kinds = {c.type for c in token.children or ()}
            found += [f"{kind} in {token.content}" for kind in kinds - {"text", "softbreak"}]
            found += [f"nested: {token.content}"] if level else []
            continue
        found += [f"a tag: {token.content}" for c in token.children or () if c.type == "html_inline"]
        rest = re.sub(r"\$`[^`]*`\$", "", token.content)
        found += [f"a dollar: {token.content}"] if "$" in rest else []
    return found
