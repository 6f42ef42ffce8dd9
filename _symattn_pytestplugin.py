"""The pytest plugin of symattn: fixtures and a marker that judge a kernel inside a test. It imports nothing but pytest.

``assert_attention``    the function of :mod:`symattn.testing`
``verify_attention``    ``verify_attention(kernel, causal="top-left", dtype="bfloat16", backward=True)`` fails the test unless
                        the verdict is pass or suspect (``strict=True``: unless it is pass, without known deviations); verdict and
                        greatest share of the bound go into the JUnit report and the summary
``attention_kernel``    under ``@pytest.mark.attention(kernel=..., causal=..., dtypes=[...])`` the test runs once per dtype and
                        input of the pack, and ``attention_kernel.verify()`` judges that one; the kernel may come from
                        ``--attention-kernel`` or from ``attention_kernel`` in the configuration instead
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

_SUMMARY = "symattn_summary"
_RUN = frozenset(
    {"dtype", "backward", "shape", "only", "skip", "max_len", "require", "inputs", "arithmetic", "seed", "layout"}
    | {"backward_kernel", "guard"}
)
_PACK = ("shape", "only", "skip", "max_len", "require")


def pytest_addoption(parser: pytest.Parser) -> None:
    """The option and the entry of the configuration that name kernels."""
    text = "A kernel for tests that are marked with attention and name none: a built-in name, FILE.py:FUNCTION, MODULE:FUNCTION."
    group = parser.getgroup("symattn")
    group.addoption("--attention-kernel", action="append", metavar="KERNEL", default=[], help=text + " May be repeated.")
    parser.addini("attention_kernel", text, type="linelist", default=[])


def pytest_configure(config: pytest.Config) -> None:
    """The marker, said to pytest."""
    config.addinivalue_line(
        "markers",
        "attention(kernel=None, dtypes=['float32'], strict=False, **keywords): run the test once per dtype and input of the "
        "pack, for its fixture attention_kernel; keywords are those of symattn's Attention and of Attention.verify.",
    )


@dataclass(frozen=True)
class AttentionKernel:
    """A kernel on one input of the pack: what the fixture ``attention_kernel`` is.

    ``kernel`` is a function or a name, ``case`` the input, ``dtype`` its format, ``definition`` the fields of ``Attention``,
    ``options`` the keywords of ``Attention.verify``.
    """

    kernel: Any
    case: str
    dtype: str
    definition: dict[str, Any]
    options: dict[str, Any]
    strict: bool = False
    _judge: Callable[..., Any] | None = field(default=None, repr=False, compare=False)

    def verify(self, kernel: Any = None) -> Any:
        """Judge it, or another kernel, on this input; fail the test with the report, or return the report."""
        assert self._judge is not None
        run = {**self.options, "dtype": self.dtype, "only": [self.case]}
        return self._judge(self.kernel if kernel is None else kernel, strict=self.strict, **run, **self.definition)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test per dtype and input, where the fixture ``attention_kernel`` is asked for under the marker."""
    if "attention_kernel" not in metafunc.fixturenames:
        return
    marks = list(metafunc.definition.iter_markers("attention"))
    if not marks:
        pytest.fail(
            f"{metafunc.definition.nodeid}: attention_kernel needs @pytest.mark.attention(kernel=..., ...)", pytrace=False
        )
    given: dict[str, Any] = {}
    for mark in reversed(marks):  # the nearest one is first, and wins
        if mark.args:
            pytest.fail(f"{metafunc.definition.nodeid}: the marker attention takes keywords only", pytrace=False)
        given |= mark.kwargs
    kernels = [given.pop("kernel")] if given.get("kernel") is not None else _named(metafunc.config)
    given.pop("kernel", None)
    if not kernels:
        pytest.fail(
            f"{metafunc.definition.nodeid}: no kernel: name one in the marker, by --attention-kernel, or in the configuration "
            "as attention_kernel",
            pytrace=False,
        )
    try:
        _refuse_unknown(given)
        rows = [row for k in kernels for row in _rows(k, dict(given), len(kernels) > 1)]
    except Exception as error:
        from symattn.errors import SymattnError

        if not isinstance(error, SymattnError):
            raise
        said = " ".join(str(error).split())
        pytest.fail(f"{metafunc.definition.nodeid}: the marker attention: {said}", pytrace=False)
    metafunc.parametrize("attention_kernel", [r for r, _ in rows], ids=[i for _, i in rows], indirect=True)


