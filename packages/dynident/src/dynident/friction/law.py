"""The friction law: one expression, linear in some of its parameters and shaped by the others.

    f(v, q, tau, T) = Phi(v, q, tau, T; eta) rho          rho: linear parameters (k),  eta: shape parameters (s)

A law states its names and `torque`; the rest follows from that expression: the columns Phi = df/drho, all derivatives (so
that a fit can eliminate rho and search eta alone, variable projection), the branches of the two directions with their
breakaway levels, the smooth form for optimisers, and the printed form. Laws add: ``Coulomb() + Viscous()``. Positive
friction opposes the motion and stands on the left of the equation of motion, ``M a + C v + g + f = tau``.

    directed(f, v, s)    sign(v) = s = +1 or -1, |v| = s v, [v > 0] = [s > 0], ...   one side's branch, smooth through v = 0
    smooth(f, v, w)      sign(v) = tanh(v/w), [v > 0] = (1 + tanh(v/w))/2            for optimisers

`directed` at v = 0 is the one-sided limit of f: the breakaway level of dry friction. Friction must dissipate power,
f(v) v >= 0, but an identified law need not (`dissipation`): the sigmoid laws printed in [Rodriguez2002, Table 4] feed energy
into the motion near zero speed on three of four joints, and a simulated robot then never comes to rest.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property, lru_cache
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynident.arrays import Array
from dynident.errors import DescriptionError, LogError
from dynident.graph.algebra import tanh, where
from dynident.graph.expression import Graph, Node, derivative, evaluate_nodes, reachable, substitute
from dynident.results import Result


@dataclass(frozen=True, eq=False)
class State:
    """Inputs of a friction law, one value per sample; all arrays have the shape of `v`."""

    v: Array  # Velocity of the joint [rad/s or m/s]
    q: Array | None = None  # Position of the joint [rad or m]
    tau: Array | None = None  # Load: torque or force that the joint transmits [N m or N]
    T: Array | None = None  # Temperature of the friction surfaces [degree Celsius]

    def __post_init__(self) -> None:
        count = np.shape(self.v)
        for channel in fields(self):
            values = getattr(self, channel.name)
            if values is None:
                continue
            array = np.asarray(values, dtype=np.float64)
            if array.shape not in ((), count):
                raise LogError(
                    f"{channel.name} has the shape {array.shape} and v the shape {count}; give one value per velocity"
                )
            if not np.isfinite(array).all():
                raise LogError(f"{channel.name} holds a value that is not finite; remove the sample or repair the signal")
            object.__setattr__(self, channel.name, np.broadcast_to(array, count))

    @classmethod
    def of(cls, state: State | ArrayLike) -> State:
        """Return a state; a plain array is taken as the velocity."""
        return state if isinstance(state, State) else cls(np.asarray(state, dtype=np.float64))

    def channel(self, name: str, law: str) -> Array:
        """Return one of the channels `q`, `tau` and `T`, or raise an error that names the law that needs it."""
        values: Array | None = getattr(self, name)
        if values is None:
            raise LogError(f"law '{law}' needs {name}; give State(v, {name}=...) instead of the velocity")
        return values

    def take(self, rows: slice | NDArray[np.bool_]) -> State:
        """Return a subset of the samples along the first axis."""
        return State(self.v[rows], *(None if c is None else c[rows] for c in (self.q, self.tau, self.T)))


_ORDERS = 4  # derivatives examined to find the sign of an expression next to its zero


def directed(output: Node, v: Node, way: Node | float) -> Node:
    """Return the branch of f(v) for one direction s = +1 or -1, smooth through v = 0; there it is the limit from that side."""
    graph = output.graph
    side = graph.node(way)
    done: dict[int, Node] = {}
    for node in reachable([output]):
        args = [done[arg.index] for arg in node.args]
        leaves = None
        if node.op in ("sign", "abs"):
            leaves = _leaves(args[0], v, side)
        elif node.op in ("lt", "le", "min", "max"):
            leaves = _leaves(args[1] - args[0], v, side)
        done[node.index] = node.rebuilt(args) if leaves is None else _branch(node.op, args, leaves)
    return done[output.index]


def _leaves(x: Node, v: Node, side: Node) -> Node | None:
    """Return the sign of x next to v = 0 on one side, or None where x is nonzero at v = 0."""
    graph = x.graph
    here = substitute([x], {v: graph.zero})[0]
    if not here.is_const(0.0) or v not in reachable([x]):
        return None
    for order in range(1, _ORDERS + 1):
        x = derivative(x, v)
        here = substitute([x], {v: graph.zero})[0]
        if not here.is_const(0.0):
            sign = graph.call("sign", here)
            return sign * side if order % 2 else sign
    return graph.zero


def _branch(op: str, args: list[Node], leaves: Node) -> Node:
    """Return an operation with an outcome known from the sign of its argument, or of the second argument minus the first."""
    if op == "sign":
        return leaves
    if op == "abs":
        return leaves * args[0]
    if op == "lt":
        return leaves > 0.0
    if op == "le":
        return leaves >= 0.0
    rises: Node = where(leaves >= 0.0, args[0], args[1]) if op == "min" else where(leaves >= 0.0, args[1], args[0])
    return rises


def smooth(output: Node, v: Node, width: Node | float) -> Node:
    """Return an expression with its jumps in the velocity spread over a width [rad/s or m/s]."""
    done: dict[int, Node] = {}
    moves: dict[int, bool] = {}
    for node in reachable([output]):
        args = [done[arg.index] for arg in node.args]
        moves[node.index] = node is v or any(moves[arg.index] for arg in node.args)
        if moves[node.index] and node.op == "sign":
            new = tanh(args[0] / width)
        elif moves[node.index] and node.op in ("lt", "le"):
            new = 0.5 + 0.5 * tanh((args[1] - args[0]) / width)
        elif node.op == "select" and moves[node.args[0].index]:
            new = args[2] + args[0] * (args[1] - args[2])
        else:
            new = node.rebuilt(args)
        done[node.index] = new
    return done[output.index]


def jumps(output: Node) -> bool:
    """Return whether an expression has a sign or a comparison in it."""
    return any(node.op in ("sign", "lt", "le", "eq") for node in reachable([output]))


CHANNELS = ("v", "q", "tau", "T")
TILE = 4096  # samples per block, so that intermediate results stay in the processor's cache


class Point(NamedTuple):
    """Inputs of a law's torque, as in `State`: expressions, numbers or arrays."""

    v: Any
    q: Any
    tau: Any
    T: Any


