"""Operations of the graph: their values for numbers and NumPy arrays, and their partial derivatives.

A new operation is one entry of `OPERATIONS` and one line in each printer. Truth values are the numbers 1 and 0. Special
operations:

    sinc(s)  = sin(x)/x  with s = x^2, for rotation vectors;   dsinc its derivative by s
    select(c, a, b) = a where c is not zero, else b
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from dynident.graph.expression import Node

SMALL = 1e-2  # x^2 below which sinc and its derivative are computed from series: the closed form of dsinc cancels there
SINC_SERIES = (1.0, -1.0 / 6.0, 1.0 / 120.0, -1.0 / 5040.0, 1.0 / 362880.0, -1.0 / 39916800.0)
DSINC_SERIES = (*(k * c for k, c in enumerate(SINC_SERIES) if k), 9.635426302092969e-10)


def horner(factors: tuple[float, ...], x: Any) -> Any:
    """Return the polynomial with these coefficients, lowest power first."""
    result: Any = factors[-1]
    for factor in reversed(factors[:-1]):
        result = result * x + factor
    return result


def _sinc(square: Any) -> Any:
    x = np.sqrt(np.maximum(square, SMALL))
    return np.where(square > SMALL, np.sin(x) / x, horner(SINC_SERIES, square))


def _dsinc(square: Any) -> Any:
    s = np.maximum(square, SMALL)
    x = np.sqrt(s)
    return np.where(square > SMALL, (np.cos(x) - np.sin(x) / x) / (2.0 * s), horner(DSINC_SERIES, square))


@dataclass(frozen=True)
class Operation:
    """One operation."""

    numpy: Callable[..., Any]  # its value on arrays
    partials: Callable[[Node], tuple[Node, ...]]  # its partial derivatives, one expression per argument

    def fold(self, *x: float) -> float:
        """Return the value for plain numbers, with nan or inf where Python would raise, as in machine code."""
        with np.errstate(all="ignore"):
            return float(self.numpy(*(np.float64(value) for value in x)))


def _flat(x: Node) -> tuple[Node, ...]:
    return tuple(x.graph.zero for _ in x.args)


def _pow(x: Node) -> tuple[Node, ...]:
    base, power = x.args
    if power.op == "const":  # the general form would need log(base), which is not defined for base <= 0
        return power * x.graph.power(base, power - 1.0), x.graph.zero
    return power * x / base, x * x.graph.call("log", base)


def _truth(x: Any) -> Any:
    return np.where(x, 1.0, 0.0)


def _either(x: Node, first: Node) -> tuple[Node, ...]:
    return first, x.graph.one - first


def _choice(x: Node) -> tuple[Node, ...]:
    c, one, zero = x.args[0], x.graph.one, x.graph.zero
    return zero, x.graph.select(c, one, zero), x.graph.select(c, zero, one)


def _no_second(x: Node) -> tuple[Node, ...]:
    raise TypeError("second derivatives of a rotation vector are not supported")


OPERATIONS: dict[str, Operation] = {
    "add": Operation(np.add, lambda x: (x.graph.one, x.graph.one)),
    "sub": Operation(np.subtract, lambda x: (x.graph.one, -x.graph.one)),
    "mul": Operation(np.multiply, lambda x: (x.args[1], x.args[0])),
    "div": Operation(np.divide, lambda x: (1.0 / x.args[1], -(x / x.args[1]))),
    "neg": Operation(np.negative, lambda x: (-x.graph.one,)),
    "sqrt": Operation(np.sqrt, lambda x: (0.5 / x,)),
    "sin": Operation(np.sin, lambda x: (x.graph.call("cos", x.args[0]),)),
    "cos": Operation(np.cos, lambda x: (-x.graph.call("sin", x.args[0]),)),
    "exp": Operation(np.exp, lambda x: (x,)),
    "log": Operation(np.log, lambda x: (1.0 / x.args[0],)),
    "tanh": Operation(np.tanh, lambda x: (1.0 - x * x,)),
    "pow": Operation(np.power, _pow),
    "atan2": Operation(
        np.arctan2,
        lambda x: (
            x.args[1] / (x.args[0] * x.args[0] + x.args[1] * x.args[1]),
            -(x.args[0] / (x.args[0] * x.args[0] + x.args[1] * x.args[1])),
        ),
    ),
    "sinc": Operation(_sinc, lambda x: (x.graph.call("dsinc", x.args[0]),)),
    "dsinc": Operation(_dsinc, _no_second),
    "abs": Operation(np.abs, lambda x: (x.graph.call("sign", x.args[0]),)),
    "sign": Operation(np.sign, _flat),
    "floor": Operation(np.floor, _flat),
    "min": Operation(np.minimum, lambda x: _either(x, x.args[0] <= x.args[1])),
    "max": Operation(np.maximum, lambda x: _either(x, x.args[0] >= x.args[1])),
    "lt": Operation(lambda x, y: _truth(np.less(x, y)), _flat),
    "le": Operation(lambda x, y: _truth(np.less_equal(x, y)), _flat),
    "eq": Operation(lambda x, y: _truth(np.equal(x, y)), _flat),
    "select": Operation(
        lambda c, x, y: np.where(np.not_equal(c, 0.0), x, y),
        _choice,
    ),
}
