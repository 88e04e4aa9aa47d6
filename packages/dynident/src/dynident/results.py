"""One protocol for every result: ``summary()``, ``plot()``, ``to_dict()``, ``save(path)`` and ``load(path)``.

A result is a frozen dataclass of numbers, texts, arrays, tuples, mappings and other dataclasses. Its file is JSON, and the
field ``kind`` names its class by its package and subpackage, as in "dynident.identify.Fit" or "dynident_lab.servo.Bode"; the
module within the subpackage may change. Reading imports only modules of dynident and of packages with plug-ins, and calls only
constructors of dataclasses, with the types of their fields.
"""

from __future__ import annotations

import base64
import binascii
import html
import inspect
import json
import math
import os
import reprlib
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, Union, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import ArrayLike

from dynident.errors import OURS, DynidentError, missing_extra
from dynident.files import jsonable, read_packed, too_large, write_atomic
from dynident.plugins import PACKAGES, installed, plugin_packages

if TYPE_CHECKING:
    import pandas as pd

ROWS = 60  # limit of a notebook view
SHORT = 24  # characters of a cell without line breaks


class Tabular:
    """Base of objects shown as tables; a class defines its columns, and optionally a different view for notebooks."""

    def _columns(self) -> Mapping[str, Sequence[Any]]:
        """Return the columns by name."""
        raise NotImplementedError

    def _view(self) -> Mapping[str, Sequence[Any]]:
        """Return the columns that a notebook shows."""
        return self._columns()

    def _head(self) -> str:
        """Return the line above the table."""
        return repr(self)

    def to_frame(self) -> pd.DataFrame:
        """Return the table for pandas."""
        try:
            import pandas as pd  # noqa: PLC0415 - an extra
        except ImportError as error:
            raise missing_extra("pandas", "pandas", "a table for pandas") from error
        return pd.DataFrame(dict(self._columns()))

    def _repr_html_(self) -> str:
        """Return the table for a notebook."""
        columns = self._view()
        rows = list(zip(*columns.values(), strict=True))
        head = "".join(f'<th style="padding:0 .6em">{html.escape(name)}</th>' for name in columns)
        body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows[:ROWS])
        rest = f"<div>... {len(rows) - ROWS} more rows</div>" if len(rows) > ROWS else ""
        table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        return f"<div><strong>{html.escape(self._head())}</strong>{table}{rest}</div>"


def _cell(value: object) -> str:
    """Return a cell: numbers aligned right, texts left, short ones (names, units) on one line."""
    text = _text(value)
    side = "right" if isinstance(value, int | float | np.number) and not isinstance(value, bool) else "left"
    wrap = ";white-space:nowrap" if len(text) <= SHORT else ""
    return f'<td style="text-align:{side}{wrap};padding:0 .6em">{html.escape(text)}</td>'


def _text(value: object) -> str:
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    return f"{value:.5g}" if isinstance(value, float | np.floating) else str(value)


__all__ = ["Result", "load"]

DESCRIPTIONS = (".urdf", ".xacro", ".xml", ".mjcf", ".sdf", ".world")  # endings of robot descriptions
LOGS = (".csv", ".csv.gz", ".npz", ".parquet", ".mat", ".mcap")  # endings of Log.save; a Regression is an .npz, too
FORMER = {
    "dynident.mechanics": "identify.Partition identify.Partitions",
    "dynident_lab.campaigns": "signals.CampaignLog signals.Recording",
    "dynident_lab.fleet": "fleet",
    "dynident_lab.joint_reactions": "mechanics.Conditioning",
    "dynident_lab.servo": "control.Margins drive.Bode drive.Modes simulate.MachineFit simulate.MotorLoad simulate.SineResponse "
    "simulate.Sizing simulate.StepMetrics simulate.Sweep simulate.TorqueSplit",
    "dynident_lab.testbench": "testbench",
    "dynident_lab.thermal": "friction.AdvancedSecondOrder friction.FirstOrder friction.SecondOrder friction.Thermal "
    "friction.WarmFriction friction.Warming simulate.Heating",
    "dynident_papers.flexures": "mechanics.FlexureRequirements",
    "dynident_papers.friction": "friction.Dahl friction.GeneralisedMaxwellSlip",
    "dynident_papers.identify": "identify.Individual identify.JointReduction identify.Reduction identify.Statistics",
    "dynident_papers.properties": "validate.RobotCheck",
    "dynident_papers.reproduce": "reproduce",
    "dynident_papers.servo": "control.Trial control.ZoneTuning drive.ActuatorFit drive.ModalFit",
    "dynident_papers.thermal": "friction.Fractional friction.TwoPole",
    "dynident_papers.trajectories": "trajectory.VelocityProfile",
    "dynident_papers.workspace": "mechanics.Singularity mechanics.WorkspaceMap",
}
"""Kinds and whole subpackages at other places up to version 0.2, by their present place."""
RENAMED = {"BiasDiagnosis": "LeastSquaresBias"}  # classes of earlier versions
LONGEST = 512  # longest array that is written as text; longer ones are packed


