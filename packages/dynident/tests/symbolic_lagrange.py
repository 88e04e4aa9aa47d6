"""Lagrange's equations with sympy for small robots: an independent check of the recursion.

    T = 1/2 sum tr(dT/dt J dT/dt^T),   U = -sum g.(m p + R h)                 (4 x 4 poses T, pseudo-inertias J)
    M_ij = sum tr(d_i T J d_j T^T),    C_ij = 1/2 sum_k (d_k M_ij + d_j M_ik - d_i M_jk) v_k,   g_i = d_i U

Nothing of the recursion is used: poses are multiplied along the joints of the description and differentiated.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from optional import optional

from dynident.arrays import Array
from dynident.mechanism import Joint, Mechanism

sympy = optional("sympy")


@dataclass(frozen=True, eq=False)
class Lagrange:
    """Equations of motion by Lagrange, as sympy expressions; rotors are in M, all joint terms in the torques."""

    q: list[Any]
    v: list[Any]
    a: list[Any]
    phi: list[Any]
    mass_matrix: Any
    coriolis_matrix: Any
    gravity: Any
    torques: Any
    kinetic: Any
    potential: Any

    def evaluate(self, quantity: str, q: ArrayLike, v: ArrayLike, a: ArrayLike, phi: ArrayLike) -> Array:
        """Return the numbers of one of the fields at states (N, n), as (N, n, n) or (N, n)."""
        matrix = getattr(self, quantity)
        function = sympy.lambdify([self.q, self.v, self.a, self.phi], list(matrix), "numpy", cse=True)
        rows = [np.asarray(x, dtype=np.float64) for x in (q, v, a)]
        values = [function(x, y, z, np.asarray(phi, dtype=np.float64)) for x, y, z in zip(*rows, strict=True)]
        n = len(self.q)
        return np.array(values, dtype=np.float64).reshape((-1, n, n) if quantity.endswith("matrix") else (-1, n))


def lagrange(mechanism: Mechanism) -> Lagrange:
    """Derive a small robot's motion from its energies: revolute, prismatic and fixed joints, linear couplings, no loops."""
    n = mechanism.dof
    q, v, a = (list(sympy.symbols(f"{key}1:{n + 1}", real=True)) for key in ("q", "v", "a"))
    phi = list(sympy.symbols(f"phi1:{len(mechanism.parameters) + 1}", real=True))
    tree_q, tree_v, tree_a = _tree(mechanism, q, True), _tree(mechanism, v, False), _tree(mechanism, a, False)
    poses = _poses(mechanism, dict(zip(mechanism.tree.coordinates, tree_q, strict=True)))
    down = sympy.Matrix([*mechanism.gravity, 0])
    M, potential = sympy.zeros(n, n), sympy.Integer(0)
    for k, body in enumerate(mechanism.tree.bodies):
        J = _pseudo_inertia(phi[10 * k : 10 * k + 10])
        T = poses[body]
        rates = [T.diff(x) for x in q]
        for i in range(n):
            for j in range(i, n):
                M[i, j] += (rates[i] * J * rates[j].T).trace()
        potential -= (down.T * T * J[:, 3])[0]
    for i in range(n):
        for j in range(i):
            M[i, j] = M[j, i]
    joint_torque = _joint_terms(mechanism, phi, (tree_q, tree_v, tree_a), (q, v, a), M)
    C = sympy.zeros(n, n)
    for i in range(n):
        for j in range(n):
            C[i, j] = sum((M[i, j].diff(q[k]) + M[i, k].diff(q[j]) - M[j, k].diff(q[i])) * v[k] for k in range(n)) / 2
    gravity = sympy.Matrix([potential.diff(x) for x in q])
    V, A = sympy.Matrix(v), sympy.Matrix(a)
    torques = M * A + C * V + gravity + joint_torque
    kinetic = (V.T * M * V)[0] / 2
    return Lagrange(q, v, a, phi, M, C, gravity, torques, kinetic, potential)


def _tree(mechanism: Mechanism, x: list[Any], offset: bool) -> list[Any]:
    G, g0 = mechanism.coupling_map
    rows = zip(G, g0 if offset else np.zeros_like(g0), strict=True)
    return [sum((_exact(c) * y for c, y in zip(row, x, strict=True) if c), _exact(shift)) for row, shift in rows]


