"""CFT-transposer: the 32 numbers of [Rodriguez2002, Table 4] from one fit of the complete chain with its friction.

    beta = A x,    x = (A^T S^-1 A)^-1 A^T S^-1 beta,    x: theta_1 ... theta_12, rotors and friction

beta are the base parameters of the fit with covariance S. Base parameters of bodies are linear in theta, so x is the least
squares estimate from the same log for a chain with only the twelve inertial parameters of Appendix B.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy  # its sub-packages load on first use, which keeps the start fast

import dynident as di
from dynident.arrays import Array
from dynident.errors import DynidentError
from dynident_papers.robots.cft.data import JOINTS, THETA, THETA_NAMES, THETA_UNITS

BODY = ("m", "mx", "my", "mz", "Ixx", "Ixy", "Ixz", "Iyy", "Iyz", "Izz")
TERMS = ("tanh", "tanh2")
LINKS = ("_link_", "_nut", "_pin", "_tool")


@dataclass(frozen=True, eq=False)
class TableFour:
    """Table 4 from a log; friction numbers as printed, with both signs of a tanh term where w is negative."""

    values: Array  # theta_1 ... theta_32
    std: Array  # Standard deviations; NaN for tanh terms if the data determine only their sum
    p: float  # p-value of the residual of the 23 base parameters of the chain with twelve parameters

    @property
    def names(self) -> tuple[str, ...]:
        """theta_k and its meaning."""
        return tuple(f"theta_{i}: {what}" for i, what in enumerate(THETA_NAMES, 1))

    def text(self) -> str:
        """Return our and the printed numbers as text."""
        rows = zip(self.names, self.values, self.std, THETA, THETA_UNITS, strict=True)
        lines = [
            f"  {name:<28}{x:>11.5g}{f' +- {s:.2g}' if np.isfinite(s) else ' sum only':<12}{known:>11.4f}  {unit}"
            for name, x, s, known, unit in rows
        ]
        head = f"Table 4 of [Rodriguez2002] from this log, beside the printed one (twelve inertias suffice: p = {self.p:.2g})"
        return "\n".join([head, *lines])


def table_four(fit: di.Fit) -> TableFour:
    """Return the parameters of Table 4 of a fit with the law viscous + tanh + tanh of q1, q2, q4 and q5."""
    from dynident_papers.robots.cft import inertias_from_theta  # noqa: PLC0415 - the package imports this module

    if any(joint not in fit.friction or "tanh2.fc" not in fit.friction[joint].parameters for joint in JOINTS):
        raise DynidentError("Table 4 needs the law 'viscous + tanh + tanh' of q1, q2, q4 and q5; identify with it")
    names, K = list(fit.mechanism.parameters.names), np.asarray(fit.base.regrouping)
    unit = np.zeros((12, len(names)))
    for row, one in zip(unit, np.eye(12), strict=True):
        for body, phi in inertias_from_theta(one).items():
            for symbol, value in zip(BODY, phi, strict=True):
                if value:
                    row[names.index(f"{symbol}_{body}")] = value
    others = [i for i, name in enumerate(names) if not any(part in name for part in LINKS) and np.any(K[:, i])]
    # Both tanh terms of a joint are nearly equal: scaling, whitening and QR preserve accuracy.
    own = np.sqrt(np.diagonal(fit.covariance))
    L = np.linalg.cholesky(fit.covariance / np.outer(own, own))
    A = np.linalg.solve(L, np.hstack([K @ unit.T, K[:, others]]) / own[:, None])
    beta, size = np.linalg.solve(L, np.asarray(fit.values) / own), np.linalg.norm(A, axis=0)
    Q, R = np.linalg.qr(A / size)
    x, spread = np.linalg.solve(R, Q.T @ beta) / size, np.linalg.norm(np.linalg.inv(R), axis=1) / size
    left = beta - A @ x
    found = dict(zip((names[i] for i in others), zip(x[12:], spread[12:], strict=True), strict=True))
    values, std = THETA.copy(), np.full(32, np.nan)
    values[:12], std[:12] = x[:12], spread[:12]
    for i, joint in enumerate(JOINTS):
        values[12 + i :: 4], std[12 + i :: 4] = _friction(fit, joint, found, THETA[12 + i :: 4])
    return TableFour(values, std, float(scipy.stats.chi2.sf(left @ left, beta.size - x.size)))


def _friction(fit: di.Fit, joint: str, found: dict[str, tuple[float, float]], printed: Array) -> tuple[Array, Array]:
    """Return B_v, B_f1, B_f2, w_1, w_2 of a joint, terms in the order and with the signs nearest to the printed ones."""
    held = fit.friction[joint].parameters
    law = {name: found.get(f"{name}_{joint}", (value, np.nan)) for name, value in held.items()}
    if any(not abs(law[f"{name}.fc"][0]) > law[f"{name}.fc"][1] or np.isnan(law[f"{name}.beta"][1]) for name in TERMS):
        law |= {f"{name}.{what}": (law[f"{name}.{what}"][0], np.nan) for name in TERMS for what in ("fc", "beta")}
    pairs = np.array([law[name] for name in ("viscous.fv", "tanh.fc", "tanh2.fc", "tanh.beta", "tanh2.beta")])
    return nearest(pairs[:, 0], pairs[:, 1], printed)


def nearest(values: Array, std: Array, printed: Array) -> tuple[Array, Array]:
    """Return B_v, B_1, B_2, w_1, w_2 and deviations, tanh terms in the order and with the signs nearest to the printed ones."""
    found = []
    for order in ([0, 1, 2, 3, 4], [0, 2, 1, 4, 3]):
        x = np.asarray(values)[order]
        turned = np.sign(printed[3:]) * np.sign(x[3:])  # (B, w) and (-B, -w) are the same law
        found.append((x * np.array([1.0, *turned, *turned]), np.asarray(std)[order]))
    return min(found, key=lambda pair: float(np.sum((pair[0][1:3] - printed[1:3]) ** 2)))
