"""Expressions of xacro: evaluate("2*pi*r", names) walks the syntax tree and computes only the functions listed here.

Nothing is compiled, no attribute of a Python object is read, and only the listed functions are called.
"""

from __future__ import annotations

import ast
import math
import operator
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain
from typing import Any, NoReturn

from dynident.errors import DescriptionError, DynidentError

MAX_EXPRESSION = 4_000
"""Characters of one expression."""


@lru_cache(maxsize=512)
def _parsed(text: str) -> ast.expr:
    if len(text) > MAX_EXPRESSION:
        raise ExpressionError(f"has more than {MAX_EXPRESSION} characters")
    try:
        return ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
        raise ExpressionError(f"is not an expression ({getattr(error, 'msg', None) or 'too long or too deep'})") from None


def evaluate(text: str, lookup: Callable[[str], Any], budget: Budget) -> Any:
    """Return the value of an expression; `lookup` returns the value of a name or raises `UnknownNameError`."""
    return _Walk(lookup, budget).value(_parsed(text.strip()), 0)


def computed(function: Callable[..., Any], *operands: Any, **named: Any) -> Any:
    """Return the result of an operator or function of Python for values of the file, with its errors as `ExpressionError`."""
    try:
        return function(*operands, **named)
    except (ArithmeticError, TypeError, ValueError, LookupError, AttributeError, MemoryError) as error:
        if isinstance(error, DynidentError):
            raise
        reason = str(error).splitlines()[0][:160] if str(error) else type(error).__name__
        if isinstance(error, KeyError):
            reason = f"there is no {reason}"
        raise ExpressionError(f"cannot be computed ({reason})") from None


