"""`Function` and `Routine` in LLVM's language: W samples at a time, or one.

A function is a straight line of operations on ``<W x double>``. Up to W numbers of each of W samples are read at once and
transposed (W x W, by shuffles), and transposed back when they are written. A long function is cut into pieces that pass shared
values through memory, because the time of LLVM's register allocator grows faster than the length of a function. A routine
puts blocks, loops and choices around these operations.
"""

from __future__ import annotations

import ctypes
import re
import struct
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, reduce
from importlib import resources
from itertools import product
from typing import Any

from dynident.errors import DynidentError
from dynident.graph.expression import Function, Node, reachable
from dynident.graph.machine import MachineCode
from dynident.graph.operations import DSINC_SERIES, SINC_SERIES, SMALL
from dynident.graph.routine import Call, Index, Leave, Load, Repeat, Routine, Save, Statement, When, called

_TANH_PARTS = {
    "NUMERATOR": ("n", (-9.64399179425052238628e-01, -9.92877231001918586564e01, -1.61468768441708447952e03), "%z"),
    "DENOMINATOR": ("d", (1.0, 1.12811678491632931402e02, 2.23548839060100448583e03, 4.84406305325125486048e03), "%z"),
    "UP": ("u", (1.26177193074810590878e-04, 3.02994407707441961300e-02, 9.99999999999999999910e-01), "%rr"),
    "DOWN": (
        "w",
        (3.00198505138664455042e-06, 2.52448340349684104192e-03, 2.27265548208155028766e-01, 2.0),
        "%rr",
    ),
}
# Highest power first.
_SINE = (
    *(1.58969099521155010221e-10, -2.50507602534068634195e-08, 2.75573137070700676789e-06),
    *(-1.98412698298579493134e-04, 8.33333333332248946124e-03, -1.66666666666666324348e-01),
)
_COSINE = (
    *(-1.13596475577881948265e-11, 2.08757232129817482790e-09, -2.75573143513906633035e-07),
    *(2.48015872894767294178e-05, -1.38888888888741095749e-03, 4.16666666666666019037e-02),
)
_LIBRARY = {"sin": 1, "cos": 1, "exp": 1, "log": 1, "pow": 2, "atan2": 2}  # of the C library, by number of arguments
_INTRINSIC = {"sqrt": "sqrt", "floor": "floor", "abs": "fabs"}


def bits(value: float) -> str:
    """Return a number exactly, as its bits."""
    return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"


def splat(value: float, width: int) -> str:
    """Return a number, repeated for every sample."""
    return bits(value) if width == 1 else "<" + ", ".join([f"double {bits(value)}"] * width) + ">"


def whole(value: int, width: int) -> str:
    """Return an integer, repeated for every sample."""
    return str(value) if width == 1 else f"<{', '.join([f'i64 {value}'] * width)}>"


def of_width(kind: str, width: int) -> str:
    """Return the type of a vector of numbers, truths or integers."""
    return kind if width == 1 else f"<{width} x {kind}>"


def _polynomial(name: str, factors: Sequence[float], variable: str = "%z") -> str:
    """Return Horner's scheme, highest power first, with numbers in braces; the result is %name<degree>."""
    lines, last = [], f"{{{factors[0]!r}}}"
    for i, factor in enumerate(factors[1:], 1):
        lines += [
            f"%{name}m{i} = fmul contract V {last}, {variable}",
            f"%{name}{i} = fadd contract V %{name}m{i}, {{{factor!r}}}",
        ]
        last = f"%{name}{i}"
    return "\n  ".join(lines)


def _sinc(name: str, series: Sequence[float], away: str) -> str:
    """Return a function of x^2 with its series near zero; `away` computes %far from %s, its root %x, %sin and %cos."""
    degree = len(series) - 1
    return f"""define internal V @{name}_W(V %square) {{
  %near = fcmp ole V %square, {{{SMALL!r}}}
  %s = select T %near, V {{{SMALL!r}}}, V %square
  %x = call V @llvm.sqrt.vWf64(V %s)
  %sin = call V @sin_W(V %x)
  %cos = call V @cos_W(V %x)
  {away}
  {_polynomial("p", tuple(reversed(series)), "%square")}
  %value = select T %near, V %p{degree}, V %far
  ret V %value
}}
"""


