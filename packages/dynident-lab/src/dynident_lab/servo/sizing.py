"""Motor sizing: torque, speed, power and heat that a motion requires, against the motor's limits [Roldan2017, section 3.5].

From a run, or, before any control design, from a motion and the model alone:

tau_m = tau_rho / ratio (with efficiency) + J d omega/dt + friction(omega),   i = tau_m / K_t,   V = R i + L di/dt + K_E omega
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from dynident.arrays import Array
from dynident.control.feedforward import actuator_motion, motor_torques
from dynident.drive import Drive
from dynident.errors import SimulationError, require
from dynident.mechanics import Motion, actuator_jacobian, actuator_torques, inverse_dynamics, mass_matrix
from dynident.mechanics.functions import project, tree_motion
from dynident.results import Result
from dynident.simulate import Run, VirtualRobot

if TYPE_CHECKING:
    from matplotlib.figure import Figure


POSES = 200  # largest number of poses of the motion in the inertia ratio
LARGE_RATIO = 10.0  # load over drive inertia above which servo manufacturers advise a higher gear or a larger motor
TIGHT = 0.9  # share of a limit above which the summary warns


@dataclass(frozen=True)
class MotorLoad:
    """Load of one motor; torques, speeds and currents at the motor."""

    actuator: str  # Name of the actuator
    rms_torque: float  # [N m]
    peak_torque: float  # [N m]
    rms_speed: float  # [rad/s]
    peak_speed: float  # [rad/s]
    mean_power: float
    peak_power: float
    rms_current: float  # [A]
    peak_current: float  # [A]
    peak_voltage: float  # [V]
    copper_loss: float  # Mean heat of the winding, R i_rms^2 [W]
    inertia_ratio: float
    use: dict[str, float]
    derived: ClassVar[tuple[str, ...]] = ("margin",)

    @property
    def margin(self) -> float:
        """Reserve of the most used limit, 1 - use; negative beyond it, NaN without a known limit."""
        return 1.0 - max(self.use.values()) if self.use else float("nan")


@dataclass(frozen=True)
class Sizing(Result):
    """Loads of all motors along a motion."""

    motors: tuple[MotorLoad, ...]  # One per actuator
    duration: float  # Length of the motion [s]
    derived = ("ok",)

    @property
    def ok(self) -> bool:
        """Whether all known limits are satisfied."""
        return all(not motor.use or motor.margin >= -1e-9 for motor in self.motors)

    def table(self) -> str:
        """Return the numbers as a table, one line per motor."""
        torque, current = ("RMS [N m]", "peak [N m]", "peak rad/s", "peak [W]"), ("RMS [A]", "peak [A]", "peak [V]", "heat [W]")
        head = f"{'motor':<14}" + "".join(f"{name:>12}" for name in (*torque, *current, "J ratio", "margin [%]"))
        lines = [head]
        for m in self.motors:
            cells = (m.rms_torque, m.peak_torque, m.peak_speed, m.peak_power, m.rms_current, m.peak_current, m.peak_voltage)
            rest = (m.copper_loss, m.inertia_ratio, 100.0 * m.margin)
            lines.append(f"{m.actuator:<14}" + "".join(f"{x:>12.4g}" for x in (*cells, *rest)))
        return "\n".join(lines)

    def sentences(self) -> list[str]:
        """Return the findings, at least one sentence per motor."""
        return [sentence for motor in self.motors for sentence in _sentences(motor)]

    def summary(self) -> str:
        """Return the table, one line per motor, and the findings."""
        return "\n".join([self.table(), *self.sentences()])

    def plot(self) -> Figure:
        """Draw the use of each known limit by every motor."""
        from dynident.figures import CURVES, ORANGE, finish, label, new_figure  # noqa: PLC0415 - matplotlib is an extra

        limits = [what for what in REMEDY if any(what in motor.use for motor in self.motors)]
        if not limits:
            raise SimulationError("no motor limit is known, so nothing can be plotted; give limits to the motors")
        figure = new_figure(7.2, 3.6)
        axes = figure.add_axes((0.1, 0.14, 0.87, 0.76))
        at, width = np.arange(len(self.motors)), 0.8 / len(limits)
        for k, what in enumerate(limits):
            share = [100.0 * motor.use.get(what, np.nan) for motor in self.motors]
            axes.bar(at + (k - 0.5 * (len(limits) - 1)) * width, share, 0.9 * width, color=CURVES[(0, 2, 4, 3)[k]], label=what)
        axes.axhline(100.0, color=ORANGE, linewidth=1.2, label="limit")
        finish(axes, "", "used [%]", f"use of the motors over {self.duration:.4g} s of motion")
        axes.set_xticks(at, [label(motor.actuator, 14) for motor in self.motors])
        axes.set_ylim(0.0, 1.18 * max(100.0, *(100.0 * share for motor in self.motors for share in motor.use.values())))
        axes.legend(frameon=False, fontsize=8, ncols=len(limits) + 1, loc="upper left")
        return figure

    __str__ = summary


REMEDY = {
    "current": "take a larger motor or drive, a higher gear, or a slower motion",
    "voltage": "take a higher supply voltage, another winding, a lower gear, or a slower motion",
    "speed": "take a lower gear or a slower motion",
    "heat": "it would overheat: take a larger motor, or rest in between",
}


def _sentences(m: MotorLoad) -> list[str]:
    out = []
    for what, share in m.use.items():
        if share > 1.0 + 1e-9:
            out.append(f"{m.actuator}: {what} is at {100 * share:.0f} % of its limit; {REMEDY[what]}.")
        elif share > TIGHT:
            out.append(f"{m.actuator}: {what} is at {100 * share:.0f} % of its limit, which leaves little for control.")
    if np.isfinite(m.inertia_ratio) and m.inertia_ratio > LARGE_RATIO:
        out.append(
            f"{m.actuator}: load inertia is {m.inertia_ratio:.1f} times the drive inertia; a higher gear ratio or a larger "
            "motor makes the loops easier to tune."
        )
    if not out:
        known = f"{100 * m.margin:.0f} % of its tightest limit remain" if m.use else "no limit of it is known"
        out.append(f"{m.actuator}: {known} (RMS {m.rms_torque:.3g} N m, peak {m.peak_torque:.3g} N m at the motor).")
    return out


def size_motors(
    source: Run | Motion,
    robot: VirtualRobot | None = None,
    *,
    continuous_current: ArrayLike | Mapping[str, float] | None = None,
) -> Sizing:
    """Return the motor loads of a machine along a motion, and the reserves of their limits."""
    if isinstance(source, Run):
        machine = source.robot if robot is None else robot
        truth = source.truth
        speed, torque, t, motion = truth.omega, truth.motor_torque, truth.t, truth.motion
        current, voltage = truth.current, truth.voltage
    elif isinstance(source, Motion):
        if robot is None:
            raise SimulationError("sizing from a motion needs the machine; give robot=")
        require(robot, VirtualRobot, "robot")
        machine, motion, t = robot, source, source.t
        if len(source) < 3:
            raise SimulationError(f"the motion has {len(source)} samples; give at least 3")
        torque, speed = _torques(machine, source)
        current = torque / _column(machine.drives, _not_zero)
        change = np.gradient(current, t, axis=0)
        R, L, emf = np.array([(d.motor.resistance, d.motor.inductance, d.motor.emf_constant) for d in machine.drives]).T
        voltage = R * current + L * change + emf * speed
    else:
        raise SimulationError(f"source is a {type(source).__name__}; give a Run or a Motion")
    heat = _ratings(continuous_current, machine.drives)
    ratios = _inertia_ratios(machine, motion)
    loads = [
        _load(drive, t, torque[:, k], speed[:, k], current[:, k], voltage[:, k], ratios[k], heat[k])
        for k, drive in enumerate(machine.drives)
    ]
    return Sizing(tuple(loads), float(t[-1] - t[0]))


def _not_zero(drive: Drive) -> float:
    if drive.motor.torque_constant <= 0.0:
        raise SimulationError(f"drive '{drive.actuator}' has no torque constant; give it in N m/A")
    return drive.motor.torque_constant


def _column(drives: Sequence[Drive], read: Any) -> Array:
    return np.array([read(drive) for drive in drives], dtype=np.float64)


def _torques(machine: VirtualRobot, motion: Motion) -> tuple[Array, Array]:
    """Return torques and speeds of the rotors along a motion, (N, k) each."""
    robot = machine.mechanism
    tree = tree_motion(robot, motion)
    rows = np.zeros_like(tree.q)
    for coordinate, law in machine.friction.items():
        j = robot.tree.coordinates.index(coordinate)
        rows[:, j] = law.steady(tree.v[:, j])
    tau = actuator_torques(robot, motion.q, inverse_dynamics(robot, motion) + project(tree.G, rows))
    rho = actuator_motion(robot, motion)
    return motor_torques(machine.drives, rho, tau), rho.v * _column(machine.drives, lambda d: d.transmission.ratio)


def _ratings(given: ArrayLike | Mapping[str, float] | None, drives: Sequence[Drive]) -> list[float]:
    if given is None:
        return [np.nan] * len(drives)
    if isinstance(given, Mapping):
        unknown = set(given) - {d.actuator for d in drives}
        if unknown:
            raise SimulationError(f"continuous_current names {sorted(unknown)[0]!r}, which is not a drive; use drive.actuator")
        values = [float(given.get(d.actuator, np.nan)) for d in drives]
    else:
        try:
            values = np.broadcast_to(np.asarray(given, dtype=np.float64), (len(drives),)).tolist()
        except ValueError as error:
            raise SimulationError(f"continuous_current has shape {np.shape(given)}; give 1 or {len(drives)}") from error
    if any(x <= 0.0 for x in values):
        raise SimulationError(f"continuous_current is {values}; give currents above zero in ampere")
    return values


def _inertia_ratios(machine: VirtualRobot, motion: Motion) -> Array:
    """Return the largest inertia of the mechanism over that of the drive along a motion, (k,)."""
    robot = machine.mechanism
    q = motion.q[:: max(1, len(motion) // POSES)]
    inverse = np.linalg.pinv(actuator_jacobian(robot, q))
    load = np.einsum("tnk,tnm,tmk->tk", inverse, mass_matrix(robot, q), inverse).max(axis=0)
    own = _column(machine.drives, lambda d: d.reflected_inertia)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(own > 0.0, load / np.where(own > 0.0, own, 1.0), np.inf)


def _load(
    drive: Drive, t: Array, torque: Array, speed: Array, current: Array, voltage: Array, ratio: float, continuous: float
) -> MotorLoad:
    motor = drive.motor

    def mean(x: Array) -> float:
        return float(np.trapezoid(x, t) / (t[-1] - t[0]))

    def peak(x: Array) -> float:
        return float(np.max(np.abs(x)))

    power, square = torque * speed, mean(current**2)
    limits = {"current": motor.current_limit, "voltage": motor.voltage_limit, "speed": motor.speed_limit}
    peaks = {"current": peak(current), "voltage": peak(voltage), "speed": peak(speed)}
    use = {what: peaks[what] / limit for what, limit in limits.items() if np.isfinite(limit) and np.isfinite(peaks[what])}
    if np.isfinite(continuous):
        use["heat"] = square / continuous**2
    return MotorLoad(
        drive.actuator,
        float(np.sqrt(mean(torque**2))),
        peak(torque),
        float(np.sqrt(mean(speed**2))),
        peaks["speed"],
        mean(power),
        peak(power),
        float(np.sqrt(square)),
        peaks["current"],
        peaks["voltage"],
        motor.resistance * square,
        float(ratio),
        use,
    )
