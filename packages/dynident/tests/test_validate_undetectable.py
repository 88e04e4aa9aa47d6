"""Faults that no diagnosis can see: another physically possible robot makes the faulty efforts within the noise of the log.

Every other robot is constructed here. The search for faults must then find nothing, for it would accuse that robot.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from benchmarks.fault_kinds import KINDS, Subject
from identify_cases import RRR, arm, simulated_log

import dynident as di
from dynident.mechanism.elements import rotation_exp

pytestmark = pytest.mark.filterwarnings("ignore::dynident.DynidentWarning")
NOISE = 0.02  # [N m]


def subject() -> Subject:
    """Return an arm of three axes without described masses, whose last frame is that of its joint, and a log of it."""
    true = arm([*RRR[:2], (0.0, 0.0, 0.0, 0.0)])
    unknown = true.with_parameters(true.parameters.replace(np.zeros(len(true.parameters))))
    return Subject("arm", unknown, [simulated_log(true, 15.0, 0, noise=NOISE)], [], true)


def wrist() -> Subject:
    """Return the six-axis arm of the examples, whose last axis has mostly friction."""
    example = di.examples.arm6()
    truth = [example.truth[name] for name in example.robot.parameters.names]
    return Subject(
        "arm6", example.robot, [example.run], [], example.robot.with_parameters(example.robot.parameters.replace(truth))
    )


def heavier(true: di.Mechanism, clean: di.Log, faulty: di.Log) -> di.Mechanism:
    """Return the robot with 1.3 times all masses, inertias and friction."""
    return true.with_parameters(true.parameters.replace(1.3 * true.parameters.values))


def preloaded(true: di.Mechanism, clean: di.Log, faulty: di.Log) -> di.Mechanism:
    """Return the robot with a constant torque in the last joint."""
    return changed(true, {"off_joint_3": float(np.mean(faulty.effort - clean.effort, axis=0)[2])})


def turned(true: di.Mechanism, clean: di.Log, faulty: di.Log) -> di.Mechanism:
    """Return the robot whose last body is turned back about the axis of its joint, as a rigid body."""
    value = dict(zip(true.parameters.names, true.parameters.values, strict=True))
    own = {key: value[f"{key}_link_3"] for key in ("mx", "my", "mz", "Ixx", "Ixy", "Ixz", "Iyy", "Iyz", "Izz")}
    angle = float((faulty.position - clean.position)[0, 2])
    R = rotation_exp(-angle * np.asarray(true.joint("joint_3").axis))
    moment = R @ [own["mx"], own["my"], own["mz"]]
    inertia = np.array([[own["".join(("I", *sorted(f"{a}{b}")))] for a in "xyz"] for b in "xyz"])
    inertia = R @ inertia @ R.T
    new = dict(zip(("mx", "my", "mz"), moment, strict=True))
    new |= {f"I{'xyz'[i]}{'xyz'[j]}": inertia[i, j] for i in range(3) for j in range(i, 3)}
    return changed(true, {f"{key}_link_3": x - own[key] for key, x in new.items()})


def rubbing(true: di.Mechanism, clean: di.Log, faulty: di.Log) -> di.Mechanism:
    """Return the robot with 1.3 times the friction and rotor inertia in the last joint, and the same bodies."""
    value = dict(zip(true.parameters.names, true.parameters.values, strict=True))
    return changed(true, {name: 0.3 * x for name, x in value.items() if name.endswith("_joint6")})


def changed(robot: di.Mechanism, more: dict[str, float]) -> di.Mechanism:
    """Return a robot with some parameters increased."""
    names = robot.parameters.names
    return robot.with_parameters(robot.parameters.replace(robot.parameters.values + [more.get(name, 0.0) for name in names]))


@pytest.mark.parametrize(
    ("made", "name", "other"),
    [
        (subject, "all gains 1.3", heavier),
        (subject, "effort offset", preloaded),
        (subject, "zero off by pi/2", turned),
        (subject, "zero off by 0.3 rad", turned),
        (wrist, "gain 1.3", rubbing),
    ],
)
def test_another_possible_robot_makes_the_faulty_efforts(
    made: Callable[[], Subject], name: str, other: Callable[[di.Mechanism, di.Log, di.Log], di.Mechanism]
) -> None:
    healthy = made()
    last = len(healthy.train[0].joints) - 1
    (clean,) = healthy.train
    (faulty,) = KINDS[name].apply(healthy, last, np.random.default_rng(0)).train
    robot = other(healthy.true, clean, faulty)
    assert all(body.ok for body in robot.check_consistency(robot.parameters))
    assert all(x >= 0.0 for key, x in zip(robot.parameters.names, robot.parameters.values, strict=True) if key[:2] in FRICTION)
    noise, explained, wrong = (
        error(log, each) for log, each in ((clean, healthy.true), (faulty, robot), (faulty, healthy.true))
    )
    assert np.all(explained <= 1.4 * noise)
    assert np.max(wrong) > 0.05  # the fault is no small one
    found = di.inspect(replace(faulty, velocity=None, acceleration=None, reference=None), healthy.robot, excitation=False)
    assert found.findings == ()


FRICTION = ("fc", "fv", "ia")


def error(log: di.Log, robot: di.Mechanism) -> np.ndarray:
    """Return the relative error of a robot in the moving samples of a log, per joint."""
    motion = di.signals.prepare(log).motion
    size, moving = np.sqrt(np.mean(log.effort**2, axis=0)), np.abs(motion.v) > 0.1 * np.std(motion.v, axis=0)
    at = np.searchsorted(log.t, motion.t)
    rest = (log.effort[np.minimum(at, len(log) - 1)] - di.inverse_dynamics(robot, motion)) * moving
    return np.sqrt(np.mean(rest**2, axis=0)) / size
