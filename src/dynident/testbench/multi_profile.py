"""The velocity multi-profile test of an actuator [Roldan2017, section 4.1.2, fig. 4.4].

    tau = J_t a + c v + F_c tanh(beta v)        [Roldan2017, eq. 4.10]

One run holds growing sines, velocity steps up and down, ramps, and exponential rises, so that inertia, friction at all
speeds and the turn of the friction around rest are excited together. beta is searched, the rest is eliminated
[Roldan2017, eqs. 2.35-2.36]. Stage lengths are not printed there; those here are parameters.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dynident.errors import IdentificationError
from dynident.friction import FrictionLaw, State, Tanh, Viscous
from dynident.mechanics import Motion
from dynident.results import Result
from dynident.signals import Log, effective_samples, prepare

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Array = NDArray[np.float64]

RPM = 2.0 * np.pi / 60.0
#: Frequencies of the growing sines [Hz], as in [Roldan2017].
SINES = (0.1, 0.3, 0.5)
#: Points of the first search of each shape parameter.
GRID = 25


def multi_profile_motion(
    *,
    slow: float = 10.0 * RPM,
    fast: float = 3700.0 * RPM,
    stage: float = 30.0,
    rate: float = 1.0 / 0.007,
    rounding: float = 0.3,
) -> Motion:
    """Return the motion of the test: sines, steps, ramps, exponentials.

    Parameters
    ----------
    slow, fast : float
        Smallest and largest speed [rad/s]; 10 and 3700 rpm in [Roldan2017].
    stage : float
        Length of each of the four stages [s].
    rate : float
        Samples per second; [Roldan2017] samples every 7 ms.
    rounding : float
        Time over which corners of the speed are rounded [s].

    Returns
    -------
    Motion
        One coordinate; speed and acceleration are continuous.
    """
    if not (0.0 < slow < fast and stage > 0.0 and rate * stage >= 200.0):
        raise IdentificationError(
            f"multi-profile motion: slow = {slow:g}, fast = {fast:g}, stage = {stage:g} s, rate = {rate:g} Hz; need "
            "0 < slow < fast and at least 200 samples per stage"
        )
    n = int(stage * rate)
    s = np.arange(n) / n
    time = stage * s
    growing = slow * (fast / slow) ** s
    sines = growing * sum(np.sin(2.0 * np.pi * f * time) for f in SINES) / len(SINES)
    sines *= np.clip(20.0 * (1.0 - s), 0.0, 1.0)
    x = 2.0 * s % 1.0
    levels = np.linspace(slow, fast, 7)
    stairs = np.concatenate([levels, levels[-2::-1], [0.0]])
    k = np.arange(stairs.size)
    knots = np.column_stack([k, k + 0.25]).ravel() / stairs.size  # each step rises in a quarter of its time
    heights = np.column_stack([np.append(0.0, stairs[:-1]), stairs]).ravel()
    steps = _pair(np.interp(x, knots, heights), s)
    ramps = _pair(fast * (1.0 - np.abs(1.0 - 2.0 * x)), s)
    bend = 6.0
    rise = np.expm1(bend * (1.0 - np.abs(1.0 - 2.0 * x))) / np.expm1(bend)
    v = np.concatenate([sines, steps, ramps, _pair(fast * rise, s)])
    # Corners at rest are where beta is seen; rounded, they stay within the band that the differentiation passes.
    kernel = np.hanning(max(3, 2 * round(0.5 * rounding * rate) + 3))
    v = np.convolve(np.pad(v, kernel.size), kernel / kernel.sum(), mode="same")
    t = np.arange(v.size) / rate
    q = np.concatenate([[0.0], np.cumsum(0.5 * (v[1:] + v[:-1]))]) / rate
    return Motion(t, q[:, None], v[:, None], np.gradient(v, 1.0 / rate)[:, None])


def _pair(profile: Array, s: Array) -> Array:
    """Run a profile forward in the first half of a stage and backward in the second."""
    return np.where(s < 0.5, profile, -profile)


@dataclass(frozen=True, eq=False)
class MultiProfile(Result):
    """Identified actuator.

    Parameters
    ----------
    joint : str
        Channel.
    law : FrictionLaw
        Friction law.
    names, units : tuple of str
        ``J_t``, then linear and shape parameters of the law.
    values, std : ndarray, (p,)
        Estimates and standard deviations.
    relative : float
        ``||e|| / ||tau||`` of the run it was fitted to.
    t, measured, predicted : ndarray, (n,)
        Time [s] and torques [N m or N] in the band of the fit.
    """

    joint: str
    law: FrictionLaw
    names: tuple[str, ...]
    units: tuple[str, ...]
    values: Array
    std: Array
    relative: float
    t: Array
    measured: Array
    predicted: Array

    def __getitem__(self, name: str) -> float:
        full = [n for n in self.names if n == name or n.endswith("." + name)]
        if len(full) != 1:
            raise IdentificationError(
                f"multi-profile test: no parameter '{name}' of one meaning; it has {', '.join(self.names)}"
            )
        return float(self.values[self.names.index(full[0])])

    def friction(self, v: Array) -> Array:
        """Return the friction at given speeds.

        Parameters
        ----------
        v : ndarray, (...)
            Speeds.

        Returns
        -------
        ndarray, (...)
            Friction [N m or N].
        """
        return self.law.value(v, self.values[1:])

    def summary(self) -> str:
        """Return the parameters as text.

        Returns
        -------
        str
            One line per parameter.
        """
        rows = zip(self.names, self.values, self.std, self.units, strict=True)
        head = f"multi-profile test of {self.joint}: training error {100 * self.relative:.2f} %"
        return "\n".join([head, *(f"  {n:14} {x:12.5g} +- {s:.2g} {u}" for n, x, s, u in rows)])

    def plot(self) -> Figure:
        """Draw measured and modelled torque over time.

        Returns
        -------
        matplotlib.figure.Figure
            The figure.
        """
        from dynident.testbench.plots import plot_multi_profile  # noqa: PLC0415 - matplotlib is an extra

        return plot_multi_profile(self)


def multi_profile_test(log: Log, joint: str, law: FrictionLaw | None = None, **options: object) -> MultiProfile:
    """Identify inertia and friction of an actuator from a multi-profile run.

    Parameters
    ----------
    log : Log
        The run; gravity must not act on the actuator.
    joint : str
        Channel.
    law : FrictionLaw, optional
        Friction law; viscous and smooth Coulomb friction [Roldan2017, eq. 4.10] if not given.
    **options
        Passed to `dynident.signals.prepare`.

    Returns
    -------
    MultiProfile
        Estimates with standard deviations.
    """
    from scipy.optimize import least_squares  # noqa: PLC0415 - slow to import

    law = law or Viscous() + Tanh()
    prepared = prepare(log.select([joint]), **options)  # type: ignore[arg-type]
    v, a = prepared.motion.v[:, 0], prepared.motion.a[:, 0]
    apply = prepared.decimator.apply
    tau, inertia = apply(prepared.effort)[:, 0], apply(a[:, None])
    top = float(np.abs(v).max())
    if top == 0.0 or not (np.any(v > 0.0) and np.any(v < 0.0)):
        raise IdentificationError(
            f"multi-profile test of '{joint}': the log moves in one direction only or not at all (largest speed {top:g}); "
            "run both directions"
        )
    state, scale = State(v), float(np.abs(tau).max())
    ranges = np.log(law.shape_range(top))

    def project(eta: Array) -> tuple[Array, Array, Array]:
        X = np.hstack([inertia, apply(law.columns(state, np.exp(eta)))])
        x = np.asarray(np.linalg.lstsq(X, tau, rcond=None)[0], dtype=np.float64)
        return X, x, np.asarray(tau - X @ x)

    eta = ranges.mean(axis=1)
    if eta.size:
        for k in range(eta.size):  # one after the other: laws have one or two shapes that hardly depend on each other
            grid = np.linspace(ranges[k, 0], ranges[k, 1], GRID)
            costs = [float(np.linalg.norm(project(np.where(np.arange(eta.size) == k, g, eta))[2])) for g in grid]
            eta[k] = grid[int(np.argmin(costs))]
        search = least_squares(lambda x: project(x)[2] / scale, eta, bounds=(ranges[:, 0] - 2.0, ranges[:, 1] + 2.0))
        eta = search.x
    shape = np.exp(eta)
    X, x, e = project(eta)
    bent = np.einsum("nks,k->ns", law.columns_dshape(state, shape), x[1:]) if eta.size else np.zeros((v.size, 0))
    full = np.hstack([X, apply(bent)]) if eta.size else X
    variance = float(e @ e) / max(tau.size - full.shape[1], 1) * e.size / effective_samples(e)
    std = np.sqrt(np.diag(variance * np.linalg.pinv(full.T @ full)))
    names = ("J_t", *law.linear, *law.shape)
    return MultiProfile(
        joint,
        law,
        names,
        ("kg m^2", *(_unit(n) for n in names[1:])),
        np.concatenate([x, shape]),
        std,
        float(np.linalg.norm(e) / np.linalg.norm(tau)),
        prepared.motion.t[prepared.decimator.centres(len(prepared))],
        tau,
        tau - e,
    )


def _unit(name: str) -> str:
    symbol = name.rsplit(".", maxsplit=1)[-1]
    known = {"fv": "N m s/rad", "Bv": "N m s/rad", "beta": "s/rad", "alpha": "s/rad", "vs": "rad/s", "delta": ""}
    return known.get(symbol, "s/rad" if symbol.startswith("w") else "N m")
