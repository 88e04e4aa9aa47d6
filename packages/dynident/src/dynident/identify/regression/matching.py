"""Bringing a log and a robot together: names, motor side to joint side, joints that the log does not have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dynident.arrays import Array
from dynident.errors import IdentificationError, LogError, SignalWarning, require, warn
from dynident.mechanics.closure import motion_from_actuators
from dynident.mechanics.motion import Motion
from dynident.mechanism.mechanism import Mechanism
from dynident.signals.filters import Decimator
from dynident.signals.log import Log
from dynident.signals.preparation import Prepared, prepare
from dynident.signals.quality import Finding, note

if TYPE_CHECKING:
    from dynident.identify.regression.rows import Rows


AGREE = 0.02  # of the largest motor position, up to which redundant motors agree (shafts twist)
MOVED = 1e-3  # rad or m: a joint that is left out and moved by more is named
MOTOR_EFFORTS = ("motor_torque", "motor_current", "voltage")


@dataclass(frozen=True, eq=False)
class Matched:
    """A robot and a log that speak of the same joints."""

    mechanism: Mechanism  # The robot with only the logged joints moving
    log: Log  # Joint-side positions and generalised efforts, columns in the order of ``mechanism.coordinate_names``
    notes: tuple[Finding, ...]  # What was converted or held fixed


def match(mechanism: Mechanism, log: Log) -> Matched:
    """Convert a log to the joint side and hold the joints still that it does not have.

    q = N^-1 (q_motor - n0),        tau = N^T (gain effort)
    """
    require(mechanism, Mechanism, "mechanism")
    require(log, Log, "log")
    motor_effort = log.effort_kind in MOTOR_EFFORTS
    motor_side = bool(mechanism.loops) or motor_effort or log.position_side == "motor"
    motors = tuple(actuator.name for actuator in mechanism.actuators)
    named = log.named_like(*((motors, mechanism.coordinate_names) if motor_side else (mechanism.coordinate_names,)))
    notes = [] if named is log else [note("numbered", str(named.provenance["conversions"][-1]))]  # type: ignore[index]
    log = named
    if mechanism.loops:
        return _match_motors(mechanism, log, notes)
    joints = _driven(mechanism, log) if motor_side else log.joints
    unknown = [name for name in joints if name not in mechanism.coordinate_names]
    unmeasured = not any(np.any(log.effort[:, log.joints.index(name)]) for name in unknown if name in log.joints)
    if unknown and not motor_side and (set(mechanism.coordinate_names) <= set(joints) or unmeasured):
        joints = tuple(name for name in joints if name not in unknown)
        notes.append(_left_out(mechanism, log, unknown))
    elif unknown:
        raise LogError(
            f"log '{log.name}' has channels {', '.join(unknown)} that robot '{mechanism.name}' does not have; its joints are "
            f"{', '.join(mechanism.coordinate_names)} (rename the columns, or give the channels' names in order, other joints' "
            "too: joints=, --joints)"
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
            text = "motor efforts brought to the joints by the actuators' gear and coupling matrix"
            if np.array_equal(N, np.eye(len(N))):
                text = "motor efforts are taken for joint efforts, because the robot's actuators have no gear ratios"
            notes.append(note("motor_side", text))
        else:
            effort = effort[:, _joint_channels(mechanism, log, "efforts")]
        if log.position_side == "motor":
            inverse = _joints_of_motors(mechanism, log, N, position[:, order] - n0)
            position = (position[:, order] - n0) @ inverse
            reference = None if reference is None else (reference[:, order] - n0) @ inverse
            velocity, acceleration = (None if x is None else x[:, order] @ inverse for x in (velocity, acceleration))
            notes.append(note("motor_side", "motor positions brought to the joints by the actuators' gear and coupling matrix"))
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


def _left_out(mechanism: Mechanism, log: Log, names: list[str]) -> Finding:
    """Return the note about channels of joints that the robot does not have: mimic and locked joints, a gripper, a base."""
    moved = [name for name in names if np.ptp(log.position[:, log.joints.index(name)]) > MOVED]
    warning = f"; {', '.join(moved)} moved, and the model knows nothing of it" if moved else ""
    text = f"channels left out, because robot '{mechanism.name}' has no such free joints: {', '.join(names)}{warning}"
    return note("channels_left_out", text, "warning" if moved else "info")


def _held(mechanism: Mechanism, names: list[str]) -> Finding:
    """Return the note about joints that the log does not have, and how to say where they stood."""
    example = next((joint.name for joint in mechanism.joints if names[0] in joint.coordinates), names[0])
    beyond = [j.name for j in mechanism.joints if j.name in names and not j.limits.lower <= 0.0 <= j.limits.upper]
    doubt = f"; zero is beyond the limits of {', '.join(beyond)}, which stood elsewhere" if beyond else ""
    text = (
        f"joints not in the log are held at zero: {', '.join(names)}{doubt}; if they stood elsewhere bodies become "
        f"wrong, so say where: robot.lock({{'{example}': 0.5}}) (--lock {example}=0.5)"
    )
    return note("joints_held", text, "warning" if beyond else "info")


def _joints_of_motors(mechanism: Mechanism, log: Log, N: Array, turned: Array) -> Array:
    """Return the matrix that brings motor positions (N, k) to the joints; redundant motors must agree about them."""
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
                f"log '{log.name}': motor positions do not agree, that of '{mechanism.actuators[i].name}' by {worst:.3g}; "
                "check ratios, offsets and signs of the motors that drive the same joint"
            )
    return np.asarray(inverse)


def _match_motors(mechanism: Mechanism, log: Log, notes: list[Finding]) -> Matched:
    """Return the log of a robot with loops on the motor side, one channel per actuator: rho and motor torques."""
    order = [_channel(mechanism, log, actuator.name) for actuator in mechanism.actuators]
    if len(order) < mechanism.dof:
        raise LogError(
            f"robot '{mechanism.name}' has {mechanism.dof} degrees of freedom but {len(order)} actuators; declare them"
        )
    if any(len(actuator.coupling) > 1 for actuator in mechanism.actuators):
        raise LogError(f"robot '{mechanism.name}' has loops and motors that turn with several joints; this is not supported")
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
                f"log '{log.name}' has {quantity} of joints, but no channel is named after joint '{joint}' or after a motor "
                f"that drives it alone; its channels are {', '.join(log.joints)}. Rename them (joints=, --joints), or say "
                f"{other} if they were measured at the motors"
            )
        columns.append(found[0])
    return columns


def _gain(mechanism: Mechanism, log: Log) -> Array | None:
    """Return drive gains (N m per A or V) from the actuators when the log has none and its efforts are not torques yet."""
    if log.gain is not None or log.effort_kind not in ("motor_current", "voltage"):
        return None
    gains = {}
    for actuator in mechanism.actuators:
        if actuator.gain is not None:
            gains[actuator.name] = actuator.gain
            if len(actuator.coupling) == 1:
                gains.setdefault(next(iter(actuator.coupling)), actuator.gain)
    return np.array([gains[c] for c in log.joints]) if all(c in gains for c in log.joints) else None


#: Share of its rows below which a joint that was left out near standstill is warned about.
FEW = 1.0 / 3.0


def moving_rows(moving: NDArray[np.bool_], decimator: Decimator, names: Sequence[str]) -> NDArray[np.bool_]:
    """Return the decimated rows that no standing sample spoils, and say where few are left."""
    usable = decimator.usable(moving)
    share = usable.mean(axis=0)
    if np.any(share < FEW):
        worst = int(np.argmin(share))
        text = (
            f"leaving out what is near standstill leaves {int(usable[:, worst].sum())} of {usable.shape[0]} rows of "
            f"'{names[worst]}', because a row averages over {decimator.taps.size / decimator.rate:.2g} s; give decimation=1 "
            "(then a row is one sample), a higher cutoff=, a smaller standstill= or a motion with fewer reversals"
        )
        if share[worst] == 0.0:
            raise IdentificationError(text)
        warn(text, SignalWarning)
    return usable


def shortened(rows: Rows, log: Log, found: Prepared, options: Mapping[str, Any]) -> Prepared:
    """Return a log, of which standing joints are left out, prepared again with shorter rows where few of the long ones hold.

    All motors of a robot with loops must move for a row to hold, which they rarely do for as long as a decimated row averages
    over: its rows are then single samples. Those of other robots are halved until enough hold, so that they still average.
    """
    first, long = _usable(rows, found), found.decimator.taps.size / found.decimator.rate
    share = first
    while share < FEW and found.decimator.factor > 1:
        shorter = 1 if rows.mechanism.loops else found.decimator.factor // 2
        found = prepare(log, **{**options, "decimation": shorter})
        share = _usable(rows, found)
    if share == first:
        return found
    now = found.decimator.taps.size / found.decimator.rate
    how = "rows are single samples" if found.decimator.factor == 1 else f"rows average over {now:.2g} s"
    text = f"{how}: only {first:.0%} of rows of {long:.2g} s have no standing joint in them (decimation= decides otherwise)"
    return replace(found, explanation=f"{found.explanation}\n{text}")


def _usable(rows: Rows, prepared: Prepared) -> float:
    """Return the share of decimated rows without standing joints, of the joint that has fewest."""
    assert prepared.moving is not None
    return float(prepared.decimator.usable(rows.usable(prepared.moving)).mean(axis=0).min())


def robot_motion(mechanism: Mechanism, measured: Motion) -> Motion:
    """Return the motion of the robot's coordinates from what was measured: the same for a tree, from the motors with loops."""
    return motion_from_actuators(mechanism, measured) if mechanism.loops else measured
