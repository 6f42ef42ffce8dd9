"""Names and reasons of the steps of rotations, norms, distances and similarities, for :mod:`symattn.derivation.naming`."""

from __future__ import annotations

from collections.abc import Mapping

import sympy as sp

from symattn.indexed import reads
from symattn.program import Statement

TABLE: Mapping[str, tuple[str, str, str]] = {
    "Tha": ("Frequencies of first channels", "Frequencies of first channels", "How far a pair turns per position."),
    "Thb": ("Frequencies of second channels", "Frequencies of second channels", "The same for the other channel of a pair."),
    "Th": ("Frequencies", "Frequencies", "How far a pair of channels turns from one position to the next."),
    "CQ": ("Cosines for the queries", "Cosines for the queries", "One table for all: the angle is position times frequency."),
    "SQ": ("Sines for the queries", "Sines for the queries", "The same angles."),
    "CK": ("Cosines for the keys", "Cosines for the keys", "One table for all: the angle is position times frequency."),
    "SK": ("Sines for the keys", "Sines for the keys", "The same angles."),
    "Qneg": ("Partners of first channels", "Partners of first channels", "A quarter turn puts the second channel here, negated."),
    "Qpos": ("Partners of second channels", "Partners of second channels", "A quarter turn puts the first channel here."),
    "Qturn": ("Queries, a quarter turn on", "Queries, a quarter turn on", "The partner of every channel, with its sign."),
    "Qrest": ("Channels that stay", "Channels that stay", "Only the first channels are turned."),
    "Qrot": ("Rotated query", "Rotated queries", "Each pair of channels is turned by an angle that grows with the position."),
    "Kneg": ("Partners of first channels", "Partners of first channels", "A quarter turn puts the second channel here, negated."),
    "Kpos": ("Partners of second channels", "Partners of second channels", "A quarter turn puts the first channel here."),
    "Kturn": ("Keys, a quarter turn on", "Keys, a quarter turn on", "The partner of every channel, with its sign."),
    "Krest": ("Channels that stay", "Channels that stay", "Only the first channels are turned."),
    "Krot": ("Rotated key", "Rotated keys", "Turned like the queries: products depend on the distance alone."),
    "Qsq": ("Squared length of the query", "Squared lengths of the queries", "The sum of the squares of its channels."),
    "Qnorm": ("Norm of the query", "Norms of the queries", "What the query is divided by."),
    "Qn": ("Normalised query", "Normalised queries", "Only the direction counts now, not the length."),
    "Ksq": ("Squared length of the key", "Squared lengths of the keys", "The sum of the squares of its channels."),
    "Knorm": ("Norm of the key", "Norms of the keys", "What the key is divided by."),
    "Kn": ("Normalised key", "Normalised keys", "Only the direction counts now, not the length."),
    "Kcount": ("Number of keys", "Numbers of keys", "Padding is not counted."),
    "Ksum": ("Sum of the keys", "Sum of the keys", "Over all keys that exist, whoever sees them."),
    "Kmean": ("Mean of the keys", "Mean of the keys", "What all keys have in common."),
    "Ks": ("Smoothed key", "Smoothed keys", "What is left varies less, which low-bit formats hold better."),
    "Qw": ("Query through the matrix", "Queries through the matrix", "A learned matrix stands between query and key."),
    "Hq": ("Query's share of the hidden layer", "Queries' shares of the hidden layer", "The query, seen by each hidden unit."),
    "Hk": ("Key's share of the hidden layer", "Keys' shares of the hidden layer", "The key, seen by each hidden unit."),
    "Qu": ("Query for the content", "Queries for the content", "A learned vector is added: some keys matter to all."),
    "Qv": ("Query for the distance", "Queries for the distance", "A learned vector is added: some distances matter to all."),
    "Rc": ("Scores of the content", "Scores of the content", "How well query and key match, wherever they stand."),
    "Rp": ("Scores of the distances", "Scores of the distances", "How well the query matches each distance."),
}
"""Singular and plural name, and the reason."""
INPUTS: Mapping[str, str] = {
    "gQ": "weights of the queries' norm",
    "gK": "weights of the keys' norm",
    "Wgen": "matrix between query and key",
    "Wadd": "hidden layer's weights of the query",
    "Uadd": "hidden layer's weights of the key",
    "Wcat": "hidden layer's weights",
    "wadd": "weights of the hidden units",
    "aK": "vectors of the distances",
    "rK": "vectors of the distances",
    "uR": "bias of the content",
    "vR": "bias of the distance",
    "Bkt": "biases of the buckets",
}
LEGEND: Mapping[str, str] = {
    "gQ": "the weights of the queries' norm",
    "gK": "the weights of the keys' norm",
    "Wgen": "the matrix between query and key",
    "Wadd": "the hidden layer's weights of the query",
    "Uadd": "the hidden layer's weights of the key",
    "Wcat": "the hidden layer's weights of query and key side by side",
    "wadd": "the weights of the hidden units",
    "aK": "the vectors of the distances",
    "rK": "the vectors of the distances",
    "uR": "the bias of the content",
    "vR": "the bias of the distance",
    "Bkt": "the biases of the buckets",
    "bkt": "the number of the bucket of query and key",
}


def reason_of_scores(s: Statement) -> str | None:
    """The reason of raw scores that are no dot product; None where they are one."""
    if not s.over:
        return "The scores of the content and of the distance, added up."
    if s.expr.has(sp.tanh):
        return "A small network compares query and key: each hidden unit has a say, by its weight."
    return None if isinstance(s.expr, sp.Mul) and len(reads(s.expr)) == 2 else "How well a query and a key match."
