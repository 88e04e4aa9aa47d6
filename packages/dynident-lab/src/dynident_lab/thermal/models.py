"""Thermal models: linear systems heated by friction power, with a temperature that reduces the friction.

    dy/dt = A(W) y + b(W)        T = read . y + base        f = f_cold [alpha (T - T0) + beta]

W is the COLD friction power, that of the law at the reference temperature T0 [Pagani2022, eq. 105]; the actual heating
power is ``W [alpha (T - T0) + beta]``, so A depends on W. For a power held constant over each step the solution
``y(t) = y_inf + exp(A t) (y(0) - y_inf)`` is exact [Pagani2022, eq. 122].

Temperatures are in degree Celsius; only differences matter. Angles in rad, powers in W, times in s.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from dynident.arrays import Array
from dynident.checks import not_negative, positive, signal, step_length, time_axis
from dynident.errors import DescriptionError, LogError
from dynident.friction import Friction
from dynident.friction.law import State
from dynident.graph import Graph
from dynident.graph.algebra import exp, sqrt, where
from dynident.graph.expression import forward
from dynident.graph.print_llvm import compile_routines
from dynident.graph.routine import Routine
from dynident.results import Result
from dynident_lab.checks import finite

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SMALL = 1e-2  # below it (1 - exp(-x)) / x is computed by a series, without cancellation


@dataclass(frozen=True, eq=False)
class Warming(Result):
    """Temperatures and the resulting friction."""

    t: Array  # Times [s]
    temperature: Array  # Temperature of the friction surfaces [degree Celsius]
    ratio: Array  # Ratio of friction to the law at the reference temperature
    power: Array  # Heating friction power [W]: cold power times ratio
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
    """Friction scaled by a temperature: ``f = f_cold [alpha (T - T0) + beta]``."""

    alpha: float
    beta: float
    reference: float

    names: ClassVar[tuple[str, ...]]  # names of its parameters
    order: ClassVar[int] = 0  # number of states
    constant_power: ClassVar[bool] = False  # whether fits are limited to tests of constant power from a rested joint

    def simulate(
        self, t: ArrayLike, power: ArrayLike, start: ArrayLike | None = None, ambient: ArrayLike | None = None
    ) -> Warming:
        """Temperatures over time for a cold friction power [W]."""
        raise NotImplementedError

    def response(self, t: Array, power: Array, start: Array | None = None, **inputs: Array) -> Array:
        """Friction ratio over time, for fits of tests."""
        raise NotImplementedError

    def slope(self, t: Array, power: Array, start: Array | None = None, **inputs: Array) -> Array:
        """Exact derivatives of `response` with respect to the parameters, with a fixed start."""
        raise NotImplementedError

    def ratio(self, temperature: ArrayLike) -> Array:
        """Ratio of friction to its value at the reference temperature."""
        return np.asarray(self.alpha * (np.asarray(temperature, dtype=np.float64) - self.reference) + self.beta)

    def _warming(self, t: Array, temperature: Array, power: Array, state: Array) -> Warming:
        """Return the warming of the friction from temperatures and cold friction power."""
        ratio = self.ratio(temperature)
        return Warming(t, temperature, ratio, ratio * power, state)


class ThermalModel(Weakening, ABC):
    """Base of the thermal models of finite order."""

    order: ClassVar[int] = 2

    @staticmethod
    @abstractmethod
    def equations(p: Any, W: Any, ambient: Any, zone: Any, losses: Any) -> tuple[list[list[Any]], list[Any]]:
        """A and b for parameters p.alpha, p.beta, ... and p.reference: expressions, numbers or arrays."""

    @staticmethod
    def read(y: Sequence[Any], ambient: Any) -> Any:
        """Temperature of the friction surfaces from the components of the state: the first zone by default."""
        return y[0]

    @classmethod
    def step(cls, p: Any, y: Sequence[Any], W: Any, dt: Any, ambient: Any, zone: Any, losses: Any) -> list[Any]:
        """State after a step with constant inputs: exact, for expressions, numbers or arrays."""
        return exact_step(*cls.equations(p, W, ambient, zone, losses), y, dt)

    def heating(self) -> Any:
        """Return heating by friction alone, for ``VirtualRobot(thermal={joint: model})``."""
        from dynident_lab.thermal.heat import Heating  # noqa: PLC0415 - it imports this module

        return Heating(self)

    def temperature(self, state: Any, ambient: ArrayLike) -> Any:
        """Temperature of the friction surfaces, for states (..., n)."""
        return self.read([state[..., i] for i in range(self.order)], ambient)

    def _rest(self, ambient: float) -> Array:
        """State of a joint after a long rest, shape (n,): all zones at ambient temperature."""
        return np.full(self.order, ambient)

    @property
    def values(self) -> Array:
        """Parameters in the order of `names`."""
        return np.array([getattr(self, name) for name in self.names], dtype=np.float64)

    def matrix(self, power: ArrayLike = 0.0) -> Array:
        """State matrix A."""
        rows = self.equations(self, _power(power), 0.0, 0.0, 0.0)[0]
        flat = np.stack(np.broadcast_arrays(*(x for row in rows for x in row)), axis=-1)
        return np.asarray(flat.reshape(*flat.shape[:-1], self.order, self.order))

    def time_constants(self, power: ArrayLike = 0.0) -> Array:
        """Time constants at a constant power, slow first."""
        found = np.stack(np.broadcast_arrays(*_eigenvalues(self.equations(self, _power(power), 0.0, 0.0, 0.0)[0])), axis=-1)
        if (found[..., 0] >= 0.0).any():
            raise DescriptionError(
                f"friction grows with temperature (alpha = {self.alpha} 1/K) without a steady state at this power; lower "
                "the power or check the sign of alpha"
            )
        return np.asarray(-1.0 / found)

    def steady_state(
        self, power: ArrayLike, ambient: float | None = None, zone: float | None = None, losses: float = 0.0
    ) -> Array:
        """State after a long time at a constant power."""
        self.time_constants(power)
        air = self.reference if ambient is None else ambient
        found = _settled(*self.equations(self, _power(power), air, air if zone is None else zone, losses))
        return np.stack(np.broadcast_arrays(*found), axis=-1)

    def steady_ratio(self, power: ArrayLike, ambient: float | None = None) -> Array:
        """Ratio of friction after a long time at a constant power to its value at the reference temperature."""
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
        """Temperatures over time, exact for inputs that are constant from each sample to the next."""
        inputs = self._inputs(t, power, ambient, zone, losses)
        state, _ = self._sweep(inputs, start)
        return self._warming(inputs[0], np.asarray(self.temperature(state, inputs[2])), inputs[1], state)

    def response(self, t: Array, power: Array, start: Array | None = None, **inputs: Array) -> Array:
        """Friction ratio over time."""
        return self.simulate(t, power, start, **inputs).ratio

    def slope(self, t: Array, power: Array, start: Array | None = None, **inputs: Array) -> Array:
        """Derivatives of the friction ratio."""
        return self.sensitivity(t, power, start, **inputs)

    def sensitivity(
        self,
        t: ArrayLike,
        power: ArrayLike,
        start: ArrayLike | None = None,
        ambient: ArrayLike | None = None,
        zone: ArrayLike | None = None,
        losses: ArrayLike = 0.0,
    ) -> Array:
        """Exact derivatives of the friction ratio with respect to the parameters, with a fixed start."""
        inputs = self._inputs(t, power, ambient, zone, losses)
        state, slopes = self._sweep(inputs, start, slopes=True)
        result = np.empty((inputs[0].size, len(self.names)))
        for i, name in enumerate(self.names):
            result[:, i] = self.alpha * self.temperature(slopes[:, i], 0.0)
            if name == "alpha":
                result[:, i] += self.temperature(state, inputs[2]) - self.reference
            result[:, i] += name == "beta"
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
        """One step of `simulate`, for use at run time, from the friction power without a sensor."""
        return np.asarray(self.simulate([0.0, step_length(dt)], power, state, ambient, zone, losses).state[1])

    def scale_free(self) -> dict[str, float]:
        """Quantities that torque data alone determine: conductances and capacities over |alpha|, and beta.

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

    def _sweep(
        self, inputs: tuple[Array, Array, Array, Array, Array], start: ArrayLike | None, slopes: bool = False
    ) -> tuple[Array, Array]:
        """States (N, n) and optionally their derivatives by the parameters (N, p, n); inputs are constant after each sample."""
        times, *held = inputs
        count = times.size
        table = np.column_stack([*(values[:-1] for values in held), np.diff(times)])
        states, moved = np.zeros((count, self.order)), np.zeros((count, len(self.names), self.order))
        states[0] = self._start(start, held[1])
        arrays = (np.append(self.values, self.reference), table, np.array([count - 1.0]), states, moved)
        _sweep_code(type(self), slopes)(*(array.ctypes.data for array in arrays))
        return states, moved


