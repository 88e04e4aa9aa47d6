"""C of a machine as an FMU: the compiled step and its surroundings, printed, with the machine's numbers as tables.

The surrounding FMI interface is written by hand: ``fmu.c`` (common to both kinds), ``cosimulation.c``,
``exchange.c`` and ``unused.c`` (FMI functions that no robot supports).
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files

import numpy as np

from dynident.arrays import Array
from dynident.control import OpenLoop
from dynident.errors import SimulationError
from dynident.graph import Function, Graph
from dynident.graph.algebra import dot, maximum, opposite
from dynident.graph.expression import Node
from dynident.graph.print_c import c_files, c_number
from dynident.graph.routine import Place, Routine
from dynident.mechanics.closure import close_positions
from dynident.mechanics.functions import geometry_key
from dynident.mechanism import Mechanism
from dynident.simulate import VirtualRobot
from dynident.simulate.dynamics import Dynamics
from dynident.simulate.friction import COLDEST
from dynident.simulate.layout import LOST_CLOSURE, Field, MachineRoutine, Record
from dynident.simulate.machine import Machine
from dynident.simulate.reference import Columns, columns_of
from dynident.simulate.run import THERMAL_CYCLE, rhythm, thinning
from dynident.simulate.step import Step, follow_branch
from dynident.simulate.tick import Tick
from dynident_lab.fmu.block import Block
from dynident_lab.thermal import ThermalModel
from dynident_lab.thermal.heat import Heat

ORDER = 2  # largest number of states of a thermal model
ARRAYS = ("a", "s", "p", "w", "m", "table", "noise", "push", "record")
ASSETS = ("fmu.c", "cosimulation.c", "exchange.c", "unused.c")
PARTS = ("run", "placed", "setpoint", "evaluate", "whereabouts", r"zone_\d+")  # functions called by the interface


class Poses:
    """Closed positions of the robots with loops, concatenated in one array; empty without loops."""

    def __init__(self, robots: Sequence[Mechanism]) -> None:
        self.size = 0
        self._places: dict[Hashable, tuple[int, Mechanism]] = {}
        for robot in robots:
            if robot.loops and geometry_key(robot) not in self._places:
                self._places[geometry_key(robot)] = self.size, robot
                self.size += len(robot.tree.coordinates)

    def start(self, x: Array) -> Array:
        """Return the closed positions at x."""
        return np.concatenate([np.zeros(0), *(close_positions(robot, x[None])[0] for _, robot in self._places.values())])

    def follow(self, r: Routine) -> None:
        """Move all positions to the wanted coordinates, or set the status."""
        for i, (first, robot) in enumerate(self._places.values()):
            follow_branch(r, robot, f"_wanted{i}", ("pose", first), ("wanted", 0), ("status", 0))

    def place(self, robot: Mechanism) -> Place:
        """Return the place of a robot's closed positions, the argument of its equations."""
        return ("pose", self._places[geometry_key(robot)][0]) if robot.loops else ("wanted", 0)


@dataclass(frozen=True, eq=False)
class Content:
    """Content of an FMU: the machine at its start, and the names of inputs and outputs."""

    robot: VirtualRobot
    machine: Machine  # its compiled form at the start of the FMU
    start: Array  # (n,) coordinates there
    bare: bool  # whether the FMU is a mechanism without drives
    exchange: bool  # whether it supports model exchange, too
    block: Block | None = None  # voltages in, Cartesian coordinates and status out

    @cached_property
    def reference(self) -> Columns:
        """Reference columns of its control law; empty if inputs are commands."""
        law = self.machine.law
        return Columns(len(self.machine.drives), None, ()) if self.driven else columns_of(self.machine.mechanism, law)

    @cached_property
    def poses(self) -> Poses:
        """Closed positions of the robots in the reference."""
        return Poses([part.model for part in self.reference.parts])

    @cached_property
    def heat(self) -> Heat | None:
        """Temperatures at the start."""
        return Heat(self.robot) if self.robot.thermal else None

    @property
    def driven(self) -> bool:
        """Whether inputs are commands of the actuators; otherwise they are the reference motion."""
        return isinstance(self.robot.controller, OpenLoop)

    @property
    def divisible(self) -> bool:
        """Whether a communication step may have any length: no part of the machine counts steps."""
        return self.driven and not self.machine.number(self.machine.layout.numbers.late) and self.heat is None

    @property
    def fine(self) -> int:
        """Steps between two evaluations of the losses, as in a run with the default log cycle."""
        _, every, finest = rhythm(self.robot)
        return every // thinning(0, every, finest, 0)

    @property
    def shown(self) -> dict[str, Field]:
        """Signals of the record used as outputs."""
        record = self.machine.layout.record
        moves = {"q": record.q, "v": record.v, "a": record.a}
        return moves if self.bare else {**moves, "torques": record.torques, "current": record.current}


