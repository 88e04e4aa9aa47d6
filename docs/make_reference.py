"""The reference: one page per subpackage, from the names in its ``__all__``; `conf.py` makes it with every build."""

from __future__ import annotations

import importlib
import inspect

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


def section(title: str, place: str, seen: set[int]) -> str:
    """Return the page of one subpackage; names that another page has are only listed."""
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
    found = {place.removeprefix("dynident."): section(title, place, seen) for title, place in SUBPACKAGES.items()}
    for name in importlib.import_module("dynident_papers.robots").ROBOTS:
        found[f"robots.{name}"] = section(f"Robot {name}", f"dynident_papers.robots.{name}", seen)
    found["errors"] = "# Errors: `dynident.errors`\n\n```{eval-rst}\n.. automodule:: dynident.errors\n   :members:\n```\n"
    return found
