"""Identification cycle by cycle: the stages of a plan, one cycle in memory at a time [Pagani2022, section 5.1]."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dynident.arrays import Array
from dynident.errors import IdentificationError
from dynident.friction import FrictionLaw, Polynomial
from dynident.identify import Fit, fit_friction
from dynident.mechanism import Mechanism
from dynident.results import Result
from dynident.signals import Log
from dynident_lab.campaigns.log import CampaignLog, read_cycles
from dynident_lab.testbench.repeatability_study import Estimate, Repeatability, repeatability

if TYPE_CHECKING:
    from matplotlib.figure import Figure


TRAINING = ("training",)  # purposes of the fitted stages: friction plateaus are run later, at other temperatures
STANDSTILL = 0.1  # speeds below this share of a joint's RMS speed are omitted because of stiction


@dataclass(frozen=True, eq=False)
class CycleFits(Result):
    """Parameters of every cycle of a campaign."""

    mechanism: str  # Name of the robot
    campaign: str  # Name of the campaign
    law: str  # Friction law
    cycles: tuple[int, ...]  # Numbers of the cycles
    t: Array  # Start time of each cycle since the start of the campaign [s]
    names: tuple[str, ...]  # Parameters
    values: Array  # Their values
    std: Array  # Their standard deviations
    training: Array  # Relative error of the fitted stages
    held_out: Array  # Relative error of the validation stages; NaN without any

    def of(self, name: str) -> Array:
        """Return one parameter over the cycles."""
        if name not in self.names:
            near = [known for known in self.names if name.split("_", maxsplit=1)[0] == known.split("_")[0]] or self.names[:8]
            raise IdentificationError(f"the cycles have no parameter '{name}'; there are {', '.join(near)}")
        i = self.names.index(name)
        return np.column_stack([self.values[:, i], self.std[:, i]])

    def repeatability(self, tolerance: float = 0.02) -> Repeatability:
        """Return the drift of the parameters over the campaign."""
        return repeatability(self.estimates(), tolerance)

    def estimates(self, robot: str | None = None, test: str | None = None) -> list[Estimate]:
        """Return the cycles as rows for `repeatability`, which combines those of several campaigns."""
        return [
            Estimate(robot or self.mechanism, test or self.campaign, float(t), dict(zip(self.names, row.tolist(), strict=True)))
            for t, row in zip(self.t, self.values, strict=True)
        ]

    def summary(self) -> str:
        """Return the fits as text."""
        times = f"{len(self.cycles)} {'cycles' if len(self.cycles) > 1 else 'cycle'}"
        lines = [f"{self.mechanism}, {self.campaign}: {times}, {len(self.names)} parameters, {self.law}"]
        lines.append(f"  {'cycle':>6}{'min':>8}{'fitted [%]':>12}{'held out [%]':>14}")
        for cycle, t, a, b in zip(self.cycles, self.t, self.training, self.held_out, strict=True):
            lines.append(f"  {cycle:>6}{t / 60:>8.1f}{100 * a:>12.2f}{100 * b:>14.2f}")
        if len(self.cycles) > 1:
            lines.append(f"  {'parameter':<24}{'first':>12}{'last':>12}{'std':>10}{'change [%]':>12}")
            for i, name in enumerate(self.names):
                first, last = self.values[0, i], self.values[-1, i]
                change = 100 * (last - first) / abs(first) if first else float("nan")
                lines.append(f"  {name:<24}{first:>12.5g}{last:>12.5g}{self.std[-1, i]:>10.2g}{change:>12.2f}")
        return "\n".join(lines)

    def plot(self, name: str | None = None) -> Figure:
        """Draw one parameter over the cycles with two standard deviations."""
        from dynident.figures import BLUE, label, one_axes  # noqa: PLC0415 - matplotlib is an extra

        wanted = name or self.names[0]
        value, std = self.of(wanted).T
        title = f"{label(self.campaign)}: {label(wanted)} over the cycles"
        figure, axes = one_axes(7.2, 3.6, "time since the cold start [min]", label(wanted), title)
        axes.errorbar(self.t / 60.0, value, 2.0 * std, fmt="o-", color=BLUE, markersize=3.5, linewidth=0.9)
        return figure


def cycle_parts(cycle: CampaignLog) -> tuple[list[Log], list[Log]]:
    """Return the stages of a cycle for identification, and the stages for validation."""
    purpose = {entry["name"]: entry["purpose"] for entry in cycle.about["schedule"] if not entry["payload"]}
    stages = cycle.stages()
    training = [log for name, logs in stages.items() if purpose.get(name) in TRAINING for log in logs]
    held_out = [log for name, logs in stages.items() if purpose.get(name) == "validation" for log in logs]
    if not training:
        known = ", ".join(f"{name} ({why})" for name, why in purpose.items())
        raise IdentificationError(f"cycle '{cycle.name}' has no stage for identification: its plan has {known or 'none'}")
    return training, held_out


def identify_cycles(
    mechanism: Mechanism,
    folder: str | os.PathLike[str],
    law: FrictionLaw | str | None = None,
    *,
    cycles: Sequence[int] | None = None,
    estimator: Any = None,
    **options: Any,
) -> tuple[CycleFits, Fit]:
    """Identify a robot from each cycle of a campaign separately."""
    chosen = Polynomial() if law is None else law
    rows: list[tuple[int, float, Array, Array, float, float]] = []
    names: tuple[str, ...] = ()
    fit: Fit | None = None
    for part in read_cycles(folder):
        number = part.recordings[0].cycle
        if cycles is not None and number not in cycles:
            continue
        training, held_out = cycle_parts(part)
        fit = fit_friction(mechanism, training, chosen, {"standstill": STANDSTILL, **options}, None, estimator)
        found = fit.observability()
        if names and names != tuple(row.name for row in found):
            raise IdentificationError(
                f"cycle {number} determines different parameters than earlier cycles; record all cycles with the same plan"
            )
        names = tuple(row.name for row in found)
        errors = [fit.score(log).metrics.relative for log in held_out]
        fitted = float(np.mean([fit.score(log, allow_training=True).metrics.relative for log in training[:1]]))
        values, std = (np.array([getattr(row, key) for row in found]) for key in ("value", "std"))
        rows.append((number, float(part.t[0]), values, std, fitted, float(np.mean(errors)) if errors else float("nan")))
    if fit is None:
        what = "no complete cycle" if cycles is None else f"none of the cycles {', '.join(map(str, cycles))}"
        raise IdentificationError(f"campaign '{folder}' has {what}; see its journal")
    columns: list[Any] = list(zip(*rows, strict=True))
    name = getattr(chosen, "name", str(chosen))
    campaign = Path(folder).name
    arrays = [np.array(column) for column in columns[1:]]
    return CycleFits(mechanism.name, campaign, name, columns[0], arrays[0], names, *arrays[1:]), fit
