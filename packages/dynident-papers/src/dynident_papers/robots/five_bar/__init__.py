"""The planar 5R manipulator (five-bar) of [Roldan2017, section 4.1 and appendix B.1].

Two driven bars A0 A and B0 B, two distal bars A P and B P, all angles absolute: alpha1, alpha4 driven, alpha2, alpha3 passive.
Numbers in brackets are the thesis' equations, its misprints are in docs/references.md:

    P = A0 + l1 e(alpha1) + l2 e(alpha2) = B0 + l4 e(alpha4) + l3 e(alpha3),        e(a) = (cos a, sin a)

A working mode is the pair of signs of sin(alpha2 - alpha1) and sin(alpha3 - alpha4); the assembly mode the sign of
sin(alpha3 - alpha2), +1 when P lies to the left of the line from A to B. Masses are NOT printed; see `mechanism`.
Arrays are batched: points (N, 2), driven angles (N, 2) as alpha1, alpha4, all angles (N, 4) as alpha1 to alpha4.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from dynident.control import Cascade
from dynident.control.feedforward import actuator_motion
from dynident.drive import Drive, Encoder, Motor, Transmission
from dynident.errors import DynidentError
from dynident.friction import Tanh, Viscous
from dynident.mechanics import Motion
from dynident.mechanism import Actuator, Body, Joint, Loop, Mechanism, from_com
from dynident.simulate import VirtualRobot
from dynident.trajectory import Trapezoid
from dynident_lab.servo import path_deviation, radial_deviation, time_lag
from dynident_lab.tool_paths import Arc, Line
from dynident_papers.robots.five_bar.closed_forms import *
from dynident_papers.robots.five_bar.data import *
from dynident_papers.robots.shared import at, without_terms

__all__ = [
    "ASSUMPTIONS", "GEAR", "MOTOR_BETA", "MOTOR_COULOMB", "MOTOR_INERTIA", "MOTOR_VISCOUS", "NOTES", "POSITION_GAINS",
    "TORQUE_CONSTANT", "VELOCITY_PI", "Compared", "Geometry", "Singularities", "body_jacobians", "circle", "compare",
    "forward_kinematics", "inverse_dynamics", "inverse_kinematics", "jacobians", "machine", "mechanism", "passive_rates",
    "singularities", "x_move",
]  # fmt: skip


def mechanism(
    geometry: Geometry | None = None,
    masses: Sequence[float] = (1.8, 1.0, 1.0, 1.8),
    platform: float = 1.0,
    coordinates: str = "motors",
    start: Sequence[float] = (0.0, 0.9),
) -> Mechanism:
    """Return the five-bar with 40:1 gears, in a horizontal plane; the platform keeps its orientation (auxiliary bars)."""
    choices = {"motors": ("alpha1", "alpha4"), "platform": ("x", "y")}
    if coordinates not in choices:
        raise DynidentError(f"five-bar: coordinates is {coordinates!r}; it is one of {', '.join(choices)}")
    if len(masses) != 4 or not all(np.isfinite(m) and m >= 0.0 for m in (*masses, platform)):
        raise DynidentError(
            f"five-bar: masses are {tuple(masses)} and {platform}; give four of the bars and that of the platform"
        )
    g = geometry or Geometry()
    a1, a2, a3, a4 = inverse_kinematics(start, g)[0]

    def bar(name: str, mass: float, length: float) -> Body:
        half = np.array([0.5 * length, 0.0, 0.0])
        return Body(name, from_com(mass, half, np.diag([0.0, 1.0, 1.0]) * mass * length**2 / 12.0))

    drive = {"ia": MOTOR_INERTIA * GEAR**2, "fv": MOTOR_VISCOUS * GEAR**2, "fc": MOTOR_COULOMB * GEAR}
    rest = {"fv": 0.0, "fc": 0.0}
    bodies = [Body("base"), Body("slide"), Body("platform", np.array([platform, *[0.0] * 9]))]
    bodies += [
        bar(f"bar{i + 1}", m, length) for i, (m, length) in enumerate(zip(masses, (g.l1, g.l2, g.l3, g.l4), strict=True))
    ]
    joints = (
        Joint("x", "prismatic", "base", "slide", axis=np.array([1.0, 0.0, 0.0])),
        Joint("y", "prismatic", "slide", "platform", axis=np.array([0.0, 1.0, 0.0])),
        Joint("alpha1", "revolute", "base", "bar1", at(*g.bases[0]), terms=drive),
        Joint("elbow2", "revolute", "bar1", "bar2", at(g.l1), terms=rest),
        Joint("alpha4", "revolute", "base", "bar4", at(*g.bases[1]), terms=drive),
        Joint("elbow3", "revolute", "bar4", "bar3", at(g.l4), terms=rest),
    )
    ends = (("P2", "bar2", g.l2), ("P3", "bar3", g.l3))
    loops = tuple(Loop(name, "revolute", body, "platform", at(length)) for name, body, length in ends)
    home = {"x": start[0], "y": start[1], "alpha1": a1, "elbow2": a2 - a1, "alpha4": a4, "elbow3": a3 - a4}
    return Mechanism(
        "five-bar",
        tuple(bodies),
        joints,
        loops,
        actuators=tuple(Actuator(f"motor{i}", {f"alpha{i}": 1.0}, ratio=GEAR, gain=TORQUE_CONSTANT) for i in (1, 4)),
        terms=(),
        gravity=np.zeros(3),
        independent=choices[coordinates],
        home=home,
        source="[Roldan2017, section 4.1]",
    )


def machine(
    position_gain: float = POSITION_GAINS[0],
    position_cycle: float = POSITION_CYCLES[0],
    *,
    velocity_feedforward: float = ASSUMPTIONS["velocity_feedforward"].value,
    position_filter: float = 0.0,
    velocity_filter: float = 0.0,
    coordinates: str = "platform",
    geometry: Geometry | None = None,
    masses: Sequence[float] = ASSUMPTIONS["masses"].value,
    platform: float = ASSUMPTIONS["platform"].value,
    controller: Any = None,
    step: float = STEP,
) -> VirtualRobot:
    """Return the five-bar with the drives of Table 4.1 and cascaded control; unprinted values are in `ASSUMPTIONS`.

    Rotor, gear and friction are in the drives only: inertia 13e-4 kg m^2 and F_c tanh(beta w) + c w at the motor.
    """
    robot = mechanism(geometry, masses, platform, coordinates)
    friction = (Viscous() + Tanh()).using({"viscous.fv": MOTOR_VISCOUS, "tanh.fc": MOTOR_COULOMB, "tanh.beta": MOTOR_BETA})
    drives = [
        Drive(
            f"motor{i}",
            Motor(TORQUE_CONSTANT, inertia=MOTOR_INERTIA, current_limit=ASSUMPTIONS["current_limit"].value),
            Transmission.gear(GEAR),
            friction,
            Encoder(velocity="exact"),
        )
        for i in (1, 4)
    ]
    loops = controller or Cascade(
        position_gain,
        *VELOCITY_PI,
        position_cycle=position_cycle,
        velocity_cycle=VELOCITY_CYCLE,
        velocity_feedforward=velocity_feedforward,
        position_filter=position_filter,
        velocity_filter=velocity_filter,
    )
    return VirtualRobot(without_terms(robot, ("alpha1", "alpha4")), tuple(drives), loops, step=step, name="5R")


def x_move(y: float = ASSUMPTIONS["x_level"].value, rest: float = 1.5, rate: float = 1000.0) -> Motion:
    """Return test T1: P along x over 1.2 m at 1 m/s with 1 m/s^2 (trapezoid), then at rest."""
    left, right = ASSUMPTIONS["x_range"].value
    return _along(Line((left, y, 0.0), (right, y, 0.0)), 1.0, 1.0, rest, rate)


def circle(speed: float = 0.628, turns: float = 2.0, rest: float = 1.0, rate: float = 1000.0) -> Motion:
    """Return tests T2 (0.628 m/s) and T3 (1.256 m/s): P counter-clockwise on a circle of radius 0.2 m."""
    centre = np.array([*ASSUMPTIONS["circle_centre"].value, 0.0])
    out = np.array([*ASSUMPTIONS["circle_start"].value, 0.0])
    path = Arc(centre + 0.2 * out, centre, (0.0, 0.0, 1.0), 2.0 * np.pi * turns)
    return _along(path, speed, ASSUMPTIONS["circle_acceleration"].value, rest, rate)


def _along(path: Line | Arc, speed: float, acceleration: float, rest: float, rate: float) -> Motion:
    if not (np.isfinite(rest) and rest >= 0.0 and np.isfinite(rate) and rate > 0.0):
        raise DynidentError(f"rest is {rest} s and rate {rate} Hz; give a time of at least 0 and a rate above 0")
    profile = Trapezoid.within(path.length, speed, acceleration)
    t = np.arange(int(np.ceil((profile.duration + rest) * rate)) + 1) / rate
    s, ds, dds = (y[:, None] for y in profile(t))
    x, d, e = path(s[:, 0])
    return Motion(t, x[:, :2], (d * ds)[:, :2], (e * ds**2 + d * dds)[:, :2])


class Compared(NamedTuple):
    """One number of a test."""

    test: str  # Motion
    quantity: str  # Measured quantity
    unit: str  # Its unit
    found: float  # Value of the virtual robot
    model: float | None  # Printed in the thesis, or None
    experiment: float | None  # Printed in the thesis, or None


def compare(position_cycle: float = 5e-3) -> tuple[Compared, ...]:
    """Run the X move and both circles."""
    slow, fast = POSITION_GAINS
    move = x_move()
    run = machine(slow, position_cycle).simulate(move)
    away = 1e3 * float(path_deviation(run.truth.motion.q, move.q[::50]).max())
    found = [Compared("X move, k_v = 3.54 1/s", "deviation from the line", "mm", away, 22.0, 22.0)]
    for speed, (error, lag, radial) in PUBLISHED.items():
        test = f"circle at {speed:g} m/s, k_v = 19.2 1/s"
        run = machine(fast, position_cycle).simulate(circle(speed))
        wanted = actuator_motion(run.robot.mechanism, run.reference)
        turns = GEAR * (wanted.q - run.truth.rho) / (2.0 * np.pi)
        moving = np.any(np.abs(wanted.v) > 0.0, axis=1)
        late = np.mean([time_lag(run.truth.t, wanted.v[:, i], run.truth.rho_v[:, i]) for i in (0, 1)])
        out = 1e3 * float(np.abs(radial_deviation(run.truth.motion.q, CENTRE, RADIUS)).max())
        rms = float(np.sqrt(np.mean(turns[moving] ** 2)))
        found += [
            Compared(test, "motor error, largest", "rev", float(np.abs(turns).max()), *error),
            Compared(test, "motor error, RMS", "rev", rms, *error),
            Compared(test, "lag of the velocity", "s", float(late), *lag),
            Compared(test, "radial deviation", "mm", out, None, None if radial is None else 1e3 * radial),
        ]
    return tuple(found)
