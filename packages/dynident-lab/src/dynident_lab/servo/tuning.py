"""Gains for a given bandwidth and damping: pole placement loop by loop, inner loops first and well separated.

PI loops                as in `dynident.control.cascade`
P, PI cascade           bandwidth and damping of the closed position loop, solved for exactly

A rigid axis J s + c with P position and PI velocity loop has three poles, the roots of

    s^3 + (a + d) s^2 + (b + a kv) s + b kv = (s^2 + 2 zeta w s + w^2)(s + p),    a = Kt kP/J, b = Kt kI/J, d = c/J

and its closed loop is kv (a s + b) over this polynomial. Bandwidth and damping leave one of three gains free: the third
condition is b, the squared natural frequency of the velocity loop, which sets the stiffness against disturbances. One equation
in kv remains. Loops with cycles, filters, delays, a winding or shafts start from there and are solved with the model `Axis`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from dynident.arrays import Array
from dynident.control import Cascade, CurrentLoop, pi_gains
from dynident.control.cascade import above, not_below
from dynident.control.tick import Loop
from dynident.drive import Drive
from dynident.errors import DynidentError, DynidentWarning, require, warn
from dynident_lab.servo.axis import Axis

WIDEST = 1e4  # position gain over the wanted bandwidth, or its inverse, largest value in the search for a rigid axis
EXACT = 1e-6  # error of bandwidth (relative) and damping at convergence


class ControlWarning(DynidentWarning):
    """The loops are feasible but close to their limits (small margins, slow cycles)."""


def pi_poles(inertia: float, viscous: float, constant: float, proportional: float, integral: float) -> tuple[float, float]:
    """Return frequency and damping of a PI loop of the plant constant / (inertia s + viscous), the inverse of `pi_gains`."""
    J, Kt, kI = above("inertia", inertia), above("constant", constant), above("integral", integral)
    c, kP = not_below("viscous", viscous), not_below("proportional", proportional)
    return float(np.sqrt(Kt * kI / J)), float((c + Kt * kP) / (2.0 * np.sqrt(J * Kt * kI)))


def tune_cascade(
    drive: Drive,
    bandwidth: float,
    damping: float = 0.7,
    *,
    position_cycle: float,
    velocity_cycle: float,
    current_cycle: float | None = None,
    velocity_bandwidth: float | None = None,
    current_bandwidth: float | None = None,
    current_damping: float = 1.0,
    separation: float = 5.0,
    load: float = 0.0,
    viscous: float = 0.0,
    delay: float = 0.0,
    least_margin: float = 45.0,
    sampled: bool = True,
    **options: Any,
) -> Cascade:
    """Return a cascade with a given bandwidth and damping of its closed position loop, from the numbers of the drive.

    With ``sampled`` both hold for the loops with their cycles, filters, delays and shafts, as in `Axis`; otherwise for the
    rigid axis (J s + c) and continuous loops with an ideal current. The third condition is the natural frequency of the
    velocity loop, kI = J (2 pi velocity_bandwidth)^2 / Kt. A velocity feed-forward is outside the loop and not
    counted. Infeasible requests raise an error; a `ControlWarning` names a loop whose cycle leaves a small phase margin.

    Parameters
    ----------
    drive : Drive
        Motor, transmission, encoder.
    bandwidth : float
        Frequency at which the amplitude of the closed position loop has fallen by 3 dB [Hz].
    damping : float
        Damping ratio of the pole pair of the closed position loop, above 0 and up to 1.
    position_cycle, velocity_cycle : float
        Cycle times [s].
    current_cycle : float, optional
        Cycle time of the current loop [s]; None for an ideal current.
    velocity_bandwidth : float, optional
        Natural frequency of the velocity loop, sqrt(Kt kI / J) / (2 pi) [Hz]; `separation` times `bandwidth` when omitted.
    current_bandwidth : float, optional
        Natural frequency of the current loop [Hz]; `separation` times the velocity loop's when omitted.
    current_damping : float
        Damping ratio of the current loop.
    separation : float
        Speed ratio of an inner loop to the loop around it.
    load : float
        Inertia of the mechanism at the motor [kg m^2].
    viscous : float
        Slope of the rotor's friction at the speed of interest [N m s/rad].
    delay : float
        Time between a tick of the innermost loop and its command at the motor [s], see `Cascade`.
    least_margin : float
        Phase margin below which a warning is issued [deg].
    sampled : bool
        True includes cycles, filters, delays, winding and shafts; False is the rigid axis with continuous loops.
    **options : float, Mechanism or bool
        Other fields of `Cascade`.

    Returns
    -------
    Cascade
        Gains for this drive.

    Examples
    --------
    >>> from dynident_lab.servo import tune_cascade
    >>> from dynident.drive import Drive, Motor
    >>> drive = Drive("A", Motor(torque_constant=1.43, inertia=13e-4))
    >>> loops = tune_cascade(drive, 3.0, position_cycle=5e-3, velocity_cycle=250e-6)
    >>> round(loops.position_gain, 2), round(loops.velocity_gain, 2), round(loops.velocity_integral, 2)
    (17.21, 0.14, 8.08)
    """
    require(drive, Drive, "drive")
    outer, apart = above("bandwidth", bandwidth), above("separation", separation)
    middle = apart * outer if velocity_bandwidth is None else above("velocity_bandwidth", velocity_bandwidth)
    inner = apart * middle if current_bandwidth is None else above("current_bandwidth", current_bandwidth)
    zeta, natural = above("damping", damping), 2.0 * np.pi * middle
    if zeta > 1.0:
        raise DynidentError(f"tuning: damping = {zeta:g} is above 1; give at most 1")
    scale = above("inertia", drive.inertia + not_below("load", load)) / drive.motor.torque_constant
    rigid = place_rigid(outer, zeta, natural, not_below("viscous", viscous) / (scale * drive.motor.torque_constant))
    current = None
    if current_cycle is not None:
        R, L, w = drive.motor.resistance, drive.motor.inductance, 2.0 * np.pi * inner
        if R == 0.0 and L == 0.0:
            raise DynidentError(
                f"drive '{drive.actuator}' has neither resistance nor inductance, so its current loop cannot be tuned; give "
                "them, or current_cycle=None for an ideal loop"
            )
        # Without inductance the current follows at once: an integrator alone gives a first-order loop.
        gains = pi_gains(L, R, 1.0, inner, current_damping) if L > 0.0 else (0.0, w * R)
        current = CurrentLoop(*gains, current_cycle)
    loops = Cascade(
        rigid.position,
        rigid.velocity * scale,
        natural**2 * scale,
        position_cycle=position_cycle,
        velocity_cycle=velocity_cycle,
        current=current,
        delay=delay,
        **options,
    )
    if sampled:

        def axis_of(kv: float, kP: float) -> Axis:
            changed = replace(loops, position_gain=kv, velocity_gain=kP, velocity_feedforward=0.0)
            return Axis(drive, changed, load, viscous)

        kv, kP = place(axis_of, rigid, scale, outer, zeta).tolist()
        loops = replace(loops, position_gain=kv, velocity_gain=kP)
    _warn(Axis(drive, loops, load, viscous), least_margin)
    return loops


def _warn(axis: Axis, least: float) -> None:
    """Warn about the innermost loop with a small phase margin; the loops around it depend on it."""
    order: tuple[Loop, ...] = ("velocity", "position") if axis.loops.current is None else ("current", "velocity", "position")
    for loop in order:
        stable, left = axis.stable(loop), axis.margins(loop).phase
        if stable and left >= least:
            continue
        undelayed = replace(axis.loops, delay=0.0, position_delay=0.0)
        without = replace(axis, loops=undelayed).margins(loop, sampled=False).phase
        state = f"keeps a phase margin of {left:.0f} degrees" if stable else "is unstable"
        warn(
            f"the {loop} loop of drive '{axis.drive.actuator}' {state} at its cycle of {axis.loops.cycles[loop]:g} s "
            f"({without:.0f} degrees without sampling and delay): shorten them or lower the bandwidth",
            ControlWarning,
        )
        return


class Placed(NamedTuple):
    """Gains of a rigid axis and its poles."""

    position: float  # kv [1/s]
    velocity: float  # a = Kt kP / J [1/s]
    frequency: float  # w of the pole pair [rad/s]


def place_rigid(bandwidth: float, damping: float, natural: float, decay: float = 0.0) -> Placed:
    """Return the gains of a rigid axis without cycles for a -3 dB bandwidth and the damping of its pole pair."""
    from scipy.optimize import brentq  # noqa: PLC0415 - scipy is imported on first use

    wanted = 2.0 * np.pi * bandwidth

    def excess(x: float) -> float:
        return float(np.log(rigid_bandwidth(_gains(wanted * np.exp(x), damping, natural, decay), natural, decay) / wanted))

    low, high, x = -np.log(WIDEST), np.log(WIDEST), 0.0
    if excess(low) < 0.0 < excess(high):
        x = float(brentq(excess, low, high, xtol=1e-14, rtol=1e-14))
    if abs(excess(x)) > EXACT:  # infeasible, or the amplitude falls below -3 dB before the resonance of the pair
        raise DynidentError(
            f"tuning: bandwidth = {bandwidth:g} Hz with damping {damping:g} is not possible with a velocity loop of "
            f"{natural / (2.0 * np.pi):.4g} Hz; give another velocity_bandwidth or more damping"
        )
    found = _gains(wanted * float(np.exp(x)), damping, natural, decay)
    if found.velocity <= 0.0:
        raise DynidentError(
            f"tuning: bandwidth = {bandwidth:g} Hz with damping {damping:g} needs a negative velocity gain because friction "
            "alone damps more; raise bandwidth or velocity_bandwidth"
        )
    return found


def _gains(kv: float, zeta: float, natural: float, decay: float) -> Placed:
    """Return the velocity gain that gives the pole pair its damping at a position gain, by elimination of a and p."""
    b = natural**2
    roots = np.roots([1.0, -2.0 * zeta * kv, decay * kv - b, 2.0 * zeta * kv * b, -(kv**2) * b])
    w = float(roots.real[np.abs(roots.imag) <= 1e-9 * np.abs(roots)].max())
    return Placed(kv, 2.0 * zeta * w + b * kv / w**2 - decay, w)


def rigid_bandwidth(gains: Placed, natural: float, decay: float) -> float:
    """Return the frequency at which the closed position loop of a rigid axis first falls to -3 dB."""
    kv, a, b = gains.position, gains.velocity, natural**2
    A, S, P = a + decay, b + a * kv, b * kv
    roots = np.roots([1.0, A**2 - 2.0 * S, S**2 - 2.0 * P * A - 2.0 * (kv * a) ** 2, P**2 - 2.0 * P**2])
    squares = roots.real[(np.abs(roots.imag) <= 1e-9 * np.abs(roots)) & (roots.real > 0.0)]
    return float(np.sqrt(squares.min()))


def place(axis_of: Callable[[float, float], Axis], start: Placed, scale: float, bandwidth: float, damping: float) -> Array:
    """Return the position and velocity gain of sampled loops with the wanted bandwidth and damping."""
    from scipy.optimize import root  # noqa: PLC0415 - scipy is imported on first use

    first = np.log([start.position, start.velocity * scale])

    def miss(x: Array) -> Array:
        axis = axis_of(*np.exp(first + np.clip(x, -5.0, 5.0)).tolist())
        reached = min(axis.bandwidth(), 1e3 * bandwidth)
        return np.array([np.log(reached / bandwidth), pair(axis, start.frequency, damping)[1] - damping])

    x = root(miss, np.zeros(2), tol=1e-10).x
    gains = np.exp(first + np.clip(x, -5.0, 5.0))
    if np.abs(miss(x)).max() > EXACT or not axis_of(*gains.tolist()).stable():
        axis = axis_of(*np.exp(first).tolist())
        raise DynidentError(
            f"tuning: drive '{axis.drive.actuator}' cannot reach {bandwidth:g} Hz with damping {damping:g} at this "
            f"velocity_bandwidth; lower them or shorten the cycles (outer {axis.loops.position_cycle:g} s, inner "
            f"{axis.loops.velocity_cycle:g} s)"
        )
    return np.asarray(gains)


def pair(axis: Axis, frequency: float, damping: float) -> tuple[float, float]:
    """Return natural frequency and damping of the pole pair of a closed position loop nearest to an expected one."""
    poles = axis.loop("position", sampled=True).poles
    poles = np.asarray(np.log(poles[np.abs(poles) > 1e-9]) / axis.loops.position_cycle, dtype=np.complex128)
    real = poles[np.abs(poles.imag) <= 1e-9 * np.abs(poles)].real
    above = poles[poles.imag > 1e-9 * np.abs(poles)]
    pairs = [(float(np.abs(s)), float(-s.real / np.abs(s))) for s in above]
    pairs += [(np.sqrt(s * r), -(s + r) / (2.0 * np.sqrt(s * r))) for s, r in combinations(real.tolist(), 2) if s * r > 0.0]
    if not pairs:
        return frequency, 10.0
    return min(pairs, key=lambda one: abs(np.log(one[0] / frequency)) + abs(one[1] - damping))
