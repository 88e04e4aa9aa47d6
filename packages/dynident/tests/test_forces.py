"""Force elements: springs, counterbalances, cables and known torques as columns like any other."""

from __future__ import annotations

import copy
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from identify_cases import simulated_log, smooth
from loop_cases import four_bar, slider_crank, states
from optional import optional
from small_robots import arm3_machine

import dynident as di
from dynident.errors import DescriptionError, IdentificationError, SimulationError
from dynident.export.robot import _listed
from dynident.graph import Graph
from dynident.graph.expression import evaluate_nodes
from dynident.graph.text import parse, write_text
from dynident.identify import Recording, fit_friction
from dynident.identify.regression.rows import Rows
from dynident.mechanics import close_motion
from dynident.mechanism import apply_sidecar, write_sidecar
from dynident.report import write_report
from dynident.trajectory import random_motion

mujoco = optional("mujoco")

SPRING = di.Force("spring", "joint_2", "q - 0.3", value=4.0, unit="N m/rad")
# A linear spring of 900 N/m and free length 0.1 m between two points at 0.2 m and 0.15 m from a joint.
STRETCH = "sqrt(0.2**2 + 0.15**2 - 2 * 0.2 * 0.15 * cos(q[joint_1] + q[joint_2])) - 0.1"
COUNTERBALANCE = di.Force("balance", energy=f"0.5 * ({STRETCH})**2", value=900.0, known=True, unit="N/m")
CABLE = di.Force("cable", {"joint_1": "sin(q[joint_2]) * v", "joint_2": "tanh(5 * v) if q > 0 else 0"})


def arm() -> di.Mechanism:
    """Return a planar arm with bodies that are not zero."""
    robot = di.Mechanism.from_dh([(0.3, 0, 0, 0), (0.25, 0, 0, 0)], gravity=(0, -9.81, 0))
    return robot.with_payload(1.5, (0.1, 0.02, 0.0), np.diag([0.01, 0.02, 0.02]))


def balance_torque(q: np.ndarray) -> np.ndarray:
    angle = q.sum(axis=1)
    length = np.sqrt(0.2**2 + 0.15**2 - 2 * 0.2 * 0.15 * np.cos(angle))
    return 900.0 * (length - 0.1) * 0.2 * 0.15 * np.sin(angle) / length


# ---- texts ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2 * x - -3", lambda x: 2 * x + 3),
        ("x**3 / 2 + pi", lambda x: x**3 / 2 + np.pi),
        ("x**-1.5", lambda x: x**-1.5),
        ("max(x, 0.5) - min(x, 0.5) + abs(-x) * sign(x - 1)", lambda x: np.abs(x - 0.5) + x * np.sign(x - 1)),
        ("tan(x) if x <= 0.7 else atan2(1, x)", lambda x: np.where(x <= 0.7, np.tan(x), np.arctan2(1, x))),
        ("where(x != x, log(x), exp(-x) + floor(3 * x))", lambda x: np.exp(-x) + np.floor(3 * x)),
        (
            "sqrt(x) * cos(x) * (x > 0.3) + tanh(x) * sin(x)",
            lambda x: np.sqrt(x) * np.cos(x) * (x > 0.3) + np.tanh(x) * np.sin(x),
        ),
    ],
)
def test_texts_mean_what_numpy_means_and_come_back(text, value) -> None:
    graph, x = Graph(), np.linspace(0.1, 1.4, 14)

    def symbols(name, index):
        return {("x", None): graph.symbol("x")}[name, index]

    node = parse(graph, text, symbols)
    np.testing.assert_allclose(evaluate_nodes([node], {"x": x})[0], value(x), rtol=1e-14)
    assert parse(graph, write_text(node), symbols) is node


def test_texts_that_are_no_expressions_are_refused_in_one_sentence(subtests: pytest.Subtests) -> None:
    for text in [
        "__import__('os').system('x')",
        "q.real",
        "(lambda: 1)()",
        "[q for q in (1, 2)]",
        "q[0]",
        "q[joint_1](2)",
        "open('x')",
        "sin(q, q)",
        "1e999",
        "q and q",
        "'text'",
        "x",
        "q +",
        "",
        "-" * 200 + "q",
        "q[joint_1" + "+ q" * 3000 + "]",
    ]:
        with subtests.test(str(text)):
            with pytest.raises(DescriptionError) as error:
                di.Force("own", "joint_1", text)
            assert "force 'own'" in str(error.value) or "expression" in str(error.value)


