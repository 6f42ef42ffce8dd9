"""Files of one kind: those that ship with symattn, by their names, and those of a user, by their paths."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from symattn.errors import FileFormatError, UnknownNameError, nearest


@dataclass(frozen=True)
class Shelf:
    """A folder of TOML files beside this module.

    Parameters
    ----------
    folder
        Its name.
    called, kind
        What messages call a name on the shelf ("notation") and a file of that kind ("a notation file").
    limit
        How many bytes a file of a user may have.

    >>> Shelf("notations", "notation", "a notation file", 100).names()
    ('lecture',)
    """

    folder: str
    called: str
    kind: str
    limit: int

    def names(self) -> tuple[str, ...]:
        """The names of the files that ship."""
        files = (resources.files("symattn.derivation") / self.folder).iterdir()
        return tuple(sorted(f.name.removesuffix(".toml") for f in files if f.name.endswith(".toml")))

    def read(self, source: str | Path) -> tuple[bytes, str]:
        """What a file holds, and what messages call it; a text without a slash that does not end in .toml is a name.

        Raises
        ------
        UnknownNameError
            When no file of that name ships.
        FileFormatError
            When the file cannot be read or is too large.
        """
        text = str(source)
        if isinstance(source, str) and not text.endswith(".toml") and "/" not in text and "\\" not in text:
            if text not in self.names():
                said = f"there is no {self.called} {text!r}. {nearest(text, self.names())}"
                raise UnknownNameError(f"{said} A file is given by its path, ending in .toml")
            return (resources.files("symattn.derivation") / self.folder / f"{text}.toml").read_bytes(), text
        path = Path(source)
        try:
            size = path.stat().st_size
            if size > self.limit:
                raise FileFormatError(f"{path}: {size} bytes; {self.kind} has at most {self.limit}")
            return path.read_bytes(), str(path)
        except OSError as why:
            raise FileFormatError(f"{path}: cannot be read: {why.strerror or why}") from why
