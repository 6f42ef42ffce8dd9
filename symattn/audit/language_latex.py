"""Commands of LaTeX in a formula: what they mean, what goes away with them, and which only change how things look."""

from __future__ import annotations

import re
from dataclasses import replace

from symattn.audit import language_symbols as known
from symattn.audit.language_scan import Scan
from symattn.audit.language_signs import put
from symattn.errors import GrammarError

_COMMAND = re.compile(r"\\([a-zA-Z]+\*?|.|\Z)", re.DOTALL)
_SHORT = re.compile(r"([0-9a-zA-Z])\s*([0-9a-zA-Z])")
_ACCENTED = re.compile(
    r"\s*\{\s*(?:\\(?:mathbf|boldsymbol|bm|vec)\s*)?\{?\s*\\?([A-Za-z]|alpha|beta|gamma|mu|sigma)\s*\}?\s*\}|\s*([A-Za-z])"
)
_ENVIRONMENT = re.compile(r"\s*\{([a-zA-Z]+\*?)\}")


def command(scan: Scan) -> None:
    """Read the command at this place."""
    text, start = scan.text, scan.pos
    m = _COMMAND.match(text, start)
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
            scan.pos = scan.mate(scan.pos)
    elif name in known.FONTS:
        _transparent(scan)
    elif name in known.ACCENTS:
        _accent(scan, name, start)
    elif name in known.TEXTS or name in ("rm", "bf", "it", "sf"):
        _text_words(scan)
    elif name == "infty":
        scan.add("NUMBER", "inf", start, scan.pos)
    elif name in known.COMMANDS:
        _known_command(scan, name, start)
    elif name == "%":
        raise GrammarError("a percent sign follows no number")
    elif name == "max" and scan.last is not None and scan.last.text == "arg":
        scan.out[-1] = replace(scan.last, kind="FUNC", text="argmax", end=scan.pos + scan.offset)
    elif name.lower() in known.FUNCTIONS:
        scan.add("FUNC", known.FUNCTIONS[name.lower()], start, scan.pos)
    else:
        scan.add("NAME", name, start, scan.pos)


def _known_command(scan: Scan, name: str, start: int) -> None:
    kind, text = known.COMMANDS[name], scan.text
    if kind in ("SQRT", "FRAC"):
        scan.apart(start)
        while text[scan.pos : scan.pos + 1] == " ":
            scan.pos += 1
        if kind == "SQRT" and text[scan.pos : scan.pos + 1] == "[":
            kind = "ROOT"
        scan.add(kind, name, start, scan.pos)
        if kind == "FRAC" and (m := _SHORT.match(text, scan.pos)):
            _short_fraction(scan, m)
        return
    if kind == "BRACED":
        while text[scan.pos : scan.pos + 1] == " ":
            scan.pos += 1
        if text[scan.pos : scan.pos + 1] == "{":
            scan.braced.add(scan.mate(scan.pos))
    put(scan, kind, text[start : scan.pos], start)


def _short_fraction(scan: Scan, m: re.Match[str]) -> None:
    r"""`\frac12`: the two signs that follow are its parts."""
    for k in (1, 2):
        at = m.start(k)
        scan.add("LBRACE", "{", at, at)
        scan.add("NUMBER" if m[k].isdigit() else "NAME", m[k], at, at + 1)
        scan.add("RBRACE", "}", at + 1, at + 1)
    scan.pos = m.end()


def _transparent(scan: Scan) -> None:
    r"""The braces of a font are no group: `\mathbf{W}_Q` is `W_Q`."""
    text = scan.text
    while text[scan.pos : scan.pos + 1] == " ":
        scan.pos += 1
    if text[scan.pos : scan.pos + 1] == "{":
        scan.skip |= {scan.pos, scan.mate(scan.pos) - 1}


def _accent(scan: Scan, name: str, start: int) -> None:
    r"""A letter with an accent is a name of its own: `\hat{x}` is not `x`; over more than a letter it is decoration."""
    m = _ACCENTED.match(scan.text, scan.pos)
    if m is None:
        _transparent(scan)
        return
    letter = next(x for x in m.groups() if x)
    scan.pos = m.end()
    scan.add("NAME", letter + known.ACCENTS[name], start, scan.pos)


def _text_words(scan: Scan) -> None:
    """Words set as text: a function, or one name; what holds formulas of its own is read as they are."""
    text = scan.text
    if text[scan.pos : scan.pos + 1] != "{":
        return
    end = scan.mate(scan.pos)
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


def _environment(scan: Scan, name: str, start: int) -> None:
    m = _ENVIRONMENT.match(scan.text, scan.pos)
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
            scan.pos = scan.mate(scan.pos)
    put(scan, "MATBEGIN" if name == "begin" else "MATEND", m[1], start)
