"""Denavit-Hartenberg tables, standard and modified, as mechanisms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Sized
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dynident.errors import DescriptionError
from dynident.mechanism.elements import STANDARD_GRAVITY, Body, Joint, Limits, Placement, rotation_exp
from dynident.mechanism.mechanism import Mechanism
from dynident.mechanism.xml import LARGEST

KEYS = ("a", "alpha", "d", "theta", "kind", "joint", "limits", "antecedent", "gamma", "b")
BASE = "base"


def read_dh(
    rows: Sequence[Any],
    convention: str = "standard",
    name: str = "robot",
    gravity: ArrayLike = STANDARD_GRAVITY,
) -> Mechanism:
    """Make a robot from a Denavit-Hartenberg table; the link frame of ``link_i`` is DH frame i in both conventions.

    Pose of frame i in frame i - 1 (or in its antecedent), with Rx the rotation about and Tx the translation along x::

        standard (Denavit-Hartenberg, Paul):   T = Rz(theta) Tz(d) Tx(a) Rx(alpha)
        modified (Craig, Khalil):              T = Rx(alpha) Tx(a) Rz(theta) Tz(d)
        modified with gamma and b (trees):     T = Rz(gamma) Tz(b) Rx(alpha) Tx(a) Rz(theta) Tz(d)
    """
    if convention not in ("standard", "modified"):
        raise DescriptionError(f"convention is {convention!r}; give 'standard' or 'modified'")
    if isinstance(rows, str | Mapping) or not isinstance(rows, Sized) or not len(rows):
        raise DescriptionError(f"the DH table is {rows!r}; give a list with one row per joint")
    bodies, joints = [Body(BASE)], []
    for i, given in enumerate(rows, 1):
        row = _row(given, i)
        link, joint = f"link_{i}", str(row.get("joint", f"joint_{i}"))
        kind = row.get("kind", "revolute")
        if kind not in ("revolute", "prismatic", "fixed"):
            raise DescriptionError(f"DH row {i}: kind is {kind!r}; give 'revolute', 'prismatic' or 'fixed'")
        a, alpha, d, theta, gamma, b = (_number(row, key, i) for key in ("a", "alpha", "d", "theta", "gamma", "b"))
        limits = _limits(row.get("limits"), i)
        # Rotations and translations along one axis commute, so the constant part of theta and d may be on either side of q.
        along_x, along_z = _screw(0, alpha, a), _screw(2, theta, d)
        if convention == "modified":
            placement = _screw(2, gamma, b) @ along_x @ along_z
            joints.append(Joint(joint, kind, _antecedent(row, i), link, placement, limits=limits))
        else:
            if any(key in row for key in ("antecedent", "gamma", "b")):
                raise DescriptionError(f"DH row {i}: antecedent, gamma and b need convention='modified'")
            parent, placement = BASE if i == 1 else f"link_{i - 1}", along_z @ along_x
            if kind == "fixed":
                joints.append(Joint(joint, kind, parent, link, placement))
            else:
                frame = f"{link}/{joint}"
                joints.append(Joint(joint, kind, parent, frame, limits=limits))
                joints.append(Joint(f"{link}_fixed", "fixed", frame, link, placement))
                bodies.append(Body(frame))
        bodies.append(Body(link, np.zeros(10)))
    source = f"{convention} DH table of {name}"
    return Mechanism(name, tuple(bodies), tuple(joints), gravity=np.asarray(gravity), source=source)


def _screw(axis: int, angle: float, shift: float) -> Placement:
    direction = np.eye(3)[axis]
    return Placement(rotation_exp(direction * angle), direction * shift)


def _row(given: Any, i: int) -> Mapping[str, Any]:
    if isinstance(given, Mapping):
        for key in given:
            if key not in KEYS:
                raise DescriptionError(f"DH row {i}: unknown key '{key}'; known keys are {', '.join(KEYS)}")
        return given
    try:
        entries = list(given)
    except TypeError:
        entries = []
    if isinstance(given, str) or len(entries) not in (4, 5):
        raise DescriptionError(f"DH row {i} is {given!r}; give (a, alpha, d, theta) or (a, alpha, d, theta, kind)")
    return dict(zip(("a", "alpha", "d", "theta", "kind"), entries, strict=False))


def _number(row: Mapping[str, Any], key: str, i: int) -> float:
    try:
        value = float(row.get(key, 0.0))
    except (TypeError, ValueError, OverflowError):
        value = np.nan
    if not abs(value) < LARGEST:
        raise DescriptionError(f"DH row {i}: {key} is {row.get(key)!r}; give a finite number")
    return value


def _limits(given: Any, i: int) -> Limits:
    if given is None or isinstance(given, Limits):
        return given or Limits()
    try:
        lower, upper = (float(x) for x in given)
    except (TypeError, ValueError):
        raise DescriptionError(f"DH row {i}: limits is {given!r}; give (lower, upper)") from None
    return Limits(lower, upper)


def _antecedent(row: Mapping[str, Any], i: int) -> str:
    number = row.get("antecedent", i - 1)
    if isinstance(number, bool) or not isinstance(number, int | np.integer) or not 0 <= number < i:
        raise DescriptionError(f"DH row {i}: antecedent is {number!r}; give the number of an earlier row, or 0")
    return BASE if number == 0 else f"link_{number}"
