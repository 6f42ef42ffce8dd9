"""Every statement of every variant and of its gradient: both printed forms are read back and give the statement's numbers."""

import numpy as np
import pytest
import sympy as sp

from symattn.adjoint import adjoint
from symattn.definition import Definition
from symattn.presentation import present
from symattn.readings.latex import Letters, index_form, matrix_form
from symattn.readings.numpy import evaluate
from symattn.variants import family_of, get, names
from tests.readings.typesetting.indexreader import IndexReader
from tests.support import rows

SIZES = {"B": 2, "Hkv": 2, "G": 2, "H": 3, "n": 2, "m": 3, "d": 4, "dv": 1, "dmodel": 2, "dmemory": 2, "dout": 2, "vocab": 4}
OWN = {
    "own score and mask": Definition(score="20*tanh(s/20) - slope*(i - j)", mask="j <= i or i < 1 and not (j > 1)"),
    "slopes by formula, tiled groups": Definition(heads=4, kv_heads=2, grouping="tiled", alibi=True, alibi_slopes="power"),
    "sink, base 2": Definition(heads=2, sink=True, lse_base=2),
    "mean of all values for an empty row": Definition(empty_row="uniform", causal="bottom-right", attn_mask="boolean"),
}
DEFINITIONS = {name: get(name).definition for name in names()} | OWN
NEW = ("dilated", "global", "sink-tokens", "document-window", "shared", "block-", "tree", "neighbourhood")
ALL_READ = {n for n in names() if family_of(n) in ("heads", "masks", "scores") and not n.startswith(NEW)} | set(OWN)
"""Definitions all of whose statements have a matrix form and an index form that the reader knows."""


def computed(definition, seed=3):
    """The presented gradient program of a definition with a batch, and all of its tensors for random inputs."""
    forward = definition.program(batch=True)
    program = present(forward, adjoint(forward)).program
    rng = np.random.default_rng(seed)
    numbers = {a: sp.Integer(SIZES.get(a.name, 2)) for a in program.sizes}
    inputs = {}
    for name in program.inputs:
        shape = [int(sp.sympify(q).xreplace(numbers)) for q in program.shapes.get(name, ())]
        inputs[name] = rng.integers(0, 2, shape) if name in program.discrete else rng.uniform(0.2, 1.2, shape)
    return program, evaluate(program, inputs, sizes={a.name: SIZES.get(a.name, 2) for a in program.sizes})


@pytest.fixture(scope="module", params=[*rows(), *OWN])
def case(request):
    return *computed(DEFINITIONS[request.param]), request.param in ALL_READ


def index_reader(program, tensors):
    letters = Letters.of(None, tensors, {a.name for s in program for a in s.domain})
    short = {letters.tensor(name).tex(): x for name, x in tensors.items()}
    sizes = {letters.symbol(a.name): SIZES.get(a.name, 2) for a in program.sizes}
    lengths = {
        str(a): int(sp.sympify(q).xreplace({z: sp.Integer(SIZES.get(z.name, 2)) for z in q.free_symbols}))
        for a, q in program.dims.items()
    }
    return IndexReader(short, sizes, {**lengths, **{f"{k}'": v for k, v in lengths.items()}})


def test_index_forms_read_back(case):
    program, tensors, all_read = case
    reader = index_reader(program, tensors)
    read = 0
    for s in program:
        tex = index_form(program, s)
        try:
            got = reader.read(tex, len(s.indices))
        except (ValueError, KeyError, IndexError, AssertionError, TypeError):
            assert not all_read, tex  # the reader knows no floors, cases and products
            continue
        read += 1
        np.testing.assert_allclose(got, tensors[s.name], rtol=1e-9, atol=1e-12, err_msg=tex)
    assert read


def test_matrix_forms_have_the_values_of_their_statements(case):
    program, tensors, all_read = case
    for s in program:
        form = matrix_form(program, s)
        if s.name == "X":  # a look-up
            assert form is None
        elif form is None:
            assert not all_read, s  # shifted subscripts and a third index do not reduce to matrices
        else:
            np.testing.assert_allclose(form.value(tensors, SIZES), tensors[s.name], rtol=1e-9, atol=1e-12, err_msg=form.latex)


@pytest.mark.parametrize(
    ("name", "right", "wrong"),
    [
        ("S", r"\frac{R_{bij}}{\sqrt{d_k}}", r"R_{bij}"),
        ("R", "K_{bjc}", "K_{bic}"),
        ("R", r"j \le i", "j < i"),
        ("P", r"\ell_{bi}", r"\ell_{bj}"),
        ("O", "P_{bij}", "P_{bji}"),
        ("dS", "- D_{bi}", "+ D_{bi}"),
        ("dK", "dS_{bij}", "P_{bij}"),
        ("dQ", r"\frac{1}{\sqrt{d_k}} ", ""),
        ("D", r"\sum_j", r"\sum_i"),
        ("E", r" \quad\text{where } j \le i", ""),
    ],
)
def test_the_witness_catches_a_wrong_index_form(name, right, wrong):
    program, tensors = computed(get("causal").definition, seed=1)
    tex = index_form(program, name)
    assert right in tex
    try:
        value = index_reader(program, tensors).read(tex.replace(right, wrong), len(program[name].indices))
        assert not np.allclose(value, tensors[name], rtol=1e-9)
    except (ValueError, IndexError, KeyError):
        pass
