"""Text of a formula to tokens: LaTeX, Unicode and plain text become one small vocabulary that the grammar reads.

What the grammar could not tell apart is settled here: which words are functions, which letters belong together as a name
(``W_Q``, ``XWq`` is ``X Wq``), that ``K^T`` is a transpose and ``1 x 2`` a product, that blanks part the elements of ``[1 0 3]``,
and what of LaTeX only says how things look. Every token knows its place in the text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

from symattn.audit import language_symbols as known
from symattn.audit.language_symbols import word_set
from symattn.errors import GrammarError, LimitError

MOST_TOKENS = 6000
DEEPEST = 40
"""Brackets inside of brackets."""

_NUMBER = re.compile(r"(?:\d{1,3}(?:\{,\}\d{3})+|\d+)(?:\.\d+)?(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?", re.ASCII)
_THOUSANDS = re.compile(r"\d{1,3}(?:,\d{3})+(?![\d,])(?:\.\d+)?", re.ASCII)
_ELLIPSIS = re.compile(r"…|\.\.\.|\\l?dots\b")
_PERCENT = re.compile(r"(?:\s|\\,|~)*\\?%")
_LETTERS = re.compile(r"[^\W\d_]+")
_SPLIT = re.compile(r"(?:[A-Z][a-z]?(?![a-z]))+\Z")
_PREFIX = re.compile(r"(?:np|numpy|torch|F|nn|tf|jnp|sp|math)\.(?=[a-zA-Z])|(?:linalg|functional)\.(?=[a-zA-Z])")
_TRANSPOSE = re.compile(r"(?:\\(?:top|intercal|mathsf|mathrm|text|mathit|rm|sf)\b|[{}\s⊤ᵀ])*(?:T|t)?[{}\s]*\Z")
_LATIN_TRANSPOSE = re.compile(r"[T⊤ᵀ]|\\top|\\intercal")
_WORDLIKE = re.compile(r"[A-Z]|\(?\d+\)?|\([^()\s]*\)|\*|'+|\\prime|[a-z]{2,}")
STARTS = word_set("NUMBER NAME FUNC FUNCP CALLP LPAR LSQ LBRACE FRAC SQRT ROOT MATBEGIN BIGSUM LANGLE NORM_OPEN ABS_OPEN")
"""What an operand begins with."""
ENDS = word_set("NUMBER NAME RPAR RSQ RBRACE MATEND RANGLE TRANSPOSE SUBSCRIPT NORM_CLOSE ABS_CLOSE")
"""What an operand ends with."""
_OPEN = word_set("LPAR LSQ LBRACE MATBEGIN LANGLE CALLP FUNCP")
_CLOSE = {"RPAR": ("LPAR", "CALLP", "FUNCP"), "RSQ": ("LSQ",), "RBRACE": ("LBRACE",), "MATEND": ("MATBEGIN",),
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
class _Scan:
    """The state of one pass over a text."""

    text: str
    pos: int = 0
    offset: int = 0
    out: list[Piece] = field(default_factory=list)
    open: list[str] = field(default_factory=list)
    skip: set[int] = field(default_factory=set)
    blank: bool = False

    def add(self, kind: str, text: str, start: int, end: int, detail: str = "") -> None:
        if len(self.out) >= MOST_TOKENS:
            raise LimitError(f"a formula of more than {MOST_TOKENS} signs and numbers; give a part of it")
        self.out.append(Piece(kind, text, start + self.offset, end + self.offset, self.blank, detail))
        self.blank = False

    @property
    def last(self) -> Piece | None:
        return self.out[-1] if self.out else None


def tokens(text: str, offset: int = 0) -> list[Piece]:
    r"""The tokens of a formula.

    Parameters
    ----------
    text
        A formula without the dollar signs or the environment around it.
    offset
        Where the text begins in the document; places count from there.

    Raises
    ------
    GrammarError
        On a sign that means nothing in a formula, and on brackets that do not match.
    LimitError
        On more than 6000 tokens or 40 nested brackets.

    >>> [p.kind for p in tokens(r"\frac{QK^T}{\sqrt{d_k}}")]
    ['FRAC', 'LBRACE', 'NAME', 'NAME', 'TRANSPOSE', 'RBRACE', 'LBRACE', 'SQRT', 'LBRACE', 'NAME', 'RBRACE', 'RBRACE']
    >>> [p.text for p in tokens("raw scores = [1 0 -3] x 2")]
    ['raw scores', '=', '[', '1', ',', '0', ',', '-', '3', ']', 'x', '2']
    """
    scan = _Scan(text, offset=offset)
    while scan.pos < len(text):
        _step(scan)
    if scan.open:
        raise GrammarError(f"a bracket `{scan.open[-1].lower()}` is opened and not closed")
    return scan.out


def _step(scan: _Scan) -> None:
    text, i = scan.text, scan.pos
    c = text[i]
    if i in scan.skip or c.isspace() or c in "$\u200b\u2061\u00ad\ufeff":
        scan.blank, scan.pos = scan.blank or c.isspace(), i + 1
    elif c == "~" and text[i : i + 2] not in known.DIGRAPHS:
        rest = text[i + 1 : i + 3].lstrip()[:1]
        if rest.isdigit() and (scan.last is None or scan.last.kind not in ("NUMBER", "COMMA", "LSQ")):
            scan.add("APPROX", c, i, i + 1)
        scan.blank, scan.pos = True, i + 1
    elif c == "\\":
        _command(scan)
    elif m := (not scan.open and _THOUSANDS.match(text, i)) or _NUMBER.match(text, i):
        _number(scan, m)
    elif (c.isalpha() and c not in known.SIGNS) or c in known.SUBSCRIPTS or c in known.SUPERSCRIPTS:
        _letters(scan)
    elif c in "'′`\"":
        _prime(scan)
    else:
        _sign(scan)


def _sign(scan: _Scan) -> None:
    text, i = scan.text, scan.pos
    for size in (3, 2, 1):
        found = text[i : i + size]
        kind = "ELLIPSIS" if found == "..." else known.DIGRAPHS.get(found) or known.SIGNS.get(found)
        if kind and len(found) == size:
            if found == ".T" and (text[i + 2 : i + 3].isalnum() or scan.last is None or scan.last.kind not in ENDS):
                continue
            scan.pos = i + size
            _put(scan, kind, found, i)
            return
    if text[i] == "." and not text[i + 1 : i + 2].isalnum():
        scan.pos = i + 1  # the end of a sentence, or `\left.`
        return
    raise GrammarError(f"`{text[i]}` means nothing in a formula here")


def _put(scan: _Scan, kind: str, text: str, start: int) -> None:
    """Add a sign, with what brackets, bars, scripts and blanks make of it."""
    if kind in ("CARET", "SUB"):
        _script(scan, kind, start)
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
    if kind in _OPEN:
        _apart(scan, start)
        scan.open.append(kind)
        if len(scan.open) > DEEPEST:
            raise LimitError(f"more than {DEEPEST} brackets inside of brackets")
    elif kind in _CLOSE:
        if not scan.open or scan.open[-1] not in _CLOSE[kind]:
            raise GrammarError(f"`{text}` closes nothing that is open")
        scan.open.pop()
    scan.add(kind, text, start, scan.pos)


def _paired(scan: _Scan, name: str) -> str:
    opened = sum(p.kind == f"{name}_OPEN" for p in scan.out) > sum(p.kind == f"{name}_CLOSE" for p in scan.out)
    return f"{name}_CLOSE" if opened else f"{name}_OPEN"


def _open_parenthesis(scan: _Scan, start: int) -> None:
    """A function or a name of several letters right before a bracket is called."""
    last = scan.last
    kind, tight = "LPAR", not scan.blank
    if last is not None and last.kind == "FUNC":
        kind = "FUNCP"
    elif last is not None and last.kind == "NAME" and tight and (len(last.text) > 1 or last.text in "fgh") and last.text != "pi":
        kind = "CALLP"
    else:
        _apart(scan, start)
    scan.open.append(kind)
    if len(scan.open) > DEEPEST:
        raise LimitError(f"more than {DEEPEST} brackets inside of brackets")
    if kind == "LPAR" or last is None:
        scan.add(kind, "(", start, scan.pos)
    else:
        scan.out[-1] = replace(last, kind=kind, end=scan.pos + scan.offset)


def _apart(scan: _Scan, start: int) -> None:
    """Inside of brackets a blank parts two elements: `[1 0 3]`, `[[1 0] [0 1]]`."""
    last = scan.last
    if last is None or not scan.blank or not scan.open or scan.open[-1] not in ("LSQ", "LPAR"):
        return
    opens = scan.text[start : start + 1] in "[("
    if (last.kind == "NUMBER" and not opens) or (last.kind in ("RSQ", "RPAR") and opens) or last.kind == "ELLIPSIS":
        scan.add("COMMA", ",", start, start)


def _number(scan: _Scan, m: re.Match[str]) -> None:
    text, start, end = scan.text, m.start(), m.end()
    last = scan.last
    before = scan.out[-2] if len(scan.out) > 1 else None
    inside = bool(scan.open) and scan.open[-1] == "LSQ"
    if last is not None and last.kind in ("MINUS", "PLUS") and before is not None and inside and last.loose and not scan.blank:
        if before.kind in ("NUMBER", "ELLIPSIS") and not any(p.kind == "COMMA" and p.start < p.end for p in _inside(scan)):
            scan.out.pop()
            scan.add("COMMA", ",", last.start - scan.offset, last.start - scan.offset)
            scan.out.append(last)
    elif last is not None and last.kind in ("NUMBER", "ELLIPSIS", "RSQ"):
        _apart(scan, start)
    printed = text[start:end].replace("{,}", "").replace(",", "")
    if text[end : end + 1] == "." and re.match(r"\.(?:[\s\],;&)]|$)", text[end:]) and inside:
        printed, end = printed + ".", end + 1
    detail = ""
    if "." in printed and (dots := _ELLIPSIS.match(text, end)):
        detail, end = "cut", dots.end()
    elif percent := _PERCENT.match(text, end):
        detail, end = "percent", percent.end()
    scan.pos = end
    scan.add("NUMBER", printed, start, end, detail)


def _inside(scan: _Scan) -> list[Piece]:
    """The tokens since the innermost square bracket was opened."""
    for k in range(len(scan.out) - 1, -1, -1):
        if scan.out[k].kind == "LSQ":
            return scan.out[k:]
    return scan.out


def _letters(scan: _Scan) -> None:
    text, start = scan.text, scan.pos
    if m := _PREFIX.match(text, start):
        scan.pos = m.end()
        return
    c = text[start]
    if c in known.SUBSCRIPTS or c in known.SUPERSCRIPTS:
        _unicode_script(scan)
        return
    m = _LETTERS.match(text, start)
    run = m[0] if m else c
    run = next((run[:k] for k, x in enumerate(run) if k and (x in known.SIGNS or x in known.SUBSCRIPTS)), run)
    if re.match(r"log(?:2|10|_softmax|sumexp)\b", text[start:]) and (deep := re.match(r"[\w]+", text[start:])):
        run = deep[0]
    scan.pos = start + len(run)
    for part, place in _split(run, start):
        _name(scan, part, place)
    last, digits = scan.last, re.compile(r"\d+(?![\d.]*[a-zA-Z\d])", re.ASCII).match(text, scan.pos)
    if digits and last is not None and last.kind == "NAME" and "_" not in last.text and last.end == scan.pos + scan.offset:
        scan.pos = digits.end()  # plain text writes `q1` for a subscript
        scan.out[-1] = replace(last, text=f"{last.text}_{digits[0]}", end=scan.pos + scan.offset)


def _split(run: str, start: int) -> list[tuple[str, int]]:
    """The names in a run of letters: capitals stand for themselves, `XWq` is two names, a word is one."""
    if len(run) == 1 or run.lower() in known.FUNCTIONS or not _SPLIT.match(run) or len(run) > 6:
        return [(run, start)]
    if not run.isupper() and "W" not in run:
        return [(run, start)]
    return [(m[0], start + m.start()) for m in re.finditer(r"[A-Z][a-z]?", run)]


def _name(scan: _Scan, name: str, start: int) -> None:
    end = start + len(name)
    last = scan.last
    name = known.GREEK.get(name, name)
    if name in ("x", "X") and last is not None and last.kind in ENDS and re.match(r"\s*[-−+(\[\d.\\]", scan.text[end:]):
        if last.kind != "NAME" or scan.text[end : end + 1].isspace():
            scan.add("TIMES", name, start, end)
            return
    if name == "T" and last is not None and last.kind == "NAME" and not scan.blank and last.text[0].isupper():
        scan.add("TRANSPOSE", name, start, end)
        return
    if name.lower() in known.FUNCTIONS and (len(name) > 1):
        scan.add("FUNC", known.FUNCTIONS[name.lower()], start, end)
        return
    if last is not None and last.kind == "NAME" and scan.blank and _wordy(last.text, name):
        scan.out[-1] = replace(last, text=f"{last.text} {name.lower()}", end=end + scan.offset)
        scan.blank = False
        return
    scan.add("NAME", name.lower() if len(name) > 2 and not name.isupper() else name, start, end)


def _wordy(before: str, name: str) -> bool:
    """Whether two names with a blank between them are words of one name: `raw scores`, `the vector q`."""
    if re.search(r"[_^]", before):
        return False
    return max(len(before.rpartition(" ")[2]), len(name)) > 2 or " " in before


def _prime(scan: _Scan) -> None:
    c, start = scan.text[scan.pos], scan.pos
    scan.pos += 1
    last = scan.last
    if c in "'′" and last is not None and last.kind == "NAME" and not scan.blank and last.end == start + scan.offset:
        scan.out[-1] = replace(last, text=last.text + "'", end=scan.pos + scan.offset)


def _unicode_script(scan: _Scan) -> None:
    text, start = scan.text, scan.pos
    table, kind = (known.SUBSCRIPTS, "SUB") if text[start] in known.SUBSCRIPTS else (known.SUPERSCRIPTS, "CARET")
    end = start
    while end < len(text) and text[end] in table:
        end += 1
    scan.pos = end
    raw = "".join(table[c] for c in text[start:end])
    if kind == "SUB":
        _subscript(scan, raw, start)
        return
    scan.add("CARET", "^", start, start)
    scan.add("LBRACE", "{", start, start)
    for sign in raw:
        if sign in "+-":
            scan.add("MINUS" if sign == "-" else "PLUS", sign, start, start)
    digits = raw.lstrip("+-")
    scan.add("NUMBER" if digits.isdigit() else "NAME", digits or "0", start, end)
    scan.add("RBRACE", "}", end, end)


def _raw_script(scan: _Scan) -> tuple[str, int]:
    """The text of a script at the present place and where it ends; a brace belongs to its mate."""
    text, i = scan.text, scan.pos
    while i < len(text) and text[i] == " ":
        i += 1
    if i < len(text) and text[i] == "{":
        end = _mate(text, i)
        return text[i + 1 : end - 1], end
    if m := re.compile(r"\\[a-zA-Z]+\*?(?:\s*\{[^{}]*\})?|\([^()\s]{1,12}\)|[A-Za-z]+|\d+|.", re.DOTALL).match(text, i):
        return m[0], m.end()
    raise GrammarError("a script `^` or `_` is followed by nothing")


def _mate(text: str, start: int) -> int:
    """Right after the brace that closes the one at ``start``."""
    depth, i = 0, start
    while i < len(text):
        if text[i] == "\\":
            i += 2
            continue
        depth += {"{": 1, "}": -1}.get(text[i], 0)
        i += 1
        if depth == 0:
            return i
    raise GrammarError("a brace `{` is opened and not closed")


def _script(scan: _Scan, kind: str, start: int) -> None:
    """A subscript belongs to its name; a superscript is a transpose, part of a name (`W^Q`, `h^{(1)}`), or a power."""
    raw, end = _raw_script(scan)
    last = scan.last
    if last is None:
        raise GrammarError("a script `^` or `_` stands before everything")
    if last.kind == "BIGSUM":
        scan.out[-1] = replace(last, detail=f"{last.detail}{'_' if kind == 'SUB' else '^'}{{{raw}}}", end=end + scan.offset)
        scan.pos = end
    elif kind == "SUB":
        scan.pos = end
        _subscript(scan, raw, start)
    elif _TRANSPOSE.match(raw) and _LATIN_TRANSPOSE.search(raw):
        scan.pos = end
        scan.add("TRANSPOSE", raw, start, end)
    elif last.kind == "NAME" and last.text != "e" and _WORDLIKE.fullmatch(plain := _plain(raw)) and not plain.isdigit():
        scan.out[-1] = replace(last, text=f"{last.text}^{plain}", end=end + scan.offset)
        scan.pos = end
    else:
        scan.add("CARET", "^", start, scan.pos)


def _subscript(scan: _Scan, raw: str, start: int) -> None:
    last, plain = scan.last, _plain(raw)
    if last is None:
        raise GrammarError("a subscript stands before everything")
    if last.kind == "NAME" or last.kind == "FUNC":
        scan.out[-1] = replace(last, text=f"{last.text}_{plain}", end=scan.pos + scan.offset)
    else:
        scan.add("SUBSCRIPT", plain, start, scan.pos)


def _plain(raw: str) -> str:
    """A script as words: without fonts, braces and blanks."""
    return re.sub(r"\\[a-zA-Z]+\*?|[{}\s~\\]", "", raw.replace(r"\ell", "l"))


def _command(scan: _Scan) -> None:
    text, start = scan.text, scan.pos
    m = re.compile(r"\\([a-zA-Z]+\*?|.|\Z)", re.DOTALL).match(text, start)
    name = m[1] if m else ""
    scan.pos = m.end() if m else start + 1
    if name in known.BLANK_COMMANDS or name == "":
        scan.blank = scan.blank or name not in ("left", "right", "!")
        if name in ("left", "right") and text[scan.pos : scan.pos + 1] == ".":
            scan.pos += 1
    elif name in ("begin", "end"):
        _environment(scan, name, start)
    elif name in known.DROPPED_COMMANDS:
        if text[scan.pos : scan.pos + 1] == "{":
            scan.pos = _mate(text, scan.pos)
    elif name in known.FONTS:
        _transparent(scan)
    elif name in known.TEXTS or name in ("rm", "bf", "it", "sf"):
        _text_words(scan)
    elif name == "infty":
        raise GrammarError("an infinity is no number that can be computed with here")
    elif name in known.COMMANDS:
        _known_command(scan, name, start)
    elif name == "%":
        raise GrammarError("a percent sign follows no number")
    elif name.lower() in known.FUNCTIONS:
        scan.add("FUNC", known.FUNCTIONS[name.lower()], start, scan.pos)
    else:
        scan.add("NAME", name, start, scan.pos)


def _known_command(scan: _Scan, name: str, start: int) -> None:
    kind, text = known.COMMANDS[name], scan.text
    if kind in ("SQRT", "FRAC"):
        _apart(scan, start)
        while text[scan.pos : scan.pos + 1] == " ":
            scan.pos += 1
        if kind == "SQRT" and text[scan.pos : scan.pos + 1] == "[":
            kind = "ROOT"
        scan.add(kind, name, start, scan.pos)
        if kind == "FRAC" and (m := re.match(r"([0-9a-zA-Z])\s*([0-9a-zA-Z])", text[scan.pos :])):
            _short_fraction(scan, m)
        return
    _put(scan, kind, text[start : scan.pos], start)


def _short_fraction(scan: _Scan, m: re.Match[str]) -> None:
    r"""`\frac12`: the two signs that follow are its parts."""
    for k in (1, 2):
        at = scan.pos + m.start(k)
        scan.add("LBRACE", "{", at, at)
        scan.add("NUMBER" if m[k].isdigit() else "NAME", m[k], at, at + 1)
        scan.add("RBRACE", "}", at + 1, at + 1)
    scan.pos += m.end()


def _transparent(scan: _Scan) -> None:
    r"""The braces of a font are no group: `\mathbf{W}_Q` is `W_Q`."""
    text = scan.text
    while text[scan.pos : scan.pos + 1] == " ":
        scan.pos += 1
    if text[scan.pos : scan.pos + 1] == "{":
        scan.skip |= {scan.pos, _mate(text, scan.pos) - 1}


def _text_words(scan: _Scan) -> None:
    """Words set as text: a function, or one name; what holds formulas of its own is read as they are."""
    text = scan.text
    if text[scan.pos : scan.pos + 1] != "{":
        return
    end = _mate(text, scan.pos)
    content = text[scan.pos + 1 : end - 1]
    if re.search(r"[\\$=\d+/\[\]]", content):
        _transparent(scan)
        return
    words = " ".join(re.findall(r"[\w'-]+", content))
    start, scan.pos = scan.pos + 1, end
    if not words:
        scan.blank = True
    elif re.sub(r"[\s_-]", "", words).lower() in known.FUNCTIONS:
        scan.add("FUNC", known.FUNCTIONS[re.sub(r"[\s_-]", "", words).lower()], start, end)
    elif words == "T" and scan.last is not None and scan.last.kind == "CARET":
        scan.add("NAME", words, start, end)
    else:
        scan.add("NAME", words.lower() if len(words) > 2 else words, start, end)


def _environment(scan: _Scan, name: str, start: int) -> None:
    m = re.compile(r"\s*\{([a-zA-Z]+\*?)\}").match(scan.text, scan.pos)
    if m is None:
        raise GrammarError(f"`\\{name}` names no environment")
    scan.pos = m.end()
    if m[1] in known.ROWS:
        scan.blank = True
        return
    if m[1] not in known.MATRICES:
        raise GrammarError(f"the environment `{m[1]}` is not read; matrices, aligned rows and equations are")
    if name == "begin" and m[1] == "array":
        while scan.text[scan.pos : scan.pos + 1] in (" ", "\n"):
            scan.pos += 1
        if scan.text[scan.pos : scan.pos + 1] == "{":
            scan.pos = _mate(scan.text, scan.pos)
    _put(scan, "MATBEGIN" if name == "begin" else "MATEND", m[1], start)