@cache
def _template(name: str) -> str:
    """Return the code of a function for vectors of any width, before `_filled`."""
    return (resources.files("dynident.graph") / f"{name}.ll.txt").read_text(encoding="utf-8")


def _filled(text: str, width: int) -> str:
    """Return a template with its placeholders replaced: numbers {1.5}, vector V, truth T and width W."""
    text = re.sub(r"\{(-?[\d.]+(?:e[+-]?\d+)?)\}", lambda found: splat(float(found[1]), width), text)
    for letter, kind in (("V", "double"), ("T", "i1"), ("I", "i64")):
        text = re.sub(rf"\b{letter}\b", of_width(kind, width), text)
    text = re.sub(r"_W\b", f"_{width}", text).replace("<W x", f"<{width} x")
    return re.sub(r"\.vW(f64|i1)", r".\1" if width == 1 else rf".v{width}\1", text).replace("{{", "{").replace("}}", "}")


def _by_lanes(name: str, count: int, width: int) -> str:
    """Return a function of the C library for a vector: one call per lane."""
    T = of_width("double", width)
    takes = ", ".join(f"{T} %x{i}" for i in range(count))
    lines = [f"define internal {T} @{name}_{width}({takes}) {{"]
    if width == 1:
        gives = ", ".join(f"double %x{i}" for i in range(count))
        return "\n".join([*lines, f"  %y = call double @{name}({gives})", "  ret double %y", "}"])
    for i in range(count):
        lines += [f"  %m{i} = alloca [{width} x double], align {8 * width}", f"  store {T} %x{i}, ptr %m{i}"]
    lines += ["  br label %loop", "loop:", "  %k = phi i64 [0, %0], [%next, %loop]"]
    for i in range(count):
        lines += [f"  %p{i} = getelementptr double, ptr %m{i}, i64 %k", f"  %a{i} = load double, ptr %p{i}"]
    gives = ", ".join(f"double %a{i}" for i in range(count))
    lines += [f"  %y = call double @{name}({gives})", "  store double %y, ptr %p0", "  %next = add i64 %k, 1"]
    lines += [f"  %done = icmp eq i64 %next, {width}", "  br i1 %done, label %end, label %loop", "end:"]
    return "\n".join([*lines, f"  %v = load {T}, ptr %m0", f"  ret {T} %v", "}"])


_NEEDS = {**dict.fromkeys(("sine_cosine", "sinc", "dsinc"), ("sin", "cos")), "tanh": ()}


def declared(text: str) -> str:
    """Return a module with declarations of LLVM's own functions that it calls."""
    found = {}
    for kind, name, given in re.findall(r"call ([^@]+) @(llvm\.[\w.]+)\((.*)\)", text):
        kinds = (word.rsplit(" ", 1)[0] for word in re.sub(r"<(?:double|i1) [^>]*>", "", given).split(", "))
        found[name] = f"declare {kind} @{name}({', '.join(kinds)})"
    return "\n".join([*found.values(), text])


def apart(text: str) -> tuple[str, str]:
    """Return a module that calls functions of a library, and the library, which is compiled once for many modules."""
    shared = library(text).replace("define internal", "define")
    heads = re.findall(r"^define (.*\))[^)]*{$", shared, re.MULTILINE)
    return declared("\n".join([*(f"declare {head}" for head in heads), text])), declared(shared)


