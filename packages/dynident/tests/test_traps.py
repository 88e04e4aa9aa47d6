"""Traps that other toolkits fell into, one test each."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from identify_cases import DOWN_Y, HALF, PLANAR, RRR, UR10, arm, dense, evidence, simulated_log, smooth, svd_rank

import dynident as di
from dynident.errors import DynidentError, IdentificationError, LogError
from dynident.friction import TERMS
from dynident.identify import evaluate
from dynident.mechanics import inverse_dynamics, mass_matrix
from dynident.mechanism import check_consistency, from_com, write_urdf
from dynident.mechanism.parameters import pseudo_inertia
from dynident.mechanism.urdf import read_urdf
from dynident.validate import cross_validate, judge

SOURCE = Path(di.__file__).parent

URDF = """<robot name="two">
  <link name="base"/>
  <link name="upper"><inertial><origin xyz="0.1 0 0.02"/><mass value="3.3"/>
    <inertia ixx="0.02" ixy="0.001" ixz="0" iyy="0.03" iyz="0" izz="0.025"/></inertial></link>
  <link name="lower"><inertial><origin xyz="0 0.05 0"/><mass value="1.7"/>
    <inertia ixx="0.01" ixy="0" ixz="0" iyy="0.01" iyz="0" izz="0.012"/></inertial></link>
  <link name="tool"><inertial><mass value="0.4"/>
    <inertia ixx="0.001" ixy="0" ixz="0" iyy="0.001" iyz="0" izz="0.001"/></inertial></link>
  <joint name="shoulder" type="continuous"><parent link="base"/><child link="upper"/><axis xyz="0 1 0"/></joint>
  <joint name="elbow" type="revolute"><parent link="upper"/><child link="lower"/><origin xyz="0.5 0 0"/>
    <axis xyz="0 1 0"/><limit lower="-3" upper="3" effort="1" velocity="1"/></joint>
  <joint name="mount" type="fixed"><parent link="lower"/><child link="tool"/><origin xyz="0.2 0 0"/></joint>
