"""What a run leaves: log, true signals, energies, notes, and the state from which another run goes on."""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from dynident.arrays import Array
from dynident.drive.drive import Drive
from dynident.errors import SimulationError, SimulationWarning, warn
from dynident.files import write_atomic
from dynident.mechanics.kinematics import end_frame, forward_kinematics
from dynident.mechanics.motion import Motion
from dynident.mechanism.mechanism import Mechanism
from dynident.mechanism.parameters import Parameters
from dynident.results import Result
from dynident.signals.log import Log
from dynident.simulate.plots import plot_tracking
from dynident.simulate.split import TorqueSplit, split_torques
from dynident.simulate.thermal import Heat

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from dynident.simulate.robot import VirtualRobot


@dataclass(frozen=True, eq=False, repr=False)
class Truth:
    """True signals of a run at the nominal times of the log: n coordinates, k actuators, n_tree tree coordinates.

    Parameters
    ----------
    t : ndarray, (N,)
        Time [s].
    motion : Motion
        Coordinates of the robot with velocities and accelerations.
    rho, rho_v : ndarray, (N, k)
        Actuator coordinates and their velocities, behind the gears.
    theta, omega : ndarray, (N, k)
        Rotor angles and speeds [rad, rad/s].
    torques : ndarray, (N, k)
        What the transmissions hand to the mechanism, inertia of a rigid drive included [N m, N].
    gear_loss : ndarray, (N, k)
        What the efficiency of the gears takes from the torques in front of them, seen behind them [N m, N].
    motor_torque : ndarray, (N, k)
        Torque constant times current [N m].
    current, voltage : ndarray, (N, k)
        Of the motors [A, V].
    friction : ndarray, (N, k)
        Friction torque of the drives on their rotors [N m].
    joint_friction : ndarray, (N, n_tree)
        Friction of the tree's joints: joint terms and laws [N m, N].
    external : ndarray, (N, k)
        Disturbance torques at the actuators [N m, N].
    wrenches : mapping of str to ndarray (N, 6)
        External wrenches by link.
    temperature : ndarray (N, k) or None
        Of the rubbing parts, when the robot has thermal models [degree Celsius].
    zones : mapping of str to ndarray (N, m)
        Temperatures of all zones of every thermal model, by joint or actuator [degree Celsius].
    parameters : Parameters
        Of `VirtualRobot.model`.
    energy : ndarray, (N, 2)
        Kinetic and potential energy of mechanism and drives [J].
    mean_current, mean_voltage : ndarray, (N, k)
        Means over one cycle of the log around each sample [A, V].
    """

    t: Array
    motion: Motion
    rho: Array
    rho_v: Array
    theta: Array
    omega: Array
    torques: Array
    gear_loss: Array
    motor_torque: Array
    current: Array
    voltage: Array
    friction: Array
    joint_friction: Array
    external: Array
    parameters: Parameters
    energy: Array
    mean_current: Array
    mean_voltage: Array
    wrenches: Mapping[str, Array] = field(default_factory=dict)
    temperature: Array | None = None
    zones: Mapping[str, Array] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"Truth({self.t.size} samples of {', '.join(self.arrays())})"

    def arrays(self) -> dict[str, Array]:
        """Return all signals by name, time first."""
        out = {"t": self.t, "q": self.motion.q, "v": self.motion.v, "a": self.motion.a}
        out |= {name: values for name, values in vars(self).items() if isinstance(values, np.ndarray)}
        out |= {f"zones_{name}": values for name, values in self.zones.items()}
        return out | {f"wrench_{link}": values for link, values in self.wrenches.items()}

    def checksum(self) -> str:
        """Return what tells these signals from all others. sha256 of the numbers."""
        whole = hashlib.sha256()
        for name, values in self.arrays().items():
            whole.update(name.encode())
            whole.update(np.ascontiguousarray(values).data)
        return whole.hexdigest()

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write all signals to an .npz file (no pickle)."""
        if not str(path).endswith(".npz"):
            raise SimulationError(f"cannot write the truth to '{path}'; the name must end in .npz")
        buffer = io.BytesIO()
        names = np.array(self.parameters.names)
        content = {**self.arrays(), "parameter_names": names, "parameter_values": self.parameters.values}
        np.savez_compressed(buffer, allow_pickle=False, **content)
        return write_atomic(path, buffer.getvalue())


@dataclass(frozen=True, eq=False, repr=False)
class End:
    """Everything at the end of a run; ``simulate(..., start=run.end)`` goes on as if it had not ended."""

    time: float  # When it ended, counted from the start of the first run [s]
    state: Mapping[str, Array]
    origin: Array  # Where the first run started
    noise: Mapping[str, dict[str, Any]]  # States of the random generators
    heat: Heat | None = None  # Temperatures of all thermal zones
    tail: Array = field(default_factory=lambda: np.zeros((0, 0)))
    last_noise: Array | None = None  # Noise of the last tick of the sensors, where the run ended between two ticks

    def __repr__(self) -> str:
        return f"End(t = {self.time:g} s, {', '.join(self.state)})"

    def rested(self, duration: float) -> End:
        """Return the same after standing still for some time: only temperatures have changed."""
        return replace(self, heat=None if self.heat is None else self.heat.rested(duration))

    def to_dict(self) -> dict[str, Any]:
        """Return plain data from which `from_dict` makes the same state, to the last bit; infinity as Python writes it."""
        return {
            "time": self.time,
            "state": {name: np.asarray(values).tolist() for name, values in self.state.items()},
            "origin": self.origin.tolist(),
            "noise": {name: dict(state) for name, state in self.noise.items()},
            "heat": None if self.heat is None else self.heat.memory(),
            "tail": {"shape": list(self.tail.shape), "values": self.tail.ravel().tolist()},
            "last_noise": None if self.last_noise is None else self.last_noise.tolist(),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], robot: VirtualRobot) -> End:
        """Return the state that `to_dict` described."""
        try:
            heat = None if data["heat"] is None else Heat(robot)
            if heat is not None:
                heat.remember(data["heat"])
            return cls(
                float(data["time"]),
                {str(name): np.array(values, dtype=np.float64) for name, values in data["state"].items()},
                np.array(data["origin"], dtype=np.float64),
                {str(name): dict(state) for name, state in data["noise"].items()},
                heat,
                np.array(data["tail"]["values"], dtype=np.float64).reshape(data["tail"]["shape"]),
                None if data["last_noise"] is None else np.array(data["last_noise"], dtype=np.float64),
            )
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise SimulationError(f"the state of the machine cannot be read ({error}); start the run again") from error


def tool_of(mechanism: Mechanism, frame: str | None = None) -> str | None:
    """Return the link that is a robot's tool."""
    carriers = {joint.parent for joint in mechanism.joints}
    ends = [body for body in mechanism.bodies if body.name not in carriers]
    if frame is None and (mechanism.loops or len(ends) != 1):
        return None
    return end_frame(mechanism, frame)


