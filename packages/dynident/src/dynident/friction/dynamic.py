"""Friction with memory: the compiled step of its inner state, and the LuGre law; `dynident_papers.friction` has others.

    f = f(z, v)        dz/dt = g(z, v)          z: deflection of elastic bristles

Friction starts as the deflection z of elastic bristles (pre-sliding, hysteresis) and ends as the Stribeck curve. At a constant
velocity each law settles on a static one, `steady`.

The velocity is taken as linear over a step; the step is cut where it changes its sign, so that each piece goes one way. A law
states a piece and its force as expressions; they become one compiled step, which `DynamicLaw.simulate` repeats over a log and
which a simulation calls in its own loop (`DynamicLaw.step`).

The bristle equations are stiff (sigma0 = 1e5 ... 1e6 per metre or radian). Where the velocity keeps its sign they are linear in
the distance gone and are advanced by their exact exponential: stable for any stiffness and any step, |z| stays within its
bounds, of second order in the step; accuracy requires only that the samples resolve the velocity.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from math import factorial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from dynident.arrays import Array
from dynident.checks import not_negative, positive, signal, step_length, time_axis
from dynident.errors import LogError
from dynident.figures import BLUE, finish, new_figure
from dynident.friction.law import TILE, Friction
from dynident.friction.laws import Stribeck, Viscous, stribeck
from dynident.graph.algebra import absolute, equal, exp, floor, maximum, minimum, opposite, sign, where
from dynident.graph.expression import Graph, Node
from dynident.graph.print_llvm import compile_routines
from dynident.graph.routine import Routine
from dynident.results import Result

if TYPE_CHECKING:
    from matplotlib.figure import Figure


#: A step is divided so that the velocity changes by at most this share of the Stribeck speed per piece, into at most MOST.
FINE = 0.25
MOST = 64


@dataclass(frozen=True, eq=False)
class Response(Result):
    """Friction over time."""

    t: Array  # Times [s]
    v: Array  # Velocities [rad/s or m/s]
    force: Array  # Friction [N m or N]
    state: Array  # Inner state; any row can start another simulation

    def plot(self) -> Figure:
        """Plot the friction-velocity trajectory, and friction over time."""
        figure = new_figure(9.6, 3.6)
        for k, (x, name) in enumerate(((self.v, "velocity [rad/s, m/s]"), (self.t, "time [s]"))):
            axes = figure.add_subplot(1, 2, k + 1)
            axes.plot(x, self.force, color=BLUE, linewidth=1.0)
            finish(axes, name, "friction [N m, N]" if k == 0 else "", "")
        figure.tight_layout()
        return figure


class DynamicLaw(ABC):
    """Base of the laws with memory."""

    @property
    @abstractmethod
    def states(self) -> int:
        """Number m of inner states."""

    @property
    def parameters(self) -> dict[str, float]:
        """Values by name, in the order in which the compiled step takes them: the fields of the law."""
        return {name: float(value) for name, value in vars(self).items()}

    @property
    @abstractmethod
    def steady(self) -> Friction:
        """Static law on which the friction settles at a constant velocity."""

    @abstractmethod
    def force(self, z: Sequence[Any], v: Any, p: Mapping[str, Any]) -> Any:
        """Friction from the state, for expressions, numbers and arrays alike."""

    # Write the statements that advance the array ``state`` over a piece in which the velocity keeps its sign
    @abstractmethod
    def _piece(self, routine: Routine, v0: Node, v1: Node, dt: Node, p: Mapping[str, Node]) -> None: ...

    def step(self, graph: Graph) -> Routine:
        """Return the exact step of the inner state as a routine, for compiled loops; make it once per graph and `structure`.

        It takes the arrays ``state`` (m, advanced in place), ``motion`` (velocities at the start and the end of the step, its
        length [s]) and ``numbers`` (the values of `parameters`).
        """
        name, arrays = f"{type(self).__name__.lower()}{self.states}", ("state", "motion", "numbers")
        piece, step = Routine(graph, f"{name}_piece", arrays), Routine(graph, f"{name}_step", arrays)
        a, b, length = piece.load_all("motion", 0, 3)
        self._piece(piece, a, b, length, self._loaded(piece))
        v0, v1, dt = step.load_all("motion", 0, 3)
        part = step.local("part", 3)

        def advance(*motion: Node | float) -> None:
            step.store_all(part, 0, motion)
            step.call(piece, state="state", motion=part, numbers="numbers")

        vs = self._loaded(step).get("vs")
        count = graph.one if vs is None else floor(minimum(absolute(v1 - v0) / (FINE * vs), MOST - 1.0)) + 1.0
        slope, short = (v1 - v0) / count, dt / count
        with step.repeat(count) as k:
            a, b = v0 + slope * k, v0 + slope * (k + 1.0)
            with step.when(a * b < 0.0):
                turn = short * a / (a - b)
                advance(a, 0.0, turn)
                advance(0.0, b, short - turn)
            with step.otherwise(), step.when(opposite(equal(a + b, 0.0))):
                advance(a, b, short)
        return step

    def _loaded(self, routine: Routine) -> dict[str, Node]:
        return self.named(routine.graph, routine.load_all("numbers", 0, len(self.parameters)))

    def named(self, graph: Graph, numbers: Sequence[Node]) -> dict[str, Node]:
        """Return the parameters of compiled code by name; exponents are constants, because integer powers are cheaper."""
        own = zip(self.parameters.items(), numbers, strict=True)
        return {name: graph.const(value) if name == "exponent" else node for (name, value), node in own}

    @property
    def structure(self) -> tuple[Any, ...]:
        """Dependencies of the compiled step besides the numbers; laws with equal structure share one step."""
        return type(self), self.states, getattr(self, "exponent", None)

    def _swept(self, t: Array, v: Array, start: Array) -> Array:
        """Return the states at all samples."""
        states = np.empty((t.size, self.states))
        states[0] = start
        arrays = t, v, np.array(list(self.parameters.values())), np.array([t.size - 1.0]), states
        _sweep(self)(*(np.ascontiguousarray(array).ctypes.data for array in arrays))
        return states

    def simulate(self, t: ArrayLike, v: ArrayLike, start: ArrayLike | None = None) -> Response:
        """Friction along a motion."""
        times = np.ascontiguousarray(time_axis(t))
        velocity = np.ascontiguousarray(signal("v", v, times.size))
        state, force = self._swept(times, velocity, self._start(start)), np.empty(times.size)
        for first in range(0, times.size, TILE):
            part = slice(first, first + TILE)
            force[part] = self.force(list(state[part].T), velocity[part], self.parameters)
        return Response(times, velocity, force, state)

    def advance(self, state: ArrayLike, v0: float, v1: float, dt: float) -> tuple[float, Array]:
        """Advance one step, as in `simulate`, for a simulator with its own time steps."""
        after = self._swept(np.array([0.0, step_length(dt)]), np.array([v0, v1], dtype=np.float64), self._start(state))[1]
        return float(self.force(list(after), v1, self.parameters)), after

    def _start(self, start: ArrayLike | None) -> Array:
        state = np.zeros(self.states) if start is None else np.array(start, dtype=np.float64)
        if state.shape != (self.states,) or not np.isfinite(state).all():
            raise LogError(f"start = {state.tolist()} must be {self.states} finite numbers, one per inner state")
        return state


_sweeps: dict[Hashable, Any] = {}  # by the structure of laws, which do not depend on their numbers


def _sweep(law: DynamicLaw) -> Any:
    """Return machine code that repeats the step of a law over all samples: t, v, numbers, number of steps, states."""
    key = law.structure
    if key not in _sweeps:
        _sweeps[key] = _compiled_sweep(law)
    return _sweeps[key]


def _compiled_sweep(law: DynamicLaw) -> Any:
    graph, m = Graph(), law.states
    step = law.step(graph)
    sweep = Routine(graph, "sweep", ("t", "v", "numbers", "steps", "states"))
    motion = sweep.local("motion", 3)
    with sweep.repeat(sweep.load("steps")) as k:
        times, velocities = sweep.load_all("t", k, 2), sweep.load_all("v", k, 2)
        sweep.store_all("states", m * (k + 1.0), sweep.load_all("states", m * k, m))
        sweep.store_all(motion, 0, [*velocities, times[1] - times[0]])
        sweep.call(step, state=("states", m * (k + 1.0)), motion=motion, numbers="numbers")
    return compile_routines([sweep], "friction with memory")["sweep"]


#: Exponents below which the weights of an exact step are taken from their series: the closed forms cancel.
SHORT, SERIES = 0.05, 8


def relaxation_weights(a: Node) -> tuple[Node, Node, Node]:
    """Return the weights of the exact solution of ``dx/ds = target(s) - x`` over s = a with a target that is linear in s.

    ``x(a) = decay x(0) + first target(0) + last target(a)``; all three are in [0, 1] and add to one.
    """
    decay = exp(-a)
    mean = (1.0 - decay) / maximum(a, SHORT)
    last, first = a.graph.zero, a.graph.zero
    for k in range(SERIES, 0, -1):
        last = a * (1.0 / factorial(k + 1) - last)
        first = a * (k / factorial(k + 1) - first)
    return decay, where(a < SHORT, first, mean - decay), where(a < SHORT, last, 1.0 - mean)


def simpson_mean(function: Any, v0: Node, v1: Node) -> Node:
    """Return the mean of a function of the velocity over a piece by Simpson's rule."""
    result: Node = (function(v0) + 4.0 * function(0.5 * (v0 + v1)) + function(v1)) / 6.0
    return result


