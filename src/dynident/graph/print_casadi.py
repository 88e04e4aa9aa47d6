"""CasADi of a function: Python that builds a `casadi.Function` of SX symbols, so that CasADi differentiates and compiles it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from dynident.graph.function import Function
from dynident.graph.operations import DSINC_SERIES, SINC_SERIES, SMALL
from dynident.graph.schedule import Dialect, local_name, schedule

_CALLS = {op: f"ca.{op}({{0}})" for op in ("sin", "cos", "sqrt", "exp", "log", "tanh", "floor", "sign")}
_CALLS |= {"abs": "ca.fabs({0})", "pow": "ca.power({0}, {1})", "atan2": "ca.atan2({0}, {1})"}
_CALLS |= {"min": "ca.fmin({0}, {1})", "max": "ca.fmax({0}, {1})", "select": "ca.if_else({0} != 0.0, {1}, {2})"}
_CALLS |= {op: f"({{0}} {sign} {{1}})" for op, sign in (("lt", "<"), ("le", "<="), ("eq", "=="))}
_CALLS |= {"sinc": "_sinc({0})", "dsinc": "_dsinc({0})"}


def _number(value: float) -> str:
    if math.isfinite(value):
        return repr(float(value))
    return "ca.nan" if math.isnan(value) else "ca.inf" if value > 0.0 else "-ca.inf"


def _of_square(name: str, meaning: str, series: Sequence[float], away: str) -> str:
    polynomial = repr(float(series[-1]))
    for factor in reversed(series[:-1]):
        polynomial = f"({polynomial}) * square + {float(factor)!r}"
    return f'''def {name}(square):
    """Return {meaning} of s = x^2."""
    s = ca.fmax(square, {SMALL!r})
    x = ca.sqrt(s)
    return ca.if_else(square > {SMALL!r}, {away}, {polynomial})
'''


_HELPERS = {
    "_sinc": _of_square("_sinc", "sin(x)/x", SINC_SERIES, "ca.sin(x) / x"),
    "_dsinc": _of_square("_dsinc", "the derivative of sin(x)/x by s", DSINC_SERIES, "(ca.cos(x) - ca.sin(x) / x) / (2.0 * s)"),
}


def casadi_helpers(text: str) -> list[str]:
    """Return the helper functions that some code calls."""
    return [body for name, body in _HELPERS.items() if f"{name}(" in text]


def casadi_function(function: Function, about: str = "", shapes: Mapping[str, tuple[int, ...]] | None = None) -> str:
    """Return the definition of a name that is a `casadi.Function` of one sample; it needs ``ca`` and `casadi_helpers`.

    `shapes` are those of outputs that are matrices, not columns. Entries that are None are zero.
    """
    inputs = {**function.inputs, **function.shared}
    statements, texts = schedule(function.entries, Dialect(str, _number, _CALLS), local_name(function.arrays))
    lines = [f"def _{function.name}():", *([f'    """{about}"""'] if about else [])]
    lines += [f'    {array} = ca.SX.sym("{array}", {size})' for array, size in inputs.items()]
    lines += [f"    {s.name} = {s.text}" for s in statements]
    result = iter(texts)
    for array, nodes in function.outputs.items():
        entries = [next(result) if node is not None else "0.0" for node in nodes]
        shape = (shapes or {}).get(array, (len(nodes),))
        wide = shape[1] if len(shape) == 2 else 1
        lines.append(f"    {array} = ca.vertcat(")
        rows = [entries[i : i + wide] for i in range(0, len(entries), wide)]
        joined = [f"ca.horzcat({', '.join(row)})" if wide > 1 else row[0] for row in rows]
        lines += [f"        {row}," for row in joined]
        lines.append("    )")
    takes, gives = ", ".join(inputs), ", ".join(function.outputs)
    names = [", ".join(f'"{name}"' for name in group) for group in (inputs, function.outputs)]
    lines.append(f'    return ca.Function("{function.name}", [{takes}], [{gives}], [{names[0]}], [{names[1]}])')
    return "\n".join([*lines, "", "", f"{function.name} = _{function.name}()", ""])
