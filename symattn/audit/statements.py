"""Chains of equalities: a passage of an article as formulas with the relation signs between them.

A passage holds several chains: rows of an alignment, and parts that commas, semicolons, wide blanks and arrows of implication set
apart. A row that begins with a relation or an operator goes on with the chain before it. In plain text the words around a
formula are cut off.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from symattn.audit.article import Article, Passage
from symattn.audit.grids import grid_tokens, grids
from symattn.audit.language import parse_tokens
from symattn.audit.language_nodes import Apply, Array, Node, key
from symattn.audit.language_scan import ENDS, STARTS, Piece
from symattn.audit.language_symbols import ORDERS as known_orders
from symattn.audit.language_symbols import word_set
from symattn.audit.language_tokens import tokens
from symattn.errors import GrammarError, LimitError

_ROW_END = re.compile(r"\\(begin|end)\{[a-zA-Z]*(?:matrix|array)\*?\}|\\\\|\n")
RELATIONS = frozenset({"EQ", "APPROX", "MAPS", "ARROW", "ORDER"})
_BREAKS = frozenset({"COMMA", "SEMI", "QUAD", "IMPLIES"})
_OPERATORS = frozenset({"PLUS", "MINUS", "TIMES", "CDOT", "STAR", "ODOT", "AT", "DIV"})
_UP = frozenset({"METHOD", "LPAR", "LSQ", "LBRACE", "MATBEGIN", "LANGLE", "CALLP", "FUNCP"})
_DOWN = frozenset({"RPAR", "RSQ", "RBRACE", "MATEND", "RANGLE"})
FILLERS = word_set(
    "and or so then thus hence therefore where with we get have obtain gives is are the a an for of which that this "
    "here now let if becomes yields equals to be it since because as e.g i.e example e g"
)
"""Words before a formula that are no part of a name."""
CONNECTING = word_set(
    "and or so then thus hence therefore where with gives yields becomes which that is are if since because while but we"
)
"""Words after which a formula begins anew: what stands before them is none of it."""


@dataclass(frozen=True, slots=True)
class Side:
    """One side of a chain: its tree, or the reason why it has none."""

    start: int
    end: int
    node: Node | None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Chain:
    """Sides with the relations between them: ``relations[k]`` stands between ``sides[k]`` and ``sides[k + 1]``."""

    sides: tuple[Side, ...]
    relations: tuple[str, ...]
    kind: str

    @property
    def start(self) -> int:
        """Where it begins."""
        return self.sides[0].start

    @property
    def end(self) -> int:
        """Where it ends."""
        return self.sides[-1].end


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A part of an article that looks like a formula and could not be read."""

    start: int
    end: int
    reason: str


def statements(a: Article, passage: Passage) -> list[Chain | Unreadable]:
    """The chains of a passage, and what of it could not be read.

    >>> from symattn.audit.article import article
    >>> from symattn.audit.language_nodes import key
    >>> a = article("so q = [1, 0] and 1 x 2 = 2, which is small")
    >>> chains = statements(a, Passage("text", 0, len(a.text)))
    >>> [[key(s.node) for s in c.sides] for c in chains]
    [['q', '[1,0]'], ['times(1,2)', '2']]
    """
    text = a.text[passage.start : passage.end]
    try:
        pieces = _grid(a, passage) if passage.kind == "grid" else tokens(text, passage.start)
    except (GrammarError, LimitError) as error:
        if passage.kind == "grid":
            return [Unreadable(passage.start, passage.end, str(error))]
        return _by_rows(a, passage, str(error))
    if passage.kind == "grid":
        passage = replace(passage, kind="text")
    out: list[Chain | Unreadable] = []
    for group in _groups(pieces):
        out += _chains(a, group, passage)
    return out


def _grid(a: Article, passage: Passage) -> list[Piece]:
    """The tokens of matrices that are drawn over several lines."""
    (grid,) = (g for g in grids(a.text) if g.start == passage.start)
    return grid_tokens(a.text, grid)


def _by_rows(a: Article, passage: Passage, reason: str) -> list[Chain | Unreadable]:
    """What can be read of a passage row by row, when it cannot be read as a whole."""
    text = a.text[passage.start : passage.end]
    cuts = _row_ends(text)
    if not cuts or len(cuts) > 400:
        return [Unreadable(passage.start, passage.end, reason)] if _tells(text, passage) else []
    out: list[Chain | Unreadable] = []
    at = 0
    for start, stop in [(m.start(), m.end()) for m in cuts] + [(len(text), len(text))]:
        part = Passage(passage.kind, passage.start + at, passage.start + start)
        row = text[at:start]
        at = stop
        if not row.strip():
            continue
        try:
            pieces = tokens(row, part.start)
        except (GrammarError, LimitError) as error:
            out += [Unreadable(part.start, part.end, str(error))] if _tells(row, part) else []
            continue
        for group in _groups(pieces):
            out += _chains(a, group, part)
    return out


