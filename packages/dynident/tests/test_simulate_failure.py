"""A run that breaks says when, which joint and why: never NaN, and a lack of inertia is not blamed on gains."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from simulate_cases import arm, geared_arm, pid
from small_robots import arm3_machine, arm6_machine, five_bar_machine, impossible_arm, platform_machine

import dynident as di
from dynident.control import PID, ComputedTorque, TaskPID
from dynident.drive import Drive, Motor
from dynident.errors import DynidentError, SimulationError
from dynident.simulate import Sensors, VirtualRobot
from dynident.trajectory import Fourier, Trajectory

MACHINES = {"arm3": arm3_machine, "five-bar": five_bar_machine, "platform": platform_machine, "arm6": arm6_machine}


@cache
def machine_of(name: str) -> VirtualRobot:
    return MACHINES[name]()


def still(mechanism: di.Mechanism) -> tuple[np.ndarray, di.Motion]:
    home = mechanism.closure.home[mechanism.closure.independent] if mechanism.loops else np.full(mechanism.dof, 0.3)
    zero = np.zeros((2, mechanism.dof))
    return home, di.Motion([0.0, 0.5], zero + home, zero, zero)


@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.parametrize("kind", ["hot", "absurd", "pushed"])
def test_unstable_machines_name_time_and_joint(name: str, kind: str) -> None:
    robot = machine_of(name)
    home, rest = still(robot.mechanism)
    free = [replace(d, motor=replace(d.motor, current_limit=np.inf, voltage_limit=np.inf)) for d in robot.drives]
    law: Any = {"hot": ComputedTorque(robot.mechanism, 1e12, 1e9, cycle=8 * robot.step)}.get(kind, robot.controller)
    law = PID(1e300, 1e300, cycle=8 * robot.step) if kind == "absurd" else law
    push = np.full(len(free), 1e300) if kind == "pushed" else None
    with pytest.raises(SimulationError, match=r"^instability: .*'.*' .* at t = [0-9.e+-]+ s; lower the gains") as caught:
        replace(robot, controller=law, drives=free).simulate(rest, start={"q": home + 0.003}, disturbance=push)
    names = (*robot.mechanism.coordinate_names, *(d.actuator for d in robot.drives))
    assert any(f"'{joint}'" in str(caught.value) for joint in names)


@pytest.mark.parametrize("method", ["coupled", "decoupled"])
@pytest.mark.parametrize("small", [0.0, 1e-12])
def test_a_joint_without_inertia_is_named_instead_of_the_gains(method: str, small: float) -> None:
    robot = arm(3)
    body = dict.fromkeys((n for n in robot.parameters.names if n.endswith("link_3")), 0.0)
    body |= {f"{symbol}_link_3": small for symbol in ("Ixx", "Iyy", "Izz")}
    robot = robot.with_parameters(robot.parameters.replace(body))
    machine = VirtualRobot(robot, [Drive(a.name, Motor(1.0)) for a in robot.actuators], pid(2000.0, 20.0))
    rest = di.Motion([0.0, 0.5], np.zeros((2, 3)), np.zeros((2, 3)), np.zeros((2, 3)))
    with pytest.raises(SimulationError, match=r"mass matrix is (nearly )?singular") as caught:
        machine.simulate(rest, start={"q": [0.01] * 3}, method=method)
    assert "inertia" in str(caught.value)
    assert "gains" not in str(caught.value)


def impossible(q2: float) -> tuple[VirtualRobot, di.Motion]:
    """Return an arm that moves from (0, q2) to smaller q2 with 0.5 rad/s."""
    robot = impossible_arm()
    machine = VirtualRobot(robot, [Drive(a.name, Motor(1.0)) for a in robot.actuators], pid(20.0, 2.0))
    t = np.linspace(0.0, 1.0, 101)[:, None]
    return machine, di.Motion(t[:, 0], [0.0, q2] - t * [0.0, 0.5], 0.0 * t - [0.0, 0.5], 0.0 * t + [0.0, 0.0])


def test_a_model_is_blamed_where_its_mass_matrix_fails() -> None:
    limit = np.arccos(0.6)
    machine, motion = impossible(limit + 0.1)  # 0.2 s before
    with pytest.raises(SimulationError, match=r"mass matrix is not positive definite at t = 0\.[12]\d* s \(of joint 'q\d'"):
        machine.simulate(motion)
    machine, motion = impossible(limit - 0.1)
    with pytest.raises(SimulationError, match=r"not positive definite at t = 0 s .* so accelerations are undefined"):
        machine.simulate(motion)


def test_a_delayed_loop_that_diverges_points_to_the_exact_one() -> None:
    robot = arm6_machine()
    free = [replace(d, motor=replace(d.motor, current_limit=np.inf)) for d in robot.drives]
    home, rest = still(robot.mechanism)
    with pytest.warns(di.errors.SimulationWarning, match="diverges"), pytest.raises(SimulationError, match="loop='exact'"):
        replace(robot, drives=free).simulate(rest, start={"q": home + 0.003}, method="decoupled", loop="delayed")
    _, rest = still(platform_machine(ideal=True).mechanism)
    with pytest.warns(di.errors.SimulationWarning), pytest.raises(SimulationError, match="of its drives alone is singular"):
        platform_machine(ideal=True).simulate(rest, method="decoupled", loop="delayed")


def test_durations_beyond_memory_are_refused() -> None:
    rest = di.Motion([0.0, 1.0], np.zeros((2, 3)), np.zeros((2, 3)), np.zeros((2, 3)))
    with pytest.raises(SimulationError, match="more than memory holds"):
        geared_arm().simulate(rest, duration=1e12)


def test_what_is_no_number_is_refused() -> None:
    for call in (
        lambda: PID(True, 1.0, cycle=1e-3),
        lambda: TaskPID(None, 1.0, 1.0, cycle=1e-3),  # type: ignore[arg-type]
        lambda: Sensors(delay=None),  # type: ignore[arg-type]
        lambda: geared_arm().simulate(still(arm())[1], start={"q": "home"}),
    ):
        with pytest.raises(DynidentError) as caught:
            call()
        assert "\n" not in str(caught.value)


def test_a_plan_made_for_another_robot_warns(tmp_path: Path) -> None:
    stage = Fourier(0.5, 2)
    curve = Trajectory(stage, np.zeros((3, stage.size)))
    plan = SimpleNamespace(
        stages=(), coordinates=arm().coordinate_names, curve=curve, cycles=1, period=2.0, identity="", robot="other"
    )
    with pytest.warns(di.errors.SimulationWarning, match="made for robot 'other' but runs on 'arm'"):
        geared_arm().simulate(plan, duration=0.02)
    (tmp_path / "plan.json").write_text('{"format": "dynident-plan-1"}', encoding="utf-8")
    with pytest.raises(SimulationError, match="cannot be read as a plan"):
        geared_arm().simulate(tmp_path / "plan.json")
