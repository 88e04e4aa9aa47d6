"""Elements of a mechanism: placements, bodies, joints, loops, couplings, actuators. Pure immutable data."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType

import numpy as np
from numpy.typing import ArrayLike

from dynident.arrays import Array
from dynident.errors import DescriptionError
from dynident.friction.terms import check_terms
from dynident.mechanism.parameters import skew
from dynident.results import Frozen

STANDARD_GRAVITY = (0.0, 0.0, -9.81)  # for an upright robot [m/s^2]

COORDINATES: dict[str, tuple[str, ...]] = {
    "fixed": (),
    "revolute": ("",),
    "continuous": ("",),
    "prismatic": ("",),
    "universal": ("r1", "r2"),
    "planar": ("x", "y", "rz"),
    "spherical": ("rx", "ry", "rz"),
    "free": ("x", "y", "z", "rx", "ry", "rz"),
}
"""Joint kinds and the suffixes of their coordinates.

Position coordinates of `spherical` are the rotation vector r (R = exp [r]x); those of `free` are the translation in the
parent's joint frame and then r. Velocities of both are quasi-velocities in the CHILD frame (linear, then angular), as in
Pinocchio, so q, v and a always have the same number of columns.
"""

LOOP_KINDS: tuple[str, ...] = ("point", "revolute", "universal", "spherical", "prismatic", "weld")


def frozen(values: ArrayLike, shape: tuple[int, ...], what: str) -> Array:
    """Return a read-only float copy of `values` after checking that it is finite and of this shape."""
    try:
        array = np.array(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise DescriptionError(f"{what} is {values!r}; give numbers of shape {shape}") from error
    if array.shape != shape:
        raise DescriptionError(f"{what} has shape {array.shape}; it must have shape {shape}")
    if not np.all(np.isfinite(array)):
        raise DescriptionError(f"{what} is {array.tolist()}; every number must be finite")
    array.flags.writeable = False
    return array


def rotation_exp(r: ArrayLike) -> Array:
    """Return R = exp [r]x by Rodrigues' formula."""
    rx = skew(r)
    angle = float(np.linalg.norm(np.asarray(r, dtype=np.float64)))
    if angle < 1e-8:
        return np.asarray(np.eye(3) + rx + 0.5 * rx @ rx)
    return np.asarray(np.eye(3) + np.sin(angle) / angle * rx + (1.0 - np.cos(angle)) / angle**2 * rx @ rx)


def unit_vector(x: Array, what: str) -> Array:
    """Return a vector divided by its length, which must not be zero."""
    length = math.hypot(*x)  # does not overflow
    if not 1e-12 < length < np.inf:
        raise DescriptionError(f"{what} is {x.tolist()}; give a vector that is not zero")
    return x / length


def quaternion_matrix(quaternion: Array, what: str) -> Array:
    """Return the rotation of a quaternion (w, x, y, z), after normalising it."""
    w, x, y, z = unit_vector(quaternion, what)
    return np.array(
        [
            [1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y - w * z), 2.0 * (x * z + w * y)],
            [2.0 * (x * y + w * z), 1.0 - 2.0 * (x * x + z * z), 2.0 * (y * z - w * x)],
            [2.0 * (x * z - w * y), 2.0 * (y * z + w * x), 1.0 - 2.0 * (x * x + y * y)],
        ]
    )


def perpendicular(axis: Array) -> tuple[Array, Array]:
    """Return two unit vectors that complete a unit axis to a right-handed frame; x and y for the axis z."""
    helper = np.eye(3)[int(np.argmin(np.abs(axis)))]
    first = np.array([1.0, 0.0, 0.0]) if abs(axis[2]) > 0.999999 else np.cross(helper, axis)
    first = first - (first @ axis) * axis
    first = first / np.linalg.norm(first)
    return first, np.cross(axis, first)


