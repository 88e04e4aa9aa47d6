"""Names for the places of an array: what the compiled simulation reads and writes has a name, and Python finds it by that."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from dynident.graph import Graph, Node
from dynident.graph.routine import Index

Array = NDArray[np.float64]


class Fields:
    """The fields of one array, one after the other.

    Parameters
    ----------
    array : str
        Name of the array in compiled code.
    **counts : int
        Numbers in every field.
    """

    def __init__(self, array: str, **counts: int) -> None:
        self.array, self.size = array, 0
        self._places: dict[str, tuple[int, int]] = {}
        for name, count in counts.items():
            self.add(name, count)

    def add(self, name: str, count: int = 1) -> None:
        """Append a field."""
        if name in self._places:
            raise ValueError(f"field '{name}' is there already")
        self._places[name] = (self.size, count)
        self.size += count

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def count(self, name: str) -> int:
        """Return how many numbers a field has."""
        return self._places[name][1]

    def at(self, name: str, index: Index = 0) -> Index:
        """Return where a number of a field is."""
        return self._places[name][0] + index

    def place(self, name: str, index: Index = 0) -> tuple[str, Index]:
        """Return array and index, as `Routine.call` takes them."""
        return self.array, self.at(name, index)

    def symbol(self, graph: Graph, name: str, index: int = 0) -> Node:
        """Return a number as the input of a `Function`."""
        return graph.symbol(f"{self.array}[{self._places[name][0] + index}]")

    def symbols(self, graph: Graph, name: str) -> list[Node]:
        """Return a whole field as inputs of a `Function`."""
        return [self.symbol(graph, name, i) for i in range(self.count(name))]

    def view(self, values: Array, name: str) -> Array:
        """Return the part of an array of numbers that is a field."""
        first, count = self._places[name]
        return values[first : first + count]
