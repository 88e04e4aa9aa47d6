"""Loop closure of every kind of cut joint: counts, residuals, velocities, accelerations, branches."""

from __future__ import annotations

import numpy as np
import pytest
from loop_cases import CASES, REDUNDANT, at, cardan, constraints, four_bar, link, parallelogram, robot, slider_crank, states
from mechanism_oracles import loop_gaps

import dynident as di
from dynident.mechanics import actuator_jacobian, close_motion, close_positions, coordinates_from_actuators
from dynident.mechanics.branch import curve
from dynident.mechanics.closure import closure_starts


@pytest.mark.parametrize("case", CASES)
def test_degrees_of_freedom_and_redundant_equations(case: str) -> None:
    mechanism = CASES[case]()
    assert mechanism.closure.dof == mechanism.dof == 1
    assert mechanism.closure.redundant_equations == REDUNDANT[case]
    assert np.max(np.abs(loop_gaps(mechanism, mechanism.closure.home))) < 1e-12


@pytest.mark.parametrize("case", CASES)
def test_loops_are_closed_all_along(case: str) -> None:
    """All equations, also those that are not solved, hold to round-off."""
    mechanism = CASES[case]()
    motion = states(mechanism)
    q = close_motion(mechanism, motion).q
    worst = max(np.max(np.abs(loop_gaps(mechanism, row))) for row in q)
    assert worst < 1e-12
    np.testing.assert_array_equal(q[:, mechanism.closure.independent], motion.q)


@pytest.mark.parametrize("case", CASES)
def test_velocities_and_accelerations_are_derivatives(case: str) -> None:
    mechanism = CASES[case]()
    motion, h = states(mechanism), 1e-4
    closed = close_motion(mechanism, motion)
    ahead, behind = (
        close_motion(
            mechanism,
            di.Motion(motion.t, motion.q + s * motion.v + 0.5 * s**2 * motion.a, motion.v + s * motion.a, motion.a),
        )
        for s in (h, -h)
    )
    scale = 1.0 + np.max(np.abs(closed.a))
    np.testing.assert_allclose((ahead.q - behind.q) / (2 * h), closed.v, atol=1e-5 * scale)
    np.testing.assert_allclose((ahead.q - 2 * closed.q + behind.q) / h**2, closed.a, atol=1e-4 * scale)
    np.testing.assert_allclose(np.einsum("nij,nj->ni", closed.G, motion.v), closed.v, atol=1e-12 * scale)


@pytest.mark.parametrize("case", CASES)
def test_velocities_and_accelerations_satisfy_the_constraints_of_the_frames(case: str) -> None:
    """J v = 0 and J a + Jdot v = 0 with J from the tree's frame Jacobians."""
    mechanism = CASES[case]()
    closed = close_motion(mechanism, states(mechanism))
    J, rate = constraints(mechanism, closed.q, closed.v)
    scale = 1.0 + np.max(np.abs(closed.a))
    assert np.max(np.abs(np.einsum("nij,nj->ni", J, closed.v))) < 1e-11 * scale
    assert np.max(np.abs(np.einsum("nij,nj->ni", J, closed.a) + rate)) < 1e-10 * scale
    # Sampled rank agrees with the count.
    rank = np.linalg.matrix_rank(J[3], tol=1e-9)
    assert closed.q.shape[1] - rank == 1
    moves = 1e-6 * np.eye(closed.q.shape[1])
    slow = np.array([loop_gaps(mechanism, closed.q[3] + d) - loop_gaps(mechanism, closed.q[3] - d) for d in moves]).T / 2e-6
    assert np.linalg.matrix_rank(slow, tol=1e-6) == rank


def test_hooke_joint_by_hand() -> None:
    """tan(out) = tan(in) cos(beta); the speed ratio cos(beta) / (1 - sin^2(beta) sin^2(in)) swings as in textbooks."""
    beta = 0.5
    mechanism = cardan(beta)
    theta = np.linspace(0.0, 4.0 * np.pi, 400)  # two full turns
    closed = close_motion(mechanism, di.Motion(theta, theta[:, None], np.ones((400, 1)), np.zeros((400, 1))))
    out, ratio = closed.q[:, 1], closed.v[:, 1]
    # z of the first shaft is perpendicular to y of the second: (0, -s, c) . (-sin b c', cos b c', s') = 0.
    np.testing.assert_allclose(np.sin(out) * np.cos(theta), np.cos(beta) * np.cos(out) * np.sin(theta), atol=1e-12)
    np.testing.assert_allclose(ratio, np.cos(beta) / (1.0 - np.sin(beta) ** 2 * np.sin(theta) ** 2), atol=1e-12)
    assert out[-1] == pytest.approx(4.0 * np.pi, abs=1e-9)  # two turns in, two turns out: no branch was lost


def test_slider_crank_by_hand() -> None:
    r, length = 0.25, 0.7
    mechanism = slider_crank(r, length)
    theta = np.linspace(0.5, 0.5 + 2.0 * np.pi, 300)
    q = close_positions(mechanism, theta[:, None])
    rod = np.arcsin(-r * np.sin(theta) / length)
    np.testing.assert_allclose(q[:, 0] + q[:, 1], rod, atol=1e-12)
    np.testing.assert_allclose(q.sum(axis=1), 0.0, atol=1e-12)


