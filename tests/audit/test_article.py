"""Articles as they are: the first one of the seeds, matrices in Markdown, plain text, printed arrays; what is found where."""

from __future__ import annotations

from pathlib import Path

import pytest

from symattn.audit.article import Passage, article, passages
from symattn.audit.language_nodes import key
from symattn.audit.reading import ReadArticle, audit_article
from symattn.audit.statements import Chain, Unreadable, statements
from symattn.errors import LimitError

DATA = Path(__file__).parent / "data"
SEEDS = Path(__file__).parents[3] / "shared" / "seeds"


def _read(name: str) -> ReadArticle:
    return audit_article((DATA / name).read_text(encoding="utf-8"), name)


def _rows(found: ReadArticle, *, wrong: bool = True) -> list[tuple[str, str, str]]:
    """Number, verdict and first digits of the exact value of what is not right."""
    return [
        (str(f.verdict.printed), f.label, f.verdict.exact[:6]) for f in found.audit.findings if not (wrong and f.verdict.correct)
    ]


POSSIBLE = "wrong, but printed inputs allow it to their rounding"
CARRIED = "follows from printed inputs only"
FIRST_ARTICLE = [
    ("0.1908", POSSIBLE, "0.1906"), ("0.6044", POSSIBLE, "0.6048"), ("0.1908", POSSIBLE, "0.1906"),
    ("0.4127", CARRIED, "0.4125"), ("1.2750", CARRIED, "1.2761"), ("3.5730", CARRIED, "3.5735"),
]  # fmt: skip


def _is_first_article(found: ReadArticle) -> None:
    assert _rows(found) == FIRST_ARTICLE
    by_text = {str(f.verdict.printed): f for f in found.audit.findings}
    assert [by_text[t].verdict.status for t in ("10", "5", "3", "12")] == ["exact"] * 4
    assert [by_text[t].verdict.status for t in ("5.77", "2.89", "1.73", "6.93")] == ["rounded"] * 4
    first = next(f for f in found.audit.findings if f.name == found.audit.first)
    assert str(first.verdict.printed) == "0.1908" and first.claim.startswith("softmax([5.77")
    carried = [f for f in found.audit.findings if f.label == CARRIED]
    assert {f.carried for f in carried} == {first.name}
    assert all(f.chained is not None and f.chained.status == "exact" for f in carried)
    assert found.audit.exit_code == 1


def test_the_first_article() -> None:
    found = _read("article-one.txt")
    _is_first_article(found)
    assert len(found.audit.findings) == 68
    assert {u.place for u in found.audit.unread} == {"9", "11", "21"}
    assert all("has no value" in u.reason or "does not define" in u.reason for u in found.audit.unread)


@pytest.mark.skipif(not SEEDS.is_dir(), reason="the articles are not beside this checkout")
def test_the_first_article_as_it_stands() -> None:
    (path,) = SEEDS.glob("000_*.txt")
    _is_first_article(audit_article(path.read_text(encoding="utf-8")))


@pytest.mark.skipif(not SEEDS.is_dir(), reason="the articles are not beside this checkout")
@pytest.mark.parametrize("number", ["001", "002"])
def test_articles_without_numbers_claim_nothing(number: str) -> None:
    (path,) = SEEDS.glob(f"{number}_*.txt")
    found = audit_article(path.read_text(encoding="utf-8"))
    assert not found.audit.findings and found.audit.exit_code == 0


@pytest.mark.parametrize(
    ("name", "numbers"), [("article-right.txt", 68), ("matrices.md", 54), ("plain.txt", 20), ("printed-arrays.txt", 12)]
)
def test_right_pages_have_nothing_wrong(name: str, numbers: int) -> None:
    found = _read(name)
    assert _rows(found) == [] and len(found.audit.findings) == numbers and found.audit.exit_code == 0


