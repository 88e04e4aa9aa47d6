"""2-PRR: closed forms against the general solver, exact base parameters, the thesis' numbers."""

from __future__ import annotations

import numpy as np
import pytest
from oracle_runs import GEAR, VISCOUS, WAYS, assert_same, end_of, machine, solved

import dynident as di
from dynident_papers.robots import prr2

FRICTION = {"Fc1": 44.672, "Fc2": 41.8698, "c1": 6.6421, "c2": 2.4614}  # Table 6.2
UNEQUAL = {**FRICTION, "m4": 1.3, "m5": 0.8, "I3": 0.03, "I5": 0.05}  # bars that differ, so that no symmetry hides an error


def smooth_motion(samples: int = 150, seed: int = 3) -> di.Motion:
    generator = np.random.default_rng(seed)
    C, D = generator.uniform(-0.06, 0.06, (2, 2, 4))
    return prr2.fourier(np.linspace(0.0, 2.4, samples), prr2.START, C, D, prr2.FUNDAMENTAL)


def inside(samples: int = 40, seed: int = 0) -> np.ndarray:
    (l1, u1), (l2, u2) = prr2.POSITION_LIMITS
    return np.random.default_rng(seed).uniform((l1, l2), (u1, u2), (samples, 2))


@pytest.mark.parametrize("assembly", prr2.ASSEMBLY_MODES)
def test_kinematics_go_round(assembly: str) -> None:
    rho = inside()
    place = prr2.forward_kinematics(rho, assembly)
    assert np.all((place[:, 1] < 0) == (assembly == "below"))
    both = prr2.inverse_kinematics(place)
    np.testing.assert_allclose(both[:, 0], rho, atol=1e-12)
    np.testing.assert_allclose(prr2.forward_kinematics(both[:, 1], assembly), place, atol=1e-12)
    # bars as long as they are, both ends
    np.testing.assert_allclose(np.hypot(place[:, 0] - prr2.SPACING / 2 - rho[:, 0], place[:, 1]), prr2.BAR)
    np.testing.assert_allclose(np.hypot(prr2.RAIL - rho[:, 1] - place[:, 0] - prr2.SPACING / 2, place[:, 1]), prr2.BAR)
    assert np.isnan(prr2.inverse_kinematics([0.5, -0.7])).all()


def test_forward_kinematics_equal_the_general_solver() -> None:
    motion = smooth_motion()
    robot = prr2.mechanism("full")
    _, place = di.forward_kinematics(robot, motion.q, "platform")
    np.testing.assert_allclose(place[:, :2], prr2.forward_kinematics(motion.q), atol=1e-11)


def test_jacobians_are_derivatives() -> None:
    rho, v = inside(), np.random.default_rng(1).normal(size=(40, 2))
    h = 1e-6
    J, J_dot = prr2.body_jacobians(rho, v)
    platform = (prr2.forward_kinematics(rho + h * v) - prr2.forward_kinematics(rho - h * v)) / (2 * h)
    np.testing.assert_allclose(np.einsum("sij,sj->si", J[:, 5, :2], v), platform, atol=1e-8)
    turn = (prr2.bar_angle(rho + h * v) - prr2.bar_angle(rho - h * v)) / (2 * h)
    np.testing.assert_allclose(np.einsum("sj,sj->s", J[:, 2, 2], v), turn, atol=1e-8)
    ahead, behind = prr2.body_jacobians(rho + h * v, v)[0], prr2.body_jacobians(rho - h * v, v)[0]
    np.testing.assert_allclose(J_dot, (ahead - behind) / (2 * h), atol=1e-7)


@pytest.mark.parametrize("assembly", prr2.ASSEMBLY_MODES)
@pytest.mark.parametrize("parameters", ["paper", "full"])
def test_dynamics_equal_the_general_solver(parameters: str, assembly: str) -> None:
    motion = smooth_motion()
    robot = prr2.mechanism(parameters, UNEQUAL, assembly)
    assert robot.dof == 2
    forces = prr2.inverse_dynamics(motion.q, motion.v, motion.a, UNEQUAL, assembly)
    np.testing.assert_allclose(di.inverse_dynamics(robot, motion), forces, rtol=0, atol=1e-9)
    M, C, g = prr2.dynamics_matrices(motion.q, motion.v, UNEQUAL, assembly)
    np.testing.assert_allclose(di.mass_matrix(robot, motion.q), M, atol=1e-9)
    np.testing.assert_allclose(di.coriolis_matrix(robot, motion.q, motion.v), C, atol=1e-9)
    np.testing.assert_allclose(di.gravity(robot, motion.q), g, atol=1e-9)


