"""Logs matched with robots: names, and the motor side converted to the joint side."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from dynident.arrays import Array
from dynident.errors import IdentificationError, LogError
from dynident.mechanism.mechanism import Mechanism
from dynident.signals.log import Log
from dynident.signals.quality import Finding, Segment, note

AGREE = 0.02  # of the largest motor position, up to which redundant motors agree (shafts twist)
MOVED = 1e-3  # rad or m: an omitted joint that moved further is reported
MOTOR_EFFORTS = ("motor_torque", "motor_current", "voltage")


@dataclass(frozen=True, eq=False)
class Matched:
    """A robot and a log with the same joints."""

    mechanism: Mechanism  # The robot with only the logged joints moving
    log: Log  # Joint-side positions and generalised efforts, columns in the order of ``mechanism.coordinate_names``
    notes: tuple[Finding, ...]  # Conversions and joints held fixed

    @cached_property
    def piece(self) -> Segment:
        """The used part of the log, examined once."""
        return Segment(self.log)


def match(mechanism: Mechanism, log: Log) -> Matched:
    """Convert a log to the joint side and hold missing joints fixed.

    q = N^-1 (q_motor - n0),        tau = N^T (gain effort)
    """
    if _speaks_of(log, mechanism):
        return Matched(mechanism, log, ())
    motor_effort = log.effort_kind in MOTOR_EFFORTS
    motor_side = bool(mechanism.loops) or motor_effort or log.position_side == "motor"
    motors = tuple(actuator.name for actuator in mechanism.actuators)
    named = log.named_like(*((motors, mechanism.coordinate_names) if motor_side else (mechanism.coordinate_names,)))
    notes = [] if named is log else [note("numbered", str(named.provenance["conversions"][-1]))]  # type: ignore[index]
    log = named
    if mechanism.loops:
        return _match_motors(mechanism, log, notes)
    log = _without_strangers(mechanism, log, notes) if motor_side else log
    joints = _driven(mechanism, log) if motor_side else log.joints
    unknown = [name for name in joints if name not in mechanism.coordinate_names]
    unmeasured = not any(np.any(log.effort[:, log.joints.index(name)]) for name in unknown if name in log.joints)
    if unknown and not motor_side and (set(mechanism.coordinate_names) <= set(joints) or unmeasured):
        joints = tuple(name for name in joints if name not in unknown)
        notes.append(_left_out(mechanism, log, unknown))
    elif unknown:
        raise LogError(
            f"log '{log.name}' has channels {', '.join(unknown)} that robot '{mechanism.name}' lacks; its joints are "
            f"{', '.join(mechanism.coordinate_names)}: rename the columns or name all channels in order (joints=, --joints)"
        )
    missing = [name for name in mechanism.coordinate_names if name not in joints]
    if missing:
        notes.append(_held(mechanism, missing))
        mechanism = mechanism.keep([name.split(".")[0] if name not in mechanism.joint_names else name for name in joints])
    if not set(mechanism.coordinate_names) <= set(joints):
        raise LogError(
            f"log '{log.name}' has only some coordinates of a joint; it needs {', '.join(mechanism.coordinate_names)}"
        )

    gains = _gain(mechanism, log)
    position, effort = log.position, (log if gains is None else replace(log, gain=gains)).torque()
    velocity, acceleration, reference = log.velocity, log.acceleration, log.reference
    if motor_side:
        N, n0 = mechanism.actuator_matrix
        order = [_channel(mechanism, log, actuator.name) for actuator in mechanism.actuators]
        if motor_effort:
            effort = effort[:, order] @ N
            text = "motor efforts converted to joint efforts by the actuators' gear and coupling matrix"
            if np.array_equal(N, np.eye(len(N))):
                text = "motor efforts are used as joint efforts because the robot's actuators have no gear ratios"
            notes.append(note("motor_side", text))
        else:
            effort = effort[:, _joint_channels(mechanism, log, "efforts")]
        if log.position_side == "motor":
            inverse = _joints_of_motors(mechanism, log, N, position[:, order] - n0)
            position = (position[:, order] - n0) @ inverse
            reference = None if reference is None else (reference[:, order] - n0) @ inverse
            velocity, acceleration = (None if x is None else x[:, order] @ inverse for x in (velocity, acceleration))
            notes.append(
                note("motor_side", "motor positions converted to joint positions by the actuators' gear and coupling matrix")
            )
        else:
            columns = _joint_channels(mechanism, log, "positions")
            position = position[:, columns]
            velocity, acceleration, reference = (
                None if x is None else x[:, columns] for x in (velocity, acceleration, reference)
            )
        temperature = None if log.temperature is None else log.temperature[:, order]
        if temperature is not None and N.shape[0] != N.shape[1]:  # several motors on a joint: their mean
            drives = np.where(N != 0.0, 1.0, 0.0)
            temperature = temperature @ (drives / drives.sum(axis=0))
    else:
        columns = [log.joints.index(name) for name in mechanism.coordinate_names]
        position, effort = position[:, columns], effort[:, columns]
        velocity, acceleration, reference, temperature = (
            None if x is None else x[:, columns] for x in (velocity, acceleration, reference, log.temperature)
        )
    converted = replace(
        log,
        joints=mechanism.coordinate_names,
        position=position,
        effort=effort,
        velocity=velocity,
        acceleration=acceleration,
        temperature=temperature,
        effort_kind="joint_torque",
        gain=None,
        position_side="joint",
        reference=reference,
    )
    return Matched(mechanism, converted, tuple(notes))


def _speaks_of(log: Log, robot: Mechanism) -> bool:
    """Return whether a log has generalised efforts of a tree robot's own coordinates, in their order."""
    if not isinstance(robot, Mechanism) or not isinstance(log, Log):
        given = f"a {type(robot).__name__} and a {type(log).__name__}"
        raise IdentificationError(f"a robot and a log are needed, but {given} were given; give a Mechanism and a Log")
    on_joints = (log.effort_kind, log.position_side) == ("joint_torque", "joint") and log.gain is None
    return on_joints and not robot.loops and log.joints == robot.coordinate_names


