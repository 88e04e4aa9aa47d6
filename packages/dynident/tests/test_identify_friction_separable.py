"""Separable least squares: exact gradients, known truths, [Roldan2017, Table 4.1], bad input."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest
from identify_cases import arm as chain
from identify_cases import smooth

import dynident as di
from dynident.errors import ConditionWarning, DynidentWarning, IdentificationError, SignalWarning
from dynident.friction import Coulomb, LoadDependent, Offset, Sigmoid, Stribeck, Tanh, TemperatureDependent, Viscous
from dynident.identify import Axis, Recording, fit_friction
from dynident.identify.friction.problem import Evaluator, Problem, Scale, assemble, search, shape_bounds
from dynident.signals.filters import Decimator

TABLE_4_1 = {"J": 13e-4, "c": 1.7e-3, "Fc": 0.478, "beta": 10.78}


def multiprofile(dt: float = 7e-3, fine: int = 10):
    """Velocity multi-profile of [Roldan2017, fig. 4.4]: growing sines, steps, constant accelerations, exponentials."""
    h, top, low = dt / fine, 3700 * 2 * np.pi / 60, 10 * 2 * np.pi / 60
    t = np.arange(0.0, 60.0, h)
    sines = np.sin(2 * np.pi * 0.1 * t) + np.sin(2 * np.pi * 0.3 * t) + np.sin(2 * np.pi * 0.5 * t)
    first = (low + (top - low) * t / 60.0) * sines / 2.5

    def change(a, b, seconds):
        n = int(seconds / h)
        return a + (b - a) * 0.5 * (1 - np.cos(np.pi * np.arange(n) / n))

    parts = [first, change(first[-1], 0.0, 1.0)]
    levels = np.geomspace(low, top, 8)
    for sign in (1, -1):
        last = 0.0
        for level in [*levels, *levels[::-1][1:], 0.0]:
            parts += [change(last, sign * level, 0.5), np.full(int(1.5 / h), sign * level)]
            last = sign * level
    five = np.arange(int(5 / h)) * h
    for sign in (1, -1):
        parts += [np.linspace(0, sign * top, five.size), np.linspace(sign * top, 0, five.size)]
    for sign in (1, -1):
        parts += [sign * top * (1 - np.exp(-five)) / (1 - np.exp(-5.0)), sign * top * np.exp(-five)]
    smooth = int(0.05 / h)
    v = np.convolve(np.concatenate(parts), np.ones(smooth) / smooth, "same")  # the drive's bandwidth
    a = np.gradient(v, h)
    q = np.concatenate([[0.0], np.cumsum(0.5 * (v[1:] + v[:-1]) * h)])
    return tuple(x[::fine] for x in (np.arange(v.size) * h, q, v, a))


def actuator_torque(v, a):
    p = TABLE_4_1
    return p["J"] * a + p["c"] * v + p["Fc"] * np.tanh(p["beta"] * v)


def test_table_4_1_from_velocities() -> None:
    _, _, v, a = multiprofile()
    noise = 0.01 * np.random.default_rng(0).normal(size=v.size)
    fit = fit_friction(None, Axis(actuator_torque(v, a) + noise, v, {"J": a}), Viscous() + Tanh())
    found = [fit.parameters[n] for n in ("J", "viscous.fv", "tanh.fc", "tanh.beta")]
    std = [fit.std[n] for n in ("J", "viscous.fv", "tanh.fc", "tanh.beta")]
    np.testing.assert_allclose(found, list(TABLE_4_1.values()), rtol=0.02)
    assert np.all(np.abs(np.array(found) - list(TABLE_4_1.values())) < 4.0 * np.array(std))
    assert fit.sigma["axis"] == pytest.approx(0.01, rel=0.03)
    assert "tanh.beta" in fit.summary()


def test_any_shape_parameter_can_be_held() -> None:
    """Two tanh terms, the slope of one known: a robot and a single axis agree, and the known slope has no deviation."""
    motion = smooth(1, 4000, seed=2, rate=200.0)
    robot = di.Mechanism.from_dh([(0.0, 0, 0, 0)], gravity=(0, 0, 0)).with_terms(("ia",))
    v, a = motion.v[:, 0], motion.a[:, 0]
    law = Viscous() + Tanh() + Tanh()
    true = {"viscous.fv": 0.5, "tanh.fc": 2.0, "tanh2.fc": 1.0, "tanh.beta": 20.0, "tanh2.beta": 2.0}
    tau = 0.4 * a + law.using(true)(v) + 0.02 * np.random.default_rng(0).normal(size=v.size)
    given = replace(law.using({**true, "tanh2.beta": 9.0}), known=("tanh.beta",))  # the other one is a number to be found
    alone = fit_friction(None, Axis(tau, v, {"J": a}), given)
    assert alone.parameters["tanh.beta"] == pytest.approx(20.0, rel=1e-12)
    assert alone.std["tanh.beta"] == 0.0
    for name, value in true.items():
        assert abs(alone.parameters[name] - value) <= 4.0 * alone.std[name] + 1e-12
        assert alone.std[name] < 0.2 * value
    fit = fit_friction(robot, Recording(motion, tau[:, None]), given)
    found = fit.model.friction["joint_1"].parameters
    assert found["tanh.beta"] == pytest.approx(20.0, rel=1e-12)
    assert found["tanh2.beta"] == pytest.approx(alone.parameters["tanh2.beta"], rel=1e-2)


def test_slopes_of_equal_terms_do_not_coincide() -> None:
    """A tanh and its derivative by the slope are the limit of two equal terms, in which their heights grow without bound."""
    motion = smooth(1, 4000, seed=2, rate=200.0)
    robot = di.Mechanism.from_dh([(0.0, 0, 0, 0)], gravity=(0, 0, 0)).with_terms(("ia",))
    v, a = motion.v[:, 0], motion.a[:, 0]

    def friction(v):
        return 2.0 * np.tanh(10.0 * v) + 15.0 * v / np.cosh(10.0 * v) ** 2

    tau = 0.4 * a + friction(v) + 1e-4 * np.random.default_rng(0).normal(size=v.size)
    fit = fit_friction(robot, Recording(motion, tau[:, None]), Viscous() + Tanh() + Tanh())
    found = fit.model.friction["joint_1"]
    slopes = sorted(found.parameters[f"{name}.beta"] for name in ("tanh", "tanh2"))
    assert slopes[1] / slopes[0] >= 1.1 * (1.0 - 1e-9)
    assert abs(found.parameters["tanh.fc"]) < 50.0
    grid = np.linspace(-1.0, 1.0, 201)
    assert np.abs(found(grid) - friction(grid)).max() < 0.01 * friction(grid).max()
    assert any(each.kind == "shape_undetermined" for each in fit.notes)


def test_table_4_1_from_noisy_positions_through_the_default_pipeline() -> None:
    t, q, v, a = multiprofile()
    rng = np.random.default_rng(1)
    robot = di.Mechanism.from_dh([(0.0, 0, 0, 0)], gravity=(0, 0, 0))
    log = di.Log(
        t=t,
        joints=list(robot.joint_names),
        position=(q + 1e-5 * rng.normal(size=t.size))[:, None],
        effort=(actuator_torque(v, a) + 0.01 * rng.normal(size=t.size))[:, None],
        effort_kind="joint_torque",
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DynidentWarning)  # 1570 rad is much for a joint
        fit = fit_friction(robot.with_terms(("ia",)), log, Viscous() + Tanh())
    assert fit.base.leaders[1:] == ("viscous.fv_joint_1", "tanh.fc_joint_1", "tanh.beta_joint_1")
    np.testing.assert_allclose(fit.values, list(TABLE_4_1.values()), rtol=0.02)
    assert fit.sources[0]["name"] == "log"


# ---- a small arm ------------------------------------------------------------------------------------------------------


def arm() -> di.Mechanism:
    return di.Mechanism.from_dh([(0.3, 0, 0, 0), (0.25, 0, 0, 0)], gravity=(0, -9.81, 0)).with_terms(("ia", "fv", "fc"))


def arm_data(samples: int = 6000, noise: float = 0.02, seed: int = 0):
    rng = np.random.default_rng(seed)
    t = np.arange(samples) * 2e-3
    q, v, a = (np.zeros((samples, 2)) for _ in range(3))
    for j in range(2):
        for k in range(1, 5):
            w, size, phase = 2 * np.pi * 0.17 * k, rng.normal() / k, rng.uniform(0, 6)
            q[:, j] += size * np.sin(w * t + phase)
            v[:, j] += size * w * np.cos(w * t + phase)
            a[:, j] -= size * w**2 * np.sin(w * t + phase)
    motion = di.Motion(t, q, v, a)
    robot = arm()
    phi = robot.parameters.values.copy()
    names = robot.parameters.names
    given = {"m": 1.5, "mx": 0.3, "Izz": 0.08, "ia": 0.05}
    for i, name in enumerate(names):
        phi[i] = given.get(name.split("_")[0], 0.0)
    effort = di.inverse_dynamics(robot, motion, phi)
    warm = 20.0 + 30.0 * t[:, None] / t[-1] * np.array([1.0, 0.6])
    effort[:, 0] += 0.7 * v[:, 0] + 1.3 * np.tanh(9.0 * v[:, 0])
    effort[:, 1] += 0.4 * v[:, 1] + np.sign(v[:, 1]) * (0.5 + 0.4 * np.exp(-((v[:, 1] / 0.2) ** 2)))
    return robot, motion, effort + noise * rng.normal(size=effort.shape), warm, phi


LAWS = {"joint_1": Viscous() + Tanh(), "joint_2": Viscous() + Stribeck()}
SHAPES = (9.0, 0.2)
NUMBERS = {
    "joint_1": LAWS["joint_1"].using(fv=0.7, fc=1.3, beta=9.0),
    "joint_2": LAWS["joint_2"].using(fv=0.4, fc=0.5, fs=0.9, vs=0.2),
}


def truth_of(fitted: di.Mechanism, robot: di.Mechanism, phi: np.ndarray) -> di.mechanism.Parameters:
    """Return the true numbers of the parameters that both robots have."""
    names = fitted.parameters.names
    return fitted.parameters.replace({n: phi[robot.parameters.index(n)] for n in robot.parameters.names if n in names})


def test_bodies_and_shapes_of_all_joints_together() -> None:
    robot, motion, effort, _, phi = arm_data()
    fit = fit_friction(robot, Recording(motion, effort), LAWS)
    true = fit.mechanism.with_parameters(truth_of(fit.mechanism, robot, phi)).with_friction(NUMBERS).parameters
    assert np.all(np.abs(fit.values - fit.base.values(true.values)) < 4.5 * fit.std)
    shapes = [fit.base.leaders.index(name) for name in ("tanh.beta_joint_1", "stribeck.vs_joint_2")]
    assert np.all(fit.std[shapes] < 0.05 * np.array(SHAPES))
    assert fit.friction["joint_1"].parameters["tanh.beta"] == pytest.approx(fit.standard["tanh.beta_joint_1"])
    again = di.Motion(motion.t, motion.q, 0.5 * motion.v, motion.a)
    expected = di.inverse_dynamics(robot, again, phi)[:, 0] + 0.35 * motion.v[:, 0] + 1.3 * np.tanh(4.5 * motion.v[:, 0])
    assert np.linalg.norm(fit.predict(again).effort[:, 0] - expected) < 0.01 * np.linalg.norm(expected)
    assert np.std(effort - fit.predict(motion).effort) == pytest.approx(0.02, rel=0.03)
    # What is stored, and what the identified robot does, is the same model.
    loaded = di.Fit.from_dict(fit.to_dict(), robot)
    np.testing.assert_allclose(loaded.predict(again).effort, fit.predict(again).effort, rtol=1e-12)
    np.testing.assert_allclose(di.inverse_dynamics(fit.model, again), fit.predict(again).effort, atol=1e-9)


def test_gradient_is_exact_with_filter_masks_and_weights() -> None:
    robot, motion, effort, warm, _ = arm_data(1500)
    laws = (TemperatureDependent(Viscous() + Tanh(), 20.0), Viscous() + Stribeck(None) + LoadDependent())
    robot = robot.with_friction(dict(zip(robot.joint_names, laws, strict=True)))
    cut = effort.copy()
    cut[200:230, 0] = cut[:, 0].max() + 1.0
    for decimator in (None, Decimator(3, 500.0)):
        tau, filter_ = (cut, Decimator(1, 1.0)) if decimator is None else (effort, decimator)
        recording = Recording(motion, tau, filter_, (), None, warm, effort)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SignalWarning)
            problem, _ = assemble(robot, [recording], "gls").problem()
        scale = Scale(shape_bounds(laws, list(motion.v.T), ("a", "b")))
        evaluator = Evaluator(problem, scale, np.array([0.3, 0.05]))
        u = scale.u(np.array([5.0, -0.01, 0.3, 1.5]))
        here = evaluator.projection(u)
        gradient = (here.jacobian * scale.slope(u)).T @ here.residual
        for i, d in enumerate(np.eye(u.size)):
            h = 1e-5
            plus, minus = (evaluator.projection(u + s * h * d).residual for s in (1, -1))
            assert gradient[i] == pytest.approx((plus @ plus - minus @ minus) / (4 * h), rel=2e-5, abs=1e-7)


def test_full_jacobian_of_golub_and_pereyra() -> None:
    """Against the projector written out with all rows, whose residual does not turn with eta."""
    rng = np.random.default_rng(3)
    v = rng.uniform(-1, 1, 400)
    fixed, law, tau = rng.normal(size=(400, 2)), Viscous() + Stribeck(None), np.sin(3 * v) + rng.normal(size=400)
    eta = np.array([0.3, 1.4])

    def residual(e):
        A = np.column_stack([fixed, law.columns(v, e)])
        return tau - A @ np.linalg.lstsq(A, tau, rcond=None)[0]

    J = np.stack([(residual(eta + 1e-6 * d) - residual(eta - 1e-6 * d)) / 2e-6 for d in np.eye(2)], axis=1)
    pairs = [(k, s) for k in range(3) for s in range(2)]

    def rows(e, step, groups):
        bends = law.columns(v, e, "shape")
        return [np.vstack([fixed.T, law.columns(v, e).T, *(bends[:, k, s] for k, s in pairs), tau])]

    problem = Problem(("x",), [np.arange(5)], [[(2 + k, s) for k, s in pairs]], 5, 2, [rows], [[0, 1]], (400,))
    here = problem.project(eta, problem.reduce(eta), np.ones(1))
    np.testing.assert_allclose(here.jacobian.T @ here.jacobian, J.T @ J, rtol=1e-5)
    np.testing.assert_allclose(here.residual @ here.residual, residual(eta) @ residual(eta), rtol=1e-12)


def test_linear_laws_give_the_core_estimate() -> None:
    robot, motion, effort, _, _ = arm_data(2000)
    fit = fit_friction(robot, Recording(motion, effort), Coulomb() + Viscous())
    reference = di.WLS().fit(di.Regression.from_motion(robot, motion, effort)).result_
    predicted = reference.predict(motion).effort
    assert np.linalg.norm(fit.predict(motion).effort - predicted) < 1e-9 * np.linalg.norm(predicted)
    assert fit.training_relative == pytest.approx(reference.training_relative, rel=1e-9)


def test_temperature_is_found_and_unnamed_joints_keep_their_terms() -> None:
    robot, motion, effort, warm, _ = arm_data()
    effort = effort + -0.01 * (warm[:, :1] - 20.0) * np.array([1.0, 0.0]) * (0.7 * motion.v + 1.3 * np.tanh(9.0 * motion.v))
    fit = fit_friction(
        robot, Recording(motion, effort, temperature=warm), {"joint_1": TemperatureDependent(Viscous() + Tanh(), 20.0)}
    )
    row = next(row for row in fit.observability() if row.name == "alpha_joint_1")
    assert row.value == pytest.approx(-0.01, abs=4 * row.std)
    assert row.std < 1e-3
    assert "fc_joint_2" in fit.base.leaders
    assert "fc_joint_1" not in fit.mechanism.parameters.names
    cold = fit.predict(motion, np.full(effort.shape, 20.0)).effort
    np.testing.assert_allclose(di.inverse_dynamics(fit.model, motion), cold, atol=1e-9)  # at its reference temperature


def test_thinned_starts_find_what_all_samples_find() -> None:
    robot, motion, effort, _, _ = arm_data(20000)
    fit = fit_friction(robot, Recording(motion, effort), LAWS)
    problem, _ = assemble(robot.with_friction(LAWS), [Recording(motion, effort)], "gls").problem()
    bounds = shape_bounds(list(LAWS.values()), list(motion.v.T), robot.joint_names)
    known = search(problem, bounds, np.array(SHAPES), 1, 60)  # all samples, from the true shapes
    np.testing.assert_allclose([law.values[-1] for law in fit.friction.values()], known.eta, rtol=1e-4)


# ---- bad input --------------------------------------------------------------------------------------------------------


def test_saturated_efforts_are_left_out_and_said() -> None:
    v = np.sin(np.arange(3000) * 0.01)
    tau = 2.0 * v + 1.0 * np.tanh(10 * v) + 0.01 * np.random.default_rng(0).normal(size=v.size)
    with pytest.warns(SignalWarning, match="saturated in"):
        fit = fit_friction(None, Axis(np.clip(tau, -2.5, 2.5), v), Viscous() + Tanh())
    assert fit.parameters["viscous.fv"] == pytest.approx(2.0, rel=0.01)
    assert np.isnan(fit.residuals).sum() > 100
    robot, motion, effort, _, _ = arm_data(3000)
    limit = 0.7 * np.abs(effort[:, 0]).max()
    clipped = np.clip(effort, [-limit, -1e9], [limit, 1e9])
    with pytest.warns(SignalWarning, match="joint_1.*left out"):
        fit_friction(robot, Recording(motion, clipped), LAWS)


def test_one_direction_is_a_partial_result() -> None:
    v = 1.0 + 0.5 * np.sin(np.arange(500) * 0.05)
    fit = fit_friction(None, Axis(2.0 * v + 3.0, v), Viscous() + Coulomb() + Offset())
    assert any("one direction" in note and "in both directions" in note for note in fit.notes)
    assert fit.parameters["viscous.fv"] == pytest.approx(2.0)
    assert fit.parameters["coulomb.fc"] + fit.parameters["offset.off"] == pytest.approx(3.0)
    assert np.isinf([fit.std["coulomb.fc"], fit.std["offset.off"]]).any()


def test_a_shape_that_the_data_do_not_show_is_said() -> None:
    v = np.where(np.arange(800) % 40 < 20, 1.0, -1.0) * np.linspace(0.8, 1.0, 800)
    fit = fit_friction(None, Axis(2.0 * np.sign(v) + 0.5 * v, v), Viscous() + Tanh())
    assert np.isinf(fit.std["tanh.beta"]) or fit.std["tanh.beta"] > fit.parameters["tanh.beta"]


def test_sigmoid_values_are_said_not_to_be_identifiable() -> None:
    v = np.sin(np.arange(600) * 0.05)
    fit = fit_friction(None, Axis(Sigmoid(2).value(v, [1.0, 2.0, -1.0, 5.0, 20.0]), v), Sigmoid(2))
    assert any("(-Bf, -w)" in note for note in fit.notes)


def test_bad_axis_input(subtests: pytest.Subtests) -> None:
    for call, message in [
        (lambda v: fit_friction(None, Axis(v[:3], v[:3]), Viscous() + Tanh()), "cannot determine"),
        (lambda v: fit_friction(None, Axis(v[:-1], v), Viscous()), "one-dimensional"),
        (lambda v: fit_friction(None, Axis(v * np.nan, v), Viscous()), "not finite"),
        (lambda v: fit_friction(None, Axis(v, v, {"J": v[:5]}), Viscous()), "fixed column 'J'"),
        (lambda v: fit_friction(None, Axis(v, 0 * v), Tanh()), "never moves"),
        (lambda v: fit_friction(None, Axis(v, v, {"J": v**2}), Tanh()).predict(v, {}), "columns J are missing"),
    ]:
        with subtests.test(str(message)), pytest.raises(IdentificationError, match=message):
            call(np.sin(np.arange(200) * 0.1))


def test_bad_robot_input() -> None:
    robot, motion, effort, _, _ = arm_data(300)
    with pytest.raises(IdentificationError, match="elbow"):
        fit_friction(robot, Recording(motion, effort), {"elbow": Tanh()})
    with pytest.raises(IdentificationError, match="must be finite"):
        fit_friction(robot, Recording(motion, effort[:10]), Tanh())
    with pytest.raises(di.DynidentError, match="needs its temperature"):
        fit_friction(robot, Recording(motion, effort), TemperatureDependent(Tanh()))
    with pytest.raises(IdentificationError, match="temperature has shape"):
        fit_friction(robot, Recording(motion, effort, temperature=np.zeros(3)), TemperatureDependent(Tanh()))
    with pytest.raises(IdentificationError, match="dead or skipped"):
        fit_friction(robot, Recording(motion, effort, skip=robot.joint_names), Tanh())
    with pytest.raises(IdentificationError, match="too few for a decimation"):
        fit_friction(robot, Recording(motion, effort, Decimator(100, 500.0)), Tanh())
    with pytest.raises(IdentificationError, match="at least one"):
        fit_friction(robot, [], Tanh())
    fit = fit_friction(robot, Recording(motion, effort, skip=("joint_2",)), Coulomb() + Viscous())
    assert list(fit.friction) == ["joint_1"]
    assert fit.groups == ("joint_1",)


def test_temperatures_that_hardly_change_are_told_and_taken_as_no_effect():
    robot = chain([(0.3, 0.0, 0.1, 0.0)], terms=())
    motion = smooth(1, 1500, seed=3)
    rng = np.random.default_rng(3)
    noise = rng.normal(size=(1500, 1))
    for span, found in ((0.2, 0.0), (20.0, -0.014)):
        T = 20.0 + span * np.linspace(0.0, 1.0, 1500)[:, None]
        tau = di.inverse_dynamics(robot, motion) + (1.0 - 0.014 * (T - 20.0)) * (2.0 * np.sign(motion.v) + motion.v) + noise
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            fit = fit_friction(robot, Recording(motion, tau, temperature=T), TemperatureDependent(Coulomb() + Viscous()))
        assert fit.friction["joint_1"].parameters["alpha"] == pytest.approx(found, abs=0.0 if span < 1.0 else 2e-3)
        said = [str(w.message) for w in told if issubclass(w.category, ConditionWarning)]
        assert bool(said) == (span < 1.0) and all(
            "range of 0.2 K" in text and text in [note.sentence for note in fit.notes] for text in said
        )


def test_a_short_problem_is_searched_with_all_its_rows():
    problem = Problem(("x",), [np.arange(1)], [[]], 1, 0, [], [], (400, 399))
    assert problem.thinned(400) is problem
    assert (problem.thinned(399).counts, problem.thinned(199).counts) == ((400, 399), (200, 199))
    assert (problem.thinned(199).step, problem.thinned(100).counts) == (2, (100, 99))
