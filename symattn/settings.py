"""How the value of each field of a definition is read, whether it comes from Python, a command line or a TOML file.

Every reader takes a Python value or its text and returns the one form that a :class:`~symattn.definition.Definition` keeps:
``"4,2"`` and ``(4, 2)`` are the same window, ``"0.1"`` and ``Fraction(1, 10)`` the same number. A float is the dyadic that it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

import numpy as np
import sympy as sp

from symattn.choices import CHOICES, OPTIONAL
from symattn.errors import DefinitionError, GrammarError, InputValueError, LimitError, nearest
from symattn.grammar import (
    FREQUENCY_NAMES,
    MASK_NAMES,
    SCALE_NAMES,
    SCORE_NAMES,
    parse_frequency,
    parse_mask,
    parse_scale,
    parse_score,
)
from symattn.grammartree import ENTRIES, TOO_LARGE, check_parameter, too_large
from symattn.indexed import Table
from symattn.numbers import exact_number

MAX_INTEGER = 2**40
"""No offset, window, prefix or number of heads is beyond this: sums of a few of them and positions stay in 64 bits."""

PER_HEAD = "head"
"""As the value of a parameter: not bound, and one number per head."""

ABSENT = ("", "none", "None", "null")


def choice(field: str, value: Any) -> str:
    """One of the words that the field allows."""
    allowed = CHOICES[field]
    word = value.strip().lower().replace("_", "-") if isinstance(value, str) else value
    if isinstance(word, str) and word in allowed:
        return word
    raise DefinitionError(f"{field} is one of {', '.join(map(repr, allowed))}, got {value!r}. {nearest(str(value), allowed)}")


def flag(field: str, value: Any) -> bool:
    """True or false, also as text."""
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    words = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}
    if isinstance(value, str) and value.strip().lower() in words:
        return words[value.strip().lower()]
    raise DefinitionError(f"{field} is true or false, got {value!r}")


def integer(field: str, value: Any, least: int | None = None) -> int:
    """An integer, not below ``least``."""
    if isinstance(value, str):
        try:
            value = int(value.strip()[:100])  # longer ones are beyond the limit all the same
        except ValueError:
            raise DefinitionError(f"{field} is an integer, got {value!r}") from None
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer, sp.Integer)):
        raise DefinitionError(f"{field} is an integer, got {value!r}")
    if abs(int(value)) > MAX_INTEGER:
        raise LimitError(f"{field} is an integer of at most {MAX_INTEGER} in absolute value")
    if least is not None and value < least:
        raise DefinitionError(f"{field} is at least {least}, got {value}")
    return int(value)


def number(field: str, value: Any) -> Fraction:
    """A finite rational number, exactly: an integer, fraction, float (the dyadic that it is), SymPy rational, or text."""
    if isinstance(value, (bool, np.bool_)):
        raise DefinitionError(f"{field} is a number, got {value!r}")
    try:
        found = exact_number(value)
    except InputValueError as e:
        raise DefinitionError(f"{field}: {e}") from None
    if not isinstance(found, Fraction):
        raise DefinitionError(f"{field} is a finite rational number, got {value!r}")
    return found


def number_or_name(field: str, value: Any) -> Fraction | str:
    """A finite number, or the name of a parameter that holds it."""
    if isinstance(value, str) and value.strip().isidentifier():
        name = value.strip()
        check_parameter(name, lambda why: DefinitionError(f"{field}: {why}"))
        if name in SCORE_NAMES or name == "nan" or name in SCALE_NAMES or name in ("inf", "infinity"):
            raise DefinitionError(f"{field}: {name!r} has a meaning of its own and cannot name a parameter")
        return name
    return number(field, value)


def positive(field: str, value: Any) -> Fraction | str:
    """A positive number, or the name of a parameter."""
    found = number_or_name(field, value)
    if isinstance(found, Fraction) and found <= 0:
        raise DefinitionError(f"{field} is positive, got {value!r}; leave it out for none")
    return found


def alignment(field: str, value: Any) -> str | int | None:
    """The causal alignment: a word, or the offset as an integer. ``True`` is top-left, ``False`` none."""
    if isinstance(value, (bool, np.bool_)) or (isinstance(value, str) and value.strip().lower() in ("true", "false")):
        return "top-left" if flag(field, value) else None
    if isinstance(value, (int, np.integer)) or (isinstance(value, str) and value.strip().lstrip("-+").isdigit()):
        return integer(field, value)
    return choice(field, value)


def window(field: str, value: Any) -> tuple[int | None, int | None] | None:
    """``(left, right)``, each a distance or None for unlimited; -1 is unlimited too, and so is a missing right."""
    if isinstance(value, str):
        value = tuple(value.strip("()[] ").split(","))
    elif not isinstance(value, (tuple, list)):
        value = (value,)
    if not 1 <= len(value) <= 2:
        raise DefinitionError(f"{field} is LEFT or (LEFT, RIGHT), got {value!r}")

    def side(x: Any) -> int | None:
        if x is None or (isinstance(x, str) and x.strip() in ABSENT):
            return None
        found = integer(field, x, -1)
        return None if found == -1 else found

    left, right = side(value[0]), side(value[1]) if len(value) == 2 else None
    return None if left is None and right is None else (left, right)


def prefix(field: str, value: Any) -> int | str:
    """A length, or the name of the parameter that holds it."""
    if isinstance(value, str) and value.strip().isidentifier():
        return str(number_or_name(field, value))
    return integer(field, value, 0)


def axes(field: str, value: Any) -> str:
    """Which of b, h, i, j an array carries, in this order."""
    if isinstance(value, str) and value and set(value) <= set("bhij") and value == "".join(a for a in "bhij" if a in value):
        return value
    raise DefinitionError(f"{field} names the axes that the array carries, some of b, h, i, j in this order, got {value!r}")


def expression(field: str, value: Any) -> sp.Basic:
    """A score or a mask: text of the grammar, or a SymPy expression in the same names."""
    if isinstance(value, str):
        try:
            return parse_score(value) if field == "score" else parse_mask(value)
        except GrammarError as e:
            raise GrammarError(f"{field}: {e}") from None
    if isinstance(value, (bool, np.bool_)) and field == "mask":
        return sp.true if value else sp.false
    wanted = sp.Expr if field == "score" else sp.logic.boolalg.Boolean
    if not isinstance(value, wanted) or (field == "mask" and isinstance(value, sp.Symbol)):
        raise DefinitionError(f"{field} is text or a SymPy {'expression' if field == 'score' else 'condition'}, got {value!r}")
    if field == "mask":
        value = sp.to_nnf(value, simplify=False)
    return canonical(field, value, SCORE_NAMES if field == "score" else MASK_NAMES)


def canonical(field: str, value: sp.Basic, names: Mapping[str, sp.Symbol]) -> sp.Basic:
    """A SymPy expression with the symbols of the grammar in place of the user's of the same name; functions are checked."""
    if value.atoms(sp.core.function.AppliedUndef) or value.has(sp.Piecewise, sp.I, sp.zoo, sp.nan, sp.oo):
        raise DefinitionError(f"{field} is a scalar expression in known functions and finite numbers, got {value!r}")
    table: dict[sp.Basic, sp.Basic] = {}
    labels: set[sp.Basic] = set()
    for x in value.atoms(sp.Indexed):
        axes = "".join(str(a) for a in x.indices)
        if axes not in ENTRIES or field not in ("score", "mask") or str(x.base.label) in names:
            raise DefinitionError(f"{field}: an array is read as name[i], name[j] or name[i, j], b may stand first; got {x}")
        labels.add(x.base.label)
        check_parameter(str(x.base.label), lambda why: DefinitionError(f"{field}: {why}"))
    for symbol in (a for a in value.free_symbols if isinstance(a, sp.Symbol) and a not in labels):
        if symbol.name in names:
            table[symbol] = names[symbol.name]
        elif symbol.name == "s":
            raise DefinitionError(f"a {field} cannot read the score s")
        else:
            table[symbol] = sp.Symbol(check_parameter(symbol.name, lambda why: DefinitionError(f"{field}: {why}")), real=True)
    exact = {x: sp.Rational(*float(x).as_integer_ratio()) for x in value.atoms(sp.Float)}
    found = value.xreplace(table).xreplace(exact)
    if too_large(found):
        raise LimitError(f"{field}: {TOO_LARGE}")
    return found


