"""What the axes of a tensor are, in words, by the name of its field: for pictures and manifests."""

from __future__ import annotations

from symattn.fields import ROWS

AXIS_WORDS = {"b": "batch", "H": "head", "K": "key head", "i": "query", "j": "key", "t": "key", "c": "channel", "e": "channel"}


def axes_of(name: str, ndim: int) -> tuple[str, ...]:
    """The axes of the field ``name``; those that have no name of their own are numbered.

    >>> axes_of("out", 4), axes_of("grad_key", 4), axes_of("lse", 3), axes_of("grad_attn_mask", 4), axes_of("theta", 1)
    (('batch', 'head', 'query', 'channel'), ('batch', 'key head', 'key', 'channel'), ('batch', 'head', 'query'),
     ('batch', 'head', 'query', 'key'), ('axis 0',))
    """
    field = name.removeprefix("grad_")
    letters = next((r.axes for r in ROWS if r.field == field and len(r.axes) == ndim and "*" not in r.axes), "")
    if field in ("attn_mask", "bias"):
        letters = "bHij"[-ndim:] if ndim else ""
    return tuple(AXIS_WORDS.get(x, f"axis {x}") for x in letters) or tuple(f"axis {k}" for k in range(ndim))
