"""Built-in robots of the literature: entry points of the group ``dynident.robots``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

import dynident as di
from dynident.arrays import Array
from dynident.cli.robots import KnownRobot, Published, PublishedResponse
from dynident.errors import DynidentError
from dynident.friction import Polynomial
from dynident_papers import robots
from dynident_papers.robots.shared import joint_laws, without_terms

if TYPE_CHECKING:
    from dynident.excitation import Plan
    from dynident.simulate import VirtualRobot
    from dynident_lab.fmu import Block
    from dynident_lab.testbench.tracking_case import ProofCase

NOISE = 1e-3  # of a recorded effort, relative to the largest: two counts of 12 bits
RANGE = 20.0  # A: range of a current sensor if the drive has no limit
STIFFER: dict[str, dict[str, Any]] = {
    "prs3": {"velocity_feedforward": 1.0, "position_cycle": 0.001}
}  # otherwise the sliders are stationary a fifth of the time
FINE = 500.0  # Hz: rate of a sampled motion


def _published(name: str, mechanism: di.Mechanism) -> Published:
    from dynident_papers.robots.published import published  # noqa: PLC0415 - few commands need it

    return published(name, mechanism)


def _machine(name: str, **options: float) -> VirtualRobot:
    """Return a machine with its built-in name; sensors without effort noise get the noise of 12 bits."""
    from dynident_papers.robots.proofs import ready_machine  # noqa: PLC0415 - few commands need it

    found = ready_machine(name, **options)
    sensors = found.sensors
    if not np.any(sensors.effort_noise):
        largest = np.array([min(drive.motor.current_limit, RANGE) for drive in found.drives])
        sensors = replace(sensors, effort_noise=NOISE * largest)
    controller = found.controller
    if name in STIFFER and isinstance(controller, di.control.Cascade):
        controller = replace(controller, **STIFFER[name])
    return replace(found, mechanism=replace(found.mechanism, name=name), sensors=sensors, controller=controller)


def _proof_case(name: str, options: Mapping[str, float], seed: int) -> ProofCase:
    from dynident_papers.robots.proofs import proof_case  # noqa: PLC0415 - one command needs it

    return proof_case(name, _machine(name, **options), seed)


def _mechanism(name: str) -> di.Mechanism:
    """Return the model of a machine: every command then has the same coordinates and parameters.

    Friction laws that are linear in their parameters replace viscous and Coulomb terms; slopes of tanh are for ``--friction``.
    """
    machine = _machine(name)
    laws = {joint: law for joint, law in joint_laws(machine).items() if isinstance(law.law, Polynomial)}
    return without_terms(machine.model, tuple(laws), ("fc", "fv")).with_friction(laws) if laws else machine.model


def _chain(name: str) -> di.Mechanism:
    """Return a robot as in its document."""
    found: di.Mechanism = getattr(robots, name).mechanism()
    return found


def _robot(name: str, **options: float) -> KnownRobot:
    """Return a robot by the name of its module, imported on demand, and options of its machine."""
    return KnownRobot(
        mechanism=partial(_mechanism, name),
        machine=partial(_machine, name, **options),
        published=partial(_published, name),
        proof_case=partial(_proof_case, name, options),
    )


def _closed(name: str) -> KnownRobot:
    """Return a robot with loops and closed-form inverse kinematics from its document."""
    return replace(_robot(name), branches=partial(_branches, name))


def _branches(name: str, position: Array, rpy: Array) -> dict[str, Array]:
    """Return the actuated joints by working mode, from the closed forms of a robot with loops."""
    known, (x, y, z) = getattr(robots, name), position
    solve: dict[str, Callable[[], Array]]
    if name in ("prr2", "replalink"):
        return dict(zip(known.WORKING_MODES, known.inverse_kinematics((x, y))[0], strict=True))
    if name == "dualv":
        shapes = {mode: known.Geometry(working_mode=mode) for mode in known.WORKING_MODES}
        solve = {k: lambda g=g: known.inverse_kinematics((x, y, rpy[2]), g)[0, :, 0] for k, g in shapes.items()}  # type: ignore[misc]
    elif name == "five_bar":
        shapes = {f"{a:+d}{b:+d}": known.Geometry(working_mode=(a, b)) for a in (1, -1) for b in (1, -1)}
        solve = {k: lambda g=g: known.inverse_kinematics((x, y), g)[0, [0, 3]] for k, g in shapes.items()}  # type: ignore[misc]
    else:  # a tripod: z, psi about x and theta about y
        pose = (z, rpy[0], rpy[1])
        solve = {k: lambda k=k: known.inverse_kinematics(pose, k)[0] for k in known.WORKING_MODES}  # type: ignore[misc]
    found = {}
    for mode, formula in solve.items():
        try:
            found[mode] = formula()
        except DynidentError:  # out of reach
            found[mode] = np.full({"dualv": 4, "five_bar": 2}.get(name, 3), np.nan)
    return found


def _five_bar_tests() -> list[Mapping[str, Any]]:
    return [row._asdict() for row in robots.five_bar.compare()]


def _mast_response(coordinate: str) -> PublishedResponse:
    """Return the points of the heave, and the amplitude for every coordinate."""
    mast = robots.mast
    amplitude = float(mast.ASSUMPTIONS["amplitude"].value)
    if coordinate != "z":
        return PublishedResponse({}, {}, amplitude=amplitude, unloaded=mast.unloaded)
    return PublishedResponse(mast.BODE, mast.BANDWIDTHS, mast.BANDWIDTH_NOTES, amplitude, mast.unloaded)


def _cft_cartesian() -> di.Mechanism:
    return replace(robots.cft.cartesian_model(), name="cft_cartesian")


def _cft_reference(plan: Plan) -> di.Motion | Plan:
    """Return a plan of xc1 ... xc4 as a finely sampled motion of the joints; plans of joints are unchanged."""
    if tuple(plan.coordinates) != robots.cft.CARTESIAN:
        return plan
    motion = plan.motion(max(plan.rate, FINE))
    return robots.cft.cartesian_reference(motion.t, motion.q, motion.v, motion.a)


def _cft_branches(position: Array, _: Array) -> dict[str, Array]:
    """Return nuts yr and xr, base and rail (59) with the tool at a position: four motors for three, so at three rail positions.

    The pantograph amplifies the nuts' motion: z = L2 - L7 + 7 yr, and the tool is L8 + d20' + 6 xr in front of the base.
    """
    data, (x, y, z) = robots.cft.data, position
    low, high = data.LIMITS[3] + data.DS
    found = {}
    for name, rail in (("rail lowest", low), ("rail in the middle", 0.5 * (low + high)), ("rail highest", high)):
        yr, xr = (z - data.L2 + data.L7) / 7.0, (np.hypot(x, y - rail) - data.L8 - data.D20) / 6.0
        inside = np.hypot(xr, yr) <= 2.0 * data.L4
        found[name] = np.array([yr, xr, np.arctan2(-x, y - rail), rail]) if inside else np.full(4, np.nan)
    return found


def _rrr_block(machine: VirtualRobot) -> Block:
    """Return the arm with the voltages of (8) as inputs: one ampere of its drives stands for one volt."""
    from dynident_lab.fmu import tool_block  # noqa: PLC0415 - one command needs it

    return tool_block(machine, gain=1.0)


def _cft_block(machine: VirtualRobot) -> Block:
    return robots.cft.voltage_block(machine)


def _cft_table(fit: di.Fit) -> str:
    """Return our and the printed 32 numbers of the report's Table 4, or the reason why they are not available."""
    try:
        return robots.cft.table_four(fit).text()
    except DynidentError as error:  # another friction law was chosen
        return str(error)


