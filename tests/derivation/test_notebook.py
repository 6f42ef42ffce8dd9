"""Notebooks: valid, executed from top to bottom, and stopped by a number that is wrong."""

from __future__ import annotations

import builtins
import contextlib
import io
import json
from typing import Any

import pytest

from symattn.derivation import Derivation, derive, examples
from symattn.derivation.drawn import example_of
from symattn.derivation.notebook import cells
from symattn.errors import MissingDependencyError
from symattn.variants import CATALOGUE
from tests.derivation.cases import TWO_HEADS, hostile, wide
from tests.derivation.test_markup import with_sections
from tests.support import require, rows


def ran(code: list[str]) -> int:
    """How many numbers the code cells check, run one after the other in a namespace of their own."""
    names: dict[str, Any] = {}
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        for text in code:
            exec(compile(text, "cell", "exec"), names)
    return sum(int(line.split()[0]) for line in said.getvalue().splitlines())


def code_of(d: Derivation) -> list[str]:
    return [text for kind, text in cells(d) if kind == "code"]


@pytest.mark.parametrize("name", examples.shipped())
def test_the_cells_recompute_the_shipped_examples(name: str) -> None:
    d = derive(example=name, gradient=True)
    code = code_of(d)
    assert "symattn" not in "".join(code) and ran(code) > 100
    shown = {s.tensors[-1] for s in d.steps if s.grids}
    assert all(any(f"check({t}, " in text for text in code) for t in shown)


def test_heads_helpers_tangents_and_many_digits() -> None:
    two_heads = examples.parse(TWO_HEADS, "two heads")
    assert ran(code_of(derive(example=two_heads, gradient=True, show_max=True, lse=True))) > 300
    assert ran(code_of(wide())) > 300 and ran(code_of(hostile())) > 30
    moving = b"Q = [[1, 2]]\nK = [[1, 0], [0, 1]]\nV = [[3], [1]]\ntangent_query = [[0, 1]]\ngrad_out = [[1]]\n"
    assert ran(code_of(derive(example=examples.parse(moving, "moving"), hvp=True))) > 20


def drawn(name: str) -> Derivation:
    definition = CATALOGUE[name].definition
    words = ["the", "cat", "the"] if definition.start == "tokens" else []
    return derive(definition, example_of(definition, seed=1, tokens=words))


@pytest.mark.parametrize("name", rows())
def test_every_variant(name: str) -> None:
    assert ran(code_of(drawn(name))) > 5


@pytest.mark.parametrize(
    ("right", "wrong"),
    [('"0.6048"', '"0.6049"'), ('"5.7735"', '"5.7736"'), ("mp.sqrt(mp.mpf(size.d))", "mp.mpf(size.d)"), ("'3'", "'4'")],
)
def test_a_wrong_number_formula_or_input_stops_it(right: str, wrong: str) -> None:
    code = code_of(derive(example="the-cat-sat"))
    at = next(k for k, text in enumerate(code) if right in text)
    code[at] = code[at].replace(right, wrong, 1)
    with pytest.raises(AssertionError, match="is printed, and"):
        ran(code)


def test_a_decimal_that_is_not_rounded_is_wrong() -> None:
    setup = code_of(derive(example="the-cat-sat"))[0]
    for printed, right in (
        ("0.667", True),
        ("0.666", False),
        ("0.668", False),
        ("6.67e-1", True),
        ("NaN", False),
        ("inf", False),
    ):
        check = f"check(lambda: mp.mpf(2) / 3, {{(): {printed!r}}})"
        with contextlib.nullcontext() if right else pytest.raises(AssertionError):
            ran([setup, check])


def test_the_notebook_is_valid() -> None:
    nbformat = require("nbformat")
    for d in (derive(example="two-words-causal", gradient=True), hostile(), with_sections(), derive(gradient=True)):
        text = d.to_ipynb()
        book = nbformat.reads(text, as_version=4)
        nbformat.validate(book)
        assert (book.nbformat, text == d.to_ipynb()) == (4, True)
        kinds = [c.cell_type for c in book.cells]
        assert ("code" in kinds) == (d.source is not None) and len(kinds) > len(d.steps)
        assert all(c.outputs == [] for c in book.cells if c.cell_type == "code")
    assert "data:image/svg+xml;base64," in with_sections().to_ipynb()


def test_without_nbformat_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def missing(name: str, *rest: Any, **more: Any) -> Any:
        if name.startswith("nbformat"):
            raise ImportError(name)
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(MissingDependencyError, match=r"pip install 'symattn\[notebook\]'"):
        derive(example="two-words").to_ipynb()


def executed(text: str) -> Any:
    nbformat, nbclient = require("nbformat"), require("nbclient")
    require("ipykernel")
    book = nbformat.reads(text, as_version=4)
    nbclient.NotebookClient(book, timeout=300, kernel_name="python3").execute()
    return book


@pytest.mark.slow
@pytest.mark.filterwarnings(
    "ignore::DeprecationWarning", "ignore::RuntimeWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
)
def test_jupyter_runs_it_and_stops_at_a_wrong_number() -> None:
    nbclient = require("nbclient")
    text = derive(example="the-cat-sat", gradient=True).to_ipynb()
    book = executed(text)
    said = [o.text for c in book.cells if c.cell_type == "code" for o in c.outputs]
    assert len(said) == 8 and all("numbers are right" in x for x in said)
    spoiled = json.dumps(json.loads(text)).replace('\\"0.6048\\"', '\\"0.6047\\"')
    with pytest.raises(nbclient.exceptions.CellExecutionError, match=r"0\.6047 is printed, and 0\.6048"):
        executed(spoiled)
