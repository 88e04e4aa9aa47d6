"""Sphinx configuration: `make docs` builds with warnings as errors, and without the network."""

from __future__ import annotations

import io
import os
import re
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

from docutils import nodes
from latex2mathml.converter import convert

import dynident
from dynident.cli import application, command_names, run

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
from make_reference import pages  # noqa: E402 - beside this file, which Sphinx does not put on the path

project = "dynident"
author = "The dynident developers"
copyright = "2026, The dynident developers"
release = version = dynident.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",
    "numpydoc",
    "sphinx_copybutton",
]
exclude_patterns = ["_build"]
html_math_renderer = "mathml"
root_doc = "index"
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3

autodoc_typehints = "signature"
autodoc_typehints_format = "short"
python_maximum_signature_line_length = 90
autosummary_generate = False  # make_reference writes the page of each name
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

html_theme = "furo"
html_title = f"dynident {release}"
html_static_path = ["_static"]
html_css_files = ["wide.css"]


def _bars(app: Any, what: str, name: str, item: Any, options: Any, lines: list[str]) -> None:
    """Keep |x| what it is in docstrings, an absolute value, where reStructuredText would look for a substitution."""
    for i, line in enumerate(lines):
        if not line.lstrip().startswith((">>>", "...")):
            pieces = re.split(r"(``.*?``)", line)
            lines[i] = "".join(piece if piece.startswith("``") else piece.replace("|", r"\|") for piece in pieces)


# ---- mathematics as MathML: browsers draw it themselves, offline --------------------------------------------------------


def _mathml(self: Any, node: Any) -> None:
    block = isinstance(node, nodes.math_block)
    text = node.astext()
    if block and ("\\\\" in text or "&" in text) and "\\begin" not in text:
        text = rf"\begin{{aligned}}{text}\end{{aligned}}"
    drawn = convert(text, display="block" if block else "inline")
    self.body.append(f'<div class="math">{drawn}</div>' if block else drawn)
    raise nodes.SkipNode


# ---- pages made anew with every build: one per subpackage from its names, one per command from its help ----------------


def _write(folder: str, name: str, text: str) -> None:
    """Write a page where it has changed, so that Sphinx does not read it again for nothing."""
    page = HERE / folder / f"{name}.md"
    page.parent.mkdir(parents=True, exist_ok=True)
    if not page.exists() or page.read_text(encoding="utf-8") != text:
        page.write_text(text, encoding="utf-8")


def _reference(app: Any) -> None:
    """Write reference/<name>.md for every subpackage and reference/names/<name>.md for every class and function."""
    current = pages()
    for page in (HERE / "reference").rglob("*.md"):
        if str(page.relative_to(HERE / "reference")).removesuffix(".md") not in current:
            page.unlink()  # of a name that is gone
    for name, text in current.items():
        _write("reference", name, text)


PLAIN = {"TERM": "dumb", "NO_COLOR": "1", "COLUMNS": "92"}
TOPICS = {
    "bandwidth": "simulate",
    "compare": "estimators",
    "controller": "link",
    "cycles": "campaign",
    "demo": "quickstart",
    "derive": "symbolic",
    "gains": "payload",
    "ik": "describe",
    "live": "link",
    "record": "link",
    "simulate-campaign": "campaign",
    "track": "simulate",
}


def _help(*words: str) -> str:
    """Return the help of a command as a block of text."""
    with redirect_stdout(io.StringIO()) as shown:
        run([*words, "--help-all"])
    return f"```text\n{shown.getvalue().strip()}\n```\n"


def _commands(app: Any) -> None:
    """Write commands/<name>.md for every command, with those of a group on its page."""
    os.environ.update(PLAIN)
    texts = {}
    for name in command_names():
        parts = [word for word in application(name)[name] if not word.startswith("-")]
        texts[name] = _help(name) + "".join(f"\n## {name} {part}\n\n{_help(name, part)}" for part in parts)
    for name, text in texts.items():
        topic = TOPICS.get(name, name)
        more = f"What it does and why: [{topic}](../{topic}.md).\n\n" if (HERE / f"{topic}.md").exists() else ""
        _write("commands", name, f"# dynident {name}\n\n{more}{text}")


def setup(app: Any) -> None:
    """Connect what is ours, before numpydoc takes the docstrings."""
    app.connect("autodoc-process-docstring", _bars, priority=100)
    app.connect("builder-inited", _commands)
    app.connect("builder-inited", _reference)
    app.add_html_math_renderer("mathml", (_mathml, None), (_mathml, None))
