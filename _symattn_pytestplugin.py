"""The pytest plugin of symattn: fixtures that judge a kernel inside a test. It imports nothing but pytest.

``assert_attention``    the function of :mod:`symattn.testing`
``verify_attention``    ``verify_attention(kernel, causal="top-left", dtype="bfloat16", backward=True)`` fails the test unless
                        the verdict is pass or suspect (``strict=True``: unless it is pass, without known deviations); verdict and
                        greatest share of the bound go into the JUnit report and the summary
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

_ROWS: pytest.StashKey[list[str]] = pytest.StashKey()
_RUN = frozenset({"dtype", "backward", "shape", "arithmetic", "seed", "layout", "backward_kernel"})


@pytest.fixture
def assert_attention() -> Callable[..., None]:
    """The assertion for tests of one's own arrays; see :func:`symattn.testing.assert_attention`."""
    from symattn.testing import assert_attention

    return assert_attention


@pytest.fixture
def verify_attention(request: pytest.FixtureRequest) -> Callable[..., Any]:
    """Judge a kernel; keywords are those of ``Attention.verify`` and the fields of ``Attention``."""

    def verify(kernel: Any, *, strict: bool = False, **keywords: Any) -> Any:
        from symattn import Attention

        run = {k: v for k, v in keywords.items() if k in _RUN}
        report = Attention.of(**{k: v for k, v in keywords.items() if k not in _RUN}).verify(kernel, **run)
        share = report.max_share_of_bound
        # not by record_property, which warns where the JUnit family is xunit2
        request.node.user_properties += [("symattn_verdict", report.verdict), ("symattn_max_share_of_bound", share)]
        rows = request.config.stash.setdefault(_ROWS, [])
        rows.append(f"{request.node.nodeid}: {report.verdict}, at most {share} of the bound")
        if report.exit_code(strict=strict):
            pytest.fail(report.to_text(), pytrace=False)
        return report

    return verify


@pytest.hookimpl
def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Say what was judged, where anything was."""
    rows = config.stash.get(_ROWS, None)
    if rows:
        terminalreporter.section("symattn")
        for row in rows:
            terminalreporter.line(row)
