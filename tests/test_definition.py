"""Definitions: every field read from Python and from text, contradictions refused, and the program that each field makes."""

from __future__ import annotations

import inspect
import pickle
from dataclasses import fields
from fractions import Fraction

import numpy as np
import pytest
import sympy as sp

from symattn.api import Attention
from symattn.definition import Definition
from symattn.errors import DefinitionError, GrammarError, LimitError
from symattn.fields import RESERVED
from symattn.indexed import indices, size, tensor
from symattn.program import Program
from symattn.settings import READERS, read_field

i, j = indices("i j")
n, m = size("n"), size("m")


def test_every_field_has_a_reader():
    assert {f.name for f in fields(Definition)} == set(READERS)


@pytest.mark.parametrize(
    ("field", "given", "kept"),
    [
        ("heads", "8", 8),
        ("heads", np.int64(3), 3),
        ("cross", "yes", True),
        ("causal", True, "top-left"),
        ("causal", "bottom_right", "bottom-right"),
        ("causal", "-2", -2),
        ("causal", False, None),
        ("window", 4, (4, None)),
        ("window", "(4, 0)", (4, 0)),
        ("window", [-1, 2], (None, 2)),
        ("window", (-1, -1), None),
        ("prefix", "3", 3),
        ("prefix", "length", "length"),
        ("mask_axes", "bj", "bj"),
        ("softcap", 0.1, Fraction(0.1)),
        ("softcap", "0.1", Fraction(1, 10)),
        ("softcap", np.float32(0.1), Fraction(float(np.float32(0.1)))),
        ("softcap", sp.Rational(1, 3), Fraction(1, 3)),
        ("softcap", "cap", "cap"),
        ("scale", "1/sqrt(d)", 1 / sp.sqrt(size("d"))),
        ("scale", 0.5, sp.Rational(1, 2)),
        ("lse_base", 2, "2"),
        ("score", "s/2", sp.Symbol("s", real=True) / 2),
        ("mask", sp.Symbol("i") >= sp.Symbol("j"), i >= j),
        ("mask", True, sp.true),
        ("params", {"t": ["1/3", 2]}, {"t": (Fraction(1, 3), Fraction(2))}),
        ("params", "t=1;u=2^-3", {"t": Fraction(1), "u": Fraction(1, 8)}),
        ("score", None, None),
        ("causal", "none", None),
    ],
)
def test_a_field_is_read(field, given, kept):
    assert read_field(field, given) == kept


@pytest.mark.parametrize(
    ("field", "given", "says"),
    [
        ("causal", "left", "'top-left'"),
        ("empty_row", "zeros", "'zero'"),
        ("grouping", "tile", "'tiled'"),
        ("start", "y", "'qkv'"),
        ("lse_base", 10, "'e'"),
        ("heads", 0, "at least 1"),
        ("heads", 1.5, "integer"),
        ("heads", True, "integer"),
        ("sink", "maybe", "true or false"),
        ("softcap", -1, "positive"),
        ("softcap", 0, "leave it out"),
        ("softcap", "nan", "softcap"),
        ("softcap", float("nan"), "finite"),
        ("softcap", float("inf"), "finite"),
        ("softcap", "s", "meaning of its own"),
        ("softcap", "__x", "softcap"),
        ("dropout_p", True, "number"),
        ("window", (1, 2, 3), "LEFT"),
        ("window", -2, "at least -1"),
        ("prefix", -1, "at least 0"),
        ("mask_axes", "jb", "in this order"),
        ("mask_axes", "q", "in this order"),
        ("scale", sp.Symbol("x") + sp.oo, "finite"),
        ("score", sp.Function("f")(sp.Symbol("s")), "known functions"),
        ("score", 3j, "text or a SymPy"),
        ("score", j <= i, "text or a SymPy"),
        ("mask", sp.Symbol("s") > 0, "cannot read the score"),
        ("params", {"s": 1}, "meaning of its own"),
        ("params", {"t": "x"}, "no number"),
        ("params", 3, "maps names"),
        ("heads", None, None),
        ("grouping", None, "cannot be absent"),
    ],
)
def test_a_wrong_value_says_what_is_allowed(field, given, says):
    if says is None:
        assert read_field(field, given) is None
        return
    with pytest.raises(DefinitionError) as error:
        read_field(field, given)
    assert says in str(error.value)


