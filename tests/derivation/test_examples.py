from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from symattn.binding import bind
from symattn.definition import Definition
from symattn.derivation import derive, examples
from symattn.errors import FileFormatError, InputValueError, SymattnError, UnknownNameError
from symattn.readings import numpy as numpy_reading

GOOD = b"X = [[1, 0.1], ['1/3', -2]]\nfollow = 1\n"


def test_numbers_are_exact() -> None:
    e = examples.parse(b"Q = [[0.1, 1e-3], ['1/3', '2^-3']]\nK = [[1, 2]]\nV = [[1]]", "t")
    assert e.arrays["query"].tolist() == [[Fraction(1, 10), Fraction(1, 1000)], [Fraction(1, 3), Fraction(1, 8)]]
    assert e.decimals and e.start == "qkv" and e.follow == 1


def test_words_are_looked_up() -> None:
    e = examples.load("the-cat-sat")
    assert e.start == "tokens" and e.follow == 4 and not e.decimals and len(e.vocabulary) == 7
    assert [e.vocabulary[int(k)] for k in e.arrays["tokens"]] == list(e.tokens)
    assert e.arrays["embedding"][e.vocabulary.index("on")].tolist() == [0, 2, 4]


def test_memory_by_words_and_by_numbers() -> None:
    e = examples.load("translation")
    assert e.fields == {"start": "tokens", "cross": True} and e.memory == ("the", "cat", "sleeps")
    other = examples.parse(b"X = [[1, 2]]\nmemory = [[1, 0.5], [0, 1]]", "t")
    assert other.arrays["memory"].tolist() == [[1, Fraction(1, 2)], [0, 1]] and other.memory == ()


@pytest.mark.parametrize(("follow", "index"), [("1", 0), ("-1", 2), ("-3", 0), ("'b'", 2), ("'a'", 0)])
def test_follow(follow: str, index: int) -> None:
    text = f"tokens = ['a', 'b', 'b']\nfollow = {follow}\n[embedding]\na = [1]\nb = [2]"
    assert examples.parse(text.encode(), "t").follow == index


@pytest.mark.parametrize(
    ("text", "error", "says"),
    [
        (b"X = [[1, 2]", FileFormatError, "no TOML"),
        (b"\xff\xfe", FileFormatError, "no TOML"),
        (b"", FileFormatError, "allowed: exactly one of"),
        (b"X = [[1]]\nQ = [[1]]\nK = [[1]]\nV = [[1]]", FileFormatError, "got Q and X"),
        (b"tokens = ['a']", FileFormatError, "tokens without [embedding]"),
        (b"Q = [[1]]\nK = [[1]]", FileFormatError, "V: Q, K and V are given together"),
        (b"Q = [[1]]\nK = [[1]]\nV = [[1]]\nW_Q = [[1]]", FileFormatError, "W_Q: has no meaning"),
        (b"tokns = ['a']", FileFormatError, "unknown key 'tokns'. Did you mean 'tokens'"),
        (b"tokens = ['b']\n[embedding]\na = [1]", InputValueError, "tokens: the word 'b' has no row in [embedding]. Known: 'a'."),
        (b"tokens = ['a']\n[embedding]\na = [1]\nb = [1, 2]", InputValueError, "embedding.b: got '2 numbers'"),
        (b"tokens = ['a']\n[embedding]\na = 1", FileFormatError, "embedding.a: got 1; allowed: a list of numbers"),
        (b"tokens = [1]\n[embedding]\na = [1]", FileFormatError, "tokens: got [1]; allowed: a list of words"),
        (b"tokens = []\n[embedding]\na = [1]", FileFormatError, "tokens: got []"),
        (b"X = [[1, 2], [3]]", InputValueError, "X: "),
        (b"X = [['a']]", InputValueError, "X: 'a' is no number"),
        (b"X = [[inf]]", InputValueError, "X: got inf; allowed: finite numbers"),
        (b"X = [[nan]]", InputValueError, "X: got nan"),
        (b"X = [[]]", InputValueError, "X: got [[]]; allowed: at least one number"),
        (b"X = [1, 2]", FileFormatError, "X: got [1, 2]; allowed: a matrix"),
        (b"X = [[1e999999]]", InputValueError, "exponent"),
        (b"X = [[1]]\nfollow = 2", InputValueError, "follow: got 2; allowed: a word, 1 to 1"),
        (b"X = [[1, true]]", InputValueError, "X: got 'true'; allowed: numbers; true and false stand in masks only"),
        (b"X = [['1e5000']]", InputValueError, "X: got a number of more than 400 digits"),
        (b"X = [['1e-401']]", InputValueError, "X: got a number of more than 400 digits"),
        (b"tokens = ['']\n[embedding]\na = [1]", FileFormatError, "tokens: got ['']; allowed: a list of words of 1 to 200"),
        (b"X = [[1]]\nfollow = 0", InputValueError, "follow: got 0"),
        (b"X = [[1]]\nfollow = true", InputValueError, "follow: got True"),
        (b"X = [[1]]\nfollow = 'x'", InputValueError, "follow: got 'x'"),
        (b"X = [[1]]\ndigits = 0", InputValueError, "digits: got 0; allowed: an integer from 1 to 200"),
        (b"X = [[1]]\ndigits = 2.5", FileFormatError, "digits: got '2.5'; allowed: an integer"),
        (b"X = [[1]]\ntitle = 3", FileFormatError, "title: got 3; allowed: text"),
        (b"X = [[1]]\ndefinition = 3", FileFormatError, "definition: got 3; allowed: a table"),
        (b"X = [[1]]\ntokens = ['a', 'b']", InputValueError, "tokens: got '2 words'; allowed: 1 words"),
        (b"X = [[1]]\nmemory = [1]", FileFormatError, "memory: got [1]"),
        (b"X = [" + b"[1]," * 50_001 + b"]", FileFormatError, "X: more than 50000 numbers"),
        (b"X = " + b"[" * 2000 + b"]" * 2000, SymattnError, "t: "),
    ],
)
def test_planted_errors(text: bytes, error: type[Exception], says: str) -> None:
    with pytest.raises(error) as caught:
        examples.parse(text, "t.toml" if error is not SymattnError else "t")
    assert says in str(caught.value) and str(caught.value).startswith("t")


