"""The FMU of a robot: FMPy accepts it, and it moves as the simulation does, friction that sticks and controllers included."""

from __future__ import annotations

import shutil
import warnings
import zipfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from defusedxml import ElementTree as ET
from mechanism_oracles import quietly
from simulate_cases import arm as small_arm
from simulate_cases import cascade, geared_arm
from small_robots import five_bar_machine, platform
from warm_robots import warm_arm6

import dynident as di
from dynident.control import PID, CurrentLoop, OpenLoop, TaskPID, ToolSpace
from dynident.drive import Drive, Encoder, Motor, Transmission
from dynident.errors import SimulationError, SimulationWarning
from dynident.files import xml_text
from dynident.friction import Coulomb, LuGre, Viscous
from dynident.graph.printing import identifiers
from dynident.simulate import VirtualRobot
from dynident.simulate.analysis import tool_of
from dynident_lab.fmu import Block, tool_block, torque_driven, write_fmu
from dynident_lab.thermal import FirstOrder, Heating

DEMO = Path(__file__).resolve().parents[3] / "examples" / "demo" / "robot.urdf"
CYCLE, CYCLES = 0.01, 30
START = [0.1, -0.5, 0.0]


class Slave:
    """An FMU in co-simulation, its variables by name."""

    def __init__(self, file: Path, **start: float) -> None:
        pytest.importorskip("fmpy", reason="FMPy is a development tool: pip install 'dynident[dev]'")
        if not (shutil.which("cc") or shutil.which("gcc")):
            pytest.skip("there is no C compiler here")
        from fmpy import extract, read_model_description
        from fmpy.fmi3 import FMU3Slave

        folder = extract(str(file))
        text = read_model_description(folder)
        self.fmu = FMU3Slave(
            guid=text.guid, unzipDirectory=folder, modelIdentifier=text.coSimulation.modelIdentifier, instanceName="robot"
        )
        self.fmu.instantiate()
        self.at = {v.name: v.valueReference for v in text.modelVariables}
        self.inputs = [v.valueReference for v in text.modelVariables if v.causality == "input"]
        self.fmu.enterInitializationMode()
        self.fmu.setFloat64([self.at[name] for name in start], list(start.values()))
        self.fmu.exitInitializationMode()

    def get(self, names: Sequence[str]) -> list[float]:
        return list(self.fmu.getFloat64([self.at[name] for name in names]))

    def set(self, values: Sequence[float]) -> None:
        self.fmu.setFloat64(self.inputs, list(values))

    def step(self, time: float, length: float) -> None:
        self.fmu.doStep(time, length)


@pytest.fixture(scope="module")
def arm() -> di.Mechanism:
    robot = quietly(di.Mechanism.from_urdf, DEMO).keep(["joint1", "joint2", "joint6"])
    first = robot.tree.inertias.size
    values = robot.parameters.values.copy()
    values[first:] = np.random.default_rng(3).uniform(0.05, 0.5, values.size - first)
    friction = {"fc_joint1": 3.0, "fc_joint2": 4.0, "fc_joint6": 2.0}
    return robot.with_parameters(robot.parameters.replace(values).replace(friction))


@pytest.fixture(scope="module")
def fmu(arm: di.Mechanism, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_fmu(arm, tmp_path_factory.mktemp("fmu") / "arm.fmu", q=START)


def torques(count: int = CYCLES) -> np.ndarray:
    t = CYCLE * np.arange(count)[:, None]
    return np.array([20.0, 30.0, 2.2]) * np.sin(np.array([9.0, 7.0, 6.0]) * t)


def pushed(machine: VirtualRobot, u: np.ndarray, cycle: float, **options: Any) -> Any:
    """Return the truth of a machine that rests at START and is given torques, each held for a cycle."""
    n = len(START)
    t = cycle * np.arange(len(u) + 1)
    held = replace(machine, controller=OpenLoop(torque=np.vstack([u, u[-1:]])))
    still = np.zeros((t.size, n))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SimulationWarning)  # nothing holds the arm up
        return held.simulate(di.Motion(t, still + START, still, still), start={"q": START}, log_cycle=CYCLE, **options).truth


def wave(q: Sequence[float], size: float, seconds: float, cycle: float) -> di.Motion:
    """Return sines of different frequencies that start at rest."""
    t = cycle * np.arange(round(seconds / cycle) + 1)[:, None]
    w = 2.5 * (1.0 + 0.3 * np.arange(len(q)))
    return di.Motion(t[:, 0], np.add(q, size * (1.0 - np.cos(w * t))), size * w * np.sin(w * t), size * w**2 * np.cos(w * t))


