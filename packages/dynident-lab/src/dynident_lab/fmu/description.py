"""modelDescription.xml of an FMU: what goes in and comes out, in the order of the value references of ``fmu.c``."""

from __future__ import annotations

from collections.abc import Sequence

from dynident.files import visible, xml_text
from dynident.graph.printing import identifiers
from dynident.simulate.schedule import loop_cycles
from dynident_lab.fmu.source import ORDER, Content

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
        """Add one and return its reference."""
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
    """Add commands of the actuators, or the wanted motion."""
    entering = 'causality="input" variability="continuous" start="{!r}"'
    if content.driven:
        command = getattr(content.robot.controller, "command", "torque")
        for own, what in motors:
            variables.add(f"u_{own}", f"{command} of {what}", entering.format(0.0))
        return
    for symbol, meaning in (("q", "position"), ("v", "velocity"), ("a", "acceleration")):
        for (own, what), x in zip(joints, content.start, strict=True):
            held = float(x) if symbol == "q" else 0.0
            variables.add(f"{symbol}_ref_{own}", f"wanted {meaning} of {what}", entering.format(held))


def _states(content: Content, variables: _Variables) -> tuple[list[int], list[int], list[int]]:
    """Add the states of model exchange, their derivatives and event indicators; return their references."""
    memory = content.machine.memory
    names = [f"{field}_{i}" for field in ("q", "v", "theta", "omega", "coil") for i in range(memory.state.count(field))]
    if content.heat is not None:
        names += [f"heat_{zone}_{i}" for zone in range(len(content.heat.heating)) for i in range(ORDER)]
    local = 'causality="local" variability="continuous" initial="calculated"'
    states = [variables.add(f"x_{name}", "continuous state", local) for name in names]
    rates = [
        variables.add(f"der_x_{name}", "its derivative", f'{local} derivative="{state}"')
        for name, state in zip(names, states, strict=True)
    ]
    count = 2 * len(content.machine.shape.jumping)
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
