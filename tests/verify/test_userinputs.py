"""Inputs of a user's own that a kernel is run on: byte orders, dtypes, and sizes."""

from __future__ import annotations

import numpy as np
import pytest

from symattn.definition import Definition
from symattn.errors import FileFormatError, LimitError
from symattn.verify.judge import verify, verify_recorded
from symattn.verify.savefile import save
from symattn.verify.userinputs import MOST, own_inputs

X = np.random.default_rng(0).normal(size=(1, 1, 2, 2)).astype("f4")
ALLOWED = "should be one of float64, float32, float16, bfloat16"


def inputs(dtype, *names):
    return {n: X.astype(dtype) if n in names else X for n in ("query", "key", "value")}


@pytest.mark.parametrize("names", [("query", "key", "value"), ("value",)])
@pytest.mark.parametrize("dtype", ["int64", "bool"])
def test_integers_are_no_queries_keys_and_values(dtype, names):
    for judge in (own_inputs, lambda x, d: verify_recorded({**x, "out": X}, d)):
        with pytest.raises(FileFormatError, match=f"{names[0]} has dtype {dtype}; it {ALLOWED}"):
            judge(inputs(dtype, *names), Definition())


@pytest.mark.skipif(np.dtype(np.longdouble).itemsize == 8, reason="longdouble is float64 here")
def test_floats_wider_than_float64_are_refused():
    with pytest.raises(FileFormatError, match=f"query has dtype float128; it {ALLOWED}"):
        own_inputs(inputs(np.longdouble, "query", "key", "value"), Definition())
    with pytest.raises(FileFormatError, match="bias has dtype float128"):
        own_inputs({**inputs("f4"), "bias": X.astype(np.longdouble)}, Definition())


def test_another_byte_order_is_the_same_numbers(tmp_path):
    other = np.dtype("f4").newbyteorder()
    np.savez(tmp_path / "x.npz", **inputs(other, "query", "key", "value"))
    report = verify("numpy:flash", Definition(), inputs=str(tmp_path / "x.npz"))
    assert (report.verdict, report.cases[0].dtype) == ("pass", "float32")


def test_more_scores_than_are_looked_at_are_refused():
    x = np.zeros((2, 4, 1025, 1), dtype="f4")
    key = np.zeros((2, 2, 1024, 1), dtype="f4")
    with pytest.raises(LimitError, match=rf"{8 * 1025 * 1024} scores .*B=2, H=4, N=1025, M=1024.* at most {MOST} .*Give"):
        own_inputs({"query": x, "key": key, "value": key}, Definition())
    assert own_inputs({"query": x[:, :, :1024], "key": key, "value": key}, Definition()).fields


def test_a_file_of_several_cases_is_run_on_each(tmp_path):
    """Such as ``--save`` writes: inputs and results, with exact values, radii and bounds beside them."""
    path = str(tmp_path / "s.npz")
    first = verify("numpy:flash", Definition(), only="shape,decode", shape="1,1,1,2,3,2", keep=True)
    save(first, path)
    again = verify("numpy:flash", Definition(), inputs=path)
    assert [c.case for c in again.cases] == [c.case for c in first.cases] and len(again.cases) == 2
    assert [c.to_dict() for c in again.cases] == [c.to_dict() for c in first.cases]
    assert not any("no input" in w for w in again.warnings)


def test_each_case_says_what_it_lacks_and_what_its_tensors_imply():
    three = {"query": X, "key": X, "value": X}
    named = {f"a/{k}": x for k, x in three.items()} | {f"b/{k}": x for k, x in three.items()}
    with pytest.raises(FileFormatError, match="arrays: b: lacks value"):
        verify("numpy:flash", Definition(), inputs={k: x for k, x in named.items() if k != "b/value"})
    found = verify("numpy:flash", Definition(), inputs={**named, "b/sinks": X[0, 0, 0, :1]})
    assert [c.definition["sink"] == "none" for c in found.cases] == [True, False] and found.verdict == "pass"