def test_fmpy_accepts_it(fmu: Path) -> None:
    validation = pytest.importorskip("fmpy.validation", reason="FMPy is a development tool: pip install 'dynident[dev]'")
    assert validation.validate_fmu(str(fmu)) == []


def test_it_moves_as_the_simulation(arm: di.Mechanism, fmu: Path) -> None:
    slave, u, n = Slave(fmu), torques(), arm.dof
    names = [f"{symbol}_{name}" for symbol in "qv" for name in arm.coordinate_names]
    found, kept = [slave.get(names)], None
    for i, row in enumerate(u):
        slave.set(row)
        slave.step(i * CYCLE, CYCLE)
        found.append(slave.get(names))
        if i == CYCLES // 2:
            kept = slave.fmu.getFMUState()
    slave.fmu.setFMUState(kept)  # and once more from the middle
    for i in range(CYCLES // 2 + 1, CYCLES):
        slave.set(u[i])
        slave.step(i * CYCLE, CYCLE)
    assert slave.get(names) == found[-1]
    slave.fmu.freeFMUState(kept)
    theirs, truth = np.array(found), pushed(torque_driven(arm), u, CYCLE)
    np.testing.assert_allclose(theirs[:, :n], truth.motion.q, atol=1e-9)
    np.testing.assert_allclose(theirs[:, n:], truth.motion.v, atol=1e-9)
    assert np.ptp(theirs[:, :2], axis=0).min() > 0.05
    assert np.ptp(theirs[:20, 2]) < 1e-9  # its torque is below its friction: it sticks


def test_model_exchange_sticks_and_slides_in_events(arm: di.Mechanism, fmu: Path) -> None:
    """A solver outside integrates the FMU and finds the moments of stick and slip, as the simulation with small steps does."""
    fmpy = pytest.importorskip("fmpy", reason="FMPy is a development tool: pip install 'dynident[dev]'")
    if not (shutil.which("cc") or shutil.which("gcc")):
        pytest.skip("there is no C compiler here")
    hold, count = 5, 16
    u = torques(hold * count)[::hold] * [0.5, 0.8, 1.5]
    labels = [f"u_{name}" for name in arm.coordinate_names]
    rows = [(hold * CYCLE * (i + end), *row) for i, row in enumerate(u) for end in (0, 1)]
    signals = np.array(rows, dtype=[("time", float), *((name, float) for name in labels)])
    names = [f"{symbol}_{name}" for symbol in "qva" for name in arm.coordinate_names]
    options = {"fmi_type": "ModelExchange", "relative_tolerance": 1e-10, "output_interval": CYCLE, "record_events": False}
    found = fmpy.simulate_fmu(str(fmu), input=signals, output=names, stop_time=hold * count * CYCLE, **options)
    theirs = np.column_stack([found[name] for name in names])
    truth = pushed(torque_driven(arm, 1e-4), u, hold * CYCLE)
    np.testing.assert_allclose(theirs[:, :3], truth.motion.q, atol=1e-6)
    np.testing.assert_allclose(theirs[:, 3:6], truth.motion.v, atol=1e-6)
    resting = np.abs(truth.motion.v) < 1e-12
    assert resting[:, 2].sum() > 5  # it sticks
    assert (np.diff(resting[:, 2].astype(int)) != 0).sum() >= 2  # and slides, several times
    sliding = ~resting.any(axis=1)
    tau = np.repeat(u, hold, axis=0)[: len(theirs)][sliding[: hold * count]]
    x = theirs[: hold * count][sliding[: hold * count]]
    expected = di.mechanics.forward_dynamics(arm, x[:, :3], x[:, 3:6], tau)
    assert np.median(np.abs(x[:, 6:] - expected)) < 1e-9


def everything() -> VirtualRobot:
    """Return two axes with a winding, a shaft with backlash, a lossy gear, bristles, current loops, a delay and warming."""
    robot, friction = small_arm(2), (Coulomb() + Viscous()).using(fc=0.03, fv=2e-4)
    encoder = Encoder(2.0 * np.pi / 4096, filter=400.0, noise=1e-4)
    motor = Motor(0.15, 0.6, 1e-3, inertia=2e-4, current_limit=20.0, voltage_limit=60.0)
    shaft = Transmission(100.0, stiffness=(0.5,), damping=(1e-3,), inertias=(1e-4,), backlash=1e-3)
    drives = [
        Drive("joint_1", motor, shaft, friction, encoder),
        Drive("joint_2", motor, Transmission(100.0, efficiency=0.8), friction, encoder),
    ]
    return VirtualRobot(
        robot,
        drives,
        cascade(current=CurrentLoop(2.0, 400.0, 1.25e-4)),
        step=1.25e-4,
        thermal={"joint_1": Heating(FirstOrder(alpha=-0.01, beta=1.0, K=0.2, C=5.0), copper=0.5)},
        friction={"joint_1": LuGre(1e4, 60.0, 1.0, 1.5, 0.05, fv=0.4)},
    )


def loops() -> VirtualRobot:
    """Return a five-bar linkage with its cascade."""
    return five_bar_machine()


def feedforward() -> VirtualRobot:
    """Return two axes with a PID that knows the robot and its friction, and acts late."""
    robot = small_arm(2)
    friction = {"joint_1": Coulomb().using(fc=1.0), "joint_2": (Coulomb() + Viscous()).using(fc=1.0, fv=0.3)}
    law = PID(2000.0, 100.0, 50.0, cycle=1e-3, feedforward=robot, friction=friction, delay=1e-3)
    return geared_arm(2, law)


def redundant() -> VirtualRobot:
    """Return four motors for three freedoms with loops, a PID and the feed-forward of a model of other lengths."""
    robot = platform()
    drives = [Drive(a.name, Motor(1.0), encoder=Encoder(2.0 * np.pi / 20000)) for a in robot.actuators]
    friction = {robot.actuators[0].name: Viscous().using(fv=0.05), robot.coordinate_names[1]: Coulomb().using(fc=0.2)}
    believed = platform(1.01)
    law = PID(200.0, 5.0, 10.0, cycle=1e-3, feedforward=believed, friction=friction)
    return VirtualRobot(robot, drives, law, step=2.5e-4)


def work_space() -> VirtualRobot:
    """Return two axes with a law in the plane of the tool."""
    return geared_arm(2, TaskPID(ToolSpace(rows="xy"), 30000.0, 2000.0, cycle=1e-3, feedforward=small_arm(2)))


@pytest.mark.parametrize(
    ("make", "size", "seconds"),
    [(everything, 0.1, 1.1), (loops, 0.05, 0.3), (feedforward, 0.1, 0.1), (redundant, 0.01, 0.2), (work_space, 0.1, 0.3)],
)
def test_a_machine_follows_the_wanted_motion_as_in_the_simulation(
    make: Any, size: float, seconds: float, tmp_path: Path
) -> None:
    machine: VirtualRobot = make()
    validation = pytest.importorskip("fmpy.validation", reason="FMPy is a development tool: pip install 'dynident[dev]'")
    mechanism = machine.mechanism
    home = mechanism.closure.home[mechanism.closure.independent] if mechanism.loops else np.array([0.3, 0.4])
    wanted = wave(home, size, seconds, 1e-3)
    quiet = [replace(drive, encoder=replace(drive.encoder, noise=0.0)) for drive in machine.drives]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SimulationWarning)
        truth = replace(machine, drives=quiet).simulate(wanted, log_cycle=1e-3).truth
    file = write_fmu(machine, tmp_path / "machine.fmu", q=0.9 * home)
    assert validation.validate_fmu(str(file)) == []
    names, motors = identifiers(mechanism.coordinate_names), identifiers([d.actuator for d in machine.drives])
    slave = Slave(file, **{f"q0_{name}": float(x) for name, x in zip(names, home, strict=True)})
    asked = [*(f"{symbol}_{name}" for symbol in "qva" for name in names), *(f"{s}_{m}" for s in ("tau", "i") for m in motors)]
    asked += [f"T_{name}" for name in machine.thermal]
    cycle = getattr(machine.controller, "velocity_cycle", 1e-3)
    every, found = round(1e-3 / cycle), []
    motion = machine.reference(wanted).sample(cycle * np.arange(round(seconds / cycle) + 1))
    for i, row in enumerate(np.hstack([motion.q, motion.v, motion.a])):
        slave.set(row)
        if i % every == 0:
            found.append(slave.get(asked))
        slave.step(i * cycle, cycle)
    parts = np.split(np.array(found), np.cumsum([len(names)] * 3 + [len(motors)] * 2), axis=1)
    assert np.ptp(truth.motion.q, axis=0).max() > 0.001
    pairs = zip(parts, [truth.motion.q, truth.motion.v, truth.motion.a, truth.torques, truth.current], strict=False)
    for (theirs, ours), limit in zip(pairs, [1e-9, 1e-8, 1e-6, 1e-6, 1e-6], strict=True):
        np.testing.assert_allclose(theirs, ours, atol=limit)
    if machine.thermal:
        assert truth.temperature is not None
        np.testing.assert_allclose(parts[-1][::1000, 0], truth.temperature[::1000, 0], atol=1e-9)
        assert np.ptp(parts[-1]) > 0.05


