"""`Regression`: the compressed evidence of logs about the base parameters of a robot."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynident.checks import numbers
from dynident.errors import IdentificationError, require
from dynident.identify.base import BaseParameters, base_parameters, columns_of, random_motion
from dynident.identify.clipping import false_channels
from dynident.identify.factor import Relation, RowGroup, Tile, Workspace, accumulate, block_edges, triangle
from dynident.identify.matching import Matched, match
from dynident.identify.partitions import warn_of_projection
from dynident.identify.rows import FEW, Projection, Rows, check_projection, moving_rows
from dynident.identify.specimen import Specimen, added
from dynident.identify.suspicions import HEAD, check_finite, suspicions
from dynident.mechanics import Motion, MotionLike, as_motion, closure_starts, motion_from_actuators
from dynident.mechanism import Mechanism
from dynident.signals import Decimator, Log, LogStream, Prepared, prepare

Array = NDArray[np.float64]

ROWS = 1024  # samples per tile at most
CACHE = 260_000  # bytes of rows of a tile: they are read soon after they are written, and should still be in the cache
SHORTEST = 128  # samples of a tile at least, for what it costs to begin one
FEWEST = 96  # rows per tile after decimation: the filter's ends are computed for every tile


@dataclass(frozen=True, eq=False)
class Regression:
    """Evidence: one triangular factor of [W_base, tau] per row group.

    Everything that least squares needs, whatever the weights, without the samples. Merging logs is adding Regressions.

    Parameters
    ----------
    base : BaseParameters
        Base parameters (and the robot) that the columns stand for.
    groups : tuple of RowGroup
        One per joint that has usable efforts.
    sources : tuple of mapping
        Where the evidence comes from: name, sha256, first and last time, number of rows.
    options : mapping
        Options of `dynident.signals.prepare` that were used, to score other logs alike.
    notes : tuple of str
        Every decision of the preparation, in words.
    projection : str or tuple of str
        How the equations of a robot with loops were projected (see `dynident.identify.rows`).
    """

    base: BaseParameters
    groups: tuple[RowGroup, ...]
    sources: tuple[Mapping[str, Any], ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    projection: Projection = "gls"

    def __repr__(self) -> str:
        logs = ", ".join(str(source["name"]) for source in self.sources) or "motions"
        count = f"{self.rows} equations for {self.base.rank} base parameters"
        return f"Regression(robot '{self.mechanism.name}': {count}, from {logs})"

    @property
    def mechanism(self) -> Mechanism:
        """The robot."""
        return self.base.mechanism

    @property
    def rows(self) -> int:
        """Number of scalar equations."""
        return sum(group.count for group in self.groups)

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
        temperature: Array | None = None,
        load: Array | None = None,
        stretches: int | None = None,
    ) -> Regression:
        """Compress a motion and its efforts.

        Parameters
        ----------
        mechanism : Mechanism
            Robot with n coordinates.
        motion : Motion or (q, v, a)
            N samples.
        effort : array_like, (N, n) or (N, k)
            Measured joint torques and forces [N m, N]; of the k motors when the robot has loops, or more motors than joints.
        base : BaseParameters, optional
            Base parameters; found when omitted.
        decimator : Decimator, optional
            Parallel filter applied to regressor columns and efforts alike.
        skip : tuple of str
            Joints of a tree robot whose efforts are not to be used.
        projection : str or sequence of str
            Equations of a robot with loops: "gls", "independent" or the names of motors (see `dynident.identify.rows`).
        absent : sequence of str
            Bodies with parameters of their own that were not there, such as a payload in a run without it.
        moving : ndarray of bool, (N, n) or (N, k), optional
            False where the equation of a joint (of a motor with loops) is not to be used, because it stands and its friction
            is not known.
        temperature, load : ndarray, (N, n) or (N, k), optional
            Temperature [degree Celsius] and load [N m or N] of the joints (of the motors with loops), where friction laws need
            them.
        stretches : int, optional
            Number of contiguous stretches of time whose evidence is kept apart; up to 12 when omitted, with 12 rows each.

        Returns
        -------
        Regression
            The evidence.
        """
        motion = as_motion(motion)
        rows = Rows(mechanism, check_projection(projection), tuple(columns_of(mechanism, absent)) if absent else ())
        tau = numbers(effort, "effort")
        motors = len(mechanism.actuators)
        if not mechanism.loops and motors > mechanism.dof and tau.shape == (len(motion), motors):
            tau = tau @ mechanism.actuator_matrix[0]  # a preload of redundant motors drops out
        if tau.shape != (len(motion), len(rows.efforts)):
            if mechanism.loops:
                raise IdentificationError(
                    f"effort has shape {tau.shape} for {len(motion)} samples, but robot '{mechanism.name}' has "
                    f"{len(rows.efforts)} motors ({', '.join(rows.efforts)}); give the torque of each: projection= brings "
                    f"them to its {mechanism.dof} degrees of freedom"
                )
            raise IdentificationError(
                f"effort has shape {tau.shape} but the motion has shape {motion.q.shape}; they must agree"
            )
        if mechanism.loops and skip:
            raise IdentificationError(f"efforts of {', '.join(skip)} are missing; a projection needs the efforts of all motors")
        if not np.all(np.isfinite(tau)):
            bad = int(np.argwhere(~np.isfinite(tau))[0][0])
            raise IdentificationError(f"effort is not finite at sample {bad}; remove or interpolate it")
        if mechanism.loops and not isinstance(rows.projection, str) and motors > mechanism.dof:
            warn_of_projection(mechanism, motion, rows.projection)
        if base is None:
            base = base_parameters(mechanism)
        elif not _same(base, mechanism):
            raise IdentificationError(f"the base parameters given belong to another robot than '{mechanism.name}'")
        filter_ = decimator or Decimator(1, 1.0)
        if filter_.length(len(motion)) < 1:
            raise IdentificationError(f"{len(motion)} samples are too few for a decimation by {filter_.factor}")
        compiled = rows.compiled(base.columns)
        spans = list(filter_.tiles(len(motion), tile_length(compiled.height, filter_.factor, bool(mechanism.loops))))
        starts: Sequence[Array | None] = [None] * len(spans)
        if mechanism.loops:  # the branch is followed once through all samples; then every tile stands alone
            starts = closure_starts(mechanism, motion.q, [piece.start for piece, _ in spans])
        used = [i for i, name in enumerate(rows.names) if name not in skip]
        fit_for_use = None
        if moving is not None:
            if moving.shape != tau.shape:
                raise IdentificationError(f"moving has shape {moving.shape} but effort has {tau.shape}; they must agree")
            fit_for_use = moving_rows(rows.usable(moving)[:, used], filter_, [rows.names[i] for i in used])
        into = compiled.over(motion, tau, signals=rows.signals(temperature, load, len(motion)))
        seen = rows.seen(base.seen)
        columns = [np.intersect1d(compiled.seen[i], np.flatnonzero(seen[i])) for i in used]
        whole = [slice(compiled.first[i], compiled.first[i] + compiled.seen[i].size + 1) for i in used]
        places = [
            np.append(own.start + np.flatnonzero(np.isin(compiled.seen[i], mine)), own.stop - 1)
            for i, own, mine in zip(used, whole, columns, strict=True)
        ]
        absent_columns = np.flatnonzero(np.isin(base.columns, rows.absent))
        zero = [
            first + np.flatnonzero(np.isin(own, absent_columns))
            for own, first in zip(compiled.seen, compiled.first, strict=True)
        ]
        gone = np.concatenate(zero)

        def tile(piece: slice, outputs: slice, start: Array | None) -> Tile:
            def compute(work: Workspace) -> Array:
                samples = piece.stop - piece.start
                flat = work.rows("rows", compiled.height, samples)
                work.once(("write", samples), lambda: into(flat))(piece, start)
                if filter_.factor > 1:
                    flat = filter_.apply_rows(flat, work.rows("filtered", compiled.height, outputs.stop - outputs.start))
                if gone.size:
                    flat[gone] = 0.0
                if fit_for_use is not None:
                    for k, own in enumerate(whole):
                        flat[own] *= fit_for_use[outputs, k]
                return flat

            return compute

        tiles = [tile(piece, outputs, start) for (piece, outputs), start in zip(spans, starts, strict=True)]
        names = [rows.names[i] for i in used]

        def relation(k: int) -> Relation:
            return compiled.relation(
                used[k], columns[k], lambda: random_motion(mechanism, 2 * max(c.size for c in columns) + 8)
            )

        times = [outputs for _, outputs in spans]
        groups = accumulate(
            names, columns, tiles, filter_.independence, None if gone.size else relation, places, times, stretches
        )
        for group in groups:
            check_finite(group.R, group.name)
        if fit_for_use is not None:
            edges = block_edges(len(fit_for_use), stretches)
            inside = np.add.reduceat(fit_for_use.astype(np.int64), edges[:-1], axis=0).T.tolist()
            groups = tuple(replace(group, count=sum(n), counts=tuple(n)) for group, n in zip(groups, inside, strict=True))
        return cls(base, groups, projection=rows.projection)

    @classmethod
    def from_log(
        cls,
        mechanism: Mechanism,
        log: Log,
        base: BaseParameters | None = None,
        projection: Projection | Sequence[str] = "gls",
        absent: Sequence[str] = (),
        stretches: int | None = None,
        between: tuple[float, float] | None = None,
        **options: Any,
    ) -> Regression:
        """Prepare a log (check, filter, differentiate, decimate) and compress it.

        Parameters
        ----------
        mechanism : Mechanism
            Robot; joints that the log does not have are held at zero.
        log : Log
            What was measured.
        base : BaseParameters, optional
            Base parameters; found when omitted.
        projection : str or sequence of str
            Equations of a robot with loops, see `from_motion`.
        absent : sequence of str
            Bodies that were not there, see `from_motion`.
        stretches : int, optional
            See `from_motion`.
        between : tuple of float, optional
            First and last time [s] of the samples whose rows are used; what the log has around them serves the filters only.
            Pieces of a long log that overlap by 16 periods of the cut-off give the evidence of the whole.
        **options
            Passed to `dynident.signals.prepare`.

        Returns
        -------
        Regression
            The evidence, with the notes of every decision.
        """
        matched = Matched(mechanism, log, ()) if _speaks_of(log, mechanism) else match(mechanism, log)
        prepared = prepared_for(Rows(matched.mechanism, check_projection(projection)), matched.log, options)
        prepared = prepared if between is None else _part(prepared, *between)
        skip = dead_efforts(prepared)
        notes = [*matched.notes, *prepared.explanation.splitlines()]
        if skip:
            notes.append(f"efforts of {', '.join(skip)} are dead and their rows are not used")
        if len(skip) == len(prepared.joints):
            raise IdentificationError(f"log '{log.name}': all effort channels are dead; nothing can be identified")
        if not (np.any(prepared.motion.v) or np.any(prepared.motion.a)):
            raise IdentificationError(
                f"log '{log.name}': no joint moves, all positions are constant but for rounding; nothing can be identified, "
                "record a log in which the joints move"
            )
        robot = matched.mechanism
        motion = robot_motion(robot, prepared.motion)
        evidence = cls.from_motion(
            robot,
            motion,
            prepared.filtered,
            base,
            prepared.decimator,
            skip,
            projection,
            absent,
            prepared.moving,
            prepared.temperature,
            prepared.effort,
            stretches,
        )
        source = source_of(log, prepared)
        if not matched.mechanism.loops:
            rows = Rows(evidence.mechanism, absent=tuple(columns_of(evidence.mechanism, tuple(absent))))
            signals = rows.signals(prepared.temperature, prepared.effort, len(motion))
            independent = min(group.count * group.independence for group in evidence.groups)
            specimen = Specimen.of(rows, evidence.base, motion, prepared.filtered, signals, skip)
            false = tuple(f"{HEAD}{text}" for text in false_channels(matched.log, prepared.quality, specimen))
            notes += false or suspicions(rows, evidence.base, motion, prepared.filtered, specimen, independent)
            source["resting"] = specimen.resting()
        kept = {name: value for name, value in options.items() if name != "like"}  # the band is in the source
        return replace(evidence, sources=(source,), options=kept, notes=tuple(notes))

    @classmethod
    def from_rows(
        cls,
        Y: ArrayLike,
        tau: ArrayLike,
        names: Sequence[str],
        joints: Sequence[str] = (),
        regressor: Callable[[Array, Array, Array], Array] | None = None,
        name: str = "robot",
        units: Sequence[str] = (),
        independence: float = 1.0,
    ) -> Regression:
        """Compress rows of one's own: any linear model tau = Y phi.

        Parameters
        ----------
        Y : array_like, (N, n, m) or (N, m)
            Regressor of N samples and n equations each.
        tau : array_like, (N, n) or (N,)
            Measured efforts.
        names : sequence of str
            Names of the m parameters.
        joints : sequence of str
            Names of the equations; ``joint_1``, ... when omitted.
        regressor : callable, optional
            ``regressor(q, v, a)`` with (N, n) arrays returns Y (N, n, m): with it a fit predicts motions and scores logs.
        name : str
            Name of the robot.
        units : sequence of str
            Unit of each parameter.
        independence : float
            Effective number of independent rows per row; below 1 when the rows were low-passed together.

        Returns
        -------
        Regression
            The evidence; `Fit.score_rows` compares a fit with other rows.

        Examples
        --------
        >>> import numpy as np, dynident as di
        >>> x = np.linspace(0.0, 1.0, 50)
        >>> evidence = di.Regression.from_rows(np.column_stack([x, x**2]), 2 * x - 3 * x**2, ["slope", "bend"])
        >>> di.OLS().fit(evidence).coef_.round(6)
        array([ 2., -3.])
        """
        rows, effort = own_rows(Y, tau, len(names))
        labels = tuple(joints) or tuple(f"joint_{i + 1}" for i in range(effort.shape[1]))
        if len(labels) != effort.shape[1]:
            raise IdentificationError(f"{len(labels)} joints are named but tau has {effort.shape[1]} columns; they must agree")
        robot = Mechanism.from_regressor(names, regressor, labels, name, units)
        base = replace(base_parameters(robot), seen=np.any(rows != 0.0, axis=0))
        groups = []
        for i, label in enumerate(labels):
            own = np.flatnonzero(base.seen[i])
            R = triangle(np.column_stack([rows[:, i, own], effort[:, i]]))
            groups.append(RowGroup(label, own, R, rows.shape[0], independence))
        return cls(base, tuple(groups))

    @classmethod
    def from_logs(
        cls,
        mechanism: Mechanism,
        logs: Sequence[Log] | LogStream,
        base: BaseParameters | None = None,
        projection: Projection | Sequence[str] = "gls",
        absent: Sequence[str] = (),
        **options: Any,
    ) -> Regression:
        """Prepare and compress the logs of one fit, all in one band that is chosen for them together.

        Parameters
        ----------
        mechanism : Mechanism
            Robot; joints that the logs do not have are held at zero.
        logs : sequence of Log, or LogStream
            What was measured. Of a stream one piece is in memory at a time; the band is that of its first piece.
        base : BaseParameters, optional
            Base parameters; found when omitted.
        projection : str or sequence of str
            Equations of a robot with loops, see `from_motion`.
        absent : sequence of str
            Bodies that were not there, see `from_motion`.
        **options
            Passed to `dynident.signals.prepare`.

        Returns
        -------
        Regression
            The evidence of all logs, with the notes of every decision.
        """
        from dynident.identify.band import evidence_in_one_band  # noqa: PLC0415 - it stands on this class

        return evidence_in_one_band(mechanism, logs, base, projection, absent, options)

    def joined(self) -> Regression:
        """Return the evidence with pieces of the same log, which have the same checksum, as one source.

        Returns
        -------
        Regression
            The same factors; times and numbers of samples are those of all pieces.
        """
        merged: dict[str, dict[str, Any]] = {}
        for source in self.sources:
            key = str(source["sha256"])
            merged[key] = joined_source(merged[key], source) if key in merged else dict(source)
        return replace(self, sources=tuple(merged.values()))

    def __add__(self, other: Regression) -> Regression:
        """Return the evidence of both; they must belong to the same robot."""
        require(other, Regression, "the evidence to add")
        if self.mechanism.parameters.names != other.mechanism.parameters.names:
            raise IdentificationError(
                f"evidence of robot '{self.mechanism.name}' and of '{other.mechanism.name}' cannot be merged: parameters differ"
            )
        if not np.array_equal(self.base.columns, other.base.columns):
            raise IdentificationError("these two Regressions use different base parameters; build both with the same base=")
        if not _same(other.base, self.mechanism):
            raise IdentificationError(
                f"evidence of robot '{self.mechanism.name}' and of '{other.mechanism.name}' cannot be merged: geometry, "
                "gravity or terms differ"
            )
        mine = {group.name: group for group in self.groups}
        theirs = {group.name: group for group in other.groups}
        if self.projection != other.projection:
            raise IdentificationError(f"evidence projected on {self.projection} and on {other.projection} cannot be merged")
        names = [name for name in Rows(self.mechanism, self.projection).names if name in mine or name in theirs]
        before, after = (max(len(group.counts) for group in part.groups) for part in (self, other))
        groups = []
        for name in names:
            if name in mine and name in theirs:
                groups.append(mine[name].merge(theirs[name]).fewer())
            elif name in mine:
                groups.append(mine[name].padded(0, after).fewer())
            else:
                groups.append(theirs[name].padded(before, 0).fewer())
        return replace(
            self,
            groups=tuple(groups),
            sources=(*self.sources, *other.sources),
            notes=tuple(dict.fromkeys((*self.notes, *other.notes))),
        )

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the evidence to an .npz file (a few hundred kilobytes, whatever the number of samples).

        Parameters
        ----------
        path : path-like
            File to write.

        Returns
        -------
        pathlib.Path
            The file.
        """
        from dynident.identify.regression_file import save_regression  # noqa: PLC0415 - it needs this class

        return save_regression(self, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str], mechanism: Mechanism) -> Regression:
        """Read what `save` wrote.

        Parameters
        ----------
        path : path-like
            File.
        mechanism : Mechanism
            The robot it belongs to, with the same joints moving.

        Returns
        -------
        Regression
            The same evidence.
        """
        from dynident.identify.regression_file import load_regression  # noqa: PLC0415 - it needs this class

        return load_regression(path, mechanism)

    def to_bytes(self) -> bytes:
        """Return the evidence as the bytes of the .npz file that `save` writes, to be sent to another machine."""
        from dynident.identify.regression_file import packed  # noqa: PLC0415 - it needs this class

        return packed(self)

    @classmethod
    def from_bytes(cls, content: bytes, mechanism: Mechanism, base: BaseParameters | None = None) -> Regression:
        """Return the evidence of `to_bytes`.

        Parameters
        ----------
        content : bytes
            What `to_bytes` returned.
        mechanism : Mechanism
            The robot it belongs to, with the same joints moving.
        base : BaseParameters, optional
            Its base parameters; found when omitted.

        Returns
        -------
        Regression
            The same evidence.
        """
        from dynident.identify.regression_file import load_regression  # noqa: PLC0415 - it needs this class

        return load_regression(content, mechanism, base)