class Frozen:
    """Base of frozen dataclasses that are copied and pickled by their fields: caches are omitted, mappings may be read-only."""

    def __reduce__(self) -> tuple[Any, ...]:
        given = {f.name: getattr(self, f.name) for f in fields(self) if f.init}  # type: ignore[arg-type]
        return _again, (type(self), {k: dict(x) if isinstance(x, types.MappingProxyType) else x for k, x in given.items()})


def _again(cls: type, given: dict[str, Any]) -> Any:
    """Return a copied or unpickled object."""
    return cls(**given)


class Result(Frozen):
    """Base of results: frozen dataclasses that can be shown, written and read back.

    A class with more content than its fields overrides `_content` and `from_dict`.
    """

    #: Properties that the file contains in addition to the fields; they are computed again after reading.
    derived: ClassVar[tuple[str, ...]] = ()
    #: Remedy for a result that is too large for one file.
    _less: ClassVar[str] = "save parts of it"

    def summary(self) -> str:
        """Return the result as text: numbers and texts of its fields, shapes of its arrays."""
        shown = [_shown(f.name, getattr(self, f.name)) for f in fields(self)]  # type: ignore[arg-type]
        return f"{type(self).__name__}: {', '.join(filter(None, shown))}"

    def _content(self) -> dict[str, Any]:
        """Return the fields by name, with arrays unchanged; the basis of `to_dict` and `save`."""
        return _fields(self)

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain values: `kind`, then the fields as numbers, texts, lists and dicts."""
        return _written(self, jsonable)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Return the result stored by `to_dict`."""
        return cls(**stored_fields(cls, data, kind_of(cls)))

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the result as a JSON file; floats are exact, arrays of more than 512 numbers are packed (base64)."""
        kind = kind_of(type(self))
        data = json.dumps(_written(self, _packed), indent=1, allow_nan=False).encode("ascii")
        if too_large(data):
            size = f"it needs {len(data) >> 20} MB, more than is read back"
            raise DynidentError(f"cannot save {kind} to '{path}': {size}; {self._less}")
        return write_atomic(path, data)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a file written by `save`."""
        found = load(path)
        if not isinstance(found, cls):
            raise DynidentError(f"'{path}' contains {kind_of(type(found))}, not {kind_of(cls)}; read it with dynident.load")
        return found

    def _repr_html_(self) -> str:
        """Return the summary for a notebook."""
        head, _, rest = self.summary().partition("\n")
        body = f"<pre>{html.escape(rest)}</pre>" if rest else ""
        return f"<div><strong>{html.escape(head)}</strong>{body}</div>"


def load(path: str | os.PathLike[str], mechanism: Any = None) -> Any:
    """Read a file written by the `save` of a result, a log, a regression or a robot.

    Parameters
    ----------
    path : path-like
        JSON file with a field `kind`, or the file of a log, a regression or a robot.
    mechanism : Mechanism, optional
        Robot of a regression or a fit; required for a fit of a robot with user-defined functions.

    Returns
    -------
    Result, Log, Regression or Mechanism
        The same object.
    """
    if str(path).lower().endswith(LOGS):
        top = import_module("dynident")
        return top.Log.read(path) if mechanism is None else top.Regression.load(path, mechanism)
    if str(path).lower().endswith(DESCRIPTIONS):
        return import_module("dynident").Mechanism.load(path)
    data = read_packed(path, "a result")
    kind = data.get("kind") if isinstance(data, dict) else None
    if not isinstance(kind, str):
        raise DynidentError(f"'{path}' is not a result of dynident: it has no 'kind'; give a file written by save(path)")
    cls = class_of(kind)
    if not issubclass(cls, Result):
        raise DynidentError(f"'{path}': {kind} is not a result by itself; give a file written by save(path)")
    robot = [] if mechanism is None else [mechanism]
    if robot and "mechanism" not in inspect.signature(cls.from_dict).parameters:
        raise DynidentError(f"'{path}' contains {kind}, which does not depend on a mechanism; omit it")
    try:
        return cls.from_dict(data, *robot)
    except DynidentError as error:
        raise DynidentError(f"cannot read '{path}': {error}") from error


