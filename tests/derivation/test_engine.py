from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from symattn.adjoint import adjoint
from symattn.definition import Definition
from symattn.derivation import Derivation, derive, examples
from symattn.derivation.binding import definition_of, inputs_of
from symattn.derivation.document import Line
from symattn.derivation.nodeprint import latex, text
from symattn.derivation.numbersteps import Item, number
from symattn.derivation.shaping import computable, with_constants_in_place, without_maxima
from symattn.errors import DefinitionError, FileFormatError, InputValueError, LimitError
from symattn.readings import mpmath as reading
from tests.derivation.reader import CONTEXT, read_latex, read_text

TIGHT = CONTEXT.mpf(10) ** -40
DECIMALS = b"""
X = [[0.5, -1, 2], [1.25, 0, "1/3"], [0, 0.1, 1], [2, 2, -0.5]]
W_O = [[[1, 0], [0, 1], [1, 1]], [["1/2", 0], [0, 2], [1, 0]]]
grad_out = [[1, 0], [0, 0.5], [1, 1], [0, 2]]
follow = 3
[definition]
heads = 2
"""
MASKED = b"""
Q = [[1, 0], [0, 1], [2, "1/2"]]
K = [[1, 1], [0, 2], [1, 0], [0.5, 0]]
V = [[1], [2], [3], [-1]]
grad_out = [[1], [1], [2]]
follow = 2
"""
VARIANTS: dict[str, dict[str, Any]] = {
    "softcap": {"softcap": 5},
    "causal": {"causal": "top-left"},
    "bottom-right": {"causal": "bottom-right", "window": (2, 0)},
    "score": {"score": "t*s - abs(i - j)/2 + tanh(s)", "params": {"t": "1/3"}},
    "scale": {"scale": "1/d"},
    "base 2": {"lse_base": 2},
    "empty": {"mask": "j < i", "empty_row": "uniform"},
    "nan": {"mask": "j < i", "empty_row": "nan"},
}
SOURCES = [*examples.shipped(), DECIMALS]


def loaded(source: str | bytes) -> examples.Example:
    return examples.load(source) if isinstance(source, str) else examples.parse(source, "test")


def witness(example: examples.Example, d: Definition, gradient: bool = False, shifted: bool = False) -> dict[str, Any]:
    """The tensors by the mpmath reading of the raw gradient, which knows nothing of steps, presentation and exact values."""
    program = adjoint(d.program()) if gradient else d.program()
    program = program if shifted else without_maxima(program)
    arrays, sizes = inputs_of(example, with_constants_in_place(program), d.parameters)
    program = computable(program, set(arrays))
    tensors = reading.evaluate(program, {n: a for n, a in arrays.items() if n in program.inputs}, sizes=sizes, digits=60)
    if "dP" in tensors:
        tensors["D"] = (tensors["P"] * tensors["dP"]).sum(-1)
    return tensors


def lines_of(d: Derivation) -> list[Line]:
    return [line for s in d.steps for line in s.lines]


def checked(d: Derivation, line: Line, tensors: dict[str, Any]) -> list[str]:
    """What is wrong with a line, by independent readers of its text and its LaTeX."""
    names = {text(Item(n, (), line.item.content), d.style).partition("[")[0]: n for n in tensors}
    tex = {d.style.name(n): n for n in tensors} | {"ℓ": "l", "ℰ": "Emb"}
    want = CONTEXT.mpf(tensors[line.item.tensor][line.item.index])

    def element(letter: str, index: tuple[int, ...]) -> Any:
        n = names.get(letter) or tex[letter]
        return CONTEXT.mpf(tensors[n][tuple(k - d.style.origin for k in index)])

    wrong = []
    for node in (line.work, line.cell.value):
        if node is None or "NaN" in text(node, d.style) or CONTEXT.isnan(want):
            continue
        for value in (read_text(text(node, d.style), element), read_latex(latex(node, d.style), element)):
            if not abs(value - want) <= TIGHT * (1 + abs(want)):
                wrong.append(f"{text(line.item, d.style)} = {text(node, d.style)}: {value} and not {want}")
    return wrong


def close(shown: str, want: Any, digits: int) -> bool:
    """Whether a printed decimal is the number, rounded to its last place."""
    if shown == "NaN":
        return bool(CONTEXT.isnan(want))
    if shown in ("inf", "-inf"):
        return bool(want == CONTEXT.mpf(shown))
    mantissa, mark, exponent = shown.partition("e")
    places = digits if not mark else len(mantissa.partition(".")[2]) - int(exponent)
    return bool(abs(CONTEXT.mpf(shown) - want) <= CONTEXT.mpf(10) ** -places / 2 + TIGHT)


def wrong_cells(d: Derivation, tensors: dict[str, Any]) -> list[str]:
    found = []
    for s in d.steps:
        for g in s.grids:
            rows = [g.row] if g.row is not None else range(len(g.cells))
            for r, row in zip(rows, g.cells, strict=True):
                for c, cell in enumerate(row):
                    index = (*g.leading, *(r, c)[2 - len(g.shape) :])
                    if not cell.masked and not close(cell.decimal, CONTEXT.mpf(tensors[g.tensor][index]), d.digits):
                        found.append(f"{g.tensor}{index}: {cell.decimal}")
    return found


