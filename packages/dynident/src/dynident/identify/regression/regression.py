"""`Regression`: compressed regression data of logs for the base parameters of a robot."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import is_zipfile

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynident.arrays import Array
from dynident.checks import numbers
from dynident.errors import DynidentError, IdentificationError, require
from dynident.files import ContentError, parsed, read_regular, write_atomic
from dynident.identify.base import BaseParameters, base_parameters, columns_of
from dynident.identify.regression.factor import RowGroup, Samples, added, factors_of, triangle
from dynident.identify.regression.rows import Projection, Rows, check_projection, checked_efforts
from dynident.mechanics.closure import closure_starts
from dynident.mechanics.functions import Motion, MotionLike, as_motion
from dynident.mechanics.partitions import warn_of_projection
from dynident.mechanism.mechanism import Mechanism
from dynident.results import stored
from dynident.signals.filters import Decimator
from dynident.signals.log import Log
from dynident.signals.preparation import both
from dynident.signals.quality import Finding, read_notes
from dynident.signals.stream import LogStream

TILE = 4096  # samples whose regressor is in memory at once


class Recorded(NamedTuple):
    """A source log of regression data, and the bodies absent in it."""

    log: Log
    absent: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False, repr=False)
class Stretch:
    """Rows of one log, in the order of time."""

    motion: Motion  # N samples of the robot's coordinates before decimation
    measured: Motion  # Motion of the measured channels; motors of a robot with loops
    decimator: Decimator  # Filter of the rows
    rows: Rows  # The equations
    t: Array  # Time of the rows [s]
    W: tuple[Array, ...]  # Rows of every group; zero where they are not used
    y: tuple[Array, ...]  # Right sides of these rows
    used: tuple[NDArray[np.bool_], ...]  # Which rows are used
    positions: Array  # Measured positions before any filter, and efforts [rad, m, N m, N]
    effort: Array  # Measured positions before any filter, and efforts [rad, m, N m, N]
    noise: Array
    cutoff: float = 0.0  # Low-pass of the differentiation [Hz]; 0 if the motion is not from a log
    options: Mapping[str, Any] | None = None  # Options of `prepare`
    reference: Motion | None = None  # The reference motion, with the same filter

    @property
    def rate(self) -> float:
        """Rate of the motion [Hz]."""
        return float((len(self.motion) - 1) / (self.motion.t[-1] - self.motion.t[0]))


@dataclass(frozen=True, eq=False)
class Regression:
    """Regression data: one triangular factor of [W_base, tau] per row group.

    Sufficient for least squares with any weights, without the samples. Logs are merged by adding Regressions.

    Examples
    --------
    >>> rows = Regression.from_log(robot, log, keep_rows=True)   # doctest: +SKIP
    >>> IRLS().fit(rows).result_                                 # doctest: +SKIP
    """

    base: BaseParameters  #: Base parameters (and the robot) of the columns
    groups: tuple[RowGroup, ...]  #: One per joint that has usable efforts
    #: Sources of the regression data: name, sha256, first and last time, number of rows
    sources: tuple[Mapping[str, Any], ...] = ()
    #: Options of `dynident.signals.prepare`, to score other logs in the same way
    options: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[Finding, ...] = ()  #: Every decision of the preparation, with a code and a sentence
    #: How the equations of a robot with loops were projected (see `dynident.identify.regression.rows`)
    projection: Projection = "gls"
    #: The logs themselves while they are in memory, for `dynident.inspect`; not written to files
    logs: tuple[Recorded, ...] = ()
    #: Rows of every log in the order of time, if they were kept (``keep_rows=True``), for estimators that need single rows;
    #: not written to files
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
        keep_rows: bool = False,
    ) -> Regression:
        """Compress a motion and its efforts."""
        motion = as_motion(motion)
        rows = Rows(mechanism, check_projection(projection), tuple(columns_of(mechanism, absent)) if absent else ())
        tau = checked_efforts(rows, effort, len(motion))
        check_projection_of(rows, motion, skip)
        if base is None:
            base = base_parameters(mechanism)
        elif not same_robot(base, mechanism):
            raise IdentificationError(f"the base parameters given belong to another robot than '{mechanism.name}'")
        filter_ = decimator or Decimator(1, 1.0)
        if filter_.length(len(motion)) < 1:
            raise IdentificationError(f"{len(motion)} samples are too few for a decimation by {filter_.factor}")
        if moving is not None and moving.shape != tau.shape:
            raise IdentificationError(f"moving has shape {moving.shape} but effort has {tau.shape}; they must agree")
        signals = rows.signals(temperature, None, motion)
        groups, _ = factors_of(rows, base, Samples.of(motion, tau, signals, filter_, moving), skip, rests=False)
        found = cls(base, groups, projection=rows.projection)
        return found.with_stretch(rows, motion, tau, filter_, moving) if keep_rows else found

    @classmethod
    def from_log(
        cls,
        mechanism: Mechanism,
        log: Log,
        base: BaseParameters | None = None,
        projection: Projection | Sequence[str] = "gls",
        absent: Sequence[str] = (),
        keep_rows: bool = False,
        **options: Any,
    ) -> Regression:
        """Prepare a log (check, filter, differentiate, decimate) and compress it: `from_logs` of one log.

        Parameters
        ----------
        mechanism : Mechanism
            Robot; joints that the log does not have are held at zero.
        log : Log
            Measurements.
        base : BaseParameters, optional
            Base parameters; found when omitted.
        projection : str or sequence of str
            Equations of a robot with loops, see `from_motion`.
        absent : sequence of str
            Absent bodies, see `from_motion`.
        keep_rows : bool
            Whether to keep the rows, for estimators that need single rows.
        **options
            Passed to `dynident.signals.prepare`.

        Returns
        -------
        Regression
            The regression data; `notes` lists the decisions made.
        """
        return cls.from_logs(mechanism, [log], base, projection, absent, keep_rows, **options)

    @classmethod
    def from_logs(
        cls,
        mechanism: Mechanism,
        logs: Sequence[Log] | LogStream | Iterator[Log],
        base: BaseParameters | None = None,
        projection: Projection | Sequence[str] = "gls",
        absent: Sequence[str] = (),
        keep_rows: bool = False,
        **options: Any,
    ) -> Regression:
        """Prepare and compress the logs of one fit, all in one common band.

        A stream or an iterator gives pieces of one recording, one at a time in memory; the band is that of the first one.
        """
        from dynident.identify.regression.logs import regression_of_logs  # noqa: PLC0415 - it builds this class

        return regression_of_logs(mechanism, logs, base, projection, absent, keep_rows, options)

    @classmethod
    def without_effort(cls, mechanism: Mechanism, log: Log, base: BaseParameters | None = None, **options: Any) -> Regression:
        """Take the positions of a log that has no usable efforts, for `OutputError(outputs=("position",))`; rows are kept."""
        from dynident.identify.regression.logs import regression_without_effort  # noqa: PLC0415 - it builds this class

        return regression_without_effort(mechanism, log, base, options)

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
        """Compress custom rows of any linear model tau = Y phi."""
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
        return cls(base, tuple(groups))

    def joined(self) -> Regression:
        """Return a copy in which pieces of one log (same checksum) are one source."""
        found: dict[str, Mapping[str, Any]] = {}
        for source in self.sources:
            key = str(source["sha256"])
            found[key] = joined_source(found[key], source) if key in found else dict(source)
        return replace(self, sources=tuple(found.values()))

    def __add__(self, other: Regression) -> Regression:
        """Return the regression data of both; they must belong to the same robot."""
        require(other, Regression, "the regression data to add")
        if self.mechanism.parameters.names != other.mechanism.parameters.names:
            raise IdentificationError(
                f"data of robot '{self.mechanism.name}' and of '{other.mechanism.name}' cannot be merged: parameters differ"
            )
        if not np.array_equal(self.base.columns, other.base.columns):
            raise IdentificationError("these two Regressions use different base parameters; build both with the same base=")
        if not same_robot(other.base, self.mechanism):
            raise IdentificationError(
                f"regression data of robot '{self.mechanism.name}' and of '{other.mechanism.name}' cannot be merged: geometry, "
                "gravity or terms differ"
            )
        mine = {group.name: group for group in self.groups}
        theirs = {group.name: group for group in other.groups}
        if self.projection != other.projection:
            raise IdentificationError(
                f"regression data projected on {self.projection} and on {other.projection} cannot be merged"
            )
        names = [name for name in Rows(self.mechanism, self.projection).names if name in mine or name in theirs]
        if bool(self.stretches) != bool(other.stretches):
            raise IdentificationError("regression data with rows and without them cannot be merged; keep the rows of both")
        if self.stretches and not set(mine) == set(theirs) == set(names):
            raise IdentificationError("these two logs have usable efforts of different joints; their rows cannot be merged")
        before, after = (max(len(group.counts) for group in part.groups) for part in (self, other))
        pairs = [(mine.get(n) or theirs[n].empty(before), theirs.get(n) or mine[n].empty(after)) for n in names]
        return replace(
            self,
            groups=tuple(one.merge(two).fewer() for one, two in pairs),
            sources=(*self.sources, *other.sources),
            notes=tuple(dict.fromkeys((*self.notes, *other.notes))),
            logs=(*self.logs, *other.logs),
            stretches=(*self.stretches, *other.stretches),
        )

    def with_rows(self, rows: Sequence[Sequence[tuple[Array, Array]]], counts: Sequence[int] | None = None) -> Regression:
        """Return regression data of other rows, without keeping the rows."""
        groups = []
        for g, group in enumerate(self.groups):
            stacked = np.vstack([np.column_stack(part[g]) for part in rows])
            count = group.count if counts is None else counts[g]
            groups.append(RowGroup(group.name, group.columns, triangle(stacked), count, group.independence))
        return replace(self, groups=tuple(groups), logs=(), stretches=())

    def with_stretch(
        self, rows: Rows, motion: Motion, effort: Array, decimator: Decimator, moving: NDArray[np.bool_] | None
    ) -> Regression:
        """Return the same regression data with the rows of a motion and its efforts, those of resting joints unused."""
        W, y = filtered_rows(rows, motion, effort, self.base, self.groups, decimator)
        usable = np.ones((y[0].size, len(W)), dtype=bool)
        if moving is not None:
            usable = decimator.usable(rows.usable(moving)[:, [rows.names.index(group.name) for group in self.groups]])
        stretch = Stretch(
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
        return replace(self, stretches=(*self.stretches, stretch))

    def residuals(self, beta: Array) -> list[list[Array]]:
        """Return y - W beta of every stretch and group of the rows that were kept, zero where rows are not used."""
        return [
            [y - W @ beta[group.columns] for W, y, group in zip(part.W, part.y, self.groups, strict=True)]
            for part in self.stretches
        ]

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the regression data to an .npz file (a few hundred kilobytes, independent of the number of samples)."""
        return write_atomic(path, self.to_bytes())

    @classmethod
    def load(cls, path: str | os.PathLike[str], mechanism: Mechanism) -> Regression:
        """Read regression data written by `save`."""
        return load_regression(path, mechanism)

    def to_bytes(self) -> bytes:
        """Return the content of the .npz file of `save` as bytes, to be sent to another machine."""
        arrays: dict[str, Any] = {"columns": self.base.columns, "fingerprint": self.base.fingerprint()}
        for i, group in enumerate(self.groups):
            arrays[f"R{i}"], arrays[f"columns{i}"], arrays[f"products{i}"] = group.R, group.columns, group.products
        about = {
            "format": "dynident-regression-2",
            "parameters": self.mechanism.parameters.names,
            "groups": [(group.name, group.count, group.independence, group.counts, group.phases) for group in self.groups],
            "sources": [dict(source) for source in self.sources],
            "options": dict(self.options),
            "notes": [asdict(each) for each in self.notes],
            "projection": self.projection,
        }
        buffer = io.BytesIO()
        np.savez_compressed(buffer, about=np.frombuffer(json.dumps(about).encode(), dtype=np.uint8), **arrays)
        return buffer.getvalue()

    @classmethod
    def from_bytes(cls, content: bytes, mechanism: Mechanism, base: BaseParameters | None = None) -> Regression:
        """Return the regression data of `to_bytes`."""
        return load_regression(content, mechanism, base)