def test_parallelogram_stays_one() -> None:
    mechanism = parallelogram(3)
    theta = np.linspace(1.1, 2.9, 100)
    q = close_positions(mechanism, theta[:, None])
    for name, expected in (("a1", theta), ("a2", theta), ("b", -theta)):
        np.testing.assert_allclose(q[:, mechanism.tree.coordinates.index(name)], expected, atol=1e-12)


def test_branch_is_that_of_home_and_kept_over_full_turns() -> None:
    """Mirror homes give mirror motions; coarse samples (35 degrees) land where fine ones do; the rocker comes back."""
    theta = np.linspace(1.2, 1.2 + 4.0 * np.pi, 4 * 36 * 5 + 1)
    up, down = four_bar(), four_bar(mirror=True)
    fine = close_positions(up, theta[:, None])
    np.testing.assert_allclose(close_positions(up, theta[::35, None]), fine[::35], atol=1e-10)
    np.testing.assert_allclose(close_positions(down, -theta[:, None]), -fine, atol=1e-10)
    np.testing.assert_allclose(fine[-1] - fine[0], [4.0 * np.pi, -4.0 * np.pi, 0.0], atol=1e-9)
    assert np.max(np.abs(np.diff(fine[:, 2]))) < 0.05  # no jump to the other assembly
    apart = close_positions(down, np.array([[1.2]]))[0, 2] - fine[0, 2]
    assert abs(apart) > 0.5  # the same crank angle, another assembly


def test_start_selects_the_branch_of_a_later_stretch() -> None:
    mechanism = four_bar()
    theta = np.linspace(1.2, 4.0, 60)[:, None]
    whole = close_positions(mechanism, theta)
    np.testing.assert_allclose(close_positions(mechanism, theta[30:], start=whole[29]), whole[30:], atol=1e-12)


def test_starts_of_stretches_are_on_the_branch_of_the_whole_motion() -> None:
    mechanism = slider_crank()
    q = np.linspace(0.0, 9.0, 3001)[:, None]  # more than a turn
    samples = [0, 1, 700, 701, 2999]
    np.testing.assert_allclose(closure_starts(mechanism, q, samples), close_positions(mechanism, q)[samples], atol=1e-12)


def test_forward_problem_and_actuator_jacobian() -> None:
    """Coordinates and motors may be different joints: the rocker is driven, the coupler angle is the coordinate."""
    mechanism = four_bar(independent=("b",), actuators=(di.Actuator("motor", {"c": 1.0}, ratio=-3.0, offset=0.2),))
    motion = states(mechanism, span=0.2)
    closed = close_motion(mechanism, motion)
    A = actuator_jacobian(mechanism, motion.q)
    np.testing.assert_allclose(A[:, 0, 0] * motion.v[:, 0], -3.0 * closed.v[:, 2], atol=1e-12)
    np.testing.assert_allclose(coordinates_from_actuators(mechanism, -3.0 * closed.q[:, 2:] + 0.2), motion.q, atol=1e-9)


def test_couplings_and_loops_together() -> None:
    """A gear turns a flag with the rocker of a four-bar: one linear equation beside the loop's."""
    plain = four_bar()
    bodies, joints = list(plain.bodies), list(plain.joints)
    bodies.append(link("flag", 0.2, 30))
    joints.append(di.Joint("flag", "revolute", "coupler", "flag", at(0.1)))
    coupling = (di.Coupling("flag", {"c": -2.0, "a": 0.5}, 0.3),)
    mechanism = robot("geared", bodies, joints, list(plain.loops), "a", dict(plain.home), couplings=coupling)
    assert mechanism.closure.dof == 1
    motion = states(mechanism)
    closed = close_motion(mechanism, motion)
    index = {name: i for i, name in enumerate(mechanism.tree.coordinates)}
    for x, offset in ((closed.q, 0.3), (closed.v, 0.0), (closed.a, 0.0)):
        np.testing.assert_allclose(x[:, index["flag"]], 0.5 * x[:, index["a"]] - 2.0 * x[:, index["c"]] + offset, atol=1e-10)
    tau = di.inverse_dynamics(mechanism, motion)
    np.testing.assert_allclose(di.forward_dynamics(mechanism, motion.q, motion.v, tau), motion.a, atol=1e-9)


def test_independent_coordinates_are_chosen_actuated_first() -> None:
    mechanism = four_bar(independent=())
    assert mechanism.coordinate_names == ("a",)
    passive = four_bar(independent=(), actuators=(di.Actuator("m", {"c": 1.0}),))
    assert passive.coordinate_names == ("c",)


def test_a_curve_through_samples_of_a_parabola_is_the_parabola():
    """Slopes of parabolas are exact between the second sample and the last but one, however uneven the samples are."""
    chosen, every = np.array([0, 1, 4, 6, 7, 12, 14]), np.arange(15)
    wanted = np.stack([0.3 * every**2 - 2.0 * every + 1.0, -0.1 * every**2], axis=1)
    found = curve(chosen, wanted[chosen])
    np.testing.assert_allclose(found[1:13], wanted[1:13], rtol=0.0, atol=1e-12)
    np.testing.assert_allclose(found[chosen], wanted[chosen], rtol=0.0, atol=1e-12)
