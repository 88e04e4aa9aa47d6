"""What a run is judged by: energies, means over a cycle of the log, and sentences on what needs attention."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dynident.drive import Drive
from dynident.errors import SimulationWarning, warn

if TYPE_CHECKING:
    from dynident.simulate.record import Truth
    from dynident.simulate.robot import VirtualRobot

Array = NDArray[np.float64]

# Sentences, for those who run many and keep them with the numbers.
COLLECTED: ContextVar[list[str] | None] = ContextVar("notices", default=None)
NOTICEABLE = 0.01  # share of time at a limit above which a warning says so


def notes_of(robot: VirtualRobot, truth: Truth, saturation: Mapping[str, float]) -> tuple[str, ...]:
    """Return and warn of what needs attention."""
    notes = []
    for j, drive in enumerate(robot.drives):
        share, motor = saturation[drive.actuator], drive.motor
        if share > NOTICEABLE:
            at = np.mean(np.abs(truth.current[:, j]) >= 0.999 * motor.current_limit)
            kind = "current" if at >= 0.5 * share or not np.isfinite(motor.voltage_limit) else "voltage"
            value = f"{motor.current_limit:g} A" if kind == "current" else f"{motor.voltage_limit:g} V"
            notes.append(f"motor of '{drive.actuator}' was at its {kind} limit of {value} {100.0 * share:.3g} % of the time")
        speed = np.abs(truth.omega[:, j])
        fast = speed > motor.speed_limit
        if fast.any():
            notes.append(
                f"motor of '{drive.actuator}' was above its speed limit of {motor.speed_limit:g} rad/s "
                f"{100.0 * float(fast.mean()):.3g} % of the time, first at t = {truth.t[int(fast.argmax())]:.6g} s and with up "
                f"to {float(speed.max()):.4g} rad/s"
            )
    lower, upper = robot.position_limits
    outside = np.mean((truth.motion.q < lower - 1e-6) | (truth.motion.q > upper + 1e-6), axis=0)
    notes += [
        f"joint '{robot.mechanism.coordinate_names[i]}' was outside its limits {lower[i]:.6g} to {upper[i]:.6g} "
        f"{100.0 * outside[i]:.3g} % of the time, where nothing stops it in simulation"
        for i in np.flatnonzero(outside)
    ]
    if notes:
        title = robot.name or robot.mechanism.name
        notify(f"robot '{title}': {'; '.join(notes)}")
    return tuple(notes)


def notify(text: str) -> None:
    """Warn, and leave the sentence with whoever collects."""
    box = COLLECTED.get()
    if box is not None:
        box.append(text)
    warn(text, SimulationWarning)


def energies(
    drives: Sequence[Drive], cycle: float, theta: Array, omega: Array, current: Array, voltage: Array, friction: Array
) -> dict[str, Array]:
    """Return the energies of a run by kind [J], ``electric``, ``mechanical`` (of the rotors), ``copper`` and ``friction``.

    The electric one follows from the others, ``copper + (K_E / K_t) mechanical + L (i_end^2 - i_start^2) / 2``: the voltage
    of a current loop changes faster than rows are kept, the current does not.
    """
    motors = [drive.motor for drive in drives]
    names = ("resistance", "inductance", "torque_constant", "emf_constant")
    R, L, Kt, Ke = (np.array([getattr(motor, name) for motor in motors]) for name in names)
    coil = np.abs(voltage - R * current - Ke * omega).max(axis=0, initial=0.0) > 1e-9 * np.abs(voltage).max(axis=0, initial=0.0)
    late = np.where(coil, current[1:], current[:-1])  # without an inductance the current is held from tick to tick
    turned = np.diff(theta, axis=0)
    copper = R * cycle * (current[:-1] ** 2 + late**2).sum(axis=0) / 2.0
    mechanical = Kt * ((current[:-1] + late) * turned).sum(axis=0) / 2.0
    stored = np.where(coil, L, 0.0) * (current[-1] ** 2 - current[0] ** 2) / 2.0
    return {
        "electric": copper + Ke / Kt * mechanical + stored,
        "mechanical": mechanical,
        "copper": copper,
        "friction": ((friction[:-1] + friction[1:]) * turned).sum(axis=0) / 2.0,
    }


def means(values: Array, thin: int, before: Array) -> Array:
    """Return the means over one cycle of the log around every thin-th row, each row being held until the next.

    `before` are rows that came before the first, half a cycle of them where a run goes on.
    """
    early = min(before.shape[0], -(-thin // 2))
    rows = np.concatenate([before[before.shape[0] - early :], values])
    edges = np.arange(rows.shape[0], dtype=np.float64)
    area = np.zeros_like(rows)
    area[1:] = np.cumsum(rows[:-1], axis=0)
    middle = edges[early::thin]
    left, right = np.maximum(middle - 0.5 * thin, 0.0), np.minimum(middle + 0.5 * thin, edges[-1])
    columns = [np.interp(right, edges, y) - np.interp(left, edges, y) for y in area.T]
    return np.asarray(np.column_stack(columns) / (right - left)[:, None])
