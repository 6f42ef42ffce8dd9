"""Values of another width than the keys: what mistakes one for the other fails, and a kernel may refuse them."""

from __future__ import annotations

import numpy as np
import pytest

from symattn.definition import Definition
from symattn.errors import KernelError
from symattn.verify.judge import verify
from symattn.verify.kernels.registry import resolve
from symattn.verify.suite import verify_all
from tests.verify.planted import kernel

FEW = {"only": "normal,uneven", "guard": False}


def by_width(query, key, value, **options):
    """The scale of the width of the values."""
    return kernel()(query, key, value, **{**options, "scale": value.shape[3] ** -0.5})


def narrow(query, key, value, **options):
    """A correct kernel that keeps its output in an array of the queries' shape."""
    out, lse = kernel()(query, key, value, **options)
    whole = np.zeros_like(query)
    whole[...] = out
    return whole, lse


def cut(query, key, value, **options):
    """A correct kernel that gives as many channels as the keys have."""
    out, lse = kernel()(query, key, value, **options)
    return out[..., : query.shape[3]], lse


def verdicts(report):
    return {c.case: c.verdict for c in report.cases}


def test_one_width_taken_for_the_other_shows_there_alone():
    assert verdicts(verify(kernel(), Definition(), **FEW)) == {"normal": "pass", "uneven": "pass"}
    assert verdicts(verify(by_width, Definition(), **FEW)) == {"normal": "pass", "uneven": "fail"}


@pytest.mark.parametrize("correct", [narrow, cut])
def test_a_kernel_may_take_equal_widths_only(correct):
    report = verify(correct, Definition(), **FEW)
    (case,) = (c for c in report.cases if c.case == "uneven")
    assert report.verdict == "pass" and report.exit_code() == 0
    assert case.error and case.known == "a kernel may need dv == d; --require 'dv == d' leaves this input out"
    asked = verify(correct, Definition(), require="dv == d", **FEW)
    assert asked.verdict == "pass" and not any(c.error for c in asked.cases)


def test_where_it_takes_nothing_else_either_nothing_is_excused():
    def never(query, key, value, **options):
        raise ValueError("no")

    with pytest.raises(KernelError, match="raised ValueError: no"):
        verify(never, Definition(), **FEW)
    with pytest.raises(KernelError):
        verify(narrow, Definition(), only="uneven", guard=False)


def test_several_kernels_are_excused_one_by_one():
    def takes_it(query, key, value, **options):
        return kernel()(query, key, value, **options)

    def never(query, key, value, **options):
        raise ValueError("no")

    subjects = [resolve(narrow), resolve(takes_it), resolve(never)]
    cases = verify_all(Definition(), kernels=subjects, backward=False, only="normal,uneven").cases
    (uneven, taken, refused) = (next(c for c in cases if c.kernel == k.name and c.case == "uneven") for k in subjects)
    assert uneven.error and uneven.known and uneven.verdict == "pass"
    assert taken.error is None and taken.verdict == "pass"
    assert refused.error and not refused.known and refused.verdict == "fail"