def scale(field: str, value: Any) -> sp.Expr:
    """A factor, such as that between raw and scaled score: text, a SymPy expression in the sizes n m d dv, or a number."""
    return _formula(field, value, parse_scale, SCALE_NAMES)


def frequency(field: str, value: Any) -> sp.Expr:
    """The frequency of a pair of channels: as :func:`scale`, in the pair p and the number r of rotated channels too."""
    return _formula(field, value, parse_frequency, FREQUENCY_NAMES)


def _formula(field: str, value: Any, parse: Callable[[str], sp.Expr], names: Mapping[str, sp.Symbol]) -> sp.Expr:
    if isinstance(value, str):
        try:
            return parse(value)
        except GrammarError as e:
            raise GrammarError(f"{field}: {e}") from None
    if isinstance(value, sp.Expr) and not value.is_Rational:
        return canonical(field, value, names)
    found = number(field, value)
    return sp.Rational(found.numerator, found.denominator)


def params(field: str, value: Any) -> Table:
    """Name to number, to a list of numbers (one per head), or to ``"head"`` (not bound, one per head)."""
    if isinstance(value, str):
        pairs = [p.partition("=") for p in value.split(";") if p.strip()]
        value = {name.strip(): text.strip() for name, _, text in pairs}
    if not isinstance(value, Mapping):
        raise DefinitionError(f"{field} maps names to numbers, got {value!r}")
    found: dict[str, Fraction | tuple[Fraction, ...] | str] = {}
    for name, given in sorted(value.items()):
        check_parameter(name, DefinitionError)
        if name in SCORE_NAMES or name in SCALE_NAMES:
            raise DefinitionError(f"{name!r} has a meaning of its own in a score and cannot be bound; choose another name")
        where = f"parameter {name}"
        if isinstance(given, str) and given.strip() == PER_HEAD:
            found[name] = PER_HEAD
        elif isinstance(given, str) and "," in given:
            found[name] = tuple(number(where, part) for part in given.strip("()[] ").split(","))
        elif isinstance(given, (list, tuple)) or (isinstance(given, np.ndarray) and given.ndim == 1):
            found[name] = tuple(number(where, part) for part in given)
        else:
            found[name] = number(where, given)
    return Table(found)


