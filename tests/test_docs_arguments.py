"""The documentation cannot rot: every public name is walked and its numpydoc docstring compared with its signature."""

from __future__ import annotations

import importlib
import inspect
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

import dynident

docscrape = pytest.importorskip("numpydoc.docscrape", reason="numpydoc is not installed: pip install 'dynident[docs]'")

SOURCE = Path(dynident.__file__).parent
ROOMS = sorted(folder.name for folder in SOURCE.iterdir() if (folder / "__init__.py").is_file())
ROBOTS = sorted(door.parent.name for door in SOURCE.glob("robots/*/__init__.py"))
# Names for other rooms, not for users: one sentence each is enough.
INSIDE = (
    "dynident.graph.",
    *(f"dynident.mechanics.{file}." for file in ("branch", "equations", "functions", "moving_tree", "solving", "vectors")),
    *(f"dynident.excitation.equations.{name}Equations." for name in ("Excitation", "Robot", "Function")),
    *(f"dynident.excitation.{name}." for name in ("objective.Objective", "problem.Problem")),
    *(f"dynident.excitation.criteria.Criterion.{name}" for name in ("evaluate", "differentiate")),
    *(
        f"dynident.excitation.{name}"
        for name in ("limits_file.limits_settings", "obstacles.Floor.reachable", "problem.feasible_start")
    ),
    "dynident.symbolic.regroup.Coefficient.",
    *(f"dynident.friction.{name}" for name in ("sides.", "state.State.", "terms.check_terms", "terms.term_of")),
    *(f"dynident.friction.terms.JointTerm.{name}" for name in ("smooth", "directed", "reflected")),
    *(f"dynident.friction.dynamic.DynamicLaw.{name}" for name in ("step", "named")),
    *(f"dynident.friction.{name}" for name in ("friction.Friction.expression", "names.reference_temperature")),
    *(
        f"dynident.control.{name}"
        for name in (
            "checks.check_preload",
            "distribution.coupling_rows",
            "feedforward.friction_laws",
            "task.bound_space",
            *(f"workspace.{space}.bind" for space in ("Workspace", "ToolSpace", "CoordinateSpace", "MapSpace")),
            "workspace.Bound",
            "workspace.own_coordinates",
            "tick.",
        )
    ),
    *(f"dynident.identify.{name}" for name in ("base.columns_of", "estimators.fit_of", "factor.triangle", "projection.")),
    *(f"dynident.identify.{name}" for name in ("rows.", "states.")),
    *(f"dynident.mechanics.{name}" for name in ("actuation.least_torques", "actuation.prices", "geometry.", "matrices.")),
    *(f"dynident.mechanics.{name}" for name in ("closure.close_rates", "closure.closure_starts", "motion.as_motion")),
    *(f"dynident.mechanics.{name}" for name in ("inverse_kinematics_arms.distance_to_curve", "kinematics.end_frame")),
    *(f"dynident.mechanics.inverse_kinematics_damped.{name}" for name in ("pose_", "position_limits", "robot_size")),
)
NOTHING = (inspect.Signature.empty, None, "None", "NoReturn", "Never")


def _home(item: Any) -> str:
    return str(getattr(item, "__module__", ""))


def _methods(cls: type) -> Iterator[tuple[str, Any]]:
    """Public methods and properties of a class that are ours, inherited ones included."""
    seen: set[str] = set()
    for base in cls.__mro__:
        if not _home(base).startswith("dynident"):
            continue
        for name, member in vars(base).items():
            if name.startswith("_") or name in seen:
                continue
            seen.add(name)
            inner = member.__func__ if isinstance(member, classmethod | staticmethod) else member
            if inspect.isfunction(inner) or isinstance(inner, property) or type(inner).__name__ == "cached_property":
                yield name, inner


def _public() -> dict[str, Any]:
    """Every documented thing by its dotted name: functions, classes, methods and properties."""
    found: dict[str, Any] = {}
    for place in ("dynident", *(f"dynident.{room}" for room in ROOMS), *(f"dynident.robots.{robot}" for robot in ROBOTS)):
        module = importlib.import_module(place)
        for name in getattr(module, "__all__", ()):  # one test below insists that it exists
            item = getattr(getattr(module, name), "__func__", getattr(module, name))  # a robot may export a bound method
            if not (inspect.isfunction(item) or inspect.isclass(item)):
                continue
            found.setdefault(f"{_home(item)}.{item.__qualname__}", item)
            if inspect.isclass(item):
                found |= {f"{_home(item)}.{item.__qualname__}.{name}": member for name, member in _methods(item)}
    return dict(sorted(found.items()))


PUBLIC = _public()


def _is_made_by_users(item: Any) -> bool:
    """Functions and classes, but neither errors nor protocols, which nobody calls."""
    if inspect.isclass(item):
        return not issubclass(item, BaseException) and not getattr(item, "_is_protocol", False)
    return inspect.isfunction(item)


