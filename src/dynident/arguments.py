"""Wrong arguments of public calls, told by name.

A room ends with ``guard(globals())``. A public function is then called as it is. When a call from outside dynident fails with
an error of Python instead of a sentence, its arguments are compared with their annotations, and the one that does not fit is
named; a count that is not whole, or a number that is NaN, is refused. Calls that dynident makes itself are not explained: a
failure there is a bug, and stays what it is, unless an argument of the user's own call explains it.
"""

from __future__ import annotations

import dis
import enum
import inspect
import math
import os
import sys
import types
from collections import abc
from collections.abc import Iterator, Mapping
from functools import wraps
from importlib import import_module
from typing import Any

import numpy as np

from dynident.annotations import Numbers, fits, is_protocol, is_row, members, numeric, some, types_of, wanted
from dynident.checks import shown
from dynident.errors import DynidentError

RAW = (TypeError, AttributeError, ValueError, LookupError, ArithmeticError, RuntimeError, MemoryError, OSError)
LARGEST = 1e100  # beyond it squares overflow
SPECIAL = ("__init__", "__call__")
SHAPES: tuple[str, ...] = ("shape", "broadcast", "dimension", "size", "axis", "aligned", "index", "indices", "subscript", "zip")
SHAPES += ("len()", "positional", "iterable", "unpack", "length")
EMPTY = ("empty", "zero-size", "size 0", "out of range", "out of bounds", "at least", "not enough", "iterable", "unpack", "0 ")
MISSING = object()


# ---- which calls are guarded ---------------------------------------------------------------------------------------------


