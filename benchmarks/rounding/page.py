"""The page of the measured tables, written from the records alone."""

from __future__ import annotations

import datetime
import platform
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from importlib.metadata import version
from statistics import median
from typing import Any

from benchmarks.rounding import declared
from benchmarks.rounding.caught import BOUND, BOUND_O, DEFAULT, DEPTH, REPLAY, STAGED, WHOLE
from benchmarks.rounding.rules import RULES
from benchmarks.rounding.work import Record

OWN = (BOUND_O, BOUND, DEPTH, REPLAY, DEFAULT)
PUBLIC = (*RULES, "scalar a priori")
SHORT = {"bfloat16": "bf16", "float16": "fp16", "float32": "fp32"}
SEPARATE = "onehot"
"""The law whose outputs are nearly exact, so that ratios to the actual error say little."""


def written(records: Sequence[Record], setting: Any, command: str, done: int, of: int) -> str:
    """The page as Markdown."""
    part = lambda name: [r for r in records if r["part"] == name]
    sections = [
        HEAD.format(facts=facts(records, setting, command, done, of)),
        "## How far the bound lies above the error\n\n" + tightness(part("tight"), setting),
        "## Correct kernels\n\n" + correct(part("alarms"), part("alarms-backward")),
        "## Planted faults, forward\n\n" + faults(part("caught"), (*OWN, *PUBLIC), BY_FAULT),
        "## Planted faults, backward\n\n" + faults(part("caught-backward"), (STAGED, WHOLE, *RULES), BY_FAULT_BACKWARD),
        LIMITS,
    ]
    return "\n\n".join(s.strip() for s in sections) + "\n"


def facts(records: Sequence[Record], setting: Any, command: str, done: int, of: int) -> str:
    """What was run, where."""
    count = Counter(r["part"] for r in records)
    versions = ", ".join(f"{n} {version(n)}" for n in ("symattn", "numpy", "ml_dtypes"))
    each = f"{setting.tight_seeds} for bounds, {setting.alarm_seeds} for correct kernels, {setting.caught_seeds} for faults"
    rows = [
        ("command", f"`{command}`"),
        ("date", datetime.date.today().isoformat()),
        ("versions", f"{versions}, Python {platform.python_version()}, {platform.system()} {platform.machine()}"),
        ("tasks", f"{done} of {of}" + ("" if done == of else "; the rest was not run, and the tables are from what was")),
        ("runs of correct kernels", f"{count['alarms']} forward, {count['alarms-backward']} backward"),
        ("runs of wrong kernels", f"{wrong(records, 'caught')} forward, {wrong(records, 'caught-backward')} backward"),
        ("seeds", f"{each}, of each law, size and mask; NumPy's default generator"),
    ]
    return table(("", ""), rows)