def _power(power: ArrayLike) -> Array:
    watts = np.asarray(power, dtype=np.float64)
    if not np.isfinite(watts).all():
        raise LogError(f"power = {watts.tolist()} must be finite; give the cold friction power in W")
    return watts


def _eigenvalues(A: list[list[Any]]) -> list[Any]:
    """Slow and fast eigenvalue of a matrix whose off-diagonal entries have one sign; the only one for order one."""
    if len(A) == 1:
        return [A[0][0]]
    (a, b), (c, d) = A
    mean, spread = 0.5 * (a + d), sqrt((0.5 * (a - d)) ** 2 + b * c)
    return [mean + spread, mean - spread]


def _settled(A: list[list[Any]], b: list[Any]) -> list[Any]:
    """Solve ``A y + b = 0``."""
    if len(A) == 1:
        return [-b[0] / A[0][0]]
    det = A[0][0] * A[1][1] - A[0][1] * A[1][0]
    return [(A[0][1] * b[1] - A[1][1] * b[0]) / det, (A[1][0] * b[0] - A[0][0] * b[1]) / det]


def exact_step(A: list[list[Any]], b: list[Any], y: Sequence[Any], dt: Any) -> list[Any]:
    """State after a step with constant A and b, ``y_inf + exp(A dt) (y - y_inf)``; for expressions, numbers or arrays."""
    end, slow = _settled(A, b), _eigenvalues(A)[0]
    off, decay = [x - e for x, e in zip(y, end, strict=True)], exp(slow * dt)
    if len(A) == 1:
        return [end[0] + decay * off[0]]
    # exp(A t) = e^(slow t) 1 + (A - slow 1) (e^(slow t) - e^(fast t)) / (slow - fast), written without overflow.
    gap = (slow - _eigenvalues(A)[1]) * dt
    series = 1.0 - gap * (0.5 - gap * (1.0 / 6.0 - gap * (1.0 / 24.0 - gap * (1.0 / 120.0 - gap / 720.0))))
    safe = where(gap < SMALL, 1.0, gap)
    part = where(gap < SMALL, series, (1.0 - exp(-1.0 * safe)) / safe) * dt
    first = off[0] + part * ((A[0][0] - slow) * off[0] + A[0][1] * off[1])
    second = off[1] + part * (A[1][0] * off[0] + (A[1][1] - slow) * off[1])
    return [end[0] + decay * first, end[1] + decay * second]


