"""Every result of the test bench has the same methods, comes back from its file, and is copied and pickled."""

from __future__ import annotations

import copy
import json
import pickle
from collections.abc import Callable
from functools import cache
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from identify_cases import RRR, arm, evidence
from test_testbench_plateaus import campaign

import dynident as di
from dynident.friction import LuGre
from dynident.results import Result
from dynident_lab import testbench as bench
from dynident_lab.thermal import SecondOrder

T = np.arange(0.0, 3600.0, 240.0)


def history(name: str, start: float = 2.0) -> bench.FrictionHistory:
    rng = np.random.default_rng(len(name))
    return bench.FrictionHistory(t=T, friction=start * np.exp(-T / 900.0) + 5.0 + 0.01 * rng.normal(size=T.size), name=name)


@cache
def study() -> bench.FrictionStudy:
    robot = di.Mechanism("bench", (di.Body("base"), di.Body("link")), (di.Joint("axis", "revolute", "base", "link"),))
    return bench.friction_study(robot, campaign(np.random.default_rng(3), cycles=5))


def maintenance() -> bench.Maintenance:
    return bench.FaultDetector(bench.WarmupTime()).fit([history("a"), history("bb")]).check(history("ccc", 2.5))


def repeatability() -> bench.Repeatability:
    return bench.repeatability([e for h in (history("a"), history("bb")) for e in bench.estimates_of(h)])


def thermal() -> bench.ThermalFit:
    model = SecondOrder(alpha=-0.01, beta=1.0, K1=2.0, K2=1.0, C1=500.0, C2=2000.0)
    test = bench.ThermalTest(T, 1.0 - 0.2 * (1.0 - np.exp(-T / 900.0)), 5.0)
    return bench.ThermalFit(
        model, True, {"beta": 1.0}, {"beta": float("inf")}, (test.ratio,), 0.01, 0.02, 1e-3, 5, ("note",), (test,)
    )


def single_axis() -> bench.SingleAxis:
    return bench.SingleAxis("axis", ("J", "Qa"), ("kg m^2", "N m"), np.array([1.0, 0.0]), np.array([0.1, 0.2]), 0.01, 3.0)


def lugre() -> bench.LuGreFit:
    v = np.linspace(-1.0, 1.0, 400)
    static = bench.fit_static(v, np.sign(v) * (1.0 + 0.5 * np.exp(-((v / 0.1) ** 2))) + 0.3 * v)
    law = LuGre(sigma0=1e4, sigma1=10.0, fc=1.0, fs=1.5, vs=0.1)
    return bench.LuGreFit(law, {"sigma0": 10.0, "sigma1": float("inf")}, static, 0.01, 20.0, ("note",))


def proof() -> bench.TrackingProof:
    t = np.linspace(0.0, 1.0, 300)
    wave = np.sin(np.outer(t, np.arange(1.0, 4.0)))
    names = ("feedback alone", "catalogue model", "identified model")
    trials = tuple(bench.TrackingTrial(name, "sweep", t, wave / (k + 1), wave, 0.1 * wave) for k, name in enumerate(names))
    fit = di.OLS().fit(evidence(arm(RRR), 400, noise=0.1)[0]).result_
    return bench.TrackingProof("arm", ("a", "b", "c"), ("rad",) * 3, "N m", trials, fit)


def heating() -> bench.JointHeating:
    t = np.arange(0.0, 3600.0, 300.0)
    fits = (thermal(),)
    return bench.JointHeating("axis", "N m", 5.0, (1.0, 0.5), t, 1.0 - 1e-5 * t, 0.01 + 0.0 * t, t, 5.0 + 0.0 * t, fits)


def whole() -> bench.CampaignStudy:
    return bench.CampaignStudy(study(), (heating(),), ("note",))


def cycle_fits() -> bench.CycleFits:
    values = np.array([[1.0, 2.0], [1.1, 2.0]])
    errors = np.array([0.01, float("nan")])
    return bench.CycleFits(
        "arm", "run", "polynomial", (0, 1), 300.0 * np.arange(2), ("a", "b"), values, 0.1 * values, *[errors] * 2
    )


RESULTS: dict[str, Callable[[], Any]] = {
    "CampaignStudy": whole,
    "Checkup": lambda: bench.check_robot(study(), [study()], compensation="time"),
    "CycleFits": cycle_fits,
    "FrictionCompensation": lambda: bench.FrictionCompensation.of(whole()),
    "JointHeating": heating,
    "FrictionCurve": lambda: study().joints[0].curves.curves[0],
    "FrictionCurves": lambda: study().joints[0].curves,
    "FrictionHistory": lambda: history("a"),
    "FrictionStudy": study,
    "JointStudy": lambda: study().joints[0],
    "LuGreFit": lugre,
    "Maintenance": maintenance,
    "Plateaus": lambda: bench.find_plateaus(campaign(np.random.default_rng(3), cycles=1)[0], "axis"),
    "Repeatability": repeatability,
    "SingleAxis": single_axis,
    "Spread": lambda: bench.Spread(1.0, 0.1, 0.2, 0.3, 0.5, float("nan"), 12),
    "ThermalFit": thermal,
    "ThermalTest": lambda: thermal().tests[0],
    "TrackingProof": proof,
    "Warmup": lambda: bench.fit_warmup(T, history("a").friction),
}


def test_no_result_is_forgotten() -> None:
    classes = {
        name for name in bench.__all__ if isinstance(getattr(bench, name), type) and issubclass(getattr(bench, name), Result)
    }
    assert classes == {*RESULTS, "TemperatureComparison"}  # whose fits are those of dynident.identify


@pytest.mark.parametrize("name", RESULTS)
def test_results_have_one_protocol(name: str, tmp_path: Path) -> None:
    made = RESULTS[name]()
    written = json.dumps(made.to_dict())  # NaN equals itself as text
    for again in (di.load(made.save(tmp_path / "x.json")), copy.deepcopy(made), pickle.loads(pickle.dumps(made))):  # noqa: S301
        assert type(again) is type(made)
        assert json.dumps(again.to_dict()) == written
        assert again.summary() == made.summary()
    assert made.to_dict()["kind"] == f"dynident_lab.testbench.{name}"
    assert escape(made.summary().splitlines()[0]) in made._repr_html_()


@pytest.mark.parametrize("name", RESULTS)
def test_results_draw_themselves(name: str) -> None:
    figures = pytest.importorskip("matplotlib.figure", reason="figures need matplotlib: pip install 'dynident[report]'")
    made = RESULTS[name]()
    if name != "Spread":  # five numbers
        assert isinstance(made.plot(), figures.Figure)
