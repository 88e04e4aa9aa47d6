"""Wrong calls: every public callable of every room, every argument, every wrong value, the other arguments being plausible.

The values are a fixed catalogue and some that the seed draws. A count below the number of combinations draws some of them.

A failure counts when it is neither a `DynidentError` nor a `TypeError` of Python about the call itself, and is not how the same
call fails with all its plausible arguments.
"""

from __future__ import annotations

import builtins
import inspect
import os
import tempfile
import types
import typing
import warnings
from collections import abc
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

import dynident as di
from dynident.annotations import classes_called, fits
from fuzz.samples import URDF, log_of, motion
from fuzz.watch import Tally, watched

WRONG: dict[str, Any] = {
    "None": None,
    "text": "x",
    "empty text": "",
    "bytes": b"x",
    "NaN": float("nan"),
    "inf": float("inf"),
    "-inf": float("-inf"),
    "1e308": 1e308,
    "-1": -1,
    "0": 0,
    "2.5": 2.5,
    "True": True,
    "10**400": 10**400,
    "10**20": 10**20,
    "complex": 1j,
    "object": object(),
    "[]": [],
    "{}": {},
    "()": (),
    "list of text": ["a", "b"],
    "ragged": [[1.0], [1.0, 2.0]],
    "NaN array": np.full(2, np.nan),
    "NaN table": np.full((5, 2), np.nan),
    "1e308 array": np.full(2, 1e308),
    "three": np.ones(3),
    "cube": np.ones((2, 2, 2)),
    "no rows": np.zeros((0, 2)),
    "scalar array": np.array(1.0),
    "objects": np.array([None, 1], dtype=object),
    "class": dict,
    "function": len,
    "list of None": [None],
    "dict of None": {"a": None},
    "set": {1.0, 2.0},
    "path": Path("nowhere"),
    "number as text": "1.0",
    "decimal": Decimal("0.5"),
    "range": range(3),
    "dates": np.array(["2026-01-01"], dtype="datetime64[s]"),
    "records": np.zeros(2, dtype=[("a", float)]),
    "truths": np.array([True, False]),
    "1e-320": 1e-320,
    "2**31": 2**31,
    "deep": [[[[[[1.0]]]]]],
    "robot": di.Mechanism.from_dh([(0.3, 0.0, 0.0, 0.0)]),
}


def drawn(seed: int) -> dict[str, Any]:
    """Return wrong values of random shape and size."""
    rng = np.random.default_rng(seed)
    shape = tuple(rng.integers(0, 5, rng.integers(1, 5)))
    size = float(10.0 ** rng.uniform(-30.0, 30.0))
    return {
        "drawn array": size * rng.standard_normal(shape),
        "drawn row": list(rng.standard_normal(rng.integers(1, 9))),
        "drawn number": size * float(rng.choice([-1.0, 1.0])),
        "drawn whole number": int(rng.integers(-(10**6), 10**6)),
        "drawn text": "".join(map(chr, rng.integers(1, 0x2100, 6))),
    }


EVERYTHING = "all of them"  # instead of the name of one argument
UNIONS = (typing.Union, types.UnionType)
# They wait for a network, start servers, or never end by their nature.
SKIPPED = {
    "link.open_controller",
    "link.SimpleServer",
    "link.LynxServer",
    "link.SimpleController",
    "link.LynxController",
    "link.Campaign",
}
SKIPPED |= {"link.SimpleClient", "link.LynxClient", "link.Emulator", "link.Plant"}