def _named(config: pytest.Config) -> list[str]:
    return list(config.getoption("--attention-kernel") or config.getini("attention_kernel"))


def _refuse_unknown(given: dict[str, Any]) -> None:
    """Refuse a keyword that is neither a field of the definition nor one of the run."""
    from dataclasses import fields

    from symattn import Attention
    from symattn.errors import UnknownNameError, nearest

    known = {f.name for f in fields(Attention)} | _RUN | {"kernel", "dtypes", "strict"}
    for name in given:
        if name not in known:
            raise UnknownNameError(f"no keyword {name!r}. {nearest(name, known)}")


def _rows(kernel: Any, given: dict[str, Any], several: bool) -> Iterator[tuple[AttentionKernel, str]]:
    """The inputs of the pack that say anything of the definition, per dtype, with their names as ids."""
    from symattn import Attention
    from symattn.verify.inputs import Choice, cases_for

    dtypes = given.pop("dtypes", None) or [given.pop("dtype", "float32")]
    strict = bool(given.pop("strict", False))
    pack = {k: given.pop(k) for k in _PACK if k in given}
    options = {k: given.pop(k) for k in tuple(given) if k in _RUN}
    definition = Attention.of(**given)
    options |= {k: v for k, v in pack.items() if k not in ("only", "skip")}
    for dtype in [dtypes] if isinstance(dtypes, str) else dtypes:
        for case in cases_for(definition.core, dtype, options.get("seed", 0), Choice.of(**pack)):
            name = f"{kernel}-{dtype}-{case}" if several else f"{dtype}-{case}"
            yield AttentionKernel(kernel, case, dtype, given, options, strict), name


@pytest.fixture
def attention_kernel(request: pytest.FixtureRequest, verify_attention: Callable[..., Any]) -> AttentionKernel:
    """The kernel and the input of this test; see :class:`AttentionKernel`."""
    from dataclasses import replace

    row: AttentionKernel = request.param
    return replace(row, _judge=verify_attention)


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
        from symattn.verify import judge

        run = {k: v for k, v in keywords.items() if k in _RUN}
        definition = Attention.of(**{k: v for k, v in keywords.items() if k not in _RUN})
        report = judge.verify(kernel, definition, **run)
        share = report.max_share_of_bound
        # not by record_property, which warns where the JUnit family is xunit2
        request.node.user_properties += [("symattn_verdict", report.verdict), ("symattn_max_share_of_bound", share)]
        found = [str(d).splitlines()[0] for d in report.diagnosis[:1]]  # in the short summary only the first line is shown
        request.node.user_properties += [(_SUMMARY, "; ".join([f"{report.verdict}, at most {share} of the bound", *found]))]
        if report.exit_code(strict=strict):
            said = report.verdict + (report.said_by_strict().replace("--strict", "strict") if strict else "")
            pytest.fail(": ".join([said, *found]) + "\n\n" + report.to_text(strict=strict), pytrace=False)
        return report

    return verify


@pytest.hookimpl
def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Say what was judged, where anything was; from the reports of tests, which workers of pytest-xdist send back too."""
    done = [r for found in terminalreporter.stats.values() for r in found if getattr(r, "when", None) == "call"]
    rows = sorted(f"{r.nodeid}: {said}" for r in done for name, said in r.user_properties if name == _SUMMARY)
    if rows:
        terminalreporter.section("symattn")
        for row in rows:
            terminalreporter.line(row)
