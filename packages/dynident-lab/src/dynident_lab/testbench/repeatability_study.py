"""Repeatability: the same identification over cycles, tests and robots [Pagani2022, chapter 5].

    y(robot, test, cycle) = mean + robot effect + test effect + cycle effect

Parameters first drift during warm-up, then scatter. The drift is fitted by settling exponentials; the scatter of
the settled cycles is split into variance components of the nested model above (Searle, Casella and McCulloch 1992).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from dynident.arrays import Array
from dynident.errors import DynidentError
from dynident.identify import Fit
from dynident.results import Result
from dynident_lab.testbench.history import FrictionHistory
from dynident_lab.testbench.variance import Spread, nested_spread
from dynident_lab.testbench.warmup import Warmup, fit_warmup

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Estimate:
    """One identification: the parameters of one cycle of one test of one robot."""

    robot: str  # Name of the robot
    test: str  # Name of the test
    t: float  # Time since the cold start of the test [s]
    values: Mapping[str, float]  # Parameters by name

    @classmethod
    def of(cls, fit: Fit, robot: str, test: str, t: float) -> Estimate:
        """Return the estimated base parameters of a fit."""
        known = zip(fit.base.names, fit.values.tolist(), fit.solved.tolist(), strict=True)
        return cls(robot, test, t, {name: value for name, value, solved in known if solved})


def estimates_of(history: FrictionHistory, name: str = "friction") -> list[Estimate]:
    """Return a friction history as estimates, one per point."""
    rows = zip(history.t.tolist(), history.friction.tolist(), strict=True)
    return [Estimate(history.robot, history.name, t, {name: f}) for t, f in rows]


@dataclass(frozen=True, eq=False)
class ParameterRepeatability:
    """Repeatability of one parameter."""

    name: str  # Parameter
    spread: Spread  # Scatter of the settled cycles about the common drift
    drifts: Mapping[tuple[str, str], Warmup]  # Drift of every test with enough cycles
    mix: Warmup | None  # Drift of all tests together
    warmup: float  # Time after which the drift of every test is within the tolerance [s]
    settled: bool  # Whether `spread` contains settled cycles only, otherwise all


@dataclass(frozen=True, eq=False)
class Repeatability(Result):
    """Repeatability of the parameters over cycles, tests and robots."""

    parameters: tuple[ParameterRepeatability, ...]  # One per parameter
    tolerance: float  # Permitted remaining drift after the warm-up
    estimates: tuple[Estimate, ...] = field(repr=False)  # The data
    notes: tuple[str, ...] = ()  # Missing results
    derived: ClassVar[tuple[str, ...]] = ("warmup",)

    def __getitem__(self, name: str) -> ParameterRepeatability:
        for entry in self.parameters:
            if entry.name == name:
                return entry
        raise DynidentError(f"repeatability: no parameter '{name}'; it has {', '.join(p.name for p in self.parameters)}")

    @property
    def warmup(self) -> float:
        """Recommended warm-up: the time after which all parameters are within the tolerance [s]."""
        return max(entry.warmup for entry in self.parameters)

    def summary(self) -> str:
        """Return the study as text, one line per parameter."""
        robots = {e.robot for e in self.estimates}
        tests = {(e.robot, e.test) for e in self.estimates}
        lines = [
            f"repeatability of {len(self.parameters)} parameters over {len(self.estimates)} cycles, {len(tests)} tests, "
            f"{len(robots)} robots; recommended warm-up {self.warmup / 60:.3g} min (drift within {100 * self.tolerance:g} %)"
        ]
        for p in self.parameters:
            s = p.spread
            parts = ", ".join(
                f"{what} {100 * value / abs(s.mean):.2g} %"
                for what, value in (("cycles", s.cycles), ("tests", s.tests), ("robots", s.robots))
                if np.isfinite(value) and s.mean
            )
            drift = f"drift {100 * p.mix.change:+.1f} %" if p.mix is not None and p.mix.order else "no drift"
            differ = f", robots differ (p = {s.robots_p:.2g})" if s.robots_p < 0.01 else ""
            lines.append(f"  {p.name}: {s.mean:.5g}, spread of {parts}{differ}; {drift}, warm-up {p.warmup / 60:.3g} min")
        return "\n".join([*lines, *(f"  note: {note}" for note in self.notes)])

    def plot(self, name: str | None = None) -> Figure:
        """Draw one parameter over time, all tests and robots, with the common drift."""
        from dynident.figures import BLUE, GREEN, INK, MUTED, ORANGE, label, one_axes  # noqa: PLC0415

        entry = self[name or self.parameters[0].name]
        title = f"{label(entry.name)} over cycles, tests and robots"
        figure, axes = one_axes(9.4, 3.8, "time since the cold start [min]", label(entry.name), title)
        axes.set_position((0.09, 0.14, 0.7, 0.76))  # legend outside: curves of many tests fill the axes
        robots = list(dict.fromkeys(e.robot for e in self.estimates))
        colours, marks = (BLUE, ORANGE, GREEN, MUTED), "osD^v<>pXh"
        tests = {r: list(dict.fromkeys(e.test for e in self.estimates if e.robot == r)) for r in robots}
        for i, robot in enumerate(robots):
            for j, test in enumerate(tests[robot]):
                mine = [e for e in self.estimates if (e.robot, e.test) == (robot, test) and entry.name in e.values]
                x, y = [e.t / 60.0 for e in mine], [e.values[entry.name] for e in mine]
                style: dict[str, Any] = {"color": colours[i % 4], "marker": marks[j % 10], "markersize": 3.5, "linewidth": 0.6}
                axes.plot(x, y, **style, label=label(f"{robot}, {test}"))
        if entry.mix is not None:
            grid = np.linspace(0.0, max(e.t for e in self.estimates), 300)
            axes.plot(grid / 60.0, entry.mix(grid), color=INK, linewidth=1.4, label="all together")
        axes.axvline(entry.warmup / 60.0, color=MUTED, linewidth=0.9, linestyle="--", label="warm-up")
        axes.legend(frameon=False, fontsize=7, loc="upper left", bbox_to_anchor=(1.01, 1.0))
        return figure


def repeatability(estimates: Sequence[Estimate], tolerance: float = 0.02) -> Repeatability:
    """Study the drift of parameters over the warm-up and their scatter between cycles, tests and robots.

    Parameters
    ----------
    estimates : sequence of Estimate
        One per cycle of every test of every robot.
    tolerance : float
        Permitted remaining drift after the warm-up, as a share of the settled value.

    Returns
    -------
    Repeatability
        Drift, variance components and warm-up of every parameter.
    """
    if not estimates:
        raise DynidentError("repeatability: no estimates; give one per cycle")
    if not 0.0 < tolerance < 1.0:
        raise DynidentError(f"repeatability: tolerance = {tolerance} must be between 0 and 1, as a part of the settled value")
    everywhere = set(estimates[0].values).intersection(*(e.values for e in estimates))
    names = [name for name in estimates[0].values if name in everywhere]
    notes = []
    if not names:
        raise DynidentError("repeatability: no parameter is in all estimates; use the same identification for every cycle")
    lost = {name for e in estimates for name in e.values} - everywhere
    if lost:
        notes.append(f"omitted because not in every estimate: {', '.join(sorted(lost)[:6])}")
    robots = {e.robot for e in estimates}
    if len(robots) == 1:
        notes.append("only one robot: the variation between robots is unknown")
    entries = []
    for name in names:
        entry, remark = _parameter(name, estimates, tolerance)
        entries.append(entry)
        notes += remark
    return Repeatability(tuple(entries), tolerance, tuple(estimates), tuple(notes))


def _parameter(name: str, estimates: Sequence[Estimate], tolerance: float) -> tuple[ParameterRepeatability, list[str]]:
    keys = list(dict.fromkeys((e.robot, e.test) for e in estimates))
    series = {}
    for key in keys:
        rows = sorted((e.t, float(e.values[name])) for e in estimates if (e.robot, e.test) == key)
        series[key] = np.array(rows).reshape(-1, 2)
    drifts = {key: fit_warmup(x[:, 0], x[:, 1]) for key, x in series.items() if x.shape[0] >= 5}
    every = np.concatenate(list(series.values()))
    # Tests differ by a constant: otherwise the common drift would be fitted to the differences between tests.
    centre = np.mean([x[:, 1].mean() for x in series.values()])
    level = np.concatenate([x[:, 1] - x[:, 1].mean() + centre for x in series.values()])
    mix = fit_warmup(every[:, 0], level) if every.shape[0] >= 5 else None
    notes = [] if drifts else [f"{name}: fewer than 5 cycles per test; no drift can be fitted"]
    warmup = max((w.warmup_time(tolerance) for w in drifts.values() if w.order), default=0.0)
    rest = {key: x[:, 1] if mix is None else x[:, 1] - (mix(x[:, 0]) - mix.settled) for key, x in series.items()}
    late = {key: rest[key][x[:, 0] >= warmup] for key, x in series.items()}
    settled = all(values.size >= 2 for values in late.values())
    if not settled and warmup > 0.0:
        notes.append(f"{name}: some tests end before the drift is within {100 * tolerance:g} %; the spread covers all cycles")
    groups: dict[str, list[Array]] = {}
    for (robot, _), values in (late if settled else rest).items():
        groups.setdefault(robot, []).append(values)
    return ParameterRepeatability(name, nested_spread(list(groups.values())), drifts, mix, warmup, settled), notes
