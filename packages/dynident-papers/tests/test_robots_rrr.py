"""RRR robot (Kostic et al. 2002): the corrected closed forms against Newton-Euler, and what the paper states."""

from __future__ import annotations

import numpy as np
import pytest

import dynident as di
from dynident_papers.robots import rrr

G = rrr.EXAMPLE
STATES = 10_000


def _states(seed: int = 0, samples: int = STATES) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.uniform(-np.pi, np.pi, (samples, 3)), rng.uniform(-3, 3, (samples, 3)), rng.uniform(-10, 10, (samples, 3))


def test_closed_form_equals_newton_euler_at_ten_thousand_states() -> None:
    q, v, a = _states()
    for seed, geometry in enumerate((G, rrr.Geometry(0.3, -0.2, 0.05, 0.7, 0.4))):
        phi = np.random.default_rng(seed).normal(size=33)
        tau = di.inverse_dynamics(rrr.mechanism(geometry, phi), di.Motion(np.arange(STATES), q, v, a))
        p = rrr.base_parameters(phi, geometry)
        assert np.abs(rrr.inverse_dynamics(q, v, a, p, geometry) - tau).max() < 1e-12 * np.abs(tau).max()
        assert rrr.regressor(q, v, a, geometry).shape == (STATES, 3, 16)


def test_mass_matrix_gravity_and_coriolis() -> None:
    q, v, _ = _states(1, 500)
    phi = np.random.default_rng(5).normal(size=33)
    robot, p = rrr.mechanism(G, phi), rrr.base_parameters(phi, G)
    assert np.abs(rrr.mass_matrix(q, p, G) - di.mass_matrix(robot, q)).max() < 1e-12
    assert np.abs(rrr.gravity_torque(q, p) - di.gravity(robot, q)).max() < 1e-12
    velocity_part = rrr.inverse_dynamics(q, v, 0 * v, p, G, gravity=0.0)
    christoffel = np.einsum("nij,nj->ni", di.coriolis_matrix(robot, q, v), v)
    assert np.abs(velocity_part - christoffel).max() < 1e-11


@pytest.mark.parametrize(("terms", "gravity", "rank"), [(("ia",), 9.81, 16), ((), 9.81, 15), (("ia",), 0.0, 14), ((), 0.0, 13)])
def test_base_parameter_counts(terms: tuple[str, ...], gravity: float, rank: int) -> None:
    assert di.base_parameters(rrr.mechanism(G, terms=terms, gravity=gravity)).rank == rank


def test_the_sixteen_are_minimal_and_span_the_standard_regressor() -> None:
    q, v, a = _states(2, 120)
    R = rrr.regressor(q, v, a, G).reshape(-1, 16)
    W = di.regressor(rrr.mechanism(G), di.Motion(np.arange(120), q, v, a)).reshape(-1, 33)
    assert np.linalg.matrix_rank(R) == 16
    assert np.abs(R @ rrr.base_matrix(G) - W).max() < 1e-11
    assert np.linalg.cond(R) < 60


def test_the_printed_velocity_in_r11_is_wrong() -> None:
    """A misprint: with the printed first term the torque is off by newton metres."""
    q, v, a = _states(3, 200)
    R = rrr.regressor(q, v, a, G)
    printed = v[:, 0] * np.cos(q[:, 1]) ** 2 - v[:, 0] * v[:, 1] * np.sin(2 * q[:, 1])
    assert np.abs(R[:, 0, 0] - printed).max() > 5


def test_forward_kinematics_equals_the_chain() -> None:
    q, _, _ = _states(4, 1000)
    R, x = di.forward_kinematics(rrr.mechanism(G), q, "link_3")
    assert np.abs(rrr.forward_kinematics(q, G) - x).max() < 1e-14
    assert np.abs(rrr.orientation(q) - R).max() < 1e-14
    det = np.linalg.det(di.jacobian(rrr.mechanism(G), q, "link_3", "world")[:, :3])
    assert np.abs(rrr.jacobian_determinant(q, G) - det).max() < 1e-14


def test_inverse_kinematics_on_every_branch() -> None:
    q, _, _ = _states(6)
    x = rrr.forward_kinematics(q, G)
    branches = rrr.inverse_kinematics(x, G)
    assert branches.shape == (STATES, 4, 3)
    assert np.isfinite(branches).all()  # both reaches and both elbows exist for every point of this robot's workspace
    assert np.abs(rrr.forward_kinematics(branches.reshape(-1, 3), G).reshape(-1, 4, 3) - x[:, None]).max() < 1e-12
    near = np.abs((branches - q[:, None] + np.pi) % (2 * np.pi) - np.pi).max(axis=2).min(axis=1)
    assert near.max() < 1e-9
    from dynident.mechanics import inverse_kinematics

    general = inverse_kinematics(rrr.mechanism(G), None, x)
    assert np.abs((branches - general + np.pi) % (2 * np.pi) - np.pi).max() < 1e-9  # the same branches under the same names


