"""Four small robots with drives, friction and controllers. All physical numbers are invented for the tests.

* `five_bar`: planar, two geared motors, absolute angles alpha1 and alpha4, or the x and y of its point P.
* `platform`: planar, four direct drives for three degrees of freedom, legs of two links.
* `arm3`: waist, shoulder and elbow on direct drives.
* `arm6`: the geometry of `dynident.examples.arm6` with gears and the limits of its joints.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import dynident as di
from dynident.control import PID, Cascade, ComputedTorque, gains_for
from dynident.drive import Drive, Encoder, Motor, Transmission
from dynident.examples import arm6 as example
from dynident.excitation import MotionLimits, limits_of
from dynident.friction import Coulomb, Polynomial, Tanh, Viscous
from dynident.mechanics import mass_matrix
from dynident.mechanism import from_com
from dynident.mechanism.elements import rotation_exp
from dynident.simulate import Sensors, VirtualRobot
from dynident.simulate.robot import actuator_inertia
from dynident.trajectory import Trapezoid

STEP = 2.5e-4  # s, of all machines


def at(x: float, y: float = 0.0, turn: float = 0.0) -> di.Placement:
    """Return a placement in the plane."""
    return di.Placement(rotation_exp([0.0, 0.0, turn]), np.array([x, y, 0.0]))


def rod(name: str, mass: float, length: float) -> di.Body:
    """Return a uniform thin rod along x."""
    return di.Body(name, from_com(mass, [0.5 * length, 0.0, 0.0], np.diag([0.0, 1.0, 1.0]) * mass * length**2 / 12.0))


def direction(angle: Any) -> np.ndarray:
    """Return (cos, sin)."""
    return np.stack([np.cos(angle), np.sin(angle)], axis=-1)


def two_links(reach: np.ndarray, first: float, second: float, side: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the absolute angles of two links to points (..., 2); the elbow is left of the way (side 1) or right (-1)."""
    distance = np.linalg.norm(reach, axis=-1)
    bend = np.arccos((first**2 + distance**2 - second**2) / (2.0 * first * distance))
    one = np.arctan2(reach[..., 1], reach[..., 0]) + side * bend
    rest = reach - first * direction(one)
    return one, np.arctan2(rest[..., 1], rest[..., 0])


def bare(robot: di.Mechanism) -> di.Mechanism:
    """Return the robot whose driven joints have neither rotor nor friction: its drives carry them."""
    driven = {name for actuator in robot.actuators for name in actuator.coupling}
    joints = tuple(replace(joint, terms={}) if joint.name in driven else joint for joint in robot.joints)
    return replace(robot, joints=joints, terms=())


# ---- planar five-bar ----------------------------------------------------------------------------------------------------
BASES = np.array([[-0.15, 0.0], [0.15, 0.0]])  # m, of the driven bars
DRIVEN, DISTAL = 0.5, 0.7  # m
ROD_MASSES = (1.5, 0.8)  # kg, driven and distal
POINT_MASS = 1.0  # kg, at P
ELBOWS = np.array([1.0, -1.0])  # both elbows outwards
GEAR, TORQUE_CONSTANT, ROTOR = 40.0, 0.5, 1.2e-3  # -, N m/A, kg m^2
ROTOR_FRICTION = (1.5e-3, 0.4, 10.0)  # N m s/rad, N m, s/rad: viscous, and Coulomb as tanh


def five_bar_angles(point: Sequence[float]) -> np.ndarray:
    """Return alpha1, alpha2, alpha3, alpha4 of the driven, distal, distal and driven bar, all against x."""
    (a1, a4), (a2, a3) = two_links(np.asarray(point) - BASES, DRIVEN, DISTAL, ELBOWS)
    return np.array([a1, a2, a3, a4])


