"""The text grammar: what it reads, what it refuses and where, and that nothing hostile is run or takes long."""

from __future__ import annotations

import time

import pytest
import sympy as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from symattn.definition import Definition
from symattn.errors import DefinitionError, GrammarError, LimitError, SymattnError
from symattn.functions import sigmoid
from symattn.grammar import MASK_NAMES, SCORE_NAMES, arrays_of, parameters_of, parse_mask, parse_scale, parse_score
from symattn.grammarprint import write

s, i, j, h, b, n, m, d = (SCORE_NAMES[x] for x in ["s", "i", "j", "h", "b", "n", "m", "d"])
t, u = sp.symbols("t u", real=True)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("20*tanh(s/20) - t*(i - j)", 20 * sp.tanh(s / 20) - t * (i - j)),
        ("0.1*s", s / 10),
        ("1e-3 + .5", sp.Rational(501, 1000)),
        ("1_000*s", 1000 * s),
        ("2**-3*s", s / 8),
        ("-s**2", -(s**2)),
        ("s/3/2", s / 6),
        ("sqrt(s*s + 1)", sp.sqrt(s**2 + 1)),
        ("exp(-abs(s)) + log(2)", sp.exp(-sp.Abs(s)) + sp.log(2)),
        ("sigmoid(t)", sigmoid(t)),
        ("min(s, t, 1) + max(i, j)", sp.Min(s, t, 1) + sp.Max(i, j)),
        ("i // 2 + j % 3", sp.floor(i / 2) + j - 3 * sp.floor(j / 3)),
        ("erf(s) + sin(h) + cos(b) + n*m/d", sp.erf(s) + sp.sin(h) + sp.cos(b) + n * m / d),
        ("+s", s),
        (" s ", s),
    ],
)
def test_a_score_is_read_exactly(text, expected):
    assert parse_score(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("j <= i", j <= i),
        ("j <= i and i - j < 4", sp.And(j <= i, i - j < 4)),
        ("(j <= i) & (i - j < 4)", sp.And(j <= i, i - j < 4)),
        ("(j <= i) | (j < t)", sp.Or(j <= i, j < t)),
        ("not (j <= i)", j > i),
        ("~(j <= i)", j > i),
        ("0 <= i - j < 4", sp.And(sp.Le(0, i - j), i - j < 4)),
        ("i == j or i != 2", sp.Or(sp.Eq(i, j), sp.Ne(i, 2))),
        ("not i == j and (i < 3 or j < 2)", sp.And(sp.Ne(i, j), sp.Or(i < 3, j < 2))),
        ("~((i < 3) & (j < 2))", sp.Or(i >= 3, j >= 2)),
        ("True", sp.true),
        ("(i // 2) == (j // 2)", sp.Eq(sp.floor(i / 2), sp.floor(j / 2))),
    ],
)
def test_a_mask_is_read(text, expected):
    assert parse_mask(text) == expected


def test_a_scale_knows_sizes_and_no_indices():
    assert parse_scale("t/sqrt(d) + dv") == t / sp.sqrt(d) + sp.Symbol("dv", integer=True, positive=True)
    with pytest.raises(GrammarError, match="cannot read the score"):
        parse_scale("s")


def test_any_other_name_is_a_real_parameter():
    assert parameters_of(parse_score("cap*tanh(s/cap) + slope_2*(i - j)")) == ("cap", "slope_2")
    assert parse_score("t").is_real


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("j <= i & i - j < 4", "(j <= i) & (i - j < 4)"),
        ("j <= i | j < 3", "(j <= i) | (j < 3)"),
        ("(i < 3 | j < 2) and j <= i", "(i < 3) | (j < 2)"),
        ("j <= i & i - j < 4 & (j > 0)", "(j <= i) & (i - j < 4) & (j > 0)"),
    ],
)
def test_a_bare_ampersand_shows_the_bracketed_form(text, shown):
    with pytest.raises(GrammarError) as error:
        parse_mask(text)
    assert f"write `{shown}`" in str(error.value)
    parse_mask(shown)


