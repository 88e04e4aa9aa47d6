"""Bad input on the command line: one clear sentence, the right exit code, nothing written, never a traceback."""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

import bad_input_corpus as corpus
import pytest
from bad_input_corpus import BAD_INPUT, Case
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import dynident as di
from dynident.__main__ import main

pytest.importorskip("typer", reason="the command line is an extra: pip install 'dynident[cli]'")
SETTINGS = settings(max_examples=40, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))


def good_files() -> dict[str, str]:
    """Return a good robot (URDF and MJCF), two logs, a schema, a sidecar and a fit."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        robot = _robot()
        run, other = corpus.table(robot, 1), corpus.table(robot, 2)
    return {
        "robot.urdf": corpus.URDF,
        "arm.xml": corpus.MJCF,
        "run.csv": run,
        "other.csv": other,
        "schema.toml": corpus.SCHEMA,
        "sidecar.toml": corpus.SIDECAR,
    }


def _robot() -> di.Mechanism:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "robot.urdf"
        path.write_text(corpus.URDF, encoding="utf-8")
        return di.Mechanism.from_urdf(path)


def _fit(files: dict[str, str], folder: Path) -> str:
    for name in ("robot.urdf", "run.csv"):
        (folder / name).write_text(files[name], encoding="utf-8")
    robot = di.Mechanism.from_urdf(folder / "robot.urdf")
    return di.WLS().fit(di.Regression.from_log(robot, di.Log.read(folder / "run.csv", effort="joint_torque"))).result_.to_json()
