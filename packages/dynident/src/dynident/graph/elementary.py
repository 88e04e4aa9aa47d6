"""The elementary functions of laws and forces: the same text works on expressions, numbers and arrays.

tanh(x)  is a node of a graph where x is one, and numpy's tanh(x) otherwise.
"""

from __future__ import annotations

from typing import Any

from dynident.errors import DynidentError
from dynident.graph.expression import Node
from dynident.graph.operations import OPERATIONS


def _apply(op: str, *x: Any) -> Any:
    """Return an operation of expressions where one is among the arguments, of numbers and arrays otherwise."""
    owner = None
    for value in x:
        if isinstance(value, Node):
            owner = value.graph
            break
    if owner is None:
        try:
            return OPERATIONS[op].numpy(*x)
        except TypeError:
            kinds = " and ".join(type(value).__name__ for value in x)
            raise DynidentError(f"{op} cannot be taken of {kinds}; give numbers, arrays of them or expressions") from None
    return owner.make(op, *(owner.node(value) for value in x))


def sin(x: Any) -> Any:
    """Return sin(x) of an expression, a number or an array."""
    return _apply("sin", x)


def cos(x: Any) -> Any:
    """Return cos(x) of an expression, a number or an array."""
    return _apply("cos", x)


def sqrt(x: Any) -> Any:
    """Return the square root of an expression, a number or an array."""
    return _apply("sqrt", x)


def exp(x: Any) -> Any:
    """Return e^x of an expression, a number or an array."""
    return _apply("exp", x)


def log(x: Any) -> Any:
    """Return the natural logarithm of an expression, a number or an array."""
    return _apply("log", x)


def tanh(x: Any) -> Any:
    """Return tanh(x) of an expression, a number or an array."""
    return _apply("tanh", x)


def sign(x: Any) -> Any:
    """Return -1, 0 or 1 by the sign of an expression, a number or an array."""
    return _apply("sign", x)


def absolute(x: Any) -> Any:
    """Return |x| of an expression, a number or an array."""
    return _apply("abs", x)


def floor(x: Any) -> Any:
    """Return the largest whole number not above an expression, a number or an array."""
    return _apply("floor", x)


def minimum(x: Any, y: Any) -> Any:
    """Return the smaller of two expressions, numbers or arrays."""
    return _apply("min", x, y)


def maximum(x: Any, y: Any) -> Any:
    """Return the larger of two expressions, numbers or arrays."""
    return _apply("max", x, y)


def power(x: Any, exponent: Any) -> Any:
    """Return x to a power, for expressions, numbers or arrays."""
    return _apply("pow", x, exponent)


def arctan2(y: Any, x: Any) -> Any:
    """Return the angle of the point (x, y), for expressions, numbers or arrays."""
    return _apply("atan2", y, x)


def equal(x: Any, y: Any) -> Any:
    """Return 1 where two expressions, numbers or arrays are equal, else 0."""
    return _apply("eq", x, y)


def where(condition: Any, x: Any, y: Any) -> Any:
    """Return x where the condition holds, else y, for expressions, numbers or arrays."""
    return _apply("select", condition, x, y)


def both(x: Any, y: Any) -> Any:
    """Return 1 where two conditions hold, else 0."""
    return _apply("select", x, y, 0.0)


def either(x: Any, y: Any) -> Any:
    """Return 1 where one of two conditions holds, else 0."""
    return _apply("select", x, 1.0, y)


def opposite(x: Any) -> Any:
    """Return 1 where a condition does not hold, else 0."""
    return _apply("select", x, 0.0, 1.0)


def clip(x: Any, limit: Any) -> Any:
    """Return x within +-limit."""
    return minimum(maximum(x, -1.0 * limit), limit)
