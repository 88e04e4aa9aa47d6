"""A friction law with numbers: what a joint or a motor rubs with."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynident.errors import DescriptionError
from dynident.friction.forms import Point
from dynident.friction.law import FrictionLaw, Sum
from dynident.friction.state import State
from dynident.graph.expression import Graph, Node

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Friction:
    """A law with numbers: ``friction(v)`` is the torque.

    Parameters
    ----------
    law : FrictionLaw
        The law.
    values : ndarray, shape (k + s,)
        Its parameters in the order of ``law.parameters``.
    known : tuple of str
        Shape parameters that are not to be identified.
    """

    law: FrictionLaw
    values: Array
    known: tuple[str, ...] = ()

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

    @property
    def parts(self) -> tuple[Friction, ...]:
        """The members of a sum, each with its own numbers; of any other law the law itself."""
        if not isinstance(self.law, Sum):
            return (self,)
        given = self.parameters
        named = zip(self.law.prefixes, self.law.members, strict=True)
        return tuple(law.using({name: given[f"{prefix}.{name}"] for name in law.parameters}) for prefix, law in named)

    @property
    def steady(self) -> Friction:
        """The law itself: what a law with memory settles on."""
        return self

    def __call__(self, state: State | ArrayLike, by: str = "") -> Array:
        """Return the friction [N m or N] at a state or at velocities alone, or its derivative as in `FrictionLaw.value`."""
        return self.law.value(state, self.values, by)

    def power(self, state: State | ArrayLike) -> Array:
        """Power turned into heat; negative where the friction feeds energy into the motion."""
        given = State.of(state)
        return np.asarray(self(given) * given.v)

    def breakaway(self, state: State | ArrayLike = 0.0) -> Array:
        """Levels between which the friction of a joint at rest can be, as in `FrictionLaw.breakaway`."""
        return self.law.breakaway(state, self.values)

    def expression(
        self, graph: Graph, x: Point | None = None, way: Node | float | None = None, width: Node | float | None = None
    ) -> Node:
        """Return the friction as an expression with its numbers, as `FrictionLaw.expression` does."""
        return self.law.expression(graph, x, self.parameters, way, width)
