"""Readable NumPy of a function, batched over the leading axes of its inputs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from dynident.graph.expression import reachable
from dynident.graph.function import Function
from dynident.graph.operations import DSINC_SERIES, SINC_SERIES, SMALL
from dynident.graph.schedule import Dialect, local_name, schedule

_CALLS = {op: f"np.{op}({{0}})" for op in ("sin", "cos", "sqrt", "exp", "log", "tanh", "floor", "abs", "sign")}
_CALLS |= {"pow": "np.power({0}, {1})", "atan2": "np.arctan2({0}, {1})"}
_CALLS |= {"min": "np.minimum({0}, {1})", "max": "np.maximum({0}, {1})", "select": "np.where({0} != 0.0, {1}, {2})"}
_CALLS |= {op: f"np.where({{0}} {sign} {{1}}, 1.0, 0.0)" for op, sign in (("lt", "<"), ("le", "<="), ("eq", "=="))}
_CALLS |= {"sinc": "_sinc({0})", "dsinc": "_dsinc({0})"}


def _number(value: float) -> str:
    if math.isfinite(value):
        return repr(float(value))
    return "np.nan" if math.isnan(value) else "np.inf" if value > 0.0 else "-np.inf"


def _of_square(name: str, meaning: str, series: Sequence[float], away: str) -> str:
    return f'''def {name}(square):
    """Return {meaning} of s = x^2."""
    s = np.maximum(square, {SMALL!r})
    x = np.sqrt(s)
    near = np.polynomial.polynomial.polyval(square, {list(series)!r})
    return np.where(square > {SMALL!r}, {away}, near)
'''


_HELPERS = {
    "_sinc": _of_square("_sinc", "sin(x)/x", SINC_SERIES, "np.sin(x) / x"),
    "_dsinc": _of_square("_dsinc", "the derivative of sin(x)/x by s", DSINC_SERIES, "(np.cos(x) - np.sin(x) / x) / (2.0 * s)"),
}


def numpy_helpers(text: str) -> list[str]:
    """Return the helper functions that some code calls."""
    return [body for name, body in _HELPERS.items() if f"{name}(" in text]


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
    taken = {*function.arrays, *(label for label, _ in known.values())}
    statements, texts = schedule(function.entries, Dialect(lambda name: known[name][0], _number, _CALLS), local_name(taken))
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


def _labels(function: Function) -> dict[str, tuple[str, str]]:
    """Return local name and place of every symbol, as in ``q3`` for ``q[3]``."""
    found: dict[str, tuple[str, str]] = {}
    for node in reachable(function.entries):
        if node.op == "symbol":
            array, place = node.name[:-1].split("[")
            found[node.name] = (f"{array}_{place}", f"{array}[..., {place}]")
    return found
