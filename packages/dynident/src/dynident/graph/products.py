"""Sums of products of signals over samples, G = A A^T, for several groups of rows of one array in one call.

BLAS does this well for large matrices; for some tens of rows its packing and its calls take as long as the products. Here
four rows meet three, twelve sums stay in registers, and the array of a tile may be small enough to stay in the cache.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynident.arrays import Array
from dynident.errors import DynidentError
from dynident.graph.machine import MachineCode, vector_width

HIGH, WIDE = 4, 3  # rows that meet: twelve sums and what they need fit into sixteen registers


class Products:
    """Sums of products of rows; `groups` are the rows of the array that belong together."""

    def __init__(self, groups: Sequence[NDArray[np.int64]]) -> None:
        table: list[list[int]] = []
        self._places: list[NDArray[np.int64]] = []  # where the entries of each group's G are among the sums
        for rows in groups:
            if np.ndim(rows) != 1:
                raise DynidentError(
                    f"groups holds rows of shape {np.shape(rows)}; give the numbers of rows, (k,) for each group"
                )
            places = np.zeros((len(rows), len(rows)), dtype=np.int64)
            for high, wide in product(range(0, len(rows), HIGH), range(0, len(rows), WIDE)):
                if wide >= high + HIGH:  # G is symmetric
                    continue
                i, j = ([min(k, len(rows) - 1) for k in range(a, a + n)] for a, n in ((high, HIGH), (wide, WIDE)))
                for k, (row, column) in enumerate(product(i, j), HIGH * WIDE * len(table)):
                    places[row, column] = places[column, row] = k
                table.append([int(rows[k]) for k in (*i, *j)])
            self._places.append(places)
        self._table = np.array(table, dtype=np.int64).reshape(-1, HIGH + WIDE)
        self._call, self._lanes = _code(), vector_width()

    @staticmethod
    def of(groups: Sequence[NDArray[np.int64]]) -> Products:
        """Return the sums of these groups, made once: the list of thousands of products takes as long as 20 000 samples."""
        return _made(tuple(np.asarray(rows, dtype=np.int64).tobytes() for rows in groups))

    def sums(self, count: int) -> Array:
        """Return `count` zero-initialised accumulators."""
        return np.zeros((count, HIGH * WIDE * len(self._table)))

    def adding(self, rows: Array, sums: Array) -> Callable[[int, int, int], None]:
        """Return a call that adds the products of the samples from a first to a last (not included) to one row of sums.

        Each row's samples lie next to each other in rows (height, samples); where they are in memory is looked up once.
        """
        if rows.dtype != np.float64 or (rows.shape[1] > 1 and rows.strides[1] != 8):
            raise DynidentError("the rows of sums of products must be float64, their samples next to each other")
        lanes, blocks, stride, at = self._lanes, len(self._table), rows.strides[0] // 8, rows.ctypes.data
        call, table, into, step = self._call, self._table.ctypes.data, sums.ctypes.data, sums.strides[0]

        def add(which: int, first: int, last: int) -> None:
            whole = (last - first) // lanes
            if whole:
                call(blocks, whole, at + 8 * first, stride, table, into + step * which)
            if first + whole * lanes < last:
                rest = np.zeros((rows.shape[0], lanes))
                rest[:, : last - first - whole * lanes] = rows[:, first + whole * lanes : last]
                call(blocks, 1, rest.ctypes.data, lanes, table, into + step * which)

        return add

    def matrices(self, sums: Array) -> list[Array]:
        """Return G of every group, (count, rows, rows), from sums (count, products)."""
        return [sums.take(places, axis=1) for places in self._places]


@lru_cache(maxsize=64)
def _made(groups: tuple[bytes, ...]) -> Products:
    return Products([np.frombuffer(rows, dtype=np.int64) for rows in groups])


@lru_cache(maxsize=1)
def _code() -> Any:
    """Return the machine code: a function of blocks, steps, rows with their stride, table and sums."""
    number, place, machine = ctypes.c_int64, ctypes.c_void_p, MachineCode(_text(vector_width()), "products of rows", loops=True)
    return machine.function("products", [number, number, place, number, place, place])


def _text(width: int) -> str:
    """Return the code: for every block and step of W samples, seven rows are read and twelve products are added."""
    V, zero = (f"<{width} x double>", "zeroinitializer") if width > 1 else ("double", "0.0")
    pairs = list(product(range(HIGH), range(HIGH, HIGH + WIDE)))
    lines = [
        "define void @products(i64 %blocks, i64 %steps, ptr %rows, i64 %stride, ptr %table, ptr %sums) {",
        "entry:",
        "  %none = icmp eq i64 %blocks, 0",
        "  br i1 %none, label %end, label %block",
        "block:",
        "  %b = phi i64 [0, %entry], [%b1, %done]",
        f"  %first = mul i64 %b, {HIGH + WIDE}",
    ]
    for k in range(HIGH + WIDE):
        lines += [
            f"  %n{k} = add i64 %first, {k}",
            f"  %t{k} = getelementptr i64, ptr %table, i64 %n{k}",
            f"  %i{k} = load i64, ptr %t{k}",
            f"  %o{k} = mul i64 %i{k}, %stride",
            f"  %r{k} = getelementptr double, ptr %rows, i64 %o{k}",
        ]
    lines += ["  br label %step", "step:", "  %s = phi i64 [0, %block], [%s1, %step]"]
    lines += [f"  %a{i}.{j} = phi {V} [{zero}, %block], [%m{i}.{j}, %step]" for i, j in pairs]
    lines.append(f"  %at = mul i64 %s, {width}")
    for k in range(HIGH + WIDE):
        lines += [f"  %p{k} = getelementptr double, ptr %r{k}, i64 %at", f"  %x{k} = load {V}, ptr %p{k}, align 8"]
    for i, j in pairs:
        lines += [f"  %f{i}.{j} = fmul contract {V} %x{i}, %x{j}", f"  %m{i}.{j} = fadd contract {V} %a{i}.{j}, %f{i}.{j}"]
    lines += ["  %s1 = add i64 %s, 1", "  %more = icmp slt i64 %s1, %steps", "  br i1 %more, label %step, label %done", "done:"]
    lines.append(f"  %out = mul i64 %b, {HIGH * WIDE}")
    for k, (i, j) in enumerate(pairs):
        lines += [f"  %q{k} = add i64 %out, {k}", f"  %g{k} = getelementptr double, ptr %sums, i64 %q{k}"]
        last = f"%v{k}.0"
        lines.append(f"  {last} = load double, ptr %g{k}")
        for lane in range(width):
            value = f"%m{i}.{j}"
            if width > 1:
                value = f"%e{k}.{lane}"
                lines.append(f"  {value} = extractelement {V} %m{i}.{j}, i32 {lane}")
            lines.append(f"  %v{k}.{lane + 1} = fadd double {last}, {value}")
            last = f"%v{k}.{lane + 1}"
        lines.append(f"  store double {last}, ptr %g{k}")
    lines += ["  %b1 = add i64 %b, 1", "  %again = icmp slt i64 %b1, %blocks", "  br i1 %again, label %block, label %end"]
    return "\n".join([*lines, "end:", "  ret void", "}", ""])
