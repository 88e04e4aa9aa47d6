"""Heating of joints in a campaign: friction power from the logs, normalised friction over time, thermal models.

    W(t) = f_cold(v) v, mean and RMS over some seconds        r(t) = friction at all speeds / that of the first sweep

The cold law is a polynomial in |v|, so the moments of the speed are sufficient data of a cycle [Pagani2022, eqs. 35, 129].
Power changes within a cycle and the fast time constant is shorter than a cycle, so a mean over cycles is not sufficient.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from dynident.arrays import Array
from dynident.errors import DynidentError, IdentificationError
from dynident.mechanism import Mechanism
from dynident.results import Result
from dynident.signals import Log
from dynident.signals.matching import match
from dynident_lab.campaigns.log import CampaignLog, read_cycles
from dynident_lab.testbench.curves import FrictionCurves
from dynident_lab.testbench.moments import DEGREE, SpeedMoments
from dynident_lab.testbench.plateaus import nearest_level
from dynident_lab.testbench.study import FrictionStudy, JointStudy, friction_study
from dynident_lab.testbench.thermal import Kind, fit_thermal
from dynident_lab.testbench.thermal_data import ThermalFit, ThermalTest
from dynident_lab.thermal.models import FirstOrder, SecondOrder

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def normalised_friction(curves: FrictionCurves, clocks: Sequence[tuple[float, float]]) -> tuple[Array, Array, Array]:
    """Return the friction of every sweep over that of the first one, all speeds together."""
    speed = np.array([p.speed for p in curves.plateaus])
    t = np.array([p.t for p in curves.plateaus])
    key = nearest_level(speed, curves.levels) * 2 + (speed > 0.0)
    rows, first = [], np.full(2 * curves.levels.size, np.nan)
    for begin, end in clocks:
        inside = np.flatnonzero((t >= begin) & (t <= end))
        if not inside.size:
            continue
        if np.isnan(first).all():
            for k in np.unique(key[inside]):
                first[k] = curves.friction[inside[key[inside] == k]].mean()
        known = inside[np.isfinite(first[key[inside]])]
        if not known.size:
            continue
        f, f0, w = curves.friction[known], first[key[known]], 1.0 / np.maximum(curves.std[known], 1e-12) ** 2
        total = float(np.sum(w * f0**2))
        rows.append((float(t[known].mean()), float(np.sum(w * f * f0)) / total, total**-0.5))
    if len(rows) < 2:
        raise IdentificationError(f"joint '{curves.joint}' has {len(rows)} sweeps of plateaus; a warm-up needs at least two")
    when, ratio, std = np.array(rows).T
    return when, ratio, std


@dataclass(frozen=True, eq=False)
class JointHeating(Result):
    """Warm-up of one joint in a campaign."""

    joint: str  # Name of the joint
    unit: str  # Unit of its friction
    cold: float  # Friction of the first sweep at the level of the study [N m or N]
    coefficients: tuple[float, ...]  # Cold friction a0, a1,
    t: Array  # Times of the sweeps [s]
    ratio: Array  # Friction over that of the first sweep
    std: Array  # Standard deviation of the ratio
    power_t: Array  # Times of the power [s]
    power: Array  # Cold friction power from each time on [W]
    fits: tuple[ThermalFit, ...]  # Thermal models, best first
    rms_power: float = float("nan")  # Root mean square of the cold friction power [W]; NaN if not computed
    derived: ClassVar[tuple[str, ...]] = ("mean_power", "cold_over_hot", "cold_over_hot_std")

    @property
    def mean_power(self) -> float:
        """Mean cold friction power [W]."""
        return float(self.power[:-1] @ np.diff(self.power_t) / (self.power_t[-1] - self.power_t[0]))

    @property
    def best(self) -> ThermalFit:
        """The thermal model with the smallest error."""
        return self.fits[0]

    @property
    def cold_over_hot(self) -> float:
        """Friction of the joint at rest temperature over that of the last sweeps, minus one; from the thermal model."""
        test, hot = self.best.tests[0], self._last
        return float(self.best.predicted[0][0] / np.mean(self.best.predicted[0][test.seen][-hot:]) - 1.0)

    @property
    def _last(self) -> int:
        return max(1, self.t.size // 10)

    @property
    def cold_over_hot_std(self) -> float:
        """Standard deviation of `cold_over_hot`, from the cold friction and the last sweeps."""
        hot = float(np.mean(self.ratio[-self._last :]))
        return float(np.hypot(self.std[0], np.mean(self.std[-self._last :]) / np.sqrt(self._last) / hot) / hot)

    def summary(self) -> str:
        """Return the joint as text."""
        change = f"cold {100 * self.cold_over_hot:+.1f} +- {100 * self.cold_over_hot_std:.2g} % over hot"
        power = f"{self.mean_power:.4g} W cold friction power (RMS {self.rms_power:.4g} W)"
        lines = [f"joint {self.joint}: {power}, {change}"]
        for fit in self.fits:
            errors = fit.errors(self.cold)
            cells = ", ".join(f"{name} {a:.2g} {self.unit} ({100 * b:.2g} %)" for name, (a, b) in errors.items())
            taus = " and ".join(f"{x / 60:.3g} +- {x * d / 60:.2g}" for x, d in fit.constants.values())
            lines.append(f"  {type(fit.model).__name__}: {cells}; time constants {taus or '-'} min")
        return "\n".join(lines)

    def plot(self) -> Figure:
        """Draw normalised friction over time with the thermal models."""
        from dynident_lab.testbench.plots import plot_heating  # noqa: PLC0415 - matplotlib is an extra

        return plot_heating(self)


@dataclass(frozen=True, eq=False)
class CampaignStudy(Result):
    """Friction of a campaign: curves, warm-up, friction power and thermal models of every joint."""

    study: FrictionStudy  # Curves, histories and warm-up per joint
    heating: tuple[JointHeating, ...]  # Power and thermal models per joint
    notes: tuple[str, ...] = ()  # Failures with their reasons

    def of(self, joint: str) -> JointHeating:
        """Return the heating of one joint."""
        for entry in self.heating:
            if entry.joint == joint:
                return entry
        raise DynidentError(f"the campaign study has no joint '{joint}'; it has {', '.join(e.joint for e in self.heating)}")

    def numbers(self) -> dict[str, Any]:
        """Return the study as plain values, without the samples behind them."""
        rows = []
        for h in self.heating:
            models = {
                type(fit.model).__name__: {"time_constants": dict(fit.constants), "errors": fit.errors(h.cold)}
                for fit in h.fits
            }
            facts = {"joint": h.joint, "cold": h.cold, "coefficients": list(h.coefficients), "mean_power": h.mean_power}
            facts["rms_power"] = h.rms_power
            change = {"cold_over_hot": h.cold_over_hot, "cold_over_hot_std": h.cold_over_hot_std}
            rows.append({**facts, **change, "t": h.t.tolist(), "ratio": h.ratio.tolist(), "models": models})
        return {"study": self.study.numbers(), "heating": rows, "notes": list(self.notes)}

    def summary(self) -> str:
        """Return the study as text."""
        return "\n".join([self.study.summary(), *(entry.summary() for entry in self.heating), *self.notes])

    def plot(self, joint: str | None = None) -> Figure:
        """Draw normalised friction over time of one joint."""
        return self.of(joint or self.heating[0].joint).plot()


def friction_parts(cycle: CampaignLog) -> list[Log]:
    """Return the friction stages of a cycle according to its plan, or the whole cycle."""
    wanted = {entry["name"] for entry in cycle.about["schedule"] if entry["purpose"] == "friction"}
    stages = [log for name, logs in cycle.stages().items() if name in wanted for log in logs]
    return stages or list(cycle.cycles().values())


def campaign_study(
    mechanism: Mechanism,
    folder: str | os.PathLike[str],
    models: Sequence[Kind] = (SecondOrder, FirstOrder),
    **options: Any,
) -> CampaignStudy:
    """Study the friction of a campaign, one cycle in memory at a time."""
    logs: list[Log] = []
    moments: list[SpeedMoments] = []
    for cycle in read_cycles(folder):
        parts = friction_parts(cycle)
        logs += parts
        moments.append(SpeedMoments.of(match(mechanism, next(iter(cycle.cycles().values()))).log))
    if not logs:
        raise IdentificationError(f"campaign '{folder}' has no complete cycle yet; wait for the first one")
    study = friction_study(mechanism, logs, starts=[0.0] * len(logs), **options)
    found, notes = [], []
    for entry in study.joints:
        try:
            found.append(_heating(entry, moments, models))
        except DynidentError as error:
            notes.append(f"joint {entry.joint} has no thermal model: {error}")
    return CampaignStudy(study, tuple(found), tuple(notes))


def _heating(entry: JointStudy, moments: Sequence[SpeedMoments], models: Sequence[Kind]) -> JointHeating:
    """Return power and thermal models of one joint."""
    clocks = [(float(m.t[0]), float(m.t[-1])) for m in moments]
    t, ratio, std = normalised_friction(entry.curves, clocks)
    begin, end = clocks[0]
    first = [(p, f) for p, f in zip(entry.curves.plateaus, entry.curves.friction, strict=True) if begin <= p.t <= end]
    v, f = (np.array(x) for x in zip(*((p.speed, f) for p, f in first), strict=True))
    degree = min(DEGREE, np.unique(np.round(np.abs(v) / entry.curves.top, 2)).size - 1)
    columns = np.stack([np.sign(v) * np.abs(v) ** k for k in range(degree + 1)], axis=-1)
    law = np.linalg.lstsq(columns, f, rcond=None)[0]
    times, powers, squares = [], [], 0.0
    for part, after in zip(moments, [*clocks[1:], (np.inf, np.inf)], strict=True):
        times += part.t[:-1].tolist()
        powers += np.maximum(part.power(entry.joint, law), 0.0).tolist()
        squares += float(part.rms_power(entry.joint, law) ** 2 @ np.diff(part.t))
        if after[0] > part.t[-1] + 1e-6:  # a rest until the next cycle
            times.append(float(part.t[-1]))
            powers.append(0.0)
    test = _test(entry.joint, t, ratio, np.array(times), np.array(powers))
    fits = sorted((fit_thermal(test, model) for model in models), key=lambda fit: fit.rss)
    k = int(np.argmin(np.abs(entry.curves.levels - entry.history.speed)))
    cold = abs(_at_speed(law, float(entry.curves.levels[k])))
    found: dict[str, Any] = {
        "t": t,
        "ratio": ratio,
        "std": std,
        "power_t": np.array(times),
        "power": np.array(powers),
        "fits": tuple(fits),
    }
    rms = float(np.sqrt(squares / (times[-1] - times[0]))) if times[-1] > times[0] else float("nan")
    return JointHeating(entry.joint, entry.curves.unit, cold, tuple(law.tolist()), **found, rms_power=rms)


def _at_speed(law: Array, speed: float) -> float:
    """Return the friction of the polynomial at a speed above zero."""
    return float(np.polynomial.polynomial.polyval(speed, law))


def _test(joint: str, t: Array, ratio: Array, times: Array, powers: Array) -> ThermalTest:
    """Return a thermal test with all times of power changes or friction measurements."""
    grid = np.union1d(times[times <= t[-1]], t)
    power = powers[np.clip(np.searchsorted(times, grid, side="right") - 1, 0, powers.size - 1)]
    measured = np.isin(grid, t)
    values = np.ones(grid.size)
    values[measured] = ratio
    return ThermalTest(grid, values, power, name=joint, measured=measured)
