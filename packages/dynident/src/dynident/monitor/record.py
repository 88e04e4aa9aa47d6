"""What a monitor says about a whole log: external torques, thresholds, and events."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dynident.arrays import Array
from dynident.errors import LogError
from dynident.figures import BLUE, ORANGE, SKY, WIDTH, extremes, label, new_figure
from dynident.identify.regression.logs import match
from dynident.mechanics.closure import coordinates_from_actuators
from dynident.results import Result
from dynident.signals.log import Log

if TYPE_CHECKING:
    from dynident.monitor.monitor import Monitor


RISEN = 3.0  # of their median: so far thresholds rise at rest before it is said
SAMPLES = 2.4  # per period of the cut-off: with fewer, what the low-pass makes of a motion is not what the robot did
BLIND = 0.05  # part of a log without a result from which on it is said


@dataclass(frozen=True)
class Event:
    """One stretch of time in which the flag stood."""

    start: float  #: When it began [s]
    end: float  #: When it ended [s]
    joint: str  #: Joint whose torque was farthest beyond its threshold
    torque: float  #: Largest external torque of that joint [N m or N]
    share: float  #: Its ratio to the threshold


@dataclass(frozen=True, eq=False)
class MonitorRecord(Result):
    """A log as a monitor saw it."""

    name: str  #: Name of the log
    joints: tuple[str, ...]  #: Joints
    t: Array  #: (N,), time [s]
    q: Array  #: (N, n), positions of its coordinates
    torque: Array  #: (N, n), external torques [N m, N]; NaN where nothing can be said (`Reading`)
    threshold: Array  #: (N, n), what the model may explain [N m, N]; NaN alike
    flag: NDArray[np.bool_]  #: (N,), whether the flag stood
    level: float  #: Thresholds in standard deviations
    false_alarms: float  #: Rate [1/h] that was stated for them
    notes: tuple[str, ...] = ()  #: How the log was read
    derived = ("duration", "blind", "numbers", "events")

    @property
    def duration(self) -> float:
        """Length of the log [s]."""
        return float(self.t[-1] - self.t[0])

    @property
    def numbers(self) -> dict[str, dict[str, float]]:
        """What is told of every joint, by joint: `rms`, `largest`, `threshold`, `largest_share` and `within_two_sigma`."""
        return {name: self._numbers(i) for i, name in enumerate(self.joints)}

    def _numbers(self, i: int) -> dict[str, float]:
        """Return what is told of one joint."""
        return {
            "rms": float(np.sqrt(np.nanmean(self.torque[:, i] ** 2))),
            "largest": float(np.nanmax(np.abs(self.torque[:, i]))),
            "threshold": float(np.nanmedian(self.threshold[:, i])),
            "largest_share": float(np.nanmax(np.abs(self.shares[:, i]))),
            "within_two_sigma": float(self.coverage[i]),
        }

    def overview(self) -> dict[str, Any]:
        """Return the record without its samples, as plain values."""
        return {
            "log": self.name,
            "duration": self.duration,
            "blind": self.blind,
            "level": self.level,
            "false_alarms_per_hour": self.false_alarms,
            "joints": self.numbers,
            "events": [asdict(event) for event in self.events],
            "notes": list(self.notes),
        }

    @property
    def shares(self) -> Array:
        """Torque over threshold, (N, n)."""
        return self.torque / self.threshold

    @property
    def coverage(self) -> Array:
        """Share of the samples within two standard deviations of every joint, (n,); about 0.95 when nothing has changed."""
        inside = np.abs(self.shares) * self.level <= 2.0
        seen = np.isfinite(self.shares)
        return np.asarray((inside & seen).sum(axis=0) / np.where(seen.any(axis=0), seen.sum(axis=0), np.nan))

    @property
    def blind(self) -> float:
        """Time without a result [s]: samples that are not numbers, and those until the low-pass has settled after a start."""
        unseen = np.isnan(self.torque[1:, 0])
        return float(np.sum(np.diff(self.t), where=unseen))

    @property
    def events(self) -> tuple[Event, ...]:
        """When the flag stood, and why."""
        edges = np.flatnonzero(np.diff(self.flag.astype(int), prepend=0, append=0))
        found = []
        for first, last in zip(edges[::2], edges[1::2], strict=True):
            size = np.nan_to_num(np.abs(self.shares[first:last]))
            row, joint = np.unravel_index(int(np.argmax(size)), size.shape)
            torque = float(self.torque[first + row, joint])
            span = float(self.t[first]), float(self.t[last - 1])
            found.append(Event(*span, self.joints[joint], torque, float(size[row, joint])))
        return tuple(found)

    def __repr__(self) -> str:
        return f"MonitorRecord(log '{self.name}': {len(self.events)} events in {self.duration:.3g} s)"

    def summary(self) -> str:
        """Return the record as text. A table of the joints, and the events."""
        width = max(len("joint"), *(len(name) for name in self.joints))
        lines = [
            f"log '{self.name}': {self.duration:.3g} s, thresholds at {self.level:.2f} standard deviations "
            f"({self.false_alarms:.2g} false alarms per hour for noise like that of the fit)",
            f"{'joint':<{width}}  {'rms':>9}  {'largest':>9}  {'threshold':>9}  {'share':>6}  within 2 sigma",
        ]
        for i, name in enumerate(self.joints):
            if not np.isfinite(self.threshold[:, i]).any():
                lines.append(f"{name:<{width}}  not watched: the fit did not use its effort")
                continue
            found = self._numbers(i)
            text = "  ".join(f"{found[key]:>9.3g}" for key in ("rms", "largest", "threshold"))
            lines.append(f"{name:<{width}}  {text}  {found['largest_share']:>6.2f}  {100 * found['within_two_sigma']:.0f} %")
        if self.blind > BLIND * self.duration:
            lines.append(
                f"blind for {self.blind:.3g} s: samples that are not numbers, and the time until the low-pass has settled "
                "after a start or a gap"
            )
        lines += self._at_rest()
        for e in self.events:
            lines.append(
                f"event {e.start:.3f} to {e.end:.3f} s: '{e.joint}' {e.torque:+.3g}, {e.share:.1f} times its threshold"
            )
        return "\n".join(lines if self.events else [*lines, "no event"])

    def _at_rest(self) -> list[str]:
        """Say why torques are above the thresholds of the table and no event, where joints stand."""
        watched = [i for i in range(len(self.joints)) if np.isfinite(self.threshold[:, i]).any()]
        high = {i: float(np.nanmax(self.threshold[:, i])) for i in watched}
        rising = [i for i in watched if high[i] > RISEN * np.nanmedian(self.threshold[:, i])]
        if not rising:
            return []
        most = max(rising, key=lambda i: high[i])
        return [
            "thresholds are medians: where a joint stands its friction may be anything within its limits, and they rise (up to "
            f"{high[most]:.3g}, '{self.joints[most]}'); share is torque over threshold at the same time"
        ]

    def plot(self) -> Any:
        """Draw the external torque of every joint within its thresholds, events marked."""
        n = len(self.joints)
        figure = new_figure(WIDTH, 0.8 + 1.6 * n)
        axes = figure.subplots(n, 1, sharex=True, squeeze=False)[:, 0]
        for i, axis in enumerate(axes):
            high = np.where(np.isfinite(self.threshold[:, i]), self.threshold[:, i], 0.0)
            thin, top = extremes(self.t, high, pick=np.maximum)
            axis.fill_between(thin, -top, top, color=SKY, alpha=0.5, linewidth=0.0)
            axis.plot(*extremes(self.t, np.nan_to_num(self.torque[:, i])), color=BLUE, linewidth=0.9)
            for event in self.events:
                axis.axvspan(event.start, event.end, color=ORANGE, alpha=0.25, linewidth=0.0)
            axis.set_ylabel(label(self.joints[i]))
        axes[0].set_title(label(f"external torques of '{self.name}' and their thresholds", 90))
        axes[-1].set_xlabel("time [s]")
        figure.tight_layout()
        return figure


def watch_log(monitor: Monitor, log: Log) -> MonitorRecord:
    """Run a monitor over a log; `Monitor.run` is the short way."""
    robot = monitor.mechanism
    matched = match(robot, log)
    if matched.mechanism.coordinate_names != robot.coordinate_names:
        lost = set(robot.coordinate_names) ^ set(matched.mechanism.coordinate_names)
        raise LogError(f"log '{log.name}' does not move the joints of the fit: {', '.join(sorted(lost))}")
    own = matched.log
    slowest = SAMPLES * monitor.settings.cutoff
    if own.rate < slowest:
        raise LogError(
            f"log '{log.name}' has {own.rate:.3g} samples per second, and the low-pass of {monitor.settings.cutoff:.3g} Hz "
            f"needs {slowest:.3g}; give cutoff= of at most {own.rate / SAMPLES:.3g} Hz, or bandwidth= of a tenth of that"
        )
    monitor.reset()
    result = monitor.feed_arrays(own.t, own.position, own.effort, own.temperature)
    monitor.reset()
    if np.isnan(result[:, 0]).all():
        raise LogError(
            f"log '{log.name}' cannot be watched: it has no stretch of {monitor.settling:.3g} s in which samples are numbers "
            f"and come at most {monitor.settings.gap:.3g} s apart, which the low-pass needs to settle"
        )
    q = coordinates_from_actuators(robot, own.position) if robot.loops else own.position
    n = robot.dof
    settings = monitor.settings
    return MonitorRecord(
        log.name,
        monitor.joints,
        own.t,
        q,
        result[:, :n],
        result[:, n : 2 * n],
        result[:, 2 * n] > 0.0,
        settings.level,
        monitor.false_alarms,
        tuple(note.sentence for note in matched.notes),
    )
