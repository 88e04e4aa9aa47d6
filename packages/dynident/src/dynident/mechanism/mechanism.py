"""`Mechanism`: a spanning tree of bodies and joints, plus loops, couplings and actuators. Frozen, named everywhere."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynident.arrays import Array
from dynident.errors import DescriptionError, DescriptionWarning, warn
from dynident.friction.terms import SYMMETRIC, TERMS, check_terms
from dynident.mechanism import changes, formats
from dynident.mechanism import parameters as inertial
from dynident.mechanism.elements import STANDARD_GRAVITY, Actuator, Body, Coupling, Joint, Loop, Placement, frozen, linear_map
from dynident.mechanism.force import Columns, Force
from dynident.mechanism.loops import Closure, find_closure
from dynident.mechanism.parameters import Parameters
from dynident.mechanism.tree import Tree, build_tree
from dynident.results import Result

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from dynident.control.compiled import CompiledFunction


class OwnColumn(NamedTuple):
    """One column of a friction law or force element: name, unit, owner and value of its parameter, and its kind.

    Kinds: `linear`, `shape` and `settled` (known) shape parameters of laws, the `tangent` at given shape parameters,
    `force` and `known` elements, `opaque` columns.
    """

    name: str
    unit: str
    owner: str
    value: float
    kind: str
    coordinate: str = ""


@dataclass(frozen=True, eq=False)
class Mechanism(Result):
    """A robot: bodies and joints in a spanning tree, cut joints that close loops, couplings, actuators.

    A serial arm has no loops. Coordinates are those of the tree without those of coupled joints.
    """

    name: str  #: Name of the robot
    bodies: tuple[Body, ...]  #: All links; exactly one is the root (the base, or the world under a floating base)
    joints: tuple[Joint, ...]  #: Joints of the spanning tree: every body but the root is the child of exactly one
    loops: tuple[Loop, ...] = ()  #: Cut joints
    couplings: tuple[Coupling, ...] = ()  #: Joints that follow others
    actuators: tuple[Actuator, ...] = ()  #: Motors; one direct drive per independent single-axis joint when empty
    #: Joint terms that every joint has as parameters (see `dynident.friction.TERMS`); a joint also has the terms with a prior
    #: value. A motor coupled to several joints has them too, except the offset. "auto" means `SYMMETRIC`, but
    #: no terms on joints without a motor of a robot with loops and named motors.
    terms: tuple[str, ...] = ("auto",)
    gravity: Array = field(default_factory=lambda: np.array(STANDARD_GRAVITY))  #: (3,), gravity in the root frame [m/s^2]
    #: With loops: tree coordinates used as the robot's coordinates q; chosen (actuated ones first) when empty
    independent: tuple[str, ...] = ()
    #: With loops: a guess of one closed configuration, which selects the assembly and working mode; 0 where not named
    home: Mapping[str, float] = field(default_factory=dict)
    source: str = ""  #: Origin of the description
    #: Joint terms of single joints, instead of `terms`
    joint_terms: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    #: Friction laws with their numbers by coordinate, instead of the friction among the joint's terms
    friction: Mapping[str, Any] = field(default_factory=dict)
    #: Springs, counterbalances, cables, known torques and other columns, with known or unknown coefficients
    forces: tuple[Force | Columns, ...] = ()

    def __post_init__(self) -> None:
        for label in ("bodies", "joints", "loops", "couplings", "actuators", "independent", "forces"):
            object.__setattr__(self, label, tuple(getattr(self, label)))
        object.__setattr__(self, "home", MappingProxyType({name: float(x) for name, x in self.home.items()}))
        own = {name: check_terms(terms) for name, terms in self.joint_terms.items()}
        automatic = tuple(self.terms) == ("auto",)
        object.__setattr__(self, "terms", SYMMETRIC if automatic else check_terms(self.terms))
        own = {**passive_terms(self), **own} if automatic else own
        object.__setattr__(self, "joint_terms", MappingProxyType(own))
        object.__setattr__(self, "friction", MappingProxyType(dict(self.friction)))
        object.__setattr__(self, "gravity", frozen(self.gravity, (3,), "gravity"))
        check_structure(self)
        if not self.actuators:
            # With loops the actuated joints must be named: passive joints cannot be guessed.
            plain = [c for c in self.coordinate_names if c in self._joint] if not self.loops else []
            object.__setattr__(self, "actuators", tuple(Actuator(c, {c: 1.0}) for c in plain))
        following = {c.joint for c in self.couplings}
        # Default direct drives, added before a copy got couplings, are removed: a follower needs no drive.
        drives = tuple(a for a in self.actuators if not (a.name in following and a.direct))
        object.__setattr__(self, "actuators", drives)
        driveable = [name for name in self.tree.coordinates if name not in following]
        for actuator in self.actuators:
            for coordinate in actuator.coupling:
                if coordinate not in driveable:
                    raise DescriptionError(
                        f"actuator '{actuator.name}' drives '{coordinate}', which is not an independent joint of "
                        f"'{self.name}'; joints are {', '.join(driveable)}"
                    )

    def _content(self) -> dict[str, Any]:
        """Fields in the layout of a file: laws and force elements are texts and numbers."""
        from dynident.mechanism.sidecar import own_parts  # noqa: PLC0415 - additions import Mechanism

        opaque = [force for force in self.forces if isinstance(force, Columns)]
        if opaque:
            raise DescriptionError(f"columns {', '.join(opaque[0].names[:3])} ... are given by a function, which no file holds")
        parts = own_parts(self)
        return {**super()._content(), "friction": parts["friction"], "forces": parts["forces"]}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Mechanism:
        """Return the robot stored by `to_dict`."""
        from dynident.mechanism.sidecar import with_laws_and_forces  # noqa: PLC0415 - additions import Mechanism

        if not isinstance(data, Mapping):
            return super().from_dict(data)
        rest = {name: value for name, value in data.items() if name not in ("friction", "forces")}
        return with_laws_and_forces(super().from_dict(rest), data.get("friction", []), data.get("forces", []))

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the complete robot: as JSON, or as URDF or MJCF with a sidecar (.toml) for content that the format lacks."""
        from dynident.mechanism.files import save_robot  # noqa: PLC0415 - it imports Mechanism

        return save_robot(self, path)[0]

    @classmethod
    def load(cls, path: str | os.PathLike[str], sidecar: str | os.PathLike[str] | None = None) -> Mechanism:
        """Read a robot that `save` wrote, or any other description.

        Parameters
        ----------
        path : path-like
            File whose ending says its format: URDF, xacro, MJCF, SDF, JSON, or one that a plug-in reads.
        sidecar : path-like, optional
            TOML file with everything that the description cannot hold.

        Returns
        -------
        Mechanism
            The robot.
        """
        from dynident.mechanism.files import read_robot  # noqa: PLC0415 - it imports Mechanism

        beside = Path(path).with_suffix(".toml")
        if sidecar is None and beside.is_file():
            warn(f"'{beside}' is not read; sidecar='{beside.name}' adds it to the robot", DescriptionWarning)
        return read_robot(path, sidecar)

    # ---- content ----------------------------------------------------------------------------------------------------

    @cached_property
    def root(self) -> str:
        """Name of the base body."""
        children = {joint.child for joint in self.joints}
        return next(body.name for body in self.bodies if body.name not in children)

    @cached_property
    def tree(self) -> Tree:
        """The spanning tree as flat arrays."""
        return build_tree(self)

    @cached_property
    def coupling_map(self) -> tuple[Array, Array]:
        """G (tree coordinates x independent coordinates) and g0 with q_tree = G q + g0."""
        return linear_map(self.couplings, self.tree.coordinates)

    @cached_property
    def closure(self) -> Closure:
        """Closure of the loops: independent coordinates, equations to solve, home configuration."""
        return find_closure(self, self.independent)

    @cached_property
    def position_limits(self) -> tuple[Array, Array]:
        """Lowest and highest positions of the coordinates, (n,) each."""
        single = {joint.name: joint.limits for joint in self.joints if len(joint.coordinates) == 1}
        lower = np.array([single[name].lower if name in single else -np.inf for name in self.coordinate_names])
        return lower, np.array([single[name].upper if name in single else np.inf for name in self.coordinate_names])

    @cached_property
    def coordinate_names(self) -> tuple[str, ...]:
        """Names of the robot's coordinates, columns of q, v and a: tree coordinates that follow no others and close no loop."""
        if self.loops:
            return tuple(self.tree.coordinates[i] for i in self.closure.independent)
        following = {c.joint for c in self.couplings}
        return tuple(name for name in self.tree.coordinates if name not in following)

    @cached_property
    def joint_names(self) -> tuple[str, ...]:
        """Names of the moving joints that follow no others, in the order of their coordinates."""
        return tuple(dict.fromkeys(self._coordinate_joint[name].name for name in self.coordinate_names))

    @cached_property
    def _joint(self) -> dict[str, Joint]:
        return {joint.name: joint for joint in self.joints}

    def __repr__(self) -> str:
        extras = (("loops", self.loops), ("couplings", self.couplings))
        also = "".join(f", {len(items)} {what}" for what, items in extras if items)
        return (
            f"Mechanism('{self.name}': {self.dof} coordinates {', '.join(self.coordinate_names)}; "
            f"{len(self.bodies)} bodies{also}, {len(self.parameters)} parameters)"
        )

    def summary(self) -> str:
        """Return a description of the robot as text: joints, bodies, loops, drives."""
        from dynident.mechanism.describe import description, description_text  # noqa: PLC0415 - it imports Mechanism

        return description_text(description(self))

    def compiled(self, name: str, frame: str | None = None) -> CompiledFunction:
        """Return a quantity at one sample as machine code for control loops, such as ``"inverse_dynamics"``."""
        from dynident.control.compiled import CompiledFunction  # noqa: PLC0415 - it imports Mechanism

        return CompiledFunction(self, name, frame)

    def plot(self, q: ArrayLike | None = None) -> Figure:
        """Draw the robot in space, with the frames of its links."""
        from dynident.mechanism.describe import plot_mechanism  # noqa: PLC0415 - matplotlib is an extra

        return plot_mechanism(self, q)

    @cached_property
    def dof(self) -> int:
        """Degrees of freedom: number of independent coordinates."""
        return len(self.coordinate_names)

    def joint(self, name: str) -> Joint:
        """Return a joint by name."""
        try:
            return self._joint[name]
        except KeyError:
            raise DescriptionError(f"robot '{self.name}' has no joint '{name}'; joints are {', '.join(self._joint)}") from None

    @cached_property
    def _coordinate_joint(self) -> dict[str, Joint]:
        return {coordinate: joint for joint in self.joints for coordinate in joint.coordinates}

    @cached_property
    def joint_columns(self) -> tuple[tuple[str, str], ...]:
        """(coordinate, term) of every joint-term parameter, in order; a free joint has none."""
        columns = []
        for coordinate in self.tree.coordinates:
            joint = self._coordinate_joint[coordinate]
            base = () if joint.kind == "free" else self.joint_terms.get(joint.name, self.terms)
            named = dict.fromkeys([*base, *[key.split(".")[0] for key in joint.terms]])
            law = self.friction[coordinate].law.linear if coordinate in self.friction else None
            columns += [(coordinate, t) for t in named if law is None or not (TERMS[t].friction or t in law)]
        return tuple(columns)

    @cached_property
    def actuator_columns(self) -> tuple[tuple[str, str], ...]:
        """(actuator, term) of the motors coupled to several joints; terms of other motors belong to their joint."""
        shared = [actuator.name for actuator in self.actuators if len(actuator.coupling) > 1]
        # The constant torque of such a motor is a combination of the offsets of its joints.
        return tuple((name, term) for name in shared for term in self.terms if term not in ("off", "k"))

    @cached_property
    def actuator_matrix(self) -> tuple[Array, Array]:
        """N and n0 with q_motor = N q + n0 and tau_joint = N^T tau_motor; q are the tree coordinates of a robot with loops."""
        names = self.tree.coordinates if self.loops else self.coordinate_names
        index = {name: i for i, name in enumerate(names)}
        matrix = np.zeros((len(self.actuators), len(names)))
        for row, actuator in zip(matrix, self.actuators, strict=True):
            for coordinate, coefficient in actuator.coupling.items():
                row[index[coordinate]] = actuator.ratio * coefficient
        return matrix, np.array([actuator.offset for actuator in self.actuators])

    @cached_property
    def parameters(self) -> Parameters:
        """All standard parameters with their prior values: ten per rigid group, then joint terms, then motor terms."""
        names: list[str] = []
        units: list[str] = []
        owners: list[str] = []
        for body in self.tree.bodies:
            names += [f"{symbol}_{body}" for symbol in inertial.SYMBOLS]
            units += inertial.UNITS
            owners += [body] * 10
        values = self.tree.inertias.tolist()
        for coordinate, symbol in self.joint_columns:
            joint = self._coordinate_joint[coordinate]
            sliding = joint.kind == "prismatic" or coordinate.endswith((".x", ".y", ".z"))
            names.append(f"{symbol}_{coordinate}")
            units.append(TERMS[symbol].unit_prismatic if sliding else TERMS[symbol].unit_revolute)
            owners.append(joint.name)
            values.append(joint.term(coordinate, symbol))
        prior = {actuator.name: actuator.terms for actuator in self.actuators}
        for actuator, symbol in self.actuator_columns:
            names.append(self._motor_parameter(actuator, symbol))
            units.append(TERMS[symbol].unit_revolute)
            owners.append(actuator)
            values.append(prior[actuator].get(symbol, 0.0))
        for own in self.own_columns:
            names.append(own.name)
            units.append(own.unit)
            owners.append(own.owner)
            values.append(own.value)
        return Parameters(tuple(names), np.array(values), tuple(units), tuple(owners), self.source or self.name)

    @cached_property
    def own_columns(self) -> tuple[OwnColumn, ...]:
        """Columns of friction laws and of force elements, the last of the parameters."""
        found: list[OwnColumn] = []
        for coordinate, friction in self.friction.items():
            owner, linear = self._coordinate_joint[coordinate].name, len(friction.law.linear)
            for i, (name, value) in enumerate(friction.parameters.items()):
                kind = "linear" if i < linear else "settled" if name in friction.known else "shape"
                found.append(OwnColumn(f"{name}_{coordinate}", "", owner, value, kind, coordinate))
            if friction.law.shape:
                found.append(OwnColumn(f"tangent_{coordinate}", "", owner, 1.0, "tangent", coordinate))
        for force in self.forces:
            if isinstance(force, Columns):
                named = zip(force.names, force.units, force.values, strict=True)
                found += [OwnColumn(name, unit, "", value, "opaque") for name, unit, value in named]
            else:
                at = next((self._coordinate_joint[c].name for c in force.coordinates), "")
                found.append(
                    OwnColumn(force.name, force.unit, at, float(force.value or 0.0), "known" if force.known else "force")
                )
        return tuple(found)

    @cached_property
    def known_columns(self) -> NDArray[np.int64]:
        """Known parameters, which are not identified."""
        first = len(self.parameters) - len(self.own_columns)
        known = [first + i for i, own in enumerate(self.own_columns) if own.kind in ("known", "tangent", "settled")]
        return np.array(known, dtype=np.int64)

    @cached_property
    def rotor_columns(self) -> NDArray[np.bool_]:
        """Mask of rotor inertias among the parameters after those of the bodies."""
        terms = [TERMS[symbol].rotor for _, symbol in (*self.joint_columns, *self.actuator_columns)]
        return np.array([*terms, *(False for _ in self.own_columns)], dtype=np.bool_)

    @cached_property
    def law_values(self) -> Array:
        """Parameters of all friction laws, one law after the other, at which their columns are evaluated."""
        return np.concatenate([np.zeros(0), *(friction.values for friction in self.friction.values())])

    def _motor_parameter(self, actuator: str, symbol: str) -> str:
        # Motors and joints may share a name; their parameters may not.
        return f"{symbol}_{actuator}" if actuator not in self.tree.coordinates else f"{symbol}_{actuator}_motor"

    def check_consistency(self, parameters: Parameters | None = None) -> tuple[inertial.Consistency, ...]:
        """Check the physical consistency of every rigid group."""
        values = (parameters or self.parameters).values
        return tuple(inertial.check_consistency(values[10 * i : 10 * i + 10], body) for i, body in enumerate(self.tree.bodies))

    # ---- changed copies ---------------------------------------------------------------------------------------------

    altered = changes.altered
    with_terms = changes.with_terms
    with_friction = changes.with_friction
    with_gravity = changes.with_gravity
    without_friction = changes.without_friction
    with_forces = changes.with_forces
    with_parameters = changes.with_parameters
    with_payload = changes.with_payload
    without = changes.without
    lock = changes.lock
    with_free_base = changes.with_free_base
    keep = changes.keep

    def frame(self, name: str) -> tuple[int, Placement]:
        """Return the tree node that carries a link, and the pose of the link in it."""
        try:
            return self.tree.frames[name]
        except KeyError:
            raise DescriptionError(
                f"robot '{self.name}' has no link '{name}'; links are {', '.join(self.tree.frames)}"
            ) from None

    # ---- from and to other formats ----------------------------------------------------------------------------------

    from_urdf = classmethod(formats.from_urdf)
    from_mjcf = classmethod(formats.from_mjcf)
    from_sdf = classmethod(formats.from_sdf)
    from_text = classmethod(formats.from_text)
    from_pinocchio = classmethod(formats.from_pinocchio)
    from_mujoco = classmethod(formats.from_mujoco)
    to_pinocchio = formats.to_pinocchio
    to_mujoco = formats.to_mujoco
    from_dh = classmethod(formats.from_dh)
    from_regressor = classmethod(formats.from_regressor)

    @cached_property
    def own_regressor(self) -> bool:
        """True for a robot of `from_regressor`, whose columns have no expressions."""
        return (
            bool(self.own_columns)
            and all(own.kind == "opaque" for own in self.own_columns)
            and len(self.parameters) == len(self.own_columns)
        )