def kind_of(cls: type) -> str:
    """Return the name of a class in files: the dynident subpackage, or the module of another package, and the class name."""
    parts = cls.__module__.split(".")
    return ".".join([*(parts[:2] if parts[0] in OURS else parts), cls.__qualname__])


def class_of(kind: str) -> type:
    """Return the dataclass that a file names; only modules of dynident and of packages with plug-ins are imported."""
    place = current_kind(kind)
    home, _, name = place.rpartition(".")
    package, _, below = home.partition(".")
    for extra, distribution in PACKAGES.items():
        if package == distribution.replace("-", "_") and distribution not in installed():
            raise DynidentError(f"kind '{kind[:80]}' belongs to {distribution}: run  pip install 'dynident[{extra}]'")
    named = all(part.isidentifier() and not part.startswith("_") for part in home.split("."))
    try:
        found = _found(home, name) if named and (below or package not in OURS) else None
    except ImportError:
        found = None
    if not isinstance(found, type) or not is_dataclass(found) or kind_of(found) != place:
        raise DynidentError(f"kind is '{kind[:80]}', which this version of dynident does not know; write the file again")
    return found


def current_kind(kind: str) -> str:
    """Return a kind in the form of this version: up to version 0.2 it named no package."""
    place, _, name = kind.rpartition(".")
    if place.partition(".")[0] in (*OURS, *plugin_packages()):
        return f"{place}.{RENAMED.get(name, name)}" if place.partition(".")[0] in OURS else kind
    home = next(
        (home for home, kinds in FORMER.items() if kind in kinds.split() or place in kinds.split()), f"dynident.{place}"
    )
    return f"{home}.{RENAMED.get(name, name)}"


@cache
def _found(home: str, name: str) -> Any:
    """Return the object of a name in a module, or in a module inside a dynident subpackage; None if there is none."""
    module = import_module(home)
    found = getattr(module, name, None)
    if found is None and home.partition(".")[0] in OURS:
        for inner in walk_packages(getattr(module, "__path__", ()), f"{home}."):
            try:
                candidate = getattr(import_module(inner.name), name, None)
            except ImportError:  # it needs an extra that is not installed
                continue
            if isinstance(candidate, type) and candidate.__module__ == inner.name:
                return candidate
    return found


# ---- writing -----------------------------------------------------------------------------------------------------------


def _shown(name: str, value: object) -> str:
    """Return a field for a summary; empty if it would be long."""
    if isinstance(value, np.ndarray):
        return f"{name} {value.shape}"
    if not isinstance(value, str | int | float) or len(str(value)) >= 80:
        return ""
    return f"{name} {value:.6g}" if isinstance(value, float) else f"{name} {value}"


def _fields(value: Any) -> dict[str, Any]:
    names = [f.name for f in fields(value) if f.init]
    return {name: getattr(value, name) for name in (*names, *getattr(value, "derived", ()))}


def _walk(value: Any, leaf: Callable[[Any], Any], expected: frozenset[type] = frozenset()) -> Any:
    """Return dicts and lists with leaves converted by `leaf`; a dataclass names its class unless it is the expected one."""
    if isinstance(value, Mapping):
        if all(isinstance(key, str) for key in value):
            return {key: _walk(x, leaf, expected) for key, x in value.items()}
        value = list(value.items())  # JSON keys are texts only
    if isinstance(value, list | tuple):
        return [_walk(x, leaf, expected) for x in value]
    if not is_dataclass(value) or isinstance(value, type):
        return leaf(value)
    content = value._content() if isinstance(value, Result) else _fields(value)
    named = {} if expected == {type(value)} else {"class": kind_of(type(value))}
    inner = _members(type(value))
    return named | {name: _walk(x, leaf, inner.get(name, frozenset())) for name, x in content.items()}


def _written(result: Result, leaf: Callable[[Any], Any]) -> dict[str, Any]:
    return {"kind": kind_of(type(result)), **_walk(result, leaf, frozenset([type(result)]))}


