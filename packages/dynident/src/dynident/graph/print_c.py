"""C99 of functions and routines: doubles only, no allocation, no recursion, no dependency except math.h."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from dynident.arrays import Array
from dynident.checks import real
from dynident.errors import DynidentError
from dynident.graph.expression import Function, Node
from dynident.graph.operations import DSINC_SERIES, SINC_SERIES, SMALL
from dynident.graph.printing import Dialect, Writer, comment, local_name, schedule, use_counts
from dynident.graph.routine import Call, Index, Leave, Load, Repeat, Routine, Save, Statement, When, called, statements_of

_ORDER = {"lt": "{0} < {1}", "le": "{0} <= {1}", "eq": "{0} == {1}"}
_CALLS = {op: f"{op}({{0}})" for op in ("sin", "cos", "sqrt", "exp", "log", "tanh", "floor")}
_CALLS |= {"abs": "fabs({0})", "atan2": "atan2({0}, {1})", "pow": "pow({0}, {1})"}
_CALLS |= {op: f"({text}) ? 1.0 : 0.0" for op, text in _ORDER.items()}
_CALLS |= {"select": "({0} != 0.0) ? {1} : {2}"}


def c_number(value: float) -> str:
    """Return a double constant in C without rounding."""
    value = real("value", value)
    if math.isnan(value):
        return "(double)NAN"
    if math.isinf(value):
        return "HUGE_VAL" if value > 0.0 else "-HUGE_VAL"
    return repr(value)


def c_table(name: str, values: Array) -> str:
    """Return a constant array of doubles."""
    flat = [c_number(float(x)) for x in values.ravel()]
    rows = [", ".join(flat[i : i + 6]) for i in range(0, len(flat), 6)]
    return f"static const double {name}[{len(flat)}] = {{\n    " + ",\n    ".join(rows) + "\n};\n"


def _polynomial(factors: Sequence[float]) -> str:
    text = c_number(factors[-1])
    for factor in reversed(factors[:-1]):
        text = f"(({text}) * square) + {c_number(factor)}"
    return text


def _of_square(name: str, series: Sequence[float], away: str) -> str:
    """Return a function of x^2 with its series near zero."""
    return f"""static double {{0}}_{name}(const double square)
{{{{
    double value = {_polynomial(series)};
    if (square > {c_number(SMALL)})
    {{{{
        const double angle = sqrt(square);
        value = {away};
    }}}}
    return value;
}}}}
"""


def _choice(name: str, arguments: Sequence[str], *branches: tuple[str, str]) -> str:
    """Return a function whose value is the first argument of the first branch that holds, else the last one's."""
    takes = ", ".join(f"const double {argument}" for argument in arguments)
    lines = [f"static double {{0}}_{name}({takes})", "{{", f"    double value = {branches[-1][1]};"]
    for i, (condition, value) in enumerate(branches[:-1]):
        lines += [f"    {'else ' if i else ''}if ({condition})", "    {{", f"        value = {value};", "    }}"]
    if len(branches) > 2:
        lines += ["    else", "    {{", f"        value = {branches[-1][1]};", "    }}"]
    return "\n".join([*lines, "    return value;", "}}", ""])


_HELPERS = {
    "sinc": _of_square("sinc", SINC_SERIES, "sin(angle) / angle"),
    "dsinc": _of_square("dsinc", DSINC_SERIES, "(cos(angle) - (sin(angle) / angle)) / (2.0 * square)"),
    "sign": _choice("sign", ["x"], ("x > 0.0", "1.0"), ("x < 0.0", "-1.0"), ("", "0.0")),
    "min": _choice("min", ["x", "y"], ("x < y", "x"), ("", "y")),
    "max": _choice("max", ["x", "y"], ("x > y", "x"), ("", "y")),
}


def c_helpers(prefix: str, text: str) -> list[str]:
    """Return the helper functions called by some code, with its prefix."""
    return [body.format(prefix) for op, body in _HELPERS.items() if f"{prefix}_{op}(" in text]


def _dialect(prefix: str, symbol: Callable[[str], str]) -> Dialect:
    calls = {op: f"{prefix}_{op}({{0}})" for op in ("sinc", "dsinc", "sign")}
    calls |= {op: f"{prefix}_{op}({{0}}, {{1}})" for op in ("min", "max")}
    return Dialect(symbol, c_number, _CALLS | calls)


# ---- functions: one sample ------------------------------------------------------------------------------------------


def c_prototype(what: Function | Routine) -> str:
    """Return the head of a function or routine without the semicolon; a function takes the arrays of one sample."""
    if isinstance(what, Routine):
        written = _written(what)
        takes = [f"{'' if array in written else 'const '}double *{array}" for array in what.arrays]
    else:
        sizes = (*what.inputs.items(), *what.shared.items())
        takes = [f"const double {array}[{size}]" if size else f"const double *{array}" for array, size in sizes]
        takes += [f"double {array}[{len(x)}]" if x else f"double *{array}" for array, x in what.outputs.items()]
    return f"void {what.name}({', '.join(takes) or 'void'})"


