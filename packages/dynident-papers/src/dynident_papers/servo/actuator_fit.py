"""Inertia and friction of an actuator from its own responses, ``tau = J a + f(v)`` [Roldan2017, sections 4.1.2.1 and 4.2.4.2].

The equation is linear in inertia and friction coefficients; shape parameters of the friction (beta of tanh(beta v)) are
searched with the linear part eliminated (variable projection, eqs. 2.35-2.36). Position, torque and friction columns pass the
same zero-phase low-pass, so filtering affects only the noise; rows are then thinned to the rate of the band, which
keeps them independent and their standard deviations valid.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from dynident.arrays import Array
from dynident.checks import number
from dynident.errors import DynidentError, IdentificationError
from dynident.friction import Coulomb, Friction, FrictionLaw, Viscous
from dynident.results import Result
from dynident.signals import butterworth
from dynident_lab.checks import samples

if TYPE_CHECKING:
    from matplotlib.figure import Figure


GRID = 25  # values of each shape parameter tried before the search
ORDER = 3  # of the Butterworth low-pass, as in [Roldan2017]
BLIND = 1e-9  # relative singular value below which a parameter is not distinguishable from the others


@dataclass(frozen=True, eq=False)
class ActuatorFit(Result):
    """Result of `fit_actuator`."""

    names: tuple[str, ...]  # ``inertia`` and the parameters of the friction law, linear ones before shapes
    values: Array  # J [kg m^2] and the friction's numbers
    covariance: Array  # Covariance of the values
    law: FrictionLaw  # The law of friction
    error: float  # RMS of the residual torque [N m]
    relative_error: float  # The same over the RMS of the torque
    count: int  # Number of independent rows
    t: Array  # Times [s]
    measured: Array  # Measured torques in the band of the fit [N m]
    predicted: Array  # Predicted torques in the band of the fit [N m]

    @property
    def standard_deviation(self) -> Array:
        """Standard deviations of the values, (p,)."""
        return np.sqrt(np.diag(self.covariance))

    @property
    def inertia(self) -> float:
        """Inertia J [kg m^2]."""
        return float(self.values[0])

    @property
    def friction(self) -> Friction:
        """Friction with numbers, for a `Drive`."""
        return Friction(self.law, self.values[1:])

    def summary(self) -> str:
        """Numbers with their standard deviations, one per line."""
        lines = [
            f"{n:>18} {v: .6g} ± {d:.2g}" for n, v, d in zip(self.names, self.values, self.standard_deviation, strict=True)
        ]
        return "\n".join([*lines, f"torque left over: {self.error:.4g} N m RMS ({100.0 * self.relative_error:.2f} %)"])

    def plot(self) -> Figure:
        """Plot measured and modelled torque over time, and the residual."""
        from dynident.figures import BLUE, MUTED, ORANGE, extremes, finish, new_figure  # noqa: PLC0415 - matplotlib is an extra

        figure = new_figure(9.0, 4.6)
        above, below = figure.add_axes((0.08, 0.43, 0.9, 0.49)), figure.add_axes((0.08, 0.11, 0.9, 0.24))
        above.plot(*extremes(self.t, self.measured), color=MUTED, linewidth=0.9, label="measured")
        above.plot(*extremes(self.t, self.predicted), color=BLUE, linewidth=0.9, label="model")
        above.legend(frameon=False, fontsize=8, ncols=2)
        below.plot(*extremes(self.t, self.measured - self.predicted), color=ORANGE, linewidth=0.7)
        finish(above, "", "torque [N m]", f"actuator: {100.0 * self.relative_error:.2f} % of the torque is left")
        finish(below, "time [s]", "rest [N m]", "")
        return figure


def fit_actuator(
    t: ArrayLike,
    position: ArrayLike,
    torque: ArrayLike | None = None,
    *,
    current: ArrayLike | None = None,
    torque_constant: float | None = None,
    cutoff: float | None = None,
    law: FrictionLaw | None = None,
    velocity: ArrayLike | None = None,
    acceleration: ArrayLike | None = None,
) -> ActuatorFit:
    """Fit inertia and friction of one actuator to its measured response.

    Parameters
    ----------
    t : array_like, (N,)
        Times [s], evenly spaced.
    position : array_like, (N,)
        Angle of the motor [rad].
    torque : array_like, (N,), optional
        Torque of the motor [N m]; or give the current.
    current : array_like, (N,), optional
        Current of the motor [A], with `torque_constant`.
    torque_constant : float, optional
        K_t [N m/A].
    cutoff : float, optional
        Cut-off of the zero-phase low-pass [Hz]; needed unless velocity and acceleration are given. Several times the highest
        frequency of the motion: [Roldan2017] takes 3 Hz for sines of up to 0.5 Hz.
    law : FrictionLaw, optional
        Friction law; ``Coulomb() + Viscous()`` if not given. ``Tanh() + Viscous()`` is equation 4.10.
    velocity, acceleration : array_like, (N,), optional
        Known motion [rad/s, rad/s^2], in place of derivatives of the position.

    Returns
    -------
    ActuatorFit
        Inertia and friction with standard deviations.
    """
    if law is not None and not isinstance(law, FrictionLaw):
        raise DynidentError(f"law is a {type(law).__name__}; give a law without numbers, as in Tanh() + Viscous()")
    times = samples("t", t)
    x = samples("position", position, times.size)
    tau = _torque(torque, current, torque_constant, times.size)
    steps = np.diff(times)
    if times.size < 20 or (steps <= 0.0).any() or np.ptp(steps) > 0.01 * float(np.median(steps)):
        raise DynidentError(f"t has {times.size} samples; give at least 20 evenly spaced times that rise")
    h = float((times[-1] - times[0]) / (times.size - 1))
    known = velocity is not None and acceleration is not None
    if (velocity is None) != (acceleration is None):
        raise DynidentError("velocity or acceleration is missing; give both, or neither and a cutoff")
    if cutoff is None and not known:
        raise DynidentError(
            "cutoff is missing; give the low-pass in Hz, several times the highest frequency of the motion, or give velocity "
            "and acceleration"
        )
    band = _Band(h, cutoff)
    smooth = band(x)
    v = samples("velocity", velocity, x.size) if velocity is not None else _derivative(smooth, h)
    a = (
        band(samples("acceleration", acceleration, x.size))
        if acceleration is not None
        else _derivative(_derivative(smooth, h), h)
    )
    return _fit(band, times, v, a, band(tau), law if law is not None else Coulomb() + Viscous())


def _derivative(x: Array, h: float) -> Array:
    """Five-point difference, fourth-order: three points would lose 0.1 % of the inertia at a hundredth of the rate."""
    slope = np.gradient(x, h)
    slope[2:-2] = (8.0 * (x[3:-1] - x[1:-3]) - (x[4:] - x[:-4])) / (12.0 * h)
    return slope


class _Band:
    """Zero-phase low-pass, and the rows that remain independent behind it."""

    def __init__(self, h: float, cutoff: float | None) -> None:
        self.h = h
        self.cutoff = None if cutoff is None else number("cutoff", cutoff, above=0.0, unit="Hz")
        if self.cutoff is not None and self.cutoff >= 0.5 / h:
            raise DynidentError(f"cutoff is {self.cutoff:g} Hz; give less than half the sampling frequency, {0.5 / h:g} Hz")

    def __call__(self, signal: Array) -> Array:
        if self.cutoff is None or not signal.size:
            return signal
        return butterworth(1.0 / self.h, signal, self.cutoff, order=ORDER)[0]

    @property
    def edge(self) -> int:
        """Samples at each end that are affected by the filter's start."""
        return 4 if self.cutoff is None else 4 + math.ceil(1.0 / (self.cutoff * self.h))

    def rows(self, count: int) -> slice:
        step = 1 if self.cutoff is None else max(1, int(0.5 / (self.cutoff * self.h)))
        return slice(self.edge, count - self.edge, step)