class Forms:
    """The expression of a law, and the columns, derivatives and breakaway levels derived from it on first use."""

    def __init__(self, law: FrictionLaw) -> None:
        self.law, self.graph = law, Graph()
        names = (*CHANNELS, *law.parameters)
        if len(set(names)) < len(names):
            raise DescriptionError(
                f"the law '{law.name}' names {law.parameters}; name each once, and none {', '.join(CHANNELS)}"
            )
        self.symbols = {name: self.graph.symbol(name) for name in names}
        self.torque = law.expression(self.graph)
        self.columns = [derivative(self.torque, self.symbols[name]) for name in law.linear]
        bent = {node.name for node in reachable(self.columns)} & set(law.linear)
        if bent:
            raise DescriptionError(f"the law '{law.name}' is not linear in {', '.join(sorted(bent))}; name them in `shape`")
        rest = substitute([self.torque], {self.symbols[name]: self.graph.zero for name in law.linear})[0]
        if not rest.is_const(0.0):
            raise DescriptionError(f"the law '{law.name}' has a part that no linear parameter multiplies; multiply it by one")
        self.looks_at = frozenset(node.name for node in reachable([self.torque]) if node.name in CHANNELS)
        self._known: dict[str, tuple[list[Node], list[str]]] = {}  # expressions, and the channels other than v that they need
        self._lock = Lock()  # a graph grows in one thread at a time

    def _of(self, form: str) -> tuple[list[Node], list[str]]:
        with self._lock:
            if form not in self._known:
                nodes = self._made(form)
                self._known[form] = nodes, [node.name for node in reachable(nodes) if node.name in CHANNELS[1:]]
            return self._known[form]

    def _made(self, form: str) -> list[Node]:
        what, _, by = form.partition(" ")
        law = self.law
        if what == "breakaway":
            v, zero = self.symbols["v"], self.graph.zero
            return substitute([directed(self.torque, v, -1.0), directed(self.torque, v, 1.0)], {v: zero})
        nodes = self.columns if what == "columns" else [self.torque]
        if not by:
            return nodes
        many = {"shape": law.shape} if what == "columns" else {"parameters": law.parameters}
        if by not in (*CHANNELS, *many):
            raise DescriptionError(f"by is '{by}'; it is one of {', '.join((*CHANNELS, *many))}")
        return [derivative(node, self.symbols[name]) for node in nodes for name in many.get(by, (by,))]

    def numbers(self, form: str, state: State, values: Array) -> Array:
        """Return the numbers of a form; `values` are all parameters, or for columns the shape parameters."""
        nodes, channels = self._of(form)
        law, (what, _, by) = self.law, form.partition(" ")
        names = law.shape if what == "columns" else law.parameters
        known: dict[str, Any] = {"v": state.v, **dict(zip(names, values.tolist(), strict=True))}
        known |= {name: state.channel(name, law.name) for name in channels}
        result = np.empty((*state.v.shape, len(nodes)))
        flat = {name: np.ravel(value) if np.ndim(value) else value for name, value in known.items()}
        rows = result.reshape(state.v.size, len(nodes))
        for first in range(0, len(rows), TILE):
            part = slice(first, first + TILE)
            here = {name: value[part] if np.ndim(value) else value for name, value in flat.items()}
            for i, column in enumerate(evaluate_nodes(nodes, here)):
                rows[part, i] = column
        if form == "columns shape":
            return result.reshape(*state.v.shape, len(law.linear), len(law.shape))
        return np.asarray(result[..., 0]) if what == "value" and by != "parameters" else result


