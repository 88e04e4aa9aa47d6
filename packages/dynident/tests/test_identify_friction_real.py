"""Friction of real robots: EMPS with friction per direction."""

from __future__ import annotations

import pytest

import dynident as di
from dynident.friction import Asymmetric, Coulomb, Tanh, Viscous
from dynident.friction.terms import ASYMMETRIC
from dynident.friction.text import law_text
from dynident.identify import WLS, Axis, Regression, fit_friction

pytestmark = pytest.mark.real

EMPS = {"time": "t", "position": "qm", "effort": "vir", "joints": ["slide"], "effort_kind": "voltage", "gain": 35.1507}


@pytest.fixture(scope="module")
def emps(shared_data):
    robot = di.Mechanism.from_dh([{"kind": "prismatic", "joint": "slide"}], gravity=(0, 0, 0), name="EMPS")
    logs = [di.Log.read(shared_data / "emps" / f"{name}.mat", schema=EMPS) for name in ("DATA_EMPS", "DATA_EMPS_PULSES")]
    return robot, *logs


def test_emps_with_asymmetric_friction_reaches_the_published_error(emps) -> None:
    """Published 3.1117 %; the core pipeline and the separable fit give the same rows, columns and error."""
    robot, train, pulses = emps
    fit = fit_friction(robot.with_terms(("ia",)), train, Asymmetric())
    band = {"cutoff": fit.sources[0]["cutoff"], "band": fit.sources[0]["bandwidth"]}  # each model would choose its own
    core = WLS().fit(Regression.from_log(robot.with_terms(ASYMMETRIC), train, **band)).result_
    assert core.training_relative <= 0.032
    assert WLS().fit(Regression.from_log(robot.with_terms(ASYMMETRIC), train)).result_.training_relative <= 0.032
    assert fit.training_relative == pytest.approx(core.training_relative, rel=1e-6)
    assert fit.score(pulses).metrics.relative == pytest.approx(core.score(pulses).metrics.relative, rel=1e-3)


def test_emps_shape_is_searched_on_real_data(emps) -> None:
    robot, train, pulses = emps
    smooth = fit_friction(robot.with_terms(("ia",)), train, Asymmetric(Tanh() + Viscous()))
    sharp = fit_friction(robot.with_terms(("ia",)), train, Asymmetric(Coulomb() + Viscous()))
    assert smooth.training_relative <= sharp.training_relative * (1 + 1e-6)
    assert smooth.score(pulses).metrics.relative < 1.05 * sharp.score(pulses).metrics.relative


def test_emps_law_is_chosen_by_held_out_blocks(emps) -> None:
    _, train, _ = emps
    prepared = di.prepare(train)
    rows = prepared.decimator.centres(len(prepared))
    v, a = prepared.motion.v[rows, 0], prepared.motion.a[rows, 0]
    effort = prepared.decimator.apply(prepared.effort)[:, 0]
    choice = fit_friction(None, Axis(effort, v, {"m": a}), (Viscous(), Coulomb() + Viscous(), Asymmetric())).choice
    assert choice.best == law_text(Asymmetric())
    assert choice[law_text(Asymmetric())].held_out < choice["coulomb + viscous"].held_out < choice["viscous"].held_out
