"""A robot as a Functional Mock-up Unit (FMI 3.0): the compiled step of `VirtualRobot`, printed as C.

    co-simulation:   u (torques, held over a step)  ->  q, v, a
    model exchange:  d/dt (q, v) = (v, M^-1 (A^T u - h(q, v)))

Co-simulation is the code of the simulation itself, dry friction that sticks included, so both give the same numbers. In model
exchange the solver outside steps; there dry friction is spread over `WIDTH`, since such a solver knows no sticking.
"""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import subprocess
import tempfile
import zipfile
from html import escape
from importlib.resources import files
from io import BytesIO
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynident.control import OpenLoop
from dynident.drive import Drive, Motor, Transmission
from dynident.errors import SimulationError
from dynident.files import visible, write_atomic
from dynident.graph import Function, Graph, c_files, c_number, identifier, identifiers, substitute, total
from dynident.mechanics import Equations, at_rest, solve_symmetric, tree_motion
from dynident.mechanism import Mechanism
from dynident.simulate.dynamics import Dynamics
from dynident.simulate.machine import Machine
from dynident.simulate.robot import VirtualRobot
from dynident.simulate.run import machine_of
from dynident.simulate.step import Step
from dynident.simulate.thermal import Heat
from dynident.simulate.tick import Tick

Array = NDArray[np.float64]

WIDTH = 1e-3  # speed over which dry friction changes its sign in model exchange [rad/s, m/s]
SECONDS = 120.0  # for the C compiler
STAMP = (1980, 1, 1, 0, 0, 0)  # of every file: the same robot gives the same bytes


def torque_driven(mechanism: Mechanism, step: float = 1e-3) -> VirtualRobot:
    """Return a machine whose actuators give the torques that they are told, without dynamics of their own.

    Parameters
    ----------
    mechanism : Mechanism
        The robot with its numbers, such as ``fit.identified``.
    step : float
        Step of the plant [s].

    Returns
    -------
    VirtualRobot
        The machine; its controller holds zero torques.
    """
    drives = [Drive(a.name, Motor(1.0), Transmission(ratio=a.ratio)) for a in mechanism.actuators]
    return VirtualRobot(mechanism, drives, OpenLoop(torque=np.zeros(len(drives))), step=step)


def write_fmu(robot: Mechanism | VirtualRobot, path: str | os.PathLike[str], q: ArrayLike | None = None) -> Path:
    """Write a robot as an FMU (FMI 3.0), compiled for this computer when it has a C compiler.

    It is for co-simulation and, where the drives only hand torques on, for model exchange too.

    Inputs are the torques of the actuators (behind the gear), outputs q, v and a of every coordinate; ``q0`` and ``v0`` are
    the start. A communication step is divided into steps of at most ``robot.step``. Friction that depends on temperature is
    that of the start, since an FMU does not warm up.

    Parameters
    ----------
    robot : Mechanism or VirtualRobot
        The identified robot, or a machine with rigid drives whose controller is an `OpenLoop`, which
        ``dataclasses.replace(machine, controller=OpenLoop(torque=zeros))`` gives.
    path : path-like
        File to write, ``.fmu``.
    q : array_like (n,), optional
        Default start; zero when omitted.

    Returns
    -------
    pathlib.Path
        The file written; its folder ``binaries`` is empty, and only ``sources`` are in it, where there is no compiler.
    """
    target = Path(path)
    if target.suffix.lower() != ".fmu":
        raise SimulationError(f"FMU '{target}' has the ending '{target.suffix}'; name it .fmu")
    machine = robot if isinstance(robot, VirtualRobot) else torque_driven(robot)
    _check(machine)
    name = identifier(machine.mechanism.name).lower()
    start = np.zeros(machine.mechanism.dof) if q is None else np.asarray(q, dtype=np.float64)
    if start.shape != (machine.mechanism.dof,) or not np.isfinite(start).all():
        raise SimulationError(f"q is {start.tolist()}; give {machine.mechanism.dof} finite numbers")
    moving = machine_of(machine, start)
    if machine.thermal:
        moving.warm(*Heat(machine.mechanism, machine.drives, machine.thermal, machine.ambient).scales(moving.shape.owners))
    exchange = not isinstance(robot, VirtualRobot) and _is_smooth(robot)
    source = _source(moving, name, _derivative(machine.mechanism) if exchange else None)
    token = "{" + hashlib.sha256(source.encode()).hexdigest()[:32] + "}"
    source = f'#define TOKEN "{token}"\n{source}'
    parts = {"modelDescription.xml": _description(machine, name, token, start, exchange).encode()}
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
        for file, content in parts.items():
            archive.writestr(zipfile.ZipInfo(file, STAMP), content, zipfile.ZIP_DEFLATED)
    return write_atomic(target, packed.getvalue())


