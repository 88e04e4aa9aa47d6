"""How well a fit knows its parameters: as rows, and as text with what to know about them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dynident.identify.regression.factor import shares

if TYPE_CHECKING:
    from dynident.identify.fit import Fit

MOSTLY = 0.5  # part of the squared residual
SHOWN = ("negative_terms", "impossible_bodies", "description", "loop_gains", "numbered")  # notes of the summary

GOOD, POOR = 0.10, 0.50  # relative standard deviation up to which a parameter is well, or at least roughly, known


@dataclass(frozen=True)
class Undetermined:
    """A standard parameter that the data do not determine."""

    name: str  # The parameter
    value: float  # What is exported, and what the description says
    description: float  # What is exported, and what the description says
    unit: str  # The parameter


@dataclass(frozen=True)
class Observability:
    """How well one base parameter is known.

    Parameters
    ----------
    name, expression, unit : str
        The base parameter.
    value, std, relative : float
        Estimate, its standard deviation, and their ratio (infinite when it is not visible in the data).
    verdict : str
        "good" (standard deviation up to 10 % of the value), "poor" (up to 50 %), "insignificant" (not clearly different
        from zero), "not excited" (the data do not show it, or only its sum with others) or "dropped" (not essential).
    """

    name: str
    expression: str
    unit: str
    value: float
    std: float
    relative: float
    verdict: str


def _share(relative: float) -> str:
    """Return a relative deviation in per cent, as far as two decimals tell it."""
    if not np.isfinite(relative):
        return "-"
    if relative >= 10.0:
        return ">999%"
    return "<0.01%" if 0.0 < relative < 5e-5 else f"{100 * relative:.2f}%"


def summary_of(fit: Fit) -> str:
    """Return the text; `Fit.summary` is the public way."""
    table = fit.observability()
    width = max(len("base parameter"), *(len(row.name) for row in table))
    verdicts = [row.verdict for row in table]
    blind = not np.isfinite(fit.training_relative)
    errors = "no efforts" if blind else f"training error {100 * fit.training_relative:.2f} %"
    lines = [
        f"{fit.mechanism.name}: {fit.base.rank} base parameters from {fit.rows} equations, "
        f"condition {fit.condition:.3g}, {errors}",
        f"{'base parameter':<{width}}  {'value':>12}  {'std':>10}  {'rel.':>8}  {'description':>12}  verdict",
    ]
    for row, before in zip(table, fit.described, strict=True):
        numbers = f"{row.value:>12.5g}  {row.std:>10.3g}  {_share(row.relative):>8}  {before:>12.5g}"
        lines.append(f"{row.name:<{width}}  {numbers}  {row.verdict}")
    counts = ", ".join(f"{verdicts.count(v)} {v}" for v in dict.fromkeys(verdicts))
    impossible = [c.name for c in fit.consistency() if not c.ok]
    lines.append(f"verdicts: {counts}")
    if blind:
        lines.append(
            "no efforts: the deviations are those of proportions; all masses, inertias and friction have the scale of the "
            "gains of drives and controller, and an error of a gain comes on top"
        )
    elif fit.free is not None:
        lines.append(
            f"training error: description {100 * fit.posterior.description_relative:.2f} %, this model "
            f"{100 * fit.training_relative:.2f} %, least squares alone {100 * fit.posterior.free_relative:.2f} %"
        )
    open_ones = fit.undetermined()
    if open_ones:
        shown = ", ".join(f"{row.name} {row.value:.4g} (description {row.description:.4g})" for row in open_ones[:8])
        lines.append(
            f"{len(open_ones)} of {len(fit.standard)} standard parameters are not determined by these data and rest on "
            f"the description: {shown}{' ...' if len(open_ones) > 8 else ''}"
        )
    rests = [name for name in fit.groups if shares(fit.sources, name)[0] < 1.0 - MOSTLY]
    if rests and not fit.options.get("standstill"):
        lines.append(
            f"most of the residual of {', '.join(rests)} is made near standstill, where friction may be anything "
            "within its limits; standstill=0.1 (--standstill 0.1) leaves that out of the fit and of its errors"
        )
    lines += dict.fromkeys(note.sentence for note in fit.notes if note.kind in SHOWN)
    if impossible:
        lines.append(
            f"standard parameters of {', '.join(impossible)} are physically impossible: they predict torques, but such "
            "bodies cannot be simulated"
        )
    return "\n".join(lines)
