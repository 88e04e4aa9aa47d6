"""The xacro package as an oracle: what it makes of a file, in a form that can be compared."""

from __future__ import annotations

import contextlib
import io
import sys
import types
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from unittest import mock
from xml.dom import Node
from xml.etree.ElementTree import Element

import pytest

PACKAGES = Path(__file__).parent / "robots" / "xacro"


def _package_finder() -> dict[str, types.ModuleType]:
    """Return a stand-in for ROS's index of packages, which knows the folder with ours."""
    index, packages = types.ModuleType("ament_index_python"), types.ModuleType("ament_index_python.packages")
    packages.get_package_share_directory = lambda name: str(PACKAGES / name)  # type: ignore[attr-defined]
    return {"ament_index_python": index, "ament_index_python.packages": packages}


def oracle(path: Path, arguments: Mapping[str, str] | None = None) -> tuple[Any, ...]:
    """Return the tree that the xacro package makes of a file."""
    xacro = pytest.importorskip("xacro")
    quiet = contextlib.redirect_stderr(io.StringIO())
    with mock.patch.dict(sys.modules, _package_finder()), quiet:
        return dom_tree(xacro.process_file(str(path), mappings=dict(arguments or {}), verbosity=0).documentElement)


def dom_tree(node: Any) -> tuple[Any, ...]:
    """Return tag, attributes, text and children of a DOM element; blanks do not count."""
    attributes = {str(k): str(v) for k, v in node.attributes.items() if not k.startswith("xmlns")}
    children = [child for child in node.childNodes if child.nodeType == Node.ELEMENT_NODE]
    text = " ".join(child.data for child in node.childNodes if child.nodeType == Node.TEXT_NODE)
    return node.tagName, attributes, " ".join(text.split()), [dom_tree(child) for child in children]


def tree(element: Element) -> tuple[Any, ...]:
    """Return the same of one of our elements."""
    text = " ".join([element.text or "", *(child.tail or "" for child in element)])
    return element.tag, dict(element.attrib), " ".join(text.split()), [tree(child) for child in element]
