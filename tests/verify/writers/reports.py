"""Reports for the tests of writers: one of each verdict, with hostile text in every place that text can come from."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from symattn import arithmetic
from symattn.verify.compare import Comparison, Element
from symattn.verify.diagnosis.finding import Finding
from symattn.verify.evidence import Evidence
from symattn.verify.guard import Guard, Hidden
from symattn.verify.report import CaseReport, Report, TensorReport

HOSTILE = "</script><script>alert(1)</script>\"'&<img src=x onerror=1>" + "\n::error::owned\n##[error]x |`*_[a](http://evil)"
HOSTILE += "\x00\x1b[31m\ud800 %0A"
"""Markup, commands and control characters of every form at once."""

DECLARED = arithmetic.get("flash-bf16").to_dict()


def tensor(verdict="pass", name="out", known=None, suspect=None, evidence=None):
    failing, undecided = {"pass": (0, 0), "fail": (2, 0), "inconclusive": (0, 1)}[verdict]
    share = Fraction(3) if failing else Fraction(1, 3)
    worst = Element((0, 1, 2, 3), Fraction(1, 3), Fraction(1, 4), Fraction(1, 8), Fraction(1, 12), Fraction(2), share, "within")
    comparison = Comparison(failing, undecided, 0, 7, Fraction(1, 12), Fraction(2), share, worst)
    return TensorReport(name, comparison, known=known, suspect=suspect, evidence=evidence)


def case(*tensors, name="normal", kernel="k", error=None, known=None):
    return CaseReport(name, kernel, "bfloat16", {"B": 1, "N": 3}, {"causal": "none"}, DECLARED, tensors, error, known)


def report(*cases, kernel="k", **more):
    return Report(kernel, {"scale": "1/sqrt(d)"}, DECLARED, cases, "symattn verify k", **more)


def each():
    """A run with a tensor of every verdict and a case that raised."""
    return report(
        case(tensor(), tensor("fail", "lse"), name="one"),
        case(tensor("fail", known="an old fault"), tensor("inconclusive", "lse"), name="two"),
        case(tensor("fail", suspect="a leak"), name="three"),
        case(name="four", error="no such device"),
        warnings=("little power",),
        skipped=("torch: is not installed",),
        diagnosis=(Finding(("F1",), "t", "convention", "all", "every row", ("F1 a fault", "  where it shows")),),
        seconds=1.5,
    )


def weak(text="a fault"):
    """A run that passes and could not have shown a fault."""
    hidden = Guard(("F1", "F2"), (Hidden("F2", text, "", 0.5, "normal", "out"),))
    return report(case(tensor()), strength=lambda: hidden)


def hostile():
    """Text that is an attack in each form, wherever a report takes text from outside."""
    c = case(
        tensor("fail", HOSTILE, known=HOSTILE), tensor("fail", "lse", suspect=HOSTILE), name=HOSTILE, kernel=HOSTILE, error=None
    )
    raised = case(name=HOSTILE, kernel=HOSTILE, error=HOSTILE)
    finding = Finding((HOSTILE,), HOSTILE, "pattern", HOSTILE, HOSTILE, (HOSTILE,))
    return Report(
        HOSTILE,
        {"score": HOSTILE},
        {},
        (c, raised),
        HOSTILE,
        diagnosis=(finding,),
        warnings=(HOSTILE,),
        skipped=(HOSTILE,),
        strength=weak(HOSTILE).strength,
    )


def evidence(shape=(2, 3, 4, 5), wrong=()):
    """A kernel that gives 0 where 0 is right and 1 is allowed, and 100 at the indices ``wrong``."""
    kernel = np.zeros(shape)
    for at in wrong:
        kernel[at] = 100
    zero = np.full(shape, Fraction(0), dtype=object)
    return Evidence(kernel, zero, zero, np.ones(shape))
