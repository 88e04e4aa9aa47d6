"""Torques of a run, part by part: their sum is what the motors gave, and gears lose power in the direction it flows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from simulate_cases import arm, excitation, geared_arm
from small_robots import circle, five_bar_machine, platform

import dynident as di
from dynident.control import PID
from dynident.drive import Drive, Encoder, Motor, Transmission
from dynident.friction import Viscous
from dynident.simulate import VirtualRobot
from dynident_lab.servo import torque_split


def test_the_torque_split_adds_up_for_trees_and_loops() -> None:
    tree = geared_arm().simulate(
        excitation(3, 2.0), wrenches={"link_3": [1.0, 2.0, 3.0, 0.1, 0.2, 0.3]}, disturbance=[1.0, -2.0, 0.5]
    )
    split = torque_split(tree)
    assert np.abs(split.rest).max() < 1e-9 * np.abs(split.total).max()
    rms = split.rms()
    assert rms["gravity"][1] > rms["velocity"][1]
    assert rms["external"].min() > 0.1
    assert np.allclose(split.mechanism + split.parts["drive_inertia"] + split.parts["drive_friction"], split.total)
    assert "joint_2" in split.summary()
    looped = five_bar_machine().simulate(circle(), log_cycle=5e-3)
    split = torque_split(looped)
    assert np.abs(split.rest).max() < 1e-6 * np.abs(split.total).max()


@pytest.mark.parametrize("method", ["coupled", "decoupled"])
@pytest.mark.parametrize("kind", ["arm", "five-bar"])
def test_power_is_lost_in_the_direction_it_flows(kind: str, method: str) -> None:
    if kind == "arm":
        robot = geared_arm()
        drives = [replace(d, transmission=replace(d.transmission, efficiency=0.8)) for d in robot.drives]
        run = replace(robot, drives=drives).simulate(excitation(3, 2.0), method=method)
    else:
        robot = five_bar_machine()
        drives = [replace(d, transmission=replace(d.transmission, efficiency=0.8)) for d in robot.drives]
        run = replace(robot, drives=drives).simulate(circle(), log_cycle=5e-3, method=method)
    t, split = run.truth, torque_split(run)
    assert len(split.plot().axes) >= len(split.names)
    assert np.abs(split.rest).max() < 1e-8 * np.abs(split.total).max()
    own = np.array([d.reflected_inertia for d in drives])
    N = run.robot.mechanism.actuator_matrix[0]
    rho_a = split.parts["drive_inertia"] / own if kind == "five-bar" else t.motion.a @ N.T
    ratio = drives[0].transmission.ratio
    front = (ratio * (t.motor_torque - t.friction) - own * rho_a) * t.rho_v  # power into the gear
    behind = front - t.gear_loss * t.rho_v
    quick, size = np.abs(t.rho_v) > 0.05, 1e-9 * np.abs(front).max()
    forward, back = quick & (front > size), quick & (front < -size)
    np.testing.assert_allclose(behind[forward], 0.8 * front[forward], rtol=1e-6)
    np.testing.assert_allclose(front[back], 0.8 * behind[back], rtol=1e-6)
    assert forward.sum() > 50
    assert back.sum() > 20


def elastic(robot: di.Mechanism, ratio: float = 50.0) -> list[Drive]:
    gear = Transmission(ratio, 0.9, (1e-4, 2e-4), (200.0, 300.0), (0.05, 0.05))
    return [Drive(a.name, Motor(0.15, inertia=2e-4), gear, Viscous().using(fv=1e-3)) for a in robot.actuators]


@pytest.mark.parametrize("kind", ["arm", "five-bar", "redundant"])
def test_the_split_closes_for_elastic_drives_and_preloads(kind: str) -> None:
    if kind == "arm":
        robot = geared_arm(drives=elastic(arm()), step=1.25e-4)
        run = robot.simulate(excitation(3, 2.0), disturbance=[1.0, -2.0, 0.5], wrenches={"link_3": [1.0, 2.0, 3.0, 0.1, 0, 0]})
    elif kind == "five-bar":
        machine = five_bar_machine()
        run = replace(machine, drives=elastic(machine.mechanism, 40.0)).simulate(circle(), log_cycle=5e-3)
    else:
        robot = platform()
        law = PID(3000.0, 60.0, cycle=1e-3, project=True, preload=[2.0, -1.0, 1.5, 1.0])
        drives = [Drive(a.name, Motor(1.0, inertia=1e-3), encoder=Encoder(velocity="exact")) for a in robot.actuators]
        x = robot.closure.home[robot.closure.independent]
        run = VirtualRobot(robot, drives, law, step=2.5e-4).simulate(
            di.Motion([0.0, 0.2], *(np.stack([y, y]) for y in (x, 0 * x, 0 * x))), start={"q": x + 0.01}
        )
        assert torque_split(run).rms()["internal"].max() > 0.5
    split = torque_split(run)
    assert np.abs(split.rest).max() < 1e-8 * np.abs(split.total).max()
    if kind != "redundant":
        assert np.abs(split.parts["internal"]).max() < 1e-9 * np.abs(split.total).max()
        assert split.rms()["drive_elastic"].min() > 0.0
    assert "rest" in split.summary()
