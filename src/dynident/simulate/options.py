"""How a run is made (`Options`), what it can go on from (`End`), and what the compiled machine gave (`Raw`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynident.errors import SimulationError
from dynident.simulate.machine import Machine
from dynident.simulate.sensors import Readings, Stream
from dynident.simulate.start import Start
from dynident.simulate.thermal import Heat

Array = NDArray[np.float64]
Progress = Callable[[float, float], object]

METHODS = ("coupled", "decoupled")
LOOPS = ("exact", "iterated", "delayed")


@dataclass(frozen=True, eq=False, repr=False)
class End:
    """Everything at the end of a run; ``simulate(..., start=run.end)`` goes on as if it had not ended.

    Parameters
    ----------
    time : float
        When it ended, counted from the start of the first run [s].
    state : mapping of str to ndarray
        Everything that the machine carries from step to step, by name: ``q``, ``v``, ``theta``, ``omega``, ``integral``, ....
    origin : ndarray, (n,)
        Where the first run started.
    noise : mapping of str to dict
        States of the random generators.
    heat : Heat, optional
        Temperatures of all thermal zones.
    tail : ndarray
        Currents and voltages of the last half cycle of the log, for its mean values.
    last_noise : ndarray, optional
        Noise of the last tick of the sensors, where the run ended between two ticks.
    """

    time: float
    state: Mapping[str, Array]
    origin: Array
    noise: Mapping[str, dict[str, Any]]
    heat: Heat | None = None
    tail: Array = field(default_factory=lambda: np.zeros((0, 0)))
    last_noise: Array | None = None

    def __repr__(self) -> str:
        return f"End(t = {self.time:g} s, {', '.join(self.state)})"

    def rested(self, duration: float) -> End:
        """Return the same after standing still for some time: only temperatures have changed.

        Parameters
        ----------
        duration : float
            How long [s].

        Returns
        -------
        End
            State to go on from.
        """
        return replace(self, heat=None if self.heat is None else self.heat.rested(duration))


@dataclass(frozen=True, eq=False)
class Options:
    """How to make a run; see `VirtualRobot.simulate`."""

    start: Start | End | None = None
    duration: float | None = None
    method: str = "coupled"
    loop: str = "exact"
    integrator: str = "rk4"
    seed: int | np.random.SeedSequence = 0
    log_cycle: float | None = None
    disturbance: Any = None
    wrenches: Any = None
    thermal_cycle: float = 1.0
    progress: Progress | None = None

    def __post_init__(self) -> None:
        for label, choices in (("method", METHODS), ("loop", LOOPS)):
            if getattr(self, label) not in choices:
                raise SimulationError(f"{label} is {getattr(self, label)!r}; it is one of {', '.join(choices)}")
        for label in ("duration", "log_cycle", "thermal_cycle"):
            value = getattr(self, label)
            if value is None:
                continue
            number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
            if not number or not np.isfinite(value) or value <= 0.0:
                raise SimulationError(f"{label} is {value!r}; give a time in seconds, above zero")
        if self.progress is not None and not callable(self.progress):
            raise SimulationError(f"progress is a {type(self.progress).__name__}; give a function of (seconds done, seconds)")


@dataclass(frozen=True, eq=False)
class Raw:
    """What the compiled machine gave.

    Parameters
    ----------
    machine : Machine
        At the end of the run.
    signals : mapping of str to ndarray (N, ...)
        True signals by name, see `shape.Memory.record`.
    t : ndarray, (N,)
        Times [s].
    zones : mapping of str to ndarray (N, m)
        Temperatures of all thermal zones by joint or actuator [degree Celsius].
    temperature : ndarray (N, k) or None
        Behind every actuator [degree Celsius].
    at_limit : ndarray, (k,)
        Share of time at a limit.
    energy : dict of str to ndarray, (k,)
        Energies of the run by kind [J].
    readings : Readings or None
        Noise of the current sensors that the control loops have seen.
    push : ndarray, (N, k)
        Disturbance torques [N m, N].
    wrenches : dict of str to ndarray, (N, 6)
        External wrenches.
    settings : dict
        Step, cycles, method, for the provenance.
    streams : dict of str to Stream
        Random streams of the recorder.
    end : callable
        From where to go on, once the recorder has drawn its noise.
    """

    machine: Machine
    signals: Mapping[str, Array]
    t: Array
    zones: Mapping[str, Array]
    temperature: Array | None
    at_limit: Array
    energy: dict[str, Array]
    readings: Readings | None
    push: Array
    wrenches: dict[str, Array]
    settings: dict[str, Any]
    streams: dict[str, Stream]
    end: Callable[[], End]
