"""C, NumPy and LaTeX of functions: compiled, run and read, they say what the expressions say, operation by operation."""

from __future__ import annotations

import math
import re
from pathlib import Path

import numpy as np
import pytest
from random_expressions import GCC, columns, expressions, inputs, load_c, operations, pointers
from random_mechanisms import close

from dynident import graph as g
from dynident.graph.compiled import Compiled
from dynident.graph.expression import Node, evaluate_nodes
from dynident.graph.operations import OPERATIONS
from dynident.graph.print_c import c_files, c_number
from dynident.graph.printing import latex_equations, numpy_function, numpy_helpers

SIZES = {"q": 3, "w": 2}


def sinc(square: float) -> float:
    """Return sin(x)/x of x^2 by its series, far beyond what doubles show."""
    return math.fsum((-square) ** k / math.factorial(2 * k + 1) for k in range(30))


def dsinc(square: float) -> float:
    return math.fsum(-k * (-square) ** (k - 1) / math.factorial(2 * k + 1) for k in range(1, 30))


MEANING = {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "div": lambda x, y: x / y,
    "neg": lambda x: -x,
    "sqrt": math.sqrt,
    "sin": math.sin,
    "cos": math.cos,
    "exp": math.exp,
    "log": math.log,
    "tanh": math.tanh,
    "pow": math.pow,
    "atan2": math.atan2,
    "sinc": sinc,
    "dsinc": dsinc,
    "abs": abs,
    "sign": lambda x: float((x > 0) - (x < 0)),
    "floor": math.floor,
    "min": min,
    "max": max,
    "lt": lambda x, y: float(x < y),
    "le": lambda x, y: float(x <= y),
    "eq": lambda x, y: float(x == y),
    "select": lambda c, x, y: x if c else y,
}
POSITIVE = ("sqrt", "log", "pow", "sinc", "dsinc")


def node(graph: g.Graph, op: str, x: list[Node]) -> Node:
    """Return one operation of symbols, by the public functions."""
    binary = {"add": x[0] + x[1], "sub": x[0] - x[1], "mul": x[0] * x[1], "div": x[0] / x[1], "lt": x[0] < x[1]}
    binary |= {"le": x[0] <= x[1], "eq": g.equal(x[0], x[1]), "min": g.minimum(x[0], x[1]), "max": g.maximum(x[0], x[1])}
    binary |= {"pow": g.power(x[0], x[1]), "atan2": g.arctan2(x[0], x[1]), "select": g.where(*x)}
    return binary[op] if op in binary else graph.call(op, x[0])


def every_operation() -> tuple[g.Function, np.ndarray, np.ndarray]:
    """Return each operation once, points x (N, 3) with ties and zeros among them, and the values by Python's own functions."""
    graph = g.Graph()
    x = graph.symbols("x", 3)
    rng = np.random.default_rng(4)
    points = rng.uniform(-2.0, 2.0, (40, 3))
    points[:8] = [
        [0.0, 1.0, 2.0],
        [1.0, 1.0, 0.5],
        [-1.0, -1.0, 3.0],
        [2.0, -3.0, 0.0],
        *np.diag([5.0, 3.0, 9.0]),
        [-0.0, 7.0, 1.0],
    ]
    points[8:10, 0] = 0.09, -0.05  # near zero, where sinc is a series
    points[:, 1][points[:, 1] == 0.0] = 0.25  # a divisor
    made, expected = [], []
    for op in OPERATIONS:
        made.append(node(graph, op, x if op not in POSITIVE else [x[0] * x[0] + 1e-4, *x[1:]]))
        numbers = [[p[0] * p[0] + 1e-4, *p[1:]] if op in POSITIVE else p for p in points.tolist()]
        arity = len(made[-1].args)
        expected.append([float(MEANING[op](*row[:arity])) for row in numbers])
    return g.Function("every", {"x": 3}, {"out": made}), points, np.array(expected).T.copy()


def test_every_operation_is_known_here() -> None:
    assert set(MEANING) == set(OPERATIONS)
    function, _, _ = every_operation()
    assert operations(function.entries) == set(OPERATIONS)


def test_numpy_evaluation_of_every_operation() -> None:
    function, x, expected = every_operation()
    found = evaluate_nodes(function.entries, columns({"x": x}))
    close(np.column_stack(found), expected, 1e-15)


@pytest.mark.parametrize("width", [1, 2, 4, 8])
def test_machine_code_of_every_operation(width: int) -> None:
    function, x, expected = every_operation()
    out = np.empty_like(expected)
    Compiled(function, width)(len(x), {"x": x, "out": out})
    close(out, expected, 1e-14)


@pytest.mark.skipif(GCC is None, reason="gcc is not installed")
def test_c_of_every_operation(tmp_path: Path) -> None:
    function, x, expected = every_operation()
    code = load_c(c_files("ops", [function], "Every operation"), tmp_path)
    out = np.empty_like(expected)
    for row, result in zip(x, out, strict=True):
        code.every(*pointers(row, result))
    close(out, expected, 1e-15)


