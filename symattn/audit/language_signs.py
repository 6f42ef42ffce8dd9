"""Signs of a formula that need a look around: brackets and bars, subscripts and superscripts, function calls."""

from __future__ import annotations

import re
from dataclasses import replace

from symattn.audit import language_symbols as known
from symattn.audit.language_scan import CLOSING, ENDS, OPENING, Scan
from symattn.errors import GrammarError

LONGEST_SCRIPT = 400

_NOTE = re.compile(r"\s*(?:=|\\approx)?(?:\\[,;]|[-−\d.,\s\[\]])*\d(?:\\[,;%]|[\d.,\s\[\]%])*\Z")
"""A note below a brace that is a number or a vector: the value of what stands above it."""
_DEGREE = re.compile(r"[{\s]*(?:\\circ|∘|°)[}\s]*\Z")
_TRANSPOSE = re.compile(r"(?:\\(?:top|intercal|mathsf|mathrm|text|mathit|rm|sf)\b|[{}\s⊤ᵀ])*(?:T|t)?[{}\s]*\Z")
_LATIN_TRANSPOSE = re.compile(r"[T⊤ᵀ]|\\top|\\intercal")
_WORDLIKE = re.compile(r"[A-Z]|\(?\d+\)?|\([^()\s]*\)|\*|'+|\\prime|[a-z]{2,}")
_SCRIPT = re.compile(r"\\[a-zA-Z]+\*?(?:\s*\{[^{}]*\})?|\([^()\s]{1,12}\)|[A-Za-z]+|\d+|.", re.DOTALL)


def put(scan: Scan, kind: str, text: str, start: int) -> None:
    """Add a sign, with what brackets, bars, scripts and blanks make of it."""
    if kind in ("CARET", "SUB"):
        script(scan, kind, start)
        return
    if kind in ("NORM", "BAR"):
        kind = _paired(scan, "ABS" if kind == "BAR" else "NORM")
    if kind == "LPAR":
        _open_parenthesis(scan, start)
        return
    if kind in ("QUAD", "ROW") and scan.open and scan.open[-1] in ("LSQ", "LPAR"):
        kind = "COMMA"
        if scan.last is not None and scan.last.kind not in ENDS:
            return
    if kind in OPENING:
        scan.apart(start)
        scan.begin(kind)
    elif kind in CLOSING:
        scan.finish(kind, text)
    scan.add(kind, text, start, scan.pos)


def _paired(scan: Scan, name: str) -> str:
    scan.bars[name] = not scan.bars.get(name, False)
    return f"{name}_OPEN" if scan.bars[name] else f"{name}_CLOSE"


def _open_parenthesis(scan: Scan, start: int) -> None:
    """A function or a name of several letters right before a bracket is called."""
    last = scan.last
    kind, tight = "LPAR", not scan.blank
    if last is not None and last.kind == "FUNC":
        kind = "FUNCP"
    elif last is not None and last.kind == "NAME" and tight and (len(last.text) > 1 or last.text in "fgh") and last.text != "pi":
        kind = "CALLP"
    else:
        scan.apart(start)
    scan.begin(kind)
    if kind == "LPAR" or last is None:
        scan.add(kind, "(", start, scan.pos)
    else:
        scan.out[-1] = replace(last, kind=kind, end=scan.pos + scan.offset)


def unicode_script(scan: Scan) -> None:
    """Read digits and letters of Unicode that are written raised or lowered."""
    text, start = scan.text, scan.pos
    table, kind = (known.SUBSCRIPTS, "SUB") if text[start] in known.SUBSCRIPTS else (known.SUPERSCRIPTS, "CARET")
    end = start
    while end < len(text) and (text[end] in table or _is_point(text, end, table)):
        end += 1
    scan.pos = end
    raw = "".join(table.get(c, ".") for c in text[start:end])
    if kind == "SUB":
        subscript(scan, raw, start)
        return
    scan.add("CARET", "^", start, start)
    scan.add("LBRACE", "{", start, start)
    for sign in raw:
        if sign in "+-":
            scan.add("MINUS" if sign == "-" else "PLUS", sign, start, start)
    digits = raw.lstrip("+-")
    scan.add("NUMBER" if digits.replace(".", "", 1).isdigit() else "NAME", digits or "0", start, end)
    scan.add("RBRACE", "}", end, end)