def guard(namespace: dict[str, Any], fast: tuple[str, ...] = (), later: Mapping[str, str] | None = None) -> None:
    """Guard every public function and class of a room; those that must be `fast` look at nothing before they fail.

    `later` gives modules of the room and the names, separated by blanks, that are loaded from them on first use.
    """
    for name in namespace["__all__"]:
        if name in namespace:
            namespace[name] = guarded(namespace[name], name in fast)
    if later is None:
        return
    room, homes = namespace["__name__"], {name: module for module, names in later.items() for name in names.split()}

    def load(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module '{room}' has no attribute '{name}'")
        thing = getattr(import_module(f"{room}.{homes[name]}"), name)
        thing = guarded(thing, name in fast)
        if name in namespace["__all__"]:
            namespace[name] = thing
        return thing

    namespace["__getattr__"] = load


def guarded(thing: Any, fast: bool = False) -> Any:
    """Return the guarded function; the methods of a class are guarded in their place."""
    if not str(getattr(thing, "__module__", "")).startswith("dynident."):
        return thing
    if inspect.isfunction(thing):
        guard_, name = _wrap(thing, thing.__name__, fast=fast), thing.__name__
        home = sys.modules.get(thing.__module__)
        if home is not None and getattr(home, name, None) is thing:  # so that it can be sent to other processes
            setattr(home, name, guard_)
        return guard_
    if inspect.isclass(thing) and not issubclass(thing, BaseException | enum.Enum | tuple) and not is_protocol(thing):
        for kind in thing.__mro__:
            if kind.__module__.startswith("dynident.") and not is_protocol(kind):
                _guard_methods(kind, fast)
    return thing


def _guard_methods(kind: type, fast: bool) -> None:
    for name, value in list(vars(kind).items()):
        if name.startswith("_") and name not in SPECIAL:
            continue
        label = f".{name}" if name not in SPECIAL else ""
        if inspect.isfunction(value):
            setattr(kind, name, _wrap(value, label, 1, fast))
        elif isinstance(value, classmethod):
            setattr(kind, name, classmethod(_wrap(value.__func__, label, 1, fast)))
        elif isinstance(value, staticmethod):
            setattr(kind, name, staticmethod(_wrap(value.__func__, f"{kind.__name__}{label}", 0, fast)))


def _wrap(function: Any, label: str, skip: int = 0, fast: bool = False) -> Any:
    """Return the function with its guard; the first `skip` arguments (self, cls) are taken for granted."""
    if hasattr(function, "_guard"):
        return function
    early: list[tuple[int, str, bool]] | None = None
    makes = function.__name__ == "__init__"

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        nonlocal early
        if _is_ours(sys._getframe(1)):  # a failure there is a bug, or has its cause in what the user gave to an outer call
            return function(*args, **kwargs)
        if early is None:
            early = _scalars(function, skip)
        nonsense = None
        for place, name, is_count in early:
            value = args[place] if place < len(args) else kwargs.get(name, MISSING)
            if type(value) is not int and value is not MISSING and nonsense is None:
                nonsense = _nonsense(name, value, is_count)
        try:
            result = function(*args, **kwargs)
        except RAW as error:
            _tell(error, function, label, args, kwargs, skip)
            raise
        if nonsense is None and makes and (kwargs or len(args) > 1):  # more than the object itself
            nonsense = _misfit(function, args, kwargs)
        if nonsense is not None:  # the function's own sentence would be better, but it has none
            raise DynidentError(f"{_full(label, args, skip)}: {nonsense}")
        return _run(result, function, label, args, kwargs, skip) if inspect.isgenerator(result) else result

    @wraps(function)
    def quick(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except RAW as error:
            if not _is_ours(sys._getframe(1)):
                _tell(error, function, label, args, kwargs, skip)
            raise

    chosen = quick if fast else call
    chosen.__dict__["_guard"] = True
    return chosen


def _tell(error: BaseException, function: Any, label: str, args: tuple[Any, ...], kwargs: dict[str, Any], skip: int) -> None:
    """Raise the sentence that names the wrong argument, if the error is Python's own and one explains it."""
    told = None if isinstance(error, DynidentError) else _explain(function, _full(label, args, skip), args, kwargs, skip, error)
    if told is not None:
        raise DynidentError(told) from error


def _run(items: Any, function: Any, label: str, args: tuple[Any, ...], kwargs: dict[str, Any], skip: int) -> Iterator[Any]:
    """Give the items of a generator, whose function begins to work with the first of them."""
    try:
        yield from items
    except RAW as error:
        _tell(error, function, label, args, kwargs, skip)
        raise


def _is_ours(frame: types.FrameType) -> bool:
    """Say whether a call comes from dynident itself, also by way of `dataclasses.replace`."""
    while frame.f_globals.get("__name__") == "dataclasses" and frame.f_back is not None:
        frame = frame.f_back
    return str(frame.f_globals.get("__name__", "")).partition(".")[0] == "dynident"


def _full(label: str, args: tuple[Any, ...], skip: int) -> str:
    """Return the name of a call; that of a method begins with the class of its object."""
    owner = args[0] if skip and args else None
    return f"{owner.__name__ if isinstance(owner, type) else type(owner).__name__}{label}" if skip else label


def _scalars(function: Any, skip: int) -> list[tuple[int, str, bool]]:
    """Return place, name, and whether it is a count, of the parameters that are one number."""
    known, found = types_of(function), []
    makes = function.__name__ == "__init__"  # results may hold NaN
    for place, (name, parameter) in enumerate(inspect.signature(function).parameters.items()):
        kinds = [kind for kind in members(known.get(name)) if kind is not type(None)]
        nan = isinstance(parameter.default, float) and math.isnan(parameter.default)
        if place >= skip and (kinds == [int] or (kinds == [float] and not makes and not nan)):
            at = place if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD) else sys.maxsize
            found.append((at, name, kinds == [int]))
    return found


def _nonsense(name: str, value: object, is_count: bool) -> str | None:
    """Say what is wrong with a count that is not whole, or a number that is NaN."""
    if is_count and isinstance(value, float | np.floating | bool):
        return f"{name} is {value}; give a whole number"
    if not is_count and isinstance(value, float | np.floating) and math.isnan(value):
        return f"{name} is {value}; give a number"
    return None


def _misfit(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str | None:
    """Say which field of a new object is not what its methods will take it for; arrays may stand for numbers.

    Estimators keep what they are given, as those of scikit-learn do; their `fit` checks it.
    """
    if hasattr(args[0], "get_params"):
        return None
    signature, known = inspect.signature(function), types_of(function)
    made = getattr(args[0], "__dict__", {})
    for name, given in list(signature.bind(*args, **kwargs).arguments.items())[1:]:
        value = made.get(name, given)  # a constructor may accept more than it keeps, and keep what it makes of it
        kind, parameter = known.get(name, Any), signature.parameters[name]
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD) or _same(value, parameter.default):
            continue
        if fits(value, kind) or (value is not given and fits(given, kind)):
            continue
        if numeric(value) is None or not any(one in (int, float, bool, Numbers) for one in members(kind)):
            return f"{name} is {shown(value)}; give {wanted(kind)}"
    return None


# ---- which argument is wrong ---------------------------------------------------------------------------------------------


def _explain(
    function: Any, label: str, args: tuple[Any, ...], kwargs: dict[str, Any], skip: int, error: BaseException
) -> str | None:
    """Return the sentence that names the wrong argument, or nothing when all of them fit."""
    try:
        signature = inspect.signature(function)
        given = dict(list(signature.bind(*args, **kwargs).arguments.items())[skip:])
    except TypeError:  # Python itself tells what is missing or unknown
        return None
    known = types_of(function)
    for name, value in given.items():
        kind = known.get(name, Any)
        parameter = signature.parameters[name]
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            items = value.values() if isinstance(value, Mapping) else value
            wrong = [item for item in items if not fits(item, kind)]
            if wrong:
                return f"{label}: {name} holds {shown(wrong[0])}; give {wanted(kind)}"
        elif not fits(value, kind) and value is not parameter.default:
            return f"{label}: {name} is {shown(value)}; give {wanted(kind)}"
    changed = {name: value for name, value in given.items() if not _same(value, signature.parameters[name].default)}
    for name, value in changed.items():
        problem = _suspect(value, error)
        if problem:
            return f"{label}: {name} {problem} ({_why(error)}); give another value"
    arrays = {name: _shape(value) for name, value in changed.items() if isinstance(value, np.ndarray | list | tuple)}
    ragged = any(isinstance(shape, str) for shape in arrays.values())
    if (
        arrays
        and (ragged or any(word in str(error) for word in SHAPES))
        and isinstance(error, ValueError | IndexError | TypeError)
    ):
        sizes = ", ".join(f"{name} has the shape {shape}" for name, shape in arrays.items())
        return f"{label}: {sizes}; these do not fit ({_why(error)})"
    for name, value in changed.items():
        kinds = members(known.get(name, Any))
        if Numbers in kinds and float not in kinds and _shape(value) == ():
            return f"{label}: {name} is {shown(value)}; give an array of real numbers ({_why(error)})"
        own = (type(value).__name__, f"{type(value).__module__}.{type(value).__name__}")
        ways = (("'", "'"), ("type ", " "), ("not ", ""))
        blamed = any(f"{before}{word}{after}" in str(error) for word in own for before, after in ways)
        if (known.get(name, Any) is Any and _is_foreign(value)) or (any(one in (Any, Numbers) for one in kinds) and blamed):
            return f"{label}: {name} is {shown(value)}, which cannot be used here ({_why(error)})"
    used = _used_where_it_failed(error, function, changed)
    if used:
        values = " or ".join(f"{name} = {shown(changed[name])}" for name in used)
        return f"{label}: {values} cannot be used here ({_why(error)}); give another value"
    return None


def _used_where_it_failed(error: BaseException, function: Any, given: Mapping[str, Any]) -> list[str]:
    """Return the arguments that stand, themselves or as their items, in the very expression of dynident that failed."""
    steps = [(frame, at) for frame, at in _steps(error) if _is_ours(frame)]
    if not steps:
        return []
    frame, at = steps[-1]
    code = list(dis.get_instructions(frame.f_code))
    failed = next((one.positions for one in code if one.offset == at), None)
    if failed is None or failed.lineno is None:
        return []
    for whole_line in (False, True):  # an unpacking stands at its targets, not at what is unpacked
        names = {str(one.argval) for one in code if one.positions and _is_within(one.positions, failed, whole_line)}
        there = [frame.f_locals[name] for name in names if name in frame.f_locals]
        there += [value for one in there for name, value in getattr(one, "__dict__", {}).items() if name in names]
        its_own = names if frame.f_code is inspect.unwrap(function).__code__ else set()
        used = [name for name, value in given.items() if name in its_own or _is_among(value, there)]
        if used:
            return used
    return []


def _steps(error: BaseException) -> Iterator[tuple[types.FrameType, int]]:
    """Give the frames of an error from the outermost on, each with the place of the instruction that failed."""
    step = error.__traceback__
    while step is not None:
        yield step.tb_frame, step.tb_lasti
        step = step.tb_next


def _is_within(one: Any, failed: Any, whole_line: bool) -> bool:
    if None in (*one, *failed) or whole_line:
        return bool(one.lineno == failed.lineno)
    first, last = (failed.lineno, failed.col_offset), (failed.end_lineno, failed.end_col_offset)
    return bool(first <= (one.lineno, one.col_offset) and (one.end_lineno, one.end_col_offset) <= last)


def _is_among(value: Any, there: list[Any]) -> bool:
    """Say whether an argument or one of its items is among the objects of a line; small ones are shared by everyone."""
    items = [value, *some(value.values() if isinstance(value, Mapping) else value)] if _is_items(value) else [value]
    own = [item for item in items if not isinstance(item, int | str | bytes | type(None))]
    return any(item is one for item in own for one in there)


def _is_items(value: object) -> bool:
    return is_row(value) or isinstance(value, Mapping)


def _same(value: object, default: object) -> bool:
    """Say whether a value is the default: the same object, or both are empty or plain and equal."""
    plain = (str, int, float, tuple, dict, list, type(None))
    try:
        return value is default or (isinstance(value, plain) and type(value) is type(default) and bool(value == default))
    except ValueError:  # arrays inside, which are compared number by number
        return False


def _shape(value: Any) -> tuple[int, ...] | str:
    """Return the shape of an array or a list."""
    try:
        return tuple(np.shape(value))
    except ValueError:
        return "of rows of different lengths"


def _is_foreign(value: object) -> bool:
    """Say whether a value is nothing of dynident, and no number: what a parameter that takes several types cannot take."""
    ours = str(type(value).__module__).startswith("dynident.")
    return not ours and not (isinstance(value, int | float | np.ndarray) and numeric(value) is not None)


def _why(error: BaseException) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())[:120]}".rstrip(": ")