def library(text: str) -> str:
    """Return declarations and definitions of only the functions called by a printed text."""
    wanted = {(name, int(width)) for name, width in re.findall(r"call [^@]*@([a-z0-9_]+)_(\d+)\(", text)}
    wanted &= {(name, width) for name in (*_LIBRARY, *_NEEDS) for _, width in wanted}
    for name, width in list(wanted):
        wanted |= {(other, width) for other in _NEEDS.get(name, ())}
    parts = [f"declare double @{name}({', '.join(['double'] * n)})" for name, n in _LIBRARY.items() if name in dict(wanted)]
    for name, width in sorted(wanted):
        if name in _LIBRARY:
            parts.append(_by_lanes(name, _LIBRARY[name], width))
        elif name == "sine_cosine":
            body = _template(name).replace("COSINE", _polynomial("c", _COSINE)).replace("SINE", _polynomial("s", _SINE))
            for word, bits_of in (("ONE", 1), ("TWO", 2), ("SHIFT", 62)):
                body = body.replace(word, whole(bits_of, width))
            parts.append(_filled(body, width))
        elif name == "tanh":
            body = reduce(lambda text, part: text.replace(part[0], _polynomial(*part[1])), _TANH_PARTS.items(), _template(name))
            parts.append(_filled(body.replace("SHIFT", whole(52, width)), width))
        elif name == "sinc":
            parts.append(_filled(_sinc("sinc", SINC_SERIES, "%far = fdiv V %sin, %x"), width))
        else:
            away = "%ratio = fdiv V %sin, %x\n  %gap = fsub V %cos, %ratio\n  %two = fadd V %s, %s\n  %far = fdiv V %gap, %two"
            parts.append(_filled(_sinc("dsinc", DSINC_SERIES, away), width))
    return "\n".join(parts)


CUT, SHORT = 1200, 300  # operations of one piece; of a function that needs no pieces inside the loop over samples
GROUP, MOST = 4, 16  # fewest and most angles whose sines a function of one sample computes together

_BINARY = {"add": "fadd", "sub": "fsub", "mul": "fmul", "div": "fdiv"}
_ORDER = {"lt": "olt", "le": "ole", "eq": "oeq"}
_CALLED = ("exp", "log", "tanh", "pow", "atan2", "sinc", "dsinc")


@dataclass(frozen=True)
class Turn:
    """Sine and cosine of some angles, computed together."""

    angles: tuple[Node, ...]
    results: tuple[Node, ...]


@dataclass(frozen=True)
class Store:
    """Neighbouring entries of an output array, written together."""

    array: str
    first: int
    values: tuple[Node, ...]


Instruction = Node | Turn | Store


