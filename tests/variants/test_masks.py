"""The masks of the catalogue against predicates written by hand, and against PyTorch's FlexAttention."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from symattn import variants
from symattn.binding import bind, unbind
from symattn.readings import numpy as reading
from symattn.verify.inputs import Shape, fields_for
from tests.support import require

B, H, N, M = 2, 2, 12, 16
SHAPE = Shape(B, H, H, N, M, 4, 4)


def clamped(x: int, length: int, width: int) -> range:
    start = x - width // 2
    start = 0 if start < 0 else start
    start = length - width if start > length - width else start
    return range(start, start + width)


def diffusion(i: int, j: int) -> bool:
    half = N // 2
    noisy_i, noisy_j = i < half, j < half
    block_i, block_j = (i if noisy_i else i - half) // 2, (j if noisy_j else j - half) // 2
    if noisy_i and noisy_j:
        return block_i == block_j
    if noisy_i:
        return block_j < block_i
    return not noisy_j and block_j <= block_i


def flex(*args: Any, **options: Any) -> Any:
    """FlexAttention's eager reference; that it is not compiled is what is wanted."""
    from torch.nn.attention.flex_attention import flex_attention

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return flex_attention(*args, **options)


Predicate = Callable[[int, int, int, dict[str, Any]], bool]
BY_HAND: dict[str, Predicate] = {
    "causal": lambda b, i, j, f: j <= i,
    "causal-bottom-right": lambda b, i, j, f: j - i <= M - N,
    "sliding-window": lambda b, i, j, f: 0 <= i - j < 4,
    "local-window": lambda b, i, j, f: abs(i + M - N - j) <= 2,
    "prefix": lambda b, i, j, f: j <= i or j < f["prefix"][b],
    "document": lambda b, i, j, f: j <= i and f["doc_q"][b, i] == f["doc_k"][b, j],
    "padding": lambda b, i, j, f: j < f["key_lengths"][b],
    "dilated-window": lambda b, i, j, f: i - j in (0, 2, 4, 6),
    "global-tokens": lambda b, i, j, f: -2 <= i - j <= 2 or min(i, j) < 2,
    "sink-tokens": lambda b, i, j, f: 0 <= i - j <= 3 or (j <= i and j < 2),
    "document-window": lambda b, i, j, f: 0 <= i - j < 4 and f["doc_q"][b, i] == f["doc_k"][b, j],
    "shared-prefix": lambda b, i, j, f: j < 4 or (f["request"][i] == f["owner"][j] and j - 4 <= i),
    "block-causal": lambda b, i, j, f: j // 2 <= i // 2,
    "block-diffusion": lambda b, i, j, f: diffusion(i, j),
    "tree": lambda b, i, j, f: j < 4 or f["node"][i] in range(f["enter"][j], f["leave"][j]),
    "neighbourhood-1d": lambda b, i, j, f: j in clamped(i, M, 3),
    "neighbourhood-2d": lambda b, i, j, f: j // 4 in clamped(i // 4, 4, 3) and j % 4 in clamped(i % 4, 4, 3),
    "neighbourhood-3d": lambda b, i, j, f: j // 4 in clamped(i // 4, 4, 3) and i % 4 == j % 4,
}


def fields_of(name: str) -> dict[str, Any]:
    fields = fields_for(variants.get(name).definition, SHAPE, "float64", 0)
    if name == "tree":
        fields["leave"] = fields["enter"] + 2
    return {k: a for k, a in fields.items() if not k.startswith("grad_")}


def by_hand(name: str, fields: dict[str, Any]) -> Any:
    keep = np.zeros((B, N, M), dtype=bool)
    for b, i, j in itertools.product(range(B), range(N), range(M)):
        keep[b, i, j] = BY_HAND[name](b, i, j, fields)
    return keep


@pytest.mark.parametrize("name", BY_HAND)
def test_a_mask_is_what_its_predicate_says(name: str) -> None:
    fields = fields_of(name)
    want = by_hand(name, fields)
    assert want.any() and not want.all()
    bound = bind(variants.get(name).definition, fields)
    assert (bound.keep() == want[:, None]).all()


def test_every_mask_of_the_catalogue_has_a_predicate() -> None:
    given = {"boolean-mask", "additive-mask"}
    assert {n for n in variants.names() if variants.family_of(n) == "masks"} == set(BY_HAND) | given


@pytest.mark.parametrize("name", BY_HAND)
def test_flex_attention_gives_the_same(name: str) -> None:
    torch = require("torch")
    from torch.nn.attention.flex_attention import create_block_mask

    fields = fields_of(name)
    keep = torch.from_numpy(by_hand(name, fields))
    mask = create_block_mask(lambda b, h, i, j: keep[b, i, j], B, None, N, M, device="cpu", BLOCK_SIZE=16)
    q, k, v = (torch.from_numpy(fields[x]) for x in ("query", "key", "value"))
    want = flex(q, k, v, block_mask=mask).numpy()
    bound = bind(variants.get(name).definition, fields)
    values = reading.evaluate(bound.program, bound.inputs, sizes=bound.sizes, dtype="float64")
    assert np.abs(unbind(bound, "O", values["O"])[1] - want).max() < 1e-12


MODS: dict[str, Callable[..., Any]] = {
    "softcap": lambda torch, f: lambda s, b, h, i, j: 20 * torch.tanh(s / 20),
    "bias": lambda torch, f: lambda s, b, h, i, j: s + torch.from_numpy(f["bias"])[0, h, i, j],
    "alibi": lambda torch, f: (
        lambda s, b, h, i, j: torch.where(j <= i, s - torch.from_numpy(f["alibi_slopes"])[h] * (i - j), -torch.inf)
    ),
}


@pytest.mark.parametrize("name", MODS)
def test_flex_attention_gives_the_same_for_score_modifications(name: str) -> None:
    torch = require("torch")
    fields = fields_of(name)
    q, k, v = (torch.from_numpy(fields[x]) for x in ("query", "key", "value"))
    want, lse = flex(q, k, v, score_mod=MODS[name](torch, fields), return_lse=True)
    bound = bind(variants.get(name).definition, fields)
    values = reading.evaluate(bound.program, bound.inputs, sizes=bound.sizes, dtype="float64")
    assert np.abs(unbind(bound, "O", values["O"])[1] - want.numpy()).max() < 1e-12
    assert np.abs(unbind(bound, "L", values["L"])[1] - lse.numpy()).max() < 1e-12
