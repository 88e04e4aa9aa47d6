"""Common parts of the robots: arguments, assumptions, drives that carry joint terms, planar bodies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from dynident.arrays import Array
from dynident.checks import numbers
from dynident.control import gains_for
from dynident.errors import DynidentError
from dynident.friction import TERMS
from dynident.friction.law import Friction
from dynident.mechanics import Motion
from dynident.mechanism import Body, Mechanism, Placement, from_com
from dynident.mechanism.elements import rotation_exp
from dynident.simulate import VirtualRobot
from dynident.simulate.robot import actuator_inertia


class Assumption(NamedTuple):
    """An assumed number, missing in all documents."""

    value: Any  # Number, or one per axis or link
    unit: str  # SI unit
    why: str  # Reason for this value


def listed(assumptions: Mapping[str, Assumption]) -> str:
    """Return assumptions as lines to read."""
    return "\n".join(f"{name} = {a.value} {a.unit}: {a.why}" for name, a in assumptions.items())


# ---- arguments of closed forms ------------------------------------------------------------------------------------------
def columns(values: ArrayLike, width: int, what: str) -> Array:
    """Return finite numbers as (N, width), one sample as one row."""
    array = numbers(values, what)
    array = array[None] if array.ndim == 1 else array
    if array.ndim != 2 or array.shape[1] != width:
        raise DynidentError(f"{what} has shape {np.shape(values)}; give (samples, {width})")
    if not np.all(np.isfinite(array)):
        raise DynidentError(f"{what} is not finite at sample {int(np.argwhere(~np.isfinite(array))[0][0])}; remove it")
    return array


def samples_of(width: int, **given: ArrayLike) -> list[Array]:
    """Return several arrays (N, width), by name, after checking that they have equally many samples."""
    arrays = [columns(values, width, what) for what, values in given.items()]
    if len({len(array) for array in arrays}) > 1:
        sizes = ", ".join(f"{what} {len(array)}" for what, array in zip(given, arrays, strict=True))
        raise DynidentError(f"numbers of samples differ ({sizes}); give as many of each")
    return arrays


def check_length(owner: str, label: str, value: object) -> None:
    """Raise an error unless a value is a finite length above zero."""
    if not isinstance(value, int | float | np.floating) or not np.isfinite(value) or value <= 0.0:
        raise DynidentError(f"{owner}: {label} is {value!r}; give a positive length in metres")


def parameter_values(given: Mapping[str, float] | None, names: tuple[str, ...], default: Mapping[str, float]) -> Array:
    """Return a parameter vector: the defaults with some numbers changed, 0 where there is no default."""
    changed = dict(given or {})
    for name, value in changed.items():
        if name not in names:
            raise DynidentError(f"unknown parameter '{name}'; parameters are {', '.join(names)}")
        if not np.isfinite(value):
            raise DynidentError(f"parameter '{name}' is {value}; give a finite number")
    return np.array([changed.get(name, default.get(name, 0.0)) for name in names], dtype=np.float64)


# ---- machines -----------------------------------------------------------------------------------------------------------
def without_terms(mechanism: Mechanism, joints: Sequence[str], terms: Sequence[str] | None = None) -> Mechanism:
    """Return a robot without rotor inertia and friction in its driven joints, because its drives contain them."""
    gone = [s for s, term in TERMS.items() if term.rotor or term.friction or not term.passive] if terms is None else terms
    bare = [
        replace(joint, terms={k: v for k, v in joint.terms.items() if k.split(".")[0] not in gone})
        if joint.name in joints
        else joint
        for joint in mechanism.joints
    ]
    return replace(mechanism, joints=tuple(bare), terms=tuple(t for t in mechanism.terms if t not in gone))


POWERS = {"fc": 1, "fv": 2, "beta": 1, "a0": 1, "a1": 2, "a2": 3, "a3": 4}
"""Power of the gear ratio N that converts law parameters from motor to joint: f = N f_m(N v)."""


def joint_laws(machine: VirtualRobot) -> dict[str, Friction]:
    """Return the smooth friction laws of a machine, of its joints and of the drives of single joints, by joint."""
    laws = {name: law for name, law in machine.friction.items() if isinstance(law, Friction)}
    for drive, actuator in zip(machine.drives, machine.model.actuators, strict=True):
        law, N = drive.friction, abs(drive.transmission.ratio)
        if not isinstance(law, Friction) or len(actuator.coupling) > 1:
            continue
        powers = {name: POWERS.get(name.rpartition(".")[2]) for name in law.parameters}
        scaled = {name: x * N**k for (name, x), k in zip(law.parameters.items(), powers.values(), strict=True) if k is not None}
        if len(scaled) == len(powers):  # laws with breakaway stay the joint terms of the model
            laws[next(iter(actuator.coupling))] = law.law.using(scaled)
    return laws


def servo_gains(model: Mechanism, q: ArrayLike, bandwidth: float, damping: float) -> tuple[Array, Array]:
    """Return PD gains of every actuator: kp = w^2 J, kd = 2 d w J with the inertia J of `actuator_inertia` at one pose."""
    J = actuator_inertia(model, q)
    kp, kd = gains_for(bandwidth, damping)
    return np.asarray(kp * J), np.asarray(kd * J)


# ---- planar robots of [Roldan2017] --------------------------------------------------------------------------------------
PARAMETERS = ("paper", "full")
"""Parameter sets of a planar robot: the thesis' parameters, or ten of every body."""


