"""What one body does: momentum and the wrench that moves it.

With S = [alpha]x + [omega]x^2, computed once and shared by everything that uses it,

    f = m a + S h,                                        a_child = R^T (a + S r)
    n = h x a + column by column of the inertia tensor,   written with the entries of S:
        n_x = Ixx al_x - Ixy S_zx + Ixz S_yx + (Izz - Iyy) w_y w_z + Iyz (w_y^2 - w_z^2),   and so on cyclically.
"""

from __future__ import annotations

from dynident.graph.expression import total
from dynident.mechanics.vectors import Inertia, Matrix, Vector, cross, plus, scale, tensor, times

Twist = tuple[Vector, Vector]
"""(angular, linear), as the Jacobian columns and wrenches (moment, force) of the kernels."""


def spin(w: Vector, al: Vector) -> Matrix:
    """Return S = [alpha]x + [omega]x^2."""
    p01, p02, p12 = w[0] * w[1], w[0] * w[2], w[1] * w[2]
    p00, p11, p22 = w[0] * w[0], w[1] * w[1], w[2] * w[2]
    return (
        (-(p11 + p22), p01 - al[2], p02 + al[1]),
        (p01 + al[2], -(p00 + p22), p12 - al[0]),
        (p02 - al[1], p12 + al[0], -(p00 + p11)),
    )


def body_wrench(phi: Inertia, w: Vector, al: Vector, ac: Vector) -> Twist:
    """Return moment and force that move a body, at its origin and in its frame."""
    S = spin(w, al)
    h: Vector = (phi[1], phi[2], phi[3])
    force = plus(scale(ac, phi[0]), times(S, h))
    xx, xy, xz, yy, yz, zz = phi[4:]
    p00, p11, p22 = w[0] * w[0], w[1] * w[1], w[2] * w[2]
    euler = (
        total([xx * al[0], (zz - yy) * (w[1] * w[2]), xz * S[1][0], -(xy * S[2][0]), yz * (p11 - p22)]),
        total([yy * al[1], (xx - zz) * (w[0] * w[2]), xy * S[2][1], -(yz * S[0][1]), xz * (p22 - p00)]),
        total([zz * al[2], (yy - xx) * (w[0] * w[1]), yz * S[0][2], -(xz * S[1][2]), xy * (p00 - p11)]),
    )
    return plus(euler, cross(h, ac)), force


def momentum(phi: Inertia, w: Vector, u: Vector) -> Twist:
    """Return (n, f) = M_i (w, u): f = m u + w x h, n = h x u + I w."""
    h: Vector = (phi[1], phi[2], phi[3])
    return plus(cross(h, u), times(tensor(phi), w)), plus(scale(u, phi[0]), cross(w, h))