@dataclass(frozen=True)
class Target:
    """One public callable with its plausible arguments."""

    name: str
    function: Callable[..., Any]
    parameters: tuple[inspect.Parameter, ...]
    good: dict[str, Any]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the arguments."""
        return tuple(p.name for p in self.parameters)

    def call(self, name: str | None = None, value: object = None) -> object:
        """Call it, with one argument or all of them replaced; a generator is run to its end."""
        given = self.good if name is None else {**self.good, name: value}
        if name == EVERYTHING:
            given = {p.name: value for p in self.parameters if p.default is p.empty}
        first = [given[p.name] for p in self.parameters if p.kind is p.POSITIONAL_ONLY and p.name in given]
        rest = {p.name: given[p.name] for p in self.parameters if p.kind is not p.POSITIONAL_ONLY and p.name in given}
        result = self.function(*first, **rest)
        return list(result) if inspect.isgenerator(result) else result


class Samples:
    """Plausible arguments: by the name of the callable and parameter, by the name, or by the annotated type."""

    def __init__(self) -> None:
        Path("robot.urdf").write_text(URDF, encoding="utf-8")
        self.robot = di.Mechanism.from_urdf("robot.urdf")
        self.motion, self.log = motion(1), log_of(self.robot, 1)
        evidence = di.Regression.from_log(self.robot, self.log)
        fit = di.WLS().fit(evidence).result_
        run = self.motion
        family = di.trajectory.Fourier(0.5, 2)
        curve = di.trajectory.Trajectory(family, 0.1 * np.random.default_rng(0).standard_normal((2, family.size)))
        limits = di.limits_of(self.robot, {"default": {"acceleration": 100.0}})
        machine = di.simulate.standard_machine(self.robot, run.q)
        score = fit.score(log_of(self.robot, 2))
        law = di.friction.LuGre(fc=1.0, fs=1.5, vs=0.1, sigma0=100.0, sigma1=1.0) if hasattr(di.friction, "LuGre") else None
        self.instances: dict[type, Any] = {}
        stage = di.excitation.Stage("a", "training", curve)
        plan = di.excitation.plan_within("arm2", limits, [stage], 100.0)
        for value in (
            self.robot,
            run,
            self.log,
            evidence,
            fit,
            evidence.base,
            score,
            family,
            curve,
            limits,
            machine,
            law,
            stage,
            plan,
        ):
            if value is not None:
                for kind in type(value).__mro__[:-1]:
                    self.instances.setdefault(kind, value)
        graph = di.graph.Graph()
        node = graph.symbol("x[0]") * 2.0
        equations = di.mechanics.Equations(self.robot)
        for value in (
            graph,
            node,
            equations,
            di.graph.Function("f", {"x": 1}, {"y": [node]}),
            di.trajectory.Line((0.0, 0.0, 0.0), (1.0, 0.0, 0.0)),
            self.robot.parameters,
            self.robot.joints[0],
            self.robot.bodies[-1],
            di.prepare(self.log),
            di.diagnose(self.log),
        ):
            self.instances.setdefault(type(value), value)
        self.by_name: dict[str, Any] = {
            "t": run.t,
            "q": run.q,
            "v": run.v,
            "a": run.a,
            "tau": self.log.effort,
            "position": run.q,
            "velocity": run.v,
            "effort": self.log.effort,
            "names": ("joint1", "joint2"),
            "joints": ("joint1", "joint2"),
            "coordinates": ("joint1", "joint2"),
            "channels": ("joint1", "joint2"),
            "joint": "joint1",
            "frame": "link2",
            "coordinate": "joint1",
            "actuator": "joint1",
            "robot": self.robot,
            "mechanism": self.robot,
            "model": self.robot,
            "effort_kind": "joint_torque",
            "path": Path("made.txt"),
            "folder": Path("made"),
            "source": Path("robot.urdf"),
            "cutoff": 5.0,
            "rate": 50.0,
            "cycle": 0.01,
            "dt": 0.02,
            "frequency": 1.0,
            "duration": 2.0,
            "logs": [self.log],
            "training": [self.log],
            "family": family,
            "gains": (1.0, 1.0, 0.5),
            "time_budget": 0.2,
            "iterations": 1,
            "starts": 1,
            "runs": 1,
            "effort_names": ("joint1", "joint2"),
            "paths": [di.trajectory.Line((0.0, 0.0, 0.0), (1.0, 0.0, 0.0))],
            "points": np.array([[0.0, 0.0], [0.5, 0.2], [1.0, 0.0]]),
            "frequencies": np.array([1.0, 2.0, 4.0]),
            "speed": np.full(2, 1.0),
            "acceleration": np.full(2, 10.0),
            "lower": np.full(2, -1.0),
            "upper": np.full(2, 1.0),
        }
        self.of: dict[str, Any] = {
            "mechanics.inverse_kinematics.position": np.array([0.5, 0.0, 0.4]),
            "trajectory.Fourier.harmonics": 2,
            "mechanism.read_dh.rows": [(0.3, 0, 0, 0)],
            "excitation.design.rate": 20.0,
            "excitation.Plan.robot": "arm2",
            "excitation.Plan.stages": [stage],
            "excitation.plan_within.robot": "arm2",
            "excitation.plan_within.stages": [stage],
            "excitation.complete_test.robot": "arm2",
            "excitation.payload_plan.robot": "arm2",
            "signals.automatic_cutoff.q": run.q,
            "control.per_actuator.count": 2,
            "simulate.bandwidth.frequencies": [1.0, 2.0],
            "simulate.bandwidth.amplitude": 0.01,
        }

    def keep(self, value: object) -> None:
        """Take what a call has returned as an example of its class."""
        for one in value[:3] if isinstance(value, tuple | list) else (value,):
            if type(one).__module__.startswith("dynident.") and type(one) not in self.instances:
                self.instances[type(one)] = one

    def plausible(self, label: str, parameter: inspect.Parameter, hint: Any) -> Any:
        """Return an argument that may be right."""
        name = f"{label}.{parameter.name}"
        if name in self.of:
            return self.of[name]
        kinds = typing.get_args(hint) if typing.get_origin(hint) in UNIONS else (hint,)
        text, named = str(parameter.annotation), self.by_name.get(parameter.name)
        if "Array" in text and (bytes in kinds or not any(isinstance(kind, type) for kind in kinds)):
            return named if named is not None else np.linspace(0.1, 0.9, 2)
        for kind in kinds:
            found = self._example(kind)
            if found is not None:
                return found
        plain = {str: "a", int: 2, float: 1.0, bool: True, bytes: b"a"}
        for kind in kinds:
            if kind in plain:
                fits = isinstance(named, kind) and not isinstance(named, bool)
                return named if fits else plain[kind]
        if named is not None:
            return named
        for part, value in (
            ("Callable", lambda *_, **__: 1.0),
            ("Mapping", {}),
            ("tuple[str", ("joint1",)),
            ("Sequence[str", ["joint1"]),
            ("Sequence", [1.0, 2.0]),
        ):
            if part in text:
                return value
        return np.linspace(0.1, 0.9, 2) if "rray" in text else 1.0

    def _example(self, kind: Any) -> Any:
        """Return an example of a class, of one below it or that follows its protocol, or a list or table of such."""
        origin, inner = typing.get_origin(kind), typing.get_args(kind)
        if origin in (list, tuple, abc.Sequence, abc.Iterable, abc.Collection) and inner:
            one = self._example(inner[0])
            return None if one is None else [one] if origin is not tuple else (one,)
        if origin in (dict, abc.Mapping) and len(inner) == 2:
            one = self._example(inner[1])
            return None if one is None else {"joint1": one}
        if origin in UNIONS:
            return next((found for one in inner if (found := self._example(one)) is not None), None)
        if not isinstance(kind, type) or not kind.__module__.startswith("dynident."):
            return None
        if kind in self.instances:
            return self.instances[kind]
        if getattr(kind, "_is_protocol", False):
            return next((x for x in self.instances.values() if fits(x, kind)), None)
        return next((x for known, x in self.instances.items() if issubclass(known, kind)), None)


class _Names(dict[str, Any]):
    """Names for annotations: what a module imports from elsewhere for type checkers only is Any."""

    def __init__(self, module: Any) -> None:
        super().__init__(vars(module))

    def __missing__(self, key: str) -> Any:
        return getattr(builtins, key, None) or classes_called(key) or Any


def hints(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the types of a callable's parameters as far as they can be known."""
    inner = function.__init__ if inspect.isclass(function) else inspect.unwrap(function)  # type: ignore[misc]
    inner = inspect.unwrap(inner)
    module = inspect.getmodule(function)
    try:
        return typing.get_type_hints(inner, None, _Names(module))
    except Exception:  # an annotation that cannot be evaluated at run time
        return {}