def _is_inside(name: str, item: Any) -> bool:
    """Tell whether a name is for other rooms, its own one or that of the class from which a method is inherited."""
    return name.startswith(INSIDE) or f"{_home(item)}.{getattr(item, '__qualname__', '')}".startswith(INSIDE)


CALLABLES = {name: item for name, item in PUBLIC.items() if _is_made_by_users(item) and not _is_inside(name, item)}


def _arguments(item: Any) -> list[str]:
    """Argument names, with their stars; private ones (a leading underscore) are nobody's business."""
    stars = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    parameters = inspect.signature(item).parameters.values()
    names = [stars.get(p.kind, "") + p.name for p in parameters if p.name not in ("self", "cls")]
    return [name for name in names if not name.startswith("_")]


def _documented(doc: Any, section: str = "Parameters") -> list[str]:
    return [name.strip().replace("\\", "") for entry in doc[section] for name in entry.name.split(",") if name.strip()]


def test_the_enumeration_sees_the_public_api() -> None:
    assert {"mechanism", "mechanics", "friction", "signals", "identify", "validate"} <= set(ROOMS)
    assert len(CALLABLES) > 100
    for expected in (
        "dynident.identify.fit.Fit.predict",
        "dynident.signals.log.Log.read",
        "dynident.mechanism.mechanism.Mechanism",
        "dynident.robots.cft.closed_forms.mass_matrix",
        "dynident.robots.tripod_robot.TripodRobot.mass_matrix",
    ):
        assert expected in CALLABLES


@pytest.mark.parametrize("place", ["dynident", *(f"dynident.{room}" for room in ROOMS)])
def test_every_exported_name_exists_once(place: str) -> None:
    module = importlib.import_module(place)
    assert module.__all__, f"{place} has no __all__; name what is public"
    assert len(set(module.__all__)) == len(module.__all__)
    for name in module.__all__:
        assert getattr(module, name) is not None, f"{place}.{name}"
    assert module.__doc__, f"{place} says nothing about itself"


def _of(room: str, names: Iterable[str]) -> list[str]:
    """Names that live in a room."""
    return [name for name in names if name.startswith(f"dynident.{room}.")]


@pytest.mark.parametrize("room", ROOMS)
def test_everything_public_has_a_sentence(room: str) -> None:
    items = {name: PUBLIC[name] for name in _of(room, PUBLIC)}
    own = {name: x.func if type(x).__name__ == "cached_property" else x for name, x in items.items()}
    texts = {name: (x.__doc__ if inspect.isclass(x) else inspect.getdoc(x)) or "" for name, x in own.items()}
    assert [name for name, text in texts.items() if len(text.strip()) <= 3] == []


@pytest.mark.parametrize("room", ROOMS)
def test_arguments_are_documented_and_exist(room: str) -> None:
    wrong = []
    for name in _of(room, CALLABLES):
        item = CALLABLES[name]
        doc = docscrape.NumpyDocString(inspect.getdoc(item) or "")
        actual, documented = _arguments(item), _documented(doc)
        wrong += [f"{name}: {argument} is not documented" for argument in actual if argument not in documented]
        wrong += [f"{name}: {argument} does not exist" for argument in documented if argument not in actual]
        wrong += [f"{name}: {x.name} is not described" for x in doc["Parameters"] if not "".join(x.desc).strip()]
    assert wrong == []


@pytest.mark.parametrize("room", ROOMS)
def test_what_is_returned_is_documented(room: str) -> None:
    """Of what takes arguments; without them one sentence and the annotation say it."""
    wrong = []
    for name in _of(room, [name for name, item in CALLABLES.items() if inspect.isfunction(item) and _arguments(item)]):
        annotation = inspect.signature(CALLABLES[name]).return_annotation
        doc = docscrape.NumpyDocString(inspect.getdoc(CALLABLES[name]) or "")
        described = [*doc["Returns"], *doc["Yields"]]
        if annotation is inspect.Signature.empty or bool(described) != (annotation not in NOTHING):
            wrong.append(f"{name} -> {annotation}, but its Returns section says otherwise")
        wrong += [f"{name}: what is returned is not described" for entry in described if not "".join(entry.desc).strip()]
    assert wrong == []


def test_importing_dynident_stays_light() -> None:
    """`import dynident`, and making a Mechanism, must not load what only a computation needs."""
    code = (
        "import sys, dynident as di;"
        "di.Mechanism.from_dh([(0.3, 0, 0, 0)]).parameters; di.Log;"
        "heavy = ('llvmlite', 'scipy', 'matplotlib', 'pyarrow', 'h5py', 'cvxpy', 'typer', 'sympy');"
        "print(*[m for m in heavy if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
