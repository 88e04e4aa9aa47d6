"""Public names of a package, imported on first use. The stub of its ``__init__`` lists them, one import per line."""

from __future__ import annotations

import sys
from importlib import import_module

TYPE_CHECKING = False  # as in `typing`, which takes longer to import than the rest of ``import dynident``
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def attach(package: str, file: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return `__getattr__`, `__dir__` and `__all__` of a package, given its `__name__` and `__file__`.

    Every import of the stub is a line ``from .module import name as name``, so that no parser must be loaded: with `ast`,
    ``import dynident`` took twice the time.
    """
    modules: dict[str, str] = {}
    with open(f"{file}i", encoding="utf-8") as stub:  # noqa: PTH123 - pathlib is slow to import
        for line in stub:
            if line.startswith("from ."):
                _, module, _, name, *_ = line.split()
                modules[name] = f".{name}" if module == "." else module

    def load(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module '{package}' has no attribute '{name}'")
        module = import_module(modules[name], package)
        value = module if modules[name] == f".{name}" else getattr(module, name)
        vars(sys.modules[package])[name] = value  # the next access bypasses this function
        return value

    return load, lambda: sorted(modules), sorted(modules)
