"""Generated inverse kinematics of the RRR robot, and operations per point not above the paper's."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from dynident.mechanics import inverse_kinematics_numeric
from dynident.symbolic import to_c, to_latex, to_numpy
from dynident_papers.robots import rrr

G = rrr.EXAMPLE


def _points(samples: int = 300) -> np.ndarray:
    return rrr.forward_kinematics(np.random.default_rng(3).uniform(-3.0, 3.0, (samples, 3)), G)


def test_operations_are_not_above_the_papers() -> None:
    kinematics, dynamics = rrr.operation_counts()
    assert kinematics.closed <= kinematics.paper_closed == 102
    assert dynamics.closed <= dynamics.paper_closed == 393
    assert kinematics.closed == rrr.inverse_kinematics_program(branches=(0,)).operations().total
    assert rrr.inverse_kinematics_program().operations().total <= 102  # even all four postures together
    assert all(cost.closed < cost.numeric for cost in (kinematics, dynamics))
    assert (kinematics.paper_numeric, dynamics.paper_numeric) == (2783, 1050)


def test_the_steps_of_the_numeric_method_are_those_that_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    module = sys.modules["dynident.mechanics.inverse_kinematics_damped"]
    steps, own = 0, module.jacobian

    def jacobian(robot, q, *rest):
        nonlocal steps
        steps += len(q)
        return own(robot, q, *rest)

    monkeypatch.setattr(module, "jacobian", jacobian)
    inverse_kinematics_numeric(rrr.mechanism(), None, _points())
    assert steps / 300 >= rrr.NUMERIC_STEPS  # the table states a lower bound
    assert steps / 300 < 1.5 * rrr.NUMERIC_STEPS


def test_generated_code_equals_the_library(tmp_path: Path) -> None:
    program, x = rrr.inverse_kinematics_program(), _points()
    expected = rrr.inverse_kinematics(x, G)
    space: dict[str, object] = {}
    exec(to_numpy(program), space)
    for found in (program.evaluate("inverse_kinematics", x=x), space["inverse_kinematics"](x)):
        assert np.abs(rrr.forward_kinematics(found.reshape(-1, 3), G).reshape(-1, 4, 3) - x[:, None]).max() < 1e-12
        assert np.abs(found - expected).max() < 1e-12
    with np.errstate(invalid="ignore"):
        assert np.isnan(program.evaluate("inverse_kinematics", x=[[2.0, 0.0, 0.5]])[0, :, 1:]).all()
    assert r"\operatorname{atan2}" in to_latex(program)
    if shutil.which("gcc") is None:
        pytest.skip("gcc is not installed, so the generated C is not compiled")
    sources = to_c(program, "rrr_ik")
    for file, text in sources.files.items():
        (tmp_path / file).write_text(text)
    flags = ["-std=c99", "-Wall", "-Wextra", "-pedantic", "-Werror"]
    command = ["gcc", *flags, "rrr_ik.c", "rrr_ik_test.c", "-o", "check", "-lm"]
    subprocess.run(command, cwd=tmp_path, check=True)
    assert subprocess.run([str(tmp_path / "check")], check=False, capture_output=True).returncode == 0
    # A harness that is given wrong numbers, or no numbers, must say so.
    for wrong in ("q[0] = t7 + 1.0e-6;", "q[0] = sqrt(-1.0 - x[0] * x[0]);"):
        (tmp_path / "rrr_ik.c").write_text(sources.source.replace("q[0] = t7;", wrong))
        assert wrong in (tmp_path / "rrr_ik.c").read_text()
        subprocess.run(command, cwd=tmp_path, check=True)
        assert subprocess.run([str(tmp_path / "check")], check=False, capture_output=True).returncode == 1
