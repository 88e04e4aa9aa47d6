"""The reference: one page per room, from the names in its ``__all__``; `conf.py` makes it with every build."""

from __future__ import annotations

import importlib
import inspect

ROOMS = {
    "Robots": "dynident.mechanism",
    "Mechanics": "dynident.mechanics",
    "Friction": "dynident.friction",
    "Logs and signals": "dynident.signals",
    "Closed forms": "dynident.symbolic",
    "Motions": "dynident.trajectory",
    "Identification": "dynident.identify",
    "Friction identification": "dynident.identify.friction",
    "Drives": "dynident.drive",
    "Control": "dynident.control",
    "Virtual robot": "dynident.simulate",
    "Excitation": "dynident.excitation",
    "Controllers and campaigns": "dynident.link",
    "Validation": "dynident.validate",
    "Test bench": "dynident.testbench",
    "Monitor": "dynident.monitor",
    "Fleets": "dynident.fleet",
    "Report": "dynident.report",
    "Published tables": "dynident.reproduce",
    "Results": "dynident.results",
}


def section(title: str, place: str, seen: set[int]) -> str:
    """Return the page of one room; what was seen in another room is only named."""
    module = importlib.import_module(place)
    names = list(module.__all__)
    again = [name for name in names if id(getattr(module, name)) in seen and callable(getattr(module, name))]
    names = [name for name in names if name not in again]
    seen |= {id(getattr(module, name)) for name in names}
    classes = [name for name in names if inspect.isclass(getattr(module, name))]
    functions = [name for name in names if inspect.isroutine(getattr(module, name))]
    others = [name for name in names if name not in classes and name not in functions]
    lines = [f"# {title}: `{place}`", ""]
    if others:
        lines += ["Constants: " + ", ".join(f"`{name}`" for name in others) + ".", ""]
    if again:
        lines += ["Also here: " + ", ".join(f"`{name}`" for name in again) + ".", ""]
    lines += ["```{eval-rst}", f".. currentmodule:: {place}", ""]
    for name in classes:
        lines += [f".. autoclass:: {name}"]
        if not issubclass(getattr(module, name), tuple):  # the members of a tuple tell no more than its docstring
            lines += ["   :members:", "   :inherited-members:", "   :exclude-members: __init__"]
        lines += [""]
    for name in functions:
        lines += [f".. autofunction:: {name}", ""]
    return "\n".join([*lines, "```", ""])


def pages() -> dict[str, str]:
    """Return the text of every page by its name."""
    seen: set[int] = set()
    found = {place.removeprefix("dynident."): section(title, place, seen) for title, place in ROOMS.items()}
    for name in importlib.import_module("dynident.robots").ROBOTS:
        found[f"robots.{name}"] = section(f"Robot {name}", f"dynident.robots.{name}", seen)
    found["errors"] = "# Errors: `dynident.errors`\n\n```{eval-rst}\n.. automodule:: dynident.errors\n   :members:\n```\n"
    return found
