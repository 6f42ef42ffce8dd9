"""How the numbers of a kind of input are drawn, what is changed in them, and when a kind makes sense.

A change takes the arrays of query, key, value and incoming gradients as they were drawn, and the definition. "Near s" says that
every score is near s under the usual scale 1/sqrt(d): one channel of queries and keys is constant, the others stay random.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from symattn.definition import Definition
from symattn.indexed import index, name_of, reads
from symattn.intake import Array
from symattn.readcheck import affine_in
from symattn.verify.kernels.call import Call

Draw = Callable[[np.random.Generator, tuple[int, ...]], Array]
Change = Callable[[dict[str, Array], Definition], None]


# ---------------------------------------------------------------- how numbers are drawn
def normal(r: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """N(0, 1)."""
    return r.normal(size=shape)


def integers(r: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Integers from -2 to 2."""
    return r.integers(-2, 3, size=shape).astype(np.float64)


def small(r: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """N(0, 1) / 128: a norm divides by little more than what stands under its root."""
    return r.normal(size=shape) / 128


# ---------------------------------------------------------------- what is changed
def nothing(fields: dict[str, Array], d: Definition) -> None:
    """Leave the numbers as they were drawn."""


def large(fields: dict[str, Array], d: Definition) -> None:
    """Queries times 8."""
    fields["query"] *= 8


def near(query: float, key: float) -> Change:
    """One channel of the queries and one of the keys constant; at d = 6 and the usual scale scores are near q k / 2.45."""

    def change(fields: dict[str, Array], d: Definition) -> None:
        fields["query"][..., 0], fields["key"][..., 0] = query, key

    return change


def rising(fields: dict[str, Array], d: Definition) -> None:
    """Scores that rise along the keys, so that the running maximum of a tiled kernel rises in every tile."""
    fields["query"][..., 0] = 2
    fields["key"][..., 0] = np.linspace(-4, 4, fields["key"].shape[2])


def one_hot(fields: dict[str, Array], d: Definition) -> None:
    """V is the unit matrix, repeated: a channel of the output is a weight, or a sum of few."""
    m, dv = fields["value"].shape[2:]
    fields["value"][...] = np.arange(m)[:, None] % dv == np.arange(dv)


def paired(fields: dict[str, Array], d: Definition) -> None:
    """Keys in equal pairs whose values are opposite and large: the output is a small difference of large terms."""
    fields["value"] *= 64
    last = fields["key"].shape[2] // 2 * 2
    fields["key"][:, :, 1:last:2] = fields["key"][:, :, 0:last:2]
    fields["value"][:, :, 1:last:2] = -fields["value"][:, :, 0:last:2]


def flat(fields: dict[str, Array], d: Definition) -> None:
    """Queries 0 and values 1: the exact output is 1, a sum of as many equal terms as there are keys."""
    fields["query"][...], fields["value"][...] = 0, 1


def capped(fields: dict[str, Array], d: Definition) -> None:
    """Raw scores of a few times the cap, in every other row all near -3 caps: there the cap is what a masked key must not get."""
    top, width = cap_of(d), fields["query"].shape[-1] ** 0.5
    fields["query"] *= top
    fields["query"][:, :, 1::2, 0] = -3 * top * width / 4
    fields["key"][..., 0] = 4


def sunk(fields: dict[str, Array], d: Definition) -> None:
    """Rows of scores near -200, -5, 0, 5 and 20, so that every sink is beside rows below it, near it and above it."""
    levels = np.resize(np.array([-200.0, 0, 5, 20, -5]), fields["query"].shape[2])
    fields["query"][..., 0] = levels / 8 * fields["query"].shape[-1] ** 0.5
    fields["key"][..., 0] = 8


# ---------------------------------------------------------------- when a kind makes sense
def always(call: Call) -> bool:
    """On every call."""
    return True


def cap_of(d: Definition) -> float:
    """The softcap as a number; 1 where it has none yet."""
    try:
        return 1.0 if d.softcap is None else Call(d, {}).number(d.softcap)
    except LookupError:
        return 1.0


def has_softcap(call: Call) -> bool:
    """Whether scores are capped."""
    return call.definition.softcap is not None


def has_sink(call: Call) -> bool:
    """Whether there is a sink."""
    return call.definition.sink


def no_threshold(call: Call) -> bool:
    """Whether no threshold is searched among the scores of a row, which costs as much as sorting it."""
    return call.definition.normalizer not in ("sparsemax", "entmax15")


def defined_at_zero(call: Call) -> bool:
    """Whether a query of zeros has scores: it is not divided by its norm, nor are weights by a sum of products with it."""
    d = call.definition
    return no_threshold(call) and d.qk_norm is None and d.similarity == "dot" and d.form == "softmax"


def decided_at_60000(call: Call) -> bool:
    """Whether scores of this size promise anything: a threshold among them does beyond 32 bits only."""
    return no_threshold(call) or call.dtype.itemsize >= 8


def unread(call: Call) -> Array:
    """The keys that no query of any head of their group may attend to, Boolean (B, H_kv, m)."""
    kv = call.key.shape[1]
    read = np.any(call.keep, axis=2)
    return np.stack([~np.any(read[:, call.kv_head == k], axis=1) for k in range(kv)], axis=1)


def any_unread(call: Call) -> bool:
    """Whether there is such a key, and nothing else of the definition reads it."""
    return bool(unread(call).any()) and reads_visible_keys_only(call.definition)


def reads_visible_keys_only(d: Definition) -> bool:
    """Whether every statement that reads a key or a value does so where some query attends to it, or takes it along as it is.

    None takes a mean of all keys or divides each by its norm; a rotation takes them along.

    >>> reads_visible_keys_only(Definition()), reads_visible_keys_only(Definition(causal="top-left", empty_row="uniform"))
    (True, False)
    >>> [reads_visible_keys_only(Definition(causal="top-left", **f)) for f in ({"rope": "half"}, {"qk_norm": "rms"})]
    [True, False]
    """
    program = d.program()
    pairs = set(program["R"].conditions) if "R" in program else set()
    found: set[str] = set()  # what is made of keys or values one by one
    for s in program:
        if not s.needs & ({"K", "V"} | found):
            continue
        if pairs <= set(s.conditions):
            continue
        found.add(s.name)
        if index("j") in s.over or not affine_in(s, {"K", "V"} | found):
            return False
    return "R" in program


def has_norm(d: Definition) -> bool:
    """Whether a definition divides by a norm with something added under its root.

    >>> has_norm(Definition()), has_norm(Definition(form="encoder-layer"))
    (False, True)
    """
    return d.qk_norm_eps is not None or d.head_norm or "layer" in d.form


def chooses(d: Definition) -> bool:
    """Whether a value is kept or not by the sign of a computed one, as a ReLU does.

    >>> chooses(Definition()), chooses(Definition(form="encoder-layer"))
    (False, True)
    """
    program = d.program()
    made = {s.name for s in program}
    return any(name_of(x) in made for s in program if not s.over for c in s.conditions for x in reads(c))
