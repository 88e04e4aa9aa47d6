"""Annotations at run time: whether a value fits one, and what it asks for in words."""

from __future__ import annotations

import builtins
import inspect
import os
import sys
import types
import typing
from collections import abc
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

ITEMS = 64  # of a sequence or table that are looked at


_types: WeakKeyDictionary[Any, dict[str, Any]] = WeakKeyDictionary()  # of functions: objects are made often


class Numbers:
    """Stands for arrays of numbers in annotations."""

    def __class_getitem__(cls, _: object) -> type[Numbers]:
        return cls


class _Names(dict[str, Any]):
    """Names in annotations; what a module imports from elsewhere for type checkers only may be anything."""

    def __init__(self, known: Mapping[str, Any]) -> None:
        super().__init__(known)
        self.update(Array=Numbers, ArrayLike=Numbers, NDArray=Numbers, Complex=Any)
        self.complete = True  # whether what was asked for so far is known for good

    def __missing__(self, name: str) -> Any:
        found = getattr(builtins, name, None)
        self.complete = self.complete and found is not None
        return found or classes_called(name) or Any


def classes_called(name: str) -> Any:
    """Return the classes of dynident that have a name: modules import some for type checkers only."""
    modules = [module for key, module in list(sys.modules.items()) if key.startswith("dynident.")]
    found = {
        thing for module in modules if inspect.isclass(thing := vars(module).get(name)) and thing.__module__ == module.__name__
    }
    return typing.Union[tuple(found)] if found else None  # noqa: UP007 - as many as there are


def types_of(function: Any) -> dict[str, Any]:
    """Return the types of the parameters as far as they can be known at run time."""
    if function in _types:
        return _types[function]
    names = _Names(function.__globals__)
    try:
        found = typing.get_type_hints(function, None, names)
    except Exception:  # an annotation that has a meaning for type checkers only
        return {}
    if names.complete:  # else a module that is loaded later may tell more
        _types[function] = found
    return found


def members(kind: Any) -> tuple[Any, ...]:
    """Return the types of a union, or the one type."""
    return typing.get_args(kind) if typing.get_origin(kind) in (typing.Union, types.UnionType) else (kind,)


def is_protocol(thing: type) -> bool:
    """Say whether a class is a protocol."""
    return bool(getattr(thing, "_is_protocol", False))


def fits(value: Any, kind: Any) -> bool:
    """Say whether a value is of an annotated type, as far as this can be told."""
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        return any(fits(value, one) for one in inner)
    if origin is typing.Literal:
        return isinstance(value, str | int | bool | None) and value in inner
    if origin is typing.Annotated:
        return fits(value, inner[0])
    if origin is type:
        return inspect.isclass(value)
    if origin is abc.Callable or kind is abc.Callable:
        return callable(value)
    if origin is tuple and inner and inner[-1] is not Ellipsis:
        return is_row(value) and len(value) == len(inner) and all(fits(x, kind) for x, kind in zip(value, inner, strict=True))
    if inspect.isclass(origin) and issubclass(origin, abc.Mapping):
        good = isinstance(value, Mapping)
        return good and all(fits(k, inner[0]) and fits(v, inner[1]) for k, v in some(value.items()))
    if inspect.isclass(origin) and issubclass(origin, abc.Iterable) and inner and not issubclass(origin, os.PathLike):
        return is_row(value) and all(fits(item, inner[0]) for item in some(value))
    return _fits_class(value, origin or kind)


def _fits_class(value: object, kind: Any) -> bool:
    if kind is float:
        return _fits_float(value)
    if kind is int:
        return isinstance(value, int | np.integer) and not isinstance(value, bool)
    if kind is bool:
        return isinstance(value, bool | np.bool_)
    if kind is Numbers:
        return numeric(value) is not None
    if kind is None or kind is type(None):
        return value is None
    if not inspect.isclass(kind):
        return True
    if is_protocol(kind):
        return all(hasattr(value, name) for name in (*vars(kind), *kind.__annotations__) if not name.startswith("_"))
    try:
        return isinstance(value, kind)
    except TypeError:
        return True


def _fits_float(value: object) -> bool:
    if isinstance(value, bool | np.bool_) or (isinstance(value, np.ndarray) and value.ndim):
        return False
    array = numeric(value) if isinstance(value, int | float | np.number | np.ndarray) else None
    return array is not None


def is_row(value: object) -> bool:
    """Say whether a value has items."""
    if isinstance(value, np.ndarray) and not value.ndim:
        return False
    return isinstance(value, abc.Iterable) and not isinstance(value, str | bytes | Mapping) and not inspect.isclass(value)


def some(items: Any) -> Iterator[Any]:
    """Give the first items of what can be read twice."""
    if isinstance(items, abc.Collection):
        yield from islice(items, ITEMS)


WORDS: dict[Any, str] = {
    float: "a number",
    int: "a whole number",
    bool: "True or False",
    str: "a text",
    bytes: "bytes",
    Numbers: "an array of real numbers",
    type(None): "None",
    os.PathLike: "a path",
}


def wanted(kind: Any) -> str:
    """Return what an annotation asks for, in words."""
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        return " or ".join(dict.fromkeys(wanted(one) for one in inner))
    if origin is typing.Literal:
        return f"one of {', '.join(map(str, inner))}"
    if origin is abc.Callable or kind is abc.Callable:
        return "a function"
    if inspect.isclass(origin) and issubclass(origin, abc.Mapping):
        return f"a table of {wanted(inner[0])} and {wanted(inner[1])}"
    if inspect.isclass(origin) and issubclass(origin, abc.Iterable) and inner and not issubclass(origin, os.PathLike):
        return "a list of texts" if inner[0] is str else f"a list of {wanted(inner[0])}"
    kind = origin or kind
    if kind in WORDS:
        return WORDS[kind]
    return f"a {kind.__name__}" if inspect.isclass(kind) else "something else"


def numeric(value: object) -> Any:
    """Return numbers as an array, or nothing when they are no real numbers."""
    try:
        array = np.asarray(value)
        if array.dtype.kind not in "biufO" or (array.dtype.kind == "O" and not _plain(array)):
            return None
        return np.asarray(array, dtype=np.float64)
    except OverflowError:
        return np.asarray(np.inf)
    except Exception:  # ragged lists, objects that pretend to be arrays
        return None


def _plain(array: Any) -> bool:
    return all(isinstance(item, int | float | np.number) for item in array.ravel()[:ITEMS])