def c_function(function: Function, prefix: str) -> str:
    """Return the definition of a function for one sample, which may call the `c_helpers` of this prefix."""
    places = [f"{array}[{i}]" for array, nodes in function.outputs.items() for i, x in enumerate(nodes) if x is not None]
    statements, results = schedule(function.entries, _dialect(prefix, str), local_name(function.arrays))
    lines = [f"    const double {s.name} = {s.text};" for s in statements]
    lines += [f"    {place} = {text};" for place, text in zip(places, results, strict=True)]
    return "\n".join([c_prototype(function), "{", *_unused(function.arrays, lines), *lines, "}", ""])


def _unused(arrays: Sequence[str], lines: Sequence[str]) -> list[str]:
    text = "\n".join(lines)
    return [f"    (void){array};" for array in arrays if re.search(rf"\b{array}\b", text) is None]


# ---- routines -------------------------------------------------------------------------------------------------------


def _written(routine: Routine) -> set[str]:
    """Return the caller's arrays that a routine changes."""
    found: set[str] = set()
    for statement in statements_of(routine.body):
        if isinstance(statement, Save):
            found.add(statement.array)
        elif isinstance(statement, Call):
            inner = statement.what
            changed = _written(inner) if isinstance(inner, Routine) else set(inner.outputs)
            found.update(statement.places[array][0] for array in changed)
    return found & set(routine.arrays)


def _expressions(body: Sequence[Statement]) -> Iterator[Node]:
    """Yield every expression in statements."""
    for statement in statements_of(body):
        used: list[Index]
        if isinstance(statement, Load | Save):
            used = [statement.index, *([statement.value] if isinstance(statement, Save) else [])]
        elif isinstance(statement, Repeat):
            used = [statement.count]
        elif isinstance(statement, Leave | When):
            used = [statement.condition]
        else:
            used = [index for _, index in statement.places.values()]
        yield from (index for index in used if isinstance(index, Node))


