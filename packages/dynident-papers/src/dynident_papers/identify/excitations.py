"""Choice of excitations as in theses: by their speeds, or with fewer parameters if the condition number is high.

design -> cond(W) <= limit?  no: leave out the least observable base parameter, design again    [Roldan2017, figure 5.3]
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.linalg

from dynident.arrays import Array
from dynident.errors import DynidentError
from dynident.excitation import Design, design
from dynident.excitation.objective import information
from dynident.identify.base import BaseParameters, base_parameters
from dynident.mechanism import Mechanism


def reached_speeds(found: Design) -> Array:
    """Return the largest speed of every coordinate as a share of its limit, (n,)."""
    return np.asarray(np.abs(found.motion().v).max(axis=0) / found.problem.limits.velocity)


@dataclass(frozen=True, eq=False)
class RankedDesign:
    """A design whose condition number keeps a limit, and the parameters left out for it."""

    design: Design
    base: BaseParameters  # Parameters the motion is designed for
    left_out: tuple[str, ...]  # Leaders of the base parameters that were left out, in this order
    conditions: tuple[float, ...]  # Of every attempt


def design_within(
    mechanism: Mechanism, limits: Any = None, largest: float = 100.0, seed: int = 0, seeds: int = 1, **options: Any
) -> RankedDesign:
    """Design a motion, leaving out one base parameter after another until the condition number is below a limit.

    Loops are allowed. Each time, the parameter of the last column of a pivoted QR of the regressor along the
    motion is left out. Among the designs of several `seeds` that keep the limit, the one with the highest mean speed of
    the coordinates is chosen [Pagani2022, section 2.3.3], because it shows friction. `options` as in `design`.
    """
    kept: BaseParameters = options.pop("base", None) or base_parameters(mechanism)
    left_out: list[str] = []
    conditions: list[float] = []
    while True:
        tried = [design(mechanism, limits, "cond", base=kept, seed=seed + i, **options) for i in range(seeds)]
        designs = sorted(tried, key=lambda each: each.values()["cond"])
        good = [each for each in designs if each.values()["cond"] <= largest]
        found = max(good or designs[:1], key=lambda each: float(reached_speeds(each).mean()))
        conditions.append(found.values()["cond"])
        if good:
            return RankedDesign(found, kept, tuple(left_out), tuple(conditions))
        if kept.rank == 1:
            raise DynidentError(f"robot '{mechanism.name}': one parameter alone has a condition number above {largest:g}")
        R = information(found.exact, found.motion(), found.noise, None)
        worst = int(scipy.linalg.qr(R, mode="r", pivoting=True)[1][-1])
        left_out.append(kept.leaders[worst])
        use = [i for i in range(kept.rank) if i != worst]
        kept = replace(kept, columns=kept.columns[use], regrouping=kept.regrouping[use], seen=kept.seen[:, use])
