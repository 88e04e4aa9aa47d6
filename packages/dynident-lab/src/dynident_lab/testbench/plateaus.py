"""Plateaus: the automatically detected intervals of a log in which a joint moves at a constant speed.

[Pagani2022, section 2.4] runs plateaus at 5, 20, 40, 60, 80 and 100 % of the speed in both directions and
discards the accelerated samples.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dynident.arrays import Array
from dynident.errors import IdentificationError, LogError
from dynident.results import Result
from dynident.signals import Log
from dynident.signals.dependence import effective_samples
from dynident.signals.quality import pieces_without_gaps
from dynident_lab.testbench.detection import constant_speeds, smooth_speeds

if TYPE_CHECKING:
    from matplotlib.figure import Figure


#: Least half width of the band in standard deviations of the speed noise.
NOISE = 4.0
#: Speeds below this share of the joint's largest speed are rest.
SLOWEST = 0.005
#: Least half width of the band as a share of the largest speed: servo ripple does not decrease with the speed.
RIPPLE = 0.002
#: A plateau is saturated if more than this share of its samples is exactly at the largest torque of the log.
SATURATED = 0.05


@dataclass(frozen=True, eq=False)
class SpeedPlateau:
    """One interval of constant speed of one joint."""

    log: str  # Name of the log
    t: float  # Middle time [s]
    duration: float  # Length [s]
    speed: float  # Mean speed with its sign [rad/s or m/s]
    speed_std: float  # Standard deviation of the speed [rad/s or m/s]
    torque: float
    torque_std: float
    temperature: float  # Mean measured temperature [degC], NaN without a sensor
    alone: bool  # Whether all other joints rested
    saturated: bool  # Whether the torque was at its limit
    q: Array = field(repr=False)  # Positions of the samples [rad or m]
    tau: Array = field(repr=False)  # Torques of the samples [N m or N]

    @property
    def samples(self) -> int:
        """Number of samples."""
        return int(self.q.size)

    def later(self, seconds: float) -> SpeedPlateau:
        """Return the same plateau on a clock with an earlier start."""
        return replace(self, t=self.t + seconds)


@dataclass(frozen=True, eq=False)
class Plateaus(Result):
    """All plateaus of one joint, in time order."""

    joint: str  # Name of the joint
    unit: str  # Unit of its torque or force
    items: tuple[SpeedPlateau, ...]  # The plateaus
    top: float  # Speed called 100 % [rad/s or m/s]
    notes: tuple[str, ...] = ()  # Decisions and omissions with their reasons

    def __len__(self) -> int:
        return len(self.items)

    @property
    def levels(self) -> Array:
        """Distinct speeds without sign [rad/s or m/s], rising: speeds closer than 5 % and 1 % of the top are merged."""
        return speed_levels(np.array([p.speed for p in self.items]), self.top)

    @property
    def directions(self) -> tuple[str, ...]:
        """Directions found: "forward", "backward" or both."""
        signs = {p.speed > 0.0 for p in self.items}
        return tuple(name for name, sign in (("forward", True), ("backward", False)) if sign in signs)

    def summary(self) -> str:
        """Return the plateaus as text, one line per speed."""
        levels = self.levels
        lines = [f"joint {self.joint}: {len(self)} plateaus at {levels.size} speeds, {' and '.join(self.directions) or 'none'}"]
        nearest = nearest_level(np.array([p.speed for p in self.items]), levels)
        for k, level in enumerate(levels):
            here = [p for p, n in zip(self.items, nearest, strict=True) if n == k]
            forward = sum(p.speed > 0.0 for p in here)
            lines.append(
                f"  {100 * level / self.top:5.1f} % = {level:.4g}/s: {forward} forward, {len(here) - forward} backward, "
                f"{sum(p.duration for p in here):.3g} s"
            )
        return "\n".join([*lines, *(f"  note: {note}" for note in self.notes)])

    def plot(self) -> Figure:
        """Draw mean torque against speed, one point per plateau."""
        from dynident_lab.testbench.plots import plot_plateaus  # noqa: PLC0415 - matplotlib is an extra

        return plot_plateaus(self)


def speed_levels(speeds: Array, top: float) -> Array:
    """Return the distinct speeds among signed ones."""
    sizes = np.sort(np.abs(speeds))
    if not sizes.size:
        return sizes
    cuts = np.flatnonzero(np.diff(sizes) > np.maximum(0.05 * sizes[1:], 0.01 * top)) + 1
    return np.array([part.mean() for part in np.split(sizes, cuts)])


def nearest_level(speeds: Array, levels: Array) -> NDArray[np.int64]:
    """Return the index of the level of each signed speed."""
    if not levels.size:
        return np.zeros(speeds.size, dtype=np.int64)
    return np.asarray(np.argmin(np.abs(np.abs(speeds)[:, None] - levels), axis=1), dtype=np.int64)


def find_plateaus(
    log: Log, joint: str, *, shortest: float = 0.25, tolerance: float = 0.03, top: float | None = None, unit: str = "N m"
) -> Plateaus:
    """Find the intervals of constant speed of one joint."""
    if joint not in log.joints:
        raise LogError(f"log '{log.name}' has no channel '{joint}'; its channels are {', '.join(log.joints)}")
    for name, value in (("shortest", shortest), ("tolerance", tolerance)):
        if not (np.isfinite(value) and value > 0.0):
            raise LogError(f"{name} = {value} of a plateau must be above zero; 0.25 s and 0.03 are usual")
    j, torque = log.joints.index(joint), log.torque()
    pieces = []
    for start, stop in pieces_without_gaps(log):
        if (stop - start) / log.rate >= 2.0 * shortest:
            v, sigma = smooth_speeds(log.rows(start, stop), shortest)
            pieces.append((start, stop, v, sigma))
    if not pieces:
        raise LogError(
            f"log '{log.name}' has no segment of {2 * shortest:g} s without gaps or missing values; record longer segments"
        )
    largest = np.max([np.percentile(np.abs(v), 99.9, axis=0) for _, _, v, _ in pieces], axis=0)
    limit = np.nanmax(np.abs(torque[:, j]))
    items, rounded = [], 0
    for start, _, v, sigma in pieces:
        found, dropped = constant_speeds(
            v[:, j],
            log.rate,
            shortest,
            tolerance,
            admitted=max(NOISE * sigma[j], RIPPLE * largest[j]),
            rest=max(10.0 * sigma[j], SLOWEST * largest[j]),
        )
        rounded += dropped
        quiet = np.abs(v) <= np.maximum(5.0 * sigma, SLOWEST * largest)
        for a, b in found:
            q, tau = log.position[start + a : start + b, j], torque[start + a : start + b, j]
            good = np.isfinite(q) & np.isfinite(tau)
            q, tau = q[good], tau[good]
            if tau.size < 8:
                continue
            at_limit = float(np.mean(np.abs(tau) >= limit * (1.0 - 1e-9)))
            items.append(
                SpeedPlateau(
                    log=log.name,
                    t=float(0.5 * (log.t[start + a] + log.t[start + b - 1])),
                    duration=float(log.t[start + b - 1] - log.t[start + a]),
                    speed=float(v[a:b, j].mean()),
                    speed_std=float(v[a:b, j].std()),
                    torque=float(tau.mean()),
                    torque_std=float(tau.std(ddof=1) / np.sqrt(effective_samples(_detrended(tau)))),
                    temperature=_mean_temperature(log, start + a, start + b, j),
                    alone=bool(np.all(np.delete(quiet[a:b], j, axis=1))),
                    saturated=at_limit > SATURATED and tau.size * at_limit >= 3,
                    q=q,
                    tau=tau,
                )
            )
    if not items:
        raise IdentificationError(
            f"log '{log.name}' has no plateau of joint '{joint}': its speed never stays within {100 * tolerance:g} % for "
            f"{shortest:g} s ({rounded} rounded peaks ignored); record constant speeds in both directions"
        )
    notes = [f"{rounded} segments ignored: their speed has rounded peaks instead of plateaus with corners"] if rounded else []
    return Plateaus(joint, unit, tuple(items), float(top or max(abs(p.speed) for p in items)), tuple(notes))


def _mean_temperature(log: Log, start: int, stop: int, j: int) -> float:
    if log.temperature is None or not np.isfinite(log.temperature[start:stop, j]).any():
        return float("nan")
    return float(np.nanmean(log.temperature[start:stop, j]))


def _detrended(tau: Array) -> Array:
    """Return the torque without the parabola due to gravity over a plateau, which is not noise."""
    x = np.linspace(-1.0, 1.0, tau.size)
    return np.asarray(tau - np.polynomial.legendre.legval(x, np.polynomial.legendre.legfit(x, tau, 2)))
