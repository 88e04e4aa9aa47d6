"""The friction law: one expression, linear in some of its parameters and shaped by the others.

    f(v, q, tau, T) = Phi(v, q, tau, T; eta) rho          rho: linear parameters (k),  eta: shape parameters (s)

A law states its names and `torque`; the rest follows from that expression: the columns Phi = df/drho and all derivatives, so
that a fit can eliminate rho and search eta alone (variable projection), the branches of the two directions and the levels at
which they break away, the smooth form for optimisers, and what is printed. Laws add: ``Coulomb() + Viscous()``. Positive
friction opposes the motion and stands on the left of the equation of motion, ``M a + C v + g + f = tau``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynident.errors import DescriptionError
from dynident.friction.forms import CHANNELS, Point, forms_of
from dynident.friction.sides import directed, smooth
from dynident.friction.state import State
from dynident.graph.expression import Graph, Node, reachable, substitute

if TYPE_CHECKING:
    from dynident.friction.friction import Friction

Array = NDArray[np.float64]
Values = Mapping[str, float] | ArrayLike


class FrictionLaw(ABC):
    """Base of all static laws; a law is a structure without numbers, parameters are given at every call.

    A law states `name`, `linear`, `shape` and `torque`; where it has shape parameters also `ranges`, and in `positive` those
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
        return frozenset(node.name for node in reachable([forms_of(self).torque]) if node.name in CHANNELS)

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
        """Levels between which the friction of a joint at rest can be: its limits for v to zero from both sides."""
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
        own = graph.symbol("own velocity")  # the forms below differ by v, which may be given as any expression
        result = graph.node(self.torque(given._replace(v=own), values))
        if way is not None:
            result = directed(result, own, way)
        if width is not None:
            result = smooth(result, own, width)
        return substitute([result], {own: graph.node(given.v)})[0]

    def split(self, parameters: Values) -> tuple[Array, Array]:
        """Linear and shape parameters out of one set."""
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
            raise DescriptionError(f"the law '{self.name}' has no parameter '{name}' of one meaning; {choice}")
        return found[0]

    def using(self, parameters: Mapping[str, float] | None = None, **values: float) -> Friction:
        """Law with numbers, to be called with a state."""
        from dynident.friction.friction import Friction  # noqa: PLC0415 - it stands on this file

        return Friction(self, np.concatenate(self.split({**(parameters or {}), **values})))

    def _members(self) -> tuple[FrictionLaw, ...]:
        return (self,)

    def __add__(self, other: FrictionLaw) -> Sum:
        if not isinstance(other, FrictionLaw):
            return NotImplemented
        return Sum((*self._members(), *other._members()))


@dataclass(frozen=True)
class Sum(FrictionLaw):
    """Sum of laws; its parameters carry the name of their law: ``coulomb.fc``, ``tanh.beta``, ``tanh2.beta``.

    Parameters
    ----------
    members : tuple of FrictionLaw
        The laws, at least one.
    """

    members: tuple[FrictionLaw, ...]

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
        """What stands before the parameters of each member: its name, with a number where it was there before."""
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
