"""Plug-ins: other packages add commands, robots, readers, exporters, friction laws and controllers through entry points.

======================== ==================================================================================================
group                    what an entry is
======================== ==================================================================================================
dynident.commands        a module that registers one command, or one group of commands, with the application
dynident.robots          a robot by name: a `Robot` object or a module with the same members
dynident.robot_readers   ``matches(path) -> bool`` and ``read(path, **options) -> Mechanism``, for endings that are not ours
dynident.log_readers     ``matches(path) -> bool`` and ``read(path, **options) -> Log``, for folders and such endings
dynident.exporters       a target of ``dynident export --for NAME``
dynident.friction        a friction law by name: a subclass of `FrictionLaw`, a frozen dataclass
dynident.controllers     a controller by the scheme of its address, called with host, port if given, and options
======================== ==================================================================================================

dynident-lab and dynident-papers use these groups like any third-party package. A plug-in that cannot be imported costs one
warning and nothing else.
"""

from __future__ import annotations

import os
from functools import cache
from importlib.metadata import EntryPoint, PackageNotFoundError, entry_points, version
from pathlib import Path
from typing import Any

from dynident.errors import DynidentError, DynidentWarning, warn

COMMANDS, ROBOTS = "dynident.commands", "dynident.robots"
ROBOT_READERS, LOG_READERS = "dynident.robot_readers", "dynident.log_readers"
EXPORTERS, FRICTION, CONTROLLERS = "dynident.exporters", "dynident.friction", "dynident.controllers"
PACKAGES = {"lab": "dynident-lab", "papers": "dynident-papers"}
"""Our other distributions by the extra of dynident that installs them."""


class PluginWarning(DynidentWarning):
    """A plug-in cannot be used; everything else works."""


@cache
def entries(group: str) -> dict[str, EntryPoint]:
    """Return the entry points of a group by name; of two packages that provide a name, the first on the path wins."""
    found: dict[str, EntryPoint] = {}
    for entry in entry_points(group=group):
        found.setdefault(entry.name, entry)
    return dict(sorted(found.items()))


@cache
def load(group: str, name: str) -> Any:
    """Return the object that an entry point names, or None after one warning if it cannot be imported."""
    entry = entries(group)[name]
    try:
        return entry.load()
    except Exception as error:  # code of another package: whatever it raises must not break the rest
        package = entry.dist.name if entry.dist else entry.value
        reason = " ".join(str(error).split())
        warn(f"plug-in '{name}' of package '{package}' cannot be loaded ({type(error).__name__}: {reason})", PluginWarning)
        return None


def load_all(group: str) -> dict[str, Any]:
    """Return every plug-in of a group that can be imported, by name."""
    loaded = {name: load(group, name) for name in entries(group)}
    return {name: plugin for name, plugin in loaded.items() if plugin is not None}


def reader_of(group: str, path: str | os.PathLike[str]) -> Any:
    """Return the first registered reader that accepts a path, or None."""
    return next((reader for reader in load_all(group).values() if reader.matches(Path(path))), None)


def installed() -> dict[str, str]:
    """Return the versions of our distributions that are installed."""
    found = {}
    for package in ("dynident", *PACKAGES.values()):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def check_versions() -> None:
    """Refuse distributions of different versions, and name the command that repairs them."""
    found = installed()
    if len(set(found.values())) > 1:
        listed = ", ".join(f"{name} {number}" for name, number in found.items())
        newest = max(found.values(), key=lambda text: [int(part) for part in text.split(".") if part.isdigit()])
        wanted = " ".join(f"{name}=={newest}" for name in found)
        raise DynidentError(f"installed packages have different versions ({listed}): run  pip install {wanted}")