def test_power_is_the_rate_of_energy() -> None:
    t = np.linspace(0.0, 2.0, 4001)
    motion = prr2.fourier(t, prr2.START, [[0.05, 0.02], [0.03, -0.04]], [[0.01, 0.03], [0.04, 0.01]], 0.4)
    M, _, _ = prr2.dynamics_matrices(motion.q, motion.v)
    m = prr2.THEORETICAL
    weight = prr2.GRAVITY * (m["m6"] + 0.5 * (m["m3"] + m["m4"] + m["m5"]))  # bars hang by half
    energy = 0.5 * np.einsum("si,sij,sj->s", motion.v, M, motion.v) + weight * prr2.forward_kinematics(motion.q)[:, 1]
    power = np.sum(prr2.inverse_dynamics(motion.q, motion.v, motion.a) * motion.v, axis=1)
    work = np.concatenate([[0.0], np.cumsum(0.5 * (power[1:] + power[:-1]) * np.diff(t))])
    np.testing.assert_allclose(work, energy - energy[0], atol=1e-5)


def test_base_parameters_are_exact() -> None:
    """Rank 8 with 2/L^2 = 4.6760 and 4/L^2 = 9.3520; the thesis prints 4.6625, 4.6417 and 9.3088."""
    robot = prr2.mechanism()
    base = di.base_parameters(robot, order=[prr2.STANDARD_NAMES[name] for name in prr2.BASE_LEADERS])
    assert base.rank == 8
    columns = [robot.parameters.index(prr2.STANDARD_NAMES[name]) for name in prr2.PARAMETER_NAMES]
    assert len(base.unidentifiable) == len(robot.parameters) - 13  # nothing acts beside the thesis' parameters
    exact = prr2.base_matrix()
    np.testing.assert_allclose(base.regrouping[:, columns], exact, atol=1e-10)
    assert round(exact[0, 6], 4) == round(exact[3, 6], 4) == 4.6760
    assert round(exact[2, 6], 4) == -9.3520
    # the closed form says the same: K(columns) = K(leaders) base_matrix, at every sample
    motion = smooth_motion(30)
    Y = prr2.regressor(motion.q, motion.v, motion.a)
    leaders = [prr2.PARAMETER_NAMES.index(name) for name in prr2.BASE_LEADERS]
    np.testing.assert_allclose(Y[:, :, leaders] @ exact, Y, atol=1e-11)
    # and the thesis' coefficients are these, polluted by less than 0.8 % (friction rows by up to 0.06)
    printed, _ = prr2.thesis_system()
    rows = np.array([4, 5, 7, 6])
    np.testing.assert_allclose(printed[rows], exact[:4], atol=0.05)
    assert di.base_parameters(robot).rank == 8  # whatever leads
    assert di.base_parameters(prr2.mechanism("full")).rank == 10  # free centres of mass add two


def test_initial_motion_has_the_condition_number_of_the_digest() -> None:
    motion = prr2.initial_motion()
    leaders = [prr2.PARAMETER_NAMES.index(name) for name in prr2.BASE_LEADERS]
    W = prr2.regressor(motion.q, motion.v, motion.a)[:, :, leaders].reshape(-1, 8)
    assert len(motion) == 1250
    assert np.linalg.cond(W) == pytest.approx(prr2.CONDITION_INITIAL, rel=0.01)
    assert prr2.CONDITION_PATTERNSEARCH < prr2.CONDITION_FMINCON < 1e-2 * np.linalg.cond(W)


def test_fourier_is_consistent() -> None:
    t = np.linspace(0.0, 1.0, 2001)
    motion = prr2.fourier(t, [0.2, 0.25], [[0.1, 0.02], [0.05, 0.0]], [[0.0, 0.03], [0.02, 0.01]], 0.4)
    np.testing.assert_allclose(np.gradient(motion.q, t, axis=0)[1:-1], motion.v[1:-1], atol=1e-6)
    np.testing.assert_allclose(np.gradient(motion.v, t, axis=0)[1:-1], motion.a[1:-1], atol=1e-5)


def test_identification_recovers_the_base_parameters() -> None:
    robot = prr2.mechanism(values=UNEQUAL)
    motion = smooth_motion(600)
    forces = di.inverse_dynamics(robot, motion)
    base = di.base_parameters(robot, order=[prr2.STANDARD_NAMES[name] for name in prr2.BASE_LEADERS])
    fit = di.WLS().fit(di.Regression.from_motion(robot, motion, forces, base=base)).result_
    truth = prr2.base_matrix() @ [UNEQUAL.get(n, prr2.THEORETICAL.get(n, 0.0)) for n in prr2.PARAMETER_NAMES]
    np.testing.assert_allclose(fit.values, truth, rtol=1e-8)


