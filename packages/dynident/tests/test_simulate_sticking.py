"""Dry friction in the compiled machine: what sticks stays, what slides stops where it should; closed forms and solve_ivp."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from plant_cases import chain, go, home, machine, plain, slide, without_terms
from scipy.integrate import solve_ivp
from scipy.optimize import lsq_linear
from small_robots import five_bar

import dynident as di
from dynident.control import OpenLoop
from dynident.drive import Drive, Motor, Transmission
from dynident.friction import Asymmetric, Coulomb, Stribeck, Viscous
from dynident.mechanics import inverse_dynamics, mass_matrix
from dynident.mechanics.functions import at_rest
from dynident.mechanism import from_com
from dynident.simulate import VirtualRobot

METHODS = [("coupled", "exact"), ("decoupled", "exact"), ("decoupled", "iterated"), ("decoupled", "delayed")]
G = 9.81


def incline(angle: float, mass: float = 2.0) -> di.Mechanism:
    """Return a block on an inclined plane that falls with growing s."""
    body = di.Body("load", from_com(mass, np.zeros(3), 0.01 * np.eye(3)))
    joint = di.Joint("s", "prismatic", "base", "load")
    pull = (0.0, -G * np.cos(angle), G * np.sin(angle))
    return di.Mechanism("incline", (di.Body("base"), body), (joint,), terms=(), gravity=pull)


def run(robot: VirtualRobot, rows: int, x: object = None, v: object = None, **more: object) -> tuple[np.ndarray, ...]:
    """Return coordinates and speeds at every step."""
    found = go(robot, rows, x, v, **more).truth.motion
    return found.q, found.v


@pytest.mark.parametrize(("method", "loop"), METHODS)
@pytest.mark.parametrize("where", ["joint", "rotor"])
def test_a_block_on_an_incline_stays_below_breakaway_and_slides_above(method: str, loop: str, where: str) -> None:
    mass, mu = 2.0, 0.3
    for angle, holds in ((np.arctan(mu) - 1e-6, True), (np.arctan(mu) + 0.05, False)):
        level = mu * mass * G * np.cos(angle)
        law = Coulomb().using(fc=level if where == "joint" else level / 5.0)
        drive = Drive("s", Motor(1.0, inertia=0.16), Transmission(5.0), friction=law if where == "rotor" else None)
        options = {"method": method, "loop": loop}
        friction = {"s": law} if where == "joint" else {}
        x, v = run(machine(incline(angle, mass), [drive], friction=friction), 10_001, [0.1], **options)
        if holds:
            assert np.abs(x - 0.1).max() < 1e-12
            assert np.abs(v).max() < 1e-13
        else:
            rate = (mass * G * np.sin(angle) - level) / (mass + 0.16 * 25.0)
            late = 1e-12 + (2e-3 if loop == "delayed" else 0.0)
            assert x[-1, 0] - 0.1 == pytest.approx(0.5 * rate * 100.0, rel=late)


@pytest.mark.parametrize("speed", [0.7, -0.7])
@pytest.mark.parametrize("push", [0.0, 3.0, -2.0])
def test_a_sliding_block_stops_at_the_time_and_place_of_the_closed_form(speed: float, push: float) -> None:
    mass, level, h = 2.0, 4.0, 1.3e-3
    robot = machine(slide(mass), law=OpenLoop(torque=[push]), step=h, friction={"s": Coulomb().using(fc=level)})
    x, v = run(robot, 4000, v=[speed])
    rate = (level - push * np.sign(speed)) / mass
    stop = abs(speed) / rate
    t = np.arange(4000) * h
    moving = t < stop - h
    assert np.abs(v[moving, 0] - np.sign(speed) * (abs(speed) - rate * t[moving])).max() < 1e-12
    still = t > stop + h
    assert np.abs(v[still]).max() < 1e-15
    assert x[-1, 0] == pytest.approx(0.5 * speed * abs(speed) / rate, rel=1e-11)
    assert np.ptp(x[still]) < 1e-15


def test_a_block_thrown_uphill_turns_back_with_the_friction_turned_round() -> None:
    angle, mass, level, h = 0.6, 2.0, 3.0, 1.7e-3
    x, v = run(machine(incline(angle, mass), step=h, friction={"s": Coulomb().using(fc=level)}), 1500, v=[-1.0])
    t = np.arange(1500) * h
    up, down = G * np.sin(angle) + level / mass, G * np.sin(angle) - level / mass
    top = 1.0 / up
    exact = np.where(t < top, -t + 0.5 * up * t**2, -0.5 / up + 0.5 * down * (t - top) ** 2)
    assert np.abs(x[:, 0] - exact).max() < 1e-11
    assert v[-1, 0] == pytest.approx(down * (t[-1] - top), rel=1e-11)


def stick_slip(law: object, mass: float, spring: float, pace: float, end: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the times and places at which a block that a spring pulls along begins to stick and to slip, from events."""
    breakaway = float(law(1e-12))
    marks, t, q = [], 0.0, 0.0
    while t < end:
        t = (breakaway / spring + q) / pace  # sticks until the spring is strong enough
        marks.append((t, q))

        def rate(s: float, y: np.ndarray) -> list[float]:
            return [y[1], (spring * (pace * s - y[0]) - float(law(max(y[1], 1e-12)))) / mass]

        def stops(s: float, y: np.ndarray) -> float:
            return y[1] - 1e-9

        stops.terminal, stops.direction = True, -1
        slip = solve_ivp(rate, (t, t + 10.0), [q, 1e-8], events=stops, rtol=1e-10, atol=1e-13)
        t, q = slip.t[-1], slip.y[0, -1]
        marks.append((t, q))
    return np.array(marks).T