def _torque(torque: ArrayLike | None, current: ArrayLike | None, constant: float | None, count: int) -> Array:
    if (torque is None) == (current is None):
        raise DynidentError("torque and current are " + ("both" if torque is not None else "not") + " given; give one of them")
    if torque is not None:
        return samples("torque", torque, count)
    if constant is None:
        raise DynidentError("torque_constant is missing; a current needs it in N m/A")
    assert current is not None
    return number("torque_constant", constant, above=0.0, unit="N m/A") * samples("current", current, count)


def _fit(band: _Band, t: Array, v: Array, a: Array, tau: Array, law: FrictionLaw) -> ActuatorFit:
    rows = band.rows(v.size)
    names = ("inertia", *law.parameters)
    right, count = tau[rows], tau[rows].size
    if count < 2 * len(names):
        raise IdentificationError(f"{count} independent rows cannot support {len(names)} numbers; record longer")

    def columns(eta: Array) -> Array:
        return np.column_stack([a[rows], band(law.columns(v, eta))[rows]])

    speed = float(np.abs(v[rows]).max())
    if speed == 0.0:
        raise IdentificationError("position does not move; record a motion that turns the motor")
    eta = _search(columns, right, law.shape_range(speed)) if law.shape else np.zeros(0)
    Phi = columns(eta)
    norm = np.linalg.norm(Phi, axis=0)
    _check_rank(Phi, norm, names[: Phi.shape[1]])
    rho = np.linalg.lstsq(Phi / norm, right, rcond=None)[0] / norm
    left = right - Phi @ rho
    bent = np.einsum("nks,k->ns", law.columns(v, eta, "shape"), rho[1:])
    jacobian = np.column_stack([Phi, band(bent)[rows]])
    size = np.linalg.norm(jacobian, axis=0)
    _check_rank(jacobian, size, names)
    inverse = np.linalg.pinv(jacobian / size) / size[:, None]
    variance = float(left @ left) / (count - len(names))
    error = float(np.sqrt(np.mean(left**2)))
    whole = float(np.sqrt(np.mean(right**2)))
    values = np.concatenate([rho, eta])
    inside = slice(band.edge, v.size - band.edge)
    predicted = a * rho[0] + band(law.columns(v, eta)) @ rho[1:]
    relative = error / whole if whole > 0.0 else math.inf
    covariance = variance * inverse @ inverse.T
    return ActuatorFit(
        names, values, covariance, law, error, relative, count, t[inside], tau[inside], np.asarray(predicted[inside])
    )


