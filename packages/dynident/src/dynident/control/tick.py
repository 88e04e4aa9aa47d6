"""One tick of the loops of a controller, for expressions, numbers and arrays, and the cascade of one axis as linear maps.

    low-pass      y + c (u - y),    c = 1 - exp(-2 pi f T): the exact step response, sampled
    encoder       speed = (x - x_last) / T, or exact, low-passed
    position P    kv e + share v_ref, limited and low-passed
    velocity PI   i = kP e + kI int e dt + i_ff, low-passed and limited; the integral stops at a limit (anti-windup)
    current PI    V = kPC e + kIC int e dt, limited; the integral waits as above
    PID           kp e + kd e' + ki int e dt

Integrals are sums that include the present error (backward rectangle). Simulation compiles these expressions. Without limits
every tick is linear in its memory (m) and its inputs (u),

    m+ = F m + G u,        F, G: derivatives of the expressions

and between two ticks the plant moves by its exact zero-order-hold matrices. A period of a loop with all inner loops is the
product of these maps: exact, and the same for every period although the loops have different cycles. In the
limit of short cycles, m+ - m over the cycle, the same derivatives are the continuous loops.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from operator import attrgetter
from typing import Any, Literal, NamedTuple

import numpy as np
import scipy  # its sub-packages load on first use, which keeps the start fast
from numpy.typing import NDArray

from dynident.arrays import Array
from dynident.control.laws import Cascade
from dynident.drive.drive import Encoder, low_pass_coefficient
from dynident.errors import DynidentError
from dynident.graph.algebra import both, clip, equal, opposite, where
from dynident.graph.expression import Graph, Node, derivative_matrix, evaluate_nodes, forward

Limit = Callable[[Any], Any]


def low_pass_step(before: Any, value: Any, coefficient: Any) -> Any:
    """Return the output of a sampled first-order low-pass; the coefficient is 1 at the first tick."""
    return before + coefficient * (value - before)


def sensed_speed(position: Any, last: Any, true: Any, exact: Any, before: Any, cycle: Any, coefficient: Any) -> Any:
    """Return the low-passed speed estimate of a drive from two sensed positions, or from the true speed if `exact`."""
    return low_pass_step(before, where(exact, true, (position - last) / cycle), coefficient)


def position_loop(error: Any, slope: Any, before: Any, gains: Any, limit: Any) -> Any:
    """Return the speed setpoint; `gains` are kv, the share of the reference's `slope`, and the low-pass coefficient."""
    kv, share, coefficient = gains
    return low_pass_step(before, clip(kv * error + share * slope, limit), coefficient)


class Moved(NamedTuple):
    """Result of one tick of a PI loop: output, new integral, and whether the output is limited."""

    output: Any
    integral: Any
    cut: Any


def velocity_loop(error: Any, feed: Any, integral: Any, before: Any, gains: Any, dt: Any, limit: Limit, windup: Any) -> Moved:
    """Move a velocity loop by one tick; `gains` are kP, kI and the low-pass coefficient."""
    kp, ki, coefficient = gains
    fixed, grown = kp * error + feed, integral + ki * error * dt
    smooth = low_pass_step(before, fixed + grown, coefficient)
    held = limit(smooth)
    cut = opposite(equal(held, smooth))
    waits = both(both(cut, windup), (smooth - held) * error > 0.0)  # conditional integration: not further into the limit
    waited = limit(low_pass_step(before, fixed + integral, coefficient))
    return Moved(where(waits, waited, held), where(waits, integral, grown), cut)


def current_loop(error: Any, integral: Any, gains: Any, dt: Any, limit: Any, windup: Any) -> Moved:
    """Move a current loop by one tick; `gains` are kPC and kIC."""
    kp, ki = gains
    grown = integral + ki * error * dt
    wanted = kp * error + grown
    held = clip(wanted, limit)
    cut = opposite(equal(held, wanted))
    waits = both(both(cut, windup), (wanted - held) * error > 0.0)
    return Moved(where(waits, clip(kp * error + integral, limit), held), where(waits, integral, grown), cut)


def pid_law(error: Any, slope: Any, integral: Any, gains: Any) -> Any:
    """Return kp e + kd e' + ki int e dt."""
    kp, kd, ki = gains
    return kp * error + kd * slope + ki * integral


Loop = Literal["position", "velocity", "current"]
Part = Literal["position", "encoder", "velocity", "current"]
INPUTS = ("error", "reference_velocity", "disturbance")
OUTPUTS = ("rho", "omega", "current")
GAINS = ("position_gain", "velocity_gain", "velocity_integral", "velocity_feedforward", "position_filter", "velocity_filter")
#: Memory of each part of the loops, the output last, and its inputs.
MEMORY: dict[Part, tuple[str, ...]] = {
    "position": ("issued",),
    "encoder": ("sensed", "speed"),
    "velocity": ("integral", "asked"),
    "current": ("integral", "voltage"),
}
ENTRIES: dict[Part, tuple[str, ...]] = {
    "position": ("error", "slope"),
    "encoder": ("sensor", "rate"),
    "velocity": ("error",),
    "current": ("error",),
}
ROUNDING = 1e-10  # tolerance of a pole; the angle of the axis, uncontrolled by a velocity loop, has its pole at 1