def test_nan_only_where_no_branch_exists() -> None:
    x = np.random.default_rng(7).uniform([-1.2, -1.2, -0.64], [1.2, 1.2, 1.76], (5000, 3))
    branches = rrr.inverse_kinematics(x, G)
    radius2 = x[:, 0] ** 2 + x[:, 1] ** 2 - 0.259**2
    span2 = radius2 + (x[:, 2] - 0.56) ** 2
    exists = (radius2 >= 0) & (span2 <= 0.615**2) & (span2 >= 0.215**2)
    assert 0 < exists.sum() < 5000
    assert np.array_equal(np.isfinite(branches).all(axis=2), np.repeat(exists[:, None], 4, axis=1))
    assert np.array_equal(np.isnan(branches).any(axis=2), np.isnan(branches).all(axis=2))
    stretched = rrr.forward_kinematics([[0.3, 0.4, 0.0], [0.3, 0.4, np.pi]], G)
    assert np.isfinite(rrr.inverse_kinematics(stretched, G)).all()


def test_the_printed_inverse_misses_most_points() -> None:
    """As printed, asin, atan and a positive p_wh lose quadrants: 74 % misses."""
    q, _, _ = _states(8, 4000)
    x, y, z = rrr.forward_kinematics(q, G).T
    d = 0.259
    q1 = np.arcsin((x * d + y * np.sqrt(x**2 + y**2 - d**2)) / (x**2 + y**2))
    h = np.hypot(x - d * np.sin(q1), y + d * np.cos(q1))
    c3 = (h**2 + (z - 0.56) ** 2 - 0.2**2 - 0.415**2) / (2 * 0.2 * 0.415)
    best = np.full(4000, np.inf)
    for sign in (1, -1):
        q3 = np.arctan(sign * np.sqrt(np.maximum(1 - c3**2, 0)) / c3)
        a, b = 0.2 + 0.415 * np.cos(q3), 0.415 * np.sin(q3)
        q2 = np.arctan((a * (z - 0.56) - b * h) / (a * h + b * (z - 0.56)))
        miss = np.linalg.norm(rrr.forward_kinematics(np.column_stack([q1, q2, q3]), G) - np.column_stack([x, y, z]), axis=1)
        best = np.minimum(best, miss)
    assert 0.6 < np.mean(best > 1e-6) < 0.9


def test_friction_voltage_and_control() -> None:
    f, w, b = np.full((3, 3), 0.2), np.array([[1.0, 10, 100]] * 3), np.array([0.1, 0.2, 0.3])
    v = np.array([[0.5, -0.5, 1000.0]])
    expected = np.sum(f * (1 - 2 / (np.exp(np.minimum(2 * w * v.T, 700)) + 1)), axis=1) + b * v[0]
    assert rrr.friction_voltage(v, f, w, b)[0] == pytest.approx(expected)
    assert rrr.voltage([[1.0, 2, 3]], [2.0, 2, 2], [[0.1, 0, 0]])[0] == pytest.approx([0.6, 1, 1.5])
    u = rrr.control_voltage([[1.0, 1, 1]], [[0.1, 0, 0]], [[0, 0.2, 0]], [[0, 0, 0]], [[0, 0, 0]], [10, 10, 10], [1, 1, 1])
    assert u[0] == pytest.approx([2.0, 1.2, 1.0])
    assert rrr.FLOPS["inverse kinematics"] == (102, 2783) and rrr.RMS_FEEDFORWARD == (0.25, 1.98, 0.78)


def test_bad_input() -> None:
    with pytest.raises(di.DynidentError, match="geometry: d1 is nan"):
        rrr.Geometry(np.nan, 0, 0, 1, 1)
    with pytest.raises(di.DynidentError, match=r"a2 is 0\.0 and a3 is 1\.0; both must be above zero"):
        rrr.Geometry(0.0, 0.0, 0.0, 0.0, 1.0)
    with pytest.raises(di.DynidentError, match=r"q has shape \(5, 2\)"):
        rrr.forward_kinematics(np.zeros((5, 2)), G)
    with pytest.raises(di.DynidentError, match=r"numbers of samples differ \(q 5, v 4, a 5\)"):
        rrr.regressor(np.zeros((5, 3)), np.zeros((4, 3)), np.zeros((5, 3)), G)
    with pytest.raises(di.DynidentError, match="give the 16 base parameters"):
        rrr.inverse_dynamics(np.zeros(3), np.zeros(3), np.zeros(3), np.zeros(15), G)
    with pytest.raises(di.DynidentError, match="give the 33"):
        rrr.base_parameters(np.zeros(30), G)
    with pytest.raises(di.DynidentError, match="torque_constant is"):
        rrr.voltage(np.zeros(3), [1, 0, 1])
    with pytest.raises(di.DynidentError, match="do not fit"):
        rrr.friction_voltage(np.zeros(3), np.zeros((3, 3)), np.zeros((3, 2)), np.zeros(3))
