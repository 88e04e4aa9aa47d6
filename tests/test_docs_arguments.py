"""Public functions and classes of the core have numpydoc docstrings that match their signatures."""

from __future__ import annotations

import importlib
import inspect
import re
from pathlib import Path
from typing import Any

import pytest

from test_public_api import STUBS, names_of

docscrape = pytest.importorskip("numpydoc.docscrape", reason="numpydoc is not installed")

CORE = {package: stub for package, stub in STUBS.items() if package.split(".")[0] == "dynident"}


def _public(package: str, stub: Path) -> dict[str, Any]:
    """Return the functions and classes that a stub lists.

    Users do not call errors and protocols. Elementary functions of expressions (`sin`, `sqrt`) mean what NumPy's do.
    """
    module = importlib.import_module(package)
    found = {f"{package}.{name}": getattr(module, name) for name in names_of(stub)}
    found = {name: item for name, item in found.items() if getattr(item, "__module__", "") != "dynident.graph.algebra"}
    return {name: item for name, item in found.items() if inspect.isfunction(item) or _is_constructed(item)}


def _is_constructed(item: Any) -> bool:
    return inspect.isclass(item) and not issubclass(item, BaseException) and not getattr(item, "_is_protocol", False)


def _arguments(item: Any) -> list[str]:
    """Return the names of the arguments, with their stars; private ones begin with an underscore."""
    stars = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    parameters = inspect.signature(item).parameters.values()
    return [stars.get(p.kind, "") + p.name for p in parameters if not p.name.startswith("_")]


def _speak_for_themselves(item: Any) -> bool:
    """Tell whether all arguments have a type that says what to give, and are named in the text of a short docstring."""
    vague = (inspect.Parameter.empty, "Any", "object")
    arguments = [p for p in inspect.signature(item).parameters.values() if not p.name.startswith("_")]
    return all(p.annotation not in vague and f"`{p.name}`" in (item.__doc__ or "") for p in arguments)


def _commented(item: Any) -> set[str]:
    """Return the fields of a class that have a comment ``#:`` beside or above them, which Sphinx shows."""
    if not inspect.isclass(item) or item.__module__ == "builtins":
        return set()
    lines = [line.strip() for line in inspect.getsource(item).partition("\n    def ")[0].splitlines()]
    fields = {match[0]: i for i, line in enumerate(lines) if (match := re.match(r"\w+(?=: )", line))}
    return {name for name, i in fields.items() if "  #: " in lines[i] or lines[i - 1].startswith("#: ")}


@pytest.mark.parametrize("package", CORE)
def test_parameters_are_documented_and_exist(package: str) -> None:
    """In a complete section Parameters; or the docstring names all and the signature says their types; or beside the fields."""
    wrong = []
    for name, item in _public(package, CORE[package]).items():
        doc = docscrape.NumpyDocString(item.__doc__ or "")
        actual = _arguments(item)
        documented = [part.strip().replace("\\", "") for entry in doc["Parameters"] for part in entry.name.split(",")]
        wrong += [f"{name} has no summary"] * (not doc["Summary"])
        if documented or not (_speak_for_themselves(item) or _commented(item).issuperset(actual)):
            wrong += [f"{name}: {argument} is not documented" for argument in actual if argument not in documented]
        wrong += [f"{name}: {argument} does not exist" for argument in documented if argument not in actual]
        wrong += [f"{name}: {entry.name} is not described" for entry in doc["Parameters"] if not "".join(entry.desc).strip()]
    assert wrong == []


@pytest.mark.parametrize("package", CORE)
def test_returned_values_are_documented(package: str) -> None:
    """For functions with arguments whose summary does not say what they return or write."""
    wrong = []
    for name, item in _public(package, CORE[package]).items():
        if inspect.isclass(item) or not _arguments(item):
            continue
        doc = docscrape.NumpyDocString(item.__doc__ or "")
        annotation = inspect.signature(item).return_annotation
        described = [*doc["Returns"], *doc["Yields"]]
        stated = (item.__doc__ or "").startswith(("Return", "Write"))
        if annotation is inspect.Signature.empty or bool(described or stated) != (annotation not in (None, "None")):
            wrong.append(f"{name} -> {annotation}: its Returns section does not match")
        wrong += [f"{name}: a returned value is not described" for entry in described if not "".join(entry.desc).strip()]
    assert wrong == []


def test_the_pipeline_is_among_the_documented_names() -> None:
    names = {name for package, stub in CORE.items() for name in _public(package, stub)}
    assert {"dynident.identify", "dynident.Mechanism", "dynident.signals.prepare", "dynident.validate.judge"} <= names
    assert len(names) > 200
