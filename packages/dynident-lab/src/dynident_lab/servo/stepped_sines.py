"""Bandwidth of a machine by stepped sines in its coordinates or along its tool's axes [Roldan2017, sections 3.5 and 4.2.4].

The command is x(t) = x0 + A cos(w t); after the transient, a least-squares fit of cos, sin, 1 and t gives amplitude and
phase. Actuators alone get the same commands rho(t) without the mechanism's load. An arm whose tool moves along one axis follows

    q(s) = argmin (q - q0)^T M(q0) (q - q0)   with the tool at s along the axis, and its other rows unchanged

Rows are held as far as the arm has degrees of freedom: 3 of a 3-axis arm, x, y, z and one rotation of a SCARA, 6 of most.
Remaining degrees of freedom stay close to the centre. As q depends on s alone, the motion is periodic, and q(s) is a
polynomial in s to rounding error, which is differentiated exactly.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from dynident.arrays import Array, Complex
from dynident.checks import number, numbers
from dynident.control import PID, Cascade
from dynident.control.feedforward import actuator_motion
from dynident.errors import SimulationError, SimulationWarning, require
from dynident.mechanics import Motion, actuator_jacobian, forward_kinematics, jacobian, mass_matrix
from dynident.mechanics.dynamics import end_frame
from dynident.mechanics.inverse_kinematics_damped import pose_error
from dynident.mechanism import Actuator, Body, Joint, Mechanism
from dynident.parallel import threads
from dynident.results import Result
from dynident.simulate import VirtualRobot
from dynident.simulate.record import notify
from dynident.simulate.robot import home_of
from dynident.simulate.run import loop_cycles
from dynident_lab.servo.bode import Bode, plot_bode

if TYPE_CHECKING:
    from matplotlib.figure import Figure


TOOL = ("tool.x", "tool.y", "tool.z")
PER_PERIOD = 64  # knots of the reference: the error of quintics through them is 2e-11 of the amplitude
MOST_SAMPLES = 10_000_000  # limit for the reference at one frequency
STEADY = 2e-3  # change of the response between two halves of the measurement below which it counts as settled
NODES = 25  # Chebyshev points over the swing
NEWTON = 50  # largest number of Newton steps
CLOSE = 1e-12  # change of a joint [rad, m] below which the solution has converged
ALONE = 1e-4  # independent share of a row, relative to the previous rows, below which the arm has no freedom for it
PROBE = 20  # random poses that determine the number of rows of an arm
EXTENSIONS = 3  # largest number of extensions of the transient before the scatter is reported


@dataclass(frozen=True, eq=False)
class SineResponse(Bode, Result):
    """Amplitude ratio and phase of a machine over frequency, measured by stepped sines."""

    actuators: Complex  # Response over command of every actuator; NaN if its command is too small
    scatter: Array  # Difference between the two halves of the measurement, over the response: the remaining transient
    distortion: Array  # RMS at other frequencies (harmonics, ripple), over the RMS of the response
    saturated: Array  # Largest share of time of an actuator at a limit
    coordinate: str  # Moved coordinate
    amplitude: float  # Amplitude of the command [rad or m]
    robot: str  # Name of the machine
    mechanism: bool = True  # False for the actuators alone
    names: tuple[str, ...] = field(default=())  # Actuators

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", self.name or f"{self.robot} {self.coordinate}, {self._what}")

    @property
    def _what(self) -> str:
        return "with mechanism" if self.mechanism else "actuators alone"

    def summary(self) -> str:
        """Return bandwidth and responses as text, one line per frequency."""
        corner = f"{self.bandwidth:.4g} Hz"
        if np.isnan(self.bandwidth):
            below = self.magnitude[0] ** 2 <= 0.5  # -3 dB
            corner = f"below {self.frequency[0]:.4g} Hz" if below else f"above {self.frequency[-1]:.4g} Hz"
        lines = [f"{self.robot}, {self.coordinate}, amplitude {self.amplitude:g}, {self._what}: bandwidth {corner}"]
        lines.append(f"{'f [Hz]':>10}{'ratio [%]':>11}{'[dB]':>9}{'phase [deg]':>13}{'limit [%]':>11}")
        rows = zip(self.frequency, self.magnitude, self.decibel, self.phase, self.saturated, strict=True)
        lines += [f"{f:>10.4g}{100 * r:>11.2f}{d:>9.2f}{p:>13.2f}{100 * s:>11.1f}" for f, r, d, p, s in rows]
        return "\n".join(lines)

    __str__ = summary

    def plot(
        self,
        *others: Bode,
        labels: Sequence[str] | None = None,
        points: Mapping[float, tuple[float, float]] | None = None,
    ) -> Figure:
        """Draw amplitude ratio and phase, optionally with other responses."""
        title = f"{self.robot}, {self.coordinate}: stepped sines, amplitude {self.amplitude:g} (m or rad)"
        return plot_bode((self, *others), labels=labels, points=points, corner=True, title=title)


def bandwidth(
    robot: VirtualRobot,
    coordinate: str,
    amplitude: float,
    frequencies: ArrayLike,
    *,
    centre: ArrayLike | None = None,
    mechanism: bool = True,
    friction: bool = True,
    cycles: int = 4,
    settle: float | None = None,
    workers: int | None = None,
    progress: Callable[[float, float], None] | None = None,
    **options: Any,
) -> SineResponse:
    """Measure amplitude ratio and phase of a machine by one simulation per frequency.

    Parameters
    ----------
    robot : VirtualRobot
        The machine.
    coordinate : str
        One of its coordinates, or ``tool.x``, ``tool.y``, ``tool.z`` of an arm without loops. The tool's other position and
        orientation rows are held in the order x, y, z, rx, ry, rz, as far as the degrees of freedom allow; an arm with
        more degrees of freedom stays close to `centre`, measured by its inertia.
    amplitude : float
        Amplitude of the command [rad or m]; small, because the mechanism is not linear.
    frequencies : array_like, (F,)
        Frequencies [Hz].
    centre : array_like (n,), optional
        Pose at the centre of the oscillation; home when omitted.
    mechanism : bool
        False applies the same commands to the actuators alone, without the mechanism's load.
    friction : bool
        False removes the friction of the drives: the linear transfer function called actuators alone in [Roldan2017].
    cycles : int
        Number of measured periods, at least 2.
    settle : float, optional
        Transient to leave out [s]; when omitted the longer of 3 periods and a second, and more if not yet steady.
    workers : int, optional
        Frequencies in parallel; one per core when omitted.
    progress : callable, optional
        Called after each frequency as ``progress(done, whole)``, with the measured and all frequencies.
    **options
        Passed to `VirtualRobot.simulate`, such as ``method="decoupled"``.

    Returns
    -------
    SineResponse
        Response, with `SineResponse.bandwidth` at -3 dB.
    """
    require(robot, VirtualRobot, "robot")
    f = np.sort(np.atleast_1d(numbers(frequencies, "frequencies")))
    if f.ndim != 1 or not f.size or not np.all(np.isfinite(f)) or f[0] <= 0.0:
        raise SimulationError(f"frequencies are {f.tolist()}; give finite numbers above zero in Hz")
    slowest = max(loop_cycles(robot.controller).values(), default=robot.step)
    if f[-1] >= 0.5 / slowest:
        raise SimulationError(
            f"frequencies reach {f[-1]:g} Hz, but a control cycle of {slowest:g} s ends at {0.5 / slowest:.4g} Hz; give "
            "lower frequencies"
        )
    number("amplitude", amplitude, above=0.0, kind=SimulationError)
    number("cycles", cycles, least=2.0, kind=SimulationError)
    if settle is not None:
        number("settle", settle, least=0.0, unit="s", kind=SimulationError)
    if (cycles + (0.0 if settle is None else settle) * f[-1]) * PER_PERIOD > MOST_SAMPLES:
        raise SimulationError(f"cycles {cycles} and settle {settle} make more than {MOST_SAMPLES} samples; give fewer")
    machine = robot if friction else replace(robot, drives=tuple(replace(d, friction=None) for d in robot.drives))
    sine = _Sine(machine, coordinate, float(amplitude), _centre(robot, centre), mechanism)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SimulationWarning)  # one warning for all frequencies follows
        points = []
        with threads(workers) as pool:
            for point in pool.map(lambda hz: _point(sine, float(hz), cycles, settle, options), f):
                points.append(point)
                if progress is not None:
                    progress(len(points), f.size)
    response, actuators, scatter, distortion, saturated = (np.array(column) for column in zip(*points, strict=True))
    _warn(f, scatter, saturated)
    title, names = robot.name or robot.mechanism.name, tuple(drive.actuator for drive in robot.drives)
    found = (response, actuators, scatter, distortion, saturated)
    return SineResponse(f, *found, coordinate, float(amplitude), title, mechanism, names)


def _warn(f: Array, scatter: Array, saturated: Array) -> None:
    """Warn about doubtful responses."""
    for doubtful, what in (
        (saturated > 0.0, "motors reached a limit, so the response depends on the amplitude"),
        (scatter > 10.0 * STEADY, "the response had not become steady"),
    ):
        if np.any(doubtful):
            which = ", ".join(f"{hz:.4g}" for hz in f[doubtful])
            notify(f"at {which} Hz {what}")


def actuators_alone(robot: VirtualRobot) -> VirtualRobot:
    """Return the drives and loops of a machine without its mechanism: every actuator coordinate is a separate joint.

    Inertia and friction that the mechanism has at a driven joint (ia, fv, fc, off) are kept, because they belong to the drive.
    """
    require(robot, VirtualRobot, "robot")
    law = robot.controller
    if isinstance(law, Cascade):
        law = replace(law, torque_feedforward=None)
    elif isinstance(law, PID):
        law = replace(law, feedforward=None, project=False, preload=0.0)
    else:
        raise SimulationError(
            f"controller {type(law).__name__} needs the mechanism; for actuators alone use a Cascade or a PID"
        )
    kinds = {c: joint for joint in robot.mechanism.joints for c in joint.coordinates}
    bodies, joints = [Body("base")], []
    for actuator, drive in zip(robot.mechanism.actuators, robot.drives, strict=True):
        (first, *others) = actuator.coupling
        joint = kinds[first]
        slides = joint.kind == "prismatic" or first.endswith((".x", ".y", ".z"))
        terms = {} if others else {s: joint.term(first, s) for s in ("ia", "fv", "fc", "off") if joint.term(first, s)}
        if drive.inertia + terms.get("ia", 0.0) <= 0.0:
            raise SimulationError(
                f"drive '{drive.actuator}' has no inertia and cannot be simulated alone; give motor.inertia, or keep the "
                "mechanism"
            )
        bodies.append(Body(f"{actuator.name}_load", np.zeros(10)))
        axis = np.array([0.0, 0.0, 1.0])
        kind = "prismatic" if slides else "revolute"
        joints.append(Joint(actuator.name, kind, "base", bodies[-1].name, axis=axis, terms=terms))
    alone = Mechanism(
        f"{robot.mechanism.name} actuators",
        tuple(bodies),
        tuple(joints),
        actuators=tuple(Actuator(joint.name, {joint.name: 1.0}) for joint in joints),
        terms=(),
        gravity=np.zeros(3),
    )
    return replace(robot, mechanism=alone, controller=law, friction={}, thermal={})


def _centre(robot: VirtualRobot, centre: ArrayLike | None) -> Array:
    m = robot.mechanism
    if centre is None:
        return home_of(m)
    x = numbers(centre, "centre")
    if x.shape != (m.dof,) or not np.all(np.isfinite(x)):
        raise SimulationError(f"centre is {x.tolist()}; give finite numbers for {', '.join(m.coordinate_names)}")
    return x


class _Sine:
    """The command at any frequency, and the evaluation of responses."""

    def __init__(self, robot: VirtualRobot, coordinate: str, amplitude: float, centre: Array, attached: bool) -> None:
        m = robot.mechanism
        if coordinate not in m.coordinate_names and not (coordinate in TOOL and not m.loops):
            tool = "" if m.loops else f", or {', '.join(TOOL)}"
            raise SimulationError(f"coordinate is {coordinate!r}; robot '{m.name}' has {', '.join(m.coordinate_names)}{tool}")
        self.amplitude, self.centre, self.attached, self.mechanism = amplitude, centre, attached, m
        self.robot = robot if attached else actuators_alone(robot)
        self.frame = end_frame(m, None) if coordinate in TOOL else ""
        self.index = TOOL.index(coordinate) if self.frame else m.coordinate_names.index(coordinate)
        self.swing = Swing.along(m, self.frame, self.index, amplitude, centre) if self.frame else None
        A = actuator_jacobian(self.mechanism, centre)[0]
        # Row that maps small motions of the actuators to the coordinate.
        J = jacobian(m, centre, self.frame, "world")[0] if self.frame else np.eye(m.dof)
        self.row = J[self.index] @ np.linalg.pinv(A)

    def command(self, f: float, duration: float) -> Motion:
        """Return the wanted motion of the mechanism's coordinates."""
        w = 2.0 * np.pi * f
        t = np.linspace(0.0, duration, int(np.ceil(duration * f * PER_PERIOD)) + 1)
        wave = self.amplitude * np.array([np.cos(w * t), -w * np.sin(w * t), -(w**2) * np.cos(w * t)])
        if self.swing is not None:
            return self.swing.motion(t, wave)
        x = np.zeros((3, t.size, self.mechanism.dof))
        x[0] += self.centre
        x[:, :, self.index] += wave
        return Motion(t, *x)

    def output(self, rho: Array, x: Array) -> Array:
        """Return the moved coordinate, (N,), from the positions of actuators (N, k) or coordinates (N, n)."""
        if not self.attached:
            return np.asarray(rho @ self.row)
        return x[:, self.index] if not self.frame else forward_kinematics(self.mechanism, x, self.frame)[1][:, self.index]


