"""Dynamics of robots with loops: identities, Lagrange multipliers, minimal coordinates by hand, energy, MuJoCo."""

from __future__ import annotations

import numpy as np
import pytest
from loop_cases import CASES, four_bar, lagrange, opened, slider_crank, states

import dynident as di
from dynident.mechanics import close_motion


def _without_terms(mechanism: di.Mechanism) -> di.Mechanism:
    return mechanism.with_terms(())


@pytest.mark.parametrize("case", CASES)
def test_equation_of_motion_holds_together(case: str) -> None:
    """M a + C v + g = tau = Y phi, forward inverts inverse, Mdot - 2 C is skew, M is positive."""
    mechanism = CASES[case]()
    motion = states(mechanism)
    tau = di.inverse_dynamics(mechanism, motion)
    M, C, g = (
        di.mass_matrix(mechanism, motion.q),
        di.coriolis_matrix(mechanism, motion.q, motion.v),
        di.gravity(mechanism, motion.q),
    )
    scale = np.max(np.abs(tau))
    parts = np.einsum("nij,nj->ni", M, motion.a) + np.einsum("nij,nj->ni", C, motion.v) + g
    np.testing.assert_allclose(parts, tau, atol=1e-10 * scale)
    np.testing.assert_allclose(di.regressor(mechanism, motion) @ mechanism.parameters.values, tau, atol=1e-10 * scale)
    np.testing.assert_allclose(
        di.forward_dynamics(mechanism, motion.q, motion.v, tau), motion.a, atol=1e-9 * np.max(np.abs(motion.a))
    )
    assert np.all(np.linalg.eigvalsh(M) > 0.0)
    h = 1e-6
    Mdot = (di.mass_matrix(mechanism, motion.q + h * motion.v) - di.mass_matrix(mechanism, motion.q - h * motion.v)) / (2 * h)
    skew = Mdot - 2.0 * C
    assert np.max(np.abs(skew + np.swapaxes(skew, 1, 2))) < 1e-6 * np.max(np.abs(M))


@pytest.mark.parametrize("case", CASES)
def test_power_is_the_change_of_energy(case: str) -> None:
    mechanism = CASES[case]()
    motion, h = states(mechanism), 1e-4
    values = mechanism.parameters.values

    def energy(s: float) -> np.ndarray:
        at = di.Motion(motion.t, motion.q + s * motion.v + 0.5 * s**2 * motion.a, motion.v + s * motion.a, motion.a)
        kinetic, potential = di.energy_regressor(mechanism, at)
        return kinetic @ values + potential @ values

    power = np.sum(di.inverse_dynamics(mechanism, motion) * motion.v, axis=1)
    slope = (energy(h) - energy(-h)) / (2.0 * h)
    assert np.max(np.abs(slope - power)) < 1e-5 * (1.0 + np.max(np.abs(power)))


@pytest.mark.parametrize("case", CASES)
def test_projection_equals_lagrange_multipliers(case: str) -> None:
    """The projected forward dynamics against the whole tree with one multiplier per constraint of its frames."""
    mechanism = CASES[case]()
    motion = states(mechanism)
    closed = close_motion(mechanism, motion)
    tau = np.random.default_rng(0).normal(size=closed.q.shape)  # any torques on all joints, not only on motors
    a = lagrange(mechanism, closed.q, closed.v, tau)
    force = np.einsum("nij,ni->nj", closed.G, tau)
    mine = di.forward_dynamics(mechanism, motion.q, motion.v, force)
    scale = 1.0 + np.max(np.abs(a))
    np.testing.assert_allclose(mine, a[:, mechanism.closure.independent], atol=1e-9 * scale)
    whole = close_motion(mechanism, di.Motion(motion.t, motion.q, motion.v, mine)).a
    np.testing.assert_allclose(whole, a, atol=1e-9 * scale)


