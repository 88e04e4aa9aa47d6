"""The compiled plant: energy, order of the methods, and independent integrations of the same equations."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from loop_cases import four_bar, rssr, slider_crank, welded_four_bar
from random_mechanisms import coupled, every_kind
from scipy.linalg import expm
from simulate_cases import arm

import dynident as di
from dynident.control import PID, Cascade, ComputedTorque, CurrentLoop, OpenLoop
from dynident.drive import Drive, Encoder, Motor, Transmission
from dynident.friction import Asymmetric, Coulomb, Dahl, GeneralisedMaxwellSlip, LuGre, Sigmoid, SmoothStribeck, Stribeck, Tanh, Viscous
from dynident.mechanics import actuator_jacobian, forward_dynamics, inverse_dynamics
from dynident.mechanics.batch import at_rest
from dynident.mechanism.inertia import from_com
from dynident.robots import cft, dualv, five_bar
from dynident.simulate.controllers import tables, tick_steps
from dynident.simulate.plant import FINE, LOST_CLOSURE, UNSTABLE, Assembly, build, inputs_of, loop_gain, no_inputs


def plain(robot: di.Mechanism, **motor: float) -> list[Drive]:
    """Return drives without anything of their own: the current is the torque."""
    return [Drive(a.name, Motor(1.0, **motor)) for a in robot.actuators]


def free(robot: di.Mechanism, x: np.ndarray, v: np.ndarray | None = None, step: float = 1e-3, **options: object) -> Assembly:
    """Return a robot that nothing drives."""
    drives = options.pop("drives", plain(robot))
    return build(robot, drives, OpenLoop(torque=np.zeros(len(drives))), step=step, x=x, v=v, **options)


def go(
    assembly: Assembly, steps: int, law: object = None, motion: di.Motion | None = None, every: int = 1, **more: object
) -> np.ndarray:
    """Run and return the record; without a reference everything wanted is zero."""
    robot, k = assembly.mechanism, assembly.plant.drive.shape[0]
    if motion is None:
        x = np.array([assembly.plant.y[robot.tree.coordinates.index(name)] for name in robot.coordinate_names])
        motion = at_rest(robot, x)
    inputs = more.pop("inputs", no_inputs(k))
    wanted = tables(robot, law, motion, tick_steps(assembly.controller), more.pop("noise", None), more.pop("command", None))
    record = np.zeros((steps // every + 1, assembly.columns.width))
    status, done, _ = assembly.run(steps, wanted, inputs, record, every)
    assert status == FINE
    assert done == assembly.done
    return record[: -(-steps // every)]


def chain(links: int = 3) -> di.Mechanism:
    """Return a pendulum of several links that all swing, in three dimensions."""
    rows = [(0.0, np.pi / 2, 0.2, 0.0), (0.4, 0.0, 0.0, 0.0), (0.3, 0.4, 0.1, 0.0)][:links]
    robot = di.Mechanism.from_dh(rows, name="pendulum")
    values = np.zeros(len(robot.parameters))
    for i in range(links):
        values[10 * i : 10 * i + 10] = from_com(2.0 - 0.5 * i, np.array([-0.2, 0.03, 0.02]), np.diag([0.02, 0.03, 0.025]))
    return robot.with_parameters(robot.parameters.replace(values))


# ---- equation of motion ----------------------------------------------------------------------------------------------


def accelerations(robot: di.Mechanism, x: np.ndarray, v: np.ndarray, tau: np.ndarray, **options: object) -> np.ndarray:
    """Return the accelerations of the first evaluation."""
    law = OpenLoop(torque=tau)
    assembly = build(robot, plain(robot), law, step=1e-9, x=x, v=v, **options)
    return go(assembly, 1, law, command=tau[None])[0, assembly.columns.a]


@pytest.mark.parametrize("make", [every_kind, coupled, four_bar, slider_crank, rssr, welded_four_bar, five_bar.mechanism, dualv.mechanism])
def test_accelerations_are_those_of_forward_dynamics(make: object) -> None:
    robot = make()
    rng = np.random.default_rng(2)
    x = rng.normal(size=robot.dof) if not robot.loops else robot.closure.home[robot.closure.independent] + 0.05
    v, tau = rng.normal(size=robot.dof), rng.normal(size=len(robot.actuators))
    force = actuator_jacobian(robot, x)[0].T @ tau
    wanted = forward_dynamics(robot, x, v, force)[0]
    ours = accelerations(robot, x, v, tau)
    np.testing.assert_allclose(ours, wanted, rtol=1e-8, atol=1e-8 * np.abs(wanted).max())
    split = accelerations(robot, x, v, tau, method="decoupled") if not robot.loops and robot.dof == len(robot.actuators) else ours
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


def without_terms(robot: di.Mechanism) -> di.Mechanism:
    """Return the robot without friction, offsets and springs."""
    values = robot.parameters.values.copy()
    names = np.array([name.split("_")[0] for name in robot.parameters.names])
    values[np.isin(names, ("fv", "fc", "off", "k", "fvp", "fvn", "fcp", "fcn"))] = 0.0
    return robot.with_parameters(robot.parameters.replace(values))


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
        name: Sigmoid(2).using(Bv=Bv[i], Bf1=B1[i], Bf2=B2[i], w1=w1[i], w2=w2[i]) for i, name in enumerate(robot.coordinate_names)
    }
    law = OpenLoop(torque=tau)
    assembly = build(robot, plain(robot), law, step=1e-4, x=np.ravel(q0), friction=laws)
    go(assembly, 1000, law, command=tau[None])
    x = [assembly.plant.y[robot.tree.coordinates.index(name)] for name in robot.coordinate_names]
    np.testing.assert_allclose(x, [0.273832, 0.030732, -1.010267, 2.003791], atol=2e-6)
    np.testing.assert_allclose(assembly.plant.y[-4:], [0.044022, 0.567445, -0.256833, 0.276094], atol=2e-6)


def slide(mass: float = 3.0, **terms: float) -> di.Mechanism:
    """Return one mass on a slide."""
    body = di.Body("load", from_com(mass, np.zeros(3), 0.01 * np.eye(3)))
    return di.Mechanism("slide", (di.Body("base"), body), (di.Joint("s", "prismatic", "base", "load", terms=terms),), terms=())


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
    assert record.shape[0] == 3000
    energy = assembly.plant.y[1] ** 2 * 1.5 / 2.0 + assembly.plant.y[3] ** 2 * 0.5 / 2.0
    momentum = 1.5 * assembly.plant.y[1] + 0.5 * assembly.plant.y[3]
    assert momentum == pytest.approx(1.5, rel=1e-9)
    assert energy <= 0.75 + 1e-9
    assert assembly.plant.y[3] > 0.0


@pytest.mark.parametrize(("torque", "speed"), [(2.0, 1.0), (2.0, -1.0), (-2.0, 1.0), (-2.0, -1.0)])
def test_losses_of_the_gear_follow_the_direction_of_power(torque: float, speed: float) -> None:
    gear = Transmission(10.0, efficiency=0.8)
    drive = Drive("s", Motor(1.0), gear)
    law = OpenLoop(torque=[torque * 10.0])
    assembly = build(slide(1.0), [drive], law, step=1e-6, x=[0.0], v=[speed])
    record = go(assembly, 1, law, command=np.array([[torque * 10.0]]))
    assert record[0, assembly.columns.torque][0] == pytest.approx(float(gear.output_torque(torque, speed)))


# ---- friction --------------------------------------------------------------------------------------------------------

STATIC = [
    (Coulomb() + Viscous()).using(fc=1.2, fv=0.3),
    (Stribeck() + Viscous()).using(fc=1.0, fs=1.5, vs=0.2, fv=0.1),
    Stribeck(None).using(fc=1.0, fs=1.5, vs=0.2, delta=1.3),
    Tanh().using(fc=1.1, beta=20.0),
    SmoothStribeck().using(fc=1.0, fcs=0.4, alpha=8.0, beta=30.0),
    Sigmoid(2).using(Bv=0.2, Bf1=0.7, Bf2=-0.2, w1=12.0, w2=3.0),
    Asymmetric().using(fcp=1.2, fcn=0.9, fvp=0.3, fvn=0.4),
]


@pytest.mark.parametrize("law", STATIC, ids=lambda law: law.law.name)
@pytest.mark.parametrize("speed", [-0.7, -0.05, 0.0, 0.05, 0.7])
def test_static_laws_are_those_of_the_friction_room(law: object, speed: float) -> None:
    robot = slide(2.0)
    assembly = free(robot, np.zeros(1), np.array([speed]), step=1e-6, friction={"s": law})
    row = go(assembly, 1)[0]
    assert row[assembly.columns.joint_rub][0] == pytest.approx(float(law(speed)), abs=1e-12)
    assert row[assembly.columns.a][0] == pytest.approx(-float(law(speed)) / 2.0, abs=1e-12)
    motor = Drive("s", Motor(1.0), Transmission(4.0), friction=law)
    on_rotor = free(robot, np.zeros(1), np.array([speed / 4.0]), step=1e-6, drives=[motor])
    assert go(on_rotor, 1)[0, on_rotor.columns.rub][0] == pytest.approx(float(law(speed)), abs=1e-12)


def test_coulomb_friction_stops_and_holds_without_chatter() -> None:
    law = Coulomb().using(fc=5.0)
    robot = slide(2.0)
    open_loop = OpenLoop(torque=[4.0])
    assembly = build(robot, plain(robot), open_loop, step=1e-3, x=[0.0], v=[0.5], friction={"s": law})
    speed = go(assembly, 3000, open_loop, command=np.array([[4.0]]))[:, assembly.columns.v][:, 0]
    slope = (5.0 - 4.0) / 2.0
    t = np.arange(3000) * 1e-3
    moving = t < 0.5 / slope - 0.01
    np.testing.assert_allclose(speed[moving], (0.5 - slope * t)[moving], atol=3e-3)
    stuck = speed[-500:]
    assert np.abs(stuck).max() < 5.0 * 1e-3 / 2.0  # creeps below v_s = f h / m
    assert np.ptp(stuck) < 1e-9


DYNAMIC = [
    LuGre(1e4, 60.0, 1.0, 1.5, 0.05, fv=0.4),
    Dahl(1e4, 1.2, fv=0.3),
    GeneralisedMaxwellSlip((6e3, 4e3), (0.6, 0.4), 1.0, 1.4, 0.05, 40.0, (3.0, 2.0), fv=0.2),
]


@pytest.mark.parametrize("law", DYNAMIC, ids=lambda law: type(law).__name__)
def test_dynamic_laws_follow_their_own_simulation(law: object) -> None:
    robot, h = slide(2.0), 2e-4
    t = np.arange(4000) * h
    push = 3.0 * np.sin(2.0 * np.pi * 2.0 * t)[:, None]
    open_loop = OpenLoop(torque=push)
    assembly = build(robot, plain(robot), open_loop, step=h, x=[0.0], friction={"s": law})
    record = go(assembly, t.size, open_loop, command=push)
    v, rub = record[:, assembly.columns.v][:, 0], record[:, assembly.columns.joint_rub][:, 0]
    alone = law.simulate(t, v)
    np.testing.assert_allclose(rub, alone.force, atol=1e-9)
    # and the motion is the one that this friction makes: Newton's law with fine steps
    np.testing.assert_allclose(np.diff(v) / h, (0.5 * (push[1:] + push[:-1])[:, 0] * 0 + push[:-1, 0] - 0.5 * (rub[1:] + rub[:-1])) / 2.0, atol=0.05)


def test_a_law_without_compiled_form_is_named() -> None:
    from dynident.errors import SimulationError
    from dynident.friction import LoadDependent

    with pytest.raises(SimulationError, match="joint|'s'"):
        law = LoadDependent(Coulomb())
        free(slide(), np.zeros(1), friction={"s": law.using(dict.fromkeys(law.parameters, 1.0))})


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


# ---- controllers -----------------------------------------------------------------------------------------------------


def sine(robot: di.Mechanism, x: np.ndarray, period: float, count: int, size: float = 0.1, hertz: float = 1.0) -> di.Motion:
    """Return a motion that starts at rest at x."""
    t = np.arange(count) * period
    w = 2.0 * np.pi * hertz
    one = np.ones(robot.dof)
    q = x + size * (1.0 - np.cos(w * t))[:, None] * one
    return di.Motion(t, q, size * w * np.sin(w * t)[:, None] * one, size * w * w * np.cos(w * t)[:, None] * one)


def test_a_cascade_is_the_loop_written_in_numpy() -> None:
    ratio, mass, Kt, R, L = 80.0, 4.0, 0.1, 0.6, 1e-3
    motor = Motor(Kt, R, L, inertia=1e-4, current_limit=3.0, voltage_limit=9.0)
    resolution = 2.0 * np.pi / 2000.0
    drive = Drive("s", motor, Transmission(ratio), encoder=Encoder(resolution, filter=200.0))
    law = Cascade(
        30.0,
        0.05,
        1.5,
        position_cycle=2e-3,
        velocity_cycle=5e-4,
        current=CurrentLoop(2.0, 400.0, 1.25e-4),
        velocity_feedforward=0.8,
        position_filter=150.0,
        velocity_filter=300.0,
        speed_limit=0.6,
    )
    robot, h = slide(mass), 1.25e-4
    motion = sine(robot, np.zeros(1), 5e-4, 2000, 0.15)
    assembly = build(robot, [drive], law, step=h, x=[0.0])
    record = go(assembly, 8000, law, motion)

    J = mass + ratio**2 * 1e-4
    y = np.zeros(3)  # position, speed, current
    share = lambda f, T: -np.expm1(-2.0 * np.pi * f * T)  # noqa: E731
    seen = estimate = wish = integral = asked = electric = volts = 0.0
    rows, cut = [], 0

    def rate(y: np.ndarray) -> np.ndarray:
        return np.array([y[1], ratio * Kt * y[2] / J, (volts - R * y[2] - Kt * ratio * y[1]) / L])

    for step in range(8000):
        row = step // 4
        if step % 4 == 0:
            old, seen = seen, resolution * np.floor(y[0] * ratio / resolution + 0.5) / ratio
            estimate = estimate + share(200.0, 5e-4) * ((seen - old) / 5e-4 - estimate) if step else 0.0
        if step % 16 == 0:
            speed = np.clip(30.0 * (motion.q[row, 0] - seen) + 0.8 * motion.v[row, 0], -0.6, 0.6)
            wish += (share(150.0, 2e-3) if step else 1.0) * (speed - wish)
        if step % 4 == 0:
            error = ratio * (wish - estimate)
            new = integral + 1.5 * error * 5e-4
            s = share(300.0, 5e-4) if step else 1.0
            smooth = asked + s * (0.05 * error + new - asked)
            limited = np.clip(smooth, -3.0, 3.0)
            flag = limited != smooth
            if flag and (smooth - limited) * error > 0.0:
                new = integral
                limited = np.clip(asked + s * (0.05 * error + new - asked), -3.0, 3.0)
            integral, asked = new, limited
        error = asked - y[2]
        new = electric + 400.0 * error * h
        volts = np.clip(2.0 * error + new, -9.0, 9.0)
        if volts != 2.0 * error + new:
            flag = True
            if (2.0 * error + new - volts) * error > 0.0:
                new = electric
                volts = np.clip(2.0 * error + new, -9.0, 9.0)
        electric = new
        cut += bool(flag)
        rows.append([*y, volts])
        k1 = rate(y)
        k2 = rate(y + 0.5 * h * k1)
        k3 = rate(y + 0.5 * h * k2)
        k4 = rate(y + h * k3)
        y = y + h / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4)
    c = assembly.columns
    ours = np.column_stack([record[:, s] for s in (c.x, c.v, c.current, c.voltage)])
    np.testing.assert_allclose(ours, np.array(rows), atol=1e-8)
    assert assembly.saturated[0] == cut > 0


def test_pid_with_its_own_model_as_feedforward_stays_on_the_reference() -> None:
    robot = arm()
    x = np.array([0.2, 0.3, -0.4])
    law = PID(3000.0, 150.0, 100.0, cycle=1e-3, feedforward=robot)
    motion = sine(robot, x, 1e-3, 1000)
    drives = [Drive(a.name, Motor(1.0), encoder=Encoder(velocity="exact")) for a in robot.actuators]
    assembly = build(robot, drives, law, step=2.5e-4, x=x)
    record = go(assembly, 4000, law, motion, every=4)
    assert np.abs(record[:, assembly.columns.x] - motion.q).max() < 2e-3
    bare = PID(3000.0, 150.0, cycle=1e-3)
    assembly = build(robot, drives, bare, step=2.5e-4, x=x)
    record = go(assembly, 4000, bare, motion, every=4)
    assert np.abs(record[:, assembly.columns.x] - motion.q).max() > 5e-3


@pytest.mark.parametrize("make", [arm, five_bar.mechanism, dualv.mechanism])
@pytest.mark.parametrize("on", ["measurement", "reference"])
def test_computed_torque_with_the_true_model(make: object, on: str) -> None:
    robot = make()
    x = np.array([0.2, 0.3, -0.4]) if not robot.loops else robot.closure.home[robot.closure.independent].copy()
    law = ComputedTorque(robot, 2500.0, 70.0, cycle=1e-3, on=on)
    motion = sine(robot, x, 1e-3, 500, 0.02)
    drives = [Drive(a.name, Motor(1.0), encoder=Encoder(velocity="exact")) for a in robot.actuators]
    assembly = build(robot, drives, law, step=2.5e-4, x=x)
    record = go(assembly, 2000, law, motion, every=4)
    assert np.abs(record[:, assembly.columns.x] - motion.q).max() < 2e-4
    assert np.abs(record[:, assembly.columns.x] - motion.q).max() > 0.0


def test_redundant_motors_share_the_load_and_carry_the_preload() -> None:
    robot = without_terms(dualv.mechanism())
    x = robot.closure.home[robot.closure.independent].copy()
    motion = sine(robot, x, 1e-3, 200, 0.01)
    preload = np.array([1.0, -1.0, 1.0, -1.0])
    A = actuator_jacobian(robot, x)[0]
    internal = preload - A @ np.linalg.lstsq(A, preload, rcond=None)[0]
    for law in (ComputedTorque(robot, 2500.0, 70.0, cycle=1e-3, preload=preload), PID(800.0, 10.0, cycle=1e-3, project=True, preload=preload)):
        assembly = build(robot, plain(robot), law, step=2.5e-4, x=x)
        record = go(assembly, 4, law, motion)
        tau = record[0, assembly.columns.motor]
        part = tau - A @ np.linalg.lstsq(A, tau, rcond=None)[0]
        np.testing.assert_allclose(part, internal, atol=1e-8)


# ---- going on, and stopping ------------------------------------------------------------------------------------------


def test_a_run_in_pieces_is_the_run_in_one_go() -> None:
    robot = arm()
    x = np.array([0.2, 0.3, -0.4])
    law = Cascade(20.0, 0.5, 5.0, position_cycle=2e-3, velocity_cycle=1e-3)
    friction = LuGre(1e4, 60.0, 1.0, 1.5, 0.05, fv=0.4)
    motion, ends = sine(robot, x, 1e-3, 500), []
    for pieces in ([2000], [1, 7, 500, 3, 1489]):
        drives = [Drive(a.name, Motor(0.1, inertia=1e-4), Transmission(100.0)) for a in robot.actuators]
        assembly = build(robot, drives, law, step=2.5e-4, x=x, friction={robot.coordinate_names[1]: friction})
        wanted = tables(robot, law, motion, tick_steps(assembly.controller))
        record = np.zeros((200, assembly.columns.width))
        for steps in pieces:
            assert assembly.run(steps, wanted, no_inputs(3), record, 10)[0] == FINE
        ends.append((assembly.plant.y.copy(), record.copy()))
    np.testing.assert_array_equal(ends[0][0], ends[1][0])
    np.testing.assert_array_equal(ends[0][1], ends[1][1])


def test_unstable_gains_stop_the_run_with_time_and_joint() -> None:
    robot = arm()
    x = np.array([0.2, 0.3, -0.4])
    law = PID(1e7, 0.0, cycle=1e-2)
    assembly = build(robot, plain(robot), law, step=1e-3, x=x + 0.01)
    wanted = tables(robot, law, at_rest(robot, x), tick_steps(assembly.controller))
    status, step, which = assembly.run(100_000, wanted, no_inputs(3), np.zeros((0, assembly.columns.width)))
    assert status == UNSTABLE
    assert 0 < step < 100_000
    assert 0 <= which < 3


def test_a_motion_into_a_singularity_is_reported() -> None:
    robot = without_terms(four_bar(lengths=(0.5, 0.6, 0.5, 0.9)))  # the crank cannot turn fully
    law = OpenLoop(torque=[5.0])
    assembly = build(robot, plain(robot), law, step=1e-3, x=robot.closure.home[robot.closure.independent])
    wanted = tables(robot, law, at_rest(robot, robot.closure.home[robot.closure.independent]), 1, command=np.array([[5.0]]))
    status, step, _ = assembly.run(20_000, wanted, no_inputs(1), np.zeros((0, assembly.columns.width)))
    assert status == LOST_CLOSURE
    assert step > 10


def test_python_controllers_measure_and_hold() -> None:
    robot = arm()
    x = np.array([0.2, 0.3, -0.4])

    class Gravity:
        cycle = 1e-3
        command = "torque"

    law = Gravity()
    assembly = build(robot, plain(robot, current_limit=40.0), law, step=5e-4, x=x)
    wanted = tables(robot, law, at_rest(robot, x), tick_steps(assembly.controller))
    for _ in range(100):
        rho, rho_v, q, v, current = assembly.measure(wanted)
        assert rho.shape == rho_v.shape == q.shape == v.shape == current.shape == (3,)
        cut = assembly.hold("torque", inverse_dynamics(robot, at_rest(robot, q))[0])
        assert not cut.any()
        assert assembly.run(2, wanted, no_inputs(3), np.zeros((0, assembly.columns.width)))[0] == FINE
    np.testing.assert_allclose(assembly.plant.y[:3], x, atol=1e-9)
    assert assembly.hold("current", [50.0, 0.0, -50.0]).tolist() == [True, False, True]
    assert assembly.plant.drive[:, 10].tolist() == [40.0, 0.0, -40.0]
