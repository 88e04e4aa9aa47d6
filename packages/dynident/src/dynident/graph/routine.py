"""`Routine`: statements around expressions, for time loops and iterations.

    with routine.repeat(count) as k: ...            k = 0, 1, ..., count - 1
    with routine.until(most): ...; routine.leave(c)  at most `most` times, left when c holds
    with routine.when(c): ...                        and routine.otherwise()

Memory is named arrays of doubles. A loaded value is a symbol of the graph, so that everything between
loads and stores is a pure expression; later stores do not change it. A value belongs to the block in which it was
loaded.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from dynident.errors import DynidentError
from dynident.graph.expression import Function, Graph, Node

Index = int | Node
Place = tuple[str, Index]  # an array and an index

MOST_LOADED = 100_000  # largest number of values loaded at once


@dataclass(eq=False)
class Load:
    """node = array[index]."""

    node: Node
    array: str
    index: Index


@dataclass(eq=False)
class Save:
    """array[index] = value."""

    array: str
    index: Index
    value: Node


@dataclass(eq=False)
class Repeat:
    """The body for k = 0 ... count - 1; also a bounded iteration that `Leave` may end."""

    count: Index
    counter: Node
    body: list[Statement] = field(default_factory=list)


@dataclass(eq=False)
class Leave:
    """End the innermost loop when the condition holds."""

    condition: Node


@dataclass(eq=False)
class When:
    """The body where the condition holds, the other one where it does not."""

    condition: Node
    body: list[Statement] = field(default_factory=list)
    other: list[Statement] = field(default_factory=list)


@dataclass(eq=False)
class Call:
    """Another function or routine, its arrays bound to places in ours."""

    what: Function | Routine
    places: Mapping[str, Place]


Statement = Load | Save | Repeat | Leave | When | Call


class Routine:
    """A compiled procedure on the arrays of doubles that its caller passes; its expressions live in a graph."""

    def __init__(self, graph: Graph, name: str, arrays: Sequence[str]) -> None:
        if isinstance(arrays, str) or not isinstance(arrays, Sequence):
            raise DynidentError(f"arrays of the routine '{name}' are {arrays!r}; give their names")
        self.graph, self.name, self.arrays = graph, name, tuple(arrays)
        self.locals: dict[str, int] = {}
        self.body: list[Statement] = []
        self._open: list[list[Statement]] = [self.body]
        self._count = 0

    def local(self, name: str, size: int) -> str:
        """Return a new local array of this routine."""
        self.locals[name] = max(size, 1)
        return name

    def _symbol(self, kind: str) -> Node:
        self._count += 1
        return self.graph.symbol(f"{self.name}.{kind}{self._count}")

    def load(self, array: str, index: Index = 0) -> Node:
        """Return the current number at a place."""
        node = self._symbol(array)
        self._open[-1].append(Load(node, array, index))
        return node

    def load_all(self, array: str, first: Index, count: int) -> list[Node]:
        """Return neighbouring numbers."""
        if not 0 <= count <= MOST_LOADED:
            raise DynidentError(f"count is {count}; give 0 to {MOST_LOADED}")
        return [self.load(array, first + k) for k in range(count)]

    def store(self, array: str, index: Index, value: Node | float) -> None:
        """Write a number to a place."""
        self._open[-1].append(Save(array, index, self.graph.node(value)))

    def store_all(self, array: str, first: Index, values: Sequence[Node | float]) -> None:
        """Write neighbouring numbers; all are computed before the first is written."""
        for k, value in enumerate(values):
            self.store(array, first + k, value)

    @contextmanager
    def _block(self, body: list[Statement]) -> Iterator[None]:
        self._open.append(body)
        yield
        self._open.pop()

    @contextmanager
    def repeat(self, count: Index) -> Iterator[Node]:
        """Run the block `count` times; the counter is an expression."""
        loop = Repeat(count, self._symbol("k"))
        self._open[-1].append(loop)
        with self._block(loop.body):
            yield loop.counter

    @contextmanager
    def until(self, most: int) -> Iterator[Node]:
        """Repeat the block up to a number of times; `leave` ends it."""
        with self.repeat(most) as k:
            yield k

    def leave(self, condition: Node) -> None:
        """End the innermost loop here when the condition holds."""
        self._open[-1].append(Leave(condition))

    @contextmanager
    def when(self, condition: Node) -> Iterator[None]:
        """Run the block only if the condition holds."""
        choice = When(condition)
        self._open[-1].append(choice)
        with self._block(choice.body):
            yield

    @contextmanager
    def otherwise(self) -> Iterator[None]:
        """Run the block if the condition of the preceding `when` does not hold."""
        choice = self._open[-1][-1]
        if not isinstance(choice, When):
            raise DynidentError("otherwise() must follow when() directly")
        with self._block(choice.other):
            yield

    def call(self, what: Function | Routine, **places: str | Place) -> None:
        """Call a function (for one sample; its outputs must not overlap its inputs) or a routine.

        `places` maps each of its arrays to one of ours, or to one of ours and a start index.
        """
        missing = set(what.arrays) ^ set(places)
        if missing:
            raise DynidentError(f"call of '{what.name}': arrays {', '.join(sorted(missing))} do not match")
        bound = {name: (place, 0) if isinstance(place, str) else place for name, place in places.items()}
        self._open[-1].append(Call(what, bound))


def statements_of(body: Sequence[Statement]) -> Iterator[Statement]:
    """Yield all statements; statements inside loops and choices follow their container."""
    for statement in body:
        yield statement
        if isinstance(statement, Repeat | When):
            yield from statements_of(statement.body)
        if isinstance(statement, When):
            yield from statements_of(statement.other)


def called(routines: Sequence[Routine]) -> list[Function | Routine]:
    """Return the routines and everything they call, callees first, each once."""
    found: list[Function | Routine] = []

    def add(what: Function | Routine) -> None:
        if what not in found:
            for statement in statements_of(what.body) if isinstance(what, Routine) else ():
                if isinstance(statement, Call):
                    add(statement.what)
            found.append(what)

    for routine in routines:
        add(routine)
    return found
