"""YAML for xacro's load_yaml: plain numbers, texts, lists and dictionaries, built from PyYAML's nodes within the budget."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dynident.errors import DescriptionError, missing_extra
from dynident.mechanism.xacro.functions import MAX_NESTING, Budget, checked
from dynident.mechanism.xml import read_bytes

MAX_NUMBER = 100
"""Characters of a number."""

UNITS = {
    "!radians": 1.0,
    "!degrees": math.pi / 180.0,
    "!meters": 1.0,
    "!millimeters": 0.001,
    "!foot": 0.3048,
    "!inches": 0.0254,
}
"""Tags of values with a unit, and what they are multiplied with."""

_PLAIN = "tag:yaml.org,2002:"


def load_yaml(path: Path, number: Callable[[str], Any], budget: Budget) -> Any:
    """Return the content of a YAML file; `number` computes the expression behind a unit's tag."""
    try:
        import yaml  # noqa: PLC0415 - optional
    except ImportError as error:
        raise missing_extra("pyyaml", "yaml", "load_yaml in a .xacro file") from error
    data = read_bytes(path, "YAML")
    budget.spend("bytes of YAML", len(data))  # PyYAML is slow, about a second for 50 kB
    loader: Any = None
    try:
        loader = yaml.SafeLoader(data)
        node = loader.get_single_node()
        return None if node is None else checked(_Builder(loader, number, budget).build(node, 0), budget)
    except (yaml.YAMLError, ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
        if isinstance(error, DescriptionError):
            raise
        reason = "nested too deep" if isinstance(error, RecursionError) else re.sub(r"\s+", " ", str(error))[:160]
        raise DescriptionError(f"YAML file '{path.name}' cannot be read ({reason}); correct it") from None
    finally:
        if loader is not None:
            loader.dispose()


class _Builder:
    """Values of nodes; an alias is built again and paid for again, so that none can grow without bound."""

    def __init__(self, loader: Any, number: Callable[[str], Any], budget: Budget) -> None:
        self.loader, self.number, self.budget = loader, number, budget

    def build(self, node: Any, depth: int) -> Any:
        self.budget.spend("steps of evaluation")
        if depth > MAX_NESTING:
            raise DescriptionError(f"a YAML file is nested more than {MAX_NESTING} deep or refers to itself; flatten it")
        kind = node.tag.removeprefix(_PLAIN)
        if kind == "seq" and node.id == "sequence":
            return [self.build(item, depth + 1) for item in node.value]
        if kind == "map" and node.id == "mapping":
            return self._mapping(node, depth)
        if node.id == "scalar" and node.tag in UNITS:
            return float(self.number(node.value)) * UNITS[node.tag]
        if node.id == "scalar" and kind in ("int", "float", "bool", "null"):
            if len(node.value) > MAX_NUMBER:
                raise DescriptionError(f"a YAML file has the number '{node.value[:40]}...'; give at most {MAX_NUMBER} digits")
            return self.loader.construct_object(node)
        if node.id == "scalar" and kind in ("str", "timestamp"):
            return node.value
        raise DescriptionError(f"a YAML file uses the tag '{node.tag[:60]}'; only plain values and {', '.join(UNITS)} are read")

    def _mapping(self, node: Any, depth: int) -> dict[Any, Any]:
        own: dict[Any, Any] = {}
        merged: dict[Any, Any] = {}
        for key, value in node.value:
            if key.tag == f"{_PLAIN}merge":
                sources = value.value if value.id == "sequence" else [value]
                for source in sources:
                    for name, item in self.build(source, depth + 1).items():
                        merged.setdefault(name, item)
            else:
                own[self.build(key, depth + 1)] = self.build(value, depth + 1)
        return {**merged, **own}