def five_bar(coordinates: str = "motors", start: Sequence[float] = (0.0, 0.9)) -> di.Mechanism:
    """Return the five-bar in a horizontal plane, with gears, rotors and friction at its driven joints."""
    viscous, coulomb, _ = ROTOR_FRICTION
    drive = {"ia": ROTOR * GEAR**2, "fv": viscous * GEAR**2, "fc": coulomb * GEAR}
    passive = {"fv": 0.0, "fc": 0.0}
    a1, a2, a3, a4 = five_bar_angles(start)
    bodies = [di.Body("base"), di.Body("slide"), di.Body("platform", np.array([POINT_MASS, *[0.0] * 9]))]
    bodies += [rod(f"bar{i}", ROD_MASSES[i in (2, 3)], DISTAL if i in (2, 3) else DRIVEN) for i in (1, 2, 3, 4)]
    joints = (
        di.Joint("x", "prismatic", "base", "slide", axis=np.array([1.0, 0.0, 0.0])),
        di.Joint("y", "prismatic", "slide", "platform", axis=np.array([0.0, 1.0, 0.0])),
        di.Joint("alpha1", "revolute", "base", "bar1", at(*BASES[0]), limits=di.Limits(0.9, 3.5, 6.0), terms=drive),
        di.Joint("elbow2", "revolute", "bar1", "bar2", at(DRIVEN), terms=passive),
        di.Joint("alpha4", "revolute", "base", "bar4", at(*BASES[1]), limits=di.Limits(-0.4, 2.2, 6.0), terms=drive),
        di.Joint("elbow3", "revolute", "bar4", "bar3", at(DRIVEN), terms=passive),
    )
    return di.Mechanism(
        "five-bar",
        tuple(bodies),
        joints,
        tuple(di.Loop(f"P{i}", "revolute", f"bar{i}", "platform", at(DISTAL)) for i in (2, 3)),
        actuators=tuple(di.Actuator(f"motor{i}", {f"alpha{i}": 1.0}, ratio=GEAR, gain=TORQUE_CONSTANT) for i in (1, 4)),
        terms=(),
        gravity=np.zeros(3),
        independent={"motors": ("alpha1", "alpha4"), "platform": ("x", "y")}[coordinates],
        home={"x": start[0], "y": start[1], "alpha1": a1, "elbow2": a2 - a1, "alpha4": a4, "elbow3": a3 - a4},
    )


def five_bar_machine(controller: Any = None, coordinates: str = "platform") -> VirtualRobot:
    """Return the five-bar with a cascade: position loops of 3 Hz, velocity loops of 30 Hz for the rotor and 1 kg m^2."""
    viscous, coulomb, slope = ROTOR_FRICTION
    friction = (Viscous() + Tanh()).using({"viscous.fv": viscous, "tanh.fc": coulomb, "tanh.beta": slope})
    motor = Motor(TORQUE_CONSTANT, inertia=ROTOR, current_limit=60.0)
    encoder = Encoder(velocity="exact")
    drives = [Drive(f"motor{i}", motor, Transmission.gear(GEAR), friction, encoder) for i in (1, 4)]
    gain = 2.0 * np.pi * 30.0 * (ROTOR + 1.0 / GEAR**2) / TORQUE_CONSTANT
    law = controller or Cascade(20.0, gain, 40.0 * gain, position_cycle=2e-3, velocity_cycle=5e-4, velocity_feedforward=1.0)
    return VirtualRobot(bare(five_bar(coordinates)), drives, law, step=STEP, name="five-bar")


def circle(turns: float = 0.2, speed: float = 0.5, rate: float = 1000.0) -> di.Motion:
    """Return a motion of P from rest to rest along a circle of radius 0.15 m about (0, 0.9)."""
    radius = 0.15
    profile = Trapezoid.within(2.0 * np.pi * turns * radius, speed, 4.0)
    t = np.arange(int(np.ceil(profile.duration * rate)) + 1) / rate
    s, ds, dds = (y[:, None] for y in profile(t))
    out = np.hstack([np.cos(s / radius), np.sin(s / radius)])
    along = out[:, ::-1] * [-1.0, 1.0]
    return di.Motion(t, [0.0, 0.9] + radius * out, along * ds, along * dds - out / radius * ds**2)


# ---- planar platform with four motors -----------------------------------------------------------------------------------
ANCHORS = np.array([[0.35, 0.25], [-0.35, 0.25], [-0.35, -0.25], [0.35, -0.25]])  # m, of the legs
CORNERS = np.array([[0.08, 0.06], [-0.08, 0.06], [-0.08, -0.06], [0.08, -0.06]])  # m, on the platform
LEG = 0.28  # m, of both links
LEG_MASSES = (0.7, 0.4)  # kg
PLATFORM = (2.0, (0.01, -0.005), 0.02)  # kg, m, kg m^2 about the centre of mass
LOAD = (5.0, (-0.02, 0.0), 0.02)  # kg, m, kg m^2 about the centre of mass: a payload
MOTOR = 0.02  # kg m^2, of a direct drive
MOTOR_FRICTION, JOINT_FRICTION = (0.05, 0.8), (0.01, 0.1)  # N m s/rad, N m: of the motors and of the joints q2_1 to q2_4
BOX = (0.06, 0.05, 0.35)  # m, m, rad: half-widths of the workspace
LARGEST = 120.0  # N m