def on_same_tree(
    mechanism: Mechanism, joints: tuple[Joint, ...], actuators: tuple[Actuator, ...], terms: tuple[str, ...], source: str
) -> Mechanism:
    """Return a robot with other joint terms and other gears, without checking its tree and loops again."""
    own = {f.name: getattr(mechanism, f.name) for f in fields(mechanism)}
    if mechanism.loops:
        own["closure"] = mechanism.closure
    other = object.__new__(Mechanism)
    vars(other).update(own, tree=mechanism.tree, joints=joints, actuators=actuators, terms=check_terms(terms), source=source)
    return other


def passive_terms(mechanism: Mechanism) -> dict[str, tuple[str, ...]]:
    """Return empty terms for joints without a motor, values and terms, in a robot with loops and named motors."""
    driven = {name for actuator in mechanism.actuators for name in actuator.coupling}
    if not mechanism.loops or not driven:
        return {}
    passive = [joint for joint in mechanism.joints if joint.kind != "fixed" and not driven.intersection(joint.coordinates)]
    return {joint.name: () for joint in passive if joint.name not in mechanism.joint_terms and not joint.terms}


def check_structure(mechanism: Mechanism) -> None:
    """Raise an error that describes the first inconsistency of a mechanism, if there is one."""
    _check_names(mechanism)
    _check_tree(mechanism)
    _check_loops_and_home(mechanism)
    _check_couplings(mechanism)
    _check_forces(mechanism)


