"""Families of trajectories: q(t) = Phi(t) c for each coordinate, with exact derivatives in time and in the parameters.

A family is a basis Phi of functions of time, the same for all coordinates; a `Trajectory` is a family with numbers. All
families here are linear in their parameters, so the derivatives of q, v and a by the parameters are Phi, Phi' and Phi''.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np
from numpy.typing import ArrayLike

from dynident.arrays import Array
from dynident.checks import finite_times, numbers
from dynident.checks import plain as scalar
from dynident.errors import DynidentError
from dynident.files import jsonable
from dynident.mechanics.functions import Motion

if TYPE_CHECKING:
    from matplotlib.figure import Figure


MOST_SAMPLES = 1e8  # of a curve at a fixed rate
State = tuple[Array, Array, Array]  # q, v, a
DRAWN = 2000  # samples of a figure


class Curve(Protocol):
    """What any motion over time can do: trajectories, plateaus, joined pieces."""

    @property
    def duration(self) -> float:
        """How long it takes [s]."""

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
        """How long it takes [s]."""

    @property
    def size(self) -> int:
        """Number of parameters of each coordinate."""

    @property
    def highest(self) -> float:
        """Highest frequency that it holds, or has as its scale [Hz]."""

    def basis(self, t: ArrayLike, order: int = 0) -> Array:
        """Return the derivative of the given order of Phi, (N, size)."""

    def constant(self) -> Array:
        """Return the parameters of q = 1, (size,). Positions that hold before the coefficients add to them."""

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
    """What families and curves share: their fields as plain data."""

    _kind: ClassVar[str]

    def spec(self) -> dict[str, Any]:
        """Return plain data, which `from_spec` reads back."""
        return {"kind": self._kind, **self._plain()}

    def _plain(self) -> dict[str, Any]:
        return {field.name: jsonable(getattr(self, field.name), lambda inner: inner.spec()) for field in fields(self)}


@dataclass(frozen=True, eq=False)
class CurveBase(Described, ABC):
    """What curves share: checked times, sampling and plain data; each says in `_at` where it is."""

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
    coefficients: Array  #: (n, size), parameters of each coordinate

    def __post_init__(self) -> None:
        c = np.array(numbers(self.coefficients, "coefficients"))
        if c.ndim != 2 or c.shape[1] != self.family.size or not np.all(np.isfinite(c)):
            raise DynidentError(f"coefficients have shape {c.shape}; give finite numbers, (coordinates, {self.family.size})")
        c.flags.writeable = False
        object.__setattr__(self, "coefficients", c)

    @classmethod
    def from_vector(cls, family: Family, x: ArrayLike) -> Trajectory:
        """Return the trajectory of a flat parameter vector, coordinate after coordinate."""
        return cls(family, np.asarray(numbers(x, "x")).reshape(-1, family.size))

    @property
    def vector(self) -> Array:
        """Parameters as one flat vector, coordinate after coordinate."""
        return self.coefficients.ravel()

    @property
    def duration(self) -> float:
        """How long it takes [s]."""
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
        """Return the derivative of q, v, a or jerk by the flat parameters: exact, and constant."""
        phi = self.family.basis(t, order)
        out = np.zeros((phi.shape[0], self.dof, self.dof, self.family.size))
        for j in range(self.dof):
            out[:, j, j] = phi
        return out.reshape(phi.shape[0], self.dof, -1)
