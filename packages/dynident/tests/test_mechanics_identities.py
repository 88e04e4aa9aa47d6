"""Identities and conservation laws on random trees: what must hold whatever the robot."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from random_mechanisms import (
    ALL_TERMS,
    PROPERTY,
    SCALAR_KINDS,
    advance,
    close,
    coupled,
    every_kind,
    mechanisms,
    random_motion,
)

from dynident.friction import TERMS
from dynident.mechanics import (
    Motion,
    coriolis_matrix,
    energy_regressor,
    forward_dynamics,
    gravity,
    inverse_dynamics,
    mass_matrix,
    regressor,
)
from dynident.mechanics.functions import weighted_regressor
from dynident.mechanics.newton_euler import body_regressor
from dynident.mechanism import Mechanism

SAMPLES = 6
FRICTION = tuple(symbol for symbol, term in TERMS.items() if term.friction)
SPECIAL = [pytest.param(every_kind(), id="every kind"), pytest.param(coupled(), id="coupled")]


def only(robot: Mechanism, symbols: tuple[str, ...]) -> np.ndarray:
    """Return the robot's parameters with all but the named joint and motor terms set to zero."""
    kept = [name.split("_")[0] in symbols for name in robot.parameters.names]
    return np.where(kept, robot.parameters.values, 0.0)


# ---- linearity -------------------------------------------------------------------------------------------------------


@PROPERTY
@given(mechanisms(terms=ALL_TERMS))
def test_regressor_times_parameters_is_inverse_dynamics(robot: Mechanism) -> None:
    motion = random_motion(robot, SAMPLES)
    Y = regressor(robot, motion)
    assert Y.shape == (SAMPLES, robot.dof, len(robot.parameters))
    close(Y @ robot.parameters.values, inverse_dynamics(robot, motion), 1e-12)
    phi = np.random.default_rng(4).normal(size=len(robot.parameters))  # any numbers, possible or not
    close(Y @ phi, inverse_dynamics(robot, motion, phi), 1e-12)
    close(Y @ phi, inverse_dynamics(robot, motion, robot.parameters.replace(phi)), 1e-12)
    w = np.random.default_rng(5).normal(size=(SAMPLES, 2, robot.dof))
    close(weighted_regressor(robot, motion, w), w @ Y, 1e-12)


@pytest.mark.parametrize("robot", SPECIAL)
def test_regressor_of_special_robots(robot: Mechanism) -> None:
    motion = random_motion(robot, SAMPLES)
    Y = regressor(robot, motion)
    close(Y @ robot.parameters.values, inverse_dynamics(robot, motion), 1e-12)
    unit = np.broadcast_to(np.eye(robot.dof), (SAMPLES, robot.dof, robot.dof))
    close(weighted_regressor(robot, motion, unit), Y, 1e-12)


@PROPERTY
@given(mechanisms(terms=ALL_TERMS))
def test_inverse_dynamics_is_linear_in_the_parameters(robot: Mechanism) -> None:
    motion = random_motion(robot, SAMPLES)
    x, y = np.random.default_rng(5).normal(size=(2, len(robot.parameters)))
    both = inverse_dynamics(robot, motion, 2.0 * x - 3.0 * y)
    close(2.0 * inverse_dynamics(robot, motion, x) - 3.0 * inverse_dynamics(robot, motion, y), both, 1e-12)
    assert not inverse_dynamics(robot, motion, np.zeros_like(x)).any()


@pytest.mark.parametrize("robot", SPECIAL)
def test_equation_of_motion_is_the_sum_of_its_parts(robot: Mechanism) -> None:
    motion = random_motion(robot, SAMPLES)
    M, C = mass_matrix(robot, motion.q), coriolis_matrix(robot, motion.q, motion.v)
    terms = inverse_dynamics(robot, motion, only(robot, (*FRICTION, "off", "k")))
    whole = np.einsum("sij,sj->si", M, motion.a) + np.einsum("sij,sj->si", C, motion.v)
    close(whole + gravity(robot, motion.q) + terms, inverse_dynamics(robot, motion), 1e-12)


# ---- M and C ---------------------------------------------------------------------------------------------------------


@PROPERTY
@given(mechanisms(terms=ALL_TERMS))
def test_mass_matrix_is_symmetric_positive_definite_and_mdot_minus_2c_skew(robot: Mechanism) -> None:
    check_mass_and_coriolis(robot)


