"""The text side of the grammar: what is refused before anything is parsed, and how an error shows its place."""

from __future__ import annotations

from symattn.errors import GrammarError, LimitError

MAX_LENGTH = 1000
MAX_DEPTH = 40


def where_in(text: str, column: int) -> str:
    """Where in ``text`` an error is: the column, the line and a caret under it, to append to a message.

    >>> print("no dots" + where_in("s + a.b", 4))
    no dots, at column 5
      s + a.b
          ^
    """
    shown = "".join(c if c.isascii() and c.isprintable() else "?" for c in text)
    start = max(0, column - 60)
    return f", at column {column + 1}\n  {shown[start : start + 120]}\n  {' ' * (column - start)}^"


def check_text(text: str, kind: str) -> None:
    """Refuse text that is empty, too long, nested too deeply or not plain ASCII.

    Raises
    ------
    GrammarError
        On an empty text and on a character outside printable ASCII (a look-alike letter, a NUL), with its position.
    LimitError
        On more than 1000 characters, or brackets or signs nested more than 40 deep.
    """
    if not isinstance(text, str):
        raise GrammarError(f"a {kind} is text, got {type(text).__name__}")
    if not text.strip():
        raise GrammarError(f"an empty {kind}")
    if len(text) > MAX_LENGTH:
        raise LimitError(f"a {kind} has at most {MAX_LENGTH} characters, this one has {len(text)}")
    stripped = text.strip()
    for column, c in enumerate(stripped):
        if not (c.isascii() and c.isprintable()):
            raise GrammarError(
                f"the character U+{ord(c):04X} is not part of a {kind}: plain ASCII only{where_in(stripped, column)}"
            )
        if c in "\"'`;#\\@$":
            raise GrammarError(f"the character {c} is not part of a {kind}{where_in(stripped, column)}")
    depth = 0
    for column, c in enumerate(stripped):
        depth += (c in "([{") - (c in ")]}")
        if depth > MAX_DEPTH:
            raise LimitError(f"a {kind} nests at most {MAX_DEPTH} brackets{where_in(stripped, column)}")
    run = 0
    for column, c in enumerate(stripped):
        run = run + 1 if c in "+-~" else run if c == " " else 0
        if run > MAX_DEPTH:
            raise LimitError(f"a {kind} nests at most {MAX_DEPTH} signs{where_in(stripped, column)}")
    for word in ("**", "not"):
        if stripped.count(word) > MAX_DEPTH:
            raise LimitError(f"a {kind} has `{word}` at most {MAX_DEPTH} times, this one {stripped.count(word)} times")


def bracketed_comparisons(text: str, position: int) -> str:
    """The bracket group around ``position`` (or the whole text) with every operand of its ``&`` and ``|`` in brackets.

    >>> bracketed_comparisons("j <= i & i - j < 4", 8)
    '(j <= i) & (i - j < 4)'
    """
    start, depth = 0, 0
    for k in range(position - 1, -1, -1):
        depth += (text[k] == ")") - (text[k] == "(")
        if depth < 0:
            start = k + 1
            break
    stop, depth = len(text), 0
    for k in range(position, len(text)):
        depth += (text[k] == "(") - (text[k] == ")")
        if depth < 0:
            stop = k
            break
    parts: list[str] = []
    depth, last = 0, start
    for k in range(start, stop):
        depth += (text[k] == "(") - (text[k] == ")")
        if depth == 0 and text[k] in "&|":
            parts += [_bracketed(text[last:k]), text[k]]
            last = k + 1
    return " ".join([*parts, _bracketed(text[last:stop])])


def _bracketed(part: str) -> str:
    part = part.strip()
    return part if part.startswith("(") and part.endswith(")") and _closes(part) else f"({part})"


def _closes(part: str) -> bool:
    """Whether the first bracket closes with the last character."""
    depth = 0
    for k, c in enumerate(part):
        depth += (c == "(") - (c == ")")
        if depth == 0:
            return k == len(part) - 1
    return False
