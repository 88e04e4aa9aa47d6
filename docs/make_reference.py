"""Write api.md: every public name of every room, from the rooms' own ``__all__``. Run it when a name is added or removed."""

from __future__ import annotations

import importlib
import inspect
from pathlib import Path

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


def section(title: str, place: str, seen: set[int]) -> list[str]:
    """Return the lines of one room, nothing for a room without public names; what was seen in another room is only named."""
    module = importlib.import_module(place)
    names = list(getattr(module, "__all__", ()))
    if not names:
        return []
    again = [name for name in names if id(getattr(module, name)) in seen and callable(getattr(module, name))]
    names = [name for name in names if name not in again]
    seen |= {id(getattr(module, name)) for name in names}
    classes = [name for name in names if inspect.isclass(getattr(module, name))]
    functions = [name for name in names if inspect.isroutine(getattr(module, name))]
    others = [name for name in names if name not in classes and name not in functions]
    lines = [f"## {title}: `{place}`", ""]
    if others:
        lines += ["Constants: " + ", ".join(f"`{name}`" for name in others) + ".", ""]
    if again:
        lines += ["Also here: " + ", ".join(f"`{name}`" for name in again) + ".", ""]
    if classes or functions:
        lines += ["```{eval-rst}", f".. currentmodule:: {place}", ""]
        for name in classes:
            lines += [f".. autoclass:: {name}", "   :members:", "   :inherited-members:", "   :exclude-members: __init__", ""]
        for name in functions:
            lines += [f".. autofunction:: {name}", ""]
        lines += ["```", ""]
    return lines


def page() -> str:
    """Return the text of api.md."""
    lines = ["# Reference", "", "The names of each room; the most used ones are also in `dynident` itself.", ""]
    seen: set[int] = set()
    for title, place in ROOMS.items():
        lines += section(title, place, seen)
    for name in importlib.import_module("dynident.robots").ROBOTS:
        lines += section("Robots of the literature", f"dynident.robots.{name}", seen)
    lines += ["## Errors: `dynident.errors`", "", "```{eval-rst}", ".. automodule:: dynident.errors", "   :members:", "```"]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    Path(__file__).with_name("api.md").write_text(page(), encoding="utf-8")
