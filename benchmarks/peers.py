"""The usual implementations: Pinocchio called sample by sample from Python, complete matrices, and FIGAROH."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

# Pinocchio orders a body's inertia Ixx Ixy Iyy Ixz Iyz Izz, we Ixx Ixy Ixz Iyy Iyz Izz.
OUR_ORDER = (0, 1, 2, 3, 4, 5, 7, 6, 8, 9)


@dataclass(frozen=True)
class Estimate:
    """Result of an identification: base columns and their parameters.

    Parameters
    ----------
    columns : ndarray of int, (b,)
        Base columns of the peer's regressor.
    values : ndarray, (b,)
        Base parameters.
    """

    columns: NDArray[np.int64]
    values: Array


class Pinocchio:
    """Pinocchio in a Python loop, as in its examples.

    Parameters
    ----------
    urdf : Path
        Robot description.
    """

    def __init__(self, urdf: Path) -> None:
        import pinocchio

        self.pin = pinocchio
        self.model = pinocchio.buildModelFromUrdf(str(urdf))
        self.data = self.model.createData()

    def regressor(self, q: Array, v: Array, a: Array, out: Array) -> Array:
        """Fill the inertial columns of `out` (N, n, >= 10 n)."""
        compute, model, data, width = self.pin.computeJointTorqueRegressor, self.model, self.data, 10 * self.model.nv
        for i in range(q.shape[0]):
            out[i, :, :width] = compute(model, data, q[i], v[i], a[i])
        return out

    def full_regressor(self, q: Array, v: Array, a: Array) -> Array:
        """Return inertial, rotor, viscous, Coulomb and offset columns (N, n, 14 n)."""
        samples, n = q.shape
        W = np.zeros((samples, n, 14 * n))
        self.regressor(q, v, a, W)
        for j in range(n):
            first = 10 * n + 4 * j
            W[:, j, first], W[:, j, first + 1], W[:, j, first + 2], W[:, j, first + 3] = a[:, j], v[:, j], np.sign(v[:, j]), 1.0
        return W

    def identify(self, q: Array, v: Array, a: Array, tau: Array) -> Estimate:
        """Store W, choose base columns by a pivoted QR, solve OLS, weight the joints by their residuals, solve again."""
        from scipy.linalg import qr

        samples, n = q.shape
        W = self.full_regressor(q, v, a).reshape(samples * n, -1)
        R, order = qr(W, mode="r", pivoting=True)
        diagonal = np.abs(np.diag(R))
        columns = np.sort(order[: int(np.count_nonzero(diagonal > 1e-9 * diagonal[0]))])
        base, y = W[:, columns], tau.ravel()
        beta = np.linalg.lstsq(base, y, rcond=None)[0]
        residual = (y - base @ beta).reshape(samples, n)
        sigma = np.sqrt(np.sum(residual**2, axis=0) / (samples - columns.size / n))
        weight = np.tile(1.0 / sigma, samples)
        beta = np.linalg.lstsq(base * weight[:, None], y * weight, rcond=None)[0]
        return Estimate(columns, beta)

    def inverse_dynamics(self, q: Array, v: Array, a: Array) -> Array:
        """Return torques (N, n) of the bodies."""
        rnea, model, data = self.pin.rnea, self.model, self.data
        tau = np.empty_like(q)
        for i in range(q.shape[0]):
            tau[i] = rnea(model, data, q[i], v[i], a[i])
        return tau

    def mass_matrix(self, q: Array) -> Array:
        """Return mass matrices (N, n, n)."""
        crba, model, data = self.pin.crba, self.model, self.data
        M = np.empty((*q.shape, q.shape[1]))
        for i in range(q.shape[0]):
            M[i] = crba(model, data, q[i])
        return M

    def forward_dynamics(self, q: Array, v: Array, tau: Array) -> Array:
        """Return accelerations (N, n)."""
        aba, model, data = self.pin.aba, self.model, self.data
        a = np.empty_like(q)
        for i in range(q.shape[0]):
            a[i] = aba(model, data, q[i], v[i], tau[i])
        return a


class Figaroh:
    """FIGAROH by its public functions: regressor, elimination of empty columns, double QR with its least squares.

    It stops at ordinary least squares: its public weighted least squares builds an N x N matrix and does not fit in memory.

    Parameters
    ----------
    peer : Pinocchio
        Model of the robot.
    """

    def __init__(self, peer: Pinocchio) -> None:
        from types import SimpleNamespace

        from figaroh.identification.parameter import add_standard_additional_parameters, get_standard_parameters
        from figaroh.tools import qrdecomposition, regressor

        self.regressor, self.qr = regressor, qrdecomposition
        self.robot = SimpleNamespace(model=peer.model, data=peer.data)
        n = peer.model.nv
        zeros = [0.0] * n
        self.config: dict[str, Any] = {
            "has_friction": True,
            "has_actuator_inertia": True,
            "has_joint_offset": True,
            "is_joint_torques": True,
            "act_idxv": list(range(n)),
            "fv": zeros,
            "fs": zeros,
            "Ia": zeros,
            "off": zeros,
        }
        self.names = {
            **get_standard_parameters(peer.model, self.config),
            **add_standard_additional_parameters(peer.model, self.config),
        }

    def identify(self, q: Array, v: Array, a: Array, tau: Array) -> Array:
        """Return the torques (N, n) that its base parameters predict on the same samples."""
        W = self.regressor.build_regressor_basic(self.robot, q, v, a, self.config)
        empty, names = self.regressor.get_index_eliminate(W, self.names, tol_e=1e-6)
        reduced = self.regressor.build_regressor_reduced(W, empty)
        base, _, _, values = self.qr.QRDecomposer().double_decomposition(tau.T.ravel(), reduced, names)
        return np.asarray((base @ values).reshape(tau.shape[1], -1).T)
