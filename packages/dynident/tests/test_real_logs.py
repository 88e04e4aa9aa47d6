"""Real robots, one default configuration: no option is given to any of them."""

from __future__ import annotations

import json
import warnings
from dataclasses import replace

import numpy as np
import pytest
from identify_cases import doubts_of

import dynident as di
from dynident.errors import DynidentWarning, SignalWarning
from dynident.friction.terms import ASYMMETRIC
from dynident.identify import GLS, IRLS, IV, TLS, WLS, Fit, Regression
from dynident.validate import judge
from dynident.validate.diagnosis.inspection import with_findings

pytestmark = pytest.mark.real

EMPS = {"time": "t", "position": "qm", "effort": "vir", "joints": ["slide"], "effort_kind": "voltage", "gain": 35.1507}
RATIOS = (32.0, 32.0, 45.0, -48.0, 45.0, 32.0)


def identify(robot: di.Mechanism, *logs: di.Log) -> Fit:
    base = None
    evidence = []
    for log in logs:
        evidence.append(Regression.from_log(robot, log, base))
        base = evidence[0].base
    total = evidence[0]
    for more in evidence[1:]:
        total = total + more
    return WLS().fit(total).result_


def checked(score: di.Score, limit: float) -> None:
    """Assert the held-out error, that nothing hides outside the fitted band, and that a verdict can be made of it."""
    assert not score.training
    assert score.metrics.relative <= limit
    assert score.all_samples.samples > score.metrics.samples
    assert np.isfinite(score.all_samples.relative)
    assert f"{100 * score.all_samples.relative:.2f} %" in score.summary()
    assert 0.5 < score.coverage <= 1.0


# ---- EMPS ------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def emps(shared_data):
    folder = shared_data / "emps"
    robot = di.Mechanism.from_dh([{"kind": "prismatic", "joint": "slide"}], gravity=(0, 0, 0), name="EMPS")
    train, pulses = (di.Log.read(folder / f"{name}.mat", schema=EMPS) for name in ("DATA_EMPS", "DATA_EMPS_PULSES"))
    return robot, train, pulses, json.loads((folder / "published.json").read_text())


def test_emps_gives_the_published_parameters(emps):
    robot, train, pulses, published = emps
    fit = identify(robot, train)
    found = dict(zip(fit.base.leaders, fit.values, strict=True))
    reference = {key: published["IDIM_LS_symmetric"][key][0] for key in ("M", "Fv", "Fc", "offset")}
    assert found["m_link_1"] == pytest.approx(reference["M"], rel=0.005)
    assert found["fv_slide"] == pytest.approx(reference["Fv"], rel=0.03)
    assert found["fc_slide"] == pytest.approx(reference["Fc"], rel=0.03)
    assert found["off_slide"] == pytest.approx(reference["offset"], rel=0.03)
    assert fit.training_relative <= 0.0410
    checked(fit.score(pulses), 0.060)
    assert judge(fit, [fit.score(pulses)]).ok


def test_emps_instruments_agree_with_least_squares(emps, shared_data):
    """Published IDIM-LS: encoders are so fine that instruments, total least squares and least squares find the same robot."""
    robot, _, pulses, published = emps
    train = di.Log.read(shared_data / "emps" / "DATA_EMPS.mat", schema={**EMPS, "reference": "qg"})
    found = di.compare(robot, train, pulses, estimators={"WLS": WLS(), "TLS": TLS(), "IV": IV(), "Huber": IRLS()})
    values = {"m_link_1R": "M", "fv_slide": "Fv", "fc_slide": "Fc", "off_slide": "offset"}
    for name in ("WLS", "TLS", "IV"):
        fit = found[name].fit
        for parameter, label in values.items():
            value, std = published["IDIM_LS_symmetric"][label]
            i = fit.base.names.index(parameter)
            assert abs(fit.values[i] - value) < 2.0 * np.hypot(fit.std[i], std)
        assert found[name].error < 0.0598
    assert not found.bias.biased
    assert found.bias.whiteness["slide"][0] > 0.5  # friction that differs between the directions colours the residuals


def test_emps_friction_differs_between_the_directions(emps):
    robot, train, pulses, published = emps
    symmetric, fit = identify(robot, train), identify(robot.with_terms(ASYMMETRIC), train)
    assert fit.training_relative <= 0.032 < symmetric.training_relative
    assert fit.score(pulses).metrics.relative < symmetric.score(pulses).metrics.relative
    reference = published["IDIM_LS_asymmetric"]
    found = dict(zip(fit.base.leaders, fit.values, strict=True))
    assert found["fvp_slide"] == pytest.approx(reference["Fv_pos"][0], rel=0.05)
    assert found["fvn_slide"] == pytest.approx(reference["Fv_neg"][0], rel=0.05)