@pytest.mark.parametrize("robot", SPECIAL)
def test_mass_and_coriolis_of_special_robots(robot: Mechanism) -> None:
    check_mass_and_coriolis(robot)


def check_mass_and_coriolis(robot: Mechanism) -> None:
    motion = random_motion(robot, SAMPLES, turn=0.8)
    M = mass_matrix(robot, motion.q)
    assert np.array_equal(M, M.transpose(0, 2, 1)) or robot.couplings
    close(M, M.transpose(0, 2, 1), 1e-14)
    assert np.all(np.linalg.eigvalsh(M)[:, 0] > 0.0)
    # Five-point difference along the motion; its error is about h^4.
    h = 1e-3
    near = [mass_matrix(robot, advance(robot, motion.q, motion.v, k * h)) for k in (-2, -1, 1, 2)]
    Mdot = (near[0] - 8.0 * near[1] + 8.0 * near[2] - near[3]) / (12.0 * h)
    skew = Mdot - 2.0 * coriolis_matrix(robot, motion.q, motion.v)
    assert np.max(np.abs(skew + skew.transpose(0, 2, 1))) <= 1e-8 * max(1.0, np.max(np.abs(Mdot)))


@PROPERTY
@given(mechanisms(kinds=SCALAR_KINDS))
def test_coriolis_matrix_is_the_christoffel_one(robot: Mechanism) -> None:
    check_christoffel(robot)


def test_coriolis_matrix_of_a_coupled_robot_is_the_christoffel_one() -> None:
    check_christoffel(coupled())


def check_christoffel(robot: Mechanism) -> None:
    motion = random_motion(robot, SAMPLES)
    q, v, h, n = motion.q, motion.v, 1e-3, robot.dof
    dM = np.empty((SAMPLES, n, n, n))  # dM[:, i, j, k] = d M_ij / d q_k
    for k in range(n):
        e = np.eye(n)[k] * h
        near = [mass_matrix(robot, q + step * e) for step in (-2, -1, 1, 2)]
        dM[..., k] = (near[0] - 8.0 * near[1] + 8.0 * near[2] - near[3]) / (12.0 * h)
    gamma = 0.5 * (dM + dM.transpose(0, 1, 3, 2) - dM.transpose(0, 3, 2, 1))  # gamma_ijk
    close(coriolis_matrix(robot, q, v), np.einsum("sijk,sk->sij", gamma, v), 1e-8)
    # And without differences: the only skew one that is also symmetric in the two velocities is Christoffel's.
    w = np.random.default_rng(6).normal(size=v.shape)
    left = np.einsum("sij,sj->si", coriolis_matrix(robot, q, v), w)
    close(left, np.einsum("sij,sj->si", coriolis_matrix(robot, q, w), v), 1e-12)


# ---- energy and momentum ---------------------------------------------------------------------------------------------


@PROPERTY
@given(mechanisms(terms=ALL_TERMS))
def test_kinetic_energy(robot: Mechanism) -> None:
    check_kinetic_energy(robot)


@pytest.mark.parametrize("robot", SPECIAL)
def test_kinetic_energy_of_special_robots(robot: Mechanism) -> None:
    check_kinetic_energy(robot)


def check_kinetic_energy(robot: Mechanism) -> None:
    motion = random_motion(robot, SAMPLES)
    p = np.einsum("sij,sj->si", mass_matrix(robot, motion.q), motion.v)
    kinetic = energy_regressor(robot, motion)[0] @ robot.parameters.values
    close(kinetic, 0.5 * np.sum(p * motion.v, axis=1), 1e-12)


@PROPERTY
@given(mechanisms(terms=ALL_TERMS))
def test_power_is_the_rate_of_energy(robot: Mechanism) -> None:
    check_power(robot)


@pytest.mark.parametrize("robot", SPECIAL)
def test_power_of_special_robots(robot: Mechanism) -> None:
    check_power(robot)