def test_bad_forces_are_told(subtests: pytest.Subtests) -> None:
    for make, message in [
        (lambda: di.Force("k_spring", "joint_1", "q"), "begins like the parameter 'k'"),
        (lambda: di.Force("a b", "joint_1", "q"), "letters, digits"),
        (lambda: di.Force("own", "joint_1"), "give a coordinate with its expression"),
        (lambda: di.Force("own", "joint_1", "q", energy="q[joint_1]**2"), "give a coordinate with its expression"),
        (lambda: di.Force("own", "joint_1", "q", value=np.nan), "finite"),
        (lambda: di.Force("own", energy="0.5 * v[joint_1]**2"), "'own': its energy depends on v"),
        (lambda: di.Force("own", energy="3"), "'own': its energy depends on no joint"),
        (lambda: di.Force("own", "joint_1", "q / (2 - 2)"), "'own': its expression divides by zero"),
        (lambda: di.Force("own", "joint_1", lambda q, v, a: 1 / 0), "'own': its function cannot be evaluated"),
        (lambda: di.Force("own", "joint_1", lambda q, v, a: 1 / (0 * q["joint_1"])), "'own': its function cannot be evaluated"),
        (lambda: di.Force("own", "joint_1", lambda q, v, a: float(q["joint_1"])), "cannot be evaluated on expressions"),
        (lambda: arm().with_forces(di.Force("own", "elbow", "q")), "not a moving joint"),
        (lambda: arm().with_forces(di.Force("own", "joint_1", "q[elbow]")), "not a moving joint"),
        (lambda: arm().with_forces("spring"), "give dynident.Force"),
        (lambda: di.mass_matrix(arm().with_forces(di.Force("own", "joint_1", "a")), [0.0, 0.0]), "depends on accelerations"),
        (lambda: di.Columns(("one",)).evaluate(*np.zeros((3, 4, 2))), "other motions cannot be predicted"),
        (lambda: di.Columns(("one",), lambda q, v, a: q).evaluate(*np.zeros((3, 4, 2))), "must return"),
    ]:
        with subtests.test(str(message)), pytest.raises(DescriptionError, match=message):
            make()


# ---- mechanics --------------------------------------------------------------------------------------------------------


def test_torques_are_the_closed_forms() -> None:
    robot, bare = arm().with_forces(SPRING, COUNTERBALANCE, replace(CABLE, value=0.7)), arm()
    motion = smooth(2, 60, seed=3)
    q, v = motion.q, motion.v
    extra = np.zeros((60, 2))
    extra[:, 1] += 4.0 * (q[:, 1] - 0.3)
    extra += balance_torque(q)[:, None]
    extra[:, 0] += 0.7 * np.sin(q[:, 1]) * v[:, 0]
    extra[:, 1] += np.where(q[:, 1] > 0, 0.7 * np.tanh(5 * v[:, 1]), 0.0)
    tau = di.inverse_dynamics(robot, motion)
    np.testing.assert_allclose(tau - di.inverse_dynamics(bare, motion), extra, atol=1e-12)
    np.testing.assert_allclose(di.regressor(robot, motion) @ robot.parameters.values, tau, atol=1e-12)
    np.testing.assert_allclose(di.forward_dynamics(robot, q, v, tau), motion.a, atol=1e-9)
    same = di.Force("cable", {"joint_1": lambda q, v, a: np.sin(q["joint_2"]) * v["joint_1"], "joint_2": CABLE.on["joint_2"]})
    again = di.inverse_dynamics(arm().with_forces(SPRING, COUNTERBALANCE, replace(same, value=0.7)), motion)
    np.testing.assert_allclose(again, tau, atol=1e-13)


def test_a_spring_is_that_of_mujoco() -> None:
    """MuJoCo's own joint spring: what the actuator exerts beside the bodies."""
    text = """<mujoco><option gravity="0 0 -9.81"/><worldbody><body name="b">
      <joint name="h" type="hinge" axis="0 1 0" stiffness="{k}" springref="20"/>
      <inertial pos="0.1 0 0" mass="2" diaginertia="0.02 0.03 0.03"/></body></worldbody></mujoco>"""
    model = mujoco.MjModel.from_xml_string(text.format(k=7.5))
    data = mujoco.MjData(model)
    body = di.Body("b", di.mechanism.from_com(2.0, (0.1, 0, 0), np.diag([0.02, 0.03, 0.03])))
    joint = di.Joint("h", "revolute", "world", "b", axis=(0, 1, 0))
    robot = di.Mechanism("m", (di.Body("world"), body), (joint,), terms=())
    robot = robot.with_forces(di.Force("spring", "h", "q - 20 * pi / 180", value=7.5))
    for q, v, a in ((0.4, 0.3, -2.0), (-1.1, 0.0, 5.0)):
        data.qpos[0], data.qvel[0], data.qacc[0] = q, v, a
        mujoco.mj_inverse(model, data)
        found = di.inverse_dynamics(robot, di.Motion([0.0], [[q]], [[v]], [[a]]))
        np.testing.assert_allclose(found[0], data.qfrc_inverse, atol=1e-10)