def _check_forces(mechanism: Mechanism) -> None:
    """Check that terms, laws and forces belong to existing joints, and that names are unique."""
    joints = {joint.name: joint for joint in mechanism.joints}
    for name in mechanism.joint_terms:
        if name not in joints:
            raise DescriptionError(
                f"robot '{mechanism.name}': terms are given for '{name}', which is not a joint; joints are {', '.join(joints)}"
            )
    coordinates = mechanism.tree.coordinates
    curved = {c for joint in mechanism.joints if joint.kind in ("spherical", "free") for c in joint.coordinates}
    for name in mechanism.friction:
        if name not in coordinates:
            raise DescriptionError(
                f"robot '{mechanism.name}': friction is given for '{name}', which is not a moving joint; joints are "
                f"{', '.join(coordinates)}"
            )
    seen: set[str] = set()
    for force in mechanism.forces:
        for name in force.names:
            if name in seen:
                raise DescriptionError(f"robot '{mechanism.name}': force '{name}' is named twice; give each its own name")
            seen.add(name)
        if isinstance(force, Force):
            for name in force.coordinates:
                if name not in coordinates:
                    raise DescriptionError(
                        f"force '{force.name}' names '{name}', which is not a moving joint of '{mechanism.name}'; joints are "
                        f"{', '.join(coordinates)}"
                    )
            bent = curved.intersection(force.coordinates) if force.energy else ()
            if bent:
                raise DescriptionError(
                    f"force '{force.name}': an energy of '{min(bent)}' is not supported because its velocities are not "
                    "position rates; give the force on each coordinate"
                )
        elif mechanism.loops or mechanism.couplings:
            raise DescriptionError(
                f"columns {', '.join(force.names[:3])} ... are given by numbers: the robot must have no loops and no couplings"
            )