def check_power(robot: Mechanism) -> None:
    """d/dt (T + U) = v . (tau - friction), the rate by a five-point difference along the motion on the manifold.

    A constant torque on a spherical joint is fixed in the child frame and has no potential; it counts as friction.
    """
    motion = random_motion(robot, SAMPLES, turn=0.4)  # rotation vectors below half a turn: springs act on them
    q, v, a, h = motion.q, motion.v, motion.a, 1e-3

    def energy(step: float) -> np.ndarray:
        there = Motion(motion.t, advance(robot, q, v, step), v + step * a, a)
        kinetic, potential = energy_regressor(robot, there)
        return (kinetic + potential) @ robot.parameters.values

    rate = (energy(-2 * h) - 8.0 * energy(-h) + 8.0 * energy(h) - energy(2 * h)) / (12.0 * h)
    ball = {f"off_{name}" for joint in robot.joints if joint.kind == "spherical" for name in joint.coordinates}
    phi = np.where([name in ball for name in robot.parameters.names], robot.parameters.values, only(robot, FRICTION))
    lost = inverse_dynamics(robot, motion, phi)
    close(rate, np.sum(v * (inverse_dynamics(robot, motion) - lost), axis=1), 1e-8)


@PROPERTY
@given(mechanisms(kinds=SCALAR_KINDS, terms=ALL_TERMS))
def test_work_along_an_analytic_motion_is_the_change_of_energy(robot: Mechanism) -> None:
    t = np.linspace(0.0, 1.0, 2001)
    rng = np.random.default_rng(8)
    w, phase = rng.uniform(1.0, 3.0, robot.dof), rng.uniform(0.0, 6.0, robot.dof)
    x = w * t[:, None] + phase
    motion = Motion(t, np.sin(x), w * np.cos(x), -(w**2) * np.sin(x))
    kinetic, potential = energy_regressor(robot, motion)
    energy = (kinetic + potential) @ robot.parameters.values
    friction = inverse_dynamics(robot, motion, only(robot, FRICTION))
    power = np.sum(motion.v * (inverse_dynamics(robot, motion) - friction), axis=1)
    simpson = (power[:-2:2] + 4.0 * power[1::2] + power[2::2]).cumsum() * (t[1] - t[0]) / 3.0
    close(energy[2::2] - energy[0], simpson, 1e-9)


# ---- forward and back ------------------------------------------------------------------------------------------------


@PROPERTY
@given(mechanisms(terms=ALL_TERMS))
def test_forward_dynamics_inverts_inverse_dynamics(robot: Mechanism) -> None:
    check_inversion(robot)


@pytest.mark.parametrize("robot", SPECIAL)
def test_forward_dynamics_of_special_robots(robot: Mechanism) -> None:
    check_inversion(robot)


def check_inversion(robot: Mechanism) -> None:
    motion = random_motion(robot, SAMPLES)
    tau = inverse_dynamics(robot, motion)
    close(forward_dynamics(robot, motion.q, motion.v, tau), motion.a, 1e-9)
    # L D L^T in lanes against LAPACK.
    bias = inverse_dynamics(robot, Motion(motion.t, motion.q, motion.v, np.zeros_like(motion.a)))
    solved = np.linalg.solve(mass_matrix(robot, motion.q), (tau - bias)[:, :, None])[:, :, 0]
    close(solved, motion.a, 1e-9)


def test_a_free_robot_in_free_fall_keeps_its_momentum() -> None:
    robot = every_kind(terms=())
    motion = random_motion(robot, SAMPLES)
    kept = [i for i, name in enumerate(robot.coordinate_names) if not name.startswith("J7")]
    a = forward_dynamics(robot, motion.q, motion.v, np.zeros_like(motion.q))
    # Without forces on the free base its six rows of M a + C v + g are zero.
    tau = inverse_dynamics(robot, Motion(motion.t, motion.q, motion.v, a))
    close(tau[:, kept], np.zeros((SAMPLES, len(kept))), 1e-9)


def test_the_wrench_on_a_body_is_the_one_of_newton_and_euler() -> None:
    rng = np.random.default_rng(5)
    w, al, a, phi = (rng.normal(size=shape) for shape in ((20, 3), (20, 3), (20, 3), 10))
    h, tensor = phi[1:4], np.array([[phi[4], phi[5], phi[6]], [phi[5], phi[7], phi[8]], [phi[6], phi[8], phi[9]]])
    force = phi[0] * a + np.cross(al, h) + np.cross(w, np.cross(w, h))
    moment = al @ tensor + np.cross(w, w @ tensor) + np.cross(h, a)
    close(body_regressor(w, al, a) @ phi, np.hstack([force, moment]), 1e-12)
