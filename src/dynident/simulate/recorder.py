"""From true signals to the log of a recorder: encoders, current sensors, channels and clock of the robot's sensors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dynident.errors import SimulationError
from dynident.mechanism import Mechanism
from dynident.signals import Log
from dynident.simulate.sensors import Readings, Stream, at_times, channel_numbers, kept_rows, noisy, quantised, sample_times

if TYPE_CHECKING:
    from dynident.simulate.record import Truth
    from dynident.simulate.robot import VirtualRobot

Array = NDArray[np.float64]
Streams = Mapping[str, Stream]


def check_channels(robot: VirtualRobot) -> None:
    """Refuse sensors whose channels no log of this robot can have."""
    mechanism, sensors = robot.mechanism, robot.sensors
    count = len(channel_names(mechanism, sensors.side))
    if sensors.effort == "voltage" and any(drive.motor.resistance == 0.0 for drive in robot.drives):
        which = next(drive.actuator for drive in robot.drives if drive.motor.resistance == 0.0)
        raise SimulationError(
            f"sensors: a voltage is logged but the motor of '{which}' has no resistance; log currents instead"
        )
    if not mechanism.loops:
        plain = _one_to_one(mechanism)
        joint_effort = sensors.effort == "joint_torque"
        mixed = joint_effort != (sensors.side == "joint")
        if mixed and not plain:
            raise SimulationError(
                f"sensors: side '{sensors.side}' and effort '{sensors.effort}' have different channels on robot "
                f"'{mechanism.name}', whose motors turn with several joints; log both on one side"
            )
        if sensors.side == "joint" and np.linalg.matrix_rank(mechanism.actuator_matrix[0]) < mechanism.dof:
            raise SimulationError(
                f"sensors: {len(mechanism.actuators)} encoders do not give the {mechanism.dof} joints of robot "
                f"'{mechanism.name}'; log side='motor'"
            )
    for field in ("position_noise", "effort_noise", "temperature_noise", "delay"):
        size = len(robot.drives) if field == "delay" else count
        channel_numbers(sensors, field, size)
    if sensors.velocity_noise is not None:
        channel_numbers(sensors, "velocity_noise", count)


def _one_to_one(mechanism: Mechanism) -> bool:
    """Tell whether every coordinate has one motor of its own."""
    driven = [next(iter(actuator.coupling)) for actuator in mechanism.actuators if len(actuator.coupling) == 1]
    return len(driven) == len(mechanism.actuators) and sorted(driven) == sorted(mechanism.coordinate_names)


def channel_names(mechanism: Mechanism, side: str) -> tuple[str, ...]:
    """Return the channels of a log."""
    if side == "joint" and not mechanism.loops:
        return mechanism.coordinate_names
    return tuple(actuator.name for actuator in mechanism.actuators)


def record(
    robot: VirtualRobot,
    truth: Truth,
    streams: Streams,
    provenance: Mapping[str, Any],
    facts: Mapping[str, Any],
    readings: Readings | None = None,
) -> Log:
    """Return the log that the robot's sensors would have written."""
    check_channels(robot)
    sensors, mechanism, t = robot.sensors, robot.mechanism, truth.t
    names = channel_names(mechanism, sensors.side)
    taken, stamped = sample_times(sensors, t, streams["clock"])
    at_joint, speed = _encoders(robot, truth, taken, streams["encoder"])
    ratio = np.array([drive.transmission.ratio for drive in robot.drives])
    position, velocity = _on_side(mechanism, sensors.side, ratio, at_joint, speed)
    position = noisy(streams["position"], position, channel_numbers(sensors, "position_noise", len(names)))
    logged_speed = None
    if sensors.velocity_noise is not None:
        logged_speed = noisy(streams["velocity"], velocity, channel_numbers(sensors, "velocity_noise", len(names)))
    effort, gain = _efforts(robot, truth, taken, streams, readings)
    effort = noisy(streams["effort"], effort, channel_numbers(sensors, "effort_noise", len(names)))
    temperature = None
    if truth.temperature is not None:
        heat = at_times(t, truth.temperature, None, taken)
        if sensors.side == "joint" and not mechanism.loops:
            heat = _by_joint(mechanism, heat, robot.ambient)
        temperature = noisy(streams["temperature"], heat, channel_numbers(sensors, "temperature_noise", len(names)))
    kept = kept_rows(sensors, t.size, streams["loss"])
    channels = {"position": position, "effort": effort, "velocity": logged_speed, "temperature": temperature}
    if sensors.missing == "nan":
        channels = {name: None if x is None else np.where(kept[:, None], x, np.nan) for name, x in channels.items()}
    else:
        channels = {name: None if x is None else x[kept] for name, x in channels.items()}
        stamped = stamped[kept]
    title = robot.name or mechanism.name
    return Log(
        t=stamped,
        joints=names,
        position=channels["position"],  # type: ignore[arg-type]
        effort=channels["effort"],  # type: ignore[arg-type]
        effort_kind=sensors.effort,
        gain=gain,
        velocity=channels["velocity"],
        temperature=channels["temperature"],
        position_side=sensors.side,
        name=f"{title} (simulated)",
        provenance={"simulated": title, **provenance, "sensors": sensors.to_dict()},
        truth={"parameters": truth.parameters.to_dict(), **facts, "signals_sha256": truth.checksum()},
    )