cft_published = replace(_robot("cft", added_inertia=0.0), mechanism=partial(_chain, "cft"), block=_cft_block)
cft = replace(
    _robot("cft"),
    friction=dict.fromkeys(("q1", "q2", "q4", "q5"), "viscous + tanh + tanh"),  # (13)
    possible=False,
    reference=_cft_reference,
    block=_cft_block,
    branches=_cft_branches,
    notes=(
        "0.2 kg m^2 are added to q4 and q5: the published mass matrix is indefinite on a third of the workspace; the robot "
        "cft_published is without them",
    ),
)
cft_cartesian = replace(cft, mechanism=_cft_cartesian, parameters=_cft_table, branches=None)
dualv = _closed("dualv")
er3a_c60 = _robot("er3a_c60")
five_bar = replace(_closed("five_bar"), compare=_five_bar_tests, friction=dict.fromkeys(("alpha1", "alpha4"), "viscous + tanh"))
mast = replace(_closed("mast"), response=_mast_response)
prr2 = _closed("prr2")
prs3 = replace(
    _closed("prs3"),
    parameters=lambda _: (
        "most of the held-out error is friction where it holds a slider: there it is any force up to its limit, which no law "
        "predicts; where all sliders move the error is about 2 %"
    ),
    notes=(
        "position loop every 1 ms with velocity feed-forward; with the 5 ms of [Ruiz2016] friction holds the sliders for a "
        "fifth of the time",
    ),
)
replalink = _closed("replalink")
rrr = replace(_robot("rrr"), block=_rrr_block, friction=dict.fromkeys(("waist", "shoulder", "elbow"), "sigmoid"))  # (9)
