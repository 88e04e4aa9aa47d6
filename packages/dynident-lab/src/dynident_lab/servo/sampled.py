"""Loops with cycles of their own, lifted exactly: one period of the control code is run on linear rows instead of numbers.

Every signal is a row of coefficients over (state at the start of the period, inputs). Ticks are assignments of rows, and
between ticks the plant moves by its exact zero-order-hold matrices; what the rows are at the end of the period is the
transition matrix. Nothing is approximated: loops of different cycles are periodic, and constant from period to period.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dynident.control.tick import low_pass_share
from dynident_lab.servo.linear import StateSpace

if TYPE_CHECKING:
    from dynident_lab.servo.axis import Axis, Loop

Array = NDArray[np.float64]
SIGNALS = ("speed", "last", "sum_velocity", "amperes", "wanted", "sum_current")  # what the loops remember


class _Period:
    """Signals of one period as rows over (state, inputs)."""

    def __init__(self, axis: Axis, loop: Loop, open: bool) -> None:
        self.drive, self.gains, self.cycles, self.loop, self.open = axis.drive, axis.gains, axis.loops.cycles, loop, open
        plant = axis.plant()
        n, h = len(plant.A), self.cycles["current"]
        whole = int(np.floor(axis.dead_time / h + 1e-9))
        part = max(axis.dead_time - whole * h, 0.0)
        self.late = part > 1e-9 * h
        self.flows = [plant.discretise(x) for x in ([part, h - part] if self.late else [h])]
        names = ("error",) if open else ("reference", "reference_velocity", "disturbance")
        self.size = n + len(SIGNALS) + whole + 2 + axis.loops.late_ticks
        unit = np.eye(self.size + len(names))
        self.inputs: dict[str, Array] = dict(zip(names, unit[self.size :], strict=True))
        self.plant, self.x, self.nothing = plant, unit[:n], np.zeros(len(unit))
        rows: Iterator[Array] = iter(unit[n : self.size])
        self.signal = dict(zip(SIGNALS, rows, strict=False))
        self.queue = deque(islice(rows, whole + 2))  # commands on their way to the motor, the newest first
        self.way = deque(rows)  # wanted speeds on their way to the velocity loop, likewise
        self.measured: Array | None = None

    def input(self, name: str) -> Array:
        return self.inputs.get(name, self.nothing)

    def output(self, name: str) -> Array:
        """Return an output of the plant now; a winding without inductance answers at once to the voltage that is held."""
        k = self.plant.outputs.index(name)
        return np.asarray(self.plant.C[k] @ self.x + self.plant.D[k, 0] * self.queue[-2])

    def error(self, loop: str, wanted: Array, actual: Array) -> Array:
        """Return the error of a loop; the loop in question has the outside reference, or is cut."""
        if loop != self.loop:
            return wanted - actual
        if self.measured is None:
            self.measured = actual
        return self.input("error") if self.open else self.input("reference") - actual

    def filtered(self, name: str, row: Array, corner: float, cycle: float) -> None:
        before = self.signal[name]
        self.signal[name] = before + float(low_pass_share(corner, cycle)) * (row - before)

    def tick_position(self) -> None:
        k, ratio = self.gains, self.drive.transmission.ratio
        e = self.error("position", self.nothing, self.output("theta") / ratio)
        speed = ratio * (k["position_gain"] * e + k["velocity_feedforward"] * self.input("reference_velocity"))
        self.filtered("wanted", speed, k["position_filter"], self.cycles["position"])

    def arriving(self) -> Array:
        """Return the wanted speed that reaches the velocity loop now, and send the newest on its way."""
        self.way.appendleft(self.signal["wanted"])
        return self.way.pop()

    def tick_velocity(self) -> None:
        k, T, encoder = self.gains, self.cycles["velocity"], self.drive.encoder
        theta = self.output("theta")
        speed = (theta - self.signal["last"]) / T if encoder.velocity == "difference" else self.output("omega")
        self.signal["last"] = theta
        self.filtered("speed", speed, encoder.filter, T)
        e = self.error("velocity", self.arriving(), self.signal["speed"])
        self.signal["sum_velocity"] = self.signal["sum_velocity"] + T * e
        amps = k["velocity_gain"] * e + k["velocity_integral"] * self.signal["sum_velocity"]
        self.filtered("amperes", amps, k["velocity_filter"], T)

    def tick_current(self) -> None:
        k, command = self.gains, self.signal["amperes"]
        if "current.gain" in k:
            e = self.error("current", self.signal["amperes"], self.output("current"))
            self.signal["sum_current"] = self.signal["sum_current"] + self.cycles["current"] * e
            command = k["current.gain"] * e + k["current.integral"] * self.signal["sum_current"]
        self.queue.appendleft(command)
        self.queue.pop()

    def flow(self) -> None:
        """Move the plant over one innermost cycle: first with the command before the last that arrived, then with the last."""
        arriving = (self.queue[-1], self.queue[-2]) if self.late else (self.queue[-2],)
        for system, held in zip(self.flows, arriving, strict=True):
            self.x = system.A @ self.x + system.B @ np.array([held, self.input("disturbance")])


def lift(axis: Axis, loop: Loop, open: bool) -> StateSpace:
    """Return a loop with all loops inside it, sampled at its own cycle."""
    period, cycle = _Period(axis, loop, open), axis.loops.cycles[loop]
    outer, inner = {"position": 2, "velocity": 1, "current": 0}[loop], axis.loops.current_ticks
    ticks = round(cycle / axis.loops.cycles["current"])
    start = {name: period.output(name) for name in ("rho", "omega", "current")}
    for k in range(ticks):
        if outer == 2 and k == 0:
            period.tick_position()
        if outer >= 1 and k % inner == 0:
            period.tick_velocity()
        period.tick_current()
        period.flow()
    n, Z = period.size, np.vstack([period.x, *period.signal.values(), *period.queue, *period.way])
    rows = np.array([period.measured]) if open else np.array(list(start.values()))
    names = ("measured",) if open else tuple(start)
    # What is measured at the start of the period is a function of the state alone: a tick answers to it, not the reverse.
    return StateSpace(Z[:, :n], Z[:, n:], rows[:, :n], rows[:, n:], tuple(period.inputs), names, cycle)
