"""A mechanism as a picture: bodies in columns by their distance from the base, joints, loops, couplings and motors (SVG)."""

from __future__ import annotations

import os
from html import escape
from pathlib import Path

from dynident.files import write_atomic
from dynident.mechanism.mechanism import Mechanism

BOX_W, BOX_H, GAP_X, GAP_Y, MARGIN, LOOP_LABEL = 150, 34, 120, 26, 24, 120
STYLE = """
text{font:12px system-ui,sans-serif;fill:#1f2933}
.body{fill:#eef3f7;stroke:#52667a}.base{fill:#d9e2ec;stroke:#334e68}
.joint{stroke:#334e68;stroke-width:1.5;fill:none}.fixed{stroke:#9aa5b1;stroke-width:1;fill:none}
.loop{stroke:#b44d12;stroke-width:1.8;stroke-dasharray:6 4;fill:none}.looptext{fill:#b44d12}
.motor{fill:#0b6e4f}.small{font-size:10.5px}.follow{fill:#8d5aa5}
"""


def to_svg(mechanism: Mechanism) -> str:
    """Draw the graph of bodies, joints, loops and actuators."""
    place = _layout(mechanism)
    columns = 1 + max(column for column, _ in place.values())
    rows = 1 + max(row for _, row in place.values())
    width = 2 * MARGIN + columns * BOX_W + (columns - 1) * GAP_X
    width += LOOP_LABEL + 12 * (1 + len(mechanism.loops)) if mechanism.loops else 0
    height = 2 * MARGIN + rows * (BOX_H + GAP_Y) + 40
    xy = {b: (MARGIN + c * (BOX_W + GAP_X), MARGIN + 24 + r * (BOX_H + GAP_Y)) for b, (c, r) in place.items()}
    parts = [_text(MARGIN, MARGIN, f"{mechanism.name}: {_headline(mechanism)}")]
    parts += _joints(mechanism, xy)
    parts += _loops(mechanism, xy)
    for body, (x, y) in xy.items():
        kind = "base" if body == mechanism.root else "body"
        parts.append(f'<rect class="{kind}" x="{x}" y="{y}" width="{BOX_W}" height="{BOX_H}" rx="5"/>')
        parts.append(_text(x + BOX_W / 2, y + 21, _short(body), anchor="middle"))
    label = escape(f"Graph of {mechanism.name}")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img" '
        f'aria-label="{label}"><style>{STYLE}</style>{"".join(parts)}</svg>\n'
    )


def write_svg(mechanism: Mechanism, path: str | os.PathLike[str]) -> Path:
    """Write the graph of a mechanism to a file."""
    return write_atomic(path, to_svg(mechanism))


def _headline(mechanism: Mechanism) -> str:
    text = f"{mechanism.dof} degrees of freedom, {len(mechanism.actuators)} actuators"
    if mechanism.loops:
        extra = len(mechanism.actuators) - mechanism.dof
        text += f", {len(mechanism.loops)} loops, {mechanism.closure.redundant_equations} redundant closure equations"
        text += f", actuation redundancy {extra}" if extra > 0 else ""
    return text


def _layout(mechanism: Mechanism) -> dict[str, tuple[int, int]]:
    """Return (column, row) of every body: column is its depth, rows keep subtrees together."""
    children: dict[str, list[str]] = {}
    for joint in mechanism.joints:
        children.setdefault(joint.parent, []).append(joint.child)
    place: dict[str, tuple[int, int]] = {}
    row = 0
    waiting = [(mechanism.root, 0)]
    while waiting:  # depth first; a body without children ends a row
        body, depth = waiting.pop()
        place[body] = (depth, row)
        below = children.get(body, [])
        row += not below
        waiting += [(child, depth + 1) for child in reversed(below)]
    return place


def _joints(mechanism: Mechanism, xy: dict[str, tuple[int, int]]) -> list[str]:
    driven = {c for actuator in mechanism.actuators for c in actuator.coupling}
    following = {coupling.joint for coupling in mechanism.couplings}
    parts = []
    for joint in mechanism.joints:
        (x1, y1), (x2, y2) = xy[joint.parent], xy[joint.child]
        x1, y1, y2 = x1 + BOX_W, y1 + BOX_H // 2, y2 + BOX_H // 2
        middle = (x1 + x2) / 2
        kind = "fixed" if joint.kind == "fixed" else "joint"
        parts.append(f'<path class="{kind}" d="M{x1} {y1} C{middle} {y1} {middle} {y2} {x2} {y2}"/>')
        if joint.kind == "fixed":
            continue
        parts.append(_text(x2 - 6, y2 - 6, f"{_short(joint.name, 16)} ({joint.kind})", anchor="end", style="small"))
        if driven.intersection(joint.coordinates):
            parts.append(f'<circle class="motor" cx="{x2 - 10}" cy="{y2 + 9}" r="5"><title>actuated</title></circle>')
        elif following.intersection(joint.coordinates):
            parts.append(
                f'<circle class="follow" cx="{x2 - 10}" cy="{y2 + 9}" r="5"><title>follows other joints</title></circle>'
            )
    return parts


def _loops(mechanism: Mechanism, xy: dict[str, tuple[int, int]]) -> list[str]:
    """Return the cut joints as dashed lines that go around on the right, clear of the boxes."""
    parts = []
    edge = max(x for x, _ in xy.values()) + BOX_W
    for i, loop in enumerate(mechanism.loops):
        (x1, y1), (x2, y2) = xy[loop.body_a], xy[loop.body_b]
        x1, y1, x2, y2 = x1 + BOX_W, y1 + BOX_H - 8, x2 + BOX_W, y2 + 8 + 6 * (i % 4)
        bus = edge + LOOP_LABEL + 12 * (i + 1)
        parts.append(f'<path class="loop" d="M{x1} {y1} L{bus} {y1} L{bus} {y2} L{x2} {y2}"/>')
        parts.append(_text(edge + 8, y1 - 4, f"{_short(loop.name, 14)} ({loop.kind})", style="small looptext"))
    return parts


def _short(name: str, longest: int = 20) -> str:
    return name if len(name) <= longest else name[: longest - 1] + "…"


def _text(x: float, y: float, text: str, anchor: str = "start", style: str = "") -> str:
    return f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}" class="{style}">{escape(text)}</text>'