def test_stick_slip_of_a_spring_driven_block_is_that_of_an_event_solver() -> None:
    law = (Stribeck() + Viscous()).using(fc=2.0, fs=3.0, vs=0.05, fv=0.5)
    mass, spring, pace, h, steps = 1.5, 80.0, 0.1, 5e-4, 8000
    robot = slide(mass)
    robot = robot.with_terms(("k",)).with_parameters(robot.with_terms(("k",)).parameters.replace({"k_s": spring}))
    x, v = run(machine(robot, step=h, friction={"s": law}), steps, disturbance=lambda s: [spring * pace * s])
    t, place = stick_slip(law, mass, spring, pace, steps * h)
    moving = v[:, 0] > 1e-9
    begins = np.flatnonzero(moving[1:] & ~moving[:-1]) * h
    ends = np.flatnonzero(~moving[1:] & moving[:-1]) * h
    count = ends.size
    assert count >= 3
    assert np.abs(begins[:count] - t[0 : 2 * count : 2]).max() < 4.0 * h
    assert np.abs(ends - t[1 : 2 * count : 2]).max() < 4.0 * h
    rests = x[np.round(ends / h).astype(int) + 5, 0]
    np.testing.assert_allclose(rests, place[1 : 2 * count : 2], rtol=2e-3)


def swing(h: float, duration: float = 2.0, law: object = None) -> tuple[np.ndarray, np.ndarray]:
    """Return positions and energies of a pendulum of two links with dry friction that is released at rest."""
    robot = without_terms(chain(2))
    law = law or (Coulomb() + Viscous()).using(fc=0.15, fv=0.02)
    rubs = machine(robot, step=h, friction=dict.fromkeys(robot.coordinate_names, law))
    truth = go(rubs, round(duration / h) + 1, [0.4, 0.3], [1.0, -2.0]).truth
    return truth.motion.q, truth.energy.sum(axis=1)


def test_friction_never_adds_energy_and_the_pendulum_comes_to_rest() -> None:
    x, energy = swing(1e-3, 12.0)
    scale = np.ptp(energy)
    assert np.diff(energy).max() < 1e-9 * scale
    assert np.ptp(x[-1000:], axis=0).max() < 1e-13
    assert np.abs(x[-1]).max() > 1e-3  # it rests where friction holds it, beside the lowest place