LINKS = (
    (r"$2 \times 3 = 7$", [("7", "wrong", "6")]),
    ("so 1×2 + 3×4 = 2 + 12 = 15, which is large", [("15", "wrong", "14")]),
    ("10/√3 = 5.78", [("5.78", "last digit", "5.7735")]),
    ("10/√3 = 5.77", []),
    ("10/√3 = 5.79", [("5.79", "wrong", "5.7735")]),
    ("20/3 = 6.66", [("6.66", "truncated", "6.6666")]),
    ("20/3 ≈ 7", []),
    ("20/3 = 7", [("7", "wrong", "6.6666")]),
    ("20/3 = 6.66…", []),
    ("1/8 = 12.5%", []),
    ("1/8 = 13%", []),
    ("1/8 = 15%", [("15%", "wrong", "0.125")]),
    ("10 = 1 + 8", [("10", "wrong", "9")]),
    ("e^2 / (e^1 + e^2) = 7.389 / (2.718 + 7.389) = 0.7311", []),
    ("e^2 / (e^1 + e^2) = 7.389 / (2.728 + 7.389) = 0.7311", [("2.728", "wrong", "2.7182")]),
    ("2 + 3 + 4 = 4 + 3 + 2 = 9", []),
    ("[1, 2] * [3, 4] = [3, 8]", []),
    ("[1, 2] * [3, 4] = 11", []),
    (r"$[1, 2, \ldots, 6] / 2$ and $softmax([1, 1, 1, 1]) = [0.25, \ldots, 0.25]$", []),
    (r"$softmax([1, 1, 1, 1]) = [0.25, \ldots, 0.26]$", [("0.26", "last digit", "0.25")]),
    ("p = [0.4, 0.6]. diag(p) - p p^T = [[0.24, -0.24], [-0.24, 0.24]]", []),
    ("p = [0.4, 0.6]. diag(p) - p p^T = [[0.24, -0.24], [-0.24, 0.34]]", [("0.34", "wrong", "0.24")]),
    ("Temperature T = 2: softmax([2, 1]/2) = [0.62, 0.38].", []),
    ("The ratio is 3:2 = 1.5, and 50% of 20 = 10.", []),
    ("Of 30 tokens 20 words = 10", []),
    ("Shape: (2, 3) x (3, 4) = (2, 4).", []),
    ("The loss is -log(0.7) = 0.357 (natural log).", []),
    ("The loss is -log(0.7) = 0.457 (natural log).", [("0.457", "wrong", "0.3566")]),
    ("If x = 5 and y = 3 then x + y = 9.", [("9", "wrong", "8")]),
    ("32 × 32 = 1,024", []),
    ("32 × 32 = 1,025", [("1025", "wrong", "1024")]),
    ("$x_1 = 2$, $x_2 = 3$. $\\sum_{i=1}^{2} x_i = 6$", [("6", "wrong", "5")]),
    ("Let q = [1, 2] and k = [3, 4]. Then q · k = 12.", [("12", "wrong", "11")]),
    ("Let q = [1, 2]. Later q = [3, 4]. Then q · q = 25.", []),
    ("y = x + 1. x = 2. y = 4.", [("4", "wrong", "3")]),
    ("Scores: [1, 2]\n\nThe weights are softmax([1, 2]) = [0.27, 0.73].", []),
    (r"$\text{score}(q, k) = 10$ and $\text{score}(q, k) / 2 = 4$", [("4", "wrong", "5")]),
)


@pytest.mark.parametrize(("text", "expected"), LINKS, ids=[t for t, _ in LINKS])
def test_links(text: str, expected: list[tuple[str, str, str]]) -> None:
    assert _rows(audit_article(text)) == expected


def test_what_follows_from_a_wrong_side_is_carried() -> None:
    found = audit_article("2 × 3 + 4 × 5 = 6 + 21 = 27 and 27 + 1 = 28")
    assert [(r[0], r[1]) for r in _rows(found)] == [("21", "wrong"), ("27", CARRIED)]
    assert found.audit.findings[-2].carried == next(f.name for f in found.audit.findings if str(f.verdict.printed) == "21")


def test_numbers_printed_rounded_are_taken_from_their_exact_values() -> None:
    """The second step is right from the exact 2/3, and from 0.67 it would be 0.0449."""
    found = audit_article("2/3 = 0.67. $0.67^2 - 0.4 = 0.0444$")
    assert _rows(found) == [] or [r[1] for r in _rows(found)] == ["rounded"]


def test_values_of_what_is_not_known_are_rounded() -> None:
    """Weights of scores that the page does not print are known to their rounding, and so is what is made of them."""
    page = "$\\text{softmax}(s) = [0.33, 0.67]$ and $0.33 \\times [10, 0] + 0.67 \\times [0, 10] = "
    within = audit_article(page + "[3.34, 6.66]$")
    assert [r[1] for r in _rows(within)] == ["not decidable"] * 2 and within.audit.exit_code == 3
    assert audit_article(page + "[3.30, 6.70]$").audit.exit_code == 0
    assert audit_article(page + "[3.40, 6.60]$").audit.exit_code == 1


def test_unread_things_are_listed_with_their_lines() -> None:
    text = "one\n\n$$1 + = 2$$\n\n"
    text += "\\begin{align} x &= \\begin{cases} 1 \\end{cases} \\\\ 1 + 1 &= 3 \\end{align}\n\n$$[1, 2]$$\n\n$1 \\in 2$"
    found = audit_article(text)
    assert [u.place for u in found.audit.unread] == ["3", "5", "7", "9"]
    assert [r[0] for r in _rows(found)] == ["3"]


