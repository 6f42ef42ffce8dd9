"""Declared arithmetics: what they refuse, and that they come back from what they write down."""

from __future__ import annotations

import json
import math
from dataclasses import fields, replace
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from symattn import arithmetic
from symattn.arithmetic import PRESETS, Arithmetic, declaration, get
from symattn.arithmetic.reading import upward
from symattn.errors import DefinitionError, FileFormatError, UnknownNameError
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
        ({"preset": "flash-bf16", "exp_error": 10**400}, "exp_error must be a number >= 0"),
        ({"preset": "flash-bf16", "gradient_scale": 10**400}, "gradient_scale must be a number > 0"),
        ({"preset": "flash-bf16", "depth": 10**400}, "depth must be a positive integer"),
        ({"preset": "flash-bf16", "shift_roundings": 1001}, "shift_roundings must be an integer >= 0 and <= 1000"),
        ({"preset": "flash-bf16", "scale_before": -1}, "scale_before must be an integer >= 0"),
        ({"preset": "flash-bf16", "flush_to_zero": "no"}, "flush_to_zero must be true or false"),
        ({"preset": "flash-bf16", "algorithm": "magic"}, "algorithm is 'naive' or 'log' or 'flash'"),
        ({"preset": "eager-bf16", "staged": True}, "staged needs a backward"),
        ({"preset": "flash-bf16", "output": None}, "output must be the name of a format"),
        ({"preset": 3}, "preset is the name"),
        ({"preset": "flash-bf16", "truncate": ["sums"]}, "truncate lists 'accumulate' or 'operand' or 'probability', got 'sums'"),
        ({"preset": "flash-bf16", "truncate": 3}, "truncate is a list"),
        ({"preset": "flash-bf16", "block": 0}, "block must be a positive integer"),
        ({"preset": "flash-bf16", "block_bits": 13}, "declare block too"),
        ({"preset": "flash-fp32", "sum_from_cast": True}, "declare probability"),
        ({"preset": "flash-fp32", "probability_scale": 256.0}, "declare probability"),
        ({"preset": "flash-bf16", "probability_scale": 0}, "probability_scale must be a number > 0"),
        ({"preset": "flash-bf16", "probability_overflow": "wrap"}, "probability_overflow is 'saturate' or 'nan'"),
        ({"preset": "flash-bf16", "order": "forward"}, "order and shift are declared together"),
        ({"preset": "flash-bf16", "order": "random", "shift": "running"}, "order is 'forward' or 'reverse'"),
        ({"preset": "flash-bf16", "order": "forward", "shift": "running", "stale": 2.0}, "lags"),
        ({"preset": "flash-bf16", "name": 3}, "name is a text"),
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


def test_what_people_run_has_a_name():
    eager = ("eager-fp32", "eager-bf16", "eager-fp16")
    flash = ("flash-bf16", "flash-fp16", "flash-fp32", "flash-fp8", "flash-tf32", "fast-exp")
    assert {get(name).name for name in (*eager, *flash)} == {*eager, *flash}
    assert get("flash-fp8").input == "float8_e4m3fn" and get("flash-fp8").probability_scale == 2**8
    assert arithmetic.default_for("e4m3").name == "flash-fp8"


CHANGED = {
    "probability_scale": 256.0,
    "probability_overflow": "nan",
    "sum_from_cast": True,
    "truncate": ("operand",),
    "block": 16,
    "block_bits": 13,
    "order": "reverse",
    "shift": "running",
    "query_tile": 64,
    "dkv_accumulate": "float16",
    "scale_before": 1,
    "scale_format": "float16",
    "expand_heads": True,
}


