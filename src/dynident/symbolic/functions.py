"""What the operations of the graph mean: on numbers, on NumPy arrays, in sympy."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

UNARY = ("neg", "sin", "cos", "sqrt", "sinc", "cosc", "sign", "positive", "step")
"""Functions of one argument beside the usual ones:

sinc(x) = sin(sqrt x)/sqrt x and cosc(x) = (1 - cos(sqrt x))/x of a squared angle, as rotation vectors need them;
positive(x) = max(x, 0), step(x) = 1 where x > 0, else 0.
"""


def sinc(square: float) -> float:
    """Return sin(x)/x for a given x^2.

    Parameters
    ----------
    square : float
        x^2.

    Returns
    -------
    float
        sin(x)/x, by its series near zero.
    """
    if square <= 1e-12:
        return 1.0 - square / 6.0
    return math.sin(math.sqrt(square)) / math.sqrt(square)


def cosc(square: float) -> float:
    """Return (1 - cos(x))/x^2 for a given x^2.

    Parameters
    ----------
    square : float
        x^2.

    Returns
    -------
    float
        (1 - cos(x))/x^2, by its series near zero.
    """
    if square <= 1e-12:
        return 0.5 - square / 24.0
    return (1.0 - math.cos(math.sqrt(square))) / square


FOLD: dict[str, Callable[[float], float]] = {
    "sin": math.sin,
    "cos": math.cos,
    "sqrt": math.sqrt,
    "sinc": sinc,
    "cosc": cosc,
    "sign": lambda x: float((x > 0.0) - (x < 0.0)),
    "positive": lambda x: max(x, 0.0),
    "step": lambda x: float(x > 0.0),
}


def _sinc(square: Any) -> Any:
    x = np.sqrt(np.maximum(square, 1e-12))
    return np.where(square > 1e-12, np.sin(x) / x, 1.0 - square / 6.0)


def _cosc(square: Any) -> Any:
    y = np.maximum(square, 1e-12)
    return np.where(square > 1e-12, (1.0 - np.cos(np.sqrt(y))) / y, 0.5 - square / 24.0)


NUMPY: dict[str, Callable[..., Any]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "neg": np.negative,
    "sin": np.sin,
    "cos": np.cos,
    "sqrt": np.sqrt,
    "atan2": np.arctan2,
    "sinc": _sinc,
    "cosc": _cosc,
    "sign": np.sign,
    "positive": lambda x: np.maximum(x, 0.0),
    "step": lambda x: np.where(x > 0.0, 1.0, 0.0),
}


def sympy_functions(sympy: Any) -> dict[str, Callable[..., Any]]:
    """Return the operations on sympy expressions.

    Parameters
    ----------
    sympy : module
        sympy itself, an optional extra.

    Returns
    -------
    dict of str to callable
        By operation.
    """
    return {
        "add": lambda x, y: x + y,
        "sub": lambda x, y: x - y,
        "mul": lambda x, y: x * y,
        "div": lambda x, y: x / y,
        "neg": lambda x: -x,
        "sin": sympy.sin,
        "cos": sympy.cos,
        "sqrt": sympy.sqrt,
        "atan2": sympy.atan2,
        "sinc": lambda x: sympy.sin(sympy.sqrt(x)) / sympy.sqrt(x),
        "cosc": lambda x: (1 - sympy.cos(sympy.sqrt(x))) / x,
        "sign": sympy.sign,
        "positive": lambda x: sympy.Max(x, 0),
        "step": lambda x: sympy.Piecewise((1, x > 0), (0, True)),
    }