def _exact(value: float) -> Any:
    """Return a number, an integer where it is one: sympy then drops zeros and ones."""
    near = round(float(value))
    return sympy.Integer(near) if abs(float(value) - near) < 1e-14 else sympy.Float(float(value))


def _poses(mechanism: Mechanism, position: dict[str, Any]) -> dict[str, Any]:
    """Return the 4 x 4 pose of every body in the base frame."""
    poses = {mechanism.root: sympy.eye(4)}
    waiting = list(mechanism.joints)
    while waiting:
        joint = next(joint for joint in waiting if joint.parent in poses)
        waiting.remove(joint)
        P = sympy.eye(4)
        P[:3, :3] = sympy.Matrix(3, 3, [_exact(x) for x in joint.placement.rotation.ravel()])
        P[:3, 3] = sympy.Matrix([_exact(x) for x in joint.placement.translation])
        poses[joint.child] = poses[joint.parent] * P * _motion(joint, position)
    return poses


def _motion(joint: Joint, position: dict[str, Any]) -> Any:
    T = sympy.eye(4)
    if joint.kind == "fixed":
        return T
    u, x = sympy.Matrix([_exact(e) for e in joint.axis]), position[joint.name]
    if joint.kind == "prismatic":
        T[:3, 3] = u * x
    else:
        K = sympy.Matrix([[0, -u[2], u[1]], [u[2], 0, -u[0]], [-u[1], u[0], 0]])
        T[:3, :3] = sympy.eye(3) + sympy.sin(x) * K + (1 - sympy.cos(x)) * K * K
    return T


def _pseudo_inertia(phi: list[Any]) -> Any:
    """Return the 4 x 4 matrix of integrals of (x, y, z, 1)(x, y, z, 1)^T dm."""
    m, hx, hy, hz, xx, xy, xz, yy, yz, zz = phi
    half = (xx + yy + zz) / 2
    return sympy.Matrix([[half - xx, -xy, -xz, hx], [-xy, half - yy, -yz, hy], [-xz, -yz, half - zz, hz], [hx, hy, hz, m]])


def _joint_terms(mechanism: Mechanism, phi: list[Any], tree: Any, own: Any, M: Any) -> Any:
    """Add rotor inertias to M and return the torque of all other joint and motor terms."""
    G = mechanism.coupling_map[0]
    index = {name: i for i, name in enumerate(mechanism.tree.coordinates)}
    column = mechanism.tree.inertias.size
    entries: list[tuple[str, Any, Any, list[Any]]] = []
    for coordinate, symbol in mechanism.joint_columns:
        d = index[coordinate]
        entries.append((symbol, tree[0][d], tree[1][d], [_exact(c) for c in G[d]]))
    rows = {m.name: np.array([m.coupling.get(c, 0.0) for c in mechanism.coordinate_names]) for m in mechanism.actuators}
    for actuator, symbol in mechanism.actuator_columns:
        row = [_exact(c) for c in rows[actuator]]
        turn = [sum((c * x for c, x in zip(row, xs, strict=True)), sympy.Integer(0)) for xs in own[:2]]
        entries.append((symbol, turn[0], turn[1], row))
    torque = sympy.zeros(M.shape[0], 1)
    for k, (symbol, x, rate, row) in enumerate(entries):
        r = sympy.Matrix(row)
        if symbol in ("ia", "Iz"):
            M[:, :] = M + phi[column + k] * r * r.T  # in place: the caller's matrix
            continue
        value = {
            "fv": rate,
            "fc": sympy.sign(rate),
            "off": sympy.Integer(1),
            "k": x,
            "fvp": sympy.Max(rate, 0),
            "fvn": sympy.Min(rate, 0),
            "fcp": sympy.Heaviside(rate, 0),
            "fcn": -sympy.Heaviside(-rate, 0),
            "f2": rate * sympy.Abs(rate),
            "f3": rate**3,
        }[symbol]
        torque += phi[column + k] * value * r
    return torque
