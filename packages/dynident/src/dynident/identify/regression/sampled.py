"""`SampledRegression`: evidence that keeps its rows, for estimators that a triangular factor is not enough for.

    y_g[k] = W_g[k] beta + e_g[k],      k = rows of one log in the order of time, g = joint (or projected equation)

Robust weights, coloured noise, instruments and recursions look at single rows. Rows are those of `Regression`: low-passed and
decimated alike, so there are few of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from inspect import signature
from operator import add
from typing import Any, Self, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynident import signals
from dynident.arrays import Array
from dynident.errors import IdentificationError
from dynident.identify.base import BaseParameters, columns_of
from dynident.identify.regression.factor import RowGroup, triangle
from dynident.identify.regression.matching import match
from dynident.identify.regression.regression import Regression, long_pieces, robot_motion, source_of
from dynident.identify.regression.rows import Projection, Rows
from dynident.identify.regression.stretches import Repeats
from dynident.mechanics.closure import closure_starts
from dynident.mechanics.motion import Motion, MotionLike, as_motion
from dynident.mechanism.mechanism import Mechanism
from dynident.signals.filters import Decimator
from dynident.signals.log import Log
from dynident.signals.stream import LogStream

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


@dataclass(frozen=True, eq=False, repr=False)
class SampledRegression(Regression):
    """A `Regression` that keeps its rows; every estimator takes it.

    Parameters
    ----------
    base, groups, sources, options, notes, projection, logs
        As of `Regression`.
    stretches : tuple of Stretch
        Rows of every log, in the order of time.

    Examples
    --------
    >>> evidence = SampledRegression.from_log(robot, log)   # doctest: +SKIP
    >>> IRLS().fit(evidence).result_                        # doctest: +SKIP
    """

    stretches: tuple[Stretch, ...] = ()

    @classmethod
    def from_motion(
        cls,
        mechanism: Mechanism,
        motion: MotionLike,
        effort: ArrayLike,
        base: BaseParameters | None = None,
        decimator: Decimator | None = None,
        skip: tuple[str, ...] = (),
        projection: Projection | Sequence[str] = "gls",
        absent: Sequence[str] = (),
        moving: NDArray[np.bool_] | None = None,
        *more: Any,
        **named: Any,
    ) -> Self:
        """Take a motion and its efforts, as `Regression.from_motion`, and keep the rows.

        Parameters
        ----------
        mechanism, motion, effort, base, decimator, skip, projection, absent, moving, *more, **named
            As of `Regression.from_motion`.

        Returns
        -------
        SampledRegression
            The evidence.
        """
        motion = as_motion(motion)
        evidence = cast(
            "Self",
            super().from_motion(mechanism, motion, effort, base, decimator, skip, projection, absent, moving, *more, **named),
        )
        rows = Rows(mechanism, evidence.projection, tuple(columns_of(mechanism, absent)))
        filter_ = decimator or Decimator(1, 1.0)
        tau = np.asarray(effort, dtype=np.float64)
        W, y = filtered_rows(rows, motion, tau, evidence.base, evidence.groups, filter_)
        usable = np.ones((y[0].size, len(W)), dtype=bool)
        if moving is not None:
            usable = filter_.usable(rows.usable(moving)[:, [rows.names.index(group.name) for group in evidence.groups]])
        stretch = Stretch(
            motion,
            motion,
            filter_,
            rows,
            motion.t[filter_.centres(len(motion))],
            tuple(w * usable[:, [g]] for g, w in enumerate(W)),
            tuple(v * usable[:, g] for g, v in enumerate(y)),
            tuple(usable.T),
            motion.q,
            tau,
            np.zeros(len(rows.efforts)),
        )
        return replace(evidence, stretches=(stretch,))

    @classmethod
    def from_log(
        cls,
        mechanism: Mechanism,
        log: Log,
        base: BaseParameters | None = None,
        projection: Projection | Sequence[str] = "gls",
        absent: Sequence[str] = (),
        stretches: int | Repeats | None = None,
        between: tuple[float, float] | None = None,
        **options: Any,
    ) -> Self:
        """Prepare a log as `Regression.from_log`, and keep the rows, the noise of q and the motion that was asked for.

        Parameters
        ----------
        mechanism, log, base, projection, absent, stretches, between, **options
            As of `Regression.from_log`.

        Returns
        -------
        SampledRegression
            The evidence.
        """
        evidence = cast("Self", super().from_log(mechanism, log, base, projection, absent, stretches, between, **options))
        (stretch,) = evidence.stretches
        matched = match(mechanism, log)
        cutoff, t = float(evidence.sources[0]["cutoff"]), stretch.motion.t
        measured = _differentiated(matched.log.t, matched.log.position, t, cutoff, options)
        raw = _at(matched.log.t, matched.log.position, t)
        # What the low-pass took away is noise above the cut-off; white noise has as much density below it.
        share = max(1.0 - 2.0 * cutoff / stretch.rate, 0.1)
        smooth = _differentiated(matched.log.t, matched.log.position, t, cutoff, {**options, "phase": "zero"}).q
        noise = np.sqrt(np.var(raw - smooth, axis=0) / share)
        reference = None
        if matched.log.reference is not None and np.isfinite(matched.log.reference).all():
            asked = _differentiated(matched.log.t, matched.log.reference, t, cutoff, options)
            reference = robot_motion(matched.mechanism, asked)
        found = replace(
            stretch, measured=measured, positions=raw, noise=noise, cutoff=cutoff, options=options, reference=reference
        )
        return replace(evidence, stretches=(found,))

    @classmethod
    def from_logs(
        cls,
        mechanism: Mechanism,
        logs: Sequence[Log] | LogStream,
        base: BaseParameters | None = None,
        projection: Projection | Sequence[str] = "gls",
        absent: Sequence[str] = (),
        **options: Any,
    ) -> Self:
        """Take all logs of a fit in the one band that `Regression.from_logs` chooses for them, and keep the rows.

        Parameters
        ----------
        mechanism, logs, base, projection, absent, **options
            As of `Regression.from_logs`; logs in memory, no stream.

        Returns
        -------
        SampledRegression
            The evidence.
        """
        if isinstance(logs, LogStream):
            raise IdentificationError("rows of a stream are not kept; give logs, or use Regression and an estimator of factors")
        whole = Regression.from_logs(mechanism, logs, base, projection, absent, **options)
        band = {key: whole.sources[0][name] for key, name in (("cutoff", "cutoff"), ("band", "bandwidth"))}
        own = {**band, **{key: value for key, value in options.items() if value != "auto"}}
        parts = [cls.from_log(mechanism, piece, whole.base, projection, absent, **own) for piece in long_pieces(logs)[0]]
        return replace(reduce(add, parts), groups=whole.groups, sources=whole.sources, options=whole.options, notes=whole.notes)

    @classmethod
    def without_effort(
        cls, mechanism: Mechanism, log: Log, base: BaseParameters | None = None, **options: Any
    ) -> SampledRegression:
        """Take the positions of a log that has no usable efforts, for `OutputError(outputs=("position",))`."""
        if mechanism.loops:
            raise IdentificationError(f"robot '{mechanism.name}' has loops; logs without efforts are fitted for trees only")
        # Preparation refuses dead efforts; these are never used.
        kind = "motor_torque" if log.position_side == "motor" else "joint_torque"
        alive = replace(log, effort=log.position, effort_kind=kind, gain=None)
        matched = match(mechanism, alive)
        prepared = signals.prepare(matched.log, **options)
        evidence = cls.from_motion(matched.mechanism, prepared.motion, np.zeros_like(prepared.effort), base, prepared.decimator)
        (stretch,) = evidence.stretches
        raw = _at(matched.log.t, matched.log.position, stretch.motion.t)
        source = {**source_of(log, prepared), "effort_kind": "none"}
        notes = (*matched.notes, *prepared.explanation.splitlines(), "efforts are not used")
        found = replace(stretch, positions=raw, cutoff=prepared.cutoff.frequency, options=options)
        return replace(evidence, sources=(source,), options=dict(options), notes=notes, stretches=(found,))

    def __add__(self, other: Regression) -> Self:
        """Return the evidence of both; both must have kept their rows."""
        merged = cast("Self", super().__add__(other))
        if not isinstance(other, SampledRegression):
            raise IdentificationError("evidence with rows and evidence without them cannot be merged; keep the rows of both")
        names = [group.name for group in merged.groups]
        if any([group.name for group in part.groups] != names for part in (self, other)):
            raise IdentificationError("these two logs have usable efforts of different joints; their rows cannot be merged")
        return replace(merged, stretches=(*self.stretches, *other.stretches))

    def with_rows(self, rows: Sequence[Sequence[tuple[Array, Array]]], counts: Sequence[int] | None = None) -> Regression:
        """Return the evidence of other rows."""
        groups = []
        for g, group in enumerate(self.groups):
            stacked = np.vstack([np.column_stack(part[g]) for part in rows])
            count = group.count if counts is None else counts[g]
            groups.append(RowGroup(group.name, group.columns, triangle(stacked), count, group.independence))
        return Regression(self.base, tuple(groups), self.sources, self.options, self.notes, self.projection)

    def residuals(self, beta: Array) -> list[list[Array]]:
        """Return y - W beta of every stretch and group, zero where rows are not used."""
        return [
            [y - W @ beta[group.columns] for W, y, group in zip(part.W, part.y, self.groups, strict=True)]
            for part in self.stretches
        ]


def sampled(regression: Regression, name: str) -> SampledRegression:
    """Return evidence that has its rows, or say how to get them."""
    if not isinstance(regression, SampledRegression) or not regression.stretches:
        raise IdentificationError(
            f"{name} looks at single rows, which this Regression no longer has; build the evidence with "
            "dynident.identify.SampledRegression.from_log(robot, log)"
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


def rows_along(regression: SampledRegression, stretch: Stretch, motion: Motion) -> list[Array]:
    """Return the rows W of a stretch as they would be along another motion, zero where rows are not used."""
    W, _ = filtered_rows(stretch.rows, motion, None, regression.base, regression.groups, stretch.decimator)
    return [w * used[:, None] for w, used in zip(W, stretch.used, strict=True)]


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
