"""Python of a function: NumPy, batched over the leading axes of its inputs, or a `casadi.Function` of SX symbols."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from dynident.graph.expression import Function, reachable
from dynident.graph.operations import DSINC_SERIES, SINC_SERIES, SMALL
from dynident.graph.printing import Dialect, local_name, schedule

_NUMPY = {"atan2": "arctan2", "pow": "power", "min": "minimum", "max": "maximum", "select": "where"}
_CASADI = {"abs": "fabs", "pow": "power", "min": "fmin", "max": "fmax", "select": "if_else"}


def _calls(package: str, names: Mapping[str, str], order: str) -> dict[str, str]:
    """Return the formats of all operations; `names` are those that the package calls differently."""
    calls = {op: f"{{0}} {sign} {{1}}" for op, sign in (("lt", "<"), ("le", "<="), ("eq", "=="))}
    calls = {op: order.format(text) for op, text in calls.items()}
    for op in ("sin", "cos", "sqrt", "exp", "log", "tanh", "floor", "abs", "sign"):
        calls[op] = f"{package}.{names.get(op, op)}({{0}})"
    for op in ("pow", "atan2", "min", "max"):
        calls[op] = f"{package}.{names.get(op, op)}({{0}}, {{1}})"
    calls["select"] = f"{package}.{names['select']}({{0}} != 0.0, {{1}}, {{2}})"
    return calls | {"sinc": "_sinc({0})", "dsinc": "_dsinc({0})"}


def _number(package: str) -> Callable[[float], str]:
    def text(value: float) -> str:
        if math.isfinite(value):
            return repr(float(value))
        return f"{package}.nan" if math.isnan(value) else f"{package}.inf" if value > 0.0 else f"-{package}.inf"

    return text


def _helpers(package: str, names: Mapping[str, str]) -> dict[str, str]:
    """Return the definitions of sinc and its derivative, functions of x^2 with their series near zero."""
    sinc = f"{package}.sin(x) / x"
    parts = {
        "_sinc": ("sin(x)/x", SINC_SERIES, sinc),
        "_dsinc": ("the derivative of sin(x)/x by s", DSINC_SERIES, f"({package}.cos(x) - {sinc}) / (2.0 * s)"),
    }
    found = {}
    for name, (meaning, series, away) in parts.items():
        near = repr(float(series[-1]))
        for factor in reversed(series[:-1]):
            near = f"({near}) * square + {float(factor)!r}"
        found[name] = f'''def {name}(square):
    """Return {meaning} of s = x^2."""
    s = {package}.{names["max"]}(square, {SMALL!r})
    x = {package}.sqrt(s)
    return {package}.{names["select"]}(square > {SMALL!r}, {away}, {near})
'''
    return found


def numpy_helpers(text: str) -> list[str]:
    """Return the helper functions that some code of NumPy calls."""
    return [body for name, body in _helpers("np", _NUMPY).items() if f"{name}(" in text]


def casadi_helpers(text: str) -> list[str]:
    """Return the helper functions that some code of CasADi calls."""
    return [body for name, body in _helpers("ca", _CASADI).items() if f"{name}(" in text]


def numpy_function(
    function: Function,
    labels: Mapping[str, tuple[str, str]] | None = None,
    about: Sequence[str] = (),
    shapes: Mapping[str, tuple[int, ...]] | None = None,
) -> str:
    """Return the definition of a function of arrays, given by name, whose last axis is the element.

    It needs ``np`` and what `numpy_helpers` gives. `labels` are local name and place, such as ``m_elbow`` and ``phi[..., 3]``,
    of the symbols; `about` the lines of its docstring; `shapes` those of outputs. Entries that are None stay zero.
    """
    inputs = (*function.inputs, *function.shared)
    known = labels if labels is not None else _labels(function)
    dialect = Dialect(lambda name: known[name][0], _number("np"), _calls("np", _NUMPY, "np.where({0}, 1.0, 0.0)"))
    taken = [*function.arrays, *(label for label, _ in known.values())]
    statements, texts = schedule(function.entries, dialect, local_name(taken))
    lines = [f"def {function.name}({', '.join(inputs)}):"]
    if about:
        lines += [f'    """{about[0]}', *(f"    {line}".rstrip() for line in about[1:]), '    """']
    lines += [f"    {array} = np.asarray({array}, dtype=float)" for array in inputs]
    lines += [f"    {label} = {place}" for label, place in known.values()]
    lines += [f"    {s.name} = {s.text}" for s in statements]
    batch = "np.broadcast_shapes(" + ", ".join(f"{array}.shape[:-1]" for array in inputs) + ")" if inputs else "()"
    result = iter(texts)
    for array, nodes in function.outputs.items():
        shape = (shapes or {}).get(array, (len(nodes),))
        lines.append(f"    {array} = np.zeros((*{batch}, {', '.join(map(str, shape))}))")
        for i, node in enumerate(nodes):
            if node is not None:
                text = next(result)
                place = f"{i // shape[1]}, {i % shape[1]}" if len(shape) == 2 else str(i)
                if not node.is_const(0.0):
                    lines.append(f"    {array}[..., {place}] = {text}")
    return "\n".join([*lines, f"    return {', '.join(function.outputs)}", ""])


def numpy_callable(function: Function, shapes: Mapping[str, tuple[int, ...]] | None = None) -> Callable[..., Any]:
    """Return `numpy_function` ready to be called: for a few evaluations, for which machine code would take too long."""
    text = numpy_function(function, shapes=shapes)
    names: dict[str, Any] = {"np": np}
    exec("\n".join([*numpy_helpers(text), text]), names)
    code: Callable[..., Any] = names[function.name]
    return code


def _labels(function: Function) -> dict[str, tuple[str, str]]:
    """Return local name and place of every symbol, as in ``q3`` for ``q[3]``."""
    found: dict[str, tuple[str, str]] = {}
    for node in reachable(function.entries):
        if node.op == "symbol":
            array, place = node.name[:-1].split("[")
            found[node.name] = (f"{array}_{place}", f"{array}[..., {place}]")
    return found


def casadi_function(function: Function, shapes: Mapping[str, tuple[int, ...]] | None = None) -> str:
    """Return the definition of a name that is a `casadi.Function` of one sample; it needs ``ca`` and `casadi_helpers`.

    `shapes` are those of outputs that are matrices, not columns. Entries that are None are zero.
    """
    inputs = {**function.inputs, **function.shared}
    dialect = Dialect(str, _number("ca"), _calls("ca", _CASADI, "({0})"))
    statements, texts = schedule(function.entries, dialect, local_name(function.arrays))
    lines = [f"def _{function.name}():"]
    lines += [f'    {array} = ca.SX.sym("{array}", {size})' for array, size in inputs.items()]
    lines += [f"    {s.name} = {s.text}" for s in statements]
    result = iter(texts)
    for array, nodes in function.outputs.items():
        entries = [next(result) if node is not None else "0.0" for node in nodes]
        shape = (shapes or {}).get(array, (len(nodes),))
        wide = shape[1] if len(shape) == 2 else 1
        rows = [entries[i : i + wide] for i in range(0, len(entries), wide)]
        joined = [f"ca.horzcat({', '.join(row)})" if wide > 1 else row[0] for row in rows]
        lines += [f"    {array} = ca.vertcat(", *(f"        {row}," for row in joined), "    )"]
    takes, gives = ", ".join(inputs), ", ".join(function.outputs)
    names = [", ".join(f'"{name}"' for name in group) for group in (inputs, function.outputs)]
    lines.append(f'    return ca.Function("{function.name}", [{takes}], [{gives}], [{names[0]}], [{names[1]}])')
    return "\n".join([*lines, "", "", f"{function.name} = _{function.name}()", ""])
