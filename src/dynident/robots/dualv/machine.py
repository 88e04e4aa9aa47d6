"""DualV as a machine: four direct drives, PD + feed-forward + removal of internal stress (70 Hz, 0.7), and what was assumed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dynident.control import PID, ComputedTorque, gains_for
from dynident.drive import Drive, Encoder, Motor
from dynident.errors import DynidentError
from dynident.mechanism import Mechanism
from dynident.robots.dualv.data import TABLE_2
from dynident.robots.dualv.model import mechanism
from dynident.robots.machines import Assumption, servo_gains
from dynident.simulate.robot import VirtualRobot

BANDWIDTH, DAMPING, DERIVATIVE_FILTER, LARGEST_TORQUE = 70.0, 0.7, 70.0, 127.0  # Hz, -, Hz, N m: section 5
STEP = 1.25e-4  # s
CONTROLLERS = ("feedforward", "pd", "computed torque")

ASSUMPTIONS: Mapping[str, Assumption] = {
    "geometry": Assumption("inward, r_p = 0.11 m", "", "neither is printed, see `dynident.robots.dualv.Geometry`"),
    "torque_constant": Assumption(
        1.0, "N m/A", "not printed; amplifiers report torque, so an ampere stands for a newton metre"
    ),
    "rotors": Assumption(0.0, "kg m^2", "contained in zz_1i of Table 2; giving them to the drives too would count them twice"),
    "friction": Assumption(0.0, "N m", "not among the essential parameters of Table 2"),
    "cycle": Assumption(5e-4, "s", "not printed; its dead time should be small beside that of the 70 Hz filter"),
    "encoder": Assumption(0.0, "rad", "resolution not printed; velocities as from an ideal sensor"),
    "gain_inertia": Assumption(
        "pose of home, with the carried payload",
        "",
        "PD torques are w_c^2 J e + 2 d w_c J e' with the inertia J that a motor moves there: the paper prints w_c and d only",
    ),
    "structure": Assumption("rigid", "", "the first structural mode, about 100 Hz, is left out"),
}
"""Everything that the paper does not print."""


def payload_of(robot: Mechanism, case: str = "case 1") -> Mechanism:
    """Return the robot with the payload of Table 2 on its platform.

    Parameters
    ----------
    robot : Mechanism
        DualV.
    case : {"case 1", "case 2"}
        Column of Table 2.

    Returns
    -------
    Mechanism
        With a body ``payload``.
    """
    if case not in TABLE_2:
        raise DynidentError(f"DualV: case is {case!r}; it is one of {', '.join(TABLE_2)}")
    m, mx, zz = (TABLE_2[case][f"{symbol}_payload"][0] for symbol in ("m", "mx", "Izz"))
    about_centre = np.diag([0.5, 0.5, 1.0]) * (zz - mx**2 / m)
    return robot.with_payload(m, (mx / m, 0.0, 0.0), about_centre, body="platform")


def machine(
    controller: Any = "feedforward",
    *,
    payload: bool = False,
    model: Mechanism | None = None,
    bandwidth: float = BANDWIDTH,
    damping: float = DAMPING,
    derivative_filter: float = DERIVATIVE_FILTER,
    cycle: float = ASSUMPTIONS["cycle"].value,
    preload: float | tuple[float, ...] = 0.0,
    r_p: float = 0.11,
    working_mode: str = "inward",
    step: float = STEP,
) -> VirtualRobot:
    """Return DualV on its four direct drives (127 N m), parameters of Table 2 case 1; assumptions are in `ASSUMPTIONS`.

    Parameters
    ----------
    controller : {"feedforward", "pd", "computed torque"} or a controller
        The paper's PD with the model on the reference, PD alone (row a of Table 4), the model on the measurement; internal
        stress is removed in all three (50). Or any other controller.
    payload : bool
        True carries the payload of Table 2, 5.42 kg.
    model : Mechanism, optional
        What the controller believes, such as an identified robot; the truth when omitted.
    bandwidth, damping : float
        f_c and xi of the PD action [Hz, -].
    derivative_filter : float
        First-order low-pass of its derivative [Hz].
    cycle : float
        Cycle of the controller [s].
    preload : float or tuple of float (4,)
        Motor torques whose internal part is added [N m].
    r_p, working_mode : float, str
        See `dynident.robots.dualv.Geometry`.
    step : float
        Step of the simulation [s].

    Returns
    -------
    VirtualRobot
        The machine with coordinates platform.x, platform.y, platform.rz and motors ``motor_1`` to ``motor_4``.
    """
    robot = mechanism(r_p, working_mode)
    robot = payload_of(robot) if payload else robot
    motor = Motor(ASSUMPTIONS["torque_constant"].value, inertia=ASSUMPTIONS["rotors"].value, current_limit=LARGEST_TORQUE)
    encoder = Encoder(ASSUMPTIONS["encoder"].value, velocity="exact")
    drives = tuple(Drive(f"motor_{i}", motor, encoder=encoder) for i in (1, 2, 3, 4))
    if not isinstance(controller, str):
        return VirtualRobot(robot, drives, controller, step=step, name="DualV")
    if controller not in CONTROLLERS:
        raise DynidentError(f"DualV: controller is {controller!r}; it is one of {', '.join(CONTROLLERS)}, or a controller")
    known = robot if model is None else model
    filtering: dict[str, Any] = {"cycle": cycle, "derivative_filter": derivative_filter, "preload": preload}
    if controller == "computed torque":
        law: PID | ComputedTorque = ComputedTorque(known, *gains_for(bandwidth, damping), **filtering)
    else:
        kp, kd = servo_gains(robot, np.zeros(3), bandwidth, damping)
        law = PID(kp, kd, feedforward=known if controller == "feedforward" else None, project=True, **filtering)
    return VirtualRobot(robot, drives, law, step=step, name="DualV")