@lru_cache(maxsize=32)
def _sweep_code(kind: type[ThermalModel], slopes: bool) -> Any:
    """Machine code that repeats `ThermalModel.step`, with or without derivatives by the parameters."""
    graph, n, names = Graph(), kind.order, (*kind.names, "reference")
    r = Routine(graph, "warming", ("p", "inputs", "steps", "states", "slopes"))
    p = SimpleNamespace(**dict(zip(names, r.load_all("p", 0, len(names)), strict=True)))
    wide = n * len(kind.names)
    with r.repeat(r.load("steps")) as k:
        W, ambient, zone, losses, dt = r.load_all("inputs", 5.0 * k, 5)
        y = r.load_all("states", float(n) * k, n)
        after = kind.step(p, y, W, dt, ambient, zone, losses)
        r.store_all("states", float(n) * (k + 1.0), after)
        for i, name in enumerate(kind.names if slopes else ()):
            before = r.load_all("slopes", float(wide) * k + float(n * i), n)
            directions = {getattr(p, name): graph.one, **dict(zip(y, before, strict=True))}
            r.store_all("slopes", float(wide) * (k + 1.0) + float(n * i), forward(after, directions))
    return compile_routines([r], "thermal model")["warming"]


# ---- models of zones with one temperature each [Pagani2022, sections 4.2, 4.3 and 4.5] ----------------------------------


