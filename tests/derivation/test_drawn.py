"""Numbers from a seed: reproducible, short, exact; words to next-word probabilities without a number typed."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from symattn import variants
from symattn.definition import Definition
from symattn.derivation import derive
from symattn.derivation.binding import inputs_of
from symattn.derivation.drawn import example_of, numbers
from symattn.derivation.examples import parse
from symattn.errors import FileFormatError, InputValueError, LimitError

TOML = b"""
tokens = ["the", "cat", "sat"]
grad_out = [[0, 0], [0, 0], [1, "1/2"]]
[weights]
seed = 1
dmodel = 2
vocabulary = ["mat"]
[definition]
causal = "top-left"
"""


def test_numbers_are_quarters_that_do_not_change_from_version_to_version():
    found = numbers(1, "w_q", (2, 3))
    assert found.tolist() == [[1, 0, Fraction(-1, 4)], [Fraction(-1, 2), Fraction(-1, 4), Fraction(1, 4)]]
    many = numbers(7, "x", (20, 20)).ravel().tolist()
    assert set(many) == {Fraction(k, 4) for k in range(-4, 5)}
    assert min(numbers(7, "gam", (100,), "positive")) > 0
    assert numbers(1, "w_q", (2, 3)).tolist() != numbers(2, "w_q", (2, 3)).tolist()


def test_a_file_with_a_seed_needs_no_embedding_and_no_weights():
    example = parse(TOML, "demo")
    assert example.vocabulary == ("the", "cat", "sat", "mat") and example.arrays["embedding"].shape == (4, 2)
    derivation = derive(example=example, gradient=True)
    assert derivation["dWQ"].grids and derivation["dEmb"].grids
    text = derivation.to_text()
    assert text == derive(example=parse(TOML, "demo"), gradient=True).to_text()
    assert text != derive(example=parse(TOML.replace(b"seed = 1", b"seed = 2"), "demo"), gradient=True).to_text()


def test_what_the_file_gives_is_kept():
    typed = TOML.replace(b"[weights]", b"W_Q = [[3, 0], [0, 3]]\n[weights]")
    one, other = (derive(example=parse(t, "demo")) for t in (TOML, typed))
    key = [step.grids[0].cells for d in (one, other) for step in d.steps if step.tensors == ("K",)]
    query = [step.grids[0].cells for d in (one, other) for step in d.steps if step.tensors == ("Q",)]
    assert key[0] == key[1] and query[0] != query[1]


def test_from_words_to_next_word_probabilities():
    d = Definition(start="tokens", causal="top-left", heads=2, output_projection=True, next_word=True)
    example = example_of(d, 5, tokens=["the", "cat", "sat", "on", "the"], vocabulary=["mat"], sizes={"dmodel": 4})
    derivation = derive(None, example)
    names = [step.tensors[-1] for step in derivation.steps]
    assert names == ["X", "Q", "K", "V", "R", "S", "P", "O", "Y", "logits", "Pw"]
    emb, tokens = example.arrays["embedding"].astype(float), example.arrays["tokens"].astype(int)
    shapes = {"w_q": (2, 4, 2), "w_k": (2, 4, 2), "w_v": (2, 4, 2), "w_o": (2, 2, 4)}
    w = {n: numbers(5, n, s).astype(float) for n, s in shapes.items()}
    x = emb[tokens]
    y = np.zeros((5, 4))
    for h in range(2):
        s = (x @ w["w_q"][h]) @ (x @ w["w_k"][h]).T / np.sqrt(2)
        p = np.exp(np.where(np.tri(5) > 0, s, -np.inf))
        y += p / p.sum(-1, keepdims=True) @ (x @ w["w_v"][h]) @ w["w_o"][h]
    want = np.exp(y @ emb.T)
    want /= want.sum(-1, keepdims=True)
    shown = [cell.decimal for cell in derivation["Pw"].grids[0].cells[-1]]
    np.testing.assert_allclose([float(c) for c in shown], want[-1], atol=6e-5)


@pytest.mark.parametrize("name", ["encoder-layer", "latent-projections", "grouped-query", "sink"])
def test_other_definitions_have_numbers_too(name):
    d = variants.get(name).definition
    sizes = {"dmodel": 2, "n": 2} | ({"dff": 2} if "layer" in name else {})
    derivation = derive(d, example_of(d, 1, sizes=sizes), gradient=name == "latent-projections")
    assert all(step.grids for step in derivation.steps if not step.backward)


@pytest.mark.parametrize(
    ("change", "error", "says"),
    [
        (b"seed = 1.5", FileFormatError, "weights.seed"),
        (b"seed = 1\nd_model = 3", InputValueError, "no such size"),
        (b"seed = 1\nd = 0", InputValueError, "from 1 on"),
        (b"seed = 1\ndff = 1000", LimitError, "up to 64"),
    ],
)
def test_errors_name_the_file_and_the_key(change, error, says):
    with pytest.raises(error, match=says) as caught:
        derive(example=parse(TOML.replace(b"seed = 1", change), "demo"))
    assert "demo" in str(caught.value)


def _drawn_page(name: str, seed: int = 1, **asked: int) -> str:
    d = variants.get(name).definition
    words = {"tokens": ["the", "cat"]} if d.start == "tokens" else {}
    return derive(d, example_of(d, seed, sizes=asked, **words)).to_text()


@pytest.mark.parametrize("name", ["concat", "norm-after-rope", "rope", "cosine", "boolean-mask", "document", "dropout", "paged"])
def test_a_seed_draws_every_input(name):
    assert "Attention weights" in _drawn_page(name)


@pytest.mark.slow
@pytest.mark.parametrize("name", variants.names())
def test_a_seed_draws_every_input_of_every_variant(name):
    assert _drawn_page(name)


def test_what_is_drawn_is_what_the_field_may_hold():
    def of(name: str, **sizes: int) -> dict[str, np.ndarray]:
        d = variants.get(name).definition
        found, _ = inputs_of(example_of(d, 3, sizes=sizes), d.program(), d)
        return found

    assert set(of("boolean-mask", n=6, m=6)["M"].ravel()) == {0, 1}
    assert of("boolean-mask", n=6, m=6)["M"].any(axis=1).all()
    documents = of("document", n=8, m=8)
    assert documents["doc_q"].tolist() == documents["doc_k"].tolist() == sorted(documents["doc_k"])
    assert 1 <= of("padding", m=5)["len"] <= 5 and of("cosine")["g"] > 0 and 0 < of("dropout")["p"] < 1
    assert sorted(of("paged", T=4)["page"]) == [0, 1, 2, 3]


@pytest.mark.parametrize("name", ["next-word", "sinusoidal-positions"])
def test_words_are_asked_for(name):
    d = variants.get(name).definition
    with pytest.raises(InputValueError, match="--tokens"):
        derive(d, example_of(d, 1))
