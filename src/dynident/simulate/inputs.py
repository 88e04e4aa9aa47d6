"""What acts on a virtual robot from outside: torques at actuators and wrenches on links, as numbers, functions or tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynident.checks import numbers
from dynident.errors import SimulationError
from dynident.mechanism import Mechanism

Array = NDArray[np.float64]
Signal = ArrayLike | Callable[[float], ArrayLike]


@dataclass(frozen=True, eq=False)
class Disturbance:
    """Torques that act on the actuator coordinates beside those of the motors.

    Parameters
    ----------
    torque : array_like (k,), array_like (N, k), or callable
        Constant torques; a table over `t`, linear in between and held outside; or a function of time [N m, N].
    t : array_like (N,), optional
        Times of a table [s].

    Examples
    --------
    >>> from dynident.simulate import Disturbance
    >>> push = Disturbance([[0.0], [5.0], [0.0]], t=[0.0, 0.5, 1.0])
    >>> push.sample([0.25, 2.0], 1).ravel().tolist()
    [2.5, 0.0]
    """

    torque: Signal
    t: ArrayLike | None = None

    def sample(self, when: ArrayLike, count: int) -> Array:
        """Return the torques at given times.

        Parameters
        ----------
        when : array_like, (M,)
            Times [s].
        count : int
            Number of actuators k.

        Returns
        -------
        ndarray, (M, k)
            Torques [N m, N].
        """
        return sampled(self.torque, self.t, np.asarray(when, dtype=np.float64), count, "disturbance")


def sampled(signal: Signal, t: ArrayLike | None, when: Array, width: int, what: str) -> Array:
    """Return a constant, table or function of time at given times."""
    if callable(signal):
        rows = [np.atleast_1d(numbers(signal(float(time)), what)) for time in when]
        wrong = next((row for row in rows if row.shape != (width,)), None)
        if wrong is not None:
            raise SimulationError(f"{what} returns shape {wrong.shape}; it must return {width} numbers for every time")
        out = np.array(rows).reshape(when.size, width)
    else:
        table = numbers(signal, what)
        if table.ndim <= 1 and t is None:
            if table.shape not in ((), (width,)):
                raise SimulationError(
                    f"{what} has shape {table.shape}; give {width} numbers, a table with times, or a function"
                )
            out = np.broadcast_to(table, (when.size, width)).copy()
        else:
            times = np.atleast_1d(numbers(() if t is None else t, f"{what}: t"))
            table = table[:, None] if table.ndim == 1 and width == 1 else table
            if table.shape != (times.size, width) or times.size == 0:
                raise SimulationError(
                    f"{what} has shape {table.shape} for {times.size} times; give one row of {width} numbers for each time"
                )
            if not np.all(np.isfinite(times)) or np.any(np.diff(times) <= 0.0):
                raise SimulationError(f"{what}: its times do not increase; sort them")
            out = np.column_stack([np.interp(when, times, table[:, j]) for j in range(width)])
    if not np.all(np.isfinite(out)):
        bad = int(np.argwhere(~np.isfinite(out))[0][0])
        raise SimulationError(f"{what} is not finite at t = {when[bad]:g} s; every number must be finite")
    return np.ascontiguousarray(out)


def disturbance_of(value: object) -> Disturbance | None:
    """Return what a user gave as a disturbance."""
    if value is None or isinstance(value, Disturbance):
        return value
    return Disturbance(value)  # type: ignore[arg-type]


def wrench_tables(mechanism: Mechanism, wrenches: Mapping[str, Any] | None, when: Array) -> dict[str, Array]:
    """Return the external wrenches on links at given times."""
    if wrenches is None:
        return {}
    if not isinstance(wrenches, Mapping):
        raise SimulationError(f"wrenches is a {type(wrenches).__name__}; give a mapping of link name to (force, moment)")
    tables = {}
    for link, value in wrenches.items():
        mechanism.frame(link)
        what = f"wrench on '{link}'"
        if isinstance(value, tuple) and len(value) == 2 and not callable(value):
            tables[link] = sampled(value[1], value[0], when, 6, what)
        else:
            tables[link] = sampled(value, None, when, 6, what)
    return tables


def push_table(actuators: int, rows: int, torques: Array | None, wrenches: list[Array]) -> Array:
    """Return external torques and wrenches side by side, one row per time: k torques, then (force, moment) of each link."""
    first = np.zeros((rows, actuators)) if torques is None else torques
    return np.ascontiguousarray(np.concatenate([first, *wrenches], axis=1))