@pytest.mark.parametrize(
    ("says", "why"),
    [
        ({"heads": 4, "kv_heads": 3}, "divide"),
        ({"cross": True}, "cross"),
        ({"mask_axes": "ij"}, "attn_mask"),
        ({"attn_mask": "additive", "mask_polarity": "drop"}, "boolean"),
        ({"bias_axes": "ij"}, "bias=True"),
        ({"alibi_slopes": "power"}, "alibi=True"),
        ({"alibi_distance": "absolute"}, "alibi=True"),
        ({"dropout_p": 0.5}, "dropout=True"),
        ({"dropout": True, "dropout_p": 1}, "below 1"),
        ({"sink": True, "empty_row": "nan"}, "contradicts"),
        ({"window": (0, 1)}, "empty"),
        ({"key_lengths": True, "causal": 3}, "offset"),
        ({"score": "s*E"}, "name of a tensor"),
        ({"score": "s*dQ"}, "name of a tensor"),
        ({"score": "s*W3"}, "name of a tensor"),
        ({"score": "s*x + dx"}, "name of a gradient"),
        ({"score": "s*Q_t"}, "tangent"),
        ({"score": "s*slope", "alibi": True}, "name of a tensor"),
        ({"params": {"t": 1}}, "nothing reads"),
        ({"score": "s*tau", "params": {"tua": 1}}, "'tau'"),
        ({"score": "s*t", "heads": 3, "params": {"t": [1, 2]}}, "3 heads"),
        ({"softcap": "t", "heads": 2, "params": {"t": [1, 2]}}, "one number"),
        ({"softcap": "t", "params": {"t": -1}}, "positive"),
        ({"dropout": True, "dropout_p": "t", "params": {"t": 1}}, "below 1"),
    ],
)
def test_contradictions_are_refused(says, why):
    with pytest.raises(DefinitionError) as error:
        Definition(**says)
    assert why in str(error.value)


def test_definitions_are_values():
    a, b = Definition(score="t*s", params={"t": "0.1"}), Definition(score="s*t", params={"t": Fraction(1, 10)})
    assert a == b
    assert hash(a) == hash(b)
    assert a != a.replace(params={})
    assert eval(repr(a.replace(params={})), {"Definition": Definition}) == a.replace(params={})


def test_slope_and_bias_are_free_names_where_they_are_no_tensors():
    assert Definition(score="s - slope*(i - j) + bias").unbound == ("bias", "slope")
    assert "slope" in RESERVED


def test_core_is_the_attention_inside_the_layer():
    layer = Definition(start="x", cross=True, heads=4, output_projection=True, causal="top-left")
    assert layer.core == Definition(heads=4, causal="top-left")


def where(says: dict[str, object], batch: bool = False) -> sp.Basic:
    return Definition(**says).program(batch)["R"].where


@pytest.mark.parametrize(
    ("says", "expected"),
    [
        ({}, sp.true),
        ({"causal": "top-left"}, j <= i),
        ({"causal": "bottom-right"}, j <= i + m - n),
        ({"causal": 2}, j <= i + 2),
        ({"window": (3, None)}, i + m - n - j < 3),
        ({"window": (3, 1), "causal": "top-left"}, sp.And(i - j < 3, j <= i + 1, j <= i)),
        ({"window": (3, None), "window_counts": "distance", "causal": "top-left"}, sp.And(i - j <= 3, j <= i)),
        ({"window": (None, 0), "window_alignment": "top-left"}, j <= i),
        ({"prefix": 2}, sp.Or(j <= i, j < 2)),
        ({"prefix": "p0"}, sp.Or(j <= i, j < tensor("p0"))),
        ({"attn_mask": "boolean", "mask_axes": "ij"}, sp.Ne(tensor("M", i, j), 0)),
        ({"attn_mask": "boolean", "mask_axes": "bj", "mask_polarity": "drop"}, sp.Eq(tensor("M", j), 0)),
        ({"attn_mask": "additive", "mask_axes": "hij", "heads": 1}, sp.Ne(tensor("B", i, j), -sp.oo)),
        ({"document": True}, sp.Eq(tensor("doc_q", i), tensor("doc_k", j))),
        ({"document": True, "start": "x"}, sp.Eq(tensor("doc", i), tensor("doc", j))),
        ({"key_lengths": True}, j < tensor("len")),
        ({"mask": "j < 3", "causal": "top-left"}, sp.And(j < 3, j <= i)),
        ({"mask": "j < w", "params": {"w": 4}}, j < 4),
        ({"causal": "bottom-right", "start": "x"}, j <= i),
    ],
)
def test_the_keys_that_a_query_may_see(says, expected):
    assert where(says) == expected


@pytest.mark.parametrize(
    "says", [{"causal": "top-left", "softcap": 3, "alibi": True, "dropout": True, "heads": 4, "kv_heads": 2}]
)
def test_every_statement_over_queries_and_keys_carries_the_condition(says):
    program = Definition(**says).program(True)
    over_both = [s for s in program if {i, j} <= set(s.domain)]
    assert len(over_both) >= 9
    for s in over_both:
        assert (j <= i) in s.conditions, s.name


def names(program: Program) -> str:
    return " ".join(s.name for s in program)


