"""Conversion of a mechanism from and to other formats: files, texts, Denavit-Hartenberg tables, models of other packages.

These functions are the methods of `Mechanism` of the same names. Readers import `Mechanism`, so they are loaded on first use.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from dynident.arrays import Array
from dynident.mechanism.elements import STANDARD_GRAVITY, Body, Joint
from dynident.mechanism.force import Columns

if TYPE_CHECKING:
    from dynident.mechanism.mechanism import Mechanism


def from_urdf(
    cls: type[Mechanism],
    path: str | os.PathLike[str],
    sidecar: str | os.PathLike[str] | None = None,
    floating: bool = False,
    search: Sequence[str | os.PathLike[str]] = (),
    arguments: Mapping[str, object] | None = None,
) -> Mechanism:
    """Read a URDF or xacro file without executing code in it."""
    from dynident.mechanism.urdf import read_urdf  # noqa: PLC0415 - readers import Mechanism

    return read_urdf(path, sidecar, floating, search, arguments)


def from_mjcf(cls: type[Mechanism], path: str | os.PathLike[str], search: Sequence[str | os.PathLike[str]] = ()) -> Mechanism:
    """Read a MuJoCo XML file: bodies, joints, defaults, inertias, actuators and equality constraints."""
    from dynident.mechanism.mjcf import read_mjcf  # noqa: PLC0415 - readers import Mechanism

    return read_mjcf(path, search)


def from_sdf(cls: type[Mechanism], path: str | os.PathLike[str], sidecar: str | os.PathLike[str] | None = None) -> Mechanism:
    """Read an SDF file (Gazebo) with one model; joints that close loops become cut joints."""
    from dynident.mechanism.sdf import read_sdf  # noqa: PLC0415 - readers import Mechanism

    return read_sdf(path, sidecar)


def from_text(cls: type[Mechanism], text: str, floating: bool = False) -> Mechanism:
    """Read a description that is in memory, such as the parameter ``robot_description`` of ROS."""
    from dynident.mechanism.files import read_text_robot  # noqa: PLC0415 - readers import Mechanism

    robot = read_text_robot(text)
    return robot.with_free_base() if floating else robot


def from_pinocchio(cls: type[Mechanism], model: Any) -> Mechanism:
    """Take a robot from a model of Pinocchio: bodies, joints, limits, armature, damping and friction."""
    from dynident.mechanism.library_models import from_pinocchio  # noqa: PLC0415 - readers import Mechanism

    return from_pinocchio(model)


def from_mujoco(cls: type[Mechanism], model: Any) -> Mechanism:
    """Take a robot from a model of MuJoCo: bodies, joints, ranges, armature, damping, friction loss and springs."""
    from dynident.mechanism.library_models import from_mujoco  # noqa: PLC0415 - readers import Mechanism

    return from_mujoco(model)


def to_pinocchio(self: Mechanism) -> Any:
    """Return the robot as a model of Pinocchio, with armature, damping, friction and gravity."""
    from dynident.mechanism.library_models import to_pinocchio  # noqa: PLC0415 - writers import Mechanism

    return to_pinocchio(self)


def to_mujoco(self: Mechanism) -> Any:
    """Return the robot as a model of MuJoCo, with armature, damping, friction loss and springs."""
    from dynident.mechanism.library_models import to_mujoco  # noqa: PLC0415 - writers import Mechanism

    return to_mujoco(self)


def from_dh(
    cls: type[Mechanism],
    rows: Sequence[Any],
    convention: str = "standard",
    name: str = "robot",
    gravity: ArrayLike = STANDARD_GRAVITY,
) -> Mechanism:
    """Make a robot from a Denavit-Hartenberg table."""
    from dynident.mechanism.dh import read_dh  # noqa: PLC0415 - readers import Mechanism

    return read_dh(rows, convention, name, gravity)


def from_regressor(
    cls: type[Mechanism],
    names: Sequence[str],
    function: Callable[[Array, Array, Array], Array] | None = None,
    joints: Sequence[str] = (),
    name: str = "robot",
    units: Sequence[str] = (),
    values: ArrayLike | None = None,
) -> Mechanism:
    """Make a robot that consists of a user-defined regressor only: tau = Y(q, v, a) phi."""
    labels = tuple(joints) or ("joint_1",)
    bodies = ("base", *(f"link of {label}" for label in labels))
    chain = [Joint(label, "revolute", bodies[i], bodies[i + 1]) for i, label in enumerate(labels)]
    given = () if values is None else tuple(float(x) for x in np.ravel(np.asarray(values, dtype=np.float64)))
    columns = Columns(tuple(names), function, given, tuple(units))
    return cls(name, tuple(Body(body) for body in bodies), tuple(chain), terms=(), gravity=np.zeros(3), forces=(columns,))
