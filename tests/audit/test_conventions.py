"""Conventions that a page does not state: pages made by NumPy under another one are explained by it, and by nothing simpler."""

import numpy as np
import pytest

from symattn.audit.claimsfile import parse
from symattn.audit.page import audit

Q = np.array([[1, 0, 2, 1], [0, 2, 1, 0], [1, 1, 0, 2]])
K = np.array([[1, 1, 0, 0], [2, 0, 1, 1], [0, 1, 1, 2]])
V = np.array([[1, 4], [0, 2], [3, 1]])
W = np.array([[1, 2, 0, 0], [0, 1, 1, 0], [0, 0, 1, 3], [1, 0, 0, 1]])


def softmax(s, axis=-1):
    e = np.exp(s - s.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


def page(weights, output=None, definition="", q=Q, k=K, inputs=""):
    rows = lambda x, f: [[f.format(v) for v in r] for r in x]
    lines = ["[inputs]", f"V = {rows(V, '{}')}"]
    lines += [inputs] if inputs else [f"Q = {rows(q, '{}')}", f"K = {rows(k, '{}')}"]
    lines += ["[definition]", definition, "[claims]", f"weights = {rows(weights, '{:.5f}')}"]
    lines += [] if output is None else [f"output = {rows(output, '{:.5f}')}"]
    return parse("\n".join(lines).encode(), "test")


def found(*args, **kwargs):
    return audit(page(*args, **kwargs)).alternatives


S = (Q @ K.T).astype(float)
TRI = np.tril(np.ones((3, 3), bool))


@pytest.mark.parametrize(
    ("scores", "axis", "title"),
    [
        (S, -1, "no scale"),
        (S / 4, -1, "a scale of 1/d or a scale of 1/4"),
        (S / 8, -1, "a scale of 1/8"),
        (np.where(TRI, S / 2, -np.inf), -1, "a causal mask, j <= i or a causal mask aligned bottom-right, j <= i + m - n"),
        (np.where(TRI.T, S / 2, -np.inf), -1, "a causal mask turned around, j >= i"),
        (S / 2, 0, "a softmax over the queries"),
        (S.T / 2, -1, "the roles of Q and K exchanged"),
        (
            np.where(TRI, S / 4, -np.inf),
            -1,
            "a scale of 1/d and a causal mask, j <= i",
        ),
    ],
)
def test_the_convention_of_the_page_is_named(scores, axis, title):
    weights = softmax(scores, axis)
    (alternative,) = found(weights, weights @ V)
    assert alternative.title == title
    assert alternative.everything
    assert "weights" in alternative.claims


def test_a_page_as_stated_needs_no_other_convention():
    assert found(softmax(S / 2), softmax(S / 2) @ V) == ()


def test_numbers_that_no_convention_explains():
    assert found(softmax(S / 2 + np.arange(3))) == ()


def test_a_mask_that_the_page_states_and_does_not_apply():
    (alternative,) = found(softmax(S / 2), definition='causal = "top-left"')
    assert alternative.title == "no mask"


def test_transposed_weights():
    rows = [[str(v) for v in r] for r in W]
    inputs = f"X = {[[str(v) for v in r] for r in Q]}\nW_Q = {rows}"
    s = (Q @ W.T) @ Q.T / 2
    text = page(softmax(s), inputs=inputs)
    (alternative,) = audit(text).alternatives
    assert alternative.title == "the roles of Q and K exchanged or W_Q transposed"


def test_transposed_weights_applied_to_the_values():
    weights = softmax(S / 2)
    (alternative,) = found(weights, weights.T @ V)
    assert (alternative.title, alternative.claims) == ("the transposed weights applied to V", ("output",))


def test_stale_outputs_follow_from_another_convention_than_the_weights():
    """The page went over to a scale of 1/4 and kept the outputs of no scale at all."""
    alternatives = found(softmax(S / 4), softmax(S) @ V)
    assert {(a.title, a.claims) for a in alternatives} == {
        ("a scale of 1/d or a scale of 1/4", ("weights",)),
        ("no scale", ("output",)),
    }
    assert not any(a.everything for a in alternatives)


def test_ten_weights_with_a_factor_that_the_page_does_not_state():
    scores = np.array([10.0, 5, 3, 12, 10, 1, 7, 8, 9, 4])
    shown = [f"{p:.4f}" for p in softmax(scores / 4)]
    text = f'[inputs]\nscores = {[str(int(x)) for x in scores]}\nd_k = "3"\n[claims]\nweights = {shown}'
    (alternative,) = audit(parse(text.encode(), "test")).alternatives
    assert (alternative.title, alternative.numbers, alternative.everything) == ("a scale of 1/4", 10, True)


def test_elements_of_a_quantity_stand_or_fall_together():
    """One wrong number out of nine is a misprint, whatever convention would give it by chance."""
    weights = softmax(S / 2)
    shown = {f"weights[{i},{j}]": f"{weights[i, j]:.5f}" for i in range(3) for j in range(3)}
    rows = lambda x: [[str(v) for v in r] for r in x]
    head = f"[inputs]\nQ = {rows(Q)}\nK = {rows(K)}\n[claims]\n"
    chance = {**shown, "weights[1,0]": f"{softmax(S)[1, 0]:.5f}"}
    assert audit(parse((head + "\n".join(f'"{n}" = "{p}"' for n, p in chance.items())).encode(), "test")).alternatives == ()
    other = {f"weights[{i},{j}]": f"{softmax(S)[i, j]:.5f}" for i in range(3) for j in range(3)}
    (found,) = audit(parse((head + "\n".join(f'"{n}" = "{p}"' for n, p in other.items())).encode(), "test")).alternatives
    assert (found.title, found.numbers, found.everything) == ("no scale", 9, True)
    assert str(found).startswith(
        "all 9 numbers of weights[0,0], weights[0,1], weights[0,2], weights[1,0] and 5 more follow with no scale"
    )