def test_motors_behind_their_gears() -> None:
    robot = prr2.mechanism(geared=True)
    assert robot.actuators[0].ratio == pytest.approx(2 * np.pi * 14 / 0.07)
    assert robot.actuators[0].ratio * robot.actuators[0].gain == pytest.approx(37.95, abs=0.005)  # N/A
    assert prr2.THEORETICAL["m1"] / prr2.MOTOR_RATIO**2 == pytest.approx(1.518e-5, rel=1e-3)  # kg m^2


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: prr2.forward_kinematics([[-0.2, -0.2]]), "further than two bars reach"),
        (lambda: prr2.forward_kinematics([[0.2, 0.2, 0.2]]), r"give \(samples, 2\)"),
        (lambda: prr2.forward_kinematics([[np.nan, 0.2]]), "not finite at sample 0"),
        (lambda: prr2.forward_kinematics([[0.2, 0.2]], "left"), "it is one of below, above"),
        (lambda: prr2.body_jacobians([[-0.103, 0.0]], [[0.0, 0.0]]), "parallel singularity"),
        (lambda: prr2.regressor([[0.2, 0.2]], [[0.0, 0.0]] * 2, [[0.0, 0.0]]), "numbers of samples differ"),
        (lambda: prr2.inverse_dynamics([0.2, 0.2], [0, 0], [0, 0], {"m7": 1.0}), "unknown parameter 'm7'"),
        (lambda: prr2.mechanism("all"), "it is one of paper, full"),
        (lambda: prr2.mechanism(values={"m1": np.inf}), "'m1' is inf"),
        (lambda: prr2.fourier([0.0], [0.2], [[0.1]], [[0.1, 0.2]], 0.4), "give \\(n, harmonics\\)"),
        (lambda: prr2.fourier([0.0], [0.2], [[0.1]], [[0.1]], 0.0), "frequency is 0.0"),
    ],
)
def test_bad_input_is_one_sentence(call: object, words: str) -> None:
    with pytest.raises(di.DynidentError, match=words) as caught:
        call()  # type: ignore[operator]
    assert "\n" not in str(caught.value)


def test_singularities() -> None:
    flat = 0.5 * (prr2.RAIL - prr2.SPACING) - prr2.BAR
    upright = 0.5 * (prr2.RAIL - prr2.SPACING)
    parallel, serial = prr2.singularity([[flat + 1e-13] * 2, [upright, upright]])
    np.testing.assert_allclose(parallel, [0.0, 1.0], atol=1e-5)
    np.testing.assert_allclose(serial, [1.0, 0.0], atol=1e-5)


@pytest.mark.parametrize(("method", "loop"), WAYS)
@pytest.mark.parametrize("parameters", ["paper", "full"])
def test_a_2prr_moves_as_its_energies_say(parameters: str, method: str, loop: str) -> None:
    """By hand: T = what moves along the rail + f s'^2 / 2, s = rho1 + rho2, f = (carried / 4 + m6) A^2 + sum I B^2."""
    phi = {**prr2.THEORETICAL, "m1": 3.0, "m2": 2.5, "Fc1": 0.0, "Fc2": 0.0, "c1": 0.0, "c2": 0.0}
    robot = prr2.mechanism(parameters, phi)
    rotors, force = [1.2e-2, 1.2e-2], np.array([-10.0, -20.0])  # stays within the guides
    L, a, d, g = prr2.BAR, prr2.RAIL, prr2.SPACING, prr2.GRAVITY
    both, sum_i, carried = np.ones(2), phi["I3"] + phi["I4"] + phi["I5"], phi["m3"] + phi["m4"] + phi["m5"]
    along = ((phi["m3"] + phi["m4"], (0.75, -0.25)), (phi["m5"], (0.25, -0.75)), (phi["m6"], (0.5, -0.5)))
    constant = np.diag([phi["m1"], phi["m2"]]) + GEAR**2 * np.diag(rotors)
    constant = constant + sum(m * np.outer(j, j) for m, j in along)

    def rates(_: float, y: np.ndarray) -> np.ndarray:
        alpha = np.arccos(0.5 * (a - d - y[0] - y[1]) / L)
        A, B = 0.5 / np.tan(alpha), 0.5 / (L * np.sin(alpha))
        dA, dB = -0.5 / np.sin(alpha) ** 2, -0.5 * np.cos(alpha) / (L * np.sin(alpha) ** 2)
        f = (0.25 * carried + phi["m6"]) * A**2 + sum_i * B**2
        slope = 2.0 * ((0.25 * carried + phi["m6"]) * A * dA + sum_i * B * dB) * B
        weight = -g * A * (phi["m6"] + 0.5 * carried)
        push = force - GEAR**2 * VISCOUS * y[2:] - both * (0.5 * slope * (y[2] + y[3]) ** 2 + weight)
        return np.concatenate([y[2:], np.linalg.solve(constant + f * np.outer(both, both), push)])

    q, v = np.array(prr2.START), np.array([0.05, -0.03])
    exact = solved(rates, np.concatenate([q, v]))
    assert np.abs(exact[:2] - q).max() > 0.02
    assert_same(end_of(machine(robot, rotors, force.tolist()), q, v, method, loop), exact)
