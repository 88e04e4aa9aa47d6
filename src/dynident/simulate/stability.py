"""Can the step be used: cycle times are whole multiples of it, and no drive is faster than the integrator can follow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dynident.drive import Drive
from dynident.errors import SimulationError

Array = NDArray[np.float64]

INTEGRATORS = ("rk4", "midpoint", "euler")
WHOLE = 1e-6  # how far a cycle time may be from a whole multiple of the step
GROWTH = 1e-6  # growth of a drive's own motion per step that counts as none: rounding of a rigid-body mode
MARGIN = 0.8  # of the largest stable step, in the step that is proposed


def ticks(cycles: Mapping[str, float], step: float) -> dict[str, int]:
    """Return how many steps each cycle takes, all of them whole numbers."""
    for name, cycle in cycles.items():
        ratio = cycle / step
        if ratio < 1.0 - WHOLE or abs(ratio - round(ratio)) > WHOLE * ratio:
            better = _common(list(cycles.values()), step)
            what = f"give VirtualRobot(step={better:.9g})" if better else "make the cycle times multiples of each other"
            raise SimulationError(
                f"{name} = {cycle:g} s is {ratio:.6g} times the step {step:g} s, not a whole multiple; {what}"
            )
    return {name: round(cycle / step) for name, cycle in cycles.items()}


def log_ticks(cycle: float, step: float) -> int:
    """Return the whole number of steps between two samples of a log."""
    ratio = cycle / step
    if ratio < 1.0 - WHOLE or abs(ratio - round(ratio)) > WHOLE * ratio:
        near = max(1, round(ratio)) * step
        raise SimulationError(
            f"log_cycle = {cycle:g} s is {ratio:.6g} steps of {step:g} s, not a whole number; give log_cycle={near:.9g}"
        )
    return round(ratio)


def _common(cycles: Sequence[float], step: float) -> float:
    """Return the step nearest to the given one of which all cycles are whole multiples; 0 when there is none."""
    fastest = min(cycles)
    first = max(1, round(fastest / step))
    for offset in range(1000):
        for count in {first - offset, first + offset}:
            if count < 1:
                continue
            ratios = np.array(cycles) / (fastest / count)
            if np.all(np.abs(ratios - np.round(ratios)) <= WHOLE * ratios):
                return fastest / count
    return 0.0


def drive_matrix(drive: Drive, voltage: bool) -> Array:
    """Return the state matrix of a drive that moves nothing but itself: y = (theta, omega of its masses, current).

    A load on the last mass only slows it down, so its fastest eigenvalue bounds that of the robot.
    """
    motor, shafts = drive.motor, drive.transmission
    masses = np.array([motor.inertia, *shafts.inertias]) if shafts.stiffness else np.array([drive.inertia])
    n = masses.size if masses.min() > 0.0 else 0
    winding = voltage and motor.inductance > 0.0
    A = np.zeros((2 * n + winding, 2 * n + winding))
    A[:n, n : 2 * n] = np.eye(n)
    for i, (k, c) in enumerate(zip(shafts.stiffness, shafts.damping, strict=True)):
        for row, sign in ((i, -1.0), (i + 1, 1.0)):
            for column, other in ((i, 1.0), (i + 1, -1.0)):
                A[n + row, column] += sign * other * k / masses[row]
                A[n + row, n + column] += sign * other * c / masses[row]
    if winding:
        A[-1, -1] = -motor.resistance / motor.inductance
        if n:
            A[-1, n] = -motor.emf_constant / motor.inductance
            A[n, -1] = motor.torque_constant / masses[0]
    elif voltage and n and motor.resistance > 0.0:
        A[n, n] -= motor.torque_constant * motor.emf_constant / (motor.resistance * masses[0])
    return A


def growth(A: Array, step: float, integrator: str) -> float:
    """Return by which factor one step of the integrator multiplies the fastest growing motion of dy/dt = A y."""
    if A.size == 0:
        return 0.0
    one, z = np.eye(A.shape[0]), step * A
    if integrator == "rk4":
        P = one + z @ (one + z / 2.0 @ (one + z / 3.0 @ (one + z / 4.0)))
    elif integrator == "midpoint":
        P = one + z @ (one + z / 2.0)
    else:
        n = A.shape[0] // 2
        late, early = z.copy(), z.copy()
        late[n:], early[:n] = 0.0, 0.0  # positions move with the velocities of the end of the step
        P = (one + late) @ (one + early)
    return float(np.abs(np.linalg.eigvals(P)).max())


def check_step(drives: Sequence[Drive], step: float, integrator: str, voltage: bool, fastest: float) -> None:
    """Refuse a step that is too long for the shafts or windings of a drive, and say which one works."""
    if integrator not in INTEGRATORS:
        raise SimulationError(f"integrator is {integrator!r}; it is one of {', '.join(INTEGRATORS)}")
    for drive in drives:
        motor = drive.motor
        if not voltage and motor.resistance > 0.0 and np.isfinite(motor.voltage_limit):
            # At the voltage limit an ideal current falls with the speed, as that of a winding without inductance does.
            A = drive_matrix(replace(drive, motor=replace(motor, inductance=0.0)), True)
        else:
            A = drive_matrix(drive, voltage)
        if growth(A, step, integrator) <= 1.0 + GROWTH:
            continue
        low, high = 1e-6 * step, step
        if growth(A, low, integrator) > 1.0 + GROWTH:
            raise SimulationError(f"drive '{drive.actuator}' is unstable with the integrator '{integrator}'; use 'rk4'")
        for _ in range(60):
            middle = np.sqrt(low * high)
            low, high = (middle, high) if growth(A, middle, integrator) <= 1.0 + GROWTH else (low, middle)
        rate = np.abs(np.linalg.eigvals(A)).max()
        what = "winding" if drive.rigid else f"shafts ({rate / (2.0 * np.pi):.4g} Hz)"
        raise SimulationError(
            f"step = {step:g} s is too long for the {what} of drive '{drive.actuator}' (time constant {1.0 / rate:.3g} s); "
            f"give VirtualRobot(step={fastest / np.ceil(fastest / (MARGIN * low)):.9g}) or less"
        )
