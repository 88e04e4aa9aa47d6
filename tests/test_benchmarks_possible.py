"""Faults that no log can show, found by the complete search of `benchmarks.possible`, and faults that a log shows."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from benchmarks.fault_kinds import KINDS, Subject
from benchmarks.population import motion

import dynident as di
from dynident.identify import base_parameters
from dynident.mechanics import regressor
from dynident.mechanism.parameters import SYMBOLS, from_com, pseudo_inertia

pytest.importorskip("cvxpy")
from benchmarks.possible import Equations, clean, excess, nearest

pytestmark = pytest.mark.filterwarnings("ignore::dynident.DynidentWarning")
NOISE = 0.01  # of the efforts
HORIZONTAL, VERTICAL = (0.0, 0.0, -9.81), (0.0, -9.81, 0.0)
TURNED = np.pi / 2


@cache
def planar(gravity: tuple[float, float, float]) -> di.Mechanism:
    """Return an arm of two parallel axes."""
    return di.Mechanism.from_dh([(0.5, 0.0, 0.0, 0.0), (0.4, 0.0, 0.0, 0.0)], gravity=gravity, name="planar")


@cache
def spatial() -> di.Mechanism:
    """Return an arm of three axes."""
    rows = [(0.0, TURNED, 0.5, 0.0), (0.4, 0.0, 0.1, 0.0), (0.3, 0.0, 0.1, 0.0)]
    return di.Mechanism.from_dh(rows, gravity=HORIZONTAL, name="spatial")


@cache
def pendulum() -> di.Mechanism:
    """Return an arm of one axis across gravity."""
    return di.Mechanism.from_dh([(0.5, 0.0, 0.0, 0.0)], gravity=VERTICAL, name="pendulum")


@cache
def gantry() -> di.Mechanism:
    """Return two sliding axes at right angles, on the floor: one carries the other."""
    rows = [
        {"a": 0.0, "alpha": TURNED, "d": 0.0, "theta": 0.0, "kind": "prismatic", "joint": "joint_1"},
        {"a": 0.0, "alpha": 0.0, "d": 0.0, "theta": 0.0, "kind": "prismatic", "joint": "joint_2"},
    ]
    return di.Mechanism.from_dh(rows, gravity=VERTICAL, name="gantry")


def bodies(robot: di.Mechanism) -> di.Mechanism:
    """Return the robot with rods of 5 kg, 4 kg, ... along its links, and friction in its joints."""
    values = dict.fromkeys(robot.parameters.names, 0.0)
    for i, body in enumerate(robot.tree.bodies):
        own = from_com(5.0 - i, (-0.2, 0.03, 0.02), np.diag([0.02, 0.1, 0.11]))
        values |= dict(zip((f"{symbol}_{body}" for symbol in SYMBOLS), own, strict=True))
    for joint in robot.coordinate_names:
        values |= {f"ia_{joint}": 0.02, f"fv_{joint}": 0.8, f"fc_{joint}": 1.5, f"off_{joint}": 0.2}
    return robot.with_parameters(robot.parameters.replace(values))


@cache
def subject(robot: di.Mechanism) -> Subject:
    """Return a robot and its log."""
    true, rng = bodies(robot), np.random.default_rng(0)
    moved = motion(robot.dof, 15.0, rng, 0.5, 0.15)
    effort = di.inverse_dynamics(true, moved)
    effort += NOISE * np.std(effort, axis=0) * rng.normal(size=effort.shape)
    log = di.Log(moved.t, robot.coordinate_names, moved.q, effort, effort_kind="joint_torque", name="run")
    return Subject(robot.name, robot, [log], [], true)


def found(robot: di.Mechanism, name: str, joint: int) -> np.ndarray:
    """Return the errors of the nearest possible robot on the faulty log over those on the clean log."""
    return excess(subject(robot), lambda s: KINDS[name].apply(s, joint, np.random.default_rng(0)))[0]


def exact(robot: di.Mechanism, values: np.ndarray) -> Equations:
    """Return the exact equations of a motion, whose efforts may be those of impossible bodies."""
    n, count = robot.dof, len(robot.tree.bodies)
    moved = motion(n, 8.0, np.random.default_rng(0), 0.5, 0.15)[::10]
    Y = regressor(robot, moved)
    v = moved.v / np.sqrt(np.mean(moved.v**2, axis=0))
    return Equations(
        names=robot.coordinate_names,
        W=Y[:, :, : 10 * count].transpose(1, 2, 0),
        P=np.tile(np.eye(n), (len(moved), 1, 1)),
        v=v,
        a=moved.a,
        effort=Y @ values,
        used=np.abs(v) > 0.1,
        bodies=count,
        positive=np.zeros(0, dtype=bool),
        length=0.5,
    )


def possible(robot: di.Mechanism, beta: np.ndarray) -> bool:
    """Return whether bodies are possible, to the tolerance of the solver."""
    P = [pseudo_inertia(beta[10 * b : 10 * b + 10]) for b in range(len(robot.tree.bodies))]
    return all(np.linalg.eigvalsh(own)[0] >= -1e-7 * np.trace(own) for own in P)


@pytest.mark.parametrize("robot", [pendulum(), planar(VERTICAL), spatial()], ids=lambda robot: robot.name)
def test_a_planted_robot_is_found_again(robot):
    robot = bodies(robot)
    values, base = robot.parameters.values, base_parameters(robot)
    data = exact(robot, values)
    result = nearest(data, 1e-3 * data.size)
    np.testing.assert_allclose(result.errors, 0.0, atol=1e-6 * data.size.min())
    again = np.zeros(values.size)
    again[: result.beta.size] = result.beta
    for i, joint in enumerate(robot.coordinate_names):  # its unit in the search is the standard deviation of a
        again[robot.parameters.index(f"ia_{joint}")] = result.friction[i, -1] * data.size[i] / np.std(data.a[:, i])
    inertial = [k for k, name in enumerate(base.names) if not name.startswith(("fc", "fv", "off"))]
    np.testing.assert_allclose(base.values(again)[inertial], base.values(values)[inertial], atol=1e-6)
    assert possible(robot, result.beta)


def test_an_impossible_inertia_is_not_found():
    """The nearest possible arm across no gravity has none: least squares with friction alone is the oracle."""
    robot = bodies(pendulum().with_gravity(HORIZONTAL))
    values = robot.parameters.values.copy()
    values[robot.parameters.index("Izz_" + robot.tree.bodies[0])] = -0.5
    values[robot.parameters.index("fc_joint_1")] = 5.0  # it dissipates also with what it takes from the inertia
    data = exact(robot, values)
    own, v = data.used[:, 0], data.v[:, 0]
    sign, speed = np.sign(v), np.abs(v)
    bumps = [sign * np.exp(-((speed / width) ** 2)) for width in (0.2, 0.6)]
    A, y = np.stack([np.ones_like(v), sign, v, speed, v * speed, *bumps], axis=1)[own], data.effort[own, 0]
    x, square = np.linalg.lstsq(A, y, rcond=None)[:2]
    assert np.min(A[:, 1:] @ x[1:] * sign[own]) > 0.0
    oracle = float(np.sqrt(square[0] / y.size))
    assert oracle > 0.05 * data.size[0]
    assert nearest(data, 0.01 * data.size).errors[0] == pytest.approx(oracle, rel=1e-6)


def test_impossible_bodies_are_not_found():
    robot = bodies(spatial())
    values = robot.parameters.values.copy()
    values[robot.parameters.index("Izz_" + robot.tree.bodies[2])] = -0.5
    data = exact(robot, values)
    result = nearest(data, 1e-3 * data.size)
    assert np.max(result.errors / data.size) > 0.05
    assert possible(robot, result.beta)


@pytest.mark.parametrize(
    ("robot", "name", "joint"),
    [
        (planar(VERTICAL), "all gains 1.3", 0),  # heavier bodies and more friction
        (gantry(), "gain 1.3", 1),  # a heavier carriage on a lighter bridge
        (gantry(), "gain 0.5", 0),  # a lighter bridge
        (planar(HORIZONTAL), "clock twice too fast", 0),  # four times the inertia, and two times the viscous friction
        (planar(VERTICAL), "effort offset", 1),  # a preload, or friction that differs between the directions
        (pendulum(), "gravity compensated", 0),  # a balanced body with the same inertia
        (pendulum(), "gravity half compensated", 0),
        (gantry(), "gravity compensated", 0),
        (spatial(), "zero off by pi/2", 2),  # a body turned about its joint
        (planar(VERTICAL), "zero off by pi/2", 1),
        (spatial(), "zero off by pi/2", 0),  # the arm turned on its base, about the direction of gravity
        (spatial(), "axis turned", 0),  # the mirror image
        (spatial(), "a link 30 % longer", 0),  # along the first axis: a higher base
    ],
    ids=lambda value: getattr(value, "name", value),
)
def test_another_possible_robot_makes_the_faulty_efforts(robot, name, joint):
    """The nearest possible robot leaves the errors that the clean log has; the noise is not needed."""
    assert np.max(found(robot, name, joint)) < 1.05


@pytest.mark.parametrize(
    ("robot", "name", "joint"),
    [
        (planar(VERTICAL), "gain 1.3", 1),  # the torque of the other joint shows the same body
        (planar(HORIZONTAL), "gain 1.3", 1),
        (planar(VERTICAL), "clock twice too fast", 0),  # gravity shows the masses
        (planar(VERTICAL), "gravity compensated", 0),  # inertia torques between the joints show the first moments
        (spatial(), "effort turned", 1),
        (pendulum(), "effort turned", 0),  # friction would feed energy
        (pendulum(), "dead effort", 0),  # no measurement is free of noise
    ],
    ids=lambda value: getattr(value, "name", value),
)
def test_no_other_possible_robot_makes_the_faulty_efforts(robot, name, joint):
    assert np.max(found(robot, name, joint)) > 2.0


def test_clean_errors_and_noise_are_those_of_the_log():
    given = subject(spatial())
    data, errors, noise = clean(given)
    assert np.all(errors / data.size < NOISE)  # windows average some samples
    assert np.all(noise > 0.85 * errors)
