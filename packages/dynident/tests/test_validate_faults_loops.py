"""Faults of robots with loops: a five-bar with two motors, and with three motors for two degrees of freedom."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from benchmarks.fault_kinds import KINDS, Subject
from loop_cases import at, link, robot

import dynident as di
from dynident.mechanics.actuation import actuator_jacobian
from dynident.mechanics.closure import close_motion
from dynident.mechanics.dynamics import inverse_dynamics
from dynident.signals.quality import diagnose
from dynident.validate.diagnosis.sample import ratios_of

pytestmark = pytest.mark.filterwarnings("ignore::dynident.DynidentWarning")
PRELOAD = 3.0  # [N m]


@cache
def healthy(driven: str) -> Subject:
    """Return a five-bar with motors on some joints, each with friction, and two logs with some noise and a preload."""
    bodies = [di.Body("base"), link("left", 0.5, 1), link("forearm", 0.9, 2), link("right", 0.5, 3), link("other", 0.9, 4)]
    joints = [
        di.Joint("a", "revolute", "base", "left"),
        di.Joint("b", "revolute", "left", "forearm", at(0.5)),
        di.Joint("c", "revolute", "base", "right", at(0.6)),
        di.Joint("d", "revolute", "right", "other", at(0.5)),
    ]
    loops = [di.Loop("tip", "revolute", "forearm", "other", at(0.9), at(0.9))]
    motors = tuple(di.Actuator(f"m{name}", {name: 1.0}) for name in driven)
    home = {"a": 2.0, "b": -1.2, "c": 1.1, "d": 1.2}
    five_bar = robot("five-bar", bodies, joints, loops, "a", home, independent=("a", "c"), actuators=motors, terms=("fv", "fc"))
    friction = {f"{term}_{name}": size for name in driven for term, size in (("fc", 0.3), ("fv", 0.2))}
    values = [friction.get(name, x) for name, x in zip(five_bar.parameters.names, five_bar.parameters.values, strict=True)]
    true = five_bar.with_parameters(five_bar.parameters.replace(values))
    logs = [simulated_log(true, seed) for seed in (0, 1)]
    return Subject("five-bar", five_bar, logs[:1], logs[1:], true)


def simulated_log(true: di.Mechanism, seed: int) -> di.Log:
    """Return efforts by inverse dynamics along a sum of sines; motors share them with least squares and a preload."""
    rng, t = np.random.default_rng(seed), np.arange(0.0, 8.0, 0.005)
    w, size = 0.9 * np.array([1.0, 2.0, 3.0, 5.0]) * rng.uniform(1.0, 1.2, (2, 4)), 0.2 / np.sqrt([1.0, 2.0, 3.0, 5.0])
    size, phase = size * rng.uniform(0.5, 1.0, (2, 4)), w * t[:, None, None] + rng.uniform(0.0, 2.0 * np.pi, (2, 4))
    q = true.closure.home[true.closure.independent] + np.sum(size * np.sin(phase), axis=2)
    v, a = np.sum(size * w * np.cos(phase), axis=2), -np.sum(size * w**2 * np.sin(phase), axis=2)
    motion = di.Motion(t, q, v, a)
    A, (N, zero) = actuator_jacobian(true, q), true.actuator_matrix
    inverse = np.linalg.pinv(A)
    tau = np.einsum("tnk,tn->tk", inverse, inverse_dynamics(true, motion))
    tau += PRELOAD * (1.0 - np.einsum("tkn,tnj->tk", A, inverse))
    tau += 0.01 * np.std(tau, axis=0) * rng.normal(size=tau.shape)
    names = tuple(actuator.name for actuator in true.actuators)
    position = close_motion(true, motion).q @ N.T + zero
    return di.Log(t, names, position, tau, effort_kind="motor_torque", position_side="motor", name=f"run{seed}")


@pytest.mark.parametrize(
    ("driven", "name", "joint"),
    [
        *(("ac", name, 1) for name in ("gain 1.3", "effort turned", "zero off by pi/2", "position turned")),
        *(("ac", "position of one joint behind a gear of 2", 0), ("ac", "mounted on a wall", 0)),
        *(("acb", "gain 1.3", 2), ("acb", "effort turned", 1)),
    ],
)
def test_the_cause_of_a_fault_is_named_for_robots_with_loops(driven, name, joint):
    """Positions are corrected through the closure; a preload of redundant motors hides no fault of efforts."""
    kind, subject = KINDS[name], healthy(driven)
    spoiled = kind.apply(subject, joint, np.random.default_rng(0))
    findings = di.inspect(spoiled.train[0], spoiled.robot, excitation=False).findings
    assert findings[0].kind in kind.causes, findings
    assert not kind.joint or f"m{driven[joint]}" in findings[0].sentence


@pytest.mark.parametrize("driven", ["ac", "acb"])
def test_healthy_robots_with_loops_are_not_accused(driven):
    subject = healthy(driven)
    assert di.identify(subject.robot, subject.train, subject.test).verdict.findings == ()


def test_a_limiter_without_long_runs_is_seen():
    """Noise around the limit leaves it after fewer than five samples."""
    log, rng = healthy("ac").train[0], np.random.default_rng(0)
    effort = np.array(log.effort)
    effort[:, 0] = np.minimum(
        effort[:, 0] + np.std(effort[:, 0]) * rng.normal(size=len(log)), np.percentile(effort[:, 0], 80.0)
    )
    limited = di.Log(log.t, log.joints, log.position, effort, effort_kind="motor_torque")
    assert [finding.channel for finding in diagnose(limited).of("saturated")] == ["effort:ma"]


def test_ratios_of_channels_are_entries_of_the_actuator_matrix():
    plain = healthy("ac").robot
    (joint,) = plain.actuators[0].coupling
    geared = replace(plain, actuators=(replace(plain.actuators[0], coupling={joint: -2.0}, ratio=3.0), *plain.actuators[1:]))
    matrix = geared.actuator_matrix[0]
    np.testing.assert_array_equal(ratios_of(geared), matrix.sum(axis=1))
    assert ratios_of(geared)[0] == -6.0


@pytest.mark.parametrize(("driven", "name", "hidden"), [("ac", "all gains 1.3", True), ("acb", "gain 1.3", False)])
def test_another_five_bar_makes_the_faulty_efforts_of_all_motors_but_not_of_one(driven, name, hidden):
    pytest.importorskip("cvxpy")
    from benchmarks.possible import excess

    subject = healthy(driven)
    over, _ = excess(subject, lambda s: KINDS[name].apply(s, 0, np.random.default_rng(0)))
    assert np.max(over) < 1.05 if hidden else np.max(over) > 2.0