_made_once = lru_cache(maxsize=512)(Forms)


def forms_of(law: FrictionLaw) -> Forms:
    """Return the forms of a law, created once for all equal laws."""
    try:
        hash(law)
    except TypeError as error:
        raise DescriptionError(
            f"law '{law.name}' is not hashable ({error}); make it a frozen dataclass of numbers and tuples"
        ) from error
    return _made_once(law)


Values = Mapping[str, float] | ArrayLike


class FrictionLaw(ABC):
    """Base of all static laws; a law is a structure without numbers, parameters are given at every call.

    A law states `name`, `linear`, `shape` and `torque`; a law with shape parameters also `ranges`, and in `positive` those
    that must be above zero. A law does not change after it was made: make it a frozen dataclass. The derivative of a jump (the
    sign of v at v = 0) is taken as zero.
    """

    @property
    @abstractmethod
    def name(self) -> str:
        """Short name, the prefix of its parameters in a sum."""

    @property
    @abstractmethod
    def linear(self) -> tuple[str, ...]:
        """Names of the parameters that enter linearly, one per column."""

    @property
    def shape(self) -> tuple[str, ...]:
        """Names of the parameters that shape the columns."""
        return ()

    @property
    def positive(self) -> tuple[str, ...]:
        """Names of the shape parameters that must be above zero."""
        return ()

    @property
    def parameters(self) -> tuple[str, ...]:
        """All names: linear ones first, then shape."""
        return self.linear + self.shape

    @property
    def looks_at(self) -> frozenset[str]:
        """Which of ``v``, ``q``, ``tau`` and ``T`` the torque depends on."""
        return forms_of(self).looks_at

    @abstractmethod
    def torque(self, x: Point, p: Mapping[str, Any]) -> Any:
        """Friction, written with operators and the functions of `dynident.graph`."""

    def ranges(self, speed: float) -> Sequence[tuple[float, float]]:
        """Interval in which to search each shape parameter."""
        del speed
        return ()

    def shape_range(self, speed: float) -> Array:
        """Interval in which to search each shape parameter, from the largest speed of the data alone."""
        if not (np.isfinite(speed) and speed > 0.0):
            raise DescriptionError(f"speed = {speed} must be above zero; give the largest absolute speed of the data")
        found = np.array(self.ranges(speed), dtype=np.float64).reshape(-1, 2)
        if len(found) != len(self.shape):
            raise DescriptionError(
                f"the law '{self.name}' has {len(found)} search intervals for the shape parameters {self.shape}; "
                "let its method ranges(speed) return one each"
            )
        return found

    def columns(self, state: State | ArrayLike, shape: ArrayLike = (), by: str = "") -> Array:
        """Regressor columns, ``f = columns @ rho``, or their exact derivative."""
        return forms_of(self).numbers(f"columns {by}", State.of(state), self._eta(shape))

    def value(self, state: State | ArrayLike, parameters: Values, by: str = "") -> Array:
        """Friction torque or force, or its exact derivative."""
        return forms_of(self).numbers(f"value {by}", State.of(state), np.concatenate(self.split(parameters)))

    def breakaway(self, state: State | ArrayLike, parameters: Values) -> Array:
        """Limits of the friction at rest: one-sided limits for v to zero from both sides."""
        return forms_of(self).numbers("breakaway ", State.of(state), np.concatenate(self.split(parameters)))

    def expression(
        self,
        graph: Graph,
        x: Point | None = None,
        p: Mapping[str, Node | float] | None = None,
        way: Node | float | None = None,
        width: Node | float | None = None,
    ) -> Node:
        """Friction as an expression, for compiled loops and for the printers."""
        given = Point(*(graph.symbol(name) for name in CHANNELS)) if x is None else x
        values = {name: graph.symbol(name) if p is None else graph.node(p[name]) for name in self.parameters}
        own = graph.symbol("own velocity")  # the forms below are derived in v, which may be any expression
        result = graph.node(self.torque(given._replace(v=own), values))
        if way is not None:
            result = directed(result, own, way)
        if width is not None:
            result = smooth(result, own, width)
        return substitute([result], {own: graph.node(given.v)})[0]

    def split(self, parameters: Values) -> tuple[Array, Array]:
        """Split one set of parameters into linear and shape parameters."""
        names = self.parameters
        if isinstance(parameters, Mapping):
            given = {self._resolve(name): float(value) for name, value in parameters.items()}
            missing = [name for name in names if name not in given]
            if missing:
                raise DescriptionError(
                    f"the law '{self.name}' lacks a value for {', '.join(missing)}; its parameters are {names}"
                )
            values = np.array([given[name] for name in names], dtype=np.float64)
        else:
            values = np.asarray(parameters, dtype=np.float64)
        if values.shape != (len(names),):
            raise DescriptionError(
                f"the law '{self.name}' has the parameters {names}, but an array of shape {values.shape} was given"
            )
        if not np.isfinite(values).all():
            raise DescriptionError(f"the parameters of '{self.name}' are {values.tolist()}; they must be finite")
        return values[: len(self.linear)], self._eta(values[len(self.linear) :])

    def _eta(self, shape: ArrayLike) -> Array:
        """Return the shape parameters after checking them."""
        eta = np.asarray(shape, dtype=np.float64)
        if eta.shape != (len(self.shape),):
            raise DescriptionError(
                f"the law '{self.name}' has {len(self.shape)} shape parameters {self.shape}, but the array given has the "
                f"shape {eta.shape}; give one number each"
            )
        if not np.isfinite(eta).all():
            raise DescriptionError(f"shape parameters of '{self.name}' are {eta.tolist()}; they must be finite")
        wrong = [f"{n} = {x}" for n, x in zip(self.shape, eta.tolist(), strict=True) if x <= 0.0 and n in self.positive]
        if wrong:
            raise DescriptionError(
                f"the law '{self.name}' needs shape parameters above zero, but {', '.join(wrong)}; search their logarithm"
            )
        return eta

    def _resolve(self, name: str) -> str:
        """Return the full name of a parameter."""
        if name in self.parameters:
            return name
        found = [full for full in self.parameters if full.endswith("." + name)]
        if len(found) != 1:
            choice = f"write one of {', '.join(found or self.parameters)}"
            raise DescriptionError(f"parameter '{name}' of law '{self.name}' is unknown or ambiguous; {choice}")
        return found[0]

    def using(self, parameters: Mapping[str, float] | None = None, **values: float) -> Friction:
        """Law with numbers, to be called with a state."""
        return Friction(self, np.concatenate(self.split({**(parameters or {}), **values})))

    def _members(self) -> tuple[FrictionLaw, ...]:
        return (self,)

    def __add__(self, other: FrictionLaw) -> Sum:
        if not isinstance(other, FrictionLaw):
            return NotImplemented
        return Sum((*self._members(), *other._members()))


