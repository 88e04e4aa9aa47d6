"""DualV as a machine: four direct drives, PD + feed-forward + removal of internal stress (70 Hz, 0.7), and what was assumed."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np

from dynident.control import PID, ComputedTorque, gains_for
from dynident.drive import Drive, Encoder, Motor, Transmission
from dynident.errors import DynidentError
from dynident.friction import Stribeck, Viscous
from dynident.mechanics import actuator_jacobian, mass_matrix
from dynident.mechanism import Mechanism
from dynident.robots.assumptions import Assumption
from dynident.robots.dualv.data import TABLE_2
from dynident.robots.dualv.model import mechanism
from dynident.robots.machines import servo_gains
from dynident.simulate import VirtualRobot

BANDWIDTH, DAMPING, DERIVATIVE_FILTER, LARGEST_TORQUE = 70.0, 0.7, 70.0, 127.0  # Hz, -, Hz, N m: section 5
FIRST_MODE = 100.0  # Hz: "the natural frequency of the robot estimated at about 100Hz using finite element analysis"
STEP = 1.25e-4  # s
CONTROLLERS = ("feedforward", "pd", "computed torque")

ASSUMPTIONS: Mapping[str, Assumption] = {
    "geometry": Assumption("inward, r_p = 0.11 m", "", "neither is printed, see `dynident.robots.dualv.Geometry`"),
    "torque_constant": Assumption(
        1.0, "N m/A", "not printed; amplifiers report torque, so an ampere stands for a newton metre"
    ),
    "compliance": Assumption(
        "between arms and platform, lumped behind each motor",
        "",
        "the paper prints the frequency of the first mode only; all motors have the shaft stiffness that gives the platform "
        "its 100 Hz at home with held rotors",
    ),
    "motor_side": Assumption(
        0.04,
        "kg m^2",
        "rotor and arm, in front of the compliance, out of the 0.045 to 0.051 of zz_1i in Table 2. With a rotor of a few "
        "1e-3 alone there the printed gains would not be stable on a mode of 100 Hz at any realistic cycle time",
    ),
    "load_side": Assumption(1e-3, "kg m^2", "what turns with the far end of the shaft; the rest of zz_1i stays in the link"),
    "mode_damping": Assumption(0.02, "-", "of that mode, usual for bolted structures with bearings"),
    "motor_friction": Assumption(
        (1.0, 1.3, 0.1, 0.05),
        "N m, N m, rad/s, N m s/rad",
        "Coulomb, breakaway, Stribeck speed, viscous: sealed bearings, 1 % of the largest torque; small as in the paper, "
        "where friction is not among the essential parameters",
    ),
    "joint_friction": Assumption((0.1, 0.01), "N m, N m s/rad", "Coulomb, viscous of each passive joint: preloaded bearings"),
    "encoder": Assumption((1e-5, 5e-6), "rad", "resolution and noise, the order of direct-drive encoders"),
    "cycle": Assumption(
        2.5e-4,
        "s",
        "not printed; its hold of 0.125 ms in the mean stands for computing and amplifiers too. With the gains as printed and "
        "a mode of 100 Hz a dead time of 0.19 ms is no longer stable",
    ),
    "preload": Assumption(0.0, "N m", "as in 5.4: the overconstraint is set to zero"),
    "gain_inertia": Assumption(
        "pose of home, without a payload",
        "",
        "PD torques are w_c^2 J e + 2 d w_c J e' with the inertia J that a motor moves there: the paper prints w_c and d only. "
        "Gains for the payload too would be twice as high, and the motors' encoders in front of the compliance would swing at "
        "267 Hz",
    ),
}
"""Everything that the paper does not print, chosen before any proof was run with it."""

NOTES = (
    "the structure gives way behind the motors, with a first mode of 100 Hz: encoders, from which the paper's errors are, do "
    "not see that, and no rigid model mends it; one that is too heavy pushes against it and may even look better at the "
    "platform",
)
"""What to know when its results are held beside the paper's."""


def payload_of(robot: Mechanism, case: str = "case 1") -> Mechanism:
    """Return the robot with the payload of Table 2 on its platform."""
    if case not in TABLE_2:
        raise DynidentError(f"DualV: case is {case!r}; it is one of {', '.join(TABLE_2)}")
    m, mx, zz = (TABLE_2[case][f"{symbol}_payload"][0] for symbol in ("m", "mx", "Izz"))
    about_centre = np.diag([0.5, 0.5, 1.0]) * (zz - mx**2 / m)
    return robot.with_payload(m, (mx / m, 0.0, 0.0), about_centre, body="platform")


@cache
def shaft() -> tuple[float, float]:
    """Return stiffness and damping behind each motor that give the platform its first mode at home, rotors held.

    (M - J A^T A) x'' + c A^T A x' + k A^T A x = 0 with the rotors' inertia J and the Jacobian A of the motors.
    """
    robot, home = mechanism(), np.zeros((1, 3))
    A, M = actuator_jacobian(robot, home)[0], mass_matrix(robot, home)[0]
    soft = A.T @ A
    w = 2.0 * np.pi * FIRST_MODE
    slowest = float(np.linalg.eigvals(np.linalg.solve(M - ASSUMPTIONS["motor_side"].value * soft, soft)).real.min())
    stiffness = w**2 / slowest
    return stiffness, 2.0 * ASSUMPTIONS["mode_damping"].value * stiffness / w