def check_projection_of(rows: Rows, motion: Motion, skip: Sequence[str]) -> None:
    """Refuse a projection onto motors without efforts, and warn of a projection that amplifies noise."""
    robot = rows.mechanism
    if robot.loops and skip:
        raise IdentificationError(f"efforts of {', '.join(skip)} are missing; a projection needs the efforts of all motors")
    if robot.loops and not isinstance(rows.projection, str) and len(robot.actuators) > robot.dof:
        warn_of_projection(robot, motion, rows.projection)


def same_robot(base: BaseParameters, mechanism: Mechanism) -> bool:
    """Return whether base parameters belong to a robot, independent of its parameter values."""
    if base.mechanism is mechanism:
        return True
    if base.mechanism.parameters.names != mechanism.parameters.names or base.mechanism.dof != mechanism.dof:
        return False
    return base.fits(replace(base, mechanism=mechanism).fingerprint())


def joined_source(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """Return two pieces of a log as one source."""
    start, end = min(one["start"], other["start"]), max(one["end"], other["end"])
    samples = one["samples"] + other["samples"]
    whole = {**one, "start": start, "end": end, "samples": samples, "resting": added(one, other)}
    if "motion" in one and "motion" in other:
        whole["motion"] = both(one["motion"], other["motion"])
    return whole


def own_rows(Y: ArrayLike, tau: ArrayLike, count: int) -> tuple[Array, Array]:
    """Check custom rows and efforts and return them as (N, n, m) and (N, n)."""
    rows, effort = numbers(Y, "Y"), numbers(tau, "tau")
    rows = rows[:, None, :] if rows.ndim == 2 else rows
    effort = effort[:, None] if effort.ndim == 1 else effort
    if rows.ndim != 3 or rows.shape[:2] != effort.shape or rows.shape[2] != count:
        raise IdentificationError(
            f"Y has shape {np.shape(Y)} and tau {np.shape(tau)} for {count} names; give (N, n, {count}) and (N, n)"
        )
    if not rows.size:
        raise IdentificationError(f"Y has shape {np.shape(Y)}, so there are no data; give at least one row and name")
    for label, values in (("Y", rows), ("tau", effort)):
        if not np.isfinite(values).all():
            raise IdentificationError(
                f"{label} is not finite at sample {int(np.argwhere(~np.isfinite(values))[0][0])}; remove it"
            )
    return rows, effort


def sampled(regression: Regression, name: str) -> Regression:
    """Return regression data with kept rows, or raise an error that explains how to keep them."""
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
    """Return W (M, k_g) and y (M,) of every group, decimated; omitted efforts count as zero."""
    spans = list(decimator.tiles(len(motion), max(TILE // decimator.factor, 96)))
    starts: Sequence[Array | None] = [None] * len(spans)
    if rows.mechanism.loops:
        starts = closure_starts(rows.mechanism, motion.q, [piece.start for piece, _ in spans])
    order = [rows.names.index(group.name) for group in groups]
    W: list[list[Array]] = [[] for _ in groups]
    y: list[list[Array]] = [[] for _ in groups]
    for (piece, _), start in zip(spans, starts, strict=True):
        tau = None if effort is None else effort[piece]
        tile, target = rows.equations(motion[piece], tau, base.columns, start, piece.start)
        for g, (i, group) in enumerate(zip(order, groups, strict=True)):
            W[g].append(decimator.apply(np.ascontiguousarray(tile[i, group.columns].T)))
            y[g].append(decimator.apply(target[i]))
    return [np.concatenate(parts) for parts in W], [np.concatenate(parts) for parts in y]


def rows_along(regression: Regression, stretch: Stretch, motion: Motion) -> list[Array]:
    """Return the rows W of a stretch along another motion, zero where rows are not used."""
    W, _ = filtered_rows(stretch.rows, motion, None, regression.base, regression.groups, stretch.decimator)
    return [w * used[:, None] for w, used in zip(W, stretch.used, strict=True)]


MOST = 1 << 30  # limit of the arrays of a file [bytes]; a robot of a hundred joints needs a tenth


def load_regression(
    path: str | os.PathLike[str] | bytes, mechanism: Mechanism, known: BaseParameters | None = None
) -> Regression:
    """Read the bytes of `to_bytes` or their file, for `Regression.from_bytes` and `Regression.load`."""
    what = "the bytes" if isinstance(path, bytes) else f"'{os.fspath(path)}'"
    try:
        content = io.BytesIO(path if isinstance(path, bytes) else read_regular(path, MOST))
    except OSError as error:
        raise IdentificationError(f"cannot read {what} as a Regression: {error.strerror or error}") from error
    if not is_zipfile(content):
        raise IdentificationError(f"{what} is not a Regression file: it is not an npz archive, or was cut short")
    content.seek(0)
    try:
        with np.load(content, allow_pickle=False) as data:
            size = sum(entry.file_size for entry in data.zip.infolist())
            arrays = {name: np.asarray(data[name]) for name in data.files} if size <= MOST else {}
    except Exception as error:  # a damaged archive raises many kinds of errors, also of Python's tokenizer
        why = f"it is damaged or something else ({type(error).__name__})"
        raise IdentificationError(f"cannot read {what} as a Regression: {why}; save the regression data again") from error
    if size > MOST:
        raise IdentificationError(f"{what} would unpack to {size >> 20} MB; expected regression data")
    try:
        about = parsed(json.loads, arrays["about"].tobytes() if "about" in arrays else b"{}")
        if not isinstance(about, Mapping) or about.get("format") != "dynident-regression-2":
            raise IdentificationError(f"{what} is not a Regression file")
        hints = {"parameters": list[str], "sources": list[dict[str, Any]], "options": dict[str, Any], "notes": list[Any]}
        names, sources, options, notes = (stored(about, name, hint, "about") for name, hint in hints.items())
        columns, fingerprint = (_stored_array(arrays, name) for name in ("columns", "fingerprint"))
        groups = tuple(_stored_group(arrays, i, row) for i, row in enumerate(stored(about, "groups", list[list[Any]], "about")))
        projection, found = check_projection(stored(about, "projection", Any, "about")), read_notes(notes)
    except (ContentError, DynidentError) as error:
        raise IdentificationError(f"cannot read {what} as a Regression: {error}; save the regression data again") from error
    if tuple(names) != mechanism.parameters.names:
        raise IdentificationError(f"{what} belongs to another robot than '{mechanism.name}': parameter names differ")
    if columns.ndim != 1 or columns.dtype.kind not in "iu" or not np.isin(columns, np.arange(len(names))).all():
        raise IdentificationError(f"cannot read {what} as a Regression: its columns are not parameters of the robot")
    base = known or base_parameters(mechanism, order=[mechanism.parameters.names[c] for c in columns])
    if not np.array_equal(base.columns, columns) or not base.fits(fingerprint):
        raise IdentificationError(
            f"{what} belongs to another robot than '{mechanism.name}': its geometry, gravity or terms differ"
        )
    if any(np.any(group.columns >= base.rank) for group in groups):
        raise IdentificationError(f"cannot read {what} as a Regression: its rows have more parameters than the robot")
    return Regression(base, groups, tuple(sources), options, found, projection)


def _stored_array(arrays: Mapping[str, Any], name: str) -> Any:
    """Return a numeric array of an archive."""
    if name not in arrays or arrays[name].dtype.kind not in "iuf":
        raise IdentificationError(f"the array '{name}' is missing or holds no numbers")
    return arrays[name]


def _stored_group(arrays: Mapping[str, Any], i: int, row: list[Any]) -> RowGroup:
    """Return one group of an archive; phases are there since 0.3."""
    if not 4 <= len(row) <= 5:
        raise IdentificationError(f"group {i} has {len(row)} entries, not 4 or 5")
    labels = dict(zip(("name", "count", "independence", "counts", "phases"), row, strict=False))
    hints = {"name": str, "count": int, "independence": float, "counts": tuple[int, ...], "phases": tuple[int, ...]}
    given = {name: stored(labels, name, hints[name], f"groups[{i}]") for name in labels}
    columns, R, products = (_stored_array(arrays, f"{name}{i}") for name in ("columns", "R", "products"))
    k, K = columns.size + 1, len(given["counts"])
    shapes = columns.ndim == 1 and R.shape[1:] == (k,) and products.shape == (K, k, k)
    if not shapes or columns.dtype.kind == "f" or np.any(columns < 0) or len(given.get("phases", range(K))) != K:
        raise IdentificationError(f"arrays and stretches of group {i} do not fit together")
    return RowGroup(columns=columns, R=R, products=products, **given)