def _check_names(mechanism: Mechanism) -> None:
    for label in ("bodies", "joints", "loops", "actuators"):
        seen: set[str] = set()
        for item in getattr(mechanism, label):
            if not item.name or item.name in seen:
                word = {"bodies": "body"}.get(label, label[:-1])
                problem = f"{word} name '{item.name}' is used twice" if item.name else f"a {word} has an empty name"
                raise DescriptionError(f"robot '{mechanism.name}': {problem}; give every {word} its own name")
            seen.add(item.name)


def _check_tree(mechanism: Mechanism) -> None:
    known = {body.name for body in mechanism.bodies}
    if not known:
        raise DescriptionError(f"robot '{mechanism.name}' has no body; describe at least a base and one link")
    children = _check_parents(mechanism, known)
    roots = [body.name for body in mechanism.bodies if body.name not in children]
    if not roots:
        raise DescriptionError(
            f"robot '{mechanism.name}': the joints form a cycle with no base; cut one joint and declare it as a loop"
        )
    if len(roots) > 1:
        raise DescriptionError(
            f"robot '{mechanism.name}' has {len(roots)} bases: {', '.join(roots[:6])}; connect them by joints"
        )
    lost = sorted(known - _below(mechanism, roots[0]))
    if lost:
        raise DescriptionError(
            f"robot '{mechanism.name}': bodies {', '.join(lost[:6])} are not connected to the base '{roots[0]}' "
            "(a cycle of joints); cut one joint and declare it as a loop"
        )