SCORE_ERRORS = [
    ("__import__('os')", "column 12"),
    ("__import__(os)", "column 1"),
    ("s.real", "attribute"),
    ("s + (1).__class__", "attribute"),
    ("lambda: s", "lambda"),
    ("s[0]", "subscript"),
    ("(s := 1)", "assignment"),
    ("s if i < j else 0", "mask"),
    ("s, 1", "comma"),
    ("[s]", "List"),
    ("{s}", "Set"),
    ("[s for s in s]", "ListComp"),
    ("await s", "Await"),
    ("s^2", "**"),
    ("s & 1", "number"),
    ("s < 3", "mask"),
    ("not s", "mask"),
    ("s @ s", "column 3"),
    ("s << 2", "LShift"),
    ("1j", "imaginary"),
    ("True", "truth value"),
    ("None", "constant"),
    ("...", "constant"),
    ("eval(s)", "no function"),
    ("open(s)", "no function"),
    ("exp", "function: write exp"),
    ("exp(s, s)", "one number"),
    ("exp(x=s)", "one number"),
    ("exp(*s)", "one number"),
    ("min(s)", "two or more"),
    ("s(1)", "no function"),
    ("exp(1)(2)", "only the functions"),
    ("s__x", "doubled underscore"),
    ("_s", "leading"),
    ("ѕ + 1", "U+0455"),
    ("s − 1", "U+2212"),
    ("s\x00", "U+0000"),
    ("s\ns", "U+000A"),
    ("s # comment", "column 3"),
    ("", "empty"),
    ("   ", "empty"),
    ("s +", "well formed"),
    ("3s", "well formed"),
    ("1/0", "zero"),
    ("s % 0", "zero"),
    ("s // 0", "zero"),
    ("log(0)", "zero"),
    ("sqrt(-1)", "not a real"),
    ("log(-2)", "not a real"),
    ("import os", "well formed"),
    ("s; s", "column 2"),
]
MASK_ERRORS = [
    ("s > 0", "cannot read the score"),
    ("i", "condition"),
    ("i + j", "condition"),
    ("i and j < 2", "condition"),
    ("i in j", "`in`"),
    ("i is j", "`is`"),
    ("~i", "parenthesised"),
    ("~i < j", "condition"),
    ("(i < j) + 1 < 2", "number is needed"),
    ("f(i) < j", "no function"),
    ("i = j", "well formed"),
    ("i <> j", "well formed"),
]
LIMITS = [
    "9**9**9",
    "2**100000",
    "10**-2000",
    "1e400000",
    "1e99999999999999",
    "9" * 400,
    "((s**999)**999)",
    "exp(exp(100))",
    "floor(exp(exp(7)))",
    "(" * 60 + "s" + ")" * 60,
    "-" * 200 + "s",
    "**".join(["s"] * 100),
    "+".join(["s"] * 450),
    "s*" * 600 + "s",
]


@pytest.mark.parametrize(("text", "says"), SCORE_ERRORS)
def test_a_score_outside_the_grammar_is_refused(text, says):
    with pytest.raises(GrammarError) as error:
        parse_score(text)
    assert says in str(error.value)


@pytest.mark.parametrize(("text", "says"), MASK_ERRORS)
def test_a_mask_outside_the_grammar_is_refused(text, says):
    with pytest.raises(GrammarError) as error:
        parse_mask(text)
    assert says in str(error.value)


@pytest.mark.parametrize("text", LIMITS, ids=lambda x: x[:20])
def test_what_is_too_large_is_refused_quickly(text):
    start = time.perf_counter()
    with pytest.raises(LimitError):
        parse_score(text)
    assert time.perf_counter() - start < 1


def test_the_caret_is_under_the_place():
    with pytest.raises(GrammarError) as error:
        parse_score("s + abs(s).real")
    message, line, caret = str(error.value).split("\n")
    assert "column 5" in message
    assert line[caret.index("^") :] == "abs(s).real"


@pytest.mark.parametrize(
    ("parse", "text", "at"),
    [
        (parse_score, "(s + 1) ^ 2", "^ 2"),
        (parse_score, "s + s**(5000)", "**(5000)"),
        (parse_score, "(s + t) // (1 - 1)", "// (1 - 1)"),
        (parse_mask, "(i - j < 4) and j <= i & i < 3", "& i < 3"),
        (parse_score, "(s) | t", "| t"),
        (parse_mask, "(i) is j", "is j"),
    ],
)
def test_the_caret_is_under_the_operator(parse, text, at):
    with pytest.raises(SymattnError) as error:
        parse(text)
    line, caret = str(error.value).split("\n")[-2:]
    assert line[caret.index("^") :] == at


@pytest.mark.parametrize("text", ["1e200*s", "1" + "0" * 200 + "*s", "1e60*s*1e60", "s/1e60/1e60", "2**-1000*s", "s*1e-200"])
def test_numbers_are_limited_by_their_value_however_they_are_written(text):
    with pytest.raises(LimitError, match="too large"):
        parse_score(text)
    with pytest.raises(LimitError, match="too large"):
        Definition(score=1e200 * s)


