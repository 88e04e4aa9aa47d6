"""Plug-ins: other packages add commands, robots, readers, exporters, plans, friction laws and controllers through entry points.

======================== ==================================================================================================
group                    meaning of an entry
======================== ==================================================================================================
dynident.commands        a command: a function with typed parameters, or a `cyclopts.App` with subcommands
dynident.robots          a `dynident.cli.robots.KnownRobot`
dynident.robot_readers   ``matches(path) -> bool`` and ``read(path, **options) -> Mechanism``, for other endings than ours
dynident.log_readers     ``matches(path) -> bool`` and ``read(path, **options) -> Log``, for folders and other endings
dynident.exporters       a `dynident.cli.export.Exporter`, the target of ``dynident export --for NAME``
dynident.plans           a function of a `Design`, ``validation=`` and ``repetitions=`` that returns a `Plan`, for ``excite``
dynident.friction        a friction law by name: a subclass of `FrictionLaw`, a frozen dataclass
dynident.controllers     a controller by the scheme of its address, called with host, port if given, and options
======================== ==================================================================================================

dynident-lab and dynident-papers use these groups like any third-party package. A plug-in that cannot be imported causes one
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
EXPORTERS, PLANS = "dynident.exporters", "dynident.plans"
FRICTION, CONTROLLERS = "dynident.friction", "dynident.controllers"
GROUPS = (COMMANDS, ROBOTS, ROBOT_READERS, LOG_READERS, EXPORTERS, PLANS, FRICTION, CONTROLLERS)
PACKAGES = {"lab": "dynident-lab", "papers": "dynident-papers"}
"""Other dynident distributions, by the extra of dynident that installs them."""
PROVIDED: dict[str, dict[str, tuple[str, ...]]] = {
    COMMANDS: {
        "lab": (
            *("bandwidth", "compare-fits", "controller", "cycles", "fleet", "friction", "live", "maintenance"),
            *("record", "repeatability", "schedule", "simulate-campaign", "track", "workbench"),
        ),
        "papers": ("acceleration", "check", "reduction", "reproduce", "workspace", "write"),
    },
    ROBOTS: {
        "lab": ("ur5e",),
        "papers": (
            *("cft", "cft_cartesian", "cft_published", "dualv", "er3a_c60", "five_bar"),
            *("mast", "prr2", "prs3", "replalink", "rrr"),
        ),
    },
    EXPORTERS: {"lab": ("fmu",)},
    PLANS: {"lab": ("complete",)},
}
"""Names that the other dynident distributions add, by group and extra, for the message that names the missing package."""


class PluginError(DynidentError):
    """A requested plug-in cannot be used."""


class PluginWarning(DynidentWarning):
    """A plug-in cannot be used; everything else works."""


@cache
def entries(group: str) -> dict[str, EntryPoint]:
    """Return the entry points of a group by name; if two packages provide a name, the first on the path wins."""
    found: dict[str, EntryPoint] = {}
    for entry in entry_points(group=group):
        found.setdefault(entry.name, entry)
    return dict(sorted(found.items()))


@cache
def _imported(group: str, name: str) -> tuple[Any, str]:
    """Return the object that an entry point names, or the reason why it cannot be imported."""
    entry = entries(group)[name]
    package = entry.dist.name if entry.dist else entry.value
    try:
        if package in PACKAGES.values():
            check_versions()
        return entry.load(), ""
    except Exception as error:  # code of another package: its errors must not break the rest
        reason = " ".join(str(error).split())
        kind = "" if isinstance(error, DynidentError) else f"{type(error).__name__}: "
        return None, f"plug-in '{name}' of package '{package}' cannot be loaded ({kind}{reason})"


@cache
def load(group: str, name: str) -> Any:
    """Return the object that an entry point names, or None after one warning if it cannot be imported."""
    plugin, problem = _imported(group, name)
    if problem:
        warn(problem, PluginWarning)
    return plugin


def require(group: str, name: str) -> Any:
    """Return the object that an entry point names; raise `PluginError` if it cannot be imported."""
    plugin, problem = _imported(group, name)
    if problem:
        raise PluginError(problem)
    return plugin


def load_all(group: str) -> dict[str, Any]:
    """Return every plug-in of a group that can be imported, by name."""
    loaded = {name: load(group, name) for name in entries(group)}
    return {name: plugin for name, plugin in loaded.items() if plugin is not None}


def plugin_packages() -> set[str]:
    """Return the import packages that provide plug-ins of any group."""
    return {entry.module.partition(".")[0] for group in GROUPS for entry in entries(group).values()}


def reader_of(group: str, path: str | os.PathLike[str]) -> Any:
    """Return the first registered reader that accepts a path, or None."""
    return next((reader for reader in load_all(group).values() if reader.matches(Path(path))), None)


def not_installed(group: str, name: str) -> str | None:
    """Return a message that names the dynident package that provides a name; None if no package provides it."""
    extra = next((extra for extra, names in PROVIDED.get(group, {}).items() if name in names), None)
    return (
        None
        if extra is None
        else f"'{name}' is part of {PACKAGES[extra]}, which is not installed; run pip install 'dynident[{extra}]'"
    )


def forget() -> None:
    """Clear the cache of plug-ins, after a package was installed while Python runs."""
    for found in (entries, load, _imported, check_versions):
        found.cache_clear()


def installed() -> dict[str, str]:
    """Return the versions of the installed dynident distributions."""
    found = {}
    for package in ("dynident", *PACKAGES.values()):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


@cache
def check_versions() -> None:
    """Refuse distributions of different versions, and name the command that updates them."""
    found = installed()
    if len(set(found.values())) > 1:
        listed = ", ".join(f"{name} {number}" for name, number in found.items())
        newest = max(found.values(), key=lambda text: [int(part) for part in text.split(".") if part.isdigit()])
        wanted = " ".join(f"{name}=={newest}" for name in found)
        raise DynidentError(f"installed packages have different versions ({listed}): run pip install {wanted}")
