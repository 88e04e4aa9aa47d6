"""Friction laws as part of the ordinary fit: per joint, chosen by held-out blocks, also for redundant motors."""

from __future__ import annotations

import numpy as np
import pytest
from identify_cases import smooth
from simulate_cases import excitation, geared_arm
from small_robots import platform

import dynident as di
from dynident.errors import DescriptionError, IdentificationError
from dynident.friction import Asymmetric, Coulomb, Friction, FrictionLaw, Ripple, Stribeck, Tanh, Viscous, law_of
from dynident.friction.text import law_text
from dynident.identify import Recording, fit_friction
from dynident.identify.friction.choice import compare_models
from dynident.mechanics import Motion, actuator_torques, close_motion
from dynident.trajectory import random_motion
from dynident.validate import judge
from dynident.validate.verdict import _deviation

CURVE = (Stribeck() + Viscous()).using(fc=1.0, fs=1.6, vs=0.15, fv=0.3)
ARM = [(0.3, 0, 0, 0), (0.25, 0, 0, 0)]


def arm(joints: int = 2) -> di.Mechanism:
    return di.Mechanism.from_dh(ARM[:joints], gravity=(0, -9.81, 0)).with_payload(1.5, (0.1, 0.0, 0.0), 0.02 * np.eye(3))


def log_of(robot: di.Mechanism, samples: int, seed: int, noise: float, scale: float = 1.0, **fields) -> di.Log:
    """Return a log with exact motion and noisy efforts of a robot."""
    slow = smooth(robot.dof, samples, seed, 100.0)
    motion = Motion(slow.t, scale * slow.q, scale * slow.v, scale * slow.a)
    effort = di.inverse_dynamics(robot, motion) + noise * np.random.default_rng(seed).normal(size=motion.q.shape)
    exact = {"position": motion.q, "velocity": motion.v, "acceleration": motion.a}
    return di.Log(t=motion.t, joints=robot.coordinate_names, effort=effort, effort_kind="joint_torque", **exact, **fields)


# ---- texts and numbers ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "law",
    [
        Coulomb(),
        Stribeck() + Viscous(),
        Stribeck(None),
        Asymmetric(Tanh() + Viscous()),
        Ripple((1.0, 2.5), Coulomb()),
        di.friction.TemperatureDependent(Stribeck(1.0) + Viscous(), 31.5),
        di.friction.Polynomial(2) + di.friction.LoadDependent(powers=(1.0,)),
    ],
)
def test_the_text_of_a_law_is_read_back(law: FrictionLaw) -> None:
    assert law_of(law_text(law)) == law


def test_what_is_no_law_is_told(subtests: pytest.Subtests) -> None:
    for text in ["glue", "stribeck *  viscous", "stribeck(", "tanh(open('x'))", "__import__('os')", "coulomb()()", 3]:
        with subtests.test(str(text)), pytest.raises(DescriptionError):
            law_of(text)


def test_terms_of_single_joints() -> None:
    robot = arm().with_terms(["ia", "fv"]).with_terms({"joint_2": ["fc", "k"]})
    own = [name for name in robot.parameters.names if name.endswith(("joint_1", "joint_2"))]
    assert own == ["ia_joint_1", "fv_joint_1", "fc_joint_2", "k_joint_2"]
    fit = di.WLS().fit(di.Regression.from_log(robot, log_of(robot, 500, 1, 0.01))).result_
    assert di.Fit.from_dict(fit.to_dict(), arm()).mechanism.parameters.names == robot.parameters.names
    with pytest.raises(DescriptionError, match="elbow"):
        arm().with_terms({"elbow": ["fv"]})
    with pytest.raises(DescriptionError, match="unknown joint term"):
        arm().with_terms({"joint_1": ["glue"]})


def test_columns_of_a_law_are_its_derivatives_and_add_up_to_its_torque() -> None:
    """Central differences of the torque by every parameter of the law, shape parameters included."""
    robot, motion = arm().with_friction({"joint_2": CURVE}), smooth(2, 40, seed=2)
    Y = di.regressor(robot, motion)
    tau = di.inverse_dynamics(robot, motion)
    np.testing.assert_allclose(Y @ robot.parameters.values, tau, atol=1e-12)
    bare = di.inverse_dynamics(arm().with_terms({"joint_2": ["ia", "off"]}), motion)
    np.testing.assert_allclose(tau - bare, np.column_stack([np.zeros(40), CURVE(motion.v[:, 1])]), atol=1e-12)
    for name, value in CURVE.parameters.items():
        sides = []
        for h in (1e-6, -1e-6):
            numbers = {**CURVE.parameters, name: value + h}
            moved = Friction(CURVE.law, np.array(list(numbers.values())))
            sides.append(di.inverse_dynamics(robot.with_friction({"joint_2": moved}), motion)[:, 1])
        column = Y[:, 1, robot.parameters.index(f"{name}_joint_2")]
        np.testing.assert_allclose(column, (sides[0] - sides[1]) / 2e-6, atol=1e-7)


