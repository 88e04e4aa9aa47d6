"""Machine code of functions equals the expressions: any width, layout, number of samples, cutting and number of threads."""

from __future__ import annotations

import logging
import os
import platform
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from random_expressions import columns, expressions, inputs, pointers
from random_mechanisms import close

import dynident
from dynident import graph as g
from dynident.errors import DynidentError
from dynident.graph import print_llvm
from dynident.graph.compiled import Compiled
from dynident.graph.expression import Node, evaluate_nodes
from dynident.graph.print_llvm import compile_routines
from dynident.graph.routine import Routine

SOME = settings(max_examples=6, derandomize=True, deadline=None, database=None, suppress_health_check=list(HealthCheck))
SIZES = {"q": 3, "w": 2}


def random_function(seed: int, samples: int, count: int = 60) -> tuple[g.Function, dict[str, np.ndarray], np.ndarray]:
    """Return a function with one output of each layout and gaps, its inputs, and the values of all entries (N, k)."""
    rng = np.random.default_rng(seed)
    arrays = inputs(rng, max(samples, 1))
    nodes = expressions(g.Graph(), rng, arrays, count)
    arrays = {name: array[:samples] if name != "p" else array for name, array in arrays.items()}
    half = len(nodes) // 2
    plain: list[Node | None] = list(nodes[:half])
    plain[3], plain[7] = None, None
    rows: list[Node | None] = [*nodes[half:], nodes[0], None, nodes[0].graph.const(2.5), nodes[0].graph.symbol("q[1]")]
    function = g.Function(f"random_{seed}", SIZES, {"plain": plain, "rows": rows}, {"p": 4}, frozenset({"rows"}))
    values = evaluate_nodes([node for node in (*plain, *rows) if node is not None], columns(arrays))
    table = np.column_stack([np.broadcast_to(x, (samples,)) for x in values])
    return function, arrays, table


def run(function: g.Function, width: int, arrays: dict[str, np.ndarray], samples: int, threads: bool = True) -> np.ndarray:
    """Return all entries (N, k) computed by machine code; entries without an expression must stay what they were."""
    plain = np.full((samples, len(function.outputs["plain"])), 7.0)
    rows = np.full((len(function.outputs["rows"]), samples + 3), 7.0)  # rows may be longer than the samples
    Compiled(function, width)(samples, {**arrays, "plain": plain, "rows": rows}, threads)
    written = {name: [node is not None for node in nodes] for name, nodes in function.outputs.items()}
    untouched = ~np.array(written["plain"]), ~np.array(written["rows"])
    assert np.all(plain[:, untouched[0]] == 7.0)
    assert np.all(rows[untouched[1]] == 7.0)
    assert np.all(rows[:, samples:] == 7.0)
    return np.hstack([plain[:, ~untouched[0]], rows[~untouched[1], :samples].T])


@pytest.mark.parametrize("width", [1, 2, 4, 8])
@SOME
@given(seed=st.integers(0, 10_000))
def test_random_functions(width: int, seed: int) -> None:
    samples = 3 * width + 1
    function, arrays, expected = random_function(seed, samples)
    close(run(function, width, arrays, samples), expected, 1e-11)


@pytest.mark.parametrize("width", [1, 2, 4, 8])
def test_tanh_is_that_of_the_c_library(width: int) -> None:
    x = np.concatenate(
        [np.linspace(-25.0, 25.0, 4001), 10.0 ** np.linspace(-300.0, 300.0, 600), [0.0, np.inf, -np.inf, np.nan]]
    )
    graph, y = g.Graph(), np.empty((x.size, 1))
    function = g.Function("hyperbolic", {"x": 1}, {"y": [g.tanh(graph.symbols("x", 1)[0])]})
    Compiled(function, width)(x.size, {"x": x[:, None].copy(), "y": y})
    np.testing.assert_allclose(y[:, 0], np.tanh(x), rtol=5e-16, atol=0.0)


@pytest.mark.parametrize("width", [1, 2, 4, 8])
def test_any_number_of_samples(width: int) -> None:
    function, arrays, expected = random_function(1, 2 * width + 1)
    for samples in sorted({0, 1, width - 1, width, width + 1, 2 * width + 1}):
        some = {name: array[:samples] if name != "p" else array for name, array in arrays.items()}
        close(run(function, width, some, samples), expected[:samples], 1e-11)