def _packed(value: Any) -> Any:
    """Return a leaf in an exact JSON form."""
    if isinstance(value, np.ndarray):
        listed = value.ndim == 1 or 0 not in value.shape
        if value.size > LONGEST or not listed or value.dtype.kind not in "biuf" or not np.isfinite(value).all():
            content = base64.b64encode(np.ascontiguousarray(value).tobytes()).decode("ascii")
            return {"dtype": value.dtype.str, "shape": list(value.shape), "base64": content}
    plain = jsonable(value)
    return str(plain) if isinstance(plain, float) and not math.isfinite(plain) else plain


# ---- reading -----------------------------------------------------------------------------------------------------------


@cache
def _members(cls: type) -> dict[str, frozenset[type]]:
    """Return the dataclasses that each field of a class may hold."""
    return {name: frozenset(_classes(hint)) for name, hint in _hints(cls).items()}


def _classes(hint: Any) -> list[type]:
    inner = [found for argument in get_args(hint) for found in _classes(argument)]
    return [hint, *inner] if isinstance(hint, type) and is_dataclass(hint) else inner


@cache
def _hints(cls: type) -> dict[str, Any]:
    try:
        found = get_type_hints(cls)
    except NameError:  # names imported for type checkers only are public names of the subpackage
        package = import_module(cls.__module__.rpartition(".")[0])
        found = get_type_hints(cls, localns={name: getattr(package, name) for name in package.__all__})
    return {f.name: found[f.name] for f in fields(cls) if f.init}


def _wrong(where: str, value: object, wanted: str) -> DynidentError:
    if isinstance(value, Mapping) and "base64" in value:
        value = "a packed array"
    shown = value if isinstance(value, str) else reprlib.repr(value)  # a long list is never converted to text as a whole
    return DynidentError(f"'{where}' is {shown[:60]!r}, not {wanted}; the file is damaged, write it again")


def stored(data: Any, name: str, hint: Any, where: str) -> Any:
    """Return one entry of a stored object, converted to its declared type; errors name a missing or wrong entry."""
    if not isinstance(data, Mapping):
        raise _wrong(where, data, "an object")
    if name not in data:
        raise DynidentError(f"'{where}.{name}' is missing; the file is damaged, write it again")
    return _value(hint, data[name], f"{where}.{name}")


def stored_fields(cls: type, data: Any, where: str) -> dict[str, Any]:
    """Return the fields of a dataclass from a stored object."""
    if not isinstance(data, Mapping):
        raise _wrong(where, data, "an object")
    hints, ignored = _hints(cls), {"kind", "class", *getattr(cls, "derived", ())}
    unknown = [name for name in data if name not in hints and name not in ignored]
    if unknown:
        raise DynidentError(f"'{where}' has a field '{unknown[0]}' that {kind_of(cls)} does not have; write the file again")
    given = {name: stored(data, name, hint, where) for name, hint in hints.items() if name in data}
    for each in fields(cls):
        if each.init and each.name not in given and each.default is MISSING and each.default_factory is MISSING:
            raise DynidentError(f"'{where}' is an incomplete {kind_of(cls)}: '{each.name}' is missing; write the file again")
    return given


def _value(hint: Any, value: Any, where: str) -> Any:
    """Return a stored value converted to its declared type."""
    origin, inner = get_origin(hint) or hint, get_args(hint)
    if hint in (Any, object):
        return value
    if origin in (Union, types.UnionType):
        return _member(inner, value, where)
    if origin is Literal:
        if value not in inner:
            raise _wrong(where, value, f"one of {', '.join(map(str, inner))}")
        return value
    if origin is np.ndarray:
        return _array(inner, value, where)
    if isinstance(origin, type) and issubclass(origin, tuple) and origin is not tuple:  # a named tuple
        return origin(*_sequence(tuple, tuple(get_type_hints(origin).values()), value, where))
    if origin in (tuple, list, Sequence):
        return _sequence(origin, inner, value, where)
    if origin in (dict, Mapping):
        return _mapping(inner or (str, Any), value, where)
    return _single(origin, value, where)


def _single(origin: Any, value: Any, where: str) -> Any:
    """Return a number, a text or an object."""
    if origin is float:
        return _number(value, where)
    if origin in (int, bool, str, type(None)):
        if not isinstance(value, origin) or (origin is int and isinstance(value, bool)):
            raise _wrong(where, value, origin.__name__)
        return value
    return value if is_dataclass(value) and _is_a(type(value), origin) else _nested(origin, value, where)