# ---- one fit ----------------------------------------------------------------------------------------------------------


def test_deviations_of_linear_and_shape_parameters_are_true() -> None:
    """Twenty noisy runs of one joint: rms of z about one, and two-sigma bands that cover, on a motion never seen."""
    robot = arm(1).with_friction({"joint_1": CURVE})
    motion, fresh = smooth(1, 600, 5, 100.0), smooth(1, 200, 6, 100.0)
    clean, rng = di.inverse_dynamics(robot, motion), np.random.default_rng(0)
    wanted = di.inverse_dynamics(robot, fresh)
    z, inside = [], []
    for _ in range(20):
        fit = fit_friction(arm(1), Recording(motion, clean + 0.05 * rng.normal(size=clean.shape)), CURVE.law, starts=2)
        truth = fit.base.values(robot.parameters.replace({}).values)
        z.append((fit.values - truth) / fit.std)
        prediction = fit.predict(fresh)
        measured = wanted + 0.05 * rng.normal(size=wanted.shape)
        inside.append(np.mean(np.abs(measured - prediction.effort) < 2.0 * prediction.std))
    rms = np.sqrt(np.mean(np.array(z) ** 2, axis=0))
    assert np.all((rms > 0.55) & (rms < 1.5)), rms  # chi of 20 runs: 0.55 to 1.5 is four sigma
    assert 0.93 < np.mean(inside) < 0.975


def test_known_shapes_stay_and_shapes_that_nothing_shows_are_held() -> None:
    robot = arm(1).with_friction({"joint_1": CURVE})
    motion = smooth(1, 800, 5, 100.0)
    effort = di.inverse_dynamics(robot, motion) + 0.02 * np.random.default_rng(1).normal(size=(800, 1))
    known = fit_friction(arm(1), Recording(motion, effort), CURVE)
    assert known.friction["joint_1"].parameters["stribeck.vs"] == 0.15
    assert "stribeck.vs_joint_1" not in known.base.leaders
    fast = np.abs(motion.v[:, 0]) > 1.0  # a transition below this speed leaves no trace
    plain = di.inverse_dynamics(arm(1).with_friction({"joint_1": (Coulomb() + Viscous()).using(fc=1.0, fv=0.3)}), motion)
    part = Motion(motion.t[fast], motion.q[fast], motion.v[fast], motion.a[fast])
    noise = 0.02 * np.random.default_rng(2).normal(size=(fast.sum(), 1))
    lost = fit_friction(arm(1), Recording(part, plain[fast] + noise), Tanh() + Viscous())
    assert lost.friction["joint_1"].known == ("tanh.beta",)
    assert any(note.kind == "shape_undetermined" for note in lost.notes)
    assert np.isfinite(lost.predict(motion).std).all()


def test_laws_of_redundant_motors_are_found_whatever_their_preload() -> None:
    """Four motors on three freedoms: a preload lies in the null space of A^T, and so it is not in the projected rows."""
    robot = platform()
    laws = {a.name: CURVE.law for a in robot.actuators}
    joints = [next(iter(a.coupling)) for a in robot.actuators]
    truth = {
        joint: (Stribeck() + Viscous()).using(fc=0.8 + 0.1 * i, fs=1.3, vs=0.1 + 0.02 * i, fv=0.05)
        for i, joint in enumerate(joints)
    }
    bare = robot.with_friction(laws).without_friction()
    home = [robot.home.get(name, 0.0) for name in robot.coordinate_names]
    motion = random_motion(home, [0.06, 0.05, 0.4], seed=1, duration=1.0).sample(200.0)
    speed = close_motion(bare, motion).v @ bare.actuator_matrix[0].T
    rubbed = np.column_stack([truth[joint](v) for joint, v in zip(joints, speed.T, strict=True)])
    effort = actuator_torques(bare, motion.q, di.inverse_dynamics(bare, motion), preload=[5.0, -3.0, 2.0, 4.0]) + rubbed
    fit = fit_friction(robot, Recording(motion, effort), laws)
    for joint in joints:
        np.testing.assert_allclose(fit.friction[joint].values, truth[joint].values, rtol=1e-4)
    at = fit.base.leaders.index("m_platform")
    names = fit.mechanism.parameters.names
    known = dict(zip(bare.parameters.names, bare.parameters.values, strict=True))
    wanted = fit.base.values([known.get(name, fit.standard[name]) for name in names])
    assert fit.values[at] == pytest.approx(wanted[at], rel=1e-4)


