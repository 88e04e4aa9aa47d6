"""A complete machine for a known mechanism: its own drives or ideal ones, a standard controller and recorder.

Assumptions, all in this file: ideal drives have no inertia and no friction of their own and give the wanted torque at once (an
ampere is a newton metre at the motor), up to the effort limits of the description; encoders sit on the joints with 2^20 counts
per turn, or a micrometre, and an exact velocity; control runs at 1 kHz, plant at 4 kHz, and the controller knows the robot.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from dynident.arrays import Array
from dynident.checks import choice
from dynident.control.cascade import cascade_for, gains_for, spread
from dynident.control.laws import PID, Cascade, ComputedTorque
from dynident.drive.drive import Drive, Encoder, Motor, Transmission
from dynident.drive.joint_terms import beside_drives, identified_model, joint_side
from dynident.errors import DynidentError, SimulationError, require
from dynident.mechanics.actuation import actuator_jacobian
from dynident.mechanics.dynamics import mass_matrix
from dynident.mechanism.mechanism import Mechanism
from dynident.simulate.record import Sensors, notify
from dynident.simulate.reference import Reference
from dynident.simulate.robot import VirtualRobot

CONTROLLERS = ("computed_torque", "feedforward", "pd", "p", "cascade")
BANDWIDTH, DAMPING, CYCLE, STEP = 10.0, 0.7, 1e-3, 2.5e-4  # Hz, -, s, s
POSES = 64  # along a reference
COUNT = {"revolute": 2.0 * math.pi / 2**20, "prismatic": 1e-6}  # rad, m
BANDWIDTHS = (1e-3, 1e4)  # of a controller that is made here [Hz]


def actuator_inertia(mechanism: Mechanism, q: ArrayLike) -> Array:
    """Return the inertia that every actuator moves, J_i = (k / n) [(A^+)^T M A^+]_ii, at one pose or in the mean of several.

    For over-actuated robots (k > n) A^T J A = M in the mean, so that gains by J give the wanted bandwidth.
    """
    robot, x = joint_side(mechanism), np.atleast_2d(np.asarray(q, dtype=np.float64))
    inverse = np.linalg.pinv(actuator_jacobian(robot, x))
    own = np.einsum("pik,pij,pjk->k", inverse, mass_matrix(robot, x), inverse) / x.shape[0]
    return np.asarray(inverse.shape[2] / inverse.shape[1] * own)


def standard_controller(
    kind: str,
    model: Mechanism,
    q: ArrayLike,
    *,
    drives: Sequence[Drive] = (),
    bandwidth: float = BANDWIDTH,
    damping: float = DAMPING,
    cycle: float = CYCLE,
) -> PID | ComputedTorque | Cascade:
    """Return a controller of a wanted bandwidth.

    Parameters
    ----------
    kind : {"computed_torque", "feedforward", "pd", "p", "cascade"}
        Computed torque with the model; PD with the model as feed-forward; PD alone; P alone, which friction must damp; P, PI
        cascade with the reference's velocity, its velocity loop five times as fast. Coupled joints are faster in some
        directions than each alone: a cascade keeps a gain margin of 2 and a phase margin of 30 degrees in all of them, if need
        be with less bandwidth and a warning.
    model : Mechanism
        Model of the robot, drives included.
    q : array_like, (n,) or (N, n)
        Pose, or poses on the way, at which the inertias are taken that set the gains.
    drives : sequence of Drive
        Drives that a cascade's currents go to; ideal ones when empty.
    bandwidth, damping : float
        Of the error's second-order equation [Hz, -].
    cycle : float
        Cycle time [s]; a cascade's velocity loop runs at a quarter of it.
    """
    choice("controller", kind, CONTROLLERS)
    kp, kd = gains_for(bandwidth, damping)
    if not BANDWIDTHS[0] <= bandwidth <= BANDWIDTHS[1]:
        raise SimulationError(f"bandwidth is {bandwidth:g} Hz; give one from {BANDWIDTHS[0]:g} to {BANDWIDTHS[1]:g} Hz")
    if kind == "computed_torque":
        return ComputedTorque(model, kp, kd, cycle=cycle)
    J = actuator_inertia(model, q)
    if kind in ("pd", "p", "feedforward"):
        many = len(model.actuators) > model.dof
        return PID(
            kp * J,
            0.0 * J if kind == "p" else kd * J,
            cycle=cycle,
            project=many,
            feedforward=model if kind == "feedforward" else None,
        )
    exact = all(drive.encoder.velocity == "exact" for drive in drives)
    law, reached = cascade_for(spread(joint_side(model), q, J), bandwidth, damping, cycle, exact=exact)
    if reached < bandwidth:
        notify(
            f"the joints of robot '{model.name}' are coupled, so that a cascade of {bandwidth:g} Hz would be too fast for its "
            f"velocity cycle of {law.velocity_cycle:g} s in some directions: {reached:.3g} Hz are used; a cycle of "
            f"{cycle * reached / bandwidth:.2g} s keeps {bandwidth:g} Hz",
        )
    ratio = np.array([drive.transmission.ratio for drive in drives] or np.ones(J.size))
    constant = np.array([drive.motor.torque_constant for drive in drives] or np.ones(J.size))
    own = J / (ratio**2 * constant)
    return replace(law, velocity_gain=law.velocity_gain * own, velocity_integral=law.velocity_integral * own)


def standard_machine(
    mechanism: Mechanism,
    q: ArrayLike | None = None,
    *,
    drives: Sequence[Drive] | None = None,
    controller: str = "computed_torque",
    bandwidth: float = BANDWIDTH,
    cycle: float = CYCLE,
    step: float = STEP,
) -> VirtualRobot:
    """Return a virtual robot of which the mechanism and perhaps the drives are known, with the assumptions of this module.

    Parameters
    ----------
    mechanism : Mechanism
        Robot.
    q : array_like (n,) or (N, n), optional
        Pose, or poses on the way, at which the inertias are taken that set the gains; home, or zero, when omitted.
    drives : sequence of Drive, optional
        Its drives, as of `read_drives`; ideal ones when omitted. Rotor inertia and friction that the mechanism states for
        a joint include those of its drive, so that they count once.
    controller : {"computed_torque", "feedforward", "pd", "p", "cascade"}
        See `standard_controller`.
    bandwidth, cycle : float
        Of the controller [Hz], and its cycle time [s].
    step : float
        Step of the simulation [s].
    """
    require(mechanism, Mechanism, "mechanism")
    if drives is None:
        known, turned = mechanism, ideal_drives(mechanism)
    else:
        turned, mechanism = tuple(drives), beside_drives(mechanism, drives)
        known = identified_model(mechanism, turned, {}, "joint_torque")[0]
    pose = home_of(mechanism) if q is None else q
    law = standard_controller(controller, known, pose, drives=turned, bandwidth=bandwidth, cycle=cycle)
    if len(turned) < mechanism.dof:  # their encoders do not give all joints
        sensors = Sensors(effort="motor_torque", side="motor")
    else:
        sensors = Sensors(effort="joint_torque", side="joint")
    return VirtualRobot(mechanism, turned, law, sensors=sensors, step=step, name=mechanism.name)


def ideal_drives(mechanism: Mechanism) -> tuple[Drive, ...]:
    """Return drives with the assumptions of this module, one per actuator."""
    joints = {coordinate: joint for joint in mechanism.joints for coordinate in joint.coordinates}
    drives = []
    for actuator in mechanism.actuators:
        (first, *others) = actuator.coupling
        joint = joints[first]
        limit = joint.limits.effort if not others and joint.limits.effort > 0.0 else math.inf
        encoder = Encoder(COUNT["prismatic" if joint.kind == "prismatic" else "revolute"], "joint", velocity="exact")
        gear = Transmission.gear(actuator.ratio)
        drives.append(Drive(actuator.name, Motor(1.0, current_limit=limit / abs(actuator.ratio)), gear, encoder=encoder))
    return tuple(drives)


def poses_of(reference: Reference) -> Array:
    """Return poses at equal steps of time along a reference, at which gains are set."""
    return reference.sample(np.linspace(0.0, reference.duration, POSES)).q


def home_of(mechanism: Mechanism) -> Array:
    """Return the pose that a robot is described in: home of a robot with loops, zero of any other."""
    if not mechanism.loops:
        return np.zeros(mechanism.dof)
    return np.asarray(mechanism.closure.home[mechanism.closure.independent], dtype=np.float64)


def with_noise(machine: VirtualRobot, motion: object, efforts: float = 0.01, positions: float = 1e-5) -> VirtualRobot:
    """Return a machine whose recorder adds white noise to the log; the controller's measurements are unchanged.

    Parameters
    ----------
    machine : VirtualRobot
        The machine.
    motion : Motion, trajectory or plan
        Motion whose efforts the noise is measured against.
    efforts : float
        Standard deviation of the effort noise over the RMS effort.
    positions : float
        Standard deviation of the positions at the actuator coordinates [rad, m].
    """
    require(machine, VirtualRobot, "machine")
    if not (np.isfinite(efforts) and efforts >= 0.0 and np.isfinite(positions) and positions >= 0.0):
        raise DynidentError(f"noise of efforts is {efforts} and of positions {positions}; give numbers of at least 0")
    quiet = replace(machine, sensors=replace(machine.sensors, effort_noise=0.0, position_noise=0.0))
    effort = quiet.simulate(motion).log.effort if efforts > 0.0 else np.zeros((1, len(machine.drives)))
    turns = np.array([abs(drive.transmission.ratio) for drive in machine.drives])
    spread = positions * (turns if machine.sensors.side == "motor" else np.ones_like(turns))
    size = efforts * np.sqrt(np.mean(effort**2, axis=0))
    return replace(machine, sensors=replace(machine.sensors, effort_noise=size, position_noise=spread))
