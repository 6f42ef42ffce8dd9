"""Weights whose scores an article does not give: their rows have to sum to 1 all the same, as far as their rounding goes."""

from __future__ import annotations

from symattn.audit.arrays import Value, flat
from symattn.audit.findings import Remark
from symattn.audit.language_nodes import Apply, Node
from symattn.audit.language_text import plain_text
from symattn.audit.outcome import Outcome, cut
from symattn.audit.reals import total
from symattn.audit.trees import bounds


def row_sums(outcome: Outcome, line: int) -> list[Remark]:
    """Remarks on rows of a softmax of something unknown that do not sum to 1."""
    node = next((t for t in outcome.targets if isinstance(t, Apply) and t.op == "call:softmax"), None)
    entry = outcome.entry
    if node is None or entry is None or entry.start is not None or not isinstance(entry.spread, tuple):
        return []
    rows: list[Value] = list(entry.spread) if isinstance(entry.spread[0], tuple) else [entry.spread]
    return [_remark(node, line, k, len(rows)) for k, row in enumerate(rows) if not _may_be_one(row)]


def _may_be_one(row: Value) -> bool:
    ends = bounds(total(flat(row)))
    return ends is None or ends[0] <= 1 <= ends[1]


def _remark(node: Node, line: int, k: int, rows: int) -> Remark:
    which = f"row {k + 1} of " if rows > 1 else ""
    text = f"line {line}: {which}{cut(plain_text(node))} does not sum to 1, whatever the scores"
    return Remark("rows of weights sum to 1", text, (cut(plain_text(node)),))
