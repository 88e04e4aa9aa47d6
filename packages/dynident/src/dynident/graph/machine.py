"""From LLVM's language to executable code: the processor, the width of its vectors, the level of optimisation."""

from __future__ import annotations

import ctypes
import logging
import os
import threading
from collections.abc import Sequence
from functools import lru_cache
from time import perf_counter
from typing import Any

from dynident.errors import DynidentError
from dynident.graph import cache

SHORT, LARGE = 1000, 12_000  # lines of a module above which optimisation is reduced
HUGE = 60_000  # lines above which code is generated without optimisation: seconds saved, code about 2.5 times slower
SLOW = 1.0  # [s] longer compilations are announced
PER_LINE = 1e-4  # [s] longest compilation time per line on a usual processor

log = logging.getLogger(__name__)
_lock = threading.Lock()  # LLVM's context compiles for one thread at a time


def _llvm() -> Any:
    import llvmlite.binding  # noqa: PLC0415 - costs import time

    return llvmlite


@lru_cache(maxsize=1)
def target() -> tuple[str, str, str]:
    """Return triple, processor and features of the target; ``DYNIDENT_CPU`` names another processor."""
    binding = _llvm().binding
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    named = os.environ.get("DYNIDENT_CPU", "")
    if named:
        return binding.get_process_triple(), named, ""
    return binding.get_process_triple(), binding.get_host_cpu_name(), binding.get_host_cpu_features().flatten()


@lru_cache(maxsize=1)
def vector_width() -> int:
    """Return the number of doubles in a vector register of the processor: 2, 4 or 8."""
    _, processor, features = target()
    if not features:
        return {"x86-64-v3": 4, "x86-64-v4": 8}.get(processor, 2)
    on = {name[1:] for name in features.split(",") if name.startswith("+")}
    return 8 if "avx512f" in on else 4 if "avx" in on else 2


class MachineCode:
    """Machine code of the functions of a module in LLVM's language; it lives as long as this object, or any of them.

    `loops`: the code has loops and local memory and gains from LLVM's passes; straight-line code does not. `library` is a
    module with functions that `text` calls.
    """

    def __init__(self, text: str, what: str = "functions", loops: bool = False, library: str = "") -> None:
        llvm = _llvm()
        binding = llvm.binding
        with _lock:
            lines = text.count("\n")
            level = 0 if lines > HUGE else 2 if loops and lines <= LARGE else 1
            triple, processor, features = target()
            machine = binding.Target.from_triple(triple).create_target_machine(
                cpu=processor, features=features, opt=level, jit=True
            )
            empty = binding.parse_assembly("")
            empty.triple = triple
            self._engine: Any = binding.create_mcjit_compiler(empty, machine)
            for part in filter(None, (library, text)):
                versions = llvm.__version__, str(binding.llvm_version_info)
                key = cache.key_of(part, triple, processor, features, str((level, loops)), *versions)
                body = cache.read(key)
                if body is None:
                    if lines * PER_LINE > SLOW:
                        log.info("compiling %s, about %.0f s; its code is then kept on disk", what, lines * PER_LINE)
                    body = self._compiled(binding, machine, part, loops and level > 0, what)
                    cache.write(key, body)
                self._engine.add_object_file(binding.ObjectFileRef.from_data(body))
            self._engine.finalize_object()

    @staticmethod
    def _compiled(binding: Any, machine: Any, text: str, passes: bool, what: str) -> bytes:
        start = perf_counter()
        try:
            module = binding.parse_assembly(text)
        except RuntimeError as error:
            raise DynidentError(f"{what}: invalid LLVM IR ({' '.join(str(error).split())[:200]})") from error
        module.triple, module.data_layout = target()[0], str(machine.target_data)
        if passes:
            # A higher level costs twice the time without faster code; level 1 takes half of it, and long code gains 2 to 7 %.
            options = binding.create_pipeline_tuning_options(speed_level=1 if text.count("\n") <= SHORT else 0)
            options.loop_vectorization = options.slp_vectorization = False  # the printer has done that
            builder = binding.create_pass_builder(machine, options)
            builder.getModulePassManager().run(module, builder)
        body: bytes = machine.emit_object(module)
        seconds = perf_counter() - start
        log.log(logging.INFO if seconds > SLOW else logging.DEBUG, "compiled %s in %.1f s", what, seconds)
        return body

    def function(self, name: str, kinds: Sequence[Any]) -> Any:
        """Return a function, by name and ctypes types of its arguments: it releases the interpreter lock and keeps its code."""
        call = ctypes.CFUNCTYPE(None, *kinds)(self.address(name))
        call.machine = self  # type: ignore[attr-defined]
        return call

    def address(self, name: str) -> int:
        """Return the address of a function."""
        return int(self._engine.get_function_address(name))
