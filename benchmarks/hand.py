"""Reference motions for designs: hand-made and random ones. All are as large as the same limits allow."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

import dynident as di
from dynident.errors import DynidentError
from dynident.excitation import MotionLimits
from dynident.excitation.designs import check_motion
from dynident.excitation.limits import Limit, State, all_excess
from dynident.excitation.optimise import Problem, posture, typical
from dynident.parallel import one_blas_thread
from dynident.trajectory import Moves, Multisine, Trajectory
from dynident.trajectory.curves import Curve

Array = NDArray[np.float64]
FADE = 1.0  # fade-in and fade-out of sines [s]
POSTURES = np.array(
    [[1, 1, -1, 1, -1, 1], [-1, 1, 1, -1, -1, 1], [1, -1, 1, 1, 1, -1], [-1, -1, -1, -1, 1, 1], [1, 1, 1, -1, 1, -1]]
)
"""Signs of the moves away from home: every pair of joints moves in equal and in opposite directions."""


def largest(limits: MotionLimits, make: Callable[[float], Curve]) -> Curve:
    """Return the largest of a series of motions that keeps all limits with their margin.

    Parameters
    ----------
    limits : MotionLimits
        Limits.
    make : callable
        Returns the motion of a scale from 0 to 1.

    Returns
    -------
    Curve
        The motion.
    """
    low, high = 0.0, 1.0
    for k in range(10):
        scale = 1.0 if k == 0 else 0.5 * (low + high)
        if min(check_motion(limits, make(scale)).values()) >= limits.margin - 1e-9:
            low = scale
            if k == 0:
                break
        else:
            high = scale
    if low == 0.0:
        raise DynidentError("a motion made by hand breaks the limits at any size; choose another home")
    return make(low)


def by_hand(robot: di.Mechanism, limits: MotionLimits, duration: float) -> dict[str, Curve]:
    """Return typical hand-made motions around the robot's zero position, from rest to rest, all of the same length.

    Parameters
    ----------
    robot : Mechanism
        Arm.
    limits : MotionLimits
        Limits.
    duration : float
        Length [s].

    Returns
    -------
    dict of str to Curve
        Motions by name.
    """
    n = robot.dof
    room = np.minimum(limits.upper, -limits.lower)  # in both directions from zero

    def sines(tones: Array, amplitudes: Array) -> Curve:
        """Return oscillations of every joint j with frequencies tones[j] (n, k) and their amplitudes (n, k)."""
        flat = tones.ravel()
        family = Multisine(tuple(flat.tolist()), (0.0,) * flat.size, duration, FADE)
        coefficients = np.zeros((n, 1 + flat.size))
        k = tones.shape[1]
        for j in range(n):
            coefficients[j, 1 + j * k : 1 + (j + 1) * k] = amplitudes[j]
        return Trajectory(family, coefficients)

    def reach(top: Array) -> Array:
        """Largest amplitude within range, speed and acceleration at a frequency [Hz]."""
        w = 2.0 * np.pi * top
        return np.min([room, limits.velocity / w, limits.acceleration / w**2], axis=0)

    own = (np.arange(1, n + 1) / duration)[:, None]
    # Document 3, (65) to (71): a = q_max / 3, 4 w a bound by speed, 16 w^2 by acceleration, each joint separately.
    document = np.minimum(limits.velocity / room, np.sqrt(limits.acceleration / room)) / 4.0 / (2.0 * np.pi)
    harmonic = document[:, None] * np.array([1.0, 2.0, 4.0])
    one = np.zeros((2 * n + 1, n))
    one[1::2] = np.diag(room)
    moves = np.vstack([np.zeros(n), POSTURES[:, :n] * room, np.zeros(n)])

    def quintics(points: Array) -> Callable[[float], Curve]:
        knots = np.linspace(0.0, duration, len(points)).tolist()
        return lambda scale: _at_rest(scale * points, knots)

    def each(scale: float) -> Curve:
        """One joint after the other, out and back, each as far as its own limits allow."""
        time = duration / (2.0 * n)
        far = np.min(
            [room, limits.velocity * time / 1.875, limits.acceleration * time**2 / 5.774, limits.jerk * time**3 / 60.0], 0
        )
        return _at_rest(scale * one / room * far, np.linspace(0.0, duration, 2 * n + 1).tolist())

    common = np.full((n, 1), 2.0 / duration)
    return {
        "a sine of its own for every joint": largest(limits, lambda s: sines(own, s * reach(own[:, 0])[:, None])),
        "the same sine for all joints": largest(limits, lambda s: sines(common, s * reach(common[:, 0])[:, None])),
        "harmonic sines": largest(limits, lambda s: sines(harmonic, s * np.repeat(room[:, None] / 3.0, 3, axis=1))),
        "one joint after the other": largest(limits, each),
        "moves between postures": largest(limits, quintics(moves)),
    }


def _at_rest(points: Array, knots: list[float]) -> Curve:
    """Return quintic moves that stop at every point."""
    return Moves(points, np.diff(knots))


def random_motions(problem: Problem, many: int, samples: int = 80, kept: int = 40, seed: int = 0) -> dict[str, Array]:
    """Return the best of many random feasible motions: the one with the lowest condition number and the one with the largest D.

    Each is a random direction around a random feasible posture, scaled up to the first limit, all of them at once on a grid of
    `samples`; the best are then scaled into the limits on the dense grid and evaluated on the problem's own samples.

    Parameters
    ----------
    problem : Problem
        Limits and family.
    many : int
        Number of motions.
    samples : int
        Grid of the first round.
    kept : int
        Number of motions in the second round, for either criterion.
    seed : int
        Seed.

    Returns
    -------
    dict of str to ndarray
        Parameters, for "cond" and "d".
    """
    generator = np.random.default_rng(seed)
    family, limits, n = problem.family, problem.limits, problem.dof
    t = np.arange(samples) / samples * family.duration
    phi = [family.basis(t, k) for k in range(4)]
    rest = np.array([problem.still(posture(problem, generator)) for _ in range(min(many, 300))])
    rest = rest[generator.integers(0, len(rest), many)]
    move = generator.normal(size=(many, n * family.size)) * typical(problem)

    def worst(use: Sequence[Limit], x: Array) -> Array:
        """Excess of every limit's worst sample, (motions, k), a few hundred motions at a time."""
        out = []
        for part in np.array_split(x, max(1, len(x) // 200)):
            c = part.reshape(len(part), n, family.size)
            state = State(*(np.einsum("ts,mjs->mtj", f, c).reshape(-1, n) for f in phi))
            out.append(all_excess(use, state).reshape(len(part), samples, -1).max(axis=1))
        return np.concatenate(out)

    # Positions and rates are proportional to the motion: their scale follows directly. The others are found by bisection.
    origin, one = worst(limits.boxes, rest), worst(limits.boxes, rest + move)
    high = np.min((-limits.margin - origin) / np.maximum(one - origin, 1e-9), axis=1)
    low = np.zeros(many)
    for k in range(6):
        middle = high if k == 0 else 0.5 * (low + high)
        good = worst(limits.others, rest + middle[:, None] * move).max(axis=1) <= -limits.margin
        low, high = np.where(good, middle, low), np.where(good, high, middle)
    x = rest + low[:, None] * move
    rough = replace(problem.objective, t=t)
    score = {"cond": np.full(many, np.inf), "d": np.full(many, np.inf)}
    with one_blas_thread():
        for k in np.flatnonzero(low > 0.0):
            s = np.linalg.svd(rough.factor(x[k]), compute_uv=False)
            if s[-1] > 0.0:
                score["cond"][k], score["d"][k] = s[0] / s[-1], -2.0 * np.log(s).sum()
        best = {}
        for name, values in score.items():
            sign = 1.0 if name == "cond" else -1.0
            inside = [y for y in (problem.shrink(x[k]) for k in np.argsort(values)[:kept]) if y is not None]
            best[name] = min(inside, key=lambda y, name=name, sign=sign: sign * problem.objective.value(y)[name])
    return best
