"""A saved run: NumPy alone reads it, the figures in it agree with the report, and it is judged again from the file."""

from __future__ import annotations

import json

import numpy as np
import pytest

from symattn.definition import Definition
from symattn.errors import FileFormatError
from symattn.verify.judge import verify, verify_recorded
from symattn.verify.savefile import save
from tests.verify import planted


@pytest.fixture(scope="module", params=["float32", "bfloat16"])
def run(request, tmp_path_factory):
    d = Definition(causal="bottom-right")
    kernel = planted.kernel()
    report = verify(kernel, d, dtype=request.param, backward=True, only="normal,tall", keep=True)
    path = tmp_path_factory.mktemp("save") / "run.npz"
    save(report, path)
    return d, report, path


def test_numpy_alone_tells_what_passed(run):
    _, report, path = run
    with np.load(path) as file:
        assert json.loads(str(file["report"]))["verdict"] == report.verdict == "pass"
        assert {n.split("/")[0] for n in file.files if "/" in n} == {"normal", "tall"}
        for case in report.cases:
            assert file[f"{case.case}/query"].shape == (case.shape["B"], case.shape["H"], case.shape["N"], case.shape["D"])
            for t in case.tensors:
                out = file[f"{case.case}/{t.name}"]
                out = (out.astype("u4") << 16).view("f4") if out.dtype == "u2" else out  # bfloat16 is the upper half of a float32
                exact, radius, bound = (file[f"{case.case}/{t.name}.{end}"] for end in ("exact", "radius", "bound"))
                same = out == exact
                error = np.where(same, 0, np.abs(out.astype(float) - np.where(same, 0, exact)))
                assert (error <= bound + radius).all() and (radius <= 2.0**-52 * np.abs(np.where(same, 0, exact)) + 1e-30).all()
                share = np.max(error[bound > 0] / bound[bound > 0])
                assert float(share) == pytest.approx(float(t.comparison.max_share), rel=1e-3)


def test_it_is_judged_again_from_the_file(run):
    d, report, path = run
    again = verify_recorded(str(path), d, arithmetic=report.cases[0].arithmetic)
    assert [(c.case, c.verdict) for c in again.cases] == [("normal", "pass"), ("tall", "pass")]
    assert [[t.to_dict() for t in c.tensors] for c in again.cases] == [[t.to_dict() for t in c.tensors] for c in report.cases]
    assert not [w for w in again.warnings if "not judged" in w]


def test_a_run_that_kept_nothing_has_its_report_only(tmp_path):
    report = verify(planted.kernel(), Definition(), shape="1,2,1,2,3,2", only="shape")
    save(report, tmp_path / "run.npz")
    with np.load(tmp_path / "run.npz") as file:
        assert file.files == ["report"]
    with pytest.raises(FileFormatError, match="cannot be written"):
        save(report, tmp_path / "no" / "run.npz")


def test_a_special_value_has_radius_0(tmp_path):
    report = verify(planted.kernel(), Definition(causal="bottom-right"), shape="1,2,1,5,2,2", only="shape", keep=True)
    save(report, tmp_path / "run.npz")
    with np.load(tmp_path / "run.npz") as file:
        assert (file["shape/lse.exact"][0, 0, :3] == -np.inf).all() and (file["shape/lse.radius"][0, 0, :3] == 0).all()