def test_errors_are_told_by_the_fmu(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    file = write_fmu(loops(), tmp_path / "machine.fmu")
    slave = Slave(file)
    for length, wanted, said in ((1.7e-4, 0.0, "a whole number of the machine's steps"), (1e-3, 1e3, "loops cannot be closed")):
        slave.set([wanted] * len(slave.inputs))
        with pytest.raises(Exception, match="fmi3DoStep"):
            slave.step(0.0, length)
        captured = capfd.readouterr()
        assert said in captured.out + captured.err


def test_a_machine_without_a_controller_warms_up(tmp_path: Path) -> None:
    torque = np.array([150.0, 150.0, 100.0, 20.0, 15.0, 10.0])
    machine = replace(warm_arm6(), controller=OpenLoop(torque=torque), ambient=10.0)
    assert machine.thermal
    slave = Slave(write_fmu(machine, tmp_path / "machine.fmu"))
    slave.set(torque)
    still = np.zeros((131, 6))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SimulationWarning)  # nothing holds the arm up
        truth = machine.simulate(di.Motion(CYCLE * np.arange(131), still, still, still)).truth
    slave.step(0.0, 1.3)
    names = identifiers(machine.mechanism.coordinate_names)
    np.testing.assert_allclose(slave.get([f"q_{name}" for name in names]), truth.motion.q[-1], atol=1e-8)
    assert np.ptp(truth.motion.q, axis=0).max() > 0.1