def _is_point(text: str, k: int, table: dict[str, str]) -> bool:
    """Whether a dot stands between two raised digits: e⁰·⁵."""
    around = text[k - 1 : k] + text[k + 1 : k + 2]
    return text[k] in "·." and len(around) == 2 and all(table.get(c, "").isdigit() for c in around)


def _raw_script(scan: Scan) -> tuple[str, int]:
    """The text of a script at the present place and where it ends; a brace belongs to its mate."""
    text, i = scan.text, scan.pos
    while i < len(text) and text[i] == " ":
        i += 1
    if i < len(text) and text[i] == "{":
        end = scan.mate(i)
        return text[i + 1 : end - 1], end
    if m := _SCRIPT.match(text, i):
        return m[0], m.end()
    raise GrammarError("a script `^` or `_` is followed by nothing")


def script(scan: Scan, kind: str, start: int) -> None:
    """A subscript belongs to its name; a superscript is a transpose, part of a name (`W^Q`, `h^{(1)}`), or a power."""
    raw, end = _raw_script(scan)
    short = raw if len(raw) <= LONGEST_SCRIPT else "?"
    last = scan.last
    if last is None:
        raise GrammarError("a script `^` or `_` stands before everything")
    if scan.text[:start].rstrip() and len(scan.text[:start].rstrip()) in scan.braced:
        _note(scan, raw, start, end)
        return
    if last.kind == "BIGSUM":
        scan.out[-1] = replace(last, detail=f"{last.detail}{'_' if kind == 'SUB' else '^'}{{{raw}}}", end=end + scan.offset)
        scan.pos = end
    elif kind == "SUB":
        scan.pos = end
        subscript(scan, raw, start)
    elif _DEGREE.match(short):
        scan.pos = end
        scan.add("DEGREE", "°", start, end)
    elif _TRANSPOSE.match(short) and _LATIN_TRANSPOSE.search(short):
        scan.pos = end
        scan.add("TRANSPOSE", raw, start, end)
    elif last.kind == "NAME" and last.text != "e" and _WORDLIKE.fullmatch(word := plain(short)) and not word.isdigit():
        scan.out[-1] = replace(last, text=f"{last.text}^{word}", end=end + scan.offset)
        scan.pos = end
    else:
        scan.add("CARET", "^", start, scan.pos)


def _note(scan: Scan, raw: str, start: int, end: int) -> None:
    """What stands below a brace: the value of what is above, or words about it."""
    opening = scan.text.find("{", start, end)
    if opening < 0 or not _NOTE.match(raw):
        scan.pos = end
        return
    said = re.match(r"\s*(?:=|\\approx)", raw)
    if said:
        scan.skip |= set(range(opening + 1, opening + 1 + said.end()))
    scan.pos = opening
    scan.add("NOTE", "_", start, opening)


def subscript(scan: Scan, raw: str, start: int) -> None:
    """Give the operand before this place a subscript: a name takes it into itself."""
    last, words = scan.last, plain(raw[:LONGEST_SCRIPT])
    if last is None:
        raise GrammarError("a subscript stands before everything")
    if last.kind == "NAME" or last.kind == "FUNC":
        scan.out[-1] = replace(last, text=f"{last.text}_{words}", end=scan.pos + scan.offset)
    else:
        scan.add("SUBSCRIPT", words, start, scan.pos)


def plain(raw: str) -> str:
    """A script as words: without fonts, braces and blanks."""
    return re.sub(r"\\[a-zA-Z]+\*?|[{}\s~\\]", "", raw.replace(r"\ell", "l"))
