"""The command check."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dynident.arrays import Array
from dynident.cli.consoles import out, print_json
from dynident.cli.options import AS_WRITTEN, NOT_OK, AsJson, Robot, RobotOptions, Strict
from dynident.cli.published import published_limits
from dynident.cli.robots import is_known, ready_machine
from dynident.errors import DynidentError
from dynident.mechanism import Mechanism
from dynident_papers import properties


def check(
    robot: Robot,
    /,
    *,
    samples: int = 200,
    seed: int = 0,
    described: RobotOptions = AS_WRITTEN,
    strict: Strict = False,
    as_json: AsJson = False,
) -> int:
    """Check properties that every robot's dynamics have: M > 0, skew-symmetry, energy, Jacobians; bounds of M, C, g and F.

    Example: dynident check out/fit.json --strict

    Parameters
    ----------
    samples
        Number of random poses.
    seed
        Seed of poses and velocities.
    """
    mechanism = described.robot(robot)
    within = None
    if is_known(robot) and described.sidecar is None:
        machine = ready_machine(str(robot))
        if not mechanism.parameters.values.any():  # its source prints no masses: those of the ready machine
            mechanism = machine.model
        if machine.friction:  # the laws, which the terms of a model only approach
            mechanism = replace(mechanism.without_friction(), friction=machine.friction)
        within = _published_range(str(robot), mechanism)
    found = properties.check(mechanism, within=within, samples=samples, seed=seed)
    if as_json:
        print_json(found.to_dict())
    else:
        out.print(found.summary())
    return NOT_OK if strict and not found.ok else 0


def _published_range(name: str, mechanism: Mechanism) -> tuple[Array, Array] | None:
    """Return the printed range of a known robot's coordinates; None where its source prints none."""
    try:
        limits = published_limits(name, mechanism).limits
    except DynidentError:
        return None
    found = np.asarray(limits.lower), np.asarray(limits.upper)
    return found if all(np.isfinite(side).all() for side in found) else None
