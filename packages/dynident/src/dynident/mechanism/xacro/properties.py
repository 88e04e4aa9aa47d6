"""Properties of xacro and the texts that use them: ``${expression}``, ``$(arg name)``, ``$(find package)``.

A property is stored as text and computed on first use, in the scope of its definition. A macro's scope is the child of
its caller's, so a name is looked up along the calls, not along the file.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from dynident.errors import DescriptionError, missing_extra
from dynident.mechanism.xacro.expressions import FUNCTIONS, MAX_NESTING, Budget, Namespace, checked, names_in
from dynident.mechanism.xml import read_bytes

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

Compute: TypeAlias = "Callable[[str, Scope], Any]"
TRUTH = {"true": True, "True": True, "false": False, "False": False}
_PIECES = re.compile(
    r"(?P<escaped>\$\$+[{(])|\$\{(?P<expression>[^}]*)\}|\$\((?P<command>[^)]*)\)|(?P<text>[^$]+|\$[^{($]+|\$$)"
)
_PARAMETER = re.compile(r"\s*(?P<name>[^\s:=]+)(?:\s*:?=\s*(?P<forward>\^\|?)?(?P<default>.*))?", re.S)
_DEFAULT = re.compile(r"""(?:\$\{[^}]*\}|\$\([^)]*\)|(?:'[^']*'|"[^"]*"|[^\s'"])+|)(?=\s|$)""")


@dataclass
class Macro:
    """A macro: its defining element, and for each parameter (whether it is taken from the caller, default)."""

    body: Element
    parameters: dict[str, tuple[bool, str | None]]


@dataclass
class Scope:
    """Names of a file, a namespace or a macro call; `compute` returns the value of a text in a scope."""

    compute: Compute
    parent: Scope | None = None
    is_namespace: bool = False
    values: dict[str, Any] = field(default_factory=dict)
    lazy: set[str] = field(default_factory=set)
    blocks: dict[str, Element] = field(default_factory=dict)
    macros: dict[str, Macro] = field(default_factory=dict)
    spaces: dict[str, Scope] = field(default_factory=dict)
    computing: list[str] = field(default_factory=list)

    def upward(self) -> Iterator[Scope]:
        """Yield this scope and its ancestors."""
        scope: Scope | None = self
        while scope is not None:
            yield scope
            scope = scope.parent

    def __contains__(self, name: str) -> bool:
        return name in FUNCTIONS or any(name in scope.values for scope in self.upward())

    def lookup(self, name: str) -> Any:
        """Return the value of a property, a namespace or a function."""
        for scope in self.upward():
            if name in scope.values:
                return scope._computed(name)
            if name in scope.spaces:
                return Namespace(scope.spaces[name].lookup)
        return names_in(FUNCTIONS)(name)

    def _computed(self, name: str) -> Any:
        if name in self.lazy:
            if name in self.computing:
                circle = " -> ".join([*self.computing, name])
                raise DescriptionError(f"properties are defined by each other ({circle}); give one of them a value")
            self.computing.append(name)
            self.values[name] = literal(self.compute(self.values[name], self))
            self.computing.remove(name)
            self.lazy.discard(name)
        return self.values[name]

    def set(self, name: str, value: Any, lazy: bool) -> None:
        """Define a property; a lazy text is computed on use."""
        self.values[name] = literal(value)
        if lazy and isinstance(self.values[name], str):
            self.lazy.add(name)
        else:
            self.lazy.discard(name)

    def remove(self, name: str) -> None:
        """Remove a property from this scope and its ancestors."""
        for scope in self.upward():
            scope.values.pop(name, None)

    def block(self, name: str) -> Element | None:
        """Return a block, named with its stars."""
        return next((scope.blocks[name] for scope in self.upward() if name in scope.blocks), None)

    def macro(self, name: str) -> tuple[Macro, Scope] | None:
        """Return a macro, whose name may have namespaces in front, and the scope of its call."""
        *spaces, last = name.split(".")
        scope: Scope | None = self
        for space in spaces:
            scope = next((s.spaces[space] for s in scope.upward() if space in s.spaces), None) if scope else None
        if scope is None:
            return None
        return next(((s.macros[last], scope) for s in scope.upward() if last in s.macros), None)


def literal(value: Any) -> Any:
    """Return the number, truth value or unquoted text that a text represents; other values unchanged."""
    if not isinstance(value, str):
        return value
    if len(value) >= 2 and value[0] == value[-1] == "'":
        return value[1:-1]
    if "_" in value:  # 1_0 is a name, not ten
        return value
    for kind in (int, float):
        try:
            return kind(value)
        except (ValueError, OverflowError):
            continue
    return TRUTH.get(value, value)


