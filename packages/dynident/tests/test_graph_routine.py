"""Loops, choices and calls around expressions: machine code and C both do what plain Python does."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from random_expressions import GCC, columns, expressions, inputs, load_c, pointers, rebuilt
from random_mechanisms import close

from dynident import graph as g
from dynident.graph.expression import Node, evaluate_nodes
from dynident.graph.print_c import c_files
from dynident.graph.print_llvm import compile_routines
from dynident.graph.routine import Routine

Run = Callable[..., None]
Maker = Callable[[Routine], Run]


@pytest.fixture(params=["machine", "c"])
def compiled(request: pytest.FixtureRequest, tmp_path: Path) -> Maker:
    """Return what makes a routine callable with arrays, by machine code or by gcc."""
    if request.param == "c" and GCC is None:
        pytest.skip("gcc is not installed")

    def make(routine: Routine) -> Run:
        if request.param == "machine":
            function = compile_routines([routine])[routine.name]
        else:
            function = getattr(load_c(c_files("code", [routine], "A routine"), tmp_path), routine.name)
        return lambda *arrays: function(*pointers(*arrays))

    return make


def test_a_time_loop(compiled: Maker) -> None:
    """A pendulum by the classical Runge-Kutta method; the history is written step by step."""
    graph = g.Graph()
    h = 0.01

    def rate(x: tuple[Node, Node]) -> tuple[Node, Node]:
        return x[1], -9.81 * g.sin(x[0]) - 0.2 * x[1]

    routine = Routine(graph, "pendulum", ["steps", "state", "history"])
    with routine.repeat(routine.load("steps")) as k:
        x = (routine.load("state", 0), routine.load("state", 1))
        k1 = rate(x)
        k2 = rate((x[0] + 0.5 * h * k1[0], x[1] + 0.5 * h * k1[1]))
        k3 = rate((x[0] + 0.5 * h * k2[0], x[1] + 0.5 * h * k2[1]))
        k4 = rate((x[0] + h * k3[0], x[1] + h * k3[1]))
        new = [x[i] + h / 6.0 * (k1[i] + 2.0 * k2[i] + 2.0 * k3[i] + k4[i]) for i in range(2)]
        routine.store_all("state", 0, new)
        routine.store_all("history", 2.0 * k, new)

    def plain(x: np.ndarray) -> np.ndarray:
        def f(x: np.ndarray) -> np.ndarray:
            return np.array([x[1], -9.81 * math.sin(x[0]) - 0.2 * x[1]])

        k1 = f(x)
        k2 = f(x + 0.5 * h * k1)
        k3 = f(x + 0.5 * h * k2)
        return x + h / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + f(x + h * k3))

    run = compiled(routine)
    state, history = np.array([1.0, 0.0]), np.zeros((200, 2))
    run(np.array([200.0]), state, history)
    expected = [np.array([1.0, 0.0])]
    for _ in range(200):
        expected.append(plain(expected[-1]))
    close(history, np.array(expected[1:]), 1e-12)
    close(state, expected[-1], 1e-12)
    before = history.copy()
    run(np.array([0.0]), state, history)  # no steps, nothing written
    assert np.array_equal(before, history)


def test_an_iteration_that_is_left(compiled: Maker) -> None:
    """Newton's method for square roots; the number of steps and the root come back."""
    graph = g.Graph()
    routine = Routine(graph, "root", ["a", "x", "steps"])
    a = routine.load("a")
    routine.store("x", 0, 1.0)
    with routine.until(60) as k:
        x = routine.load("x")
        routine.store("steps", 0, k)
        new = 0.5 * (x + a / x)
        routine.store("x", 0, new)
        routine.leave(g.absolute(new - x) <= 1e-15 * new)
    run = compiled(routine)
    for number in (2.0, 1.0, 1e-6, 12345.0):
        x, steps = np.zeros(1), np.zeros(1)
        run(np.array([number]), x, steps)
        assert x[0] == pytest.approx(math.sqrt(number), rel=1e-15)
        assert 0 <= steps[0] < 59


def test_choices_and_logic(compiled: Maker) -> None:
    graph = g.Graph()
    routine = Routine(graph, "choose", ["x", "out"])
    x, y = routine.load_all("x", 0, 2)
    both = x * y
    with routine.when(g.both(x > 0.0, y > 0.0)):
        routine.store("out", 0, both + 1.0)
        with routine.when(both > 4.0):
            routine.store("out", 1, 4.0)
        with routine.otherwise():
            routine.store("out", 1, both)
    with routine.otherwise():
        with routine.when(g.either(x > 0.0, g.opposite(y <= 0.0))):
            routine.store("out", 0, -both)
        with routine.otherwise():
            routine.store("out", 0, g.sqrt(both))
        routine.store("out", 1, g.sin(both))
    with routine.when(x):  # any number that is not zero is true
        routine.store("out", 2, both * both)
    run = compiled(routine)
    for x0 in (-2.0, 0.0, 1.5, 3.0):
        for y0 in (-1.0, 0.0, 2.0):
            out = np.full(3, 9.0)
            run(np.array([x0, y0]), out)
            b = x0 * y0
            if x0 > 0.0 and y0 > 0.0:
                expected = [b + 1.0, min(b, 4.0)]
            else:
                expected = [-b if x0 > 0.0 or y0 > 0.0 else math.sqrt(b), math.sin(b)]
            close(out, np.array([*expected, b * b if x0 != 0.0 else 9.0]), 1e-15)


