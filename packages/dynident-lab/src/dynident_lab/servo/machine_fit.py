"""Fit of a simulator to measured torques: inertia and friction of its drives for the response of the real machine.

    minimise sum over runs of || F (tau_measured - tau_simulated(p)) ||^2        p > 0, F a zero-phase low-pass

The whole closed loop is simulated for every p [Roldan2017, section 4.2.4.2], so nothing is differentiated and limits, cycle
times and elastic shafts are included. Gauss-Newton on log p; numbers of drives are inputs of the compiled machine, so it is
not compiled again.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from dynident.arrays import Array
from dynident.checks import number
from dynident.drive import Drive
from dynident.errors import IdentificationError, SimulationError, SimulationWarning, require
from dynident.friction import Friction
from dynident.results import Result
from dynident.signals import Log, butterworth
from dynident.simulate import VirtualRobot

if TYPE_CHECKING:
    from matplotlib.figure import Figure


STEP = 0.02  # relative step of the finite differences: sampling makes torques rough on a smaller scale
ITERATIONS, CLOSE = 12, 2e-3  # largest number of steps, and the relative change at convergence
ORDER = 3  # order of the Butterworth low-pass, as in [Roldan2017]
EDGE = 0.05  # share of a run at each end affected by filter transients


@dataclass(frozen=True, eq=False)
class MachineFit(Result):
    """Numbers of a machine's drives, fitted to torque logs."""

    names: tuple[str, ...]
    start: Array  # Values before the fit
    values: Array  # Values after the fit
    std: Array  # Standard deviations
    before: float  # RMS of the torque difference over the RMS of the torque, before the fit
    after: float  # The same after the fit
    actuators: tuple[str, ...]  # Motors
    t: Array  # Times of all runs, one after the other [s]
    measured: Array
    first: Array
    fitted: Array
    shared: bool  # Whether all drives have the same numbers

    def apply(self, robot: VirtualRobot) -> VirtualRobot:
        """Return a copy of the machine with the fitted numbers."""
        numbers = tuple(name.split(" ")[-1] for name in self.names)
        own = numbers if self.shared else numbers[: len(numbers) // len(self.actuators)]
        return _with(robot, own, self.values, self.shared)

    def summary(self) -> str:
        """Return the numbers before and after as text, one line each."""
        rows = zip(self.names, self.start, self.values, self.std, strict=True)
        lines = [f"  {name:>20} {a:.5g} -> {b:.5g} ± {s:.2g} (x {b / a:.4g})" for name, a, b, s in rows]
        return "\n".join([f"torque difference {100 * self.before:.1f} % -> {100 * self.after:.1f} % of the torque", *lines])

    def plot(self) -> Figure:
        """Draw measured and simulated torques, before and after."""
        from dynident.figures import BLUE, MUTED, ORANGE, extremes, finish, label, new_figure  # noqa: PLC0415 - an extra

        count = len(self.actuators)
        figure = new_figure(10.0, 1.0 + 1.7 * count)
        curves = (self.measured, MUTED, "measured"), (self.first, ORANGE, "before"), (self.fitted, BLUE, "fitted")
        for i, name in enumerate(self.actuators):
            axes = figure.add_axes((0.08, 1.0 - (i + 0.9) / (count + 0.15), 0.9, 0.68 / count))
            for y, colour, text in curves:
                axes.plot(*extremes(self.t, y[:, i]), color=colour, linewidth=0.9, label=text)
            finish(axes, "time [s]" if i == count - 1 else "", "effort as logged", label(name))
            if i == 0:  # above the panel, clear of the curves
                axes.legend(frameon=False, fontsize=8, ncols=3, loc="lower right", bbox_to_anchor=(1.0, 1.0), borderaxespad=0.0)
        return figure


def fit_machine(
    robot: VirtualRobot,
    references: Sequence[object],
    logs: Sequence[Log],
    numbers: Sequence[str] = ("inertia", "fc"),
    *,
    shared: bool = True,
    cutoff: float = 30.0,
    effort: Sequence[str] | None = None,
) -> MachineFit:
    """Fit inertia and friction of a machine's drives to logged torques, by simulating the machine.

    Parameters
    ----------
    robot : VirtualRobot
        The machine with the initial numbers.
    references : sequence
        Reference of every run, as in `VirtualRobot.simulate`.
    logs : sequence of Log
        Recorded log of every run, from its start on; with efforts of the same kind as the machine's log.
    numbers : sequence of str
        Parameters to fit: ``"inertia"`` of the motors, and parameters of their friction laws such as ``"fc"``.
    shared : bool
        True for the same numbers in all drives.
    cutoff : float
        Cut-off of the zero-phase low-pass of both efforts [Hz].
    effort : sequence of str, optional
        Channels of the logs in the order of the machine's; the same names when omitted.

    Returns
    -------
    MachineFit
        Numbers with standard deviations, and the torques before and after.
    """
    require(robot, VirtualRobot, "robot")
    runs, records = list(references), list(logs)
    if not runs or len(runs) != len(records):
        raise IdentificationError(f"there are {len(runs)} references and {len(records)} logs; give one log for every reference")
    chosen = tuple(numbers)
    start = _read(robot, chosen, shared)
    compare = _Comparison(robot, runs, records, number("cutoff", cutoff, above=0.0, unit="Hz"), effort)
    scale = compare.size

    def left(logarithm: Array) -> Array | None:
        """Return the differences of the torques, or None if the machine is unstable with these numbers."""
        try:
            found = compare.simulated(_with(robot, chosen, np.exp(logarithm), shared))
            return np.asarray((found - compare.measured).ravel() / scale)
        except SimulationError:
            return None

    first = compare.simulated(robot)
    x, r, J = _descend(left, np.log(start), (first - compare.measured).ravel() / scale)
    values = np.exp(x)
    fitted = (r * scale).reshape(first.shape) + compare.measured
    # Neighbouring samples within the band are dependent.
    spread = np.linalg.pinv(J.T @ J) * float(r @ r) / max(1, compare.independent - values.size)
    names = chosen if shared else tuple(f"{drive.actuator} {name}" for drive in robot.drives for name in chosen)
    actuators = tuple(drive.actuator for drive in robot.drives)
    before, after = (float(np.sqrt(np.mean((x - compare.measured) ** 2))) / scale for x in (first, fitted))
    std, signals = values * np.sqrt(np.diag(spread)), (compare.t, compare.measured, first, fitted)
    return MachineFit(names, start, values, std, before, after, actuators, *signals, shared)


def _descend(left: Callable[[Array], Array | None], x: Array, r: Array) -> tuple[Array, Array, Array]:
    """Return numbers, differences and slopes at the least squares; steps shrink for unstable machines or worse fits."""
    for _ in range(ITERATIONS):
        J = np.column_stack([_slope(left, x, r, i) for i in range(x.size)])
        step = np.clip(np.linalg.lstsq(J, -r, rcond=None)[0], -0.7, 0.7)  # a factor of two at most
        for share in (1.0, 0.5, 0.25, 0.1):
            there = left(x + share * step)
            if there is not None and there @ there < r @ r:
                break
        else:
            return x, r, J
        x, gain, r = x + share * step, 1.0 - float(there @ there) / float(r @ r), there
        if np.abs(share * step).max() < CLOSE or gain < 1e-4:
            break
    return x, r, J


def _slope(left: Callable[[Array], Array | None], x: Array, r: Array, i: int) -> Array:
    """Return the derivative with respect to one number: forward, or backward if the machine is unstable ahead."""
    for step in (STEP, -STEP):
        there = left(x + step * (np.arange(x.size) == i))
        if there is not None:
            return np.asarray((there - r) / step)
    raise IdentificationError(
        "the machine becomes unstable when parameters change slightly; lower its gains or change the start values"
    )


def _read(robot: VirtualRobot, names: tuple[str, ...], shared: bool) -> Array:
    """Return the initial numbers of the drives; of the first drive if all drives share them."""
    if not names or len(set(names)) != len(names):
        raise IdentificationError(f"numbers are {', '.join(names) or 'empty'}; name each once, as in ('inertia', 'fc')")
    drives = robot.drives[:1] if shared else robot.drives
    values = [
        drive.motor.inertia if name == "inertia" else _law(drive)[_full(drive, name)] for drive in drives for name in names
    ]
    for name, value in zip(names * len(drives), values, strict=True):
        if not value > 0.0:
            raise IdentificationError(f"'{name}' is {value:g} at the start; give the machine a first guess above zero")
    return np.array(values)


def _law(drive: Drive) -> dict[str, float]:
    return drive.friction.parameters if isinstance(drive.friction, Friction) else {}


def _full(drive: Drive, name: str) -> str:
    """Return a parameter of a drive's law by its full name or its last part."""
    known = [x for x in _law(drive) if x == name or x.endswith("." + name)]
    if len(known) != 1:
        raise IdentificationError(
            f"numbers name '{name}'; drive '{drive.actuator}' has inertia{''.join(', ' + x for x in _law(drive))}"
        )
    return known[0]


def _with(robot: VirtualRobot, names: tuple[str, ...], values: Array, shared: bool) -> VirtualRobot:
    """Return a machine with other numbers in its drives."""
    rows = np.broadcast_to(values, (len(robot.drives), len(names))) if shared else values.reshape(len(robot.drives), len(names))
    drives = []
    for drive, row in zip(robot.drives, rows, strict=True):
        changed: dict[str, Any] = {}
        for name, value in zip(names, row, strict=True):
            if name == "inertia":
                changed["motor"] = replace(drive.motor, inertia=float(value))
                continue
            law: Any = changed.get("friction", drive.friction)
            if law is None:
                raise SimulationError(f"drive '{drive.actuator}' has no friction law for '{name}'; give the machine of the fit")
            numbers = law.values.copy()
            numbers[list(law.parameters).index(_full(drive, name))] = value
            changed["friction"] = replace(law, values=numbers)
        drives.append(replace(drive, **changed))
    return replace(robot, drives=tuple(drives))


class _Comparison:
    """Measured and simulated efforts at the same times and in the same band."""

    def __init__(
        self, robot: VirtualRobot, references: list[object], logs: list[Log], cutoff: float, effort: Sequence[str] | None
    ) -> None:
        self.references, self.logs, self.cutoff = references, logs, cutoff
        channels = list(effort) if effort is not None else [drive.actuator for drive in robot.drives]
        self.measured = np.concatenate([self._filtered(log.t, _effort(log, channels, robot)) for log in logs])
        ends = np.cumsum([0.0, *(float(log.t[-1] - log.t[0]) for log in logs)])
        self.t = np.concatenate([log.t[self._inside(log.t)] - log.t[0] + end for log, end in zip(logs, ends, strict=False)])
        self.size = float(np.sqrt(np.mean(self.measured**2)))
        if self.size == 0.0:
            raise IdentificationError("the logs contain no effort; record a run with measurable effort")
        self.independent = max(1, int(sum(2.0 * cutoff * float(np.ptp(log.t)) for log in logs) * len(channels)))

    def _inside(self, t: Array) -> slice:
        edge = int(EDGE * t.size)
        return slice(edge, t.size - edge)

    def _filtered(self, t: Array, y: Array) -> Array:
        rate = (t.size - 1) / float(t[-1] - t[0])
        if self.cutoff >= 0.5 * rate:
            raise IdentificationError(f"cutoff is {self.cutoff:g} Hz; give less than half the log's rate, {0.5 * rate:g} Hz")
        return butterworth(rate, y, self.cutoff, order=ORDER)[0][self._inside(t)]

    def simulated(self, robot: VirtualRobot) -> Array:
        """Return the filtered efforts of a machine in all runs."""
        found = []
        for wanted, log in zip(self.references, self.logs, strict=True):
            t = log.t - log.t[0]
            with warnings.catch_warnings():  # limits reached by a trial do not concern the machine
                warnings.simplefilter("ignore", SimulationWarning)
                run = robot.simulate(wanted, duration=float(t[-1]))
            own = _effort(run.log, [drive.actuator for drive in robot.drives], robot)
            y = np.column_stack([np.interp(t, run.log.t - run.log.t[0], column) for column in own.T])
            found.append(self._filtered(log.t, y))
        return np.concatenate(found)


def _effort(log: Log, channels: list[str], robot: VirtualRobot) -> Array:
    """Return the efforts of a log in the order of the machine's drives."""
    names = list(log.joints)
    missing = [name for name in channels if name not in names]
    if missing:
        raise IdentificationError(
            f"the log has no effort of '{missing[0]}', only of {', '.join(names)}; name its channels with effort= in the "
            f"order of {', '.join(drive.actuator for drive in robot.drives)}"
        )
    return np.asarray(log.effort)[:, [names.index(name) for name in channels]]
