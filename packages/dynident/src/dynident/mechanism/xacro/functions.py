"""What expressions of xacro may compute with: functions, methods and operators, each bounded, and the budget they share.

Values are numbers, texts, lists and dictionaries of bounded size. A function is a `Function`, never Python's own.
"""

from __future__ import annotations

import ast
import math
import operator
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, NoReturn

from dynident.errors import DescriptionError

MAX_STRING, MAX_ITEMS, MAX_BITS, MAX_NESTING = 100_000, 20_000, 256, 100
LIMITS = {
    "steps of evaluation": 500_000,
    "elements": 100_000,
    "macro calls": 10_000,
    "characters": 10_000_000,
    "included files": 300,
    "bytes of YAML": 300_000,
}
"""What one robot may cost; the largest packages need less than a tenth."""


REMEDY = "write it in another way, or expand the file to a .urdf with ROS's xacro if you trust its author"
_NO_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


class ExpressionError(Exception):
    """Why an expression has no value, and what to do."""

    def __init__(self, reason: str, remedy: str = "correct it") -> None:
        super().__init__(reason)
        self.remedy = remedy


@dataclass
class Budget:
    """What is left of `LIMITS`."""

    left: dict[str, int] = field(default_factory=LIMITS.copy)

    def spend(self, what: str, amount: int = 1) -> None:
        """Pay for `amount` of `what`."""
        self.left[what] -= amount
        if self.left[what] < 0:
            raise DescriptionError(
                f"the expansion needs more than {LIMITS[what]} {what}; look for a macro or property that repeats itself, "
                "or expand the file to a .urdf with ROS's xacro if the robot is really so large"
            )


@dataclass(frozen=True)
class Function:
    """A function that expressions may call; it stands for the Python function, which itself is never a value."""

    name: str
    call: Callable[..., Any]


@dataclass(frozen=True)
class Namespace:
    """Names behind a dot, as in ``math.pi`` or those of ``<xacro:include ns="...">``; `lookup` raises KeyError."""

    lookup: Callable[[str], Any]


def refuse(what: str) -> NoReturn:
    """Raise the error of what only the real xacro package would do."""
    raise ExpressionError(what, REMEDY)


def checked(value: Any, budget: Budget) -> Any:
    """Return a value of an allowed kind and size; its size is paid for."""
    waiting, size = [(value, 0)], 0
    while waiting:
        item, depth = waiting.pop()
        size += 1
        if isinstance(item, int):  # also bool
            if item.bit_length() > MAX_BITS:
                raise ExpressionError(f"makes an integer of more than {MAX_BITS} bits")
        elif isinstance(item, str):
            size += len(item) // 100
            if len(item) > MAX_STRING:
                raise ExpressionError(f"makes a text of more than {MAX_STRING} characters")
            if _NO_XML.search(item):
                raise ExpressionError("makes a text with control characters, which XML cannot hold")
        elif isinstance(item, list | tuple | dict):
            if size + len(item) > MAX_ITEMS or depth > MAX_NESTING:
                raise ExpressionError(f"makes a list of more than {MAX_ITEMS} items or {MAX_NESTING} levels")
            inner = chain(item.keys(), item.values()) if isinstance(item, dict) else item
            waiting.extend((part, depth + 1) for part in inner)
        elif isinstance(item, Function | Namespace):
            if depth:  # a list of functions could be written as text
                refuse("puts a function into a list")
        elif item is not None and not isinstance(item, float):
            refuse(f"makes a value of the kind '{type(item).__name__}'")
    if size > MAX_ITEMS:
        raise ExpressionError(f"makes a value of more than {MAX_ITEMS} items")
    budget.spend("steps of evaluation", size)
    return value


# ---- functions ------------------------------------------------------------------------------------------------------


def items(value: Any) -> list[Any]:
    """Return what a value consists of, as a list."""
    if not isinstance(value, list | tuple | dict | str):
        raise ExpressionError(f"goes through a {type(value).__name__}, which is no list")
    return list(value)


def _round(value: float, digits: int | None = None) -> float:
    if digits is not None and abs(digits) > 300:
        raise ExpressionError("rounds to more than 300 digits")
    return round(value, digits)


def _range(*bounds: int) -> list[int]:
    numbers = range(*bounds)
    if len(numbers) > MAX_ITEMS:
        raise ExpressionError(f"counts through more than {MAX_ITEMS} numbers")
    return list(numbers)


def _sum(values: Iterable[Any], start: float = 0) -> float:
    numbers = items(values)
    if not all(isinstance(number, int | float) for number in [*numbers, start]):
        raise ExpressionError("sums what is no number")
    return sum(numbers, start)


def _map(function: Any, *lists: Any) -> list[Any]:
    if not isinstance(function, Function):
        raise ExpressionError("maps with what is no function")
    found: list[Any] = []
    size = 0
    for arguments in zip(*map(items, lists), strict=False):
        found.append(function.call(*arguments))
        size += len(found[-1]) if isinstance(found[-1], list | tuple | dict) else 1
        if size > MAX_ITEMS:  # map(range, ...) makes long lists before anybody looks at them
            raise ExpressionError(f"makes a list of more than {MAX_ITEMS} items")
    return found


def as_text(value: Any = "") -> str:
    """Return a value as it is written into an attribute."""
    if isinstance(value, Function | Namespace):
        refuse("writes a function as text")
    return str(value)


def _sorted(values: Any, reverse: bool = False) -> list[Any]:
    return sorted(items(values), reverse=bool(reverse))


def _tokenize(text: str, sep: str = ",; ", skip_empty: bool = True) -> list[str]:
    """Split at any character of `sep`."""
    pieces = re.split("[" + re.escape(sep) + "]", text) if sep else [text]
    return [piece for piece in pieces if piece] if skip_empty else pieces


