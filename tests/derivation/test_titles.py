"""Titles of steps are words: no internal name of a gradient, and row sums are those of the softmax they belong to."""

from __future__ import annotations

import pytest

from symattn import variants
from symattn.derivation import derive


def titles(name: str) -> dict[str, str]:
    derivation = derive(variants.get(name).definition, gradient=True)
    return {step.tensors[-1]: step.name for step in derivation.steps}


def test_gradients_of_the_next_word_are_called_in_words():
    found = titles("next-word")
    assert found["D"] == "Row sums of the next-word probabilities" and found["D2"] == "Row sums of the attention weights"
    assert found["dlogits'"] == "Whole gradient of the logits of the next word"
    assert found["dY'_logits"] == "Gradient of the outputs: the share through the logits"
    assert found["dY'"] == "Whole gradient of the outputs"
    assert not [t for t in found.values() if "'" in t or "_" in t]


@pytest.mark.parametrize(("name", "second"), [("differential", "second map"), ("decoder-layer", "cross attention")])
def test_row_sums_are_those_of_their_softmax(name, second):
    found = [t for t in titles(name).values() if t.startswith("Row sums")]
    assert sorted(found) == ["Row sums of the attention weights", f"Row sums of the {second}"]
