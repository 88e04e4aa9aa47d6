"""A robot as a Functional Mock-up Unit (FMI 3.0): the compiled step of `VirtualRobot`, printed as C.

    co-simulation:   inputs, held over a communication step  ->  the signals that the simulation would record
    model exchange:  d/dt x = f(x, u), with events for stick and slip of dry friction

Co-simulation is the code of the simulation itself, including controller, dry friction and temperatures, so both give the same
numbers (`source`). In model exchange an external solver steps, so no part of the machine may count steps.
"""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import subprocess
import tempfile
import zipfile
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from dynident.control import OpenLoop
from dynident.drive import Drive, Motor, Transmission
from dynident.errors import SimulationError
from dynident.files import visible, write_atomic, xml_text
from dynident.graph.printing import identifier, identifiers
from dynident.mechanism import Mechanism
from dynident.simulate import VirtualRobot
from dynident.simulate.machine import COMPILED, Machine
from dynident.simulate.robot import home_of
from dynident.simulate.run import loop_cycles, machine_of
from dynident.trajectory.reference import start_state
from dynident_lab.fmu.block import Block
from dynident_lab.fmu.source import ORDER, Content, machine_source

SECONDS = 600.0  # time limit of the C compiler
LONG = 1_000_000  # characters of C above which the compiler optimises less: its time grows faster than the code
STAMP = (1980, 1, 1, 0, 0, 0)  # fixed time stamp of every file: the same robot gives the same bytes


def torque_driven(mechanism: Mechanism, step: float = 1e-3) -> VirtualRobot:
    """Return a machine with actuators that apply the commanded torques without dynamics."""
    drives = [Drive(a.name, Motor(1.0), Transmission(ratio=a.ratio)) for a in mechanism.actuators]
    return VirtualRobot(mechanism, drives, OpenLoop(torque=np.zeros(len(drives))), step=step)


def write_fmu(robot: Mechanism | VirtualRobot | Block, path: str | os.PathLike[str], q: ArrayLike | None = None) -> Path:
    """Write a robot as an FMU (FMI 3.0), compiled for this computer if it has a C compiler.

    Inputs of a machine with a control law are the reference motion, ``q_ref_``, ``v_ref_`` and ``a_ref_`` of every coordinate;
    inputs of a `Mechanism` and of an `OpenLoop` are torques behind the gears (or the open loop's commands), ``u_`` of every
    actuator. Outputs are ``q_``, ``v_``, ``a_``, and for a machine also ``tau_`` (torque behind the gear), ``i_`` (motor
    current) and ``T_`` (temperatures); ``q0_`` and ``v0_`` are the start. Sensors have their resolution, but no
    random noise. Inputs of a `Block` are voltages, and outputs also its Cartesian coordinates and ``status``.

    The FMU is for co-simulation. A communication step is a whole number of machine steps with constant inputs: set
    inputs at the controller's cycle for the results of `simulate`. Without control law, delay or thermal model it may have any
    length. Model exchange is possible, too, if inputs are torques, currents or voltages and no part counts steps.

    Parameters
    ----------
    robot : Mechanism, VirtualRobot or Block
        The identified robot, or a machine with any control law except one written in Python.
    path : path-like
        File to write, ``.fmu``.
    q : array_like (n,), optional
        Default start; when omitted zero, or the home position of a robot with loops.

    Returns
    -------
    pathlib.Path
        The file written; without a compiler it contains ``sources`` and no ``binaries``.
    """
    target = Path(path)
    if target.suffix.lower() != ".fmu":
        raise SimulationError(f"FMU '{target}' has the ending '{target.suffix}'; name it .fmu")
    content = _content(robot, q)
    name = identifier(content.robot.mechanism.name).lower()
    source = machine_source(content, name)
    token = "{" + hashlib.sha256(source.encode()).hexdigest()[:32] + "}"
    source = f'#define TOKEN "{token}"\n{source}'
    parts = {"modelDescription.xml": description(content, name, token).encode()}
    parts[f"sources/{name}.c"] = source.encode()
    parts["sources/buildDescription.xml"] = (
        '<?xml version="1.0" encoding="UTF-8"?>\n<fmiBuildDescription fmiVersion="3.0">\n'
        f'  <BuildConfiguration modelIdentifier="{name}">\n    <SourceFileSet language="C99">\n'
        f'      <SourceFile name="{name}.c"/>\n    </SourceFileSet>\n  </BuildConfiguration>\n</fmiBuildDescription>\n'
    ).encode()
    library = _compiled(source, name)
    if library is not None:
        parts[f"binaries/{_platform()}/{name}{_ending()}"] = library
    packed = BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for file, written in parts.items():
            archive.writestr(zipfile.ZipInfo(file, STAMP), written, zipfile.ZIP_DEFLATED)
    return write_atomic(target, packed.getvalue())


