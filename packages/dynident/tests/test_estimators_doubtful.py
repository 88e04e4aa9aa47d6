"""Estimators and verdicts where a naive one goes wrong: model error taken for noise, dry friction, impossible steps, gains."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from identify_cases import DOWN_Y, PLANAR, arm, smooth

from dynident.errors import DynidentWarning, SimulationError
from dynident.identify import (
    DIDIM,
    GLS,
    IV,
    WLS,
    OutputError,
    Regression,
    least_squares_bias,
)
from dynident.mechanics import Motion, inverse_dynamics
from dynident.simulate import ClosedLoop, standard_machine
from dynident.trajectory import random_motion
from dynident.validate import judge


@pytest.fixture(scope="module")
def robot():
    """Two axes with rotors, dry friction and an offset of known size."""
    bare = arm(PLANAR, ("ia", "fv", "fc", "off"), DOWN_Y)
    sizes = {"ia": 0.1, "fv": 0.5, "fc": 1.0, "off": 0.8}
    known = [
        sizes.get(name.partition("_")[0], x) for name, x in zip(bare.parameters.names, bare.parameters.values, strict=True)
    ]
    return bare.with_parameters(bare.parameters.replace(np.array(known)))


@pytest.fixture(scope="module")
def machine(robot):
    bare = standard_machine(robot, controller="pd", bandwidth=6.0)
    return replace(bare, sensors=replace(bare.sensors, position_noise=2e-5, effort_noise=0.05))


@pytest.fixture(scope="module")
def runs(machine):
    """Two runs of six seconds at 1 kHz, other motions and other noise."""
    motions = [random_motion([0.3, -0.5], [0.8, 0.8], seed=seed, duration=6.0, harmonics=8) for seed in (1, 2)]
    return [machine.simulate(motion, seed=seed) for seed, motion in enumerate(motions, start=1)]


@pytest.fixture(scope="module")
def evidence(robot, runs):
    return Regression.from_log(robot, runs[0].log, cutoff=20.0, keep_rows=True)


def error(fit, run) -> float:
    return fit.score(run.log).metrics.relative


def test_a_filter_fitted_to_model_error_is_refused(robot, runs):
    """Offsets that the model lacks never change: a filter against them takes slow motion away and keeps noise."""
    poor = robot.with_terms(("ia", "fv", "fc"))
    rows = Regression.from_log(poor, runs[0].log, cutoff=20.0, keep_rows=True)
    plain, forced = WLS().fit(rows).result_, GLS(order=12).fit(rows).result_
    with pytest.warns(DynidentWarning, match="coloured residuals are model error"):
        found = GLS().fit(rows)
    assert found.refused_
    assert error(forced, runs[1]) > 2.0 * error(plain, runs[1])
    np.testing.assert_array_equal(found.coef_, plain.values)
    assert np.all(found.result_.std > plain.std)  # of coloured residuals


def test_a_reference_that_is_not_the_motion_is_no_instrument(robot, runs):
    """As in a log whose target channels hold something else: instruments that say nothing must not say that all is well."""
    log = runs[0].log
    rows = Regression.from_log(
        robot, replace(log, reference=0.3 + 1e-3 * np.sin(log.t)[:, None] * np.ones(2)), cutoff=20.0, keep_rows=True
    )
    with pytest.warns(DynidentWarning, match="hardly resemble the measured motion .* the reference of this log"):
        assert IV().fit(rows).strength_ < 0.1
    found = least_squares_bias(rows)
    assert "not tested; the instruments hardly resemble" in found.summary()
    assert "agree" not in found.summary()
    assert np.isnan(found.probability)


def test_bands_of_possible_bodies_are_those_of_their_own_residuals(robot):
    """Friction that drives: no possible robot leaves as little as the free fit, and its bands say so."""
    motion = smooth(2, 400, seed=3, rate=50.0)
    tau = inverse_dynamics(robot, motion) - 2.0 * motion.v + np.random.default_rng(0).normal(size=(400, 2)) * 0.1
    rows = Regression.from_motion(robot, motion, tau, keep_rows=True)
    free, found = WLS().fit(rows).result_, WLS(recovery="physical").fit(rows).result_
    left = np.sqrt(np.mean(np.square(rows.residuals(found.values)[0]), axis=1))
    assert np.all(left > 2.0 * free.sigma)
    np.testing.assert_allclose(found.sigma, left, rtol=0.05)  # but for the degrees of freedom


class Refusing:
    """A closed loop that tracks its reference, and cannot be simulated with a rotor below a limit."""

    unknown = ()
    count = 1

    def __init__(self, run, lowest: float) -> None:
        self.run, self.lowest, self.tried = run, lowest, []

    def reference(self, log):
        return self.run.reference

    def motion(self, model, log, t, factors=None):
        ia = dict(zip(model.parameters.names, model.parameters.values, strict=True))["ia_joint_2"]
        self.tried.append(ia)
        if ia < self.lowest:
            raise SimulationError("the mass matrix is not positive definite")
        truth = self.run.truth.motion
        at = np.searchsorted(truth.t, t - 1e-9)
        return Motion(t, truth.q[at], truth.v[at], truth.a[at])


def test_a_step_that_cannot_be_simulated_is_cut_back(robot, runs, evidence):
    """Described three times too heavy, found at 0.1, and refused below 0.15: the step ends half way, the estimate does not."""
    heavy = robot.with_parameters(robot.parameters.replace(3.0 * robot.parameters.values))
    rows = Regression.from_log(heavy, runs[0].log, cutoff=20.0, keep_rows=True)
    free = DIDIM(loop=Refusing(runs[0], -np.inf)).fit(rows)
    loop = Refusing(runs[0], 0.15)
    with pytest.warns(DynidentWarning, match=r"cannot be simulated.* shortened to 50 %"):
        found = DIDIM(loop=loop).fit(rows)
    assert loop.tried[0] == pytest.approx(0.3)
    assert min(loop.tried) < 0.15 <= loop.tried[-1]
    np.testing.assert_allclose(found.coef_, free.coef_, rtol=1e-9)
    with pytest.raises(SimulationError, match="not positive definite"):
        DIDIM(loop=Refusing(runs[0], 0.2999)).fit(rows)


def test_a_description_that_cannot_be_simulated_is_left_for_possible_bodies(robot, runs):
    light = robot.with_parameters(
        robot.parameters.replace(np.where(robot.parameters.values == 0.1, 0.0, robot.parameters.values))
    )
    rows = Regression.from_log(light, runs[0].log, cutoff=20.0, keep_rows=True)
    loop = Refusing(runs[0], 0.05)
    found = DIDIM(loop=loop).fit(rows)
    assert loop.tried[0] == 0.0
    assert found.converged_


def named(verdict) -> dict:
    return {check.name: check for check in verdict.checks}


@pytest.mark.parametrize(("factor", "words"), [((1.3, 1.3), "of all joints are 1.3 times"), ((1.0, -1.0), "joint_2 -1")])
def test_a_gain_that_changed_between_the_logs_is_said(evidence, runs, factor, words):
    fit = WLS().fit(evidence).result_
    log = runs[1].log
    assert "gains" not in named(judge(fit, [fit.score(log)]))
    checks = named(judge(fit, [fit.score(replace(log, effort=log.effort * np.array(factor)))]))
    assert not checks["held_out_error"].ok
    assert not checks["gains"].ok
    assert words in checks["gains"].sentence
    assert "gain, unit and sign" in checks["gains"].next_step
    assert checks["generalisation"].ok  # the motion was rich enough, and the noise is known
    assert checks["coverage"].ok


def test_a_payload_is_no_gain(robot, evidence, machine):
    """Two kilograms more at the second link: nothing that is proportional to the effort."""
    names, values = robot.parameters.names, robot.parameters.values.copy()
    for name, more in (("m", 2.0), ("mx", 0.6), ("Izz", 0.18), ("Iyy", 0.18)):
        values[names.index(f"{name}_link_2")] += more
    loaded = replace(machine, mechanism=robot.with_parameters(robot.parameters.replace(values)))
    run = loaded.simulate(random_motion([0.3, -0.5], [0.8, 0.8], seed=2, duration=6.0, harmonics=8), seed=2)
    fit = WLS().fit(evidence).result_
    checks = named(judge(fit, [fit.score(run.log)]))
    assert not checks["generalisation"].ok
    assert "gains" not in checks


def test_a_fit_to_positions_claims_no_efforts(robot, machine, runs):
    blind = replace(runs[0].log, effort=None, effort_kind="none")
    rows = Regression.without_effort(robot, blind, cutoff=20.0)
    fit = OutputError(loop=ClosedLoop(machine, runs[0].reference), outputs=("position",), iterations=1).fit(rows).result_
    text = fit.summary()
    assert "0.00%" not in text
    assert "scale with the gains" in text
    alone, judged = judge(fit), judge(fit, [score := fit.score(runs[1].log)])
    assert not named(alone)["efforts"].ok
    assert "no efforts were fitted" in named(alone)["efforts"].sentence
    assert named(judged)["efforts"].ok  # a log with efforts shows the scale
    assert np.isnan(score.coverage)
    assert "fit used positions only" in score.summary()
    exact = fit.altered(covariance=1e-12 * fit.covariance)
    assert "<0.01%" in exact.summary()
    assert "0.00%" not in exact.summary()
    scaled = fit.score(replace(runs[1].log, effort=1.3 * runs[1].log.effort))
    assert "differs from the simulated loop" in named(judge(fit, [scaled]))["gains"].sentence