@pytest.mark.parametrize("make", [four_bar, slider_crank])
def test_an_energy_of_passive_joints_works_through_the_loops(make) -> None:
    """Virtual work: the torque on the driven joint is the slope of the energy along the closed configurations."""
    robot = make()
    passive = [name for name in robot.tree.coordinates if name not in robot.coordinate_names]
    energy = " + ".join(f"({i + 1} * q[{name}] - 0.2)**2 * cos(q[{passive[0]}])" for i, name in enumerate(passive))
    loaded = robot.with_forces(di.Force("own", energy=energy, value=3.0))
    motion = states(robot, 12)

    def potential(shift: float) -> np.ndarray:
        moved = di.Motion(motion.t, motion.q + shift, 0 * motion.v, 0 * motion.a)
        q = dict(zip(robot.tree.coordinates, close_motion(robot, moved).q.T, strict=True))
        return 3.0 * sum(((i + 1) * q[name] - 0.2) ** 2 * np.cos(q[passive[0]]) for i, name in enumerate(passive))

    wanted = (potential(1e-5) - potential(-1e-5)) / 2e-5
    found = di.inverse_dynamics(loaded, motion) - di.inverse_dynamics(robot, motion)
    np.testing.assert_allclose(found[:, 0], wanted, rtol=1e-6, atol=1e-6)
    unit = di.energy_regressor(loaded, motion)[1][:, loaded.parameters.index("own")]
    np.testing.assert_allclose(3.0 * unit, potential(0.0), rtol=1e-9)


def test_a_joint_that_is_locked_stays_where_it_is_in_the_expressions() -> None:
    robot, motion = arm().with_forces(SPRING, COUNTERBALANCE), smooth(2, 20, seed=1)
    q2 = motion.q[:, 1:]
    still = di.Motion(motion.t, q2, motion.v[:, 1:], motion.a[:, 1:])
    whole = [np.column_stack([np.full(20, x), y[:, 1]]) for x, y in ((0.4, motion.q), (0, motion.v), (0, motion.a))]
    found = di.inverse_dynamics(robot.lock({"joint_1": 0.4}), still)
    np.testing.assert_allclose(found[:, 0], di.inverse_dynamics(robot, di.Motion(motion.t, *whole))[:, 1], atol=1e-12)
    assert [force.name for force in robot.lock({"joint_2": 0.0}).forces] == ["balance"]


# ---- files and closed forms -------------------------------------------------------------------------------------------


def test_a_sidecar_says_forces_laws_and_terms_of_single_joints(tmp_path: Path) -> None:
    law = di.friction.law_of("stribeck + viscous").using(fc=1.0, fs=1.3, vs=0.1, fv=0.2)
    robot = (
        arm().with_terms({"joint_2": ["ia", "k"]}).with_friction({"joint_1": law}).with_forces(SPRING, COUNTERBALANCE, CABLE)
    )
    again = apply_sidecar(arm(), write_sidecar(robot, tmp_path / "robot.toml"))
    assert again.parameters.names == robot.parameters.names
    np.testing.assert_array_equal(again.parameters.values, robot.parameters.values)
    np.testing.assert_array_equal(again.known_columns, robot.known_columns)
    motion = smooth(2, 15)
    copies = (again, copy.deepcopy(robot), di.Mechanism.from_dict(robot.to_dict()))
    for other in copies:
        np.testing.assert_allclose(di.inverse_dynamics(other, motion), di.inverse_dynamics(robot, motion), rtol=1e-13)


