"""All estimators on the same logs, from Python and from the command line."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from identify_cases import DOWN_Y, PLANAR, arm, simulated_log, smooth

import dynident as di
from dynident.cli import run as command
from dynident.errors import DynidentError
from dynident.identify import IV, TLS, WLS, Regression
from dynident.identify.estimators.least_squares import fit_of
from dynident.simulate import ClosedLoop, standard_machine
from dynident.validate import standard_estimators

LINEAR = ("OLS", "WLS", "GLS", "IRLS Huber", "IRLS Tukey", "TLS")


@pytest.fixture(scope="module")
def robot():
    return arm(PLANAR, ("fv", "off"), DOWN_Y)


@pytest.fixture(scope="module")
def logs(robot):
    """Two runs of five seconds with their reference."""
    made = [simulated_log(robot, 5.0, seed, noise=0.05) for seed in (1, 2)]
    return [replace(log, reference=smooth(2, 1000, seed).q) for seed, log in zip((1, 2), made, strict=True)]


@pytest.fixture(scope="module")
def found(robot, logs):
    return di.compare(robot, *logs)


def test_all_that_the_logs_allow_are_compared(found):
    names = [row.name for row in found.rows]
    assert {*LINEAR, "IV reference"} <= set(names)
    assert all(row.fit is not None and row.error < 0.05 and row.seconds > 0.0 for row in found.rows)
    assert all(0.85 < found[name].coverage <= 1.0 for name in LINEAR)
    assert found.best.error == min(row.error for row in found.rows)
    assert not found.bias.biased
    assert found.description < 0.01  # it was simulated from its own description
    with pytest.raises(DynidentError, match="no estimator is called 'magic'"):
        found["magic"]


def test_it_is_told_in_words_and_in_json(found):
    text = found.summary()
    assert all(name in text for name in (*LINEAR, "run1", "run2", "held out", "coverage"))
    assert "residuals are" in text
    data = found.table()
    assert data["best"] == found.best.name
    assert [row["name"] for row in data["estimators"]] == [row.name for row in found.rows]
    assert data["bias"]["biased"] is False
    assert data["estimators"][1]["error"] == pytest.approx(found["WLS"].error)


def test_it_is_read_back_with_its_fits(found, logs, tmp_path):
    again = di.load(found.save(tmp_path / "comparison.json"))
    assert again.summary() == found.summary()
    np.testing.assert_array_equal(again["TLS"].fit.values, found["TLS"].fit.values)
    assert again["WLS"].fit.score(logs[1]).metrics.relative == pytest.approx(found["WLS"].error, rel=1e-9)


def test_errors_are_those_of_score(robot, logs, found):
    base = found["WLS"].fit.base
    fit = WLS().fit(di.Regression.from_log(robot, logs[0], base)).result_
    assert found["WLS"].error == pytest.approx(fit.score(logs[1]).metrics.relative, rel=1e-9)
    assert found["WLS"].training == pytest.approx(fit.training_relative, rel=1e-9)


def test_a_refusal_is_a_row_and_the_end_is_held_out(robot, logs):
    bare = replace(logs[0], reference=None)
    found = di.compare(robot, bare, estimators={"WLS": WLS(), "IV": IV()})
    assert found["IV"].fit is None
    assert "no reference" in found["IV"].note
    assert "not possible" in found.summary()
    assert "not tested" in found.bias.summary()
    assert np.isfinite(found["WLS"].error)
    with pytest.raises(DynidentError, match="no estimator could be fitted"):
        di.compare(robot, bare, estimators={"IV": IV()})
    with pytest.raises(DynidentError, match="logs is str"):
        di.compare(robot, "run.csv")


def test_a_closed_loop_adds_those_that_simulate(robot, logs):
    machine = standard_machine(robot, controller="pd")
    loop = ClosedLoop(machine, smooth(2, 1000, 1))
    evidence = Regression.from_log(robot, logs[0], keep_rows=True)
    assert {"DIDIM", "OutputError", "IV simulated", "IV periods"} <= set(standard_estimators(evidence, 1.0 / 0.15, loop))


def test_the_command(robot, logs, tmp_path, capsys):
    source = tmp_path / "robot.urdf"
    links = "".join(
        f'<link name="l{i}"><inertial><origin xyz="0.1 0 0"/><mass value="1"/>'
        '<inertia ixx="0.01" iyy="0.02" izz="0.02" ixy="0" ixz="0" iyz="0"/></inertial></link>'
        for i in (1, 2)
    )
    joints = "".join(
        f'<joint name="joint_{i}" type="revolute"><parent link="{p}"/><child link="l{i}"/><origin xyz="{x} 0 0"/>'
        '<axis xyz="0 0 1"/>'
        '<limit lower="-9" upper="9" effort="99" velocity="9"/></joint>'
        for i, p, x in ((1, "base", 0.0), (2, "l1", 0.3))
    )
    source.write_text(f'<robot name="two"><link name="base"/>{links}{joints}</robot>', encoding="utf-8")
    two = di.Mechanism.from_urdf(source).with_terms(("fv",))
    for seed in (1, 2):
        log = simulated_log(two, 4.0, seed, noise=0.02)
        replace(log, reference=log.position).save(tmp_path / f"run{seed}.csv")
    args = ["compare", str(source), str(tmp_path / "run1.csv"), "--validate", str(tmp_path / "run2.csv"), "--terms", "fv"]
    assert command([*args, "--loop", "pd", "--bandwidth", "20", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert {row["name"] for row in data["estimators"]} >= {*LINEAR, "DIDIM", "OutputError", "IV simulated"}
    assert all(np.isfinite(row["error"]) for row in data["estimators"] if row["name"] in ("DIDIM", "OutputError"))
    assert data["held_out"] == ["run2"]


def test_physical_ones_are_judged_as_exported(robot, logs):
    pytest.importorskip("cvxpy")
    found = di.compare(robot, *logs, estimators={"physical": WLS(recovery="physical"), "TLS": TLS()})
    fit = found["physical"].fit
    np.testing.assert_allclose(fit.values, fit.base.values(fit.standard.values), rtol=1e-9, atol=1e-12)


def test_what_is_no_estimator_is_refused(robot, logs):
    for wrong in (None, 3, WLS):
        with pytest.raises(DynidentError, match="give an estimator such as"):
            fit_of(wrong, None)
