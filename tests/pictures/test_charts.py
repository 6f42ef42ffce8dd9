"""What pictures show: weights, scores, errors and Jacobians as numbers, against computations that share no code with them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import mpmath
import numpy as np
import pytest

from symattn.derivation import examples
from symattn.errors import DefinitionError, FileFormatError, LimitError, UnknownNameError
from symattn.pictures.chart import Panel, reduced, stacked
from symattn.pictures.errors import errors, judged
from symattn.pictures.examplevalues import bind
from symattn.pictures.jacobian import jacobian
from symattn.pictures.weights import scores, weights
from symattn.variants import CATALOGUE
from tests.derivation.cases import TWO_HEADS

Q = [[1.0, 2.0], [0.5, -1.0], [2.0, 0.25]]
K = [[0.5, 1.0], [1.0, 0.0], [-1.0, 2.0]]
V = [[1.0, 0.0], [0.0, 1.0], [3.0, -2.0]]
QKV = f"Q = {Q}\nK = {K}\nV = {V}\nfollow = 2\n"


def example(fields: str = "", text: str = QKV) -> examples.Example:
    return examples.parse(f"{text}\n[definition]\n{fields}".encode(), "small")


def attention(q: list, k: list, v: list, causal: bool = False, sink: float | None = None) -> tuple[list, list, list]:
    """Scores, weights and outputs by mpmath."""
    s = [[mpmath.fdot(a, b) / mpmath.sqrt(len(a)) for b in k] for a in q]
    p = []
    for i, row in enumerate(s):
        e = [mpmath.exp(x) if not causal or j <= i else mpmath.mpf(0) for j, x in enumerate(row)]
        total = sum(e) + (mpmath.exp(sink) if sink is not None else 0)
        p.append([x / total for x in e])
    return s, p, [[mpmath.fdot(row, column) for column in zip(*v, strict=True)] for row in p]


@pytest.mark.parametrize(
    ("fields", "causal", "sink"), [("", False, None), ("causal = 'top-left'", True, None), ("sink = true", False, 0.5)]
)
def test_weights_and_scores(fields: str, causal: bool, sink: float | None) -> None:
    text = QKV + ("sinks = 0.5\n" if sink is not None else "")
    bound = bind(example(fields, text))
    with mpmath.workdps(30):
        s, p, _ = attention(Q, K, V, causal, sink)
    outside = np.triu(np.ones((3, 3), bool), 1) if causal else np.zeros((3, 3), bool)
    for chart, want in ((weights(bound), p), (scores(bound), s)):
        ((panel,),) = chart.panels
        assert np.array_equal(np.isnan(panel.values), outside)
        np.testing.assert_allclose(panel.values[~outside], np.array(want, dtype=float)[~outside], rtol=1e-15)
        for r, c in np.ndindex(3, 3):
            assert panel.texts[r][c] == "" if outside[r, c] else abs(float(panel.texts[r][c]) - float(want[r][c])) <= 0.00501
    assert weights(bound).low == 0 and scores(bound).low == -scores(bound).high


def test_words_stand_at_the_axes_and_every_head_has_a_panel() -> None:
    chart = weights(bind(examples.parse(TWO_HEADS, "two heads")))
    assert [p.title for p in chart.panels[0]] == ["Weights, head 1", "Weights, head 2"]
    assert all(p.rows == p.columns == ("the", "cat", "sat", "on", "mat") for p in chart.panels[0])


def test_several_softmaxes_are_told_apart() -> None:
    source = replace(
        example(text="tokens = ['a', 'b']\n[weights]\nseed = 1\n"), definition=CATALOGUE["next-word"].definition.changed
    )
    titles = [p.title for row in weights(bind(source)).panels for p in row]
    assert len(titles) == 2 == len(set(titles))


@pytest.mark.parametrize("by", ["scores", "weights", "query", "key", "value", "Q"])
@pytest.mark.parametrize("causal", [False, True])
def test_a_jacobian_is_that_of_differences(by: str, causal: bool) -> None:
    bound = bind(example("causal = 'top-left'" if causal else ""))
    ((panel,),) = jacobian(bound, by).panels
    with mpmath.workdps(60):
        wanted = np.array(_differences(by, causal, 1), dtype=float)
    np.testing.assert_allclose(panel.values, wanted, rtol=1e-12, atol=1e-15)
    assert panel.values.shape[0] == 2 and len(panel.columns) == panel.values.shape[1]


def _differences(by: str, causal: bool, row: int) -> list[list]:
    """Central differences of the row of the output, at 60 digits."""
    step = mpmath.mpf(10) ** -20
    exact = {n: [[mpmath.mpf(x) for x in r] for r in a] for n, a in (("query", Q), ("key", K), ("value", V))}
    s, p, _ = attention(exact["query"], exact["key"], exact["value"], causal)

    def out(name: str, a: int, b: int, h: mpmath.mpf) -> list:
        if name in ("scores", "weights"):
            moved = [*(s if name == "scores" else p)[row]]
            moved[b] += h
            kept = [j for j in range(3) if not causal or j <= row]
            e = {j: mpmath.exp(moved[j]) for j in kept}
            w = (
                [e[j] / sum(e.values()) if j in e else 0 for j in range(3)]
                if name == "scores"
                else [x if j in kept else 0 for j, x in enumerate(moved)]
            )
            return [mpmath.fdot(w, column) for column in zip(*exact["value"], strict=True)]
        moved = {n: [list(r) for r in t] for n, t in exact.items()}
        moved[name][a][b] += h
        return attention(moved["query"], moved["key"], moved["value"], causal)[2][row]

    name = {"Q": "query"}.get(by, by)
    places = [(row, j) for j in range(3)] if name in ("scores", "weights") else [(a, b) for a in range(3) for b in range(2)]
    columns = [
        [(x - y) / (2 * step) for x, y in zip(out(name, a, b, step), out(name, a, b, -step), strict=True)] for a, b in places
    ]
    return [list(r) for r in zip(*columns, strict=True)]


def test_a_jacobian_by_words_names_them() -> None:
    ((panel,),) = jacobian(bind("two-words"), "x").panels
    assert panel.columns == tuple(f"{w} {c}" for w in ("thinking", "machines") for c in (1, 2, 3))


def test_a_jacobian_of_one_of_several_outputs() -> None:
    fields = CATALOGUE["next-word"].definition.changed
    source = replace(example(text="tokens = ['a', 'b']\n[weights]\nseed = 1\n"), definition=fields)
    ((panel,),) = jacobian(bind(source)).panels
    assert panel.columns == ("a", "b") and np.isfinite(panel.values).all()


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda: jacobian(bind(example()), "nothing"), UnknownNameError, "there is no gradient by 'nothing'"),
        (lambda: jacobian(bind(example()), ""), UnknownNameError, "^(?!.*'weights', 'weights')"),
        (lambda: weights(bind(example("normalizer = 'sigmoid'"))), DefinitionError, "no softmax of scores that could be drawn"),
        (lambda: bind("no-such"), UnknownNameError, "no shipped example"),
        (lambda: bind("no-such.toml"), FileFormatError, "cannot be read"),
    ],
)
def test_what_cannot_be_drawn(call: Callable[[], object], kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        call()


def test_too_many_scores_are_refused_before_anything_is_computed() -> None:
    rows = ", ".join(["[1]"] * 450)
    with pytest.raises(LimitError, match="202500 scores; at most 200000"):
        bind(example(text=f"Q = [{rows}]\nK = [{rows}]\nV = [{rows}]\n"))


# --- errors


def write(path: Path, **changes: object) -> Path:
    exact = np.zeros((1, 2, 3, 4))
    kernel = exact.copy()
    kernel[0, 1, 2, 3], kernel[0, 0, 0, 0] = 0.5, -0.25
    tensors: dict[str, object] = {
        "a/out": kernel.astype(np.float32), "a/out.exact": exact, "a/out.radius": exact, "a/out.bound": exact + 1,
        "b/out": kernel, "b/out.exact": exact, "b/out.radius": exact, "b/out.bound": exact + 0.125,
        "b/lse": np.zeros((1, 2, 3)), "b/lse.exact": np.zeros((1, 2, 3)), "b/lse.radius": np.zeros((1, 2, 3)),
        "b/lse.bound": np.ones((1, 2, 3)), "report": np.array("{}"),
    }  # fmt: skip
    tensors |= changes
    np.savez(path, **{n: a for n, a in tensors.items() if a is not None})
    return path


def test_errors_are_in_units_of_the_bound_and_the_worst_case_is_drawn(tmp_path: Path) -> None:
    chart = errors(write(tmp_path / "run.npz"))
    assert chart.title == "run, input b" and chart.high == 1
    (tiles, worst), (lse,) = chart.panels
    assert tiles.values.tolist() == [[2, 0, 0], [0, 0, 4]] and tiles.outside.sum() == 2
    assert worst.title == "out: batch, head 0, 1" and worst.values[2, 3] == 4 and worst.outside.sum() == 1
    assert lse.values.shape == (2, 3) and not lse.outside.any()
    ((tiles, _),) = errors(tmp_path / "run.npz", "a", "out", tile=2).panels
    assert tiles.values.tolist() == [[0.25, 0], [0, 0.5]] and tiles.column_axis == "tile of 2 positions"


def test_what_is_not_promised_is_empty_and_what_is_not_finite_is_out(tmp_path: Path) -> None:
    exact = np.array([[[[0.0, np.nan, 1.0, np.inf, 1.0, 1.0]]]])
    kernel = np.array([[[[np.nan, np.nan, np.inf, np.inf, 2.0, 1.5]]]])
    bound = np.array([[[[1.0, 1.0, 1.0, 1.0, np.inf, 0.0]]]])
    np.savez(tmp_path / "x.npz", **{"out": kernel, "out.exact": exact, "out.radius": np.zeros_like(exact), "out.bound": bound})
    units = judged(tmp_path / "x.npz")["recorded"]["out"][0, 0, 0]
    assert np.array_equal(units, [np.inf, 0, np.inf, 0, np.nan, np.inf], equal_nan=True)


def test_what_the_radius_leaves_open_is_not_crossed(tmp_path: Path) -> None:
    one = np.ones((1, 1, 1, 1))
    np.savez(tmp_path / "x.npz", **{"out": 2 * one, "out.exact": one, "out.radius": 2 * one, "out.bound": one / 2})
    assert not errors(tmp_path / "x.npz").panels[0][0].outside.any()


def test_gradients_of_masks_are_query_by_key(tmp_path: Path) -> None:
    one = np.ones((1, 1, 2, 3))
    names = {"grad_attn_mask": one, "grad_attn_mask.exact": one, "grad_attn_mask.radius": 0 * one, "grad_attn_mask.bound": one}
    np.savez(tmp_path / "x.npz", **names)
    ((_, worst),) = errors(tmp_path / "x.npz").panels
    assert (worst.row_axis, worst.column_axis, worst.values.shape) == ("query", "key", (2, 3))


@pytest.mark.parametrize(
    ("changes", "options", "kind", "message"),
    [
        ({"b/out.exact": None}, {}, FileFormatError, "'b/out.exact' is missing"),
        ({"b/out.exact": np.zeros(2)}, {}, FileFormatError, "differ in shape"),
        ({}, {"case": "c"}, UnknownNameError, "there is no case 'c'"),
        ({}, {"tensor": "outt"}, UnknownNameError, "no output 'outt'. Did you mean 'out'"),
        ({"b/out": np.array([object()])}, {}, FileFormatError, "pickled objects"),
        (dict.fromkeys(("a/out.bound", "b/out.bound", "b/lse.bound")), {}, FileFormatError, "holds no judged output"),
    ],
)
def test_a_file_that_is_none(tmp_path: Path, changes: dict, options: dict, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        errors(write(tmp_path / "run.npz", **changes), **options)


def test_a_truncated_file_and_another_kind_of_file(tmp_path: Path) -> None:
    data = write(tmp_path / "run.npz").read_bytes()
    (tmp_path / "cut.npz").write_bytes(data[: len(data) // 2])
    for name, message in (("cut.npz", "truncated"), ("none.npz", "no such file"), ("x.txt", "ends in")):
        with pytest.raises(FileFormatError, match=message):
            errors(tmp_path / name)


# --- charts


def test_a_large_panel_shows_what_is_farthest_from_0_and_says_so() -> None:
    values = np.zeros((300, 5))
    values[299, 4], values[0, 0], values[1, 0] = -7, 2, -3
    values[4:6] = np.nan
    small = reduced(Panel("errors", values, outside=np.abs(values) > 5), largest=100)
    assert small.values.shape == (100, 5) and small.values[99, 4] == -7 and small.values[0, 0] == -3
    assert small.outside.sum() == 1 and small.outside[99, 4] and "3 × 1" in small.title
    assert np.isnan(reduced(Panel("x", np.full((4, 1), np.nan)), largest=2).values).all()


def test_several_files_share_one_scale() -> None:
    charts = [scores(bind("two-words")), scores(bind("the-cat-sat"))]
    both = stacked(charts)
    assert both.high == max(c.high for c in charts) and len(both.panels) == 2
    assert [row[0].title for row in both.panels] == ["two words: Scores", "the cat sat on the: Scores"]