@dataclass(frozen=True, kw_only=True)
class FirstOrder(ThermalModel):
    """One capacity: ``C dT/dt = W [alpha (T - T0) + beta] - K (T - Te)`` [Pagani2022, eqs. 99-115].

    Heating at a constant cold power has the time constant ``C / (K - W alpha)``, cooling the longer ``C / K``.
    """

    alpha: float  # Change of the friction with temperature [1/K], usually negative
    beta: float  # Friction ratio at the reference temperature, near 1
    K: float  # Conductance to the surroundings [W/K]
    C: float  # Heat capacity [J/K]
    reference: float = 20.0  # Temperature T0 at which the friction law holds [degree Celsius]

    names: ClassVar[tuple[str, ...]] = ("alpha", "beta", "K", "C")
    order: ClassVar[int] = 1

    def __post_init__(self) -> None:
        finite("FirstOrder", alpha=self.alpha, beta=self.beta, reference=self.reference)
        positive("FirstOrder", K=self.K, C=self.C)

    @staticmethod
    def equations(p: Any, W: Any, ambient: Any, zone: Any, losses: Any) -> tuple[list[list[Any]], list[Any]]:
        """A and b."""
        heat = W * (p.beta - p.alpha * p.reference) + losses
        return [[(W * p.alpha - p.K) / p.C]], [(heat + p.K * ambient) / p.C]


@dataclass(frozen=True, kw_only=True)
class SecondOrder(ThermalModel):
    """Two capacities: friction zone 1 heats the surrounding zone 2, which heats the air [Pagani2022, eqs. 116-127].

        C1 dT1/dt = W [alpha (T1 - T0) + beta] - K1 (T1 - T2)
        C2 dT2/dt = K1 (T1 - T2) - K2 (T2 - Te)

    Parameters
    ----------
    alpha : float
        Change of the friction with temperature [1/K], usually negative.
    beta : float
        Friction ratio at the reference temperature, near 1.
    K1, K2 : float
        Conductance between the zones and from zone 2 to the air [W/K].
    C1, C2 : float
        Heat capacities [J/K].
    reference : float
        Temperature T0 at which the friction law holds [degree Celsius].

    Examples
    --------
    Axis 4 of [Pagani2022, eq. 130] at full duty:

    >>> from dynident_lab.thermal import SecondOrder
    >>> axis4 = SecondOrder(alpha=-0.0141, beta=0.9971, K1=4.41, K2=4.57, C1=737.61, C2=9163.45)
    >>> (axis4.time_constants(97.65) / 60).round(2).tolist()
    [28.55, 2.02]
    """

    alpha: float
    beta: float
    K1: float
    K2: float
    C1: float
    C2: float
    reference: float = 20.0

    names: ClassVar[tuple[str, ...]] = ("alpha", "beta", "K1", "K2", "C1", "C2")

    def __post_init__(self) -> None:
        finite("SecondOrder", alpha=self.alpha, beta=self.beta, reference=self.reference)
        positive("SecondOrder", K1=self.K1, K2=self.K2, C1=self.C1, C2=self.C2)

    @staticmethod
    def equations(p: Any, W: Any, ambient: Any, zone: Any, losses: Any) -> tuple[list[list[Any]], list[Any]]:
        """A and b."""
        heat = W * (p.beta - p.alpha * p.reference) + losses
        A = [[(W * p.alpha - p.K1) / p.C1, p.K1 / p.C1], [p.K1 / p.C2, -1.0 * (p.K1 + p.K2) / p.C2]]
        return A, [heat / p.C1, p.K2 * ambient / p.C2]


