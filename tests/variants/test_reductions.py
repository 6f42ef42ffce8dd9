"""What a variant becomes at special values: both programs on the same exact numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import sympy as sp

from symattn import variants
from symattn.grammar import parse_scale
from symattn.readings import exact, mpmath
from symattn.variants.variant import Reduction, Variant
from tests import unroll
from tests.variants.entries import numbers_for, sizes_for

CASES = [(row, r) for row in variants.CATALOGUE.values() for r in row.reduces]


def both(row: Variant, r: Reduction, times: int = 1) -> tuple[Any, Any, dict[str, Any], dict[str, int]]:
    """The two programs, numbers for both, and sizes; numbers of a limit are multiplied by ``times``."""
    special = row.definition.replace(**r.fields).program()
    plain = variants.get(r.to).definition.program()
    sizes = {**sizes_for(row.name, special), **sizes_for(r.to, plain)}
    for name, value in r.sizes.items():
        sizes[name] = sizes[value] if value in sizes else int(value)
    inputs = numbers_for(plain, sizes, seed=3) | {
        n: x for n, x in numbers_for(special, sizes, seed=4).items() if n not in plain.inputs
    }
    for name, text in r.inputs.items():
        value = parse_scale(text).xreplace({sp.Symbol(k, integer=True, positive=True): sp.Integer(v) for k, v in sizes.items()})
        array = np.empty(np.shape(inputs[name]), dtype=object)
        array.ravel()[:] = value * times
        discrete = name in special.discrete
        inputs[name] = array.astype(np.int64) if discrete else array if array.shape else value * times
    return special, plain, inputs, sizes


def run(reading: Any, program: Any, inputs: dict[str, Any], sizes: dict[str, int], **options: Any) -> dict[str, Any]:
    known = {str(x) for x in program.sizes}
    found = reading.evaluate(
        program, {n: inputs[n] for n in program.inputs}, sizes={k: v for k, v in sizes.items() if k in known}, **options
    )
    return {o: np.ravel(found[o]) for o in program.outputs}


@pytest.mark.parametrize(("row", "r"), CASES, ids=[f"{row.name} to {r.to}, {r.at}" for row, r in CASES])
def test_a_variant_becomes_the_other_at_special_values(row: Variant, r: Reduction) -> None:
    special, plain, inputs, sizes = both(row, r)
    shared = r.outputs or tuple(o for o in special.outputs if o in plain.outputs)
    assert shared, "nothing to compare"
    if not r.limit:
        a, b = (run(exact, p, inputs, sizes) for p in (special, plain))
        for o in shared:
            assert len(a[o]) == len(b[o])
            assert all(unroll.is_zero(x - y) for x, y in zip(a[o], b[o], strict=True)), o
        return
    gaps = []
    for times in (10**3, 10**6):
        special, plain, inputs, sizes = both(row, r, times)
        a, b = (run(mpmath, p, inputs, sizes, digits=60) for p in (special, plain))
        gaps.append(max(abs(x - y) for o in shared for x, y in zip(a[o], b[o], strict=True)))
    assert gaps[0] > gaps[1] or gaps[0] == 0 or gaps[0] < 1e-40
    assert gaps[1] < 1e-6


@pytest.mark.parametrize(
    ("name", "r"),
    [
        ("alibi", Reduction("causal", "wrong: slope = 1", inputs={"slope": "1"})),
        ("prefix", Reduction("causal", "wrong: prefix = m", inputs={"prefix": "m"})),
        ("sink", Reduction("causal", "wrong: sink to +oo", inputs={"sink": "1"}, limit=True)),
    ],
)
def test_a_wrong_identity_is_seen(name: str, r: Reduction) -> None:
    with pytest.raises(AssertionError):
        test_a_variant_becomes_the_other_at_special_values(variants.get(name), r)
