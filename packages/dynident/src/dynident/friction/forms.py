"""What follows from the expression of a law: columns, derivatives and levels of break-away, and their numbers by NumPy."""

from __future__ import annotations

from functools import lru_cache
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dynident.errors import DescriptionError
from dynident.friction.sides import directed
from dynident.friction.state import State
from dynident.graph.calculus import derivative
from dynident.graph.expression import Graph, Node, evaluate_nodes, reachable, substitute

if TYPE_CHECKING:
    from dynident.friction.law import FrictionLaw

Array = NDArray[np.float64]

CHANNELS = ("v", "q", "tau", "T")
TILE = 4096  # samples at a time: what is computed on the way stays in the processor's cache


class Point(NamedTuple):
    """What the torque of a law depends on: expressions, numbers or arrays."""

    v: Any  # Velocity, position, load and temperature, as in `State`
    q: Any  # Velocity, position, load and temperature, as in `State`
    tau: Any  # Velocity, position, load and temperature, as in `State`
    T: Any  # Velocity, position, load and temperature, as in `State`


class Forms:
    """The expression of a law and what follows from it, made when it is first asked for."""

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
        self._known: dict[str, list[Node]] = {}
        self._lock = Lock()  # a graph grows in one thread at a time

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
        """Return the numbers of a form; values are those of all parameters, or for columns those of the shape."""
        with self._lock:
            if form not in self._known:
                self._known[form] = self._made(form)
            nodes = self._known[form]
        law, (what, _, by) = self.law, form.partition(" ")
        names = law.shape if what == "columns" else law.parameters
        known: dict[str, Any] = {"v": state.v, **dict(zip(names, values.tolist(), strict=True))}
        for node in reachable(nodes):
            if node.op == "symbol" and node.name not in known:
                known[node.name] = state.channel(node.name, law.name)
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
    """Return the forms of a law, made once for all laws that are equal."""
    try:
        hash(law)
    except TypeError as error:
        raise DescriptionError(
            f"the law '{law.name}' cannot be a key ({error}); make it a frozen dataclass of numbers and tuples"
        ) from error
    return _made_once(law)
