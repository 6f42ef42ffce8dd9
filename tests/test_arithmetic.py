"""Declared arithmetics: what they refuse, and that they come back from what they write down."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from symattn import arithmetic
from symattn.arithmetic import PRESETS, Arithmetic, get
from symattn.errors import DefinitionError, UnknownNameError
from symattn.measured import MEASURED


@pytest.mark.parametrize("name", [*PRESETS, *MEASURED])
def test_presets_have_their_name_and_survive_json(name):
    a = get(name)
    assert a.name == name and a is {**PRESETS, **MEASURED}[name]
    assert Arithmetic.from_dict(json.loads(json.dumps(a.to_dict()))) == a
    assert a.describe().startswith(f"{name}: ") and "\n" not in a.describe()
    assert a.source


@pytest.mark.parametrize("name", MEASURED)
def test_measured_declarations_say_on_what(name):
    assert MEASURED[name].source.split()[1][0].isdigit() and "measured" in MEASURED[name].remark


def test_format_names_are_canonical():
    assert arithmetic.flash("bf16") == get("flash-bf16")
    assert replace(get("flash-bf16"), accumulate="fp16").accumulate == "float16"
    assert arithmetic.default_for(np.float32).name == "flash-fp32"


def test_changes_of_a_preset():
    a = Arithmetic.from_dict({"preset": "flash-bf16", "name": "mine", "tile": 64, "exp_error": 1e-4})
    assert (a.name, a.tile, a.exp_error, a.probability) == ("mine", 64, 1e-4, "bfloat16")
    assert a.tiles(1) == 1 and a.tiles(64) == 1 and a.tiles(65) == 2
    assert "tile 64" in a.describe() and "exp 0.0001" in a.describe()


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({"preset": "flash-bf16", "tyle": 64}, "no field 'tyle'. Did you mean 'tile'"),
        ({"name": "x"}, "needs input, accumulate"),
        ({"preset": "flash-bf16", "tile": 0}, "tile must be a positive integer"),
        ({"preset": "flash-bf16", "tile": 1.5}, "tile must be a positive integer"),
        ({"preset": "flash-bf16", "tile": True}, "tile must be a positive integer"),
        ({"preset": "flash-bf16", "exp_error": -1.0}, "exp_error must be a number >= 0"),
        ({"preset": "flash-bf16", "exp_error": float("nan")}, "exp_error must be a number >= 0"),
        ({"preset": "flash-bf16", "scale_before": -1}, "scale_before must be an integer >= 0"),
        ({"preset": "flash-bf16", "flush_to_zero": "no"}, "flush_to_zero must be true or false"),
        ({"preset": "flash-bf16", "algorithm": "magic"}, "algorithm is 'naive' or 'flash'"),
        ({"preset": "eager-bf16", "staged": True}, "staged needs a backward"),
        ({"preset": "flash-bf16", "output": None}, "output must be the name of a format"),
    ],
)
def test_what_is_refused(record, message):
    with pytest.raises(DefinitionError, match=message):
        Arithmetic.from_dict(record)


def test_unknown_names_come_with_the_nearest():
    with pytest.raises(UnknownNameError, match="flash-bf16"):
        get("flash-bf61")
    with pytest.raises(UnknownNameError, match="bfloat16"):
        Arithmetic.from_dict({"preset": "flash-bf16", "output": "bfloat61"})
    with pytest.raises(UnknownNameError, match="no default arithmetic for float8_e5m2"):
        arithmetic.default_for("fp8_e5m2")
