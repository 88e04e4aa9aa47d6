"""Logs of one robot, prepared for the search of friction laws: in the band, and with the findings, of an ordinary fit."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from dynident.errors import IdentificationError, SignalWarning
from dynident.identify.friction.belief import Belief
from dynident.identify.friction.recording import Recording, usual_projection
from dynident.identify.matching import match
from dynident.identify.prior import Knowledge
from dynident.identify.regression import Regression, dead_efforts, prepared_for, robot_motion
from dynident.identify.rows import Projection, Rows, check_projection
from dynident.mechanism.mechanism import Mechanism
from dynident.signals.log import Log


@dataclass(frozen=True, eq=False)
class PreparedLogs:
    """Logs brought to the robot: what was measured as recordings, and the evidence of the robot with its linear terms."""

    evidence: Regression
    recordings: tuple[Recording, ...]
    logs: tuple[Log, ...]
    known: Knowledge | None  # beside the description
    notes: tuple[str, ...]

    @property
    def robot(self) -> Mechanism:
        """The robot whose joints the logs move."""
        return self.evidence.mechanism

    @cached_property
    def belief(self) -> Belief:
        """What is believed about the bodies while laws are searched."""
        return Belief(self.evidence, self.known)

    def rejudged(self, robot: Mechanism) -> PreparedLogs:
        """Return the logs in the band that the robot with its laws chooses where that is wider, else itself.

        A band is chosen by errors of a model. Those of linear terms where friction is not linear ask for too narrow a one. A
        narrower one would only make errors smaller than those of the fit without laws.
        """
        options = dict(self.evidence.options)
        if options.get("cutoff", "auto") != "auto" or options.get("band", "auto") != "auto":
            return self
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SignalWarning)  # said before
            judged = Regression.from_logs(robot, self.logs, None, self.evidence.projection, **options)
            (own, *_), (other, *_) = self.evidence.sources, judged.sources
            if other["cutoff"] <= own["cutoff"]:
                return self
            band = {"cutoff": other["cutoff"], "band": other["bandwidth"]}
            parts = Regression.from_logs(self.robot, self.logs, None, self.evidence.projection, **{**options, **band})
        evidence = replace(parts, options=options)
        return replace(self, evidence=evidence, recordings=_recordings(evidence, self.logs), notes=judged.notes)


def prepared_logs(
    mechanism: Mechanism,
    log: Log | Sequence[Log],
    options: Mapping[str, Any] | None,
    projection: Projection | None = None,
    known: Knowledge | None = None,
) -> PreparedLogs:
    """Prepare logs of one robot in the one band that `Regression.from_logs` chooses; all must move the same joints."""
    logs, given = (log,) if isinstance(log, Log) else tuple(log), dict(options or {})
    if not logs:
        raise IdentificationError("no log is given; give at least one")
    robots = [match(mechanism, one).mechanism for one in logs]
    for one, robot in zip(logs, robots, strict=True):
        if robot.coordinate_names != robots[0].coordinate_names:
            raise IdentificationError(f"log '{one.name}' moves other joints than log '{logs[0].name}'; fit them apart")
    chosen = usual_projection(robots[0]) if projection is None else check_projection(projection)
    evidence = Regression.from_logs(mechanism, logs, None, chosen, **given)
    return PreparedLogs(evidence, _recordings(evidence, logs), logs, known, evidence.notes)


def _recordings(evidence: Regression, logs: Sequence[Log]) -> tuple[Recording, ...]:
    """Return logs prepared as those of the evidence were."""
    robot, rows = evidence.mechanism, Rows(evidence.mechanism, evidence.projection)
    # The same stretches as well: inflation and belief of the fit with laws are then those of the fit without.
    stretches = -(-max(len(group.counts) for group in evidence.groups) // len(logs))
    recordings = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SignalWarning)  # what is wrong with the logs was said with the evidence
        for log, source in zip(logs, evidence.sources, strict=True):
            band = {"cutoff": source["cutoff"], "band": source["bandwidth"]}
            prepared = prepared_for(rows, match(robot, log).log, {**evidence.options, **band})
            moved = robot_motion(robot, prepared.motion)
            found = (prepared.filtered, prepared.decimator, dead_efforts(prepared), prepared.moving)
            recordings.append(Recording(moved, *found, prepared.temperature, prepared.effort, stretches))
    return tuple(recordings)
