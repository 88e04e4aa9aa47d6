"""The compiled machine: energy, order of the methods, and independent integrations of the same equations."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from loop_cases import four_bar, rssr, slider_crank, welded_four_bar
from plant_cases import bare_motors, chain, go, home, machine, slide, without_terms
from random_mechanisms import coupled, every_kind
from scipy.linalg import expm
from simulate_cases import arm
from small_robots import five_bar, platform

import dynident as di
from dynident.control import OpenLoop
from dynident.drive import Drive, Motor, Transmission
from dynident.drive.drive import gear_share
from dynident.errors import SimulationError, SimulationWarning
from dynident.mechanics import actuator_jacobian, forward_dynamics
from dynident.mechanism import Actuator, Coupling, from_com

# ---- equation of motion ----------------------------------------------------------------------------------------------


def accelerations(robot: di.Mechanism, x: np.ndarray, v: np.ndarray, tau: np.ndarray, **options: object) -> np.ndarray:
    """Return the accelerations of the first evaluation."""
    run = go(machine(robot, law=OpenLoop(torque=tau), step=1e-9), 4, x, v, **options)
    return run.truth.motion.a[0]


@pytest.mark.parametrize("make", [every_kind, coupled, four_bar, slider_crank, rssr, welded_four_bar, five_bar, platform])
def test_accelerations_are_those_of_forward_dynamics(make: object) -> None:
    robot = bare_motors(make())
    rng = np.random.default_rng(2)
    x = rng.normal(size=robot.dof) if not robot.loops else home(robot) + 0.05
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
    w, push = rng.normal(size=6) * 10.0, rng.normal(size=3)
    link = robot.bodies[-1].name
    run = go(machine(robot, step=1e-9), 4, x, v, disturbance=push, wrenches={link: w})
    wanted = forward_dynamics(robot, x, v, push, wrenches={link: w})[0]
    np.testing.assert_allclose(run.truth.motion.a[0], wanted, rtol=1e-10)


def crank_slide(**coupling: object) -> di.Mechanism:
    """Return a crank whose second joint follows by a function of the first, as a cam does."""
    bodies = (
        di.Body("base"),
        di.Body("crank", from_com(2.0, np.array([0.1, 0.02, 0.0]), np.diag([0.02, 0.03, 0.04]))),
        di.Body("rod", from_com(1.0, np.array([0.2, -0.01, 0.0]), np.diag([0.01, 0.02, 0.02]))),
    )
    joints = (di.Joint("a", "revolute", "base", "crank"), di.Joint("b", "revolute", "crank", "rod"))
    cam = Coupling("b", {"a": 1.0}, **coupling)
    return di.Mechanism("cam", bodies, joints, couplings=(cam,), gravity=(0.0, -9.81, 0.0))


def test_a_coupling_function_is_simulated() -> None:
    robot = without_terms(crank_slide(function=lambda q: 0.5 * np.sin(2.0 * q[:, 0]) - 0.3 * q[:, 0]))
    x, v = np.array([0.4]), np.array([2.0])
    run = go(machine(robot, step=5e-4), 4001, x, v, every=2)
    t = run.truth
    wanted = forward_dynamics(robot, t.motion.q, t.motion.v, np.zeros_like(t.motion.v))
    np.testing.assert_allclose(t.motion.a, wanted, atol=1e-9 * np.abs(wanted).max())
    total = t.energy.sum(axis=1)
    assert np.ptp(total) < 1e-8 * np.abs(total).max()
    assert np.ptp(t.motion.v) > 1.0


# ---- energy and order ------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:.*outside its limits")  # nothing drives it
@pytest.mark.parametrize(
    ("robot", "x", "v"),
    [
        (chain(), [0.3, 1.0, -0.5], [1.0, 0.5, -0.8]),
        (five_bar(), None, [0.6, -0.4]),
        (four_bar(), None, [3.0]),
    ],
)
def test_energy_is_conserved_over_ten_seconds(robot: di.Mechanism, x: object, v: object) -> None:
    robot = without_terms(robot)
    start = home(robot) if x is None else np.array(x)
    total = go(machine(robot, step=5e-4), 401, start, v, every=50).truth.energy.sum(axis=1)
    swing = np.ptp(total - total[0]) / max(np.abs(total).max(), 1e-3)
    assert swing < 1e-8


@pytest.mark.parametrize("name", ["tree", "loops"])
def test_halving_the_step_shows_the_order(name: str) -> None:
    robot = chain() if name == "tree" else without_terms(five_bar())
    x = np.array([0.3, 1.0, -0.5]) if name == "tree" else home(robot)
    v = np.array([1.0, 0.5, -0.8])[: robot.dof]

    def end(step: float) -> np.ndarray:
        run = go(machine(robot, step=step), round(0.4 / step) + 1, x, v)
        return run.end.state["q"]

    steps = (4e-3 if name == "tree" else 1.6e-2) / 2.0 ** np.arange(3)  # errors well above rounding
    a, b, c = (end(step) for step in steps)
    seen = np.log2(np.linalg.norm(a - b) / np.linalg.norm(b - c))
    assert seen == pytest.approx(4, abs=0.25)


def test_free_bodies_keep_energy_and_momentum() -> None:
    robot = di.Mechanism(
        "brick",
        (di.Body("world"), di.Body("brick", from_com(2.0, np.array([0.01, -0.02, 0.03]), np.diag([0.03, 0.02, 0.04])))),
        (di.Joint("fly", "free", "world", "brick"),),
        actuators=(Actuator("thruster", {"fly.x": 1.0}),),
        gravity=(0.0, 0.0, 0.0),
    )
    v = np.array([0.1, 0.2, -0.3, 3.0, 0.1, 2.0])
    run = go(machine(robot), 61, np.zeros(6), v, every=100)
    energy = run.truth.energy.sum(axis=1)
    assert np.ptp(energy) < 1e-9 * energy[0]
    from scipy.spatial.transform import Rotation

    x, nu = np.array(run.truth.motion.q), np.array(run.truth.motion.v)
    turn = Rotation.from_rotvec(x[:, 3:])
    h = 2.0 * (turn.apply(nu[:, :3]) + turn.apply(np.cross(nu[:, 3:], [0.01, -0.02, 0.03])))
    np.testing.assert_allclose(h, np.broadcast_to(h[0], h.shape), atol=1e-8)
    assert np.abs(x[:, 3:]).max() < 1.5 * np.pi + 0.1
    assert np.linalg.norm(x[-1, 3:]) > 0.0


# ---- independent integrations ----------------------------------------------------------------------------------------


def test_steps_are_those_of_pinocchio() -> None:
    pin = pytest.importorskip("pinocchio")
    path = Path(__file__).parents[3] / "benchmarks" / "arm.urdf"
    model = pin.buildModelFromUrdf(str(path))
    data = model.createData()
    robot = di.Mechanism.from_urdf(path)
    rng = np.random.default_rng(1)
    q, v, tau, h = rng.normal(size=6), rng.normal(size=6), rng.normal(size=6), 1e-3
    end = go(machine(robot, law=OpenLoop(torque=tau), step=h), 101, q, v).end.state
    for _ in range(100):
        k1 = pin.aba(model, data, q, v, tau)
        v2 = v + 0.5 * h * k1
        k2 = pin.aba(model, data, q + 0.5 * h * v, v2, tau)
        v3 = v + 0.5 * h * k2
        k3 = pin.aba(model, data, q + 0.5 * h * v2, v3, tau)
        v4 = v + h * k3
        k4 = pin.aba(model, data, q + h * v3, v4, tau)
        q, v = q + h / 6.0 * (v + 2.0 * v2 + 2.0 * v3 + v4), v + h / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4)
    np.testing.assert_allclose(end["q"], q, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(end["v"], v, rtol=1e-9, atol=1e-9)


def test_an_elastic_drive_fed_with_a_voltage_is_the_exact_linear_response() -> None:
    R, L, Kt, J = 0.7, 2e-3, 0.12, (3e-4, 1e-4, 2e-4)
    k, c, ratio, mass, volts = (900.0, 400.0), (0.02, 0.01), 60.0, 3.0, 12.0
    drive = Drive("s", Motor(Kt, R, L, inertia=J[0]), Transmission(ratio, 1.0, J[1:], k, c))
    h, steps = 1e-4, 2000
    end = go(machine(slide(mass, fv=5.0), [drive], OpenLoop(voltage=[volts]), h), steps + 1).end.state
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
    ours = np.concatenate([end[name] for name in ("q", "v", "theta", "omega", "coil")])
    np.testing.assert_allclose(ours, exact, rtol=1e-5, atol=1e-7 * np.abs(exact).max())


def test_without_inductance_the_current_follows_at_once() -> None:
    drive = Drive("s", Motor(0.1, resistance=0.5, inertia=1e-4), Transmission(50.0))
    truth = go(machine(slide(2.0), [drive], OpenLoop(voltage=[6.0])), 300, every=10).truth
    inertia = 2.0 + 2500.0 * 1e-4
    rate = 50.0**2 * 0.01 / 0.5 / inertia
    end = 6.0 / (0.1 * 50.0)
    np.testing.assert_allclose(truth.motion.v[:, 0], end * -np.expm1(-rate * truth.t), atol=1e-9)
    np.testing.assert_allclose(truth.current[:, 0], 12.0 * np.exp(-rate * truth.t), atol=1e-7)


def test_backlash_lets_the_load_fly_free() -> None:
    gear = Transmission(1.0, 1.0, (0.5,), (1e4,), (0.0,), backlash=0.2)
    drive = Drive("s", Motor(1.0, inertia=0.5), gear)
    robot = machine(slide(1.0), [drive], step=1e-4)
    # Rotor and load fly together; a push on the load alone parts them, and it is over before they meet again.
    push = lambda t: [1.5 / 0.02 if t < 0.02 - 1e-9 else 0.0]  # noqa: E731
    first = go(robot, 801, disturbance=push, every=1)
    free = first.truth.t > 0.0205
    free &= np.abs(first.truth.theta - first.truth.rho)[:, 0] < 0.1
    assert free.sum() > 100
    assert np.ptp(first.truth.motion.v[free]) < 1e-12
    assert first.truth.omega[free].max() == 0.0
    later = robot.simulate(first.reference, start=first.end, duration=0.4, log_cycle=1e-4).truth
    assert later.omega.max() > 0.9  # it was hit
    momentum = 1.5 * later.motion.v[:, 0] + 0.5 * later.omega[:, 0]
    np.testing.assert_allclose(momentum, momentum[0], rtol=1e-9)
    energy = later.energy.sum(axis=1)
    assert energy[-1] == pytest.approx(energy[0], rel=1e-5)  # the stops are springs: nothing is lost, whatever a step costs


@pytest.mark.parametrize(("torque", "speed"), [(2.0, 1.0), (2.0, -1.0), (-2.0, 1.0), (-2.0, -1.0)])
def test_losses_of_the_gear_follow_the_direction_of_power(torque: float, speed: float) -> None:
    gear = Transmission(10.0, efficiency=0.8)
    drive = Drive("s", Motor(1.0), gear)
    run = go(machine(slide(1.0), [drive], OpenLoop(torque=[torque * 10.0]), 1e-6), 4, v=[speed])
    assert run.truth.torques[0, 0] == pytest.approx(float(gear.ratio * torque * gear_share(torque, speed, gear.efficiency)))


# ---- decoupled -------------------------------------------------------------------------------------------------------


def geared(robot: di.Mechanism, inertia: float = 2e-3) -> list[Drive]:
    return [Drive(a.name, Motor(0.1, inertia=inertia), Transmission(50.0)) for a in robot.actuators]


@pytest.mark.parametrize("make", [arm, five_bar])
@pytest.mark.parametrize("loop", ["exact", "iterated"])
def test_decoupled_is_coupled(make: object, loop: str) -> None:
    robot = without_terms(make())
    x = np.array([0.3, 0.4, -0.5]) if not robot.loops else home(robot)
    tau = np.array([20.0, -15.0, 5.0])[: robot.dof]
    ends = []
    for method in ("coupled", "decoupled"):
        run = go(machine(robot, geared(robot, 5e-2), OpenLoop(torque=tau)), 301, x, method=method, loop=loop)
        ends.append(np.concatenate([run.end.state[name] for name in ("q", "v")]))
    np.testing.assert_allclose(ends[1], ends[0], rtol=1e-6, atol=1e-9)


def test_the_delayed_loop_diverges_when_the_mechanism_is_heavier() -> None:
    robot = without_terms(arm())
    x = np.array([0.3, 0.4, -0.5])
    calm = go(machine(robot, geared(robot, 5e-2)), 2001, x, method="decoupled", loop="delayed")
    assert np.abs(calm.truth.motion.v).max() < 100.0
    light = machine(robot, geared(robot, 1e-6))
    with pytest.warns(SimulationWarning, match="algebraic loop diverges"), pytest.raises(SimulationError, match="passed 1e"):
        go(light, 2001, x, method="decoupled", loop="delayed")
