"""Faults of range, format and tile in the backward pass, run in the kernel's format."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from symattn.verify.emulators.machine import Machine
from symattn.verify.faults.emulated_rounding import SIXTEEN, in_tiles, narrower, step
from symattn.verify.faults.emulating import in_backward, plain, tiled, untiled
from symattn.verify.faults.fault import Fault, Situation

Changes = list[tuple[str, dict[str, object]]]


def _empty(s: Situation) -> Changes:
    if not s.reference.call.has_empty_row or s.definition.sink:
        return []
    ways = (("", "weights"), ("in the weights of dV alone", "values"), ("in dS alone", "scores"))
    return [(label, {"empty_gradient": np.nan, "empty_in": place}) for label, place in ways]


def _sink_terms(s: Situation) -> Iterator[tuple[str, Machine]]:
    if s.definition.sink:
        for f in narrower(s, s.arithmetic.accumulate, SIXTEEN):
            yield f, plain(s, rounded={"sink_terms": f})


def _query_tiles(name: str, declared: Callable[[Situation], str | None]) -> Callable[[Situation], Iterator[tuple[str, Machine]]]:
    """Buffers that grow with every tile of queries."""

    def machines(s: Situation) -> Iterator[tuple[str, Machine]]:
        for f in narrower(s, declared(s), SIXTEEN):
            for tile in (1, 16, 32, 64, 128):
                yield f"{f}, {tile} queries a tile", plain(s, query_tile=tile, rounded={name: f})

    return machines


ROWS = (
    Fault(
        "B22",
        "ring: the keys of the step before are used for dQ",
        "mathematics",
        wrong="dS K of the step before",
        right="dS K of the step",
        threads=("diffusers#14265",),
        look="which buffer holds K when dQ is added up",
        shows="more than one tile or shard of keys",
        blind="one shard",
        rewrite=in_backward(tiled(lambda s: [("", {"stale_keys": True})])),
    ),
    Fault(
        "B25",
        "row without keys is NaN in the backward",
        "range",
        wrong="P = exp(-inf + inf) or softmax of -inf = NaN, or D = NaN",
        right="0: such a row depends on nothing, whatever its output is set to",
        threads=("cudnn-frontend#160", "cudnn-frontend#262"),
        look="exp(s - L) where L is -infinity; a softmax over -infinity alone; D of an output that is NaN",
        shows="rows without keys",
        blind="no row without keys",
        rewrite=in_backward(untiled(_empty)),
    ),
    Fault(
        "B29",
        "zero keys behind the end are not masked in the backward",
        "range",
        wrong="exp(0 - L) = infinity, times 0",
        right="masked",
        threads=("cudnn-frontend#628", "pytorch#196678"),
        look="the mask of the last tile in the backward",
        shows="m no multiple of the tile and L < -88.7: dQ is NaN",
        blind="L > -88.7: bit-identical",
        rewrite=in_backward(untiled(lambda s: [("", {"tail": True})])),
    ),
    Fault(
        "B15",
        "terms of dSink rounded to 16 bits before they are summed",
        "arithmetic",
        wrong="sum of RN16(terms)",
        right="RN16 of the sum",
        threads=("jax#40128",),
        look="the dtype of what is reduced to dSink",
        shows="16-bit kernels, 64 rows and more",
        blind="short sums",
        rewrite=in_backward(_sink_terms),
    ),
    Fault(
        "B26",
        "recomputed scores rounded to 16 bits",
        "arithmetic",
        wrong="P = exp(RN16(s) - L)",
        right="P = exp(s - L)",
        threads=("cudnn-frontend#744 (disputed)",),
        look="the format of q.k in the backward",
        shows="large scores",
        blind="|s| small",
        rewrite=in_backward(step("recomputed", lambda s: s.arithmetic.store)),
    ),
    Fault(
        "B28",
        "D rounded to 16 bits",
        "arithmetic",
        wrong="RN16(rowsum(dO o O))",
        right="float32",
        look="the dtype of the buffer of D",
        shows="16-bit kernels: half an ulp of D times P",
        blind="D near 0",
        rewrite=in_backward(step("delta", lambda s: s.arithmetic.accumulate)),
    ),
    Fault(
        "B50",
        "dQ grows in 16 bits from tile to tile",
        "arithmetic",
        wrong="RN16(dQ + dS K) after every tile",
        right="float32",
        look="the dtype of the buffer of dQ",
        shows="several tiles of keys",
        blind="one tile",
        rewrite=in_backward(in_tiles("grad_query", lambda s: s.arithmetic.dq_accumulate or s.arithmetic.accumulate)),
    ),
    Fault(
        "B51",
        "dP rounded to 16 bits",
        "arithmetic",
        wrong="P o (RN16(dP) - D)",
        right="float32",
        look="the format of dO V^T",
        shows="16-bit kernels",
        rewrite=in_backward(step("grad_weight", lambda s: s.arithmetic.store)),
    ),
    Fault(
        "B52",
        "LSE read in 16 bits",
        "arithmetic",
        wrong="P = exp(s - RN16(L))",
        right="P = exp(s - L)",
        look="the dtype in which the LSE was saved",
        shows="any kernel that recomputes the weights",
        rewrite=in_backward(step("saved_lse", lambda s: s.arithmetic.lse)),
    ),
    Fault(
        "B53",
        "dK and dV grow in 16 bits over the queries",
        "arithmetic",
        wrong="RN16(dK + dS^T Q) after every tile of queries",
        right="float32",
        look="the dtype of the buffers of dK and dV",
        shows="several tiles of queries",
        blind="one tile",
        rewrite=in_backward(_query_tiles("grad_key", lambda s: s.arithmetic.dkv_accumulate or s.arithmetic.accumulate)),
    ),
)
