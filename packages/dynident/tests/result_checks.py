"""What holds for the results of every package: each has an example, which is written, read back, copied, pickled and drawn."""

from __future__ import annotations

import copy
import json
import pickle
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from pkgutil import ModuleInfo, walk_packages
from typing import Any

import pytest

import dynident as di
from dynident.results import Result, class_of, former_kinds, kind_of


def classes_of(package: str) -> Iterator[type]:
    """Yield the classes that the modules of a package define, without private ones."""
    top = import_module(package)
    for module in walk_packages(top.__path__, f"{package}."):
        if not module.name.endswith("__main__") and not is_moved(module):
            for name, found in vars(import_module(module.name)).items():
                if isinstance(found, type) and found.__module__ == module.name and not name.startswith("_"):
                    yield found


def is_moved(module: ModuleInfo) -> bool:
    """Return whether a module only says that its content is in another package now."""
    file = Path(getattr(module.module_finder, "path", "")) / f"{module.name.rpartition('.')[2]}.py"
    return file.is_file() and "is now dynident_" in file.read_text(encoding="utf-8")


def results_of(package: str) -> set[str]:
    """Return the names of the results of a package."""
    found = [cls.__name__ for cls in classes_of(package) if issubclass(cls, Result) and cls is not Result]
    assert len(found) == len(set(found)), "two results of a package have the same name"
    return set(found)


def shown_otherwise(package: str) -> set[str]:
    """Return the classes with a summary or a figure that are neither results nor curves, which are written as `spec()`."""
    shown = [cls for cls in classes_of(package) if hasattr(cls, "summary") or hasattr(cls, "plot")]
    return {cls.__name__ for cls in shown if not issubclass(cls, Result) and not hasattr(cls, "spec")}


def check_result(made: Any, folder: Path) -> None:
    """Save, load, copy, pickle and show a result, and load it under the names that older versions wrote."""
    written = json.dumps(made.to_dict())  # NaN equals itself as text
    assert made.to_dict()["kind"] == kind_of(type(made))
    file = made.save(folder / "x.json")
    for again in (di.load(file), copy.deepcopy(made), pickle.loads(pickle.dumps(made)), di.load(as_before(file))):  # noqa: S301
        assert type(again) is type(made)
        assert json.dumps(again.to_dict()) == written
        assert again.summary() == made.summary() != ""
    assert made._repr_html_().startswith(("<div>", "<svg", "<figure"))


def as_before(file: Path) -> Path:
    """Give the classes of a file the names that older versions wrote."""
    text = file.read_text(encoding="utf-8")
    for former, place in former_kinds().items():
        text = text.replace(f'"{place}"', f'"{former}"')
    file.write_text(text, encoding="utf-8")
    return file


def check_drawn(made: Any) -> None:
    """Draw a result that has a figure."""
    pytest.importorskip("matplotlib", reason="figures need matplotlib: pip install 'dynident[report]'")
    if hasattr(made, "plot"):
        assert made.plot().axes


def check_former_kinds(package: str) -> None:
    """Find every class of a package that older versions wrote; if this fails, a class moved: correct assets/kinds.json."""
    places = [place for place in former_kinds().values() if place.startswith(f"{package}.")]
    assert places
    assert [place for place in places if kind_of(class_of(place)) != place] == []