@dataclass
class _Walk:
    """One evaluation; `local` are the names of comprehensions."""

    lookup: Callable[[str], Any]
    budget: Budget
    local: dict[str, Any] = field(default_factory=dict)

    def value(self, node: ast.expr, depth: int) -> Any:
        """Return the value of a node."""
        if depth > MAX_NESTING:
            raise ExpressionError(f"is nested more than {MAX_NESTING} deep")
        depth += 1
        self.budget.spend("steps of evaluation")
        evaluate = FORMS.get(type(node))
        return evaluate(self, node, depth) if evaluate else refuse(f"uses Python's {type(node).__name__}")

    def _constant(self, node: ast.Constant, depth: int) -> Any:
        return checked(node.value, self.budget)

    def _name(self, node: ast.Name, depth: int) -> Any:
        return self._named(node.id)

    def _unary(self, node: ast.UnaryOp, depth: int) -> Any:
        compute = UNARY.get(type(node.op)) or refuse(f"uses Python's {type(node.op).__name__}")
        return computed(compute, self.value(node.operand, depth))

    def _binary(self, node: ast.BinOp, depth: int) -> Any:
        compute = BINARY.get(type(node.op)) or refuse(f"uses Python's {type(node.op).__name__}")
        pair = self._paid((self.value(node.left, depth), self.value(node.right, depth)))
        if check := TOO_LARGE.get(type(node.op)):
            check(*pair)
        return checked(computed(compute, *pair), self.budget)

    def _and_or(self, node: ast.BoolOp, depth: int) -> Any:
        found: Any = None
        for part in node.values:
            found = self.value(part, depth)
            if bool(found) == isinstance(node.op, ast.Or):
                break
        return found

    def _compare(self, node: ast.Compare, depth: int) -> Any:
        found, old = True, self.value(node.left, depth)
        for compare, other in zip(node.ops, node.comparators, strict=True):
            new = self.value(other, depth)
            found, old = computed(COMPARE[type(compare)], *self._paid((old, new))), new
            if not found:
                break
        return found

    def _if(self, node: ast.IfExp, depth: int) -> Any:
        return self.value(node.body if self.value(node.test, depth) else node.orelse, depth)

    def _list(self, node: ast.List, depth: int) -> Any:
        return checked([self.value(part, depth) for part in node.elts], self.budget)

    def _tuple(self, node: ast.Tuple, depth: int) -> Any:
        return checked(tuple([self.value(part, depth) for part in node.elts]), self.budget)

    def _dict(self, node: ast.Dict, depth: int) -> Any:
        if any(key is None for key in node.keys):
            refuse("uses Python's Dict")
        pairs = [
            (self.value(k, depth), self.value(v, depth)) for k, v in zip(node.keys, node.values, strict=True) if k is not None
        ]
        return checked(computed(dict, pairs), self.budget)

    def _subscript(self, node: ast.Subscript, depth: int) -> Any:
        return self._item(self.value(node.value, depth), node.slice, depth)

    def _dot(self, node: ast.Attribute, depth: int) -> Any:
        return self._attribute(self.value(node.value, depth), node.attr)

    def _called(self, node: ast.Call, depth: int) -> Any:
        return checked(self._call(node.func, node.args, node.keywords, depth), self.budget)

    def _comprehension(self, node: ast.ListComp | ast.GeneratorExp, depth: int) -> Any:
        found: list[Any] = []
        self._loop(node.elt, node.generators, found, depth)
        return checked(found, self.budget)

    def _paid(self, operands: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return operands after charging the budget for the expensive ones."""
        for operand in operands:
            if isinstance(operand, list | tuple | dict):
                checked(operand, self.budget)
            elif isinstance(operand, str):
                self.budget.spend("steps of evaluation", len(operand) // 100)
        return operands

    def _named(self, name: str) -> Any:
        if name.startswith("__"):
            refuse(f"uses the name '{name}'")
        if name in self.local:
            return self.local[name]
        try:
            return self.lookup(name)
        except UnknownNameError:
            raise ExpressionError(f"uses '{name}', which is not defined") from None

    def _attribute(self, owner: Any, name: str) -> Any:
        """Return the entry of a dictionary or namespace behind a dot, never an attribute of an object."""
        if isinstance(owner, Namespace | dict) and not name.startswith("__"):
            try:
                return names_in(owner)(name) if isinstance(owner, dict) else owner.lookup(name)
            except UnknownNameError:
                raise ExpressionError(f"uses '.{name}', which does not exist") from None
        return refuse(f"uses '.{name}' of a {type(owner).__name__}")

    def _item(self, owner: Any, index: ast.expr, depth: int) -> Any:
        if not isinstance(owner, list | tuple | dict | str):
            refuse(f"takes an item of a {type(owner).__name__}")
        if isinstance(index, ast.Slice):
            bounds = [None if part is None else self.value(part, depth) for part in (index.lower, index.upper, index.step)]
            return checked(computed(operator.getitem, owner, slice(*bounds)), self.budget)
        return computed(operator.getitem, owner, self.value(index, depth))

    def _call(self, function: ast.expr, arguments: list[ast.expr], keywords: list[ast.keyword], depth: int) -> Any:
        owner: Any = None
        target: Any = None
        method: Callable[..., Any] | None = None
        if isinstance(function, ast.Attribute):
            owner = self.value(function.value, depth)
            method = METHODS.get(type(owner), {}).get(function.attr)
            if method is None:
                target = self._attribute(owner, function.attr)
        else:
            target = self.value(function, depth)
        if method is None and not isinstance(target, Function):
            refuse("calls something that is not a function of xacro")
        if any(keyword.arg is None for keyword in keywords):
            refuse("uses **")
        values = [self.value(argument, depth) for argument in arguments]
        named = {keyword.arg or "": self.value(keyword.value, depth) for keyword in keywords}
        if method is None and target.ours:
            if len(values) != 1 or named:
                raise ExpressionError(f"calls {target.name} with {len(values) + len(named)} arguments; give one")
            return target.call(*self._paid(tuple(values)))
        if method is None:
            return computed(target.call, *self._paid(tuple(values)), **named)
        if not isinstance(owner, dict):  # the listing of a dictionary is charged as a result
            self._paid((owner,))
        return computed(method, owner, *self._paid(tuple(values)), **named)

    def _loop(self, element: ast.expr, loops: list[ast.comprehension], found: list[Any], depth: int) -> None:
        """Append the values of a comprehension."""
        if not loops:
            found.append(self.value(element, depth))
            return
        if len(found) > MAX_ITEMS or depth > MAX_NESTING:
            raise ExpressionError(f"makes a list of more than {MAX_ITEMS} items")
        first, *rest = loops
        outer = dict(self.local)
        for item in items(self.value(first.iter, depth)):
            self._bind(first.target, item)
            if all(self.value(test, depth) for test in first.ifs):
                self._loop(element, rest, found, depth + 1)
        self.local = outer

    def _bind(self, target: ast.expr, item: Any) -> None:
        if isinstance(target, ast.Name):
            self.local[target.id] = item
        elif isinstance(target, ast.Tuple) and len(target.elts) == len(parts := items(item)):
            for name, part in zip(target.elts, parts, strict=True):
                self._bind(name, part)
        else:
            raise ExpressionError("cannot give the items of its loop these names")


FORMS: dict[type[ast.expr], Callable[[_Walk, Any, int], Any]] = {
    ast.Constant: _Walk._constant,
    ast.Name: _Walk._name,
    ast.UnaryOp: _Walk._unary,
    ast.BinOp: _Walk._binary,
    ast.BoolOp: _Walk._and_or,
    ast.Compare: _Walk._compare,
    ast.IfExp: _Walk._if,
    ast.List: _Walk._list,
    ast.Tuple: _Walk._tuple,
    ast.Dict: _Walk._dict,
    ast.Subscript: _Walk._subscript,
    ast.Attribute: _Walk._dot,
    ast.Call: _Walk._called,
    ast.ListComp: _Walk._comprehension,
    ast.GeneratorExp: _Walk._comprehension,
}
"""Syntax permitted in an expression; all other Python is refused."""


MAX_STRING, MAX_ITEMS, MAX_BITS, MAX_NESTING = 100_000, 20_000, 256, 100
LIMITS = {
    "steps of evaluation": 500_000,
    "elements": 100_000,
    "macro calls": 10_000,
    "characters": 10_000_000,
    "included files": 300,
    "bytes of YAML": 300_000,
}
"""Resource limits of one robot; the largest packages need less than a tenth."""


REMEDY = "write it in another way, or expand the file to a .urdf with ROS's xacro if you trust its author"
_NO_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


class ExpressionError(Exception):
    """Reason why an expression has no value, and the remedy."""

    def __init__(self, reason: str, remedy: str = "correct it") -> None:
        super().__init__(reason)
        self.remedy = remedy


class UnknownNameError(Exception):
    """A name without a value."""


def names_in(table: Mapping[str, Any]) -> Callable[[str], Any]:
    """Return a function that looks up names in a table."""

    def lookup(name: str) -> Any:
        if name not in table:
            raise UnknownNameError(name)
        return table[name]

    return lookup


@dataclass
class Budget:
    """Remaining resources of `LIMITS`."""

    left: dict[str, int] = field(default_factory=LIMITS.copy)

    def spend(self, what: str, amount: int = 1) -> None:
        """Charge `amount` of the resource `what`."""
        self.left[what] -= amount
        if self.left[what] < 0:
            raise DescriptionError(
                f"the expansion needs more than {LIMITS[what]} {what}; check for recursive macros or properties, or expand "
                "the file to a .urdf with ROS's xacro"
            )


@dataclass(frozen=True)
class Function:
    """A function permitted in expressions; it wraps the Python function, which is never a value itself."""

    name: str
    call: Callable[..., Any]
    ours: bool = False  # takes one value, and reports errors in it


@dataclass(frozen=True)
class Namespace:
    """Names behind a dot, as in ``math.pi`` or ``<xacro:include ns="...">``; `lookup` raises `UnknownNameError`."""

    lookup: Callable[[str], Any]


def refuse(what: str) -> NoReturn:
    """Raise an error for a feature of the original xacro package only."""
    raise ExpressionError(what, REMEDY)


def checked(value: Any, budget: Budget) -> Any:
    """Return a value of an allowed kind and size, after charging the budget."""
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
            if depth:  # a list of functions could end up as text
                refuse("puts a function into a list")
        elif item is not None and not isinstance(item, float):
            refuse(f"makes a value of the kind '{type(item).__name__}'")
    if size > MAX_ITEMS:
        raise ExpressionError(f"makes a value of more than {MAX_ITEMS} items")
    budget.spend("steps of evaluation", size)
    return value


# ---- functions ------------------------------------------------------------------------------------------------------


def items(value: Any) -> list[Any]:
    """Return the items of a value as a list."""
    if not isinstance(value, list | tuple | dict | str):
        raise ExpressionError(f"goes through a {type(value).__name__}, which is not a list")
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
        raise ExpressionError("sums a value that is not a number")
    return sum(numbers, start)


def _map(function: Any, *lists: Any) -> list[Any]:
    if not isinstance(function, Function):
        raise ExpressionError("maps with something that is not a function")
    found: list[Any] = []
    size = 0
    for arguments in zip(*map(items, lists), strict=False):
        if function.ours and len(arguments) != 1:
            raise ExpressionError(f"maps {function.name} over {len(arguments)} lists; give one")
        found.append(function.call(*arguments))
        size += len(found[-1]) if isinstance(found[-1], list | tuple | dict) else 1
        if size > MAX_ITEMS:  # map(range, ...) makes long lists before they are checked
            raise ExpressionError(f"makes a list of more than {MAX_ITEMS} items")
    return found


def as_text(value: Any = "") -> str:
    """Return a value as text of an attribute."""
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
    "math": Namespace(names_in(MATH)),
    "python": Namespace(names_in(PYTHON)),
}
"""Names known in every expression."""


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
"""Permitted methods, by type of their owner."""


# ---- operators ------------------------------------------------------------------------------------------------------


def _power(base: Any, exponent: Any) -> None:
    whole = isinstance(base, int) and isinstance(exponent, int)
    if whole and exponent > 0 and abs(base) > 1 and exponent * math.log2(abs(base)) > MAX_BITS + 1:
        raise ExpressionError(f"makes an integer of more than {MAX_BITS} bits")


def _times(left: Any, right: Any) -> None:
    for sequence, count in ((left, right), (right, left)):
        if isinstance(sequence, str | list | tuple) and isinstance(count, int):
            most = MAX_STRING if isinstance(sequence, str) else MAX_ITEMS
            if len(sequence) * count > most:
                raise ExpressionError(f"repeats to more than {most} items")


def _modulo(left: Any, right: Any) -> None:
    # In the format of a text: no wide field, and no argument repeated often.
    wide = isinstance(left, str) and re.search(r"%[^a-zA-Z%]*(\d{4}|\*)", left) is not None
    if wide or (isinstance(left, str) and left.count("%") * len(as_text(right)) > MAX_STRING):
        raise ExpressionError(f"makes a text of more than {MAX_STRING} characters")


TOO_LARGE: Mapping[type[ast.operator], Callable[[Any, Any], None]] = {ast.Mult: _times, ast.Mod: _modulo, ast.Pow: _power}
BINARY: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
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
