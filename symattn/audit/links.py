"""One chain of equalities, checked link by link from left to right.

A side that is a number or an array of numbers is judged element by element. A side that is a formula of printed numbers, built
like the side before it, is judged number by number; another one has to have the same value, or one that its rounded numbers
allow. Names and formulas without a value are defined by the sides that have one.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from symattn.audit.alignment import Pair, aligned
from symattn.audit.arrays import Value, size
from symattn.audit.comparing import allowed, equal, unequal_shapes
from symattn.audit.judging import Judge
from symattn.audit.language_nodes import Apply, Name, Node, is_literal, key, parts_of
from symattn.audit.orders import RELATIONS as ORDERS
from symattn.audit.outcome import Outcome
from symattn.audit.provenance import literal_arrays, origins, texts_of
from symattn.audit.said import Entry, Evaluated, Result, evaluated, known_as, literal_spread, literal_value, literals
from symattn.audit.statements import Side
from symattn.errors import ShapeError, SymattnError


@dataclass
class Run(Judge):
    """One pass over a chain."""

    before: tuple[Node, Evaluated] | None = None
    """The last side that has a value."""
    waiting: tuple[Side, Evaluated] | None = None
    """A literal that begins the chain, to be judged by what follows it."""

    def outcome(self) -> Outcome:
        """Check the chain from left to right."""
        for k, side in enumerate(self.chain.sides):
            relation = self.chain.relations[k - 1] if k else "EQ"
            following = self.chain.relations[k] if k < len(self.chain.relations) else "EQ"
            if relation == "ORDER":
                self.out.open.append((side.start, side.end, "what a set contains is not checked"))
                self.before = self.waiting = None
            elif side.node is None:
                self.out.open.append((side.start, side.end, side.reason))
            elif relation in ORDERS:
                self._order(side, side.node, relation)
            elif relation == "ARROW" and key(side.node) in ("inf", "neg(inf)"):
                self.out.open.append((side.start, side.end, "a limit is not checked"))
                break
            elif is_literal(side.node):
                self._numbers(side, side.node, relation)
            elif k == 0 and following not in ORDERS and isinstance(side.node, Name) and self._is_defined_here(side.node):
                self.out.targets.append(side.node)
            else:
                self._formula(side, side.node, relation)
        self._finish()
        self.out.places = self.places
        return self.out

    def _order(self, side: Side, node: Node, relation: str) -> None:
        """An inequality between the side before and this one."""
        left = self.before
        if self.waiting is not None and self.waiting[0].node is not None:
            left = (self.waiting[0].node, self.waiting[1])
        self._finish()
        self.out.targets = self.out.targets if self.out.entry is not None else []
        self.before = self.waiting = None
        self.places |= origins(self.page, node).places
        try:
            value = evaluated(self.page, node, self.places)
        except SymattnError as error:
            self.out.open.append((side.start, side.end, str(error)))
            return
        if is_literal(node):
            self.waiting = (side, value)
        else:
            self.before = (node, value)
        if left is not None:
            self.ordered(side, left[0], (left[1], value), relation)

    def _is_defined_here(self, node: Name) -> bool:
        """Whether a bare name on the left gets its value here, or had one that is printed only now."""
        entry = self.page.names.get(known_as(node))
        if entry is None:
            return True
        if entry.pending is not None:
            try:
                self.before = (entry.pending, evaluated(self.page, entry.pending, {}))
            except SymattnError:
                self.before = None
            return True
        after = self.chain.sides[1].node if len(self.chain.sides) > 1 else None
        computed = not entry.marks and entry.start is not None and entry.printed is entry.start
        fits = after is not None and is_literal(after) and len(literals(after)) == size(entry.printed)
        return not (computed and fits and known_as(node) not in self.page.written)

    # sides of printed numbers

    def _numbers(self, side: Side, node: Node, relation: str) -> None:
        try:
            printed, spread = literal_value(node), literal_spread(node)
        except ShapeError as error:
            if self.before is None:
                self.out.open.append((side.start, side.end, str(error)))
            else:
                self.literal(side, *self.before, relation)  # with an ellipsis: what is there is judged, and nothing is kept
            return
        if self.before is not None:
            self._result(side, node, relation, printed, spread)
        elif self.waiting is not None:
            first, value = self.waiting
            assert first.node is not None
            self.before, self.waiting = (first.node, value), None
            self._result(side, node, relation, printed, spread)
        elif self.out.targets:
            self._definition(node, printed, spread)
        else:
            self.waiting = (side, self._copied(node, printed))

    def _result(self, side: Side, node: Node, relation: str, printed: Value, spread: Value) -> None:
        """Numbers that are printed for the value of the side before them."""
        assert self.before is not None
        n = len(self.out.marks)
        found = self.literal(side, *self.before, relation)
        if found is None:
            return
        entry = Entry(found.start, printed, spread, tuple(m.finding.name for m in self.out.marks[n:]))
        self._place(node, entry)
        self.before = (node, Evaluated(found.start, printed, spread, (entry,) if entry.is_rounded else ()))
        self.out.results.append(Result(texts_of(node), entry, key(node)))

    def _place(self, node: Node, entry: Entry) -> None:
        for k, x in enumerate(literals(node)):
            if x is not None:
                self.places[x.node.start] = entry.element(k)

    def _copied(self, node: Node, printed: Value) -> Evaluated:
        """A literal that stands for itself, or for what it repeats."""
        found = origins(self.page, node)
        self.places |= found.places
        return evaluated(self.page, node, self.places) if found.places else Evaluated(printed, printed, printed)

    def _definition(self, node: Node, printed: Value, spread: Value) -> None:
        """Numbers that define a name: an input, a copy of a result, or the results right before it collected."""
        unknown = any(isinstance(t, Apply) for t in self.out.targets) and any(x and x.is_decimal for x in literals(node))
        found = origins(self.page, node)
        entry = self._collected(node)
        if entry is None and unknown:
            entry = Entry(None, printed, spread)  # the value of something that is not known here, rounded
        elif entry is None and found.places:
            self.places |= found.places
            self.slips(found.slips)
            value = evaluated(self.page, node, self.places)
            entry = Entry(value.start, value.printed, value.spread)
        elif entry is None:
            entry = Entry(printed, printed, printed)
            self.out.literal = node
        self.before = (node, Evaluated(entry.start, entry.printed, entry.spread, (entry,) if entry.is_rounded else ()))
        self.out.entry = entry
        if entry.marks or entry.start is None:
            self.out.results.append(Result(texts_of(node), entry, key(node)))

    def _collected(self, node: Node) -> Entry | None:
        """A vector of the single results right before it, each judged by the value of its own."""
        found = [x for x in literals(node) if x is not None]
        scalars = self.page.scalars[-len(found) :]
        if len(found) < 2 or len(scalars) != len(found) or key(node).count("[") != 1:
            return None
        if sum(x.text == r.texts[0] for x, r in zip(found, scalars, strict=True)) < max(2, len(found) - 1):
            return None
        entries = [r.entry for r in scalars]
        values = [Evaluated(e.start, e.printed, e.spread, (e,) if e.is_rounded else ()) for e in entries]
        marks = tuple(self.number(x, v, "the result above") for x, v in zip(found, values, strict=True))
        start = None if any(e.start is None for e in entries) else tuple(e.start for e in entries)
        return Entry(start, tuple(e.printed for e in entries), tuple(e.spread for e in entries), marks)

    # sides that are formulas

    def _formula(self, side: Side, node: Node, relation: str) -> None:
        found = origins(self.page, node)
        self.places |= found.places
        self.slips(found.slips)
        try:
            value = evaluated(self.page, node, self.places)
        except SymattnError as error:
            if isinstance(node, (Name, Apply)):
                self.out.targets.append(node)
            self.out.open.append((side.start, side.end, str(error)))
            return
        self._notes(node)
        if self.waiting is not None:
            self.literal(self.waiting[0], node, value, relation)
            self.waiting = None
        elif self.before is not None:
            value = self._compared(side, node, value, relation)
        self.before = (node, value)

    def _notes(self, node: Node) -> None:
        """Numbers below braces, each the value of what stands above it."""
        for part in parts_of(node, "braced"):
            if len(part.args) == 2 and is_literal(part.args[1]):
                above, note = part.args
                self.literal(Side(note.start, note.end, note), above, evaluated(self.page, above, self.places), "EQ")

    def _compared(self, side: Side, node: Node, value: Evaluated, relation: str) -> Evaluated:
        """Lay the side along the one before it; what is printed there stands for what it is printed for."""
        assert self.before is not None
        before, known = self.before
        is_equal = equal(known, value)
        pairs = aligned(before, node, lambda name: self.page.written.get(known_as(name)))
        if pairs is not None and self._pairs(before, pairs, relation, is_equal):
            if is_equal:
                self.out.holds.append((side.start, side.end))
            return evaluated(self.page, node, self.places)
        if is_equal:
            self.out.holds.append((side.start, side.end))
            return value
        if unequal_shapes(known, value):
            n = size(value.printed)
            reason = f"{n} number{'s' if n != 1 else ''}, and what is before it has {size(known.printed)}"
            self.out.open.append((side.start, side.end, reason))
            return value
        if allowed(self.page, node, self.places, known, value):
            self.out.holds.append((side.start, side.end))
            return Evaluated(known.start, value.printed, value.spread, value.used)
        self.whole(side, before, known, value)
        return Evaluated(known.start, value.printed, value.spread, (*value.used, *known.used), value.ambiguous)

    def _pairs(self, before: Node, pairs: list[Pair], relation: str, is_equal: bool) -> bool:
        """Judge the numbers of a side by what they stand for, if that is what they do.

        Where the sides are equal and their numbers are not, a sum is written in another order; where most of them are not, the
        sides only look alike.
        """
        kept, places = list(self.out.marks), dict(self.places)
        entries: list[tuple[Node, Entry]] = []
        for pair in pairs:
            try:
                value = evaluated(self.page, pair.stands_for, places)
                printed, spread = literal_value(pair.printed), literal_spread(pair.printed)
            except SymattnError:
                continue
            n = len(self.out.marks)
            side = Side(pair.printed.start, pair.printed.end, pair.printed)
            fits = size(value.printed) == len(literals(pair.printed))
            found = self.literal(side, pair.stands_for, value, relation) if fits else None
            if found is None:
                self.out.marks = kept
                return False
            if pair.repeats and is_equal:
                self._other_way(pair, n, before)
            names = tuple(m.finding.name for m in self.out.marks[n:])
            entries.append((pair.printed, Entry(found.start, printed, spread, names)))
        new = self.out.marks[len(kept) :]
        wrong = sum(not m.finding.verdict.correct for m in new)
        if not any(p.repeats for p in pairs) and wrong and (is_equal or 2 * wrong > len(new)):
            self.out.marks = kept
            return False
        for node, entry in entries:
            self._place(node, entry)
        return bool(entries)

    def _other_way(self, pair: Pair, n: int, before: Node) -> None:
        """A factor that is not the element which it repeats: the element is wrong where it makes a vector unknown to the page."""
        if all(m.finding.verdict.correct for m in self.out.marks[n:]):
            return
        factor, element = literals(pair.printed)[0], literals(pair.stands_for)[0]
        if factor is None or element is None:
            return
        for array in literal_arrays(before):
            meant = tuple(factor.text if x.node.start == element.node.start else x.text for x in literals(array) if x)
            if array.start <= element.node.start < array.end and meant in self.page.inputs:
                del self.out.marks[n:]
                self.misprint(element, factor.text, f"the next side has {factor.text}, and so has the vector that the page gave")
                return

    def _finish(self) -> None:
        """The value of the names on the left: that of the last side that has one, or the formula that may get one later."""
        if not self.out.targets or self.out.entry is not None:
            return
        if self.before is not None:
            node, value = self.before
            marks = tuple(m.finding.name for m in self.out.marks) if is_literal(node) else ()
            self.out.entry = Entry(value.start, value.printed, value.spread, marks)
        elif len(self.out.targets) > 1 and isinstance(self.out.targets[0], Name):
            self.out.entry = Entry(None, Fraction(0), Fraction(0), pending=self.out.targets[1])
            self.out.targets = self.out.targets[:1]
