"""JUnit XML, as CI systems read it: a suite per kernel, a test case per case and tensor.

Only elements and attributes that the common readers share are written: properties belong to suites, and a test case holds at
most one of ``failure``, ``error`` and ``skipped`` beside its output. A known deviation is a skipped test, an inconclusive tensor
an error.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET

from symattn.verify.report import CaseReport, Report, TensorReport
from symattn.verify.writers import words

OUTCOMES = {"fail": "failure", "inconclusive": "error", "error": "error", "known": "skipped"}
"""The element that an outcome is written as; pass and suspect have none."""


def junit(report: Report, *, strict: bool = False) -> str:
    """The XML document of a report.

    Parameters
    ----------
    report
        What to write.
    strict
        Whether suspect results and known deviations are failures.

    >>> junit(Report("k", {}, {}, (), "symattn verify k", error="no such device")).splitlines()[1][:57]
    '<testsuites name="symattn verify" tests="1" failures="0" '
    """
    root = ET.Element("testsuites", name="symattn verify")
    kernels = dict.fromkeys(c.kernel for c in report.cases)
    for kernel in kernels:
        suite = _suite(root, kernel)
        _properties(suite, report, [c for c in report.cases if c.kernel == kernel])
        for case in (c for c in report.cases if c.kernel == kernel):
            _case(suite, case, strict)
        _properties_of_kernel(suite, kernel, report, strict)
        _strength(suite, kernel, report, strict)
    if report.error is not None:
        suite = _suite(root, report.kernel or "symattn verify")
        _properties(suite, report, [])
        _outcome(_testcase(suite, report.kernel or "symattn verify", "run"), "error", report.ended, report.error, "")
    if report.skipped:
        suite = _suite(root, "not run")
        for reason in report.skipped:
            name = reason.partition(":")[0]
            _outcome(_testcase(suite, "not run", name), "skipped", "not run", reason, "")
    for suite in root:
        _count(suite)
    for name in ("tests", "failures", "errors"):
        root.set(name, str(sum(int(s.get(name, "0")) for s in root)))
    root.set("time", f"{report.elapsed:.3f}")
    ET.indent(root)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{ET.tostring(root, encoding="unicode")}\n'


def _suite(root: ET.Element, name: str) -> ET.Element:
    return ET.SubElement(root, "testsuite", name=_clean(name))


def _testcase(suite: ET.Element, kernel: str, name: str) -> ET.Element:
    return ET.SubElement(suite, "testcase", classname=_clean(kernel), name=_clean(name))


def _count(suite: ET.Element) -> None:
    suite.set("tests", str(len(suite.findall("testcase"))))
    for attribute, element in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        suite.set(attribute, str(len(suite.findall(f"testcase/{element}"))))


def _properties(suite: ET.Element, report: Report, cases: list[CaseReport]) -> None:
    """What is true of a whole run: definition, arithmetic, replay line, diagnosis, warnings, and what else a report offers."""
    definition = report.definition or (cases[0].definition if len(cases) == 1 else {})
    declared = dict.fromkeys(words.arithmetic_words(c.arithmetic) for c in cases if c.arithmetic)
    rows = [("verdict", report.verdict), ("definition", words.definition_words(definition))]
    rows += [("arithmetic", a) for a in declared]
    rows += [("diagnosis", "\n".join(lines)) for lines in words.findings(report)]
    rows += [("warning", str(w)) for w in report.warnings]
    rows += [(key, line) for key, value in words.sections(report).items() for line in words.flat(value)]
    rows += [("replay", report.replay)]
    box = ET.SubElement(suite, "properties")
    for name, value in rows:
        if value:
            ET.SubElement(box, "property", name=_clean(name), value=_clean(value))


def _case(suite: ET.Element, case: CaseReport, strict: bool) -> None:
    if case.error is not None:
        kind = OUTCOMES["known"] if case.known and not strict else "error"
        said = "\n".join([words.raised(case), *([f"known: {case.known}"] if case.known else [])])
        _outcome(_testcase(suite, case.kernel, f"{case.case} {case.dtype}"), kind, "raised", case.error, said)
    for t in case.tensors:
        element = _testcase(suite, case.kernel, f"{case.case} {case.dtype} {words.label(t)}")
        verdict = words.counted(t, strict=strict)
        kind = OUTCOMES.get(verdict, "")
        if kind:
            message = words.excuse(t) if kind == "skipped" else (words.remarks(t) or [""])[0]
            _outcome(element, kind, verdict, message, _text(case, t))
        else:
            ET.SubElement(element, "system-out").text = _clean(_text(case, t))


def _properties_of_kernel(suite: ET.Element, kernel: str, report: Report, strict: bool) -> None:
    """A test per property that needs no exact value; one that is suspect fails under strict alone."""
    for p in report.properties:
        element = _testcase(suite, kernel, f"property {p.name}")
        if p.verdict == "not applicable":
            _outcome(element, "skipped", p.verdict, p.reason, "")
        elif p.counted == "fail" or (strict and p.counted == "suspect"):
            _outcome(element, "failure", p.verdict, p.reason or p.title, f"{p.title}\n{p.case}")
        else:
            ET.SubElement(element, "system-out").text = _clean(f"{p.title}: {p.verdict} {p.reason}".rstrip())


def _strength(suite: ET.Element, kernel: str, report: Report, strict: bool) -> None:
    """What the run could have shown, as a test of its own: strict fails where a known fault is hidden."""
    if report.guard is None or not words.strength(report, strict=strict)[0]:
        return
    line, hidden = report.guard.line, report.guard.warnings
    element, text = _testcase(suite, kernel, "vacuity guard"), "\n".join([line, *hidden])
    if strict and not report.guard.holds:
        _outcome(element, "failure", "hidden", f"{'; '.join(report.guard.objections)}: {line}", text)
    else:
        ET.SubElement(element, "system-out").text = _clean(text)


def _outcome(element: ET.Element, kind: str, type: str, message: str, text: str) -> None:
    ET.SubElement(element, kind, type=_clean(type), message=_clean(message)).text = _clean(text) or None


def _text(case: CaseReport, t: TensorReport) -> str:
    return "\n".join([words.title(case), words.counts(t), words.numbers(t), *words.remarks(t)])


def _clean(text: str) -> str:
    return words.printable(text)
