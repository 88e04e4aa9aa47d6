"""`Compiled`: a `Function` as machine code, called with NumPy arrays over any number of samples and threads."""

from __future__ import annotations

import ctypes
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dynident.arrays import Array
from dynident.errors import DynidentError
from dynident.graph.expression import Function, Graph
from dynident.graph.machine import MachineCode, vector_width
from dynident.graph.print_llvm import entry_text, function_text, library
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
        body = "\n".join([function_text(function, self.width), entry_text(function, self.width)])
        machine = MachineCode("\n".join([library(body), body]), function.name)
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

        Inputs are of the whole batch; outputs are for the longest piece and are written from their start. Where all arrays are
        in memory is looked up once, so they must live as long as the call.
        """
        function, call, width, table = self.function, self.call, self.width, self.table(arrays)
        table[[name in function.outputs for name in self._arrays], 2] = 0
        place = table.ctypes.data
        given, made = (
            min((arrays[name].shape[-1 if name in function.rows else 0] for name in names), default=sys.maxsize)
            for names in (function.inputs, function.outputs)
        )

        def piece(first: int, last: int, _table: object = table) -> None:  # which lives as long as the function
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
        """Return where the arrays are: address, stride in numbers, and bytes from one sample to the next."""
        function, places = self.function, list[tuple[int, int, int]]()
        for name in self._arrays:
            array, size, shared, by_row = arrays[name], self._sizes[name], name in function.shared, name in function.rows
            if shared:
                enough = array.size >= size
            elif by_row:
                enough = array.shape[0] >= size and array.shape[-1] >= samples
            else:
                enough = array.shape[0] >= samples and array.size >= size * array.shape[0]
            if not enough:  # machine code would read or write beside it
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
        """Compute the last samples, fewer than a vector holds, in copies that are filled up with the last of them."""
        function, count = self.function, last - first
        padded, place = self._padding()
        for name, own in padded.items():
            given = arrays[name]
            if name in function.shared:
                own[:] = given.reshape(-1)[: own.size]
                continue
            if name in function.inputs or name in self._partial:
                given = given.T if name in function.rows else given.reshape(len(given), -1)  # the sample is the first axis
                width = own.shape[1]
                own[:count], own[count:] = given[first:last, :width], given[last - 1, :width]
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


def _without_expressions(function: Function) -> Function:
    """Return a function whose outputs tell only which entries are written: the graph may go once it is compiled."""
    written = Graph().zero
    outputs = {name: tuple(None if node is None else written for node in nodes) for name, nodes in function.outputs.items()}
    return replace(function, outputs=outputs)