def _fatal(*words: Any) -> NoReturn:
    raise ExpressionError(f"ends with xacro.fatal: {' '.join(map(as_text, words))[:200]}")


def _says_nothing(*_: Any, **__: Any) -> str:
    return ""


def _functions(**calls: Callable[..., Any]) -> dict[str, Any]:
    return {name: Function(name, call) for name, call in calls.items()}


# fmt: off
_MATH_CALLS = (
    "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "ceil", "copysign", "cos", "cosh", "degrees", "dist",
    "erf", "erfc", "exp", "expm1", "fabs", "floor", "fmod", "fsum", "gcd", "hypot", "isclose", "isfinite", "isinf",
    "isnan", "ldexp", "log", "log10", "log1p", "log2", "modf", "pow", "radians", "remainder", "sin", "sinh", "sqrt",
    "tan", "tanh", "trunc",
)
# fmt: on
MATH: Mapping[str, Any] = {
    **_functions(**{name: getattr(math, name) for name in _MATH_CALLS}),
    **{name: getattr(math, name) for name in ("pi", "e", "tau", "inf", "nan")},
}
PYTHON: Mapping[str, Any] = _functions(
    abs=abs,
    all=lambda values: all(items(values)),
    any=lambda values: any(items(values)),
    bool=bool,
    dict=dict,
    divmod=divmod,
    enumerate=lambda values, start=0: [(start + k, item) for k, item in enumerate(items(values))],
    float=float,
    int=int,
    len=len,
    list=lambda values=(): items(values),
    map=_map,
    max=max,
    min=min,
    range=_range,
    reversed=lambda values: items(values)[::-1],
    round=_round,
    sorted=_sorted,
    str=as_text,
    sum=_sum,
    tuple=lambda values=(): tuple(items(values)),
    zip=lambda *lists: list(zip(*map(items, lists), strict=False)),
)
XACRO: Mapping[str, Any] = _functions(
    dotify=dict,
    tokenize=_tokenize,
    fatal=_fatal,
    message=_says_nothing,
    warning=_says_nothing,
    error=_says_nothing,
    print_location=_says_nothing,
)
FUNCTIONS: Mapping[str, Any] = {
    **MATH,
    **PYTHON,
    "dotify": XACRO["dotify"],
    "math": Namespace(MATH.__getitem__),
    "python": Namespace(PYTHON.__getitem__),
}
"""Names that every expression knows."""


def _replace(text: str, old: str, new: str) -> str:
    if len(text) + text.count(old) * len(new) > MAX_STRING:
        raise ExpressionError(f"makes a text of more than {MAX_STRING} characters")
    return text.replace(old, new)


def _join(text: str, parts: Any) -> str:
    pieces = items(parts)
    if sum(len(piece) + len(text) for piece in pieces) > MAX_STRING:
        raise ExpressionError(f"makes a text of more than {MAX_STRING} characters")
    return text.join(pieces)


def _zfill(text: str, width: int) -> str:
    return text.zfill(min(width, MAX_STRING))


# fmt: off
_PLAIN = (
    "lower", "upper", "capitalize", "title", "strip", "lstrip", "rstrip", "split", "rsplit", "splitlines", "startswith",
    "endswith", "find", "rfind", "index", "count", "isdigit", "isalpha", "isalnum", "isnumeric", "islower", "isupper",
    "removeprefix", "removesuffix", "partition", "rpartition",
)
# fmt: on
METHODS: Mapping[type, Mapping[str, Callable[..., Any]]] = {
    str: {**{name: getattr(str, name) for name in _PLAIN}, "replace": _replace, "join": _join, "zfill": _zfill},
    list: {"index": list.index, "count": list.count},
    tuple: {"index": tuple.index, "count": tuple.count},
    dict: {
        "get": dict.get,
        "keys": list,
        "values": lambda table: list(table.values()),
        "items": lambda table: list(table.items()),
    },
}
"""Methods that may be called, by the kind of their owner."""


# ---- operators ------------------------------------------------------------------------------------------------------


def _power(base: Any, exponent: Any) -> Any:
    whole = isinstance(base, int) and isinstance(exponent, int)
    if whole and exponent > 0 and abs(base) > 1 and exponent * math.log2(abs(base)) > MAX_BITS + 1:
        raise ExpressionError(f"makes an integer of more than {MAX_BITS} bits")
    return base**exponent


def _times(left: Any, right: Any) -> Any:
    for sequence, count in ((left, right), (right, left)):
        if isinstance(sequence, str | list | tuple) and isinstance(count, int):
            most = MAX_STRING if isinstance(sequence, str) else MAX_ITEMS
            if len(sequence) * count > most:
                raise ExpressionError(f"repeats to more than {most} items")
    return left * right


def _modulo(left: Any, right: Any) -> Any:
    # In the format of a text: no wide field, and no argument that is written too often.
    wide = isinstance(left, str) and re.search(r"%[^a-zA-Z%]*(\d{4}|\*)", left) is not None
    if wide or (isinstance(left, str) and left.count("%") * len(as_text(right)) > MAX_STRING):
        raise ExpressionError(f"makes a text of more than {MAX_STRING} characters")
    return left % right


BINARY: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: _times,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: _modulo,
    ast.Pow: _power,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
}
UNARY: Mapping[type[ast.unaryop], Callable[[Any], Any]] = {
    ast.UAdd: operator.pos,
    ast.USub: operator.neg,
    ast.Not: operator.not_,
    ast.Invert: operator.invert,
}
COMPARE: Mapping[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
    ast.In: lambda left, right: left in right,
    ast.NotIn: lambda left, right: left not in right,
}
