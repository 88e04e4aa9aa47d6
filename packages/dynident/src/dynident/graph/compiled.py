"""`Compiled`: a `Function` as machine code, called with NumPy arrays over any number of samples and threads.

`Products` are sums over samples, G = A A^T, for several groups of rows of one array in one call: for some tens of rows the
packing and the calls of BLAS take as long as the products. Blocks of four by three rows keep twelve sums in registers.
`Evaluated` is called like `Compiled`, for functions that do not repay their compilation.
"""

from __future__ import annotations

import ctypes
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynident.arrays import Array
from dynident.errors import DynidentError
from dynident.graph.expression import Function, Graph, evaluate_nodes
from dynident.graph.machine import MachineCode, vector_width
from dynident.graph.print_llvm import FunctionPrinter
from dynident.parallel import SMALL, over_samples

WIDTHS = (1, 2, 4, 8, 16, 32, 64)  # samples per step


class Compiled:
    """Machine code of a `function` for batches of samples, `width` (a power of two) at a time; by default a vector register."""

    def __init__(self, function: Function, width: int | None = None) -> None:
        self.function = _without_expressions(function)
        self._arrays = self.function.arrays
        outputs = {name: len(entries) for name, entries in self.function.outputs.items()}
        self._sizes = {**self.function.inputs, **self.function.shared, **outputs}
        self._partial = {name for name, entries in self.function.outputs.items() if None in entries}
        self._memory = threading.local()
        self.width = vector_width() if width is None else width
        if not isinstance(self.width, int | np.integer) or self.width not in WIDTHS:
            raise DynidentError(f"width is {str(self.width)[:20]}; give the samples per step, one of {str(WIDTHS)[1:-1]}")
        machine = MachineCode(FunctionPrinter(function, self.width).text(), function.name)
        self.call = machine.function("entry", [ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p])

    def __call__(self, samples: int, arrays: Mapping[str, Array], threads: bool = True) -> None:
        """Fill the outputs for all samples; results do not depend on whether long batches use all cores.

        Inputs and outputs are (N, ...) or, for rows, (k, at least N), shared arrays (k,): float64, each sample's numbers next
        to each other (rows: each entry's samples next to each other).
        """
        whole = samples - samples % self.width
        if whole:
            table = self.table(arrays, samples)  # it must live until the calls are done
            place = table.ctypes.data
            if whole >= SMALL and threads:
                over_samples(whole, lambda i, j: self.call(i, (j - i) // self.width, place), self.width)
            else:
                self.call(0, whole // self.width, place)
        if whole < samples:
            self._rest(arrays, whole, samples)

    def over(self, arrays: Mapping[str, Array]) -> Callable[[int, int], None]:
        """Return a call for the samples from a first to a last (not included) of a batch, in the calling thread.

        Inputs are of the whole batch; outputs are for the longest piece and are written from their start. Array addresses
        are determined once, so the arrays must live as long as the call.
        """
        function, call, width, table = self.function, self.call, self.width, self.table(arrays)
        table[[name in function.outputs for name in self._arrays], 2] = 0
        place = table.ctypes.data
        given, made = (
            min((arrays[name].shape[-1 if name in function.rows else 0] for name in names), default=sys.maxsize)
            for names in (function.inputs, function.outputs)
        )

        def piece(first: int, last: int, _table: object = table) -> None:  # keeps the table alive
            if last > given or last - first > made:
                raise DynidentError(
                    f"'{function.name}' is asked for samples {first} to {last} of {given}, {made} at once at most"
                )
            steps = (last - first) // width
            call(first, steps, place)
            if steps * width < last - first:
                rest = {
                    name: arrays[name][..., first:] if name in function.rows else arrays[name][first:]
                    for name in function.inputs
                }
                self._rest({**arrays, **rest}, steps * width, last - first)

        return piece

    def table(self, arrays: Mapping[str, Array], samples: int = 0) -> NDArray[np.int64]:
        """Return the layout of the arrays: address, stride in numbers, and bytes from one sample to the next."""
        function, places = self.function, list[tuple[int, int, int]]()
        for name in self._arrays:
            array, size, shared, by_row = arrays[name], self._sizes[name], name in function.shared, name in function.rows
            if shared:
                enough = array.size >= size
            elif by_row:
                enough = array.shape[0] >= size and array.shape[-1] >= samples
            else:
                enough = array.shape[0] >= samples and array.size >= size * array.shape[0]
            if not enough:  # machine code would access memory outside the array
                raise DynidentError(
                    f"array '{name}' of '{function.name}' has the shape {array.shape}; it needs {size} numbers per sample"
                    + f", {samples} samples" * bool(samples)
                )
            if array.size and (array.dtype != np.float64 or (array.shape[-1] > 1 and array.strides[-1] != 8)):
                raise DynidentError(f"array '{name}' of '{function.name}' must be float64, its last axis contiguous")
            stride = array.strides[0] // 8 if array.ndim > 1 else 1
            places.append((array.ctypes.data, stride, 0 if shared else 8 if by_row else array.strides[0]))
        return np.array(places, dtype=np.int64)

    def _rest(self, arrays: Mapping[str, Array], first: int, last: int) -> None:
        """Compute the last samples, fewer than a vector, in copies padded with the last sample."""
        function, count = self.function, last - first
        padded, place = self._padding()
        for name, own in padded.items():
            given = arrays[name]
            if name in function.shared:
                own[:] = given.reshape(-1)[: own.size]
                continue
            if name in function.inputs or name in self._partial:
                if name in function.rows:
                    given = given.T
                elif given.ndim != 2:
                    given = given.reshape(len(given), -1)  # the sample is the first axis
                own[:] = given[last - 1, : own.shape[1]]
                if count > 1:
                    own[:count] = given[first:last, : own.shape[1]]
        self.call(0, 1, place)
        for name in function.outputs:
            made, given = padded[name][:count], arrays[name]
            if name in function.rows:
                given[: made.shape[1], first:last] = made.T
            elif given.ndim == 2:
                given[first:last, : made.shape[1]] = made
            else:
                given[first:last] = made.reshape(given[first:last].shape)

    def _padding(self) -> tuple[dict[str, Array], int]:
        """Return this thread's arrays for one vector of samples, the sample first, and the address of their table."""
        mine = self._memory
        if not hasattr(mine, "arrays"):
            function, sizes = self.function, self._sizes
            mine.arrays = {
                name: np.zeros(sizes[name])
                if name in function.shared
                else np.zeros((self.width, sizes[name]), order="F" if name in function.rows else "C")
                for name in self._arrays
            }
            mine.table = self.table({n: x.T if n in function.rows else x for n, x in mine.arrays.items()}, self.width)
            mine.place = mine.table.ctypes.data
        return mine.arrays, mine.place


class Evaluated:
    """A `function` by NumPy: machine code of one that is called once, for some hundred samples, takes far longer to compile."""

    def __init__(self, function: Function) -> None:
        self.function = function

    def __call__(self, samples: int, arrays: Mapping[str, Array]) -> None:
        """Fill the outputs (N, ...) for all samples; shared arrays are (k,)."""
        function = self.function
        sizes = {**function.inputs, **function.shared}
        values = {f"{name}[{k}]": arrays[name][..., k] for name, size in sizes.items() for k in range(size)}
        found = iter(evaluate_nodes(function.entries, values))
        for name, nodes in function.outputs.items():
            own = arrays[name].reshape(samples, len(nodes))
            for k in (k for k, node in enumerate(nodes) if node is not None):
                own[:, k] = next(found)


def _without_expressions(function: Function) -> Function:
    """Return a function whose outputs only mark the written entries, so that the graph can be freed after compilation."""
    written = Graph().zero
    outputs = {name: tuple(None if node is None else written for node in nodes) for name, nodes in function.outputs.items()}
    return replace(function, outputs=outputs)


HIGH, WIDE = 4, 3  # rows per block: twelve sums and their operands fit into sixteen registers


class Products:
    """Sums of products of rows; `groups` are the related rows of the array."""

    def __init__(self, groups: Sequence[NDArray[np.int64]]) -> None:
        table: list[list[int]] = []
        self._places: list[NDArray[np.int64]] = []  # indices of the entries of each group's G among the sums
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
        """Return the cached sums of these groups: building thousands of products takes as long as 20 000 samples."""
        return _made(tuple(np.asarray(rows, dtype=np.int64).tobytes() for rows in groups))

    def sums(self, count: int) -> Array:
        """Return `count` zero-initialised accumulators."""
        return np.zeros((count, HIGH * WIDE * len(self._table)))

    def adding(self, rows: Array, sums: Array) -> Callable[[int, int, int], None]:
        """Return a call that adds the products of the samples from a first to a last (not included) to one row of sums.

        Each row's samples are contiguous in rows (height, samples); their addresses are determined once.
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
