"""Expressions as a graph in which nothing is stored twice.

A sympy tree repeats a sub-expression wherever it is used, and simplifying it afterwards is what never finishes on six axes.
Here every node is looked up before it is made (hash-consing): equal sub-expressions are the same object, so what is shared
is found on the way and costs nothing. Only local rules are applied, each in constant time:

    constants fold, 0 and 1 disappear, x + x = 2 x, x - x = 0, (x + y) - x = y, signs move outward,
    sums and products are ordered, sin(-x) = -sin x, cos(-x) = cos x.

There is no search, so nothing can hang; a limit on nodes and time says so when a robot is too big.
"""

from __future__ import annotations

from math import atan2
from time import monotonic

from dynident.errors import DynidentError
from dynident.symbolic.functions import FOLD

BINARY = ("add", "sub", "mul", "div", "atan2")

MAX_NODES = 500_000
MAX_SECONDS = 60.0


class Node:
    """One expression; make it with operators and the functions of its `Graph`.

    Parameters
    ----------
    graph : Graph
        Graph that owns it.
    index : int
        Position in the graph; arguments always have a smaller one.
    op : str
        ``const``, ``symbol``, one of `functions.UNARY` or one of `BINARY`.
    args : tuple of Node
        Arguments.
    value : float
        Number of a constant.
    name : str
        Name of a symbol.
    """

    __slots__ = ("args", "graph", "index", "name", "op", "value")

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

    def __pow__(self, power: int) -> Node:
        if power != int(power):
            raise TypeError(f"the power {power} is not a whole number")
        result = self.graph.one
        for _ in range(abs(int(power))):
            result = result * self
        return result if power >= 0 else self.graph.one / result

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

    def arctan2(self, x: Node | float) -> Node:
        """Return the angle of the point (x, y), where y is this expression."""
        return self.graph.atan2(self, self.graph.node(x))

    def __repr__(self) -> str:
        inner = self.name or (repr(self.value) if self.op == "const" else ", ".join(f"#{a.index}" for a in self.args))
        return f"#{self.index}:{self.op}({inner})"


class Graph:
    """The store of all nodes of one derivation.

    Parameters
    ----------
    max_nodes : int
        Number of nodes at which the derivation gives up with an error.
    max_seconds : float
        Time after which it gives up.
    """

    def __init__(self, max_nodes: int = MAX_NODES, max_seconds: float = MAX_SECONDS) -> None:
        self.max_nodes = max_nodes
        self.max_seconds = max_seconds
        self._start = monotonic()
        self._known: dict[object, Node] = {}
        self.zero = self.const(0.0)
        self.one = self.const(1.0)

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
        """Return a constant; -0.0 is 0.0.

        Parameters
        ----------
        value : float
            Its number.

        Returns
        -------
        Node
            The constant.
        """
        number = float(value) + 0.0
        return self._get(number, "const", (), number)

    def symbol(self, name: str) -> Node:
        """Return a symbol.

        Parameters
        ----------
        name : str
            Its name, unique in the graph.

        Returns
        -------
        Node
            The symbol.
        """
        return self._get(name, "symbol", (), name=name)

    def node(self, value: Node | float) -> Node:
        """Return a node for what may be a plain number.

        Parameters
        ----------
        value : Node or float
            Expression or number.

        Returns
        -------
        Node
            The expression.
        """
        return value if isinstance(value, Node) else self.const(value)

    def neg(self, x: Node) -> Node:
        """Return -x.

        Parameters
        ----------
        x : Node
            Expression.

        Returns
        -------
        Node
            Its negative; signs never pile up.
        """
        if x.op == "const":
            return self.const(-x.value)
        return x.args[0] if x.op == "neg" else self._get(("neg", x.index), "neg", (x,))

    def add(self, x: Node, y: Node) -> Node:
        """Return x + y.

        Parameters
        ----------
        x, y : Node
            Terms.

        Returns
        -------
        Node
            Their sum.
        """
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
        if x.index > y.index:  # one orientation, so that x - y and y - x share their node
            return self.neg(self._get(("sub", y.index, x.index), "sub", (y, x)))
        return self._get(("sub", x.index, y.index), "sub", (x, y))

    def mul(self, x: Node, y: Node) -> Node:
        """Return x y.

        Parameters
        ----------
        x, y : Node
            Factors.

        Returns
        -------
        Node
            Their product, sign in front and constant first.
        """
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
            # A constant factor comes out, where it may meet another one.
            for whole, other in ((x, y), (y, x)):
                if whole.op == "mul" and whole.args[0].op == "const":
                    return self.mul(whole.args[0], self.mul(whole.args[1], other))
            if x.index > y.index:
                x, y = y, x
        return self._get(("mul", x.index, y.index), "mul", (x, y))

    def div(self, x: Node, y: Node) -> Node:
        """Return x / y.

        Parameters
        ----------
        x, y : Node
            Numerator and denominator.

        Returns
        -------
        Node
            Their quotient.
        """
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

    def atan2(self, y: Node, x: Node) -> Node:
        """Return the angle of the point (x, y).

        Parameters
        ----------
        y, x : Node
            Coordinates, in the order of the function in C.

        Returns
        -------
        Node
            Angle in (-pi, pi].
        """
        if y.op == "const" and x.op == "const":
            return self.const(atan2(y.value, x.value))
        if y.op == "neg":
            return self.neg(self.atan2(y.args[0], x))
        return self._get(("atan2", y.index, x.index), "atan2", (y, x))

    def call(self, function: str, x: Node) -> Node:
        """Return function(x).

        Parameters
        ----------
        function : str
            One of `functions.UNARY`.
        x : Node
            Argument.

        Returns
        -------
        Node
            The value.
        """
        if function == "neg":
            return self.neg(x)
        if x.op == "const":
            return self.const(FOLD[function](x.value))
        if x.op == "neg" and function in ("sin", "sign"):
            return self.neg(self.call(function, x.args[0]))
        if x.op == "neg" and function == "cos":
            x = x.args[0]
        return self._get((function, x.index), function, (x,))
