"""The catalogue of variants: rows of data, one file a family. A new variant is one row, and no engine code.

>>> from symattn.variants import get
>>> get("sliding-window").idea
'causal, and no key further back than the window: i - j < 4'
"""

from __future__ import annotations

from collections.abc import Mapping

from symattn.errors import UnknownNameError, nearest
from symattn.variants import (
    algorithms,
    combinations,
    heads,
    latent,
    layers,
    linear,
    masks,
    normalizers,
    positions,
    scores,
    similarities,
)
from symattn.variants.variant import Variant

__all__ = ["CATALOGUE", "Variant", "families", "family_of", "get", "names"]

FAMILIES = (heads, masks, scores, positions, similarities, normalizers, combinations, latent, layers, linear, algorithms)
CATALOGUE: Mapping[str, Variant] = {row.name: row for family in FAMILIES for row in family.ROWS}


def names() -> tuple[str, ...]:
    """The names of all variants, in the order of the catalogue."""
    return tuple(CATALOGUE)


def families() -> dict[str, str]:
    """The families of the catalogue: name of the file -> what they are about.

    >>> families()["masks"]
    'Which keys a query may see'
    """
    return {f.__name__.rpartition(".")[2]: (f.__doc__ or "").split("\n")[0].rstrip(".") for f in FAMILIES}


def family_of(name: str) -> str:
    """The family of a variant.

    >>> family_of("softcap")
    'scores'
    """
    row = get(name)
    return next(f.__name__.rpartition(".")[2] for f in FAMILIES if row in f.ROWS)


def get(name: str) -> Variant:
    """The variant of this name.

    Raises
    ------
    UnknownNameError
        With the nearest names.

    >>> get("grouped-query").definition
    Definition(heads=4, kv_heads=2)
    """
    if name not in CATALOGUE:
        raise UnknownNameError(f"no variant is called {name!r}. {nearest(name, CATALOGUE)}")
    return CATALOGUE[name]
