"""The largest acceleration of a robot's tool by its motors, such as the 25 g of [Briot2015, section 5.1]."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import scipy.optimize
from numpy.typing import ArrayLike

from dynident.arrays import Array
from dynident.checks import numbers
from dynident.errors import DynidentError
from dynident.mechanics.actuation import actuator_jacobian
from dynident.mechanics.dynamics import end_frame, gravity, jacobian, mass_matrix
from dynident.mechanism import Mechanism
from dynident.results import Result

G = 9.80665  # m/s^2


@dataclass(frozen=True, eq=False)
class Acceleration(Result):
    """The largest acceleration of a link from rest, and the required efforts."""

    robot: str
    frame: str
    direction: Array  # (3,), unit vector in base axes
    largest: float  # m/s^2
    joints: Array  # Accelerations of the coordinates
    efforts: Array  # Torques or forces of the motors behind their gears [N m or N]
    limits: Array  # Their limits
    derived: ClassVar[tuple[str, ...]] = ("in_g",)

    @property
    def in_g(self) -> float:
        """The acceleration in units of g."""
        return self.largest / G

    def summary(self) -> str:
        """Return the result as text."""
        full = ", ".join(f"{100.0 * abs(x) / y:.0f} %" for x, y in zip(self.efforts, self.limits, strict=True))
        along = ", ".join(f"{x:g}" for x in np.round(self.direction, 4))
        return (
            f"{self.robot}: {self.frame} can accelerate at {self.largest:.4g} m/s^2 ({self.in_g:.3g} g) along ({along}) "
            f"from rest; motors at {full} of their limits"
        )


def largest_acceleration(
    mechanism: Mechanism,
    efforts: ArrayLike,
    direction: ArrayLike,
    q: ArrayLike,
    frame: str | None = None,
    turning: bool = False,
) -> Acceleration:
    """Return the largest acceleration of a link along a direction from rest, without friction.

        max s   subject to   M nu_dot + g = A^T tau,   J nu_dot = s d,   |tau| <= limits          (linear programme)

    Parameters
    ----------
    mechanism : Mechanism
        Robot with n coordinates and k actuators.
    efforts : array_like, (k,)
        Limits of the motors, behind their gears [N m or N].
    direction : array_like, (3,)
        Direction in base axes.
    q : array_like, (n,)
        Pose.
    frame : str, optional
        Link; the only end when omitted.
    turning : bool
        Whether the link may turn meanwhile; False keeps its orientation.
    """
    d, limits = numbers(direction, "direction"), numbers(efforts, "efforts")
    k, n = len(mechanism.actuators), mechanism.dof
    if d.shape != (3,) or not np.any(d):
        raise DynidentError(f"direction is {np.asarray(direction).tolist()}; give three numbers, not all zero")
    if limits.shape != (k,) or not np.all(limits > 0.0) or not np.all(np.isfinite(limits)):
        raise DynidentError(f"efforts has shape {limits.shape}; give {k} limits above zero, one per motor")
    d, x, name = d / np.linalg.norm(d), np.atleast_2d(numbers(q, "q")), end_frame(mechanism, frame)
    rows = 3 if turning else 6
    M, g, A = mass_matrix(mechanism, x)[0], gravity(mechanism, x)[0], actuator_jacobian(mechanism, x)[0]
    J = jacobian(mechanism, x, name, "world")[0, :rows]
    along = np.append(d, np.zeros(rows - 3))
    equal = np.block([[M, -A.T, np.zeros((n, 1))], [J, np.zeros((rows, k)), -along[:, None]]])
    bounds = [(None, None)] * n + [(-x, x) for x in limits] + [(0.0, None)]
    found = scipy.optimize.linprog(
        np.append(np.zeros(n + k), -1.0), A_eq=equal, b_eq=np.append(-g, np.zeros(rows)), bounds=bounds, method="highs"
    )
    if found.status != 0:
        raise DynidentError(f"the motors of robot '{mechanism.name}' cannot hold this pose, or have no limits; give limits")
    solved = np.asarray(found.x)
    return Acceleration(mechanism.name, name, d, float(solved[-1]), solved[:n], solved[n : n + k], limits)
