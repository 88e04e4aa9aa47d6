"""Faults of logs and descriptions due to loggers, wiring and people: functions that spoil a healthy robot and its logs.

Each fault is the same in the training and the validation logs, like a fault of a logger or of a description.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import dynident as di
from dynident.mechanics.dynamics import gravity
from dynident.mechanism.elements import rotation_exp

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Subject:
    """A described robot, its logs, and the robot of their gravity torques."""

    name: str
    robot: di.Mechanism
    train: list[di.Log]
    test: list[di.Log]
    true: di.Mechanism

    def changed(self, change: Callable[[di.Log], di.Log]) -> Subject:
        """Return the subject with every log changed."""
        return replace(self, train=[change(log) for log in self.train], test=[change(log) for log in self.test])


Apply = Callable[[Subject, int, np.random.Generator], Subject]


@dataclass(frozen=True)
class Kind:
    """A fault, the codes that name its cause, and its applicability.

    Parameters
    ----------
    name : str
        Short name.
    apply : callable
        Spoils a subject; joint and random numbers are given.
    causes : tuple of str
        Codes of findings that name the cause; empty if no log can show it.
    joint : bool
        True if the finding must name the joint.
    least : int
        Fewest joints of the robot.
    joints : bool
        True for faults of joint columns, which a log of motors does not have.
    """

    name: str
    apply: Apply
    causes: tuple[str, ...]
    joint: bool = False
    least: int = 1
    joints: bool = False

    def suits(self, subject: Subject) -> bool:
        """Return whether the fault is applicable to a robot and its logs."""
        described = not self.joints or set(subject.robot.coordinate_names) == set(subject.train[0].joints)
        return len(subject.train[0].joints) >= self.least and described


KINDS: dict[str, Kind] = {}


def kind(name: str, *causes: str, joint: bool = False, least: int = 1, joints: bool = False) -> Callable[[Apply], Apply]:
    """Register a fault."""

    def register(apply: Apply) -> Apply:
        KINDS[name] = Kind(name, apply, causes, joint, least, joints)
        return apply

    return register


def _column(x: Array, j: int, value: Array | float) -> Array:
    """Return an array with a replaced column."""
    out = np.array(x)
    out[:, j] = value
    return out


def _efforts(s: Subject, change: Callable[[Array], Array]) -> Subject:
    return s.changed(lambda log: replace(log, effort=change(np.array(log.effort))))


def _positions(s: Subject, change: Callable[[Array], Array]) -> Subject:
    """Change positions; velocities and references are dropped, since they are not needed."""
    return s.changed(
        lambda log: replace(log, position=change(np.array(log.position)), velocity=None, acceleration=None, reference=None)
    )


def _taken(log: di.Log, rows: NDArray[np.int64], t: Array) -> di.Log:
    """Return some rows of a log with new time stamps."""
    kept = {name: x[rows] for name in ("position", "effort", "temperature") if (x := getattr(log, name)) is not None}
    return replace(log, t=t, velocity=None, acceleration=None, reference=None, **kept)


def _even(log: di.Log, rows: NDArray[np.int64]) -> di.Log:
    """Return some rows of a log with uniform time stamps."""
    return _taken(log, rows, log.t[0] + np.arange(rows.size) * float(np.median(np.diff(log.t))))


# ---- gains, signs, order of efforts ----------------------------------------------------------------------------------


def _gain(factor: float) -> Apply:
    return lambda s, j, rng: _efforts(s, lambda x: _column(x, j, factor * x[:, j]))


for _factor in (1.2, 1.3, 2.0, 0.5, 100.0, 0.01):
    kind(f"gain {_factor:g}", "gain", joint=True, least=2)(_gain(_factor))


@kind("one gain for all motors", "gain", least=3)
def _one_gain(s: Subject, j: int, rng: np.random.Generator) -> Subject:
    true = np.array([12.0, 12.0, 10.0, 8.0, 8.0, 5.0, 5.0])
    return _efforts(s, lambda x: x * 10.0 / true[: x.shape[1]])


@kind("all gains 1.3")
def _all_gains(s: Subject, j: int, rng: np.random.Generator) -> Subject:
    return _efforts(s, lambda x: 1.3 * x)


@kind("all gains 1000 (mN m)", "gain", "unit")
def _thousand(s: Subject, j: int, rng: np.random.Generator) -> Subject:
    return _efforts(s, lambda x: 1e3 * x)


@kind("effort turned", "sign", joint=True, least=2)
def _turned(s: Subject, j: int, rng: np.random.Generator) -> Subject:
    return _efforts(s, lambda x: _column(x, j, -x[:, j]))


@kind("all efforts turned", "sign")
def _all_turned(s: Subject, j: int, rng: np.random.Generator) -> Subject:
    return _efforts(s, lambda x: -x)


@kind("efforts exchanged", "order", joint=True, least=2)
def _exchanged(s: Subject, j: int, rng: np.random.Generator) -> Subject:
    return _efforts(s, lambda x: x[:, _swapped(x.shape[1], j)])


def _swapped(n: int, j: int) -> NDArray[np.int64]:
    order = np.arange(n)
    other = j - 1 if j else 1
    order[[j, other]] = order[[other, j]]
    return order


@kind("efforts without sign", "contradiction", "sign", least=2)
def _magnitude(s: Subject, j: int, rng: np.random.Generator) -> Subject:
    return _efforts(s, np.abs)


# ---- gravity ---------------------------------------------------------------------------------------------------------


def _without_gravity(share: float, described: bool = False) -> Apply:
    def apply(s: Subject, j: int, rng: np.random.Generator) -> Subject:
        robot = s.robot if described else s.true
        bare = robot.altered(friction={}, forces=())
        values = bare.parameters.values.copy()
        values[bare.tree.inertias.size :] = 0.0
        bare = bare.with_parameters(bare.parameters.replace(values))

        def less(log: di.Log) -> di.Log:
            at = [log.joints.index(name) for name in bare.coordinate_names]
            effort = np.array(log.effort)
            effort[:, at] -= share * gravity(bare, np.nan_to_num(log.position[:, at]))
            return replace(log, effort=effort)

        return s.changed(less)

    return apply


kind("gravity compensated", "gravity", joints=True)(_without_gravity(1.0))
kind("gravity half compensated", "gravity", joints=True)(_without_gravity(0.5))
kind("described gravity compensated", "gravity", joints=True)(_without_gravity(1.0, described=True))


def _mounted(axis: tuple[float, float, float], angle: float) -> Apply:
    turn = rotation_exp(angle * np.array(axis))
    return lambda s, j, rng: replace(s, robot=s.robot.with_gravity(turn @ np.asarray(s.robot.gravity)))


kind("mounted on a wall", "mounting")(_mounted((1.0, 0.0, 0.0), np.pi / 2))
kind("mounted from a ceiling", "mounting")(_mounted((1.0, 0.0, 0.0), np.pi))
kind("mounted on a slope of 30 degrees", "mounting")(_mounted((0.6, 0.8, 0.0), np.pi / 6))


# ---- spoiled efforts -------------------------------------------------------------------------------------------------


def _clipped(share: float, noise: float) -> Apply:
    def apply(s: Subject, j: int, rng: np.random.Generator) -> Subject:
        top = share * max(float(np.nanmax(np.abs(log.effort[:, j]))) for log in s.train)

        def cut(x: Array) -> Array:
            return _column(x, j, np.clip(x[:, j], -top, top) + noise * top * rng.normal(size=len(x)))

        return _efforts(s, cut)

    return apply


kind("effort clipped at 60 %", "clipped", joint=True)(_clipped(0.6, 0.0))
kind("effort clipped at 60 %, noisy", "clipped", joint=True)(_clipped(0.6, 0.01))


@kind("effort stuck for 1 s", "stuck", joint=True)
def _stuck_effort(s: Subject, j: int, rng: np.random.Generator) -> Subject:
    return _efforts(s, lambda x: _column(x, j, _held_for(x[:, j], rng, s.train[0].rate)))


def _held_for(x: Array, rng: np.random.Generator, rate: float) -> Array:
    out, start, length = x.copy(), int(rng.uniform(0.3, 0.5) * x.size), int(rate)
    out[start : start + length] = out[start]
    return out


@kind("dead effort", "check efforts", joint=True)
def _dead(s: Subject, j: int, rng: np.random.Generator) -> Subject:
    return _efforts(s, lambda x: _column(x, j, 0.0))


@kind("effort offset", "drift", joint=True)
def _offset(s: Subject, j: int, rng: np.random.Generator) -> Subject:
    size = 0.5 * float(np.nanstd(s.train[0].effort[:, j]))
    return _efforts(s, lambda x: _column(x, j, x[:, j] + size))


@kind("effort drifts", "drift", joint=True)
def _drift(s: Subject, j: int, rng: np.random.Generator) -> Subject:
    size = 0.6 * float(np.nanstd(s.train[0].effort[:, j]))
    return _efforts(s, lambda x: _column(x, j, x[:, j] + size * np.linspace(0.0, 1.0, len(x))))


@kind("efforts in 12 levels", "quantised")
def _coarse(s: Subject, j: int, rng: np.random.Generator) -> Subject:
    step = np.nanmax(np.abs(s.train[0].effort), axis=0) / 6.0
    return _efforts(s, lambda x: np.round(x / np.where(step > 0, step, 1.0)) * step)


def _rows(share: float, rng: np.random.Generator, x: Array) -> NDArray[np.bool_]:
    return rng.random(len(x)) < share


@kind("spikes in an effort", "outliers", joint=True)
def _spikes(s: Subject, j: int, rng: np.random.Generator) -> Subject:
    size = 10.0 * float(np.nanstd(s.train[0].effort[:, j]))
    return _efforts(s, lambda x: _column(x, j, x[:, j] + size * _rows(0.01, rng, x) * rng.choice([-1.0, 1.0], len(x))))


@kind("rows of zeros", "outliers")
def _zero_rows(s: Subject, j: int, rng: np.random.Generator) -> Subject:
    def zero(log: di.Log) -> di.Log:
        kept = ~_rows(0.02, rng, log.position)[:, None]
        return replace(
            log, position=log.position * kept, effort=log.effort * kept, velocity=None, acceleration=None, reference=None
        )

    return s.changed(zero)


@kind("efforts of zero", "outliers")
def _zero_efforts(s: Subject, j: int, rng: np.random.Generator) -> Subject:
    return _efforts(s, lambda x: x * ~_rows(0.02, rng, x)[:, None])


@kind("-999 for missing efforts", "outliers")
def _sentinel(s: Subject, j: int, rng: np.random.Generator) -> Subject:
    return _efforts(s, lambda x: np.where(_rows(0.01, rng, x)[:, None], -999.0, x))


@kind("-999 for missing positions", "outliers")
def _sentinel_positions(s: Subject, j: int, rng: np.random.Generator) -> Subject:
    return _positions(s, lambda x: np.where(_rows(0.01, rng, x)[:, None], -999.0, x))


@kind("bits flipped in a position", "outliers", joint=True)
def _flips(s: Subject, j: int, rng: np.random.Generator) -> Subject:
    return _positions(s, lambda x: _column(x, j, x[:, j] + 0.5 * _rows(0.005, rng, x)))


@kind("missing efforts", "nan")
def _missing(s: Subject, j: int, rng: np.random.Generator) -> Subject:
    return _efforts(s, lambda x: np.where(_rows(0.03, rng, x)[:, None], np.nan, x))


@kind("missing stretch", "nan", "gap")
def _missing_stretch(s: Subject, j: int, rng: np.random.Generator) -> Subject:
    def gone(x: Array) -> Array:
        out = x.copy()
        out[int(0.3 * len(x)) : int(0.33 * len(x))] = np.nan
        return out

    return _efforts(s, gone)


@kind("contacts", "contact")
def _contacts(s: Subject, j: int, rng: np.random.Generator) -> Subject:
    size = 2.0 * np.nanstd(s.train[0].effort, axis=0)

    def pushed(log: di.Log) -> di.Log:
        effort, width = np.array(log.effort), int(0.24 * log.rate)
        for share in (0.35, 0.7):
            start = int((share + 0.05 * rng.random()) * len(log))
            effort[start : start + width] += size * np.sin(np.linspace(0.0, np.pi, width))[:, None]
        return replace(log, effort=effort)

    return s.changed(pushed)


# ---- time ------------------------------------------------------------------------------------------------------------


def _late(seconds: float, one: bool) -> Apply:
    def apply(s: Subject, j: int, rng: np.random.Generator) -> Subject:
        def late(log: di.Log) -> di.Log:
            effort = np.array(log.effort)
            for k in [j] if one else range(effort.shape[1]):
                effort[:, k] = np.interp(log.t - seconds, log.t, log.effort[:, k])
            return replace(log, effort=effort)

        return s.changed(late)

    return apply


kind("effort 48 ms late", "delay", joint=True, least=2)(_late(0.048, True))
kind("all efforts 48 ms late", "delay")(_late(0.048, False))
kind("all efforts 20 ms early", "delay")(_late(-0.02, False))


def _clock(factor: float) -> Apply:
    return lambda s, j, rng: s.changed(
        lambda log: replace(log, t=log.t * factor, velocity=None, acceleration=None, reference=None)
    )


kind("clock 10 % slow", "clock")(_clock(0.9))
kind("clock 10 % fast", "clock")(_clock(1.1))
kind("clock twice too fast", "clock", "unit_suspect")(_clock(2.0))
kind("clock half as fast", "clock", "unit_suspect")(_clock(0.5))
kind("clock in ms", "clock")(_clock(1000.0))


@kind("5 % of rows lost, stamps rewritten", "lost_rows")
def _lost(s: Subject, j: int, rng: np.random.Generator) -> Subject:
    return s.changed(lambda log: _even(log, np.flatnonzero(rng.random(len(log)) >= 0.05)))


@kind("1 % of rows twice, stamps rewritten", "lost_rows")
def _twice(s: Subject, j: int, rng: np.random.Generator) -> Subject:
    return s.changed(lambda log: _even(log, np.repeat(np.arange(len(log)), 1 + (rng.random(len(log)) < 0.01))))


@kind("gap with stamps", "gap")
def _gap(s: Subject, j: int, rng: np.random.Generator) -> Subject:
    def cut(log: di.Log) -> di.Log:
        rows = np.delete(np.arange(len(log)), np.arange(int(0.4 * len(log)), int(0.4 * len(log)) + int(0.5 * log.rate)))
        return _taken(log, rows, log.t[rows])

    return s.changed(cut)


def _refreshed(x: Array, step: int) -> Array:
    return np.asarray(np.repeat(x[::step], step, axis=0)[: len(x)])


@kind("efforts refreshed at a tenth of the rate", "held")
def _held_efforts(s: Subject, j: int, rng: np.random.Generator) -> Subject:
    return _efforts(s, lambda x: _refreshed(x, 10))


@kind("positions refreshed at a tenth of the rate", "held")
def _held_positions(s: Subject, j: int, rng: np.random.Generator) -> Subject:
    return _positions(s, lambda x: _refreshed(x, 10))


@kind("efforts of another run", "contradiction", "delay", least=2)
def _other_run(s: Subject, j: int, rng: np.random.Generator) -> Subject:
    return _efforts(s, lambda x: np.roll(x, len(x) // 3, axis=0))


# ---- positions -------------------------------------------------------------------------------------------------------


def _shifted(angle: float) -> Apply:
    return lambda s, j, rng: _positions(s, lambda x: _column(x, j, x[:, j] + angle))


kind("zero off by 0.3 rad", "zero", joint=True)(_shifted(0.3))
kind("zero off by pi/2", "zero", joint=True)(_shifted(np.pi / 2))
kind("zero off by pi", "zero", joint=True)(_shifted(np.pi))


@kind("two zeros off", "zero", least=3)
def _two_zeros(s: Subject, j: int, rng: np.random.Generator) -> Subject:
    return _positions(s, lambda x: _column(_column(x, 1, x[:, 1] + 0.3), 2, x[:, 2] + np.pi / 2))


@kind("position turned", "sign", joint=True, least=2)
def _position_turned(s: Subject, j: int, rng: np.random.Generator) -> Subject:
    return _positions(s, lambda x: _column(x, j, -x[:, j]))


@kind("positions exchanged", "order", joint=True, least=2)
def _positions_exchanged(s: Subject, j: int, rng: np.random.Generator) -> Subject:
    return _positions(s, lambda x: x[:, _swapped(x.shape[1], j)])


@kind("positions and efforts exchanged", "order", joint=True, least=2)
def _both_exchanged(s: Subject, j: int, rng: np.random.Generator) -> Subject:
    return _efforts(_positions(s, lambda x: x[:, _swapped(x.shape[1], j)]), lambda x: np.asarray(x[:, _swapped(x.shape[1], j)]))


def _unit(factor: float, one: bool = False) -> Apply:
    return lambda s, j, rng: _positions(s, lambda x: _column(x, j, factor * x[:, j]) if one else factor * x)


kind("positions in degrees", "unit", "unit_suspect")(_unit(180.0 / np.pi))
kind("positions in turns", "unit", "unit_suspect")(_unit(0.5 / np.pi))
kind("position of one joint in degrees", "unit", "unit_suspect", "gear", joint=True)(_unit(180.0 / np.pi, one=True))
kind("position of one joint behind a gear of 2", "unit", "gear", joint=True, least=2)(_unit(2.0, one=True))
kind("positions in counts", "unit", "unit_suspect")(_unit(4096.0))
kind("positions in milliradians", "unit", "unit_suspect")(_unit(1000.0))


@kind("encoder stuck for 1 s", "stuck", joint=True)
def _stuck_encoder(s: Subject, j: int, rng: np.random.Generator) -> Subject:
    return _positions(s, lambda x: _column(x, j, _held_for(x[:, j], rng, s.train[0].rate)))


@kind("velocity in degrees per second", "unit_suspect", joint=True)
def _velocity(s: Subject, j: int, rng: np.random.Generator) -> Subject:
    def wrong(log: di.Log) -> di.Log:
        v = np.gradient(log.position, log.t, axis=0)
        return replace(log, velocity=_column(v, j, np.degrees(v[:, j])), acceleration=None)

    return s.changed(wrong)


# ---- descriptions ----------------------------------------------------------------------------------------------------


def _joint(s: Subject, j: int, **fields: object) -> Subject:
    name = s.robot.coordinate_names[j]
    joints = tuple(replace(each, **fields) if each.name == name else each for each in s.robot.joints)  # type: ignore[arg-type]
    return replace(s, robot=s.robot.altered(joints=joints))


def _axis(s: Subject, j: int) -> Array:
    return np.asarray(s.robot.joint(s.robot.coordinate_names[j]).axis)


@kind("wrong axis", "axis", joint=True, least=2, joints=True)
def _wrong_axis(s: Subject, j: int, rng: np.random.Generator) -> Subject:
    return _joint(s, j, axis=np.roll(_axis(s, j), 1))


@kind("axis turned", "axis", joint=True, least=2, joints=True)
def _axis_turned(s: Subject, j: int, rng: np.random.Generator) -> Subject:
    return _joint(s, j, axis=-_axis(s, j))


@kind("joint fixed in the description", "fixed_joint", joint=True, least=3, joints=True)
def _fixed(s: Subject, j: int, rng: np.random.Generator) -> Subject:
    fixed = s.robot.altered(
        joints=tuple(
            replace(x, kind="fixed", terms={}) if x.name == s.robot.coordinate_names[j] else x for x in s.robot.joints
        ),
        actuators=tuple(a for a in s.robot.actuators if s.robot.coordinate_names[j] not in a.coupling),
    )
    return replace(s, robot=fixed)


@kind("joint coupled in the description", "fixed_joint", joint=True, least=3, joints=True)
def _coupled(s: Subject, j: int, rng: np.random.Generator) -> Subject:
    names = s.robot.coordinate_names
    own, other = names[j], names[j - 1]
    coupling = di.mechanism.Coupling(own, {other: 1.0})
    return replace(s, robot=s.robot.altered(couplings=(*s.robot.couplings, coupling), actuators=()))


def _scaled(length: float, mass: float) -> Apply:
    def apply(s: Subject, j: int, rng: np.random.Generator) -> Subject:
        powers = np.array([0, 1, 1, 1, 2, 2, 2, 2, 2, 2])
        joints = tuple(
            replace(x, placement=di.mechanism.Placement(x.placement.rotation, length * x.placement.translation))
            for x in s.robot.joints
        )
        bodies = tuple(
            replace(b, inertia=None if b.inertia is None else mass * b.inertia * length**powers) for b in s.robot.bodies
        )
        return replace(s, robot=s.robot.altered(joints=joints, bodies=bodies))

    return apply


kind("lengths in millimetres", "lengths")(_scaled(1000.0, 1.0))
kind("masses in grams", "gain")(_scaled(1.0, 1000.0))


@kind("a link 30 % longer", "lengths", least=3)
def _longer(s: Subject, j: int, rng: np.random.Generator) -> Subject:
    longest = max(s.robot.joints, key=lambda x: float(np.linalg.norm(x.placement.translation)))
    place = di.mechanism.Placement(longest.placement.rotation, 1.3 * longest.placement.translation)
    return replace(
        s, robot=s.robot.altered(joints=tuple(replace(x, placement=place) if x is longest else x for x in s.robot.joints))
    )


HEALTHY: dict[str, Apply] = {
    "as recorded": lambda s, j, rng: s,
    "no masses in the description": lambda s, j, rng: replace(
        s, robot=s.robot.with_parameters(s.robot.parameters.replace(np.zeros(len(s.robot.parameters))))
    ),
    "every second sample": lambda s, j, rng: s.changed(lambda log: _taken(log, np.arange(0, len(log), 2), log.t[::2])),
    "jitter of the stamps": lambda s, j, rng: s.changed(
        lambda log: replace(log, t=log.t + 0.1 / log.rate * rng.uniform(-1.0, 1.0, len(log)))
    ),
    "encoder of 4096 counts": lambda s, j, rng: _positions(s, lambda x: np.round(x * 4096 / (2 * np.pi)) * 2 * np.pi / 4096),
    "first half": lambda s, j, rng: replace(s, train=[log.rows(0, len(log) // 2) for log in s.train]),
}


def _inverted(logs: list[di.Log]) -> list[di.Log]:
    return [replace(log, effort=-np.asarray(log.effort)) for log in logs]


def _driven(logs: list[di.Log]) -> list[di.Log]:
    """Return the logs with varying efforts of all motors, so that scores have the same joints."""
    return [log for log in logs if np.all(np.ptp(np.nan_to_num(log.effort), axis=0))]


#: Logs of each part of the count from `benchmarks.shared_logs`, and the simulated robots with loops.
REAL = {"tune": ("UR10",), "final": ("LWR4+", "LBR Med 7"), "real": ("TX40", "Gen3", "double pendulum", "EMPS")}
LOOPS = {"loops": ("five_bar", "prr2"), "loops-final": ("dualv", "mast", "replalink", "prs3", "cft")}


def recorded(data: Path | None, half: str) -> Iterator[Subject]:
    """Yield healthy robots with their logs, for tuning or for the final counts."""
    from benchmarks.population import population
    from benchmarks.shared_logs import ROBOTS

    if half == "tune":
        example = di.examples.arm6()
        true = example.robot.with_parameters(
            example.robot.parameters.replace([example.truth[name] for name in example.robot.parameters.names])
        )
        yield Subject("arm6", example.robot, [example.run], [example.other], true)
    seeds = {"tune": 11, "final": 14}
    for k, case in enumerate(population(5, seeds[half], ("rrr", "elbow 4", "six axes")) if half in seeds else ()):
        if k in (1, 3, 4):  # robots with a description, of two sizes
            yield Subject(case.name, case.described, [case.train], [case.like], case.true)
    for name in REAL.get(half, ()) if data else ():
        shared = ROBOTS[name](data)  # type: ignore[arg-type]
        if name == "LBR Med 7":  # its sensors have the opposite sign of the description: inversion halves the error
            shared = replace(shared, train=_inverted(shared.train), test=_inverted(shared.test))
        shared = replace(shared, train=_driven(shared.train), test=_driven(shared.test))
        fit = di.MAP().fit(di.Regression.from_logs(shared.robot, shared.train)).result_
        yield Subject(name, shared.robot, shared.train, shared.test, fit.model)
    for name in LOOPS.get(half, ()):
        yield _simulated(name)


def _simulated(name: str) -> Subject:
    """Return a robot of the literature with the stages of its plan, simulated by command."""
    from benchmarks.nine_robots import command
    from dynident.cli.robots import find_robot
    from dynident.excitation.plan import purpose_logs

    with tempfile.TemporaryDirectory() as folder:
        command("excite", name, "-o", f"{folder}/plan", "-q", "--seed", "0")
        command("simulate", f"{folder}/plan", "-o", f"{folder}/run.npz", "-q", "--seed", "0")
        stages = purpose_logs(di.Log.read(f"{folder}/run.npz"))
    robot = find_robot(name).mechanism()
    return Subject(name, robot, stages["training"], stages["validation"], robot)
