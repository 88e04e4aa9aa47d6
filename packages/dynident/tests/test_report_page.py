"""The report as a whole: self-contained, escaped, complete, and with the numbers of the fit."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dynident as di
from dynident.errors import DynidentError, MissingExtraError
from dynident.figures import extremes
from dynident.files import write_atomic
from dynident.identify import Score, evaluate
from dynident.identify.figures import plot_parameters
from dynident.pages import number, percent
from dynident.report import write_report
from dynident.report.model import bodies, parameters, relative_errors, standard_states, true_base_values, weak_directions
from dynident.signals import Quality, autocorrelation
from dynident.signals.dependence import effective_samples
from dynident.signals.quality import Finding
from dynident.validate import judge

HOSTILE = "<script>alert(1)</script>$\\frac{1}"
SECTIONS = [
    "verdict",
    "robot",
    "predictions",
    "residuals",
    "parameters",
    "observability",
    "conditioning",
    "bodies",
    "quality",
    "preparation",
    "provenance",
]
VOID = {"meta", "img", "br", "wbr", "hr", "input"}


class Page(HTMLParser):
    """Collects what a browser would see, and complains about elements that are not closed in order."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.scripts: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open[-1:] == ["script"]:
            self.scripts.append(data)
        elif self.open[-1:] != ["style"]:
            self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(self.words)

    @property
    def data(self) -> dict[str, Any]:
        return json.loads(self.scripts[0])


def unpacked(text: str) -> np.ndarray:
    return np.frombuffer(base64.b64decode(text), dtype="<f4")


def arm(joint: str = "elbow", name: str = "arm") -> di.Mechanism:
    rows = [
        {"a": 0.3, "alpha": 0.0, "d": 0.0, "theta": 0.0, "joint": "shoulder"},
        {"a": 0.2, "alpha": 0.0, "d": 0.0, "theta": 0.0, "joint": joint},
    ]
    return replace(di.Mechanism.from_dh(rows, gravity=(0.0, -9.81, 0.0)), name=name)


def truth_of(robot: di.Mechanism) -> di.Parameters:
    rng = np.random.default_rng(3)
    return robot.parameters.replace(rng.uniform(0.2, 1.0, len(robot.parameters)))


def motion_of(robot: di.Mechanism, seed: int, samples: int = 600) -> di.Motion:
    rng = np.random.default_rng(seed)
    t = 0.01 * np.arange(samples)
    w = 2.0 * np.pi * np.array([0.4, 0.9, 1.7])
    phase, size = rng.uniform(0, 6, (2, 3, robot.dof)), rng.uniform(0.3, 1.0, (2, 3, robot.dof))[0]
    x = t[:, None, None] * w[:, None] + phase[0]
    q = (size * np.sin(x)).sum(axis=1)
    v = (size * w[:, None] * np.cos(x)).sum(axis=1)
    a = (-size * w[:, None] ** 2 * np.sin(x)).sum(axis=1)
    return di.Motion(t, q, v, a)


def efforts(robot: di.Mechanism, motion: di.Motion, seed: int) -> np.ndarray:
    tau = di.inverse_dynamics(robot, motion, truth_of(robot))
    return tau + np.random.default_rng(seed).normal(scale=0.1, size=tau.shape)


def fitted(robot: di.Mechanism) -> di.Fit:
    motion = motion_of(robot, 1)
    return di.WLS().fit(di.Regression.from_motion(robot, motion, efforts(robot, motion, 1))).result_


def scored(fit: di.Fit, name: str = "held", training: bool = False, samples: int = 600) -> Score:
    motion = motion_of(fit.mechanism, 1 if training else 2, samples)
    measured = efforts(fit.mechanism, motion, 1 if training else 2)
    prediction = fit.predict(motion)
    joints = fit.mechanism.coordinate_names
    metrics = evaluate(measured, prediction.effort, joints, motion.t)
    coverage = float(np.mean(np.abs(measured - prediction.effort) <= 2.0 * prediction.std))
    finding = Finding("quantised", f"effort:{joints[0]}", "warning", f"steps of 0.1 in {joints[0]}", 0.1)
    source = {"name": name, "sha256": '["abc123"]', "start": 0.0, "end": 5.99, "samples": samples, "rate": 100.0}
    return Score(
        name=name,
        joints=joints,
        t=motion.t,
        measured=measured,
        predicted=prediction.effort,
        std=prediction.std,
        metrics=metrics,
        all_samples=metrics,
        coverage=coverage,
        training=training,
        quality=Quality(name, (finding,)),
        source=source,
        notes=(f"note about {name}",),
        described=di.inverse_dynamics(fit.mechanism, motion),
        position=motion.q,
    )


