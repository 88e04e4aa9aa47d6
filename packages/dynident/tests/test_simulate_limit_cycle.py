"""Loops on coupled joints: gains that fit all directions, and motors at their limits because the loops are unstable."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.linalg import eigh
from simulate_cases import arm, cascade, excitation, geared_arm, geared_drives
from small_robots import platform

import dynident as di
from dynident.control import PID, Cascade, ComputedTorque, TaskCascade, TaskComputedTorque, TaskPID, ToolSpace, gains_for
from dynident.control.cascade import cascade_for, keeps_margins, spread
from dynident.drive import Drive, Encoder, Motor
from dynident.errors import SimulationError, SimulationWarning
from dynident.mechanics import actuator_jacobian, mass_matrix
from dynident.mechanism import from_com
from dynident.simulate import VirtualRobot, small_motions, standard_machine
from dynident.simulate.robot import actuator_inertia, poses_of

EXACT = Encoder(velocity="exact")


def chain(axes: int = 4) -> di.Mechanism:
    """Return a chain of parallel axes without gravity, whose joints are coupled as strongly as can be."""
    table = [{"a": 0.3 if i else 0.0, "alpha": 0.0, "d": 0.0, "joint": f"j{i + 1}"} for i in range(axes)]
    plain = di.Mechanism.from_dh(table, "modified", "chain", (0.0, 0.0, -9.81)).with_terms(())
    bodies = [from_com(3.0 - 0.5 * i, (0.15, 0.0, 0.0), np.eye(3) * 0.02) for i in range(axes)]
    return plain.with_parameters(plain.parameters.replace(np.concatenate(bodies)))


def limited(robot: di.Mechanism, law: Cascade | PID | ComputedTorque, limit: float) -> VirtualRobot:
    drives = [Drive(a.name, Motor(1.0, current_limit=limit), encoder=EXACT) for a in robot.actuators]
    return VirtualRobot(robot, drives, law, step=2.5e-4)


def single(inertia: float) -> di.Mechanism:
    plain = di.Mechanism.from_dh([{"a": 0.0, "alpha": 0.0, "d": 0.0, "joint": "j1"}], "modified", "one").with_terms(())
    return plain.with_parameters(plain.parameters.replace(from_com(1e-9, (0.0, 0.0, 0.0), np.eye(3) * inertia)))


def test_directions_are_generalised_eigenvalues() -> None:
    robot = platform()  # four motors for three freedoms
    x = np.array([[0.02, -0.01, 0.1], [0.0, 0.05, -0.2]])
    D = actuator_inertia(robot, x)
    values = []
    for pose in x:
        A = actuator_jacobian(robot, pose[None])[0]
        values += eigh(A.T @ np.diag(D) @ A, mass_matrix(robot, pose[None])[0], eigvals_only=True).tolist()
    assert spread(robot, x, D) == pytest.approx((min(values), max(values)))
    assert spread(single(0.4), [0.3], actuator_inertia(single(0.4), [0.3])) == pytest.approx((1.0, 1.0))


@pytest.mark.parametrize("rates", [(1.0, 1.0), (0.5, 8.0), (0.1, 30.0), (0.02, 2.0)])
def test_a_cascade_keeps_its_margins_in_the_slowest_and_the_fastest_direction(rates: tuple[float, float]) -> None:
    loops, reached = cascade_for(rates, 10.0, 0.7, 1e-3)
    level = float(np.asarray(loops.velocity_gain)) / (1.4 * 2.0 * np.pi * 5.0 * reached)
    # A sampled PI loop has a gain margin of 2 where (kP + kI T / 2) T / J = 1, next to the stability limit of 2.
    w, T = 2.0 * np.pi * 50.0, 2.5e-4
    assert reached == pytest.approx(min(10.0, 10.0 / (rates[1] * level * (1.4 * w + 0.5 * w**2 * T) * T)), rel=0.05)
    assert keeps_margins(loops, rates[0]) and keeps_margins(loops, rates[1])


def test_the_standard_cascade_of_coupled_joints_is_stable() -> None:
    robot, motion = chain(), excitation(4, 2.0, size=0.3)
    one = standard_machine(robot, controller="pd")
    poses = poses_of(one.reference(motion))
    with pytest.warns(
        SimulationWarning, match=r"robot 'chain' has coupled joints.* Hz are used \(a cycle of .* s allows 10 Hz\)"
    ):
        machine = standard_machine(robot, poses, controller="cascade")
    law = machine.controller
    assert isinstance(law, Cascade)
    for pose in poses[::8]:
        rates = eigh(np.diag(np.asarray(law.velocity_gain)), mass_matrix(robot, pose[None])[0], eigvals_only=True)
        assert rates.max() * law.velocity_cycle < 1.0  # half of what a sampled loop bears
    drives = [replace(drive, motor=replace(drive.motor, current_limit=200.0)) for drive in machine.drives]
    run = replace(machine, drives=drives).simulate(motion)
    assert max(run.saturation.values()) == 0.0
    # The gains that suit each joint alone do not work together, and the run says so although it ends.
    J, w = actuator_inertia(robot, poses[0]), 2.0 * np.pi * 50.0
    old = replace(law, position_gain=2.0 * np.pi * 10.0, velocity_gain=1.4 * w * J, velocity_integral=w**2 * J)
    with pytest.raises(
        SimulationError, match=r"instability: joint 'j\d' oscillates between motor limits from t = \d.* s on \(motor "
    ):
        replace(machine, drives=drives, controller=old).simulate(motion)


@pytest.mark.parametrize("kind", ["cascade", "pid", "computed torque", "late cascade", "task", "task forces", "task cascade"])
def test_small_motions_grow_in_a_run_as_they_should(kind: str) -> None:
    robot, pose = chain(3), np.array([0.1, 0.8, -0.6])
    M = mass_matrix(robot, pose[None])[0]
    J = np.diag(M)
    kp, kd = gains_for(40.0, 0.05)
    heavy = robot.with_parameters(
        robot.parameters.replace(3.0 * robot.parameters.values)
    )  # the model is wrong by a factor of 3
    law = {
        "cascade": Cascade(60.0, 500.0 * J, 5e4 * J, position_cycle=1e-3, velocity_cycle=5e-4, velocity_filter=300.0),
        "pid": PID(kp * J, 100.0 * J, 1e3, cycle=1e-3, derivative_filter=200.0),
        "computed torque": ComputedTorque(heavy, kp, kd, 100.0, cycle=2e-3),
        "late cascade": Cascade(
            60.0, 300.0 * J, 5e4 * J, position_cycle=1e-3, velocity_cycle=5e-4, delay=7.5e-4, position_delay=5e-4
        ),
        "task": TaskComputedTorque(ToolSpace(rows="xy"), robot, kp, 1500.0, cycle=1e-3, posture=(100.0, 20.0), delay=5e-4),
        "task cascade": TaskCascade(
            ToolSpace(rows="xy"),
            Cascade(60.0, 500.0 * J, 5e4 * J, position_cycle=1e-3, velocity_cycle=5e-4, velocity_filter=300.0),
        ),
        "task forces": TaskPID(ToolSpace(rows="xy"), 4e5, 300.0, cycle=1e-3, derivative_filter=100.0),
    }[kind]
    drives = [Drive(a.name, Motor(1.0, inertia=1e-3), encoder=Encoder()) for a in robot.actuators]
    machine = VirtualRobot(robot, drives, law, step=2.5e-4)
    rest = di.Motion([0.0, 1.0], np.tile(pose, (2, 1)), np.zeros((2, 3)), np.zeros((2, 3)))
    found = small_motions(machine, pose)
    assert found is not None and found.factor > 1.01
    beside = np.array([1e-10, -2e-10, 1e-10])
    steps = max(4, min(200, int(np.log(1e6) / np.log(found.factor))))
    run = machine.simulate(rest, start={"q": pose + beside}, duration=steps * found.period, log_cycle=found.period)
    v = run.truth.motion.v
    size = np.sqrt(np.einsum("ti,ij,tj->t", v, M, v))
    half = steps // 2
    measured = (size[-3:].max() / size[half - 3 : half].max()) ** (1.0 / (steps + 1 - half))
    assert np.log(measured) == pytest.approx(np.log(found.factor), rel=0.15)


def test_limits_alone_are_no_instability() -> None:
    weak = geared_arm(drives=geared_drives(arm(), current_limit=1.2), controller=cascade())
    with pytest.warns(SimulationWarning, match="at its current limit"):
        run = weak.simulate(excitation(3, 2.0, size=0.8))
    assert max(run.saturation.values()) > 0.05
    # Nor is a way that takes all the motor has, even if the loops would not work at its end.
    far = limited(single(0.4), PID(1e6, 1.0, cycle=1e-3), 5.0)
    with pytest.warns(SimulationWarning, match="at its current limit of 5 A 100 % of the time"):
        far.simulate(di.Motion([0.0, 0.2], np.zeros((2, 1)), np.zeros((2, 1)), np.zeros((2, 1))), start={"q": [1.0]})
    with pytest.raises(SimulationError, match="instability: joint 'j1' oscillates between motor limits"):
        far.simulate(di.Motion([0.0, 4.0], np.zeros((2, 1)), np.zeros((2, 1)), np.zeros((2, 1))), start={"q": [0.01]})