# ---- KUKA LWR4+ ------------------------------------------------------------------------------------------------------


def test_lwr4_predicts_its_second_run(shared_data, capfd):
    folder = shared_data / "kuka_lwr4_flobaroid"
    robot = di.Mechanism.from_urdf(folder / "kuka_lwr4.urdf")
    first, second = (
        di.Log.read(folder / f"measurements_{i}.npz", "joint_torque", joints=list(robot.joint_names)) for i in (1, 2)
    )
    fit = identify(robot, first)
    score = fit.score(second)
    checked(score, 0.022)
    assert score.coverage > 0.9
    assert fit.solved.all()
    assert doubts_of(fit) == ()  # the last axis alone gains when both wrist axes are exchanged: that is no exchange
    with pytest.raises(di.DynidentError, match="was used for the fit"):
        fit.score(first.rows(1000, 4000))
    captured = capfd.readouterr()
    assert captured.out == captured.err == ""


def test_lwr4_filters_and_targets_that_help_nobody_are_refused(shared_data):
    """Five of six stretches say that the filter of GLS does harm, the first is like no other; target channels stand still."""
    folder = shared_data / "kuka_lwr4_flobaroid"
    robot = di.Mechanism.from_urdf(folder / "kuka_lwr4.urdf")
    first, second = (
        di.Log.read(folder / f"measurements_{i}.npz", "joint_torque", joints=list(robot.joint_names)) for i in (1, 2)
    )
    found = di.compare(robot, first, second, estimators={"WLS": WLS(), "GLS": GLS(), "IV": IV()})
    assert "coloured residuals are model error" in found["GLS"].note
    assert found["GLS"].error == pytest.approx(found["WLS"].error, rel=1e-9)
    assert found["GLS"].coverage > found["WLS"].coverage
    assert "that they are the reference of this log" in found["IV"].note
    assert "not tested; the instruments hardly resemble" in found.summary()


# ---- Staubli TX40 ----------------------------------------------------------------------------------------------------


def tx40_log(shared_data) -> di.Log:
    folder = shared_data / "staubli_tx40_figaroh"
    names = [f"Joint_{i}" for i in range(1, 7)]
    files = {"position": folder / "pos_read_data.csv.gz", "effort": folder / "curr_data.csv.gz"}
    schema = {"position": names, "effort": names, "joints": [f"m{i}" for i in range(1, 7)], "rate": 5000}
    return di.Log.read(files, "motor_torque", schema=schema, position_side="motor")


def couplings() -> list[tuple[str, dict[str, float], float, float]]:
    """Return name, joints, ratio and offset of the six motors; motor 6 turns with joints 5 and 6."""
    offsets = (0.0, 32 * np.pi / 2, -45 * np.pi / 2, 0.0, 0.0, 0.0)
    joints = [{f"joint_{i}": 1.0} for i in range(1, 6)] + [{"joint_5": 1.0, "joint_6": 1.0}]
    return [(f"m{i + 1}", joints[i], RATIOS[i], offsets[i]) for i in range(6)]


def test_tx40_coupled_wrist(shared_data, tmp_path):
    urdf = shared_data / "staubli_tx40_figaroh" / "tx40_mdh_modified.urdf"
    motors = [di.Actuator(name, joints, ratio=ratio, offset=offset) for name, joints, ratio, offset in couplings()]
    robot = replace(di.Mechanism.from_urdf(urdf), actuators=tuple(motors))
    log = tx40_log(shared_data)
    train, held = log.rows(0, 24750), log.rows(29250, 45000)
    fit = identify(robot, train)
    score = fit.score(held)
    published = np.array([6.64, 8.32, 4.28, 1.80, 2.65, 1.72])  # base OLS of FIGAROH on the same rows
    assert np.all(score.metrics.rmse <= published)
    assert np.all(score.all_samples.rmse <= published)  # not a matter of the band
    assert {"ia_m6", "fv_m6", "fc_m6"} <= set(robot.parameters.names)
    checked(score, 0.15)

    lines = []
    for name, joints, ratio, offset in couplings():
        inside = ", ".join(f"{joint} = {c!r}" for joint, c in joints.items())
        lines += ["[[actuator]]", f'name = "{name}"', f"coupling = {{ {inside} }}", f"ratio = {ratio!r}"]
        lines += [f"offset = {float(offset)!r}", ""]
    sidecar = tmp_path / "tx40.toml"
    sidecar.write_text("\n".join(lines))
    again = identify(di.Mechanism.from_urdf(urdf, sidecar=sidecar), train)
    assert again.base.names == fit.base.names
    np.testing.assert_allclose(again.values, fit.values, rtol=1e-9, atol=1e-12)


# ---- UR10 ------------------------------------------------------------------------------------------------------------


