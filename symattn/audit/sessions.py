"""Code with what it printed, put into equations: `>>> w` and the array below it say `w = array`.

Comments, prompts, and keywords that only say how things are stored go away; a printed value becomes the right side of what was
asked for. Every change keeps the length of the text, so that a place in it is a place in the article.
"""

from __future__ import annotations

import re

_COMMENT = re.compile(r"(?<=[\]\[,\d)])[ \t]+#(?![#\d])[^\n]*")
_STORED = re.compile(r",\s*(?:grad_fn=<[^<>\n]*>|dtype=[\w.]+|device='[^'\n]*'|requires_grad=\w+)")
_PROMPT = re.compile(r"^[ \t]*(?:>>>|In ?\[\d+\]:)[ \t]?", re.MULTILINE)
_MORE = re.compile(r"[ \t]*(?:\.\.\.:?)(?=\s)[ \t]?")
_OUT = re.compile(r"\s*(?:Out ?\[\d+\]:)?[ \t]*")
_VALUE = re.compile(r"(?:(?:np\.|torch\.)?(?:array|tensor)\()?\s*[-\[(]?\s*[-\[(]*\s*[\d.]|(?:np\.float\d+\()")
_PRINT = re.compile(r"print\((.*)\)\s*\Z", re.DOTALL)
_FENCES = re.compile(
    r"^```(?:python|py|python3|ipython)[^\n]*\n(?P<code>(?:(?!```)[^\n]*\n)*?)(?P<last>(?!```)[^\s#][^\n]*)\n```[ \t]*\n"
    r"\s*(?:(?:\*\*)?(?:Output|Result|Prints?|Gives)(?:\*\*)?:?(?:\*\*)?\s*)?"
    r"```(?:text|output|console|txt|none)?[ \t]*\n(?=\s*[\[\dat-])",
    re.MULTILINE | re.IGNORECASE,
)
_LABEL = re.compile(r"^([ \t]*[-*]?[ \t]*\w+ \d+ \([\"'“]?)(\w+)([\"'”]?\))(?=\s*[:=]\s*\[)", re.MULTILINE)
_EXPRESSION = re.compile(r"(?!import\b|from\b|for\b|if\b|def\b|class\b|with\b|print\b)[^=#\n]+(?:(?:axis|dim)=-?\d[^=#\n]*)?\Z")


def with_sessions(text: str) -> str:
    r"""The text with the values that code printed as right sides of equations.

    >>> with_sessions(">>> 1 + 1\n2\n"), with_sessions(">>> print(x)\n[1 2]\n")
    ('    1 + 1=2\n', '          x =[1 2]\n')
    """
    text = _STORED.sub(_blank, _COMMENT.sub(_blank, text))
    text = _LABEL.sub(lambda m: " " * len(m[1]) + m[2] + " " * len(m[3]), text)
    text = _prompts(text)
    return _FENCES.sub(_joined, text)


def _blank(m: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", m[0])


def _prompts(text: str) -> str:
    """The text without prompts."""
    out, at = [], 0
    for m in _PROMPT.finditer(text):
        if m.start() < at:
            continue
        stop = _line_end(text, m.end())
        while text[stop : stop + 1] == "\n" and (more := _MORE.match(text, stop + 1)) and more.end() <= _line_end(text, stop + 1):
            text = text[: stop + 1] + " " * (more.end() - stop - 1) + text[more.end() :]
            stop = _line_end(text, stop + 1)
        out += [text[at : m.start()], " " * (m.end() - m.start())]
        out.append(_asked(text, m.end(), stop))
        at = m.end() + len(out[-1])
    return "".join([*out, text[at:]])


def _asked(text: str, start: int, stop: int) -> str:
    """A statement, with a sign of equality before what it printed."""
    code = text[start:stop]
    below = _OUT.match(text, stop)
    shown = _shown(code)
    if below is None or shown is None or text[stop : stop + 2] == "\n\n" or not _VALUE.match(text, below.end()):
        return code
    return shown + "=".ljust(below.end() - stop)


def _shown(code: str) -> str | None:
    """The expression whose value code prints, in its place; None where it is none."""
    if m := _PRINT.match(code):
        return " " * m.start(1) + m[1] + " " * (len(code) - m.end(1))
    return code if _EXPRESSION.match(code) else None


def _joined(m: re.Match[str]) -> str:
    """A block of code and the block of its output, where it prints one thing."""
    last = m["last"]
    shown = _shown(last)
    if shown is None or "print(" in m["code"]:
        return m[0]
    low, high = m.start("last") - m.start(), m.end("last") - m.start()
    return m[0][:low] + shown + "=".ljust(len(m[0]) - high)


def _line_end(text: str, start: int) -> int:
    end = text.find("\n", start)
    return len(text) if end < 0 else end
