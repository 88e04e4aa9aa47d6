"""The page that compares two fits: what changed is named, what did not is not, and both are on the same log."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from test_report_page import Page, arm, fitted, motion_of, truth_of, unpacked

import dynident as di
from dynident.cli import run
from dynident.errors import DynidentError
from dynident_lab.fit_comparison import write_comparison


def log_of(robot: di.Mechanism, seed: int, grown: float = 0.0) -> di.Log:
    motion = motion_of(robot, seed, 2000)
    truth = truth_of(robot)
    truth = truth.replace(truth.values + np.array([grown * (name == "fv_elbow") for name in truth.names]))
    tau = di.inverse_dynamics(robot, motion, truth) + np.random.default_rng(seed).normal(scale=0.05, size=motion.q.shape)
    return di.Log(motion.t, robot.coordinate_names, motion.q, tau, "joint_torque", name=f"log{seed}")


def test_the_parameter_that_changed_is_named_and_both_fits_are_drawn(tmp_path: Path) -> None:
    robot = arm()
    old, new = (di.MAP().fit(di.Regression.from_logs(robot, [log_of(robot, s, g)])).result_ for s, g in ((1, 0.0), (2, 0.5)))
    other = log_of(robot, 3, 0.5)
    page = Page(write_comparison(tmp_path / "c.html", {"spring": old, "autumn": new}, [other]))
    assert "Changed parameters" in page.text
    for season in ("spring", "autumn"):
        (tmp_path / season).mkdir()
    files = [old.save(tmp_path / "spring/fit.json"), new.save(tmp_path / "autumn/fit.json"), other.save(tmp_path / "other.csv")]
    assert run(["compare-fits", *map(str, files), "-o", str(tmp_path / "same.html")]) == 0
    assert (tmp_path / "same.html").read_text(encoding="utf-8").count("Changed parameters") == 1
    assert "spring and autumn compared" in Page(tmp_path / "same.html").text
    changed = page.text.split("Changed parameters")[1].split("Table of all")[0]
    assert "fv_elbow" in changed
    assert "fc_shoulder" not in changed
    assert "'autumn' predicts 1 of 1 log that neither was fitted to better" in page.text
    series, score = page.data["logs"][0]["series"][1], new.score(other)
    np.testing.assert_allclose(unpacked(series["predicted"]), score.predicted[:, 1], rtol=1e-6)
    np.testing.assert_allclose(unpacked(series["other"]), np.interp(score.t, *_curve(old.score(other), 1)), rtol=1e-6)


def _curve(score: di.Score, joint: int) -> tuple[np.ndarray, np.ndarray]:
    return score.t, score.predicted[:, joint]


def test_what_cannot_be_compared_is_refused(tmp_path: Path) -> None:
    fit = fitted(arm())
    with pytest.raises(DynidentError, match="give two"):
        write_comparison(tmp_path / "c.html", {"one": fit})
    with pytest.raises(DynidentError, match="same parameters"):
        write_comparison(tmp_path / "c.html", {"one": fit, "two": fitted(arm("wrist"))})


def test_long_names_of_files_break_instead_of_widening_the_tables(tmp_path: Path) -> None:
    fit = fitted(arm())
    long = "2026-09-02_after_the_change_of_grease"
    page = Page(write_comparison(tmp_path / "c.html", {"before": fit, long: fit}))
    broken = [attrs for name, attrs in page.tags if name == "th" and "long" in (attrs.get("class") or "").split()]
    assert len(broken) == 3  # the fits, their parameters, their bodies