def _encoders(robot: VirtualRobot, truth: Truth, taken: Array, rng: Stream) -> tuple[Array, Array]:
    """Return positions and velocities of rho as the encoders read them, each rounded on its own side of the gear."""
    encoders = [drive.encoder for drive in robot.drives]
    ratio = np.array([drive.transmission.ratio for drive in robot.drives])
    motor = np.array([encoder.side == "motor" for encoder in encoders])
    position, velocity = np.where(motor, truth.theta, truth.rho), np.where(motor, truth.omega, truth.rho_v)
    if taken is not truth.t:
        position, velocity = at_times(truth.t, position, velocity, taken), at_times(truth.t, velocity, None, taken)
    position = noisy(rng, position, np.array([encoder.noise for encoder in encoders]))
    position = quantised(position, np.array([encoder.resolution for encoder in encoders]))
    side = np.where(motor, ratio, 1.0)
    return position / side, velocity / side


def _on_side(mechanism: Mechanism, side: str, ratio: Array, rho: Array, speed: Array) -> tuple[Array, Array]:
    """Return positions and velocities of the log's channels."""
    if side == "motor":
        return rho * ratio, speed * ratio
    if mechanism.loops:
        c = np.array([next(iter(actuator.coupling.values())) for actuator in mechanism.actuators])
        return rho / c, speed / c
    inverse = np.linalg.pinv(mechanism.actuator_matrix[0]).T
    return rho @ inverse, speed @ inverse


def _efforts(
    robot: VirtualRobot, truth: Truth, taken: Array, streams: Streams, readings: Readings | None
) -> tuple[Array, Array | None]:
    """Return the logged efforts and their drive gains."""
    mechanism, sensors, drives = robot.mechanism, robot.sensors, robot.drives
    delay = channel_numbers(sensors, "delay", len(drives))
    when = taken[:, None] - delay
    direct = taken is truth.t and not np.any(delay)
    constant = np.array([drive.motor.torque_constant for drive in drives])
    if sensors.effort == "voltage":
        source = truth.mean_voltage if sensors.averaged else truth.voltage
        volts = source if direct else at_times(truth.t, source, None, when)
        order = _motor_order(mechanism, sensors.side)
        return volts[:, order], _gain((constant / np.array([drive.motor.resistance for drive in drives]))[order])
    source = truth.mean_current if sensors.averaged else truth.current
    current = source if direct else at_times(truth.t, source, None, when)
    meters = [drive.current_sensor for drive in drives]
    current = current * (1.0 + np.array([meter.gain_error for meter in meters]))
    noise = noisy(streams["current"], np.zeros_like(current), np.array([meter.noise for meter in meters]))
    current = current + (noise if readings is None else readings.into(noise, when))
    current = quantised(current, np.array([meter.resolution for meter in meters]))
    if sensors.effort == "motor_current":
        order = _motor_order(mechanism, sensors.side)
        return current[:, order], _gain(constant[order])
    torque = current * constant
    if sensors.effort == "motor_torque":
        return torque[:, _motor_order(mechanism, sensors.side)], None
    behind = torque * np.array([drive.transmission.ratio for drive in drives])
    if mechanism.loops:
        return behind * np.array([next(iter(actuator.coupling.values())) for actuator in mechanism.actuators]), None
    generalised = behind @ mechanism.actuator_matrix[0]
    if sensors.side == "joint":
        return generalised, None
    names = [next(iter(actuator.coupling)) for actuator in mechanism.actuators]
    return generalised[:, [mechanism.coordinate_names.index(name) for name in names]], None


def _motor_order(mechanism: Mechanism, side: str) -> list[int]:
    """Return the motor of every channel."""
    if side == "motor" or mechanism.loops:
        return list(range(len(mechanism.actuators)))
    driven = [next(iter(actuator.coupling)) for actuator in mechanism.actuators]
    return [driven.index(name) for name in mechanism.coordinate_names]


def _by_joint(mechanism: Mechanism, heat: Array, ambient: float) -> Array:
    """Return the temperature of every coordinate: of a motor that drives it alone, else of the surroundings."""
    out = np.full((heat.shape[0], mechanism.dof), ambient)
    for j, actuator in enumerate(mechanism.actuators):
        if len(actuator.coupling) == 1:
            out[:, mechanism.coordinate_names.index(next(iter(actuator.coupling)))] = heat[:, j]
    return out


def _gain(values: Array) -> Array | None:
    """Return drive gains, or None where a motor gives no torque."""
    return values if np.all(values > 0.0) else None