# ---- choice -----------------------------------------------------------------------------------------------------------


def test_every_joint_gets_the_simplest_law_that_is_not_worse() -> None:
    simple = (Coulomb() + Viscous()).using(fc=0.7, fv=0.2)
    truth = arm().with_friction({"joint_1": CURVE, "joint_2": simple})
    log = log_of(truth, 2500, 3, 0.03)
    laws = ["coulomb + viscous", "stribeck + viscous", "polynomial(5)"]
    fit = di.fit_friction(arm(), log, laws, options={"decimation": 1})
    assert law_text(fit.friction["joint_1"].law) == "stribeck + viscous"
    assert law_text(fit.friction["joint_2"].law) == "coulomb + viscous"
    at = fit.base.leaders.index("stribeck.vs_joint_1")
    assert abs(fit.values[at] - 0.15) < 4.0 * fit.std[at]
    assert any("<- chosen" in note.sentence for note in fit.notes)
    faster = log_of(truth, 600, 4, 0.03, scale=1.6)
    known = di.fit_friction(arm(), log, {"joint_1": CURVE.law, "joint_2": simple.law}, options={"decimation": 1})
    assert fit.score(faster).metrics.relative < 1.1 * known.score(faster).metrics.relative


def test_relative_errors_of_all_laws_are_those_of_the_same_effort() -> None:
    truth = arm().with_friction({"joint_1": CURVE, "joint_2": CURVE})
    log, other = log_of(truth, 2500, 3, 0.03), log_of(truth, 600, 4, 0.03, scale=1.6)
    laws = (CURVE.law, Coulomb() + Viscous())
    found = [di.fit_friction(arm(), log, law, options={"decimation": 1}).score(other) for law in laws]
    sizes = [score.metrics.rmse / score.metrics.relative_per_joint for score in found]
    np.testing.assert_allclose(sizes[0], sizes[1], rtol=1e-9)
    np.testing.assert_allclose(sizes[0], np.sqrt(np.mean(found[0].measured ** 2, axis=0)), rtol=1e-9)


def test_a_model_that_fails_at_higher_speeds_is_not_chosen() -> None:
    """Inside the blocks the rich model is a little better; beyond their speeds it is far worse."""
    rng = np.random.default_rng(0)
    t = np.arange(1500) / 100.0
    v = np.sin(2.0 * t) * np.where((t > 6.0) & (t < 8.0), 3.0, 1.0)
    effort = 1.0 * v + 0.3 * np.sin(2.0 * v) + 0.02 * rng.normal(size=v.size)

    def power(highest):
        def fit(rows):
            X = np.stack([v**k for k in range(1, highest + 1)], axis=1)
            x = np.linalg.lstsq(X[rows], effort[rows], rcond=None)[0]
            return effort - X @ x, highest

        return fit

    models = {"line": power(1), "rich": power(7)}
    slow = np.abs(v) <= 1.0  # without the fast stretch the rich model wins

    def only(fit):
        return lambda rows: (np.where(slow, fit(rows & slow)[0], np.nan), fit(rows & slow)[1])

    assert compare_models({name: only(fit) for name, fit in models.items()}, 1500, 5).best == "rich"
    assert compare_models(models, 1500, 5, speed=np.abs(v)).best == "line"


def test_bad_laws_of_a_robot_are_told() -> None:
    log = log_of(arm(), 400, 1, 0.01)
    with pytest.raises(IdentificationError, match="elbow; the moving joints and motors"):
        di.fit_friction(arm(), log, {"elbow": "coulomb"})
    with pytest.raises(DescriptionError, match="is not a friction law"):
        di.fit_friction(arm(), log, "glue")
    with pytest.raises(IdentificationError, match="the list of laws is empty"):
        di.fit_friction(arm(), log, [])
    with pytest.raises(di.DynidentError, match="temperature, which was not recorded"):
        di.fit_friction(arm(), log, "warm(coulomb + viscous)")


