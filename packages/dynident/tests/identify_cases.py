"""Robots, motions, logs and the estimator conformance suite that the tests of identification share."""

from __future__ import annotations

import inspect
from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest

from dynident.errors import IdentificationError
from dynident.friction.terms import SYMMETRIC
from dynident.identify import Fit, Regression, base_parameters
from dynident.mechanics import Motion, inverse_dynamics, regressor
from dynident.mechanism import Mechanism
from dynident.signals import Log
from dynident.validate.diagnosis.inspection import findings_of

HALF = np.pi / 2
RRR = [(0.0, HALF, 0.56, 0.0), (0.2, 0.0, 0.169, 0.0), (0.415, 0.0, 0.09, 0.0)]
UR10 = [
    (0.0, HALF, 0.1273, 0.0),
    (-0.612, 0.0, 0.0, 0.0),
    (-0.5723, 0.0, 0.0, 0.0),
    (0.0, HALF, 0.1639, 0.0),
    (0.0, -HALF, 0.1157, 0.0),
    (0.0, 0.0, 0.0922, 0.0),
]
LWR = [(0.0, HALF * turn, d, 0.0) for turn, d in ((1, 0.3), (-1, 0), (-1, 0.4), (1, 0), (1, 0.39), (-1, 0), (0, 0.08))]
PLANAR = [(0.3, 0.0, 0.0, 0.0), (0.2, 0.0, 0.0, 0.0)]
DOWN_Y = (0.0, -9.81, 0.0)


def arm(rows=RRR, terms=SYMMETRIC, gravity=(0.0, 0.0, -9.81), prior: int | None = 1, name: str = "arm") -> Mechanism:
    """Return a robot from a DH table, with possible random bodies as prior unless `prior` is None."""
    robot = Mechanism.from_dh(rows, gravity=gravity, name=name).with_terms(terms)
    return robot if prior is None else robot.with_parameters(robot.parameters.replace(truth(robot, prior)))


def truth(robot: Mechanism, seed: int = 0) -> np.ndarray:
    """Return possible standard parameters: six point masses per body, positive joint terms."""
    rng = np.random.default_rng(seed)
    values = rng.uniform(0.1, 1.0, len(robot.parameters))
    for i in range(len(robot.tree.bodies)):
        m, x = rng.uniform(0.1, 1.0, 6), rng.normal(size=(6, 3)) * 0.1 + rng.normal(size=3) * 0.1
        tensor = sum(mi * (xi @ xi * np.eye(3) - np.outer(xi, xi)) for mi, xi in zip(m, x, strict=True))
        values[10 * i : 10 * i + 10] = [m.sum(), *(m @ x), *tensor[np.triu_indices(3)]]
    return values


def smooth(dof: int, samples: int, seed: int = 0, rate: float = 200.0, harmonics: int = 5) -> Motion:
    """Return sums of sines with their exact derivatives, as a robot may move."""
    rng = np.random.default_rng(seed)
    t = np.arange(samples) / rate
    w = 2 * np.pi * 0.15 * np.arange(1, harmonics + 1)
    amplitude, phase = rng.normal(size=(dof, harmonics)) * 0.6, rng.uniform(0, 2 * np.pi, (dof, harmonics))
    angle = t[:, None, None] * w + phase
    q = np.sum(amplitude * np.sin(angle), axis=2)
    v = np.sum(amplitude * w * np.cos(angle), axis=2)
    return Motion(t, q, v, np.sum(-amplitude * w**2 * np.sin(angle), axis=2))


def resting(motion: Motion, *joints: int, at: float = 0.3) -> Motion:
    """Return the motion with some joints standing still."""
    q, v, a = motion.q.copy(), motion.v.copy(), motion.a.copy()
    for j in joints:
        q[:, j], v[:, j], a[:, j] = at, 0.0, 0.0
    return Motion(motion.t, q, v, a)


def simulated_log(robot: Mechanism, seconds: float = 20.0, seed: int = 0, rate: float = 200.0, noise=0.0, **fields) -> Log:
    """Return the log of a motion under the robot's own prior parameters."""
    motion = smooth(robot.dof, int(seconds * rate), seed, rate)
    effort = inverse_dynamics(robot, motion)
    effort = effort + np.random.default_rng(seed).normal(size=effort.shape) * noise
    given = {"effort_kind": "joint_torque", "name": f"run{seed}", **fields}
    return Log(t=motion.t, joints=robot.coordinate_names, position=motion.q, effort=effort, **given)


def dense(robot: Mechanism, motion: Motion, base=None) -> np.ndarray:
    """Return the stored base regressor (N, n, b), what the factors replace."""
    return regressor(robot, motion)[:, :, (base or base_parameters(robot)).columns]


