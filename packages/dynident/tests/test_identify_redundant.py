"""More motors than freedoms: errors per motor, symmetric order, standstill, removals, and the payload chain by commands."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import dynident as di
from dynident.cli import run
from dynident.errors import DynidentError
from dynident.identify import payload_regression, rank_partitions
from dynident.identify.partitions import Partition, Partitions
from dynident.identify.regression.rows import check_projection
from dynident.mechanics import coordinates_from_actuators
from dynident.trajectory import to_csv
from dynident_papers.robots import dualv

PROJECTIONS = ["gls", "independent", ("motor_4", "motor_2", "motor_1")]


def _chi() -> np.ndarray:
    return np.random.default_rng(3).uniform(0.5, 1.5, 52) * np.array([0.02, 0.05, 0.05, 2.0] + [0.04] * 48)


def _log(seed: int, chi: np.ndarray, noise: float = 0.0, duration: float = 1.0) -> di.Log:
    """Motor angles and torques of the paper's own equations, preload on."""
    motion = dualv.excitation(seed, duration=duration, rate=1000.0)
    tau = dualv.idle_torques(motion.q, motion.v, motion.a, chi) + dualv.preload(motion.t, motion.q)
    tau = tau + noise * np.random.default_rng(seed).normal(size=tau.shape)
    angles = dualv.inverse_kinematics(motion.q)[:, :, 0]
    return di.Log(
        motion.t, [f"motor_{i}" for i in (1, 2, 3, 4)], np.unwrap(angles, axis=0), tau, "motor_torque", name=f"run {seed}"
    )


def _robot(chi: np.ndarray) -> di.Mechanism:
    robot = dualv.mechanism()
    return robot.with_parameters(robot.parameters.replace(dict(zip(dualv.COLUMNS, chi, strict=True))))


@pytest.mark.parametrize("projection", PROJECTIONS)
def test_errors_per_motor_are_those_of_the_papers_equations(projection: str | tuple[str, ...]) -> None:
    chi = _chi()
    other = _log(2, chi)
    evidence = di.Regression.from_log(dualv.mechanism(), _log(1, chi), projection=projection, cutoff=40.0, decimation=1)
    fit = di.WLS(recovery="minimum_norm").fit(evidence).result_
    score = fit.score(other)
    assert score.motors is not None
    assert score.motors.joints == ("motor_1", "motor_2", "motor_3", "motor_4")
    # The paper's own null vector (50), at the poses that the low-passed encoders tell, leaves the same torques.
    prepared = di.prepare(other, cutoff=40.0, decimation=1)
    poses = coordinates_from_actuators(fit.mechanism, prepared.motion.q)
    least = dualv.remove_internal_stress(prepared.effort, poses)
    scale = np.abs(least).max()
    np.testing.assert_allclose(score.motors.measured, least, atol=1e-9 * scale)
    u = dualv.internal_stress(prepared.effort, poses)
    assert score.preload == pytest.approx(np.linalg.norm(u) / np.linalg.norm(prepared.effort), rel=1e-9)
    # And the model's torques are those of the paper's equations with what was identified: the true parameters, noise-free.
    motion = dualv.excitation(2, duration=1.0, rate=1000.0)
    true = dualv.idle_torques(motion.q, motion.v, motion.a, chi)[np.searchsorted(motion.t, score.t - 1e-9)]
    error = np.linalg.norm(score.motors.predicted - true, axis=0) / np.linalg.norm(true, axis=0)
    assert error.max() < 0.02
    assert "motor_3" in score.summary()
    assert "is preload" in score.summary()


