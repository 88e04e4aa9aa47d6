"""The thermal model: a linear system that friction power heats and whose temperature weakens the friction.

    dy/dt = A(W) y + b(W)        T = read . y + base        f = f_cold [alpha (T - T0) + beta]

W is the COLD friction power, that of the law at the reference temperature T0 [Pagani2022, eq. 105]; the power that really
heats is ``W [alpha (T - T0) + beta]``, so A depends on W. For a power held over each step the solution
``y(t) = y_inf + exp(A t) (y(0) - y_inf)`` is exact [Pagani2022, eq. 122].

Temperatures are in degree Celsius; only differences matter. Angles in rad, powers in W, times in s.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynident.checks import signal, step_length, time_axis
from dynident.errors import DescriptionError, LogError
from dynident.graph import Graph
from dynident.graph.expression import total
from dynident.graph.print_llvm import compile_routines
from dynident.graph.routine import Routine
from dynident.results import Result

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Array = NDArray[np.float64]

#: Step of the complex-step derivatives: far below round-off, so they are exact to machine precision.
TINY = 1e-30


@dataclass(frozen=True, eq=False)
class Warming(Result):
    """Temperatures and what they do to the friction."""

    t: Array  # Times [s]
    temperature: Array  # Temperature of the rubbing parts [degree Celsius]
    ratio: Array  # Friction over that of the law at the reference temperature
    power: Array  # Friction power that heats [W]: cold power times ratio
    state: Array  # State of the model; any row can start another simulation

    def plot(self) -> Figure:
        """Draw temperature, friction ratio and friction power over time."""
        from dynident.figures import BLUE, finish, new_figure  # noqa: PLC0415 - matplotlib is an extra

        figure = new_figure(7.2, 6.0)
        rows = (("temperature [degC]", self.temperature), ("friction ratio", self.ratio), ("friction power [W]", self.power))
        for k, (name, values) in enumerate(rows):
            axes = figure.add_subplot(3, 1, k + 1)
            axes.plot(self.t / 60.0, values, color=BLUE, linewidth=1.2)
            finish(axes, "time [min]" if k == 2 else "", name, "")
        figure.tight_layout()
        return figure


class Weakening:
    """Friction that a temperature scales: ``f = f_cold [alpha (T - T0) + beta]``."""

    alpha: float
    beta: float
    reference: float

    def ratio(self, temperature: ArrayLike) -> Array:
        """Friction over that at the reference temperature."""
        return np.asarray(self.alpha * (np.asarray(temperature, dtype=np.float64) - self.reference) + self.beta)

    def _warming(self, t: Array, temperature: Array, power: Array, state: Array) -> Warming:
        """Return what temperatures do to the friction, from the cold friction power."""
        ratio = self.ratio(temperature)
        return Warming(t, temperature, ratio, ratio * power, state)


class ThermalModel(Weakening, ABC):
    """Base of the thermal models of finite order."""

    names: ClassVar[tuple[str, ...]]
    order: ClassVar[int] = 2

    @abstractmethod
    def _matrix(self, p: Any, power: Array) -> Any:
        """A(W) for parameters p in the order of `names` (real or complex), shape (..., n, n)."""

    @abstractmethod
    def _drive(self, p: Any, power: Array, ambient: Array, zone: Array, losses: Array) -> Any:
        """b(W), shape (..., n)."""

    def temperature(self, state: Any, ambient: Array) -> Any:
        """Temperature of the rubbing parts: that of the first zone."""
        return state[..., 0]

    def _rest(self, ambient: float) -> Array:
        """State of a joint that has rested for long, shape (n,): all zones as warm as the air."""
        return np.full(self.order, ambient)

    @property
    def values(self) -> Array:
        """Parameters in the order of `names`."""
        return np.array([getattr(self, name) for name in self.names], dtype=np.float64)

    def matrix(self, power: ArrayLike = 0.0) -> Array:
        """State matrix A."""
        return np.asarray(self._matrix(self.values, _power(power)))

    def time_constants(self, power: ArrayLike = 0.0) -> Array:
        """Time constants at a constant power, slow first."""
        slow, fast = _eigenvalues(self.matrix(power))
        if (slow >= 0.0).any():
            raise DescriptionError(
                f"friction that grows with temperature (alpha = {self.alpha} 1/K) runs away at this power: there is no steady "
                "state; lower the power or check the sign of alpha"
            )
        return np.asarray(-1.0 / (np.stack([slow, fast], axis=-1) if self.order == 2 else slow[..., None]))

    def steady_state(
        self, power: ArrayLike, ambient: float | None = None, zone: float | None = None, losses: float = 0.0
    ) -> Array:
        """State after a long time at a constant power."""
        self.time_constants(power)
        watts = _power(power)
        air = np.asarray(self.reference if ambient is None else ambient, dtype=np.float64)
        near = air if zone is None else np.asarray(zone, dtype=np.float64)
        drive = self._drive(self.values, watts, air, near, np.asarray(losses, dtype=np.float64))
        return np.asarray(_settled(self.matrix(watts), drive))

    def steady_ratio(self, power: ArrayLike, ambient: float | None = None) -> Array:
        """Friction after a long time at a constant power, over that at the reference temperature."""
        air = np.asarray(self.reference if ambient is None else ambient, dtype=np.float64)
        return self.ratio(self.temperature(self.steady_state(power, float(air)), air))

    def simulate(
        self,
        t: ArrayLike,
        power: ArrayLike,
        start: ArrayLike | None = None,
        ambient: ArrayLike | None = None,
        zone: ArrayLike | None = None,
        losses: ArrayLike = 0.0,
    ) -> Warming:
        """Temperatures over time, exact for inputs that hold from each sample to the next."""
        inputs = self._inputs(t, power, ambient, zone, losses)
        state = affine(*self._steps(self.values, inputs), self._start(start, inputs[2]))
        return self._warming(inputs[0], np.asarray(self.temperature(state, inputs[2])), inputs[1], state)

    def sensitivity(
        self,
        t: ArrayLike,
        power: ArrayLike,
        start: ArrayLike | None = None,
        ambient: ArrayLike | None = None,
        zone: ArrayLike | None = None,
        losses: ArrayLike = 0.0,
    ) -> Array:
        """Exact derivatives of the friction ratio with respect to the parameters (complex step), the start being held."""
        inputs = self._inputs(t, power, ambient, zone, losses)
        transition, drive = self._steps(self.values, inputs)
        state = affine(transition, drive, self._start(start, inputs[2]))
        result = np.empty((inputs[0].size, len(self.names)))
        for i in range(len(self.names)):
            p = self.values.astype(np.complex128)
            p[i] += 1j * TINY
            A, b = (np.imag(x) / TINY for x in self._steps(p, inputs))
            moved = affine(transition, (A @ state[:-1, :, None])[..., 0] + b, np.zeros(state.shape[1]))
            temperature = self.temperature(state + 1j * TINY * moved, inputs[2])
            alpha, beta = p[self.names.index("alpha")], p[self.names.index("beta")]
            result[:, i] = np.imag(alpha * (temperature - self.reference) + beta) / TINY
        return result

    def advance(
        self,
        state: ArrayLike,
        power: float,
        dt: float,
        ambient: float | None = None,
        zone: float | None = None,
        losses: float = 0.0,
    ) -> Array:
        """One step of `simulate`, for use at run time: no sensor is needed, only the friction power."""
        return np.asarray(self.simulate([0.0, step_length(dt)], power, state, ambient, zone, losses).state[1])

    def scale_free(self) -> dict[str, float]:
        """What torque data alone can tell: conductances and capacities over |alpha|, and beta.

        The scale of the temperature is free: ``x = alpha (T - T0)`` obeys the same equations with K / alpha and C / alpha.
        """
        scaled = {f"{n}/|alpha|": float(getattr(self, n)) / abs(self.alpha) for n in self.names if n[0] in "KC"}
        return {**scaled, "beta": self.beta}

    def _inputs(
        self, t: ArrayLike, power: ArrayLike, ambient: ArrayLike | None, zone: ArrayLike | None, losses: ArrayLike
    ) -> tuple[Array, Array, Array, Array, Array]:
        times = time_axis(t)
        air = signal("ambient", self.reference if ambient is None else ambient, times.size)
        near = air if zone is None else signal("zone", zone, times.size)
        return times, signal("power", power, times.size), air, near, signal("losses", losses, times.size)

    def _start(self, start: ArrayLike | None, ambient: Array) -> Array:
        rest = self._rest(float(ambient[0]))
        state = rest if start is None else np.asarray(start, dtype=np.float64)
        if state.shape != rest.shape or not np.isfinite(state).all():
            raise LogError(f"start = {state.tolist()} must be {rest.size} finite numbers, one per state of the thermal model")
        return state

    def _steps(self, p: Any, inputs: tuple[Array, Array, Array, Array, Array]) -> tuple[Any, Any]:
        """Transition and drive of every step for real or complex parameters; an input holds from its sample on."""
        power, ambient, zone, losses = (values[:-1] for values in inputs[1:])
        return _exact_step(self._matrix(p, power), self._drive(p, power, ambient, zone, losses), np.diff(inputs[0]))


def _power(power: ArrayLike) -> Array:
    watts = np.asarray(power, dtype=np.float64)
    if not np.isfinite(watts).all():
        raise LogError(f"power = {watts.tolist()} must be finite; give the cold friction power in W")
    return watts


def _eigenvalues(A: Any) -> tuple[Any, Any]:
    """Slow and fast eigenvalue of matrices (..., 1, 1) or (..., 2, 2) whose off-diagonal entries have one sign."""
    if A.shape[-1] == 1:
        return A[..., 0, 0], A[..., 0, 0]
    mean = 0.5 * (A[..., 0, 0] + A[..., 1, 1])
    spread = np.sqrt((0.5 * (A[..., 0, 0] - A[..., 1, 1])) ** 2 + A[..., 0, 1] * A[..., 1, 0])
    return mean + spread, mean - spread


def _settled(A: Any, b: Any) -> Any:
    """Solve ``A y + b = 0``, written out so that it takes complex numbers and broadcasts."""
    if A.shape[-1] == 1:
        return -b / A[..., 0]
    det = A[..., 0, 0] * A[..., 1, 1] - A[..., 0, 1] * A[..., 1, 0]
    first = (A[..., 0, 1] * b[..., 1] - A[..., 1, 1] * b[..., 0]) / det
    second = (A[..., 1, 0] * b[..., 0] - A[..., 0, 0] * b[..., 1]) / det
    return np.stack(np.broadcast_arrays(first, second), axis=-1)


def _exact_step(A: Any, b: Any, dt: Array) -> tuple[Any, Any]:
    """Transition and drive of ``y+ = transition y + drive`` for a held A and b (zero-order hold)."""
    slow, fast = _eigenvalues(A)
    gap = (slow - fast) * dt
    # exp(A t) = e^(slow t) 1 + (A - slow 1) (e^(slow t) - e^(fast t)) / (slow - fast), written so that nothing overflows.
    small = np.abs(gap) < 1e-8
    quotient = np.where(small, 1.0 - 0.5 * gap, -np.expm1(-gap) / np.where(small, 1.0, gap))
    decay = np.exp(slow * dt)
    identity = np.eye(A.shape[-1])
    transition = decay[:, None, None] * (identity + (quotient * dt)[:, None, None] * (A - slow[:, None, None] * identity))
    settled = _settled(A, b)
    drive = settled - (transition * settled[:, None, :]).sum(axis=-1)
    return transition, drive


def affine(transition: Array, drive: Array, start: Array) -> Array:
    """Return the states (N, n) of x[k+1] = A[k] x[k] + b[k] from A (N - 1, n, n), b (N - 1, n) and the first state (n,)."""
    steps, n = drive.shape
    states = np.empty((steps + 1, n))
    states[0] = start
    arrays = np.ascontiguousarray(transition), np.ascontiguousarray(drive), np.array([float(steps)]), states
    _sweep(n)(*(array.ctypes.data for array in arrays))
    return states


@lru_cache(maxsize=8)
def _sweep(n: int) -> Any:
    graph = Graph()
    sweep = Routine(graph, "affine", ("transition", "drive", "steps", "states"))
    with sweep.repeat(sweep.load("steps")) as k:
        x, b = sweep.load_all("states", n * k, n), sweep.load_all("drive", n * k, n)
        A = sweep.load_all("transition", n * n * k, n * n)
        after = [total([b[i], *(A[n * i + j] * x[j] for j in range(n))]) for i in range(n)]
        sweep.store_all("states", n * (k + 1.0), after)
    return compile_routines([sweep], "affine recursion")["affine"]
