"""Closed-loop output error: the simulated closed loop is fitted to the measured outputs [Gautier2013] [Landau1997].

    theta = argmin sum_c ||o_c - o_c(theta)||^2 / s_c^2,     theta = base parameters, factors on gains, delay, biases
    o = positions of the joints, their efforts, or both;  o(theta) from the closed loop with the controller of the robot

Gauss-Newton with central differences, two simulations per unknown. Channels are weighted by their residuals, which
tolerates a small model error; deviations allow for autoregressive residuals, since position errors are strongly correlated.
Positions alone are enough where no effort was logged: the identifiable unknowns then depend on the gains of the loop, and
`visible` lists them before the fit.
The estimate of `IV`, which uses no controller, tests whether the simulated loop is that of the robot.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import scipy  # its sub-packages load on first use, which keeps the start fast
from numpy.typing import NDArray

from dynident.arrays import Array
from dynident.errors import DynidentWarning, IdentificationError, SimulationError, warn
from dynident.identify.estimators.direct import Loop, check_loop, filtered_motion, model_of
from dynident.identify.estimators.instrumental import IV
from dynident.identify.estimators.least_squares import LeastSquares
from dynident.identify.estimators.statistics import ENOUGH, ORDER, RING
from dynident.identify.fit import Fit
from dynident.identify.regression.factor import RowGroup, Solution, group_sigma, solve, triangle
from dynident.identify.regression.regression import Regression, Stretch, rows_along, sampled
from dynident.mechanism.mechanism import Mechanism
from dynident.mechanism.parameters import natural_spread
from dynident.results import Result
from dynident.signals.dependence import autocovariance, autoregression
from dynident.signals.quality import note

OUTPUTS = ("effort", "position")
STEP = 1e-3  # of a difference, in units of the parameter's natural size: small enough to detect invisible directions
#: The same for deviations. Where a joint sticks a little longer an output jumps, and the quotient of the jump grows as
#: the step shrinks, like a false sensitivity.
WIDE = 0.02
HALVINGS = 5
LEAST = 0.05  # factor on a gain: below it the loop would be another one
#: Natural size of unknowns of a loop that are no factors: a delay of commands [s], the bias of an encoder [rad, m].
SIZES = {"delay": 0.01, "bias": 0.1}
SEEN = 1e-6  # singular value of the scaled sensitivities below which a direction is not seen


@dataclass(frozen=True, eq=False)
class Visible(Result):
    """Identifiable unknowns of a log in a closed loop, before any fit."""

    names: tuple[str, ...]  # Unknowns: base parameters, then those of the loop
    reach: Array
    hidden: tuple[dict[str, float], ...]  # Unidentifiable directions, as shares of the unknowns
    sentences: tuple[str, ...]  # Summary in words

    def summary(self) -> str:
        """Return the result as text, one sentence a line."""
        return "\n".join(self.sentences)


@dataclass(kw_only=True, eq=False)
class OutputError(LeastSquares):
    """Closed-loop output error: a simulation with the controller of the robot is fitted to the measurements.

        theta = argmin ||outputs - outputs of the closed loop of theta||,  each channel by its own noise

    Parameters
    ----------
    loop : ClosedLoop
        The closed loop with the controller of the robot, one reference per log (`dynident.simulate.ClosedLoop`); its
        ``unknown`` gains, delay of commands and biases of encoders are estimated too.
    outputs : tuple of {"effort", "position"}
        Outputs to compare; ("position",) for logs without efforts (`Regression.without_effort`).
    known : tuple of str
        Base parameters, by the parameter that they begin with, which stay as described: the weight of a pendulum gives the
        scale of gains, rotor inertia and friction where only positions were logged.
    start : Fit, optional
        Initial estimate; the description when omitted.
    iterations : int
        Largest number of Gauss-Newton steps.
    convergence : float
        Change of the parameters, in standard deviations, at which to stop.
    recovery, tolerance
        As of `OLS`.
    """

    loop: Loop | None = None
    outputs: tuple[str, ...] = OUTPUTS
    known: tuple[str, ...] = ()
    start: Fit | None = None
    iterations: int = 8
    convergence: float = 0.05
    tolerance: float = 1e-5

    def visible(self, regression: Regression) -> Visible:
        """Return the sensitivity of the outputs to each unknown, before the fit, and the unidentifiable directions."""
        problem = _Problem(self, sampled(regression, "OutputError"))
        measured, now = problem.measured(), problem.simulated(problem.start, problem.first)
        J = problem.sensitivities(problem.start, problem.first)
        noise = [max(float(np.std(m - s)), 1e-12) for m, s in zip(measured, now, strict=True)]
        stacked = np.vstack([block / s for block, s in zip(J, noise, strict=True)])
        return _visible(problem, stacked)

    def fit(self, regression: Regression, active: NDArray[np.bool_] | None = None) -> Self:
        """Estimate base parameters and gains; see `OLS.fit`. A note of the result states the gains."""
        super().fit(regression, active)
        if said := told_gains(self.factors_, self.factors_std_, self.held_):
            self.result_ = self.result_.noted(note("loop_gains", said))
        return self

    def _estimate(self, regression: Regression, active: NDArray[np.bool_]) -> tuple[Solution, Array]:
        evidence = sampled(regression, "OutputError")
        self._check_least(iterations=1)
        problem = _Problem(self, evidence)
        chosen = np.append(active & ~problem.known, np.ones(problem.factors, dtype=bool))
        model, factors = problem.start, problem.first.copy()
        if not active.all():
            model = model_of(evidence.base, np.where(active, evidence.base.values(model.parameters.values), 0.0))
        measured, now = problem.measured(), problem.simulated(model, factors)
        self.converged_ = False
        for i in range(self.iterations):
            J = problem.sensitivities(model, factors)
            theta = np.append(evidence.base.values(model.parameters.values), factors)
            residuals = [m - s for m, s in zip(measured, now, strict=True)]
            if i == 0:
                chosen = _without_hidden_gains(J, chosen, problem, self.tolerance)
                self.held_ = tuple(n for n, used in zip(problem.names, chosen[evidence.base.rank :], strict=True) if not used)
            sizes = _sizes(residuals, int(chosen.sum()))
            solution = _linear(problem, J, residuals, sizes, theta, chosen, self.tolerance)
            self.n_iter_ = i + 1
            self.full_covariance_ = _covariance(J, residuals, sizes, solution)
            spread = np.sqrt(np.diag(self.full_covariance_))
            change = solution.beta[solution.solved] - solution.combinations @ np.where(chosen, theta, 0.0)
            small = np.abs(change) <= self.convergence * spread[solution.solved]
            step = np.linalg.lstsq(solution.combinations, change, rcond=None)[0]
            cost = _cost(measured, now, sizes)
            for _ in range(HALVINGS):
                trial = theta + step
                beta, factors_new = trial[: evidence.base.rank], trial[evidence.base.rank :]
                if np.all(factors_new[problem.first > 0.0] > LEAST):
                    candidate = model_of(evidence.base, beta)
                    outputs = problem.simulated_or_none(candidate, factors_new)
                    if outputs is not None and _cost(measured, outputs, sizes) <= cost:
                        model, factors, now = candidate, factors_new, outputs
                        break
                step = 0.5 * step
            else:
                self.converged_ = bool(np.all(small))
                break
            if np.all(small):
                self.converged_ = True
                break
        self._judge(problem, solution, model, factors, [m - s for m, s in zip(measured, now, strict=True)])
        return self._finish(problem, solution, model, factors)

    def _judge(self, problem: _Problem, solution: Solution, model: Mechanism, factors: Array, residuals: list[Array]) -> None:
        """Find the deviations; where measured motion and efforts contradict the simulated loop, warn and enlarge them."""
        solved = np.isin(np.arange(solution.beta.size), solution.solved)
        b = problem.evidence.base.rank
        theta = np.append(problem.evidence.base.values(model.parameters.values), factors)
        J = problem.sensitivities(model, factors, WIDE)
        sizes = _sizes(residuals, int(solved.sum()))
        wide = _linear(problem, J, residuals, sizes, theta, solved, self.tolerance)
        self.full_covariance_ = _covariance(J, residuals, sizes, wide)
        self.contradiction_, apart = contradiction(problem.evidence, problem.loop, solved[:b], theta, self.full_covariance_)
        if self.contradiction_:
            self.full_covariance_[:b, :b] += np.outer(apart, apart)  # either of the two may be right
            warn(f"OutputError: {self.contradiction_}", DynidentWarning)

    def _finish(self, problem: _Problem, solution: Solution, model: Mechanism, factors: Array) -> tuple[Solution, Array]:
        """Keep the factors apart and return the solution of the base parameters."""
        b = problem.evidence.base.rank
        full = self.full_covariance_
        self.factors_ = dict(zip(problem.names, factors.tolist(), strict=True))
        self.factors_std_ = dict(zip(problem.names, np.sqrt(np.diag(full))[b:].tolist(), strict=True))
        own = solution.solved < b
        solved = np.append(solution.solved[own], np.flatnonzero(problem.known))
        combinations = np.vstack([solution.combinations[own][:, :b], np.eye(b)[problem.known]])
        beta = np.zeros(b)
        beta[solved] = combinations @ problem.evidence.base.values(model.parameters.values)
        kept = Solution(beta, solution.precision_root, solution.scale, solved, combinations, solution.condition)
        sigma = (
            group_sigma(problem.evidence, kept) if "effort" in self.outputs else np.full(len(problem.evidence.groups), np.nan)
        )
        return kept, sigma

    def _covariance(self, regression: Regression, solution: Solution, sigma: Array) -> Array:
        b = regression.base.rank
        return self.full_covariance_[:b, :b]


class _Problem:
    """Outputs of a closed loop as functions of its model and gains."""

    def __init__(self, estimator: OutputError, evidence: Regression) -> None:
        self.evidence = evidence
        self.loop = check_loop(estimator.loop, evidence, "OutputError")
        self.kinds = tuple(estimator.outputs)
        if not self.kinds or any(kind not in OUTPUTS for kind in self.kinds):
            raise IdentificationError(f"OutputError: outputs is {estimator.outputs!r}; name some of {', '.join(OUTPUTS)}")
        self.start = evidence.mechanism if estimator.start is None else estimator.start.model
        self.names = tuple(self.loop.unknown)
        self.factors = len(self.names)
        added = [name.partition(":")[0] for name in self.names]
        self.first = np.array([0.0 if kind in SIZES else 1.0 for kind in added])  # unknowns of the loop before the fit
        self.loop_size = np.array([SIZES.get(kind, 1.0) for kind in added])
        base = evidence.base
        if wrong := [name for name in estimator.known if name not in base.leaders]:
            raise IdentificationError(
                f"OutputError: known names '{wrong[0]}'; the base parameters begin with {', '.join(base.leaders)}"
            )
        self.known = np.isin(base.leaders, estimator.known)
        # Natural size of every base parameter, from the plausible errors of its standard parameters.
        prior = natural_spread(base.mechanism)
        self.size = np.sqrt(np.sum((base.regrouping * prior) ** 2, axis=1))

    def measured(self) -> list[Array]:
        """Return the measured outputs, one array per channel and log."""
        found = []
        for part in self.evidence.stretches:
            if "position" in self.kinds:
                found += _means(part.positions, part)
            if "effort" in self.kinds:
                found += list(part.y)
        return found

    def simulated(self, model: Mechanism, factors: Array) -> list[Array]:
        """Return the outputs of the simulated closed loop in the same order."""
        found = []
        beta = self.evidence.base.values(model.parameters.values)
        given = dict(zip(self.names, factors.tolist(), strict=True))
        bias = np.array([given.get(f"bias:{name}", 0.0) for name in model.coordinate_names])
        for k, part in enumerate(self.evidence.stretches):
            motion = self.loop.motion(model, k, part.motion.t, given)
            if "position" in self.kinds:
                found += _means(motion.q + bias, part)
            if "effort" in self.kinds:
                rows = rows_along(self.evidence, part, filtered_motion(motion, part))
                found += [W @ beta[group.columns] for W, group in zip(rows, self.evidence.groups, strict=True)]
        return found

    def simulated_or_none(self, model: Mechanism, factors: Array) -> list[Array] | None:
        """Return the outputs, or None where the closed loop is not stable."""
        try:
            return self.simulated(model, factors)
        except SimulationError:
            return None

    def sensitivities(self, model: Mechanism, factors: Array, share: float = STEP) -> list[Array]:
        """Return d outputs / d unknowns, (M, k) for every channel, by central differences, exactly zero without effect."""
        base, spread = self.evidence.base, natural_spread(self.evidence.mechanism)
        beta = base.values(model.parameters.values)
        columns = []
        for j in range(base.rank + self.factors):
            step = share * (max(abs(beta[j]), self.size[j]) if j < base.rank else self.loop_size[j - base.rank])
            sides = []
            for sign in (1.0, -1.0):
                change = np.zeros(base.rank + self.factors)
                change[j] = sign * step
                moved = _moved(model, base.regrouping, change[: base.rank], spread) if j < base.rank else model
                sides.append(self.simulated(moved, factors + change[base.rank :]))
            columns.append([(up - down) / (2.0 * step) for up, down in zip(*sides, strict=True)])
        return [np.column_stack([column[c] for column in columns]) for c in range(len(columns[0]))]


def _means(q: Array, part: Stretch) -> list[Array]:
    """Return the means of positions over the samples of each row: white noise stays white."""
    size = part.decimator.factor
    count = q.shape[0] // size
    return list(q[: count * size].reshape(count, size, -1).mean(axis=1).T)


def _moved(model: Mechanism, K: Array, change: Array, spread: Array) -> Mechanism:
    """Return the model with base parameters changed by the smallest plausible change of standard ones."""
    root = K * spread
    phi = model.parameters.values + spread * np.linalg.lstsq(root, change, rcond=None)[0]
    return model.with_parameters(model.parameters.replace(phi))


def _sizes(residuals: list[Array], unknowns: int) -> list[float]:
    """Return the standard deviation of every channel, from its residuals and its share of the degrees of freedom."""
    samples = sum(e.size for e in residuals)
    paid = samples / max(samples - unknowns, 1)
    return [max(float(np.sqrt(paid * np.mean(e**2))), 1e-13 * float(np.max(np.abs(e))), 1e-14) for e in residuals]


def _covariance(J: list[Array], residuals: list[Array], sizes: list[float], solution: Solution) -> Array:
    """Return the covariance of the unknowns for autoregressive residuals in every channel."""
    plain = solution.covariance()
    result = np.zeros_like(plain)
    samples = sum(e.size for e in residuals)
    for block, e, s in zip(J, residuals, sizes, strict=True):
        lags = min(ORDER, e.size // ENOUGH)
        a = autoregression(autocovariance([(e - np.mean(e), np.ones(e.size, dtype=bool))], lags), e.size)[0]
        polynomial = np.append(1.0, a)
        white = scipy.signal.lfilter(polynomial, [1.0], e)[polynomial.size - 1 :]
        padded = np.vstack([np.zeros((RING, plain.shape[0])), block @ plain / s**2])
        back = scipy.signal.lfilter([1.0], polynomial, padded[::-1], axis=0)
        result += float(np.mean(white**2)) * back.T @ back * samples / max(samples - solution.solved.size, 1)
    return result


def _linear(
    problem: _Problem,
    J: list[Array],
    residuals: list[Array],
    sizes: list[float],
    theta: Array,
    active: NDArray[np.bool_],
    tolerance: float,
) -> Solution:
    """Solve the linear problem about theta, every channel divided by its deviation."""
    at = np.where(active, theta, 0.0)
    stacked = np.vstack([np.column_stack([block, e + block @ at]) / s for block, e, s in zip(J, residuals, sizes, strict=True)])
    group = RowGroup("outputs", np.arange(theta.size), triangle(stacked), stacked.shape[0])
    shim = replace(problem.evidence.base, columns=np.arange(theta.size))  # as many unknowns, gains included
    return solve(Regression(shim, (group,)), np.ones(1), active, tolerance)


def _cost(measured: list[Array], outputs: list[Array], sizes: list[float]) -> float:
    """Return the sum of squares of all channels, each divided by its deviation."""
    return sum(float(np.sum((m - o) ** 2)) / s**2 for m, o, s in zip(measured, outputs, sizes, strict=True))


def _without_hidden_gains(J: list[Array], chosen: NDArray[np.bool_], problem: _Problem, tolerance: float) -> NDArray[np.bool_]:
    """Return the unknowns without redundant gains, which are held at the values of the machine."""
    stacked = np.vstack([block / max(float(np.linalg.norm(block)), 1e-300) for block in J])
    length = np.linalg.norm(stacked, axis=0)
    stacked = stacked / np.where(length > 0.0, length, 1.0)

    def rank(use: NDArray[np.bool_]) -> int:
        values = np.linalg.svd(stacked[:, use], compute_uv=False)
        return int(np.count_nonzero(values > tolerance * values[0]))

    kept = chosen.copy()
    for j in range(kept.size - 1, kept.size - 1 - problem.factors, -1):
        without = kept.copy()
        without[j] = False
        if rank(without) == rank(kept):
            kept = without
    return kept


def _visible(problem: _Problem, stacked: Array) -> Visible:
    base = problem.evidence.base
    free = np.append(~problem.known, np.ones(problem.factors, dtype=bool))
    names = tuple(name for name, unknown in zip((*base.names, *problem.names), free, strict=True) if unknown)
    size = np.append(np.maximum(np.abs(base.values(problem.start.parameters.values)), problem.size), problem.loop_size)
    scaled = (stacked * size)[:, free]
    length = np.linalg.norm(scaled, axis=0)
    reach = np.where(length > 0.0, 1.0 / np.where(length > 0.0, length, 1.0), np.inf)
    _, s, vt = np.linalg.svd(scaled, full_matrices=False)
    blind = vt[s < SEEN * s[0]]
    hidden = [
        {n: float(x) for n, x in zip(names, direction, strict=True) if abs(x) > 0.05 * np.max(np.abs(direction))}
        for direction in blind
    ]
    seen = int(np.count_nonzero(s >= SEEN * s[0]))
    kinds = " and ".join(f"{kind}s" for kind in problem.kinds)
    sentences = [f"{kinds} determine {seen} of {len(names)} unknowns or combinations"]
    gains = [n for n in problem.names if n.startswith("gain:")]
    if problem.kinds == ("position",) and gains and blind.size:
        sentences.append(
            "positions alone determine masses, inertias, friction and drive gains only up to one common factor; results are "
            "relative to a known gain or mass"
        )
    if problem.kinds == ("position",) and not gains and not problem.known.any():
        sentences.append(
            "no effort is compared: masses, inertias and friction scale with the assumed drive gains and share their errors"
        )
    for name, r in zip(names, reach, strict=True):
        if r > 1.0:
            sentences.append(f"'{name}' is not identifiable: a change of 100 % alters the outputs by less than their noise")
    return Visible(names, reach, tuple(hidden), tuple(sentences))


LEVEL = 1e-3  # level of the test: probability of doubting a correct loop
ROUND = 1e-10  # eigenvalue of a scaled covariance below which a direction is round-off


def contradiction(
    evidence: Regression, loop: Loop, active: NDArray[np.bool_], theta: Array, covariance: Array
) -> tuple[str, Array]:
    """Return a sentence about the disagreement of loop and `IV`, empty if none, and its size (b,), zero where they agree."""
    apart, witness = np.zeros(evidence.base.rank), _witness(evidence, loop, active)
    if witness is None:
        return "", apart
    known = np.flatnonzero(witness.solved & witness.active & np.isfinite(np.diag(witness.covariance)))
    if not known.size:
        return "", apart
    d = theta[known] - witness.values[known]
    V = covariance[np.ix_(known, known)] + witness.covariance[np.ix_(known, known)]
    size = np.sqrt(np.diag(V))
    size[size == 0.0] = 1.0
    values, vectors = np.linalg.eigh(V / np.outer(size, size))
    kept = values > ROUND * values[-1]
    H = float(np.sum((vectors[:, kept].T @ (d / size)) ** 2 / values[kept]))
    if not scipy.stats.chi2.isf(LEVEL, int(kept.sum())) < H:
        return "", apart
    apart[known] = d
    worst = known[int(np.argmax(np.abs(d) / size))]
    text = (
        f"the simulated loop contradicts the measured efforts (chi^2 = {H:.3g} of {int(kept.sum())}; "
        f"{evidence.base.names[worst]} = {theta[worst]:.4g} and {witness.values[worst]:.4g}); correct cycle, delay and "
        "filters of the loop, or use IV"
    )
    return text, apart


def _witness(evidence: Regression, loop: Loop, active: NDArray[np.bool_]) -> Fit | None:
    """Return the `IV` estimate (instruments: references of the loop) from the same data; None if it is not decisive."""
    if not any(np.any(y) for part in evidence.stretches for y in part.y):
        return None  # a log without efforts has no inverse dynamics
    estimator = IV(instruments=lambda i, _: loop.reference(i))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DynidentWarning)  # weak instruments are not decisive
        try:
            fit = estimator.fit(evidence, active=active).result_
        except IdentificationError:
            return None
    return None if estimator.weakness_ else fit


def told_gains(factors: Mapping[str, float], std: Mapping[str, float], held: Sequence[str]) -> str:
    """Return the note about estimated and held gains of a loop; none where all are known."""
    said = []
    for name in (name for name in factors if name not in held):
        meant = {"delay": " s", "bias": ""}.get(name.partition(":")[0], " times what the loop has")
        said.append(f"{name} is {factors[name]:.4g} +- {std[name]:.2g}{meant}")
    if held:
        said.append(
            f"{', '.join(held)} {'is' if len(held) == 1 else 'are'} fixed at the value of the loop: positions determine "
            "masses, inertias and friction only relative to the gains"
        )
    return f"loop: {'; '.join(said)}" if said else ""
