"""Examples with numbers: TOML files read exactly, and the ones that ship with symattn.

Numbers are integers, decimals or text such as ``"1/3"``; a decimal is the decimal that stands there and never passes through a
float. The keys of a file, all optional but one place where the computation starts (the first three):

=====================  ==============================================================================================
``tokens``             the sentence: a list of words, each with a row in ``[embedding]`` (word -> list of numbers)
``X``                  the input as a matrix, a row for each position; ``tokens`` may then name the rows
``Q``, ``K``, ``V``    queries, keys and values as matrices (a list of matrices for several heads)
``W_Q`` ... ``W_O``    weight matrices (a list of them for several heads); absent: the identity, and no ``W_O`` at all
``memory``             cross attention: words of ``[embedding]``, or a matrix
``follow``             the query whose work is shown: its position from 1, from the end (-1 is the last, the default), or its
                       word (the last place where it stands)
``digits``             decimals to print (4)
``grad_out``           the incoming gradient of the output: the steps of the gradient then have numbers
``tangent_query`` ...  the direction in which an input moves, of its shape: the steps of the tangent then have numbers;
                       ``[tangent_embedding]`` has a row for each word that moves
``attn_mask`` ...      what the definition reads beside these: ``bias``, ``alibi_slopes``, ``sinks``, ``doc``, ``doc_q``,
                       ``doc_k``, ``key_lengths``, ``dropout_mask``, ``dropout_p``
``[weights]``          ``seed``: what is not given is drawn from it (then ``[embedding]`` may be absent), and sizes such as
                       ``dmodel``, ``d``, ``dv``, ``dff``; ``vocabulary``: further words
``[definition]``       fields of the definition, such as ``causal = "top-left"``
``[inputs]``           parameters of a score or mask text: name -> a number, or a list with one per head
``title``, ``about``   what the example is called, and a sentence on it
=====================  ==============================================================================================
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from symattn.derivation import drawn
from symattn.derivation.shippedfiles import Shelf
from symattn.errors import FileFormatError, InputValueError, nearest
from symattn.fields import BY_LETTER, DECLARED, INPUT_FIELDS
from symattn.numbers import exact_array, is_special

Array = npt.NDArray[Any]

ARRAYS: Mapping[str, str] = {
    "X": "x",
    "Q": "query",
    "K": "key",
    "V": "value",
    "W_Q": "w_q",
    "W_K": "w_k",
    "W_V": "w_v",
    "W_O": "w_o",
    **{name: name for name in ("bias", "attn_mask", "alibi_slopes", "sinks", "doc", "doc_q", "doc_k", "key_lengths")},
    **{name: name for name in ("dropout_mask", "dropout_p")},
    **{row.field: row.field for row in DECLARED},
}
"""Key in the file -> field name of the tensor."""
OTHERS = ("title", "about", "tokens", "embedding", "memory", "follow", "digits", "grad_out", "definition", "inputs", "weights")
MOVING = (
    *("query", "key", "value", "x", "memory", "w_q", "w_k", "w_v", "w_o", "bias", "attn_mask", "alibi_slopes", "sinks"),
    "dropout_p",
)
DIRECTIONS = tuple("tangent_" + name for name in (*MOVING, "grad_out"))
"""Keys of directions; that of the embedding is a table."""
KEYS = (*ARRAYS, *OTHERS, *DIRECTIONS, "tangent_embedding")
INFINITE = {"attn_mask"}
SHELF = Shelf("examples", "shipped example", "an example file", limit=1_000_000)
MAX_ENTRIES, MAX_WORD, MAX_DIGITS = 50_000, 200, 200
MAX_LENGTH = 400
"""Digits of a number: products of several are printed exactly, and Python writes no integers of more than 4300 digits."""


class Literal(str):
    """A float literal of a TOML file as it was typed."""

    __slots__ = ()


@dataclass(frozen=True)
class Example:
    """Numbers for a definition.

    Parameters
    ----------
    name, title, about
        What the example is called, and a sentence on it.
    definition
        Fields of the definition that the example asks for, as typed.
    arrays
        Field name -> object array of exact numbers (``x``, ``query``, ``w_q``, ``memory``, ``grad_out``, ...); what ``[inputs]``
        holds (free names of a score or mask text) is here too.
    tokens, memory
        The words at the query positions and at the key positions; empty where the input is no text.
    vocabulary
        The words of the embedding, in the order of its rows.
    follow
        The followed query, counted from 0.
    digits
        Decimals to print.
    decimals
        Whether numbers were typed in decimals: they are then shown so.
    seed, sizes
        Where a seed is given, inputs that are not given are drawn from it, in these sizes; see :mod:`symattn.derivation.drawn`.
    """

    name: str
    title: str = ""
    about: str = ""
    definition: Mapping[str, Any] = field(default_factory=dict)
    arrays: Mapping[str, Array] = field(default_factory=dict)
    tokens: tuple[str, ...] = ()
    memory: tuple[str, ...] = ()
    vocabulary: tuple[str, ...] = ()
    follow: int | None = None
    digits: int = 4
    decimals: bool = False
    seed: int | None = None
    sizes: Mapping[str, int] = field(default_factory=dict)

    @property
    def start(self) -> str:
        """Where the computation starts: ``qkv``, ``x`` or ``tokens``."""
        return "qkv" if "query" in self.arrays else "tokens" if "tokens" in self.arrays else "x"

    @property
    def fields(self) -> dict[str, Any]:
        """The fields of the definition that the example asks for: those it names, and where its numbers start."""
        cross = "memory" in self.arrays and not str(self.definition.get("form", "")).startswith("decoder")
        own = {"start": self.start, "cross": cross, "output_projection": "w_o" in self.arrays}
        if self.seed is not None and "tokens" not in self.arrays and not {"x", "query"} & self.arrays.keys():
            own["start"] = self.definition.get("start", "qkv")
        return {**self.definition, **{name: value for name, value in own.items() if value not in (False, "qkv")}}


def shipped() -> tuple[str, ...]:
    """The names of the examples that ship with symattn.

    >>> shipped()
    ('the-cat-sat', 'translation', 'two-words', 'two-words-causal')
    """
    return SHELF.names()


def load(source: str | Path) -> Example:
    """The example of a name or a file; a bare name is a shipped example.

    Raises
    ------
    UnknownNameError
        When a bare name is no shipped example.
    FileFormatError
        When the file cannot be read, is no TOML, is too large, lacks a key or has one that is not known.
    InputValueError
        When a value is no number, or a word has no embedding.

    >>> load("the-cat-sat").tokens
    ('the', 'cat', 'sat', 'on', 'the')
    """
    return parse(*SHELF.read(source))


def parse(data: bytes, name: str) -> Example:
    r"""The example in the bytes of a TOML file; ``name`` is for messages.

    >>> parse(b'Q = [[1, 0.1]]\nK = [[1, 0]]\nV = [["1/3"]]', "demo").arrays["query"].tolist()
    [[Fraction(1, 1), Fraction(1, 10)]]
    """
    try:
        table = tomllib.loads(data.decode("utf-8"), parse_float=Literal)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as why:
        raise FileFormatError(f"{name}: is no TOML file: {why}") from why
    return _Reader(name, table).example()


class _Reader:
    """Reads the table of one file; every message names the file and the key."""

    def __init__(self, name: str, table: dict[str, Any]) -> None:
        self.name, self.table = name, table

    def example(self) -> Example:
        for key in self.table:
            if key not in KEYS:
                raise FileFormatError(f"{self.name}: unknown key {key!r}. {nearest(key, KEYS)}")
        given = {tensor: self.numbers(key) for key, tensor in ARRAYS.items() if key in self.table}
        seed, sizes, further = self.weights()
        vectors = self.embedding()
        tokens = self.words("tokens") if "tokens" in self.table else ()
        if seed is not None and tokens and not vectors and "X" not in self.table:
            listed = self.table.get("memory", [])
            memory_words = [w for w in listed if isinstance(w, str)] if isinstance(listed, list) else []
            vectors = drawn.vectors(seed, (*tokens, *memory_words, *further), sizes.get("dmodel", drawn.WIDTH))
        memory = self.sources(given, vectors, tokens)
        for key in ("grad_out", *DIRECTIONS):
            if key in self.table:
                given[key] = self.numbers(key)
        if "tangent_embedding" in self.table:
            given["tangent_embedding"] = self.moving_rows(vectors)
        typed = _literals(self.table)
        for key, value in self.of_kind("inputs", dict, {}).items():
            if key in given or (key in INPUT_FIELDS and key not in BY_LETTER):
                raise FileFormatError(f"{self.name}: inputs.{key}: an input of attention is called so; rename the parameter")
            given[key] = self.array(f"inputs.{key}", value)
        queries = len(tokens) or next(given[n].shape[-2] for n in ("query", "x") if n in given)
        return Example(
            name=self.name,
            title=self.of_kind("title", str, ""),
            about=self.of_kind("about", str, ""),
            definition=self.of_kind("definition", dict, {}),
            arrays=given,
            tokens=tokens,
            memory=memory,
            vocabulary=tuple(vectors),
            follow=self.follow(tokens, queries),
            digits=self.digits(),
            decimals=typed or seed is not None,
            seed=seed,
            sizes=sizes,
        )

    def weights(self) -> tuple[int | None, dict[str, int], tuple[str, ...]]:
        """The seed, the sizes and the further words of the table ``[weights]``."""
        table = dict(self.of_kind("weights", dict, {}))
        if not table:
            return None, {}, ()
        seed, words = table.pop("seed", None), table.pop("vocabulary", [])
        if isinstance(seed, bool) or not isinstance(seed, int):
            raise self.fail("weights.seed", seed, "an integer: what is not given is drawn from it", FileFormatError)
        if not isinstance(words, list) or not all(isinstance(w, str) and w and not isinstance(w, Literal) for w in words):
            raise self.fail("weights.vocabulary", words, "a list of words", FileFormatError)
        return seed, drawn.sizes_asked(table, f"{self.name}: weights"), tuple(words)

    def fail(self, key: str, got: object, allowed: str, kind: type[Exception] = InputValueError) -> Exception:
        shown = repr(got)
        return kind(f"{self.name}: {key}: got {shown if len(shown) <= 60 else shown[:57] + '...'}; allowed: {allowed}")

    def of_kind(self, key: str, kind: type, default: Any) -> Any:
        value = self.table.get(key, default)
        if not isinstance(value, kind) or isinstance(value, Literal):
            raise self.fail(key, value, {str: "text", dict: "a table", int: "an integer"}[kind], FileFormatError)
        return value

    def digits(self) -> int:
        value = self.of_kind("digits", int, 4)
        if isinstance(value, bool) or not 0 < value <= MAX_DIGITS:
            raise self.fail("digits", value, f"an integer from 1 to {MAX_DIGITS}")
        return int(value)

    def words(self, key: str) -> tuple[str, ...]:
        value = self.table[key]
        ok = isinstance(value, list) and value and all(isinstance(w, str) and w and len(w) <= MAX_WORD for w in value)
        if not ok:
            raise self.fail(key, value, f"a list of words of 1 to {MAX_WORD} letters", FileFormatError)
        return tuple(value)

    def numbers(self, key: str) -> Array:
        return self.array(key, self.table[key])

    def array(self, key: str, value: object) -> Array:
        if _count(value) > MAX_ENTRIES:
            raise FileFormatError(f"{self.name}: {key}: more than {MAX_ENTRIES} numbers")
        try:
            array = exact_array(value)
        except (InputValueError, ValueError, RecursionError) as why:
            raise InputValueError(f"{self.name}: {key}: {why}") from why
        if 0 in array.shape:
            raise self.fail(key, value, "at least one number in every row")
        if not key.endswith("mask") and (wrong := next(_booleans(value), None)) is not None:
            raise self.fail(key, str(wrong).lower(), "numbers; true and false stand in masks only")
        for x in array.flat:
            if not is_special(x) and max(abs(x.numerator), x.denominator) >= 10**MAX_LENGTH:
                raise InputValueError(f"{self.name}: {key}: got a number of more than {MAX_LENGTH} digits; allowed: shorter ones")
            if is_special(x) and not (key in INFINITE and x == -np.inf):
                raise self.fail(key, x, "finite numbers" + (" and -inf" if key in INFINITE else ""))
        return array

    def embedding(self) -> dict[str, Array]:
        table = self.of_kind("embedding", dict, {})
        vectors = {word: self.array(f"embedding.{word}", v) for word, v in table.items()}
        lengths = {word: v.shape for word, v in vectors.items()}
        for word, shape in lengths.items():
            first = next(iter(lengths))
            if len(shape) != 1:
                raise self.fail(f"embedding.{word}", table[word], "a list of numbers", FileFormatError)
            if shape != lengths[first]:
                raise self.fail(
                    f"embedding.{word}", f"{shape[0]} numbers", f"{lengths[first][0]} numbers, as many as {first!r} has"
                )
        return vectors

    def moving_rows(self, vectors: Mapping[str, Array]) -> Array:
        """The direction of the embedding table: rows of words that are not named do not move."""
        table = self.of_kind("tangent_embedding", dict, {})
        if not vectors:
            raise FileFormatError(f"{self.name}: tangent_embedding: there is no [embedding] that could move")
        self.rows("tangent_embedding", tuple(table), vectors)
        found = {}
        for word, row in vectors.items():
            found[word] = self.array(f"tangent_embedding.{word}", table[word]) if word in table else exact_array([0] * len(row))
            if found[word].shape != row.shape:
                raise self.fail(f"tangent_embedding.{word}", table[word], f"a list of {len(row)} numbers", FileFormatError)
        return np.stack(list(found.values()))

    def rows(self, key: str, words: tuple[str, ...], vectors: Mapping[str, Array]) -> list[int]:
        known = list(vectors)
        for w in words:
            if w not in vectors:
                raise InputValueError(f"{self.name}: {key}: the word {w!r} has no row in [embedding]. {nearest(w, known)}")
        return [known.index(w) for w in words]

    def sources(self, given: dict[str, Array], vectors: Mapping[str, Array], tokens: tuple[str, ...]) -> tuple[str, ...]:
        """Put X, Emb, tok and memory into ``given``; returns the words of the memory."""
        starts = [k for k in ("Q", "X") if k in self.table] + (["tokens"] if tokens and vectors else [])
        if len(starts) != 1:
            allowed = "exactly one of: tokens with [embedding]; X; Q, K and V"
            got = " and ".join(starts) or ("tokens without [embedding]" if tokens else "none of them")
            raise FileFormatError(f"{self.name}: where the computation starts: got {got}; allowed: {allowed}")
        for key in ("K", "V"):
            if ("Q" in self.table) != (key in self.table):
                raise FileFormatError(f"{self.name}: {key}: Q, K and V are given together or not at all")
        if "Q" in self.table and (extra := sorted(k for k in ("W_Q", "W_K", "W_V", "memory") if k in self.table)):
            raise FileFormatError(f"{self.name}: {extra[0]}: has no meaning where Q, K and V are given")
        for key in ("Q", "K", "V", "X"):
            if key in self.table and given[ARRAYS[key]].ndim < 2:
                raise self.fail(key, self.table[key], "a matrix: a list of rows", FileFormatError)
        if "X" in self.table and tokens and len(tokens) != given["x"].shape[0]:
            raise self.fail("tokens", f"{len(tokens)} words", f"{given['x'].shape[0]} words, one for each row of X")
        if starts == ["tokens"]:
            given["embedding"] = np.stack(list(vectors.values()))
            given["tokens"] = exact_array(self.rows("tokens", tokens, vectors))
        memory = self.table.get("memory")
        if memory is None:
            return tokens
        if isinstance(memory, list) and any(isinstance(w, str) and not isinstance(w, Literal) for w in memory):
            words = self.words("memory")
            given["memory"] = np.stack([vectors[list(vectors)[k]] for k in self.rows("memory", words, vectors)])
            return words
        given["memory"] = self.numbers("memory")
        if given["memory"].ndim != 2:
            raise self.fail("memory", memory, "a list of words of [embedding], or a matrix", FileFormatError)
        return ()

    def follow(self, tokens: tuple[str, ...], queries: int) -> int:
        value = self.table.get("follow", -1)
        if isinstance(value, str) and not isinstance(value, Literal):
            if value not in tokens:
                raise self.fail("follow", value, "a word of the tokens, or its position. " + nearest(value, tokens))
            return len(tokens) - 1 - tokens[::-1].index(value)
        if isinstance(value, bool) or not isinstance(value, int) or value == 0 or abs(value) > queries:
            raise self.fail("follow", value, f"a word, 1 to {queries}, or -1 to -{queries} counted from the end")
        return value - 1 if value > 0 else queries + value


def _booleans(value: object) -> Iterator[bool]:
    if isinstance(value, bool):
        yield value
    elif isinstance(value, list):
        for x in value:
            yield from _booleans(x)


def _count(value: object) -> int:
    if isinstance(value, list):
        return sum(_count(v) for v in value)
    return 1


def _literals(value: object) -> bool:
    """Whether a decimal literal stands somewhere."""
    if isinstance(value, dict):
        return any(_literals(v) for v in value.values())
    if isinstance(value, list):
        return any(_literals(v) for v in value)
    return isinstance(value, Literal)