def test_a_block_takes_voltages_and_gives_the_tool_and_a_status(tmp_path: Path) -> None:
    """The second joint leaves its limit, then the voltage of its amplifier is cut."""
    motor = Motor(0.15, 0.6, 1e-3, inertia=2e-4, voltage_limit=24.0)
    robot = small_arm(2)
    joints = [replace(j, limits=replace(j.limits, upper=0.45)) if j.name == "joint_2" else j for j in robot.joints]
    robot = replace(robot, joints=tuple(joints))
    drives = [Drive(name, motor, Transmission(100.0)) for name in robot.coordinate_names]
    block = tool_block(VirtualRobot(robot, drives, OpenLoop(torque=[0.0, 0.0]), step=1.25e-4))
    slave = Slave(write_fmu(block, tmp_path / "block.fmu", q=[0.3, 0.4]))
    u, cycle = np.repeat([[5.0, 10.0], [-5.0, 30.0], [0.0, 10.0]], 20, axis=0), 5e-3
    names, found = ["xc_x", "xc_y", "xc_z", "status"], []
    for i, row in enumerate(u):
        slave.set(row)
        found.append(slave.get(names))
        slave.step(i * cycle, cycle)
    still = np.tile([0.3, 0.4], (len(u), 1))
    held = replace(block.robot, controller=OpenLoop(voltage=u))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SimulationWarning)  # the voltage limit
        q = held.simulate(di.Motion(cycle * np.arange(len(u)), still, 0 * still, 0 * still), log_cycle=cycle).truth.motion.q
    theirs = np.array(found)
    place = di.mechanics.forward_kinematics(robot, q, tool_of(robot))[1]
    np.testing.assert_allclose(theirs[:, :3], place, atol=1e-9)
    np.testing.assert_array_equal(theirs[:, 3], (np.abs(u[:, 1]) > 24.0) + 2 * (q[:, 1] > 0.45))
    assert set(theirs[:, 3]) == {0.0, 2.0, 3.0}


def test_amplifiers_of_a_block_impress_currents(tmp_path: Path) -> None:
    machine = replace(geared_arm(2, OpenLoop(current=[0.4, 0.8])), step=1.25e-4)
    slave = Slave(write_fmu(tool_block(machine, gain=[1.6, 0.4]), tmp_path / "block.fmu", q=[0.3, 0.4]))
    slave.set([0.25, 2.0])  # 0.4 and 0.8 A
    slave.step(0.0, 0.1)
    still = np.tile([0.3, 0.4], (2, 1))
    truth = machine.simulate(di.Motion([0.0, 0.1], still, 0 * still, 0 * still), log_cycle=0.01).truth
    names = ["q_joint_1", "q_joint_2", "i_joint_1", "i_joint_2"]
    np.testing.assert_allclose(slave.get(names), [*truth.motion.q[-1], 0.4, 0.8], atol=1e-9)
    assert np.ptp(truth.motion.q, axis=0).max() > 1e-3