def _content(given: Mechanism | VirtualRobot | Block, q: ArrayLike | None) -> Content:
    """Return the content of the FMU; raise an error for unsupported machines."""
    block = given if isinstance(given, Block) else None
    robot = given.robot if isinstance(given, Block) else given
    machine = robot if isinstance(robot, VirtualRobot) else torque_driven(robot)
    mechanism = machine.mechanism
    if not isinstance(machine.controller, COMPILED):
        raise SimulationError(
            f"controller {type(machine.controller).__name__} is Python code, which cannot be translated to C; use a law of "
            "dynident.control, or OpenLoop with an external controller"
        )
    start = home_of(mechanism) if q is None else np.asarray(q, dtype=np.float64)
    if start.shape != (mechanism.dof,) or not np.isfinite(start).all():
        raise SimulationError(f"q is {start.tolist()}; give {mechanism.dof} finite numbers")
    start_state(mechanism, None if q is None else {"q": start}, (start, np.zeros_like(start)))
    moving = machine_of(machine, start)
    bare = not isinstance(robot, VirtualRobot)
    return Content(machine, moving, start, bare, _continuous(machine, moving), block)


def _continuous(robot: VirtualRobot, machine: Machine) -> bool:
    """Return whether an external solver can integrate a machine: no part counts steps or remembers the last one."""
    layout = machine.layout
    held = bool(machine.number(layout.numbers.late)) or any(layout.limited)
    return isinstance(robot.controller, OpenLoop) and not (held or layout.remembering or layout.loading or layout.balls)


def _platform() -> str:
    machine = {"amd64": "x86_64", "arm64": "aarch64"}.get(platform.machine().lower(), platform.machine().lower())
    return f"{machine}-{platform.system().lower()}"


def _ending() -> str:
    return {"Windows": ".dll", "Darwin": ".dylib"}.get(platform.system(), ".so")