@pytest.mark.parametrize(
    ("says", "expected"),
    [
        ({}, "R scale S m E l P O L"),
        ({"lse": False}, "R scale S m E l P O"),
        ({"scale": 1}, "R m E l P O L"),
        ({"softcap": 2}, "R scale S A m E l P O L"),
        ({"bias": True}, "R scale S Z m E l P O L"),
        ({"score": "s"}, "R scale S m E l P O L"),
        ({"sink": True}, "R scale S m0 m E E0 lk l P P0 O L"),
        ({"dropout": True}, "R scale S m E l P Pd O L"),
        ({"empty_row": "nan"}, "R scale S m E l P O L"),
        ({"empty_row": "nan", "causal": 1}, "R scale S m E l P O0 cnt N O L"),
        ({"empty_row": "uniform", "causal": 1}, "R scale S m E l P O0 cnt U O L"),
        ({"start": "tokens", "output_projection": True}, "X Q K V R scale S m E l P O L Y"),
        ({"score": "max(s, 0)"}, "R scale S W0 W1 Z m E l P O L"),
        ({"alibi": True, "alibi_slopes": "interleaved", "heads": 6}, "R scale S slope_a slope_b slope Z m E l P O L"),
        ({"alibi": True, "alibi_slopes": "interleaved", "heads": 8}, "R scale S slope Z m E l P O L"),
    ],
)
def test_statements_are_these_and_none_is_a_copy(says, expected):
    program = Definition(**says).program()
    assert names(program) == expected
    copies = [s for s in program if isinstance(s.expr, sp.Indexed) and s.expr.indices == s.indices and s.name[0] != "W"]
    assert not copies


def test_marks():
    program = Definition(sink=True).program()
    assert {s.name for s in program if s.range_only} == {"m", "m0"}
    assert {s.name for s in program if s.aux} == {"m", "m0", "E", "E0", "l", "lk"}


@pytest.mark.parametrize(
    ("heads", "kv_heads", "query", "key"),
    [
        (None, None, "Q[i, c]", "K[j, c]"),
        (1, 1, "Q[i, c]", "K[j, c]"),
        (4, 4, "Q[h, i, c]", "K[h, j, c]"),
        (4, 1, "Q[h, i, c]", "K[j, c]"),
        (4, 2, "Q[k, g, i, c]", "K[k, j, c]"),
    ],
)
def test_head_indices(heads, kv_heads, query, key):
    read = [str(x) for x in Definition(heads=heads, kv_heads=kv_heads).program()["R"].reads]
    assert sorted(read) == sorted([query, key])


def test_a_channel_index_makes_room_for_a_parameter_of_its_name():
    program = Definition(score="c*tanh(s/c)").program()
    assert str(program["R"].expr) in ("K[j, c1]*Q[i, c1]", "Q[i, c1]*K[j, c1]")
    assert "c" in program.inputs


def test_discrete_inputs_and_inputs_with_gradients():
    d = Definition(attn_mask="boolean", document=True, prefix="length", key_lengths=True, dropout=True, score="t*s", mask="j < w")
    program = d.program(True)
    assert program.discrete == {"M", "doc_q", "doc_k", "length", "len", "drop", "w"}
    assert {"t", "p"} <= set(program.inputs) - program.discrete


def test_the_batch_index_of_a_text_needs_a_batch():
    d = Definition(score="s*b")
    assert "b" in str(d.program(batch=True)["Z"].expr)
    with pytest.raises(DefinitionError, match=r"depends on the batch index b, .* arrays of shape \(B, H, n, d\)"):
        d.program()


def test_text_errors_name_the_field():
    with pytest.raises(GrammarError, match=r"^mask: "):
        Definition(mask="j <= i & i < 3")


@pytest.mark.parametrize("make", [Definition, Definition.of, Attention, Definition().replace])
def test_a_field_that_does_not_exist_names_the_nearest(make):
    with pytest.raises(DefinitionError, match=r"no field 'haeds'\. Did you mean 'heads'") as error:
        make(haeds=2)
    assert isinstance(error.value, TypeError)  # what a keyword that a function does not take is elsewhere


def test_the_signature_shows_every_field_with_its_default():
    for cls in (Definition, Attention):
        shown = inspect.signature(cls).parameters
        assert {name: p.default for name, p in shown.items()} == {f.name: f.default for f in fields(Definition)}
    assert pickle.loads(pickle.dumps(Attention(softcap=3, causal=True))) == Attention(softcap=3, causal="top-left")


@pytest.mark.parametrize("field", ["causal", "window", "window_alignment", "prefix", "heads", "kv_heads"])
@pytest.mark.parametrize("value", [2**41, "9" * 20, "9" * 6000])
def test_integers_have_a_limit(field, value):
    with pytest.raises(LimitError, match=f"{field} is an integer of at most"):
        Definition(**{field: value})
    assert read_field("causal", -(2**40)) == -(2**40)
