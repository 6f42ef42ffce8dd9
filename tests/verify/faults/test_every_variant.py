"""Every row of the catalogue of faults on every variant: each rewriting is a list of statements or makes no sense there."""

from __future__ import annotations

import pytest

from symattn import variants
from symattn.arithmetic.presets import flash
from symattn.definition import Definition
from symattn.verify.diagnosis.diagnose import diagnose
from symattn.verify.faults.catalogue import CATALOGUE
from symattn.verify.faults.fault import Situation
from symattn.verify.inputs import KINDS, fields_for, fitted
from symattn.verify.judge import run_case
from symattn.verify.kernels.base import Tensors
from symattn.verify.kernels.call import Call
from symattn.verify.kernels.ours import Naive
from symattn.verify.observed import Observed
from symattn.verify.reference import Reference
from tests.support import rows

KIND = next(k for k in KINDS if k.name == "normal")


class Wrong(Naive):
    """What the definition says, every output a hundredth too large."""

    def forward(self, call: Call) -> Tensors:
        return {n: x * x.dtype.type(1.01) for n, x in super().forward(call).items()}


def filled(name: str) -> Definition:
    d = variants.get(name).definition.core
    numbers = {p: "3" if p == d.prefix else "1/2" for p in d.unbound if p not in d.arrays}
    return d.replace(params={**d.params, **numbers}) if numbers else d


def reference(d: Definition) -> Reference:
    return Reference(d, fields_for(d, fitted(d, KIND.shape), "float32", 0, KIND))


@pytest.mark.parametrize("name", rows())
def test_faults_are_lists_of_statements(name: str) -> None:
    s = Situation(reference(filled(name)), flash("float32"))
    count = 0
    for fault in CATALOGUE.values():
        for a in fault.alternatives(s):
            count += 1
            if a.edit is not None:
                a.edit(s.program)
    assert count


@pytest.mark.slow
@pytest.mark.parametrize("name", rows())
def test_a_wrong_kernel_of_every_variant_is_diagnosed_without_an_error(name: str) -> None:
    found: list[Observed] = []
    run_case(Wrong(), reference(filled(name)), "normal", backward=False, seen=found)
    assert found[0].failing
    assert all(f.text for f in diagnose(found))
