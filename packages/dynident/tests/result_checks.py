"""What holds for the results of every package: each has an example, which is written, read back, copied, pickled and drawn."""

from __future__ import annotations

import copy
import json
import pickle
import re
from collections.abc import Iterator
from dataclasses import is_dataclass
from importlib import import_module
from pathlib import Path
from pkgutil import ModuleInfo, walk_packages
from typing import Any

import pytest

import dynident as di
from dynident.results import Result, class_of, current_kind, kind_of


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
    """Give the classes of a file the names that version 0.2 wrote."""
    before = {current_kind(kind): kind for kind in former_kinds()}
    text = re.sub(
        r'"(dynident\w*\.\w+\.\w+)"', lambda found: f'"{before.get(found[1], found[1])}"', file.read_text(encoding="utf-8")
    )
    file.write_text(text, encoding="utf-8")
    return file


def check_drawn(made: Any) -> None:
    """Draw a result that has a figure."""
    pytest.importorskip("matplotlib", reason="figures need matplotlib: pip install 'dynident[report]'")
    if hasattr(made, "plot"):
        assert made.plot().axes


def former_kinds() -> Iterator[str]:
    """Yield the names of all classes that files of version 0.2 may hold."""
    for line in (Path(__file__).parent / "former_kinds.txt").read_text(encoding="utf-8").splitlines():
        place, _, names = line.partition(":")
        yield from (f"{place}.{name}" for name in names.split())


def check_former_kinds(package: str) -> None:
    """Find the classes of a package that version 0.2 wrote; one that moved to another subpackage is missing in FORMER."""
    places = [(kind, place) for kind in former_kinds() if (place := current_kind(kind)).startswith(f"{package}.")]
    assert places
    assert [kind for kind, place in places if kind_of(class_of(kind)) != place] == []


def check_kinds(package: str) -> None:
    """Tell dataclasses of a subpackage apart by their names, as files do."""
    kinds = [kind_of(cls) for cls in classes_of(package) if is_dataclass(cls) and ".robots." not in cls.__module__]
    assert [kind for kind in set(kinds) if kinds.count(kind) > 1] == []
