"""A mechanism in plain data, for tables and JSON."""

from __future__ import annotations

from typing import Any

import numpy as np

from dynident.mechanism.mechanism import Mechanism


def description(mechanism: Mechanism) -> dict[str, Any]:
    """Return what a robot is made of as plain data.

    Parameters
    ----------
    mechanism : Mechanism
        Robot.

    Returns
    -------
    dict
        Name, degrees of freedom, joints, bodies, couplings, loops, actuators, parameters and consistency, JSON-ready.
    """
    follows = {c.joint: " + ".join(f"{r:g} {j}" for j, r in c.of.items()) for c in mechanism.couplings}
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
                "follows": follows.get(j.name, ""),
            }
            for j in mechanism.joints
        ],
        "bodies": list(mechanism.tree.bodies),
        "loops": [{"name": x.name, "kind": x.kind, "bodies": [x.body_a, x.body_b]} for x in mechanism.loops],
        "actuators": [{"name": a.name, "ratio": a.ratio, "coupling": dict(a.coupling)} for a in mechanism.actuators],
        "terms": list(mechanism.terms),
        "parameters": mechanism.parameters.to_dict(),
        "possible": all(c.ok for c in mechanism.check_consistency()),
        "consistency": [c.sentence for c in mechanism.check_consistency() if not c.ok],
    }


def _limit(value: float) -> float | None:
    return round(float(value), 6) if np.isfinite(value) else None
