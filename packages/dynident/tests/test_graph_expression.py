"""The graph: equal expressions are one node, local rules hold numerically, and derivations stop at their limits."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dynident.errors import DynidentError
from dynident.graph import Graph, absolute, equal, where
from dynident.graph.expression import Node, reachable
from dynident.graph.operations import OPERATIONS
from dynident.graph.printing import comment, identifier, identifiers


@pytest.fixture
def graph() -> Graph:
    return Graph()


def value(node: Node, numbers: dict[str, float]) -> float:
    """Evaluate by plain recursion, without the code under test's own evaluation order."""
    if node.op == "const":
        return node.value
    if node.op == "symbol":
        return numbers[node.name]
    return float(OPERATIONS[node.op].numpy(*(value(arg, numbers) for arg in node.args)))


def test_equal_expressions_are_one_node(graph: Graph) -> None:
    x, y, z = (graph.symbol(s) for s in "xyz")
    assert x * y + z is z + y * x
    assert (x - y) is -(y - x)
    assert -x * y is -(x * y)
    assert 2.0 * (3.0 * x) is x * 6.0
    assert (2.0 * x) * y is 2.0 * (x * y)
    assert graph.call("sin", -x) is -graph.call("sin", x)
    assert graph.call("cos", -x) is graph.call("cos", x)


def test_zeros_ones_and_constants_disappear(graph: Graph) -> None:
    x, y = graph.symbol("x"), graph.symbol("y")
    assert x * 0.0 is graph.zero
    assert x * 1.0 is x
    assert x + 0.0 is x
    assert x - x is graph.zero
    assert x + x is 2.0 * x
    assert (x + y) - x is y
    assert x - (x + y) is -y
    assert (x - y) + y is x
    assert x - (x - y) is y
    assert (x - y) - x is -y
    assert (x + 1.0) + 2.0 is x + 3.0
    assert graph.neg(-x) is x
    assert x / x is graph.one
    assert x / 2.0 is 0.5 * x
    assert graph.call("cos", graph.zero) is graph.one
    assert graph.const(-0.0) is graph.zero


def test_random_expressions_keep_their_value(graph: Graph) -> None:
    """Build the same random formula from nodes and from numbers."""
    rng = np.random.default_rng(0)
    numbers = {name: float(rng.normal()) for name in "uvwxyz"}
    pool = [(graph.symbol(name), number) for name, number in numbers.items()]
    pool += [(graph.const(c), c) for c in (0.0, 1.0, -1.0, 2.0, -0.5)]
    for _ in range(3000):
        (a, x), (b, y) = (pool[i] for i in rng.integers(len(pool), size=2))
        kind = rng.integers(7)
        if kind == 6 and abs(y) < 1e-3:
            continue
        if kind < 3:
            made = ((a + b, x + y), (a - b, x - y), (a * b, x * y))[kind]
        elif kind < 6:
            made = ((-a, -x), (graph.call("sin", a), math.sin(x)), (graph.call("cos", a), math.cos(x)))[kind - 3]
        else:
            made = (a / b, x / y)
        if abs(made[1]) < 1e3:
            assert value(made[0], numbers) == pytest.approx(made[1], rel=1e-9, abs=1e-9)
            if len(pool) < 60:
                pool.append(made)


def test_arguments_come_before_their_users(graph: Graph) -> None:
    x, y = graph.symbol("x"), graph.symbol("y")
    product = x * y
    outputs = [product + x, graph.call("sin", product)]
    order = reachable(outputs)
    place = {node.index: i for i, node in enumerate(order)}
    assert len(place) == len(order) == 5
    assert all(place[arg.index] < place[node.index] for node in order for arg in node.args)
    done = {product.index}
    assert reachable(outputs, done) == [x, outputs[0], outputs[1]]


def test_choices_between_equal_things_are_none(graph: Graph) -> None:
    x, y = graph.symbol("x"), graph.symbol("y")
    assert where(x < y, x, x) is x
    assert where(graph.one, x, y) is x
    assert where(x < y, 1.0, 0.0) is (x < y)
    assert equal(x, x) is graph.one
    assert (x < graph.node(x)) is graph.zero
    assert absolute(absolute(-x)) is absolute(x)
    with pytest.raises(TypeError, match="has no truth value"):
        bool(x < y)


def test_limits_stop_the_derivation() -> None:
    small = Graph(max_nodes=50)
    x = small.symbol("x")
    with pytest.raises(DynidentError, match="raise max_nodes and max_seconds"):
        for i in range(100):
            x = x * small.symbol(f"y{i}")
    slow = Graph()
    slow.max_seconds = -1.0
    x = slow.symbol("x")
    with pytest.raises(DynidentError, match="stopped at 1024"):
        for i in range(2000):
            x = x * slow.symbol(f"y{i}")


def test_division_by_zero_is_refused(graph: Graph) -> None:
    with pytest.raises(DynidentError, match="divided by zero"):
        graph.symbol("x") / 0.0


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("joint 1", "joint_1"),
        ("left/arm.q-1", "left_arm_q_1"),
        ("1st", "n1st"),
        ("int", "int_"),
        ("lambda", "lambda_"),
        ("é", "u00e9"),
        ("", "unnamed"),
        ('x; system("rm")', "xu003b_systemu0028u0022rmu0022u0029"),
    ],
)
def test_identifiers_are_legal(name: str, expected: str) -> None:
    assert identifier(name) == expected
    assert identifier(name).isidentifier()


def test_identifiers_differ_whatever_their_case() -> None:
    found = identifiers(["a b", "a_b", "A-B", "c"])
    assert len({label.lower() for label in found}) == 4


def test_comments_cannot_be_left() -> None:
    assert "*/" not in comment("x */ evil /* y")
    assert "\n" not in comment("x\ny")
    assert '"""' not in comment('x """ y')
    assert not comment("ends in a backslash \\").endswith("\\")


def test_an_unknown_operation_is_refused(graph: Graph) -> None:
    with pytest.raises(DynidentError, match="op is 'arcsin'; give one of add, sub"):
        graph.make("arcsin", graph.symbol("x"))