@dataclass(frozen=True, eq=False)
class Placement:
    """Pose of frame B in frame A: x_A = R x_B + p."""

    rotation: Array = field(default_factory=lambda: np.eye(3))  #: (3, 3), R, columns are B's axes in A
    translation: Array = field(default_factory=lambda: np.zeros(3))  #: (3,), p, B's origin in A [m]

    def __post_init__(self) -> None:
        object.__setattr__(self, "rotation", frozen(self.rotation, (3, 3), "rotation"))
        object.__setattr__(self, "translation", frozen(self.translation, (3,), "translation"))
        R = np.clip(self.rotation, -2.0, 2.0)  # products of larger entries may overflow, and no rotation has such entries
        if np.max(np.abs(R @ R.T - np.eye(3))) > 1e-6 or np.linalg.det(R) < 0.0:
            raise DescriptionError(f"rotation {self.rotation.tolist()} is not a rotation matrix (R R^T = 1, det R = 1)")

    def __matmul__(self, other: Placement) -> Placement:
        """Return the pose of C in A from B in A (self) and C in B (other)."""
        return Placement(self.rotation @ other.rotation, self.rotation @ other.translation + self.translation)

    def inverse(self) -> Placement:
        """Return the pose of A in B: R^T, -R^T p."""
        return Placement(self.rotation.T, -self.rotation.T @ self.translation)

    @classmethod
    def from_rpy(cls, xyz: ArrayLike, rpy: ArrayLike) -> Placement:
        """Return the pose from URDF's fixed-axis angles, R = Rz(yaw) Ry(pitch) Rx(roll)."""
        roll, pitch, yaw = np.asarray(rpy, dtype=np.float64)
        R = rotation_exp([0.0, 0.0, yaw]) @ rotation_exp([0.0, pitch, 0.0]) @ rotation_exp([roll, 0.0, 0.0])
        return cls(R, np.asarray(xyz, dtype=np.float64))


@dataclass(frozen=True, eq=False)
class Body:
    """A rigid body."""

    name: str  #: Unique name
    #: (10,), prior inertial parameters in the link frame (see `inertia.SYMBOLS`). None for a massless frame between two
    #: joints, which has no parameters.
    inertia: Array | None = None
    #: True for a body with its own parameters although it is fixed to another one, such as a payload
    separate: bool = False

    def __post_init__(self) -> None:
        if self.inertia is not None:
            object.__setattr__(self, "inertia", frozen(self.inertia, (10,), f"body '{self.name}': inertia"))


@dataclass(frozen=True, eq=False)
class Limits:
    """Limits of a joint; infinite if unknown."""

    lower: float = -np.inf  #: Lowest position [rad or m]
    upper: float = np.inf  #: Highest position [rad or m]
    velocity: float = np.inf  #: Largest speed [rad/s or m/s]
    effort: float = np.inf  #: Largest torque or force [N m or N]
    acceleration: float = np.inf  #: Largest acceleration [rad/s^2 or m/s^2]
    jerk: float = np.inf  #: Largest jerk [rad/s^3 or m/s^3]


def _frozen_terms(terms: Mapping[str, float], owner: str) -> Mapping[str, float]:
    check_terms(dict.fromkeys([key.split(".")[0] for key in terms]))
    for symbol, value in terms.items():
        if not np.isfinite(value):
            raise DescriptionError(f"{owner}: term '{symbol}' is {value}; give a finite number")
    return MappingProxyType({key: float(value) for key, value in terms.items()})