</robot>
"""


@pytest.fixture
def urdf(tmp_path) -> Path:
    path = tmp_path / "two.urdf"
    path.write_text(URDF)
    return path


def test_trap_01_pseudo_inertia_uses_sigma():
    phi = from_com(1.0, np.zeros(3), np.diag([1.0, 1.0, 3.0]))  # positive definite, but no body: 3 > 1 + 1
    assert not check_consistency(phi).ok
    np.testing.assert_allclose(np.diag(pseudo_inertia(phi))[:3], [1.5, 1.5, -0.5])
    assert check_consistency(from_com(1.0, np.zeros(3), np.diag([1.0, 1.0, 1.9]))).ok


def test_trap_02_every_link_has_its_own_inertia(urdf):
    robot = read_urdf(urdf)
    assert robot.parameters["m_upper"] == 3.3
    assert robot.parameters["m_lower"] == 1.7 + 0.4
    assert robot.parameters["mx_upper"] == pytest.approx(3.3 * 0.1)
    gravity = inverse_dynamics(robot, di.Motion([0.0], [[0.0, 0.0]], [[0.0, 0.0]], [[0.0, 0.0]]))[0]
    elbow = -9.81 * (1.7 * 0.0 + 0.4 * 0.2)  # positive turns about y lower the arm
    assert gravity[1] == pytest.approx(elbow, abs=1e-12)
    assert gravity[0] == pytest.approx(-9.81 * (3.3 * 0.1 + 1.7 * 0.5 + 0.4 * 0.7), abs=1e-12)


@pytest.mark.parametrize("terms", [("off",), ("fc", "ia"), ("off", "fv", "ia", "fc"), ("k", "fcp", "fcn"), ()])
def test_trap_03_columns_are_laid_out_from_flags(terms):
    robot = arm(RRR, terms)
    motion = smooth(3, 20)
    Y = di.regressor(robot, motion)
    assert Y.shape[2] == len(robot.parameters) == 30 + 3 * len(terms)
    for name in robot.parameters.names[30:]:
        symbol, joint = name.split("_", maxsplit=1)
        j = robot.coordinate_names.index(joint)
        column = TERMS[symbol].column(motion.q[:, j], motion.v[:, j], motion.a[:, j])
        np.testing.assert_array_equal(Y[:, j, robot.parameters.index(name)], column)


def test_trap_04_cut_off_is_checked_and_reaches_the_filter():
    log = simulated_log(arm(RRR), noise=0.1)
    noisy = replace(log, position=log.position + 1e-3 * np.random.default_rng(0).normal(size=log.position.shape))
    for cutoff in (100.0, 150.0, 0.0, -1.0, np.nan):
        with pytest.raises(LogError, match=r"Nyquist|cut"):
            di.prepare(noisy, cutoff=cutoff)
    rough = {c: np.std(np.diff(di.prepare(noisy, cutoff=c).motion.a, axis=0)) for c in (5.0, 20.0, 60.0)}
    assert rough[5.0] < 0.2 * rough[20.0] < 0.04 * rough[60.0]
    assert di.prepare(noisy, cutoff=20.0).cutoff.frequency == 20.0


def test_trap_05_every_coordinate_is_differentiated():
    robot = arm(RRR)
    log = simulated_log(robot)
    log = replace(log, position=log.position + [0.0, 0.0, 1.0] * log.t[:, None] * 0.5)  # joint 3 turns on and on
    motion = di.prepare(log).motion
    truth = smooth(3, len(log))
    inside = slice(int(np.searchsorted(truth.t, motion.t[0])), int(np.searchsorted(truth.t, motion.t[-1])) + 1)
    np.testing.assert_allclose(motion.v, truth.v[inside] + [0.0, 0.0, 0.5], atol=2e-2)
    np.testing.assert_allclose(motion.a, truth.a[inside], atol=0.2)


@pytest.mark.parametrize("size", [0.1, 1.0, 10.0])
def test_trap_06_rank_does_not_depend_on_the_size_of_the_robot(size):
    robot = arm([(size * a, alpha, size * d, theta) for a, alpha, d, theta in UR10])
    assert di.base_parameters(robot).rank == 58 == svd_rank(robot)


def test_trap_07_weights_scale_rows():
    regression, _ = evidence(arm(RRR), noise=[1.0, 0.1, 0.01])
    wls = di.WLS(convergence=1e-12, iterations=100).fit(regression)
    motion = smooth(3, 400)
    W = dense(regression.mechanism, motion, regression.base)
    rng = np.random.default_rng(1000)
    tau = inverse_dynamics(regression.mechanism, motion) + rng.normal(size=(400, 3)) * [1.0, 0.1, 0.01]
    w = 1.0 / wls.sigma_**2  # normal equations with the weights themselves: rows are scaled by their square root
    gram, right = np.einsum("tnb,n,tnc->bc", W, w, W, optimize=True), np.einsum("tnb,n,tn->b", W, w, tau)
    np.testing.assert_allclose(wls.coef_, np.linalg.solve(gram, right), rtol=1e-6, atol=1e-7)


def test_trap_12_standard_parameters_are_no_measure_of_quality():
    regression, beta = evidence(arm(RRR), samples=800, noise=0.01)
    near, short = (di.WLS(recovery=r).fit(regression).result_ for r in ("prior", "minimum_norm"))
    assert np.linalg.norm(near.standard.values - short.standard.values) > 1.0
    np.testing.assert_allclose(near.exported().values, short.exported().values, atol=1e-9)  # same base parameters,
    motion = smooth(3, 50, seed=3)
    np.testing.assert_allclose(near.exported().predict(motion).effort, short.exported().predict(motion).effort, atol=1e-8)
    text = str(judge(near).to_dict())
    assert "prior" not in text  # the verdict never measures the distance to the description
    assert np.all(np.abs(near.values - beta) < 6 * near.std)


def test_trap_13_friction_at_constant_speed_and_at_rest():
    robot = arm([(0.0, 0.0, 0.0, 0.0)], ("fv", "fc"), (0, 0, 0))
    t = np.arange(500) / 100.0
    motion = di.Motion(t, 0.5 * t[:, None], np.full((500, 1), 0.5), np.zeros((500, 1)))
    tau = inverse_dynamics(robot, motion)
    fit = di.OLS().fit(di.Regression.from_motion(robot, motion, tau)).result_
    friction = [row for row in fit.observability() if row.name.startswith(("fv", "fc"))]
    assert {row.verdict for row in friction} == {"not excited"}  # only the sum 0.5 fv + fc is known
    np.testing.assert_allclose(fit.predict(motion).effort, tau, atol=1e-9)
    still = 0.5 * (1.0 - np.cos(2.0 * np.maximum(t - 2.5, 0.0))) ** 2
    noise = 1e-5 * np.random.default_rng(0).normal(size=500)
    log = di.Log(t=t, joints=["joint_1"], position=still + noise, effort=still, effort_kind="joint_torque")
    prepared = di.prepare(log)
    rest = prepared.motion.t < 2.2
    assert np.mean(prepared.motion.v[rest] == 0.0) > 0.9  # a sign of noise is no Coulomb friction
    assert np.all(prepared.motion.v[prepared.motion.t > 3.0] != 0.0)


def test_trap_14_reflected_inertia_is_counted_once():
    robot = arm(RRR, ("ia",))
    geared = replace(robot, actuators=tuple(di.Actuator(f"m{i}", {f"joint_{i}": 1.0}, ratio=100.0) for i in (1, 2, 3)))
    assert [n for n in geared.parameters.names if n.startswith("ia")] == ["ia_joint_1", "ia_joint_2", "ia_joint_3"]
    motion = smooth(3, 5)
    np.testing.assert_array_equal(inverse_dynamics(robot, motion), inverse_dynamics(geared, motion))
    none = robot.parameters.replace({f"ia_joint_{i}": 0.0 for i in (1, 2, 3)})
    extra = mass_matrix(robot, motion.q) - mass_matrix(robot, motion.q, none)
    rotors = [robot.parameters[f"ia_joint_{i}"] for i in (1, 2, 3)]
    np.testing.assert_allclose(extra, np.broadcast_to(np.diag(rotors), extra.shape), atol=1e-12)


def test_trap_17_payload_is_added_and_removable(urdf):
    robot = read_urdf(urdf)
    loaded = robot.with_payload(2.0, com=(0.1, 0.0, 0.0))
    assert loaded.parameters["m_lower"] == pytest.approx(1.7 + 0.4 + 2.0)  # on the last moving link, beside the tool
    assert loaded.parameters["m_upper"] == 3.3
    back = loaded.without("payload")
    np.testing.assert_array_equal(back.parameters.values, robot.parameters.values)
    assert robot.parameters["m_lower"] == 1.7 + 0.4


def test_trap_18_export_round_trips(urdf, tmp_path):
    robot = read_urdf(urdf)
    truth = robot.with_parameters(robot.parameters.replace({"m_lower": 2.5, "Izz_upper": 0.2, "fv_elbow": 0.3}))
    motion = smooth(2, 600)
    fit = di.OLS().fit(di.Regression.from_motion(robot, motion, inverse_dynamics(truth, motion))).result_
    again = read_urdf(write_urdf(urdf, robot, fit.standard, tmp_path / "out.urdf"))
    # A URDF holds inertias, damping and friction; rotor inertia and offset it cannot say.
    silent = {n: 0.0 for n in robot.parameters.names if n.startswith(("ia_", "off_"))}
    expected = inverse_dynamics(robot, motion, fit.standard.replace(silent))
    np.testing.assert_allclose(inverse_dynamics(again, motion, again.parameters.replace(silent)), expected, atol=1e-9)


def test_trap_19_effort_kind_is_required(tmp_path):
    log = simulated_log(arm(RRR))
    with pytest.raises(TypeError, match="effort_kind"):
        di.Log(t=log.t, joints=log.joints, position=log.position, effort=log.effort)
    rows = np.column_stack([log.t[:20], log.position[:20], log.effort[:20]])
    names = ["time", *(f"position_{j}" for j in log.joints), *(f"effort_{j}" for j in log.joints)]
    np.savetxt(tmp_path / "plain.csv", rows, delimiter=",", header=",".join(names), comments="")
    with pytest.raises(LogError, match="effort kind"):
        di.Log.read(tmp_path / "plain.csv")
    with pytest.raises(LogError, match="no drive gain"):
        replace(log, effort_kind="motor_current").torque()


def test_trap_20_first_moment_and_inertia_are_about_the_link_frame():
    phi = from_com(2.0, [0.3, 0.0, 0.0], np.zeros((3, 3)))
    np.testing.assert_allclose(phi, [2.0, 0.6, 0, 0, 0, 0, 0, 0.18, 0, 0.18])
    assert "inertia about the link origin" in " ".join((di.Parameters.__doc__ or "").split())
    table = di.base_parameters(arm(PLANAR, (), DOWN_Y))
    assert table.units[table.leaders.index("mx_link_2")] == "kg m"


def test_trap_21_long_chains_stay_cheap():
    """Recursive equations: a chain of 20 axes would have more Lagrange terms than there is memory."""
    robot = arm([(0.1, HALF if i % 2 else -HALF, 0.1, 0.0) for i in range(20)])
    motion = smooth(20, 3)
    tau = inverse_dynamics(robot, motion)
    np.testing.assert_allclose(di.regressor(robot, motion) @ robot.parameters.values, tau, rtol=1e-9, atol=1e-8)


def test_trap_22_optional_packages_stay_optional():
    code = (
        "import sys, dynident as di; di.Mechanism; di.Log; di.Motion; "
        "print([m for m in ('cvxpy', 'matplotlib', 'llvmlite', 'scipy.signal', 'cyclopts', 'pyarrow', 'h5py', 'xacro', "
        "'sympy') if m in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=_environment())
    assert out.stdout.strip() == "[]"


def _environment() -> dict[str, str]:
    import os

    return {**os.environ, "PYTHONPATH": str(SOURCE.parent)}


def test_trap_23_the_public_interface_is_alive_and_tested():
    tests = {word for path in Path(__file__).parent.glob("*.py") for word in re.findall(r"\w+", path.read_text())}
    for module in ("dynident", "dynident.mechanism", "dynident.mechanics", "dynident.signals", "dynident.identify"):
        package = importlib.import_module(module)
        for name in package.__all__:
            assert getattr(package, name) is not None
    for module in ("dynident.identify", "dynident.validate"):
        unused = {name for name in importlib.import_module(module).__all__ if name not in tests}
        assert unused <= {"Check", "Observability"}  # returned by functions that are tested


def test_trap_24_samples_first_everywhere():
    robot = arm(RRR)
    motion = smooth(3, 200)
    tau = inverse_dynamics(robot, motion)
    for wrong in (tau.ravel(), tau.T, tau.T.ravel()):
        with pytest.raises(IdentificationError, match="effort has shape"):
            di.Regression.from_motion(robot, motion, wrong)
    regression = di.Regression.from_motion(robot, motion, tau)
    for i, group in enumerate(regression.groups):  # row group i holds the torques of joint i, all samples
        assert group.name == robot.coordinate_names[i]
        assert group.effort_square == pytest.approx(np.sum(tau[:, i] ** 2), rel=1e-12)


def test_trap_25_variances_belong_to_the_joints_that_were_used():
    robot = arm(UR10)
    motion = smooth(6, 800)
    sigma = np.array([5.0, 4.0, 3.0, 0.3, 0.2, 0.1])
    tau = inverse_dynamics(robot, motion) + np.random.default_rng(0).normal(size=(800, 6)) * sigma
    used = [1, 2, 4]
    skip = tuple(robot.coordinate_names[i] for i in range(6) if i not in used)
    regression = di.Regression.from_motion(robot, motion, tau, skip=skip)
    ols, wls = di.OLS().fit(regression).result_, di.WLS().fit(regression).result_
    assert wls.groups == tuple(robot.coordinate_names[i] for i in used)
    np.testing.assert_allclose(wls.sigma, sigma[used], rtol=0.15)
    truth = regression.base.values(robot.parameters.values)
    known = wls.solved & ols.solved
    error = {name: np.mean(((f.values - truth)[known] / wls.std[known]) ** 2) for name, f in (("o", ols), ("w", wls))}
    assert error["w"] < error["o"]


def test_trap_26_training_data_are_refused():
    robot = arm(RRR)
    log = simulated_log(robot, noise=0.1)
    fit = di.OLS().fit(di.Regression.from_log(robot, log)).result_
    with pytest.raises(IdentificationError, match="does not validate the model"):
        fit.score(log)
    seen = fit.score(log, allow_training=True)
    assert seen.training
    assert not judge(fit, [seen]).validated


def test_trap_27_one_rmse_in_every_report():
    robot = arm(RRR)
    fit = di.OLS().fit(di.Regression.from_log(robot, simulated_log(robot, noise=0.1))).result_
    score = fit.score(simulated_log(robot, seed=2, noise=0.1))
    by_hand = np.sqrt(np.mean((score.measured - score.predicted) ** 2, axis=0))
    np.testing.assert_allclose(score.metrics.rmse, by_hand, rtol=1e-12)
    assert judge(fit, [score]).scores[0]["rmse"] == score.metrics.rmse.tolist()
    motion, base = smooth(3, 300, seed=4), di.base_parameters(robot)
    tau = inverse_dynamics(robot, motion) + np.random.default_rng(0).normal(size=(300, 3))
    block, other = di.Regression.from_motion(robot, motion, tau, base), evidence(robot, base=base, noise=0.5)[0]
    folds = cross_validate([block, other], di.OLS())
    expected = evaluate(tau, di.OLS().fit(other).result_.predict(motion).effort, robot.coordinate_names)
    np.testing.assert_allclose(folds.rmse[0], expected.rmse, rtol=1e-9)
    assert folds.relative[0] == pytest.approx(expected.relative, rel=1e-9)


def test_trap_28_numbers_are_written_exactly(urdf, tmp_path):
    robot = read_urdf(urdf)
    mass = 1.0 / 3.0 + 3.0
    phi = robot.parameters.replace({"m_upper": mass, "fv_elbow": np.pi / 7})
    path = write_urdf(urdf, robot, phi, tmp_path / "out.urdf")
    assert repr(mass) in path.read_text()
    assert read_urdf(path).parameters["m_upper"] == mass
    assert read_urdf(path).parameters["fv_elbow"] == np.pi / 7


def test_trap_29_the_library_is_silent(capfd):
    robot = arm(PLANAR, gravity=DOWN_Y)
    fit = di.WLS(recovery="physical").fit(di.Regression.from_log(robot, simulated_log(robot, noise=0.05))).result_
    fit.score(simulated_log(robot, seed=3, noise=0.05)).summary()
    with pytest.raises(DynidentError):
        di.base_parameters(robot, order=["nothing"])
    captured = capfd.readouterr()
    assert captured.out == captured.err == ""
