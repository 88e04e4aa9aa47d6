"""Loops with cycles of their own, lifted exactly: one period of the control code is run on linear rows instead of numbers.

Every signal is a row of coefficients over (state at the start of the period, inputs). Ticks are assignments of rows, and
between ticks the plant moves by its exact zero-order-hold matrices; what the rows are at the end of the period is the
transition matrix. Nothing is approximated: loops of different cycles are periodic, and constant from period to period.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynident.control.laws import Cascade
from dynident.control.tick import low_pass_share
from dynident.drive import Drive, StateSpace
from dynident.errors import DynidentError

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Settings:
    """Gains, cycles and filters of one axis."""

    position_gain: float  # kv [1/s]
    velocity_gain: float  # kP [A s/rad]
    velocity_integral: float  # kI [A/rad]
    current_gain: float  # kPC [V/A]
    current_integral: float  # kIC [V/(A s)]
    position_cycle: float  # [s]
    velocity_cycle: float
    current_cycle: float  # that of the velocity when the current is ideal
    position_filter: float  # corners of the low-passes [Hz]; 0 is none
    velocity_filter: float
    encoder_filter: float
    velocity_feedforward: float  # share of the reference velocity
    ideal: bool  # true when the wanted current flows at once
    difference: bool  # true when the speed is the difference of two positions over a velocity cycle, False when it is measured
    ratio: float  # motor angle per unit of rho
    delay: float  # time from a tick of the innermost loop to its command at the motor [s]
    # time from a tick of the position loop to the use of its wanted speed [s], a whole multiple of the velocity cycle
    position_delay: float

    @classmethod
    def of(cls, loops: Cascade, drive: Drive, actuator: int, delay: float) -> Settings:
        """Return the settings of one actuator."""

        def pick(value: ArrayLike, what: str) -> float:
            values = np.asarray(value, dtype=np.float64)
            if values.ndim and not 0 <= actuator < values.size:
                raise DynidentError(f"axis: actuator = {actuator}, but {what} is given for {values.size}; count from 0")
            return float(values[actuator] if values.ndim else values)

        names = (
            "position_gain",
            "velocity_gain",
            "velocity_integral",
            "position_filter",
            "velocity_filter",
            "velocity_feedforward",
        )
        own = {name: pick(getattr(loops, name), name) for name in names}
        current = loops.current
        return cls(
            **own,
            current_gain=0.0 if current is None else pick(current.gain, "current.gain"),
            current_integral=0.0 if current is None else pick(current.integral, "current.integral"),
            position_cycle=loops.position_cycle,
            velocity_cycle=loops.velocity_cycle,
            current_cycle=loops.velocity_cycle if current is None else current.cycle,
            encoder_filter=drive.encoder.filter,
            ideal=current is None,
            difference=drive.encoder.velocity == "difference",
            ratio=drive.transmission.ratio,
            delay=delay,
            position_delay=loops.position_delay,
        )

    def cycle(self, loop: str) -> float:
        """Return the cycle time of a loop."""
        return {"position": self.position_cycle, "velocity": self.velocity_cycle, "current": self.current_cycle}[loop]


class _Period:
    """Signals of one period as rows over (state, inputs)."""

    def __init__(self, plant: StateSpace, settings: Settings, loop: str, open: bool) -> None:
        self.s, self.loop, self.open = settings, loop, open
        n, h = len(plant.A), settings.current_cycle
        whole = int(np.floor(settings.delay / h + 1e-9))
        part = max(settings.delay - whole * h, 0.0)
        self.late = part > 1e-9 * h
        self.flows = [plant.discretise(x) for x in ([part, h - part] if self.late else [h])]
        names = ["speed", "last", "sum_velocity", "amperes", "wanted", "sum_current"]
        names += [f"queue{k}" for k in range(whole + 2)]
        self.way = [f"way{k}" for k in range(round(settings.position_delay / settings.velocity_cycle))]
        names += self.way
        self.index = {name: n + k for k, name in enumerate(names)}
        self.queue = [self.index[f"queue{k}"] for k in range(whole + 2)]
        self.inputs = ("error",) if open else ("reference", "reference_velocity", "disturbance")
        self.size, self.n, self.plant = n + len(names), n, plant
        self.width = self.size + len(self.inputs)
        self.Z = np.eye(self.size, self.width)
        self.measured: Array | None = None

    def __getitem__(self, name: str) -> Array:
        return np.asarray(self.Z[self.index[name]])

    def __setitem__(self, name: str, row: Array) -> None:
        self.Z[self.index[name]] = row

    def input(self, name: str) -> Array:
        row: Array = np.zeros(self.width)
        if name in self.inputs:
            row[self.size + self.inputs.index(name)] = 1.0
        return row

    def output(self, name: str) -> Array:
        """Return an output of the plant now; a winding without inductance answers at once to the voltage that is held."""
        k = self.plant.outputs.index(name)
        held = self.Z[self.queue[-2]]
        return np.asarray(self.plant.C[k] @ self.Z[: self.n] + self.plant.D[k, 0] * held)

    def error(self, loop: str, wanted: Array, actual: Array) -> Array:
        """Return the error of a loop; the loop in question has the outside reference, or is cut."""
        if loop != self.loop:
            return wanted - actual
        if self.measured is None:
            self.measured = actual.copy()
        return self.input("error") if self.open else self.input("reference") - actual

    def filtered(self, name: str, row: Array, corner: float, cycle: float) -> None:
        self[name] = self[name] + float(low_pass_share(corner, cycle)) * (row - self[name])

    def tick_position(self) -> None:
        s = self.s
        e = self.error("position", np.zeros(self.width), self.output("theta") / s.ratio)
        speed = s.ratio * (s.position_gain * e + s.velocity_feedforward * self.input("reference_velocity"))
        self.filtered("wanted", speed, s.position_filter, s.position_cycle)

    def arriving(self) -> Array:
        """Return the wanted speed that reaches the velocity loop now, and send the newest on its way."""
        if not self.way:
            return self["wanted"]
        out = self[self.way[-1]].copy()
        for new, old in zip(self.way[-2::-1], self.way[:0:-1], strict=True):
            self[old] = self[new]
        self[self.way[0]] = self["wanted"]
        return out

    def tick_velocity(self) -> None:
        s = self.s
        theta = self.output("theta")
        speed = (theta - self["last"]) / s.velocity_cycle if s.difference else self.output("omega")
        self["last"] = theta
        self.filtered("speed", speed, s.encoder_filter, s.velocity_cycle)
        e = self.error("velocity", self.arriving(), self["speed"])
        self["sum_velocity"] = self["sum_velocity"] + s.velocity_cycle * e
        amps = s.velocity_gain * e + s.velocity_integral * self["sum_velocity"]
        self.filtered("amperes", amps, s.velocity_filter, s.velocity_cycle)

    def tick_current(self) -> None:
        s = self.s
        command = self["amperes"]
        if not s.ideal:
            e = self.error("current", self["amperes"], self.output("current"))
            self["sum_current"] = self["sum_current"] + s.current_cycle * e
            command = s.current_gain * e + s.current_integral * self["sum_current"]
        self.Z[self.queue[1:]] = self.Z[self.queue[:-1]]
        self.Z[self.queue[0]] = command

    def flow(self) -> None:
        """Move the plant over one innermost cycle: first with the command before the last that arrived, then with the last."""
        arriving = self.queue[-1::-1] if self.late else [self.queue[-2]]
        for system, held in zip(self.flows, arriving, strict=False):
            push = np.outer(system.B[:, 0], self.Z[held]) + np.outer(system.B[:, 1], self.input("disturbance"))
            self.Z[: self.n] = system.A @ self.Z[: self.n] + push


def lift(plant: StateSpace, settings: Settings, loop: str, open: bool) -> StateSpace:
    """Return a loop with all loops inside it, sampled at its own cycle."""
    period = _Period(plant, settings, loop, open)
    outer = {"position": 2, "velocity": 1, "current": 0}[loop]
    inner = round(settings.velocity_cycle / settings.current_cycle)
    ticks = round(settings.cycle(loop) / settings.current_cycle)
    start = {name: period.output(name) for name in ("rho", "omega", "current")}
    for k in range(ticks):
        if outer == 2 and k == 0:
            period.tick_position()
        if outer >= 1 and k % inner == 0:
            period.tick_velocity()
        period.tick_current()
        period.flow()
    n = period.size
    rows = np.array([period.measured]) if open else np.array(list(start.values()))
    names = ("measured",) if open else tuple(start)
    # What is measured at the start of the period is a function of the state alone: a tick answers to it, not the reverse.
    return StateSpace(period.Z[:, :n], period.Z[:, n:], rows[:, :n], rows[:, n:], period.inputs, names, settings.cycle(loop))
