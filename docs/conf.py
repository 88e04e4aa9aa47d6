"""Sphinx configuration: `make docs` builds with warnings as errors, and without the network."""

from __future__ import annotations

import importlib
import os
import re
import sys
from pathlib import Path
from typing import Any

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.util.inspect import TypeAliasForwardRef

import dynident

TypeAliasForwardRef.__repr__ = lambda self: (
    self.name
)  # print "ndarray | None", not the class
# The function dynident.identify hides the subpackage of the same name; the reference lists the subpackage.
dynident.identify = importlib.import_module("dynident.identify")  # type: ignore[assignment]
sys.path.insert(0, str(Path(__file__).parent))  # command_line.py
os.environ["DYNIDENT_EXAMPLES"] = str(
    Path(__file__).parents[1] / "examples"
)  # for the gallery, which runs in another process

project = "dynident"
author = "The dynident developers"
copyright = "2026, The dynident developers"
release = version = dynident.__version__

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",
    "numpydoc",
    "cyclopts.sphinx_ext",
    "sphinx_copybutton",
    "sphinx_design",
]
exclude_patterns = ["_build", "_templates"]
templates_path = ["_templates"]
root_doc = "index"

myst_enable_extensions = ["dollarmath", "colon_fence", "deflist"]
myst_heading_anchors = 3
nb_execution_timeout = 600
nb_execution_raise_on_error = True
nb_execution_in_temp = True
nb_merge_streams = True

autosummary_ignore_module_all = False  # the public names are those of __all__
autosummary_imported_members = True
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_type_aliases = {"Array": "ndarray", "Complex": "ndarray"}
smartquotes_action = "qe"  # quotes and ellipses; --option keeps its dashes
autodoc_member_order = "bysource"
python_maximum_signature_line_length = 90
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

html_theme = "pydata_sphinx_theme"
html_title = f"dynident {release}"
html_math_renderer = "mathml"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_use_index = False  # the search finds names
html_sidebars = {"faq": [], "index": []}
html_theme_options = {
    "collapse_navigation": True,
    "navigation_depth": 3,
    "show_nav_level": 1,
    "show_toc_level": 2,
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "default",
    "pygments_dark_style": "github-dark",
}


def _bars(
    app: Any, what: str, name: str, item: Any, options: Any, lines: list[str]
) -> None:
    """Escape |x|, an absolute value, which reStructuredText would read as a substitution."""
    for i, line in enumerate(lines):
        if not line.lstrip().startswith((">>>", "...")):
            pieces = re.split(r"(``.*?``)", line)
            lines[i] = "".join(
                piece if piece.startswith("``") else piece.replace("|", r"\|")
                for piece in pieces
            )


def _mathml(self: Any, node: Any) -> None:
    """Write mathematics as MathML, which browsers draw without a script."""
    block = isinstance(node, nodes.math_block)
    text = node.astext()
    if block and ("\\\\" in text or "&" in text) and "\\begin" not in text:
        text = rf"\begin{{aligned}}{text}\end{{aligned}}"
    drawn = convert(text, display="block" if block else "inline")
    self.body.append(f'<div class="math">{drawn}</div>' if block else drawn)
    raise nodes.SkipNode


def setup(app: Any) -> None:
    """Connect the functions above, before numpydoc reads the docstrings."""
    app.connect("autodoc-process-docstring", _bars, priority=100)
    app.add_html_math_renderer("mathml", (_mathml, None), (_mathml, None))