def wrong(records: Iterable[Record], part: str) -> int:
    """Runs of wrong kernels that differ from the correct one."""
    return sum(r["part"] == part and r["fault"] != "correct" and not r["same"] for r in records)


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown; the first column is text, the others are numbers."""
    lines = ["| " + " | ".join(head) + " |", "|---|" + "--:|" * (len(head) - 1) if head[0] or len(head) > 2 else "|---|---|"]
    return "\n".join([*lines, *("| " + " | ".join(r) + " |" for r in rows)])


def number(x: float | None) -> str:
    """Three significant digits; large numbers without decimals."""
    if x is None:
        return "–"
    return f"{x:.0f}" if x >= 100 else f"{x:.3g}" if x < 10 else f"{x:.1f}"


def ratios(records: Iterable[Record], where: Callable[[Record], bool]) -> list[float]:
    """Bound over error where the kernel is not exact, and the bound finite."""
    return [r["ratio"] for r in records if r["ratio"] is not None and r["ratio"] != float("inf") and where(r)]


def tightness(records: Sequence[Record], setting: Any) -> str:
    """The tables of bound over error."""
    sizes, formats = setting.tight_sizes, [f for f in SHORT if any(r["fmt"] == f for r in records)]
    found = [TIGHT.strip()]
    rows = []
    for n in sizes:
        row = [str(n)]
        for f in formats:
            of = lambda law, n=n, f=f: ratios(
                records, lambda r: (r["tensor"], r["bound"], r["keys"], r["fmt"]) == ("O", "any order", n, f) and law(r["law"])
            )
            most, other = of(lambda x: x != SEPARATE), of(lambda x: x == SEPARATE)
            row += [number(middle(most + other)), number(max(most, default=None)), number(max(other, default=None))]
        rows.append(row)
    head = ["keys", *(f"{SHORT[f]} {x}" for f in formats for x in ("median", "worst", "one-hot worst"))]
    found += ["### Output, any order of summation", table(head, rows), BESIDE.strip()]
    columns = [("O", "any order"), ("O", "depth"), ("O", "replay"), ("L", "any order"), ("L", "depth")]
    columns += [(t, b) for b in ("staged", "end to end") for t in ("dQ", "dK", "dV")]
    for f in formats:
        rows = []
        for n in sizes:
            row = [str(n)]
            for t, b in columns:
                same = lambda r, t=t, b=b, n=n, f=f: (r["tensor"], r["bound"], r["keys"], r["fmt"]) == (t, b, n, f)
                row.append(number(middle(ratios(records, same))))
            rows.append(row)
        names = [("LSE" if t == "L" else t) + f", {b}" for t, b in columns]
        found += [f"### Medians in {f}", table(["keys", *names], rows)]
    laws = [law for law in setting.laws if any(r["law"] == law for r in records)]
    rows = [[str(n), *(number(middle(ratios(records, lambda r, n=n, w=w: same_law(r, n, w)))) for w in laws)] for n in sizes]
    return "\n\n".join([*found, "### Output in bfloat16 by law, medians", table(["keys", *laws], rows), shares(records)])


def same_law(r: Record, n: int, law: str) -> bool:
    return (r["tensor"], r["bound"], r["keys"], r["fmt"], r["law"]) == ("O", "any order", n, "bfloat16", law)


def middle(x: Sequence[float]) -> float | None:
    """The median, None of nothing."""
    return median(x) if x else None


def shares(records: Sequence[Record]) -> str:
    """How much of its bound an element used at most, and that none is outside."""
    total, outside = sum(r["total"] for r in records), sum(r["outside"] for r in records)
    most = max((r["share"] for r in records if r["share"] is not None), default=0.0)
    open_ = sum(r["unbounded"] for r in records)
    return (
        f"{total:,} elements were compared; {outside} lie outside, {open_} have no finite bound. "
        f"The greatest error is {most:.3f} of its element's bound."
    )


def correct(forward: Sequence[Record], backward: Sequence[Record]) -> str:
    """The table of correct kernels."""
    rows = []
    for records in (forward, backward):
        for name in dict.fromkeys(r["kernel"] for r in records):
            own = [r for r in records if r["kernel"] == name]
            replays = [r for r in own if r["missed"] is not None]
            rows.append(
                [
                    name,
                    str(len(own)),
                    str(sum(r["outside"] > 0 for r in own)),
                    f"{sum(r['missed'] > 0 for r in replays)} of {len(replays)}" if replays else "–",
                    " / ".join(f"{max(r['shares'][k] for r in own):.2f}" for k in range(len(own[0]["shares"]))),
                    f"{sum(r['unbounded'] for r in own) / max(sum(r['total'] for r in own), 1):.1%}",
                ]
            )
    head = ["kernel", "runs", "outside the bound", "outside the replay", "greatest share of a bound", "unbounded"]
    rejected = sum(r["outside"] > 0 or bool(r["missed"]) for r in (*forward, *backward))
    total = len(forward) + len(backward)
    said = f"**{rejected} of {total:,} runs are rejected.**\n\n" + CORRECT.strip()
    return "\n\n".join([said.strip(), table(head, rows), "Public rules on the same outputs:", public(forward)])


def public(forward: Sequence[Record]) -> str:
    """How often public rules reject correct kernels."""
    formats = [f for f in SHORT if any(r["fmt"] == f for r in forward)]
    kinds = {f: [r for r in forward if r["fmt"] == f and r["kernel"] != declared.EIGHT.name] for f in formats}
    rows = [
        [rule, *(f"{sum(rule in r['rejected'] for r in kinds[f]) / max(len(kinds[f]), 1):.1%}" for f in formats)]
        for rule in PUBLIC
    ]
    return table(["correct runs rejected", *(SHORT[f] for f in formats)], rows)


def faults(records: Sequence[Record], judged: Sequence[str], intro: str) -> str:
    """What is caught, in all and by kind."""
    formats = [f for f in SHORT if any(r["fmt"] == f for r in records)]
    rows = []
    for rule in judged:
        row = [f"**{rule}**" if rule in (*OWN, STAGED, WHOLE) else rule]
        for f in formats:
            own = [r for r in records if r["fmt"] == f]
            right, bad = [r for r in own if r["fault"] == "correct"], different(own)
            kinds = {r["fault"] for r in bad}
            rate = {k: share_of(rule, [r for r in bad if r["fault"] == k]) for k in kinds}
            never = sum(x <= share_of(rule, right) for x in rate.values())
            by_kind = sum(rate.values()) / max(len(rate), 1)
            row += [percent(share_of(rule, right)), percent(share_of(rule, bad)), percent(by_kind), f"{never} of {len(kinds)}"]
        rows.append(row)
    parts = ("correct rejected", "caught", "mean over kinds", "kinds never")
    head = ["rule", *(f"{SHORT[f]} {x}" for f in formats for x in parts)]
    found = [intro.strip(), table(head, rows)]
    for f in formats:
        found += [f"### By kind, {f}: share of runs rejected", by_kind_table([r for r in records if r["fmt"] == f], judged)]
    return "\n\n".join(found)


def different(records: Iterable[Record]) -> list[Record]:
    """Wrong kernels whose outputs are not those of the correct one bit for bit."""
    return [r for r in records if r["fault"] != "correct" and not r["same"]]


def share_of(rule: str, records: Sequence[Record]) -> float:
    """Of runs that a rule rejects."""
    return sum(rule in r["rejected"] for r in records) / len(records) if records else 0.0


def percent(x: float) -> str:
    return f"{100 * x:.0f} %" if x in (0, 1) or x > 0.1 else f"{100 * x:.1f} %"


def by_kind_table(records: Sequence[Record], judged: Sequence[str]) -> str:
    """A row for each fault; runs that changed nothing are counted apart."""
    rows = []
    for name in dict.fromkeys(r["fault"] for r in records):
        own = [r for r in records if r["fault"] == name]
        runs = [r for r in own if not r["same"]]
        shown = [f"{100 * share_of(rule, runs):.0f}" if runs else "–" for rule in judged]
        rows.append([name, str(len(runs)), str(len(own) - len(runs)), *shown])
    return table(["kernel", "runs", "identical", *judged], rows)


HEAD = """
# The derived tolerance, measured

