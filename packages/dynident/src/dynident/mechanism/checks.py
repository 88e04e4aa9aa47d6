"""What makes a mechanism well formed: unique names, one tree from one root, loops and couplings between things that exist."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dynident.errors import DescriptionError
from dynident.mechanism.elements import Joint
from dynident.mechanism.force import Force

if TYPE_CHECKING:
    from dynident.mechanism.mechanism import Mechanism


def check_structure(mechanism: Mechanism) -> None:
    """Raise the sentence that says what is wrong with a mechanism, if anything."""
    _check_names(mechanism)
    _check_tree(mechanism)
    _check_loops_and_home(mechanism)
    _check_couplings(mechanism)
    _check_forces(mechanism)


def _check_forces(mechanism: Mechanism) -> None:
    """Terms, laws and forces of joints that exist, each name once."""
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
                    f"force '{force.name}': an energy of '{min(bent)}' has no simple force, its velocities are not the rates "
                    "of its positions; give the force on each coordinate"
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
    """Return the bodies that are children, each of one joint only."""
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
    """Return a body and all that hang on it."""
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
        # A joint that was locked keeps its name but has no coordinate any more.
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
    _ = mechanism.coupling_map  # raises where couplings follow each other in a circle