def svd_rank(robot: Mechanism, seed: int = 99, tolerance: float = 1e-9) -> int:
    """Return the rank of the whole standard regressor on other random states, by its singular values alone."""
    rng = np.random.default_rng(seed)
    q, v, a = (rng.normal(size=(200, robot.dof)) * s for s in (1.5, 2.0, 5.0))
    W = regressor(robot, Motion(np.arange(200.0), q, v, a)).reshape(-1, len(robot.parameters))
    length = np.linalg.norm(W, axis=0)
    visible = length > 1e-9 * np.max(length)
    s = np.linalg.svd(W[:, visible] / length[visible], compute_uv=False)
    return int(np.count_nonzero(s > tolerance * s[0]))


def evidence(robot: Mechanism, samples: int = 400, seed: int = 0, noise=0.0, base=None) -> tuple[Regression, np.ndarray]:
    """Return the evidence of a simulated motion and the true base parameters."""
    base = base or base_parameters(robot)
    motion = smooth(robot.dof, samples, seed)
    effort = inverse_dynamics(robot, motion)
    effort = effort + np.random.default_rng(seed + 1000).normal(size=effort.shape) * noise
    return Regression.from_motion(robot, motion, effort, base), base.values(robot.parameters.values)


def check_estimator(Estimator: type) -> None:
    """Assert that an estimator keeps the protocol of scikit-learn and of this toolkit."""
    options = {name: p.default for name, p in inspect.signature(Estimator.__init__).parameters.items() if name != "self"}
    assert all(p is not inspect.Parameter.empty for p in options.values()), "every option has a default"
    estimator = Estimator()
    assert estimator.get_params() == options == vars(estimator), "options are stored unchanged and nothing else is"
    odd = {name: object() for name in options}
    stored = Estimator(**odd)
    assert all(getattr(stored, name) is value for name, value in odd.items()), "__init__ must not touch what it is given"
    assert Estimator().set_params(**odd).get_params() == odd
    with pytest.raises(IdentificationError, match="no option 'nonsense'"):
        estimator.set_params(nonsense=1)

    for wrong in (np.ones((5, 3)), None, "log.csv"):
        with pytest.raises(IdentificationError, match=r"give a dynident\.Regression"):
            estimator.fit(wrong)
    robot = arm(PLANAR, gravity=DOWN_Y)
    regression, _ = evidence(robot, noise=0.1)
    with pytest.raises(IdentificationError, match=r"active has shape \(3,\)"):
        estimator.fit(regression, active=np.ones(3, dtype=bool))
    short = replace(regression, groups=tuple(replace(group, count=1) for group in regression.groups))
    with pytest.raises(IdentificationError, match=r"2 equations cannot determine \d+ base parameters"):
        estimator.fit(short)
    with pytest.raises(IdentificationError, match="recovery is 'guess'"):
        Estimator(recovery="guess").fit(regression)
    assert estimator.get_params() == options, "a refused fit leaves no trace in the options"

    before = [(group.R.copy(), group.count, group.columns.copy()) for group in regression.groups]
    assert estimator.fit(regression) is estimator
    learned = set(vars(estimator)) - set(options)
    assert {"coef_", "covariance_", "sigma_", "condition_", "result_"} <= learned
    assert all(name.endswith("_") and not name.startswith("_") for name in learned)
    assert estimator.get_params() == options, "fit must not change the options"
    for group, (R, count, columns) in zip(regression.groups, before, strict=True):
        np.testing.assert_array_equal(group.R, R)
        np.testing.assert_array_equal(group.columns, columns)
        assert group.count == count

    b, first, fit = regression.base.rank, estimator.coef_.copy(), estimator.result_
    assert first.shape == (b,)
    assert estimator.covariance_.shape == (b, b)
    np.testing.assert_allclose(estimator.covariance_, estimator.covariance_.T, rtol=1e-9, atol=1e-18)
    assert np.all(np.linalg.eigvalsh(estimator.covariance_) > 0.0)
    assert estimator.sigma_.shape == (len(regression.groups),)
    assert isinstance(fit, Fit)
    assert fit.estimator.startswith(Estimator.__name__)
    np.testing.assert_array_equal(fit.values, first)
    with pytest.raises(FrozenInstanceError):
        fit.values = first
    np.testing.assert_array_equal(estimator.fit(regression).coef_, first)  # refit is idempotent
    only = np.zeros(b, dtype=bool)
    only[:2] = True
    part = estimator.fit(regression, active=only)
    assert np.all(part.coef_[2:] == 0.0)
    np.testing.assert_array_equal(part.result_.active, only)
    np.testing.assert_array_equal(fit.values, first)  # an earlier result is not touched by a later fit


def doubts_of(fit: Fit) -> tuple[str, ...]:
    """Return the sentences of the errors of a fit."""
    return tuple(finding.sentence for finding in findings_of(fit) if finding.severity == "error")
