"""CFT-transposer: the dynamics of [Rodriguez2002, Appendix B] in closed form, in joint and in Cartesian coordinates.

    M(q, theta) a + C(q, v, theta) v + g(q, theta) + f(v, theta) = tau                                   (60), (67)

(4) and (11) of the report have the friction on the other side; (60) is used here. The entries are more
compact than in Appendix B, which they equal term by term after its correction. With the printed parameters M is NOT positive
definite on about 35 % of the workspace and the friction of joints 1, 4 and 5 supplies energy at low speed: the model omits
inertias and its numbers are a torque fit only.

q, v, a are (N, 4) as q1, q2, q4, q5; Cartesian coordinates xc (N, 4) as xc1 ... xc4; theta are the 32 numbers of Table 4, of
which the first 12 are inertial. One sample may be a vector.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dynident.arrays import Array
from dynident.checks import numbers
from dynident.errors import DynidentError
from dynident_papers.robots.cft.cartesian import cartesian_jacobian, drift, regular
from dynident_papers.robots.cft.data import D6, D20, GRAVITY, L4, L5, L6, THETA
from dynident_papers.robots.shared import columns, samples_of

Columns = Array | list[Array]  # of samples (q, v) or of parameters (theta), broadcast against each other
Entries = dict[tuple[int, int], Array]
LAMBDA = L5 - L4


def _theta(theta: ArrayLike, least: int) -> Array:
    values = numbers(theta, "theta")
    if values.shape not in {(32,), (least,)}:
        wanted = "the 32 numbers of Table 4" + (f", or the first {least}" if least < 32 else "")
        raise DynidentError(f"theta has shape {values.shape}; give {wanted}")
    return values


def _matrix(entries: Entries, samples: int) -> Array:
    out = np.zeros((samples, 4, 4))
    for (i, j), value in entries.items():
        out[:, i, j] = value
    return out


def _mass(q: Columns, th: Columns) -> Entries:
    """Return the entries of M [Rodriguez2002, Appendix B]; q and theta broadcast against each other."""
    t1, t2, t3, t4, t5, t6, t7, t8, t9, t10, t11, t12 = th
    _, q2, q4, q5 = q
    c4, s4, c45, s45, c2, s2 = np.cos(q4), np.sin(q4), np.cos(q4 + q5), np.sin(q4 + q5), np.cos(q2), np.sin(q2)
    S = t11 + t12
    A, B, E = t5 + t7 + L6 * t12, t9 + LAMBDA * S, t6 + t8
    # Forward positions of the frame origins 4 ... 7.
    f4, f5 = D20 + L4 * (s4 + s45), D20 + L4 * s45
    f6 = D20 - LAMBDA * s45
    f7 = f6 - L6 * s4
    m: Entries = {(0, 0): t1 + S + 0.0 * q2}
    m[0, 1] = -s2 * (t3 + D20 * S - A * s4 - E * c4 - B * s45 - t10 * c45) + c2 * (t2 + D6 * t11)
    m[0, 3] = c2 * (-B * c45 + t10 * s45)
    m[0, 2] = c2 * (-A * c4 + E * s4) + m[0, 3]
    # Misprints: bracket of theta_11 and sign before cos(q5 + 2 q4) in the last theta_12 term, by the squares f6^2, f7^2.
    m[1, 1] = (
        t4
        - 2.0 * f4 * (t5 * s4 + t6 * c4)
        - 2.0 * f5 * (t9 * s45 + t10 * c45)
        - 2.0 * f6 * (t7 * s4 + t8 * c4)
        + t11 * (f6**2 + D6**2)
        + t12 * f7**2
    )
    m[1, 3] = -D6 * t11 * LAMBDA * c45
    m[1, 2] = D6 * (-t7 * c4 + t8 * s4) + m[1, 3]
    # Pitch block, where brackets are lost in print, by its structure: Jacobians (forward, up) of the origins by q4 and by q5.
    o4, o4b = (L4 * (c4 + c45), 0.0), (L4 * c45, 0.0)
    o5, o5b = (L4 * c45, -L4 * s4), o4b
    o6, o6b = (o5[0] - L5 * c45, o5[1] - L5 * s45), (o5b[0] - L5 * c45, -L5 * s45)
    o7, o7b = (o6[0] - L6 * c4, o6[1] - L6 * s4), o6b
    n4 = (-(t5 * c4 - t6 * s4), -(t5 * s4 + t6 * c4))
    n5 = (-(t9 * c45 - t10 * s45), -(t9 * s45 + t10 * c45))
    n6 = (-(t7 * c4 - t8 * s4), -(t7 * s4 + t8 * c4))
    h4, h5, h6 = _dot(o4, n4), _dot(o5, n5), _dot(o6, n6)
    h4b, h5b, h6b = _dot(o4b, n4), _dot(o5b, n5), _dot(o6b, n6)
    m[2, 2] = 2.0 * (h4 + h5 + h6) + t11 * _dot(o6, o6) + t12 * _dot(o7, o7)
    m[2, 3] = h5 + h4b + h5b + h6b + t11 * _dot(o6, o6b) + t12 * _dot(o7, o7b)
    m[3, 3] = 2.0 * h5b + t11 * _dot(o6b, o6b) + t12 * _dot(o7b, o7b)
    return m | {(j, i): value for (i, j), value in m.items()}


def _dot(a: tuple[Array, Array | float], b: tuple[Array, Array | float]) -> Array:
    return np.asarray(a[0] * b[0] + a[1] * b[1])


def _coriolis(q: Columns, v: Columns, th: Columns) -> Entries:
    """Return the entries of C [Rodriguez2002, Appendix B], which are the Christoffel symbols of M times v."""
    _, t2, t3, _, t5, t6, t7, t8, t9, t10, t11, t12 = th
    _, q2, q4, q5 = q
    _, v2, v4, v5 = v
    q45, w, u, z = q4 + q5, v4 + v5, 2.0 * q4 + q5, 2.0 * v4 + v5
    S = t11 + t12
    A, B, E = t5 + t7 + L6 * t12, t9 + LAMBDA * S, t6 + t8
    U, X = L4 * t5 - LAMBDA * (t7 + L6 * t12), L4 * t6 - LAMBDA * t8
    K9, H5 = 2.0 * L4 * t9 - LAMBDA**2 * S, 2.0 * L4 * t5 - L6**2 * t12
    N12, N10 = (L5 + L6) * t12 + L5 * t11 + t5 + t7 + t9, t6 + t8 + t10
    V5 = (2.0 * L5 * L6 - L4 * L6 + L4 * L5) * t12 + (2.0 * L5 - L4) * t7 + L4 * L5 * t11 + L4 * (t9 - t5)
    Z5 = L4 * (t6 + t10) + (L4 - 2.0 * L5) * t8
    K = (2.0 * L5 - L4) * S + 2.0 * t9
    sin, cos = np.sin, np.cos
    c: Entries = {}
    c[0, 1] = (
        0.5 * A * ((v2 - v4) * sin(q4 - q2) + (v2 + v4) * sin(q4 + q2))
        + 0.5 * B * ((w + v2) * sin(q45 + q2) + (v2 - w) * sin(q45 - q2))
        + 0.5 * E * ((v2 - v4) * cos(q4 - q2) + (v2 + v4) * cos(q4 + q2))
        + 0.5 * t10 * ((v2 - w) * cos(q45 - q2) + (w + v2) * cos(q45 + q2))
        - (S * D20 + t3) * v2 * cos(q2)
        - (t2 + D6 * t11) * v2 * sin(q2)
    )
    c[0, 3] = 0.5 * t10 * ((w + v2) * cos(q45 + q2) + (w - v2) * cos(q45 - q2)) + 0.5 * B * (
        (w + v2) * sin(q45 + q2) + (w - v2) * sin(q45 - q2)
    )
    c[0, 2] = (
        c[0, 3]
        + 0.5 * E * ((v4 - v2) * cos(q4 - q2) + (v2 + v4) * cos(q4 + q2))
        + 0.5 * A * ((v4 - v2) * sin(q4 - q2) + (v2 + v4) * sin(q4 + q2))
    )
    c[1, 1] = (
        -0.5 * X * (z * cos(u) + v5 * cos(q5))
        - v4 * D20 * A * cos(q4)
        - w * D20 * B * cos(q45)
        - 0.5 * w * K9 * sin(2.0 * q45)
        - 0.5 * v4 * H5 * sin(2.0 * q4)
        - v4 * L4 * t6 * cos(2.0 * q4)
        + 0.5 * U * (v5 * sin(q5) - z * sin(u))
        + w * D20 * t10 * sin(q45)
        - w * L4 * t10 * cos(2.0 * q45)
        + D20 * v4 * E * sin(q4)
    )
    c[2, 1] = v2 * (
        L4 * t10 * cos(2.0 * q45)
        + L4 * t6 * cos(2.0 * q4)
        + D20 * B * cos(q45)
        - D20 * t10 * sin(q45)
        + 0.5 * H5 * sin(2.0 * q4)
        + U * sin(u)
        + 0.5 * K9 * sin(2.0 * q45)
        + D20 * A * cos(q4)
        - D20 * E * sin(q4)
        + X * cos(u)
    )
    c[3, 1] = v2 * (
        D20 * B * cos(q45)
        - 0.5 * U * (sin(q5) - sin(u))
        + 0.5 * K9 * sin(2.0 * q45)
        + L4 * t10 * cos(2.0 * q45)
        - D20 * t10 * sin(q45)
        + 0.5 * X * (cos(q5) + cos(u))
    )
    c[1, 2] = -c[2, 1] + D6 * (t11 * LAMBDA * w * sin(q45) + v4 * (t8 * cos(q4) + t7 * sin(q4)))
    c[1, 3] = -c[3, 1] + D6 * t11 * LAMBDA * w * sin(q45)
    c[2, 2] = (
        0.5 * L4 * w * K * sin(2.0 * q45)
        - 0.5 * v5 * V5 * sin(q5)
        + L4 * w * t10 * cos(2.0 * q45)
        + 0.5 * L4 * z * (N12 * sin(u) + N10 * cos(u))
        + L4 * v4 * E * cos(2.0 * q4)
        + 0.5 * L4 * v4 * ((L4 + 2.0 * L6) * t12 + 2.0 * t7 + L4 * t11 + 2.0 * t5) * sin(2.0 * q4)
        - 0.5 * v5 * Z5 * cos(q5)
    )
    c[3, 3] = w * (0.5 * L4 * K * sin(2.0 * q45) + L4 * t10 * cos(2.0 * q45))
    c[2, 3] = c[3, 3] + 0.5 * w * (L4 * (N10 * cos(u) + N12 * sin(u)) - V5 * sin(q5) - Z5 * cos(q5))
    c[3, 2] = c[3, 3] + 0.5 * v4 * (V5 * sin(q5) + L4 * (N12 * sin(u) + N10 * cos(u)) + Z5 * cos(q5))
    return c


def _gravity(q: Columns, th: Columns) -> tuple[Array, Array]:
    """Return the last two entries of g [Rodriguez2002, Appendix B]; the first two are zero."""
    _, _, _, _, t5, t6, t7, t8, t9, t10, t11, t12 = th
    _, _, q4, q5 = q
    last = -GRAVITY * ((t9 + L5 * (t11 + t12)) * np.sin(q4 + q5) + t10 * np.cos(q4 + q5))
    own = (t6 + t8) * np.cos(q4) + (t5 + t7 + (L6 + L4) * t12 + L4 * t11) * np.sin(q4)
    return last - GRAVITY * own, last


def mass_matrix(q: ArrayLike, theta: ArrayLike = THETA) -> Array:
    """Return M(q, theta) [Rodriguez2002, Appendix B], corrected."""
    joints = columns(q, 4, "q")
    return _matrix(_mass(joints.T, _theta(theta, 12)[:12]), len(joints))


def coriolis_matrix(q: ArrayLike, v: ArrayLike, theta: ArrayLike = THETA) -> Array:
    """Return C(q, v, theta) by Christoffel symbols, so that dM/dt - 2 C is skew [Rodriguez2002, Appendix B]."""
    joints, speeds = samples_of(4, q=q, v=v)
    return _matrix(_coriolis(joints.T, speeds.T, _theta(theta, 12)[:12]), len(joints))


def gravity(q: ArrayLike, theta: ArrayLike = THETA) -> Array:
    """Return the gravity torque g(q, theta) [Rodriguez2002, Appendix B]."""
    joints = columns(q, 4, "q")
    out = np.zeros_like(joints)
    out[:, 2], out[:, 3] = _gravity(joints.T, _theta(theta, 12)[:12])
    return out


def friction(v: ArrayLike, theta: ArrayLike = THETA) -> Array:
    """Return f(v, theta) = B_v v + B_f1 tanh(w1 v) + B_f2 tanh(w2 v) [Rodriguez2002, eqs. 13, 68], which tau overcomes."""
    speeds = columns(v, 4, "v")
    Bv, B1, B2, w1, w2 = _theta(theta, 32)[12:].reshape(5, 4)
    return np.asarray(Bv * speeds + B1 * np.tanh(w1 * speeds) + B2 * np.tanh(w2 * speeds))


def regressor(q: ArrayLike, v: ArrayLike, a: ArrayLike) -> Array:
    """Return Y(q, v, a) with M a + C v + g = Y theta[:12], without friction, which is nonlinear in its slopes."""
    joints, speeds, changes = samples_of(4, q=q, v=v, a=a)
    unit = np.eye(12)  # theta_k as a row of unit vectors: every entry becomes (N, 12)
    x, dx, ddx = ([column[:, None] for column in array.T] for array in (joints, speeds, changes))
    Y = np.zeros((len(joints), 4, 12))
    for (i, j), value in _mass(x, unit).items():
        Y[:, i] += value * ddx[j]
    for (i, j), value in _coriolis(x, dx, unit).items():
        Y[:, i] += value * dx[j]
    third, last = _gravity(x, unit)
    Y[:, 2] += third
    Y[:, 3] += last
    return Y


def inverse_dynamics(q: ArrayLike, v: ArrayLike, a: ArrayLike, theta: ArrayLike = THETA) -> Array:
    """Return tau = M(q) a + C(q, v) v + g(q) + f(v) [Rodriguez2002, eq. 60]."""
    x, dx, ddx = samples_of(4, q=q, v=v, a=a)
    M, C = mass_matrix(x, theta), coriolis_matrix(x, dx, theta)
    inertial = np.einsum("nij,nj->ni", M, ddx) + np.einsum("nij,nj->ni", C, dx)
    return np.asarray(inertial + gravity(x, theta) + friction(dx, theta))


def forward_dynamics(q: ArrayLike, v: ArrayLike, tau: ArrayLike, theta: ArrayLike = THETA, added_inertia: float = 0.0) -> Array:
    """Return a = M^-1 (tau - C v - g - f) [Rodriguez2002, eq. 60]; raise an error where M is not positive definite."""
    x, dx, torque = samples_of(4, q=q, v=v, tau=tau)
    M = mass_matrix(x, theta) + np.diag([0.0, 0.0, added_inertia, added_inertia])
    least = np.linalg.eigvalsh(M)[:, 0]
    if np.any(least <= 0.0):
        i = int(np.argmax(least <= 0.0))
        raise DynidentError(
            f"sample {i}: the mass matrix is not positive definite (eigenvalue {least[i]:.4g}) at q = "
            f"{np.round(x[i], 5).tolist()}, as on 35 % of the workspace with Table 4; give added_inertia=0.2"
        )
    C = coriolis_matrix(x, dx, theta)
    rest = torque - np.einsum("nij,nj->ni", C, dx) - gravity(x, theta) - friction(dx, theta)
    return np.asarray(np.linalg.solve(M, rest[..., None])[..., 0])


# ---- Cartesian coordinates (section 4.3) ---------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class CartesianDynamics:
    """The dynamics in Cartesian coordinates, M_x ac + V_x + G_x + F_x = F.

    The forces F do work on xc1 ... xc4: tau = J^T F with `cartesian_jacobian`. `cartesian_force` turns the nuts' forces of
    (66) into them.
    """

    mass: Array  # M_x = J^-T M J^-1
    velocity: Array  # V_x = J^-T (C v - M J^-1 J' v) [N, N, N m, N]
    gravity: Array  # G_x = J^-T g [N, N, N m, N]
    friction: Array  # F_x = J^-T f [N, N, N m, N]


def cartesian_dynamics(q: ArrayLike, v: ArrayLike, theta: ArrayLike = THETA) -> CartesianDynamics:
    """Return the dynamics (60) in Cartesian coordinates, M_x ac + V_x + G_x + F_x = F [Rodriguez2002, section 4.3]."""
    x, dx = samples_of(4, q=q, v=v)
    regular(x)
    J = cartesian_jacobian(x)
    back = np.linalg.inv(J)
    M, C = mass_matrix(x, theta), coriolis_matrix(x, dx, theta)
    own = np.einsum("nij,njk,nk->ni", M, back, drift(x, dx))
    efforts = [np.einsum("nij,nj->ni", C, dx) - own, gravity(x, theta), friction(dx, theta)]
    vectors = (np.einsum("nji,nj->ni", back, effort) for effort in efforts)
    return CartesianDynamics(np.einsum("nji,njk,nkl->nil", back, M, back), *vectors)