@pytest.fixture(scope="module")
def fit() -> di.Fit:
    return fitted(arm())


@pytest.fixture(scope="module")
def page_path(fit: di.Fit, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("report") / "report.html"
    truth = truth_of(fit.mechanism).to_dict()
    return write_report(path, fit, [scored(fit), scored(fit, "train", training=True)], truth=truth)


def test_page_is_complete_and_well_formed(page_path: Path) -> None:
    page = Page(page_path)
    anchors = [attrs["id"] for tag, attrs in page.tags if tag == "section"]
    assert anchors == [*SECTIONS[:5], "truth", *SECTIONS[5:]]
    assert page_path.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    links = [attrs["href"] for tag, attrs in page.tags if tag == "a"]
    assert links == [f"#{anchor}" for anchor in anchors]
    assert all(attrs.get("scope") for tag, attrs in page.tags if tag == "th")


def test_page_loads_nothing_and_runs_only_its_own_script(page_path: Path) -> None:
    page = Page(page_path)
    assert not {tag for tag, _ in page.tags} & {"link", "iframe", "object", "embed", "base", "img"}
    style = page_path.read_text(encoding="utf-8").split("<style>")[1].split("</style>")[0]
    assert "url(" not in style
    assert "@import" not in style
    for _, attrs in page.tags:
        assert not [key for key in attrs if key.startswith("on")]
        assert not re.match(r"\s*(https?:)?//", attrs.get("href") or attrs.get("src") or "")
    policy = next(attrs["content"] for _, attrs in page.tags if attrs.get("http-equiv") == "Content-Security-Policy") or ""
    assert "default-src 'none'" in policy
    data, script = (attrs for tag, attrs in page.tags if tag == "script")
    assert data == {"type": "application/json", "id": "data"}  # a block of data, which browsers do not run
    assert script == {}
    checksum = base64.b64encode(hashlib.sha256(page.scripts[1].encode()).digest()).decode()
    assert re.search(r"script-src ([^;]*)", policy)[1] == f"'sha256-{checksum}'"
    assert not re.search(r"\b(fetch|XMLHttpRequest|WebSocket|eval|innerHTML|import)\b", page.scripts[1])
    assert page_path.stat().st_size < 1_000_000


def test_curves_are_those_of_the_score(page_path: Path, fit: di.Fit) -> None:
    page, score = Page(page_path), scored(fit)
    log = page.data["logs"][0]
    places = [
        (attrs["data-plot"], attrs.get("data-log"), attrs.get("data-joint")) for _, attrs in page.tags if attrs.get("data-plot")
    ]
    for j in range(2):
        series = log["series"][j]
        np.testing.assert_allclose(unpacked(series["measured"]), score.measured[:, j], rtol=1e-6)
        np.testing.assert_allclose(unpacked(series["predicted"]), score.predicted[:, j], rtol=1e-6)
        np.testing.assert_allclose(unpacked(series["other"]), score.described[:, j], rtol=1e-6)
        np.testing.assert_allclose(unpacked(series["std"]), score.std[:, j], rtol=1e-6)
        assert {("effort", "0", str(j)), ("residual", "0", str(j))} <= set(places)
    assert {attrs.get("aria-controls") for tag, attrs in page.tags if tag == "button"} >= {"log0joint0", "log0joint1"}
    C = np.frombuffer(base64.b64decode(page.data["covariance"]["values"]), dtype="i1").reshape(fit.base.rank, -1)
    np.testing.assert_allclose(C / 100.0, fit.covariance / np.outer(fit.std, fit.std), atol=0.0051)


def test_the_head_says_before_and_after_logs_date_version_and_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    arm = di.examples.arm6()
    done = di.identify(arm.robot, arm.run, arm.other)
    path = done.report(tmp_path / "report.html", "dynident identify 'my robot.urdf' run.csv")
    page, score = Page(path), done.scores[0]
    seen = " ".join(page.words)
    assert f"{percent(score.description, 1)} \u2192 {percent(score.metrics.relative)}" in seen
    made = [f"fitted: {arm.run.name}", f"held out: {arm.other.name}", "2023-11-14 22:13 UTC", "'my robot.urdf' run.csv"]
    made.append(f"dynident {di.__version__}")
    assert [words for words in made if words not in seen] == []
    raw = unpacked(page.data["logs"][0]["series"][2]["raw"])
    assert raw.size > 3 * score.t.size and raw.max() == pytest.approx(float(arm.other.effort[:, 2].max()), rel=1e-6)


def test_the_drawn_robot_has_the_closed_form_of_its_pose(page_path: Path, fit: di.Fit) -> None:
    data, score = Page(page_path).data, scored(fit)
    motion = data["logs"][0]["motion"]
    points = unpacked(motion["points"]).reshape(len(unpacked(motion["t"])), len(data["scene"]["points"]), 3)
    q = score.position
    elbow = 0.3 * np.column_stack([np.cos(q[:, 0]), np.sin(q[:, 0])])
    tip = elbow + 0.2 * np.column_stack([np.cos(q.sum(axis=1)), np.sin(q.sum(axis=1))])
    found = points[:, :, :2]
    for wanted in (elbow, tip):
        assert np.abs(found - wanted[:, None]).max(axis=(0, 2)).min() < 1e-6  # some point of the drawing is there all the time
    heavy = {body: fit.standard[f"m_{body}"] for body in fit.mechanism.tree.bodies if fit.standard[f"m_{body}"] > 0.0}
    assert {mass["name"]: mass["mass"] for mass in data["scene"]["masses"]} == heavy


def test_a_long_log_is_thinned_but_keeps_its_peaks(fit: di.Fit, tmp_path: Path) -> None:
    score = scored(fit, samples=600)
    many = 200_000
    measured = np.random.default_rng(0).normal(size=(many, 2))
    measured[123_456, 1] = 77.0
    long = replace(
        score,
        t=0.001 * np.arange(many),
        measured=measured,
        predicted=np.zeros((many, 2)),
        std=np.ones((many, 2)),
        metrics=evaluate(measured, np.zeros((many, 2)), score.joints),
        described=None,
        position=None,
    )
    path = write_report(tmp_path / "r.html", fit, [long])
    assert path.stat().st_size < 8_000_000
    series = Page(path).data["logs"][0]["series"][1]
    y, t = unpacked(series["measured"]), unpacked(series["t"])
    assert y.max() == 77.0
    assert t[np.argmax(y)] == pytest.approx(123.456, abs=1e-4)


def test_every_failed_check_says_what_to_do_next(fit: di.Fit, tmp_path: Path) -> None:
    score = scored(fit)
    wrong = replace(score, metrics=evaluate(score.measured, 0.2 * score.predicted, score.joints, score.t), coverage=0.1)
    verdict = judge(fit, [wrong])
    failed = [check for check in verdict.checks if not check.ok]
    assert {"held_out_error", "coverage"} <= {check.name for check in failed}
    text = Page(write_report(tmp_path / "r.html", fit, [wrong], verdict)).text
    for check in verdict.checks:
        assert bool(check.next_step) is not check.ok
        assert check.next_step in text
        assert check.next_step in verdict.summary()


def test_the_map_is_deep_where_data_are_sharp(fit: di.Fit) -> None:
    known = relative_errors(fit)
    table = {row.name: row.relative for row in fit.observability()}
    assert known["fv_elbow"] == table["fv_elbow"]
    assert all(known[name] == np.inf for name in fit.base.unidentifiable)


@pytest.mark.skipif(shutil.which("chromium") is None, reason="needs Chromium")
def test_a_browser_runs_the_page_without_a_complaint(page_path: Path, tmp_path: Path) -> None:
    command = [
        "chromium",
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--window-size=1200,6000",
        "--virtual-time-budget=3000",
    ]
    command += [f"--user-data-dir={tmp_path}", "--enable-logging=stderr", "--dump-dom", page_path.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    assert "CONSOLE" not in done.stderr
    assert 'data-ready="yes"' in done.stdout
    write_atomic(tmp_path / "dom.html", done.stdout)
    drawn = Page(tmp_path / "dom.html").tags
    plots = [attrs for _, attrs in drawn if attrs.get("data-plot")]
    assert len([tag for tag, _ in drawn if tag == "canvas"]) == len(plots)
    assert any(attrs.get("class") == "sort" for tag, attrs in drawn if tag == "th")


def test_numbers_are_those_of_the_fit(page_path: Path, fit: di.Fit) -> None:
    text = Page(page_path).text
    score = scored(fit)
    for row in fit.observability():
        assert row.name in text
        assert number(row.value, 5) in text
        assert number(row.std, 3) in text
        assert row.expression.split(" = ", 1)[1] in text
    for value in score.metrics.rmse:
        assert number(float(value)) in text
    assert percent(score.metrics.relative) in text
    assert percent(fit.training_relative) in text
    assert number(fit.condition, 4) in text
    assert f"{fit.base.rank} of {fit.base.rank}" in text
    for check in judge(fit, [score]).checks:
        assert check.sentence in text
    for body in fit.consistency():
        assert body.sentence in text
    assert fit.estimator in text
    assert "abc123" in text
    assert np.__version__ in text


def test_training_is_labelled_and_validation_is_said(page_path: Path) -> None:
    text = Page(page_path).text
    assert "train: TRAINING DATA, not a validation" in text
    assert "held: held out" in text
    assert "NOT VALIDATED" not in text
    assert "steps of 0.1" in text
    assert "note about held" in text


def test_without_held_out_logs_the_page_says_so_first(fit: di.Fit, tmp_path: Path) -> None:
    for extra in ([], [scored(fit, "train", training=True)]):
        page = Page(write_report(tmp_path / "r.html", fit, extra))
        assert page.text.index("NOT VALIDATED") < page.text.index("Verdict")
        assert page.text.count("NOT VALIDATED") == 2
        anchors = [attrs["id"] for tag, attrs in page.tags if tag == "section"]
        assert anchors == [name for name in SECTIONS if extra or name != "robot"]


def test_a_training_score_among_the_scores_validates_nothing(fit: di.Fit, tmp_path: Path) -> None:
    page = Page(write_report(tmp_path / "r.html", fit, [scored(fit, "train", training=True)]))
    assert "NOT VALIDATED" in page.text
    assert "TRAINING DATA" in page.text


def test_hostile_names_stay_text(tmp_path: Path) -> None:
    fit = fitted(arm(HOSTILE, HOSTILE))
    path = write_report(tmp_path / "r.html", fit, [scored(fit, HOSTILE)], truth=truth_of(fit.mechanism))
    page = Page(path)
    assert [tag for tag, _ in page.tags].count("script") == 2
    assert path.read_text(encoding="utf-8").lower().count("<script") == 2
    assert f"{HOSTILE}: held out" in page.text
    assert page.data["logs"][0]["name"] == HOSTILE


def test_names_no_font_has_and_very_long_ones_are_drawn(tmp_path: Path) -> None:
    fit = fitted(arm("関節" + "x" * 300 + "\x07"))
    assert Page(write_report(tmp_path / "r.html", fit, [scored(fit)])).text


def test_parameters_that_were_dropped_or_not_excited_are_shown_as_such(fit: di.Fit, tmp_path: Path) -> None:
    active, solved = np.ones(fit.base.rank, dtype=bool), np.ones(fit.base.rank, dtype=bool)
    active[0] = solved[0] = solved[1] = False
    covariance = fit.covariance.copy()
    covariance[:2], covariance[:, :2] = 0.0, 0.0
    page = Page(write_report(tmp_path / "r.html", fit.altered(active=active, solved=solved, covariance=covariance)))
    assert "1 dropped" in page.text
    assert "1 not excited" in page.text
    assert f"Not excited by these data: {fit.base.names[1]}" in page.text


def test_a_fit_without_any_solved_parameter_is_reported(fit: di.Fit, tmp_path: Path) -> None:
    nothing = fit.altered(solved=np.zeros(fit.base.rank, dtype=bool), covariance=np.zeros_like(fit.covariance))
    page = Page(write_report(tmp_path / "r.html", nothing))
    assert f"{fit.base.rank} not excited" in page.text
    assert "these data determine no parameter by itself" in page.text


def test_verdict_is_written_for_machines(fit: di.Fit, tmp_path: Path) -> None:
    verdict = judge(fit, [scored(fit)])
    data = json.loads(verdict.save(tmp_path / "verdict.json").read_text())
    assert data["ok"] == verdict.ok
    assert [c["name"] for c in data["checks"]] == [c.name for c in verdict.checks]


def test_the_report_needs_no_matplotlib_and_figures_say_what_is_missing(
    fit: di.Fit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert write_report(tmp_path / "r.html", fit, [scored(fit)]).exists()
    with pytest.raises(MissingExtraError, match=r"dynident\[report\]"):
        plot_parameters(fit)


def test_figures_leave_pyplot_alone(fit: di.Fit) -> None:
    before = sys.modules.get("matplotlib.pyplot")
    score = scored(fit)
    assert len(score.plot().axes) == 2 * fit.mechanism.dof
    assert fit.plot().axes
    assert sys.modules.get("matplotlib.pyplot") is before


def test_many_joints_get_two_columns(fit: di.Fit) -> None:
    score = scored(fit)
    names = tuple(f"joint{i}" for i in range(20))
    many = [np.tile(x, (1, 10)) for x in (score.measured, score.predicted, score.std)]
    wide = replace(
        score, joints=names, measured=many[0], predicted=many[1], std=many[2], metrics=evaluate(many[0], many[1], names)
    )
    figure = wide.plot()
    assert len(figure.axes) == 40
    assert figure.get_size_inches()[1] < 25


def test_thinning_keeps_peaks() -> None:
    t = np.arange(100_000.0)
    y = np.zeros_like(t)
    y[54_321], y[77_777] = 5.0, -7.0
    thin_t, thin_y = extremes(t, y, 500)
    assert thin_t.size <= 1000
    assert np.all(np.diff(thin_t) >= 0.0)
    assert thin_y.max() == 5.0
    assert thin_y.min() == -7.0
    assert extremes(t, y, 500, pick=np.fmax)[1].max() == 5.0
    assert extremes(t[:50], y[:50], 500)[0].size == 50


def test_truth_is_regrouped_like_the_model(fit: di.Fit) -> None:
    truth = truth_of(fit.mechanism)
    np.testing.assert_allclose(true_base_values(fit, truth), fit.base.regrouping @ truth.values, rtol=1e-12)
    some = truth.to_dict()
    lost = fit.base.leaders[0]
    del some[lost]
    values = true_base_values(fit, some)
    assert np.isnan(values[0])
    assert np.isfinite(values[1:]).all()
    with pytest.raises(DynidentError, match="mass_of_the_moon"):
        true_base_values(fit, {"mass_of_the_moon": 7e22})


def test_standard_parameters_are_sorted_by_what_efforts_show(fit: di.Fit) -> None:
    states = standard_states(fit)
    # Planar arm: out-of-plane inertias never matter, friction is seen alone, the last mass only through the first link.
    last = fit.mechanism.tree.bodies[-1]
    assert states[f"Ixy_{last}"] == "never"
    assert states["fv_elbow"] == "alone"
    assert states[f"m_{last}"] == "combined"
    assert set(fit.base.unidentifiable) == {name for name, state in states.items() if state == "never"}


def test_singular_values_reproduce_the_condition_number(fit: di.Fit) -> None:
    found = weak_directions(fit)
    assert found is not None
    assert found[0][0] / found[0][-1] == pytest.approx(fit.condition, rel=1e-6)
    assert weak_directions(fit.altered(condition=2.0 * fit.condition)) is None


def test_autocorrelation_of_a_known_process() -> None:
    rng = np.random.default_rng(0)
    white = rng.normal(size=20_000)
    slow = np.empty_like(white)
    slow[0] = white[0]
    for k in range(1, white.size):
        slow[k] = 0.8 * slow[k - 1] + white[k]
    x = white[:40] - white[:40].mean()
    direct = np.array([x[: 40 - k] @ x[k:] for k in range(40)]) / (x @ x)
    np.testing.assert_allclose(autocorrelation(white[:40], 100), direct, atol=1e-12)
    np.testing.assert_allclose(autocorrelation(slow, 3), 0.8 ** np.arange(4), atol=0.03)
    assert effective_samples(slow) / slow.size == pytest.approx(0.2 / 1.8, rel=0.2)  # (1 - a) / (1 + a)
    assert effective_samples(white) / white.size > 0.9
    assert np.all(autocorrelation(np.ones(10), 3) == 0.0)


def test_masses_say_what_efforts_show_of_them(fit: di.Fit) -> None:
    """A mass on which no effort depends is not one that is seen in sums."""
    name = fit.consistency()[0].name
    unseen = replace(fit, data=replace(fit.data, base=replace(fit.base, unidentifiable=(f"m_{name}",))))
    assert ">no<" in str(bodies(unseen))
    assert ">no<" not in str(bodies(fit))
    assert "&gt; 999 %" in str(parameters(fit.altered(covariance=1e8 * fit.covariance)))
