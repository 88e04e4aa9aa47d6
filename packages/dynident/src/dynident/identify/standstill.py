"""Rows without standing joints: friction at rest is not known, and a decimated row averages over some time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dynident.errors import IdentificationError, SignalWarning, warn
from dynident.signals.filters import Decimator
from dynident.signals.log import Log
from dynident.signals.preparation import Prepared, prepare

if TYPE_CHECKING:
    from dynident.identify.rows import Rows

#: Share of its rows below which a joint that was left out near standstill is warned about.
FEW = 1.0 / 3.0


def moving_rows(moving: NDArray[np.bool_], decimator: Decimator, names: Sequence[str]) -> NDArray[np.bool_]:
    """Return the decimated rows that no standing sample spoils, and say where few are left."""
    usable = decimator.usable(moving)
    share = usable.mean(axis=0)
    if np.any(share < FEW):
        worst = int(np.argmin(share))
        text = (
            f"leaving out what is near standstill leaves {int(usable[:, worst].sum())} of {usable.shape[0]} rows of "
            f"'{names[worst]}', because a row averages over {decimator.taps.size / decimator.rate:.2g} s; give decimation=1 "
            "(then a row is one sample), a higher cutoff=, a smaller standstill= or a motion with fewer reversals"
        )
        if share[worst] == 0.0:
            raise IdentificationError(text)
        warn(text, SignalWarning)
    return usable


def shortened(rows: Rows, log: Log, found: Prepared, options: Mapping[str, Any]) -> Prepared:
    """Return a log, of which standing joints are left out, prepared again with shorter rows where few of the long ones hold.

    All motors of a robot with loops must move for a row to hold, which they rarely do for as long as a decimated row averages
    over: its rows are then single samples. Those of other robots are halved until enough hold, so that they still average.
    """
    first, long = _usable(rows, found), found.decimator.taps.size / found.decimator.rate
    share = first
    while share < FEW and found.decimator.factor > 1:
        shorter = 1 if rows.mechanism.loops else found.decimator.factor // 2
        found = prepare(log, **{**options, "decimation": shorter})
        share = _usable(rows, found)
    if share == first:
        return found
    now = found.decimator.taps.size / found.decimator.rate
    how = "rows are single samples" if found.decimator.factor == 1 else f"rows average over {now:.2g} s"
    text = f"{how}: only {first:.0%} of rows of {long:.2g} s have no standing joint in them (decimation= decides otherwise)"
    return replace(found, explanation=f"{found.explanation}\n{text}")


def _usable(rows: Rows, prepared: Prepared) -> float:
    """Return the share of decimated rows without standing joints, of the joint that has fewest."""
    assert prepared.moving is not None
    return float(prepared.decimator.usable(rows.usable(prepared.moving)).mean(axis=0).min())
