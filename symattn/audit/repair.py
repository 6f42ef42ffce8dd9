"""Which number of a chain is the misprint: the one that, with one digit changed, makes the whole chain right.

A slip in a factor makes every later side look wrong, and a slip on the left makes a right result look wrong. The chain is read
again with one digit of one number changed; if there is one such change after which everything holds, the finding is put on
that number.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

from symattn.audit.arrays import flat, size
from symattn.audit.article import Article
from symattn.audit.comparing import near
from symattn.audit.findings import Finding
from symattn.audit.language_nodes import Node, is_literal
from symattn.audit.links import Run
from symattn.audit.outcome import Mark, Outcome, said_of, with_number
from symattn.audit.printed import Printed, verdict
from symattn.audit.provenance import literal_arrays, one_digit, origins, signed, texts_of
from symattn.audit.said import Evaluated, Literal, Page, evaluated
from symattn.audit.statements import Chain
from symattn.audit.trees import bounds
from symattn.errors import SymattnError

MOST_NUMBERS = 80
"""Numbers of a chain up to which a misprint is looked for."""
BROKEN = ("a division", "a square root", "a logarithm")
"""How it is said that a formula has no value though its names have one."""


def repaired(article: Article, page: Page, chain: Chain, outcome: Outcome, digits: int) -> Outcome:
    """The outcome of a chain, its errors put on the one misprint that explains them all, if there is one.

    Parameters
    ----------
    article, page, chain
        As for the first pass.
    outcome
        Of the first pass.
    digits
        Significant digits of exact values.
    """
    own = [m for m in outcome.marks if not m.finding.verdict.correct and not _from_elsewhere(m)]
    broken = any(reason.startswith(BROKEN) for _, _, reason in outcome.open)
    if not broken and (not own or not any(m.finding.verdict.wrong for m in outcome.marks)):
        return outcome
    error = own[0].finding.verdict.error if own else None
    if len(own) == 1 and error is not None and error < 1:
        return outcome  # a rounding
    numbers = [x for s in chain.sides if s.node is not None for x in signed(s.node)]
    if len(numbers) > MOST_NUMBERS or page.changes <= 0:
        return outcome
    result = len(own) == 1 and _one_digit_away(own[0], numbers) and _explains(article, page, chain, own[0], numbers, digits)
    if result and not _strangers(page, chain):
        return _settled(article, page, chain, own[0], numbers, digits) or outcome
    inner = [x for s in chain.sides if s.node is not None and not is_literal(s.node) for x in signed(s.node)]
    found = list(_single_changes(article, page, chain, inner, digits))
    if broken:
        found = [f for f in found if not any(reason.startswith(BROKEN) for _, _, reason in f[2].open)]
    known = [_known_vectors(page, with_number(chain, x.node.start, text)) for x, text, _ in found]
    if result and max(known, default=0) <= _known_vectors(page, chain):
        return _settled(article, page, chain, own[0], numbers, digits) or outcome
    found = [f for f, n in zip(found, known, strict=True) if n == max(known)]  # a vector becomes one that the page gave
    return _moved(article, chain, *found[0], digits) if len(found) == 1 else outcome


def _strangers(page: Page, chain: Chain) -> bool:
    """Whether a formula of a chain writes out vectors that the page gave, and one that it did not."""
    sides = [s.node for s in chain.sides if s.node is not None and not is_literal(s.node)]
    known = [texts_of(a) in page.inputs for node in sides for a in literal_arrays(node)]
    return any(known) and not all(known)


def _known_vectors(page: Page, chain: Chain) -> int:
    """How many vectors of a chain are ones that the page gave."""
    found = [a for s in chain.sides if s.node is not None for a in literal_arrays(s.node)]
    results = [r.texts for r in page.results]
    scalars = [r.texts[0] for r in page.scalars]
    return sum(t in page.inputs or t in results or _in_a_row(t, scalars) for t in map(texts_of, found))


def _in_a_row(texts: tuple[str, ...], scalars: list[str]) -> bool:
    """Whether single results right after each other are these."""
    n = len(texts)
    return any(tuple(scalars[k : k + n]) == texts for k in range(len(scalars) - n + 1))


def _from_elsewhere(mark: Mark) -> bool:
    """Whether a number is right from what the page prints before it, or is a slip of copying."""
    return mark.finding.carries or bool(mark.finding.note)


def _right_text(x: Literal, mark: Mark) -> str | None:
    """The number with the right digits, as many as were printed."""
    v = mark.finding.verdict
    p, value = v.printed, v.value
    try:
        decimals = max(p.decimals, 0)
        shown = round(Fraction(value) if isinstance(value, (int, Fraction)) else Fraction(v.exact), decimals)
    except (ValueError, TypeError, ZeroDivisionError):
        return None
    if (shown < 0) != x.negated or "e" in x.node.text.lower():
        return None
    shown = abs(shown)
    whole, rest = divmod(shown.numerator * 10**decimals // shown.denominator, 10**decimals)
    return f"{whole}.{rest:0{decimals}d}" if decimals else str(whole)


def _of(mark: Mark, numbers: list[Literal]) -> Literal | None:
    return next((x for x in numbers if x.node.start == mark.start), None)


def _one_digit_away(mark: Mark, numbers: list[Literal]) -> bool:
    x = _of(mark, numbers)
    text = x and _right_text(x, mark)
    return bool(x and text and one_digit(x.node.text, text))


def _explains(article: Article, page: Page, chain: Chain, mark: Mark, numbers: list[Literal], digits: int) -> bool:
    x = _of(mark, numbers)
    text = x and _right_text(x, mark)
    return bool(x and text and _right(article, page, with_number(chain, x.node.start, text), digits))


def _right(article: Article, page: Page, chain: Chain, digits: int) -> Outcome | None:
    """The outcome of a changed chain if everything in it holds."""
    try:
        outcome = Run(article, page, chain, digits).outcome()
    except SymattnError:
        return None
    return outcome if all(m.finding.verdict.correct for m in outcome.marks) else None


def _settled(article: Article, page: Page, chain: Chain, mark: Mark, numbers: list[Literal], digits: int) -> Outcome | None:
    """The outcome with the right number in place of the misprint, and the finding about it."""
    x = _of(mark, numbers)
    text = x and _right_text(x, mark)
    right = _right(article, page, with_number(chain, x.node.start, text), digits) if x and text else None
    if right is None:
        return None
    marks = [m for m in right.marks if m.start != mark.start]
    return replace(right, marks=[*marks, mark])


def _single_changes(
    article: Article, page: Page, chain: Chain, numbers: list[Literal], digits: int
) -> Iterator[tuple[Literal, str, Outcome]]:
    """The changes of one digit after which the whole chain is right."""
    known = [None if s.node is None else _evaluated(page, s.node) for s in chain.sides]
    copies = {n for s in chain.sides if s.node is not None for n in origins(page, s.node).copies}
    for x in numbers:
        if x.node.start in copies:
            continue
        for text in changes(x.node.text):
            page.changes -= 1
            if page.changes <= 0:
                return
            changed = with_number(chain, x.node.start, text)
            if _plausible(page, changed, x.node.start, known):
                right = _right(article, page, changed, digits)
                if right is not None:
                    yield x, text, right


def changes(text: str) -> Iterator[str]:
    """The numbers that differ in one digit."""
    for k, c in enumerate(text):
        if c.isdigit():
            for d in "0123456789":
                if d != c and not (k == 0 and d == "0" and len(text) > 1 and text[1].isdigit()):
                    yield text[:k] + d + text[k + 1 :]


def _evaluated(page: Page, node: Node) -> Evaluated | None:
    """The value of a side by itself; None for one of printed numbers, and where there is none."""
    if is_literal(node):
        return None
    try:
        return evaluated(page, node, origins(page, node).places)
    except SymattnError:
        return None


def _plausible(page: Page, chain: Chain, place: int, known: list[Evaluated | None]) -> bool:
    """Whether the sides of a chain, changed at a place, are near each other: cheap, before the verdicts are asked."""
    before: Evaluated | None = None
    for side, old in zip(chain.sides, known, strict=True):
        node = side.node
        if node is None:
            continue
        if is_literal(node):
            if before is not None and not near(node, before):
                return False
            continue
        value = _evaluated(page, node) if side.start <= place < side.end else old
        if value is None:
            if old is not None:
                return False
            continue
        if before is not None and not _same(before, value):
            return False
        before = value
    return True


def _same(a: Evaluated, b: Evaluated) -> bool:
    """Whether two sides have the same value, as far as 64 bits and roundings of a part in a hundred show."""
    x, y = (v.start if v.start is not None else v.printed for v in (a, b))
    if size(x) != size(y):
        return True
    for p, q in zip(flat(x), flat(y), strict=True):
        if isinstance(p, Fraction) and isinstance(q, Fraction) and p.denominator == q.denominator == 1:
            if p != q:
                return False
            continue
        ends, others = bounds(p, 64), bounds(q, 64)
        if ends is not None and others is not None:
            gap = max(ends[0] - others[1], others[0] - ends[1])
            if gap > max(abs(ends[0]), abs(others[0])) / 50:
                return False
    return True


def _moved(article: Article, chain: Chain, x: Literal, text: str, right: Outcome, digits: int) -> Outcome:
    """The outcome of the repaired chain, with a finding on the number that was changed."""
    sign = "-" if x.negated else ""
    p = x.printed()
    v = verdict(p, Printed(sign + text).value, digits=digits)
    line = article.line(x.node.start)
    name = f"{line}:{article.column(x.node.start)}"
    label = said_of(article, chain.sides[0])
    finding = Finding(name, label, sign + text, v, place=str(line), note=f"with {sign}{text} here the whole equation holds")
    mark = Mark(x.node.start, x.node.end, finding)
    return replace(right, marks=[*(m for m in right.marks if m.start != x.node.start), mark])