def _check(robot: VirtualRobot) -> None:
    if not isinstance(robot.controller, OpenLoop):
        kind = type(robot.controller).__name__
        raise SimulationError(f"the controller is a {kind}; an FMU takes the torques as inputs: give an OpenLoop")
    if robot.mechanism.loops:
        raise SimulationError(f"robot '{robot.mechanism.name}' has loops; an FMU is made of trees")
    for drive in robot.drives:
        if not drive.rigid or drive.motor.inductance:
            raise SimulationError(f"drive '{drive.actuator}' has shafts or windings; an FMU is made of rigid drives")


def _is_smooth(mechanism: Mechanism) -> bool:
    """Tell whether q and v of a robot are all of its state, and v the rate of q."""
    plain = all(joint.kind not in ("free", "spherical") for joint in mechanism.joints)
    return plain and not mechanism.friction and not any(c.function is not None for c in mechanism.couplings)


def _derivative(mechanism: Mechanism) -> Function:
    """Return the accelerations that torques of the actuators cause, with the robot's numbers inside."""
    graph = Graph()
    robot = Equations(mechanism, graph, phi=[graph.const(float(x)) for x in mechanism.parameters.values])
    robot.width = graph.const(WIDTH)
    n, k = mechanism.dof, len(mechanism.actuators)
    u = graph.symbols("u", k)
    A = mechanism.actuator_matrix[0] / np.array([[actuator.ratio] for actuator in mechanism.actuators])  # behind the gears
    still = substitute(robot.torques(), dict.fromkeys(robot.a, graph.zero))
    right = [[total([-h, *(u[a] * float(A[a, i]) for a in range(k) if A[a, i])])] for i, h in enumerate(still)]
    solved = solve_symmetric(robot.mass_matrix(), right)[0]
    return Function("acceleration_of", {"q": n, "v": n, "u": k}, {"acc": [row[0] for row in solved]})


def _platform() -> str:
    machine = {"amd64": "x86_64", "arm64": "aarch64"}.get(platform.machine().lower(), platform.machine().lower())
    return f"{machine}-{platform.system().lower()}"


def _ending() -> str:
    return {"Windows": ".dll", "Darwin": ".dylib"}.get(platform.system(), ".so")