def _check_parents(mechanism: Mechanism, known: set[str]) -> set[str]:
    """Return the bodies that are children, each of only one joint."""
    parent_of: dict[str, Joint] = {}
    for joint in mechanism.joints:
        for role in ("parent", "child"):
            if getattr(joint, role) not in known:
                raise DescriptionError(f"joint '{joint.name}': {role} body '{getattr(joint, role)}' does not exist")
        if joint.child in parent_of:
            other = parent_of[joint.child].name
            raise DescriptionError(
                f"body '{joint.child}' is the child of two joints, '{other}' and '{joint.name}'; "
                "cut one of them and declare it as a loop"
            )
        parent_of[joint.child] = joint
    return set(parent_of)


def _below(mechanism: Mechanism, root: str) -> set[str]:
    """Return a body and all its descendants."""
    children: dict[str, list[str]] = {}
    for joint in mechanism.joints:
        children.setdefault(joint.parent, []).append(joint.child)
    reached, waiting = {root}, [root]
    while waiting:
        below = children.get(waiting.pop(), [])
        reached.update(below)
        waiting.extend(below)
    return reached


def _check_loops_and_home(mechanism: Mechanism) -> None:
    known = {body.name for body in mechanism.bodies}
    for loop in mechanism.loops:
        for body in (loop.body_a, loop.body_b):
            if body not in known:
                raise DescriptionError(f"loop '{loop.name}': body '{body}' does not exist")
        if loop.body_a == loop.body_b:
            raise DescriptionError(f"loop '{loop.name}' joins body '{loop.body_a}' to itself; name two bodies")
    labels = {joint.name for joint in mechanism.joints}
    for name in mechanism.home:
        # A locked joint keeps its name but has no coordinate.
        if name not in labels and not any(name in joint.coordinates for joint in mechanism.joints):
            raise DescriptionError(
                f"robot '{mechanism.name}': home names '{name}', which is not a joint; joints are {', '.join(sorted(labels))}"
            )


