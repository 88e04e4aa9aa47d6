"""Which effect does what: the torques of a motion, term by term."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynident.figures import finish, label, new_figure
from dynident.friction import term_of
from dynident.mechanics import Motion, MotionLike, as_motion, inverse_dynamics, values_of
from dynident.mechanism import Mechanism, Parameters
from dynident.results import Result

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Contributions(Result):
    """Parts of the torque along a motion; they add up to the inverse dynamics.

    Parameters
    ----------
    t : ndarray, (N,)
        Time [s].
    coordinates : tuple of str
        Names of the n columns.
    parts : mapping of str to ndarray (N, n)
        ``inertial`` (rotors included), ``centrifugal`` (with v_i^2), ``coriolis`` (with v_i v_j), ``gravity``, ``friction``
        and ``spring_and_offset`` [N m, N].
    """

    t: Array
    coordinates: tuple[str, ...]
    parts: Mapping[str, Array]

    def __getitem__(self, name: str) -> Array:
        return self.parts[name]

    @property
    def total(self) -> Array:
        """Sum of all parts, (N, n)."""
        return np.asarray(sum(self.parts.values()))

    @property
    def shares(self) -> dict[str, Array]:
        """Root mean square of every part by joint, (n,) each [N m, N]."""
        return {name: np.sqrt(np.mean(part**2, axis=0)) for name, part in self.parts.items()}

    def plot(self) -> Any:
        """Draw one panel per coordinate with all parts over time. The figure; it is neither shown nor saved."""
        n = len(self.coordinates)
        figure = new_figure(8.0, 1.0 + 1.7 * n)
        axes = np.atleast_1d(figure.subplots(n, 1, sharex=True))
        for j, (axis, name) in enumerate(zip(axes, self.coordinates, strict=True)):
            for part, values in self.parts.items():
                if np.any(values):
                    axis.plot(self.t, values[:, j], label=part.replace("_", " "), linewidth=1.0)
            axis.plot(self.t, self.total[:, j], color="black", linewidth=0.8, linestyle=":", label="total")
            finish(axis, "time [s]" if j == n - 1 else "", f"{label(name)} [N m, N]", "")
        axes[0].legend(loc="upper right", frameon=False, fontsize=8, ncols=4)
        figure.tight_layout()
        return figure


def contributions(mechanism: Mechanism, motion: MotionLike, parameters: Parameters | ArrayLike | None = None) -> Contributions:
    """Split the torques of a motion into inertial, centrifugal, Coriolis, gravity, friction and constant parts.

        tau = M a + sum_i c_ii v_i^2 + sum_(i<j) c_ij v_i v_j + g + friction + springs and offsets

    Torques are linear in the parameters, and quadratic in the velocities apart from friction: the parts follow from inverse
    dynamics with one group of parameters and one velocity at a time.

    Parameters
    ----------
    mechanism : Mechanism
        Robot with n coordinates.
    motion : Motion or (q, v, a)
        N samples.
    parameters : Parameters or array_like (p,), optional
        Standard parameters; the robot's own when omitted.

    Returns
    -------
    Contributions
        The parts.
    """
    motion = as_motion(motion)
    values = values_of(mechanism, parameters)
    terms = [term_of(name) for name in mechanism.parameters.names]
    friction = np.array([term is not None and term.friction for term in terms], dtype=bool)
    inertial = np.array([term is None or term.rotor for term in terms], dtype=bool)
    zero = np.zeros_like(motion.q)

    def torques(v: Array, a: Array, chosen: NDArray[np.bool_]) -> Array:
        return inverse_dynamics(mechanism, Motion(motion.t, motion.q, v, a), np.where(chosen, values, 0.0))

    gravity = torques(zero, zero, inertial)
    centrifugal = np.zeros_like(gravity)
    for i in range(motion.dof):
        alone = zero.copy()
        alone[:, i] = motion.v[:, i]
        centrifugal += torques(alone, zero, inertial) - gravity
    parts = {
        "inertial": torques(zero, motion.a, inertial) - gravity,
        "centrifugal": centrifugal,
        "coriolis": torques(motion.v, zero, inertial) - gravity - centrifugal,
        "gravity": gravity,
        "friction": torques(motion.v, zero, friction),
        "spring_and_offset": torques(motion.v, zero, ~(friction | inertial)),
    }
    return Contributions(motion.t, mechanism.coordinate_names, parts)