@pytest.mark.parametrize("text", ["1e100*s", "s*1e-100", "0." + "1" * 100 + "*s", "0.1" + "0" * 300 + "*s", "s*1e60/1e60"])
def test_numbers_up_to_the_limit_come_back_from_their_text(text):
    assert parse_score(write(parse_score(text))) == parse_score(text)


@pytest.mark.parametrize("text", ["min(s, t)/3 + abs(i - j)", "exp(1)*s - log(2)", "s**t", "sigmoid(s)"])
def test_written_text_is_read_again(text):
    assert parse_score(write(parse_score(text))) == parse_score(text)


@pytest.mark.parametrize(
    "text", ["i == j or (i < 3 and not (j == 2 and i == h))", "0 <= i - j < 4 or b != 1", "True", "max(i, j) < u"]
)
def test_a_written_mask_is_read_again(text):
    assert parse_mask(write(parse_mask(text))) == parse_mask(text)


LEAVES = st.sampled_from(["s", "i", "j", "t", "1", "0.25", "3"])
SCORES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from("+-*"), inner).map(lambda x: f"({x[0]} {x[1]} {x[2]})"),
        st.tuples(st.sampled_from(["tanh", "abs", "sin", "exp", "floor"]), inner).map(lambda x: f"{x[0]}({x[1]})"),
        st.tuples(inner, inner).map(lambda x: f"max({x[0]}, {x[1]})"),
    ),
    max_leaves=8,
)


@settings(max_examples=60, deadline=None)
@given(SCORES)
def test_any_score_comes_back_from_its_text(text):
    try:
        expr = parse_score(text)
    except SymattnError:
        return  # exp(exp(exp(3))) and the like
    assert parse_score(write(expr)) == expr


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet="sij01.+-*/%<>=!&|~^() ,_adefox'\"[]{}:", max_size=25))
def test_no_text_does_anything_but_parse_or_be_refused(text):
    for parse, kind in ((parse_score, sp.Expr), (parse_mask, sp.logic.boolalg.Boolean)):
        try:
            found = parse(text)
        except SymattnError as error:
            assert isinstance(error, (GrammarError, LimitError))
        else:
            assert isinstance(found, kind)
            assert not {x.name for x in found.free_symbols if not x.is_real}


def test_the_names_are_those_that_are_documented():
    assert set(SCORE_NAMES) == set("sijhbnmd")
    assert set(MASK_NAMES) == set("ijhbnmd")


def test_pi_is_the_number_and_what_looks_like_a_number_is_no_parameter():
    assert parse_score("pi*s/2") == sp.pi * s / 2
    assert parse_score(write(parse_score("pi*s/2"))) == sp.pi * s / 2
    assert parse_mask("pi*i < j") == (sp.pi * i < j)
    for parse in (parse_score, parse_scale):
        for name in ("nan", "NaN", "inf", "Inf", "infinity", "oo"):
            with pytest.raises(GrammarError, match="no number that is finite"):
                parse(f"2*{name}")
    with pytest.raises(GrammarError, match=r"write exp\(1\)"):
        parse_score("s*e")
    with pytest.raises(DefinitionError, match="the number pi"):
        Definition(score="s*a", params={"pi": 3})


ARRAYS = {
    "x[k] < 1": "the subscripts of an array are",
    "x[i + 1] < 1": "the subscripts of an array are",
    "x[j, i] < 1": "the subscripts of an array are",
    "x[i] < x[j]": "have arrays of their own",
    "i[j] < 1": "has a meaning of its own",
    "exp[i] < 2": "has a meaning of its own",
    "a.b[i] < 1": "belongs to the name of an array",
    "x[i][j] < 1": "belongs to the name of an array",
    "x[i:j] < 1": "the subscripts of an array are",
    "__x[i] < 1": "cannot be the name",
}


@pytest.mark.parametrize("text", ARRAYS)
def test_arrays_have_plain_subscripts(text):
    with pytest.raises(GrammarError, match=ARRAYS[text]):
        parse_mask(text)


def test_arrays_are_read_and_written_again():
    mask = parse_mask("lane[i] == owner[j] or open[b, i, j] > 0")
    assert parse_mask(write(mask)) == mask
    assert arrays_of(mask) == {"lane": "i", "open": "bij", "owner": "j"}
    assert parameters_of(mask) == ("lane", "open", "owner")
    with pytest.raises(GrammarError, match="reads no arrays"):
        parse_scale("x[i]")