# --- the first article


def test_the_cat_sat() -> None:
    d = derive(example="the-cat-sat")
    assert [s.name for s in d.steps] == [
        "Embedded words", "Queries", "Keys", "Values", "Raw scores", "Scaled scores", "Attention weights", "Context vector",
    ]  # fmt: skip
    assert [c.decimal for c in d["R"].grids[0].cells[0]] == ["10", "5", "3", "12", "10"]
    exact = [text(c.value, d.style) for c in d["S"].grids[0].cells[0] if c.value is not None]
    assert exact == ["10/√3", "5/√3", "3/√3", "12/√3", "10/√3"]
    assert [c.decimal for c in d["P"].grids[0].cells[0]] == ["0.1906", "0.0106", "0.0033", "0.6048", "0.1906"]
    assert [c.decimal for c in d["O"].grids[0].cells[0]] == ["0.4125", "1.2762", "3.5735"]
    first = d["R"].lines[0]
    assert first.work is not None and latex(first.work, d.style) == r"1 \cdot 1 + 0 \cdot 0 + 3 \cdot 3"
    assert latex(d["S"].lines[0].cell.value or number(0), d.style) == r"\frac{10}{\sqrt{3}}"
    assert [x.note for x in d["R"].lines] == [("the", w) for w in ("the", "cat", "sat", "on", "the")]


def test_the_row_maximum_is_shown_on_request_only() -> None:
    usual, full = derive(example="two-words"), derive(example="two-words", show_max=True)
    assert not any("m" in s.tensors for s in usual.steps) and usual["P"].tensors == ("E", "l", "P")
    assert [s.tensors for s in full.steps][6:10] == [("m",), ("E",), ("l",), ("P",)]
    assert [c.decimal for g in usual["P"].grids for r in g.cells for c in r] == [
        c.decimal for g in full["P"].grids for r in g.cells for c in r
    ]


def test_symbols_without_numbers() -> None:
    d = derive(Definition(causal="top-left"))
    assert [f.latex for f in d["R"].matrix] == [r"R = Q K^{\top} \quad\text{where } j \le i"]
    assert [f.latex for f in d["P"].matrix] == [r"P = \operatorname{softmax}(S) \quad\text{where } j \le i"]
    assert [f.markdown for f in d["P"].matrix] == [r"P = \mathrm{softmax}(S) \quad\text{where } j \le i"]
    assert not lines_of(d) and not any(s.grids for s in d.steps)


@pytest.mark.parametrize("form", ["index", "matrix", "both"])
def test_forms(form: str) -> None:
    s = derive(form=form)["O"]
    assert (bool(s.index), bool(s.matrix)) == (form != "matrix", form != "index")


# --- every line that is printed means what it says


@pytest.mark.parametrize("show_max", [False, True])
@pytest.mark.parametrize("gradient", [False, True])
@pytest.mark.parametrize("source", SOURCES, ids=[s if isinstance(s, str) else "decimals" for s in SOURCES])
def test_lines_and_cells_of_examples(source: str | bytes, gradient: bool, show_max: bool) -> None:
    example = loaded(source)
    d = derive(example=example, gradient=gradient, show_max=show_max)
    tensors = witness(example, definition_of(example).replace(lse=False), gradient, show_max)
    lines = lines_of(d)
    assert len(lines) > 12
    assert [w for x in lines for w in checked(d, x, tensors)] == []
    assert wrong_cells(d, tensors) == []
    if gradient and "grad_out" in example.arrays:
        assert all(s.grids for s in d.steps)


@pytest.mark.parametrize("fields", VARIANTS.values(), ids=VARIANTS)
def test_lines_and_cells_of_variants(fields: dict[str, Any]) -> None:
    example = examples.parse(MASKED, "test")
    d = derive(Definition(**fields), example, lse=True)
    tensors = witness(example, definition_of(example, Definition(**fields)))
    assert [w for x in lines_of(d) for w in checked(d, x, tensors)] == []
    assert wrong_cells(d, tensors) == []
    assert "P" in tensors and d["P"].lines


def test_the_gradient_row_sums_that_vanish_are_exactly_zero() -> None:
    d = derive(example="two-words", gradient=True)
    zero = d["dQ"].grids[0].cells[0][2]
    assert zero.exact and zero.decimal == "0"
    assert {s.known for s in d.steps if s.backward} <= {
        "derivative rule",
        "derivative rule; its rewriting is proved for all sizes",
    }
    assert d["dS"].known.endswith("proved for all sizes") and d["R"].known == "by definition"


