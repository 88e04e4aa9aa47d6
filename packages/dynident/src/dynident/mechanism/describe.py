"""A mechanism as plain data (for JSON), as text and as a figure: its links in space and its graph, one row per body."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from dynident.errors import DescriptionError
from dynident.figures import BLUE, GREEN, INK, MUTED, ORANGE, WIDTH, label, new_figure
from dynident.mechanism.elements import Coupling, Placement
from dynident.mechanism.mechanism import Mechanism
from dynident.mechanism.sidecar import own_parts
from dynident.mechanism.tree import node_poses

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ROUND_OFF = 1e-12  # kg, kg m, kg m^2


def description(mechanism: Mechanism) -> dict[str, Any]:
    """Return the content of a robot as plain data, ready for JSON.

    Parameters
    ----------
    mechanism : Mechanism
        Robot.

    Returns
    -------
    dict
        Name, source, coordinates, gravity [m/s^2], joints with limits [rad or m], bodies, loops and their closure, actuators,
        joint terms, friction, forces, and parameters by name (SI).
    """
    follows = {c.joint: _followed(c) for c in mechanism.couplings}
    own = [*mechanism.joint_terms.values(), *(joint.terms for joint in mechanism.joints)]
    return {
        "name": mechanism.name,
        "source": mechanism.source,
        "dof": mechanism.dof,
        "coordinates": list(mechanism.coordinate_names),
        "gravity": mechanism.gravity.tolist(),
        "joints": [
            {
                "name": j.name,
                "kind": j.kind,
                "parent": j.parent,
                "child": j.child,
                "lower": _limit(j.limits.lower),
                "upper": _limit(j.limits.upper),
                "velocity": _limit(j.limits.velocity),
                "effort": _limit(j.limits.effort),
                "acceleration": _limit(j.limits.acceleration),
                "jerk": _limit(j.limits.jerk),
                "follows": follows.get(j.name, ""),
            }
            for j in mechanism.joints
        ],
        "bodies": list(mechanism.tree.bodies),
        "loops": [{"name": x.name, "kind": x.kind, "bodies": [x.body_a, x.body_b]} for x in mechanism.loops],
        "closure": _closure(mechanism) if mechanism.loops else None,
        "actuators": [{"name": a.name, "ratio": a.ratio, "coupling": dict(a.coupling)} for a in mechanism.actuators],
        **own_parts(mechanism),
        "masses": {body: mechanism.parameters[f"m_{body}"] for body in mechanism.tree.bodies},
        "term_symbols": list(dict.fromkeys([*mechanism.terms, *(term for terms in own for term in terms)])),
        "parameters": mechanism.parameters.to_dict(),
        **_bodies(mechanism),
    }


def _bodies(mechanism: Mechanism) -> dict[str, Any]:
    """Return the physical consistency of the bodies: those without numbers, those without mass, and the others' violations."""
    phi = mechanism.parameters.values[: 10 * len(mechanism.tree.bodies)].reshape(-1, 10)
    checked = mechanism.check_consistency()
    empty = [c.name for c, numbers in zip(checked, phi, strict=True) if np.abs(numbers).max() < ROUND_OFF]
    massless = [c.name for c in checked if c.mass == 0.0 and c.name not in empty]
    wrong = [c.sentence for c in checked if not c.ok and c.name not in (*empty, *massless)]
    return {"possible": not (wrong or massless), "consistency": wrong, "massless": massless, "empty": empty}


def _followed(coupling: Coupling) -> str:
    """Return the joints that a joint follows, as "-1 q4 + 3.14159"."""
    if coupling.function:
        text = f"function of {', '.join(coupling.of)}"
    else:
        text = " + ".join(f"{ratio:g} {joint}" for joint, ratio in coupling.of.items())
    return f"{text} + {coupling.offset:g}" if coupling.offset else text


def _limit(value: float) -> float | None:
    return round(float(value), 6) if np.isfinite(value) else None


def _closure(mechanism: Mechanism) -> dict[str, Any]:
    closure, names = mechanism.closure, mechanism.tree.coordinates
    return {
        "dof": int(closure.dof),
        "independent": [names[i] for i in closure.independent],
        "dependent": [names[i] for i in closure.dependent],
        "redundant_equations": int(closure.redundant_equations),
        "redundant_motors": max(0, len(mechanism.actuators) - mechanism.dof),
    }


