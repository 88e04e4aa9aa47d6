"""Virtual robots for measuring an estimator: random arms, their descriptions, motions and logs.

Eight geometries of 2 to 6 axes and of 0.1 to 2 m, many sets of bodies for each (copies of a geometry share compiled code). The
torque has effects beyond a rigid model: Stribeck friction, ripple, correlated noise; the encoders have noise; the description
is wrong by tens of percent, or lacks inertias.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

import dynident as di

Array = NDArray[np.float64]

RATE = 200.0  # [Hz]
HALF_TURN = np.pi / 2
SHAPES = {
    "planar 2": ([(1.0, 0.0, 0.0, 0.0), (0.8, 0.0, 0.0, 0.0)], (0.0, -9.81, 0.0)),
    "rrr": ([(0.0, HALF_TURN, 1.0, 0.0), (0.9, 0.0, 0.2, 0.0), (0.8, 0.0, 0.1, 0.0)], (0.0, 0.0, -9.81)),
    "elbow 4": (
        [(0.0, HALF_TURN, 0.5, 0.0), (1.0, 0.0, 0.0, 0.0), (0.9, 0.0, 0.0, 0.0), (0.0, HALF_TURN, 0.2, 0.0)],
        (0.0, 0.0, -9.81),
    ),
    "six axes": (
        [
            (0.1, HALF_TURN, 0.4, 0.0),
            (1.0, 0.0, 0.0, 0.0),
            (0.1, HALF_TURN, 0.0, 0.0),
            (0.0, -HALF_TURN, 0.9, 0.0),
            (0.0, HALF_TURN, 0.0, 0.0),
            (0.0, 0.0, 0.15, 0.0),
        ],
        (0.0, 0.0, -9.81),
    ),
}


@dataclass(frozen=True, eq=False)
class Case:
    """One virtual robot and its logs.

    Parameters
    ----------
    name : str
        Shape, size and number.
    described : Mechanism
        Robot as described.
    true : Mechanism
        True robot.
    poor : bool
        True when the training motion is slow, small and short.
    world : World
        Effects in its torques beyond rigid bodies.
    train, like, fast, slow : Log
        Training motion; other motions of its kind, twice as fast and large, and half as fast.
    """

    name: str
    described: di.Mechanism
    true: di.Mechanism
    poor: bool
    world: World
    train: di.Log
    like: di.Log
    fast: di.Log
    slow: di.Log


@cache
def geometry(shape: str, size: float) -> di.Mechanism:
    """Return an arm without bodies."""
    rows, gravity = SHAPES[shape]
    return di.Mechanism.from_dh([(a * size, alpha, d * size, q) for a, alpha, d, q in rows], gravity=gravity, name=shape)


def bodies(robot: di.Mechanism, size: float, rng: np.random.Generator) -> Array:
    """Return physical standard parameters of an arm: masses decreasing along it, friction of a tenth of the gravity torque."""
    values = np.zeros(len(robot.parameters))
    count = len(robot.tree.bodies)
    heavy = 30.0 * size**1.5 * rng.uniform(0.5, 2.0)
    for i in range(count):
        mass = heavy * 0.6**i * rng.uniform(0.7, 1.3)
        m = mass * rng.dirichlet(np.full(6, 4.0))
        x = size * (rng.normal(size=(6, 3)) * 0.12 + rng.normal(size=3) * 0.2)
        tensor = sum(mi * (xi @ xi * np.eye(3) - np.outer(xi, xi)) for mi, xi in zip(m, x, strict=True))
        values[10 * i : 10 * i + 10] = [m.sum(), *(m @ x), *np.asarray(tensor)[np.triu_indices(3)]]
    for k in range(10 * count, values.size):
        symbol, joint = robot.parameters.names[k].split("_", 1)[0], int(robot.parameters.owners[k].rsplit("_", 1)[-1]) - 1
        level = heavy * 0.5**joint * size * rng.uniform(0.5, 1.5)
        values[k] = level * {"ia": 0.05 * size, "fv": 0.4, "fc": 0.5, "off": 0.05 * rng.normal()}.get(symbol, 0.0)
    return values


def description(robot: di.Mechanism, true: Array, kind: str, rng: np.random.Generator) -> di.Mechanism:
    """Return the described robot: wrong by some tens of percent, or without any inertias; never with joint terms."""
    values = np.zeros(true.size)
    if kind == "described":
        for i in range(len(robot.tree.bodies)):
            own = true[10 * i : 10 * i + 10]
            mass, size = rng.lognormal(0.0, 0.3), rng.lognormal(0.0, 0.2)  # uniform scaling keeps a body possible
            values[10 * i : 10 * i + 10] = own * mass * np.array([1.0, *(size,) * 3, *(size**2,) * 6])
    return robot.with_parameters(robot.parameters.replace(values))


def motion(dof: int, seconds: float, rng: np.random.Generator, size: float, base: float) -> di.Motion:
    """Return sums of five harmonics of `base` Hz with `size` rad."""
    t = np.arange(int(seconds * RATE)) / RATE
    w = 2 * np.pi * base * np.arange(1, 6)
    amplitude = rng.normal(size=(dof, 5)) * size / np.arange(1, 6) ** 0.5
    angle = t[:, None, None] * w + rng.uniform(0, 2 * np.pi, (dof, 5))
    q = np.sum(amplitude * np.sin(angle), axis=2)
    v = np.sum(amplitude * w * np.cos(angle), axis=2)
    return di.Motion(t, q, v, np.sum(-amplitude * w**2 * np.sin(angle), axis=2))


def move(dof: int, seconds: float, rng: np.random.Generator, size: float) -> di.Motion:
    """Return one move from rest to rest by about `size` rad, with a rest of half a second or more before and after it."""
    t = np.arange(int(seconds * RATE)) / RATE
    first, last = rng.uniform(0.5, 1.0), seconds - rng.uniform(0.5, 1.0)
    span = last - first
    s = np.clip((t - first) / span, 0.0, 1.0)[:, None]
    start, change = rng.uniform(-1.0, 1.0, dof), size * rng.normal(size=dof)
    q = start + change * (10 * s**3 - 15 * s**4 + 6 * s**5)
    v = change * (30 * s**2 - 60 * s**3 + 30 * s**4) / span
    return di.Motion(t, q, v, change * (60 * s - 180 * s**2 + 120 * s**3) / span**2)


@dataclass(frozen=True, eq=False)
class World:
    """Effects in a robot's torques beyond rigid bodies, the same in all of its logs.

    Parameters
    ----------
    noise : ndarray, (n,)
        Standard deviation of the torque sensors, half of its square correlated over 0.1 s.
    stribeck, ripple : ndarray, (n,)
        Amplitude of friction near standstill and of the ripple of the gears.
    gain : ndarray, (n,)
        Measured over true torque.
    encoder : float
        Standard deviation of the positions [rad].
    """

    noise: Array
    stribeck: Array
    ripple: Array
    gain: Array
    encoder: float


def record(true: di.Mechanism, moved: di.Motion, world: World, rng: np.random.Generator, name: str) -> di.Log:
    """Return the log of a motion."""
    from scipy.signal import lfilter

    effort = di.inverse_dynamics(true, moved)
    effort = effort + world.stribeck * np.sign(moved.v) * np.exp(-((moved.v / 0.1) ** 2))
    effort = effort + world.ripple * np.sin(7.0 * moved.q + np.arange(moved.q.shape[1]))
    keep = np.exp(-1.0 / (0.1 * RATE))
    slow = lfilter([np.sqrt(1 - keep**2)], [1.0, -keep], rng.normal(size=effort.shape), axis=0)
    effort = world.gain * effort + world.noise * np.sqrt(0.5) * (slow + rng.normal(size=effort.shape))
    position = moved.q + rng.normal(size=moved.q.shape) * world.encoder
    return di.Log(
        t=moved.t, joints=true.coordinate_names, position=position, effort=effort, effort_kind="joint_torque", name=name
    )


def population(count: int, seed: int = 0, only: Sequence[str] = tuple(SHAPES)) -> Iterator[Case]:
    """Yield virtual robots: half of them with poor excitation, a third without a description."""
    shapes = [(shape, size) for shape in only for size in (0.15, 1.2)]
    for k in range(count):
        rng = np.random.default_rng([seed, k])
        shape, size = shapes[k % len(shapes)]
        robot = geometry(shape, size)
        values = bodies(robot, size, rng)
        true = robot.with_parameters(robot.parameters.replace(values))
        described = description(robot, values, "silent" if k % 3 == 2 else "described", rng)
        poor = (k // len(shapes)) % 2 == 1
        seconds = float(rng.uniform(5, 9)) if poor else float(rng.uniform(15, 40))
        width, base = (0.15, 0.12) if poor else (0.5, 0.15)
        dof = robot.dof
        runs = {
            "train": motion(dof, seconds, rng, width, base),
            "like": motion(dof, max(seconds, 10.0), rng, width, base),
            "fast": motion(dof, 12.0, rng, 2 * width, 2 * base),
            "slow": motion(dof, 25.0, rng, width, 0.5 * base),
        }
        typical = np.sqrt(np.mean(di.inverse_dynamics(true, runs["train"]) ** 2, axis=0))
        fc = np.array([true.parameters[f"fc_{joint}"] for joint in true.coordinate_names])
        model = float(rng.uniform(0.0, 0.4))
        world = World(
            noise=typical * 10.0 ** rng.uniform(-2.5, -1.0),
            stribeck=model * fc,
            ripple=0.2 * model * fc,
            gain=1.0 + 0.02 * rng.normal(size=dof),
            encoder=10.0 ** rng.uniform(-6, -4),
        )
        logs = {each: record(true, moved, world, rng, f"{k} {each}") for each, moved in runs.items()}
        yield Case(f"{shape}, {size:g} m, {k}", described, true, poor, world, **logs)
