"""Code with what it printed: sessions of Python, notebooks, comments, methods, indices, rows of numbers under a title."""

from __future__ import annotations

import pytest

from symattn.audit.reading import audit_article

REPL = """\
>>> import torch
>>> s = torch.tensor([[ 0.5000,  1.0000, -0.2500],
...                   [ 2.0000,  0.0000,  1.0000]])
>>> w = F.softmax(s, dim=-1)
>>> w
tensor([[0.3204, 0.5283, 0.1513],
        [0.6652, 0.0900, 0.2447]])
>>> w.sum(dim=-1)
tensor([1.0000, 1.0000])
>>> print(w[0, 1])
0.5283
"""
NOTEBOOK = """\
```python
X = np.array([[1, 0, 1],
              [0, 1, 1],   # second token
              [1, 1, 0]])
S = X @ X.T
print(S)
```

Output:

```
[[2 1 1]
 [1 2 1]
 [1 1 2]]
```

In [2]: softmax(S / np.sqrt(3), axis=-1)
Out[2]: array([[0.47108308, 0.26445846, 0.26445846],
       [0.26445846, 0.47108308, 0.26445846],
       [0.26445846, 0.26445846, 0.47108308]], dtype=float32)
"""
INDEXED = """\
Token 0 ("cat"): [1.0, 0.0, 1.0]
Token 1 ("mat"): [1.0, 1.0, 0.0]
X = [
  [1.0, 0.0, 1.0],   # cat
  [1.0, 1.0, 0.0],   # mat
]
scores = X @ X.T
scores[0][1] = [1,0,1] · [1,1,0] = 1.0
scores[1][1] = 2.0
cat · mat = 1
"""
GRID = """\
Q = [1 0]   K = [1 1]
    [0 1]       [0 1]

          | 1  0 |
Q K^T  =  | 1  1 |

Result matrix:
[0.5, 1.0]
[1.5, 2.0]
Then result matrix × 2 = [[1, 2], [3, 4]]
"""
PAGES = {"repl": (REPL, 9), "notebook": (NOTEBOOK, 18), "indexed": (INDEXED, 3), "grid": (GRID, 8)}
CHANGES = (
    ("repl", "0.0900", "0.0950"), ("repl", "1.0000])", "1.1000])"), ("repl", "0.5283\n", "0.5383\n"),
    ("notebook", "[1 2 1]", "[1 3 1]"), ("notebook", "0.47108308]], d", "0.47208308]], d"),
    ("indexed", "[1][1] = 2.0", "[1][1] = 3.0"), ("indexed", "mat = 1", "mat = 2"),
    ("grid", "| 1  1 |", "| 1  2 |"), ("grid", "[3, 4]]", "[3, 5]]"),
)  # fmt: skip


def _wrong(page: str) -> list[str]:
    return [str(f.verdict.printed) for f in audit_article(page).audit.findings if not f.verdict.correct]


@pytest.mark.parametrize("name", PAGES)
def test_right_pages(name: str) -> None:
    page, count = PAGES[name]
    found = audit_article(page).audit
    assert (_wrong(page), found.unread) == ([], ()) and len(found.findings) >= count


@pytest.mark.parametrize(("name", "right", "wrong"), CHANGES)
def test_planted_errors(name: str, right: str, wrong: str) -> None:
    page = PAGES[name][0]
    assert page.count(right) == 1
    assert len(_wrong(page.replace(right, wrong))) == 1
