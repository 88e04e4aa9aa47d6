"""`check`: properties hold for possible robots and are refuted for others; bounds are those of the closed forms."""

from __future__ import annotations

import numpy as np
import pytest

import dynident as di
from dynident.validate import RobotCheck
from dynident_papers.robots import cft, dualv, prs3, rrr


def test_every_property_of_a_possible_robot_holds() -> None:
    found = di.check(rrr.machine().model, samples=60)
    assert isinstance(found, RobotCheck) and found.ok
    names = ["symmetry", "definiteness", "skew-symmetry", "exchange", "power", "Jacobians", "forward dynamics"]
    assert [c.name for c in found.checks] == names
    assert all(c.value < 1e-8 for c in found.checks if c.name != "definiteness")
    assert found.bounds["M_m"] == found.smallest.min() > 0.0
    assert "all properties hold at 60 poses" in found.summary()


def test_a_robot_with_loops_too() -> None:
    assert di.check(dualv.mechanism(), samples=40).ok


def test_poses_that_loops_cannot_reach_are_left_alone() -> None:
    found = di.check(prs3.mechanism(), samples=200)
    assert found.ok and "loops do not close farther away" in found.notes[0]
    with pytest.raises(di.DynidentError, match="cannot follow the motion"):
        di.check(prs3.mechanism(), within=([0.0, -0.5, -0.5], [0.3, 0.5, 0.5]), samples=10)


def test_bounds_of_the_published_transposer() -> None:
    """On the workspace of Table 5 M is indefinite at a third of the points; norms of M, C and g of the closed forms."""
    grid = cft.definiteness(grid=(13, 13, 7))
    q = cft.joint_from_cartesian(grid.xc)
    found = di.check(cft.mechanism(), q)
    definite = next(c for c in found.checks if c.name == "definiteness")
    assert not found.ok and not definite.ok
    assert definite.value == pytest.approx(grid.worst[1], rel=1e-9)
    assert [c.name for c in found.checks if not c.ok] == ["definiteness"]
    M, g = cft.mass_matrix(q), cft.gravity(q)
    assert found.bounds["M_M"] == pytest.approx(np.linalg.norm(M, 2, axis=(1, 2)).max(), rel=1e-9)
    assert found.bounds["g_b"] == pytest.approx(np.linalg.norm(g, axis=1).max(), rel=1e-9)
    assert found.bounds["M_M"] == pytest.approx(126.64, abs=0.05)
    assert found.bounds["g_b"] == pytest.approx(57.42, abs=0.01)
    np.testing.assert_allclose(found.smallest, np.linalg.eigvalsh(M)[:, 0], atol=1e-11)
    assert "NOT positive definite at" in found.summary()


def test_a_robot_of_quasi_velocities_says_what_is_left_out() -> None:
    body = di.Body("body", [2.0, 0.1, 0.0, 0.2, 0.3, 0.0, 0.0, 0.3, 0.0, 0.2])
    joint = di.Joint("ball", "spherical", "base", "body")
    found = di.check(di.Mechanism("top", (di.Body("base"), body), (joint,)), samples=10)
    assert found.ok and "quasi-velocities" in found.notes[0]


def test_written_and_read_back(tmp_path) -> None:
    found = di.check(rrr.machine().model, samples=5)
    again = di.load(found.save(tmp_path / "check.json"))
    assert again.checks == found.checks and again.ok
    np.testing.assert_array_equal(again.q, found.q)


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: di.check(rrr.mechanism()), "has no masses"),
        (lambda: di.check(cft.cartesian_model()), "is a regressor without bodies"),
        (lambda: di.check(rrr.machine().model, np.zeros((2, 4))), r"q has shape \(2, 4\)"),
        (lambda: di.check(rrr.machine().model, samples=0), "samples is 0"),
        (lambda: di.check(rrr.machine().model, within=([0.0], [1.0])), "give lower and upper for 3"),
        (lambda: di.check("robot"), "mechanism is a str"),
    ],
)
def test_bad_input(call, told: str) -> None:
    with pytest.raises(di.DynidentError, match=told):
        call()


def test_the_command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture) -> None:
    from dynident.__main__ import main

    def run(*args: str) -> int:
        monkeypatch.setattr("sys.argv", ["dynident", "check", *args])
        with pytest.raises(SystemExit) as end:
            main()
        return int(end.value.code or 0)

    assert run("rrr", "--samples", "20", "--strict") == 0
    assert "RRR robot: all properties hold" in capsys.readouterr().out
    assert run("cft", "--samples", "60", "--strict") == 3
    assert "its bodies are not possible" in capsys.readouterr().out
