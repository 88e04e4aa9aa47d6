"""Rows of regression data, for estimators that need more than a triangular factor (``keep_rows=True``).

    y_g[k] = W_g[k] beta + e_g[k],      k = rows of one log in the order of time, g = joint (or projected equation)

Robust weights, coloured noise, instruments and recursions look at single rows, which are low-passed and decimated.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from inspect import signature
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dynident import signals
from dynident.arrays import Array
from dynident.errors import IdentificationError
from dynident.identify.base import BaseParameters
from dynident.identify.regression.factor import RowGroup
from dynident.identify.regression.matching import Matched, robot_motion
from dynident.identify.regression.rows import Rows
from dynident.mechanics.closure import closure_starts
from dynident.mechanics.motion import Motion
from dynident.signals.filters import Decimator
from dynident.signals.log import Log

if TYPE_CHECKING:
    from dynident.identify.regression.regression import Regression

TILE = 4096  # samples whose regressor is held at once


@dataclass(frozen=True, eq=False, repr=False)
class Stretch:
    """Rows of one log, in the order of time."""

    motion: Motion  # N samples of the robot's coordinates before decimation
    measured: Motion  # The same of the channels that were measured; motors of a robot with loops
    decimator: Decimator  # Filter of the rows
    rows: Rows  # The equations
    t: Array  # Time of the rows [s]
    W: tuple[Array, ...]  # Rows of every group; zero where they are not used
    y: tuple[Array, ...]  # What they should give
    used: tuple[NDArray[np.bool_], ...]  # Which rows are used
    positions: Array  # Measured positions before any filter, and efforts [rad, m, N m, N]
    effort: Array  # Measured positions before any filter, and efforts [rad, m, N m, N]
    noise: Array
    cutoff: float = 0.0  # Low-pass of the differentiation [Hz]; 0 when the motion did not come from a log
    options: Mapping[str, Any] | None = None  # Options of `prepare`
    reference: Motion | None = None  # The motion that was asked for, filtered alike

    @property
    def rate(self) -> float:
        """Rate of the motion [Hz]."""
        return float((len(self.motion) - 1) / (self.motion.t[-1] - self.motion.t[0]))


def stretch_of(
    rows: Rows,
    motion: Motion,
    effort: Array,
    base: BaseParameters,
    groups: Sequence[RowGroup],
    decimator: Decimator,
    moving: NDArray[np.bool_] | None,
) -> Stretch:
    """Return the rows of a motion and its efforts, those of resting joints unused."""
    W, y = filtered_rows(rows, motion, effort, base, groups, decimator)
    usable = np.ones((y[0].size, len(W)), dtype=bool)
    if moving is not None:
        usable = decimator.usable(rows.usable(moving)[:, [rows.names.index(group.name) for group in groups]])
    return Stretch(
        motion,
        motion,
        decimator,
        rows,
        motion.t[decimator.centres(len(motion))],
        tuple(w * usable[:, [g]] for g, w in enumerate(W)),
        tuple(v * usable[:, g] for g, v in enumerate(y)),
        tuple(usable.T),
        motion.q,
        effort,
        np.zeros(len(rows.efforts)),
    )


def with_log(stretch: Stretch, matched: Matched, cutoff: float, options: Mapping[str, Any]) -> Stretch:
    """Return a stretch with what only its log has: measured positions, their noise and the motion that was asked for."""
    log, t = matched.log, stretch.motion.t
    measured = _differentiated(log.t, log.position, t, cutoff, options)
    raw = positions_at(log, t)
    # What the low-pass took away is noise above the cut-off; white noise has as much density below it.
    share = max(1.0 - 2.0 * cutoff / stretch.rate, 0.1)
    smooth = _differentiated(log.t, log.position, t, cutoff, {**options, "phase": "zero"}).q
    noise = np.sqrt(np.var(raw - smooth, axis=0) / share)
    reference = None
    if log.reference is not None and np.isfinite(log.reference).all():
        reference = robot_motion(matched.mechanism, _differentiated(log.t, log.reference, t, cutoff, options))
    return replace(stretch, measured=measured, positions=raw, noise=noise, cutoff=cutoff, options=options, reference=reference)


def sampled(regression: Regression, name: str) -> Regression:
    """Return regression data that have their rows, or say how to get them."""
    if not regression.stretches:
        raise IdentificationError(
            f"{name} needs single rows, which these regression data do not have; "
            "build them with Regression.from_log(robot, log, keep_rows=True)"
        )
    return regression


def filtered_rows(
    rows: Rows,
    motion: Motion,
    effort: Array | None,
    base: BaseParameters,
    groups: Sequence[RowGroup],
    decimator: Decimator,
) -> tuple[list[Array], list[Array]]:
    """Return W (M, k_g) and y (M,) of every group, decimated; y is empty without efforts."""
    spans = list(decimator.tiles(len(motion), max(TILE // decimator.factor, 96)))
    starts: Sequence[Array | None] = [None] * len(spans)
    if rows.mechanism.loops:
        starts = closure_starts(rows.mechanism, motion.q, [piece.start for piece, _ in spans])
    order = [rows.names.index(group.name) for group in groups]
    W: list[list[Array]] = [[] for _ in groups]
    y: list[list[Array]] = [[] for _ in groups]
    for (piece, _), start in zip(spans, starts, strict=True):
        tile, target = rows.equations(
            motion[piece], None if effort is None else effort[piece], base.columns, start, piece.start
        )
        for g, (i, group) in enumerate(zip(order, groups, strict=True)):
            W[g].append(decimator.apply(np.ascontiguousarray(tile[i, group.columns].T)))
            if target is not None:
                y[g].append(decimator.apply(target[i]))
    return [np.concatenate(parts) for parts in W], [np.concatenate(parts) if parts else np.empty(0) for parts in y]


def rows_along(regression: Regression, stretch: Stretch, motion: Motion) -> list[Array]:
    """Return the rows W of a stretch as they would be along another motion, zero where rows are not used."""
    W, _ = filtered_rows(stretch.rows, motion, None, regression.base, regression.groups, stretch.decimator)
    return [w * used[:, None] for w, used in zip(W, stretch.used, strict=True)]


def positions_at(log: Log, t: Array) -> Array:
    """Return the measured positions at other times."""
    return _at(log.t, log.position, t)


def _at(t: Array, values: Array, wanted: Array) -> Array:
    """Return columns at other times, missing values bridged."""
    good = np.isfinite(values)
    return np.column_stack([np.interp(wanted, t[ok], x[ok]) for x, ok in zip(values.T, good.T, strict=True)])


def differentiated(rate: float, q: Array, cutoff: float, options: Mapping[str, Any] | None) -> tuple[Array, Array, Array]:
    """Return q, v, a of uniform samples by the method and the cut-off of a preparation."""
    given = dict(options or {})
    method = getattr(signals, str(given.get("method", "butterworth")))
    given["causal"] = given.get("phase", "zero") == "causal"
    q, v, a = method(rate, q, cutoff, **{k: given[k] for k in signature(method).parameters if k in given and k != "cutoff"})
    return q, v, a


def _differentiated(t: Array, q: Array, wanted: Array, cutoff: float, options: Mapping[str, Any]) -> Motion:
    """Return positions with their derivatives at wanted times, on a uniform clock of the same rate."""
    step = (wanted[-1] - wanted[0]) / (wanted.size - 1)
    before, after = int((wanted[0] - t[0]) / step + 1e-6), int((t[-1] - wanted[-1]) / step + 1e-6)
    clock = wanted[0] + step * np.arange(-before, wanted.size + after)
    even = _at(t, q, clock)
    keep = slice(before, before + wanted.size)
    return Motion(wanted, *(x[keep] for x in differentiated(1.0 / step, even, cutoff, options)))
