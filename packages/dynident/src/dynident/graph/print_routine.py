"""`Routine` in LLVM's language: blocks, loops and choices around the operations of `print_llvm`."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from dynident.errors import DynidentError
from dynident.graph.expression import Node, reachable
from dynident.graph.function import Function
from dynident.graph.llvm_library import library
from dynident.graph.machine import MachineCode
from dynident.graph.print_llvm import Emitter, Turn, function_text
from dynident.graph.routine import Call, Index, Leave, Load, Repeat, Routine, Save, Statement, When, called


class _Printer:
    """One routine."""

    def __init__(self, routine: Routine) -> None:
        self.routine = routine
        self.out = Emitter(1)
        self.heads: list[str] = []  # memory of the routine's own, made once at its entry
        self.labels = 0
        self.ends: list[str] = []  # where to go when the innermost loop is left

    def text(self) -> str:
        for name, size in self.routine.locals.items():
            self.heads.append(f"  %{name} = alloca [{size} x double], align 64")
        self._block(self.routine.body)
        takes = ", ".join(f"ptr %{array}" for array in self.routine.arrays)
        start = [f"define void @{self.routine.name}({takes}) alignstack(64) {{", "entry:", *self.heads]
        return "\n".join([*start, *self.out.lines, "  ret void", "}"])

    def _label(self, kind: str) -> str:
        self.labels += 1
        return f"{kind}{self.labels}"

    def _compute(self, nodes: Iterable[Node]) -> None:
        """Print what some values need and is not known here yet."""
        for node in reachable(nodes, set(self.out.known)):
            if node.op == "symbol":
                raise DynidentError(f"'{node.name}' is used outside the block in which it was loaded")
            if node.op in ("sin", "cos"):
                if node.index not in self.out.known:
                    graph, angle = node.graph, node.args[0]
                    self.out.turn(Turn((angle,), tuple(graph.call(op, angle) for op in ("sin", "cos"))))
            elif node.op != "const":
                self.out.emit(node)

    def _where(self, array: str, index: Index) -> str:
        if isinstance(index, Node) and index.op == "const":
            index = int(index.value)
        if isinstance(index, Node):
            self._compute([index])
            place = self.out.line(f"fptosi double {self.out.operand(index)} to i64")
            return self.out.line(f"getelementptr double, ptr %{array}, i64 {place}")
        return self.out.line(f"getelementptr double, ptr %{array}, i64 {index}")

    def _jump(self, label: str) -> None:
        self.out.lines.append(f"  br label %{label}")

    def _begin(self, label: str) -> None:
        self.out.lines.append(f"{label}:")

    def _branch(self, condition: Node, yes: str, no: str) -> None:
        self._compute([condition])
        bit = self.out.truth_of(condition)
        self.out.lines.append(f"  br i1 {bit}, label %{yes}, label %{no}")

    @contextmanager
    def _inner(self) -> Iterator[None]:
        """Print a block; what is computed inside is not known afterwards."""
        known, truths = dict(self.out.known), dict(self.out.truths)
        yield
        self.out.known, self.out.truths = known, truths

    def _block(self, body: Sequence[Statement]) -> None:
        for k, statement in enumerate(body):
            if isinstance(statement, Load):
                self.out.known[statement.node.index] = self.out.line(
                    f"load double, ptr {self._where(statement.array, statement.index)}"
                )
            elif isinstance(statement, Save):
                # Neighbouring stores are computed together, before the first of them changes memory.
                later = next((i for i, s in enumerate(body[k:]) if not isinstance(s, Save)), len(body) - k)
                self._compute([s.value for s in body[k : k + later] if isinstance(s, Save)])
                at = self._where(statement.array, statement.index)
                self.out.lines.append(f"  store double {self.out.operand(statement.value)}, ptr {at}")
            elif isinstance(statement, Repeat):
                self._repeat(statement)
            elif isinstance(statement, When):
                self._when(statement)
            elif isinstance(statement, Leave):
                on = self._label("on")
                self._branch(statement.condition, self.ends[-1], on)
                self._begin(on)
            else:
                self._call(statement)

    def _repeat(self, loop: Repeat) -> None:
        memory, head, body, after = (self._label(kind) for kind in ("count", "head", "body", "after"))
        self.heads.append(f"  %{memory} = alloca i64")
        count = str(loop.count)
        if isinstance(loop.count, Node):
            self._compute([loop.count])
            count = self.out.line(f"fptosi double {self.out.operand(loop.count)} to i64")
        self.out.lines.append(f"  store i64 0, ptr %{memory}")
        self._jump(head)
        self._begin(head)
        now = self.out.line(f"load i64, ptr %{memory}")
        more = self.out.line(f"icmp slt i64 {now}, {count}")
        self.out.lines.append(f"  br i1 {more}, label %{body}, label %{after}")
        self._begin(body)
        with self._inner():
            self.out.known[loop.counter.index] = self.out.line(f"sitofp i64 {now} to double")
            self.ends.append(after)
            self._block(loop.body)
            self.ends.pop()
        following = self.out.line(f"add i64 {now}, 1")
        self.out.lines.append(f"  store i64 {following}, ptr %{memory}")
        self._jump(head)
        self._begin(after)

    def _when(self, choice: When) -> None:
        yes, no, after = (self._label(kind) for kind in ("yes", "no", "after"))
        self._branch(choice.condition, yes, no)
        for label, body in ((yes, choice.body), (no, choice.other)):
            self._begin(label)
            with self._inner():
                self._block(body)
            self._jump(after)
        self._begin(after)

    def _call(self, call: Call) -> None:
        words = [self._where(*call.places[array]) for array in call.what.arrays]
        if isinstance(call.what, Function):
            gives = ", ".join(f"ptr {word}, i64 0" for word in words)
            self.out.lines.append(f"  call void @{call.what.name}_1(i64 1, {gives})")
        else:
            self.out.lines.append(f"  call void @{call.what.name}({', '.join(f'ptr {word}' for word in words)})")


def module_text(routines: Sequence[Routine]) -> str:
    """Return the module with some routines and all that they call."""
    whole = called(routines)
    parts = [function_text(what, 1) if isinstance(what, Function) else _Printer(what).text() for what in whole]
    body = "\n".join(parts)
    return "\n".join([library(body), body])


def compile_routines(routines: Sequence[Routine], what: str = "routines") -> dict[str, Any]:
    """Return routines as machine code, by name; each takes the addresses of its arrays, ``array.ctypes.data``."""
    machine = MachineCode(module_text(routines), what, loops=True)
    return {routine.name: machine.function(routine.name, [ctypes.c_void_p] * len(routine.arrays)) for routine in routines}