def description_text(data: Mapping[str, Any]) -> str:
    """Return a description as readable text."""
    freedom, moving = "degree" if data["dof"] == 1 else "degrees", "body" if len(data["bodies"]) == 1 else "bodies"
    lines = [f"robot {data['name']}: {data['dof']} {freedom} of freedom, {len(data['bodies'])} moving {moving}"]
    rare = (key for key in ("acceleration", "jerk") if any(j[key] is not None for j in data["joints"]))
    keys = ("name", "kind", "parent", "child", "lower", "upper", "velocity", "effort", *rare, "follows")
    rows = [("joint", *keys[1:]), *(tuple("" if j[k] is None else str(j[k]) for k in keys) for j in data["joints"])]
    widths = [max(len(row[i]) for row in rows) for i in range(len(keys))]
    lines += ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    lines += [f"loop {x['name']}: {x['kind']} between {x['bodies'][0]} and {x['bodies'][1]}" for x in data["loops"]]
    if data["closure"]:
        free, bound = (", ".join(data["closure"][key]) or "nothing" for key in ("independent", "dependent"))
        repeated = data["closure"]["redundant_equations"]
        lines.append(f"closure: {free} independent, {bound} dependent; {repeated} closure equations are redundant")
        if data["closure"]["redundant_motors"]:
            lines.append(
                f"redundant: {len(data['actuators'])} motors for {data['dof']} degrees of freedom, "
                f"{data['closure']['redundant_motors']} of internal preload"
            )
    if not data["actuators"] and data["dof"]:
        lines.append("no motors are declared: name the driven joints as [[actuator]] in a sidecar before excite or identify")
    for actuator in data["actuators"]:
        drives = " + ".join(f"{c:g} {joint}" for joint, c in actuator["coupling"].items())
        if data["loops"] or actuator["ratio"] != 1.0 or len(actuator["coupling"]) > 1:
            lines.append(f"actuator {actuator['name']} turns {actuator['ratio']:g} ({drives})")
    if any(data["masses"].values()):
        each = ", ".join(f"{body} {mass:.4g}" for body, mass in data["masses"].items())
        lines.append(f"masses [kg]: {each}; {sum(data['masses'].values()):.4g} together")
    alike: dict[str, list[str]] = {}
    for joint, terms in data["joint_terms"].items():
        alike.setdefault(", ".join(terms) or "none", []).append(joint)
    lines += [f"terms of {', '.join(joints)}: {terms}" for terms, joints in alike.items()]
    lines += [f"friction of {law['joint']}: {law['law']}" for law in data["friction"]]
    for force in data["forces"]:
        where = force.get("energy") or ", ".join(f"{joint}: {text}" for joint, text in force["on"].items())
        lines.append(
            f"force {force['name']}{' = ' + format(force['value'], 'g') + ' (known)' if force['known'] else ''}: {where}"
        )
    lines += data["consistency"]
    if data["massless"]:
        lines.append(f"mass is zero, inertia is not (grouped parameters, or unknown): {', '.join(data['massless'])}")
    if data["empty"]:
        lines.append(f"mass and inertia are zero (in the drives, or unknown): {', '.join(data['empty'])}")
    base = data.get("base_parameters")
    if base:
        lines.append(f"{base['rank']} base parameters (with {', '.join(data['term_symbols']) or 'no joint terms'}):")
        alone = [expression.partition(" = ")[0] for expression in base["expressions"] if _stands_alone(expression)]
        lines += ["  " + expression for expression in base["expressions"] if not _stands_alone(expression)]
        lines += [f"  alone: {', '.join(alone)}"] if alone else []
    if not data["dof"]:
        lines.append("no joint moves: nothing can be identified")
    if data.get("unidentifiable"):
        lines.append(f"without effect on any torque: {', '.join(data['unidentifiable'])}")
    return "\n".join(lines)


def _stands_alone(expression: str) -> bool:
    """Return whether a base parameter is one standard parameter, not a sum of several."""
    name, _, terms = expression.partition(" = ")
    return name == terms


def effort_units(mechanism: Mechanism) -> dict[str, str]:
    """Return the unit of the effort of every coordinate of the tree."""
    units = {}
    for joint in mechanism.joints:
        for coordinate in joint.coordinates:
            sliding = joint.kind == "prismatic" or coordinate.endswith((".x", ".y", ".z"))
            units[coordinate] = "N" if sliding else "N m"
    return units


def plot_mechanism(mechanism: Mechanism, q: ArrayLike | None = None) -> Figure:
    """Draw links and frames of a robot at a pose."""
    figure = new_figure(0.6 * WIDTH, 5.0)
    _draw_pose(figure, mechanism, link_poses(mechanism, q))
    figure.text(0.02, 0.96, label(repr(mechanism).split(";")[0].split(" coordinates")[0] + " coordinates)", 80), fontsize=10)
    return figure


def link_poses(mechanism: Mechanism, q: ArrayLike | None = None) -> dict[str, Placement]:
    """Return the frames of all links in the base frame."""
    tree = mechanism.tree
    values = np.zeros(len(tree.coordinates)) if q is None else np.asarray(q, dtype=float).ravel()
    if values.shape != (len(tree.coordinates),):
        raise DescriptionError(
            f"q has {values.size} numbers but the tree of '{mechanism.name}' has {len(tree.coordinates)} coordinates: "
            f"{', '.join(tree.coordinates)}"
        )
    nodes = node_poses(tree, values)
    return {body: inside if node < 0 else nodes[node] @ inside for body, (node, inside) in tree.frames.items()}


def _draw_pose(figure: Figure, mechanism: Mechanism, poses: dict[str, Placement]) -> None:
    axes = figure.add_axes((0.0, 0.02, 0.96, 0.92), projection="3d")
    points = np.array([pose.translation for pose in poses.values()])
    size = float(np.ptp(points, axis=0).max()) or 1.0
    for joint in mechanism.joints:
        ends = np.array([poses[joint.parent].translation, poses[joint.child].translation])
        fixed = joint.kind == "fixed"
        axes.plot(*ends.T, color=MUTED, linewidth=1.0 if fixed else 3.5, alpha=0.6, solid_capstyle="round")
        if not fixed:
            axes.plot(*ends[1:].T, "o", color=INK, markersize=4)
    for pose in poses.values():
        for k, colour in enumerate((ORANGE, GREEN, BLUE)):
            tip = pose.translation + 0.07 * size * pose.rotation[:, k]
            axes.plot(*np.array([pose.translation, tip]).T, color=colour, linewidth=1.2)
    middle = (points.max(axis=0) + points.min(axis=0)) / 2.0
    for k, name in enumerate("xyz"):
        getattr(axes, f"set_{name}lim")(middle[k] - 0.55 * size, middle[k] + 0.55 * size)
        getattr(axes, f"set_{name}label")(f"{name} [m]", fontsize=8, color=INK)
    axes.tick_params(labelsize=7)
    axes.set_box_aspect((1, 1, 1))  # type: ignore[arg-type]  # matplotlib has types for plane axes only