def test_minus_infinity_is_a_number_in_a_mask_only() -> None:
    e = examples.parse(b"Q = [[1]]\nK = [[1]]\nV = [[1]]\nattn_mask = [[-inf]]", "t")
    assert e.arrays["attn_mask"].tolist() == [[float("-inf")]]
    with pytest.raises(InputValueError, match="attn_mask: got inf; allowed: finite numbers and -inf"):
        examples.parse(b"Q = [[1]]\nK = [[1]]\nV = [[1]]\nattn_mask = [[inf]]", "t")


def test_a_bare_name_is_a_shipped_example_and_a_path_a_file(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'two-words'"):
        examples.load("two-word")
    with pytest.raises(FileFormatError, match="cannot be read: No such file"):
        examples.load("none.toml")
    with pytest.raises(FileFormatError, match="cannot be read"):
        examples.load(tmp_path)
    file = tmp_path / "own.toml"
    file.write_bytes(GOOD)
    assert examples.load(file).follow == 0 and examples.load(str(file)).arrays["x"].shape == (2, 2)
    file.write_bytes(b"#" * 1_000_001)
    with pytest.raises(FileFormatError, match="at most 1000000"):
        examples.load(file)


# --- heads

X = b"X = [[1, 2], [0.5, '1/3'], [0, 1]]\ndigits = 8\n"
BY_HEAD = {
    "w_q": b"[[[1, 0], [0, 2]], [[1, 1], [3, 0]], [[0, 1], [1, 5]], [[2, 0], [1, 1]]]",
    "w_o": b"[[[1, 0], [0, 1]], [[1, 2], [3, 1]], [[0, 0], [1, 1]], [[2, 0], [0, 7]]]",
}
IN_ONE = {
    "w_q": b"[[1, 0, 1, 1, 0, 1, 2, 0], [0, 2, 3, 0, 1, 5, 1, 1]]",
    "w_o": b"[[1, 0], [0, 1], [1, 2], [3, 1], [0, 0], [1, 1], [2, 0], [0, 7]]",
}


@pytest.mark.parametrize("grouping", ["interleaved", "tiled"])
@pytest.mark.parametrize("kv_heads", [1, 2, 4])
def test_a_projection_is_a_matrix_for_each_head_or_one_for_all(kv_heads: int, grouping: str) -> None:
    own = {
        1: (b"[[1, 2], [0, 1]]", b"[[1, 2], [0, 1]]"),
        2: (b"[[[1, 2], [0, 1]], [[3, 0], [1, 1]]]", b"[[1, 2, 3, 0], [0, 1, 1, 1]]"),
    }
    own[4] = (BY_HEAD["w_q"], IN_ONE["w_q"])
    definition = Definition(heads=4, kv_heads=kv_heads, grouping=grouping, start="x", output_projection=True, lse=False)
    found = []
    for k, weights in enumerate((BY_HEAD, IN_ONE)):
        w = [(b"W_Q", weights["w_q"]), (b"W_K", own[kv_heads][k]), (b"W_V", own[kv_heads][k]), (b"W_O", weights["w_o"])]
        example = examples.parse(X + b"\n".join(b"%s = %s" % pair for pair in w), "t")
        d = derive(definition, example)
        found.append([[c.decimal for c in row] for row in d["Y"].grids[-1].cells])
        fields = {n: np.asarray(a, dtype=float) for n, a in example.arrays.items()}
        bound = bind(definition, fields)
        want = np.asarray(numpy_reading.evaluate(bound.program, bound.inputs)["Y"], dtype=float)
        assert np.allclose(np.asarray(found[-1], dtype=float), want, atol=1e-7)
    assert found[0] == found[1]


def test_query_heads_of_groups_are_given_one_after_the_other() -> None:
    q = b"Q = [[[1]], [[2]], [[3]], [[4]]]\nK = [[[1]], [[-1]]]\nV = [[[1]], [[2]]]\n"
    example = examples.parse(q, "t")
    lines = derive(Definition(heads=4, kv_heads=2, scale=1), example)["R"].grids
    assert [g.cells[0][0].decimal for g in lines] == ["1", "2", "-3", "-4"]
    tiled = derive(Definition(heads=4, kv_heads=2, scale=1, grouping="tiled"), example)["R"].grids
    assert [g.cells[0][0].decimal for g in tiled] == ["1", "3", "-2", "-4"]


@pytest.mark.parametrize(
    ("weight", "says"),
    [
        (b"W_Q = [[1, 0, 1], [0, 1, 1]]", "W_Q: 3 columns cannot be shared by 2 heads; give (H, dmodel, d) or (dmodel, H*d)"),
        (b"W_O = [[1], [1], [1]]", "W_O: 3 rows cannot be shared by 2 heads; give (H, dv, dout) or (H*dv, dout)"),
        (b"W_V = [1, 2]", "W_V: got an array of shape (2,); this definition takes (H, dmodel, dv) or (dmodel, H*dv)"),
    ],
)
def test_a_projection_that_cannot_be_split(weight: bytes, says: str) -> None:
    with pytest.raises(FileFormatError) as caught:
        derive(example=examples.parse(X + weight + b"\n[definition]\nheads = 2", "t"))
    assert says in str(caught.value)
