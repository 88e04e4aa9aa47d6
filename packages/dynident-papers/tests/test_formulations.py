"""Virtual work and Gibbs-Appell as independent formulations of inverse dynamics [Roldan2017, section 2.4.1].

Both start from positions and turns of the bodies in closed form and know nothing of trees, cut joints and recursions.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import dynident as di
from dynident.arrays import Array
from dynident.mechanics import actuator_torques
from dynident_papers.robots import five_bar, mast


def _derivatives(f: Callable[[float], Array], h: float) -> tuple[Array, Array]:
    """First and second derivative at 0, sixth order."""
    y = {k: f(k * h) for k in range(-3, 4)}
    first = sum(w * (y[k] - y[-k]) for k, w in ((1, 0.75), (2, -0.15), (3, 1.0 / 60.0))) / h
    second = (-49.0 / 18.0 * y[0] + sum(w * (y[k] + y[-k]) for k, w in ((1, 1.5), (2, -0.15), (3, 1.0 / 90.0)))) / h**2
    return np.asarray(first), np.asarray(second)


def _bars(alpha: Array) -> Array:
    """x, y, turn of four bars and of P, (5, 3), of a five-bar at two motor angles, by intersecting circles."""
    g = five_bar.Geometry()
    A, B = (b + l_ * np.array([np.cos(a), np.sin(a)]) for b, l_, a in zip(g.bases, (g.l1, g.l4), alpha, strict=True))
    d = np.linalg.norm(B - A)
    u = (B - A) / d
    x = (g.l2**2 - g.l3**2 + d**2) / (2.0 * d)
    P = A + x * u + np.sqrt(g.l2**2 - x**2) * np.array([-u[1], u[0]])
    turn = [alpha[0], np.arctan2(*(P - A)[::-1]), np.arctan2(*(P - B)[::-1]), alpha[1]]
    middle = [0.5 * (g.bases[0] + A), 0.5 * (A + P), 0.5 * (B + P), 0.5 * (g.bases[1] + B)]
    return np.array([[*m, a] for m, a in zip(middle, turn, strict=True)] + [[*P, 0.0]])


MASSES, PLATFORM = np.array([1.8, 1.0, 1.1, 1.7]), 0.8


def _five_bar() -> tuple[di.Motion, Array, Array]:
    """Motor angles with rates, and what the general solver says without drives."""
    rng = np.random.default_rng(4)
    q = five_bar.inverse_kinematics([[0.05, 0.9], [-0.1, 0.8], [0.2, 0.95]])[:, [0, 3]]
    motion = di.Motion(np.arange(3.0), q, rng.normal(size=(3, 2)), rng.normal(size=(3, 2)))
    robot = five_bar.mechanism(masses=MASSES, platform=PLATFORM)
    bare = robot.with_parameters(
        robot.parameters.replace({n: 0.0 for n in robot.parameters.names if n.startswith(("ia_", "fv_", "fc_"))})
    )
    lengths = np.array([0.6, 0.7, 0.7, 0.6])
    inertia = np.array([*(MASSES * lengths**2 / 12.0), 0.0])
    return motion, di.inverse_dynamics(bare, motion), np.column_stack([*[[*MASSES, PLATFORM]] * 2, inertia])


def test_virtual_work_of_the_five_bar() -> None:
    """tau . dq = sum of m a . dr + I alpha . dturn for every dq, displacements by differences of positions."""
    motion, tau, weights = _five_bar()
    for k in range(3):
        q, v, a = motion.q[k], motion.v[k], motion.a[k]
        _, acceleration = _derivatives(lambda t, q=q, v=v, a=a: _bars(q + v * t + 0.5 * a * t * t), 5e-3)
        for i in range(2):
            displacement, _ = _derivatives(lambda e, q=q, i=i: _bars(q + e * np.eye(2)[i]), 5e-3)
            np.testing.assert_allclose(np.sum(weights * acceleration * displacement), tau[k, i], rtol=1e-8)


def test_gibbs_appell_of_the_five_bar() -> None:
    """tau = dS/da with S = 1/2 sum (m a_b^2 + I alpha_b^2): accelerations of the bodies only."""
    motion, tau, weights = _five_bar()

    def S(k: int, a: Array) -> float:
        q, v = motion.q[k], motion.v[k]
        _, acceleration = _derivatives(lambda t: _bars(q + v * t + 0.5 * a * t * t), 5e-3)
        return float(0.5 * np.sum(weights * acceleration**2))

    for k in range(3):
        for i in range(2):
            up, down = (S(k, motion.a[k] + way * np.eye(2)[i]) for way in (1.0, -1.0))  # S is quadratic: exact
            np.testing.assert_allclose(0.5 * (up - down), tau[k, i], rtol=1e-8)


def test_gibbs_appell_and_virtual_work_of_the_shaking_table() -> None:
    """Spatial rotation: S has alpha . (w x I w) beside 1/2 alpha . I alpha; bars and platform by the thesis' Jacobians."""
    rng = np.random.default_rng(1)
    bodies, g = mast.BODIES, 9.81
    robot = mast.mechanism("actuators", passive="ideal")
    inertia = bodies.platform_inertia
    for x0 in mast.TRIPOD.home + rng.uniform(-0.05, 0.05, (2, 3)) * [0.2, 1.0, 1.0]:
        v, a = 0.3 * rng.normal(size=3), rng.normal(size=3)
        rho = mast.inverse_kinematics(x0[None])[0]

        def jacobians(t: float, rho: Array = rho, v: Array = v, x0: Array = x0) -> Array:
            pose = mast.forward_kinematics((rho + v * t)[None], start=x0)
            J_G, J_R = mast.platform_jacobians(pose)
            return np.concatenate([mast.bar_jacobians(pose)[0].reshape(9, 3), J_G[0], J_R[0]])

        J = jacobians(0.0)
        slope, _ = _derivatives(jacobians, 2e-3)
        weights = np.array([*[bodies.bar_mass, bodies.bar_mass, bodies.bar_inertia] * 3, *[bodies.platform_mass] * 3])
        w = J[12:] @ v

        def force(u: Array, J: Array = J, slope: Array = slope, v: Array = v, w: Array = w, weights: Array = weights) -> Array:
            """Inertial forces of all bodies at sliders accelerated by u, gyroscopic moment and weight included."""
            acceleration = J @ u + slope @ v
            lift = np.zeros(12)
            lift[[1, 4, 7, 11]] = g
            return np.concatenate(
                [weights * (acceleration[:12] + lift), inertia @ acceleration[12:] + np.cross(w, inertia @ w)]
            )

        def S(u: Array, J: Array = J, slope: Array = slope, v: Array = v, w: Array = w, weights: Array = weights) -> float:
            acceleration = J @ u + slope @ v
            turn = acceleration[12:]
            linear = 0.5 * np.sum(weights * acceleration[:12] ** 2)
            return float(linear + 0.5 * turn @ inertia @ turn + turn @ np.cross(w, inertia @ w))

        tau = actuator_torques(robot, rho[None], di.inverse_dynamics(robot, di.Motion([0.0], rho[None], v[None], a[None])))[0]
        weight = J[[1, 4, 7]].sum(axis=0) * bodies.bar_mass * g + J[11] * bodies.platform_mass * g
        appell = [0.5 * (S(a + e) - S(a - e)) for e in np.eye(3)]
        np.testing.assert_allclose(appell + weight, tau, rtol=1e-7)
        np.testing.assert_allclose(J.T @ force(a), tau, rtol=1e-7)