def test_every_changed_field_is_told_and_comes_back():
    a = replace(get("flash-bf16"), **CHANGED)
    text = a.describe()
    said = ("scaled by 256", "overflow is NaN", "row sum of the rounded ones", "truncated: operand", "16 products at once")
    for part in (*said, "cut off after 13 bits", "tiles reverse, running maximum", "1 operand scaled before in float16"):
        assert part in text, part
    assert "before normalising" in text and "after normalising" in replace(get("eager-bf16"), probability="fp16").describe()
    assert Arithmetic.from_dict(json.loads(json.dumps(a.to_dict()))) == a


def test_a_file_says_what_a_mapping_says(tmp_path):
    file = tmp_path / "mine.toml"
    text = 'preset = "flash-bf16"\ntile = 128\nexp_error = 1.1e-4\ntruncate = ["accumulate"]\n'
    for written in (text, "[arithmetic]\n" + text):
        file.write_text(written)
        a = declaration(str(file))
        assert a == declaration(file) and (a.tile, a.truncate, a.name) == (128, ("accumulate",), "flash-bf16+")
        assert Fraction(a.exp_error) >= Fraction(11, 100000) > Fraction(math.nextafter(a.exp_error, 0))
    assert declaration(None) is None and declaration(a) is a and declaration("flash-bf16") is get("flash-bf16")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('preset = "flash-bf16"\ntyle = 3\n', "mine.toml: an arithmetic has no field 'tyle'. Did you mean 'tile'"),
        ('preset = "flash-bf16"\ntile = 1.5\n', "tile must be a positive integer or None, got 1.5"),
        ('preset = "flash-bf61"\n', "no declared arithmetic 'flash-bf61'"),
        ('preset = "flash-bf16"\nexp_error = inf\n', "exp_error must be a number >= 0, got inf"),
        ('preset = "flash-bf16"\nexp_error = nan\n', "exp_error must be a number >= 0"),
        ('preset = "flash-bf16"\nexp_error = 1e999\n', "exp_error must be a number >= 0, got inf"),
        ('preset = "flash-bf16"\nprobability = "bf17"\n', "no float format 'bf17'"),
        ('preset = "flash-bf16"\nlse = 3\n', "lse must be the name of a format, got 3"),
        ("tile = \n", "is no TOML"),
        ('arithmetic = "flash-bf16"\n', "one table"),
        ("[arithmetic]\ntile = 3\n[other]\nx = 1\n", "not in both"),
        ("", "needs name, input"),
        ("x = " + "[" * 5000 + "\n", "is no TOML"),
    ],
)
def test_errors_of_a_file_name_it_and_the_key(tmp_path, text, message):
    file = tmp_path / "mine.toml"
    file.write_text(text)
    with pytest.raises(FileFormatError) as error:
        declaration(str(file))
    assert message in str(error.value) and "mine.toml" in str(error.value)


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(FileFormatError, match="cannot be read"):
        declaration(str(tmp_path / "none.toml"))
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(FileFormatError, match="is no TOML"):
        declaration(str(tmp_path / "binary.toml"))
    (tmp_path / "big.toml").write_text("#" * (2**20 + 1))
    with pytest.raises(FileFormatError, match="more than"):
        declaration(str(tmp_path / "big.toml"))
    with pytest.raises(DefinitionError, match="a name, a mapping"):
        declaration(3)  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["0.1", "1.1e-4", "1e-400", "0.5", "5e-324"])
def test_decimals_of_errors_are_rounded_up(text):
    value = upward("exp_error", Decimal(text))
    assert Fraction(value) >= Fraction(Decimal(text))
    assert value == 5e-324 or Fraction(math.nextafter(value, 0)) < Fraction(Decimal(text))
    assert upward("probability_scale", Decimal("0.1")) == 0.1


def test_every_field_and_preset_is_on_the_page():
    from pathlib import Path

    page = (Path(__file__).parents[1] / "docs" / "arithmetic.md").read_text(encoding="utf-8")
    for f in fields(Arithmetic):
        assert f"`{f.name}`" in page, f.name
    for name in PRESETS:
        assert f"`{name}`" in page or f"`{name.rpartition('-')[0]}-*`" in page, name
