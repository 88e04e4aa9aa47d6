"""DIDIM: the regressor of the simulated motion explains the measured efforts [Gautier2013].

    beta_(k+1) = argmin sum_g ||y_g - W_g(q_s, v_s, a_s) beta||^2 / sigma_g^2,     (q_s, v_s, a_s) = closed loop of beta_k

Only efforts are measured: positions come from a simulation with the drive's own controller, so the regressor has no noise
of q and no differentiation. In a stiff loop the simulated motion hardly depends on beta, and a few steps are enough.

Least squares may give an impossible robot: an indefinite mass matrix or an unstable loop. The step is then halved until the
robot can be simulated. Its mass matrix is linear in the parameters, so a step that is short enough always can.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dynident.arrays import Array
from dynident.errors import DynidentWarning, IdentificationError, SimulationError, warn
from dynident.identify.base import BaseParameters
from dynident.identify.estimators.least_squares import WLS, LeastSquares, recover_standard
from dynident.identify.estimators.map import MAP
from dynident.identify.estimators.statistics import EDGE, coloured_covariance
from dynident.identify.fit import Fit
from dynident.identify.regression.factor import Solution
from dynident.identify.regression.logs import differentiated
from dynident.identify.regression.regression import Regression, Stretch, rows_along, sampled
from dynident.mechanics.functions import Motion
from dynident.mechanism.mechanism import Mechanism

HALVINGS = 6  # of a step to a robot that cannot be simulated


class Loop(Protocol):
    """A closed loop that can be run with any model: `dynident.simulate.ClosedLoop`."""

    @property
    def unknown(self) -> tuple[str, ...]:
        """Numbers of the machine that are estimated too."""

    @property
    def count(self) -> int:
        """Number of logs with references."""

    def reference(self, log: int) -> Motion:
        """Return the reference motion of a log."""

    def motion(self, model: Mechanism, log: int, t: Array, factors: Mapping[str, float] | None = None) -> Motion:
        """Return the simulated motion of a model at the times of a log."""


def check_loop(loop: Loop | None, evidence: Regression, name: str) -> Loop:
    """Return the loop if it fits the regression data."""
    if loop is None or not callable(getattr(loop, "motion", None)):
        raise IdentificationError(
            f"{name} simulates the closed loop; give {name}(loop=dynident.simulate.ClosedLoop(machine, references))"
        )
    if loop.count != len(evidence.stretches):
        raise IdentificationError(f"{name}: the loop has {loop.count} references for {len(evidence.stretches)} logs; one each")
    return loop


def model_of(base: BaseParameters, beta: Array, combinations: Array | None = None) -> Mechanism:
    """Return the robot with some base parameters, otherwise as described."""
    known = np.eye(base.rank) if combinations is None else combinations
    return base.mechanism.with_parameters(recover_standard(base, beta, known))


def filtered_motion(found: Motion, part: Stretch) -> Motion:
    """Return a simulated motion with its positions filtered and differentiated like the measured ones.

    A sampled controller's torque changes in steps, so the acceleration at a sample belongs to the next cycle; filtering the
    positions only gives the same delay as with the log.
    """
    if part.cutoff <= 0.0:
        return found
    extra = min(int(EDGE * part.rate / part.cutoff), len(found) // 4)
    q, v, a = differentiated(part.rate, found.q, part.cutoff, part.options)
    ends = np.ones(len(found), dtype=bool)
    ends[extra : len(found) - extra] = False  # the filter needs both sides; there the simulation's own derivatives are used
    for filtered, own in ((q, found.q), (v, found.v), (a, found.a)):
        filtered[ends] = own[ends]
    return Motion(found.t, q, v, a)


def simulated_instruments(loop: Loop, fit: Fit) -> Callable[[int, Stretch], Motion]:
    """Return the `instruments` of `IV`: the closed `loop`, one reference per log, simulated with a first `fit` [Janot2014]."""
    return lambda i, part: loop.motion(fit.model, i, part.motion.t)


@dataclass(kw_only=True, eq=False)
class DIDIM(LeastSquares):
    """Direct and inverse dynamic identification models: measured efforts, simulated motion.

        beta = argmin sum_g ||y_g - W_g(simulated motion of beta) beta||^2 / sigma_g^2

    Parameters
    ----------
    loop : ClosedLoop
        The closed loop with the controller of the robot, one reference per log (`dynident.simulate.ClosedLoop`).
    iterations : int
        Largest number of steps, each a simulation of every log; the first robot is the description, or the possible bodies of
        `MAP` where that cannot be simulated.
    convergence : float
        Change of the parameters, in standard deviations, at which to stop.
    recovery, tolerance
        As of `OLS`.
    """

    loop: Loop | None = None
    iterations: int = 10
    convergence: float = 0.05

    def _estimate(self, regression: Regression, active: NDArray[np.bool_]) -> tuple[Solution, Array]:
        evidence = sampled(regression, "DIDIM")
        loop = check_loop(self.loop, evidence, "DIDIM")
        self._check_least(iterations=1)
        model, parts = self._begin(evidence, loop, active)
        beta, share = np.full(evidence.base.rank, np.nan), 1.0
        self.converged_ = False
        for i in range(self.iterations):
            rows = [list(zip(part.W, part.y, strict=True)) for part in parts]
            groups = evidence.with_rows(rows).groups
            self.evidence_ = replace(evidence, groups=groups, stretches=parts)
            solution, sigma = WLS(tolerance=self.tolerance)._estimate(self.evidence_, active)
            self.n_iter_ = i + 1
            step, beta = solution.beta - beta, solution.beta
            spread = np.sqrt(np.diag(solution.covariance()))
            # A fraction of a step changes the motion by that fraction only.
            if np.all(np.abs(step[solution.solved]) <= share * self.convergence * spread[solution.solved]):
                self.converged_ = True
                break
            if i + 1 < self.iterations:
                known = np.vstack([solution.combinations, np.eye(beta.size)[~active]])
                model, parts, share = _toward(evidence, loop, model, model_of(evidence.base, beta, known))
        if share < 1.0:
            warn(
                f"DIDIM: the estimate cannot be simulated, so the last step was shortened to {100 * share:.2g} %; use "
                "recovery='physical' for consistent bodies",
                DynidentWarning,
            )
        return solution, sigma

    def _begin(self, evidence: Regression, loop: Loop, active: NDArray[np.bool_]) -> tuple[Mechanism, tuple[Stretch, ...]]:
        """Return the first model and the rows along its motion."""
        try:
            return evidence.mechanism, _along(evidence, loop, evidence.mechanism)
        except SimulationError:  # as described, without rotors perhaps, it is unstable under the gains of the robot
            model = MAP(recovery="physical").fit(evidence, active).result_.model
            return model, _along(evidence, loop, model)

    def _covariance(self, regression: Regression, solution: Solution, sigma: Array) -> Array:
        return coloured_covariance(self.evidence_, solution, sigma)


def _along(evidence: Regression, loop: Loop, model: Mechanism) -> tuple[Stretch, ...]:
    """Return the regression data with the rows of a model's simulated motion."""
    return tuple(
        replace(part, W=tuple(rows_along(evidence, part, filtered_motion(loop.motion(model, k, part.motion.t), part))))
        for k, part in enumerate(evidence.stretches)
    )


def _toward(
    evidence: Regression, loop: Loop, model: Mechanism, target: Mechanism
) -> tuple[Mechanism, tuple[Stretch, ...], float]:
    """Return the model after the largest fraction of a step that can be simulated, its rows, and that fraction."""
    here, there = model.parameters.values, target.parameters.values
    for halving in range(HALVINGS + 1):
        share = 0.5**halving
        found = target if halving == 0 else target.with_parameters(target.parameters.replace(here + share * (there - here)))
        try:
            return found, _along(evidence, loop, found), share
        except SimulationError as error:
            refusal = error
    raise refusal
