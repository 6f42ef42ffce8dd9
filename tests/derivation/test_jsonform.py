"""JSON: every document is valid by the shipped schema, says all of the model, and the schema refuses what is wrong."""

from __future__ import annotations

import copy
import json
from dataclasses import fields
from functools import cache
from typing import Any

import pytest

from symattn.derivation import Derivation, derive, examples
from symattn.derivation.document import Step
from symattn.derivation.jsonform import schema
from tests.derivation.cases import TWO_HEADS, hostile, variant, wide
from tests.derivation.test_markup import with_sections
from tests.derivation.test_notebook import drawn
from tests.support import require, rows


@cache
def validator() -> Any:
    jsonschema = require("jsonschema")
    kind = jsonschema.Draft202012Validator
    kind.check_schema(json.loads(schema()))
    return kind(json.loads(schema()))


def faults(data: object) -> list[str]:
    return [f"{error.json_path}: {error.message}" for error in validator().iter_errors(data)]


def data_of(d: Derivation) -> Any:
    return json.loads(d.to_json(), parse_float=lambda x: pytest.fail(f"a float: {x}"), parse_constant=lambda x: pytest.fail(x))


@pytest.mark.parametrize("name", examples.shipped())
def test_shipped_examples(name: str) -> None:
    assert faults(data_of(derive(example=name, gradient=True))) == []


def test_hostile_words_wide_numbers_heads_tangents_and_sections() -> None:
    two_heads = examples.parse(TWO_HEADS, "two heads")
    found = [hostile(), wide(), derive(example=two_heads, gradient=True, show_max=True), derive(hvp=True), with_sections()]
    found += [derive(example=two_heads, detail="full", show="side-by-side", shapes=True, values=True), derive(detail="brief")]
    assert [x for d in found for x in faults(data_of(d))] == []


@pytest.mark.parametrize("name", rows())
def test_every_variant(name: str) -> None:
    assert faults(data_of(variant(name))) == []
    assert faults(data_of(drawn(name))) == []


def test_all_of_the_model_is_said() -> None:
    data = data_of(with_sections())
    said = {"inputs": "given", "style": "origin"}
    assert {said.get(f.name, f.name) for f in fields(Derivation)} <= set(data)
    assert {f.name for f in fields(Step)} <= set(data["steps"][0])
    first = data["sections"][0]["blocks"]
    assert {b["kind"] for b in first} == {"prose", "display", "table", "algorithm", "picture", "box"}
    assert data["steps"][5]["uses"] and data["steps"][5]["numbers"] in ("exact", "enclosed")
    source = data["source"]
    assert source["statements"][-1].startswith("O[i, e] = sum over j") and source["sizes"]["n"] == 2
    assert source["inputs"]["tok"] == ["0", "1"]


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("version",), 1),
        (("digits",), 4),
        (("steps", 0, "number"), "1"),
        (("steps", 0, "more"), 1),
        (("steps", 2, "lines", 0, "decimal"), 1.5),
        (("steps", 2, "lines", 0, "decimal"), "1,5"),
        (("given", 0, "cells", 0, 0, "decimal"), 1),
        (("sections", 0, "blocks", 0, "kind"), "poem"),
        (("sections", 0, "blocks", 0, "parts", 1), {"tex": "x"}),
        (("source", "inputs", "tok", 0), 0.5),
        (("maps", 0, "heads", 0, "weights", 0, 0), 0.5),
    ],
)
def test_the_schema_refuses_what_is_wrong(place: tuple[str | int, ...], value: object) -> None:
    data = copy.deepcopy(_data())
    node = data
    for key in place[:-1]:
        node = node[key]
    node[place[-1]] = value
    assert faults(data)


@cache
def _data() -> Any:
    return data_of(with_sections())


def test_every_key_is_required_and_said() -> None:
    for key in _data():
        assert faults({k: v for k, v in _data().items() if k != key})
    for name, part in json.loads(schema())["$defs"].items():
        assert part.get("description") or name == "rows", name