@dataclass(frozen=True, kw_only=True)
class AdvancedSecondOrder(ThermalModel):
    """Two capacities, motor losses, and a third zone with measured temperature T3 [Pagani2022, eqs. 146-153].

        C1 dT1/dt = W [alpha (T1 - T0) + beta] + We - K12 (T1 - T2) - K13 (T1 - T3)
        C2 dT2/dt = K12 (T1 - T2) - K23 (T2 - T3) - K2e (T2 - Te)

    The printed alpha in eqs. 147, 150 and 153 means ``W alpha``. Without a sensor T3 is the ambient
    temperature. ``K13 = K23 = We = 0`` is `SecondOrder`.

    Parameters
    ----------
    alpha : float
        Change of the friction with temperature [1/K], usually negative.
    beta : float
        Friction ratio at the reference temperature, near 1.
    K12, K13, K23, K2e : float
        Conductances between zones 1, 2, 3 and the air e [W/K].
    C1, C2 : float
        Heat capacities [J/K].
    We : float
        Constant electric losses of the powered motor [W].
    reference : float
        Temperature T0 at which the friction law holds [degree Celsius].
    """

    alpha: float
    beta: float
    K12: float
    K13: float
    K23: float
    K2e: float
    C1: float
    C2: float
    We: float = 0.0
    reference: float = 20.0

    names: ClassVar[tuple[str, ...]] = ("alpha", "beta", "K12", "K13", "K23", "K2e", "C1", "C2", "We")

    def __post_init__(self) -> None:
        name = "AdvancedSecondOrder"
        finite(name, alpha=self.alpha, beta=self.beta, reference=self.reference)
        positive(name, K12=self.K12, C1=self.C1, C2=self.C2)
        not_negative(name, K13=self.K13, K23=self.K23, K2e=self.K2e, We=self.We)
        if self.K13 + self.K23 + self.K2e == 0.0:
            raise DescriptionError(
                f"{name}: K13, K23 and K2e are all zero, so heat cannot flow to the environment; give one above zero"
            )

    @staticmethod
    def equations(p: Any, W: Any, ambient: Any, zone: Any, losses: Any) -> tuple[list[list[Any]], list[Any]]:
        """A and b."""
        heat = W * (p.beta - p.alpha * p.reference) + p.We + losses
        lost = p.K12 + p.K2e + p.K23
        A = [[(W * p.alpha - p.K12 - p.K13) / p.C1, p.K12 / p.C1], [p.K12 / p.C2, -1.0 * lost / p.C2]]
        return A, [(heat + p.K13 * zone) / p.C1, (p.K23 * zone + p.K2e * ambient) / p.C2]


# ---- friction laws with self-heating ---------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class WarmFriction(Result):
    """Friction of a joint with self-heating."""

    torque: Array  # Friction [N m or N]
    cold: Array  # Friction of the same motion at the reference temperature
    warming: Warming  # Temperatures, friction ratio and power

    def plot(self) -> Figure:
        """Draw friction and cold friction over time, and the temperature below."""
        from dynident.figures import BLUE, ORANGE, SKY, finish, new_figure  # noqa: PLC0415 - matplotlib is an extra

        figure, minutes = new_figure(7.2, 4.6), self.warming.t / 60.0
        above, below = figure.add_subplot(2, 1, 1), figure.add_subplot(2, 1, 2)
        above.plot(minutes, self.cold, color=SKY, linewidth=1.0, label="at the reference temperature")
        above.plot(minutes, self.torque, color=BLUE, linewidth=1.0, label="as it warms up")
        below.plot(minutes, self.warming.temperature, color=ORANGE, linewidth=1.2)
        above.legend(frameon=False, fontsize=8)
        finish(above, "", "friction [N m, N]", "")
        finish(below, "time [min]", "temperature [degC]", "")
        figure.tight_layout()
        return figure


@dataclass(frozen=True, eq=False)
class Thermal:
    """A static law scaled by a thermal model: ``f = f_cold(v, q, tau) [alpha (T - T0) + beta]``.

    Friction curves at different temperatures are multiples of each other [Pagani2022, fig. 22 and eq. 102].
    """

    friction: Friction  # Law with its numbers at the reference temperature
    model: Weakening  # Thermal model of the joint

    def heating(self) -> Any:
        """Return the heating of the model by friction, for ``VirtualRobot(thermal={joint: law})``."""
        from dynident_lab.thermal.heat import Heating  # noqa: PLC0415 - it imports this module

        return Heating(self.model)  # type: ignore[arg-type] # refuses models of infinite order

    def __call__(self, state: State) -> Array:
        """Friction at known temperatures."""
        if not isinstance(state, State):
            raise DescriptionError("friction at a temperature needs velocity and temperature; give State(v, T=...)")
        return np.asarray(self.friction(state) * self.model.ratio(state.channel("T", "thermal")))

    def simulate(
        self, t: ArrayLike, state: State | ArrayLike, start: ArrayLike | None = None, ambient: ArrayLike | None = None
    ) -> WarmFriction:
        """Friction and temperature along a motion that starts cold; the power ``f_cold v`` is constant between samples."""
        given = State.of(state)
        cold = self.friction(given)
        warming = self.model.simulate(t, cold * given.v, start, ambient)
        return WarmFriction(cold * warming.ratio, cold, warming)
