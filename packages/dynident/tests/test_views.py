"""Views for notebooks, tables for pandas, pictures of logs and robots, and the call that does everything."""

from __future__ import annotations

from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest

import dynident as di
from dynident.errors import DynidentError
from dynident.mechanism.describe import link_poses


@pytest.fixture(scope="module")
def example() -> di.examples.Example:
    return di.examples.arm6()


@pytest.fixture(scope="module")
def done(example: di.examples.Example) -> di.report.Identification:
    return di.identify(example.robot, example.run, validate=example.other)  # type: ignore[operator]


def test_one_call_does_what_the_single_steps_do(done: di.report.Identification, example: di.examples.Example) -> None:
    fit = di.MAP().fit(di.Regression.from_logs(example.robot, [example.run])).result_
    np.testing.assert_array_equal(done.fit.values, fit.values)
    assert [score.training for score in done.scores] == [False, True]
    assert done.scores[0].metrics.relative == fit.score(example.other).metrics.relative
    assert done.verdict.ok
    assert done.robot.parameters["fv_joint1"] == fit.standard["fv_joint1"]
    assert "held-out error" in done.summary() and len(done.summary().splitlines()) <= 12


def test_files_do_as_well_and_without_validation_it_says_so(example: di.examples.Example, tmp_path) -> None:
    di.examples.arm6(tmp_path)
    found = di.identify(tmp_path / "robot.urdf", [tmp_path / "run.csv"], effort="joint_torque", estimator=di.WLS(), validate=0)
    assert not found.verdict.validated
    assert "NOT VALIDATED" in repr(found)
    assert found.fit.estimator.startswith("WLS")
    assert found.report(tmp_path / "r.html").stat().st_size > 10_000


def test_frames_hold_the_numbers(done: di.report.Identification, example: di.examples.Example) -> None:
    pytest.importorskip("pandas")
    frame = done.fit.to_frame()
    np.testing.assert_array_equal(frame["value"], done.fit.values)
    np.testing.assert_array_equal(frame["std"], done.fit.std)
    np.testing.assert_array_equal(example.run.to_frame()["effort joint3"], example.run.effort[:, 2])
    np.testing.assert_array_equal(done.scores[0].to_frame()["joint2 predicted"], done.scores[0].predicted[:, 1])
    assert list(done.verdict.to_frame()["ok"]) == [check.ok for check in done.verdict.checks]
    assert example.robot.parameters.to_frame().set_index("parameter")["value"]["m_link3"] == example.robot.parameters["m_link3"]


def test_notebooks_show_tables_and_never_markup_of_names(done: di.report.Identification, example: di.examples.Example) -> None:
    hostile = replace(example.run, joints=("<b>a</b>", *example.run.joints[1:]), name="<script>")
    for shown in (done, done.fit, done.scores[0], done.verdict, example.robot.parameters, hostile):
        page = shown._repr_html_()
        ElementTree.fromstring(page)  # well formed  # noqa: S314 - our own output
        assert page.count("<tr>") > 5
        assert "<b>" not in page
        assert "<script>" not in page
    values = dict(zip(done.verdict._view()["name"], done.verdict._view()["value"], strict=True))
    assert (values["joints"], values["held_out_error"][-2:]) == ("none", " %")  # as in the report


def test_pictures_of_logs_have_the_signals(example: di.examples.Example) -> None:
    axes = example.run.plot(["joint2", "joint5"]).axes
    assert len(axes) == 6
    drawn = axes[-1].lines[0].get_ydata()
    assert drawn.max() == example.run.effort[:, 4].max()
    assert drawn.min() == example.run.effort[:, 4].min()


def test_drawn_poses_are_those_of_the_kinematics(example: di.examples.Example) -> None:
    q = np.array([0.3, -0.8, 1.1, 0.4, -0.6, 2.0])
    for body, pose in link_poses(example.robot, q).items():
        R, p = di.forward_kinematics(example.robot, q, body)
        np.testing.assert_allclose(pose.rotation, R[0], atol=1e-12)
        np.testing.assert_allclose(pose.translation, p[0], atol=1e-12)
    assert len(example.robot.plot(q).axes) == 1
    with pytest.raises(DynidentError, match="has 6 coordinates"):
        example.robot.plot([0.0, 1.0])
