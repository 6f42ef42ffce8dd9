"""The names that steps have in the field, and a sentence of reason for each: a table by tensor, and a rule for what it lacks.

The table says nothing about variants. Gradients are named after what they are the gradient of.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

import sympy as sp

from symattn.derivation import algorithmnames, latentnames, layernames, linearnames, positionnames, weightnames
from symattn.program import Statement, conjuncts, name_of, reads
from symattn.readings.typesetting.letters import upright
from symattn.readings.typesetting.lettertable import TENSORS


class Naming(NamedTuple):
    """Singular and plural name (one row followed, or all), and the reason."""

    one: str
    many: str
    reason: str


TABLE: Mapping[str, Naming] = {
    "X": Naming("Embedded words", "Embedded words", "Each word is replaced by its vector: a row of the embedding table."),
    "Q": Naming("Queries", "Queries", "A query says what a position is looking for."),
    "K": Naming("Keys", "Keys", "A key says what a position has to offer to those who look."),
    "V": Naming("Values", "Values", "A value is what a position hands over when it is looked at."),
    "scale": Naming("Scale", "Scale", "One factor for all scores."),
    "R": Naming("Raw scores", "Raw scores", "The dot product of a query and a key: the better they match, the larger it is."),
    "S": Naming("Scaled scores", "Scaled scores", "One factor keeps the spread of the scores from growing with the dimension."),
    "A": Naming("Capped scores", "Capped scores", "Large scores are bent towards a bound that they never pass."),
    "Z": Naming("Final scores", "Final scores", "What the variant adds to the scores before the softmax sees them."),
    "slope": Naming("Slopes", "Slopes", "How fast a head's attention falls off with distance."),
    "slope_a": Naming(
        "Slopes of the first heads",
        "Slopes of the first heads",
        "A geometric sequence, for as many heads as the largest power of two that there are.",
    ),
    "slope_b": Naming(
        "Slopes of the other heads",
        "Slopes of the other heads",
        "Every other term of the sequence for twice as many heads.",
    ),
    "m": Naming(
        "Row maximum", "Row maxima", "Taken off before the exponential, so that nothing overflows; it cancels in the weights."
    ),
    "m0": Naming(
        "Row maximum of the keys", "Row maxima of the keys", "The largest score of the row, before the sink is looked at."
    ),
    "E": Naming("Exponentials", "Exponentials", "The exponential makes every score positive and keeps their order."),
    "E0": Naming("Exponential of the sink", "Exponentials of the sink", "The sink takes part like a key, but has no value row."),
    "lk": Naming("Sum over the keys", "Sums over the keys", "The share of the keys in the normaliser."),
    "l": Naming("Normaliser", "Normalisers", "The sum by which a row of exponentials is divided."),
    "P": Naming(
        "Attention weights",
        "Attention weights",
        "The softmax turns a row of scores into weights between 0 and 1, one for each key.",
    ),
    "P0": Naming("Weight of the sink", "Weights of the sink", "What the sink takes of the row; it hands over nothing."),
    "Pd": Naming(
        "Weights after dropout", "Weights after dropout", "Dropped weights are 0, kept ones are enlarged to make up for them."
    ),
    "cnt": Naming("Number of visible keys", "Numbers of visible keys", "A query that sees no key needs a convention of its own."),
    "N": Naming("Empty rows", "Empty rows", "The output of a query without keys is not a number, by convention."),
    "U": Naming("Empty rows", "Empty rows", "The output of a query without keys is the mean of all values, by convention."),
    "O0": Naming(
        "Weighted sum of the values",
        "Weighted sums of the values",
        "Each value row counts by its weight; nothing where no key is visible.",
    ),
    "O": Naming("Context vector", "Context vectors", "The sum of the value rows, each multiplied by its weight."),
    "L": Naming("Log-sum-exp", "Log-sum-exp", "The logarithm of the normaliser: kernels keep it to find the weights again."),
    "Y": Naming("Output", "Outputs", "The results of all heads, combined by one more weight matrix."),
    "D": Naming("Row sums", "Row sums", "What all weights of a row share; it is taken off because they cannot all grow."),
    "dP": Naming(
        "Gradient of the weights", "Gradient of the weights", "How the loss changes with each attention weight, the others held."
    ),
    "dO": Naming(
        "Gradient of the context vectors", "Gradient of the context vectors", "How the loss changes with each context vector."
    ),
    "dX": Naming(
        "Gradient of the embedded words",
        "Gradient of the embedded words",
        "The shares of all places where the input is used, added up.",
    ),
    "dEmb": Naming(
        "Gradient of the embedding table",
        "Gradient of the embedding table",
        "A word's row collects the gradients of all its positions.",
    ),
    **{name: Naming(*row) for part in (latentnames, layernames) for name, row in part.TABLE.items()},
    **{name: Naming(*row) for name, row in positionnames.TABLE.items()},
    **{name: Naming(*row) for name, row in weightnames.TABLE.items()},
    **{name: Naming(*row) for name, row in algorithmnames.TABLE.items()},
    **{name: Naming(*row) for name, row in linearnames.TABLE.items()},
}
SOFTMAX_BACKWARD = "The softmax passes the gradient on in proportion to P, minus what the row shares."
INPUTS: Mapping[str, str] = {
    **latentnames.INPUTS,
    **layernames.INPUTS,
    **positionnames.INPUTS,
    **weightnames.INPUTS,
    **algorithmnames.INPUTS,
    **linearnames.INPUTS,
    "X": "embedded words",
    "C": "memory",
    "WQ": "query weights",
    "WK": "key weights",
    "WV": "value weights",
    "WO": "output weights",
    "Emb": "embedding table",
    "sink": "sink",
    "slope": "slopes",
    "bias": "bias",
    "B": "additive mask",
    "M": "mask",
    "p": "dropout rate",
}
LEGEND: Mapping[str, str] = {
    **latentnames.LEGEND,
    **layernames.LEGEND,
    **positionnames.LEGEND,
    **weightnames.LEGEND,
    **algorithmnames.LEGEND,
    **linearnames.LEGEND,
    "C": "the memory",
    "Emb": "the embedding table",
    "tok": "the list of the words' numbers (rows of the embedding table)",
    "slope": "the slope",
    "sink": "the sink",
    "bias": "the bias",
    "B": "the additive mask",
    "M": "the mask",
}
"""What the letters of inputs stand for, where they do not say it themselves."""
CHOICE = re.compile(r"W\d+")
"""Names of the statements that a maximum or minimum in a score is made of, one for each term."""
PIECE = re.compile(r"F\d+")
"""Names of the inner functions of a score in which functions are nested deeply."""
ROW_SUMS = re.compile(r"D\d*")
"""Names of the sums that the backward pass of a softmax takes off, one for each softmax."""
NUMERALS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
SPELLED = frozenset({"lam", "lamda", "eps", "m", "l"})
"""Names whose letter is the name, abbreviated."""


def words_for(parameters: Iterable[str]) -> dict[str, str]:
    r"""Letters for parameters that are called like a tensor with a letter of its own: their names, upright.

    >>> words_for(["slope", "t"])
    {'slope': '\\mathrm{slope}'}
    """
    return {p: upright(p) for p in parameters if p in TENSORS and p not in SPELLED}


def row_of(name: str) -> Naming | None:
    """The row of a tensor; a name that ends in 2 is that of the second of two maps, one that ends in x of the cross attention.

    >>> row_of("P2").one, row_of("P3")
    ('Attention weights of the second map', None)
    """
    whose = {"2": "of the second map", "x": "of the cross attention"}.get(name[-1:])
    for suffix, words in algorithmnames.SUFFIXES.items():
        known = TABLE.get(name.removesuffix(suffix))
        if name not in TABLE and name.endswith(suffix) and known is not None:
            return Naming(known.one + words, known.many + words, known.reason)
    if name in TABLE or whose is None or name[:-1] not in TABLE:
        return TABLE.get(name)
    row = TABLE[name[:-1]]
    return Naming(f"{row.one} {whose}", f"{row.many} {whose}", row.reason)


def naming(s: Statement, followed: bool, parameters: Collection[str] = ()) -> tuple[str, str]:
    """Name and reason of the step of a statement; ``followed`` asks for the singular, ``parameters`` are the definition's."""
    if s.name == "Y" and not {"O", "Ylin"} & s.needs:
        return layernames.LAST
    if ROW_SUMS.fullmatch(s.name) and (title := _row_sums(s)):
        return title, TABLE["D"].reason
    if s.name == "R" and "Rlat" in s.needs:
        return TABLE["R"].many, latentnames.SCORES
    if (row := row_of(s.name)) is not None:
        reason = positionnames.reason_of_scores(s) if row is TABLE["R"] else row.reason
        if s.name in ("P", "P2", "O", "Og") and not s.over:
            reason = weightnames.reason_of_weights({name_of(x) for x in s.reads}, s.expr.func.__name__) or reason
        return (row.one if followed else row.many), reason or row.reason
    if s.name.startswith("d") and len(s.name) > 1:
        if s.name[1:].rstrip("'") in parameters:
            return naming_of_gradient(s.name[1:].rstrip("'"), parameters), _reason(s, "gradient")
        inner, _, through = s.name[1:].partition("_")
        inner = inner.rstrip("'")
        if through and inner in {*TABLE, *INPUTS, *parameters}:
            whom = f"the {through}" if through.islower() and through in TABLE else through.removesuffix("lin")
            share = "before its factor" if through == "sum" else f"the share through {whom}"
            return f"{naming_of_gradient(inner, parameters)}: {share}", _reason(s, "share")
        if s.name.endswith("'") and s.name.rstrip("'") in s.needs:
            title = naming_of_gradient(s.name[1:].rstrip("'"))
            return f"Whole g{title[1:]}", "The incoming gradient, and what the later steps pass back."
        return naming_of_gradient(s.name[1:].rstrip("'")), _reason(s, "gradient")
    if CHOICE.fullmatch(s.name):
        return _choice(s)
    if PIECE.fullmatch(s.name):
        return (
            f"Inner function {s.name[1:]} of the score",
            "Functions are nested here; each is taken by itself, from the inside out.",
        )
    return f"Tensor {s.name}", _reason(s, "value")