def test_symmetric_order_keeps_the_legs_alike() -> None:
    robot = dualv.mechanism()
    base, paper = di.base_parameters(robot, "symmetric"), di.base_parameters(robot, dualv.COLUMNS)
    assert set(base.expressions) == set(paper.expressions)
    assert "Izz_link1_3R = Izz_link1_3 + 0.0784 m_link2_3 - 0.28 mx_link2_3 + ia_q1_3" in base.expressions
    with pytest.raises(DynidentError, match="order is 'legs'; give 'symmetric', or names"):
        di.base_parameters(robot, "legs")
    loaded = payload_regression(robot, [_log(1, _chi())], [_log(2, _chi())], "platform", order="symmetric", cutoff=40.0)
    assert [name for name in loaded.base.names if not name.endswith("payload")] == list(base.names)


def test_standstill_with_four_motors_uses_single_samples() -> None:
    chi = _chi()
    log = _log(1, chi, noise=0.02)
    evidence = di.Regression.from_log(dualv.mechanism(), log, standstill=0.1, cutoff=40.0)
    assert any("rows are single samples" in note for note in evidence.notes)
    assert evidence.rows > 0.5 * 3 * len(log)
    fit = di.WLS().fit(evidence).result_
    truth = fit.base.values(_robot(chi).parameters.values)
    z = (fit.values - truth) / fit.std
    assert np.sqrt(np.mean(z**2)) < 1.6  # deviations of single samples are honest
    assert fit.score(_log(2, chi, noise=0.02)).metrics.relative < 0.05


def test_every_removal_is_listed() -> None:
    chi = _chi()
    chi[4:] *= np.where(np.arange(48) % 5 == 0, 1e-4, 1.0)
    evidence = di.Regression.from_log(dualv.mechanism(), _log(1, chi, noise=0.05), cutoff=40.0)
    with pytest.warns(di.DynidentWarning, match="the F-test can hardly refuse"):  # one second for 40 parameters
        few = di.essential_parameters(evidence, di.WLS(recovery="minimum_norm"), 10.0)
    assert len(few.removals) == np.count_nonzero(~few.active) > 0
    for number, text in enumerate(few.removals, 1):
        assert text.startswith(f"removal {number}: ")
        assert any(f" {name} = " in text for name, active in zip(few.base.names, few.active, strict=True) if not active)


def test_the_payload_by_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    motion = tmp_path / "motion.csv"
    to_csv(motion, dualv.excitation(5, rate=500.0), dualv.mechanism().coordinate_names)
    empty, full, load = (str(tmp_path / name) for name in ("empty.csv", "full.csv", "load.json"))
    simulate = ["simulate", str(motion), "--robot", "dualv", "--noise", "0.1", "-q"]
    assert run([*simulate, "-o", empty]) == 0
    where = ["--payload", "5.37", "--payload-link", "platform", "--payload-com=-0.02,0,0", "--payload-inertia", "0,0,0.01"]
    assert run([*simulate, "--seed", "3", *where, "-o", full]) == 0
    runs = ["--unloaded", empty, "--loaded", full, "--link", "platform", "--order", "symmetric"]
    assert run(["payload", "dualv", *runs, "-o", load]) == 0
    found = json.loads(Path(load).read_text(encoding="utf-8"))
    assert found["mass"] == pytest.approx(5.37, rel=0.02)
    assert run(["partitions", "dualv", str(motion), "--json"]) == 0
    ranked = json.loads(capsys.readouterr().out.split("\n{", 1)[-1].join(["{", ""]))
    best = rank_partitions(dualv.mechanism(), dualv.excitation(5, rate=500.0)).best
    assert tuple(ranked["choices"][0]["motors"]) == best.motors
    with pytest.raises(DynidentError, match="describe a load; give its mass with --payload"):
        run([*simulate, "--payload-link", "platform"])


def test_partitions_amplify_as_the_projector_of_the_paper_does() -> None:
    """J_r^-T J^T of [Briot2015, (24)] has the singular values of the ranked choice, in every pose."""
    motion = dualv.excitation(5, rate=50.0)
    ranked = rank_partitions(dualv.mechanism(), motion)
    assert isinstance(ranked, Partitions)
    projector, _ = dualv.case_2(motion.q, motion.v, motion.a)
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
