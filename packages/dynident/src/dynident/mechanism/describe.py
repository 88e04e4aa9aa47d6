"""A mechanism in plain data (for JSON), as text and as pictures: its graph as SVG, one row per body, and its links in space."""

from __future__ import annotations

import os
from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from dynident.errors import DescriptionError
from dynident.figures import BLUE, GREEN, INK, MUTED, ORANGE, WIDTH, label, new_figure
from dynident.files import visible, write_atomic
from dynident.mechanism.elements import Coupling, Joint, Loop, Placement
from dynident.mechanism.mechanism import Mechanism
from dynident.mechanism.sidecar import own_parts
from dynident.mechanism.tree import node_poses
from dynident.pages import several

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from dynident.mechanism.mechanism import Mechanism

ROUND_OFF = 1e-12  # kg, kg m, kg m^2


def description(mechanism: Mechanism) -> dict[str, Any]:
    """Return what a robot is made of as plain data, ready for JSON.

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
        "term_symbols": _symbols(mechanism),
        "parameters": mechanism.parameters.to_dict(),
        **_bodies(mechanism),
    }


def _bodies(mechanism: Mechanism) -> dict[str, Any]:
    """Return bodies without any number, and what is impossible about the others."""
    phi = mechanism.parameters.values[: 10 * len(mechanism.tree.bodies)].reshape(-1, 10)
    checked = mechanism.check_consistency()
    empty = [c.name for c, numbers in zip(checked, phi, strict=True) if np.abs(numbers).max() < ROUND_OFF]
    wrong = [c.sentence for c in checked if not c.ok and c.name not in empty]
    return {"possible": not wrong, "consistency": wrong, "empty": empty}


def _symbols(mechanism: Mechanism) -> list[str]:
    """Return the joint terms that any joint has."""
    own = [*mechanism.joint_terms.values(), *(joint.terms for joint in mechanism.joints)]
    return list(dict.fromkeys([*mechanism.terms, *(term for terms in own for term in terms)]))


def _followed(coupling: Coupling) -> str:
    """Return what a joint follows, as "-1 q4 + 3.14159"."""
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
    """Return a description as text for people."""
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
        lines.append(f"closure: {free} can be chosen, {bound} must follow; {repeated} closure equations repeat others")
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
    if data["empty"]:
        lines.append(f"mass and inertia are zero, in the drives or not known: {', '.join(data['empty'])}")
    base = data.get("base_parameters")
    if base:
        lines.append(f"{base['rank']} base parameters (with {', '.join(data['term_symbols']) or 'no joint terms'}):")
        alone = [expression.partition(" = ")[0] for expression in base["expressions"] if _stands_alone(expression)]
        lines += ["  " + expression for expression in base["expressions"] if not _stands_alone(expression)]
        lines += [f"  alone: {', '.join(alone)}"] if alone else []
    if not data["dof"]:
        lines.append("no joint moves: nothing can be identified")
    if data.get("unidentifiable"):
        lines.append(f"no torque ever shows: {', '.join(data['unidentifiable'])}")
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


ROW, STEP, MARGIN, HEAD, LETTER, GAP = 30, 24, 24, 64, 7.3, 26
STYLE = """
svg{background:#fff}text{font:13px system-ui,sans-serif;fill:#1f2933}.head{font-weight:650;font-size:15px}.light{fill:#5b6770}
.body{fill:#fff;stroke:#334e68;stroke-width:2}.base{fill:#334e68;stroke:#334e68}
.line{stroke:#9aa5b1;stroke-width:2;fill:none}.fixed{stroke-dasharray:2 4}
.loop{stroke:#b44d12;stroke-width:1.8;stroke-dasharray:6 4;fill:none}.looptext{fill:#b44d12}
.motor{fill:#0072b2}.follow{fill:#8d5aa5}.passive{fill:#9aa5b1}.stripe{fill:#f5f7f9}
@media (prefers-color-scheme:dark){svg{background:#161b20}text{fill:#e4e9ed}.light{fill:#a3aeb7}
.body{fill:#161b20;stroke:#9fb3c8}.base{fill:#9fb3c8;stroke:#9fb3c8}.stripe{fill:#20272d}.motor{fill:#56b4e9}.looptext{fill:#f08a3c}.loop{stroke:#f08a3c}}
"""


def to_svg(mechanism: Mechanism) -> str:
    """Draw the graph of bodies, joints, loops and actuators."""
    place = layout(mechanism)
    joint_of = {joint.child: joint for joint in mechanism.joints}
    cells = {body: _cells(mechanism, body, joint_of.get(body)) for body in place}
    heads = ("body", "moved by joint", "kind, axis and range", "mass")
    left = MARGIN + STEP * (1 + max(column for column, _ in place.values()))
    widths = [LETTER * max(len(row[k]) for row in (heads, *cells.values())) + GAP for k in range(len(heads))]
    xs = [left + sum(widths[:k]) for k in range(len(heads))]
    edge = left + sum(widths)
    bus = GAP * len(mechanism.loops) + LETTER * max((len(_loop(loop)) for loop in mechanism.loops), default=0)
    title = f"{mechanism.name}: {_headline(mechanism)}"
    width, height = max(edge + bus, 1.2 * LETTER * len(title)) + MARGIN, HEAD + ROW * len(place) + MARGIN
    parts = [_text(MARGIN, 26, title, "head")]
    parts += [_text(x, 50, text, "light") for x, text in zip(xs, heads, strict=True)]
    for row in range(0, len(place), 2):
        parts.append(f'<rect class="stripe" x="0" y="{HEAD + ROW * row}" width="{width:g}" height="{ROW}"/>')
    xy = {body: (MARGIN + STEP * column, HEAD + ROW * row + ROW // 2) for body, (column, row) in place.items()}
    parts += [_line(joint, xy) for joint in mechanism.joints]
    for body, (x, y) in xy.items():
        kind = "base" if body == mechanism.root else "body"
        parts.append(f'<circle class="{kind}" cx="{x}" cy="{y}" r="5"/>')
        parts += [
            _text(at, y + 4.5, text, "light" if k == 2 else "")
            for k, (at, text) in enumerate(zip(xs, cells[body], strict=True))
        ]
        if body in joint_of and joint_of[body].kind != "fixed":
            mark, says = _mark(mechanism, joint_of[body])
            parts.append(f'<circle class="{mark}" cx="{xs[1] - 10:g}" cy="{y}" r="4.5"><title>{says}</title></circle>')
    for i, loop in enumerate(mechanism.loops):
        (_, y1), (_, y2) = xy[loop.body_a], xy[loop.body_b]
        at = edge + GAP * i
        parts.append(f'<path class="loop" d="M{edge - 8:g} {y1} H{at:g} V{y2} H{edge - 8:g}"/>')
        parts.append(_text(edge + GAP * len(mechanism.loops), (y1 + y2) / 2 + 4 + 14 * (i % 2), _loop(loop), "looptext"))
    return visible(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height}" width="{width:g}" height="{height}" '
        f'role="img" aria-label="{escape(f"Graph of {mechanism.name}")}"><style>{STYLE}</style>{"".join(parts)}</svg>\n'
    )


def write_svg(mechanism: Mechanism, path: str | os.PathLike[str]) -> Path:
    """Write the graph of a `mechanism` to an SVG file at `path`."""
    return write_atomic(path, to_svg(mechanism))


def layout(mechanism: Mechanism) -> dict[str, tuple[int, int]]:
    """Return (column, row) of every body: the longest chain goes straight down, shorter branches come first, beside it."""
    children: dict[str, list[str]] = {}
    for joint in mechanism.joints:
        children.setdefault(joint.parent, []).append(joint.child)
    order = [mechanism.root]
    for body in order:  # parents before children
        order += children.get(body, [])
    size: dict[str, int] = {}
    for body in reversed(order):
        size[body] = 1 + sum(size[child] for child in children.get(body, []))
    place: dict[str, tuple[int, int]] = {}
    waiting = [(mechanism.root, 0)]
    while waiting:
        body, column = waiting.pop()
        place[body] = (column, len(place))
        below = sorted(children.get(body, []), key=size.__getitem__)
        for child in reversed(below):  # the smallest is taken next
            waiting.append((child, column if child == below[-1] else column + 1))
    return place


def _headline(mechanism: Mechanism) -> str:
    freedom = "degree" if mechanism.dof == 1 else "degrees"
    text = f"{mechanism.dof} {freedom} of freedom, {several(len(mechanism.actuators), 'actuator')}"
    if mechanism.loops:
        extra = len(mechanism.actuators) - mechanism.dof
        text += f", {several(len(mechanism.loops), 'loop')}, "
        text += several(mechanism.closure.redundant_equations, "redundant closure equation")
        text += f", actuation redundancy {extra}" if extra > 0 else ""
    return text


def _cells(mechanism: Mechanism, body: str, joint: Joint | None) -> tuple[str, str, str, str]:
    """Return the texts of a row."""
    inertia = next(b.inertia for b in mechanism.bodies if b.name == body)
    mass = "" if inertia is None or not inertia[0] else f"{inertia[0]:.4g} kg"
    if joint is None:
        return body, "", "", mass
    if joint.kind == "fixed":
        return body, joint.name, "fixed", mass
    return body, joint.name, f"{joint.kind} {_axis(joint)}{_range(joint)}", mass


def _axis(joint: Joint) -> str:
    if joint.kind in ("spherical", "free"):
        return ""
    largest = int(np.argmax(np.abs(joint.axis)))
    sign = "-" if joint.axis[largest] < 0.0 else ""
    return f"{sign}{'xyz'[largest]}" if abs(joint.axis[largest]) > 0.999 else "({:.2g}, {:.2g}, {:.2g})".format(*joint.axis)


def _range(joint: Joint) -> str:
    low, high = joint.limits.lower, joint.limits.upper
    unit = "m" if joint.kind == "prismatic" else "rad"
    return f", {low:.3g} to {high:.3g} {unit}" if np.isfinite(low) and np.isfinite(high) else ""


def _mark(mechanism: Mechanism, joint: Joint) -> tuple[str, str]:
    """Return the class and the meaning of a joint's dot."""
    if any(set(joint.coordinates) & set(actuator.coupling) for actuator in mechanism.actuators):
        return "motor", "actuated"
    if any(coupling.joint in joint.coordinates for coupling in mechanism.couplings):
        return "follow", "follows other joints"
    return "passive", "without an actuator"


def _loop(loop: Loop) -> str:
    return f"{loop.name} ({loop.kind})"


def _line(joint: Joint, xy: dict[str, tuple[int, int]]) -> str:
    (x1, y1), (x2, y2) = xy[joint.parent], xy[joint.child]
    bend = f"V{y2}" if x1 == x2 else f"V{y2 - 10} Q{x1} {y2} {x1 + 10} {y2} H{x2}"
    return f'<path class="line{" fixed" if joint.kind == "fixed" else ""}" d="M{x1} {y1} {bend}"/>'


def _text(x: float, y: float, text: str, style: str = "") -> str:
    return f'<text x="{x:g}" y="{y:g}" class="{style}">{escape(text)}</text>'


def plot_mechanism(mechanism: Mechanism, q: ArrayLike | None = None) -> Figure:
    """Draw the pose on the left, the graph on the right."""
    poses = link_poses(mechanism, q)
    figure = new_figure(WIDTH, max(5.0, 0.28 * len(mechanism.bodies) + 0.8))
    _draw_pose(figure, mechanism, poses)
    _draw_graph(figure.add_axes((0.56, 0.02, 0.43, 0.9)), mechanism)
    figure.text(0.02, 0.96, label(repr(mechanism).split(";")[0].split(" coordinates")[0] + " coordinates)", 80), fontsize=10)
    return figure


def link_poses(mechanism: Mechanism, q: ArrayLike | None = None) -> dict[str, Placement]:
    """Return where every link is: its frame in the base frame."""
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
    axes = figure.add_axes((0.0, 0.02, 0.54, 0.92), projection="3d")
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
    axes.set_box_aspect((1, 1, 1))  # type: ignore[arg-type]  # matplotlib types axes of a plane only


def _draw_graph(axes: Axes, mechanism: Mechanism) -> None:
    place = layout(mechanism)
    far = 1 + max(column for column, _ in place.values())
    driver = {joint.child: joint for joint in mechanism.joints}
    for body, (column, row) in place.items():
        joint = driver.get(body)
        if joint is not None:
            above = place[joint.parent]
            style = ":" if joint.kind == "fixed" else "-"
            axes.plot([above[0], above[0], column], [-above[1], -row, -row], style, color=MUTED, linewidth=1.2, zorder=0)
        axes.plot(column, -row, "o", color=INK if joint is None else "white", markeredgecolor=INK, markersize=5)
        moved = "" if joint is None else f"   {joint.name} ({joint.kind})"
        axes.text(far, -row, label(body + moved, 58), fontsize=8, va="center", color=INK)
    for loop in mechanism.loops:
        (x1, y1), (x2, y2) = place[loop.body_a], place[loop.body_b]
        axes.plot([x1, x2], [-y1, -y2], "--", color=ORANGE, linewidth=1.0, zorder=0)
    axes.set_xlim(-0.6, max(3.0 * far, far + 8.0))
    axes.set_ylim(-len(place), 1.0)
    axes.set_axis_off()
