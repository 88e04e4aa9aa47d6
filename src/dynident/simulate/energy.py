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
    """Return the energies of a run by kind [J], ``electric``, ``mechanical`` (of the rotors), ``copper`` and ``friction``.

    The electric one follows from the others, ``copper + (K_E / K_t) mechanical + L (i_end^2 - i_start^2) / 2``: the voltage
    of a current loop changes faster than rows are kept, the current does not.
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


def means(values: Array, thin: int, before: Array) -> Array:
    """Return the means over one cycle of the log around every thin-th row, each row being held until the next.

    `before` are rows that came before the first, half a cycle of them where a run goes on.
    """
    early = min(before.shape[0], -(-thin // 2))
    rows = np.concatenate([before[before.shape[0] - early :], values])
    edges = np.arange(rows.shape[0], dtype=np.float64)
    area = np.zeros_like(rows)
    area[1:] = np.cumsum(rows[:-1], axis=0)
    middle = edges[early::thin]
    left, right = np.maximum(middle - 0.5 * thin, 0.0), np.minimum(middle + 0.5 * thin, edges[-1])
    columns = [np.interp(right, edges, y) - np.interp(left, edges, y) for y in area.T]
    return np.asarray(np.column_stack(columns) / (right - left)[:, None])
