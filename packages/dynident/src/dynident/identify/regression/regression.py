"""`Regression`: the compressed evidence of logs about the base parameters of a robot."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import reduce
from inspect import signature
from operator import add
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import is_zipfile

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynident.arrays import Array
from dynident.checks import numbers
from dynident.errors import DynidentError, IdentificationError, SignalWarning, require, warn
from dynident.files import read_regular, write_atomic
from dynident.identify.base import BaseParameters, base_parameters, columns_of
from dynident.identify.partitions import warn_of_projection
from dynident.identify.regression.factor import RowGroup, factors_of, triangle
from dynident.identify.regression.matching import Matched, match, robot_motion, shortened
from dynident.identify.regression.rows import Projection, Rows, check_projection, checked_efforts
from dynident.identify.regression.sampled import Stretch, positions_at, stretch_of, with_log
from dynident.identify.regression.stretches import Repeats, added, resting_of
from dynident.mechanics.motion import MotionLike, as_motion
from dynident.mechanism.mechanism import Mechanism
from dynident.signals.filters import Decimator
from dynident.signals.log import Log
from dynident.signals.preparation import Prepared, prepare
from dynident.signals.quality import Finding, note, read_notes, split_at_gaps
from dynident.signals.stream import LogStream


class Recorded(NamedTuple):
    """A log that regression data were made from, and the bodies that the robot did not carry."""

    log: Log
    absent: tuple[str, ...] = ()


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
    notes : tuple of Finding
        Every decision of the preparation, with a code and a sentence.
    projection : str or tuple of str
        How the equations of a robot with loops were projected (see `dynident.identify.regression.rows`).
    logs : tuple of Recorded
        The logs themselves while they are in memory, for `dynident.inspect`; not written to files.
    stretches : tuple of Stretch
        Rows of every log in the order of time, if they were kept (``keep_rows=True``), for estimators that look at single
        rows; not written to files.

    Examples
    --------
    >>> rows = Regression.from_log(robot, log, keep_rows=True)   # doctest: +SKIP
    >>> IRLS().fit(rows).result_                                 # doctest: +SKIP
    """

    base: BaseParameters
    groups: tuple[RowGroup, ...]
    sources: tuple[Mapping[str, Any], ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[Finding, ...] = ()
    projection: Projection = "gls"
    logs: tuple[Recorded, ...] = ()
    stretches: tuple[Stretch, ...] = ()

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
        stretches: int | Repeats | None = None,
        keep_rows: bool = False,
    ) -> Regression:
        """Compress a motion and its efforts."""
        motion = as_motion(motion)
        rows = Rows(mechanism, check_projection(projection), tuple(columns_of(mechanism, absent)) if absent else ())
        tau = checked_efforts(rows, effort, len(motion))
        if mechanism.loops and skip:
            raise IdentificationError(f"efforts of {', '.join(skip)} are missing; a projection needs the efforts of all motors")
        if mechanism.loops and not isinstance(rows.projection, str) and len(mechanism.actuators) > mechanism.dof:
            warn_of_projection(mechanism, motion, rows.projection)
        if base is None:
            base = base_parameters(mechanism)
        elif not same_robot(base, mechanism):
            raise IdentificationError(f"the base parameters given belong to another robot than '{mechanism.name}'")
        filter_ = decimator or Decimator(1, 1.0)
        if filter_.length(len(motion)) < 1:
            raise IdentificationError(f"{len(motion)} samples are too few for a decimation by {filter_.factor}")
        if moving is not None and moving.shape != tau.shape:
            raise IdentificationError(f"moving has shape {moving.shape} but effort has {tau.shape}; they must agree")
        signals = rows.signals(temperature, load, len(motion))
        groups = factors_of(rows, base, motion, tau, filter_, skip, moving, signals, stretches)
        for group in groups:
            check_finite(group.R, group.name)
        kept = (stretch_of(rows, motion, tau, base, groups, filter_, moving),) if keep_rows else ()
        return cls(base, groups, projection=rows.projection, stretches=kept)

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
        keep_rows: bool = False,
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
        stretches : int or Stretches, optional
            See `from_motion`.
        between : tuple of float, optional
            First and last time [s] of the samples whose rows are used; what the log has around them serves the filters only.
            Pieces of a long log that overlap by 16 periods of the cut-off give the evidence of the whole.
        keep_rows : bool
            Whether to keep the rows, for estimators that look at single ones.
        **options
            Passed to `dynident.signals.prepare`.

        Returns
        -------
        Regression
            The evidence, with the notes of every decision.
        """
        matched = Matched(mechanism, log, ()) if _speaks_of(log, mechanism) else match(mechanism, log)
        prepared = prepared_for(Rows(matched.mechanism, check_projection(projection)), matched.log, options)
        if between is not None:
            prepared = part_of(prepared, *between)
        skip = dead_efforts(prepared)
        notes = [*matched.notes, *preparation_notes(prepared)]
        if skip:
            notes.append(note("dead_effort", f"efforts of {', '.join(skip)} are dead and their rows are not used", "warning"))
        if len(skip) == len(prepared.joints):
            raise IdentificationError(f"log '{log.name}': all effort channels are dead; nothing can be identified")
        if not (np.any(prepared.motion.v) or np.any(prepared.motion.a)):
            raise IdentificationError(
                f"log '{log.name}': no joint moves, all positions are constant but for rounding; nothing can be identified, "
                "record a log in which the joints move"
            )
        robot = matched.mechanism
        motion = robot_motion(robot, prepared.motion)
        beside = (prepared.moving, prepared.temperature, prepared.effort)
        evidence = cls.from_motion(
            robot, motion, prepared.filtered, base, prepared.decimator, skip, projection, absent, *beside, stretches, keep_rows
        )
        source = source_of(log, prepared)
        if not robot.loops:
            rows = Rows(evidence.mechanism, absent=tuple(columns_of(evidence.mechanism, tuple(absent))))
            signals = rows.signals(prepared.temperature, prepared.effort, len(motion))
            source["resting"] = resting_of(rows, evidence.base, motion, prepared.filtered, signals, skip)
        rows_of_log = tuple(with_log(part, matched, prepared.cutoff.frequency, options) for part in evidence.stretches)
        kept = {name: value for name, value in options.items() if name != "like"}  # the band is in the source
        return replace(
            evidence,
            sources=(source,),
            options=kept,
            notes=tuple(notes),
            logs=(Recorded(log, tuple(absent)),),
            stretches=rows_of_log,
        )

    @classmethod
    def without_effort(cls, mechanism: Mechanism, log: Log, base: BaseParameters | None = None, **options: Any) -> Regression:
        """Take the positions of a log that has no usable efforts, for `OutputError(outputs=("position",))`; rows are kept."""
        if mechanism.loops:
            raise IdentificationError(f"robot '{mechanism.name}' has loops; logs without efforts are fitted for trees only")
        # Preparation refuses dead efforts; these are never used.
        kind = "motor_torque" if log.position_side == "motor" else "joint_torque"
        matched = match(mechanism, replace(log, effort=log.position, effort_kind=kind, gain=None))
        prepared = prepare(matched.log, **options)
        zero = np.zeros_like(prepared.effort)
        evidence = cls.from_motion(matched.mechanism, prepared.motion, zero, base, prepared.decimator, keep_rows=True)
        (stretch,) = evidence.stretches
        raw = positions_at(matched.log, stretch.motion.t)
        source = {**source_of(log, prepared), "effort_kind": "none"}
        notes = (*matched.notes, *preparation_notes(prepared), note("no_effort", "efforts are not used"))
        found = replace(stretch, positions=raw, cutoff=prepared.cutoff.frequency, options=options)
        return replace(evidence, sources=(source,), options=dict(options), notes=notes, stretches=(found,))

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
        """Compress rows of one's own: any linear model tau = Y phi."""
        base, groups = evidence_of_rows(Y, tau, names, joints, regressor, name, units, independence)
        return cls(base, groups)

    @classmethod
    def from_logs(
        cls,
        mechanism: Mechanism,
        logs: Sequence[Log] | LogStream,
        base: BaseParameters | None = None,
        projection: Projection | Sequence[str] = "gls",
        absent: Sequence[str] = (),
        keep_rows: bool = False,
        **options: Any,
    ) -> Regression:
        """Prepare and compress the logs of one fit, all in one band that is chosen for them together."""
        from dynident.identify.regression.band import evidence_in_one_band  # noqa: PLC0415 - it stands on this class

        if isinstance(logs, LogStream):
            if keep_rows:
                raise IdentificationError("rows of a stream are not kept; give logs, or an estimator that needs no rows")
            return evidence_in_one_band(mechanism, logs, base, projection, absent, options)
        pieces, notes = long_pieces(logs)
        for gap in notes:
            warn(gap.sentence, SignalWarning)
        found = evidence_in_one_band(mechanism, pieces, base, projection, absent, options)
        if notes:
            found = replace(found.joined(), notes=(*found.notes, *notes))
        if not keep_rows:
            return found
        band = {key: found.sources[0][name] for key, name in (("cutoff", "cutoff"), ("band", "bandwidth"))}
        own = {**band, **{key: value for key, value in options.items() if value != "auto"}, "keep_rows": True}
        parts = [cls.from_log(mechanism, piece, found.base, projection, absent, **own) for piece in pieces]
        return replace(found, stretches=reduce(add, parts).stretches)

    def joined(self) -> Regression:
        """Return the evidence with pieces of a log, which have the same checksum, as one source: times and samples of all."""
        return replace(self, sources=joined_sources(self.sources))

    def __add__(self, other: Regression) -> Regression:
        """Return the evidence of both; they must belong to the same robot."""
        require(other, Regression, "the evidence to add")

        return merged(self, other)

    def with_rows(self, rows: Sequence[Sequence[tuple[Array, Array]]], counts: Sequence[int] | None = None) -> Regression:
        """Return regression data of other rows, which are not kept."""
        groups = []
        for g, group in enumerate(self.groups):
            stacked = np.vstack([np.column_stack(part[g]) for part in rows])
            count = group.count if counts is None else counts[g]
            groups.append(RowGroup(group.name, group.columns, triangle(stacked), count, group.independence))
        return replace(self, groups=tuple(groups), logs=(), stretches=())

    def residuals(self, beta: Array) -> list[list[Array]]:
        """Return y - W beta of every stretch and group of the rows that were kept, zero where rows are not used."""
        return [
            [y - W @ beta[group.columns] for W, y, group in zip(part.W, part.y, self.groups, strict=True)]
            for part in self.stretches
        ]

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the evidence to an .npz file (a few hundred kilobytes, whatever the number of samples)."""
        return write_atomic(path, self.to_bytes())

    @classmethod
    def load(cls, path: str | os.PathLike[str], mechanism: Mechanism) -> Regression:
        """Read what `save` wrote."""
        return load_regression(path, mechanism)

    def to_bytes(self) -> bytes:
        """Return the evidence as the bytes of the .npz file that `save` writes, to be sent to another machine."""
        return packed(self)

    @classmethod
    def from_bytes(cls, content: bytes, mechanism: Mechanism, base: BaseParameters | None = None) -> Regression:
        """Return the evidence of `to_bytes`."""
        return load_regression(content, mechanism, base)


def check_finite(values: Array, joint: str) -> None:
    """Refuse equations that a user's expression makes NaN or infinite."""
    if not np.isfinite(values).all():
        raise IdentificationError(
            f"the equations of joint '{joint}' are not finite along this motion; check the expressions of its friction and "
            "forces, such as log or sqrt of what becomes negative"
        )


