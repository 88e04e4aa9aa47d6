"""More motors than freedoms: errors per motor, symmetric order, standstill, removals, and the payload chain by commands."""

from __future__ import annotations

import numpy as np
import pytest
from small_robots import (
    PLATFORM_COLUMNS,
    platform,
    platform_angles,
    platform_jacobian,
    platform_motion,
    platform_torques,
    preload_direction,
)

import dynident as di
from dynident.errors import DynidentError
from dynident.identify import payload_regression
from dynident.identify.regression.rows import check_projection
from dynident.mechanics import actuator_torques, coordinates_from_actuators, rank_partitions
from dynident.mechanics.partitions import Partition, Partitions

PROJECTIONS = ["gls", "independent", ("motor_4", "motor_2", "motor_1")]


def _values() -> dict[str, float]:
    """Return random parameters of every leg and of the platform."""
    size = [0.02, 0.05, 0.05, 2.0] + [0.04] * (len(PLATFORM_COLUMNS) - 4)
    numbers = np.random.default_rng(3).uniform(0.5, 1.5, len(size)) * size
    return dict(zip(PLATFORM_COLUMNS, numbers.tolist(), strict=True))


def _log(seed: int, values: dict[str, float], noise: float = 0.0) -> di.Log:
    """Motor angles and torques in closed form, with a preload."""
    motion = platform_motion(seed, rate=1000.0)
    preload = 5.0 + 2.0 * np.sin(3.0 * motion.t)
    tau = platform_torques(motion, values) + preload[:, None] * preload_direction(motion.q)
    tau = tau + noise * np.random.default_rng(seed).normal(size=tau.shape)
    angles = np.unwrap(platform_angles(motion.q)[:, :, 0], axis=0)
    return di.Log(motion.t, [f"motor_{i}" for i in (1, 2, 3, 4)], angles, tau, "motor_torque", name=f"run {seed}")


def _robot(values: dict[str, float]) -> di.Mechanism:
    robot = platform()
    return robot.with_parameters(robot.parameters.replace(values))


def test_torques_are_those_of_lagrange_s_equation_by_hand() -> None:
    values, motion = _values(), platform_motion(1)
    names = [name for name in platform().parameters.names if name.startswith(("m_link1", "mx_link1", "my_link1"))]
    robot = _robot(values | dict.fromkeys(names, 0.0))
    tau = actuator_torques(robot, motion.q, di.inverse_dynamics(robot, motion))
    np.testing.assert_allclose(tau, platform_torques(motion, values), atol=1e-8 * np.abs(tau).max())


@pytest.mark.parametrize("projection", PROJECTIONS)
def test_errors_per_motor_are_those_of_the_closed_form(projection: str | tuple[str, ...]) -> None:
    values = _values()
    other = _log(2, values)
    evidence = di.Regression.from_log(platform(), _log(1, values), projection=projection, cutoff=40.0, decimation=1)
    fit = di.WLS(recovery="minimum_norm").fit(evidence).result_
    score = fit.score(other)
    assert score.motors is not None
    assert score.motors.joints == ("motor_1", "motor_2", "motor_3", "motor_4")
    # The closed null vector, at the poses that the low-passed encoders tell, leaves the same torques.
    prepared = di.prepare(other, cutoff=40.0, decimation=1)
    poses = coordinates_from_actuators(fit.mechanism, prepared.motion.q)
    u = preload_direction(poses)
    stress = np.sum(u * prepared.effort, axis=1, keepdims=True) * u
    least = prepared.effort - stress
    scale = np.abs(least).max()
    np.testing.assert_allclose(score.motors.measured, least, atol=1e-9 * scale)
    assert score.preload == pytest.approx(np.linalg.norm(stress) / np.linalg.norm(prepared.effort), rel=1e-9)
    # And the model's torques are those of the closed form with what was identified: the true parameters, noise-free.
    motion = platform_motion(2, rate=1000.0)
    true = platform_torques(motion, values)[np.searchsorted(motion.t, score.t - 1e-9)]
    error = np.linalg.norm(score.motors.predicted - true, axis=0) / np.linalg.norm(true, axis=0)
    assert error.max() < 0.02
    assert "motor_3" in score.summary()
    assert "is preload" in score.summary()