class _RoutinePrinter:
    """One routine."""

    def __init__(self, routine: Routine, prefix: str) -> None:
        self.routine = routine
        self.taken = {*routine.arrays, *routine.locals}
        name = local_name(self.taken)
        self.writer = Writer(_dialect(prefix, self._unknown), use_counts(_expressions(routine.body)), name)
        self.lines: list[str] = []
        self.depth = 0

    def text(self) -> str:
        with self._braces():
            for name, size in self.routine.locals.items():
                self._line(f"double {name}[{size}];")
            head = len(self.lines)
            self._block(self.routine.body)
            self.lines[head:head] = _unused(self.routine.arrays, self.lines)
        return "\n".join([c_prototype(self.routine), *self.lines, ""])

    @staticmethod
    def _unknown(name: str) -> str:
        raise DynidentError(f"'{name}' is used outside the block in which it was loaded")

    def _line(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    @contextmanager
    def _braces(self) -> Iterator[None]:
        """Print a block; values computed inside are not available afterwards."""
        known = dict(self.writer.text)
        self._line("{")
        self.depth += 1
        yield
        self.depth -= 1
        self._line("}")
        self.writer.text = known

    def _declare(self, node: Node) -> str:
        """Return a new name of a value that comes from memory or a loop."""
        label = self._new(re.sub(r"(\d+)$", r"_\1", node.name.rpartition(".")[2]))
        self.writer.text[node.index] = (label, 4)
        return label

    def _new(self, label: str) -> str:
        while label in self.taken:
            label += "_"
        self.taken.add(label)
        return label

    def _value(self, node: Node) -> str:
        for s in self.writer.statements([node]):
            self._line(f"const double {s.name} = {s.text};")
        return self.writer[node]

    def _whole(self, index: Index) -> str:
        """Return an index or a count as a whole number."""
        if isinstance(index, Node) and index.op != "const":
            return f"(int64_t)({self._value(index)})"
        return str(int(index.value if isinstance(index, Node) else index))

    def _condition(self, node: Node) -> str:
        """Return a truth value as C's own: comparisons, and, or, not."""
        if node.index not in self.writer.text:
            if node.op in _ORDER:
                return _ORDER[node.op].format(*[self._value(arg) for arg in node.args])
            if node.op == "select":
                first, yes, no = node.args
                if yes.is_const(0.0) and no.is_const(1.0):
                    return f"!({self._condition(first)})"
                if no.is_const(0.0):
                    return f"({self._condition(first)}) && ({self._condition(yes)})"
                if yes.is_const(1.0):
                    return f"({self._condition(first)}) || ({self._condition(no)})"
        return f"{self._value(node)} != 0.0"

    def _block(self, body: Sequence[Statement]) -> None:
        for statement in body:
            if isinstance(statement, Load):
                if statement.node.index in self.writer.uses:
                    place = self._whole(statement.index)
                    self._line(f"const double {self._declare(statement.node)} = {statement.array}[{place}];")
            elif isinstance(statement, Save):
                place, value = self._whole(statement.index), self._value(statement.value)
                self._line(f"{statement.array}[{place}] = {value};")
            elif isinstance(statement, Repeat):
                self._repeat(statement)
            elif isinstance(statement, When):
                self._line(f"if ({self._condition(statement.condition)})")
                with self._braces():
                    self._block(statement.body)
                if statement.other:
                    self._line("else")
                    with self._braces():
                        self._block(statement.other)
            elif isinstance(statement, Leave):
                self._line(f"if ({self._condition(statement.condition)})")
                with self._braces():
                    self._line("break;")
            else:
                self._call(statement)

    def _repeat(self, loop: Repeat) -> None:
        place, count = self._new("i"), self._new("count")
        self._line(f"const int64_t {count} = {self._whole(loop.count)};")
        self._line(f"int64_t {place};")
        self._line(f"for ({place} = 0; {place} < {count}; {place}++)")
        with self._braces():
            if loop.counter.index in self.writer.uses:
                self._line(f"const double {self._declare(loop.counter)} = (double){place};")
            self._block(loop.body)

    def _call(self, call: Call) -> None:
        words = []
        for array, index in (call.places[name] for name in call.what.arrays):
            place = self._whole(index)
            words.append(array if place == "0" else f"&{array}[{place}]")
        self._line(f"{call.what.name}({', '.join(words)});")


def c_files(name: str, parts: Sequence[Function | Routine], about: str = "") -> dict[str, str]:
    """Return the texts of ``name.h`` and ``name.c``: functions (for one sample), routines, and everything they call."""
    upper, head = name.upper(), f"/* {comment(about or name)}; generated by dynident. */"
    everything = list(called([part for part in parts if isinstance(part, Routine)]))
    everything += [part for part in parts if part not in everything]
    texts = []
    for part in everything:
        text = _RoutinePrinter(part, name).text() if isinstance(part, Routine) else c_function(part, name)
        texts.append(text if part in parts else f"static {text}")
    body = "\n".join(texts)
    for part in everything:
        if part not in parts:  # an array of a routine may have the name of a function
            body = re.sub(rf"(?<![\w.]){part.name}\(", f"{name}_{part.name}(", body)
    prototypes = [f"{c_prototype(part)};" for part in parts]
    header = [head, f"#ifndef {upper}_H", f"#define {upper}_H", "", *prototypes, "", f"#endif /* {upper}_H */", ""]
    includes = [f'#include "{name}.h"', "", "#include <math.h>", "#include <stdint.h>", ""]
    return {f"{name}.h": "\n".join(header), f"{name}.c": "\n".join([head, *includes, *c_helpers(name, body), body])}


_COMPARE = """static double worst = 0.0;

static double compare(const double *wanted, const double *made, const int size)
{
    double largest = 0.0;
    int i;
    for (i = 0; i < size; i++)
    {
        /* infinite numbers, and what is not a number on both sides, are the same */
        const int same = (made[i] == wanted[i]) || ((made[i] != made[i]) && (wanted[i] != wanted[i]));
        const double error = same ? 0.0 : (fabs(made[i] - wanted[i]) / fmax(1.0, fabs(wanted[i])));
        const double counted = (error == error) ? error : HUGE_VAL; /* not a number */
        largest = (counted <= largest) ? largest : counted;
    }
    worst = (largest <= worst) ? worst : largest;
    return largest;
}
"""


def c_self_test(name: str, about: str, tables: Sequence[str], declared: Sequence[str], body: Sequence[str]) -> str:
    """Return a program that runs functions of ``name.c``; its body calls ``compare(wanted, made, size)`` for every result."""
    lines = [
        f"/* Checks {name}.c {about}: prints the largest relative error, returns 0 below 1e-9 (float: 1e-2). */",
        *(f'#include "{name}.h"', "", "#include <math.h>", "#include <stddef.h>", "#include <stdio.h>", ""),
        *(*tables, _COMPARE, "int main(void)", "{", *declared, "    int failed = 0;", *body),
        '    (void)printf("largest relative error %.3e\\n", (double)worst);',
        "    return ((failed == 0) && (worst <= ((sizeof(worst) < 8U) ? 1.0e-2 : 1.0e-9))) ? 0 : 1;",
    ]
    return "\n".join([*lines, "}", ""])