def _parts(robot: Mechanism) -> tuple[Mechanism, tuple[Drive, ...]]:
    """Return the mechanism less what the drives carry, with friction in its passive joints, and the drives."""
    known = robot.parameters.to_dict()
    rotor, flange = ASSUMPTIONS["motor_side"].value, ASSUMPTIONS["load_side"].value
    fc, fv = ASSUMPTIONS["joint_friction"].value
    changed = {f"Izz_link1_{i}": known[f"Izz_link1_{i}"] - rotor - flange for i in (1, 2, 3, 4)}
    # A flat body: zz = xx + yy.
    changed |= {f"I{a}{a}_link1_{i}": 0.5 * changed[f"Izz_link1_{i}"] for i in (1, 2, 3, 4) for a in "xy"}
    changed |= {f"{s}_q{j}_{i}": value for s, value in (("fc", fc), ("fv", fv)) for j in (2, 3) for i in (1, 2, 3, 4)}
    bare = robot.with_parameters(robot.parameters.replace(changed))
    coulomb, breakaway, speed, viscous = ASSUMPTIONS["motor_friction"].value
    rub = (Stribeck(2.0) + Viscous()).using(fc=coulomb, fs=breakaway, vs=speed, fv=viscous)
    k, c = shaft()
    motor = Motor(ASSUMPTIONS["torque_constant"].value, inertia=rotor, current_limit=LARGEST_TORQUE)
    elastic = Transmission(1.0, inertias=(flange,), stiffness=(k,), damping=(c,))
    resolution, noise = ASSUMPTIONS["encoder"].value
    encoder = Encoder(resolution, noise=noise)
    return bare, tuple(Drive(f"motor_{i}", motor, elastic, rub, encoder) for i in (1, 2, 3, 4))


def _heaviest(robot: Mechanism) -> float:
    """Return the largest inertia that a direction of the motors moves at home, of (A^+)^T M A^+."""
    inverse = np.linalg.pinv(actuator_jacobian(robot, np.zeros((1, 3)))[0])
    return float(np.linalg.eigvalsh(inverse.T @ mass_matrix(robot, np.zeros((1, 3)))[0] @ inverse)[-1])


def _ideal(robot: Mechanism) -> tuple[Mechanism, tuple[Drive, ...]]:
    """Return the mechanism of Table 2 and drives without anything of their own: the current is the torque."""
    motor = Motor(ASSUMPTIONS["torque_constant"].value, current_limit=LARGEST_TORQUE)
    return robot, tuple(Drive(f"motor_{i}", motor, encoder=Encoder(velocity="exact")) for i in (1, 2, 3, 4))


def machine(
    controller: Any = "feedforward",
    *,
    payload: bool = False,
    ideal: bool = False,
    model: Mechanism | None = None,
    bandwidth: float = BANDWIDTH,
    damping: float = DAMPING,
    derivative_filter: float = DERIVATIVE_FILTER,
    cycle: float = ASSUMPTIONS["cycle"].value,
    preload: float | tuple[float, ...] = ASSUMPTIONS["preload"].value,
    r_p: float = 0.11,
    working_mode: str = "inward",
    step: float = STEP,
) -> VirtualRobot:
    """Return DualV on its four direct drives (127 N m), parameters of Table 2 case 1; assumptions are in `ASSUMPTIONS`.

    Its structure gives way (first mode 100 Hz), motors and joints rub, encoders count: no rigid model is exactly true of it.

    Parameters
    ----------
    controller : {"feedforward", "pd", "computed torque"} or a controller
        The paper's PD with the model on the reference, PD alone (row a of Table 4), the model on the measurement; internal
        stress is removed in all three (50). Or any other controller.
    payload : bool
        True carries the payload of Table 2, 5.42 kg.
    ideal : bool
        True leaves out elasticity, friction and encoders: what Table 2 alone would do.
    model : Mechanism, optional
        What the controller believes, such as an identified robot; `VirtualRobot.model` of this machine when omitted.
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
    empty = mechanism(r_p, working_mode)
    whole = payload_of(empty) if payload else empty
    robot, drives = _ideal(whole) if ideal else _parts(whole)
    if not isinstance(controller, str):
        return VirtualRobot(robot, drives, controller, step=step, name="DualV")
    if controller not in CONTROLLERS:
        raise DynidentError(f"DualV: controller is {controller!r}; it is one of {', '.join(CONTROLLERS)}, or a controller")
    known = VirtualRobot(robot, drives, PID(0.0, 0.0, cycle=cycle), step=step).model if model is None else model
    filtering: dict[str, Any] = {"cycle": cycle, "derivative_filter": derivative_filter, "preload": preload}
    if controller == "computed torque":
        # Its model multiplies the gains by the inertia. In the direction that is heaviest at the motors they are as stiff and
        # as damped with a payload as without, as those of the PD are: the structure behind the rotors bears no more.
        light, heavy = (_heaviest(arm) for arm in (empty, whole))
        kp, kd = (gain * light / heavy for gain in gains_for(bandwidth, damping))
        law: PID | ComputedTorque = ComputedTorque(known, kp, kd, **filtering)
    else:
        stiff, damped = servo_gains(empty, np.zeros(3), bandwidth, damping)
        law = PID(stiff, damped, feedforward=known if controller == "feedforward" else None, project=True, **filtering)
    return VirtualRobot(robot, drives, law, step=step, name="DualV")
