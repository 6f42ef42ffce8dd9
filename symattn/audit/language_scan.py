"""The state of reading a formula sign by sign: the tokens so far, the brackets that are open, and which brace closes which."""

from __future__ import annotations

from dataclasses import dataclass, field

from symattn.audit.language_symbols import word_set
from symattn.errors import GrammarError, LimitError

MOST_TOKENS = 6000
LONGEST = 40_000
"""Characters of a formula."""
DEEPEST = 40
"""Brackets inside of brackets."""

STARTS = word_set("NUMBER NAME FUNC FUNCP CALLP LPAR LSQ LBRACE FRAC SQRT ROOT MATBEGIN BIGSUM LANGLE NORM_OPEN ABS_OPEN BRACED")
"""What an operand begins with."""
ENDS = word_set("NUMBER NAME RPAR RSQ RBRACE MATEND RANGLE TRANSPOSE SUBSCRIPT DEGREE NORM_CLOSE ABS_CLOSE")
"""What an operand ends with."""
OPENING = word_set("LPAR LSQ LBRACE MATBEGIN LANGLE CALLP FUNCP")
CLOSING = {"RPAR": ("LPAR", "CALLP", "FUNCP"), "RSQ": ("LSQ",), "RBRACE": ("LBRACE",), "MATEND": ("MATBEGIN",),
           "RANGLE": ("LANGLE",)}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Piece:
    """A token: its kind, what it says, and its place; ``loose`` where a blank stands before it."""

    kind: str
    text: str
    start: int
    end: int
    loose: bool = False
    detail: str = ""


@dataclass(slots=True)
class Scan:
    """The state of one pass over a text."""

    text: str
    offset: int = 0
    pos: int = 0
    out: list[Piece] = field(default_factory=list)
    open: list[str] = field(default_factory=list)
    bars: dict[str, bool] = field(default_factory=dict)
    skip: set[int] = field(default_factory=set)
    braced: set[int] = field(default_factory=set)
    """Where the groups end that have a brace below or above them, with a note."""
    blank: bool = False
    mates: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if len(self.text) > LONGEST:
            raise LimitError(f"a formula of more than {LONGEST} characters; give a part of it")
        self.mates = _mates(self.text)

    def add(self, kind: str, text: str, start: int, end: int, detail: str = "") -> None:
        """Add a token."""
        if len(self.out) >= MOST_TOKENS:
            raise LimitError(f"a formula of more than {MOST_TOKENS} signs and numbers; give a part of it")
        self.out.append(Piece(kind, text, start + self.offset, end + self.offset, self.blank, detail))
        self.blank = False

    @property
    def last(self) -> Piece | None:
        """The token before this place."""
        return self.out[-1] if self.out else None

    def mate(self, start: int) -> int:
        """Right after the brace that closes the one at ``start``.

        Raises
        ------
        GrammarError
            When none does.
        """
        if start not in self.mates:
            raise GrammarError("a brace `{` is opened and not closed")
        return self.mates[start]

    def begin(self, kind: str) -> None:
        """Open a bracket."""
        self.open.append(kind)
        if len(self.open) > DEEPEST:
            raise LimitError(f"more than {DEEPEST} brackets inside of brackets")

    def finish(self, kind: str, text: str) -> None:
        """Close a bracket."""
        if not self.open or self.open[-1] not in CLOSING[kind]:
            raise GrammarError(f"`{text}` closes nothing that is open")
        self.open.pop()

    def apart(self, start: int) -> None:
        """Inside of brackets a blank parts two elements: `[1 0 3]`, `[[1 0] [0 1]]`."""
        last = self.last
        if last is None or not self.blank or not self.open or self.open[-1] not in ("LSQ", "LPAR"):
            return
        opens = self.text[start : start + 1] in "[("
        if (last.kind == "NUMBER" and not opens) or (last.kind in ("RSQ", "RPAR") and opens) or last.kind == "ELLIPSIS":
            self.add("COMMA", ",", start, start)

    def inside(self) -> list[Piece]:
        """The tokens since the innermost square bracket was opened."""
        for k in range(len(self.out) - 1, -1, -1):
            if self.out[k].kind == "LSQ":
                return self.out[k:]
        return self.out


def _mates(text: str) -> dict[int, int]:
    """Where the brace that closes each brace ends; those that are never closed have none."""
    found: dict[int, int] = {}
    opened: list[int] = []
    i = 0
    while i < len(text):
        c = text[i]
        if c == "\\":
            i += 2
            continue
        if c == "{":
            opened.append(i)
        elif c == "}" and opened:
            found[opened.pop()] = i + 1
        i += 1
    return found
