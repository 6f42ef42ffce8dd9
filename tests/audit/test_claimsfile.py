"""Claims files: what they may hold, what is refused and how it is said, and any text at all."""

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from symattn.audit.claimsfile import load, parse
from symattn.audit.page import audit
from symattn.errors import FileFormatError, InputValueError, LimitError, SymattnError

GOOD = """
title = "a page"
source = "nowhere"
[inputs]
Q = [["1", "0"]]
K = [[1, 0], [0, 0.5]]
half_width = {Q = "0.05", K = "printed"}
[definition]
scale = "1"
[claims]
scores = ["1", "0."]
rest = {of = "weights[0]", printed = ["0.7", "..."], from = "scores"}
"""


def read(text):
    return parse(text.encode(), "page.toml")


def test_what_a_file_holds():
    page = read(GOOD)
    (example,) = page.examples
    assert (page.title, page.source, example.definition) == ("a page", "nowhere", {"scale": "1"})
    assert example.inputs["K"].values.tolist() == [[1, 0], [0, Fraction(1, 2)]]
    assert example.inputs["Q"].half_widths.tolist() == [[Fraction(1, 20)] * 2]
    assert example.inputs["K"].half_widths.tolist() == [[0, 0], [0, Fraction(1, 20)]]  # bare integers are exact
    scores, rest = example.claims
    assert [p.kind for p in scores.printed] == ["integer", "array"]
    assert (rest.of, rest.origin, rest.printed[1]) == ("weights[0]", ("scores",), None)


def test_examples_share_what_stands_outside_of_them():
    text = """
[inputs]
K = [["1", "0"], ["0", "1"]]
[let]
half = "1/2"
[[example]]
name = "one"
[example.inputs]
Q = [["1", "0"]]
[example.claims]
scores = ["1", "0"]
[[example]]
name = "two"
[example.inputs]
Q = [["0", "3"]]
[example.claims]
scores = ["0", "3"]
"""
    found = audit(read(text))
    assert [f.name for f in found.findings] == ["one.scores[0]", "one.scores[1]", "two.scores[0]", "two.scores[1]"]
    assert found.exit_code == 0


@pytest.mark.parametrize(
    ("old", "new", "error", "says"),
    [
        ('title = "a page"', "title = ", FileFormatError, "page.toml: is no TOML file"),
        ("[claims]", "[clams]", FileFormatError, "clams: unknown key. Did you mean 'claims'?"),
        ('title = "a page"', "title = 3", FileFormatError, "title: got 3; allowed: text"),
        ('[["1", "0"]]', '[["1", "0"], ["1"]]', InputValueError, "inputs.Q: rows of unequal lengths"),
        ('[["1", "0"]]', '[["1", "x"]]', InputValueError, "inputs.Q[0][1]: 'x' is no printed number"),
        ('[["1", "0"]]', "[[true, false]]", FileFormatError, "inputs.Q[0][0]: got True"),
        ('[["1", "0"]]', "[]", InputValueError, "inputs.Q: an empty list"),
        ('["1", "0."]', '["1", "1.2.3"]', InputValueError, "claims.scores[1]: '1.2.3' is no printed number"),
        ('[["1", "0"]]', '[["1", "1e9999"]]', InputValueError, "larger or smaller than any number of a page"),
        ('[["1", "0"]]', '[["1", "nan"]]', InputValueError, "nan is no number"),
        ("printed = ", "shown = ", FileFormatError, "claims.rest.shown: unknown key"),
        ('printed = ["0.7", "..."], ', "", FileFormatError, "claims.rest: lacks `printed`"),
        ('from = "scores"', 'from = "score"', FileFormatError, "no claim 'score' comes before it. Did you mean 'scores'?"),
        ('from = "scores"', "from = 3", FileFormatError, "claims.rest.from: got 3"),
        ('Q = "0.05"', 'X = "0.05"', FileFormatError, "half_width.X: there is no such input"),
        ('Q = "0.05"', 'Q = "-0.05"', InputValueError, "not negative"),
        ('Q = "0.05"', 'Q = ["0.05", "0.05", "0.05"]', InputValueError, "does not fit Q"),
    ],
)
def test_what_is_refused_and_how_it_is_said(old, new, error, says):
    assert old in GOOD
    with pytest.raises(error) as raised:
        read(GOOD.replace(old, new))
    assert str(raised.value).startswith("page.toml: ")
    assert says in str(raised.value)