@dataclass(frozen=True)
class Sum(FrictionLaw):
    """Sum of laws; its parameters carry the name of their law: ``coulomb.fc``, ``tanh.beta``, ``tanh2.beta``."""

    members: tuple[FrictionLaw, ...]  #: The laws, at least one

    def __post_init__(self) -> None:
        object.__setattr__(self, "members", tuple(self.members))
        if not self.members:
            raise DescriptionError("a sum of friction laws needs at least one law")

    @property
    def name(self) -> str:
        """Names of the laws joined by a plus."""
        return "+".join(law.name for law in self.members)

    def _members(self) -> tuple[FrictionLaw, ...]:
        return self.members

    @property
    def prefixes(self) -> list[str]:
        """Prefix of the parameters of each member: its name, numbered from its second occurrence on."""
        names = [law.name for law in self.members]
        rank = [names[: i + 1].count(name) for i, name in enumerate(names)]
        return [name if r == 1 else f"{name}{r}" for name, r in zip(names, rank, strict=True)]

    def _named(self, kind: str) -> tuple[str, ...]:
        return tuple(f"{p}.{n}" for p, law in zip(self.prefixes, self.members, strict=True) for n in getattr(law, kind))

    @property
    def linear(self) -> tuple[str, ...]:
        """Linear parameters of all members."""
        return self._named("linear")

    @property
    def shape(self) -> tuple[str, ...]:
        """Shape parameters of all members."""
        return self._named("shape")

    @property
    def positive(self) -> tuple[str, ...]:
        """Shape parameters of all members that must be above zero."""
        return self._named("positive")

    def ranges(self, speed: float) -> Sequence[tuple[float, float]]:
        return [interval for law in self.members for interval in law.ranges(speed)]

    def torque(self, x: Point, p: Mapping[str, Any]) -> Any:
        parts = zip(self.prefixes, self.members, strict=True)
        return sum(law.torque(x, {name: p[f"{prefix}.{name}"] for name in law.parameters}) for prefix, law in parts)