class Plant(NamedTuple):
    """Winding and mechanics of an axis: x' = A x + B (command, disturbance); rho, theta, omega, current = C x + D command."""

    A: Array
    B: Array
    C: Array
    D: Array

    def held(self, time: float) -> tuple[Array, Array]:
        """Return the exact map of the state and of held inputs, exp([[A, B], [0, 0]] time)."""
        n, m = self.B.shape
        block = np.zeros((n + m, n + m))
        block[:n, :n], block[:n, n:] = self.A, self.B
        # Angles and speeds differ by the resonance's 6000 rad/s; balancing by powers of two avoids round-off.
        balanced, (scale, _) = scipy.linalg.matrix_balance(block * time, permute=False, separate=True)
        moved = scipy.linalg.expm(balanced) * scale[:, None] / scale[None, :]
        return moved[:n, :n], moved[:n, n:]


def rigid_plant(inertia: float) -> Plant:
    """Return an inertia with an ideal motor of 1 N m/A and gear ratio 1."""
    A, C, D = np.eye(2, k=1), np.zeros((4, 2)), np.zeros((4, 2))
    C[:2, 0] = C[2, 1] = D[3, 0] = 1.0
    return Plant(A, np.array([[0.0, 0.0], [1.0, -1.0]]) / inertia, C, D)


@cache
def _derivatives(part: Part, exact: bool) -> tuple[list[Node], list[Node]]:
    """Return the entries of (F, G) of a part by rows, and their rates with the cycle."""
    graph = Graph()
    s = {name: graph.symbol(name) for name in (*MEMORY[part], *ENTRIES[part], "gain", "second", "cycle", "coefficient")}
    gains = s["gain"], s["second"], s["coefficient"]
    unlimited = float("inf")
    if part == "position":
        new = [position_loop(s["error"], s["slope"], s["issued"], gains, unlimited)]
    elif part == "encoder":
        speed = sensed_speed(s["sensor"], s["sensed"], s["rate"], float(exact), s["speed"], s["cycle"], s["coefficient"])
        new = [s["sensor"], speed]
    elif part == "velocity":
        moved = velocity_loop(s["error"], 0.0, s["integral"], s["asked"], gains, s["cycle"], lambda x: x, True)
        new = [moved.integral, moved.output]
    else:
        moved = current_loop(s["error"], s["integral"], gains[:2], s["cycle"], unlimited, True)
        new = [moved.integral, moved.output]
    rows = derivative_matrix(new, [s[name] for name in (*MEMORY[part], *ENTRIES[part])])
    flat = [entry for row in rows for entry in row]
    return flat, forward(flat, {s["cycle"]: graph.one, s["coefficient"]: graph.symbol("corner")})


class AxisLoops:
    """The loops of one actuator: gains as numbers, ticks and continuous loops as matrices."""

    def __init__(self, loops: Cascade, encoder: Encoder, actuator: int = 0) -> None:
        self.loops, self.encoder, self.gains = loops, encoder, actuator_gains(loops, actuator)
        k, T = self.gains, loops.cycles
        self.numbers: dict[Part, tuple[float, float, float, float]] = {  # two gains, corner of the low-pass [Hz], cycle [s]
            "position": (k["position_gain"], k["velocity_feedforward"], k["position_filter"], T["position"]),
            "encoder": (0.0, 0.0, encoder.filter, T["velocity"]),
            "velocity": (k["velocity_gain"], k["velocity_integral"], k["velocity_filter"], T["velocity"]),
            "current": (k.get("current.gain", 0.0), k.get("current.integral", 0.0), 0.0, T["current"]),
        }

    def _values(self, part: Part, cycle: float, coefficient: float) -> dict[str, float]:
        gain, second, corner, _ = self.numbers[part]
        still = dict.fromkeys((*MEMORY[part], *ENTRIES[part]), 0.0)
        numbers = {"gain": gain, "second": second, "corner": 2.0 * np.pi * corner}
        return still | numbers | {"cycle": cycle, "coefficient": coefficient}

    def tick(self, part: Part) -> Array:
        """Return (F, G) of one tick."""
        _, _, corner, cycle = self.numbers[part]
        values = self._values(part, cycle, float(low_pass_coefficient(corner, cycle)))
        entries = evaluate_nodes(_derivatives(part, self.encoder.velocity == "exact")[0], values)
        return np.array(entries, dtype=np.float64).reshape(len(MEMORY[part]), -1)

    def continuous(self, part: Part) -> tuple[Array, Array, Array, Array]:
        """Return A, B, C, D in the limit of short cycles; a difference of positions becomes the exact speed."""
        n = len(MEMORY[part])
        values = self._values(part, 0.0, float(self.numbers[part][2] == 0.0))
        now, rate = (
            np.array(evaluate_nodes(nodes, values), dtype=np.float64).reshape(n, -1) for nodes in _derivatives(part, True)
        )
        states = np.flatnonzero((now == np.eye(*now.shape)).all(axis=1))  # unchanged in the limit of short cycles: states
        output = now[n - 1 :]
        return rate[np.ix_(states, states)], rate[states, n:], output[:, states], output[:, n:]