def form(field: str, value: Any) -> str:
    """The name of a form of :mod:`symattn.forms`."""
    from symattn import forms

    if value not in forms.names():
        raise DefinitionError(
            f"{field} is one of {', '.join(forms.names())}, got {value!r}. {nearest(str(value), forms.names())}"
        )
    return str(value)


def even(field: str, value: Any) -> int:
    """An even number of channels, at least 2."""
    found = integer(field, value, 2)
    if found % 2:
        raise DefinitionError(f"{field} is even, because channels are rotated in pairs, got {found}")
    return found


def extents(field: str, value: Any) -> tuple[int, int]:
    """Two positive integers: over how many queries and keys."""
    if isinstance(value, str):
        value = tuple(value.strip("()[] ").split(","))
    if not isinstance(value, (tuple, list)) or len(value) != 2:
        raise DefinitionError(f"{field} is two positive integers QUERIES,KEYS, got {value!r}")
    return integer(field, value[0], 1), integer(field, value[1], 1)


FEATURES = ("identity", "elu", "relu", "exp")
"""The feature maps that have a name: x, elu(x) + 1, max(x, 0), exp(x)."""


def feature(field: str, value: Any) -> str | sp.Expr:
    """The name of a feature map, or a function of the entry ``s``: text, or a SymPy expression."""
    if isinstance(value, str) and value.strip().lower() in FEATURES:
        return value.strip().lower()
    names = {"s": SCORE_NAMES["s"]}
    if isinstance(value, sp.Expr):
        found = canonical(field, value, names)
    else:
        try:
            found = parse_score(str(value), names)
        except GrammarError as e:
            raise GrammarError(f"{field} is {', '.join(FEATURES)}, or a function of the entry s: {e}") from None
    if not found.has(names["s"]):
        raise DefinitionError(f"{field} is {', '.join(FEATURES)}, or a function of the entry s, got {value!r}")
    return found


