"""CFT-transposer: the 32 numbers of [Rodriguez2002, Table 4] from one fit of the complete chain with its friction.

    beta = A x,    x = (A^T S^-1 A)^-1 A^T S^-1 beta,    x: theta_1 ... theta_12, rotors and friction

beta are the base parameters of the fit with covariance S. Those of the bodies are linear in theta, so x is what least squares
find on the same log when the chain has the twelve inertial parameters of Appendix B only.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations

import numpy as np
import scipy.stats

import dynident as di
from dynident.arrays import Array
from dynident.errors import DynidentError
from dynident_papers.robots.cft.data import JOINTS, THETA, THETA_NAMES, THETA_UNITS

BODY = ("m", "mx", "my", "mz", "Ixx", "Ixy", "Ixz", "Iyy", "Iyz", "Izz")
LINKS = ("_link_", "_nut", "_pin", "_tool")


@dataclass(frozen=True, eq=False)
class TableFour:
    """Table 4 as a log gives it; numbers of friction as printed, with both signs of a tanh term where w is negative."""

    values: Array  # theta_1 ... theta_32
    std: Array  # Standard deviations; NaN for tanh terms whose slopes the fit holds: their sum is known, not each of them
    p: float  # Probability of what the twelve parameters leave of the 23 base parameters of the chain

    @property
    def names(self) -> tuple[str, ...]:
        """theta_k and what it is."""
        return tuple(f"theta_{i}: {what}" for i, what in enumerate(THETA_NAMES, 1))

    def summary(self) -> str:
        """Return the numbers beside those printed."""
        rows = zip(self.names, self.values, self.std, THETA, THETA_UNITS, strict=True)
        lines = [
            f"  {name:<28}{x:>11.4f}{f' +- {s:.2g}' if np.isfinite(s) else ' slope held':<12}{known:>11.4f}  {unit}"
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
    A, W, beta = np.hstack([K @ unit.T, K[:, others]]), np.linalg.inv(fit.covariance), np.asarray(fit.values)
    covariance = np.linalg.inv(A.T @ W @ A)
    x = covariance @ A.T @ W @ beta
    left = beta - A @ x
    found = dict(zip((names[i] for i in others), zip(x[12:], np.sqrt(np.diagonal(covariance)[12:]), strict=True), strict=True))
    values, std = THETA.copy(), np.full(32, np.nan)
    values[:12], std[:12] = x[:12], np.sqrt(np.diagonal(covariance)[:12])
    for i, joint in enumerate(JOINTS):
        values[12 + i :: 4], std[12 + i :: 4] = _friction(fit, joint, found, THETA[12 + i :: 4])
    return TableFour(values, std, float(scipy.stats.chi2.sf(left @ W @ left, beta.size - x.size)))


def _friction(fit: di.Fit, joint: str, found: dict[str, tuple[float, float]], printed: Array) -> tuple[Array, Array]:
    """Return B_v, B_f1, B_f2, w_1, w_2 of a joint, terms in the order and with the signs that are nearest to those printed."""
    held = fit.friction[joint].parameters
    law = {name: found.get(f"{name}_{joint}", (value, np.nan)) for name, value in held.items()}
    if any(f"{name}_{joint}" not in found for name in ("tanh.beta", "tanh2.beta")):
        law |= {name: (law[name][0], np.nan) for name in ("tanh.fc", "tanh2.fc")}  # what is stated holds for these slopes only
    terms = [(law[f"{name}.fc"], law[f"{name}.beta"]) for name in ("tanh", "tanh2")]
    signs = np.sign(printed[3:])
    orders = []
    for order in permutations(terms):
        forces, slopes = zip(*order, strict=True)
        pairs = np.array([law["viscous.fv"], *forces, *slopes])
        pairs[1:, 0] *= np.tile(signs, 2)
        orders.append(pairs.T)
    best = min(orders, key=lambda pair: float(np.sum((pair[0][1:3] - printed[1:3]) ** 2)))
    return best[0], best[1]