def _row_sums(s: Statement) -> str:
    """The title of row sums, after the weights whose rows they are; "" where they are not made of weights."""
    of = next((w for w in sorted(s.needs) if w.startswith("P") and "d" + w in {n.rstrip("'") for n in s.needs}), "")
    row = row_of(of) if of else None
    if of == "P" and s.name == "D":
        return TABLE["D"].many
    if of in ("P2", "Px"):
        return f"{TABLE['D'].many} of the {'second map' if of == 'P2' else 'cross attention'}"
    return f"{TABLE['D'].many} of the {row.many[0].lower()}{row.many[1:]}" if row is not None else ""


def _choice(s: Statement) -> tuple[str, str]:
    """Name and reason of one term of a maximum or minimum, at the places where it is chosen."""
    orders = (sp.Gt, sp.Ge, sp.Lt, sp.Le)
    won = [c for c in conjuncts(s.where) if isinstance(c, orders) and c.lhs == s.expr]
    if not won:
        return "A term of a maximum or minimum", "What this term gives where it is the one that counts, and nothing elsewhere."
    larger = isinstance(won[0], (sp.Gt, sp.Ge))
    count = len(won) + 1
    word = ("Larg" if larger else "Small") + ("er" if count == 2 else "est")
    name = f"{word} of {NUMERALS[count] if count < len(NUMERALS) else count} terms"
    return (
        f"{name}, case {s.name[1:]}",
        f"One case of it: what this term gives where it is the {word.lower()}, and nothing elsewhere.",
    )


