"""What a page says around its numbers: where counting starts, remarks on identities, names, headings, the order of steps."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from symattn.definition import Definition
from symattn.derivation import derive, examples
from symattn.derivation.binding import definition_of
from symattn.derivation.nodeprint import text
from tests.derivation.witness import MASKED, checked, lines_of, witness

# --- what the program counts from 0

ALL = {
    "user's score": ({"score": "(i + 1)*s"}, 0),
    "difference": ({"score": "s - t*(i - j)", "params": {"t": "1/3"}}, 1),
    "distance": ({"score": "s - abs(i - j)", "window": (2, 1)}, 1),
    "quotient": ({"score": "s*(i + 1)/(j + 1)"}, 0),
    "prefix": ({"prefix": 2}, 0),
    "first key": ({"mask": "j <= i or j == 0"}, 0),
    "causal": ({"causal": "top-left"}, 1),
    "choice": ({"score": "max(s, 1/2) - min(s, i)"}, 0),
}


@pytest.mark.parametrize(("fields", "origin"), ALL.values(), ids=ALL)
def test_formulas_and_numbers_count_from_the_same_number(fields: dict[str, Any], origin: int) -> None:
    example = examples.parse(MASKED, "test")
    d = derive(Definition(**fields), example)
    tensors = witness(example, definition_of(example, Definition(**fields)))
    assert d.style.origin == origin
    assert [w for x in lines_of(d) for w in checked(d, x, tensors)] == []
    assert sum(f"counted from {origin}" in n for n in d.notes) == sum("counted from" in n for n in d.notes) == 1


def test_a_position_in_a_line_is_the_one_of_its_subscript() -> None:
    def first(score: str) -> str:
        line = derive(Definition(score=score, scale=1), examples.parse(MASKED, "test"))["Z"].lines[0]
        assert line.work is not None
        style = derive(Definition(score=score)).style
        return f"{text(line.item, style)} = {text(line.work, style)}"

    assert first("(i + 1)*s") == "Z[1,0] = (1 + 1)·1"
    assert first("s - (i - j)/3") == "Z[2,1] = 1 - (2 - 1)/3"


def test_every_form_counts_from_the_same_number() -> None:
    example = examples.parse(b"X = [[1], [2]]\ntokens = ['a', 'b']\nfollow = 'b'\n[definition]\nprefix = 1", "test")
    zero = derive(example=example)
    data = json.loads(zero.to_json())
    assert data["origin"] == 0 and data["follow"] == 1
    raw = next(s for s in data["steps"] if s["tensors"] == ["R"])
    assert [x["element"] for x in raw["lines"]] == ["R[1,0]", "R[1,1]"] and raw["grids"][0]["row"] == 1
    one = json.loads(derive(Definition(prefix=None, causal=None), replace(example, definition={})).to_json())
    assert one["origin"] == 1 and one["follow"] == 2 and one["steps"][3]["lines"][0]["element"] == "R[2,1]"
    assert "Words: 0 a  1 b\nFollowed: query 1, b" in zero.to_text() and "R[1,:] =" in zero.to_text()
    assert "Words: 0 a, 1 b." in zero.to_latex() and "R_{1,:}" in zero.to_latex() and "R_{1,0}" in zero.to_latex()
    assert "Words: 0 a, 1 b." in zero.to_markdown() and "Followed: query 1, b" in zero.to_markdown()
    assert "<b>0</b>&nbsp;a <b>1</b>&nbsp;b" in zero.to_html() and "Followed: query 1, b" in zero.to_html()


# --- identities

TWO_HEADS = b"""
X = [[1, 2], [3, 4]]
W_Q = [[[1, 0], [0, 1]], [[1, 0], [0, 1]]]
[definition]
heads = 2
"""


@pytest.mark.parametrize(
    ("source", "tensor", "sentence"),
    [
        (b"Q = [[1, 0], [0, 1]]\nK = [[1, 2], [3, 4]]\nV = [[1], [3]]", "R", "Q is the identity here, so R is K transposed."),
        (b"Q = [[1, 2], [3, 4]]\nK = [[1, 0], [0, 1]]\nV = [[1], [3]]", "R", "K is the identity here, so R = Q."),
        (b"Q = [[1]]\nK = [[5]]\nV = [[1]]", "R", "Q is the identity here, so R is K transposed."),
        (b"X = [[1, 2], [3, 4]]", "Q", "W_Q is the identity here, so Q = X."),
        (TWO_HEADS, "Q", "W_Q is the identity here, so Q = X in every head."),
        (b"Q = [[1, 2]]\nK = [[3, 4], [0, 1]]\nV = [[1, 0], [0, 1]]", "O", "V is the identity here, so O = P."),
    ],
)
def test_what_a_product_with_an_identity_is(source: bytes, tensor: str, sentence: str) -> None:
    example = examples.parse(source, "test")
    d = derive(example=example)
    assert d[tensor].remark == "The matrix " + sentence
    arrays = witness(example, definition_of(example).replace(lse=False))
    said, factor = sentence.rpartition("so ")[2].replace(".", "").split()[:3:2]
    want, other = (np.asarray(arrays[n], dtype=float) for n in (said, factor))
    want = want[-1] if "head" in sentence else want
    assert (want == (other.T if "transposed" in sentence else other)).all()


def test_a_product_with_an_identity_that_is_more_than_a_product_has_no_remark() -> None:
    eye = b"X = [[1, 2], [3, 4]]\nW_O = [[[1, 0], [0, 1]], [[1, 0], [0, 1]]]\n[definition]\nheads = 2"
    d = derive(example=examples.parse(eye, "test"))
    assert d["Y"].remark == "" and [g.tensor for g in d.inputs] == ["X", "WO", "WO"]  # a sum over heads is no copy
    masked = derive(
        Definition(causal="top-left"), examples.parse(b"Q = [[1, 0], [0, 1]]\nK = [[1, 2], [3, 4]]\nV = [[1], [3]]", "t")
    )
    assert masked["R"].remark == ""


# --- names, letters, headings, order


def test_parameters_are_printed_as_typed_and_called_by_their_names() -> None:
    d = derive(Definition(score="s*slope", params={"slope": "0.5,0.25"}), gradient=True)
    assert d.definition == "score=s*slope, param slope=1/2,1/4"
    own = derive(Definition(score="s*slope + bias*i"), gradient=True)
    assert r"\mathrm{slope}" in own["Z"].index[0].latex and r"\mu" not in own.to_latex()
    assert own["dslope"].name == "Gradient of the parameter slope" and own["dbias"].name == "Gradient of the parameter bias"
    built = derive(Definition(alibi=True), gradient=True)
    assert r"\mu" in built["Z"].index[0].latex and "μ is the slope." in built.notes
    assert r"$\mu$ is the slope" in built.to_latex()


def test_every_step_has_a_name_and_a_reason() -> None:
    for fields in ({"score": "max(s, t) - min(s, 1, i)"}, {"heads": 6, "alibi": True, "alibi_slopes": "interleaved"}):
        steps = derive(Definition(**fields), gradient=True, lse=True, show_max=True).steps
        assert not [s.name for s in steps if s.name.startswith("Tensor") or s.reason == "A constant."]
        assert len({s.name for s in steps}) == len(steps)
    choices = derive(Definition(score="max(s, 0) - min(s, 1, t)"))
    names = [s.name for s in choices.steps if s.tensors[0].startswith("W")]
    assert names[:2] == ["Larger of two terms, case 0", "Larger of two terms, case 1"] and "Smallest of three terms" in names[2]


def test_gradients_come_in_the_order_of_the_inputs() -> None:
    def order(**fields: Any) -> list[str]:
        names = [s.tensors[-1] for s in derive(Definition(**fields), gradient=True).steps if s.backward]
        return [n for n in names if "_" not in n]

    assert order(alibi=True) == ["dP", "D", "dZ", "dQ", "dK", "dV", "dslope"]
    wide = order(start="x", heads=2, output_projection=True)
    assert wide == ["dO", "dP", "D", "dS", "dQ", "dK", "dV", "dX", "dWQ", "dWK", "dWV", "dWO"]


def test_a_heading_does_not_say_what_was_changed() -> None:
    example = examples.load("two-words-causal")
    same, other = derive(example=example), derive(Definition(causal="bottom-right"), example)
    assert same.title == example.title and same.about == example.about and same.about
    assert other.title == f"{example.title}, changed" and other.about == ""
    assert derive(example=example, lse=True).title == example.title
    free = examples.load("two-words")  # it asks for nothing
    assert derive(Definition(causal="top-left"), free).title == free.title


@pytest.mark.parametrize(
    "source",
    [
        MASKED + b"sinks = 0.5\n[definition]\nsink = true",
        MASKED + b"[definition]\nscore = 's + tanh(s)*exp(s)/3 - abs(s)*tanh(2*s)'",
        MASKED + b"[definition]\nsoftcap = 3\nmask = 'j < i'\nempty_row = 'uniform'",
    ],
)
def test_every_element_that_a_line_of_the_softmax_reads_stands_on_the_page(source: bytes) -> None:
    d = derive(example=examples.parse(source, "test"))
    shown = {text(line.item, d.style) for line in lines_of(d)}
    for line in d["P"].lines:
        read = re.findall(r"[ℓE](?:_\w+)?\[[\d,]+\]", text(line.work, d.style) if line.work is not None else "")
        assert set(read) <= shown, text(line.item, d.style)
    assert any(x.startswith("ℓ[") for x in shown)


def test_helpers_that_are_not_shown_are_not_read() -> None:
    d = derive(Definition(sink=True), lse=True)
    assert [f.latex for f in d["P0"].index] == [
        r"(P_0)_{i} = \frac{\exp(b)}{\exp(b) + \sum_j \exp(S_{ij})}".replace("_{i}", "_i")
    ]
    assert not any("ell" in f.latex for s in d.steps for f in s.formulas)


# --- words and their numbers


def test_the_numbers_of_words_are_introduced_where_they_are_first_read() -> None:
    d = derive(example="two-words", gradient=True)
    said = r" \quad\text{where } t_p \text{ is the number of the word at position } p"
    assert d["X"].index[0].latex == r"X_{pa} = \mathcal{E}_{t_p,a}" + said
    assert "X[p,a] = ℰ[t[p],a]   where t[p] is the number of the word at position p " in d.to_text()
    assert [said[30:60] in f.latex for s in d.steps for f in s.formulas].count(True) == 1
    assert "t is the list of the words' numbers (rows of the embedding table)." in d.notes[0]
    batched = [f.latex for s in derive(Definition(start="x")).steps for f in s.formulas]
    assert not any("number of the word" in f for f in batched)


def test_the_gradient_of_the_embedding_works_the_row_of_the_followed_word() -> None:
    source = b"""
tokens = ["b", "a", "b"]
follow = 3
grad_out = [[1, 0], [0, 1], [1, 1]]
[embedding]
a = [1, 0]
c = [5, 5]
b = [0, 2]
"""
    for follow, row in (("follow = 3", 2), ("follow = 'a'", 0)):
        d = derive(example=examples.parse(source.replace(b"follow = 3", follow.encode()), "test"), gradient=True)
        step = d["dEmb"]
        assert [line.item.index for line in step.lines] == [(row, 0), (row, 1)]
        assert step.grids[-1].followed == row and step.grids[-1].row_words == ("a", "c", "b")
        assert d["dX"].grids[-1].followed == d.follow and d["X"].grids[-1].followed == d.follow