def argument_value(text: str) -> Any:
    """Return the number, truth value or text of an argument, as ``$(eval ...)`` uses it."""
    try:
        return float(text) if "." in text else int(text)
    except ValueError:
        return TRUTH.get(text.lower(), text)


def truth(value: Any, what: str) -> bool:
    """Return the truth value of a condition."""
    if not isinstance(value, str):
        return bool(value)
    try:
        return TRUTH[value] if value in TRUTH else bool(int(value))
    except ValueError:
        raise DescriptionError(f"{what} is '{value[:80]}'; give true, false or a number") from None


def pieces(text: str) -> Iterator[tuple[str, str]]:
    """Yield the parts of a text as (kind, content): text, expression or command."""
    at = 0
    while at < len(text):
        found = _PIECES.match(text, at)
        if found is None:
            raise DescriptionError(f"'{text[at : at + 60]}' opens ${{ or $( without closing it; close it, or write $$ for a $")
        kind = found.lastgroup or "text"
        yield ("text", found[kind][1:]) if kind == "escaped" else (kind, found[kind])
        at = found.end()


def parameters(text: str) -> dict[str, tuple[bool, str | None]]:
    """Return the parameters of a macro: name, ``name:=default``, ``name:=^``, ``name:=^|default``, ``*block``."""
    found: dict[str, tuple[bool, str | None]] = {}
    rest = text.strip()
    while rest:
        match = _PARAMETER.match(rest)
        if match is None:
            raise DescriptionError(f"<xacro:macro>: params has '{rest[:60]}'; give name, name:=default or *block")
        name, default = match["name"], match["default"]
        if default is None:
            found[name], rest = (False, None), rest[match.end() :].lstrip()
            continue
        value = _DEFAULT.match(default)
        if value is None:
            raise DescriptionError(f"<xacro:macro>: the default of '{name}' is '{default[:60]}'; close its quotes or brackets")
        found[name] = (match["forward"] is not None, value[0] or None)
        rest = default[value.end() :].lstrip()
    return found


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
"""Tags of values with a unit, and their factors."""

_PLAIN = "tag:yaml.org,2002:"


def load_yaml(path: Path, number: Callable[[str], Any], budget: Budget) -> Any:
    """Return the content of a YAML file; `number` computes the expression behind a unit's tag."""
    try:
        import yaml  # noqa: PLC0415 - optional
    except ImportError as error:
        raise missing_extra("pyyaml", "yaml", "load_yaml in a .xacro file") from error
    data = read_bytes(path, "YAML")
    budget.spend("bytes of YAML", len(data))  # PyYAML is slow, about a second for 50 kB
    with _reading(path.name):
        loader = yaml.SafeLoader(data)
    try:
        with _reading(path.name):
            node = loader.get_single_node()
        return None if node is None else checked(_Builder(path.name, loader, number, budget).build(node, 0), budget)
    finally:
        loader.dispose()


@contextmanager
def _reading(name: str) -> Iterator[None]:
    """Convert errors of PyYAML for a damaged file into a message; the block must contain only calls of PyYAML."""
    try:
        yield
    except Exception as error:
        reason = "nested too deep" if isinstance(error, RecursionError) else re.sub(r"\s+", " ", str(error))[:160]
        raise DescriptionError(f"YAML file '{name}' cannot be read ({reason}); correct it") from None


class _Builder:
    """Values of nodes; an alias is built and charged again, so that none can grow without bound."""

    def __init__(self, name: str, loader: Any, number: Callable[[str], Any], budget: Budget) -> None:
        self.name, self.loader, self.number, self.budget = name, loader, number, budget

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
            value = self.number(node.value)
            if not isinstance(value, int | float):
                raise DescriptionError(f"a YAML file has '{node.value[:40]}' behind {node.tag}; give a number")
            return float(value) * UNITS[node.tag]
        if node.id == "scalar" and kind in ("int", "float", "bool", "null"):
            if len(node.value) > MAX_NUMBER:
                raise DescriptionError(f"a YAML file has the number '{node.value[:40]}...'; give at most {MAX_NUMBER} digits")
            with _reading(self.name):
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
                    table = self.build(source, depth + 1)
                    if not isinstance(table, dict):
                        raise DescriptionError("a YAML file merges (<<) something that is not a table; name tables")
                    merged = {**table, **merged}
            else:
                name = self.build(key, depth + 1)
                if isinstance(name, list | dict):
                    raise DescriptionError("a YAML file has a list or a table as the name of an entry; give a text or a number")
                own[name] = self.build(value, depth + 1)
        return {**merged, **own}
