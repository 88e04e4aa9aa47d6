"""`Mechanism`: a spanning tree of bodies and joints, plus loops, couplings and actuators. Frozen, named everywhere."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynident.errors import DescriptionError
from dynident.friction import SYMMETRIC, TERMS, check_terms
from dynident.mechanism import inertia as inertial
from dynident.mechanism.elements import Actuator, Body, Coupling, Joint, Loop, Placement, frozen
from dynident.mechanism.parameters import Parameters
from dynident.mechanism.tree import Tree, build_tree

Array = NDArray[np.float64]

STANDARD_GRAVITY = (0.0, 0.0, -9.81)


@dataclass(frozen=True, eq=False)
class Mechanism:
    """What a robot is: bodies and joints in a spanning tree, cut joints that close loops, couplings, actuators.

    A serial arm is the case without loops. Coordinates are the tree's, less those of coupled joints.

    Parameters
    ----------
    name : str
        Name of the robot.
    bodies : tuple of Body
        All links; exactly one is the root (the base, or the world under a floating base).
    joints : tuple of Joint
        Joints of the spanning tree: every body but the root is the child of exactly one.
    loops : tuple of Loop
        Cut joints.
    couplings : tuple of Coupling
        Joints that follow others.
    actuators : tuple of Actuator
        Motors; one direct drive per independent single-axis joint when empty.
    terms : tuple of str
        Joint terms that every joint has as parameters (see `dynident.friction.TERMS`); a joint also has those it has a
        prior value for. A motor that turns with several joints has them too, but for the offset.
    gravity : array_like, (3,)
        Gravity in the root frame [m/s^2].
    source : str
        Where the description comes from.
    """

    name: str
    bodies: tuple[Body, ...]
    joints: tuple[Joint, ...]
    loops: tuple[Loop, ...] = ()
    couplings: tuple[Coupling, ...] = ()
    actuators: tuple[Actuator, ...] = ()
    terms: tuple[str, ...] = SYMMETRIC
    gravity: Array = field(default_factory=lambda: np.array(STANDARD_GRAVITY))
    source: str = ""

    def __post_init__(self) -> None:
        for label in ("bodies", "joints", "loops", "couplings", "actuators"):
            object.__setattr__(self, label, tuple(getattr(self, label)))
        object.__setattr__(self, "terms", check_terms(self.terms))
        object.__setattr__(self, "gravity", frozen(self.gravity, (3,), "gravity"))
        self._check_names()
        self._check_tree()
        self._check_couplings()
        if not self.actuators:
            # With loops the actuated joints must be named: which joints are passive cannot be guessed.
            plain = [c for c in self.coordinate_names if c in self._joint] if not self.loops else []
            object.__setattr__(self, "actuators", tuple(Actuator(c, {c: 1.0}) for c in plain))
        for actuator in self.actuators:
            for coordinate in actuator.coupling:
                if coordinate not in self.coordinate_names:
                    raise DescriptionError(
                        f"actuator '{actuator.name}' drives '{coordinate}', which is not an independent joint of "
                        f"'{self.name}'; joints are {', '.join(self.coordinate_names)}"
                    )

    def _check_names(self) -> None:
        for label in ("bodies", "joints", "loops", "actuators"):
            seen: set[str] = set()
            for item in getattr(self, label):
                if not item.name or item.name in seen:
                    word = {"bodies": "body"}.get(label, label[:-1])
                    problem = f"{word} name '{item.name}' is used twice" if item.name else f"a {word} has an empty name"
                    raise DescriptionError(f"robot '{self.name}': {problem}; give every {word} its own name")
                seen.add(item.name)

    def _check_tree(self) -> None:
        known = {body.name for body in self.bodies}
        if not known:
            raise DescriptionError(f"robot '{self.name}' has no body; describe at least a base and one link")
        parent_of: dict[str, Joint] = {}
        for joint in self.joints:
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
        roots = [body.name for body in self.bodies if body.name not in parent_of]
        if not roots:
            raise DescriptionError(
                f"robot '{self.name}': the joints form a cycle with no base; cut one joint and declare it as a loop"
            )
        if len(roots) > 1:
            raise DescriptionError(
                f"robot '{self.name}' has {len(roots)} bases: {', '.join(roots[:6])}; connect them by joints"
            )
        reached = {roots[0]}
        children: dict[str, list[str]] = {}
        for joint in self.joints:
            children.setdefault(joint.parent, []).append(joint.child)
        waiting = [roots[0]]
        while waiting:
            below = children.get(waiting.pop(), [])
            reached.update(below)
            waiting.extend(below)
        if reached != known:
            lost = sorted(known - reached)
            raise DescriptionError(
                f"robot '{self.name}': bodies {', '.join(lost[:6])} are not connected to the base '{roots[0]}' "
                "(a cycle of joints); cut one joint and declare it as a loop"
            )
        for loop in self.loops:
            for body in (loop.body_a, loop.body_b):
                if body not in known:
                    raise DescriptionError(f"loop '{loop.name}': body '{body}' does not exist")

    def _check_couplings(self) -> None:
        coordinates = set(self.tree.coordinates)
        if len(coordinates) != len(self.tree.coordinates):
            twice = next(c for c in self.tree.coordinates if self.tree.coordinates.count(c) > 1)
            raise DescriptionError(f"robot '{self.name}': two joints have the coordinate '{twice}'; rename one of them")
        followers: set[str] = set()
        for coupling in self.couplings:
            for name in (coupling.joint, *coupling.of):
                if name not in coordinates:
                    raise DescriptionError(
                        f"coupling of joint '{coupling.joint}' names '{name}', which is not a moving joint of '{self.name}'"
                    )
            if coupling.joint in followers:
                raise DescriptionError(f"joint '{coupling.joint}' follows two couplings; keep one")
            followers.add(coupling.joint)
        _ = self.coupling_map  # raises where couplings follow each other in a circle

    # ---- what is in it ----------------------------------------------------------------------------------------------

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
        tree = self.tree.coordinates
        following = {c.joint: c for c in self.couplings}
        free = [name for name in tree if name not in following]
        index = {name: i for i, name in enumerate(free)}
        rows: dict[str, tuple[Array, float]] = {name: (np.eye(len(free))[index[name]], 0.0) for name in free}
        waiting = dict(following)
        while waiting:
            ready = [name for name, coupling in waiting.items() if all(other in rows for other in coupling.of)]
            if not ready:
                raise DescriptionError(f"couplings of {', '.join(waiting)} follow each other in a circle; break it")
            for name in ready:
                coupling = waiting.pop(name)
                row, offset = np.zeros(len(free)), coupling.offset
                for other, ratio in coupling.of.items():
                    row, offset = row + ratio * rows[other][0], offset + ratio * rows[other][1]
                rows[name] = (row, offset)
        matrix = np.array([rows[name][0] for name in tree]).reshape(len(tree), len(free))
        return matrix, np.array([rows[name][1] for name in tree])

    @cached_property
    def coordinate_names(self) -> tuple[str, ...]:
        """Names of the independent tree coordinates: columns of q, v and a."""
        following = {c.joint for c in self.couplings}
        return tuple(name for name in self.tree.coordinates if name not in following)

    @cached_property
    def joint_names(self) -> tuple[str, ...]:
        """Names of the moving joints that do not follow others, in the order of their coordinates."""
        return tuple(dict.fromkeys(self._coordinate_joint[name].name for name in self.coordinate_names))

    @cached_property
    def _joint(self) -> dict[str, Joint]:
        return {joint.name: joint for joint in self.joints}

    @property
    def dof(self) -> int:
        """Number of independent coordinates of the spanning tree (the loops, if any, reduce it further)."""
        return len(self.coordinate_names)

    def joint(self, name: str) -> Joint:
        """Return a joint by name.

        Parameters
        ----------
        name : str
            Joint name.

        Returns
        -------
        Joint
            The joint.
        """
        try:
            return self._joint[name]
        except KeyError:
            raise DescriptionError(
                f"robot '{self.name}' has no joint '{name}'; joints are {', '.join(self._joint)}"
            ) from None

    @cached_property
    def _coordinate_joint(self) -> dict[str, Joint]:
        return {coordinate: joint for joint in self.joints for coordinate in joint.coordinates}

    @cached_property
    def joint_columns(self) -> tuple[tuple[str, str], ...]:
        """(coordinate, term) of every joint-term parameter, in order; a free joint has none."""
        columns = []
        for coordinate in self.tree.coordinates:
            joint = self._coordinate_joint[coordinate]
            base = () if joint.kind == "free" else self.terms
            columns += [
                (coordinate, term) for term in dict.fromkeys((*base, *(key.split(".")[0] for key in joint.terms)))
            ]
        return tuple(columns)

    @cached_property
    def actuator_columns(self) -> tuple[tuple[str, str], ...]:
        """(actuator, term) of the motors that turn with several joints; the others' terms are their joint's."""
        shared = [actuator.name for actuator in self.actuators if len(actuator.coupling) > 1]
        # A constant torque of such a motor is already a combination of its joints' offsets.
        return tuple((name, term) for name in shared for term in self.terms if term not in ("off", "k"))

    @cached_property
    def actuator_matrix(self) -> tuple[Array, Array]:
        """N (actuators x coordinates) and n0 with q_motor = N q + n0 and tau_joint = N^T tau_motor."""
        index = {name: i for i, name in enumerate(self.coordinate_names)}
        matrix = np.zeros((len(self.actuators), self.dof))
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
        return Parameters(tuple(names), np.array(values), tuple(units), tuple(owners), self.source or self.name)

    def _motor_parameter(self, actuator: str, symbol: str) -> str:
        # Motors and joints may share a name; their parameters may not.
        return f"{symbol}_{actuator}" if actuator not in self.tree.coordinates else f"{symbol}_{actuator}_motor"

    def check_consistency(self, parameters: Parameters | None = None) -> tuple[inertial.Consistency, ...]:
        """Check every rigid group for physical possibility.

        Parameters
        ----------
        parameters : Parameters, optional
            Standard parameters to check; the prior ones when omitted.

        Returns
        -------
        tuple of Consistency
            One verdict per rigid group, with numbers and a sentence.
        """
        values = (parameters or self.parameters).values
        return tuple(
            inertial.check_consistency(values[10 * i : 10 * i + 10], body) for i, body in enumerate(self.tree.bodies)
        )

    # ---- changed copies ---------------------------------------------------------------------------------------------

    def with_terms(self, terms: Iterable[str]) -> Mechanism:
        """Return a copy whose joints have other terms (rotor inertia, friction, offset, spring).

        Parameters
        ----------
        terms : iterable of str
            Keys of `dynident.friction.TERMS`; empty for rigid bodies alone. Prior values of other terms are dropped.

        Returns
        -------
        Mechanism
            The changed copy.
        """
        chosen = check_terms(terms)
        joints = [
            replace(joint, terms={k: v for k, v in joint.terms.items() if k.split(".")[0] in chosen})
            for joint in self.joints
        ]
        return replace(self, terms=chosen, joints=tuple(joints))

    def with_parameters(self, parameters: Parameters) -> Mechanism:
        """Return a copy whose prior values are `parameters`.

        Links fixed to a moving link keep their own inertia; the moving link takes the rest of its group's.

        Parameters
        ----------
        parameters : Parameters
            Standard parameters with the names of `self.parameters`.

        Returns
        -------
        Mechanism
            The changed copy.
        """
        if parameters.names != self.parameters.names:
            raise DescriptionError(
                f"these parameters do not belong to robot '{self.name}': their names differ from mechanism.parameters"
            )
        change = dict(
            zip(
                self.tree.bodies,
                (parameters.values - self.parameters.values)[: self.tree.inertias.size].reshape(-1, 10),
                strict=True,
            )
        )
        bodies = [
            replace(b, inertia=(b.inertia if b.inertia is not None else 0.0) + change[b.name])
            if b.name in change
            else b
            for b in self.bodies
        ]
        terms: dict[str, dict[str, float]] = {joint.name: dict(joint.terms) for joint in self.joints}
        for coordinate, symbol in self.joint_columns:
            joint = self._coordinate_joint[coordinate]
            terms[joint.name][symbol + coordinate.removeprefix(joint.name)] = parameters[f"{symbol}_{coordinate}"]
        joints = tuple(replace(joint, terms=terms[joint.name]) for joint in self.joints)
        motors: dict[str, dict[str, float]] = {actuator.name: {} for actuator in self.actuators}
        for name, symbol in self.actuator_columns:
            motors[name][symbol] = parameters[self._motor_parameter(name, symbol)]
        actuators = tuple(replace(actuator, terms=motors[actuator.name]) for actuator in self.actuators)
        return replace(
            self, bodies=tuple(bodies), joints=joints, actuators=actuators, source=parameters.provenance or self.source
        )

    def with_payload(
        self,
        mass: float,
        com: ArrayLike = (0.0, 0.0, 0.0),
        inertia: ArrayLike | None = None,
        body: str | None = None,
        name: str = "payload",
    ) -> Mechanism:
        """Return a copy that carries a payload, added (never substituted) to a link.

        Parameters
        ----------
        mass : float
            Payload mass [kg].
        com : array_like, (3,)
            Its centre of mass in the link frame [m].
        inertia : array_like (3, 3), optional
            Its inertia about its centre of mass, axes of the link frame [kg m^2]; a point mass when omitted.
        body : str, optional
            Link that carries it; the last moving link when there is only one end.
        name : str
            Name of the payload body, to remove it again by `without`.

        Returns
        -------
        Mechanism
            The changed copy.
        """
        if not (np.isfinite(mass) and mass > 0.0):
            raise DescriptionError(f"payload mass is {mass}; give a positive number of kilograms")
        if body is None:
            ends = self._ends()
            if len(ends) != 1:
                raise DescriptionError(
                    f"robot '{self.name}' has {len(ends)} ends ({', '.join(ends)}); say which body carries the payload"
                )
            body = ends[0]
        phi = inertial.from_com(
            mass,
            frozen(com, (3,), "payload com"),
            frozen(np.zeros((3, 3)) if inertia is None else inertia, (3, 3), "payload inertia"),
        )
        mount = Joint(f"{name}_mount", "fixed", body, name)
        return replace(self, bodies=(*self.bodies, Body(name, phi)), joints=(*self.joints, mount))

    def without(self, body: str) -> Mechanism:
        """Return a copy without a leaf body, such as a payload.

        Parameters
        ----------
        body : str
            Body to remove; nothing may hang on it.

        Returns
        -------
        Mechanism
            The changed copy.
        """
        if body not in {b.name for b in self.bodies} or any(j.parent == body for j in self.joints):
            raise DescriptionError(
                f"body '{body}' cannot be removed from robot '{self.name}': it does not exist or other bodies hang on it"
            )
        return replace(
            self,
            bodies=tuple(b for b in self.bodies if b.name != body),
            joints=tuple(j for j in self.joints if j.child != body),
        )

    def _ends(self) -> list[str]:
        """Return the moving links with no moving joint below."""
        nodes = {node for node, _ in self.tree.frames.values() if node >= 0}
        inner = set(self.tree.arrays.parent.tolist())
        leaves = nodes - inner
        # The body that names the group, which is not the joint's child when that is a massless frame.
        named = {self.tree.frames[body][0]: body for body in self.tree.bodies}
        children = {self.tree.frames[j.child][0]: j.child for j in self.joints if j.kind != "fixed"}
        return [named.get(node, children[node]) for node in sorted(leaves)]

    def lock(self, positions: Mapping[str, ArrayLike]) -> Mechanism:
        """Return a copy where joints are held fixed.

        Parameters
        ----------
        positions : mapping of str to float
            Joint name to the position where it is held [rad or m].

        Returns
        -------
        Mechanism
            The changed copy, with fewer coordinates.
        """
        held: dict[str, float] = {}  # by coordinate
        for name, position in positions.items():
            joint = self.joint(name)
            where = frozen(np.atleast_1d(position), (len(joint.coordinates),), f"position of joint '{name}'")
            held |= zip(joint.coordinates, where.tolist(), strict=True)
        # A joint stands still when everything it follows does; one that is held itself no longer follows.
        couplings = [coupling for coupling in self.couplings if coupling.joint not in held]
        while still := [c for c in couplings if c.joint not in held and all(name in held for name in c.of)]:
            for c in still:
                held[c.joint] = c.offset + sum(ratio * held[name] for name, ratio in c.of.items())
        joints = []
        for joint in self.joints:
            at_rest = [name in held for name in joint.coordinates]
            if any(at_rest) and not all(at_rest):
                raise DescriptionError(f"joint '{joint.name}' would be held in some of its coordinates only; lock it too")
            if any(at_rest):
                placement = joint.placement @ joint.transform([held[name] for name in joint.coordinates])
                joints.append(Joint(joint.name, "fixed", joint.parent, joint.child, placement))
            else:
                joints.append(joint)

        def split(ratios: Mapping[str, float]) -> tuple[dict[str, float], float]:
            """Return the ratios of joints that still move, and what the others add."""
            free = {name: ratio for name, ratio in ratios.items() if name not in held}
            return free, sum(ratio * held[name] for name, ratio in ratios.items() if name in held)

        kept = []
        for coupling in couplings:
            if coupling.joint not in held:
                free, shift = split(coupling.of)
                kept.append(Coupling(coupling.joint, free, coupling.offset + shift))
        actuators = []
        for actuator in self.actuators:
            free, shift = split(actuator.coupling)
            if free:
                actuators.append(replace(actuator, coupling=free, offset=actuator.offset + actuator.ratio * shift))
        return replace(self, joints=tuple(joints), couplings=tuple(kept), actuators=tuple(actuators))

    def keep(self, joints: Sequence[str]) -> Mechanism:
        """Return a copy where only the named joints move; all others are held at zero.

        Parameters
        ----------
        joints : sequence of str
            Joints that stay free.

        Returns
        -------
        Mechanism
            The changed copy.
        """
        for name in joints:
            self.joint(name)
        following: set[str] = set()
        while new := {c.joint for c in self.couplings if following.union(joints).intersection(c.of)} - following:
            following |= new
        moving = [
            joint
            for joint in self.joints
            if joint.kind != "fixed" and joint.name not in joints and joint.name not in following
        ]
        return self.lock(
            {joint.name: np.zeros(len(joint.coordinates)) if len(joint.coordinates) > 1 else 0.0 for joint in moving}
        )

    def frame(self, name: str) -> tuple[int, Placement]:
        """Return where a link is carried in the tree.

        Parameters
        ----------
        name : str
            Link name, moving or fixed.

        Returns
        -------
        node : int
            Tree node that carries it, -1 for the base.
        placement : Placement
            Its pose in that node's frame.
        """
        try:
            return self.tree.frames[name]
        except KeyError:
            raise DescriptionError(
                f"robot '{self.name}' has no link '{name}'; links are {', '.join(self.tree.frames)}"
            ) from None

    # ---- readers and writers ----------------------------------------------------------------------------------------

    @classmethod
    def from_urdf(
        cls, path: str | os.PathLike[str], sidecar: str | os.PathLike[str] | None = None, floating: bool = False
    ) -> Mechanism:
        """Read a URDF file (or xacro, with the extra `xacro`).

        Parameters
        ----------
        path : path-like
            URDF file.
        sidecar : path-like, optional
            TOML file with what URDF cannot say: loops, couplings, actuators, joint terms.
        floating : bool
            True when the base moves freely (a `free` joint from the world to the root link).

        Returns
        -------
        Mechanism
            The robot.
        """
        from dynident.mechanism.urdf import read_urdf  # noqa: PLC0415 - readers import Mechanism

        return read_urdf(path, sidecar=sidecar, floating=floating)

    @classmethod
    def from_mjcf(cls, path: str | os.PathLike[str]) -> Mechanism:
        """Read a MuJoCo XML file: bodies, joints, defaults, inertias, actuators and equality constraints.

        Parameters
        ----------
        path : path-like
            MJCF file.

        Returns
        -------
        Mechanism
            The robot.
        """
        from dynident.mechanism.mjcf import read_mjcf  # noqa: PLC0415 - readers import Mechanism

        return read_mjcf(path)

    @classmethod
    def from_dh(
        cls,
        rows: Sequence[Any],
        convention: str = "standard",
        name: str = "robot",
        gravity: ArrayLike = STANDARD_GRAVITY,
    ) -> Mechanism:
        """Make a robot from a Denavit-Hartenberg table.

        Parameters
        ----------
        rows : sequence of mapping or of (a, alpha, d, theta)
            One row per joint, see `dynident.mechanism.dh.read_dh`.
        convention : {"standard", "modified"}
            Distal (Denavit-Hartenberg, Paul) or proximal (Craig, Khalil) frames.
        name : str
            Name of the robot.
        gravity : array_like, (3,)
            Gravity in the base frame [m/s^2].

        Returns
        -------
        Mechanism
            The robot.
        """
        from dynident.mechanism.dh import read_dh  # noqa: PLC0415 - readers import Mechanism

        return read_dh(rows, convention=convention, name=name, gravity=gravity)
