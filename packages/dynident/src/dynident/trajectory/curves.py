"""Curves: finite Fourier series, the classical excitation; multisines with fades; sampled motions; B-splines.

A family is a basis Phi of functions of time, the same for all coordinates, q(t) = Phi(t) c; a `Trajectory` is a family with
numbers. Families are linear in their parameters: the derivatives of q, v and a in the parameters are Phi, Phi' and Phi''.

    q = q0 + sum_l [a_l sin(l w t) - b_l cos(l w t)] / (l w),    w = 2 pi f     convention "velocity": a, b in rad/s
    q = q0 + sum_l [a_l sin(l w t) - b_l cos(l w t)]                            convention "position": a, b in rad
    q = q0 + w(t) sum_k A_k sin(2 pi f_k t + phi_k)                             multisine, harmonic sines [Pagani2022, eq. 62]

"velocity" is [Rodriguez2002, eq. 43], [Pagani2022, eq. 78] and [Roldan2017, eq. 5.32]; "position" is how
[Rodriguez2002, Table 3] must be read. A plain series starts with velocity sum a_l and acceleration sum l w b_l. With
``rest=True`` the parameters span only the series for which both are zero, so that the motion starts and ends at rest by
construction and repeats without a jump.

The window w of a multisine rises from 0 to 1 like the quintic of `Quintic` and falls symmetrically; the amplitudes A_k and the
offset are the parameters. Between the fades the motion is periodic if the frequencies have a common divisor. Sampled motions
are joined by quintic Hermite polynomials, which match q, v, a at both ends.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from math import comb
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np
import scipy  # its sub-packages load on first use, which keeps the start fast
from numpy.typing import ArrayLike

from dynident.arrays import Array
from dynident.checks import finite_times, numbers
from dynident.checks import plain as scalar
from dynident.errors import DynidentError
from dynident.files import jsonable
from dynident.mechanics.functions import Motion

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_SAMPLES = 1e8  # limit for a curve at a fixed rate
State = tuple[Array, Array, Array]  # q, v, a
DRAWN = 2000  # samples of a figure


class Curve(Protocol):
    """Interface of a motion over time: trajectories, plateaus, joined pieces."""

    @property
    def duration(self) -> float:
        """Duration [s]."""

    @property
    def dof(self) -> int:
        """Number of coordinates n."""

    def __call__(self, t: ArrayLike) -> State:
        """Return q, v, a (N, n) at times t since the start; at rest outside."""

    def spec(self) -> dict[str, Any]:
        """Return plain data, which `dynident.trajectory.from_spec` reads back."""


class Family(Protocol):
    """A basis of functions of time."""

    @property
    def duration(self) -> float:
        """Duration [s]."""

    @property
    def size(self) -> int:
        """Number of parameters of each coordinate."""

    @property
    def highest(self) -> float:
        """Highest frequency, or the frequency that characterises the time scale [Hz]."""

    def basis(self, t: ArrayLike, order: int = 0) -> Array:
        """Return the derivative of Phi of the given order, (N, size)."""

    def constant(self) -> Array:
        """Return the parameters of q = 1, (size,), which convert a constant position into coefficients."""

    def spec(self) -> dict[str, Any]:
        """Return plain data, which `from_spec` reads back."""


def positive(what: str, value: float) -> float:
    """Return a number after checking that it is finite and above zero."""
    value = scalar(value)
    if not (isinstance(value, int | float | np.floating | np.integer) and 0.0 < value < 1e300):
        raise DynidentError(f"{what} is {value!r:.40}; give a finite number above zero")
    return float(value)


def grid(duration: float, rate: float) -> Array:
    """Return the times 0, 1/rate, ... up to the duration."""
    positive("rate", rate)
    if duration * rate > MOST_SAMPLES:
        raise DynidentError(f"rate is {rate:g} Hz for {duration:g} s, more than {MOST_SAMPLES:g} samples; give a lower rate")
    return np.arange(int(np.floor(duration * rate * (1.0 + 1e-12))) + 1) / rate


def sample(curve: Curve, rate: float) -> Motion:
    """Return `curve` at a fixed `rate` [Hz]."""
    t = grid(curve.duration, rate)
    return Motion(t, *curve(t))


@dataclass(frozen=True, eq=False)
class Described:
    """Base of families and curves: their fields as plain data."""

    _kind: ClassVar[str]

    def spec(self) -> dict[str, Any]:
        """Return plain data, which `from_spec` reads back."""
        return {"kind": self._kind, **self._plain()}

    def _plain(self) -> dict[str, Any]:
        return {field.name: jsonable(getattr(self, field.name), lambda inner: inner.spec()) for field in fields(self)}


@dataclass(frozen=True, eq=False)
class CurveBase(Described, ABC):
    """Base of curves: checked times, sampling and plain data; subclasses define the motion in `at`."""

    def __call__(self, t: ArrayLike) -> State:
        """Return q, v, a."""
        return self.at(finite_times(t))

    @abstractmethod
    def at(self, t: Array) -> State:
        """Return q, v, a (N, n) at checked times (N,)."""

    def sample(self: Curve, rate: float) -> Motion:
        """Return the motion at a fixed rate."""
        return sample(self, rate)

    def plot(self: Curve, names: Sequence[str] | None = None) -> Figure:
        """Draw positions, velocities and accelerations over time."""
        return sample(self, DRAWN / self.duration).plot(names)


@dataclass(frozen=True, eq=False)
class Trajectory(CurveBase):
    """A family with its parameters."""

    _kind = "trajectory"

    family: Family  #: Basis functions
    coefficients: Array  #: (n, size), coefficients of each coordinate

    def __post_init__(self) -> None:
        c = np.array(numbers(self.coefficients, "coefficients"))
        if c.ndim != 2 or c.shape[1] != self.family.size or not np.all(np.isfinite(c)):
            raise DynidentError(f"coefficients have shape {c.shape}; give finite numbers, (coordinates, {self.family.size})")
        c.flags.writeable = False
        object.__setattr__(self, "coefficients", c)

    @classmethod
    def from_vector(cls, family: Family, x: ArrayLike) -> Trajectory:
        """Return the trajectory of a flat parameter vector, one coordinate after the other."""
        return cls(family, np.asarray(numbers(x, "x")).reshape(-1, family.size))

    @property
    def vector(self) -> Array:
        """Parameters as one flat vector, one coordinate after the other."""
        return self.coefficients.ravel()

    @property
    def duration(self) -> float:
        """Duration [s]."""
        return self.family.duration

    @property
    def dof(self) -> int:
        """Number of coordinates."""
        return int(self.coefficients.shape[0])

    def at(self, t: Array) -> State:
        """Return q, v, a at checked times."""
        return self.derivative(t, 0), self.derivative(t, 1), self.derivative(t, 2)

    def derivative(self, t: ArrayLike, order: int) -> Array:
        """Return a derivative in time, such as the jerk (order 3)."""
        return np.asarray(self.family.basis(t, order) @ self.coefficients.T)

    def jacobian(self, t: ArrayLike, order: int = 0) -> Array:
        """Return the derivative of q, v, a or jerk with respect to the flat parameters: exact, and constant."""
        phi = self.family.basis(t, order)
        out = np.zeros((phi.shape[0], self.dof, self.dof, self.family.size))
        for j in range(self.dof):
            out[:, j, j] = phi
        return out.reshape(phi.shape[0], self.dof, -1)


# Columns: value, slope and curvature at u = 0, then at u = 1; rows: powers u^0 ... u^5.
_ENDS = np.array(
    [[1.0, 0, 0, 0, 0, 0], [0, 1, 0, 0, 0, 0], [0, 0, 2, 0, 0, 0], [1, 1, 1, 1, 1, 1], [0, 1, 2, 3, 4, 5], [0, 0, 2, 6, 12, 20]]
)
HERMITE = np.linalg.inv(_ENDS)


def hermite(u: Array, order: int = 0) -> Array:
    """Return a derivative of the six quintic Hermite polynomials with respect to u."""
    powers = np.zeros((u.size, 6))
    for k in range(order, 6):
        powers[:, k] = np.prod(np.arange(k - order + 1, k + 1, dtype=np.float64)) * u ** (k - order)
    return np.asarray(powers @ HERMITE)


@dataclass(frozen=True, eq=False)
class Interpolated(CurveBase):
    """The curve through a motion's samples, with their q, v and a; the interpolation error is of sixth order in the step.

    Use it to put motions from inverse kinematics (lines, circles, letters, sines in the workspace) into joins and plans.
    """

    _kind = "interpolated"

    motion: Motion  #: Samples, at least two, in increasing time

    def __post_init__(self) -> None:
        if not isinstance(self.motion, Motion) or self.motion.t.size < 2 or not np.all(np.diff(self.motion.t) > 0.0):
            raise DynidentError("motion must have at least two samples in increasing time")

    @property
    def duration(self) -> float:
        """Duration [s]."""
        return float(self.motion.t[-1] - self.motion.t[0])

    @property
    def dof(self) -> int:
        """Number of coordinates."""
        return self.motion.dof

    def at(self, t: Array) -> State:
        """Return q, v, a at checked times."""
        m = self.motion
        knots = m.t - m.t[0]
        time = np.clip(t, 0.0, knots[-1])
        k = np.clip(np.searchsorted(knots, time, side="right") - 1, 0, knots.size - 2)
        h = np.diff(knots)[k][:, None]
        u = (time - knots[k]) / h[:, 0]
        ends = [m.q[k], m.v[k] * h, m.a[k] * h**2, m.q[k + 1], m.v[k + 1] * h, m.a[k + 1] * h**2]
        out = []
        for order in range(3):
            weights, total = hermite(u, order), np.zeros_like(ends[0])
            for i, x in enumerate(ends):
                total += weights[:, i : i + 1] * x
            out.append(total / h**order)
        outside = np.abs(t - time) > 1e-9 * (1.0 + knots[-1])
        out[1][outside] = out[2][outside] = 0.0
        return out[0], out[1], out[2]

    def _plain(self) -> dict[str, Any]:
        return {key: getattr(self.motion, key).tolist() for key in ("t", "q", "v", "a")}


@dataclass(frozen=True)
class BSpline(Described):
    """The family of clamped uniform B-splines from rest to rest: their first and last three control points coincide.

    The initial velocity of a clamped spline is proportional to c1 - c0 and its acceleration depends on c0, c1, c2 only, so
    three equal control points mean rest.
    """

    _kind = "bspline"

    duration: float  #: Duration [s]
    points: int  #: Free control points P >= 3: start, inner ones, end. They are the parameters [rad or m].
    degree: int = 5  #: 3 or more; with 5 the jerk is smooth

    def __post_init__(self) -> None:
        positive("duration", self.duration)
        if self.degree < 3:
            raise DynidentError(f"degree is {self.degree}; give at least 3, or the acceleration jumps")
        if self.points < 3:
            raise DynidentError(f"points is {self.points}; give at least 3 (start, one between, end)")

    @property
    def size(self) -> int:
        """Number of parameters of each coordinate."""
        return self.points

    @property
    def highest(self) -> float:
        """Frequency of an oscillation from one control point to the next [Hz]."""
        return 0.5 * (self.points - 1) / self.duration

    @cached_property
    def _spline(self) -> Any:
        control = np.zeros((self.points + 4, self.points))
        control[np.arange(self.points + 4), np.clip(np.arange(self.points + 4) - 2, 0, self.points - 1)] = 1.0
        degree = min(self.degree, self.points + 3)
        inner = self.points + 4 - degree
        knots = np.concatenate([np.zeros(degree), np.linspace(0.0, self.duration, inner + 1), np.full(degree, self.duration)])
        return scipy.interpolate.BSpline(knots, control, degree)

    def basis(self, t: ArrayLike, order: int = 0) -> Array:
        """Return a derivative of Phi."""
        time = finite_times(t)
        out = np.asarray(self._spline(np.clip(time, 0.0, self.duration), order))
        if order:
            out[(time < 0.0) | (time > self.duration)] = 0.0
        return out

    def constant(self) -> Array:
        """Return the parameters of q = 1, which convert a constant position into coefficients."""
        return np.ones(self.points)


@dataclass(frozen=True)
class Fourier(Described):
    """The family of finite Fourier series."""

    _kind = "fourier"

    frequency: float  #: Fundamental f [Hz]; one period is 1/f
    harmonics: int  #: Number of harmonics N
    rest: bool = True  #: True for series that start and end with zero velocity and acceleration; needs at least two harmonics
    convention: str = "velocity"  #: Quantity with the amplitudes a and b: "velocity" or "position"
    periods: int = 1  #: Number of periods

    def __post_init__(self) -> None:
        object.__setattr__(self, "frequency", positive("frequency", self.frequency))
        if self.harmonics < (2 if self.rest else 1):
            raise DynidentError(f"harmonics is {self.harmonics}; give at least 1, or 2 for a motion from rest to rest")
        if self.convention not in ("velocity", "position"):
            raise DynidentError(f"convention is {self.convention!r}; use 'velocity' or 'position'")
        if self.periods < 1:
            raise DynidentError(f"periods is {self.periods}; give at least 1")

    @property
    def duration(self) -> float:
        """Duration [s]."""
        return self.periods / self.frequency

    @property
    def highest(self) -> float:
        """Frequency of the last harmonic [Hz]."""
        return self.frequency * self.harmonics

    @property
    def size(self) -> int:
        """Number of parameters of each coordinate: 2 N + 1, two less with `rest`."""
        return 2 * self.harmonics + (-1 if self.rest else 1)

    @cached_property
    def _free(self) -> Array:
        """Z (2 N + 1, size): map from the parameters to all coefficients."""
        N = self.harmonics
        if not self.rest:
            return np.eye(2 * N + 1)
        order: Array = np.arange(1.0, N + 1.0)
        power = 0 if self.convention == "velocity" else 1
        Z = np.zeros((2 * N + 1, 2 * N - 1))
        Z[0, 0] = 1.0
        for first, weight in ((0, order**power), (1, order ** (power + 1))):
            # Orthonormal basis of weight . x = 0, from the full QR of the weight.
            null = np.linalg.qr(weight[:, None], mode="complete")[0][:, 1:]
            Z[1 + first :: 2, 1 + first * (N - 1) : 1 + (first + 1) * (N - 1)] = null
        return Z

    def basis(self, t: ArrayLike, order: int = 0) -> Array:
        """Return a derivative of Phi."""
        time = finite_times(t)
        full = np.zeros((time.size, 2 * self.harmonics + 1))
        full[:, 0] = 1.0 if order == 0 else 0.0
        w = 2.0 * np.pi * self.frequency * np.arange(1.0, self.harmonics + 1.0)
        angle = np.outer(time, w) + 0.5 * np.pi * order  # every derivative shifts the phase by a quarter of a turn
        size = w ** (order - 1 if self.convention == "velocity" else order)
        full[:, 1::2] = size * np.sin(angle)
        full[:, 2::2] = -size * np.cos(angle)
        return np.asarray(full @ self._free)

    def constant(self) -> Array:
        """Return the parameters of q = 1, which convert a constant position into coefficients."""
        return np.asarray(np.eye(self.size)[0])

    def amplitudes(self, coefficients: ArrayLike) -> tuple[Array, Array, Array]:
        """Return q0, a and b from the parameters."""
        full = np.atleast_2d(np.asarray(coefficients, dtype=np.float64)) @ self._free.T
        return full[:, 0], full[:, 1::2], full[:, 2::2]


def random_motion(
    centre: ArrayLike, box: ArrayLike, seed: int = 0, duration: float = 10.0, harmonics: int = 5, periods: int = 1
) -> Trajectory:
    """Return a random Fourier motion from rest to rest that fills a box around a pose.

    Parameters
    ----------
    centre, box : array_like, (n,)
        Pose at start and end, and largest distance from it.
    seed, harmonics, periods, duration
        Seed of the coefficients, number of harmonics, number of periods, length of one period [s].
    """
    start, width = np.asarray(centre, dtype=np.float64), np.asarray(box, dtype=np.float64)
    if start.shape != width.shape or start.ndim != 1 or not np.all(width > 0.0):
        raise DynidentError(f"box is {width.tolist()} around {start.tolist()}; give one half-width above zero per coordinate")
    family = Fourier(1.0 / duration, harmonics, rest=True, periods=periods)
    draw = np.random.default_rng(seed).normal(size=(family.size, start.size))
    shape = family.basis(np.linspace(0.0, duration, 400)) @ draw
    shape0 = family.basis(np.zeros(1)) @ draw
    scale = width / np.max(np.abs(shape - shape0), axis=0)
    return Trajectory(family, (scale * draw + np.outer(family.constant(), start - scale * shape0[0])).T)


# Quintic 10 u^3 - 15 u^4 + 6 u^5 and its derivatives with respect to u, highest power first.
RAMP = tuple(np.polyder(np.array([6.0, -15.0, 10.0, 0.0, 0.0, 0.0]), m) if m else np.array([6.0, -15.0, 10.0, 0.0, 0.0, 0.0])
             for m in range(4))  # fmt: skip


@dataclass(frozen=True)
class Multisine(Described):
    """The family of faded sums of sines."""

    _kind = "multisine"

    frequencies: tuple[float, ...]  #: f_k [Hz]
    phases: tuple[float, ...]  #: phi_k [rad]
    duration: float  #: Duration including fades [s]
    fade: float  #: Duration of the fade-in and of the fade-out [s]

    def __post_init__(self) -> None:
        object.__setattr__(self, "frequencies", tuple(float(f) for f in self.frequencies))
        object.__setattr__(self, "phases", tuple(float(p) for p in self.phases))
        if not self.frequencies or len(self.frequencies) != len(self.phases):
            raise DynidentError(f"{len(self.frequencies)} frequencies but {len(self.phases)} phases; give one phase each")
        for f in self.frequencies:
            positive("frequency", f)
        positive("duration", self.duration)
        positive("fade", self.fade)
        if 2.0 * self.fade > self.duration:
            raise DynidentError(f"fade is {self.fade} s but the motion lasts {self.duration} s; fade in at most half of it")

    @property
    def size(self) -> int:
        """Number of parameters of each coordinate: the offset and one amplitude per sine."""
        return 1 + len(self.frequencies)

    @property
    def highest(self) -> float:
        """Highest frequency [Hz]."""
        return max(self.frequencies)

    def window(self, t: ArrayLike, order: int = 0) -> Array:
        """Return a derivative of the window w."""
        time, F = finite_times(t), self.fade
        rise, fall = time / F, (self.duration - time) / F
        value = np.full(time.size, 1.0 if order == 0 else 0.0)
        for u, sense in ((rise, 1.0), (fall, -1.0)):
            inside = u < 1.0
            ramp = np.polyval(RAMP[order], np.clip(u[inside], 0.0, 1.0)) * (sense / F) ** order
            value[inside] = np.where(u[inside] < 0.0, 0.0, ramp)
        return value

    def basis(self, t: ArrayLike, order: int = 0) -> Array:
        """Return a derivative of Phi."""
        time = finite_times(t)
        w = 2.0 * np.pi * np.array(self.frequencies)
        angle = np.outer(time, w) + np.array(self.phases)
        out = np.zeros((time.size, self.size))
        out[:, 0] = 1.0 if order == 0 else 0.0
        for m in range(order + 1):  # Leibniz's rule
            wave = w ** (order - m) * np.sin(angle + 0.5 * np.pi * (order - m))
            out[:, 1:] += comb(order, m) * self.window(time, m)[:, None] * wave
        return np.asarray(out)

    def constant(self) -> Array:
        """Return the parameters of q = 1, which convert a constant position into coefficients."""
        return np.asarray(np.eye(self.size)[0])
