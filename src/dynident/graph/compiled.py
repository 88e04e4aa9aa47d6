"""`Compiled`: a `Function` as machine code, called with NumPy arrays over any number of samples and threads."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dynident.graph.expression import Graph
from dynident.graph.function import Function
from dynident.graph.llvm_library import library
from dynident.graph.machine import MachineCode, vector_width
from dynident.graph.print_llvm import function_text
from dynident.parallel import over_samples

Array = NDArray[np.float64]


class Compiled:
    """Machine code of one function for batches of samples.

    Parameters
    ----------
    function : Function
        What to compile.
    width : int, optional
        Samples per step; what the processor's registers hold when omitted.
    """

    def __init__(self, function: Function, width: int | None = None) -> None:
        self.function = _without_expressions(function)
        self.width = vector_width() if width is None else width
        body = function_text(function, self.width)
        self._machine = MachineCode("\n".join([library(body), body]), function.name)
        kinds = [ctypes.c_int64] + [ctypes.c_void_p, ctypes.c_int64] * len(function.arrays)
        self._call = self._machine.function(f"{function.name}_{self.width}", kinds)

    def __call__(self, samples: int, arrays: Mapping[str, Array], threads: bool = True) -> None:
        """Fill the outputs for all samples.

        Parameters
        ----------
        samples : int
            N.
        arrays : mapping of str to ndarray
            Inputs and outputs (N, ...) or, for rows, (k, at least N), and shared arrays (k,): float64, each sample's numbers
            next to each other (rows: each entry's samples next to each other).
        threads : bool
            Whether long batches may use all cores; results do not depend on it.
        """
        whole = samples - samples % self.width
        if whole:
            if threads:
                over_samples(whole, lambda i, j: self._run(arrays, i, j), self.width)
            else:
                self._run(arrays, 0, whole)
        if whole < samples:
            self._rest(arrays, whole, samples)

    def fixed(self, arrays: Mapping[str, Array]) -> Callable[[], None]:
        """Return a call for one sample per vector lane on these very arrays, whose places in memory are looked up once.

        Parameters
        ----------
        arrays : mapping of str to ndarray
            As for a call with as many samples as the width; they must live as long as what is returned.

        Returns
        -------
        callable
            Takes nothing and fills the outputs.
        """
        words = self._words(arrays, 0, self.width)
        return lambda: self._call(*words)

    def _run(self, arrays: Mapping[str, Array], first: int, last: int) -> None:
        """Call the machine code for the samples from `first` up to `last`, a multiple of the width."""
        self._call(*self._words(arrays, first, last))

    def _words(self, arrays: Mapping[str, Array], first: int, last: int) -> list[int]:
        """Return the arguments of the machine code: number of steps, then address and stride of every array."""
        words: list[int] = [(last - first) // self.width]
        for name in self.function.arrays:
            array = arrays[name]
            stride = array.strides[0] // 8 if array.ndim > 1 else 1
            if array.size and (array.dtype != np.float64 or (array.shape[-1] > 1 and array.strides[-1] != 8)):
                raise ValueError(f"array '{name}' of '{self.function.name}' must be float64, its last axis contiguous")
            if name in self.function.shared:
                at = array.ctypes.data
            elif name in self.function.rows:
                at = array.ctypes.data + 8 * first
            else:
                at = array.ctypes.data + array.strides[0] * first
            words += [at, stride]
        return words

    def _rest(self, arrays: Mapping[str, Array], first: int, last: int) -> None:
        """Compute the last samples, fewer than a vector holds, in copies that are filled up with the last of them."""
        count = last - first
        padded: dict[str, Array] = {}
        for name in self.function.arrays:
            array = arrays[name]
            if name in self.function.shared:
                padded[name] = array
            elif name in self.function.rows:
                padded[name] = np.empty((array.shape[0], self.width))
                if name in self.function.inputs or None in self.function.outputs[name]:
                    padded[name][:, :count] = array[:, first:last]
                    padded[name][:, count:] = array[:, last - 1 : last]
            else:
                padded[name] = np.empty((self.width, *array.shape[1:]))
                if name in self.function.inputs or None in self.function.outputs[name]:
                    padded[name][:count] = array[first:last]
                    padded[name][count:] = array[last - 1]
        self._run(padded, 0, self.width)
        for name in self.function.outputs:
            if name in self.function.rows:
                arrays[name][:, first:last] = padded[name][:, :count]
            else:
                arrays[name][first:last] = padded[name][:count]


def _without_expressions(function: Function) -> Function:
    """Return a function whose outputs tell only which entries are written: the graph may go once it is compiled."""
    written = Graph().zero
    outputs = {name: tuple(None if node is None else written for node in nodes) for name, nodes in function.outputs.items()}
    return replace(function, outputs=outputs)
