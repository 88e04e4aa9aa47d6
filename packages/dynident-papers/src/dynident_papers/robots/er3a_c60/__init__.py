"""An arm like the ER3A-C60 (Efort), the six-axis robot of [Pagani2022].

Source: [Pagani2022, chapters 2 to 5]. Numbers in brackets are the thesis' equations. It prints ranges, speeds, payload, mass
and reach (Table 4), the thermal model of axis 4 (130) and the time constants of all axes (Table 8), but neither a DH table nor
identified inertias or friction: everything else is in `ASSUMPTIONS`, each with its reason. Three printed lengths fix most of
the geometry: a2 + a3 = 340 mm, d4 + d6 = 377 mm and a1 + a2 + hypot(a3, d4) = 628 mm.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from dynident.arrays import Array
from dynident.control import Cascade
from dynident.drive import Drive, Encoder, Motor, Transmission
from dynident.excitation import MotionLimits, limits_of
from dynident.friction import Friction, Polynomial
from dynident.mechanics import mass_matrix
from dynident.mechanism import Actuator, Limits, Mechanism, from_principal
from dynident.mechanism.elements import rotation_exp
from dynident.simulate import Sensors, VirtualRobot
from dynident_lab.thermal import SecondOrder
from dynident_papers.robots.er3a_c60.data import *
from dynident_papers.robots.shared import without_terms

__all__ = [
    "AMBIENT", "ASSUMPTIONS", "AXIS_4", "CAPSULES", "COLD_OVER_HOT", "CYCLES", "CYCLE_TIME", "FAULT", "FRICTION_4",
    "FUNDAMENTAL", "HARMONICS", "JOINTS", "LINK_LENGTHS", "MASS", "MAY_TOUCH", "PAYLOAD", "PLATEAUS", "POWER_4", "RANGES",
    "REACH", "REPEATABILITY", "SAMPLING", "SINES", "SPEEDS", "TIME_CONSTANTS", "WARMING_SHARE", "WARMING_TIME", "Assumption",
    "assumed", "dh_table", "friction_coefficients", "friction_laws", "friction_powers", "limit_settings", "limits",
    "linear_friction", "machine", "mechanism", "thermal_models",
]  # fmt: skip


TERMS = ("ia", "fv", "fc")  # [Pagani2022] has no offsets


def assumed(name: str) -> Any:
    """Return an assumed value, numbers as an array."""
    value = ASSUMPTIONS[name].value
    return np.array(value, dtype=np.float64) if isinstance(value, tuple) else value


def dh_table() -> list[dict[str, Any]]:
    """Return the modified (Craig) Denavit-Hartenberg table: a, alpha of the frame before, d, theta at q = 0."""
    right = 0.5 * np.pi
    a = (0.0, assumed("a1"), assumed("a2"), assumed("a3"), 0.0, 0.0)
    alpha = (0.0, right, 0.0, right, -right, right)
    d = (assumed("d1"), 0.0, 0.0, assumed("d4"), 0.0, assumed("d6"))
    theta = (0.0, right, 0.0, 0.0, 0.0, 0.0)
    limits = [
        Limits(low, high, speed, torque)
        for (low, high), speed, torque in zip(RANGES.tolist(), SPEEDS.tolist(), assumed("torques").tolist(), strict=True)
    ]
    rows = zip(JOINTS, a, alpha, d, theta, limits, strict=True)
    return [dict(zip(("joint", "a", "alpha", "d", "theta", "limits"), row, strict=True)) for row in rows]


def friction_coefficients() -> Array:
    """Return the cold friction a0 ... a3 of every axis, f = a0 sign(v) + a1 v + a2 v |v| + a3 v^3 (35)."""
    v60 = 0.6 * SPEEDS
    return np.asarray(assumed("friction_60")[:, None] * assumed("friction_shape") / v60[:, None] ** np.arange(4))


def friction_laws() -> tuple[Friction, ...]:
    """Return the cold friction of every axis as a law with numbers."""
    return tuple(
        Polynomial(3).using(dict(zip(("a0", "a1", "a2", "a3"), row, strict=True))) for row in friction_coefficients().tolist()
    )


def linear_friction() -> Array:
    """Return the least squares Coulomb and viscous friction of the polynomials over all speeds, prior of the mechanism."""
    share = np.linspace(0.0, 1.0, 101)
    out = []
    for law, speed in zip(friction_laws(), SPEEDS, strict=True):
        v = share[1:] * speed
        out.append(np.linalg.lstsq(np.column_stack([np.ones_like(v), v]), law(v), rcond=None)[0])
    return np.array(out)


def friction_powers() -> Array:
    """Return the cold friction power of every axis at full duty: printed for axis 4, in proportion to f60 v60 for others."""
    return np.asarray(POWER_4 / (FRICTION_4 * 0.6 * SPEEDS[3]) * assumed("friction_60") * 0.6 * SPEEDS)


def thermal_models() -> tuple[SecondOrder, ...]:
    """Return the thermal model of every axis: (130) for axis 4, others with C1 and C2 from Table 8 at full duty.

    With A = K1 + K2 and B = K1 - W alpha, C1 C2 = (A B - K1^2) t1 t2 and A C1 + B C2 = C1 C2 (1/t1 + 1/t2).
    """
    found = []
    for i, power in enumerate(friction_powers()):
        numbers = dict(AXIS_4)
        if i != 3:
            numbers["K1"], numbers["K2"] = (AXIS_4[k] * float(power) / POWER_4 for k in ("K1", "K2"))
            A, B = numbers["K1"] + numbers["K2"], numbers["K1"] - power * AXIS_4["alpha"]
            product = (A * B - numbers["K1"] ** 2) * np.prod(TIME_CONSTANTS[i])
            total = product * np.sum(1.0 / TIME_CONSTANTS[i])
            first = (total - np.sqrt(total**2 - 4.0 * A * B * product)) / (2.0 * A)
            numbers["C1"], numbers["C2"] = float(first), float(product / first)
        found.append(SecondOrder(**numbers, reference=AMBIENT))
    return tuple(found)


def mechanism(payload: bool = False) -> Mechanism:
    """Return the arm: floor-mounted, z up, upper arm upright and forearm ahead at q = 0."""
    bare = Mechanism.from_dh(dh_table(), "modified", "ER3A-C60")
    gears, rotors = assumed("gears"), assumed("rotors")
    bodies = [bare.bodies[0]]
    columns = (assumed(name) for name in ("masses", "coms", "gyration", "turns"))
    for body, mass, com, radii, turn in zip(bare.bodies[1:], *columns, strict=True):
        bodies.append(replace(body, inertia=from_principal(mass, com, mass * radii**2, rotation_exp(turn))))
    joints = [
        replace(joint, terms={"ia": inertia, "fv": fv, "fc": fc})
        for joint, inertia, (fc, fv) in zip(bare.joints, rotors * gears**2, linear_friction(), strict=True)
    ]
    motors = tuple(
        Actuator(f"motor_{i}", {joint: 1.0}, float(gear), gain=float(gain))
        for i, (joint, gear, gain) in enumerate(zip(JOINTS, gears, assumed("torque_constants"), strict=True), start=1)
    )
    arm = Mechanism(
        bare.name,
        tuple(bodies),
        tuple(joints),
        actuators=motors,
        terms=TERMS,
        gravity=bare.gravity,
        source="[Pagani2022, chapter 3]; geometry and masses assumed",
    )
    return arm.with_payload(PAYLOAD, com=(0.0, 0.0, 0.06)) if payload else arm


def limit_settings() -> dict[str, Any]:
    """Return the content of a limits.toml of this arm."""
    acceleration = SPEEDS / assumed("rise_time")
    rates = {
        "acceleration": acceleration,
        "jerk": acceleration / assumed("jerk_time"),
        "torque": assumed("torques"),
        "power": assumed("powers"),
    }
    return {
        "bandwidth": assumed("bandwidth"),
        "joints": {joint: {key: float(x[i]) for key, x in rates.items()} for i, joint in enumerate(JOINTS)},
        "tool": {"frame": "link_6", "height": assumed("tool_height")},
        "capsule": [{"link": link, "from": start, "to": end, "radius": radius} for link, start, end, radius in CAPSULES],
        "collision": {"clearance": assumed("clearance"), "ignore": [list(pair) for pair in MAY_TOUCH]},
    }


def limits(arm: Mechanism | None = None, **changes: Any) -> MotionLimits:
    """Return all limits of the arm's motions: position, speed, acceleration, jerk, torque, power, tool height, collision."""
    return limits_of(mechanism() if arm is None else arm, {**limit_settings(), **changes})


