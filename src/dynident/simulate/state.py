"""The whole state of a virtual robot between two runs: where a run ended is where the next one starts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dynident.errors import SimulationError
from dynident.simulate import layout as at

if TYPE_CHECKING:
    from dynident.simulate.assembly import Assembly

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class State:
    """Everything a machine remembers at one instant.

    Parameters
    ----------
    q, v : ndarray, (n,)
        Positions and velocities of the robot's coordinates.
    thermal : mapping of str to ndarray
        State of every thermal model by joint or actuator [degree Celsius].
    memory : tuple of ndarray
        Drives, friction and control loops, as the simulation packs them.
    """

    q: Array
    v: Array
    thermal: Mapping[str, Array] = field(default_factory=dict)
    memory: tuple[NDArray[np.generic], ...] = field(default=(), repr=False)


def take_state(assembly: Assembly, thermal: Mapping[str, Array], record: Array) -> State:
    """Return a copy of the state of an assembly.

    Parameters
    ----------
    assembly : Assembly
        Robot as arrays.
    thermal : mapping of str to ndarray
        States of its thermal models.
    record : ndarray, (width,)
        Row of the record at this instant.

    Returns
    -------
    State
        The state.
    """
    parts = (assembly.plant.K, assembly.plant.F, assembly.controller.K, assembly.controller.F)
    c = assembly.columns
    return State(
        record[c.x].copy(), record[c.v].copy(), {k: x.copy() for k, x in thermal.items()}, tuple(p.copy() for p in parts)
    )


def put_state(assembly: Assembly, state: State) -> None:
    """Put an assembly of the same machine into a state, at step zero.

    Parameters
    ----------
    assembly : Assembly
        Robot as arrays; changed.
    state : State
        As from `take_state`.
    """
    parts = (assembly.plant.K, assembly.plant.F, assembly.controller.K, assembly.controller.F)
    if [p.shape for p in parts] != [p.shape for p in state.memory]:
        raise SimulationError("start is the end of a run of another machine; give that of the same one")
    numbers = assembly.plant.laws.values.copy()  # at the reference temperatures
    for part, saved in zip(parts, state.memory, strict=True):
        part[...] = saved
    assembly.plant.laws.values[:] = numbers
    assembly.plant.last[-1] = 0.0
    assembly.plant.drive[:, [at.CUT_STEPS, at.AT_LIMIT]] = 0.0
