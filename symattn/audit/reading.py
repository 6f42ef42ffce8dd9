"""An article, audited: its chains from top to bottom, what each printed number is worth, and where it first went wrong."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from symattn.audit.article import Article, Passage, article, passages
from symattn.audit.evaluate import Budget
from symattn.audit.findings import Alternative, Audit, Finding, Remark, Unread
from symattn.audit.language_nodes import Node
from symattn.audit.links import Run
from symattn.audit.outcome import Mark, Outcome, cut, said_of
from symattn.audit.printed import Printed, verdict
from symattn.audit.provenance import signed, texts_of
from symattn.audit.repair import repaired
from symattn.audit.rowsums import row_sums
from symattn.audit.said import Page
from symattn.audit.silent import silent
from symattn.audit.statements import Chain, Unreadable, are_shapes, statements
from symattn.audit.strays import strays
from symattn.audit.table_claims import table_chains
from symattn.audit.tables import tables
from symattn.audit.unstated import unstated
from symattn.errors import SymattnError

if TYPE_CHECKING:
    from symattn.audit.misprints import Change

MOST_FINDINGS = 5000


@dataclass(frozen=True)
class ReadArticle:
    """An audited article: the audit, and where each finding and each link stands."""

    audit: Audit
    article: Article
    marks: tuple[Mark, ...]
    holds: tuple[tuple[int, int], ...]
    formulas: tuple[tuple[int, int], ...] = field(default=())
    page: Page = field(default_factory=Page)
    chains: tuple[Chain, ...] = ()


def audit_article(source: str, title: str = "article", *, digits: int = 40) -> ReadArticle:
    r"""Audit an article.

    Parameters
    ----------
    source
        The text: LaTeX, Markdown with formulas, or plain text.
    title
        What it is called in the report.
    digits
        Significant digits of the exact values.

    Raises
    ------
    LimitError
        When the article is too long.

    >>> found = audit_article(r"$$2 \times 3 = 7$$ and $$10/\sqrt{3} = 5.77$$").audit
    >>> [(f.name, str(f.verdict.printed), f.label) for f in found.findings]
    [('1:16', '7', 'wrong'), ('1:40', '5.77', 'rounded')]
    """
    found = _read(source, title, digits)
    from symattn.audit.misprints import input_misprint  # it reads pages, with one number changed

    cause = input_misprint(found, lambda changed: _read(changed, title, digits))
    return found if cause is None else _explained(found, *cause, digits)


def _read(source: str, title: str, digits: int) -> ReadArticle:
    """A page as it stands."""
    a = article(source)
    state = _State(a, digits, Page(Budget()))
    for passage in passages(a):
        if passage.kind == "table":
            state.table(passage)
            continue
        if passage.kind == "grid":
            state.formulas.append((passage.start, passage.end))
        for statement in statements(a, passage):
            state.take(statement)
    return state.finished(title)


def _explained(found: ReadArticle, change: Change, read: ReadArticle, digits: int) -> ReadArticle:
    """The page as it is with one input changed, and the finding on that input."""
    x = change.literal
    chain = next(c for c in found.chains if c.start <= x.node.start < c.end)
    line = found.article.line(x.node.start)
    right = ("-" if x.negated else "") + change.text
    v = verdict(x.printed(), Printed(right).value, digits=digits)
    name = f"{line}:{found.article.column(x.node.start)}"
    note = f"with {right} here what follows from it is right"
    finding = Finding(name, said_of(found.article, chain.sides[0]), right, v, place=str(line), note=note)
    marks = sorted([*read.marks, Mark(x.node.start, x.node.end, finding)], key=lambda m: m.start)
    audit = replace(read.audit, findings=tuple(m.finding for m in marks))
    return replace(found, audit=audit, marks=tuple(marks), holds=read.holds)


@dataclass
class _State:
    """What has been found so far."""

    article: Article
    digits: int
    page: Page
    marks: list[Mark] = field(default_factory=list)
    holds: list[tuple[int, int]] = field(default_factory=list)
    unread: list[Unread] = field(default_factory=list)
    formulas: list[tuple[int, int]] = field(default_factory=list)
    chains: list[Chain] = field(default_factory=list)
    given: list[Node] = field(default_factory=list)
    alternatives: list[Alternative] = field(default_factory=list)
    remarks: list[Remark] = field(default_factory=list)

    def table(self, passage: Passage) -> None:
        """Check what a table states."""

        def equations(start: int, end: int) -> list[Chain]:
            found = statements(self.article, Passage("text", start, end))
            return [s for s in found if isinstance(s, Chain)]

        self.formulas.append((passage.start, passage.end))
        (table,) = (t for t in tables(self.article.text) if t.start == passage.start)
        for statement in table_chains(table, equations, self.article.line):
            if isinstance(statement, Chain):
                self.take(statement)
            elif isinstance(statement, Remark):
                self.remarks.append(statement)
            else:
                self._open(statement.start, statement.end, statement.reason, "a table")

    def take(self, statement: Chain | Unreadable) -> None:
        """Check one chain and keep what it says."""
        self.formulas.append((statement.start, statement.end))
        if isinstance(statement, Unreadable):
            self._open(statement.start, statement.end, statement.reason)
            return
        if are_shapes(statement):
            self._open(statement.start, statement.end, "shapes of matrices, and no vectors")
            return
        self.chains.append(statement)
        if len(self.marks) > MOST_FINDINGS:
            self._open(statement.start, statement.end, f"after {MOST_FINDINGS} numbers nothing more is checked")
            return
        try:
            outcome = self._checked(statement)
            outcome = repaired(self.article, self.page, statement, outcome, self.digits)
            self.alternatives += unstated(self.article, self.page, statement, outcome)
        except SymattnError as error:
            self._open(statement.start, statement.end, str(error))
            return
        self._keep(outcome, statement)

    def _checked(self, chain: Chain) -> Outcome:
        """A chain as it reads best: a number of two digits is an earlier result only where the chain is right with it alone."""
        outcome = Run(self.article, self.page, chain, self.digits).outcome()
        if all(m.finding.verdict.correct for m in outcome.marks):
            return outcome
        looser = Run(self.article, replace(self.page, fewest_digits=2), chain, self.digits).outcome()
        return looser if all(m.finding.verdict.correct for m in looser.marks) else outcome

    def _keep(self, outcome: Outcome, chain: Chain) -> None:
        if chain.kind == "table":
            self.page.at |= outcome.places
            known = {m.start for m in self.marks}
            outcome.marks = [m for m in outcome.marks if m.start not in known]
        self.marks += outcome.marks
        self.holds += outcome.holds
        shown = {(s.start, s.end): said_of(self.article, s) for s in chain.sides}
        for start, end, reason in outcome.open:
            self._open(start, end, reason, shown.get((start, end), ""))
        self.remarks += row_sums(outcome, self.article.line(chain.start))
        if outcome.entry is not None:
            for target in outcome.targets:
                self.page.define(target, outcome.entry, outcome.literal)
        if outcome.literal is not None:
            self.given.append(outcome.literal)
            self.page.inputs.append(texts_of(outcome.literal))
        self.page.results += outcome.results
        scalars = [r for r in outcome.results if len(r.texts) == 1]
        if scalars:
            self.page.scalars.append(scalars[-1])

    def _open(self, start: int, end: int, reason: str, text: str = "") -> None:
        shown = text or cut(" ".join(self.article.source[start:end].split()))
        self.unread.append(Unread(shown, reason, str(self.article.line(start))))

    def finished(self, title: str) -> ReadArticle:
        """The audit, the errors that are carried from earlier ones told apart."""
        bad = [m.start for m in self.marks if not m.finding.verdict.correct]
        stray = strays(self.article, self.chains, self.given, bad, self.digits)
        marks = sorted([*self.marks, *stray], key=lambda m: m.start)
        by_name = {m.finding.name: m.finding for m in marks}
        out: list[Mark] = []
        for m in marks:
            carried = _carried(m, by_name)
            out.append(replace(m, finding=replace(m.finding, carried=carried, origin=_names(m))) if m.used else m)
            by_name[m.finding.name] = out[-1].finding
        findings = tuple(m.finding for m in out)
        wrong = {f.claim for f in findings if f.verdict.wrong}
        printed = {x.text for c in self.chains for s in c.sides if s.node is not None for x in signed(s.node)}
        left = silent(self.article, self.formulas, printed)
        unread = sorted([*self.unread, *left], key=lambda u: int(u.place))
        others = tuple(replace(a, everything=wrong <= set(a.claims)) for a in self.alternatives)
        audit = Audit(
            title, findings, tuple(unread), tuple(self.remarks), others, title, unchecked=_unchecked(unread), held=len(self.holds)
        )
        return ReadArticle(
            audit, self.article, tuple(out), tuple(self.holds), tuple(self.formulas), self.page, tuple(self.chains)
        )


def _unchecked(unread: Sequence[Unread]) -> int:
    """How many of the places that were not checked hold numbers."""
    return sum(bool(re.search(r"\d", u.name)) or u.name == "a table" for u in unread)


def _names(mark: Mark) -> tuple[str, ...]:
    return tuple(dict.fromkeys(n for e in mark.used for n in e.marks))


def _carried(mark: Mark, known: dict[str, Finding]) -> str:
    """The earlier number that an error comes from: the first wrong one, else the first that is not right, else not exact."""
    f = mark.finding
    if not f.carries:
        return ""
    origin = [known[n] for n in _names(mark) if n in known and n != f.name]
    ranks = (lambda o: o.verdict.wrong, lambda o: not o.verdict.correct, lambda o: bool(o.verdict.error))
    first = next((o for rank in ranks for o in origin if rank(o)), None)
    return "" if first is None else first.carried or first.name