STEP = 2.5e-4  # s


def machine(
    *,
    payload: bool = False,
    warm: bool = True,
    bandwidth: float = ASSUMPTIONS["bandwidth"].value,
    position_cycle: float = ASSUMPTIONS["position_cycle"].value,
    velocity_cycle: float = ASSUMPTIONS["velocity_cycle"].value,
    velocity_feedforward: float = ASSUMPTIONS["velocity_feedforward"].value,
    noise: bool = True,
    controller: Any = None,
    step: float = STEP,
) -> VirtualRobot:
    """Return the arm on geared drives with cascaded control; most numbers are not in [Pagani2022], see `ASSUMPTIONS`.

    Rotor inertia is in the drives, friction (cubic in the speed, [Pagani2022, eq. 35]) at the joints; neither is counted twice.
    """
    whole = mechanism(payload)
    arm = without_terms(whole, JOINTS)
    limits = {joint.name: joint.limits for joint in arm.joints}
    gears, rotors, constants = assumed("gears"), assumed("rotors"), assumed("torque_constants")
    drives = []
    for i, joint in enumerate(JOINTS):
        motor = Motor(
            float(constants[i]),
            inertia=float(rotors[i]),
            current_limit=float(limits[joint].effort / (gears[i] * constants[i])),
            speed_limit=float(ASSUMPTIONS["speed_reserve"].value * limits[joint].velocity * gears[i]),
        )
        encoder = Encoder(ASSUMPTIONS["encoder"].value, filter=ASSUMPTIONS["encoder_filter"].value)
        drives.append(Drive(f"motor_{i + 1}", motor, Transmission.gear(float(gears[i])), encoder=encoder))
    fast = 2.0 * np.pi * bandwidth / ASSUMPTIONS["bandwidth"].value * ASSUMPTIONS["velocity_bandwidth"].value
    seen = np.diag(mass_matrix(whole, ASSUMPTIONS["pose"].value)[0])  # links and rotors at the joints
    gain = fast * seen / (gears**2 * constants)
    loops = controller or Cascade(
        2.0 * np.pi * bandwidth,
        gain,
        fast * ASSUMPTIONS["velocity_reset"].value * gain,
        position_cycle=position_cycle,
        velocity_cycle=velocity_cycle,
        velocity_feedforward=velocity_feedforward,
    )
    return VirtualRobot(
        arm,
        tuple(drives),
        loops,
        friction=dict(zip(JOINTS, friction_laws(), strict=True)),
        thermal=dict(zip(JOINTS, thermal_models(), strict=True)) if warm else {},
        sensors=Sensors(effort="joint_torque", side="joint", effort_noise=assumed("noise") if noise else 0.0),
        step=step,
        name="ER3A-C60",
        ambient=AMBIENT,
    )
