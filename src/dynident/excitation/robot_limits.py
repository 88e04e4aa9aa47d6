"""Limits that need the robot: efforts, the tool's box, passive joints and singularities of loops."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynident.excitation.limits import Box, State
from dynident.mechanics import Motion, actuator_torques, forward_kinematics, inverse_dynamics
from dynident.mechanics.closure import close_positions, close_rates
from dynident.mechanism import Mechanism

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Effort:
    """Torque (or force) and power of the joints, or of the motors of a robot with loops, from the robot's prior parameters.

    Parameters
    ----------
    mechanism : Mechanism
        Robot with prior parameters.
    torque : ndarray, (k,)
        Largest torques, infinite where there is none.
    power : ndarray, (k,)
        Largest mechanical power [W].
    """

    mechanism: Mechanism
    torque: Array
    power: Array
    orders = (0, 1, 2)

    @property
    def follows(self) -> bool:
        """True with loops."""
        return bool(self.mechanism.loops)

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the joints or motors."""
        robot = self.mechanism
        return tuple(a.name for a in robot.actuators) if robot.loops else robot.coordinate_names

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(
            f"{what} of {label}"
            for what, limit in (("torque", self.torque), ("power", self.power))
            for label, x in zip(self.labels, limit, strict=True)
            if np.isfinite(x)
        )

    def excess(self, state: State) -> Array:
        """Return (N, k).

        Parameters
        ----------
        state : State
            Motion.

        Returns
        -------
        ndarray, (N, k)
            Not above zero inside.
        """
        robot = self.mechanism
        motion = Motion(np.arange(float(len(state.q))), state.q, state.v, state.a)
        tau, speed = inverse_dynamics(robot, motion), state.v
        if robot.loops:
            from dynident.mechanics import actuator_jacobian  # noqa: PLC0415 - only with loops

            tau = actuator_torques(robot, state.q, tau)
            speed = np.einsum("tkn,tn->tk", actuator_jacobian(robot, state.q), state.v)
        out = [np.abs(x) / limit - 1.0 for x, limit in ((tau, self.torque), (tau * speed, self.power))]
        keep = np.concatenate([np.isfinite(self.torque), np.isfinite(self.power)])
        return np.concatenate(out, axis=1)[:, keep]


@dataclass(frozen=True, eq=False)
class ToolBox:
    """A box in space for the origin of a link; a tool height is a box with a lower z only.

    Parameters
    ----------
    mechanism : Mechanism
        Robot.
    frame : str
        Link.
    lower, upper : ndarray, (3,)
        Corners in the base frame [m], infinite where there is none.
    """

    mechanism: Mechanism
    frame: str
    lower: Array
    upper: Array
    orders = (0,)

    @property
    def follows(self) -> bool:
        """True with loops."""
        return bool(self.mechanism.loops)

    @property
    def _box(self) -> Box:
        return Box(0, self.lower, self.upper, tuple(f"{self.frame}.{axis}" for axis in "xyz"))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return self._box.names

    def excess(self, state: State) -> Array:
        """Return (N, k).

        Parameters
        ----------
        state : State
            Motion.

        Returns
        -------
        ndarray, (N, k)
            Not above zero inside.
        """
        place = forward_kinematics(self.mechanism, state.q, self.frame)[1]
        return self._box.excess(State(place, place, place, place))


@dataclass(frozen=True, eq=False)
class Loops:
    """Passive joints stay inside their limits and the robot away from singularities.

    Parameters
    ----------
    mechanism : Mechanism
        Robot with loops.
    lower, upper : ndarray, (n_tree,)
        Limits of all tree coordinates, infinite where there is none.
    least : float
        Smallest ratio of pivots of the closure, and of singular values of the actuator Jacobian; 0 for no margin.
    """

    mechanism: Mechanism
    lower: Array
    upper: Array
    least: float = 0.0
    orders = (0,)
    follows = True

    @property
    def _box(self) -> Box:
        return Box(0, self.lower, self.upper, self.mechanism.tree.coordinates)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        extra = ("closure singularity", "actuation singularity") if self.least > 0.0 else ()
        return (*self._box.names, *extra)

    def excess(self, state: State) -> Array:
        """Return (N, k).

        Parameters
        ----------
        state : State
            Motion.

        Returns
        -------
        ndarray, (N, k)
            Not above zero inside.
        """
        tree = close_positions(self.mechanism, state.q)
        out = self._box.excess(State(tree, tree, tree, tree))
        if self.least <= 0.0:
            return out
        zero = np.zeros_like(state.q)
        rates = close_rates(self.mechanism, tree, zero, zero)
        sizes = np.linalg.svd(self.mechanism.actuator_matrix[0] @ rates.G, compute_uv=False)
        near = np.stack([rates.pivot, sizes[:, -1] / sizes[:, 0]], axis=1)
        return np.concatenate([out, 1.0 - near / self.least], axis=1)