@lru_cache(maxsize=512)
def _members_of(law: Sum) -> list[tuple[FrictionLaw, list[int]]]:
    """Return the members of a sum, and the indices of their parameters in the sum."""
    names, members = law.parameters, zip(law.prefixes, law.members, strict=True)
    return [(member, [names.index(f"{prefix}.{name}") for name in member.parameters]) for prefix, member in members]


@dataclass(frozen=True, eq=False)
class Friction:
    """A law with numbers: ``friction(v)`` is the torque."""

    law: FrictionLaw  #: The law
    values: Array  #: (k + s,), its parameters in the order of ``law.parameters``
    known: tuple[str, ...] = ()  #: Shape parameters that are held fixed

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", np.concatenate(self.law.split(self.values)))
        object.__setattr__(self, "known", tuple(self.known))
        wrong = [name for name in self.known if name not in self.law.shape]
        if wrong:
            raise DescriptionError(
                f"the law '{self.law.name}' has no shape parameter '{wrong[0]}'; they are {', '.join(self.law.shape) or 'none'}"
            )

    @property
    def parameters(self) -> dict[str, float]:
        """Values by name."""
        return dict(zip(self.law.parameters, self.values.tolist(), strict=True))

    @cached_property
    def parts(self) -> tuple[Friction, ...]:
        """The members of a sum, each with its own numbers; of any other law the law itself."""
        if not isinstance(self.law, Sum):
            return (self,)
        return tuple(Friction(law, self.values[places]) for law, places in _members_of(self.law))

    @property
    def steady(self) -> Friction:
        """The law itself, which has no memory."""
        return self

    def __call__(self, state: State | ArrayLike, by: str = "") -> Array:
        """Return the friction [N m or N] at a state or at velocities alone, or its derivative as in `FrictionLaw.value`."""
        return self.law.value(state, self.values, by)

    def power(self, state: State | ArrayLike) -> Array:
        """Power turned into heat; negative where the friction feeds energy into the motion."""
        given = State.of(state)
        return np.asarray(self(given) * given.v)

    def breakaway(self, state: State | ArrayLike = 0.0) -> Array:
        """Limits of the friction of a joint at rest, as in `FrictionLaw.breakaway`."""
        return self.law.breakaway(state, self.values)

    def expression(
        self, graph: Graph, x: Point | None = None, way: Node | float | None = None, width: Node | float | None = None
    ) -> Node:
        """Return the friction as an expression with its numbers, as `FrictionLaw.expression` does."""
        return self.law.expression(graph, x, self.parameters, way, width)


