"""Logs of one robot, prepared for the search of friction laws: in the band, and with the findings, of an ordinary fit."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from dynident.errors import IdentificationError, SignalWarning
from dynident.identify.friction.belief import Belief
from dynident.identify.friction.recording import Recording, usual_projection
from dynident.identify.matching import match
from dynident.identify.prior import Knowledge
from dynident.identify.regression import Regression, dead_efforts, prepared_for, robot_motion
from dynident.identify.rows import Projection, Rows, check_projection
from dynident.mechanism import Mechanism
from dynident.signals import Log


@dataclass(frozen=True, eq=False)
class PreparedLogs:
    """Logs brought to the robot: what was measured as recordings, and the evidence of the robot with its linear terms."""

    evidence: Regression
    recordings: tuple[Recording, ...]
    known: Knowledge | None = None  # beside the description

    @property
    def robot(self) -> Mechanism:
        """The robot whose joints the logs move."""
        return self.evidence.mechanism

    @cached_property
    def belief(self) -> Belief:
        """What is believed about the bodies while laws are searched."""
        return Belief(self.evidence, self.known)


def prepared_logs(
    mechanism: Mechanism,
    log: Log | Sequence[Log],
    options: Mapping[str, Any] | None,
    projection: Projection | None = None,
    known: Knowledge | None = None,
) -> PreparedLogs:
    """Prepare logs of one robot in the one band that `Regression.from_logs` chooses; all must move the same joints."""
    logs, given = [log] if isinstance(log, Log) else list(log), dict(options or {})
    if not logs:
        raise IdentificationError("no log is given; give at least one")
    matched = [match(mechanism, one) for one in logs]
    robot = matched[0].mechanism
    for one, own in zip(logs, matched, strict=True):
        if own.mechanism.coordinate_names != robot.coordinate_names:
            raise IdentificationError(f"log '{one.name}' moves other joints than log '{logs[0].name}'; fit them apart")
    rows = Rows(robot, usual_projection(robot) if projection is None else check_projection(projection))
    evidence = Regression.from_logs(mechanism, logs, None, rows.projection, **given)
    # The same stretches as well: inflation and belief of the fit with laws are then those of the fit without.
    stretches = -(-max(len(group.counts) for group in evidence.groups) // len(logs))
    recordings = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SignalWarning)  # what is wrong with the logs was said with the evidence
        for own, source in zip(matched, evidence.sources, strict=True):
            band = {"cutoff": source["cutoff"], "band": source["bandwidth"]}
            prepared = prepared_for(rows, own.log, {**given, **band})
            moved = robot_motion(robot, prepared.motion)
            found = (prepared.filtered, prepared.decimator, dead_efforts(prepared), prepared.moving)
            recordings.append(Recording(moved, *found, prepared.temperature, prepared.effort, stretches))
    return PreparedLogs(evidence, tuple(recordings), known)