def test_a_block_has_no_control_law() -> None:
    with pytest.raises(SimulationError, match="the controller is a Cascade; voltages are the inputs"):
        Block(everything(), (), lambda _: [])


def test_without_a_compiler_the_sources_are_in_it(arm: di.Mechanism, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    names = zipfile.ZipFile(write_fmu(arm, tmp_path / "arm.fmu")).namelist()
    assert names == ["modelDescription.xml", "sources/arm6.c", "sources/buildDescription.xml"]


def test_no_macro_of_an_fmu_has_two_values(arm: di.Mechanism, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second `#define` of a name silently moves a field; compilers for controllers refuse it."""
    monkeypatch.setattr(shutil, "which", lambda name: None)
    code = zipfile.ZipFile(write_fmu(arm, tmp_path / "arm.fmu")).read("sources/arm6.c").decode()
    macros = [line.split()[1] for line in code.splitlines() if line.startswith("#define ")]
    assert {name for name in macros if macros.count(name) > 1} == {"EXPORT"}  # of two systems, in #if


def test_what_cannot_be_an_fmu_is_said(arm: di.Mechanism, tmp_path: Path) -> None:
    with pytest.raises(SimulationError, match=r"has the ending '\.zip'; name it \.fmu"):
        write_fmu(arm, tmp_path / "arm.zip")
    with pytest.raises(SimulationError, match="give 3 finite numbers"):
        write_fmu(arm, tmp_path / "arm.fmu", q=[0.0])

    class Own:
        cycle, command = 1e-3, "torque"

        def reset(self, *_: object) -> None: ...

        def update(self, *_: object) -> list[float]:
            return [0.0] * 3

    drives = [Drive(a.name, Motor(1.0)) for a in arm.actuators]
    with pytest.raises(SimulationError, match="controller Own is Python code, which cannot be translated to C"):
        write_fmu(VirtualRobot(arm, drives, Own()), tmp_path / "arm.fmu")


HOSTILE = 'a*/ int x; /*\nimport os\u202e\x9b--->"<&\u2028b'


def test_the_c_of_an_fmu_holds_no_name_as_code(tmp_path: Path) -> None:
    robot = di.Mechanism.from_dh([(0.3, 0.0, 0.0, 0.0)], name=HOSTILE)
    with zipfile.ZipFile(write_fmu(robot, tmp_path / "made.fmu")) as parts:
        source = next(name for name in parts.namelist() if name.endswith(".c"))
        text, description = parts.read(source).decode("ascii"), parts.read("modelDescription.xml").decode()
    (line,) = (line for line in text.splitlines() if line.startswith("/* robot"))
    assert line.endswith("*/")
    assert line.count("*/") == 1
    assert ET.fromstring(description).get("modelName") == HOSTILE
    assert not set("\u202e\x9b") & set(description)


def test_hostile_joints_and_keywords_of_c_are_variables_of_an_fmu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    urdf = "<robot name='double'><link name='base'/>"
    for i, joint in enumerate(("static", HOSTILE, 'a"><x/>', "a b", "a_b")):
        before = f"l{i - 1}" if i else "base"
        mass = "<mass value='1'/><inertia ixx='1' iyy='1' izz='1' ixy='0' ixz='0' iyz='0'/>"
        urdf += f"<link name='l{i}'><inertial>{mass}</inertial></link>"
        urdf += f"<joint name='{xml_text(joint)}' type='continuous'><parent link='{before}'/><child link='l{i}'/></joint>"
    (tmp_path / "robot.urdf").write_text(f"{urdf}</robot>", encoding="utf-8")
    robot = di.Mechanism.from_urdf(tmp_path / "robot.urdf")
    with zipfile.ZipFile(write_fmu(robot, tmp_path / "made.fmu")) as parts:
        text, description = parts.read("sources/double_.c").decode("ascii"), parts.read("modelDescription.xml").decode()
    assert "import os" not in text
    assert "<x/>" not in description
    names = [x.get("name") for x in ET.fromstring(description).iter("Float64")]
    assert len(set(names)) == len(names)
    assert all(str(name).isidentifier() for name in names)