def _point(sine: _Sine, f: float, cycles: int, settle: float | None, options: dict[str, Any]) -> tuple[Any, ...]:
    """Return response, actuators, scatter, distortion and saturation at one frequency."""
    transient = max(3.0 / f, 1.0) if settle is None else settle
    found = _measure(sine, f, cycles, transient, options)
    for _ in range(EXTENSIONS):
        if settle is not None or found[2] < STEADY:
            break
        transient, before = 2.0 * transient, found[2]
        found = _measure(sine, f, cycles, transient, options)
        if found[2] > 0.5 * before:  # not a transient: harmonics, or beats of cycle and period
            break
    return found


def _measure(sine: _Sine, f: float, cycles: int, transient: float, options: dict[str, Any]) -> tuple[Any, ...]:
    duration = transient + cycles / f
    command = sine.command(f, duration)
    rho_ref = actuator_motion(sine.mechanism, command)
    reference = command if sine.attached else rho_ref
    run = sine.robot.simulate(reference, duration=duration, **options)
    t, rho = run.truth.t, run.truth.rho
    y = sine.output(rho, run.truth.motion.q)
    window = t >= duration - cycles / f - 1e-12
    middle = duration - 0.5 * cycles / f
    measured, rest = _harmonic(t[window], np.column_stack([y, rho])[window], f)
    halves = [_harmonic(t[part], y[part][:, None], f)[0][0] for part in (window & (t <= middle), window & (t >= middle))]
    asked, _ = _harmonic(command.t, np.column_stack([sine.output(rho_ref.q, command.q), rho_ref.q]), f)
    small = np.abs(asked[1:]) < 1e-6 * np.max(np.abs(asked[1:]))
    ratios = np.where(small, np.nan, measured[1:] / np.where(small, 1.0, asked[1:]))
    size = max(abs(measured[0]), 1e-300)
    at_limit = max(run.saturation.values(), default=0.0)
    return measured[0] / asked[0], ratios, abs(halves[0] - halves[1]) / size, rest[0] * np.sqrt(2.0) / size, at_limit