@dataclass(frozen=True, eq=False)
class Joint(Frozen):
    """A joint of the spanning tree."""

    name: str  #: Unique name
    kind: str  #: One of `COORDINATES`
    parent: str  #: Body that carries the joint
    child: str  #: Body that the joint moves, whose link frame coincides with the joint frame at q = 0
    placement: Placement = field(default_factory=Placement)  #: Joint frame in the parent's link frame
    #: (3,), axis in the joint frame (made a unit vector); normal of the plane for `planar`
    axis: Array = field(default_factory=lambda: np.array([0.0, 0.0, 1.0]))
    #: (3,), second axis of `universal`, in the frame after the first rotation
    axis2: Array = field(default_factory=lambda: np.array([0.0, 1.0, 0.0]))
    limits: Limits = field(default_factory=Limits)  #: Position, speed and effort limits
    #: Prior values of joint terms, such as ``{"fv": 0.3, "fc": 1.2, "ia": 0.05}``; ``"fv.r1"`` for one coordinate of a joint
    #: with several
    terms: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.kind not in COORDINATES:
            raise DescriptionError(f"joint '{self.name}': unknown kind '{self.kind}'; known kinds are {', '.join(COORDINATES)}")
        for label in ("axis", "axis2"):
            axis = frozen(getattr(self, label), (3,), f"joint '{self.name}': {label}")
            length = math.hypot(*axis)
            if length < 1e-9:
                raise DescriptionError(f"joint '{self.name}': {label} is {axis.tolist()}; give a direction that is not zero")
            object.__setattr__(self, label, frozen(axis / length, (3,), label))
        if self.limits.lower > self.limits.upper:
            raise DescriptionError(
                f"joint '{self.name}': lower limit {self.limits.lower} is above upper limit {self.limits.upper}; swap them"
            )
        object.__setattr__(self, "terms", _frozen_terms(self.terms, f"joint '{self.name}'"))

    @cached_property
    def coordinates(self) -> tuple[str, ...]:
        """Names of the joint's coordinates: the joint's own name, or ``name.suffix`` if there are several."""
        return tuple([f"{self.name}.{suffix}" if suffix else self.name for suffix in COORDINATES[self.kind]])

    def term(self, coordinate: str, symbol: str) -> float:
        """Return the prior value of a joint term."""
        own = symbol + coordinate.removeprefix(self.name)
        return self.terms.get(own, self.terms.get(symbol, 0.0))

    @property
    def plane(self) -> tuple[Array, Array]:
        """Two unit vectors spanning the plane of a `planar` joint, right-handed with its axis."""
        return perpendicular(self.axis)


def with_joint_terms(joint: Joint, terms: Mapping[str, float]) -> Joint:
    """Return a joint with other terms, without checking the rest again."""
    other = object.__new__(Joint)
    vars(other).update(vars(joint), terms=_frozen_terms(terms, f"joint '{joint.name}'"))
    return other


@dataclass(frozen=True, eq=False)
class Loop:
    """A cut joint that closes a loop between two bodies of the tree."""

    name: str  #: Unique name
    kind: str  #: One of `LOOP_KINDS`: the constraint between the two frames
    body_a: str  #: First body
    body_b: str  #: Second body
    placement_a: Placement = field(default_factory=Placement)  #: Frame of the cut joint in the first body
    placement_b: Placement = field(default_factory=Placement)  #: Frame of the cut joint in the second body
    #: (3,), axis of `revolute` and `prismatic` cuts, in both frames; axis of `universal` in frame a
    axis: Array = field(default_factory=lambda: np.array([0.0, 0.0, 1.0]))
    #: (3,), second axis of `universal`, in frame b; it stays perpendicular to the first
    axis2: Array = field(default_factory=lambda: np.array([0.0, 1.0, 0.0]))

    def __post_init__(self) -> None:
        if self.kind not in LOOP_KINDS:
            raise DescriptionError(f"loop '{self.name}': unknown kind '{self.kind}'; known kinds are {', '.join(LOOP_KINDS)}")
        for label in ("axis", "axis2"):
            axis = frozen(getattr(self, label), (3,), f"loop '{self.name}': {label}")
            if not np.any(axis):
                raise DescriptionError(f"loop '{self.name}': {label} is {axis.tolist()}; give a direction that is not zero")
            object.__setattr__(self, label, frozen(axis / math.hypot(*axis), (3,), label))


@dataclass(frozen=True, eq=False)
class Actuator(Frozen):
    """A motor: q_motor = ratio (sum_j coupling_j q_j) + offset, and tau_j = coupling_j ratio tau_motor."""

    name: str  #: Unique name
    #: Motor turns per turn of each joint coordinate (joint side); one entry of 1 for an ordinary drive
    coupling: Mapping[str, float]
    ratio: float = 1.0  #: Gear ratio, motor turns per joint turn; negative when it reverses
    offset: float = 0.0  #: Motor position at q = 0 [rad]
    gain: float | None = None  #: Drive gain, motor torque per unit of logged effort [N m/A or N m/V]; None when unknown
    #: Prior values of the motor's own terms, on the joint side, if it is coupled to several joints
    terms: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.coupling or not all(np.isfinite(c) for c in self.coupling.values()):
            raise DescriptionError(f"actuator '{self.name}': coupling is {dict(self.coupling)}; name at least one joint")
        if not np.isfinite(self.ratio) or self.ratio == 0.0:
            raise DescriptionError(f"actuator '{self.name}': gear ratio is {self.ratio}; give a finite number that is not zero")
        object.__setattr__(self, "coupling", MappingProxyType({k: float(v) for k, v in self.coupling.items()}))
        object.__setattr__(self, "terms", _frozen_terms(self.terms, f"actuator '{self.name}'"))

    @property
    def direct(self) -> bool:
        """Whether the actuator is a direct drive with the name of its joint, as in a robot without actuators."""
        plain = (self.ratio, self.offset, self.gain) == (1.0, 0.0, None) and not self.terms
        return plain and dict(self.coupling) == {self.name: 1.0}