def stribeck_curve(p: Mapping[str, Any], v: Any) -> Any:
    """Return the Stribeck curve of a law without its sign."""
    return stribeck(v, p["fc"], p["fs"], p["vs"], p["exponent"])


@dataclass(frozen=True)
class LuGre(DynamicLaw):
    """LuGre law: ``dz/dt = v - sigma0 |v| z / g(v)``, ``f = sigma0 z + sigma1 dz/dt + fv v``.

    ``g(v) = fc + (fs - fc) exp(-|v/vs|^delta)`` [Canudas1995].
    """

    sigma0: float  #: Stiffness of the bristles [N m/rad or N/m]
    sigma1: float  #: Damping of the bristles [N m s/rad or N s/m]
    fc: float  #: Coulomb friction [N m or N]
    fs: float  #: Breakaway friction [N m or N]
    vs: float  #: Stribeck speed [rad/s or m/s]
    fv: float = 0.0  #: Viscous friction [N m s/rad or N s/m]
    exponent: float = 2.0  #: delta of the Stribeck curve

    states = 1

    def __post_init__(self) -> None:
        positive("LuGre", sigma0=self.sigma0, fc=self.fc, fs=self.fs, vs=self.vs, exponent=self.exponent)
        not_negative("LuGre", sigma1=self.sigma1, fv=self.fv)

    @property
    def steady(self) -> Friction:
        """Stribeck and viscous friction."""
        return (Stribeck(self.exponent) + Viscous()).using(fc=self.fc, fs=self.fs, vs=self.vs, fv=self.fv)

    def rate(self, z: ArrayLike, v: ArrayLike) -> Array:
        """Velocity of the bristles."""
        return np.asarray(self._rate(np.asarray(z), np.asarray(v, dtype=np.float64), self.parameters))

    @staticmethod
    def _rate(z: Any, v: Any, p: Mapping[str, Any]) -> Any:
        return v - p["sigma0"] * absolute(v) * z / stribeck_curve(p, v)

    def passive(self, speed: float | None = None) -> bool:
        """Return whether the law is passive: it never returns more energy than it has stored.

        Sufficient at all speeds: ``fv >= sigma1 (fs - fc) / fc`` (also necessary [Barabanov2000]).
        Sufficient up to a speed: ``sigma1^2 |v| <= 4 (sigma1 + fv) g(v)``, from the storage sigma0 z^2 / 2.
        """
        if self.fv >= self.sigma1 * (self.fs - self.fc) / self.fc:
            return True
        if speed is None:
            return False
        v = np.linspace(0.0, speed, 1001)
        return bool((self.sigma1**2 * v <= 4.0 * (self.sigma1 + self.fv) * stribeck_curve(self.parameters, v)).all())

    def force(self, z: Sequence[Any], v: Any, p: Mapping[str, Any]) -> Any:
        return p["sigma0"] * z[0] + p["sigma1"] * self._rate(z[0], v, p) + p["fv"] * v

    def _piece(self, routine: Routine, v0: Node, v1: Node, dt: Node, p: Mapping[str, Node]) -> None:
        gone = p["sigma0"] * dt * simpson_mean(lambda v: absolute(v) / stribeck_curve(p, v), v0, v1)  # in relaxation lengths
        decay, first, last = relaxation_weights(gone)
        target = sign(v0 + v1) * (first * stribeck_curve(p, v0) + last * stribeck_curve(p, v1)) / p["sigma0"]
        routine.store("state", 0, decay * routine.load("state") + target)
