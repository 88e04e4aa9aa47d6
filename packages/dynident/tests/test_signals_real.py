from __future__ import annotations

import numpy as np
import pytest

from dynident.errors import SignalWarning
from dynident.signals import Log, Prepared, diagnose, prepare

pytestmark = pytest.mark.real

EMPS = {"time": "t", "position": "qm", "effort": "vir", "joints": ["slide"], "effort_kind": "voltage", "gain": 35.1507}


def emps(folder, name: str = "DATA_EMPS") -> Log:
    return Log.read(folder / "emps" / f"{name}.mat", schema=EMPS)


def tx40(folder) -> Log:
    base = folder / "staubli_tx40_figaroh"
    files = {"position": base / "pos_read_data.csv.gz", "effort": base / "curr_data.csv.gz"}
    return Log.read(files, "motor_torque", rate=5000, position_side="motor")


def tiago(folder) -> Log:
    files = {name: folder / "tiago_figaroh" / f"tiago_{name}.csv.gz" for name in ("position", "velocity", "effort")}
    return Log.read(files, "motor_current", gain=[1.0] * 8)


def relative(W: np.ndarray, y: np.ndarray, x: np.ndarray) -> float:
    return float(np.linalg.norm(y - W @ x) / np.linalg.norm(y))


def solve(W: np.ndarray, y: np.ndarray) -> np.ndarray:
    flat = W.reshape(-1, W.shape[-1])
    scale = np.linalg.norm(flat, axis=0)
    scale[scale == 0.0] = 1.0
    return np.linalg.lstsq(flat / scale, y.ravel(), rcond=1e-6)[0] / scale


def test_every_data_set_is_read(shared_data):
    log = Log.read(shared_data / "kuka_lwr4_flobaroid" / "measurements_1.npz", "joint_torque")
    assert log.position.shape == log.velocity.shape == log.acceleration.shape == (5027, 7)
    assert "epoch" in log.provenance["conversions"][0]
    log = Log.read(shared_data / "ur10_petrone2025" / "ur10_exciting_trajectory.csv.gz", "joint_torque")
    assert log.joints[2] == "elbow_joint"
    assert (len(log), round(log.rate, 6)) == (3441, 125.0)
    log = tx40(shared_data)
    assert log.position.shape == (45000, 6)
    assert log.rate == pytest.approx(5000.0)
    assert tiago(shared_data).joints[5:] == ("arm_5_joint", "arm_6_joint", "arm_7_joint")
    file = shared_data / "kinova_gen3_dynamapp" / "validation_data" / "opti_traj_testing1.csv.gz"
    torque = Log.read(
        file, "joint_torque", schema={"effort": "TorqueCur{index}", "rate": 1000}, joints=[f"j{k}" for k in range(7)]
    )
    current = Log.read(file, "motor_current", rate=1000, gain=[9.13] * 4 + [5.852] * 3)
    np.testing.assert_allclose(current.torque(), torque.effort, rtol=2e-5, atol=1e-4)
    assert current.temperature.min() > 20.0


def test_emps_gives_the_published_parameters(shared_data):
    def rows(p: Prepared):
        W = np.stack([p.motion.a, p.motion.v, np.sign(p.motion.v), np.ones_like(p.motion.v)], axis=2)
        return p.decimator.apply(W), p.decimator.apply(p.effort)

    train = prepare(emps(shared_data))
    W, y = rows(train)
    x = solve(W, y)
    assert x[0] == pytest.approx(95.1089, rel=0.005)
    assert x[1] == pytest.approx(203.5034, rel=0.03)
    assert x[2] == pytest.approx(20.3935, rel=0.03)
    assert relative(W, y, x) <= 0.0410
    held = prepare(emps(shared_data, "DATA_EMPS_PULSES"), like=train)
    assert relative(*rows(held), x) <= 0.060


@pytest.mark.parametrize("robot", ["lwr4", "ur10"])
def test_arms_are_predicted_on_unseen_data(shared_data, robot):
    pin = pytest.importorskip("pinocchio")
    if robot == "lwr4":
        base = shared_data / "kuka_lwr4_flobaroid"
        logs = [Log.read(base / f"measurements_{k}.npz", "joint_torque") for k in (1, 2)]
        urdf, limit = base / "kuka_lwr4.urdf", 0.022
    else:
        base = shared_data / "ur10_petrone2025"
        log = Log.read(base / "ur10_exciting_trajectory.csv.gz", "joint_torque")
        cut = 2 * len(log) // 3
        logs = [log.rows(0, cut), log.rows(cut, len(log))]
        urdf, limit = base / "ur10_robot.urdf", 0.09
    model = pin.buildModelFromUrdf(str(urdf))
    data = model.createData()

    def rows(p: Prepared):
        m, n = p.motion, model.nv
        W = np.zeros((len(p), n, 14 * n))
        for k in range(len(p)):
            W[k, :, : 10 * n] = pin.computeJointTorqueRegressor(model, data, m.q[k], m.v[k], m.a[k])
        for j in range(n):
            W[:, j, 10 * n + 4 * j : 10 * n + 4 * j + 4] = np.column_stack(
                [m.a[:, j], m.v[:, j], np.sign(m.v[:, j]), np.ones(len(p))]
            )
        return p.decimator.apply(W), p.decimator.apply(p.effort)

    train = prepare(logs[0])
    x = solve(*rows(train))
    assert relative(*rows(prepare(logs[1], like=train)), x) <= limit


def test_clean_real_logs_give_no_alarm(shared_data):
    ur10 = Log.read(shared_data / "ur10_petrone2025" / "ur10_exciting_trajectory.csv.gz", "joint_torque")
    lwr4 = [Log.read(shared_data / "kuka_lwr4_flobaroid" / f"measurements_{k}.npz", "joint_torque") for k in (1, 2)]
    for log in (ur10, *lwr4, emps(shared_data), tx40(shared_data)):
        quality = diagnose(log)
        assert quality.ok, quality.summary()


def test_lwr4_stamps_are_noise(shared_data):
    log = Log.read(shared_data / "kuka_lwr4_flobaroid" / "measurements_1.npz", "joint_torque")
    assert diagnose(log).of("irregular_clock")
    assert "the stamps are replaced" in prepare(log).explanation


def test_tiago_faults_find_themselves(shared_data):
    log = tiago(shared_data)
    quality = diagnose(log)
    assert {f.channel for f in quality.of("dead")} == {f"effort:arm_{k}_joint" for k in (5, 6, 7)}
    delays = {f.channel: f.value for f in quality.of("delayed")}
    assert len(delays) == 8
    assert all(0.15 < value < 0.20 for value in delays.values())
    with pytest.warns(SignalWarning, match="effort:arm_5_joint"):
        assert prepare(log).quality.of("dead")