def platform_angles(x: Any) -> np.ndarray:
    """Return the absolute angles (N, 4, 2) of the links of all legs at poses (N, 3)."""
    x = np.atleast_2d(np.asarray(x, dtype=np.float64))
    c, s = np.cos(x[:, 2]), np.sin(x[:, 2])
    turned = np.stack(
        [np.outer(c, CORNERS[:, 0]) - np.outer(s, CORNERS[:, 1]), np.outer(s, CORNERS[:, 0]) + np.outer(c, CORNERS[:, 1])],
        axis=-1,
    )
    return np.stack(two_links(x[:, None, :2] + turned - ANCHORS, LEG, LEG, 1.0), axis=-1)


def platform_jacobian(x: Any) -> np.ndarray:
    """Return dq1 / d(x, y, phi), (N, 4, 3): the distal link carries no velocity of the corner along itself but that of link 1.

    u2 . (v + phi' z x r) = LEG u2 . u1' q1', with u1' the normal of link 1 and r from the centre to the corner.
    """
    x = np.atleast_2d(np.asarray(x, dtype=np.float64))
    angles = platform_angles(x)
    u1, u2 = direction(angles[..., 0]), direction(angles[..., 1])
    corner = ANCHORS + LEG * (u1 + u2) - x[:, None, :2]
    turning = corner[..., 0] * u2[..., 1] - corner[..., 1] * u2[..., 0]
    along = LEG * np.sin(angles[..., 1] - angles[..., 0])
    return np.concatenate([u2, turning[..., None]], axis=-1) / along[..., None]


def preload_direction(x: Any) -> np.ndarray:
    """Return the unit vectors (N, 4) of torques that cancel each other: signed minors of the Jacobian, by Cramer's rule."""
    A = platform_jacobian(x)
    minors = np.stack([(-1.0) ** i * np.linalg.det(np.delete(A, i, axis=1)) for i in range(4)], axis=1)
    return minors / np.linalg.norm(minors, axis=1, keepdims=True)


PLATFORM_COLUMNS = (
    *(f"{s}_platform" for s in ("Izz", "mx", "my", "m")),
    *(f"{s}_{i}" for s in ("Izz_link1", "Izz_link2", "my_link2", "mx_link2", "m_link2", "ia_q1") for i in (1, 2, 3, 4)),
    *(f"{s}_q{j}_{i}" for i in (1, 2, 3, 4) for j in (1, 2) for s in ("fv", "fc")),
)
"""Parameters that act in the plane, in an order that makes the base parameters of all legs alike."""


