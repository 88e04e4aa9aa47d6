"""Force elements: actuator efforts in addition to bodies, friction and the other joint terms.

    tau_i = ... + c f_i(q, v, a)                    on named coordinates: springs, cables, ripple, known torques
    tau_i = ... + c dV/dq_i                         of an energy V(q): counterbalances, springs across several joints

c is the coefficient: an identified parameter or a known number. f and V are expressions of the q, v, a of named joints.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np

from dynident.arrays import Array
from dynident.errors import DescriptionError, DynidentError
from dynident.friction.terms import TERMS
from dynident.graph.expression import Graph, Node, derivative, reachable, substitute
from dynident.graph.text import parse, write_text
from dynident.mechanism.parameters import SYMBOLS
from dynident.results import Frozen

Written = str | Callable[[Any, Any, Any], Any]
"""An expression as text, or a function of q, v, a that are looked up by joint: ``lambda q, v, a: q["joint1"] - 0.3``."""
States = Mapping[str, tuple[Node, Node, Node]]
"""Expressions of q, v, a by coordinate."""


@dataclass(frozen=True)
class Force(Frozen):
    """One force element: a column of the regressor and its coefficient.

    Texts have numbers, ``pi``, + - * / and ``**``, comparisons, ``x if c else y``, sin, cos, tan, sqrt, exp, log, tanh, abs,
    sign, floor, min, max, atan2 and where; ``q[joint1]``, ``v[joint1]``, ``a[joint1]`` belong to a joint, and ``q``, ``v``,
    ``a`` alone to the joint that the element acts on. A text is never executed as code.

    Examples
    --------
    >>> Force("spring", "joint2", "q - 0.3", unit="N m/rad").on["joint2"]
    'q - 0.3'
    """

    name: str  #: Name of the coefficient, unique among all parameters
    #: Coordinate that the element acts on, or an expression for each of several
    on: Mapping[str, str] | str = field(default_factory=dict)  # after construction always a mapping of texts
    #: Factor of the coefficient if `on` is one coordinate, in N m or N per unit of the coefficient: positive where the
    #: actuator must push forward. A function looks up q, v and a by joint: ``lambda q, v, a: np.sin(q["joint1"])``.
    expression: Written = ""
    #: In place of `on` and `expression`: potential energy per unit of the coefficient; the element acts on all joints
    #: that it names
    energy: Written = ""
    value: float | None = None  #: Known coefficient, or prior value of an identified one; 1 or 0 when omitted
    known: bool = False  #: True for a known coefficient, which is not identified
    unit: str = ""  #: Unit of the coefficient
    held: Mapping[str, float] = field(default_factory=dict)  #: Positions of joints that are held fixed

    def __post_init__(self) -> None:
        check_name(self.name, "force")
        given: Mapping[str, Written] = {self.on: self.expression} if isinstance(self.on, str) else dict(self.on)
        if bool(given) == bool(self.energy) or not all(given.values()):
            raise DescriptionError(
                f"force '{self.name}': give a coordinate with its expression, an expression for each of several, or an energy"
            )
        value = float(self.known) if self.value is None else self.value
        if isinstance(value, bool) or not np.isfinite(float(value)):
            raise DescriptionError(f"force '{self.name}': value is {self.value!r}; give a finite number")
        texts = {coordinate: self._text(written, coordinate) for coordinate, written in given.items()}
        object.__setattr__(self, "energy", self._text(self.energy, None) if self.energy else "")
        object.__setattr__(self, "on", MappingProxyType(texts))
        self._check_energy()
        object.__setattr__(self, "expression", "")
        object.__setattr__(self, "value", float(value))
        object.__setattr__(self, "held", MappingProxyType({k: float(x) for k, x in self.held.items()}))

    def _check_energy(self) -> None:
        """Refuse a potential energy without positions, or with velocities or accelerations: its force would be wrong."""
        if not self.energy:
            return
        used = sorted(node.name for node in reachable(self._nodes()) if node.op == "symbol")
        if not used or any(name[0] != "q" for name in used):
            raise DescriptionError(
                f"force '{self.name}': its energy depends on {', '.join(used) or 'no joint'}; use positions only, as in 0.5 "
                "* (q[joint1] - 0.3)**2, or give joints with expressions"
            )

    def __hash__(self) -> int:
        return hash(self.key)

    @property
    def texts(self) -> Mapping[str, str]:
        """Expression by coordinate; empty for an element with an energy."""
        assert not isinstance(self.on, str)
        return self.on

    @property
    def key(self) -> tuple[Any, ...]:
        """Dependencies of the element's code, without its coefficient."""
        return self.name, tuple(self.texts.items()), self.energy, tuple(self.held.items())

    @property
    def names(self) -> tuple[str, ...]:
        """Names of its parameters."""
        return (self.name,)

    def _text(self, written: Written, own: str | None) -> str:
        """Return an expression as text after parsing it once, so that errors are reported here."""
        graph = Graph()
        if isinstance(written, str):
            with _naming(self.name):
                parse(graph, written, lambda name, index: _symbol(graph, name, index or own))
            return written
        if not callable(written):
            raise DescriptionError(f"force '{self.name}': its expression is {written!r}; give a text or a function of q, v, a")
        try:
            node = graph.node(written(*(_Signals(graph, letter) for letter in "qva")))
        except (TypeError, AttributeError, ValueError, IndexError, ArithmeticError, DynidentError) as error:
            raise DescriptionError(
                f"force '{self.name}': its function cannot be evaluated on expressions ({error}); use + - * / **, "
                'sin, cos, sqrt, exp, tanh of q["joint1"], v["joint1"], a["joint1"]'
            ) from error
        return write_text(node)

    def columns(self, graph: Graph, states: States) -> dict[str, Node]:
        """Return the expression that the coefficient multiplies, by coordinate."""
        known: dict[Node, Node] = {}
        for coordinate, values in states.items():
            known |= {graph.symbol(f"{x}[{json.dumps(coordinate)}]"): value for x, value in zip("qva", values, strict=True)}
        for coordinate, position in self.held.items():
            held = (graph.const(position), graph.zero, graph.zero)
            known |= {graph.symbol(f"{x}[{json.dumps(coordinate)}]"): value for x, value in zip("qva", held, strict=True)}
        if self.energy:
            potential = self._parsed(graph, str(self.energy), None)
            free = [name for name in states if graph.symbol(f"q[{json.dumps(name)}]") in reachable([potential])]
            found = {name: derivative(potential, graph.symbol(f"q[{json.dumps(name)}]")) for name in free}
        else:
            found = {name: self._parsed(graph, text, name) for name, text in self.texts.items() if name in states}
        return {name: substitute([node], known)[0] for name, node in found.items()}

    def potential(self, graph: Graph, states: States) -> Node:
        """Return the energy per unit of the coefficient, zero without one."""
        if not self.energy:
            return graph.zero
        known = {graph.symbol(f"q[{json.dumps(name)}]"): values[0] for name, values in states.items()}
        known |= {graph.symbol(f"q[{json.dumps(name)}]"): graph.const(x) for name, x in self.held.items()}
        return substitute([self._parsed(graph, str(self.energy), None)], known)[0]

    def _parsed(self, graph: Graph, text: str, own: str | None) -> Node:
        return parse(graph, text, lambda name, index: _symbol(graph, name, index or own))

    @property
    def coordinates(self) -> tuple[str, ...]:
        """Coordinates that the element acts on or depends on."""
        seen = dict.fromkeys(self.texts)
        seen |= {json.loads(node.name[2:-1]): None for node in reachable(self._nodes()) if node.op == "symbol"}
        return tuple(name for name in seen if name not in self.held)

    def _nodes(self) -> list[Node]:
        """Return its expressions on separate symbols."""
        graph = Graph()
        texts = [(str(self.energy), None)] if self.energy else [(text, name) for name, text in self.texts.items()]
        return [self._parsed(graph, text, own) for text, own in texts]

    @property
    def looks_at(self) -> frozenset[str]:
        """The subset of q, v and a in its expressions."""
        return frozenset(node.name[0] for node in reachable(self._nodes()) if node.op == "symbol")

    @property
    def jumps(self) -> bool:
        """Whether its expressions contain a sign of, or a comparison with, a velocity."""
        steps = [node for node in reachable(self._nodes()) if node.op in ("sign", "lt", "le", "eq")]
        return any(node.name.startswith("v[") for node in reachable(steps) if node.op == "symbol")