def _without_strangers(mechanism: Mechanism, log: Log, notes: list[Finding]) -> Log:
    """Return a motor log without channels unknown to the robot, such as of a gripper, if all of its joints remain."""
    known = [
        name for name in log.joints if name in mechanism.coordinate_names or any(name == a.name for a in mechanism.actuators)
    ]
    if not known or len(known) == len(log.joints):
        return log
    rest = log.select(known)
    if not set(mechanism.coordinate_names) <= set(_driven(mechanism, rest)):
        return log
    notes.append(_left_out(mechanism, log, [name for name in log.joints if name not in known]))
    return rest


def _left_out(mechanism: Mechanism, log: Log, names: list[str]) -> Finding:
    """Return the note about channels of joints unknown to the robot: mimic and locked joints, a gripper, a base."""
    text = f"channels left out, because robot '{mechanism.name}' has no such free joints: {', '.join(names)}"
    moved = [
        name
        for name in names
        if np.ptp(x := log.position[:, log.joints.index(name)]) > MOVED and not _follows(mechanism, log, name, x)
    ]
    if not moved:
        return note("channels_left_out", text)
    described = {joint.name for joint in mechanism.joints}
    own = [name for name in moved if name in described]
    if own:
        how = f"the description fixes or couples {', '.join(own)}, but log '{log.name}' contradicts it"
        return note("fixed_joint", f"{how}; make these joints free in the description", "error", f"position:{own[0]}")
    return note("channels_left_out", f"{text}; {', '.join(moved)} moved, which the model ignores", "warning")


def _follows(mechanism: Mechanism, log: Log, name: str, position: Array) -> bool:
    """Return whether a coupled joint follows its coupling."""
    for coupling in mechanism.couplings:
        if coupling.joint == name and coupling.function is None and set(coupling.of) <= set(log.joints):
            followed = sum(ratio * log.position[:, log.joints.index(other)] for other, ratio in coupling.of.items())
            return bool(np.nanmax(np.abs(position - followed - coupling.offset)) < max(MOVED, AGREE * float(np.ptp(position))))
    return False


def _held(mechanism: Mechanism, names: list[str]) -> Finding:
    """Return the note about joints missing in the log, with the option for their positions."""
    example = next((joint.name for joint in mechanism.joints if names[0] in joint.coordinates), names[0])
    beyond = [j.name for j in mechanism.joints if j.name in names and not j.limits.lower <= 0.0 <= j.limits.upper]
    doubt = f"; zero is outside the limits of {', '.join(beyond)}" if beyond else ""
    text = (
        f"joints not in the log are fixed at zero: {', '.join(names)}{doubt}; "
        f"give other positions with robot.lock({{'{example}': 0.5}}) (--lock {example}=0.5)"
    )
    return note("joints_held", text, "warning" if beyond else "info")


def _joints_of_motors(mechanism: Mechanism, log: Log, N: Array, turned: Array) -> Array:
    """Return the matrix from motor positions (N, k) to joint positions; redundant motors must agree."""
    if np.linalg.matrix_rank(N) < N.shape[1]:
        raise LogError(
            f"log '{log.name}' has motor positions, but robot '{mechanism.name}' has {N.shape[0]} motors for "
            f"{N.shape[1]} joints; log joint positions instead"
        )
    inverse = np.linalg.pinv(N).T
    apart = turned - turned @ inverse @ N.T
    if N.shape[0] > N.shape[1]:
        worst, size = np.nanmax(np.abs(apart), initial=0.0), np.nanmax(np.abs(turned), initial=0.0)
        if worst > AGREE * size:
            i = int(np.argmax(np.nanmax(np.abs(apart), axis=0)))
            raise LogError(
                f"log '{log.name}': the motor position of '{mechanism.actuators[i].name}' differs by {worst:.3g}; check "
                "ratios, offsets and signs of motors on the same joint"
            )
    return np.asarray(inverse)


