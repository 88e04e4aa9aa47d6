"""Which columns of a large tree may depend on which: those of a body on those of the next one towards the base."""

from __future__ import annotations

from dynident.mechanism import FIXED, Mechanism

Group = tuple[list[int], list[int]]  # columns of the neighbours, and own columns in the order in which they should lead


def is_plain_tree(mechanism: Mechanism) -> bool:
    """Say whether every coordinate moves one joint, and every motor drives one coordinate."""
    return not (mechanism.loops or mechanism.couplings or any(len(a.coupling) > 1 for a in mechanism.actuators))


def neighbourhoods(mechanism: Mechanism, ranking: list[int]) -> list[Group]:
    """Return the columns of every node of a tree with those of the nodes between it and the next body towards the base.

    What a body's torques cannot show passes through its joint unchanged, so that it adds to the next body only [Gautier1991].
    """
    tree, place = mechanism.tree, {c: i for i, c in enumerate(ranking)}
    node_of = [tree.frames[body][0] for body in tree.bodies]
    driven = {int(d): i for i, d in enumerate(tree.arrays.dof) if tree.arrays.kind[i] != FIXED}
    coordinate = {name: d for d, name in enumerate(tree.coordinates)}
    owners = [node_of[c // 10] for c in range(10 * len(node_of))]
    drives = {a.name: next(iter(a.coupling)) for a in mechanism.actuators}
    moved = [name for name, _ in mechanism.joint_columns] + [drives[name] for name, _ in mechanism.actuator_columns]
    for name in moved:
        owners.append(driven[max(d for d in driven if d <= coordinate[name])])
    own: dict[int, list[int]] = {}
    for c in sorted(range(len(owners)), key=place.__getitem__):
        own.setdefault(owners[c], []).append(c)
    groups = []
    for node in sorted(own):
        beside, above = list[int](), int(tree.arrays.parent[node])
        while above >= 0:
            beside += own.get(above, [])
            if above in node_of:
                break
            above = int(tree.arrays.parent[above])
        groups.append((beside, own[node]))
    more = [c for c in ranking if c >= len(owners)]  # laws and force elements may look at any joint
    return [*groups, ([c for _, mine in groups for c in mine], more)] if more else groups