def _search(columns: Callable[[Array], Array], right: Array, interval: Array) -> Array:
    """Shape parameters with the smallest projected residual: a logarithmic grid, then least squares from its best point."""
    from scipy.optimize import least_squares  # noqa: PLC0415 - scipy is loaded on first use

    def left_over(logarithm: Array) -> Array:
        Phi = columns(np.exp(logarithm))
        norm = np.linalg.norm(Phi, axis=0)
        basis, _ = np.linalg.qr(Phi / np.where(norm > 0.0, norm, 1.0))
        return np.asarray(right - basis @ (basis.T @ right))

    low, high = np.log(interval).T
    points = max(3, int(GRID ** (1.0 / len(low)) + 0.5) if len(low) > 1 else GRID)
    grid = np.stack(np.meshgrid(*np.linspace(low, high, points).T, indexing="ij"), axis=-1).reshape(-1, len(low))
    best = min(grid, key=lambda guess: float(np.sum(left_over(guess) ** 2)))
    # Ten times beyond the interval of the data's speeds: the solution may lie at its end.
    done = least_squares(left_over, best, bounds=(low - 2.3, high + 2.3), x_scale=1.0, diff_step=1e-6, xtol=1e-12, ftol=1e-14)
    return np.asarray(np.exp(done.x))


def _check_rank(Phi: Array, norm: Array, names: tuple[str, ...]) -> None:
    if (norm == 0.0).any():
        raise IdentificationError(f"the motion does not show {names[int(np.argmin(norm))]}; excite it or take a law without it")
    _, values, vectors = np.linalg.svd(Phi / norm, full_matrices=False)
    if values[-1] < BLIND * values[0]:
        mixed = [name for name, share in zip(names, np.abs(vectors[-1]), strict=True) if share > 0.1]
        raise IdentificationError(
            f"the motion does not separate {', '.join(mixed)}; vary speed and acceleration, or use a simpler law"
        )
