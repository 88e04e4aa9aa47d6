"""Energies of a run, from the record between the samples of the log: a log of 1 ms does not see what a current loop does."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dynident.drive import Drive

Array = NDArray[np.float64]


def energies(
    drives: Sequence[Drive], cycle: float, theta: Array, omega: Array, current: Array, voltage: Array, friction: Array
) -> dict[str, Array]:
    """Return the energies of a run by kind.

    The electric one follows from the others, ``copper + (K_E / K_t) mechanical + L (i_end^2 - i_start^2) / 2``: the voltage
    of a current loop changes faster than rows are kept, the current does not.

    Parameters
    ----------
    drives : sequence of Drive
        k drives in the order of the columns.
    cycle : float
        Time between two rows [s].
    theta, omega : ndarray, (N, k)
        Rotor angles and speeds [rad, rad/s].
    current, voltage : ndarray, (N, k)
        Of the motors, just after their loops have ticked [A, V].
    friction : ndarray, (N, k)
        Friction torques of the rotors [N m].

    Returns
    -------
    dict of str to ndarray (k,)
        ``electric``, ``mechanical`` (of the rotors), ``copper`` and ``friction`` [J].
    """
    motors = [drive.motor for drive in drives]
    names = ("resistance", "inductance", "torque_constant", "emf_constant")
    R, L, Kt, Ke = (np.array([getattr(motor, name) for motor in motors]) for name in names)
    coil = np.abs(voltage - R * current - Ke * omega).max(axis=0, initial=0.0) > 1e-9 * np.abs(voltage).max(axis=0, initial=0.0)
    late = np.where(coil, current[1:], current[:-1])  # without an inductance the current is held from tick to tick
    turned = np.diff(theta, axis=0)
    copper = R * cycle * (current[:-1] ** 2 + late**2).sum(axis=0) / 2.0
    mechanical = Kt * ((current[:-1] + late) * turned).sum(axis=0) / 2.0
    stored = np.where(coil, L, 0.0) * (current[-1] ** 2 - current[0] ** 2) / 2.0
    return {
        "electric": copper + Ke / Kt * mechanical + stored,
        "mechanical": mechanical,
        "copper": copper,
        "friction": ((friction[:-1] + friction[1:]) * turned).sum(axis=0) / 2.0,
    }