@dataclass(frozen=True)
class TrackingError(Result):
    """How far a motion was from the wanted one.

    Parameters
    ----------
    names : tuple of str
        Coordinates, or actuators, or axes of the tool.
    largest : tuple of float
        Largest absolute error of each [rad, m].
    rms : tuple of float
        Root mean square error of each.
    when : tuple of float
        Time of the largest error [s].
    """

    names: tuple[str, ...]
    largest: tuple[float, ...]
    rms: tuple[float, ...]
    when: tuple[float, ...]

    def summary(self) -> str:
        """Return the errors as a table. One line per name."""
        rows = zip(self.names, self.largest, self.rms, self.when, strict=True)
        lines = [f"{name:<16}{top:>12.4g}{rms:>12.4g}{t:>10.4g}" for name, top, rms, t in rows]
        return "\n".join([f"{'':<16}{'largest':>12}{'RMS':>12}{'at [s]':>10}", *lines])

    __str__ = summary


def tracking_error(
    reference: Motion, motion: Motion, names: Sequence[str] | None = None, *, after: float = 0.0
) -> TrackingError:
    """Return the largest and RMS errors of a `motion` against the wanted one, `reference`, at the same times.

    `names` are those of the columns (x1, x2, ...); what comes before the time `after` [s], such as a transient, is left out.
    """
    if reference.q.shape != motion.q.shape or not np.allclose(reference.t, motion.t, rtol=0.0, atol=1e-9):
        raise SimulationError(
            f"reference has {reference.q.shape} samples and motion {motion.q.shape}, or their times differ; sample both alike"
        )
    labels = tuple(f"x{i + 1}" for i in range(motion.dof)) if names is None else tuple(names)
    kept = motion.t - motion.t[0] >= after
    if len(labels) != motion.dof or not np.any(kept):
        raise SimulationError(f"{len(labels)} names and after = {after} s do not fit {motion.dof} columns; correct them")
    error = np.abs(reference.q - motion.q)[kept]
    at = motion.t[kept][np.argmax(error, axis=0)]
    return TrackingError(
        labels, tuple(error.max(axis=0).tolist()), tuple(np.sqrt(np.mean(error**2, axis=0)).tolist()), tuple(at.tolist())
    )


