"""Golden files of every variant of the catalogue: written, and the results in them judged; of some the gradients too."""

from __future__ import annotations

import json
import shutil

import pytest

from symattn import variants
from symattn.definition import Definition
from symattn.verify.golden.judging import verify_golden
from symattn.verify.golden.writing import Request, write_golden
from symattn.verify.inputs import Choice

GRADIENTS = ("causal", "sink", "differential-heads", "output-gate", "latent")
PARAMETERS = {"prefix": 2, "t": 2, "factor": 2, "g": 2}


@pytest.mark.slow
@pytest.mark.parametrize("name", variants.names())
def test_a_variant(name, tmp_path):
    fields = variants.get(name).fields
    d = Definition.of(**fields)
    free = {p: PARAMETERS[p] for p in d.unbound if p not in d.arrays}
    d = d.replace(params={**d.params, **free}) if free else d
    write_golden(Request(d, choice=Choice.of(only="normal", max_len=4), backward=name in GRADIENTS), tmp_path / "g")
    (case,) = json.loads((tmp_path / "g" / "manifest.json").read_text())["cases"]
    for t in case["tensors"]:
        if t["role"] == "result" and "." not in t["name"]:
            place = tmp_path / "o" / t["npy"]
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(tmp_path / "g" / t["npy"], place)
    assert verify_golden(tmp_path / "g", tmp_path / "o").verdict == "pass"