#: Speeds examined per direction, and the ratio of the lowest to the highest.
POINTS = 2000
LOWEST = 1e-7
#: Negative friction against the motion smaller than this share of its largest value is rounding error.
ROUNDOFF = 1e-12


@dataclass(frozen=True)
class Dissipation(Result):
    """Speeds at which a friction law dissipates or adds energy."""

    active: tuple[tuple[float, float], ...]
    lowest: float  # Lowest friction against the motion, ``min f(v) sgn(v)`` [N m or N]; negative where the law is active
    at: float  # Velocity of that minimum
    speed: float  # Largest speed examined
    derived = ("dissipative",)

    @property
    def dissipative(self) -> bool:
        """True if the friction opposes the motion at every speed examined."""
        return not self.active

    def summary(self) -> str:
        """Return the finding as one sentence."""
        if self.dissipative:
            return f"dissipative up to a speed of {self.speed:g}"
        spans = ", ".join(f"{low:.4g} to {high:.4g}" for low, high in self.active)
        worst = f"lowest friction against the motion {self.lowest:.4g} at {self.at:.4g}"
        return f"active (feeds energy) at velocities {spans}; {worst}"


def dissipation(
    friction: Friction, speed: float, q: float | None = None, tau: float | None = None, T: float | None = None
) -> Dissipation:
    """Check ``f(v) v >= 0`` for all velocities up to `speed` in both directions.

    The grid of speeds is fine near zero; a root search then finds the ends of every active interval.

    Parameters
    ----------
    friction : Friction
        Law with numbers.
    speed : float
        Largest speed [rad/s or m/s], above zero.
    q, tau, T : float, optional
        Position, load and temperature of the check, if the law needs them.

    Returns
    -------
    Dissipation
        Active intervals and the lowest friction against the motion.
    """
    if not (np.isfinite(speed) and speed > 0.0):
        raise DescriptionError(f"speed = {speed} must be above zero; give the largest absolute speed of interest")

    from scipy.optimize import brentq  # noqa: PLC0415 - costs import time

    held = [None if value is None else np.asarray(value, dtype=np.float64) for value in (q, tau, T)]

    def against(speeds: ArrayLike, sign: float, more: float = 0.0) -> Array:
        v = sign * np.asarray(speeds)
        return np.asarray(friction(State(v, *held)) * np.sign(v) + more)

    grid = np.union1d(np.geomspace(LOWEST * speed, speed, POINTS), np.linspace(0.0, speed, POINTS + 1)[1:])
    active: list[tuple[float, float]] = []
    lowest, at = np.inf, 0.0
    for sign in (1.0, -1.0):
        force = against(grid, sign)
        roundoff = ROUNDOFF * float(np.abs(force).max())
        negative = force + roundoff < 0.0
        edges = np.flatnonzero(negative[1:] != negative[:-1])
        roots = [brentq(against, grid[i], grid[i + 1], (sign, roundoff), xtol=1e-300, rtol=1e-15) for i in edges]
        bounds = [0.0] * bool(negative[0]) + roots + [speed] * bool(negative[-1])
        spans = [(sign * low + 0.0, sign * high + 0.0) for low, high in zip(bounds[0::2], bounds[1::2], strict=True)]
        active += [(min(span), max(span)) for span in spans]
        k = int(np.argmin(force))
        low, high = grid[max(k - 1, 0)], grid[min(k + 1, grid.size - 1)]
        for _ in range(4):
            near = np.linspace(low, high, 101)
            force = against(near, sign)
            k = int(np.argmin(force))
            low, high = near[max(k - 1, 0)], near[min(k + 1, 100)]
        if force[k] < lowest:
            lowest, at = float(force[k]), float(sign * near[k])
    return Dissipation(tuple(sorted(active)), lowest, at, speed)
