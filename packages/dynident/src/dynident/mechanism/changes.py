"""Changed copies of a mechanism: other terms or parameters, a payload, joints held still.

These functions are the methods of `Mechanism` of the same names; a mechanism itself never changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from dynident.arrays import Array
from dynident.errors import DescriptionError, require
from dynident.friction.terms import TERMS, check_terms
from dynident.mechanism import parameters as inertial
from dynident.mechanism.elements import Body, Joint, frozen
from dynident.mechanism.force import Columns, Force
from dynident.mechanism.parameters import Parameters
from dynident.mechanism.tree import joint_transform
from dynident.mechanism.xml import unique_name

if TYPE_CHECKING:
    from dynident.friction.law import Friction, FrictionLaw
    from dynident.mechanism.mechanism import Mechanism


SHARES = tuple(0.5**k for k in range(1, 21))  # shares of their inertia that fixed links may keep; the largest feasible is used


def altered(self: Mechanism, **fields: Any) -> Mechanism:
    """Return a copy with other parameters, terms, laws or forces; the closure of the loops is kept, not recomputed."""
    new = replace(self, **fields)
    if "closure" in vars(self):
        vars(new)["closure"] = self.closure
    return new


def with_terms(self: Mechanism, terms: str | Iterable[str] | Mapping[str, str | Iterable[str]]) -> Mechanism:
    """Return a copy with other joint terms (rotor inertia, friction, offset, spring)."""
    if isinstance(terms, Mapping):
        for name in terms:
            self.joint(name)
        own = {**self.joint_terms, **{name: check_terms(chosen) for name, chosen in terms.items()}}
        shared, changed = self.terms, set(terms)
    else:
        shared, own, changed = check_terms(terms), {}, {joint.name for joint in self.joints}
    joints = []
    for joint in self.joints:
        chosen = own.get(joint.name, shared)
        kept = {k: v for k, v in joint.terms.items() if k.split(".")[0] in chosen}
        joints.append(replace(joint, terms=kept) if joint.name in changed else joint)
    return altered(self, terms=shared, joint_terms=own, joints=tuple(joints))


def with_friction(self: Mechanism, laws: Mapping[str, str | FrictionLaw | Friction | None]) -> Mechanism:
    """Return a copy with other friction laws on joints, in place of the friction among their terms."""
    from dynident.friction.law import Friction  # noqa: PLC0415 - most robots have linear terms alone
    from dynident.friction.text import law_of  # noqa: PLC0415 - most robots have linear terms alone

    motors = {actuator.name: list(actuator.coupling) for actuator in self.actuators}
    found = dict(self.friction)
    for name, given in laws.items():
        own = [name] if name in self.tree.coordinates else motors.get(name, [])
        if len(own) != 1:
            raise DescriptionError(
                f"friction is given for '{name}', which is neither a joint nor the motor of one joint of '{self.name}'; joints "
                f"are {', '.join(self.tree.coordinates)}"
            )
        if given is None:
            found.pop(own[0], None)
            continue
        if isinstance(given, Friction):
            found[own[0]] = given
            continue
        law = law_of(given)
        low, high = law.shape_range(1.0).T
        middle = np.where(low > 0.0, np.sqrt(np.abs(low * high)), 0.5 * (low + high))
        found[own[0]] = Friction(law, np.concatenate([np.zeros(len(law.linear)), middle]))
    ordered = {name: found[name] for name in self.tree.coordinates if name in found}
    return altered(self, friction=ordered)


def with_gravity(self: Mechanism, gravity: ArrayLike) -> Mechanism:
    """Return a copy with another gravity: a robot on a wall, a ceiling or a slope."""
    return altered(self, gravity=gravity)


def without_friction(self: Mechanism) -> Mechanism:
    """Return a copy without friction laws, and without friction terms of the joints with a friction law.

    The copy keeps bodies, rotors, offsets, springs, and the friction terms of the other joints.
    """
    rid = {self._coordinate_joint[name].name for name in self.friction}
    kept = {}
    for name in rid:
        joint = self.joint(name)
        named = dict.fromkeys((*self.joint_terms.get(name, self.terms), *(key.split(".")[0] for key in joint.terms)))
        kept[name] = [symbol for symbol in named if not TERMS[symbol].friction]
    return altered(self, friction={}).with_terms(kept)


def with_forces(self: Mechanism, *forces: Force | Columns) -> Mechanism:
    """Return a copy with more force elements: springs, counterbalances, cables, known torques."""
    for force in forces:
        if not isinstance(force, Force | Columns):
            raise DescriptionError(f"a force is {force!r}; give dynident.Force(name, joint, expression)")
    new = {name for force in forces for name in force.names}
    kept = [force for force in self.forces if not new.intersection(force.names)]
    return altered(self, forces=(*kept, *forces))


def with_parameters(self: Mechanism, parameters: Parameters) -> Mechanism:
    """Return a copy with the prior values `parameters`.

    Links fixed to a moving link keep their own inertia and the moving link takes the rest of its group's, if that rest is
    physically consistent; otherwise the fixed links keep a share of theirs.
    """
    require(parameters, Parameters, "parameters")
    if parameters.names != self.parameters.names:
        raise DescriptionError(
            f"these parameters do not belong to robot '{self.name}': their names differ from mechanism.parameters"
        )
    difference = (parameters.values - self.parameters.values)[: self.tree.inertias.size].reshape(-1, 10)
    new = _divided(self, dict(zip(self.tree.bodies, difference, strict=True)))
    bodies = [replace(body, inertia=new[body.name]) if body.name in new else body for body in self.bodies]
    terms: dict[str, dict[str, float]] = {joint.name: dict(joint.terms) for joint in self.joints}
    for coordinate in self.friction:  # a law replaces these terms, also in files that have the terms only
        joint = self._coordinate_joint[coordinate]
        terms[joint.name] |= {key: 0.0 for key in joint.terms if TERMS[key.split(".")[0]].friction}
    for coordinate, symbol in self.joint_columns:
        joint = self._coordinate_joint[coordinate]
        terms[joint.name][symbol + coordinate.removeprefix(joint.name)] = parameters[f"{symbol}_{coordinate}"]
    joints = tuple(replace(joint, terms=terms[joint.name]) for joint in self.joints)
    motors: dict[str, dict[str, float]] = {actuator.name: {} for actuator in self.actuators}
    for name, symbol in self.actuator_columns:
        motors[name][symbol] = parameters[self._motor_parameter(name, symbol)]
    actuators = tuple(replace(actuator, terms=motors[actuator.name]) for actuator in self.actuators)
    friction = {
        coordinate: replace(law, values=np.array([parameters[f"{name}_{coordinate}"] for name in law.law.parameters]))
        for coordinate, law in self.friction.items()
    }
    forces = tuple(
        replace(force, values=tuple(parameters[name] for name in force.names))
        if isinstance(force, Columns)
        else replace(force, value=parameters[force.name])
        for force in self.forces
    )
    return altered(
        self,
        bodies=tuple(bodies),
        joints=joints,
        actuators=actuators,
        friction=friction,
        forces=forces,
        source=parameters.provenance or self.source,
    )


def _divided(self: Mechanism, change: Mapping[str, Array]) -> dict[str, Array]:
    """Return the inertia of the bodies after a change of their rigid groups as a whole.

    Torques determine the group only, so its division is free; but tools that read a description refuse inconsistent bodies.
    """
    tree, own = self.tree, {body.name: body.inertia for body in self.bodies if body.inertia is not None}
    nodes = [tree.frames[name][0] for name in tree.bodies]
    new: dict[str, Array] = {}
    for name, difference in change.items():
        node, place = tree.frames[name]
        new[name] = own.get(name, np.zeros(10)) + difference
        fixed = [other for other in own if other not in change and tree.frames[other][0] == node]
        if not fixed or not difference.any() or nodes.count(node) > 1 or inertial.check_consistency(new[name]).ok:
            continue
        poses = [place.inverse() @ tree.frames[other][1] for other in fixed]
        carried = sum(
            (inertial.transform(own[f], pose.rotation, pose.translation) for f, pose in zip(fixed, poses, strict=True)),
            np.zeros(10),
        )
        for share in SHARES:
            rest = new[name] + (1.0 - share) * carried
            if inertial.check_consistency(rest).ok:
                new |= {name: rest, **{other: share * own[other] for other in fixed}}
                break
    return new


def with_payload(
    self: Mechanism,
    mass: float,
    com: ArrayLike = (0.0, 0.0, 0.0),
    inertia: ArrayLike | None = None,
    body: str | None = None,
    name: str = "payload",
    separate: bool = False,
) -> Mechanism:
    """Return a copy with a payload added to a link."""
    if isinstance(mass, bool) or not isinstance(mass, int | float | np.number) or not 0.0 < mass < np.inf:
        raise DescriptionError(f"payload mass is {mass!r}; give a positive number of kilograms")
    if body is None:
        ends = _ends(self)
        if len(ends) != 1:
            raise DescriptionError(
                f"robot '{self.name}' has {len(ends)} ends ({', '.join(ends)}); name the body that carries the payload"
            )
        body = ends[0]
    phi = inertial.from_com(
        mass,
        frozen(com, (3,), "payload com"),
        frozen(np.zeros((3, 3)) if inertia is None else inertia, (3, 3), "payload inertia"),
    )
    mount = Joint(f"{name}_mount", "fixed", body, name)
    return replace(self, bodies=(*self.bodies, Body(name, phi, separate)), joints=(*self.joints, mount))


def without(self: Mechanism, body: str) -> Mechanism:
    """Return a copy without a leaf body, such as a payload."""
    if body not in {b.name for b in self.bodies} or any(j.parent == body for j in self.joints):
        raise DescriptionError(
            f"body '{body}' cannot be removed from robot '{self.name}': it does not exist or carries other bodies"
        )
    return replace(
        self,
        bodies=tuple(b for b in self.bodies if b.name != body),
        joints=tuple(j for j in self.joints if j.child != body),
    )


def _ends(self: Mechanism) -> list[str]:
    """Return the moving links that carry no moving joint."""
    nodes = {node for node, _ in self.tree.frames.values() if node >= 0}
    inner = set(self.tree.arrays.parent.tolist())
    leaves = nodes - inner
    # The body that names the group: not the joint's child if the child is a massless frame.
    named = {self.tree.frames[body][0]: body for body in self.tree.bodies}
    children = {self.tree.frames[j.child][0]: j.child for j in self.joints if j.kind != "fixed"}
    return [named.get(node, children[node]) for node in sorted(leaves)]


def lock(self: Mechanism, positions: Mapping[str, ArrayLike]) -> Mechanism:
    """Return a copy where joints are held fixed."""
    held: dict[str, float] = {}  # by coordinate
    for name, position in positions.items():
        joint = self.joint(name)
        where = frozen(np.atleast_1d(position), (len(joint.coordinates),), f"position of joint '{name}'")
        held |= zip(joint.coordinates, where.tolist(), strict=True)
    # A joint stands still when all joints that it follows do; a joint that is held itself no longer follows.
    couplings = [coupling for coupling in self.couplings if coupling.joint not in held]
    while still := [c for c in couplings if c.joint not in held and all(name in held for name in c.of)]:
        for c in still:
            held[c.joint] = c.value_at(held)
    joints = []
    for joint in self.joints:
        at_rest = [name in held for name in joint.coordinates]
        if any(at_rest) and not all(at_rest):
            raise DescriptionError(f"joint '{joint.name}' would be held in some of its coordinates only; lock it too")
        if any(at_rest):
            placement = joint.placement @ joint_transform(joint, [held[name] for name in joint.coordinates])
            joints.append(Joint(joint.name, "fixed", joint.parent, joint.child, placement))
        else:
            joints.append(joint)

    def split(ratios: Mapping[str, float]) -> tuple[dict[str, float], float]:
        """Return the ratios of joints that still move, and the constant contribution of the others."""
        free = {name: ratio for name, ratio in ratios.items() if name not in held}
        return free, sum(ratio * held[name] for name, ratio in ratios.items() if name in held)

    kept = [coupling.holding(held) for coupling in couplings if coupling.joint not in held]
    actuators = []
    for actuator in self.actuators:
        free, shift = split(actuator.coupling)
        if free:
            actuators.append(replace(actuator, coupling=free, offset=actuator.offset + actuator.ratio * shift))
    forces: list[Force | Columns] = []
    for force in self.forces:
        if isinstance(force, Columns):
            if held:
                raise DescriptionError(
                    f"columns {', '.join(force.names[:3])} ... belong to all joints, so no joint can be locked"
                )
            forces.append(force)
            continue
        own = {name: held[name] for name in force.coordinates if name in held}
        if any(name not in held for name in (force.coordinates if force.energy else force.texts)):
            forces.append(replace(force, held={**force.held, **own}))
    return replace(
        self,
        joints=tuple(joints),
        couplings=tuple(kept),
        actuators=tuple(actuators),
        joint_terms={name: terms for name, terms in self.joint_terms.items() if name not in positions},
        friction={name: law for name, law in self.friction.items() if name not in held},
        forces=tuple(forces),
    )


def keep(self: Mechanism, joints: Sequence[str]) -> Mechanism:
    """Return a copy where only the named joints move; all others are held at zero."""
    for name in joints:
        self.joint(name)
    following: set[str] = set()
    while new := {c.joint for c in self.couplings if following.union(joints).intersection(c.of)} - following:
        following |= new
    moving = [
        joint for joint in self.joints if joint.kind != "fixed" and joint.name not in joints and joint.name not in following
    ]
    return self.lock({joint.name: np.zeros(len(joint.coordinates)) if len(joint.coordinates) > 1 else 0.0 for joint in moving})


def with_free_base(self: Mechanism) -> Mechanism:
    """Return a copy with a free base: a world body and a `free` joint precede its root."""
    root = self.root
    if any(joint.kind == "free" and joint.parent == root for joint in self.joints):
        raise DescriptionError(f"robot '{self.name}' has a free base already; leave out floating")
    if self.loops:
        raise DescriptionError(f"robot '{self.name}' has loops; a free base is for trees")
    bodies, joints = {body.name for body in self.bodies}, {joint.name for joint in self.joints}
    world = unique_name("world", bodies.__contains__)
    free = Joint(unique_name("floating_base", joints.__contains__), "free", world, root)
    moved = tuple(replace(b, inertia=np.zeros(10)) if b.name == root and b.inertia is None else b for b in self.bodies)
    return replace(self, bodies=(Body(world), *moved), joints=(free, *self.joints))
