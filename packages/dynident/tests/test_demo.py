"""The bundled demo: its table, its report, its accuracy, and that its data can be made again."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import dynident as di
import dynident.cli

DEMO = Path(__file__).resolve().parents[3] / "examples" / "demo"
for package, extra in (("rich", "cli"), ("matplotlib", "report")):
    pytest.importorskip(package, reason=f"the demo needs an extra: pip install 'dynident[{extra}]'")


def run(script: Path, *args: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(Path(di.__file__).parents[1]), "MPLBACKEND": "Agg", "COLUMNS": "120"}
    command = [sys.executable, str(script), *args]
    done = subprocess.run(command, env=environment, cwd=script.parent, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    folder = tmp_path_factory.mktemp("demo")
    return folder, run(DEMO / "demo.py", str(folder / "out"))


def test_it_leaves_the_results(result: tuple[Path, str]) -> None:
    folder, _ = result
    assert {path.name for path in (folder / "out").iterdir()} == {"fit.json", "identified.urdf", "report.html", "verdict.json"}
    page = (folder / "out" / "report.html").read_text(encoding="utf-8")
    assert len(page) > 100_000
    assert "Truth" in page


def test_it_prints_fifteen_lines_and_with_table_all_parameters_beside_the_true_ones(
    result: tuple[Path, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, text = result
    assert "The truth is known" in text and "Open the report: file://" in text and len(text.splitlines()) <= 15
    assert dynident.cli.run(["demo", "--table", "-o", str(tmp_path / "out")]) == 0
    table, fit = capsys.readouterr().out, json.loads((folder / "out" / "fit.json").read_text())
    assert all(word in table for word in ("true", "CAD", "identified", "std", *(row["name"] for row in fit["base_parameters"])))


def test_the_truth_is_found_within_its_uncertainty(result: tuple[Path, str]) -> None:
    """58 normal deviates stay within 4.5 standard deviations but once in 2500 demos; their spread is about one."""
    folder, _ = result
    robot = di.Mechanism.from_urdf(DEMO / "robot.urdf")
    fit = di.Fit.load(folder / "out" / "fit.json", robot)
    truth = json.loads((DEMO / "truth.json").read_text())
    true = fit.base.values([truth[name] for name in robot.parameters.names])
    deviation = (fit.values - true) / fit.std
    assert np.max(np.abs(deviation)) < 4.5
    assert 0.5 < np.std(deviation) < 2.0
    cad = fit.base.values(robot.parameters.values)
    assert np.linalg.norm(fit.values - true) < 0.1 * np.linalg.norm(cad - true)


def test_the_held_out_error_is_small(result: tuple[Path, str]) -> None:
    folder, _ = result
    verdict = json.loads((folder / "out" / "verdict.json").read_text())
    assert verdict["ok"]
    (score,) = verdict["scores"]
    assert not score["training"]
    assert score["relative"] < 0.03


def test_the_identified_robot_is_possible_and_predicts(result: tuple[Path, str]) -> None:
    folder, _ = result
    robot = di.Mechanism.from_urdf(folder / "out" / "identified.urdf")
    assert all(verdict.ok for verdict in robot.check_consistency())
    fit = di.Fit.load(folder / "out" / "fit.json", di.Mechanism.from_urdf(DEMO / "robot.urdf"))
    score = fit.exported().score(di.Log.read(DEMO / "validate.csv.gz"))
    assert score.metrics.relative < 0.03


def test_the_data_can_be_made_again(tmp_path: Path) -> None:
    """Same seed, same numbers; the last digit of a torque may round otherwise on another processor."""
    shutil.copy(DEMO / "generate.py", tmp_path)
    run(tmp_path / "generate.py")
    assert (tmp_path / "robot.urdf").read_text() == (DEMO / "robot.urdf").read_text()
    made, bundled = (json.loads((folder / "truth.json").read_text()) for folder in (tmp_path, DEMO))
    assert list(made) == list(bundled)
    np.testing.assert_allclose(list(made.values()), list(bundled.values()), rtol=1e-12, atol=1e-15)
    for name in ("train", "validate"):
        a, b = (di.Log.read(folder / f"{name}.csv.gz") for folder in (tmp_path, DEMO))
        assert a.joints == b.joints
        np.testing.assert_array_equal(a.t, b.t)
        np.testing.assert_allclose(a.position, b.position, rtol=0, atol=2 * np.pi / 2**19 + 1e-9)
        assert np.mean(a.position == b.position) > 0.999
        np.testing.assert_allclose(a.effort, b.effort, rtol=0, atol=0.0011)
        first = gzip.decompress((tmp_path / f"{name}.csv.gz").read_bytes()).split(b"\n", 1)[0]
        assert first == gzip.decompress((DEMO / f"{name}.csv.gz").read_bytes()).split(b"\n", 1)[0]
