"""Names and reasons of the steps of latent attention; see :mod:`symattn.derivation.naming`."""

from __future__ import annotations

from collections.abc import Mapping

from symattn.derivation import positionnames

_PART = "the part with positions"

TABLE: Mapping[str, tuple[str, str, str]] = {
    "Lat": ("Latents", "Latents", "One small vector is kept of every token, for all heads: it is what is cached."),
    "LatQ": ("Latents of the queries", "Latents of the queries", "Queries go through a narrow place too."),
    "Qr": ("Part of the query with its position", "Parts of the queries with positions", "These channels will be rotated."),
    "Kr": (
        "Parts of the keys with positions",
        "Parts of the keys with positions",
        "Rotated like those, and shared by all heads.",
    ),
    "Qa": (
        "Query in the space of the latent",
        "Queries in the space of the latent",
        "The matrix that would make keys is taken to the query instead, so that keys need not be made.",
    ),
    "Olat": (
        "Weighted latent",
        "Weighted latents",
        "The latents count by their weights; values need not be made either.",
    ),
    "Rlat": ("Raw scores of the content", "Raw scores of the content", "The dot product through the latent."),
    "Rrope": ("Raw scores of the positions", "Raw scores of the positions", "The dot product of the rotated parts."),
    **{
        name + "r": (f"{one}, {_PART}", f"{many}, {_PART}", reason)
        for name, (one, many, reason) in positionnames.TABLE.items()
        if name in ("Qneg", "Qpos", "Qrest", "Qturn", "Qrot", "Kneg", "Kpos", "Krest", "Kturn", "Krot")
    },
}
INPUTS: Mapping[str, str] = {
    "Lat": "latents",
    "Kr": "part of the keys with positions",
    "Qr": "part of the queries with positions",
    "WUK": "key weights of the latent",
    "WUV": "value weights of the latent",
    "WDKV": "weights of the latent",
    "WKR": "weights of the keys with positions",
    "WDQ": "weights of the latent of the queries",
    "WUQ": "query weights of their latent",
    "WQR": "weights of the queries with positions",
}
LEGEND: Mapping[str, str] = {
    "Lat": "what is kept of every token",
    "Kr": "the part of the keys with positions",
    "Qr": "the part of the queries with positions",
    "WUK": "the matrix from the latent to the keys",
    "WUV": "the matrix from the latent to the values",
    "WDKV": "the matrix from X to the latent",
    "WDQ": "the matrix from X to the latent of the queries",
}
SCORES = "The two parts of the score, that of the content and that of the positions, added up."
"""Why the raw scores are a sum."""