def _compiled(source: str, name: str) -> bytes | None:
    """Return the shared library; None without a C compiler."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        return None
    level = "-O2" if len(source) < LONG else "-O1"
    command = [compiler, "-std=c99", level, "-ffp-contract=off", "-fPIC", "-shared", "-fvisibility=hidden"]
    try:
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / f"{name}.c").write_text(source, encoding="ascii")
            done = subprocess.run(
                [*command, f"{name}.c", "-lm", "-o", "library"],
                cwd=folder,
                capture_output=True,
                text=True,
                timeout=SECONDS,
                check=False,
            )
            if done.returncode:
                raise SimulationError(f"the C compiler '{compiler}' refused the robot's code: {done.stderr.strip()[:300]}")
            return (Path(folder) / "library").read_bytes()
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SimulationError(f"the C compiler '{compiler}' did not finish: {error}") from error


# ---- modelDescription.xml --------------------------------------------------------------------------------------------


Pairs = Sequence[tuple[str, str]]  # identifiers and names
SIGNALS = {
    "q": ("q", "position"),
    "v": ("v", "velocity"),
    "a": ("a", "acceleration"),
    "torques": ("tau", "torque behind the gear"),
    "current": ("i", "motor current"),
}


class _Variables:
    """Variables with ascending value references."""

    def __init__(self) -> None:
        self.rows = ['    <Float64 name="time" valueReference="0" causality="independent" variability="continuous"/>']

    def add(self, name: str, about: str, attributes: str) -> int:
        """Add a variable and return its reference."""
        reference = len(self.rows)
        self.rows.append(
            f'    <Float64 name="{name}" valueReference="{reference}" {attributes} description="{xml_text(about)}"/>'
        )
        return reference


def description(content: Content, name: str, token: str) -> str:
    """Return the text of modelDescription.xml."""
    robot, variables = content.robot, _Variables()
    joints, motors = robot.mechanism.coordinate_names, [drive.actuator for drive in robot.drives]
    labels, wheels = identifiers(joints), identifiers(motors)
    outputs = []
    calculated = 'causality="output" variability="continuous" initial="calculated"'
    for signal in content.shown:
        symbol, meaning = SIGNALS[signal]
        for own, what in zip(labels, joints, strict=True) if signal in "qva" else zip(wheels, motors, strict=True):
            outputs.append(variables.add(f"{symbol}_{own}", f"{meaning} of {what}", calculated))
    if content.heat is not None:
        zones = list(content.heat.heating)
        for own, what in zip(identifiers(zones), zones, strict=True):
            outputs.append(variables.add(f"T_{own}", f"temperature of {what} in degree Celsius", calculated))
    if content.block is not None:
        outputs += [variables.add(each, "Cartesian coordinate", calculated) for each in content.block.names]
        about = "0 fine, 1 a current or voltage is cut, 2 a coordinate is outside its limits, 3 both"
        outputs.append(variables.add("status", about, calculated))
    _inputs(content, variables, list(zip(labels, joints, strict=True)), list(zip(wheels, motors, strict=True)))
    for symbol, meaning, values in (("q0", "position", content.start), ("v0", "velocity", 0.0 * content.start)):
        for own, what, x in zip(labels, joints, values, strict=True):
            fixed = f'causality="parameter" variability="fixed" initial="exact" start="{float(x)!r}"'
            variables.add(f"{symbol}_{own}", f"{meaning} of {what} at the start", fixed)
    states, rates, indicators = _states(content, variables) if content.exchange else ([], [], [])
    parts = {"Output": outputs, "ContinuousStateDerivative": rates, "InitialUnknown": [*outputs, *states, *rates]}
    parts["EventIndicator"] = indicators
    structure = [f'    <{kind} valueReference="{r}"/>' for kind, references in parts.items() for r in references]
    return _document(content, name, token, variables.rows, structure)


def _inputs(content: Content, variables: _Variables, joints: Pairs, motors: Pairs) -> None:
    """Add commands of the actuators, or the reference motion."""
    entering = 'causality="input" variability="continuous" start="{!r}"'
    if content.driven:
        command = "voltage" if content.block else getattr(content.robot.controller, "command", "torque")
        for own, what in motors:
            variables.add(f"u_{own}", f"{command} of {what}", entering.format(0.0))
        return
    for symbol, meaning in (("q", "position"), ("v", "velocity"), ("a", "acceleration")):
        for (own, what), x in zip(joints, content.start, strict=True):
            held = float(x) if symbol == "q" else 0.0
            variables.add(f"{symbol}_ref_{own}", f"wanted {meaning} of {what}", entering.format(held))


def _states(content: Content, variables: _Variables) -> tuple[list[int], list[int], list[int]]:
    """Add the states of model exchange, their derivatives and event indicators; return their references."""
    s = content.machine.layout.state
    moving = {"q": s.q, "v": s.v, "theta": s.theta, "omega": s.omega, "coil": s.coil}
    names = [f"{name}_{i}" for name, field in moving.items() for i in range(field.count)]
    if content.heat is not None:
        names += [f"heat_{zone}_{i}" for zone in range(len(content.heat.heating)) for i in range(ORDER)]
    local = 'causality="local" variability="continuous" initial="calculated"'
    states = [variables.add(f"x_{name}", "continuous state", local) for name in names]
    rates = [
        variables.add(f"der_x_{name}", "its derivative", f'{local} derivative="{state}"')
        for name, state in zip(names, states, strict=True)
    ]
    count = 2 * len(content.machine.layout.jumping)
    return states, rates, [variables.add(f"z_{i}", "event indicator of dry friction", local) for i in range(count)]


def _document(content: Content, name: str, token: str, variables: Sequence[str], structure: Sequence[str]) -> str:
    step = content.robot.step
    cycle = min(loop_cycles(content.robot.controller).values(), default=step)
    kept = 'canGetAndSetFMUState="true" canSerializeFMUState="true"'
    fixed = "" if content.divisible else f' fixedInternalStepSize="{step!r}"'
    exchange = f'  <ModelExchange modelIdentifier="{name}" {kept}/>'
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f'<fmiModelDescription fmiVersion="3.0" modelName="{xml_text(content.robot.mechanism.name)}" '
        f'instantiationToken="{token}" generationTool="dynident">',
        *([exchange] if content.exchange else []),
        f'  <CoSimulation modelIdentifier="{name}" canHandleVariableCommunicationStepSize="true" {kept}{fixed}/>',
        f'  <DefaultExperiment startTime="0.0" stopTime="1.0" stepSize="{cycle!r}"/>',
        *("  <ModelVariables>", *variables, "  </ModelVariables>"),
        *("  <ModelStructure>", *structure, "  </ModelStructure>"),
        "</fmiModelDescription>",
        "",
    ]
    return visible("\n".join(lines))
