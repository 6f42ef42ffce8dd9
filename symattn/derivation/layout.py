"""How a formula is broken into lines: after a relation or before a plus or minus sign, never inside a fraction.

A formula is a list of parts, each a relation sign and the pieces that may be torn apart; a piece knows its form and how wide it
is. What the pieces are made of (LaTeX, text) is the writer's business.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from symattn.derivation.document import Cell, Line
from symattn.derivation.nodeprint import Style, latex_decimal, latex_pieces, text_decimal, text_pieces
from symattn.derivation.unicodemath import unicode_math
from symattn.readings.latex import MARKDOWN

CHUNK = 48
"""Digits of a long decimal that stay together."""
WIDEST = 64
"""Decimals put in are left out where a piece of them is wider than this."""
MARGIN = 12
"""What the left hand side, the relation and the indent of a line take, about."""

NARROWEST = 8
"""Columns of a table are not made narrower than this."""


@dataclass(frozen=True)
class Piece:
    """Something that is not broken, in LaTeX and in text."""

    latex: str
    text: str

    @property
    def width(self) -> int:
        """How many characters it takes, about."""
        return len(self.text)


@dataclass(frozen=True)
class Part:
    """A relation sign (empty for the left hand side) and the pieces behind it."""

    relation: str
    pieces: tuple[Piece, ...]

    @property
    def width(self) -> int:
        """The width of all pieces on one line."""
        return sum(p.width + 1 for p in self.pieces) + (2 if self.relation else 0)


RELATIONS: Mapping[str, tuple[str, str]] = {
    "=": ("=", "="),
    "≈": (r"\approx", "≈"),
    "≤": (r"\le", "≤"),
    "≥": (r"\ge", "≥"),
    "<": (r"\lt", "<"),
    ">": (r"\gt", ">"),
    "≠": (r"\ne", "≠"),
    "←": (r"\gets", "←"),
    "∝": (r"\propto", "∝"),
    "≡": (r"\equiv", "≡"),
    "⟹": (r"\implies", "⟹"),
    "⟺": (r"\iff", "⟺"),
}
"""Sign -> how LaTeX and text write it; a formula may be broken before each of them."""
_SIGN_OF = {tex: sign for sign, (tex, _) in RELATIONS.items()} | {"<": "<", ">": ">", r"\leq": "≤", r"\geq": "≥"}
_RELATION = re.compile(rf" ({'|'.join(map(re.escape, sorted(_SIGN_OF, key=len, reverse=True)))}) ")


def line_parts(line: Line, style: Style) -> tuple[Part, ...]:
    """The parts of the work of one element: element = numbers put in = exact value ≈ decimals put in ≈ decimal."""
    parts = [Part("", _node(line.item, style))]
    if line.formula is not None:
        symbols = line.formula.markdown if style.typesetting == MARKDOWN else line.formula.latex
        parts += formula_parts(f"x = {symbols}", style.width - MARGIN)[1:]
    if line.work is not None:
        parts.append(Part("=", _node(line.work, style)))
    value = line.cell.value
    if value is not None:
        parts.append(Part("=", _node(value, style)))
    decimals = _node(line.approximate, style) if line.approximate is not None else ()
    if decimals and widest(decimals) <= min(WIDEST, style.width - MARGIN):
        parts.append(Part("≈", decimals))
    if value is None or text_pieces(value, style) != [text_decimal(line.cell.decimal, style.mark)]:
        parts.append(Part("=" if line.cell.exact else "≈", decimal_pieces(line.cell.decimal, style.width, style.mark)))
    return tuple(parts)


def _node(node: object, style: Style) -> tuple[Piece, ...]:
    pairs = zip(latex_pieces(node, style), text_pieces(node, style), strict=True)  # type: ignore[arg-type]
    return tuple(Piece(a, b) for a, b in pairs)


def decimal_pieces(digits: str, width: int = WIDEST, mark: str = ".") -> tuple[Piece, ...]:
    """A decimal, torn into chunks where it is long, on lines of so many characters.

    >>> [p.text for p in decimal_pieces("0." + "3" * 60)] == ["0." + "3" * 46, "3" * 14]
    True
    """
    special = {"NaN": (r"\mathrm{NaN}", "NaN"), "inf": (r"\infty", "∞"), "-inf": (r"-\infty", "-∞")}
    if digits in special:
        return (Piece(*special[digits]),)
    mantissa, e, exponent = digits.partition("e")
    chunk = min(CHUNK, width - MARGIN)
    chunks = [mantissa[k : k + chunk] for k in range(0, len(mantissa), chunk)]
    tail = chunks[-1] + e + exponent
    return (
        *(Piece(latex_decimal(c, mark), text_decimal(c, mark)) for c in chunks[:-1]),
        Piece(latex_decimal(tail, mark), text_decimal(tail, mark)),
    )


def cell_piece(cell: Cell, style: Style, exact: bool) -> Piece:
    """A number in a matrix: its exact value or its decimal; a dot where it is masked."""
    if cell.masked:
        return Piece(r"\cdot", "·")
    if exact and cell.value is not None:
        return Piece(" ".join(latex_pieces(cell.value, style)), " ".join(text_pieces(cell.value, style)))
    pieces = decimal_pieces(cell.decimal, mark=style.mark)
    return Piece("".join(p.latex for p in pieces), "".join(p.text for p in pieces))


def formula_parts(latex: str, room: int = WIDEST, condition_room: int | None = None) -> tuple[Part, ...]:
    r"""A formula in symbols torn at its relation, at sums outside of all brackets, and before its condition; a term wider than
    ``room`` is torn inside, too, and a condition wider than its own room.

    >>> [(p.relation, [q.text for q in p.pieces]) for p in formula_parts(r"dS = P \circ (dP - D) + E \quad\text{where } j \le i")]
    [('', ['dS']), ('=', ['P ∘ (dP - D)', '+ E', 'where j ≤ i'])]
    """
    body, where, condition = latex.partition(r" \quad\text{where }")
    left, *right = _split_relations(body)
    parts = [Part("", (_piece(left[1]),))]
    parts += [Part(sign, tuple(_piece(q) for p in _split_sums(side) for q in _torn(p, room))) for sign, side in right]
    if where:
        pieces = [_piece(x) for x in _condition(r"\text{where }" + condition, condition_room or room)]
        parts[-1] = Part(parts[-1].relation, (*parts[-1].pieces, *pieces))
    return tuple(parts)


def _condition(latex: str, room: int) -> list[str]:
    r"""A condition torn before every "and"; one that is still too wide before every "or", in its brackets, and at its relation.

    >>> _condition(r"\text{where }j < m \text{ or } (i \le j \text{ and } j < n)", 16)
    ['\\text{where }j < m', '\\text{or } (i \\le j', '\\text{and } j < n)']
    """
    first, *more = _split(latex, r" \text{ and } ")
    if more:
        return [y for x in (first, *(r"\text{and } " + m for m in more)) for y in _condition(x, room)]
    if _piece(latex).width <= room:
        return [latex]
    first, *more = _split(latex, r" \text{ or } ")
    if more:
        return [y for x in (first, *(r"\text{or } " + m for m in more)) for y in _condition(x, room)]
    bracketed = re.fullmatch(r"((?:\\text\{\w+ \} ?)?)(?:\\left)?\((.*?)(?:\\right)?\)", latex)
    if bracketed and r" \text{ and } " in bracketed[2]:
        inner = _condition(bracketed[2], room)
        inner[0] = f"{bracketed[1]}({inner[0]}"
        return [*inner[:-1], inner[-1] + ")"]
    found = re.split(r" (?=\\(?:le|ge|lt|gt|ne) |[<>=] )| (?=\\text\{ )", latex)
    return [w for x in found for w in _words(x, room)]


def _words(latex: str, room: int) -> list[str]:
    """Words that are too many for a line, in two halves."""
    m = re.fullmatch(r"\\text\{ (.*) \}(.*)", latex)
    words = m[1].split(" ") if m else []
    if m is None or len(words) < 2 or _piece(latex).width <= room // 2:
        return [latex]
    half = len(words) // 2
    return [rf"\text{{{' '.join(words[:half])} }}", rf"\text{{{' '.join(words[half:])} }}{m[2]}"]


def _piece(latex: str) -> Piece:
    latex = latex.strip()
    balanced = latex.replace(MARKDOWN.thin, " ")
    return Piece(latex, unicode_math(balanced))


def _depths(latex: str) -> list[int]:
    """The depth of brackets before each character."""
    depth, out, at = 0, [], 0
    for m in re.finditer(r"\\(?:left|right)(?![A-Za-z])(?:\\[A-Za-z]+|\\.|.)|\\[A-Za-z]+|\\.|[{}()\[\]]|.", latex, re.DOTALL):
        out += [depth] * (m.end() - m.start())
        sign = m[0]
        depth += (sign in "{([" or sign.startswith("\\left")) - (sign in "})]" or sign.startswith("\\right"))
        at = m.end()
    return [*out, depth][: at + 1]


def _split(latex: str, sign: str) -> list[str]:
    depths, found, start = _depths(latex), [], 0
    for m in re.finditer(re.escape(sign), latex):
        if depths[m.start()] == 0:
            found.append(latex[start : m.start()])
            start = m.end()
    return [*found, latex[start:]]


def _split_relations(latex: str) -> list[tuple[str, str]]:
    """The sides of a formula, each behind its relation; that of the first is empty."""
    depths, found, start, sign = _depths(latex), [], 0, ""
    for m in _RELATION.finditer(latex):
        if depths[m.start()] == 0:
            found.append((sign, latex[start : m.start()]))
            start, sign = m.end(), _SIGN_OF[m[1]]
    return [*found, (sign, latex[start:])]


def split_relation(latex: str) -> tuple[str, str, str]:
    r"""A formula at its first relation outside of brackets: what stands before it, the relation, what follows.

    >>> split_relation(r"dS = P \circ (dP - D)"), split_relation(r"\le 2"), split_relation("x")
    (('dS', '=', 'P \\circ (dP - D)'), ('', '\\le', '2'), ('', '', 'x'))
    """
    padded = f" {latex}"
    depths = _depths(padded)
    for m in _RELATION.finditer(padded):
        if depths[m.start()] == 0:
            return padded[: m.start()].strip(), m[1], padded[m.end() :]
    return "", "", latex


def _split_sums(latex: str) -> list[str]:
    depths, found, start = _depths(latex), [], 0
    for m in re.finditer(r" [+-] ", latex):
        if depths[m.start()] == 0:
            found.append(latex[start : m.start()])
            start = m.start() + 1
    return [*found, latex[start:]]


def _torn(latex: str, room: int = WIDEST) -> list[str]:
    r"""A term too wide for a line, torn inside its first wide bracket, whose size is plain then, and between factors.

    >>> long = " + ".join(rf"x_{{{k}}} \cos(y)" for k in range(12))
    >>> found = _torn(rf"a \left({long}\right) b")
    >>> found[0], found[1], found[-1]
    ('a (x_{0} \\cos(y)', '+ x_{1} \\cos(y)', '+ x_{11} \\cos(y)) b')
    """
    if _piece(latex).width <= room:
        return [latex]
    depths = _depths(latex)
    for m in re.finditer(r"(\\left)?\(", latex):
        if depths[m.start()]:
            continue
        close = next(k for k in range(m.end(), len(latex) + 1) if k == len(latex) or (depths[k] == 1 and depths[k + 1] == 0))
        inner = latex[m.end() : close].removesuffix(r"\right")
        if _piece(inner).width > room // 2:
            terms = [q for p in _split_sums(inner.strip()) for q in _torn(p, room)]
            terms[0] = f"{latex[: m.start()]}({terms[0]}"
            end = _torn(latex[close:].removeprefix(r"\right")[1:], room)
            return [*terms[:-1], f"{terms[-1]}){end[0]}", *end[1:]]
    return _factors(latex, room)


def _factors(latex: str, room: int) -> list[str]:
    """A product torn between factors, as few times as its width needs."""
    depths = _depths(latex)
    factors, start = [], 0
    for m in re.finditer(r" ", latex):
        before = re.search(r"(\\[A-Za-z]+|[-+=,<>_^]|^)$", latex[start : m.start()])
        tied = before or re.match(r"[-+=,<>)]|\\(rangle|right)\b", latex[m.end() :])
        if depths[m.start()] == 0 and not tied:
            factors.append(latex[start : m.start()])
            start = m.end()
    found: list[str] = []
    for f in [*factors, latex[start:]]:
        if found and _piece(f"{found[-1]} {f}").width <= room:
            found[-1] += f" {f}"
        else:
            found.append(f)
    return found


def flow(parts: Sequence[Part], width: int, indent: int = 4) -> list[tuple[str, list[Piece], bool]]:
    """Lines of a formula: the relation that a line starts with, its pieces, and whether it continues a part.

    Parts share a line while it has room; a part that does not fit starts a line of its own and is broken between pieces.
    The relations inside a line are pieces of it.
    """
    head, *rest = parts
    room = max(width - head.width - 3, 24)
    lines: list[tuple[str, list[Piece], bool]] = []
    used = 0
    for part in rest:
        if lines and used + part.width <= room:
            lines[-1][1].extend([_sign(part.relation), *part.pieces])
            used += part.width
            continue
        lines.append((part.relation, [], False))
        used = 2
        for piece in part.pieces:
            if lines[-1][1] and used + piece.width + 1 > room:
                lines.append((part.relation, [], True))
                used = indent
            lines[-1][1].append(piece)
            used += piece.width + 1
    return lines


def _sign(relation: str) -> Piece:
    return Piece(*RELATIONS[relation])


def widest(pieces: Iterable[Piece]) -> int:
    """The width of the widest piece, 0 where there is none."""
    return max((p.width for p in pieces), default=0)


def fitted(widths: Sequence[int], room: int) -> list[int]:
    """The widths of the columns of a table, the widest ones made narrower until all fit, with three characters to each for a gap.

    >>> fitted([5, 40, 30], 60), fitted([5, 6], 60)
    ([5, 23, 23], [5, 6])
    """
    out = list(widths)
    while sum(out) + 3 * len(out) > room and max(out) > NARROWEST:
        out[out.index(max(out))] -= 1
    return out