def tile_length(height: int, factor: int, loops: bool) -> int:
    """Return how many rows after decimation a tile has: few where they stay in the cache, many where beginning one costs."""
    if factor > 1 or loops:
        return max(ROWS // factor, FEWEST)
    return int(np.clip(CACHE // (8 * height) // 32 * 32, SHORTEST, ROWS))


def _same(base: BaseParameters, mechanism: Mechanism) -> bool:
    """Return whether base parameters belong to a robot; its parameter values do not matter."""
    if base.mechanism is mechanism:
        return True
    if base.mechanism.parameters.names != mechanism.parameters.names or base.mechanism.dof != mechanism.dof:
        return False
    return base.fits(replace(base, mechanism=mechanism).fingerprint())


def _speaks_of(log: Log, robot: Mechanism) -> bool:
    """Return whether a log has generalised efforts of a tree robot's own coordinates, in their order."""
    on_joints = (log.effort_kind, log.position_side) == ("joint_torque", "joint") and log.gain is None
    return on_joints and not robot.loops and log.joints == robot.coordinate_names


def _part(prepared: Prepared, first: float, last: float) -> Prepared:
    """Return what was prepared of the samples between two times."""
    t, half = prepared.motion.t, 0.5 / prepared.rate
    own = slice(int(np.searchsorted(t, first - half)), int(np.searchsorted(t, last + half)))
    if prepared.decimator.length(own.stop - own.start) < 1:
        raise IdentificationError(
            f"between {first:.6g} s and {last:.6g} s {own.stop - own.start} samples can be used, fewer than the "
            f"{prepared.decimator.taps.size} that a row of the decimation needs; give a longer part"
        )
    return replace(
        prepared,
        motion=prepared.motion[own],
        effort=prepared.effort[own],
        filtered=prepared.filtered[own],
        temperature=None if prepared.temperature is None else prepared.temperature[own],
        moving=None if prepared.moving is None else prepared.moving[own],
    )


def own_rows(Y: ArrayLike, tau: ArrayLike, count: int) -> tuple[Array, Array]:
    """Return rows and efforts of one's own as (N, n, m) and (N, n) after checking them."""
    rows, effort = numbers(Y, "Y"), numbers(tau, "tau")
    rows = rows[:, None, :] if rows.ndim == 2 else rows
    effort = effort[:, None] if effort.ndim == 1 else effort
    if rows.ndim != 3 or rows.shape[:2] != effort.shape or rows.shape[2] != count:
        raise IdentificationError(
            f"Y has shape {np.shape(Y)} and tau {np.shape(tau)} for {count} names; give (N, n, {count}) and (N, n)"
        )
    for label, values in (("Y", rows), ("tau", effort)):
        if not np.isfinite(values).all():
            raise IdentificationError(
                f"{label} is not finite at sample {int(np.argwhere(~np.isfinite(values))[0][0])}; remove it"
            )
    return rows, effort


def robot_motion(mechanism: Mechanism, measured: Motion) -> Motion:
    """Return the motion of the robot's coordinates from what was measured: the same for a tree, from the motors with loops."""
    return motion_from_actuators(mechanism, measured) if mechanism.loops else measured


def prepared_for(rows: Rows, log: Log, options: Mapping[str, Any]) -> Prepared:
    """Return a prepared log; where leaving out standing joints would leave few of the long rows, rows are shortened.

    All motors of a robot with loops must move for a row to hold, which they rarely do for as long as a decimated row averages
    over: its rows are then single samples. Those of other robots are halved until enough hold, so that they still average.
    """
    known = [name for name in signature(prepare).parameters if name != "log"]
    if unknown := sorted(set(options) - set(known)):
        raise IdentificationError(f"unknown option {', '.join(map(repr, unknown))}; options of prepare are {', '.join(known)}")
    found = prepare(log, **options)
    if found.moving is None or options.get("decimation", "auto") != "auto":
        return found
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


def dead_efforts(prepared: Prepared) -> tuple[str, ...]:
    """Return the channels whose effort says nothing."""
    dead = {finding.channel for finding in prepared.quality.findings if finding.kind == "dead"}
    return tuple(joint for joint in prepared.joints if f"effort:{joint}" in dead)


def source_of(log: Log, prepared: Prepared) -> dict[str, Any]:
    """Return what identifies the samples used: file, time span, rows."""
    return {
        "name": log.name,
        "sha256": log.checksum(),
        "start": float(prepared.motion.t[0]),
        "end": float(prepared.motion.t[-1]),
        "samples": len(prepared),
        "rate": prepared.rate,
        "cutoff": prepared.cutoff.frequency,
        "bandwidth": prepared.decimator.cutoff,
        "effort_kind": log.effort_kind,
    }


def joined_source(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """Return two pieces of a log as one source."""
    start, end = min(one["start"], other["start"]), max(one["end"], other["end"])
    samples = one["samples"] + other["samples"]
    return {**one, "start": start, "end": end, "samples": samples, "resting": added(one, other)}


def same_band(sources: tuple[Mapping[str, Any], ...], rate: float) -> dict[str, Any]:
    """Return the options of `prepare` that put another log into the band in which the evidence was taken."""
    if not sources:
        return {}
    cutoff = max(float(s["cutoff"]) for s in sources)
    bandwidth = max(float(s["bandwidth"]) for s in sources)
    return {"cutoff": min(cutoff, 0.4 * rate), "band": min(bandwidth, 0.5 * rate), "decimation": "auto"}
