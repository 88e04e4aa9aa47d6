"""The RRR robot of TU Eindhoven: waist, shoulder, elbow, direct drives, in closed form.

Source: [Kostic2002]. Numbers in brackets are the paper's equations. Two are corrected (docs/references.md): r_1,1 of (13) has a
velocity instead of an acceleration, and asin and atan lose quadrants and branches in (6).

    tau = R(q, v, a) p,   u = tau / k_t + u_friction                                           (10)

The paper prints neither lengths nor masses nor gains.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dynident.control import PID, ComputedTorque, gains_for
from dynident.drive import Drive, Encoder, Motor
from dynident.errors import DynidentError
from dynident.friction import Friction, Tanh, Viscous
from dynident.mechanism import Mechanism, from_com
from dynident.simulate import VirtualRobot
from dynident_papers.robots.rrr.closed_forms import *
from dynident_papers.robots.rrr.costs import *
from dynident_papers.robots.rrr.data import *
from dynident_papers.robots.shared import servo_gains

__all__ = [
    "ASSUMPTIONS", "EXAMPLE", "FLOPS", "JOINTS", "NOTES", "NUMERIC_STEPS", "PARAMETER_NAMES", "POSTURES", "RMS_FEEDBACK",
    "RMS_FEEDFORWARD", "Cost", "Geometry", "base_matrix", "base_parameters", "control_voltage", "forward_kinematics",
    "friction_voltage", "gravity_torque", "inverse_dynamics", "inverse_kinematics", "inverse_kinematics_program",
    "jacobian_determinant", "machine", "mass_matrix", "mechanism", "operation_counts", "orientation",
    "regressor", "voltage",
]  # fmt: skip


STEP = 2.5e-4  # s
CONTROLLERS = ("feedforward", "pd", "computed torque")


def _value(name: str) -> Any:
    return ASSUMPTIONS[name].value


def links(geometry: Geometry = EXAMPLE) -> Mechanism:
    """Return the arm with the assumed masses and without rotors: those are in the drives."""
    phi = []
    for mass, centre, length, radius in zip(
        _value("masses"), _value("centres"), (0.0, geometry.a2, geometry.a3), _value("gyration"), strict=True
    ):
        # The frame of a link is at its far end (Table I), x along the link.
        phi.append(from_com(mass, [centre - length, 0.0, 0.0], np.eye(3) * mass * radius**2))
    return mechanism(geometry, np.concatenate(phi), terms=())


def friction() -> tuple[Friction, ...]:
    """Return the friction torque of every joint, k_t u_f of (9): three tanh terms and a viscous one."""
    laws = []
    for heights, slopes, viscous in zip(*(_value(f"friction_{k}") for k in ("height", "slope", "viscous")), strict=True):
        law = Viscous() + Tanh() + Tanh() + Tanh()
        laws.append(Friction(law, np.array([viscous, *heights, *slopes])))
    return tuple(laws)


def machine(
    controller: Any = "feedforward",
    *,
    geometry: Geometry = EXAMPLE,
    bandwidth: float = ASSUMPTIONS["bandwidth"].value,
    damping: float = ASSUMPTIONS["damping"].value,
    cycle: float = ASSUMPTIONS["cycle"].value,
    model: Mechanism | None = None,
    step: float = STEP,
) -> VirtualRobot:
    """Return the RRR robot on its direct drives; everything numeric is in `ASSUMPTIONS`, because the paper prints none of it.

    The amplifiers turn voltage into torque, tau = k_t u (8). One ampere stands for one volt at the amplifier's input, so the
    torque constants are k_t in N m/V, currents in runs and logs are the paper's voltages u, and the current limit is 10 V.
    """
    robot = links(geometry)
    drives = tuple(
        Drive(
            name,
            Motor(gain, inertia=rotor, current_limit=_value("voltage_limit")),
            friction=law,
            encoder=Encoder(_value("encoder"), filter=0.0),
        )
        for name, gain, rotor, law in zip(JOINTS, _value("gains"), _value("rotors"), friction(), strict=True)
    )
    if not isinstance(controller, str):
        return VirtualRobot(robot, drives, controller, step=step, name="RRR")
    if controller not in CONTROLLERS:
        raise DynidentError(f"RRR: controller is {controller!r}; it is one of {', '.join(CONTROLLERS)}, or a controller")
    filtering: dict[str, Any] = {"cycle": cycle, "derivative_filter": _value("derivative_filter")}
    bare = VirtualRobot(robot, drives, PID(0.0, 0.0, cycle=cycle), step=step, name="RRR")
    known = bare.model if model is None else model
    if controller == "computed torque":
        law: PID | ComputedTorque = ComputedTorque(known, *gains_for(bandwidth, damping), **filtering)
    else:
        kp, kd = servo_gains(bare.model, _value("pose"), bandwidth, damping)
        law = PID(kp, kd, feedforward=known if controller == "feedforward" else None, **filtering)
    return VirtualRobot(robot, drives, law, step=step, name="RRR")
