"""The small language of formulas: what LaTeX, Markdown and plain text print, read as trees by one grammar.

:func:`parse` reads one formula without relation signs; :mod:`symattn.audit.statements` cuts text into such formulas. The grammar
(``language.lark``) is LALR(1): reading takes linear time and has one result. Nothing is evaluated here, and no text becomes code.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from importlib import resources
from typing import Any

from lark import Lark, Token, Transformer, UnexpectedInput
from lark.lexer import Lexer

from symattn.audit.language_nodes import Apply, Array, Gap, Name, Node, Number, apply, array
from symattn.audit.language_scan import STARTS, Piece
from symattn.audit.language_symbols import KEEPING
from symattn.audit.language_tokens import tokens
from symattn.errors import GrammarError

_INDEX = re.compile(r"(.*?)_\(?(\d{1,4}(?:,\d{1,4})*)\)?\Z", re.DOTALL)
_BOUNDS = re.compile(r"_\{\s*([a-z])\s*=\s*(\d{1,4})\s*\}\^\{\s*(\d{1,4})\s*\}\Z", re.ASCII)
_NAMES = {
    "NUMBER": "a number", "NAME": "a name", "COMMA": "`,`", "SEMI": "`;`", "ROW": "a line end `\\\\`", "AMP": "`&`", "EQ": "`=`",
    "ELLIPSIS": "an ellipsis", "RPAR": "`)`", "RSQ": "`]`", "RBRACE": "`}`", "$END": "the end", "COLON": "`:`",
    "QUAD": "a wide blank", "ARROW": "an arrow", "MATEND": "the end of a matrix", "STAR": "`*`", "DIV": "`/`",
}  # fmt: skip


def parse(text: str, offset: int = 0) -> Node:
    r"""The tree of a formula.

    Parameters
    ----------
    text
        Numbers, names, vectors ``[1, 0, 3]``, matrices, ``+ - × · * / ^ @ ⊙``, ``\frac``, roots, ``exp``, ``log``, sums,
        ``softmax``, transposes, norms: in LaTeX, Unicode or plain text.
    offset
        Where the text begins in the document; places in the tree count from there.

    Raises
    ------
    GrammarError
        When the text is no formula; the message says where.
    LimitError
        When it is too long or nested too deeply.

    >>> from symattn.audit.language_nodes import key
    >>> key(parse(r"\frac{[10, 5]}{\sqrt{3}}"))
    'divide([10,5],call:sqrt(3))'
    >>> key(parse("softmax(QKᵀ/√dₖ)V"))
    'juxtaposed(call:softmax(divide(juxtaposed(Q,transpose(K)),call:sqrt(d_k))),V)'
    >>> parse("1 + ")
    Traceback (most recent call last):
    ...
    symattn.errors.GrammarError: the formula ends where an operand is needed
    """
    return parse_tokens(tokens(text, offset))


def parse_tokens(pieces: Sequence[Piece]) -> Node:
    """The tree of a formula whose tokens are known; raises as :func:`parse` does."""
    if not pieces:
        raise GrammarError("there is no formula: an empty text")
    try:
        return _parser().parse(_with_bare_functions(pieces))  # type: ignore[return-value]  # the actions make nodes
    except UnexpectedInput as error:
        token = getattr(error, "token", None)
        if token is None or token.type == "$END":
            raise GrammarError("the formula ends where an operand is needed") from None
        shown = _NAMES.get(token.type, f"`{token}`" if str(token) else f"`{token.type.lower()}`")
        raise GrammarError(f"{shown} is not expected here, after `{_before(pieces, token)}`") from None


def _with_bare_functions(pieces: Sequence[Piece]) -> list[Piece]:
    """A function that is applied to nothing is a name: pages define `sum = 3`."""
    following = [p.kind for p in pieces[1:]] + [""]
    return [
        replace(p, kind="NAME") if p.kind == "FUNC" and after not in STARTS else p
        for p, after in zip(pieces, following, strict=True)
    ]


def _before(pieces: Sequence[Piece], token: Token) -> str:
    texts = [p.text for p in pieces if p.end <= (token.start_pos or 0)]
    return " ".join(texts[-4:]) or "the beginning"


class _Pieces(Lexer):
    """Hands the tokens that are already there to the parser."""

    def __init__(self, conf: Any) -> None:
        del conf

    def lex(self, data: Any, parser_state: Any = None) -> Iterator[Token]:
        for p in data:
            token = Token(p.kind, p.text, start_pos=p.start, end_pos=p.end)
            token.value = p  # what follows a number, a percent sign or an ellipsis, is said there
            yield token


class _Build(Transformer[Token, Node]):
    """Actions of the grammar: each makes one node, while the text is read."""

    def number(self, t: list[Any]) -> Node:
        token, detail = t[0], t[0].value.detail
        return Number(str(token), token.start_pos, token.end_pos, detail == "percent", detail == "cut")

    def name(self, t: list[Any]) -> Node:
        return _named(str(t[0]), t[0].start_pos, t[0].end_pos)

    def negative_number(self, t: list[Any]) -> Node:
        inner = self.number([t[1]])
        return apply("neg", (inner,), t[0].start_pos, inner.end)

    def star_script(self, t: list[Any]) -> Node:
        return Name("*", t[0].start_pos, t[0].end_pos)

    def add(self, t: list[Any]) -> Node:
        return _sum(t[0], t[-1])

    def subtract(self, t: list[Any]) -> Node:
        return _sum(t[0], apply("neg", (t[2],), t[1].start_pos, t[2].end))

    def gap(self, t: list[Any]) -> Node:
        return _sum(t[0], Gap(t[-1].start_pos, t[-1].end_pos))

    def negative(self, t: list[Any]) -> Node:
        return apply("neg", (t[1],), t[0].start_pos, t[1].end)

    def positive(self, t: list[Any]) -> Node:
        return t[1]

    def group(self, t: list[Any]) -> Node:
        inner = t[1]
        if isinstance(inner, Apply) and inner.op == "sum":  # brackets keep a sum a term of its own
            return apply("group", (inner,), t[0].start_pos, t[2].end_pos)
        return inner

    def bracket(self, t: list[Any]) -> Node:
        items = t[1]
        return self.group([t[0], items[0], t[2]]) if len(items) == 1 and not isinstance(items[0], Gap) else self.array(t)

    def array(self, t: list[Any]) -> Node:
        rows: tuple[Node, ...] = tuple(t[1])
        start, end = t[0].start_pos, t[2].end_pos
        if any(isinstance(r, Apply) and r.op == "stacked" for r in rows):
            return array(tuple(array(r, r[0].start, r[-1].end) for r in _stacked_rows(rows)), start, end)
        return array(rows, start, end)

    def stacked(self, t: list[Any]) -> Node:
        return apply("stacked", (t[0], t[2]), t[0].start, t[2].end)

    def angle(self, t: list[Any]) -> Node:
        items = t[1]
        start, end = t[0].start_pos, t[2].end_pos
        if len(items) == 2 and not all(isinstance(x, Number) for x in items):
            return apply("dot", tuple(items), start, end)
        return array(tuple(items), start, end)

    def items(self, t: list[Any]) -> list[Node]:
        return [x for x in t if not isinstance(x, Token)]

    def ellipsis(self, t: list[Any]) -> Node:
        return Gap(t[0].start_pos, t[0].end_pos)

    def arguments(self, t: list[Any]) -> list[Any]:
        return [x for x in t if not isinstance(x, Token)]

    def keyword(self, t: list[Any]) -> Any:
        return (str(t[0]), t[2])

    def call(self, t: list[Any]) -> Node:
        if not any(not isinstance(x, tuple) for x in t[1]):
            raise GrammarError(f"`{t[0]}` is called without an argument")
        if t[0] == "array" and isinstance(t[1][0], Array) and not any(not isinstance(x, tuple) for x in t[1][1:]):
            return t[1][0]  # `np.array([1, 2])` is what it holds
        return self._called("call:" + str(t[0]), t)

    def unknown_call(self, t: list[Any]) -> Node:
        return self._called("named:" + str(t[0]), t)

    def _called(self, op: str, t: list[Any]) -> Node:
        args = tuple(x for x in t[1] if not isinstance(x, tuple))
        options = tuple(x for x in t[1] if isinstance(x, tuple))
        return apply(op, args, t[0].start_pos, t[2].end_pos, options)

    def method(self, t: list[Any]) -> Node:
        """`w.sum(dim=-1)`: a function of what stands before the point; a bare whole number is an axis."""
        name, args = str(t[1]), [x for x in t[2] if not isinstance(x, tuple)]
        if name in KEEPING:
            return t[0]
        if name == "transpose":
            return apply("transpose", (t[0],), t[0].start, t[3].end_pos)
        options = tuple(x for x in t[2] if isinstance(x, tuple))
        if name not in ("dot", "matmul"):
            options += tuple(("axis", x) for x in args[:1])
            args = []
        return apply(f"call:{name}", (t[0], *args), t[0].start, t[3].end_pos, options)

    def bare_call(self, t: list[Any]) -> Node:
        return apply("call:" + str(t[0]), (t[1],), t[0].start_pos, t[1].end)

    def root(self, t: list[Any]) -> Node:
        return apply("call:sqrt", (t[1],), t[0].start_pos, t[1].end)

    def nth_root(self, t: list[Any]) -> Node:
        return apply("root", (t[4], t[2]), t[0].start_pos, t[4].end)

    def fraction(self, t: list[Any]) -> Node:
        return apply("divide", (t[1], t[2]), t[0].start_pos, t[2].end)

    def absolute(self, t: list[Any]) -> Node:
        return apply("call:abs", (t[1],), t[0].start_pos, t[2].end_pos)

    def norm(self, t: list[Any]) -> Node:
        return apply("call:norm", (t[1],), t[0].start_pos, t[2].end_pos)

    def transpose(self, t: list[Any]) -> Node:
        return apply("transpose", (t[0],), t[0].start, t[1].end_pos)

    def subscript(self, t: list[Any]) -> Node:
        node, text = t[0], str(t[1])
        if isinstance(node, Apply) and node.op == "call:norm":
            return node if text == "2" else apply(f"call:norm_{text}", node.args, node.start, t[1].end_pos)
        digits = text.strip("()").split(",")
        if all(d.isdigit() and len(d) < 5 for d in digits):
            index = tuple(Number(d, t[1].start_pos, t[1].start_pos) for d in digits)
            return apply("index", (node, *index), node.start, t[1].end_pos)
        return apply(f"named:_{text}", (node,), node.start, t[1].end_pos)

    def power(self, t: list[Any]) -> Node:
        if isinstance(t[0], Apply) and t[0].op == "power" and t[0].end == t[1].start_pos:
            raise GrammarError("a power of a power without brackets may be read in two ways")
        return apply("power", (t[0], t[2]), t[0].start, t[2].end)

    def degrees(self, t: list[Any]) -> Node:
        return apply("degrees", (t[0],), t[0].start, t[1].end_pos)

    def braced(self, t: list[Any]) -> Node:
        return apply("braced", (t[1], *t[3:]), t[0].start_pos, t[-1].end)

    def bigsum(self, t: list[Any]) -> Node:
        m = _BOUNDS.match(t[0].value.detail)
        bounds = m and (("index", Name(m[1], 0, 0)), ("first", Number(m[2], 0, 0)), ("last", Number(m[3], 0, 0)))
        return apply("bigprod" if "prod" in t[0] or t[0] == "∏" else "bigsum", (t[1],), t[0].start_pos, t[1].end, bounds or ())

    def rows(self, t: list[Any]) -> list[list[Node]]:
        return [r for r in t if isinstance(r, list) and r]

    def row(self, t: list[Any]) -> list[Node | None]:
        cells = [c for c in t if not isinstance(c, Token)]
        return [] if all(c is None for c in cells) else cells

    def cell(self, t: list[Any]) -> Node | None:
        if t[0] is None:
            return None
        return Gap(t[0].start_pos or 0, t[0].end_pos or 0) if isinstance(t[0], Token) else t[0]

    def matrix(self, t: list[Any]) -> Node:
        start, end, rows = t[0].start_pos, t[2].end_pos, t[1]
        if not rows or any(c is None for r in rows for c in r):
            raise GrammarError("a matrix has an empty entry")
        if len(rows) == 1:
            return array(tuple(rows[0]), start, end)
        whole = array(tuple(array(tuple(r), r[0].start, r[-1].end) for r in rows), start, end)
        return apply("call:det", (whole,), start, end) if t[0] == "vmatrix" else whole


def _binary(op: str) -> Any:
    def action(self: _Build, t: list[Any]) -> Node:
        del self
        if op == "juxtaposed" and isinstance(t[0], Number) and isinstance(t[1], Number):
            raise GrammarError(f"two numbers side by side, `{t[0].text} {t[1].text}`, are no product")
        number = _with_power_of_ten(t[0], t[-1]) if op in ("times", "dot", "star") else None
        return number or apply(op, (t[0], t[-1]), t[0].start, t[-1].end)

    return action


for _op in ("times", "dot", "star", "hadamard", "matmul", "divide", "juxtaposed"):
    setattr(_Build, _op, _binary(_op))


def _with_power_of_ten(left: Node, right: Node) -> Node | None:
    """`6.03 × 10^{-6}` is one printed number."""
    if isinstance(left, Apply) and left.op == "neg":
        inner = _with_power_of_ten(left.args[0], right)
        return inner and apply("neg", (inner,), left.start, inner.end)
    if not (isinstance(left, Number) and isinstance(right, Apply) and right.op == "power"):
        return None
    base, up = right.args
    sign, size = ("-", up.args[0]) if isinstance(up, Apply) and up.op == "neg" else ("", up)
    if not (isinstance(base, Number) and base.text == "10" and isinstance(size, Number) and size.text.isdigit()):
        return None
    if left.percent or left.cut or len(size.text) > 4 or not ("." in left.text or sign) or "e" in left.text.lower():
        return None
    return Number(f"{left.text}e{sign}{size.text}", left.start, right.end)


def _sum(left: Node, right: Node) -> Node:
    """A sum with one more term: sums are flat, however long."""
    terms = left.args if isinstance(left, Apply) and left.op == "sum" else (left,)
    return apply("sum", (*terms, right), left.start, right.end)


def _stacked_rows(items: tuple[Node, ...]) -> list[tuple[Node, ...]]:
    """The rows of `[1, 2; 3, 4]`, whose items are 1, (2; 3), 4."""
    rows: list[list[Node]] = [[]]
    for item in items:
        chain: list[Node] = []
        while isinstance(item, Apply) and item.op == "stacked":
            chain.insert(0, item.args[1])
            item = item.args[0]
        rows[-1].append(item)
        rows += [[x] for x in chain]
    return [tuple(r) for r in rows]


def _named(text: str, start: int, end: int) -> Name:
    """A name, the whole numbers of its subscript apart: `s_{1,2}` is `s` at (1, 2)."""
    m = _INDEX.match(text)
    if m is None or not m[1]:
        return Name(text, start, end)
    return Name(m[1], start, end, tuple(map(int, m[2].split(","))))


@cache
def _parser() -> Lark:
    grammar = (resources.files("symattn.audit") / "language.lark").read_text(encoding="utf-8")
    return Lark(grammar, parser="lalr", lexer=_Pieces, transformer=_Build(), maybe_placeholders=True)
