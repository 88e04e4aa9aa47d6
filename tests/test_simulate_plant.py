"""The compiled plant: energy, order of the methods, and independent integrations of the same equations."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.linalg import expm

import dynident as di
from dynident.control import OpenLoop
from dynident.drive import Drive, Motor, Transmission
from dynident.friction import (
    Sigmoid,
)
from dynident.mechanics import actuator_jacobian, forward_dynamics
from dynident.mechanics.batch import at_rest
from dynident.mechanism.inertia import from_com
from dynident.robots import cft, dualv, five_bar
from dynident.simulate.controllers import tables
from dynident.simulate.plant import FINE, UNSTABLE, build, inputs_of, loop_gain, no_inputs
from loop_cases import four_bar, rssr, slider_crank, welded_four_bar
from plant_cases import chain, free, go, plain, slide, without_terms
from random_mechanisms import coupled, every_kind
from simulate_cases import arm

# ---- equation of motion ----------------------------------------------------------------------------------------------


def accelerations(robot: di.Mechanism, x: np.ndarray, v: np.ndarray, tau: np.ndarray, **options: object) -> np.ndarray:
    """Return the accelerations of the first evaluation."""
    law = OpenLoop(torque=tau)
    assembly = build(robot, plain(robot), law, step=1e-9, x=x, v=v, **options)
    return go(assembly, 1, law, command=tau[None])[0, assembly.columns.a]


@pytest.mark.parametrize(
    "make", [every_kind, coupled, four_bar, slider_crank, rssr, welded_four_bar, five_bar.mechanism, dualv.mechanism]
)
def test_accelerations_are_those_of_forward_dynamics(make: object) -> None:
    robot = make()
    rng = np.random.default_rng(2)
    x = rng.normal(size=robot.dof) if not robot.loops else robot.closure.home[robot.closure.independent] + 0.05
    v, tau = rng.normal(size=robot.dof), rng.normal(size=len(robot.actuators))
    force = actuator_jacobian(robot, x)[0].T @ tau
    wanted = forward_dynamics(robot, x, v, force)[0]
    ours = accelerations(robot, x, v, tau)
    np.testing.assert_allclose(ours, wanted, rtol=1e-8, atol=1e-8 * np.abs(wanted).max())
    split = (
        accelerations(robot, x, v, tau, method="decoupled") if not robot.loops and robot.dof == len(robot.actuators) else ours
    )
    np.testing.assert_allclose(split, wanted, rtol=1e-8, atol=1e-8 * np.abs(wanted).max())


def test_wrenches_and_pushes_act_as_in_forward_dynamics() -> None:
    robot = arm()
    rng = np.random.default_rng(4)
    x, v = rng.normal(size=3), rng.normal(size=3)
    w, push = rng.normal(size=(1, 6)) * 10.0, rng.normal(size=(1, 3))
    link = robot.bodies[-1].name
    assembly = free(robot, x, v, step=1e-9)
    row = go(assembly, 1, inputs=inputs_of(robot, push, {link: w}))
    wanted = forward_dynamics(robot, x, v, push[0], wrenches={link: w[0]})[0]
    np.testing.assert_allclose(row[0, assembly.columns.a], wanted, rtol=1e-10)


# ---- energy and order ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("robot", "x", "v"),
    [
        (chain(), [0.3, 1.0, -0.5], [1.0, 0.5, -0.8]),
        (five_bar.mechanism(), None, [0.6, -0.4]),
        (four_bar(), None, [3.0]),
    ],
)
def test_energy_is_conserved_over_ten_seconds(robot: di.Mechanism, x: object, v: object) -> None:
    robot = without_terms(robot)
    start = robot.closure.home[robot.closure.independent] if x is None else np.array(x)
    assembly = free(robot, start, np.array(v), step=5e-4)
    total = go(assembly, 20_000, every=50)[:, assembly.columns.energy].sum(axis=1)
    swing = np.ptp(total - total[0]) / max(np.abs(total).max(), 1e-3)
    assert swing < 1e-8


@pytest.mark.parametrize(("integrator", "order"), [("rk4", 4), ("midpoint", 2), ("euler", 1)])
@pytest.mark.parametrize("name", ["tree", "loops"])
def test_halving_the_step_shows_the_order(integrator: str, order: int, name: str) -> None:
    robot = chain() if name == "tree" else without_terms(five_bar.mechanism())
    x = np.array([0.3, 1.0, -0.5]) if name == "tree" else robot.closure.home[robot.closure.independent]
    v = np.array([1.0, 0.5, -0.8])[: robot.dof]

    def end(step: float) -> np.ndarray:
        assembly = free(robot, x, v, step=step, integrator=integrator)
        go(assembly, round(0.4 / step))
        return assembly.plant.y[: len(robot.tree.coordinates)].copy()

    steps = 4e-3 / 2.0 ** np.arange(3)
    a, b, c = (end(step) for step in steps)
    seen = np.log2(np.linalg.norm(a - b) / np.linalg.norm(b - c))
    assert seen == pytest.approx(order, abs=0.25)


def test_free_bodies_keep_energy_and_momentum() -> None:
    robot = di.Mechanism(
        "brick",
        (di.Body("world"), di.Body("brick", from_com(2.0, np.array([0.01, -0.02, 0.03]), np.diag([0.03, 0.02, 0.04])))),
        (di.Joint("fly", "free", "world", "brick"),),
        gravity=(0.0, 0.0, 0.0),
    )
    v = np.array([0.1, 0.2, -0.3, 3.0, 0.1, 2.0])
    assembly = build(robot, [], OpenLoop(torque=np.zeros((1, 1))), step=1e-3, x=np.zeros(6), v=v)
    record = go(assembly, 6000, every=100)
    energy = record[:, assembly.columns.energy].sum(axis=1)
    assert np.ptp(energy) < 1e-9 * energy[0]
    from scipy.spatial.transform import Rotation

    x, nu = record[:, assembly.columns.x], record[:, assembly.columns.v]
    turn = Rotation.from_rotvec(x[:, 3:])
    h = 2.0 * (turn.apply(nu[:, :3]) + turn.apply(np.cross(nu[:, 3:], [0.01, -0.02, 0.03])))
    np.testing.assert_allclose(h, np.broadcast_to(h[0], h.shape), atol=1e-8)
    assert np.abs(x[:, 3:]).max() < 1.5 * np.pi + 0.1
    assert np.linalg.norm(x[-1, 3:]) > 0.0


# ---- independent integrations ----------------------------------------------------------------------------------------


def test_steps_are_those_of_pinocchio() -> None:
    pin = pytest.importorskip("pinocchio")
    path = Path(__file__).parents[1] / "benchmarks" / "arm.urdf"
    model = pin.buildModelFromUrdf(str(path))
    data = model.createData()
    robot = di.Mechanism.from_urdf(path)
    rng = np.random.default_rng(1)
    q, v, tau, h = rng.normal(size=6), rng.normal(size=6), rng.normal(size=6), 1e-3
    law = OpenLoop(torque=tau)
    assembly = build(robot, plain(robot), law, step=h, x=q, v=v)
    go(assembly, 100, law, command=tau[None])
    for _ in range(100):
        k1 = pin.aba(model, data, q, v, tau)
        v2 = v + 0.5 * h * k1
        k2 = pin.aba(model, data, q + 0.5 * h * v, v2, tau)
        v3 = v + 0.5 * h * k2
        k3 = pin.aba(model, data, q + 0.5 * h * v2, v3, tau)
        v4 = v + h * k3
        k4 = pin.aba(model, data, q + h * v3, v4, tau)
        q, v = q + h / 6.0 * (v + 2.0 * v2 + 2.0 * v3 + v4), v + h / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4)
    np.testing.assert_allclose(assembly.plant.y, np.concatenate([q, v]), rtol=1e-9, atol=1e-9)


def test_forward_run_of_the_cft_digest() -> None:
    robot = cft.mechanism()
    q0 = cft.joint_from_cartesian([-0.1343, 0.2766, 2.4, 0.0869])
    tau = cft.gravity(q0).ravel() + np.array([60.0, 20.0, -6.0, 5.0])
    Bv, B1, B2, w1, w2 = np.asarray(cft.THETA)[12:].reshape(5, 4)
    laws = {
        name: Sigmoid(2).using(Bv=Bv[i], Bf1=B1[i], Bf2=B2[i], w1=w1[i], w2=w2[i])
        for i, name in enumerate(robot.coordinate_names)
    }
    law = OpenLoop(torque=tau)
    assembly = build(robot, plain(robot), law, step=1e-4, x=np.ravel(q0), friction=laws)
    go(assembly, 1000, law, command=tau[None])
    x = [assembly.plant.y[robot.tree.coordinates.index(name)] for name in robot.coordinate_names]
    np.testing.assert_allclose(x, [0.273832, 0.030732, -1.010267, 2.003791], atol=2e-6)
    np.testing.assert_allclose(assembly.plant.y[-4:], [0.044022, 0.567445, -0.256833, 0.276094], atol=2e-6)


def test_an_elastic_drive_fed_with_a_voltage_is_the_exact_linear_response() -> None:
    R, L, Kt, J = 0.7, 2e-3, 0.12, (3e-4, 1e-4, 2e-4)
    k, c, ratio, mass, volts = (900.0, 400.0), (0.02, 0.01), 60.0, 3.0, 12.0
    drive = Drive("s", Motor(Kt, R, L, inertia=J[0]), Transmission(ratio, 1.0, J[1:], k, c))
    law = OpenLoop(voltage=[volts])
    h, steps = 1e-4, 2000
    assembly = build(slide(mass, fv=5.0), [drive], law, step=h, x=[0.0])
    go(assembly, steps, law, command=np.array([[volts]]))
    # state: slide, speed, theta1, theta2, omega1, omega2, current
    last = mass + ratio**2 * J[2]
    A = np.zeros((7, 7))
    A[0, 1] = A[2, 4] = A[3, 5] = 1.0
    t1, t2 = np.zeros(7), np.zeros(7)  # torques of the two shafts
    t1[[2, 3, 4, 5]] = k[0], -k[0], c[0], -c[0]
    t2[[3, 0, 5, 1]] = k[1], -k[1] * ratio, c[1], -c[1] * ratio
    A[1] = ratio * t2 / last
    A[1, 1] -= 5.0 / last
    A[4] = -t1 / J[0]
    A[4, 6] += Kt / J[0]
    A[5] = (t1 - t2) / J[1]
    A[6, 6], A[6, 4] = -R / L, -Kt / L
    b = np.zeros(7)
    b[6] = volts / L
    full = np.zeros((8, 8))
    full[:7, :7], full[:7, 7] = A, b
    exact = expm(full * h * steps)[:7, 7]
    np.testing.assert_allclose(assembly.plant.y, exact, rtol=1e-5, atol=1e-7 * np.abs(exact).max())


def test_without_inductance_the_current_follows_at_once() -> None:
    drive = Drive("s", Motor(0.1, resistance=0.5, inertia=1e-4), Transmission(50.0))
    law = OpenLoop(voltage=[6.0])
    assembly = build(slide(2.0), [drive], law, step=1e-3, x=[0.0])
    record = go(assembly, 3000, law, command=np.array([[6.0]]), every=10)
    inertia = 2.0 + 2500.0 * 1e-4
    rate = 50.0**2 * 0.01 / 0.5 / inertia
    t = np.arange(300) * 0.01
    end = 6.0 / (0.1 * 50.0)
    np.testing.assert_allclose(record[:, assembly.columns.v][:, 0], end * -np.expm1(-rate * t), atol=1e-9)
    np.testing.assert_allclose(record[:, assembly.columns.current][:, 0], 12.0 * np.exp(-rate * t), atol=1e-7)


def test_backlash_lets_the_load_fly_free() -> None:
    gear = Transmission(1.0, 1.0, (0.5,), (1e4,), (0.0,), backlash=0.2)
    drive = Drive("s", Motor(1.0, inertia=0.5), gear)
    law = OpenLoop(torque=[0.0])
    assembly = build(slide(1.0), [drive], law, step=1e-4, x=[0.0], v=[1.0])
    assembly.plant.y[3] = 0.0  # the rotor stands in the middle of its play
    record = go(assembly, 500, law, every=1)
    assert record[:, assembly.columns.v][:, 0] == pytest.approx(1.0)
    record = go(assembly, 3000, law, every=1)  # go() begins a record of its own
    assert record[:, assembly.columns.omega].max() > 1.0  # it was hit
    energy = assembly.plant.y[1] ** 2 * 1.5 / 2.0 + assembly.plant.y[3] ** 2 * 0.5 / 2.0
    momentum = 1.5 * assembly.plant.y[1] + 0.5 * assembly.plant.y[3]
    assert momentum == pytest.approx(1.5, rel=1e-9)
    assert energy == pytest.approx(0.75, rel=1e-5)  # the stops are springs: nothing is lost, whatever a contact's step costs


@pytest.mark.parametrize(("torque", "speed"), [(2.0, 1.0), (2.0, -1.0), (-2.0, 1.0), (-2.0, -1.0)])
def test_losses_of_the_gear_follow_the_direction_of_power(torque: float, speed: float) -> None:
    gear = Transmission(10.0, efficiency=0.8)
    drive = Drive("s", Motor(1.0), gear)
    law = OpenLoop(torque=[torque * 10.0])
    assembly = build(slide(1.0), [drive], law, step=1e-6, x=[0.0], v=[speed])
    record = go(assembly, 1, law, command=np.array([[torque * 10.0]]))
    assert record[0, assembly.columns.torque][0] == pytest.approx(float(gear.output_torque(torque, speed)))


# ---- decoupled -------------------------------------------------------------------------------------------------------


def geared(robot: di.Mechanism, inertia: float = 2e-3) -> list[Drive]:
    return [Drive(a.name, Motor(0.1, inertia=inertia), Transmission(50.0)) for a in robot.actuators]


@pytest.mark.parametrize("make", [arm, five_bar.mechanism])
@pytest.mark.parametrize("loop", ["exact", "iterated"])
def test_decoupled_is_coupled(make: object, loop: str) -> None:
    robot = without_terms(make())
    x = np.array([0.3, 0.4, -0.5]) if not robot.loops else robot.closure.home[robot.closure.independent]
    tau = np.array([20.0, -15.0, 5.0])[: robot.dof]
    law, ends = OpenLoop(torque=tau), []
    for method in ("coupled", "decoupled"):
        assembly = build(robot, geared(robot, 5e-2), law, step=1e-3, x=x, method=method, loop=loop)
        go(assembly, 300, law, command=tau[None])
        ends.append(assembly.plant.y.copy())
    assert loop_gain(assembly, x) < 1.0
    np.testing.assert_allclose(ends[1], ends[0], rtol=1e-6, atol=1e-9)


def test_the_delayed_loop_diverges_when_the_mechanism_is_heavier() -> None:
    robot = without_terms(arm())
    x, law = np.array([0.3, 0.4, -0.5]), OpenLoop(torque=np.zeros(3))
    for inertia, calm in ((1e-6, False), (5e-2, True)):
        assembly = build(robot, geared(robot, inertia), law, step=1e-3, x=x, method="decoupled", loop="delayed")
        assert (loop_gain(assembly, x) < 1.0) == calm
        wanted = tables(robot, law, at_rest(robot, x), 1, command=np.zeros((1, 3)))
        status, done, which = assembly.run(2000, wanted, no_inputs(3), np.zeros((0, assembly.columns.width)))
        assert (status == FINE) == calm
        assert calm or (status == UNSTABLE and done < 2000 and 0 <= which < 3)
