"""The model that a monitor works with: parameters, the directions in which they are uncertain, its terms, noise, friction laws.

cov = sum_j d_j d_j^T          d_j in the order of how much torque they make along unrelated states
e^2 = max(sigma^2, sum_k eta_k^2 (w_k beta_k)^2)       model error of a fit with a belief, as in `Fit.predict`
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dynident.arrays import Array
from dynident.errors import DescriptionError
from dynident.friction.law import Friction
from dynident.friction.terms import TERMS
from dynident.identify.base import BaseParameters, columns_of, random_closed_motion
from dynident.identify.fit import Fit
from dynident.identify.prediction import model_errors
from dynident.identify.regression.rows import Rows
from dynident.mechanics.functions import node_values
from dynident.mechanics.motion import Motion
from dynident.mechanism.mechanism import Mechanism

STATES = 200
KEPT = 0.95  # share of the variance of torques that directions must make; they are scaled to stand for all of it
REACH, SPEED, RATE = np.pi, 1.0, 5.0  # of the states by which directions are ranked
SMALL = 0.01  # part of a joint's model error below which a term is left out
TINY = np.finfo(float).tiny


@dataclass(frozen=True, eq=False)
class Model:
    """What a monitor needs from a fit."""

    rows: Rows  # The equations of the fit, with the robot as fitted
    values: Array
    shares: Array  # eta^2 of these terms, joint by joint
    sigma: Array
    laws: Mapping[str, Friction]  # Friction laws that act beside the joint terms
    bandwidth: float | None  # Band of the fit [Hz]
    rate: float | None  # Sampling rate of its logs [Hz]

    @property
    def mechanism(self) -> Mechanism:
        """The robot as fitted."""
        return self.rows.mechanism


def model_of(fit: Fit, friction: Mapping[str, Friction] | None, absent: Sequence[str]) -> Model:
    """Return the model of a fit; laws replace the friction terms of their joints, absent bodies count nothing."""
    if not isinstance(fit, Fit):
        raise DescriptionError(f"fit is a {type(fit).__name__}; give a Fit")
    robot, b = fit.base.mechanism, fit.base.rank
    laws = {**fit.friction, **(friction or {})}
    phi = np.array(fit.standard.values)
    noise = dict(zip(fit.groups, fit.sigma.tolist(), strict=True))
    covariance = np.array(fit.covariance[:b, :b])
    unknown = ~np.isfinite(np.diag(covariance))
    covariance[unknown], covariance[:, unknown] = 0.0, 0.0
    rows = Rows(robot, fit.projection)
    sigma = np.array([noise.get(name, np.inf) for name in rows.names])
    values = np.zeros((1 + b, phi.size))
    values[0], values[1:, fit.base.columns] = phi, _directions(rows, fit.base, covariance, sigma)
    values = values[: 1 + int(np.count_nonzero(values[1:].any(axis=1)))]
    terms, shares = _terms(rows, fit, sigma)
    values = np.vstack([values, terms])
    gone = [*columns_of(robot, tuple(absent)), *_replaced(robot, laws)]
    values[:, gone] = 0.0
    if not np.isfinite(sigma).any():
        raise DescriptionError("the fit has no residual of a joint of its own; give a fit of torques of joints or motors")
    bands = _of_sources(fit.sources, "bandwidth"), _of_sources(fit.sources, "rate")
    return Model(rows, np.array([node_values(robot, row) for row in values]), shares, sigma, laws, *bands)


def _of_sources(sources: Sequence[Mapping[str, Any]], name: str) -> float | None:
    found = [float(source[name]) for source in sources if name in source]
    return min(found) if found else None


def _replaced(robot: Mechanism, laws: Mapping[str, Friction]) -> list[int]:
    """Return the friction terms of joints that have a law instead."""
    first = robot.tree.inertias.size
    columns = (*robot.joint_columns, *robot.actuator_columns)
    terms = [first + i for i, (owner, symbol) in enumerate(columns) if owner in laws and TERMS[symbol].friction]
    last = len(robot.parameters) - len(robot.own_columns)  # laws of the robot itself act as expressions, not as columns
    return [*terms, *(last + i for i, own in enumerate(robot.own_columns) if own.coordinate)]


def _directions(rows: Rows, base: BaseParameters, covariance: Array, sigma: Array) -> Array:
    """Return the directions that make nearly all torque, strongest first, then zeros, (b, b).

    Torques count by the noise of their joint: those of a wrist are small, and so are their thresholds.
    """
    out = np.zeros_like(covariance)
    std = np.sqrt(np.clip(np.diag(covariance), 0.0, None))
    scale = np.where(std > 0.0, std, 1.0)
    size, vectors = np.linalg.eigh(covariance / np.outer(scale, scale))
    root = (scale[:, None] * vectors) * np.sqrt(np.clip(size, 0.0, None))  # root root^T = covariance
    W, _ = rows.equations(_states(base.mechanism), None, base.columns)
    made = np.einsum("n,nbt,bk->ntk", 1.0 / sigma, W, root).reshape(-1, root.shape[1])
    power, turn = np.linalg.eigh(made.T @ made)
    order = np.argsort(power)[::-1]
    power = np.clip(power[order], 0.0, None)
    if power.sum() > 0.0:
        kept = int(np.searchsorted(np.cumsum(power), KEPT * power.sum())) + 1
        out[:kept] = (root @ turn[:, order[:kept]]).T * np.sqrt(power.sum() / power[:kept].sum())
    return out


def _terms(rows: Rows, fit: Fit, sigma: Array) -> tuple[Array, Array]:
    """Return terms w_k beta_k of the model, (e, p), and the share eta_k^2 of each that may be wrong in every joint, (e, n).

    Terms that no joint sees together, such as the friction of all joints, are watched as one. Those that make little of the
    error wherever the robot is are left out. Errors of projected equations are not told apart.
    """
    base, robot = fit.base, rows.mechanism
    if robot.loops or fit.posterior.training_columns is None:
        return np.zeros((0, len(robot.parameters))), np.zeros((0, robot.dof))
    W, _ = rows.equations(_states(robot), None, base.columns)
    square = model_errors(fit, np.where(np.isfinite(sigma), sigma, 0.0) ** 2)  # (n, b), of each parameter
    made = np.mean(W**2, axis=2) * square
    part = np.max(made / np.maximum(made.sum(axis=1, keepdims=True), TINY), axis=0)
    sees = np.any(W != 0.0, axis=2)
    together: list[list[int]] = []
    for k in np.argsort(part)[::-1][: np.count_nonzero(part > SMALL)]:
        fitting = next((others for others in together if not np.any(sees[:, k] & sees[:, others].any(axis=1))), None)
        if fitting is None:
            together.append([int(k)])
        else:
            fitting.append(int(k))
    terms, shares = np.zeros((len(together), len(robot.parameters))), np.zeros((len(together), robot.dof))
    for term, share, own in zip(terms, shares, together, strict=True):
        term[base.columns[own]] = fit.values[own]
        share[:] = np.sum(square[:, own] * sees[:, own] / fit.values[own] ** 2, axis=1)
    return terms, shares


def _states(robot: Mechanism) -> Motion:
    """Return unrelated states by which directions are ranked."""
    if robot.loops:
        return random_closed_motion(robot, STATES)
    rng = np.random.default_rng(0)
    q, v, a = (rng.uniform(-x, x, (STATES, robot.dof)) for x in (REACH, SPEED, RATE))
    return Motion(np.arange(float(STATES)), q, v, a)
