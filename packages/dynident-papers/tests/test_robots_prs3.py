"""The 3-PRS: the tables of [Ruiz2016], closed forms and the general closure, formulations of dynamics, flexures, bad input."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import dynident as di
from dynident.arrays import Array
from dynident.errors import DynidentError
from dynident.mechanics import actuator_jacobian, actuator_torques, close_motion, coordinates_from_actuators
from dynident.mechanism import Mechanism
from dynident_papers.properties import check
from dynident_papers.robots import prs3, tripod, tripod_dynamics

MODES = ("inward", "outward", (1, -1, 1))
PASSIVE = dict(zip(MODES, ("modelled", "ideal", "ideal"), strict=True))  # both spanning trees are the same robot
SECOND = np.deg2rad(1.0 / 3600.0)
GENERIC = prs3.Bodies(
    bar_mass=0.03,
    bar_inertia=4e-5,
    platform_mass=0.2,
    platform_inertia=np.array([[1.0, 0.03, -0.02], [0.03, 1.2, 0.1], [-0.02, 0.1, 2.0]]) * 1e-4,
    bar_centre=0.45,
    platform_centre=np.array([0.001, -0.002, 0.003]),
    slider_mass=0.3,
)


def tilting(samples: int = 150, share: float = 1.0) -> di.Motion:
    """Return a motion of z, psi, theta with analytic derivatives, through home."""
    t = np.linspace(0.0, 2.0, samples)
    size, rate, phase = share * np.array([0.008, 0.2, 0.2]), np.array([3.0, 4.0, 5.0]), np.array([0.0, 0.0, 0.4])
    angle = t[:, None] * rate + phase
    q = prs3.TRIPOD.home + size * (np.sin(angle) - np.sin(phase))
    return di.Motion(t, q, size * rate * np.cos(angle), -size * rate**2 * np.sin(angle))


@cache
def robot(coordinates: str = "platform", mode: str | tuple[int, ...] = "inward", passive: str = "modelled") -> Mechanism:
    return prs3.mechanism(coordinates, mode, passive, GENERIC)


def tree_columns(mechanism: Mechanism, q: Array, *names: str) -> Array:
    return q[:, [mechanism.tree.coordinates.index(name) for name in names]]


def without_springs(mechanism: Mechanism) -> Array:
    values = mechanism.parameters.values.copy()
    values[mechanism.tree.inertias.size :] = 0.0
    return values


# ---- the paper's numbers --------------------------------------------------------------------------------------------------


def test_forward_kinematics_reproduces_table_4():
    found = prs3.forward_kinematics([row.s for row in prs3.TABLE_4]) - prs3.TRIPOD.home
    printed = np.array([row.fkp for row in prs3.TABLE_4])
    np.testing.assert_allclose(found[1:, 0], printed[1:, 0], atol=1e-6)
    np.testing.assert_allclose(found[:, 1:], printed[:, 1:], atol=SECOND)
    # The first z is printed as 1384 um. No rounding of the printed sliders explains it: the rigid model says 1385.2 um.
    assert found[0, 0] == pytest.approx(1385.2e-6, abs=0.05e-6)
    known = [1385.2e-6, 722.2e-6, -630.7e-6, -1510.8e-6]  # solved once by another solver
    np.testing.assert_allclose(found[:, 0], known, atol=0.06e-6)


def test_general_closure_reproduces_table_4():
    sliders = np.array([row.s for row in prs3.TABLE_4])
    found = coordinates_from_actuators(robot(passive="ideal"), sliders)
    np.testing.assert_allclose(found, prs3.forward_kinematics(sliders), atol=1e-13)


def test_joint_ranges_of_figures_6_and_7():
    steps = np.linspace(-1.0, 1.0, 9)
    grid = np.array(np.meshgrid(steps, steps, steps)).reshape(3, -1).T * [prs3.TRAVEL, prs3.TILT, prs3.TILT]
    x = prs3.TRIPOD.home + grid
    s = prs3.inverse_kinematics(x)
    assert np.min(s) == pytest.approx(prs3.NEEDED_SLIDERS[0], abs=0.02e-3)
    assert np.max(s) == pytest.approx(prs3.NEEDED_SLIDERS[1], abs=0.02e-3)
    alpha = np.rad2deg(prs3.leg_angles(x).gamma - prs3.ALPHA_0)
    assert np.max(np.abs(alpha)) == pytest.approx(prs3.NEEDED["alpha"], abs=0.05)
    beta = np.max(np.abs(np.rad2deg(prs3.spherical_angles(x))), axis=(0, 1))
    np.testing.assert_allclose(beta, [prs3.NEEDED[k] for k in ("beta_m", "beta_n", "beta_l")], atol=0.06)
    np.testing.assert_allclose([prs3.OFFSET, prs3.HEIGHT], [0.125137, 0.0772267], atol=5e-7)


def test_stiffness_of_the_flexures_explains_the_forces_of_table_2():
    m = prs3.mechanism("actuators", bodies=prs3.Bodies(0.0, 0.0, 0.0, np.zeros((3, 3))))
    for force, s, z in prs3.TABLE_2:  # rigid legs between flexures against finite elements
        still = np.zeros((1, 3))
        model = di.inverse_dynamics(m, di.Motion([0.0], [[s, s, s]], still, still))
        np.testing.assert_allclose(model, force, rtol=0.01)
        rise = prs3.forward_kinematics([s, s, s])[0, 0] - prs3.HEIGHT
        assert rise == pytest.approx(z, rel=0.035)


# ---- kinematics -----------------------------------------------------------------------------------------------------------


def test_parasitic_motions_keep_the_joints_in_their_planes():
    motion = tilting()
    p = tripod.platform_motion(prs3.TRIPOD, motion.q, motion.v, motion.a)
    B = tripod.platform_joints(prs3.TRIPOD, p)
    for joint in B:  # (7), (8), (9) and their derivatives
        np.testing.assert_allclose(joint[:, 0, 1], 0.0, atol=1e-13)
        np.testing.assert_allclose(joint[:, 1, 1], -np.sqrt(3.0) * joint[:, 1, 0], atol=1e-13)
        np.testing.assert_allclose(joint[:, 2, 1], np.sqrt(3.0) * joint[:, 2, 0], atol=1e-13)
    parasitic = prs3.parasitic_motion(motion.q)
    np.testing.assert_allclose(np.column_stack([p.p[:, :2], p.angles[:, 2]]), parasitic, atol=1e-15)
    h = 1e-6
    slope = (prs3.parasitic_motion(motion.q + h * motion.v) - prs3.parasitic_motion(motion.q - h * motion.v)) / (2 * h)
    np.testing.assert_allclose(np.column_stack([p.v[:, :2], p.angle_rates[:, 2]]), slope, atol=1e-9)


@pytest.mark.parametrize("mode", MODES)
def test_forward_inverts_inverse_and_is_among_the_assembly_modes(mode):
    motion = tilting(10, 0.5)
    s = prs3.inverse_kinematics(motion.q, mode)
    np.testing.assert_allclose(prs3.forward_kinematics(s, mode), motion.q, atol=1e-13)
    modes = prs3.assembly_modes(s)
    assert np.all(np.nanmin(np.max(np.abs(modes - motion.q[:, None]), axis=2), axis=1) < 1e-10)
    for poses in modes:  # the sliders' plane is a mirror
        known = poses[np.isfinite(poses[:, 0])]
        assert len(known) % 2 == 0
        for pose in known:
            assert np.min(np.max(np.abs(known + pose), axis=1)) < 1e-8


def test_the_quadratic_of_the_paper_gives_both_working_modes():
    x = tilting(5).q
    zero = np.zeros_like(x)
    B = tripod.platform_joints(prs3.TRIPOD, tripod.platform_motion(prs3.TRIPOD, x, zero, zero))[0]
    AB = B - prs3.OFFSET * prs3.TRIPOD.outward
    along = np.einsum("sli,li->sl", AB, -prs3.TRIPOD.outward)
    root = np.sqrt(along**2 - np.sum(AB**2, axis=2) + prs3.LEG**2)  # (20)
    np.testing.assert_allclose(prs3.inverse_kinematics(x, "inward"), along - root, atol=1e-15)
    np.testing.assert_allclose(prs3.inverse_kinematics(x, "outward"), along + root, atol=1e-15)


@pytest.mark.parametrize("mode", MODES)
def test_jacobians_are_the_slope_of_the_inverse_problem(mode):
    x, h = tilting(10).q, 1e-6
    J_x, J_q = prs3.jacobians(x, mode)
    ahead, behind = (np.stack([prs3.inverse_kinematics(x + d * e, mode) for e in np.eye(3)], axis=2) for d in (h, -h))
    np.testing.assert_allclose(np.linalg.solve(J_q, J_x), (ahead - behind) / (2 * h), atol=1e-8)
    motion = tilting(20)
    back = prs3.platform_motion(prs3.slider_motion(motion, mode), mode)
    np.testing.assert_allclose(np.hstack([back.q, back.v, back.a]), np.hstack([motion.q, motion.v, motion.a]), atol=1e-10)


@pytest.mark.parametrize(("mode", "passive"), [*((mode, "ideal") for mode in MODES), ("inward", "modelled")])
def test_general_closure_agrees_with_the_closed_forms(mode, passive):
    motion, m = tilting(), robot("platform", mode, passive)
    assert (m.closure.dof, m.closure.redundant_equations) == (3, 0)
    closed = close_motion(m, motion)
    legs = prs3.leg_angles(motion.q, mode, motion.v, motion.a)
    sliders = ("s_1", "s_2", "s_3")
    np.testing.assert_allclose(tree_columns(m, closed.q, *sliders), legs.slider, atol=1e-13)
    np.testing.assert_allclose(tree_columns(m, closed.v, *sliders), legs.slider_dot, atol=1e-11)
    np.testing.assert_allclose(tree_columns(m, closed.a, *sliders), legs.slider_ddot, atol=1e-9)
    np.testing.assert_allclose(tree_columns(m, closed.q, "x", "y", "phi"), prs3.parasitic_motion(motion.q), atol=1e-13)
    np.testing.assert_allclose(
        tree_columns(m, closed.q, "alpha_1", "alpha_2", "alpha_3"), legs.gamma - prs3.ALPHA_0, atol=1e-12
    )
    if passive == "modelled":
        beta = prs3.spherical_angles(motion.q, mode)
        for i in range(3):
            names = (f"beta_m_{i + 1}", f"beta_n_{i + 1}", f"beta_l_{i + 1}")
            np.testing.assert_allclose(tree_columns(m, closed.q, *names), beta[:, i], atol=1e-12)
    A = tripod.actuator_jacobian(prs3.TRIPOD, motion.q, prs3.TRIPOD.signs(mode))
    np.testing.assert_allclose(actuator_jacobian(m, motion.q), A, atol=1e-12)


# ---- dynamics -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
def test_projection_energy_equivalence_and_boltzmann_hamel_agree(mode):
    motion, m = tilting(), robot("platform", mode, PASSIVE[mode])
    force = actuator_torques(m, motion.q, di.inverse_dynamics(m, motion, without_springs(m)))
    for formulation in prs3.FORMULATIONS:
        mine = prs3.inverse_dynamics(motion.q, motion.v, motion.a, GENERIC, mode, formulation)
        np.testing.assert_allclose(mine, force, atol=1e-9)
    direct, sliders = robot("actuators", mode, PASSIVE[mode]), prs3.slider_motion(motion, mode)
    np.testing.assert_allclose(di.inverse_dynamics(direct, sliders, without_springs(direct)), force, atol=1e-9)
    np.testing.assert_allclose(di.mass_matrix(direct, sliders.q), prs3.mass_matrix(motion.q, GENERIC, mode), atol=1e-9)


def test_boltzmann_hamel_in_angles_is_euler_in_the_body():
    generator = np.random.default_rng(0)
    q, v, a = (generator.uniform(0.3, 1.2, (30, 3)) for _ in range(3))
    inertia = GENERIC.platform_inertia
    D, slope = tripod.rate_matrix(q)
    h = 1e-6
    for k, unit in enumerate(np.eye(3)):
        ahead, behind = (tripod.rate_matrix(q + side * h * unit)[0] for side in (1.0, -1.0))
        np.testing.assert_allclose(slope[:, k], (ahead - behind) / (2 * h), atol=1e-9)
    D_dot = np.einsum("skij,sk->sij", slope, v)
    w = np.einsum("sij,sj->si", D, v)
    w_dot = np.einsum("sij,sj->si", D, a) + np.einsum("sij,sj->si", D_dot, v)
    tau = tripod_dynamics.generalised_moments(q, v, a, inertia)
    np.testing.assert_allclose(tau, np.einsum("sij,si->sj", D, tripod_dynamics.body_moments(w, w_dot, inertia)), atol=1e-12)
    # (3.70): D I w_dot + 2 D_dot I w - A^T I w with A = d(w_dot)/d(q_dot) = D_dot^T + dw/dq
    A = D_dot + np.einsum("skij,sj->sik", slope, v)
    printed = np.einsum("sij,si->sj", D, w_dot @ inertia) + np.einsum("sij,si->sj", 2.0 * D_dot - A, w @ inertia)
    np.testing.assert_allclose(tau, printed, atol=1e-12)


def test_springs_of_the_mechanism_are_the_slope_of_the_elastic_energy():
    motion, m = tilting(20), robot()
    stiffness = np.array([prs3.BENDING_STIFFNESS, prs3.BENDING_STIFFNESS, prs3.TORSION_STIFFNESS])

    def energy(x: Array) -> Array:
        bent = np.sum(stiffness * prs3.spherical_angles(x) ** 2, axis=(1, 2))
        return 0.5 * (bent + prs3.REVOLUTE_STIFFNESS * np.sum((prs3.leg_angles(x).gamma - prs3.ALPHA_0) ** 2, axis=1))

    h = 1e-5
    slope = np.stack([(energy(motion.q + h * e) - energy(motion.q - h * e)) / (2 * h) for e in np.eye(3)], axis=1)
    springs = di.inverse_dynamics(m, motion) - di.inverse_dynamics(m, motion, without_springs(m))
    np.testing.assert_allclose(springs, slope, atol=1e-6 * np.max(np.abs(slope)))


def test_forward_dynamics_inverts_inverse_dynamics():
    motion, m = tilting(30), robot("actuators", "inward", "ideal")
    sliders = prs3.slider_motion(motion)
    force = di.inverse_dynamics(m, sliders)
    np.testing.assert_allclose(di.forward_dynamics(m, sliders.q, sliders.v, force), sliders.a, atol=1e-9)


# ---- base parameters and identification -----------------------------------------------------------------------------------


@pytest.mark.parametrize("coordinates", ["platform", "actuators"])
def test_base_parameters_regroup_as_the_geometry_says(coordinates):
    m = robot(coordinates, "inward", "ideal")
    base = di.base_parameters(m, tolerance=1e-8)
    # 19 of bodies, and of joints fv, fc, off of the sliders (ia is a mass here: they move level), fv and k of the pins
    assert base.rank == 34 and base.rank_gap > 1e8
    assert di.base_parameters(robot(coordinates), tolerance=1e-8).rank == 52  # fv and k of nine single rotations more
    names, L, b = m.parameters.names, prs3.LEG, prs3.RADIUS

    def coefficient(leader: str, parameter: str) -> float:
        row = next(k for k, column in enumerate(base.columns) if names[column] == leader)
        return float(base.regrouping[row, names.index(parameter)])

    expected = {
        ("m_platform", "Iyy_bar_3"): 1 / L**2,
        ("Izz_platform", "Iyy_bar_1"): b**2 / L**2,
        ("Ixx_platform", "Iyy_bar_2"): 0.75 * b**2 / L**2,
        ("mx_platform", "Iyy_bar_2"): -0.5 * b / L**2,
        ("mx_bar_2", "Iyy_bar_2"): -1 / L,
        ("m_slider_1", "ia_s_1"): 1.0,
        ("m_slider_1", "m_bar_1"): 1.0,
    }
    for (leader, parameter), value in expected.items():
        assert coefficient(leader, parameter) == pytest.approx(value, rel=1e-5)


def test_stiffness_and_friction_of_flexures_are_recovered():
    m = robot("actuators")
    base = di.base_parameters(m, tolerance=1e-8)
    generator = np.random.default_rng(2)
    phi = m.parameters.values.copy()
    k = m.tree.inertias.size
    phi[k:] += generator.uniform(0.05, 0.5, phi.size - k)
    t = np.linspace(0.0, 5.0, 3000)
    x, v, a = (np.zeros((t.size, 3)) for _ in range(3))
    x += prs3.TRIPOD.home
    for j, size in enumerate((0.01, 0.25, 0.25)):
        for harmonic in range(1, 8):
            w, phase = 2.0 * np.pi * 0.7 * harmonic + 0.2 * j, generator.uniform(0, 6.28)
            x[:, j] += size / 7 * (np.sin(w * t + phase) - np.sin(phase))
            v[:, j] += size / 7 * w * np.cos(w * t + phase)
            a[:, j] -= size / 7 * w**2 * np.sin(w * t + phase)
    motion = prs3.slider_motion(di.Motion(t, x, v, a))
    force = di.inverse_dynamics(m, motion, phi)
    true = base.values(phi)
    stiff = [i for i, column in enumerate(base.columns) if m.parameters.names[column].startswith("k_")]
    assert len(stiff) == 12
    estimate = di.OLS().fit(di.Regression.from_motion(m, motion, force, base=base)).coef_
    np.testing.assert_allclose(estimate[stiff], true[stiff], rtol=1e-6)
    np.testing.assert_allclose(di.regressor(m, motion[:200])[:, :, base.columns] @ estimate, force[:200], atol=1e-6)


# ---- singularities, bad input ---------------------------------------------------------------------------------------------


def test_singularities_are_measured_and_flagged():
    parallel, serial = prs3.singularity(prs3.TRIPOD.home)
    assert parallel[0] == pytest.approx(np.sin(prs3.ALPHA_0) ** 3) and serial[0] == pytest.approx(np.cos(prs3.ALPHA_0))
    level = np.array([[1e-12, 0.0, 0.0]])  # legs in the plane of the sliders: they do not hold the platform
    still = np.zeros((1, 3))
    assert prs3.singularity(level)[0][0] < 1e-9
    with pytest.raises(DynidentError, match="parallel singularity"):
        prs3.inverse_dynamics(level, still, still)
    with pytest.raises(DynidentError, match="leg 1 is square to its slider"):
        prs3.inverse_kinematics([prs3.LEG, 0.0, 0.0])
    way = np.linspace(prs3.TRIPOD.home, [prs3.LEG, 0.0, 0.0], 60)
    with pytest.raises(DynidentError, match="singular"):
        close_motion(robot("platform", "inward", "ideal"), di.Motion(np.arange(60.0), way, 0 * way, 0 * way))
    down = np.linspace(0.0, prs3.OFFSET - prs3.RADIUS - prs3.LEG, 60)[:, None] * np.ones(3)
    with pytest.raises(DynidentError, match="singular"):
        close_motion(robot("actuators", "inward", "ideal"), di.Motion(np.arange(60.0), down, 0 * down, 0 * down))


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (
            lambda: prs3.inverse_kinematics([[0.07, 0.0, 0.0], [0.2, 0.0, 0.0]]),
            r"sample 1 .* out of reach: leg 1 .* is 0.109215 m",
        ),
        (lambda: prs3.inverse_kinematics(prs3.TRIPOD.home, "below"), "working mode is 'below'; it is one of inward, outward"),
        (lambda: prs3.mechanism(working_mode=(1, 1)), "working mode is"),
        (lambda: prs3.mechanism("sliders"), "coordinates is 'sliders'; it is one of platform, actuators"),
        (lambda: prs3.forward_kinematics([[0.0, 0.0, 0.0], [-0.3, 0.0, 0.0]]), "sliders at sample 1 .* cannot be reached"),
        (lambda: prs3.forward_kinematics([0.0, 0.0]), r"rho has shape \(2,\); give \(samples, 3\)"),
        (lambda: prs3.forward_kinematics([0.0, 0.0, np.inf]), "rho is not finite at sample 0"),
        (lambda: prs3.assembly_modes("three"), "rho"),
    ],
)
def test_bad_input_is_answered_by_one_sentence(call, sentence):
    with pytest.raises(DynidentError, match=sentence) as error:
        call()
    assert "\n" not in str(error.value)


def test_poses_that_loops_cannot_reach_are_left_alone() -> None:
    found = check(prs3.mechanism(), samples=200)
    assert found.ok and "because of the loops" in found.notes[0]
    with pytest.raises(di.DynidentError, match="cannot follow the motion"):
        check(prs3.mechanism(), within=([0.0, -0.5, -0.5], [0.3, 0.5, 0.5]), samples=10)