Generated by `python -m benchmarks.rounding`; do not edit. Kernels are simulated in NumPy with every rounding explicit and share
no code with symattn. A run is 4 query heads on 2 key heads, 32 rows, d = 64 or 128 columns. Verdicts come from
`symattn.readings.slopes.bounds` and `symattn.verify.replay`, the true value from float64 with its own error counted: an element
is outside only if it is so wherever the true value lies within that error.

{facts}

Inputs are of seven laws: `normal`; `large` (logits of 12); `cancelV` (pairs of keys of nearly the same weight, values +64 and
-64); `onehot` (one key far ahead); `uniform` (logits of 0.02); `meanV` (values around 2); `hugelogit` (logits of 1600 with a
spread of 40).
"""

TIGHT = """
Greatest bound over greatest actual error of a tensor, for a correct kernel with tiles of 64 keys that declares its arithmetic;
the median and the worst over laws, d = 64 and 128, and seeds. One-hot rows are nearly exact, so the worst of their ratios is
apart; the median counts them. The same happens under `hugelogit` where one key is far ahead of all others. A worst-case bound
grows like n, errors like the square root of n: hence the growth.
"""

BESIDE = """
Beside it: the depth of sums declared; what a replay of the cast of P allows (farthest from the true value, output rounding
included); the LSE, which is float32 in all formats; gradients from the kernel's own O and LSE (staged), and end to end, up to
1024 keys.
"""

CORRECT = """
Each kernel is judged by what it declares; those that differ in what a declaration leaves open share one. Masks: none, a window of
48, causal with rows that see no key, a softcap. Unbounded elements are those of which nothing is promised: the row maximum may be
off by log 2 and more there (large scores stored, or Q and K scaled, in 16 bits), and a verdict on them is *inconclusive*, not
*pass*.
"""

BY_FAULT = """
28 kinds of faults in the kernel with tiles of 64, on 128 to 2048 keys. Wrong kernels whose outputs equal the correct one's bit
for bit are left out. *Bound*: any order of summation; *with depth*: depth declared too; *with replay*: and the cast of P replayed
(for 16-bit formats); *default preset*: nothing declared but the input format, O and LSE. Public rules see O alone, as in the
suites that they are from. *Kinds never*: rejected in no larger share of runs than the correct kernel is.
"""

BY_FAULT_BACKWARD = """
23 kinds of faults in the backward of the kernel with tiles of 64, 32 queries on 64 to 512 keys. Public rules with a softcap are
not run: their eager baseline has none.
"""

LIMITS = """
## What the tables do not say

A fault below rounding noise cannot be seen in outputs: an exponential that is off by 9e-5, float16 between tiles, dS from rounded
P. In float32, Q scaled and rounded before is another order of roundings, and no fault. A pass says what a run would have shown,
no more. Kernels here are simulated; what real ones deviate in is in [findings.md](findings.md). How bounds follow is in
[guarantees.md](guarantees.md), what can be declared in [arithmetic.md](arithmetic.md).
"""
