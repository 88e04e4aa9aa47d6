"""Dynamic laws: friction with memory (Dahl, LuGre, generalised Maxwell slip).

Friction starts as the deflection z of elastic bristles (pre-sliding, hysteresis) and ends as the Stribeck curve. At a
constant velocity each law settles on a static one, `steady`, which is a `Friction` of this room.

The bristle equations are stiff (sigma0 = 1e5 ... 1e6 per metre or radian); they are advanced by their exact solution over
each step, the velocity being linear between samples, so any step is stable (see `dynident.friction.kernels`). Accuracy
asks only that the samples resolve the velocity.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynident.errors import DescriptionError, LogError
from dynident.friction.checks import check_not_negative, check_positive, signal, step_length, time_axis
from dynident.friction.combine import Friction
from dynident.friction.static import Coulomb, Stribeck, Viscous

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Response:
    """Friction over time.

    Parameters
    ----------
    t : ndarray, shape (N,)
        Times [s].
    v : ndarray, shape (N,)
        Velocities [rad/s or m/s].
    force : ndarray, shape (N,)
        Friction [N m or N].
    state : ndarray, shape (N, m)
        Inner state; any row can start another simulation.
    """

    t: Array
    v: Array
    force: Array
    state: Array


class DynamicLaw(ABC):
    """Base of the laws with memory."""

    @property
    @abstractmethod
    def states(self) -> int:
        """Number m of inner states."""

    @property
    @abstractmethod
    def steady(self) -> Friction:
        """Static law on which the friction settles at a constant velocity."""

    @abstractmethod
    def _sweep(self, t: Array, v: Array, start: Array) -> Array: ...

    @abstractmethod
    def _force(self, state: Array, v: Array) -> Array: ...

    def simulate(self, t: ArrayLike, v: ArrayLike, start: ArrayLike | None = None) -> Response:
        """Friction along a motion.

        Parameters
        ----------
        t : array_like, shape (N,)
            Times [s], increasing.
        v : array_like, shape (N,)
            Velocities [rad/s or m/s], linear between samples.
        start : array_like, shape (m,), optional
            State at the first sample; relaxed bristles if not given.

        Returns
        -------
        Response
            Friction and state at every sample.
        """
        times = time_axis(t)
        velocity = np.ascontiguousarray(signal("v", v, times.size))
        state = self._sweep(times, velocity, self._start(start))
        return Response(times, velocity, self._force(state, velocity), state)

    def advance(self, state: ArrayLike, v0: float, v1: float, dt: float) -> tuple[float, Array]:
        """One step of `simulate`, for a simulator that makes its own steps.

        Parameters
        ----------
        state : array_like, shape (m,)
            State at the start of the step.
        v0, v1 : float
            Velocities at the start and the end of the step.
        dt : float
            Step [s], above zero.

        Returns
        -------
        force : float
            Friction at the end of the step [N m or N].
        state : ndarray, shape (m,)
            State at the end of the step.
        """
        after = self._sweep(np.array([0.0, step_length(dt)]), np.array([v0, v1], dtype=np.float64), self._start(state))[1:]
        return float(self._force(after, np.array([v1]))[0]), after[0]

    def _start(self, start: ArrayLike | None) -> Array:
        state = np.zeros(self.states) if start is None else np.array(start, dtype=np.float64)
        if state.shape != (self.states,) or not np.isfinite(state).all():
            raise LogError(f"start = {state.tolist()} must be {self.states} finite numbers, one per inner state")
        return state


def _kernels() -> Any:
    """The compiled loops; numba is loaded with the first simulation."""
    from dynident.friction import kernels  # noqa: PLC0415

    return kernels


@dataclass(frozen=True)
class Dahl(DynamicLaw):
    """Dahl's law ``df/dx = sigma0 |1 - f sgn(v) / fc|^i sgn(1 - f sgn(v) / fc)`` with ``f = sigma0 z``, plus ``fv v``.

    Exact for velocities that are linear between samples: the law depends on the distance alone.

    Parameters
    ----------
    sigma0 : float
        Stiffness of the bristles [N m/rad or N/m].
    fc : float
        Coulomb friction [N m or N].
    exponent : float
        Shape i of the curve; 1 is the usual one.
    fv : float
        Viscous friction [N m s/rad or N s/m].
    """

    sigma0: float
    fc: float
    exponent: float = 1.0
    fv: float = 0.0

    def __post_init__(self) -> None:
        check_positive("Dahl", sigma0=self.sigma0, fc=self.fc, exponent=self.exponent)
        check_not_negative("Dahl", fv=self.fv)

    @property
    def states(self) -> int:
        """One: the deflection z."""
        return 1

    @property
    def steady(self) -> Friction:
        """Coulomb and viscous friction."""
        return (Coulomb() + Viscous()).using(fc=self.fc, fv=self.fv)

    def _sweep(self, t: Array, v: Array, start: Array) -> Array:
        z: Array = _kernels().dahl_sweep(t, v, start[0], self.sigma0, self.fc, self.exponent)
        return z[:, None]

    def _force(self, state: Array, v: Array) -> Array:
        return np.asarray(self.sigma0 * state[:, 0] + self.fv * v)


@dataclass(frozen=True)
class LuGre(DynamicLaw):
    """LuGre law: ``dz/dt = v - sigma0 |v| z / g(v)``, ``f = sigma0 z + sigma1 dz/dt + fv v``.

    ``g(v) = fc + (fs - fc) exp(-|v/vs|^delta)`` (document 4 names the law without its equations; these are those of
    Canudas de Wit, Olsson, Astrom and Lischinsky, 1995).

    Parameters
    ----------
    sigma0 : float
        Stiffness of the bristles [N m/rad or N/m].
    sigma1 : float
        Damping of the bristles [N m s/rad or N s/m].
    fc, fs : float
        Coulomb and breakaway friction [N m or N].
    vs : float
        Stribeck speed [rad/s or m/s].
    fv : float
        Viscous friction [N m s/rad or N s/m].
    exponent : float
        delta of the Stribeck curve.
    """

    sigma0: float
    sigma1: float
    fc: float
    fs: float
    vs: float
    fv: float = 0.0
    exponent: float = 2.0

    def __post_init__(self) -> None:
        check_positive("LuGre", sigma0=self.sigma0, fc=self.fc, fs=self.fs, vs=self.vs, exponent=self.exponent)
        check_not_negative("LuGre", sigma1=self.sigma1, fv=self.fv)

    @property
    def states(self) -> int:
        """One: the deflection z."""
        return 1

    @property
    def steady(self) -> Friction:
        """Stribeck and viscous friction."""
        return (Stribeck(self.exponent) + Viscous()).using(fc=self.fc, fs=self.fs, vs=self.vs, fv=self.fv)

    def rate(self, z: ArrayLike, v: ArrayLike) -> Array:
        """Velocity of the bristles.

        Parameters
        ----------
        z : array_like, shape (...)
            Deflections.
        v : array_like, shape (...)
            Velocities.

        Returns
        -------
        ndarray, shape (...)
            ``dz/dt``.
        """
        speed = np.asarray(v, dtype=np.float64)
        g = self.fc + (self.fs - self.fc) * np.exp(-(np.abs(speed / self.vs) ** self.exponent))
        return np.asarray(speed - self.sigma0 * np.abs(speed) * np.asarray(z) / g)

    def passive(self, speed: float | None = None) -> bool:
        """Tell whether the law can never give back more energy than it stored.

        Sufficient at all speeds: ``fv >= sigma1 (fs - fc) / fc`` (Barabanov and Ortega, 2000, who show that it is also
        necessary). Sufficient up to a speed: ``sigma1^2 |v| <= 4 (sigma1 + fv) g(v)``, from the storage sigma0 z^2 / 2.

        Parameters
        ----------
        speed : float, optional
            Largest speed that occurs; all speeds if not given.

        Returns
        -------
        bool
            True if one of the conditions holds.
        """
        if self.fv >= self.sigma1 * (self.fs - self.fc) / self.fc:
            return True
        if speed is None:
            return False
        v = np.linspace(0.0, speed, 1001)
        g = self.fc + (self.fs - self.fc) * np.exp(-((v / self.vs) ** self.exponent))
        return bool((self.sigma1**2 * v <= 4.0 * (self.sigma1 + self.fv) * g).all())

    def _sweep(self, t: Array, v: Array, start: Array) -> Array:
        z: Array = _kernels().lugre_sweep(t, v, start[0], self.sigma0, self.fc, self.fs, self.vs, self.exponent)
        return z[:, None]

    def _force(self, state: Array, v: Array) -> Array:
        return np.asarray(self.sigma0 * state[:, 0] + self.sigma1 * self.rate(state[:, 0], v) + self.fv * v)


@dataclass(frozen=True)
class GeneralisedMaxwellSlip(DynamicLaw):
    """Generalised Maxwell slip law: n spring-slider elements side by side (document 4 eq. 2.28).

        f = sum_i (k_i z_i + sigma_i dz_i/dt) + fv v
        sticking: dz_i/dt = v                             until |k_i z_i| reaches share_i g(v)
        slipping: k_i dz_i/dt = sgn(v) C (share_i - |k_i z_i| / g(v))   until v changes its sign

    The document does not print the state law; it is that of Al-Bender, Lampaert and Swevers (2005). An element that
    slips and reverses remembers its deflection: hysteresis has non-local memory, which LuGre lacks.

    Parameters
    ----------
    stiffness : tuple of float
        k_i [N m/rad or N/m].
    share : tuple of float
        Part of the friction that each element carries; they add to one.
    fc, fs : float
        Coulomb and breakaway friction of all elements together [N m or N].
    vs : float
        Stribeck speed [rad/s or m/s].
    attraction : float
        C, the rate at which a slipping element goes to the Stribeck curve [N m/s or N/s].
    damping : tuple of float
        sigma_i [N m s/rad or N s/m]; empty for none.
    fv : float
        Viscous friction [N m s/rad or N s/m].
    exponent : float
        delta of the Stribeck curve.
    """

    stiffness: tuple[float, ...]
    share: tuple[float, ...]
    fc: float
    fs: float
    vs: float
    attraction: float
    damping: tuple[float, ...] = ()
    fv: float = 0.0
    exponent: float = 2.0

    def __post_init__(self) -> None:
        name, n = "GeneralisedMaxwellSlip", len(self.stiffness)
        check_positive(name, fc=self.fc, fs=self.fs, vs=self.vs, attraction=self.attraction, exponent=self.exponent)
        check_not_negative(name, fv=self.fv, **{f"damping[{i}]": value for i, value in enumerate(self.damping)})
        check_positive(name, **{f"stiffness[{i}]": value for i, value in enumerate(self.stiffness)})
        check_positive(name, **{f"share[{i}]": value for i, value in enumerate(self.share)})
        if n == 0 or len(self.share) != n or len(self.damping) not in (0, n):
            raise DescriptionError(
                f"{name} has {n} stiffnesses, {len(self.share)} shares and {len(self.damping)} dampings; "
                "give as many shares as stiffnesses and as many or no dampings"
            )
        if abs(sum(self.share) - 1.0) > 1e-9:
            raise DescriptionError(f"{name}: the shares add to {sum(self.share)}; divide them by that so that they add to one")

    @property
    def states(self) -> int:
        """Two per element: deflection z_i, and mode (0 sticks, +1 or -1 slips that way)."""
        return 2 * len(self.stiffness)

    @property
    def steady(self) -> Friction:
        """Stribeck and viscous friction."""
        return (Stribeck(self.exponent) + Viscous()).using(fc=self.fc, fs=self.fs, vs=self.vs, fv=self.fv)

    def _sweep(self, t: Array, v: Array, start: Array) -> Array:
        curve = (self.attraction, self.fc, self.fs, self.vs, self.exponent)
        states: Array = _kernels().gms_sweep(t, v, start, np.array(self.stiffness), np.array(self.share), *curve)
        return states

    def _force(self, state: Array, v: Array) -> Array:
        n = len(self.stiffness)
        z, mode, stiffness = state[:, :n], state[:, n:], np.array(self.stiffness)
        force = z @ stiffness + self.fv * v
        if self.damping:
            g = self.fc + (self.fs - self.fc) * np.exp(-(np.abs(v / self.vs) ** self.exponent))
            slip = self.attraction * (mode * np.array(self.share) - z * stiffness / g[:, None]) / stiffness
            force = force + np.where(mode == 0.0, v[:, None], slip) @ np.array(self.damping)
        return np.asarray(force)
