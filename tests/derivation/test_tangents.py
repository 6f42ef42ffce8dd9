"""Derivations of the tangent and of Hessian-vector products: steps, letters, numbers, notes, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from symattn import Attention
from symattn.derivation import derive
from symattn.derivation.escaping import display_width
from symattn_cli.app import app

EXAMPLE = """
Q = [[1, 2], [0, 1]]
K = [[1, 0], [0, 1]]
V = [["1/3", 1], [2, 0]]
grad_out = [[1, 0], [0, 1]]
tangent_query = [[0, 1], [1, 0]]
tangent_value = [[0, 1], [0, 0]]
digits = 12
[definition]
scale = 1
"""


@pytest.fixture
def example(tmp_path: Path) -> str:
    path = tmp_path / "moving.toml"
    path.write_text(EXAMPLE)
    return str(path)


def run(*words: str) -> Result:
    return CliRunner().invoke(app, ["derive", *words])


def test_the_tangent_in_matrices() -> None:
    d = Attention().jvp()
    forms = {s.tensors[-1]: s.matrix[0].latex for s in d.steps if s.tangent}
    assert forms == {
        "R_t": r"\dot{R} = \dot{Q} K^{\top} + Q \dot{K}^{\top}",
        "S_t": r"\dot{S} = \frac{\dot{R}}{\sqrt{d_k}}",
        "L_t": r"\dot{L} = (P \circ \dot{S})\mathbf{1}",
        "P_t": r"\dot{P} = P \circ (\dot{S} - \dot{L}\mathbf{1}^{\top})",
        "O_t": r"\dot{O} = P \dot{V} + \dot{P} V",
    }
    assert not any(s.backward for s in d.steps) and d.rewritten == "How the tangent was brought to this form"


def test_the_hessian_vector_product_follows_the_gradient_and_has_the_dot_on_the_whole_name() -> None:
    d = Attention().hvp()
    kinds = [(s.backward, s.tangent) for s in d.steps]
    assert kinds == sorted(kinds, key=lambda k: (k[1], k[0]))
    assert d["dS_t"].index[0].latex.startswith(r"\dot{dS}_{ij} = ")
    assert [s.name for s in d.steps][-3:] == [f"Hessian-vector product of the {x}" for x in ("queries", "keys", "values")]
    assert "the incoming gradient is held fixed" in " ".join(d.notes)
    assert d.rewritten == "How the gradient and the tangent were brought to this form"


def test_the_numbers_are_those_of_exact_values(example: str) -> None:
    d = derive(example=example, jvp=True, hvp=True)
    q, k, v = [[1, 2], [0, 1]], [[1, 0], [0, 1]], [["1/3", 1], [2, 0]]
    found = Attention(scale=1, lse=False).truth(
        q, k, v, grad_out=k, tangent_query=[[0, 1], [1, 0]], tangent_value=[[0, 1], [0, 0]], digits=40
    )
    for tensor, field in {"O_t": "tangent_out", "dQ_t": "hvp_query", "dK_t": "hvp_key", "dV_t": "hvp_value"}.items():
        grid = d[tensor].grids[-1]
        assert [[float(c.decimal) for c in row] for row in grid.cells] == pytest.approx(found[field].float(), abs=1e-11), tensor
    assert r"\dot{K}" not in d.to_latex()  # what has no direction does not move, and is no part of the formulas


def test_every_form_is_written_and_text_keeps_its_width(example: str) -> None:
    d = derive(example=example, hvp=True)
    assert max(map(display_width, d.to_text().splitlines())) <= 80
    assert r"\dot{dQ}" in d.to_latex() and r"\dot{dQ}" in d.to_markdown() and "dQ" in d.to_html()
    steps = json.loads(d.to_json())["steps"]
    assert [s["tensors"][-1] for s in steps if s["tangent"]][-3:] == ["dQ_t", "dK_t", "dV_t"]


def test_without_directions_an_example_gives_formulas_and_says_so() -> None:
    result = run("--example", "two-words", "--jvp", "--form", "matrix")
    assert result.exit_code == 0
    assert "because the example gives no direction, such as tangent_query" in " ".join(result.stdout.split())


@pytest.mark.parametrize(
    "line, says",
    [
        ("tangent_query = [[1]]", "tangent_query"),
        ("tangent_sinks = [1, 2]", "tangent_sinks"),
        ("tangent_qery = [[1, 1], [1, 1]]", "tangent_query"),
        ("[tangent_embedding]\na = [1]", "embedding"),
    ],
)
def test_what_is_wrong_with_a_direction_is_said(tmp_path: Path, line: str, says: str) -> None:
    path = tmp_path / "bad.toml"
    kept = [x for x in EXAMPLE.splitlines() if not x.startswith("tangent_query")]
    path.write_text("\n".join([line, *kept] if not line.startswith("[") else [*kept, line]))
    result = run("--example", str(path), "--jvp")
    assert result.exit_code == 4 and says in result.stderr and "bad.toml" in result.stderr


def test_words_that_move(tmp_path: Path) -> None:
    path = tmp_path / "words.toml"
    path.write_text(
        'tokens = ["a", "b", "a"]\n[embedding]\na = [1, 0]\nb = [1, 2]\n[tangent_embedding]\nb = [0, 1]\n'
        '[definition]\ncausal = "top-left"\n'
    )
    d = derive(example=str(path), jvp=True)
    assert [[c.decimal for c in row] for row in d["X_t"].grids[-1].cells] == [["0", "0"], ["0", "1"], ["0", "0"]]
    assert d["O_t"].grids