def targets(rooms: tuple[str, ...] = di.ROOMS, results: bool = True) -> list[Target]:
    """Return all public callables of the rooms, and the public methods of what there is an example of.

    With `results`, every callable is called once, and what it returns is an example too.
    """
    samples = Samples()
    found = _targets(rooms, samples)
    if not results:
        return found
    for classes in (False, True):  # what a function returns is a better example than what a constructor accepts
        for target in found:
            if classes or not inspect.isclass(target.function):
                watched(lambda t=target: samples.keep(t.call()))
        found = _targets(rooms, samples)
    return found


def _targets(rooms: tuple[str, ...], samples: Samples) -> list[Target]:
    found, seen = [], set()
    for room in rooms:
        module = import_module(f"dynident.{room}")
        for name in getattr(module, "__all__", ()):
            thing, label = getattr(module, name), f"{room}.{name}"
            if not callable(thing) or label in SKIPPED or id(thing) in seen or _is_error(thing):
                continue
            seen.add(id(thing))
            found += _target(label, thing, samples)
            if inspect.isclass(thing):
                for method, bound in _methods(thing, samples.instances.get(thing)):
                    found += _target(f"{label}.{method}", bound, samples)
    return found


def _is_error(thing: object) -> bool:
    return inspect.isclass(thing) and issubclass(thing, BaseException)


