"""What a run is judged by: energies, means over a cycle of the log, and sentences on what needs attention."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dynident.drive.drive import Drive
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
    speed = np.abs(truth.omega)
    fastest = float(speed.max())  # of all motors: a look at each is rarely needed
    for j, drive in enumerate(robot.drives):
        share, motor = saturation[drive.actuator], drive.motor
        if share > NOTICEABLE:
            at = np.mean(np.abs(truth.current[:, j]) >= 0.999 * motor.current_limit)
            kind = "current" if at >= 0.5 * share or not np.isfinite(motor.voltage_limit) else "voltage"
            value = f"{motor.current_limit:g} A" if kind == "current" else f"{motor.voltage_limit:g} V"
            notes.append(f"motor of '{drive.actuator}' was at its {kind} limit of {value} {100.0 * share:.3g} % of the time")
        if fastest > motor.speed_limit and (fast := speed[:, j] > motor.speed_limit).any():
            notes.append(
                f"motor of '{drive.actuator}' was above its speed limit of {motor.speed_limit:g} rad/s "
                f"{100.0 * float(fast.mean()):.3g} % of the time, first at t = {truth.t[int(fast.argmax())]:.6g} s and with up "
                f"to {float(speed[:, j].max()):.4g} rad/s"
            )
    lower, upper = robot.position_limits
    outside = (truth.motion.q < lower - 1e-6) | (truth.motion.q > upper + 1e-6)
    for i in np.flatnonzero(outside.any(axis=0)) if outside.any() else ():
        notes.append(
            f"joint '{robot.mechanism.coordinate_names[i]}' was outside its limits {lower[i]:.6g} to {upper[i]:.6g} "
            f"{100.0 * outside[:, i].mean():.3g} % of the time, where nothing stops it in simulation"
        )
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
    coil = np.zeros(len(motors), dtype=bool)
    if L.any():
        rest = np.abs(voltage - R * current - Ke * omega)
        coil = rest.max(axis=0, initial=0.0) > 1e-9 * np.abs(voltage).max(axis=0, initial=0.0)
    early = current[:-1]
    late = np.where(coil, current[1:], early) if coil.any() else early  # otherwise held from tick to tick
    turned = theta[1:] - theta[:-1]
    copper = R * cycle * (_summed(early, early) + _summed(late, late)) / 2.0
    mechanical = Kt * _summed(early + late, turned) / 2.0
    stored = np.where(coil, L, 0.0) * (current[-1] ** 2 - current[0] ** 2) / 2.0
    return {
        "electric": copper + Ke / Kt * mechanical + stored,
        "mechanical": mechanical,
        "copper": copper,
        "friction": _summed(friction[:-1] + friction[1:], turned) / 2.0,
    }


def _summed(x: Array, y: Array) -> Array:
    """Return the sums of products over the rows."""
    return np.asarray(np.einsum("ij,ij->j", x, y))


def means(values: Array, thin: int, before: Array) -> Array:
    """Return the means over one cycle of the log around every thin-th row, each row being held until the next.

    `before` are rows that came before the first, half a cycle of them where a run goes on.
    """
    half = -(-thin // 2)
    early = min(before.shape[0], half)
    last = values.shape[0] - 1  # it is held for no time
    rows = np.zeros((half + last + half, values.shape[1]))
    rows[half - early : half] = before[before.shape[0] - early :]
    rows[half : half + last] = values[:-1]
    held = [rows[first : first + last + 1 : thin] for first in range(2 * half)]  # around every sample, in their order
    if thin % 2:  # the window begins and ends in the middle of a row
        held = [0.5 * (held[0] + held[-1]), *held[1:-1]]
    area = sum(held[1:], held[0])
    middle = np.arange(area.shape[0]) * thin
    time = np.minimum(middle + 0.5 * thin, last) - np.maximum(middle - 0.5 * thin, -early)
    return np.asarray(area / time[:, None])
