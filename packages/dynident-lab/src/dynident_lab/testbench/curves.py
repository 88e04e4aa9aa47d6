"""Friction against speed, one curve per temperature: gravity removed, mean over plateaus, both directions.

f(v) = mean over the plateau of [tau - Q_a cos q + Q_b sin q]        [Pagani2022, eqs. 84 and 128]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dynident.arrays import Array
from dynident.errors import IdentificationError
from dynident.results import Result
from dynident.signals.dependence import effective_samples
from dynident_lab.testbench.curve import FrictionCurve
from dynident_lab.testbench.gravity import NO_GRAVITY, Gravity, plateau_gravity
from dynident_lab.testbench.groups import group_plateaus
from dynident_lab.testbench.history import FrictionHistory
from dynident_lab.testbench.plateaus import Plateaus, SpeedPlateau, nearest_level

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, eq=False)
class FrictionCurves(Result):
    """Friction of one joint: curves per temperature, and their plateaus."""

    joint: str  # Name of the joint
    unit: str  # Unit of its friction
    top: float  # Speed called 100 % [rad/s or m/s]
    levels: Array  # Speeds without sign, rising
    curves: tuple[FrictionCurve, ...]  # Coldest or earliest first
    gravity: Gravity  # Gravity removed from the torques
    plateaus: tuple[SpeedPlateau, ...]  # Used plateaus, in time order
    friction: Array  # Friction of each plateau, with the sign of its speed
    std: Array  # Its standard deviation
    notes: tuple[str, ...]  # Omissions and failures with their reasons

    def history(self, level: float = 0.6, robot: str = "robot", name: str = "test") -> FrictionHistory:
        """Return the friction at one speed over time, one point per sweep, mean of the two directions."""
        k = int(np.argmin(np.abs(self.levels - level * self.top)))
        at = nearest_level(np.array([p.speed for p in self.plateaus]), self.levels) == k
        sweep = group_plateaus([p for p, a in zip(self.plateaus, at, strict=True) if a], self.top, "time", None)[0]
        index = np.flatnonzero(at)
        rows = []
        for group in sweep:
            i = index[group]
            sign = np.array([np.sign(self.plateaus[j].speed) for j in i])
            ways = [(self.friction[i] * sign)[sign == s] for s in (1.0, -1.0) if np.any(sign == s)]
            # The offset between the directions is no change of friction: only sweeps with both are comparable.
            heat = [self.plateaus[j].temperature for j in i]
            rows.append(
                (
                    float(np.mean([self.plateaus[j].t for j in i])),
                    float(np.mean([w.mean() for w in ways])),
                    float(np.sqrt(np.sum(self.std[i] ** 2)) / i.size),
                    float(np.mean(heat)),
                    len(ways),
                )
            )
        most = max(r[4] for r in rows)
        table = np.array([r[:4] for r in rows if r[4] == most])
        measured = table[:, 3]
        return FrictionHistory(
            t=table[:, 0],
            friction=table[:, 1],
            std=table[:, 2],
            temperature=measured if np.all(np.isfinite(measured)) else None,
            joint=self.joint,
            unit=self.unit,
            speed=float(self.levels[k]),
            robot=robot,
            name=name,
        )

    def summary(self) -> str:
        """Return the curves as text, one line each, then the notes."""
        g = self.gravity
        fall = f"gravity Qa {g.Qa:.4g} +- {g.std[0]:.2g}, Qb {g.Qb:.4g} +- {g.std[1]:.2g} N m" if g.removed else "no gravity"
        lines = [f"joint {self.joint}: {len(self.plateaus)} plateaus, {len(self.curves)} curves, {fall} removed"]
        for c in self.curves:
            points = ", ".join(f"{100 * v / self.top:.0f} %: {f:.4g}" for v, f in zip(c.speed, c.torque, strict=True))
            lines.append(f"  {c.label}: {points} {self.unit} (std of means up to {c.std.max():.2g})")
        return "\n".join([*lines, *(f"  note: {note}" for note in self.notes)])

    def plot(self) -> Figure:
        """Draw friction against speed, one curve per temperature."""
        from dynident_lab.testbench.plots import plot_curves  # noqa: PLC0415 - matplotlib is an extra

        return plot_curves(self)


def friction_curves(
    plateaus: Plateaus, *, by: str = "auto", width: float | None = None, gravity: Gravity | bool = True
) -> FrictionCurves:
    """Remove gravity and average plateaus into curves of friction against speed."""
    used, notes = _usable(plateaus)
    speeds = np.array([p.speed for p in used])
    levels = Plateaus(plateaus.joint, plateaus.unit, used, plateaus.top).levels
    if levels.size < 2:
        raise IdentificationError(
            f"joint '{plateaus.joint}' has plateaus at one speed only ({levels[0]:.4g}/s, {len(used)} plateaus); record at "
            "least 2 speeds, better 5, 20, 40, 60, 80 and 100 %"
        )
    if np.all(speeds > 0.0) or np.all(speeds < 0.0):
        way = "forward" if speeds[0] > 0.0 else "backward"
        notes.append(
            f"only {way} plateaus: a torque offset cannot be distinguished from friction; also record the other direction"
        )
    found = gravity if isinstance(gravity, Gravity) else plateau_gravity(used, plateaus.joint) if gravity else NO_GRAVITY
    means = np.array([found.mean(p) for p in used])
    friction = np.array([p.torque for p in used]) - means[:, 0]
    # The scatter of means within plateaus contains the change of gravity; after its removal, the residual matters.
    std = np.array([_mean_std(p, found) for p in used])
    groups, labels, more = group_plateaus(used, plateaus.top, by, width)
    nearest = nearest_level(speeds, levels)
    curves = []
    for group, label in zip(groups, labels, strict=True):
        curve = _curve([used[i] for i in group], label, friction[group], std[group], means[group, 1], nearest[group])
        curves.append(curve)
    if len({c.both for c in curves}) == 2:
        half = [c.label for c in curves if not c.both]
        notes.append(f"{len(half)} curves have one direction only: {', '.join(half[:4])}")
    total = np.hypot(std, means[:, 1])
    order = (*plateaus.notes, *notes, *more)
    return FrictionCurves(
        plateaus.joint, plateaus.unit, plateaus.top, levels, tuple(curves), found, used, friction, total, order
    )


def _usable(plateaus: Plateaus) -> tuple[tuple[SpeedPlateau, ...], list[str]]:
    """Omit saturated plateaus, and plateaus with moving other joints if enough others remain."""
    notes = []
    good = [p for p in plateaus.items if not p.saturated]
    if not good:
        raise IdentificationError(
            f"all {len(plateaus)} plateaus of joint '{plateaus.joint}' have saturated torques; reduce speed or load"
        )
    if len(good) < len(plateaus):
        lost = sorted({round(100 * abs(p.speed) / plateaus.top) for p in plateaus.items if p.saturated})
        notes.append(
            f"{len(plateaus) - len(good)} plateaus with saturated torque omitted (at {', '.join(map(str, lost))} % of the "
            "speed): friction there exceeds the measured torque"
        )
    alone = [p for p in good if p.alone]
    if len({p.speed > 0.0 for p in alone}) == len({p.speed > 0.0 for p in good}) and len(alone) < len(good):
        notes.append(f"{len(good) - len(alone)} plateaus omitted because other joints moved")
        good = alone
    elif len(alone) < len(good):
        notes.append(
            f"other joints moved during {len(good) - len(alone)} of {len(good)} plateaus and disturb the friction; move one "
            "joint at a time"
        )
    return tuple(sorted(good, key=lambda p: p.t)), notes


def _mean_std(p: SpeedPlateau, gravity: Gravity) -> float:
    e = p.tau - gravity.torque(p.q)
    return float(e.std(ddof=1) / np.sqrt(effective_samples(e)))


def _curve(
    items: Sequence[SpeedPlateau], label: str, friction: Array, std: Array, common: Array, level: NDArray[np.int64]
) -> FrictionCurve:
    """Average the plateaus of one group by level and direction."""
    sign = np.sign([p.speed for p in items])
    keys = sorted({(int(k), float(s)) for k, s in zip(level, sign, strict=True)}, key=lambda key: (key[0] + 1) * key[1])
    rows = []
    for k, s in keys:
        at = np.flatnonzero((level == k) & (sign == s))
        spread = friction[at].std(ddof=1) / np.sqrt(at.size) if at.size > 1 else 0.0
        noise = np.sqrt(np.sum(std[at] ** 2)) / at.size
        rows.append(
            (
                np.mean([items[int(i)].speed for i in at]),
                friction[at].mean(),
                np.hypot(max(spread, noise), common[at].mean()),
                at.size,
            )
        )
    v, f, e, n = np.array(rows).T
    heat = float(np.mean([p.temperature for p in items]))
    return FrictionCurve(label, float(np.mean([p.t for p in items])), heat, v, f, e, n.astype(np.int64))
