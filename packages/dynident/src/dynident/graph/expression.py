"""Expressions as a graph without duplicates (hash-consing), their derivatives, and functions made of them.

Every node is looked up before it is created: equal sub-expressions are the same object, so common sub-expressions are found
without a search. Only local rules are applied, each in constant time:

    constants fold, 0 and 1 disappear, x + x = 2 x, x - x = 0, (x + y) - x = y, signs move outward,
    sums and products are ordered, sin(-x) = -sin x, cos(-x) = cos x, a choice between equal nodes is this node.

There is no search that could hang; limits on nodes and time raise an error for too large expressions. Derivatives are
expressions of the same graph:

    forward    dy/dx . d     one sweep per direction d, all outputs y
    reverse    w . dy/dx     one sweep per weighted sum of outputs, all inputs x
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from time import monotonic
from typing import Any

import numpy as np

from dynident.checks import number
from dynident.errors import DynidentError
from dynident.graph.operations import OPERATIONS

MAX_NODES = 5_000_000
MAX_SECONDS = 600.0

_ODD = ("sin", "sign", "tanh")  # f(-x) = -f(x)
_EVEN = ("cos", "abs")
LOGICAL = ("lt", "le", "eq")


class Node:
    """One expression; make it with operators and the functions of its `Graph`."""

    __slots__ = ("args", "graph", "index", "name", "op", "value")

    graph: Graph
    index: int  # position in the graph; arguments always have a smaller one
    op: str  # "const", "symbol" or one of OPERATIONS
    args: tuple[Node, ...]
    value: float  # of a constant
    name: str  # of a symbol

    def __init__(self, graph: Graph, index: int, op: str, args: tuple[Node, ...], value: float = 0.0, name: str = "") -> None:
        self.graph = graph
        self.index = index
        self.op = op
        self.args = args
        self.value = value
        self.name = name

    def is_const(self, value: float) -> bool:
        """Return whether this is exactly the given constant."""
        return self.op == "const" and self.value == value

    def rebuilt(self, args: Sequence[Node]) -> Node:
        """Return this operation on other arguments."""
        return self.graph.make(self.op, *args) if args else self

    def __add__(self, other: Node | float) -> Node:
        return self.graph.add(self, self.graph.node(other))

    def __radd__(self, other: float) -> Node:
        return self.graph.add(self.graph.node(other), self)

    def __sub__(self, other: Node | float) -> Node:
        return self.graph.add(self, self.graph.neg(self.graph.node(other)))

    def __rsub__(self, other: float) -> Node:
        return self.graph.add(self.graph.node(other), self.graph.neg(self))

    def __mul__(self, other: Node | float) -> Node:
        return self.graph.mul(self, self.graph.node(other))

    def __rmul__(self, other: float) -> Node:
        return self.graph.mul(self.graph.node(other), self)

    def __truediv__(self, other: Node | float) -> Node:
        return self.graph.div(self, self.graph.node(other))

    def __rtruediv__(self, other: float) -> Node:
        return self.graph.div(self.graph.node(other), self)

    def __neg__(self) -> Node:
        return self.graph.neg(self)

    def __abs__(self) -> Node:
        return self.graph.call("abs", self)

    def __pow__(self, power: Node | float) -> Node:
        return self.graph.power(self, power)

    def __lt__(self, other: Node | float) -> Node:
        return self.graph.compare("lt", self, self.graph.node(other))

    def __le__(self, other: Node | float) -> Node:
        return self.graph.compare("le", self, self.graph.node(other))

    def __gt__(self, other: Node | float) -> Node:
        return self.graph.compare("lt", self.graph.node(other), self)

    def __ge__(self, other: Node | float) -> Node:
        return self.graph.compare("le", self.graph.node(other), self)

    def __bool__(self) -> bool:
        raise TypeError("an expression has no truth value; use dynident.graph.where(condition, x, y)")

    # NumPy calls these for arrays of expressions: np.sin(x) becomes x.sin().

    def sin(self) -> Node:
        """Return sin(x)."""
        return self.graph.call("sin", self)

    def cos(self) -> Node:
        """Return cos(x)."""
        return self.graph.call("cos", self)

    def tan(self) -> Node:
        """Return tan(x) = sin(x)/cos(x)."""
        return self.sin() / self.cos()

    def sqrt(self) -> Node:
        """Return the square root of x."""
        return self.graph.call("sqrt", self)

    def exp(self) -> Node:
        """Return e to the power of x."""
        return self.graph.call("exp", self)

    def log(self) -> Node:
        """Return the natural logarithm of x."""
        return self.graph.call("log", self)

    def tanh(self) -> Node:
        """Return the hyperbolic tangent of x."""
        return self.graph.call("tanh", self)

    def floor(self) -> Node:
        """Return the largest whole number not above x."""
        return self.graph.call("floor", self)

    def arctan2(self, x: Node | float) -> Node:
        """Return the angle of the point (x, y), where y is this expression."""
        return self.graph.atan2(self, self.graph.node(x))

    def __repr__(self) -> str:
        inner = self.name or (repr(self.value) if self.op == "const" else ", ".join(f"#{a.index}" for a in self.args))
        return f"#{self.index}:{self.op}({inner})"


class Graph:
    """All nodes of one derivation; equal expressions are one node.

    Parameters
    ----------
    max_nodes : int
        Number of nodes at which the derivation stops with an error.
    max_seconds : float
        Time after which the derivation stops with an error.
    """

    zero: Node
    one: Node

    def __init__(self, max_nodes: int = MAX_NODES, max_seconds: float = MAX_SECONDS) -> None:
        self.max_nodes = number("max_nodes", max_nodes, least=1.0)
        self.max_seconds = number("max_seconds", max_seconds, above=0.0, infinite=True)
        self._start = monotonic()
        self._known: dict[object, Node] = {}
        self.zero: Node = self.const(0.0)
        self.one: Node = self.const(1.0)

    def __len__(self) -> int:
        return len(self._known)

    def _get(self, key: object, op: str, args: tuple[Node, ...], value: float = 0.0, name: str = "") -> Node:
        found = self._known.get(key)
        if found is None:
            count = len(self._known)
            if count >= self.max_nodes or (count % 1024 == 0 and monotonic() - self._start > self.max_seconds):
                raise DynidentError(
                    f"the derivation stopped at {count} sub-expressions after {monotonic() - self._start:.1f} s "
                    f"(limits {self.max_nodes} and {self.max_seconds:g} s); ask for fewer quantities or raise "
                    "max_nodes and max_seconds"
                )
            found = self._known[key] = Node(self, count, op, args, value, name)
        return found

    def const(self, value: float) -> Node:
        """Return a constant; -0.0 is 0.0."""
        number = float(value) + 0.0
        return self._get(number if number == number else "nan", "const", (), number)  # noqa: PLR0124 - nan is not its own key

    def symbol(self, name: str) -> Node:
        """Return the symbol of this name."""
        return self._get(("symbol", name), "symbol", (), name=name)

    def symbols(self, name: str, count: int) -> list[Node]:
        """Return the symbols name[0] ... name[count - 1]."""
        if count > self.max_nodes:
            raise DynidentError(f"count is {count}; a graph has {self.max_nodes:g} nodes at most")
        return [self.symbol(f"{name}[{i}]") for i in range(count)]

    def node(self, value: Node | float) -> Node:
        """Return a node for a node or plain number."""
        return value if isinstance(value, Node) else self.const(value)

    def neg(self, x: Node) -> Node:
        """Return -x, without double signs."""
        if x.op == "const":
            return self.const(-x.value)
        return x.args[0] if x.op == "neg" else self._get(("neg", x.index), "neg", (x,))

    def add(self, x: Node, y: Node) -> Node:
        """Return x + y."""
        if x.op == "const" and y.op == "const":
            return self.const(x.value + y.value)
        if x.is_const(0.0):
            return y
        if y.is_const(0.0):
            return x
        if y.op == "neg":
            return self._sub(x, y.args[0]) if x.op != "neg" else self.neg(self.add(x.args[0], y.args[0]))
        if x.op == "neg":
            return self._sub(y, x.args[0])
        if x is y:
            return self.mul(self.const(2.0), x)
        for whole, part in ((x, y), (y, x)):
            if whole.op == "sub" and whole.args[1] is part:
                return whole.args[0]
            if part.op == "const" and whole.op == "add" and whole.args[0].op == "const":
                return self.add(whole.args[1], self.const(whole.args[0].value + part.value))
        if (y.op == "const", -y.index) > (x.op == "const", -x.index):  # constants first, then older ones
            x, y = y, x
        return self._get(("add", x.index, y.index), "add", (x, y))

    def _sub(self, x: Node, y: Node) -> Node:
        """Return x - y of terms without a sign in front."""
        if x is y:
            return self.zero
        if y.op == "const":
            return self.add(x, self.const(-y.value))
        if x.op == "add" and y in x.args:
            return x.args[1] if x.args[0] is y else x.args[0]
        if y.op == "add" and x in y.args:
            return self.neg(y.args[1] if y.args[0] is x else y.args[0])
        if x.op == "sub" and x.args[0] is y:
            return self.neg(x.args[1])
        if y.op == "sub" and y.args[0] is x:
            return y.args[1]
        if x.index > y.index:  # canonical order, so that x - y and y - x share their node
            return self.neg(self._get(("sub", y.index, x.index), "sub", (y, x)))
        return self._get(("sub", x.index, y.index), "sub", (x, y))

    def mul(self, x: Node, y: Node) -> Node:
        """Return x y, sign in front and constant first."""
        if y.op == "const":
            x, y = y, x
        if x.op == "const":
            if y.op == "const":
                return self.const(x.value * y.value)
            if x.value == 0.0:
                return self.zero
            if x.value < 0.0:
                return self.neg(self.mul(self.const(-x.value), y))
            if x.value == 1.0:
                return y
            if y.op == "mul" and y.args[0].op == "const":
                return self.mul(self.const(x.value * y.args[0].value), y.args[1])
        if x.op == "neg":
            return self.neg(self.mul(x.args[0], y))
        if y.op == "neg":
            return self.neg(self.mul(x, y.args[0]))
        if x.op != "const" and y.op != "const":
            # A constant factor moves out, where it may combine with another one.
            for whole, other in ((x, y), (y, x)):
                if whole.op == "mul" and whole.args[0].op == "const":
                    return self.mul(whole.args[0], self.mul(whole.args[1], other))
            if x.index > y.index:
                x, y = y, x
        return self._get(("mul", x.index, y.index), "mul", (x, y))

    def div(self, x: Node, y: Node) -> Node:
        """Return x / y."""
        if y.op == "const":
            if y.value == 0.0:
                raise DynidentError("an expression is divided by zero; check the geometry for lengths that are zero")
            return self.mul(self.const(1.0 / y.value), x)
        if x.is_const(0.0):
            return self.zero
        if y.op == "neg":
            return self.neg(self.div(x, y.args[0]))
        if x.op == "neg":
            return self.neg(self.div(x.args[0], y))
        return self.one if x is y else self._get(("div", x.index, y.index), "div", (x, y))

    def power(self, x: Node, power: Node | float) -> Node:
        """Return x to a power: products for whole numbers up to 16, the general function otherwise."""
        p = self.node(power)
        if p.op == "const" and abs(p.value) <= 16 and p.value == int(p.value):
            result = self.one
            for _ in range(abs(int(p.value))):
                result = result * x
            return result if p.value >= 0 else self.one / result
        if p.is_const(0.5):
            return self.call("sqrt", x)
        if x.op == "const" and p.op == "const":
            return self.const(OPERATIONS["pow"].fold(x.value, p.value))
        return self._get(("pow", x.index, p.index), "pow", (x, p))

    def atan2(self, y: Node, x: Node) -> Node:
        """Return the angle of the point (x, y) in (-pi, pi], arguments in the order of the function in C."""
        if y.op == "const" and x.op == "const":
            return self.const(OPERATIONS["atan2"].fold(y.value, x.value))
        if y.op == "neg":
            return self.neg(self.atan2(y.args[0], x))
        return self._get(("atan2", y.index, x.index), "atan2", (y, x))

    def call(self, function: str, x: Node) -> Node:
        """Return function(x), one of the `OPERATIONS` of one argument."""
        if function == "neg":
            return self.neg(x)
        if x.op == "const":
            return self.const(OPERATIONS[function].fold(x.value))
        if x.op == "neg" and function in _ODD:
            return self.neg(self.call(function, x.args[0]))
        if x.op == "neg" and function in _EVEN:
            x = x.args[0]
        if function == "abs" and x.op == "abs":
            return x
        return self._get((function, x.index), function, (x,))

    def extreme(self, op: str, x: Node, y: Node) -> Node:
        """Return the smaller (``min``) or larger (``max``) of x and y."""
        if x.op == "const" and y.op == "const":
            return self.const(OPERATIONS[op].fold(x.value, y.value))
        if x is y:
            return x
        if x.index > y.index:
            x, y = y, x
        return self._get((op, x.index, y.index), op, (x, y))

    def compare(self, op: str, x: Node, y: Node) -> Node:
        """Return 1 where x < y (``lt``), x <= y (``le``) or x = y (``eq``), else 0."""
        if x.op == "const" and y.op == "const":
            return self.const(OPERATIONS[op].fold(x.value, y.value))
        if x is y:
            return self.zero if op == "lt" else self.one
        return self._get((op, x.index, y.index), op, (x, y))

    def select(self, condition: Node, x: Node, y: Node) -> Node:
        """Return x where the condition is not zero, else y."""
        if condition.op == "const":
            return x if condition.value != 0.0 else y
        if x is y:
            return x
        if condition.op in LOGICAL and x.is_const(1.0) and y.is_const(0.0):
            return condition
        return self._get(("select", condition.index, x.index, y.index), "select", (condition, x, y))

    def cosc(self, square: Node) -> Node:
        """Return (1 - cos x)/x^2 of a given x^2, as 2 (sin(x/2)/x)^2, without cancellation."""
        half = self.call("sinc", 0.25 * square)
        return 0.5 * (half * half)

    def make(self, op: str, *args: Node) -> Node:
        """Return one of the `OPERATIONS`, by its name."""
        if op not in OPERATIONS:
            raise DynidentError(f"op is '{op}'; give one of {', '.join(OPERATIONS)}")
        if op in LOGICAL:
            return self.compare(op, *args)
        if op in ("min", "max"):
            return self.extreme(op, *args)
        return _MAKERS[op](self, *args) if op in _MAKERS else self.call(op, *args)


_MAKERS: dict[str, Callable[..., Node]] = {
    "add": Graph.add,
    "sub": lambda graph, x, y: graph.add(x, graph.neg(y)),
    "mul": Graph.mul,
    "div": Graph.div,
    "pow": Graph.power,
    "atan2": Graph.atan2,
    "select": Graph.select,
}


def total(terms: Iterable[Node]) -> Node:
    """Return the sum of at least one term."""
    first, *others = terms
    for term in others:
        first = first + term
    return first


def reachable(outputs: Iterable[Node], done: set[int] | None = None) -> list[Node]:
    """Return every node that the outputs need, arguments before their users, each shortly before it is used.

    Nodes in `done` are omitted, and all returned nodes are added to it.
    """
    if not isinstance(done, set | None):
        raise DynidentError(f"done is a {type(done).__name__}; give a set of the numbers of nodes, or None")
    seen: set[int] = set() if done is None else done
    order: list[Node] = []
    for output in outputs:
        stack: list[tuple[Node, bool]] = [(output, False)]
        while stack:
            node, ready = stack.pop()
            if ready:
                order.append(node)
            elif node.index not in seen:
                seen.add(node.index)
                stack.append((node, True))
                stack += [(arg, False) for arg in node.args[::-1] if arg.index not in seen]
    return order


def substitute(outputs: Sequence[Node], replacements: Mapping[Node, Node]) -> list[Node]:
    """Return expressions in which symbols (or whole sub-expressions) are replaced by others of the same graph."""
    done: dict[int, Node] = {}
    for node in reachable(outputs):
        given = replacements.get(node)
        done[node.index] = node.rebuilt([done[arg.index] for arg in node.args]) if given is None else given
    return [done[node.index] for node in outputs]


def evaluate_nodes(outputs: Iterable[Node], values: dict[str, Any]) -> list[Any]:
    """Return the numbers of expressions by NumPy, one operation after the other; `values` by symbol name."""
    wanted = list(outputs)
    found: dict[Node, Any] = {}
    with np.errstate(all="ignore"):
        for node in reachable(wanted):
            if node.op == "const":
                found[node] = node.value
            elif node.op == "symbol":
                found[node] = values[node.name]
            else:
                found[node] = OPERATIONS[node.op].numpy(*map(found.__getitem__, node.args))
    return [found[node] for node in wanted]


@dataclass(frozen=True, eq=False)
class Function:
    """A function of arrays: outputs as expressions of inputs, for one sample or a whole batch of them.

        out[s, k] = expression_k(inputs[s, :], shared[:])        for every sample s

    The symbol ``q[3]`` is column 3 of the input array ``q``.
    """

    name: str  #: An identifier
    inputs: Mapping[str, int]  #: Arrays with one row per sample, and their numbers of columns
    outputs: Mapping[str, Sequence[Node | None]]  #: The expression of every written column; None leaves it unchanged
    shared: Mapping[str, int] = field(default_factory=dict)  #: Arrays that are the same for all samples, such as parameters
    rows: frozenset[str] = frozenset()  #: Inputs and outputs stored with samples last: entry k is a row over time

    @property
    def arrays(self) -> tuple[str, ...]:
        """All arrays in the order of the machine code's arguments."""
        return (*self.inputs, *self.shared, *self.outputs)

    @property
    def entries(self) -> list[Node]:
        """All written expressions."""
        return [node for nodes in self.outputs.values() for node in nodes if node is not None]