@pytest.mark.parametrize("width", [1, 4])
def test_code_without_optimisation_computes_the_same(monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    """Most tests run such code (conftest): functions, and loops with memory, whose code LLVM's passes change most."""
    function, arrays, _ = random_function(6, 29)
    graph = g.Graph()
    routine = Routine(graph, "swing", ["state"])
    with routine.repeat(200):
        x = routine.load("state", 0), routine.load("state", 1)
        routine.store_all("state", 0, [x[0] + 0.01 * x[1], x[1] - 0.01 * (9.81 * g.sin(x[0]) + g.tanh(x[1]))])
    found = []
    for lines in (60_000, 0):
        monkeypatch.setattr("dynident.graph.machine.HUGE", lines)
        state = np.array([1.0, 0.0])
        compile_routines([routine])["swing"](*pointers(state))
        found.append((run(function, width, arrays, 29), state))
    for optimised, plain in zip(*found, strict=True):
        close(plain, optimised, 1e-13)


def test_a_long_compilation_is_announced_before_it_begins(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("DYNIDENT_CACHE", "")
    monkeypatch.setattr("dynident.graph.machine.SLOW", 1e-9)
    with caplog.at_level(logging.INFO, logger="dynident.graph"):
        Compiled(random_function(5, 1)[0], 1)
    told = [record.getMessage().split(",")[0] for record in caplog.records if "random_5" in record.getMessage()]
    assert told[0] == "compiling random_5" and told[1].startswith("compiled random_5 in")


def test_pieces_of_a_batch_are_the_batch() -> None:
    function, arrays, expected = random_function(4, 23)
    plain, rows = np.zeros((11, len(function.outputs["plain"]))), np.zeros((len(function.outputs["rows"]), 11))
    piece = Compiled(function, 4).over({**arrays, "plain": plain, "rows": rows})
    kept = [[i for i, node in enumerate(nodes) if node is not None] for nodes in function.outputs.values()]
    for first, last in ((0, 8), (3, 14), (20, 23), (5, 5)):
        piece(first, last)
        found = np.hstack([plain[:, kept[0]], rows[kept[1]].T])[: last - first]
        close(found, expected[first:last], 1e-11)


@pytest.mark.parametrize("width", [1, 2, 4, 8])
def test_sums_of_products_are_those_of_numpy(monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    from dynident.graph import compiled as products

    monkeypatch.setattr(products, "vector_width", lambda: width)
    monkeypatch.setattr(products, "_code", products._code.__wrapped__)  # the code of this width is nobody else's
    rng = np.random.default_rng(0)
    groups = [np.arange(3, 16), np.array([2]), np.array([20, 0, 7, 7, 5]), np.array([], dtype=int), np.arange(21)]
    rows = rng.normal(size=(21, 40))[:, :37]  # rows that are longer than their samples
    some = products.Products(groups)
    sums = some.sums(2)
    add = some.adding(rows, sums)
    parts = [(0, 0, 37), (1, 0, 8), (1, 5, 36), (1, 3, 4), (0, 2, 2)]
    for part in parts:
        add(*part)
    for group, found in zip(groups, some.matrices(sums), strict=True):
        expected = np.zeros((2, len(group), len(group)))
        for which, first, last in parts:
            expected[which] += rows[group, first:last] @ rows[group, first:last].T
        np.testing.assert_allclose(found, expected, atol=1e-12)
    with pytest.raises(ValueError, match="float64"):
        some.adding(rows.T.copy().T, sums)


@pytest.mark.parametrize("width", [1, 4])
@pytest.mark.parametrize("cut", [1, 2, 7, 40])
def test_cutting_changes_nothing(monkeypatch: pytest.MonkeyPatch, width: int, cut: int) -> None:
    function, arrays, expected = random_function(2, 11)
    whole = run(function, width, arrays, 11)
    monkeypatch.setattr(print_llvm, "CUT", cut)
    close(run(function, width, arrays, 11), whole, 1e-13)
    close(whole, expected, 1e-11)


def test_widths_agree_with_each_other() -> None:
    function, arrays, _ = random_function(5, 29, 200)
    first = run(function, 1, arrays, 29)
    for width in (2, 4, 8):
        close(run(function, width, arrays, 29), first, 1e-12)


@pytest.mark.parametrize("width", [0, 3, 128, 4.0])
def test_steps_of_other_widths_are_refused(width: int) -> None:
    with pytest.raises(DynidentError, match=f"width is {width}; give the samples per step, one of 1, 2, 4, 8, 16, 32, 64"):
        Compiled(random_function(1, 2)[0], width)


def test_rows_of_an_input_may_be_longer_than_its_columns() -> None:
    function, arrays, expected = random_function(6, 10)
    wide = np.full((10, 8), np.nan)
    wide[:, :3] = arrays["q"]
    close(run(function, 4, {**arrays, "q": wide[:, :3]}, 10), expected, 1e-11)


def test_results_do_not_depend_on_threads() -> None:
    function, arrays, expected = random_function(7, 9001, 40)
    alone = run(function, 4, arrays, 9001, threads=False)
    assert np.array_equal(run(function, 4, arrays, 9001, threads=True), alone)
    close(alone, expected, 1e-11)


def test_functions_can_be_compiled_and_called_by_many_threads() -> None:
    from concurrent.futures import ThreadPoolExecutor

    def work(seed: int) -> float:
        function, arrays, expected = random_function(seed, 50)
        return float(np.max(np.abs(run(function, 4, arrays, 50) - expected)))

    with ThreadPoolExecutor(4) as pool:
        assert max(pool.map(work, range(20, 28))) < 1e-10


def test_angles_of_any_size() -> None:
    graph = g.Graph()
    x = graph.symbol("x[0]")
    function = g.Function("turns", {"x": 1}, {"out": [g.sin(x), g.cos(x), g.sin(2.0 * x)]})
    angles = np.array([0.0, 1e-300, -1e-9, 0.5, np.pi / 4, np.pi / 2, np.pi, 1e3, -99_999.0, 1e5 + 1.0, 1e9, 1e22, -1e15, 3.0])
    for width in (1, 2, 4, 8):
        out = np.empty((angles.size, 3))
        Compiled(function, width)(angles.size, {"x": angles[:, None], "out": out})
        close(out, np.column_stack([np.sin(angles), np.cos(angles), np.sin(2.0 * angles)]), 1e-15)
        assert np.isnan(_one(function, width, np.nan)).all()
        assert np.isnan(_one(function, width, np.inf)).all()


def _one(function: g.Function, width: int, x: float) -> np.ndarray:
    out = np.empty((1, len(function.outputs["out"])))
    Compiled(function, width)(1, {"x": np.array([[x]]), "out": out})
    return out


OLD = """
import numpy as np
from dynident.graph.machine import vector_width
from test_graph_machine import random_function, run

assert vector_width() == WIDTH, vector_width()
function, arrays, expected = random_function(3, 21)
found = run(function, vector_width(), arrays, 21)
assert np.max(np.abs(found - expected)) < 1e-10
print("agrees")
"""


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="names processors of this family")
@pytest.mark.parametrize(("processor", "width"), [("x86-64", 2), ("x86-64-v2", 2)])
def test_code_for_a_named_older_processor(tmp_path: Path, processor: str, width: int) -> None:
    folders = os.pathsep.join([str(Path(dynident.__file__).parents[1]), str(Path(__file__).parent)])
    environment = {**os.environ, "DYNIDENT_CPU": processor, "DYNIDENT_CACHE": str(tmp_path), "PYTHONPATH": folders}
    done = subprocess.run(
        [sys.executable, "-c", OLD.replace("WIDTH", str(width))], env=environment, capture_output=True, text=True, check=False
    )
    assert done.stdout.strip() == "agrees", done.stderr


@pytest.mark.parametrize(
    ("name", "array", "told"),
    [
        ("x", np.zeros((9, 2)), r"array 'x' of 'f' has the shape \(9, 2\); it needs 3 numbers per sample, 9 samples"),
        ("x", np.zeros((8, 3)), "shape \\(8, 3\\)"),
        ("r", np.zeros((2, 8)), "shape \\(2, 8\\)"),
        ("r", np.zeros((1, 9)), "shape \\(1, 9\\)"),
        ("p", np.zeros(1), "shape \\(1,\\)"),
        ("y", np.zeros((9, 0)), "shape \\(9, 0\\)"),
        ("y", np.zeros(3), "shape \\(3,\\)"),
    ],
)
def test_arrays_that_are_too_small_are_refused_before_memory_beside_them_is_touched(
    name: str, array: np.ndarray, told: str
) -> None:
    graph = g.Graph()
    total = graph.symbol("x[2]") + graph.symbol("r[1]") * graph.symbol("p[1]")
    code = Compiled(g.Function("f", {"x": 3, "r": 2}, {"y": [total]}, {"p": 2}, frozenset({"r"})))
    right = {"x": np.ones((9, 3)), "r": np.ones((2, 9)), "p": np.ones(2), "y": np.zeros((9, 1))}
    code(9, right)
    assert np.all(right["y"] == 2.0)
    with pytest.raises(DynidentError, match=told):
        code(9, {**right, name: array})