@dataclass(frozen=True, eq=False)
class Columns:
    """Columns without expressions: a user-defined regressor."""

    names: tuple[str, ...]  #: Names of the m parameters
    #: ``function(q, v, a)`` with (N, n) arrays of the robot's coordinates returns Y (N, n, m); without it no effort can be
    #: predicted from a motion
    function: Callable[[Array, Array, Array], Array] | None = None
    values: tuple[float, ...] = ()  #: (m,), prior values; zero when omitted
    units: tuple[str, ...] = ()  #: Unit of each parameter

    def __post_init__(self) -> None:
        names = tuple(self.names)
        for name in names:
            check_name(name, "column")
        for label, default in (("values", 0.0), ("units", "")):
            given = tuple(getattr(self, label)) or (default,) * len(names)
            if len(given) != len(names):
                raise DescriptionError(f"columns: {len(names)} names but {len(given)} {label}; give one per name")
            object.__setattr__(self, label, given)
        object.__setattr__(self, "names", names)
        if not names:
            raise DescriptionError("columns: no name is given; give one per column")

    def evaluate(self, q: Array, v: Array, a: Array) -> Array:
        """Return the columns (N, n, m) along a motion (N, n): effort per unit of each parameter."""
        if self.function is None:
            raise DescriptionError(
                f"columns {self.names[0]} ... {self.names[-1]} are numeric, so other motions cannot be predicted; give "
                "function(q, v, a) -> (N, n, m)"
            )
        Y = np.asarray(self.function(q, v, a), dtype=np.float64)
        if Y.shape != (*q.shape, len(self.names)):
            raise DescriptionError(
                f"the function of columns {self.names[0]} ... {self.names[-1]} returns shape {Y.shape} for {q.shape[0]} "
                f"samples; it must return {(*q.shape, len(self.names))}"
            )
        if not np.isfinite(Y).all():
            raise DescriptionError(
                f"the function of columns {self.names[0]} ... {self.names[-1]} returns values that are not finite"
            )
        return Y