PLACES = (
    ("a $x = 1$ b", [("inline", "x = 1")]),
    ("$$x$$ and \\[ y \\] and \\( z \\)", [("display", "x"), ("display", " y "), ("inline", " z ")]),
    ("costs $5 and $6 = 11", [("text", "costs $5 and $6 = 11")]),
    ("```\nx = 1\nprint(x)\n```\n", [("text", "x = 1")]),
    ("```math\nx = 1\n```\n", [("display", "x = 1")]),
    ("- x = 1; y = 2\n> z = 3", [("text", "x = 1"), ("text", "y = 2"), ("text", "z = 3")]),
    ("See [it](http://a.b/c?d=1) and <a href='x=1'>this</a>.", []),
    ("Q =\n[[1 0]\n [0 1]]\nend", [("text", "Q =\n[[1 0]\n [0 1]]")]),
    ("\\begin{align*} a &= 1 \\end{align*}", [("display", " a &= 1 ")]),
    ("The value $q$ is $\\frac{1}{2}$ = 0.5 here.", [("text", "The value $q$ is $\\frac{1}{2}$ = 0.5 here")]),
)


@pytest.mark.parametrize(("text", "expected"), PLACES, ids=[t[:20] for t, _ in PLACES])
def test_where_formulas_are(text: str, expected: list[tuple[str, str]]) -> None:
    a = article(text)
    assert [(p.kind, text[p.start : p.end]) for p in passages(a)] == expected


CHAINS = (
    (r"a &= 1 + 2 \\ &= 3", [["a", "sum(1,2)", "3"]]),
    (r"a &= 1 \\ b &= 2", [["a", "1"], ["b", "2"]]),
    (r"a &= 1 \\ & + 2 \\ &= 3", [["a", "sum(1,2)", "3"]]),
    (r"a = 1, \quad b = 2; c \approx 3", [["a", "1"], ["b", "2"], ["c", "3"]]),
    (r"a = \begin{bmatrix} 1 & 2 \\ 3 & 4 \end{bmatrix} \\ b = 2", [["a", "[[1,2],[3,4]]"], ["b", "2"]]),
    (r"\text{cat} \mapsto [1, 2]", [["cat", "[1,2]"]]),
    (r"1 + 1 = 2 \Rightarrow 2 + 2 = 4", [["sum(1,1)", "2"], ["sum(2,2)", "4"]]),
)


@pytest.mark.parametrize(("text", "expected"), CHAINS, ids=[t[:20] for t, _ in CHAINS])
def test_chains_of_a_display(text: str, expected: list[list[str]]) -> None:
    found = statements(article(text), Passage("display", 0, len(text)))
    assert [[key(s.node) for s in c.sides if s.node] for c in found if isinstance(c, Chain)] == expected
    assert not any(isinstance(c, Unreadable) for c in found)


def test_comments_of_latex_say_nothing() -> None:
    assert not audit_article("\\documentclass{article}\n% 1 + 1 = 3\n$2 + 2 = 4$ % so 2 = 3\n").audit.exit_code


def test_a_long_article_is_refused() -> None:
    with pytest.raises(LimitError, match="give a part"):
        audit_article("x" * 400_001)


UNSTATED = (
    ("softmax([2, 1]) = [0.62, 0.38]", "a factor 1/2 in the softmax"),
    ("softmax([4, 0, 1]) = [0.58, 0.18, 0.24]", ""),
    (
        r"$\text{softmax}(\begin{bmatrix} 0 & 1 \\ 2 & 3 \end{bmatrix}) = [[0.1192, 0.1192], [0.8808, 0.8808]]$",
        "a softmax of columns",
    ),
    ("K = [[1, 0, 2], [0, 1, 1]]. softmax([3, 1]) = [0.76, 0.24]", "a factor 1/√3 in the softmax"),
    ("softmax([2, 1]) = [0.73, 0.27]", ""),
)


@pytest.mark.parametrize(("text", "expected"), UNSTATED)
def test_what_a_page_leaves_out(text: str, expected: str) -> None:
    found = audit_article(text).audit
    assert [a.title for a in found.alternatives] == [expected] * bool(expected)
    assert all(a.everything for a in found.alternatives)


def test_weights_of_unknown_scores_sum_to_one() -> None:
    right = audit_article(r"$\text{softmax}(s) = [0.33, 0.66]$").audit
    assert right.remarks == ()
    wrong = audit_article(r"$\text{softmax}(S) = \begin{bmatrix} 0.3 & 0.7 \\ 0.33 & 0.76 \end{bmatrix}$").audit
    assert [r.text for r in wrong.remarks] == ["line 1: row 2 of softmax(S) does not sum to 1, whatever the scores"]
