"""A fleet from its logs to its answers: every good log counted once, in an order that nobody decides but the logs."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from urllib.parse import unquote

import numpy as np
import pytest
from fleet_cases import CUTOFF, Case, fleet, log_of

import dynident as di
from dynident.errors import DynidentError
from dynident.identify import Population
from dynident_lab.fleet import FleetResult, LogEntry, identify, read_fleet, write_fleet_report

FAULT = ("fc_joint_3", 1.3)


@pytest.fixture(scope="module")
def case(tmp_path_factory) -> Case:
    return fleet(tmp_path_factory.mktemp("logs"), 8, faults={"S05": FAULT})


@pytest.fixture(scope="module")
def done(case, tmp_path_factory) -> FleetResult:
    return run(case.robot, case.rows, tmp_path_factory.mktemp("fleet") / "out")


def run(robot, rows, output=None, workers: int = 1, **options) -> FleetResult:
    with ThreadPoolExecutor(workers) as pool:
        return identify(robot, rows, output, client=pool, **{"cutoff": CUTOFF, **options})


def same(one: FleetResult, other: FleetResult) -> bool:
    """Whether two results are equal to the last bit."""
    return [r.serial for r in one.robots] == [r.serial for r in other.robots] and all(
        a.rows == b.rows and a.information.tobytes() == b.information.tobytes() and a.values.tobytes() == b.values.tobytes()
        for a, b in zip(one.robots, other.robots, strict=True)
    )


def test_every_robot_is_fitted_within_its_uncertainty(case, done):
    assert len(done.robots) == 8
    assert all(record.counted for record in done.logs)
    misses = []
    for robot in done.robots:
        base = done.fit(robot.serial).base
        misses += list(np.abs(robot.values - base.values(case.truth[robot.serial])) / robot.std)
        assert robot.held_out < 0.05
    assert np.mean(np.array(misses) < 3.0) > 0.97


def test_the_fault_is_found_in_the_right_parameter_and_nothing_else(case, done):
    (deviation,) = done.type(case.robot.name).deviations
    assert (deviation.serial, deviation.parameter) == ("S05", FAULT[0])
    assert deviation.relative == pytest.approx(0.3, abs=0.06)
    assert "S05: fc_joint_3" in done.summary()


def test_results_do_not_depend_on_workers_or_order(case, done):
    few = {"S00", "S03", "S05"}
    rows = [row for row in case.rows if row["serial"] in few]
    first = run(case.robot, rows, workers=3)
    again = run(case.robot, rows[::-1])
    assert same(first, again)


def test_evidence_of_a_robot_and_of_a_period_is_the_sum_of_its_logs(case, done):
    base = di.base_parameters(case.robot)
    paths = [row["log"] for row in case.rows if row["serial"] == "S02"]
    own = [di.Regression.from_log(case.robot, di.Log.read(path), base, cutoff=CUTOFF) for path in paths]
    merged = done.regression(case.robot, "S02")
    for group, a, b in zip(merged.groups, own[0].groups, own[1].groups, strict=True):
        expected = a.R.T @ a.R + b.R.T @ b.R
        np.testing.assert_allclose(group.R.T @ group.R, expected, atol=1e-11 * np.abs(expected).max())
    january = done.regression(case.robot, period="2026-01")
    assert january.rows == sum(record.rows for record in done.logs if record.date.startswith("2026-01"))
    assert len(january.sources) == 8


def test_a_later_run_reads_new_logs_only_and_gives_what_one_run_gives(case, tmp_path):
    rows = [row for row in case.rows if row["serial"] in ("S00", "S01")]
    run(case.robot, rows[:3], tmp_path / "out")
    later = run(case.robot, rows, tmp_path / "out")
    assert (later.counters["logs_read"], later.counters["logs_reused"]) == (1, 3)
    assert same(later, run(case.robot, rows))
    third = run(case.robot, rows, tmp_path / "out")
    assert (third.counters["logs_read"], third.counters["bytes_down"]) == (0, 0)
    assert same(later, third)


def test_a_log_that_changed_is_read_again(case, tmp_path):
    path = tmp_path / "run.npz"
    shutil.copy(case.rows[0]["log"], path)
    rows = [{"serial": "A", "log": str(path)}]
    before = run(case.robot, rows, tmp_path / "out")
    shutil.copy(case.rows[1]["log"], path)
    after = run(case.robot, rows, tmp_path / "out")
    assert after.counters["logs_read"] == 1
    assert not same(before, after)


def test_cancelling_leaves_a_readable_state_that_the_next_run_goes_on_from(case, tmp_path):
    rows = [row for row in case.rows if row["serial"] in ("S00", "S01")]

    def stop(what: str, done: int, of: int) -> None:
        if what == "logs" and done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(case.robot, rows, tmp_path / "out", progress=stop)
    state = json.loads((tmp_path / "out" / "state.json").read_text())
    assert (state["state"], state["logs"]) == ("stopped", 4)
    assert 2 <= state["logs_done"] < 4
    later = run(case.robot, rows, tmp_path / "out")
    assert later.counters["logs_reused"] == state["logs_done"]
    assert json.loads((tmp_path / "out" / "state.json").read_text())["state"] == "done"


def test_bad_logs_are_named_and_good_ones_counted_once(case, tmp_path):
    rows = [dict(row) for row in case.rows if row["serial"] in ("S00", "S01", "S02", "S03", "S04")]
    good = run(case.robot, rows)
    (tmp_path / "cut.npz").write_bytes(Path(rows[0]["log"]).read_bytes()[:400])
    shutil.copy(rows[3]["log"], tmp_path / "copy.npz")
    own = di.Log.read(rows[0]["log"])
    replace(own, effort=-own.effort, provenance={}).save(tmp_path / "foreign.npz")
    replace(own, joints=("x", "y", "z"), provenance={}).save(tmp_path / "other.npz")
    extra = {"cut": "damaged or not .npz", "copy": "counted once", "foreign": "does not match robot 'S04'"}
    extra |= {"other": "x", "gone": "No such file"}
    for name in extra:
        rows.append({"serial": "S04", "date": "2026-05-01", "log": str(tmp_path / f"{name}.npz")})
    found = run(case.robot, rows, tmp_path / "out")
    assert same(found, good)
    again = run(case.robot, rows, tmp_path / "out")  # what is wrong with a log is remembered; one that is gone may come back
    assert again.counters["logs_read"] == 0
    assert again.refused == found.refused
    told = {Path(record.path).stem: record.sentence for record in found.refused}
    assert set(told) == set(extra)
    for name, words in extra.items():
        assert words in told[name]
    assert sum(record.counted for record in found.logs) == 10


def test_a_folder_that_was_meddled_with_is_not_believed(case, tmp_path):
    rows = case.rows[:4]
    run(case.robot, rows, tmp_path)
    lines = [json.loads(line) for line in (tmp_path / "index.jsonl").read_text().splitlines()]
    lines[0]["key"] = "../../../etc/passwd"
    lines[1]["rows"] = "many"
    (tmp_path / "index.jsonl").write_text("\n".join(json.dumps(line) for line in lines))
    again = run(case.robot, rows, tmp_path)
    assert (again.counters["logs_read"], again.counters["logs_reused"]) == (2, 2)
    for wrong in ({"band": 3}, {"a": {"cutoff": "x", "band": 1.0}}, {"a": {"models": [[1.0], []], "usual": 0.1}}, []):
        (tmp_path / "types.json").write_text(json.dumps(wrong))
        with pytest.raises(DynidentError, match=r"types.json' is not a table of bands and models; remove it"):
            run(case.robot, case.rows, tmp_path)


def test_logs_for_validation_judge_the_fit_and_are_not_fitted(case):
    rows = [dict(row) for row in case.rows if row["serial"] == "S06"]
    rows[1]["use"] = "validate"
    (robot,) = run(case.robot, rows).robots
    base = di.base_parameters(case.robot)
    fitted, other = (di.Regression.from_log(case.robot, di.Log.read(r["log"]), base, cutoff=CUTOFF) for r in rows)
    assert robot.rows == fitted.rows
    error = sum(group.residual(robot.values) for group in other.groups) / sum(group.effort_square for group in other.groups)
    assert robot.held_out == pytest.approx(np.sqrt(error), rel=1e-9)


def test_what_the_fleet_knows_is_a_better_belief_than_the_description(case, done, tmp_path):
    # The description is wrong by 30 %, as those of real robots; the new robot was recorded for 1.5 s only.
    rng = np.random.default_rng(3)
    wrong = case.robot.parameters.values * (1.0 + 0.3 * rng.normal(size=len(case.robot.parameters)))
    robot = case.robot.with_parameters(case.robot.parameters.replace(wrong))
    population = done.type(case.robot.name).population
    population.save(tmp_path / "population.json")
    shared = di.Knowledge(population=Population.load(tmp_path / "population.json"))
    phi = case.robot.parameters.values * (1.0 + 0.01 * rng.normal(size=wrong.size))
    evidence = di.Regression.from_log(robot, log_of(case.robot, phi, 3.0, 991), cutoff=CUTOFF)
    held_out = di.Regression.from_log(robot, log_of(case.robot, phi, 15.0, 992), evidence.base, cutoff=CUTOFF)

    def error(estimator) -> float:
        beta = estimator.fit(evidence).coef_
        wrong = sum(group.residual(beta) for group in held_out.groups)
        return float(np.sqrt(wrong / sum(group.effort_square for group in held_out.groups)))

    assert error(di.MAP(known=shared)) < 0.5 * error(di.MAP())
    with pytest.raises(DynidentError, match="does not match robot"):
        di.MAP(known=shared).fit(
            di.Regression.from_log(robot.with_terms(["fv"]), log_of(case.robot, phi, 3.0, 1), cutoff=CUTOFF)
        )


def test_the_file_of_a_fleet_is_light_and_tells_the_same(done):
    light = di.load(Path(done.folder) / "fleet.json")
    assert light.summary() == done.summary()
    assert light.robots[0].information.size == 0
    whole = di.load(Path(done.folder) / "robots" / "S00.json")
    assert whole.information.tobytes() == done.robots[0].information.tobytes()


def test_the_result_is_read_back(done, tmp_path):
    again = di.load(done.save(tmp_path / "fleet.json"))
    assert same(done, again)
    assert again.summary() == done.summary()
    assert again.to_table() == done.to_table()


def test_the_report_names_every_robot_and_runs_only_its_own_script(case, done, tmp_path):
    strange = replace(done.robots[0], serial="<b>../x", verdict=replace(done.robots[0].verdict, robot="x"))
    page = write_fleet_report(tmp_path, replace(done, robots=(strange, *done.robots[1:])))
    text = page.read_text()
    for link in re.findall(r'href="(robots/[^"]+)"', text):
        assert (tmp_path / unquote(link)).is_file()  # as a browser reads it
    assert "<b>../x" not in text
    assert "&lt;b&gt;../x" in text
    (script,) = re.findall(r"<script>(.*)</script>", text, re.S)
    named = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src &#x27;sha256-{named}&#x27;" in text
    assert "http" not in re.sub(r"http-equiv", "", text)
    assert text.count("<tr>") > 8
    assert "fc_joint_3" in text


TOML = """
[robots.arm]
description = "arm.urdf"
terms = ["ia", "fv", "fc", "off"]
[fleet]
logs = {logs}
[prepare]
cutoff = 5.0
"""


def test_a_fleet_file_with_a_table_and_with_a_pattern_name_the_same_logs(tmp_path):
    (tmp_path / "arm.urdf").write_text(di.examples.arm6().source.read_text())
    for serial in ("A", "B"):
        (tmp_path / serial).mkdir()
        (tmp_path / serial / "2026-01-02_run.csv").touch()
    lines = [f"arm,{s},2026-01-02,{s}/2026-01-02_run.csv,21.5" for s in "AB"]
    (tmp_path / "logs.csv").write_text("\n".join(["robot,serial,date,log,temperature", *lines]))
    (tmp_path / "table.toml").write_text(TOML.format(logs='"logs.csv"'))
    (tmp_path / "pattern.toml").write_text(TOML.format(logs='["{serial}/{date}_*.csv"]'))
    table, pattern = read_fleet(tmp_path / "table.toml"), read_fleet(tmp_path / "pattern.toml")
    assert [(e.robot, e.serial, e.date) for e in table.entries] == [(e.robot, e.serial, e.date) for e in pattern.entries]
    assert [Path(e.log).resolve() for e in table.entries] == [Path(e.log).resolve() for e in pattern.entries]
    assert table.entries[0].temperature == 21.5
    assert table.options == {"cutoff": 5.0}
    assert table.robots["arm"].dof == 6


def entry(serial="A", robot="arm", log="x.csv") -> LogEntry:
    return LogEntry(robot, serial, "", log)


@pytest.mark.parametrize(
    ("logs", "words"),
    [
        ("nowhere/{serial}/*.csv", "no file matches the pattern"),
        ("nowhere/*.parquet", "has no serial"),
        ([], "the fleet has no log"),
        ([entry(), entry(robot="leg", log="y.csv")], "use one robot type per serial"),
        ([entry(), entry()], "listed twice"),
        ([entry(serial="A1"), entry(serial="a1", log="y.csv")], "the serials 'A1' and 'a1' differ only in capital letters"),
        ([entry(serial="é1"), entry(serial="\u0e91", log="y.csv")], "differ only in capital letters"),
        ([entry(), entry(serial="B")], "of 'A' and of 'B'"),
        ([entry(robot="wheel")], "which is not in the fleet"),
        ([{"serial": "A", "log": "x.csv", "robot": "arm", "date": "May"}], "write it as YYYY-MM-DD"),
        ([{"serial": "A", "log": "x.csv", "robot": "arm", "load": "heavy"}], "load is 'heavy'"),
        ("missing.csv", "cannot read the table of logs"),
    ],
)
def test_bad_lists_of_logs_get_one_sentence(case, logs, words):
    with ThreadPoolExecutor(1) as pool, pytest.raises(DynidentError, match=words) as told:
        identify({"arm": case.robot, "leg": case.robot}, logs, client=pool)
    assert "\n" not in str(told.value)


def test_a_table_of_logs_with_many_columns_gets_a_short_sentence(case, tmp_path):
    table = tmp_path / "logs.csv"
    table.write_text("robot,serial,date,log,t" * 400 + "\n", encoding="utf-8")
    with ThreadPoolExecutor(1) as pool, pytest.raises(DynidentError, match="has the columns robot, serial") as told:
        identify({"arm": case.robot}, str(table), client=pool)
    assert len(str(told.value)) < 1000
