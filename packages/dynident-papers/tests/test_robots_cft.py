"""CFT-transposer (WFW 2002.52): Appendix B against the text, a Lagrange derivation and Newton-Euler; maps, gains, verdicts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from identify_cases import smooth
from plant_cases import go, machine

import dynident as di
from dynident.control import OpenLoop
from dynident.errors import SimulationError
from dynident.friction import Sigmoid
from dynident.identify import Recording, fit_friction
from dynident_papers.properties import check
from dynident_papers.robots import cft
from dynident_papers.robots.cft import data
from dynident_papers.robots.cft.closed_forms import _mass

L2, L4, L5, L6, L7, L8, D6, D = 0.25, 0.05, 0.35, 0.30, 0.08, 0.48, 0.04, 0.0916
sin, cos = np.sin, np.cos


def _states(seed: int, samples: int = 300) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(seed)
    return tuple(rng.uniform(-3, 3, (samples, 4)) for _ in range(3))


def _cartesian(seed: int, samples: int = 500) -> np.ndarray:
    return np.random.default_rng(seed).uniform(data.LIMITS[:, 0], data.LIMITS[:, 1], (samples, 4))


# ---- oracle 1: Appendix B as printed, with the repairs of the errata register ---------------------------------------------


def _appendix_b(q: np.ndarray, th: np.ndarray) -> np.ndarray:
    _, t2, t3, t4, t5, t6, t7, t8, t9, t10, t11, t12 = th[:12]
    _, q2, q4, q5 = q.T
    M = np.zeros((len(q), 4, 4))
    q45, u, dd = q4 + q5, q5 + 2 * q4, 2 * (q4 + q5)
    M[:, 0, 0] = th[0] + t11 + t12
    M[:, 0, 1] = (
        (-t12 * D - t11 * D - t3) * sin(q2)
        + (t2 + D6 * t11) * cos(q2)
        + 0.5 * ((L4 - L5) * (t12 + t11) - t9) * (cos(q45 + q2) - cos(q45 - q2))
        + 0.5 * (t7 + t5 + t12 * L6) * (cos(q4 - q2) - cos(q2 + q4))
        + 0.5 * (t8 + t6) * (sin(q2 + q4) - sin(q4 - q2))
        + 0.5 * (-sin(q45 - q2) + sin(q45 + q2)) * t10
    )
    M[:, 0, 3] = (
        0.5 * ((L4 - L5) * (t11 + t12) - t9) * (cos(q45 + q2) + cos(q45 - q2)) + 0.5 * (sin(q45 + q2) + sin(q45 - q2)) * t10
    )
    M[:, 0, 2] = (
        0.5 * (-t5 - t7 - t12 * L6) * (cos(q2 + q4) + cos(q4 - q2))
        + 0.5 * (t8 + t6) * (sin(q2 + q4) + sin(q4 - q2))
        + M[:, 0, 3]
    )
    M[:, 1, 1] = (
        ((L5 - L4) * (sin(q5) + sin(u)) - 2 * cos(q4) * D) * t8
        + t4
        + (-2 * D * cos(q45) - L4 * sin(dd)) * t10
        + t12 * D**2
        # misprint: all of this multiplies theta_11
        + (
            (0.5 - 0.5 * cos(dd)) * (L5**2 + L4**2)
            + 2 * L4 * D * sin(q45)
            + D6**2
            + D**2
            + ((cos(dd) - 1) * L4 - 2 * D * sin(q45)) * L5
        )
        * t11
        + ((cos(2 * q4) - cos(q5) - 1 + cos(u)) * L4 - 2 * D * sin(q4)) * t5
        - 2 * (sin(q45) * L5 + sin(q4) * L6) * D * t12
        + ((cos(u) - cos(q5)) * (L4 - L5) - 2 * D * sin(q4)) * t7
        - 0.5 * t12 * (cos(2 * q4) - 1) * L6**2
        - 0.5 * (cos(dd) - 1) * (L5**2 + L4**2) * t12
        + (-L4 * (sin(2 * q4) + sin(u) + sin(q5)) - 2 * cos(q4) * D) * t6
        + ((cos(dd) - 1) * L4 + (cos(q5) - cos(u)) * L6) * L5 * t12
        + ((cos(dd) - 1) * L4 - 2 * D * sin(q45)) * t9
        + (2 * sin(q45) * D - (cos(q5) - cos(u)) * L6) * L4 * t12  # printed plus
    )
    M[:, 1, 2] = -t7 * D6 * cos(q4) + t8 * D6 * sin(q4) + t11 * D6 * (L4 - L5) * cos(q45)
    M[:, 1, 3] = t11 * D6 * (L4 - L5) * cos(q45)
    M[:, 2, 2] = (  # three brackets are lost in print
        (((L5 - L6) * L4 + 2 * L5 * L6) * t12 + L5 * L4 * t11 + (t9 - t5 - t7) * L4 + 2 * t7 * L5) * cos(q5)
        + L4 * (t6 + t8) * sin(2 * q4)
        - L4 * ((0.5 * L4 + L6) * t12 + 0.5 * L4 * t11 + t5 + t7) * cos(2 * q4)
        - L4 * ((L6 + L5) * t12 + L5 * t11 + t9 + t7 + t5) * cos(u)
        + (t8 + t10 + t6) * L4 * sin(u)
        + ((2 * L5 - L4) * t8 - (t6 + t10) * L4) * sin(q5)
        + (L4**2 + (L6 - L5) * L4 + L5**2 + L6**2) * t12
        + ((0.5 * L4 - L5) * (t12 + t11) - t9) * L4 * cos(dd)
        + (L5**2 - L5 * L4 + L4**2) * t11
        + (t7 - t9 + sin(dd) * t10 - t5) * L4
    )
    M[:, 2, 3] = (
        0.5 * (sin(u) - sin(q5)) * L4 * t6
        + 0.5 * t12 * (cos(dd) + 1) * L4**2
        + (0.5 * cos(q5) - cos(dd) - 0.5 * cos(u) - 1) * L4 * t9
        + (0.5 * sin(u) + sin(dd) - 0.5 * sin(q5)) * L4 * t10
        + (L5 * cos(q5) - 0.5 * (cos(q5) + cos(u)) * L4) * t7
        + ((L5 - 0.5 * L4) * sin(q5) + 0.5 * L4 * sin(u)) * t8
        + t12 * L5**2
        + (L5**2 + 0.5 * (cos(q5) - cos(u)) * L4 * L5 + 0.5 * (1 + cos(dd)) * (L4**2 - 2 * L4 * L5)) * t11
        - 0.5 * (cos(q5) + cos(u)) * L4 * t5
        + (cos(q5) * L6 - 0.5 * (2 + 2 * cos(dd) + cos(u) - cos(q5)) * L4) * L5 * t12  # a bracket is lost in print
        - 0.5 * t12 * (cos(q5) + cos(u)) * L6 * L4
    )
    M[:, 3, 3] = (  # a bracket is lost in print
        ((0.5 * L4**2 - L5 * L4) * (t12 + t11) - L4 * t9) * cos(dd)
        + (0.5 * L4**2 - L5 * L4 + L5**2) * (t12 + t11)
        + (sin(dd) * t10 - t9) * L4
    )
    lower = np.tril_indices(4, -1)
    M[:, lower[0], lower[1]] = M[:, lower[1], lower[0]]
    return M


# ---- oracle 2: Lagrange by pseudo-inertia traces (15), (17) on the chain of Table 2 with q3(q4, q5) of (56) -----------------


def _chain(q: np.ndarray) -> list[np.ndarray]:
    """Transforms T_1 ... T_9 of one configuration, possibly complex, by (2)."""
    q1, q2, q4, q5 = q
    q3 = L4 * (sin(q4 + q5) + sin(q4)) + D
    h = np.pi / 2
    rows = [
        (0, -h, q1, 0),
        (0, h, L2, q2),
        (0, -h, q3, -h),
        (0, -h, 0, q4),
        (L4, 0, 0, q5),
        (L5, 0, D6, -q5),
        (L6, 0, -D6, np.pi - q4),
        (L7, 0, 0, h),
        (L8, 0, 0, 0),
    ]
    T, out = np.eye(4, dtype=np.complex128), []
    for a, al, d, t in rows:
        T = T @ np.array(
            [
                [cos(t), -sin(t), 0, a],
                [sin(t) * cos(al), cos(t) * cos(al), -sin(al), -d * sin(al)],
                [sin(t) * sin(al), cos(t) * sin(al), cos(al), d * cos(al)],
                [0, 0, 0, 1],
            ]
        )
        out.append(T)
    return out


def _pseudo_inertias(th: np.ndarray) -> list[np.ndarray]:
    P = [np.zeros((4, 4)) for _ in range(8)]
    t = np.concatenate([[0], th[:12]])
    for link, m, x, y in (
        (2, t[1], t[2], t[3]),
        (4, 0, t[5], t[6]),
        (5, 0, t[9], t[10]),
        (6, t[11], t[7], t[8]),
        (7, t[12], 0, 0),
    ):
        P[link - 1][3, :] = P[link - 1][:, 3] = [x, y, 0, m]
    P[1][0, 0] = t[4]
    return P


def _lagrange(q: np.ndarray, th: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """M and g of one configuration; derivatives by complex steps, exact to rounding."""
    P = _pseudo_inertias(th)
    steps = [[T.imag / 1e-30 for T in _chain(q + 1e-30j * unit)] for unit in np.eye(4)]
    M = [[sum(np.trace(a @ p @ b.T) for a, b, p in zip(s, r, P, strict=False)) for s in steps] for r in steps]
    g = [sum(9.81 * (a @ p[:, 3])[2] for a, p in zip(s, P, strict=False)) for s in steps]
    return np.array(M), np.array(g)


def test_mass_matrix_is_the_corrected_appendix_b() -> None:
    q, _, _ = _states(0)
    for th in (cft.THETA, np.random.default_rng(1).normal(size=32)):
        M = cft.mass_matrix(q, th)
        assert np.abs(M - _appendix_b(q, th)).max() < 1e-12
        assert np.array_equal(M, np.swapaxes(M, 1, 2))


def test_mass_matrix_and_gravity_are_the_lagrange_model_of_the_chain() -> None:
    q, _, _ = _states(2, 40)
    th = np.random.default_rng(3).normal(size=32)
    M, g = cft.mass_matrix(q, th), cft.gravity(q, th)
    for i in range(len(q)):
        wanted_M, wanted_g = _lagrange(q[i], th)
        assert np.abs(M[i] - wanted_M).max() < 1e-12
        assert np.abs(g[i] - wanted_g).max() < 1e-12


def test_closed_form_equals_newton_euler_of_the_mechanism() -> None:
    q, v, a = _states(4)
    for th in (cft.THETA, np.random.default_rng(5).normal(size=32)):
        robot = cft.mechanism(th)
        tau = di.inverse_dynamics(robot, di.Motion(np.arange(len(q)), q, v, a))
        mine = cft.inverse_dynamics(q, v, a, th) - cft.friction(v, th)
        assert np.abs(tau - mine).max() < 1e-12 * np.abs(tau).max()
        assert np.abs(di.mass_matrix(robot, q) - cft.mass_matrix(q, th)).max() < 1e-11
        assert np.abs(di.coriolis_matrix(robot, q, v) - cft.coriolis_matrix(q, v, th)).max() < 1e-11
        assert np.abs(di.gravity(robot, q) - cft.gravity(q, th)).max() < 1e-11
        Y = cft.regressor(q, v, a)
        assert Y.shape == (len(q), 4, 12)
        assert np.abs(Y @ th[:12] - mine).max() < 1e-11


def test_mdot_minus_two_c_is_skew() -> None:
    q, v, _ = _states(6)
    step = _mass(list((q + 1e-30j * v).T), list(cft.THETA[:12]))
    Mdot = np.zeros((len(q), 4, 4))
    for (i, j), value in step.items():
        Mdot[:, i, j] = np.imag(value) / 1e-30
    S = Mdot - 2 * cft.coriolis_matrix(q, v)
    assert np.abs(S + np.swapaxes(S, 1, 2)).max() < 1e-12
    x, y = _states(7)[:2]
    left = np.einsum("nij,nj->ni", cft.coriolis_matrix(q, x), y)
    assert np.abs(left - np.einsum("nij,nj->ni", cft.coriolis_matrix(q, y), x)).max() < 1e-12  # (21)


def test_base_parameters_of_reduced_and_complete_model() -> None:
    q, v, a = _states(8)
    assert np.linalg.matrix_rank(cft.regressor(q, v, a).reshape(-1, 12)) == 12
    assert di.base_parameters(cft.mechanism(None)).rank == 22  # the complete chain; the reduced model has 12
    assert cft.mechanism().coordinate_names == cft.JOINTS


def test_tool_and_carriage_positions() -> None:
    q, _, _ = _states(9)
    R, p = di.forward_kinematics(cft.mechanism(), q, "tool")
    assert np.abs(p - cft.tool_position(q)).max() < 1e-13
    assert np.abs(R[:, :, 1] - [0, 0, 1]).max() < 1e-13  # the tool stays level
    assert np.abs(p - [_chain(x)[8][:3, 3].real for x in q]).max() < 1e-13
    slid = di.forward_kinematics(cft.mechanism(), q * [0, 0, 1, 1], "link_3")[1]
    assert np.abs(slid - np.column_stack([0 * q[:, 0], cft.carriage(q), np.full(len(q), L2)])).max() < 1e-14
    # The printed sign in y_T is off by L6 sin(q2 - q4).
    printed = cft.tool_position(q)[:, 1] + 0.5 * L6 * 2 * sin(q[:, 2] - q[:, 1])
    assert np.abs(printed - p[:, 1]).max() > 0.2


def test_cartesian_maps_invert_each_other() -> None:
    xc = _cartesian(0)
    q = cft.joint_from_cartesian(xc)
    assert np.abs(cft.cartesian_from_joint(q) - xc).max() < 1e-14
    assert np.abs(cft.joint_from_cartesian(cft.cartesian_from_joint(q)) - q).max() < 1e-12
    assert q[:, 2].min() > -1.931 and q[:, 2].max() < 0.189 and q[:, 3].min() > 0.78 and q[:, 3].max() < 2.483
    # (44): the same point by the report's Cartesian formula, to the rounding of its 0.8292.
    reach = xc[:, 1] - 0.185
    e = np.column_stack([reach * cos(xc[:, 2] - 0.8292), xc[:, 3] + 0.185 + reach * sin(xc[:, 2] - 0.8292), 0.5 - xc[:, 0]])
    assert np.abs(cft.tool_position(q, tool=False) - e).max() < 3e-6
    # (52), (53) as printed, for x_r < 0
    xr, yr = cft.references_from_cartesian(xc).T
    beta = np.arccos(-xr / np.hypot(xr, yr)) + np.arccos(np.hypot(xr, yr) / (2 * L4))
    assert np.abs(np.pi / 2 - beta - q[:, 2])[yr > 0].max() < 1e-12


def test_joint_motion_is_exact() -> None:
    t = np.linspace(0, 10, 200)
    x, v, a = cft.excitation(t)
    q, dq, ddq = cft.joint_motion(x, v, a)
    h = 1e-5
    before, after = (cft.joint_motion(*cft.excitation(t + s)) for s in (-h, h))
    assert np.abs((after[0] - before[0]) / (2 * h) - dq).max() < 1e-8
    assert np.abs((after[1] - before[1]) / (2 * h) - ddq).max() < 1e-8
    J = cft.cartesian_jacobian(q)
    assert np.abs(np.einsum("nij,nj->ni", J, dq) - v).max() < 1e-13


def test_force_maps_invert_each_other_and_do_the_same_work() -> None:
    q = cft.joint_from_cartesian(_cartesian(1))
    rng = np.random.default_rng(2)
    tau, v = rng.normal(size=(len(q), 4)) * 10, rng.normal(size=(len(q), 4))
    force = cft.force_from_torque(q, tau)  # with the minus that (65) lacks
    assert np.abs(cft.torque_from_force(q, force) - tau).max() < 1e-11
    assert np.abs(cft.force_from_torque(q, cft.torque_from_force(q, tau)) - tau).max() < 1e-9
    for setup in ("TUEdACS", "dSPACE"):
        volts = cft.voltage_from_force(force, setup)
        assert np.abs(cft.force_from_voltage(volts, setup) - force).max() < 1e-10
    J = cft.cartesian_jacobian(q)
    power = np.einsum("ni,nij,nj->n", cft.cartesian_force(force), J, v)
    assert np.abs(power - np.sum(tau * v, axis=1)).max() < 1e-10


GAINS_PRINTED = {  # K_T [N/V, N/V, N m/V, N/V]; the last one of dSPACE is printed in N m/V but is N/V
    "TUEdACS": (430.2725, 430.2725, 31.7814, 107.5681),
    "dSPACE": (107.5681, 107.5681, 7.9453, 26.8920),
}
PULSES = 2000  # of an encoder, per turn


def test_gains_and_encoders() -> None:
    """Table 6; 31.7814 and 7.9453 are truncated in print."""
    for setup, printed in GAINS_PRINTED.items():
        assert cft.motor_gains(setup) == pytest.approx(printed, abs=1.01e-4)
    assert cft.motor_gains() == pytest.approx([430.2725, 430.2725, 31.7815, 107.5681], abs=6e-5)
    assert cft.encoder_position([[1000, 1000, 1000, 1000]])[0] == pytest.approx([8.7989e-3, 7.5209e-3, 1.6886e-2, 5e-3])
    turns = 6.16 / cft.ENCODER_FACTORS[2] / PULSES
    assert turns == pytest.approx(182.4, abs=0.01)  # printed 182


def test_table_4_and_golden_numbers_of_the_digest() -> None:
    assert len(cft.THETA) == len(cft.THETA_NAMES) == len(cft.THETA_UNITS) == 32
    assert cft.THETA[[0, 11, 12, 31]].tolist() == [121.3049, 4.1328, 97.26, 16.2942]
    q = cft.joint_from_cartesian([-0.1343, 0.2766, 2.4, 0.0869])
    assert q[0] == pytest.approx([0.2719, 0, -0.98963, 1.97926], abs=5e-6)
    assert np.linalg.eigvalsh(cft.mass_matrix(q))[0] == pytest.approx([0.10495, 1.58391, 1.73324, 126.38790], abs=5e-6)
    assert cft.gravity(q)[0] == pytest.approx([0, 0, -10.44705, -22.44673], abs=5e-6)
    # Table 3 as amplitudes of position at 0.1 Hz gives the printed condition number 277.4 (inferred).
    F = cft.regressor(*cft.joint_motion(*cft.excitation(np.arange(400) / 40))).reshape(-1, 12)
    assert np.linalg.cond(F) == pytest.approx(277.333, abs=1e-3)


def test_printed_parameters_make_m_indefinite_on_a_third_of_the_workspace() -> None:
    """M is indefinite on 34.7 % of a grid that takes the rotation once around."""
    verdict = cft.definiteness()
    assert verdict.indefinite == pytest.approx(0.349, abs=0.002)
    point, smallest = verdict.worst
    assert point[:2] == pytest.approx([-0.2918, -0.0269]) and smallest == pytest.approx(-0.168, abs=1e-3)
    axes = [np.linspace(*data.LIMITS[0], 31), np.linspace(*data.LIMITS[1], 31), np.linspace(0, 2 * np.pi, 13), [0.1]]
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 4)
    least = np.linalg.eigvalsh(cft.mass_matrix(cft.joint_from_cartesian(grid)))[:, 0]
    assert np.mean(least <= 0) == pytest.approx(0.347, abs=5e-4) and least.min() == pytest.approx(-0.16770, abs=5e-6)
    assert cft.definiteness(added_inertia=0.2).worst[1] == pytest.approx(0.032, abs=5e-4)


def test_forward_dynamics_inverts_or_refuses() -> None:
    mid = cft.joint_from_cartesian([-0.1343, 0.2766, 2.4, 0.0869])
    v, tau = np.array([[0.1, 0.2, -0.3, 0.1]]), np.array([[60.0, 20, -6, 5]])
    a = cft.forward_dynamics(mid, v, tau)
    assert np.abs(cft.inverse_dynamics(mid, v, a) - tau).max() < 1e-11
    bad = cft.joint_from_cartesian([-0.2918, -0.0269, 2.6, 0.1])
    with pytest.raises(di.DynidentError, match=r"sample 0: the mass matrix is not positive definite \(eigenvalue -0\.16"):
        cft.forward_dynamics(bad, v, tau)
    assert np.isfinite(cft.forward_dynamics(bad, v, tau, added_inertia=0.2)).all()


def test_reference_run_of_the_digest() -> None:
    """A10: from the mid pose at rest, tau = G(q0) + (60, 20, -6, 5) for 0.1 s."""
    from scipy.integrate import solve_ivp

    q0 = cft.joint_from_cartesian([-0.1343, 0.2766, 2.4, 0.0869])[0]
    tau = cft.gravity(q0)[0] + [60, 20, -6, 5]
    run = solve_ivp(
        lambda _, y: np.concatenate([y[4:], cft.forward_dynamics(y[:4], y[4:], tau)[0]]),
        (0, 0.1),
        np.concatenate([q0, np.zeros(4)]),
        method="LSODA",
        rtol=1e-9,
        atol=1e-11,
    )
    assert run.y[:4, -1] == pytest.approx([0.273832, 0.030732, -1.010267, 2.003791], abs=2e-6)
    assert run.y[4:, -1] == pytest.approx([0.044022, 0.567445, -0.256833, 0.276094], abs=2e-6)


def test_friction_that_feeds_energy_is_found() -> None:
    """The printed friction of three joints feeds energy near rest."""
    report = cft.friction_report()
    assert [r.passive for r in report] == [False, True, False, False]
    assert [r.coulomb for r in report] == pytest.approx([-8.3997, 7.3105, 1.2548, 2.3740], abs=1e-9)
    assert [r.slope for r in report] == pytest.approx([-3556.96, 635.15, -66.38, -67.48], abs=0.01)
    assert [r.feeds_below for r in report] == pytest.approx([0.0864, 0, 0.0165, 0.0423], abs=5e-5)
    assert report[0].worst == pytest.approx(-14.44, abs=0.01)
    v = np.array([[0.05, 0.05, 0.01, 0.01]])
    assert np.array_equal(cft.friction(v)[0] * v[0] < 0, [True, False, True, True])
    exponential = cft.THETA[12] * 0.02 + cft.THETA[16] * (1 - 2 / (1 + np.exp(2 * cft.THETA[24] * 0.02)))
    exponential += cft.THETA[20] * (1 - 2 / (1 + np.exp(2 * cft.THETA[28] * 0.02)))
    assert cft.friction([0.02, 0, 0, 0])[0, 0] == pytest.approx(exponential)
    assert np.isfinite(cft.friction([1e6, 1e6, 1e6, 1e6])).all()


def test_cartesian_dynamics_give_the_forces_of_the_joint_torques() -> None:
    """Section 4.3 against (57), (60) and (65): the same motion through the joints, and its kinetic energy."""
    rng = np.random.default_rng(11)
    xc = _cartesian(11, 50)
    vc, ac = rng.normal(size=(50, 4)), rng.normal(size=(50, 4))
    q, v, a = cft.joint_motion(xc, vc, ac)
    found = cft.cartesian_dynamics(q, v)
    force = np.einsum("nij,nj->ni", found.mass, ac) + found.velocity + found.gravity + found.friction
    through = cft.cartesian_force(cft.force_from_torque(q, cft.inverse_dynamics(q, v, a)))
    np.testing.assert_allclose(force, through, rtol=1e-9, atol=1e-9)
    energy = np.einsum("ni,nij,nj->n", v, cft.mass_matrix(q), v)
    np.testing.assert_allclose(np.einsum("ni,nij,nj->n", vc, found.mass, vc), energy, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(np.einsum("ni,ni->n", vc, found.friction), np.einsum("ni,ni->n", v, cft.friction(v)), rtol=1e-9)


def test_measured_relations_of_the_nuts() -> None:
    """(50) and (51) as printed; they differ from (48) and (49) by 0.02 and 0.05 mm everywhere."""
    xc = _cartesian(12)
    printed = np.column_stack([(xc[:, 1] + 0.0269) / 6 - 0.0506, (0.0232 - xc[:, 0]) / 7 + 0.03235])
    np.testing.assert_allclose(cft.measured_references(xc), printed, atol=1e-12)
    away = cft.measured_references(xc) - cft.references_from_cartesian(xc)
    np.testing.assert_allclose(away, np.tile([-1.6667e-5, -5e-5], (len(xc), 1)), atol=1e-8)


def test_the_cartesian_regressor_is_the_joint_one_of_the_mapped_motion() -> None:
    model = cft.cartesian_model()
    t = np.arange(200) / 20.0
    x, v, a = cft.excitation(t)
    tau = di.inverse_dynamics(model, di.Motion(t, x, v, a))
    q, dq, ddq = cft.joint_motion(x, v, a)
    np.testing.assert_allclose(tau, cft.inverse_dynamics(q, dq, ddq) - cft.friction(dq), atol=1e-9)
    F = di.regressor(model, di.Motion(t, x, v, a)).reshape(-1, 12)
    assert np.linalg.cond(F) == pytest.approx(277.333, abs=1e-3)


def test_the_block_tells_cut_voltages_and_limits() -> None:
    start = np.array([-0.1343, 0.2766, 2.4, 0.53])
    q = cft.joint_from_cartesian(start)
    hold = cft.voltage_from_force(cft.force_from_torque(q, cft.gravity(q)))[0]
    run = cft.block([0.0, 0.05], hold, start, (0.0, 0.0, 0.1, 0.4))
    np.testing.assert_allclose(run.xc[0], start, atol=1e-12)
    np.testing.assert_allclose(run.vc[0], [0.0, 0.0, 0.1, 0.4], atol=1e-12)
    np.testing.assert_allclose(run.voltage, np.tile(hold, (len(run.t), 1)), atol=1e-9)
    assert run.status[0] == 0 and run.status[-1] == 2  # the rail ran over 0.5344 m
    with pytest.warns(di.errors.SimulationWarning, match="at its current limit"):
        cut = cft.block([0.0, 0.02], hold + np.array([0.0, 0.0, 5.0, 0.0]), start)
    assert set(cut.status) == {1}
    assert cut.voltage[:, 2] == pytest.approx(2.5)  # 4 A at 1.6 A/V
    assert "a voltage cut 100 %" in cut.summary()


def test_bad_input() -> None:
    with pytest.raises(di.DynidentError, match=r"sample 1: xc1 = 0, xc2 = 2 m is 1\.\d+ m out of the pantograph's reach"):
        cft.joint_from_cartesian([[0, 0.3, 0, 0], [0, 2.0, 0, 0]])
    with pytest.raises(di.DynidentError, match=r"q has shape \(3,\); give \(samples, 4\)"):
        cft.mass_matrix([0, 0, 0])
    with pytest.raises(di.DynidentError, match=r"theta has shape \(5,\); give the 32 numbers of Table 4, or the first 12"):
        cft.mass_matrix(np.zeros(4), np.zeros(5))
    with pytest.raises(di.DynidentError, match=r"theta has shape \(12,\); give the 32 numbers of Table 4$"):
        cft.friction(np.zeros(4), np.zeros(12))
    with pytest.raises(di.DynidentError, match=r"numbers of samples differ \(q 2, v 1\)"):
        cft.coriolis_matrix(np.zeros((2, 4)), np.zeros((1, 4)))
    with pytest.raises(di.DynidentError, match="sin q5 = 0"):
        cft.force_from_torque(np.zeros(4), np.zeros(4))
    with pytest.raises(di.DynidentError, match="setup is 'mine'"):
        cft.motor_gains("mine")


def test_forward_run_of_the_cft_digest() -> None:
    robot = cft.mechanism()
    q0 = np.ravel(cft.joint_from_cartesian([-0.1343, 0.2766, 2.4, 0.0869]))
    tau = cft.gravity(q0).ravel() + np.array([60.0, 20.0, -6.0, 5.0])
    Bv, B1, B2, w1, w2 = np.asarray(cft.THETA)[12:].reshape(5, 4)
    laws = {
        name: Sigmoid(2).using(Bv=Bv[i], Bf1=B1[i], Bf2=B2[i], w1=w1[i], w2=w2[i])
        for i, name in enumerate(robot.coordinate_names)
    }
    end = go(machine(robot, law=OpenLoop(torque=tau), step=1e-4, friction=laws), 1001, q0).truth.motion
    np.testing.assert_allclose(end.q[-1], [0.273832, 0.030732, -1.010267, 2.003791], atol=2e-6)
    np.testing.assert_allclose(end.v[-1], [0.044022, 0.567445, -0.256833, 0.276094], atol=2e-6)


def test_the_published_cft_model_is_blamed_where_its_mass_matrix_fails() -> None:
    t = np.linspace(5.0, 10.0, 1001)
    reference = cft.cartesian_reference(t, *cft.excitation(t))
    with pytest.raises(SimulationError, match=r"mass matrix is not positive definite at t = 0\.7\d+ s \(of joint 'q\d'"):
        cft.machine("pd", bandwidth=8.0).simulate(reference)


def test_a_run_that_rests_where_the_mass_matrix_is_indefinite_stops_at_once() -> None:
    xc = np.tile([-0.28, 0.0, 2.4, 0.08], (2, 1))
    held = cft.cartesian_reference([0.0, 0.1], xc, 0.0 * xc, 0.0 * xc)
    with pytest.raises(SimulationError, match=r"not positive definite at t = 0 s .* so accelerations are undefined"):
        cft.machine().simulate(held)
    assert len(cft.machine(added_inertia=0.2).simulate(held).log)


def test_bounds_of_the_published_transposer() -> None:
    """On the workspace of Table 5 M is indefinite at a third of the points; norms of M, C and g of the closed forms."""
    grid = cft.definiteness(grid=(13, 13, 7))
    q = cft.joint_from_cartesian(grid.xc)
    found = check(cft.mechanism(), q)
    definite = next(c for c in found.checks if c.name == "definiteness")
    assert not found.ok and not definite.ok
    assert definite.value == pytest.approx(grid.worst[1], rel=1e-9)
    assert [c.name for c in found.checks if not c.ok] == ["definiteness"]
    M, g = cft.mass_matrix(q), cft.gravity(q)
    assert found.bounds["M_M"] == pytest.approx(np.linalg.norm(M, 2, axis=(1, 2)).max(), rel=1e-9)
    assert found.bounds["g_b"] == pytest.approx(np.linalg.norm(g, axis=1).max(), rel=1e-9)
    assert found.bounds["M_M"] == pytest.approx(126.64, abs=0.05)
    assert found.bounds["g_b"] == pytest.approx(57.42, abs=0.01)
    np.testing.assert_allclose(found.smallest, np.linalg.eigvalsh(M)[:, 0], atol=1e-11)
    assert "NOT positive definite at" in found.summary()


def test_the_twelve_parameters_of_the_transposer_by_its_own_regressor(tmp_path: Path) -> None:
    motion = smooth(4, 1500, seed=4)
    motion = di.Motion(motion.t, 0.3 * motion.q, 0.3 * motion.v, 0.3 * motion.a)
    Y = cft.regressor(motion.q, motion.v, motion.a)
    theta, names = cft.THETA[:12], cft.THETA_NAMES[:12]
    rng = np.random.default_rng(0)
    tau = Y @ theta + rng.normal(size=(1500, 4)) * [2.0, 1.0, 0.5, 0.2]
    names = [f"theta_{i} ({name})" for i, name in enumerate(names, 1)]
    evidence = di.Regression.from_rows(Y, tau, names, cft.JOINTS, cft.regressor, "transposer")
    assert evidence.mechanism.coordinate_names == cft.JOINTS
    plain = di.OLS().fit(evidence)
    np.testing.assert_allclose(plain.coef_, np.linalg.lstsq(Y.reshape(-1, 12), tau.ravel(), rcond=None)[0], rtol=1e-8)
    fit = di.WLS().fit(evidence).result_
    assert np.all(np.abs(fit.values - theta) < 4.5 * fit.std)
    np.testing.assert_allclose(fit.sigma, [2.0, 1.0, 0.5, 0.2], rtol=0.06)
    np.testing.assert_allclose(fit.predict(motion).effort, Y @ fit.values, rtol=1e-9, atol=1e-9)
    metrics = fit.score_rows(Y, Y @ theta)
    assert metrics.relative < 0.01
    assert "theta_12" in fit.summary()
    loaded = di.Fit.from_dict(fit.to_dict(), evidence.mechanism)
    np.testing.assert_array_equal(loaded.values, fit.values)
    path = fit.save(tmp_path / "fit.json")
    np.testing.assert_array_equal(di.load(path, evidence.mechanism).values, fit.values)
    with pytest.raises(di.DynidentError, match="give the mechanism"):
        di.load(path)
    both = evidence + evidence
    assert both.rows == 2 * evidence.rows
    # The same from a log, and with a friction law on top.
    robot = di.Mechanism.from_regressor(names, cft.regressor, cft.JOINTS)
    friction = 9.0 * np.tanh(8.0 * motion.v)
    rubbing = fit_friction(robot, Recording(motion, tau + friction), "tanh")
    for law in rubbing.friction.values():
        np.testing.assert_allclose(law.values, [9.0, 8.0], rtol=0.1)


def test_friction_keeps_its_bound_at_any_velocity() -> None:
    """[Rodriguez2002, eq. 25]; near the slowest and the fastest speeds of each joint the bound is nearly reached."""
    b_v, first, second = cft.friction_bound()
    rng = np.random.default_rng(0)
    v = rng.normal(size=(2000, 4)) * 10.0 ** rng.uniform(-4.0, 2.0, (2000, 1))
    size, bound = np.linalg.norm(cft.friction(v), axis=1), b_v * np.linalg.norm(v, axis=1) + first + second
    assert np.all(size <= bound)
    fast = np.array([[1e4, 0.0, 0.0, 0.0]])
    assert np.linalg.norm(cft.friction(fast)) > 0.999 * b_v * 1e4
