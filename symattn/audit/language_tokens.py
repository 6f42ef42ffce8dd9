"""Text of a formula to tokens: LaTeX, Unicode and plain text become one small vocabulary that the grammar reads.

What the grammar could not tell apart is settled here: which words are functions, which letters belong together as a name
(``W_Q``, ``XWq`` is ``X Wq``), that ``K^T`` is a transpose and ``1 x 2`` a product, that blanks part the elements of ``[1 0 3]``,
and what of LaTeX only says how things look. Every token knows its place in the text.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import replace

from symattn.audit import language_symbols as known
from symattn.audit.language_latex import command
from symattn.audit.language_scan import ENDS, Piece, Scan
from symattn.audit.language_signs import put, unicode_script
from symattn.errors import GrammarError

_NUMBER = re.compile(r"(?:\d{1,3}(?:\{,\}\d{3})+|\d+)(?:\.\d+)?(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?", re.ASCII)
_THOUSANDS = re.compile(r"\d{1,3}(?:,\d{3})+(?![\d,])(?:\.\d+)?", re.ASCII)
_AFTER = re.compile(r"\.([a-z_]+)\(|\[\s*(\d{1,3}(?:\s*,\s*\d{1,3})?)\s*\]", re.ASCII)
"""What stands right after an operand of a program: a method, or an index."""
_NEXT = re.compile(r"\w+(?:_\w+)?\s*=(?!=)")
_SPACED = re.compile(r"\d{1,3}(?:(?:\\[,;:]|[~ \u00a0\u2009\u202f])\d{3})+(?![\d.])(?!\s+\d)", re.ASCII)
"""A number with a blank before every three digits, where no bracket makes a list of it."""
_ELLIPSIS = re.compile(r"…|\.\.\.|\\l?dots\b")
_PERCENT = re.compile(r"(?:\s|\\,|~){0,4}\\?%")
_LETTERS = re.compile(r"[^\W\d_]+")
_SPLIT = re.compile(r"(?:[A-Z][a-z]?(?![a-z]))+\Z")
_PREFIX = re.compile(r"(?:np|numpy|torch|F|nn|tf|jnp|sp|math)\.(?=[a-zA-Z])|(?:linalg|functional)\.(?=[a-zA-Z])")
_LOGARITHM = re.compile(r"log(?:2|10|_softmax|sumexp)\b")
_DIGITS = re.compile(r"\d+(?![\d.]*[a-zA-Z\d])", re.ASCII)
_RAISED = re.compile(r"\s*(?:\^\s*\{?\s*(?:\\top|\\intercal|T|⊤|\\mathsf|\\mathrm)|ᵀ|⊤)")
"""A transpose: of two small letters before it, `pp^T`, the second is transposed."""
_FACTOR = re.compile(r"\s*[-−(\[\d.\\]")
_POINT = re.compile(r"\.(?:[\s\],;&)]|\Z)")


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
    scan = Scan(text, offset)
    while scan.pos < len(text):
        _step(scan)
    if scan.open:
        raise GrammarError(f"a bracket `{scan.open[-1].lower()}` is opened and not closed")
    return scan.out


def _step(scan: Scan) -> None:
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
        command(scan)
    elif m := (_unlisted(scan) and (_THOUSANDS.match(text, i) or _SPACED.match(text, i))) or _NUMBER.match(text, i):
        _number(scan, m)
    elif (c.isalpha() and c not in known.SIGNS) or c in known.SUBSCRIPTS or c in known.SUPERSCRIPTS:
        _letters(scan)
    elif c == "∞":
        scan.pos = i + 1
        scan.add("NUMBER", "inf", i, i + 1)
    elif c in "'′`\"’‘":
        _prime(scan)
    elif unicodedata.category(c) == "So" and c not in known.SIGNS:  # a tick, a pictogram
        scan.blank, scan.pos = True, i + 1
    else:
        _sign(scan)


def _sign(scan: Scan) -> None:
    text, i = scan.text, scan.pos
    if scan.last is not None and scan.last.kind in ENDS and not scan.blank and (m := _AFTER.match(text, i)):
        if m[1] and (m[1] in known.KEEPING or m[1] in known.FUNCTIONS):
            scan.pos = m.end()
            scan.begin("FUNCP")
            scan.add("METHOD", known.FUNCTIONS.get(m[1], m[1]), i, scan.pos)
            return
        if m[2] and scan.last.kind in ("NAME", "SUBSCRIPT"):
            scan.pos = m.end()
            index = ",".join(str(int(n) + 1) for n in re.findall(r"\d+", m[2]))  # programs count from 0
            scan.add("SUBSCRIPT", index, i, scan.pos)
            return
    for size in (3, 2, 1):
        found = text[i : i + size]
        kind = "ELLIPSIS" if found == "..." else known.DIGRAPHS.get(found) or known.SIGNS.get(found)
        if kind and len(found) == size:
            if found == ".T" and (text[i + 2 : i + 3].isalnum() or scan.last is None or scan.last.kind not in ENDS):
                continue
            scan.pos = i + size
            put(scan, kind, found, i)
            return
    if text[i] == "." and not text[i + 1 : i + 2].isalnum():
        scan.pos = i + 1  # the end of a sentence, or `\left.`
        return
    raise GrammarError(f"`{text[i]}` means nothing in a formula here")


def _unlisted(scan: Scan) -> bool:
    """Whether no bracket is open in which a comma or a blank parts two numbers."""
    return not scan.open or scan.open[-1] == "LBRACE"


def _number(scan: Scan, m: re.Match[str]) -> None:
    text, start, end = scan.text, m.start(), m.end()
    last = scan.last
    before = scan.out[-2] if len(scan.out) > 1 else None
    inside = bool(scan.open) and scan.open[-1] == "LSQ"
    if last is not None and last.kind in ("MINUS", "PLUS") and before is not None and inside and last.loose and not scan.blank:
        if before.kind in ("NUMBER", "ELLIPSIS") and not any(p.kind == "COMMA" and p.start < p.end for p in scan.inside()):
            scan.out.pop()
            scan.add("COMMA", ",", last.start - scan.offset, last.start - scan.offset)
            scan.out.append(last)
    elif last is not None and last.kind in ("NUMBER", "ELLIPSIS", "RSQ"):
        scan.apart(start)
    printed = re.sub(r"\{,\}|\\.|[,~\s]", "", text[start:end])
    if text[end : end + 1] == "." and "." not in printed and _POINT.match(text, end) and inside:
        printed, end = printed + ".", end + 1
    detail = ""
    if "." in printed and (dots := _ELLIPSIS.match(text, end)):
        detail, end = "cut", dots.end()
    elif percent := _PERCENT.match(text, end):
        detail, end = "percent", percent.end()
    scan.pos = end
    scan.add("NUMBER", printed, start, end, detail)


def _letters(scan: Scan) -> None:
    text, start = scan.text, scan.pos
    if m := _PREFIX.match(text, start):
        scan.pos = m.end()
        return
    c = text[start]
    if c in known.SUBSCRIPTS or c in known.SUPERSCRIPTS:
        unicode_script(scan)
        return
    after = scan.last is not None and scan.last.kind == "RSQ" and not scan.open and text[start - 2 : start] == "  "
    if after and _NEXT.match(text, start):
        scan.add("QUAD", "", start, start)  # another equation in the same line
    m = _LETTERS.match(text, start)
    run = m[0] if m else c
    run = next(
        (run[:k] for k, x in enumerate(run) if k and (x in known.SIGNS or x in known.SUBSCRIPTS or x in known.SUPERSCRIPTS)), run
    )
    if deep := _LOGARITHM.match(text, start):
        run = deep[0]
    scan.pos = start + len(run)
    raised = len(run) == 2 and run.islower() and _RAISED.match(text, scan.pos)
    for part, place in [(run[0], start), (run[1], start + 1)] if raised else _split(run, start):
        _name(scan, part, place)
    if unicodedata.category(text[scan.pos : scan.pos + 1] or " ") == "Mn" and scan.out and scan.out[-1].kind == "NAME":
        scan.pos += 1  # an accent makes another name
        scan.out[-1] = replace(scan.out[-1], text=scan.out[-1].text + text[scan.pos - 1], end=scan.pos + scan.offset)
    last, digits = scan.last, _DIGITS.match(text, scan.pos)
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


def _name(scan: Scan, name: str, start: int) -> None:
    end = start + len(name)
    last = scan.last
    name = known.GREEK.get(name, name)
    between = name in ("x", "X") and last is not None and last.kind in ENDS and _FACTOR.match(scan.text, end)
    short = last is not None and (
        last.kind != "NAME" or (len(last.text.split("_")[0]) == 1 and scan.text[end : end + 1].isspace())
    )
    if between and short:
        scan.add("TIMES", name, start, end)
        return
    if name == "T" and last is not None and last.kind == "NAME" and not scan.blank and last.text[0].isupper():
        scan.add("TRANSPOSE", name, start, end)
        return
    if name.lower() in ("inf", "infinity"):
        scan.add("NUMBER", "inf", start, end)
        return
    if name.lower() == "max" and last is not None and last.kind == "NAME" and last.text == "arg":
        scan.out.pop()
        name, start = "argmax", last.start - scan.offset
    if name.lower() in known.FUNCTIONS and len(name) > 1:
        scan.add("FUNC", known.FUNCTIONS[name.lower()], start, end)
        return
    if last is not None and last.kind == "NAME" and scan.blank and _wordy(last.text, name):
        scan.out[-1] = replace(last, text=f"{last.text} {name if len(name) == 1 else name.lower()}", end=end + scan.offset)
        scan.blank = False
        return
    scan.add("NAME", name.lower() if len(name) > 2 and not name.isupper() else name, start, end)


def _wordy(before: str, name: str) -> bool:
    """Whether two names with a blank between them are words of one name: `raw scores`, `the vector q`."""
    if re.search(r"[_^]", before):
        return False
    return max(len(before.rpartition(" ")[2]), len(name)) > 2 or " " in before


def _prime(scan: Scan) -> None:
    c, start = scan.text[scan.pos], scan.pos
    scan.pos += 1
    last = scan.last
    if scan.text[scan.pos : scan.pos + 1].isalpha() and c != "`":
        scan.blank = True  # the apostrophe of `let's`
    elif c in "'′" and last is not None and last.kind == "NAME" and not scan.blank and last.end == start + scan.offset:
        scan.out[-1] = replace(last, text=last.text + "'", end=scan.pos + scan.offset)
