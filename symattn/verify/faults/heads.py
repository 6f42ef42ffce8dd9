"""Faults of heads and layouts: grouping, transposes that were forgotten, axes that were mixed up."""

from __future__ import annotations

from collections.abc import Iterator

from symattn.verify.faults.fault import Alternative, Fault, Situation


def _tiled(s: Situation) -> Iterator[Alternative]:
    h, kv = s.sizes.get("H", 1), s.sizes.get("HKV", 1)
    if kv not in (1, h) and s.definition.form == "softmax":
        yield Alternative(
            definition=s.definition.replace(grouping="interleaved" if s.definition.grouping == "tiled" else "tiled")
        )


ROWS = (
    Fault(
        "F01",
        "key/value head of a query head by the other grouping (h mod H_kv for h // g)",
        "convention",
        wrong="kv(h) = h mod H_kv",
        right="kv(h) = h // (H/H_kv)",
        threads=("onnx#7274", "axlearn#842"),
        look="tile or repeat where repeat_interleave is meant",
        blind="H_kv = 1 or H_kv = H",
        rewrite=_tiled,
    ),
)
