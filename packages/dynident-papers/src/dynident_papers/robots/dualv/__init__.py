"""DualV, a planar 4-RRR robot with three degrees of freedom and four direct drives (LIRMM).

Source: [Briot2015]. Numbers in brackets are the paper's equations, its misprints are in docs/references.md. With more
motors than degrees of freedom the torques are not determined by the motion: an unknown preload lies in the null space of
J_inv^T. Projection on the platform (case 1) or on three motors (case 2) removes it.

Arrays are batched: platform poses (N, 3) as x, y, phi; joints (N, 4, 3) as leg, joint; torques (N, 4).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dynident import mechanics
from dynident.arrays import Array
from dynident.control import PID, ComputedTorque, gains_for
from dynident.drive import Drive, Encoder, Motor, Transmission
from dynident.errors import DynidentError
from dynident.friction import Stribeck, Viscous
from dynident.mechanics import Motion
from dynident.mechanism import Actuator, Body, Joint, Loop, Mechanism, Placement
from dynident.mechanism.elements import rotation_exp
from dynident.simulate import VirtualRobot
from dynident_papers.robots.dualv.closed_forms import *
from dynident_papers.robots.dualv.data import *
from dynident_papers.robots.dualv.preload import *
from dynident_papers.robots.shared import servo_gains

__all__ = [
    "ASSUMPTIONS", "BOX", "COLUMNS", "NOTES", "PAYLOAD_WEIGHED", "RELATIVE_ERROR_NORM", "TABLE_2", "TABLE_3", "TABLE_4",
    "WORKING_MODES", "Geometry", "Jacobians", "actuator_jacobian", "case_1", "case_2", "essential_table", "excitation",
    "forward_kinematics", "idle_torques", "internal_stress", "inverse_kinematics", "jacobians", "joint_motion",
    "leg_regressor", "machine", "measured_radius", "mechanism", "paper_symbol", "platform_motion",
    "platform_regressor", "preload", "preload_direction", "remove_internal_stress", "toy",
]  # fmt: skip


_TERMS = {
    "paper": ({"ia": 0.0, "fv": 0.0, "fc": 0.0}, {"fv": 0.0, "fc": 0.0}, {"fv": 0.0, "fc": 0.0}),
    "full": ({"ia": 0.0, "fv": 0.0, "fc": 0.0, "off": 0.0},) * 3,
}


def _flat(m: float, mx: float, my: float, zz: float) -> list[float]:
    """Return the ten parameters of a flat body; only four of them act in the plane."""
    return [m, mx, my, 0.0, 0.5 * zz, 0.0, 0.0, 0.5 * zz, 0.0, zz]


def mechanism(r_p: float = 0.11, working_mode: str = "inward", parameters: str = "paper") -> Mechanism:
    """Return DualV with the platform's x, y, phi as coordinates and four motors, in a horizontal plane.

    Bodies are ``platform`` and ``link1_1`` to ``link3_4`` (link, leg); joints ``q1_1`` to ``q3_4``; motors ``motor_1`` to
    ``motor_4``. Prior values are from Table 2, case 1; the paper prints no others, so the rest is zero.
    """
    if parameters not in _TERMS:
        raise DynidentError(f"DualV: parameters is {parameters!r}; it is one of {', '.join(_TERMS)}")
    g = Geometry(r_p, working_mode)
    known = {name: value for name, (value, _) in TABLE_2["case 1"].items()}
    bodies = [Body("base"), Body("platform", np.array(_flat(known["m_platform"], 0.0, 0.0, known["Izz_platform"])))]
    joints = [Joint("platform", "planar", "base", "platform")]
    loops, actuators, home = [], [], {}
    angles = inverse_kinematics(np.zeros((1, 3)), g)[0]
    for i in range(4):
        leg = i + 1
        links = [f"link{j}_{leg}" for j in (1, 2, 3)]
        massless = None if parameters == "paper" else np.zeros(10)
        inertias = (np.array(_flat(0.0, 0.0, 0.0, known[f"Izz_link1_{leg}R"])), np.zeros(10), massless)
        bodies += [Body(name, inertia) for name, inertia in zip(links, inertias, strict=True)]
        origins = ([*g.anchors[i], 0.0], [g.d2, 0.0, 0.0], [g.d3, 0.0, 0.0])
        for j in range(3):
            parent = "base" if j == 0 else links[j - 1]
            place = Placement(np.eye(3), np.array(origins[j]))
            joints.append(Joint(f"q{j + 1}_{leg}", "revolute", parent, links[j], place, terms=_TERMS[parameters][j]))
            home[f"q{j + 1}_{leg}"] = float(angles[i, j])
        # (53): q1 + q2 + q3 = phi + kbar pi, so link 3 is turned by half a turn on the legs with kbar = 1.
        side = 1.0 - 2.0 * HALF_TURNS[i]
        turned = Placement(rotation_exp([0.0, 0.0, np.pi * (1 - HALF_TURNS[i])]), np.array([0.0, side * r_p, 0.0]))
        loops.append(Loop(f"C{leg}", "weld", links[2], "platform", Placement(), turned))
        actuators.append(Actuator(f"motor_{leg}", {f"q1_{leg}": 1.0}))
    return Mechanism(
        "DualV",
        tuple(bodies),
        tuple(joints),
        tuple(loops),
        actuators=tuple(actuators),
        terms=(),
        gravity=np.zeros(3),
        independent=("platform.x", "platform.y", "platform.rz"),
        home=home,
        source="[Briot2015]",
    )


def toy(mass: float = 1.0) -> Mechanism:
    """Return the paper's first example (fig. 1): one mass on a line, pushed by two forces f1 + f2 = m a."""
    body = Body("mass", np.array([mass, *[0.0] * 9]))
    slide = Joint("x", "prismatic", "base", "mass", axis=np.array([1.0, 0.0, 0.0]))
    motors = (Actuator("f1", {"x": 1.0}), Actuator("f2", {"x": 1.0}))
    return Mechanism("two pushes", (Body("base"), body), (slide,), actuators=motors, terms=(), gravity=np.zeros(3))


