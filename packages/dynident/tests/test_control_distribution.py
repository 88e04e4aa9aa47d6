"""Torques of redundant actuators: minimum norm, preload, and the projection of [Briot2015, eq. 50]."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from small_robots import platform, platform_jacobian, preload_direction

from dynident.control import feedforward_torques
from dynident.control.feedforward import actuator_rows, internal_torques
from dynident.errors import DynidentError
from dynident.mechanics import Motion, actuator_torques, inverse_dynamics, preload
from dynident.mechanics.actuation import least_torques
from dynident.mechanism import Mechanism

POSES = np.array([[0.0, 0.0, 0.0], [0.05, -0.03, 0.2], [-0.08, 0.06, -0.3]])


@pytest.fixture(scope="module")
def robot() -> Mechanism:
    return platform()


@pytest.fixture(scope="module")
def A(robot: Mechanism) -> np.ndarray:
    return actuator_rows(robot, POSES)


def minimum_norm(A: np.ndarray, f: np.ndarray, weights: np.ndarray | None = None, u: np.ndarray | None = None) -> np.ndarray:
    """Return the torques of one or many samples."""
    tau = least_torques(A if A.ndim == 3 else A[None], np.atleast_2d(f), u, weights)
    return tau if A.ndim == 3 or f.ndim == 2 else tau[0]


def test_the_rows_are_those_of_the_closed_form(A: np.ndarray) -> None:
    np.testing.assert_allclose(A, platform_jacobian(POSES), atol=1e-9)


def test_minimum_norm_gives_the_forces_with_the_least_torque(robot: Mechanism, A: np.ndarray) -> None:
    rng = np.random.default_rng(1)
    f = rng.normal(size=(3, 3))
    tau = minimum_norm(A, f)
    np.testing.assert_allclose(np.einsum("tkn,tk->tn", A, tau), f, atol=1e-12)
    np.testing.assert_allclose(tau, actuator_torques(robot, POSES, f), atol=1e-12)
    for t in range(3):
        lstsq = np.linalg.lstsq(A[t].T, f[t], rcond=None)[0]  # LAPACK's own minimum-norm solution
        np.testing.assert_allclose(tau[t], lstsq, atol=1e-12)
        np.testing.assert_allclose(minimum_norm(A[t], f[t]), lstsq, atol=1e-12)


def test_weights_share_the_load_by_their_price(robot: Mechanism, A: np.ndarray) -> None:
    f, w = np.random.default_rng(4).normal(size=(3, 3)), np.array([1.0, 4.0, 0.25, 2.0])
    tau = minimum_norm(A, f, weights=w)
    for t in range(3):  # Lagrange: W tau = A l, A^T tau = f
        saddle = np.block([[np.diag(w), -A[t]], [A[t].T, np.zeros((3, 3))]])
        np.testing.assert_allclose(tau[t], np.linalg.solve(saddle, np.append(np.zeros(4), f[t]))[:4], atol=1e-12)
    np.testing.assert_allclose(actuator_torques(robot, POSES, f, weights=w), tau, atol=1e-12)
    u = np.array([5.0, -1.0, 2.0, 0.5])
    np.testing.assert_allclose(minimum_norm(A, f, w, u) - tau, minimum_norm(A, f, None, u) - minimum_norm(A, f), atol=1e-12)
    resting = Motion(np.arange(3.0), POSES, np.zeros((3, 3)), np.eye(3))
    pushed = feedforward_torques(robot, resting, weights=w)
    np.testing.assert_allclose(pushed, minimum_norm(A, inverse_dynamics(robot, resting), w), atol=1e-12)


def test_a_preload_moves_nothing(robot: Mechanism, A: np.ndarray) -> None:
    f, u = np.ones((3, 3)), np.array([5.0, -1.0, 2.0, 0.5])
    tau = minimum_norm(A, f, None, u)
    np.testing.assert_allclose(np.einsum("tkn,tk->tn", A, tau), f, atol=1e-12)
    np.testing.assert_allclose(tau, actuator_torques(robot, POSES, f, u), atol=1e-12)
    np.testing.assert_allclose(tau - minimum_norm(A, f), preload(robot, POSES, np.tile(u, (3, 1))), atol=1e-12)


def projected(A: np.ndarray, tau: np.ndarray) -> np.ndarray:
    """Return torques without their internal stress."""
    return minimum_norm(A, np.einsum("...kn,...k->...n", A, tau))


def test_the_projection_is_equation_50(A: np.ndarray) -> None:
    tau = np.random.default_rng(2).normal(size=(3, 4))
    freed = projected(A, tau)
    u = preload_direction(POSES)  # by Cramer's rule on the closed form
    np.testing.assert_allclose(freed, tau - np.sum(u * tau, axis=1, keepdims=True) * u, atol=1e-9)
    np.testing.assert_allclose(np.einsum("tkn,tk->tn", A, freed - tau), 0.0, atol=1e-12)
    np.testing.assert_allclose(projected(A, freed), freed, atol=1e-12)
    np.testing.assert_allclose(projected(A[0], tau[0]), freed[0], atol=1e-14)


def test_two_null_vectors_are_both_removed() -> None:
    A = np.random.default_rng(3).normal(size=(5, 3))
    U = np.linalg.svd(A)[0][:, 3:]
    tau = np.arange(5.0)
    by_hand = tau - sum((u @ tau) * u for u in U.T)
    np.testing.assert_allclose(projected(A, tau), by_hand, atol=1e-14)
    many = projected(A, np.stack([tau, 2.0 * tau]))
    np.testing.assert_allclose(many, [by_hand, 2.0 * by_hand], atol=1e-13)


def test_without_redundancy_nothing_is_internal() -> None:
    A = np.array([[2.0, 0.0], [1.0, 1.0]])
    np.testing.assert_allclose(projected(A, np.array([3.0, 4.0])), [3.0, 4.0])
    np.testing.assert_allclose(minimum_norm(A, np.ones(2)), np.linalg.solve(A.T, [1.0, 1.0]), atol=1e-15)
    with pytest.raises(DynidentError, match=r"preload u requires more actuators than degrees of freedom \(2 and 2\)"):
        internal_torques([9.0, 9.0], 1, 2, 2)


def test_a_singular_pose_has_no_torques() -> None:
    A, f = np.array([np.eye(3, 2), np.ones((3, 2))]), np.ones((2, 2))
    for matrix in (A, A[:, :2]):  # more motors than freedoms, and as many
        assert np.isfinite(least_torques(matrix, f)).all(axis=1).tolist() == [True, False]


def test_gear_ratios_are_taken_out() -> None:
    arm = Mechanism.from_dh([(0.3, 0, 0, 0), (0.3, 0, 0, 0)])
    motors = tuple(replace(actuator, ratio=50.0) for actuator in arm.actuators)
    np.testing.assert_allclose(actuator_rows(replace(arm, actuators=motors), np.zeros((1, 2)))[0], np.eye(2))


def test_bad_input_is_refused(robot: Mechanism) -> None:
    resting = (POSES, np.zeros((3, 3)), np.zeros((3, 3)))
    with pytest.raises(DynidentError, match=r"weights are \[1.0, 1.0, 0.0, 1.0\]; give one number above zero"):
        feedforward_torques(robot, resting, weights=[1, 1, 0, 1])
    with pytest.raises(DynidentError, match=r"u has shape \(3,\); give one torque for each of the 4"):
        feedforward_torques(robot, resting, preload=np.ones(3))