@dataclass(frozen=True, eq=False, repr=False)
class Run(Result):
    """One run of a virtual robot; its file holds the machine, all signals and the end, from which it goes on.

    Parameters
    ----------
    log : Log
        What the recorder wrote, with the same contract as a log of a real robot.
    truth : Truth
        True signals.
    robot : VirtualRobot
        The machine.
    reference : Motion
        What was wanted, at the times of the truth.
    saturation : mapping of str to float
        Share of time that each actuator was at a limit of its motor or amplifier: ``{"motor1": 0.12, ...}``.
    energy : mapping of str to ndarray (k,)
        ``electric`` (voltage times current), ``mechanical`` (of the rotors), ``copper``, ``friction`` (of the rotors) and
        ``gear`` losses [J].
    settings : mapping
        How the run was made: seed, step, cycle times, method.
    notes : tuple of str
        What needs attention, one sentence each.
    end : End, optional
        The whole state at the end: ``simulate(..., start=run.end)`` goes on from there.
    """

    _less: ClassVar[str] = "write it to a folder while it runs (robot.stream), or save run.log"

    log: Log
    truth: Truth
    robot: VirtualRobot
    reference: Motion
    saturation: Mapping[str, float]
    energy: Mapping[str, Array]
    settings: Mapping[str, Any]
    notes: tuple[str, ...] = ()
    end: End | None = None

    def __repr__(self) -> str:
        return f"Run({self.robot!r}, {self.truth.t[-1]:g} s, {self.log!r})"

    def _content(self) -> dict[str, Any]:
        return super()._content() | {"end": None if self.end is None else self.end.to_dict()}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Run:
        """Return the run that `to_dict` described."""
        run = super().from_dict({**data, "end": None})
        return run if data.get("end") is None else replace(run, end=End.from_dict(data["end"], run.robot))

    def log_with_reference(self) -> Log:
        """Return the log with the positions that were asked for, as most controllers write them.

        Instruments and closed-loop estimators need them. A log of motor positions is returned as it is.
        """
        names = self.robot.mechanism.coordinate_names
        if self.log.position_side != "joint" or not set(self.log.joints) <= set(names):
            return self.log
        wanted = [np.interp(self.log.t, self.reference.t, self.reference.q[:, names.index(j)]) for j in self.log.joints]
        return replace(self.log, reference=np.stack(wanted, axis=1))

    def tracking(self, after: float = 0.0) -> TrackingError:
        """Return how far the robot was from the reference, leaving out what comes before a time [s]."""
        return tracking_error(self.reference, self.truth.motion, self.robot.mechanism.coordinate_names, after=after)

    def tool_tracking(self, frame: str | None = None, after: float = 0.0) -> TrackingError:
        """Return how far the tool was from where the reference wanted it."""
        robot = self.robot.mechanism
        name = tool_of(robot, frame)
        if name is None:
            raise SimulationError(f"robot '{robot.name}' has no single last link; name the tool as frame")
        wanted, found = (forward_kinematics(robot, motion.q, name)[1] for motion in (self.reference, self.truth.motion))
        error = np.column_stack([found - wanted, np.linalg.norm(found - wanted, axis=1)])
        zero = np.zeros_like(error)
        columns = ("tool.x", "tool.y", "tool.z", "tool")
        return tracking_error(
            Motion(self.truth.t, zero, zero, zero), Motion(self.truth.t, error, zero, zero), columns, after=after
        )

    def torque_split(self) -> TorqueSplit:
        """Return where the motor torques went: inertia, velocity, gravity, friction, the drives themselves."""
        return split_torques(self.robot, self.truth)

    def plot(self, coordinates: Sequence[str] | None = None) -> Figure:
        """Draw what was wanted, what happened and the error between them, for all or some coordinates."""
        return plot_tracking(self, coordinates)

    def summary(self) -> str:
        """Return the run in a few lines. Log, tracking errors, limits and notes."""
        lines = [repr(self.log), self.tracking().summary()]
        if tool_of(self.robot.mechanism) is not None:
            lines += self.tool_tracking().summary().splitlines()[1:]
        hit = [f"{name} {100.0 * share:.3g} %" for name, share in self.saturation.items() if share > 0.0]
        if hit:
            lines.append(f"at a limit: {', '.join(hit)} of the time")
        return "\n".join([*lines, *self.notes])

    def numbers(self) -> dict[str, Any]:
        """Return what a run is judged by: errors, limits, energies; no signals."""
        error = self.tracking()
        tool = None if tool_of(self.robot.mechanism) is None else self.tool_tracking()
        names = [actuator.name for actuator in self.robot.mechanism.actuators]
        return {
            "robot": self.robot.name or self.robot.mechanism.name,
            "settings": dict(self.settings),
            "samples": len(self.log),
            "duration": float(self.truth.t[-1]),
            "tracking": _sizes(error),
            "tool": None if tool is None else _sizes(tool),
            "saturation": dict(self.saturation),
            "energy": {kind: dict(zip(names, values.tolist(), strict=True)) for kind, values in self.energy.items()},
            "truth_sha256": self.truth.checksum(),
            "notes": list(self.notes),
        }


def _sizes(error: TrackingError) -> dict[str, dict[str, float]]:
    """Return RMS and largest error by name."""
    rows = zip(error.names, error.rms, error.largest, strict=True)
    return {name: {"rms": float(rms), "largest": float(largest)} for name, rms, largest in rows}


# ---- what a run is judged by -----------------------------------------------------------------------------------------


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
    """Warn, and append the sentence to the notices that are being collected."""
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
