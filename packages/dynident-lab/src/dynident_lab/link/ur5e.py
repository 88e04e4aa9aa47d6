"""A virtual UR5e: kinematics, masses and centres of mass of the manufacturer [UniversalRobots2018], other values assumed.

Motors are described at the joints (ratio 1), because the controller of the robot reports currents and joint positions only: a
torque constant is that of motor and gear together.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dynident.cli.robots import KnownRobot
from dynident.drive import Drive, Encoder, Motor
from dynident.mechanism import Mechanism
from dynident.mechanism.elements import Actuator, Limits
from dynident.mechanism.parameters import from_principal
from dynident.simulate import Sensors, VirtualRobot, standard_machine

JOINTS = ("shoulder_pan_joint", "shoulder_lift_joint", "elbow_joint", "wrist_1_joint", "wrist_2_joint", "wrist_3_joint")
A = (0.0, -0.425, -0.3922, 0.0, 0.0, 0.0)  # standard DH table [m]
D = (0.1625, 0.0, 0.0, 0.1333, 0.0997, 0.0996)  # [m]
ALPHA = (np.pi / 2, 0.0, 0.0, np.pi / 2, -np.pi / 2, 0.0)  # [rad]
MASS = (3.761, 8.058, 2.846, 1.37, 1.3, 0.365)  # [kg]
COM = (  # in DH frames [m]
    (0.0, -0.02561, 0.00193),
    (0.2125, 0.0, 0.11336),
    (0.15, 0.0, 0.0265),
    (0.0, -0.0018, 0.01634),
    (0.0, 0.0018, 0.01634),
    (0.0, 0.0, -0.001159),
)
TORQUE = (150.0, 150.0, 150.0, 28.0, 28.0, 28.0)  # largest joint torques [N m]
SPEED, RANGE = np.pi, 2.0 * np.pi  # of all joints [rad/s, rad]

# Assumed: the manufacturer publishes none of these for this arm.
RADIUS = (0.06, 0.06, 0.05, 0.045, 0.045, 0.0375)  # of the links as solid cylinders [m]
LENGTH = (0.15, 0.54, 0.47, 0.12, 0.12, 0.05)  # along x for the two long links, along z otherwise [m]
ROTOR = (1.2, 1.2, 1.0, 0.25, 0.25, 0.25)  # rotor and gear at the joint [kg m^2]
COULOMB = (7.0, 8.0, 6.0, 1.5, 1.5, 1.2)  # [N m]
VISCOUS = (10.0, 11.0, 8.0, 2.0, 2.0, 1.8)  # [N m s/rad]
CONSTANT = (12.0, 12.0, 12.0, 9.5, 9.5, 9.5)  # torque constants at the joint [N m/A]
NOISE = 0.02  # of the currents [A]
RESOLUTION = 2.0 * np.pi / 2**18  # of the joint encoders [rad]
BANDWIDTH = 10.0  # of the position control [Hz]
NOTES = (
    "inertia tensors, rotors, friction, torque constants and control of the UR5e are assumed; joints stay at room temperature",
)


def mechanism() -> Mechanism:
    """Return the arm: floor-mounted, z up, stretched out horizontally at q = 0."""
    rows = [
        {"a": a, "alpha": alpha, "d": d, "joint": joint, "limits": Limits(-RANGE, RANGE, SPEED, torque)}
        for a, alpha, d, joint, torque in zip(A, ALPHA, D, JOINTS, TORQUE, strict=True)
    ]
    bare = Mechanism.from_dh(rows, name="UR5e")
    inertias = {f"link_{i}": _inertia(i - 1) for i in range(1, 7)}
    values = zip(ROTOR, VISCOUS, COULOMB, strict=True)
    terms = {joint: {"ia": ia, "fv": fv, "fc": fc} for joint, (ia, fv, fc) in zip(JOINTS, values, strict=True)}
    return replace(
        bare,
        bodies=tuple(replace(body, inertia=inertias.get(body.name, body.inertia)) for body in bare.bodies),
        joints=tuple(replace(joint, terms=terms.get(joint.name, {})) for joint in bare.joints),
        actuators=tuple(Actuator(joint, {joint: 1.0}, gain=gain) for joint, gain in zip(JOINTS, CONSTANT, strict=True)),
        terms=("ia", "fv", "fc"),
        source="[UniversalRobots2018]; inertia tensors, rotors and friction assumed",
    )


def _inertia(i: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Return the ten parameters of a link as a solid cylinder about its centre of mass."""
    across = MASS[i] * (3.0 * RADIUS[i] ** 2 + LENGTH[i] ** 2) / 12.0
    moments = np.full(3, across)
    moments[0 if i in (1, 2) else 2] = 0.5 * MASS[i] * RADIUS[i] ** 2
    return from_principal(MASS[i], COM[i], moments, np.eye(3))


def machine(noise: bool = True) -> VirtualRobot:
    """Return the arm with drives, encoders and a computed-torque controller; efforts are currents."""
    arm = mechanism()
    drives = [
        Drive(joint, Motor(constant, current_limit=torque / constant), encoder=Encoder(RESOLUTION, "joint", filter=200.0))
        for joint, constant, torque in zip(JOINTS, CONSTANT, TORQUE, strict=True)
    ]
    made = standard_machine(arm, np.array([0.0, -1.2, 1.4, -1.5, -1.5, 0.0]), drives=drives, bandwidth=BANDWIDTH)
    sensors = Sensors(effort="motor_current", side="joint", effort_noise=NOISE if noise else 0.0)
    return replace(made, sensors=sensors, name="UR5e")


ROBOT = KnownRobot(mechanism=mechanism, machine=machine, notes=NOTES)