def test_a_wrong_line_is_found() -> None:
    example = examples.load("the-cat-sat")
    d = derive(example=example)
    tensors = witness(example, definition_of(example).replace(lse=False))
    line = d["O"].lines[0]
    assert checked(d, line, tensors) == []
    assert checked(d, replace(line, item=d["O"].lines[1].item), tensors)
    cell = replace(line.cell, decimal="0.4127", value=None)
    broken = replace(d["O"], grids=(replace(d["O"].grids[0], cells=((cell, *d["O"].grids[0].cells[0][1:]),)),))
    assert wrong_cells(replace(d, steps=(broken,)), tensors) == ["O(4, 0): 0.4127"]


@pytest.mark.parametrize("digits", [1, 12, 60])
def test_digits(digits: int) -> None:
    example = examples.load("the-cat-sat")
    d = derive(example=example, digits=digits)
    tensors = witness(example, definition_of(example).replace(lse=False))
    shown = d["O"].grids[0].cells[0][0].decimal
    assert len(shown) == digits + 2
    assert close(shown, CONTEXT.mpf(tensors["O"][4, 0]), digits)


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


def test_helpers_that_are_not_shown_are_not_read() -> None:
    d = derive(Definition(sink=True), lse=True)
    assert [f.latex for f in d["P0"].index] == [
        r"(P_0)_{i} = \frac{\exp(b)}{\exp(b) + \sum_j \exp(S_{ij})}".replace("_{i}", "_i")
    ]
    assert not any("ell" in f.latex for s in d.steps for f in s.formulas)


# --- sizes and errors


def test_large_matrices_are_elided_and_the_followed_row_is_not_lost() -> None:
    rows = ", ".join(f"[{k % 5}, 1]" for k in range(20))
    example = examples.parse(f"X = [{rows}]\nfollow = 13".encode(), "big")
    d = derive(example=example)
    row, whole = d["P"].grids
    assert row.row == 12 and len(row.cells[0]) == 7 and row.skipped_columns == 6
    assert len(whole.cells) == 7 and whole.skipped_rows == 6 and whole.shape == (20, 20)
    assert len(d["R"].lines) == 8


@pytest.mark.parametrize(
    ("text_", "fields", "error", "words"),
    [
        (b"X = [[1, 2, 3]]\nW_Q = [[1, 0]]", {}, FileFormatError, "test: "),
        (b"X = [[1, 2]]\nW_V = [[1, 2, 3]]", {}, FileFormatError, "w_v"),
        (b"Q = [[1, 2]]\nK = [[1, 2, 3]]\nV = [[1]]", {}, FileFormatError, "K"),
        (b"X = [[1, 2]]", {"alibi": True}, InputValueError, "missing: alibi_slopes"),
        (b"X = [[1, 2]]\nsinks = 1", {}, InputValueError, "sinks: this definition reads no such input"),
        (b"Q = [[1, 2]]\nK = [[1], [3]]\nV = [[1], [2]]", {}, FileFormatError, "K: has length 1 where d is 2 elsewhere"),
        (b"X = [[1, 2]]\n[definition]\nscore = 's +'", {}, FileFormatError, "[definition]: "),
        (b"X = [[1, 2]]\n[definition]\nwindow = [0, 0]", {}, FileFormatError, "[definition]: a window of 0 keys"),
        (b"X = [[1, 2]]\n[definition]\nsink = true", {"empty_row": "nan"}, DefinitionError, "[definition]: "),
        (b"Q = [[1, 2]]\nK = [[1, 3]]\nV = [[1]]", {"score": "s*slope"}, InputValueError, "missing: slope; this"),
        (b"X = [[1, 2]]\n[definition]\ncausl = 'top-left'", {}, FileFormatError, "causal"),
        (b"X = [[1, 2]]\n[definition]\ncausal = 'left'", {}, FileFormatError, "top-left"),
    ],
)
def test_examples_that_do_not_fit(text_: bytes, fields: dict[str, Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match="test") as caught:
        derive(Definition(**fields), examples.parse(text_, "test"))
    assert words.lower() in str(caught.value).lower()


def test_an_empty_row_is_an_error_where_the_definition_says_so() -> None:
    example = examples.parse(MASKED, "test")
    with pytest.raises(FileFormatError, match=r"test: query 1 .* sees no key"):
        derive(Definition(mask="j < i", empty_row="error"), example)
    assert derive(Definition(mask="j <= i", empty_row="error"), example)["O"].grids


def test_a_parameter_is_given_by_its_own_name() -> None:
    text_ = b"Q = [[1, 2]]\nK = [[1, 3]]\nV = [[1]]\n[inputs]\nslope = 3"
    d = derive(Definition(score="s*slope", scale=1), examples.parse(text_, "test"))
    assert [g.tensor for g in d.inputs] == ["Q", "K", "V", "slope"] and d["Z"].lines[0].cell.decimal == "21"
    with pytest.raises(FileFormatError, match=r"test: inputs\.query: "):
        examples.parse(text_.replace(b"slope", b"query"), "test")


def test_options_that_are_not_allowed() -> None:
    with pytest.raises(DefinitionError, match="'both'"):
        derive(form="indices")
    with pytest.raises(LimitError, match="digits"):
        derive(digits=0)
