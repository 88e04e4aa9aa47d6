"""Where the torque of a run went: inertia, velocity and gravity torques of the mechanism, friction, the drives' own inertia."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dynident.files import to_json
from dynident.mechanics import Motion, actuator_torques, inverse_dynamics, jacobian
from dynident.mechanics.batch import at_rest, project, tree_motion
from dynident.mechanics.joint_terms import joint_torques, motor_torques

if TYPE_CHECKING:
    from dynident.simulate.record import Truth
    from dynident.simulate.robot import VirtualRobot

Array = NDArray[np.float64]

PARTS = ("inertia", "velocity", "gravity", "external", "friction", "drive_inertia", "drive_friction")


@dataclass(frozen=True, eq=False)
class TorqueSplit:
    """Torques at the actuator coordinates, part by part; their sum is what the motors gave.

    Parameters
    ----------
    names : tuple of str
        Actuators.
    t : ndarray, (N,)
        Times [s].
    parts : mapping of str to ndarray (N, k)
        ``inertia`` (links), ``velocity`` (centrifugal and Coriolis), ``gravity``, ``external`` (disturbances and wrenches,
        with the sign of the torque that holds them), ``friction`` (and springs) of the joints, ``drive_inertia``,
        ``drive_friction`` [N m, N].
    total : ndarray, (N, k)
        Motor torques behind the gears [N m, N].
    """

    names: tuple[str, ...]
    t: Array
    parts: Mapping[str, Array]
    total: Array

    @property
    def mechanism(self) -> Array:
        """What the mechanism asks of the drives, (N, k): all parts but the drives' own."""
        return np.asarray(sum(values for name, values in self.parts.items() if not name.startswith("drive_")))

    @property
    def rest(self) -> Array:
        """Total less all parts, (N, k): internal preload, losses by efficiency, motion of elastic shafts."""
        return np.asarray(self.total - sum(self.parts.values()))

    def rms(self) -> dict[str, Array]:
        """Return the root mean square of every part, of the rest and of the total.

        Returns
        -------
        dict of str to ndarray, (k,)
            By part [N m, N].
        """
        every = {**self.parts, "rest": self.rest, "total": self.total}
        return {name: np.sqrt(np.mean(values**2, axis=0)) for name, values in every.items()}

    def summary(self) -> str:
        """Return the root mean square torques as a table.

        Returns
        -------
        str
            One line per actuator.
        """
        table = self.rms()
        lines = ["RMS torque [N m, N]  " + "  ".join(f"{name:>14s}" for name in table)]
        for j, name in enumerate(self.names):
            lines.append(f"{name:<20s} " + "  ".join(f"{values[j]:14.4g}" for values in table.values()))
        return "\n".join(lines)

    def to_json(self) -> str:
        """Return the root mean square torques as JSON.

        Returns
        -------
        str
            JSON text.
        """
        data: dict[str, Any] = {"actuators": list(self.names)}
        return to_json({**data, "rms": {name: values.tolist() for name, values in self.rms().items()}})


def split_torques(robot: VirtualRobot, truth: Truth) -> TorqueSplit:
    """Return where the torques of a run went.

    Parameters
    ----------
    robot : VirtualRobot
        The machine.
    truth : Truth
        True signals of the run.

    Returns
    -------
    TorqueSplit
        Parts at the actuator coordinates; of a redundant robot those of minimum norm.
    """
    mechanism, motion = robot.mechanism, truth.motion
    bodies, values = mechanism.tree.inertias.size, mechanism.parameters.values
    rigid, rotors = values.copy(), values.copy()
    rigid[bodies:] = 0.0
    rotors[:bodies] = 0.0
    rotors[bodies:] *= [symbol == "ia" for _, symbol in (*mechanism.joint_columns, *mechanism.actuator_columns)]
    zero = np.zeros_like(motion.q)
    held = inverse_dynamics(mechanism, at_rest(mechanism, motion.q), rigid)
    pushed = inverse_dynamics(mechanism, Motion(motion.t, motion.q, zero, motion.a), rigid)
    moving = inverse_dynamics(mechanism, Motion(motion.t, motion.q, motion.v, zero), rigid)
    tree = tree_motion(mechanism, motion)
    own = joint_torques(mechanism, rotors, tree.q, tree.v, tree.a) + motor_torques(mechanism, rotors, tree.q, tree.v, tree.a)
    outside = np.zeros_like(motion.q)
    for link, wrench in truth.wrenches.items():
        outside = outside + np.einsum("sij,si->sj", jacobian(mechanism, motion.q, link), wrench)
    generalised = {
        "inertia": pushed - held,
        "velocity": moving - held,
        "gravity": held,
        "external": -outside,
        "friction": project(tree.G, truth.joint_friction),
        "drive_inertia": project(tree.G, own),
    }
    parts = {name: actuator_torques(mechanism, motion.q, force) for name, force in generalised.items()}
    ratio = np.array([drive.transmission.ratio for drive in robot.drives])
    reflected = np.array([drive.reflected_inertia for drive in robot.drives])
    N = mechanism.actuator_matrix[0]
    parts["external"] = parts["external"] - truth.external
    parts["drive_inertia"] = parts["drive_inertia"] + (tree.a if mechanism.loops else motion.a) @ N.T * reflected
    parts["drive_friction"] = truth.friction * ratio
    names = tuple(actuator.name for actuator in mechanism.actuators)
    return TorqueSplit(names, truth.t, {name: parts[name] for name in PARTS}, truth.motor_torque * ratio)
