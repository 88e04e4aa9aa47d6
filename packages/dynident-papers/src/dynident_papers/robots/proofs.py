"""Test cases of the ready machines: motions for identification, other motions to compare controllers, published numbers.

DualV runs Fourier motions of its platform in a box around its home; two faster ones stand for the two trajectories of
[Briot2015, Table 4], which are not printed. The RRR robot writes letters ([Kostic2002, section V]; path and speeds are
our own). Every other machine moves through a box around the pose it starts from.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from dynident.control import Cascade
from dynident.errors import DynidentError
from dynident.friction import Sigmoid
from dynident.mechanics import Motion
from dynident.mechanism.describe import effort_units
from dynident.simulate import VirtualRobot, with_noise
from dynident.simulate.robot import home_of
from dynident.trajectory import random_motion
from dynident_lab.testbench.tracking_case import BOX, ProofCase
from dynident_lab.tool_paths import joint_motion
from dynident_papers import robots
from dynident_papers.trajectories.letters import write

TOOLS = {"five_bar": "platform", "mast": "platform"}
"""Tool link of machines with loops."""
REPAIR = 0.2
"""Inertia added to q4 and q5 of CFT [kg m^2] that makes its mass matrix positive definite everywhere."""
FASTEST = 0.35
"""Period of DualV's two trajectories [s]: about the shortest that its motors allow (115 of 127 N m)."""


def writing(
    text: str = "om y", height: float = 0.06, speed: float = 0.4, acceleration: float = 2.0, rate: float = 500.0
) -> Motion:
    """Return the joint motion of the RRR robot that writes letters in a plane of constant y [Kostic2002, section V]."""
    task = write(text, height, (0.1, -0.4, 0.5), speed=speed, acceleration=acceleration)
    return joint_motion(robots.rrr.mechanism(), task.sample(rate), posture="front up")


def proof_case(name: str, machine: VirtualRobot | None = None, seed: int = 0) -> ProofCase:
    """Return the test case of a machine: motions for identification, others to compare controllers, published numbers."""
    machine = ready_machine(name) if machine is None else machine
    make = {"dualv": _dualv, "rrr": _rrr}.get(name)
    case = _other(name, machine, seed) if make is None else make(machine, seed)
    notes = getattr(getattr(robots, name), "NOTES", ()) if name in robots.ROBOTS else ()
    return replace(case, options={"notes": notes, **case.options})


def _dualv(machine: VirtualRobot, seed: int) -> ProofCase:
    """Two trajectories as fast as the motors allow; identified projected on the platform (case 1) and on three motors."""
    home = np.zeros(3)
    training = [random_motion(home, robots.dualv.BOX, seed + i, 1.0) for i in range(4)]
    motions = {f"trajectory {i}": random_motion(home, robots.dualv.BOX, seed + 100 + i, FASTEST, periods=2) for i in (1, 2)}
    case_2 = {"identified, case 2": ("motor_1", "motor_2", "motor_3")}
    options = {"projection": "independent", "projections": case_2, "effort_unit": "N m", "tool": "platform", "shafts": True}
    return ProofCase(with_noise(machine, training[0], 0.1), training, motions, robots.dualv.TABLE_4, None, options)


def _rrr(machine: VirtualRobot, seed: int) -> ProofCase:
    """The writing task; identified with viscous and Coulomb friction, and with the friction law of [Kostic2002]."""
    task = writing()
    training = [random_motion(task.q[0], (0.9, 0.7, 0.9), seed + i, 8.0) for i in range(2)]
    ratio = tuple(n / c for n, c in zip(robots.rrr.RMS_FEEDFORWARD, robots.rrr.RMS_FEEDBACK, strict=True))
    efforts: dict[str, list[Sequence[float]]] = {
        "model's share": [robots.rrr.RMS_FEEDFORWARD],
        "feedback's share": [robots.rrr.RMS_FEEDBACK],
        "ratio": [ratio],
    }
    return ProofCase(
        with_noise(machine, training[0]),
        training,
        {"writing 'om y'": task},
        efforts=efforts,
        options={"effort_unit": "V"},
        friction=("identified, sigmoid friction", Sigmoid(2)),
    )


def _other(name: str, machine: VirtualRobot, seed: int) -> ProofCase:
    """Motions through a box around the pose the machine starts from."""
    law = machine.controller
    if isinstance(law, Cascade):  # otherwise the lag of the position loop hides the benefit of a model
        machine = replace(machine, controller=replace(law, velocity_feedforward=1.0))
    m = machine.mechanism
    units = effort_units(m)
    usual = [BOX["m" if units[name] == "N" else "rad"] for name in m.coordinate_names]
    box = np.array(getattr(getattr(robots, name, None), "BOX", usual))
    centre = home_of(m)
    if name == "cft":  # at zero its arm is stretched
        pose = np.atleast_2d(robots.cft.ASSUMPTIONS["pose"].value)
        centre, box = robots.cft.cartesian_reference([0.0], pose, 0.0 * pose, 0.0 * pose).q[0], 0.5 * box
    training = [random_motion(centre, box, seed + i) for i in range(2)]
    motions = {f"motion {i}": random_motion(centre, 0.7 * box, seed + 100 + i, 6.0) for i in (1, 2)}
    options = {"tool": TOOLS[name]} if name in TOOLS else {}
    return ProofCase(with_noise(machine, training[0]), training, motions, options=options)


def ready_machine(name: str, added_inertia: float | None = None) -> VirtualRobot:
    """Return the machine of a robot of the literature, for its whole workspace."""
    if name not in robots.ROBOTS:
        raise DynidentError(f"there is no machine '{name}'; machines are {', '.join(robots.ROBOTS)}")
    if name != "cft" and added_inertia is not None:
        raise DynidentError(f"added inertia is {added_inertia:g}, but '{name}' needs none; it is for 'cft' only")
    options = {"added_inertia": REPAIR if added_inertia is None else added_inertia} if name == "cft" else {}
    machine: VirtualRobot = getattr(robots, name).machine(**options)
    return machine
