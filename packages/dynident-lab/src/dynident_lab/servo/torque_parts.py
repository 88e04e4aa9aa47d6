"""Decomposition of the motor torques of a run.

ratio K_t i = mechanism (inertia, velocity, gravity, external, friction) + internal + drive (inertia, elastic, friction, loss)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dynident.arrays import Array
from dynident.errors import SimulationError
from dynident.figures import CURVES, INK, WIDTH, extremes, finish, label, new_figure
from dynident.mechanics.actuation import actuator_torques, preload
from dynident.mechanics.dynamics import inverse_dynamics, jacobian
from dynident.mechanics.functions import Motion, at_rest, project, tree_motion
from dynident.results import Result
from dynident.simulate.record import Run

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MECHANISM = ("inertia", "velocity", "gravity", "external", "friction")
PARTS = (*MECHANISM, "internal", "drive_inertia", "drive_elastic", "drive_friction", "drive_loss")


@dataclass(frozen=True, eq=False)
class TorqueSplit(Result):
    """Torques at the actuator coordinates by part; their sum is the motor torque."""

    names: tuple[str, ...]  #: Actuators
    t: Array  #: (N,), times [s]
    #: (N, k), ``inertia`` (links), ``velocity`` (centrifugal and Coriolis), ``gravity``, ``external`` (disturbances and
    #: wrenches, with the sign of the torque that holds them), ``friction`` (and springs) of the joints, ``internal``
    #: (preload of a redundant robot, without motion), ``drive_inertia`` (all masses of the drive, as if they moved with
    #: rho), ``drive_elastic`` (additional torque of the masses before elastic shafts due to their different motion),
    #: ``drive_friction`` (of the rotors), ``drive_loss`` (efficiency of the gears) [N m, N]
    parts: Mapping[str, Array]
    total: Array  #: (N, k), motor torques behind the gears [N m, N]

    @property
    def mechanism(self) -> Array:
        """Torque of the mechanism on the drives, (N, k): all parts except the internal part and those of the drives."""
        return np.asarray(sum(self.parts[name] for name in MECHANISM))

    @property
    def rest(self) -> Array:
        """Total minus all parts, (N, k): rounding error, and for loops the tolerance of their closure."""
        return np.asarray(self.total - sum(self.parts.values()))

    def rms(self) -> dict[str, Array]:
        """Return the root mean square of every part, of the rest and of the total, (k,) each [N m, N]."""
        every = {**self.parts, "rest": self.rest, "total": self.total}
        return {name: np.sqrt(np.mean(values**2, axis=0)) for name, values in every.items()}

    def plot(self, actuators: Sequence[str] | None = None) -> Figure:
        """Draw the parts over time, one panel per actuator."""
        return _plot(self, actuators)

    def summary(self) -> str:
        """Return the root mean square torques as a table without zero parts, one line per actuator."""
        table = {name: values for name, values in self.rms().items() if np.any(values) or name in ("rest", "total")}
        lines = ["RMS torque [N m, N]  " + "  ".join(f"{name:>14s}" for name in table)]
        for j, name in enumerate(self.names):
            lines.append(f"{name:<20s} " + "  ".join(f"{values[j]:14.4g}" for values in table.values()))
        return "\n".join(lines)


def torque_split(run: Run) -> TorqueSplit:
    """Return the parts of the motor torques of a run: inertia, velocity, gravity, friction, drives."""
    robot, truth = run.robot, run.truth
    mechanism, motion = robot.mechanism, truth.motion
    bodies, values = mechanism.tree.inertias.size, mechanism.parameters.values
    rigid, rotors = values.copy(), values.copy()
    rigid[bodies:] = 0.0
    rotors[:bodies] = 0.0
    rotors[bodies:] *= mechanism.rotor_columns
    zero = np.zeros_like(motion.q)
    held = inverse_dynamics(mechanism, at_rest(mechanism, motion.q), rigid)
    pushed = inverse_dynamics(mechanism, Motion(motion.t, motion.q, zero, motion.a), rigid)
    moving = inverse_dynamics(mechanism, Motion(motion.t, motion.q, motion.v, zero), rigid)
    tree = tree_motion(mechanism, motion)
    outside = np.zeros_like(motion.q)
    for link, wrench in truth.wrenches.items():
        outside = outside + np.einsum("sij,si->sj", jacobian(mechanism, motion.q, link), wrench)
    forces = values.copy()
    forces[: values.size - sum(len(force.names) for force in mechanism.forces)] = 0.0
    outside = outside - inverse_dynamics(mechanism, motion, forces)  # springs and other force elements
    generalised = {
        "inertia": pushed - held,
        "velocity": moving - held,
        "gravity": held,
        "external": -outside,
        "friction": project(tree.G, truth.joint_friction),
        "drive_inertia": inverse_dynamics(mechanism, motion, rotors),
    }
    parts = {name: actuator_torques(mechanism, motion.q, force) for name, force in generalised.items()}
    ratio = np.array([drive.transmission.ratio for drive in robot.drives])
    reflected = np.array([drive.reflected_inertia for drive in robot.drives])
    N = mechanism.actuator_matrix[0]
    rho_a = (tree.a if mechanism.loops else motion.a) @ N.T
    total, rubbed = truth.motor_torque * ratio, truth.friction * ratio
    rigid_drives = np.array([drive.rigid for drive in robot.drives])
    before = np.array([drive.input_inertia for drive in robot.drives])
    # The torque between rotor and gear, minus the torque that the masses there would need if they moved with rho.
    twisted = total - rubbed - truth.gear_loss - truth.torques - ratio**2 * before * rho_a
    parts["drive_elastic"] = np.where(rigid_drives, 0.0, twisted)
    parts["drive_friction"], parts["drive_loss"] = rubbed, truth.gear_loss
    own_inertia = rho_a * reflected
    handed = total - rubbed - truth.gear_loss - own_inertia - parts["drive_elastic"] + truth.external
    parts["internal"] = preload(mechanism, motion.q, handed)
    parts["external"] = parts["external"] - truth.external
    parts["drive_inertia"] = parts["drive_inertia"] + own_inertia
    names = tuple(actuator.name for actuator in mechanism.actuators)
    return TorqueSplit(names, truth.t, {name: parts[name] for name in PARTS}, total)


PART_NAMES = {
    "inertia": "inertia of links",
    "velocity": "centrifugal, Coriolis",
    "gravity": "gravity",
    "external": "external",
    "friction": "friction of joints",
    "drive_inertia": "inertia of drives",
    "internal": "internal preload",
    "drive_elastic": "shafts of drives",
    "drive_friction": "friction of drives",
    "drive_loss": "losses of gears",
}


def _plot(split: TorqueSplit, actuators: Sequence[str] | None = None) -> Figure:
    """Draw the parts of the motor torques over time and as RMS bars, one row per actuator."""
    chosen = tuple(split.names if actuators is None else actuators)
    unknown = [name for name in chosen if name not in split.names]
    if unknown or not chosen:
        raise SimulationError(f"cannot draw actuators {unknown or chosen}; there are {', '.join(split.names)}")
    used = [name for name, values in split.parts.items() if np.max(np.abs(values), initial=0.0) > 0.0]
    height = 2.1 * len(chosen) + 1.0
    figure = new_figure(WIDTH, height)
    edges = {"left": 0.075, "right": 0.985, "top": 1.0 - 0.55 / height, "bottom": 0.5 / height}
    grid = figure.add_gridspec(len(chosen), 2, width_ratios=(3.0, 1.0), **edges, hspace=0.3, wspace=0.4)
    rms, colours = split.rms(), [CURVES[i % len(CURVES)] for i in range(len(used))]
    for row, name in enumerate(chosen):
        j = split.names.index(name)
        left, right = figure.add_subplot(grid[row, 0]), figure.add_subplot(grid[row, 1])
        left.plot(*extremes(split.t, split.total[:, j]), color=INK, linewidth=1.3, label="motor, behind the gear")
        titles = [PART_NAMES.get(part, part) for part in used]
        for part, title, colour in zip(used, titles, colours, strict=True):
            left.plot(*extremes(split.t, split.parts[part][:, j]), color=colour, linewidth=0.9, label=title)
        right.barh(np.arange(len(used)), [rms[part][j] for part in used], color=colours, height=0.65)
        right.set_yticks(np.arange(len(used)), titles)
        right.invert_yaxis()
        last = row == len(chosen) - 1
        finish(left, "time [s]" if last else "", "[N m or N]", label(name, 60))
        finish(right, "RMS [N m or N]" if last else "", "", "")
        left.margins(x=0.0)
        left.tick_params(labelbottom=last)
    handles, names = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="upper center", ncols=4 if len(names) > 4 else len(names), frameon=False, fontsize=8.5)
    return figure
