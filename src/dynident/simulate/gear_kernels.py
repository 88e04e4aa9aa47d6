"""Compiled gears with losses, and what a current source can hold.

A gear hands on the share e of the torque tau_g that reaches it: eta while power flows to the output, 1 / eta when it comes from
there. Of a rigid drive tau_g = tau - J ratio rho'' with the inertia J in front of the gear, so

    tau_rho = ratio e (tau - J ratio rho'')          linear in the accelerations once the direction of power is known
"""

from __future__ import annotations

import numpy as np

from dynident.mechanics.kernels import sample_kernel as kernel
from dynident.mechanics.packed import BASE, COUNT, FORCE, MASS
from dynident.simulate.friction_kernels import clip
from dynident.simulate.layout import (
    ACTUATORS,
    BEFORE,
    COUPLING,
    CURVE,
    DOF,
    DRIVE,
    DRIVE_WIDTH,
    DRIVEN,
    EFFICIENCY,
    EMF,
    FEED,
    FEED_WIDTH,
    FRONT,
    GEAR_STICK,
    KEPT,
    MAP,
    RATES,
    RATIO,
    RESISTANCE,
    S_LOSS,
    S_TORQUE,
    SIZE,
    THROUGH,
    VOLTAGE_LIMIT,
)
from dynident.simulate.skeleton_kernels import actuator_force, actuator_value


@kernel
def gear(F, d, tau, omega):
    """Return which share of the torque tau in front of the gear is handed on at motor speed omega: eta, or 1 / eta backwards.

    Losses are friction that grows with the load; like Coulomb friction they set in over a small speed, so a gear at rest holds
    any load between the two shares.
    """
    eta = F[d + EFFICIENCY]
    share = clip(omega / max((1.0 / eta - 1.0) * abs(tau) * F[d + GEAR_STICK], 1e-300), 1.0)
    share = share if tau > 0.0 else -share
    return 1.0 - (1.0 - eta) * share if share > 0.0 else 1.0 - (1.0 / eta - 1.0) * share


@kernel
def actuator_acceleration(K, F, a, x):
    """Return N_a (G nu_dot + b), the acceleration of actuator a from those of the coordinates at F[x]."""
    n, d, row = K[DOF], K[K[DRIVEN] + a], K[COUPLING] + a * K[COUNT]
    value = 0.0
    for i in range(max(d, 0), d + 1 if d >= 0 else K[COUNT]):
        part = F[K[CURVE] + i]
        for c in range(n):
            part += F[K[MAP] + i * n + c] * F[x + c]
        value += F[row + i] * part
    return value


@kernel
def rigid_gear(K, F, a, omega):
    """Return which share a rigid gear hands on, by the direction of the torque THROUGH it that is assumed.

    The share e acts on the inertia in front of the gear too, so (e - 1) ratio^2 J is added to the mass matrix.
    """
    d, nt = K[DRIVE] + DRIVE_WIDTH * a, K[COUNT]
    e = gear(F, d, F[d + THROUGH], omega)
    more, row, only = (e - 1.0) * F[d + RATIO] ** 2 * F[d + BEFORE], K[COUPLING] + a * nt, K[K[DRIVEN] + a]
    if more != 0.0:
        actuator_force(K, F, a, more * actuator_value(K, F, a, K[CURVE]), K[FORCE])
        for i in range(max(only, 0), only + 1 if only >= 0 else nt):
            for j in range(i if only >= 0 else 0, i + 1):
                F[K[MASS] + i * nt + j] += more * F[row + i] * F[row + j]
    return e


@kernel
def forget_losses(K, F):
    """Put the constant inertias back into the mass matrix: a robot's own code does not write entries that are nothing else."""
    for i in range(K[COUNT] * K[COUNT]):
        F[K[MASS] + i] = F[K[BASE] + i]


@kernel
def gears_agree(K, F, row, keep):
    """Return whether the torque through every rigid gear has the direction that was assumed for the accelerations of a row.

    The torques themselves are brought up to date, and with `keep` the signals that follow from them.
    """
    agree, x = True, K[RATES] + row * K[SIZE] + K[COUNT]
    for a in range(K[ACTUATORS]):
        d = K[DRIVE] + DRIVE_WIDTH * a
        if F[d + EFFICIENCY] == 1.0 or K[K[FEED] + FEED_WIDTH * a + 1] > 0:
            continue
        ratio = F[d + RATIO]
        through = F[d + FRONT] - F[d + BEFORE] * ratio * actuator_acceleration(K, F, a, x)
        agree = agree and (through > 0.0) == (F[d + THROUGH] > 0.0)
        F[d + THROUGH] = through
        if keep:
            F[d + S_LOSS] = (1.0 - F[d + KEPT]) * ratio * through
            F[d + S_TORQUE] = ratio * F[d + FRONT] - F[d + S_LOSS]
    return agree


@kernel
def within_voltage(F, d, current, omega):
    """Return what an ideal source can hold of a current at motor speed omega: |R i + K_E omega| is within the voltage limit."""
    top, ohm = F[d + VOLTAGE_LIMIT], F[d + RESISTANCE]
    if ohm == 0.0 or top == np.inf:
        return current
    back = F[d + EMF] * omega
    return min(max(current, (-top - back) / ohm), (top - back) / ohm)