def test_a_law_that_feeds_energy_is_in_the_verdict() -> None:
    feeding = (Tanh() + Viscous()).using(fc=-0.8, fv=1.0, beta=20.0)  # pushes below 0.8 rad/s
    for law, ok in ((feeding, False), (CURVE, True)):
        log = log_of(arm().with_friction({"joint_1": law, "joint_2": CURVE}), 2500, 3, 0.03)
        fit = di.fit_friction(arm(), log, {"joint_1": law.law, "joint_2": CURVE.law}, options={"decimation": 1})
        check = next(check for check in judge(fit).checks if check.name == "passivity")
        assert check.ok == ok
        assert ("the law of joint_1 pushes with" in check.sentence) == (not ok)
        assert "joint_2" not in check.sentence
    linear = di.fit_friction(arm(), log, "coulomb + viscous")
    at = [linear.base.leaders.index(name) for name in ("coulomb.fc_joint_1", "viscous.fv_joint_1")]
    slope = np.array([1.0, 0.02])  # of fc sign(v) + fv v at 0.02 rad/s: 1 and v
    expected = np.sqrt(slope @ linear.covariance[np.ix_(at, at)] @ slope)
    assert 0.0 < expected < 0.1
    assert _deviation(linear, "joint_1", linear.friction["joint_1"], 0.02, {}) == pytest.approx(expected, rel=1e-9)


def test_a_law_that_feeds_energy_is_not_chosen_however_well_it_fits():
    """Friction 4 - 3 |v| predicts best by Coulomb and viscous friction, which would push from 1.3 m/s on."""
    robot = di.Mechanism.from_dh([{"a": 0, "alpha": 0, "d": 0, "theta": 0, "kind": "prismatic"}], gravity=(0, 0, 0))
    t = np.arange(4000) / 200
    v = np.cos(2 * t) * np.cos(0.3 * t)
    q = np.concatenate([[0.0], np.cumsum(0.5 * (v[1:] + v[:-1]) / 200)])
    a = np.gradient(v, t)
    effort = 3 * a + (4 - 3 * np.abs(v)) * np.sign(v) + 0.02 * np.random.default_rng(0).normal(size=t.size)
    log = di.Log(
        t=t,
        joints=robot.coordinate_names,
        position=q[:, None],
        effort=effort[:, None],
        effort_kind="joint_torque",
        name="weak",
    )
    fit = di.fit_friction(robot, log, ["coulomb + viscous", "coulomb"], options={"cutoff": 20.0})
    (law,) = fit.friction.values()
    assert law.law.parameters == di.friction.law_of("coulomb").parameters
    assert any("adds energy" in note.sentence for note in fit.notes)
    free = di.fit_friction(
        robot, log, "coulomb + viscous", options={"cutoff": 20.0}
    )  # asked for by name: it is given, and judged
    assert not di.friction.dissipation(next(iter(free.friction.values())), 2.0).dissipative


def test_a_belief_about_laws_is_from_before_the_data() -> None:
    """Coulomb and viscous laws under MAP say of little data what the linear terms fc and fv say."""
    machine = geared_arm()
    log = machine.simulate(excitation(3, 10.0), seed=1).log.rows(0, 1000)
    told = machine.model.with_terms(("ia", "fv", "fc"))  # nothing about friction, as in the laws before the data
    told = told.with_parameters(told.parameters.replace({f"{f}_joint_{i}": 0.0 for f in ("fv", "fc") for i in (1, 2, 3)}))
    linear = di.MAP().fit(di.Regression.from_log(told, log)).result_
    laws = di.fit_friction(machine.model.with_terms(("ia",)), log, "coulomb + viscous", estimator=di.MAP())
    for i in (1, 2, 3):
        for term, law in ((f"fc_joint_{i}", f"coulomb.fc_joint_{i}"), (f"fv_joint_{i}", f"viscous.fv_joint_{i}")):
            a, b = linear.base.leaders.index(term), laws.base.leaders.index(law)
            assert laws.std[b] == pytest.approx(linear.std[a], rel=0.2)
            assert abs(laws.values[b] - linear.values[a]) < 0.5 * linear.std[a]