READERS: Mapping[str, Callable[[str, Any], Any]] = {
    "heads": lambda f, v: integer(f, v, 1),
    "kv_heads": lambda f, v: integer(f, v, 1),
    "start": choice,
    "cross": flag,
    "output_projection": flag,
    "projection_bias": flag,
    "causal": alignment,
    "window": window,
    "window_counts": choice,
    "window_alignment": alignment,
    "prefix": prefix,
    "document": flag,
    "key_lengths": flag,
    "attn_mask": choice,
    "mask_axes": axes,
    "mask_polarity": choice,
    "bias": flag,
    "bias_axes": axes,
    "softcap": positive,
    "alibi": flag,
    "alibi_slopes": choice,
    "alibi_distance": choice,
    "sink": flag,
    "empty_row": choice,
    "grouping": choice,
    "scale": scale,
    "lse": flag,
    "lse_base": lambda f, v: choice(f, str(v)),
    "dropout": flag,
    "dropout_p": number_or_name,
    "score": expression,
    "mask": expression,
    "params": params,
    "form": form,
    "algorithm": choice,
    "block": lambda f, v: integer(f, v, 1),
    "positions": choice,
    "next_word": flag,
    "similarity": choice,
    "rope": choice,
    "rope_dim": even,
    "rope_frequencies": frequency,
    "rope_amplitude": scale,
    "rope_offset": alignment,
    "qk_norm": choice,
    "qk_norm_weight": flag,
    "qk_norm_eps": number_or_name,
    "qk_norm_order": choice,
    "key_smoothing": flag,
    "relative": choice,
    "relative_clip": lambda f, v: integer(f, v, 0),
    "buckets": flag,
    "normalizer": choice,
    "forgetting": flag,
    "differential": flag,
    "head_mixing": choice,
    "multi_token": extents,
    "output_gate": flag,
    "head_norm": flag,
    "head_norm_eps": positive,
    "layer_norm": choice,
    "layer_norm_eps": positive,
    "activation": choice,
    "feature": feature,
    "normalized": flag,
    "decay": choice,
    "decay_space": choice,
    "delta": flag,
    "evaluation": choice,
    "initial_state": flag,
}
"""Every field of a definition and how its value is read."""


def read_field(field: str, value: Any) -> Any:
    """The value of a field in the form in which a definition keeps it.

    Raises
    ------
    DefinitionError
        When the field does not exist or does not allow the value; the message names what is allowed.
    GrammarError
        When text of a score, mask or scale is outside the grammar.

    >>> read_field("window", "4,-1"), read_field("softcap", "0.1"), read_field("causal", "none")
    ((4, None), Fraction(1, 10), None)
    """
    if field not in READERS:
        raise DefinitionError(f"a definition has no field {field!r}. {nearest(field, READERS)}")
    if value is None or (isinstance(value, str) and value.strip() in ABSENT):
        if field in OPTIONAL:
            return None
        if value in CHOICES.get(field, ()):
            return str(value)
        raise DefinitionError(f"{field} cannot be absent, got {value!r}")
    return READERS[field](field, value)
