"""Every row of the catalogue: the radii hold the balls, forward and backward, or the engine says why it does not take it."""

import numpy as np
import pytest

from symattn import variants
from symattn.binding import bind
from symattn.errors import SymattnError
from symattn.truth.derived import with_gradient
from symattn.truth.fields import with_seeds
from symattn.truth.limbs import unfit
from symattn.verify.inputs import Shape, fields_for
from tests.support import FAST
from tests.truth.limbs import enclosing

TAKEN = {"self-attention", "grouped-query", "causal", "alibi", "sink", "sliding-window"}
ROWS = [n if n in FAST | TAKEN else pytest.param(n, marks=pytest.mark.slow) for n in variants.names()]


@pytest.mark.parametrize("name", ROWS)
def test_a_row_is_right_or_refused(name):
    definition = variants.get(name).definition
    heads = definition.heads or 2
    shared = definition.kv_heads or (heads if definition.heads else 1)
    try:
        fields = fields_for(definition, Shape(1, heads, shared, 5, 5, 4, 4), "float32", 3)
        bound = bind(definition, fields)
    except (SymattnError, ValueError) as why:
        pytest.skip(f"no arrays for {name} at this size: {why}")
    for program, inputs in ((bound.program, bound.inputs), (with_gradient(bound.program), with_seeds(bound))):
        given = {n: inputs[n] for n in program.inputs}
        sizes = {k: v for k, v in bound.sizes.items() if k in map(str, program.sizes)}
        why = unfit(program, given, sizes)
        assert why is None or (name not in TAKEN and isinstance(why, str))
        if why is None:
            enclosing.check(program, given, bits=120, sizes=sizes)


@pytest.mark.slow
def test_much_of_the_catalogue_is_taken():
    programs = (variants.get(n).definition.program() for n in variants.names())
    rows = {n: np.ones((1, 1)) for n in "QKV"}
    taken = 0
    for p in programs:
        try:
            taken += unfit(p, {n: rows.get(n, np.ones((1,) * len(p.shapes[n]))) for n in p.inputs}) is None
        except SymattnError:
            continue
    assert taken >= 25
