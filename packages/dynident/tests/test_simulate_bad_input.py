"""Bad input of every public function of the virtual robot ends in one sentence that says what to do."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from refusals import all_refused, refused
from simulate_cases import arm, cascade, excitation, geared_arm, geared_drives, pid

import dynident as di
from dynident.control import ComputedTorque, CurrentLoop, OpenLoop
from dynident.drive import Drive, Motor, Transmission
from dynident.errors import SimulationError, SimulationWarning
from dynident.friction import Coulomb
from dynident.simulate import Disturbance, Sensors, VirtualRobot, standard_machine
from dynident.simulate.machine import check_step, step_growth
from dynident.simulate.run import ticks

REST = di.Motion([0.0, 0.02], np.zeros((2, 3)), np.zeros((2, 3)), np.zeros((2, 3)))


MACHINES: list[tuple[dict[str, Any], str]] = [
    ({"drives": geared_drives(arm())[:2]}, "joint_3 have no drive"),
    ({"drives": [*geared_drives(arm()), geared_drives(arm())[0]]}, "two drives"),
    ({"drives": [*geared_drives(arm()), Drive("nobody", Motor(1.0))]}, "'nobody' has no actuator"),
    ({"step": 0.0}, r"step is 0; give a number \[s\] above 0"),
    ({"step": np.nan}, "step is nan"),
    ({"ambient": np.inf}, "ambient is inf"),
    ({"friction": {"nobody": Coulomb().using(fc=1.0)}}, "friction names 'nobody'"),
    ({"friction": {"joint_1": Coulomb()}}, "give a law with numbers"),
]


def test_a_wrong_machine_is_refused() -> None:
    given: dict[str, Any] = {"mechanism": arm(), "drives": geared_drives(arm()), "controller": cascade()}
    all_refused((lambda changes=changes: VirtualRobot(**{**given, **changes}), sentence) for changes, sentence in MACHINES)


def test_gears_that_disagree_are_refused() -> None:
    geared = replace(arm(), actuators=tuple(di.Actuator(f"joint_{i}", {f"joint_{i}": 1.0}, ratio=50.0) for i in (1, 2, 3)))
    refused(lambda: VirtualRobot(geared, geared_drives(arm()), cascade()), "give Transmission")


RUNS: list[tuple[dict[str, Any], str]] = [
    ({"reference": "no_such_plan.json"}, "cannot be read as a plan"),
    ({"reference": excitation(2)}, "moves 2 coordinates"),
    ({"reference": di.Motion([0.0], [[0.0]], [[0.0]], [[0.0]])}, "moves 1 coordinates"),
    ({"duration": 0.0}, "duration is 0"),
    ({"duration": np.nan}, "duration is nan"),
    ({"duration": 1e-9}, "shorter than one step"),
    ({"method": "magic"}, "method is 'magic'"),
    ({"loop": "magic"}, "loop is 'magic'"),
    ({"seed": -1}, "seed is -1"),
    ({"log_cycle": 3.3e-4}, "give log_cycle=0.000375"),
    ({"log_cycle": -1.0}, "log_cycle is -1"),
    ({"log_cycle": 1.0}, "log_cycle"),
    ({"start": {"q": [0.0]}}, "give 3 numbers"),
    ({"disturbance": [1.0]}, "disturbance has shape"),
    ({"disturbance": lambda t: [1.0]}, "it must return 3 numbers"),
    ({"disturbance": lambda t: [np.nan] * 3}, "not finite at t"),
    ({"disturbance": Disturbance([[1.0, 2.0, 3.0]], t=[0.0, 1.0])}, "one row of 3 numbers"),
    ({"disturbance": Disturbance(np.zeros((2, 3)), t=[1.0, 0.0])}, "times do not increase"),
    ({"wrenches": {"nobody": np.zeros(6)}}, "has no link 'nobody'"),
    ({"wrenches": {"link_3": np.zeros(3)}}, "give 6 numbers"),
    ({"thermal_cycle": 0.0}, "thermal_cycle is 0"),
]


def test_a_wrong_run_is_refused() -> None:
    robot = geared_arm()
    all_refused((lambda given={"reference": REST, **options}: robot.simulate(**given), sentence) for options, sentence in RUNS)


def test_wrong_numbers_of_gains_and_tables_are_refused() -> None:
    refused(lambda: geared_arm(controller=pid(kp=[1.0, 2.0])).simulate(REST), "gain of the PID")
    refused(lambda: geared_arm(controller=OpenLoop(torque=np.zeros((5, 3)))).simulate(REST), "open loop")
    refused(lambda: geared_arm(controller=OpenLoop(torque=np.zeros(2))).simulate(REST), "open loop")
    refused(lambda: geared_arm(controller=OpenLoop(voltage=np.zeros(3))).simulate(REST), "resistance")


def test_cycle_times_that_are_no_multiples_name_the_nearest_step() -> None:
    robot = replace(geared_arm(), step=1.1e-4)
    refused(lambda: robot.simulate(REST), "give VirtualRobot(step=0.000125)")
    assert ticks({"position": 1e-3, "velocity": 2.5e-4}, 1.25e-4) == {"position": 8, "velocity": 2}
    refused(lambda: ticks({"velocity": 1e-4}, 1.25e-4), "step=0.0001)")


def test_a_step_too_long_for_a_winding_or_a_shaft_is_refused_with_one_that_works() -> None:
    winding = Drive("m", Motor(0.1, resistance=1.0, inductance=2e-5, inertia=1e-4))
    shaft = Drive("m", Motor(0.1, inertia=1e-5), Transmission(inertias=(1e-5,), stiffness=(500.0,)))
    for drive, voltage, word in ((winding, True, "winding"), (shaft, False, "shafts")):
        with pytest.raises(SimulationError, match=word) as caught:
            check_step([drive], 1.25e-3, voltage, 1e-3)
        step = float(str(caught.value).split("step=")[-1].split(")")[0])
        check_step([drive], step, voltage, 1e-3)
        assert abs(1e-3 / step - round(1e-3 / step)) < 1e-6
    check_step([winding], 1.25e-3, False, 1e-3)  # an ideal current has no winding


def test_the_growth_of_a_step_is_that_of_the_method() -> None:
    A = np.array([[0.0, 1.0], [-(100.0**2), 0.0]])
    for h in (1e-3, 5e-3):
        z = 100j * h
        assert step_growth(A, h) == pytest.approx(abs(1 + z + z**2 / 2 + z**3 / 6 + z**4 / 24), rel=1e-9)


def test_a_current_loop_faster_than_the_step_is_refused() -> None:
    robot = arm()
    drives = geared_drives(robot, resistance=1.0, inductance=1e-3)
    fast = cascade(current=CurrentLoop(1.0, 100.0, 6.25e-5))
    refused(lambda: VirtualRobot(robot, drives, fast).simulate(REST), "step=6.25e-05")


def test_sensors_that_the_robot_cannot_have_are_refused() -> None:
    refused(lambda: geared_arm(sensors=Sensors(effort="voltage")).simulate(REST), "resistance")
    refused(lambda: geared_arm(sensors=Sensors(effort_noise=[1.0, 2.0])).simulate(REST), "effort_noise")
    wrist = replace(
        arm(),
        actuators=(
            di.Actuator("joint_1", {"joint_1": 1.0}),
            di.Actuator("m2", {"joint_2": 1.0}),
            di.Actuator("m3", {"joint_2": 1.0, "joint_3": 1.0}),
        ),
    )
    drives = geared_drives(wrist)
    refused(lambda: VirtualRobot(wrist, drives, pid(), sensors=Sensors(side="joint")).simulate(REST), "log both on one side")
    refused(lambda: VirtualRobot(wrist, drives, pid()).simulate(REST).truth.save("truth.csv"), "must end in .npz")


def test_a_model_needs_a_motor_for_every_freedom() -> None:
    planar = arm()
    fewer = replace(planar, actuators=planar.actuators[:2])
    robot = VirtualRobot(fewer, geared_drives(planar)[:2], ComputedTorque(fewer, 1.0, 1.0, cycle=1e-3))
    refused(lambda: robot.simulate(REST), "a motor per degree of freedom, but ", " has 2 ", " for 3")
    refused(lambda: standard_machine(fewer).simulate(REST), "a motor per degree of freedom")
    run = standard_machine(fewer, controller="pd").simulate(REST)  # what its encoders see is logged
    assert run.log.joints == ("joint_1", "joint_2") and run.log.position_side == "motor"


def test_a_joint_beyond_its_limits_is_told() -> None:
    robot = arm()
    joints = tuple(replace(joint, limits=replace(joint.limits, lower=-0.5, upper=0.5)) for joint in robot.joints)
    machine = standard_machine(replace(robot, joints=joints).with_terms(()))
    swing = di.Motion([0.0, 1.0, 2.0], [[0.0] * 3, [0.8, 0.0, 0.0], [0.0] * 3], np.zeros((3, 3)), np.zeros((3, 3)))
    with pytest.warns(SimulationWarning, match=r"joint 'joint_1' was outside its limits -0.5 to 0.5 for \d+"):
        far = machine.simulate(swing)
    assert len(far.notes) == 1
