"""What is known beside the description, from the command line and the sidecar."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import dynident as di
from dynident.cli.structure import KNOWN
from dynident.errors import DynidentError
from dynident.identify.posterior.prior import Population

Mass = Annotated[
    list[str] | None,
    typer.Option(
        help="Weighed mass of a body, as forearm=3.2 or forearm=3.2+-0.05 [kg]; several times.", rich_help_panel=KNOWN
    ),
]
TotalMass = Annotated[str | None, typer.Option(help="Mass of all moving bodies, as 16 or 16+-0.5 [kg].", rich_help_panel=KNOWN)]
Centre = Annotated[
    list[str] | None,
    typer.Option(
        help="Centre of mass of a body, as hand=0,0,0.08 in its link frame [m]; several times.", rich_help_panel=KNOWN
    ),
]
PopulationFile = Annotated[
    Path | None,
    typer.Option(
        "--population",
        help="population_TYPE.json of a fleet: what robots of the type have in common.",
        rich_help_panel=KNOWN,
    ),
]
Without = Annotated[
    list[str] | None,
    typer.Option(
        help="Body without mass and inertia of its own, too light or counted with another; several times.",
        rich_help_panel=KNOWN,
    ),
]


def knowledge(
    sidecar: Path | None,
    mass: list[str] | None,
    total_mass: str | None,
    centre: list[str] | None,
    without: list[str] | None,
    population: Path | None = None,
) -> di.Knowledge | None:
    """Return what the sidecar and the options tell, the options last; None when they tell nothing."""
    told = di.Knowledge() if sidecar is None else di.Knowledge.from_sidecar(sidecar)
    masses = {**told.masses, **{body: _value(text, "mass") for body, text in _pairs(mass, "mass").items()}}
    centres = {**told.centres, **{body: _numbers(text, "centre") for body, text in _pairs(centre, "centre").items()}}
    total = told.total_mass if total_mass is None else _value(total_mass, "total-mass")
    bodies = (*told.without, *(without or ()))
    shared = None if population is None else Population.load(population)
    if not masses and not centres and total is None and not bodies and shared is None:
        return None
    return di.Knowledge(masses, total, centres, bodies, shared)


def _pairs(texts: list[str] | None, option: str) -> dict[str, str]:
    pairs = {}
    for text in texts or []:
        body, sign, value = text.partition("=")
        if not sign or not body:
            raise DynidentError(f"--{option} is '{text}'; give a body and its value, such as forearm=3.2")
        pairs[body] = value
    return pairs


def _value(text: str, option: str) -> float | tuple[float, float]:
    found = _numbers(text.replace("+-", ","), option)
    if len(found) > 2:
        raise DynidentError(f"--{option} is '{text}'; give a number, or a number and its standard deviation as 3.2+-0.05")
    return found[0] if len(found) == 1 else (found[0], found[1])


def _numbers(text: str, option: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise DynidentError(f"--{option} has the value '{text}'; give numbers") from None