def _row_ends(text: str) -> list[re.Match[str]]:
    """The line ends outside of matrices."""
    found, depth = [], 0
    for m in _ROW_END.finditer(text):
        if m[1]:
            depth += 1 if m[1] == "begin" else -1
        elif depth <= 0:
            found.append(m)
    return found


def _tells(text: str, passage: Passage) -> bool:
    """Whether a part that cannot be read has to be mentioned: it states something, or is set as a formula."""
    return passage.kind == "display" or bool(re.search(r"[=≈↦]|\\approx", text))


def _groups(pieces: Sequence[Piece]) -> Iterator[list[Piece]]:
    """The parts of a passage that stand for themselves."""
    group: list[Piece] = []
    for row in _rows(pieces):
        plain = [p for p, depth in _levels(row) if p.kind != "AMP" or depth]
        if not plain:
            continue
        aligned = row[0].kind == "AMP"
        relation = any(p.kind in RELATIONS for p in _outer(plain))
        goes_on = plain[0].kind in RELATIONS or (plain[0].kind in _OPERATORS and (aligned or not relation))
        goes_on = goes_on or (bool(group) and group[-1].kind in _OPERATORS | RELATIONS)
        if group and not goes_on:
            yield from _parts(group)
            group = []
        group += plain
    if group:
        yield from _parts(group)


def _levels(pieces: Sequence[Piece]) -> Iterator[tuple[Piece, int]]:
    depth = 0
    for p in pieces:
        depth -= p.kind in _DOWN
        yield p, depth
        depth += p.kind in _UP


def _outer(pieces: Sequence[Piece]) -> list[Piece]:
    return [p for p, depth in _levels(pieces) if depth == 0]


def _rows(pieces: Sequence[Piece]) -> Iterator[list[Piece]]:
    row: list[Piece] = []
    for p, depth in _levels(pieces):
        if p.kind == "ROW" and depth == 0:
            if row:
                yield row
            row = []
        elif p.kind != "AMP" or depth or not row:
            row.append(p)
    if row:
        yield row


def _parts(pieces: Sequence[Piece]) -> Iterator[list[Piece]]:
    part: list[Piece] = []
    for p, depth in _levels(pieces):
        label = p.kind == "COLON" and any(q.kind in RELATIONS for q in _outer(part))
        if depth == 0 and (p.kind in _BREAKS or label):
            if part:
                yield part
            part = []
        else:
            part.append(p)
    if part:
        yield part


def _chains(a: Article, pieces: list[Piece], passage: Passage) -> list[Chain | Unreadable]:
    sides: list[list[Piece]] = [[]]
    relations: list[str] = []
    done: list[Chain | Unreadable] = []
    for p, depth in _levels(_with_words_as_relations(pieces)):
        if depth == 0 and p.kind in RELATIONS:
            if not sides[-1] and relations:  # `=\;\approx`: two signs for one
                relations[-1] = "APPROX" if "APPROX" in (p.kind, relations[-1]) else p.kind
                continue
            if relations and passage.kind == "text":
                left, right = _cut_in_words(sides[-1])
                if right:
                    sides[-1] = left
                    done += _finished(a, sides, relations, passage)
                    sides, relations = [right], []
            relations.append(known_orders.get(p.text.lstrip("\\"), p.kind))
            sides.append([])
        else:
            sides[-1].append(p)
    return done + _finished(a, sides, relations, passage)


def _with_words_as_relations(pieces: list[Piece]) -> list[Piece]:
    """`the query vector is [1, 0, 3]` and `Scores: [10, 5]` define what they name."""
    out: list[Piece] = []
    for k, p in enumerate(pieces):
        follows = pieces[k + 1].kind if k + 1 < len(pieces) else ""
        if p.kind == "COLON" and not p.loose and follows == "NUMBER" and k and pieces[k - 1].kind == "NUMBER":
            out.append(replace(p, kind="DIV"))  # a ratio, 3:2
            continue
        if p.kind == "NAME" and p.text == "of" and follows in STARTS and k and pieces[k - 1].detail == "percent":
            out.append(replace(p, kind="TIMES"))
            continue
        if p.kind == "COLON":
            more = any(q.kind in RELATIONS for q in _outer(pieces[k + 1 :]))
            if follows in ("LSQ", "NUMBER", "MATBEGIN", "MINUS") and k and pieces[k - 1].kind == "NAME" and not more:
                out.append(replace(p, kind="MAPS"))
            elif follows and not any(q.kind in RELATIONS for q in _outer(out)):
                out = []  # `Scaling: 1 + 1 = 2` has a label
            continue
        words = p.text.split(" ") if p.kind == "NAME" else []
        if len(words) > 1 and words[-1] in ("is", "are", "equals") and follows in ("LSQ", "MATBEGIN"):
            out += [replace(p, text=" ".join(words[:-1])), replace(p, kind="MAPS", start=p.end, text="is")]
        else:
            out.append(p)
    return out


