"""Sphinx configuration: `make docs` builds with warnings as errors, and without the network."""

from __future__ import annotations

import re
from typing import Any

import dynident

project = "dynident"
author = "The dynident developers"
copyright = "2026, The dynident developers"
release = version = dynident.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.mathjax", "numpydoc"]
exclude_patterns = ["_build"]
root_doc = "index"
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3

autodoc_typehints = "none"
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

html_theme = "furo"
html_title = f"dynident {release}"


def _bars(app: Any, what: str, name: str, item: Any, options: Any, lines: list[str]) -> None:
    """Keep |x| what it is in docstrings, an absolute value, where reStructuredText would look for a substitution."""
    for i, line in enumerate(lines):
        if not line.lstrip().startswith((">>>", "...")):
            pieces = re.split(r"(``.*?``)", line)
            lines[i] = "".join(piece if piece.startswith("``") else piece.replace("|", r"\|") for piece in pieces)


def setup(app: Any) -> None:
    """Connect what is ours, before numpydoc takes the docstrings."""
    app.connect("autodoc-process-docstring", _bars, priority=100)
