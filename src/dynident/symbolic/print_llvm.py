"""Functions of expressions as machine code of this process, through LLVM.

A straight line of a thousand additions and multiplications needs none of what makes numba slow to compile (types, loops,
inlining): printed as LLVM's own language it is machine code within a tenth of a second, so that every robot can have its own.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from dynident.graph import Node, reachable
from dynident.symbolic.llvm_parts import SINC, bits, sine_cosine
from dynident.symbolic.motion import Task

_BINARY = {"add": "fadd", "sub": "fsub", "mul": "fmul", "div": "fdiv"}
_CALLED = {"sqrt": "llvm.sqrt.f64", "sinc": "sinc", "cosc": "cosc"}


def to_llvm(tasks: Sequence[Task]) -> str:
    """Print functions in LLVM's language.

    Parameters
    ----------
    tasks : sequence of Task
        Functions.

    Returns
    -------
    str
        A module; every function takes the addresses of its inputs, then of its outputs, as 64-bit integers.
    """
    return "\n".join([SINC, sine_cosine(), *(_function(task) for task in tasks)])


def _function(task: Task) -> str:
    arrays = (*task.inputs, *task.outputs)  # an aligned stack, because hundreds of values do not fit into registers
    lines = [f"define void @{task.name}({', '.join(f'i64 %{a}' for a in arrays)}) alignstack(64) {{"]
    lines += [f"  %at_{a} = inttoptr i64 %{a} to ptr" for a in arrays]
    order = [node for node in reachable(entry.value for entry in task.entries) if node.op != "const"]
    symbols = [node for node in order if node.op == "symbol"]
    for node in symbols:  # all inputs are read before anything is written: outputs may be inputs
        array, place = node.name[:-1].split("[")
        lines.append(f"  %p{node.index} = getelementptr double, ptr %at_{array}, i64 {place}")
        lines.append(f"  %x{node.index} = load double, ptr %p{node.index}")
    angles = list(dict.fromkeys(node.args[0] for node in order if node.op in ("sin", "cos")))
    for first in range(0, len(angles), 4):
        lines += _turns(first, angles[first : first + 4], {node for node in order if node.op in ("sin", "cos")})
    for node in order:
        x, args = f"%x{node.index}", [_operand(arg) for arg in node.args]
        if node.op == "neg":
            lines.append(f"  {x} = fneg double {args[0]}")
        elif node.op in _BINARY:
            lines.append(f"  {x} = {_BINARY[node.op]} contract double {args[0]}, {args[1]}")
        elif node.op in _CALLED:
            lines.append(f"  {x} = call double @{_CALLED[node.op]}(double {args[0]})")
    for k, entry in enumerate(task.entries):
        lines.append(f"  %o{k} = getelementptr double, ptr %at_{entry.array}, i64 {entry.index}")
        lines.append(f"  store double {_operand(entry.value)}, ptr %o{k}")
    return "\n".join([*lines, "  ret void", "}"])


def _turns(group: int, angles: Sequence[Node], wanted: Collection[Node]) -> list[str]:
    """Return the lines for sines and cosines of up to four angles, which are coordinates."""
    lines, vector = [], "undef"
    for i in range(4):
        angle = _operand(angles[i]) if i < len(angles) else bits(0.0)
        lines.append(f"  %g{group}_{i} = insertelement <4 x double> {vector}, double {angle}, i32 {i}")
        vector = f"%g{group}_{i}"
    pair = "{<4 x double>, <4 x double>}"
    lines.append(f"  %g{group} = call {pair} @sine_cosine(<4 x double> {vector})")
    for k, op in enumerate(("sin", "cos")):
        lines.append(f"  %g{group}{op} = extractvalue {pair} %g{group}, {k}")
        lines += [
            f"  %x{node.index} = extractelement <4 x double> %g{group}{op}, i32 {angles.index(node.args[0])}"
            for node in wanted
            if node.op == op and node.args[0] in angles
        ]
    return lines


def _operand(node: Node) -> str:
    if node.op == "const":
        return bits(node.value)
    return f"%x{node.index}"


class Native:
    """Machine code of some functions; it lives as long as this object.

    Parameters
    ----------
    tasks : sequence of Task
        Functions.
    """

    def __init__(self, tasks: Sequence[Task]) -> None:
        from llvmlite import binding  # noqa: PLC0415 - comes with numba, imported on first use

        binding.initialize_native_target()
        binding.initialize_native_asmprinter()
        processor = binding.get_host_cpu_name(), binding.get_host_cpu_features().flatten()
        machine = binding.Target.from_default_triple().create_target_machine(*processor, opt=2, jit=True)
        module = binding.parse_assembly(to_llvm(tasks))
        module.triple, module.data_layout = binding.get_default_triple(), str(machine.target_data)
        module.verify()
        builder = binding.create_pass_builder(machine, binding.create_pipeline_tuning_options(speed_level=2))
        builder.getModulePassManager().run(module, builder)
        self._engine: Any = binding.create_mcjit_compiler(module, machine)
        self._engine.finalize_object()
        self._names = {task.name for task in tasks}

    def address(self, name: str) -> int:
        """Return where a function begins in memory.

        Parameters
        ----------
        name : str
            One of the functions.

        Returns
        -------
        int
            Address; 0 when there is no such function.
        """
        return int(self._engine.get_function_address(name)) if name in self._names else 0