def _rates(x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the absolute angles of the links (N, 4, 2) and the rows of their rates (N, 4, 3) each, in closed form."""
    angles = platform_angles(x)
    u1, u2 = direction(angles[..., 0]), direction(angles[..., 1])
    corner = ANCHORS + LEG * (u1 + u2) - x[:, None, :2]
    along = LEG * np.sin(angles[..., 0] - angles[..., 1])
    turning = corner[..., 0] * u1[..., 1] - corner[..., 1] * u1[..., 0]
    return angles, platform_jacobian(x), np.concatenate([u1, turning[..., None]], axis=-1) / along[..., None]


def _mass(x: np.ndarray, p: Mapping[str, float]) -> np.ndarray:
    """Return the mass matrix (N, 3, 3) as a sum over bodies of J^T M J with planar Jacobians."""
    angles, first, second = _rates(x)
    total = np.zeros((len(x), 3, 3))

    def add(J: np.ndarray, turn: np.ndarray, angle: np.ndarray, body: str) -> None:  # of the frame's origin, and of the angle
        c, s = np.cos(angle), np.sin(angle)
        mx, my = p.get(f"mx_{body}", 0.0), p.get(f"my_{body}", 0.0)
        arm = np.stack([-s * mx - c * my, c * mx - s * my], axis=-1)  # derivative of the first moment by the angle
        mixed = np.einsum("tik,ti,tl->tkl", J, arm, turn)
        total[:] += p.get(f"m_{body}", 0.0) * np.einsum("tik,til->tkl", J, J) + mixed + mixed.transpose(0, 2, 1)
        total[:] += p[f"Izz_{body}"] * np.einsum("tk,tl->tkl", turn, turn)

    still = np.zeros((len(x), 2, 3))
    add(still + np.eye(2, 3), np.tile([0.0, 0.0, 1.0], (len(x), 1)), x[:, 2], "platform")
    for i in range(4):
        elbow = LEG * np.stack([-np.sin(angles[:, i, 0]), np.cos(angles[:, i, 0])], axis=-1)
        add(still, first[:, i], angles[:, i, 0], f"link1_{i + 1}")
        add(np.einsum("ti,tk->tik", elbow, first[:, i]), second[:, i], angles[:, i, 1], f"link2_{i + 1}")
        total += p[f"ia_q1_{i + 1}"] * np.einsum("tk,tl->tkl", first[:, i], first[:, i])
    return total


def platform_torques(motion: di.Motion, values: Mapping[str, float]) -> np.ndarray:
    """Return the least motor torques (N, 4) by Lagrange's equation M a + M' v - grad(v^T M v) / 2 and friction, by hand.

    Only the derivative of the closed-form M by the pose is a central difference.
    """
    x, v, h = motion.q, motion.v, 1e-6
    slope = np.stack([(_mass(x + h * e, values) - _mass(x - h * e, values)) / (2.0 * h) for e in np.eye(3)], axis=1)
    force = np.einsum("tkl,tl->tk", _mass(x, values), motion.a) + np.einsum("tjkl,tj,tl->tk", slope, v, v)
    force -= 0.5 * np.einsum("tjkl,tk,tl->tj", slope, v, v)
    _, first, second = _rates(x)
    for name, rows in (("q1", first), ("q2", second - first)):
        for i in range(4):
            speed = np.einsum("tk,tk->t", rows[:, i], v)
            rub = values[f"fv_{name}_{i + 1}"] * speed + values[f"fc_{name}_{i + 1}"] * np.sign(speed)
            force += rub[:, None] * rows[:, i]
    A = platform_jacobian(x)
    return np.einsum("tkn,tn->tk", A, np.linalg.solve(A.transpose(0, 2, 1) @ A, force[..., None])[..., 0])


def platform(size: float = 1.0) -> di.Mechanism:
    """Return the robot without friction, in a horizontal plane, with x, y and rz as coordinates; `size` scales its corners."""
    mass, com, moment = PLATFORM
    bodies = [di.Body("base"), di.Body("platform", from_com(mass, [*com, 0.0], np.diag([0.5, 0.5, 1.0]) * moment))]
    joints, loops, actuators, home = [di.Joint("platform", "planar", "base", "platform")], [], [], {}
    terms = ({"ia": MOTOR, "fv": 0.0, "fc": 0.0}, {"fv": 0.0, "fc": 0.0})
    for i, (one, two) in enumerate(platform_angles(np.zeros(3))[0]):
        leg, names = i + 1, [f"link{j}_{i + 1}" for j in (1, 2)]
        bodies += [rod(name, m, LEG) for name, m in zip(names, LEG_MASSES, strict=True)]
        joints.append(di.Joint(f"q1_{leg}", "revolute", "base", names[0], at(*ANCHORS[i]), terms=terms[0]))
        joints.append(di.Joint(f"q2_{leg}", "revolute", names[0], names[1], at(LEG), terms=terms[1]))
        home |= {f"q1_{leg}": float(one), f"q2_{leg}": float(two - one)}
        loops.append(di.Loop(f"C{leg}", "revolute", names[1], "platform", at(LEG), at(*(size * CORNERS[i]))))
        actuators.append(di.Actuator(f"motor_{leg}", {f"q1_{leg}": 1.0}))
    return di.Mechanism(
        "platform",
        tuple(bodies),
        tuple(joints),
        tuple(loops),
        actuators=tuple(actuators),
        terms=(),
        gravity=np.zeros(3),
        independent=("platform.x", "platform.y", "platform.rz"),
        home=home,
    )


def loaded_platform() -> di.Mechanism:
    """Return the platform with its payload."""
    mass, com, moment = LOAD
    return platform().with_payload(mass, (*com, 0.0), np.diag([0.5, 0.5, 1.0]) * moment, body="platform")


def platform_machine(controller: Any = "feedforward", *, payload: bool = False, ideal: bool = False) -> VirtualRobot:
    """Return the platform on four direct drives with loops of 25 Hz; ideal drives are torques and exact encoders.

    Other drives have a rotor, friction and an encoder. The controller is a law, "feedforward", "pd" or "computed torque".
    """
    whole = loaded_platform() if payload else platform()
    if ideal:
        free = replace(whole, joints=tuple(replace(joint, terms={}) for joint in whole.joints))
        drives = [Drive(a.name, Motor(1.0, current_limit=LARGEST), encoder=Encoder(velocity="exact")) for a in whole.actuators]
        robot = free
    else:
        friction = (Coulomb() + Viscous()).using(fc=MOTOR_FRICTION[1], fv=MOTOR_FRICTION[0])
        motor = Motor(1.0, inertia=MOTOR, current_limit=LARGEST)
        drives = [Drive(a.name, motor, friction=friction, encoder=Encoder(1e-5, noise=5e-6)) for a in whole.actuators]
        rubbing = {f"{s}_q2_{leg}": x for leg in (1, 2, 3, 4) for s, x in zip(("fv", "fc"), JOINT_FRICTION, strict=True)}
        robot = bare(whole.with_parameters(whole.parameters.replace(rubbing)))
    if not isinstance(controller, str):
        return VirtualRobot(robot, drives, controller, step=STEP, name="platform")
    known = VirtualRobot(robot, drives, PID(0.0, 0.0, cycle=1e-3), step=STEP).model
    options: dict[str, Any] = {"cycle": 5e-4, "derivative_filter": 200.0}
    kp, kd = gains_for(25.0, 0.7)
    if controller == "computed torque":
        law: Any = ComputedTorque(known, kp, kd, **options)
    else:
        J = actuator_inertia(platform(), np.zeros(3))
        law = PID(kp * J, kd * J, feedforward=known if controller == "feedforward" else None, project=True, **options)
    return VirtualRobot(robot, drives, law, step=STEP, name="platform")


def platform_motion(seed: int = 0, duration: float = 1.0, rate: float = 250.0, harmonics: int = 4) -> di.Motion:
    """Return a random periodic motion of the platform that fills its box, x = sum_h s_h sin(2 pi h t / T + phase_h)."""
    rng = np.random.default_rng(seed)
    t = np.arange(round(duration * rate)) / rate
    w = 2.0 * np.pi * np.arange(1, harmonics + 1) / duration
    size = rng.uniform(0.3, 1.0, (3, harmonics)) / np.arange(1, harmonics + 1)
    angle = t[:, None, None] * w + rng.uniform(0.0, 2.0 * np.pi, (3, harmonics))
    x = np.sum(size * np.sin(angle), axis=2)
    scale = np.array(BOX) / np.abs(x).max(axis=0)
    v, a = np.sum(size * w * np.cos(angle), axis=2), -np.sum(size * w**2 * np.sin(angle), axis=2)
    return di.Motion(t, scale * x, scale * v, scale * a)


def two_pushes(mass: float = 1.0) -> di.Mechanism:
    """Return one mass on a line, pushed by two forces: f1 + f2 = m a."""
    slide = di.Joint("x", "prismatic", "base", "mass", axis=np.array([1.0, 0.0, 0.0]))
    motors = (di.Actuator("f1", {"x": 1.0}), di.Actuator("f2", {"x": 1.0}))
    body = di.Body("mass", np.array([mass, *[0.0] * 9]))
    return di.Mechanism("two pushes", (di.Body("base"), body), (slide,), actuators=motors, terms=(), gravity=np.zeros(3))


# ---- three-axis arm -----------------------------------------------------------------------------------------------------
AXES = ("waist", "shoulder", "elbow")
ARM3 = Path(__file__).parent / "robots" / "arm3.urdf"
ROTORS = (0.1, 0.1, 0.04)  # kg m^2
GAINS = (12.0, 12.0, 5.0)  # N m/V: one ampere stands for one volt of the amplifier
FRICTION = ((2.5, 2.0, 40.0), (2.0, 3.0, 40.0), (1.0, 1.5, 40.0))  # N m s/rad, N m, s/rad: viscous, and Coulomb as tanh


def arm3() -> di.Mechanism:
    """Return the arm with its rotors and without friction."""
    robot = di.Mechanism.from_urdf(ARM3).with_terms(("ia", "fv", "fc"))
    return robot.with_parameters(robot.parameters.replace({f"ia_{name}": J for name, J in zip(AXES, ROTORS, strict=True)}))


def arm3_machine(controller: Any = "feedforward") -> VirtualRobot:
    """Return the arm on direct drives with loops of 6 Hz; the controller is a law, "feedforward", "pd" or "computed torque"."""
    robot = arm3().with_terms(())
    drives = []
    for name, gain, rotor, (viscous, coulomb, slope) in zip(AXES, GAINS, ROTORS, FRICTION, strict=True):
        friction = (Viscous() + Tanh()).using({"viscous.fv": viscous, "tanh.fc": coulomb, "tanh.beta": slope})
        drives.append(
            Drive(name, Motor(gain, inertia=rotor, current_limit=10.0), friction=friction, encoder=Encoder(1e-5, filter=0.0))
        )
    if not isinstance(controller, str):
        return VirtualRobot(robot, drives, controller, step=STEP, name="arm3")
    known = VirtualRobot(robot, drives, PID(0.0, 0.0, cycle=1e-3), step=STEP).model
    options: dict[str, Any] = {"cycle": 1e-3, "derivative_filter": 100.0}
    kp, kd = gains_for(6.0, 0.8)
    if controller == "computed torque":
        law: Any = ComputedTorque(known, kp, kd, **options)
    else:
        J = actuator_inertia(known, np.zeros(3))
        law = PID(kp * J, kd * J, feedforward=known if controller == "feedforward" else None, **options)
    return VirtualRobot(robot, drives, law, step=STEP, name="arm3")


def impossible_arm() -> di.Mechanism:
    """Return a planar arm of two links whose second one has a moment of inertia below m x^2.

    M = [[c + 2 l p cos q2, J + l p cos q2], [., J]] with J = 0.05, l p = 0.25 and c = 0.2 + 1.0 l^2 + J, so that
    det M = 0.0225 - 0.0625 cos^2 q2 is negative where |cos q2| > 0.6.
    """
    rows = [{"a": a, "alpha": 0.0, "d": 0.0, "joint": f"q{i}"} for i, a in ((1, 0.0), (2, 0.5))]
    robot = di.Mechanism.from_dh(rows, "modified", "impossible").with_terms(())
    body = {"Izz_link_1": 0.2, "m_link_2": 1.0, "Izz_link_2": 0.05, "mx_link_2": 0.5}
    return robot.with_parameters(robot.parameters.replace(body))


# ---- six-axis arm -------------------------------------------------------------------------------------------------------
GEARS = np.array([100.0, 100.0, 100.0, 80.0, 80.0, 50.0])
ARM_ROTORS = np.array([1e-4, 1e-4, 5e-5, 2e-5, 2e-5, 2e-5])  # kg m^2
ARM_CONSTANTS = np.array([0.4, 0.4, 0.4, 0.3, 0.3, 0.3])  # N m/A
CUBIC = np.array([[12.0, 8.0, -2.5, 0.4], [14.0, 9.0, -2.5, 0.4], [9.0, 6.0, -1.5, 0.2]] + [[4.0, 2.0, -0.3, 0.03]] * 3)
"""Cold friction a0 sign(v) + a1 v + a2 v |v| + a3 v^3 of the joints [N m, rad/s]; rising up to the speed limits."""
NOISE = np.array([0.9, 0.9, 0.6, 0.3, 0.3, 0.2])  # N m, of measured torques
CAPSULES = (
    ("base", (0.0, 0.0, 0.0), (0.0, 0.0, 0.2), 0.1),
    ("link2", (0.08, 0.0, 0.0), (0.4, 0.0, 0.0), 0.07),
    ("link4", (0.0, 0.0, 0.05), (0.0, 0.0, 0.38), 0.05),
    ("link6", (0.0, 0.0, 0.0), (0.0, 0.0, 0.08), 0.04),
)  # link, ends in its frame, radius [m]


@cache
def _described() -> di.Mechanism:
    return example().robot


def askew(phi: np.ndarray) -> np.ndarray:
    """Return a body with its centre of mass off all axes and its principal axes turned, so that no parameter is zero."""
    m, c = phi[0], phi[1:4] / phi[0]
    tensor = np.array([[phi[4], phi[5], phi[6]], [phi[5], phi[7], phi[8]], [phi[6], phi[8], phi[9]]])
    R = rotation_exp([0.1, 0.2, -0.15])
    central = tensor - m * (c @ c * np.eye(3) - np.outer(c, c))
    return from_com(m, np.add(c, [0.004, -0.006, 0.005]), R @ central @ R.T)


def arm6(gravity: float = 9.81) -> di.Mechanism:
    """Return the arm of the demo with gears, rotors and friction: the best straight line through the cubic of each joint."""
    robot = _described()
    bodies = [body if body.name == robot.root else replace(body, inertia=askew(body.inertia)) for body in robot.bodies]
    joints = []
    for joint, rotor, gear, law in zip(robot.joints, ARM_ROTORS, GEARS, CUBIC, strict=True):
        v = np.linspace(0.01, 1.0, 100) * joint.limits.velocity
        fc, fv = np.linalg.lstsq(np.column_stack([np.ones_like(v), v]), np.vander(v, 4, increasing=True) @ law, rcond=None)[0]
        joints.append(replace(joint, terms={"ia": rotor * gear**2, "fv": float(fv), "fc": float(fc)}))
    motors = [
        di.Actuator(f"motor_{i}", {joint.name: 1.0}, float(gear), gain=float(gain))
        for i, (joint, gear, gain) in enumerate(zip(joints, GEARS, ARM_CONSTANTS, strict=True), start=1)
    ]
    return replace(
        robot,
        bodies=tuple(bodies),
        joints=tuple(joints),
        actuators=tuple(motors),
        terms=("ia", "fv", "fc"),
        gravity=(0.0, 0.0, -gravity),
    )


def arm6_limits(robot: di.Mechanism | None = None, **changes: Any) -> MotionLimits:
    """Return limits of position, speed, acceleration, jerk, torque, power, tool height and collisions."""
    robot = arm6() if robot is None else robot
    limits = [joint.limits for joint in robot.joints]
    joints = {
        joint.name: {
            "acceleration": 5.0 * x.velocity,
            "jerk": 50.0 * x.velocity,
            "torque": x.effort,
            "power": x.effort * x.velocity,
        }
        for joint, x in zip(robot.joints, limits, strict=True)
    }
    settings = {
        "bandwidth": 10.0,
        "joints": joints,
        "tool": {"frame": "link6", "height": 0.05},
        "capsule": [{"link": link, "from": start, "to": end, "radius": radius} for link, start, end, radius in CAPSULES],
        "collision": {"clearance": 0.01, "ignore": [["link4", "link6"], ["base", "link2"], ["link2", "link4"]]},
    }
    return limits_of(robot, {**settings, **changes})


def arm6_machine(*, noise: bool = True, controller: Any = None, thermal: Any = None, gravity: float = 9.81) -> VirtualRobot:
    """Return the arm on geared drives with a cascade of 10 Hz and cubic friction at its joints."""
    whole = arm6(gravity)
    drives = []
    for i, (joint, gear, rotor, constant) in enumerate(
        zip(whole.joints, GEARS, ARM_ROTORS, ARM_CONSTANTS, strict=True), start=1
    ):
        motor = Motor(
            float(constant),
            inertia=float(rotor),
            current_limit=float(joint.limits.effort / (gear * constant)),
            speed_limit=float(1.2 * joint.limits.velocity * gear),
        )
        encoder = Encoder(2.0 * np.pi / 2**17, filter=500.0)
        drives.append(Drive(f"motor_{i}", motor, Transmission.gear(float(gear)), encoder=encoder))
    fast = 2.0 * np.pi * 50.0
    gain = fast * np.diag(mass_matrix(whole, np.zeros(6))[0]) / (GEARS**2 * ARM_CONSTANTS)
    law = controller or Cascade(
        2.0 * np.pi * 10.0, gain, 0.2 * fast * gain, position_cycle=2e-3, velocity_cycle=2.5e-4, velocity_feedforward=1.0
    )
    names = [joint.name for joint in whole.joints]
    friction = {
        name: Polynomial(3).using(dict(zip(("a0", "a1", "a2", "a3"), row, strict=True)))
        for name, row in zip(names, CUBIC.tolist(), strict=True)
    }
    return VirtualRobot(
        bare(whole),
        drives,
        law,
        friction=friction,
        thermal=thermal or {},
        sensors=Sensors(effort="joint_torque", side="joint", effort_noise=NOISE if noise else 0.0),
        step=STEP,
        name="arm6",
    )