def _compiled(source: str, name: str) -> bytes | None:
    """Return the shared library; None where there is no C compiler."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / f"{name}.c").write_text(source, encoding="ascii")
        command = [compiler, "-std=c99", "-O2", "-ffp-contract=off", "-fPIC", "-shared", "-fvisibility=hidden"]
        try:
            done = subprocess.run(
                [*command, f"{name}.c", "-lm", "-o", "library"],
                cwd=folder,
                capture_output=True,
                text=True,
                timeout=SECONDS,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise SimulationError(f"the C compiler '{compiler}' did not finish: {error}") from error
        if done.returncode:
            raise SimulationError(f"the C compiler '{compiler}' refused the robot's code: {done.stderr.strip()[:300]}")
        return (Path(folder) / "library").read_bytes()


def _table(name: str, values: Array) -> str:
    flat = [c_number(float(x)) for x in values.ravel()] or ["0.0"]
    rows = [", ".join(flat[i : i + 6]) for i in range(0, len(flat), 6)]
    return f"static const double {name}[{len(flat)}] = {{\n    " + ",\n    ".join(rows) + "\n};\n"


def _source(machine: Machine, name: str, derivative: Function | None) -> str:
    """Return the C of the machine with its numbers and the interface around it."""
    memory, shape = machine.memory, machine.shape
    dynamics = Dynamics(shape, memory, Graph())
    step = Step(dynamics, Tick(dynamics).control()).run()
    printed = c_files(name, [step] if derivative is None else [step, derivative], f"robot {shape.mechanism.name}")
    code = printed[f"{name}.c"].replace(f'#include "{name}.h"\n', "")
    for function in ("run", "acceleration_of"):
        code = code.replace(f"\nvoid {function}(", f"\nstatic void {function}(")
    if derivative is None:
        code += (
            "\nstatic void acceleration_of(const double *q, const double *v, const double *u, double *acc)\n"
            "{\n    (void)q; (void)v; (void)u; (void)acc;\n}\n"
        )
    n, k = shape.mechanism.dof, len(shape.drives)
    units = np.eye(n)
    rates = tree_motion(shape.mechanism, at_rest(shape.mechanism, np.tile(machine.of("q"), (n, 1)), units)).v
    forms = np.array([np.asarray(shape.owners[i].form) @ rates.T for i in shape.jumping]).reshape(len(shape.jumping), n)
    sizes = {"Q": f"{n}U", "U": f"{k}U", "STATE": machine.state.size, "NUMBERS": machine.numbers.size}
    sizes |= {
        "SIDE": len(shape.jumping),
        "WORK": memory.work.size,
        "MOTION": max(memory.motion.size, 1),
        "CALL": memory.call.size,
    }
    sizes |= {"RECORD": memory.record.size, "NOTHING": max(memory.noise_width(machine.numbers), k, 1) + 6}
    places = {"Q": "q", "V": "v", "A": "acceleration", "SIDE": "side", "BEGIN": "begin", "COUNTER": "step"}
    lines = [f"#define COUNT_{key} {value}" for key, value in sizes.items()]
    lines.append(f"#define HAS_EXCHANGE {int(derivative is not None)}")
    lines += [f"#define AT_{key} {memory.state.at(field)}" for key, field in places.items()]
    asked = ("steps", "table_rows", "noise_rows", "push_rows", "push_every", "record_every", "record_rows", "status")
    lines += [f"#define AT_{field.upper()} {memory.call.at(field)}" for field in asked]
    lines += [f"#define AT_STEP {memory.numbers.at('step')}", f"#define STEP {c_number(machine.step)}", ""]
    lines += ["#include <stdbool.h>", "#include <stddef.h>", "#include <stdlib.h>", "#include <string.h>", ""]
    tables = [_table("numbers", machine.numbers), _table("start", machine.state), _table("side_form", forms)]
    interface = (files("dynident.simulate") / "fmu.c").read_text(encoding="ascii")
    return "\n".join([code, *lines, *tables, interface])


def _description(robot: VirtualRobot, name: str, token: str, start: Array, exchange: bool) -> str:
    """Return modelDescription.xml."""
    mechanism = robot.mechanism
    labels, motors = identifiers(mechanism.coordinate_names), identifiers([a.name for a in mechanism.actuators])
    rows = ['    <Float64 name="time" valueReference="0" causality="independent" variability="continuous"/>']
    reference = 1
    outputs: list[int] = []
    meanings = {"q": "position", "v": "velocity", "a": "acceleration"}
    for symbol, meaning in meanings.items():
        for own in labels:
            about = f'description="{meaning} of {escape(own)}"'
            about += f' derivative="{reference - len(labels)}"' if symbol != "q" and exchange else ""
            rows.append(
                f'    <Float64 name="{symbol}_{own}" valueReference="{reference}" causality="output" '
                f'variability="continuous" initial="calculated" {about}/>'
            )
            outputs.append(reference)
            reference += 1
    for own in motors:
        about = f'description="{robot.controller.command} of {escape(own)}"'  # type: ignore[union-attr]
        rows.append(
            f'    <Float64 name="u_{own}" valueReference="{reference}" causality="input" variability="continuous" '
            f'start="0.0" {about}/>'
        )
        reference += 1
    for symbol, values in (("q0", start), ("v0", np.zeros_like(start))):
        for own, x in zip(labels, values, strict=True):
            rows.append(
                f'    <Float64 name="{symbol}_{own}" valueReference="{reference}" causality="parameter" variability="fixed" '
                f'initial="exact" start="{float(x)!r}"/>'
            )
            reference += 1
    structure = [f'    <Output valueReference="{r}"/>' for r in outputs]
    if exchange:
        structure += [f'    <ContinuousStateDerivative valueReference="{r}"/>' for r in outputs[len(labels) :]]
    structure += [f'    <InitialUnknown valueReference="{r}"/>' for r in outputs]
    lines = "\n".join(
        [
            '<?xml version="1.0" encoding="UTF-8"?>',
            f'<fmiModelDescription fmiVersion="3.0" modelName="{escape(mechanism.name)}" instantiationToken="{token}" '
            'generationTool="dynident">',
            *(
                [f'  <ModelExchange modelIdentifier="{name}" canGetAndSetFMUState="true" canSerializeFMUState="true"/>']
                if exchange
                else []
            ),
            f'  <CoSimulation modelIdentifier="{name}" canHandleVariableCommunicationStepSize="true" '
            'canGetAndSetFMUState="true" canSerializeFMUState="true" canBeInstantiatedOnlyOncePerProcess="false"/>',
            f'  <DefaultExperiment startTime="0.0" stopTime="1.0" stepSize="{robot.step!r}"/>',
            "  <ModelVariables>",
            *rows,
            "  </ModelVariables>",
            "  <ModelStructure>",
            *structure,
            "  </ModelStructure>",
            "</fmiModelDescription>",
            "",
        ]
    )
    return visible(lines)