def actuator_gains(loops: Cascade, actuator: int = 0) -> dict[str, float]:
    """Return gains, corners of filters and feed-forward shares of one actuator, by their names in the loops."""
    found = {}
    for name in GAINS if loops.current is None else (*GAINS, "current.gain", "current.integral"):
        values = np.asarray(attrgetter(name)(loops), dtype=np.float64)
        if values.ndim and not 0 <= actuator < values.size:
            raise DynidentError(f"axis: actuator = {actuator}, but {name} is given for {values.size}; count from 0")
        found[name] = float(values[actuator] if values.ndim else values)
    return found


@dataclass(frozen=True, eq=False)
class PeriodMap:
    """One period of a loop opened at its error: z+ = A z + B `INPUTS`, measured = C z, `OUTPUTS` = outputs z."""

    A: Array
    B: Array
    C: Array
    outputs: Array
    cycle: float

    def closed(self, gain: complex = 1.0) -> NDArray[np.complex128] | Array:
        """Return the transition matrix with error = -gain measured."""
        return np.asarray(self.A - gain * self.B[:, :1] @ self.C)

    def stable(self, gain: complex = 1.0) -> bool:
        """Return whether the loop is stable with another gain; a phase margin of p is stability at the gain exp(-i p)."""
        return bool(np.all(np.abs(np.linalg.eigvals(self.closed(gain))) <= 1.0 + ROUNDING))


def period_map(
    axis: AxisLoops, plant: Plant, loop: Loop = "position", *, ratio: float = 1.0, delay: float | None = None
) -> PeriodMap:
    """Return one period of a loop with all inner loops; `delay` defaults to that of the loops.

    Every signal is a row of coefficients over the state at the start of the period and the inputs.
    """
    loops = axis.loops
    n, h, ideal = len(plant.A), loops.cycles["current"], loops.current is None
    dead = loops.delay if delay is None else delay
    whole = int(np.floor(dead / h + 1e-9))
    part = max(dead - whole * h, 0.0)
    late = part > 1e-9 * h
    flows = [plant.held(time) for time in ([part, h - part] if late else [h])]
    parts: tuple[Part, ...] = ("position", "encoder", "velocity", "current")
    ticks = {name: axis.tick(name) for name in parts}
    counts = [n, *(len(MEMORY[name]) for name in parts), whole + 2, loops.late_ticks]
    size = sum(counts)
    unit = np.eye(size + len(INPUTS))
    error, slope, disturbance = unit[size:]
    x, *memory, sent, wished = np.split(unit[:size], np.cumsum(counts)[:-1])
    kept = dict(zip(parts, memory, strict=True))
    queue, way = deque(sent), deque(wished)  # delayed commands and speed setpoints, the newest first

    def seen() -> Array:
        """Return the outputs of the plant; a winding without inductance responds at once to the held voltage."""
        return np.asarray(plant.C @ x + plant.D[:, :1] * queue[-2])

    def tick(name: Part, *inputs: Array) -> Array:
        kept[name] = ticks[name] @ np.vstack([kept[name], *inputs])
        return np.asarray(kept[name][-1])

    measured, outputs = error, seen()[[0, 2, 3]]
    for k in range(round(loops.cycles[loop] / h)):
        _, theta, omega, current = seen()
        if loop == "position" and k == 0:
            measured = theta / ratio
            tick("position", error, slope)
        if loop != "current" and k % loops.current_ticks == 0:
            speed = tick("encoder", theta, omega)
            way.appendleft(kept["position"][-1])
            wish = way.pop()
            if loop == "velocity":
                measured = speed
            tick("velocity", error if loop == "velocity" else ratio * wish - speed)
        command = kept["velocity"][-1]
        if not ideal:
            if loop == "current":
                measured = current
            command = tick("current", error if loop == "current" else command - current)
        queue.appendleft(command)
        queue.pop()
        for (A, B), held in zip(flows, (queue[-1], queue[-2]) if late else (queue[-2],), strict=True):
            x = A @ x + B @ np.array([held, disturbance])
    z = np.vstack([x, *kept.values(), *queue, *way])
    return PeriodMap(z[:, :size], z[:, size:], measured[None, :size], outputs[:, :size], loops.cycles[loop])
