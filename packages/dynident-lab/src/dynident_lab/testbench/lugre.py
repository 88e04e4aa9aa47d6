"""Two-stage identification of the LuGre law.

1. Static curve from constant-velocity or slow motions: Fc, Fs, vs and viscous friction by variable projection, since the
   friction of a LuGre joint at a constant velocity is its Stribeck curve.
2. Pre-sliding: with a fixed static curve, sigma0 and sigma1 from small motions about reversals, by simulating the law.

The bristles deflect by Fs / sigma0 before they slip (often micrometres); a record with samples farther apart than that
cannot determine sigma0, with any estimator, and is refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynident.arrays import Array
from dynident.checks import signal, time_axis
from dynident.errors import IdentificationError
from dynident.friction import LuGre, Stribeck, Viscous
from dynident.identify import Axis, fit_friction
from dynident.identify.friction.fitting import AxisFit
from dynident.results import Result

if TYPE_CHECKING:
    from matplotlib.figure import Figure


#: Samples within the deflection of the bristles after a reversal required for sigma0.
RESOLVED = 5
#: Relative standard deviation above which sigma1 is not determined.
VAGUE = 0.5


@dataclass(frozen=True, eq=False)
class LuGreFit(Result):
    """Result of both stages."""

    law: LuGre  # The law; sigma1 is 0 if the data do not determine it
    std: dict[str, float]  # Standard deviations by name; infinite if not determined
    static: AxisFit  # Fit of the static curve
    relative: float  # ||e|| / ||f|| of the pre-sliding record
    resolution: float  # Median number of samples within the deflection of the bristles after a reversal
    notes: tuple[str, ...]  # Remarks on the result

    def summary(self) -> str:
        """Return parameters with standard deviations, and notes, as text."""
        rows = [f"{n:<7} {getattr(self.law, n):>12.5g} +- {s:.3g}" for n, s in self.std.items()]
        error = f"error on the pre-sliding record {100 * self.relative:.2f} %, {self.resolution:.0f} samples per deflection"
        return "\n".join([*rows, error, *self.notes])

    def plot(self) -> Figure:
        """Draw the parameters with their standard deviations."""
        from dynident_lab.testbench.plots import plot_values  # noqa: PLC0415 - matplotlib is an extra

        return plot_values(
            tuple(self.std), np.array([getattr(self.law, n) for n in self.std]), np.array(list(self.std.values())), "LuGre"
        )


def fit_static(v: ArrayLike, force: ArrayLike, exponent: float = 2.0) -> AxisFit:
    """Stage 1: the Stribeck curve ``stribeck.fc``, ``stribeck.fs``, ``viscous.fv`` and ``stribeck.vs``.

    v (N,) [rad/s or m/s] are velocities of plateaus or of slow sliding, both directions, some in the falling part; force (N,)
    [N m or N] is the effort minus inertia and gravity torques; exponent is delta of the curve.
    """
    speed = np.asarray(v, dtype=np.float64)
    if np.unique(np.round(np.abs(speed[speed != 0.0]), 12)).size < 5:
        raise IdentificationError(
            f"the static curve has {np.unique(np.abs(speed)).size} different speeds; its four parameters need at least five"
        )
    fit = fit_friction(None, Axis(force, speed, name="static"), Stribeck(exponent) + Viscous())
    values = fit.parameters
    if not (values["stribeck.fc"] > 0.0 and values["stribeck.fs"] > 0.0):
        raise IdentificationError(
            f"the static curve gives Fc = {values['stribeck.fc']:.4g} and Fs = {values['stribeck.fs']:.4g}, which must be "
            "positive; remove gravity and offset, and check the sign of the force"
        )
    return fit


def fit_lugre(static: AxisFit, t: ArrayLike, v: ArrayLike, force: ArrayLike, inertia: float = 0.0) -> LuGreFit:
    """Stage 2: stiffness and damping of the bristles.

    Parameters
    ----------
    static : AxisFit
        Result of `fit_static`.
    t : array_like, (N,)
        Times [s], increasing, from relaxed bristles.
    v : array_like, (N,)
        Velocities [rad/s or m/s] of small motions with reversals.
    force : array_like, (N,)
        Friction [N m or N]; or the effort, if `inertia` is given.
    inertia : float
        Inertia whose torque is subtracted from the force [kg m^2 or kg].

    Returns
    -------
    LuGreFit
        The law with standard deviations.
    """
    from scipy.optimize import least_squares  # noqa: PLC0415 - costs import time

    times = time_axis(t)
    speed = np.ascontiguousarray(signal("v", v, times.size))
    measured = np.array(signal("force", force, times.size))
    if times.size < 20:
        raise IdentificationError(
            f"the pre-sliding record has {times.size} samples; record at least 20, over several reversals"
        )
    measured -= inertia * np.gradient(speed, times)
    reversals = np.flatnonzero(np.sign(speed[1:]) * np.sign(speed[:-1]) < 0.0) + 1
    if reversals.size == 0:
        raise IdentificationError("the pre-sliding record has no velocity reversal; move back and forth below breakaway")
    fixed, delta, notes = _curve(static)
    size = float(np.linalg.norm(measured)) or 1.0

    def law(u: Array) -> LuGre:
        return LuGre(sigma0=float(np.exp(u[0])), sigma1=float(np.exp(u[1])), exponent=delta, **fixed)

    def residual(u: Array) -> Array:
        return np.asarray((law(u).simulate(times, speed).force - measured) / size)

    # Stiffness from a deflection of the whole path down to that of one sample; damping from its relaxation time.
    path = float(np.ptp(np.concatenate([[0.0], np.cumsum(0.5 * (speed[1:] + speed[:-1]) * np.diff(times))])))
    step = float(np.median(np.abs(speed[speed != 0.0]))) * float(np.median(np.diff(times)))
    stiff = np.geomspace(0.3 * fixed["fs"] / path, 3.0 * fixed["fs"] / step, 12)
    relax = np.geomspace(0.1, 30.0, 4) * float(np.median(np.diff(times)))
    trials = [np.array([np.log(k), np.log(k * r)]) for k in stiff for r in relax]
    trials.sort(key=lambda u: float(np.sum(residual(u) ** 2)))
    ends = [least_squares(residual, u, x_scale=1.0, xtol=1e-10, ftol=1e-12, max_nfev=100) for u in trials[:4]]
    best = min(ends, key=lambda end: float(end.cost))
    found = law(best.x)
    resolution = _resolution(times, speed, reversals, found.fs / found.sigma0)
    if resolution < RESOLVED:
        raise IdentificationError(
            f"only {resolution:.1f} samples per bristle deflection Fs/sigma0 = {found.fs / found.sigma0:.3g} after a "
            f"reversal ({RESOLVED} needed for LuGre); sample faster, move slower or use the static law"
        )
    _, s, V = np.linalg.svd(best.jac, full_matrices=False)
    spread = np.sqrt(2.0 * best.cost / max(times.size - 2, 1)) * np.linalg.norm(V.T / np.maximum(s, 1e-300), axis=1)
    names = {"fc": "stribeck.fc", "fs": "stribeck.fs", "vs": "stribeck.vs", "fv": "viscous.fv"}
    std = {"sigma0": float(spread[0] * found.sigma0), "sigma1": float(spread[1] * found.sigma1)}
    std |= {own: static.std[other] for own, other in names.items()}
    if spread[1] > VAGUE:
        notes.append(
            "sigma1 is not determined by this record and is set to 0: sample faster than sigma1/sigma0, or move faster"
        )
        found, std["sigma1"] = LuGre(sigma0=found.sigma0, sigma1=0.0, exponent=delta, **fixed), float("inf")
    return LuGreFit(found, std, static, float(np.sqrt(2.0 * best.cost)), resolution, tuple(notes))


def _curve(static: AxisFit) -> tuple[dict[str, float], float, list[str]]:
    """Static parameters of the law, its exponent, and notes."""
    values, notes = static.parameters, list(static.notes)
    (law,) = static.laws.values()
    stribeck = next((m for m in getattr(law, "members", (law,)) if isinstance(m, Stribeck)), None)
    if stribeck is None or stribeck.exponent is None:
        raise IdentificationError("the static fit is not a Stribeck curve with a fixed exponent; create it with fit_static")
    fixed = {"fc": values["stribeck.fc"], "fs": values["stribeck.fs"], "vs": values["stribeck.vs"], "fv": values["viscous.fv"]}
    if fixed["fv"] < 0.0:
        notes.append(f"viscous friction {fixed['fv']:.4g} of the static curve is below zero and is set to 0")
        fixed["fv"] = 0.0
    return fixed, stribeck.exponent, notes


def _resolution(t: Array, v: Array, reversals: NDArray[np.int64], deflection: float) -> float:
    """Median number of samples after a reversal before the joint has moved by the deflection of the bristles."""
    x = np.concatenate([[0.0], np.cumsum(0.5 * (v[1:] + v[:-1]) * np.diff(t))])
    ends = [*reversals[1:], t.size]
    counts = [np.count_nonzero(np.abs(x[a:b] - x[a]) < deflection) for a, b in zip(reversals, ends, strict=True)]
    return float(np.median(counts))
