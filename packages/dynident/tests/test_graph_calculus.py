"""Derivatives of expressions: forward and reverse agree with each other, with complex steps and with differences."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from random_expressions import columns, expressions, inputs
from random_mechanisms import close

from dynident import graph as g
from dynident.graph.expression import Node, derivative_matrix, evaluate_nodes, forward, reachable
from dynident.graph.operations import DSINC_SERIES, SINC_SERIES, SMALL, horner

SOME = settings(max_examples=15, derandomize=True, deadline=None, database=None, suppress_health_check=list(HealthCheck))


def smooth(graph: g.Graph, rng: np.random.Generator, symbols: list[Node], count: int) -> list[Node]:
    """Return random expressions of analytic operations, whose values stay moderate."""
    pool = list(symbols)
    for _ in range(count):
        x, y = (pool[i] for i in rng.integers(len(pool), size=2))
        bounded = g.sin(x)
        makers = [
            x + y,
            x - y,
            g.tanh(x) * y,
            y / (2.0 + bounded),
            -x,
            g.sqrt(2.0 + bounded),
            g.log(1.5 + bounded),
            g.exp(bounded),
            g.power(1.5 + bounded, 0.3 * g.cos(y)),
            g.power(2.0 + bounded, -1.3),
            bounded**3,
        ]
        pool.append(makers[rng.integers(len(makers))])
    return pool[len(symbols) :]


@SOME
@given(seed=st.integers(0, 100_000))
def test_smooth_expressions_against_complex_steps(seed: int) -> None:
    rng, graph = np.random.default_rng(seed), g.Graph()
    symbols = graph.symbols("x", 4)
    outputs = smooth(graph, rng, symbols, 25)
    point, h = rng.normal(size=4), 1e-30
    exact = np.empty((len(outputs), 4))
    for j in range(4):
        moved = {x.name: complex(point[i], h * (i == j)) for i, x in enumerate(symbols)}
        exact[:, j] = [np.imag(value) / h for value in evaluate_nodes(outputs, moved)]
    values = {x.name: point[i] for i, x in enumerate(symbols)}
    J = derivative_matrix(outputs, symbols)
    found = np.array(evaluate_nodes([entry for row in J for entry in row], values)).reshape(exact.shape)
    close(found, exact, 1e-12)
    for output, row in zip(outputs[-5:], exact[-5:], strict=True):
        close(np.array(evaluate_nodes(g.reverse([output], [1.0], symbols), values)), row, 1e-12)
        close(np.array(evaluate_nodes([g.derivative(output, x) for x in symbols], values)), row, 1e-12)


@SOME
@given(seed=st.integers(0, 100_000))
def test_all_operations_against_differences(seed: int) -> None:
    rng, graph = np.random.default_rng(seed), g.Graph()
    arrays = inputs(rng, 1)
    outputs = [node for node in expressions(graph, rng, arrays, 60) if not _twice(node)]
    values = {name: float(np.ravel(x)[0]) for name, x in columns(arrays).items()}
    symbols = [graph.symbol(name) for name in values]
    direction, h = rng.normal(size=len(symbols)), 1e-6
    ahead, behind = (
        np.array(
            evaluate_nodes(outputs, {n: x + s * h * d for (n, x), d in zip(values.items(), direction, strict=True)}),
            dtype=float,
        )
        for s in (1.0, -1.0)
    )
    rates = dict(zip(symbols, map(graph.const, direction), strict=True))
    along = np.array(evaluate_nodes(forward(outputs, rates), values), dtype=float)
    differences = (ahead - behind) / (2.0 * h)
    scale = np.maximum(1.0, np.abs(along))
    assert np.all(np.abs(along - differences) < 1e-6 * scale**2)
    weights = rng.normal(size=len(outputs))
    gradient = np.array(evaluate_nodes(g.reverse(outputs, list(weights), symbols), values), dtype=float)
    assert gradient @ direction == pytest.approx(float(weights @ along), rel=1e-11, abs=1e-10)


def _twice(node: Node) -> bool:
    """Return whether an expression contains dsinc, which has no derivative."""
    return any(part.op == "dsinc" for part in reachable([node]))


def test_sums_over_many_uses_and_inputs_that_are_not_used() -> None:
    graph = g.Graph()
    x, y, z = graph.symbols("x", 3)
    shared = g.sin(x * y)
    output = shared * shared + shared
    found = g.reverse([output, shared], [1.0, 2.0], [x, y, z])
    values = {"x[0]": 0.7, "x[1]": -1.3, "x[2]": 9.0}
    s, c = np.sin(0.7 * -1.3), np.cos(0.7 * -1.3)
    slope = 2.0 * s * c + 3.0 * c
    close(np.array(evaluate_nodes(found, values)), np.array([slope * -1.3, slope * 0.7, 0.0]), 1e-14)
    assert found[2] is graph.zero


def test_a_sub_expression_can_count_as_independent() -> None:
    graph = g.Graph()
    x = graph.symbol("x")
    middle = g.exp(x)
    output = middle * middle + x
    assert evaluate_nodes(forward([output], {middle: graph.one}), {"x": 0.5}) == pytest.approx([2.0 * np.exp(0.5)])
    assert evaluate_nodes(g.reverse([output], [1.0], [middle]), {"x": 0.5}) == pytest.approx([2.0 * np.exp(0.5)])


def test_wide_and_tall_jacobians_are_the_same() -> None:
    graph = g.Graph()
    x = graph.symbols("x", 5)
    y = [x[0] * x[1], g.sin(x[2] + x[3]), x[4] / x[0]]
    values = {node.name: 0.3 + 0.2 * i for i, node in enumerate(x)}
    wide = np.array(evaluate_nodes([e for row in derivative_matrix(y, x) for e in row], values)).reshape(3, 5)
    tall = np.array(evaluate_nodes([e for row in derivative_matrix(y, x[:2]) for e in row], values)).reshape(3, 2)
    close(wide[:, :2], tall, 1e-15)
    expected = np.zeros((3, 5))
    expected[0, :2] = 0.5, 0.3
    expected[1, 2:4] = np.cos(0.7 + 0.9)
    expected[2, 0], expected[2, 4] = -1.1 / 0.09, 1.0 / 0.3
    close(wide, expected, 1e-14)


def test_angles_are_differentiated() -> None:
    graph = g.Graph()
    x = graph.symbol("x")
    slope = g.derivative(g.arctan2(x * x, 2.0 + x), x)
    for value in (-3.0, -0.4, 0.7, 2.0):
        y, base = value**2, 2.0 + value
        exact = (2.0 * value * base - y) / (y**2 + base**2)
        assert evaluate_nodes([slope], {"x": value})[0] == pytest.approx(exact, rel=1e-13)


def test_a_rotation_vector_is_differentiated_once() -> None:
    graph = g.Graph()
    x = graph.symbol("x")
    once = g.derivative(graph.call("sinc", x), x)
    with pytest.raises(TypeError, match="second derivatives of a rotation vector"):
        g.derivative(once, x)


def test_the_series_of_sinc_and_its_derivative_are_exact_where_they_are_used() -> None:
    square = np.geomspace(1e-4, SMALL, 50)
    x = np.sqrt(square.astype(np.longdouble))
    np.testing.assert_allclose(horner(SINC_SERIES, square), (np.sin(x) / x).astype(float), rtol=4e-16)
    slope = ((np.cos(x) - np.sin(x) / x) / (2 * x * x)).astype(float)
    np.testing.assert_allclose(horner(DSINC_SERIES, square), slope, rtol=1e-13)
