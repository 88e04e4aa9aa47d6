"""Drive elasticity that a rigid model lacks, and the bias it causes in a load.

    q_link = q_motor - c u,      u = (A^T A)^-1 tau_bodies         encoders at the motors, compliance c of the drives
    tau(q_link) = tau(q_motor) + c C,    C = -d tau_bodies / d(q, v, a) (u, u', u'')

C is an additional regressor column, per joint of a tree and one for all motors of a robot with loops. Compliances that predict
better than none (Akaike's criterion) count: the loads with and without them differ by the bias of the rigid model. They are
reported if they are significant. C uses torques of the model: noise of measured torques would correlate C with the residuals
and appear as compliance.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from dynident.arrays import Array
from dynident.identify.fit import Fit
from dynident.identify.posterior.posterior import inflation
from dynident.identify.regression.logs import differentiated
from dynident.identify.regression.regression import Stretch, filtered_rows
from dynident.mechanics.actuation import actuator_jacobian, actuator_torques
from dynident.mechanics.dynamics import inverse_dynamics
from dynident.mechanics.functions import Motion
from dynident.mechanism.mechanism import Mechanism

LIKELY = 2.0**0.5  # standard deviations of a compliance that predicts better than none
CLEAR = 2.5  # standard deviations of a significant compliance: one test in 160 is passed by chance
MATTERS = 0.5  # of a standard deviation of the load: a smaller bias is not reported
STEP = 1e-3  # of a difference, relative to the motion


def compliance_bias(fit: Fit, name: str, index: list[int]) -> tuple[Array, str]:
    """Return the bias by drive elasticity of some parameters of a fit of kept rows, and a sentence; zeros and "" if none.

    `name` is the load, absent in unloaded runs.
    """
    base, groups, b = fit.base, fit.data.groups, fit.base.rank
    robots = {True: _bodies(fit.model), False: _bodies(fit.without(name).model)}
    count = 1 if fit.mechanism.loops else fit.mechanism.dof
    products = np.zeros((b + count + 1, b + count + 1))
    for part in fit.data.stretches:
        carried = not np.isin(base.columns[index], part.rows.absent).any()
        columns = _columns(robots[carried], part, count)
        rows = [filtered_rows(part.rows, part.motion, each, base, groups, part.decimator)[1] for each in columns]
        for g, (group, sigma) in enumerate(zip(groups, fit.sigma, strict=True)):
            block = np.zeros((len(part.t), b + count + 1))
            block[:, group.columns], block[:, -1] = part.W[g], part.y[g]
            block[:, b:-1] = np.column_stack([each[g] for each in rows]) * part.used[g][:, None]
            products += block.T @ block / sigma**2
    dependence = float(inflation(groups, fit.values, fit.sigma)[0])
    there = list(range(count))
    elastic, std = _solved(products, b, there, dependence)
    while (z := elastic[b:][there] / np.maximum(std[b:][there], 1e-300)).size and z.min() < LIKELY:
        there.pop(int(np.argmin(z)))
        elastic, std = _solved(products, b, there, dependence)
    stiff, known = _solved(products, b, [], dependence)
    shift = (elastic - stiff)[index]
    bias = np.copysign(np.sqrt(shift**2 + np.maximum(std**2 - known**2, 0.0)[index]), shift)  # compliances have deviations too
    if not np.any(np.abs(shift) > MATTERS * fit.std[index]):
        return np.zeros(len(index)), ""
    names = ["all motors"] if fit.mechanism.loops else [fit.mechanism.coordinate_names[k] for k in there]
    listed = ", ".join(f"{one} {elastic[b + k]:.2g} +- {std[b + k]:.1g}" for one, k in zip(names, there, strict=True))
    worst = int(np.argmax(np.abs(shift) / np.where(fit.std[index] > 0.0, fit.std[index], np.inf)))
    text = (
        f"elastic drives (compliance {listed} rad/(N m)) explain these runs better and change {base.names[index[worst]]} by "
        f"{shift[worst]:.2g}; the standard deviations include this bias"
    )
    return bias, text if z.max() >= CLEAR else ""


def _bodies(robot: Mechanism) -> Mechanism:
    """Return the bodies alone: friction and rotors act in front of elastic shafts."""
    return replace(robot, friction={}).with_terms(())


def _columns(robot: Mechanism, part: Stretch, count: int) -> list[Array]:
    """Return the change of the motor efforts (N, k) per unit of each compliance."""
    motion = part.motion
    torque = np.asarray(inverse_dynamics(robot, motion))
    A = actuator_jacobian(robot, motion.q)
    u = np.linalg.solve(np.einsum("ski,skj->sij", A, A), torque[:, :, None])[:, :, 0]
    moved = differentiated(part.rate, u, part.cutoff or 0.25 * part.rate, part.options)
    result = []
    for k in range(count):
        each = [x if count == 1 else x * (np.arange(u.shape[1]) == k) for x in moved]
        size = STEP * np.abs(motion.a).max() / max(float(np.abs(each[2]).max()), 1e-300)
        shifted = Motion(motion.t, *(x - size * y for x, y in zip((motion.q, motion.v, motion.a), each, strict=True)))
        change = (np.asarray(inverse_dynamics(robot, shifted)) - torque) / size
        result.append(change if not robot.loops else np.asarray(actuator_torques(robot, motion.q, change)))
    return result


def _solved(products: Array, b: int, columns: Sequence[int], dependence: float) -> tuple[Array, Array]:
    """Return least-squares base parameters and selected compliances, zero for the others, and their standard deviations."""
    use = np.append(np.arange(b), b + np.array(columns, dtype=np.int64))
    size = np.sqrt(np.diagonal(products)[use])
    size = np.where(size > 0.0, size, 1.0)
    inverse = np.linalg.pinv(products[np.ix_(use, use)] / np.outer(size, size), rcond=1e-12, hermitian=True)
    x, std = np.zeros(len(products) - 1), np.zeros(len(products) - 1)
    x[use] = inverse @ (products[use, -1] / size) / size
    std[use] = np.sqrt(np.diagonal(inverse) * dependence) / size
    return x, std
