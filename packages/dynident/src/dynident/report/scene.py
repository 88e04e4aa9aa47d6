"""The robot along a log, as points: origins of links and centres of mass, joined by lines."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynident.identify.fit import Fit
from dynident.identify.score import Score
from dynident.mechanics.kinematics import forward_kinematics
from dynident.pages import printable
from dynident.report.embed import packed

Array = NDArray[np.float64]

FRAMES = 600


def scene(fit: Fit) -> dict[str, Any] | None:
    """Return what is drawn of a robot: points (links, then centres of mass), lines, joints; None without a geometry."""
    robot = fit.mechanism
    if robot.own_regressor or not robot.joints:
        return None
    names = [body.name for body in robot.bodies]
    index = {name: i for i, name in enumerate(names)}
    moving = [joint for joint in robot.joints if joint.kind != "fixed"]
    masses: list[dict[str, Any]] = []
    for i, (body, _) in enumerate(_centres(fit)):
        masses.append({"point": len(names) + i, "name": printable(body), "mass": fit.standard[f"m_{body}"]})
    depth = {robot.root: 0}
    for joint in robot.joints:
        depth[joint.child] = depth.get(joint.parent, 0) + 1
    return {
        "points": [printable(name) for name in names] + [str(mass["name"]) for mass in masses],
        "lines": [[index[j.parent], index[j.child], int(j.kind == "fixed")] for j in robot.joints],
        "loops": [[index[loop.body_a], index[loop.body_b]] for loop in robot.loops],
        "joints": [{"point": index[j.child], "name": printable(name)} for j in moving for name in j.coordinates[:1]],
        "masses": masses,
        "heaviest": max((float(mass["mass"]) for mass in masses), default=1.0),
        "tool": index[max(depth, key=depth.__getitem__)],
    }


def motion(fit: Fit, score: Score) -> dict[str, Any] | None:
    """Return where the points of `scene` are along a log, and how large the residuals are there."""
    if score.position is None or not len(score.position):
        return None
    frames = np.unique(np.linspace(0, len(score.position) - 1, min(FRAMES, len(score.position))).astype(int))
    q = score.position[frames]
    poses = {body.name: forward_kinematics(fit.mechanism, q, body.name) for body in fit.mechanism.bodies}
    points = [position for _, position in poses.values()]
    points += [poses[body][1] + poses[body][0] @ centre for body, centre in _centres(fit)]
    with np.errstate(divide="ignore", invalid="ignore"):
        load = (score.measured - score.predicted)[frames] / score.std[frames]
    return {
        "t": packed(score.t[frames]),
        "points": packed(np.stack(points, axis=1)),
        "load": packed(np.nan_to_num(load, posinf=0.0, neginf=0.0)),
    }


def _centres(fit: Fit) -> list[tuple[str, Array]]:
    """Return the identified bodies with mass and their centres of mass in the link frame."""
    found = []
    for body in fit.mechanism.tree.bodies:
        mass = fit.standard[f"m_{body}"]
        if mass > 0.0:
            found.append((body, np.array([fit.standard[f"m{k}_{body}"] for k in "xyz"]) / mass))
    return found