def _harmonic(t: Array, y: Array, f: float) -> tuple[Complex, Array]:
    """Return the complex amplitudes (m,) of columns (N, m), y = Re(c e^jwt) + const + drift, and the RMS of the residual."""
    w = 2.0 * np.pi * f
    W = np.column_stack([np.cos(w * t), np.sin(w * t), np.ones_like(t), t - t.mean()])
    c = np.linalg.lstsq(W, y, rcond=None)[0]
    return np.asarray(c[0] - 1j * c[1]), np.sqrt(np.mean((y - W @ c) ** 2, axis=0))


@dataclass(frozen=True, eq=False)
class Swing:
    """Joint positions as a function of the tool's position along one axis."""

    amplitude: float  # largest distance from the centre [m]
    coefficients: Array  # (NODES, n) Chebyshev coefficients of q over s / amplitude
    held: tuple[int, ...]  # rows of the tool's pose (x, y, z, rx, ry, rz) that are commanded, the moving one first

    @classmethod
    def along(cls, mechanism: Mechanism, frame: str, axis: int, amplitude: float, centre: Array) -> Swing:
        """Return the motion of a link along x, y or z."""
        held = _rows(mechanism, frame, axis, centre)
        pick = list(held)
        inertia = mass_matrix(mechanism, centre[None])[0]
        size = np.diag(np.maximum(np.abs(np.diag(inertia)), 1e-12 * np.abs(np.diag(inertia)).max()))
        if np.linalg.eigvalsh(inertia)[0] <= 0.0:  # a description without masses is permitted
            inertia = size if size.any() else np.eye(centre.size)
        rotation, position = (y[0] for y in forward_kinematics(mechanism, centre, frame))
        nodes = np.cos(np.pi * (np.arange(NODES) + 0.5) / NODES)
        q = np.tile(centre, (NODES, 1))
        wanted = np.tile(position, (NODES, 1))
        wanted[:, axis] += amplitude * nodes
        turned = np.tile(rotation, (NODES, 1, 1))
        for _ in range(NEWTON):
            R, p = forward_kinematics(mechanism, q, frame)
            J = jacobian(mechanism, q, frame, "world")[:, pick]
            # The least weighted distance from the centre on the linearised constraint, not from the last iterate.
            e = pose_error(turned, wanted, R, p)[:, pick] + np.einsum("pij,pj->pi", J, q - centre)
            W = np.linalg.solve(inertia, np.swapaxes(J, 1, 2))
            new = centre + np.einsum("pij,pj->pi", W, np.linalg.solve(J @ W, e[:, :, None])[:, :, 0])
            change = float(np.abs(new - q).max())
            q = new
            if not np.isfinite(change):
                break
            if change < CLOSE:
                return cls(amplitude, np.polynomial.chebyshev.chebfit(nodes, q, NODES - 1), held)
        raise SimulationError(
            f"amplitude = {amplitude:g} m along {'xyz'[axis]} is out of reach of robot '{mechanism.name}' about this centre; "
            "give a smaller amplitude, or another centre"
        )

    def motion(self, t: Array, wave: Array) -> Motion:
        """Return the wanted motion."""
        cheb = np.polynomial.chebyshev
        s, rate, turn = wave / self.amplitude
        first, second = cheb.chebder(self.coefficients), cheb.chebder(self.coefficients, 2)
        q, slope, bend = (np.asarray(cheb.chebval(s, c)).T for c in (self.coefficients, first, second))
        return Motion(t, q, slope * rate[:, None], bend * rate[:, None] ** 2 + slope * turn[:, None])


def _rows(mechanism: Mechanism, frame: str, axis: int, centre: Array) -> tuple[int, ...]:
    """Return the rows that can be commanded together, the moved one first; raise an error for a singular pose."""
    order = (axis, *(i for i in range(6) if i != axis))
    poses = np.vstack([centre, np.random.default_rng(0).uniform(-np.pi, np.pi, (PROBE, centre.size))])
    J = jacobian(mechanism, poses, frame, "world")[:, order]
    most = max(_independent(one) for one in J[1:])
    found: list[int] = []
    for i, row in zip(order, J[0], strict=True):
        part, norm = row, float(np.linalg.norm(row))
        if found:
            Q = np.linalg.qr(np.array([J[0][order.index(k)] for k in found]).T)[0]
            part = row - Q @ (Q.T @ row)
        if norm > 0.0 and np.linalg.norm(part) > ALONE * norm:
            found.append(i)
    if axis not in found or len(found) < most:
        raise SimulationError(
            f"centre is singular: the motors of robot '{mechanism.name}' control {len(found)} of {most} pose coordinates "
            "there; give another centre="
        )
    return tuple(found)


def _independent(J: Array) -> int:
    return int(np.linalg.matrix_rank(J, tol=ALONE * np.linalg.norm(J)))