def machine_source(content: Content, name: str) -> str:
    """Return the C code of an FMU without its token."""
    machine = content.machine
    dynamics = Dynamics(machine.layout, Graph())
    tick = Tick(dynamics)
    step = Step(dynamics, tick.control())
    parts: list[Function | Routine] = [step.run(), step.placed()]
    if not content.driven:
        parts.append(_setpoint(content))
    if content.exchange:
        parts.append(_evaluation(step))
    if content.block is not None:
        parts.append(content.block.function())
    if content.heat is not None:
        heated = content.heat.heating.items()
        parts += [_zone(i, name, heating.model, content.heat.ambient) for i, (name, heating) in enumerate(heated)]
    code = c_files(name, parts, f"robot {machine.mechanism.name}")[f"{name}.c"].replace(f'#include "{name}.h"\n', "")
    code = re.sub(rf"\nvoid ({'|'.join(PARTS)})\(", r"\nstatic void \1(", code)
    interface = "\n".join((files("dynident_lab.fmu") / asset).read_text(encoding="ascii") for asset in ASSETS)
    used = set(re.findall(r"\bAT_\w+", interface))  # of all places: names of fields that differ in case only are one macro
    sizes = [line for line in _sizes(content) if not line.startswith("#define AT_") or line.split()[1] in used]
    return "\n".join([code, *sizes, *_tables(content), interface])


def _setpoint(content: Content) -> Routine:
    """Return ``setpoint(pose, wanted, table, status)``, from q, v, a of the coordinates to a row of the law's reference."""
    r = Routine(Graph(), "setpoint", ("pose", "wanted", "table", "status"))
    n, reference = content.machine.mechanism.dof, content.reference
    content.poses.follow(r)
    if reference.copied is not None:
        r.store_all("table", reference.copied, r.load_all("wanted", 0, 3 * n))
    for i, part in enumerate(reference.parts):
        function = part.make()
        foreign = set(function.inputs) - {"q", "v", "a"}
        if foreign:
            raise SimulationError(
                f"the model '{part.model.name}' of the controller has numeric forces or couplings, which cannot be "
                "translated to C; write them as expressions"
            )
        places: dict[str, Place] = {"q": content.poses.place(part.model), "v": ("wanted", n), "a": ("wanted", 2 * n)}
        places["row"] = "table", part.first
        for name in function.shared:
            values = part.model.law_values if name == "law" else part.numbers[name]
            places[name] = r.local(f"{name}{i}", values.size), 0
            r.store_all(*places[name], values.tolist())
        if "ok" in function.outputs:
            places["ok"] = r.local(f"ok{i}", 1), 0
        r.call(function, **places)
        if "ok" in function.outputs:
            with r.when(opposite(r.load(*places["ok"]) > 0.0)):
                r.store("status", 0, LOST_CLOSURE)
    return r


def _evaluation(step: Step) -> Routine:
    """Return rates and true signals at one state, for an external solver; arrays are those of `Step.run`."""
    r = MachineRoutine(step.layout, step.graph, "evaluate", ARRAYS)
    r.put(r.w.status, 0.0)
    r.put(r.w.dt, 0.0)
    r.call(step.control)
    r.call(step.derivative, y="s", k=r.at(r.w.rates))
    r.put(r.a.status, r.get(r.w.status))
    places = {name: ("record", field.first) for name, field in step.layout.record.by_name().items()}
    r.call(step.d.record, y="s", z=r.at(r.w.z), k=r.at(r.w.rates), **places)
    r.put_all(r.s.acceleration, r.get_all(r.w.rates, step.d.n, step.layout.state.v.first))
    return r


# ---- numbers ----------------------------------------------------------------------------------------------------------


def _sizes(content: Content) -> list[str]:
    """Return the sizes and places that the interface needs."""
    machine, layout = content.machine, content.machine.layout
    n, k, heat = machine.mechanism.dof, len(machine.drives), content.heat
    zones = 0 if heat is None else len(heat.state)
    counts = {
        "Q": n,
        "DRIVES": k,
        "IN": k if content.driven else 3 * n,
        "SHOWN": sum(field.count for field in content.shown.values()),
        "ZONES": zones,
        "BLOCK": 0 if content.block is None else len(content.block.names) + 1,
        "OWNERS": len(machine.layout.owners),
        "TREE": layout.record.joint_power.count,
        "TABLE": content.reference.width,
        "POSE": max(content.poses.size, 1),
        "STATE": machine.state.size,
        "NUMBERS": machine.numbers.size,
        "WORK": layout.work.size,
        "MOTION": max(layout.motion.size, 1),
        "CALL": layout.call.size,
        "RECORD": layout.record.size,
        "NOTHING": max(machine.noise_width, layout.work.push.count, 1),
        "MOVING": layout.moving,
        "JUMPING": len(machine.layout.jumping),
        "BOUND": machine.layout.bound,
        "FIX": layout.motion.fix.count,
    }
    fine = content.fine
    thermal = max(1, round(THERMAL_CYCLE / (fine * machine.step))) * fine
    lines = [f"#define COUNT_{key} {value}" for key, value in counts.items()]
    lines += [f"#define {key} {int(value)}" for key, value in (("DRIVEN", content.driven), ("DIVISIBLE", content.divisible))]
    lines += [f"#define FINE {fine}", f"#define STRETCH {thermal}", f"#define HAS_EXCHANGE {int(content.exchange)}"]
    lines += [f"#define ORDER {ORDER}", f"#define STEP {c_number(machine.step)}"]
    for fields, prefix in (
        *((layout.state, "STATE"), (layout.work, "WORK"), (layout.motion, "MOTION")),
        *((layout.numbers, "NUMBER"), (layout.record, "RECORD"), (layout.call, "CALL")),
    ):
        lines += _places(fields, prefix)
    lines += [f"#define AT_COUNTER {layout.state.step.first}", f"#define HAS_LOOPS {int(bool(machine.mechanism.loops))}"]
    return [*lines, "", *(f"#include <{head}>" for head in ("stdbool.h", "stddef.h", "stdio.h", "stdlib.h", "string.h")), ""]


