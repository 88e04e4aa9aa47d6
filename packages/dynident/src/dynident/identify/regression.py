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

from dynident.errors import IdentificationError, SignalWarning, require, warn
from dynident.files import write_atomic
from dynident.identify.base import BaseParameters, columns_of
from dynident.identify.factor import RowGroup, factors_of
from dynident.identify.findings import HEAD
from dynident.identify.matching import Matched, match
from dynident.identify.partitions import warn_of_projection
from dynident.identify.regrouping import base_parameters
from dynident.identify.repeats import Repeats
from dynident.identify.rows import Projection, Rows, check_projection, checked_efforts
from dynident.identify.specimen import Specimen, false_channels
from dynident.identify.suspicions import check_finite, suspicions
from dynident.mechanics.closure import motion_from_actuators
from dynident.mechanics.motion import Motion, MotionLike, as_motion
from dynident.mechanism.mechanism import Mechanism
from dynident.signals.filters import Decimator
from dynident.signals.log import Log
from dynident.signals.preparation import Prepared, prepare
from dynident.signals.stream import LogStream

Array = NDArray[np.float64]


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
        stretches: int | Repeats | None = None,
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
        return cls(base, groups, projection=rows.projection)

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
            from dynident.identify.merging import part_of  # noqa: PLC0415 - it needs this class

            prepared = part_of(prepared, *between)
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
        beside = (prepared.moving, prepared.temperature, prepared.effort)
        evidence = cls.from_motion(
            robot, motion, prepared.filtered, base, prepared.decimator, skip, projection, absent, *beside, stretches
        )
        source = source_of(log, prepared)
        if not matched.mechanism.loops:
            rows = Rows(evidence.mechanism, absent=tuple(columns_of(evidence.mechanism, tuple(absent))))
            signals = rows.signals(prepared.temperature, prepared.effort, len(motion))
            independent = min(group.count * group.independence for group in evidence.groups)
            specimen = Specimen.of(rows, evidence.base, motion, prepared.filtered, signals, skip)
            false = tuple(f"{HEAD}{text}" for text in false_channels(matched.log, prepared.quality, specimen))
            notes += false or suspicions(rows, evidence.base, motion, prepared.filtered, specimen, independent)
            if not false and independent < evidence.base.rank:
                source["short"] = True  # see `findings`
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
        """Compress rows of one's own: any linear model tau = Y phi."""
        from dynident.identify.own_rows import evidence_of_rows  # noqa: PLC0415 - few programs have rows of their own

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
        **options: Any,
    ) -> Regression:
        """Prepare and compress the logs of one fit, all in one band that is chosen for them together."""
        from dynident.identify.band import evidence_in_one_band  # noqa: PLC0415 - it stands on this class
        from dynident.identify.merging import long_pieces  # noqa: PLC0415 - it needs this class

        if isinstance(logs, LogStream):
            return evidence_in_one_band(mechanism, logs, base, projection, absent, options)
        pieces, notes = long_pieces(logs)
        for text in notes:
            warn(text, SignalWarning)
        found = evidence_in_one_band(mechanism, pieces, base, projection, absent, options)
        return replace(found.joined(), notes=(*found.notes, *notes)) if notes else found

    def joined(self) -> Regression:
        """Return the evidence with pieces of a log, which have the same checksum, as one source: times and samples of all."""
        from dynident.identify.merging import joined_sources  # noqa: PLC0415 - it needs this class

        return replace(self, sources=joined_sources(self.sources))

    def __add__(self, other: Regression) -> Regression:
        """Return the evidence of both; they must belong to the same robot."""
        require(other, Regression, "the evidence to add")
        from dynident.identify.merging import merged  # noqa: PLC0415 - it needs this class

        return merged(self, other)

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
        return write_atomic(path, self.to_bytes())

    @classmethod
    def load(cls, path: str | os.PathLike[str], mechanism: Mechanism) -> Regression:
        """Read what `save` wrote."""
        from dynident.identify.regression_file import load_regression  # noqa: PLC0415 - it needs this class

        return load_regression(path, mechanism)

    def to_bytes(self) -> bytes:
        """Return the evidence as the bytes of the .npz file that `save` writes, to be sent to another machine."""
        from dynident.identify.regression_file import packed  # noqa: PLC0415 - it needs this class

        return packed(self)

    @classmethod
    def from_bytes(cls, content: bytes, mechanism: Mechanism, base: BaseParameters | None = None) -> Regression:
        """Return the evidence of `to_bytes`."""
        from dynident.identify.regression_file import load_regression  # noqa: PLC0415 - it needs this class

        return load_regression(content, mechanism, base)


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


def robot_motion(mechanism: Mechanism, measured: Motion) -> Motion:
    """Return the motion of the robot's coordinates from what was measured: the same for a tree, from the motors with loops."""
    return motion_from_actuators(mechanism, measured) if mechanism.loops else measured


def prepared_for(rows: Rows, log: Log, options: Mapping[str, Any]) -> Prepared:
    """Return a prepared log; rows are shortened where few of the long ones have no standing joint in them."""
    known = [name for name in signature(prepare).parameters if name != "log"]
    if unknown := sorted(set(options) - set(known)):
        raise IdentificationError(f"unknown option {', '.join(map(repr, unknown))}; options of prepare are {', '.join(known)}")
    found = prepare(log, **options)
    if found.moving is not None and options.get("decimation", "auto") == "auto":
        from dynident.identify.standstill import shortened  # noqa: PLC0415 - most logs are used as they are

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