def _match_motors(mechanism: Mechanism, log: Log, notes: list[Finding]) -> Matched:
    """Return the log of a robot with loops on the motor side, one channel per actuator: rho and motor torques."""
    order = [_channel(mechanism, log, actuator.name) for actuator in mechanism.actuators]
    if len(order) < mechanism.dof:
        raise LogError(
            f"robot '{mechanism.name}' has {mechanism.dof} degrees of freedom but {len(order)} actuators; "
            "name its motors as [[actuator]] in a sidecar"
        )
    if any(len(actuator.coupling) > 1 for actuator in mechanism.actuators):
        raise LogError(f"robot '{mechanism.name}' has loops and motors that act on several joints, which is not supported")
    ratio = np.array([a.ratio * next(iter(a.coupling.values())) for a in mechanism.actuators])
    gains = _gain(mechanism, log)
    effort = (log if gains is None else replace(log, gain=gains)).torque()[:, order]
    if log.effort_kind not in MOTOR_EFFORTS:
        effort = effort / ratio
    position, offset = log.position[:, order], mechanism.actuator_matrix[1]
    reference = None if log.reference is None else log.reference[:, order]
    velocity, acceleration = (None if x is None else x[:, order] for x in (log.velocity, log.acceleration))
    if log.position_side == "joint":
        position = position * ratio + offset
        reference = None if reference is None else reference * ratio + offset
        velocity, acceleration = (None if x is None else x * ratio for x in (velocity, acceleration))
    converted = replace(
        log,
        joints=tuple(actuator.name for actuator in mechanism.actuators),
        position=position,
        effort=effort,
        velocity=velocity,
        acceleration=acceleration,
        temperature=None if log.temperature is None else log.temperature[:, order],
        effort_kind="motor_torque",
        gain=None,
        position_side="motor",
        reference=reference,
    )
    loops = note("motor_side", "robot with loops: motor positions and torques are used, the loops give the rest")
    return Matched(mechanism, converted, (*notes, loops))


def _driven(mechanism: Mechanism, log: Log) -> tuple[str, ...]:
    """Return the joints that the log's motors drive."""
    motors = {actuator.name: actuator for actuator in mechanism.actuators}
    joints: list[str] = []
    for channel in log.joints:
        if channel in motors:
            joints += motors[channel].coupling
        elif channel in mechanism.coordinate_names:
            joints.append(channel)
        else:
            raise LogError(
                f"log '{log.name}' has a motor channel '{channel}' that robot '{mechanism.name}' does not have; its actuators "
                f"are {', '.join(motors) or 'none'}"
            )
    return tuple(dict.fromkeys(joints))


def _channel(mechanism: Mechanism, log: Log, actuator: str) -> int:
    """Return the log column of an actuator, named after it or after the only joint it drives."""
    if actuator in log.joints:
        return log.joints.index(actuator)
    motor = next(a for a in mechanism.actuators if a.name == actuator)
    if len(motor.coupling) == 1 and next(iter(motor.coupling)) in log.joints:
        return log.joints.index(next(iter(motor.coupling)))
    raise LogError(f"log '{log.name}' has no channel for actuator '{actuator}'; its channels are {', '.join(log.joints)}")


def _joint_channels(mechanism: Mechanism, log: Log, quantity: str) -> list[int]:
    """Return the log column of every joint's own positions or efforts, named after it or after a motor of it alone."""
    columns = []
    for joint in mechanism.coordinate_names:
        names = [joint, *(a.name for a in mechanism.actuators if list(a.coupling) == [joint])]
        found = [log.joints.index(name) for name in names if name in log.joints]
        if not found:
            other = "position_side = 'motor'" if quantity == "positions" else "effort = 'motor_torque'"
            raise LogError(
                f"log '{log.name}' has {quantity} of joints, but no channel for joint '{joint}'; its channels are "
                f"{', '.join(log.joints)}: rename them (joints=, --joints), or state {other}"
            )
        columns.append(found[0])
    return columns


def with_drive_gains(mechanism: Mechanism, log: Log) -> Mechanism:
    """Return the robot with the drive gains of a log of currents or voltages in its motors."""
    if log.gain is None or log.effort_kind not in ("motor_current", "voltage"):
        return mechanism
    known = dict(zip(log.joints, np.broadcast_to(log.gain, (len(log.joints),)).tolist(), strict=True))
    actuators = []
    for motor in mechanism.actuators:
        joint = next(iter(motor.coupling)) if len(motor.coupling) == 1 else ""
        actuators.append(replace(motor, gain=known.get(motor.name, known.get(joint, motor.gain))))
    return mechanism.altered(actuators=tuple(actuators))


def _gain(mechanism: Mechanism, log: Log) -> Array | None:
    """Return drive gains (N m per A or V) of the actuators if the log has none and its efforts are not torques."""
    if log.gain is not None or log.effort_kind not in ("motor_current", "voltage"):
        return None
    gains = {}
    for actuator in mechanism.actuators:
        if actuator.gain is not None:
            gains[actuator.name] = actuator.gain
            if len(actuator.coupling) == 1:
                gains.setdefault(next(iter(actuator.coupling)), actuator.gain)
    return np.array([gains[c] for c in log.joints]) if all(c in gains for c in log.joints) else None
