from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import pytest

from symattn.definition import Definition
from symattn.derivation import Derivation, derive, examples
from symattn.derivation import exactvalue as ev
from symattn.derivation.binding import definition_of
from symattn.derivation.document import Line
from symattn.derivation.layout import line_parts
from symattn.derivation.nodeprint import latex, text
from symattn.derivation.numbersteps import Item, Node, Sum, children, number
from symattn.errors import DefinitionError, FileFormatError, InputValueError, LimitError
from tests.derivation.reader import CONTEXT
from tests.derivation.witness import MASKED, TIGHT, checked, lines_of, witness

DECIMALS = b"""
X = [[0.5, -1, 2], [1.25, 0, "1/3"], [0, 0.1, 1], [2, 2, -0.5]]
W_O = [[[1, 0], [0, 1], [1, 1]], [["1/2", 0], [0, 2], [1, 0]]]
grad_out = [[1, 0], [0, 0.5], [1, 1], [0, 2]]
follow = 3
[definition]
heads = 2
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


def items(node: Node | None) -> list[Item]:
    return [] if node is None else [node] if isinstance(node, Item) else [x for c in children(node) for x in items(c)]


def mixed(line: Line) -> bool:
    """Whether a line opens some of its elements and carries the others by name."""
    return len({x.content == ev.generator(ev.Ref(x.tensor, x.index)) for x in items(line.work)}) > 1


@pytest.mark.parametrize("source", SOURCES, ids=[s if isinstance(s, str) else "decimals" for s in SOURCES])
def test_a_line_opens_all_of_its_elements_or_none(source: str | bytes) -> None:
    d = derive(Definition(causal="top-left"), example=loaded(source), gradient=True)
    lines = [line for line in lines_of(d) if len(items(line.work)) > 1]
    assert [text(line.item, d.style) for line in lines if mixed(line)] == []
    if source == DECIMALS:
        last = next(line for line in lines if line.item.tensor == "dWK")
        shown = set(re.findall(r"[A-Za-z_]+(?=\^)", text(last.cell.value, d.style) if last.cell.value else "dK"))
        assert shown <= {"dK"}, "dK[4,1] is short and stays by name beside those that are long"
        one = items(last.work)[0]
        assert mixed(replace(last, work=Sum(((1, replace(one, content=ev.ONE)), (1, one)))))


def test_a_line_does_not_say_the_same_twice() -> None:
    for source in SOURCES:
        d = derive(example=loaded(source), gradient=True)
        for line in lines_of(d):
            parts = [str(p.pieces) for p in line_parts(line, d.style)]
            assert len(set(parts)) == len(parts), text(line.item, d.style)
            works = [text(n, d.style) for n in (line.work, line.cell.value) if n is not None]
            assert len(set(works)) == len(works), works


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


# --- sizes and errors


def test_large_matrices_are_elided_and_the_followed_row_is_not_lost() -> None:
    rows = ", ".join(f"[{k % 5}, 1]" for k in range(20))
    example = examples.parse(f"X = [{rows}]\nfollow = 13".encode(), "big")
    d = derive(example=example)
    row, whole = d["P"].grids
    assert row.row == 12 and len(row.cells[0]) == 7 and row.skipped_columns == 6
    assert len(whole.cells) == 7 and whole.skipped_rows == 6 and whole.shape == (20, 20)
    assert len(d["R"].lines) == 8


def test_what_is_cut_is_said_to_be_cut() -> None:
    rows = ", ".join(f"[{k % 5}.25, {k % 3}, '{k}/7']" for k in range(20))
    d = derive(example=examples.parse(f"X = [{rows}]\nfollow = 13".encode(), "big"))
    said = "8 of 20 elements are worked out."
    for s in d.steps:
        for line in s.lines[:-1]:
            assert s.cut(line) == ""
        assert [s.cut(x) for x in s.lines[-1:]] == ([said] if s.tensors[-1] in ("R", "S", "P") else [""] * bool(s.lines))
    assert [line.row for line in d["P"].lines] == [0] * 8 + [20]  # the normaliser, and the row of weights
    page = d.to_text()
    assert page.count(f"    ⋮   {said}\n") == 3
    shown = [x.strip() for x in page.partition("4. Raw scores")[2].partition("5. Scaled")[0].splitlines()]
    last = next(k for k, x in enumerate(shown) if x.startswith("R[13,20]"))
    assert shown[last - 1] == "⋮" and shown[last - 2].startswith("R[13,6]")
    for other in (d.to_latex(), d.to_markdown(), d.to_html()):
        assert other.count(said) == 3
    assert [x["row"] for s in json.loads(d.to_json())["steps"] for x in s["lines"] if x["row"]] == [20, 20, 20]
    small = derive(example="the-cat-sat")
    assert "worked out" not in small.to_text() and "  ⋮" not in small.to_text()


def test_heads_that_are_not_shown_are_mentioned() -> None:
    def notes(heads: int) -> str:
        one = "[[1], [2]], " * heads
        given = "\n".join(f"{a} = [{one}]" for a in "QKV")
        return " ".join(derive(example=examples.parse(f"{given}\n[definition]\nheads = {heads}".encode(), "heads")).notes)

    assert "the first one is worked out. Matrices are shown for the first 4 of 6 heads." in notes(6)
    assert "the first one is worked out." in notes(3) and "Matrices are shown" not in notes(3)
    assert "heads, the first" not in " ".join(derive(example="two-words").notes)


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


def test_pi_is_written_as_pi_in_every_form() -> None:
    found = derive(Definition(score="pi*s", lse=False), "two-words")
    assert "π" in found.to_text() and "Pi" not in found.to_text()
    assert r"\pi" in found.to_latex() and "Pi" not in found.to_latex()
