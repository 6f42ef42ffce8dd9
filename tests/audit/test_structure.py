"""Rules that need no recomputation: a planted fault is seen, the right numbers are not accused."""

import pytest

from symattn.audit.claimsfile import parse
from symattn.audit.page import audit

RIGHT = """
[inputs]
V = [["1", "0"], ["3", "2"]]
[claims]
scores = [["1", "1"], ["0", "2"]]
weights = [["0.50", "0.50"], ["0.12", "0.88"]]
output = [["2.00", "1.00"], ["2.76", "1.76"]]
"""


def rules(text):
    return {r.rule: r.names for r in audit(parse(text.encode(), "test")).remarks}


def test_right_numbers_break_no_rule():
    assert rules(RIGHT) == {}


@pytest.mark.parametrize(
    ("old", "new", "rule", "names"),
    [
        ('"0.12"', '"0.15"', "rows sum to 1", ("weights",)),
        ('["0.50", "0.50"]', '["0.40", "0.60"]', "equal scores have equal weights", ("weights[0,0]", "weights[0,1]")),
        ('["2.76", "1.76"]', '["3.76", "2.76"]', "outputs lie in the hull of V", ("output[1,0]",)),
        ('"1.76"', '"1.79"', "columns of V that differ by a constant", ("output[1,0]", "output[1,1]")),
    ],
)
def test_a_planted_fault_breaks_its_rule(old, new, rule, names):
    found = rules(RIGHT.replace(old, new))
    assert rule in found
    if rule != "outputs lie in the hull of V":
        assert found == {rule: names}


def test_a_sink_and_a_mask_set_rules_aside():
    assert rules(RIGHT.replace('"0.12"', '"0.15"') + "[definition]\nsink = true\n") == {}
    assert rules(RIGHT.replace('["0.50", "0.50"]', '["1.00", "0.00"]') + '[definition]\ncausal = "top-left"\n') == {}


def test_heads_side_by_side_have_no_common_constant():
    text = """
[inputs]
Q = [["1", "0"], ["0", "1"]]
K = [["1", "2"], ["0", "1"]]
V = [["1", "0"], ["2", "1"]]
[definition]
heads = 2
[claims]
output = [["1.27", "0.27"], ["1.50", "0.27"]]
"""
    assert not [r for r in audit(parse(text.encode(), "test")).remarks if r.rule.startswith("columns")]