def _places(fields: Record[Field], prefix: str) -> list[str]:
    return [f"#define AT_{prefix}_{name.upper()} {field.first}" for name, field in fields.by_name().items()]


def _tables(content: Content) -> list[str]:
    machine = content.machine
    shown = [i for field in content.shown.values() for i in field.places]
    held = np.concatenate([content.start, np.zeros(2 * content.start.size)])
    tables = {
        "numbers": machine.numbers,
        "start": machine.state,
        "start_place": content.start,
        "start_input": np.zeros(len(machine.drives)) if content.driven else held,
        "start_pose": content.poses.start(content.start),
    }
    tables |= _thermal(content)
    if content.driven:
        tables["input_gain"] = np.ones(len(machine.drives)) if content.block is None else content.block.gains
    places = {"shown": shown, "zone_of": _zones(content)}
    count = 0 if content.heat is None else len(content.heat.heating)
    calls = ", ".join(f"zone_{i}" for i in range(count)) or "NULL"
    kind = "(const double *, const double *, double *, double *, double *)"
    zones = f"static void (*const zone_calls[{max(count, 1)}]){kind} = {{{calls}}};\n"
    return [*(_table(name, x) for name, x in tables.items()), *(_whole(name, x) for name, x in places.items()), zones]


def _zone(number: int, name: str, model: object, ambient: float) -> Function:
    """Return (state y, held W, losses and dt) -> (state after dt, rate, temperature and friction ratio) of a thermal model."""
    if not isinstance(model, ThermalModel):
        raise SimulationError(f"the thermal model of '{name}' is a {type(model).__name__}, which cannot become C")
    graph = Graph()
    y, (W, losses, dt) = graph.symbols("y", ORDER), graph.symbols("held", 3)
    own = y[: model.order]
    A, b = model.equations(model, W, ambient, ambient, losses)
    unused: list[Node | float] = [0.0] * (ORDER - model.order)
    after = [*model.step(model, own, W, dt, ambient, ambient, losses), *unused]
    rate = [*(x + dot([graph.node(a) for a in row], own) for row, x in zip(A, b, strict=True)), *unused]
    T = model.read(own, ambient)
    warm = [T, maximum(model.alpha * (T - model.reference) + model.beta, COLDEST)]
    outputs = {"after": after, "rate": rate, "warm": warm}
    nodes = {key: [graph.node(x) for x in values] for key, values in outputs.items()}
    return Function(f"zone_{number}", {"y": ORDER, "held": 3}, nodes)


def _thermal(content: Content) -> dict[str, Array]:
    """Return the heat sources of every thermal model (coordinate, drive, motor, watts per square ampere), and its start."""
    heat = content.heat
    if heat is None:
        return {"zones": np.zeros(4), "start_heat": np.zeros(ORDER)}
    states = np.zeros((len(heat.state), ORDER))
    for row, state in zip(states, heat.state.values(), strict=True):
        row[: state.size] = state
    return {"zones": np.array([heat.sources(name) for name in heat.heating]), "start_heat": states}


def _zones(content: Content) -> list[int]:
    """Return the thermal model of every owner of friction, -1 for none."""
    heat, owners = content.heat, content.machine.layout.owners
    names = [] if heat is None else list(heat.heating)
    found = [None if heat is None else heat.heats(owner) for owner in owners]
    return [-1 if name is None else names.index(name) for name in found]


def _table(name: str, values: Array) -> str:
    flat = [c_number(float(x)) for x in values.ravel()] or ["0.0"]
    rows = [", ".join(flat[i : i + 6]) for i in range(0, len(flat), 6)]
    return f"static const double {name}[{len(flat)}] = {{\n    " + ",\n    ".join(rows) + "\n};\n"


def _whole(name: str, values: Sequence[int]) -> str:
    flat = ", ".join(str(int(x)) for x in values) or "0"
    return f"static const int {name}[{max(len(values), 1)}] = {{{flat}}};\n"