def _methods(kind: type, example: object) -> Iterator[tuple[str, Callable[..., Any]]]:
    for name, value in vars(kind).items():
        if name.startswith("_") or isinstance(value, property):
            continue
        if isinstance(value, classmethod | staticmethod) or (example is not None and inspect.isfunction(value)):
            yield name, getattr(kind if isinstance(value, classmethod | staticmethod) else example, name)


def _target(label: str, function: Callable[..., Any], samples: Samples) -> list[Target]:
    try:
        parameters = tuple(inspect.signature(function).parameters.values())
    except (ValueError, TypeError):
        return []
    parameters = tuple(p for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD))
    known = hints(function)
    cheap = {"time_budget", "iterations", "starts", "runs"}  # else a call that succeeds takes minutes
    wanted = [p for p in parameters if p.default is p.empty or p.name in cheap]
    good = {p.name: samples.plausible(label, p, known.get(p.name)) for p in wanted}
    return [Target(label, function, parameters, good)] if parameters else []


def _named(text: str, target: Target) -> bool:
    """Say whether Python itself has told which argument is wrong."""
    return any(f"'{p.name}'" in text for p in target.parameters)


def fuzz_calls(
    count: int, seed: int = 0, worker: int = 0, workers: int = 1, rooms: tuple[str, ...] = di.ROOMS, results: bool = True
) -> list[Tally]:
    """Try `count` wrong calls, every `workers`-th of them here; return what came of them by room."""
    before, tallies = Path.cwd(), {room: Tally(f"calls {room}") for room in rooms}
    with tempfile.TemporaryDirectory(prefix="dynident-fuzz-") as name, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        os.chdir(name)
        try:
            values = WRONG | drawn(seed)
            everything = [(t, name, key) for t in targets(rooms, results) for name in (*t.names, EVERYTHING) for key in values]
            order = np.random.default_rng(seed).permutation(len(everything))[:count]
            baselines: dict[str, str] = {}
            for k in order[worker::workers]:
                target, parameter, key = everything[k]
                if target.name not in baselines:
                    baselines[target.name] = ":".join(watched(target.call)[1].split(":")[:2])
                outcome, where = watched(lambda t=target, p=parameter, w=values[key]: t.call(p, w))
                if outcome == "internal" and _named(where, target):
                    outcome = "sentence"
                elif outcome == "internal" and where.split(":")[:2] == baselines[target.name].split(":"):
                    outcome = "unclear"
                tallies[target.name.split(".")[0]].add(outcome, f"{target.name}({parameter}): {where}", key)
        finally:
            os.chdir(before)
    return list(tallies.values())
