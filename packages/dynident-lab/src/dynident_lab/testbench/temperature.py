"""Comparison of models with and without the measured temperature, on held-out files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dynident.errors import IdentificationError
from dynident.friction import Coulomb, FrictionLaw, TemperatureDependent, Viscous
from dynident.identify import Fit, Metrics, fit_friction
from dynident.mechanism import Mechanism
from dynident.results import Result
from dynident.signals import Log

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, eq=False)
class TemperatureComparison(Result):
    """The same law with and without temperature, on held-out logs."""

    plain: Fit  # Fit without temperature
    warm: Fit  # Fit with temperature
    held_out: Mapping[str, tuple[Metrics, Metrics]]  # Errors on each held-out log, without and with temperature
    reference: float  # Reference temperature of the friction parameters [degree Celsius]

    @property
    def helps(self) -> bool:
        """True if the temperature lowers the relative error of every held-out log."""
        return all(warm.relative < plain.relative for plain, warm in self.held_out.values())

    @property
    def alpha(self) -> dict[str, tuple[float, float]]:
        """Change of the friction with temperature of each joint [1/K] and its standard deviation."""
        found = {}
        for row in self.warm.observability():
            joint = row.name.removeprefix("alpha_")
            if joint != row.name:
                found[joint] = (row.value, row.std)
        return found

    def summary(self) -> str:
        """Return errors of each held-out log, and alpha of each joint, as text."""
        lines = [
            f"{name}: {100 * plain.relative:.2f} % without temperature, {100 * warm.relative:.2f} % with it"
            for name, (plain, warm) in self.held_out.items()
        ]
        slopes = ", ".join(f"{joint} {100 * a:.2f} +- {100 * s:.2f} %/K" for joint, (a, s) in self.alpha.items())
        verdict = (
            "the temperature helps on every held-out log" if self.helps else "the temperature does not help on all of them"
        )
        return "\n".join([*lines, f"alpha at {self.reference:.1f} degree Celsius: {slopes}", verdict])

    def plot(self) -> Figure:
        """Draw the errors of the held-out logs without and with temperature."""
        from dynident.figures import BLUE, ORANGE, label, one_axes  # noqa: PLC0415 - matplotlib is an extra

        figure, axes = one_axes(7.2, 3.6, "held-out log", "relative error [%]", "Friction with and without temperature")
        at = np.arange(len(self.held_out))
        for k, (name, colour) in enumerate((("without temperature", BLUE), ("with temperature", ORANGE))):
            axes.bar(
                at + 0.4 * k - 0.2, [100 * pair[k].relative for pair in self.held_out.values()], 0.38, color=colour, label=name
            )
        axes.set_xticks(at, [label(name, 18) for name in self.held_out])
        axes.legend(frameon=False, fontsize=8)
        return figure


def compare_temperature(
    mechanism: Mechanism, training: Sequence[Log], held_out: Sequence[Log], law: FrictionLaw | None = None
) -> TemperatureComparison:
    """Fit a friction law with and without temperature and compare both on held-out logs.

    The robot is a tree; its training logs have two or more temperatures. The law is Coulomb and viscous friction when omitted.
    """
    logs = [*training, *held_out]
    for log in logs:
        if log.temperature is None:
            raise IdentificationError(f"log '{log.name}' has no temperatures; a temperature-dependent law needs them")
    spans = [float(np.ptp([np.nanmean(log.temperature[:, j]) for log in training])) for j in range(len(training[0].joints))]  # type: ignore[index]
    if max(spans) < 1.0:
        raise IdentificationError(
            f"the training logs differ by at most {max(spans):.2g} K; record a cold and a warm run to identify the effect "
            "of temperature"
        )
    reference = float(np.mean([np.nanmean(log.temperature) for log in training]))  # type: ignore[arg-type]
    inner = law or Coulomb() + Viscous()
    plain = fit_friction(mechanism, training, inner)
    warm = fit_friction(mechanism, training, TemperatureDependent(inner, reference))
    return TemperatureComparison(
        plain, warm, {log.name: (plain.score(log).metrics, warm.score(log).metrics) for log in held_out}, reference
    )
