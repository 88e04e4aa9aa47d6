"""MAST, the 2PRU-1PRS: closed forms against the general closure, three formulations of dynamics, document numbers."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from mechanism_oracles import loop_gaps
from scipy.optimize import brentq

import dynident as di
from dynident.arrays import Array
from dynident.errors import DynidentError
from dynident.mechanics import (
    actuator_jacobian,
    actuator_torques,
    close_motion,
    close_positions,
    forward_kinematics,
    frame_motion,
    jacobian,
)
from dynident.mechanism import Body, Joint, Loop, Mechanism, Placement, from_com
from dynident.mechanism.elements import rotation_exp
from dynident.mechanism.parameters import inertia_matrix, transform
from dynident.simulate import with_noise
from dynident.trajectory import random_motion
from dynident_lab.servo import bandwidth, delayed_integrator
from dynident_papers.robots import mast, tripod
from dynident_papers.robots.tripod_dynamics import body_jacobians

MODES = ("below", "above", (1, -1, 1))
PASSIVE = dict(zip(MODES, ("modelled", "ideal", "ideal"), strict=True))  # both spanning trees are the same robot
GENERIC = mast.Bodies(
    bar_mass=0.07,
    bar_inertia=4.1e-4,
    platform_mass=2.06,
    platform_inertia=np.array([[0.06, 0.003, -0.002], [0.003, 0.07, 0.001], [-0.002, 0.001, 0.12]]),
    bar_centre=0.45,
    platform_centre=np.array([0.01, -0.02, 0.03]),
    slider_mass=0.3,
)


def shake(samples: int = 200, tilt: float = 0.3) -> di.Motion:
    """Return a motion of z, psi, theta with analytic derivatives, through the level pose."""
    t = np.linspace(0.0, 2.0, samples)
    size, rate, phase = np.array([0.05, tilt, tilt]), np.array([3.0, 4.0, 5.0]), np.array([0.0, 0.0, 0.4])
    angle = t[:, None] * rate + phase
    q = mast.TRIPOD.home + size * (np.sin(angle) - np.sin(phase))
    return di.Motion(t, q, size * rate * np.cos(angle), -size * rate**2 * np.sin(angle))


@cache
def robot(coordinates: str = "platform", mode: str | tuple[int, ...] = "below", passive: str = "modelled") -> Mechanism:
    return mast.mechanism(coordinates, mode, passive, GENERIC)


def tree_columns(mechanism: Mechanism, q: Array, *names: str) -> Array:
    return q[:, [mechanism.tree.coordinates.index(name) for name in names]]


# ---- kinematics -----------------------------------------------------------------------------------------------------------


def test_home_is_level_with_sliders_at_zero_and_the_printed_bar_angle():
    legs = mast.leg_angles(mast.TRIPOD.home)
    np.testing.assert_allclose(legs.slider, 0.0, atol=1e-15)
    np.testing.assert_allclose(np.rad2deg(legs.gamma), 78.91, atol=5e-3)


def test_derivatives_are_those_of_the_positions():
    motion, h = shake(20), 1e-5
    legs = mast.leg_angles(motion.q, "below", motion.v, motion.a)

    def at(time: float) -> tripod.LegMotion:
        q = motion.q + time * motion.v + 0.5 * time**2 * motion.a
        return mast.leg_angles(q, "below", motion.v + time * motion.a, motion.a)

    ahead, behind = at(h), at(-h)
    for name in ("gamma", "slider", "joint", "foot"):
        first = (getattr(ahead, name) - getattr(behind, name)) / (2.0 * h)
        second = (getattr(ahead, f"{name}_dot") - getattr(behind, f"{name}_dot")) / (2.0 * h)
        np.testing.assert_allclose(getattr(legs, f"{name}_dot"), first, atol=1e-7)
        np.testing.assert_allclose(getattr(legs, f"{name}_ddot"), second, atol=1e-6)


@pytest.mark.parametrize("mode", MODES)
def test_forward_inverts_inverse_and_is_among_the_assembly_modes(mode):
    motion = shake(12)
    rho = mast.inverse_kinematics(motion.q, mode)
    np.testing.assert_allclose(mast.forward_kinematics(rho, mode), motion.q, atol=1e-13)
    modes = mast.assembly_modes(rho)
    assert np.all(np.nanmin(np.max(np.abs(modes - motion.q[:, None]), axis=2), axis=1) < 1e-10)
    for s in range(3):
        poses = modes[s][np.isfinite(modes[s, :, 0])]
        assert len(poses) >= 2
        for pose in poses:  # every assembly mode closes the bars with some working mode
            signs = [(a, b, c) for a in (1, -1) for b in (1, -1) for c in (1, -1)]
            assert min(np.max(np.abs(mast.inverse_kinematics(pose, w)[0] - rho[s])) for w in signs) < 1e-9


def test_a_start_on_another_assembly_mode_gives_that_mode():
    rho = np.zeros((1, 3))
    modes = mast.assembly_modes(rho)[0]
    poses = modes[np.isfinite(modes[:, 0])]
    assert len(poses) == 8
    flat = poses[np.argmin(np.linalg.norm(poses + mast.TRIPOD.home, axis=1))]  # the level platform below its sliders
    np.testing.assert_allclose(flat, -mast.TRIPOD.home, atol=1e-12)
    lifted = mast.forward_kinematics(rho + 0.01, "above", flat)
    np.testing.assert_allclose(lifted - flat, [[0.01, 0.0, 0.0]], atol=1e-13)


def test_printed_jacobians_hold_after_the_corrections_and_fail_before():
    x = np.array([[0.25, 0.1, -0.15]])
    h = 1e-6
    ahead, behind = (np.array([mast.inverse_kinematics(x + d * e)[0] for e in np.eye(3)]).T for d in (h, -h))
    slope = (ahead - behind) / (2 * h)
    J_x, J_q = mast.jacobians(x)
    assert np.max(np.abs(np.linalg.solve(J_q[0], J_x[0]) - slope)) < 1e-8
    gamma = mast.leg_angles(x).gamma[0]
    printed = J_x[0].copy()
    printed[1, 2] = mast.BAR * mast.RADIUS * np.sin(-0.15) * np.sin(0.1) * np.sin(gamma[0])  # (B.34)
    assert np.max(np.abs(np.linalg.solve(J_q[0], printed) - slope)) == pytest.approx(0.0105, abs=2e-4)

    signs = mast.TRIPOD.signs("below")
    J = np.linalg.inv(tripod.actuator_jacobian(mast.TRIPOD, x, signs))
    mine = mast.bar_jacobians(x)[0]
    for bar, outward in enumerate((1.0, 1.0, -1.0)):  # bar 3 leans along +x
        expected = body_jacobians(mast.TRIPOD, x, signs, mast.BODIES)[f"bar_{bar + 1}"][0] @ J[0]
        np.testing.assert_allclose(mine[bar], np.diag([outward, 1.0, 1.0]) @ expected, atol=1e-13)
    st, ct, sp = np.sin(-0.15), np.cos(-0.15), np.sin(0.1)
    wrong = np.zeros((3, 3))
    wrong[0, 2] = -mast.RADIUS * (st - ct * sp)  # printed minus true, first and last row of (B.56)
    wrong[2, 2] = -2.0 * mast.RADIUS * ct * sp / (mast.BAR * np.sin(gamma[2]))
    assert np.max(np.abs(wrong)) == pytest.approx(0.27, abs=0.005)


def test_platform_jacobians_match_the_motion_of_the_platform():
    motion = shake(10)
    J_G, J_R = mast.platform_jacobians(motion.q)
    rho_dot = mast.slider_motion(motion).v
    p = tripod.platform_motion(mast.TRIPOD, motion.q, motion.v, motion.a)
    np.testing.assert_allclose(np.einsum("sij,sj->si", J_G, rho_dot), p.v, atol=1e-13)
    np.testing.assert_allclose(np.einsum("sij,sj->si", J_R, rho_dot), p.w, atol=1e-13)
    back = mast.platform_motion(mast.slider_motion(motion))
    np.testing.assert_allclose(np.hstack([back.q, back.v, back.a]), np.hstack([motion.q, motion.v, motion.a]), atol=1e-11)


@pytest.mark.parametrize(("mode", "passive"), [*((mode, "ideal") for mode in MODES), ("below", "modelled")])
def test_general_closure_agrees_with_the_closed_forms(mode, passive):
    motion, m = shake(), robot("platform", mode, passive)
    closure = m.closure
    assert (closure.dof, closure.redundant_equations) == (3, 2)  # U, U, S on PR legs: two constraints too many
    closed = close_motion(m, motion)
    legs = mast.leg_angles(motion.q, mode, motion.v, motion.a)
    sliders = ("rho_1", "rho_2", "rho_3")
    np.testing.assert_allclose(tree_columns(m, closed.q, *sliders), legs.slider, atol=1e-13)
    np.testing.assert_allclose(tree_columns(m, closed.v, *sliders), legs.slider_dot, atol=1e-11)
    np.testing.assert_allclose(tree_columns(m, closed.a, *sliders), legs.slider_ddot, atol=1e-9)
    np.testing.assert_allclose(tree_columns(m, closed.v, "gamma_1", "gamma_2", "gamma_3"), legs.gamma_dot, atol=1e-11)
    np.testing.assert_allclose(tree_columns(m, closed.q, "x")[:, 0], mast.parasitic_motion(motion.q), atol=1e-13)
    np.testing.assert_allclose(tree_columns(m, closed.q, "y", "phi"), 0.0, atol=1e-13)
    A = tripod.actuator_jacobian(mast.TRIPOD, motion.q, mast.TRIPOD.signs(mode))
    np.testing.assert_allclose(actuator_jacobian(m, motion.q), A, atol=1e-12)


def test_universal_joints_turn_with_the_platform():
    motion, m = shake(50), robot()
    q = close_motion(m, motion).q
    gamma = mast.leg_angles(motion.q).gamma
    np.testing.assert_allclose(tree_columns(m, q, "beta_m_1")[:, 0], motion.q[:, 2] - gamma[:, 0], atol=1e-12)
    np.testing.assert_allclose(tree_columns(m, q, "beta_m_3")[:, 0], -motion.q[:, 2] - gamma[:, 2], atol=1e-12)
    np.testing.assert_allclose(tree_columns(m, q, "beta_l_1", "beta_l_3"), motion.q[:, [1]] * [1.0, -1.0], atol=1e-12)


# ---- dynamics: projection, energy equivalence, Boltzmann-Hamel ------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
def test_projection_energy_equivalence_and_boltzmann_hamel_agree(mode):
    motion, m = shake(), robot("platform", mode, PASSIVE[mode])
    force = actuator_torques(m, motion.q, di.inverse_dynamics(m, motion))
    for formulation in mast.FORMULATIONS:
        mine = mast.inverse_dynamics(motion.q, motion.v, motion.a, GENERIC, mode, formulation)
        np.testing.assert_allclose(mine, force, atol=1e-9)
    sliders = mast.slider_motion(motion, mode)
    direct = robot("actuators", mode, PASSIVE[mode])
    np.testing.assert_allclose(di.inverse_dynamics(direct, sliders), force, atol=1e-9)
    np.testing.assert_allclose(di.mass_matrix(direct, sliders.q), mast.mass_matrix(motion.q, GENERIC, mode), atol=1e-9)


def body_sum(m: Mechanism, motion: di.Motion) -> tuple[Array, Array]:
    """Return forces and mass matrix as sums over bodies of J_b^T (wrench of body b) and J_b^T M_b J_b."""
    force, M = np.zeros((len(motion), m.dof)), np.zeros((len(motion), m.dof, m.dof))
    for body in m.bodies:
        if body.inertia is None:
            continue
        J = jacobian(m, motion.q, body.name)
        R, _ = forward_kinematics(m, motion.q, body.name)
        velocity, acceleration = frame_motion(m, motion, body.name)
        mass, h, inertia = body.inertia[0], body.inertia[1:4], inertia_matrix(body.inertia)
        lift = acceleration[:, :3] - np.einsum("sji,j->si", R, m.gravity)
        w, w_dot = velocity[:, 3:], acceleration[:, 3:]
        f = mass * lift + np.cross(w_dot, h) + np.cross(w, np.cross(w, h))
        n = np.cross(h, lift) + w_dot @ inertia + np.cross(w, w @ inertia)
        force += np.einsum("sij,si->sj", J, np.hstack([f, n]))
        hx = np.array([[0.0, -h[2], h[1]], [h[2], 0.0, -h[0]], [-h[1], h[0], 0.0]])
        M += np.swapaxes(J, 1, 2) @ np.block([[mass * np.eye(3), -hx], [hx, inertia]]) @ J
    return force, M


@pytest.mark.parametrize("coordinates", ["platform", "actuators"])
def test_projection_is_the_sum_over_bodies_for_any_inertia(coordinates):
    generator = np.random.default_rng(3)
    m = robot(coordinates, "below", "ideal")

    def loaded(body: Body) -> Body:
        if body.inertia is None:
            return body
        spread = generator.normal(size=(3, 3)) * 0.1
        moment = np.trace(spread @ spread.T) * np.eye(3) - spread @ spread.T
        return Body(body.name, from_com(generator.uniform(0.5, 2.0), generator.normal(size=3) * 0.05, moment))

    m = Mechanism(
        m.name, tuple(loaded(b) for b in m.bodies), m.joints, m.loops, (), m.actuators, (), m.gravity, m.independent, m.home
    )
    motion = shake(50) if coordinates == "platform" else mast.slider_motion(shake(50))
    force, M = body_sum(m, motion)
    np.testing.assert_allclose(di.inverse_dynamics(m, motion), force, atol=1e-9 * np.max(np.abs(force)))
    np.testing.assert_allclose(di.mass_matrix(m, motion.q), M, atol=1e-9 * np.max(np.abs(M)))
    np.testing.assert_allclose(di.regressor(m, motion) @ m.parameters.values, force, atol=1e-9 * np.max(np.abs(force)))
    bias = np.einsum("sij,sj->si", di.coriolis_matrix(m, motion.q, motion.v), motion.v) + di.gravity(m, motion.q)
    np.testing.assert_allclose(np.einsum("sij,sj->si", M, motion.a) + bias, force, atol=1e-9 * np.max(np.abs(force)))


def test_power_is_the_rate_of_energy():
    motion, m = shake(4001), robot("platform", "below", "ideal")
    kinetic, potential = di.energy_regressor(m, motion)
    power = np.sum(di.inverse_dynamics(m, motion) * motion.v, axis=1)
    rate = np.gradient((kinetic + potential) @ m.parameters.values, motion.t)
    np.testing.assert_allclose(rate[1:-1], power[1:-1], atol=2e-5 * np.max(np.abs(power)))


# ---- other spanning trees of the same robot -------------------------------------------------------------------------------


def legs_from_the_platform() -> Mechanism:
    """Return the robot cut at its pins: bars hang on the platform by U and S joints, revolute cuts meet the sliders."""
    t, base = mast.TRIPOD, robot("actuators", "below", "ideal")
    gamma = mast.leg_angles(t.home).gamma[0]
    carrier = [j for j in base.joints if not j.name.startswith(("gamma", "rho"))]
    sliders = [j for j in base.joints if j.name.startswith("rho")]
    home = dict(base.home)
    joints, loops = [*carrier, *sliders], []
    for i, kind in enumerate(("universal", "spherical", "universal")):
        n, plane = i + 1, rotation_exp([0.0, 0.0, t.bearings[i]])
        seat = Placement(plane, t.radius * t.outward[i])
        joints.append(Joint(f"b_{n}", kind, "platform", f"bar_{n}", seat, np.array([1.0, 0.0, 0.0]), np.array([0.0, 1.0, 0.0])))
        home[f"b_{n}.r2" if kind == "universal" else f"b_{n}.ry"] = float(gamma[i] - np.pi)
        foot = Placement(np.eye(3), np.array([-t.length, 0.0, 0.0]))
        loops.append(Loop(f"A_{n}", "revolute", f"slider_{n}", f"bar_{n}", Placement(), foot, np.array([0.0, 1.0, 0.0])))
        home.pop(f"gamma_{n}")
    shifted = [
        Body(b.name, transform(b.inertia, np.eye(3), np.array([-t.length, 0.0, 0.0]))) if b.name.startswith("bar") else b
        for b in base.bodies
    ]
    kept = {"actuators": base.actuators, "terms": (), "gravity": base.gravity, "independent": base.independent}
    return Mechanism("MAST cut at its pins", tuple(shifted), tuple(joints), tuple(loops), home=home, **kept)


def on_a_free_joint() -> Mechanism:
    """Return the robot with its platform on one free joint instead of six single ones."""
    base = robot("actuators", "below", "ideal")
    joints = [j for j in base.joints if j.name.startswith(("gamma", "rho"))]
    bodies = [b for b in base.bodies if not b.name.startswith("after_")]
    home = {name: x for name, x in base.home.items() if name not in ("z", "psi", "theta")} | {"p.z": base.home["z"]}
    kept = {"actuators": base.actuators, "terms": (), "gravity": base.gravity, "independent": base.independent}
    free = Joint("p", "free", "base", "platform")
    return Mechanism("MAST on a free joint", tuple(bodies), (free, *joints), base.loops, home=home, **kept)


@pytest.mark.parametrize("build", [legs_from_the_platform, on_a_free_joint])
def test_any_spanning_tree_and_cut_gives_the_same_robot(build):
    m = build()
    assert (m.closure.dof, m.closure.redundant_equations) == (3, 2)
    motion = mast.slider_motion(shake(tilt=0.35))
    closed = close_motion(m, motion)
    for s in range(0, len(motion), 23):  # balls and free joints have quasi-velocities: Newton must still converge
        assert np.max(np.abs(loop_gaps(m, closed.q[s]))) < 1e-13
    reference = robot("actuators", "below", "ideal")
    np.testing.assert_allclose(di.inverse_dynamics(m, motion), di.inverse_dynamics(reference, motion), atol=1e-9)
    np.testing.assert_allclose(di.mass_matrix(m, motion.q), di.mass_matrix(reference, motion.q), atol=1e-9)
    bent = close_positions(m, motion.q[[150]])  # from home in one go, the same branch
    np.testing.assert_allclose(bent[0], closed.q[150], atol=1e-10)


# ---- singularities --------------------------------------------------------------------------------------------------------


def determinant(psi: float) -> float:
    return float(np.linalg.det(mast.jacobians([mast.TRIPOD.home[0], psi, 0.0])[0])[0])


def test_parallel_singularity_is_found_and_flagged_by_closed_form_and_general_solver():
    psi = brentq(determinant, -1.0, -0.5)
    on = np.array([[mast.TRIPOD.home[0], psi, 0.0]])
    parallel, serial = mast.singularity(on)
    assert parallel[0] < 1e-12
    assert serial[0] > 0.1
    gamma = mast.leg_angles(mast.TRIPOD.home).gamma[0, 0]
    np.testing.assert_allclose(mast.singularity(mast.TRIPOD.home)[0], np.sin(gamma) ** 3)
    still = np.zeros((1, 3))
    with pytest.raises(DynidentError, match="parallel singularity at sample 0"):
        mast.inverse_dynamics(on, still, still)
    way = np.linspace(mast.TRIPOD.home, on[0], 40)
    rho = mast.inverse_kinematics(way)
    with pytest.raises(DynidentError, match="singular"):
        close_motion(robot("actuators", "below", "ideal"), di.Motion(np.arange(40.0), rho, 0 * rho, 0 * rho))
    beyond = np.array([mast.TRIPOD.home[0], psi - 0.1, 0.0])  # these sliders also fit a pose on this side of the singularity
    near = mast.forward_kinematics(mast.inverse_kinematics(beyond))[0]
    assert np.linalg.norm(near - beyond) > 0.05
    assert determinant(beyond[1]) * determinant(0.0) < 0.0
    assert np.linalg.det(mast.jacobians(near)[0])[0] * determinant(0.0) > 0.0


def test_serial_singularity_is_found_and_flagged():
    psi = np.arccos((mast.OFFSET - mast.BAR) / mast.RADIUS)  # bar 2 lies level
    with pytest.raises(DynidentError, match="leg 2 is square to its slider at sample 1"):
        mast.inverse_kinematics([mast.TRIPOD.home, [0.3, psi, 0.0]])
    assert mast.singularity([0.3, psi * (1 - 1e-6), 0.0])[1][0] < 0.01
    way = np.linspace(mast.TRIPOD.home, [0.3, psi, 0.0], 60)
    with pytest.raises(DynidentError, match="singular"):
        close_motion(robot("platform", "below", "ideal"), di.Motion(np.arange(60.0), way, 0 * way, 0 * way))


# ---- base parameters and identification -----------------------------------------------------------------------------------


@pytest.mark.parametrize("coordinates", ["platform", "actuators"])
def test_base_parameters_regroup_as_the_geometry_says(coordinates):
    m = robot(coordinates, "below", "ideal")
    base = di.base_parameters(m)
    # 19 of bodies (6 + 4 of the platform, 3 of each leg) and 15 of joints: ia, fv, fc of sliders, fv, fc of pins
    assert base.rank == 34 and base.rank_gap > 1e8
    names, L, r = m.parameters.names, mast.BAR, mast.RADIUS

    def coefficient(leader: str, parameter: str) -> float:
        row = next(k for k, column in enumerate(base.columns) if names[column] == leader)
        return float(base.regrouping[row, names.index(parameter)])

    # A bar is a mass at its pin, one at the platform joint and a first moment: Iyy / L^2 moves to the platform at radius r.
    expected = {
        ("m_platform", "Iyy_bar_2"): 1 / L**2,
        ("Izz_platform", "Iyy_bar_1"): r**2 / L**2,
        ("my_platform", "Iyy_bar_2"): r / L**2,
        ("mx_platform", "Iyy_bar_3"): -r / L**2,
        ("mx_bar_1", "Iyy_bar_1"): -1 / L,
        ("m_slider_1", "Iyy_bar_1"): -1 / L**2,
        ("m_slider_1", "m_bar_1"): 1.0,
        ("m_slider_1", "off_rho_1"): 1 / 9.81,  # gravity on a slider is an offset
    }
    for (leader, parameter), value in expected.items():
        assert coefficient(leader, parameter) == pytest.approx(value, rel=1e-7)


def test_friction_of_passive_joints_is_in_the_base_parameters_and_is_recovered():
    m = robot()
    base = di.base_parameters(m)
    assert base.rank == 46  # + 14 of the joints at the platform, of which beta_l_1 and beta_l_3 turn alike
    generator = np.random.default_rng(1)
    phi = m.parameters.values.copy()
    k = m.tree.inertias.size
    phi[k:] = generator.uniform(0.05, 0.5, phi.size - k)
    t = np.linspace(0.0, 10.0, 4000)
    q, v, a = (np.zeros((t.size, 3)) for _ in range(3))
    q += mast.TRIPOD.home
    for j, size in enumerate((0.04, 0.25, 0.25)):
        for harmonic in range(1, 6):
            w, phase = 2.0 * np.pi * 0.3 * harmonic + 0.1 * j, generator.uniform(0, 6.28)
            q[:, j] += size / 5 * (np.sin(w * t + phase) - np.sin(phase))
            v[:, j] += size / 5 * w * np.cos(w * t + phase)
            a[:, j] -= size / 5 * w**2 * np.sin(w * t + phase)
    motion = di.Motion(t, q, v, a)
    tau = actuator_torques(m, q, di.inverse_dynamics(m, motion, phi))
    estimate = di.OLS().fit(di.Regression.from_motion(m, motion, tau, base=base, projection="independent")).coef_
    true = base.values(phi)
    np.testing.assert_allclose(estimate, true, atol=1e-8 * np.max(np.abs(true)))


# ---- document numbers, bad input ------------------------------------------------------------------------------------------


def test_actuator_data_give_the_resonances_of_the_thesis():
    k_t = mast.TABLE_4_2["k_t"]
    assert np.sqrt(k_t / mast.J_2) / (2 * np.pi) == pytest.approx(914.0, abs=0.05)  # "about 900 Hz", 4.2.2
    both = np.sqrt(k_t * (mast.J_1 + mast.J_2) / (mast.J_1 * mast.J_2)) / (2 * np.pi)
    assert both == pytest.approx(959.2, abs=0.05)
    adjusted = np.sqrt(k_t * (mast.J_1_ADJUSTED + mast.J_2) / (mast.J_1_ADJUSTED * mast.J_2)) / (2 * np.pi)
    assert adjusted == pytest.approx(983.6, abs=0.05) and mast.TABLE_4_2["f_n"] == 986.5
    assert pytest.approx(0.0195, abs=5e-5) == mast.COULOMB_CATALOGUE
    assert pytest.approx(3.94e-4, abs=5e-7) == mast.BAR_INERTIA
    assert pytest.approx(2.27) == mast.PLATFORM_MASS + 3 * mast.BAR_MASS  # the "drive mass" of [Roldan2016, eq. 22]


def test_the_sliders_carry_the_weight():
    m = mast.mechanism("actuators")
    weight = (mast.PLATFORM_MASS + 3 * mast.BAR_MASS) * 9.81
    assert np.sum(di.gravity(m, np.zeros((1, 3)))) == pytest.approx(weight, rel=1e-12)
    motor = mast.mechanism(motor_ratio=mast.MOTOR_RATIO)
    torque = actuator_torques(motor, mast.TRIPOD.home[None], di.gravity(motor, mast.TRIPOD.home[None]))
    assert np.sum(torque) * mast.MOTOR_RATIO == pytest.approx(weight, rel=1e-12)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (
            lambda: mast.inverse_kinematics([0.25, 1.4, 0.0]),
            r"sample 0 \(z = 0.25, psi = 1.4, theta = 0\) is out of reach: leg 2",
        ),
        (
            lambda: mast.inverse_kinematics(mast.TRIPOD.home, "sideways"),
            "working mode is 'sideways'; it is one of below, above",
        ),
        (lambda: mast.mechanism(working_mode=(1, 2, 1)), "working mode is"),
        (lambda: mast.mechanism("joints"), "coordinates is 'joints'; it is one of platform, actuators"),
        (lambda: mast.mechanism(passive="no"), "passive is 'no'; it is one of modelled, ideal"),
        (lambda: mast.forward_kinematics([[0.0, 0.0, 3.0]]), "cannot be reached from the start pose"),
        (lambda: mast.inverse_kinematics([[0.25, 0.0]]), r"x has shape \(1, 2\); give \(samples, 3\)"),
        (lambda: mast.jacobians([0.25, np.nan, 0.0]), "x is not finite at sample 0"),
        (lambda: mast.inverse_dynamics(np.zeros((2, 3)), np.zeros((1, 3)), np.zeros((2, 3))), "numbers of samples differ"),
        (
            lambda: mast.inverse_dynamics(mast.TRIPOD.home, [0, 0, 0], [0, 0, 0], formulation="newton"),
            "formulation is 'newton'",
        ),
        (lambda: mast.Bodies(-1.0, 0.0, 1.0, np.eye(3)), "bar_mass is -1.0"),
        (lambda: mast.Bodies(1.0, 0.0, 1.0, np.eye(2)), r"platform_inertia .* shape \(3, 3\)"),
    ],
)
def test_bad_input_is_answered_by_one_sentence(call, sentence):
    with pytest.raises(DynidentError, match=sentence) as error:
        call()
    assert "\n" not in str(error.value)


def test_mast_loses_the_phase_of_its_dead_time() -> None:
    """The response k_v e^{-sT} / (s + k_v e^{-sT}) with 22.8 1/s and 8.8 ms explains the measured points."""
    found = bandwidth(mast.machine(), "z", 1e-4, [0.4, 5.0, 10.0], mechanism=False, friction=False)
    fit = delayed_integrator(22.8, 8.8e-3, found.frequency)
    np.testing.assert_allclose(found.magnitude, np.abs(fit), atol=0.01)
    np.testing.assert_allclose(found.phase, np.degrees(np.angle(fit)), atol=2.0)


STANDSTILL = 0.1


def deviations(robot: di.Mechanism, fit: di.Fit) -> np.ndarray:
    """Return (found - true) / std of the base parameters."""
    return np.asarray((fit.values - fit.base.values(robot.parameters.values)) / fit.std)


def test_shaking_table_with_elastic_drives():
    machine = mast.machine(position_cycle=1e-3)  # the log of 1 kHz is warned of when the command steps every 17 ms
    home = [machine.mechanism.home[name] for name in machine.mechanism.coordinate_names]
    train, test = (random_motion(home, [0.04, 0.2, 0.2], seed=s, duration=8.0) for s in (1, 2))
    motors = [drive.actuator for drive in machine.drives]
    log = with_noise(machine, train, 0.01).simulate(train, seed=0).log
    options = {"projection": motors, "standstill": STANDSTILL, "cutoff": 30.0}  # rows shorter than the time between reversals
    fit = di.WLS().fit(di.Regression.from_log(machine.model, log, **options)).result_
    assert np.abs(deviations(machine.model, fit)).max() < 4.0
    assert fit.score(machine.simulate(test, duration=6.0).log).metrics.relative < 0.01
