"""The reference: one page per subpackage with a table of its names, and one page per name of the core and of lab."""

from __future__ import annotations

import importlib
import inspect
from types import ModuleType

SUBPACKAGES = {
    "Robots": "dynident.mechanism",
    "Mechanics": "dynident.mechanics",
    "Friction": "dynident.friction",
    "Logs and signals": "dynident.signals",
    "Closed forms": "dynident.symbolic",
    "Motions": "dynident.trajectory",
    "Identification": "dynident.identify",
    "Drives": "dynident.drive",
    "Control": "dynident.control",
    "Virtual robot": "dynident.simulate",
    "Excitation": "dynident.excitation",
    "Validation": "dynident.validate",
    "Monitor": "dynident.monitor",
    "Report": "dynident.report",
    "Results": "dynident.results",
    "Lab: controllers": "dynident_lab.link",
    "Lab: campaigns": "dynident_lab.campaigns",
    "Lab: test bench": "dynident_lab.testbench",
    "Lab: thermal models": "dynident_lab.thermal",
    "Lab: servo analysis": "dynident_lab.servo",
    "Lab: FMU": "dynident_lab.fmu",
    "Lab: paths of the tool": "dynident_lab.tool_paths",
    "Lab: fleets": "dynident_lab.fleet",
    "Papers: published tables": "dynident_papers.reproduce",
    "Papers: identification": "dynident_papers.identify",
    "Papers: workspaces": "dynident_papers.workspace",
    "Papers: flexures": "dynident_papers.flexures",
    "Papers: servo tuning and fits": "dynident_papers.servo",
    "Papers: thermal models": "dynident_papers.thermal",
    "Papers: trajectories": "dynident_papers.trajectories",
}


def section(title: str, place: str, seen: set[int]) -> dict[str, str]:
    """Return the page of one subpackage and the pages of its names; names that another page has are only listed.

    Pages of names are orphans, because the theme repeats the whole table of contents on every page.
    """
    module = importlib.import_module(place)
    page = place.removeprefix("dynident.").removeprefix("dynident_papers.robots.")
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
    texts = {
        name: class_text(module, name) if name in classes else f".. autofunction:: {name}\n" for name in classes + functions
    }
    start = f"```{{eval-rst}}\n.. currentmodule:: {place}\n\n"
    if place.startswith("dynident_papers"):  # read together with their paper
        return {page: "\n".join([*lines, start, *texts.values(), "```", ""])}
    rows = "".join(f"   {name}\n" for name in texts)
    found = {page: "\n".join([*lines, f"{start}.. autosummary::\n   :nosignatures:\n\n{rows}```", ""])}
    for name, text in texts.items():
        up = f"Part of [{place}](../{page}.md).\n"
        found[f"names/{place}.{name}"] = f"---\norphan: true\n---\n\n# {name}\n\n{up}\n{start}{text}```\n"
    return found


def class_text(module: ModuleType, name: str) -> str:
    """Return the directive of one class."""
    if issubclass(getattr(module, name), tuple):  # the members of a tuple tell no more than its docstring
        return f".. autoclass:: {name}\n"
    return f".. autoclass:: {name}\n   :members:\n   :inherited-members:\n   :exclude-members: __init__\n"


def pages() -> dict[str, str]:
    """Return the text of every page by its name."""
    seen: set[int] = set()
    found: dict[str, str] = {}
    for title, place in SUBPACKAGES.items():
        found |= section(title, place, seen)
    for name in importlib.import_module("dynident_papers.robots").ROBOTS:
        found |= {f"robots.{name}": text for text in section(f"Robot {name}", f"dynident_papers.robots.{name}", seen).values()}
    found["errors"] = "# Errors: `dynident.errors`\n\n```{eval-rst}\n.. automodule:: dynident.errors\n   :members:\n```\n"
    return found