def test_symmetric_order_keeps_the_legs_alike() -> None:
    robot = platform()
    base, listed = di.base_parameters(robot, "symmetric"), di.base_parameters(robot, PLATFORM_COLUMNS)
    assert set(base.expressions) == set(listed.expressions)
    # Of a distal link m x / l acts at the platform and the rest of its mass at the elbow, 0.28 m from the motor.
    assert "Izz_link1_3R = Izz_link1_3 + 0.0784 m_link2_3 - 0.28 mx_link2_3 + ia_q1_3" in base.expressions
    with pytest.raises(DynidentError, match="order is 'legs'; give 'symmetric', or names"):
        di.base_parameters(robot, "legs")
    loaded = payload_regression(robot, [_log(1, _values())], [_log(2, _values())], "platform", order="symmetric", cutoff=40.0)
    assert [name for name in loaded.base.names if not name.endswith("payload")] == list(base.names)


def test_standstill_with_four_motors_uses_single_samples() -> None:
    values = _values()
    log = _log(1, values, noise=0.02)
    evidence = di.Regression.from_log(platform(), log, standstill=0.1, cutoff=40.0)
    assert any("rows are single samples" in note.sentence for note in evidence.notes)
    assert evidence.rows > 0.5 * 3 * len(log)
    fit = di.WLS().fit(evidence).result_
    truth = fit.base.values(_robot(values).parameters.values)
    z = (fit.values - truth) / fit.std
    assert np.sqrt(np.mean(z**2)) < 1.6  # deviations of single samples are honest
    assert fit.score(_log(2, values, noise=0.02)).metrics.relative < 0.05


def test_every_removal_is_listed() -> None:
    values = _values()
    for name in PLATFORM_COLUMNS[4::5]:
        values[name] *= 1e-4
    evidence = di.Regression.from_log(platform(), _log(1, values, noise=0.05), cutoff=30.0)
    with pytest.warns(di.DynidentWarning, match="so the F-test is weak"):  # fewer independent rows than parameters
        few = di.essential_parameters(evidence, di.WLS(recovery="minimum_norm"), 10.0)
    assert len(few.removals) == np.count_nonzero(~few.active) > 0
    for number, text in enumerate(few.removals, 1):
        assert text.startswith(f"removal {number}: ")
        assert any(f" {name} = " in text for name, active in zip(few.base.names, few.active, strict=True) if not active)


def test_partitions_amplify_as_the_projector_does() -> None:
    """A_r^-T A^T, which brings all torques to three motors, has the singular values of the ranked choice, in every pose."""
    motion = platform_motion(5, rate=50.0)
    ranked = rank_partitions(platform(), motion)
    assert isinstance(ranked, Partitions)
    A = platform_jacobian(motion.q)
    projector = np.linalg.solve(A[:, :3].transpose(0, 2, 1), A.transpose(0, 2, 1))
    largest = np.linalg.svd(projector, compute_uv=False)[:, 0]
    choice = next(c for c in ranked.choices if set(c.motors) == {"motor_1", "motor_2", "motor_3"})
    assert isinstance(choice, Partition)
    assert choice.typical == pytest.approx(np.sqrt(np.mean(largest**2)), rel=1e-6)
    assert (choice.worst, choice.time) == pytest.approx((largest.max(), motion.t[largest.argmax()]), rel=1e-6)


def test_a_projection_is_a_word_or_names_of_motors() -> None:
    assert check_projection("gls") == "gls"
    assert check_projection(["motor_1", "motor_2"]) == ("motor_1", "motor_2")
    for wrong in (3, [1, 2]):
        with pytest.raises(DynidentError, match="use 'gls', 'independent' or a list of names of motors"):
            check_projection(wrong)