def test_bad_sidecars_are_told(tmp_path: Path, subtests: pytest.Subtests) -> None:
    for text, message in [
        ('[[force]]\nname = "x"\njoint = "joint_1"\nexpression = 3', r"\[\[force\]\] number 1: expression is 3"),
        ('[[force]]\nname = "x"\njoint = "joint_1"\nexpression = "q"\ngain = 2', "unknown key 'gain'"),
        ('[[force]]\nname = "x"\njoint = "joint_1"\nexpression = "q +"', "not an expression"),
        ('[[force]]\nname = "x"\njoint = "joint_1"\nexpression = "q"\nknown = "yes"', "give true or false"),
        ('[[force]]\nname = "x"\non = { joint_1 = 2 }', "expressions in quotes"),
        ('[[friction]]\njoint = "joint_1"\nlaw = "glue"', "'glue' in 'glue' is not a friction law"),
        ('[[friction]]\njoint = "elbow"\nlaw = "coulomb"', "neither a joint nor the motor"),
        ('[[friction]]\njoint = "joint_1"\nlaw = "tanh"\nvalues = { fc = 1.0 }', "lacks a value for beta"),
        ('[joint_terms]\njoint_1 = ["glue"]', "unknown joint term 'glue'"),
        ('[joint_terms]\nelbow = ["ia"]', "elbow"),
    ]:
        with subtests.test(str(message)):
            path = tmp_path / "bad.toml"
            path.write_text(text, encoding="utf-8")
            with pytest.raises(DescriptionError, match=message):
                apply_sidecar(arm(), path)


def test_exported_numpy_computes_the_same(tmp_path: Path) -> None:
    law = di.friction.law_of("tanh + viscous").using(fc=1.0, beta=20.0, fv=0.2)
    robot = arm().with_forces(SPRING, COUNTERBALANCE, replace(CABLE, value=0.7)).with_friction({"joint_1": law})
    motion = smooth(2, 8)
    tau = di.inverse_dynamics(robot, motion)
    files = di.symbolic.write_program(robot, tmp_path, latex=False, c=False)
    space: dict = {}
    exec(compile(next(f for f in files if f.suffix == ".py").read_text(), "generated", "exec"), space)
    found = space["inverse_dynamics"](q=motion.q, v=motion.v, a=motion.a, phi=robot.parameters.values)
    np.testing.assert_allclose(found, tau, atol=1e-12)
    # Base parameters alone would leave out what is known: the closed form keeps it.
    columns = di.base_parameters(robot).columns.tolist()
    forms = di.derive(robot, ["base_inverse_dynamics", "base_parameters"], columns=columns)
    beta = forms.evaluate("base_parameters", phi=robot.parameters.values)
    again = forms.evaluate("base_inverse_dynamics", q=motion.q, v=motion.v, a=motion.a, beta=beta[0])
    np.testing.assert_allclose(again, tau, atol=1e-11)


# ---- identification ---------------------------------------------------------------------------------------------------


def test_coefficients_are_identified_and_known_ones_are_left_alone(tmp_path: Path) -> None:
    truth = arm().with_forces(SPRING, COUNTERBALANCE, replace(CABLE, value=0.7))
    log, other = (simulated_log(truth, 12.0, seed=s, noise=0.02) for s in (1, 2))
    robot = arm().with_forces(replace(SPRING, value=0.0), COUNTERBALANCE, CABLE)
    fit = di.WLS().fit(di.Regression.from_log(robot, log)).result_
    assert "balance" not in fit.base.leaders
    assert fit.standard["balance"] == 900.0
    for name, value in (("spring", 4.0), ("cable", 0.7)):
        i = fit.base.leaders.index(name)
        assert abs(fit.values[i] - value) < 4.0 * fit.std[i] < 0.2 * abs(value)
    score = fit.score(other)
    assert score.metrics.relative < 0.01
    loaded = di.Fit.load(fit.save(tmp_path / "fit.json"))
    assert loaded.score(other).metrics.relative == pytest.approx(score.metrics.relative, rel=1e-9)
    motion = smooth(2, 30, seed=9)
    np.testing.assert_allclose(di.inverse_dynamics(fit.model, motion), fit.predict(motion).effort, atol=1e-8)
    without = di.WLS().fit(di.Regression.from_log(arm(), log)).result_
    assert without.score(other).metrics.relative > 10.0 * score.metrics.relative


