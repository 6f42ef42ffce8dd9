"""How the site is built from these pages: ``sphinx-build -n -W docs docs/_build/html``.

The pages are read on GitHub too, so they stay plain Markdown: what only Sphinx understands (the table of contents) is added
while it reads them. Nothing is loaded from a network, neither by the build nor by the site.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_sphinx"))

project = "symattn"
author = "The symattn authors"
copyright = author
version = release = re.findall(r'^__version__ = "(.*)"', (HERE.parent / "symattn/__init__.py").read_text("utf-8"), re.M)[0]

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "contents", "docstrings", "mathml", "existing"]
root_doc = "index"
exclude_patterns = ["_build", "_sphinx", "_static"]
nitpicky = True

myst_enable_extensions = ["dollarmath", "colon_fence"]
myst_heading_anchors = 4
myst_dmath_double_inline = True

html_math_renderer = "mathml"
html_theme = "furo"
html_title = f"symattn {version}"
html_static_path = ["_static"]
html_extra_path = [str(p) for p in [HERE.parent / "build" / "site"] if p.exists()]  # python docs/gallery.py
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
napoleon_google_docstring = False
napoleon_use_rtype = False