def payload_of(robot: Mechanism, case: str = "case 1") -> Mechanism:
    """Return the robot with the payload of Table 2 on its platform."""
    if case not in TABLE_2:
        raise DynidentError(f"DualV: case is {case!r}; it is one of {', '.join(TABLE_2)}")
    m, mx, zz = (TABLE_2[case][f"{symbol}_payload"][0] for symbol in ("m", "mx", "Izz"))
    about_centre = np.diag([0.5, 0.5, 1.0]) * (zz - mx**2 / m)
    return robot.with_payload(m, (mx / m, 0.0, 0.0), about_centre, body="platform")


@cache
def shaft() -> tuple[float, float]:
    """Return stiffness and damping behind each motor for the platform's first mode at home, rotors held.

    (M - J A^T A) x'' + c A^T A x' + k A^T A x = 0 with the rotors' inertia J and the Jacobian A of the motors.
    """
    robot, home = mechanism(), np.zeros((1, 3))
    A, M = mechanics.actuator_jacobian(robot, home)[0], mechanics.mass_matrix(robot, home)[0]
    soft = A.T @ A
    w = 2.0 * np.pi * FIRST_MODE
    slowest = float(np.linalg.eigvals(np.linalg.solve(M - ASSUMPTIONS["motor_side"].value * soft, soft)).real.min())
    stiffness = w**2 / slowest
    return stiffness, 2.0 * ASSUMPTIONS["mode_damping"].value * stiffness / w


def _parts(robot: Mechanism) -> tuple[Mechanism, tuple[Drive, ...]]:
    """Return the mechanism without the drives' inertias, with friction in its passive joints, and the drives."""
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
    """Return the largest inertia seen by the motors at home, the largest eigenvalue of (A^+)^T M A^+."""
    home = np.zeros((1, 3))
    inverse, M = np.linalg.pinv(mechanics.actuator_jacobian(robot, home)[0]), mechanics.mass_matrix(robot, home)[0]
    return float(np.linalg.eigvalsh(inverse.T @ M @ inverse)[-1])


def _ideal(robot: Mechanism) -> tuple[Mechanism, tuple[Drive, ...]]:
    """Return the mechanism of Table 2 and ideal drives: the current is the torque."""
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

    Its structure is elastic (first mode 100 Hz), motors and joints have friction, encoders quantise: no rigid model is exact.
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
        # The model multiplies the gains by the inertia. In the direction of largest inertia at the motors, stiffness and
        # damping are equal with and without a payload, as with the PD: the elastic structure does not allow more.
        light, heavy = (_heaviest(arm) for arm in (empty, whole))
        kp, kd = (gain * light / heavy for gain in gains_for(bandwidth, damping))
        law: PID | ComputedTorque = ComputedTorque(known, kp, kd, **filtering)
    else:
        stiff, damped = servo_gains(empty, np.zeros(3), bandwidth, damping)
        law = PID(stiff, damped, feedforward=known if controller == "feedforward" else None, project=True, **filtering)
    return VirtualRobot(robot, drives, law, step=step, name="DualV")


def excitation(
    seed: int = 0,
    box: Sequence[float] = BOX,
    duration: float = 1.0,
    rate: float = 250.0,
    harmonics: int = 4,
) -> Motion:
    """Return a random periodic motion of the platform that fills a box, x_k = sum_h s_h sin(2 pi h t / T + phase_h)."""
    limits = np.asarray(box, dtype=np.float64)
    if limits.shape != (3,) or not np.all(limits > 0.0) or not duration > 0.0 or not rate * duration >= 2.0 or harmonics < 1:
        raise DynidentError(
            f"DualV: box {tuple(box)}, duration {duration}, rate {rate}, harmonics {harmonics}; give three positive "
            "half-widths, at least two samples and one harmonic"
        )
    generator = np.random.default_rng(seed)
    t = np.arange(round(duration * rate)) / rate
    w = 2.0 * np.pi * np.arange(1, harmonics + 1) / duration
    size = generator.uniform(0.3, 1.0, (harmonics, 3)) / np.arange(1, harmonics + 1)[:, None]
    angle = w[:, None] * t + generator.uniform(0.0, 2.0 * np.pi, (3, harmonics, 1))  # (3, harmonics, N)

    def summed(wave: Array, order: int) -> Array:
        return np.asarray(np.einsum("hk,kht->tk", size * w[:, None] ** order, wave))

    x = summed(np.sin(angle), 0)
    scale = limits / np.max(np.abs(x), axis=0)
    return Motion(t, scale * x, scale * summed(np.cos(angle), 1), -scale * summed(np.sin(angle), 2))


def preload(t: ArrayLike, x: ArrayLike, geometry: Geometry | None = None) -> Array:
    """Return motor torques of a pure preload, tau = (5 + 2 sin 3 t) u with u of `preload_direction`."""
    size = 5.0 + 2.0 * np.sin(3.0 * np.asarray(t, dtype=np.float64))
    return np.asarray(size[:, None] * preload_direction(x, geometry))
