"""The FMU of a robot: FMPy accepts it, and it moves as the simulation does, friction that sticks included."""

from __future__ import annotations

import shutil
import warnings
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import dynident as di
from dynident.control import PID, OpenLoop
from dynident.drive import Drive, Motor
from dynident.errors import SimulationError, SimulationWarning
from dynident.simulate import VirtualRobot, torque_driven, write_fmu
from mechanism_oracles import quietly

DEMO = Path(__file__).resolve().parents[1] / "examples" / "demo" / "robot.urdf"
CYCLE, CYCLES = 0.01, 30
START = [0.1, -0.5, 0.0]


@pytest.fixture(scope="module")
def arm() -> di.Mechanism:
    robot = quietly(di.Mechanism.from_urdf, DEMO).keep(["joint1", "joint2", "joint6"])
    first = robot.tree.inertias.size
    values = robot.parameters.values.copy()
    values[first:] = np.random.default_rng(3).uniform(0.05, 0.5, values.size - first)
    return robot.with_parameters(robot.parameters.replace(values).replace({"fc_joint6": 2.0}))


@pytest.fixture(scope="module")
def fmu(arm: di.Mechanism, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_fmu(arm, tmp_path_factory.mktemp("fmu") / "arm.fmu", q=START)


def torques() -> np.ndarray:
    t = CYCLE * np.arange(CYCLES)[:, None]
    return np.array([20.0, 30.0, 0.02]) * np.sin(np.array([9.0, 7.0, 6.0]) * t)


def test_fmpy_accepts_it(fmu: Path) -> None:
    validation = pytest.importorskip("fmpy.validation", reason="FMPy is a development tool: pip install 'dynident[dev]'")
    assert validation.validate_fmu(str(fmu)) == []


def test_it_moves_as_the_simulation(arm: di.Mechanism, fmu: Path) -> None:
    pytest.importorskip("fmpy", reason="FMPy is a development tool: pip install 'dynident[dev]'")
    if not (shutil.which("cc") or shutil.which("gcc")):
        pytest.skip("there is no C compiler here")
    from fmpy import extract, read_model_description
    from fmpy.fmi3 import FMU3Slave

    u, n = torques(), arm.dof
    folder = extract(str(fmu))
    text = read_model_description(folder)
    slave = FMU3Slave(
        guid=text.guid, unzipDirectory=folder, modelIdentifier=text.coSimulation.modelIdentifier, instanceName="arm"
    )
    slave.instantiate()
    slave.enterInitializationMode()
    slave.exitInitializationMode()
    refs = list(range(1, 2 * n + 1))
    found, kept = [slave.getFloat64(refs)], None
    for i, row in enumerate(u):
        slave.setFloat64(list(range(3 * n + 1, 4 * n + 1)), row.tolist())
        slave.doStep(i * CYCLE, CYCLE)
        found.append(slave.getFloat64(refs))
        if i == CYCLES // 2:
            kept = slave.getFMUState()
    slave.setFMUState(kept)  # and once more from the middle
    for i in range(CYCLES // 2 + 1, CYCLES):
        slave.setFloat64(list(range(3 * n + 1, 4 * n + 1)), u[i].tolist())
        slave.doStep(i * CYCLE, CYCLE)
    assert slave.getFloat64(refs) == found[-1]
    slave.freeFMUState(kept)
    slave.terminate()
    slave.freeInstance()
    theirs = np.array(found)

    robot = torque_driven(arm)
    t = CYCLE * np.arange(CYCLES + 1)
    held = VirtualRobot(arm, robot.drives, OpenLoop(torque=np.vstack([u, u[-1:]])), step=robot.step)
    wanted = di.Motion(t, np.tile(START, (CYCLES + 1, 1)), np.zeros((CYCLES + 1, n)), np.zeros((CYCLES + 1, n)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SimulationWarning)  # nothing holds the arm up
        run = held.simulate(wanted, start={"q": START}, log_cycle=CYCLE)
    ours = np.hstack([run.truth.motion.q, run.truth.motion.v])
    np.testing.assert_allclose(run.truth.t, t, atol=1e-9)
    np.testing.assert_allclose(theirs, ours, rtol=1e-6, atol=1e-6)
    assert np.ptp(theirs[:, :2], axis=0).min() > 0.05
    assert np.ptp(theirs[:, 2]) < 1e-9  # its torque is below its friction: it sticks


def test_model_exchange_has_the_states_of_forward_dynamics(arm: di.Mechanism, tmp_path: Path) -> None:
    """A solver outside integrates the FMU; scipy with the forward dynamics and the virtual robot find the same motion.

    Dry friction of joints is left out, since a solver outside knows nothing of sticking.
    """
    fmpy = pytest.importorskip("fmpy", reason="FMPy is a development tool: pip install 'dynident[dev]'")
    if not (shutil.which("cc") or shutil.which("gcc")):
        pytest.skip("there is no C compiler here")
    from fmpy.validation import validate_fmu
    from scipy.integrate import solve_ivp

    values = {name: 0.0 for name in arm.parameters.names if name.startswith("fc_")}
    robot = arm.with_parameters(arm.parameters.replace(values))
    file = write_fmu(robot, tmp_path / "arm.fmu", q=START)
    assert validate_fmu(str(file)) == []
    torque = np.array([2.0, -3.0, 0.05])
    labels = [f"u_{name}" for name in robot.coordinate_names]
    signals = np.array([(t, *torque) for t in (0.0, 1.0)], dtype=[("time", float), *((name, float) for name in labels)])
    names = [f"{symbol}_{name}" for symbol in "qva" for name in robot.coordinate_names]
    options = {"fmi_type": "ModelExchange", "relative_tolerance": 1e-10, "stop_time": 0.3, "output_interval": 0.01}
    found = fmpy.simulate_fmu(str(file), input=signals, output=names, **options)
    n = robot.dof

    def rate(_, x):
        return np.concatenate([x[n:], di.mechanics.forward_dynamics(robot, x[:n], x[n:], torque)[0]])

    exact = solve_ivp(rate, (0.0, 0.3), [*START, 0.0, 0.0, 0.0], rtol=1e-11, atol=1e-12, t_eval=found["time"].clip(0.0, 0.3))
    theirs = np.column_stack([found[name] for name in names])
    np.testing.assert_allclose(theirs[:, : 2 * n], exact.y.T, atol=1e-6)
    machine = torque_driven(robot)
    steady = VirtualRobot(robot, machine.drives, OpenLoop(torque=np.tile(torque, (CYCLES + 1, 1))), step=machine.step)
    start = np.tile(START, (CYCLES + 1, 1))
    wanted = di.Motion(CYCLE * np.arange(CYCLES + 1), start, np.zeros_like(start), np.zeros_like(start))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SimulationWarning)  # nothing holds the arm up
        run = steady.simulate(wanted, start={"q": START}, log_cycle=CYCLE)
    np.testing.assert_allclose(theirs[:, :n], run.truth.motion.q, atol=1e-6)
    np.testing.assert_allclose(theirs[:, n : 2 * n], run.truth.motion.v, atol=1e-6)
    last = di.mechanics.forward_dynamics(robot, theirs[-1, :n], theirs[-1, n : 2 * n], torque)[0]
    np.testing.assert_allclose(theirs[-1, 2 * n :], last, rtol=1e-9)


def test_a_machine_has_the_friction_of_its_temperature(tmp_path: Path) -> None:
    fmpy = pytest.importorskip("fmpy", reason="FMPy is a development tool: pip install 'dynident[dev]'")
    if not (shutil.which("cc") or shutil.which("gcc")):
        pytest.skip("there is no C compiler here")
    torque = np.array([150.0, 150.0, 100.0, 20.0, 15.0, 10.0])
    machine = replace(di.robots.er3a_c60.machine(), controller=OpenLoop(torque=torque), ambient=10.0)
    assert machine.thermal
    file = write_fmu(machine, tmp_path / "machine.fmu")
    names = machine.mechanism.coordinate_names
    labels = [f"u_{a.name}" for a in machine.mechanism.actuators]
    signals = np.array([(0.0, *torque), (1.0, *torque)], dtype=[("time", float), *((name, float) for name in labels)])
    options = {"stop_time": 0.2, "output_interval": CYCLE, "step_size": CYCLE, "output": [f"q_{name}" for name in names]}
    found = fmpy.simulate_fmu(str(file), fmi_type="CoSimulation", input=signals, **options)
    start = np.zeros((21, 6))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SimulationWarning)  # nothing holds the arm up
        run = machine.simulate(di.Motion(CYCLE * np.arange(21), start, start, start), log_cycle=CYCLE)
    theirs = np.column_stack([found[f"q_{name}"] for name in names])
    np.testing.assert_allclose(theirs, run.truth.motion.q, atol=1e-9)
    assert np.ptp(theirs, axis=0).max() > 0.1


def test_without_a_compiler_the_sources_are_in_it(arm: di.Mechanism, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    names = zipfile.ZipFile(write_fmu(arm, tmp_path / "arm.fmu")).namelist()
    assert names == ["modelDescription.xml", "sources/arm6.c", "sources/buildDescription.xml"]


def test_what_cannot_be_an_fmu_is_said(arm: di.Mechanism, tmp_path: Path) -> None:
    with pytest.raises(SimulationError, match=r"has the ending '\.zip'; name it \.fmu"):
        write_fmu(arm, tmp_path / "arm.zip")
    with pytest.raises(SimulationError, match="give 3 finite numbers"):
        write_fmu(arm, tmp_path / "arm.fmu", q=[0.0])
    drives = [Drive(a.name, Motor(1.0)) for a in arm.actuators]
    with pytest.raises(SimulationError, match="the controller is a PID"):
        write_fmu(VirtualRobot(arm, drives, PID(1.0, 1.0, cycle=1e-3)), tmp_path / "arm.fmu")
