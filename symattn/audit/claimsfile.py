"""Claims files: what a page gives, what it computes, and the numbers that it prints. TOML, read strictly and exactly.

.. code-block:: toml

    title = "a page"
    [inputs]                      # X, W_Q, W_K, W_V, W_O, or Q, K, V, or scores, scaled, weights; dO; free names
    Q = [["1", "0"]]
    K = [["1", "0"], ["0", "1"]]
    V = [["10", "0"], ["0", "20"]]
    half_width = "0.005"          # where the page rounded them; or {Q = "0.05"}, or "printed": half a unit of each last place
    [definition]                  # the fields of a definition
    scale = "1"
    [let]                         # names for expressions
    unscaled = "softmax(scores)"
    [claims]                      # a quantity, a row or an element of it: what is printed
    "weights[0]" = ["0.731", "0.269"]
    first = {of = "output[0]", printed = ["7.31", "5.38"], from = ["weights[0]"]}

Several computations on one page are tables ``[[example]]`` with a ``name`` and the same keys; what stands outside of them holds
for all. Indices count from 0. A number that the page leaves out is ``"..."``.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from symattn.audit.printed import Printed
from symattn.errors import FileFormatError, InputValueError, LimitError, nearest
from symattn.numbers import exact_number

Array = npt.NDArray[Any]

TOP = ("title", "source", "about", "inputs", "definition", "let", "claims", "example")
OF_EXAMPLE = ("name", "about", "inputs", "definition", "let", "claims")
OF_CLAIM = ("of", "printed", "from")
GAPS = ("...", "…", "?", "\\ldots", "\\dots")
MOST_BITS = 2000
MAX_BYTES, MAX_NUMBERS, MAX_NAME, MAX_EXAMPLES = 2_000_000, 20_000, 200, 200


class Typed(str):
    """A decimal of a TOML file as it was typed."""

    __slots__ = ()


@dataclass(frozen=True)
class Given:
    """An input: exact values, and how far the true ones may be from them (half a unit where a page rounded, else 0)."""

    values: Array
    half_widths: Array


@dataclass(frozen=True)
class Claim:
    """What a page prints of a quantity.

    Parameters
    ----------
    name
        As in the file.
    of
        The quantity or expression; the name where the file gives no other.
    printed
        Object array of :class:`~symattn.audit.printed.Printed`, None where the page leaves a number out.
    origin
        The claims from whose printed numbers the page computed this one; None: all that come before it and are on the way.
    """

    name: str
    of: str
    printed: Array
    origin: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Example:
    """One computation of a page: its inputs, fields of a definition as typed, named expressions, and claims in their order."""

    name: str
    inputs: Mapping[str, Given]
    definition: Mapping[str, Any]
    let: Mapping[str, str]
    claims: tuple[Claim, ...]


@dataclass(frozen=True)
class ClaimsFile:
    """A page as a claims file says it."""

    title: str
    source: str
    examples: tuple[Example, ...]
    about: str = field(default="")


def load(path: str | Path) -> ClaimsFile:
    """The claims file at a path.

    Raises
    ------
    FileFormatError, InputValueError, LimitError
        As :func:`parse`, and when the file cannot be read.
    """
    try:
        data = Path(path).read_bytes()
    except OSError as why:
        raise FileFormatError(f"{path}: cannot be read: {why.strerror or why}") from why
    return parse(data, str(path))


def parse(data: bytes, name: str) -> ClaimsFile:
    r"""The claims in the bytes of a TOML file; ``name`` is for messages.

    Raises
    ------
    FileFormatError
        When it is no TOML, has a key that is not known, lacks one, or holds a value of another kind.
    InputValueError
        When a number is none, or rows have unequal lengths.
    LimitError
        When it is too large.

    >>> page = parse(b'[inputs]\nscores = ["1", "2"]\n[claims]\nweights = ["0.27", "0.73"]', "demo")
    >>> page.examples[0].claims[0].printed[1].unit
    Fraction(1, 100)
    """
    if len(data) > MAX_BYTES:
        raise LimitError(f"{name}: {len(data)} bytes; a claims file has at most {MAX_BYTES}")
    try:
        table = tomllib.loads(data.decode("utf-8"), parse_float=Typed)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as why:
        raise FileFormatError(f"{name}: is no TOML file: {why}") from why
    return _Reader(name).page(table)


class _Reader:
    """Reads the tables of one file; every message names the file and the key."""

    def __init__(self, name: str) -> None:
        self.name, self.read = name, 0

    def fail(self, key: str, why: str, kind: type[Exception] = FileFormatError) -> Exception:
        return kind(f"{self.name}: {key}: {why}")

    def page(self, table: dict[str, Any]) -> ClaimsFile:
        self.known(table, TOP, "")
        listed = self.of_kind(table, "example", list, [], "")
        if len(listed) > MAX_EXAMPLES or not all(isinstance(x, dict) for x in listed):
            raise self.fail("example", f"at most {MAX_EXAMPLES} tables [[example]], each with name, inputs and claims")
        shared = {key: self.of_kind(table, key, dict, {}, "") for key in ("inputs", "definition", "let")}
        own = self.of_kind(table, "claims", dict, {}, "")
        examples = [self.example({"claims": own}, shared, "")] if own or not listed else []
        for k, part in enumerate(listed):
            place = f"example[{k}]"
            self.known(part, OF_EXAMPLE, place + ".")
            called = self.of_kind(part, "name", str, f"example{k + 1}", place + ".")
            examples.append(self.example(part, shared, called, place + "."))
        if len({x.name for x in examples}) < len(examples):
            raise self.fail("example", "two of them have the same name")
        if not any(x.claims for x in examples):
            raise self.fail("claims", "there are none; write under [claims] what the page prints, such as weights = [...]")
        text = {key: self.of_kind(table, key, str, "", "") for key in ("title", "source", "about")}
        return ClaimsFile(text["title"] or Path(self.name).stem, text["source"], tuple(examples), text["about"])

    def known(self, table: Mapping[str, Any], keys: tuple[str, ...], place: str) -> None:
        for key in table:
            if key not in keys:
                raise self.fail(place + key, f"unknown key. {nearest(key, keys)}")

    def of_kind(self, table: Mapping[str, Any], key: str, kind: type, default: Any, place: str) -> Any:
        value = table.get(key, default)
        if not isinstance(value, kind) or isinstance(value, Typed):
            wanted = "text" if kind is str else "a table" if kind is dict else "a list"
            raise self.fail(place + key, f"got {_shown(value)}; allowed: {wanted}")
        return value

    def example(self, part: Mapping[str, Any], shared: Mapping[str, Any], name: str, place: str = "") -> Example:
        merged = {k: {**shared[k], **self.of_kind(part, k, dict, {}, place)} for k in ("inputs", "definition", "let")}
        inputs = merged["inputs"]
        wide = inputs.pop("half_width", None)
        given = {key: self.given(key, value, place) for key, value in inputs.items()}
        for key, text in merged["let"].items():
            if not isinstance(text, str) or isinstance(text, Typed) or not text.strip():
                raise self.fail(f"{place}let.{key}", f"got {_shown(text)}; allowed: an expression as text")
        claims = tuple(
            self.claim(key, value, f"{place}claims.{key}") for key, value in self.of_kind(part, "claims", dict, {}, place).items()
        )
        self.origins(claims, place)
        return Example(name, self.widened(given, inputs, wide, place), merged["definition"], merged["let"], claims)

    def origins(self, claims: tuple[Claim, ...], place: str) -> None:
        seen: list[str] = []
        for c in claims:
            for o in c.origin or ():
                if o not in seen:
                    raise self.fail(f"{place}claims.{c.name}.from", f"no claim {o!r} comes before it. {nearest(o, seen)}")
            seen.append(c.name)

    # inputs

    def given(self, key: str, value: Any, place: str) -> Array:
        if len(key) > MAX_NAME:
            raise self.fail(f"{place}inputs.{key[:20]}...", f"a name has at most {MAX_NAME} characters", LimitError)
        return self.array(f"{place}inputs.{key}", value, lambda text: _exact(text))

    def widened(self, given: Mapping[str, Array], typed: Mapping[str, Any], wide: Any, place: str) -> dict[str, Given]:
        """The inputs with their half widths."""
        key = f"{place}inputs.half_width"
        each = wide if isinstance(wide, dict) else dict.fromkeys(given, wide) if wide is not None else {}
        for name in each:
            if name not in given:
                raise self.fail(f"{key}.{name}", f"there is no such input. {nearest(name, given)}")
        out = {}
        for name, values in given.items():
            if each.get(name) == "printed":
                widths = self.array(f"{place}inputs.{name}", typed[name], lambda text: Printed(text).half_width)
            else:
                one = self.array(f"{key}.{name}" if isinstance(wide, dict) else key, each.get(name, 0), _exact)
                if any(isinstance(w, float) or w < 0 for w in one.ravel().tolist()):
                    raise self.fail(key, 'a half width is a number that is not negative, or "printed"', InputValueError)
                try:
                    widths = np.broadcast_to(one, values.shape)
                except ValueError as why:
                    raise self.fail(key, f"its shape {one.shape} does not fit {name} of {values.shape}", InputValueError) from why
            out[name] = Given(values, widths)
        return out

    # claims

    def claim(self, name: str, value: Any, place: str) -> Claim:
        if len(name) > MAX_NAME:
            raise self.fail(place[:60] + "...", f"a name has at most {MAX_NAME} characters", LimitError)
        table = value if isinstance(value, dict) else {"printed": value}
        self.known(table, OF_CLAIM, place + ".")
        if "printed" not in table:
            raise self.fail(place, "lacks `printed`: the numbers as the page prints them")
        of = self.of_kind(table, "of", str, name, place + ".")
        origin = table.get("from")
        origin = [origin] if isinstance(origin, str) else origin
        if origin is not None and not (isinstance(origin, list) and all(isinstance(x, str) for x in origin)):
            raise self.fail(place + ".from", f"got {_shown(origin)}; allowed: the name of an earlier claim, or a list of them")
        printed = self.array(place, table["printed"], lambda text: None if text.strip() in GAPS else Printed(text))
        return Claim(name, of, printed, None if origin is None else tuple(origin))

    def array(self, place: str, value: Any, number: Any) -> Array:
        """An array of what ``number`` makes of each entry's text."""
        if isinstance(value, list):
            if not value:
                raise self.fail(place, "an empty list holds no numbers", InputValueError)
            parts = [self.array(f"{place}[{k}]", x, number) for k, x in enumerate(value)]
            if len({p.shape for p in parts}) > 1:
                raise self.fail(place, f"rows of unequal lengths: {sorted({p.shape for p in parts})}", InputValueError)
            out = np.empty((len(parts), *parts[0].shape), dtype=object)
            for k, p in enumerate(parts):
                out[k] = p if p.shape else p[()]
            return out
        if isinstance(value, bool) or not isinstance(value, (int, str)) or (isinstance(value, str) and not value.strip()):
            raise self.fail(place, f"got {_shown(value)}; allowed: a number in quotes, as it is printed, or lists of them")
        self.read += 1
        if self.read > MAX_NUMBERS:
            raise self.fail(place, f"more than {MAX_NUMBERS} numbers in one file", LimitError)
        out = np.empty((), dtype=object)
        try:
            out[()] = number(str(value))
        except InputValueError as why:
            raise self.fail(place, str(why), InputValueError) from why
        return out


def _exact(text: Any) -> Fraction | float:
    """The exact value of an input: any number of symattn, or one as pages print them."""
    if not isinstance(text, str):
        return Fraction(text)
    try:
        found: Fraction | float = exact_number(text)
    except InputValueError:
        p = Printed(text)
        found = float("inf") * int(p.value) if p.kind == "infinity" else p.value
    if isinstance(found, Fraction) and max(found.numerator.bit_length(), found.denominator.bit_length()) > MOST_BITS:
        raise InputValueError(f"{_shown(text)} is larger or smaller than any number of a page (more than {MOST_BITS} bits)")
    if found != found:
        raise InputValueError("nan is no number that a page computes with")
    return found


def _shown(value: object) -> str:
    s = repr(value)
    return s if len(s) <= 60 else s[:57] + "..."
