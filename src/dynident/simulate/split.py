"""Where the torque of a run went: inertia, velocity and gravity torques of the mechanism, friction, the drives' own inertia."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dynident.files import to_json
from dynident.mechanics import Motion, actuator_torques, inverse_dynamics
from dynident.mechanics.batch import at_rest, times, tree_motion
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
    values = mechanism.parameters.values.copy()
    bodies = mechanism.tree.inertias.size
    rigid = values.copy()
    rigid[bodies:] = 0.0
    still = at_rest(mechanism, motion.q)
    zero = np.zeros_like(motion.q)
    held = inverse_dynamics(mechanism, still, rigid)
    pushed = inverse_dynamics(mechanism, Motion(motion.t, motion.q, zero, motion.a), rigid)
    moving = inverse_dynamics(mechanism, Motion(motion.t, motion.q, motion.v, zero), rigid)
    tree = tree_motion(mechanism, motion)

    def project(rows: Array) -> Array:
        if tree.G is None:
            return rows
        return times(rows, tree.G) if tree.G.ndim == 2 else np.asarray(np.einsum("stn,st->sn", tree.G, rows))

    columns = (*mechanism.joint_columns, *mechanism.actuator_columns)
    own = np.array([symbol == "ia" for _, symbol in columns], dtype=np.float64)
    terms = {}
    for name, mask in (("ia", own), ("rest", 1.0 - own)):
        chosen = values.copy()
        chosen[:bodies] = 0.0
        chosen[bodies:] *= mask
        rows = joint_torques(mechanism, chosen, tree.q, tree.v, tree.a)
        terms[name] = project(rows + motor_torques(mechanism, chosen, tree.q, tree.v, tree.a))
    terms["rest"] = _friction_of(robot, truth, project, terms["rest"])
    generalised = {"inertia": pushed - held, "velocity": moving - held, "gravity": held, "friction": terms["rest"]}
    parts = {name: actuator_torques(mechanism, motion.q, force) for name, force in generalised.items()}
    N = mechanism.actuator_matrix[0]
    reflected = np.array([drive.reflected_inertia for drive in robot.drives])
    ratio = np.array([drive.transmission.ratio for drive in robot.drives])
    parts["external"] = -truth.external
    parts["drive_inertia"] = (tree.a if mechanism.loops else motion.a) @ N.T * reflected
    parts["drive_inertia"] = parts["drive_inertia"] + actuator_torques(mechanism, motion.q, terms["ia"])
    parts["drive_friction"] = truth.friction * ratio
    names = tuple(actuator.name for actuator in mechanism.actuators)
    return TorqueSplit(names, truth.t, {name: parts[name] for name in PARTS}, truth.motor_torque * ratio)