def _nested(base: type, value: Any, where: str) -> Any:
    """Return an object of a class, or of a subclass that the file names."""
    kind = value.get("class") if isinstance(value, Mapping) else None
    if kind is None and not (is_dataclass(base) and isinstance(value, Mapping)):
        raise _wrong(where, value, f"a {base.__name__}")
    cls = base if kind in (None, kind_of(base)) else class_of(str(kind))
    if not _is_a(cls, base):
        raise _wrong(where, kind, f"a {base.__name__}")
    return cls.from_dict(value) if issubclass(cls, Result) else cls(**stored_fields(cls, value, where))


def _is_a(cls: type, base: type) -> bool:
    """Return whether a class is a subclass of another, or has the members of a protocol."""
    if not getattr(base, "_is_protocol", False):
        return issubclass(cls, base)
    members = {*dir(cls), *(f.name for f in fields(cls))}
    return all(name in members for name in vars(base) if not name.startswith("_"))


def _member(choices: tuple[Any, ...], value: Any, where: str) -> Any:
    """Return a value as the first type of a union that accepts it."""
    if value is None and type(None) in choices:
        return None
    if set(get_args(ArrayLike)) <= set(choices):
        return array_of(value, where) if isinstance(value, list | Mapping) else _number(value, where)
    problem: DynidentError | None = None
    for choice in choices:
        if choice is not type(None):
            try:
                return _value(choice, value, where)
            except DynidentError as error:
                problem = problem or error
    raise problem or _wrong(where, value, "null")


def _mapping(inner: tuple[Any, ...], value: Any, where: str) -> dict[Any, Any]:
    held = inner[1]
    if inner[0] is str:
        if not isinstance(value, Mapping):
            raise _wrong(where, value, "an object")
        return {name: _value(held, x, f"{where}.{name}") for name, x in value.items()}
    rows = _sequence(list, (list[Any],), value, where)
    try:
        return dict(_sequence(tuple, inner, row, f"{where}[{i}]") for i, row in enumerate(rows))
    except TypeError as error:  # a key that is a list
        raise _wrong(where, value, f"a table ({error})") from error


def _sequence(origin: Any, inner: tuple[Any, ...], value: Any, where: str) -> Any:
    if not isinstance(value, list | tuple):
        raise _wrong(where, value, "a list")
    repeated = origin is not tuple or (len(inner) == 2 and inner[1] is Ellipsis)
    hints = [inner[0] if inner else Any] * len(value) if repeated or not inner else list(inner)
    if len(hints) != len(value):
        raise _wrong(where, value, f"a list of {len(hints)}")
    found = [_value(hint, x, f"{where}[{i}]") for i, (hint, x) in enumerate(zip(hints, value, strict=True))]
    return found if origin is list else tuple(found)


def _number(value: Any, where: str) -> float:
    if value in ("nan", "inf", "-inf"):
        return float(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _wrong(where, value, "a number")
    return float(value)


def _array(inner: tuple[Any, ...], value: Any, where: str) -> Any:
    declared = get_args(inner[1])[0] if len(inner) > 1 and get_args(inner[1]) else np.float64
    return array_of(value, where, declared if isinstance(declared, type) else np.float64)


def array_of(value: Any, where: str, dtype: Any = np.float64) -> Any:
    """Return an array stored as a list or packed."""
    try:
        if isinstance(value, Mapping):
            stored = np.dtype(value["dtype"])
            if stored.kind not in "biufc" or 2 * stored.itemsize < np.dtype(dtype).itemsize:  # no array grows in memory
                raise ValueError(f"dtype {stored}")
            content = binascii.a2b_base64(value["base64"], strict_mode=True)
            return np.frombuffer(content, dtype=stored).reshape(value["shape"]).astype(dtype, casting="same_kind")
        if not isinstance(value, list | np.ndarray):
            raise TypeError("no list")
        if np.dtype(dtype).kind == "c":
            pairs = np.array(value, dtype=np.float64)
            return pairs[..., 0] + 1j * pairs[..., 1]
        return np.array(value, dtype=dtype)
    except (KeyError, TypeError, ValueError, IndexError, OverflowError, SyntaxError, binascii.Error) as error:
        raise _wrong(where, value, f"an array of numbers ({error})") from error
