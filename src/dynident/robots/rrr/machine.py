"""The RRR robot as a machine: direct drives with voltage input, PD with the model as feed-forward (15); all numbers assumed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynident.control import PID, ComputedTorque, gains_for
from dynident.drive import Drive, Encoder, Motor
from dynident.errors import DynidentError
from dynident.friction import Friction, Tanh, Viscous
from dynident.mechanism import Mechanism, from_com
from dynident.robots.assumptions import Assumption
from dynident.robots.machines import servo_gains
from dynident.robots.rrr.dynamics import mechanism
from dynident.robots.rrr.kinematics import EXAMPLE, JOINTS, Geometry
from dynident.simulate import VirtualRobot

Array = NDArray[np.float64]

STEP = 2.5e-4  # s
CONTROLLERS = ("feedforward", "pd", "computed torque")

ASSUMPTIONS: Mapping[str, Assumption] = {
    "geometry": Assumption(EXAMPLE, "m", "about the lengths of later papers of the group, see `dynident.robots.rrr.EXAMPLE`"),
    "masses": Assumption(
        (12.0, 5.0, 1.2),
        "kg",
        "such that gravity over the gains is of the size of the RMS voltages (16)",
    ),
    "centres": Assumption(
        (0.0, 0.07, 0.10), "m", "distance of the links' centres from their own joint axes, along the link; towards the motors"
    ),
    "gyration": Assumption((0.12, 0.08, 0.12), "m", "radii of gyration about the centres, the same about all axes"),
    "gains": Assumption((6.0, 3.0, 1.5), "N m/V", "amplifier and motor: 60, 30 and 15 N m at 10 V, direct drives of this size"),
    "voltage_limit": Assumption(10.0, "V", "usual range of amplifier inputs"),
    "rotors": Assumption((0.023, 0.015, 0.012), "kg m^2", "J_m: rotor, encoder and slip rings of direct drives of this size"),
    "friction_height": Assumption(
        ((0.6, 0.2, 0.1), (0.35, 0.12, 0.06), (0.15, 0.05, 0.03)),
        "N m",
        "f_ik k_t of (9): a few per cent of the largest torque",
    ),
    "friction_slope": Assumption(((40.0, 15.0, 5.0),) * 3, "s/rad", "w_ik of (9)"),
    "friction_viscous": Assumption((0.25, 0.15, 0.05), "N m s/rad", "b_i k_t of (9)"),
    "encoder": Assumption(1e-5, "rad", "resolution, the order of direct-drive encoders"),
    "bandwidth": Assumption(8.0, "Hz", "of the PD action; its gains are not printed"),
    "damping": Assumption(0.7, "-", "of the PD action"),
    "derivative_filter": Assumption(80.0, "Hz", "ten times the bandwidth, because the velocity comes from encoder counts"),
    "cycle": Assumption(1e-3, "s", "of the controller"),
    "pose": Assumption((0.0, -0.6, 1.4), "rad", "where the inertias are taken that set the gains: elbow bent"),
}
"""The paper prints neither lengths nor masses, gains, friction or PD gains: everything numeric is here."""

NOTES = (
    "the paper prints no masses, gains, friction numbers or path, so its RMS voltages (16) compare in order of size only: the "
    "feedback does what the model misses, whatever its gains",
    "friction of this machine is of the form (9): viscous and Coulomb terms miss it at low speed, most in the waist, which "
    "carries no weight; a sigmoid law can know it almost exactly, which the real robot did not allow",
)
"""What to know when its results are held beside the paper's."""


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

    Parameters
    ----------
    controller : {"feedforward", "pd", "computed torque"} or a controller
        PD with the model on the reference (15), PD alone, the model on the measurement, or any other controller.
    geometry : Geometry
        Lengths.
    bandwidth, damping : float
        Of the PD action [Hz, -].
    cycle : float
        Cycle of the controller [s].
    model : Mechanism, optional
        What the controller believes, such as an identified robot; the truth when omitted.
    step : float
        Step of the simulation [s].

    Returns
    -------
    VirtualRobot
        The machine with joints waist, shoulder and elbow.
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
