"""Random expressions that use every operation of the graph, with numbers they may be evaluated at, and compiled C."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from dynident import graph as g
from dynident.graph.expression import Node, evaluate_nodes, reachable, substitute

GCC = shutil.which("gcc")
STRICT = ["-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror", "-Wconversion", "-Wdouble-promotion", "-Wshadow", "-Wvla"]
LARGEST = 30.0  # of a value: what is larger would only show how errors grow


def inputs(rng: np.random.Generator, samples: int) -> dict[str, np.ndarray]:
    """Return the arrays q (N, 3) and w (N, 2) per sample and p (4,) shared by all."""
    return {"q": rng.uniform(-3.0, 3.0, (samples, 3)), "w": rng.uniform(0.2, 2.0, (samples, 2)), "p": rng.normal(size=4)}


def columns(arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return every number of the arrays by the name of its symbol."""
    return {f"{name}[{i}]": array[..., i] for name, array in arrays.items() for i in range(array.shape[-1])}


def expressions(graph: g.Graph, rng: np.random.Generator, arrays: Mapping[str, np.ndarray], count: int) -> list[Node]:
    """Return random expressions of the arrays' symbols.

    What jumps (comparisons, signs, floor) is asked of plain sums of symbols, which are nowhere near a jump, so that rounding
    cannot decide.
    """
    values = columns(arrays)
    symbols = [graph.symbol(name) for name in values]
    pool = list(symbols)

    def one() -> Node:
        return pool[rng.integers(len(pool))]

    def plain() -> Node:
        x, y = (symbols[i] for i in rng.integers(len(symbols), size=2))
        return float(rng.uniform(0.3, 1.5)) * x + float(rng.normal()) * y + float(rng.normal())

    def square() -> Node:
        x = one()
        return x * x

    makers = [
        lambda: one() + one(),
        lambda: one() - one(),
        lambda: one() * one(),
        lambda: one() / (1.5 + g.cos(one())),
        lambda: -one(),
        lambda: g.sqrt(0.1 + square()),
        lambda: g.sin(one()),
        lambda: g.cos(one()),
        lambda: g.exp(0.3 * g.sin(one())),
        lambda: g.log(0.2 + square()),
        lambda: g.tanh(one()),
        lambda: g.power(0.3 + g.absolute(one()), 1.7),
        lambda: g.power(0.3 + g.absolute(one()), g.sin(one())),
        lambda: g.power(1.5 + g.sin(one()), float(rng.integers(-2, 4))),
        lambda: g.arctan2(g.sin(one()), 1.5 + g.cos(one())),
        lambda: graph.call("sinc", 0.1 * square()),
        lambda: graph.call("dsinc", 0.1 * square()),
        lambda: graph.cosc(square()),
        lambda: g.absolute(one()),
        lambda: g.sign(plain()),
        lambda: g.floor(plain()),
        lambda: g.minimum(one(), one()),
        lambda: g.maximum(one(), one()),
        lambda: plain() < plain(),
        lambda: plain() >= plain(),
        lambda: g.equal(g.floor(plain()), g.floor(plain())),
        lambda: g.where(plain() < plain(), one(), one()),
        lambda: g.where(g.both(plain() < 0.5, g.opposite(plain() > 0.1)), one(), one()),
        lambda: g.where(g.either(plain() < 0.5, plain() > 0.1), one(), one()),
    ]
    order = [*range(len(makers)), *rng.integers(len(makers), size=max(0, count - len(makers)))]
    for k in rng.permutation(order):
        made = makers[int(k)]()
        if np.max(np.abs(evaluate_nodes([made], values)[0]), initial=0.0) < LARGEST:
            pool.append(made)
    return pool[len(symbols) :]


def rebuilt(nodes: list[Node], symbols: Mapping[str, Node]) -> list[Node]:
    """Return expressions with other nodes for their symbols."""
    return substitute(nodes, {node: symbols[node.name] for node in reachable(nodes) if node.op == "symbol"})


def operations(nodes: list[Node]) -> set[str]:
    """Return the operations that expressions use."""
    return {node.op for node in reachable(nodes)} - {"const", "symbol"}


def load_c(files: Mapping[str, str], folder: Path) -> ctypes.CDLL:
    """Compile generated C with every warning as an error and load it."""
    for file, text in files.items():
        (folder / file).write_text(text, encoding="ascii")
    sources = [str(folder / file) for file in files if file.endswith(".c")]
    library = folder / "library.so"
    subprocess.run([str(GCC), *STRICT, "-O1", "-fPIC", "-shared", *sources, "-o", str(library), "-lm"], check=True)
    return ctypes.CDLL(str(library))


def pointers(*arrays: np.ndarray) -> list[ctypes.c_void_p]:
    """Return where arrays begin."""
    return [ctypes.c_void_p(array.ctypes.data) for array in arrays]