def direction(angle: Array) -> Array:
    """Return e(angle) = (cos, sin)."""
    return np.stack([np.cos(angle), np.sin(angle)], axis=-1)


def at(x: float, y: float = 0.0, turn: float = 0.0) -> Placement:
    """Return a placement in the plane."""
    return Placement(rotation_exp([0.0, 0.0, turn]), np.array([x, y, 0.0]))


def planar_body(name: str, mass: float, com: ArrayLike, inertia: float) -> Body:
    """Return a body with a known moment of inertia only about z through the centre of mass."""
    x, y = np.asarray(com, dtype=np.float64)
    return Body(name, from_com(mass, [x, y, 0.0], inertia * np.eye(3)))


def point(name: str, mass: float) -> Body:
    """Return a point mass at the link frame's origin."""
    return Body(name, np.array([mass, *np.zeros(9)]))


def fourier(t: ArrayLike, start: ArrayLike, C: ArrayLike, D: ArrayLike, frequency: float) -> Motion:
    """Return the periodic motion (6.18) to (6.20); C and D are amplitudes of the velocity.

    q = q0 + sum_i (C_i sin(w_i t) - D_i cos(w_i t)) / w_i,    w_i = 2 pi f i
    """
    time, cos_part, sin_part = (np.asarray(numbers(x, label)) for x, label in ((t, "t"), (C, "C"), (D, "D")))
    origin = numbers(start, "start")
    if cos_part.shape != sin_part.shape or cos_part.ndim != 2 or origin.shape != cos_part.shape[:1]:
        raise DynidentError(
            f"C, D and start have shapes {cos_part.shape}, {sin_part.shape} and {origin.shape}; "
            "give (n, harmonics) twice and (n,)"
        )
    if not frequency > 0.0:
        raise DynidentError(f"frequency is {frequency}; give a fundamental frequency above zero")
    w = 2.0 * np.pi * frequency * np.arange(1, cos_part.shape[1] + 1)
    s, c = np.sin(time[:, None] * w), np.cos(time[:, None] * w)
    q = origin + s @ (cos_part / w).T - c @ (sin_part / w).T
    return Motion(time, q, c @ cos_part.T + s @ sin_part.T, c @ (sin_part * w).T - s @ (cos_part * w).T)


def system(equations: Sequence[tuple[Mapping[str, float], float]], names: Sequence[str]) -> tuple[Array, Array]:
    """Return printed equations, each a combination of parameters and its value, as C and V."""
    rows = [[terms.get(name, 0.0) for name in names] for terms, _ in equations]
    return np.array(rows), np.array([value for _, value in equations])
