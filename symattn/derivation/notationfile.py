r"""Files of notations in TOML: read, checked key by key, and refused with the line, the key and what is allowed.

The keys are ``transpose``, ``hadamard``, ``convention``, ``decimal``, ``origin``, ``heads`` and the tables ``[letters]`` and
``[sizes]``; the table in docs/derive.md says what each takes.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from symattn.derivation.notation import ALLOWED, SIGNS, Notation, letter
from symattn.derivation.shippedfiles import Shelf
from symattn.errors import FileFormatError, nearest
from symattn.fields import BY_LETTER, HELPERS
from symattn.readings.typesetting.lettertable import SYMBOLS, TENSORS

SHELF = Shelf("notations", "notation", "a notation file", limit=100_000)
KEYS = (*SIGNS, "origin", "heads", "letters", "sizes")
FIELDS = frozenset(row.field for row in BY_LETTER.values())
LETTERS = frozenset({*BY_LETTER, *HELPERS, *TENSORS, *"QKVORSAZPELDXYml"})
SIZES = frozenset({*SYMBOLS, *"nmdHBGL", "Hkv"})
_HEAD = re.compile(r"[A-Za-z0-9][A-Za-z0-9 -]{0,15}")


def shipped() -> tuple[str, ...]:
    """The names of the notations that ship with symattn.

    >>> shipped()
    ('lecture',)
    """
    return SHELF.names()


def load(source: str | Path) -> Notation:
    """The notation of a file, or of a name that is shipped.

    Raises
    ------
    UnknownNameError
        When a bare name is no shipped notation.
    FileFormatError
        When the file cannot be read, is no TOML, or says something that is not allowed.

    >>> load("lecture").transpose
    'T'
    """
    return parse(*SHELF.read(source))


def parse(data: bytes, name: str) -> Notation:
    """The notation in the bytes of a TOML file; ``name`` is for messages.

    Raises
    ------
    FileFormatError
        With the line, the key, and what is allowed.
    """
    try:
        text = data.decode("utf-8")
        table = tomllib.loads(text)
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as why:
        raise FileFormatError(f"{name}: this is no TOML: {why}") from why
    return _Reader(name, text, table).notation()


@dataclass(frozen=True)
class _Reader:
    name: str
    text: str
    table: Mapping[str, Any]

    def notation(self) -> Notation:
        for key in self.table:
            if key not in KEYS:
                raise self.fail("", key, None, f"one of the keys {', '.join(KEYS)}. {nearest(key, KEYS)}")
        signs = {key: self.sign(key) for key in SIGNS if key in self.table}
        origin = self.table.get("origin")
        if origin is not None and (isinstance(origin, bool) or origin not in (0, 1)):
            raise self.fail("", "origin", origin, "0 or 1")
        letters = {self.tensor(key): self.letter("letters", key, tex) for key, tex in self.rows("letters").items()}
        sizes = {self.size(key): self.letter("sizes", key, tex) for key, tex in self.rows("sizes").items()}
        return Notation(letters=letters, sizes=sizes, origin=origin, heads=self.heads(), name=self.name, **signs)

    def sign(self, key: str) -> str:
        value = self.table[key]
        if not isinstance(value, str) or value not in SIGNS[key]:
            raise self.fail("", key, value, " or ".join(map(repr, dict.fromkeys(SIGNS[key].values()))).replace("\\\\", "\\"))
        return SIGNS[key][value]

    def rows(self, key: str) -> Mapping[str, Any]:
        found = self.table.get(key, {})
        if not isinstance(found, dict):
            raise self.fail("", key, found, "a table: name = 'letter'")
        return found

    def tensor(self, key: str) -> str:
        if key in FIELDS or key in LETTERS:
            return key
        known = sorted(FIELDS | LETTERS)
        raise self.fail("letters", key, None, f"a tensor, by the name of its field or its letter. {nearest(key, known)}")

    def size(self, key: str) -> str:
        if key not in SIZES:
            raise self.fail("sizes", key, None, f"one of the sizes {', '.join(sorted(SIZES))}. {nearest(key, SIZES)}")
        return key

    def letter(self, table: str, key: str, value: object) -> str:
        found = letter(value) if isinstance(value, str) else None
        if found is None:
            raise self.fail(table, key, value, ALLOWED)
        return found

    def heads(self) -> tuple[str, ...]:
        value = self.table.get("heads", [])
        if not isinstance(value, list) or not all(isinstance(x, str) and _HEAD.fullmatch(x) for x in value):
            raise self.fail("", "heads", value, "a list of names of at most 16 letters, digits, blanks and hyphens")
        if len(set(value)) < len(value):
            raise self.fail("", "heads", value, "a name of its own for every head")
        return tuple(value)

    def fail(self, table: str, key: str, value: object, allowed: str) -> FileFormatError:
        whole = f"{table}.{key}" if table else key
        got = "got {}; ".format(repr(value).replace("\\\\", "\\")) if value is not None else ""
        return FileFormatError(f"{self.name}: line {self.line(table, key)}: {whole}: {got}allowed: {allowed}")

    def line(self, table: str, key: str) -> int:
        """The line of a key, counted from 1; that of its table where the key is written in another way."""
        at, found = "", 1
        for k, row in enumerate(self.text.splitlines(), 1):
            head = re.match(r"\s*\[\s*([^\]]*?)\s*\]\s*(#.*)?$", row)
            at = head[1].strip("\"'") if head else at
            if (head and at == (table or key)) or (table and re.match(rf"\s*{re.escape(table)}\s*[.=]", row)):
                found = k
            if at == table and re.match(rf"\s*[\"']?{re.escape(key)}[\"']?\s*=", row):
                return k
        return found
