"""Random combinations of the fields of a definition: row maxima are proved to cancel, and gradients to be right."""

from __future__ import annotations

import random
from typing import Any

import pytest

from symattn.claims import prove_range_only
from symattn.definition import Definition
from symattn.errors import SymattnError
from symattn.program import Program
from symattn.theorems.duality import prove_duality

AXES = ["b", "h", "bh", "i", "bi", "hi", "bhi", "j", "ij", "hij", "bij", "bhij", "bj", "hj", "bhj"]
MASKS = """abs(i-j)<2; max(i-j,j-i)<2; abs(j-i)>1; abs(i-j)%2==0; abs(i-j)<=3 and j<=i; floor(i/2)==floor(j/2); min(i,j)<2
(i-j)%3==1; i%2==j%2; i>0 and j<=i; b==0; h==0 or j<=i; not (j>i and i<5); i<n-1; j<w; i>=w; abs(i-w)<j; i%2==0; max(i,2)>j; i==j
i!=j; j>0 and i>0 and b>0; (i-j)//3==0; abs(i-2*j)<4 or i==0; floor(abs(i-j)/2)==1; min(abs(i-j),abs(i-j-1))<2; h%2==0
abs(j-i+m-n)<3; abs(i-j)==2; not abs(i-j)>2; 2<=i and i<5; i==0 or b==0; h==1 or i%2==0; i==0 and b==0 or i>3
not(i==0 or b==1); b==0 and j<=i or b==1 and i>2""".replace("\n", "; ").split("; ")
SCORES = """20*tanh(s/20); s-abs(i-j); s*(i-j)/n; s-w*abs(i-j); s+min(i,j); s-(i-j)%3; s-floor(j/2); s-max(i-j,0); s/(1+abs(s))
max(s,0); s+log(1+abs(i-j)); -abs(s); s*w**2; s-w*max(i-j,j-i); tanh(i-j)*s; exp(-abs(i-j))*s; s/sqrt(1+(i-j)**2); s*exp(j-i)
min(s,w); s+tanh(w*(i-j)); abs(s-w)""".replace("\n", "; ").split("; ")


def definition(seed: int) -> Program:
    """The program of a random definition; draws again where fields contradict each other."""
    r = random.Random(seed)
    while True:
        try:
            return Definition.of(**fields(r)).program(batch=r.random() < 0.5)
        except SymattnError:
            continue


def fields(r: random.Random) -> dict[str, Any]:
    choices: list[tuple[float, dict[str, list[Any]]]] = [
        (0.4, {"heads": [2, 4]}),
        (0.2, {"heads": [4], "kv_heads": [1, 2], "grouping": ["interleaved", "tiled"]}),
        (0.4, {"causal": ["top-left", "bottom-right", 1]}),
        (0.3, {"window": [(2, None), (3, 0), (None, 1), (1, 1)], "window_counts": ["keys", "distance"]}),
        (0.15, {"prefix": [2, "start_"]}),
        (0.2, {"document": [True]}),
        (0.2, {"key_lengths": [True]}),
        (0.3, {"attn_mask": ["boolean"], "mask_axes": AXES, "mask_polarity": ["attend", "drop"]}),
        (0.25, {"attn_mask": ["additive"], "mask_axes": AXES, "mask_polarity": ["attend"]}),
        (0.25, {"bias": [True], "bias_axes": AXES}),
        (0.2, {"softcap": [20, "cap"]}),
        (0.2, {"alibi": [True], "alibi_distance": ["signed", "absolute"]}),
        (0.3, {"empty_row": ["zero", "nan", "uniform"]}),
        (0.5, {"sink": [True], "empty_row": ["zero"]}),
        (0.2, {"dropout": [True]}),
        (0.4, {"score": SCORES}),
        (0.5, {"mask": MASKS}),
        (0.3, {"lse_base": [2]}),
        (0.15, {"lse": [False]}),
        (0.1, {"start": ["x", "tokens"]}),
    ]
    out: dict[str, Any] = {}
    for p, group in choices:
        if r.random() < p:
            out |= {name: r.choice(values) for name, values in group.items()}
    return out


@pytest.mark.parametrize("mask", MASKS)
def test_every_mask_with_a_sink(mask):
    prove_range_only(Definition(mask=mask, sink=True, heads=2).program(batch=True))


@pytest.mark.parametrize("score", SCORES)
def test_every_score(score):
    prove_range_only(Definition(score=score, causal="top-left").program())


@pytest.mark.parametrize("axes", AXES)
@pytest.mark.parametrize("kind", [("boolean", "attend"), ("boolean", "drop"), ("additive", "attend")], ids="/".join)
def test_a_sink_with_every_shape_of_mask(kind, axes):
    prove_range_only(Definition(attn_mask=kind[0], mask_polarity=kind[1], mask_axes=axes, sink=True, heads=2).program(batch=True))


@pytest.mark.parametrize("seed", range(5))
def test_some_random_definitions(seed):
    assert prove_duality(definition(seed))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1000, 1400))
def test_claims_of_many_random_definitions(seed):
    prove_range_only(definition(seed))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2000, 2060))
def test_gradients_of_many_random_definitions(seed):
    assert prove_duality(definition(seed))
