"""The names that pages use for what attention computes, and rows and elements of them: ``weights``, ``Q[0]``, ``scores[1,2]``."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from symattn.errors import UnknownNameError, nearest
from symattn.fields import BY_LETTER, INPUT_FIELDS, field_of

QUANTITIES: dict[str, tuple[str, ...]] = {
    "X": ("x", "embeddings", "inputs", "tokens"),
    "Q": ("q", "query", "queries", "queryvector", "queryvectors"),
    "K": ("k", "key", "keys", "keyvectors"),
    "V": ("v", "value", "values", "valuevectors"),
    "R": ("scores", "rawscores", "attentionscores", "rawattentionscores", "dotproducts", "qk", "qkt", "r"),
    "S": ("scaled", "scaledscores", "scaledattentionscores", "s"),
    "A": ("capped", "cappedscores"),
    "Z": ("logits", "masked", "maskedscores", "biased", "z"),
    "P": ("weights", "softmax", "attentionweights", "attention", "probabilities", "probs", "alpha", "p"),
    "O": ("output", "outputs", "out", "context", "contextvector", "contextvectors", "contexts", "attentionoutput", "o"),
    "heads": ("heads", "head", "headoutputs", "headoutput"),
    "L": ("lse", "logsumexp", "l"),
}
"""The letter of each quantity in the program, and what pages call it (letters and digits, in lower case). ``O`` is the output of
the whole, heads side by side; ``heads`` are the outputs of the heads; ``Z`` is what the softmax takes."""

WEIGHTS: dict[str, tuple[str, ...]] = {
    "w_q": ("wq", "wquery", "wqueries", "queryweights"),
    "w_k": ("wk", "wkey", "wkeys", "keyweights"),
    "w_v": ("wv", "wvalue", "wvalues", "valueweights"),
    "w_o": ("wo", "wout", "woutput", "outputweights"),
    "memory": ("memory",),
    "attn_mask": ("mask", "attentionmask"),
    "grad_out": ("do", "gradout", "doutput"),
    "grad_lse": ("dl", "gradlse"),
}
"""Inputs beside the quantities: field name, and what pages call it."""

SIZES: dict[str, tuple[str, ...]] = {"d": ("d", "dk", "dhead", "headdim"), "dmodel": ("dmodel",)}
"""Sizes that a page states, for where no array shows them."""

_SHOWN = {"R": "scores", "S": "scaled", "A": "capped", "Z": "logits", "P": "weights", "O": "output", "L": "lse"}
_LETTER = {name: letter for letter, names in QUANTITIES.items() for name in names}
_FIELD = {name: field for field, names in WEIGHTS.items() for name in names}
_SIZE = {name: size for size, names in SIZES.items() for name in names}
_INDEXED = re.compile(r"\s*(?P<base>[^\[\]]+?)\s*(?P<index>(?:\[[^\[\]]*\]\s*)*)\Z")
_PLACE = re.compile(r"-?\d{1,6}\Z")


def plain(name: str) -> str:
    """A name without case and signs: ``W_{query}``, ``W^Q`` and ``wq`` are written in many ways."""
    return re.sub(r"[^a-z0-9]", "", name.lower())


def letter_named(name: str) -> str | None:
    """The letter of the quantity that a page's name stands for, None where it is not one of :data:`QUANTITIES`.

    >>> letter_named("attention weights"), letter_named("Scaled_scores"), letter_named("foo")
    ('P', 'S', None)
    """
    return _LETTER.get(plain(name))


def field_named(name: str) -> str | None:
    """The input field that a page's name stands for.

    >>> field_named("W_query"), field_named("K"), field_named("dO"), field_named("alibi_slopes"), field_named("WK1")
    ('w_q', 'key', 'grad_out', 'alibi_slopes', None)
    """
    if name in INPUT_FIELDS:
        return name
    letter = _LETTER.get(plain(name))
    if letter in ("X", "Q", "K", "V"):
        return BY_LETTER[letter].field
    return _FIELD.get(plain(name))


def size_named(name: str) -> str | None:
    """The size that a page's name stands for: ``d_k`` is the width of queries and keys."""
    return _SIZE.get(plain(name))


def tensor_named(name: str, letters: Collection[str], parameters: Iterable[str] = ()) -> str:
    """The tensor of a program that a page's name stands for: its letter, its field name, or what pages call it.

    Raises
    ------
    UnknownNameError
        With the nearest names.

    >>> tensor_named("context", ("R", "P", "O")), tensor_named("grad_query", ("dQ",)), tensor_named("dW_Q", ("dWQ",))
    ('O', 'dQ', 'dWQ')
    """
    if name in letters or name == "heads":
        return name
    found = _LETTER.get(plain(name))
    if found is not None and (found in letters or found in ("heads", "S", "A", "Z", "O")):
        return found
    for letter in sorted(letters):
        if plain(letter) == plain(name) or field_of(letter, parameters) == name:
            return letter
    bare = plain(name)
    if bare[:1] == "d" and bare[1:] in (*_FIELD, *_LETTER):
        base = _FIELD.get(bare[1:]) or _LETTER[bare[1:]]
        for letter in sorted(letters):
            if letter in ("d" + base, "d" + plain(base).upper()) or field_of(letter, parameters) == "grad_" + base:
                return letter
    known = {_SHOWN.get(letter, letter) for letter in QUANTITIES if letter in letters}
    raise UnknownNameError(f"there is no quantity {name!r} here. {nearest(name, known)}")


@dataclass(frozen=True)
class Place:
    """A quantity and which part of it: ``index`` holds numbers and ``None`` for all of an axis."""

    base: str
    index: tuple[int | None, ...] = ()


def place_of(text: str) -> Place | None:
    """A quantity with indices, counted from 0; None where the text is no name with indices but an expression.

    >>> place_of("weights[1, 0]"), place_of("V[:,2]"), place_of("Q[0][1]")
    (Place(base='weights', index=(1, 0)), Place(base='V', index=(None, 2)), Place(base='Q', index=(0, 1)))
    >>> place_of("exp(scaled[0])")
    """
    m = _INDEXED.match(text)
    if m is None or not re.fullmatch(r"[^\W\d][\w ']*", m["base"]):
        return None
    parts = [p.strip() for p in re.sub(r"\]\s*\[", ",", m["index"].strip())[1:-1].split(",")] if m["index"].strip() else []
    if not all(p == ":" or _PLACE.match(p) for p in parts):
        return None
    return Place(m["base"], tuple(None if p == ":" else int(p) for p in parts))
