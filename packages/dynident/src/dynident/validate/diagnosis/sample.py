"""A few hundred short windows of a log with their rows: enough to detect its faults.

Efforts and rows are means over a window of a sixteenth of the shortest period of the motion, so that noise is averaged and a
jump of friction is the same on both sides. Within a window the motion is that of constant acceleration.

The n channels are the joints of a tree, and the driven joints of a robot with loops, with positions and efforts on the joint
side. Every motion of them passes through the closure of the loops, and every channel has one row:

    P tau = W beta,        P = A A^+  removes the preload of more motors than degrees of freedom, otherwise P = 1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dynident.arrays import Array
from dynident.identify.regression.factor import REST_SAMPLES as SAMPLES
from dynident.identify.regression.rows import Rows, Signals, motor_map
from dynident.mechanics.actuation import actuator_jacobian
from dynident.mechanics.closure import motion_from_actuators
from dynident.mechanics.dynamics import gravity, inverse_dynamics
from dynident.mechanics.functions import Motion
from dynident.mechanism.mechanism import Mechanism
from dynident.signals.log import Log
from dynident.signals.quality import Finding, Quality
from dynident.validate.diagnosis.delay import band_of

MOST, PER_PERIOD, POINTS = 600, 16, 5  # windows; of a period of the highest frequency; points of a window
RESTS = 1e-9  # of the largest motion: less is round-off
MANY = 0.01  # of the moving samples at a limit: fewer hardly bias a fit
AT_LIMIT = 5  # fewest samples at a limit for a comparison
MORE = 4.0  # times the squared residual elsewhere: a truly saturated drive has no larger residuals


Project = Callable[[Array], Array]  # efforts (S, n) times P


class Equations(Protocol):
    """Rows W (n, b, S') of a motion with every `step`-th of the S samples."""

    def __call__(self, moved: Motion, step: int = 1) -> Array:
        """Return the rows."""
        ...


@dataclass(frozen=True, eq=False)
class Sample:
    """S windows of n joints."""

    motion: Motion  # means of the windows
    equations: Equations  # rows (n, b, S) of a motion; zero for joints without usable efforts
    effort: Array  # (S, n) right sides before P
    names: tuple[str, ...]  # channels
    project: Callable[[Motion], Project | None]  # P along a motion, None for P = 1
    bodies: NDArray[np.bool_]  # (b,) columns of body parameters
    robot: Mechanism  # its described bodies only
    altered: Callable[[Mechanism], Sample]  # the sample of another robot, all columns
    adjacent: bool  # windows follow one another without gaps

    @classmethod
    def of(
        cls,
        rows: Rows,
        columns: NDArray[np.int64],
        motion: Motion,
        effort: Array,
        signals: Signals | None,
        dead: Sequence[str],
    ) -> Sample:
        """Return windows of a prepared log of a tree, some columns; `dead` are the joints without usable efforts."""
        count, rate = len(motion), (len(motion) - 1) / float(motion.t[-1] - motion.t[0])
        spread = np.std(motion.q, axis=0)
        moves = spread > RESTS * np.max(spread)
        band = band_of(motion.q[:, moves], motion.v[:, moves]) if moves.any() else rate
        length = max(1, min(int(rate / (PER_PERIOD * band)), count // SAMPLES))
        windows = min(count // length, MOST)
        at = np.linspace(0, count - length, windows).astype(np.int64)[:, None] + np.arange(length)
        part = Motion.unchecked(*(x[at].mean(axis=1) for x in (motion.t, motion.q, motion.v, motion.a)))
        points = min(POINTS, length)
        apart = length / rate * ((np.arange(points) + 0.5) / points - 0.5)
        own = None if signals is None else {name: np.repeat(x[at].mean(axis=1), points, axis=0) for name, x in signals.items()}
        robot = rows.mechanism
        names, ratio = tuple(channels_of(robot)), ratios_of(robot)
        part = on_joints(robot, part)
        alive = np.array([name not in dead for name in names])

        def inside(moved: Motion) -> Motion:
            d = apart[:, None]
            q, v, a = (x[:, None] for x in (moved.q, moved.v, moved.a))
            there = (q + v * d + 0.5 * a * d**2, v + a * d, a + 0.0 * d)
            t = moved.t[:, None] + apart
            return of_robot(robot, Motion.unchecked(t.ravel(), *(x.reshape(-1, x.shape[2]) for x in there)))

        def evaluated(moved: Motion, step: int) -> tuple[Array, Array]:
            there = None
            if own is not None:
                there = {
                    name: x.reshape(windows, points, *x.shape[1:])[::step].reshape(-1, *x.shape[1:]) for name, x in own.items()
                }
            motion = inside(moved)
            W, y = rows.equations(motion, None, columns, signals=there)
            if robot.loops:
                B = ratio[:, None] * motor_map(rows, motion)
                W, y = np.einsum("tin,nbt->ibt", B, W), np.einsum("tin,nt->it", B, y)
            return W, y

        def equations(moved: Motion, step: int = 1) -> Array:
            W = evaluated(moved, step)[0]
            return np.asarray(W.reshape(*W.shape[:2], -1, points).mean(axis=3) * alive[:, None, None])

        def project(moved: Motion) -> Project | None:
            if not robot.loops or len(names) == robot.dof:
                return None
            A = actuator_jacobian(robot, of_robot(robot, moved).q) / ratio[:, None]
            P = A @ np.linalg.pinv(A)
            return lambda x: np.asarray(np.einsum("tij,tj->ti", P, x))

        known = evaluated(part, 1)[1].reshape(len(names), windows, points).mean(axis=2).T
        measured = (effort[at].mean(axis=1) * ratio + known) * alive
        bodies = columns < rows.mechanism.tree.inertias.size

        def altered(robot: Mechanism) -> Sample:
            every = np.arange(len(robot.parameters))
            return cls.of(replace(rows, mechanism=robot), every, motion, effort, signals, dead)

        return cls(part, equations, measured, names, project, bodies, bare(robot, rows.absent), altered, windows < MOST)


def channels_of(robot: Mechanism) -> dict[str, str]:
    """Return the measured channels of a robot and their coordinates: its own, or those of the motors with loops."""
    if not robot.loops:
        return {name: name for name in robot.coordinate_names}
    return {actuator.name: next(iter(actuator.coupling)) for actuator in robot.actuators}


def ratios_of(robot: Mechanism) -> Array:
    """Return the ratio of every channel to the position of its joint, 1 for a tree."""
    if not robot.loops:
        return np.ones(robot.dof)
    return np.array([actuator.ratio * next(iter(actuator.coupling.values())) for actuator in robot.actuators])


def on_joints(robot: Mechanism, measured: Motion) -> Motion:
    """Return a measured motion on the joint side."""
    if not robot.loops:
        return measured
    ratio, offset = ratios_of(robot), robot.actuator_matrix[1]
    return Motion.unchecked(measured.t, (measured.q - offset) / ratio, measured.v / ratio, measured.a / ratio)


def of_robot(robot: Mechanism, moved: Motion) -> Motion:
    """Return the motion of a robot's coordinates for a motion of the channels' joints."""
    if not robot.loops:
        return moved
    ratio, offset = ratios_of(robot), robot.actuator_matrix[1]
    return motion_from_actuators(robot, Motion.unchecked(moved.t, moved.q * ratio + offset, moved.v * ratio, moved.a * ratio))


def of_channels(robot: Mechanism, moved: Motion, forces: Callable[[Motion], Array]) -> Array:
    """Return the torques (S, n, ...) of the channels, without preload, for forces of the robot's coordinates."""
    motion = of_robot(robot, moved)
    if not robot.loops:
        return forces(motion)
    B = ratios_of(robot)[:, None] * motor_map(Rows(robot), motion)
    return np.asarray(np.einsum("tin,tn...->ti...", B, forces(motion)))


def torques(robot: Mechanism, moved: Motion) -> Array:
    """Return the torques (S, n) of the channels of a described robot."""
    return of_channels(robot, moved, lambda motion: inverse_dynamics(robot, motion))


def holding(robot: Mechanism, moved: Motion) -> Array:
    """Return the torques (S, n) of the channels that hold a described robot."""
    return of_channels(robot, moved, lambda motion: gravity(robot, motion.q))


def bare(robot: Mechanism, absent: Sequence[int] = ()) -> Mechanism:
    """Return a robot with its described bodies only, without `absent` parameters."""
    bodies = robot.altered(friction={}, forces=())
    phi = bodies.parameters.values.copy()
    phi[[*absent, *range(bodies.tree.inertias.size, phi.size)]] = 0.0
    return bodies.with_parameters(bodies.parameters.replace(phi))


def has_masses(robot: Mechanism) -> bool:
    """Return whether a description has masses, beyond round-off of bodies fixed to one another."""
    return bool(np.any(np.abs(robot.tree.inertias) > RESTS))


def fault(kind: str, channel: str, sentence: str, value: float | None = None) -> Finding:
    """Return a finding that spoils a fit."""
    return Finding(kind, channel, "error", sentence, None if value is None else float(value))


def false_channels(log: Log, quality: Quality, sample: Sample) -> list[Finding]:
    """Return findings about channels that keep a value while their joint moves, and saturated efforts.

    Efforts at a limit are true if the drive saturates, and false if the recorder does: then their residuals under the model
    of the other samples are larger.
    """
    found = [
        fault("stuck", f.channel, f"the {f.channel.replace(':', ' of ')} {f.sentence}; remove that stretch of time", f.value)
        for f in quality.of("stuck")
        if f.channel.startswith(("position:", "effort:"))
    ]
    limited = [f.channel for f in quality.of("saturated") if f.value is not None and f.value > MANY]
    for j, joint in enumerate(log.joints):
        channel = f"effort:{joint}"
        if channel in limited and joint in sample.names and _cut_off(log.t, log.effort[:, j], sample, joint):
            limit = float(np.nanmax(np.abs(log.effort[:, j])))
            said = (
                f"the efforts of {joint} saturate at {limit:.4g}, although other samples are larger; record a wider range, "
                "or remove these segments"
            )
            found.append(fault("clipped", channel, said, limit))
    return found


def _cut_off(t: Array, effort: Array, sample: Sample, joint: str) -> bool:
    """Return whether the residuals of a joint are larger in windows with an effort at a limit."""
    at_limit = (effort == np.nanmax(effort)) | (effort == np.nanmin(effort))
    half, count = 0.5 * np.median(np.diff(sample.motion.t)), np.concatenate([[0], np.cumsum(at_limit)])
    cut = count[np.searchsorted(t, sample.motion.t + half)] > count[np.searchsorted(t, sample.motion.t - half)]
    i, W = sample.names.index(joint), sample.equations(sample.motion)
    A, y = W[i].T, sample.effort[:, i]
    if np.sum(cut) < AT_LIMIT or np.sum(~cut) < 2 * A.shape[1]:
        return False
    scale = np.linalg.norm(A, axis=0)
    A = A[:, scale > 0.0] / scale[scale > 0.0]
    x = np.linalg.lstsq(A[~cut], y[~cut], rcond=1e-9)[0]
    square = (y - A @ x) ** 2
    return bool(np.mean(square[cut]) > MORE * np.mean(square[~cut]))