class Emitter:
    """Prints operations on vectors of `width` samples, or on plain numbers where it is 1, one line each."""

    def __init__(self, width: int) -> None:
        self.width = width
        self.type, self.truth = of_width("double", width), of_width("i1", width)
        self.lines: list[str] = []
        self.known: dict[int, str] = {}  # node -> name of its value
        self.truths: dict[int, str] = {}  # comparison -> name of its bit
        self._count = 0

    def line(self, text: str) -> str:
        """Append an instruction that has a result, and return the result's name."""
        self._count += 1
        name = f"%.{self._count}"
        self.lines.append(f"  {name} = {text}")
        return name

    def constant(self, value: float) -> str:
        """Return a number, repeated for every sample."""
        return splat(value, self.width)

    def operand(self, node: Node) -> str:
        """Return the value of a node that was printed before."""
        return self.constant(node.value) if node.op == "const" else self.known[node.index]

    def truth_of(self, node: Node) -> str:
        """Return a condition as a bit."""
        found = self.truths.get(node.index)
        return found or self.line(f"fcmp une {self.type} {self.operand(node)}, {self.constant(0.0)}")

    def emit(self, node: Node) -> None:
        """Print one operation; its arguments are already printed."""
        args = [self.operand(arg) for arg in node.args] if node.op != "select" else []
        T = self.type
        if node.op in _BINARY:
            name = self.line(f"{_BINARY[node.op]} contract nsz {T} {args[0]}, {args[1]}")  # -(a - b) is b - a
        elif node.op == "neg":
            name = self.line(f"fneg nsz {T} {args[0]}")
        elif node.op in _ORDER:
            bit = self.truths[node.index] = self.line(f"fcmp {_ORDER[node.op]} {T} {args[0]}, {args[1]}")
            name = self.line(f"uitofp {self.truth} {bit} to {T}")
        elif node.op in ("min", "max"):
            bit = self.line(f"fcmp {'olt' if node.op == 'min' else 'ogt'} {T} {args[0]}, {args[1]}")
            name = self.line(f"select {self.truth} {bit}, {T} {args[0]}, {T} {args[1]}")
        elif node.op == "select":
            bit = self.truth_of(node.args[0])
            name = self.line(f"select {self.truth} {bit}, {T} {self.operand(node.args[1])}, {T} {self.operand(node.args[2])}")
        elif node.op == "sign":
            up = self.line(f"fcmp ogt {T} {args[0]}, {self.constant(0.0)}")
            down = self.line(f"fcmp olt {T} {args[0]}, {self.constant(0.0)}")
            plus, minus = (self.line(f"uitofp {self.truth} {bit} to {T}") for bit in (up, down))
            name = self.line(f"fsub {T} {plus}, {minus}")
        elif node.op in _INTRINSIC:
            lanes = "" if self.width == 1 else f"v{self.width}"
            name = self.line(f"call {T} @llvm.{_INTRINSIC[node.op]}.{lanes}f64({T} {args[0]})")
        elif node.op in _CALLED:
            name = self.line(f"call {T} @{node.op}_{self.width}({', '.join(f'{T} {arg}' for arg in args)})")
        else:
            raise DynidentError(f"the operation '{node.op}' has no machine code")
        self.known[node.index] = name

    def turn(self, turn: Turn) -> None:
        """Print the sines and cosines of some angles: one vector of samples, or up to sixteen plain numbers."""
        wide = self.width if self.width > 1 else max(GROUP, 1 << (len(turn.angles) - 1).bit_length())
        T = f"<{wide} x double>"
        angle = self.operand(turn.angles[0])
        if self.width == 1:
            angle = "poison"
            for i in range(wide):
                value = self.operand(turn.angles[i]) if i < len(turn.angles) else bits(0.0)
                angle = self.line(f"insertelement {T} {angle}, double {value}, i32 {i}")
        pair = self.line(f"call {{{T}, {T}}} @sine_cosine_{wide}({T} {angle})")
        both = {op: self.line(f"extractvalue {{{T}, {T}}} {pair}, {k}") for k, op in enumerate(("sin", "cos"))}
        for node in turn.results:
            value = both[node.op]
            if self.width == 1:
                value = self.line(f"extractelement {T} {value}, i32 {turn.angles.index(node.args[0])}")
            self.known[node.index] = value

    def repeated(self, number: str) -> str:
        """Return a number of this run, repeated for every sample."""
        one = self.line(f"insertelement {self.type} poison, double {number}, i32 0")
        return self.line(f"shufflevector {self.type} {one}, {self.type} poison, <{self.width} x i32> zeroinitializer")

    def first(self, count: int) -> str:
        """Return the alignment of a row and the mask of its first entries; LLVM recognises a mask of all entries."""
        return f"i32 8, {self.truth} <{', '.join(f'i1 {int(k < count)}' for k in range(self.width))}>"

    def transposed(self, values: Sequence[str]) -> list[str]:
        """Return the rows of the W x W matrix whose columns are `values`.

        Blocks of 1, 2, 4, ... entries are exchanged across the diagonal: processors have these shuffles, and LLVM would
        compile others several times slower.
        """
        W, T = self.width, self.type
        rows, b = list(values), 1
        while b < W:
            if b == 1:  # even or odd numbers of both, in turn
                halves = [[k // 2 * 2 + half + W * (k % 2) for k in range(W)] for half in range(2)]
            else:  # even or odd pairs of the first, then of the second
                halves = [[k for k in range(2 * W) if k // 2 % 2 == half] for half in range(2)]
            masks = [f"<{W} x i32> <{', '.join(f'i32 {k}' for k in half)}>" for half in halves]
            for i in range(W):
                if not i & b:
                    pair = f"shufflevector {T} {rows[i]}, {T} {rows[i + b]}"
                    rows[i], rows[i + b] = (self.line(f"{pair}, {mask}") for mask in masks)
            b *= 2
        return rows


def instructions(function: Function, width: int) -> list[Instruction]:
    """Return the instructions of a function: every value shortly before its first use, every store as early as possible."""
    stores = [
        Store(array, first, nodes)
        for array, entries in function.outputs.items()
        for first, nodes in _runs(entries, 1 if array in function.rows else width)
    ]
    stores.sort(key=lambda store: max(node.index for node in store.values))  # keeps fewer values alive
    turns = _turns(reachable([node for store in stores for node in store.values]), 1 if width > 1 else MOST)
    done: set[int] = set()
    turned: set[int] = set()
    result: list[Instruction] = []
    for store in stores:
        for node in reachable(store.values, done):
            turn = turns.get(node.index)
            if turn is None and node.op != "const":
                result.append(node)
            elif turn is not None and id(turn) not in turned:
                turned.add(id(turn))
                result.append(turn)
        result.append(store)
    return result


def _runs(entries: Sequence[Node | None], width: int) -> Iterable[tuple[int, tuple[Node, ...]]]:
    """Yield neighbouring entries that are written together: `width` of them, or fewer before a gap."""
    run: list[Node] = []
    for i, node in enumerate([*entries, None]):
        if node is not None:
            run.append(node)
        if run and (node is None or len(run) == width):
            first = i - len(run) + (node is not None)
            yield first, tuple(run)
            run = []


def _turns(order: Sequence[Node], group: int) -> dict[int, Turn]:
    """Return the `Turn` of every sine and cosine; only angles that are inputs share one."""
    uses: dict[Node, list[Node]] = {}
    for node in order:
        if node.op in ("sin", "cos"):
            uses.setdefault(node.args[0], []).append(node)
    plain = [angle for angle in uses if angle.op == "symbol"]
    batches = [tuple(plain[i : i + group]) for i in range(0, len(plain), group)]
    batches += [(angle,) for angle in uses if angle.op != "symbol"]
    found: dict[int, Turn] = {}
    for angles in batches:
        results = tuple(node for angle in angles for node in uses[angle])
        found |= dict.fromkeys((node.index for node in results), Turn(angles, results))
    return found


class FunctionPrinter:
    """One function at one width."""

    def __init__(self, function: Function, width: int, routine: bool = False) -> None:
        self.function, self.width, self.routine = function, width, routine
        self.name = f"{function.name}_{width}"
        self.align = f"alignstack({max(16, 8 * width)})"
        self.type, work = of_width("double", width), instructions(function, width)
        self.pieces = [work[i : i + CUT] for i in range(0, len(work), CUT)] or [[]]
        self.whole = len(work) <= min(CUT, CUT if width == 1 else SHORT)
        self.slots = self._handed_over()

    def _handed_over(self) -> dict[int, int]:
        """Return the place in memory of every value needed by a later piece; inputs are read again instead."""
        made: dict[int, int] = {}
        slots: dict[int, int] = {}
        for number, piece in enumerate(self.pieces):
            for step in piece:
                for node in _needs(step):
                    if node.op not in ("const", "symbol") and made[node.index] != number:
                        slots.setdefault(node.index, len(slots))
                for node in _makes(step):
                    made[node.index] = number
        return slots

    def text(self) -> str:
        """Return ``<name>_1(addresses of the arrays)``, which takes one sample, for routines."""
        takes = ", ".join(f"ptr %{a}.at" for a in self.function.arrays)
        head = f"define internal void @{self.name}({takes}) {self.align} {{"
        return "\n".join([*self._pieces(), head, *self._step("0"), "  ret void", "}"])

    def entry(self) -> str:
        """Return ``entry(first sample, number of steps of W samples, table of the arrays)``.

        A row of the table is the address of an array, its stride in numbers, and the bytes from one sample to the next: a
        call has three arguments for any number of arrays, whose addresses are determined once.
        """
        lines = [f"define void @entry(i64 %first, i64 %steps, ptr %table) {self.align} {{"]
        now, following = list[str](), ["  %next = add i64 %k, 1"]
        for k, a in enumerate(self.function.arrays):
            for i, (word, kind) in enumerate((("start", "ptr"), ("stride", "i64"), ("bytes", "i64"))):
                lines.append(f"  %{a}.{i} = getelementptr i64, ptr %table, i64 {3 * k + i}")
                lines.append(f"  %{a}.{word} = load {kind}, ptr %{a}.{i}")
            lines += [f"  %{a}.offset = mul i64 %{a}.bytes, %first", f"  %{a}.step = mul i64 %{a}.stride, {self.width}"]
            lines.append(f"  %{a}.first = getelementptr i8, ptr %{a}.start, i64 %{a}.offset")
            now.append(f"  %{a}.at = phi ptr [%{a}.first, %0], [%{a}.next, %step]")
            step = "0" if a in self.function.shared else self.width if a in self.function.rows else f"%{a}.step"
            following.append(f"  %{a}.next = getelementptr double, ptr %{a}.at, i64 {step}")
        body = self._step("%{}.stride")
        lines += [line for line in body if " alloca " in line]
        lines += ["  br label %loop", "loop:", "  %k = phi i64 [0, %0], [%next, %step]", *now]
        lines += ["  %more = icmp slt i64 %k, %steps", "  br i1 %more, label %step, label %end", "step:"]
        lines += [line for line in body if " alloca " not in line] + following
        return "\n".join([*self._pieces(), *lines, "  br label %loop", "end:", "  ret void", "}", ""])

    def _pieces(self) -> Iterator[str]:
        """Yield the functions of the pieces of a long function."""
        takes = ", ".join(f"ptr noalias %{a}.at, i64 %{a}.stride" for a in self.function.arrays)
        for number, piece in enumerate(() if self.whole else self.pieces):
            head = f"define internal void @{self.name}.{number}(ptr noalias %.scratch, {takes}) noinline {self.align} {{"
            yield "\n".join([head, *self._body(piece), "  ret void", "}"])

    def _step(self, stride: str) -> list[str]:
        """Return the lines of one step: the whole body, or calls of its pieces."""
        if self.whole:
            return self._body(self.pieces[0])
        gives = ", ".join(f"ptr %{a}.at, i64 {stride.format(a)}" for a in self.function.arrays)
        calls = [f"  call void @{self.name}.{k}(ptr %.scratch, {gives})" for k in range(len(self.pieces))]
        return [f"  %.scratch = alloca [{max(len(self.slots), 1)} x {self.type}], align {8 * self.width}", *calls]

    def _body(self, piece: list[Instruction]) -> list[str]:
        out = Emitter(self.width)
        places: dict[tuple[str, int], str] = {}  # entries that were read, and addresses of the rows of samples
        made: set[int] = set()
        for step in piece:
            for node in _needs(step):
                if node.op != "const" and node.index not in out.known:
                    out.known[node.index] = self._read(out, node, places, isinstance(step, Turn))
            if isinstance(step, Store):
                self._store(out, step, places)
            elif isinstance(step, Turn):
                out.turn(step)
            elif step.op != "symbol":
                out.emit(step)
            for node in _makes(step):
                if node.index in self.slots and node.index not in made:
                    made.add(node.index)
                    out.lines.append(f"  store {self.type} {out.known[node.index]}, ptr {self._slot(out, node)}")
        return out.lines

    def _slot(self, out: Emitter, node: Node) -> str:
        return out.line(f"getelementptr {self.type}, ptr %.scratch, i64 {self.slots[node.index]}")

    def _read(self, out: Emitter, node: Node, places: dict[tuple[str, int], str], angle: bool) -> str:
        """Print the reading of an input, or of a value of an earlier piece."""
        T, W = self.type, self.width
        if node.op != "symbol":
            return out.line(f"load {T}, ptr {self._slot(out, node)}")
        array, place = node.name[:-1].split("[")
        if W > 1 and array in self.function.shared:
            return out.repeated(out.line(f"load double, ptr {self._place(out, array, place)}"))
        if W == 1 or array in self.function.rows:
            # Angles in a routine are read one by one: a vector of numbers that were written just before waits for the memory.
            load = "load volatile" if angle and self.routine else "load"
            return out.line(f"{load} {T}, ptr {self._place(out, array, place)}, align 8")
        if (array, int(place)) not in places:
            first = int(place) // W * W
            count = min(W, self.function.inputs[array] - first)
            call = f"call {T} @llvm.masked.load.v{W}f64.p0(ptr {{}}, {out.first(count)}, {T} poison)"
            rows = [out.line(call.format(row)) for row in self._rows(out, array, first, places)]
            places |= {(array, first + k): column for k, column in enumerate(out.transposed(rows)[:count])}
        return places[array, int(place)]

    def _store(self, out: Emitter, store: Store, places: dict[tuple[str, int], str]) -> None:
        W, T, values = self.width, self.type, [out.operand(node) for node in store.values]
        if W == 1 or store.array in self.function.rows:
            out.lines.append(f"  store {T} {values[0]}, ptr {self._place(out, store.array, store.first)}, align 8")
            return
        rows, count = self._rows(out, store.array, store.first, places), len(values)
        if count < W < 8:  # too few for fast masks
            for k, (value, (lane, row)) in enumerate(product(values, enumerate(rows))):
                number = out.line(f"extractelement {T} {value}, i32 {lane}")
                at = out.line(f"getelementptr double, ptr {row}, i64 {k // W}")
                out.lines.append(f"  store double {number}, ptr {at}")
            return
        for value, row in zip(out.transposed(values + ["poison"] * (W - count)), rows, strict=True):
            out.lines.append(f"  call void @llvm.masked.store.v{W}f64.p0({T} {value}, ptr {row}, {out.first(count)})")

    def _place(self, out: Emitter, array: str, place: int | str) -> str:
        """Print the address of an entry of the first sample."""
        step = out.line(f"mul i64 %{array}.stride, {place}") if array in self.function.rows else place
        return out.line(f"getelementptr double, ptr %{array}.at, i64 {step}")

    def _rows(self, out: Emitter, array: str, first: int, places: dict[tuple[str, int], str]) -> list[str]:
        """Return the addresses of an entry of W samples."""
        rows = [f"%{array}.at"]
        for lane in range(1, self.width):
            if (f"{array}.row", lane) not in places:
                places[f"{array}.row", lane] = out.line(f"getelementptr double, ptr {rows[-1]}, i64 %{array}.stride")
            rows.append(places[f"{array}.row", lane])
        return [out.line(f"getelementptr double, ptr {row}, i64 {first}") for row in rows] if first else rows


def _needs(step: Instruction) -> tuple[Node, ...]:
    if isinstance(step, Turn):
        return step.angles
    if isinstance(step, Store):
        return step.values
    return (step,) if step.op == "symbol" else step.args


def _makes(step: Instruction) -> tuple[Node, ...]:
    if isinstance(step, Turn):
        return step.results
    return () if isinstance(step, Store) or step.op == "symbol" else (step,)


class _RoutinePrinter:
    """One routine."""

    def __init__(self, routine: Routine) -> None:
        self.routine = routine
        self.out = Emitter(1)
        self.heads: list[str] = []  # local memory of the routine, allocated at its entry
        self.labels = 0
        self.ends: list[str] = []  # label behind the innermost loop

    def text(self, linkage: str) -> str:
        for name, size in self.routine.locals.items():
            self.heads.append(f"  %{name} = alloca [{size} x double], align 64")
        self._block(self.routine.body)
        takes = ", ".join(f"ptr %{array}" for array in self.routine.arrays)
        start = [f"define {linkage}void @{self.routine.name}({takes}) alignstack(64) {{", "entry:", *self.heads]
        return "\n".join([*start, *self.out.lines, "  ret void", "}"])

    def _label(self, kind: str) -> str:
        self.labels += 1
        return f"{kind}{self.labels}"

    def _compute(self, nodes: Iterable[Node]) -> None:
        """Print the computation of some values and of their missing operands."""
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
        """Print a block; values computed inside are not available afterwards."""
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
        name = f"{call.what.name}_1" if isinstance(call.what, Function) else call.what.name
        words = [self._where(*call.places[array]) for array in call.what.arrays]
        self.out.lines.append(f"  call void @{name}({', '.join(f'ptr {word}' for word in words)})")


def module_text(routines: Sequence[Routine]) -> str:
    """Return the module with some routines and everything they call, which LLVM may inline without keeping a copy."""
    parts = []
    for what in called(routines):
        linkage = "" if what in routines else "internal "
        parts.append(
            FunctionPrinter(what, 1, True).text() if isinstance(what, Function) else _RoutinePrinter(what).text(linkage)
        )
    body = "\n".join(parts)
    return declared("\n".join([library(body), body]))


def compile_routines(routines: Sequence[Routine], what: str = "routines") -> dict[str, Any]:
    """Return routines as machine code, by name; each takes the addresses of its arrays, ``array.ctypes.data``."""
    machine = MachineCode(module_text(routines), what, loops=True)
    return {routine.name: machine.function(routine.name, [ctypes.c_void_p] * len(routine.arrays)) for routine in routines}
