"""Friction with memory: the step of its inner state, and its way along a log.

    f = f(z, v)        dz/dt = g(z, v)          z: deflection of elastic bristles

The velocity is taken as linear over a step; the step is cut where it changes its sign, so that each piece goes one way. A law
states a piece and its force as expressions; they become one compiled step, which `DynamicLaw.simulate` repeats over a log and
which a simulation calls in its own loop (`DynamicLaw.step`). Every piece is advanced by an exact solution, so any step is
stable; accuracy asks only that the samples resolve the velocity.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynident.checks import signal, step_length, time_axis
from dynident.errors import LogError
from dynident.friction.forms import TILE
from dynident.friction.friction import Friction
from dynident.graph.elementary import absolute, equal, floor, minimum, opposite
from dynident.graph.expression import Graph, Node
from dynident.graph.print_routine import compile_routines
from dynident.graph.routine import Routine
from dynident.results import Result

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Array = NDArray[np.float64]

#: A step is cut so that the velocity changes by at most this part of the Stribeck speed per piece, but into MOST at most.
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
        """Draw friction against velocity, the way it went, and over time."""
        from dynident.figures import BLUE, finish, new_figure  # noqa: PLC0415 - matplotlib is an extra

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

    @abstractmethod
    def _piece(self, routine: Routine, v0: Node, v1: Node, dt: Node, p: Mapping[str, Node]) -> None:
        """Write the statements that advance the array ``state`` over a piece in which the velocity keeps its sign."""

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
        """Return the parameters of compiled code by name; exponents are built in, because whole ones need no powers."""
        own = zip(self.parameters.items(), numbers, strict=True)
        return {name: graph.const(value) if name == "exponent" else node for (name, value), node in own}

    @property
    def structure(self) -> tuple[Any, ...]:
        """What the compiled step depends on beside the numbers; laws that agree in it share one step."""
        return type(self), self.states, getattr(self, "exponent", None)

    def _swept(self, t: Array, v: Array, start: Array) -> Array:
        """Return the states at all samples."""
        states = np.empty((t.size, self.states))
        states[0] = start
        arrays = t, v, np.array(list(self.parameters.values())), np.array([t.size - 1.0]), states
        _sweep(_Structure(self))(*(np.ascontiguousarray(array).ctypes.data for array in arrays))
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
        """One step of `simulate`, for a simulator that makes its own steps."""
        after = self._swept(np.array([0.0, step_length(dt)]), np.array([v0, v1], dtype=np.float64), self._start(state))[1]
        return float(self.force(list(after), v1, self.parameters)), after

    def _start(self, start: ArrayLike | None) -> Array:
        state = np.zeros(self.states) if start is None else np.array(start, dtype=np.float64)
        if state.shape != (self.states,) or not np.isfinite(state).all():
            raise LogError(f"start = {state.tolist()} must be {self.states} finite numbers, one per inner state")
        return state


class _Structure:
    """A law without its numbers, as a key of the compiled sweeps."""

    def __init__(self, law: DynamicLaw) -> None:
        self.law, self.key = law, law.structure

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Structure) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)


@lru_cache(maxsize=64)
def _sweep(structure: _Structure) -> Any:
    """Return machine code that repeats the step of a law over all samples: t, v, numbers, number of steps, states."""
    graph, m = Graph(), structure.law.states
    step = structure.law.step(graph)
    sweep = Routine(graph, "sweep", ("t", "v", "numbers", "steps", "states"))
    motion = sweep.local("motion", 3)
    with sweep.repeat(sweep.load("steps")) as k:
        times, velocities = sweep.load_all("t", k, 2), sweep.load_all("v", k, 2)
        sweep.store_all("states", m * (k + 1.0), sweep.load_all("states", m * k, m))
        sweep.store_all(motion, 0, [*velocities, times[1] - times[0]])
        sweep.call(step, state=("states", m * (k + 1.0)), motion=motion, numbers="numbers")
    return compile_routines([sweep], "friction with memory")["sweep"]
