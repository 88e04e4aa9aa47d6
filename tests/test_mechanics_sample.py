"""The equation of motion of one sample (simulation) against the batch kernels and Pinocchio."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given

import dynident as di
from dynident.mechanics import inverse_dynamics, mass_matrix
from dynident.mechanics.batch import at_rest, inertial_values
from dynident.mechanics.packed import FORCE, MASS, OWN, SPEED, Arena, add_tree
from dynident.mechanics.sample_kernels import factorise_symmetric, mass_and_bias, pose_tree, solve_symmetric
from random_mechanisms import PROPERTY, close, every_kind, mechanisms, random_motion

HERE = OWN  # region of the positions in these tests


def equation(
    robot: di.Mechanism, q: np.ndarray, v: np.ndarray, base: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return M (lower triangle mirrored) and h of one sample of a tree."""
    n = q.size
    arena = Arena()
    phi = inertial_values(robot, robot.parameters.values)
    add_tree(arena, robot.tree.arrays, phi, np.zeros((n, n)) if base is None else base)
    arena.floats(HERE, q)
    K, F = arena.pack()
    arena.view(SPEED)[:] = v
    pose_tree(K, F, K[HERE])
    mass_and_bias(K, F)
    lower = np.tril(arena.view(MASS))
    return lower + np.tril(lower, -1).T, arena.view(FORCE).copy()


@PROPERTY
@given(mechanisms(largest=6))
def test_mass_matrix_and_bias_agree_with_the_batch_kernels(robot: di.Mechanism) -> None:
    motion = random_motion(robot, 4, seed=3)
    M, h = mass_matrix(robot, motion.q), inverse_dynamics(robot, at_rest(robot, motion.q, motion.v))
    for i in range(4):
        ours = equation(robot, motion.q[i], motion.v[i])
        close(ours[0], M[i], 1e-12)
        close(ours[1], h[i], 1e-12)


def test_every_kind_of_joint_with_a_changed_base() -> None:
    robot = every_kind(())
    motion = random_motion(robot, 6, seed=1)
    base = np.diag(np.arange(1.0, robot.dof + 1.0))
    for i in range(6):
        M, h = equation(robot, motion.q[i], motion.v[i], base)
        close(M, mass_matrix(robot, motion.q[i])[0] + base, 1e-12)
        close(h, inverse_dynamics(robot, at_rest(robot, motion.q[i], motion.v[i]))[0], 1e-12)


def test_against_pinocchio() -> None:
    pin = pytest.importorskip("pinocchio")
    path = Path(__file__).parents[1] / "benchmarks" / "arm.urdf"
    model = pin.buildModelFromUrdf(str(path))
    data = model.createData()
    robot = di.Mechanism.from_urdf(path)
    rng = np.random.default_rng(0)
    for _ in range(5):
        q, v = rng.normal(size=6), rng.normal(size=6)
        M, h = equation(robot, q, v)
        theirs = pin.crba(model, data, q)
        close(M, np.triu(theirs) + np.triu(theirs, 1).T, 1e-12)
        close(h, pin.nonLinearEffects(model, data, q, v), 1e-12)


@pytest.mark.parametrize("shift", [0.0, 3.0])
def test_factors_solve_definite_and_indefinite_matrices(shift: float) -> None:
    rng = np.random.default_rng(5)
    root = rng.normal(size=(6, 6))
    A = root @ root.T - shift * np.eye(6)
    assert (np.linalg.eigvalsh(A).min() < 0.0) == (shift > 0.0)
    F = np.concatenate([np.tril(A).ravel(), np.zeros(36), b := rng.normal(size=6)])
    assert factorise_symmetric(F, 0, 36, 6) == -1
    solve_symmetric(F, 36, 72, 6)
    np.testing.assert_allclose(F[72:], np.linalg.solve(A, b), rtol=1e-9, atol=1e-9)


def test_a_singular_matrix_is_noticed_at_its_pivot() -> None:
    A = np.diag([1.0, 1e-4, 2.0])
    A[2, 0] = A[0, 2] = np.sqrt(2.0)  # third row depends on the first
    F = np.concatenate([np.tril(A).ravel(), np.zeros(9)])
    assert factorise_symmetric(F, 0, 9, 3) == 2
