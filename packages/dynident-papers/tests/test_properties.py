"""`check`: properties hold for possible robots and are refuted for others; bounds are those of the closed forms."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from small_robots import ARM3, arm3_machine, five_bar, impossible_arm, platform

import dynident as di
from dynident.friction import Friction, Tanh, Viscous
from dynident_papers.properties import RobotCheck, check, friction_bound
from dynident_papers.robots import rrr


def test_every_property_of_a_possible_robot_holds() -> None:
    found = check(arm3_machine().model, samples=60)
    assert isinstance(found, RobotCheck) and found.ok
    names = ["symmetry", "definiteness", "skew-symmetry", "exchange", "power", "Jacobians", "forward dynamics"]
    assert [c.name for c in found.checks] == names
    assert all(c.value < 1e-8 for c in found.checks if c.name != "definiteness")
    assert found.bounds["M_m"] == found.smallest.min() > 0.0
    assert "all properties hold at 60 poses" in found.summary()


def test_a_robot_with_loops_too() -> None:
    assert check(platform(), samples=40).ok


def test_poses_that_loops_cannot_reach_are_left_alone() -> None:
    found = check(five_bar("platform", (0.0, 1.17)), samples=200)
    assert found.ok and "because of the loops" in found.notes[0]
    with pytest.raises(di.DynidentError, match="cannot follow the motion"):
        check(five_bar("platform", (0.0, 1.17)), within=([-2.0, -2.0], [2.0, 2.0]), samples=10)


def test_an_impossible_robot_is_refuted_with_the_numbers_of_its_closed_form() -> None:
    q = np.column_stack([np.zeros(41), np.linspace(0.0, np.pi, 41)])
    found = check(impossible_arm(), q)
    coupling, J = 0.25 * np.cos(q[:, 1]), 0.05
    half, product = 0.5 * (0.5 + 2.0 * coupling + J), 0.0225 - coupling**2  # of the trace, and the determinant
    root = np.sqrt(half**2 - product)
    np.testing.assert_allclose(found.smallest, half - root, atol=1e-14)
    assert found.bounds["M_M"] == pytest.approx((half + root).max(), rel=1e-12)
    assert [c.name for c in found.checks if not c.ok] == ["definiteness"] and not found.ok
    assert "NOT positive definite at" in found.summary()


def test_a_robot_of_quasi_velocities_says_what_is_left_out() -> None:
    body = di.Body("body", [2.0, 0.1, 0.0, 0.2, 0.3, 0.0, 0.0, 0.3, 0.0, 0.2])
    joint = di.Joint("ball", "spherical", "base", "body")
    found = check(di.Mechanism("top", (di.Body("base"), body), (joint,)), samples=10)
    assert found.ok and "quasi-velocities" in found.notes[0]


def test_written_and_read_back(tmp_path) -> None:
    found = check(arm3_machine().model, samples=5)
    again = di.load(found.save(tmp_path / "check.json"))
    assert again.checks == found.checks and again.ok
    np.testing.assert_array_equal(again.q, found.q)


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: check(di.Mechanism.from_dh([(0.3, 0.0, 0.0, 0.0)])), "has no masses"),
        (
            lambda: check(di.Mechanism.from_regressor(["own"], lambda q, v, a: a[:, :, None], ["x"])),
            "is a regressor without bodies",
        ),
        (lambda: check(arm3_machine().model, np.zeros((2, 4))), r"q has shape \(2, 4\)"),
        (lambda: check(arm3_machine().model, samples=0), "samples is 0"),
        (lambda: check(arm3_machine().model, within=([0.0], [1.0])), "give lower and upper for 3"),
    ],
)
def test_bad_input(call, told: str) -> None:
    with pytest.raises(di.DynidentError, match=told):
        call()


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture) -> None:
    from dynident.__main__ import main

    def run(*args: str) -> int:
        monkeypatch.setattr("sys.argv", ["dynident", "check", *args])
        with pytest.raises(SystemExit) as end:
            main()
        return int(end.value.code or 0)

    assert run(str(ARM3), "--samples", "20", "--strict") == 0
    assert "arm3: all properties hold" in capsys.readouterr().out
    impossible = tmp_path / "impossible.urdf"
    impossible.write_text(ARM3.read_text().replace('izz="0.05"', 'izz="-5"'))
    assert run(str(impossible), "--terms", "", "--samples", "20") == 0
    assert run(str(impossible), "--terms", "", "--samples", "20", "--strict") == 3
    assert "M is NOT positive definite" in capsys.readouterr().out


def test_the_bound_of_the_coriolis_matrix_is_its_maximum_over_all_velocities():
    """For two joints the direction of v is an angle, so that the maximum can be found by trying all of them."""
    robot = di.Mechanism.from_dh([(0.4, 0.2, 0, 0.3), (0.3, 0.1, 0, 0)], gravity=(0, -9.81, 0))
    rng = np.random.default_rng(3)
    robot = robot.with_parameters(robot.parameters.replace(rng.normal(size=len(robot.parameters)) + 2.0))
    found = check(robot, samples=20)
    tried = np.linspace(0.0, np.pi, 2001)
    largest = 0.0
    for angle in tried:
        v = np.broadcast_to([np.cos(angle), np.sin(angle)], found.q.shape)
        largest = max(largest, np.linalg.norm(di.coriolis_matrix(robot, found.q, v), 2, axis=(1, 2)).max())
    assert found.bounds["C_M"] == pytest.approx(largest, rel=1e-5)


def test_no_velocity_exceeds_the_bound_of_the_coriolis_matrix():
    robot = di.examples.arm6().robot
    found, rng = check(robot, samples=10), np.random.default_rng(0)
    for _ in range(300):
        v = rng.normal(size=found.q.shape)
        norms = np.linalg.norm(di.coriolis_matrix(robot, found.q, v), 2, axis=(1, 2)) / np.linalg.norm(v, axis=1)
        assert norms.max() <= found.bounds["C_M"] * (1.0 + 1e-9)


def test_friction_is_bounded_by_b_v_and_b_f() -> None:
    robot = replace(rrr.mechanism(), friction={"shoulder": Friction(Viscous() + Tanh(), np.array([0.3, 2.0, 15.0]))})
    bound = friction_bound(robot)
    v = np.random.default_rng(0).normal(size=1000) * np.geomspace(1e-2, 1e3, 1000)
    assert bound["b_v"] == pytest.approx(0.3) and bound["b_f"] == pytest.approx(2.0)
    assert np.all(np.abs(0.3 * v + 2.0 * np.tanh(15.0 * v)) <= bound["b_v"] * np.abs(v) + bound["b_f"] + 1e-9)
    assert friction_bound(rrr.mechanism()) == {}
