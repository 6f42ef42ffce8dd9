"""For GitHub Actions: workflow commands, which become annotations, and a summary in Markdown.

Text from outside (names of kernels, errors) is escaped so that it starts no command and no markup. GitHub shows ten annotations
of each kind per step, so that what matters most comes first.
"""

from __future__ import annotations

import re
from pathlib import PurePath

from symattn.verify.report import CaseReport, Report, short
from symattn.verify.writers import words

SIGNS = {"pass": "✅", "known": "☑️", "suspect": "⚠️", "inconclusive": "❔", "fail": "❌", "error": "💥"}
HEAD = ("kernel, case", "tensor", "verdict", "max error", "ulps", "of bound", "failing")


def commands(report: Report, *, strict: bool = False) -> str:
    r"""The workflow commands of a report, a line each: ``::error`` for what fails, ``::warning`` for what proves nothing.

    >>> commands(Report("k", {}, {}, (), "", error="50% off\nnow"))
    '::error title=symattn verify k::50%25 off%0Anow\n'
    """
    lines = []
    place = _place(report.kernel)
    if report.error is not None:
        lines.append(_command("error", f"symattn verify {report.kernel or ''}".strip(), report.error, place))
    whole = level = "error" if words.whole_counted(report, strict=strict) == "fail" else "warning"
    lines += [_command(level, f"symattn: {first}", "\n".join(rest) or first, place) for first, *rest in words.findings(report)]
    for level, verdicts in (("error", ("fail",)), ("warning", ("suspect", "inconclusive"))):
        for case in report.cases:
            if words.case_counted(case, strict=strict) in verdicts:
                title = f"symattn {case.kernel}: {case.case} {case.dtype}"
                lines.append(_command(level, title, _said(case, strict), _place(case.kernel)))
    lines += [_command("warning", "symattn: warning", str(w), place) for w in report.warnings]
    said = words.objection(report, strict=strict)
    lines += [_command(whole, "symattn: exit code", said, place)] if said else []
    line, hidden = words.strength(report, strict=strict)
    lines += [_command("warning", f"symattn: {line}", "\n".join(hidden), place)] if hidden else []
    return "".join(line + "\n" for line in lines)


def _said(case: CaseReport, strict: bool) -> str:
    """Why a case does not pass, a line a tensor."""
    bad = [t for t in case.tensors if words.counted(t, strict=strict) not in ("pass", "known")]
    lines = [line for t in bad for line in (*words.remarks(t), f"{words.label(t)}: {words.counts(t)}; {words.numbers(t)}")]
    return "\n".join([*([words.raised(case)] if case.error is not None else []), *lines])


def _place(kernel: str | None) -> str:
    """The file of a kernel that is named by one, relative to the working folder."""
    path, colon, _ = (kernel or "").partition(".py:")
    return f"{path}.py" if colon and not PurePath(path).is_absolute() and "::" not in path else ""


def _command(level: str, title: str, message: str, place: str = "") -> str:
    where = f"file={_property(place)}," if place else ""
    return f"::{level} {where}title={_property(title)}::{_message(message)}"


def _message(text: str) -> str:
    return words.printable(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _message(text).replace(":", "%3A").replace(",", "%2C")


def markdown(report: Report, *, strict: bool = False) -> str:
    """The summary in Markdown: the verdict, the diagnosis, a table with a line per case and tensor, warnings, the replay line."""
    verdict = words.whole_counted(report, strict=strict)
    kernel = f": {cell(report.kernel)}" if report.kernel else ""
    lines = [f"### symattn verify{kernel}: {SIGNS[verdict]} {verdict}", ""]
    said = words.objection(report, strict=strict)
    lines += [cell(f"{report.verdict}, {said}"), ""] if said else []
    if report.error is not None:
        lines += [cell(report.error), ""]
    for first, *rest in words.findings(report):
        lines += [f"- **{cell(first)}**", *(f"  - {cell(line)}" for line in rest)]
    lines += [""] if report.diagnosis else []
    for name, text in (
        ("definition", words.definition_words(report.definition)),
        ("arithmetic", "; ".join(dict.fromkeys(words.arithmetic_words(c.arithmetic) for c in report.cases if c.arithmetic))),
    ):
        lines += [f"**{name}** {cell(text)}", ""] if text and report.kernel else []
    if report.cases:
        lines += [
            "| kernel, case | tensor | verdict | max error | ulps | of bound | failing |",
            "|---|---|---|---:|---:|---:|---:|",
        ]
        lines += [row for c in report.cases for row in _rows(c, strict)] + [""]
    lines += [f"- warning: {cell(str(w))}" for w in report.warnings] + ([""] if report.warnings else [])
    line, hidden = words.strength(report, strict=strict)
    lines += [cell(line), "", *(f"- {cell(w)}" for w in hidden), *([""] if hidden else [])] if line else []
    for key, value in words.sections(report).items():
        lines += [f"**{cell(key)}**", "", *(f"- {cell(line.strip().removeprefix('- '))}" for line in words.flat(value)), ""]
    lines += [f"- not run: {cell(s)}" for s in report.skipped] + ([""] if report.skipped else [])
    lines += [f"again: {cell(report.replay)}"]
    return "\n".join(lines) + "\n"


def _rows(case: CaseReport, strict: bool) -> list[str]:
    name = f"{cell(case.kernel)}, {cell(case.case)} {cell(case.dtype)}"
    rows = []
    if case.error is not None:
        verdict = words.case_counted(case, strict=strict)
        rows.append(f"| {name} | | {SIGNS[verdict]} {verdict} | {cell(words.raised(case))} | | | |")
    for t in case.tensors:
        c, verdict = t.comparison, words.counted(t, strict=strict)
        figures = " | ".join(short(x) for x in (c.max_error, c.max_ulp, c.max_share))
        open_ones = f"+{c.undecided + c.unbounded}?" if c.undecided + c.unbounded else ""
        rows.append(
            f"| {name} | {cell(words.label(t))} | {SIGNS[verdict]} {verdict} | {figures} | {c.failing}{open_ones}/{c.total} |"
        )
    return rows


_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#!|~$&@^]|^[-+=])")


def cell(text: str) -> str:
    r"""Text as one line of Markdown that is nothing but text.

    A backslash before each character that may be markup; no line break, so that no line starts with a command; an old command
    (``##[``) and an address are broken up.

    >>> print(cell("a|b<script>\n::error::x ##[command] @you"))
    a\|b\<script\> ::error::x \#\#\[command\] \@you
    """
    line = " ".join(words.printable(text).split())
    return _SPECIAL.sub(r"\\\1", line).replace("://", ":\\//")
