"""Requirements for compliant joints of a robot: ranges, moments, energy, and the motor forces that bend them.

    tau_s = k q_t of every flexure,    A^T f = G^T tau_s        (rigid kinematics, springs in the joints [Howell2001])

The kinematics assume ideal joints; compliance in other directions requires finite elements, which stay
outside dynident, or a model such as `dynident_papers.robots.prs3.compliant_pose`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from dynident.arrays import Array
from dynident.checks import number
from dynident.errors import DynidentError
from dynident.figures import pretty_unit
from dynident.mechanics.actuation import least_torques
from dynident.mechanics.functions import at_rest, coordinates, tree_motion
from dynident.mechanism import Mechanism
from dynident.results import Result

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, eq=False)
class FlexureRequirements(Result):
    """Deflections and loads of the flexures of a robot at given poses."""

    robot: str  # Its name
    joints: tuple[str, ...]  # The k flexures
    units: tuple[str, ...]  # Unit of each: rad or m
    stiffness: Array  # Stiffness of the flexures [N m/rad or N/m]
    actuators: tuple[str, ...]  # Motors
    efforts: tuple[str, ...]  # Unit of each motor's effort
    q: Array  # Poses
    angles: Array  # Deflections of the flexures from their unstrained position
    forces: Array  # Motor forces that balance the flexures alone, without weight and friction

    @property
    def ranges(self) -> Array:
        """Smallest and largest angle of every flexure, (k, 2)."""
        return np.stack([self.angles.min(axis=0), self.angles.max(axis=0)], axis=1)

    @property
    def moments(self) -> Array:
        """Moment of every flexure at every pose, (N, k) [N m or N]."""
        return np.asarray(self.angles * self.stiffness)

    @property
    def energy(self) -> Array:
        """Energy stored in all flexures, (N,) [J]."""
        return np.asarray(0.5 * np.sum(self.stiffness * self.angles**2, axis=1))

    def summary(self) -> str:
        """Return ranges, moments and forces as text, one line per flexure and motor."""
        lines = [f"{self.robot}: {len(self.joints)} flexures at {len(self.q)} poses"]
        largest = np.abs(self.moments).max(axis=0)
        for name, unit, k, (low, high), moment in zip(
            self.joints, self.units, self.stiffness, self.ranges, largest, strict=True
        ):
            turn = unit == "rad"
            scale, shown = (np.rad2deg(1.0), "deg") if turn else (1e3, "mm")
            lines.append(
                f"  {name:>12} {scale * low:8.3f} to {scale * high:7.3f} {shown}, k = {k:.5g} N{' m/rad' if turn else '/m'}, "
                f"up to {moment:.4g} N{' m' if turn else ''}"
            )
        rows = zip(self.actuators, self.efforts, np.abs(self.forces).max(axis=0), strict=True)
        lines += [f"  {name:>12} up to {force:.5g} {unit}" for name, unit, force in rows]
        return "\n".join(lines)

    def plot(self) -> Figure:
        """Draw the range of every flexure and the forces of the motors."""
        from dynident.figures import BLUE, ORANGE, finish, label, new_figure  # noqa: PLC0415 - matplotlib is an extra

        figure = new_figure(10.0, 1.2 + 0.25 * max(len(self.joints), 6))
        left, right = figure.add_axes((0.11, 0.16, 0.5, 0.74)), figure.add_axes((0.7, 0.16, 0.28, 0.74))
        at = np.arange(len(self.joints))
        left.use_sticky_edges = right.use_sticky_edges = False
        scale = np.array([np.rad2deg(1.0) if unit == "rad" else 1e3 for unit in self.units])
        low, high = (self.ranges * scale[:, None]).T
        left.barh(at, high - low, left=low, height=0.6, color=BLUE)
        left.set_yticks(at, [label(name) for name in self.joints], fontsize=8)
        left.invert_yaxis()
        unit = "range [deg]" if set(self.units) == {"rad"} else "range [deg, mm]"
        finish(left, unit, "", f"{label(self.robot)}: what the flexures turn")
        values = np.arange(len(self.actuators))
        force = self.forces
        right.bar(values, force.max(axis=0) - force.min(axis=0), bottom=force.min(axis=0), width=0.5, color=ORANGE)
        right.set_xticks(values, [label(name) for name in self.actuators], fontsize=8)
        finish(right, "", f"effort [{pretty_unit(self.efforts[0])}]" if self.efforts else "", "what the motors hold")
        return figure


def flexure_requirements(
    mechanism: Mechanism, q: ArrayLike, stiffness: Mapping[str, float] | None = None
) -> FlexureRequirements:
    """Return deflections and loads of the flexures of a robot at given poses, and the motor forces that bend them.

    Parameters
    ----------
    mechanism : Mechanism
        Robot with n coordinates whose flexures are joints.
    q : array_like, (N, n) or (n,)
        Poses; successive ones must be close.
    stiffness : mapping of str to float, optional
        Stiffness of every flexure by joint [N m/rad or N/m], unstrained at q = 0; the spring terms `k` of the robot's joints
        when omitted.

    Returns
    -------
    FlexureRequirements
        Angles, moments, energy and forces.
    """
    poses = coordinates(mechanism, q, "q")
    names = mechanism.tree.coordinates
    springs = _springs(mechanism, stiffness)
    moved = tree_motion(mechanism, at_rest(mechanism, poses))
    index = [names.index(name) for name in springs]
    k = np.array(list(springs.values()))
    torque = np.zeros_like(moved.q)
    torque[:, index] = k * moved.q[:, index]
    G = moved.G if moved.G is not None else np.broadcast_to(np.eye(len(names)), (len(poses), len(names), len(names)))
    A = mechanism.actuator_matrix[0] @ G
    forces = least_torques(A, np.einsum("tin,ti->tn", G, torque))
    slides = {joint.name for joint in mechanism.joints if joint.kind == "prismatic"}
    units = tuple("m" if name in slides else "rad" for name in springs)
    efforts = tuple(
        "N" if all(name in slides for name in actuator.coupling) and actuator.ratio == 1.0 else "N m"
        for actuator in mechanism.actuators
    )
    motors = tuple(actuator.name for actuator in mechanism.actuators)
    return FlexureRequirements(
        mechanism.name, tuple(springs), units, k, motors, efforts, poses, np.asarray(moved.q[:, index]), forces
    )


def _springs(mechanism: Mechanism, stiffness: Mapping[str, float] | None) -> dict[str, float]:
    """Return stiffnesses by tree coordinate."""
    names = mechanism.tree.coordinates
    if stiffness is not None:
        for name in stiffness:
            if name not in names:
                raise DynidentError(f"stiffness names '{name}', which is not a joint coordinate; there are {', '.join(names)}")
        return {name: number(f"stiffness of '{name}'", value, least=0.0) for name, value in stiffness.items()}
    found = {joint.name: float(joint.terms["k"]) for joint in mechanism.joints if joint.terms.get("k")}
    if not found:
        raise DynidentError(f"robot '{mechanism.name}' has no joint with a spring term k; give stiffness= by joint")
    return {name: found[name] for name in names if name in found}