def _finished(a: Article, sides: list[list[Piece]], relations: list[str], passage: Passage) -> list[Chain | Unreadable]:
    """A chain of its sides' trees; without a relation there is nothing to check, and a display of numbers is mentioned."""
    if passage.kind == "text" and relations:
        sides = [_without_words(s, first=k == 0) for k, s in enumerate(sides)]
    sides[0] = _without_fillers(sides[0])
    flat = [p for s in sides for p in s]
    if not flat:
        return []
    if not relations:
        numbers = passage.kind == "display" and any(p.kind == "NUMBER" for p in flat)
        return [Unreadable(flat[0].start, flat[-1].end, "states no equality: nothing to check")] if numbers else []
    if not sides[-1]:
        sides, relations = sides[:-1], relations[:-1]
    if not sides[0]:
        sides, relations = sides[1:], relations[1:]
    if not relations:
        return [Unreadable(flat[0].start, flat[-1].end, "one side of the equality is missing")] if _numeric(flat) else []
    read = tuple(_side(s, flat[0].start) for s in sides)
    if all(s.node is None for s in read):
        return [Unreadable(flat[0].start, flat[-1].end, read[-1].reason)] if _numeric(flat) or passage.kind != "text" else []
    return [Chain(read, tuple(relations), passage.kind)]


def are_shapes(chain: Chain) -> bool:
    """Whether a chain says which shape a product of matrices has: (2, 3) × (3, 4) = (2, 4)."""
    first, last = chain.sides[0].node, chain.sides[-1].node
    if not (
        isinstance(first, Apply) and first.op in ("times", "dot", "star", "matmul", "juxtaposed") and isinstance(last, Array)
    ):
        return False
    a, b, c = (tuple(map(key, x.items)) if isinstance(x, Array) else () for x in (*first.args, last))
    whole = all(t.isdigit() for t in (*a, *b, *c))
    return whole and len(a) == len(b) == len(c) == 2 and a[1] == b[0] and c == (a[0], b[1])


def _numeric(pieces: Sequence[Piece]) -> bool:
    return any(p.kind == "NUMBER" for p in pieces)


def _side(pieces: list[Piece], fallback: int) -> Side:
    if not pieces:
        return Side(fallback, fallback, None, "nothing stands on this side")
    start, end = pieces[0].start, pieces[-1].end
    try:
        return Side(start, end, parse_tokens(pieces))
    except (GrammarError, LimitError) as error:
        return Side(start, end, None, str(error))


def _is_words(p: Piece) -> bool:
    return p.kind == "NAME" and (" " in p.text or (len(p.text) > 2 and p.text.isalpha()) or p.text in FILLERS)


def _cut_in_words(side: list[Piece]) -> tuple[list[Piece], list[Piece]]:
    """`5 so b` between two relations: 5 ends one chain, and b begins another."""
    outer = {id(p) for p in _outer(side)}
    for k in range(1, len(side)):
        if id(side[k]) not in outer or side[k - 1].kind not in ENDS or not side[k].loose:
            continue
        if _is_words(side[k]):
            return side[:k], side[k:]
        if side[k].kind == "LPAR" and side[k - 1].kind != "NAME" and k + 1 < len(side) and _is_words(side[k + 1]):
            return side[:k], []  # a remark in brackets
    return side, []


def _without_words(side: list[Piece], first: bool) -> list[Piece]:
    """A side of plain text without the sentence around it."""
    if not first:
        side, _ = _cut_in_words(side)
        return _without_fillers(side)
    outer = {id(p) for p in _outer(side)}
    for k in range(len(side) - 2, -1, -1):
        p, after = side[k], side[k + 1]
        verb = p.kind == "NAME" and " " in p.text and p.text.rpartition(" ")[2] in ("is", "are", "equals", "of")
        words = (_is_words(p) and after.loose and after.kind in STARTS) or (verb and after.kind == "MINUS")
        if id(p) in outer and (words or p.kind == "COLON"):
            joined = k and side[k - 1].kind in ENDS and p.kind == "NAME" and p.text.split(" ")[0] not in CONNECTING
            return [] if joined else _last_letter(side[k + 1 :])
    return _last_letter(side)


def _last_letter(side: list[Piece]) -> list[Piece]:
    """`the score is q` before an operator or a relation is `q`: words before a single letter are the sentence."""
    if not side or side[0].kind != "NAME" or " " not in side[0].text:
        return side
    words = side[0].text.split(" ")
    name = re.split(r"[_^']", words[-1])[0]
    return [replace(side[0], text=words[-1]), *side[1:]] if len(name) == 1 else side


def _without_fillers(side: list[Piece]) -> list[Piece]:
    while side and side[0].kind == "NAME":
        words = side[0].text.split(" ")
        rest = list(words)
        while len(rest) > 1 and rest[0].lower() in FILLERS:
            rest.pop(0)
        if len(side) > 1 and rest[0].lower() in FILLERS and len(rest) == 1 and side[1].kind in STARTS and len(rest[0]) > 1:
            side = side[1:]
            continue
        return [replace(side[0], text=" ".join(rest)), *side[1:]]
    return side
