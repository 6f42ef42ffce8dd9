"""The Python examples of README.md and docs/ run as tests; those of a page build on each other (`--dist loadfile`)."""

from sybil import Sybil
from sybil.parsers.markdown import PythonCodeBlockParser, SkipParser

pytest_collect_file = Sybil(
    parsers=[PythonCodeBlockParser(), SkipParser()], patterns=["README.md", "docs/*.md", "docs/*/*.md"]
).pytest()
collect_ignore_glob = ["docs/conf.py", "docs/gallery.py", "docs/_sphinx/*", "docs/_build/*"]