def forward(outputs: Sequence[Node], directions: Mapping[Node, Node]) -> list[Node]:
    """Return sum_x dy/dx d(x) of every y in `outputs`; `directions` maps x, symbols or independent sub-expressions, to d(x)."""
    rate: dict[int, Node] = {}
    for node in reachable(outputs):
        graph = node.graph
        given = directions.get(node)
        if given is not None:
            rate[node.index] = given
            continue
        moving = [(i, rate[arg.index]) for i, arg in enumerate(node.args) if not rate[arg.index].is_const(0.0)]
        if not moving:
            rate[node.index] = graph.zero
            continue
        partials = OPERATIONS[node.op].partials(node)
        rate[node.index] = total([partials[i] * r for i, r in moving])
    return [rate[node.index] for node in outputs]


def reverse(outputs: Sequence[Node], weights: Sequence[Node | float], inputs: Sequence[Node]) -> list[Node]:
    """Return sum_y w dy/dx for every x in `inputs`, symbols or independent sub-expressions; y in `outputs` with `weights` w."""
    wanted = {node.index for node in inputs}
    order = reachable([*outputs, *inputs])
    depends: dict[int, bool] = {}
    for node in order:
        depends[node.index] = node.index in wanted or any(depends[arg.index] for arg in node.args)
    parts: dict[int, list[Node]] = {}
    for node, weight in zip(outputs, weights, strict=True):
        parts.setdefault(node.index, []).append(node.graph.node(weight))
    adjoint: dict[int, Node] = {}
    for node in reversed(order):
        terms = parts.pop(node.index, None)
        if terms is None or not depends[node.index]:
            continue
        own = adjoint[node.index] = total(terms)
        if node.index in wanted or own.is_const(0.0):
            continue
        for arg, partial in zip(node.args, OPERATIONS[node.op].partials(node), strict=True):
            if depends[arg.index] and not partial.is_const(0.0):
                parts.setdefault(arg.index, []).append(own * partial)
    return [adjoint.get(node.index, node.graph.zero) for node in inputs]


def derivative(output: Node, symbol: Node) -> Node:
    """Return the derivative of `output` by `symbol`."""
    return forward([output], {symbol: symbol.graph.one})[0]


def derivative_matrix(outputs: Sequence[Node], inputs: Sequence[Node]) -> list[list[Node]]:
    """Return dy/dx, one row per output: forward sweeps or reverse ones, whichever are fewer."""
    if len(inputs) <= len(outputs):
        columns = [forward(outputs, {x: x.graph.one}) for x in inputs]
        return [[column[i] for column in columns] for i in range(len(outputs))]
    return [reverse([y], [1.0], inputs) for y in outputs]