def test_reversals_keep_more_than_the_first_order_and_sliding_the_fourth() -> None:
    ends = [swing(h)[0][-1] for h in (4e-3, 2e-3, 1e-3, 6.25e-5)]
    error = [np.abs(x - ends[-1]).max() for x in ends[:-1]]
    assert error[0] / error[2] > 8.0  # 16 when each is located exactly in the same way
    slid = [swing(h, 0.2)[0][-1] for h in (4e-3, 2e-3, 1e-3, 2.5e-4)]
    error = [np.abs(x - slid[-1]).max() for x in slid[:-1]]
    assert error[0] / error[1] > 12.0
    assert error[1] / error[2] > 12.0


def test_an_arm_under_gravity_sticks_where_friction_can_hold_it() -> None:
    robot = without_terms(chain(3))
    x0 = np.array([0.4, 0.7, -0.5])
    load = inverse_dynamics(robot, at_rest(robot, x0))[0]
    for share, moves in ((1.0 + 1e-6, ()), (0.999, (1,))):
        level = np.abs(load) * np.where(np.arange(3) == 1, share, 1.3) + 0.01 * (np.arange(3) != 1)
        friction = {name: Coulomb().using(fc=f) for name, f in zip(robot.coordinate_names, level, strict=True)}
        truth = go(machine(robot, friction=friction), 10_001 if not moves else 60, x0).truth
        x = truth.motion.q - x0
        assert np.abs(np.delete(x, moves, axis=1)).max() < 1e-12
        assert all(np.abs(x[-1, j]) > 1e-9 for j in moves)
        a = np.zeros(3)
        for j in moves:
            a[j] = -np.sign(load[j]) * (np.abs(load[j]) - level[j]) / mass_matrix(robot, x0)[0, j, j]
        np.testing.assert_allclose(truth.motion.a[0], a, atol=1e-10)
        needed = -inverse_dynamics(robot, di.Motion([0.0], x0[None], np.zeros((1, 3)), a[None]))[0]
        np.testing.assert_allclose(truth.joint_friction[0], needed, atol=1e-10)


def test_friction_in_passive_joints_holds_a_five_bar_linkage_at_rest() -> None:
    robot = without_terms(five_bar())
    start = home(robot)
    friction = {name: Coulomb().using(fc=0.4) for name in robot.tree.coordinates}  # six joints for two freedoms
    torque = [0.6, -0.5]  # more than the motors' joints hold alone
    for method, loop in METHODS[:2]:
        drives, how = plain(robot, inertia=0.01), {"method": method, "loop": loop}
        x, v = run(machine(robot, drives, OpenLoop(torque=torque), 5e-4, friction=friction), 4000, start, **how)
        assert np.abs(x - start).max() < 1e-12
        loose = machine(robot, drives, OpenLoop(torque=torque), 5e-4)
        assert np.abs(run(loose, 20, start, **how)[0] - start).max() > 1e-6
        x, v = run(machine(robot, drives, step=5e-4, friction=friction), 4000, start, np.full(start.size, 0.05))
        assert np.abs(v[-1]).max() < 1e-12
        assert np.ptp(x[-1000:], axis=0).max() < 1e-12


def test_directions_hold_with_levels_of_their_own() -> None:
    law = Asymmetric(Coulomb()).using(fcp=3.0, fcn=1.0)
    for push, holds in ((2.9, True), (3.1, False), (-0.9, True), (-1.1, False)):
        x, _ = run(machine(slide(2.0), law=OpenLoop(torque=[push]), friction={"s": law}), 1000)
        expected = 0.0 if holds else 0.5 * np.sign(push) * 0.05 * 0.999**2
        assert x[-1, 0] == pytest.approx(expected, abs=1e-12)


