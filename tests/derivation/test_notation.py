"""Notations: letters of a safe part of LaTeX, signs, marks, names of heads, rows or columns, on the whole page in every form."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from symattn import Attention
from symattn.definition import Definition
from symattn.derivation import Derivation, derive, examples
from symattn.derivation.columns import by_columns, matrices, turned
from symattn.derivation.differentials.linear import differentials
from symattn.derivation.notation import Notation, letter
from symattn.derivation.notationfile import load, parse, shipped
from symattn.errors import DefinitionError, FileFormatError, UnknownNameError
from symattn.readings import numpy as numpy_reading
from tests.derivation.cases import TWO_HEADS
from tests.derivation.formulas import FORMULAS
from tests.derivation.tex import compiled, complaints

OWN = rb"""
transpose = 'T'
hadamard = '\odot'
decimal = ","

[letters]
query = '\mathbf q'
K = '\kappa'
out = 'Y_{out}'

[sizes]
d = 'd_h'
n = 'T'
"""


def written(notation: bytes = OWN, **options: Any) -> Derivation:
    return derive(example="two-words", notation=parse(notation, "own.toml"), **{"gradient": True, **options})


# --- letters


@pytest.mark.parametrize(
    "text",
    ["q", r"\alpha", r"\mathbf q", r"\mathbf{q}", r"\mathcal{E}", r"\mathrm{att}", r"\hat q", r"\hat{\beta}", "q'", "q_h",
     r"x_{\mathrm{in}}", "x_{12}", r"\ell"],
)  # fmt: skip
def test_safe_letters(text: str) -> None:
    assert letter(text) is not None


@pytest.mark.parametrize(
    "text",
    ["", "ab", r"\input{x}", r"\mathbf{\input}", r"\mathbf{qq}", r"\mathcal{e}", r"\csname", "q^2", "q}", "{q", "$q$", "q%",
     "q_{a_b}", r"\mathrm{a b}", r"\dot q", "1", r"q\\", "é", r"\mathrm{" + "a" * 13 + "}", r"\hat{\input}",
     "q_{\\def}", "q\n", "q_{}"],
)  # fmt: skip
def test_everything_else_is_refused_with_line_key_and_what_is_allowed(text: str) -> None:
    assert letter(text) is None or text == "q\n"
    if "\n" not in text:
        source = f"\n[letters]\nkey = 'K'\nquery = '{text}'\n".encode()
        with pytest.raises(FileFormatError, match=r"own.toml: line 4: letters\.query: got .*allowed: a letter \(q, "):
            parse(source, "own.toml")


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (b"transpos = 'T'", r"line 1: transpos: allowed: one of the keys transpose, .*Did you mean 'transpose'"),
        (b"\ntranspose = 'dagger'", r"line 2: transpose: got 'dagger'; allowed: '\\top' or 'T' or '\\intercal'"),
        (b"hadamard = 3", r"line 1: hadamard: got 3; allowed: '\\circ'"),
        (b"convention = 'cols'", r"line 1: convention: got 'cols'; allowed: 'row' or 'column'"),
        (b"# one\n# two\norigin = 2", r"line 3: origin: got 2; allowed: 0 or 1"),
        (b"origin = true", r"line 1: origin: got True; allowed: 0 or 1"),
        (b"heads = ['a', 'a']", r"line 1: heads: .*allowed: a name of its own for every head"),
        (b"heads = ['$x$']", r"line 1: heads: .*allowed: a list of names"),
        (b"[letters]\nquerry = 'q'", r"line 2: letters\.querry: allowed: a tensor.*Did you mean 'query'"),
        (b"[sizes]\nd = 'd'\nz = 'q'", r"line 3: sizes\.z: allowed: one of the sizes"),
        (b"letters = 3", r"line 1: letters: got 3; allowed: a table"),
        (b"letters.query = 'q^2'", r"line 1: letters\.query: got 'q\^2'"),
        (b"x = [", r"this is no TOML"),
        (b"\xff", r"this is no TOML"),
    ],
)  # fmt: skip
def test_files_that_are_wrong(source: bytes, said: str) -> None:
    with pytest.raises(FileFormatError, match=f"own.toml: {said}"):
        parse(source, "own.toml")


def test_files_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match=r"no notation 'lectur'.*Did you mean 'lecture'.*ending in \.toml"):
        load("lectur")
    with pytest.raises(FileFormatError, match="cannot be read"):
        load(tmp_path / "none.toml")
    (tmp_path / "large.toml").write_bytes(b"#" * 100_001)
    with pytest.raises(FileFormatError, match="at most 100000"):
        load(tmp_path / "large.toml")


def test_the_shipped_notation_says_every_key() -> None:
    assert [load(n).name for n in shipped()] == ["lecture"]
    page = Attention(lse=False).derive(notation="lecture")
    assert (
        page["O"].matrix[0].latex == r"\mathbf{O} = P \mathbf{V}" and page["R"].matrix[0].latex == r"R = \mathbf{Q} \mathbf{K}^T"
    )
    assert page["S"].index[0].latex.endswith(r"{\sqrt{d_h}}")


@pytest.mark.parametrize(
    ("own", "said"),
    [
        (rb"query = 'K'", "K would stand for"),
        (rb"query = 'x'" + b"\nkey = 'x'", "x would stand for"),
        (rb"query = 'i'", "i would stand for the index i and for the tensor Q"),
        (rb"query = 'n'", "n would stand for the size n"),
    ],
)
def test_a_letter_stands_for_one_thing(own: bytes, said: str) -> None:
    with pytest.raises(DefinitionError, match=f"own.toml: {said}"):
        derive(notation=parse(b"[letters]\n" + own, "own.toml"))


# --- on the whole page


def test_letters_and_signs_are_kept_on_the_whole_page_in_every_form() -> None:
    d = written()
    for name, form in (("latex", d.to_latex()), ("markdown", d.to_markdown())):
        found = " ".join(tex for tex, _ in FORMULAS[name](form))
        assert r"\mathbf{q}" in found and r"\odot" in found and r"0{,}5774" in found
        assert not re.search(r"\\top|\\circ|\bQ[_^]|\bK[_^]|\\sqrt\{d_k\}|\d\.\d", found)
    text = d.to_text()
    assert "𝐪" in text and "⊙" in text and "0,5774" in text and "κ^T" in text and "Y_out[i,e]" in text
    assert not re.search(r"∘|ᵀ|\bQ\b|\d\.\d|√d_k", text.partition("Conventions")[0].replace(". ", ""))
    html = d.to_html()
    assert "0,5774" in html and "⊙" in html and "∘" not in html


def test_words_mention_tensors_by_the_letters_of_the_page() -> None:
    d = derive(example="the-cat-sat", notation=parse(OWN, "own"))
    assert d["Q"].remark == "The matrix W_Q is the identity here, so 𝐪 = X." and d["K"].remark.endswith("so κ = X.")
    tex = d.to_latex()
    assert r"so $\mathbf{q}$ = X." in tex and r"so $\kappa$ = X." in tex


@pytest.mark.parametrize("sign", ["\\top", "T", "\\intercal"])
def test_pages_compile(sign: str, tmp_path: Path) -> None:
    d = written(OWN.replace(b"'T'", f"'{sign}'".encode(), 1), shapes=True)
    assert complaints(compiled(d.to_latex(), tmp_path)) == []


def test_nothing_is_global() -> None:
    before = derive(example="two-words").to_latex()
    written()
    assert derive(example="two-words").to_latex() == before


def test_origin_of_counting() -> None:
    zero = derive(example="two-words", notation=Notation(origin=0))
    assert "R[0,1] = " in zero.to_text() and "Words: 0 thinking  1 machines" in zero.to_text() and zero.follow == 0
    with pytest.raises(DefinitionError, match=r"own: origin: got 1; a formula .* allowed: 0"):
        derive(Definition(prefix=1), notation=Notation(origin=1, name="own"))


def test_names_of_heads() -> None:
    example = examples.parse(TWO_HEADS, "two heads")
    d = derive(example=example, notation=Notation(heads=("syntax", "position")))
    text = d.to_text()
    assert "S^(syntax)[5,1] = " in text and "P^(position) ≈" in text and r"S^{(\text{syntax})}_{5,1}" in d.to_latex()
    assert "S^(h)[i,j] = R^(h)[i,j]/√d_k" in text
    for wrong, said in ((Definition(), "no heads"), (Definition(heads=3), "3 heads"), (Definition(heads=2, kv_heads=1), "share")):
        with pytest.raises(DefinitionError, match=f"heads: got 2 names for .*{said}"):
            derive(wrong, notation=Notation(heads=("a", "b")))


# --- columns


COLUMN = Notation(convention="column", name="own")


def test_in_columns_the_formulas_are_those_of_the_transposed_program() -> None:
    d = derive(notation=COLUMN, gradient=True)
    assert [d[n].matrix[0].latex for n in ("R", "P", "O", "dP", "dS", "dV")] == [
        r"R = K^{\top} Q",
        r"P = \operatorname{softmax}_{\mathrm{col}}(S)",
        "O = V P",
        r"dP = V^{\top}\,dO",
        r"dS = P \circ (dP - \mathbf{1}D^{\top})",
        r"dV = dO\,P^{\top}",
    ]
    assert d["R"].index[0].latex == r"R_{ji} = \sum_c K_{cj} Q_{ci}"
    assert any("A position is a column" in n for n in d.notes)


@pytest.mark.parametrize(
    "fields", [{}, {"heads": 2, "kv_heads": 1, "causal": "top-left"}, {"softcap": 3, "sink": True}, {"alibi": True, "heads": 2}]
)
def test_the_transposed_program_computes_the_transposed_tensors(fields: dict[str, Any]) -> None:
    program = Definition(**fields, lse=False).program()
    rng = np.random.default_rng(0)
    known = {"H": 2, "Hkv": 1, "G": 2}
    sizes = {x: known.get(str(x), 2 + k) for k, x in enumerate(program.sizes)}
    given = {n: rng.normal(size=[int(x.subs(sizes)) for x in program.shapes[n]]) for n in program.inputs}
    rows = numpy_reading.evaluate(program, given, sizes=sizes)
    flipped = by_columns(program)
    columns = numpy_reading.evaluate(flipped, turned(given, matrices(program)), sizes=sizes)
    for s in program:
        want = np.swapaxes(rows[s.name], -1, -2) if s.name in matrices(program) else rows[s.name]
        assert np.allclose(columns[s.name], want, rtol=1e-13), s.name


def test_in_columns_the_numbers_are_the_same() -> None:
    rows, columns = (derive(example="two-words", gradient=True, notation=x) for x in (None, COLUMN))
    for a, b in zip(rows.steps, columns.steps, strict=True):
        whole = [next(g for g in s.grids if g.row is None) if any(g.row is None for g in s.grids) else None for s in (a, b)]
        if whole[0] is not None and whole[1] is not None and len(whole[0].shape) == 2:
            left = [[c.decimal for c in row] for row in whole[0].cells]
            right = [[c.decimal for c in row] for row in whole[1].cells]
            assert left == [list(x) for x in zip(*right, strict=True)], a.tensors
    column = [x.item.index for x in columns["P"].lines if x.item.tensor == "P"]
    assert column == [(0, 0), (1, 0)] and columns["P"].grids[0].row_words == ("thinking", "machines")


def test_in_columns_the_gradient_is_derived_too() -> None:
    rows, columns = (derive(Definition(softcap=3, lse=False), gradient=True, notation=x) for x in (None, COLUMN))
    assert [s.title for s in columns.sections] == [s.title for s in rows.sections] and len(rows.sections) > 6
    said = {s.title: str(s) for s in columns.sections}
    assert r"\dot{O} = \dot{V} P + V \dot{P}" in said["Differentials"].replace("\\\\", "\\")
    assert "each column" in said["The gradient as a kernel computes it"]
    assert not re.search(r"\brows?\b(?!=)", "".join(said.values()))
    assert columns["D"].name == "Column sums" and "turns a column of scores" in columns["P"].reason


def test_in_columns_what_moves_and_what_it_is_paired_with_are_transposed() -> None:
    found = differentials(Definition(softcap=3, lse=False).program())
    flipped, flat = found.by_columns(), matrices(found.program)
    rng = np.random.default_rng(1)
    sizes = {x: 2 + k for k, x in enumerate(found.program.sizes)}
    shapes = {n: [int(x.subs(sizes)) for x in found.program.shapes[n]] for n in found.program.inputs}
    given = {n: rng.normal(size=shape) for n, shape in shapes.items()}
    rows = numpy_reading.evaluate(found.program, given, sizes=sizes)
    columns = numpy_reading.evaluate(flipped.program, turned(given, flat), sizes=sizes)
    assert {"dQ", "S_t", "O_t"} <= {s.name for s in found.program}
    for s in found.program:
        assert np.allclose(columns[s.name], rows[s.name].T if s.name in flat else rows[s.name], rtol=1e-13), s.name
    assert flipped.moving == tuple(flipped.program[s.name] for s in found.moving)
    assert flipped.collected == tuple(flipped.program[s.name] for s in found.collected)
    values = {**turned(given, flat), **columns}
    for p in flipped.pairings:
        whole = np.sum(values["d" + p.name] * values[p.moving.name])
        parts = [(n, flipped.program.with_statements([share], [share.name])) for n, share in p.shares]
        made = [(n, numpy_reading.evaluate(x, {k: values[k] for k in x.inputs}, sizes=sizes), x) for n, x in parts]
        assert np.isclose(whole, sum(np.sum(v[x.outputs[0]] * values[n]) for n, v, x in made), rtol=1e-12), p.name


def test_columns_are_refused_where_rows_are_what_an_algorithm_goes_by() -> None:
    with pytest.raises(DefinitionError, match=r"own: convention: got 'column'; algorithms by tiles .* allowed: 'row'"):
        derive(Definition(algorithm="flash", lse=False), notation=COLUMN)