def _check_couplings(mechanism: Mechanism) -> None:
    coordinates = set(mechanism.tree.coordinates)
    if len(coordinates) != len(mechanism.tree.coordinates):
        twice = next(c for c in mechanism.tree.coordinates if mechanism.tree.coordinates.count(c) > 1)
        raise DescriptionError(f"robot '{mechanism.name}': two joints have the coordinate '{twice}'; rename one of them")
    followers: set[str] = set()
    for coupling in mechanism.couplings:
        for name in (coupling.joint, *coupling.of):
            if name not in coordinates:
                raise DescriptionError(
                    f"coupling of joint '{coupling.joint}' names '{name}', which is not a moving joint of '{mechanism.name}'"
                )
        if coupling.joint in followers:
            raise DescriptionError(f"joint '{coupling.joint}' follows two couplings; keep one")
        followers.add(coupling.joint)
    for coupling in mechanism.couplings:
        if coupling.function is not None and (mechanism.loops or followers.intersection(coupling.of)):
            raise DescriptionError(
                f"coupling of joint '{coupling.joint}' has a function, so it must follow independent joints of a robot without "
                "loops"
            )
        if coupling.function is None and any(c.function is not None and c.joint in coupling.of for c in mechanism.couplings):
            raise DescriptionError(
                f"joint '{coupling.joint}' follows a joint that has a coupling function; combine them in one"
            )
    _ = mechanism.coupling_map  # raises for cyclic couplings