def test_nested_loops_leave_the_inner_one_only(compiled: Maker) -> None:
    graph = g.Graph()
    routine = Routine(graph, "nested", ["out"])
    with routine.repeat(4) as i, routine.repeat(10) as j:
        with routine.when(j > i):
            routine.leave(graph.one)
        routine.store("out", 10.0 * i + j, 1.0 + i)
    out = np.zeros((4, 10))
    compiled(routine)(out)
    expected = np.tril(np.ones((4, 10))) * np.arange(1.0, 5.0)[:, None]
    assert np.array_equal(out, expected)


def test_calls_of_functions_and_routines_with_places(compiled: Maker) -> None:
    graph, other = g.Graph(), g.Graph()
    x = other.symbols("x", 2)
    function = g.Function("turn", {"x": 2}, {"y": [x[0] * g.cos(x[1]), None, x[0] * g.sin(x[1])]}, {"unused": 1})
    inner = Routine(graph, "accumulate", ["sum", "term"])
    inner.store("sum", 0, inner.load("sum") + inner.load("term"))
    outer = Routine(graph, "walk", ["points", "out", "unused", "sum"])
    outer.local("y", 3)
    with outer.repeat(3) as k:
        outer.call(function, x=("points", 2.0 * k), y="y", unused="unused")
        outer.store_all("out", 2.0 * k, [outer.load("y", 0), outer.load("y", 2)])
        outer.call(inner, sum="sum", term=("y", 2))
    points, out, total = np.array([[1.0, 0.3], [2.0, -1.0], [0.5, 2.0]]), np.zeros((3, 2)), np.array([10.0])
    compiled(outer)(points, out, np.zeros(1), total)
    expected = points[:, :1] * np.column_stack([np.cos(points[:, 1]), np.sin(points[:, 1])])
    close(out, expected, 1e-15)
    close(total, 10.0 + expected[:, 1].sum(keepdims=True), 1e-15)


def test_what_was_loaded_keeps_its_value_and_stores_are_computed_before_they_write(compiled: Maker) -> None:
    graph = g.Graph()
    routine = Routine(graph, "swap", ["x"])
    a, b = routine.load_all("x", 0, 2)
    routine.store_all("x", 0, [b, a])  # a was read before
    again = routine.load("x", 0)
    routine.store("x", 2, again - a)
    x = np.array([3.0, 5.0, 0.0])
    compiled(routine)(x)
    assert x.tolist() == [5.0, 3.0, 2.0]


@pytest.mark.parametrize("seed", range(3))
def test_random_expressions_in_a_loop(compiled: Maker, seed: int) -> None:
    """Random expressions, half of them behind a choice, for a row of samples."""
    rng = np.random.default_rng(seed)
    arrays = inputs(rng, 6)
    graph = g.Graph()
    routine = Routine(graph, "many", ["count", "q", "w", "p", "out"])
    with routine.repeat(routine.load("count")) as k:
        loaded = {f"q[{i}]": routine.load("q", 3.0 * k + i) for i in range(3)}
        loaded |= {f"w[{i}]": routine.load("w", 2.0 * k + i) for i in range(2)}
        loaded |= {f"p[{i}]": routine.load("p", i) for i in range(4)}
        nodes = rebuilt(expressions(graph, rng, arrays, 60), loaded)
        half = len(nodes) // 2
        routine.store_all("out", float(len(nodes)) * k, nodes[:half])
        with routine.when(loaded["q[0]"] > 0.0):
            routine.store_all("out", float(len(nodes)) * k + half, nodes[half:])
    out = np.zeros((6, len(nodes)))
    compiled(routine)(np.array([6.0]), arrays["q"], arrays["w"], arrays["p"], out)
    values = {loaded[name].name: np.broadcast_to(x, 6) for name, x in columns(arrays).items()}
    expected = np.column_stack([np.broadcast_to(x, 6) for x in evaluate_nodes(nodes, values)])
    expected[arrays["q"][:, 0] <= 0.0, half:] = 0.0
    close(out, expected, 1e-11)


def test_mistakes_are_told() -> None:
    graph = g.Graph()
    routine = Routine(graph, "wrong", ["x"])
    with routine.repeat(2):
        inside = routine.load("x")
    routine.store("x", 0, inside)
    for make in (lambda: compile_routines([routine]), lambda: c_files("wrong", [routine])):
        with pytest.raises(ValueError, match="used outside the block in which it was loaded"):
            make()
    with pytest.raises(ValueError, match="must follow when"), routine.otherwise():
        pass
    with pytest.raises(ValueError, match="do not match"):
        routine.call(Routine(graph, "inner", ["y"]), x="x")


def test_c_says_what_is_read_only_and_hides_what_is_called() -> None:
    graph = g.Graph()
    x = graph.symbol("x[0]")
    square = g.Function("square", {"x": 1}, {"y": [x * x]})
    routine = Routine(graph, "outer", ["given", "result"])
    routine.call(square, x="given", y="result")
    files = c_files("code", [routine])
    assert "void outer(const double *given, double *result);" in files["code.h"]
    assert "static void code_square(" in files["code.c"]
    assert "square" not in files["code.h"]