def test_a_rotor_before_an_elastic_shaft_sticks_and_stops() -> None:
    gear = Transmission(10.0, inertias=(1e-3,), stiffness=(50.0,), damping=(0.05,))
    law = Coulomb().using(fc=0.2)
    drive = Drive("s", Motor(1.0, inertia=0.01), gear, friction=law)
    for push, holds in ((0.199, True), (0.25, False)):
        theta = go(machine(slide(2.0), [drive], OpenLoop(torque=[push * 10.0]), 2e-4), 5000).truth.theta[:, 0]
        if holds:
            assert np.abs(theta).max() < 1e-14
        else:
            mass = 0.011 + 2.0 / 100.0
            assert theta[-1] == pytest.approx(0.5 * (push - 0.2) / mass * (4999 * 2e-4) ** 2, rel=0.01)
    theta = go(machine(slide(2.0), [drive], step=2e-4), 20_000, v=[0.4]).truth.theta[:, 0]
    assert np.ptp(theta[-2000:]) < 1e-12
    # The rotor stops and is let go again while the load swings on the shaft: between these bounds of the work of friction.
    energy = 0.5 * (0.011 * 100.0 + 2.0) * 0.4**2
    assert 0.5 * energy / 0.2 < theta[-1] <= energy / 0.2 + 1e-9


@pytest.mark.parametrize("seed", range(6))
def test_accelerations_at_rest_are_those_of_gauss_principle(seed: int) -> None:
    """Friction makes the kinetic metric of the acceleration as small as its levels allow: a bounded least-squares problem."""
    generator = np.random.default_rng(seed)
    robot = without_terms(chain(3))
    x = generator.uniform(-1.5, 1.5, 3)
    load = inverse_dynamics(robot, at_rest(robot, x))[0]
    torque = generator.uniform(-4.0, 4.0, 3)
    level, rotor, ratio, inertia = generator.uniform(0.0, 3.0, 3), generator.uniform(0.0, 0.4, 3), 5.0, 0.002
    drives = [
        Drive(a.name, Motor(1.0, inertia=inertia), Transmission(ratio), friction=Coulomb().using(fc=f))
        for a, f in zip(robot.actuators, rotor, strict=True)
    ]
    friction = {name: Coulomb().using(fc=f) for name, f in zip(robot.coordinate_names, level, strict=True)}
    truth = go(machine(robot, drives, OpenLoop(torque=torque), friction=friction), 4, x).truth
    M = mass_matrix(robot, x)[0] + ratio**2 * inertia * np.eye(3)
    root = np.linalg.inv(np.linalg.cholesky(M))
    C = np.vstack([np.eye(3), ratio * np.eye(3)])
    most = np.concatenate([level, rotor])
    best = lsq_linear(root @ C.T, root @ (torque - load), (-most, most), tol=1e-15)
    a = np.linalg.solve(M, torque - load - C.T @ best.x)
    np.testing.assert_allclose(truth.motion.a[0], a, atol=1e-6)
    rub = truth.joint_friction[0] + ratio * truth.friction[0]
    np.testing.assert_allclose(M @ truth.motion.a[0], torque - load - rub, atol=1e-9)


def test_a_falling_arm_sticks_and_slides_as_in_a_stiffened_mujoco() -> None:
    """MuJoCo's dry friction is a soft constraint, which is made stiff here."""
    mujoco = pytest.importorskip("mujoco")
    path = Path(__file__).parents[3] / "benchmarks" / "arm.urdf"
    q, level, step, steps = np.array([0.1, -0.5, 0.4, 0.2, 0.3, 0.1]), 3.0, 1.25e-4, 2000
    robot = without_terms(di.Mechanism.from_urdf(path))
    friction = {name: Coulomb().using(fc=level) for name in robot.coordinate_names}
    x = run(machine(robot, step=step, friction=friction), steps + 1, q)[0][-1]
    model = mujoco.MjModel.from_xml_path(str(path))
    model.opt.timestep, model.opt.integrator = step, mujoco.mjtIntegrator.mjINT_RK4
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT | mujoco.mjtDisableBit.mjDSBL_LIMIT
    model.dof_frictionloss[:] = level
    model.dof_solimp[:, :2], model.dof_solref[:, 0] = 0.999, 2.0 * step
    data = mujoco.MjData(model)
    data.qpos[:] = q
    for _ in range(steps):
        mujoco.mj_step(model, data)
    moved = np.abs(x - q)
    assert moved.max() > 0.1
    assert moved.min() < 1e-3  # some fall, some hardly move
    assert np.abs(data.qpos - x).max() < 1e-5
