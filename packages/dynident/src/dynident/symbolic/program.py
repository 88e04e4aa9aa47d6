"""`Program`: named closed forms that share one graph, with their inputs, operation counts and values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from dynident.arrays import Array
from dynident.errors import DynidentError
from dynident.graph.compiled import Compiled
from dynident.graph.expression import Function, Graph, Node, evaluate_nodes, reachable

if TYPE_CHECKING:
    from dynident.symbolic.regroup import Regrouping


SHARED = ("phi", "beta", "geometry")  # arrays that are the same for all samples
COUNTED = ("+", "*", "/", "sin", "cos", "other")
_CLASS = {"add": "+", "sub": "+", "neg": "+", "mul": "*", "div": "/", "sin": "sin", "cos": "cos"}


@dataclass(frozen=True)
class Operations:
    """How many operations one evaluation costs."""

    counts: Mapping[str, int]

    @property
    def total(self) -> int:
        """All operations together."""
        return sum(self.counts.values())

    def __getitem__(self, kind: str) -> int:
        return self.counts.get(kind, 0)


@dataclass(frozen=True)
class Quantity:
    """One closed form: an array of expressions."""

    name: str  #: Name, as in ``inverse_dynamics``
    result: str  #: Name of the result, as in ``tau``
    shape: tuple[int, ...]  #: Its shape
    entries: tuple[Node, ...]  #: Its entries, row by row
    meaning: str  #: What it is, in one line


@dataclass(frozen=True, eq=False)
class Program:
    """Closed forms of a robot."""

    name: str  #: Name of the robot
    graph: Graph = field(repr=False)  #: Where the expressions live; symbol ``q[3]`` is element 3 of array ``q``
    #: Arrays that enter: ``q``, ``v``, ``a``, ``tau`` (independent coordinates), ``phi`` (standard parameters), ``beta``
    #: (base parameters), ``geometry`` (lengths), each with the name of every element
    inputs: Mapping[str, tuple[str, ...]] = field(repr=False)
    #: The robot's own numbers for ``phi`` and ``geometry``
    values: Mapping[str, Array] = field(repr=False)
    quantities: Mapping[str, Quantity] = field(repr=False)  #: The closed forms
    regrouping: Regrouping | None = field(default=None, repr=False)  #: Base parameters, when ``base_regressor`` was asked for

    def __getitem__(self, quantity: str) -> Quantity:
        try:
            return self.quantities[quantity]
        except KeyError:
            raise DynidentError(
                f"the program of '{self.name}' has no quantity '{quantity}'; it has {', '.join(self.quantities)}"
            ) from None

    def needed(self, quantity: str) -> tuple[str, ...]:
        """Return the input arrays that a quantity depends on."""
        used = {place(node.name)[0] for node in reachable(self[quantity].entries) if node.op == "symbol"}
        return tuple(name for name in self.inputs if name in used)

    # ---- counting ---------------------------------------------------------------------------------------------------

    def operations(self, *quantities: str) -> Operations:
        """Return the operations of one evaluation as generated: every shared sub-expression once."""
        names = quantities or tuple(self.quantities)
        nodes = reachable([entry for name in names for entry in self[name].entries])
        counts = dict.fromkeys(COUNTED, 0)
        for node in nodes:
            if node.op not in ("const", "symbol"):
                counts[_CLASS.get(node.op, "other")] += 1
        return Operations(MappingProxyType(counts))

    # ---- values -----------------------------------------------------------------------------------------------------

    def evaluate(self, quantity: str, **inputs: ArrayLike) -> Array:
        """Return the numbers of a closed form, by NumPy, one operation after the other."""
        form, given = self[quantity], self._given(quantity, inputs)
        samples = max((array.shape[0] for array in given.values()), default=1)
        result = np.empty((samples, len(form.entries)))
        columns = {f"{name}[{i}]": array[:, i] for name, array in given.items() for i in range(array.shape[1])}
        for j, column in enumerate(evaluate_nodes(form.entries, columns)):
            result[:, j] = column
        return result.reshape(samples, *form.shape)

    def compiled(self, quantity: str) -> Callable[..., Array]:
        """Return a closed form as machine code; it takes the arrays of `evaluate` by keyword, parameters and lengths once."""
        form, function = self[quantity], self.function(quantity)
        code = Compiled(function)

        def run(**inputs: ArrayLike) -> Array:
            given = self._given(quantity, inputs)
            counts = {name: array.shape[0] for name, array in given.items()}
            samples = max((counts[name] for name in function.inputs), default=1)
            for name, count in counts.items():
                if count != (samples if name in function.inputs else 1):
                    raise DynidentError(
                        f"'{name}' has {count} rows; compiled {quantity} of {samples} samples needs as many, shared arrays one"
                    )
            result = np.empty((samples, *form.shape))
            code(samples, {name: np.ascontiguousarray(array) for name, array in given.items()} | {form.result: result})
            return result

        return run

    def _given(self, quantity: str, inputs: Mapping[str, ArrayLike]) -> dict[str, Array]:
        """Return the arrays that a quantity needs, (N, k) each, the robot's own where none is given."""
        given: dict[str, Array] = {}
        for name in self.needed(quantity):
            value = inputs.get(name, self.values.get(name))
            if value is None:
                raise DynidentError(f"{quantity} needs '{name}' ({len(self.inputs[name])} numbers); give it by keyword")
            array = np.atleast_2d(np.asarray(value, dtype=np.float64))
            if array.ndim != 2 or array.shape[1] != len(self.inputs[name]):
                raise DynidentError(
                    f"'{name}' has shape {np.shape(value)}; {quantity} of '{self.name}' needs {len(self.inputs[name])} columns"
                )
            given[name] = array
        return given

    def function(self, quantity: str, prefix: str = "") -> Function:
        """Return a closed form as a function of arrays, as printers and the compiler take it."""
        form = self[quantity]
        sizes = {name: len(self.inputs[name]) for name in self.needed(quantity)}
        inputs = {name: size for name, size in sizes.items() if name not in SHARED}
        shared = {name: size for name, size in sizes.items() if name in SHARED}
        return Function(f"{prefix}{quantity}", inputs, {form.result: form.entries}, shared)

    def label(self, array: str, element: int) -> str:
        """Return the readable name of one input, as in ``q_elbow``."""
        own = self.inputs[array][element]
        return f"{array}_{own}" if array in ("q", "v", "a", "tau") else own


def place(symbol: str) -> tuple[str, int]:
    """Return array and element of a symbol such as ``q[3]``."""
    array, number = symbol[:-1].split("[")
    return array, int(number)