def test_ur10_last_third(shared_data):
    folder = shared_data / "ur10_petrone2025"
    robot = di.Mechanism.from_urdf(folder / "ur10_robot.urdf")
    log = di.Log.read(folder / "ur10_exciting_trajectory.csv.gz", "joint_torque")
    cut = 2 * len(log) // 3
    fit = identify(robot, log.rows(0, cut))
    score = fit.score(log.rows(cut, len(log)))
    checked(score, 0.09)
    assert score.all_samples.relative <= 0.09
    assert fit.base.rank == 58
    again = Fit.from_dict(fit.to_dict(), robot)
    np.testing.assert_array_equal(again.values, fit.values)


# ---- TIAGo -----------------------------------------------------------------------------------------------------------


def test_tiago_dirty_data_are_seen_and_survived(shared_data):
    folder = shared_data / "tiago_figaroh"
    log = di.Log.read([folder / f"tiago_{kind}.csv.gz" for kind in ("position", "velocity", "effort")], "joint_torque")
    quality = di.inspect(log)
    delayed = {f.channel: f for f in quality.findings if f.kind == "delayed"}
    assert set(delayed) == {f"velocity:{joint}" for joint in log.joints}
    delays = [float(f.sentence.split("comes ")[1].split(" s")[0]) for f in delayed.values()]
    assert all(0.15 <= delay <= 0.21 for delay in delays)
    assert np.median(delays) == pytest.approx(0.18, abs=0.015)
    dead = {f.channel for f in quality.findings if f.kind == "dead"}
    assert dead == {f"effort:arm_{i}_joint" for i in (5, 6, 7)}

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DynidentWarning)  # an impossible antenna in the URDF, said when it is read
        robot = di.Mechanism.from_urdf(folder / "tiago_48_schunk.urdf")
    with pytest.warns(SignalWarning, match="arm_5_joint"):
        fit = identify(robot, log.rows(921, 4149))
    assert fit.groups == ("torso_lift_joint", *(f"arm_{i}_joint" for i in (1, 2, 3, 4)))
    assert any("dead and their rows are not used" in note.sentence for note in fit.notes)
    assert any("fixed at zero" in note.sentence for note in fit.notes)
    with pytest.warns(SignalWarning):
        score = fit.score(log.rows(4736, 6791))
    assert score.joints == fit.groups
    checked(score, 0.20)
    assert not judge(fit, [score]).ok  # dead wrist: its parameters are not excited, and the verdict says so


# ---- Kinova Gen3 -----------------------------------------------------------------------------------------------------


def test_gen3_is_read_and_identified(shared_data):
    folder = shared_data / "kinova_gen3_dynamapp"
    schema = {"effort": "TorqueCur{index}", "rate": 1000}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DynidentWarning)  # impossible bodies in the URDF, two seconds of record
        robot = di.Mechanism.from_urdf(folder / "gen3.urdf")
        logs = [
            di.Log.read(
                folder / "identification_data" / f"{name}.csv.gz", "joint_torque", schema=schema, joints=robot.joint_names
            )
            for name in ("RunTrajectory1", "Trajectory1", "RecordTrajectory_quadratic")
        ]
        fit = identify(robot, *logs)
    assert len(fit.sources) == 3
    assert len({s["sha256"] for s in fit.sources}) == 3
    assert fit.groups == robot.joint_names
    assert logs[0].temperature is not None
    assert fit.training_relative < 0.2
    assert np.all(np.isfinite(fit.values))
    assert np.count_nonzero(fit.solved) > 0.7 * fit.base.rank
    # Torque sensors agree with these currents within a tenth: it is the description that is too light, no gain is wrong.
    assert doubts_of(fit) == ()
    assert any(note.kind == "masses" and "joint_2" in note.sentence for note in with_findings(fit).notes)


def test_healthy_logs_are_not_accused_of_what_held_out_data_or_the_description_refute(shared_data):
    """A gain of a UR10's wrist raises left-out errors; with a zero of the LWR4+'s wrist described torques explain less."""
    folder = shared_data / "ur10_petrone2025"
    log = di.Log.read(folder / "ur10_exciting_trajectory.csv.gz", "joint_torque").rows(0, 1147)
    assert di.inspect(log, di.Mechanism.from_urdf(folder / "ur10_robot.urdf")).usable
    folder = shared_data / "kuka_lwr4_flobaroid"
    robot = di.Mechanism.from_urdf(folder / "kuka_lwr4.urdf")
    log = di.Log.read(folder / "measurements_1.npz", "joint_torque", joints=robot.joint_names)
    step = 2.0 * np.pi / 4096
    coarse = replace(log, position=np.round(log.position / step) * step, velocity=None, acceleration=None, reference=None)
    assert di.inspect(coarse, robot).usable
