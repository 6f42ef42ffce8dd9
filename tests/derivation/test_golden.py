"""The shipped derivations are what their files say, in every form."""

from __future__ import annotations

import difflib
import json

import pytest

from tests.derivation import golden

CASES = list(golden.cases())


@pytest.mark.parametrize(("name", "form", "gradient"), CASES, ids=["-".join([n, f, "gradient"][: 2 + g]) for n, f, g in CASES])
def test_a_derivation_is_what_its_file_says(name: str, form: str, gradient: bool) -> None:
    kept, now = golden.path(name, form, gradient).read_text(encoding="utf-8"), golden.written(name, form, gradient)
    changes = "\n".join(list(difflib.unified_diff(kept.splitlines(), now.splitlines(), "kept", "now", lineterm="", n=1))[:60])
    assert kept == now, f"python -m tests.derivation.golden writes the files again; read what changes:\n{changes}"


def test_there_are_no_other_files() -> None:
    assert {p.name for p in golden.FOLDER.iterdir()} == {golden.path(*c).name for c in CASES}


def test_the_numbers_of_an_example_are_in_every_form() -> None:
    for form in golden.FORMS:
        kept = golden.path("the-cat-sat", form, False).read_text(encoding="utf-8")
        text = json.dumps(json.loads(kept)) if form in ("json", "ipynb") else kept
        assert all(number in text for number in ("0.1906", "0.6048", "3.5735")), form
