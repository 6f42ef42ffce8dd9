"""An arithmetic from what a user gives: a declaration, the name of a preset, a mapping, or a TOML file.

A file holds one table of fields, at the top or under ``[arithmetic]``; ``preset`` names what it starts from::

    preset = "flash-bf16"
    tile = 128
    exp_error = 1.1e-4

A decimal is read as the rational that it is; of an error the next float64 that is not smaller is kept.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

from symattn.arithmetic.declared import Arithmetic
from symattn.arithmetic.presets import get
from symattn.errors import DefinitionError, FileFormatError
from symattn.formats import round_exact

LARGEST = 2**20
"""The most bytes of a file that is read."""
UPWARD = ("exp_error", "log_error", "tanh_error", "function_error", "stale")
"""Fields whose decimals are rounded up: a bound that holds for less than was said would be wrong."""


def declaration(given: Arithmetic | str | Path | Mapping[str, Any] | None) -> Arithmetic | None:
    """What a user gives for an arithmetic, as one; None stays None.

    Parameters
    ----------
    given
        An ``Arithmetic``, the name of a preset, a file that ends in ``.toml``, or a mapping of fields.

    Raises
    ------
    UnknownNameError, DefinitionError
        For a preset, field or value that does not exist.
    FileFormatError
        For a file that cannot be read or is no TOML.

    >>> declaration({"preset": "flash-bf16", "tile": 64}).tile
    64
    """
    if given is None or isinstance(given, Arithmetic):
        return given
    if isinstance(given, Mapping):
        return Arithmetic.from_dict({k: upward(k, v) for k, v in given.items()})
    if isinstance(given, (str, Path)):
        return from_toml(Path(given)) if str(given).endswith(".toml") else get(str(given))
    raise DefinitionError(f"an arithmetic is a declaration, a name, a mapping or a .toml file, got {given!r}")


def from_toml(path: Path) -> Arithmetic:
    """The arithmetic of a TOML file; messages name the file.

    Raises
    ------
    FileFormatError
        When the file cannot be read, is no TOML, or says something that no arithmetic has.
    """
    try:
        with path.open("rb") as f:
            raw = f.read(LARGEST + 1)
        if len(raw) > LARGEST:
            raise FileFormatError(f"{path}: more than {LARGEST} bytes, and an arithmetic is a table of some lines")
        table = tomllib.loads(raw.decode("utf-8"), parse_float=Decimal)
    except OSError as error:
        raise FileFormatError(f"{path}: cannot be read: {error.strerror or error}") from error
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise FileFormatError(f"{path}: is no TOML: {error}") from error
    inner = table.get("arithmetic", table)
    if not isinstance(inner, dict) or ("arithmetic" in table and len(table) > 1):
        raise FileFormatError(f"{path}: the fields of an arithmetic stand at the top or in one table [arithmetic], not in both")
    try:
        return Arithmetic.from_dict({k: upward(k, v) for k, v in inner.items()})
    except (DefinitionError, LookupError) as error:
        raise FileFormatError(f"{path}: {error}") from error


def upward(field: str, value: Any) -> Any:
    """A decimal or rational as the float64 that a field holds: of an error the next one that is not smaller.

    >>> upward("exp_error", Decimal("1e-4")) >= Fraction(1, 10**4), upward("tile", 64)
    (True, 64)
    """
    if not isinstance(value, (Decimal, Fraction)):
        return value
    if isinstance(value, Decimal) and not value.is_finite():
        return float(value)
    if isinstance(value, Decimal) and value.adjusted() > 400:
        return math.inf
    if isinstance(value, Decimal) and value.adjusted() < -400:
        return math.nextafter(0.0, math.inf) if value > 0 and field in UPWARD else 0.0
    return float(round_exact(Fraction(value), "float64", towards=int(field in UPWARD)))
