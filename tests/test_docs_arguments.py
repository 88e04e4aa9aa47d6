"""The documentation cannot rot: every public name is walked and its numpydoc docstring compared with its signature."""

from __future__ import annotations

import importlib
import inspect
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import dynident

docscrape = pytest.importorskip("numpydoc.docscrape", reason="numpydoc is not installed: pip install 'dynident[docs]'")

SOURCE = Path(dynident.__file__).parent
ROOMS = sorted(folder.name for folder in SOURCE.iterdir() if (folder / "__init__.py").is_file())
INSIDE = ("dynident.graph.",)  # rooms for other rooms, not for users: one sentence each is enough
NOTHING = (inspect.Signature.empty, None, "None", "NoReturn", "Never")


def _home(item: Any) -> str:
    return str(getattr(item, "__module__", ""))


def _methods(cls: type) -> Iterator[tuple[str, Any]]:
    """Public methods and properties of a class that are ours, inherited ones included."""
    seen: set[str] = set()
    for base in cls.__mro__:
        if not _home(base).startswith("dynident"):
            continue
        for name, member in vars(base).items():
            if name.startswith("_") or name in seen:
                continue
            seen.add(name)
            inner = member.__func__ if isinstance(member, classmethod | staticmethod) else member
            if inspect.isfunction(inner) or isinstance(inner, property) or type(inner).__name__ == "cached_property":
                yield name, inner


def _public() -> dict[str, Any]:
    """Every documented thing by its dotted name: functions, classes, methods and properties."""
    found: dict[str, Any] = {}
    for place in ("dynident", *(f"dynident.{room}" for room in ROOMS)):
        module = importlib.import_module(place)
        for name in getattr(module, "__all__", ()):  # one test below insists that it exists
            item = getattr(module, name)
            if not (inspect.isfunction(item) or inspect.isclass(item)):
                continue
            found.setdefault(f"{_home(item)}.{item.__qualname__}", item)
            if inspect.isclass(item):
                found |= {f"{_home(item)}.{item.__qualname__}.{name}": member for name, member in _methods(item)}
    return dict(sorted(found.items()))


PUBLIC = _public()


def _is_made_by_users(item: Any) -> bool:
    """Functions and classes, but neither errors nor protocols, which nobody calls."""
    if inspect.isclass(item):
        return not issubclass(item, BaseException) and not getattr(item, "_is_protocol", False)
    return inspect.isfunction(item)


CALLABLES = {name: item for name, item in PUBLIC.items() if _is_made_by_users(item) and not name.startswith(INSIDE)}


def _arguments(item: Any) -> list[str]:
    """Argument names, with their stars; private ones (a leading underscore) are nobody's business."""
    stars = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    parameters = inspect.signature(item).parameters.values()
    names = [stars.get(p.kind, "") + p.name for p in parameters if p.name not in ("self", "cls")]
    return [name for name in names if not name.startswith("_")]


def _documented(doc: Any, section: str = "Parameters") -> list[str]:
    return [name.strip().replace("\\", "") for entry in doc[section] for name in entry.name.split(",") if name.strip()]


def test_the_enumeration_sees_the_public_api() -> None:
    assert {"mechanism", "mechanics", "friction", "signals", "identify", "validate"} <= set(ROOMS)
    assert len(CALLABLES) > 100
    for expected in (
        "dynident.identify.fit.Fit.predict",
        "dynident.signals.log.Log.read",
        "dynident.mechanism.mechanism.Mechanism",
    ):
        assert expected in CALLABLES


@pytest.mark.parametrize("place", ["dynident", *(f"dynident.{room}" for room in ROOMS)])
def test_every_exported_name_exists_once(place: str) -> None:
    module = importlib.import_module(place)
    assert module.__all__, f"{place} has no __all__; name what is public"
    assert len(set(module.__all__)) == len(module.__all__)
    for name in module.__all__:
        assert getattr(module, name) is not None, f"{place}.{name}"
    assert module.__doc__, f"{place} says nothing about itself"


@pytest.mark.parametrize("name", PUBLIC)
def test_everything_public_has_a_sentence(name: str) -> None:
    item = PUBLIC[name]
    text = (item.func if type(item).__name__ == "cached_property" else item).__doc__
    assert text, f"{name} has no docstring"
    assert len(text.strip()) > 3, f"{name} has an empty docstring"


@pytest.mark.parametrize("name", CALLABLES)
def test_arguments_are_documented_and_exist(name: str) -> None:
    item = CALLABLES[name]
    doc = docscrape.NumpyDocString(inspect.getdoc(item) or "")
    actual, documented = _arguments(item), _documented(doc)
    missing = [argument for argument in actual if argument not in documented]
    invented = [argument for argument in documented if argument not in actual]
    assert not missing, f"{name}: arguments {missing} are not documented"
    assert not invented, f"{name}: the docstring documents {invented}, which do not exist"
    silent = [entry.name for entry in doc["Parameters"] if not "".join(entry.desc).strip()]
    assert not silent, f"{name}: {silent} are named but not described"


@pytest.mark.parametrize("name", [name for name, item in CALLABLES.items() if inspect.isfunction(item)])
def test_what_is_returned_is_documented(name: str) -> None:
    item = CALLABLES[name]
    annotation = inspect.signature(item).return_annotation
    assert annotation is not inspect.Signature.empty, f"{name} does not say what it returns"
    doc = docscrape.NumpyDocString(inspect.getdoc(item) or "")
    described = [*doc["Returns"], *doc["Yields"]]
    assert bool(described) == (annotation not in NOTHING), f"{name} -> {annotation}, but its Returns section says otherwise"
    for entry in described:
        assert "".join(entry.desc).strip(), f"{name}: what is returned is named but not described"


def test_importing_dynident_stays_light() -> None:
    """`import dynident`, and making a Mechanism, must not load what only a computation needs (trap 22)."""
    code = (
        "import sys, dynident as di;"
        "di.Mechanism.from_dh([(0.3, 0, 0, 0)]).parameters; di.Log;"
        "heavy = ('llvmlite', 'scipy', 'matplotlib', 'pyarrow', 'h5py', 'cvxpy', 'typer', 'sympy');"
        "print(*[m for m in heavy if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