def test_joint_terms_act_on_passive_joints_too() -> None:
    """Rotor, friction, offset and spring of every joint, projected like the bodies."""
    mechanism = four_bar().with_terms(("ia", "fv", "fc", "off", "k"))
    rng = np.random.default_rng(1)
    terms = {n: float(rng.uniform(0.05, 0.5)) for n in mechanism.parameters.names if n.split("_")[0] in mechanism.terms}
    mechanism = mechanism.with_parameters(mechanism.parameters.replace(terms))
    motion = states(mechanism)
    closed = close_motion(mechanism, motion)
    tree = opened(mechanism)
    torque = di.inverse_dynamics(tree, di.Motion(motion.t, closed.q, closed.v, closed.a))
    expected = np.einsum("nij,ni->nj", closed.G, torque)
    np.testing.assert_allclose(di.inverse_dynamics(mechanism, motion), expected, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(di.regressor(mechanism, motion) @ mechanism.parameters.values, expected, rtol=1e-10, atol=1e-10)
    assert np.max(np.abs(expected - di.inverse_dynamics(four_bar(), motion))) > 0.1


# ---- by hand ------------------------------------------------------------------------------------------------------------


def _slider_crank_by_hand(theta: np.ndarray, v: np.ndarray, a: np.ndarray, mechanism: di.Mechanism) -> np.ndarray:
    """tau = M a + M' v^2 / 2 + V', with M and V of the crank angle alone; derivatives by complex steps, exact to round-off."""
    r, length = 0.25, 0.7
    p = mechanism.parameters

    def inertia(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        s = -r * np.sin(x) / length
        c = np.sqrt(1.0 - s**2)  # rod angle phi: sin, cos
        turn = -r * np.cos(x) / (length * c)  # d phi / d theta
        slide = -r * np.sin(x) - length * s * turn  # d x_slider / d theta
        M = p["Izz_crank"] + p["Izz_rod"] * turn**2 + p["m_slider"] * slide**2
        # Rod: its pin moves with r (-sin, cos); with first moment h the kinetic energy has m v^2 + 2 w (v x .. h).
        hx, hy = p["mx_rod"] * c - p["my_rod"] * s, p["mx_rod"] * s + p["my_rod"] * c
        M = M + p["m_rod"] * r**2 + 2.0 * turn * r * (np.sin(x) * hy + np.cos(x) * hx)
        height = p["mx_crank"] * np.sin(x) + p["my_crank"] * np.cos(x) + p["m_rod"] * r * np.sin(x) + hy + p["my_slider"]
        return M, 9.81 * height

    step = 1e-30j
    M, _ = inertia(theta)
    dM, dV = (part.imag / 1e-30 for part in inertia(theta + step))
    return M * a + 0.5 * dM * v**2 + dV


def test_slider_crank_in_minimal_coordinates() -> None:
    mechanism = _without_terms(slider_crank())
    rng = np.random.default_rng(2)
    theta = np.linspace(0.5, 0.5 + 2.0 * np.pi, 80)
    v, a = rng.normal(size=(2, 80))
    motion = di.Motion(theta, theta[:, None], v[:, None], a[:, None])
    expected = _slider_crank_by_hand(theta, v, a, mechanism)
    np.testing.assert_allclose(di.inverse_dynamics(mechanism, motion)[:, 0], expected, rtol=1e-9, atol=1e-9)
    found = di.base_parameters(mechanism)
    columns = di.regressor(mechanism, motion)[:, 0][:, found.columns]
    assert np.linalg.matrix_rank(columns / np.linalg.norm(columns, axis=0), tol=1e-8) == found.rank


@pytest.mark.parametrize("make", [four_bar, slider_crank])
def test_energy_is_conserved_in_free_motion(make: object) -> None:
    """Let go under gravity without friction, integrated by Runge-Kutta: kinetic plus potential energy stays."""
    mechanism = _without_terms(make())  # type: ignore[operator]
    values = mechanism.parameters.values
    x, v, h = mechanism.closure.home[mechanism.closure.independent].copy(), np.zeros(1), 2e-3

    def energy() -> float:
        kinetic, potential = di.energy_regressor(mechanism, di.Motion([0.0], x[None], v[None], np.zeros((1, 1))))
        return float((kinetic + potential)[0] @ values)

    def slope(q: np.ndarray, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return w, di.forward_dynamics(mechanism, q[None], w[None], np.zeros((1, 1)))[0]

    start, moved = energy(), 0.0
    for _ in range(150):
        k1 = slope(x, v)
        k2 = slope(x + 0.5 * h * k1[0], v + 0.5 * h * k1[1])
        k3 = slope(x + 0.5 * h * k2[0], v + 0.5 * h * k2[1])
        k4 = slope(x + h * k3[0], v + h * k3[1])
        x = x + h / 6.0 * (k1[0] + 2 * k2[0] + 2 * k3[0] + k4[0])
        v = v + h / 6.0 * (k1[1] + 2 * k2[1] + 2 * k3[1] + k4[1])
        moved = max(moved, abs(float(v[0])))
    assert moved > 0.5
    assert abs(energy() - start) < 1e-7


# ---- inside -------------------------------------------------------------------------------------------------------------


def test_mujoco_agrees_roughly() -> None:
    """MuJoCo closes the same four-bar by a soft `connect`; its accelerations agree to the softness."""
    mujoco = pytest.importorskip("mujoco", reason="mujoco is not installed: pip install 'dynident[dev]'")
    mechanism = _without_terms(four_bar("point"))
    p = mechanism.parameters

    def body(name: str, pos: str, joint: str, inner: str = "") -> str:
        m = p[f"m_{name}"]
        com = np.array([p[f"{s}_{name}"] for s in ("mx", "my", "mz")]) / m
        I = np.array([[p[f"I{''.join(sorted((r, c)))}_{name}"] for c in "xyz"] for r in "xyz"])  # noqa: E741
        I = I - m * (com @ com * np.eye(3) - np.outer(com, com))  # noqa: E741
        full = " ".join(f"{x:.17g}" for x in (I[0, 0], I[1, 1], I[2, 2], I[0, 1], I[0, 2], I[1, 2]))
        centre = " ".join(f"{x:.17g}" for x in com)
        return (
            f'<body name="{name}" pos="{pos}"><joint name="{joint}" type="hinge" axis="0 0 1"/>'
            f'<inertial mass="{m:.17g}" pos="{centre}" fullinertia="{full}"/>{inner}</body>'
        )

    text = f"""<mujoco><compiler angle="radian"/><option gravity="0 -9.81 0"/><worldbody>
      {body("crank", "0 0 0", "a", body("coupler", "0.3 0 0", "b"))}{body("rocker", "0.9 0 0", "c")}</worldbody>
      <equality><connect body1="coupler" body2="rocker" anchor="0.8 0 0" solref="0.002 1"
        solimp="0.9999 0.9999 0.001"/></equality>
      </mujoco>"""
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    # The connect is anchored where the bodies are at qpos0, which is not closed: say it in both bodies.
    model.eq_data[0, :6] = [0.8, 0.0, 0.0, 0.6, 0.0, 0.0]
    motion = states(mechanism, samples=10)
    closed = close_motion(mechanism, motion)
    tau = np.random.default_rng(3).normal(size=(10, 1)) * 3.0
    mine = di.forward_dynamics(mechanism, motion.q, motion.v, tau)
    for i in range(10):
        data.qpos[:], data.qvel[:], data.qfrc_applied[:] = closed.q[i], closed.v[i], [tau[i, 0], 0.0, 0.0]
        mujoco.mj_forward(model, data)
        assert data.qacc[0] == pytest.approx(mine[i, 0], rel=0.01, abs=0.05)
