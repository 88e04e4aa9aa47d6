"""The rows W of the regression along a motion, and the derivatives of any weighted sum of them.

    s = sum B W(q, v, a)        ds/dq, ds/dv, ds/da at every sample, whatever the number of trajectory parameters

For a robot both are machine code of one set of expressions (`mechanics.equations`): the entries of W, and their reverse sweep,
which takes the weights B as inputs. With loops the sweep gives the derivative by all tree positions x; since dx/dq = G, that by
the independent ones is G^T of it. Signs of friction are smoothed to tanh(v / eps).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from dynident.arrays import Array
from dynident.checks import number
from dynident.errors import DynidentError, require
from dynident.graph.compiled import Compiled
from dynident.graph.elementary import absolute
from dynident.graph.expression import reverse
from dynident.identify.base import BaseParameters
from dynident.identify.regression.rows import Projection, Rows, check_projection, projected
from dynident.mechanics.closure import close_positions
from dynident.mechanics.equations import Equations as Expressions
from dynident.mechanics.equations import opaque_columns
from dynident.mechanics.functions import cached, compiled, entering
from dynident.mechanics.motion import Motion
from dynident.mechanism.mechanism import Mechanism

Slopes = tuple[Array, Array, Array]

MOST_EQUATIONS = 10_000  # rows of one sample
STEP = 1e-5  # of central differences; rows are of order one and smooth over angles of order one
SINGULAR = 1e-7  # pivot ratio of the closure below which the independent coordinates no longer determine the others


class ExcitationEquations(ABC):
    """Rows W beta = y of any robot as functions of the motion; `dof`, `names` and `seen` (rows, b) say what they are of."""

    dof: int
    names: tuple[str, ...]
    seen: NDArray[np.bool_]
    threads: ClassVar[bool] = False  # whether rows of several stretches of a motion may be computed at once

    def positions(self, q: Array) -> Array:
        """Return the positions (N, m) that `rows` and `pullback` take: q (N, n), or with loops those of the whole tree."""
        return np.ascontiguousarray(q)

    @abstractmethod
    def rows(self, x: Array, v: Array, a: Array, out: Array | None = None) -> Array:
        """Return the entries of W that are not zero by structure, (k, N): ``W[seen] = rows``; memory for them may be given."""

    def pullback(self, x: Array, v: Array, a: Array, B: Array) -> Slopes:
        """Return dq, dv, da (N, n) of sum B W, weights B (k, N) of `rows`, by central differences of all samples at once."""
        state = (x, v, a)
        found = [np.zeros_like(x) for _ in range(3)]
        for i, j in np.ndindex(3, x.shape[1]):
            sides = []
            for h in (STEP, -STEP):
                moved = [y.copy() if k == i else y for k, y in enumerate(state)]
                moved[i][:, j] += h
                sides.append(np.sum(B * self.rows(moved[0], moved[1], moved[2]), axis=0))
            found[i][:, j] = (sides[0] - sides[1]) / (2.0 * STEP)
        return found[0], found[1], found[2]


@dataclass(frozen=True, eq=False)
class RobotEquations(ExcitationEquations):
    """The base regressor of a robot, projected when it has loops."""

    base: BaseParameters  # Base parameters and the robot
    eps: float = 0.0  # Speed over which signs of friction are smoothed [rad/s or m/s]; 0 for true signs
    projection: Projection = "gls"  # Equations of a robot with loops, see `dynident.identify.regression.rows`
    threads = True

    def __post_init__(self) -> None:
        require(self.base, BaseParameters, "base")
        number("eps", self.eps, least=0.0, unit="rad/s, m/s")
        check_projection(self.projection)
        seen = np.asarray(Rows(self.mechanism, self.projection).seen(self.base.seen))
        for name, value in (("dof", self.mechanism.dof), ("names", self.base.names), ("seen", seen)):
            object.__setattr__(self, name, value)

    @property
    def mechanism(self) -> Mechanism:
        """The robot."""
        return self.base.mechanism

    @cached_property
    def exact(self) -> bool:
        """True when derivatives are exact: always, except with couplings of which only numbers are known."""
        return not (self.mechanism.has_opaque_couplings or opaque_columns(self.mechanism))

    def positions(self, q: Array) -> Array:
        """Return q, or with loops the positions of the whole tree."""
        return super().positions(close_positions(self.mechanism, q) if self.mechanism.loops else q)

    def rows(self, x: Array, v: Array, a: Array, out: Array | None = None) -> Array:
        """Return the entries of W by machine code; refuse singular samples."""
        arrays = self._arrays(x, v, a)
        W = np.empty((int(self.seen.sum()), len(x))) if out is None else out
        pivot = np.empty((len(x), 1))
        self._function("excitation_rows")(len(x), {**arrays, "W": W, "pivot": pivot}, threads=False)
        if self.mechanism.loops:
            self._check(W, pivot[:, 0])
        return W

    def pullback(self, x: Array, v: Array, a: Array, B: Array) -> Slopes:
        """Return dq, dv, da by the reverse sweep, exactly."""
        if not self.exact:
            return super().pullback(x, v, a, B)
        slopes = {name: np.empty((len(x), self.dof)) for name in ("dq", "dv", "da")}
        arrays = {**self._arrays(x, v, a), "B": np.ascontiguousarray(B), **slopes}
        self._function("excitation_slopes")(len(x), arrays, threads=False)
        return slopes["dq"], slopes["dv"], slopes["da"]

    def _arrays(self, x: Array, v: Array, a: Array) -> dict[str, Array]:
        """Return the inputs of the compiled functions."""
        return inputs_of(self.mechanism, x, v, a) | ({"width": np.array([self.eps])} if self.eps > 0.0 else {})

    def _check(self, W: Array, pivot: Array) -> None:
        """Refuse samples at which the closure or the projection is singular."""
        if np.min(pivot, initial=1.0) >= SINGULAR and np.isfinite(W).all():
            return
        raise DynidentError(
            f"robot '{self.mechanism.name}' passes a singularity, where its coordinates do not determine its other joints or "
            "its motors do not hold it; keep the motion away from it"
        )

    def _function(self, name: str) -> Compiled:
        """Return the machine code of the entries, or of their reverse sweep."""
        columns, entries = self.base.columns, np.argwhere(self.seen)
        smooth, sweep = self.eps > 0.0, name == "excitation_slopes"

        def build() -> Compiled:
            robot = Expressions(self.mechanism)
            if smooth:
                robot.width = robot.graph.symbols("width", 1)[0]
            Y = robot.regressor(columns.tolist())
            if self.mechanism.loops:
                Y = projected(robot, Rows(self.mechanism, self.projection), Y)[0]
            W = [Y[i][j] for i, j in entries]
            shared = {"width": 1} if smooth else {}
            if not sweep:
                outputs = {"W": W, "pivot": [absolute(robot.pivot) if self.mechanism.loops else robot.graph.one]}
                return compiled(self.mechanism, name, outputs, frozenset({"W"}), shared=shared)
            n = self.dof
            slopes = reverse(W, robot.graph.symbols("B", len(W)), [*robot.x, *robot.v, *robot.a])
            by_x = slopes[: len(robot.x)]
            dq = robot.project(by_x) if self.mechanism.loops else by_x
            outputs = {"dq": dq, "dv": slopes[-2 * n : -n], "da": slopes[-n:]}
            return compiled(self.mechanism, name, outputs, frozenset({"B"}), {"B": len(W)}, shared=shared)

        projection = self.projection if self.mechanism.loops else ""
        return cached(self.mechanism, (name, tuple(columns.tolist()), self.seen.tobytes(), projection, smooth), build)


def inputs_of(mechanism: Mechanism, x: Array, v: Array, a: Array) -> dict[str, Array]:
    """Return what the compiled functions of a robot take for positions (closed, with loops) and rates."""
    if mechanism.has_opaque_couplings or opaque_columns(mechanism):
        return entering(mechanism, Motion(np.arange(float(len(x))), x, v, a))
    arrays = {name: np.ascontiguousarray(y) for name, y in (("q", x), ("v", v), ("a", a))}
    return arrays | ({"law": mechanism.law_values} if mechanism.law_values.size else {})


@dataclass(frozen=True, eq=False)
class FunctionEquations(ExcitationEquations):
    """Rows from any function of the motion, such as a closed-form regressor in task coordinates."""

    function: Callable[[Array, Array, Array], Array]
    dof: int  # Number of coordinates
    names: tuple[str, ...]  # Names of the b parameters
    equations: int  # Number of rows

    def __post_init__(self) -> None:
        if not 1 <= self.equations <= MOST_EQUATIONS:
            raise DynidentError(f"equations is {self.equations}; give the number of rows of one sample, 1 to {MOST_EQUATIONS}")
        object.__setattr__(self, "seen", np.ones((self.equations, len(self.names)), dtype=np.bool_))

    def rows(self, x: Array, v: Array, a: Array, out: Array | None = None) -> Array:
        """Return what the function gives, entry by entry."""
        found = np.reshape(self.function(x, v, a), (self.seen.size, len(x)))
        return np.ascontiguousarray(found, dtype=np.float64)  # whatever order and type of numbers the function has