def test_code_for_a_coefficient_that_is_looked_for_is_not_used_where_it_is_known() -> None:
    """Both robots have one geometry; the code of one must not run with the numbers of the other, in either order."""
    bare, motion = arm(), smooth(2, 50, seed=4)
    tau, columns = np.zeros((50, 2)), np.arange(len(bare.parameters))
    for flags in ((False, True, False), (True, False, True)):
        for known in flags:
            force = replace(COUNTERBALANCE, energy=f"{STRETCH} + {1 + flags[0]}", known=known)  # code of its own per order
            robot = bare.with_forces(force)
            y = Rows(robot).equations(motion, tau, columns)[1]
            expected = di.inverse_dynamics(bare, motion) - di.inverse_dynamics(robot, motion) if known else tau
            np.testing.assert_allclose(y.T, expected, rtol=0.0, atol=1e-9)


def test_known_coefficients_are_called_known_and_forces_by_their_names(tmp_path: Path) -> None:
    truth = arm().with_forces(SPRING, COUNTERBALANCE)
    robot = arm().with_forces(replace(SPRING, value=0.0), COUNTERBALANCE)
    fit = di.MAP().fit(di.Regression.from_logs(robot, [simulated_log(truth, 12.0, seed=1, noise=0.02)])).result_
    assert fit.standard_std is not None
    assert fit.standard_std[fit.standard.names.index("balance")] == 0.0
    assert "balance" not in [row.name for row in fit.undetermined()]
    table = write_report(tmp_path / "report.html", fit).read_text(encoding="utf-8").partition("Standard parameter</th>")[2]
    assert "known" in table.partition(">balance<")[2].partition("</tr>")[0]
    notes = " ".join(fit.export(tmp_path, "mujoco").notes)
    assert "force elements 'spring', 'balance': remainder(q, v, a)" in notes
    many = arm().with_forces(*(replace(SPRING, name=f"spring{k}") for k in range(9)))
    names = [name for force in many.forces for name in force.names]
    assert _listed(names[:8], many).endswith("'spring6', 'spring7'")
    assert _listed(names, many).endswith("'spring6', 'spring7' ...")


def test_a_column_that_gravity_has_already_is_regrouped() -> None:
    robot = arm().with_forces(di.Force("again", "joint_1", "cos(q[joint_1])"), di.Force("new", "joint_1", "cos(3 * q)"))
    base = di.base_parameters(robot)
    assert base.rank == di.base_parameters(arm()).rank + 1
    assert "new" in base.leaders
    assert "again" not in base.leaders
    motion = smooth(2, 25, seed=6)
    phi = np.random.default_rng(1).normal(size=len(robot.parameters))
    Y = di.regressor(robot, motion)
    np.testing.assert_allclose(Y[:, :, base.columns] @ base.values(phi), Y @ phi, rtol=1e-8, atol=1e-8)


def test_virtual_robots_have_their_springs() -> None:
    machine = arm3_machine()
    forces = (
        di.Force("spring", "shoulder", "q - 0.2", value=12.0),
        di.Force("balance", energy="1 - cos(q[shoulder] + q[elbow])", value=20.0, known=True),
    )
    sprung = replace(machine, mechanism=machine.mechanism.with_forces(*forces))
    motions = [random_motion([0.1] * 3, [0.6] * 3, seed=s, duration=4.0) for s in (1, 2)]
    log, other = (sprung.simulate(motion, seed=s).log for s, motion in enumerate(motions))
    fit = di.WLS().fit(di.Regression.from_log(sprung.model, log)).result_
    at = fit.base.leaders.index("spring")
    assert abs(fit.values[at] - 12.0) < 4.0 * fit.std[at]
    plain = di.WLS().fit(di.Regression.from_log(machine.model, log)).result_
    assert fit.score(other).metrics.relative < 0.01  # what its sensors leave
    again = fit.score(log, allow_training=True)  # known forces count neither in training nor here
    assert again.metrics.relative == pytest.approx(fit.training_relative, rel=0.02)
    assert plain.score(other).metrics.relative > 0.03
    with pytest.raises(SimulationError, match="jumps with the velocity"):
        replace(machine, mechanism=machine.mechanism.with_forces(di.Force("dry", "elbow", "sign(v)")))


# ---- a regressor of one's own -----------------------------------------------------------------------------------------


def two_links(q: np.ndarray, v: np.ndarray, a: np.ndarray) -> np.ndarray:
    """Regressor (N, 2, 3) of a planar arm without gravity for J1 + m2 l^2, J2 and l m2 x2, by hand."""
    c, s = np.cos(q[:, 1]), np.sin(q[:, 1])
    both, zero = a[:, 0] + a[:, 1], np.zeros(len(q))
    first = c * (a[:, 0] + both) - s * v[:, 1] * (2.0 * v[:, 0] + v[:, 1])
    second = c * a[:, 0] + s * v[:, 0] ** 2
    return np.stack([np.stack([a[:, 0], both, first], axis=1), np.stack([zero, both, second], axis=1)], axis=1)


