"""The five-bar as a machine: motors, gears, cascaded loops and test motions of sec. 4.1, and what had to be assumed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dynident.control import Cascade
from dynident.drive import Drive, Encoder, Motor, Transmission
from dynident.errors import DynidentError
from dynident.friction import Tanh, Viscous
from dynident.mechanics import Motion
from dynident.robots.assumptions import Assumption
from dynident.robots.five_bar.geometry import Geometry
from dynident.robots.five_bar.model import (
    GEAR,
    MOTOR_BETA,
    MOTOR_COULOMB,
    MOTOR_INERTIA,
    MOTOR_VISCOUS,
    POSITION_GAINS,
    TORQUE_CONSTANT,
    VELOCITY_PI,
    mechanism,
)
from dynident.robots.machines import without_terms
from dynident.simulate import VirtualRobot
from dynident.trajectory import Arc, Line, Trapezoid

VELOCITY_CYCLE, STEP = 250e-6, 125e-6  # s, sec. 4.1.3
POSITION_CYCLES = (5e-3, 20e-3)  # s: of the model, and in the text on the hardware

ASSUMPTIONS: Mapping[str, Assumption] = {
    "masses": Assumption((1.8, 1.0, 1.0, 1.8), "kg", "bars 1 to 4, uniform rods; not printed, round numbers"),
    "platform": Assumption(1.0, "kg", "mass at P; not printed"),
    "current_loop": Assumption("ideal", "", "the thesis replaces the 62.5 us loop by K_t"),
    "current_limit": Assumption(float("inf"), "A", "not printed; the thesis suspects saturation but models none"),
    "encoder": Assumption("exact", "", "resolution and velocity filters of the drives are not printed"),
    "velocity_feedforward": Assumption(0.0, "-", "named in 4.1.3 without its gain; none gives the printed order of deviations"),
    "x_level": Assumption(0.9, "m", "y of the X move, not printed: home. 1.0 to 0.5 m give 25 to 36 mm"),
    "x_range": Assumption((-0.6, 0.6), "m", "the 1.2 m of the X move, centred; the start is not printed"),
    "circle_centre": Assumption((0.0, 0.9), "m", "centre of the circles, not printed; the home of the mechanism"),
    "circle_start": Assumption((1.0, 0.0), "-", "direction from the centre in which the circles start; not printed"),
    "circle_acceleration": Assumption(1.0, "m/s^2", "along the circle at both ends; that of the X move"),
}
"""Everything that sec. 4.1 does not print."""

NOTES = (
    "level and start of the X move are not printed: 24 to 35 mm from y = 1.05 to 0.5 m; and the thesis' loop has a velocity "
    "feed-forward of unknown gain, which takes deviation away and is left out",
    "a loop with k_v lags by 1 / k_v = 0.052 s at every speed, and the error is speed times lag. The printed 0.25 s would be "
    "3.6 revolutions at 14 rev/s, where 0.3 are printed: deviations and lags of the thesis are not of one linear loop",
)
"""What to know when its results are held beside the thesis'."""


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
    """Return the five-bar with the drives of Table 4.1 and cascaded control; what is not printed is in `ASSUMPTIONS`.

    Rotor, gear and friction are in the drives only: inertia 13e-4 kg m^2 and F_c tanh(beta w) + c w at the motor.

    Parameters
    ----------
    position_gain : float
        k_v [1/s]: 3.54 of the X move, 19.2 of the circles.
    position_cycle : float
        Cycle of the position loop [s]: 5 ms of the model, 20 ms on the hardware.
    velocity_feedforward : float
        Share of the reference velocity.
    position_filter, velocity_filter : float
        Low-pass filters of the loops [Hz], 0 for none; the cut-offs are not printed.
    coordinates : {"platform", "motors"}
        Coordinates of references and results: x and y of P, or alpha1 and alpha4.
    geometry : Geometry, optional
        Lengths.
    masses, platform : sequence of float (4,), float
        Masses of the bars and at P [kg].
    controller : optional
        Any other controller instead of the cascade.
    step : float
        Step of the simulation [s].

    Returns
    -------
    VirtualRobot
        The machine, motors ``motor1`` and ``motor4``.
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
    """Return test T1: P along x over 1.2 m at 1 m/s with 1 m/s^2 (trapezoid), then at rest.

    Parameters
    ----------
    y : float
        Level of the line [m]; not printed.
    rest : float
        Time at rest at the end [s].
    rate : float
        Samples per second [Hz].

    Returns
    -------
    Motion
        x and y of P.
    """
    left, right = ASSUMPTIONS["x_range"].value
    return _along(Line((left, y, 0.0), (right, y, 0.0)), 1.0, 1.0, rest, rate)


def circle(speed: float = 0.628, turns: float = 2.0, rest: float = 1.0, rate: float = 1000.0) -> Motion:
    """Return tests T2 (0.628 m/s) and T3 (1.256 m/s): P counter-clockwise on a circle of radius 0.2 m.

    Parameters
    ----------
    speed : float
        Along the circle [m/s].
    turns : float
        How many.
    rest : float
        Time at rest at the end [s].
    rate : float
        Samples per second [Hz].

    Returns
    -------
    Motion
        x and y of P.
    """
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