def _suspect(value: object, error: BaseException) -> str:
    """Return what is strange about a value of the right type, or an empty text."""
    if isinstance(value, abc.Sized) and not _length(value) and any(word in str(error) for word in EMPTY):
        return "is empty"
    if isinstance(value, str | os.PathLike | Mapping) or callable(value):
        return _suspect_name(value, error)
    if isinstance(error, IndexError) and isinstance(value, int | float | np.number):
        return f"is {shown(value)}, which is no number of an item"
    array = numeric(value)
    if array is None or array.size == 0:
        return ""
    if not np.isfinite(array).all():
        return "holds values that are not finite" if array.ndim else f"is {float(array)}"
    if np.abs(array).max() > LARGEST:
        return f"holds {float(np.abs(array).max()):g}, which is too large"
    large = isinstance(value, int) and abs(value) >= 1 << 63
    negative = isinstance(value, int) and value < 0
    if array.ndim == 0 and (large or negative or (array == 0.0 and isinstance(error, ZeroDivisionError))):
        return f"is {shown(value)}"
    return ""


def _suspect_name(value: Any, error: BaseException) -> str:
    """Return what is strange about a text, a path, a table or a function."""
    if isinstance(error, OSError) and isinstance(value, str | os.PathLike):
        here = error.filename is not None and os.fspath(value) in str(error.filename)
        return f"is {shown(value)}, where nothing can be read or written" if here else ""
    if isinstance(value, str):
        asked = value in error.args or getattr(error, "name", None) == value
        return f"is {shown(value)}, which is not known" if isinstance(error, LookupError | AttributeError) and asked else ""
    if isinstance(value, Mapping):
        return f"has no {error.args[0]!r}" if isinstance(error, KeyError) and error.args and error.args[0] not in value else ""
    return "cannot be called in this way" if isinstance(error, TypeError) and "argument" in str(error) else ""


def _length(value: Any) -> int:
    return value.size if isinstance(value, np.ndarray) else len(value)
