"""Heating and cooling of one joint: repeated tests with warming or rests in between [Pagani2022, section 4.3.1].

W = D W_c        D = time in motion over the period of the back-and-forth moves
"""

from __future__ import annotations

import math

from numpy.typing import ArrayLike

from dynident.arrays import Array
from dynident.checks import choice, number, whole
from dynident.errors import DynidentError, require
from dynident.excitation import MotionLimits, Plan, Stage
from dynident.excitation.designs import plan_within, rates_of
from dynident.excitation.objective import per_coordinate
from dynident.trajectory.profiles import Strokes
from dynident_lab.thermal.complete import reach
from dynident_lab.thermal.strokes import friction_plateaus, warming

LONGEST = 0.5  # longest plateau of a test [s]
COLD = 12 * 3600.0  # rest without power before a test, section 4.5.1 [s]
ENERGISED = 2 * 3600.0  # time with motors on but without motion before a power-on test [s]
SHARE = 0.8  # of the range for warming, section 2.4.1


def _joint(limits: MotionLimits, joint: str) -> int:
    require(limits, MotionLimits, "limits")
    if joint not in limits.coordinates:
        raise DynidentError(f"joint '{joint}' does not exist; joints are {', '.join(limits.coordinates)}")
    return limits.coordinates.index(joint)


def _room(limits: MotionLimits, rest: Array) -> tuple[Array, Array, Array, Array, Array]:
    """Return lowest and highest positions about a posture, and the largest speeds, accelerations and jerks."""
    keep = 1.0 - max(limits.margin, 0.01)
    speed, push = rates_of(limits)
    low, high = (rest + keep * (x - rest) for x in reach(limits, rest))
    return low, high, speed, keep * push, keep * limits.jerk


def _test(limits: MotionLimits, j: int, rest: Array) -> Stage:
    """Return the plateaus of one joint."""
    low, high, speed, push, jerk = _room(limits, rest)
    plateaus = friction_plateaus(low, high, speed, push, longest=LONGEST, posture=rest, jerk=jerk, joints=[j])
    return Stage("test", "friction", plateaus)


def _to_and_fro(limits: MotionLimits, j: int, rest: Array, duty: float, interval: float) -> Strokes:
    """Return back-and-forth strokes of one joint at full speed, with a rest after each pair according to the duty cycle."""
    low, high, speed, push, jerk = _room(limits, rest)
    once = warming(low[j : j + 1], high[j : j + 1], speed[j], push[j], interval, SHARE, jerk[j])
    (_, _, way, top, ramp), back = once.moves[:2]
    stroke = back[1]  # the second stroke begins when the first has ended
    pairs = math.ceil(duty * interval / (2.0 * stroke) - 1e-9)
    shorter = duty * interval / (2.0 * pairs)  # stroke duration for the wanted time in motion
    if way - top * (stroke - shorter) >= top * ramp:
        way, stroke = way - top * (stroke - shorter), shorter
    else:  # full speed has priority
        pairs -= 1
    if pairs < 1:
        raise DynidentError(f"duty = {duty:g} leaves no motion in {interval:g} s; raise it, or lengthen the interval")
    moves = []
    for k in range(pairs):
        begin = k * interval / pairs
        moves += [(j, begin, way, top, ramp), (j, begin + stroke, -way, top, ramp)]
    start = rest.copy()
    start[j] = once.start[0] + 0.5 * (once.moves[0][2] - way)  # about the middle of the range
    return Strokes(start, moves, interval)


def _several(cycles: int) -> int:
    if whole("cycles", cycles) < 2:
        raise DynidentError(f"cycles is {cycles}; a thermal test needs at least two")
    return cycles


def heating_test(
    robot: str,
    limits: MotionLimits,
    joint: str,
    rate: float = 100.0,
    *,
    duty: float = 1.0,
    interval: float = 120.0,
    cycles: int = 40,
    power: str = "off",
    posture: ArrayLike | None = None,
) -> Plan:
    """Return the heating test of one joint: repeated plateaus and motion at full speed for two minutes.

    Parameters
    ----------
    robot : str
        Name of the robot.
    limits : MotionLimits
        All limits of the robot.
    joint : str
        Joint to heat.
    rate : float
        Samples per second [Hz].
    duty : float
        Share D of the interval in motion, above 0 and up to 1; 0.2, 0.4, 0.6 and 1 in [Pagani2022].
    interval : float
        Warming between two tests [s].
    cycles : int
        Number of tests.
    power : {"off", "on"}
        "off" starts cold; "on" first lets the motors heat the joints without motion (section 4.5.1).
    posture : array_like (n,), optional
        Position of the other joints; the middle of the ranges when omitted.

    Returns
    -------
    Plan
        The plan; its notes describe the preparation of the robot.
    """
    j = _joint(limits, joint)
    if not 0.0 < number("duty", duty) <= 1.0 or not number("interval", interval) >= 1.0:
        raise DynidentError(
            f"duty = {duty} and interval = {interval} s; give a share above 0 and up to 1, and a time of at least 1 s"
        )
    choice("power", power, ("off", "on"))
    rest = _rest(limits, posture)
    warm = Stage("warming", "warming", _to_and_fro(limits, j, rest, duty, interval), record=False)
    facts = {"kind": "heating", "joint": joint, "duty": duty, "interval": interval, "power": power, "unpowered_before": COLD}
    notes = {"protocol": facts, **({"campaign": {"idle": ENERGISED}} if power == "on" else {})}
    return plan_within(robot, limits, [_test(limits, j, rest), warm], rate, _several(cycles), 0.0, rest, notes)


def cooling_test(
    robot: str,
    limits: MotionLimits,
    joint: str,
    rate: float = 100.0,
    *,
    interval: float = 300.0,
    cycles: int = 24,
    posture: ArrayLike | None = None,
) -> Plan:
    """Return the cooling test of one joint: plateaus every `interval` seconds at standstill in between; start it hot.

    The other joints stand in a `posture` (n,), the middle of their ranges when omitted.
    """
    j = _joint(limits, joint)
    rest = _rest(limits, posture)
    facts = {"kind": "cooling", "joint": joint, "interval": interval, "power": "off", "unpowered_before": COLD}
    stages, period = [_test(limits, j, rest)], number("interval", interval)
    return plan_within(robot, limits, stages, rate, _several(cycles), period, rest, {"protocol": facts})


def _rest(limits: MotionLimits, posture: ArrayLike | None) -> Array:
    return (
        0.5 * (limits.lower + limits.upper) if posture is None else per_coordinate(posture, len(limits.coordinates), "posture")
    )