def same_robot(base: BaseParameters, mechanism: Mechanism) -> bool:
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


def preparation_notes(prepared: Prepared) -> list[Finding]:
    """Return what the preparation of a log decided."""
    return [note("preparation", line) for line in prepared.explanation.splitlines()]


def prepared_for(rows: Rows, log: Log, options: Mapping[str, Any]) -> Prepared:
    """Return a prepared log; rows are shortened where few of the long ones have no standing joint in them."""
    known = [name for name in signature(prepare).parameters if name != "log"]
    if unknown := sorted(set(options) - set(known)):
        raise IdentificationError(f"unknown option {', '.join(map(repr, unknown))}; options of prepare are {', '.join(known)}")
    found = prepare(log, **options)
    if found.moving is not None and options.get("decimation", "auto") == "auto":
        return shortened(rows, log, found, options)
    return found


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


WORTH = 0.25  # of the longest piece of a log with gaps: a shorter one would widen the band of all


def merged(one: Regression, other: Regression) -> Regression:
    """Return the evidence of both; `one + other` is the public way."""
    if one.mechanism.parameters.names != other.mechanism.parameters.names:
        raise IdentificationError(
            f"evidence of robot '{one.mechanism.name}' and of '{other.mechanism.name}' cannot be merged: parameters differ"
        )
    if not np.array_equal(one.base.columns, other.base.columns):
        raise IdentificationError("these two Regressions use different base parameters; build both with the same base=")
    if not same_robot(other.base, one.mechanism):
        raise IdentificationError(
            f"evidence of robot '{one.mechanism.name}' and of '{other.mechanism.name}' cannot be merged: geometry, "
            "gravity or terms differ"
        )
    mine = {group.name: group for group in one.groups}
    theirs = {group.name: group for group in other.groups}
    if one.projection != other.projection:
        raise IdentificationError(f"evidence projected on {one.projection} and on {other.projection} cannot be merged")
    names = [name for name in Rows(one.mechanism, one.projection).names if name in mine or name in theirs]
    if bool(one.stretches) != bool(other.stretches):
        raise IdentificationError("regression data with rows and without them cannot be merged; keep the rows of both")
    if one.stretches and not set(mine) == set(theirs) == set(names):
        raise IdentificationError("these two logs have usable efforts of different joints; their rows cannot be merged")
    before, after = (max(len(group.counts) for group in part.groups) for part in (one, other))
    groups = []
    for name in names:
        if name in mine and name in theirs:
            groups.append(mine[name].merge(theirs[name]).fewer())
        elif name in mine:
            groups.append(mine[name].padded(0, after).fewer())
        else:
            groups.append(theirs[name].padded(before, 0).fewer())
    return replace(
        one,
        groups=tuple(groups),
        sources=(*one.sources, *other.sources),
        notes=tuple(dict.fromkeys((*one.notes, *other.notes))),
        logs=(*one.logs, *other.logs),
        stretches=(*one.stretches, *other.stretches),
    )