def test_numpy_code_of_every_operation() -> None:
    function, x, expected = every_operation()
    text = numpy_function(function, about=["Return every operation."])
    scope: dict[str, object] = {"np": np}
    exec("\n".join([*numpy_helpers(text), text]), scope)
    with np.errstate(all="ignore"):
        close(scope["every"](x), expected, 1e-15)  # type: ignore[operator]
        close(scope["every"](x.reshape(8, 5, 3)).reshape(expected.shape), expected, 1e-15)  # type: ignore[operator]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.skipif(GCC is None, reason="gcc is not installed")
def test_random_functions_in_c_and_numpy(tmp_path: Path, seed: int) -> None:
    rng = np.random.default_rng(seed)
    graph, arrays = g.Graph(), inputs(rng, 9)
    nodes = expressions(graph, rng, arrays, 80)
    function = g.Function("some", SIZES, {"first": [None, *nodes[::2]], "second": nodes[1::2]}, {"p": 4})
    expected = evaluate_nodes([*nodes[::2], *nodes[1::2]], columns(arrays))
    values = np.column_stack([np.broadcast_to(x, 9) for x in expected])
    count = len(nodes[::2])
    code = load_c(c_files("random", [function]), tmp_path)
    for i, row in enumerate(values):
        first, second = np.full(count + 1, 7.0), np.empty(len(nodes) - count)
        code.some(*pointers(arrays["q"][i], arrays["w"][i], arrays["p"], first, second))
        close(np.concatenate([first[1:], second]), row, 1e-11)
        assert first[0] == 7.0  # an entry without an expression is left as it is
    text = numpy_function(function)
    scope: dict[str, object] = {"np": np}
    exec("\n".join([*numpy_helpers(text), text]), scope)
    first, second = scope["some"](*arrays.values())  # type: ignore[operator]
    close(np.hstack([first[:, 1:], second]), values, 1e-13)
    assert not np.any(first[:, 0])


@pytest.mark.skipif(GCC is None, reason="gcc is not installed")
def test_names_of_arrays_that_look_like_ours_do_no_harm(tmp_path: Path) -> None:
    graph = g.Graph()
    t1, c1, unused = (graph.symbol(f"{name}[0]") for name in ("t1", "c1", "s1"))
    q = graph.symbol("q[0]")
    shared = (t1 + c1) * q
    out = [g.cos(q) * shared, g.exp(shared) + g.sin(q), shared]
    sizes = {"q": 1, "t1": 1, "c1": 1, unused.name[:2]: 1}
    function = g.Function("names", sizes, {"t2": out})
    code = load_c(c_files("names_file", [function]), tmp_path)
    result = np.empty(3)
    code.names(*pointers(*(np.array([x]) for x in (0.3, 0.5, 0.7, 9.0)), result))
    s = (0.5 + 0.7) * 0.3
    close(result, np.array([math.cos(0.3) * s, math.exp(s) + math.sin(0.3), s]), 1e-15)
    text = numpy_function(function)
    scope: dict[str, object] = {"np": np}
    exec(text, scope)
    close(scope["names"]([0.3], [0.5], [0.7], [9.0]), result, 1e-15)  # type: ignore[operator]


def test_numbers_that_are_none_are_written() -> None:
    assert c_number(math.inf) == "HUGE_VAL"
    assert c_number(math.nan) == "(double)NAN"
    assert float(c_number(0.1)) == 0.1
    graph = g.Graph()
    function = g.Function(
        "limits", {"x": 1}, {"out": [graph.symbol("x[0]") + math.inf, graph.const(math.nan), -graph.const(math.inf)]}
    )
    scope: dict[str, object] = {"np": np}
    exec(numpy_function(function), scope)
    assert str(scope["limits"]([1.0])) == "[ inf  nan -inf]"  # type: ignore[operator]
    assert r"\infty" in "".join(latex_equations([("y", graph.symbol("x[0]") * math.inf)], str))


def test_latex_of_every_operation_is_balanced() -> None:
    function, _, _ = every_operation()
    rng = np.random.default_rng(2)
    graph, arrays = g.Graph(), inputs(rng, 5)
    more = expressions(graph, rng, arrays, 200)
    for nodes in (function.entries, more):
        lines = latex_equations(
            [(f"y_{{{i}}}", x) for i, x in enumerate(nodes)], lambda name: name.replace("[", "_{").replace("]", "}"), "eq"
        )
        text = "\n".join(lines)
        assert len(re.findall(r"\\label\{eq-\d+\}", text)) == len(nodes)
        assert text.count(r"\begin{") == text.count(r"\end{")
        for block in re.findall(r"\\begin\{align\}\n(.*?)\n\\end\{align\}", text, re.S):
            for cell in re.split(r"\\\\\n", block):  # braces and brackets close before a line ends
                assert cell.count("{") == cell.count("}")
                assert cell.count("(") == cell.count(")")