class _Signals(Mapping[str, Node]):
    """The q, v or a of every joint, each created as a symbol on lookup."""

    def __init__(self, graph: Graph, letter: str) -> None:
        self.graph, self.letter = graph, letter

    def __getitem__(self, name: str) -> Node:
        return self.graph.symbol(f"{self.letter}[{json.dumps(str(name))}]")

    def __iter__(self) -> Iterator[str]:
        raise TypeError("its joints cannot be listed; look them up by name")

    def __len__(self) -> int:
        raise TypeError("its joints cannot be counted; look them up by name")


def _symbol(graph: Graph, name: str, index: str | None) -> Node:
    if name not in ("q", "v", "a") or index is None:
        raise KeyError(name)
    return graph.symbol(f"{name}[{json.dumps(index)}]")


@contextmanager
def _naming(name: str) -> Iterator[None]:
    """Prefix errors in the text of a force with its name."""
    try:
        yield
    except DescriptionError as error:
        raise DescriptionError(f"force '{name}': {error}; known are q, v, a of joints, as in q[joint1]") from error
    except DynidentError as error:
        raise DescriptionError(f"force '{name}': its expression divides by zero; correct it") from error


def check_name(name: str, what: str) -> None:
    """Refuse a name that could be mistaken for a body parameter or a joint term."""
    plain = isinstance(name, str) and bool(name) and (what == "column" or name.replace("_", "a").replace(".", "a").isalnum())
    if not plain:
        raise DescriptionError(f"{what} name {name!r} must be letters, digits and underscores; rename it")
    first = name.split("_", maxsplit=1)[0]
    if first in TERMS or first in SYMBOLS:
        raise DescriptionError(f"{what} name '{name}' begins like the parameter '{first}'; rename it, as in 'own_{name}'")