def joined_sources(sources: Sequence[Mapping[str, Any]]) -> tuple[Mapping[str, Any], ...]:
    """Return sources of which pieces of the same log are one."""
    found: dict[str, Mapping[str, Any]] = {}
    for source in sources:
        key = str(source["sha256"])
        found[key] = joined_source(found[key], source) if key in found else dict(source)
    return tuple(found.values())


def joined_source(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """Return two pieces of a log as one source."""
    start, end = min(one["start"], other["start"]), max(one["end"], other["end"])
    samples = one["samples"] + other["samples"]
    return {**one, "start": start, "end": end, "samples": samples, "resting": added(one, other)}


def long_pieces(logs: Sequence[Log]) -> tuple[list[Log], list[Finding]]:
    """Return logs of which those with gaps are cut into their long pieces, and notes about what is used of these."""
    found, notes = [], list[Finding]()
    for log in logs:
        require(log, Log, "log")
        pieces = split_at_gaps(log)
        longest = max((len(piece) for piece in pieces), default=0)
        worth = [piece for piece in pieces if len(piece) >= WORTH * longest]
        if len(worth) < 2:
            found.append(log)
            continue
        found += worth
        used = sum(piece.duration for piece in worth)
        text = f"log '{log.name}' has gaps: {len(worth)} pieces, {used:.4g} s of {log.duration:.4g} s, are used"
        notes.append(note("gaps", text, "warning"))
    return found, notes


def part_of(prepared: Prepared, first: float, last: float) -> Prepared:
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


def same_band(sources: tuple[Mapping[str, Any], ...], rate: float) -> dict[str, Any]:
    """Return the options of `prepare` that put another log into the band in which the evidence was taken."""
    if not sources:
        return {}
    cutoff = max(float(s["cutoff"]) for s in sources)
    bandwidth = max(float(s["bandwidth"]) for s in sources)
    return {"cutoff": min(cutoff, 0.4 * rate), "band": min(bandwidth, 0.5 * rate), "decimation": "auto"}


def evidence_of_rows(
    Y: ArrayLike,
    tau: ArrayLike,
    names: Sequence[str],
    joints: Sequence[str],
    regressor: Callable[[Array, Array, Array], Array] | None,
    name: str,
    units: Sequence[str],
    independence: float,
) -> tuple[BaseParameters, tuple[RowGroup, ...]]:
    """Return parameters and factors of rows; `Regression.from_rows` is the public way."""
    rows, effort = own_rows(Y, tau, len(names))
    if not 0.0 < independence <= 1.0:
        raise IdentificationError(f"independence is {independence:g}; give independent rows per row, above 0 and up to 1")
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
    return base, tuple(groups)


def own_rows(Y: ArrayLike, tau: ArrayLike, count: int) -> tuple[Array, Array]:
    """Return rows and efforts of one's own as (N, n, m) and (N, n) after checking them."""
    rows, effort = numbers(Y, "Y"), numbers(tau, "tau")
    rows = rows[:, None, :] if rows.ndim == 2 else rows
    effort = effort[:, None] if effort.ndim == 1 else effort
    if rows.ndim != 3 or rows.shape[:2] != effort.shape or rows.shape[2] != count:
        raise IdentificationError(
            f"Y has shape {np.shape(Y)} and tau {np.shape(tau)} for {count} names; give (N, n, {count}) and (N, n)"
        )
    if not rows.size:
        raise IdentificationError(
            f"Y has shape {np.shape(Y)}, so there is nothing to learn from; give at least one row and name"
        )
    for label, values in (("Y", rows), ("tau", effort)):
        if not np.isfinite(values).all():
            raise IdentificationError(
                f"{label} is not finite at sample {int(np.argwhere(~np.isfinite(values))[0][0])}; remove it"
            )
    return rows, effort


MOST = 1 << 30  # bytes that the arrays of a file may fill; a robot of a hundred joints needs a tenth


def packed(regression: Regression) -> bytes:
    """Return evidence as the bytes of its file; `Regression.to_bytes` is the public way."""
    arrays: dict[str, Any] = {"columns": regression.base.columns, "fingerprint": regression.base.fingerprint()}
    for i, group in enumerate(regression.groups):
        arrays[f"R{i}"], arrays[f"columns{i}"], arrays[f"products{i}"] = group.R, group.columns, group.products
    about = {
        "format": "dynident-regression-2",
        "parameters": list(regression.mechanism.parameters.names),
        "groups": [
            [group.name, group.count, group.independence, list(group.counts), list(group.phases)] for group in regression.groups
        ],
        "sources": [dict(source) for source in regression.sources],
        "options": dict(regression.options),
        "notes": [asdict(each) for each in regression.notes],
        "projection": regression.projection if isinstance(regression.projection, str) else list(regression.projection),
    }
    buffer = io.BytesIO()
    np.savez_compressed(buffer, about=np.frombuffer(json.dumps(about).encode(), dtype=np.uint8), **arrays)
    return buffer.getvalue()


def load_regression(
    path: str | os.PathLike[str] | bytes, mechanism: Mechanism, known: BaseParameters | None = None
) -> Regression:
    """Read what `packed` made, or its file; `Regression.load` and `Regression.from_bytes` are the public ways."""
    what = "the bytes" if isinstance(path, bytes) else f"'{os.fspath(path)}'"
    try:
        content = io.BytesIO(path if isinstance(path, bytes) else read_regular(path, MOST))
        if not is_zipfile(content):
            raise IdentificationError(f"{what} is not a Regression file: it is no npz archive, or was cut short")
        content.seek(0)
        with np.load(content, allow_pickle=False) as data:
            size = sum(entry.file_size for entry in data.zip.infolist())
            if size > MOST:
                raise IdentificationError(f"{what} would unpack to {size >> 20} MB; no evidence is that large")
            about = json.loads(bytes(data["about"]).decode())
            if about.get("format") != "dynident-regression-2":
                raise IdentificationError(f"{what} is not a Regression file")
            groups = tuple(
                RowGroup(
                    name,
                    data[f"columns{i}"],
                    data[f"R{i}"],
                    int(count),
                    float(independence),
                    data[f"products{i}"],
                    *(tuple(each) for each in stretches),  # counts, and phases since 0.3
                )
                for i, (name, count, independence, *stretches) in enumerate(about["groups"])
            )
            columns, fingerprint = data["columns"], data["fingerprint"]
            names, sources, options, notes = (about[key] for key in ("parameters", "sources", "options", "notes"))
            projection = check_projection(about["projection"])
    except DynidentError:
        raise
    except Exception as error:  # a damaged archive fails in a hundred ways, Python's tokenizer among them
        why = getattr(error, "strerror", None) or f"it is damaged or something else ({type(error).__name__})"
        raise IdentificationError(f"cannot read {what} as a Regression: {why}; save the evidence again") from error
    if tuple(names) != mechanism.parameters.names:
        raise IdentificationError(f"{what} belongs to another robot than '{mechanism.name}': parameter names differ")
    if columns.ndim != 1 or columns.dtype.kind not in "iu" or not np.isin(columns, np.arange(len(names))).all():
        raise IdentificationError(f"cannot read {what} as a Regression: its columns are no parameters of the robot")
    base = known or base_parameters(mechanism, order=[mechanism.parameters.names[c] for c in columns])
    if not np.array_equal(base.columns, columns) or not base.fits(fingerprint):
        raise IdentificationError(
            f"{what} belongs to another robot than '{mechanism.name}': its geometry, gravity or terms differ"
        )
    return Regression(base, groups, tuple(sources), options, read_notes(notes), projection)