@dataclass(frozen=True, eq=False)
class Coupling(Frozen):
    """A joint that follows others: q_joint = sum_i ratio_i q_i + offset (URDF `<mimic>` follows one joint).

    With a function the relation is any smooth one, q_joint = function(q_1, q_2, ...) + offset.
    """

    joint: str  #: The joint that follows (one coordinate)
    #: Ratio for each joint it follows; with a function only their names matter, in the order of the function's columns
    of: Mapping[str, float]
    offset: float = 0.0  #: Constant [rad or m]
    #: ``function(x)`` with x (N, k) returns (N,). It is evaluated on expressions and differentiated, so it must use sums,
    #: products, quotients, powers, sin, cos, tan, sqrt, exp, tanh and arctan2 of NumPy.
    function: Callable[[Array], Array] | None = None

    def __post_init__(self) -> None:
        of = self.of if isinstance(self.of, Mapping) else dict.fromkeys(self.of, 1.0)
        if not of or not all(np.isfinite(r) for r in of.values()) or not np.isfinite(self.offset):
            raise DescriptionError(f"coupling of joint '{self.joint}' is {dict(of)} + {self.offset}; give finite ratios")
        object.__setattr__(self, "of", MappingProxyType({k: float(v) for k, v in of.items()}))

    def value_at(self, held: Mapping[str, float]) -> float:
        """Return q_joint when all joints that it follows are held."""
        if self.function is None:
            return self.offset + sum(ratio * held[name] for name, ratio in self.of.items())
        return self.offset + float(self.function(np.array([[held[name] for name in self.of]]))[0])

    def holding(self, held: Mapping[str, float]) -> Coupling:
        """Return the coupling to the joints that still move, with the others held."""
        free = {name: ratio for name, ratio in self.of.items() if name not in held}
        if len(free) == len(self.of):
            return self
        if self.function is None:
            shift = sum(ratio * held[name] for name, ratio in self.of.items() if name in held)
            return Coupling(self.joint, free, self.offset + shift)
        moving = [i for i, name in enumerate(self.of) if name in free]
        rest = np.array([held.get(name, 0.0) for name in self.of])

        def whole(x: Array) -> Array:
            full = np.tile(rest.astype(x.dtype), (len(x), 1))  # expressions pass through
            full[:, moving] = x
            return full

        f = self.function
        return Coupling(self.joint, free, self.offset, lambda x: f(whole(x)))


def linear_map(couplings: Sequence[Coupling], tree: Sequence[str]) -> tuple[Array, Array]:
    """Return G and g0 with q_tree = G q + g0, q being the independent coordinates; rows of functions are zero."""
    following = {c.joint: c for c in couplings}
    curved = {c.joint for c in couplings if c.function is not None}
    free = [name for name in tree if name not in following]
    index = {name: i for i, name in enumerate(free)}
    unit = np.eye(len(free))
    rows: dict[str, tuple[Array, float]] = {name: (unit[index[name]], 0.0) for name in free}
    waiting = {name: c for name, c in following.items() if name not in curved}
    rows |= {name: (np.zeros(len(free)), 0.0) for name in curved}  # filled in along a motion
    while waiting:
        ready = [name for name, coupling in waiting.items() if all(other in rows for other in coupling.of)]
        if not ready:
            raise DescriptionError(f"couplings of {', '.join(waiting)} form a cycle; remove one")
        for name in ready:
            coupling = waiting.pop(name)
            row, offset = np.zeros(len(free)), coupling.offset
            for other, ratio in coupling.of.items():
                row, offset = row + ratio * rows[other][0], offset + ratio * rows[other][1]
            rows[name] = (row, offset)
    matrix = np.array([rows[name][0] for name in tree]).reshape(len(tree), len(free))
    return matrix, np.array([rows[name][1] for name in tree])
