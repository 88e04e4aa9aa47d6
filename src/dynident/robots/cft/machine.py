"""The CFT-transposer as a machine: amplifier voltages in, Cartesian coordinates out (its simulation block, section 5)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynident.checks import numbers
from dynident.control import PID, OpenLoop
from dynident.drive import Drive, Encoder, Motor, Transmission
from dynident.errors import DynidentError
from dynident.friction import Friction, Tanh, Viscous
from dynident.mechanics import Motion
from dynident.mechanism import Actuator, Body, Joint, Loop, Mechanism, Placement
from dynident.robots.assumptions import Assumption
from dynident.robots.cft.chain import mechanism, modified_dh
from dynident.robots.cft.data import (
    AMPLIFIER,
    CONVERSIONS,
    D20,
    ENCODER_FACTORS,
    EXCITATION_OFFSET,
    GEAR_RATIOS,
    JOINTS,
    L4,
    MOTORS,
    THETA,
    TORQUE_CONSTANT,
    columns,
)
from dynident.robots.cft.kinematics import REACH, UP, joint_from_cartesian, joint_motion
from dynident.robots.machines import servo_gains
from dynident.simulate import VirtualRobot

Array = NDArray[np.float64]

STEP = 2.5e-4  # s

ASSUMPTIONS: Mapping[str, Assumption] = {
    "current_limit": Assumption(
        4.0, "A", "saturation limits are not printed; 10 V of dSPACE at 0.4 A/V and 2.5 V of TUEdACS at 1.6 A/V are both 4 A"
    ),
    "rotors": Assumption(0.0, "kg m^2", "Table 4 was identified with the motors attached: they are in its parameters"),
    "added_inertia": Assumption(
        0.0,
        "kg m^2",
        "of q4 and q5; Table 4 makes M indefinite on 35 % of the workspace, 0.2 repairs it",
    ),
    "pose": Assumption(
        tuple(EXCITATION_OFFSET.tolist()),
        "m, m, rad, m",
        "xc1 ... xc4 whose inertias set the gains: middle of the excitation",
    ),
    "bandwidth": Assumption(
        5.0,
        "Hz",
        "of the PD action; the report used P control and does not print its gains. At 3 Hz gravity pulls PD alone off",
    ),
    "damping": Assumption(
        1.0,
        "-",
        "of the PD action: Table 4's friction pushes near rest (q1 with -3557 N s/m), which less damping does not hold",
    ),
    "cycle": Assumption(1e-3, "s", "of the controller"),
}
"""Everything that the report does not print."""


def nuts(theta: ArrayLike = THETA, added_inertia: float = 0.0) -> Mechanism:
    """Return the robot with its two nuts: xr carries the pantograph's foot, yr lifts link 5 straight up.

    The point L4 along link 5 stays above d20', so a vertical slide and one point closure replace the couplings (56); the four
    motors then act on rho = (-yr, xr, q2, q1), whose forces are F_xc1 ... F_xc4 of (66).
    """
    chain = mechanism(theta)
    foot = Placement(translation=np.array([0.0, D20, 0.0])) @ modified_dh(-0.5 * np.pi, 0.0, -0.5 * np.pi, 0.0)
    back = foot.rotation.T @ np.array([0.0, -1.0, 0.0])  # xr is counted against y of link 2 (62)
    up = Placement(translation=np.array([0.0, D20, 0.0]))
    joints: list[Joint] = []
    for joint in chain.joints:
        if joint.name.startswith("slide_"):
            continue
        if joint.name == "carriage":
            joints.append(Joint("xr", "prismatic", "link_2", "link_3", foot, axis=back))
            joints.append(Joint("yr", "prismatic", "link_2", "nut", up, axis=np.array([0.0, 0.0, 1.0])))
            # It stays at zero: with it the closure has three unknowns for its three equations, however the base is turned.
            joints.append(Joint("side", "prismatic", "nut", "pin", axis=np.array([1.0, 0.0, 0.0])))
        elif joint.name in ("q4", "q5") and added_inertia:
            joints.append(replace(joint, terms={"ia": added_inertia}))
        else:
            joints.append(joint)
    q = joint_from_cartesian(ASSUMPTIONS["pose"].value)[0]
    reach = float(-L4 * (np.sin(q[2] + q[3]) + np.sin(q[2])))
    height = float(L4 * (np.cos(q[2] + q[3]) + np.cos(q[2])))
    home = {**dict(zip(JOINTS, q.tolist(), strict=True)), "xr": reach, "yr": height, "q6": -q[3], "q7": np.pi - q[2]}
    driven = ({"yr": -1.0}, {"xr": 1.0}, {"q2": 1.0}, {"q1": 1.0})
    return replace(
        chain,
        bodies=(*(body for body in chain.bodies if not body.name.startswith("slider_")), Body("nut"), Body("pin")),
        joints=tuple(joints),
        loops=(Loop("nut", "point", "link_5", "pin", Placement(translation=np.array([L4, 0.0, 0.0]))),),
        couplings=tuple(c for c in chain.couplings if not c.joint.startswith("slide_")),
        actuators=tuple(Actuator(name, coupling) for name, coupling in zip(MOTORS, driven, strict=True)),
        independent=JOINTS,
        home=home,
    )


def friction(theta: ArrayLike = THETA) -> dict[str, Friction]:
    """Return the friction (13) of every joint as a law.

    Parameters
    ----------
    theta : array_like, (32,)
        Parameters of Table 4.

    Returns
    -------
    dict of str to Friction
        B_v v + B_f1 tanh(w1 v) + B_f2 tanh(w2 v) of q1, q2, q4, q5; three of them push near rest.
    """
    values = numbers(theta, "theta")
    if values.shape != (32,):
        raise DynidentError(f"theta has shape {values.shape}; friction needs the 32 numbers of Table 4")
    law = Viscous() + Tanh() + Tanh()
    return {joint: Friction(law, values[12 + i :: 4][:5]) for i, joint in enumerate(JOINTS)}


def amplifiers(setup: str = "TUEdACS") -> tuple[Drive, ...]:
    """Return the drives of Table 6 with the encoders of Table 5."""
    if setup not in AMPLIFIER:
        raise DynidentError(f"setup is {setup!r}; the report describes {' and '.join(AMPLIFIER)}")
    motor = Motor(TORQUE_CONSTANT, inertia=ASSUMPTIONS["rotors"].value, current_limit=ASSUMPTIONS["current_limit"].value)
    counts = ENCODER_FACTORS / [UP, REACH, 1.0, 1.0]
    return tuple(
        Drive(name, motor, Transmission(float(1.0 / (gear * lead))), encoder=Encoder(float(count), "joint"))
        for name, gear, lead, count in zip(MOTORS, GEAR_RATIOS, CONVERSIONS, counts, strict=True)
    )


def voltage_input(voltage: ArrayLike, setup: str = "TUEdACS") -> OpenLoop:
    """Return the block's input: amplifier voltages of the motors of xc1 ... xc4.

    Parameters
    ----------
    voltage : array_like, (N, 4) or (4,)
        Voltages at the reference's times [V]; one row is held.
    setup : {"TUEdACS", "dSPACE"}
        Which amplifiers, 1.6 or 0.4 A/V.

    Returns
    -------
    OpenLoop
        Currents K_a u.
    """
    if setup not in AMPLIFIER:
        raise DynidentError(f"setup is {setup!r}; the report describes {' and '.join(AMPLIFIER)}")
    return OpenLoop(current=AMPLIFIER[setup] * columns(voltage, "voltage"))


def cartesian_reference(t: ArrayLike, xc: ArrayLike, vc: ArrayLike, ac: ArrayLike) -> Motion:
    """Return a Cartesian motion as a reference of the machine's coordinates.

    Parameters
    ----------
    t : array_like, (N,)
        Time [s].
    xc, vc, ac : array_like, (N, 4)
        xc1 ... xc4 and derivatives.

    Returns
    -------
    Motion
        q1, q2, q4, q5; `dynident.robots.cft.cartesian_from_joint` goes back.
    """
    return Motion(numbers(t, "t"), *joint_motion(xc, vc, ac))


def machine(
    controller: Any = "feedforward",
    *,
    setup: str = "TUEdACS",
    theta: ArrayLike = THETA,
    added_inertia: float = ASSUMPTIONS["added_inertia"].value,
    bandwidth: float = ASSUMPTIONS["bandwidth"].value,
    damping: float = ASSUMPTIONS["damping"].value,
    cycle: float = ASSUMPTIONS["cycle"].value,
    step: float = STEP,
) -> VirtualRobot:
    """Return the CFT-transposer with its amplifiers, gains, encoders and friction; assumptions are in `ASSUMPTIONS`.

    With ``controller=voltage_input(u)`` it is the report's simulation block. Table 4's mass matrix is indefinite on a third of
    the workspace (arm high, or reach below 0.1 m): a run that gets there stops with an error, unless `added_inertia` is 0.2.

    Parameters
    ----------
    controller : {"feedforward", "pd"} or a controller
        PD on the nuts, base and rail with the model (gravity and inertia, no friction) on the reference; PD alone, which sags
        under gravity; or any other controller.
    setup : {"TUEdACS", "dSPACE"}
        Which amplifiers.
    theta : array_like, (32,)
        Parameters of Table 4.
    added_inertia : float
        Inertia added to q4 and q5 [kg m^2], which repairs Table 4.
    bandwidth, damping : float
        Of the PD action [Hz, -].
    cycle : float
        Cycle of the controller [s].
    step : float
        Step of the simulation [s].

    Returns
    -------
    VirtualRobot
        The machine with coordinates q1, q2, q4, q5 and motors m1 ... m4 (of xc1 ... xc4).
    """
    robot, drives, laws = nuts(theta, added_inertia), amplifiers(setup), friction(theta)
    if isinstance(controller, str):
        if controller not in ("pd", "feedforward"):
            raise DynidentError(f"CFT: controller is {controller!r}; it is 'pd', 'feedforward', or a controller")
        kp, kd = servo_gains(robot, joint_from_cartesian(ASSUMPTIONS["pose"].value)[0], bandwidth, damping)
        controller = PID(kp, kd, cycle=cycle, feedforward=robot if controller == "feedforward" else None)
    return VirtualRobot(robot, drives, controller, friction=laws, step=step, name="CFT-transposer")