def naming_of_gradient(inner: str, parameters: Collection[str] = ()) -> str:
    """The name of the gradient of a tensor.

    >>> naming_of_gradient("V"), naming_of_gradient("WQ"), naming_of_gradient("slope", ["slope"])
    ('Gradient of the values', 'Gradient of the query weights', 'Gradient of the parameter slope')
    """
    if inner in parameters:
        return f"Gradient of the parameter {inner}"
    if CHOICE.fullmatch(inner):
        return f"Gradient of a term of a maximum or minimum, case {inner[1:]}"
    if PIECE.fullmatch(inner):
        return f"Gradient of inner function {inner[1:]} of the score"
    title = row.many if (row := row_of(inner)) is not None else INPUTS.get(inner, inner)
    return f"Gradient of the {title[0].lower() + title[1:] if len(title) > 1 else title}"


def _reason(s: Statement, what: str) -> str:
    """A sentence read off the form of a statement."""
    sources = sorted({name_of(x) for x in reads(s.expr)})
    if {"P", "D"} <= {"D" if ROW_SUMS.fullmatch(x) else x for x in (y.removesuffix("_b") for y in sources)}:
        return SOFTMAX_BACKWARD
    if what != "value" and sources and all(x.startswith(s.name + "_") for x in sources):
        return TABLE["dX"].reason
    if what != "value" and s.over:
        return "Every place where it is used passes back a share, and the shares are added up."
    if s.over and s.reduce == "sum":
        return (
            f"A sum of products of {' and '.join(sources)}."
            if len(sources) > 1
            else f"A sum of {sources[0]}."
            if sources
            else "A count."
        )
    if s.over:
        return f"The {'largest' if s.reduce == 'max' else 'product'} of {', '.join(sources)}."
    return f"Element by element from {', '.join(sources)}." if sources else "A constant."