def test_a_file_without_claims_and_a_file_that_is_not_there(tmp_path):
    with pytest.raises(FileFormatError, match="claims: there are none"):
        read('[inputs]\nX = [["1"]]')
    with pytest.raises(FileFormatError, match="cannot be read"):
        load(tmp_path / "no.toml")
    with pytest.raises(LimitError):
        parse(b" " * 3_000_000, "page.toml")
    with pytest.raises(LimitError, match="numbers"):
        read("[claims]\nx = " + str([["1"] * 1000] * 30))


@pytest.mark.parametrize(
    ("definition", "says"),
    [
        ('casual = "top-left"', "Did you mean 'causal'?"),
        ("scale = \"__import__('os')\"", "scale"),
        ("heads = 3", "heads"),
        ('mask = "j <= i or"', "mask"),
    ],
)
def test_a_definition_that_is_none_is_said_at_the_claim(definition, says):
    text = f'[inputs]\nQ = [["1", "0"]]\nK = [["1", "0"]]\n[definition]\n{definition}\n[claims]\nscores = "1"'
    (unread,) = audit(read(text)).unread
    assert says in unread.reason


def test_an_input_that_nothing_reads_is_said():
    text = '[inputs]\nX = [["1"]]\nW_Qery = [["2"]]\nu = "1"\nd_k = "1"\n[claims]\nQ = "1"\ny = {of = "u + 1", printed = "2"}'
    found = audit(read(text))
    assert found.notes == ("nothing reads the input 'W_Qery'. Did you mean 'W_Q'?",)
    assert found.exit_code == 0


def test_a_page_of_which_nothing_is_read():
    found = audit(read('[inputs]\nu = "1"\n[claims]\nQ = "1"'))
    assert (found.exit_code, found.to_dict()["verdict"]) == (3, "undecided")


NUMBERS = st.one_of(
    st.sampled_from(["1", "-2", "0.5", "...", "2.", "1e400", "x", "1/0", "≈ 3", "inf", "nan", "1e9999"]), st.text(max_size=6)
)
NESTED = st.recursive(NUMBERS, lambda x: st.lists(x, max_size=3), max_leaves=6)
NAMES = st.one_of(
    st.sampled_from(
        [
            "X",
            "Q",
            "K",
            "V",
            "W_Q",
            "scores",
            "weights",
            "output",
            "weights[0]",
            "dQ",
            "lse",
            "masked",
            "heads[1]",
            "d_k",
            "u",
            "exp(u)",
        ]
    ),
    st.text(max_size=8),
)


def toml(value):
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    return '"' + "".join(f"\\U{ord(c):08x}" for c in value if not 0xD800 <= ord(c) <= 0xDFFF) + '"'


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(NAMES, NESTED, max_size=4), st.dictionaries(NAMES, st.tuples(NAMES, NESTED), max_size=3), st.booleans())
def test_any_file_gets_an_answer_or_a_clear_error(inputs, claims, half_width):
    lines = ["[inputs]", *(f"{toml(n)} = {toml(v)}" for n, v in inputs.items())]
    lines += ['half_width = "0.05"'] * half_width + ["[claims]"]
    lines += [f"{toml(n)} = {{of = {toml(of)}, printed = {toml(v)}}}" for n, (of, v) in claims.items()]
    try:
        audit(read("\n".join(lines))).to_dict()
    except SymattnError as why:
        assert str(why)


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=60) | st.text(max_size=60).map(lambda s: s.encode("utf-8", "ignore")))
def test_any_bytes_get_an_answer_or_a_clear_error(data):
    try:
        audit(parse(data, "page.toml"))
    except SymattnError as why:
        assert str(why)


def test_an_index_of_an_expression_counts_from_one():
    page = parse(b'[inputs]\nw = [["1", "2"], ["3", "4"]]\n[claims]\nx = {of = "w_{1,2} + w_{2}", printed = ["5", "6"]}', "x")
    assert [f.verdict.status for f in audit(page).findings] == ["exact", "exact"]