def test_a_robot_by_a_regressor_of_its_own(tmp_path: Path) -> None:
    motion, names, joints = smooth(2, 1500, seed=4), ["J1", "J2", "lmx"], ("shoulder", "elbow")
    Y, theta = two_links(motion.q, motion.v, motion.a), np.array([2.0, 0.5, 0.3])
    tau = Y @ theta + np.random.default_rng(0).normal(size=(1500, 2)) * [0.2, 0.05]
    evidence = di.Regression.from_rows(Y, tau, names, joints, two_links, "two links")
    assert evidence.mechanism.coordinate_names == joints
    plain = di.OLS().fit(evidence)
    np.testing.assert_allclose(plain.coef_, np.linalg.lstsq(Y.reshape(-1, 3), tau.ravel(), rcond=None)[0], rtol=1e-8)
    fit = di.WLS().fit(evidence).result_
    assert np.all(np.abs(fit.values - theta) < 4.5 * fit.std)
    np.testing.assert_allclose(fit.sigma, [0.2, 0.05], rtol=0.06)
    np.testing.assert_allclose(fit.predict(motion).effort, Y @ fit.values, rtol=1e-9, atol=1e-9)
    assert fit.score_rows(Y, Y @ theta).relative < 0.01
    assert "lmx" in fit.summary()
    loaded = di.Fit.from_dict(fit.to_dict(), evidence.mechanism)
    np.testing.assert_array_equal(loaded.values, fit.values)
    path = fit.save(tmp_path / "fit.json")
    np.testing.assert_array_equal(di.load(path, evidence.mechanism).values, fit.values)
    with pytest.raises(di.DynidentError, match="give the mechanism"):
        di.load(path)
    assert (evidence + evidence).rows == 2 * evidence.rows
    # The same from a log, and with a friction law on top.
    robot = di.Mechanism.from_regressor(names, two_links, joints)
    rubbing = fit_friction(robot, Recording(motion, tau + 3.0 * np.tanh(8.0 * motion.v)), "tanh")
    for law in rubbing.friction.values():
        np.testing.assert_allclose(law.values, [3.0, 8.0], rtol=0.1)


def test_rows_alone_fit_but_predict_no_motion() -> None:
    x = np.linspace(-1, 1, 80)
    Y = np.stack([np.column_stack([x, x**2, 0 * x]), np.column_stack([0 * x, x, x**3])], axis=1)
    fit = di.OLS().fit(di.Regression.from_rows(Y, Y @ [1.0, -2.0, 0.5], ["p1", "p2", "p3"])).result_
    np.testing.assert_allclose(fit.values, [1.0, -2.0, 0.5], atol=1e-12)
    with pytest.raises(DescriptionError, match="give function"):
        fit.predict(smooth(2, 5))
    with pytest.raises(IdentificationError, match="give \\(N, n, 3\\)"):
        di.Regression.from_rows(Y, x, ["p1", "p2", "p3"])
    with pytest.raises(IdentificationError, match="2 joints are named but tau has 1"):
        di.Regression.from_rows(np.column_stack([x, x**2]), x, ["p1", "p2"], ["a", "b"])
    with pytest.raises(IdentificationError, match="not finite at sample 3"):
        di.Regression.from_rows(np.where(np.arange(80) == 3, np.nan, x)[:, None], x, ["p1"])
    with pytest.raises(IdentificationError, match="there are no data"):
        di.Regression.from_rows(np.zeros((0, 1)), np.zeros(0), ["p1"])
    with pytest.raises(IdentificationError, match="independence is -1"):
        di.Regression.from_rows(x[:, None], x, ["p1"], independence=-1.0)


@pytest.mark.parametrize(("text", "defined"), [("log(q)", True), ("exp(1000 * q)", True), ("log(-1 - q**2)", False)])
def test_a_force_that_is_not_defined_everywhere_keeps_its_parameter_or_is_refused(text, defined) -> None:
    bent = arm().with_forces(di.Force("bend", "joint_2", text))
    if defined:
        assert "bend" in di.base_parameters(bent).leaders
    else:
        with pytest.raises(IdentificationError, match="bend are not finite"):
            di.base_parameters(bent)
